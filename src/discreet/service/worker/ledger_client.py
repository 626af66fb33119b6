"""The ledger as a worker sees it: every call is a message to the owner, who fixes who asks, and keeps all receipts.

A worker can ask for nothing but what one request needs. It cannot act as a steward, unless the request is a steward's
own; whom it charges, for which project and under which key is decided by the owner, whatever it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.curator.catalog.declared_limits import LIMITS
from discreet.errors import DeclarationChanged, DiscreetError, InternalError
from discreet.ledger import Account, Balance, Ledger, Receipt, Role, policy
from discreet.ledger.account import AccountState
from discreet.ledger.acts.cap_actions import CapActions, Team
from discreet.ledger.caps.approvals import ApprovalRequest
from discreet.ledger.journal import DeclaredTable
from discreet.ledger.outcomes import read_receipt
from discreet.ledger.redeclaration import differences, named_keys
from discreet.ledger.serialization import write_budget, write_unit
from discreet.ledger.stewardship import NOWHERE, Blocks, DataOrigin, Stewardship, TableRecord, no_blocks
from discreet.ledger.store.ledger_store import AnswerPlace, StoredAnswer, StoredHeader
from discreet.presentation.documents.error_documents import read_error
from discreet.presentation.documents.ledger_documents import APPROVAL, BALANCE
from discreet.privacy import AnyBudget, Neighbours, Unit, events
from discreet.privacy.events import Event
from discreet.service.worker.messages import Channel, read_cap, read_header, read_stored


class LedgerClient(Ledger):
    """A ledger that the owner keeps; a worker does not need, and cannot use, methods that are not written here.

    Args:
        channel: to the owner.
        steward: whether accounts and tables may be entered: at the start of the service, and when one is protected.
    """

    def __init__(self, channel: Channel, *, steward: bool) -> None:
        self._channel = channel
        self.stewardship = StewardshipClient(self, writing=steward)
        self._accounts: dict[str, Account] = {}
        self.caps = CapsClient(self, writing=steward)
        self.path, self.in_memory = "the service's ledger", False

    def call(self, method: str, **arguments: Any) -> Any:
        """Sends a call to the owner, and returns its reply.

        Raises:
            DiscreetError: as the ledger did there.
        """
        self._channel.send({"call": method, "with": arguments})
        reply = self._channel.receive()
        if "error" in reply:
            raise read_error(reply["error"])
        return reply["value"]

    def close(self) -> None:
        """Does nothing, since the owner keeps the ledger open."""

    def admit(
        self,
        account: str,
        analyst: str,  # noqa: ARG002 - the owner knows who
        project: str = "",  # noqa: ARG002
        periods: Sequence[str] = (),
    ) -> AccountState:
        """Returns the state of an account if the caller may ask on it."""
        return AccountState.read(self.call("admit", account=account, periods=[*periods]))

    def is_charged(self, analyst: str, key: str) -> bool:  # noqa: ARG002 - the owner knows who
        """Returns whether the request's idempotency key was charged before."""
        return bool(self.call("is_charged"))

    def charge_all(
        self,
        events_by_account: Mapping[str, Event],
        *,
        analyst: str = policy.OWNER,  # noqa: ARG002 - the owner knows who, and under which key
        question: str = "{}",
        key: str | None = None,
        replay_key: str = "",
        terms: str | None = None,
        project: str = "",  # noqa: ARG002
        sql: str = "",
        restart: str = "",  # noqa: ARG002 - of streams, which no worker runs
        asked: str = "",
        reserve: str = "",  # noqa: ARG002
        periods: Sequence[str] = (),
    ) -> tuple[Receipt, ...]:
        """Charges all accounts or none; the owner returns only the receipt that the answer will belong to."""
        told = {"question": question, "replay_key": replay_key, "terms": terms, "sql": sql, "asked": asked}
        if replay_key.startswith(LIMITS):  # the account's own release, whose price the owner knows
            (account,) = events_by_account
            return (read_receipt(self.call("charge_limits", account=account, key=key, **told)),)
        written = {account: events.to_json(event) for account, event in events_by_account.items()}
        return (read_receipt(self.call("charge", events_by_account=written, periods=[*periods], **told)),)

    def refusal(
        self,
        account: str,
        event: Event,
        *,
        analyst: str,  # noqa: ARG002 - the owner knows who, and from which reserve
        project: str = "",  # noqa: ARG002
        reserve: str = "",  # noqa: ARG002
        periods: Sequence[str] = (),
    ) -> DiscreetError | None:
        """Returns the error with which a charge would be refused now; None if it would pass."""
        found = self.call("refusal", account=account, event=events.to_json(event), periods=[*periods])
        return None if found is None else read_error(found)

    def claim(self, receipt: Receipt, *, wait: float = 0.0) -> Receipt | None:  # noqa: ARG002 - the owner knows better
        """Returns a receipt to run a charge without an outcome again; None if it has ended."""
        found = self.call("claim", sequence=receipt.sequence)
        return None if found is None else read_receipt(found)

    def interrupt(self, receipt: Receipt) -> bool:
        """Notes that a charge is no longer being run."""
        return bool(self.call("interrupt", sequence=receipt.sequence))

    def fail(self, *receipts: Receipt) -> None:
        """Notes that the questions of these receipts failed after their charge."""
        for receipt in receipts:
            self.call("fail", sequence=receipt.sequence)

    def store_answer(
        self, receipt: Receipt, replay_key: str, payload: bytes | str, *, event: Event | None = None
    ) -> bool:
        """Keeps an answer, durably, before it is sent."""
        text = payload if isinstance(payload, str) else payload.decode()
        told = {"replay_key": replay_key, "payload": text, "event": None if event is None else events.to_json(event)}
        return bool(self.call("store_answer", sequence=receipt.sequence, **told))

    def store_beside(self, receipt: Receipt, replay_key: str, payload: str, *, question: str) -> bytes:
        """Keeps what was released on the way to an answer, and returns what is kept."""
        told = {"replay_key": replay_key, "payload": payload, "question": question}
        return str(self.call("store_beside", sequence=receipt.sequence, **told)).encode()

    def beside(self, receipt: Receipt, replay_key: str) -> bytes | None:
        """Returns what was released on the way to an answer; None if nothing is kept yet."""
        found = self.call("beside", sequence=receipt.sequence, replay_key=replay_key)
        return None if found is None else str(found).encode()

    def all_beside(self, receipt: Receipt) -> tuple[StoredAnswer, ...]:
        """Returns all that was released on the way to an answer."""
        return tuple(read_stored(one) for one in self.call("all_beside", sequence=receipt.sequence))

    def read_released_event(self, receipt: Receipt) -> Event:
        """Returns the event of all that was released for a charge."""
        return events.from_json(self.call("read_released_event", sequence=receipt.sequence))

    def read_answers(self, *replay_keys: str) -> tuple[StoredAnswer, ...]:
        """Returns the answers kept under each replay key."""
        found = [one for each in replay_keys for one in self.call("read_answers", replay_key=each)]
        return tuple(map(read_stored, found))

    def read_headers(self, start: str, *, most: int = 100) -> tuple[StoredHeader, ...]:
        """Returns the headers of answers whose replay key begins like this."""
        return tuple(read_header(one) for one in self.call("read_headers", start=start, most=most))

    def read_answer(self, place: AnswerPlace) -> StoredAnswer:
        """Returns the whole answer of a header."""
        return read_stored(self.call("read_answer", place=list(place)))

    def answer(self, receipt: Receipt, *, wait: float = 0.0) -> bytes | None:  # noqa: ARG002 - the owner knows better
        """Returns the answer of a charge; None if there is none."""
        found = self.call("answer", sequence=receipt.sequence)
        return None if found is None else str(found).encode()

    def account(self, account: str) -> Account:
        """Returns what an account was opened as; the owner is asked once."""
        if account not in self._accounts:
            self._accounts[account] = Account.read(self.call("account", account=account))
        return self._accounts[account]

    def accounts(self) -> tuple[str, ...]:
        """Returns the names of all accounts."""
        return tuple(self.call("accounts"))

    def tables(self) -> dict[str, str]:
        """Returns the account of every table."""
        return {table: told["account"] for table, told in self.origins().items()}

    def origins(self) -> dict[str, TableRecord]:
        """Returns the ledger's record of every table."""
        return dict(self.call("origins"))

    def declared_table(self, table: str) -> DeclaredTable | None:
        """Returns how a table is declared now and its versions; None if it was never attached."""
        told = self.call("declared_table", table=table)
        return None if told is None else DeclaredTable(told[0], tuple(told[1]), *told[2:])

    def balance(
        self, account: str, *, analyst: str | None = None, project: str | None = None, team: str | None = None
    ) -> Balance:
        """Returns the balance of the account, or of the caller or their project on it."""
        if team is not None:
            raise InternalError("A worker needs no team's figures.")
        whose = "analyst" if analyst is not None else "project" if project is not None else "account"
        return BALANCE.read(self.call("balance", account=account, whose=whose))

    def role(self, account: str, who: str) -> Role | None:
        """Returns a role on an account, if the owner lets the caller know it."""
        found = self.call("role", account=account, who=who)
        return None if found is None else Role(found)

    def project_cap(self, project: str, *, account: str) -> AnyBudget | None:
        """Returns the cap of a project on an account; None if it has none."""
        return read_cap(self.call("project_cap", account=account, project=project))

    def analyst_cap(self, analyst: str, *, account: str) -> AnyBudget | None:
        """Returns the caller's cap on an account; None if they have none of their own."""
        return read_cap(self.call("analyst_cap", account=account, analyst=analyst))


