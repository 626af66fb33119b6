"""Where most units seem to have one row, others are looked for first; which rows count does not depend on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.duckdb import engine as module
from discreet.engines.duckdb.dialect import DuckDBDialect
from discreet.engines.sql import statement
from discreet.engines.sql.bounded_rows import several
from discreet.engines.sql.printer import Access, PrintedReading
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from tests.engines.tables import EDGES, F, N, T, accessed, arrow, bounding, col
from tests.engines.test_bounding import STATISTICS
from tests.open_groups import unsealed

COLUMNS = {"u": N, "a": N, "b": T, "x": F}
UNITS = 30
ENDS = (0, UNITS - 1)
LAST = (1 << 63) - 1


def rows(units: list[int | None]) -> list[dict[str, Any]]:
    texts = ["p", None, "q"]
    return [
        {"u": unit, "a": None if i % 11 == 0 else i * 5 % 7, "b": texts[i % 3], "x": EDGES[F][i % len(EDGES[F])]}
        for i, unit in enumerate(units)
    ]


EACH = list(range(UNITS))
CROWDS: dict[str, list[int | None]] = {
    "each once": [*EACH],
    "in another order, some absent": [i * 7 % UNITS for i in range(UNITS - 5)],
    "one twice": [*EACH, 4],
    "one instead of another": [*EACH[1:], 5],
    "some of nobody": [*EACH, None, None],
    "nobody's": [None, None, None],
    "one three times in a group": [*EACH, None, None, 4, *[None] * 6, 4],
    "one often": [*EACH, *[3] * 40],
    "beyond the ends": [*EACH, LAST, -LAST - 1, -1, UNITS],
    "beyond the ends, twice": [*EACH[2:], LAST, LAST],
    "all beyond the ends": [100, 100, 200],
    "most several times": [i % 9 for i in range(60)],
}
LIMITS = [bounding(1, 1), bounding(3, 2)]
KEYS = (col("a", N),)
PUBLIC = ((1,), (None,), (5,), (1000,))


def readings(limits: ContributionBounding) -> list[Reading]:
    """With and without terms, and units, and what no sum tells; public keys are some of those that there are."""
    some, units, terms = STATISTICS[:1], STATISTICS[:2], (STATISTICS[0], *STATISTICS[2:4])
    return [
        *(Reading(table="t", keys=KEYS, bounding=limits, statistics=asked) for asked in (some, units, terms)),
        Reading(table="t", keys=(), bounding=limits, statistics=STATISTICS[:4]),
        Reading(table="t", keys=(col("b", T), *KEYS), bounding=limits, statistics=STATISTICS),
        Reading(table="t", keys=KEYS, public_keys=PUBLIC, bounding=limits, statistics=STATISTICS[:4]),
    ]


def differences(units: list[int | None], ends: tuple[int, int] = ENDS) -> list[Reading]:
    """The readings that come out otherwise than the referee says."""
    memory, engine = Memory(), DuckDB(threads=1)
    memory.register("t", rows(units), COLUMNS)
    engine.register("t", arrow(rows(units), COLUMNS), COLUMNS)
    asked = [reading for limits in LIMITS for reading in readings(limits)]
    other = accessed(engine, Access(is_kept=True, ends=ends))
    found = [reading for reading in asked if unsealed(other.read(reading)) != unsealed(memory.read(reading))]
    engine.close()
    return found


@pytest.mark.parametrize("crowd", CROWDS)
def test_the_same_rows_count(crowd: str) -> None:
    assert not differences(CROWDS[crowd])


@pytest.mark.parametrize(("least", "most"), [(-LAST - 1, -LAST + 20), (LAST - 20, LAST)])
def test_the_ends_of_all_numbers(least: int, most: int) -> None:
    assert not differences([*range(least, most + 1), least, most, 0], (least, most))


def nobody_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DuckDBDialect, "count_between", "COUNT({0})")


def those_beyond_the_ends_left_out(patch: pytest.MonkeyPatch) -> None:
    honest = DuckDBDialect.count_between
    beyond = "COUNT(CASE WHEN {0} BETWEEN {1} AND {2} THEN NULL ELSE 1 END)"
    patch.setattr(DuckDBDialect, "count_between", f"{honest} + {beyond}")


def replaced(old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    def mutate(patch: pytest.MonkeyPatch) -> None:
        def mistaken(parts: PrintedReading, limits: ContributionBounding) -> str | None:
            made = several(parts, limits)
            return None if made is None else made.replace(old, new)

        patch.setattr(statement, "several", mistaken)

    return mutate


MUTANTS = {
    "nobody looked for": nobody_looked_for,
    "those beyond the ends taken for different": those_beyond_the_ends_left_out,
    "one row more": replaced("COUNT(*) > 1", "COUNT(*) > 2"),
    "one row more, of several": replaced("COUNT(*) > 2", "COUNT(*) > 3"),
}


@pytest.mark.ci
@pytest.mark.parametrize("mistake", MUTANTS)
def test_the_referee_notices(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    MUTANTS[mistake](monkeypatch)
    assert any(
        differences(CROWDS[crowd]) for crowd in ("one twice", "one three times in a group", "beyond the ends, twice")
    )


ROWS = 20_000
IDS: dict[str, tuple[list[int | None], tuple[int, int] | None]] = {
    "numbers of rows": (list(range(5, ROWS + 5)), (5, ROWS + 4)),
    "one twice": ([*range(ROWS - 1), 7], (0, ROWS - 2)),
    "one missing": ([None, *range(1, ROWS)], (1, ROWS - 1)),
    "rows of people": ([i // 2 for i in range(ROWS)], None),
    "far apart": ([i * 5 for i in range(ROWS)], None),
    "ends of all numbers": ([LAST if i % 2 else -LAST - 1 for i in range(ROWS)], None),
    "none": ([None] * ROWS, None),
}


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("in_file", [True, False], ids=["parquet", "frame"])
def test_numbers_of_rows_are_told_by_their_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: str, *, in_file: bool
) -> None:
    monkeypatch.setattr(module, "_bits", lambda _source: 20 if in_file else module._FEW)  # as if the file were longer
    units, ends = IDS[ids]
    table = pa.table({"u": pa.array(units, pa.int64()), "a": [i * 7919 % 40 for i in range(ROWS)]})
    pq.write_table(table, tmp_path / "t.parquet")
    asked = Reading(
        table="t", keys=(col("a", N),), bounding=bounding(1, 1), statistics=(Statistic(kind="rows"), STATISTICS[1])
    )
    memory = Memory()
    memory.register("t", table.to_pylist(), {"u": N, "a": N})
    with DuckDB(threads=1) as engine:
        engine.register("t", tmp_path / "t.parquet" if in_file else table, {"u": N, "a": N})
        assert engine._access(asked, engine._cursor()).ends == ends
        assert unsealed(engine.read(asked)) == unsealed(memory.read(asked))
