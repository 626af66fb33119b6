"""Tables and engines for the tests: one list of dicts, given to every engine in the form that it takes."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB, Engine, Memory
from discreet.engines.mariadb.pcre_patterns import is_quick
from discreet.engines.postgres.posix_patterns import is_certain
from discreet.engines.spark import Spark
from discreet.engines.sql.dialect import Strategy
from discreet.engines.sql.printer import Access
from discreet.errors import InvalidParameter
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal, Value, expressions_in, parts_of
from discreet.plan.model.readings import ContributionBounding, Groups, Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.mariadb_tables import MariaDBTables
from tests.engines.postgres_tables import PostgresTables, storable
from tests.open_groups import unsealed

N, F, B, T, D, S = Type.INT, Type.FLOAT, Type.BOOL, Type.TEXT, Type.DATE, Type.TIMESTAMP
Rows = Sequence[Mapping[str, Any]]

ARROW = {N: pa.int64(), F: pa.float64(), B: pa.bool_(), T: pa.string(), D: pa.date32(), S: pa.timestamp("us")}

EDGES: dict[Type, list[Any]] = {
    N: [None, 0, 1, -1, 2, 7, -7, 10**18, -(1 << 63), (1 << 63) - 1, (1 << 62) + 1, 3037000500],
    F: [
        *(None, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 0.49999999999999994, -0.49999999999999994, 5e-324, 1e308),
        *(
            -1.7976931348623157e308,
            9223372036854775808.0,
            -9223372036854775808.0,
            9223372036854774784.0,
            4503599627370497.5,
        ),
        *(float("nan"), float("inf"), float("-inf")),
    ],
    B: [None, True, False],
    T: [
        *(
            None,
            "",
            "a",
            "A",
            " a ",
            "abc",
            "%",
            "_",
            "a\nb",
            "it's",
            '";--',
            "\\",
            "\0",
            "naïve",
            "e\u0301",
            "ß",
            "🤦🏼‍♂️x",
        ),
        *(
            "12",
            "-0",
            "+7",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "99999999999999999999",
        ),
        *("1.5", ".5", "5.", "1e3", "1e999", "-1e-999", "1_0", "0x1", "٣", "nan", "inf", "2024-02-29", "2023-02-29"),
        *("0000-01-01", "0001-01-01", "9999-12-31", "2024-1-1", "2024-02-30", "\u00a0x\t", "İ"),
    ],
    D: [
        *(
            None,
            dt.date(1, 1, 1),
            dt.date(9999, 12, 31),
            dt.date(1970, 1, 1),
            dt.date(2024, 2, 29),
            dt.date(2023, 1, 1),
        ),
        *(dt.date(2023, 1, 31), dt.date(2020, 12, 31), dt.date(1999, 5, 30)),
    ],
    S: [
        None,
        dt.datetime(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2024, 2, 29, 12, 30),
        dt.datetime(2023, 10, 31, 0, 0, 1),
    ],
}
"""Values where engines disagree or fail, for every type."""


def arrow(rows: Rows, columns: Mapping[str, Type]) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in rows], ARROW[kind]) for name, kind in columns.items()})


Give = Callable[[Rows, Mapping[str, Type]], Any]


@dataclass(frozen=True)
class Bench:
    """All engines by name, and the way tables get into each; the referee, which is one of them, says what is right.

    What PostgreSQL cannot store is NULL there: it is held to a referee of such tables. It is not asked for what it
    refuses, a test of its own does.
    """

    engines: Mapping[str, tuple[Engine, Give]]
    storing: Memory = field(default_factory=Memory)

    def load(self, rows: Rows, columns: Mapping[str, Type], name: str = "t") -> None:
        for engine, give in self.engines.values():
            engine.register(name, give(rows, columns), columns)
        self.storing.register(name, list(map(stored, rows)), columns)

    def agreed(self, reading: Reading, *, among: Sequence[str] | None = None) -> Groups:
        """The answer of every engine, or of those that are named, after the referee has confirmed it."""
        chosen = {name: self.engines[name] for name in among or self.engines if name in self.engines}
        absent = {name for name in chosen if name in ABSENT and ABSENT[name](reading)}
        answers = {name: unsealed(engine.read(reading)) for name, (engine, _) in chosen.items() if name not in absent}
        if reading.bounding is not None and "duckdb-frame" in chosen:
            for place, other in enumerate(otherwise_bounded(chosen["duckdb-frame"][0])):
                answers[f"duckdb, {other.dialect.strategy}, {place}"] = unsealed(other.read(reading))
        right = answers[REFEREE]
        for name, answer in answers.items():
            assert answer == (unsealed(self.storing.read(reading)) if name == POSTGRES else right), (name, right)
        numbers = [number for answer in answers.values() for found in answer.values() for number in found]
        assert all(type(number) is int for number in numbers)
        return right

    def check_refused(self, *readings: Reading) -> None:
        """Every engine refuses each of them for what it is."""
        engines = {name: engine for name, (engine, _) in self.engines.items()}
        taken = [(name, reading) for reading in readings for name in engines if not refuses(engines[name], reading)]
        assert not taken


def otherwise_bounded(engine: Engine) -> list[DuckDB]:
    """An engine that has been asked before, as it would be with each other strategy of bounding, on the same tables."""
    assert isinstance(engine, DuckDB)
    made = []
    for strategy in get_args(Strategy):
        if strategy != engine.dialect.strategy:
            other, dialect = copy.copy(engine), copy.copy(engine.dialect)
            dialect.strategy, other.dialect = strategy, dialect
            made.append(other)
    return [*made, *(accessed(engine, access) for access in ACCESSES[1:])]


ACCESSES = (
    Access(),
    Access(is_kept=True, is_dense=True),
    Access(is_kept=True, ends=(0, 9)),
    Access(is_kept=True, is_sorted=True),
)
"""Ways of reading a table that an engine does not choose for a small frame."""


def accessed(engine: DuckDB, access: Access) -> DuckDB:
    """An engine as it would be if it read its tables in another way."""
    other = copy.copy(engine)
    vars(other)["_access"] = lambda *_: access
    return other


def stored(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: storable(value) for name, value in row.items()}


def is_absent(reading: Reading) -> bool:
    """Whether PostgreSQL refuses a reading: its texts have no U+0000, and it prefers other matches of patterns."""
    parts = [part for expression in expressions_in(reading) for part in parts_of(expression)]
    patterns = [part.arguments[1] for part in parts if isinstance(part, FunctionCall) and part.function == "extract"]
    uncertain = any(isinstance(each, Literal) and not is_certain(str(each.value)) for each in patterns)
    return uncertain or r"\x00" in repr(reading)


def is_slow(reading: Reading) -> bool:
    """Whether MariaDB refuses a reading: it may not find each pattern."""
    parts = [part for expression in expressions_in(reading) for part in parts_of(expression)]
    calls = [part for part in parts if isinstance(part, FunctionCall) and part.function in ("matches", "extract")]
    patterns = [call.arguments[1] for call in calls]
    return any(isinstance(each, Literal) and not is_quick(str(each.value)) for each in patterns)


def refuses(engine: Engine, reading: Reading) -> bool:
    try:
        unsealed(engine.read(reading))
    except InvalidParameter:
        return True
    return False


REFEREE, POSTGRES, SPARK, MARIADB = "memory", "postgres", "spark", "mariadb"
ENGINES = (REFEREE, "duckdb-frame", "duckdb-parquet", POSTGRES, SPARK, MARIADB)
PRINTERS = (REFEREE, "duckdb-frame", POSTGRES, SPARK, MARIADB)  # one for each way of computing functions
ABSENT = {POSTGRES: is_absent, MARIADB: is_slow}
"""What engines refuse, whose tests ask them for it."""


def sides(names: Sequence[str]) -> list[Any]:
    """These engines as parameters of a bench: Spark by itself beside the referee, since each of its statements costs.

    MariaDB is by itself, too: its server is started by CI alone. The quick suite asks both for many things at once, in
    tests of their own.
    """
    others = tuple(name for name in names if name not in (SPARK, MARIADB))
    return [
        pytest.param(others, id="here"),
        pytest.param((REFEREE, SPARK), id=SPARK, marks=pytest.mark.slow),
        pytest.param((REFEREE, MARIADB), id=MARIADB, marks=pytest.mark.ci),
    ]


def bench_of(
    names: Sequence[str],
    folder: Path,
    postgres: PostgresTables | None = None,
    spark_session: Any = None,
    mariadb: MariaDBTables | None = None,
) -> Bench:
    """These engines; a new one is added here and runs every test. One that is not installed is left out."""

    def parquet(rows: Rows, columns: Mapping[str, Type]) -> Path:
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        pq.write_table(arrow(rows, columns), path, row_group_size=1000)
        return path

    made: dict[str, Callable[[], tuple[Engine, Give]]] = {
        REFEREE: lambda: (Memory(), lambda rows, _: list(rows)),
        "duckdb-frame": lambda: (DuckDB(threads=1), arrow),
        "duckdb-parquet": lambda: (DuckDB(threads=2), parquet),
    }
    if postgres is not None:
        made[POSTGRES] = lambda: (
            postgres.engine(),
            lambda rows, columns: postgres.give(list(map(stored, rows)), columns),
        )
    if spark_session is not None:
        made[SPARK] = lambda: (Spark(spark_session), parquet)
    if mariadb is not None:
        made[MARIADB] = lambda: (mariadb.engine(), mariadb.give)
    return Bench({name: made[name]() for name in names if name in made})


def col(name: str, kind: Type) -> ColumnRef:
    return ColumnRef(name, kind)


def lit(value: Value, kind: Type) -> Literal:
    return Literal(value, kind)


def call(function: str, kind: Type, *arguments: Expression) -> FunctionCall:
    return FunctionCall(function, arguments, kind)


WIDE = 1 << 62


def witnesses(expression: Expression) -> tuple[tuple[Expression, ...], tuple[Statistic, ...]]:
    """Keys and statistics from which the value of an expression on a row can be told apart from others."""
    present = Statistic(kind="values", argument=expression)
    if expression.type is not F:
        return (expression,), (present,)
    exponents = (-1000, -50, 0, 940)
    sums = (Statistic(kind="sum", argument=expression, exponent=e, low=-WIDE, high=WIDE) for e in exponents)
    return (), (present, *sums)


def value_of(expression: Expression) -> Reading:
    """A reading that tells the value of an expression on every row of a table with the column `id`."""
    keys, statistics = witnesses(expression)
    return Reading(table="t", keys=(col("id", N), *keys), statistics=statistics)


def bounding(groups: int = 1, rows: int = 1, *, unit: str = "u", salt: str = "salt") -> ContributionBounding:
    return ContributionBounding(unit=unit, groups=groups, rows=rows, salt=salt)
