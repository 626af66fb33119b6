"""A charged question at work: probes first, where facts are missing, then the question itself.

Nothing is read before its charge is durable, and no charge is given back. The plan of a stage depends only on what
earlier stages released.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from types import TracebackType
from typing import TypeVar

import numpy as np

from discreet.curator.asking.batch_plan import BatchLayout, BatchPlan, probe_key
from discreet.curator.catalog.declarations import Terms
from discreet.curator.measurement_plan import (
    EDITIONS,
    ChargeRequest,
    MeasurementPlan,
    SettledProgram,
    of_each_probe,
    replay_key,
)
from discreet.curator.replay.stored_releases import MeasurementResult, NewResult, edition_of, pack, unpack, written
from discreet.errors import DiscreetError, InternalError
from discreet.ledger import Account, Book, Receipt
from discreet.ledger.outcomes import MOST_RUNS
from discreet.ledger.tallies import prices
from discreet.measurement.probes.probes import Fact, Facts, Probe
from discreet.measurement.profile.parts import ProfilePlan
from discreet.measurement.program.execution import Reader, run
from discreet.measurement.program.program import Edition, Program
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.canonical import canonical
from discreet.privacy import events
from discreet.progress import stage, told_to, unheard

Result = TypeVar("Result")

WAIT = 10.0
"""Seconds to wait for an answer that somebody else computes under the same idempotency key, before it is run again."""

STAYS = "The question was stopped after it was charged, and the charge stays."
AGAIN = "Asked again with the same key, it is answered and not charged again."
USED_UP = f"It was run {MOST_RUNS} times, and is not run again with the same key. A new key is a new charge."
STORED = "Its answer is stored: asked again, it costs nothing."
LOST = "Without a key, asking again is a new question and a new charge."
UNKNOWN = "The question was stopped while it was being charged; history tells whether it was. A charge stays."


def charged(
    book: Book, request: ChargeRequest, *, analyst: str, key: str | None, project: str = ""
) -> AbstractContextManager[Receipt]:
    """Charges a request, and gives its receipt to whatever comes until it is answered.

    A receipt that is still `repeated` belongs to a charge that has ended: its answer is in the book. Of any other one,
    data may be read: it is new, or was claimed because nobody has ended it.

    A `KeyboardInterrupt` in between stays one, with notes that tell what was charged. Stopping a question uses up no
    failure credit: whoever stops it chooses the moment, and has seen nothing yet. It uses up one of three runs.

    Args:
        book: the ledger.
        request: what to charge.
        analyst: who asks.
        key: their idempotency key, if they gave one.
        project: whose cap it counts against, too.

    Raises:
        RunsUsedUp: if the charge of this key was run three times, and has no answer; the charge stays.
    """
    return _Charged(book, request, analyst, key, project)


class _Charged(AbstractContextManager[Receipt]):
    """A charge until it is answered.

    It is no generator: `contextlib` gives an exception its frames back, and these hold what was read and drawn.
    """

    def __init__(self, book: Book, request: ChargeRequest, analyst: str, key: str | None, project: str) -> None:
        self._book, self._request, self._analyst, self._key, self._project = book, request, analyst, key, project
        self._receipt: Receipt | None = None

    def __enter__(self) -> Receipt:
        book, request = self._book, self._request
        stage("Charging the account")
        try:
            self._receipt = book.charge(
                request.account,
                request.event,
                analyst=self._analyst,
                question=request.question,
                key=self._key,
                replay_key=request.replay_key,
                terms=request.terms,
                project=self._project,
                sql=request.sql,
            )
            if self._receipt.repeated:
                self._receipt = book.claim(self._receipt, wait=WAIT) or self._receipt
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

        Errors of this library tell public facts. Faults of ours keep their frames, so that they can be reported: what
        draws drops them (`run_charge`), and elsewhere all is stored.
        """
        stopped = not isinstance(error, Exception)
        if not stopped and (isinstance(error, InternalError) or not isinstance(error, DiscreetError)):
            return
        error.__traceback__ = None  # frames hold what was read and drawn, and so does what was being handled
        error.__context__ = error.__cause__ = None
        if stopped:
            for note in _notes(self._book, self._receipt, self._analyst, self._key):
                error.add_note(note)


