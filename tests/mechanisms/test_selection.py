"""Exponential, permute-and-flip, noisy max: exact ratios, published numbers, the law of the code, and mutants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Grid
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.noisy_max import PermuteAndFlip, ReportNoisyMax
from discreet.mechanisms.private_selection import Selection
from discreet.noise import Bits, SeededBits, discrete_laplace
from discreet.privacy import events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.mechanisms.choices import judge_range, judge_ratio, law_of
from tests.statistical.laws import FALSE_ALARM, CategoricalLaw, p_value

KINDS: list[type[Selection]] = [Exponential, PermuteAndFlip, ReportNoisyMax]
SCORES = (3, 2, 2, 0)
# A sample of n is told from a law at distance d if n d^2 > 21.4 / 2 (DKW, p = 1e-9), noise aside. A factor of 1.3 or
# 0.7 on epsilon = 2 moves these laws by at least 0.05: 15,000 draws leave more than 1.8 times that.
SAMPLES = 15_000


def chances(kind: type[Selection], epsilon: float, scores: tuple[int, ...] = SCORES) -> tuple[float, ...]:
    """The law at any epsilon, with a rational within 1e-17 of e^-rate."""
    rate = kind(epsilon=epsilon, sensitivity=1).rate
    b = Fraction(math.exp(-rate)).limit_denominator(10**9)
    return tuple(float(p) for p in law_of(kind(epsilon=epsilon, sensitivity=1), scores, b))


# ---------------------------------------------------------------------------------------- exact ratios
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("monotone", [False, True])
def test_the_probability_of_no_option_moves_by_more_than_e_to_the_epsilon(
    kind: type[Selection], monotone: bool
) -> None:
    judge_ratio(kind(epsilon=1, sensitivity=1, monotone=monotone), monotone=monotone)


@pytest.mark.parametrize("monotone", [False, True])
def test_the_exponential_mechanism_has_bounded_range(monotone: bool) -> None:
    judge_range(Exponential(epsilon=1, sensitivity=1, monotone=monotone), monotone=monotone)


@pytest.mark.parametrize("kind", [PermuteAndFlip, ReportNoisyMax])
def test_the_others_have_not_and_do_not_claim_it(kind: type[Selection]) -> None:
    mechanism = kind(epsilon=1, sensitivity=1)
    assert mechanism.event == events.Pure(1)
    with pytest.raises(AssertionError):
        judge_range(mechanism, monotone=False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_nearly_attained(kind: type[Selection]) -> None:
    """The noisy maximum comes near like 1 - 1 / gap only; the others exponentially fast."""
    mechanism, b = kind(epsilon=1, sensitivity=1), Fraction(1, 2)  # e^epsilon = b^-2 = 4
    p, q = (law_of(mechanism, scores, b)[0] for scores in ((1, 29), (0, 30)))
    assert p / q > Fraction(37, 10)


@dataclass(frozen=True, slots=True, init=False)
class FactorTwoDropped(Exponential):
    @property
    def rate(self) -> Fraction:
        return self.epsilon / self.grid.l1_steps(self.sensitivity)


@dataclass(frozen=True, slots=True, init=False)
class NoiseHalved(ReportNoisyMax):
    @property
    def rate(self) -> Fraction:
        return self.epsilon / self.grid.l1_steps(self.sensitivity)


@dataclass(frozen=True, slots=True, init=False)
class CoinsTooSharp(PermuteAndFlip):
    @property
    def rate(self) -> Fraction:
        return self.epsilon / self.grid.l1_steps(self.sensitivity)


@pytest.mark.parametrize("kind", [FactorTwoDropped, NoiseHalved, CoinsTooSharp])
def test_mutants_without_the_factor_two_are_killed(kind: type[Selection]) -> None:
    with pytest.raises(AssertionError):
        judge_ratio(kind(epsilon=1, sensitivity=1), monotone=False)


@pytest.mark.parametrize("kind", KINDS)
def test_monotone_is_wrong_for_scores_that_move_both_ways(kind: type[Selection]) -> None:
    with pytest.raises(AssertionError):
        judge_ratio(kind(epsilon=1, sensitivity=1, monotone=True), monotone=False)


# ----------------------------------------------------------------------------------- published numbers
@pytest.mark.parametrize(
    ("kind", "epsilon", "law", "loss"),
    [
        (Exponential, 1, (0.410477, 0.248967, 0.248967, 0.091590), 0.772703),
        (PermuteAndFlip, 1, (0.474233, 0.226237, 0.226237, 0.073294), 0.672354),
        (Exponential, 2, None, 0.495714),
        (PermuteAndFlip, 2, None, 0.375835),
    ],
)
def test_published_laws_and_losses(
    kind: type[Selection], epsilon: float, law: tuple[float, ...] | None, loss: float
) -> None:
    found = chances(kind, epsilon)
    assert law is None or found == pytest.approx(law, abs=5e-7)
    assert sum(p * (3 - score) for p, score in zip(found, SCORES, strict=True)) == pytest.approx(loss, abs=1e-6)


def test_permute_and_flip_is_never_worse() -> None:
    for scores in product(range(4), repeat=3):
        for b in (Fraction(1, 3), Fraction(9, 10)):
            losses = [
                sum(
                    p * (max(scores) - s)
                    for p, s in zip(law_of(kind(epsilon=1, sensitivity=1), scores, b), scores, strict=True)
                )
                for kind in (PermuteAndFlip, Exponential)
            ]
            assert losses[0] <= losses[1]


# --------------------------------------------------------------------------------- the law of the code
@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_the_code_draws_the_law(kind: type[Selection], bits: SeededBits) -> None:
    draws = kind(epsilon=2, sensitivity=1).choose(np.tile(SCORES, (SAMPLES, 1)), bits=bits)
    assert p_value(draws, CategoricalLaw(chances(kind, 2))) > FALSE_ALARM
    for wrong in (2.6, 1.4):
        assert p_value(draws, CategoricalLaw(chances(kind, wrong))) < FALSE_ALARM


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_one_at_a_time_draws_the_same_law(kind: type[Selection], bits: SeededBits) -> None:
    mechanism = kind(epsilon=4, sensitivity=1)
    draws = [mechanism.release([13, 12.0, Fraction(12), 10], bits=bits) for _ in range(1500)]
    assert p_value(draws, CategoricalLaw(chances(kind, 4))) > FALSE_ALARM
    assert p_value(draws, CategoricalLaw(chances(kind, 2))) < FALSE_ALARM


class TiesToTheHighest(ReportNoisyMax):
    def _pick(self, rows: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        noisy = rows + discrete_laplace(1 / self.rate, rows.shape, bits=bits)
        return np.asarray(rows.shape[1] - 1 - noisy[:, ::-1].argmax(axis=1))


def test_ties_go_to_the_lowest_index(bits: SeededBits) -> None:
    rows = np.zeros((SAMPLES, 2), dtype=int)
    expected = CategoricalLaw(chances(ReportNoisyMax, 8, (0, 0)))
    assert expected.chances[0] > 0.9
    assert p_value(ReportNoisyMax(epsilon=8, sensitivity=1).choose(rows, bits=bits), expected) > FALSE_ALARM
    assert p_value(TiesToTheHighest(epsilon=8, sensitivity=1).choose(rows, bits=bits), expected) < FALSE_ALARM


@pytest.mark.ci
def test_scores_0_0_against_1_minus_1_stay_within_the_claimed_divergence(bits: SeededBits) -> None:
    mechanism = Exponential(epsilon=1, sensitivity=1)
    rho, samples = 1 / 8, 5000
    shares = [
        np.bincount(mechanism.choose(np.tile(scores, (samples, 1)), bits=bits), minlength=2) / samples
        for scores in ([0, 0], [1, -1])
    ]
    spread = 6 * 0.5 / math.sqrt(samples)  # six standard deviations of a share
    for order in (2, 8):
        for p, q in (shares, shares[::-1]):
            worst = sum(p**order * q ** (1 - order))
            slack = order * spread * 2 / min(q)
            assert math.log(worst) / (order - 1) <= rho * order + slack
    exact = 1 / (1 + math.exp(-1))  # and exactly: the two laws are (1/2, 1/2) and (x, 1 - x)
    even, tilted = (0.5, 0.5), (exact, 1 - exact)
    for power in (1.01, 2, 8, 64):
        for one, two in ((even, tilted), (tilted, even)):
            divergence = math.log(sum(a**power * b ** (1 - power) for a, b in zip(one, two, strict=True))) / (power - 1)
            assert divergence <= rho * power


# --------------------------------------------------------------------------------------- pieces, grids
@pytest.mark.ci
def test_intervals_are_chosen_by_their_points_and_scores(bits: SeededBits) -> None:
    mechanism = Exponential(epsilon=2, sensitivity=1)
    edges, scores = [0, 2.5, 2.5, 7, 8], [0, 9, 1, 2]  # points 0 1 2 | none | 3 4 5 6 | 7 8
    draws = [mechanism.choose_interval(edges, scores, bits=bits) for _ in range(3000)]
    weights = [1.0] * 3 + [math.e] * 4 + [math.e**2] * 2
    assert p_value(np.array(draws), CategoricalLaw(tuple(weights))) > FALSE_ALARM
    flat = [1.0] * 9
    assert p_value(np.array(draws), CategoricalLaw(tuple(flat))) < FALSE_ALARM


def test_points_of_a_fine_grid_lie_on_it(bits: SeededBits) -> None:
    mechanism = Exponential(epsilon=1, sensitivity=1)
    for _ in range(200):
        point = mechanism.choose_interval([0, 0.3, 1], [0, 1], points=Grid(-10), bits=bits)
        assert 0 <= point <= 1
        assert float(point * 1024).is_integer()


@pytest.mark.parametrize(
    ("edges", "scores", "error"),
    [
        ([0, 1], [1, 2], InvalidParameter),
        ([1, 0, 2], [1, 2], InvalidValue),
        ([0.2, 0.3, 0.4], [1, 2], InvalidValue),
        ([0, math.nan, 2], [1, 2], InvalidValue),
        ([0, 1, math.inf], [1, 2], InvalidValue),
        ([0, 1, 1e300], [1, 2], InvalidValue),
    ],
)
def test_bad_pieces_are_refused(edges: list[float], scores: list[float], error: type[Exception]) -> None:
    with pytest.raises(error):
        Exponential(epsilon=1, sensitivity=1).choose_interval(edges, scores, bits=NoBits())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@given(
    sensitivity=st.fractions(Fraction(1, 10), 5),
    exponent=st.integers(-3, 3),
    scores=st.lists(st.tuples(st.fractions(-9, 9), st.fractions(-1, 1)), min_size=1, max_size=4),
)
def test_rounding_is_inside_the_sensitivity(
    kind: type[Selection], sensitivity: Fraction, exponent: int, scores: list[tuple[Fraction, Fraction]]
) -> None:
    mechanism = kind(epsilon=1, sensitivity=sensitivity, grid=Grid(exponent))
    before = mechanism.grid.steps([score for score, _ in scores])
    after = mechanism.grid.steps([score + move * sensitivity for score, move in scores])
    differences = (after - before).tolist()
    assert (max(*differences, 0) - min(*differences, 0)) * mechanism.rate <= mechanism.epsilon


# ------------------------------------------------------------------------------------------- intervals
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_score_is_inside_the_interval_often_enough(kind: type[Selection]) -> None:
    mechanism = kind(epsilon=1, sensitivity=1)
    for scores in [(9, 0, 0, 0, 0), (0, 8, 7, 6), (20, 0), (0,)]:
        for confidence in (0.5, 0.9):
            law = chances(kind, 1, scores)
            covered = sum(
                p
                for p, score in zip(law, scores, strict=True)
                if mechanism.interval(score, options=len(scores), confidence=confidence).high >= max(scores)
            )
            assert covered >= confidence


def test_interval_ends_are_rounded_outwards_and_need_the_number_of_options() -> None:
    mechanism = Exponential(epsilon=1, sensitivity=1, grid=Grid(-4))
    low, high = mechanism.interval(np.array([0.5, 2.0]), options=3)
    assert low.tolist() == [0.5, 2.0]
    assert (high - low).tolist() == [high[0] - 0.5] * 2
    with pytest.raises(InvalidParameter) as caught:
        mechanism.interval(0.5)
    assert caught.value.name == "options"


def test_an_estimate_says_which_indices_there_are(bits: SeededBits) -> None:
    one = PermuteAndFlip(epsilon=1, sensitivity=1).estimate([1, 2, 3], bits=bits)
    assert (one.low, one.high, one.private) == (0, 2, False)
    many = ReportNoisyMax(epsilon=1, sensitivity=1).estimate([[1, 2, 3]] * 5, bits=bits)
    assert many.low.tolist() == [0] * 5
    assert many.high.tolist() == [2] * 5


# -------------------------------------------------------------------------------------------- refusals
@every("kind", KINDS)
@every("name", ["epsilon", "sensitivity"])
@every("value", [0, -1, -0.0, math.nan, math.inf, -math.inf, True, None, "x", 1e301, "1e-400", [1]])
def test_bad_amounts_are_refused(kind: type[Selection], name: str, value: object) -> None:
    arguments: dict[str, object] = {"epsilon": 1, "sensitivity": 1} | {name: value}
    with pytest.raises(InvalidParameter) as caught:
        kind(**arguments)  # type: ignore[arg-type]
    assert caught.value.name == name


@every("kind", KINDS)
@every(("name", "value"), [("monotone", 1), ("monotone", None), ("grid", 3), ("grid", 0), ("grid", 2.0**-1000)])
def test_bad_choices_are_refused(kind: type[Selection], name: str, value: object) -> None:
    with pytest.raises(InvalidParameter):
        kind(epsilon=1, sensitivity=1, **{name: value})  # type: ignore[arg-type]


@every("kind", KINDS)
@every(
    "scores",
    [[], 3, [[]], [[[1]]], [1, math.nan], [1, math.inf], [True, False], ["a"], [None], [2**63], [1e30], [[1, 2], [3]]],
)
def test_bad_scores_are_refused_before_a_draw(kind: type[Selection], scores: object) -> None:
    with pytest.raises((InvalidParameter, InvalidValue)):
        kind(epsilon=1, sensitivity=1).choose(scores, bits=NoBits())


@pytest.mark.parametrize("kind", KINDS)
def test_no_positional_arguments_and_no_changes(kind: type[Selection]) -> None:
    with pytest.raises(TypeError):
        kind(1, 1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        kind(epsilon=1, sensitivity=1).epsilon = 2  # type: ignore[misc, assignment]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [("1e-280", 1), (1, 1e280), (1e280, 1), ("1/3", "1/7")])
def test_absurd_but_legal_amounts_work(
    kind: type[Selection], epsilon: float, sensitivity: float, bits: SeededBits
) -> None:
    chosen = kind(epsilon=epsilon, sensitivity=sensitivity).choose([[-(10**6), 10**6]] * 3, bits=bits)
    assert set(chosen.tolist()) <= {0, 1}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [("1e-300", 1), (1, 1e300), (1e300, 1)])
def test_noise_beyond_all_use_is_refused(kind: type[Selection], epsilon: float, sensitivity: float) -> None:
    with pytest.raises(InvalidParameter):
        kind(epsilon=epsilon, sensitivity=sensitivity)
