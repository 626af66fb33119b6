"""Every verb on neighbouring tables, with frozen noise, through Python and the command line: equal to the last byte.

Status, printed text, written files, log lines and the ledger's entries are compared. The service's faces (HTTP, page,
wire) are compared in `tests/service/test_neighbours.py`.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from discreet.cli.app import COMMANDS as OFFERED
from discreet.curator import Answer, Curator
from discreet.curator.served import source_of
from discreet.errors import DiscreetError
from discreet.learn import GaussianNB
from discreet.privacy import Budget
from tests.cli.clinic import run
from tests.faces.tape import frozen, heard

PEOPLE, REMOVED = 90, 7
TABLES = {"visits.csv", "calls.csv"}
COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
BY_REMARK = "SELECT remark, COUNT(*) AS n FROM visits GROUP BY remark"
DAILY = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
QUESTIONS = (
    COUNT,
    BY_REMARK,
    "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(age) AS m FROM visits WHERE age > 30",
    "SELECT COUNT(DISTINCT patient) AS n FROM visits",
    "SELECT MEDIAN(age) AS m, MAX(age) AS top FROM visits",
    "SELECT AVG(weight) AS m FROM visits",
    "SELECT 1 / (COUNT(*) - 90) AS n FROM visits",
    "SELECT * FROM visits",
    "SELECT COUNT(*) FROM nobody",
    "SELECT COUNT(*) FROM visits WHERE CAST(remark AS INTEGER) = 1",
)
"""Answered ones and refused ones, and such as would fail on some tables if plans were not total."""

QUICK = (COUNT, *QUESTIONS[-3:])

TOML = """
ledger = "clinic.ledger"
anchor = ""

[tables.visits]
source = "visits.csv"
unit = "patient"
account = "patients"
types = { patient = "int", ward = "text", age = "int", weight = "float", remark = "text", day = "date" }
bounds = { age = [0, 120], day = ["2026-01-01", "2026-01-30"] }
keys = { ward = ["A", "B", "C"] }
max_groups = 2
max_rows = 2

[tables.calls]
source = "calls.csv"
unit = "patient"
account = "patients"
types = { patient = "int", kind = "text" }
keys = { kind = ["in", "out"] }
max_rows = 2

[budgets.patients]
epsilon = 1000
delta = "1e-4"

[analysts.ana.patients]
epsilon = 500
delta = "1e-5"
"""


def write(folder: Path, *, without: int | None) -> None:
    """A table of visits and one of calls, from which one person may be left out; files are the same ones both times."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in TABLES:
            path.unlink()
    people = [who for who in range(PEOPLE) if who != without]
    visits, calls = ["patient,ward,age,weight,remark,day"], ["patient,kind"]
    for who in people:
        remark = "usual" if who % 5 else "odd"  # both have the same groups, whose selection is frozen as well
        visits += [
            f"{who},{'ABC'[who % 3]},{20 + who},{who / 3},{remark},2026-01-{1 + (who + d) % 9:02}" for d in (0, 1)
        ]
        calls += [f"{who},{'in' if who % 2 else 'out'}"]
    (folder / "visits.csv").write_text("\n".join(visits) + "\n")
    (folder / "calls.csv").write_text("\n".join(calls) + "\n")
    (folder / "discreet.toml").write_text(TOML)


# ------------------------------------------------------------------------------------------------------------ Python


def _all(call: Callable[[Curator, str], Any], questions: Sequence[str]) -> Callable[[Curator], Any]:
    return lambda curator: [_tried(partial(call, curator, sql)) for sql in questions]


def _ask(curator: Curator, sql: str) -> Any:
    return curator.ask(sql, epsilon=1, delta="1e-7", analyst="ana")


def _explain(curator: Curator, sql: str) -> Any:
    return curator.explain(sql, epsilon=1)


def _stream(curator: Curator) -> Any:
    stream = curator.stream(DAILY, every="day", horizon=9, epsilon=1, start="2026-01-01")
    return [stream.release().to_arrow() for _ in range(2)]


def _fit(curator: Curator) -> Any:
    learner = GaussianNB(epsilon=1, classes=["A", "B", "C"], bounds=(0, 120))
    fitted = curator.fit(learner, "SELECT age, ward FROM visits", target="ward")
    return [vars(fitted)[name] for name in sorted(vars(fitted)) if name.endswith("_")]


