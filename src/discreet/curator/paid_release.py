"""One paid release: whatever reads private rows is charged, run, stored and shown by `release_once`.

A verb says what it wants to release (`PaidRelease`), and this module does it in the only order that is safe:

1. who asks may ask, on all accounts that pay;
2. what is stored, or follows from what is stored, is given for nothing;
3. what can be refused for public reasons is refused, before anything is spent;
4. all accounts are charged together, or none is; the charge is durable before a row is read;
5. the run reads and adds noise; all that it releases must cost no more than its charge;
6. the result is stored with the event of all that the run released, and read back from the stored bytes;
7. only then is it shown, while an interrupt still says what was charged and stored.

A stream is charged in the same way (`charge_request`), never ends its charge, and releases its periods by
`streams.release_step`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from fractions import Fraction
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from discreet.accounting.composition import terms
from discreet.dataclass import dataclass
from discreet.engines.sources.query_view import query_view
from discreet.errors import DiscreetError, InternalError, QueryFailed
from discreet.ledger import Account, Caller, Ledger, Receipt, RemainingBudget
from discreet.ledger.cost import Cost
from discreet.ledger.outcomes import MOST_RUNS
from discreet.ledger.serialization import read_header
from discreet.ledger.tallies import prices
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.progress import sealed_stage, stage

Result = TypeVar("Result")
Released_co = TypeVar("Released_co", covariant=True)
Shown = TypeVar("Shown")
Again = Callable[[Receipt], Receipt | None]
"""Returns a receipt under which a charge that was found is run, or None if it has ended."""

WAIT = 10.0
"""Seconds to wait for an answer that somebody else computes under the same idempotency key, before it is run again."""

NOTHING = events.Composed(())

STAYS = "The question was stopped after it was charged, and the charge stays."
AGAIN = "Ask again with the same key to get the answer without another charge."
USED_UP = f"It was run {MOST_RUNS} times and will not run again with the same key. A new key is a new charge."
STORED = "Its answer is stored. Asking again costs nothing."
LOST = "Without a key, asking again is a new question and a new charge."
UNKNOWN = "The question was stopped while it was being charged. The history shows if it was charged. A charge stays."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRequest:
    """A request to a ledger for a charge: an event, in full, to each of several accounts.

    Under an idempotency key a request is known by its accounts, question, replay key and terms.

    Args:
        accounts: all that pay, of whose people something is released; the first keeps the answer.
        event: what will be released.
        question: the canonical JSON of what is asked.
        replay_key: under which the release will be kept, or a key in its place before that is known.
        terms: what may be spent, in words; without any, the event is used.
        sql: the text as it was asked, for people; the same question in other words is the same request.
        restart: what a process that knows the key alone needs to go on with the charge.
        asked: the epsilon that the caller asked with; None where nothing was asked in epsilon.
        periods: the first days of the periods whose rows it may depend on, where each has a budget of its own.
    """

    accounts: tuple[str, ...]
    event: Event
    question: str
    replay_key: str
    terms: str | None = None
    sql: str = ""
    restart: str = ""
    asked: Fraction | None = None
    periods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOutcome:
    """The result of a run.

    Args:
        event: of what the bytes hold, without what the run kept before it (`ChargeRun.keep`).
        replay_key: under which they are kept; it is known only now, since probes find facts that it names.
        payload: what is kept, as text.
    """

    event: Event
    replay_key: str
    payload: str


@dataclass(frozen=True, slots=True)
class ChargedRelease:
    """The release of a charge, as it is stored.

    Args:
        ledger: the ledger.
        receipt: of the charge.
        payload: the stored bytes of its answer.
        event: of all that was released for the charge.
    """

    ledger: Ledger
    receipt: Receipt
    payload: bytes
    event: Event

    def beside(self, replay_key: str) -> bytes | None:
        """Returns what was kept on the way to the answer, under a replay key."""
        return self.ledger.beside(self.receipt, replay_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedResult(Generic[Result]):
    """A result, and what it cost this caller.

    Args:
        result: what was released.
        remaining: what the account has left.
        cost: what was charged now; None if nothing was.
        found: whether it was stored before and nothing was charged, not even under this caller's key.
    """

    result: Result
    remaining: RemainingBudget
    cost: Cost | None
    found: bool = False

    @property
    def paid(self) -> Cost:
        """Returns what was charged now."""
        return Cost.free(self.remaining.loss) if self.cost is None else self.cost


class ChargeRun:
    """A charge at work: it keeps what is released on the way, and knows all that was.

    Args:
        ledger: the ledger.
        receipt: of the charge; new, or claimed.
        accounts: the names of all that were charged.
    """

    def __init__(self, ledger: Ledger, receipt: Receipt, accounts: tuple[str, ...]) -> None:
        self._ledger, self.receipt, self._accounts = ledger, receipt, accounts
        self._released: dict[str, Event] = self._read_stored_events() if receipt.claim else {}
        self._planned: dict[str, Event] = {}

    def covers(self, event: Event, promise: Event) -> bool:
        """Returns whether an event costs no more than another on all accounts that were charged."""
        return event == promise or all(
            costs_no_more(event, promise, self._ledger.account(account)) for account in self._accounts
        )

    def _read_stored_events(self) -> dict[str, Event]:
        """Returns the events of what all runs of this charge have kept; how a batch is laid out releases nothing."""
        kept = {one.replay_key: _event_of(one.payload) for one in self._ledger.all_beside(self.receipt)}
        return {key: event for key, event in kept.items() if event is not None}

    def total(self, event: Event) -> Event:
        """Returns all that was released for the charge, with this event as the last."""
        return self._with({"": event})

    def _with(self, more: Mapping[str, Event]) -> Event:
        parts = [*{**self._released, **more}.values()]
        return parts[0] if len(parts) == 1 else events.Composed(parts)

    def require_paid(self, event: Event) -> None:
        """Refuses what would cost more than the charge, together with all that was kept; before anything of it is read.

        Raises:
            InternalError: if it does.
        """
        self._require_paid(self.total(event))

    def _require_paid(self, released: Event) -> None:
        if not self.covers(released, self.receipt.event):
            raise InternalError("A release would cost more than its charge.")

    def plan(self, parts: Mapping[str, Event]) -> None:
        """Checks several releases at once that will be kept under these replay keys.

        Raises:
            InternalError: if together they cost more than the charge.
        """
        self._require_paid(self._with(parts))
        self._planned |= parts

    def keep(self, replay_key: str, payload: str, *, event: Event, question: str) -> bytes:
        """Keeps what was released on the way to the answer, durably, and under a replay key of its own.

        Returns:
            What is kept: the payload, or what another run of the same charge has kept before.

        Raises:
            InternalError: if all that was released would cost more than the charge.
        """
        if self._planned.get(replay_key) != event:
            self._require_paid(self._with({replay_key: event}))
        kept = self._ledger.store_beside(self.receipt, replay_key, payload, question=question)
        self._released[replay_key] = event if kept == payload.encode() else _event_of(kept) or event
        return kept

    def note(self, replay_key: str, payload: str, *, question: str) -> bytes:
        """Keeps what was decided from public facts before anything is read; the first that is kept counts."""
        return self._ledger.store_beside(self.receipt, replay_key, payload, question=question)

    def find_stored_result(self, replay_key: str) -> bytes | None:
        """Returns what was kept for this charge under a replay key, by whichever run."""
        return self._ledger.beside(self.receipt, replay_key)

    def affordable(self, made: ReleaseOutcome) -> ReleaseOutcome:
        """Returns an outcome with the event of all that was released for the charge.

        Raises:
            InternalError: if that costs more than the charge; nothing of it is stored then.
        """
        self.require_paid(made.event)
        total = self.total(made.event)
        return made if total is made.event else replace(made, event=total)

    def end(self, made: ReleaseOutcome) -> ChargedRelease | None:
        """Stores an outcome, with its event as a header; None if another run has ended the charge."""
        told = made.event if self._released or made.event != self.receipt.event else None  # else the charge says it
        if not self._ledger.store_answer(self.receipt, made.replay_key, made.payload, event=told):
            return None
        return ChargedRelease(self._ledger, self.receipt, made.payload.encode(), made.event)


class PaidRelease(Protocol[Released_co]):
    """The parts that a verb supplies to have something released once."""

    @property
    def request(self) -> ChargeRequest:
        """Returns what is charged: public facts alone."""

    @property
    def stage(self) -> str:
        """Returns the name of the run, from public facts: nothing else is known of it until it is stored."""

    def find(self) -> Released_co | None:
        """Returns what is stored, or follows from other releases, for nothing."""

    def prepare(self) -> None:
        """Raises what is refused for public reasons, before the charge."""

    def execute(self, run: ChargeRun) -> ReleaseOutcome:
        """Reads, adds noise, and keeps each release on the way."""

    def read(self, kept: ChargedRelease) -> Released_co | None:
        """Returns the release from stored bytes alone; None if they cannot be read, or their noise was seeded."""


def release_once(
    ledger: Ledger, paid: PaidRelease[Result], caller: Caller, show: Callable[[PricedResult[Result]], Shown]
) -> Shown:
    """Charges, runs, stores and shows a release; what is stored, and as good, is shown for nothing.

    Formal guarantee: nothing is read before all accounts are charged; what is shown was stored before, and all that a
    charge released costs no more than the charge, on each of its accounts.

    Args:
        ledger: the ledger.
        paid: what is released.
        caller: who asks.
        show: makes of it what the caller gets. It is called before the charge is left, so that the notes of an
            interrupt in it say that the answer is stored.

    Raises:
        NotPermitted: if the caller may not ask on one of the accounts, not even for what is stored.
        InsufficientBudget: if an account or a cap is used up; nothing was read.
        KeyConflict: if the caller's key came with another request before; nothing was spent.
        RunsUsedUp: if the charge of the key was run three times without an answer.
        QueryFailed: if the run failed, or did so before under this key; the charge stays.
        KeyboardInterrupt: on Ctrl-C; its notes say what was charged and stored.
    """
    asked = paid.request
    first, *_ = [ledger.admit(one, caller.analyst, caller.project, asked.periods) for one in asked.accounts]
    if caller.key is None or not ledger.is_charged(
        caller.analyst, caller.key
    ):  # a key that was charged has an outcome of its own
        known = paid.find()
        if known is not None:
            return show(
                PricedResult(
                    result=known, remaining=RemainingBudget.of(first.spent, first.budget), cost=None, found=True
                )
            )
        paid.prepare()
    with charge_request(ledger, paid.request, caller) as receipt:
        return show(
            _obtain_result(ledger, paid, receipt)
        )  # what was drawn has no name in a frame that error reporters show


def _obtain_result(ledger: Ledger, paid: PaidRelease[Result], receipt: Receipt) -> PricedResult[Result]:
    """Returns what the charge released: now, before, or in the run that ended it first.

    Raises:
        QueryFailed: if it ended without a release.
    """
    kept = None if receipt.repeated else _execute_charge(ledger, paid, receipt)
    if kept is None:
        stored = ledger.answer(receipt)
        kept = None if stored is None else ChargedRelease(ledger, receipt, stored, ledger.read_released_event(receipt))
    result = None if kept is None else paid.read(kept)
    if result is None:
        raise QueryFailed
    return PricedResult(
        result=result, remaining=receipt.account_remaining, cost=None if receipt.repeated else receipt.cost
    )


def _execute_charge(ledger: Ledger, paid: PaidRelease[Any], receipt: Receipt) -> ChargedRelease | None:
    """Runs a charge and stores its outcome; returns what is stored, or None if it failed or was ended by another."""
    run = ChargeRun(ledger, receipt, paid.request.accounts)
    made = run_charge(ledger, receipt, paid.stage, lambda: run.affordable(paid.execute(run)))
    return None if made is None else run.end(made)


def _event_of(payload: bytes) -> Event | None:
    """Returns what stored bytes say that they released; None if they are a decision that releases nothing."""
    event = read_header(payload).get("event")
    return None if event is None else events.from_json(event)


def costs_no_more(event: Event, promise: Event, account: Account) -> bool:
    """Returns whether an event costs at most what was promised, under every rule of an account that has a price.

    A part of what was promised costs no more than the whole, from which it is made by leaving out the rest: the
    calibrated parts of a batch may have larger sums than the amounts that the whole batch is calibrated to.
    """
    part, whole = (terms(each, account.neighbours) for each in (event, promise))
    if all(count <= whole.get(one, 0) for one, count in part.items()):
        return True
    actual, promised = (prices(each, account.budget, account.neighbours) for each in (event, promise))
    return actual.is_covered_by(promised)


def run_charge(ledger: Ledger, receipt: Receipt, name: str, execute: Callable[[], Result]) -> Result | None:
    """Runs what a charge has paid for, and reveals nothing of it.

    Formal guarantee: until this returns, only the name of the run is reported. Stages inside of it are not,
    since how many there are, and when they begin, can depend on what was drawn; numerical warnings are not given; and
    causes of a failure are dropped. What it returns is to be stored before it is shown. Files are listed once for all
    that is read here.

    Args:
        ledger: where the charge is.
        receipt: of the charge.
        name: what is planned, from public facts alone; it is reported before anything is read.
        execute: reads and draws.

    Returns:
        None if anything went wrong. It uses up one failure credit.
    """
    result: Result | None = None
    with suppress(Exception), sealed_stage(name), np.errstate(all="ignore"), query_view():
        result = execute()
    if result is None:
        ledger.fail(receipt)
    return result


# ------------------------------------------------------------------------------------------------------------- charging


def charge_request(
    ledger: Ledger, request: ChargeRequest, caller: Caller, *, again: Again | None = None
) -> AbstractContextManager[Receipt]:
    """Charges a request, and gives its receipt to whatever comes until it is answered.

    A receipt that is still `repeated` belongs to a charge that has ended: its answer is in the ledger. Of any other
    one, data may be read: it is new, or was claimed because it has not ended.

    A `KeyboardInterrupt` in between stays one, with notes that tell what was charged. Stopping a question uses up no
    failure credit: the caller chooses the moment, and has seen nothing yet. It uses up one of three runs.

    Args:
        ledger: the ledger.
        request: what to charge, and to which accounts: to all of them, or to none.
        caller: who asks, and under which key.
        again: how a charge is run that was found under the key; unless given, it is claimed after a wait.

    Raises:
        RunsUsedUp: if the charge of this key was run three times, and has no answer; the charge stays.
    """
    return _Charged(ledger, request, caller, again or (lambda receipt: ledger.claim(receipt, wait=WAIT)))


class _Charged(AbstractContextManager[Receipt]):
    """A charge until it is answered.

    It is no generator: `contextlib` gives an exception its frames back, and these hold what was read and drawn.
    """

    def __init__(self, ledger: Ledger, request: ChargeRequest, caller: Caller, again: Again) -> None:
        self._ledger, self._request, self._caller, self._again = ledger, request, caller, again
        self._receipt: Receipt | None = None

    def __enter__(self) -> Receipt:
        stage("Charging the account")
        try:
            self._receipt = _charge(self._ledger, self._request, self._caller)
            if self._receipt.repeated:
                self._receipt = self._again(self._receipt) or self._receipt
        except BaseException as error:
            if not isinstance(error, Exception):
                self._strip(error)
            raise
        return self._receipt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._strip(error)

    def _strip(self, error: BaseException) -> None:
        """Takes from an exception what it could carry outside, and notes that a question was stopped.

        Errors of this library tell public facts. Faults of ours keep their frames, so that they can be reported, once
        all is stored; before, frames hold what was drawn.
        """
        stopped = not isinstance(error, Exception)
        if (
            not stopped
            and (isinstance(error, InternalError) or not isinstance(error, DiscreetError))
            and self._has_answer
        ):
            return
        error.__traceback__ = None  # frames hold what was read and drawn, and so does what was being handled
        error.__context__ = error.__cause__ = None
        if stopped:
            for note in _notes(self._ledger, self._receipt, self._caller):
                error.add_note(note)

    @property
    def _has_answer(self) -> bool:
        """Returns whether the charge has an answer, so that the caller may see all that was released."""
        with suppress(Exception):
            return self._receipt is not None and self._ledger.answer(self._receipt) is not None
        return False


def _charge(ledger: Ledger, request: ChargeRequest, caller: Caller) -> Receipt:
    """Charges all accounts of a request, or none, and returns the receipt that its answer will belong to."""
    first, *_ = ledger.charge_all(
        dict.fromkeys(request.accounts, request.event),
        analyst=caller.analyst,
        question=request.question,
        key=caller.key,
        replay_key=request.replay_key,
        terms=request.terms,
        project=caller.project,
        reserve=caller.reserve,
        sql=request.sql,
        restart=request.restart,
        periods=request.periods,
        asked="" if request.asked is None else f"{request.asked.numerator}/{request.asked.denominator}",
    )
    return first


def _notes(ledger: Ledger, receipt: Receipt | None, caller: Caller) -> tuple[str, ...]:
    """Returns the notes for a caller who stops a question; the ledger records that it was stopped."""
    paid, answered, used_up = receipt is not None, False, False
    with suppress(DiscreetError):  # the ledger cannot be written now; then the next caller waits a little longer
        if receipt is not None and not receipt.repeated:
            used_up = receipt.claim + 1 >= MOST_RUNS
            answered = ledger.interrupt(receipt)
        elif caller.key is not None:
            paid = ledger.is_charged(caller.analyst, caller.key)
    if answered:
        return STAYS, STORED
    if paid:
        return STAYS, LOST if caller.key is None else USED_UP if used_up else AGAIN
    return () if caller.key is not None else (UNKNOWN,)
