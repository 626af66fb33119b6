"""Running sums and sliding windows of a stream: the total so far, or of the last periods, in every period."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from discreet import check
from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits
from discreet.privacy import ApproxDP, Loss, PureDP
from discreet.stream import bounded_memory, toeplitz
from discreet.stream.bounded_memory import bounded_memory_factor
from discreet.stream.factor import Participation, StreamMechanism, SumFactorization
from discreet.stream.gaussian_factor import GaussianFactor
from discreet.stream.laplace_tree import best_tree
from discreet.stream.state_file import File, Keeper
from discreet.stream.stream import Bounds, Stream, Values, values_of
from discreet.stream.toeplitz import banded_factor, square_root_factor, window_factor
from discreet.stream.triangular import LARGEST_ORDER, optimal_running_sum, optimal_window

Method = Literal["square root", "optimal", "bounded memory", "tree"]
METHODS = ("square root", "optimal", "bounded memory", "tree")

EVENT = Participation()
_LONG = 1 << 14  # periods, beyond which the memory of the square root is worth saving
_FEW = 1 << 10  # periods, up to which a tree may be better than Gaussian noise


class RunningSum(Stream):
    """Releases the total so far, after every period, for one budget that covers the whole stream.

    The error grows with the square of the logarithm of the horizon, where noise on every value would grow with the
    horizon itself: a year of daily totals at rho = 1/2 has a standard error of at most 2.95, instead of 19.1.

    *Methods.* "square root" measures the stream through the square root of the running sum (Fichtenberger, Henzinger,
    Upadhyay 2023): the default with a delta or a rho, up to 16,384 periods. "bounded memory" is its approximation by a
    few exponentials, a thousandth worse: the default beyond, and for an unknown horizon. "optimal" has the least mean
    variance (up to 4,096 periods). "tree" adds Laplace noise to blocks of periods: the default for a pure budget.

    *Unknown horizon.* With `horizon=None` the stream may have up to 2^40 periods. From the eighth period on its
    standard error is at most 1.5 times that of a stream whose horizon was known to end right there.

    Formal guarantee: everything that is ever released is described by `event`, and satisfies the budget, for units that
    are in at most `participation` periods and move the value of each by at most `sensitivity`; also if values depend
    on earlier releases. See `GaussianFactor` and `LaplaceTree` for the theorems. Sensitivities are computed in exact
    integers from factors on a public grid.

    Args:
        horizon: how many periods there are; None if that is unknown.
        budget: of the whole stream: Budget(rho=0.5), Budget(epsilon=1, delta=1e-6), or Budget(epsilon=1) for pure DP.
        sensitivity: how far one unit can move the value of one period; of a vector, in the L2 norm, under a pure budget
            in the L1 norm. For a count of people it is 1.
        participation: in how many periods one unit may be; one, unless given.
        method: one of the methods above; chosen by public facts unless given.
        size: for one stream per group, the number of groups: a value is then an array of so many numbers.
        grid: the step, a power of two, that values are rounded to; whole numbers unless given.
        bounds: of each value; others are refused.
        clip: whether they are clipped instead.
        confidence: of each interval.
        state: a file for the state, so that a restart goes on where the stream stopped; it holds private values, and is
            readable by its owner only.
        witness: the file by which an old copy of the state is noticed; next to the state unless given.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if one of them is outside its domain; nothing was drawn.
        StreamError: if the state cannot be relied on.

    >>> from discreet.privacy import Budget
    >>> visits = RunningSum(horizon=365, budget=Budget(rho=0.5), sensitivity=1)
    >>> today = visits.release(120)
    >>> today.low < today.value < today.high
    True
    >>> round(max(visits.variances(365)) ** 0.5, 3)
    2.944
    >>> visits.method, visits.event
    ('square root', Gaussian(noise_multiplier=Fraction(1, 1)))
    """

    def __init__(
        self,
        horizon: int | None,
        *,
        budget: Loss,
        sensitivity: check.Number = 1,
        participation: Participation = EVENT,
        method: Method | None = None,
        size: int | None = None,
        grid: Grid | check.Number = Grid.integers(),
        bounds: Bounds | None = None,
        clip: bool = False,
        confidence: check.Number = CONFIDENCE,
        state: File | Keeper | None = None,
        witness: File | None = None,
        bits: Bits | None = None,
    ) -> None:
        values = values_of(sensitivity=sensitivity, grid=grid, bounds=bounds, clip=clip, size=size)
        unit = check.instance(Participation, participation=participation)
        if horizon is not None:
            check.integer(horizon=horizon, at_least=1, at_most=bounded_memory.LARGEST_HORIZON)
        mechanism = _mechanism(horizon, check_budget(budget), values, unit, method)
        super().__init__(
            mechanism,
            values,
            horizon=bounded_memory.LARGEST_HORIZON if horizon is None else horizon,
            participation=unit,
            budget=budget,
            confidence=confidence,
            bits=bits,
            parameters={"sums": "running", "horizon": horizon, **describe_stream(values, unit, budget, mechanism)},
            state=state,
            witness=witness,
        )


def describe_stream(
    values: Values, participation: Participation, budget: Loss, mechanism: StreamMechanism
) -> dict[str, object]:
    """Returns what a state says about its stream, so that it goes on as it began."""
    return {
        "budget": str(budget),
        "event": repr(mechanism.event),
        "method": mechanism.method,
        "participation": [participation.times, participation.apart],
        "grid": values.grid.exponent,
        "sensitivity": str(values.sensitivity),
        "ends": list(values.ends),
        "clip": values.clip,
        "size": values.size,
    }


def tree_steps(values: Values, participation: Participation, horizon: int | None) -> int:
    """Returns how far one unit moves all values of a stream in the L1 norm."""
    times = participation.times if horizon is None else len(participation.earliest(horizon))
    return math.ceil(values.move) * times


def check_method(method: object, methods: tuple[str, ...]) -> None:
    """Refuses an unknown method.

    Raises:
        InvalidParameter: naming those that there are.
    """
    if method is not None and method not in methods:
        raise InvalidParameter("method", method, f"to be one of {', '.join(methods)}")


def check_budget(budget: object) -> Loss:
    """Returns the budget of a stream, if it is one."""
    if not isinstance(budget, Loss):
        raise InvalidParameter("budget", budget, "to be a budget", "Pass Budget(rho=0.5), for instance.")
    return budget


def pure(budget: Loss) -> Fraction | None:
    """Returns the epsilon of a budget without a delta, else None."""
    if isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and not budget.delta):
        return budget.epsilon
    return None


def _mechanism(
    horizon: int | None, budget: Loss, values: Values, participation: Participation, method: Method | None
) -> StreamMechanism:
    check_method(method, METHODS)
    epsilon = pure(budget)
    if epsilon is not None or method == "tree":
        return tree(method, epsilon, tree_steps(values, participation, horizon), horizon=horizon, window=None)
    name = method or ("square root" if horizon is not None and horizon <= _LONG else "bounded memory")
    factor = _factor(name, horizon)
    found = GaussianFactor.of(name, factor, participation, values.move, budget)
    alone = values.size is None  # of several lines the sensitivity is in the L2 norm, and trees need the L1 norm
    if method is None and alone and isinstance(budget, ApproxDP) and horizon is not None and horizon <= _FEW:
        other = best_tree(budget.epsilon, tree_steps(values, participation, horizon), horizon=horizon, window=None)
        return min(found, other, key=lambda mechanism: mechanism.worst_variance(horizon))
    return found


def tree(
    method: str | None, epsilon: Fraction | None, steps: int, *, horizon: int | None, window: int | None
) -> StreamMechanism:
    """Returns the tree of a pure budget.

    Raises:
        InvalidParameter: if the method is another one, or the budget is not pure.
    """
    if method not in (None, "tree"):
        raise InvalidParameter(
            "method", method, "to be 'tree' under a pure budget", "Gaussian noise needs a delta or a rho."
        )
    if epsilon is None:
        hint = "Pass Budget(epsilon=1), or another method, whose error is smaller."
        raise InvalidParameter("method", method, "with a pure budget", hint)
    return best_tree(epsilon, steps, horizon=horizon, window=window)


def _factor(method: str, horizon: int | None) -> SumFactorization:
    if method == "bounded memory":
        return bounded_memory_factor(horizon)
    builders: dict[str, tuple[int, Callable[[int], SumFactorization]]] = {
        "square root": (toeplitz.LARGEST_HORIZON, square_root_factor),
        "optimal": (LARGEST_ORDER, optimal_running_sum),
    }
    largest, build = builders[method]
    if horizon is None or horizon > largest:
        hint = "Pass method='bounded memory', whose error is a thousandth larger."
        raise InvalidParameter("horizon", horizon, f"at most {largest} for method={method!r}", hint)
    return build(horizon)


class SlidingWindow(Stream):
    """Releases the sum of the last `window` periods, after every period, for one budget that covers the whole stream.

    *Methods.* "square root" measures the stream through the square root of the window's own sums: the default with a
    delta or a rho, up to 16,384 periods. "bounded memory" is a band of the square root of running sums, with an error
    that does not grow, however long the stream is: the default beyond, and for an unknown horizon. "optimal" and
    "tree" as for `RunningSum`.

    Formal guarantee: as of `RunningSum`.

    Args:
        window: over how many periods sums go.
        horizon: how many periods there are; None if that is unknown.
        budget: of the whole stream.
        sensitivity: how far one unit can move the value of one period.
        participation: in how many periods one unit may be; one, unless given.
        method: one of the methods above; chosen by public facts unless given.
        size: for one stream per group, the number of groups.
        grid: the step, a power of two, that values are rounded to; whole numbers unless given.
        bounds: of each value; others are refused.
        clip: whether they are clipped instead.
        confidence: of each interval.
        state: a file for the state; it holds private values, and is readable by its owner only.
        witness: the file by which an old copy of the state is noticed; next to the state unless given.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if one of them is outside its domain; nothing was drawn.
        StreamError: if the state cannot be relied on.

    >>> from discreet.privacy import Budget
    >>> weekly = SlidingWindow(window=7, horizon=365, budget=Budget(rho=0.5))
    >>> round(max(weekly.variances(365)), 4)
    3.1624
    """

    def __init__(
        self,
        window: int,
        horizon: int | None,
        *,
        budget: Loss,
        sensitivity: check.Number = 1,
        participation: Participation = EVENT,
        method: Method | None = None,
        size: int | None = None,
        grid: Grid | check.Number = Grid.integers(),
        bounds: Bounds | None = None,
        clip: bool = False,
        confidence: check.Number = CONFIDENCE,
        state: File | Keeper | None = None,
        witness: File | None = None,
        bits: Bits | None = None,
    ) -> None:
        values = values_of(sensitivity=sensitivity, grid=grid, bounds=bounds, clip=clip, size=size)
        unit = check.instance(Participation, participation=participation)
        check.integer(window=window, at_least=1, at_most=toeplitz.LARGEST_WINDOW)
        if horizon is not None:
            check.integer(horizon=horizon, at_least=window, at_most=bounded_memory.LARGEST_HORIZON)
        mechanism = _window_mechanism(window, horizon, check_budget(budget), values, participation=unit, method=method)
        super().__init__(
            mechanism,
            values,
            horizon=bounded_memory.LARGEST_HORIZON if horizon is None else horizon,
            window=window,
            participation=unit,
            budget=budget,
            confidence=confidence,
            bits=bits,
            parameters={"sums": window, "horizon": horizon, **describe_stream(values, unit, budget, mechanism)},
            state=state,
            witness=witness,
        )


def _window_mechanism(
    window: int,
    horizon: int | None,
    budget: Loss,
    values: Values,
    *,
    participation: Participation,
    method: Method | None,
) -> StreamMechanism:
    check_method(method, METHODS)
    epsilon, steps = pure(budget), tree_steps(values, participation, horizon)
    if epsilon is not None or method == "tree":
        return tree(method, epsilon, steps, horizon=horizon, window=window)
    name = method or ("square root" if horizon is not None and horizon <= _LONG else "bounded memory")
    found = GaussianFactor.of(name, _window_factor(name, window, horizon), participation, values.move, budget)
    alone = values.size is None  # of several lines the sensitivity is in the L2 norm, and trees need the L1 norm
    if method is None and alone and isinstance(budget, ApproxDP) and window <= _FEW:
        other = best_tree(budget.epsilon, steps, horizon=horizon, window=window)
        return min(found, other, key=lambda mechanism: mechanism.worst_variance(2 * window))
    return found


def _window_factor(method: str, window: int, horizon: int | None) -> SumFactorization:
    if method == "bounded memory":
        return banded_factor(window, bounded_memory.LARGEST_HORIZON if horizon is None else horizon)
    largest = toeplitz.LARGEST_HORIZON if method == "square root" else LARGEST_ORDER
    if horizon is None or horizon > largest:
        hint = "Pass method='bounded memory', which needs no horizon."
        raise InvalidParameter("horizon", horizon, f"at most {largest} for method={method!r}", hint)
    return window_factor(window, horizon) if method == "square root" else optimal_window(window, horizon)