def _table(curator: Curator) -> Any:
    return curator.table("visits").where("age >= 40").group_by("ward").agg(n="COUNT(*)").ask(epsilon=1)


CALLS: dict[str, Callable[[Curator], Any]] = {
    "ask": _all(_ask, QUESTIONS),
    "ask_many": lambda curator: curator.ask_many(list(QUESTIONS[:3]), epsilon=1, delta="1e-7"),
    "explain": _all(_explain, QUESTIONS),
    "rehearse": lambda curator: curator.rehearse(COUNT),
    "choose_epsilon": lambda curator: curator.choose_epsilon(COUNT, [1, 2]),
    "profile": lambda curator: curator.profile("visits", epsilon=1, columns=["age"]),
    "stream": _stream,
    "table": _table,
    "fit": _fit,
    "plan_fit": lambda curator: curator.plan_fit(GaussianNB(epsilon=1), "SELECT age, ward FROM visits", target="ward"),
    "synthesize": lambda curator: curator.synthesize(
        "SELECT ward, age FROM visits", rows=50, epsilon=1, generator="independent"
    ),
    "synthesize_tables": lambda curator: curator.synthesize_tables(
        "SELECT kind FROM calls", "SELECT ward FROM visits", epsilon=1, generator="mst"
    ),
    "plan_synthesize": lambda curator: curator.plan_synthesize("SELECT ward, age FROM visits", epsilon=1),
    "protect": lambda curator: curator.protect("visits.csv", name="visits", unit="nobody", max_rows=1),
    "amend": lambda curator: curator.amend("patients", budget=Budget(epsilon=2000, delta="1e-4")),
    "renew": lambda curator: curator.renew("patients", budget=Budget(epsilon=2000, delta="1e-4"), note="again"),
    "appoint": lambda curator: curator.appoint("ben", "analyst", account="patients"),
    "allot": lambda curator: curator.allot("thesis", account="patients", cap=Budget(epsilon=2, delta="1e-6")),
    "set_team": lambda curator: curator.set_team("heart", cap=Budget(epsilon=2, delta="1e-6"), members=["ben"]),
    "set_aside": lambda curator: curator.set_aside("weekly", budget=Budget(epsilon=1)),
    "give_back": lambda curator: curator.give_back("weekly"),
    "request_approval": lambda curator: curator.request_approval(COUNT, epsilon=1, reason="a paper", analyst="ben"),
    "approvals": lambda curator: curator.approvals(),
    "approve": lambda curator: curator.approve(curator.approvals()[0].number),
    "require_approvals": lambda curator: curator.require_approvals(1),
    "unlock": lambda curator: curator.unlock("patients"),
    "erase_check": lambda curator: curator.erase_check("visits", 7),
    "advance": lambda curator: [curator.advance("visits", version="2"), curator.ask(COUNT, epsilon=1)],
    "analyst_cap": lambda curator: curator.analyst_cap("ana", account="patients"),
    "project_cap": lambda curator: curator.project_cap("thesis", account="patients"),
    "role": lambda curator: curator.role("patients", "ana"),
    "budget": lambda curator: curator.budget("visits"),
    "balance": lambda curator: curator.balance("patients"),
    "account": lambda curator: curator.account("patients"),
    "accounts": lambda curator: curator.accounts(),
    "tables": lambda curator: curator.tables(),
    "history": lambda curator: curator.history("visits"),
    "entries": lambda curator: curator.entries(),
    "verify": lambda curator: curator.verify(),
}
QUICK_CALLS = {**CALLS, "ask": _all(_ask, QUICK), "explain": _all(_explain, QUICK)}
NOT_VERBS = {"for_tests", "from_config", "close", "public", "perform"}
"""How a curator is made and ended, how faces perform any verb, and what reads no protected table."""


def _tried(call: Callable[[], Any]) -> str:
    try:
        found = call()
    except DiscreetError as error:
        return f"{type(error).__name__}: {error}"
    return _told(found)


def _told(found: Any) -> str:
    """All that can be seen of a result."""
    if isinstance(found, list | tuple) and not hasattr(found, "_fields"):
        return "\n".join(map(_told, found))
    parts = [repr(found), str(found)]
    if isinstance(found, Answer):
        parts += [str(found.to_arrow().to_pylist()), str(found.notes), str(found.cost), found._repr_html_()]
    return "\n".join(parts)


