"""Iterative means: what each sum is given on all neighbours, starts without a range, events, coverage."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Gaussian, PartitionSelection
from discreet.mechanisms.partition_selection import SelectedKeys
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours, events
from discreet.statistics.moments import iterative_mean as module
from discreet.statistics.moments.iterative_mean import StableStart, iterative_mean
from tests.conformance.nothing import NoBits
from tests.statistics.mechanism_recorder import Recorder, Seen

ROWS = np.array([[0.0, 1.0], [3.0, -4.0], [100.0, 100.0], [-1e9, 2.0], [np.nan, np.inf]])
NEW = [np.array([1e6, -1e6]), np.array([0.1, 0.2]), np.array([-30.0, 40.0])]


def run(x: Any, **options: Any) -> Any:
    chosen: dict[str, Any] = {"radius": 100, "epsilon": 1, "delta": 1e-6, "bits": SeededBits(1), **options}
    if "rho" in options:
        chosen.update(epsilon=None, delta=None)
    return iterative_mean(x, **chosen)


def answers(value: float) -> Any:
    def answer(mechanism: Any, _: int) -> Any:
        return 40.0 if mechanism.sensitivity == 1 else np.array([value, -2 * value])

    return answer


def neighbours_of(x: np.ndarray[Any, Any], relation: Neighbours) -> list[np.ndarray[Any, Any]]:
    if relation is Neighbours.ADD_REMOVE:
        return [np.delete(x, i, axis=0) for i in range(len(x))] + [np.vstack([x, row]) for row in NEW]
    return [np.vstack([np.delete(x, i, axis=0), row]) for i in range(len(x)) for row in NEW]


def overruns(first: Seen, second: Seen) -> list[float]:
    """The L2 distance of the inputs of neighbours, over what each mechanism was told."""
    assert [mechanism for mechanism, _ in first] == [mechanism for mechanism, _ in second]
    return [
        float(np.linalg.norm(np.atleast_1d(value - other).astype(float)) / float(mechanism.sensitivity))
        for (mechanism, (value,)), (_, (other,)) in zip(first, second, strict=True)
    ]


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("released", [0.0, 1e6, -1e9])
def test_all_neighbours_keep_the_promises(
    monkeypatch: pytest.MonkeyPatch, relation: Neighbours, released: float
) -> None:
    """Whatever was released before, each sum of neighbours differs by at most its sensitivity."""
    recorder = Recorder(monkeypatch, [Gaussian], answers(released))
    first = recorder.of(lambda: run(ROWS, neighbours=relation))
    assert len(first) == (5 if relation is Neighbours.ADD_REMOVE else 4)
    worst = 0.0
    for y in neighbours_of(ROWS, relation):
        worst = max(worst, *overruns(first, recorder.of(lambda y=y: run(y, neighbours=relation))))  # type: ignore[misc]
    assert 0.5 < worst <= 1


@pytest.mark.parametrize("relation", list(Neighbours))
def test_opposite_rows_reach_the_sensitivity(monkeypatch: pytest.MonkeyPatch, relation: Neighbours) -> None:
    recorder = Recorder(monkeypatch, [Gaussian], answers(0))
    first = recorder.of(lambda: run([[1e7, 0.0]], neighbours=relation))
    other = np.empty((0, 2)) if relation is Neighbours.ADD_REMOVE else [[-1e7, 0.0]]
    assert max(overruns(first, recorder.of(lambda: run(other, neighbours=relation)))) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("budget", [{"rho": 0.1}, {"epsilon": 1, "delta": 1e-6}])
def test_the_event_is_what_was_drawn(
    monkeypatch: pytest.MonkeyPatch, relation: Neighbours, budget: dict[str, float]
) -> None:
    found = run(ROWS, neighbours=relation, **budget)
    recorder = Recorder(monkeypatch, [Gaussian], answers(1))
    seen = recorder.of(lambda: run(ROWS[:2], neighbours=relation, **budget))
    assert found.event == events.Composed([mechanism.event for mechanism, _ in seen])
    if "epsilon" in budget:
        assert 0.99 < accounting.epsilon(found.event, 1e-6, neighbours=relation) <= 1
    else:
        assert sum(1 / (2 * mechanism.event.noise_multiplier**2) for mechanism, _ in seen) == pytest.approx(0.1)


def test_released_numbers_decide_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under ADD_REMOVE the same answers give the same estimate, whatever the rows and their number are."""
    Recorder(monkeypatch, [Gaussian], answers(12345))
    first, second = run(ROWS), run(np.zeros((1000, 2)))
    for part in ("value", "low", "high"):
        assert (getattr(first, part) == getattr(second, part)).all()


# --------------------------------------------------------------------------------------------- starts without a range
def start_of(relation: Neighbours, d: int = 2) -> StableStart:
    return StableStart.of(epsilon=Fraction(1), delta=Fraction(1, 10**6), dimension=d, neighbours=relation)


def test_the_histogram_pays_for_all_coordinates_of_a_unit() -> None:
    """Each unit is in one cell for each coordinate: keys of one partition selection, at most d to a unit."""
    for d in (1, 3, 20):
        start = start_of(Neighbours.ADD_REMOVE, d)
        assert start.selection.max_groups == d
        assert accounting.epsilon(start.event, 1e-6) <= 1.0001
    replaced = start_of(Neighbours.REPLACE)
    assert replaced.selection.epsilon == Fraction(1, 2)
    converted = float(replaced.selection.delta) * (1 + math.exp(0.5))
    assert converted == pytest.approx(1e-6, rel=1e-9)
    assert converted <= 1e-6 * (1 + 1e-12)
    assert replaced.event == events.Approx(1, 1e-6)


