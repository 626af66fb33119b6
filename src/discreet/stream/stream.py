"""The base of all streams: take one value, add noise, save, return an estimate, at most as often as declared."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue, StreamError
from discreet.exact import Grid
from discreet.mechanisms.mechanism import numeric, on_grid, public_grid, whole_by_type
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Loss
from discreet.privacy.events import Event
from discreet.stream.factor import EstimateError, Participation, StreamLine, StreamMechanism
from discreet.stream.state_file import File, Keeper, StateFile
from discreet.stream.toeplitz import LARGEST_VALUE

LARGEST_SIZE = 10**6

Bounds = tuple[check.Number, check.Number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The declaration of a stream's values: their grid, their bounds, how many there are per period.

    Args:
        grid: values are rounded to it; whole numbers unless it is given.
        bounds: of each value; others are refused, or clipped.
        clip: whether they are clipped.
        size: how many there are per period; None for one number.
        sensitivity: how far one unit can move the values of one period: one number, or all together in the L2 norm
            (in the L1 norm under a pure budget).
    """

    grid: Grid
    sensitivity: Fraction
    bounds: tuple[Fraction, Fraction] | None = None
    clip: bool = False
    size: int | None = None
    ends: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        low, high = self.bounds or (-LARGEST_VALUE * self.grid.step, LARGEST_VALUE * self.grid.step)
        if not low < high:
            raise InvalidParameter("bounds", f"({low}, {high})", "to be two numbers, the lower one first")
        ends = self.grid.steps(low), self.grid.steps(high)
        if max(map(abs, ends)) > LARGEST_VALUE:
            raise InvalidParameter("bounds", f"({low}, {high})", "within 2^52 steps of zero", "Choose a coarser grid.")
        object.__setattr__(self, "ends", ends)

    @property
    def move(self) -> Fraction:
        """Returns how far one unit moves the rounded values of a period, in steps.

        One number that moves by x steps before rounding moves by at most ceil(x) after it. Several numbers must lie on
        the grid, where nothing is rounded.
        """
        return (
            Fraction(self.grid.l1_steps(self.sensitivity)) if self.size is None else self.sensitivity / self.grid.step
        )

    @property
    def rounding(self) -> float:
        """Returns how far rounding moves one value, in steps: half a step, unless values are whole by declaration."""
        return 0.0 if self.grid.exponent == 0 or self.size is not None else 0.5

    def steps(self, value: Any) -> list[int]:
        """Returns the values of a period as integers on the grid.

        Raises:
            InvalidValue: if they are not as many as declared, no finite numbers, off the grid or out of bounds.
        """
        if self.size is None and self.grid.exponent == 0 and _is_whole(value):
            return [self._inside(int(value))]
        found = numeric(value)
        if np.shape(found) != (() if self.size is None else (self.size,)):
            wanted = "one number" if self.size is None else f"{self.size} numbers"
            raise InvalidValue(f"of a period to be {wanted}", "Pass one for each line of the stream, in their order.")
        if (self.grid.exponent == 0 or self.size is not None) and not whole_by_type(found, self.grid):
            self._check_on_grid(found)
        return [self._inside(int(step)) for step in np.ravel(self.grid.steps(found)).tolist()]

    def _check_on_grid(self, found: Any) -> None:
        if not on_grid(np.asarray(found), self.grid):
            raise InvalidValue("on the grid", "Pass whole numbers, or the step of a finer grid as grid=, e.g. 2**-10.")

    def _inside(self, steps: int) -> int:
        low, high = self.ends
        if low <= steps <= high:
            return steps
        if not self.clip:
            raise InvalidValue("to lie within its bounds", "Pass wider bounds, or clip=True.")
        return low if steps < low else high


