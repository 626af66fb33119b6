"""Somebody looks a person up in a release and guesses the sensitive value: one measure for all releases.

Rows, coarse rows, tables of counts with small ones left out and private tables of counts all tell, for the cell of a
person's quasi-identifiers, how many people there have which value. The guess is the likeliest value, and the share of
people for whom it is right can be compared between all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.ceiling import ceiling, compared
from discreet.attacks.coarsening import AS_IT_IS, Codes, Form, joined, k_anonymised, numbered
from discreet.attacks.tables import Columns
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of
from discreet.report.finding import Comparison, Finding, Trial
from discreet.report.words import rate

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

TIES = 0.5  # of the prior in whole counts: it decides between equal ones only


@dataclass(frozen=True, kw_only=True)
class Told(Finding):
    """How many people's sensitive values somebody tells rightly who looks them up.

    Attributes:
        without: the share told rightly by the same guess if the release is made without the person's own row. It
            follows from statistics about others: no release that is of any use can prevent it.
        cells: how many cells the release has people in, or would without noise.
    """

    without: float
    cells: int

    def details(self) -> tuple[str, ...]:
        """What is told about people who are not in the data."""
        return (f"The same guess is right for {rate(self.without)} of people whose row is left out.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Those whose rows are released, and those who are looked up among them.

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
        """The share of each value, which everybody knows."""
        return np.bincount(self.value, minlength=self.values) / self.rows

    def placed(self, form: dict[str, Form]) -> tuple[Codes, Codes]:
        """The cell of each row, and the cell that each target is looked up in, with columns in these forms."""
        coarse = [numbered(form.get(name, AS_IT_IS).applied(column)) for name, column in self.quasi.items()]
        place = joined(coarse)
        return place[: self.rows], place[self.rows :]

    def counted(self, place: Codes, cells: int) -> Counts:
        """How many rows there are by cell and value."""
        flat = np.bincount(place * self.values + self.value, minlength=cells * self.values)
        return flat.reshape(cells, self.values)


def people_of(columns: Columns, quasi: Sequence[str], sensitive: str, *, known: Columns, own: Codes) -> People:
    """People from the columns of a table.

    Args:
        columns: of the table that is released.
        quasi: names of quasi-identifiers.
        sensitive: the name of the column that is guessed.
        known: what is known about targets, a row each.
        own: of each target, its row in the table.
    """
    if not len(own):
        raise InvalidParameter("targets", 0, "to be people of the table", "Look up people whose rows are released.")
    value = numbered(columns[sensitive])
    return People(
        quasi={name: np.concatenate([columns[name].astype(object), known[name].astype(object)]) for name in quasi},
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
    """The guess on the rows, on k-anonymous rows, on counts without small ones, and on private counts.

    Formal guarantee of the bound: a private release adds Laplace noise to the count of every cell of the public domain,
    all combinations of quasi-identifiers and sensitive values, and is epsilon-private for adding or removing one
    person's row. For one person, "the guess is right" is an event of the release (the prior is public), so that its
    probability is at most `ceiling(epsilon, b)`, where b is its probability on a release without that person's row.
    The ceiling is concave in b, hence the expected share of all people is at most the ceiling of the mean b (Jensen).
    That mean is `without`, measured on the same draws, or the baseline where that is more; the guess of the commonest
    value alone would not make a theorem of it, since others' rows tell something about a person too. Between the
    epsilons tried, the curve interpolates b.

    Cells that no target is looked up in are not drawn: their noise is independent, and nobody looks at it.
    """
    source, shares = source_of(bits), [check.positive(epsilon=epsilon) for epsilon in epsilons]
    check.integer(rounds=rounds, at_least=1)
    open_ones = (
        _plain(people, attack, "no defence", least=1),
        *(_anonymous(people, attack, least) for least in k),
        _plain(people, attack, f"counts below {threshold} left out", least=threshold),
    )
    private = [_private(people, attack, epsilon, rounds, source) for epsilon in sorted(shares)]
    places, rates = np.log([float(epsilon) for epsilon in sorted(shares)]), [free(found) for found in private]

    def bound(epsilon: float) -> float:
        return ceiling(epsilon, float(np.interp(np.log(epsilon), places, rates)))

    closed = [
        Trial(defence=f"epsilon {float(epsilon):g}", epsilon=float(epsilon), finding=found)
        for epsilon, found in zip(sorted(shares), private, strict=True)
    ]
    return compared([*open_ones, *closed], bound=bound)


def told(counts: NDArray[Any], people: People, own: Codes, look: Codes, *, weight: float) -> tuple[float, float]:
    """The share of targets whose value is guessed rightly, and the share without their own rows.

    Args:
        counts: released, by cell and value.
        people: targets among them.
        own: the cell that each target's row is in; -1 where the row is not released.
        look: the cell that each target is looked up in.
        weight: of the prior, in counts.
    """
    scores = counts[look] + weight * people.prior
    truth = people.value[people.own]
    right = np.mean(scores.argmax(axis=1) == truth)
    mine = np.flatnonzero(own == look)
    scores[mine, truth[mine]] -= 1
    return float(right), float(np.mean(scores.argmax(axis=1) == truth))


def shrinkage(epsilon: float) -> float:
    """How many counts the prior is worth beside noisy counts.

    The linear Bayes estimate of n p_v people with value v in a cell, from the noisy count y, weighs y with
    s / (s + 2 / epsilon^2) and the prior with the rest, for a variance s of n p (1 - p), at most n / 4. Up to a factor
    that is y + p_v 8 / epsilon^2, whatever n.
    """
    return 8 / epsilon**2


def free(finding: Told) -> float:
    """The rate that costs nobody's row anything: by the same guess without it, or by none."""
    return max(finding.without, finding.baseline)


