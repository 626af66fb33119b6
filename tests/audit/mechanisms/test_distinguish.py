"""Two datasets, many runs: leaks are found wherever they hide, honest mechanisms pass, and rates are as stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet import audit
from discreet.audit.mechanisms.output_events import ColumnBins, regression
from discreet.audit.mechanisms.output_features import ErrorOutput, columns_of
from discreet.errors import InvalidParameter
from discreet.mechanisms import DiscreteGaussian, Gaussian, Laplace, Mechanism, RandomizedResponse
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import events
from tests.audit import leaks

RUNS = 2000
SURE = 1 - 1e-6  # an honest mechanism fails once in a million; seeds are fixed


# ------------------------------------------------------------------------------------------------------- leaks
def test_noise_in_floats_is_told_by_its_low_bits(bits: SeededBits) -> None:
    found = audit.distinguish(leaks.float_noise(bits), 0.0, 1.0, epsilon=1, runs=RUNS, confidence=SURE)
    assert not found.passed
    assert found.epsilon_lower > 2


def test_without_the_grain_the_same_noise_looks_honest(bits: SeededBits) -> None:
    """The leak is in the low bits only: rounded to a coarse grid afterwards, nothing is found."""
    leaky = leaks.float_noise(bits)
    found = audit.distinguish(lambda x: round(leaky(x), 1), 0.0, 1.0, epsilon=1, runs=RUNS, confidence=SURE)
    assert found.passed


def test_an_error_that_depends_on_data_is_an_output(bits: SeededBits) -> None:
    found = audit.distinguish(leaks.failing(bits), 0, 1, epsilon=1, runs=RUNS, confidence=SURE)
    assert not found.passed
    assert "ZeroDivisionError" in found.event
    assert found.likelier_on == "a"
    assert (found.first, found.second) == (RUNS // 2, 0)


def test_groups_that_are_there_or_not_are_seen(bits: SeededBits) -> None:
    found = audit.distinguish(
        leaks.grouped(bits), {"x": 30}, {"x": 30, "rare": 1}, epsilon=1, runs=RUNS, confidence=SURE
    )
    assert not found.passed
    assert found.epsilon_lower == pytest.approx(found.most)


@pytest.mark.ci
def test_lengths_are_seen_where_no_value_differs(bits: SeededBits) -> None:
    found = audit.distinguish(leaks.listed(bits), [1] * 20, [1] * 21, epsilon=1, runs=400, confidence=SURE)
    assert not found.passed
    assert "length" in found.event


@pytest.mark.ci
def test_a_leak_in_several_entries_is_found_by_the_trained_score(bits: SeededBits) -> None:
    """Ten entries, each with noise for itself only: one alone is within the claim, all together are not."""
    mechanism = Laplace(epsilon=0.5, sensitivity=1)

    def release(value: int) -> Any:
        return mechanism.release(np.full(10, value), bits=bits)

    alone = audit.distinguish(lambda v: release(v)[0], 0, 1, epsilon=0.6, runs=RUNS, confidence=SURE)
    found = audit.distinguish(release, 0, 1, epsilon=0.6, runs=RUNS, confidence=SURE)
    assert alone.passed
    assert not found.passed
    assert "score" in found.event or "sum" in found.event


# --------------------------------------------------------------------------------------------- honest mechanisms
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("mechanism", "a", "b", "share"),
    [
        (Laplace(epsilon=1, sensitivity=1), 0, 1, 0.5),
        (Laplace(epsilon=1, sensitivity=1), [3, 4], [3, 5], 0.4),
        pytest.param(RandomizedResponse(epsilon=2, options=3), 0, 2, 0.6, marks=pytest.mark.ci),
    ],
)
def test_honest_mechanisms_pass_and_come_near_their_claim(
    mechanism: Mechanism, a: Any, b: Any, share: float, bits: SeededBits
) -> None:
    found = audit.distinguish(mechanism, a, b, runs=4000, bits=bits)
    assert found.passed
    assert found.delta == 0
    assert share * found.epsilon_claimed < found.epsilon_lower


@pytest.mark.ci
def test_a_gaussian_claim_is_audited_as_one(bits: SeededBits) -> None:
    mechanism = Gaussian.with_multiplier(noise_multiplier=0.5, sensitivity=1)
    found = audit.distinguish(mechanism, 0, 1, runs=RUNS, confidence=SURE, bits=bits)
    assert found.passed
    assert found.mu_claimed == pytest.approx(2)
    assert found.mu_lower is not None
    assert 1.3 < found.mu_lower < 2
    assert "Gaussian DP" in found.summary()
    loud = audit.distinguish(
        lambda v: mechanism.release(v, bits=bits), 0, 1, event=events.Gaussian(1), runs=RUNS, confidence=SURE
    )
    assert not loud.passed


def test_delta_is_taken_from_the_claim() -> None:
    approximate = audit.distinguish(lambda value: value, 0, 0, event=events.Approx(1, 1e-3), runs=40, confidence=SURE)
    assert approximate.delta == 1e-3
    assert approximate.epsilon_claimed == 1
    curve = DiscreteGaussian.for_rho(rho=0.5, sensitivity=1)
    found = audit.distinguish(curve, 0, 1, runs=400, delta=1e-2, bits=SeededBits(1))
    assert found.delta == 1e-2
    assert found.mu_claimed is None


@pytest.mark.slow
def test_the_bound_exceeds_a_true_epsilon_as_rarely_as_stated(bits: SeededBits) -> None:
    """400 audits of an exact coin at 90 %: at most 10 % + 4 deviations may fail, the search included."""
    mechanism = RandomizedResponse(epsilon=1)
    trials = 400
    failed = sum(
        not audit.distinguish(mechanism, 0, 1, runs=200, confidence=0.9, bits=bits).passed for _ in range(trials)
    )
    assert failed / trials <= 0.1 + 4 * (0.1 * 0.9 / trials) ** 0.5


# ------------------------------------------------------------------------------------------------------- words
def test_the_summary_says_what_an_audit_cannot_show(bits: SeededBits) -> None:
    passed = audit.distinguish(Laplace(epsilon=1, sensitivity=1), 0, 1, runs=400, bits=bits)
    assert "This proves nothing" in passed.summary()
    assert "at most" in passed.summary()
    idle = audit.distinguish(Laplace(epsilon=9, sensitivity=1), 0, 1, runs=400, bits=bits)
    assert idle.most < 9
    assert "could not have failed" in idle.summary()
    failed = audit.distinguish(lambda value: value, 0, 1, epsilon=1, runs=400)
    assert "The claim is false" in failed.summary()
    assert "refuted" in failed.spec()["title"]["text"][0]
    assert failed.chart() is not None


def test_equal_datasets_certify_nothing(bits: SeededBits) -> None:
    found = audit.distinguish(Laplace(epsilon=1, sensitivity=1), 5, 5, runs=RUNS, confidence=SURE, bits=bits)
    assert found.epsilon_lower == 0


def test_a_seed_repeats_everything() -> None:
    first, again = (
        audit.distinguish(Laplace(epsilon=1, sensitivity=1), 0, 1, runs=400, bits=SeededBits(4)) for _ in range(2)
    )
    assert first == again


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"epsilon": 1, "runs": 3}, "runs"),
        ({"epsilon": 1, "confidence": 1}, "confidence"),
        ({"epsilon": -1}, "epsilon"),
        ({}, "epsilon"),
        ({"epsilon": 1, "event": events.Pure(1)}, "epsilon"),
        ({"epsilon": 1, "delta": 1}, "delta"),
        ({"epsilon": 1, "neighbours": "swap"}, "neighbours"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(given: dict[str, Any], name: str) -> None:
    def never(_: Any) -> Any:
        raise AssertionError

    with pytest.raises(InvalidParameter) as refused:
        audit.distinguish(never, 0, 1, **given)
    assert refused.value.name == name
    with pytest.raises(InvalidParameter):
        audit.distinguish(7, 0, 1, epsilon=1)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------- features
def test_outputs_of_all_kinds_are_taken_apart() -> None:
    outputs: list[Any] = [
        1,
        {"k": [1, 2.5]},
        None,
        ErrorOutput("KeyError"),
        "text",
        {3},
        np.zeros((2, 2)),
        (True, b"x"),
    ]
    columns = columns_of(outputs)
    assert {len(column) for column in columns.values()} == {len(outputs)}
    assert columns["kind of output"].tolist()[3] == "KeyError"
    assert columns["length of output"].tolist()[6] == 4
    assert columns["keys of output"].tolist()[1] == "['k']"
    assert columns["output['k'][1]"].tolist()[1] == 2.5


def test_the_grain_is_the_lowest_binary_digit() -> None:
    found = columns_of([1.0, 0.75, 6.0, 2.0**-60, 0.0, 1 + 2.0**-52])
    assert found["grain of output"].tolist() == [0, -2, 1, -60, 9999, -52]
    assert columns_of([17, 32])["low bits of output"].tolist() == [1, 0]


def test_low_bits_of_large_whole_numbers_are_seen(bits: SeededBits) -> None:
    """Noise in steps of two, added to a number that no float holds: the parity tells."""
    mechanism = Laplace(epsilon=1, sensitivity=1, grid=2)
    large = 1 << 70

    def release(value: int) -> int:
        return large + value + int(mechanism.release(0, bits=bits))

    found = audit.distinguish(release, 0, 1, epsilon=1, runs=200, confidence=SURE)
    assert not found.passed
    assert "low bits" in found.event or "grain" in found.event


def test_infinities_are_values(bits: SeededBits) -> None:
    def release(value: float) -> float:
        u = float(uniforms(1, bits=bits)[0])
        return float("inf") if u < value else u

    found = audit.distinguish(release, 0.0, 0.5, epsilon=1, runs=400, confidence=SURE)
    assert not found.passed


def test_bins_take_what_they_never_saw() -> None:
    bins = ColumnBins.of("output", np.arange(1000, dtype=float))
    assert bins.count <= 66
    assert bins.codes(np.array([-1e9, 1e9, np.nan])).tolist() == [0, bins.count - 2, bins.count - 1]
    few = ColumnBins.of("kind", np.array(["a", "b"], dtype=object))
    assert few.codes(np.array(["b", "c"], dtype=object)).tolist() == [1, 2]


def test_the_regression_finds_the_weights_that_made_the_labels(bits: SeededBits) -> None:
    """2000 labels at weights 2, -1 and 0.5: deviations are below 0.1 each; 5 of them."""
    features = np.column_stack([uniforms((2000, 2), bits=bits) * 4 - 2, np.ones(2000)])
    chance = 1 / (1 + np.exp(-features @ np.array([2.0, -1.0, 0.5])))
    weights = regression(features, uniforms(2000, bits=bits) < chance)
    assert weights == pytest.approx([2.0, -1.0, 0.5], abs=0.5)
