"""The book for callers: what they may read of it, and the acts of stewards, each an entry.

Formal guarantee: an analyst sees their own charges and their own part of an account, and nothing that tells whether
other entries exist; idempotency keys are shown to nobody. A caller whose key is for some tables sees the accounts of
these tables. Nobody acts on an account but stewards, under their own name, with a key that is not narrowed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from threading import Lock
from typing import Any

from discreet import check
from discreet.errors import InvalidParameter, LedgerTampered, NotPermitted, UnknownEntry
from discreet.ledger import Balance, Book, Entry, Head, Role, Share
from discreet.presentation.documents import account_document, balance_document, history_document, share_document
from discreet.presentation.ledger_view.account_view import ANALYST, AccountView, SpenderView, view_account, view_balance
from discreet.presentation.ledger_view.ledger_history import AccountHistory, LedgerHistory, anchor_note, read_history
from discreet.requests.argument_kinds import read_budget
from discreet.service.acts.certificates import certificate
from discreet.service.admission import require_listed
from discreet.service.caller import Caller, Permission, ServiceRole
from discreet.service.desk import Document
from discreet.service.identity import Identities, Recorder
from discreet.service.identity.people import require_whole

MOST_ENTRIES = 500
"""Of a page of history."""

_LOOKED_AT = 5000  # entries that one page looks through: the next page goes on, so that none takes long
_MOST_LOOKS = 20
_LARGEST = (1 << 62) - 1
_ON_BOOK = {ServiceRole.STEWARD: Role.STEWARD, ServiceRole.AUDITOR: Role.AUDITOR}
"""What the book must know of new people; analysts are appointed on accounts, by stewards."""


def recorder(book: Book) -> Recorder:
    """Returns what writes acts on people and keys into a book; for `Identities`."""

    def record(act: str, *, by: str, about: str, key: str = "", role: ServiceRole | None = None) -> None:
        facts = {**({"key": key} if key else {}), **({} if role is None else {"role": role.value})}
        book.stewardship.record(act, about=about, by=by, facts=facts)
        if role in _ON_BOOK:
            book.stewardship.appoint(about, _ON_BOOK[role], by=by)

    return record


class Acts:
    """Reads a book for callers, and acts on it for stewards.

    Args:
        book: the one that is charged.
        identities: who is known.
    """

    def __init__(self, book: Book, identities: Identities) -> None:
        self._book, self._identities = book, identities
        self._read, self._reading = LedgerHistory(), Lock()

    # ----------------------------------------------------------------------------------------------------- reading

    def budgets(self, caller: Caller) -> list[Document]:
        """Returns each account that a caller may see: their own part of it, and everybody's for those who see all.

        Of each: ``account``, ``unit``, ``neighbours``, ``tables``, ``own`` (a balance with ``cap`` and ``spendable``,
        the largest pure question that cap, project and account leave; null for who may not ask) and, for those who see
        everybody's, ``listed``, ``balance`` (the account's), ``people`` and ``projects``.
        """
        caller.require(Permission.SEE_OWN)
        tables, sees_all, found = self._book.tables(), caller.may(Permission.SEE_ALL), list[Document]()
        for account in self._visible(caller):
            attached = [table for table, at in tables.items() if at == account and caller.sees(table)]
            own = self._own(caller, account) if self._may_ask(caller, account) else None
            if own is not None or sees_all:
                standing = self._book.standing(account) if sees_all else None
                found.append(account_document(self._book.account(account), attached, own=own, standing=standing))
        return found

    def balance(self, caller: Caller, account: str) -> Balance:
        """Returns the figures of an account for those who see all, of their own part for everybody else.

        Raises:
            NotPermitted: if the caller may not ask on it; whether there is such an account is not said.
        """
        if account not in self._visible(caller) or not (
            caller.may(Permission.SEE_ALL) or self._may_ask(caller, account)
        ):
            raise NotPermitted(caller.name, f"see account {account!r}")
        return self._book.balance(account, analyst=None if caller.may(Permission.SEE_ALL) else caller.name)

    def account_view(self, caller: Caller, account: str) -> AccountView:
        """Returns the view of an account for those who see all; only entries since the last reading are read.

        Raises:
            NotPermitted: if the caller may not see it.
        """
        caller.require(Permission.SEE_ALL)
        with self._reading:
            history = self._history(caller, account)
            view = view_account(self._book.standing(account), history, dt.datetime.now(dt.UTC))
        return replace(view, tables={name: told for name, told in view.tables.items() if caller.sees(name)})

    def own_view(self, caller: Caller, account: str) -> SpenderView:
        """Returns the view of a caller's own part of an account, which tells nothing about what others did.

        Raises:
            NotPermitted: if the caller may not see the account.
        """
        caller.require(Permission.SEE_OWN)
        with self._reading:
            spending = self._history(caller, account).people.get(caller.name)
            balance = self._book.balance(account, analyst=caller.name)
            return view_balance(caller.name, ANALYST, balance, spending, dt.datetime.now(dt.UTC))

    def missing_anchors(self, caller: Caller) -> list[str]:
        """Returns when the ledger's anchor was missing and who accepted that, or joined another machine's, in words."""
        caller.require(Permission.SEE_ALL)
        with self._reading:
            return [anchor_note(act) for act in reversed(read_history(self._book, self._read).missing_anchors)]

    def _history(self, caller: Caller, account: str) -> AccountHistory:
        """Returns what was read of an account, to be looked at while `_reading` is held."""
        if account not in self._visible(caller):
            raise NotPermitted(caller.name, f"see account {account!r}")
        return read_history(self._book, self._read).accounts[account]

    def _own(self, caller: Caller, account: str) -> Share:
        own, whole = self._book.balance(account, analyst=caller.name), self._book.balance(account)
        limits = [own.remaining.epsilon, whole.remaining.epsilon]
        if caller.project:
            limits.append(self._left_of_project(caller.project, account))
        cap, role = self._book.capped(caller.name, account=account), self._book.role(account, caller.name)
        return Share(name=caller.name, role=role, cap=cap, balance=own, spendable=min(limits))

    def _left_of_project(self, project: str, account: str) -> Fraction:
        """The largest pure question that a project may pay; nothing if it was allotted nothing."""
        if self._book.allotted(project, account=account) is None:
            return Fraction(0)
        return self._book.balance(account, project=project).remaining.epsilon

    def _member(self, account: str, who: str) -> Document:
        found = self._book.standing(account)
        return next(share_document(one) for one in found.people if one.name == who)

    def _project(self, account: str, project: str) -> Document:
        found = self._book.standing(account)
        return next(share_document(one) for one in found.projects if one.name == project)

    def history(
        self,
        caller: Caller,
        *,
        after: int = 0,
        limit: int = 100,
        account: str | None = None,
        analyst: str | None = None,
    ) -> Document:
        """Returns a page of entries: an analyst's own charges, or everything for those who see all.

        Args:
            caller: who looks.
            after: the last entry to leave out: 0, or ``next`` of the page before.
            limit: how many at most, up to 500.
            account: only of this account.
            analyst: only what this name did, and what was done to it.

        Returns:
            ``entries``, and ``next``: where the next page goes on, or null at the end of the book.
        """
        found, following = self.entries(caller, after=after, limit=limit, account=account, analyst=analyst)
        return history_document(found, following)

    def entries(
        self,
        caller: Caller,
        *,
        after: int = 0,
        limit: int = 100,
        account: str | None = None,
        analyst: str | None = None,
    ) -> tuple[list[Entry], int | None]:
        """Returns what `history` does, as entries."""
        caller.require(Permission.SEE_OWN)
        place = check.integer(after=after, at_least=0, at_most=_LARGEST)
        most = check.integer(limit=limit, at_least=1, at_most=MOST_ENTRIES)
        read, accounts = self._book.history(account, after=place, limit=_LOOKED_AT), self._visible(caller)
        found: list[Entry] = []
        for entry in read:
            if _sees(caller, entry, accounts) and entry.concerns(analyst):
                found.append(entry._replace(key=""))
            if len(found) == most:
                return found, entry.sequence
        return found, read[-1].sequence if len(read) == _LOOKED_AT else None

    def recent(
        self,
        caller: Caller,
        *,
        before: int | None = None,
        limit: int = 100,
        account: str | None = None,
        analyst: str | None = None,
    ) -> list[Entry]:
        """Returns entries that a caller may see, the newest first, before one of them if it is given.

        No more than 100,000 entries are looked through, so that nobody's page takes long: `history` has all.

        Args:
            caller: who looks.
            before: the entry to go on from; None to begin with the newest.
            limit: how many at most.
            account: only of this account.
            analyst: only what this name did, and what was done to it.
        """
        caller.require(Permission.SEE_OWN)
        accounts, found = self._visible(caller), list[Entry]()
        end = self._book.head().sequence + 1 if before is None else check.integer(before=before, at_most=_LARGEST)
        for _ in range(_MOST_LOOKS):
            if end <= 1 or len(found) >= limit:
                break
            start = max(0, end - 1 - _LOOKED_AT)
            read = self._book.history(account, after=start, limit=_LOOKED_AT)
            seen = [each for each in read if each.sequence < end and _sees(caller, each, accounts)]
            found += [each._replace(key="") for each in reversed(seen) if each.concerns(analyst)]
            end = start + 1
        return found[:limit]

    def entry(self, caller: Caller, sequence: int) -> Entry:
        """Returns an entry that a caller may see.

        Raises:
            UnknownEntry: for all others, as if there were none.
        """
        caller.require(Permission.SEE_OWN)
        place = check.integer(sequence=sequence, at_least=1, at_most=_LARGEST)
        for found in self._book.history(after=place - 1, limit=1):
            if found.sequence == place and _sees(caller, found, self._visible(caller)):
                return found._replace(key="")
        raise UnknownEntry

    def certificate(self, caller: Caller, sequence: int) -> Document:
        """Returns the certificate of a charge; see `certificates.certificate`.

        Raises:
            UnknownEntry: if it is no charge that the caller may see.
        """
        entry = self.entry(caller, sequence)
        if entry.kind != "charge":
            raise UnknownEntry
        account = self._book.account(entry.account)
        return certificate(entry, account, self._book.outcome(entry.sequence), self._book.head())

    def _visible(self, caller: Caller) -> frozenset[str]:
        """The accounts of the tables that a key is for."""
        if caller.tables is None:
            return frozenset(self._book.accounts())
        return frozenset(account for table, account in self._book.tables().items() if caller.sees(table))

    def _may_ask(self, caller: Caller, account: str) -> bool:
        if not caller.may(Permission.ASK):
            return False
        try:
            require_listed(self._book, caller.name, account)
        except NotPermitted:
            return False
        return True

    # ----------------------------------------------------------------------------------------------------- trust

    def verify(self, caller: Caller) -> Head:
        """Walks the whole chain, on a connection of its own; call it in a thread, it may take seconds.

        Raises:
            LedgerTampered: naming the first entry that does not fit; the book then takes no more charges.
        """
        caller.require(Permission.VERIFY)
        if self._book.in_memory:
            return self._book.verify()
        try:
            with Book(self._book.path, read_only=True) as beside:
                return beside.verify()
        except LedgerTampered:
            return self._book.verify()  # which stops this process from writing, as it should

    def anchor(self, caller: Caller) -> str:
        """Returns the head of the book, to be kept elsewhere."""
        caller.require(Permission.VERIFY)
        return str(self._book.head())

    # -------------------------------------------------------------------------------------------------- stewards

    def amend(self, caller: Caller, account: str, budget: Mapping[str, Any], *, note: str = "") -> Document:
        """Gives an account another budget; what was spent stays spent."""
        by = self._steward(caller, "amend accounts", account)
        return balance_document(
            self._book.stewardship.amend(account, budget=read_budget(budget), by=by, note=_note(note))
        )

    def renew(
        self, caller: Caller, account: str, budget: Mapping[str, Any] | None = None, *, note: str = ""
    ) -> Document:
        """Starts a new period of an account with nothing spent."""
        by = self._steward(caller, "renew accounts", account)
        given = None if budget is None else read_budget(budget)
        return balance_document(self._book.stewardship.renew(account, budget=given, by=by, note=_note(note)))

    def unlock(self, caller: Caller, account: str, *, note: str = "") -> Document:
        """Gives everybody's failure credits on an account back."""
        by = self._steward(caller, "unlock accounts", account)
        self._book.stewardship.unlock(account, by=by, note=_note(note))
        return balance_document(self._book.balance(account))

    def appoint(
        self, caller: Caller, who: str, role: str, *, account: str = "", cap: Mapping[str, Any] | None = None
    ) -> Document:
        """Gives somebody a role on an account, or (account "") on all, and perhaps a cap of their own.

        Raises:
            InvalidParameter: if nobody of that name is known, or something does not fit.
            NotPermitted: if a steward appoints a steward, or changes what one is.
        """
        by, given = self._steward(caller, "appoint", *filter(None, (account,))), Role(role)
        known = self._identities.role_of(who)
        if known is None:
            raise InvalidParameter("who", who, "to be known", "Make the person first, or a key for them.")
        of_stewards = given is Role.STEWARD or known is ServiceRole.STEWARD
        if of_stewards and caller.role is not ServiceRole.OWNER:
            raise NotPermitted(by, "appoint stewards", "The owner can.")
        limit = None if cap is None else read_budget(cap, name="cap")
        self._book.stewardship.appoint(who, given, account=account, cap=limit, by=by)
        return self._member(account, who) if account else {"name": who, "role": given.value, "cap": None}

    def allot(self, caller: Caller, project: str, *, account: str, cap: Mapping[str, Any], note: str = "") -> Document:
        """Gives a project a cap on an account."""
        by = self._steward(caller, "allot to projects", account)
        limit = read_budget(cap, name="cap")
        self._book.stewardship.allot(project, account=account, cap=limit, by=by, note=_note(note))
        return self._project(account, project)

    def _steward(self, caller: Caller, act: str, *accounts: str) -> str:
        """The name under which a steward acts on accounts that there are."""
        caller.require(Permission.STEWARD)
        require_whole(caller, act)
        for account in accounts:
            self._book.account(account)
        return caller.name


def _sees(caller: Caller, entry: Entry, accounts: Iterable[str]) -> bool:
    """Tells whether an entry is a caller's to see: their own charge, or any, within what their key is for."""
    if caller.tables is not None and entry.account not in accounts:
        return False
    if caller.may(Permission.SEE_ALL):
        return True
    return entry.kind == "charge" and entry.who == caller.name


def _note(note: object) -> str:
    """A note of one line, or none."""
    if not isinstance(note, str) or len(note) > 1000 or not note.isprintable():
        raise InvalidParameter("note", type(note).__name__, "to be a text of one line", "Write up to 1000 characters.")
    return note
