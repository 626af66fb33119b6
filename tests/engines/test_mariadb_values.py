"""Values that MariaDB takes for others: the engine agrees with the referee, and one without its guards does not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import pytest

from discreet.engines import Memory
from discreet.engines.mariadb import MariaDB, ids, snapshots
from discreet.engines.mariadb import engine as engine_module
from discreet.engines.mariadb.dialect import DIALECT
from discreet.engines.mariadb.text_templates import COLLATION
from discreet.engines.row_choice import normalize_id
from discreet.plan.expressions.letter_case import LOWER, UPPER
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.readings import Groups, Reading, Statistic
from discreet.plan.model.relations import BaseTable, Fold, UnitAggregation
from discreet.plan.model.types import Type
from tests.engines.mariadb_tables import MariaDBTables, register
from tests.engines.tables import WIDE, B, D, F, N, S, T, bounding, call, col, lit, value_of
from tests.open_groups import unsealed

Columns = Mapping[str, Type]
COUNTS = (Statistic(kind="rows"), Statistic(kind="units"))
LONG = "x" * 2000  # characters, of two bytes or three each in a key of a sort


def sums(*columns: str, exponent: int = 0) -> tuple[Statistic, ...]:
    return tuple(
        Statistic(kind="sum", argument=col(column, N), exponent=exponent, low=-WIDE, high=WIDE) for column in columns
    )


ALIKE = {
    "a": ("ab", "AB", "ab ", " ab", "áb", "a\u0301b", "áb\u00a0", "\uff41\uff42"),
    "a ": ("z", "ab"),
    "b": ("ß", "ss", "\0", "a\0", "a", "ñ", "n\u0303", "\u1e9b\u0323", "😀"),
    "c": (None, "", " ", "\u2003", "\u1112\u1161\u11ab", "\ud55c", "\u0301"),
}
PEOPLE = [
    *({"u": u, "g": g, "n": i} for i, (u, g) in enumerate(product((f"{LONG}1", f"{LONG}2"), "abcd"))),
    *({"u": u, "g": g, "n": i} for g, people in ALIKE.items() for i, u in enumerate(people)),
]
"""Ids that are the same person, and ids that look alike and are not."""
PERSON: Columns = {"u": T, "g": T, "n": N}


def limited(groups: int, rows: int, *, keys: bool = True) -> Reading:
    return Reading(
        table="t",
        keys=(col("g", T),) if keys else (),
        statistics=(*COUNTS, *sums("n")),
        bounding=bounding(groups, rows),
    )


READINGS = [limited(1, 1), limited(2, 1), limited(1, 3, keys=False), limited(4, 9)]


def right(rows: Sequence[Mapping[str, Any]], columns: Columns, readings: Sequence[Reading]) -> list[Groups]:
    memory = Memory()
    memory.register("t", rows, columns)
    return [unsealed(memory.read(one)) for one in readings]


def test_people_are_bounded_as_the_referee_does(mariadb_tables: MariaDBTables) -> None:
    with register(mariadb_tables, mariadb_tables.give(PEOPLE, PERSON), PERSON) as made:
        assert [unsealed(made.read(one)) for one in READINGS] == right(PEOPLE, PERSON, READINGS)


Break = Callable[[pytest.MonkeyPatch], None]


def _short_sorts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshots, "SETTINGS", {**snapshots.SETTINGS, "max_sort_length": "1024"})


def _no_lookup(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(engine_module, "other_ids", lambda _: [])


def _fewer_doubts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ids, "IS_DOUBTFUL", "FALSE")


def _other_collation(name: str) -> Break:
    """A mutant whose texts are compared under another collation."""

    def change(patch: pytest.MonkeyPatch) -> None:
        fetch = snapshots.fetch_rows
        patch.setattr(engine_module, "fetch_rows", lambda s, sql, *rest: fetch(s, sql.replace(COLLATION, name), *rest))

    return change


BROKEN = {
    "long keys are cut off": _short_sorts,
    "nothing is looked up": _no_lookup,
    "no text is doubtful": _fewer_doubts,
    "letters are alike": _other_collation("utf8mb4_general_ci"),
    "texts are filled up": _other_collation("utf8mb4_bin"),
}


@pytest.mark.ci
@pytest.mark.parametrize("name", BROKEN)
def test_without_a_guard_people_are_others(
    mariadb_tables: MariaDBTables, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: a person with a long id has limits of its own for every row, or several people are one."""
    BROKEN[name](monkeypatch)
    with register(mariadb_tables, mariadb_tables.give(PEOPLE, PERSON), PERSON) as made:
        assert [unsealed(made.read(one)) for one in READINGS] != right(PEOPLE, PERSON, READINGS)


