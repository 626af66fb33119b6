"""Pages that are made of requests: each verb has a form and shows its result, and messages use the form's words."""

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pytest

from discreet.ledger import Caller
from discreet.ledger.cost import Cost
from discreet.requests.question_requests import Ask
from discreet.requests.request import Arg, Argument, ArgumentKind, Request, arguments
from discreet.requests.verb_table import VERBS, Permission, Queue, Verb
from discreet.service.page import OWN, ROUTES, VERB_PAGES
from discreet.service.page.document_view import view_document
from discreet.service.page.request_forms import label_of
from discreet.service.page.routes.verb_pages import VerbPage, pages_of
from discreet.service.request_executor import OPERATIONS, Operation
from discreet.service.worker import operations
from tests.service.page.fakes import Browser, Clinic, clinic_at

TWO = "SELECT COUNT(*) AS n FROM visits\n\nSELECT ward, COUNT(*) AS n\nFROM visits GROUP BY ward;"
MADE = {"table": "SELECT ward, age FROM visits", "epsilon": "1", "generator": "independent", "rows": "12"}
LINKED = {"people": "people", "events": "SELECT ward, days FROM visits", "epsilon": "1", "rows": "5"}
LINKED |= {"generator": "independent", "rows_per_unit": "2"}


def charges(clinic: Clinic) -> int:
    return len([entry for entry in clinic.curator.entries() if entry.kind == "charge"])


def key_in(text: str) -> str:
    found = re.search(r'name="key" value="([^"]+)"', text)
    assert found is not None
    return found[1]


def rows_at(browser: Browser, place: str) -> list[list[str]]:
    saved = browser.get(place)
    assert saved.headers["content-disposition"].startswith("attachment")
    return list(csv.reader(io.StringIO(saved.text)))


def message(text: str) -> str:
    found = re.search(r'<div class="(?:refusal|note)" role="alert">(.*?)</div>', text, re.DOTALL)
    assert found is not None, text[-2000:]
    return html.unescape(re.sub(r"<[^>]+>", " ", found[1]))


# -------------------------------------------------------------------------------------------------------- a new verb


@dataclass(frozen=True)
class RowCount:
    """What the verb returns."""

    rows: int
    ends: tuple[int, ...]
    cost: Cost


@dataclass(frozen=True, kw_only=True)
class CountRows(Request[RowCount]):
    """Count the rows of a table, and pay for it."""

    verb: ClassVar[str] = "count_rows"
    table: Annotated[str, Arg(ArgumentKind.NAME, "A protected table.", example="visits")]
    epsilon: Annotated[Fraction, Arg(ArgumentKind.AMOUNT, "What the count may cost.", example="0.1", spends=True)]


def count_rows(curator: Any, request: CountRows, caller: Caller) -> RowCount:
    sql = f"SELECT COUNT(*) AS n FROM {request.table}"
    answer = curator.perform(Ask.of(sql=sql, epsilon=request.epsilon), caller)
    (row,) = answer.records
    return RowCount(row["n"], (row["n_low"], row["n_high"]), answer.cost)


COUNTING = Verb("count_rows", f"{__name__}:CountRows", "", Permission.ASK, Queue.ASKING, "count_rows", charges=True)


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clinic]:
    """A clinic whose curator knows one verb more: nothing of the page is changed for it."""
    known = {**VERBS, COUNTING.name: COUNTING}
    operation = Operation(COUNTING.name, COUNTING.permission, COUNTING.queue, COUNTING.charges)
    monkeypatch.setitem(OPERATIONS, COUNTING.name, operation)
    monkeypatch.setattr(operations, "VERBS", known)
    monkeypatch.setattr("discreet.curator.curator.VERBS", known)
    pages = pages_of(known.values(), {verb for route in OWN for verb in route.verbs})
    with clinic_at(tmp_path, pages=pages) as made:
        yield made


