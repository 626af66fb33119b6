"""Quantiles drawn together: the law of the tree whatever was opened, few proposals, and equal values divided."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InternalError
from discreet.mechanisms import quantile_draw as divide_module
from discreet.mechanisms.quantile_draw import IntervalDraw, divide, draw, part_of
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.value_counts import Histogram, Key, Span
from discreet.noise import Bits, SeededBits
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from tests.effort import tried
from tests.mechanisms.test_point_draw import KEY, Table, blocks_of, counted

SHARES = tuple(map(Fraction, ("1/4", "1/2", "3/4", "19/20")))
ROW = QueryContribution(limits=Limits(), neighbours=Neighbours.ADD_REMOVE)


def tree_of(last: int, epsilon: str, shares: Sequence[Fraction] = SHARES) -> QuantileTree:
    made = QuantileTree.of(ColumnRef("x", Type.INT), shares, last, ROW, ("laplace", Fraction(epsilon)))
    assert made is not None
    return made


def drawn(table: Table, tree: QuantileTree, seed: int = 1, *, ahead: bool = True) -> list[int]:
    """All places of one group, as a question has them drawn."""
    groups, bits = {KEY: table.histogram()}, SeededBits(seed)
    foreseen = [tree.foreseen(number) for number in range(len(tree.shares))]
    draw(groups, [], table.look, bits, beside=foreseen if ahead else ())
    return divide(groups, tree, table.look, bits)[KEY]


def mass(values: Sequence[int], place: int, grain: int) -> Fraction:
    size = 1 << grain
    return sum((Fraction(min(max(place - v * size, 0), size), size) for v in values), Fraction(0))


def loss(part: IntervalDraw, values: Sequence[int], place: int) -> Fraction:
    """By the definition, from all values: in ranks."""
    end = part.high if part.high < (part.histogram.last + 1 << part.grain) - 1 else part.high + 1
    start, stop = (mass(values, z, part.grain) for z in (part.low, end))
    target = start + part.share * (stop - start)
    below, upto = mass(values, place, part.grain), mass(values, min(place + 1, end), part.grain)
    return max(Fraction(0), below - target, target - upto)


# -------------------------------------------------------------------------------------------------------------- the law

tables = st.lists(st.integers(0, 9), max_size=12)


@tried(60)
@given(
    values=tables,
    shift=st.integers(0, 3),
    opened=st.sets(st.integers(0, 9)),
    rate=st.sampled_from(["1/20", "1", "30"]),
    share=st.sampled_from(["0", "1/10", "1/2", "1"]),
    ends=st.tuples(st.integers(0, 79), st.integers(0, 79)),
)
def test_a_proposal_and_its_acceptance_together_have_the_place_s_own_weight(  # noqa: PLR0917 - passed by name
    values: list[int], shift: int, opened: set[int], rate: str, share: str, ends: tuple[int, int]
) -> None:
    """e^(-rate least) e^(-rate (own - least)) = e^(-rate own), every place between the ends being in one cell."""
    table, grain = Table(values, 9, shift), 3
    histogram = table.histogram()
    low, high = sorted(ends)
    if shift:
        needed = {block for block in opened if block in histogram.blocks}
        needed |= {end >> grain + shift for end in (low, high)} & set(histogram.blocks.tolist())
        for block in sorted(needed):
            histogram.open([(block, block)], table.look([(KEY, block, block)])[KEY])
    masses = tuple(int(mass(values, end, grain) * (1 << grain)) for end in (low, high))
    if high == 79:
        masses = masses[0], len(values) << grain
    part = IntervalDraw(KEY, histogram, grain, Fraction(share), Fraction(rate), low, high, masses)  # type: ignore[arg-type]
    cells, losses = part.proposals
    unit = part.share.denominator << grain
    least = {
        start + i: k
        for start, n, k in zip(cells.starts.tolist(), cells.sizes.tolist(), losses.tolist(), strict=True)
        for i in range(n)
    }
    assert sorted(least) == list(range(low, high + 1))
    assert cells.sizes.sum() == high + 1 - low
    open_histogram = table.histogram()
    table.open_all(open_histogram)
    exact = replace(part, histogram=open_histogram)
    for place, bound in least.items():
        own = exact.loss(place)
        assert Fraction(own, unit) == loss(part, values, place)
        assert own >= bound


VALUES = (0, 3, 3, 3, 3, 3, 3, 4, 7, 9)
DRAWS = 700


def law(tree: QuantileTree, values: Sequence[int], last: int) -> dict[tuple[int, ...], float]:
    """The probability of all points together, from the definition."""
    histogram, known = Table(values, last, 0).histogram(), dict[tuple[int, int, int], list[float]]()
    found: dict[tuple[tuple[int, int], ...], float] = {(): 1.0}
    for number in sorted(range(len(tree.shares)), key=lambda k: tree.nodes[k].level):
        after = {}
        for before, chance in found.items():
            part = part_of(KEY, histogram, tree, number, dict(before))
            options, key = range(part.low, part.high + 1), (number, part.low, part.high)
            if key not in known:
                weights = [math.exp(-float(part.rate * loss(part, values, place))) for place in options]
                known[key] = [weight / math.fsum(weights) for weight in weights]
            for place, own in zip(options, known[key], strict=True):
                after[*before, (number, place)] = chance * own
        found = after
    points: dict[tuple[int, ...], float] = {}
    for outcome, chance in found.items():
        told = tuple(place >> tree.grain for _, place in sorted(outcome))
        points[told] = points.get(told, 0.0) + chance
    return points


def check_law(shift: int, *, ahead: bool) -> None:
    """Chi-square over joint outcomes that are expected five times at least, and the rest together; fixed seeds."""
    tree = coarse(tree_of(9, "4", (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))))
    table = Table(VALUES, 9, shift)
    found = Counter(tuple(z >> tree.grain for z in drawn(table, tree, seed, ahead=ahead)) for seed in range(DRAWS))
    expected = {points: DRAWS * chance for points, chance in law(tree, VALUES, 9).items()}
    often = {points: mean for points, mean in expected.items() if mean >= 5}
    rest = DRAWS - sum(often.values())
    chi = sum((found[points] - mean) ** 2 / mean for points, mean in often.items())
    chi += (DRAWS - sum(found[points] for points in often) - rest) ** 2 / rest
    assert len(often) > 15
    assert len(often) - 5 * math.sqrt(2 * len(often)) <= chi <= len(often) + 5 * math.sqrt(2 * len(often))


def coarse(tree: QuantileTree) -> QuantileTree:
    """With four places in each point, so that everything that can come out can be listed."""
    return replace(tree, grain=2)


@pytest.mark.ci
@pytest.mark.parametrize(("shift", "ahead"), [(0, True), (2, True), (2, False)])
def test_drawn_points_have_the_joint_law(shift: int, ahead: bool) -> None:
    check_law(shift, ahead=ahead)


@pytest.mark.ci
def test_mutant_what_was_known_before_a_block_was_opened_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Histogram.open

    def open_blocks(self: Histogram, *opened: Any) -> None:
        kept = {name: value for name, value in vars(self).items() if name == "known_cells"}
        usual(self, *opened)
        vars(self).update(kept)

    monkeypatch.setattr(Histogram, "open", open_blocks)
    with pytest.raises(AssertionError):
        check_law(2, ahead=False)


@pytest.mark.ci
def test_mutant_a_proposal_that_is_always_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IntervalDraw, "accept", lambda *_: True)
    with pytest.raises(AssertionError):
        check_law(2, ahead=False)


# -------------------------------------------------------------------------------------------------- reads and proposals


def test_one_look_is_enough() -> None:
    values = [int(x) for x in np.linspace(0, (1 << 20) - 1, 3000)]
    for epsilon in ("1/10", "1", "50"):
        table = Table(values, 1 << 20, 10)
        for seed in range(20):
            before = table.looks
            drawn(table, tree_of(1 << 20, epsilon), seed)
            assert table.looks == before + 1
    empty = Table((), 1 << 20, 10)
    assert drawn(empty, tree_of(1 << 20, "1")) == sorted(drawn(empty, tree_of(1 << 20, "1")))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("epsilon", ["1/100", "1", "1000", "1000000000"])
@pytest.mark.parametrize("values", [(5,) * 100_000, tuple(range(10)) * 20_000, (0,) * 70_000 + (9,) * 3, (4,)], ids=len)
def test_few_proposals_are_rejected(monkeypatch: pytest.MonkeyPatch, values: tuple[int, ...], epsilon: str) -> None:
    right, tosses = IntervalDraw.propose, Counter[str]()

    def propose(part: IntervalDraw, bits: Bits) -> bool:
        tosses["all"] += 1
        return right(part, bits)

    monkeypatch.setattr(IntervalDraw, "propose", propose)
    table, tree = Table(values, 9, 0), tree_of(9, epsilon)
    for seed in range(10):
        drawn(table, tree, seed)
    assert tosses["all"] <= 3 * 10 * len(tree.shares)


# ---------------------------------------------------------------------------------------------- equal values, no values


@pytest.mark.parametrize(
    "values",
    [
        (0,) * 10 + (5,) * 90,
        (0,) * 90 + tuple(range(10)),
        (3,) * 50,
        (2,) * 30 + (3,) * 40 + (4,) * 30,
        (0, 9),
        (7,),
        tuple(range(10)) * 3,
    ],
    ids=str,
)
def test_with_much_budget_quantiles_lie_between_the_values_beside_them(values: tuple[int, ...]) -> None:
    """However many values are equal: those that are equal to a released point are divided as its share says."""
    tree, ordered, n = tree_of(9, "100000000"), sorted(values), len(values)
    for seed in range(5):
        for share, place in zip(SHARES, drawn(Table(values, 9, 0), tree, seed), strict=True):
            low, high = ordered[max(math.ceil(share * n) - 1, 0)], ordered[min(math.floor(share * n), n - 1)]
            assert low <= place >> tree.grain <= high


@pytest.mark.ci
def test_without_values_any_point_is_as_good() -> None:
    tree = coarse(tree_of(9, "4"))
    found = [drawn(Table((), 9, 0), tree, seed) for seed in range(400)]
    assert all(places == sorted(places) for places in found)
    medians = Counter(places[1] for places in found)
    assert len(medians) == 40
    assert max(medians.values()) < 30


def test_many_groups_are_drawn_in_one_look() -> None:
    groups: dict[Key, Histogram] = {(name,): Histogram.of(63, 2, counted(VALUES, 2)) for name in "ABC"}
    groups[("D",)] = Histogram.of(63, 2, ())
    asked: list[Any] = []

    def look(places: Sequence[Span]) -> Mapping[Key, Sequence[int]]:
        asked.append(places)
        return {key: counted(VALUES, 2, blocks_of(places, key)) for key, _, _ in places}

    tree, bits = tree_of(63, "2"), SeededBits(3)
    draw(groups, [], look, bits, beside=[tree.foreseen(number) for number in range(4)])
    found = divide(groups, tree, look, bits)
    assert len(asked) == 1
    assert list(found) == list(groups)
    assert all(
        places == sorted(places) and 0 <= places[0] <= places[-1] < 64 << tree.grain for places in found.values()
    )


def test_numbers_stay_in_64_bits() -> None:
    """2^32 values at one point, shares of the finest denominators: losses are as Python's integers have them."""
    shares = tuple(map(Fraction, ("1/4", "1/2", "999999/1000000")))
    tree, histogram = tree_of(1 << 20, "1", shares), Histogram.of(1 << 20, 0, [5, 900_000, 1 << 31, 1 << 31])
    before: dict[int, int] = {}
    for level in range(len(tree.levels)):
        for number in tree.of_level(level):
            part = part_of(KEY, histogram, tree, number, before)
            cells, losses = part.proposals
            assert losses.min() == 0
            for start, size, bound in zip(cells.starts.tolist(), cells.sizes.tolist(), losses.tolist(), strict=True):
                assert bound <= min(part.loss(start), part.loss(start + size - 1))
            before[number] = part.low if number else part.high
    assert divide_module.find_mass_range(histogram, 900_001 << tree.grain, tree.grain)[0] == 1 << 32 + tree.grain
    with pytest.raises(InternalError):
        part_of(KEY, Histogram.of(9, 0, [5, 6, 1 << 32, 1]), tree, 1, {})
