"""Permutation tests: sensitivity under every permutation, the loss of the decision, the level, what p would tell."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from discreet import statistics as st
from discreet.errors import InvalidParameter, InvalidValue
from discreet.noise import SeededBits, discrete_laplace
from discreet.noise.experiment import normals, uniforms
from discreet.privacy import events
from discreet.statistics.inputs import column
from discreet.statistics.tests import permutation
from discreet.statistics.tests.permutation import (
    RADIUS,
    Contrast,
    CustomContrast,
    KernelDependence,
    KernelDistance,
    MeanDifference,
    hats,
)
from tests.cases import every

POINTS = [0.0, 0.9, 4.0, 10.0]


def made(kind: str, x: list[float], y: list[float]) -> Contrast:
    if kind == "called":
        return CustomContrast(np.array(x), np.array(y), lambda a, b: float(np.mean(a) - np.mean(b)), Fraction(10, 2))
    columns = [column(values, bounds=(0, 10), neighbours="replace") for values in (x, y)]
    kinds: dict[str, Any] = {"mmd": KernelDistance, "hsic": KernelDependence, "mean": MeanDifference}
    contrast: Contrast = kinds[kind](*columns)
    return contrast


@pytest.mark.parametrize("kind", ["mean", "mmd", "hsic", "called"])
def test_one_replaced_unit_moves_every_permuted_statistic_by_the_sensitivity_at_most(kind: str) -> None:
    x, y = [0.0, 10.0, 3.0], [1.0, 9.0, 0.5] if kind == "hsic" else [1.0, 9.0]
    base = made(kind, x, y)
    orders = np.array(list(permutations(range(base.size))))
    worst, known = 0, base.values(orders)
    for new in POINTS:
        if kind == "hsic":
            others = [made(kind, [*x[:2], new], [*y[:2], partner]) for partner in POINTS]
        else:
            others = [made(kind, [*x[:2], new], y), made(kind, x, [y[0], new])]
        for other in others:
            moved = [abs(a - b) for a, b in zip(known, other.values(orders), strict=True)]
            worst = max(worst, *moved)
    assert 0.1 * base.sensitivity < worst <= base.sensitivity


def test_hats_are_within_their_radius_and_none_is_negative() -> None:
    found = hats(column(np.linspace(0, 1, 5001), bounds=(0, 1)))
    assert (found >= 0).all()
    assert np.sum(found * found, axis=1).max() <= RADIUS**2
    assert np.sum(found * found, axis=1).max() > 0.98 * RADIUS**2


def laws(values: list[int], scale: float) -> Any:
    """P(# of i >= 1 with M_i >= M_0 is j), j = 0..B, for discrete Laplace noise, summed over the noise of M_0."""
    z = np.arange(-60 * int(scale), 60 * int(scale) + 1)
    ratio = np.exp(-1 / scale)
    own = ratio ** np.abs(z) * (1 - ratio) / (1 + ratio)
    counts = np.zeros((len(values), z.size))
    counts[0] = own
    for other in values[1:]:
        gap = values[0] + z - other
        tail = np.where(gap > 0, ratio ** np.abs(gap), 1 + ratio - ratio ** (np.abs(gap) + 1)) / (1 + ratio)
        counts[1:] = counts[1:] * (1 - tail) + counts[:-1] * tail
        counts[0] *= 1 - tail
    return counts.sum(axis=1)


@every(("far", "near"), [(60, 30), (60, 40), (-40, -20), (0, 0), (20, -20)])
@every(("few", "many"), [(1, 9), (5, 15)])
@every("moves", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_the_decision_loses_at_most_xi(far: int, near: int, few: int, many: int, moves: tuple[int, int]) -> None:
    """M_0 moves by S = 4 and the others by as much, in any direction; noise of scale 2 S / xi with xi = 1."""
    one, other = moved_ranks(far, near, few, many, moves)
    for first, second in ((one, other), (one[::-1], other[::-1])):
        tails = np.cumsum(first)[:-1] / np.cumsum(second)[:-1]
        assert np.abs(np.log(tails)).max() <= 1 + 1e-9


def moved_ranks(far: int, near: int, few: int, many: int, moves: tuple[int, int]) -> tuple[Any, Any]:
    one = laws([0, *[far] * few, *[near] * many], 8.0)
    return one, laws([4, *[far + 4 * moves[0]] * few, *[near + 4 * moves[1]] * many], 8.0)


def test_the_p_value_may_lose_more_than_xi() -> None:
    """Which is why only the decision is released: here 1.134 at xi = 1."""
    one, other = moved_ranks(60, 30, 5, 15, (1, -1))
    assert np.abs(np.log(one / other)).max() == pytest.approx(1.134, abs=2e-3)


def test_half_the_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With scale S / xi, a decision about two values that both move against each other loses 2 xi."""
    one, other = laws([0, 12], 1.0), laws([1, 11], 1.0)
    assert np.abs(np.log(one / other)).max() > 1.5
    scales: list[Any] = []

    def watched(scale: Any, size: int, *, bits: Any) -> Any:
        scales.append(scale)
        return discrete_laplace(scale, size, bits=bits)

    monkeypatch.setattr(permutation, "discrete_laplace", watched)
    st.permutation_test([1.0] * 4, [2.0] * 3, bounds=(0, 10), level=0.1, epsilon=0.5, bits=SeededBits(1))
    move = made("mean", [1.0] * 4, [2.0] * 3).sensitivity
    assert scales == [2 * move / Fraction(1, 2)]


def test_delta_buys_a_little_epsilon() -> None:
    xi = permutation._xi(Fraction(1), Fraction(1, 10))
    assert float(xi) == pytest.approx(1 + np.log(1 / 0.9), abs=1e-9)
    assert xi < 1 + np.log(1 / 0.9)
    found = st.permutation_test([1.0], [2.0], bounds=(0, 3), level=0.1, epsilon=1, delta=1e-6, bits=SeededBits(1))
    assert found.event == events.Approx(1, 1e-6)


def test_only_the_decision_is_released() -> None:
    found = st.permutation_test([1.0] * 5, [2.0] * 5, bounds=(0, 3), level=0.1, epsilon=1, bits=SeededBits(1))
    assert found.p_value is None
    assert found.statistic is None
    assert found.event == events.Pure(1)
    with pytest.raises(InvalidParameter):
        found.reject(0.01)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("statistic", ["mean_difference", "mmd", "hsic"])
def test_the_level_is_kept(statistic: Any) -> None:
    """200 tests at level 1/5 with 19 permutations: between 20 and 60 rejections but for a chance below 0.001."""
    rejections = 0
    for seed in range(200):
        bits = SeededBits(seed)
        x, y = uniforms((2, 30), bits=bits)
        rejections += st.permutation_test(
            x, y, bounds=(0, 1), statistic=statistic, level=0.2, epsilon=1, permutations=19, bits=bits
        ).reject()
    assert 20 < rejections < 60


def test_differences_are_found() -> None:
    bits = SeededBits(3)
    same, wide = normals(600, bits=bits), 2 * normals(600, bits=bits)
    options: dict[str, Any] = {"bounds": (-6, 6), "level": 0.05, "epsilon": 2, "bits": bits}
    assert st.permutation_test(same, same + 1, **options).reject()
    assert st.permutation_test(same, same + 1, alternative="less", **options).reject()
    assert not st.permutation_test(same, same + 1, alternative="greater", **options).reject()
    assert st.permutation_test(same, wide, statistic="mmd", **options).reject()
    assert st.permutation_test(same, same**2, statistic="hsic", y_bounds=(0, 10), **options).reject()
    assert st.permutation_test(
        same,
        same + 2,
        statistic=lambda a, b: abs(np.mean(np.clip(a, -6, 6)) - np.mean(np.clip(b, -6, 6))),
        sensitivity=0.02,
        **(options | {"bounds": None}),
    ).reject()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"neighbours": "add_remove"}, "neighbours"),
        ({"level": 0}, "level"),
        ({"level": 0.001}, "permutations"),
        ({"epsilon": 0}, "epsilon"),
        ({"bounds": None}, "bounds"),
        ({"statistic": "t"}, "statistic"),
        ({"statistic": max}, "sensitivity"),
        ({"alternative": "more"}, "alternative"),
    ],
)
def test_wrong_parameters_are_refused_before_the_data_is_touched(options: Any, name: str) -> None:
    given: dict[str, Any] = {"bounds": (0, 1), "level": 0.05, "epsilon": 1} | options
    with pytest.raises(InvalidParameter) as caught:
        st.permutation_test(object(), object(), **given)
    assert caught.value.name == name


def test_pairs_need_partners() -> None:
    with pytest.raises(InvalidValue):
        st.permutation_test([1.0, 2.0], [1.0], bounds=(0, 3), statistic="hsic", level=0.1, epsilon=1)
