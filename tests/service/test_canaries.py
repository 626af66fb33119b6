"""Data, literals of questions, keys and tokens are in no log, no metric, no error of others, and no identities file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.service.caller import ServiceRole
from tests.service.whole_service import CANARY, ORIGIN, Connection, Whole, whole

ANALYST, STEWARD, AUDITOR = ServiceRole.ANALYST, ServiceRole.STEWARD, ServiceRole.AUDITOR
LITERAL = f"SELECT COUNT(*) AS n FROM visits WHERE remark = '{CANARY}'"
SENT = (
    LITERAL,
    "SELECT remark, COUNT(*) AS n FROM visits GROUP BY remark",
    f"SELECT '{CANARY}' FROM visits",
    f'SELECT COUNT(*) AS "{CANARY}" FROM "{CANARY}"',
    f"SELECT COUNT(*) FROM visits WHERE remark = {CANARY}'",
    f"{CANARY}",
)
"""Answered and refused ones, each with a literal that nobody else may see; rows of the table hold it as well."""


class Seen(logging.Handler):
    """Keeps all lines that the service writes, with whatever they hold."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(("httpx", "httpcore")):  # the client of this test
            self.lines.append(logging.Formatter().format(record))


@pytest.fixture
def seen() -> Iterator[Seen]:
    handler, root = Seen(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


async def drive(made: Whole) -> None:
    """Sends canaries to all front ends: in questions, in names, in what proves nothing; and lets work fail on them."""
    browser = made.browser(ANALYST)
    connection, _ = await Connection.opened(made.wire(), made.keys[ANALYST][0])
    await connection.send("SET discreet.epsilon = 0.1")
    for failing in (None, RuntimeError(CANARY)):
        made.desk.failing = failing
        for sql in SENT:
            asked = {"sql": sql, "epsilon": "0.1", "delta": "1e-7"}
            for path in ("/v1/ask", "/v1/explain"):
                await made.call(ANALYST, "POST", path, json=asked, headers={"idempotency-key": CANARY})
            for path in ("/ask", "/explain", "/rehearse"):
                await made.visit(browser, "POST", path, data={"sql": sql, "epsilon": "0.1"})
            if failing is None:  # what is none of ours ends a connection
                await connection.send(sql)
                await connection.send(f"EXPLAIN {sql}")
    assert b"CXX000\0" in await connection.send(LITERAL.replace("COUNT(*)", "COUNT(age)"))
    made.desk.failing = None
    await made.call(ANALYST, "GET", f"/v1/tables/{CANARY}", headers={"x-much": CANARY})
    await made.call(ANALYST, "GET", f"/{CANARY}?{CANARY}={CANARY}")
    await made.call(STEWARD, "POST", "/v1/people", json={"name": CANARY + "\n", "role": "analyst"})
    await made.call(STEWARD, "POST", "/v1/people", json={"name": "x", "role": "analyst", CANARY: CANARY})
    await made.send("POST", "/v1/ask", content=CANARY, headers={"authorization": f"Bearer dk_{CANARY}"})
    await made.send("POST", "/sign-in", data={"token": CANARY, "key": CANARY}, headers={"origin": ORIGIN})
    await made.visit(made.browser(STEWARD), "POST", "/protect/path", data={"path": f"../{CANARY}.csv"})
    await made.send("GET", "/ask", headers={"cookie": f"discreet-session={CANARY}"})
    await connection.close()
    await made.closed()


@pytest.mark.ci
def test_canaries_are_in_no_log_and_in_no_metric(tmp_path: Path, seen: Seen) -> None:
    with whole(tmp_path / "service", [], again=False) as made:
        asyncio.run(drive(made))
        secrets = (CANARY, *(text for _, text in made.keys.values()), *made.links)
        text = "\n".join(seen.lines)
        assert len(seen.lines) > 60
        assert [each for each in secrets if each in text] == []
        assert [each for each in secrets if each in made.metrics.text().decode()] == []
        assert 'status="401"' in made.metrics.text().decode()


def test_errors_tell_nothing_of_others(tmp_path: Path) -> None:
    async def test(made: Whole) -> None:
        asked = {"sql": LITERAL, "epsilon": "0.1"}
        assert (
            await made.call(STEWARD, "POST", "/v1/ask", json=asked, headers={"idempotency-key": "k"})
        ).status_code == 200
        job = (await made.call(STEWARD, "POST", "/v1/ask", json={**asked, "wait": False})).json()["id"]
        charge = next(entry for entry in made.desk.curator.entries() if entry.kind == "charge")
        browser = made.browser(ANALYST)
        other: dict[str, Any] = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}
        got = [
            await made.call(ANALYST, "GET", f"/v1/jobs/{job}"),
            await made.call(ANALYST, "GET", f"/v1/certificates/{charge.sequence}"),
            await made.call(ANALYST, "POST", "/v1/ask", json=other, headers={"idempotency-key": "k"}),
            await made.call(ANALYST, "GET", "/v1/history?analyst=stella"),
            await made.call(ANALYST, "GET", "/v1/keys"),
            await made.visit(browser, "GET", f"/certificates/{charge.sequence}"),
            await made.visit(browser, "GET", "/answers/1"),
            await made.visit(browser, "GET", "/history?who=stella"),
        ]
        assert [each.status_code for each in got] == [404, 404, 200, 200, 200, 404, 422, 200]
        assert [each.url for each in got if CANARY in each.text or made.keys[STEWARD][0] in each.text] == []
        own = await made.call(STEWARD, "GET", f"/v1/certificates/{charge.sequence}")
        assert CANARY in own.text  # it would be seen if it were there

    with whole(tmp_path / "service", [], again=False) as made:
        asyncio.run(test(made))


def test_the_identities_file_holds_no_secret(tmp_path: Path) -> None:
    with whole(tmp_path / "service", [], again=False) as made:
        browser = made.browser(ANALYST)
        secrets = (
            [text for _, text in made.keys.values()] + made.links + [browser.cookie.partition("=")[2], browser.csrf]
        )
        secrets += [text.rpartition("_")[2] for _, text in made.keys.values()]
        files = [path for path in (tmp_path / "service").iterdir() if path.name.startswith("identities")]
        stored = b"".join(path.read_bytes() for path in files)
        assert made.keys[ANALYST][0].encode() in stored  # the public id is there
        assert [each for each in secrets if each.encode() in stored or bytes.fromhex(_hex(each)) in stored] == []


def _hex(text: str) -> str:
    """The digits of a secret, as bytes would be kept; its text where it is no such number."""
    digits = text.rpartition("_")[2]
    return (
        digits if len(digits) % 2 == 0 and all(each in "0123456789abcdef" for each in digits) else text.encode().hex()
    )
