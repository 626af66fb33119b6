"""Points drawn from counts have the law of the exponential mechanism on all values, whatever was looked at closely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InternalError
from discreet.exact import Grid
from discreet.measurement.releases.grids import Steps
from discreet.measurement.releases.rank_draws import shift_of
from discreet.mechanisms import Quantile
from discreet.mechanisms import quantile_draw as draw_module
from discreet.mechanisms.quantile_draw import draw
from discreet.mechanisms.ranks import Pick, RankTarget
from discreet.mechanisms.value_counts import Histogram, Key, RankLoss, Span
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.effort import tried

KEY: Key = ("A",)
NOTHING = events.Composed([])


def pick(share: str = "1/2", offset: int = 0, rate: str = "1/2") -> Pick:
    return Pick(RankTarget(Fraction(share), offset), Fraction(rate), NOTHING)


def counted(values: Sequence[int], shift: int, only: set[int] | None = None) -> list[int]:
    """What an engine answers: cells, then counts; of the blocks asked for, if any."""
    cells = Counter(v if only is not None else v >> shift for v in values if only is None or v >> shift in only)
    return [*sorted(cells), *(cells[cell] for cell in sorted(cells))]


def blocks_of(places: Sequence[Span], key: Key) -> set[int]:
    return {block for k, first, last in places if k == key for block in range(first, last + 1)}


class Table:
    """The values of one group, and how often they were looked at."""

    def __init__(self, values: Sequence[int], last: int, shift: int) -> None:
        self.values, self.last, self.shift, self.looks = values, last, shift, 0

    def histogram(self) -> Histogram:
        return Histogram.of(self.last, self.shift, counted(self.values, self.shift))

    def look(self, places: Sequence[Span]) -> Mapping[Key, Sequence[int]]:
        self.looks += 1
        return {KEY: counted(self.values, self.shift, blocks_of(places, KEY))}

    def open_all(self, histogram: Histogram) -> None:
        """Opens every block, one after the other."""
        if self.shift:
            for block in histogram.blocks.tolist():
                histogram.open([(block, block)], self.look([(KEY, block, block)])[KEY])

    def draw(self, wanted: Pick, seed: int = 1, *, ahead: bool = True) -> int:
        (point,) = draw({KEY: self.histogram()}, [wanted], self.look, SeededBits(seed), ahead=ahead)[KEY]
        return point


def loss(wanted: Pick, values: Sequence[int], point: int, last: int) -> Fraction:
    rank = wanted.target.share * len(values) + wanted.target.offset
    below, upto = sum(value < point for value in values), sum(value <= point for value in values)
    return max(Fraction(0), below - rank if point else Fraction(0), rank - upto if point < last else Fraction(0))


tables = st.lists(st.integers(0, 21), max_size=12)
picks = st.builds(
    pick,
    st.sampled_from(["0", "1/10", "1/2", "2/3", "1"]),
    st.sampled_from([-20, -3, 0, 2, 20]),
    st.sampled_from(["1/20", "1/2", "3"]),
)


@tried(60)
@given(values=tables, wanted=picks, shift=st.integers(0, 4), which=st.integers(0, 2**32))
def test_a_proposal_and_its_acceptance_together_have_the_point_s_own_weight(
    values: list[int], wanted: Pick, shift: int, which: int
) -> None:
    """e^(-rate least) e^(-rate (own - least)) = e^(-rate own) for every point and every choice of opened blocks."""
    table = Table(values, 21, shift)
    histogram = table.histogram()
    blocks = histogram.blocks.tolist() if shift else []
    table.open_all(histogram)
    begin, end = sorted((which % (len(blocks) + 1), which // 100 % (len(blocks) + 1)))
    opened = blocks[begin:end]
    rank = RankLoss(wanted, len(values))
    starts, sizes, losses = histogram.cells((begin, end)).proposals(rank)
    proposed = {
        s + i: k for s, n, k in zip(*map(np.ndarray.tolist, (starts, sizes, losses)), strict=True) for i in range(n)
    }
    assert sorted(proposed) == list(range(22))  # every point, once
    assert sizes.sum() == 22
    for point, least in proposed.items():
        own = loss(wanted, values, point, 21) * rank.unit
        closed = shift and point >> shift in set(blocks) - set(opened)
        end = (rank.is_before_all and point == 0) or (rank.is_after_all and point == 21)
        if closed and not end:
            at = histogram.index(point)
            assert at is not None
            exact, bound = histogram.loss(point, at, rank)
            assert exact == own
            assert bound == least
            assert own >= least
        else:
            assert own == least


@tried(40)
@given(values=tables, share=st.sampled_from(["0", "1/10", "1/2", "1"]), seed=st.integers(0, 10**6))
def test_with_everything_open_it_is_the_mechanism_bit_by_bit(values: list[int], share: str, seed: int) -> None:
    mechanism = Quantile(epsilon=1, quantile=share, bounds=(0, 21), grid=Grid.integers())
    wanted = pick(share, 0, str(mechanism.rate * Fraction(share).denominator))
    expected = mechanism.release(values, bits=SeededBits(seed))
    assert Table(values, 21, 0).draw(wanted, seed) == expected
    table = Table(values, 21, 2)
    histogram = table.histogram()
    table.open_all(histogram)
    made = draw_module._Draw(KEY, histogram, wanted, (0, histogram.blocks.size))
    assert made.propose(SeededBits(seed))
    assert made.point == expected


VALUES = (0, 3, 3, 4, 9, 9, 9, 17, 21, 21)
DRAWS = 1_200


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("wanted", [pick(), pick("1/10", -3, "1/3"), pick("1", 2, "1/4")], ids=str)
def test_drawn_points_have_the_law(wanted: Pick, ahead: bool) -> None:
    """Chi-square on 22 points: of variance 2 df, a deviation of 5 standard deviations is allowed; fixed seeds."""
    table, bits = Table(VALUES, 21, 3), SeededBits(7)
    found = Counter(
        point
        for _ in range(DRAWS)
        for point in draw({KEY: table.histogram()}, [wanted], table.look, bits, ahead=ahead)[KEY]
    )
    weights = [math.exp(-float(wanted.rate * loss(wanted, VALUES, point, 21))) for point in range(22)]
    expected = [DRAWS * weight / sum(weights) for weight in weights]
    chi = sum((found[point] - mean) ** 2 / mean for point, mean in enumerate(expected))
    assert 21 - 5 * math.sqrt(42) <= chi <= 21 + 5 * math.sqrt(42)


@pytest.mark.ci
def test_mutant_a_proposal_that_is_always_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw_module._Draw, "accept", lambda *_: True)
    with pytest.raises(AssertionError):
        test_drawn_points_have_the_law(pick(), False)


def test_one_look_is_enough_and_there_always_is_one() -> None:
    values = [int(x) for x in np.linspace(0, (1 << 20) - 1, 3000)]
    for wanted in (pick(), pick("9/10", -200, "1/10"), pick("1/2", 10**6, "1/50")):
        table = Table(values, 1 << 20, 10)
        for seed in range(20):
            before = table.looks
            table.draw(wanted, seed)
            assert table.looks == before + 1
    empty = Table((), 1 << 20, 10)
    empty.draw(pick())
    assert empty.looks == 1


def test_few_blocks_are_opened() -> None:
    values = [int(x) for x in np.linspace(0, (1 << 20) - 1, 100_000)]
    table = Table(values, 1 << 20, 10)
    begin, end = table.histogram().worth_opening(pick("1/2", 0, "1"))
    assert 510 <= begin < end <= 515
    assert Table(values, 1 << 20, 0).histogram().worth_opening(pick()) == (0, 0)


def test_many_groups_and_picks_are_drawn_in_one_look() -> None:
    groups: dict[Key, Histogram] = {(name,): Histogram.of(63, 2, counted(VALUES, 2)) for name in "ABC"}
    groups[("D",)] = Histogram.of(63, 2, ())
    asked: list[list[Span]] = []

    def look(places: Sequence[Span]) -> Mapping[Key, Sequence[int]]:
        asked.append(list(places))
        return {key: counted(VALUES, 2, blocks_of(places, key)) for key, _, _ in places}

    wanted = [pick(), pick("1/10"), pick("9/10")]
    found = draw(groups, wanted, look, SeededBits(3))
    assert len(asked) == 1
    assert all(len(points) == 3 and all(0 <= point <= 63 for point in points) for points in found.values())
    assert list(found) == list(groups)


def test_data_that_change_between_two_looks_are_noticed() -> None:
    table = Table(VALUES, 21, 3)
    histogram = table.histogram()
    table.values = VALUES[1:]
    with pytest.raises(InternalError):
        draw({KEY: histogram}, [pick()], table.look, SeededBits(1))


@tried(50)
@given(width=st.integers(1, 1 << 61))
def test_blocks_are_public_and_few(width: int) -> None:
    shift = shift_of(Steps(0, -5, width - 5))
    assert shift == 0 if width < 4096 else 1 <= (width >> shift) + 1 <= 1025
    if width >= 4096:
        assert (width >> shift) + 1 >= 512


def test_ranks_far_beyond_stay_in_64_bits() -> None:
    histogram = Histogram.of(1 << 60, 50, [0, 3, 1 << 31, 1 << 31])
    cells = histogram.coarse
    for offset in (-(1 << 32), 0, 1 << 32):
        wanted = pick("999999/1000000", offset, "1/1000000000")
        rank = RankLoss(wanted, histogram.values)
        for below, upto, found in zip(
            cells.below.tolist(), cells.upto.tolist(), cells.least(rank).tolist(), strict=True
        ):
            goal = Fraction(999999, 1000000) * (1 << 32) + offset
            assert Fraction(found, 10**6) == max(Fraction(0), below - goal, goal - upto)
