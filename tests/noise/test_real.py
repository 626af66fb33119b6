"""Real-valued noise: what floats decide is what enclosures decide from the same bits, and the laws are right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from discreet.errors import InternalError
from discreet.exact import Enclosure, Real, settle
from discreet.noise import (
    Bits,
    LazyUniform,
    SeededBits,
    categorical,
    choose_exponential,
    exponential_deviate,
    normal_deviate,
    real,
    round_real,
    rounded_gaussian,
    rounded_gaussians,
)
from tests.noise.tape import Tape, spread
from tests.statistical.laws import FALSE_ALARM, WRONG, Floats, Law, p_value

rounding: Any = import_module("discreet.noise.rounded_gaussian")  # the module behind the function of its name

SAMPLES = 20_000  # DKW then tells laws 0.033 apart: p = 2 exp(-2 n d^2) < 1e-9 from d = 0.0231 on


@dataclass(frozen=True)
class RoundedNormal(Law):
    """round(offset + sigma Z), half up."""

    sigma: Fraction
    offset: Fraction = Fraction(0)

    def cdf(self, z: Floats) -> Floats:
        return np.asarray(special.ndtr((z + 0.5 - float(self.offset)) / float(self.sigma)))


# ------------------------------------------------------------------------------------------------------ lazy uniforms
@given(st.integers(0, 2**62), st.lists(st.integers(5, 200), min_size=2, max_size=5))
def test_a_lazy_uniform_never_changes_its_mind(seed: int, digits: list[int]) -> None:
    uniform = LazyUniform(SeededBits(seed))
    ends = [uniform(d).fractions() for d in digits]
    assert all(0 <= low <= high <= 1 for low, high in ends)
    assert max(low for low, _ in ends) <= min(high for _, high in ends)  # all enclose one number


def test_a_lazy_uniform_continues_its_prefix() -> None:
    prefix = 0xDEADBEEF << 32
    uniform = LazyUniform(Tape(spread(1 << 63, 64) * 20), prefix=prefix)
    low, high = uniform(60).fractions()
    assert Fraction(prefix, 1 << 64) <= low <= high <= Fraction(prefix + 1, 1 << 64)
    assert high - low <= Fraction(1, 10**59)


def test_rounding_draws_more_bits_until_the_integer_is_certain() -> None:
    # A uniform whose first 400 bits are 0.0111...1: near enough to 1/2 to need all of them, then below it.
    bits = Tape([0x7FFF] + [0xFFFF] * 24 + [0] * 200)
    uniform = LazyUniform(bits)
    assert round_real(uniform) == 0
    above = LazyUniform(Tape([0x8000] + [0] * 24 + [1] * 200))
    assert round_real(above) == 1


# ---------------------------------------------------------------------------------------------------------------- laws
@pytest.mark.ci
def test_exponential_deviate(bits: SeededBits) -> None:
    scale = Fraction(100)
    draws = np.array([_floor(exponential_deviate(bits), scale) for _ in range(4000)])
    # floor(100 E) is geometric; 4000 draws tell a 30 % wrong scale: sup distance 0.1 gives p = 2 exp(-80).
    assert p_value(draws, _geometric(scale)) > FALSE_ALARM
    assert all(p_value(draws, _geometric(scale * wrong)) < FALSE_ALARM for wrong in WRONG)


def _floor(deviate: Real, scale: Fraction) -> int:
    return settle(lambda digits: (deviate(digits) * scale).floor())


def _geometric(scale: Fraction) -> Law:
    @dataclass(frozen=True)
    class Geometric(Law):
        def cdf(self, z: Floats) -> Floats:
            return np.where(z < 0, 0.0, -np.expm1(-(z + 1) / float(scale)))

    return Geometric()


@pytest.mark.ci
def test_normal_deviate(bits: SeededBits) -> None:
    draws = np.array([_nearest(normal_deviate(bits)) for _ in range(3000)])
    # sup |Phi(x) - Phi(1.3 x)| is 0.063: p = 2 exp(-2 * 3000 * 0.063^2) = 1e-10.
    assert p_value(draws, RoundedNormal(Fraction(50))) > FALSE_ALARM
    assert all(p_value(draws, RoundedNormal(50 * wrong)) < FALSE_ALARM for wrong in WRONG)


def _nearest(deviate: Real) -> int:
    return round_real(lambda digits: deviate(digits) * 50)


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(10), Fraction(1000, 7), Fraction(1 << 20)])
@pytest.mark.parametrize("offset", [0.0, 0.25, -12345.625])
def test_rounded_gaussians_have_the_law_of_a_rounded_normal(sigma: Fraction, offset: float, bits: SeededBits) -> None:
    draws = rounded_gaussians(sigma, np.full(SAMPLES, offset), bits)
    assert p_value(draws, RoundedNormal(sigma, Fraction(offset))) > FALSE_ALARM
    if sigma > 1:  # a law on two or three points hides its scale
        assert all(p_value(draws, RoundedNormal(sigma * w, Fraction(offset))) < FALSE_ALARM for w in WRONG)
    assert p_value(draws, RoundedNormal(sigma, Fraction(offset) + sigma / 4 + 1)) < FALSE_ALARM


@pytest.mark.ci
def test_one_rounded_gaussian_at_a_time(bits: SeededBits) -> None:
    thirds = [rounded_gaussian(Fraction(50), Fraction(1, 3), bits) for _ in range(1500)]  # exact path: no float is 1/3
    halves = [rounded_gaussian(Fraction(50), Fraction(1, 2), bits) for _ in range(3000)]
    assert p_value(np.array(thirds), RoundedNormal(Fraction(50), Fraction(1, 3))) > FALSE_ALARM
    assert p_value(np.array(halves), RoundedNormal(Fraction(50), Fraction(1, 2))) > FALSE_ALARM
    assert p_value(np.array(halves), RoundedNormal(Fraction(100), Fraction(1, 2))) < FALSE_ALARM


def test_wide_rounded_gaussians_are_exact_integers(bits: SeededBits) -> None:
    sigma = Fraction(1 << 40)
    draws = rounded_gaussians(sigma, np.zeros(200), bits)
    low_bits = draws & 1023  # a float of 53 bits would still fill these; one of 30 would not
    assert len(set(low_bits.tolist())) > 100
    assert abs(float(np.mean(draws / 2.0**40))) < 0.5  # seven standard errors


# ------------------------------------------------------------------------------ the quick way equals the exact one
class Recorder(Bits):
    """Remembers the words that arrays were filled with."""

    def __init__(self, inner: Bits) -> None:
        self.inner = inner
        self.filled: list[NDArray[Any]] = []

    def fill(self, array: NDArray[Any]) -> None:
        self.inner.fill(array)
        self.filled.append(array.copy())

    def lanes(self, count: int) -> list[int]:
        return self.inner.lanes(count)


def exact_from(points: NDArray[np.uint64], sigma: Fraction, offset: Fraction, bits: Bits) -> list[int]:
    """The same draws by enclosures, from the same 64-bit prefixes."""
    result = []
    for x, y in points.T.tolist():
        normal = real.polar(LazyUniform(bits, x), LazyUniform(bits, y))
        result.append(round_real(lambda digits: normal(digits) * sigma + offset))  # noqa: B023 - called at once
    return result


@pytest.mark.parametrize("sigma", [Fraction(3), Fraction(1 << 12), Fraction(1 << 20)])
def test_floats_never_contradict_enclosures(sigma: Fraction, bits: SeededBits) -> None:
    disc = rounding.Disc.draw(400, bits)
    quick = rounding_of(disc, sigma, 0.375)
    slow = exact_from(disc.words, sigma, Fraction(3, 8), bits)
    assert [a for a in quick if a is not None] == [b for a, b in zip(quick, slow, strict=True) if a is not None]
    assert sum(a is None for a in quick) < 40  # and floats decide most of them


def rounding_of(disc: Any, sigma: Fraction, offset: float) -> list[int | None]:
    """What floats say, None where they are not sure; the arithmetic of `rounded_gaussians`."""
    scaled = offset + float(sigma) * rounding.float_normals(disc.words)
    nearest = np.floor(scaled + 0.5)
    margin = float(sigma) * (rounding.NORMAL_ERROR + 2.0**-49) + 2.0**-49
    sure = np.abs(scaled - nearest) < 0.5 - margin
    return [int(n) if s else None for n, s in zip(nearest, sure, strict=True)]


def test_the_error_of_float_normals_is_as_small_as_claimed(bits: SeededBits) -> None:
    disc = rounding.Disc.draw(300, bits)
    floats = rounding.float_normals(disc.words)
    for (x, y), value in zip(disc.words.T.tolist(), floats.tolist(), strict=True):
        if not math.isnan(value):
            low, high = real.polar(LazyUniform(bits, x), LazyUniform(bits, y))(40).fractions()
            assert low - Fraction(rounding.NORMAL_ERROR) < Fraction(value) < high + Fraction(rounding.NORMAL_ERROR)


def test_points_on_the_rim_are_decided_by_more_bits() -> None:
    # Coordinates (2u - 1)^2 + (2v - 1)^2 = 1 within 2^-60: u so near to 1, and v = 1/2.
    edge = (1 << 64) - 1
    for continuation in (0, 0xFFFF):
        tape = Tape(spread(edge, 64) + spread(1 << 63, 64) + [continuation] * 400)
        pair = LazyUniform(tape), LazyUniform(tape)
        assert real.in_disc(*pair) in (True, False)
    inside = LazyUniform(Tape([0xFFFF] * 4 + [0] * 300)), LazyUniform(Tape([0x8000] + [0] * 300))
    assert real.in_disc(*inside)  # just below 1, exactly at 0: inside


def prefix(value: Fraction) -> int:
    """The 64 leading bits of a coordinate from -1 to 1."""
    return math.floor((value + 1) / 2 * 2**64)


CENTRE = prefix(Fraction(1, 2**40)), prefix(Fraction(-1, 2**41))  # so near to it that enclosures decide
OUTSIDE = prefix(Fraction(3, 5) + Fraction(1, 2**50)), prefix(Fraction(4, 5))  # by less than floats tell
INSIDE = prefix(Fraction(3, 5) - Fraction(1, 2**50)), prefix(Fraction(4, 5))
FAR = prefix(Fraction(99, 100)), prefix(Fraction(99, 100))


def square(points: list[tuple[int, int]], lanes: int = 1 << 14) -> Tape:
    """A tape with one batch of points, as `Disc.draw` reads it for a single draw, and lanes to go on with."""
    batch = points + [FAR] * (17 - len(points))
    words = [x for x, _ in batch] + [y for _, y in batch]
    return Tape([lane for word in words for lane in spread(word, 64)] + [0x1234] * lanes)


def test_a_rejected_point_on_the_rim_leaves_no_bits_to_the_next_one() -> None:
    """The next one needs bits of its own, being too near to the centre for floats."""
    sigma = Fraction(1 << 15)
    found = rounded_gaussians(sigma, np.zeros(1), square([OUTSIDE, CENTRE]))
    normal = real.polar(*(LazyUniform(Tape([0x1234] * 1000), word) for word in CENTRE))
    assert found.tolist() == [round_real(lambda digits: normal(digits) * sigma)]


def test_points_on_the_rim_keep_their_own_bits() -> None:
    for points, kept in (
        ([OUTSIDE, CENTRE], {}),
        ([OUTSIDE, FAR, INSIDE], {0: INSIDE}),
        ([INSIDE, OUTSIDE], {0: INSIDE}),
    ):
        disc = rounding.Disc.draw(1, square(points))
        assert {index: tuple(map(leading, pair)) for index, pair in disc.continued.items()} == kept


def leading(uniform: LazyUniform) -> int:
    return uniform._prefix >> (uniform._count - 64)


def judge_continued(bits: Bits) -> None:
    """Wherever more bits of a point were drawn, they are the point's own; a wide rim makes this happen often."""
    disc = rounding.Disc.draw(300, bits)
    assert len(disc.continued) > 20
    for index, pair in disc.continued.items():
        assert index < 300
        assert [leading(uniform) for uniform in pair] == disc.words[:, index].tolist()


