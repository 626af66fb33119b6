"""Exact noise for linear measurements: a public matrix of integers, what one unit can move, and integer noise.

A strategy is a matrix that is public. Rounded to a grid of a power of two it maps integer counts to exact integers, so
that integer noise covers all of it, and its sensitivity is computed from the rounded matrix in integers. What is made
of the noisy measurements afterwards, by an inverse in floats, is post-processing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Grid, root_above
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import DiscreteLaplace, calibrate_noise, draw_variance
from discreet.mechanisms.mechanism import add
from discreet.noise import Bits, discrete_laplace, source_of
from discreet.privacy import Neighbours, events

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_ENTRY = 1 << 24  # of a strategy: relative to it, rounding is below what any error shows
STEPS = 1 << 16  # of the grid of normal noise, per sigma: a sum of thousands of roundings stays small next to it
_LARGEST_SQUARE = 1 << 62  # of a column, so that sums of squares stay in int64
_LIMB = 16  # bits of a part of a count: times 2^24 and 2^20 cells it stays in int64
_PAIRS = 1 << 28  # rows times pairs of cells whose L1 distances are computed one by one
_MANY = 1 << 62


def power_series(power: float, count: int) -> Floats:
    """Returns the first coefficients of (1 - z)^-power: of Toeplitz strategies for running sums, 1 / (1 - z).

    c_0 = 1, c_k = c_(k-1) (k - 1 + power) / k; for powers between 0 and 1 they are positive and fall.

    >>> power_series(0.5, 4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, count)
    return np.concatenate([[1.0], np.cumprod((k - 1 + power) / k)])


def inverse_series(series: Floats) -> Floats:
    """Returns as many coefficients of 1 / c(z), by Newton's iteration g <- g (2 - c g), which doubles their number.

    >>> inverse_series(np.array([1.0, -1.0, 0.0, 0.0])).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    found = np.array([1 / series[0]])
    while len(found) < len(series):
        length = min(2 * len(found), len(series))
        error = -_product(series[:length], found, length)
        error[0] += 2
        found = _product(found, error, length)
    return found


def _product(left: Floats, right: Floats, length: int) -> Floats:
    """Returns the first coefficients of the product of two series, at most so many."""
    size = 2 * length
    return np.fft.irfft(np.fft.rfft(left, size) * np.fft.rfft(right, size), size)[:length]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one unit can hold: at most `amount` in each of at most `cells` cells, of either sign if `signed`.

    >>> Contribution(cells=3, amount=2)
    Contribution(cells=3, amount=2, signed=False)
    """

    cells: int = 1
    amount: int = 1
    signed: bool = False

    def __post_init__(self) -> None:
        check.integer(cells=self.cells, at_least=1)
        check.integer(amount=self.amount, at_least=1, at_most=1 << 62)
        check.instance(bool, signed=self.signed)


ONE_CELL = Contribution()


