"""Sessions and sign-in links: used once, new at each sign-in, ended by time, and forms that show their token."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from discreet.errors import NotAuthenticated, NotPermitted
from discreet.service.caller import ServiceRole
from discreet.service.identity import browser_sessions
from discreet.service.identity.browser_sessions import SessionLimits
from tests.service.identity.helpers import Office

LIMITS = SessionLimits()


@pytest.fixture
def office() -> Office:
    return Office()


def ended(office: Office, token: object) -> bool:
    try:
        office.identities.authenticate_session(token)
    except NotAuthenticated:
        return True
    return False


def test_a_link_signs_in_its_person(office: Office) -> None:
    token = office.session("ana")
    caller, csrf = office.identities.authenticate_session(token)
    assert (caller.name, caller.role, caller.tables, caller.project) == ("ana", ServiceRole.ANALYST, None, "")
    assert token not in caller.credential
    assert csrf not in (token, caller.credential)


def test_a_link_is_used_once(office: Office) -> None:
    link = office.identities.make_link(office.sam, "ana")
    first = office.identities.sign_in(link)
    with pytest.raises(NotAuthenticated):
        office.identities.sign_in(link)
    assert not ended(office, first)


def test_a_link_is_late_after_its_time(office: Office) -> None:
    late, in_time = (office.identities.make_link(office.sam, "ana") for _ in range(2))
    office.clock.now += LIMITS.link - 1
    office.identities.sign_in(in_time)
    office.clock.now += 1
    with pytest.raises(NotAuthenticated):
        office.identities.sign_in(late)


@pytest.mark.parametrize("bad", ["", None, 7, "0" * 64, "' OR 1=1 --", "\ud800", "x" * 10**6])
def test_nothing_else_is_a_link_or_a_session(office: Office, bad: object) -> None:
    office.session("ana")
    with pytest.raises(NotAuthenticated):
        office.identities.sign_in(bad)
    assert ended(office, bad)


def test_links_sessions_and_keys_are_not_taken_for_each_other(office: Office) -> None:
    token, link = office.session("ana"), office.identities.make_link(office.sam, "ana")
    for shown in (link, office.texts["ana"]):
        assert ended(office, shown)
    for shown in (token, office.texts["ana"]):
        with pytest.raises(NotAuthenticated):
            office.identities.sign_in(shown)
    for shown in (token, link):
        with pytest.raises(NotAuthenticated):
            office.identities.authenticate_key(shown)


def test_a_session_that_was_fixed_beforehand_is_nobodys(office: Office) -> None:
    """Whoever plants a token in a browser gets nothing by waiting until its user signs in."""
    planted = office.session("eve")
    for fixed in ("0" * 64, planted):
        link = office.identities.make_link(office.sam, "ana")
        token = office.identities.sign_in(link, replaces=fixed)
        assert token != fixed
        assert ended(office, fixed)
        assert office.identities.authenticate_session(token)[0].name == "ana"


def test_a_session_ends_when_it_is_idle(office: Office) -> None:
    token = office.session("ana")
    for _ in range(4):
        office.clock.now += LIMITS.idle - 1
        assert not ended(office, token)  # each use counts
    office.clock.now += LIMITS.idle
    assert ended(office, token)


def test_a_session_ends_in_any_case(office: Office) -> None:
    token = office.session("ana")
    start = office.clock.now
    while office.clock.now < start + LIMITS.absolute:
        assert not ended(office, token)
        office.clock.now += LIMITS.idle / 2
    assert ended(office, token)


def test_signing_out_ends_one_session_and_a_steward_ends_all(office: Office) -> None:
    one, two, other = office.session("ana"), office.session("ana"), office.session("ben")
    link = office.identities.make_link(office.sam, "ana")
    office.identities.sign_out(one)
    assert [ended(office, token) for token in (one, two, other)] == [True, False, False]
    office.identities.end_sessions(office.sam, "ana")
    assert [ended(office, token) for token in (two, other)] == [True, False]
    with pytest.raises(NotAuthenticated):
        office.identities.sign_in(link)
    office.identities.end_sessions(office.ben, "ben")
    assert ended(office, other)


def test_sessions_of_one_person_are_bounded(office: Office) -> None:
    tokens = []
    for _ in range(LIMITS.most + 3):
        tokens.append(office.session("ana"))
        office.clock.now += 1
    assert [ended(office, token) for token in tokens] == [True] * 3 + [False] * LIMITS.most


def test_a_key_begins_a_session_of_its_scope_that_ends_with_it(office: Office) -> None:
    key_id, text = office.identities.make_key(office.sam, "ana", tables=["visits"], project="flu", expires_days=1)
    token = office.identities.sign_in_with_key(text, replaces=office.session("ana"))
    caller, _ = office.identities.authenticate_session(token)
    assert (caller.name, caller.tables, caller.project) == ("ana", frozenset({"visits"}), "flu")
    assert office.identities.is_valid(caller)
    with pytest.raises(NotPermitted):  # a session is not the key: it replaces none
        office.identities.rotate_key(caller, key_id)
    office.identities.revoke_key(office.sam, key_id)
    assert ended(office, token)
    assert not office.identities.is_valid(caller)
    for bad in (text, "", None, token):
        with pytest.raises(NotAuthenticated):
            office.identities.sign_in_with_key(bad)


@pytest.mark.parametrize("begin", ["key", "session"])
@pytest.mark.parametrize("end", ["revoke", "disable", "time"])
def test_long_requests_hear_of_the_end(office: Office, begin: str, end: str) -> None:
    token = office.identities.sign_in_with_key(office.texts["ana"])
    caller = office.ana if begin == "key" else office.identities.authenticate_session(token)[0]
    other = office.ben
    assert office.identities.is_valid(caller)
    if end == "revoke":
        office.identities.revoke_key(office.sam, office.ana.credential)
    elif end == "disable":
        office.identities.disable_person(office.sam, "ana")
    else:
        _, text = office.identities.make_key(office.sam, "ben", expires_days=900)
        other = office.identities.authenticate_key(text)
        office.clock.now += 90 * 86400
    assert not office.identities.is_valid(caller)
    assert office.identities.is_valid(other)


def test_looking_whether_a_session_lasts_is_no_use_of_it(office: Office) -> None:
    caller, _ = office.identities.authenticate_session(office.session("ana"))
    for _ in range(4):
        office.clock.now += LIMITS.idle / 4
        alive = office.identities.is_valid(caller)
    assert not alive


def test_who_a_provider_has_proven_must_be_known(office: Office) -> None:
    token = office.identities.sign_in_known("ana")
    assert office.identities.authenticate_session(token)[0].name == "ana"
    with pytest.raises(NotAuthenticated):
        office.identities.sign_in_known("stranger")
    office.identities.sign_in_known("ana", replaces=token)
    assert ended(office, token)


@pytest.mark.parametrize(
    "shown",
    [
        lambda *_: "",
        lambda *_: None,
        lambda token, *_: token,
        lambda *told: told[2],
        lambda *told: told[1][:-1],
        lambda *told: told[1] + "0",
        lambda *told: told[1].upper(),
        lambda *_: "\ud800",
    ],
)
def test_a_form_shows_the_token_of_its_own_session(office: Office, shown: Callable[[str, str, str], object]) -> None:
    token, second = office.session("ana"), office.session("ana")
    csrf, other = (office.identities.authenticate_session(each)[1] for each in (token, second))
    office.identities.require_csrf(token, csrf)
    with pytest.raises(NotPermitted):
        office.identities.require_csrf(token, shown(token, csrf, other))


def test_who_uses_a_session_is_noted_once_a_minute(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    token = office.session("ana")
    writes: list[None] = []
    honest = office.identities.database.counting

    def counting() -> AbstractContextManager[sqlite3.Connection]:
        writes.append(None)
        return honest()

    monkeypatch.setattr(office.identities.database, "counting", counting)
    for _ in range(10):
        office.identities.authenticate_session(token)
    assert not writes
    office.clock.now += browser_sessions._STEP
    for _ in range(10):
        office.identities.authenticate_session(token)
    assert len(writes) == 1
