"""The attacker looks a person up in a release and guesses the sensitive value: one measure for all releases.

Rows, coarse rows, tables of counts with small ones left out and private tables of counts all say, for the cell of a
person's quasi-identifiers, how many people there have which value. The guess is the likeliest value, and the share of
people for whom it is right can be compared between all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import ceiling, compare_trials
from discreet.attacks.linkage.attacker_tables import (
    AS_IT_IS,
    Coarsening,
    Codes,
    Columns,
    combine_codes,
    k_anonymised,
    number_values,
    stack_columns,
)
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of
from discreet.report.attack_finding import RAW, Comparison, Finding, Trial
from discreet.report.display import rate

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

TIES = 0.5  # of the prior in whole counts: it decides between equal ones only


@dataclass(frozen=True, kw_only=True)
class Disclosure(Finding):
    """Reports how many people's sensitive values a lookup guesses correctly.

    Attributes:
        without: the share that the same guess gets right if the release is made without the person's own row. It
            follows from statistics about others: no release that is of any use can prevent it.

    >>> from discreet.attacks import uniqueness
    >>> from discreet.noise import SeededBits
    >>> people = {"zip": [10, 10, 10, 20, 20, 21], "illness": ["flu", "flu", "flu", "asthma", "cancer", "cancer"]}
    >>> found = uniqueness.compare(people, ["zip"], sensitive="illness", bits=SeededBits(1)).raw
    >>> round(found.success, 2), round(found.without, 2)  # the three of zip code 10 are alike
    (0.83, 0.5)
    """

    without: float

    def details(self) -> tuple[str, ...]:
        """Returns how well the same guess works for people who are not in the data."""
        return (f"The same guess is right for {rate(self.without)} of people whose row is left out.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Holds the people whose rows are released, and the targets among them.

    Attributes:
        quasi: the quasi-identifiers, by name; rows of the table first, then what is known about targets.
        rows: how many rows are released.
        value: of each row, the number of its sensitive value.
        values: how many sensitive values there are.
        own: of each target, its row.
    """

    quasi: Columns
    rows: int
    value: Codes
    values: int
    own: Codes

    @property
    def prior(self) -> Floats:
        """Returns the share of each value, which is public."""
        return np.bincount(self.value, minlength=self.values) / self.rows

    def locate_cells(self, form: dict[str, Coarsening]) -> tuple[Codes, Codes]:
        """Returns the cell of each row, and the cell that each target is looked up in, with columns in these forms."""
        coarse = [number_values(form.get(name, AS_IT_IS).apply_to(column)) for name, column in self.quasi.items()]
        place = combine_codes(coarse)
        return place[: self.rows], place[self.rows :]

    def count_values(self, place: Codes, cells: int) -> Counts:
        """Returns how many rows there are by cell and value."""
        flat = np.bincount(place * self.values + self.value, minlength=cells * self.values)
        return flat.reshape(cells, self.values)


class TargetCells(NamedTuple):
    """Holds the cell of each target, its people by value, and those people without the target."""

    look: Codes
    rows: Counts
    others: Counts


def people_of(columns: Columns, quasi: Sequence[str], sensitive: str, *, known: Columns, own: Codes) -> People:
    """Returns the people in the columns of a table.

    Args:
        columns: of the table that is released.
        quasi: names of quasi-identifiers.
        sensitive: the name of the column that is guessed.
        known: what is known about targets, a row each.
        own: of each target, its row in the table.
    """
    if not len(own):
        raise InvalidParameter("targets", 0, "to be people of the table", "Look up people whose rows are released.")
    value = number_values(columns[sensitive])
    return People(
        quasi={name: stack_columns([columns[name], known[name]]) for name in quasi},
        rows=len(value),
        value=value,
        values=int(value.max()) + 1,
        own=own,
    )


