"""What each kind of entry does to the ledger: pure functions from a state and an entry to the next state.

The ledger applies them as it writes; `verify` applies them again to an empty ledger and compares. A kind that is not
listed is refused.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from discreet.errors import LedgerTampered
from discreet.ledger.account import Account, AccountMember, AccountState, Role
from discreet.ledger.caps import approvals, period_budgets, teams
from discreet.ledger.entry import Entry
from discreet.ledger.redeclaration import is_of_same_people, named_keys
from discreet.ledger.renewal.open_period import OpenPeriod
from discreet.ledger.serialization import canonical, parse_canonical, read_loss
from discreet.ledger.store.ledger_store import Kept, Place, StateStore, as_text
from discreet.ledger.tallies import ChargePrice, Reserve, Tallies

Value = TypeVar("Value")

BOOK = "book", ""
"""The place of the state of the ledger as a whole."""

ANCHOR = "anchor", ""
"""The place of the note that the ledger has an anchor, and of the id under which the anchor is found."""


class InMemoryStateStore:
    """States in a dictionary."""

    def __init__(self) -> None:
        self._kept: dict[Place, Any] = {}

    @property
    def texts(self) -> dict[Place, str]:
        """All states as they are written in the ledger."""
        return {place: as_text(kept) for place, kept in self._kept.items()}

    def get(self, scope: str, name: str) -> str | None:
        """Returns the text of a state, or None."""
        kept = self._kept.get((scope, name))
        return None if kept is None else as_text(kept)

    def read(self, place: Place, parse: Callable[[str], Value]) -> Value | None:
        """Returns what a state says, parsed once, or None."""
        kept = self._kept.get(place)
        if isinstance(kept, str):
            kept = self._kept[place] = parse(kept)
        return kept

    def put(self, *states: tuple[Place, Kept]) -> None:
        """Replaces states by texts or by what they say."""
        self._kept.update(states)


def account_state(states: StateStore, account: str) -> AccountState | None:
    """Returns the state of an account."""
    return states.read(("standing", account), AccountState.read)


def member(states: StateStore, account: str, who: str, now: AccountState) -> AccountMember:
    """Returns a person on an account, in its present period; a new one if they never asked nor were appointed."""
    known = states.read(place_of(account, who), AccountMember.read)
    if known is None:
        return AccountMember.of(now)
    return known if known.period == now.period else known.in_period(now)


def put_member(states: StateStore, account: str, who: str, person: AccountMember) -> None:
    """Writes a person's state."""
    states.put((place_of(account, who), person))


@lru_cache(maxsize=1024)
def place_of(account: str, who: str) -> Place:
    """Returns the place of a person's state."""
    return "member", f"{account}\n{who}"


def project(states: StateStore, account: str, name: str, now: AccountState) -> AccountMember | None:
    """Returns what a project has spent on an account, and its cap; None if no steward has allotted it anything."""
    known = states.read(place_of_project(account, name), AccountMember.read)
    return None if known is None else known.in_period(now)


def place_of_project(account: str, name: str) -> Place:
    """Returns the place of a project's state."""
    return "project", f"{account}\n{name}"


def credits_used(states: StateStore, account: str) -> dict[str, int] | None:
    """Returns how many failure credits of an account each name has used; None if no entry ever named one."""
    text = states.get("failures", account)
    return None if text is None else dict(parse_canonical(text))


def claims(states: StateStore, charge: int) -> tuple[int, bool]:
    """Returns how often a charge was claimed to be run again, and whether it is known that no process runs it now."""
    text = states.get("claims", str(charge))
    found: dict[str, Any] = {} if text is None else parse_canonical(text)
    return found.get("number", 0), found.get("free", False)


def is_frozen(states: StateStore) -> bool:
    """Returns whether the ledger is read-only until a steward resumes it."""
    text = states.get("book", "")
    return text is not None and bool(parse_canonical(text)["frozen"])


