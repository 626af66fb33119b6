"""One JSON for one thing: what Python returns, written down, is what HTTP sends and what `discreet.connect` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError

import discreet
from discreet.curator import Curator
from discreet.learn import DecisionTreeClassifier
from discreet.ledger import Caller
from discreet.presentation.documents.result_documents import result_of
from discreet.privacy import Budget
from discreet.requests.request import Request, read_budget
from discreet.requests.verb_table import VERBS, Permission, Queue
from discreet.service.acts import StewardActions
from discreet.service.api.application import create_api
from discreet.service.api.response_models import verb_model
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import ServiceRole
from discreet.service.identity import Identities, RateLimits
from discreet.service.settings import Settings
from tests.cli.clinic import run
from tests.faces.test_neighbours import write
from tests.remote.served import CuratorDesk, Served, running

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
MEAN = "SELECT AVG(age) AS mean FROM visits"
TRAINED = {
    "estimator": DecisionTreeClassifier(epsilon=1),
    "sql": "SELECT age, ward FROM visits",
    "target": "ward",
}
MADE = {"table": "SELECT age, ward FROM visits", "epsilon": 1, "generator": "independent"}
LINKED = {"people": "SELECT kind FROM calls", "events": "SELECT ward FROM visits", "epsilon": 1, "generator": "mst"}
MORE_BUDGET = {"epsilon": 2000, "delta": "1e-4"}
GIVEN: Mapping[str, Mapping[str, Any]] = {
    "ask": {"sql": COUNT, "epsilon": 1},
    "ask_many": {"questions": [COUNT, MEAN], "epsilon": 1},
    "explain": {"sql": COUNT, "epsilon": "1/3"},
    "rehearse": {"sql": COUNT},
    "choose_epsilon": {"sql": COUNT, "candidates": ["0.1", 1]},
    "profile": {"table": "visits", "epsilon": 1, "columns": ["age"]},
    "fit": TRAINED,
    "plan_fit": TRAINED,
    "synthesize": {**MADE, "rows": 20},
    "plan_synthesize": MADE,
    "synthesize_tables": {**LINKED, "rows": 20},
    "plan_synthesize_tables": LINKED,
    "budget": {"name": "visits"},
    "history": {"name": "visits"},
    "verify": {},
    "amend": {"account": "patients", "budget": read_budget(MORE_BUDGET), "note": "more"},
    "renew": {"account": "patients", "budget": read_budget(MORE_BUDGET)},
    "unlock": {"account": "patients"},
    "erase_check": {"table": "visits", "person": "7"},
    "advance": {"table": "visits", "version": "2026-12", "note": "the file of December"},
    "appoint": {"who": "ana", "role": "analyst", "account": "patients", "cap": Budget(epsilon=500, delta="1e-5")},
    "allot": {"project": "flu", "account": "patients", "cap": Budget(epsilon=1, delta="1e-9")},
    "request_approval": {"sql": COUNT, "epsilon": 1, "reason": "a paper"},
    "approve": {"number": 1, "note": "fine"},
    "approvals": {"name": "visits"},
    "require_approvals": {"count": 1, "account": "patients"},
    "set_team": {"team": "heart", "cap": Budget(epsilon=1, delta="1e-9"), "members": ["ben"]},
    "set_aside": {"purpose": "weekly", "budget": Budget(epsilon=1), "account": "patients"},
    "give_back": {"purpose": "monthly", "account": "patients"},
}
"""Arguments that are good for each verb, as Python has them."""

SLOWER = dict.fromkeys(("profile", "synthesize_tables"), pytest.mark.ci)

Face = Callable[[Served, Request[Any]], Any]


MAKING = [str(MADE["table"]), "--epsilon", "1", "--generator", "independent"]
TYPED: Mapping[str, list[str]] = {
    "ask": ["ask", COUNT, "--epsilon", "1"],
    "ask_many": ["ask", COUNT, MEAN, "--epsilon", "1"],
    "explain": ["explain", COUNT, "--epsilon", "1/3"],
    "rehearse": ["rehearse", COUNT],
    "choose_epsilon": ["choose-epsilon", COUNT, "--epsilon", "0.1", "--epsilon", "1"],
    "profile": ["profile", "visits", "--epsilon", "1", "--column", "age"],
    "synthesize": ["synthesize", *MAKING, "--rows", "20", "--out", "table.csv"],
    "plan_synthesize": ["plan-synthesize", *MAKING],
    "synthesize_tables": [
        *("synthesize", str(LINKED["people"]), "--events", str(LINKED["events"]), "--epsilon", "1"),
        *("--generator", "mst", "--rows", "20", "--out", "people.csv", "--events-out", "events.csv"),
    ],
    "plan_synthesize_tables": [
        *("plan-synthesize-tables", str(LINKED["people"]), str(LINKED["events"])),
        *("--epsilon", "1", "--generator", "mst"),
    ],
    "budget": ["budget", "--account", "visits"],
    "history": ["history", "--account", "visits"],
    "verify": ["verify"],
    "amend": ["amend", "patients", "--epsilon", "2000", "--delta", "1e-4", "--note", "more"],
    "renew": ["renew", "patients", "--epsilon", "2000", "--delta", "1e-4"],
    "unlock": ["unlock", "patients"],
    "erase_check": ["erase-check", "visits", "--id", "7"],
    "advance": ["advance", "visits", "--version", "{version}", "--note", "the file of December"],
    "appoint": ["grant", "ana", "--role", "analyst", "--account", "patients", "--epsilon", "500", "--delta", "1e-5"],
    "allot": ["set-cap", "flu", "patients", "--epsilon", "1", "--delta", "1e-9"],
    "request_approval": ["request-approval", COUNT, "--epsilon", "1", "--reason", "a paper"],
    "approve": ["approve", "--number", "{number}", "--note", "fine"],
    "approvals": ["approvals", "--account", "visits"],
    "require_approvals": ["require-approvals", "--count", "1", "--account", "patients"],
    "set_team": ["set-team", "heart", "--epsilon", "1", "--delta", "1e-9", "--members", "ben"],
    "set_aside": ["set-aside", "weekly", "--epsilon", "1", "--account", "patients"],
    "give_back": ["give-back", "monthly", "--account", "patients"],
}
"""The commands that do the same; all with --json."""


def _request_approval(curator: Curator) -> dict[str, Any]:
    return {"number": curator.request_approval(**GIVEN["request_approval"], analyst="ana").number}


def _give_back(curator: Curator) -> dict[str, Any]:
    if "set aside for weekly" in curator.budget("patients").facts:
        curator.give_back("weekly", account="patients")
    return {}


def _set_aside(curator: Curator) -> dict[str, Any]:
    if "set aside for monthly" not in curator.budget("patients").facts:
        curator.set_aside("monthly", budget=Budget(epsilon=1), account="patients")
    return {}


def _new_label(curator: Curator) -> dict[str, Any]:
    return {"version": f"after {curator.verify().sequence}"}


MAKE_READY: Mapping[str, Callable[[Curator], dict[str, Any]]] = {
    "approve": _request_approval,
    "set_aside": _give_back,
    "give_back": _set_aside,
    "advance": _new_label,
}
"""What each verb that changes the ledger once needs before it is done again: arguments that are new each time."""


def make_ready(name: str, curator: Curator) -> dict[str, Any]:
    return MAKE_READY[name](curator) if name in MAKE_READY else {}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose ledger and tables the command line has, too."""
    folder = tmp_path_factory.mktemp("clinic")
    write(folder, without=None)
    identities = Identities(":memory:")
    people = {"ana": ServiceRole.ANALYST, "stella": ServiceRole.STEWARD}
    keys = {name: identities.make_key(identities.local, name, role)[1] for name, role in people.items()}
    limits = RateLimits(identities, requests_per_minute=100_000, questions_per_day=100_000)
    with pytest.MonkeyPatch.context() as patch, Curator.from_config(folder / "discreet.toml") as curator:
        patch.chdir(folder)
        curator.appoint("stella", "steward")
        desk = CuratorDesk(curator=curator)
        with running(
            create_api(
                ServiceContext(desk, identities, StewardActions(curator._ledger, identities), limits, Settings())
            )
        ) as url:
            yield Served(url, desk, identities, keys)


