"""Different values: the same on every engine, whatever their type, and one unit's rows move them by one each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory
from discreet.engines.abstract_engine import steps
from discreet.engines.sql.contribution_bounds import BoundedQuery
from discreet.measurement.releases.additive import JointStatistics
from discreet.measurement.releases.argument_moments import paired_form, sum_form
from discreet.measurement.releases.grids import Steps
from discreet.measurement.releases.layouts import distinct_form, of_different
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.readings import ContributionBounding, Groups, Reading, Statistic
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from tests.effort import tried
from tests.engines.tables import EDGES, B, Bench, D, F, N, S, T, arrow, bounding, call, col
from tests.engines.test_bounding import COLUMNS, crowd
from tests.open_groups import unsealed

Row = dict[str, Any]
G, V = col("g", N), col("v", T)
TEXTS = Statistic(kind="distinct", argument=V)
TYPES = {"u": N, "g": N, "v": T}


@pytest.mark.ci
@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [N, F, B, T, D, S], ids=lambda kind: kind.value)
def test_values_of_every_type(bench: Bench, kind: Type) -> None:
    """There is one zero among doubles, and what is not finite is NULL."""
    rows = [{"g": i % 2, "u": i % 3, "v": value} for i, value in enumerate(2 * EDGES[kind])]
    bench.load(rows, {"g": N, "u": N, "v": kind})
    statistics = (Statistic(kind="distinct", argument=col("v", kind)), Statistic(kind="rows"))
    answer = bench.agreed(Reading(table="t", statistics=statistics))
    known = {value for value in EDGES[kind] if value is not None and not (kind is F and not math.isfinite(value))}
    assert answer == {(): (len(known), len(rows))}
    for limits in (bounding(1, 1), bounding(1, 4), bounding(2, 7)):
        bench.agreed(Reading(table="t", keys=(G,), bounding=limits, statistics=statistics))
        bench.agreed(Reading(table="t", bounding=limits, statistics=statistics[::-1]))


def test_values_are_told_apart_as_keys_are(bench: Bench) -> None:
    """By code points: neither letter case, nor blanks, nor composed letters make two values one."""
    texts = ["a", "A", "a ", "\u00e9", "e\u0301", None, "a"]
    bench.load([{"u": i, "g": 0, "v": text} for i, text in enumerate(texts)], TYPES)
    assert bench.agreed(Reading(table="t", statistics=(TEXTS,))) == {(): (5,)}
    twice = Statistic(kind="distinct", argument=V, times=3)
    assert bench.agreed(Reading(table="t", bounding=bounding(), statistics=(twice,))) == {(): (15,)}


@pytest.mark.ci
@pytest.mark.parametrize("kind", [N, F], ids=lambda kind: kind.value)
def test_different_values_are_added_up_once(bench: Bench, kind: Type) -> None:
    """Of terms, which are clipped and on their grid: a value beyond a bound is that bound."""
    rows = [{"g": i % 2, "u": i % 3, "v": value} for i, value in enumerate(2 * EDGES[kind])]
    bench.load(rows, {"g": N, "u": N, "v": kind})
    for low, high, exponent, shift in ((-8, 1 << 40, 0, 0), (-5, 7, -3, 2), (0, 1 << 62, 2, -9)):
        asked = Statistic(
            kind="distinct_sum", argument=col("v", kind), exponent=exponent, low=low, high=high, shift=shift, times=3
        )
        answer = bench.agreed(Reading(table="t", statistics=(asked,)))
        finite = [v for v in EDGES[kind] if v is not None and (kind is N or math.isfinite(v))]
        terms = {steps(value, exponent, low, high) for value in finite}
        assert answer == {(): (3 * sum((term or 0) - shift for term in terms),)}
        statistics = (asked, Statistic(kind="rows"), Statistic(kind="distinct", argument=col("v", kind)))
        bench.agreed(Reading(table="t", keys=(G,), bounding=bounding(1, 4), statistics=statistics))
        bench.agreed(Reading(table="t", bounding=bounding(2, 7), statistics=statistics[::-1]))


@pytest.mark.ci
@tried(40)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"u": st.integers(0, 3) | st.none(), "g": st.integers(0, 3), "v": st.sampled_from([None, "a", "b", "c"])}
        ),
        max_size=30,
    ),
    limits=st.builds(bounding, st.integers(1, 3), st.integers(1, 3)),
    public=st.booleans(),
)
def test_engines_agree_on_random_tables(rows: list[Row], limits: ContributionBounding, public: bool) -> None:
    referee = Memory()
    referee.register("t", rows, TYPES)
    keys = ((0,), (2,)) if public else None
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows[::-1], TYPES), TYPES)
        for statistics in ((TEXTS,), (Statistic(kind="units"), TEXTS, Statistic(kind="values", argument=V))):
            grouped = Reading(table="t", keys=(G,), public_keys=keys, bounding=limits, statistics=statistics)
            for asked in (grouped, Reading(table="t", bounding=limits, statistics=statistics)):
                assert unsealed(engine.read(asked)) == unsealed(referee.read(asked))


# --------------------------------------------------------------------------------------------------------- brute force

NUMBERS = {"u": N, "g": N, "v": N}
W = col("v", N)
GRID = Steps(0, -1, 3)
SUM, PAIR = of_different(sum_form(W, GRID)), of_different(paired_form(W, GRID, nulls=False))
VALUES: dict[JointStatistics, tuple[Any, ...]] = {
    distinct_form(V): (None, "a", "b", "c"),
    SUM: (None, -9, 0, 3, 2, 70),  # two of them are one when they are clipped
    PAIR: (None, -9, 0, 3, 2, 70),
}


def crowds(form: JointStatistics) -> tuple[list[Row], ...]:
    """Others, who have some of the values already."""
    _, a, b, c, *_ = VALUES[form]
    return [], [{"u": 1, "g": 0, "v": a}, {"u": 2, "g": 1, "v": b}, {"u": 2, "g": 1, "v": c}]


def owned(form: JointStatistics, groups: int, rows: int) -> Iterator[list[Row]]:
    """All that one unit can bring to so many groups, one row more than it may in one of them included."""
    bags = [bag for n in range(rows + 2) for bag in combinations_with_replacement(VALUES[form], n)]
    for choice in product(bags, repeat=groups):
        yield [{"u": 9, "g": g, "v": v} for g, bag in enumerate(choice) for v in bag]


def counted(asked: Reading, rows: list[Row]) -> Groups:
    engine = Memory()
    engine.register("t", rows, TYPES if asked.statistics[0].argument == V else NUMBERS)
    return unsealed(engine.read(asked))


def farthest(form: JointStatistics, limits: Limits, neighbours: Neighbours, *, grouped: bool) -> tuple[int, int]:
    """The largest L1 distance and the largest square of the L2 distance of neighbours."""
    asked = Reading(
        table="t",
        keys=(G,) if grouped else (),
        bounding=bounding(limits.groups, limits.rows),
        statistics=form.statistics,
    )
    l1 = l2 = 0
    nothing = (0,) * len(form.statistics)
    for others in crowds(form):
        brought = owned(form, 2 if grouped else 1, limits.rows)
        found = {tuple(sorted(counted(asked, others + mine).items())) for mine in brought}
        bare = tuple(sorted(counted(asked, others).items()))
        pairs = product(found, found) if neighbours is Neighbours.REPLACE else ((one, bare) for one in found)
        for one, other in pairs:
            a, b = dict(one), dict(other)
            both = [(a.get(key, nothing), b.get(key, nothing)) for key in a.keys() | b.keys()]
            moves = [x - y for pair in both for x, y in zip(*pair, strict=True)]
            l1, l2 = max(l1, sum(map(abs, moves))), max(l2, sum(m * m for m in moves))
    return l1, l2


def check_bound(
    form: JointStatistics,
    limits: Limits,
    neighbours: Neighbours,
    *,
    grouped: bool,
    claims: JointStatistics | None = None,
) -> None:
    """No neighbour is farther than claimed; and one is as far, where a value makes the largest move by itself."""
    contribution = QueryContribution.of(limits=limits, neighbours=neighbours, shown=[None if grouped else 1])
    one, claims = [Fraction(1)] * len(form.statistics), claims or form
    claimed = [bound(claims.corners, one, once=claims.once) for bound in (contribution.l1, contribution.l2_squared)]
    found = list(map(Fraction, farthest(form, limits, neighbours, grouped=grouped)))
    assert all(far <= most for far, most in zip(found, claimed, strict=True))
    if limits.rows == 1 or form not in (SUM, PAIR):  # two rows of the largest value are one value
        assert found == claimed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", VALUES, ids=["count", "sum", "pair"])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_one_unit_moves_values_no_farther_than_claimed(form: JointStatistics, neighbours: Neighbours) -> None:
    for rows, grouped in ((1, False), (1, True), (2, False)):
        check_bound(form, Limits(1, rows), neighbours, grouped=grouped)
    if form not in (SUM, PAIR):
        check_bound(form, Limits(1, 2), neighbours, grouped=True)


@pytest.mark.parametrize("form", [SUM, PAIR], ids=["sum", "pair"])
def test_mutant_sums_move_as_counts_do(form: JointStatistics) -> None:
    small = replace(form, corners=((1,) * len(form.statistics),))
    with pytest.raises(AssertionError):
        check_bound(form, Limits(1, 1), Neighbours.ADD_REMOVE, grouped=False, claims=small)


def test_mutant_a_unit_counts_once() -> None:
    form = distinct_form(V)
    with pytest.raises(AssertionError):
        check_bound(form, Limits(1, 2), Neighbours.ADD_REMOVE, grouped=False, claims=replace(form, once=True))


ASKED = Reading(
    table="t",
    keys=(col("a", N),),
    bounding=bounding(3, 2),
    statistics=(
        Statistic(kind="distinct", argument=call("to_int", N, col("x", F))),
        Statistic(kind="distinct_sum", argument=call("to_int", N, col("x", F)), low=-50, high=1000),
    ),
)


def differs() -> bool:
    """On a crowd, and people with one row in each of too many groups."""
    one_each = [{"u": f"one {i}", "a": a, "x": 100.0 * a + i} for i in range(20) for a in range(5)]
    referee, rows = Memory(), [*crowd(), *one_each]
    referee.register("t", rows, COLUMNS)
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows, COLUMNS), COLUMNS)
        return unsealed(engine.read(ASKED)) != unsealed(referee.read(ASKED))


@pytest.mark.ci
def test_mutants_in_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows beyond the limits that are counted still, and values of people that are counted one by one."""
    assert not differs()
    honest = BoundedQuery.sql
    for old, new in (
        ("FROM placed WHERE n <= 2", "FROM placed WHERE TRUE"),
        ("WHERE d <= 3", "WHERE TRUE"),
        ("COUNT(DISTINCT t0)", "COUNT(t0)"),
        ("SUM(DISTINCT t1)", "SUM(t1)"),
        ("r - abs(ceiling) < 0", "TRUE"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(BoundedQuery, "sql", lambda self, a=old, b=new: honest(self).replace(a, b))
            assert differs(), old
