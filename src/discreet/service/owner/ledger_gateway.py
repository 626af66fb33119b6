"""The one way from a worker to the ledger: for one request of one caller, and no longer than it lasts.

Formal guarantee: who is charged, for which project and under which key was decided before the worker began. Receipts
never leave this process, so that a worker can end only charges that were made, or claimed, for its own request. Once
the gateway is closed nothing passes; every charge that has no outcome by then gets one, or is noted as interrupted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from discreet.curator.catalog.declared_limits import attempts, declared_price, is_limits_place
from discreet.errors import InternalError, InvalidParameter, LedgerError, LedgerUnavailable
from discreet.ledger import OWNER, Ledger, Receipt
from discreet.ledger.outcomes import write_receipt
from discreet.ledger.serialization import read_budget, read_unit
from discreet.ledger.stewardship import DataOrigin
from discreet.ledger.store.ledger_store import AnswerPlace
from discreet.ledger.tallies import prices
from discreet.presentation.documents.error_documents import error_document
from discreet.presentation.documents.ledger_documents import APPROVAL, BALANCE
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.service.admission import require_listed
from discreet.service.worker.messages import read_cap, write_cap, write_header, write_stored

CLAIM_WAIT = 0.005
"""Seconds to wait for another process that runs a charge, doubled after each claim: here equal keys are one request."""

MOST_RELATED = 1000


class LedgerGateway:
    """What one request may ask of the ledger.

    Args:
        ledger: the ledger.
        analyst: the name of the caller.
        project: the project whose cap counts, too; "" for none.
        key: the idempotency key of the request.
        reserve: the amount set aside from which it is paid; "" for the account.
        steward: whether accounts and tables may be entered in the analyst's name.
        spending: whether it may charge.
        asking: whether it may ask for an approval.
        least: the least epsilon of a charge, whatever the request called it: `within=` comes to
            an epsilon of its own.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        analyst: str,
        project: str = "",
        key: str | None = None,
        reserve: str = "",
        steward: bool = False,
        spending: bool = False,
        asking: bool = False,
        least: Fraction = Fraction(0),
    ) -> None:
        self._ledger, self._analyst, self._project, self._key, self._least = ledger, analyst, project, key, least
        self._reserve = reserve
        self._receipts: dict[int, Receipt] = {}
        self._ended: set[int] = set()
        self._lock, self._closed = threading.Lock(), False
        self._asked: float | None = None
        self.outage = False
        self._methods: Mapping[str, Callable[..., Any]] = {
            **_select_functions(self, _READING),
            **(_select_functions(self, _SPENDING) if spending else {}),
            **(_select_functions(self, _STEWARDS) if steward else {}),
            **(_select_functions(self, _ASKING) if asking else {}),
        }

    @property
    def has_charged(self) -> bool:
        """Returns whether anything was charged, or claimed, for the request."""
        return bool(self._receipts)

    @property
    def has_all_outcomes(self) -> bool:
        """Returns whether every charge has an outcome that is in the ledger."""
        return self._receipts.keys() <= self._ended

    @property
    def charges(self) -> tuple[Receipt, ...]:
        """Returns the receipts of the request, in order."""
        return tuple(self._receipts.values())

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Notes since when the worker waits for the ledger."""
        self._asked = time.monotonic()
        try:
            yield
        finally:
            self._asked = None

    @property
    def seconds_waited(self) -> float:
        """Returns for how many seconds the worker has waited for the ledger; 0 if it does not."""
        return 0.0 if self._asked is None else time.monotonic() - self._asked

    def serve(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Returns what the ledger says, as JSON.

        Raises:
            DiscreetError: as the ledger does.
        """
        found = self._methods.get(method)
        if found is None:
            raise InternalError("A worker asked the ledger for what its request does not need.")
        with self._lock:
            if self._closed:
                raise LedgerError("The request has ended")
            try:
                return found(self, **arguments)
            except LedgerUnavailable:
                self.outage = True
                raise

    def close(self, *, failed: bool) -> bool:
        """Closes the gateway, and ends the charges that are open.

        Args:
            failed: whether open charges have failed, which uses a credit of the analyst; else, and if the ledger did
                not answer meanwhile, they are noted as interrupted, which uses none.

        Returns:
            Whether a charge was open.
        """
        with self._lock:
            self._closed = True
            left = [receipt for sequence, receipt in self._receipts.items() if sequence not in self._ended]
            for receipt in left:
                if failed and not self.outage:
                    self._ledger.fail(receipt)
                else:
                    self._ledger.interrupt(receipt)
        return bool(left)

    def _own(self, sequence: int) -> Receipt:
        receipt = self._receipts.get(sequence)
        if receipt is None:
            raise InternalError("A worker named a charge that is not its own.")
        return receipt

    # --------------------------------------------------------------------------------------------------------- reading

    def admit(self, account: str, periods: Sequence[str] = ()) -> str:
        """Returns the state of an account if the caller may ask; without appointed analysts only the owner may."""
        return require_listed(self._ledger, self._analyst, account, self._project, periods).write()

    def is_charged(self) -> bool:
        """Returns whether the request's key was charged before."""
        return self._key is not None and self._ledger.is_charged(self._analyst, self._key)

    def refusal(self, account: str, event: str, periods: Sequence[str] = ()) -> Any:
        """Returns the error with which a charge would be refused."""
        priced = events.from_json(event)
        whose = {"analyst": self._analyst, "project": self._project, "reserve": self._reserve}
        found = self._ledger.refusal(account, priced, periods=periods, **whose)
        return None if found is None else error_document(found)

    def read_answers(self, replay_key: str) -> list[Any]:
        """Returns the answers kept under a replay key."""
        return [write_stored(one) for one in self._ledger.read_answers(replay_key)]

    def read_headers(self, start: str, most: int) -> list[Any]:
        """Returns the headers of answers whose replay key begins like this."""
        return [write_header(one) for one in self._ledger.read_headers(start, most=min(most, MOST_RELATED))]

    def read_answer(self, place: list[Any]) -> list[Any]:
        """Returns the whole answer of a header."""
        return write_stored(self._ledger.read_answer(AnswerPlace(*place)))

    def account(self, account: str) -> str:
        """Returns what an account was opened as."""
        return self._ledger.account(account).write()

    def accounts(self) -> list[str]:
        """Returns the names of all accounts."""
        return list(self._ledger.accounts())

    def origins(self) -> dict[str, Any]:
        """Returns what the ledger says of every table."""
        return {table: dict(told) for table, told in self._ledger.origins().items()}

    def declared_table(self, table: str) -> Any:
        """Returns how a table is declared now, and its versions."""
        return self._ledger.declared_table(table)

    def balance(self, account: str, whose: str) -> dict[str, Any]:
        """Returns the balance of an account, or of the caller or their project on it."""
        who = {"analyst": self._analyst} if whose == "analyst" else {}
        who |= {"project": self._project} if whose == "project" else {}
        return BALANCE.write(self._ledger.balance(account, **who))

    def role(self, account: str, who: str) -> str | None:
        """Returns the caller's role; callers other than the owner learn no other role."""
        found = self._ledger.role(account, who) if self._analyst in (who, OWNER) else None
        return None if found is None else found.value

    def project_cap(self, account: str, project: str) -> Any:
        """Returns the cap of a project."""
        return write_cap(self._ledger.project_cap(project, account=account))

    def analyst_cap(self, account: str, analyst: str) -> Any:
        """Returns the caller's cap; for the owner, that of any analyst."""
        return write_cap(
            self._ledger.analyst_cap(analyst if self._analyst == OWNER else self._analyst, account=account)
        )

    # -------------------------------------------------------------------------------------------------------- spending

    def charge(
        self,
        *,
        events_by_account: Mapping[str, str],
        question: str,
        replay_key: str,
        terms: str | None,
        sql: str = "",
        asked: str = "",
        periods: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Charges all accounts or none, in the name that was proven; returns the receipt that the answer belongs to."""
        priced = {account: events.from_json(event) for account, event in events_by_account.items()}
        for account, event in priced.items():
            self.admit(account)
            self._require_least(account, event)
        receipt, *_ = self._ledger.charge_all(
            priced,
            analyst=self._analyst,
            question=question,
            key=self._key,
            replay_key=replay_key,
            terms=terms,
            project=self._project,
            sql=sql,
            asked=asked,
            reserve=self._reserve,
            periods=periods,
        )
        return self._noted(receipt)

    def charge_limits(
        self, *, account: str, key: str, question: str, replay_key: str, terms: str | None, sql: str, asked: str
    ) -> dict[str, Any]:
        """Charges the limits of a table to its account alone, once; what they cost is what its steward has declared."""
        self.admit(account)
        if key not in attempts(replay_key):
            raise InternalError("A worker asked the ledger for what its request does not need.")
        receipt = self._ledger.charge(
            account,
            self._price_limits(account, replay_key),
            question=question,
            key=key,
            replay_key=replay_key,
            terms=terms,
            sql=sql,
            asked=asked,
        )
        return self._noted(receipt)

    def _price_limits(self, account: str, place: str) -> Event:
        opened = self._ledger.account(account)
        for table, told in self._ledger.origins().items():
            declared = self._ledger.declaration(table) if told["account"] == account else None
            price = None if declared is None else declared_price(declared, opened.budget)
            if declared is None or price is None:
                continue
            if is_limits_place(place, declared, told["versions"], opened.neighbours.value):
                return events.Pure(price)
        raise InternalError("A worker asked the ledger for what its request does not need.")

    def _noted(self, receipt: Receipt) -> dict[str, Any]:
        self._receipts[receipt.sequence] = receipt
        if receipt.repeated:  # another request's to end, unless it is claimed
            self._ended.add(receipt.sequence)
        return write_receipt(receipt)

    def _require_least(self, account: str, event: Event) -> None:
        """Refuses tiny charges: each is an entry, and the ledger would grow without bound."""
        opened = self._ledger.account(account)
        sums = prices(event, opened.budget, opened.neighbours).sums
        found = sums.get("pure") or sums.get("approximate")  # both begin with an epsilon; rho has none
        amount = None if found is None else Fraction(*found[0])
        if amount and amount < self._least:
            hint = "Ask for a larger epsilon, or for more numbers in one query."
            raise InvalidParameter("epsilon", f"{float(amount):g}", f">= {float(self._least):g}", hint)

    def claim(self, sequence: int) -> Any:
        """Claims a charge that has no outcome, so that it can be run again."""
        found = self._ledger.claim(self._own(sequence), wait=CLAIM_WAIT)
        if found is None:
            return None
        self._receipts[sequence] = found
        self._ended.discard(sequence)
        return write_receipt(found)

    def answer(self, sequence: int) -> str | None:
        """Returns the answer of a charge of the request."""
        found = self._ledger.answer(self._own(sequence))
        return None if found is None else found.decode()

    def interrupt(self, sequence: int) -> bool:
        """Notes that a charge is no longer being run."""
        self._ended.add(sequence)
        return self._ledger.interrupt(self._own(sequence))

    def fail(self, sequence: int) -> None:
        """Notes that a question failed; if the ledger did not answer meanwhile, that it was interrupted."""
        if self.outage:
            self._ledger.interrupt(self._own(sequence))
        else:
            self._ledger.fail(self._own(sequence))
        self._ended.add(sequence)

    def store_answer(self, sequence: int, replay_key: str, payload: str, event: str | None = None) -> bool:
        """Keeps an answer, durably: from now on it may be sent."""
        released = None if event is None else events.from_json(event)
        kept = self._ledger.store_answer(self._own(sequence), replay_key, payload, event=released)
        self._ended.add(sequence)
        return kept

    def store_beside(self, sequence: int, replay_key: str, payload: str, question: str) -> str:
        """Keeps what was released on the way to an answer."""
        return self._ledger.store_beside(self._own(sequence), replay_key, payload, question=question).decode()

    def beside(self, sequence: int, replay_key: str) -> str | None:
        """Returns what was released on the way to an answer, under one replay key."""
        found = self._ledger.beside(self._own(sequence), replay_key)
        return None if found is None else found.decode()

    def all_beside(self, sequence: int) -> list[Any]:
        """Returns all that was released on the way to an answer."""
        return [write_stored(one) for one in self._ledger.all_beside(self._own(sequence))]

    def read_released_event(self, sequence: int) -> str:
        """Returns the event of all that was released for a charge."""
        return events.to_json(self._ledger.read_released_event(self._own(sequence)))

    # ----------------------------------------------------------------------------------------------------- stewardship

    def open_account(self, account: str, unit: dict[str, Any], neighbours: str, budget: Any) -> str:
        """Opens an account in the steward's name."""
        opened = self._ledger.stewardship.open_account(
            account, unit=read_unit(unit), neighbours=neighbours, budget=read_cap(budget), by=self._analyst
        )
        return opened.write()

    def attach(
        self,
        table: str,
        account: str,
        *,
        declaration: str,
        version: str,
        origin: dict[str, Any],
        replacing: str | None = None,
        blocks: Mapping[str, str] | None = None,
    ) -> None:
        """Puts a table under an account in the steward's name, or another declaration of it."""
        listed = {digest: block.encode() for digest, block in (blocks or {}).items()}
        self._ledger.stewardship.attach(
            table,
            account=account,
            declaration=declaration,
            version=version,
            origin=DataOrigin.of(origin.get("files"), origin.get("identity")),
            replacing=replacing,
            blocks=listed.__getitem__,
            by=self._analyst,
        )

    def appoint(self, who: str, account: str, role: str, cap: Any) -> None:
        """Appoints a person whom the file of declarations names."""
        self._ledger.stewardship.appoint(who, role, account=account, cap=read_cap(cap), by=self._analyst)

    def request_approval(self, account: str, event: str, **told: str) -> Any:
        """Asks the stewards of an account, in the name that was proven, to allow one query beyond a cap."""
        self.admit(account)
        priced = events.from_json(event)
        return APPROVAL.write(self._ledger.caps.request_approval(account, priced, analyst=self._analyst, **told))

    def team(self, account: str, team: str) -> Any:
        """Returns a team's cap, members and groups, for declarations to be compared with."""
        found = self._ledger.caps.team(team, account=account)
        return None if found is None else [write_cap(found.cap), found.members, found.groups]

    def needed(self, account: str) -> int:
        """Returns how many stewards must approve a request on an account."""
        return self._ledger.caps.needed(account)

    def set_team(self, team: str, account: str, cap: dict[str, str], members: list[str], groups: list[str]) -> None:
        """Gives a team the cap and the members that the file of declarations names."""
        given, by = read_budget(cap), self._analyst
        self._ledger.caps.set_team(team, account=account, cap=given, members=members, groups=groups, by=by)

    def require_approvals(self, account: str, count: int) -> None:
        """Has as many stewards approve requests as the file of declarations says."""
        self._ledger.caps.require_approvals(account, count=count, by=self._analyst)

    def allot(self, project: str, account: str, cap: dict[str, str]) -> None:
        """Gives a project the cap that the file of declarations names."""
        self._ledger.stewardship.allot(project, account=account, cap=read_budget(cap), by=self._analyst)


_READING: tuple[str, ...] = (
    "admit",
    "is_charged",
    "refusal",
    "read_answers",
    "read_headers",
    "account",
    "accounts",
    "origins",
)
_READING += ("read_answer", "balance", "role", "project_cap", "analyst_cap", "declared_table")
_SPENDING: tuple[str, ...] = (
    "charge",
    "charge_limits",
    "claim",
    "answer",
    "interrupt",
    "fail",
    "store_answer",
    "store_beside",
    "beside",
)
_SPENDING += ("all_beside", "read_released_event")
_ASKING = ("request_approval",)
_STEWARDS = ("open_account", "attach", "appoint", "allot", "team", "needed", "set_team", "require_approvals")


def _select_functions(door: LedgerGateway, names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    """Returns functions by name, taken from the class: a worker's text never reaches getattr."""
    return {name: vars(type(door))[name] for name in names}
