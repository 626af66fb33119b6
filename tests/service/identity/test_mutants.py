"""Mistakes that services have made, each put into the code and caught by a check that the real code passes."""

from __future__ import annotations

import hmac
import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import NotAuthenticated
from discreet.noise.tokens import random_bytes
from discreet.service.acts import StewardActions, steward_actions
from discreet.service.identity import (
    access_keys,
    browser_sessions,
    identities,
    look_alikes,
    people,
    rate_limits,
    scram,
)
from discreet.service.identity.access_keys import AccessKey
from discreet.service.identity.identities import Identities
from discreet.service.identity.openid import OpenIdSignIn, _Pending
from discreet.service.identity.scram import Exchange, Verifier
from tests.service.acts import test_acts
from tests.service.identity import test_keys, test_openid, test_rate_limits, test_scram, test_sessions
from tests.service.identity.helpers import NOON, Office

Check = Callable[[Path], None]
FAILED = (AssertionError, pytest.fail.Exception)


def keys(check: Callable[..., None], *more: Any) -> Check:
    return lambda _: check(Office(), *more)


def clinic(check: Callable[..., None]) -> Check:
    return lambda _: check(test_acts.Clinic())


def alone(check: Callable[[], None]) -> Check:
    return lambda _: check()


def kept_link(connection: Any, text: object, now: float) -> str:
    row = connection.execute(
        "SELECT person FROM links WHERE hash = ? AND expires > ?", (access_keys.hash_secret(str(text)), now)
    ).fetchone()
    if row is None:
        raise NotAuthenticated
    return str(row["person"])


def late_link(connection: Any, text: object, _: float) -> str:
    return HONEST_TAKE(connection, text, 0.0)


def adopted(self: Identities, link: object, *, replaces: object = None) -> str:
    """Signs in into the session that the browser came with."""
    with self.database.acting() as connection:
        person = browser_sessions.take_link(connection, link, self.clock())
        connection.execute(
            "INSERT OR REPLACE INTO sessions VALUES (?,?,?,?,?,?)",
            (
                access_keys.hash_secret(str(replaces)),
                str(replaces),
                person,
                self.clock(),
                self.clock(),
                self.clock() + 999,
            ),
        )
    return str(replaces)


def kept_session(database: Any, text: object, limits: Any, now: float) -> Any:
    return HONEST_FIND(database, text, limits, min(now, NEVER))


def first_only(self: Exchange, message: bytes) -> tuple[bytes, str]:
    """Believes whoever answers in the right form."""
    if scram._FINAL.fullmatch(scram._text(message)) is None or self._said is None:
        raise NotAuthenticated
    return b"v=", self._verifiers[0].key_id


def taken_by_anybody(self: _Pending, _ticket: object, state: object) -> Any:
    for ticket, attempt in list(self._kept.items()):
        if attempt.state == state:
            del self._kept[ticket]
            return attempt
    raise NotAuthenticated


