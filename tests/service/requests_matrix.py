"""Every cell of role x route x command of the wire, generated from OpenAPI and from the tables of routes and commands.

A cell has requests that are good for it, so that it gets as far as its role may; a route without any is an error.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from discreet.service.api.route_access import NEEDS
from discreet.service.caller import Permission, ServiceRole
from discreet.service.page import ROUTES
from discreet.service.request_executor import OPERATIONS, JobRequest
from discreet.service.wire.statement_kinds import COMMANDS, StatementKind
from tests.service.whole_service import Browser, Connection, Whole

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
TRAINED = {
    "learner": "LogisticRegression",
    "parameters": {"epsilon": 1, "bounds": [0, 120], "classes": ["A", "B", "C"]},
    "sql": "SELECT age, ward FROM visits",
    "target": "ward",
}
QUESTIONS = (
    COUNT,
    "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(age) AS m FROM visits WHERE age > 30",
    "SELECT COUNT(DISTINCT patient) AS n FROM visits",
    "SELECT MEDIAN(age) AS m, MAX(age) AS top FROM visits",
    "SELECT remark, COUNT(*) AS n FROM visits GROUP BY remark",
    "SELECT 1 / (COUNT(*) - 60) AS n FROM visits",
    "SELECT * FROM visits",
    "SELECT COUNT(*) FROM nobody",
    "SELECT COUNT(*) FROM visits WHERE CAST(remark AS INTEGER) = 1",
)
"""Answered ones and refused ones, and such as would fail on some tables if plans were not total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What may be asked of a front end: what it needs, and requests for it."""

    front: str
    name: str
    permission: Permission | None
    requests: Sequence[tuple[Any, ...]]

    @property
    def label(self) -> str:
        return f"{self.front} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What the requests of somebody are about."""

    job: str
    sequence: int
    own_key: str
    keys: tuple[str, str, str, str]


def targets(made: Whole, role: ServiceRole) -> Targets:
    """Somebody's job, charge and second key, and people and keys to be ended."""
    known, name = made.identities, made.name(role)
    caller = known.caller_of_key(made.keys[role][0])
    job, sequence = "0" * 32, 0
    if caller.may(Permission.ASK):
        asked = JobRequest(operation=OPERATIONS["ask"], arguments={"sql": COUNT, "epsilon": "0.5"})
        job = made.desk.begin(caller, asked).id
        charges = [entry for entry in made.desk.curator.entries() if entry.kind == "charge"]
        sequence = charges[-1].sequence if charges else 0
    for each in ("leaver", "goer"):
        known.make_person(known.local, each, ServiceRole.ANALYST)
    ended = [known.make_key(known.local, "goer")[0] for _ in range(4)]
    own = known.make_key(known.local, name)[0]
    return Targets(job=job, sequence=sequence, own_key=own, keys=(ended[0], ended[1], ended[2], ended[3]))


# ------------------------------------------------------------------------------------------------------------ API


_MADE = {"table": "SELECT ward, age FROM visits", "epsilon": "1", "generator": "independent"}
_LINKED = {"people": "SELECT ward FROM visits", "events": "SELECT age FROM visits", "epsilon": "1", "generator": "mst"}


