"""Signing in with links and keys, and out."""

import pytest

from tests.service.page.fakes import ORIGIN, Browser, Clinic, clinic_at


def signed_in(browser: Browser, **given: str) -> int:
    return browser.send("POST", "/sign-in", data=given, headers={"origin": ORIGIN}).status_code


def test_opening_a_link_does_not_use_it_up(clinic: Clinic) -> None:
    link = clinic.identities.make_link(clinic.identities.local, "ana")
    browser = Browser(clinic)
    for _ in range(3):
        assert browser.get(f"/sign-in?token={link}").status_code == 200
    assert signed_in(browser, token=link) == 303
    assert browser.get("/ask").status_code == 200


def test_a_link_works_once(clinic: Clinic) -> None:
    link = clinic.identities.make_link(clinic.identities.local, "ana")
    assert signed_in(Browser(clinic), token=link) == 303
    again = Browser(clinic)
    assert signed_in(again, token=link) == 401
    assert not again.cookies


def test_a_fixed_session_is_replaced(clinic: Clinic) -> None:
    browser = Browser(clinic, cookies={"discreet-session": "f" * 64})
    link = clinic.identities.make_link(clinic.identities.local, "ana")
    assert signed_in(browser, token=link) == 303
    assert browser.cookies["discreet-session"] != "f" * 64


def test_the_cookie_is_for_the_server_only(clinic: Clinic) -> None:
    link = clinic.identities.make_link(clinic.identities.local, "ana")
    response = Browser(clinic).send("POST", "/sign-in", data={"token": link}, headers={"origin": ORIGIN})
    told = response.headers["set-cookie"].lower()
    assert "httponly" in told
    assert "samesite=strict" in told
    assert "path=/" in told
    assert "secure" not in told
    assert "domain" not in told


def test_over_tls_the_cookie_is_secure_and_of_this_host(tmp_path_factory: pytest.TempPathFactory) -> None:
    with clinic_at(tmp_path_factory.mktemp("tls"), behind_proxy=True) as clinic:
        link = clinic.identities.make_link(clinic.identities.local, "ana")
        origin = ORIGIN.replace("http://", "https://")
        browser = Browser(clinic)
        assert browser.send("POST", "/sign-in", data={"token": link}, headers={"origin": ORIGIN}).status_code == 403
        told = browser.send("POST", "/sign-in", data={"token": link}, headers={"origin": origin}).headers["set-cookie"]
        assert told.startswith("__Host-discreet=")
        assert "secure" in told.lower()


def test_a_key_signs_in_for_what_it_is_for_and_until_it_ends(clinic: Clinic) -> None:
    key_id, text = clinic.identities.make_key(clinic.identities.local, "ana", tables=["other"])
    browser = Browser(clinic)
    assert signed_in(browser, key=text) == 303
    assert "visits" not in browser.get("/tables").text
    clinic.identities.revoke_key(clinic.identities.local, key_id)
    assert browser.get("/tables").status_code == 303
    assert signed_in(Browser(clinic), key=text) == 401


def test_signing_out_ends_the_session_on_the_server(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    token = ana.cookies["discreet-session"]
    assert ana.post("/sign-out").headers["location"] == "/sign-in"
    assert Browser(clinic, cookies={"discreet-session": token}).get("/ask").status_code == 303


@pytest.mark.parametrize(
    "aim", ["//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0aset-cookie:x", "javascript:1"]
)
def test_one_is_sent_to_pages_of_ours_only(clinic: Clinic, aim: str) -> None:
    link = clinic.identities.make_link(clinic.identities.local, "ana")
    response = Browser(clinic).send("POST", "/sign-in", data={"token": link, "next": aim}, headers={"origin": ORIGIN})
    assert response.headers["location"] in ("/", "/%0d%0aset-cookie:x")


def test_guessing_is_slowed_down(clinic: Clinic) -> None:
    statuses = [signed_in(Browser(clinic), key=f"dk_{place:016x}_{'0' * 40}") for place in range(25)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    _, key = clinic.identities.make_key(clinic.identities.local, "ana")
    link = clinic.identities.make_link(clinic.identities.local, "ana")
    assert [signed_in(Browser(clinic), key=key), signed_in(Browser(clinic), token=link)] == [303, 303]
    assert signed_in(Browser(clinic), token=link) == 429  # it was used, and wrong ones stay slow


def test_revoked_people_are_out_with_the_next_click(clinic: Clinic) -> None:
    ana = clinic.browser("ana")
    clinic.identities.disable_person(clinic.identities.local, "ana")
    assert ana.get("/ask").status_code == 303
