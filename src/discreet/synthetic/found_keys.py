"""Keys of text columns without a public list, found by a private selection that a generator's budget pays.

A unit of at most k rows has at most k different texts in a column. Those of a unit with more that count are chosen from
its own rows alone. So one unit moves the numbers of units of at most k texts by 1 each under ADD_REMOVE, and of at most
2 k texts under REPLACE: what `PartitionSelection` is built for. All columns together cost a tenth of epsilon and of
delta, in equal parts, and the rest pays for the model: basic composition, whose sums are the budget exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.mechanisms import PartitionSelection
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Approx, Event
from discreet.synthetic.coded_rows import CodedRows, Integers, units_of_values
from discreet.synthetic.domain import Domain, FoundKeys, UnknownKeys
from discreet.synthetic.domain.text_keys import is_key

PART = Fraction(1, 10)
"""Of epsilon and of delta, for the selections of all columns together."""

_MOST_EPSILON = Fraction(1000)  # a selection keeps everything long before


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The texts of a column, private: in the order of the alphabet, and how many units each counts for.

    Args:
        texts: those that could be found, each once.
        units: of each, where one unit counts for no more texts than it may have rows.
    """

    texts: tuple[str, ...]
    units: Integers

    @classmethod
    def of_rows(cls, values: Sequence[Any] | NDArray[Any], units: Any, limit: int) -> Texts:
        """Returns the texts of a column of a frame, given whose each row is; None: each row is a unit of its own."""
        given = values.tolist() if isinstance(values, np.ndarray) else values
        alone = cls(tuple(sorted({value for value in given if is_key(value)})), np.zeros(0, dtype=np.int64))
        count = len(alone.texts)
        return cls(alone.texts, units_of_values(units, alone.numbers(given), count, limit))

    def numbers(self, values: Iterable[Any]) -> Integers:
        """Returns the number of each text; those that cannot be found have the next number, what is no text the last.

        The order of two values of a unit does not depend on what others have.
        """
        known, rest = {text: place for place, text in enumerate(self.texts)}, len(self.texts)
        found = [known.get(value, rest) if isinstance(value, str) else rest + 1 for value in values]
        return np.array(found, dtype=np.int64)

    @property
    def size(self) -> int:
        """Returns how many numbers there are."""
        return len(self.texts) + 2


def unknown_columns(domain: Domain) -> dict[str, UnknownKeys]:
    """Returns the columns whose keys are to be found."""
    return {name: column for name, column in domain.columns.items() if isinstance(column, UnknownKeys)}


def selection_terms(domain: Domain, epsilon: check.Number, delta: check.Number) -> dict[str, tuple[Fraction, Fraction]]:
    """Returns the epsilon and the delta of the selection of each column whose keys are to be found.

    >>> selection_terms(Domain({"city": UnknownKeys(), "sex": ["F", "M"]}), 1, "1e-8")
    {'city': (Fraction(1, 10), Fraction(1, 1000000000))}
    """
    columns = unknown_columns(domain)
    whole, chance = check.positive(epsilon=epsilon), check.probability(delta=delta)
    return {name: (min(PART * whole / len(columns), _MOST_EPSILON), PART * chance / len(columns)) for name in columns}


def selection_event(terms: tuple[Fraction, Fraction]) -> Event:
    """Returns what one selection is charged as: the (epsilon, delta) that it keeps to, whatever the limit of rows."""
    return Approx(*terms)


def key_selection(
    terms: tuple[Fraction, Fraction], *, neighbours: Neighbours | str, rows_per_unit: int
) -> PartitionSelection:
    """Returns the selection of one column; a unit that is replaced leaves some texts and enters as many others.

    Formal guarantee: (epsilon, delta)-DP under the relation. Texts are independent, and of those that one unit moves,
    at most k or 2 k, each is (epsilon / n, d)-DP in both directions, as `PartitionSelection` proves for n of them.

    Raises:
        InvalidParameter: if the limit is too large for the budget.
    """
    sides = 1 if Neighbours(neighbours) is Neighbours.ADD_REMOVE else 2
    epsilon, delta = terms
    return PartitionSelection(epsilon=epsilon, delta=delta, max_groups=sides * rows_per_unit, method="truncated")


def found_keys(column: UnknownKeys, texts: Texts, selection: PartitionSelection, bits: Bits | None = None) -> FoundKeys:
    """Returns the keys that a selection shows, in the order of the alphabet.

    If there are more than may be kept, those with the largest noisy counts are: these are part of the same release.
    """
    units = np.array([0 if text == column.other else n for text, n in zip(texts.texts, texts.units, strict=True)])
    shown = selection.release(units.astype(np.int64), bits=bits)
    if shown.counts is None:
        raise InternalError("A selection gave no counts.")
    names = [text for text, kept in zip(texts.texts, shown.kept.tolist(), strict=True) if kept]
    largest = sorted(zip(names, shown.counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    paid = (selection.epsilon, selection.delta)
    keys = sorted(name for name, _ in largest[: column.most])
    return FoundKeys(keys, other=column.other, missing=column.missing, paid=paid)


def found_rows(rows: CodedRows, domain: Domain, texts: Mapping[str, Texts]) -> CodedRows:
    """Returns rows in which private numbers of texts are codes of what was found: a public rule for each text.

    Args:
        rows: fine codes, and numbers of texts.
        domain: with found keys.
        texts: of the columns whose keys were to be found.
    """
    places, sizes = {}, dict(rows.sizes)
    for name, column in texts.items():
        known = domain.columns[name]
        places[name] = known.codes([*column.texts, known.labels[-1], None])  # the last label is that of the others
        sizes[name] = known.size
    return rows.recode_columns(places, sizes)