@pytest.mark.ci
def test_one_person_less_moves_no_count_further_than_the_limits(mariadb_tables: MariaDBTables) -> None:
    """Each person of the table in turn is left out: the groups of the others are what they were."""
    asked = limited(2, 1)
    people = {LONG + "1": 4, "a\u0301b": 1, "\ud55c": 1, "ab ": 1}
    with register(mariadb_tables, mariadb_tables.give(PEOPLE, PERSON), PERSON) as made:
        whole = unsealed(made.read(asked))
    memory = Memory()
    for person in people:
        names = {row["u"] for row in PEOPLE if row["u"] is not None and _same(row["u"], person)}
        less = [row for row in PEOPLE if row["u"] not in names]
        with register(mariadb_tables, mariadb_tables.give(less, PERSON), PERSON) as made:
            found = unsealed(made.read(asked))
        memory.register("t", less, PERSON)
        assert found == unsealed(memory.read(asked))
        moved = [abs(whole[key][0] - found.get(key, (0,))[0]) for key in whole]
        assert 0 < sum(moved) <= 2
        assert max(moved) == 1


def _same(one: str, other: str) -> bool:
    return normalize_id(one) == normalize_id(other)


NUMBERS = [
    {"id": i, "n": n, "x": x}
    for i, (n, x) in enumerate(
        [
            *((-(1 << 63), 1.7976931348623157e308), ((1 << 63) - 1, -1.7976931348623157e308), (-1, 5e-324)),
            *((0, -0.0), (1, 1e300), (None, 1e17), (7, 123456789012345678.0), (-7, -1e18), (3037000500, 2.0**-1074)),
        ]
    )
]


@pytest.mark.ci
def test_no_number_is_an_error_or_another_number(mariadb_tables: MariaDBTables) -> None:
    """BIGINT and DOUBLE raise beyond their range, and a subquery cuts whole doubles off at seventeen digits."""
    columns: Columns = {"id": N, "n": N, "x": F}
    n, x = col("n", N), col("x", F)
    floors = [call(name, F, x) for name in ("floor", "ceil", "round")]
    asked = [
        *(call(name, N, n, other) for name in ("add", "multiply", "integer_divide") for other in (n, lit(-1, N))),
        *(call(name, F, one, one) for name in ("add", "multiply", "divide") for one in (x, *floors)),
        *(call("multiply", F, one, lit(0.5, F)) for one in floors),
        call("if", F, call("greater", B, x, lit(0.0, F)), floors[0], lit(0.0, F)),
        call("coalesce", F, floors[0], lit(0.0, F)),
        call("to_int", N, floors[1]),
    ]
    readings = [value_of(one) for one in asked]
    readings.append(Reading(table="t", statistics=(*sums("n"), *sums("n", exponent=3))))
    with register(mariadb_tables, mariadb_tables.give(NUMBERS, columns), columns) as made:
        assert [unsealed(made.read(one)) for one in readings] == right(NUMBERS, columns, readings)


@pytest.mark.ci
def test_sums_beyond_64_bits_are_exact(mariadb_tables: MariaDBTables) -> None:
    rows = [{"n": WIDE - i % 3} for i in range(500)]
    asked = Reading(table="t", statistics=sums("n"))
    with register(mariadb_tables, mariadb_tables.give(rows, {"n": N}), {"n": N}) as made:
        assert unsealed(made.read(asked)) == {(): (sum(row["n"] for row in rows),)} == right(rows, {"n": N}, [asked])[0]


@pytest.mark.ci
def test_long_texts_are_keys_that_differ(mariadb_tables: MariaDBTables) -> None:
    """Public keys of 3,000 characters travel whole; groups that begin alike are several."""
    texts = [f"{'é' * 3000}{i}" for i in range(3)]
    rows = [{"u": i % 7, "g": texts[i % 3]} for i in range(30)]
    columns: Columns = {"u": N, "g": T}
    readings = [
        Reading(table="t", keys=(col("g", T),), statistics=COUNTS, bounding=bounding(groups, 2), public_keys=public)
        for groups in (1, 2)
        for public in (None, tuple((text,) for text in texts[1:]), tuple((text,) for text in (*texts, "é", None)))
    ]
    distinct = Statistic(kind="distinct", argument=col("g", T))
    readings += [
        Reading(table="t", statistics=(distinct,)),
        Reading(table="t", statistics=(distinct,), bounding=bounding(1, 2)),
    ]
    with register(mariadb_tables, mariadb_tables.give(rows, columns), columns) as made:
        assert [unsealed(made.read(one)) for one in readings] == right(rows, columns, readings)


