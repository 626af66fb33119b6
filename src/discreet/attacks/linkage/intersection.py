"""Two releases about the same people, each safe alone, can reveal a value together.

Two holders publish, each about its own people, of whom some are in both; guesses are made from both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside, ceiling, compare_trials
from discreet.attacks.linkage.attacker_tables import (
    AS_IT_IS,
    Coarsening,
    Codes,
    Columns,
    columns_of,
    combine_codes,
    k_anonymised,
    list_values,
    number_values,
    select_columns,
)
from discreet.attacks.linkage.attribute_disclosure import TIES, Disclosure, free
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of
from discreet.noise.experiment import uniforms
from discreet.report.attack_finding import RAW, Comparison, Finding, Trial
from discreet.report.display import rate

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_TIES = 1e-9  # of the prior next to shares


@dataclass(frozen=True, slots=True)
class ReleasePair:
    """Holds people, and which of two releases each one is in.

    Attributes:
        quasi: what is known about each person.
        value: the number of each person's sensitive value.
        halves: who is in the first release, and who in the second.
    """

    quasi: Columns
    value: Codes
    halves: tuple[NDArray[np.bool_], NDArray[np.bool_]]

    @property
    def targets(self) -> Codes:
        """Returns the people who are in both."""
        return np.flatnonzero(self.halves[0] & self.halves[1])

    @property
    def prior(self) -> Floats:
        """Returns the share of each value, which is public."""
        return np.bincount(self.value) / len(self.value)

    def overlaid(self, k: int, *, holders: tuple[int, ...] = (0, 1)) -> Disclosure:
        """Returns the guess from k-anonymous releases of these holders; k = 1 means rows as they are."""
        rows = [self._rows(self.halves[holder], k, holder) for holder in holders]
        truth = self.value[self.targets]
        others = [part - np.eye(len(self.prior), dtype=np.int64)[truth] for part in rows]
        right, without = (np.mean(self._overlay(parts, k).argmax(axis=1) == truth) for parts in (rows, others))
        return self._build_disclosure(float(right), float(without))

    def private(self, epsilon: Fraction, rounds: int, bits: Bits) -> Disclosure:
        """Returns the guess from the sum of two private tables of counts, each with half of epsilon.

        Of two attackers, the better one counts. A target has a row in each table, and adds two to the sum.
        """
        place, truth = self._locate_cells({}), self.value[self.targets]
        drawn, look = np.unique(place[self.targets], return_inverse=True)
        counts = [self._count_values(place, half)[drawn] for half in self.halves]
        mechanism, own = Laplace(epsilon=epsilon / 2, sensitivity=1), np.eye(len(self.prior), dtype=np.int64)[truth]
        found = []
        for _ in range(rounds):
            noisy = sum(mechanism.release(part, bits=bits) for part in counts)[look]
            found.append([self._score_guesses(noisy, 2 * own, weight) for weight in (shrinkage(float(epsilon)), TIES)])
        right, without = max(np.mean(found, axis=0).tolist())
        finding = self._build_disclosure(right, without)
        return replace(finding, bound=ceiling(float(epsilon), free(finding)))

    def _score_guesses(self, noisy: Counts, own: Counts, weight: float) -> tuple[float, float]:
        """Returns the share of targets guessed correctly from counts, and the share from counts without the target."""
        truth = self.value[self.targets]
        right, without = (
            np.mean((part + weight * self.prior).argmax(axis=1) == truth) for part in (noisy, noisy - own)
        )
        return float(right), float(without)

    def _rows(self, half: NDArray[np.bool_], k: int, holder: int) -> Counts:
        """Returns values in each target's class of one half, as coarse as k asks; holders keep different columns."""
        table = {name: column[half] for name, column in self.quasi.items()}
        keep = list(table)[holder % len(table)]
        place = self._locate_cells({} if k == 1 else k_anonymised(table, list(table), k=k, keep=keep).form)
        return self._count_values(place, half)[place[self.targets]]

    def _overlay(self, rows: list[Counts], k: int) -> Floats:
        """Scores values: the prior, times how much likelier each is in every class; a class below k is left out."""
        scores = self.prior * np.ones((len(self.targets), 1))
        for counts in rows:
            sizes = counts.sum(axis=1, keepdims=True)
            scores = scores * np.where(sizes >= k, counts / np.maximum(sizes, 1) / self.prior, 1.0)
        return scores + _TIES * self.prior

    def _locate_cells(self, form: dict[str, Coarsening]) -> Codes:
        return combine_codes(
            [number_values(form.get(name, AS_IT_IS).apply_to(column)) for name, column in self.quasi.items()]
        )

    def _count_values(self, place: Codes, half: NDArray[np.bool_]) -> Counts:
        values, cells = len(self.prior), int(place.max()) + 1
        return np.bincount(place[half] * values + self.value[half], minlength=cells * values).reshape(cells, values)

    def _build_disclosure(self, right: float, without: float) -> Disclosure:
        return Disclosure(
            attack="Two releases",
            goal="sensitive values guessed correctly",
            success=right,
            without=without,
            baseline=float(np.mean(self.value[self.targets] == self.prior.argmax())),
            targets=len(self.targets),
        )