# ------------------------------------------------------------------------------------------------------ command line

_INDEPENDENT = ["--generator", "independent", "--rows", "50"]
_START = ["--every", "day", "--horizon", "9", "--epsilon", "1", "--start", "2026-01-01"]


def _asked(sql: str) -> list[str]:
    return ["ask", sql, "--epsilon", "1", "--delta", "1e-7", "--analyst", "ana"]


COMMANDS: dict[str, list[list[str]]] = {
    "protect": [["protect"]],
    "ask": [
        *(_asked(sql) for sql in QUESTIONS),
        ["ask", *QUESTIONS[:2], "--epsilon", "1", "--json"],
        ["ask", COUNT, "--epsilon", "5000"],
        ["ask", COUNT, "--within", "5", "--max-epsilon", "3", "--csv"],
    ],
    "explain": [["explain", sql, "--epsilon", "1"] for sql in QUESTIONS],
    "rehearse": [["rehearse", COUNT], ["rehearse", COUNT, "--json"]],
    "profile": [["profile", "visits", "--epsilon", "1", "--column", "age"]],
    "synthesize": [
        ["synthesize", "SELECT ward, age FROM visits", "--out", "made.csv", "--epsilon", "1", *_INDEPENDENT],
    ],
    "plan-synthesize": [["plan-synthesize", "SELECT ward, age FROM visits", "--epsilon", "1"]],
    "plan-synthesize-tables": [
        ["plan-synthesize-tables", "SELECT kind FROM calls", "SELECT ward FROM visits", "--epsilon", "1", "--json"],
    ],
    "choose-epsilon": [["choose-epsilon", COUNT, "--epsilon", "1", "--epsilon", "2", "--json"]],
    "stream": [
        ["stream", "start", "daily", DAILY, *_START],
        *[["stream", "release", "daily"]] * 2,
        ["stream", "show", "daily"],
    ],
    "budget": [["budget"], ["budget", "--json"]],
    "amend": [["amend", "patients", "--epsilon", "1000", "--delta", "1e-4"]],
    "renew": [["renew", "patients", "--epsilon", "1000", "--delta", "1e-4", "--note", "again"]],
    "unlock": [["unlock", "patients"]],
    "erase-check": [["erase-check", "visits", "--id", "7"], ["erase-check", "visits", "--id", "7", "--json"]],
    "advance": [["advance", "visits", "--version", "3"], ["ask", COUNT, "--epsilon", "1"]],
    "grant": [["grant", "ben", "--account", "patients"]],
    "set-cap": [["set-cap", "thesis", "patients", "--epsilon", "2", "--delta", "1e-6"]],
    "set-team": [["set-team", "heart", "--epsilon", "2", "--delta", "1e-6", "--members", "ben"]],
    "set-aside": [["set-aside", "weekly", "--epsilon", "1"]],
    "give-back": [["give-back", "weekly"]],
    "request-approval": [["request-approval", COUNT, "--epsilon", "1", "--reason", "a paper", "--analyst", "ben"]],
    "approvals": [["approvals"], ["approvals", "--json"]],
    "approve": [["approve", "--number", "1"]],
    "require-approvals": [["require-approvals", "--count", "1"]],
    "history": [["history"], ["history", "--json"], ["history", "--csv"]],
    "verify": [["verify"]],
    "backup": [["backup", "copy.ledger"]],
    "report": [["report", "report.html"]],
}
QUICK_COMMANDS = {**COMMANDS, "ask": [_asked(sql) for sql in QUICK]}
NOT_FUZZED = {
    "demo": "makes people up",
    "init": "reads no table",
    "public": "reads a public table",
    "check": "shows a file to the steward, who has it",
    "attack": "attacks exact tables, for the steward's eyes",
    "audit": "asks a curator of its own, with seeded noise",
    "postgres-role": "prints SQL",
    "survey": "is of people who trust nobody",
    "anchor": "compares two files of the ledger",
    "restore": "takes a backup, which is compared",
    "ledger": "moves and copies the ledger, which is compared",
    "serve": "is compared in tests/service",
}


