"""How far one unit moves the losses of ranks: by brute force over all small tables, under both relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import pytest

from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.mechanisms import ranks
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.ranks import DisjointRanks, Moves, RankTarget, price_ranks
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.schema import Limits
from discreet.privacy import Neighbours
from tests.cases import every
from tests.effort import some

LAST = 2
LAWS: tuple[Law, ...] = ("laplace", "gaussian")
Values = tuple[int, ...]


def loss(target: RankTarget, values: Sequence[int], point: int) -> Fraction:
    """The distance of the rank from those that a point claims, the ends claiming all that is beyond."""
    rank = target.share * len(values) + target.offset
    below, upto = sum(value < point for value in values), sum(value <= point for value in values)
    too_high = Fraction(0) if point == 0 else below - rank
    too_low = Fraction(0) if point == LAST else rank - upto
    return max(Fraction(0), too_high, too_low)


@cache
def losses(target: RankTarget, values: Values) -> list[Fraction]:
    return [loss(target, values, point) for point in range(LAST + 1)]


def move(target: RankTarget, one: Values, other: Values) -> Fraction:
    pairs = zip(losses(target, tuple(sorted(one))), losses(target, tuple(sorted(other))), strict=True)
    return max(abs(a - b) for a, b in pairs)


def owned(rows: int) -> Iterator[Values]:
    """All that one unit may have in a group: up to so many values; NULLs are none."""
    for count in range(rows + 1):
        yield from combinations_with_replacement(range(LAST + 1), count)


CROWDS = list(owned(3))
TARGETS = [
    RankTarget(Fraction(share), offset) for share in ("0", "1/10", "1/2", "2/3", "1") for offset in (-7, -1, 0, 2)
]


@cache
def largest(target: RankTarget, rows: int, *, replaced: bool) -> Fraction:
    """The largest move of any loss, beside any crowd."""
    pairs = product(owned(rows), owned(rows) if replaced else [()])
    return max(move(target, crowd + old, crowd + new) for old, new in pairs for crowd in CROWDS)


@every("target", some(TARGETS, 4))
@every("rows", [1, 2])
def test_one_group(target: RankTarget, rows: int) -> None:
    check_one_group(target, rows)


def check_one_group(target: RankTarget, rows: int) -> None:
    limits = Limits(1, rows)
    for neighbours in Neighbours:
        alone = QueryContribution.of(limits=limits, neighbours=neighbours)
        found = largest(target, rows, replaced=neighbours is Neighbours.REPLACE)
        assert found <= target.l1(alone)
        assert found**2 <= target.l2_squared(alone)
        if target.offset == 0 and neighbours is Neighbours.ADD_REMOVE:
            assert found == rows * max(target.share, 1 - target.share) == target.l1(alone)  # no smaller bound would do
        if target == RankTarget(Fraction(1, 2)) and neighbours is Neighbours.REPLACE:
            assert found == rows == target.l1(alone)


@pytest.mark.ci
@every("target", TARGETS)
@every("rows", [1, 2])
def test_two_groups_one_of_which_a_unit_may_enter(target: RankTarget, rows: int) -> None:
    """Under REPLACE it leaves one group and enters another, or stays; the sums over groups are covered."""
    added = largest(target, rows, replaced=False)
    stayed = largest(target, rows, replaced=True)
    grouped = QueryContribution.of(limits=Limits(1, rows), neighbours=Neighbours.REPLACE, shown=[2])
    assert max(2 * added, stayed) <= target.l1(grouped)
    assert max(2 * added**2, stayed**2) <= target.l2_squared(grouped)
    joined = QueryContribution.of(limits=Limits(1, rows), neighbours=Neighbours.ADD_REMOVE, shown=[2])
    assert (added, added**2) <= (target.l1(joined), target.l2_squared(joined))


def test_staying_costs_more_than_half_of_two_squares_at_the_median() -> None:
    """The case that twice the square of one move would miss: 2 (1/2)^2 < 1."""
    median = RankTarget(Fraction(1, 2))
    assert largest(median, 1, replaced=True) ** 2 == 1 > 2 * largest(median, 1, replaced=False) ** 2
    assert median.l2_squared(QueryContribution.of(limits=Limits(), neighbours=Neighbours.REPLACE, shown=[None])) == 1


def test_groups_and_rows_multiply() -> None:
    for grouped, neighbours in product((False, True), Neighbours):
        one = QueryContribution.of(limits=Limits(), neighbours=neighbours, shown=[None if grouped else 1])
        many = QueryContribution.of(limits=Limits(5, 3), neighbours=neighbours, shown=[None if grouped else 1])
        groups = 5 if grouped else 1
        for target in TARGETS:
            assert target.l1(many) == groups * 3 * target.l1(one)
            assert target.l2_squared(many) == groups * 9 * target.l2_squared(one)


def lists(each: tuple[Fraction, Fraction], most: int, shown: int) -> Iterator[list[Fraction]]:
    """The moves of all groups that are replaced: each stayed in, left or entered, or none of these."""
    alone, stays = each
    for groups in combinations_with_replacement(((0, 0), (1, 0), (0, 1), (1, 1)), shown):
        before, after = map(sum, zip(*groups, strict=True))
        if max(before, after) <= most:
            yield [stays if sum(group) == 2 else alone for group in groups if sum(group)]


@pytest.mark.ci
def test_few_public_groups() -> None:
    """Of one to four groups a unit enters one to four: the sums over groups are covered and attained, in both norms."""
    for target, rows in product([RankTarget(Fraction(share)) for share in ("1/10", "1/2", "2/3", "1")], (1, 2)):
        each = tuple(largest(target, rows, replaced=replaced) for replaced in (False, True))
        for most, shown in product(range(1, 5), range(1, 5)):
            replaced = QueryContribution.of(limits=Limits(most, rows), neighbours=Neighbours.REPLACE, shown=[shown])
            found = list(lists((each[0], max(each)), most, shown))
            for power, bound in ((1, target.l1), (2, target.l2_squared)):
                farthest = max(sum(move**power for move in moves) for moves in found)
                assert farthest <= bound(replaced)
                assert farthest == bound(replaced) or each[1] < rows  # where the bound of one group is attained
            check_event(target, replaced, found)


def check_event(target: RankTarget, replaced: QueryContribution, found: Sequence[Sequence[Fraction]]) -> None:
    """The ranges of privacy losses are those of the event, or smaller, in every currency."""
    for law in LAWS:
        rate, event = price_ranks(law, target, replaced, Fraction(1))
        for moves in found:
            ranges = [2 * rate * move for move in moves]
            assert sum((each**2 for each in ranges), Fraction(0)) / 8 <= zcdp(terms(event)).rho
            assert law == "gaussian" or sum(ranges) <= basic(terms(event)).epsilon == 1


@pytest.mark.parametrize("shown", [1, 2, 3, 4, None])
def test_the_price_is_what_was_asked(shown: int | None) -> None:
    every: list[Moves] = [*TARGETS[::4], DisjointRanks((Fraction(1, 2),)), DisjointRanks((Fraction(1, 3),) * 2)]
    for most, moves in product(range(1, 5), every):
        for neighbours in Neighbours:
            given = QueryContribution.of(limits=Limits(most, 2), neighbours=neighbours, shown=[shown])
            assert basic(terms(price_ranks("laplace", moves, given, Fraction(3))[1])).epsilon == 3


def test_every_rank_is_claimed() -> None:
    for target, crowd in product(TARGETS, CROWDS):
        assert min(loss(target, crowd, point) for point in range(LAST + 1)) == 0


def test_mutant_the_smaller_of_q_and_its_complement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RankTarget, "one", property(lambda target: min(target.share, 1 - target.share)))
    with pytest.raises(AssertionError):
        check_one_group(RankTarget(Fraction(1, 10)), 1)


def test_mutant_pieces_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epsilon in equal parts for all groups that a unit can enter, although some of them move farther than others."""
    monkeypatch.setattr(ranks, "pieces", lambda contribution, _, stays: ((contribution.groups, stays),))
    with pytest.raises(AssertionError):
        test_few_public_groups()


def test_mutant_an_end_that_claims_nothing_beyond() -> None:
    """Without it some ranks would be nobody's, and the proof of intervals would fail for small groups."""
    target = RankTarget(Fraction(1, 2), -7)
    plain = [max(Fraction(0), -target.share * 0 - target.offset) for _ in range(LAST + 1)]
    assert min(plain) > 0 == min(loss(target, (), point) for point in range(LAST + 1))
