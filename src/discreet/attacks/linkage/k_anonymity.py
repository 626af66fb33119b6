"""k-anonymity and its descendants, measured: what a table without names still reveals.

Sweeney 2002 (k-anonymity), Machanavajjhala et al. 2006 (l-diversity), Li, Li, Venkatasubramanian 2007 (t-closeness).
All of them are properties of a table, and none bounds what an attacker with other knowledge learns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside
from discreet.attacks.linkage.attacker_tables import (
    Column,
    columns_of,
    combine_codes,
    list_values,
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

Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Anonymity(Finding):
    """Describes what classes of people with equal quasi-identifiers reveal about a sensitive value.

    Attributes:
        k: how many people the smallest class has.
        distinct_l: how many values the least diverse class has.
        entropy_l: the exponential of the least entropy of a class.
        t: the largest distance between a class and the whole table.
        distances: the distance of each class.
        classes: the quasi-identifiers of each class.
        values: the sensitive values, in their order where they have one.
        counts: people by class and value.
    """

    k: int
    distinct_l: int
    entropy_l: float
    t: float
    distances: tuple[float, ...] = field(repr=False)
    classes: tuple[tuple[Any, ...], ...] = field(repr=False)
    values: tuple[Any, ...]
    counts: Counts = field(repr=False, compare=False)

    def recursive(self, c: float, l: int) -> bool:  # noqa: E741 - the name the definition gives it
        """Returns whether the table is recursively (c, l)-diverse.

        In each class r_1 < c (r_l + r_(l+1) + ...), r falling.
        """
        return self.recursive_c(l) < c

    def recursive_c(self, l: int) -> float:  # noqa: E741 - the name the definition gives it
        """Returns the number that c must exceed for recursive (c, l)-diversity.

        Infinite if some class has fewer values.
        """
        depth = check.integer(l=l, at_least=1)
        falling = -np.sort(-self.counts, axis=1)
        rest = falling[:, depth - 1 :].sum(axis=1)
        return math.inf if np.any(rest == 0) else float(np.max(falling[:, 0] / rest))

    def ruling_out(self, *values: Any) -> float:
        """Returns the share of people whose value is certain for an attacker who can rule these values out.

        They can be ruled out only for people who do not have them; who is in a class of one value is certain anyway.

        Raises:
            InvalidParameter: if the table has no such value.
        """
        missing = [value for value in values if value not in self.values]
        if missing:
            raise InvalidParameter("values", missing, "to occur", f"The values are: {list(self.values)}.")
        left = np.array([value not in values for value in self.values])
        kinds = np.count_nonzero(self.counts, axis=1)
        open_ones = np.count_nonzero(self.counts[:, left], axis=1)
        known = self.counts[:, left].sum(axis=1) * (open_ones == 1) * (kinds > 1) + self.counts.sum(axis=1) * (
            kinds == 1
        )
        return float(known.sum() / self.targets)

    def ruling_out_any(self, number: int) -> float:
        """Returns the share of people whose value is certain for an attacker who can rule out so many values.

        The values that are ruled out are of the attacker's choice.
        """
        allowed = check.integer(number=number, at_least=0)
        kinds = np.count_nonzero(self.counts, axis=1)
        return float(self.counts[kinds <= allowed + 1].sum() / self.targets)

    def details(self) -> tuple[str, ...]:
        """Returns the figures of the family."""
        return (
            f"k = {self.k}, distinct l = {self.distinct_l}, entropy l = {self.entropy_l:.2f}, t = {self.t:.2f}.",
            f"An attacker who can rule out one value is certain about {rate(self.ruling_out_any(1))} of people.",
        )

    def spec(self) -> Spec:
        """Returns the share of people whose value is certain, by how many values can be ruled out."""
        reach = range(min(4, len(self.values)))
        found = {f"{number} ruled out": self.ruling_out_any(number) for number in reach}
        shown = {name: (share, share, share) for name, share in found.items()}
        return comparison_charts.rates(shown, {"chance": self.baseline}, headline=self.headline, across=self.goal)


def compare(
    table: Any,
    *,
    quasi: Sequence[str],
    sensitive: str,
    k: Sequence[int] = (5, 20),
    threshold: int = 5,
    epsilons: Sequence[check.Number] = (0.1, 1, 10),
    rounds: int = 10,
    bits: Bits | None = None,
) -> Comparison:
    """Looks each person up and guesses their sensitive value, in k-anonymous releases and in private ones.

    See `compare_lookups` for the releases and for the bound.

    Args:
        table: the data themselves, one row a person.
        quasi: the columns that others may know.
        sensitive: the column that they would like to know.
        k: of k-anonymous releases.
        threshold: counts below it are left out of the release of counts.
        epsilons: of private releases; each is for the whole release, for adding or removing one row.
        rounds: how many private releases the rates are measured on, for each epsilon.
        bits: the source of randomness.
    """
    columns, names = columns_of(table), [quasi] if isinstance(quasi, str) else list(quasi)
    select_columns(columns, [*names, sensitive], parameter="quasi")
    own = np.arange(len(columns[sensitive]))
    people = people_of(columns, names, sensitive, known=columns, own=own)
    return compare_lookups(
        people, attack="Looking people up", k=k, threshold=threshold, epsilons=epsilons, rounds=rounds, bits=bits
    )


@beside(compare)
def k_anonymity(
    table: Any, *, quasi: Sequence[str], sensitive: str, ordered: bool | Sequence[Any] = False
) -> Anonymity:
    """Measures what a table reveals although each person is hidden among k.

    Success is the share of people in classes where all have the same sensitive value: it is certain, whatever k.

    Args:
        table: a path, a frame, a mapping of columns or a list of rows; one row a person.
        quasi: the columns that make classes.
        sensitive: the column that is to stay unknown.
        ordered: whether sensitive values have an order, or that order; then t is the earth mover's distance over ranks,
            else the total variation distance.

    >>> illness = ["flu", "flu", "cancer", "flu", "hiv", "hiv", "cancer"]
    >>> found = k_anonymity({"area": list("AAABBBB"), "illness": illness}, quasi=["area"], sensitive="illness")
    >>> found.k, found.distinct_l, round(found.entropy_l, 4), round(found.t, 4)
    (3, 2, 1.8899, 0.2857)
    """
    names, columns = [quasi] if isinstance(quasi, str) else list(quasi), columns_of(table)
    parts = select_columns(columns, names, parameter="quasi")
    (secret,) = select_columns(columns, [sensitive], parameter="sensitive")
    if not len(secret):
        raise InvalidParameter("table", 0, "to have rows", "Pass a table with at least one person.")
    values = _values(secret, ordered)
    place = combine_codes([number_values(part) for part in parts])
    ranks = {value: rank for rank, value in enumerate(values)}
    code = np.array([ranks[value] for value in list_values(secret)])
    counts = np.bincount(place * len(values) + code, minlength=(place.max() + 1) * len(values)).reshape(-1, len(values))
    distances = _distances(counts, is_ordered=ordered is not False)
    _, first = np.unique(place, return_index=True)
    sizes, kinds = counts.sum(axis=1), np.count_nonzero(counts, axis=1)
    return Anonymity(
        attack="Homogeneity",
        goal=f"people whose {sensitive} is certain despite k = {sizes.min()}",
        success=float(sizes[kinds == 1].sum() / sizes.sum()),
        baseline=float(len(values) == 1),
        targets=len(secret),
        k=int(sizes.min()),
        distinct_l=int(kinds.min()),
        entropy_l=float(np.exp(_entropy(counts).min())),
        t=float(distances.max()),
        distances=tuple(distances.tolist()),
        classes=tuple(tuple(part[row] for part in parts) for row in first),
        values=values,
        counts=counts,
    )


def _values(secret: Column, ordered: bool | Sequence[Any]) -> tuple[Any, ...]:
    found = dict.fromkeys(list_values(secret))
    if ordered is False:
        return tuple(found)
    if ordered is True:
        try:
            return tuple(sorted(found))
        except TypeError:
            hint = "Pass the values in their order, the missing one included."
            raise InvalidParameter("ordered", ordered, "to be about values that can be sorted", hint) from None
    missing = [value for value in found if value not in ordered]
    if missing:
        raise InvalidParameter("ordered", missing, "to be in the order given", "List every sensitive value, in order.")
    return tuple(ordered)


def _entropy(counts: Counts) -> NDArray[np.float64]:
    shares = counts / counts.sum(axis=1, keepdims=True)
    logs = np.log(shares, out=np.zeros(shares.shape), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=1))


def _distances(counts: Counts, *, is_ordered: bool) -> NDArray[np.float64]:
    """Returns the distance of each class to the table: total variation, or the earth mover's over ranks from 0 to 1."""
    apart = counts / counts.sum(axis=1, keepdims=True) - counts.sum(axis=0) / counts.sum()
    if is_ordered:
        return np.asarray(np.abs(np.cumsum(apart, axis=1)).sum(axis=1) / max(1, counts.shape[1] - 1))
    return np.asarray(np.abs(apart).sum(axis=1) / 2)
