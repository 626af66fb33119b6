"""Requests that are refused: without a key, beyond the sizes, with tricks; nothing reaches the desk."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from discreet.errors import InternalError
from discreet.requests.verb_table import VERBS
from discreet.service.api.http_guard import MOST_BODY, MOST_HEADERS, SECURITY_HEADERS
from discreet.service.api.request_bodies import DEEPEST, LONGEST_SQL
from discreet.service.api.route_access import NEEDS, RouteRequirement, SecuredRoute
from discreet.service.caller import PERMISSIONS, ServiceRole
from discreet.service.request_executor import OPERATIONS
from discreet.service.settings import Settings
from tests.service.api.offices import HOST, ROLES, Office, office, work

JSON = {"Content-Type": "application/json"}


def served(test: Callable[[Office], Awaitable[None]], **how: Any) -> None:
    asyncio.run(test(office(**how)))  # type: ignore[arg-type]  # every test is a coroutine


async def raw(
    made: Office, headers: list[tuple[bytes, bytes]], *bodies: bytes, path: str = "/v1/ask"
) -> dict[str, Any]:
    """A request as a server hands it over, whatever clients would make of it."""
    messages = [
        {"type": "http.request", "body": body, "more_body": place < len(bodies) - 1}
        for place, body in enumerate(bodies)
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    more = {"headers": headers, "http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1), "root_path": ""}
    await made.app({**scope, **more, "server": (HOST, 80), "asgi": {"version": "3.0"}}, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return {"status": sent[0]["status"], "headers": dict(sent[0]["headers"]), "json": json.loads(body)}


def shown(made: Office, *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    key = made.keys[ServiceRole.ANALYST].encode()
    own = [(b"host", HOST.encode()), (b"authorization", b"Bearer " + key), (b"content-type", b"application/json")]
    return [*own, *more]


@pytest.mark.parametrize(
    "header",
    [
        *("", "Bearer", "Bearer ", "Basic abc", "Bearer dk_x", "bearer  {key}", "{key}", "Bearer {key} "),
        *("Bearer {key}x", "Bearer {key}\tx", "Bearer " + "x" * 5000, "Token {key}", "Bearer {key},Bearer {key}"),
        "Bearer \xff\xfe",
    ],
)
def test_what_is_no_key_proves_nothing(header: str) -> None:
    async def test(made: Office) -> None:
        text = header.format(key=made.keys[ServiceRole.ANALYST]).encode("latin-1")
        headers = [(b"host", HOST.encode()), (b"content-type", b"application/json")]
        got = await raw(made, [*headers, *([(b"authorization", text)] if text else [])], b"{not even JSON")
        assert (got["status"], got["json"]["error"]) == (401, "NotAuthenticated")
        assert got["headers"][b"www-authenticate"].startswith(b"Bearer")
        assert not made.desk.seen

    served(test)


def test_a_key_in_the_address_or_a_cookie_is_not_looked_at() -> None:
    async def test(made: Office) -> None:
        key = made.keys[ServiceRole.ANALYST]
        async with made.client(None) as client:
            for query in ("key", "access_token", "authorization"):
                assert (await client.get(f"/v1/tables?{query}={key}")).status_code == 401
            client.cookies.set("key", key)
            assert (await client.get("/v1/tables")).status_code == 401

    served(test)


def test_a_foreign_an_expired_and_a_revoked_key() -> None:
    async def test(made: Office) -> None:
        other = office()
        late, revoked = made.keys[ServiceRole.STEWARD], made.keys[ServiceRole.ANALYST]
        made.identities.revoke_key(made.identities.local, made.ids[ServiceRole.ANALYST])
        for key in (other.keys[ServiceRole.ANALYST], revoked):
            async with made.client(None, Authorization=f"Bearer {key}") as client:
                assert (await client.get("/v1/tables")).status_code == 401
        made.identities.clock = lambda: 4e9
        async with made.client(None, Authorization=f"Bearer {late}") as client:
            assert (await client.get("/v1/tables")).status_code == 401

    served(test)


TWICE = [b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"transfer-encoding"]


@pytest.mark.parametrize("name", TWICE)
def test_a_header_that_stands_there_twice_is_refused(name: bytes) -> None:
    async def test(made: Office) -> None:
        body = json.dumps(work(OPERATIONS["ask"])).encode()
        first = dict(shown(made)).get(name, b"5")
        headers = [each for each in shown(made) if each[0] != name]
        got = await raw(made, [*headers, (name, first), (name, first)], body)
        assert (got["status"], made.desk.seen) == (431, [])

    served(test)


def test_two_lengths_of_one_body_are_refused() -> None:
    async def test(made: Office) -> None:
        headers = shown(made, (b"content-length", b"5"), (b"transfer-encoding", b"chunked"))
        assert (await raw(made, headers, b"{}"))["status"] == 431

    served(test)


@pytest.mark.parametrize("length", [b"-1", b"1e9", b"9" * 40, b"+5", b"", b"0x10"])
def test_a_length_that_is_no_number_is_refused(length: bytes) -> None:
    async def test(made: Office) -> None:
        assert (await raw(made, shown(made, (b"content-length", length)), b"{}"))["status"] == 413

    served(test)


def test_large_bodies_are_refused_by_what_they_say_and_by_what_they_are() -> None:
    async def test(made: Office) -> None:
        said = await raw(made, shown(made, (b"content-length", b"10000000")), b"")
        chunks = [b" " * 65536] * 160  # 10 MB, of which no more is read than the limit
        unsaid = await raw(made, shown(made), *chunks)
        assert said["status"] == unsaid["status"] == 413
        assert said["json"]["error"] == "ServiceError"
        inside = json.dumps({**work(OPERATIONS["ask"]), "sql": "x" * (MOST_BODY // 2)}).encode()
        got = await raw(made, shown(made), inside)
        assert (got["status"], got["json"]["name"]) == (422, "sql")
        assert len(json.dumps(got["json"])) < 1000
        assert not made.desk.seen

    served(test)


def test_the_longest_question_is_taken() -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            for extra, status in ((0, 200), (1, 422)):
                body = {"sql": "x" * (LONGEST_SQL + extra), "epsilon": 1}
                assert (await client.post("/v1/ask", json=body)).status_code == status

    served(test)


def test_large_headers_are_refused() -> None:
    async def test(made: Office) -> None:
        got = await raw(made, shown(made, (b"x", b"y" * MOST_HEADERS)), b"{}")
        assert got["status"] == 431

    served(test)


@pytest.mark.parametrize(
    "host", [b"evil.example", b"localhost.evil.example", b"", b"localhost:80:80", b"localhost@evil", b"\xff", b"[::2]"]
)
def test_a_foreign_host_is_refused(host: bytes) -> None:
    async def test(made: Office) -> None:
        headers = [(b"host", host), *shown(made)[1:]]
        for path in ("/v1/ask", "/healthz", "/"):
            got = await raw(made, headers, b"{}", path=path)
            assert (got["status"], made.desk.seen) == (421, [])
        assert (await raw(made, shown(made)[1:], b"{}"))["status"] == 421

    served(test)


@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:8642", b"127.0.0.1:9", b"[::1]:8642", b"data.example"])
def test_the_services_own_names_are_served(host: bytes) -> None:
    async def test(made: Office) -> None:
        body = json.dumps(work(OPERATIONS["ask"])).encode()
        assert (await raw(made, [(b"host", host), *shown(made)[1:]], body))["status"] == 200

    served(test, settings=Settings(hosts=("localhost", "127.0.0.1", "::1", "Data.Example")))


BODIES = [
    b"",
    b"{",
    b"\xff\xfe",
    b'{"sql": "x", "sql": "y"}',
    b'{"sql": "x", "parameters": {"a": 1, "a": 2}}',
    b'{"epsilon": NaN}',
    b'{"epsilon": Infinity}',
    b'{"epsilon": -Infinity}',
    b'{"epsilon": 1e999}',
    b'{"epsilon": ' + b"9" * 5000 + b"}",
    b"[" * 2000 + b"]" * 2000,
    b'{"a":' * (DEEPEST + 1) + b"1" + b"}" * (DEEPEST + 1),
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_body_that_is_no_json_of_one_meaning(body: bytes) -> None:
    async def test(made: Office) -> None:
        got = await raw(made, shown(made), body)
        assert got["status"] == (422 if body == b"" else 400)
        assert not made.desk.seen

    served(test)


@pytest.mark.parametrize("kind", [b"", b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data"])
def test_a_body_of_another_type_is_refused(kind: bytes) -> None:
    async def test(made: Office) -> None:
        headers = [*shown(made)[:2], *([(b"content-type", kind)] if kind else [])]
        got = await raw(made, headers, json.dumps(work(OPERATIONS["ask"])).encode())
        assert (got["status"], made.desk.seen) == (415, [])

    served(test)


FIELDS: list[dict[str, Any]] = [
    {"analyst": "owner"},
    {"key": "x"},
    {"by": "owner"},
    {"sql": None},
    {"sql": ["SELECT 1"]},
    {"sql": ""},
    {"epsilon": True},
    {"epsilon": "NaN"},
    {"epsilon": "inf"},
    {"epsilon": "1e9999"},
    {"epsilon": " 1"},
    {"epsilon": "1\n"},
    {"epsilon": {"a": 1}},
    {"epsilon": "1_0"},
    {"delta": "٣"},
    {"limits": {"groups": 0}},
    {"limits": {"groups": "2"}},
    {"limits": "pick"},
    {"wait": "no"},
    {"project": 5},
    {"project": "x" * 201},
    {"parameters": [{"date": "x"}]},
    {"parameters": [[1]]},
    {"parameters": "x"},
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_fields_that_do_not_fit_are_refused_by_name(fields: dict[str, Any]) -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            got = await client.post("/v1/ask", json={**work(OPERATIONS["ask"]), **fields})
        assert (got.status_code, got.json()["error"], made.desk.seen) == (422, "InvalidParameter", [])
        assert got.json()["name"].partition(".")[0] in fields

    served(test)


@pytest.mark.parametrize("key", [b"", b" ", b"x" * 201, b"a\x7fb", b"\xff\x00"])
def test_an_idempotency_key_that_is_no_word(key: bytes) -> None:
    async def test(made: Office) -> None:
        headers = shown(made, (b"idempotency-key", key))
        got = await raw(made, headers, json.dumps(work(OPERATIONS["ask"])).encode())
        assert (got["status"], made.desk.seen) == (422, [])

    served(test)


@pytest.mark.ci
def test_unknown_addresses_and_methods_are_told_alike() -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            for path in ("/", "/v1", "/v1/", "/v1/ask/", "/v2/ask", "/docs", "/v1/../v1/tables/..", "/v1/%2e%2e/etc"):
                got = await client.get(path)
                assert (got.status_code, got.json()["error"]) == (404, "ServiceError"), path
            got = await client.get("/v1/ask")
            assert (got.status_code, got.json()["error"], got.headers["Allow"]) == (405, "ServiceError", "POST")

    served(test)


@pytest.mark.ci
def test_there_is_no_cors_and_browsers_are_told_to_keep_out() -> None:
    async def test(made: Office) -> None:
        asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        async with made.client() as client:
            for got in (
                await client.options("/v1/ask", headers=asked),
                await client.get("/v1/tables", headers=asked),
                await client.get("/v1/nowhere", headers=asked),
            ):
                assert not [name for name in got.headers if name.startswith("access-control")]
                for name, value in SECURITY_HEADERS.items():
                    assert got.headers[name.decode()] == value.decode()
                assert "strict-transport-security" not in got.headers

    served(test)


def test_wrong_keys_of_an_address_do_not_lock_out_right_ones() -> None:
    async def test(made: Office) -> None:
        wrong = {"Authorization": f"Bearer dk_{'0' * 16}_{'0' * 40}"}
        async with made.client() as client:
            found = [await client.get("/v1/tables", headers=wrong) for _ in range(5)]
            assert [each.status_code for each in found] == [401, 401, 401, 429, 429]
            assert int(found[-1].headers["Retry-After"]) >= 1
            assert (await client.get("/v1/tables")).status_code == 200
            made.identities.revoke_key(made.identities.local, made.ids[ServiceRole.ANALYST])
            assert (await client.get("/v1/tables")).status_code == 429  # a key that was right is a wrong one

    served(test, failures_per_minute=3)


def test_one_key_asks_only_so_often() -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            found = [await client.get("/v1/tables") for _ in range(5)]
        assert [each.status_code for each in found] == [200, 200, 200, 429, 429]
        assert int(found[-1].headers["Retry-After"]) >= 1

    served(test, requests_per_minute=3)


# ---------------------------------------------------------------------------------------------------- roles and routes

PATHS = {"name": "visits", "job": "none", "sequence": "1", "account": "patients", "key": "none"}
BODY: dict[str, Any] = {
    "/v1/people": {"name": "new", "role": "analyst"},
    "/v1/keys": {"name": "auditor"},
    "/v1/accounts/{account}/amend": {"budget": {"epsilon": 1}},
    "/v1/accounts/{account}/allotments": {"project": "flu", "cap": {"epsilon": 1}},
    "/v1/appointments": {"who": "ana", "role": "analyst"},
    **{f"/v1/{each.value.replace('_', '-')}": work(each) for each in OPERATIONS.values() if each.value in VERBS},
}


@pytest.mark.ci
def test_every_route_says_what_it_needs_and_nothing_else_is_served() -> None:
    made = office()
    described = {each["operationId"] for methods in made.app.openapi()["paths"].values() for each in methods.values()}
    assert described == set(NEEDS)
    assert made.app.openapi()["security"] == [{"key": []}]


def test_a_route_that_says_nothing_cannot_be_made() -> None:
    async def forgotten() -> None: ...

    with pytest.raises(InternalError):
        SecuredRoute("/v1/forgotten", forgotten)


async def cell(made: Office, role: ServiceRole | None, method: str, path: str) -> int:
    place = path.format(**PATHS)
    body = BODY.get(path, {}) if method == "post" else None
    async with made.client(role) as client:
        return (await client.request(method.upper(), place, json=body)).status_code


@pytest.mark.ci
def test_roles_get_what_their_permissions_say_and_nobody_gets_anything() -> None:
    async def test(made: Office) -> None:
        for path, methods in made.app.openapi()["paths"].items():
            for method, told in methods.items():
                need: RouteRequirement = NEEDS[told["operationId"]]
                assert await cell(made, None, method, path) == 401
                for role in ROLES:
                    made.desk.seen.clear()
                    allowed = need.permission in PERMISSIONS[role]
                    status = await cell(made, role, method, path)
                    assert (status not in (401, 403)) is allowed or path in OWN_KEYS, (role, path, status)
                    assert allowed or not made.desk.seen

    served(test)


OWN_KEYS = {"/v1/keys/{key}", "/v1/keys/{key}/rotate", "/v1/people/{name}", "/v1/keys"}
"""Where a role that gets through may still be refused, by whose key or person it is."""