# ------------------------------------------------------------------------------------------------------------- tests

Found = dict[str, list[str]]


def _files(folder: Path) -> list[str]:
    """What lies in the folder beside the tables and the ledger, whose entries are compared as such."""
    kept = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in TABLES]
    kept = [path for path in kept if ".ledger" not in str(path.relative_to(folder))]
    return [f"{path.name} {path.read_text()}" for path in kept]


def through_python(folder: Path, calls: dict[str, Any]) -> Found:
    with Curator.from_config(folder / "discreet.toml") as curator:
        found = {name: [_tried(partial(call, curator))] for name, call in calls.items()}
        return {**found, "ledger": [repr(entry) for entry in curator.entries()]}


def through_commands(folder: Path, calls: dict[str, Any]) -> Found:
    found = {}
    for name, commands in calls.items():
        ended = [run(*command) for command in commands]
        found[name] = [f"{each.code}\n{each.out}\n{each.err}" for each in ended] + _files(folder)
    with Curator.from_config(folder / "discreet.toml", opening=False) as curator:
        return {**found, "ledger": [repr(entry) for entry in curator.entries()]}


Face = Callable[[Path, dict[str, Any]], Found]


def both(folder: Path, face: Face, calls: dict[str, Any]) -> tuple[Found, Found]:
    """What a face shows on a table, and then on its neighbour with what was released on the first."""
    kept: list[Any] = []
    found = []
    for again in (False, True):
        write(folder, without=REMOVED if again else None)
        with frozen(kept, again=again), heard() as lines, pytest.MonkeyPatch.context() as at:
            at.chdir(folder)
            shown = face(folder, calls)
            found.append({**shown, "log": list(lines)})
    return found[0], found[1]


def differing(one: Found, other: Found) -> set[str]:
    assert one.keys() == other.keys()
    return {name for name in one if one[name] != other[name]}


FEW: dict[Face, dict[str, Any]] = {
    through_python: {name: QUICK_CALLS[name] for name in ("ask", "explain", "history")},
    through_commands: {name: QUICK_COMMANDS[name] for name in ("protect", "ask", "budget")},
}
ALL: dict[Face, dict[str, Any]] = {through_python: CALLS, through_commands: COMMANDS}


@pytest.mark.ci
@pytest.mark.parametrize("face", FEW)
def test_neighbours_are_alike(tmp_path: Path, face: Face) -> None:
    one, other = both(tmp_path / "clinic", face, FEW[face])
    assert differing(one, other) == set()
    assert any("UnsupportedQuery" in each or each.startswith("4\n") for each in one["ask"])


@pytest.mark.slow
@pytest.mark.parametrize("face", ALL)
def test_neighbours_are_alike_in_all_verbs(tmp_path: Path, face: Face) -> None:
    one, other = both(tmp_path / "clinic", face, ALL[face])
    assert differing(one, other) == set()


def test_every_verb_is_tried() -> None:
    methods = {name for name in dir(Curator) if not name.startswith("_") and callable(getattr(Curator, name))}
    assert methods - NOT_VERBS == set(CALLS)
    assert set(OFFERED) - set(NOT_FUZZED) == set(COMMANDS)


# ----------------------------------------------------------------------------------------------------------- mutants


def _rows(curator: Curator) -> int:
    return len(Path(str(source_of(curator, "visits"))).read_text().splitlines())


@pytest.mark.ci
@pytest.mark.parametrize("face", FEW)
@pytest.mark.parametrize("place", ["log", "error"])
def test_mutants_that_tell_how_many_rows_there_are(tmp_path: Path, face: Face, place: str) -> None:
    """A log line, and a refusal that depends on the rows."""
    right = Curator._ask

    def leaking(curator: Curator, *given: Any, **named: Any) -> Any:
        rows = _rows(curator)
        if place == "log":
            logging.getLogger("discreet.curator").debug("%d rows", rows)
        elif rows > 2 * PEOPLE:
            raise DiscreetError("Too many rows.")
        return right(curator, *given, **named)

    few = {name: call for name, call in FEW[face].items() if name in ("protect", "ask")}
    with patch.object(Curator, "_ask", leaking):
        found = differing(*both(tmp_path / "clinic", face, few))
    assert found == ({"log"} if place == "log" else {"ask", "ledger"})