def _bodies() -> dict[str, list[Any]]:
    budget = {"epsilon": "1000", "delta": "1/10000"}
    asked = [{"sql": each, "epsilon": "0.25", "delta": "1e-7"} for each in QUESTIONS]
    return {
        "ask": [*asked, {"sql": COUNT, "epsilon": "5000"}, {"sql": COUNT, "within": 5}, {"sql": COUNT, "wait": False}],
        "ask_many": [{"questions": list(QUESTIONS[:2]), "epsilon": "0.5"}],
        "explain": [{"sql": each, "epsilon": "0.1"} for each in QUESTIONS],
        "rehearse": [{"sql": each, "rows": 50} for each in QUESTIONS[:2]],
        "choose_epsilon": [{"sql": COUNT, "candidates": ["0.1", "1"]}],
        "profile": [{"table": "visits", "epsilon": "1", "columns": ["age"]}],
        "fit": [TRAINED],
        "synthesize": [{**_MADE, "rows": 20}],
        "plan_synthesize": [_MADE],
        "synthesize_tables": [{**_LINKED, "rows": 20}],
        "plan_synthesize_tables": [_LINKED],
        "plan_fit": [TRAINED],
        "amend": [{"budget": budget}],
        "renew": [{"budget": budget, "note": "again"}],
        "unlock": [{}],
        "erase_check": [{"table": "visits", "person": 7}, {"table": "visits", "person": ""}],
        "advance": [{"table": "visits", "version": "2"}, {"table": "visits", "version": " 3"}],
        "appoint": [{"who": "ana", "role": "analyst", "account": "visits", "cap": {"epsilon": "500", "delta": "1e-5"}}],
        "allot": [{"project": "thesis", "cap": {"epsilon": "2", "delta": "1e-6"}}],
        "request_approval": [{"sql": COUNT, "epsilon": "0.1", "reason": "a paper"}],
        "approve": [{"number": 1}],
        "require_approvals": [{"count": 1, "account": "visits"}],
        "set_team": [{"team": "heart", "cap": {"epsilon": "2", "delta": "1e-6"}, "account": "visits"}],
        "set_aside": [{"purpose": "weekly", "budget": {"epsilon": "1"}, "account": "visits"}],
        "give_back": [{"purpose": "weekly", "account": "visits"}],
        "make_person": [{"name": "newcomer", "role": "analyst"}],
        "make_key": [{"name": "goer", "tables": ["visits"], "expires_days": 3}],
        "rotate_key": [{}],
    }


def api_cells(made: Whole, about: Targets) -> Iterator[Cell]:
    """Yields a cell for each route that OpenAPI describes."""
    places = {"account": "visits", "job": about.job, "sequence": str(about.sequence)}
    named = {"get_table": "visits", "disable_person": "leaver"}
    keyed = {"revoke_key": about.keys[0], "rotate_key": about.own_key}
    bodies = _bodies()
    for path, methods in made.app.openapi()["paths"].items():
        for method, told in methods.items():
            name = told["operationId"]
            given = {**places, "name": named.get(name, ""), "key": keyed.get(name, "")}
            sent = bodies[name] if "requestBody" in told else [None]
            requests = [(method.upper(), path.format(**given), body) for body in sent]
            yield Cell(front="api", name=name, permission=NEEDS[name].permission, requests=requests)


# ----------------------------------------------------------------------------------------------------------- page

_COLUMNS = {
    "column": ["patient", "ward", "age", "remark"],
    "column-type": ["int", "text", "int", "text"],
    "column-low": ["", "", "0", ""],
    "column-high": ["", "", "120", ""],
    "column-keys": ["", "A, B, C", "", ""],
}
_DECLARED = {
    "source": "root/0/stays.csv",
    "name": "stays",
    "whose": "column",
    "unit": "patient",
    "epsilon": "1",
    "delta": "1e-6",
    **_COLUMNS,
}
_GIVEN = {"budget.epsilon": "1000", "budget.delta": "0.0001"}


