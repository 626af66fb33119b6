"""One more group for what no shown group has: public beside declared keys, paid for beside private ones."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import count
from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms
from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.program.execution import run
from discreet.measurement.program.other_group import with_other
from discreet.measurement.program.program import Program, choose
from discreet.measurement.releases.releaser import Releaser
from discreet.measurement.selection import Threshold
from discreet.noise import SeededBits
from discreet.plan.analysis.group_keys import values
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import ColumnRef, Literal
from discreet.plan.model.schema import ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import every
from tests.curator.clinic import TYPES, neighbour, visits
from tests.curator.nearness import check_gathered, check_moves
from tests.curator.spies import clinic
from tests.curator.test_neighbours import check_keys, exact, greedy, schema
from tests.effort import tried

ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
PRIVATE = (
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind",
    "SELECT kind, SUM(charge) AS s, COUNT(age) AS k FROM visits GROUP BY kind",
    "SELECT kind, AVG(age) AS a, STDDEV(charge) AS d, COUNT(*) AS n FROM visits WHERE age < 80 GROUP BY kind",
)
BY_KIND = PRIVATE[0]
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def plan(sql: str, declared: TableSchema, delta: str = "1e-6", epsilon: str = "1") -> Program:
    asked = with_other(parse(sql, {"visits": declared}), declared, "elsewhere")
    return choose(asked, declared, epsilon=Fraction(epsilon), delta=Fraction(delta), salt="pepper")


# ----------------------------------------------------------------------------------------------------------- neighbours


@pytest.mark.parametrize("sql", PRIVATE)
@tried(12)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 11),
)
def test_one_patient_moves_groups_and_the_rest_no_farther_than_charged(
    sql: str, seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    program = plan(sql, schema(unit="patient", limits=limits, neighbours=neighbours))
    rows = visits(seed)
    other = neighbour(rows, seed, who, neighbours)
    check_gathered(program, exact(program, rows), exact(program, other))
    check_keys(program, rows, other)


def check_greedy(sql: str, limits: Limits, neighbours: Neighbours, delta: str = "1e-6") -> None:
    """A patient in as many groups as limits allow, added, or replaced by one at the other ends of all bounds."""
    program = plan(sql, schema(unit="patient", limits=limits, neighbours=neighbours), delta)
    crowd, rich = visits(5), greedy(limits)
    poor = [{**row, "age": 0, "charge": 0.0, "kind": "other"} for row in rich]
    other = crowd if neighbours is ADD else crowd + poor
    check_gathered(program, exact(program, crowd + rich), exact(program, other))


@every("neighbours", list(Neighbours))
@every("limits", [Limits(1, 1), Limits(3, 2), Limits(30, 1)])
@every("sql", PRIVATE)
def test_a_greedy_patient(sql: str, limits: Limits, neighbours: Neighbours) -> None:
    check_greedy(sql, limits, neighbours)


def test_the_distances_are_those_of_the_worst_unit() -> None:
    """One row in each of G groups, all of them hidden: G by themselves, and G together, whose square is G^2."""
    for groups, rows in ((1, 1), (2, 3)):
        apart = QueryContribution.of(limits=Limits(groups, rows), neighbours=ADD, shown=[None])
        made = replace(apart, gathers=True)
        assert made.l1([(1,)], [Fraction(1)]) == 2 * groups * rows
        assert made.l2_squared([(1,)], [Fraction(1)]) == groups * rows**2 + (groups * rows) ** 2
        assert made.l1([(1,)], [Fraction(1)], once=True) == 2 * groups
        swapped = replace(made, neighbours=SWAP)
        assert swapped.l1([(1,), (-1,)], [Fraction(1)]) == 2 * groups * rows + 2 * groups * rows
        assert swapped.l2_squared([(1,), (-1,)], [Fraction(1)]) == 4 * groups * rows**2 + 4 * (groups * rows) ** 2


@pytest.mark.parametrize("delta", ["1e-6", "1e-2"])
def test_mutant_the_rest_is_for_nothing(monkeypatch: pytest.MonkeyPatch, delta: str) -> None:
    for name in ("l1", "l2_squared"):
        right = getattr(QueryContribution, name)

        def free(made: QueryContribution, *arguments: Any, right: Any = right, **options: Any) -> Any:
            return right(replace(made, gathers=False), *arguments, **options)

        monkeypatch.setattr(QueryContribution, name, free)
    with pytest.raises(AssertionError):
        check_greedy(BY_KIND, Limits(3, 2), ADD, delta)


def test_mutant_the_rest_counts_as_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of several hidden groups add up."""
    monkeypatch.setattr(QueryContribution, "_in_all_groups", lambda made, once: 1 if once else made.limits.rows)
    with pytest.raises(AssertionError):
        check_greedy(BY_KIND, Limits(3, 2), ADD)


