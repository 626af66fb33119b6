"""Keys: who may make, rotate and revoke which, and that nothing but a live key lets anybody in."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidParameter, NotAuthenticated, NotPermitted
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity import access_keys, people
from discreet.service.identity.access_keys import DAY
from tests.service.identity.helpers import Office

STEWARD, ANALYST, AUDITOR, OWNER = ServiceRole.STEWARD, ServiceRole.ANALYST, ServiceRole.AUDITOR, ServiceRole.OWNER


@pytest.fixture
def office() -> Office:
    return Office()


def refused(office: Office, text: object) -> bool:
    """Tells whether a text is no key; the error never says why."""
    try:
        office.identities.authenticate_key(text)
    except NotAuthenticated as error:
        return str(error) == str(NotAuthenticated())
    return False


def test_a_key_tells_who_it_is_for(office: Office) -> None:
    key_id, text = office.identities.make_key(
        office.sam, "cid", ANALYST, tables=["visits", "wards"], project="flu", expires_days=7, note="nightly"
    )
    caller = office.identities.authenticate_key(text)
    assert caller == ServiceCaller(
        name="cid", role=ANALYST, credential=key_id, tables=frozenset({"visits", "wards"}), project="flu"
    )
    assert text.startswith(f"dk_{key_id}_")
    assert len(text.rpartition("_")[2]) * 4 >= 128
    assert office.identities.caller_of_key(key_id) == caller
    (listed,) = [key for key in office.identities.keys(office.sam) if key.id == key_id]
    assert (listed.note, listed.expires, listed.revoked) == ("nightly", office.clock.now + 7 * DAY, None)
    assert text.rpartition("_")[2] not in repr(listed)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: "",
        lambda _: None,
        lambda _: b"dk_",
        lambda text: text + "0",
        lambda text: text[:-1],
        lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"),
        lambda text: " " + text,
        lambda text: text + "\n",
        lambda text: text.upper(),
        lambda text: text.replace("dk_", "sk_"),
        lambda text: f"dk_{'0' * 16}_{text.rpartition('_')[2]}",
        lambda text: f"dk_' OR 1=1 --_{text.rpartition('_')[2]}",
        lambda text: text.split("_")[1],
        lambda _: "dk_" + "\ud800" * 16 + "_" + "0" * 40,
        lambda _: "x" * 10_000_000,
    ],
)
def test_nothing_else_is_a_key(office: Office, spoil: Callable[[str], object]) -> None:
    assert not refused(office, office.texts["ana"])
    assert refused(office, spoil(office.texts["ana"]))


def test_the_secret_of_one_key_does_not_fit_another(office: Office) -> None:
    ana, ben = office.texts["ana"].split("_"), office.texts["ben"].split("_")
    assert refused(office, f"dk_{ana[1]}_{ben[2]}")


def test_a_key_ends_with_its_time_to_the_second(office: Office) -> None:
    _, text = office.identities.make_key(office.sam, "ana", expires_days=1)
    office.clock.now += DAY - 1
    assert not refused(office, text)
    office.clock.now += 1
    assert refused(office, text)


def test_a_revoked_key_ends_at_once_also_where_it_was_proven_before(office: Office) -> None:
    office.identities.revoke_key(office.sam, office.ana.credential)
    assert refused(office, office.texts["ana"])
    with pytest.raises(NotAuthenticated):
        office.identities.caller_of_key(office.ana.credential)
    assert not refused(office, office.texts["ben"])
    office.identities.revoke_key(office.sam, office.ana.credential)  # again, without a change
    (key,) = [key for key in office.identities.keys(office.ana) if key.id == office.ana.credential]
    assert key.revoked == office.clock.now


def test_another_process_that_revokes_is_heard_at_once(tmp_path: Path) -> None:
    here = Office(path=tmp_path / "identities")
    there = type(here.identities)(tmp_path / "identities", clock=here.clock)
    there.revoke_key(here.owner, here.ana.credential)
    assert refused(here, here.texts["ana"])


def test_rotation_keeps_the_person_the_scope_and_the_end(office: Office) -> None:
    key_id, text = office.identities.make_key(office.sam, "ana", tables=["visits"], project="flu", expires_days=9)
    before = office.identities.authenticate_key(text)
    office.clock.now += DAY
    other_id, other = office.identities.rotate_key(before, key_id)
    after = office.identities.authenticate_key(other)
    assert refused(office, text)
    assert (after.name, after.role, after.tables, after.project) == ("ana", ANALYST, before.tables, "flu")
    assert access_keys.lineage(other_id) == key_id != other_id
    office.clock.now += 8 * DAY
    assert refused(office, other)  # when the first would have ended


def test_nobody_lengthens_their_own_key_and_a_steward_can(office: Office) -> None:
    with pytest.raises(NotPermitted):
        office.identities.rotate_key(office.ana, office.ana.credential, expires_days=900)
    _, text = office.identities.rotate_key(office.sam, office.ana.credential, expires_days=900)
    office.clock.now += 899 * DAY
    assert not refused(office, text)


def test_a_key_that_has_ended_is_not_rotated(office: Office) -> None:
    office.identities.revoke_key(office.sam, office.ana.credential)
    with pytest.raises(InvalidParameter, match="in use"):
        office.identities.rotate_key(office.sam, office.ana.credential)
    office.clock.now += 90 * DAY
    with pytest.raises(InvalidParameter, match="in use"):
        office.identities.rotate_key(office.owner, office.ben.credential)


# ------------------------------------------------------------------------------------------------------ who may what


@pytest.mark.parametrize(
    ("by", "role", "allowed"),
    [
        ("owner", STEWARD, True),
        ("owner", ANALYST, True),
        ("owner", AUDITOR, True),
        ("owner", OWNER, False),
        ("sam", STEWARD, False),
        ("sam", OWNER, False),
        ("sam", ANALYST, True),
        ("sam", AUDITOR, True),
        *((by, role, False) for by in ("ana", "eve") for role in ServiceRole),
    ],
)
def test_who_makes_whom(office: Office, by: str, role: ServiceRole, allowed: bool) -> None:
    made: list[object] = []
    try:
        made.append(office.identities.make_key(getattr(office, by), "new", role))
        made.append(office.identities.make_person(getattr(office, by), "newer", role))
    except (NotPermitted, InvalidParameter):
        assert not made
    assert len(made) == (2 if allowed else 0)
    assert len(office.identities.people(office.owner)) == (8 if allowed else 6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("act", ["make_key", "make_link", "disable_person", "enable_person", "end_sessions"])
@pytest.mark.parametrize(
    ("by", "about", "allowed"),
    [
        ("owner", "sam", True),
        ("sam", "sue", False),
        ("sam", "owner", False),
        ("sam", "ana", True),
        ("sam", "eve", True),
        ("ana", "ben", False),
        ("eve", "ana", False),
    ],
)
def test_who_acts_on_whom(office: Office, act: str, by: str, about: str, allowed: bool) -> None:
    try:
        getattr(office.identities, act)(getattr(office, by), about)
    except NotPermitted:
        assert not allowed
    else:
        assert allowed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("act", ["rotate_key", "revoke_key"])
@pytest.mark.parametrize(
    ("by", "about", "allowed"),
    [
        ("owner", "sam", True),
        ("sam", "sam", True),
        ("sam", "sue", False),
        ("sam", "ana", True),
        ("ana", "ana", True),
        ("ana", "ben", False),
        ("ana", "sam", False),
        ("eve", "eve", True),
        ("eve", "ana", False),
    ],
)
def test_whose_keys_may_be_touched(office: Office, act: str, by: str, about: str, allowed: bool) -> None:
    try:
        getattr(office.identities, act)(getattr(office, by), getattr(office, about).credential)
    except NotPermitted:
        assert not allowed
        assert not refused(office, office.texts[about])
    else:
        assert allowed
        assert refused(office, office.texts[about])


def test_a_key_of_others_is_told_from_none_by_nobody(office: Office) -> None:
    told = []
    for key_id in (office.ben.credential, "0" * 16, "'"):
        with pytest.raises(NotPermitted) as error:
            office.identities.revoke_key(office.ana, key_id)
        told.append(str(error.value))
    assert len(set(told)) == 1


def test_a_narrow_key_makes_no_wider_one(office: Office) -> None:
    scopes: list[dict[str, Any]] = [{"tables": ["visits"]}, {"project": "flu"}, {"tables": []}]
    for scope in scopes:
        narrow_id, text = office.identities.make_key(office.owner, "sam", **scope)
        narrow = office.identities.authenticate_key(text)
        for act in (
            lambda by=narrow: office.identities.make_key(by, "sam"),
            lambda by=narrow: office.identities.make_key(by, "zoe", ANALYST),
            lambda by=narrow: office.identities.make_person(by, "zoe", ANALYST),
            lambda by=narrow: office.identities.make_link(by, "sam"),
            lambda by=narrow: office.identities.make_link(by, "ana"),
            lambda by=narrow: office.identities.rotate_key(by, office.sam.credential),
            lambda by=narrow: office.identities.revoke_key(by, office.sam.credential),
            lambda by=narrow: office.identities.rotate_key(by, office.ana.credential),
        ):
            with pytest.raises(NotPermitted):
                act()
        again_id, again = office.identities.rotate_key(narrow, narrow_id)  # itself it may replace, as narrow as it was
        assert office.identities.authenticate_key(again).tables == narrow.tables
        office.identities.revoke_key(office.identities.authenticate_key(again), again_id)
    assert "zoe" not in {person.name for person in office.identities.people(office.owner)}


def test_analysts_see_their_own_keys_and_stewards_all(office: Office) -> None:
    assert {key.person for key in office.identities.keys(office.ana)} == {"ana"}
    assert {key.person for key in office.identities.keys(office.eve)} == {"eve"}
    assert {key.person for key in office.identities.keys(office.sam)} == {"sam", "sue", "ana", "ben", "eve"}
    for caller in (office.ana, office.eve):
        with pytest.raises(NotPermitted):
            office.identities.people(caller)


# ------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ana",
        "a\r\nb",
        "a\nb",
        "a\x00b",
        "a\tb",
        "a\u2028b",
        "x" * 201,
        "owner",
        "Owner",
        "OWNER",
        "\uff4fwner",
        None,
        7,
    ],
)
def test_names_that_nobody_gets(office: Office, name: str) -> None:
    before = office.identities.people(office.owner)
    for by in (office.owner, office.sam):
        with pytest.raises(InvalidParameter):
            office.identities.make_person(by, name, ANALYST)
        with pytest.raises((InvalidParameter, NotPermitted)):
            office.identities.make_key(by, name, ANALYST)
    assert office.identities.people(office.owner) == before


@pytest.mark.parametrize("name", ["Owner", "\uff4fwner", "\u043ewner"])
def test_the_name_of_the_owner_is_kept_before_there_is_one(name: str) -> None:
    with pytest.raises(InvalidParameter, match="not to be the name of the owner"):
        people.check_person_name(name, ANALYST)


@pytest.mark.parametrize(
    "name",
    [
        *("ana", "Ana", "ANA", "\uff41na", "\uff21\uff2e\uff21"),
        *(
            "\u0430na",
            "an\u0430",
            "\u0410NA",
            "\u03b1na",
            "\u0391\u039d\u0391",
            "\u0251na",
            "\u13aana",
        ),  # other scripts
        *("a\u034fna", "ana\ufe0f", "a\u3164na", "ana\u17b5"),  # marks and letters that show nothing
    ],
)
def test_nobody_is_taken_for_somebody_else(office: Office, name: str) -> None:
    with pytest.raises(InvalidParameter, match="taken"):
        office.identities.make_person(office.sam, name, ANALYST)
    with pytest.raises(InvalidParameter, match=r"taken|their role|known"):
        office.identities.make_key(office.owner, name, STEWARD)


@pytest.mark.parametrize(
    ("one", "other"),
    [("lia1", "liaI"), ("lia1", "lial"), ("bob0", "bobo"), ("BOB", "\u0412\u041e\u0412"), ("o p", "o  p")],
)
def test_look_alikes_are_refused_in_either_order(office: Office, one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        made = Office()
        made.identities.make_person(made.owner, first, ANALYST)
        with pytest.raises(InvalidParameter):
            made.identities.make_person(made.owner, second, ANALYST)
    assert office.identities.role_of(one) is None


@pytest.mark.parametrize(
    "name", ["anna", "ann", "anya", "\u00e1na", "\u0410\u043d\u044f", "\u4e2d\u6587", "anal", "ana2"]
)
def test_other_names_are_free(office: Office, name: str) -> None:
    assert office.identities.make_person(office.owner, name, ANALYST).name == name


def test_the_owner_has_keys_of_the_role_owner_only(office: Office) -> None:
    _, text = office.identities.make_key(office.owner, "owner")
    assert office.identities.authenticate_key(text).role is OWNER
    with pytest.raises(InvalidParameter, match="role"):
        office.identities.make_key(office.owner, "owner", STEWARD)
    with pytest.raises(InvalidParameter, match="role"):
        office.identities.make_key(office.owner, "zoe", OWNER)
    with pytest.raises(NotPermitted):
        office.identities.disable_person(office.owner, "owner")


def test_a_role_is_not_changed_by_a_key(office: Office) -> None:
    with pytest.raises(InvalidParameter, match="role"):
        office.identities.make_key(office.owner, "ana", STEWARD)


@pytest.mark.parametrize(
    "bad", [{"tables": ["a\nb"]}, {"project": "a\rb"}, {"note": "a\nb"}, {"expires_days": 0}, {"expires_days": 10**9}]
)
def test_what_a_key_cannot_be(office: Office, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        office.identities.make_key(office.sam, "zoe", ANALYST, **bad)  # type: ignore[arg-type]
    assert "zoe" not in {person.name for person in office.identities.people(office.owner)}


# ---------------------------------------------------------------------------------------------------- what is written


def test_disabling_ends_everything_at_once(office: Office) -> None:
    session, link = office.session("ana"), office.identities.make_link(office.sam, "ana")
    office.identities.disable_person(office.sam, "ana")
    assert refused(office, office.texts["ana"])
    with pytest.raises(NotAuthenticated):
        office.identities.authenticate_session(session)
    with pytest.raises(NotAuthenticated):
        office.identities.sign_in(link)
    with pytest.raises(NotAuthenticated):
        office.identities.sign_in_known("ana")
    for act in ("make_key", "make_link"):
        with pytest.raises(InvalidParameter, match="disabled"):
            getattr(office.identities, act)(office.sam, "ana")
    office.identities.enable_person(office.sam, "ana")
    assert refused(office, office.texts["ana"])  # what has ended stays ended
    _, text = office.identities.make_key(office.sam, "ana")
    assert not refused(office, text)


def test_the_mark_of_a_disabled_person_alone_ends_everything(office: Office) -> None:
    """Also what another process makes between the mark and the end of all that there was."""
    session, link = office.session("ana"), office.identities.make_link(office.sam, "ana")
    with office.identities.database.acting() as connection:
        connection.execute("UPDATE people SET disabled = 1 WHERE name = 'ana'")
    assert refused(office, office.texts["ana"])
    assert [each.key_id for each in office.identities.scram_verifier("ana")] == [""]
    with pytest.raises(NotAuthenticated):
        office.identities.caller_of_key(office.ana.credential)
    with pytest.raises(NotAuthenticated):
        office.identities.authenticate_session(session)
    with pytest.raises(NotAuthenticated):
        office.identities.sign_in(link)


def test_a_dump_of_the_database_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "identities"
    office = Office(path=path)
    session = office.session("ana")
    link = office.identities.make_link(office.owner, "ben")
    csrf = office.identities.authenticate_session(session)[1]
    dump = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    with closing(sqlite3.connect(path)) as connection:
        dump += "\n".join(connection.iterdump()).encode()
        values = [
            value
            for (table,) in list(connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
            for row in connection.execute(f"SELECT * FROM {table}")
            for value in row
        ]
    secrets = [text.rpartition("_")[2] for text in office.texts.values()] + [session, link, csrf]
    for secret in secrets:
        assert secret.encode() not in dump
        assert secret.encode() not in dump.replace(b"X'", b"").lower()
    for value in values:  # nothing that stands there opens anything, as it is or in hexadecimal digits
        shown = value.hex() if isinstance(value, bytes) else str(value)
        assert refused(office, shown)
        assert refused(office, f"dk_{office.ana.credential}_{shown}"[:60])
        with pytest.raises(NotAuthenticated):
            office.identities.authenticate_session(shown)
        with pytest.raises(NotAuthenticated):
            office.identities.sign_in(shown)


def test_only_the_owner_of_the_machine_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "identities"
    Office(path=path).identities.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    Office(path=path.with_name("other"))
    type(Office().identities)(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# ----------------------------------------------------------------------------------------------------------- recording


def test_every_act_is_told_to_the_ledger_without_secrets(office: Office) -> None:
    office.recorded.acts.clear()
    key_id, text = office.identities.make_key(office.sam, "zoe", ANALYST)
    other_id, other = office.identities.rotate_key(office.sam, key_id)
    link = office.identities.make_link(office.sam, "zoe")
    office.identities.revoke_key(office.sam, other_id)
    office.identities.end_sessions(office.sam, "zoe")
    office.identities.disable_person(office.sam, "zoe")
    office.identities.enable_person(office.sam, "zoe")
    assert office.recorded.acts == [
        ("make person", "sam", "zoe", ""),
        ("make key", "sam", "zoe", key_id),
        ("rotate key", "sam", "zoe", key_id),
        ("make sign-in link", "sam", "zoe", ""),
        ("revoke key", "sam", "zoe", other_id),
        ("end sessions", "sam", "zoe", ""),
        ("disable person", "sam", "zoe", ""),
        ("enable person", "sam", "zoe", ""),
    ]
    for secret in (text, other, link):
        assert secret.rpartition("_")[2] not in repr(office.recorded.acts)


def test_without_the_ledger_nothing_is_given_and_everything_is_taken(office: Office) -> None:
    office.recorded.broken = True
    identities, before = office.identities, len(office.identities.keys(office.owner))
    for act in (
        lambda: identities.make_person(office.sam, "zoe", ANALYST),
        lambda: identities.make_key(office.sam, "ana"),
        lambda: identities.make_link(office.sam, "ana"),
        lambda: identities.rotate_key(office.ana, office.ana.credential),
        lambda: identities.revoke_key(office.sam, office.ben.credential),
        lambda: identities.disable_person(office.sam, "eve"),
    ):
        with pytest.raises(Exception, match="ledger cannot be written"):
            act()
    assert len(identities.keys(office.owner)) == before
    assert identities.database.rows("SELECT * FROM links") == []
    assert not refused(office, office.texts["ana"])
    assert refused(office, office.texts["ben"])
    assert refused(office, office.texts["eve"])
