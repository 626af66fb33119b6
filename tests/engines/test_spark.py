"""Spark: the same integers as the referee, in few statements, since each of them costs half a second."""

from __future__ import annotations

import datetime as dt
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.engines.by_source import engine_at
from discreet.engines.spark import engine as spark_engine
from discreet.engines.spark import session as sessions
from discreet.engines.spark.engine import Spark
from discreet.engines.spark.java_patterns import found_quickly
from discreet.engines.spark.sources import CatalogTable
from discreet.engines.sql.pattern_ways import write_like
from discreet.engines.sql.statement import Statement
from discreet.errors import InvalidParameter, MissingExtra, QueryFailed
from discreet.noise import SeededBits
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import WHITE_SPACE
from discreet.privacy import Budget
from tests.engines import raw_parquet
from tests.engines.raw import Specimen
from tests.engines.spark_tables import parquet
from tests.engines.tables import EDGES, B, D, F, N, Rows, S, T, bounding, call, col, lit, witnesses
from tests.engines.test_functions import SHORT, arguments, calls, signatures
from tests.engines.test_ids import PEOPLE, spellings
from tests.open_groups import unsealed

ROWS = Statistic(kind="rows")
UNITS = Statistic(kind="units")
CANARY = "ZZ-CANARY-7"


@pytest.fixture(scope="module")
def spark(spark_session: Any) -> Iterator[Spark]:
    with Spark(spark_session) as engine:
        yield engine


def both(spark: Spark, rows: Rows, columns: Mapping[str, Type], folder: Path, name: str = "t") -> Memory:
    """The table in Spark, and the referee that has it too."""
    spark.register(name, parquet(rows, columns, folder), columns)
    referee = Memory()
    referee.register(name, list(rows), columns)
    return referee


def values_of(expressions: Sequence[Expression]) -> Reading:
    """A reading that tells the values of many expressions on every row of a table with the column `id`."""
    keys: list[Expression] = [col("id", N)]
    statistics: list[Statistic] = []
    for expression in expressions:
        told, counted = witnesses(expression)
        keys += told
        statistics += counted
    return Reading(table="t", keys=tuple(keys), statistics=tuple(statistics))


def check_edges(spark: Spark, kinds: Sequence[Type], folder: Path) -> None:
    """All functions of these types of arguments on all their edges, in one statement."""
    lists = [EDGES[kind][: SHORT.get(kind) if len(kinds) > 2 else None] for kind in kinds]
    columns = {"id": N, **{f"a{place}": kind for place, kind in enumerate(kinds)}}
    rows = [dict(zip(columns, (i, *values), strict=True)) for i, values in enumerate(itertools.product(*lists))]
    referee = both(spark, rows, columns, folder)
    known = [(name, signature) for name, signature in signatures() if arguments(signature) == tuple(kinds)]
    reading = values_of([expression for name, signature in known for expression in calls(name, signature)])
    assert unsealed(spark.read(reading)) == unsealed(referee.read(reading)), kinds


KINDS = sorted({arguments(signature) for _, signature in signatures()}, key=str)


@pytest.mark.ci
@pytest.mark.sampled(16)
@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: "-".join(kind.value for kind in kinds))
def test_every_function_on_every_edge(spark: Spark, kinds: Sequence[Type], tmp_path: Path) -> None:
    check_edges(spark, kinds, tmp_path)


def people(count: int) -> list[dict[str, Any]]:
    """Rows of people who have more groups and rows than they may; ids and keys of every type, some of them NULL."""
    return [
        {
            "n": place % 7 - 3,
            "t": ("Zoe\u0308 ", "Zo\u00eb", "p1", " p1\t", None, "", "a\u0345\U00010efd")[place % 7],
            "d": dt.date(2020, 1, 1 + place % 5),
            "s": dt.datetime(1969, 12, 31, 23, 59, 59, place % 3),
            "b": (True, False, None)[place % 3],
            "k": (None, "a", "\u00e9", "it's", "\0", 'b`"\\')[place * 5 % 6],
            "x": (0.25 * place, None, -1.5, 1e300)[place % 4],
        }
        for place in range(count)
    ]