def shrinkage(epsilon: float) -> float:
    """Returns how many counts the prior is worth next to the sum of two noisy tables.

    As for one table, with a noise variance of 16 / epsilon^2 on the sum of two, in which n people in both count 2 n:
    the linear Bayes estimate is y + 2 p_v 16 / epsilon^2 up to a factor.
    """
    return 32 / epsilon**2


@dataclass(frozen=True, kw_only=True)
class Intersection(Finding):
    """Reports whose sensitive value follows from two releases together.

    Attributes:
        alone: the share of targets resolved by the first release alone, and by the second alone.
        left: how many values are left for a target on average.
        recovered: by person, the value, for those resolved.
    """

    alone: tuple[float, float]
    left: float
    recovered: dict[Any, Any]

    def details(self) -> tuple[str, ...]:
        """Returns how many targets each release resolves alone."""
        first, second = map(rate, self.alone)
        return (f"Alone they resolve {first} and {second}; together they leave {self.left:.2g} values on average.",)


def compare(
    table: Any,
    *,
    quasi: Sequence[str],
    sensitive: str,
    k: int = 5,
    common: float = 0.5,
    epsilons: Sequence[check.Number] = (0.1, 1, 10),
    rounds: int = 10,
    bits: Bits | None = None,
) -> Comparison:
    """Guesses the sensitive values of people who are in two releases, made by two holders who do not know each other.

    A share of the people is in both releases, the others in one of them, by coins. One holder keeps the first
    quasi-identifier as fine as k allows, the other the second. The attacker weighs values by how
    often they occur in the person's class of both releases; what occurs in one only is ruled out. Private releases are
    counts of all combinations of quasi-identifiers and values, each with half of epsilon, whose sum is looked up.

    Formal guarantee of the bound: each holder's counts are (epsilon / 2)-private for adding or removing a person's row,
    so that both together are epsilon-private for a person who is in both (basic composition). "The guess is right" is
    an event of both, hence its rate at most the `ceiling` of its rate without the person's rows (measured, `without`,
    or the baseline where that is more), on average over people because the ceiling is concave.

    Args:
        table: the data themselves, one row a person.
        quasi: the columns that others may know.
        sensitive: the column that they would like to know.
        k: of the k-anonymous releases.
        common: the share of people who are in both.
        epsilons: of both private releases together.
        rounds: how many private releases the rates are measured on, for each epsilon.
        bits: the source of randomness.
    """
    source, shares = source_of(bits), sorted(check.positive(epsilon=epsilon) for epsilon in epsilons)
    columns, names = columns_of(table), [quasi] if isinstance(quasi, str) else list(quasi)
    select_columns(columns, [*names, sensitive], parameter="quasi")
    check.integer(rounds=rounds, at_least=1)
    coin = uniforms(len(columns[sensitive]), bits=source)
    both = float(check.probability(common=common))
    halves = (coin < (1 + both) / 2, coin >= (1 - both) / 2)
    pair = ReleasePair({name: columns[name] for name in names}, number_values(columns[sensitive]), halves)
    if not len(pair.targets):
        raise InvalidParameter(
            "common", common, "to leave people in both releases", "Pass more people, or a larger share."
        )
    better = max((pair.overlaid(k, holders=(holder,)) for holder in (0, 1)), key=lambda found: found.success)
    open_ones = [
        Trial(defence=RAW, epsilon=None, finding=pair.overlaid(1)),
        Trial(defence=f"{k}-anonymous, one", epsilon=None, finding=better),
        Trial(defence=f"{k}-anonymous, both", epsilon=None, finding=pair.overlaid(k)),
    ]
    private = [pair.private(epsilon, rounds, source) for epsilon in shares]
    places, rates = np.log([float(epsilon) for epsilon in shares]), [free(found) for found in private]
    closed = [
        Trial(defence=f"epsilon {float(epsilon):g}", epsilon=float(epsilon), finding=found)
        for epsilon, found in zip(shares, private, strict=True)
    ]

    def success_bound(epsilon: float) -> float:
        return ceiling(epsilon, float(np.interp(np.log(epsilon), places, rates)))

    return compare_trials([*open_ones, *closed], bound=success_bound)


