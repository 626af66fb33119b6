"""Puts a backup in the place of a lost ledger; what it has forgotten, and the anchor knows, counts as spent.

Formal guarantee: let a ledger be restored from any copy, with an anchor that was kept of the lost one. Under every rule
and for every account, person and project, the restored ledger has spent at least what the copy had spent, plus what was
spent between the newest head that copy and anchor have in common for certain and the anchor. If the copy is a part of
the lost ledger, that is at least what the lost ledger had spent at its anchor; where the copy's own head is known, it
is exactly that. If it went another way after the common head, both ways are counted. Renewals that were lost are not
made again: what they had forgiven stays counted until a steward renews. What was charged after the anchor was kept is
unknown, and no answer to it has left a ledger that keeps an anchor.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, LedgerError
from discreet.ledger import changes, policy
from discreet.ledger.account import Account, AccountMember, AccountState
from discreet.ledger.anchor.anchor_actions import UncheckedLedger, join_anchor
from discreet.ledger.anchor.anchor_file import (
    LedgerCheckpoint,
    alone,
    anchor_of,
    is_default,
    remember_place,
    write_anchor,
)
from discreet.ledger.anchor.anchored_ledger import AnchoredLedger, id_of, mismatch, read_known
from discreet.ledger.caps.teams import find_team
from discreet.ledger.entry import Entry, Head
from discreet.ledger.ledger import Ledger
from discreet.ledger.serialization import Amounts, canonical, name, parse_canonical, text, write_loss, write_ratio
from discreet.ledger.stewardship import amendment, new_salt
from discreet.ledger.store.ledger_store import VERSIONS, Transaction
from discreet.ledger.tallies import ChargePrice, Tallies, difference
from discreet.privacy import Loss

_NOTE = "as it was at the anchor"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """The result of restoring a ledger.

    Attributes:
        head: of the ledger, as it is now.
        missing: how many entries up to the anchor are lost; 0 if nothing is.
        lost: by account, what was counted as spent for them; None where no rule bounds it.
    """

    head: Head
    missing: int
    lost: Mapping[str, Loss | None]


def restore(source: str, target: str, *, anchor: Head) -> Ledger:
    """Puts a backup in the place of a lost ledger.

    Args:
        source: the backup, in a file or in a database.
        target: where the ledger shall be, a file or an address; nothing may be there.
        anchor: the latest head that was exported from the lost ledger.

    Returns:
        The ledger, verified. If it lacks entries up to the anchor it is frozen: charges were lost, and a steward must
        amend the accounts before resuming. It keeps no anchor: to open it again, `join_anchor` makes one here.

    Raises:
        LedgerTampered: if the backup was altered.
        LedgerError: if there is already something.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with Ledger(f"{folder}/ledger.db") as ledger:
    ...         ledger.stewardship.appoint("ana", "steward")
    ...         _ = ledger.backup(f"{folder}/monday.db")
    ...         ledger.stewardship.appoint("ben", "auditor")
    ...         newest = ledger.head()
    ...     with restore(f"{folder}/monday.db", f"{folder}/again.db", anchor=newest) as again:
    ...         print(again.is_frozen, again.role("", "ana"), again.role("", "ben"))
    True Role.STEWARD None
    """
    with Ledger(source, read_only=True) as copy:
        copy.verify()
        copy.backup(target)
    ledger = UncheckedLedger(target)
    try:
        ledger.check_anchor(anchor)
    except LedgerError:
        if not ledger.is_frozen:
            raise
    return ledger


def restore_anchored(
    source: str,
    target: str,
    *,
    anchor_file: str | None = None,
    accept_loss: bool = False,
    by: str = policy.OWNER,
    note: str = "",
) -> RestoreReport:
    """Puts a backup in the place of a lost ledger, and compares it with the anchor of that ledger.

    Args:
        source: the backup, a file or an address; or the ledger itself, if an older copy was put in its place.
        target: where the ledger shall be; nothing may be there, unless it is the source.
        anchor_file: of the lost ledger; found by the id of the copy unless it is given.
        accept_loss: whether a copy that lacks entries may become the ledger, with what the anchor knows counted as
            spent.
        by: the steward who decides that.
        note: why.

    Raises:
        AnchorMismatch: if the copy lacks entries, and that is not accepted; nothing is at the target then.
        LedgerTampered: if the copy was altered.
        LedgerError: if there is no anchor, or something is at the target already.

    >>> from tempfile import TemporaryDirectory
    >>> from discreet.ledger import AnchoredLedger
    >>> from discreet.privacy import Budget, Unit, events
    >>> with TemporaryDirectory() as folder:
    ...     ledger, copy, anchor = (f"{folder}/{name}" for name in ("ledger.db", "monday.db", "anchor"))
    ...     with AnchoredLedger(ledger, anchor_file=anchor) as lost:
    ...         _ = lost.stewardship.open_account("patients", unit=Unit("patient"), budget=Budget(epsilon=1))
    ...         _ = lost.backup(copy)
    ...         _ = lost.charge("patients", events.Pure(0.4))
    ...     restored = restore_anchored(copy, f"{ledger}.new", anchor_file=anchor, accept_loss=True)
    >>> restored.missing, str(restored.lost["patients"])  # entries, and what is counted as spent for them
    (1, 'epsilon=0.4')
    """
    file = anchor_file or _anchor_of(source)
    known = read_known(file)
    if known is None:
        hint = "Restore it, or pass --anchor with the newest head that was printed."
        raise LedgerError(f"There is no anchor {file}", hint)
    in_place = _same(source, target)
    if not in_place:
        _require_free(target)
    with Ledger(source, read_only=True) as copy:
        copy.verify()
        with copy._journal.reading() as rows:
            whole, head = known.is_in(rows), rows.tail()
        if not whole and not accept_loss:
            raise mismatch(source, head, file, known, target)
        if not in_place:
            copy.backup(target)
    with UncheckedLedger(target) as ledger:
        lost = {} if whole else _recover(ledger, known, name(by=by), text(note=note))
        now = ledger.verify()
        if lost or not whole:
            with alone(file), ledger._journal.reading() as rows:
                write_anchor(file, _continue_anchor(rows, known))
    if is_default(file):
        remember_place(target, os.path.basename(file))
    return RestoreReport(head=now, missing=0 if whole else max(known.head.sequence - head.sequence, 1), lost=lost)


def restore_by_head(
    source: str, target: str, *, head: Head, anchor_file: str | None = None, by: str = policy.OWNER
) -> RestoreReport:
    """Puts a backup in the place of a lost ledger whose anchor is lost, too, by the newest head that was printed.

    Args:
        source: the backup, a file or an address.
        target: where the ledger shall be; nothing may be there.
        head: the newest that was printed; a copy without it is refused.
        anchor_file: where the anchor shall be; in the state folder unless it is given.
        by: the steward who has typed the head, which is an entry.

    Raises:
        InvalidParameter: if the copy does not contain the head.
        AnchorMismatch: if there is an anchor all the same, which knows more than the copy.
        LedgerTampered: if the copy was altered.
        LedgerError: if something is at the target already.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with AnchoredLedger(f"{folder}/ledger.db", anchor_file=f"{folder}/lost") as ledger:
    ...         shown = ledger.backup(f"{folder}/copy.db")
    ...     place = {"target": f"{folder}/again.db", "anchor_file": f"{folder}/anchor"}
    ...     restore_by_head(f"{folder}/copy.db", head=shown, **place).missing
    0
    """
    with Ledger(source, read_only=True) as copy:
        found = copy.history(after=head.sequence - 1, limit=1)
        if not found or found[0].hash != head.hash:
            hint = "Find a newer copy. What was spent after this one is not known."
            raise InvalidParameter("anchor", str(head), f"to be in {source}, which ends with {copy.head()}", hint)
    file = anchor_file or _anchor_of(source)
    restore(source, target, anchor=head).close()
    if read_known(file) is None:
        return RestoreReport(head=join_anchor(target, head, by=by, anchor_file=anchor_file), missing=0, lost={})
    with AnchoredLedger(target, anchor_file=anchor_file) as ledger:
        return RestoreReport(head=ledger.head(), missing=0, lost={})


def _anchor_of(source: str) -> str:
    """Returns the file of the anchor that all copies of a ledger share.

    Raises:
        LedgerError: if the copy has no entries.
    """
    with Ledger(source, read_only=True) as copy, copy._journal.reading() as rows:
        ledger_id = id_of(rows)
    if ledger_id is None:
        raise LedgerError(f"The copy {source} has no entries", "Name another copy.")
    return anchor_of(ledger_id)


def _same(source: str, target: str) -> bool:
    if source == target:
        return True
    return os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target)


def _require_free(target: str) -> None:
    """Nothing of a lost ledger may be left: SQLite would take its log for that of the restored one."""
    left = [path for path in (target, f"{target}-wal", f"{target}-shm", f"{target}-journal") if os.path.exists(path)]
    if left:
        hint = f"Move these files away first: {', '.join(map(os.path.basename, left))}."
        raise LedgerError(f"The ledger cannot be restored to {target}, which already exists", hint)


def _continue_anchor(rows: Transaction, known: LedgerCheckpoint) -> LedgerCheckpoint:
    """Returns the anchor of a ledger that was restored with a loss: with those known heads that the ledger has."""
    now, head = LedgerCheckpoint.of(rows), known.common(rows)
    kept = [one for one in (*known.earlier, *known.backups) if one <= head and rows.hash_at(one.sequence) == one.hash]
    return LedgerCheckpoint(head=now.head, states=now.states, earlier=tuple(sorted(set(kept))))


def _recover(ledger: Ledger, known: LedgerCheckpoint, by: str, note: str) -> dict[str, Loss | None]:
    """Counts as spent what the anchor knows beyond the copy: all of it in one transaction, or nothing."""
    with ledger._journal.writing() as rows:  # no act: an older copy may have been frozen by its anchor
        policy.require_steward(rows, "", by, "accept a loss")
        common = known.common(rows)
        if any(_is_about(entry, known) for entry in rows.entries(common.sequence)):
            return {}  # a process was stopped between this and the new anchor
        then = _states_at(rows, common)
        rows.require_version(VERSIONS["recover"])
        lost = {}
        for account in known.accounts:
            _reopen(rows, known, account, by)
            _appoint_again(rows, known, account, by)
            body, counts = _find_lost_spending(known, then, account)
            cost = Tallies.read(body["account"]).spent_under(known.standing(account).budget)
            about = {"anchor": str(known.head), "common": str(common), "note": note}
            now = policy.require_account(rows, account)
            share = now.added_share(now.with_charge(ChargePrice(Tallies.read(body["account"]))))
            told = {"cost": None if cost is None else write_loss(cost), "share": write_ratio(share), **about}
            # Also where nothing was spent: an open charge of the copy may have been answered in the lost ledger, so
            # it must not be run again (`outcomes._refuse_restored`).
            changes.apply(rows, rows.add("recover", {**body, **told}, who=by, account=account))
            if counts:
                lost[account] = cost
        _appoint_on_ledger(rows, known, by)
        if changes.is_frozen(rows):
            changes.apply(rows, rows.add("resume", {"note": note}, who=by))
        policy.doubt_calendars(rows, by=by)
    return lost


def _is_about(entry: Entry, known: LedgerCheckpoint) -> bool:
    return entry.kind == "recover" and entry.content["anchor"] == str(known.head)


def _states_at(rows: Transaction, head: Head) -> changes.InMemoryStateStore:
    """Returns the states that the entries up to a head amount to."""
    states = changes.InMemoryStateStore()
    for entry in rows.entries():
        if entry.sequence > head.sequence:
            break
        changes.apply(states, entry)
    return states


def _reopen(rows: Transaction, known: LedgerCheckpoint, account: str, by: str) -> None:
    """Opens again, with another salt, an account that was opened later; restores the budget as it was at the anchor."""
    if rows.get("account", account) is None:
        unit, neighbours, budget = known.opening(account)
        opened = Account(name=account, unit=unit, neighbours=neighbours, budget=budget, salt=new_salt())
        changes.apply(rows, rows.add("open", {"account": parse_canonical(opened.write())}, who=by, account=account))
    budget = known.standing(account).budget
    now = policy.require_account(rows, account)
    if now.budget != budget:
        changes.apply(rows, rows.add("amend", amendment(now, budget, _NOTE), who=by, account=account))


def _appoint_again(rows: Transaction, known: LedgerCheckpoint, account: str, by: str) -> None:
    """Roles and caps are those of the anchor."""
    now = policy.require_account(rows, account)
    for who, was in known.shares("member", account).items():
        found = changes.member(rows, account, who, now)
        if was.role is not None and (found.role, found.cap) != (was.role, was.cap):
            body = {"cap": None if was.cap is None else write_loss(was.cap), "name": who, "role": was.role.value}
            changes.apply(rows, rows.add("appoint", body, who=by, account=account))
    for project, was in known.shares("project", account).items():
        held = changes.project(rows, account, project, now)
        if was.cap is not None and (held is None or held.cap != was.cap):
            body = {"cap": write_loss(was.cap), "note": _NOTE, "project": project}
            changes.apply(rows, rows.add("allot", body, who=by, account=account))
    for team, was in known.shares("team", account).items():
        known_team = find_team(rows, account, team, now)
        if was.cap is not None and (known_team is None or known_team.cap != was.cap):
            people = {scope: known.team(scope, account, team) for scope in ("groups", "members")}
            team_body = {"cap": write_loss(was.cap), "note": _NOTE, "team": team, **people}
            changes.apply(rows, rows.add("team", team_body, who=by, account=account))


def _appoint_on_ledger(rows: Transaction, known: LedgerCheckpoint, by: str) -> None:
    for who, role in known.roles.items():
        if rows.get("role", who) != canonical({"role": role}):
            changes.apply(rows, rows.add("appoint", {"cap": None, "name": who, "role": role}, who=by))


def _find_lost_spending(
    known: LedgerCheckpoint, then: changes.InMemoryStateStore, account: str
) -> tuple[dict[str, Any], bool]:
    """Returns what an account, its people and projects spent between common head and anchor, and whether anything."""
    was = known.standing(account)
    before = changes.account_state(then, account) or AccountState.open_account(was.budget)
    amount = _difference(was, before)
    people = {
        who: _difference(share, changes.member(then, account, who, before))
        for who, share in known.shares("member", account).items()
    }
    projects = {
        project: _difference(share, changes.project(then, account, project, before) or AccountMember.of(before))
        for project, share in known.shares("project", account).items()
    }
    teams = {
        team: _difference(share, find_team(then, account, team, before) or AccountMember.of(before))
        for team, share in known.shares("team", account).items()
    }
    used, seen = known.failures(account), changes.credits_used(then, account) or {}
    failures = {who: count - seen.get(who, 0) for who, count in used.items() if count > seen.get(who, 0)}
    people, projects, teams = (
        {who: one for who, one in shares.items() if _counts(one)} for shares in (people, projects, teams)
    )
    body = {
        "account": amount.write(),
        "failures": failures,
        "people": {who: one.write() for who, one in people.items()},
        "projects": {project: one.write() for project, one in projects.items()},
        **({"teams": {team: one.write() for team, one in teams.items()}} if teams else {}),
    }
    return body, bool(_counts(amount) or people or projects or teams or failures)


def _difference(now: AccountState | AccountMember, then: AccountState | AccountMember) -> Tallies:
    """Returns what was spent in between under each rule: over the lifetimes, else over the period if it is the same."""
    found: dict[str, Amounts | None] = {}
    for kind, total in now.lifetime.sums.items():
        before, spent, earlier = then.lifetime.sums[kind], now.spent.sums[kind], then.spent.sums[kind]
        found[kind] = difference(total, before)
        if found[kind] is None and now.period == then.period:
            found[kind] = difference(spent, earlier)
    return Tallies(found)


def _counts(amount: Tallies) -> bool:
    """Returns whether anything was spent, or may have been."""
    return any(spent is None or any(top for top, _ in spent) for spent in amount.sums.values())
