"""Planted values: nothing that a person brought appears in messages, logs, notes, files or anything else unpaid."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Answer, Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import DiscreetError
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.readings import Reading
from tests.redteam.clinics import APPROXIMATE, CROWD, Row, Untouchable, chain, clinic, planned, row, spent
from tests.redteam.salts import same_salt

TEXT, NUMBER, ROWS = "ZZ-CANARY-7", 918273645, 7919
SECRETS = (TEXT, str(NUMBER))
WHOLE = re.compile(rf"(?<![0-9a-f.]){ROWS}(?![0-9a-f.])")  # the number of rows, and not some digits of a hash
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT kind, COUNT(*) AS n, AVG(charge) AS m FROM visits GROUP BY kind",
    "SELECT age, COUNT(*) AS n FROM visits GROUP BY age",
    "SELECT note AS k, SUM(charge) AS s FROM visits GROUP BY note ORDER BY s DESC LIMIT 5",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(note AS INT) > 1 / (age - 3)",
    "SELECT MAX(note) FROM visits",
    "SELECT note FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE note = 3",
    "SELECT COUNT(*) AS n FROM visits WHERE age = 'x'",
    "SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient",
    "SELECT COUNT(*) AS n FROM visit",
    "SELECT COUNT(*) AS n FROM visits WHERE error(note)",
    "SELECT SUM(weight) AS s FROM visits",
    "SELECT COUNT(*",
)


def planted() -> list[Row]:
    """A table of so many rows, one person of which brings the canaries."""
    mine = row(NUMBER, note=TEXT, kind=TEXT, ward=TEXT, age=NUMBER, charge=float(NUMBER), weight=float(NUMBER))
    return [mine, *(row(i % 40, kind="check" if i % 2 else "fever") for i in range(ROWS - 1))]


class Loud(Memory):
    """Fails, and tells why at length."""

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        return lambda: self._fail(reading)

    def _fail(self, reading: Reading) -> Any:
        first = self._rows[reading.table][0]
        try:
            raise KeyError(first["note"])
        except KeyError as error:
            raise ValueError(f"{len(self._rows[reading.table])} rows, the first of them {first}") from error


def told(answer: Answer) -> str:
    """All that an answer says."""
    parts = [repr(answer.records), *answer.notes, str(answer.cost), str(answer.remaining), repr(answer.event)]
    return "\n".join([*parts, answer._repr_html_(), repr(answer.to_pandas()), repr(answer)])


def confessed(error: BaseException) -> str:
    """All that an error says, with causes, contexts, fields and the trace that would be printed."""
    parts = [f"{one!r} {one} {one.args} {getattr(one, '__notes__', '')} {vars(one)}" for one in chain(error)]
    return "\n".join([*parts, "".join(traceback.format_exception_only(error))])


def attempt(work: Callable[[], Any]) -> str:
    try:
        found = work()
    except DiscreetError as error:
        return confessed(error)
    return told(found) if isinstance(found, Answer) else f"{found!r} {found}"


def everything(curator: Curator) -> str:
    """What every public door says about every question."""
    said = []
    for i, sql in enumerate(QUESTIONS):
        budget: dict[str, Any] = {"epsilon": 0.01 + i / 1000, "delta": 1e-6}
        said += [attempt(partial(ask, sql, **budget)) for ask in (curator.ask, curator.explain)]
        said.append(attempt(partial(curator.rehearse, sql, rows=20, **budget)))
    said += [attempt(partial(door, "visits")) for door in (curator.budget, curator.history)]
    return "\n".join([*said, attempt(curator.verify), repr(curator), repr(curator.table("visits"))])


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


MAKERS: list[Callable[[], Engine]] = [Memory, Loud, lambda: DuckDB(threads=1)]


@pytest.mark.ci
@pytest.mark.parametrize("make", MAKERS, ids=["memory", "failing", "duckdb"])
def test_canaries_are_never_seen(
    make: Callable[[], Engine], tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """RT-042, RT-089, RT-090: neither a value nor the number of rows in answers, errors, logs, output or the ledger."""
    caplog.set_level(logging.DEBUG)
    with same_salt():
        curator = clinic(planted(), engine=make(), budget=APPROXIMATE, ledger=str(tmp_path / "book"))
    said = everything(curator)
    curator.close()
    captured = capfd.readouterr()
    seen = [said, caplog.text, captured.out, captured.err]
    assert not [text for text in seen if WHOLE.search(text)]
    for secret in SECRETS:
        assert not [text for text in seen if secret in text]
        assert secret.encode() not in files(tmp_path)


def test_the_canaries_would_be_seen() -> None:
    """The search finds what it looks for: in the error of an engine, and in an answer."""
    error = ValueError("x")
    error.__context__ = KeyError(TEXT)
    assert TEXT in confessed(error)
    rows = [row(i, kind=TEXT) for i in range(1000)]
    answer = clinic(rows, budget=APPROXIMATE).ask(QUESTIONS[1], epsilon=1, delta=1e-6)
    assert TEXT in told(answer)  # a thousand people have it: it may be shown


def test_what_is_sent_to_an_engine_does_not_depend_on_data() -> None:
    """RT-090, the peers' row count in generated SQL: the same reading for a large table and for an empty one."""
    with same_salt():
        one, other = clinic(planted(), budget=APPROXIMATE), clinic([], budget=APPROXIMATE)
    for sql in QUESTIONS[:4]:
        assert planned(one, sql, delta=1e-6).reading == planned(other, sql, delta=1e-6).reading


def test_rehearsals_follow_from_declarations_alone() -> None:
    """RT-092: made-up answers are the same for a large table and for an empty one, and say what they are."""
    one, other = clinic(planted(), budget=APPROXIMATE), clinic([], engine=Untouchable(), budget=APPROXIMATE)
    before = spent(other)
    for sql in QUESTIONS[:4]:
        shown = [curator.rehearse(sql, epsilon=1, delta=1e-6, rows=50) for curator in (one, other)]
        assert repr(shown[0].records) == repr(shown[1].records)
        assert not shown[0].private
    assert spent(other) == before


def test_an_unreadable_table_is_refused_without_its_values() -> None:
    """RT-042: what a steward declares wrongly is explained without a cell of the table."""
    with pytest.raises(DiscreetError) as refused:
        clinic([*CROWD, row(9, note=TEXT)], engine=DuckDB(), types={"note": "int", "nota": "int"})
    assert TEXT not in confessed(refused.value)


@pytest.mark.parametrize("cell", [{TEXT: 1}, [TEXT]])
def test_no_cell_makes_a_table_unreadable(cell: Any) -> None:
    """A refusal that depends on a cell would tell of it: what is no value of a type is read as a text or as NULL."""
    answers = [clinic([*CROWD, row(9, note=note)], engine=Memory()).ask(QUESTIONS[0], epsilon=1) for note in (cell, "")]
    assert [answer.columns for answer in answers] == [answers[0].columns] * 2
    assert TEXT not in repr([answer.records for answer in answers])
