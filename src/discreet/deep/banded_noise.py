"""Noise that is correlated between steps, so that much of it cancels in the weights, and who may be in which step.

Notation: x_t the sum of clipped gradients of step t, C the lower-triangular matrix with c_0 = 1 > c_1 >= c_2 ... on its
first b diagonals and zeros below, z independent normal noise. What is released is y = C x + z, step by step. From
it, in floats and as post-processing, follow the gradients x^ = C^-1 y = x + C^-1 z that the optimizer is given. The
weights of SGD are running sums of these, in which the noise of neighbouring steps nearly cancels.

*Who is in a step.* When a loop begins, every example is put into one of b parts by a fair draw of its own; step t
takes examples of part t mod b only, each by a coin of probability b q, where q is the rate of a run without bands. The
draw stays secret and does not look at other examples, so that one example more or less moves no other one to another
part, which a rule by places in the data would do.

*Theorem.* With sigma = noise_multiplier * clip * ||c|| all steps together are dominated by ceil(steps / b)
Poisson-sampled Gaussians of probability b q and this noise multiplier (Choquette-Choo, Ganesh, McKenna, McMahan, Rush,
Thakurta, Xu 2023). *Proof.* Let an example be added, and fix its part, k, and all draws of the others, which have the
same law on both sides; mixing over them afterwards makes nothing worse. It can be in the steps k, k + b, k + 2b, ...
only. Its gradient m in one of them, a function of the weights and so of earlier y, moves y in this step and the b - 1
that follow by (c_0 m, ..., c_(b-1) m), and in no other: the windows of its steps do not meet. Given all y before a
window, the y of the window are that vector, if the coin falls so, plus what others add, plus noise. What others add is
a function of earlier y. Subtracting it, y by y, is a bijection, which leaves a mixture of N(0, sigma^2 I) and the same
law moved by a vector that is known before the window, of a norm of at most ||c|| clip. So each window is one
Poisson-sampled Gaussian, whatever came before it, and at most ceil(steps / b) windows begin in any part. *QED*

*Floats.* C has entries in steps of 2^-12. Where gradients lie on a grid (`physical_batch=1`), C x is exact in 64 bits
as long as n b sqrt(d) < 2^35 for n examples in a batch and d parameters, and the noise is exact as always: nothing is
assumed. Otherwise its rounding, of 2^-52 of the sums, is far below what is assumed there anyway. Adding C^-1 z to x
instead would leave the same law on paper, and in floats would prove nothing.

*Interruptions.* The last b - 1 sums x, without noise, are needed for the next step. They are private and are kept in
memory only, never in a checkpoint. Each loop, and so a run that was killed and goes on, draws new parts and begins
a new C at the next multiple of b steps; steps up to there count as taken. So does a loop that goes on after a step
that was not released. Windows then do not meet either, and the theorem holds for the whole run with the same number of
windows.

*Which C.* The coefficients of (1 - z)^-p, cut off: p = 1/2 is the square root of the running sum, and p = 1 the running
sum itself. The p is found that makes the mean variance of running sums least, over steps that are public; for up to
16 bands it is within a thousandth of the best C of its kind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from torch import Tensor

from discreet import check
from discreet.errors import InvalidParameter
from discreet.exact import root_above
from discreet.mechanisms.strategy import inverse_series, power_series
from discreet.privacy.events import Composed, Event, Gaussian, PoissonSampled, Repeated

_BITS = 12  # of the entries of C
_MOST_BANDS = 1 << 10
_LONGEST = 1 << 14  # steps over which p is looked for
_POWERS = [power / 64 for power in range(32, 64)]


@dataclass(frozen=True, slots=True)
class Band:
    """Holds the matrix C, by its first column.

    Args:
        column: c in steps of 2^-12; the first is 2^12, and they do not increase.
    """

    column: tuple[int, ...]

    @property
    def sensitivity(self) -> Fraction:
        """Returns ||c||, rounded up: how far C x moves if one sum moves by 1; of the rounded c, in integers."""
        return root_above(Fraction(sum(c * c for c in self.column), 1 << (2 * _BITS)))

    def error(self, steps: int) -> float:
        """Returns the deviation of the noise in running sums, root mean square, for noise of the sensitivity's size."""
        column = np.zeros(max(steps, len(self.column)))
        column[: len(self.column)] = np.ldexp(self.column, -_BITS)
        weights = np.cumsum(inverse_series(column[:steps]))
        return float(self.sensitivity) * float(np.sqrt(np.mean(np.cumsum(weights**2))))


