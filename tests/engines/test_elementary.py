"""Elementary functions on engines: one step apart at most, whatever the row, and the same at every place of a table."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.sql import printer as module
from discreet.noise import SeededBits
from discreet.plan.expressions.functions import Template
from discreet.plan.expressions.functions.elementary import DIGITS, ELEMENTARY
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Reading, Statistic
from tests.effort import some
from tests.engines.tables import EDGES, PRINTERS, Bench, F, N, arrow, call, col, sides, value_of
from tests.open_groups import unsealed

NAMES = sorted(record.name for record in ELEMENTARY)
PAIRS = ("log", "power", "atan2")
GRIDS = (-60, -20)  # steps of which no two numbers of the grid that are at least 2^-28, or 2^12, are the same


def expression(name: str) -> Expression:
    return call(name, F, *(col(f"a{i}", F) for i in range(2 if name in PAIRS else 1)))


def random_values(count: int) -> list[float]:
    """Doubles of the sizes that people's have, of both signs."""
    draws = map(int, SeededBits(18).words(count))
    return [math.ldexp((-1) ** (d & 1) * (1 + (d >> 12) / 2**52), (d >> 1) % 16 - 10) for d in draws]


@pytest.mark.ci
def test_engines_are_one_step_apart_at_most() -> None:
    """Random arguments, each with the next; where results differ they are neighbours on the grid, and few are."""
    values = random_values(1000)
    rows = [{"id": i, "a0": x, "a1": values[i - 1]} for i, x in enumerate(values)]
    columns = {"id": N, "a0": F, "a1": F}
    memory, apart = Memory(), 0
    memory.register("t", rows, columns)
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows, columns), columns)
        for name in NAMES:
            steps = [
                Statistic(kind="sum", argument=expression(name), exponent=grid, low=-(1 << 62), high=1 << 62)
                for grid in GRIDS
            ]
            reading = Reading(table="t", keys=(col("id", N),), statistics=tuple(steps))
            theirs, ours = unsealed(engine.read(reading)), unsealed(memory.read(reading))
            for key in ours.keys() | theirs.keys():
                for one, other in zip(ours[key], theirs[key], strict=True):
                    assert abs(one - other) <= 1 + max(abs(one), abs(other)) / Fraction(1 << (DIGITS - 1)), (name, key)
                apart += ours[key] != theirs[key]
    assert apart <= len(values) * len(NAMES) / 1000  # of libraries that err in the last digit: about one in a million


# ------------------------------------------------------------------------------------------ a row's result is its own

TRIED = [0.1, 0.3, 0.7, 0.9, 1.3, 2.7, 5.1, 17.3, 0.0123, 333.25, -0.4, -2.3]
LAYOUTS = {
    "in a row": "SELECT a0, a1 FROM u ORDER BY i",
    "shuffled": "SELECT a0, a1 FROM u ORDER BY hash(i)",
    "sorted": "SELECT a0, a1 FROM u ORDER BY a0, a1",
    "one alone": "SELECT a0, a1 FROM u WHERE i = 7",
    "few are left": "SELECT a0, a1 FROM u WHERE i % 7 = 3",
    "from the middle": "SELECT a0, a1 FROM u WHERE i > 1111 ORDER BY i",
    "with gaps": "SELECT CASE WHEN i % 3 <> 0 THEN a0 END AS a0, CASE WHEN i % 5 <> 0 THEN a1 END AS a1 FROM u",
    "from a file": "SELECT a0, a1 FROM read_parquet('{file}')",
    "as a constant": "SELECT 0.7::DOUBLE AS a0, 2.7::DOUBLE AS a1 FROM u",
}


Seen = dict[tuple[float, float], set[str]]


def results(connection: duckdb.DuckDBPyConnection, template: Template, layout: str) -> Seen:
    """For each pair of arguments the results at all its places, to the bit."""
    text = template.text.format("a0", "a1")
    sql = f"SELECT DISTINCT a0, a1, {text} FROM ({layout}) WHERE a0 IS NOT NULL AND a1 IS NOT NULL"
    found: Seen = {}
    for one, other, result in connection.execute(sql).fetchall():
        found.setdefault((one, other), set()).add("NULL" if result is None else float(result).hex())
    return found


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_result_depends_on_its_row_alone(tmp_path: Path, threads: int) -> None:
    """A library that computes several rows at once could differ by place, and then one row would move the others."""
    file = tmp_path / "u.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")
        tried = f"list_extract({TRIED}::DOUBLE[], {{}})"
        one, other = (tried.format(f"1 + (i * {step} + i // {by}) % {len(TRIED)}") for step, by in ((5, 97), (7, 61)))
        connection.execute(f"CREATE TABLE u AS SELECT i, {one} AS a0, {other} AS a1 FROM range(20000) AS r(i)")
        connection.execute(f"COPY (SELECT a0, a1 FROM u ORDER BY a0) TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 3000)")
        for name in NAMES:
            seen: Seen = {}
            template = DIALECT.template(name, F)
            for layout in LAYOUTS.values():
                for pair, bits in results(connection, template, layout.format(file=file)).items():
                    seen.setdefault(pair, set()).update(bits)
            assert len(seen) == len(TRIED) ** 2, name
            assert {len(bits) for bits in seen.values()} == {1}, name


# -------------------------------------------------------------------------------------------------------------- mutants


@pytest.mark.parametrize(("slip", "number"), [("SPLITTER", 2.0**20 + 1), ("LARGEST", 1.7e308)])
def test_mutants_are_noticed(monkeypatch: pytest.MonkeyPatch, slip: str, number: float) -> None:
    """Another grid, and results that overflow when they are split."""
    columns = {"id": N, "a0": F}
    rows = [{"id": i, "a0": value} for i, value in enumerate([0.3, 2.0, 700.0])]
    memory, asked = Memory(), value_of(expression("exp"))
    memory.register("t", rows, columns)
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows, columns), columns)
        assert unsealed(engine.read(asked)) == unsealed(memory.read(asked))
        monkeypatch.setattr(module, slip, number)
        assert unsealed(engine.read(asked)) != unsealed(memory.read(asked))


@pytest.mark.parametrize("bench", sides(PRINTERS), indirect=True)
def test_functions_of_functions_are_total(bench: Bench) -> None:
    bench.load([{"id": i, "a0": v, "a1": v} for i, v in enumerate(EDGES[F])], {"id": N, "a0": F, "a1": F})
    for outer in some(NAMES, 4):
        for inner in ("exp", "tan", "ln", "cube_root"):
            argument = call(inner, F, col("a0", F))
            bench.agreed(value_of(call(outer, F, *([argument, col("a1", F)] if outer in PAIRS else [argument]))))
