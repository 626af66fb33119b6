"""Many privacy losses added up by Fourier transform, with every error that floats can make added to delta.

The laws are tilted first, masses times e^(tilt * loss), so that the composed law has its centre where the answer is:
then rounding errors, which are relative to the largest mass, stay far below the smallest delta. With K(t) = ln
E[e^(t S)], a loss s of tilted mass T(s) has the mass T(s) e^(K(tilt) - tilt s), and delta(epsilon) is the sum of that
times 1 - e^(epsilon - s) over all s > epsilon. Five bounds are added:

- infinite losses: 1 - (1 - mass)^count;
- the mass from the window's end on, in full, whatever epsilon is: by Chernoff's bound at a steeper tilt t,
  P(S >= end) <= e^(K(t) - t end);
- the rounding of the transforms, an error of T: a transform of length N = 2^n errs by at most n * 16 units of roundoff
  relative to the 2-norm (Higham 2002, Theorem 24.2, gives about 7), powers by repeated squaring by sqrt(5) units per
  factor, and a weighted sum errs by at most the product of 2-norms (Cauchy, Schwarz). The weights are e^(K(tilt) - tilt
  s) (1 - e^(epsilon - s)), and with s = epsilon + x a factor e^(-tilt epsilon) comes before a sum over x: this error,
  and no other, falls as epsilon grows;
- the rounding of exponents, a factor on every mass;
- the rounding of losses themselves, a drift added to epsilon.

What lies outside the window is wrapped into it by the transform, which adds to the mass there and so to delta.

A pair of laws is put on a grid of losses first, never better than it is, by connecting the dots (Doroshenko et al.
2022): the mass of a cell is split between the cell's two ends so that both P and Q keep their mass. The profile of the
result is the chord of the true profile between grid points, hence an upper bound, with an error of second order in the
step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss_distributions.pairs import FLUSHED, DistributionPair, Floats, Masses
from discreet.accounting.numerics import smallest
from discreet.dataclass import dataclass

_SUBNORMAL = 2.0**-1070  # the error of a mass too small for all its digits

_UNIT = 2.0**-53
_TRANSFORM = 16 * _UNIT  # per halving of the length
_DRIFT = 2.0**-45  # of a loss, relative: grid points and atoms are floats
_ONE_FROM = 40.0  # e^-40 is below half a unit of roundoff


@dataclass(frozen=True, eq=False)
class GridLaw:
    """Masses of P at the losses first * step, (first + 1) * step, ..., and at infinity."""

    step: float
    first: int
    log_masses: Floats
    infinite: float

    @cached_property
    def losses(self) -> Floats:
        """Returns the grid points."""
        return _multiples(self.first, self.first + self.log_masses.size, self.step)

    @cached_property
    def largest(self) -> float:
        """Returns the largest size of a loss: that of one end."""
        return float(np.max(np.abs(self.losses[[0, -1]])))

    @cached_property
    def least_log(self) -> float:
        """Returns how far below 0 the logarithm of a mass is at most; masses that are 0 do not count."""
        return float(np.max(-self.log_masses[self.log_masses > -math.inf], initial=0.0))

    def cumulants(self, tilts: Floats) -> Floats:
        """Returns ln E[e^(tilt L)] over the finite losses, for each tilt."""
        exponents = np.multiply.outer(tilts, self.losses)
        exponents += self.log_masses
        largest = exponents.max(axis=-1)
        exponents -= largest[..., None]
        return np.asarray(largest + np.log(np.exp(exponents, out=exponents).sum(axis=-1)))

    def cumulant(self, tilt: float) -> float:
        """Returns the same for one tilt."""
        return float(self.cumulants(np.array([tilt]))[0])


def _multiples(first: int, end: int, step: float) -> Floats:
    """Returns the multiples of a step, from `first` of them up to below `end`, which floats count exactly."""
    points = np.arange(first, end, dtype=np.float64)
    points *= step
    return points


def connect(pair: DistributionPair, step: float, log_tail: float, lowest: int | None = None) -> GridLaw:
    """Returns the pair on the grid; a share exp(log_tail) of P beyond the top counts as an infinite loss.

    Everything below the grid moves up to its lowest point, which may be chosen: points above it stay as they are.
    """
    low, high = pair.span(log_tail)
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    if lowest is not None:
        first = min(max(first, lowest), last - 1)
    losses = _multiples(first, last + 1, step)
    cells = pair.masses(np.concatenate([[-np.inf], losses, [np.inf]]))
    to_lower = _lower_share(step, losses, cells)
    raised = cells.p + cells.p_error  # an upper bound: mass counted twice is only pessimistic
    points = np.zeros(losses.size)
    points[0] = raised[0]  # everything below the grid moves up to its lowest point
    points[:-1] += to_lower
    points[1:] += raised[1:-1] - to_lower
    with np.errstate(divide="ignore"):
        logs = np.log(points)
    return GridLaw(step, first, logs, pair.infinite + float(raised[-1]) + FLUSHED)


def _lower_share(step: float, losses: Floats, cells: Masses) -> Floats:
    """Returns what a cell may give to its lower end: (q e^upper - p) / (e^step - 1), less possible rounding."""
    p, q = cells.p[1:-1], cells.q[1:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        scale, growth = np.exp(losses[1:]), np.expm1(step)
        error = (cells.q_error[1:-1] + _SUBNORMAL) * scale + cells.p_error[1:-1] + 2.0**-50 * p
        share = np.clip((q * scale - p - error) / growth, 0.0, p)
    return np.asarray(np.nan_to_num(share, nan=0.0))


Laws = Sequence[tuple[GridLaw, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """The composed law over a window of losses, in logarithms, with the errors that were made."""

    step: float
    first: int  # index of the window's lowest loss
    log_above: Floats  # ln of the mass of P at or above each point
    log_above_q: Floats  # the same for Q
    infinite: float
    lost: float  # the mass from the window's end on
    log_roundoff: float  # ln of what rounding may hide at epsilon = 0; it falls with e^(-tilt * epsilon)
    tilt: float
    drift: float
    terms: int  # of the sum over the whole window; some may have been left out

    def delta(self, epsilon: float) -> float:
        """Returns an upper bound of delta at this epsilon: 1 for one below the part of the window that was summed."""
        at = max(epsilon - self.drift, 0.0)
        index = math.floor(at / self.step) + 1 - self.first
        if index < 0:
            return 1.0
        excess = 0.0
        if index < self.log_above.size:
            log_p, log_q = float(self.log_above[index]), float(self.log_above_q[index])
            share = -math.expm1(min(0.0, at + log_q - log_p)) if log_p > -math.inf else 0.0
            excess = _exp(log_p) * (share + self._rounding)
        total = self.infinite + excess + self.lost + _exp(self.log_roundoff - self.tilt * at)
        return min(1.0, total * (1 + 32 * _UNIT))  # each summand is right to a few units of roundoff

    def holds_answer(self, delta: float) -> bool:
        """Returns whether the epsilon of this delta lies where the window was summed; delta falls with epsilon."""
        lowest = self.first * self.step + self.drift
        return self.terms == self.log_above.size or self.delta(lowest) > delta

    @property
    def _rounding(self) -> float:
        """Returns the rounding of the running sums: a few units of roundoff for each of their terms."""
        return 16 * _UNIT * self.terms

    def epsilon(self, delta: float) -> float:
        """Returns the smallest epsilon seen to satisfy delta; infinity if none in the window does."""
        if self.delta(0.0) <= delta:
            return 0.0
        top = (self.first + self.log_above.size) * self.step + self.drift
        if self.delta(top) > delta:
            return math.inf
        return smallest(lambda at: self.delta(min(at, top)) <= delta, start=top)


def _exp(log: float) -> float:
    return math.exp(log) if log < 700 else math.inf


@dataclass(frozen=True, slots=True)
class View:
    """Where to look at a sum of losses.

    Args:
        tilt: the larger, the smaller the deltas that are resolved.
        low: the lowest loss of the window.
        steeper: how much more tilt bounds best what lies above the window.
        log_size: the transform has 2^log_size points, and the window as many steps.
        least: an epsilon; deltas of smaller ones are not asked for.
        cumulant: about ln E[e^(tilt S)] of the sum.
    """

    tilt: float
    low: float
    steeper: float
    log_size: int
    least: float = 0.0
    cumulant: float = 0.0


def compose(laws: Laws, view: View) -> Composition:
    """Returns the law of the sum of so many independent losses of each kind, whose grids share one step."""
    tilt, size, step = view.tilt, 1 << view.log_size, laws[0][0].step
    first = math.floor(view.low / step)
    cumulants = [law.cumulant(tilt) for law, _ in laws]
    total = sum(count * cumulant for (_, count), cumulant in zip(laws, cumulants, strict=True))
    total += _exponent_rounding(laws, tilt, cumulants, total, (abs(first) + size) * step)
    masses, error = _power(laws, tilt, cumulants, view.log_size)
    drift = drift_of(laws)
    start = max(first, 0, math.floor((view.least - drift) / step))  # no epsilon is negative
    losses = _multiples(start, first + size, step)
    logs = np.roll(masses, -start)[: losses.size]
    with np.errstate(divide="ignore"):
        np.log(np.maximum(logs, 0.0, out=logs), out=logs)
    return Composition(
        step=step,
        first=start,
        log_above=_log_running(logs, tilt, losses, total),
        log_above_q=_log_running(logs, tilt + 1, losses, total),
        infinite=_infinite(laws),
        lost=_exp(_log_tail(laws, tilt + view.steeper, (first + size) * step)),
        log_roundoff=math.log(error * _weight_norm(tilt, step, size)) + total,
        tilt=tilt,
        drift=drift,
        terms=_window_terms(view, step),
    )


def direct_deltas(law: GridLaw, leaks: Laws, view: View, at: float) -> tuple[float, float]:
    """Returns two numbers between which `compose` finds delta, for one release and others without any finite loss.

    The sum of one loss and zeros needs no transform. The composed law errs from it by at most a bound, which is added
    to its delta: so that is at least the delta of the sum, and at most this plus twice the bound. The bound is
    estimated, for weights by their integral, and taken a quarter larger. Both numbers leave room for the rounding of
    running sums, a random walk, and for what is not summed here: 10^-10 of delta. The estimates decide whether the
    composed law would say the same, and never whether a release is private: the delta of the sum is itself a bound.

    Args:
        law: of the one release, whose lowest point is the last at or below `at`.
        leaks: the others, with all finite mass at 0.
        view: that of the composition.
        at: the epsilon, less the drift.
    """
    terms, tilt = _window_terms(view, law.step), view.tilt
    kept = math.exp(sum(count * leak.cumulant(0.0) for leak, count in leaks))
    masses = kept * np.exp(law.log_masses[1:])
    above, excess = float(masses.sum()), float((masses * -np.expm1(at - law.losses[1:])).sum())
    found = _infinite([(law, 1), *leaks]) + excess + 16 * _UNIT * terms * above
    norm = math.sqrt(1 / (2 * tilt * (2 * tilt + 1) * (tilt + 1) * law.step))
    error = 2 * sum(count for _, count in leaks) * _TRANSFORM * view.log_size * norm * _exp(view.cumulant - tilt * at)
    room = 16 * _UNIT * math.sqrt(terms) * above + 1e-10 * found
    return found - room, found + 2 * 1.25 * error + room


def _window_terms(view: View, step: float) -> int:
    """Returns how many points of the window are no negative losses."""
    first = math.floor(view.low / step)
    return min(first, 0) + (1 << view.log_size)


def _infinite(laws: Laws) -> float:
    return -math.expm1(sum(count * log1p(-law.infinite) for law, count in laws))


def drift_of(laws: Laws) -> float:
    """Returns how far the rounding of losses can move their sum."""
    return _DRIFT * sum(count * law.largest for law, count in laws)


def _exponent_rounding(laws: Laws, tilt: float, cumulants: Sequence[float], total: float, top: float) -> float:
    """Returns how much rounded exponents can lower the logarithm of a mass: a few units of each part's size."""
    size = abs(total) + (tilt + 1) * top
    for (law, count), cumulant in zip(laws, cumulants, strict=True):
        size += count * (abs(cumulant) + tilt * law.largest + law.least_log)
    return 4 * _UNIT * size


