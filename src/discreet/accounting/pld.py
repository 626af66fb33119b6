"""The privacy-loss-distribution accountant: tight for any list of releases that was fixed beforehand.

Koskela, Jälkö, Honkela 2020; Gopi, Lee, Wutschitz 2021; Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022. Each event
is replaced by a dominating pair in either direction (a unit removed, a unit added), the losses are composed, and the
worse direction counts.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from discreet.accounting.composition import Terms, merged_gaussian
from discreet.accounting.loss_distributions.convolution import (
    Composition,
    GridLaw,
    View,
    compose,
    connect,
    direct_deltas,
    drift_of,
    log1p,
)
from discreet.accounting.loss_distributions.dominating_pairs import dominating
from discreet.accounting.loss_distributions.pairs import AtomicPair, DistributionPair, Floats, LeakyPair
from discreet.accounting.numerics import SLACK, safe, smallest, valley
from discreet.dataclass import dataclass
from discreet.errors import UnsupportedEvent
from discreet.exact import float_above
from discreet.privacy.events import Approx, Gaussian

_COARSE_CELLS = 2048  # of the first look, which only finds where to look closely
_TILTS = np.geomspace(1e-4, 1e6, 160)
_GENTLE = 8.0  # a tilt serves as well if its bound is within e^8 of the best: floats have e^36 to spare
_LOG_SIZES = (17, 19)  # of the transform
_POINTS = 40  # per standard deviation of one loss, if the size allows
_TAIL = 38.0  # e^-38 of the tilted law may fall outside the window
_UNLIKELY = 0.375  # of the window holds no answer, hardly ever: the tilted law has its centre there or a little below
_MARGIN = 25.0  # infinite losses may take e^-25 of delta
_LARGEST_GRID = 1 << 17  # points of one loss
_LARGEST_INDEX = 2.0**45  # of a grid point; beyond it floats do not tell neighbouring points apart
_TYPICAL = math.log(1e-3)
_SMALLEST = -690.0  # ln of the smallest delta that does not count as zero
_FAR = 2.0**64  # times where a loss has nearly all its mass: no finite loss lies beyond
METHOD = "PLD"
_HINT = "Floats do not resolve them; use basic composition, zCDP or RDP."

Weighted = Sequence[tuple[DistributionPair, int]]


@dataclass(frozen=True, slots=True, eq=False)
class _Sketch:
    """Coarse laws of all pairs: good enough to choose where to look, never used for an answer."""

    laws: tuple[tuple[GridLaw, int], ...]

    @classmethod
    def of(cls, pairs: Weighted, log_delta: float) -> _Sketch:
        """Puts each pair on its own grid of a few thousand points, for deltas down to this one."""
        tail = log_delta - 2 * _MARGIN - math.log(sum(count for _, count in pairs))
        laws = []
        for pair, count in pairs:
            low, high = pair.span(tail)
            laws.append((connect(pair, max((high - low) / _COARSE_CELLS, 1e-12), tail), count))
        return cls(tuple(laws))

    def cumulants(self, tilts: Floats) -> Floats:
        """Returns ln E[e^(tilt S)] of the sum, for each tilt."""
        return sum((count * law.cumulants(tilts) for law, count in self.laws), np.zeros_like(tilts))

    def tilt_for_delta(self, log_delta: float) -> float:
        """Returns a tilt that resolves this delta: Chernoff's bound at the epsilon it gives is close to delta."""
        epsilons = valley(lambda tilts: (self.cumulants(tilts) - log_delta) / tilts, _TILTS)
        return self._gentlest(float(epsilons.min()), int(epsilons.argmin()))

    def tilt_for_epsilon(self, epsilon: float) -> float:
        """Returns a tilt that resolves the delta of this epsilon."""
        log_bounds = valley(lambda tilts: self.cumulants(tilts) - tilts * epsilon, _TILTS)
        return self._gentlest(epsilon, int(log_bounds.argmin()))

    def _gentlest(self, epsilon: float, best: int) -> float:
        """Returns the smallest tilt whose bound of delta is close to the best: less tilt, wider and smoother laws.

        Cumulants are convex, so tilts that serve are neighbours in the table.
        """
        tilts = _TILTS[: best + 1].tolist()
        limit = self._log_bound(tilts[best], epsilon) + _GENTLE
        serves = bisect_left(tilts, True, hi=best, key=lambda tilt: self._log_bound(tilt, epsilon) <= limit)
        return float(tilts[serves])

    def _log_bound(self, tilt: float, epsilon: float) -> float:
        return float(self.cumulants(np.array([tilt]))[0]) - tilt * epsilon

    def log_delta(self, tilt: float, epsilon: float) -> float:
        """Returns ln of Chernoff's bound."""
        return min(0.0, self._log_bound(tilt, epsilon))

    def window(self, tilt: float) -> tuple[float, float, float]:
        """Returns where the tilted sum lies, by Chernoff's bound, and the extra tilt that bounds it above."""
        reaches = np.geomspace(0.1, 40, 40) / math.sqrt(sum(count * _variance(law, tilt) for law, count in self.laws))
        base = self.cumulants(np.array([tilt]))[0]
        highs = valley(lambda reach: (self.cumulants(tilt + reach) - base + _TAIL) / reach, reaches)
        lows = -valley(lambda reach: (self.cumulants(tilt - reach) - base + _TAIL) / reach, reaches)
        return float(lows.max()), float(highs.min()), float(reaches[highs.argmin()])

    def finest(self, tilt: float) -> float:
        """Returns the smallest standard deviation of one tilted loss."""
        return math.sqrt(min(_variance(law, tilt) for law, _ in self.laws))


