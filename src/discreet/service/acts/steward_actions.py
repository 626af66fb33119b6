"""The ledger for callers: what they may read of it, and the actions of stewards, each an entry.

Formal guarantee: an analyst sees their own charges and their own part of an account, and nothing that reveals whether
other entries exist; idempotency keys are never shown. A caller whose key is for some tables sees the accounts of these
tables. Only stewards act on an account, under their own name, with a key that is not narrowed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from threading import Lock
from typing import Any

from discreet import check
from discreet.errors import InternalError, InvalidParameter, LedgerTampered, NotPermitted, UnknownEntry
from discreet.ledger import Caller as LedgerCaller
from discreet.ledger import Entry, Head, Ledger, Role, Share
from discreet.presentation.documents.ledger_documents import account_document, history_document
from discreet.presentation.documents.result_documents import result_of
from discreet.presentation.ledger_view.account_view import ANALYST, AccountView, SpenderView, view_account, view_balance
from discreet.presentation.ledger_view.ledger_history import AccountHistory, LedgerHistory, anchor_note, read_history
from discreet.privacy.budget import split
from discreet.requests.ledger_requests import Appoint
from discreet.requests.request import ArgumentKind, Request, arguments
from discreet.requests.verb_table import VERBS, Queue
from discreet.service.acts.certificates import certificate
from discreet.service.acts.people_actions import PEOPLE_VERBS
from discreet.service.admission import require_listed
from discreet.service.caller import Permission, ServiceCaller, ServiceRole
from discreet.service.identity import ActionRecorder, Identities
from discreet.service.identity.people import require_whole
from discreet.service.request_executor import Document

MOST_ENTRIES = 500
"""The most entries that a page of history has."""

_LOOKED_AT = 5000  # entries that one page looks through: the next page goes on, so that none takes long
_MOST_LOOKS = 20
_LARGEST = (1 << 62) - 1
_LONGEST_NOTE = 1000  # characters
_OWN = ("approvals",)
"""Verbs that show callers their own, and no more."""
_WHOLE = (Permission.STEWARD, Permission.SEE_ALL, Permission.VERIFY)
"""What allows a caller to see and to change the whole ledger."""
_ON_BOOK = {ServiceRole.STEWARD: Role.STEWARD, ServiceRole.AUDITOR: Role.AUDITOR}
"""What the ledger must know of new people; analysts are appointed on accounts, by stewards."""


def recorder(ledger: Ledger) -> ActionRecorder:
    """Returns a function that writes actions on people and keys into a ledger; for `Identities`."""

    def record(act: str, *, by: str, about: str, key: str = "", role: ServiceRole | None = None) -> None:
        facts = {**({"key": key} if key else {}), **({} if role is None else {"role": role.value})}
        ledger.stewardship.record(act, about=about, by=by, facts=facts)
        if role in _ON_BOOK:
            ledger.stewardship.appoint(about, _ON_BOOK[role], by=by)

    return record


class StewardActions:
    """Reads a ledger for callers, and acts on it for stewards.

    Args:
        ledger: the one that is charged.
        identities: who is known.
    """

    def __init__(self, ledger: Ledger, identities: Identities) -> None:
        self._ledger, self._identities = ledger, identities
        self._read, self._reading = LedgerHistory(), Lock()

    # ----------------------------------------------------------------------------------------------------- reading

    def budgets(self, caller: ServiceCaller, name: str | None = None) -> list[Document]:
        """Returns each account that a caller may see: their own part of it, and all parts for those who see all.

        Each has ``account``, ``unit``, ``neighbours``, ``tables``, ``own`` (a balance with ``cap`` and ``spendable``,
        the largest query without delta that cap, project and account allow; null for callers who may not ask) and,
        for those who see all, ``listed``, ``balance`` (the account's), ``people`` and ``projects``.

        Args:
            caller: who looks.
            name: only of this account, or of this table's.
        """
        caller.require(Permission.SEE_OWN)
        tables, sees_all, found = self._ledger.tables(), caller.may(Permission.SEE_ALL), list[Document]()
        for account in self._visible(caller):
            attached = [table for table, at in tables.items() if at == account and caller.sees(table)]
            own = self._own(caller, account) if self._may_ask(caller, account) else None
            if name in (None, account, *attached) and (own is not None or sees_all):
                standing = self._ledger.standing(account) if sees_all else None
                found.append(account_document(self._ledger.account(account), attached, own=own, standing=standing))
        return found

    def account_view(self, caller: ServiceCaller, account: str) -> AccountView:
        """Returns the view of an account for those who see all; only entries since the last reading are read.

        Raises:
            NotPermitted: if the caller may not see it.
        """
        caller.require(Permission.SEE_ALL)
        with self._reading:
            history = self._history(caller, account)
            view = view_account(self._ledger.standing(account), history, dt.datetime.now(dt.UTC))
        return replace(view, tables={name: told for name, told in view.tables.items() if caller.sees(name)})

    def own_view(self, caller: ServiceCaller, account: str) -> SpenderView:
        """Returns the view of a caller's own part of an account, which reveals nothing about what others did.

        Raises:
            NotPermitted: if the caller may not see the account.
        """
        caller.require(Permission.SEE_OWN)
        with self._reading:
            spending = self._history(caller, account).people.get(caller.name)
            balance = self._ledger.balance(account, analyst=caller.name)
            return view_balance(caller.name, ANALYST, balance, spending, dt.datetime.now(dt.UTC))

    def missing_anchors(self, caller: ServiceCaller) -> list[str]:
        """Returns when the ledger's anchor was missing and who accepted that, or joined another machine's, in words."""
        caller.require(Permission.SEE_ALL)
        with self._reading:
            return [anchor_note(act) for act in reversed(read_history(self._ledger, self._read).missing_anchors)]

    def _history(self, caller: ServiceCaller, account: str) -> AccountHistory:
        """Returns what was read of an account, to be looked at while `_reading` is held."""
        if account not in self._visible(caller):
            raise NotPermitted(caller.name, f"see account {account!r}")
        return read_history(self._ledger, self._read).accounts[account]

    def _own(self, caller: ServiceCaller, account: str) -> Share:
        own, whole = self._ledger.balance(account, analyst=caller.name), self._ledger.balance(account)
        limits = [own.remaining.epsilon, whole.remaining.epsilon]
        if caller.project and self._ledger.project_cap(caller.project, account=account) is None:
            limits.append(Fraction(0))
        elif caller.project:
            limits.append(self._ledger.balance(account, project=caller.project).remaining.epsilon)
        cap, role = self._ledger.analyst_cap(caller.name, account=account), self._ledger.role(account, caller.name)
        amount = None if cap is None else split(cap)[0]
        return Share(name=caller.name, role=role, cap=amount, balance=own, spendable=min(limits))

    def history(
        self,
        caller: ServiceCaller,
        *,
        after: int = 0,
        limit: int = 100,
        name: str | None = None,
        account: str | None = None,
        analyst: str | None = None,
        project: str | None = None,
    ) -> Document:
        """Returns a page of entries: an analyst's own charges, or everything for those who see all.

        Args:
            caller: who looks.
            after: the last entry to leave out: 0, or ``next`` of the page before.
            limit: how many at most, up to 500.
            name: only of this account, or of this table's.
            account: only of this account.
            analyst: only what this name did, and what was done to it.
            project: only of this project.

        Returns:
            ``entries``, and ``next``: where the next page goes on, or null at the end of the ledger.
        """
        caller.require(Permission.SEE_OWN)
        place = check.integer(after=after, at_least=0, at_most=_LARGEST)
        most = check.integer(limit=limit, at_least=1, at_most=MOST_ENTRIES)
        chosen = account if name is None else self._account_of(caller, name)
        read = self._ledger.history(chosen, after=place, limit=_LOOKED_AT)
        found = [
            each for each in self._visible_entries(caller, read, analyst, project) if account in (None, each.account)
        ]
        if len(found) >= most:
            return history_document(found[:most], found[most - 1].sequence)
        return history_document(found, read[-1].sequence if len(read) == _LOOKED_AT else None)

    def recent(
        self,
        caller: ServiceCaller,
        *,
        before: int | None = None,
        limit: int = 100,
        account: str | None = None,
        analyst: str | None = None,
    ) -> list[Entry]:
        """Returns entries that a caller may see, the newest first, before one of them if it is given.

        No more than 100,000 entries are looked through, so that no page takes long: `history` has all.

        Args:
            caller: who looks.
            before: the entry to go on from; None to begin with the newest.
            limit: how many at most.
            account: only of this account.
            analyst: only what this name did, and what was done to it.
        """
        caller.require(Permission.SEE_OWN)
        found = list[Entry]()
        end = self._ledger.head().sequence + 1 if before is None else check.integer(before=before, at_most=_LARGEST)
        for _ in range(_MOST_LOOKS):
            if end <= 1 or len(found) >= limit:
                break
            start = max(0, end - 1 - _LOOKED_AT)
            read = self._ledger.history(account, after=start, limit=_LOOKED_AT)
            found += reversed(self._visible_entries(caller, (each for each in read if each.sequence < end), analyst))
            end = start + 1
        return found[:limit]

    def certificate(self, caller: ServiceCaller, sequence: int) -> Document:
        """Returns the certificate of a charge; see `certificates.certificate`.

        Raises:
            UnknownEntry: if it is no charge that the caller may see, as if there were none.
        """
        caller.require(Permission.SEE_OWN)
        place, ledger = check.integer(sequence=sequence, at_least=1, at_most=_LARGEST), self._ledger
        for entry in self._visible_entries(caller, ledger.history(after=place - 1, limit=1)):
            if entry.sequence == place and entry.kind == "charge":
                account, renews = ledger.account(entry.account), ledger.balance(entry.account).renews
                return certificate(entry, account, ledger.outcome(entry.sequence), ledger.head(), renews)
        raise UnknownEntry

    def _visible_entries(
        self, caller: ServiceCaller, entries: Iterable[Entry], analyst: str | None = None, project: str | None = None
    ) -> list[Entry]:
        """Returns the entries that a caller may see, about one person or project if given, without idempotency keys."""
        accounts = self._visible(caller)
        mine = (each for each in entries if _sees(caller, each, accounts) and each.concerns(analyst, project))
        return [each._replace(key="") for each in mine]

    def _account_of(self, caller: ServiceCaller, name: str) -> str:
        """Returns the account of a table that a key is for, or else the name itself."""
        return next((at for table, at in self._ledger.tables().items() if table == name and caller.sees(table)), name)

    def _visible(self, caller: ServiceCaller) -> frozenset[str]:
        """Returns the accounts of the tables that a key is for."""
        if caller.tables is None:
            return frozenset(self._ledger.accounts())
        return frozenset(account for table, account in self._ledger.tables().items() if caller.sees(table))

    def _may_ask(self, caller: ServiceCaller, account: str) -> bool:
        if caller.may(Permission.ASK):
            with suppress(NotPermitted):
                require_listed(self._ledger, caller.name, account)
                return True
        return False

    # ----------------------------------------------------------------------------------------------------- trust

    def verify(self, caller: ServiceCaller) -> Head:
        """Walks the whole chain, on a connection of its own; call it in a thread, it may take seconds.

        Raises:
            LedgerTampered: naming the first entry that does not fit; the ledger then takes no more charges.
        """
        caller.require(Permission.VERIFY)
        if self._ledger.in_memory:
            return self._ledger.verify()
        try:
            with Ledger(self._ledger.path, read_only=True) as beside:
                return beside.verify()
        except LedgerTampered:
            return self._ledger.verify()  # which stops this process from writing, as it should

    def anchor(self, caller: ServiceCaller) -> str:
        """Returns the head of the ledger, to be kept elsewhere."""
        caller.require(Permission.VERIFY)
        return str(self._ledger.head())

    # ----------------------------------------------------------------------------------------------------- verbs

    def perform(self, caller: ServiceCaller, request: Request[Any]) -> Document:
        """Does what a verb asks of the ledger, or of people and keys, for a caller, and returns its document.

        Raises:
            NotPermitted: if their role does not have its permission, or their key is for some tables or one project.
            DiscreetError: as the ledger and `Identities` do.
        """
        verb = PEOPLE_VERBS.get(request.verb) or VERBS[request.verb]
        caller.require(verb.permission)
        if verb.name in PEOPLE_VERBS:  # on whom they may act, `Identities` know
            return dict(verb.implementation(self._identities, request, caller))
        if verb.name == "verify":
            return result_of(verb).write(self.verify(caller))
        if verb.queue is not Queue.LEDGER or (verb.permission not in _WHOLE and verb.name not in _OWN):
            raise InternalError(f"{verb.name} would show the whole ledger to every caller.")
        require_whole(caller, verb.name)
        self._check(caller, request)
        done = verb.implementation(self._ledger, request, LedgerCaller(analyst=caller.name))
        return result_of(verb).write(done)

    def note_groups(self, name: str, groups: Sequence[str]) -> None:
        """Notes the teams of a person by the groups that a sign-in provider has named."""
        self._ledger.caps.claim_groups(name, groups)

    def _check(self, caller: ServiceCaller, request: Request[Any]) -> None:
        """Refuses what the ledger would take and a service does not."""
        for argument in arguments(type(request)):
            if argument.arg.kind is ArgumentKind.TEXT:
                _require_line(argument.name, getattr(request, argument.name))
        if isinstance(request, Appoint):
            known = self._identities.role_of(request.who)
            if known is None:
                raise InvalidParameter("who", request.who, "to be known", "Add the person, or make a key for them.")
            of_stewards = request.role == Role.STEWARD.value or known is ServiceRole.STEWARD
            if of_stewards and caller.role is not ServiceRole.OWNER:
                raise NotPermitted(caller.name, "appoint stewards", "The owner can.")


def _sees(caller: ServiceCaller, entry: Entry, accounts: Iterable[str]) -> bool:
    """Returns whether a caller may see an entry: their own charge, or any, within what their key is for."""
    if caller.tables is not None and entry.account not in accounts:
        return False
    if caller.may(Permission.SEE_ALL):
        return True
    return entry.kind == "charge" and entry.who == caller.name


def _require_line(name: str, text: str) -> None:
    """Refuses a note of several lines, or a very long one."""
    if len(text) > _LONGEST_NOTE or not text.isprintable():
        raise InvalidParameter(name, type(text).__name__, "to be a text of one line", "Write up to 1000 characters.")
