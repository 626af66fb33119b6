"""A stream that was paid for: the next period is read, measured with noise, kept, and only then shown."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from discreet import accounting, check
from discreet.curator.asking.answer import Answer
from discreet.curator.streams.release_step import release_step
from discreet.curator.streams.stream_plan import StreamPlan
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, StreamError
from discreet.ledger import Ledger, Receipt, RemainingBudget
from discreet.ledger.cost import Cost
from discreet.measurement.program.execution import Reader
from discreet.plan.model.nodes import Value
from discreet.plan.model.readings import Reading
from discreet.plan.post.outputs import Cell, NoisyNumber, plain_rows
from discreet.plan.post.steps import answer_columns
from discreet.privacy import events
from discreet.progress import Progress, telling
from discreet.stream.state_file import Entry, Keeper, RunCount
from discreet.stream.stream import Stream


@dataclass(frozen=True, slots=True)
class LedgerWitness:
    """Keeps what each period released in the ledger, under the one charge of the stream, before it is shown.

    A period is kept once: a second run of it, with other noise, gets an error and shows nothing.

    Args:
        ledger: the ledger.
        receipt: of the charge.
        question: which was charged, as JSON.
    """

    ledger: Ledger
    receipt: Receipt
    question: str

    def _place(self, period: int) -> str:
        return f"stream:{self.receipt.hash}:{period}"

    def count_periods(self, stream: str) -> int:  # noqa: ARG002 - the charge names the stream
        """Returns how many periods were released.

        It cannot be lost without its charge, which is in the same ledger: before the first release it is 0, and a
        state that has a first period is one whose release was never shown.
        """
        last = 1
        while self.ledger.read_answers(self._place(last)):
            last *= 2
        low, high = last // 2, last  # the last known to be there, and one known not to be
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.ledger.read_answers(self._place(middle)) else (low, middle)
        return low

    def testify(self, stream: str, periods: int, entry: Entry | None) -> None:  # noqa: ARG002 - see above
        """Keeps what the last period released.

        Raises:
            StreamError: if something else was released for it; then nothing of this must be shown.
        """
        if entry is None:
            return
        payload = json.dumps({"noisy": entry["noisy"]}, separators=(",", ":"))
        kept = self.ledger.store_beside(self.receipt, self._place(periods), payload, question=self.question)
        if kept != payload.encode():
            raise StreamError(f"Period {periods} was released by another process", "Open the stream again.")

    def read_releases(self) -> list[list[list[int]]]:
        """Returns what was released in each period."""
        count = self.count_periods("")
        return [json.loads(self.ledger.read_answers(self._place(t))[0].payload)["noisy"] for t in range(1, count + 1)]


class InMemoryState:
    """The state of a stream whose ledger dies with the process: nothing but the ledger keeps it."""

    def __init__(self, witness: LedgerWitness) -> None:
        self._witness, self._count = witness, witness.count_periods("")
        if self._count:
            raise StreamError("The stream is already open", "Use the object that opened it.")

    def take_periods(self) -> list[Entry]:
        """Returns nothing: a new process has a new ledger."""
        return []

    def append(self, values: Sequence[int], noisy: Sequence[Sequence[int]], **beside: Any) -> None:  # noqa: ARG002
        """Keeps a period in the ledger."""
        self._count += 1
        self._witness.testify("", self._count, {"noisy": [list(each) for each in noisy]})

    def close(self) -> None:
        """Does nothing: there is no file to close."""


USUAL_DELTA = Fraction(1, 10**6)
"""Of a lifetime epsilon, where the budget of an account has none."""


MOST_RUNS = 3
"""How often a period may be begun and cut off before each further attempt uses up a failure credit."""


class UnitMemory:
    """Counts of the periods of each unit, by keyed digests of their ids; kept with the private state.

    Args:
        secret: of the account; without it digests cannot be matched with ids.
        most: in how many periods a unit may be counted.
    """

    def __init__(self, secret: str, most: int) -> None:
        self._secret, self._most = secret.encode()[:64], most
        self._counted: Counter[str] = Counter()

    def may_count(self, unit: Value) -> bool:
        """Returns whether a unit may be counted once more."""
        return self._counted[self.digest(unit)] < self._most

    def digest(self, unit: Value) -> str:
        """Returns the keyed digest that replaces an id."""
        text = f"{type(unit).__name__} {unit}".encode()
        return hashlib.blake2b(text, key=self._secret, digest_size=16).hexdigest()

    def count(self, digests: Sequence[str]) -> None:
        """Takes those who were counted in a period."""
        self._counted.update(digests)


class StateKeeper(Protocol):
    """The protocol of what keeps a period with those who were counted in it."""

    def take_periods(self) -> list[Entry]:
        """Returns the periods that were kept before, once."""

    def append(self, values: Sequence[int], noisy: Sequence[Sequence[int]], **beside: Any) -> None:
        """Keeps a period, and returns when it may be shown."""

    def close(self) -> None:
        """Closes the state, so that another process may go on."""


class RememberingKeeper:
    """Keeps each period together with the units that were counted in it, and updates the memory.

    Args:
        kept: where periods are kept.
        memory: of who was counted.
        remembers: whether the stream needs the memory; a period that was kept without one names no units.
    """

    def __init__(self, kept: StateKeeper, memory: UnitMemory, *, remembers: bool) -> None:
        self._kept, self._memory, self._remembers = kept, memory, remembers
        self.pending: list[str] = []

    def take_periods(self) -> list[Entry]:
        """Returns the periods that were kept before; the memory is as it was after them.

        Raises:
            StreamError: if a unit was counted and not remembered. Earlier versions did so where they
                wrongly took an id to determine the period.
        """
        periods = self._kept.take_periods()
        for entry in periods:
            units = entry.get("units", ())
            if self._remembers and not units and ("units" not in entry or any(entry["values"])):
                hint = "Start a new stream under another name. This one may count people more often than was paid for."
                raise StreamError("Periods were released without a record of who was counted", hint)
            self._memory.count(units)
        return periods

    def append(self, values: Sequence[int], noisy: Sequence[Sequence[int]]) -> None:
        """Keeps a period and those who are pending for it."""
        self._kept.append(values, noisy, **({"units": self.pending} if self._remembers else {}))
        self._memory.count(self.pending)
        self.pending = []

    def close(self) -> None:
        """Closes the state, so that another process may go on."""
        self._kept.close()


class CuratedStream:
    """Releases one period after the other of a question, for the one charge that was made when it was started.

    Formal guarantee: everything that is ever released is described by `event`, for the units of the account: each is
    counted in at most so many periods of the whole stream, which is enforced from one period to the next by a private
    memory of who was counted, unless ids tell their period, or all periods were paid for.

    Args:
        plan: what is read and released.
        witness: the ledger's side of it.
        engine: which reads.
        make: which builds the sums.
        kept: the private state.
        runs: how often a period was begun; None if a period that was interrupted cannot be begun again.
        secret: of the account.
        confidence: of each interval.
    """

    def __init__(
        self,
        plan: StreamPlan,
        witness: LedgerWitness,
        engine: Reader,
        *,
        make: Callable[[Keeper], Stream],
        kept: StateKeeper,
        runs: RunCount | None,
        secret: str,
        confidence: Fraction,
    ) -> None:
        self._plan, self._witness, self._engine, self._confidence = plan, witness, engine, confidence
        self._runs = runs
        self._memory = UnitMemory(secret, plan.periods)
        self._keeper = RememberingKeeper(kept, self._memory, remembers=plan.remembers)
        try:
            self._sums = make(self._keeper)
        except BaseException:
            kept.close()
            raise
        self._shown = self._sums.decode_estimates(witness.read_releases())
        self._lock = threading.Lock()

    # ------------------------------------------------------------------------------------------------- public facts

    @property
    def event(self) -> events.Event:
        """Returns what the whole stream costs, however many of its periods are released."""
        return events.strip_calibration(self._witness.receipt.event)

    @property
    def cost(self) -> Cost:
        """Returns what was charged for the whole stream, once."""
        return self._witness.receipt.cost

    @property
    def method(self) -> str:
        """Returns how sums are measured."""
        return self._sums.method

    @property
    def usable(self) -> bool:
        """Returns whether it can go on: it was neither closed nor interrupted."""
        return self._sums.usable

    @property
    def released(self) -> int:
        """Returns how many periods are released."""
        return len(self._shown)

    @property
    def next_period(self) -> Any:
        """Returns the first day, or number, of the period that comes next."""
        return self._plan.calendar.first(self.released)

    def lifetime_epsilon(self, delta: check.Number | None = None) -> float:
        """Returns the epsilon of the whole stream, the one to report; for this delta, or the account's."""
        slack = self._delta if delta is None else check.probability(delta=delta)
        return accounting.epsilon(self.event, 0 if _is_pure(self.event) else slack)

    # ----------------------------------------------------------------------------------------------------- releases

    @telling
    def release(self, *, period: Any = None, progress: Progress | None = None) -> Answer:  # noqa: ARG002 - see telling
        """Returns the sums after the next period, read from the tables as they are protected now.

        Args:
            period: the first day, or number, of the period that is meant; None is the next one. A period that was
                released is given again as it was, and nothing is read.
            progress: is called with the name of every stage that begins.

        Raises:
            InvalidParameter: if the period is neither the next one nor an earlier one.
            StreamError: if the stream is at its end, or another process goes on with it.
            AccountLocked: if the analyst has no failure credit left.
            QueryFailed: if the engine failed; nothing was released, the period can be tried again, and the analyst has
                one failure credit less.
        """
        with self._lock:
            place = self._place(period)
            replayed = place < self.released
            if not replayed:
                self._release(place)
            return self._answer([place], replayed=replayed)

    def _release(self, place: int) -> None:
        """Reads a period, adds noise and keeps both; a caller who waits for the lock finds it released."""
        self._sums.check()
        witness, reading = self._witness, self._plan.reading(place)
        step = _Period(self, place, reading)
        name = f"Reading {reading.table}"
        shown = release_step(witness.ledger, step, witness.receipt, name=name, question=witness.question)
        self._shown.append(shown)

    def answers(self) -> Answer:
        """Returns all that was released, a row for each period and group; it costs nothing."""
        return self._answer(range(self.released), replayed=True)

    def _place(self, period: Any) -> int:
        if period is None:
            return self.released
        for place in range(self.released + 1):
            if str(self._plan.calendar.first(place)) == str(period):
                return place
        hint = f"Release the periods in order. The next is {self.next_period}."
        raise InvalidParameter("period", period, "to be the next period or an earlier one", hint)

    def _answer(self, places: Sequence[int], *, replayed: bool) -> Answer:
        question, receipt, ledger = self._plan.bound.plan, self._witness.receipt, self._witness.ledger
        state = ledger.admit(receipt.account, receipt.analyst)
        remaining = RemainingBudget.of(state.spent, state.budget)
        lifetime = f"The whole stream was charged once, {receipt.cost}: {self._lifetime}."
        return Answer(
            columns=answer_columns(question),
            records=plain_rows([row for place in places for row in self._rows(place)]),
            cost=Cost.free(remaining.loss),
            remaining=remaining,
            event=self.event,
            replayed=replayed,
            notes=(*self._plan.notes, lifetime),
            confidence=self._confidence,
            private=self._sums.private,
        )

    @cached_property
    def _lifetime(self) -> str:
        """Returns the epsilon of all periods together, in words."""
        slack = "" if _is_pure(self.event) else f" at delta={float(self._delta):.3g}"
        return f"an epsilon of {self.lifetime_epsilon():.3g}{slack} over its lifetime"

    @property
    def _delta(self) -> Fraction:
        """Returns the delta at which a lifetime epsilon is shown: the account's, or a default if it has none."""
        budget = self._witness.ledger.balance(self._witness.receipt.account).total
        return Fraction(getattr(budget, "delta", 0) or USUAL_DELTA)

    def _rows(self, place: int) -> list[dict[str, Cell]]:
        """Returns a row for each group after a period, in the order of the question's outputs."""
        plan, estimate, scale = self._plan, self._shown[place], float(self._plan.scale)
        names = [key.name for key in plan.program.question.keys]
        ends = (np.ravel(estimate.value), np.ravel(estimate.low), np.ravel(estimate.high))
        (aggregate,) = plan.program.question.aggregates
        rows: list[dict[str, Cell]] = []
        for line, *numbers in zip(plan.lines, *ends, strict=True):
            value, *interval = (float(number) * scale for number in numbers)
            known: dict[str, Cell] = dict(zip(names, line, strict=True))
            known[plan.key.name] = plan.calendar.ends(place)[0]
            known[aggregate.name] = NoisyNumber(value, min(interval), max(interval))
            rows.append({name: known[read] for name, read in plan.outputs})
        return rows

    def close(self) -> None:
        """Closes the private state, so that another process may go on."""
        self._sums.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"CuratedStream({self.released} periods released, {self.cost} charged once)"