def _variance(law: GridLaw, tilt: float) -> float:
    weights = np.exp(law.log_masses + tilt * law.losses - law.cumulant(tilt))
    mean = float((weights * law.losses).sum())
    return max(float((weights * (law.losses - mean) ** 2).sum()), law.step**2 / 4)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The grid that all losses share, and where the sum is looked at."""

    step: float
    tail: float  # ln of the share of each loss that counts as infinite
    view: View

    @classmethod
    def of(cls, pairs: Weighted, sketch: _Sketch, tilt: float, log_delta: float, skipped: float = 0.0) -> _Layout:
        """Lays out the grid; the lowest part of the window, a share `skipped` of it, gets no delta but 1."""
        low, high, steeper = sketch.window(tilt)
        tail = log_delta - math.log(sum(count for _, count in pairs)) - _MARGIN
        widest = max(top - bottom for bottom, top in (pair.span(tail) for pair, _ in pairs))
        if not high - low > 0 or not math.isfinite(widest):  # also if a bound is no number
            raise UnsupportedEvent("losses as large as these", METHOD, _HINT)
        step, log_size = _resolution(pairs, high - low, sketch.finest(tilt), widest)
        if not max(abs(low), abs(high), widest) < step * _LARGEST_INDEX:
            raise UnsupportedEvent("losses as large as these", METHOD, _HINT)
        return cls(step, tail, View(tilt, low, steeper, log_size, least=low + skipped * (high - low)))


def _compose(pairs: Weighted, sketch: _Sketch, tilt: float, log_delta: float, skipped: float = 0.0) -> Composition:
    layout = _Layout.of(pairs, sketch, tilt, log_delta, skipped)
    return compose([(connect(pair, layout.step, layout.tail), count) for pair, count in pairs], layout.view)


def _resolution(pairs: Weighted, width: float, finest: float, widest: float) -> tuple[float, int]:
    """Returns the step and the transform's size: fine enough for the narrowest loss, on the lattice if there is one."""
    wanted = math.ceil(math.log2(max(2.0, _POINTS * width / finest)))
    log_size = min(max(wanted, _LOG_SIZES[0]), _LOG_SIZES[1])
    step = max(width / ((1 << log_size) - 8), widest / _LARGEST_GRID)
    lattices = {pair.lattice for pair, _ in pairs}
    lattice = lattices.pop() if len(lattices) == 1 else None
    if lattice is not None and step <= lattice / 2:
        step = lattice / 2 / math.floor(lattice / 2 / step)
    return step, max(4, math.ceil(math.log2(width / step + 8)))


def _directions(released: Terms) -> list[Weighted]:
    leaks = {event: count for event, count in released.items() if isinstance(event, Approx) and not event.epsilon}
    others = {event: count for event, count in released.items() if event not in leaks}
    if leaks and sum(others.values()) == 1:  # one release besides them needs no grid
        leak = -math.expm1(sum(count * log1p(-float_above(event.delta)) for event, count in leaks.items()))
        return [[(LeakyPair(pair, min(1.0, safe(leak))), 1)] for ((pair, _),) in _sides(others)]
    return _sides(_fewer(released))


def _sides(released: Terms) -> list[Weighted]:
    both = [(dominating(event), count) for event, count in released.items()]
    removal = [(pairs.removal, count) for pairs, count in both]
    if all(pairs.symmetric for pairs, _ in both):
        return [removal]
    return [removal, [(pairs.addition, count) for pairs, count in both]]


