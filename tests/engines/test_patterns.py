"""Patterns on engines: RE2 finds what our matcher finds, in patterns of every kind and in the largest ones."""

from __future__ import annotations

import pytest
from hypothesis import given

from discreet.engines import DuckDB, Memory
from discreet.plan.expressions.pattern_grammar import LARGEST, MOST_TIMES, PatternError, parse
from discreet.plan.expressions.patterns import groups, keep_one_group, remove_groups, size, write_pattern
from tests.engines.tables import PRINTERS, B, Bench, N, T, arrow, call, col, lit, sides, value_of
from tests.open_groups import unsealed
from tests.plan.test_patterns import TEXTS, patterns

ROWS = [{"id": i, "a": text} for i, text in enumerate([*TEXTS, None, "🤦🏼‍♂️x", "\u2028a", "a\r\nb"])]
COLUMNS = {"id": N, "a": T}


@pytest.fixture(scope="module")
def both() -> tuple[Memory, DuckDB]:
    memory, engine = Memory(), DuckDB(threads=1)
    memory.register("t", ROWS, COLUMNS)
    engine.register("t", arrow(ROWS, COLUMNS), COLUMNS)
    return memory, engine


@given(pattern=patterns())
def test_engines_agree_on_every_pattern(both: tuple[Memory, DuckDB], pattern: str) -> None:
    memory, engine = both
    try:
        tree = parse(pattern)
    except PatternError:
        return
    asked = [call("matches", B, col("a", T), lit(write_pattern(remove_groups(tree)), T))]
    asked += [
        call("extract", T, col("a", T), lit(write_pattern(keep_one_group(tree, i)), T)) for i in range(groups(tree) + 1)
    ]
    for expression in asked:
        assert unsealed(engine.read(value_of(expression))) == unsealed(memory.read(value_of(expression))), pattern


@pytest.mark.parametrize("bench", sides(PRINTERS), indirect=True)
def test_the_largest_patterns_are_compiled(bench: Bench) -> None:
    """Nothing that the grammar takes is too much for an engine: sets of many ranges, and long repetitions."""
    bench.load(ROWS, COLUMNS)
    many = "[" + "".join(chr(0x1000 + 2 * i) for i in range(300)) + "]"
    long = [f"(?:a{{{MOST_TIMES}}}b)", f".{{{MOST_TIMES}}}", "(?:[^a][^b]){200}"]
    for pattern in (f"{many}{{6}}", f"(?:{many}|b)*a", *long):
        tree = parse(pattern)
        assert size(tree) <= LARGEST
        bench.agreed(value_of(call("matches", B, col("a", T), lit(write_pattern(tree), T))))
        bench.agreed(value_of(call("extract", T, col("a", T), lit(write_pattern(keep_one_group(tree, 0)), T))))
