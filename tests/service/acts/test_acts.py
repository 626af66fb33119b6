"""The ledger for callers: everybody sees their own, stewards act under their name, every act is an entry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pytest

from discreet.errors import (
    InsufficientBudget,
    InternalError,
    InvalidParameter,
    LedgerError,
    LedgerTampered,
    NotPermitted,
    UnknownEntry,
)
from discreet.ledger import Head, Ledger, Role
from discreet.privacy import Budget, Neighbours, Unit, events
from discreet.requests.request import Request
from discreet.requests.verb_table import VERBS, Permission, Queue, Verb
from discreet.service.acts import PEOPLE_VERBS, StewardActions, recorder, steward_actions
from discreet.service.acts.people_actions import (
    DisablePerson,
    EnablePerson,
    MakeKey,
    MakeLink,
    MakePerson,
    RevokeKey,
    RotateKey,
)
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity import Identities
from tests.ledger.ledgers import tamper
from tests.service.identity.helpers import Clock

QUESTION = '{"outputs":[["n","COUNT"]],"table":"visits"}'


def act(verb: str) -> Callable[..., Any]:
    """Has a steward do something, with arguments as HTTP has them."""
    return lambda acts, by, **given: acts.perform(by, VERBS[verb].request.read(given))


amend, renew, unlock, appoint, allot = map(act, ("amend", "renew", "unlock", "appoint", "allot"))


class Clinic:
    """A ledger with two accounts, people of each role, and what was asked."""

    def __init__(self, path: str = ":memory:") -> None:
        self.ledger = Ledger(path)
        steward = self.ledger.stewardship
        steward.open_account("patients", unit=Unit("patient", "id"), budget=Budget(epsilon=2))
        steward.open_account("staff", unit=Unit("nurse", "id"), neighbours="replace", budget=Budget(rho=1))
        steward.attach("visits", account="patients", declaration="{}")
        steward.attach("shifts", account="staff", declaration="{}")
        self.identities = Identities(":memory:", record=recorder(self.ledger), clock=Clock())
        self.owner = self.identities.local
        self.sam, self.sue = (self.person(name, ServiceRole.STEWARD) for name in ("sam", "sue"))
        self.ana, self.ben = (self.person(name, ServiceRole.ANALYST) for name in ("ana", "ben"))
        self.eve = self.person("eve", ServiceRole.AUDITOR)
        self.acts = StewardActions(self.ledger, self.identities)

    def person(self, name: str, role: ServiceRole) -> ServiceCaller:
        return self.identities.authenticate_key(self.identities.make_key(self.owner, name, role)[1])

    def charge(self, who: str, epsilon: str = "0.1", **more: Any) -> int:
        return self.ledger.charge("patients", events.Pure(epsilon), analyst=who, question=QUESTION, **more).sequence

    def appoint(self) -> None:
        """Ana has a cap, Ben has none."""
        appoint(self.acts, self.sam, who="ana", role="analyst", account="patients", cap={"epsilon": "0.5"})
        appoint(self.acts, self.sam, who="ben", role="analyst", account="patients")


@pytest.fixture
def clinic() -> Iterator[Clinic]:
    made = Clinic()
    yield made
    made.ledger.verify()


# ----------------------------------------------------------------------------------------------------------- entries


def test_the_ledger_knows_who_was_made_by_whom(clinic: Clinic) -> None:
    told = [(entry.who, entry.content) for entry in clinic.ledger.history() if entry.kind == "service"]
    assert ("owner", {"act": "make person", "about": "sam", "role": "steward"}) in told
    assert [content["act"] for _, content in told if content["about"] == "ana"] == ["make person", "make key"]
    assert clinic.ledger.role("", "sam") is Role.STEWARD
    assert clinic.ledger.role("", "eve") is Role.AUDITOR
    assert clinic.ledger.role("", "ana") is None  # stewards appoint analysts, on accounts
    clinic.identities.revoke_key(clinic.sam, clinic.ana.credential)
    entry = clinic.ledger.history()[-1]
    assert (entry.who, entry.content["key"]) == ("sam", clinic.ana.credential)


def test_a_ledger_that_takes_no_entries_lets_nobody_be_made(tmp_path: Path) -> None:
    clinic = Clinic(str(tmp_path / "book"))
    with pytest.raises(LedgerTampered):
        clinic.ledger.check_anchor(Head(10**6, "0" * 64))  # another ledger's: this one is frozen now
    with pytest.raises(LedgerError, match="read-only"):
        clinic.identities.make_key(clinic.sam, "zoe", ServiceRole.ANALYST)
    assert clinic.identities.role_of("zoe") is None
    with pytest.raises(LedgerError):
        clinic.identities.revoke_key(clinic.sam, clinic.ana.credential)
    with pytest.raises(Exception, match="valid key"):
        clinic.identities.caller_of_key(clinic.ana.credential)


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        ("amend", lambda acts, by: amend(acts, by, account="patients", budget={"epsilon": 3}, note="agreed")),
        ("renew", lambda acts, by: renew(acts, by, account="patients", note="a new year")),
        ("renew", lambda acts, by: renew(acts, by, account="staff", budget={"rho": "1/2"})),
        ("unlock", lambda acts, by: unlock(acts, by, account="patients")),
        (
            "appoint",
            lambda acts, by: appoint(acts, by, who="ana", role="analyst", account="patients", cap={"epsilon": "1"}),
        ),
        ("appoint", lambda acts, by: appoint(acts, by, who="eve", role="auditor")),
        ("allot", lambda acts, by: allot(acts, by, project="flu", account="patients", cap={"epsilon": "0.7"})),
    ],
)
def test_every_act_of_a_steward_is_an_entry_of_theirs(
    clinic: Clinic, kind: str, act: Callable[[StewardActions, ServiceCaller], Any]
) -> None:
    for by in (clinic.sam, clinic.owner):
        before = clinic.ledger.head().sequence
        json.dumps(act(clinic.acts, by))
        (entry,) = clinic.ledger.history(after=before)
        assert (entry.kind, entry.who) == (kind, by.name)
    head = clinic.ledger.head()
    for by in (
        clinic.ana,
        clinic.eve,
        replace(clinic.sam, tables=frozenset({"visits"})),
        replace(clinic.sam, project="x"),
    ):
        with pytest.raises(NotPermitted):
            act(clinic.acts, by)
    assert clinic.ledger.head() == head


def test_what_shows_the_whole_ledger_is_not_done_for_everybody(clinic: Clinic) -> None:
    for verb in ("history", "budget", "ask"):  # the first two are read as far as a caller may see, by other methods
        given = {"history": {}, "budget": {"name": "patients"}, "ask": {"sql": "SELECT 1"}}[verb]
        for caller in (clinic.ana, clinic.sam):
            with pytest.raises(InternalError):
                clinic.acts.perform(caller, VERBS[verb].request.read(given))


@dataclass(frozen=True, kw_only=True)
class ReadHead(Request[str]):
    """Tell the head of the ledger, for which the ledger by itself asks nobody's role."""

    verb: ClassVar[str] = "read_head"