def _notes(book: Book, receipt: Receipt | None, analyst: str, key: str | None) -> tuple[str, ...]:
    """Returns what is told to whoever stops a question; the book notes that it was stopped."""
    paid, answered, used_up = receipt is not None, False, False
    with suppress(DiscreetError):  # the book cannot be written now; then whoever asks again waits a little longer
        if receipt is not None and not receipt.repeated:
            used_up = receipt.claim + 1 >= MOST_RUNS
            answered = book.interrupt(receipt)
        elif key is not None:
            paid = book.is_charged(analyst, key)
    if answered:
        return STAYS, STORED
    if paid:
        return STAYS, LOST if key is None else USED_UP if used_up else AGAIN
    return () if key is not None else (UNKNOWN,)


def run_charge(book: Book, receipt: Receipt, name: str, execute: Callable[[], Result]) -> Result | None:
    """Runs what a charge has paid for, and tells nothing of it.

    Formal guarantee: until this returns, nobody hears more than the name of the run. Stages inside of it are not told,
    since how many there are, and when they begin, can depend on what was drawn; numerical warnings are not given; and
    causes of a failure are dropped. What it returns is to be stored before it is shown.

    Args:
        book: where the charge is.
        receipt: of the charge.
        name: what is planned, from public facts alone; it is told before anything is read.
        execute: reads and draws.

    Returns:
        None if anything went wrong. It uses up one failure credit.
    """
    stage(name)
    result: Result | None = None
    with suppress(Exception), told_to(unheard), np.errstate(all="ignore"):
        result = execute()
    if result is None:
        book.fail(receipt)
    return result


@dataclass(frozen=True, kw_only=True)
class WantedProfile:
    """A profile that is bought with a question, in one charge: of its table, or of its own rows.

    Args:
        plan: what it counts.
        epsilon: what it may cost.
        place: under which key it is kept.
        kept: whether one as precise is.
    """

    plan: ProfilePlan
    epsilon: Fraction
    place: str
    kept: bool

    @cached_property
    def program(self) -> Program:
        """Returns what is read and released for it."""
        return self.plan.program(self.epsilon)

    def without(self, event: events.Event) -> events.Event:
        """Returns what a charge leaves for the question itself."""
        both = isinstance(event, events.Composed) and event.events[:-1] == (self.program.event,)
        return event.events[-1] if both and isinstance(event, events.Composed) else event

    def released(self, engine: Reader, releaser: Releaser) -> str:
        """Reads, adds noise, and returns what is kept of it."""
        made, private = run(self.program, engine, releaser), releaser.bits.private
        about = {"columns": list(self.plan.columns), "by": [list(one) for one in self.plan.by]}
        return pack(made, Terms(self.epsilon, Fraction(0)), private=private, beside={"profile": about})


def with_profile(request: ChargeRequest, wanted: WantedProfile | None) -> ChargeRequest:
    """Returns the one charge of a question and of a profile; under a key, it is known by what that may cost, too."""
    if wanted is None:
        return request
    event = request.event if wanted.kept else events.Composed([wanted.program.event, request.event])
    return replace(request, event=event, terms=f"{request.terms} profile {wanted.epsilon}")


