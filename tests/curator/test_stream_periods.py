"""Which questions have a period that an id tells: by where its columns come from, never by what they are called."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.curator.streams import stream_plan
from discreet.curator.streams.curated_stream import CuratedStream
from discreet.engines import Memory
from discreet.errors import InvalidParameter, StreamError, UnsupportedQuery
from discreet.plan.model.nodes import columns
from discreet.privacy import Budget
from tests.cases import every
from tests.curator.stream_worlds import share_of_paid
from tests.effort import some

START = dt.date(2026, 1, 1)
TYPES = {
    "patient": "int",
    "day": "date",
    "at": "timestamp",
    "turn": "int",
    "code": "text",
    "flag": "bool",
    "other": "date",
}
PARTS = tuple(TYPES)[:6]
OTHERS = {
    "who": "int",
    "when_": "date",
    "then": "timestamp",
    "nth": "int",
    "word": "text",
    "yes": "bool",
    "day": "date",
}
SAME = " AND ".join(f"v.{one} = s.{two}" for one, two in zip(PARTS, OTHERS, strict=False))


def declared(unit: Any = PARTS, rows: list[dict[str, Any]] | None = None, ledger: Any = ":memory:") -> Curator:
    curator = Curator(ledger, engine=Memory())
    how: dict[str, Any] = {"account": "people", "max_rows": 1, "budget": Budget(epsilon=10**6)}
    curator.protect(rows or [dict.fromkeys(TYPES)], name="visits", unit=unit, types=TYPES, **how)
    if unit is PARTS:
        curator.protect([dict.fromkeys(OTHERS)], name="stays", unit=tuple(OTHERS)[:6], types=OTHERS, **how)
    public = {"spot": "int", "day": "date", "turn": "int"}
    days = [START + dt.timedelta(days=t) for t in range(30)]
    curator.public([{"spot": 1, "day": day, "turn": t} for t, day in enumerate(days)], name="pub", types=public)
    return curator


def started(curator: Curator, key: str, source: str, *, before: str = "", **how: Any) -> CuratedStream:
    sql = f"{before}SELECT {key} AS k, COUNT(*) AS n FROM {source} GROUP BY k"
    usual = {"horizon": 30, "epsilon": 1}
    try:
        return curator.stream(sql, every="day", start=START, **(usual | how))
    except UnsupportedQuery as refused:
        if "period of each row" not in str(refused):
            raise
        return curator.stream(sql, every=1, start=0, **(usual | how))


TOLD = [
    ("day", "visits"),
    ("turn", "visits"),
    ("turn + 1", "visits"),
    ("CASE WHEN flag THEN turn ELSE 0 END", "visits"),
    ("COALESCE(day, CAST(at AS DATE))", "visits"),
    ("DATE_TRUNC('month', at)", "visits"),
    ("x", "(SELECT day AS x FROM visits) AS s"),
    ("code", "(SELECT day AS code FROM visits) AS s"),
    ("y", "(SELECT x AS y FROM (SELECT turn AS x, day FROM visits) AS t) AS s"),
    ("x", "(SELECT day AS x FROM visits UNION ALL SELECT day FROM visits) AS s"),
    ("x", "(SELECT day AS x FROM visits UNION ALL SELECT when_ FROM stays) AS s"),
    ("s.when_", f"visits AS v JOIN stays AS s ON {SAME}"),
    ("v.day", f"visits AS v LEFT JOIN stays AS s ON {SAME}"),
    ("v.day", "visits AS v JOIN pub AS p ON v.turn = p.spot"),
    ("x", f"(SELECT day AS x, COUNT(*) AS n FROM visits GROUP BY {', '.join(PARTS)}) AS s"),
    (
        "day",
        "(SELECT day, ROW_NUMBER() OVER (PARTITION BY " + ", ".join(PARTS) + " ORDER BY other) AS x FROM visits) AS s",
    ),
    ("day", "visits WHERE patient IN (SELECT spot FROM pub)"),
]


@every(("key", "source"), TOLD)
def test_an_id_tells_the_period_of_its_own_columns(key: str, source: str) -> None:
    stream = started(declared(), key, source, periods=7)
    assert stream._plan.periods == 1
    assert not stream._plan.remembers
    assert any("their id determines the period" in note for note in stream._plan.notes)


NOT_TOLD = [
    ("other", "visits"),
    ("LENGTH(code)", "visits"),
    ("LENGTH(TRIM(code))", "visits"),
    ("CAST(code AS INT)", "visits"),
    ("turn + LENGTH(code)", "visits"),
    ("CASE WHEN code = '1' THEN day ELSE DATE '2026-01-02' END", "visits"),
    ("CASE WHEN other > day THEN day ELSE other END", "visits"),
    ("COALESCE(other, day)", "visits"),
    ("day", "(SELECT other AS day FROM visits) AS s"),
    ("turn", "(SELECT LENGTH(code) AS turn FROM visits) AS s"),
    ("day", "(SELECT y AS day FROM (SELECT other AS y FROM visits) AS t) AS s"),
    ("day", "(SELECT COALESCE(other, day) AS day FROM visits) AS s"),
    ("day", "(SELECT CASE WHEN flag THEN day ELSE other END AS day FROM visits) AS s"),
    ("day", "(SELECT other AS day FROM visits UNION ALL SELECT other FROM visits) AS s"),
    ("day", "(SELECT day FROM visits UNION ALL SELECT other FROM visits) AS s"),
    ("day", "(SELECT other AS day FROM visits UNION ALL SELECT day FROM visits) AS s"),
    ("day", "(SELECT day FROM visits UNION ALL SELECT day FROM stays) AS s"),
    ("s.day", f"visits AS v JOIN stays AS s ON {SAME}"),
    ("s.when_", f"visits AS v LEFT JOIN stays AS s ON {SAME}"),
    ("p.day", "visits AS v JOIN pub AS p ON v.turn = p.spot"),
    ("p.turn", "(SELECT patient AS x FROM visits) AS v JOIN pub AS p ON v.x = p.spot"),
    ("v.day + p.turn", "(SELECT patient AS x, turn AS day FROM visits) AS v JOIN pub AS p ON v.x = p.spot"),
    ("day", f"(SELECT MAX(other) AS day FROM visits GROUP BY {', '.join(PARTS)}) AS s"),
    ("day", f"(SELECT LAG(other) OVER (PARTITION BY {', '.join(PARTS)} ORDER BY other) AS day FROM visits) AS s"),
    ("turn", f"(SELECT ROW_NUMBER() OVER (PARTITION BY {', '.join(PARTS)} ORDER BY other) AS turn FROM visits) AS s"),
    ("turn", f"(SELECT COUNT(*) AS turn FROM visits GROUP BY {', '.join(PARTS)}) AS s"),
]


@every(("key", "source"), some(NOT_TOLD, 3))
def test_an_id_tells_nothing_about_columns_that_are_called_or_written_like_it(key: str, source: str) -> None:
    stream = started(declared(), key, source, periods=7)
    assert stream._plan.periods == 7
    assert stream._plan.remembers
    if source.startswith("(") and source.endswith(" AS s"):  # the same under a name
        named = started(declared(), key, "s", before=f"WITH s AS {source.removesuffix(' AS s')} ", periods=7)
        assert named._plan.periods == 7


def by_name(expression: Any, schema: Any) -> bool:
    """What an id was believed to tell once."""
    return {column.name for column in columns(expression)} <= {*schema.parts, schema.unit}


def measured(curator: Curator, key: str, source: str) -> tuple[CuratedStream, list[list[int]]]:
    stream, found = started(curator, key, source), list[list[int]]()
    add = stream._sums._noise

    def noise(values: list[int]) -> list[int]:
        found.append(list(values))
        return add(values)

    stream._sums._noise = noise
    for _ in range(30):
        stream.release()
    return stream, found


def rows_of(patient: int) -> list[dict[str, Any]]:
    """One unit that comes on every day, and writes its code with one more space each time."""
    return [
        {
            "patient": patient,
            "day": START + dt.timedelta(days=t),
            "other": START + dt.timedelta(days=t),
            "turn": 1,
            "code": "1" + " " * t,
        }
        for t in range(30)
    ]


@every(
    ("unit", "key", "source", "told"),
    some(
        [
            (("patient", "turn"), "turn", "(SELECT day AS turn FROM visits) AS s", by_name),
            (("patient", "code"), "LENGTH(code)", "visits", lambda *_: True),
        ],
        2,
    ),
)
def test_a_unit_in_all_periods_moves_a_stream_no_farther_than_was_paid(
    unit: Any, key: str, source: str, told: Any
) -> None:
    """The whole loss of a unit that is in thirty periods, over what was charged; far above it with the id believed."""

    def share() -> Fraction:
        with_, without = rows_of(1) + rows_of(2)[:3], rows_of(2)[:3]
        stream, one = measured(declared(unit, with_), key, source)
        return share_of_paid(stream, one, measured(declared(unit, without), key, source)[1])

    assert 0 < share() <= 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_plan, "follows_from_id", told)
        assert share() > 5


def test_a_stream_that_believed_an_id_before_does_not_go_on(tmp_path: Path) -> None:
    """Whoever was counted in its periods was not remembered."""
    unit, source = ("patient", "turn"), "(SELECT day AS turn FROM visits) AS s"
    with pytest.MonkeyPatch.context() as patch, declared(unit, rows_of(1), tmp_path / "book") as curator:
        patch.setattr(stream_plan, "follows_from_id", by_name)
        stream = started(curator, "turn", source, name="daily")
        stream.release()
    (path,) = (tmp_path / "book.streams").glob("*.state")
    whole = path.read_text()
    for content in (whole, whole.rstrip()[:-1] + ',"units":[]}\n'):  # as it is written now, and as it was before
        assert all(json.loads(line) for line in content.splitlines())
        path.write_text(content)
        with declared(unit, rows_of(1), tmp_path / "book") as again, pytest.raises(StreamError, match="record"):
            started(again, "turn", source, name="daily")


def test_no_column_is_called_like_the_one_of_ids() -> None:
    curator = Curator(engine=Memory())
    types = {"#unit": "int", "x": "int"}
    with pytest.raises(InvalidParameter, match="#unit"):
        curator.protect([{"#unit": 1, "x": 2}], name="t", types=types, budget=Budget(epsilon=1))
    with pytest.raises(InvalidParameter, match="#unit"):
        curator.public([{"#unit": 1, "x": 2}], name="t", types=types)


def test_a_table_called_like_a_part_is_none() -> None:
    """What leads to the ids of a table is told from parts of ids by what it is, whatever the table is called."""
    curator = Curator(engine=Memory())
    how: dict[str, Any] = {"account": "people", "budget": Budget(epsilon=10**6)}
    curator.protect(rows_of(1), name="#1", unit="patient", types=TYPES, **{"max_rows": 1, **how})
    curator.protect(rows_of(1), name="visits", unit="turn -> #1.turn", max_rows=1, types=TYPES)
    stream = started(curator, "turn", "visits", periods=7)
    assert stream._plan.remembers