def makes_anchor_again(entry: Entry) -> bool:
    """Returns whether an entry made a missing anchor again: until then the ledger may have been an older copy."""
    return entry.kind == "anchor" and entry.content["how"] in ("accepted", "joined")


def find_anchored_id(states: StateStore) -> str | None:
    """Returns the id of a ledger that has an anchor; None of one that says nothing about it."""
    text = states.get(*ANCHOR)
    return None if text is None else str(parse_canonical(text)["id"])


def table(states: StateStore, name: str) -> dict[str, Any] | None:
    """Returns a table's account, declaration and versions; its files, identity and last advance, if there are any."""
    text = states.get("table", name)
    return None if text is None else dict(parse_canonical(text))


def apply(states: StateStore, entry: Entry) -> None:
    """Takes one entry into account.

    Raises:
        LedgerTampered: if the kind is unknown, or the account was never opened.
    """
    change = _CHANGES.get(entry.kind)
    if change is None:
        raise LedgerTampered(entry.sequence, "it is of an unknown kind")
    change(states, entry)


class CountedCaps(NamedTuple):
    """What a charge counts against besides its account and the person who asks, as its entry says.

    Attributes:
        project: its name; "" for none.
        caps: the caps as JSON: kind, name and open period of each; "" for a charge before these were written.
    """

    project: str = ""
    caps: str = ""


NO_CAPS = CountedCaps()


def charge(
    states: StateStore, account: str, who: str, price: Tallies, *, counted: CountedCaps = NO_CAPS, entry: int = 0
) -> None:
    """Adds a price to the sums of an account, a person, a project and teams, in this period and for life."""
    before, once = _require_account(states, account), ChargePrice(price)
    caps = parse_canonical(counted.caps) if counted.caps else []
    opened = {(kind, name): day for kind, name, day in caps}
    spenders = [("analyst", who, place_of(account, who), member(states, account, who, before))]
    if counted.project:
        allotted = _known(project(states, account, counted.project, before), "a project")
        spenders.append(("project", counted.project, place_of_project(account, counted.project), allotted))
    for kind, name, _ in caps:
        if kind == "team":
            team = _known(teams.find_team(states, account, name, before), "a team")
            spenders.append((kind, name, teams.place_of_team(account, name), team))
    reserve = next((name for kind, name, _ in caps if kind == "reserve"), "")
    days = [day for kind, day, _ in caps if kind == period_budgets.KIND]
    opened_as = _opened(states, account)
    if days or (opened_as.rows is not None and price.spent_under(before.budget) != before.budget * 0):
        if opened_as.rows is None or not days:
            raise LedgerTampered(entry, "it does not name the periods of rows that it is charged to")
        written = period_budgets.add_row_charge(states, opened_as, before, days, price, reserve).written
    else:
        after = before.with_reserved_charge(reserve, once) if reserve else before.with_charge(once)
        written = [(("standing", account), after)]
    for kind, name, place, state in spenders:
        present = _in_open_period(state, opened.get((kind, name), ""), entry, before)
        written.append((place, present.with_charge(once)))
    states.put(*written)


_read_account = lru_cache(maxsize=256)(Account.read)


def _opened(states: StateStore, account: str) -> Account:
    """Returns what an account was opened as."""
    text = states.get("account", account)
    if text is None:
        raise LedgerTampered(0, "an entry is about an account that was never opened")
    return _read_account(text)


def _known(state: AccountMember | None, called: str) -> AccountMember:
    if state is None:
        raise LedgerTampered(0, f"a charge is for {called} that has no cap")
    return state


def _in_open_period(state: AccountMember, opened: str, entry: int, now: AccountState) -> AccountMember:
    """Returns the state in the period of its own cap that a charge counts against."""
    if state.renews is None or not opened or state.renews.first_day.isoformat() == opened:
        return state
    period = state.renews._replace(first_day=dt.date.fromisoformat(opened), since=entry)
    return state.with_new_period(period, now.budget)


