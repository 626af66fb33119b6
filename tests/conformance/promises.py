"""Every mechanism built for an epsilon and a sensitivity of any size, and what the noise it draws costs by its own law.

The event says what a release costs, and accounting prices the event. Where the event only repeats the promise (`Pure`,
`Approx`, `BoundedRange`), its price proves nothing: there the cost is computed again from the parameters of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet import mechanisms
from discreet.exact import Enclosure, upper
from discreet.mechanisms import Mechanism
from discreet.mechanisms.smooth import lomax_is_private
from discreet.mechanisms.tails import discrete_gaussian_reach, laplace_reach

FINE = Fraction(1, 1024)
POSITIVES = 5


@dataclass(frozen=True, kw_only=True)
class Promise:
    """How to build a mechanism, how wide its noise is, and what that noise costs.

    Attributes:
        kind: the class, and with `label` the name.
        build: from epsilon, delta and sensitivity.
        noise: the scales of all noise it draws.
        cost: the epsilon of that noise by the formula of its law; infinity if a condition beside it fails, None where
            the accountants know the law itself.
        value: what `release` is given.
        times: how many times epsilon the event costs.
        pure: whether delta is not used.
    """

    kind: type[Mechanism]
    label: str = ""
    build: Callable[[Fraction, Fraction, int], Any]
    noise: Callable[[Any], list[Fraction]]
    cost: Callable[[Any], Fraction | float] | None = None
    value: tuple[Any, ...] = (0.5,)
    times: int = 1
    pure: bool = True

    @property
    def name(self) -> str:
        return self.kind.__name__ + self.label


def moves(mechanism: Any) -> int:
    return math.ceil(Fraction(mechanism.sensitivity / mechanism.grid.step))


def only_if(condition: bool, cost: Fraction) -> Fraction | float:
    return cost if condition else math.inf


def laplace_cost(mechanism: Any) -> Fraction:
    return moves(mechanism) / Fraction(mechanism.event.scale)


def stairs_cost(mechanism: Any) -> Fraction:
    """A move of the whole sensitivity climbs so many stairs, each of which costs, for each entry that moves."""
    climbed = math.ceil(Fraction(moves(mechanism), mechanism.stairs.steps))
    return climbed * Fraction(mechanism.stairs.epsilon) * int(mechanism.entries or 1)


def lomax_cost(mechanism: Any) -> Fraction | float:
    private = lomax_is_private(mechanism.factor, mechanism.epsilon, mechanism.ratio, mechanism.exponent)
    return only_if(private, mechanism.epsilon)


def selection_cost(mechanism: Any) -> Fraction:
    return 2 * moves(mechanism) * Fraction(mechanism.rate)


def response_cost(mechanism: Any) -> Fraction:
    return upper(lambda n: (mechanism.probability(n) * (mechanism.options - 1) / mechanism.lie(n)).log())


def sparse_cost(mechanism: Any) -> Fraction:
    per_step = 1 / Fraction(mechanism.threshold_scale)
    per_step += 2 * POSITIVES / Fraction(mechanism.query_scale) + POSITIVES / Fraction(mechanism.answer_scale)
    return moves(mechanism) * per_step


def test_cost(mechanism: Any) -> Fraction | float:
    """P(Z >= cut) <= delta for the noise of the test, of scale 1 / epsilon, and the noise of the value."""
    late = Enclosure.of(-mechanism.epsilon * mechanism.cut, 40).exp() / (Enclosure.of(-mechanism.epsilon, 40).exp() + 1)
    value = math.ceil(mechanism.bound / mechanism.grid.step) / mechanism._laplace.event.scale
    return only_if(late.fractions()[0] <= mechanism.delta, mechanism.epsilon + value)


def threshold_cost(mechanism: Any) -> Fraction | float:
    """A key of one unit is hardly ever shown: P(|Z| >= threshold - rows) <= 2 d with l d at most the delta of it."""
    if mechanism.method == "truncated":
        late = mechanism.threshold > mechanism.rows_per_group
        return only_if(late, mechanism.rows_per_group * mechanism.max_groups / mechanism.scale)
    reach = laplace_reach if mechanism.method == "laplace" else discrete_gaussian_reach
    share = 2 * mechanism._threshold_delta / mechanism.max_groups
    late = mechanism.threshold - mechanism.rows_per_group > reach(mechanism.scale, share * 2)
    rows = mechanism.rows_per_group * mechanism.max_groups
    return only_if(late, rows / mechanism.scale if mechanism.method == "laplace" else mechanism.epsilon)


def selecting(method: Literal["truncated", "laplace", "gaussian"], groups: int) -> Promise:
    return Promise(
        kind=mechanisms.PartitionSelection,
        label=f" by {method} noise, {groups} groups",
        build=lambda e, d, s: mechanisms.PartitionSelection(
            epsilon=e, delta=d, max_groups=groups, method=method, rows_per_group=s
        ),
        noise=lambda m: [m.scale],
        cost=threshold_cost,
        value=([0, 1, 20, 3000],),
        pure=False,
    )


def choosing(kind: type[mechanisms.Exponential | mechanisms.PermuteAndFlip | mechanisms.ReportNoisyMax]) -> Promise:
    return Promise(
        kind=kind,
        build=lambda e, _, s: kind(epsilon=e, sensitivity=s, grid=FINE),
        noise=lambda m: [1 / m.rate],
        cost=selection_cost,
        value=([5, 1, 2.5],),
    )


def k_norm(norm: mechanisms.Norm) -> Promise:
    return Promise(
        kind=mechanisms.KNorm,
        label=f" of {norm.value}",
        build=lambda e, _, s: mechanisms.KNorm(epsilon=e, sensitivity=s, dimension=3, norm=norm),
        noise=lambda m: [m._scale],
        cost=lambda m: m.sensitivity / m._scale,
        value=([0.5, 1, 2],),
    )


PROMISES = [
    Promise(
        kind=mechanisms.Laplace,
        build=lambda e, _, s: mechanisms.Laplace(epsilon=e, sensitivity=s, grid=FINE),
        noise=lambda m: [m.event.scale],
        cost=laplace_cost,
    ),
    Promise(
        kind=mechanisms.DiscreteLaplace,
        build=lambda e, _, s: mechanisms.DiscreteLaplace(scale=s / e, sensitivity=s),
        noise=lambda m: [m.scale],
        cost=laplace_cost,
        value=(5,),
    ),
    Promise(
        kind=mechanisms.Staircase,
        build=lambda e, _, s: mechanisms.Staircase(epsilon=e, sensitivity=s),
        noise=lambda m: [1 / m.stairs.epsilon],
        cost=stairs_cost,
    ),
    Promise(
        kind=mechanisms.Staircase,
        label=" of three entries",
        build=lambda e, _, s: mechanisms.Staircase(epsilon=e, sensitivity=s, entries=3, minimise="variance"),
        noise=lambda m: [1 / m.stairs.epsilon],
        cost=stairs_cost,
        value=([0.5, 2, 3],),
    ),
    Promise(
        kind=mechanisms.Gaussian,
        build=lambda e, d, s: mechanisms.Gaussian(epsilon=e, delta=d, sensitivity=s),
        noise=lambda m: [m.sigma],
        pure=False,
    ),
    Promise(
        kind=mechanisms.DiscreteGaussian,
        build=lambda e, d, s: mechanisms.DiscreteGaussian(epsilon=e, delta=d, sensitivity=s),
        noise=lambda m: [m.sigma],
        value=(5,),
        pure=False,
    ),
    Promise(
        kind=mechanisms.DiscreteGaussian,
        label=" on a fine grid",
        build=lambda e, d, s: mechanisms.DiscreteGaussian(epsilon=e, delta=d, sensitivity=s, grid=FINE),
        noise=lambda m: [m.sigma],
        pure=False,
    ),
    Promise(
        kind=mechanisms.DiscreteGaussian,
        label=" of six dimensions",
        build=lambda e, d, s: mechanisms.DiscreteGaussian(epsilon=e, delta=d, sensitivity=s, dimension=6, real=True),
        noise=lambda m: [m.sigma],
        value=([5.5, 6],),
        pure=False,
    ),
    *map(k_norm, mechanisms.Norm),
    Promise(
        kind=mechanisms.Lomax,
        build=lambda e, _, s: mechanisms.Lomax(epsilon=e, beta=e / 10, floor=s),
        noise=lambda m: [m.factor],
        cost=lomax_cost,
        value=(0.5, 1),
    ),
    Promise(
        kind=mechanisms.ProposeTestRelease,
        build=lambda e, d, s: mechanisms.ProposeTestRelease(epsilon=e, delta=d, bound=s),
        noise=lambda m: [m._laplace.event.scale, 1 / m.epsilon],
        cost=test_cost,
        value=(5, 10**14),
        times=2,
        pure=False,
    ),
    choosing(mechanisms.Exponential),
    choosing(mechanisms.PermuteAndFlip),
    choosing(mechanisms.ReportNoisyMax),
    Promise(
        kind=mechanisms.RandomizedResponse,
        build=lambda e, _, s: mechanisms.RandomizedResponse(epsilon=e, options=s + 1),
        noise=lambda m: [m.lie().high],
        cost=response_cost,
        value=([1, 0],),
    ),
    Promise(
        kind=mechanisms.SparseVector,
        build=lambda e, _, s: mechanisms.SparseVector(
            epsilon=e, sensitivity=s, threshold=3, max_positives=POSITIVES, answer_epsilon=e
        ),
        noise=lambda m: [m.threshold_scale, m.query_scale, m.answer_scale],
        cost=sparse_cost,
        value=([1, 2, 3],),
        times=2,
    ),
    Promise(
        kind=mechanisms.PartitionSelection,
        build=lambda e, d, _: mechanisms.PartitionSelection(epsilon=e, delta=d, max_groups=2),
        noise=lambda m: [1 / m.rule.epsilon],
        cost=lambda m: m.rule.epsilon * m.max_groups,
        value=([0, 1, 20, 3000],),
        pure=False,
    ),
    selecting("truncated", 2),
    selecting("laplace", 2),
    selecting("gaussian", 1),
    selecting("gaussian", 2),
    Promise(
        kind=mechanisms.WeightedSelection,
        build=lambda e, d, s: mechanisms.WeightedSelection(epsilon=e, delta=d, max_groups=min(s, 10**6)),
        noise=lambda m: list(m.sigmas),
        value=([[1, 2], [1]] * 40,),
        pure=False,
    ),
    Promise(
        kind=mechanisms.Quantile,
        build=lambda e, _, s: mechanisms.Quantile(epsilon=e, quantile=0.5, bounds=(0, s)),
        noise=lambda m: [1 / m.rate],
        cost=lambda m: 2 * m.rate * 1,
        value=([0, 0.5, 0.7],),
    ),
]