class CapsClient(CapActions):
    """The acts on caps that a worker may pass on: that the caller asks for an approval, and what a file declares.

    Args:
        ledger: the ledger of the worker.
        writing: whether the declarations of a file may be entered.
    """

    def __init__(self, ledger: LedgerClient, *, writing: bool) -> None:
        self._ledger, self._writing = ledger, writing

    def team(self, team: str, *, account: str) -> Team | None:
        """Returns a team's cap, members and groups; None if there is none, or to a worker that enters nothing."""
        found = self._ledger.call("team", account=account, team=team) if self._writing else None
        return None if found is None else Team(read_cap(found[0]), tuple(found[1]), tuple(found[2]))

    def needed(self, account: str) -> int:
        """Returns how many stewards must approve a request."""
        return int(self._ledger.call("needed", account=account)) if self._writing else 1

    def set_team(
        self,
        team: str,
        *,
        account: str,
        cap: AnyBudget,
        members: Sequence[str] = (),
        groups: Sequence[str] = (),
        by: str = policy.OWNER,  # noqa: ARG002 - the owner knows who
        note: str = "",  # noqa: ARG002
    ) -> None:
        """Gives a team a cap for a steward; else does nothing."""
        if self._writing:
            told = {"cap": write_budget(cap), "members": list(members), "groups": list(groups)}
            self._ledger.call("set_team", team=team, account=account, **told)

    def require_approvals(self, account: str, *, count: int, by: str = policy.OWNER, note: str = "") -> None:  # noqa: ARG002
        """Says how many stewards must approve, for a steward; else does nothing."""
        if self._writing:
            self._ledger.call("require_approvals", account=account, count=count)

    def request_approval(
        self,
        account: str,
        event: Event,
        *,
        analyst: str,  # noqa: ARG002 - the owner knows who
        replay_key: str,
        sql: str,
        asked: str,
        reason: str,
    ) -> ApprovalRequest:
        """Asks the stewards of an account to allow one query beyond a cap."""
        told = {"replay_key": replay_key, "sql": sql, "asked": asked, "reason": reason}
        found = self._ledger.call("request_approval", account=account, event=events.to_json(event), **told)
        return APPROVAL.read(found)