def compare_lookups(
    people: People,
    *,
    attack: str,
    k: Sequence[int],
    threshold: int,
    epsilons: Sequence[check.Number],
    rounds: int,
    bits: Bits | None,
) -> Comparison:
    """Returns the guess on the rows, on k-anonymous rows, on counts without small ones, and on private counts.

    Formal guarantee of the bound: a private release adds Laplace noise to the count of every cell of the public domain,
    all combinations of quasi-identifiers and sensitive values, and is epsilon-private for adding or removing one
    person's row. For one person, "the guess is right" is an event of the release (the prior is public), so that its
    probability is at most `ceiling(epsilon, b)`, where b is its probability on a release without that person's row.
    The ceiling is concave in b, hence the expected share of all people is at most the ceiling of the mean b (Jensen).
    That mean is `without`, measured on the same draws, or the baseline where that is more; the guess of the commonest
    value alone would not make a theorem of it, since others' rows say something about a person too. Between the
    epsilons tried, the curve interpolates b.

    Two attackers try: one who trusts the stated noise and weighs counts with what is known beforehand, and one who
    takes counts at their word, and so notices where noise is missing. The better one is reported.

    Cells that no target is looked up in are not drawn: their noise is independent and never used.
    """
    source, shares = source_of(bits), [check.positive(epsilon=epsilon) for epsilon in epsilons]
    check.integer(rounds=rounds, at_least=1)
    found = _looked_up(people, {})
    open_ones = (
        _plain(people, attack, RAW, found, least=1),
        *(_anonymous(people, attack, least) for least in k),
        _plain(people, attack, f"counts below {threshold} left out", found, least=threshold),
    )
    private = [_private(people, attack, found, epsilon, rounds=rounds, bits=source) for epsilon in sorted(shares)]
    places, rates = np.log([float(epsilon) for epsilon in sorted(shares)]), [free(finding) for finding in private]

    def success_bound(epsilon: float) -> float:
        return ceiling(epsilon, float(np.interp(np.log(epsilon), places, rates)))

    closed = [
        Trial(defence=f"epsilon {float(epsilon):g}", epsilon=float(epsilon), finding=finding)
        for epsilon, finding in zip(sorted(shares), private, strict=True)
    ]
    return compare_trials([*open_ones, *closed], bound=success_bound)


def score_guesses(rows: NDArray[Any], others: NDArray[Any], people: People, *, weight: float) -> tuple[float, float]:
    """Returns the share of targets whose value is guessed rightly, and the share without their own rows.

    Args:
        rows: what is released about the cell of each target, by value.
        others: the same, had the target's row not been there.
        people: targets among them.
        weight: of the prior, in counts.
    """
    truth = people.value[people.own]
    right, without = (np.mean((part + weight * people.prior).argmax(axis=1) == truth) for part in (rows, others))
    return float(right), float(without)


def shrinkage(epsilon: float) -> float:
    """Returns how many counts the prior is worth next to noisy counts.

    The linear Bayes estimate of n p_v people with value v in a cell, from the noisy count y, weighs y with
    s / (s + 2 / epsilon^2) and the prior with the rest, for a variance s of n p (1 - p), at most n / 4. Up to a factor
    that is y + p_v 8 / epsilon^2, whatever n.
    """
    return 8 / epsilon**2


def free(finding: Disclosure) -> float:
    """Returns the rate without any use of a target's own row: by the same guess without it, or by none."""
    return max(finding.without, finding.baseline)


def _plain(people: People, attack: str, defence: str, found: TargetCells, *, least: int) -> Trial:
    """Counts as they are, the smallest left out."""
    shown, left = (np.where(part >= least, part, 0) for part in (found.rows, found.others))
    rates = score_guesses(shown, left, people, weight=TIES)
    return Trial(defence=defence, epsilon=None, finding=_make_disclosure(people, attack, rates))


def _anonymous(people: People, attack: str, k: int) -> Trial:
    table = {name: column[: people.rows] for name, column in people.quasi.items()}
    found = _looked_up(people, k_anonymised(table, list(table), k=k).form)
    shown, left = (np.where(part.sum(axis=1, keepdims=True) >= k, part, 0) for part in (found.rows, found.others))
    rates = score_guesses(shown, left, people, weight=TIES)
    return Trial(defence=f"{k}-anonymous", epsilon=None, finding=_make_disclosure(people, attack, rates))


def _private(
    people: People, attack: str, found: TargetCells, epsilon: Fraction, *, rounds: int, bits: Bits
) -> Disclosure:
    _, first, where = np.unique(found.look, return_index=True, return_inverse=True)
    mechanism, weights = Laplace(epsilon=epsilon, sensitivity=1), (shrinkage(float(epsilon)), TIES)
    rates = []
    for _ in range(rounds):
        released = mechanism.release(found.rows[first], bits=bits)[where]
        left = released - (found.rows - found.others)
        rates.append([score_guesses(released, left, people, weight=weight) for weight in weights])
    right, without = max(np.mean(rates, axis=0).tolist())
    finding = _make_disclosure(people, attack, (right, without))
    return replace(finding, bound=ceiling(float(epsilon), free(finding)))


def _looked_up(people: People, form: dict[str, Coarsening]) -> TargetCells:
    place, look = people.locate_cells(form)
    counts = people.count_values(place, int(max(place.max(), look.max())) + 1)
    rows = counts[look]
    others, mine = rows.copy(), np.flatnonzero(place[people.own] == look)
    others[mine, people.value[people.own[mine]]] -= 1
    return TargetCells(look, rows, others)


def _make_disclosure(people: People, attack: str, rates: tuple[float, float]) -> Disclosure:
    return Disclosure(
        attack=attack,
        goal="sensitive values guessed correctly",
        success=rates[0],
        without=rates[1],
        baseline=float(np.mean(people.value[people.own] == people.prior.argmax())),
        targets=len(people.own),
    )
