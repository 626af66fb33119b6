"""Two holders' releases about people of whom some are in both, and guesses from both together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.ceiling import ceiling
from discreet.attacks.linkage.attribute_disclosure import TIES, Told, free
from discreet.attacks.linkage.generalization import AS_IT_IS, Codes, Form, joined, k_anonymised, numbered
from discreet.attacks.tables import Columns
from discreet.mechanisms import Laplace
from discreet.noise import Bits

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_TIES = 1e-9  # of the prior beside shares


@dataclass(frozen=True, slots=True)
class Pair:
    """People, and who of them is in which of two releases.

    Attributes:
        quasi: what is known about everybody.
        value: the number of everybody's sensitive value.
        halves: who is in the first release, and who in the second.
    """

    quasi: Columns
    value: Codes
    halves: tuple[NDArray[np.bool_], NDArray[np.bool_]]

    @property
    def targets(self) -> Codes:
        """People who are in both."""
        return np.flatnonzero(self.halves[0] & self.halves[1])

    @property
    def prior(self) -> Floats:
        """The share of each value, which everybody knows."""
        return np.bincount(self.value) / len(self.value)

    def overlaid(self, k: int, *, holders: tuple[int, ...] = (0, 1)) -> Told:
        """The guess from k-anonymous releases of these holders; k = 1 means rows as they are."""
        rows = [self._rows(self.halves[holder], k, holder) for holder in holders]
        truth = self.value[self.targets]
        others = [part - np.eye(len(self.prior), dtype=np.int64)[truth] for part in rows]
        right, without = (np.mean(self._overlay(parts, k).argmax(axis=1) == truth) for parts in (rows, others))
        return self._found(float(right), float(without))

    def private(self, epsilon: Fraction, rounds: int, bits: Bits) -> Told:
        """The guess from the sum of two private tables of counts, each with half of epsilon, by the better attacker.

        A target has a row in each table, and adds two to the sum.
        """
        place, truth = self._placed({}), self.value[self.targets]
        drawn, look = np.unique(place[self.targets], return_inverse=True)
        counts = [self._counted(place, half)[drawn] for half in self.halves]
        mechanism, own = Laplace(epsilon=epsilon / 2, sensitivity=1), np.eye(len(self.prior), dtype=np.int64)[truth]
        found = []
        for _ in range(rounds):
            noisy = sum(mechanism.release(part, bits=bits) for part in counts)[look]
            found.append([self._told(noisy, 2 * own, weight) for weight in (shrinkage(float(epsilon)), TIES)])
        right, without = max(np.mean(found, axis=0).tolist())
        finding = self._found(right, without)
        return replace(finding, bound=ceiling(float(epsilon), free(finding)))

    def _told(self, noisy: Counts, own: Counts, weight: float) -> tuple[float, float]:
        """The share of targets told rightly from counts, and the share without what the target added to them."""
        truth = self.value[self.targets]
        right, without = (
            np.mean((part + weight * self.prior).argmax(axis=1) == truth) for part in (noisy, noisy - own)
        )
        return float(right), float(without)

    def _rows(self, half: NDArray[np.bool_], k: int, holder: int) -> Counts:
        """For each target, the values in its class of one half, as coarse as k asks; holders keep different columns."""
        table = {name: column[half] for name, column in self.quasi.items()}
        keep = list(table)[holder % len(table)]
        place = self._placed({} if k == 1 else k_anonymised(table, list(table), k=k, keep=keep).form)
        return self._counted(place, half)[place[self.targets]]

    def _overlay(self, rows: list[Counts], k: int) -> Floats:
        """Scores of values: the prior, times how much likelier each is in every class; one below k is left out."""
        scores = self.prior * np.ones((len(self.targets), 1))
        for counts in rows:
            sizes = counts.sum(axis=1, keepdims=True)
            scores = scores * np.where(sizes >= k, counts / np.maximum(sizes, 1) / self.prior, 1.0)
        return scores + _TIES * self.prior

    def _placed(self, form: dict[str, Form]) -> Codes:
        return joined([numbered(form.get(name, AS_IT_IS).applied(column)) for name, column in self.quasi.items()])

    def _counted(self, place: Codes, half: NDArray[np.bool_]) -> Counts:
        values, cells = len(self.prior), int(place.max()) + 1
        return np.bincount(place[half] * values + self.value[half], minlength=cells * values).reshape(cells, values)

    def _found(self, right: float, without: float) -> Told:
        return Told(
            attack="Two releases",
            goal="sensitive values told rightly",
            success=right,
            without=without,
            baseline=float(np.mean(self.value[self.targets] == self.prior.argmax())),
            targets=len(self.targets),
        )


def shrinkage(epsilon: float) -> float:
    """How many counts the prior is worth beside the sum of two noisy tables.

    As for one table, with a noise variance of 16 / epsilon^2 on the sum of two, in which n people in both count 2 n:
    the linear Bayes estimate is y + 2 p_v 16 / epsilon^2 up to a factor.
    """
    return 32 / epsilon**2