def who(request: Request[Any]) -> str:
    """Ana asks, Stella sees everything and acts."""
    return "stella" if VERBS[request.verb].queue is Queue.LEDGER else "ana"


def python(service: Served, request: Request[Any]) -> Any:
    found = service.desk.curator.perform(request, Caller(analyst=who(request)))
    return result_of(VERBS[request.verb]).write(found)


def http(service: Served, request: Request[Any]) -> Any:
    (method, path), body = VERBS[request.verb].route, request.document()
    if "{account}" in path:
        path = path.format(account=body.pop("account"))
    sent: dict[str, Any] = {"params": body} if method == "GET" else {"json": body}
    headers = {"Authorization": f"Bearer {service.keys[who(request)]}"}
    return httpx.request(method, f"{service.url}{path}", headers=headers, **sent).raise_for_status().json()


def connect(service: Served, request: Request[Any]) -> Any:
    return discreet.connect(service.url, key=service.keys[who(request)]).perform_document(request)


def command(_: Served, request: Request[Any]) -> Any:
    steward = VERBS[request.verb].permission is Permission.STEWARD
    by = {"ana": ["--analyst", "ana"], "stella": ["--by", "stella"] if steward else []}
    told = {name: getattr(request, name, "") for name in ("number", "version")}
    typed = [word.format(**told) for word in TYPED[request.verb]]
    found = run(*typed, *by[who(request)], "--json")
    assert found.code == 0, found
    return json.loads(found.out)