def pmf(k: int, scale: Fraction) -> float:
    """Of discrete Laplace noise."""
    a = math.exp(-1 / float(scale))
    return (1 - a) / (1 + a) * a ** abs(k)


def excess(scale: Fraction, smallest: int, rows: int, epsilon: float) -> float:
    """By how much one row more in the only group makes some answers likelier than e^epsilon times, at most.

    The group is shown with its noisy size from the threshold on, and then the rest is empty; else it is all of the
    rest. Sizes from the threshold on that are 60 scales away are left out.
    """
    far = 60 * math.ceil(scale)
    found = 0.0
    for one, other in ((rows, rows + 1), (rows + 1, rows)):
        hidden = [sum(pmf(v - n, scale) for v in range(n - far, smallest)) for n in (one, other)]
        for rest in range(-far, rows + far):
            mine, theirs = (h * pmf(rest - n, scale) for h, n in zip(hidden, (one, other), strict=True))
            gains = max(0.0, mine - math.exp(epsilon) * theirs)
            for size in range(smallest, rows + far):
                mine, theirs = (pmf(size - n, scale) * pmf(rest, scale) for n in (one, other))
                gains += max(0.0, mine - math.exp(epsilon) * theirs)
            found += gains
    return found


@pytest.mark.ci
def test_the_exact_law_of_one_group_and_the_rest() -> None:
    """By the probabilities of all answers: what is charged is enough, and no smaller scale is."""
    declared = schema(unit=None, limits=Limits(), neighbours=ADD)
    program = plan(BY_KIND, declared, "1e-2")
    assert isinstance(program.selection, Threshold)
    (scale,), smallest = program.noise.scales, program.selection.smallest
    assert scale == 2
    for rows in (smallest - 3, smallest, smallest + 5):
        assert excess(scale, smallest, rows, 1.0) <= 1e-12
    assert excess(Fraction(19, 10), smallest, smallest + 5, 1.0) > 1e-4


def test_the_event_is_what_was_asked() -> None:
    for neighbours in Neighbours:
        program = plan(BY_KIND, schema(unit="patient", limits=Limits(2, 3), neighbours=neighbours))
        assert basic(terms(program.event)).epsilon <= 1
        assert program.contribution.gathers
    assert not plan(BY_WARD, schema(unit="patient", limits=Limits(2, 3), neighbours=ADD), "0").contribution.gathers


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 11),
)
def test_limits_count_the_public_group_like_any_other(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    program = plan(BY_WARD, schema(unit="patient", limits=limits, neighbours=neighbours), "0")
    assert program.reading.public_keys == (("A",), ("B",), ("C",), ("elsewhere",))
    rows = visits(seed)
    check_moves(program, exact(program, rows), exact(program, neighbour(rows, seed, who, neighbours)))
    alone = exact(program, [row for row in rows if row["patient"] == who])
    assert len(alone) <= limits.groups
    assert all(rows <= limits.rows for (rows,) in alone.values())


# -------------------------------------------------------------------------------------------------------------- answers


def ample(rows: pl.DataFrame, **declared: Any) -> Curator:
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(5))
    budget = Budget(epsilon=10**12, delta="1e-2")
    curator.protect(rows, name="t", budget=budget, bounds={"x": (0, 10), "v": (0, 1)}, **declared)
    return curator


TABLE = pl.DataFrame(
    {
        "g": [["A", "B", "C", "D", None][i * i % 5] for i in range(2000)],
        "k": [f"k{i % 7}" if i % 3 else f"alone {i}" for i in range(2000)],
        "x": [i % 11 for i in range(2000)],
        "v": [i % 2 for i in range(2000)],
        "n": [i % 3 for i in range(2000)],
    }
)


