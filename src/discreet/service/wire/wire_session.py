"""What one connection does with statements: transactions that refund nothing, settings, and questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from discreet.errors import DiscreetError
from discreet.service.acts import StewardActions
from discreet.service.caller import Permission
from discreet.service.wire import protocol_messages as pg
from discreet.service.wire.protocol_messages import FieldDescription, WireError
from discreet.service.wire.query_executor import QueryExecutor, Result, amount_text, text_rows
from discreet.service.wire.session_parameters import REMAINING, SessionParameters, assignment, parse_setting_name
from discreet.service.wire.sqlstates import wire_error
from discreet.service.wire.statement_kinds import StatementKind, WireStatement

_KEPT_CHARGE = "What was charged in this transaction stays charged: ROLLBACK refunds nothing"
_LATE = "An earlier statement of this transaction failed: send ROLLBACK"
_MANY = "The message has more than one query"
_AMOUNTS = ("remaining", "spendable", "spent", "total")
_ENDS = (StatementKind.COMMIT, StatementKind.ROLLBACK)


class WireSession:
    """The state of a connection, and its statements.

    Attributes:
        status: I outside of transactions, T inside of one, E inside of one that failed.
    """

    def __init__(self, lane: QueryExecutor, acts: StewardActions) -> None:
        self._lane, self._acts = lane, acts
        self._parameters: SessionParameters = lane.parameters
        self._saved: list[tuple[str, Mapping[str, str]]] = []
        self._charged = False
        self.status = "I"

    # ------------------------------------------------------------------------------------------------- statements

    def check(self, found: Sequence[WireStatement]) -> None:
        """Checks that a message asks at most one question.

        Raises:
            WireError: if there are more; nothing of the message was done.
        """
        questions = [each for each in found if each.kind is StatementKind.SELECT and not self._lane.about_catalog(each)]
        if len(questions) > 1:
            raise WireError("0A000", _MANY, "Send the queries one by one. None was asked.", place=questions[1].offset)

    def _admit(self, statement: WireStatement) -> None:
        """Checks that the caller is still known, and that a failed transaction allows the statement."""
        self._lane.caller()
        if self.status == "E" and statement.kind not in _ENDS:
            raise WireError("25P02", _LATE)

    async def run(self, statement: WireStatement, values: Sequence[Any]) -> Result:
        """Runs a statement, and returns its result; every error leaves as a `WireError`."""
        try:
            self._admit(statement)
            result = await self._result(statement, values)
        except DiscreetError as error:
            raise wire_error(error, statement.text) from None
        self._charged = self._charged or result.charged
        return result

    async def _result(self, statement: WireStatement, values: Sequence[Any]) -> Result:
        if statement.kind is StatementKind.SELECT:
            return await self._lane.ask(statement, values)
        if statement.kind is StatementKind.EXPLAIN:
            return await self._lane.explain(statement, values)
        if statement.kind is StatementKind.SHOW and parse_setting_name(statement) == REMAINING:
            return await asyncio.to_thread(self._remaining)  # which may wait for the ledger
        return _DONE[statement.kind](self, statement)

    async def describe(
        self, statement: WireStatement, values: Sequence[Any] | None, types: Sequence[int] = ()
    ) -> tuple[FieldDescription, ...] | None:
        """Returns the columns that a statement will give; None if it gives no rows. Nothing is spent."""
        try:
            self._admit(statement)
            if statement.kind is StatementKind.SELECT:
                return await self._lane.describe(statement, values, types)
            if statement.kind is StatementKind.EXPLAIN:
                return text_rows("EXPLAIN", ["QUERY PLAN"], ()).fields
            if statement.kind is StatementKind.SHOW:
                remaining = parse_setting_name(statement) == REMAINING
                return (_balances(()) if remaining else self._show(statement)).fields
        except DiscreetError as error:
            raise wire_error(error, statement.text) from None
        return None

    def fail(self) -> None:
        """Notes that a statement failed."""
        if self.status == "T":
            self.status = "E"

    # ----------------------------------------------------------------------------------------------- transactions

    def _begin(self, statement: WireStatement) -> Result:
        if self.status == "T":
            return Result(tag=statement.tag, notices=(pg.notice("A transaction is already in progress"),))
        self._saved = [("", self._parameters.snapshot())]
        self._charged, self.status = False, "T"
        return Result(tag=statement.tag)

    def _commit(self, statement: WireStatement) -> Result:
        if self.status == "E":
            return self._rolled_back("ROLLBACK")
        self._end()
        return Result(tag=statement.tag)

    def _rollback(self, statement: WireStatement) -> Result:
        words = [each.word for each in statement.words]
        if "TO" in words:
            return self._back_to(statement)
        return self._rolled_back(statement.tag)

    def _rolled_back(self, tag: str) -> Result:
        told = (pg.notice(_KEPT_CHARGE),) if self._charged and self.status != "I" else ()
        if self._saved:
            self._parameters.restore(self._saved[0][1])
        self._end()
        return Result(tag=tag, notices=told)

    def _end(self) -> None:
        self._parameters.end_transaction()
        self._saved, self._charged, self.status = [], False, "I"

    def _savepoint(self, statement: WireStatement) -> Result:
        self._needs_transaction("SAVEPOINT")
        if len(self._saved) > 100:
            raise WireError("54000", "The transaction has more than 100 savepoints")
        self._saved.append((_last_name(statement), self._parameters.snapshot()))
        return Result(tag=statement.tag)

    def _back_to(self, statement: WireStatement) -> Result:
        self._needs_transaction("ROLLBACK TO SAVEPOINT")
        place = self._saved_place(_last_name(statement))
        self._parameters.restore(self._saved[place][1])
        self._saved, self.status = self._saved[: place + 1], "T"
        return Result(tag=statement.tag, notices=(pg.notice(_KEPT_CHARGE),) if self._charged else ())

    def _release(self, statement: WireStatement) -> Result:
        self._needs_transaction("RELEASE")
        self._saved = self._saved[: self._saved_place(_last_name(statement))]
        return Result(tag=statement.tag)

    def _saved_place(self, name: str) -> int:
        for place in range(len(self._saved) - 1, 0, -1):
            if self._saved[place][0] == name:
                return place
        raise WireError("3B001", "The savepoint does not exist")

    def _needs_transaction(self, what: str) -> None:
        if self.status == "I":
            raise WireError("25P01", f"{what} can only be used in a transaction", "Send BEGIN first.")

    # --------------------------------------------------------------------------------------------------- settings

    def _set(self, statement: WireStatement) -> Result:
        name, value, local = assignment(statement)
        self._parameters.set(name, value, local=local)
        return Result(tag="SET")

    def _reset(self, statement: WireStatement) -> Result:
        name = parse_setting_name(statement)
        if name == "all":
            self._parameters.reset_all()
        else:
            self._parameters.set(name, None)
        return Result(tag="RESET")

    def _show(self, statement: WireStatement) -> Result:
        name = parse_setting_name(statement)
        if name == "session_authorization":
            return text_rows("SHOW", [name], [(self._lane.caller().name,)])
        if name == "all":
            rows = [(key, value, "") for key, value in self._parameters.all().items()]
            return text_rows("SHOW", ["name", "setting", "description"], rows)
        return text_rows("SHOW", [name], [(self._parameters.get(name),)])

    def _remaining(self) -> Result:
        """Returns the remaining budget, a row for each account and cap that the caller may see."""
        caller = self._lane.caller()
        caller.require(Permission.SEE_OWN)
        return _balances(self._acts.budgets(caller))

    def _discard(self, statement: WireStatement) -> Result:
        if self.status != "I":
            raise WireError("25001", "DISCARD cannot be used in a transaction", "Send COMMIT or ROLLBACK first.")
        self._parameters.reset_all()
        return Result(tag=f"DISCARD {statement.word(1) or 'ALL'}")

    def _nothing(self, statement: WireStatement) -> Result:
        return Result(tag=statement.tag)


def _last_name(statement: WireStatement) -> str:
    name = statement.words[-1].name
    if len(statement.words) < 2 or not name:
        raise WireError("42601", "The statement names no savepoint")
    return name


def _balances(found: Sequence[Mapping[str, Any]]) -> Result:
    """Returns a row for each account: the caller's own part, and the whole for those who may see it."""
    rows = []
    for each in found:
        parts = {"": each.get("balance"), str((each.get("own") or {}).get("name", "")): each.get("own")}
        for who, balance in parts.items():
            if balance is not None:
                told = [amount_text(balance.get(name)) for name in _AMOUNTS]
                rows.append((str(each["account"]), who or "everybody", *told))
    return text_rows("SHOW", ["account", "of", *_AMOUNTS], rows)


_DONE: Mapping[StatementKind, Callable[[WireSession, WireStatement], Result]] = {
    StatementKind.BEGIN: WireSession._begin,
    StatementKind.COMMIT: WireSession._commit,
    StatementKind.ROLLBACK: WireSession._rollback,
    StatementKind.SAVEPOINT: WireSession._savepoint,
    StatementKind.RELEASE: WireSession._release,
    StatementKind.SET: WireSession._set,
    StatementKind.RESET: WireSession._reset,
    StatementKind.SHOW: WireSession._show,
    StatementKind.DISCARD: WireSession._discard,
    StatementKind.DEALLOCATE: WireSession._nothing,
    StatementKind.CLOSE: WireSession._nothing,
}