def read_head(ledger: Ledger, _: ReadHead, __: Any) -> str:
    return str(ledger.head())


def test_a_verb_needs_its_permission_and_a_whole_key(clinic: Clinic) -> None:
    """The service asks by itself, before the ledger does: not every handler meets a check of the ledger's."""
    verb = Verb("read_head", f"{__name__}:ReadHead", "", Permission.VERIFY, Queue.LEDGER, "read_head")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(steward_actions, "VERBS", {**VERBS, verb.name: verb})
        for caller in (clinic.owner, clinic.sam, clinic.eve):
            assert clinic.acts.perform(caller, ReadHead())["value"] == str(clinic.ledger.head())
        with pytest.raises(NotPermitted, match="verify the ledger"):
            clinic.acts.perform(clinic.ana, ReadHead())
        for narrow in (replace(clinic.eve, tables=frozenset({"visits"})), replace(clinic.eve, project="x")):
            with pytest.raises(NotPermitted, match="some tables or one project"):
                clinic.acts.perform(narrow, ReadHead())


def test_people_and_keys_need_their_permission(clinic: Clinic) -> None:
    """Analysts and auditors act on their own key alone, and rotate it; a steward on those of analysts and auditors."""
    requests: list[Request[Any]] = [MakePerson.of(name="zoe", role="analyst"), MakeKey.of(name="ben")]
    requests += [kind.of(name="ben") for kind in (DisablePerson, EnablePerson, MakeLink)]
    requests += [kind.of(key=clinic.ben.credential) for kind in (RevokeKey, RotateKey)]
    assert {request.verb for request in requests} == set(PEOPLE_VERBS)
    head = clinic.ledger.head()
    for caller in (clinic.ana, clinic.eve):
        for request in requests:
            with pytest.raises(NotPermitted) as error:
                clinic.acts.perform(caller, request)
            told = "rotate this key" if request.verb == "rotate_key" else "manage people and keys"
            assert error.value.act == told, request.verb
    for role in ("steward", "owner"):
        with pytest.raises((NotPermitted, InvalidParameter)):
            clinic.acts.perform(clinic.sam, MakePerson.of(name="zoe", role=role))
    assert clinic.ledger.head() == head
    made = clinic.acts.perform(clinic.ana, RotateKey.of(key=clinic.ana.credential))
    assert clinic.identities.authenticate_key(made["key"]).name == "ana"
    assert [clinic.acts.perform(clinic.sam, request) for request in requests[1:3]]


