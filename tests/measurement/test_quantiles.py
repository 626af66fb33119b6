"""Quantiles, MIN and MAX as questions: charged for what one person can move, with intervals that hold, and replayed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import maximum, median, minimum, quantile
from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.audit.queries.neighbour_distance import by_ranges, ranges_of_parts, ranges_of_points
from discreet.audit.queries.releases import PointRelease, QuantileLevelRelease
from discreet.curator import Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.program import program as program_module
from discreet.measurement.program.draft import rho_of
from discreet.measurement.program.execution import run
from discreet.measurement.program.program import Program, choose
from discreet.measurement.releases.rank_draws import RISK, RankDraws, trees
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms import ranks as pick_module
from discreet.mechanisms.quantile_draw import divide
from discreet.mechanisms.ranks import RankTarget
from discreet.mechanisms.value_counts import Histogram
from discreet.noise import SeededBits
from discreet.plan.model.readings import Groups, Split
from discreet.plan.model.schema import Limits, TableSchema
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.curator.clinic import TYPES, Row, neighbour, visits
from tests.curator.spies import Spy, clinic
from tests.curator.test_neighbours import check_keys, check_within, exact, greedy, schema
from tests.effort import some, tried
from tests.measurement.draws import ranks, readings
from tests.open_groups import unsealed

ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
QUESTIONS = (
    "SELECT MEDIAN(age) AS m FROM visits",
    "SELECT QUANTILE(charge, 0.9) AS q, COUNT(*) AS n FROM visits WHERE ward = 'A'",
    "SELECT ward, MEDIAN(charge) AS m, MEDIAN(age) AS a FROM visits GROUP BY ward",
    "SELECT ward, QUANTILE(age, 0.1) AS q, QUANTILE(age, 0.75) AS r, AVG(charge) AS c FROM visits GROUP BY ward",
    "SELECT ward, MIN(age) AS lo, MAX(charge) AS hi FROM visits GROUP BY ward",
    "SELECT kind, MEDIAN(age) AS m FROM visits GROUP BY kind",
    "SELECT kind, MAX(age) AS m, COUNT(DISTINCT patient) AS n FROM visits GROUP BY kind",
    "SELECT ward, MEDIAN(charge) AS m, QUANTILE(charge, 0.2) AS q, QUANTILE(charge, 0.9) FROM visits GROUP BY ward",
    "SELECT MEDIAN(age) AS m, QUANTILE(age, 0.25) AS q, QUANTILE(age, 0.75) AS r, QUANTILE(age, 0.95) AS s FROM visits",
    "SELECT ward, MIN(x) AS lo, MEDIAN(x) AS m, QUANTILE(x, 0.2), QUANTILE(x, 0.9) FROM visits GROUP BY ward".replace(
        "x", "DATE '2026-01-01' + age"
    ),
)


def plan(sql: str, declared: TableSchema, delta: str, epsilon: str = "1") -> Program:
    asked = parse(sql, {"visits": declared})
    return choose(asked, declared, epsilon=Fraction(epsilon), delta=Fraction(delta), salt="pepper")


@cache
def planned(sql: str, unit: str | None, limits: Limits, neighbours: Neighbours, delta: str) -> Program:
    """The plan, once for each declaration. For honest code only."""
    return plan(sql, schema(unit=unit, limits=limits, neighbours=neighbours), delta)


# ----------------------------------------------------------------------------------------------------------- neighbours


def points(program: Program, rows: Sequence[Row]) -> list[Groups]:
    """For each argument of a quantile the values of every group, as the picks see them: at the finest."""
    engine = Memory()
    engine.register("visits", rows, TYPES)
    splits = [(reading, reading.split) for reading in readings(program, RankDraws)]
    return [
        unsealed(engine.read(replace(reading, split=replace(split, shift=0)))) for reading, split in splits if split
    ]


def check_picks(program: Program, one: Sequence[Row], other: Sequence[Row]) -> None:
    """The ranges of privacy losses over all groups add up to no more than was charged, pure and concentrated."""
    for reading, a, b in zip(readings(program, RankDraws), points(program, one), points(program, other), strict=True):
        split = reading.split
        assert split is not None
        for recipe in (r for r in ranks(program) if r.number == split.argument):
            for pick in recipe.picks:
                drawn = PointRelease(pick, split.high - split.low, split.shift)
                assert all(move.is_covered for move in by_ranges(pick.event, ranges_of_points(drawn, a, b)))
        check_trees(program, split, a, b)


def check_trees(program: Program, split: Split, one: Groups, other: Groups) -> None:
    """The same for each level of quantiles that are drawn together, given the places that come out on one side."""
    for tree in trees(r for r in ranks(program) if r.number == split.argument):
        last, shown = split.high - split.low, {**one, **other}
        groups = {key: Histogram.of(last, 0, one.get(key, ())) for key in shown}
        for seed in range(3):
            places = divide(groups, tree, lambda _: {}, SeededBits(seed))
            for level, event in enumerate(tree.levels):
                ranges = ranges_of_parts(QuantileLevelRelease(tree, level, last, 0), one, other, places)
                assert all(move.is_covered for move in by_ranges(event, ranges))


CASES = [(sql, delta) for sql in QUESTIONS for delta in ("0", "1e-6") if "kind" not in sql or delta != "0"]


@pytest.mark.ci
@tried(12)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 11),
)
def test_one_patient_moves_no_rank_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    rows = visits(seed)
    other = neighbour(rows, seed, who, neighbours)

    def check(case: tuple[str, str]) -> None:
        program = planned(case[0], "patient", limits, neighbours, case[1])
        check_picks(program, rows, other)
        if program.measures:
            one, two = exact(program, rows), exact(program, other)
            check_within(program, one, two)
            check_keys(program, one, two)

    try_all(CASES, check)


@tried(12)
@given(seed=st.integers(0, 10**6), neighbours=st.sampled_from(list(Neighbours)))
def test_one_row_moves_no_rank_farther_than_charged(seed: int, neighbours: Neighbours) -> None:
    rows = visits(seed)
    other = rows[1:] if neighbours is ADD else [*rows[1:], visits(seed + 7)[0]]

    def check(sql: str) -> None:
        check_picks(planned(sql, None, Limits(), neighbours, "1e-6"), rows, other)

    try_all([sql for sql in QUESTIONS if "DISTINCT" not in sql], check)


def check_extreme(sql: str, limits: Limits, neighbours: Neighbours, delta: str = "0") -> None:
    """A patient who takes all that the limits allow, added, or moved from the top of all wards to their bottom."""
    program = plan(sql, schema(unit="patient", limits=limits, neighbours=neighbours), delta)
    crowd, rich = visits(5), greedy(limits)
    poor = [{**row, "age": 0, "charge": 0.0} for row in rich]
    check_picks(program, crowd + rich, crowd if neighbours is ADD else crowd + poor)


BY_WARD = QUESTIONS[2]


@every("delta", ["0", "1e-6"])
@every("neighbours", list(Neighbours))
@every("limits", [Limits(1, 1), Limits(3, 2)])
@every("sql", some([*QUESTIONS[:5], *QUESTIONS[7:]], 3))
def test_a_greedy_patient(sql: str, limits: Limits, neighbours: Neighbours, delta: str) -> None:
    check_extreme(sql, limits, neighbours, delta)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("limits", [Limits(1, 1), Limits(3, 2)], ids=str)
@pytest.mark.parametrize("sql", QUESTIONS[7:])
def test_several_quantiles_of_a_greedy_patient_in_gaussian_money(
    sql: str, limits: Limits, neighbours: Neighbours
) -> None:
    declared = schema(unit="patient", limits=limits, neighbours=neighbours)
    asked = parse(sql.replace("0.2)", "0.25)").replace("0.9)", "0.75)"), {"visits": declared})
    program = choose(asked, declared, epsilon=Fraction(1), delta=Fraction("1e-6"), salt="pepper", law="gaussian")
    assert trees(ranks(program))
    assert zcdp(terms(program.event)).rho == rho_of(Fraction(1), Fraction("1e-6"))
    crowd, rich = visits(5), greedy(limits)
    check_picks(program, crowd + rich, crowd if neighbours is ADD else crowd + [{**row, "age": 0} for row in rich])


@pytest.mark.parametrize("factor", ["rows", "groups", "one"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_mutant_a_factor_is_dropped(monkeypatch: pytest.MonkeyPatch, factor: str, delta: str) -> None:
    right = pick_module.Pick.of.__func__  # type: ignore[attr-defined]
    size = {"rows": 2, "groups": 3, "one": 9}[factor]  # max(q, 1 - q) = 9/10 of the quantile, min = 1/10

    def loud(cls: Any, *arguments: Any) -> Any:
        made = right(cls, *arguments)
        factor_of_rate = size if delta == "0" or factor != "groups" else Fraction(math.isqrt(size * 10**6), 1000)
        return cls(made.target, made.rate * factor_of_rate, made.event)

    monkeypatch.setattr(pick_module.Pick, "of", classmethod(loud))
    sql = "SELECT ward, QUANTILE(charge, 0.9) AS q FROM visits GROUP BY ward" if factor == "one" else BY_WARD
    with pytest.raises(AssertionError):
        check_extreme(sql, Limits(3, 2), ADD, delta)


def test_mutant_replaced_rows_are_priced_as_removed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the median, staying in a group moves a loss by 1, twice as far as leaving it."""
    monkeypatch.setattr(RankTarget, "l2_squared", lambda target, c: 2 * c.groups * (c.limits.rows * target.one) ** 2)
    with pytest.raises(AssertionError):
        check_extreme("SELECT ward, MEDIAN(charge) AS m FROM visits GROUP BY ward", Limits(3, 1), SWAP, "1e-6")


