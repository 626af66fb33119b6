"""PostgreSQL computes as all engines do where it would raise, or has rules of its own: doubles, patterns, keys."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import Memory
from discreet.engines.postgres import Postgres
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.engines.postgres.posix_patterns import is_certain
from discreet.engines.sql.dialect import Templates
from discreet.errors import QueryFailed, UnsupportedQuery
from discreet.plan.expressions.functions import Template
from discreet.plan.expressions.pattern_grammar import PatternError, parse
from discreet.plan.expressions.patterns import groups, keep_one_group, remove_groups, write_pattern
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.postgres_tables import PostgresTables, register, storable
from tests.engines.tables import EDGES, B, F, N, T, bounding, call, col, is_absent, lit, stored, value_of
from tests.engines.test_functions import COLUMNS, edge_rows, expressions
from tests.engines.test_patterns import ROWS as TEXT_ROWS
from tests.open_groups import unsealed
from tests.plan.test_patterns import patterns

# ------------------------------------------------------------------------------------------------- doubles and patterns


def near_the_edges() -> list[tuple[float, float]]:
    """Factors whose products are at half of the least double and at the end of doubles, and those next to them."""
    tiny, huge = math.ldexp(1.0, -538), math.ldexp(1.0, 511)
    third = 1.0 + 2**-52
    pairs = [
        (tiny, math.ldexp(1.0, -537)),
        (tiny * third, math.ldexp(1.0, -537) / third),
        (huge, 2 * huge),
        (huge, 4 * huge),
    ]
    pairs += [(tiny * (1 + i * 2**-52), math.ldexp(1.0, -537) * (1 - i * 2**-53)) for i in range(1, 40)]
    pairs += [(huge * (2 - i * 2**-52), 2 * huge * (2 - i * 2**-52)) for i in range(40)]
    pairs += [
        (5e-324, 0.5),
        (5e-324, 0.5000000000000001),
        (5e-324, math.nextafter(0.5, 0)),
        (1e308, 1e-308),
        (3e-324, 3.0),
    ]
    return pairs + [(-a, b) for a, b in pairs]


def test_arithmetic_at_the_ends_of_doubles(postgres_tables: PostgresTables) -> None:
    pairs = near_the_edges()
    pairs += [(a, 1 / b) for a, b in pairs if b and math.isfinite(1 / b)]
    rows = [{"id": i, "a": a, "b": b} for i, (a, b) in enumerate(pairs)]
    columns = {"id": N, "a": F, "b": F}
    memory = Memory()
    memory.register("t", rows, columns)
    with register(postgres_tables, postgres_tables.give(rows, columns), columns) as made:
        for name in ("add", "subtract", "multiply", "divide", "power"):
            made_of = call(name, F, col("a", F), col("b", F))
            for expression in (value_of(made_of), _signed(made_of)):
                assert unsealed(made.read(expression)) == unsealed(memory.read(expression)), name


class Plain(PostgresDialect):
    """Doubles as PostgreSQL computes them."""

    functions: ClassVar[Templates] = {
        **PostgresDialect.functions,
        ("add", F): Template("{0} + {1}"),
        ("multiply", F): Template("{0} * {1}"),
        "divide": Template("CASE WHEN {1} <> 0 THEN {0} / {1} END", repeats=(1,)),
        "power": Template("power({0}, {1})", gridded=True),
    }


def test_mutant_doubles_as_they_are(postgres_tables: PostgresTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its conditions each of them fails on some row, and the question with it."""
    monkeypatch.setattr(Postgres, "dialect", Plain())
    rows = [{"id": i, "a": a, "b": b} for i, (a, b) in enumerate([(1e308, 1e308), (1e-308, 1e-308), (1e308, 1e-308)])]
    columns = {"id": N, "a": F, "b": F}
    with register(postgres_tables, postgres_tables.give(rows, columns), columns) as made:
        for name in ("add", "multiply", "divide", "power"):
            with pytest.raises(QueryFailed):
                unsealed(made.read(value_of(call(name, F, col("a", F), col("b", F)))))


