"""The mean of heavy tails: what enters each mechanism, the bias of clipping, coverage, and what must not be read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Laplace, Quantile
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours, events
from discreet.statistics.robust import heavy_tails
from discreet.statistics.robust.heavy_tails import heavy_tailed_mean
from tests.conformance.nothing import NoBits
from tests.statistics.mechanism_recorder import Recorder, Seen

LAW = stats.t(3)
DATA = [-300.0, -1.0, 0.0, 0.25, 2.0, 900.0]


def run(x: Any, **options: Any) -> Any:
    chosen = {"scale": 2, "bounds": (-1000, 1000), "epsilon": 1, "bits": SeededBits(1), **options}
    return heavy_tailed_mean(x, **chosen)


def forced(centre: int, count: int) -> Any:
    """Answers: a median, a number of values, and a sum."""

    def answer(mechanism: Any, _: int) -> int:
        if isinstance(mechanism, Quantile):
            return centre
        return count if mechanism.sensitivity == 1 else 12345

    return answer


def neighbours_of(x: list[float], relation: Neighbours) -> list[list[float]]:
    values = [-1000.0, -5.0, 0.1, 1000.0]
    if relation is Neighbours.ADD_REMOVE:
        return [x[:i] + x[i + 1 :] for i in range(len(x))] + [[*x, v] for v in values]
    return [[*x[:i], v, *x[i + 1 :]] for i in range(len(x)) for v in values]


def overruns(first: Seen, second: Seen) -> list[float]:
    """How far the inputs of neighbours differ, over what the mechanisms were told; quantiles take the values."""
    assert [mechanism for mechanism, _ in first] == [mechanism for mechanism, _ in second]
    return [
        abs(value - other) / mechanism.sensitivity
        for (mechanism, (value,)), (_, (other,)) in zip(first, second, strict=True)
        if not isinstance(mechanism, Quantile)
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("centre", [0, 5000, 2**20])
@pytest.mark.parametrize("count", [-7, 6, 400])
def test_all_neighbours_keep_the_promises(
    monkeypatch: pytest.MonkeyPatch, relation: Neighbours, centre: int, count: int
) -> None:
    recorder = Recorder(monkeypatch, [Quantile, Laplace], forced(centre, count))
    first = recorder.of(lambda: run(DATA, neighbours=relation))
    assert first[0][0].neighbours is relation
    for y in neighbours_of(DATA, relation):
        assert max(overruns(first, recorder.of(lambda y=y: run(y, neighbours=relation)))) <= 1  # type: ignore[misc]


@pytest.mark.parametrize("relation", list(Neighbours))
def test_the_worst_neighbours_reach_the_sensitivity(monkeypatch: pytest.MonkeyPatch, relation: Neighbours) -> None:
    recorder = Recorder(monkeypatch, [Quantile, Laplace], forced(2**20, 6))
    first = recorder.of(lambda: run([-1000.0, 0.0], neighbours=relation))
    other = [0.0] if relation is Neighbours.ADD_REMOVE else [1000.0, 0.0]
    assert overruns(first, recorder.of(lambda: run(other, neighbours=relation)))[-1] == 1


@pytest.mark.parametrize("relation", list(Neighbours))
def test_the_event_is_known_in_advance_and_is_what_was_drawn(
    monkeypatch: pytest.MonkeyPatch, relation: Neighbours
) -> None:
    found = [run(x, neighbours=relation) for x in (DATA, [1.0] * 500)]
    assert found[0].event == found[1].event
    assert 0.999 < accounting.epsilon(found[0].event, 0, neighbours=relation) <= 1
    recorder = Recorder(monkeypatch, [Quantile, Laplace], forced(10, 10))
    seen = recorder.of(lambda: run(DATA, neighbours=relation))
    assert found[0].event == events.Composed([mechanism.event for mechanism, _ in seen])
    assert len(seen) == (3 if relation is Neighbours.ADD_REMOVE else 2)


def test_released_numbers_decide_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under ADD_REMOVE the same answers give the same estimate, whatever the data and its size are."""
    Recorder(monkeypatch, [Quantile, Laplace], forced(2**19, 300))
    first, second = run(DATA), run(np.zeros(5000))
    assert (first.value, first.low, first.high) == (second.value, second.low, second.high)


@given(
    moment=st.floats(1.05, 8),
    tau=st.integers(1, 50),
    points=st.lists(st.floats(-100, 100), min_size=1, max_size=20),
)
def test_the_bound_of_the_bias_holds(moment: float, tau: int, points: list[float]) -> None:
    """For any distribution, here one on a few points: what clipping cuts off on average is within the bound."""
    x = np.abs(np.array(points))
    far = float(np.mean(x**moment)) ** (1 / moment)
    assert np.mean(np.maximum(x - tau, 0)) <= heavy_tails._clip_bias(moment, far, tau) * (1 + 1e-9) + 1e-12