def test_declared_keys_with_much_budget() -> None:
    curator = ample(TABLE, keys={"g": ["B", "A"]})
    answer = curator.ask("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g", epsilon=10**9, other="none of them")
    with duckdb.connect() as plain:
        plain.register("t", TABLE)
        key = "CASE WHEN g IN ('A', 'B') THEN g ELSE 'none of them' END"
        known = {g: (n, s) for g, n, s in plain.execute(f"SELECT {key}, COUNT(*), SUM(x) FROM t GROUP BY 1").fetchall()}
    assert [row["g"] for row in answer] == ["B", "A", "none of them"]
    assert {row["g"]: (row["n"], row["s"]) for row in answer} == known
    assert any("rows with other keys are counted under 'none of them'" in note for note in answer.notes)


def test_private_keys_with_much_budget() -> None:
    """Groups of one row are hidden whatever the noise; they are in the rest, and nothing else is."""
    answer = ample(TABLE).ask("SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k", epsilon=10**9, other="rest")
    with duckdb.connect() as plain:
        plain.register("t", TABLE)
        key = "CASE WHEN k LIKE 'alone%' THEN 'rest' ELSE k END"
        known = {g: (n, s) for g, n, s in plain.execute(f"SELECT {key}, COUNT(*), SUM(x) FROM t GROUP BY 1").fetchall()}
    assert {row["k"]: (row["n"], row["s"]) for row in answer} == known
    assert answer[-1]["k"] == "rest"
    assert any("not shown are added up under 'rest'" in note for note in answer.notes)


def test_a_list_in_the_question_is_public() -> None:
    """The same in SQL, of a column that has no declared keys; no delta is needed."""
    key = "CASE WHEN k IN ('k1', 'k2', 'k9') THEN k ELSE 'rest' END"
    answer = ample(TABLE).ask(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=10**9, delta=0)
    assert {row["k"] for row in answer} == {"k1", "k2", "k9", "rest"}
    assert sum(row["n"] for row in answer) == 2000


@pytest.mark.ci
def test_the_interval_holds_what_is_not_shown() -> None:
    """400 releases with small groups that come and go: at most 5% miss, and four standard errors more."""
    declared = schema(unit=None, limits=Limits(), neighbours=ADD)
    program = plan(BY_KIND, declared, "1e-2", "1")
    rows = [{"patient": i, "ward": "A", "age": 3, "charge": 1.0, "kind": f"{i % 40}"} for i in range(400)]
    engine, times, missed, sizes = Memory(), 400, 0, set()
    engine.register("visits", rows, TYPES)
    for seed in range(times):
        released = run(program, engine, Releaser(SeededBits(seed)))
        *shown, rest = released.rows(Fraction(19, 20))
        hidden = 400 - 10 * len(shown)
        cell: Any = rest["n"]
        missed += not cell.low <= hidden <= cell.high
        sizes.add(hidden)
    assert len(sizes) > 5
    assert missed / times <= 0.05 + 4 * (0.05 * 0.95 / times) ** 0.5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", [None, "patient"])
@pytest.mark.parametrize("sql", [*PRIVATE, BY_WARD])
def test_engines_release_the_same_with_the_same_bits(sql: str, unit: str | None) -> None:
    rows = visits(3, patients=150)
    program = plan(sql, schema(unit=unit, limits=Limits(2, 2) if unit else Limits(), neighbours=ADD), "1e-4", "8")
    kinds = {"patient": pl.Int64, "ward": pl.String, "age": pl.Int64, "charge": pl.Float64, "kind": pl.String}
    found = []
    for engine, source in ((Memory(), rows), (DuckDB(threads=2), pl.DataFrame(rows, schema=kinds))):
        engine.register("visits", source, TYPES)
        released = run(program, engine, Releaser(SeededBits(9)))
        found.append((released.keys, released.noisy.tolist(), released.rows(Fraction(9, 10))))
    assert found[0] == found[1]
    assert found[0][0][-1] == ("elsewhere",)


# --------------------------------------------------------------------------------------------------- the curator around


