"""Whether the noise that was drawn is about as loud as the noise that was paid for: a coarse look, and it is cheap.

It finds noise that is missing, or several times too small or too large; `audit.distinguish` and `audit.exact` look
closer at one mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.audit.queries.recorder import Noise
from discreet.measurement.releases.additive import Law, Measure

SMALLEST = 2
"""The smallest scale that is looked at: below, most noise is zero and tells little."""

FALSE_ALARM = 1e-12
"""The chance that honest noise is called wrong."""


@dataclass
class Loudness:
    """The sum of |noise| in units of its mean, over so many draws."""

    total: float = 0.0
    count: int = 0

    def add(self, noise: Noise) -> None:
        """Listens to a release of statistics; others are not heard."""
        if not isinstance(noise.release, Measure):
            return
        for place, scale in enumerate(noise.release.scales):
            self.hear(noise.release.law, scale, [abs(row[place]) for row in noise.drawn])

    def hear(self, law: Law, scale: Fraction, sizes: Sequence[float]) -> None:
        """Listens to noise of a law and a scale: how large each draw was, in the steps of the scale."""
        if scale >= SMALLEST:
            self.total += sum(sizes) / mean_size(law, scale)
            self.count += len(sizes)

    @property
    def ratio(self) -> float:
        """How loud it was, 1 being what is to be expected."""
        return self.total / self.count if self.count else 1.0

    @property
    def chance(self) -> float:
        """A bound on the chance that honest noise is at least as far from what is to be expected, on its side.

        Chernoff: the mean of n exponential numbers of mean 1 is beyond r, on either side of 1, with a chance of at most
        e^(-n (r - 1 - log r)). Sizes of Gaussian noise are smaller than exponential ones in the convex order, as their
        hazard grows; those of Laplace noise on integers are larger by an eighth of the variance at scale 2 and less
        beyond, which leaves the exponent nine tenths of its size.
        """
        r = self.ratio
        if r <= 0:
            return 0.0 if self.count else 1.0
        return math.exp(-0.8 * self.count * (r - 1 - math.log(r)))

    @property
    def is_honest(self) -> bool:
        """Whether it may be noise of the right size."""
        return self.count == 0 or self.chance >= FALSE_ALARM


def mean_size(law: Law, scale: Fraction) -> float:
    """The mean of |X| for discrete Laplace noise; for Gaussian noise on integers, that of the continuous law.

    With q = e^(-1/b), P(X = k) = (1 - q) / (1 + q) q^|k| has the mean size 2 q / (1 - q^2), which is 1 / sinh(1/b).
    """
    if law == "laplace":
        return 1 / math.sinh(1 / float(scale))
    return float(scale) * math.sqrt(2 / math.pi)
