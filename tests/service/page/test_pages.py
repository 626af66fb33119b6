"""What pages show: hostile names and values as text, answers with their errors, the ledger to those who may see it."""

import csv
import io
import json
import re
from typing import Any

import pyarrow as pa
import pytest

from discreet.errors import QueryFailed
from discreet.presentation.template_environment import picture
from discreet.privacy import Budget
from discreet.service.caller import ServiceRole
from discreet.service.page import ROUTES
from discreet.service.page.document_view import MOST_CELLS, MOST_LETTERS, MOST_OF_ONE, KeptAnswers, RecentResult
from discreet.service.page.page_templates import ASSETS, asset
from discreet.service.request_executor import OPERATIONS
from tests.service.page.fakes import Browser, Clinic, table_facts
from tests.service.page.test_guard import address

HOSTILE = """<script>alert(1)</script>"'><img src=x onerror=alert(1)>{{7*7}}\x1b[31m"""
_WHO_DID = r"<td>([a-z]+)</td>\s*<td>([a-z]+)</td>"
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY ward"


def harmless(text: str) -> bool:
    return (
        "<script>alert" not in text
        and "<img src=x" not in text
        and "49" not in re.findall(r"onerror=alert\(1\)>(\d+)", text)
    )


@pytest.mark.ci
def test_hostile_names_and_values_are_text_everywhere(clinic: Clinic) -> None:
    columns = {HOSTILE: "text", "age": "int"}
    facts = table_facts(HOSTILE, columns, account=HOSTILE, keys={HOSTILE: [HOSTILE]}, unit=HOSTILE)
    clinic.desk.facts.append(facts)
    name = "".join(c for c in HOSTILE if c.isprintable())  # the ledger refuses control characters in names
    rows = pa.table({name: [HOSTILE], "age": [1]})
    clinic.curator.protect(rows, name=name, account=name, budget=Budget(epsilon=1))
    clinic.identities.make_person(clinic.identities.local, name, ServiceRole.ANALYST)
    clinic.curator.appoint(name, "analyst", account="patients")
    clinic.curator.allot(name, account="patients", cap=Budget(epsilon=1, delta="1e-7"), note=HOSTILE)
    clinic.curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1", analyst=name)
    clinic.identities.make_key(clinic.identities.local, name, tables=[name], project=name, note=name)
    sue = clinic.browser("sue")
    seen = 0
    for route in ROUTES:
        if route.method == "GET" and not route.path.endswith((".csv", ".json")):
            text = sue.get(address(route)).text
            assert harmless(text), route.path
            seen += "&lt;script&gt;alert(1)" in text
    assert seen >= 6  # where such names are shown, they are shown as text
    for path in ("/explain", "/ask", "/rehearse", "/choose-epsilon"):
        assert harmless(sue.htmx(path, {"sql": HOSTILE, "candidates": HOSTILE}).text)
        assert harmless(sue.post(path, {"sql": HOSTILE, "epsilon": HOSTILE}).text)
    for path in (
        "/people",
        "/people/link",
        "/keys",
        "/keys/rotate",
        "/attack",
        "/protect/path",
        "/accounts/patients/appoint",
    ):
        given = {
            "name": HOSTILE,
            "role": HOSTILE,
            "key": HOSTILE,
            "table": HOSTILE,
            "columns": HOSTILE,
            "path": HOSTILE,
        }
        assert harmless(sue.post(path, given | {"who": HOSTILE}).text), path


AMOUNT = {"text": "epsilon=1", "epsilon": "1/1"}