FACES: Mapping[str, Face] = {"python": python, "http": http, "connect": connect, "command line": command}
"""Each gives the document of a request; one more face is one more line."""


def test_every_verb_is_compared() -> None:
    offered = [verb for verb in VERBS.values() if "http" in verb.faces]
    assert set(GIVEN) == {verb.name for verb in offered}
    assert set(TYPED) == {verb.name for verb in offered if "cli" in verb.faces}


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOWER.get(name, ())) for name in GIVEN])
def test_a_result_is_the_same_document_on_every_face(service: Served, name: str) -> None:
    request = VERBS[name].request.of(**GIVEN[name])
    if VERBS[name].charges:
        python(service, request)  # all others are replays of it, and cost nothing
    faces = {face: document for face, document in FACES.items() if face != "command line" or name in TYPED}
    told = {}
    for face, document in faces.items():
        more = make_ready(name, service.desk.curator)
        told[face] = json.loads(json.dumps(document(service, replace(request, **more))))
    if name in ("request_approval", "approve"):
        numbers = [found.pop("number") for found in told.values()]
        assert numbers == sorted(set(numbers))
        assert len({found.pop("until")[:10] for found in told.values()}) == 1
    if name == "advance":
        versions = [found.pop("version") for found in told.values()]
        assert [found.pop("before") for found in told.values()][1:] == versions[:-1]
        assert all(found.pop("since")[:10] in found.pop("text") for found in told.values())
        assert {found.pop("asked_anew") for found in list(told.values())[1:]} == {0}
        told["python"].pop("asked_anew")
    if name == "renew":
        assert [found.pop("period") for found in told.values()] == [2, 3, 4, 5]
        assert [found["facts"].pop("state")[-1] for found in told.values()] == ["2", "3", "4", "5"]
    if name == "budget":
        told |= {face: told[face]["budgets"][0] for face in faces if face != "python"}
        told["command line"]["own"] = told["http"]["own"]  # it is that of whoever looks
        told["python"] = {**told["http"], **told["python"]}  # which tells nothing of how the account is declared
    for face, document in told.items():
        assert document == told["python"], face


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOWER.get(name, ())) for name in GIVEN])
def test_a_document_is_read_as_it_was_written_and_described_part_by_part(service: Served, name: str) -> None:
    verb = VERBS[name]
    more = make_ready(name, service.desk.curator)
    document = json.loads(json.dumps(python(service, verb.request.of(**{**GIVEN[name], **more}))))
    described = verb_model(verb).model_validate(document)
    if name == "appoint":  # on an account it is a share, as of a project; on the whole ledger it has no figures
        described = verb_model(VERBS["allot"]).model_validate(document)
    assert undescribed(described) == []
    read = result_of(verb).read(document)
    if name in ("explain", "profile"):  # which are printed as they were told, and read no further
        assert (read.document, str(read)) == (document, document["text"])
    else:
        assert json.loads(json.dumps(result_of(verb).write(read))) == document


def undescribed(part: object) -> list[str]:
    """The parts of a document that its description does not know."""
    if isinstance(part, BaseModel):
        return [*(part.model_extra or ()), *undescribed([getattr(part, each) for each in type(part).model_fields])]
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [name for each in inner for name in undescribed(each)]


def test_a_part_without_a_description_is_found(service: Served) -> None:
    document = python(service, VERBS["rehearse"].request.of(**GIVEN["rehearse"]))
    more = {**document, "cost": {**document["cost"], "mood": "good"}}
    assert undescribed(verb_model(VERBS["rehearse"]).model_validate(more)) == ["mood"]
    with pytest.raises(ValidationError):
        verb_model(VERBS["rehearse"]).model_validate({**document, "whole": 1})
