"""An anonymised release joined with a named list on the columns they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside
from discreet.attacks.linkage.attacker_tables import (
    Codes,
    Column,
    Columns,
    columns_of,
    combine_codes,
    list_values,
    number_values,
    select_columns,
    stack_columns,
)
from discreet.attacks.linkage.attribute_disclosure import compare_lookups, people_of
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.noise import Bits
from discreet.report import comparison_charts
from discreet.report.attack_finding import Comparison, Finding, wilson_interval
from discreet.report.charts import Spec
from discreet.report.display import rate

Pairs = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Linkage(Finding):
    """Reports which rows of a release get which names.

    Attributes:
        matches: pairs of a released row and a named one that are equal in all shared columns.
        confirmed: matches that are unique in the release, in the list and, where it is given, in the population.
        ambiguous: released rows that match a named person and are not confirmed.
        overstated: matches unique in the release and the list that the population shows to be shared; None without one.
        right: the share of confirmed matches that are right; None without the truth.
        told: for how many named people all matching rows have the same sensitive value; None without such a column.
        recovered: confirmed pairs, the place in the release and the place in the list.
    """

    matches: int
    confirmed: int
    ambiguous: int
    overstated: int | None
    right: float | None
    told: int | None
    recovered: Pairs = field(compare=False)

    def details(self) -> tuple[str, ...]:
        """Returns the figures, and what they leave open."""
        known = [f"{self.matches:,} pairs match, {self.confirmed:,} confirmed, {self.ambiguous:,} rows are ambiguous."]
        if self.right is not None:
            known.append(f"{rate(self.right)} of the confirmed matches are right.")
        if self.told is not None:
            known.append(f"The sensitive value of {self.told:,} named people is certain if they are in the release.")
        if self.overstated is None:
            known.append(
                "Lists are incomplete: a person who is alone in both may not be alone in the population, "
                "so this overstates the risk."
            )
        else:
            known.append(f"{self.overstated:,} more are alone in both, but not in the population.")
        return tuple(known)

    def spec(self) -> Spec:
        """Returns the shares of released rows that are confirmed and ambiguous, next to chance."""
        named = {} if self.right is None else {"named rightly": self.success}
        found = named | {"confirmed": self.confirmed / self.targets, "ambiguous": self.ambiguous / self.targets}
        shown = {name: wilson_interval(share, self.targets) for name, share in found.items()}
        return comparison_charts.rates(shown, {"chance": self.baseline}, headline=self.headline, across="released rows")


def compare(
    table: Any,
    named: Any,
    *,
    on: Sequence[str],
    sensitive: str,
    truth: str,
    k: int = 5,
    threshold: int = 5,
    epsilons: Sequence[check.Number] = (0.1, 1, 10),
    rounds: int = 10,
    bits: Bits | None = None,
) -> Comparison:
    """Looks named people up in several releases of a table and guesses their sensitive values.

    The releases are the rows, k-anonymous rows, counts without small ones, and private counts; see `compare_lookups`
    for the bound. Targets are the people on the list who are in the table.

    Args:
        table: the data themselves, one row a person.
        named: the list, one row a person.
        on: the columns that both have.
        sensitive: the column of the table that the list does not have.
        truth: the column of both that says who is who, used to keep score only.
        k: of the k-anonymous release.
        threshold: counts below it are left out of the release of counts.
        epsilons: of private releases; each is for the whole release, for adding or removing one row.
        rounds: how many private releases the rates are measured on, for each epsilon.
        bits: the source of randomness.
    """
    columns, others, names = columns_of(table), columns_of(named), _names(on)
    select_columns(columns, [*names, sensitive, truth], parameter="on")
    select_columns(others, [*names, truth], parameter="on")
    who = list_values(columns[truth])
    if len(set(who)) < len(who):
        hint = "Keep one row of each: the bound is for one row per person."
        raise InvalidParameter("truth", truth, "to name every person of the table once", hint)
    rows, targets = _same_people(columns[truth], others[truth])
    known = {name: others[name][targets] for name in names}
    people = people_of(columns, names, sensitive, known=known, own=rows)
    return compare_lookups(
        people, attack="Linkage", k=(k,), threshold=threshold, epsilons=epsilons, rounds=rounds, bits=bits
    )


@beside(compare)
def linkage(
    released: Any,
    named: Any,
    *,
    on: Sequence[str],
    population: Any = None,
    sensitive: str | None = None,
    truth: str | None = None,
) -> Linkage:
    """Joins a release without names with a list that has them.

    A match is confirmed only if no other row of the release and no one else on the list has the same values, and, where
    the population is given, exactly one person there has them. A missing value matches nothing.

    Args:
        released: the rows without names.
        named: the rows with names.
        on: the columns that both have.
        population: all people, if they are known: the same columns.
        sensitive: a column of the release; with it, values that all matching rows share are counted.
        truth: a column of both that says who is who, used to keep score only. With it, success is the share of
            released rows that get the right name, else the share that is confirmed.

    >>> ward = {"zip": ["02139", "94103"], "sex": ["F", "M"], "illness": ["flu", "none"]}
    >>> voters = {"zip": ["02139", "02138"], "sex": ["F", "F"], "name": ["Ada", "Grace"]}
    >>> found = linkage(ward, voters, on=["zip", "sex"], sensitive="illness")
    >>> [(ward["illness"][row], voters["name"][person]) for row, person in found.recovered]
    [('flu', 'Ada')]
    """
    names, left, right = _names(on), columns_of(released), columns_of(named)
    wanted = [name for name in (sensitive, truth) if name is not None]
    select_columns(left, [*names, *wanted], parameter="on")
    select_columns(right, [*names, *([truth] if truth else [])], parameter="on")
    tables = [left, right] if population is None else [left, right, columns_of(population)]
    place = _classify_rows(tables, names)
    counts = [np.bincount(part, minlength=max(int(p.max(initial=-1)) + 1 for p in place)) for part in place]
    both = (counts[0] == 1) & (counts[1] == 1)
    sure = both if population is None else both & (counts[2] == 1)
    pairs = _pairs(place, sure)
    rows, matched = len(place[0]), counts[0][counts[1] > 0].sum()
    if not rows or not len(place[1]):
        raise InvalidParameter("released", rows, "and the list to have rows", "Pass two tables with people in them.")
    hits = None if truth is None else left[truth][pairs[:, 0]] == right[truth][pairs[:, 1]]
    return Linkage(
        attack="Linkage",
        goal="released rows confirmed" if hits is None else "released rows named rightly",
        success=float((len(pairs) if hits is None else np.sum(hits)) / rows),
        baseline=_chance(left, right, truth),
        targets=rows,
        matches=int(counts[0] @ counts[1]),
        confirmed=len(pairs),
        ambiguous=int(matched - len(pairs)),
        overstated=None if population is None else int(np.sum(both) - len(pairs)),
        right=None if hits is None or not len(pairs) else float(np.mean(hits)),
        told=None if sensitive is None else _count_disclosed(place, counts[0], number_values(left[sensitive])),
        recovered=pairs,
    )


def _classify_rows(tables: list[Columns], names: list[str]) -> list[Codes]:
    """Returns the class of each row, numbered alike in all tables; one of missing values has rows of one table only."""
    for table in tables:
        select_columns(table, names, parameter="on")
    whole = [stack_columns([table[name] for table in tables]) for name in names]
    place, missing = (
        combine_codes([number_values(column) for column in whole]),
        np.any([_absent(column) for column in whole], axis=0),
    )
    sizes = [len(table[names[0]]) for table in tables]
    apart = place.max(initial=-1) + 1 + np.repeat(np.arange(len(tables)), sizes)  # a class of no other table
    return list(np.split(np.where(missing, apart, place), np.cumsum(sizes)[:-1]))


def _absent(column: Column) -> NDArray[np.bool_]:
    return np.array([value is None for value in column], dtype=np.bool_)


def _pairs(place: list[Codes], sure: NDArray[np.bool_]) -> Pairs:
    """Returns rows of the release and of the list in classes where both are alone."""
    row, person = (np.zeros(len(sure), dtype=np.intp) for _ in range(2))
    row[place[0]], person[place[1]] = np.arange(len(place[0])), np.arange(len(place[1]))
    classes = np.flatnonzero(sure)
    pairs = np.column_stack([row[classes], person[classes]])
    return np.asarray(pairs[np.argsort(pairs[:, 0])])


def _count_disclosed(place: list[Codes], counts: Codes, value: Codes) -> int:
    """Counts named people whose class in the release has one sensitive value only."""
    cells = np.unique(np.column_stack([place[0], value]), axis=0)
    kinds = np.bincount(cells[:, 0], minlength=len(counts))
    return int(np.sum(kinds[place[1]] == 1))


def _chance(left: Columns, right: Columns, truth: str | None) -> float:
    """Returns the share of rows that get the right name if each row is given a name of the list at random."""
    names = len(next(iter(right.values())))
    if truth is None:
        return 1 / names
    rows, _ = _same_people(left[truth], right[truth])
    return len(rows) / len(left[truth]) / names


def _same_people(left: NDArray[Any], right: NDArray[Any]) -> tuple[Codes, Codes]:
    """Returns places of people who are in both, each once."""
    first = {person: place for place, person in reversed(list(enumerate(list_values(left))))}
    found = {person: place for place, person in reversed(list(enumerate(list_values(right)))) if person in first}
    people = [person for person in first if person in found and person is not None]
    rows = np.array([first[person] for person in people], dtype=np.intp)
    order = np.argsort(rows)
    return rows[order], np.array([found[person] for person in people], dtype=np.intp)[order]


def _names(on: Sequence[str]) -> list[str]:
    return [on] if isinstance(on, str) else list(on)
