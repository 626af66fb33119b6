"""Texts without a public list: a private selection finds keys, and all other texts are one value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.domain.column_domains import MOST_VALUES, Codes, ColumnDomain, Floats

LONGEST = 1 << 10
"""Letters of a text that can be found; a longer one is one of the others."""

_HINT = "Pass e.g. UnknownKeys(most=100): keys that enough people have are found for a part of the budget."


def is_key(value: Any) -> bool:
    """Returns whether a value is a text that could be found: a function of this value alone."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a letter: no table holds it
        return False
    return True


@dataclass(frozen=True, slots=True, init=False)
class UnknownKeys(ColumnDomain):
    """Declares texts without a public list: a generator finds keys that enough units have, for a part of its budget.

    All other texts are one value of their own. In the place of this, the domain of a model has `FoundKeys`.

    Args:
        most: how many keys are kept at most, those with the largest noisy counts.
        other: what all other texts are called when rows are drawn; the same text in the data is one of them.
        missing: whether there is a code for what is no text; if not, it is one of the others.

    Raises:
        InvalidParameter: if `most` is no number from 1 to 65,534, or `other` no text.

    >>> UnknownKeys(most=100).size
    102
    """

    most: int
    other: str
    missing: bool

    def __init__(self, most: int = 100, *, other: str = "other", missing: bool = True) -> None:
        if not is_key(other):
            raise InvalidParameter("other", other, "to be a text", _HINT)
        largest = check.integer(most=most, at_least=1, at_most=MOST_VALUES - 2)
        self._declare(most=largest, other=other, missing=missing)

    @property
    def labels(self) -> tuple[str | None, ...]:
        """Returns as many as there may be: keys that are not known, and the others."""
        return (None,) * self.most + (self.other,)

    def places(self, values: Sequence[Any] | NDArray[Any]) -> Codes:  # noqa: ARG002
        """Refuses: there are no places before keys are found."""
        raise InvalidParameter("domain", "UnknownKeys", "to be found before values have codes", "Fit a generator.")

    def decode_places(self, places: Codes, uniforms: Floats) -> list[Any]:  # noqa: ARG002
        """Refuses: there are no values before keys are found."""
        raise InvalidParameter("domain", "UnknownKeys", "to be found before codes have values", "Fit a generator.")

    def fine_codes(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the numbers that private texts have until keys are found."""
        return np.asarray(values, dtype=np.int64)

    def members(self, values: Any) -> list[int]:
        """Refuses: rules are about values that are public."""
        raise InvalidParameter("forbidden", values, "to be about columns with declared values", "Pass Keys([...]).")

    @property
    def detail(self) -> str:
        """Returns how a value is made of a code."""
        return f"at most {self.most} keys, found by a private selection; all others are {self.other!r}"

    def as_dict(self) -> dict[str, Any]:
        """Returns the declaration as plain data."""
        return {"kind": "unknown keys", "most": self.most, "other": self.other, "missing": self.missing}


@dataclass(frozen=True, slots=True, init=False)
class FoundKeys(ColumnDomain):
    """Keys that a private selection released, and all other texts as one value.

    Args:
        keys: the texts, each once; there may be none.
        other: what all other texts are called.
        missing: whether there is a code for what is no text; if not, it is one of the others.
        paid: the epsilon and the delta of the selection.

    >>> city = FoundKeys(["Bern", "Rome"], other="other", missing=True, paid=(Fraction(1, 10), Fraction(1, 10**9)))
    >>> city.codes(["Rome", "Oslo", None, "Bern"]).tolist()
    [1, 2, 3, 0]
    """

    keys: tuple[str, ...]
    other: str
    missing: bool
    paid: tuple[Fraction, Fraction]

    def __init__(
        self, keys: Iterable[str], *, other: str, missing: bool, paid: tuple[check.Number, check.Number]
    ) -> None:
        found = tuple(keys)
        if not all(is_key(key) and key != other for key in found) or len(set(found)) < len(found):
            raise InvalidParameter("keys", list(found), f"to be texts other than {other!r}, each once")
        epsilon, delta = check.positive(epsilon=paid[0]), check.probability(delta=paid[1])
        assign(self, keys=found, other=other, missing=missing, paid=(epsilon, delta))

    @property
    def labels(self) -> tuple[str, ...]:
        """Returns the keys, and what the others are called."""
        return (*self.keys, self.other)

    def places(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the place of each text among the labels, -1 for what is no text."""
        known, rest = {key: place for place, key in enumerate(self.keys)}, len(self.keys)
        nothing = -1 if self.missing else rest
        given = values.tolist() if isinstance(values, np.ndarray) else values
        found = (known.get(value, rest) if isinstance(value, str) else nothing for value in given)
        return np.fromiter(found, dtype=np.int64, count=len(given))

    def decode_places(self, places: Codes, uniforms: Floats) -> list[Any]:  # noqa: ARG002  # a key is one value
        """Returns the text of each place."""
        labels = self.labels
        return [labels[place] for place in places.tolist()]

    def members(self, values: Any) -> list[int]:
        """Returns the places of some texts; None is the one of missing values.

        Raises:
            InvalidParameter: if one of them is none.
        """
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise InvalidParameter("forbidden", values, "to be a list of texts", "Pass e.g. {'city': ['Bern']}.")
        wrong = [value for value in values if value is not None and value not in self.labels]
        if wrong:
            raise InvalidParameter("forbidden", wrong[0], f"to be among {list(self.labels)}")
        return [self._place_of_missing() if value is None else self.labels.index(value) for value in values]

    @property
    def detail(self) -> str:
        """Returns how a value is made of a code."""
        return f"{len(self.keys)} keys, found by a private selection; all others are {self.other!r}"

    def as_dict(self) -> dict[str, Any]:
        """Returns what was found as plain data."""
        found = {"kind": "found keys", "keys": list(self.keys), "other": self.other, "missing": self.missing}
        return found | {"paid": [str(amount) for amount in self.paid]}