def test_stewards_make_no_stewards_and_change_none(clinic: Clinic) -> None:
    for who, role in (("ana", "steward"), ("sue", "analyst"), ("sue", "auditor"), ("sam", "steward")):
        for account in ("", "patients"):
            with pytest.raises(NotPermitted):
                appoint(clinic.acts, clinic.sam, who=who, role=role, account=account)
    appoint(clinic.acts, clinic.owner, who="sue", role="analyst", account="patients")
    with pytest.raises(NotPermitted):
        appoint(clinic.acts, clinic.owner, who="owner", role="analyst", account="patients")


@pytest.mark.parametrize(
    ("act", "name"),
    [
        (lambda acts, by: appoint(acts, by, who="nobody", role="analyst", account="patients"), "who"),
        (lambda acts, by: appoint(acts, by, who="ana", role="king", account="patients"), "role"),
        (lambda acts, by: appoint(acts, by, who="ana", role="analyst", account="nowhere"), "account"),
        (lambda acts, by: appoint(acts, by, who="ana", role="analyst", cap={"epsilon": 1}), "account"),
        (lambda acts, by: appoint(acts, by, who="ana", role="analyst", account="patients", cap={"rho": 1}), "cap"),
        (lambda acts, by: amend(acts, by, account="nowhere", budget={"epsilon": 1}), "account"),
        (lambda acts, by: amend(acts, by, account="patients", budget={}), "budget"),
        (lambda acts, by: amend(acts, by, account="patients", budget={"epsilon": "-1"}), "budget.epsilon"),
        (lambda acts, by: amend(acts, by, account="patients", budget={"epsilon": 1}, note="a\r\nb"), "note"),
        (lambda acts, by: allot(acts, by, project="a\nb", account="patients", cap={"epsilon": 1}), "project"),
    ],
)
def test_what_does_not_fit_is_named(
    clinic: Clinic, act: Callable[[StewardActions, ServiceCaller], Any], name: str
) -> None:
    head = clinic.ledger.head()
    with pytest.raises(InvalidParameter) as error:
        act(clinic.acts, clinic.sam)
    assert error.value.name == name
    assert clinic.ledger.head() == head


# ----------------------------------------------------------------------------------------------------------- budgets


def own(clinic: Clinic, caller: ServiceCaller, account: str = "patients") -> dict[str, Any]:
    (found,) = [each for each in clinic.acts.budgets(caller) if each["account"] == account]
    return dict(found["own"])