@pytest.mark.parametrize("relation", list(Neighbours))
def test_one_unit_changes_one_cell_in_each_coordinate(monkeypatch: pytest.MonkeyPatch, relation: Neighbours) -> None:
    seen = []

    def select(_: Any, counts: Any, **__: Any) -> SelectedKeys:
        seen.append(counts)
        return SelectedKeys(np.zeros(counts.size, dtype=bool), np.zeros(0, dtype=np.int64))

    monkeypatch.setattr(PartitionSelection, "release", select)
    x = np.array([[0.1, 5.0], [0.2, 5.5], [7.0, 5.1]])
    for y in (x, np.vstack([x, [0.3, -8.0]])):
        start_of(relation).release(y, 1.0, SeededBits(0))
    assert [counts.tolist() for counts in seen] == [[2, 1, 3], [3, 1, 1, 3]]


def test_a_mean_is_found_anywhere() -> None:
    for seed, place in enumerate([0.0, 1e9, -3e5]):
        x = place + normals((3000, 2), bits=SeededBits(seed))
        found = run(x, radius=None, bits=SeededBits(seed))
        assert np.abs(found.value - place).max() < 0.3
        assert np.isfinite(found.high).all()
        assert accounting.epsilon(found.event, 1e-6) <= 1


def test_nothing_is_found_in_few_rows() -> None:
    found = run([5.0, 6.0], radius=None)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_no_cell_of_a_single_row_is_shown() -> None:
    """1000 seeds: at delta / 2 = 5e-7 for each, one in a thousand would already be wrong."""
    start = start_of(Neighbours.ADD_REMOVE, 1)
    shown = sum(start.release(np.array([[1e6]]), 1.0, SeededBits(s))[1].any() for s in range(1000))
    assert shown == 0


# ----------------------------------------------------------------------------------------------------------- accuracy
@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("radius", [5, 1e5, None])
def test_intervals_cover_and_are_short(relation: Neighbours, radius: float | None) -> None:
    """16 runs of 3 coordinates: of 48 intervals fewer than 40 at 95 % have a probability of 0.2 %."""
    truth = np.array([1.0, -2.0, 3.0])
    hits, widths, errors = 0, [], []
    for seed in range(16):
        x = truth + normals((4000, 3), bits=SeededBits(200 + seed))
        found = run(x, radius=radius, neighbours=relation, bits=SeededBits(seed))
        hits += int(np.sum((found.low <= truth) & (truth <= found.high)))
        widths.append(found.high - found.low)
        errors.append(np.abs(found.value - x.mean(axis=0)))
    assert hits >= 40
    assert np.median(widths) <= 2 * 2 * 1.96 / math.sqrt(4000) + 2 * 2 * np.quantile(errors, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Neighbours))
def test_coverage_of_many_runs(relation: Neighbours) -> None:
    """1500 intervals: a true 95 % shows less than 93 % with a probability below 0.1 %."""
    hits = 0
    for seed in range(300):
        x = 4 + normals((500, 5), bits=SeededBits(7000 + seed))
        found = run(x, radius=50, neighbours=relation, bits=SeededBits(seed))
        hits += int(np.sum((found.low <= 4) & (found.high >= 4)))
    assert hits / 1500 >= 0.93


def test_a_wrong_ball_costs_accuracy_only() -> None:
    found = run(1e6 + normals((500, 2), bits=SeededBits(1)), radius=1)
    assert np.isfinite(found.value).all()


def test_vectors_and_empty_tables() -> None:
    found = run([2.0] * 3000)
    assert isinstance(found.value, float)
    assert found.value == pytest.approx(2, abs=0.2)
    assert run(np.empty((0, 3))).value.shape == (3,)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": None, "delta": None}, "epsilon"),
        ({"delta": None}, "delta"),
        ({"radius": 0}, "radius"),
        ({"radius": None, "rho": 1}, "radius"),
        ({"scale": -1}, "scale"),
        ({"shares": ()}, "shares"),
        ({"shares": (1, 0)}, "shares"),
        ({"confidence": 2}, "confidence"),
    ],
)
def test_refusals_come_before_the_data_is_read(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        run("unread", bits=NoBits(), **options)
    assert refused.value.name == name


def test_other_refusals() -> None:
    for wrong in ("text", [["a"]], 5.0):
        with pytest.raises(InvalidValue):
            run(wrong, bits=NoBits())
    for centre in ([1.0, 2.0, 3.0], math.nan, "here"):
        with pytest.raises(InvalidParameter):
            run(ROWS, centre=centre, bits=NoBits())


# ------------------------------------------------------------------------------------------------------------ mutants
def worst_overrun(monkeypatch: pytest.MonkeyPatch) -> float:
    recorder = Recorder(monkeypatch, [Gaussian], answers(1e5))
    first = recorder.of(lambda: run(ROWS))
    return max(
        max(overruns(first, recorder.of(lambda y=y: run(y))))  # type: ignore[misc]
        for y in neighbours_of(ROWS, Neighbours.ADD_REMOVE)
    )


def test_mutant_rows_that_are_not_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "within", lambda steps, _: steps)
    assert worst_overrun(monkeypatch) > 1


def test_mutant_centred_at_the_exact_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = module.clipped_sum

    def looked(table: Any, centre: Any, unit: float) -> Any:  # noqa: ARG001 - instead of the released one
        return honest(table, np.nanmedian(table, axis=0), unit)

    monkeypatch.setattr(module, "clipped_sum", looked)
    assert worst_overrun(monkeypatch) > 1
