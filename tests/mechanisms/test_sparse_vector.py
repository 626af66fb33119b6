"""Sparse vector: exact losses by summing over the threshold's noise, the law of the code, mutants, refusals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from discreet.errors import InsufficientBudget, InvalidParameter, InvalidValue
from discreet.exact import Grid
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.statistical.laws import FALSE_ALARM, CategoricalLaw, DiscreteLaplaceLaw, p_value

Answers = tuple[bool, ...]
Queries = tuple[int, ...]
ROUNDING = 1e-9  # far above the error of sums of a few thousand floats, and of the tail e^-60 that is left out


@cache
def transcripts(count: int, positives: int) -> tuple[Answers, ...]:
    """All answers a session over so many queries can give."""
    found: list[Answers] = []

    def grow(answers: Answers) -> None:
        if len(answers) == count or sum(answers) == positives:
            found.append(answers)
            return
        grow((*answers, False))
        grow((*answers, True))

    grow(())
    return tuple(found)


@cache
def law(queries: Queries, threshold_scale: Fraction, query_scale: Fraction, positives: int) -> dict[Answers, float]:
    """The probability of every transcript for the threshold 0, by a sum over the threshold's noise."""
    reach = math.ceil(60 * threshold_scale) + 1
    noise = np.arange(-reach, reach + 1, dtype=float)
    weights = DiscreteLaplaceLaw(threshold_scale).pmf(noise)
    no = [DiscreteLaplaceLaw(query_scale).cdf(noise - query - 1) for query in queries]  # query + Z < noise
    yes = [
        DiscreteLaplaceLaw(query_scale).cdf(query - noise) for query in queries
    ]  # the same by symmetry: Z >= noise - query
    return {
        answers: float(
            np.sum(weights * np.prod([yes[i] if answer else no[i] for i, answer in enumerate(answers)], axis=0))
        )
        for answers in transcripts(len(queries), positives)
    }


def neighbours(*, monotone: bool, count: int) -> Iterator[tuple[Queries, Queries]]:
    for queries in product((-2, 0, 1), repeat=count):
        for allowed in [(0, 1), (-1, 0)] if monotone else [(-1, 0, 1)]:
            for move in product(allowed, repeat=count):
                yield queries, tuple(q + step for q, step in zip(queries, move, strict=True))


def judge_loss(mechanism: SparseVector, *, monotone: bool, count: int = 3) -> None:
    """No transcript's probability moves by more than e^epsilon, both ways."""
    scales = mechanism.threshold_scale, mechanism.query_scale, mechanism.max_positives
    limit = math.exp(mechanism.epsilon) * (1 + ROUNDING)
    for queries, others in neighbours(monotone=monotone, count=count):
        p, q = law(queries, *scales), law(others, *scales)
        assert all(p[answers] <= limit * q[answers] for answers in p), (queries, others)
        assert all(q[answers] <= limit * p[answers] for answers in p), (queries, others)


def long_loss(threshold_scale: Fraction, query_scale: Fraction, *, yeses: int = 1, noes: int = 400) -> float:
    """The loss of many noes, then some yeses, when the queries of the noes rise by 1 and the others fall by 1."""
    reach = math.ceil(60 * threshold_scale) + 1
    noise = np.arange(-reach, reach + 400, dtype=float)
    weights, query = DiscreteLaplaceLaw(threshold_scale).pmf(noise), DiscreteLaplaceLaw(query_scale)

    def chance(low: int, last: int) -> float:
        return float(np.sum(weights * query.cdf(noise - low - 1) ** noes * query.cdf(last - noise) ** yeses))

    return math.log(chance(0, -20) / chance(1, -21))


@pytest.mark.parametrize("positives", [1, 2])
@pytest.mark.parametrize("monotone", [False, True])
def test_no_transcript_moves_by_more_than_e_to_the_epsilon(positives: int, monotone: bool) -> None:
    mechanism = SparseVector(epsilon=1, sensitivity=1, threshold=0, max_positives=positives, monotone=monotone)
    judge_loss(mechanism, monotone=monotone)


@pytest.mark.parametrize("epsilon", [0.1, 3])
def test_the_same_for_other_epsilons(epsilon: float) -> None:
    judge_loss(SparseVector(epsilon=epsilon, sensitivity=1, threshold=0), monotone=False)


@dataclass(frozen=True, slots=True, init=False)
class QuietThreshold(SparseVector):
    """Skips the noise of the threshold, as published variants did."""

    @property
    def threshold_scale(self) -> Fraction:
        return Fraction(1, 1000)


@dataclass(frozen=True, slots=True, init=False)
class ForgetsThePositives(SparseVector):
    """Does not pay for more than one yes."""

    @property
    def query_scale(self) -> Fraction:
        return 2 / (self.epsilon - self._threshold_epsilon)