def test_a_price_and_a_budget_show_how_they_are_computed(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    explained = ana.htmx("/explain", {"sql": BY_WARD, "epsilon": "0.1"}).text
    assert "<summary>How is this computed?</summary>" in explained
    assert "sums of rho (zCDP): this charge rho=0.005; with it rho=0.005 of rho=" in explained
    assert (
        "right 50 % of the time without this answer, at most 52.5 % with it, and at most 95.3 % with all" in explained
    )
    assert "sums of epsilon: epsilon=0 of epsilon=2, 0 %" in ana.get("/budget").text


def test_answers_of_hostile_rows_are_text(clinic: Clinic) -> None:
    columns = {HOSTILE: "text", "n": "int", "n_low": "int", "n_high": "int"}
    document = {
        "kind": "answer",
        "columns": [{"name": name, "type": kind} for name, kind in columns.items()],
        "rows": [[HOSTILE, 3, 1, "Infinity"]],
        "cost": {"text": "epsilon=1, 50 % of the budget", "epsilon": "1", "share": "0.5", "details": AMOUNT},
        "remaining": AMOUNT | {"text": "50 %", "share": "0.5", "largest_epsilon": "1"},
        "event": {"kind": "pure", "epsilon": "1/1", "version": 1},
        "replayed": False,
        "notes": [HOSTILE],
        "confidence": "0.95",
        "private": True,
        "interval": "noise",
        "whole": [],
        "coverage": None,
        "counted": "",
        "versions": [{"table": HOSTILE, "version": HOSTILE, "since": "2026-12-01T08:00:00.000+00:00", "text": HOSTILE}],
        "totals": [],
        "receipt": None,
    }
    ana = clinic.browser("ana")
    clinic.desk.given = document
    text = ana.htmx("/ask", {"sql": BY_WARD, "epsilon": "0.1"}).text
    assert harmless(text)
    assert "&lt;script&gt;" in text
    assert "\\x1b[31m" in text


def test_a_question_is_explained_for_nothing_and_asked_once(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    told = ana.htmx("/explain", {"sql": BY_WARD, "epsilon": "0.5"}).text
    assert "epsilon=0.5" in told
    assert "Error of mean" in told
    assert not [entry for entry in clinic.curator.entries() if entry.kind == "charge"]
    form = {"sql": BY_WARD, "epsilon": "0.5", "key": "k" * 32}
    first, again = ana.htmx("/ask", form), ana.htmx("/ask", form)
    assert first.status_code == again.status_code == 200
    assert len([entry for entry in clinic.curator.entries() if entry.kind == "charge"]) == 1
    assert "cardiology" in first.text
    assert "data-spec=" in first.text
    assert "Certificate" in first.text
    assert "Free." in ana.htmx("/explain", {"sql": BY_WARD, "epsilon": "0.5"}).text
    assert "cardiology" in ana.post("/ask", form).text  # without scripts the whole page comes


def test_drafts_are_no_failures(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    for draft in ("", "SEL", "SELECT * FROM visits", "SELECT COUNT(*) FROM nothing"):
        assert ana.htmx("/explain", {"sql": draft, "epsilon": "0.1"}).status_code == 200
    assert "Did you mean" in ana.htmx("/explain", {"sql": "SELECT COUNT(*) FROM visit"}).text


def test_a_failed_question_says_its_fixed_sentence(clinic: Clinic) -> None:
    clinic.desk.failing = QueryFailed()
    text = clinic.browser("ana").htmx("/ask", {"sql": BY_WARD, "epsilon": "0.1"}).text
    assert str(QueryFailed()) in text


def test_an_answer_is_exported_to_its_own_analyst(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    ana.htmx("/ask", {"sql": BY_WARD, "epsilon": "0.5"})
    rows = list(csv.reader(io.StringIO(ana.get("/answers/1.csv").text)))
    assert rows[0] == ["ward", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"]
    assert len(rows) == 5
    saved = ana.get("/answers/1.json")
    assert saved.headers["content-disposition"].startswith("attachment")
    assert json.loads(saved.text)["kind"] == "answer"
    assert ana.get("/answers/1").status_code == 200
    for other in ("ben", "sue"):
        assert clinic.browser(other).get("/answers/1.json").status_code == 422
    assert ana.get("/answers/2").status_code == 422


def test_few_answers_are_kept() -> None:
    kept = KeptAnswers()
    numbers = [kept.add("ana", RecentResult(question="", document={})) for _ in range(MOST_OF_ONE + 2)]
    assert [kept.find("ana", number) is not None for number in numbers] == [False] * 2 + [True] * MOST_OF_ONE


def test_large_answers_are_not_kept() -> None:
    rows: dict[str, Any] = {"columns": [{"name": "n"}], "rows": [[1]] * (MOST_CELLS + 1)}
    model = {"name": "t", "released": {"model": {"x": "y" * MOST_LETTERS}, "table": {"n": [1]}}}
    assert [KeptAnswers().add("ana", RecentResult(question="", document=each)) for each in (rows, model)] == [0, 0]
    rows["rows"] = rows["rows"][:-1]
    assert KeptAnswers().add("ana", RecentResult(question="", document=rows))


def test_a_certificate_tells_what_was_promised(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    ana.htmx("/ask", {"sql": BY_WARD, "epsilon": "0.5"})
    (charge,) = [entry for entry in clinic.curator.entries() if entry.kind == "charge"]
    shown = ana.get(f"/certificates/{charge.sequence}")
    assert "For any two databases" in shown.text
    assert charge.hash in shown.text
    assert json.loads(ana.get(f"/certificates/{charge.sequence}.json").text)["sequence"] == charge.sequence
    missing, foreign = ana.get("/certificates/99999"), clinic.browser("ben").get(f"/certificates/{charge.sequence}")
    assert missing.status_code == foreign.status_code == 404


@pytest.mark.ci
def test_history_is_paged_and_ones_own(clinic: Clinic) -> None:
    for age in range(60):
        analyst = "ana" if age % 2 else "owner"
        clinic.curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}", epsilon="0.01", analyst=analyst)
    first = clinic.browser("ana").get("/history").text
    assert "owner" not in first
    assert first.count("/certificates/") == 30
    sue = clinic.browser("sue")
    seen, place = list[str](), "/history"
    while place:
        text = sue.get(place).text
        seen += re.findall(r'<th scope="row" class="number">(?:<a [^>]*>)?(\d+)', text)
        older = re.search(r'href="(/history\?before=[^"]*)"', text)
        place = older[1].replace("&amp;", "&") if older else ""
    assert seen == [str(entry.sequence) for entry in reversed(clinic.curator.entries())]
    mine = sue.get("/history?who=ana").text
    assert {who for what, who in re.findall(_WHO_DID, mine) if what == "charge"} == {"ana"}


def test_the_burn_down_follows_the_charges(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    ana.htmx("/ask", {"sql": BY_WARD, "epsilon": "0.5"})
    text = ana.get("/budget").text
    spec = json.loads(re.search(r'data-spec="([^"]*)"', text)[1].replace("&#34;", '"'))  # type: ignore[index]  # it is there
    assert [value["left"] for value in spec["data"]["values"]] == [1, 0.75, 0.75]  # and on to the present


def budget(name: str, epsilon: str, **more: str) -> dict[str, str]:
    return {f"{name}.epsilon": epsilon, f"{name}.delta": "1e-6", **more}


@pytest.mark.parametrize("act", ["amend", "allot"])
def test_acts_need_a_budget(clinic: Clinic, act: str) -> None:
    assert clinic.browser("sue").post(f"/accounts/patients/{act}", {"project": "p"}).status_code == 422


def test_acts_are_entries_of_whoever_acts(clinic: Clinic) -> None:
    sue = clinic.browser("sue")
    assert sue.post("/accounts/patients/amend", budget("budget", "4", note="more")).status_code == 303
    wrong = {"who": "ben", "role": "analyst", "cap.rho": "1"}
    assert sue.post("/accounts/patients/appoint", wrong).status_code == 422
    given = {"who": "ben", "role": "analyst", "cap.epsilon": "1"}
    assert sue.post("/accounts/patients/appoint", given).status_code == 303
    assert sue.post("/accounts/patients/renew", {}).status_code == 422
    assert sue.post("/accounts/patients/renew", {"sure": "yes"}).status_code == 303
    assert [(entry.kind, entry.who) for entry in clinic.curator.entries()[-3:]] == [
        ("amend", "sue"),
        ("appoint", "sue"),
        ("renew", "sue"),
    ]
    assert sue.post("/accounts/nobody/unlock").status_code == 422


def test_a_steward_makes_no_steward(clinic: Clinic) -> None:
    sue = clinic.browser("sue")
    assert sue.post("/people", {"name": "eve", "role": "steward"}).status_code == 403
    assert sue.post("/people", {"name": "Owner", "role": "analyst"}).status_code == 422
    assert sue.post("/people/link", {"name": "owner"}).status_code == 403


def test_keys_are_shown_once_and_can_be_used(clinic: Clinic) -> None:
    sue = clinic.browser("sue")
    made = sue.post("/keys", {"name": "ana", "tables": "visits", "expires_days": "3", "note": "notebook"}).text
    text = re.search(r"dk_[0-9a-f]{16}_[0-9a-f]{40}", made)
    assert text is not None
    assert clinic.identities.authenticate_key(text[0]).tables == frozenset({"visits"})
    key_id = text[0].split("_")[1]
    rotated = re.search(r"dk_[0-9a-f-]+_[0-9a-f]{40}", sue.post("/keys/rotate", {"key": key_id}).text)
    assert rotated is not None
    assert sue.post("/keys/revoke", {"key": rotated[0].split("_")[1]}).status_code == 303
    assert text[0] not in sue.get("/people").text


def test_an_auditor_verifies_and_takes_the_anchor(clinic: Clinic) -> None:
    ada = clinic.browser("ada")
    assert "The ledger is unchanged" in ada.post("/verify").text
    assert ada.get("/anchor").text.strip() == str(clinic.curator.verify())


def test_the_lab_is_for_the_stewards_eyes(clinic: Clinic) -> None:
    sue = clinic.browser("sue")
    found = sue.post("/attack", {"table": "visits", "columns": ["age", "ward"]})
    assert "For your eyes only" in found.text
    assert "data-spec" in found.text
    assert clinic.desk.done[-1][1].operation is OPERATIONS["attack"]
    compared = sue.post("/choose-epsilon", {"sql": "SELECT COUNT(*) AS n FROM visits", "candidates": "0.1, 1"})
    assert compared.text.count("<strong") >= 2
    assert sue.post("/choose-epsilon", {"sql": "SELECT 1", "candidates": "x"}).status_code == 422


def test_assets_are_a_fixed_list(shared: Clinic) -> None:
    stranger = Browser(shared)
    for name in ASSETS:
        assert stranger.get(f"/assets/{name}").content == asset(name)
    for name in ("../visit.py", "%2e%2e/visit.py", "CHECKSUMS", "source/build.sh", ""):
        assert stranger.get(f"/assets/{name}").status_code == 404


def test_only_markup_of_ours_is_put_in_as_it_is() -> None:
    with pytest.raises(TypeError):
        picture("<b>")  # type: ignore[arg-type]  # what a template might pass