@pytest.mark.ci
def test_every_letter_has_the_case_of_the_table(mariadb_tables: MariaDBTables) -> None:
    letters = sorted({*UPPER, *UPPER.values(), *LOWER, *LOWER.values(), 0x2028, 0x10FFFF, 0x3A3, 0x130})
    rows = [{"id": point, "x": f"a{chr(point)}\u0301"} for point in letters]
    columns: Columns = {"id": N, "x": T}
    readings = [value_of(call(name, T, col("x", T))) for name in ("upper_case", "lower_case", "upper", "lower")]
    with register(mariadb_tables, mariadb_tables.give(rows, columns), columns) as made:
        assert [unsealed(made.read(one)) for one in readings] == right(rows, columns, readings)


EXTREMES: list[tuple[Type, list[Any]]] = [
    (N, [3, None, -(1 << 63), (1 << 63) - 1]),
    (F, [0.1, None, -2.2250738585072014e-308, 1.7976931348623157e308]),
    (T, ["", None, "v", "a,b"]),
    (D, [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    (S, [dt.datetime(1, 1, 1), None, dt.datetime(2024, 2, 29, 23, 59, 59, 999999)]),
    (B, [True, None, False]),
]


@pytest.mark.ci
@pytest.mark.parametrize(("kind", "values"), EXTREMES, ids=[kind.value for kind, _ in EXTREMES])
def test_first_and_last_values_are_read_back_from_texts(
    mariadb_tables: MariaDBTables, kind: Type, values: list[Any]
) -> None:
    rows = [
        {"u": i % 3, "by": by, "x": value}
        for i, (by, value) in enumerate((by, value) for by in (1, None, 2) for value in (*values, *values[:2]))
    ]
    columns: Columns = {"u": N, "by": N, "x": kind}
    folds = [
        Fold(kind=name, argument=col("x", kind), by=col("by", N), name=name, type=kind)
        for name in ("arg_min", "arg_max", "first", "last")
    ]
    source = UnitAggregation(source=BaseTable("t", "u"), keys=(), folds=tuple(folds))
    readings = [
        Reading(table="t", source=source, keys=(col(fold.name, kind),), statistics=COUNTS[:1])
        for fold in folds
        if kind is not F
    ] or [
        Reading(
            table="t",
            source=source,
            statistics=tuple(
                Statistic(kind="sum", argument=col(fold.name, F), exponent=e, low=-WIDE, high=WIDE)
                for fold in folds
                for e in (-1000, -50, 940)
            ),
        )
    ]
    with register(mariadb_tables, mariadb_tables.give(rows, columns), columns) as made:
        assert [unsealed(made.read(one)) for one in readings] == right(rows, columns, readings)


class Watched(MariaDB):
    """An engine that keeps the text of its statements."""

    said: list[str]

    def _groups(self, made: Any, *rest: Any) -> GroupColumns:
        self.said.append(made.sql)
        return super()._groups(made, *rest)


@pytest.fixture
def watched(mariadb_tables: MariaDBTables) -> Iterator[Watched]:
    with Watched(mariadb_tables.url) as made:
        made.said = []
        yield made


HOSTILE = (
    "'); DROP TABLE t; -- ",
    "\\'",
    "%s",
    "{0}",
    '"',
    "`",
    "\0",
    "😀",
    "/*!99999 x */",
    "@discreet_ids_0",
    "discreet_ids",
)


@pytest.mark.ci
def test_no_text_is_part_of_a_statement(mariadb_tables: MariaDBTables, watched: Watched) -> None:
    rows = [{"id": i, "x": text} for i, text in enumerate(HOSTILE)]
    columns: Columns = {"id": N, "x": T}
    watched.register("t", mariadb_tables.give(rows, columns), columns)
    readings = [
        *(Reading(table="t", where=call("equal", B, col("x", T), lit(text, T)), statistics=COUNTS) for text in HOSTILE),
        Reading(table="t", keys=(col("x", T),), public_keys=tuple((text,) for text in HOSTILE), statistics=COUNTS),
        Reading(table="t", statistics=COUNTS, bounding=bounding(1, 1, unit="x")),
    ]
    assert [unsealed(watched.read(one)) for one in readings] == right(rows, columns, readings)
    for text in HOSTILE[:-1]:
        assert not any(text in said for said in watched.said if len(text) > 3)


def test_names_are_quoted() -> None:
    assert DIALECT.quote_name('a`b"c') == '`a``b"c`'
