"""Trimmed means and smooth medians: what enters each mechanism on all neighbours, events, intervals, refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Laplace, Lomax
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours, events
from discreet.statistics.robust import smooth_sensitivity
from discreet.statistics.robust.trimmed_mean import smooth_median, trimmed_mean
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.statistics import smooth_referee as referee
from tests.statistics.mechanism_recorder import Recorder, Seen

WIDTH = 3
BOUNDS = (0, WIDTH)
CALLS = [(smooth_median, {}), (trimmed_mean, {"trim": "0.25"}), (trimmed_mean, {"trim": 0})]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch, [Lomax, Laplace], lambda *_: 1.0)


def inputs_of(recorder: Recorder, call: Any, x: Any, **options: Any) -> Seen:
    return recorder.of(lambda: call(x, bounds=BOUNDS, epsilon=1, bits=SeededBits(0), **options))


def promises_kept(first: Seen, second: Seen) -> None:
    """Two neighbours' inputs are as near to each other as the mechanisms were told."""
    assert [mechanism for mechanism, _ in first] == [mechanism for mechanism, _ in second]
    (noise, (centre, scale)), *logs = first
    (_, (other, other_scale)), *other_logs = second
    raised, other_raised = max(scale, noise.floor), max(other_scale, noise.floor)
    assert abs(centre - other) <= min(raised, other_raised)
    assert abs(math.log(raised / other_raised)) <= float(noise.ratio) + 1e-15
    for (mechanism, (value,)), (_, (changed,)) in zip(logs, other_logs, strict=True):
        assert abs(value - changed) <= mechanism.sensitivity


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("call", "options"), CALLS)
@pytest.mark.parametrize("n", [3, 4])
def test_all_neighbours_keep_the_promises_to_all_mechanisms(
    recorder: Recorder, call: Any, options: dict[str, Any], n: int
) -> None:
    inputs = {x: inputs_of(recorder, call, x, **options) for x in referee.databases(WIDTH, n)}
    for x, seen in inputs.items():
        assert len(seen) == 3
        for y in referee.neighbours(x, WIDTH):
            promises_kept(seen, inputs[y])


@pytest.mark.parametrize(("call", "options"), CALLS)
@pytest.mark.parametrize("target", ["population", "sample"])
def test_the_event_is_the_noise_that_was_drawn(
    recorder: Recorder, call: Any, options: dict[str, Any], target: str
) -> None:
    seen = inputs_of(recorder, call, [0, 1, 2, 3, 3], target=target, **options)
    found = call([0, 1, 2, 3, 3], bounds=BOUNDS, epsilon=1, bits=SeededBits(0), target=target, **options)
    assert found.event == events.Composed([mechanism.event for mechanism, _ in seen])
    assert len(seen) == (3 if target == "population" else 2)
    spent = accounting.epsilon(found.event, 0, neighbours=Neighbours.REPLACE)
    assert 0.999 <= spent <= 1
    assert not found.private


def test_exact_values_go_into_the_noise(recorder: Recorder) -> None:
    values = [0.0, 1.0, 1.5, 2.0, 3.0, np.inf, -np.inf, np.nan]  # as 0, 1, 1.5, 2, 3, 3, 0, 1.5
    (noise, (centre, _)), *_ = inputs_of(recorder, trimmed_mean, values, trim="0.25")
    step = Fraction(1, 1 << 31)  # the coarsest with 2^32 steps from 0 to 3
    assert centre * step == Fraction(3, 2)
    assert noise.floor == Fraction(1, 4)
    (_, (median, _)), *_ = inputs_of(recorder, smooth_median, values)
    assert median * step == Fraction(3, 2)


def test_equal_values_are_not_released_as_they_are() -> None:
    """20 001 equal values: without a floor the noise would vanish."""
    seen = {smooth_median([5.0] * 20001, bounds=(0, 10), epsilon=1, bits=SeededBits(s)).value for s in range(20)}
    assert len(seen) == 20
    assert max(abs(value - 5) for value in seen) < 0.01


def test_bounds_may_be_wide() -> None:
    """Noise follows the middle: bounds a million times wider hardly make a trimmed mean of calm data worse."""
    values = normals(5000, bits=SeededBits(3))
    near, far = (
        [trimmed_mean(values, bounds=(-b, b), epsilon=1, trim="0.2", bits=SeededBits(s)).value for s in range(20)]
        for b in (10, 10_000_000)
    )
    truth = float(np.mean(np.sort(values)[1000:4000]))
    assert np.std(np.array(near) - truth) < 0.01
    assert np.std(np.array(far) - truth) < 0.02