def test_a_wide_rim(bits: SeededBits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "_RIM", 0.2)
    judge_continued(bits)


def test_a_mutant_that_keeps_the_bits_of_rejected_points(bits: SeededBits, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = rounding._inside

    def all_kept(points: NDArray[np.uint64], source: Bits) -> tuple[NDArray[np.bool_], dict[int, Any]]:
        inside, pairs = sound(points, source)
        rejected = np.flatnonzero(~inside & (rounding._squares(points) < 1.2)).tolist()
        return inside, {i: tuple(LazyUniform(source, int(word)) for word in points[:, i]) for i in rejected} | pairs

    monkeypatch.setattr(rounding, "_RIM", 0.2)
    monkeypatch.setattr(rounding, "_inside", all_kept)
    with pytest.raises(AssertionError):
        judge_continued(bits)


def test_no_draws_for_an_empty_array(bits: SeededBits) -> None:
    assert rounded_gaussians(Fraction(3), np.empty((0, 2)), bits).shape == (0, 2)


# --------------------------------------------------------------------------------------------------------- categorical
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=8),
    st.fractions(Fraction(1, 50), Fraction(5)),
    st.integers(0, 2**32),
)
def test_a_choice_by_floats_is_the_choice_by_enclosures(
    options: list[tuple[int, int]], rate: Fraction, seed: int
) -> None:
    steps = np.array([0, *(step for step, _ in options)])
    weights = np.array([1, *(weight for _, weight in options)])
    kept = weights > 0
    uniform = LazyUniform(SeededBits(seed))
    guess = categorical._guess(steps[kept], rate, weights[kept], uniform)
    assert guess in (None, categorical._settle(steps[kept], rate, weights[kept], uniform))