COLUMNS = {"n": N, "t": T, "d": D, "s": S, "b": B, "k": T, "x": F}


def bounded_readings() -> Iterator[Reading]:
    total = Statistic(kind="sum", argument=col("x", F), exponent=-2, low=-4, high=40)
    values = Statistic(kind="values", argument=col("x", F))
    distinct = Statistic(kind="distinct", argument=col("k", T))
    for unit, keys in (("t", "kb"), ("n", "kd"), ("d", "nb"), ("s", "t"), ("b", "s")):
        named = tuple(col(key, COLUMNS[key]) for key in keys)
        yield Reading(
            table="t", keys=named, bounding=bounding(2, 2, unit=unit), statistics=(ROWS, UNITS, total, values)
        )
    public = ((None,), ("a",), ("\u00e9",), ("absent",), ('b`"\\',), ("\0",))
    yield Reading(
        table="t",
        keys=(col("k", T),),
        public_keys=public,
        bounding=bounding(1, 3, unit="t"),
        statistics=(ROWS, distinct),
    )
    where = call("less", B, col("x", F), lit(10.0, F))
    yield Reading(table="t", where=where, bounding=bounding(1, 2, unit="n"), statistics=(ROWS, UNITS, total))


@pytest.mark.ci
def test_the_same_rows_are_kept(spark: Spark, tmp_path: Path) -> None:
    referee = both(spark, people(90), COLUMNS, tmp_path)
    reading = next(bounded_readings())
    assert unsealed(spark.read(reading)) == unsealed(referee.read(reading))


@pytest.mark.slow
def test_the_same_rows_are_kept_of_units_and_keys_of_every_type(spark: Spark, tmp_path: Path) -> None:
    referee = both(spark, people(90), COLUMNS, tmp_path)
    for reading in bounded_readings():
        assert unsealed(spark.read(reading)) == unsealed(referee.read(reading)), reading


@pytest.mark.ci
def test_every_spelling_of_an_id(spark: Spark, tmp_path: Path) -> None:
    rows = [{"u": text} for text in [*spellings(), *(f"{mark}\u3042{mark}" for mark in WHITE_SPACE), "a" * 9000 + " b"]]
    referee = both(spark, rows, {"u": T}, tmp_path)
    reading = Reading(table="t", bounding=bounding(1, 100), statistics=(ROWS, UNITS))
    assert unsealed(spark.read(reading)) == unsealed(referee.read(reading))
    assert unsealed(referee.read(reading))[()][1] == len(PEOPLE) + 2


# ------------------------------------------------------------------------------------------------------------- patterns

LIKES = ("", "%", "_", "%%", "a%", "%b", "%a%b_%", "a_b", "\\", "a\\%", "%\u00e9_", "_____x", "%ab%ab%", "\0%")
QUICK_PATTERNS = (r"a", r"\Aa|b\z", r"\ba\b", r"[0-9]{1,3}", r"(?:a|\x{25})b?", r"[\x{0}-\x{10ffff}]{2}\z")
SLOW_PATTERNS = (r"(?:a+)+b", r"[0-9]+x", r"\A[\x{0}-\x{10ffff}]*\z")


@pytest.mark.ci
def test_patterns(spark: Spark, tmp_path: Path) -> None:
    texts = [*EDGES[T], "ab", "b\n", "abab", "aab\u2028", "\U0001f926\U0001f3fcx", "x a\u0301 ", "a" * 3000 + "b"]
    referee = both(spark, [{"id": i, "a": text} for i, text in enumerate(texts)], {"id": N, "a": T}, tmp_path)
    asked = [call("like", B, col("a", T), lit(pattern, T)) for pattern in LIKES]
    for pattern in (*QUICK_PATTERNS, *SLOW_PATTERNS):
        asked.append(call("matches", B, col("a", T), lit(pattern, T)))
        asked.append(call("extract", T, col("a", T), lit(f"({pattern})", T)))
    reading = values_of(asked)
    assert unsealed(spark.read(reading)) == unsealed(referee.read(reading))