def log1p(x: float) -> float:
    """Returns ln(1 + x), also of nothing."""
    return math.log1p(x) if x > -1 else -math.inf


def _log_running(logs: Floats, tilt: float, losses: Floats, total: float) -> Floats:
    """ln of the sums from each loss to the last, of tilted masses with their tilt taken back."""
    terms = tilt * losses
    np.subtract(logs, terms, out=terms)
    terms += total
    return np.logaddexp.accumulate(terms[::-1], out=terms[::-1])[::-1]


def _power(laws: Laws, tilt: float, cumulants: Sequence[float], log_size: int) -> tuple[Floats, float]:
    """Returns the tilted law of the sum, wrapped around the transform's circle, and a bound of its 2-norm error."""
    size = 1 << log_size
    powers: list[NDArray[np.complex128]] = []
    error = 0.0
    for (law, count), cumulant in zip(laws, cumulants, strict=True):
        tilted = tilt * law.losses
        tilted += law.log_masses
        tilted -= cumulant
        circle = _wrap_masses(np.exp(tilted, out=tilted), law.first, size)
        powers.append(_integer_power(np.fft.rfft(circle), count))
        error += count * (_TRANSFORM * log_size * _norm(circle))
    masses = np.fft.irfft(reduce(lambda product, power: np.multiply(product, power, out=product), powers), size)
    count = sum(count for _, count in laws)
    error += (math.sqrt(5) * _UNIT * 4 * count + _TRANSFORM * log_size) * (_norm(masses) + error)
    return masses, 2 * error