def _plain(people: People, attack: str, defence: str, *, least: int) -> Trial:
    """Counts as they are, the smallest left out."""
    place, look, counts = _counted(people, {})
    shown = np.where(counts >= least, counts, 0)
    rates = told(shown, people, place[people.own], look, weight=TIES)
    return Trial(defence=defence, epsilon=None, finding=_found(people, attack, rates, shown))


def _anonymous(people: People, attack: str, k: int) -> Trial:
    table = {name: column[: people.rows] for name, column in people.quasi.items()}
    place, look, counts = _counted(people, k_anonymised(table, list(table), k=k).form)
    shown = np.where(counts.sum(axis=1, keepdims=True) >= k, counts, 0)
    rates = told(shown, people, place[people.own], look, weight=TIES)
    return Trial(defence=f"{k}-anonymous", epsilon=None, finding=_found(people, attack, rates, shown))


def _private(people: People, attack: str, epsilon: Fraction, rounds: int, bits: Bits) -> Told:
    place, look, counts = _counted(people, {})
    drawn, where = np.unique(look, return_inverse=True)
    own = np.where(place[people.own] == look, where, -1)
    mechanism, weight = Laplace(epsilon=epsilon, sensitivity=1), shrinkage(float(epsilon))
    found = [
        told(mechanism.release(counts[drawn], bits=bits), people, own, where, weight=weight) for _ in range(rounds)
    ]
    right, without = np.mean(found, axis=0)
    finding = _found(people, attack, (float(right), float(without)), counts)
    return replace(finding, bound=ceiling(float(epsilon), free(finding)))


def _counted(people: People, form: dict[str, Form]) -> tuple[Codes, Codes, Counts]:
    place, look = people.placed(form)
    return place, look, people.counted(place, int(max(place.max(), look.max())) + 1)


def _found(people: People, attack: str, rates: tuple[float, float], counts: Counts) -> Told:
    return Told(
        attack=attack,
        goal="sensitive values told rightly",
        success=rates[0],
        without=rates[1],
        baseline=float(np.mean(people.value[people.own] == people.prior.argmax())),
        targets=len(people.own),
        cells=int(np.count_nonzero(counts.sum(axis=1))),
    )