@pytest.mark.ci
def test_java_is_given_only_what_it_finds_quickly() -> None:
    assert all(found_quickly(pattern) is not None for pattern in QUICK_PATTERNS)
    slow = (*SLOW_PATTERNS, "(?:a|ab|abc){9}", "a?" * 30)
    assert all(found_quickly(pattern) is None for pattern in slow)
    assert "(?>" in write_like("%a%b%")


@pytest.mark.ci
def test_like_takes_no_longer_the_more_often_it_could_match(spark: Spark, tmp_path: Path) -> None:
    """A matcher that tries every way to share the text among the signs would need 20,000^4 steps."""
    rows = [{"id": i, "a": "a" * 20_000 + end} for i, end in enumerate(("", "b", "\nb"))]
    both(spark, rows, {"id": N, "a": T}, tmp_path)
    patterns = ("%a%a%a%a%b", "%a_%a_%a_%a_%b")
    answer = unsealed(spark.read(values_of([call("like", B, col("a", T), lit(pattern, T)) for pattern in patterns])))
    assert sorted(answer) == [
        (row["id"], *(FUNCTIONS["like"].compute(row["a"], pattern) for pattern in patterns)) for row in rows
    ]


# -------------------------------------------------------------------------------------------------------------- sources


@pytest.mark.ci
def test_a_frame_is_computed_once(spark: Spark, spark_session: Any) -> None:
    """Its plan draws other numbers each time."""
    frame = spark_session.range(20).selectExpr("id", "CAST(floor(rand() * 1000000) AS BIGINT) AS n")
    spark.register("t", frame, {"id": N, "n": N})
    reading = Reading(table="t", keys=(col("id", N), col("n", N)), statistics=(ROWS,))
    assert unsealed(spark.read(reading)) == unsealed(spark.read(reading))


@pytest.mark.ci
def test_kept_rows_go_with_their_table(spark_session: Any) -> None:
    def kept() -> list[str]:
        return [row.viewName for row in spark_session.sql("SHOW VIEWS IN global_temp LIKE 'discreet*'").collect()]

    others = kept()
    engine = Spark(spark_session)
    for size in (2, 3):
        engine.register("t", spark_session.range(size), {"id": N})
        assert len(set(kept()) - set(others)) == 1
        assert unsealed(engine.read(Reading(table="t", statistics=(ROWS,)))) == {(): (size,)}
    engine.close()
    assert set(kept()) <= set(others)


