"""Public grids of powers of two: where real values become integers before any noise is added."""

from __future__ import annotations

import math
import numbers
import sys
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact.rounding import root_above

LARGEST_STEPS = 1 << 62  # integers on the grid stay in int64 with room for noise

_FINITE = "to be finite"
_FINITE_HINT = "Replace NaN and infinities by a public rule before the release, e.g. clip to public bounds."


@dataclass(frozen=True, slots=True)
class Grid:
    """All multiples of 2^exponent, a public fact that is fixed before any data is seen.

    Rounding is half up, floor(x / step + 1/2), because it commutes with shifts by whole steps: two values at a distance
    of at most m steps, m whole, round to integers at most m apart. Half-to-even does not have this property (0.5 and
    1.5).

    >>> Grid(-3).step, Grid(-3).steps(0.3), Grid(-3).value(2)
    (Fraction(1, 8), 2, 0.25)
    """

    exponent: int

    def __post_init__(self) -> None:
        check.integer(exponent=self.exponent, at_least=-1000, at_most=1000)

    @classmethod
    def integers(cls) -> Grid:
        """Returns the grid of whole numbers."""
        return cls(0)

    @classmethod
    def finer_than(cls, width: Fraction) -> Grid:
        """Returns the coarsest grid whose step is at most the width."""
        exponent = width.numerator.bit_length() - width.denominator.bit_length() + 1
        while Fraction(2) ** exponent > width:
            exponent -= 1
        return cls(exponent)

    @classmethod
    def of(cls, grid: Grid | check.Number) -> Grid:
        """Returns a grid from itself or from its step, which must be a power of two."""
        if isinstance(grid, Grid):
            return grid
        step = check.positive(grid=grid, floats="exact")
        top, bottom = step.numerator, step.denominator
        if top & (top - 1) or bottom & (bottom - 1):
            raise InvalidParameter(
                "grid", grid, "to be a power of two", "Pass e.g. grid=Fraction(1, 1024) or Grid(-10)."
            )
        return cls(top.bit_length() - bottom.bit_length())

    @property
    def step(self) -> Fraction:
        """Returns the distance between neighbouring points."""
        return Fraction(2) ** self.exponent

    def steps(self, value: Any) -> Any:
        """Returns the nearest grid point, as an exact count of steps.

        It is an int of any size, or an int64 array for an array.

        Raises:
            InvalidValue: if a value is not a finite number, or an array's entry lies 2^62 steps or more from zero.
        """
        return self._array(np.asarray(value)) if _is_array(value) else self._scalar(value)

    def _scalar(self, value: Any) -> int:
        if type(value) is int and self.exponent == 0:
            return value
        ratio = exact_value(value) / self.step
        return math.floor(ratio + Fraction(1, 2))

    def _array(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if values.dtype.kind in "iu" and self.exponent <= 0:
            with np.errstate(over="ignore"):  # infinity is out of range too
                _in_range(np.abs(values.astype(np.float64)) * 2.0**-self.exponent)
            return values.astype(np.int64) << np.int64(-self.exponent)
        if values.dtype.kind == "f" and values.dtype.itemsize <= 8:
            return self._floats(values.astype(np.float64))
        if values.dtype.kind in "fiuO":  # long doubles too: as float64 they would be rounded twice
            flat = [self._scalar(value) for value in values.ravel().tolist()]
            _in_range(np.array([min(abs(step), LARGEST_STEPS) for step in flat], dtype=np.int64))
            return np.array(flat, dtype=np.int64).reshape(values.shape)
        raise InvalidValue("to be numbers", "Pass integers, floats or Fractions.")

    def _floats(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not np.isfinite(values).all():
            raise InvalidValue(_FINITE, _FINITE_HINT)
        with np.errstate(over="ignore", under="ignore"):  # infinity is out of range; the point nearest to dust is 0
            scaled = np.ldexp(values, -self.exponent)  # exact inside the range of floats
        _in_range(np.abs(scaled))
        whole = np.floor(scaled)
        up = scaled - whole >= 0.5  # exact below 1/2, and where it is rounded it stays at or above
        result: np.ndarray[Any, Any] = whole.astype(np.int64) + up
        return result

    def value(self, steps: Any) -> Any:
        """Returns what counts of steps stand for.

        They are ints on a grid of whole numbers, else floats (exact to 2^53 steps).
        """
        if not isinstance(steps, np.ndarray):
            return self._value(int(steps))
        if steps.dtype != object:
            return steps if self.exponent == 0 else np.ldexp(steps.astype(float), self.exponent)
        result = np.empty(steps.size, dtype=object if self.exponent >= 0 else np.float64)
        result[:] = [self._value(int(step)) for step in steps.ravel()]
        return result.reshape(steps.shape)

    def _value(self, steps: int) -> int | float:
        if self.exponent >= 0:
            return steps << self.exponent
        try:
            return float(steps * self.step)
        except OverflowError:  # an outlier of a heavy tail; the largest float is a multiple of every step
            return math.copysign(sys.float_info.max, steps)

    def on_grid(self, values: Any) -> bool:
        """Returns whether every value already is a grid point, so that rounding moves nothing."""
        array = np.asarray(values)
        if array.dtype.kind in "iu" and self.exponent <= 0:
            return True
        return all((exact_value(value) / self.step).denominator == 1 for value in array.ravel().tolist())

    def l1_steps(self, sensitivity: Fraction, dimension: int = 1) -> int:
        """Returns how far rounded vectors can be apart in the L1 norm, in steps, given how far exact ones are.

        A coordinate that moves by x steps moves by at most ceil(x) < x + 1 after rounding; d coordinates add up to an
        integer below sensitivity / step + d.
        """
        return math.ceil(sensitivity / self.step) + dimension - 1

    def l2_steps(self, sensitivity: Fraction, dimension: int = 1) -> Fraction:
        """Returns the same in the L2 norm.

        One coordinate is rounded up; else the triangle inequality adds d errors below one step.
        """
        if dimension == 1:
            return Fraction(math.ceil(sensitivity / self.step))
        return sensitivity / self.step + root_above(Fraction(dimension))


def exact_value(value: Any) -> Fraction:
    """Returns a private value as the exact rational it is; refuses what is not finite, without repeating it.

    >>> exact_value(0.75), exact_value(0.1) == Fraction(1, 10)  # a float is the binary number that it is
    (Fraction(3, 4), False)
    """
    if isinstance(value, bool):
        raise InvalidValue("to be a number", "Pass an integer, a float or a Fraction.")
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise InvalidValue(_FINITE, _FINITE_HINT)
        return Fraction(*_ratio(value))
    raise InvalidValue("to be a number", "Pass an integer, a float or a Fraction.")


def _ratio(value: Any) -> tuple[int, int]:
    """Returns a finite real number exactly; a long double loses nothing."""
    top, bottom = value.as_integer_ratio() if hasattr(value, "as_integer_ratio") else float(value).as_integer_ratio()
    return int(top), int(bottom)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | list | tuple) or (hasattr(value, "__array__") and np.ndim(value) > 0)


def _in_range(sizes: np.ndarray[Any, Any]) -> None:
    if sizes.size and not float(np.max(sizes)) < LARGEST_STEPS:
        raise InvalidValue("within 2^62 steps of zero", "Clip to public bounds, or choose a coarser grid.")
