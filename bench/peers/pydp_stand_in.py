"""What PipelineDP asks of python-dp, for processors that python-dp has no wheel for: the same laws, from numpy.

Laplace and Gaussian noise (Gaussian calibrated by the analytic formula of Balle and Wang), and the three ways of
selecting partitions: the optimal one of Desfontaines, Voss, Gipson and Mandayam, and Laplace and Gaussian thresholds.
The scales, thresholds and probabilities are python-dp's; the generator is not a secure one, so this is for measuring
only.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType

import numpy as np
from scipy import optimize, stats

GENERATOR = np.random.default_rng()


class LaplaceMechanism:
    def __init__(self, epsilon: float, sensitivity: float = 1.0) -> None:
        self.epsilon, self.sensitivity = epsilon, sensitivity
        self.diversity = sensitivity / epsilon

    def add_noise(self, value: float) -> float:
        return value + float(GENERATOR.laplace(0.0, self.diversity))


class GaussianMechanism:
    def __init__(self, epsilon: float, delta: float, sensitivity: float = 1.0) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.std = sensitivity * gaussian_std(epsilon, delta)

    @classmethod
    def create_from_standard_deviation(cls, std: float) -> GaussianMechanism:
        mechanism = cls.__new__(cls)
        mechanism.epsilon, mechanism.delta, mechanism.std = 0.0, 0.0, std
        return mechanism

    def add_noise(self, value: float) -> float:
        return value + float(GENERATOR.normal(0.0, self.std))


@cache
def gaussian_std(epsilon: float, delta: float) -> float:
    """The least standard deviation that is (epsilon, delta)-DP for sensitivity 1."""

    def over(std: float) -> float:
        first = stats.norm.cdf(0.5 / std - epsilon * std)
        return float(first - math.exp(epsilon) * stats.norm.cdf(-0.5 / std - epsilon * std) - delta)

    return float(optimize.brentq(over, 1e-3, 1e6, xtol=1e-9))


@cache
def optimal_shares(epsilon: float, delta: float) -> tuple[float, ...]:
    """Chances to keep a partition of 0, 1, 2, ... persons: the largest that (epsilon, delta) allows step by step."""
    shares = [0.0]
    while shares[-1] < 1:
        last = shares[-1]
        shares.append(min(math.exp(epsilon) * last + delta, 1 - math.exp(-epsilon) * (1 - last - delta), 1.0))
    return tuple(shares)


class Optimal:
    def __init__(self, epsilon: float, delta: float, partitions: int) -> None:
        self.shares = optimal_shares(epsilon / partitions, share(delta, partitions))

    def should_keep(self, persons: int) -> bool:
        return bool(GENERATOR.random() < self.shares[min(persons, len(self.shares) - 1)])


class Threshold:
    def __init__(self, add_noise: Callable[[float], float], threshold: float) -> None:
        self.add_noise, self.threshold = add_noise, threshold

    def should_keep(self, persons: float) -> bool:
        return self.add_noise(persons) >= self.threshold


def laplace_threshold(epsilon: float, delta: float, partitions: int) -> Threshold:
    noise = LaplaceMechanism(epsilon, partitions)
    return Threshold(noise.add_noise, 1 - noise.diversity * math.log(2 * share(delta, partitions)))


def gaussian_threshold(epsilon: float, delta: float, partitions: int) -> Threshold:
    noise = GaussianMechanism(epsilon, delta / 2, math.sqrt(partitions))
    return Threshold(noise.add_noise, 1 + noise.std * float(stats.norm.isf(share(delta / 2, partitions))))


def share(delta: float, partitions: int) -> float:
    return -math.expm1(math.log1p(-delta) / partitions)


STRATEGIES: dict[str, Callable[[float, float, int], Optimal | Threshold]] = {
    "truncated_geometric": Optimal,
    "laplace": laplace_threshold,
    "gaussian": gaussian_threshold,
}


def create_partition_strategy(strategy: str, epsilon: float, delta: float, partitions: int) -> Optimal | Threshold:
    return STRATEGIES[strategy](epsilon, delta, partitions)


def install() -> None:
    """Puts these names where PipelineDP imports them from."""
    modules = {name: ModuleType(name) for name in ("pydp", "pydp._pydp", "pydp.algorithms")}
    for name in ("numerical_mechanisms", "partition_selection", "quantile_tree"):
        modules[f"pydp.algorithms.{name}"] = ModuleType(f"pydp.algorithms.{name}")
        setattr(modules["pydp.algorithms"], name, modules[f"pydp.algorithms.{name}"])
    mechanisms = modules["pydp.algorithms.numerical_mechanisms"]
    mechanisms.__dict__.update(LaplaceMechanism=LaplaceMechanism, GaussianMechanism=GaussianMechanism)
    selection = modules["pydp.algorithms.partition_selection"]
    selection.__dict__.update(create_partition_strategy=create_partition_strategy)
    modules["pydp.algorithms.quantile_tree"].__dict__.update(QuantileTree=object)
    modules["pydp"].__dict__.update(_pydp=modules["pydp._pydp"], algorithms=modules["pydp.algorithms"])
    sys.modules.update(modules)