def without(function: Any, line: str) -> Any:
    """A function of a class in which one line does nothing."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(line) == 1
    made: dict[str, Any] = {}
    exec(source.replace(line, "None"), function.__globals__, made)
    return made[function.__name__]


HONEST_TAKE = browser_sessions.take_link
HONEST_FIND = browser_sessions.find_session
NEVER = NOON

MUTANTS: dict[str, tuple[Any, str, Any, Check]] = {
    "keys do not expire": (
        AccessKey,
        "live",
        lambda key, _: key.revoked is None,
        keys(test_keys.test_a_key_ends_with_its_time_to_the_second),
    ),
    "a key lasts a second longer": (
        AccessKey,
        "live",
        lambda key, now: key.revoked is None and now <= key.expires,
        keys(test_keys.test_a_key_ends_with_its_time_to_the_second),
    ),
    "keys are not revoked": (
        AccessKey,
        "live",
        lambda key, now: now < key.expires,
        keys(test_keys.test_a_revoked_key_ends_at_once_also_where_it_was_proven_before),
    ),
    "a key is known by its id": (
        hmac,
        "compare_digest",
        lambda *_: True,
        keys(test_keys.test_the_secret_of_one_key_does_not_fit_another),
    ),
    "who is disabled may use what they have": (
        access_keys,
        "_usable",
        lambda row, now: None if row is None or not AccessKey.of(row).live(now) else AccessKey.of(row),
        keys(test_keys.test_the_mark_of_a_disabled_person_alone_ends_everything),
    ),
    "everybody manages everybody": (
        people,
        "manages",
        lambda *_: True,
        keys(test_keys.test_who_acts_on_whom, "make_key", "sam", "sue", False),
    ),
    "stewards manage stewards' keys": (
        people,
        "manages",
        lambda *_: True,
        keys(test_keys.test_whose_keys_may_be_touched, "rotate_key", "sam", "sue", False),
    ),
    "narrow keys make wide ones": (
        people,
        "require_whole",
        lambda *_: None,
        keys(test_keys.test_a_narrow_key_makes_no_wider_one),
    ),
    "names with line breaks": (
        people,
        "checked_name",
        lambda name: name,
        keys(test_keys.test_names_that_nobody_gets, "a\r\nb"),
    ),
    "names are taken as they are written": (
        identities,
        "look_alike",
        lambda one, other: one == other,
        keys(test_keys.test_nobody_is_taken_for_somebody_else, "\u0430na"),
    ),
    "names are compared by their case only": (
        look_alikes,
        "shapes",
        lambda name: frozenset([name.casefold()]),
        keys(test_keys.test_nobody_is_taken_for_somebody_else, "a\u034fna"),
    ),
    "what looks like the owner is not": (
        people,
        "look_alike",
        lambda one, other: one.casefold() == other.casefold(),
        lambda _: test_keys.test_the_name_of_the_owner_is_kept_before_there_is_one("\u043ewner"),
    ),
    "secrets are kept as they are": (
        access_keys,
        "hash_secret",
        lambda text: text.encode("utf-8", "replace"),
        test_keys.test_a_dump_of_the_database_lets_nobody_in,
    ),
    "rotation leaves the old key": (
        access_keys,
        "revoke",
        lambda *_: None,
        keys(test_keys.test_rotation_keeps_the_person_the_scope_and_the_end),
    ),
    "rotation begins a new day": (
        rate_limits,
        "lineage",
        lambda credential: credential,
        alone(test_rate_limits.test_a_new_key_of_the_same_line_begins_no_new_day),
    ),
    "every session has a day of its own": (
        rate_limits,
        "SESSION",
        "\n",
        alone(test_rate_limits.test_all_sessions_of_a_person_are_counted_together),
    ),
    "every address of a network is another": (
        rate_limits,
        "network",
        lambda address: address,
        alone(test_rate_limits.test_a_network_of_addresses_is_one_stranger),
    ),
    "links are used again": (
        browser_sessions,
        "take_link",
        kept_link,
        keys(test_sessions.test_a_link_is_used_once),
    ),
    "links last": (browser_sessions, "take_link", late_link, keys(test_sessions.test_a_link_is_late_after_its_time)),
    "sessions are taken from the browser": (
        Identities,
        "sign_in",
        adopted,
        keys(test_sessions.test_a_session_that_was_fixed_beforehand_is_nobodys),
    ),
    "sessions last": (
        browser_sessions,
        "find_session",
        kept_session,
        keys(test_sessions.test_a_session_ends_in_any_case),
    ),
    "idle sessions last": (
        browser_sessions,
        "find_session",
        kept_session,
        keys(test_sessions.test_a_session_ends_when_it_is_idle),
    ),
    "forms show anything": (
        browser_sessions,
        "same_csrf",
        lambda *_: True,
        keys(test_sessions.test_a_form_shows_the_token_of_its_own_session, lambda *_: ""),
    ),
    "all sessions have one form token": (
        browser_sessions,
        "csrf_of",
        lambda _: "f" * 64,
        keys(test_sessions.test_a_form_shows_the_token_of_its_own_session, lambda *told: told[2]),
    ),
    "who is not known has a new salt each time": (
        scram,
        "salt_for",
        lambda *_: random_bytes(16),
        alone(test_scram.test_names_that_nobody_has_cannot_be_told_from_others),
    ),
    "every proof fits": (
        Verifier,
        "fits",
        lambda *_: True,
        lambda _: test_scram.test_last_messages_that_prove_nothing(lambda text: text.replace(b"p=dHzb", b"p=dHzc")),
    ),
    "any proof of the right form": (
        Exchange,
        "final",
        first_only,
        alone(test_scram.test_an_exchange_cannot_be_played_again),
    ),
    "a stranger's browser comes back": (
        _Pending,
        "take",
        taken_by_anybody,
        alone(test_openid.test_an_attempt_belongs_to_one_browser_and_is_used_once),
    ),
    "tokens of any nonce": (
        OpenIdSignIn,
        "_check",
        lambda *_: None,
        lambda _: test_openid.test_tokens_that_are_not_believed({"nonce": "another"}),
    ),
    "analysts see everything": (
        steward_actions,
        "_sees",
        lambda *_: True,
        clinic(test_acts.test_others_entries_are_as_if_there_were_none),
    ),
    "verbs of the ledger ask for no permission": (
        StewardActions,
        "perform",
        without(StewardActions.perform, "caller.require(verb.permission)"),
        clinic(test_acts.test_a_verb_needs_its_permission_and_a_whole_key),
    ),
    "actions on people ask for no permission": (
        StewardActions,
        "perform",
        without(StewardActions.perform, "caller.require(verb.permission)"),
        clinic(test_acts.test_people_and_keys_need_their_permission),
    ),
    "keys for some tables change the whole ledger": (
        StewardActions,
        "perform",
        without(StewardActions.perform, "require_whole(caller, verb.name)"),
        clinic(test_acts.test_a_verb_needs_its_permission_and_a_whole_key),
    ),
    "stewards appoint stewards": (
        StewardActions,
        "perform",
        without(StewardActions.perform, "self._check(caller, request)"),
        clinic(test_acts.test_stewards_make_no_stewards_and_change_none),
    ),
    "accounts without analysts answer everybody": (
        steward_actions,
        "require_listed",
        lambda ledger, analyst, account: ledger.admit(account, analyst),
        clinic(test_acts.test_analysts_see_nothing_of_others),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_check_kills(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    owner, attribute, mistake, check = MUTANTS[name]
    (tmp_path / "honest").mkdir()
    (tmp_path / "mutant").mkdir()
    check(tmp_path / "honest")
    monkeypatch.setattr(owner, attribute, mistake)
    if owner is access_keys and attribute == "hash_secret":
        monkeypatch.setattr(browser_sessions, "hash_secret", mistake)
    with pytest.raises(FAILED):
        check(tmp_path / "mutant")