def _require_account(states: StateStore, account: str) -> AccountState:
    found = account_state(states, account)
    if found is None:
        raise LedgerTampered(0, "an entry is about an account that was never opened")
    return found


def _open(states: StateStore, entry: Entry) -> None:
    account = Account.read(canonical(entry.content["account"]))
    states.put((("account", account.name), account.write()))
    renews = OpenPeriod.opened_by(entry.sequence, entry.content.get("renews"))
    states.put((("standing", account.name), AccountState.open_account(account.budget, renews)))


def _attach(states: StateStore, entry: Entry) -> None:
    """Writes files and identity only where an entry has them: older ledgers have none, and read as they were.

    Raises:
        LedgerTampered: if a table leaves its account, is declared anew without saying so or for other people, or has
            keys that no entry before it has put into the ledger.
    """
    content = entry.content
    known = table(states, content["table"]) or {"versions": []}
    _check_attachment(states, known, entry, content["declaration"])
    versions, version = known["versions"], content["version"]
    state = {
        "account": entry.account,
        "declaration": content["declaration"],
        "versions": versions if version in versions else [*versions, version],
    }
    files = {**known.get("files", {}), **content.get("files", {})}
    identity = content.get("identity") or known.get("identity")
    more = {**({"files": files} if files else {}), **({"identity": identity} if identity else {})}
    more |= {"advanced": known["advanced"]} if "advanced" in known else {}
    states.put((("table", content["table"]), canonical({**state, **more})))


def _advance(states: StateStore, entry: Entry) -> None:
    """Moves a table on to a version; curators that were opened with an earlier one follow.

    Raises:
        LedgerTampered: if the table is of no account or another one, the version is not new or not after the one that
            the entry names, or the table is declared anew as no attachment may.
    """
    content = entry.content
    known = table(states, content["table"])
    if known is None or known["account"] != entry.account:
        raise LedgerTampered(entry.sequence, "it moves a table on that its account does not have")
    versions, version = known["versions"], content["version"]
    if not version or version in versions or content["from"] != versions[-1]:
        raise LedgerTampered(entry.sequence, "it moves a table on to a version that is not new, or from another one")
    declared = content.get("declaration", known["declaration"])
    _check_attachment(states, known, entry, declared)
    advanced = {"entry": entry.sequence, "since": entry.time, "version": version}
    moved = {"advanced": advanced, "declaration": declared, "versions": [*versions, version]}
    more = {"files": {**known.get("files", {}), **content["files"]}} if "files" in content else {}
    states.put((("table", content["table"]), canonical({**known, **moved, **more})))


def _check_attachment(states: StateStore, known: dict[str, Any], entry: Entry, after: str) -> None:
    before = known.get("declaration")
    if known.get("account", entry.account) != entry.account:
        raise LedgerTampered(entry.sequence, "it moves a table to another account")
    if before not in (None, after) and entry.content.get("before") != before:
        raise LedgerTampered(entry.sequence, "it declares a table again without saying what it replaces")
    if before not in (None, after) and not is_of_same_people(str(before), after):
        raise LedgerTampered(entry.sequence, "it declares a table again for other people")
    for digest, count in named_keys(after).items():
        if keys_kept(states, digest) != count:
            raise LedgerTampered(entry.sequence, "it declares keys that the ledger does not hold")


def keys_kept(states: StateStore, digest: str) -> int | None:
    """Returns how many keys the block of a digest has; None if the ledger does not hold it."""
    text = states.get("keys", digest)
    return None if text is None else int(parse_canonical(text)["count"])


def _keys(states: StateStore, entry: Entry) -> None:
    """Notes a block of declared keys, which is kept where answers are."""
    content = entry.content
    states.put((("keys", content["digest"]), canonical({"count": content["count"]})))


