"""One period of a stream: its charge was made when the stream was opened, and pays for all of them."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol, TypeVar

from discreet.curator.paid_release import NOTHING
from discreet.engines.sources.query_view import query_view
from discreet.errors import AccountLocked, QueryFailed
from discreet.ledger import Ledger, Receipt
from discreet.progress import stage

Result = TypeVar("Result")
Released_co = TypeVar("Released_co", covariant=True)
Shown = TypeVar("Shown")


class PaidStep(Protocol[Result, Released_co]):
    """One period of a stream whose charge was made when it was opened."""

    def begin(self) -> bool:
        """Counts the attempt durably; returns whether it uses up a failure credit, as all do after the third."""

    def execute(self) -> Result:
        """Reads the rows of the period, and returns their exact numbers."""

    def end(self) -> None:
        """Takes back the count of an attempt that has failed, and has used up a credit."""

    def keep(self, values: Result) -> Released_co:
        """Adds noise, writes the private state, has the ledger keep the release, and returns what may be shown."""


def release_step(ledger: Ledger, step: PaidStep[Result, Shown], receipt: Receipt, *, name: str, question: str) -> Shown:
    """Releases the next period of a stream; its charge has paid for all of them, and goes on.

    Args:
        ledger: the ledger.
        step: the period.
        receipt: of the stream's charge.
        name: what is read, from public facts alone.
        question: which was charged, as JSON.

    Raises:
        AccountLocked: if the analyst has no failure credit left; nothing was read.
        QueryFailed: if the engine failed. Nothing was released, the period can be tried again, and the analyst has one
            failure credit less.
    """
    refusal = ledger.refusal(receipt.account, NOTHING, analyst=receipt.analyst)
    if isinstance(refusal, AccountLocked):
        raise refusal
    if step.begin():
        _fail_step(ledger, receipt, question)
    stage(name)
    values: Result | None = None
    with suppress(Exception), query_view():  # causes can depend on data: all are dropped
        values = step.execute()
    if values is None:
        _fail_step(ledger, receipt, question)
        step.end()
        raise QueryFailed
    stage("Adding noise")
    return step.keep(values)


def _fail_step(ledger: Ledger, receipt: Receipt, question: str) -> None:
    """Uses up a failure credit, by a charge of nothing that fails; the stream's own charge goes on."""
    ledger.fail(ledger.charge(receipt.account, NOTHING, analyst=receipt.analyst, question=question))