def _wrap_masses(masses: Floats, first: int, size: int) -> Floats:
    """Masses at consecutive places from `first` on, added up around a circle of so many places."""
    turns = -(-masses.size // size)
    laps = np.zeros((turns, size))
    laps.reshape(-1)[: masses.size] = masses
    return np.asarray(np.roll(laps[0] if turns == 1 else np.add.reduce(laps), first))


def _integer_power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """base^exponent by repeated squaring, whose rounding is easy to bound; the memory of the base is used for it."""
    result: NDArray[np.complex128] | None = None
    while exponent:
        if exponent & 1:
            result = base.copy() if result is None else np.multiply(result, base, out=result)
        exponent >>= 1
        if exponent:
            np.multiply(base, base, out=base)
    return np.ones_like(base) if result is None else result


def _weight_norm(tilt: float, step: float, size: int) -> float:
    """Returns the 2-norm of e^(-tilt x) (1 - e^-x) over losses x above epsilon, at the worst place between points."""
    points = _multiples(0, size, step)
    weights = np.multiply(points, -tilt)
    np.exp(weights, out=weights)
    below = points[: np.searchsorted(points, _ONE_FROM)]  # beyond, 1 - e^-x is 1 in floats
    below += step
    np.negative(below, out=below)
    np.expm1(below, out=below)
    weights[: below.size] *= np.negative(below, out=below)
    return _norm(weights)


def _norm(vector: Floats) -> float:
    """Returns the 2-norm, without waking the threads of a linear-algebra library for it."""
    return math.sqrt(float(np.square(vector).sum()))


def _log_tail(laws: Laws, tilt: float, end: float) -> float:
    """ln of a bound of P(S >= end): Chernoff's, at this tilt."""
    cumulants = [law.cumulant(tilt) for law, _ in laws]
    total = sum(count * cumulant for (_, count), cumulant in zip(laws, cumulants, strict=True))
    return total + _exponent_rounding(laws, tilt, cumulants, total, abs(end)) - tilt * end
