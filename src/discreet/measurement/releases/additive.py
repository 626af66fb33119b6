"""Noise on the statistics of one form: what it is and what it costs.

Every exact integer that leaves an engine meets its noise in `Measure.release` and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.exact import root_above
from discreet.measurement.aggregates import Form
from discreet.mechanisms.base import Law
from discreet.noise import Bits, discrete_gaussian, discrete_laplace
from discreet.plan.analysis.stability import Contribution
from discreet.privacy import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Integer noise for every statistic of a form, in all groups at once.

    Formal guarantee: whatever the data, releasing the noisy statistics of all groups is described by `event`, under the
    relation and the limits of the contribution it was built for.

    Args:
        form: the statistics and how far a row moves them.
        law: discrete Laplace or discrete Gaussian.
        scales: of the noise of each statistic, its scale or its sigma, in steps.
        event: what it costs.
    """

    form: Form
    law: Law
    scales: tuple[Fraction, ...]
    event: events.Event

    @classmethod
    def laplace(cls, form: Form, contribution: Contribution, epsilon: Fraction) -> Measure:
        """The same scale for all statistics of the form: how far one unit moves them in the L1 norm, over epsilon."""
        ones = [Fraction(1)] * len(form.statistics)
        moves = contribution.l1(form.corners, ones, once=form.once)
        event = events.DiscreteLaplace(scale=moves / epsilon, sensitivity=int(moves))
        return cls(form=form, law="laplace", scales=(event.scale,) * len(ones), event=event)

    @classmethod
    def gaussian(cls, form: Form, contribution: Contribution, rho: Fraction) -> Measure:
        """Sigmas in proportion to how far a row moves each statistic, such that the whole is rho-zCDP.

        With weights 1 / m_j for the largest move m_j of statistic j, let L be the square of the longest weighted move.
        Sigma_j = m_j sqrt(L / (2 rho)), rounded up, makes the longest move have the square 2 rho in units of the
        sigmas, which is rho-zCDP for independent discrete Gaussian noise (Canonne, Kamath, Steinke 2020, Theorem 14).
        """
        largest = [max(abs(corner[j]) for corner in form.corners) for j in range(len(form.statistics))]
        square = contribution.l2_squared(form.corners, [Fraction(1, m) for m in largest], once=form.once)
        sigma = root_above(square / (2 * rho))
        return cls(form=form, law="gaussian", scales=tuple(m * sigma for m in largest), event=events.Concentrated(rho))

    def rounded(self, exact: NDArray[np.object_]) -> NDArray[np.object_]:
        """What meets the noise: totals on the grid that the form says, one row for each group."""
        if not any(self.form.grains):
            return exact
        columns = [(exact[:, i] + (1 << grain >> 1)) >> grain for i, grain in enumerate(self.form.grains)]
        return np.stack(columns, axis=1)

    def release(self, exact: NDArray[np.object_], bits: Bits) -> NDArray[np.object_]:
        """Adds fresh noise to exact integers, one row for each group and one column for each statistic."""
        groups = exact.shape[0]
        columns = [_noise(self.law, scale, groups, bits) for scale in self.scales]
        return np.asarray(exact + np.stack(columns, axis=1), dtype=object)


def _noise(law: Law, scale: Fraction, size: int, bits: Bits) -> NDArray[np.object_]:
    if law == "laplace":
        return discrete_laplace(scale, size, bits=bits).astype(object)
    return discrete_gaussian(scale, size, bits=bits).astype(object)
