"""Signing in with a provider, as a browser sees it: away with a ticket, back with a session."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from discreet.privacy import Budget
from discreet.service.caller import ServiceRole
from discreet.service.identity import openid
from tests.service.identity.helpers import Office
from tests.service.identity.test_openid import CLIENT, ISSUER, SECRET, Provider
from tests.service.page.fakes import HOST, Browser, Clinic, clinic_at

AWAY, BACK = "/sign-in/provider", "/sign-in/provider/back"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    made = Provider(Office())
    monkeypatch.setattr(openid, "fetch_json", made)
    return made


@pytest.fixture
def clinic(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Clinic]:
    folder = tmp_path_factory.mktemp("oidc")
    (folder / "secret").write_text(SECRET)
    told = {"issuer": ISSUER, "client_id": CLIENT, "client_secret_file": "secret"}
    with clinic_at(folder, oidc=told) as made:
        provider.office.clock.now = made.identities.clock()
        made.identities.make_person(made.identities.local, "ana@example.org", ServiceRole.ANALYST)
        yield made


def sent(browser: Browser, provider: Provider) -> str:
    """Goes to the provider; returns the state with which the browser comes back."""
    place = browser.get(AWAY).headers["location"]
    assert place.startswith(f"{ISSUER}/authorize?")
    provider.asked = {name: value[0] for name, value in parse_qs(urlsplit(place).query).items()}
    assert provider.asked["redirect_uri"] == f"http://{HOST}{BACK}"
    return provider.asked["state"]


def test_who_comes_back_is_signed_in(clinic: Clinic, provider: Provider) -> None:
    browser = Browser(clinic)
    assert AWAY in browser.get("/sign-in").text
    state = sent(browser, provider)
    response = browser.get(f"{BACK}?state={state}&code=c")
    assert response.status_code == 200
    told = response.headers.get_list("set-cookie")
    assert any(each.startswith("discreet-session=") and "SameSite=strict" in each for each in told)
    assert browser.get("/tables").status_code == 200
    assert "ana@example.org" in browser.get("/tables").text


@pytest.mark.parametrize("query", ["", "state=x&code=c", "code=c", "error=access_denied"])
def test_what_does_not_fit_signs_nobody_in(clinic: Clinic, provider: Provider, query: str) -> None:
    browser = Browser(clinic)
    sent(browser, provider)
    assert browser.get(f"{BACK}?{query}").status_code == 401
    assert browser.get("/tables").status_code == 303


def test_failures_of_an_address_do_not_lock_out_who_comes_back(clinic: Clinic, provider: Provider) -> None:
    statuses = [Browser(clinic).get(f"{BACK}?state=x&code=c").status_code for _ in range(25)]
    assert (statuses[0], statuses[-1]) == (401, 429)
    browser = Browser(clinic)
    assert browser.get(f"{BACK}?state={sent(browser, provider)}&code=c").status_code == 200


def test_the_word_of_the_provider_is_for_the_browser_that_was_sent(clinic: Clinic, provider: Provider) -> None:
    state = sent(Browser(clinic), provider)
    other = Browser(clinic)
    assert other.get(f"{BACK}?state={state}&code=c").status_code == 401
    assert other.get("/tables").status_code == 303


def test_strangers_are_not_made_known(clinic: Clinic, provider: Provider) -> None:
    provider.claims["email"] = "eve@example.org"
    browser = Browser(clinic)
    state = sent(browser, provider)
    assert browser.get(f"{BACK}?state={state}&code=c").status_code == 401


def test_a_provider_that_fails_is_told(clinic: Clinic, provider: Provider) -> None:
    provider.metadata["issuer"] = "https://evil.example"
    assert Browser(clinic).get(AWAY).status_code == 503


def test_without_a_provider_there_is_no_way(tmp_path_factory: pytest.TempPathFactory) -> None:
    with clinic_at(tmp_path_factory.mktemp("none")) as clinic:
        browser = Browser(clinic)
        assert browser.get(AWAY).status_code == 404
        assert AWAY not in browser.get("/sign-in").text


def test_groups_of_the_provider_are_teams_for_a_day(
    tmp_path_factory: pytest.TempPathFactory, provider: Provider
) -> None:
    folder = tmp_path_factory.mktemp("groups")
    (folder / "secret").write_text(SECRET)
    told = {"issuer": ISSUER, "client_id": CLIENT, "client_secret_file": "secret", "groups": "groups"}
    with clinic_at(folder, oidc=told) as made:
        provider.office.clock.now = made.identities.clock()
        made.identities.make_person(made.identities.local, "ana@example.org", ServiceRole.ANALYST)
        ledger, (account,) = made.curator._ledger, made.curator.accounts()
        ledger.caps.set_team("heart", account=account, cap=Budget(epsilon=1, delta="1e-9"), groups=["dp-heart"])
        for groups, teams in (("dp-heart", ["heart"]), (["dp-lung", 5], []), (["x", "dp-heart"], ["heart"])):
            provider.claims["groups"] = groups
            browser = Browser(made)
            assert browser.get(f"{BACK}?state={sent(browser, provider)}&code=c").status_code == 200
            *_, last = ledger.history(account)
            assert (last.kind, last.who, last.content["teams"]) == ("claim teams", "ana@example.org", teams)
        ledger.verify()