@dataclass(frozen=True)
class _Period:
    """The next period of a stream: see `PaidStep`.

    Args:
        stream: which it is of.
        place: counted from 0.
        reading: what is read for it.
    """

    stream: CuratedStream
    place: int
    reading: Reading

    def begin(self) -> bool:
        """Counts an attempt, where a period that was interrupted can be begun again."""
        runs = self.stream._runs
        return runs is not None and runs.begin(self.place + 1) >= MOST_RUNS

    def end(self) -> None:
        """Takes the count back."""
        if self.stream._runs is not None:
            self.stream._runs.end(self.place + 1)

    def execute(self) -> tuple[list[int], list[Value]]:
        """Returns the numbers of the period and the units in them."""
        stream = self.stream
        return stream._plan.count_period(stream._engine.read(self.reading), stream._memory.may_count)

    def keep(self, values: tuple[list[int], list[Value]]) -> Any:
        """Adds noise; state and ledger keep it, in this order, before it is returned."""
        stream, (numbers, units) = self.stream, values
        stream._keeper.pending = [stream._memory.digest(unit) for unit in units]
        return stream._sums.release(numbers, period=self.place + 1)


def _is_pure(event: events.Event) -> bool:
    if isinstance(event, events.Composed):
        return all(_is_pure(part) for part in event.events)
    return isinstance(event, events.DiscreteLaplace)