class Strategy(Protocol):
    """What can be measured exactly: a public linear map to integers, and how far one unit can move its values."""

    @property
    def grid(self) -> Grid:
        """Returns what a step is."""

    def product(self, counts: Any) -> NDArray[Any]:
        """Returns the exact measurements of counts, in steps."""

    def l2_squared(self, contribution: Contribution = ..., neighbours: Neighbours | str = ...) -> int:
        """Returns a square that the L2 norm of one unit's move, in steps, never exceeds."""

    def l1(self, contribution: Contribution = ..., neighbours: Neighbours | str = ...) -> int:
        """Returns a number that the L1 norm of one unit's move, in steps, never exceeds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegerStrategy:
    """A public matrix whose entries are whole steps of a grid; a row is a measurement, a column a cell.

    Attributes:
        matrix: the entries, in steps.
        grid: what a step is.

    >>> strategy = IntegerStrategy.round_matrix([[1, 0.5], [0, 1]])
    >>> strategy.matrix.tolist(), strategy.grid.step
    ([[2, 1], [0, 2]], Fraction(1, 2))
    >>> strategy.l2_squared(), strategy.l2_squared(neighbours=Neighbours.REPLACE)
    (5, 5)
    """

    matrix: Integers
    grid: Grid = Grid.integers()

    def __post_init__(self) -> None:
        shape = f"an array of shape {self.matrix.shape}"
        if self.matrix.ndim != 2 or not self.matrix.size or self.matrix.dtype != np.int64:
            raise InvalidParameter("matrix", shape, "to be a matrix of integers that is not empty")
        if not self.matrix.any():
            raise InvalidParameter("matrix", shape, "to measure something", "All of its entries are 0.")
        if len(self.matrix) * self._largest**2 >= _LARGEST_SQUARE or self._largest > LARGEST_ENTRY:
            raise InvalidParameter("matrix", shape, f"to have entries of at most {LARGEST_ENTRY} steps, and fewer rows")

    @classmethod
    def round_matrix(cls, matrix: Any, *, largest: int = LARGEST_ENTRY) -> IntegerStrategy:
        """Rounds a public matrix to the coarsest grid that holds it exactly, else to one with `largest` steps.

        Raises:
            InvalidParameter: if it is no matrix of finite numbers.
        """
        try:
            given = np.asarray(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidParameter("matrix", type(matrix).__name__, "to be a matrix of numbers") from None
        if given.ndim != 2 or not given.size or not np.isfinite(given).all() or not given.any():
            raise InvalidParameter("matrix", f"an array of shape {given.shape}", "to be a matrix of finite numbers")
        finest = math.floor(math.log2(float(np.max(np.abs(given))) / largest)) + 1
        exponent = next((e for e in range(0, finest, -1) if _whole(np.ldexp(given, -e))), finest)
        steps = np.floor(np.ldexp(given, -exponent) + 0.5).astype(np.int64)
        return cls(matrix=np.clip(steps, -largest, largest), grid=Grid(exponent))

    @property
    def _largest(self) -> int:
        return max(-int(self.matrix.min()), int(self.matrix.max()))

    @property
    def rows(self) -> int:
        """Returns how many measurements there are."""
        return int(self.matrix.shape[0])

    @property
    def cells(self) -> int:
        """Returns how many counts are measured."""
        return int(self.matrix.shape[1])

    def values(self) -> Floats:
        """Returns the rounded matrix in its own units; floats hold it exactly."""
        return np.ldexp(self.matrix.astype(np.float64), self.grid.exponent)

    def product(self, counts: Any) -> NDArray[Any]:
        """Returns the exact measurements, in steps: int64, or Python ints where that is too small.

        A count is added up in parts of 16 bits, whose sums stay in int64 whatever the counts are.

        Raises:
            InvalidValue: if the counts are not of an integer type, or not as many as there are cells.
        """
        given = whole_counts(counts, (self.cells,))
        parts = [(given >> shift) & ((1 << _LIMB) - 1) for shift in (0, 16, 32)] + [given >> 48]
        sums = self.matrix @ np.stack(parts, axis=1)
        total = np.sum([sums[:, place].astype(object) << (_LIMB * place) for place in range(4)], axis=0)
        return np.asarray(total.astype(np.int64) if max(map(abs, total)) < _MANY else total)

    def l2_squared(
        self, contribution: Contribution = ONE_CELL, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    ) -> int:
        """Returns a square that the L2 norm of one unit's move, in steps, never exceeds.

        With G the exact Gram matrix of the columns a_j: one cell moves it by amount^2 max G_jj, and replacing one unit
        by another by amount^2 max ||a_i - a_j||^2. A unit that is replaced may have stood in no cell at all, where it
        was outside of what is counted, so that max ||a_j||^2 counts as well. These are attained. The squared norm is
        convex in what a unit holds, so that of several cells its largest value lies at ends: it is at most amount^2
        times the sum of G_ij over pairs of a set S of cells, which the largest entries of rows of G bound, and the
        triangle inequality does.
        """
        replaced = Neighbours(neighbours) is Neighbours.REPLACE
        single = contribution.cells == 1
        if single and not replaced:
            steps = int(np.max(np.sum(self.matrix * self.matrix, axis=0)))
        elif single:
            steps = _most_apart(self.gram(), signed=contribution.signed)
        else:
            steps = self._several(contribution, replaced=replaced)
        return steps * contribution.amount**2

    def _several(self, contribution: Contribution, *, replaced: bool) -> int:
        gram = self.gram()
        both = contribution.signed
        one = _set_bound(np.abs(gram) if both else np.maximum(gram, 0), contribution.cells)
        return min(4 * one, _set_bound(np.abs(gram), 2 * contribution.cells) * (4 if both else 1)) if replaced else one

    def l1(self, contribution: Contribution = ONE_CELL, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> int:
        """Returns a number that the L1 norm of one unit's move, in steps, never exceeds.

        The largest L1 norms of columns add up; for one unit that moves from a cell to another it is the largest
        distance of two columns, or norm of one, where there are not too many pairs to try.
        """
        norms = np.sort(np.sum(np.abs(self.matrix), axis=0))[::-1]
        replaced = Neighbours(neighbours) is Neighbours.REPLACE
        if replaced and contribution.cells == 1 and not contribution.signed and self.cells**2 * self.rows <= _PAIRS:
            steps = max(int(norms[0]), *(self._farthest(column) for column in self.matrix.T))
        elif replaced:
            largest = norms.repeat(2) if contribution.signed else norms  # the same cell may change its sign
            steps = sum(largest[: 2 * contribution.cells].tolist())
        else:
            steps = sum(norms[: contribution.cells].tolist())
        return int(steps) * contribution.amount

    def _farthest(self, column: Integers) -> int:
        return int(np.max(np.sum(np.abs(self.matrix - column[:, None]), axis=0)))

    def gram(self) -> Integers:
        """Returns the exact Gram matrix of the columns, by products of floats that hold all their sums exactly."""
        half = (53 - self.rows.bit_length()) // 2
        high, low = (self.matrix >> half).astype(float), (self.matrix & ((1 << half) - 1)).astype(float)
        cross = (high.T @ low).astype(np.int64)
        result = (low.T @ low).astype(np.int64) + ((cross + cross.T) << half)
        return np.asarray(result + ((high.T @ high).astype(np.int64) << (2 * half)))


def _whole(array: Floats) -> bool:
    return bool((array == np.floor(array)).all()) and float(np.max(np.abs(array))) <= LARGEST_ENTRY


def _most_apart(gram: Integers, *, signed: bool) -> int:
    """Returns the largest squared distance of two columns, or norm of one; if signed, the largest of sums, too."""
    norms = np.diag(gram)
    across = np.abs(gram) if signed else -gram
    return max(int(np.max(norms)), int(np.max(norms[:, None] + norms + 2 * across)))


def _set_bound(gram: Integers, count: int) -> int:
    """Bounds the sum of entries over pairs of any set of so many cells, of a matrix without negative entries."""
    size = min(count, len(gram))
    others = gram.copy()
    np.fill_diagonal(others, 0)
    largest = np.partition(others, len(gram) - size, axis=1)[:, len(gram) - size + 1 :]
    rows = sorted((int(a) + sum(map(int, b)) for a, b in zip(np.diag(gram), largest, strict=True)), reverse=True)
    norms = sorted(map(int, np.diag(gram)), reverse=True)[:size]
    triangle = sum(math.isqrt(norm) + 1 for norm in norms) ** 2
    return min(sum(rows[:size]), triangle)


def whole_counts(counts: Any, shape: tuple[int, ...]) -> Integers:
    """Returns private counts as int64 of a known shape; the type alone decides, not the values.

    Raises:
        InvalidValue: if they are not of an integer type, or of another shape.
    """
    given = np.asarray(counts)
    if given.dtype.kind not in "iu" or given.dtype == np.uint64:
        raise InvalidValue("to be of an integer type", "Count rows as integers (int64) before the release.")
    if given.shape != shape:
        raise InvalidValue(f"of the shape {shape}", f"These have the shape {given.shape}.")
    return given.astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrategyMechanism:
    """Releases noisy measurements of private counts.

    Formal guarantee: `event`, for all counts that differ by what one unit can contribute. The exact integers A x move
    by at most the sensitivity of `noise`, which was computed from the same integer matrix; normal noise is the ideal
    one, correctly rounded (mu-GDP), Laplace noise is discrete (pure DP).

    Attributes:
        strategy: what is measured.
        noise: of each measurement, in steps of the strategy's grid.

    >>> from discreet.noise import SeededBits
    >>> totals = IntegerStrategy.round_matrix([[1, 1, 1], [1, 0, 0]])
    >>> mechanism = StrategyMechanism.gaussian(totals, noise_multiplier=2)
    >>> mechanism.event, mechanism.release([5, 6, 7], bits=SeededBits(1)).shape
    (Gaussian(noise_multiplier=Fraction(2, 1)), (2,))
    """

    strategy: Strategy
    noise: Gaussian | DiscreteLaplace

    @classmethod
    def gaussian(
        cls,
        strategy: Strategy,
        *,
        noise_multiplier: check.Number,
        contribution: Contribution = ONE_CELL,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> StrategyMechanism:
        """Returns the mechanism with normal noise of so many sensitivities."""
        move = root_above(Fraction(strategy.l2_squared(contribution, neighbours)))
        multiplier = check.positive(noise_multiplier=noise_multiplier, floats="exact")
        grid = Grid.finer_than(multiplier * move / STEPS)
        noise = Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=move, grid=grid)
        return cls(strategy=strategy, noise=noise)

    @classmethod
    def laplace(
        cls,
        strategy: Strategy,
        *,
        epsilon: check.Number,
        contribution: Contribution = ONE_CELL,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> StrategyMechanism:
        """Returns the mechanism with discrete Laplace noise, for a pure epsilon."""
        event = calibrate_noise(strategy.l1(contribution, neighbours), check.positive(epsilon=epsilon))
        return cls(strategy=strategy, noise=DiscreteLaplace(scale=event.scale, sensitivity=event.sensitivity))

    @property
    def event(self) -> events.Gaussian | events.DiscreteLaplace:
        """Returns what one release costs, for accounting."""
        return self.noise.event

    @property
    def variance(self) -> float:
        """Returns the variance of the noise of each measurement, in units of the strategy.

        Rounding normal noise to its grid adds a twelfth of a step squared.
        """
        unit = float(self.strategy.grid.step) ** 2
        if isinstance(self.noise, Gaussian):
            return unit * (float(self.noise.sigma) ** 2 + float(self.noise.grid.step) ** 2 / 12)
        return unit * draw_variance(self.noise.scale)

    def release(self, counts: Any, *, bits: Bits | None = None) -> Floats:
        """Releases the measurements of private counts, in units of the strategy.

        Raises:
            InvalidValue: if the counts are not of an integer type, or not as many as there are cells.
        """
        exact = self.strategy.product(counts)
        source = source_of(bits)
        if isinstance(self.noise, Gaussian):
            noisy = self.noise.release(exact, bits=source)
        else:
            noisy = add(exact, discrete_laplace(self.noise.scale, exact.shape, bits=source))
        return np.asarray(np.ldexp(np.asarray(noisy, dtype=np.float64), self.strategy.grid.exponent))