def test_a_new_verb_has_a_form_and_shows_its_result(counting: Clinic) -> None:
    ana = counting.browser("ana")
    form = ana.get("/count-rows").text
    assert '<a href="/count-rows" aria-current="page">Count rows</a>' in form
    assert "Count the rows of a table, and pay for it." in form
    assert "What the count may cost." in form
    assert '<label for="epsilon">Epsilon</label>' in form
    sent = {"table": "visits", "epsilon": "0.5", "key": key_in(form)}
    shown = ana.post("/count-rows", sent).text
    assert re.search(r"<dt>Rows</dt><dd>\d+</dd>", shown)
    assert re.search(r"<dt>Ends</dt><dd>\d+, \d+</dd>", shown)
    assert "<dt>Cost</dt><dd>epsilon=0.5, 16.67 % of the budget</dd>" in shown
    assert "cardiology" not in shown
    assert charges(counting) == 1
    assert "Expected Epsilon='x'" in message(ana.post("/count-rows", {**sent, "epsilon": "x"}).text)
    assert counting.browser("ada").get("/count-rows").status_code == 403
    assert "/count-rows" not in counting.browser("ada").get("/history").text


def test_any_document_is_shown() -> None:
    shown = view_document(
        {"kind": "x", "right": True, "parts": [{"ward": "A", "n": 1}, {"n": 2}], "by": {"A": {"n": 3}}}
    )
    assert shown.facts == {"Right": "yes"}
    assert [(each.name, each.headings, each.shown_rows) for each in shown.tables] == [
        ("Parts", ("ward", "n"), [["A", "1"], ["", "2"]]),
        ("By", ("By", "n"), [["A", "3"]]),
    ]
    told = view_document(
        {"kind": "x", "limits": {"rows": 2}, "cost": {"text": "epsilon=1", "epsilon": "1"}, "text": "t"}
    )
    assert (told.facts, told.text) == ({"Cost": "epsilon=1"}, "t")
    assert view_document({"limits": {"rows": 2}, "ends": [1, None]}).facts == {"Limits": "rows: 2", "Ends": "1, "}


# ------------------------------------------------------------------------------------------------------ as a user would


