"""Staircase noise: the best scalar noise under pure differential privacy when epsilon is large."""

from __future__ import annotations

import math
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Grid, Real
from discreet.mechanisms.mechanism import LatticeMechanism, add, numeric, public_grid, reasonable_noise
from discreet.mechanisms.tails import at_most, smallest_whole
from discreet.noise import Bits, Coin, geometric, source_of, uniform_below
from discreet.noise.rng import TURNS, endless
from discreet.privacy import events

STEPS = 1024  # of the default grid, per sensitivity: the stairs come within a thousandth of their best form
LARGEST_SCALE = 1 << 50  # of the noise in steps; its outliers stay in int64
LARGEST = 1 << 62
LARGEST_ENTRIES = 10**6


class Criterion(Enum):
    """What the first stair is chosen to make small.

    >>> chosen = {each: Staircase(epsilon=3, sensitivity=1, minimise=each).stairs for each in Criterion}
    >>> for stairs in chosen.values():  # in steps of 1 / 1024 of the sensitivity
    ...     print(round(stairs.mean(Criterion.ABSOLUTE) / 1024, 3), round(stairs.mean(Criterion.VARIANCE) / 1024**2, 3))
    0.235 0.16
    0.245 0.153
    """

    ABSOLUTE = "absolute"
    VARIANCE = "variance"

    @classmethod
    def _missing_(cls, value: object) -> Criterion:
        raise InvalidParameter("minimise", value, "to be 'absolute' or 'variance'")