@beside(compare)
def intersection(release_a: Any, release_b: Any, *, on: Sequence[str], sensitive: str, person: str) -> Intersection:
    """Returns the share of people whose sensitive value is the only one in their classes of both releases.

    The value of a person who is in both releases is in both classes; if the two have one value in common, that is it
    (Ganta, Kasiviswanathan, Smith 2008).

    Args:
        release_a: rows with coarse quasi-identifiers.
        release_b: rows of another release, coarse in a way of its own.
        on: the columns that make classes, in both.
        sensitive: the column that is to stay unknown, in both.
        person: a column of both that says who is who, in the place of looking a target up by what is known about them.
            Targets are the people who are in both.

    >>> a = {"who": [1, 2, 3], "zip": ["021"] * 3, "illness": ["flu", "hiv", "flu"]}
    >>> b = {"who": [2, 4], "zip": ["02"] * 2, "illness": ["hiv", "cancer"]}
    >>> intersection(a, b, on=["zip"], sensitive="illness", person="who").recovered
    {2: 'hiv'}
    """
    names = [on] if isinstance(on, str) else list(on)
    tables = [columns_of(release_a), columns_of(release_b)]
    for columns in tables:
        select_columns(columns, [*names, sensitive, person], parameter="on")
    seen = [_collect_class_values(columns, names, sensitive, person) for columns in tables]
    people = [who for who in seen[0] if who in seen[1]]
    if not people:
        raise InvalidParameter(
            "person", person, "to name people who are in both releases", "Pass releases that overlap."
        )
    truth = dict(zip(list_values(tables[0][person]), list_values(tables[0][sensitive]), strict=True))
    common = {who: seen[0][who] & seen[1][who] for who in people}
    resolved = {who: next(iter(values)) for who, values in common.items() if len(values) == 1}
    values = {value for columns in tables for value in list_values(columns[sensitive])}
    return Intersection(
        attack="Intersection",
        goal="people's values revealed by two releases together",
        success=sum(truth[who] == value for who, value in resolved.items()) / len(people),
        baseline=float(len(values) == 1),
        targets=len(people),
        alone=(_resolved_share(seen[0], people), _resolved_share(seen[1], people)),
        left=float(np.mean([len(values) for values in common.values()])),
        recovered=resolved,
    )


def _collect_class_values(columns: Columns, names: list[str], sensitive: str, person: str) -> dict[Any, frozenset[Any]]:
    """Returns, for each person, the sensitive values in their class."""
    place = combine_codes([number_values(columns[name]) for name in names])
    values: dict[int, set[Any]] = {}
    for number, value in zip(place.tolist(), list_values(columns[sensitive]), strict=True):
        values.setdefault(number, set()).add(value)
    classes = {number: frozenset(found) for number, found in values.items()}
    return {who: classes[number] for who, number in zip(list_values(columns[person]), place.tolist(), strict=True)}


def _resolved_share(seen: dict[Any, frozenset[Any]], people: list[Any]) -> float:
    return sum(len(seen[who]) == 1 for who in people) / len(people)
