"""Streams: what is released, what it costs, and what is refused before anything is drawn."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue, StreamError
from discreet.noise import SeededBits
from discreet.privacy import Budget, events
from discreet.stream import Participation, RunningSum, SlidingWindow
from tests.cases import every
from tests.effort import some

RHO = Budget(rho="0.5")
PURE = Budget(epsilon=1)
APPROX = Budget(epsilon=1, delta="1e-6")


def test_a_year_of_daily_totals() -> None:
    stream = RunningSum(horizon=365, budget=RHO, sensitivity=1)
    assert max(stream.variances(365)) ** 0.5 < 2.95
    assert stream.event == events.Gaussian(noise_multiplier=1)
    assert accounting.epsilon(stream.event, 1e-6) < 5.3  # of the exact curve; zCDP alone gives 5.76


@every(
    ("horizon", "budget", "method"),
    some(
        [
            (64, RHO, "square root"),
            (64, RHO, "optimal"),
            (64, RHO, "bounded memory"),
            (None, RHO, "bounded memory"),
            (64, PURE, "tree"),
            (None, PURE, "tree"),
            (64, APPROX, "square root"),
        ],
        2,
    ),
)
def test_estimates_cover_the_sums(horizon: int | None, budget: Any, method: Any) -> None:
    """40 lines of 64 sums: standardised errors have mean square 1, and intervals cover.

    Errors of one line hang together: its mean square has a variance of at most 2, so that the mean of 40 is within
    6 sqrt(2 / 40) = 1.35 of 1; of Laplace noise (kurtosis 6) within 6 sqrt(5 / 40) = 2.2, and above 0.3 in both.
    """
    stream = RunningSum(horizon=horizon, budget=budget, method=method, size=40, bits=SeededBits(17), confidence=0.9)
    scale, total, squares, covered = np.sqrt(stream.variances(64)), np.zeros(40), [], []
    for t in range(64):
        values = (np.arange(40) + t * 37) % 11 - 3
        total += values
        found = stream.release(values)
        squares.append(((found.value - total) / scale[t]) ** 2)
        covered.append((found.low <= total) & (total <= found.high))
    assert stream.method == method
    assert not found.private
    assert 0.3 < np.mean(squares) < 2.2
    assert np.mean(covered) > 0.8


@every(("window", "budget"), itertools.product((1, 3, 7), (RHO, PURE)))
def test_windows_forget(window: int, budget: Any) -> None:
    """A very large budget shows the sums themselves."""
    large = Budget(rho=10**8) if budget is RHO else Budget(epsilon=10**4)
    for horizon in (20, None):
        stream = SlidingWindow(window=window, horizon=horizon, budget=large)
        values = [(t * 37) % 11 - 3 for t in range(20)]
        for t, value in enumerate(values):
            assert stream.release(value).value == pytest.approx(sum(values[max(0, t + 1 - window) : t + 1]), abs=0.02)


def test_one_line_for_each_group() -> None:
    stream = RunningSum(horizon=5, budget=Budget(rho=10**8), size=3)
    stream.release([1, 2, 3])
    found = stream.release(np.array([10, 20, 30]))
    assert found.value == pytest.approx([11, 22, 33], abs=0.01)
    assert found.low.shape == found.high.shape == (3,)
    with pytest.raises(InvalidValue, match="3 numbers"):
        stream.release([1, 2])


def test_real_values_are_rounded_and_the_rounding_is_counted() -> None:
    fine = RunningSum(horizon=5, budget=Budget(rho=10**10), sensitivity="0.3", grid="1/8")
    found = fine.release(0.3)  # two steps of 1/8, or 0.25; one unit moves up to three steps
    assert found.value == pytest.approx(0.25, abs=0.001)
    assert found.low <= 0.3 <= found.high
    assert fine.event.noise_multiplier == RunningSum(horizon=5, budget=Budget(rho=10**10)).event.noise_multiplier  # type: ignore[attr-defined]
    assert fine.variances(1)[0] == pytest.approx(
        (3 / 8) ** 2 * RunningSum(horizon=5, budget=Budget(rho=10**10)).variances(1)[0]
    )
    with pytest.raises(InvalidValue, match="on the grid"):
        RunningSum(horizon=5, budget=RHO).release(0.5)
    with pytest.raises(InvalidValue, match="on the grid"):
        RunningSum(horizon=5, budget=RHO, size=1, grid="1/8").release([0.3])


def test_values_out_of_bounds_are_refused_or_clipped() -> None:
    stream = RunningSum(horizon=5, budget=Budget(rho=10**8), bounds=(0, 10))
    with pytest.raises(InvalidValue, match="bounds") as caught:
        stream.release(1234567)
    assert "1234567" not in str(caught.value)
    assert stream.released == 0
    clipped = RunningSum(horizon=5, budget=Budget(rho=10**8), bounds=(0, 10), clip=True)
    assert clipped.release(1234567).value == pytest.approx(10, abs=0.01)
    for wrong in (float("nan"), float("inf"), "3", None, True, 2**60, [1]):
        with pytest.raises(InvalidValue):
            stream.release(wrong)
    assert stream.release(3).value == pytest.approx(3, abs=0.01)


@every(
    "wrong",
    [
        {"horizon": 0},
        {"horizon": 2.5},
        {"horizon": True},
        {"horizon": 1 << 41},
        {"sensitivity": 0},
        {"sensitivity": float("nan")},
        {"budget": 1},
        {"budget": PURE, "method": "square root"},
        {"method": "tree"},
        {"method": "fast"},
        {"horizon": None, "method": "square root"},
        {"horizon": 5000, "method": "optimal"},
        {"participation": 3},
        {"size": 0},
        {"grid": 3},
        {"bounds": (3, 3)},
        {"bounds": (0, 1 << 60)},
        {"confidence": 1},
    ],
)
def test_bad_parameters_are_refused_before_a_bit_is_drawn(wrong: dict[str, Any]) -> None:
    bits = SeededBits(1)
    with pytest.raises(InvalidParameter):
        RunningSum(**({"horizon": 5, "budget": RHO, "bits": bits} | wrong))  # type: ignore[arg-type] # what is wrong
    assert bits.word() == SeededBits(1).word()


def test_a_stream_ends() -> None:
    stream = RunningSum(horizon=2, budget=RHO)
    first = stream.release(1, period=1)
    assert stream.release(5, period=1) is first is stream.last  # asked again: nothing is drawn
    with pytest.raises(InvalidParameter, match="next one"):
        stream.release(1, period=3)
    stream.release(1, period=2)
    with pytest.raises(StreamError, match="All 2 periods"):
        stream.release(1)


def test_streams_are_not_copied_or_forked() -> None:
    stream = RunningSum(horizon=5, budget=RHO)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            duplicate(stream)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            stream.release(1)
        except StreamError:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"refused"
    os.close(read)
    os.close(write)


def test_an_interrupted_release_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = RunningSum(horizon=5, budget=RHO)
    monkeypatch.setattr(stream, "_noise", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        stream.release(1)
    monkeypatch.undo()
    with pytest.raises(StreamError, match="interrupted"):
        stream.release(1)


def test_the_unit_decides_the_noise() -> None:
    """Twelve periods a month apart cost less than twelve in a row, and more than one."""
    once, apart, row = (
        max(RunningSum(horizon=365, budget=RHO, participation=unit).variances(365))
        for unit in (Participation(), Participation(12, 30), Participation(12))
    )
    assert 12 * once < apart < 0.7 * row < 0.7 * 144 * once
    pure, many = (RunningSum(horizon=64, budget=PURE, participation=Participation(n)).event for n in (1, 3))
    assert isinstance(pure, events.DiscreteLaplace)
    assert many == events.DiscreteLaplace(scale=3 * pure.scale, sensitivity=3 * pure.sensitivity)


def test_short_streams_with_a_large_epsilon_take_laplace_noise() -> None:
    """What is better is decided by public variances: 2 n / epsilon^2 for few periods."""
    assert RunningSum(horizon=5, budget=APPROX).method == "tree"
    assert RunningSum(horizon=365, budget=APPROX).method == "square root"
    assert max(RunningSum(horizon=5, budget=APPROX).variances(5)) < max(
        RunningSum(horizon=5, budget=APPROX, method="square root").variances(5)
    )


def test_several_lines_take_no_laplace_noise_for_a_move_in_the_l2_norm() -> None:
    """A unit that moves four lines by 1/2 each moves them by 1 in the L2 norm, and by 2 in the L1 norm."""
    for stream in (
        RunningSum(horizon=5, budget=APPROX, size=4),
        SlidingWindow(window=2, horizon=5, budget=APPROX, size=4),
    ):
        assert stream.method == "square root"


def test_events_price_as_the_budget() -> None:
    for budget, horizon in itertools.product((RHO, PURE, APPROX), (9, 365, None)):
        event = RunningSum(horizon=horizon, budget=budget).event
        if budget is RHO:
            assert Fraction(1) <= event.noise_multiplier < Fraction("1.000001")  # type: ignore[attr-defined]
        elif budget is PURE:
            assert accounting.epsilon(event, 0) <= 1
        else:
            assert 0.999 < accounting.epsilon(event, 1e-6) <= 1