def test_mutant_no_bounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "_bounding", lambda *_: None)
    with pytest.raises(AssertionError):
        check_extreme(QUESTIONS[0], Limits(1, 1), ADD)


def test_the_event_is_what_was_asked() -> None:
    for neighbours, limits in ((ADD, Limits(2, 3)), (SWAP, Limits(2, 3))):
        for sql in (*QUESTIONS[:5], *QUESTIONS[7:]):
            program = plan(sql, schema(unit="patient", limits=limits, neighbours=neighbours), "0")
            assert basic(terms(program.event)).epsilon == 1
        program = plan(BY_WARD, schema(unit="patient", limits=Limits(20, 1), neighbours=neighbours), "1e-6")
        rho = zcdp(terms(program.event)).rho
        assert program.noise.law == "gaussian"
        assert rho == rho_of(Fraction(1), Fraction("1e-6"))


# ------------------------------------------------------------------------------------------------- answers and engines


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    kinds = {"patient": pl.Int64, "ward": pl.String, "age": pl.Int64, "charge": pl.Float64, "kind": pl.String}
    return pl.DataFrame(rows, schema=kinds)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("unit", [None, "patient"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_engines_release_the_same_with_the_same_bits(sql: str, unit: str | None) -> None:
    if unit is None and "DISTINCT" in sql:
        return
    limits = Limits(2, 2) if unit else Limits()
    rows = visits(3, patients=150)
    program = plan(sql, schema(unit=unit, limits=limits, neighbours=ADD), "1e-4", "8")
    found = []
    for engine, source in ((Memory(), rows), (DuckDB(threads=2), frame(rows))):
        engine.register("visits", source, TYPES)
        released = run(program, engine, Releaser(SeededBits(9)))
        found.append((released.keys, released.noisy.tolist(), released.rows(Fraction(9, 10))))
    assert found[0] == found[1]
    assert len(found[0][0]) >= (1 if "kind" not in sql else 0)


SHARES = {"m": "0.5", "q": "0.9", "t": "0.333333"}


def ample(engine: Engine, source: Any, **declared: Any) -> Curator:
    curator = Curator.for_tests(engine=engine, bits=SeededBits(17))
    curator.protect(
        source, name="t", budget=Budget(epsilon=10**9, delta="1e-2"), bounds={"x": (0, 1000), "k": (0, 50)}, **declared
    )
    return curator


def test_with_much_budget_a_quantile_lies_between_the_order_statistics_beside_it() -> None:
    values = [(17 * i * i) % 3001 / 4 for i in range(997)]
    rows = pl.DataFrame({"g": [i % 3 for i in range(997)], "x": values, "k": [int(v) % 51 for v in values]})
    curator = ample(DuckDB(threads=1), rows, keys={"g": [0, 1, 2]})
    plain = duckdb.connect()
    plain.register("t", rows)
    for column, grid in (("x", 1000 / 2**19), ("k", 0)):
        calls = ", ".join(f"QUANTILE_CONT({column}, {q}) AS {name}" for name, q in SHARES.items())
        answer = curator.ask(f"SELECT g, {calls} FROM t GROUP BY g", epsilon=10**6, delta=0)
        for row in answer:
            for name, q in SHARES.items():
                low, high, own = plain.execute(
                    f"""SELECT max(x) FILTER (i <= greatest(ceil({q} * n), 1)), min(x) FILTER (i >= floor({q} * n) + 1),
                    QUANTILE_CONT(x, {q}) FROM (SELECT {column} AS x, row_number() OVER (ORDER BY {column}) AS i,
                    count(*) OVER () AS n FROM t WHERE g = {row["g"]})"""
                ).fetchall()[0]
                assert min(low, high) - grid <= row[name] <= max(low, high) + grid
                assert row[f"{name}_low"] <= own <= row[f"{name}_high"]


def test_the_extremes_are_near_and_never_beyond() -> None:
    rows = pl.DataFrame({"x": [float(i % 500) + 100 for i in range(5000)], "k": [i % 40 for i in range(5000)]})
    answer = ample(DuckDB(threads=1), rows).ask("SELECT MIN(x) AS lo, MAX(x) AS hi, MAX(k) AS k FROM t", epsilon=30)
    (row,) = answer
    assert 100 <= row["lo"] <= 102
    assert 596 <= row["hi"] <= 599
    assert (row["k"], row["k_low"], row["k_high"]) == (39, 39, 50)
    assert (row["lo_low"], row["hi_high"]) == (0, 1000)
    assert row["lo"] < row["lo_high"] < row["lo"] + 0.001  # half a step of 2^-11
    assert row["hi"] - 0.001 < row["hi_low"] < row["hi"]
    assert sum("private quantile near the extreme, not the extreme itself" in note for note in answer.notes) >= 2


# ------------------------------------------------------------------------------------------------------------- coverage

GROUPS = 1_000
ASKED = "SELECT g, MEDIAN(x) AS m, QUANTILE(x, 0.9) AS q, QUANTILE(x, 0.02) AS s, MIN(x) AS lo, MAX(x) AS hi FROM t"
TRUTHS = {"m": 0.5, "q": 0.9, "s": 0.02, "lo": 0.0, "hi": 1.0}
TABLES = {
    "one": (7,),
    "two ends": (0, 50),
    "equal": (20,) * 40,
    "spread": tuple(range(51)) * 4,
    "heaps": (0,) * 60 + (3,) * 5 + (50,) * 60,
}


def misses(ages: tuple[int, ...], epsilon: str) -> dict[str, float]:
    """How often intervals miss, in many equal groups that are drawn independently."""
    source = pl.DataFrame({"g": [g for g in range(GROUPS) for _ in ages], "x": list(ages) * GROUPS})
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(23))
    budget = Budget(epsilon=10**6, delta="1e-3")
    curator.protect(source, name="t", bounds={"x": (0, 50)}, keys={"g": list(range(GROUPS))}, budget=budget)
    answer = curator.ask(f"{ASKED} GROUP BY g", epsilon=epsilon, delta=0)
    with duckdb.connect() as plain:
        plain.register("t", source)
        exact = plain.execute(
            f"SELECT {', '.join(f'QUANTILE_CONT(x, {q})' for q in TRUTHS.values())} FROM t WHERE g = 0"
        )
        truth = dict(zip(TRUTHS, exact.fetchall()[0], strict=True))
    assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for row in answer for name in TRUTHS)
    return {
        name: sum(not row[f"{name}_low"] <= value <= row[f"{name}_high"] for row in answer) / GROUPS
        for name, value in truth.items()
    }


