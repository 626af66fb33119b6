"""Groups that some row can be in: nothing that a row may hold is ever lost, and what is excluded is left out."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from discreet.curator.catalog.declarations import declare
from discreet.errors import UnsupportedQuery
from discreet.measurement.program.program import ReleaseFormat, choose, public_keys
from discreet.plan.analysis import reachable_groups, value_sets
from discreet.plan.analysis.reachable_groups import reachable
from discreet.plan.analysis.value_sets import ValueSet, possible
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.nodes import FunctionCall, Question
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from discreet.sql.select import parse
from tests.cases import try_all
from tests.curator.fuzz import TYPES as FUZZED
from tests.curator.fuzz import Draw, Setting, Texts, of_visits
from tests.effort import rounds

TYPES = {
    "patient": Type.INT,
    "ward": Type.TEXT,
    "sex": Type.TEXT,
    "age": Type.INT,
    "charge": Type.FLOAT,
    "kind": Type.TEXT,
    "day": Type.DATE,
    "seen": Type.TIMESTAMP,
    "flag": Type.BOOL,
}
DAYS = ("2024-01-01", "2025-12-31")
NULL = None


@cache
def schema() -> TableSchema:
    return declare(
        "visits",
        TYPES,
        unit="patient",
        bounds={"age": (0, 120), "charge": (0, 100), "day": DAYS, "seen": DAYS},
        keys={"ward": ["A", "B", "C"], "sex": ["f", "m"]},
        limits=Limits(9, 1),
        neighbours=Neighbours.REPLACE,
        version="1",
    )


def asked(key: str, where: str, source: str = "visits") -> Question:
    sql = f"SELECT {key} AS k, COUNT(*) AS n FROM {source} {where and f'WHERE {where}'} GROUP BY {key}"
    return parse(sql, {"visits": schema()})


def groups(question: Question) -> list[Any]:
    """The values of the first key, or of all keys, of the groups that are shown."""
    program = choose(question, schema(), epsilon=Fraction(1), salt="salt")
    keys = program.reading.public_keys
    assert keys is not None
    return [key[0] if len(key) == 1 else key for key in keys]


BANDS = "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END"
OPEN = "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' END"
BUCKETS = "WIDTH_BUCKET(charge, 0, 100, 4)"
MARCH, JUNE = dt.date(2025, 3, 1), dt.date(2025, 6, 1)
SPRING = f"day >= DATE '{MARCH}' AND day < DATE '{JUNE}'"
MONTHS = [dt.date(2025, month, 1) for month in (3, 4, 5)]

EXPECTED: dict[tuple[str, str], list[Any]] = {
    # conditions on the key itself
    ("ward", ""): ["A", "B", "C"],
    ("ward", "ward = 'A'"): ["A"],
    ("ward", "'A' = ward"): ["A"],
    ("ward", "ward IN ('A', 'C', 'Z')"): ["A", "C"],
    ("ward", "ward NOT IN ('A', 'Z')"): ["B", "C"],
    ("ward", "NOT ward = 'A'"): ["B", "C"],
    ("ward", "NOT (ward = 'A' OR ward = 'B')"): ["C"],
    ("ward", "ward <> 'A' AND age > 3"): ["B", "C"],
    ("ward", "ward = 'A' OR age > 3"): ["A", "B", "C"],
    ("ward", "ward = 'A' OR (age > 3 AND ward = 'B')"): ["A", "B"],
    ("ward", "ward >= 'B'"): ["B", "C"],
    ("ward", "LOWER(ward) = 'a'"): ["A"],
    ("ward", "ward LIKE '%B%'"): ["B"],
    ("ward", "COALESCE(ward, 'A') = 'A'"): ["A"],
    ("ward", "CASE WHEN age > 3 THEN ward = 'A' ELSE ward = 'B' END"): ["A", "B"],
    ("ward", "ward = kind"): ["A", "B", "C"],
    ("ward", "charge > 3"): ["A", "B", "C"],
    ("ward", "ward = 'Z'"): ["A", "B", "C"],  # no group is left, so all are
    ("ward", "ward IS NULL"): ["A", "B", "C"],
    ("ward", "kind = 'x' AND FALSE"): ["A", "B", "C"],
    ("age", "age BETWEEN 20 AND 23"): [20, 21, 22, 23],
    ("age", "age < 2"): [0, 1],
    ("age", "age > 118 OR age IS NULL"): [119, 120, NULL],
    ("age", "age % 50 = 0"): [0, 50, 100],
    ("age", "age > 118.5"): [119, 120],
    # conditions on the expression of a bin
    ("age // 10", "age // 10 IN (2, 3)"): [2, 3],
    ("age // 10", "age // 10 = 2 OR age // 10 > 11"): [2, 12],
    ("age // 10", "NOT (age // 10 < 11)"): [11, 12],
    ("DAYNAME(day)", "DAYNAME(day) IN ('Monday', 'Sunday')"): ["Monday", "Sunday"],
    (BANDS, f"{BANDS} <> 'adult'"): ["child", "old"],
    # conditions on the column of a bin
    ("age // 10", "age BETWEEN 20 AND 39"): [2, 3],
    ("age // 10", "age BETWEEN 25 AND 39 AND age <> 30"): [2, 3],
    ("age // 10", "age < 20 OR age >= 100"): [0, 1, 10, 11, 12],
    ("age // 10", "NOT (age >= 20 AND age < 100)"): [0, 1, 10, 11, 12],
    ("age // 10", "age IN (25, 47)"): [2, 4],
    ("age // 10", "age = 25 OR kind = 'x'"): [*range(13), NULL],
    ("age // 10", "age > 115"): [11, 12],  # 12 also of 129, which bounds do not forbid
    ("age // 10", "age > 120"): [12],
    ("FLOOR(charge / 10)", "charge BETWEEN 15 AND 34.5"): [1, 2, 3],
    (BANDS, "age >= 65"): ["old"],
    (BANDS, "age >= 18"): ["adult", "old"],
    (BANDS, "age IS NULL"): ["old"],
    (BANDS, "age < 18"): ["child"],
    (BUCKETS, "charge >= 25 AND charge < 50"): [2],
    (BUCKETS, "charge > 100"): [5],
    ("DATE_TRUNC('month', day)", SPRING): MONTHS,
    ("DATE_TRUNC('month', day)", "YEAR(day) = 2025 AND MONTH(day) = 3"): [dt.date(2025, m, 1) for m in range(1, 13)],
    ("MONTH(day)", SPRING): [3, 4, 5],
    ("YEAR(day)", "day >= DATE '2025-03-01'"): [2025],
    ("DAYNAME(day)", "day = DATE '2025-03-03'"): ["Monday"],
    ("DATE_TRUNC('month', seen)", "CAST(seen AS DATE) BETWEEN DATE '2025-03-01' AND DATE '2025-05-31'"): MONTHS,
    ("HOUR(seen)", "seen > TIMESTAMP '2025-01-01 22:00:00'"): list(range(24)),
    ("age > 30", "age > 40"): [True],
    ("charge > 30", "charge > 20 AND charge <= 30"): [False],
    # NULL that is impossible, or excluded
    ("flag", ""): [False, True, NULL],
    ("flag", "flag IS NOT NULL"): [False, True],
    ("flag", "flag"): [True],
    ("flag", "NOT flag"): [False],
    ("flag", "flag OR flag IS NULL"): [True, NULL],
    ("flag IS TRUE", ""): [False, True],
    ("COALESCE(flag, FALSE)", ""): [False, True],
    ("age // 50", ""): [0, 1, 2, NULL],
    ("age // 50", "age IS NOT NULL"): [0, 1, 2],
    ("age // 50", "age <> 7"): [0, 1, 2],
    ("age // 50", "NOT age = 7"): [0, 1, 2],
    ("age // 50", "age <> 7 OR age IS NULL"): [0, 1, 2, NULL],
    ("age // 50", "(age = 7) IS NULL"): [NULL],
    ("age // 50", "kind IS NOT NULL"): [0, 1, 2, NULL],
    ("COALESCE(age, 0) // 50", ""): [0, 1, 2],
    ("MONTH(day)", "day IS NOT NULL"): list(range(1, 13)),
    ("QUARTER(day)", "day > DATE '2020-01-01'"): [1, 2, 3, 4],
    (BUCKETS, "charge IS NOT NULL"): [0, 1, 2, 3, 4, 5],
    (OPEN, "age >= 18"): ["adult", NULL],
    (OPEN, "age < 65"): ["child", "adult"],
    ("age > 30", "age > 20"): [False, True],
    ("ROUND(charge)", "charge > 98"): [98, 99, 100, NULL],  # 1e300 is no whole number of ours
    ("DATE_TRUNC('week', day)", "day = DATE '2025-03-03'"): [dt.date(2025, 3, 3)],
}


def test_the_groups_that_are_left() -> None:
    def check(case: tuple[str, str]) -> None:
        assert groups(asked(*case)) == EXPECTED[case]

    try_all(EXPECTED, check)


def test_combinations_of_keys() -> None:
    """A condition on several keys leaves out what no row can have together."""
    both = "SELECT ward, sex, COUNT(*) AS n FROM visits WHERE {} GROUP BY ward, sex"
    found = {
        "ward = 'A' OR sex = 'f'": [("A", "f"), ("A", "m"), ("B", "f"), ("C", "f")],
        "ward = 'A' AND sex = 'f'": [("A", "f")],
        "(ward = 'A') = (sex = 'f')": [("A", "f"), ("B", "m"), ("C", "m")],
        "ward <> 'A'": [("B", "f"), ("B", "m"), ("C", "f"), ("C", "m")],
    }
    for where, expected in found.items():
        assert groups(parse(both.format(where), {"visits": schema()})) == expected


def test_groupings_by_their_own_keys() -> None:
    sql = "SELECT ward, sex, COUNT(*) AS n FROM visits WHERE ward <> 'A' OR sex = 'f' GROUP BY CUBE (ward, sex)"
    program = choose(parse(sql, {"visits": schema()}), schema(), epsilon=Fraction(1), salt="salt")
    shown = [one.reading.public_keys for one in program.groupings]
    assert [None if keys is None else len(keys) for keys in shown] == [5, 3, 2, None]
    assert (program.contribution.groups, program.contribution.overlap) == (5 + 3 + 2 + 1, 5 + 3 + 2 + 1)


SOURCES = {
    "(SELECT ward, age FROM visits WHERE ward <> 'B') AS t": ["A", "C"],
    "(SELECT ward, age FROM (SELECT * FROM visits WHERE ward <> 'B') AS u WHERE age > 3 AND ward <> 'C') AS t": ["A"],
    "(SELECT LOWER(ward) AS low, ward FROM visits) AS t WHERE low = 'c'": ["C"],
    "(SELECT kind AS age, ward FROM visits) AS t WHERE age = 'A'": ["A", "B", "C"],
    "(SELECT kind AS ward2, ward FROM visits WHERE kind = 'A') AS t WHERE ward2 <> 'B'": ["A", "B", "C"],
    "(SELECT ward AS kind, kind AS ward2, ward FROM visits) AS t WHERE kind = 'A' AND ward2 = 'B'": ["A"],
}


def test_conditions_inside_count_too() -> None:
    """Columns mean what the SELECT that makes them says, whatever they are called."""
    for source, expected in SOURCES.items():
        sql = f"SELECT ward, COUNT(*) AS n FROM {source} GROUP BY ward"
        question = parse(sql, {"visits": schema()})
        keys = reachable(question, (("A",), ("B",), ("C",)))
        assert [key for (key,) in keys] == expected, source


def test_numbers_of_rows_are_never_missing() -> None:
    inner = "(SELECT patient, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY patient) AS t"
    for key, expected in {"n > 3": [False, True], "s > 3": [False, True, NULL]}.items():
        sql = f"SELECT {key} AS k, COUNT(*) AS c FROM {inner} GROUP BY 1"
        question = parse(sql, {"visits": schema()})
        assert [k for (k,) in reachable(question, ((False,), (True,), (NULL,)))] == expected


def test_earlier_editions_show_every_group() -> None:
    """A release that is kept has the groups that it was made with."""
    question = asked("ward", "ward = 'A'")
    for edition in ReleaseFormat:
        program = choose(question, schema(), epsilon=Fraction(1), salt="salt", edition=edition)
        assert len(program.reading.public_keys or ()) == (1 if edition >= ReleaseFormat.UNCUT else 3)


def test_too_much_to_try_leaves_all_groups() -> None:
    """Long lists of conditions are not worth the time: their groups stay, or are tried one by one."""
    many = ", ".join(str(2 * n) for n in range(reachable_groups.MOST_POINTS + 1))
    assert groups(asked("age // 10", f"age IN ({many})")) == [*range(13), NULL]
    assert groups(asked("age", f"age IN ({many})"))[:3] == [0, 2, 4]


# ------------------------------------------------------------------------------------- nothing is lost, whatever it is

SETTING = Setting(unit=True, text_ids=False, delta=True, selects=True)
MOMENTS = (dt.datetime(2024, 2, 29, 12, 30), dt.datetime.min, dt.datetime(1969, 12, 31, 23, 59, 59, 500000))
POOL: dict[Type, tuple[Any, ...]] = {
    Type.INT: (NULL, 0, 1, 2, 3, -3, 7, 9, 10, 39, 40, 41, 120, 121, -(2**63), 2**63 - 1),
    Type.FLOAT: (NULL, 0.0, 0.5, -1.5, 2.25, 99.5, 100.0, 1000.0, 1e300, -1e-300, 1.7976931348623157e308, -0.0),
    Type.TEXT: (NULL, "", "A", "B", "C", "b", " a ", "fever", "12", "-0.5", "2024-02-29", "%", "é李", "Z"),
    Type.DATE: (NULL, dt.date(2024, 2, 29), dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(2025, 7, 1)),
    Type.TIMESTAMP: (NULL, *MOMENTS, dt.datetime.max, dt.datetime(2025, 7, 1)),
    Type.BOOL: (NULL, False, True),
}


def row(draw: Draw, types: Mapping[str, Type]) -> dict[str, Any]:
    return {name: draw.one(POOL[kind]) for name, kind in types.items()}


KEYS = (
    *("ward", "age", "flag", "age // 10", "age % 7", BANDS, OPEN, BUCKETS, "MONTH(day)", "DATE_TRUNC('month', day)"),
    *("COALESCE(age, 7) // 10", "charge > 2.25", "FLOOR(charge / 10)", "CASE WHEN flag THEN ward ELSE 'none' END"),
    *("age > 40 AND flag", "DATE_TRUNC('week', seen)", "CASE WHEN age > 40 THEN age // 10 END", "HOUR(seen)"),
)
ATOMS = (
    *(
        "age {o} {n}",
        "age {o} {n}",
        "age IN ({n}, {n}, {n})",
        "age BETWEEN {n} AND {n}",
        "age IS NULL",
        "age // 10 = {n}",
    ),
    *(
        "age + 1 {o} {n}",
        "age % 7 = {n}",
        "(age {o} {n}) IS NULL",
        "COALESCE(age, {n}) {o} {n}",
        "NULLIF(age, {n}) = {n}",
    ),
    *("ward = {t}", "ward <> {t}", "ward IN ({t}, {t})", "ward IS NOT NULL", "LOWER(ward) = 'a'", "ward {o} {t}"),
    *(
        "charge {o} {f}",
        "charge BETWEEN {f} AND {f}",
        "charge * 2 {o} {f}",
        "charge IS NOT NULL",
        "flag",
        "flag IS NULL",
    ),
    *(
        "day {o} {d}",
        "day IN ({d}, {d})",
        "YEAR(day) = 2024",
        "day IS NULL",
        "CAST(seen AS DATE) {o} {d}",
        "kind = {t}",
    ),
    *("CASE WHEN age {o} {n} THEN ward = {t} ELSE flag END", "COALESCE(flag, age {o} {n})", "age = charge"),
)
LITERALS: dict[str, tuple[str, ...]] = {
    "o": ("=", "<>", "<", "<=", ">", ">="),
    "n": ("0", "1", "3", "7", "9", "10", "39", "40", "120", "13", "-3"),
    "f": ("0", "0.5", "2.25", "99.5", "100", "1e300"),
    "t": ("'A'", "'B'", "'C'", "'Z'", "''"),
    "d": ("DATE '2024-02-29'", "DATE '2024-03-01'", "DATE '2025-07-01'", "DATE '0001-01-01'"),
}


def condition(draw: Draw, depth: int) -> str:
    """A random condition on the columns of keys, and on others."""
    if depth == 0 or draw.chance(30):
        return re.sub(r"\{(\w)\}", lambda place: draw.one(LITERALS[place[1]]), draw.one(ATOMS))
    form = draw.one(("({} AND {})", "({} OR {})", "(NOT {})"))
    return form.format(*(condition(draw, depth - 1) for _ in range(form.count("{}"))))


def check_nothing_is_lost(seeds: Sequence[int], rows: int = 60) -> int:
    """A row whose condition is TRUE, and whose key is listed, is in a group that is shown; how many were left out."""
    removed = 0
    for seed in seeds:
        draw = Draw(seed)
        question = asked(draw.one(KEYS), condition(draw, 3))
        listed, where = public_keys(question, schema()), question.where
        assert listed is not None
        assert where is not None
        left, known = set(reachable(question, listed)), set(listed)
        removed += len(known) - len(left)
        for _ in range(rows):
            made = row(draw, TYPES)
            key = tuple(evaluate(key.expression, made) for key in question.keys)
            assert evaluate(where, made) is not True or key not in known or key in left, (question, made)
    return removed


@pytest.mark.ci
def test_no_row_is_lost() -> None:
    """Any row that there may be, beyond bounds and keys, with NULL wherever it can be."""
    assert check_nothing_is_lost(range(rounds(200, 30))) > rounds(300, 40)  # groups are left out


@cache
def fuzzed() -> TableSchema:
    more: Any = {"bounds": {"age": (0, 120)}, "keys": {}, "unit": "patient", "version": "1"}
    return declare("visits", FUZZED, limits=Limits(), neighbours=Neighbours.REPLACE, **more)


@pytest.mark.ci
def test_sets_hold_the_values_of_their_rows() -> None:
    """Random expressions on random sets of values: every value of every row is in the set."""
    for seed in range(150):
        draw = Draw(seed)
        texts = Texts(draw, of_visits(SETTING))
        try:
            question = parse(f"SELECT {texts.key()} AS k, COUNT(*) AS n FROM visits GROUP BY 1", {"visits": fuzzed()})
        except UnsupportedQuery:
            continue
        made = [row(draw, FUZZED) for _ in range(12)]
        sets = {name: around([one[name] for one in made]) for name in FUZZED}
        known = {name: found for name, found in sets.items() if draw.chance(70)}
        found = possible(question.keys[0].expression, known)
        for one in made:
            value = evaluate(question.keys[0].expression, one)
            assert found.holds(value), (question.keys[0], one, value)


def around(values: Sequence[Any]) -> ValueSet:
    """The values, or all that lie between them."""
    present = [value for value in values if value is not None]
    if not present or isinstance(present[0], bool | str):
        return ValueSet.of(values)
    wide = ValueSet.between(min(present), max(present))
    return ValueSet(wide.few, wide.span, nullable=None in values)


# -------------------------------------------------------------------------------------------------------------- mutants


def null_is_never_possible(patch: pytest.MonkeyPatch) -> None:
    """Of columns of which nothing is known."""
    right = ValueSet.any_of
    patch.setattr(ValueSet, "any_of", lambda kind: without_null(right(kind)))


def without_null(found: ValueSet) -> ValueSet:
    return ValueSet(found.few, found.span, nullable=False)


def pieces_without_null(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reachable_groups, "_present", lambda _: frozenset(TYPES))


def what_is_unknown_is_false(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ValueSet, "any_of", lambda kind: ValueSet.of([False] if kind is Type.BOOL else [NULL]))


def bounds_are_facts(patch: pytest.MonkeyPatch) -> None:
    _, _, before, after = reachable_groups._LINES[Type.INT]
    patch.setitem(reachable_groups._LINES, Type.INT, (0, 120, before, after))


def keys_are_never_null(patch: pytest.MonkeyPatch) -> None:
    right = value_sets.possible
    patch.setattr(reachable_groups, "possible", lambda *given: without_null(right(*given)))


def overflow_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(value_sets, "_may_be_null", lambda _, parts, __: any(part.nullable for part in parts))


def one_way_of_or(patch: pytest.MonkeyPatch) -> None:
    """Each side of OR is taken for a condition by itself."""
    right = reachable_groups._parts

    def parts(condition: Any) -> list[Any]:
        is_or = isinstance(condition, FunctionCall) and condition.function == "or"
        return [each for part in condition.arguments for each in parts(part)] if is_or else right(condition)

    patch.setattr(reachable_groups, "_parts", parts)


def columns_by_name_alone(patch: pytest.MonkeyPatch) -> None:
    """A column that a SELECT computes is taken for the one of the same name that the table has."""
    patch.setattr(reachable_groups, "_looked_through", lambda _: lambda expression: expression)


SWAPPED = "(SELECT kind AS ward2, CASE WHEN ward = 'A' THEN 'B' ELSE 'C' END AS ward FROM visits WHERE ward = 'A') AS t"
MUTANTS: list[tuple[Any, str, str, list[Any]]] = [
    (null_is_never_possible, "ward", "kind IS NULL OR ward = 'A'", ["A", "B", "C"]),
    (pieces_without_null, "age // 50", "age <> 7 OR age IS NULL", [0, 1, 2, NULL]),
    (what_is_unknown_is_false, "ward", "ward = 'A' OR flag", ["A", "B", "C"]),
    (bounds_are_facts, "age // 10", "age > 120 OR age = 7", [0, 12]),
    (keys_are_never_null, "age // 50", "age <> 7 OR age IS NULL", [0, 1, 2, NULL]),
    (overflow_is_forgotten, "ROUND(charge)", "charge > 98", [98, 99, 100, NULL]),
    (one_way_of_or, "ward", "ward = 'A' OR ward = 'B'", ["A", "B"]),
]


@pytest.mark.parametrize(("mutant", "key", "where", "expected"), MUTANTS)
def test_mutants_lose_groups(
    monkeypatch: pytest.MonkeyPatch, mutant: Any, key: str, where: str, expected: list[Any]
) -> None:
    """Every group that is expected here has a row that can be in it."""
    assert groups(asked(key, where)) == expected
    reachable_groups._reachable.cache_clear()
    mutant(monkeypatch)
    found = groups(asked(key, where))
    reachable_groups._reachable.cache_clear()
    assert set(expected) - set(found) or (mutant is one_way_of_or and len(found) == 3)


def test_mutant_columns_by_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    question = parse(f"SELECT ward, COUNT(*) AS n FROM {SWAPPED} GROUP BY ward", {"visits": schema()})
    listed = (("A",), ("B",), ("C",))
    assert reachable(question, listed) == (("B",),)
    reachable_groups._reachable.cache_clear()
    columns_by_name_alone(monkeypatch)
    assert reachable(question, listed) == (("A",),)
    reachable_groups._reachable.cache_clear()