def test_an_analyst_sees_what_is_theirs_to_spend(clinic: Clinic) -> None:
    clinic.appoint()
    clinic.charge("ana", "0.2")
    told = own(clinic, clinic.ana)
    assert (told["cap"]["text"], told["spent"]["text"], told["spendable"]) == ("epsilon=0.5", "epsilon=0.2", "0.3")
    clinic.charge("ben", "1.7")
    assert own(clinic, clinic.ana)["spendable"] == "0.1"  # of the cap 0.3 are left, and of the account 0.1
    with pytest.raises(InsufficientBudget):
        clinic.charge("ana", "0.11")
    clinic.charge("ana", "0.1")
    assert own(clinic, clinic.ana)["spendable"] == "0"


def test_a_key_for_a_project_spends_what_the_project_has(clinic: Clinic) -> None:
    clinic.appoint()
    bound = replace(clinic.ana, project="flu")
    assert own(clinic, bound)["spendable"] == "0"
    allot(clinic.acts, clinic.sam, project="flu", account="patients", cap={"epsilon": "0.05"})
    assert own(clinic, bound)["spendable"] == "0.05"


def test_analysts_see_nothing_of_others(clinic: Clinic) -> None:
    clinic.appoint()
    before = clinic.acts.budgets(clinic.ana)
    clinic.charge("ben", "0.3")
    appoint(clinic.acts, clinic.sam, who="ben", role="analyst", account="staff")
    assert clinic.acts.budgets(clinic.ana) == before  # what Ben has spent does not bind her yet
    assert [each["account"] for each in before] == ["patients"]
    assert not {"balance", "people", "projects"} & before[0].keys()
    assert "ben" not in json.dumps(before)
    for name in ("staff", "shifts", "staffs"):  # an account, its table, and nothing at all
        assert clinic.acts.budgets(clinic.ana, name) == []
        assert clinic.acts.history(clinic.ana, name=name) == clinic.acts.history(clinic.ana, name="nothing")
    assert clinic.acts.budgets(clinic.ana, "visits") == clinic.acts.budgets(clinic.ana, "patients") == before


def test_stewards_and_auditors_see_everybody(clinic: Clinic) -> None:
    clinic.appoint()
    allot(clinic.acts, clinic.sam, project="flu", account="patients", cap={"epsilon": "1"})
    clinic.charge("ana", "0.2", project="flu")
    for caller in (clinic.owner, clinic.sam, clinic.eve):
        told = {each["account"]: each for each in clinic.acts.budgets(caller)}
        assert set(told) == {"patients", "staff"}
        patients = told["patients"]
        assert (patients["tables"], patients["listed"], told["staff"]["listed"]) == (["visits"], True, False)
        assert patients["balance"]["spent"]["text"] == "epsilon=0.2"
        people = {person["name"]: person for person in patients["people"]}
        assert (people["ana"]["spent"]["text"], people["ben"]["cap"]) == ("epsilon=0.2", None)
        assert [(each["name"], each["spent"]["text"]) for each in patients["projects"]] == [("flu", "epsilon=0.2")]
    assert {each["account"]: each["own"] for each in clinic.acts.budgets(clinic.eve)}["patients"] is None


def test_a_key_for_some_tables_sees_their_accounts_only(clinic: Clinic) -> None:
    for tables, accounts in (({"shifts"}, ["staff"]), (set(), []), ({"nothing"}, [])):
        narrow = replace(clinic.sam, tables=frozenset(tables))
        assert [each["account"] for each in clinic.acts.budgets(narrow)] == accounts
    clinic.appoint()
    sequence = clinic.charge("ana")
    narrow = replace(clinic.ana, tables=frozenset({"shifts"}))
    assert clinic.acts.history(narrow)["entries"] == []
    with pytest.raises(UnknownEntry):
        clinic.acts.certificate(narrow, sequence)


# ----------------------------------------------------------------------------------------------------------- history


