"""Hostile callers, all in one place: each gets nothing from the whole service, and one line of log without secrets."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from discreet.service.caller import ServiceRole
from discreet.service.identity import Identities
from discreet.service.request_executor import OPERATIONS, JobRequest
from tests.faces.tape import NOW
from tests.service.requests_matrix import COUNT
from tests.service.whole_service import CANARY, HOST, ORIGIN, Whole, whole

ANALYST, STEWARD, AUDITOR = ServiceRole.ANALYST, ServiceRole.STEWARD, ServiceRole.AUDITOR
ASKED = {"sql": COUNT, "epsilon": "0.1"}
TEN_MEGABYTES = "SELECT COUNT(*) FROM visits WHERE remark = '" + CANARY * (10 * 2**20 // len(CANARY)) + "'"
DAY = 86_400


@dataclass(frozen=True)
class Got:
    """What came back: from either way of sending."""

    status: int
    headers: dict[str, str]
    body: bytes


async def raw(
    made: Whole, headers: list[tuple[bytes, bytes]], *, method: str = "POST", path: str = "/v1/ask", body: bytes = b""
) -> Got:
    """A request as a server hands it over, whatever clients would make of it."""
    messages, sent = [{"type": "http.request", "body": body or json.dumps(ASKED).encode()}], list[Any]()

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": place,
        "raw_path": place.encode(),
        "query_string": query.encode(),
    }
    more = {"headers": headers, "http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1), "root_path": ""}
    await made.app({**scope, **more, "server": ("localhost", 8642), "asgi": {"version": "3.0"}}, receive, send)
    told = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return Got(sent[0]["status"], told, b"".join(message.get("body", b"") for message in sent))


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def shown(made: Whole, *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    key = made.keys[ANALYST][1].encode()
    return [
        (b"host", HOST.encode()),
        (b"authorization", b"Bearer " + key),
        (b"content-type", b"application/json"),
        *more,
    ]


Trick = Callable[[Whole], Awaitable[Any]]


def with_key(key: Callable[[Whole], str]) -> Trick:
    return lambda made: made.send("POST", "/v1/ask", json=ASKED, headers=bearer(key(made)))


def foreign(_: Whole) -> str:
    other = Identities(":memory:")
    try:
        return other.make_key(other.local, "ana", ANALYST)[1]
    finally:
        other.close()


def expired(made: Whole) -> str:
    text = made.identities.make_key(made.identities.local, "ana", expires_days=1)[1]
    made.identities.clock = lambda: float(NOW + 2 * DAY)
    return text


def revoked(made: Whole) -> str:
    key_id, text = made.identities.make_key(made.identities.local, "ana")
    made.identities.revoke_key(made.identities.local, key_id)
    return text


def disabled(made: Whole) -> str:
    text = made.identities.make_key(made.identities.local, "left", ANALYST)[1]
    made.identities.disable_person(made.identities.local, "left")
    return text


def without_role(made: Whole) -> str:
    return made.keys[AUDITOR][1]


def other_secret(made: Whole) -> str:
    own, others = made.keys[ANALYST][1], made.keys[STEWARD][1]
    return own.rpartition("_")[0] + "_" + others.rpartition("_")[2]


def of_other_table(made: Whole) -> str:
    return made.identities.make_key(made.identities.local, "ana", tables=["staff"])[1]


def job_of_another(method: str, more: str = "") -> Trick:
    async def trick(made: Whole) -> Any:
        work = JobRequest(operation=OPERATIONS["explain"], arguments=ASKED)
        job = made.desk.begin(made.identities.caller_of_key(made.keys[STEWARD][0]), work)
        return await made.call(ANALYST, method, f"/v1/jobs/{job.id}{more}")

    return trick


def form(path: str = "/ask", sent: dict[str, Any] | None = None, role: ServiceRole = ANALYST, **how: str) -> Trick:
    """A form from a browser that is signed in, with other headers than it should have."""
    given = {name.replace("_", "-"): value for name, value in how.items()}
    return lambda made: made.visit(
        made.browser(role), "POST", path, data=sent or {"sql": COUNT, "epsilon": "0.1"}, headers=given
    )


async def large_form(made: Whole) -> Any:
    return await made.visit(made.browser(ANALYST), "POST", "/ask", content=b"question=" + TEN_MEGABYTES.encode())


async def other_token(made: Whole) -> Any:
    browser, other = made.browser(ANALYST), made.browser(STEWARD)
    browser.csrf = other.csrf
    return await made.visit(browser, "POST", "/ask", data={"sql": COUNT, "epsilon": "0.1"})


async def link_again(made: Whole) -> Any:
    made.browser(ANALYST)
    return await made.send("POST", "/sign-in", data={"token": made.links[-1]}, headers={"origin": ORIGIN})


async def fixed_session(made: Whole) -> Any:
    return await made.send("GET", "/ask", headers={"cookie": "discreet-session=" + "f" * 64})


def protect(path: str) -> Trick:
    return form("/protect/path", {"path": path}, STEWARD)


def source(name: str) -> Trick:
    return lambda made: made.visit(made.browser(STEWARD), "GET", "/protect/declare?source=" + name)


def upload(name: str) -> Trick:
    async def trick(made: Whole) -> Any:
        browser = made.browser(STEWARD)
        files: Any = {"csrf": (None, browser.csrf), "file": (name, b"a\n1\n")}
        return await made.visit(browser, "POST", "/protect/upload", files=files)

    return trick


def body(path: str = "/v1/ask", by_role: ServiceRole = ANALYST, **fields: Any) -> Trick:
    sent = {**ASKED, **fields} if path == "/v1/ask" else fields
    return lambda made: made.call(by_role, "POST", path, json=sent)


def get(path: str, role: ServiceRole | None = ANALYST, **headers: str) -> Trick:
    return lambda made: made.call(role, "GET", path, headers={n.replace("_", "-"): v for n, v in headers.items()})


def more(*headers: tuple[bytes, bytes]) -> Trick:
    return lambda made: raw(made, shown(made, *headers))


def key_value(value: Callable[[bytes], bytes]) -> Trick:
    def trick(made: Whole) -> Any:
        own = value(made.keys[ANALYST][1].encode())
        headers = [(b"host", HOST.encode()), (b"authorization", own), (b"content-type", b"application/json")]
        return raw(made, headers)

    return trick


TRICKS: dict[str, tuple[int, Trick]] = {
    "no key": (401, get("/v1/tables", None)),
    "no role": (403, with_key(without_role)),
    "no role, on the page": (403, form(role=AUDITOR)),
    "somebody who was disabled": (401, with_key(disabled)),
    "an expired key": (401, with_key(expired)),
    "a revoked key": (401, with_key(revoked)),
    "a key of another service": (401, with_key(foreign)),
    "an id with another's secret": (401, with_key(other_secret)),
    "a key for another table": (404, with_key(of_other_table)),
    "a key in the address": (401, lambda made: made.send("GET", f"/v1/tables?key={made.keys[ANALYST][1]}")),
    "a key in a cookie": (401, lambda made: made.send("GET", "/v1/tables", headers={"cookie": made.keys[ANALYST][1]})),
    "a session for a key": (
        401,
        lambda made: made.send("GET", "/v1/tables", headers={"cookie": made.browser(ANALYST).cookie}),
    ),
    "a name of a proxy's": (401, get("/v1/tables", None, x_forwarded_user="owner", x_remote_user="owner")),
    "another's job": (404, job_of_another("GET")),
    "another's events": (404, job_of_another("GET", "/events")),
    "an end of another's job": (404, job_of_another("DELETE")),
    "a job that is none": (404, get("/v1/jobs/" + "0" * 31 + "9")),
    "no token": (403, form(x_csrf_token="")),
    "a token of another session": (403, other_token),
    "a foreign origin": (403, form(origin="https://evil.example")),
    "no origin worth the name": (403, form(origin="null")),
    "a port beside ours": (403, form(origin="http://localhost:8643")),
    "a foreign host": (421, get("/v1/tables", host="evil.example")),
    "a rebound host": (421, form(host="evil.example", origin="http://evil.example")),
    "a host with a user": (421, get("/v1/tables", host="localhost@evil.example")),
    "a link used again": (401, link_again),
    "a session of one's own making": (303, fixed_session),
    "ten megabytes of a question": (413, body(sql=TEN_MEGABYTES)),
    "ten megabytes in a form": (422, large_form),
    "two keys": (431, lambda made: raw(made, shown(made, shown(made)[1]))),
    "a line break after the key": (401, key_value(lambda key: b"Bearer " + key + b"\r\nx-role: owner")),
    "a line break before the key": (401, key_value(lambda key: b"Bearer \r\n " + key)),
    "two keys in one header": (401, key_value(lambda key: b"Bearer " + key + b", Bearer " + key)),
    "huge headers": (431, more((b"x-much", b"x" * 20_000))),
    "two lengths": (431, more((b"content-length", b"5"), (b"content-length", b"50"))),
    "a length and pieces": (431, more((b"content-length", b"5"), (b"transfer-encoding", b"chunked"))),
    "a line break in an idempotency key": (422, more((b"idempotency-key", b"a\r\nb"))),
    "a path above the root": (422, protect("../book.ledger")),
    "a table above the root": (422, protect("../../../../etc/passwd.csv")),
    "an absolute path": (422, protect("/etc/passwd")),
    "an address": (422, protect("https://evil.example/visits.csv")),
    "a pattern": (422, protect("*.csv")),
    "a database": (422, protect("visits.duckdb")),
    "a source above the root": (422, source("root/0/../../identities")),
    "an upload that was none": (422, source("upload/../book.ledger")),
    "another root": (422, source("root/7/stays.csv")),
    "an upload of a database": (422, upload("x.duckdb")),
    "an upload with a line break": (422, upload("x.csv\r\nx: y")),
    "a name for the analyst": (422, body(analyst="owner")),
    "a key that the owner fixes": (422, body(key="x")),
    "a name for who acts": (422, body("/v1/people", STEWARD, name="new", role="analyst", by="owner")),
    "an owner of one's own making": (422, body("/v1/people", STEWARD, name="OWNER", role="analyst")),
    "a steward made by a steward": (403, body("/v1/people", STEWARD, name="new", role="steward")),
    "a line break in a name": (422, body("/v1/people", STEWARD, name="new\r\nSet-Cookie: x=y", role="analyst")),
    "a line break in a project": (422, body(project="a\nb")),
    "a line break in a table": (404, get("/v1/tables/a%0d%0aSet-Cookie:%20x=y")),
    "a line break in a form's name": (422, form("/people", {"name": "a\r\nb", "role": "analyst"}, STEWARD)),
    "a certificate of another's": (404, lambda made: made.call(ANALYST, "GET", f"/v1/certificates/{_charge(made)}")),
}


def _charge(made: Whole) -> int:
    made.desk.curator.ask(COUNT, epsilon="0.3", analyst="stella")
    return int(made.desk.curator.entries()[-2].sequence)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with whole(tmp_path_factory.mktemp("hostile") / "service", [], again=False) as made:
        yield made


SECRET = ("dk_", "discreet-session=", CANARY, "evil", "passwd", "Set-Cookie", "SELECT", "\r", "\n")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TRICKS)
def test_a_hostile_caller_gets_nothing(served: Whole, name: str, caplog: pytest.LogCaptureFixture) -> None:
    expected, trick = TRICKS[name]

    async def tried() -> Any:
        before = charged(served)
        got = await trick(served)
        assert charged(served) - before <= {"stella"}
        return got

    clock = served.identities.clock
    with caplog.at_level(logging.DEBUG, logger="discreet"):
        got = asyncio.run(tried())
    served.identities.clock = clock
    seen = [record.getMessage() for record in caplog.records if record.name.startswith("discreet")]
    status, content = (got.status, got.body) if isinstance(got, Got) else (got.status_code, got.content)
    assert status == expected, content
    assert "set-cookie" not in {each.lower() for each in got.headers}
    assert CANARY.encode() not in content
    assert len(content) < 10_000
    assert not got.headers.get("location", "/sign-in?").partition("/sign-in?")[0]
    (line,) = seen
    told = json.loads(line)
    assert told["status"] == expected
    assert told["error"]
    secrets = (*SECRET, *(text for _, text in served.keys.values()), *served.links)
    assert not [each for each in secrets if each in line.replace("/v1/jobs", "")]


def charged(made: Whole) -> set[str]:
    """For whom anything was charged."""
    return {entry.who for entry in made.desk.curator.entries() if entry.kind == "charge"}


def test_history_of_others_is_empty_for_an_analyst(served: Whole) -> None:
    _charge(served)
    got = asyncio.run(served.call(ANALYST, "GET", "/v1/history?analyst=stella"))
    assert [each for each in got.json()["entries"] if each["who"] != "ana"] == []