def _is_whole(value: Any) -> bool:
    """Returns whether a value is surely a whole number: most values are, and need no further look."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class Stream:
    """A stream of values, released one period at a time, and paid for as a whole.

    Threads may share it. A process that is forked, a copy and a pickle may not: they would release the same periods a
    second time.
    """

    def __init__(
        self,
        mechanism: StreamMechanism,
        values: Values,
        *,
        horizon: int,
        window: int | None = None,
        participation: Participation,
        budget: Loss,
        confidence: check.Number,
        bits: Bits | None,
        parameters: Mapping[str, Any],
        state: File | Keeper | None,
        witness: File | None,
    ) -> None:
        self._mechanism, self._values, self._limit = mechanism, values, horizon
        self._participation, self._budget = participation, budget
        self._window = horizon if window is None else window
        self._confidence = check.probability(confidence=confidence)
        source = source_of(bits)
        self._private = source.private
        self._noise = mechanism.noise(source)
        self._event = mechanism.event
        self._step = float(values.grid.step)
        self._lines = [mechanism.line() for _ in range(values.size or 1)]
        self._errors = mechanism.errors(self._confidence)
        self._count, self._last = 0, None
        self._owner, self._lock, self._whole = os.getpid(), threading.Lock(), True
        known = {**parameters, "private": source.private}
        self._keeper = StateFile(state, known, witness) if isinstance(state, str | os.PathLike) else state
        for entry in self._keeper.take_periods() if self._keeper is not None else ():
            self._replay(entry["values"], entry["noisy"])

    _last: Estimate | None

    @property
    def event(self) -> Event:
        """Returns what the whole stream costs, however many of its periods are released."""
        return self._event

    @property
    def budget(self) -> Loss:
        """Returns what the whole stream was calibrated to."""
        return self._budget

    @property
    def method(self) -> str:
        """Returns how sums are measured, "square root" for instance."""
        return self._mechanism.method

    @property
    def participation(self) -> Participation:
        """Returns the unit of privacy: in how many periods one unit may be."""
        return self._participation

    @property
    def usable(self) -> bool:
        """Returns whether it can go on: neither closed nor interrupted, and in the process it belongs to."""
        return self._whole and self._owner == os.getpid()

    @property
    def private(self) -> bool:
        """Returns whether the noise may be relied on: False if it is seeded."""
        return self._private

    @property
    def released(self) -> int:
        """Returns how many periods are released."""
        return self._count

    @property
    def last(self) -> Estimate | None:
        """Returns the last release again; None before the first."""
        return self._last

    def variances(self, periods: int) -> list[float]:
        """Returns the variance of the estimate in each of the first periods: a public fact, before any release."""
        errors = self._mechanism.errors(self._confidence)
        return [error.variance * self._step**2 for error in _first(errors, min(periods, self._limit))]

    def release(self, value: Any, *, period: int | None = None) -> Estimate:
        """Returns the private sum so far, after the next value; it is saved before it is returned.

        Args:
            value: of the next period, or an array with one for each line.
            period: its number, from 1: the next one, or the last one again, which returns what was released.

        Raises:
            InvalidValue: if the value cannot be taken as it is; the stream stays as it was.
            StreamError: if the stream is at its end, was interrupted or belongs to another process.
        """
        with self._lock:
            if period is not None and self._is_last(check.integer(period=period, at_least=1)):
                return self._last  # type: ignore[return-value] # there is one if a period was released
            self.check()
            steps = self._values.steps(value)
            self._whole = False  # until all sides agree again: whatever interrupts this ends the stream
            noisy = [self._noise(line.measure(x)) for line, x in zip(self._lines, steps, strict=True)]
            if self._keeper is not None:
                self._keeper.append(steps, noisy)
            estimate = self._estimate(noisy)
            self._whole = True
            return estimate

    def decode_estimates(self, released: Sequence[Sequence[Sequence[int]]]) -> list[Estimate]:
        """Returns the estimates of noisy measurements, period by period: post-processing, which keeps nothing."""
        lines = [self._mechanism.line() for _ in self._lines]
        errors = self._mechanism.errors(self._confidence)
        return [self._build_estimate(lines, noisy, next(errors), t) for t, noisy in enumerate(released, start=1)]

    def _is_last(self, period: int) -> bool:
        if period not in (self._count, self._count + 1):
            hint = "Release periods in order, one by one."
            raise InvalidParameter("period", period, f"to be {self._count + 1}, the next one", hint)
        return period == self._count

    def check(self) -> None:
        """Refuses to go on with a stream that cannot: before anything is read for its next period.

        Raises:
            StreamError: if it is at its end, was interrupted or closed, or belongs to another process.
        """
        if self._owner != os.getpid():
            raise StreamError(
                "The stream belongs to another process", "Close it there, then open it here from its state."
            )
        if not self._whole:
            raise StreamError("A release was interrupted, or the stream is closed", "Open it again from its state.")
        if self._count >= self._limit:
            raise StreamError(
                f"All {self._limit} periods of the stream are released", "Start a new stream, which costs again."
            )

    def _replay(self, steps: Sequence[int], noisy: Sequence[Sequence[int]]) -> None:
        """Takes a period from the state: the same values and the same noise, nothing drawn."""
        for line, value in zip(self._lines, steps, strict=True):
            line.measure(value)
        self._estimate(noisy)

    def _estimate(self, noisy: Sequence[Sequence[int]]) -> Estimate:
        """Returns the estimate of the next period, made of what was measured with noise, and of nothing else."""
        self._count += 1
        self._last = self._build_estimate(self._lines, noisy, next(self._errors), self._count)
        return self._last

    def _build_estimate(
        self, lines: list[StreamLine], noisy: Sequence[Sequence[int]], error: EstimateError, period: int
    ) -> Estimate:
        far = (error.reach + self._values.rounding * min(period, self._window)) * self._step
        found = [line.absorb(list(each)) * self._step for line, each in zip(lines, noisy, strict=True)]
        if self._values.size is None:
            (value,) = found
            ends = value - far, value + far
            return Estimate.quick(value, *ends, self._event, self._confidence, private=self._private)
        array = np.array(found)
        return Estimate(
            array, array - far, array + far, self._event, confidence=self._confidence, private=self._private
        )

    def close(self) -> None:
        """Releases the state file; the stream is then opened again from it."""
        with self._lock:
            self._whole = False
            if self._keeper is not None:
                self._keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("A stream cannot be copied or pickled: both copies would release the same periods.")


def _first(errors: Iterator[EstimateError], count: int) -> Iterator[EstimateError]:
    return (error for _, error in zip(range(count), errors, strict=False))


def values_of(
    *,
    sensitivity: check.Number,
    grid: Grid | check.Number,
    bounds: Bounds | None,
    clip: bool,
    size: int | None,
) -> Values:
    """Returns checked declarations of a stream's values."""
    ends = None if bounds is None else (check.rational(bounds=bounds[0]), check.rational(bounds=bounds[1]))
    return Values(
        grid=public_grid(grid),
        sensitivity=check.positive(sensitivity=sensitivity),
        bounds=ends,
        clip=check.instance(bool, clip=clip),
        size=None if size is None else check.integer(size=size, at_least=1, at_most=LARGEST_SIZE),
    )
