"""Which keys are shown: published numbers, exact (epsilon, delta) checks, thresholds, mutants, refusals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import special

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure
from discreet.mechanisms.optimal_selection import OptimalRule
from discreet.mechanisms.partition_selection import PartitionSelection, share_of_delta
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.statistical.laws import (
    FALSE_ALARM,
    BernoulliLaw,
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    p_value,
    share_p_value,
)

PAIRS: list[tuple[float | str, str]] = [
    (1, "1e-5"),
    ("0.5", "1e-6"),
    ("0.1", "0.01"),
    (3, "0.2"),
    (1, "0.5"),
    (1, "0.7"),
    ("0.01", "0.3"),
]
DIGITS = 60
TINY = Fraction(1, 10**50)


def rule(epsilon: float | str, delta: float | str) -> OptimalRule:
    return PartitionSelection(epsilon=epsilon, delta=delta).rule


# ----------------------------------------------------------------------------------- published numbers
def test_published_probabilities() -> None:
    first = rule(1, 1e-5)
    assert (first.turn, first.full) == (11, 23)
    for count, published in [(10, 0.12818308), (11, 0.34844774), (12, 0.76031100), (15, 0.98807212), (23, 1), (0, 0)]:
        assert float(first.probability(count).low) == pytest.approx(published, abs=5e-9)
    assert first.probability(22).high < 1
    second = rule(0.5, 1e-6)
    assert second.turn == 25
    assert float(second.probability(20).low) == pytest.approx(0.03395213, abs=5e-9)


@pytest.mark.parametrize(("epsilon", "delta", "threshold"), [(1, 1e-5, 13), (0.5, 1e-6, 28), (0.1, 1e-5, 110)])
def test_published_thresholds(epsilon: float, delta: float, threshold: int) -> None:
    mechanism = PartitionSelection(epsilon=epsilon, delta=delta, method="laplace")
    assert mechanism.threshold == mechanism.half_kept_count() == threshold


def test_half_of_the_keys_with_so_many_units_are_kept() -> None:
    assert PartitionSelection(epsilon=0.1, delta=1e-5).half_kept_count() == 86
    for epsilon, delta in PAIRS:
        found = PartitionSelection(epsilon=epsilon, delta=delta)
        count = found.half_kept_count()
        assert found.rule.probability(count).high >= Fraction(1, 2) > found.rule.probability(count - 1).low


# ------------------------------------------------------------------------------------ the optimal rule
def step(x: Enclosure, before: Enclosure, delta: Fraction) -> Enclosure:
    """One step of the recursion that defines the rule."""
    rise, fall = x * before + delta, 1 - (1 - before - delta) / x
    one = Enclosure.of(1, DIGITS)
    return min(rise, fall, one, key=lambda enclosure: enclosure.low)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_closed_form_solves_the_recursion(epsilon: float | str, delta: str) -> None:
    found = rule(epsilon, delta)
    x, probability = Enclosure.of(found.epsilon, DIGITS).exp(), Enclosure.of(0, DIGITS)
    for count in range(1, found.full + 3):
        probability = step(x, probability, found.delta)
        closed = found.probability(count, DIGITS)
        assert abs(Fraction(closed.low) - Fraction(probability.low)) < TINY
    assert probability.low == 1
    assert found.probability(found.full - 1, DIGITS).high < 1


def judge_rule(found: OptimalRule) -> None:
    """(epsilon, delta)-DP of "kept" and "dropped", both ways, for every n and n + 1 up to saturation."""
    x = Enclosure.of(found.epsilon, DIGITS).exp()
    one = Enclosure.of(1, DIGITS)
    for count in range(found.full + 2):
        a, b = found.probability(count, DIGITS), found.probability(count + 1, DIGITS)
        for p, q in [(a, b), (b, a), (one - a, one - b), (one - b, one - a)]:
            assert Fraction(p.low) <= Fraction((x * q + found.delta).high) + TINY, count


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_rule_is_private_and_as_generous_as_can_be(epsilon: float | str, delta: str) -> None:
    found = rule(epsilon, delta)
    judge_rule(found)
    for count in {1, found.turn, found.turn + 1, found.full - 1} - {found.full}:
        with pytest.raises(AssertionError):
            judge_rule(Generous(found.epsilon, found.delta, found.turn, found.full, count))


@dataclass(frozen=True, slots=True)
class Generous(OptimalRule):
    """Keeps keys of one count a little more often."""

    where: int

    def probability(self, count: int, digits: int = 40) -> Enclosure:
        found = OptimalRule.probability(self, count, digits)
        return found + Fraction(1, 10**9) if count == self.where else found


@pytest.mark.parametrize("count", [1, 9, 11, 14, 30])
def test_keys_are_kept_with_their_probability(count: int, bits: SeededBits) -> None:
    mechanism = PartitionSelection(epsilon=0.6, delta=0.01)
    kept = mechanism.select(np.full(30_000, count), bits=bits)
    chance = float(mechanism.rule.probability(count).low)
    assert p_value(kept, BernoulliLaw(chance)) > FALSE_ALARM
    if 0.1 < chance < 0.75:
        for wrong in (1.3 * chance, 0.7 * chance):
            assert p_value(kept, BernoulliLaw(wrong)) < FALSE_ALARM


def test_mixed_counts_keep_their_places(bits: SeededBits) -> None:
    mechanism = PartitionSelection(epsilon=0.6, delta=0.01)
    counts = np.tile([0, 1, 500, 6, 3, 6], 20_000)
    kept = mechanism.select(counts, bits=bits).reshape(-1, 6)
    assert not kept[:, 0].any()
    assert kept[:, 2].all()
    for column, count in ((1, 1), (3, 6), (4, 3), (5, 6)):
        chance = float(mechanism.rule.probability(count).low)
        assert share_p_value(int(kept[:, column].sum()), len(kept), chance) > FALSE_ALARM


# ------------------------------------------------------------------------------------------ thresholds
def laplace_tail(scale: Fraction, least: int) -> Fraction:
    """P(Z >= least), within 1e-55."""
    a = Enclosure.of(-1 / scale, DIGITS).exp()
    found = (
        Enclosure.of(-least / scale, DIGITS).exp() / (a + 1)
        if least > 0
        else 1 - Enclosure.of((least - 1) / scale, DIGITS).exp() / (a + 1)
    )
    return Fraction(found.high)


def judge_laplace_threshold(mechanism: PartitionSelection) -> None:
    """A key that only one unit has is shown with at most the share of delta; so are l of them with delta."""
    chance = laplace_tail(mechanism.scale, mechanism.threshold - mechanism.rows_per_group)
    assert 1 - (1 - chance) ** mechanism.max_groups <= mechanism.delta


@every("max_groups", [1, 2, 7])
@every("rows", [1, 3])
@every(("epsilon", "delta"), [(1, 1e-5), (0.5, 1e-6), (1, 0.005), (3, 0.3), ("0.01", 1e-12)])
def test_laplace_thresholds_are_right_to_the_last_step(
    epsilon: float, delta: float, max_groups: int, rows: int
) -> None:
    mechanism = PartitionSelection(
        epsilon=epsilon, delta=delta, max_groups=max_groups, rows_per_group=rows, method="laplace"
    )
    assert mechanism.scale == rows * max_groups / mechanism.epsilon
    judge_laplace_threshold(mechanism)
    lower = laplace_tail(mechanism.scale, mechanism.threshold - rows - 1)
    assert 1 - (1 - lower) ** max_groups > mechanism.delta
    assert mechanism.event == events.Composed(
        [events.DiscreteLaplace(scale=mechanism.scale, sensitivity=rows * max_groups), events.Approx(0, delta)]
    )


@dataclass(frozen=True, slots=True, init=False)
class OffByOne(PartitionSelection):
    """The threshold of a peer: it forgot that the unit itself is counted (reported delta 0.0049, true 0.0133)."""

    @property
    def threshold(self) -> int:
        return PartitionSelection.threshold.__get__(self) - 1  # type: ignore[no-any-return]


def test_a_threshold_off_by_one_is_killed(bits: SeededBits) -> None:
    mutant = OffByOne(epsilon=1, delta=0.005, method="laplace")
    with pytest.raises(AssertionError):
        judge_laplace_threshold(mutant)
    assert float(laplace_tail(Fraction(1), mutant.threshold - 1)) == pytest.approx(0.0134, abs=5e-5)
    assert float(laplace_tail(Fraction(1), mutant.threshold)) == pytest.approx(0.0049, abs=5e-5)
    with pytest.raises(AssertionError):
        judge_singletons(mutant, bits)


def judge_singletons(mechanism: PartitionSelection, bits: SeededBits) -> None:
    """20,000 keys of one unit each: the lower limit of Clopper and Pearson, at 1e-6, does not exceed delta."""
    shown = int(mechanism.select(np.ones(20_000, dtype=int), bits=bits).sum())
    lower = float(special.betaincinv(shown, 20_000 - shown + 1, 1e-6)) if shown else 0.0
    assert lower <= mechanism.delta


@pytest.mark.parametrize("method", ["optimal", "truncated", "laplace", "gaussian"])
def test_keys_of_one_unit_are_shown_with_delta_at_most(method: str, bits: SeededBits) -> None:
    judge_singletons(PartitionSelection(epsilon=1, delta=0.005, method=method), bits)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------- several keys
@every("parts", [1, 2, 3, 10, 1000])
@every("delta", ["1/2", "1e-5", "1e-200", "0.999"])
def test_shares_of_delta_are_just_below(parts: int, delta: str) -> None:
    whole, share = Fraction(delta), share_of_delta(Fraction(delta), parts)
    assert 1 - (1 - share) ** parts <= whole
    assert 1 - (1 - share * (1 + Fraction(1, 10**15))) ** parts > whole * (parts > 1)


def hockey_stick(p: dict[object, float], q: dict[object, float], epsilon: float) -> float:
    return sum(max(0.0, p[key] - math.exp(epsilon) * q[key]) for key in p)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.01), (2, 0.2), (0.3, 0.001)])
def test_a_unit_with_two_keys_is_protected_by_the_optimal_rule(epsilon: float, delta: float) -> None:
    mechanism = PartitionSelection(epsilon=epsilon, delta=delta, max_groups=2)
    chance = [float(mechanism.rule.probability(n).low) for n in range(mechanism.rule.full + 2)]

    def law(*counts: int) -> dict[object, float]:
        return {
            kept: math.prod(chance[n] if k else 1 - chance[n] for n, k in zip(counts, kept, strict=True))
            for kept in product((True, False), repeat=2)
        }

    for a, b in product(range(len(chance) - 1), repeat=2):
        for p, q in [(law(a, b), law(a + 1, b + 1)), (law(a + 1, b + 1), law(a, b)), (law(a, b), law(a + 1, b))]:
            assert hockey_stick(p, q, epsilon) <= delta + 1e-12, (a, b)


@cache
def shown_law(count: int, scale: Fraction, threshold: int) -> dict[object, float]:
    """Of one key: its noisy count if shown, else None. Counts beyond 60 scales are lumped into one outcome."""
    if not count:
        return {None: 1.0} | dict.fromkeys(range(threshold, threshold + 400), 0.0) | {"far": 0.0}
    values = np.arange(threshold, threshold + 400)
    law = DiscreteLaplaceLaw(scale)
    chances = law.pmf((values - count).astype(float)).tolist()
    far = 1 - float(law.cdf(np.array([threshold + 399 - count], dtype=float))[0])
    hidden = float(law.cdf(np.array([threshold - 1 - count], dtype=float))[0])
    return {None: hidden} | dict(zip(values.tolist(), chances, strict=True)) | {"far": far}


@pytest.mark.parametrize("rows", [1, 2])
def test_thresholds_protect_a_unit_of_one_key(rows: int) -> None:
    mechanism = PartitionSelection(epsilon=1, delta=0.01, rows_per_group=rows, method="laplace")
    for count in range(12):
        for more in range(1, rows + 1):
            laws = [shown_law(n, mechanism.scale, mechanism.threshold) for n in (count, count + more)]
            for p, q in (laws, laws[::-1]):
                assert hockey_stick(p, q, 1) <= 0.01 + 1e-12, (count, more)


# -------------------------------------------------------------------------------------------- Gaussian
@every("max_groups", [1, 4, 10])
@every("rows", [1, 2])
@every(("epsilon", "delta"), [(1, 1e-5), (0.3, 1e-3)])
def test_gaussian_thresholds_are_right(epsilon: float, delta: float, max_groups: int, rows: int) -> None:
    mechanism = PartitionSelection(
        epsilon=epsilon, delta=delta, max_groups=max_groups, rows_per_group=rows, method="gaussian"
    )
    noise, rest = mechanism.event.events  # type: ignore[attr-defined]
    assert rest == events.Approx(0, mechanism.delta / 2)
    assert (noise.sigma, noise.dimension) == (mechanism.scale, max_groups)
    assert noise.sensitivity**2 >= rows**2 * max_groups
    least = mechanism.threshold - rows
    sigma = float(mechanism.scale)
    steps = np.arange(least - 1, least + 400 + 40 * math.ceil(sigma), dtype=float)
    support = np.arange(-math.ceil(40 * sigma), math.ceil(40 * sigma) + 1, dtype=float)
    terms = np.exp(-(steps**2) / (2 * sigma**2)) / np.exp(-(support**2) / (2 * sigma**2)).sum()
    tail = float(terms[1:].sum())
    assert 1 - (1 - tail) ** max_groups <= delta / 2
    if sigma <= 32:  # to the last step; beyond, the threshold may be one too high
        assert 1 - (1 - tail - float(terms[0])) ** max_groups > delta / 2
    assert mechanism.half_kept_count() == mechanism.threshold


def test_the_gaussian_event_costs_what_was_promised() -> None:
    mechanism = PartitionSelection(epsilon=1, delta=1e-5, method="gaussian")
    assert float(mechanism.scale) == pytest.approx(float(accounting.discrete_gaussian_sigma(1, 5e-6)))
    noise, rest = mechanism.event.events  # type: ignore[attr-defined]
    assert accounting.delta([noise], 1) + rest.delta <= Fraction(1, 10**5)


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_shown_counts_have_the_noise_they_claim(method: str, bits: SeededBits) -> None:
    mechanism = PartitionSelection(epsilon=1, delta=0.01, method=method)  # type: ignore[arg-type]
    shown = mechanism.release(np.full(20_000, 1000), bits=bits)
    assert shown.kept.all()
    assert shown.counts is not None
    kind = DiscreteLaplaceLaw if method == "laplace" else DiscreteGaussianLaw
    assert p_value(shown.counts - 1000, kind(mechanism.scale)) > FALSE_ALARM
    for wrong in (Fraction(13, 10), Fraction(7, 10)):
        assert p_value(shown.counts - 1000, kind(wrong * mechanism.scale)) < FALSE_ALARM


@pytest.mark.parametrize("method", ["truncated", "laplace", "gaussian"])
def test_only_shown_counts_leave_and_none_is_below_the_threshold(method: str, bits: SeededBits) -> None:
    mechanism = PartitionSelection(epsilon=1, delta=0.01, method=method)  # type: ignore[arg-type]
    shown = mechanism.release(np.arange(0, 40), bits=bits)
    assert shown.counts is not None
    assert shown.counts.size == shown.kept.sum() < 40
    assert shown.counts.min() >= mechanism.threshold
    assert not mechanism.select(np.zeros(20_000, dtype=int), bits=bits).any()


# ------------------------------------------------------------------------------------------- intervals
@pytest.mark.parametrize("method", ["truncated", "laplace", "gaussian"])
def test_intervals_of_counts_cover(method: str, bits: SeededBits) -> None:
    mechanism = PartitionSelection(epsilon=0.5, delta=0.01, method=method)  # type: ignore[arg-type]
    estimate = mechanism.estimate(np.full(5000, 200), confidence=0.9, bits=bits)
    assert np.mean((estimate.low <= 200) & (estimate.high >= 200)) >= 0.89
    assert not estimate.private
    assert next(iter(mechanism.interval(3, confidence=0.9))) == 1


def test_intervals_of_the_optimal_rule_cover(bits: SeededBits) -> None:
    mechanism = PartitionSelection(epsilon=0.5, delta=0.01)
    for count in (1, 4, 7, 9, 12, 20):
        kept = mechanism.release(np.full(3000, count), bits=bits)
        low, high = mechanism.interval(kept, confidence=0.9)
        assert np.mean((low <= count) & (count <= high)) >= 0.88
    estimate = mechanism.estimate([1, 50], bits=bits)
    assert estimate.high[1] == math.inf


# -------------------------------------------------------------------------------------------- refusals
@every(
    ("name", "value"),
    [
        *(("epsilon", value) for value in (0, -1, math.nan, math.inf, True, None, 10**5, "1e-299")),
        *(("delta", value) for value in (0, 1, -1, 2, math.nan, True, None, "1e-290")),
        *((name, value) for name in ("max_groups", "rows_per_group") for value in (0, -1, True, 1.0, None, 10**10)),
        ("method", "best"),
        ("neighbours", Neighbours.REPLACE),
        ("neighbours", "swap"),
    ],
)
def test_bad_parameters_are_refused(name: str, value: object) -> None:
    good: dict[str, object] = {"epsilon": 1, "delta": 1e-5, "method": "laplace"}
    with pytest.raises(InvalidParameter) as caught:
        PartitionSelection(**(good | {name: value}))  # type: ignore[arg-type]
    assert caught.value.name == name


def test_the_optimal_rule_counts_units_and_has_no_noise() -> None:
    with pytest.raises(InvalidParameter) as caught:
        PartitionSelection(epsilon=1, delta=1e-5, rows_per_group=2)
    assert "distinct units" in caught.value.hint
    with pytest.raises(InvalidParameter):
        _ = PartitionSelection(epsilon=1, delta=1e-5).scale
    assert PartitionSelection(epsilon=1, delta=1e-5, max_groups=3).event == events.Approx(1, 1e-5)


@every("method", ["optimal", "truncated", "laplace", "gaussian"])
@every("counts", [5, [-1], [1.5], [math.nan], [True], ["a"], [None], [[1]], [2**63], [1, [2]]])
def test_bad_counts_are_refused_before_a_draw(method: str, counts: object) -> None:
    with pytest.raises(InvalidValue):
        PartitionSelection(epsilon=1, delta=0.01, method=method).release(counts, bits=NoBits())  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["optimal", "truncated", "laplace", "gaussian"])
def test_no_keys_are_no_problem(method: str, bits: SeededBits) -> None:
    shown = PartitionSelection(epsilon=1, delta=0.01, method=method).release([], bits=bits)  # type: ignore[arg-type]
    assert shown.kept.size == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(1000, "1e-280"), ("1e-280", 0.5), ("1e-9", 1e-5)])
def test_absurd_but_legal_amounts_work(epsilon: float, delta: float, bits: SeededBits) -> None:
    mechanism = PartitionSelection(epsilon=epsilon, delta=delta)
    assert mechanism.select([0, 10**15], bits=bits).tolist() == [False, True]


def continuous_threshold(sigma: float, delta: float, max_groups: int) -> float:
    """max over t of 1/sqrt(t) + sigma Phi^-1((1 - delta)^(1/t)): units weigh 1/sqrt(t), noise is a real normal law."""
    shares = [(t, -math.expm1(math.log1p(-delta) / t)) for t in range(1, max_groups + 1)]
    return max(1 / math.sqrt(t) + sigma * -float(special.ndtri(share)) for t, share in shares)


@pytest.mark.parametrize(
    ("sigma", "max_groups", "expected"), [(3.7306, 1, 17.478707), (3.7306, 10, 18.564973), (0.2, 10, 1.883435)]
)
def test_published_continuous_thresholds(sigma: float, max_groups: int, expected: float) -> None:
    assert continuous_threshold(sigma, 5e-6, max_groups) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_the_lattice_threshold_is_the_continuous_one_and_at_most_two_steps(epsilon: str) -> None:
    """With one key per unit weights are 1 and both are comparable; integers need the next step, or one more."""
    selection = PartitionSelection(epsilon=epsilon, delta=1e-5, method="gaussian")
    continuous = continuous_threshold(float(selection.scale), 5e-6, 1)
    assert continuous <= selection.threshold <= continuous + 2