def test_mutants_are_killed() -> None:
    quiet = QuietThreshold(epsilon=1, sensitivity=1, threshold=0)
    assert long_loss(quiet.threshold_scale, quiet.query_scale, noes=40) > 5  # every no leaks
    for positives in (2, 3):
        mutant = ForgetsThePositives(epsilon=1, sensitivity=1, threshold=0, max_positives=positives)
        assert long_loss(mutant.threshold_scale, mutant.query_scale, yeses=positives) > 1.2
        honest = SparseVector(epsilon=1, sensitivity=1, threshold=0, max_positives=positives)
        assert 0.99 < long_loss(honest.threshold_scale, honest.query_scale, yeses=positives) <= 1 + ROUNDING


def test_monotone_noise_is_wrong_under_replace_and_refused_there() -> None:
    """With e1 = 0.4 and e2 = 0.6 the loss comes to e1 + 2 e2 = 1.6 instead of 1."""
    assert 1.599 < long_loss(Fraction(10, 4), Fraction(10, 6)) <= 1.6 + ROUNDING
    assert long_loss(Fraction(10, 4), Fraction(20, 6)) <= 1 + ROUNDING
    with pytest.raises(InvalidParameter) as caught:
        SparseVector(epsilon=1, sensitivity=1, threshold=0, monotone=True, neighbours=Neighbours.REPLACE)
    assert caught.value.name == "monotone"
    assert SparseVector(epsilon=1, sensitivity=1, threshold=0, neighbours="replace").neighbours is Neighbours.REPLACE


@pytest.mark.parametrize("positives", [1, 4, 100])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_parts_of_epsilon_add_up_in_the_best_proportion(positives: int, monotone: bool) -> None:
    mechanism = SparseVector(epsilon="1/3", sensitivity=2, threshold=0, max_positives=positives, monotone=monotone)
    shifts = positives if monotone else 2 * positives
    first, second = 2 / mechanism.threshold_scale, 2 * shifts / mechanism.query_scale
    assert first + second == Fraction(1, 3)
    assert float(second / first) == pytest.approx(shifts ** (2 / 3), rel=1e-3)


@pytest.mark.ci
def test_the_code_draws_the_law(bits: SeededBits) -> None:
    mechanism = SparseVector(epsilon=2, sensitivity=1, threshold=7, max_positives=2)
    queries = (0, 1, -2)
    found = transcripts(3, 2)
    draws = [found.index(tuple(mechanism.release([q + 7 for q in queries], bits=bits).tolist())) for _ in range(5000)]

    def expected(factor: Fraction) -> CategoricalLaw:
        chances = law(queries, factor * mechanism.threshold_scale, factor * mechanism.query_scale, 2)
        return CategoricalLaw(tuple(chances[answers] for answers in found))

    assert p_value(draws, expected(Fraction(1))) > FALSE_ALARM
    quiet = law(queries, Fraction(1, 1000), mechanism.query_scale, 2)
    assert p_value(draws, CategoricalLaw(tuple(quiet[answers] for answers in found))) < FALSE_ALARM


@pytest.mark.ci
def test_scales_30_percent_off_are_seen(bits: SeededBits) -> None:
    """One query just below the threshold shows the scale: a yes needs noise of 1."""
    mechanism = SparseVector(epsilon=4, sensitivity=1, threshold=0)
    draws = [bool(mechanism.release([-1], bits=bits)[0]) for _ in range(10_000)]

    def expected(factor: Fraction) -> CategoricalLaw:
        chances = law((-1,), factor * mechanism.threshold_scale, factor * mechanism.query_scale, 1)
        return CategoricalLaw((chances[(False,)], chances[(True,)]))

    assert p_value(draws, expected(Fraction(1))) > FALSE_ALARM
    for wrong in (Fraction(13, 10), Fraction(7, 10)):
        assert p_value(draws, expected(wrong)) < FALSE_ALARM


@pytest.mark.ci
def test_numbers_have_their_own_noise_and_price(bits: SeededBits) -> None:
    mechanism = SparseVector(epsilon=100, sensitivity=1, threshold=0, max_positives=2, answer_epsilon=1, grid=Grid(-1))
    answers = events.Repeated(events.DiscreteLaplace(scale=4, sensitivity=2), 2)
    assert mechanism.event == events.Composed([events.Pure(100), answers])
    draws = []
    for _ in range(5000):
        session = mechanism.start(bits=bits)
        assert [session.ask(value) for value in (-500, 1000.5, 1000.5)] == [False, True, True]
        draws += [int((answer - 1000.5) * 2) for answer in session.answers]
    assert p_value(draws, DiscreteLaplaceLaw(Fraction(4))) > FALSE_ALARM
    for wrong in (Fraction(52, 10), Fraction(28, 10)):
        assert p_value(draws, DiscreteLaplaceLaw(wrong)) < FALSE_ALARM
    plain = SparseVector(epsilon=1, sensitivity=1, threshold=0)
    assert plain.event == events.Pure(1)
    with pytest.raises(InvalidParameter):
        _ = plain.answer_scale


