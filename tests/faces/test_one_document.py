"""One JSON for one thing: what Python returns, written down, is what HTTP sends and what `discreet.connect` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import pytest

import discreet
from discreet.learn import DecisionTreeClassifier
from discreet.ledger import Caller
from discreet.noise import SeededBits
from discreet.presentation.documents.result_documents import result_of
from discreet.privacy import Budget
from discreet.requests.request import Request
from discreet.requests.verb_table import VERBS, Permission, Queue
from tests.curator.clinic import DECLARED, visits
from tests.remote.served import Served, served

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
TRAINED = {
    "estimator": DecisionTreeClassifier(epsilon=1),
    "sql": "SELECT age, charge, ward FROM visits",
    "target": "ward",
}
MADE = {"table": "SELECT age, ward FROM stays", "epsilon": 1, "generator": "independent"}
LINKED = {"people": "SELECT ward FROM people", "events": "SELECT age FROM stays", "epsilon": 1, "generator": "mst"}
GIVEN: Mapping[str, Mapping[str, Any]] = {
    "ask": {"sql": COUNT, "epsilon": 1},
    "ask_many": {"questions": [COUNT, "SELECT AVG(age) AS mean FROM visits"], "epsilon": 1},
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
    "amend": {"account": "patients", "budget": Budget(epsilon=60), "note": "more"},
    "renew": {"account": "patients", "budget": Budget(epsilon=60)},
    "unlock": {"account": "patients"},
    "appoint": {"who": "ana", "role": "analyst", "account": "patients", "cap": Budget(epsilon="1/3")},
    "allot": {"project": "flu", "account": "patients", "cap": Budget(epsilon=1)},
}
"""Arguments that are good for each verb, as Python has them."""

MORE = {"budget", "unlock", "appoint", "allot"}
"""What HTTP tells more about than Python returns: declarations of an account, and where it stands after an action."""

SLOWER = dict.fromkeys(("profile", "synthesize_tables"), pytest.mark.ci)

Face = Callable[[Served, Request[Any]], Any]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SeededBits(11)) as made:
        declared = {**DECLARED, "unit": "patient", "max_rows": 3}
        budget = Budget(epsilon=50, delta="1e-6")
        for name in ("stays", "people"):
            declared["identity"] = name
            made.desk.curator.protect(visits(3, 60), name=name, account="stays", budget=budget, **declared)
        made.desk.curator.appoint("ana", "analyst", account="stays")
        yield made


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
    sent = {"params": body} if method == "GET" else {"json": body}
    headers = {"Authorization": f"Bearer {service.keys[who(request)]}"}
    return httpx.request(method, f"{service.url}{path}", headers=headers, **sent).raise_for_status().json()


def connect(service: Served, request: Request[Any]) -> Any:
    return discreet.connect(service.url, key=service.keys[who(request)]).perform_document(request)


FACES: Mapping[str, Face] = {"python": python, "http": http, "connect": connect}
"""Each gives the document of a request; one more face is one more line."""


def test_every_verb_is_compared() -> None:
    assert set(GIVEN) == {verb.name for verb in VERBS.values() if "http" in verb.faces}


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOWER.get(name, ())) for name in GIVEN])
def test_a_result_is_the_same_document_on_every_face(service: Served, name: str) -> None:
    request = VERBS[name].request.of(**GIVEN[name])
    if VERBS[name].charges:
        python(service, request)  # all others are replays of it, and cost nothing
    told = {face: json.loads(json.dumps(document(service, request))) for face, document in FACES.items()}
    if name == "renew":
        assert [found.pop("period") for found in told.values()] == [2, 3, 4]
        assert {found["facts"].pop("period") for found in told.values()} == {"2", "3", "4"}
    if name == "budget":
        told |= {face: told[face]["budgets"][0] for face in FACES if face != "python"}
    if name in MORE:
        told["python"] = {**told["http"], **told["python"]}
    assert told["http"] == told["python"]
    assert told["connect"] == told["python"]


@pytest.mark.parametrize("name", [name for name in GIVEN if name not in MORE])
def test_what_is_read_is_what_was_written(service: Served, name: str) -> None:
    verb = VERBS[name]
    if verb.permission is Permission.STEWARD:
        pytest.skip("An action changes what the next one tells.")
    request = verb.request.of(**GIVEN[name])
    document = json.loads(json.dumps(python(service, request)))
    if name in ("explain", "profile"):  # which are printed as they were told, and read no further
        assert result_of(verb).read(document).document == document
    else:
        assert json.loads(json.dumps(result_of(verb).write(result_of(verb).read(document)))) == document
