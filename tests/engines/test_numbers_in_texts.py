"""Numbers that texts write: DuckDB converts more texts than count as numbers, and every short one is tried."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.duckdb import dialect
from discreet.plan.model.readings import Groups, Reading, Statistic
from tests.engines.tables import F, N, T, arrow, col
from tests.open_groups import unsealed

LONG = ["0" * 18 + "5", "0" * 19 + "5", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e308"]
ODD = ["+-5", "-+5", "++5", "1_0", "0x1", "inf", "-inf", "nan", "Infinity", "1e309", "\t5", "5\t", "5\n", " 5 "]
ODD += ["5\u00a0", "\u0665", "5\u00e9", "1d", "5.", ".5", "-.5", "-.", "1e", "1e+", "1e+2", "TRUE", "-0", "-0.0"]
ODD += ["007", "5\v", "\f5", "5\r"]


def texts(length: int) -> list[str]:
    short = ("".join(signs) for n in range(length + 1) for signs in product("1.-+e_ ", repeat=n))
    return [*short, *LONG, *ODD]


def read(engine: Memory | DuckDB, written: list[str]) -> list[Groups]:
    """What each text adds to a sum, if it is read as an INT and as a FLOAT; a text that is no number has no value."""
    found = []
    for kind in (N, F):
        rows: list[dict[str, Any]] = [{"id": i, "x": text} for i, text in enumerate(written)]
        given = rows if isinstance(engine, Memory) else arrow(rows, {"id": N, "x": T})
        engine.register("t", given, {"id": N, "x": kind})
        x = col("x", kind)
        total = Statistic(kind="sum", argument=x, exponent=-3, low=-(1 << 40), high=1 << 40)
        asked = Reading(table="t", keys=(col("id", N),), statistics=(Statistic(kind="values", argument=x), total))
        found.append(unsealed(engine.read(asked)))
    return found


@pytest.mark.parametrize("length", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_short_texts_are_the_numbers_that_the_referee_says(length: int) -> None:
    written = texts(length)
    with DuckDB(threads=1) as engine:
        assert read(engine, written) == read(Memory(), written)


PLAINLY = {
    "a low line passed over": (dialect.DOUBLE_PLAINLY, " AND NOT contains({0}, '_')", ""),
    "a plus before a minus": (dialect.DOUBLE_PLAINLY, "{0} >= '-' AND ", ""),
    "white space at the end": (dialect.DOUBLE_PLAINLY, " AND {0}[-1] >= '.'", ""),
    "whatever is converted": (dialect.WHOLE_PLAINLY, dialect.WHOLE_PLAINLY, "TRUE"),
}


@pytest.mark.parametrize("mistake", PLAINLY)
def test_texts_that_are_read_too_plainly_are_noticed(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    condition, old, new = PLAINLY[mistake]
    assert old in condition
    written = [*ODD, *LONG]
    right = read(Memory(), written)
    with DuckDB(threads=1) as engine:
        assert read(engine, written) == right
        tables: list[Any] = [engine.dialect._templates, engine.dialect.of_trimmed]
        for templates in tables:
            for key, template in list(templates.items()):
                wrong = template.text.replace(condition, condition.replace(old, new))
                monkeypatch.setitem(templates, key, replace(template, text=wrong))
        assert read(engine, written) != right
