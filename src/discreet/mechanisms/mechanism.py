"""What every mechanism offers: a release, the event that describes it, and the error of what was released.

Mechanisms that add noise have a public grid, and an error that does not depend on the value. Private values enter a
mechanism, and counts of steps leave it, such that nothing wraps and nothing overflows.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Grid, Interval, exact_value, float_above, float_below
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate
from discreet.privacy.events import Event

LARGEST_EXPONENT = 900  # of a grid: values up to 2^62 steps stay finite as floats, and steps stay normal floats
LARGEST_NOISE = Fraction(10) ** 290  # of a scale in the value's own units; its outliers are finite floats, too
_SAFE = 1 << 62  # two summands below this do not leave int64
_EXACT = 1 << 52  # counts of steps up to twice this many are exact as floats

CONFIDENCE = Fraction(19, 20)
Law = Literal["laplace", "gaussian"]
"""The noise of a release, and the currency of its budget: an epsilon for Laplace noise, a rho for Gaussian noise."""
HALF = Fraction(1, 2)


def public_grid(grid: Grid | check.Number) -> Grid:
    """Returns a grid given as itself or by its step, of a size that floats can carry."""
    found = Grid.of(grid)
    if abs(found.exponent) > LARGEST_EXPONENT:
        raise InvalidParameter("grid", grid, f"between 2^-{LARGEST_EXPONENT} and 2^{LARGEST_EXPONENT}")
    return found


def reasonable_noise(scale: Fraction, name: str) -> None:
    """Refuses parameters whose noise no float could hold, before anything is drawn."""
    if not 1 / LARGEST_NOISE <= scale <= LARGEST_NOISE:
        hint = "Measure the value in other units, or choose another epsilon."
        raise InvalidParameter(name, "a number", "to give noise between 1e-290 and 1e290 in size", hint)


def numeric(value: Any) -> Any:
    """Returns the value as a number or an array of numbers; booleans, texts and everything else are refused by type."""
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        return value
    if not (isinstance(value, np.ndarray | list | tuple) or hasattr(value, "__array__")):
        raise InvalidValue("to be a number or an array of numbers", "Pass an integer, a float, a Fraction or an array.")
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidValue("to be a rectangular array", "Every row needs the same length.") from None
    if array.dtype.kind not in "iufO":
        raise InvalidValue("to be numbers", "Pass integers, floats or Fractions; count booleans before the release.")
    if array.ndim == 0:
        return numeric(array.item())
    if array.dtype.kind != "f":
        return array
    return array.astype(np.float64 if array.dtype.itemsize <= 8 else object)  # long doubles are kept as they are


def whole_by_type(value: Any, grid: Grid) -> bool:
    """Returns whether the type alone shows that the value is a grid point, without a look at the value."""
    if grid.exponent > 0:
        return False
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iu"
    return isinstance(value, numbers.Integral)


def on_grid(array: NDArray[Any], grid: Grid) -> bool:
    """Returns whether every entry is a grid point, so that rounding moves nothing."""
    if array.dtype.kind != "f":
        return grid.on_grid(array)
    scaled = _scale_to_grid(array, grid)
    return bool(np.all((scaled == np.floor(scaled)) & ((scaled != 0) | (array == 0))))


def _scale_to_grid(array: NDArray[np.float64], grid: Grid) -> NDArray[np.float64]:
    with np.errstate(over="ignore", under="ignore"):  # what leaves the range of floats is noticed by its caller
        return np.ldexp(array, -grid.exponent)


def add(steps: Any, noise: Any) -> Any:
    """Returns the exact sum of counts of steps and noise: int64 where that is safe, else Python ints."""
    if not isinstance(noise, np.ndarray):
        return steps + noise
    if noise.dtype == object or (noise.size and max(-int(noise.min()), int(noise.max())) >= _SAFE):
        return steps.astype(object) + noise.astype(object)
    return steps + noise


def offsets(value: Any, grid: Grid) -> NDArray[np.float64] | None:
    """Returns the entries divided by the step if floats hold the quotients exactly, else None."""
    array = np.asarray(value)
    if array.dtype.kind in "iu" and _small(array):
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        return None
    if not np.isfinite(array).all():
        raise InvalidValue("to be finite", "Replace NaN and infinities by a public rule before the release.")
    scaled = _scale_to_grid(array, grid)
    exact = (np.ldexp(scaled, grid.exponent) == array).all() and (not scaled.size or np.abs(scaled).max() < _SAFE)
    return scaled if exact else None


def exact_offsets(value: Any, grid: Grid) -> list[Fraction]:
    """Returns the entries, in the order of memory, divided by the step."""
    entries = value.ravel().tolist() if isinstance(value, np.ndarray) else [value]
    return [exact_value(entry) / grid.step for entry in entries]


def around(released: Any, half: Fraction, grid: Grid) -> Interval:
    """Returns the interval of all numbers within a distance of the released one, its ends rounded outwards."""
    found = numeric(released)
    if not isinstance(found, np.ndarray):
        return _around_one(found, half, grid)
    if found.dtype.kind == "f":
        return _around_floats(found, half, grid)
    if found.dtype.kind in "iu" and _small(found) and half < _EXACT:
        whole = half.denominator == 1
        return _around_integers(found, int(half)) if whole else _around_floats(found.astype(np.float64), half, grid)
    low, high = np.empty(found.shape, dtype=object), np.empty(found.shape, dtype=object)
    for place in np.ndindex(found.shape):
        low[place], high[place] = _around_one(found[place], half, grid)
    return Interval(low, high)


def _small(array: NDArray[Any]) -> bool:
    """Returns whether floats hold all the integers of an array exactly."""
    return not array.size or max(-int(array.min()), int(array.max())) < _EXACT


def _around_integers(released: NDArray[Any], half: int) -> Interval:
    found = released.astype(np.int64)
    return Interval(found - half, found + half)


def _around_one(released: Any, half: Fraction, grid: Grid) -> Interval:
    if isinstance(released, numbers.Integral) and half.denominator == 1:
        return Interval(int(released) - int(half), int(released) + int(half))
    exact = exact_value(released)
    far = isinstance(released, float) and abs(exact) >= _EXACT * grid.step  # where the release itself was rounded
    reach = half + Fraction(math.ulp(released)) if far else half
    return Interval(_float(float_below, exact - reach), _float(float_above, exact + reach))


def _float(direction: Any, value: Fraction) -> float:
    try:
        return float(direction(value))
    except OverflowError:
        return math.copysign(math.inf, value)


def _around_floats(released: NDArray[np.float64], half: Fraction, grid: Grid) -> Interval:
    if not np.isfinite(released).all():
        raise InvalidValue("to be finite", "An interval is around a released number.")
    reach = float_above(half)
    far = np.abs(released) + reach >= float(_EXACT * grid.step)
    slack = np.where(far, 2 * np.spacing(np.maximum(np.abs(released), reach)), 0.0)
    return Interval(released - reach - slack, released + reach + slack)


class Mechanism(ABC):
    """A randomised function of private values; its parameters are public and checked before anything is drawn.

    Formal guarantee: whatever the value, one call of `release` is described by `event`, under the neighbour relation
    for which the sensitivity was computed. Several calls are several events.

    >>> from discreet.accounting import epsilon
    >>> from discreet.mechanisms import Gaussian, Laplace
    >>> from discreet.noise import SeededBits
    >>> for mechanism in (Laplace(epsilon=1, sensitivity=1), Gaussian(epsilon=1, delta=1e-6, sensitivity=1, grid=1)):
    ...     print(mechanism.estimate(100, bits=SeededBits(1)), round(epsilon(mechanism.event, 1e-6), 3))
    99 [96, 102] NOT PRIVATE (seeded randomness) 1.0
    99 [90, 108] NOT PRIVATE (seeded randomness) 1.0
    """

    __slots__ = ()

    @property
    @abstractmethod
    def event(self) -> Event:
        """Returns what one release costs, for accounting."""

    @abstractmethod
    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Releases a private version of the value; `bits` is the source of randomness, by default the secure one."""

    @abstractmethod
    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns where the exact value lies, given the released one, with at least this probability over the noise."""

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """Returns a release together with its interval, its event, and a mark if the randomness was seeded."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        released = self.release(value, bits=source)
        low, high = self.interval(released, confidence=chance)
        return Estimate(released, low, high, self.event, confidence=chance, private=source.private)


