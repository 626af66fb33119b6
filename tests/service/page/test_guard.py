"""What stands before every page: hosts, origins, tokens, sessions and headers."""

import html
import re

import pytest

from discreet.service.api.http_guard import POLICY, host_name
from discreet.service.caller import PERMISSIONS
from discreet.service.page import ROUTES
from discreet.service.page.page_request import MOST_FORM, PageRoute
from tests.service.page.fakes import HOST, ORIGIN, PEOPLE, Browser, Clinic

QUESTION = "SELECT COUNT(*) AS n FROM visits"
_NAMES = {role: name for name, role in PEOPLE.items()}
_PLACES = {
    "{name}": "visits",
    "{account}": "patients",
    "{number:int}": "1",
    "{place:int}": "1",
    "{sequence:int}": "1",
}


def address(route: PageRoute) -> str:
    path = route.path
    for part, place in _PLACES.items():
        path = path.replace(part, place)
    return path


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "localhost@evil.example", "", "a:b:c", "[::1"]
)
def test_foreign_hosts_get_nothing(shared: Clinic, host: str) -> None:
    response = Browser(shared).send("GET", "/sign-in", headers={"host": host})
    assert response.status_code == 421
    assert "Sign in" not in response.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8642", "[::1]:8642"])
def test_own_hosts_are_answered(shared: Clinic, host: str) -> None:
    assert Browser(shared).send("GET", "/sign-in", headers={"host": host}).status_code == 200


def test_a_host_is_a_name_and_perhaps_a_port() -> None:
    assert host_name("[::1]") == "::1"
    assert not host_name("local host")
    assert not host_name("localhost:8642x")


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", f"https://{HOST}", "http://localhost:1", ORIGIN + "/"]
)
def test_forms_of_other_origins_are_refused(clinic: Clinic, origin: str | None) -> None:
    ana = clinic.browser("ana")
    headers = {} if origin is None else {"origin": origin}
    data = {"csrf": ana.csrf, "sql": QUESTION, "epsilon": "0.1"}
    assert ana.send("POST", "/ask", data=data, headers=headers).status_code == 403
    link = clinic.identities.make_link(clinic.identities.local, "ana")
    assert Browser(clinic).send("POST", "/sign-in", data={"token": link}, headers=headers).status_code == 403
    assert not clinic.desk.done
    assert (
        ana.send("POST", "/ask", data=data, headers={"origin": ORIGIN}).status_code == 200
    )  # what is checked is the origin


@pytest.mark.sampled(3)
@pytest.mark.parametrize("route", [route for route in ROUTES if route.method == "POST"], ids=address)
def test_a_form_needs_its_sessions_token(clinic: Clinic, route: PageRoute) -> None:
    sue, other = clinic.browser("sue"), clinic.browser("sue")
    entries = len(clinic.curator.entries())
    for token in ("", "0" * 64, other.csrf, sue.csrf[:-1]):
        if route.streams:
            response = sue.upload("x.csv", b"a\n1\n", csrf=token)
        else:
            response = sue.post(address(route), {"csrf": token, "sql": QUESTION, "name": "cid", "role": "analyst"})
        assert response.status_code == 403
        assert "its token belongs to another session" in response.text
    assert not clinic.desk.done
    assert len(clinic.curator.entries()) == entries
    assert not clinic.settings.uploads.exists() or not list(clinic.settings.uploads.iterdir())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {address(route)}")
def test_who_may_open_what(shared: Clinic, route: PageRoute) -> None:
    for role, name in _NAMES.items():
        if route.path == "/sign-out":
            continue
        browser = shared.browser(name)
        asked = {"csrf": browser.csrf} if route.method == "POST" else {}
        response = browser.send(route.method, address(route), data=asked, headers={"origin": ORIGIN})
        told = f"may not {route.permission.value}"
        refused = response.status_code == 403 and told in html.unescape(response.text)
        assert refused == (route.permission not in PERMISSIONS[role]), (role, response.text[-900:])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {address(route)}")
def test_strangers_are_sent_to_sign_in(shared: Clinic, route: PageRoute) -> None:
    stranger = Browser(shared, cookies={"discreet-session": "0" * 64})
    response = stranger.send(route.method, address(route), headers={"origin": ORIGIN})
    assert response.status_code == 303
    assert response.headers["location"].startswith("/sign-in")
    partial = stranger.send(route.method, address(route), headers={"origin": ORIGIN, "hx-request": "true"})
    assert partial.status_code == 401
    assert partial.headers["hx-redirect"] == "/sign-in"


def test_every_response_has_its_headers(shared: Clinic) -> None:
    sue = shared.browser("sue")
    foreign = sue.send("GET", "/ask", headers={"host": "evil.example"})
    for response in (sue.get("/people"), sue.get("/nothing"), sue.get("/anchor"), foreign, sue.get("/assets/page.js")):
        assert response.headers["content-security-policy"] == POLICY
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "same-origin"
    assert "unsafe" not in POLICY
    assert "frame-ancestors 'none'" in POLICY


def test_secrets_and_answers_are_kept_by_no_cache(clinic: Clinic) -> None:
    sue, ana = clinic.browser("sue"), clinic.browser("ana")
    secret = sue.post("/keys", {"name": "ana"})
    assert re.search("dk_[0-9a-f]", secret.text)
    asked = ana.htmx("/ask", {"sql": QUESTION, "epsilon": "0.1"})
    for response in (
        secret,
        sue.post("/people/link", {"name": "ana"}),
        asked,
        ana.get("/answers/1.csv"),
        ana.get("/budget"),
    ):
        assert response.status_code == 200
        assert response.headers["cache-control"] == "no-store"
    assert "dk_" not in sue.get("/people").text.replace('placeholder="dk_', "")


def test_pages_hold_no_inline_script_or_style(shared: Clinic) -> None:
    sue = shared.browser("sue")
    for route in ROUTES:
        if route.method == "GET" and not route.path.endswith((".csv", ".json")):
            text = sue.get(address(route)).text
            assert not re.search(
                r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:|https?://(?!localhost)", text
            )


def test_ten_megabytes_of_question_are_refused(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    response = ana.htmx("/explain", {"sql": "S" * (10 * MOST_FORM)})
    assert response.status_code == 422
    assert len(response.text) < 2000
    assert not clinic.desk.done


def test_a_client_cannot_say_who_asks(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    ana.htmx("/ask", {"sql": QUESTION, "epsilon": "0.1", "analyst": "owner", "owner": "ben"})
    ((caller, work),) = clinic.desk.done
    assert caller.name == "ana"
    assert set(work.arguments) == {"sql", "epsilon"}


def test_a_project_of_a_key_is_not_overruled(clinic: Clinic) -> None:
    _, text = clinic.identities.make_key(clinic.identities.local, "ana", project="thesis")
    ana = Browser(clinic)
    assert ana.send("POST", "/sign-in", data={"key": text}, headers={"origin": ORIGIN}).status_code == 303
    ana.htmx("/explain", {"sql": QUESTION, "project": "other"})
    assert clinic.desk.done[-1][1].project == "thesis"


def test_our_own_faults_tell_nothing(clinic: Clinic, caplog: pytest.LogCaptureFixture) -> None:
    clinic.desk.failing = RuntimeError("ZZ-CANARY-7")
    with caplog.at_level("INFO", logger="discreet.service.page"):
        response = clinic.browser("sue").post("/attack", {"table": "visits", "columns": "age"})
    assert response.status_code == 500
    assert "ZZ-CANARY-7" not in response.text + caplog.text
    assert len(caplog.records) == 1
