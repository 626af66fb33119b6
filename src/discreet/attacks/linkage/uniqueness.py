"""How many people a few ordinary columns single out, and which columns to coarsen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet import check
from discreet.attacks.attack import beside
from discreet.attacks.linkage.attacker_tables import (
    Codes,
    columns_of,
    combine_codes,
    forms,
    number_values,
    select_columns,
)
from discreet.attacks.linkage.attribute_disclosure import compare_lookups, people_of
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.noise import Bits
from discreet.report import comparison_charts
from discreet.report.attack_finding import Comparison, Finding
from discreet.report.charts import Spec
from discreet.report.display import rate

_SIZES = ((1, 1), (2, 2), (3, 5), (6, 10), (11, 100), (101, None))


@dataclass(frozen=True, slots=True)
class CoarseningEffect:
    """Describes what a coarser form of one column would do.

    Attributes:
        column: its name.
        form: as in "first 3 characters" or "dropped".
        unique: the share of people who would still be the only ones.

    >>> found = uniqueness({"zip": ["1011", "1012", "2011", "2011"], "sex": ["F", "F", "M", "F"]}, ["zip", "sex"])
    >>> [(way.column, way.form, way.unique) for way in found.coarsen[:2]]
    [('zip', 'dropped', 0.25), ('zip', 'first 3 characters', 0.5)]
    """

    column: str
    form: str
    unique: float


@dataclass(frozen=True, kw_only=True)
class Uniqueness(Finding):
    """Counts classes of people who are equal in all quasi-identifiers.

    Attributes:
        quasi: names of the quasi-identifiers.
        classes: how many there are.
        k: how many people the smallest has.
        sizes: the share of people in classes of a size, by that size in words.
        coarsen: what to coarsen, the most effective first.
    """

    quasi: tuple[str, ...]
    classes: int
    k: int
    sizes: dict[str, float]
    coarsen: tuple[CoarseningEffect, ...]

    def details(self) -> tuple[str, ...]:
        """Returns the most effective ways to coarsen a column and to keep it."""
        kept = [found for found in self.coarsen if found.form != "dropped"]
        known = (
            f"With {found.column} {_as(found.form)}, {rate(found.unique)} would be unique."
            for found in (*self.coarsen[:1], *kept[:1])
        )
        return (f"The {self.classes:,} classes have {self.k:,} or more people each.", *dict.fromkeys(known))

    @property
    def headline(self) -> str:
        """Returns the finding as the title of a chart."""
        return f"{rate(self.success)} of {self.targets:,} people are the only ones with their {_and(self.quasi)}"

    def spec(self) -> Spec:
        """Returns the share of people by the size of their class."""
        found = {name: (share, share, share) for name, share in self.sizes.items()}
        marks = {} if self.predicted is None else {"predicted unique": self.predicted}
        return comparison_charts.rates(found, marks, headline=self.headline, across="people in classes of that size")


def compare(
    table: Any,
    quasi: Sequence[str],
    *,
    sensitive: str,
    k: int = 5,
    threshold: int = 5,
    epsilons: Sequence[check.Number] = (0.1, 1, 10),
    rounds: int = 10,
    bits: Bits | None = None,
) -> Comparison:
    """Looks each person up by their quasi-identifiers and guesses the sensitive value, in several releases.

    The releases are the rows, k-anonymous rows, counts without small ones, and private counts; see `compare_lookups`
    for the bound. Nothing in it needs names: knowing a person's quasi-identifiers is enough.

    Args:
        table: one row a person.
        quasi: the columns that others may know.
        sensitive: the column that they would like to know; its values are public, whose they are is not.
        k: of the k-anonymous release.
        threshold: counts below it are left out of the release of counts.
        epsilons: of private releases; each is for the whole release, for adding or removing one row.
        rounds: how many private releases the rates are measured on, for each epsilon.
        bits: the source of randomness.
    """
    columns = columns_of(table)
    select_columns(columns, [*_names(quasi), sensitive], parameter="quasi")
    own = np.arange(len(columns[sensitive]))
    people = people_of(columns, _names(quasi), sensitive, known=columns, own=own)
    return compare_lookups(
        people, attack="Looking people up", k=(k,), threshold=threshold, epsilons=epsilons, rounds=rounds, bits=bits
    )


@beside(compare)
def uniqueness(table: Any, quasi: Sequence[str], *, cells: int | None = None) -> Uniqueness:
    """Measures the share of people who are the only ones with their quasi-identifiers.

    Among N people spread evenly over B cells, a person is alone with probability (1 - 1/B)^(N - 1) (Golle 2006 counts
    the same for the census).

    Args:
        table: a path, a frame, a mapping of columns or a list of rows; one row a person.
        quasi: the columns that others may know.
        cells: B, the number of equally likely combinations, if the share is to be predicted.

    >>> people = {"zip": ["1", "1", "2"], "sex": ["F", "F", "F"]}
    >>> found = uniqueness(people, ["zip", "sex"])
    >>> round(found.success, 4), found.k, found.coarsen[0]
    (0.3333, 1, CoarseningEffect(column='zip', form='dropped', unique=0.0))
    """
    names, columns = _names(quasi), columns_of(table)
    parts = [number_values(column) for column in select_columns(columns, names, parameter="quasi")]
    people = len(parts[0])
    if not people:
        raise InvalidParameter("table", 0, "to have rows", "Pass a table with at least one person.")
    sizes = np.bincount(combine_codes(parts))
    return Uniqueness(
        attack="Uniqueness",
        goal=f"people are the only ones with their {_and(names)}",
        success=_alone(parts),
        baseline=1 / people,
        targets=people,
        predicted=None if cells is None else alone(people, check.integer(cells=cells, at_least=1)),
        quasi=tuple(names),
        classes=len(sizes),
        k=int(sizes.min()),
        sizes=_shares(sizes),
        coarsen=_rank_coarsenings(names, columns, parts),
    )


def alone(people: int, cells: float) -> float:
    """Returns the expected share of people who are alone in one of so many equally likely cells.

    >>> round(alone(7500, 2 * 365 * 80), 4)
    0.8795
    """
    return float((1 - 1 / cells) ** (people - 1))


def _rank_coarsenings(names: list[str], columns: dict[str, Any], parts: list[Codes]) -> tuple[CoarseningEffect, ...]:
    """Returns what every coarser form of every column would leave, the least first; of equal ones the finer form."""
    found = []
    for place, name in enumerate(names):
        for form in forms(columns[name]):
            coarse = [*parts[:place], number_values(form.apply_to(columns[name])), *parts[place + 1 :]]
            found.append(CoarseningEffect(name, form.name, _alone(coarse)))
    return tuple(sorted(found, key=lambda one: one.unique))


def _alone(parts: list[Codes]) -> float:
    sizes = np.bincount(combine_codes(parts))
    return float(np.count_nonzero(sizes == 1) / sizes.sum())


def _shares(sizes: Codes) -> dict[str, float]:
    shares = {}
    for low, high in _SIZES:
        name = (
            "more than 100"
            if high is None
            else "1: unique"
            if high == 1
            else f"{low} to {high}"
            if low < high
            else f"{low}"
        )
        shares[name] = float(sizes[(sizes >= low) & (sizes <= (high or sizes.max()))].sum() / sizes.sum())
    return shares


def _names(quasi: Sequence[str]) -> list[str]:
    return [quasi] if isinstance(quasi, str) else list(quasi)


def _as(form: str) -> str:
    return form if form == "dropped" else f"coarsened to {form}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
