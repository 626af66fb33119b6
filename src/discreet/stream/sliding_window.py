"""Sliding windows of a stream: the sum of the last periods, in every period."""

from __future__ import annotations

from typing import Literal

from discreet import check
from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.mechanisms.base import CONFIDENCE
from discreet.noise import Bits
from discreet.privacy import ApproxDP, Loss
from discreet.stream import banded, bounded_memory, toeplitz
from discreet.stream.banded import banded_factor
from discreet.stream.factor import Factor
from discreet.stream.gaussian_factor import GaussianFactor
from discreet.stream.laplace_tree import best_tree
from discreet.stream.line import StreamMechanism
from discreet.stream.participation import Participation
from discreet.stream.running_sum import EVENT, chosen, described, pure, spent, tree, tree_steps
from discreet.stream.state_file import File, Keeper
from discreet.stream.stream import Bounds, Stream, Values, values_of
from discreet.stream.toeplitz import window_factor
from discreet.stream.triangular import LARGEST_ORDER, optimal_window

WindowMethod = Literal["square root", "optimal", "bounded memory", "tree"]
METHODS = ("square root", "optimal", "bounded memory", "tree")

_LONG = 1 << 14
_FEW = 1 << 10


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
        witness: the file that tells old copies of the state from the newest; beside the state unless given.
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
        method: WindowMethod | None = None,
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
        check.integer(window=window, at_least=1, at_most=banded.LARGEST_WINDOW)
        if horizon is not None:
            check.integer(horizon=horizon, at_least=window, at_most=bounded_memory.LARGEST_HORIZON)
        mechanism = _mechanism(window, horizon, spent(budget), values, participation=unit, method=method)
        super().__init__(
            mechanism,
            values,
            horizon=bounded_memory.LARGEST_HORIZON if horizon is None else horizon,
            window=window,
            participation=unit,
            budget=budget,
            confidence=confidence,
            bits=bits,
            parameters={"sums": window, "horizon": horizon, **described(values, unit, budget, mechanism)},
            state=state,
            witness=witness,
        )


def _mechanism(
    window: int,
    horizon: int | None,
    budget: Loss,
    values: Values,
    *,
    participation: Participation,
    method: WindowMethod | None,
) -> StreamMechanism:
    chosen(method, METHODS)
    epsilon, steps = pure(budget), tree_steps(values, participation, horizon)
    if epsilon is not None or method == "tree":
        return tree(method, epsilon, steps, horizon=horizon, window=window)
    name = method or ("square root" if horizon is not None and horizon <= _LONG else "bounded memory")
    found = GaussianFactor.of(name, _factor(name, window, horizon), participation, values.move, budget)
    alone = values.size is None  # of several lines the sensitivity is in the L2 norm, and trees need the L1 norm
    if method is None and alone and isinstance(budget, ApproxDP) and window <= _FEW:
        other = best_tree(budget.epsilon, steps, horizon=horizon, window=window)
        return min(found, other, key=lambda mechanism: mechanism.worst_variance(2 * window))
    return found


def _factor(method: str, window: int, horizon: int | None) -> Factor:
    if method == "bounded memory":
        return banded_factor(window, bounded_memory.LARGEST_HORIZON if horizon is None else horizon)
    largest = toeplitz.LARGEST_HORIZON if method == "square root" else LARGEST_ORDER
    if horizon is None or horizon > largest:
        hint = "Pass method='bounded memory', which needs no horizon."
        raise InvalidParameter("horizon", horizon, f"at most {largest} for method={method!r}", hint)
    return window_factor(window, horizon) if method == "square root" else optimal_window(window, horizon)