@given(
    moment=st.sampled_from([1.2, 1.5, 2.0, 3.0]),
    points=st.lists(st.floats(-100, 100), min_size=2, max_size=20),
    rank=st.floats(0, 1),
)
def test_the_distance_between_a_quantile_and_the_mean(moment: float, points: list[float], rank: float) -> None:
    """For any distribution on a few points, and any of them."""
    x = np.sort(points)
    centre = x[int(rank * (x.size - 1))]
    tail = min(np.mean(x <= centre), np.mean(x >= centre))
    scale = float(np.mean(np.abs(x - x.mean()) ** moment)) ** (1 / moment)
    assert abs(centre - x.mean()) <= scale * heavy_tails._distance(moment, float(tail)) * (1 + 1e-9) + 1e-9


def test_what_is_known_of_the_mean_makes_the_bias_smaller() -> None:
    """A mean within 10 of an estimate that is 3 from the centre is within 13 of it: never less than the truth."""
    first = heavy_tails._clip_bias(2.0, 50.0, 100)
    found = heavy_tails._with_bias(4.0, 3.0, (2.0, 5.0, 50.0), 100)
    assert 4 + heavy_tails._clip_bias(2.0, 5.0 + 3.0, 100) < found < 4 + first
    assert heavy_tails._with_bias(4.0, 3.0, (2.0, 5.0, math.inf), 100) == math.inf


def test_the_bound_of_the_bias_is_attained() -> None:
    """By the point k tau / (k - 1): k = 2, far 2 tau, bias tau."""
    assert heavy_tails._clip_bias(2.0, 20.0, 10) == pytest.approx(10)
    assert heavy_tails._clip_bias(3.0, 15.0, 10) == pytest.approx(5)


@pytest.mark.parametrize("relation", list(Neighbours))
def test_intervals_cover_the_mean_of_heavy_tails(relation: Neighbours) -> None:
    """Student's law with three degrees of freedom, bounds of a million deviations; the mean of clipped data is near."""
    hits, errors, widths = 0, [], []
    for seed in range(40):
        x = 50 + LAW.ppf(uniforms(4000, bits=SeededBits(500 + seed)))
        found = run(x, scale=math.sqrt(3), bounds=(-1e6, 1e6), neighbours=relation, bits=SeededBits(seed))
        hits += found.low <= 50 <= found.high
        errors.append(found.value - 50)
        widths.append(found.high - found.low)
    assert hits >= 38
    plain = math.sqrt(3 / 4000)
    assert np.sqrt(np.mean(np.square(errors))) < 2 * plain
    assert np.median(widths) < 3 * 2 * 1.96 * plain


def test_a_known_fourth_moment_narrows_the_interval() -> None:
    x = stats.norm.ppf(uniforms(20_000, bits=SeededBits(3)))
    second = run(x, scale=1, moment=2)
    fourth = run(x, scale=3**0.25, moment=4)
    assert fourth.high - fourth.low < 0.9 * (second.high - second.low)


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("x", [[], [5.0], [math.nan, math.inf, -math.inf]])
def test_hardly_any_values(x: list[float], relation: Neighbours) -> None:
    found = run(x, neighbours=relation)
    assert -1000 <= found.low <= found.value <= found.high <= 1000
    assert found.high - found.low > 100


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"bounds": None}, "bounds"),
        ({"epsilon": None}, "epsilon"),
        ({"moment": 1}, "moment"),
        ({"moment": 21}, "moment"),
        ({"scale": 0}, "scale"),
        ({"scale": 1e-12}, "scale"),
        ({"confidence": 1}, "confidence"),
    ],
)
def test_refusals_come_before_the_data_is_read(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        run("unread", bits=NoBits(), **options)
    assert refused.value.name == name


def test_no_vector_of_numbers() -> None:
    with pytest.raises(InvalidValue):
        run("text", bits=NoBits())


# ------------------------------------------------------------------------------------------------------------ mutants
def test_mutant_clipped_around_the_exact_median(monkeypatch: pytest.MonkeyPatch) -> None:
    """A centre read from the data moves every value's contribution, which the check of promises notices."""
    honest = heavy_tails._clipped_sum

    def looked(values: Any, centre: int, tau: int) -> int:  # noqa: ARG001 - instead of the released one
        return honest(values, int(np.median(values.steps)), tau)

    monkeypatch.setattr(heavy_tails, "_clipped_sum", looked)
    recorder = Recorder(monkeypatch, [Quantile, Laplace], forced(0, 400))
    x = [-900.0] * 9 + [0.0] + [900.0] * 9
    first = recorder.of(lambda: run(x, neighbours="replace", scale=200))
    worst = max(
        max(overruns(first, recorder.of(lambda y=y: run(y, neighbours="replace", scale=200))))  # type: ignore[misc]
        for y in neighbours_of(x, Neighbours.REPLACE)
    )
    assert worst > 1


def test_mutant_divided_by_the_exact_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of values, taken for free, shows in the estimate when all answers are the same."""
    monkeypatch.setattr(heavy_tails.TailPlan, "_size", lambda self, values, bits: (float(values.size), 0.0))  # noqa: ARG005
    Recorder(monkeypatch, [Quantile, Laplace], forced(2**19, 300))
    assert run(DATA).value != run(np.zeros(5000)).value