@pytest.mark.ci
def test_a_frame_that_fails_is_refused_without_its_reason(
    spark: Spark, spark_session: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    frame = spark_session.range(3).selectExpr("id", f"CAST(concat('{CANARY}', id) AS INT) AS n")
    with pytest.raises(InvalidParameter) as refused:
        spark.register("t", frame, {"id": N, "n": N})
    assert CANARY not in str(refused.value) + "".join(capfd.readouterr())
    assert refused.value.__cause__ is None


@pytest.mark.ci
def test_tables_of_the_catalog(spark: Spark, spark_session: Any) -> None:
    spark_session.sql("CREATE TABLE kept USING parquet AS SELECT id, CAST(id AS STRING) AS name FROM range(5)")
    spark_session.sql("CREATE VIEW seen AS SELECT * FROM kept")
    spark_session.sql("CREATE TABLE written USING csv AS SELECT id FROM range(5)")
    try:
        assert spark.schema_of(CatalogTable("kept")) == {"id": N, "name": T}
        spark.register("t", CatalogTable("default.kept"), {"id": N})
        assert unsealed(spark.read(Reading(table="t", statistics=(ROWS,)))) == {(): (5,)}
        with Curator.for_tests(engine=engine_at("local[1]"), bits=SeededBits(7)) as curator:
            curator.protect("default.kept", name="kept", unit="name", max_rows=1, budget=Budget(epsilon=3))
            assert len(list(curator.ask("SELECT COUNT(*) FROM kept", epsilon=1))) == 1
        for wrong in ("seen", "written", "absent", "parquet.`/etc`", "a; DROP TABLE kept"):
            with pytest.raises(InvalidParameter):
                spark.register("t", CatalogTable(wrong), {"id": N})
    finally:
        for text in ("TABLE kept", "VIEW seen", "TABLE written"):
            spark_session.sql(f"DROP {text}")


@pytest.mark.ci
def test_what_is_no_table_of_spark_is_refused(spark: Spark, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    (tmp_path / "t.parquet").write_text("no Parquet")
    wrongs: list[Any] = [tmp_path / "t.csv", tmp_path / "t.parquet", tmp_path / "absent", "/etc/*", 7, [], None]
    for source in wrongs:
        with pytest.raises(InvalidParameter):
            spark.register("t", source, {"id": N})
    path = parquet([{"id": 1, "a": "x"}], {"id": N, "a": T}, tmp_path)
    for columns in ({"absent": N}, {"id": B}, {"ID": N}):
        with pytest.raises(InvalidParameter):
            spark.register("t", path, columns)


FOREMOST = ("parquet ms utc=False statistics=True", "parquet utf8 statistics=True", "parquet decimal 38 2")


def check_raw(spark: Spark, specimen: Specimen, folder: Path) -> None:
    """What each cell means, or a refusal of the column for its type."""
    source = specimen.build(specimen.cells, folder)
    if spark.schema_of(source).get("x") is not specimen.type:
        return
    columns = {"id": N, "x": specimen.type}
    spark.register("t", source, columns)
    referee = Memory()
    referee.register("t", [{"id": row["id"], "x": row["x"]} for row in specimen.rows(specimen.cells)], columns)
    reading = values_of([col("x", specimen.type)])
    assert unsealed(spark.read(reading)) == unsealed(referee.read(reading)), specimen.name


@pytest.mark.ci
def test_no_stored_value_makes_a_read_fail(spark: Spark, tmp_path: Path) -> None:
    for specimen in raw_parquet.specimens():
        if specimen.name in FOREMOST:
            check_raw(spark, specimen, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("specimen", raw_parquet.specimens(), ids=lambda specimen: specimen.name)
def test_no_stored_value_of_any_type_makes_a_read_fail(spark: Spark, specimen: Specimen, tmp_path: Path) -> None:
    check_raw(spark, specimen, tmp_path)


@pytest.mark.ci
def test_rows_may_lie_in_any_file(spark: Spark, tmp_path: Path) -> None:
    total = Statistic(kind="sum", argument=col("x", F), exponent=-2, low=-4, high=40)
    reading = Reading(table="t", keys=(col("k", T),), statistics=(ROWS, total))
    found = []
    for files in (1, 3):
        spark.register("t", parquet(people(60), COLUMNS, tmp_path, files=files), COLUMNS)
        found.append(unsealed(spark.read(reading)))
    assert found[0] == found[1]


# ------------------------------------------------------------------------------------------------- silence and deadline


def instead(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    """Every reading becomes this statement."""
    made = Statement(sql=sql, parameters={}, keys=(), finish=({0: 1},))
    monkeypatch.setattr(spark_engine, "translate_reading", lambda *_: made)


COUNT = Reading(table="t", statistics=(ROWS,))


@pytest.mark.ci
def test_a_failing_read_says_nothing(
    spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    both(spark, [{"a": CANARY}], {"a": T}, tmp_path)
    view = spark._tables["t"].view
    for failing in ("CAST(a AS INT)", CANARY, "raise_error(a)"):
        with monkeypatch.context() as patch:
            instead(patch, f"SELECT {failing} FROM {view}")
            with pytest.raises(QueryFailed) as failed:
                unsealed(spark.read(COUNT))
        assert str(failed.value) == str(QueryFailed())
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
    assert CANARY not in "".join(capfd.readouterr())
    assert unsealed(spark.read(COUNT)) == {(): (1,)}


@pytest.mark.ci
@pytest.mark.usefixtures("spark")
def test_loggers_speak_where_nothing_is_read(capfd: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("py4j").warning("heard")
    with sessions.quiet():
        logging.getLogger("py4j").warning("unheard")
    assert "unheard" not in capfd.readouterr().err


@pytest.mark.ci
def test_a_deadline_stops_a_question_and_the_next_one_works(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Spark(spark_session, deadline=0.5) as hasty:
        both(hasty, [{"a": "x"}], {"a": T}, tmp_path)
        with monkeypatch.context() as patch:
            instead(patch, "SELECT SUM(id % 7) FROM range(1000000000000)")
            with pytest.raises(QueryFailed):
                unsealed(hasty.read(COUNT))
    assert not list(spark_session.sparkContext.statusTracker().getActiveJobsIds())


@pytest.mark.ci
def test_settings_are_checked_before_each_read(spark: Spark, spark_session: Any, tmp_path: Path) -> None:
    spark_session.conf.set("spark.sql.ansi.enabled", "false")  # of another session
    both(spark, [{"a": "x"}], {"a": T}, tmp_path)
    spark_session.conf.set("spark.sql.ansi.enabled", "true")
    assert unsealed(spark.read(COUNT)) == {(): (1,)}
    for name, value in (("spark.sql.ansi.enabled", "false"), ("spark.sql.legacy.timeParserPolicy", "LEGACY")):
        spark._open.conf.set(name, value)
        with pytest.raises(QueryFailed):
            unsealed(spark.read(COUNT))
        spark._open.conf.set("spark.sql.ansi.enabled", "true")
        spark._open.conf.unset("spark.sql.legacy.timeParserPolicy")


@pytest.mark.ci
@pytest.mark.usefixtures("spark")
def test_what_is_no_session_is_refused() -> None:
    for wrong in (7, object(), "local[7]"):  # a process has one driver
        with pytest.raises(InvalidParameter):
            Spark(wrong).register("t", CatalogTable("t"), {"id": N})
    with pytest.raises(InvalidParameter):
        Spark(deadline=0)


@pytest.mark.ci
def test_a_driver_that_another_thread_started_is_left_running(spark_session: Any) -> None:
    def ask() -> dict[str, Type]:
        with Spark("local[1]") as engine:
            return engine.schema_of(spark_session.range(2))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(ask).result() == {"id": N}
    assert spark_session.range(2).count() == 2


@pytest.mark.ci
def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("discreet.lazy.import_module", missing)
    with pytest.raises(MissingExtra, match=r"\.\[spark\]"):
        Spark("local[1]").register("t", CatalogTable("t"), {"id": N})


# -------------------------------------------------------------------------------------------------------------- curator


@pytest.mark.ci
def test_noise_is_drawn_once_where_the_question_was_asked(spark_session: Any, tmp_path: Path) -> None:
    """However many tasks read the rows, the same bits make the same answer: an engine draws none."""
    rows = [{"u": place % 40, "ward": "ab"[place % 2]} for place in range(120)]
    answers = []
    for files in (1, 4):
        with Spark(spark_session) as engine:
            curator = Curator.for_tests(engine=engine, bits=SeededBits(7))
            sources = parquet(rows, {"u": N, "ward": T}, tmp_path, files=files)
            curator.protect(sources, name="visits", unit="u", max_rows=1, budget=Budget(epsilon=3))
            answers.append(curator.ask("SELECT COUNT(*) FROM visits WHERE ward = 'a'", epsilon=1))
    assert list(answers[0]) == list(answers[1])