def _fewer(released: Terms) -> Terms:
    """Different Gaussian releases merged into one, which is exact and spares a transform for each."""
    gaussian = {event: count for event, count in released.items() if isinstance(event, Gaussian)}
    if len(gaussian) < 2:
        return released
    others = {event: count for event, count in released.items() if event not in gaussian}
    return {**others, merged_gaussian(gaussian): 1}


def epsilon(released: Terms, delta: float) -> float:
    """Returns the epsilon of a list fixed beforehand, the larger of both directions, rounded up."""
    return max((_epsilon(pairs, delta) for pairs in _directions(released)), default=0.0)


def _epsilon(pairs: Weighted, delta: float) -> float:
    if _is_single(pairs):
        return safe(_single_epsilon(pairs[0][0], delta))
    sketch = _Sketch.of(pairs, math.log(delta))
    tilt = sketch.tilt_for_delta(math.log(delta))
    composed = _compose(pairs, sketch, tilt, math.log(delta), skipped=_UNLIKELY)
    if not composed.holds_answer(delta):
        composed = _compose(pairs, sketch, tilt, math.log(delta))
    return safe(composed.epsilon(delta))


def excess(released: Terms, at: float, delta: float) -> float | None:
    """Returns by which share of delta a release with leaks exceeds it at an epsilon, on the grid of its composition.

    It is above 0 if `epsilon` finds more than `at`, and not above 0 if it does not. None where the error of transforms
    decides that, or where transforms cannot be spared.
    """
    found = [_excess(pairs, at, delta) for pairs in _directions(released)]
    known = [share for share in found if share is not None]
    return max(known) if known and len(known) == len(found) else None


def _excess(pairs: Weighted, at: float, delta: float) -> float | None:
    alone = [pair for pair, count in pairs if count == 1 and not _is_leak(pair)]
    leaks = [(pair, count) for pair, count in pairs if _is_leak(pair)]
    if not leaks or len(alone) != 1 or len(leaks) + 1 != len(pairs):
        return None
    sketch = _Sketch.of(pairs, math.log(delta))
    tilt = sketch.tilt_for_delta(math.log(delta))
    layout = _Layout.of(pairs, sketch, tilt, math.log(delta))
    view = replace(layout.view, cumulant=float(sketch.cumulants(np.array([tilt]))[0]))
    zeros = [(connect(pair, layout.step, layout.tail), count) for pair, count in leaks]
    epsilon = at / (1 + SLACK)  # a price is raised by that much
    law = connect(alone[0], layout.step, layout.tail, lowest=math.floor(epsilon / layout.step))
    low, high = direct_deltas(law, zeros, view, epsilon - drift_of([(law, 1), *zeros]))
    if low <= delta < high:
        return None
    return low / delta - 1 if low > delta else high / delta - 1


def _is_leak(pair: DistributionPair) -> bool:
    return isinstance(pair, AtomicPair) and not pair.losses.any()


def delta(released: Terms, at: float) -> float:
    """Returns the delta of a list fixed beforehand, the larger of both directions, rounded up."""
    return max((_delta(pairs, at) for pairs in _directions(released)), default=0.0)


def _delta(pairs: Weighted, at: float) -> float:
    if _is_single(pairs):
        return pairs[0][0].delta(at)
    sketch = _Sketch.of(pairs, _SMALLEST)
    tilt = sketch.tilt_for_epsilon(at)
    log_delta = max(sketch.log_delta(tilt, at), _SMALLEST)
    return min(1.0, safe(_compose(pairs, sketch, tilt, log_delta).delta(at)))


def profile(released: Terms) -> Callable[[float], float]:
    """Returns delta as a function of epsilon, for many evaluations.

    Losses are composed once, sharpest where delta is about 1e-3.
    """
    sides = [_curve(pairs) for pairs in _directions(released)]
    return lambda at: max((side(at) for side in sides), default=0.0)


def _curve(pairs: Weighted) -> Callable[[float], float]:
    if _is_single(pairs):
        return pairs[0][0].delta
    sketch = _Sketch.of(pairs, _TYPICAL)
    return _compose(pairs, sketch, sketch.tilt_for_delta(_TYPICAL), _TYPICAL).delta


def _is_single(pairs: Weighted) -> bool:
    return len(pairs) == 1 and pairs[0][1] == 1


def _single_epsilon(pair: DistributionPair, delta: float) -> float:
    if pair.delta(0.0) <= delta:
        return 0.0
    start = max(1e-6, pair.span(math.log(delta))[1])
    if pair.delta(_FAR * start) > delta:  # by infinite losses
        return math.inf
    return smallest(lambda at: pair.delta(at) <= delta, start=start)
