"""Requests that are understood: what reaches the desk, and what comes back."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
import pytest

from discreet import errors
from discreet.errors import DiscreetError
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.presentation.documents.error_documents import read_error
from discreet.service.api.http_responses import STATUS, status_of
from discreet.service.api.metrics_listener import create_metrics_app
from discreet.service.caller import ServiceRole
from discreet.service.request_executor import OPERATIONS, Operation
from tests.presentation.documents.test_error_documents import SPECIMENS
from tests.service.api.offices import ROLES, Office, answer, office, work

PATHS = {
    "/v1/ask": OPERATIONS["ask"],
    "/v1/ask-many": OPERATIONS["ask_many"],
    "/v1/profile": OPERATIONS["profile"],
    "/v1/fit": OPERATIONS["fit"],
    "/v1/plan-fit": OPERATIONS["plan_fit"],
    "/v1/explain": OPERATIONS["explain"],
    "/v1/rehearse": OPERATIONS["rehearse"],
    "/v1/choose-epsilon": OPERATIONS["choose_epsilon"],
}


def served(test: Callable[[Office], Awaitable[None]], **how: Any) -> Office:
    made = office(**how)
    asyncio.run(test(made))  # type: ignore[arg-type]  # every test is a coroutine
    return made


@pytest.mark.parametrize(("path", "operation"), PATHS.items())
def test_work_reaches_the_desk_as_it_was_sent(path: str, operation: Operation) -> None:
    body = work(operation)

    async def test(made: Office) -> None:
        async with made.client() as client:
            got = await client.post(path, json={**body, "project": "flu"}, headers={"Idempotency-Key": "a word"})
        assert got.status_code == 200, got.text
        ((caller, seen),) = made.desk.seen
        assert (caller.name, caller.credential) == ("analyst", made.ids[ServiceRole.ANALYST])
        assert (seen.operation, seen.key, seen.project) == (operation, "a word", "flu")
        assert seen.arguments == body

    served(test)


def test_amounts_are_kept_as_they_are_written() -> None:
    text = '{"sql":"SELECT 1","epsilon":0.1000000000000000055511151231257827,"delta":1e-7,"confidence":"19/20"}'

    async def test(made: Office) -> None:
        async with made.client() as client:
            got = await client.post("/v1/ask", content=text, headers={"Content-Type": "application/json"})
        assert got.status_code == 200, got.text
        ((_, seen),) = made.desk.seen
        assert seen.arguments == {
            "sql": "SELECT 1",
            "epsilon": "0.1000000000000000055511151231257827",
            "delta": "1e-7",
            "confidence": "19/20",
        }
        json.dumps(seen.arguments)

    served(test)


def test_parameters_of_every_kind() -> None:
    given = [1, 2.5, "a", None, True, {"date": "2026-03-01"}, {"timestamp": "2026-03-01T12:00:00"}]

    async def test(made: Office) -> None:
        async with made.client() as client:
            body = {"sql": "SELECT 1", "epsilon": 1, "parameters": given, "limits": {"groups": 2}, "other": "rest"}
            assert (await client.post("/v1/ask", json=body)).status_code == 200
            body["parameters"], body["limits"] = {"a": 1}, "choose"
            assert (await client.post("/v1/ask", json=body)).status_code == 200
        (_, first), (_, second) = made.desk.seen
        assert json.loads(json.dumps(first.arguments["parameters"])) == given
        assert first.arguments["limits"] == {"groups": 2}
        assert (second.arguments["parameters"], second.arguments["limits"]) == ({"a": 1}, "choose")

    served(test)


def test_answers_leave_in_three_forms() -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            body = work(OPERATIONS["ask"])
            as_json = await client.post("/v1/ask", json=body)
            as_csv = await client.post("/v1/ask", json=body, headers={"Accept": "text/csv"})
            accept = {"Accept": "application/vnd.apache.arrow.stream"}
            as_arrow = await client.post("/v1/ask", json=body, headers=accept)
        assert str(ANSWER.read(as_json.json())) == str(answer())
        assert as_csv.text == "ward,n,n_low,n_high\n'=A,3,1,5\nB,7,5,9\n"
        assert as_csv.headers["Discreet-Cost"] == "epsilon=0.1, 10 % of the budget"
        table = pa.ipc.open_stream(io.BytesIO(as_arrow.content)).read_all()
        assert table.column("n").to_pylist() == [3, 7]
        assert json.loads(table.schema.metadata[b"discreet"])["cost"]["epsilon"] == "0.1"

    served(test)


def test_a_form_that_cannot_be_had_is_refused_before_anything_is_paid() -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            got = await client.post("/v1/ask", json=work(OPERATIONS["ask"]), headers={"Accept": "image/png"})
        assert (got.status_code, made.desk.seen) == (406, [])

    served(test)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("error", SPECIMENS, ids=lambda error: type(error).__name__)
def test_errors_leave_as_what_they_are(error: DiscreetError) -> None:
    async def test(made: Office) -> None:
        made.desk.error = error
        async with made.client() as client:
            got = await client.post("/v1/ask", json=work(OPERATIONS["ask"]))
        assert got.status_code == status_of(error)
        again = read_error(got.json())
        assert (type(again), str(again)) == (type(error), str(error))
        assert got.headers.get("Retry-After") == (str(getattr(error, "retry_after", 0) or "") or None)

    served(test)


def test_every_class_of_errors_has_a_status() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DiscreetError)]
    assert set(kinds) <= set(STATUS)
    refusals = (errors.InvalidParameter, errors.UnsupportedQuery, errors.UnsupportedEvent, errors.InvalidValue)
    assert {STATUS[kind] for kind in refusals} == {422}
    assert STATUS[errors.QueryFailed] not in (422, 500, 502, 503, 504)  # a charge stays, and nobody repeats it unasked


def test_a_fault_tells_its_kind_to_the_log_and_nothing_to_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def test(made: Office) -> None:
        made.desk.error = KeyError("ZZ-CANARY-7")
        async with made.client() as client:
            got = await client.post("/v1/ask", json=work(OPERATIONS["ask"]))
        assert (got.status_code, got.json()["error"]) == (500, "InternalError")
        assert got.json()["request_id"] == got.headers["X-Request-Id"]
        assert "ZZ-CANARY-7" not in got.text

    with caplog.at_level("DEBUG"):
        served(test)
    assert "ZZ-CANARY-7" not in caplog.text
    assert "KeyError" in caplog.text


def test_jobs_are_begun_looked_at_followed_and_cancelled() -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            begun = await client.post("/v1/ask", json={**work(OPERATIONS["ask"]), "wait": False})
            assert begun.status_code == 202
            place = begun.headers["Location"]
            assert (await client.get(place)).json()["state"] == "queued"
            events = (await client.get(f"{place}/events")).text
            told = [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: ")]
            assert [each["state"] for each in told] == ["queued", "running", "done"]
            assert ANSWER.read(told[-1]["document"]).columns == answer().columns
            assert (await client.delete(place)).json()["state"] == "cancelled"

    served(test)


@pytest.mark.parametrize("how", ["get", "delete", "events"])
def test_somebody_elses_job_is_no_job(how: str) -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            place = (await client.post("/v1/fit", json={**work(OPERATIONS["fit"]), "wait": False})).headers["Location"]
        async with made.client(ServiceRole.STEWARD) as other:
            got = await (other.delete(place) if how == "delete" else other.get(place + "/events" * (how == "events")))
            none = await other.get("/v1/jobs/none")
        assert got.status_code == none.status_code == 404
        assert got.json() == none.json()

    served(test)


def test_a_revoked_key_stops_what_it_waits_for() -> None:
    async def test(made: Office) -> None:
        made.desk.hold = asyncio.Event()
        async with made.client() as client:
            waiting = asyncio.ensure_future(client.post("/v1/ask", json=work(OPERATIONS["ask"])))
            place = (await client.post("/v1/fit", json={**work(OPERATIONS["fit"]), "wait": False})).headers["Location"]
            following = asyncio.ensure_future(client.get(f"{place}/events"))
            while len(made.desk.seen) < 2:
                await asyncio.sleep(0)
            made.identities.revoke_key(made.identities.local, made.ids[ServiceRole.ANALYST])
            assert (await waiting).status_code == 401
            assert "done" not in (await following).text
            assert (await client.get(place)).status_code == 401

    served(test)


def test_tables_are_those_that_the_key_is_for() -> None:
    async def test(made: Office) -> None:
        _, narrow = made.identities.make_key(made.identities.local, "ana", ServiceRole.ANALYST, tables=["wards"])
        async with made.client(None, Authorization=f"Bearer {narrow}") as client:
            assert [each["name"] for each in (await client.get("/v1/tables")).json()["tables"]] == ["wards"]
            assert (await client.get("/v1/tables/wards")).json()["name"] == "wards"
            hidden, unknown = await client.get("/v1/tables/visits"), await client.get("/v1/tables/vixits")
            assert hidden.status_code == unknown.status_code == 404
            assert hidden.json()["known"] == ["wards"]

    served(test)


def test_stewards_act_under_their_own_name() -> None:
    async def test(made: Office) -> None:
        async with made.client(ServiceRole.STEWARD) as client:
            got = await client.post("/v1/accounts/patients/amend", json={"budget": {"epsilon": 2.5}, "note": "more"})
            assert got.json() == {
                "act": "amend",
                "by": "steward",
                "account": "patients",
                "budget": {"epsilon": "5/2"},
                "note": "more",
            }
            got = await client.post("/v1/appointments", json={"who": "ana", "role": "analyst", "account": "patients"})
            assert (got.json()["by"], got.json()["account"]) == ("steward", "patients")
            got = await client.post("/v1/accounts/patients/allotments", json={"project": "flu", "cap": {"rho": "1/3"}})
            assert got.json()["cap"] == {"rho": "1/3", "delta": "0/1"}
            for path, body in (("renew", {}), ("unlock", {"note": "seen"})):
                assert (await client.post(f"/v1/accounts/patients/{path}", json=body)).status_code == 200
            for path in ("budget", "history?after=3&limit=2", "certificates/4", "anchor"):
                assert (await client.get(f"/v1/{path}")).status_code == 200
            assert (await client.post("/v1/verify")).json()["head"].startswith("3:")

    served(test)


def test_people_and_keys_are_made_and_ended() -> None:
    async def test(made: Office) -> None:
        async with made.client(ServiceRole.STEWARD) as client:
            assert (await client.post("/v1/people", json={"name": "ana", "role": "analyst"})).json()["name"] == "ana"
            new = (await client.post("/v1/keys", json={"name": "ana", "tables": ["visits"], "expires_days": 1})).json()
            assert new["key"] not in (await client.get("/v1/keys")).text
            async with made.client(None, Authorization=f"Bearer {new['key']}") as ana:
                assert (await ana.get("/v1/tables")).status_code == 200
                other = (await ana.post(f"/v1/keys/{new['id']}/rotate", json={})).json()
                assert (await ana.get("/v1/tables")).status_code == 401
            assert (await client.delete(f"/v1/keys/{other['id']}")).json()["keys"][0]["revoked"]
            assert (await client.delete("/v1/people/ana")).json()["disabled"]
            refused = await client.post("/v1/people", json={"name": "eve", "role": "steward"})
            assert refused.status_code == 403

    served(test)


def test_health_needs_no_key_and_tells_nothing() -> None:
    async def test(made: Office) -> None:
        async with made.client(None) as client:
            assert (await client.get("/healthz")).json() == {"alive": True}
            assert (await client.get("/readyz")).status_code == 200
            made.desk.ready = False
            assert (await client.get("/readyz")).status_code == 503
            made.desk.ready, made.desk.ledger = True, False
            found = await client.get("/readyz")
            assert (found.status_code, found.headers["Retry-After"]) == (503, "5")
            assert "ledger" in found.text

    served(test)


@pytest.mark.ci
def test_metrics_are_for_stewards_and_name_nobody() -> None:
    async def test(made: Office) -> None:
        async with made.client() as client:
            await client.post("/v1/ask", json={"sql": "SELECT 'ZZ-CANARY-7'", "epsilon": 1})
            await client.get("/v1/jobs/ZZ-CANARY-7")
            await client.get("/v1/ZZ-CANARY-7")
        made.app = create_metrics_app(made.metrics, made.identities)  # type: ignore[assignment]  # another listener
        found = {}
        for role in (None, *ROLES):
            async with made.client(role) as client:
                found[role] = await client.get("/metrics")
        text = found[ServiceRole.STEWARD].text
        assert found[None].status_code == 401
        assert found[ServiceRole.ANALYST].status_code == found[ServiceRole.AUDITOR].status_code == 403
        assert 'discreet_requests_total{route="/v1/ask",status="200"} 1.0' in text
        assert "discreet_waiting 3.0" in text
        for secret in ("ZZ-CANARY-7", "analyst", made.ids[ServiceRole.ANALYST], made.keys[ServiceRole.ANALYST]):
            assert secret not in text

    served(test)


def test_a_log_has_one_line_for_each_request_and_nothing_that_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def test(made: Office) -> None:
        async with made.client(ServiceRole.ANALYST) as client:
            await client.post(
                "/v1/ask?x=ZZ-CANARY-7", json={"sql": "ZZ-CANARY-7", "epsilon": 1, "project": "ZZ-CANARY-7"}
            )
            await client.get("/v1/people")
            await client.get("/v1/jobs/ZZ-CANARY-7")
        async with made.client(None, Authorization="Bearer ZZ-CANARY-7") as client:
            await client.post("/v1/ask", json={})

    with caplog.at_level("INFO", logger="discreet.service.http"):
        made = served(test)
    lines = [json.loads(each.message) for each in caplog.records if each.name == "discreet.service.http"]
    assert [(each["route"], each["status"], each["role"], each["error"]) for each in lines] == [
        ("/v1/ask", 200, "analyst", ""),
        ("/v1/people", 403, "analyst", "NotPermitted"),
        ("/v1/jobs/{job}", 404, "analyst", "UnknownJob"),
        ("/v1/ask", 401, "", "NotAuthenticated"),
    ]
    assert lines[0]["credential"] == made.ids[ServiceRole.ANALYST]
    assert "ZZ-CANARY-7" not in caplog.text
    assert made.keys[ServiceRole.ANALYST] not in caplog.text