def _signed(expression: Any) -> Reading:
    """Whether a number is above, or below zero: its grid would not tell 5e-324 from it."""
    return value_of(call("greater", B, call("absolute", F, expression), lit(0.0, F)))


def test_texts_at_the_ends_of_doubles(postgres_tables: PostgresTables) -> None:
    half, end = 5**1075, 2**1024 - 2**970
    texts = [
        f"{half}e-1075",
        f"{half + 1}e-1075",
        f"{half}1e-1076",
        f"{half - 1}e-1075",
        str(end),
        str(end - 1),
        f"{end}.1",
    ]
    texts += [
        f"0.{'0' * 400}1e400",
        f"1{'0' * 400}e-400",
        "0e99999999999999999999",
        f"1e{'0' * 30}5",
        "1e-99999999999999999999",
    ]
    texts += [
        f"{'1' * 900}e-850",
        f"-{'0' * 900}.5",
        "00",
        "-.0e5",
        f"0.1{'0' * 900}1",
        "1e400000000000000000000",
        "+.5E+1",
    ]
    rows = [{"id": i, "a": text} for i, text in enumerate([*texts, *(f"-{text}" for text in texts)])]
    memory = Memory()
    memory.register("t", rows, {"id": N, "a": T})
    asked = call("to_float", F, col("a", T))
    with register(postgres_tables, postgres_tables.give(rows, {"id": N, "a": T}), {"id": N, "a": T}) as made:
        for reading in (value_of(asked), _signed(asked)):
            assert unsealed(made.read(reading)) == unsealed(memory.read(reading))


Pair = tuple[Memory, Postgres]


@pytest.fixture(scope="module")
def of_texts(postgres_tables: PostgresTables) -> Pair:
    columns = {"id": N, "a": T}
    more = ("ab,c,d", "x12-34", "2026-11-16", "abc12ab", "aabbcc", "3.14", "b1 b22", "xxy", "ababc", "abcd", "aaab")
    rows = [{**row, "a": storable(row["a"])} for row in TEXT_ROWS]
    rows += [{"id": -i, "a": text} for i, text in enumerate(more, start=1)]
    memory = Memory()
    memory.register("t", rows, columns)
    return memory, register(postgres_tables, postgres_tables.give(rows, columns), columns)


def is_taken(text: str) -> bool:
    """Whether a pattern with one group left is still one: without the others, \\b may be next to another letter."""
    try:
        return is_certain(text)
    except PatternError:
        return False


@given(pattern=patterns())
def test_patterns_are_found_where_others_find_them(of_texts: Pair, pattern: str) -> None:
    memory, made = of_texts
    try:
        tree = parse(pattern)
    except PatternError:
        return
    asked = [call("matches", B, col("a", T), lit(write_pattern(remove_groups(tree)), T))]
    texts = [write_pattern(keep_one_group(tree, number)) for number in range(groups(tree) + 1)]
    asked += [call("extract", T, col("a", T), lit(text, T)) for text in texts if is_taken(text)]
    for each in map(value_of, asked):
        assert unsealed(made.read(each)) == unsealed(memory.read(each)), pattern


CERTAIN = (
    *(r"\A([^,]*),", r"([a-z]+)[0-9]+", r"(\d{2,4})-(\d\d)", r"(a|b[0-9]+)\b", r"^(\w+)$", r"(a)?b", r"(?:a|b){2}(c*)"),
    *(r"([0-9]+)(?:[.]([0-9]*))?", r"(\b)a", "a()b", r"((?:ab)+)c?", r"(?:[ab]{3}){2}", "(a)?(b)?(c)?$"),
)
UNSURE = (
    *("a?(ab)?", "(a|ab)(c|bcd)", "(.*?),", "(.*),", "a+?", "(|a)", "(a)*", "(?:a|(b))+", "(a*)ab", "(?:|a)b*"),
    *("(a|a)b", "(?:(?:a+){2})", "(a{1,2})a", "(x*)(?:x|y)"),
)