ALONE = Band((1 << _BITS,))
"""Noise that is not correlated."""


@dataclass(frozen=True, slots=True)
class BandedNoise:
    """Noise of a training run that is correlated over so many steps; 1 is independent noise.

    More bands cancel more noise and lose more of what sampling hides; `bands = size / batch_size` hides nothing, and
    uses each example once in an epoch. A few bands pay where epsilon is large for the number of epochs; `error` shows
    whether.

    Args:
        bands: b; at most size / batch_size.

    Raises:
        InvalidParameter: if it is below 1 or above 1024.

    >>> noise = BandedNoise(bands=4)
    >>> noise.band(steps=2000).column, round(noise.band(steps=2000).error(2000), 1)
    ((4096, 3584, 3360, 3220), 16.0)
    >>> round(BandedNoise().band(steps=2000).error(2000), 1)
    31.6
    """

    bands: int = 1

    def __post_init__(self) -> None:
        check.integer(bands=self.bands, at_least=1, at_most=_MOST_BANDS)

    def band(self, steps: int) -> Band:
        """Returns the matrix C for so many steps, the best of its kind."""
        return _band(self.bands, min(steps, _LONGEST))

    def whole(self, steps: int) -> int:
        """Returns so many steps, or the next multiple of the bands."""
        return -(-steps // self.bands) * self.bands

    def probability(self, rate: Fraction) -> Fraction:
        """Returns the probability with which an example of the step's part enters, for a rate over all steps.

        Raises:
            InvalidParameter: if it is above 1.
        """
        if rate * self.bands > 1:
            hint = f"A batch is drawn from one part of the data: pass at most {int(1 / rate)}."
            raise InvalidParameter("bands", self.bands, "to be at most size / batch_size", hint)
        return rate * self.bands

    def event(self, rate: Fraction, noise_multiplier: Fraction, steps: int) -> Event:
        """Returns what so many steps release, by the theorem of this module."""
        if steps == 0:
            return Composed([])
        windows = self.whole(steps) // self.bands
        return Repeated(PoissonSampled(self.probability(rate), Gaussian(noise_multiplier)), windows)


@lru_cache(maxsize=16)
def _band(bands: int, steps: int) -> Band:
    if bands == 1:
        return ALONE
    found = [Band(tuple(np.rint(np.ldexp(power_series(p, bands), _BITS)).astype(int).tolist())) for p in _POWERS]
    return min(found, key=lambda band: band.error(steps))


class CorrelatedNoiseState:
    """The state of correlated noise on its way: the last sums, which are private, and what was made of their releases.

    Args:
        band: how it is correlated.
    """

    def __init__(self, band: Band) -> None:
        self._weights = [c / (1 << _BITS) for c in band.column[1:]]
        self.begin()

    def begin(self) -> None:
        """Begins a new matrix C: nothing that follows depends on sums before."""
        self._sums: deque[Tensor] = deque(maxlen=len(self._weights))
        self._solved: deque[Tensor] = deque(maxlen=len(self._weights))

    def encode(self, total: Tensor) -> Tensor:
        """Takes the next x_t, and returns the next entry of C x, to which noise is added."""
        entry = self._mix_entries(total, self._sums, 1.0)
        if self._weights:
            self._sums.appendleft(total.clone())  # the caller may reuse its memory
        return entry

    def decode(self, noisy: Tensor) -> Tensor:
        """Takes the next y_t, and returns the next entry of C^-1 y."""
        entry = self._mix_entries(noisy, self._solved, -1.0)
        self._solved.appendleft(entry)
        return entry

    def _mix_entries(self, newest: Tensor, before: Iterable[Tensor], sign: float) -> Tensor:
        entry = newest
        for weight, older in zip(self._weights, before, strict=False):
            entry = entry + older * (sign * weight)
        return entry