def _forms(about: Targets) -> dict[str, list[dict[str, Any]]]:
    asked = [{"sql": each, "epsilon": "0.75", "delta": "1e-7"} for each in QUESTIONS]
    return {
        "/explain": asked,
        "/ask": asked,
        "/rehearse": asked[:2],
        "/choose-epsilon": [{"sql": COUNT, "candidates": "0.1, 1"}],
        "/ask-many": [{"questions": "\n\n".join(QUESTIONS[:2]), "epsilon": "0.5"}],
        "/profile": [{"table": "visits", "epsilon": "1", "columns": "age"}],
        "/synthesize": [{**_MADE, "rows": "20"}],
        "/synthesize/price": [_MADE],
        "/synthesize-tables": [{**_LINKED, "rows": "20"}],
        "/synthesize-tables/price": [_LINKED],
        "/attack": [{"table": "visits", "columns": ["age", "ward"]}],
        "/accounts/{account}/amend": [_GIVEN],
        "/accounts/{account}/renew": [{**_GIVEN, "sure": "yes"}],
        "/accounts/{account}/unlock": [{"note": "again"}],
        "/accounts/{account}/appoint": [{"who": "ana", "role": "analyst"}],
        "/accounts/{account}/allot": [{"project": "book", "cap.epsilon": "2", "cap.delta": "1e-6"}],
        "/accounts/{account}/approve": [{"number": "1"}],
        "/accounts/{account}/require_approvals": [{"count": "1"}],
        "/accounts/{account}/set_team": [{"team": "heart", "cap.epsilon": "2", "cap.delta": "1e-6"}],
        "/accounts/{account}/set_aside": [{"purpose": "weekly", "budget.epsilon": "1"}],
        "/accounts/{account}/give_back": [{"purpose": "weekly"}],
        "/request-approval": [{"sql": COUNT, "epsilon": "0.1", "reason": "a paper"}],
        "/approvals": [{}],
        "/erase-check": [{"table": "visits", "person": "7"}],
        "/advance": [{"table": "visits", "version": "4", "note": "a new file"}],
        "/people": [{"name": "arrival", "role": "analyst"}],
        "/people/link": [{"name": "goer"}],
        "/people/disable": [{"name": "leaver"}],
        "/people/enable": [{"name": "leaver"}],
        "/keys": [{"name": "goer", "expires_days": "3"}],
        "/keys/rotate": [{"key": about.keys[2]}],
        "/keys/revoke": [{"key": about.keys[3]}],
        "/protect/upload": [{}],
        "/protect/path": [{"path": "stays.csv"}, {"path": "../book.ledger"}],
        "/protect/declare": [{**_DECLARED, "act": "review"}, {**_DECLARED, "act": "protect"}],
        "/verify": [{}],
        "/sign-out": [{}],
    }


UNPAID = {"page GET /protect/declare": Permission.PROTECT, "page POST /attack": Permission.ATTACK}
"""What reads data without a charge: it is for the steward's eyes, and needs what no analyst has."""


def page_cells(about: Targets) -> Iterator[Cell]:
    """Yields a cell for each route of the page."""
    places = {
        "{account}": "visits",
        "{name}": "visits",
        "{number:int}": "1",
        "{place:int}": "1",
        "{sequence:int}": str(about.sequence),
    }
    forms = _forms(about)
    for route in sorted(ROUTES, key=lambda route: route.path == "/sign-out"):  # after which nobody is asked for
        path = route.path
        for part, place in places.items():
            path = path.replace(part, place)
        if route.path == "/protect/declare" and route.method == "GET":
            path += "?source=root/0/stays.csv"
        sent = forms[route.path] if route.method == "POST" else [None]
        requests = [(route.method, path, form) for form in sent]
        yield Cell(front="page", name=f"{route.method} {route.path}", permission=route.permission, requests=requests)


# ----------------------------------------------------------------------------------------------------------- wire

_STATEMENTS: Mapping[str, Sequence[str]] = {
    "SELECT": [*QUESTIONS, "SELECT relname FROM pg_class WHERE relname = 'visits'"],
    "WITH": [f"WITH found AS ({COUNT}) SELECT ward, n FROM found"],
    "FROM": ["FROM visits SELECT COUNT(*) AS n"],
    "VALUES": ["VALUES (1)"],
    "(": ["(SELECT COUNT(*) AS n FROM visits)"],
    "EXPLAIN": [f"EXPLAIN {each}" for each in QUESTIONS],
    "SET": ["SET discreet.epsilon = 0.125", "SET discreet.delta = '1e-7'"],
    "SHOW": ["SHOW discreet.remaining", "SHOW ALL"],
    "RESET": ["RESET search_path"],
    "START": ["START TRANSACTION"],
    "SAVEPOINT": ["SAVEPOINT here"],
    "RELEASE": ["RELEASE SAVEPOINT here"],
    "DISCARD": ["DISCARD PLANS"],
    "DEALLOCATE": ["DEALLOCATE ALL"],
    "CLOSE": ["CLOSE ALL"],
    "COPY": ["COPY visits TO STDOUT"],
    "INSERT": ["INSERT INTO visits VALUES (1)"],
}


_NEEDED = {StatementKind.SELECT: Permission.ASK, StatementKind.EXPLAIN: Permission.PLAN}
"""What a caller needs for commands that not everybody who has signed in may send."""