def test_choices_have_the_exact_law(bits: SeededBits) -> None:
    steps, weights, rate = np.array([3, 0, 1, 0, 9]), np.array([10, 1, 4, 0, 1000]), Fraction(1, 2)
    draws = np.array([choose_exponential(steps, rate, bits, weights) for _ in range(5000)])
    masses = weights * np.exp(-float(rate) * steps)
    assert p_value(draws, _table(masses)) > FALSE_ALARM
    assert p_value(draws, _table(weights * np.exp(-0.65 * steps))) < FALSE_ALARM
    assert 3 not in draws


def _table(masses: Floats) -> Law:
    @dataclass(frozen=True)
    class Table(Law):
        def cdf(self, z: Floats) -> Floats:
            sums = np.concatenate([[0.0], np.cumsum(masses / masses.sum())])
            return np.asarray(sums[np.clip(z + 1, 0, masses.size).astype(int)])

    return Table()


def test_a_draw_on_a_boundary_is_settled_exactly() -> None:
    # Two equal options: the boundary is exactly 1/2, and 0.0111... stays below it for ever longer than floats can see.
    steps = np.array([0, 0])
    below = Tape([0x7FFF] + [0xFFFF] * 40 + [0] * 400)
    above = Tape([0x8000] + [0] * 40 + [1] * 400)
    assert choose_exponential(steps, Fraction(1), below) == 0
    assert choose_exponential(steps, Fraction(1), above) == 1