@dataclass(frozen=True, slots=True)
class Stairs:
    """P(z) = a b^(k + [j >= r]), |z| = k N + j, 0 <= j < N, b = exp(-epsilon): N steps to a stair, r of them high."""

    epsilon: Fraction
    steps: int
    high: int

    @classmethod
    def best(cls, epsilon: Fraction, steps: int, criterion: Criterion) -> Stairs:
        """Returns the stairs of the smallest mean, next to the best real share of high steps.

        Any choice is equally private.
        """
        around = math.floor(_share(float(epsilon), criterion) * steps)
        tried = sorted({min(max(r, 1), steps) for r in range(around - 1, around + 3)})
        return min((cls(epsilon, steps, r) for r in tried), key=lambda stairs: stairs.mean(criterion))

    def mean(self, criterion: Criterion = Criterion.ABSOLUTE) -> float:
        """Returns E|Z| or E Z^2, in steps; in floats, for it decides nothing but accuracy."""
        b, rest, N, r = math.exp(-self.epsilon), -math.expm1(-self.epsilon), self.steps, self.high
        a = rest / (2 * r + 2 * b * (N - r) - rest)
        blocks = (1 / rest, b / rest**2, b * (1 + b) / rest**3)  # sums of b^k, k b^k, k^2 b^k
        power = 1 if criterion is Criterion.ABSOLUTE else 2
        total = 0.0
        for weight, sums in ((1.0, _powers(r)), (b, tuple(x - y for x, y in zip(_powers(N), _powers(r), strict=True)))):
            for i in range(power + 1):  # (k N + j)^power, multiplied out
                total += weight * math.comb(power, i) * N**i * blocks[i] * sums[power - i]
        return 2 * a * total

    def tail(self, t: int) -> Real:
        """Returns P(|Z| > t): the rest of the block of t + 1, and a geometric series of whole blocks."""
        k, j = divmod(t + 1, self.steps)
        N, r = self.steps, self.high

        def probability(digits: int) -> Enclosure:
            b = Enclosure.of(-self.epsilon, digits).exp()
            rest = 1 - b
            left = b * (N - max(j, r)) + max(0, r - j)
            weight = left + b * (b * (N - r) + r) / rest
            scale = b * (2 * (N - r)) + 2 * r - rest
            return Enclosure.of(-self.epsilon * k, digits).exp() * weight * rest * 2 / scale

        return probability

    def draw(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """Draws numbers: a stair, its high or low part, a place on it, a sign; minus zero is drawn again."""
        result = np.empty(count, dtype=np.int64)
        missing = np.arange(count)
        for _ in range(TURNS):
            if not missing.size:
                return result
            stair = geometric(1 / self.epsilon, missing.size, bits=bits)
            if int(stair.max()) > LARGEST // self.steps:
                raise endless()  # a draw that leaves int64, about once in e^1000
            size = stair * self.steps + self._places(missing.size, bits)
            negative = uniform_below(2, missing.size, bits=bits) == 1
            kept = (size != 0) | ~negative
            result[missing[kept]] = np.where(negative, -size, size)[kept]
            missing = missing[~kept]
        raise endless()

    def _places(self, count: int, bits: Bits) -> NDArray[np.int64]:
        place = uniform_below(self.high, count, bits=bits)
        if self.high < self.steps:
            low = np.flatnonzero(_low_part(self).toss_many(count, bits))
            place[low] = self.high + uniform_below(self.steps - self.high, low.size, bits=bits)
        return place

    def draw_one(self, bits: Bits) -> int:
        """Draws one number of the same law, without the cost of arrays."""
        for _ in range(TURNS):
            low = self.high < self.steps and _low_part(self).toss(bits)
            start, width = (self.high, self.steps - self.high) if low else (0, self.high)
            size = geometric(1 / self.epsilon, bits=bits) * self.steps + start + uniform_below(width, bits=bits)
            if not bits.integer(1):
                return size
            if size:
                return -size
        raise endless()


@lru_cache(maxsize=1024)
def _low_part(stairs: Stairs) -> Coin:
    """Returns the coin that says whether a draw falls on the low part of its stair, of weight b (N - r) against r.

    Its probability is no rational number, because b = exp(-epsilon) is transcendental.
    """
    ratio = Fraction(stairs.high, stairs.steps - stairs.high)
    return Coin(lambda digits: 1 / (Enclosure.of(stairs.epsilon, digits).exp() * ratio + 1))


def _powers(n: int) -> tuple[int, int, int]:
    """Returns the sums of j^0, j^1, j^2 over 0 <= j < n."""
    return n, n * (n - 1) // 2, n * (n - 1) * (2 * n - 1) // 6


def _share(epsilon: float, criterion: Criterion) -> float:
    """Returns the best share of high steps for real noise (Geng, Kairouz, Oh, Viswanath 2015, Theorems 4 and 5)."""
    if criterion is Criterion.ABSOLUTE:
        return 1 / (1 + math.exp(epsilon / 2)) if epsilon < 1000 else 0.0
    b, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    if rest < 1e-3:  # the formula is a difference of large numbers; its limit for small epsilon is 1/2
        return 0.5
    return -b / rest + math.cbrt((b - 2 * b**2 + 2 * b**4 - b**5) / 2) / rest**2


@dataclass(frozen=True, slots=True, init=False)
class Staircase(LatticeMechanism):
    """Adds exact staircase noise on a public grid; for epsilon above 3 it errs much less than Laplace noise.

    Formal guarantee: pure epsilon-DP for every two numbers at most `sensitivity` apart. The sensitivity is N steps of
    the grid, rounding included; N whole steps change |z| by at most N, hence the exponent k + [j >= r] of `Stairs` by
    at most one (Geng, Kairouz, Oh, Viswanath 2015). On counts (N = 1) it is the discrete Laplace law.

    In an array every entry that moves may cost a stair, however little it moves, so the L1 norm is no measure here.
    `entries` is how many entries one unit can move, each by at most `sensitivity`; each then has noise for epsilon /
    entries. Without it only single numbers are taken.

    Args:
        epsilon: above 0.
        sensitivity: above 0, of one entry.
        grid: a `Grid`, or its step; None is the coarsest with at least 1024 steps to the sensitivity.
        minimise: "absolute" for the mean absolute error, "variance" for the variance.
        entries: how many entries of an array one unit can move; None refuses arrays.

    Raises:
        InvalidParameter: outside these domains.

    >>> Staircase(epsilon=5, sensitivity=1).event
    Pure(epsilon=Fraction(5, 1))
    >>> Staircase(epsilon=5, sensitivity=1).interval(10.0)
    Interval(low=9.52880859375, high=10.47119140625)
    """

    epsilon: Fraction
    sensitivity: Fraction
    grid: Grid
    minimise: Criterion
    entries: int | None
    stairs: Stairs

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number,
        grid: Grid | Number | None = None,
        minimise: Criterion | Literal["absolute", "variance"] = Criterion.ABSOLUTE,
        entries: int | None = None,
    ) -> None:
        budget, move = check.positive(epsilon=epsilon), check.positive(sensitivity=sensitivity)
        count = 1 if entries is None else check.integer(entries=entries, at_least=1, at_most=LARGEST_ENTRIES)
        found = Grid.finer_than(move / STEPS) if grid is None else public_grid(grid)
        steps = public_grid(found).l1_steps(move)
        reasonable_noise(move * count / budget, "sensitivity")
        if steps * count > LARGEST_SCALE * min(budget, Fraction(1)):
            hint = "Use a coarser grid, or Laplace, which is as good for a small epsilon."
            raise InvalidParameter("grid", grid, "to have at most 2^50 epsilon steps to the sensitivity", hint)
        assign(
            self,
            epsilon=budget,
            sensitivity=move,
            grid=found,
            minimise=Criterion(minimise),
            entries=None if entries is None else count,
            stairs=Stairs.best(budget / count, steps, Criterion(minimise)),
        )

    @property
    def event(self) -> events.Pure:
        """Returns what one release costs, for accounting."""
        return events.Pure(self.epsilon)

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Releases the value on the grid, plus noise.

        Raises:
            InvalidValue: if the value is no finite number, or an array although `entries` is not given.
        """
        found = numeric(value)
        steps = self.grid.steps(found)
        source = source_of(bits)
        if not isinstance(found, np.ndarray):
            return self.grid.value(steps + self.stairs.draw_one(source))
        if self.entries is None:
            raise InvalidValue("to be a single number", "Pass entries=, how many entries one unit can move.")
        return self.grid.value(add(steps, self.stairs.draw(found.size, source).reshape(found.shape)))

    def noise_steps(self, outside: Fraction) -> int:
        """Returns the smallest number of steps that the noise of one entry exceeds with at most this probability."""
        return _reach(self.stairs, outside)


@lru_cache(maxsize=4096)
def _reach(stairs: Stairs, outside: Fraction) -> int:
    return smallest_whole(lambda t: at_most(stairs.tail(t), outside))