MOST = float(RISK) + 4 * math.sqrt(float(RISK) / GROUPS)


def check_coverage(name: str, epsilon: str) -> None:
    assert max(misses(TABLES[name], epsilon).values()) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "40"])
@pytest.mark.parametrize("name", list(TABLES))
def test_intervals_miss_no_more_often_than_stated(name: str, epsilon: str) -> None:
    check_coverage(name, epsilon)


@pytest.mark.ci
@pytest.mark.parametrize(("name", "epsilon"), [("one", "1"), ("heaps", "40")])
def test_intervals_miss_as_little_in_a_few_groups(monkeypatch: pytest.MonkeyPatch, name: str, epsilon: str) -> None:
    monkeypatch.setitem(globals(), "GROUPS", 150)
    check_coverage(name, epsilon)


@pytest.mark.parametrize("table", ["one", "heaps"])
def test_mutant_fences_at_the_quantile_itself(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    monkeypatch.setattr(pick_module.Pick, "shift_rank", lambda pick, _: pick)
    monkeypatch.setitem(globals(), "GROUPS", 150)
    with pytest.raises(AssertionError):
        check_coverage(table, "1")


def test_beyond_its_risk_an_interval_is_the_bounds() -> None:
    curator = clinic(Budget(epsilon=1000))
    usual = curator.ask("SELECT MEDIAN(age) AS m FROM visits", epsilon=100)
    careful = curator.ask("SELECT MEDIAN(age) AS m FROM visits", epsilon=100, confidence="0.9999")
    assert careful.replayed
    assert careful[0]["m"] == usual[0]["m"]
    assert (careful[0]["m_low"], careful[0]["m_high"]) == (0, 120)
    assert 0 < usual[0]["m_low"] <= usual[0]["m"] <= usual[0]["m_high"] < 120
    both = curator.ask("SELECT MEDIAN(age) + 2 * MEDIAN(charge) AS m FROM visits", epsilon=100)
    assert both[0]["m_low"] <= both[0]["m"] <= both[0]["m_high"]


# --------------------------------------------------------------------------------------------------- the curator around


def test_replayed_in_another_order_and_at_a_smaller_price() -> None:
    curator = clinic(Budget(epsilon=4))
    first = curator.ask(
        "SELECT ward, MEDIAN(age) AS m, QUANTILE(charge, 0.9) AS q FROM visits GROUP BY ward", epsilon=2
    )
    other = "SELECT QUANTILE(charge, 0.90) - 1 AS q, ward, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS m"
    again = curator.ask(f"{other} FROM visits GROUP BY ward ORDER BY ward DESC", epsilon=1)
    assert again.replayed
    assert [(row["ward"], row["m"]) for row in again] == [(row["ward"], row["m"]) for row in reversed(list(first))]
    better = curator.ask(f"{other} FROM visits GROUP BY ward", epsilon="2")
    assert better.replayed
    assert not curator.ask("SELECT ward, MEDIAN(age) AS m FROM visits GROUP BY ward", epsilon=1).replayed


def test_a_stored_release_comes_back_from_the_file(tmp_path: Any) -> None:
    asked = "SELECT ward, MEDIAN(charge) AS m, COUNT(*) AS n, MAX(age) AS hi FROM visits GROUP BY ward"
    ledger = str(tmp_path / "ledger")
    with clinic(Budget(epsilon=4), ledger=ledger) as curator:
        first = curator.ask(asked, epsilon=1)
    with clinic(Budget(epsilon=4), ledger=ledger) as curator:
        again = curator.ask(asked, epsilon=1)
    assert again.replayed
    assert again.records == first.records


def test_how_often_data_are_read() -> None:
    """Once for what is added up, once for a small grid, twice for a fine one, whatever the data."""
    for sql, reads in (
        ("SELECT MEDIAN(age) AS m FROM visits", 1),
        ("SELECT MEDIAN(age) AS m, MAX(age) AS h FROM visits WHERE ward = 'no such ward'", 1),
        ("SELECT MEDIAN(charge) AS m, MIN(charge) AS l FROM visits", 2),
        ("SELECT MEDIAN(charge) AS m FROM visits WHERE ward = 'no such ward'", 2),
        ("SELECT MEDIAN(charge) AS m, QUANTILE(charge, 0.9) AS q, MAX(charge) AS h FROM visits", 2),
        ("SELECT MEDIAN(age) AS m, QUANTILE(age, 0.9) AS q, QUANTILE(age, 0.25) AS r FROM visits", 1),
        ("SELECT ward, MEDIAN(charge) AS m, MEDIAN(age) AS a, COUNT(*) AS n FROM visits GROUP BY ward", 4),
    ):
        spy = Spy()
        clinic(engine=spy).ask(sql, epsilon=1)
        assert spy.reads == reads, sql


def test_private_keys_show_quantiles_of_shown_groups_only() -> None:
    curator = clinic(Budget(epsilon=10**6, delta="1e-2"))
    answer = curator.ask("SELECT kind, MEDIAN(age) AS m FROM visits GROUP BY kind", epsilon=10**4, delta="1e-3")
    assert {row["kind"] for row in answer} == {"check", "fever", "fracture", "other"}
    assert all(0 <= row["m_low"] <= row["m"] <= row["m_high"] <= 120 for row in answer)
    quiet = curator.ask("SELECT kind, MEDIAN(age) AS m FROM visits GROUP BY kind", epsilon="0.01", delta="1e-9")
    assert len(quiet) == 0 or quiet.replayed
    with pytest.raises(UnsupportedQuery, match="delta"):
        clinic(Budget(epsilon=1)).ask("SELECT kind, MEDIAN(age) AS m FROM visits GROUP BY kind", epsilon=1)


def test_an_error_is_not_promised_beforehand() -> None:
    with pytest.raises(UnsupportedQuery, match="quantile"):
        clinic().ask("SELECT MEDIAN(age) AS m FROM visits", within=5, max_epsilon=1)


def test_the_quantile_of_some_rows() -> None:
    curator = clinic(Budget(epsilon=4))
    some = curator.ask("SELECT MEDIAN(age) FILTER (WHERE ward = 'A') AS m FROM visits", epsilon=1)
    again = curator.ask("SELECT MEDIAN(CASE WHEN ward = 'A' THEN age END) AS m FROM visits", epsilon=1)
    assert again.replayed
    assert again.records == some.records


def test_several_quantiles_come_in_order() -> None:
    calls = ", ".join(f"QUANTILE(charge, {q / 10}) AS q{q}" for q in (9, 1, 5, 3, 7))
    answer = clinic().ask(f"SELECT ward, {calls} FROM visits GROUP BY ward", epsilon="0.01")
    for row in answer:
        in_order = [row[f"q{q}"] for q in (1, 3, 5, 7, 9)]
        assert in_order == sorted(in_order)


def test_some_of_several_quantiles_asked_again_are_paid_anew() -> None:
    """One of several is drawn otherwise than by itself; all of them, in whatever order, are a replay."""
    curator = clinic(Budget(epsilon=4))
    calls = [f"QUANTILE(charge, {q}) AS q{int(10 * q)}" for q in (0.2, 0.5, 0.8)]
    first = curator.ask(f"SELECT ward, {', '.join(calls)} FROM visits GROUP BY ward", epsilon=1)
    again = curator.ask(f"SELECT ward, {', '.join(reversed(calls))} FROM visits GROUP BY ward", epsilon=1)
    assert again.replayed
    assert [row["q5"] for row in again] == [row["q5"] for row in first]
    assert again.remaining == first.remaining
    some = curator.ask(f"SELECT ward, {', '.join(calls[:2])} FROM visits GROUP BY ward", epsilon=1)
    assert not some.replayed
    assert some.remaining != first.remaining


def test_several_quantiles_err_less_than_each_for_its_share() -> None:
    declared = schema(unit=None, limits=Limits(), neighbours=ADD)
    program = plan(QUESTIONS[8], declared, "0")
    (tree,) = trees(ranks(program))
    assert len(tree.levels) == 3
    for recipe in ranks(program):
        sql = f"SELECT QUANTILE(age, {float(recipe.point.target.share)}) FROM visits"
        (single,) = ranks(plan(sql, declared, "0"))
        assert recipe.variance < 16 * single.variance  # by itself for a quarter of the budget
        assert recipe.fences != ()


def test_the_fluent_front_asks_the_same() -> None:
    curator = clinic(Budget(epsilon=4))
    frame = curator.table("visits").group_by("ward")
    made = frame.agg(m=median("age"), q=quantile("charge", "0.25"), lo=minimum("age"), hi=maximum("charge"))
    first = made.ask(epsilon=1)
    again = curator.ask(
        "SELECT ward, MEDIAN(age) AS m, QUANTILE(charge, 0.25) AS q, MIN(age) AS lo, MAX(charge) AS hi "
        "FROM visits GROUP BY ward",
        epsilon=1,
    )
    assert again.replayed
    assert again.records == first.records
    for wrong in (-1, 2, "1/7777777"):
        with pytest.raises(InvalidParameter):
            quantile("age", wrong)


def test_explained_and_rehearsed() -> None:
    curator = clinic(Budget(epsilon=4))
    asked = "SELECT MEDIAN(age) AS m, MAX(charge) AS h, QUANTILE(age, 0.9) AS q FROM visits"
    explained = curator.explain(asked, epsilon=1, rows=100_000)
    assert "exponential mechanism, within" in str(explained)
    assert 0 < explained.errors["m"] < 6 < curator.explain(asked, epsilon="0.001", rows=1000).errors["m"] <= 120
    made_up = curator.rehearse(asked)
    assert set(made_up.columns) == {f"{name}{end}" for name in "mhq" for end in ("", "_low", "_high")}
    by_kind = clinic().rehearse("SELECT kind, MEDIAN(charge) AS m FROM visits GROUP BY kind", epsilon="0.1")
    assert len(by_kind) > 0


@pytest.mark.parametrize("epsilon", ["1e-12", "1e12"])
def test_tiny_and_huge_budgets(epsilon: str) -> None:
    """Fences that no table reaches are not made; the interval is the bounds then."""
    curator = clinic(Budget(epsilon="1e13"))
    (row,) = curator.ask("SELECT MEDIAN(charge) AS m, MIN(age) AS lo FROM visits", epsilon=epsilon)
    assert 0 <= row["m_low"] <= row["m"] <= row["m_high"] <= 1000
    several = "SELECT MEDIAN(charge) AS m, QUANTILE(charge, 0.1) AS a, QUANTILE(charge, 0.9) AS b FROM visits"
    (more,) = curator.ask(several, epsilon=epsilon)
    assert 0 <= more["a"] <= more["m"] <= more["b"] <= 1000
    if epsilon == "1e-12":
        assert (row["m_low"], row["m_high"], row["lo_low"], row["lo_high"]) == (0, 1000, 0, 120)