def test_a_session_stops_for_good(bits: SeededBits) -> None:
    session = SparseVector(epsilon=1000, sensitivity=1, threshold=0, max_positives=2).start(bits=bits)
    assert [session.ask(value) for value in (99, -99, 99)] == [True, False, True]
    assert session.finished
    assert session.above == (True, False, True)
    assert session.answers == ()
    for _ in range(2):
        with pytest.raises(InsufficientBudget):
            session.ask(-99)
        with pytest.raises(InsufficientBudget):
            session.ask_steps(-99)
    assert session.above == (True, False, True)
    assert "99" not in repr(session)


def test_the_threshold_is_noisy_once_per_session(bits: SeededBits) -> None:
    """Nearly noiseless queries: the answers of one session agree with one noisy threshold, and sessions differ."""

    class Sharp(SparseVector):
        @property
        def query_scale(self) -> Fraction:
            return Fraction(1, 1000)

    mechanism = Sharp(epsilon="0.03", sensitivity=1, threshold=0, max_positives=1000)  # threshold scale 5322
    levels = set()
    for _ in range(20):
        session = mechanism.start(bits=bits)
        answers = [session.ask(value) for value in range(-50_000, 50_000, 1000)]
        assert answers == sorted(answers)
        levels.add(sum(answers))
    assert len(levels) > 5


@pytest.mark.ci
def test_intervals_cover(bits: SeededBits) -> None:
    mechanism = SparseVector(epsilon=1, sensitivity=1, threshold=10, max_positives=3)
    for query in (0, 10, 30):
        inside = 0
        for _ in range(1000):
            low, high = mechanism.interval(bool(mechanism.release([query], bits=bits)[0]), confidence=0.8)
            inside += low <= query <= high
        assert inside >= 790
    estimate = mechanism.estimate([0, 20, 30], bits=bits)
    assert np.all(estimate.low <= estimate.high)
    numbers = SparseVector(epsilon=1, sensitivity=1, threshold=10, answer_epsilon=1)
    assert list(numbers.interval(5, confidence=0.95)) == [2, 8]


def test_intervals_hold_what_the_grid_rounds(bits: SeededBits) -> None:
    """Nearly no noise, and a step of 4: 11 is released as 12, and 9.9 counts as 8, which is not above 10."""
    mechanism = SparseVector(epsilon=10**6, sensitivity=4, threshold=10, grid=4, answer_epsilon=10**6)
    session = mechanism.start(bits=bits)
    assert session.ask(11)
    low, high = mechanism.interval(session.answers[-1])
    assert low <= 11 <= high
    for query in (9.9, 13.9):
        above = bool(mechanism.release([query], bits=bits)[0])
        low, high = mechanism.interval(above)
        assert low <= query <= high


GOOD: dict[str, object] = {"epsilon": 1, "sensitivity": 1, "threshold": 0}


@every("name", ["epsilon", "sensitivity", "answer_epsilon"])
@every("value", [0, -1, math.nan, math.inf, True, "x", 1e301])
def test_bad_amounts_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidParameter) as caught:
        SparseVector(**(GOOD | {name: value}))  # type: ignore[arg-type]
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", math.nan),
        ("threshold", None),
        ("max_positives", 0),
        ("max_positives", True),
        ("max_positives", 1.5),
        ("max_positives", 10**10),
        ("monotone", 1),
        ("neighbours", "swap"),
        ("grid", 3),
        ("epsilon", "1e-299"),
    ],
)
def test_bad_choices_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidParameter) as caught:
        SparseVector(**(GOOD | {name: value}))  # type: ignore[arg-type]
    assert caught.value.name == name


@pytest.mark.parametrize("values", [[1, math.nan], [math.inf], ["a"], [[1]], 3, [None]])
def test_bad_queries_are_refused_before_a_draw(values: object) -> None:
    with pytest.raises((InvalidParameter, InvalidValue)):
        SparseVector(**GOOD).release(values, bits=NoBits())  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "a", None, [1, 2]])
def test_a_session_refuses_bad_queries_and_goes_on(value: object, bits: SeededBits) -> None:
    session = SparseVector(epsilon=1000, sensitivity=1, threshold=0).start(bits=bits)
    with pytest.raises(InvalidValue):
        session.ask(value)
    assert session.above == ()
    assert session.ask(99)