def test_a_far_option_is_not_forgotten() -> None:
    # exp(-100) is beyond the floats' table, but a draw in the last 2^-150 of the unit interval chooses it.
    steps = np.array([0, 100])
    assert choose_exponential(steps, Fraction(1), Tape([0xFFFF] * 60)) == 1
    assert choose_exponential(steps, Fraction(1), Tape([0xFFFF] * 4 + [0] * 60)) == 0


@pytest.mark.parametrize(("steps", "weights"), [([], None), ([1, 2], None), ([0, 1], [0, 5])])
def test_a_choice_needs_a_best_option(steps: list[int], weights: list[int] | None, bits: SeededBits) -> None:
    with pytest.raises(InternalError):
        choose_exponential(
            np.array(steps, dtype=np.int64), Fraction(1), bits, None if weights is None else np.array(weights)
        )


# -------------------------------------------------------------------------------------------------------------- mutants
def test_a_smaller_error_claim_is_caught(monkeypatch: pytest.MonkeyPatch, bits: SeededBits) -> None:
    monkeypatch.setattr(rounding, "NORMAL_ERROR", 2.0**-60)
    with pytest.raises(AssertionError):
        test_the_error_of_float_normals_is_as_small_as_claimed(bits)


def test_a_wrong_normal_is_caught(monkeypatch: pytest.MonkeyPatch, bits: SeededBits) -> None:
    right = rounding.float_normals
    monkeypatch.setattr(rounding, "float_normals", lambda words: right(words) * (1 + 2.0**-20))
    with pytest.raises(AssertionError):
        test_floats_never_contradict_enclosures(Fraction(1 << 20), bits)


def test_a_rounded_tail_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def truncated(*arguments: Any) -> int:
        return 0 if Enclosure.of(0, 20).below(arguments[-1](20)) else 1

    monkeypatch.setattr(categorical, "_settle", truncated)
    with pytest.raises(AssertionError):
        test_a_far_option_is_not_forgotten()