def _amend(states: StateStore, entry: Entry) -> None:
    content = entry.content
    after = _require_account(states, entry.account).with_budget(read_loss(content["budget"]))
    if "renews" in content:
        after = after._replace(renews=OpenPeriod.opened_by(entry.sequence, content["renews"]))
    states.put((("standing", entry.account), after))


def _renew(states: StateStore, entry: Entry) -> None:
    now, content = _require_account(states, entry.account), entry.content
    renews = OpenPeriod.opened_by(entry.sequence, content["renews"]) if "renews" in content else now.renews
    states.put((("standing", entry.account), now.with_new_period(read_loss(content["budget"]), renews)))


def _doubt(states: StateStore, entry: Entry) -> None:
    """Notes that a charge was made by a clock in doubt: nothing renews until a steward renews."""
    now = _require_account(states, entry.account)
    if now.renews is None:
        raise LedgerTampered(entry.sequence, "it doubts the clock of an account that does not renew")
    states.put((("standing", entry.account), now._replace(renews=now.renews._replace(doubt=entry.content["why"]))))


def _appoint(states: StateStore, entry: Entry) -> None:
    content = entry.content
    if not entry.account:
        states.put((("role", content["name"]), canonical({"role": content["role"]})))
        return
    now, role = _require_account(states, entry.account), Role(content["role"])
    person = teams.with_cap(member(states, entry.account, content["name"], now), content, entry.sequence, now)
    put_member(states, entry.account, content["name"], person._replace(role=role))
    now = now._replace(listed=now.listed or role is Role.ANALYST)
    states.put((("standing", entry.account), now))


_BEFORE_CAPS = re.compile(r'\{(?:"approved":\d+,)?(?:"asked":"[^"]*",)?(?:"beside":\d+,)?"caps":')
APPROVED = re.compile(r'\{"approved":(\d+),')
"""How the body of a charge begins that an approval lets exceed a cap."""

_JSON = json.JSONDecoder()


def counted_caps(body: str) -> CountedCaps:
    """Returns what a charge counts against, from its body; most count against nothing, which is seen at once."""
    start = _BEFORE_CAPS.match(body)
    caps = "" if start is None else body[start.end() : _JSON.raw_decode(body, start.end())[1]]
    project = str(parse_canonical(body).get("project", "")) if '"project":' in body else ""
    return NO_CAPS if not (project or caps) else CountedCaps(project, caps)


def is_from_reserve(body: str) -> bool:
    """Returns whether a charge was paid from an amount that was set aside, which no renewal ends."""
    caps = counted_caps(body).caps
    return any(kind == "reserve" for kind, _, _ in (parse_canonical(caps) if caps else ()))


def _charge(states: StateStore, entry: Entry) -> None:
    price = Tallies.read(parse_canonical(entry.price))
    charge(states, entry.account, entry.who, price, counted=counted_caps(entry.body), entry=entry.sequence)
    approved = APPROVED.match(entry.body)
    if approved is not None:
        states.put(approvals.used_request(states, int(approved[1])))


def _allot(states: StateStore, entry: Entry) -> None:
    content = entry.content
    now = _require_account(states, entry.account)
    known = project(states, entry.account, content["project"], now) or AccountMember.of(now)
    allotted = teams.with_cap(known, content, entry.sequence, now)
    states.put((place_of_project(entry.account, content["project"]), allotted))


def _reserve(states: StateStore, entry: Entry) -> None:
    now, content = _require_account(states, entry.account), entry.content
    promise = Tallies.read(parse_canonical(entry.price))
    reserve = Reserve(content["reserve"], content["for"], promise, promise * 0)
    states.put((("standing", entry.account), now.with_reserve(reserve)))


def _give_back(states: StateStore, entry: Entry) -> None:
    after = _require_account(states, entry.account).without_reserve(entry.content["reserve"])
    states.put((("standing", entry.account), after))


def _team(states: StateStore, entry: Entry) -> None:
    teams.set_team(states, entry, _require_account(states, entry.account))