def test_a_synthetic_table_is_priced_made_once_and_saved(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    form = ana.get("/synthesize").text
    assert "Show the price" in form
    priced = ana.post("/synthesize/price", {**MADE, "key": key_in(form)})
    assert priced.status_code == 200, message(priced.text)
    assert "What it would cost" in priced.text
    assert 'value="independent" selected' in priced.text
    assert charges(clinic) == 0
    sent = {**MADE, "key": key_in(priced.text)}
    first, again = ana.post("/synthesize", sent), ana.post("/synthesize", sent)
    assert first.status_code == again.status_code == 200, message(first.text)
    assert charges(clinic) == 1
    rows = rows_at(ana, "/answers/1/1.csv")
    assert rows[0] == ["ward", "age"]
    assert len(rows) == 13
    assert f"<td>{rows[1][0]}</td><td>{rows[1][1]}</td>" in first.text
    assert ana.get("/answers/1").status_code == 200
    assert json.loads(ana.get("/answers/1.json").text)["kind"] == "synthetic table"
    assert ana.get("/answers/1/2.csv").status_code == ana.get("/answers/1/0.csv").status_code == 422
    assert clinic.browser("sue").get("/answers/1/1.csv").status_code == 422
    assert clinic.desk.done[-1][1].key == sent["key"]


def test_linked_tables_are_two_files(clinic: Clinic) -> None:
    rows = pa.table({"patient": list(range(60)), "sex": ["f", "m"] * 30})
    clinic.curator.protect(
        rows, name="people", unit="patient", max_rows=1, account="patients", keys={"sex": ["f", "m"]}
    )
    ana = clinic.browser("ana")
    assert "What it would cost" in ana.post("/synthesize-tables/price", LINKED).text
    made = ana.post("/synthesize-tables", LINKED)
    assert made.status_code == 200, message(made.text)
    people, events = rows_at(ana, "/answers/1/1.csv"), rows_at(ana, "/answers/1/2.csv")
    assert len(people) == 6
    assert set(people[0]) & set(events[0]), "they share a key"
    assert made.text.count("CSV of") == 2
    assert charges(clinic) == 1


def test_several_questions_are_one_charge(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    sent = {"questions": TWO, "epsilon": "0.5", "key": key_in(ana.get("/ask-many").text)}
    shown = ana.post("/ask-many", sent).text
    assert "Answer 1" in shown
    assert "cardiology" in shown
    paid = charges(clinic)
    assert paid
    assert ana.post("/ask-many", sent).status_code == 200
    assert charges(clinic) == paid
    assert len(clinic.desk.done[-1][1].arguments["questions"]) == 2
    assert rows_at(ana, "/answers/1/2.csv")[0][0] == "ward"


@pytest.mark.ci
def test_a_profile_is_bought(clinic: Clinic) -> None:
    sent = {"table": "visits", "epsilon": "0.5", "columns": "age", "by": "ward\n"}
    shown = clinic.browser("ana").post("/profile", sent)
    assert shown.status_code == 200, message(shown.text)
    assert clinic.desk.done[-1][1].arguments == {
        "table": "visits",
        "epsilon": "1/2",
        "columns": ["age"],
        "by": [["ward"]],
    }
    assert "<dt>Table</dt><dd>visits</dd>" in shown.text


def test_budgets_are_compared_for_an_imagined_group(clinic: Clinic) -> None:
    form = clinic.browser("ana").get("/choose-epsilon").text
    assert 'name="candidates" value="0.01, 0.03, 0.1, 0.3, 1, 3"' in form
    assert 'name="rows" value="1000"' in form
    sent = {"sql": "SELECT AVG(age) AS m FROM visits", "candidates": "0.1, 1", "rows": "50"}
    assert "in a group of 50" in clinic.browser("ana").post("/choose-epsilon", sent).text
    assert charges(clinic) == 0


def test_a_key_of_another_request_is_refused_beside_the_form(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    sent = {"questions": TWO, "epsilon": "0.5", "key": "k" * 32}
    ana.post("/ask-many", sent)
    paid = charges(clinic)
    refused = ana.post("/ask-many", {**sent, "epsilon": "0.25"})
    assert refused.status_code == 409
    assert key_in(refused.text) != sent["key"]
    assert 'value="0.25"' in refused.text
    assert charges(clinic) == paid


# --------------------------------------------------------------------------------------------------------------- words

BAD: dict[ArgumentKind, str] = {
    ArgumentKind.AMOUNT: "-1",
    ArgumentKind.DELTA: "2",
    ArgumentKind.SHARE: "2",
    ArgumentKind.PRICE: "-1",
    ArgumentKind.COUNT: "x",
    ArgumentKind.SQL: "",
    ArgumentKind.NAME: "",
}
GOOD = {
    "sql": "SELECT COUNT(*) AS n FROM visits",
    "questions": TWO,
    "table": "visits",
    "people": "visits",
    "events": "visits",
    "epsilon": "0.1",
}


def fields(verb: Verb) -> Iterator[Argument]:
    return (each for each in arguments(verb.request) if "page" in each.arg.faces)


def worker_cases() -> Iterator[tuple[str, str, str, str]]:
    """Every page of a verb that workers do, with each of its fields and a text that does not fit."""
    places = {verb: route.path for route in ROUTES for verb in route.verbs if route.method == "POST"}
    for verb in VERBS.values():
        if "page" in verb.faces and verb.name in OPERATIONS:
            for each in fields(verb):
                bad = "no such choice" if each.arg.choices else BAD.get(each.arg.kind)
                if bad or (bad == "" and each.is_required):
                    yield verb.name, places[verb.name], each.name, bad


@pytest.mark.parametrize(("verb", "path", "name", "bad"), list(worker_cases()))
def test_what_is_refused_is_called_by_its_label(shared: Clinic, verb: str, path: str, name: str, bad: str) -> None:
    if verb == "explain" and not bad:
        return  # an empty draft is none yet
    before = len(shared.desk.done)
    response = shared.browser("ana").post(path, {**GOOD, name: bad})
    told = html.unescape(response.text) if verb == "explain" else message(response.text)
    assert f"Expected {label_of(name)}=" in told
    names = "|".join(each.name for each in fields(VERBS[verb]))
    assert not re.search(rf"\b({names})=\S", told), told
    assert len(shared.desk.done) == before, "it was sent to a worker"


STEWARDS = [verb for verb in VERBS.values() if verb.permission is Permission.STEWARD]
_TAKEN = {"who": "ben", "role": "analyst", "project": "thesis", "sure": "yes", "team": "heart", "purpose": "weekly"}
_TAKEN |= {"number": "1", "count": "1", "table": "visits", "version": "2", "person": "7"}
_GIVEN = {f"{name}.{part}": text for name in ("budget", "cap") for part, text in (("epsilon", "1"), ("delta", "1e-6"))}


def bad_texts(each: Argument) -> Iterator[tuple[str, dict[str, str]]]:
    """What the field of an action refuses, and what it is called then."""
    if each.arg.kind is ArgumentKind.BUDGET:
        yield label_of(f"{each.name}.epsilon"), {f"{each.name}.epsilon": "-1"}
        if each.is_required:
            yield label_of(each.name), dict.fromkeys(_GIVEN, "")
    elif each.arg.kind is ArgumentKind.TEXT:
        yield label_of(each.name), {each.name: "two\nlines"}
    elif each.arg.choices:
        yield label_of(each.name), {each.name: "no such choice"}
    elif each.is_required and each.name != "account":
        yield label_of(each.name), {each.name: ""}


@pytest.mark.parametrize("verb", STEWARDS, ids=lambda verb: verb.name)
def test_actions_of_stewards_are_refused_in_the_words_of_their_forms(shared: Clinic, verb: Verb) -> None:
    places = {name: route.path for route in ROUTES for name in route.verbs if route.method == "POST"}
    path = places[verb.name].format(account="patients")
    sue, before = shared.browser("sue"), len(shared.curator.entries())
    cases = [case for each in fields(verb) for case in bad_texts(each)]
    assert cases
    for label, bad in cases:
        told = message(sue.post(path, {**_TAKEN, **_GIVEN, **bad}).text)
        assert f"Expected {label}=" in told, (bad, told)
        rest = told.replace(f"{label}=", "", 1)
        assert not re.search(r"\b(epsilon|delta|rho|budget|cap|note|role|who|project)=\S", rest), told
    assert len(shared.curator.entries()) == before


def test_every_verb_of_the_page_has_one() -> None:
    offered = {verb.name for verb in VERBS.values() if "page" in verb.faces}
    assert offered == {verb for route in ROUTES for verb in route.verbs}
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


class Controls(HTMLParser):
    """Finds the controls of a page, and whom its labels are for."""

    def __init__(self) -> None:
        super().__init__()
        self.controls: list[str] = []
        self.labels: list[str] = []
        self.ids: list[str] = []
        self.described: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids += [given["id"]] if "id" in given else []
        self.labels += [given["for"]] if tag == "label" and "for" in given else []
        self.described += [given["aria-describedby"]] if "aria-describedby" in given else []
        if tag in ("textarea", "select") or (tag == "input" and given.get("type") in ("text", None)):
            self.controls.append(given.get("id", ""))


@pytest.mark.parametrize("page", VERB_PAGES, ids=lambda page: page.verb.name)
def test_every_input_has_a_label(shared: Clinic, page: VerbPage) -> None:
    text = shared.browser("sue" if page.verb.permission is Permission.STEWARD else "ana").get(page.path).text
    found = Controls()
    found.feed(text)
    assert {each.name for each in fields(page.verb)} <= set(found.controls)
    assert sorted(found.controls) == sorted(found.labels)
    assert set(found.described) <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert "<script>" not in text


def test_a_steward_moves_a_table_on_and_sees_what_that_changes(clinic: Clinic) -> None:
    sue, ana = clinic.browser("sue"), clinic.browser("ana")
    shown = sue.post("/advance", {"table": "visits", "version": "2"}).text
    assert "stored answers that are asked anew" in shown
    again = sue.post("/advance", {"table": "visits", "version": "2"})
    assert "Expected Version=" in message(again.text)
    assert [entry.who for entry in clinic.curator.entries() if entry.kind == "advance"] == ["sue"]
    for place in ("/advance", "/erase-check"):
        assert ana.get(place).status_code == ana.post(place, {"table": "visits"}).status_code == 403
        assert place not in ana.get("/history").text
        assert place in sue.get("/history").text


def test_a_steward_sees_where_a_person_may_still_be(clinic: Clinic) -> None:
    sue = clinic.browser("sue")
    before = len(clinic.curator.entries())
    shown = sue.post("/erase-check", {"table": "visits", "person": "7"}).text
    assert "Where a person of account patients may still be" in shown
    assert len(clinic.curator.entries()) == before