class StewardshipClient(Stewardship):
    """The entries that a worker may write: none, unless it works for a steward; else it compares what is there."""

    def __init__(self, ledger: LedgerClient, *, writing: bool) -> None:
        self._ledger, self._writing = ledger, writing

    def open_account(
        self,
        account: str,
        *,
        unit: Unit,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        budget: AnyBudget | None = None,
        by: str = policy.OWNER,  # noqa: ARG002 - the owner knows who
    ) -> Account:
        """Opens an account for a steward; else returns the one that is there."""
        if self._writing:
            cap = None if budget is None else write_budget(budget)
            told = {"unit": write_unit(unit), "neighbours": Neighbours(neighbours).value, "budget": cap}
            return Account.read(self._ledger.call("open_account", account=account, **told))
        return self._ledger.account(account)

    def attach(
        self,
        table: str,
        *,
        account: str,
        declaration: str,
        version: str = "",
        origin: DataOrigin = NOWHERE,
        replacing: str | None = None,
        blocks: Blocks = no_blocks,
        by: str = policy.OWNER,  # noqa: ARG002 - the owner knows who
    ) -> None:
        """Attaches a table for a steward; else checks that it is declared in the same way."""
        if self._writing:
            told = {"declaration": declaration, "version": version, "origin": origin.fields, "replacing": replacing}
            listed = {digest: blocks(digest).decode() for digest in named_keys(declaration)}
            self._ledger.call("attach", table=table, account=account, blocks=listed, **told)
            return
        present = self._ledger.declaration(table)
        if present != declaration:
            hint = "Restart the service: it enters declarations when it starts."
            raise DeclarationChanged(table, () if present is None else differences(present, declaration), hint)

    def appoint(
        self,
        who: str,
        role: Role | str,
        *,
        account: str = "",
        cap: AnyBudget | None = None,
        by: str = policy.OWNER,  # noqa: ARG002
    ) -> None:
        """Appoints a person for a steward; else does nothing."""
        if self._writing:
            told = {"role": Role(role).value, "cap": None if cap is None else write_budget(cap)}
            self._ledger.call("appoint", who=who, account=account, **told)

    def allot(self, project: str, *, account: str, cap: AnyBudget, by: str = policy.OWNER, note: str = "") -> None:  # noqa: ARG002
        """Gives a project a cap for a steward; else does nothing."""
        if self._writing:
            self._ledger.call("allot", project=project, account=account, cap=write_budget(cap))