class AdditiveMechanism(Mechanism):
    """A mechanism whose release is the value plus noise of a public law, on a public grid."""

    __slots__ = ()

    grid: Grid

    @abstractmethod
    def error(self, *, confidence: check.Number = CONFIDENCE) -> Fraction:
        """Returns the distance between the released number and the exact one that is kept at least this often."""

    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns where the exact value lies; each entry of an array has its own interval, and its own probability.

        Raises:
            InvalidParameter: if the confidence is not strictly between 0 and 1.
            InvalidValue: if the released value is no finite number.
        """
        return around(released, self.error(confidence=confidence), self.grid)


class LatticeMechanism(AdditiveMechanism):
    """A mechanism that rounds the value to its grid first and then adds whole steps of noise.

    On the grid of whole numbers the value is taken to be whole, and the interval covers the noise only; on any other
    grid, or if `rounded` says so, it also covers half a step of rounding. `estimate` decides by the type of the value,
    which is public.
    """

    __slots__ = ()

    @abstractmethod
    def noise_steps(self, outside: Fraction) -> int:
        """Returns a number of steps that the noise of one entry exceeds with at most this probability."""

    def error(self, *, confidence: check.Number = CONFIDENCE, rounded: bool | None = None) -> Fraction:
        """Returns the distance between the released number and the exact one that is kept at least this often."""
        steps = self.noise_steps(1 - check.probability(confidence=confidence))
        with_rounding = self.grid.exponent != 0 if rounded is None else rounded
        return (steps + HALF if with_rounding else Fraction(steps)) * self.grid.step

    def interval(
        self, released: Any, *, confidence: check.Number = CONFIDENCE, rounded: bool | None = None
    ) -> Interval:
        """Returns where the exact value lies; each entry of an array has its own interval, and its own probability.

        Args:
            released: what `release` returned.
            confidence: the probability, over the noise, that the interval of one entry covers its exact value.
            rounded: whether the value may have been off the grid; None means on every grid but that of whole numbers.
        """
        return around(released, self.error(confidence=confidence, rounded=rounded), self.grid)

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """Returns a release together with its interval, its event, and a mark if the randomness was seeded."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        released = self.release(value, bits=source)
        rounded = not whole_by_type(numeric(value), self.grid)
        low, high = self.interval(released, confidence=chance, rounded=rounded)
        return Estimate(released, low, high, self.event, confidence=chance, private=source.private)
