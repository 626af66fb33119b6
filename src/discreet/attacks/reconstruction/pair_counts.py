"""Exact counts of pairs give whole genomes away: a search over all tables of people that have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside, ceiling, compare_trials
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of
from discreet.report.attack_finding import RAW, Comparison, Finding, Trial

Integers = NDArray[np.int64]

MOST = 14  # people: every possible column of the table, 2^people, is tried at every site


@dataclass(frozen=True, kw_only=True)
class PairCountReconstruction(Finding):
    """Reports the tables of people that have the released counts.

    `recovered` is such a table, one row for each person in falling order: the counts do not say who is who. None if no
    table has these counts.

    Attributes:
        unique: whether no other table has them; False also if there is none.
    """

    unique: bool

    def details(self) -> tuple[str, ...]:
        """Returns whether the counts leave a choice."""
        if self.recovered is None:
            return ("No table has these counts.",)
        return ("No other table has these counts." if self.unique else "Other tables have these counts, too.",)


def compare(
    people: Any, *, epsilons: Iterable[float] = (0.1, 1, 10), rounding: int = 2, bits: Bits | None = None
) -> Comparison:
    """Compares the search on exact counts of pairs, on rounded ones, and on private ones.

    Formal guarantee of the private releases: a person adds at most 1 to each of the N(N+1)/2 counts of sites and of
    pairs, if added or removed and if replaced, so that Laplace noise for N(N+1)/2 makes all of them together
    epsilon-DP. The bound is about the event that a person's whole row is named, which without the person in the data
    has at most the baseline's probability if alleles are fair coins.

    Args:
        people: a table of zeros and ones, one row for each person.
        epsilons: each for all counts together.
        rounding: step of the rounded release.
        bits: source of randomness.
    """
    truth = _zeros_and_ones(people=people)
    counts, n, source = truth.T @ truth, len(truth), source_of(bits)
    step = check.integer(rounding=rounding, at_least=2)
    chosen = sorted(float(check.positive(epsilons=epsilon)) for epsilon in epsilons)
    chance = _chance(n, truth.shape[1])

    def trial(defence: str, released: Integers, epsilon: float | None = None) -> Trial:
        found = genotypes_from_pairs(released, n, truth=truth, epsilon=epsilon)
        return Trial(defence=defence, epsilon=epsilon, finding=found)

    trials = [trial(RAW, counts), trial(f"rounded to {step}", (counts + step // 2) // step * step)]
    trials += [trial(f"epsilon {epsilon:g}", _private(counts, epsilon, source), epsilon) for epsilon in chosen]
    return compare_trials(trials, bound=lambda epsilon: ceiling(epsilon, chance))


def _private(counts: Integers, epsilon: float, bits: Bits) -> Integers:
    upper = np.triu_indices(len(counts))
    noisy = Laplace(epsilon=epsilon, sensitivity=len(upper[0])).release(counts[upper], bits=bits)
    released = np.zeros_like(counts)
    released[upper] = noisy
    return np.asarray(np.triu(released) + np.triu(released, 1).T)


@beside(compare)
def genotypes_from_pairs(
    pairs: Any, n: int, *, truth: Any = None, epsilon: float | None = None
) -> PairCountReconstruction:
    """Finds the table of n people and N sites whose counts of ones, alone and in pairs, were released.

    Entry (i, j) of `pairs` is the number of people with a one at both sites, entry (i, i) at site i: the equations
    sum_k g_ki g_kj = c_ij for bits g (Wang, Li, Wang, Tang, Zhou 2009, Section 4). There are more pairs than unknown
    bits once N > 2n + 1, and then generally one solution, up to the order of people. The search adds a site at a time
    and takes people with equal rows in one order only, so that every solution is met once.

    Args:
        pairs: a symmetric matrix of whole numbers, sites by sites.
        n: people, at most 14.
        truth: the table itself, to keep score.
        epsilon: of the release of all counts, for the bound.

    Raises:
        InvalidParameter: if it is no such matrix.

    >>> people = [[1, 0, 1, 1, 0, 0], [0, 1, 1, 0, 1, 0]]
    >>> found = genotypes_from_pairs(np.array(people).T @ people, 2)
    >>> found.recovered.tolist(), found.unique
    ([[1, 0, 1, 1, 0, 0], [0, 1, 1, 0, 1, 0]], True)
    """
    counts, size = _counts(pairs), check.integer(n=n, at_least=1, at_most=MOST)
    known = None if truth is None else _zeros_and_ones(truth=truth)
    if known is not None and known.shape != (size, len(counts)):
        raise InvalidParameter("truth", known.shape, f"to be {size} people by {len(counts)} sites", "Pass it whole.")
    solutions = _tables(counts, size)
    first, second = next(solutions, None), next(solutions, None)
    against = known if known is not None else (first if second is None else second)
    chance = _chance(size, len(counts))
    return PairCountReconstruction(
        attack="Genomes from counts of pairs",
        goal="people whose every site is recovered",
        success=0.0 if first is None or against is None else _recovered_share(first, against),
        baseline=chance,
        targets=size,
        predicted=1.0 if len(counts) > 2 * size + 1 and epsilon is None else None,
        bound=None if epsilon is None else ceiling(epsilon, chance),
        recovered=first,
        unique=first is not None and second is None,
    )


def _chance(n: int, sites: int) -> float:
    """Returns at most the share of rows that n guesses of fair coins hit."""
    return min(1.0, n * 2.0**-sites)


def _tables(counts: Integers, n: int) -> Iterator[Integers]:
    """Returns all tables with these counts, rows in falling order, found site by site."""
    possible = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    possible = possible[np.isin(possible.sum(axis=1), np.diag(counts))]

    def extend_table(table: Integers) -> Iterator[Integers]:
        site = table.shape[1]
        if site == len(counts):
            yield table
            return
        fits = (possible @ table == counts[site, :site]).all(axis=1) & (possible.sum(axis=1) == counts[site, site])
        same = (table[1:] == table[:-1]).all(axis=1)  # people who are equal so far: ones come first among them
        falling = (possible[:, :-1] >= possible[:, 1:])[:, same].all(axis=1)
        for column in possible[fits & falling]:
            yield from extend_table(np.column_stack([table, column]))

    return extend_table(np.zeros((n, 0), dtype=np.int64))


def _recovered_share(found: Integers, truth: Integers) -> float:
    """Returns the share of people whose row was found, whatever the order."""
    ours, theirs = (Counter(map(tuple, table.tolist())) for table in (found, truth))
    return sum((ours & theirs).values()) / len(truth)


def _counts(pairs: Any) -> Integers:
    found = np.asarray(pairs)
    if found.dtype.kind not in "iu" or found.ndim != 2 or not found.size or not np.array_equal(found, found.T):
        hint = "Entry (i, j) counts people with a one at both sites."
        raise InvalidParameter("pairs", found.shape, "to be a symmetric matrix of whole numbers", hint)
    return found.astype(np.int64)


def _zeros_and_ones(**parameter: Any) -> Integers:
    ((name, values),) = parameter.items()
    found = np.asarray(values)
    if found.ndim != 2 or not found.size or not np.isin(found, (0, 1)).all():
        raise InvalidParameter(name, found.shape, "to be a table of zeros and ones", "One row for each person.")
    return found.astype(np.int64)