@pytest.mark.parametrize("sql", [BY_KIND, BY_WARD])
def test_replayed_and_never_mixed_up_with_the_question_without(sql: str) -> None:
    curator = clinic(Budget(epsilon=40, delta="1e-2"))
    without = curator.ask(sql, epsilon=4, delta="1e-3")
    first = curator.ask(sql, epsilon=2, delta="1e-3", other="else")
    assert not first.replayed
    assert len(first) >= 1
    again = curator.ask(f"{sql} ORDER BY n", epsilon=1, delta="1e-3", other="else")
    assert again.replayed
    assert sorted(map(repr, again)) == sorted(map(repr, first))
    assert not curator.ask(sql, epsilon=2, delta="1e-3", other="something else").replayed
    assert curator.ask(sql, epsilon=2, delta="1e-3").records == without.records


def test_explained_rehearsed_and_fluent() -> None:
    curator = clinic(Budget(epsilon=40, delta="1e-2"))
    usual, more = (curator.explain(BY_KIND, epsilon=1, delta="1e-3", other=label) for label in (None, "else"))
    assert more.errors["n"] > usual.errors["n"]
    assert getattr(more.cost, "epsilon", None) == getattr(usual.cost, "epsilon", 0) == 1
    assert curator.rehearse(BY_KIND, epsilon=1, other="else")[-1]["kind"] == "else"
    frame = curator.table("visits").group_by("ward").agg(n=count())
    first = frame.ask(epsilon=1, other="else")
    assert curator.ask(BY_WARD, epsilon=1, other="else").records == first.records
    assert frame.explain(epsilon=1, other="else").free is not None
    assert [row["ward"] for row in frame.rehearse(other="else")] == ["A", "B", "C", "else"]
    chosen = curator.choose_epsilon(BY_WARD, [1], other="else")
    assert chosen.columns == ("n",)


@pytest.mark.parametrize(
    ("sql", "other", "reason"),
    [
        ("SELECT COUNT(*) AS n FROM visits", "else", "one GROUP BY"),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)", "else", "one GROUP BY"),
        ("SELECT age > 40 AS old, COUNT(*) AS n FROM visits GROUP BY 1", "else", "nothing is left"),
        ("SELECT kind, MEDIAN(age) AS m FROM visits GROUP BY kind", "else", "do not add up"),
        ("SELECT kind, MODE(age) AS m FROM visits GROUP BY kind", "else", "do not add up"),
        ("SELECT kind, COUNT(DISTINCT age) AS m FROM visits GROUP BY kind", "else", "do not add up"),
        ("SELECT kind, COUNT(DISTINCT patient) AS m FROM visits GROUP BY kind", "else", "do not add up"),
    ],
)
def test_refused_before_anything_is_spent(sql: str, other: str, reason: str) -> None:
    curator = clinic(Budget(epsilon=4, delta="1e-3"))
    with pytest.raises(UnsupportedQuery, match=reason):
        curator.ask(sql, epsilon=1, delta="1e-4", other=other)
    assert str(curator.budget("visits").spent) == "epsilon=0"


def test_people_are_counted_where_nobody_is_in_two_groups() -> None:
    curator = clinic(Budget(epsilon=10**6, delta="1e-2"), max_groups=1)
    sql = "SELECT kind, COUNT(DISTINCT patient) AS n FROM visits GROUP BY kind"
    answer = curator.ask(sql, epsilon=10**4, delta="1e-3", other="else")
    assert sum(row["n"] for row in answer) == 200


@pytest.mark.parametrize(("other", "sql"), [("B", BY_WARD), (7, BY_WARD), (7, BY_KIND), ("\ud800", BY_WARD)])
def test_a_label_is_of_the_type_of_the_keys_and_none_of_them(other: Any, sql: str) -> None:
    with pytest.raises(InvalidParameter, match="other"):
        clinic().ask(sql, epsilon=1, other=other)


def test_only_a_list_that_is_written_out_is_public() -> None:
    """A column in the list would bring in values of rows; NULL in it is equal to nothing."""
    x, y = ColumnRef("x", Type.TEXT), ColumnRef("y", Type.TEXT)
    a, rest, nothing = (Literal(value, Type.TEXT) for value in ("a", "rest", None))
    known = TableSchema(name="t", columns={name: ColumnSchema(name=name, type=Type.TEXT) for name in "xy"})
    for listed, found in (((a,), ("a", "rest")), ((a, y), None), ((nothing, a), ("a", "rest"))):
        assert values(call("if", call("in", x, *listed), x, rest), known) == found