def test_groups_are_found_where_others_find_them(of_texts: Pair) -> None:
    """What is certain is computed, and the rest refused; of that, PostgreSQL would find some in other places."""
    memory, made = of_texts
    for pattern in CERTAIN:
        tree = parse(pattern)
        for text in (write_pattern(keep_one_group(tree, number)) for number in range(groups(tree) + 1)):
            asked = call("extract", T, col("a", T), lit(text, T))
            made.check({"t"}, (asked,))
            assert unsealed(made.read(value_of(asked))) == unsealed(memory.read(value_of(asked))), pattern
    differ = 0
    for pattern in UNSURE:
        tree = parse(pattern)
        texts = [write_pattern(keep_one_group(tree, number)) for number in range(groups(tree) + 1)]
        assert not all(map(is_certain, texts)), pattern
        for asked in (call("extract", T, col("a", T), lit(text, T)) for text in texts if not is_certain(text)):
            with pytest.raises(UnsupportedQuery, match="PostgreSQL then takes the longest"):
                made.check({"t"}, (asked,))
            differ += unsealed(made.read(value_of(asked))) != unsealed(memory.read(value_of(asked)))
    assert differ >= 5  # the refusal has reasons


def test_what_it_cannot_compute_is_refused_before_anybody_pays(of_texts: Pair) -> None:
    _, made = of_texts
    for wrong in (call("extract", T, col("a", T), lit("(a|ab)", T)), call("equal", B, col("a", T), lit("a\0", T))):
        with pytest.raises(UnsupportedQuery):
            made.check({"t"}, (call("is_null", B, wrong),))
    made.check({"t"}, (call("length", N, col("a", T)),))


def test_public_keys_that_it_cannot_hold_are_groups_without_rows(postgres_tables: PostgresTables) -> None:
    rows = [{"u": i % 3, "k": text} for i, text in enumerate(map(storable, EDGES[T]))]
    columns = {"u": N, "k": T}
    memory = Memory()
    memory.register("t", rows, columns)
    keys = tuple((text,) for text in dict.fromkeys(EDGES[T]))
    asked = Reading(
        table="t", keys=(col("k", T),), public_keys=keys, bounding=bounding(2, 1), statistics=(Statistic(kind="units"),)
    )
    with register(postgres_tables, postgres_tables.give(rows, columns), columns) as made:
        assert unsealed(made.read(asked)) == unsealed(memory.read(asked))


def test_decimals_of_exact_sums_become_whole_numbers(postgres_tables: PostgresTables) -> None:
    source = postgres_tables.table({"id": "bigint"}, [{"id": (1 << 62) - i} for i in range(100)])
    asked = Reading(
        table="t", statistics=(Statistic(kind="sum", argument=col("id", N), exponent=0, low=-(1 << 62), high=1 << 62),)
    )
    with register(postgres_tables, source, {"id": N}) as made:
        (found,) = unsealed(made.read(asked)).values()
        assert found == (100 * (1 << 62) - 4950,)
        assert type(found[0]) is int


# ---------------------------------------------------------------------------------------------------- whole expressions


@pytest.fixture(scope="module")
def of_edges(postgres_tables: PostgresTables) -> Pair:
    rows = list(map(stored, edge_rows()))
    memory = Memory()
    memory.register("t", rows, COLUMNS)
    return memory, register(postgres_tables, postgres_tables.give(rows, COLUMNS), COLUMNS)


@pytest.mark.ci
@given(data=st.data())
def test_random_expressions_are_total_and_mean_the_same(of_edges: Pair, data: st.DataObject) -> None:
    """Also of literals alone, which PostgreSQL computes before it reads a row."""
    memory, made = of_edges
    for kind in Type:
        reading = value_of(data.draw(expressions(kind, 4)))
        assert is_absent(reading) or unsealed(made.read(reading)) == unsealed(memory.read(reading))