def test_analysts_see_their_own_charges_without_keys(clinic: Clinic) -> None:
    clinic.appoint()
    mine = [clinic.charge("ana", key="a secret"), clinic.charge("ana")]
    clinic.charge("ben", key="another secret")
    for caller in (clinic.ana, clinic.eve, clinic.sam):
        assert "secret" not in json.dumps(clinic.acts.history(caller, limit=500))
    told = clinic.acts.history(clinic.ana)
    assert [entry["sequence"] for entry in told["entries"]] == mine
    assert {entry["who"] for entry in told["entries"]} == {"ana"}
    assert clinic.acts.history(clinic.ana, analyst="ben")["entries"] == []
    whole = clinic.acts.history(clinic.eve, limit=500)["entries"]
    assert [entry["sequence"] for entry in whole] == list(range(1, clinic.ledger.head().sequence + 1))
    assert "salt" not in json.dumps(whole)
    some = clinic.acts.history(clinic.eve, analyst="ben", account="patients")["entries"]
    assert {(entry["entry"], entry["who"]) for entry in some} == {("appoint", "sam"), ("charge", "ben")}


@pytest.mark.parametrize("looked_at", [1, 3, 5000])
def test_pages_have_every_entry_once(clinic: Clinic, looked_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steward_actions, "_LOOKED_AT", looked_at)
    clinic.appoint()
    mine = [clinic.charge(who, "0.01") for who in ("ana", "ben", "ana", "ben", "ben", "ana")]
    for caller, limit in ((clinic.ana, 1), (clinic.ana, 2), (clinic.sam, 7), (clinic.sam, 500)):
        found, place, pages = [], 0, 0
        while True:
            page = clinic.acts.history(caller, after=place, limit=limit)
            found += [entry["sequence"] for entry in page["entries"]]
            assert len(page["entries"]) <= limit
            pages += 1
            if page["next"] is None:
                break
            assert page["next"] > place
            place = page["next"]
        expected = [mine[0], mine[2], mine[5]] if caller is clinic.ana else list(range(1, mine[-1] + 1))
        assert found == expected


