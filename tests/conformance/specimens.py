"""One example or more of every mechanism: what the conformance suite builds, feeds and spoils.

A new mechanism joins by being exported from `discreet.mechanisms` and by an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import mechanisms
from discreet.exact import Grid
from discreet.mechanisms import Mechanism
from discreet.privacy import Neighbours

NOT_NUMBERS: list[Any] = [float("nan"), float("inf"), float("-inf"), True, None, "", "a", [], 1j]
NOT_POSITIVE: list[Any] = [*NOT_NUMBERS, 0, 0.0, -0.0, -1, -0.5, 1e-320, "1e999", 10**400]
NOT_PROBABILITIES: list[Any] = [*NOT_POSITIVE, 1, 2, 1.5]
NOT_COUNTS: list[Any] = [*NOT_NUMBERS, 0, -1, 1.0, 2.5, "2", 10**400]
NOT_GRIDS: list[Any] = [float("nan"), True, "", "a", 1j, 0, -1, 3, Fraction(1, 3), 0.1, 2.0**-950]

BAD: dict[str, list[Any]] = {
    "epsilon": NOT_POSITIVE,
    "delta": NOT_PROBABILITIES,
    "rho": NOT_POSITIVE,
    "sensitivity": NOT_POSITIVE,
    "scale": NOT_POSITIVE,
    "sigma": NOT_POSITIVE,
    "noise_multiplier": NOT_POSITIVE,
    "bound": NOT_POSITIVE,
    "beta": NOT_POSITIVE,
    "floor": NOT_POSITIVE,
    "dimension": NOT_COUNTS,
    "grid": NOT_GRIDS,
}
"""What must be refused of a parameter wherever a specimen has one of this name."""


@dataclass(frozen=True)
class Specimen:
    """A mechanism with typical parameters and inputs.

    Attributes:
        build: the class, or another constructor of it, that takes the parameters by keyword.
        parameters: good values of all parameters worth spoiling.
        value: what `release` is given first.
        arguments: what `release` is given beyond that, by position.
        array: a value that is an array, or None if the mechanism takes none.
        numbers: whether what comes out is the value plus noise, so that an interval lies around it.
        bad: for parameters that are not in `BAD`, or to be spoiled otherwise, what must be refused.
        optional: parameters that may be None.
        more: parameters of a less private mechanism, whose interval must not be wider.
    """

    build: Callable[..., Mechanism]
    parameters: dict[str, Any]
    value: Any
    arguments: tuple[Any, ...] = ()
    array: Any = None
    numbers: bool = True
    bad: dict[str, list[Any]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset({"grid"})
    more: dict[str, Any] = field(default_factory=dict)

    def mechanism(self, **changes: Any) -> Mechanism:
        return self.build(**{**self.parameters, **changes})

    @property
    def name(self) -> str:
        return getattr(self.build, "__qualname__", str(self.build))

    def spoiled(self) -> list[tuple[str, Any]]:
        """All pairs of a parameter and a value of it that must be refused."""
        wrong = {name: self.bad.get(name, BAD.get(name, [])) for name in {**self.parameters, **self.bad}}
        return [
            (name, value)
            for name, values in wrong.items()
            for value in values
            if not (value is None and name in self.optional)
        ]


COUNTS = np.array([[10, 20, 30], [40, 50, 60]])
REALS = np.array([[0.1, -20.7, 30.0], [1e6, 0.0, -1e-9]])
FLAGS = [None, 0, 1, "yes"]
RELATIONS = [None, "", "swap", 1]
FEW = [True, -1, "a", 2.5]
SMOOTH: dict[str, Any] = {
    "ceiling": [True, -1, 0, "a", Fraction(1, 1000)],
    "inflation": [True, -1, "a", float("nan"), None],
    "neighbours": [Neighbours.ADD_REMOVE, "add_remove", "people", None],
}

SPECIMENS: list[Specimen] = [
    Specimen(
        mechanisms.Laplace,
        {"epsilon": 0.5, "sensitivity": 1, "grid": Grid.integers(), "dimension": 1},
        value=42,
        array=COUNTS,
        optional=frozenset(),
        more={"epsilon": 0.7},
    ),
    Specimen(
        mechanisms.Laplace,
        {"epsilon": "1/3", "sensitivity": Fraction(1, 3), "grid": Fraction(1, 64), "dimension": 6},
        value=-0.7,
        array=REALS,
        optional=frozenset(),
        more={"epsilon": 3},
    ),
    Specimen(
        mechanisms.Laplace,
        {"epsilon": 1, "sensitivity": 1000, "grid": 8, "dimension": 6},
        value=12345.6,
        array=REALS,
        optional=frozenset(),
        more={"sensitivity": 900},
    ),
    Specimen(
        mechanisms.DiscreteLaplace,
        {"scale": 2.5, "sensitivity": 3},
        value=42,
        array=COUNTS,
        bad={"sensitivity": NOT_COUNTS},
        more={"scale": 1},
    ),
    Specimen(
        mechanisms.Staircase,
        {"epsilon": 4, "sensitivity": 10, "grid": None, "minimise": "absolute", "entries": 1},
        value=0.3,
        array=REALS,
        bad={"minimise": [None, "", "mean", 1], "entries": [0, -1, True, 1.0, "2"]},
        more={"epsilon": 6},
    ),
    Specimen(
        mechanisms.Staircase,
        {"epsilon": 2, "sensitivity": 1, "grid": 1, "minimise": "variance"},
        value=7,
        more={"epsilon": 4},
    ),
    Specimen(
        mechanisms.Gaussian,
        {"epsilon": 1, "delta": 1e-5, "sensitivity": 2, "grid": None},
        value=0.3,
        array=REALS,
        more={"epsilon": 2},
    ),
    Specimen(
        mechanisms.Gaussian.with_multiplier,
        {"noise_multiplier": 2, "sensitivity": 3, "grid": Grid.integers()},
        value=42,
        array=COUNTS,
        more={"noise_multiplier": 1.5},
    ),
    Specimen(
        mechanisms.Gaussian.for_rho,
        {"rho": 0.1, "sensitivity": 3},
        value=Fraction(1, 3),
        array=REALS,
        more={"rho": 0.2},
    ),
    Specimen(
        mechanisms.DiscreteGaussian,
        {"epsilon": 1, "delta": 1e-5, "sensitivity": 1, "grid": Grid.integers(), "dimension": 6},
        value=42,
        array=COUNTS,
        optional=frozenset(),
        bad={"real": [None, 1, "yes"]},
        more={"epsilon": 2},
    ),
    Specimen(
        mechanisms.DiscreteGaussian.with_sigma,
        {"sigma": 5, "sensitivity": 1, "grid": 0.25, "dimension": 6, "real": True},
        value=42.1,
        array=REALS,
        optional=frozenset(),
        more={"sigma": 4},
    ),
    Specimen(
        mechanisms.DiscreteGaussian.for_rho,
        {"rho": 0.01, "sensitivity": 1, "dimension": 1},
        value=42,
        more={"rho": 0.02},
    ),
    Specimen(
        mechanisms.KNorm,
        {"epsilon": 1, "sensitivity": 2, "dimension": 6, "norm": "l2", "grid": None},
        value=REALS,
        array=REALS,
        bad={"norm": [None, "l1", "", 2]},
        more={"epsilon": 1.5},
    ),
    Specimen(
        mechanisms.KNorm,
        {"epsilon": 0.5, "sensitivity": 1, "dimension": 1, "norm": "linf", "grid": 0.5},
        value=3.25,
        more={"sensitivity": 0.75},
    ),
    Specimen(
        mechanisms.Lomax,
        {"epsilon": 1, "beta": 0.1, "floor": 0.01, "ceiling": 10, "grid": None},
        value=5.5,
        arguments=(1.25,),
        bad={**SMOOTH, "beta": [*NOT_POSITIVE, 1, 2], "exponent": [0, 1, 2, 12, True, "a"]},
        more={"epsilon": 1.5},
    ),
    Specimen(
        mechanisms.ProposeTestRelease,
        {"epsilon": 1, "delta": 1e-5, "bound": 2, "grid": 0.5},
        value=7.25,
        arguments=(10**6,),
        optional=frozenset(),
        more={"epsilon": 1.5},
    ),
    Specimen(
        mechanisms.Exponential,
        {"epsilon": 0.5, "sensitivity": 2, "monotone": False, "grid": 0.25},
        value=[3.5, 2, 2.75, 0],
        numbers=False,
        bad={"monotone": FLAGS},
    ),
    Specimen(
        mechanisms.PermuteAndFlip,
        {"epsilon": 0.5, "sensitivity": 1, "monotone": True, "grid": Grid.integers()},
        value=[[3, 2, 2, 0], [1, 0, 0, 1]],
        numbers=False,
        bad={"monotone": FLAGS},
    ),
    Specimen(
        mechanisms.ReportNoisyMax,
        {"epsilon": 0.5, "sensitivity": "1/3", "monotone": False, "grid": Grid.integers()},
        value=[3, 2, 2, 0],
        numbers=False,
        bad={"monotone": FLAGS},
    ),
    Specimen(
        mechanisms.RandomizedResponse,
        {"epsilon": 1, "options": 3},
        value=[0, 1, 2, 2],
        numbers=False,
        bad={"options": [*NOT_COUNTS, 1]},
    ),
    Specimen(
        mechanisms.SparseVector,
        {"epsilon": 1, "sensitivity": 1, "threshold": 3, "max_positives": 2, "answer_epsilon": 1, "grid": 0.5},
        value=[1, 2.5, 4, 3, 3, 7],
        numbers=False,
        bad={
            "threshold": NOT_NUMBERS,
            "max_positives": NOT_COUNTS,
            "answer_epsilon": NOT_POSITIVE,
            "monotone": FLAGS,
            "neighbours": RELATIONS,
        },
        optional=frozenset({"answer_epsilon"}),
    ),
    *(
        Specimen(
            mechanisms.PartitionSelection,
            {"epsilon": 1, "delta": 1e-2, "max_groups": 2, "method": method, "rows_per_group": 1},
            value=[0, 1, 5, 10, 20],
            numbers=False,
            bad={
                "max_groups": NOT_COUNTS,
                "rows_per_group": NOT_COUNTS,
                "method": [None, "", "best", 1, []],
                "neighbours": [*RELATIONS, "replace"],
            },
        )
        for method in ("optimal", "truncated", "laplace", "gaussian")
    ),
    Specimen(
        mechanisms.WeightedSelection,
        {"epsilon": 1, "delta": 1e-2, "max_groups": 2, "rounds": 2},
        value=[["a"]] * 30 + [["a", "b"]] * 4,
        numbers=False,
        bad={"max_groups": NOT_COUNTS, "rounds": NOT_COUNTS, "neighbours": RELATIONS},
    ),
    Specimen(
        mechanisms.Quantile,
        {"epsilon": 1, "quantile": 0.5, "bounds": (0, 10), "grid": 0.5, "neighbours": "replace"},
        value=[1, 4, 5, 7.25, 900],
        numbers=False,
        bad={
            "quantile": [*NOT_NUMBERS, -1, 2],
            "bounds": [None, 1, (0, 0), (1, 0), (0, float("inf")), (float("nan"), 1), (0,), "ab"],
            "neighbours": RELATIONS,
        },
    ),
]