def wire_cells() -> Iterator[Cell]:
    """Yields a cell for each command: settings first, without which nothing is asked, and last what resets them."""
    for word in sorted(COMMANDS, key=lambda word: (word != "SET", word in ("RESET", "DISCARD"))):
        if word == "SELECT":
            yield Cell(front="wire", name="extended", permission=Permission.ASK, requests=[(_EXTENDED,)])
        command = COMMANDS[word]
        texts = _STATEMENTS.get(word, [word if command.kind is not StatementKind.REFUSED else f"{word} visits"])
        catalog = word == "VALUES"
        permission = None if catalog else _NEEDED.get(command.kind)
        yield Cell(front="wire", name=word, permission=permission, requests=[(text,) for text in texts])


_TEXT = b"SELECT COUNT(*) AS n FROM visits WHERE age > $1\0"
_EXTENDED = (
    (b"P", b"\0" + _TEXT + struct.pack("!hi", 1, 23)),
    (b"B", b"\0\0" + struct.pack("!hhi", 0, 1, 2) + b"40" + struct.pack("!h", 0)),
    (b"D", b"P\0"),
    (b"E", b"\0" + struct.pack("!i", 0)),
    (b"S", b""),
)
"""A question with a parameter: parsed, bound, described and executed."""


# ------------------------------------------------------------------------------------------------------------ runs


async def outcomes(made: Whole, role: ServiceRole, only: str = "") -> dict[str, tuple[Cell, list[bytes]]]:
    """Returns all bytes that a role gets for each cell, on all front ends; what it may not do changes nothing."""
    about = targets(made, role)
    connection, greeting = await Connection.opened(made.wire(), made.keys[role][0])
    clients = _Clients(role, made.browser(role), connection)
    found = {"wire hello": (_HELLO, [greeting])}
    for cell in (*api_cells(made, about), *page_cells(about), *wire_cells()):
        if only and cell.label not in only.split(", "):
            continue
        before = made.entries(), len(made.desk.done)
        got = [await _got(made, clients, cell.front, request) for request in cell.requests]
        found[cell.label] = cell, got
        if not allowed(cell, role):
            assert (made.entries(), len(made.desk.done)) == before, cell.label
    await connection.close()
    await made.closed()
    return found


_HELLO = Cell(front="wire", name="hello", permission=None, requests=())


def allowed(cell: Cell, role: ServiceRole) -> bool:
    """Tells whether a role may, by the written table of this file's own and not by the service's."""
    return cell.permission is None or cell.permission in ALLOWED[role]


_SEEN = {Permission.SEE_TABLES, Permission.SEE_OWN}
ALLOWED = {
    ServiceRole.OWNER: set(Permission),
    ServiceRole.STEWARD: set(Permission),
    ServiceRole.ANALYST: _SEEN | {Permission.PLAN, Permission.ASK},
    ServiceRole.AUDITOR: _SEEN | {Permission.SEE_ALL, Permission.VERIFY},
}


@dataclass(frozen=True, slots=True)
class _Clients:
    """What somebody sends requests with: a key of their role's, a browser, and a connection of the wire."""

    role: ServiceRole
    browser: Browser
    connection: Connection


async def _got(made: Whole, clients: _Clients, front: str, request: tuple[Any, ...]) -> bytes:
    browser, connection = clients.browser, clients.connection
    if front == "wire":
        text = request[0]
        return await (connection.send(text) if isinstance(text, str) else connection.exchange(*text))
    method, path, sent = request
    if front == "api":
        return written(await made.call(clients.role, method, path, json=sent))
    if path == "/protect/upload":
        files = {"csrf": (None, browser.csrf), "file": ("x.csv", b"a\n1\n")}
        return written(await made.visit(browser, method, path, files=files, headers={"content-type": _MULTIPART}))
    return written(await made.visit(browser, method, path, data=sent))


_EXPIRED = re.compile(rb"expires=[^;]+;")
_MULTIPART = "multipart/form-data; boundary=fixed"


def written(response: httpx.Response) -> bytes:
    """A whole response, from its status to its last byte; when an ended cookie has expired is the clock's."""
    lines = [str(response.status_code).encode()]
    lines += [name + b": " + _EXPIRED.sub(b"", value) for name, value in response.headers.raw]
    return b"\n".join(lines) + b"\n\n" + response.content


def status(got: bytes) -> int:
    """The status of a written response."""
    return int(got[:3])