@pytest.mark.parametrize("looked_at", [1, 3, 5000])
def test_the_newest_come_first(clinic: Clinic, looked_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clinic.appoint()
    mine = [clinic.charge(who, "0.01", key=f"{who} {place}") for place, who in enumerate(("ana", "ben", "ana", "ben"))]
    monkeypatch.setattr(steward_actions, "_LOOKED_AT", looked_at)
    monkeypatch.setattr(steward_actions, "_MOST_LOOKS", 10**6)
    whole = list(range(clinic.ledger.head().sequence, 0, -1))
    assert [entry.sequence for entry in clinic.acts.recent(clinic.eve)] == whole
    assert [entry.sequence for entry in clinic.acts.recent(clinic.ana)] == [mine[2], mine[0]]
    assert {entry.key for entry in clinic.acts.recent(clinic.sam)} == {""}
    assert [entry.sequence for entry in clinic.acts.recent(clinic.ana, before=mine[2])] == [mine[0]]
    assert [entry.sequence for entry in clinic.acts.recent(clinic.eve, before=5, limit=2)] == [4, 3]
    assert clinic.acts.recent(clinic.ana, analyst="ben") == []
    assert [each.sequence for each in clinic.acts.recent(clinic.sam, account="patients", limit=4)] == mine[::-1]
    monkeypatch.setattr(steward_actions, "_MOST_LOOKS", 1)
    assert len(clinic.acts.recent(clinic.eve)) == min(looked_at, len(whole))  # it stops looking, and says what it has


@pytest.mark.parametrize("bad", [{"limit": 0}, {"limit": 501}, {"after": -1}, {"limit": "5"}, {"after": 10**30}])
def test_pages_have_limits(clinic: Clinic, bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        clinic.acts.history(clinic.ana, **bad)


def test_others_entries_are_as_if_there_were_none(clinic: Clinic) -> None:
    clinic.appoint()
    mine, theirs = clinic.charge("ana"), clinic.charge("ben")
    assert clinic.acts.certificate(clinic.ana, mine)["analyst"] == "ana"
    told = set()
    for sequence in (theirs, 1, 10**9):
        with pytest.raises(UnknownEntry) as error:
            clinic.acts.certificate(clinic.ana, sequence)
        told.add(str(error.value))
    assert len(told) == 1
    assert clinic.acts.certificate(clinic.eve, theirs)["analyst"] == "ben"
    with pytest.raises(UnknownEntry):
        clinic.acts.certificate(clinic.eve, 1)  # is no charge


# ------------------------------------------------------------------------------------------------------ certificates


def test_a_certificate_says_what_was_promised_and_can_be_checked(clinic: Clinic) -> None:
    clinic.appoint()
    receipt = clinic.ledger.charge("patients", events.Pure("0.1"), analyst="ana", question=QUESTION, key="secret")
    open_one = clinic.acts.certificate(clinic.ana, receipt.sequence)
    clinic.ledger.store_answer(receipt, "r", b"an answer")
    told = clinic.acts.certificate(clinic.ana, receipt.sequence)
    assert open_one["outcome"] is None
    assert told["outcome"]["digest"] == sha256(b"an answer").hexdigest()
    assert events.from_json(json.dumps(told["event"])) == events.Pure("0.1")
    assert (told["cost"]["text"], told["relation"], told["unit"]["text"]) == (
        "epsilon=0.1",
        "add_remove",
        "patient (id)",
    )
    assert (told["sequence"], told["hash"], told["analyst"]) == (receipt.sequence, receipt.hash, "ana")
    assert told["guarantee"] == (
        "For any two databases where one has all rows of one more unit than the other (a unit is one patient (id)), "
        "every set of answers is "
        "at most e^0.1 times as likely under one as under the other (pure differential privacy, epsilon=0.1)."
    )
    assert Head.parse(told["head"]["text"]) == clinic.ledger.head()
    assert "secret" not in json.dumps(told)
    clinic.charge("ben")
    clinic.ledger.check_anchor(Head.parse(told["head"]["text"]))


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(epsilon=2, delta="1e-6"), "plus 1e-09 (approximate"),
        (Budget(rho=1), "at most 0.02 a (zero-concentrated"),
    ],
)
def test_other_promises_are_told_as_they_are(budget: Any, words: str) -> None:
    ledger = Ledger()
    ledger.stewardship.open_account("a", unit=Unit("nurse", "id"), neighbours=Neighbours.REPLACE, budget=budget)
    event = events.Gaussian(noise_multiplier=5) if "zero" in words else events.Approx("0.1", "1e-9")
    receipt = ledger.charge("a", event)
    acts = StewardActions(ledger, Identities(":memory:"))
    told = acts.certificate(Identities.local, receipt.sequence)
    assert words in told["guarantee"]
    assert "and the rows of one unit differ in any way (a unit is one nurse" in told["guarantee"]


# -------------------------------------------------------------------------------------------------------------- trust


def test_auditors_verify_and_export_the_head(clinic: Clinic) -> None:
    for caller in (clinic.owner, clinic.sam, clinic.eve):
        assert clinic.acts.verify(caller) == clinic.ledger.head()
        assert Head.parse(clinic.acts.anchor(caller)) == clinic.ledger.head()
    for act in (clinic.acts.verify, clinic.acts.anchor):
        with pytest.raises(NotPermitted):
            act(clinic.ana)


def test_an_altered_ledger_is_found_and_takes_no_more_charges(tmp_path: Path) -> None:
    clinic = Clinic(str(tmp_path / "book"))
    assert clinic.acts.verify(clinic.eve) == clinic.ledger.head()
    clinic.charge("owner")
    tamper(tmp_path / "book", "UPDATE entries SET who = 'zoe' WHERE sequence = 3")
    with pytest.raises(LedgerTampered):
        clinic.acts.verify(clinic.eve)
    with pytest.raises(LedgerTampered):
        clinic.charge("owner")