def _fail(states: StateStore, entry: Entry) -> None:
    now, name = _require_account(states, entry.account), entry.content.get("credit")
    states.put((("standing", entry.account), now._replace(failures=now.failures + 1)))
    if name is not None:  # an entry of an earlier version has none, and changes no state but the account's
        used = credits_used(states, entry.account) or {}
        states.put((("failures", entry.account), canonical({**used, name: used.get(name, 0) + 1})))


def _unlock(states: StateStore, entry: Entry) -> None:
    states.put((("standing", entry.account), _require_account(states, entry.account)._replace(failures=0)))
    if credits_used(states, entry.account) is not None:
        states.put((("failures", entry.account), canonical({})))


def _claim(states: StateStore, entry: Entry) -> None:
    _put_claims(states, entry, free=False)


def _interrupt(states: StateStore, entry: Entry) -> None:
    _put_claims(states, entry, free=True)


def _put_claims(states: StateStore, entry: Entry, *, free: bool) -> None:
    content = entry.content
    states.put((("claims", str(content["charge"])), canonical({"free": free, "number": content["number"]})))


def _recover(states: StateStore, entry: Entry) -> None:
    """Counts as spent, and as failed, what a lost ledger had spent beyond the copy that was restored."""
    content, now = entry.content, _require_account(states, entry.account)
    lost: dict[str, int] = content["failures"]
    after = now.with_charge(ChargePrice(Tallies.read(content["account"])))
    states.put((("standing", entry.account), after._replace(failures=now.failures + sum(lost.values()))))
    for who, spent in content["people"].items():
        person = member(states, entry.account, who, now).with_charge(ChargePrice(Tallies.read(spent)))
        put_member(states, entry.account, who, person)
    for name, spent in content["projects"].items():
        share = project(states, entry.account, name, now) or AccountMember.of(now)
        states.put((place_of_project(entry.account, name), share.with_charge(ChargePrice(Tallies.read(spent)))))
    for name, spent in content.get("teams", {}).items():
        team = teams.find_team(states, entry.account, name, now) or AccountMember.of(now)
        states.put((teams.place_of_team(entry.account, name), team.with_charge(ChargePrice(Tallies.read(spent)))))
    if lost:
        used = credits_used(states, entry.account) or {}
        counts = {name: used.get(name, 0) + lost.get(name, 0) for name in {**used, **lost}}
        states.put((("failures", entry.account), canonical(counts)))


def _anchor(states: StateStore, entry: Entry) -> None:
    """Notes that the ledger has an anchor, without which it is refused, and under which id."""
    states.put((ANCHOR, canonical({"id": entry.content["id"]})))


def _freeze(states: StateStore, _entry: Entry) -> None:
    states.put((BOOK, canonical({"frozen": True})))


def _resume(states: StateStore, _entry: Entry) -> None:
    states.put((BOOK, canonical({"frozen": False})))


def _nothing(_states: StateStore, _entry: Entry) -> None:
    """Changes nothing: an answer changes no balance, nor does what a service did to people and keys."""


_CHANGES: dict[str, Callable[[StateStore, Entry], None]] = {
    "advance": _advance,
    "allot": _allot,
    "amend": _amend,
    "anchor": _anchor,
    "answer": _nothing,
    "appoint": _appoint,
    "approvals": approvals.set_needed,
    "approve": approvals.add_approval,
    "attach": _attach,
    "charge": _charge,
    "claim": _claim,
    "claim teams": teams.set_claimed,
    "doubt": _doubt,
    "fail": _fail,
    "freeze": _freeze,
    "give back": _give_back,
    "interrupt": _interrupt,
    "keys": _keys,
    "open": _open,
    "recover": _recover,
    "renew": _renew,
    "request": approvals.add_request,
    "reserve": _reserve,
    "resume": _resume,
    "service": _nothing,
    "team": _team,
    "unlock": _unlock,
}
"""The kinds of entries; a name is never changed, removed or given to another meaning."""