def coverage(call: Any, n: int, runs: int, target: str, epsilon: float = 1.0) -> tuple[float, float]:
    """How often the interval covers, and its median width."""
    hits, widths = 0, []
    for run in range(runs):
        x = 7 + 2 * normals(n, bits=SeededBits(10_000 + run))
        found = call(x, bounds=(-40, 60), epsilon=epsilon, target=target, bits=SeededBits(run))
        sample = np.median(x) if call is smooth_median else np.mean(np.sort(x)[n // 10 : n - n // 10])
        truth = 7 if target == "population" else sample
        hits += found.low <= truth <= found.high
        widths.append(found.high - found.low)
    return hits / runs, float(np.median(widths))


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("call", [smooth_median, trimmed_mean])
def test_intervals_cover_and_are_short(call: Any) -> None:
    """60 runs at 95 %: 51 hits or fewer have a probability of 0.4 %; widths follow the two rules of the package."""
    n = 1000
    hits, width = coverage(call, n, 60, "population")
    assert hits >= 52 / 60
    deviation = 2 * (math.sqrt(math.pi / 2) if call is smooth_median else 1.03) / math.sqrt(n)
    noisy = noise_quantile(call, n)
    assert width <= 2 * (2 * 1.96 * deviation) + 2 * (2 * noisy)
    sample_hits, sample_width = coverage(call, n, 60, "sample")
    assert sample_hits >= 52 / 60
    assert sample_width <= 2 * (2 * noisy)


def noise_quantile(call: Any, n: int) -> float:
    """The distance that the noise alone keeps with 95 %, on one data set."""
    x = 7 + 2 * normals(n, bits=SeededBits(10_000))
    values = [call(x, bounds=(-40, 60), epsilon=1, bits=SeededBits(s)).value for s in range(80)]
    sample = np.median(x) if call is smooth_median else np.mean(np.sort(x)[n // 10 : n - n // 10])
    return float(np.quantile(np.abs(np.array(values) - sample), 0.95))


@pytest.mark.slow
@pytest.mark.parametrize("call", [smooth_median, trimmed_mean])
@pytest.mark.parametrize("n", [300, 2000])
@pytest.mark.parametrize("target", ["population", "sample"])
def test_coverage_of_many_runs(call: Any, n: int, target: str) -> None:
    """Of 600 runs 94 % or more; at exactly 95 % fewer than 92 % has a probability below 0.1 %."""
    hits, _ = coverage(call, n, 600, target)
    assert hits >= (0.94 if target == "population" else 0.92)


@every(
    ("options", "name"),
    [
        ({"bounds": None}, "bounds"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"beta": 0.7}, "beta"),
        ({"beta": 0}, "beta"),
        ({"neighbours": "add_remove"}, "neighbours"),
        ({"target": "nobody"}, "target"),
        ({"confidence": 1}, "confidence"),
    ],
)
@every("call", [smooth_median, trimmed_mean])
def test_refusals_come_before_the_data_is_read(call: Any, options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        call("unread", **{"bounds": BOUNDS, "epsilon": 1, "bits": NoBits(), **options})
    assert refused.value.name == name


def test_other_refusals() -> None:
    with pytest.raises(InvalidParameter) as refused:
        trimmed_mean([1.0], bounds=BOUNDS, epsilon=1, trim=0.5, bits=NoBits())
    assert refused.value.name == "trim"
    for wrong in ([], "text", [[1.0]], ["a"]):
        with pytest.raises(InvalidValue):
            smooth_median(wrong, bounds=BOUNDS, epsilon=1, bits=NoBits())


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(("call", "options"), CALLS)
def test_few_values_have_wide_intervals(call: Any, options: dict[str, Any], n: int) -> None:
    found = call([1.0] * n, bounds=BOUNDS, epsilon=1, bits=SeededBits(1), **options)
    assert 0 <= found.low <= found.value <= found.high <= WIDTH
    assert found.high - found.low > 1


# ------------------------------------------------------------------------------------------------------------ mutants
@pytest.mark.ci
def test_mutant_local_sensitivity(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale of these data alone, instead of a smooth one, breaks the promise to the noise."""

    def local(steps: Any, width: int, cut: int, *_: Any) -> Fraction:
        padded = np.concatenate([[0], steps, [width]])
        left, right = cut + 1, steps.size - cut
        move = max(padded[right + 1] - padded[left], padded[right] - padded[left - 1])
        return Fraction(max(1, int(move)), steps.size - 2 * cut)

    monkeypatch.setattr(smooth_sensitivity, "trimmed_mean", local)
    broken = 0
    for x in referee.databases(WIDTH, 3):
        for y in referee.neighbours(x, WIDTH):
            try:
                promises_kept(inputs_of(recorder, smooth_median, x), inputs_of(recorder, smooth_median, y))
            except AssertionError:
                broken += 1
    assert broken > 0


def test_mutant_beta_from_the_data(recorder: Recorder) -> None:
    """A beta chosen by looking changes the mechanism between neighbours, which the check of promises notices."""

    def looked(x: Any, **options: Any) -> Any:
        return smooth_median(x, beta=Fraction(1, 20) if max(x) > 2 else Fraction(1, 10), **options)

    with pytest.raises(AssertionError):
        promises_kept(inputs_of(recorder, looked, (0, 1, 2)), inputs_of(recorder, looked, (0, 1, 3)))


def test_mutant_without_a_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sensitivity of next to nothing, and a mechanism that does not raise it: the value comes out as it is."""
    monkeypatch.setattr(smooth_sensitivity, "trimmed_mean", lambda *_: Fraction(1, 10**300))
    monkeypatch.setattr(Lomax, "scale", lambda self, s: self.factor * s)
    seen = {smooth_median([5.0] * 20001, bounds=(0, 10), epsilon=1, bits=SeededBits(s)).value for s in range(5)}
    assert len(seen) == 1