class Performer:
    """Reads for charges, stage by stage, and adds noise.

    Args:
        book: where charges are.
        engine: which reads.
        releaser: which adds noise.
    """

    def __init__(self, book: Book, engine: Reader, releaser: Releaser) -> None:
        self._book, self._engine, self._releaser = book, engine, releaser

    def read_and_add_noise(
        self, measurement: MeasurementPlan, terms: Terms, receipt: Receipt, profile: WantedProfile | None = None
    ) -> NewResult | None:
        """Returns what a charge paid for, to be stored before it is shown; a profile that it paid for is kept first.

        What a probe released is kept at once, so that nobody pays for it again, even if this question fails. A charge
        that is run again spends what it was made for, whatever was found out since: the share of its probes is spent.

        Returns:
            None if anything went wrong: causes can depend on data, so all of them are dropped. It uses up one failure
            credit.
        """
        return run_charge(
            self._book,
            receipt,
            _stage_name([measurement.plan.table], probing=bool(measurement.missing)),
            lambda: self._profiled_and_performed(measurement, terms, receipt, profile),
        )

    def _profiled_and_performed(
        self, measurement: MeasurementPlan, terms: Terms, receipt: Receipt, profile: WantedProfile | None
    ) -> NewResult:
        rest = receipt if profile is None else self._profiled(profile, receipt)
        new = self._performed(measurement, terms, rest)
        if profile is None or rest.event is receipt.event:
            return new
        event = events.Composed([profile.program.event, new.result.event])
        return replace(new, result=replace(new.result, event=event))

    def _profiled(self, profile: WantedProfile, receipt: Receipt) -> Receipt:
        """Keeps a profile that a charge has paid for, and returns the receipt of the question itself."""
        rest = profile.without(receipt.event)
        if rest is not receipt.event and not profile.kept:
            payload = profile.released(self._engine, self._releaser)
            self._book.store_beside(receipt, profile.place, payload, question=canonical(profile.program.question))
        return receipt._replace(event=rest)

    def _performed(self, measurement: MeasurementPlan, terms: Terms, receipt: Receipt) -> NewResult:
        paid = measurement.probes_paid(terms, receipt.event) if receipt.claim else len(measurement.missing)
        epsilon, facts = of_each_probe(terms, max(paid, 1)), measurement.facts
        for probe in measurement.missing:
            facts = facts.having(probe, self._probed(probe, epsilon, receipt))
        account = self._book.account(receipt.account)
        probed = [probe.program(epsilon).event for probe in measurement.probes[:paid]]
        for edition in EDITIONS if receipt.claim else EDITIONS[:1]:
            settled = _settled(measurement, terms, facts, account, edition, probed=paid > 0)
            event = events.Composed([*probed, settled.program.event]) if probed else settled.program.event
            if not receipt.claim or costs_no_more(event, receipt.event, account):
                break
        else:
            raise InternalError("A question that is run again would cost more than it was charged with.")
        return self._run(measurement, settled, terms, event)

    def _run(
        self, measurement: MeasurementPlan, settled: SettledProgram, bought: Terms, event: events.Event
    ) -> NewResult:
        main, private = run(settled.program, self._engine, self._releaser), self.private
        beside = written(settled, bought)
        return NewResult(
            result=MeasurementResult(
                released=main, facts=settled.facts, event=event, private=private, edition=settled.edition
            ),
            replay_key=measurement.replay_key(settled.program, settled.facts),
            payload=pack(main, settled.terms, private=private, beside=beside, edition=settled.edition),
        )

    # ---------------------------------------------------------------------------------------------------------- batches

    def read_all_and_add_noise(self, batch: BatchPlan, receipt: Receipt) -> None:
        """Keeps all that a batch has paid for, and how the batch is answered: its outcome. The first that is kept wins.

        How the budget is shared is kept before anything is read, and each release as soon as it is made. Whoever runs
        the charge again takes what is there, and draws the rest only. If anything goes wrong, the outcome is a failure,
        which uses up one credit; releases that are kept were paid and stay.
        """
        tables = [one.plan.table for one in batch.measurements]
        name = _stage_name(tables, probing=bool(batch.missing))
        outcome = run_charge(self._book, receipt, name, lambda: self._batch_outcome(batch, receipt))
        if outcome is not None:
            self._book.store_answer(receipt, batch.place, outcome)

    def _batch_outcome(self, batch: BatchPlan, receipt: Receipt) -> str:
        text = json.dumps({"batch": batch.layout.fields})
        kept = self._book.store_beside(receipt, batch.place, text, question=batch.request.question)
        layout = BatchLayout.read(json.loads(kept)["batch"])
        keys = self._measured(replace(batch, layout=layout), receipt)
        return json.dumps({"batch": {**layout.fields, "keys": keys}})

    def _measured(self, batch: BatchPlan, receipt: Receipt) -> list[str]:
        """Measures a batch, and returns under which keys its releases are kept.

        Raises:
            InternalError: if it would cost more than was charged.
        """
        found = {}
        for key, probe in batch.missing.items():
            found[key] = self._probed(probe, batch.of_each_probe, receipt)
        account = self._book.account(receipt.account)
        measured = batch.layout.measured
        parts = [(batch.measurements[place], self._settled(batch, place, found, account)) for place in measured]
        parts += [(batch.cube(part), _merged(batch, part)) for part in batch.layout.merged]
        event = events.Composed([*batch.probe_events, *(one.program.event for _, one in parts)])
        if not costs_no_more(event, receipt.event, account):
            raise InternalError("A batch would cost more than it was charged with.")
        keys = []
        for (measurement, one), part in zip(parts, batch.layout.parts, strict=True):
            keys.append(measurement.replay_key(one.program, one.facts))
            if self._book.beside(receipt, keys[-1]) is None:
                new = self._run(measurement, one, batch.share_of(part), one.program.event)
                self._book.store_beside(receipt, keys[-1], new.payload, question=canonical(measurement.plan))
        return keys

    def _settled(
        self, batch: BatchPlan, place: int, found: Mapping[str, Fact | None], account: Account
    ) -> SettledProgram:
        """The program of a question of a batch, at what was found out."""
        measurement, facts = batch.measurements[place], batch.measurements[place].facts
        for probe in measurement.missing:
            facts = facts.having(probe, found[probe_key(probe)])
        if place in batch.layout.probed:
            return _settled(measurement, batch.share, facts, account, batch.layout.edition, probed=True)
        program, edition = batch.program(place), batch.layout.edition
        return SettledProgram(program=program, terms=batch.share, facts=facts, law=batch.law, edition=edition)

    @property
    def private(self) -> bool:
        """Tells whether its noise protects somebody, or is seeded for a test."""
        return self._releaser.bits.private

    def _probed(self, probe: Probe, epsilon: Fraction, receipt: Receipt) -> Fact | None:
        """Returns what a probe found, kept under a key of its own; if its charge was run before, what was found then.

        Raises:
            InternalError: if what was kept then cannot be read.
        """
        private = self.private
        released = run(probe.program(epsilon), self._engine, self._releaser)
        payload = pack(released, Terms(epsilon, Fraction(0)), private=private)
        key = replay_key(released.program, probe.tables)
        kept = self._book.store_beside(receipt, key, payload, question=canonical(released.program.question))
        if kept == payload.encode():
            return probe.found(released)
        first = unpack(kept, lambda epsilon, _: probe.program(epsilon), private=private)
        if first is None:
            raise InternalError("What was released for a charge cannot be read.")
        return probe.found(first, former=(edition_of(json.loads(kept)) or Edition.ONE_GRID) < Edition.UNCUT)


def _stage_name(tables: Sequence[str], *, probing: bool) -> str:
    """Names a run by what is planned, in words that no draw changes."""
    reading = f"Reading {' and '.join(dict.fromkeys(tables))} and adding noise"
    return f"Finding out bounds and limits, then {reading[0].lower()}{reading[1:]}" if probing else reading


def _merged(batch: BatchPlan, part: Sequence[int]) -> SettledProgram:
    """Returns the program of several questions of a batch that are measured together."""
    program, facts = batch.cube_program(part), batch.cube(part).facts
    edition = batch.layout.edition
    return SettledProgram(program=program, terms=batch.share_of(part), facts=facts, law=batch.law, edition=edition)


def _settled(
    measurement: MeasurementPlan, terms: Terms, facts: Facts, account: Account, edition: Edition, *, probed: bool
) -> SettledProgram:
    """Returns the question's own program, from what probes leave if the charge was made for some."""
    if not probed:
        program = measurement.program(terms, facts, edition=edition)
        return SettledProgram(program=program, terms=terms, facts=facts, edition=edition)
    return measurement.settled(terms, facts, lambda event, promise: costs_no_more(event, promise, account), edition)


def costs_no_more(event: events.Event, promise: events.Event, account: Account) -> bool:
    """Tells whether an event costs at most what was promised, under every rule of an account that has a price."""
    actual, promised = (prices(each, account.budget, account.neighbours) for each in (event, promise))
    return actual.covered(promised)
