"""Several questions asked as one: one plan, one charge, one outcome, and an answer to each.

What happens to a batch on its way is what happens to a question: its charge is durable before anything is read; each
release is kept under its own replay key, so that asking one of the questions later costs nothing; a batch that was
stopped goes on under its idempotency key, and what it has released before is not drawn again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from discreet import check
from discreet.curator.asking.answer import Answer
from discreet.curator.asking.batch_plan import BatchLayout, BatchPlan, probe_key
from discreet.curator.asking.limits_finder import LimitsFinder
from discreet.curator.asking.performer import ReleaseExecutor, settle_program, stage_name
from discreet.curator.asking.planner import Planner, RequestedLimits
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget, SettledProgram
from discreet.curator.paid_release import (
    NOTHING,
    ChargedRelease,
    ChargeRequest,
    ChargeRun,
    PricedResult,
    ReleaseOutcome,
    release_once,
)
from discreet.curator.replay.replay import Replay
from discreet.curator.replay.stored_releases import MeasurementResult
from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, InternalError, InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.ledger import Caller, Ledger
from discreet.measurement.probes.probes import Fact
from discreet.measurement.program.program import ReleaseFormat
from discreet.plan.canonical import canonical
from discreet.plan.model.nodes import Question
from discreet.plan.model.sample import NOISE

MOST = 1000  # questions of one batch


@dataclass(frozen=True, slots=True)
class RequestedBatch:
    """A batch as it was asked: the questions, what they may cost together, who pays, and the form of the answers.

    Args:
        questions: texts or plans.
        epsilon: what all answers may cost together.
        delta: their chance of more.
        limits: of each question.
        confidence: of each interval.
        interval: what it covers.
    """

    questions: Sequence[str | Question]
    epsilon: check.Number
    delta: check.Number | None
    limits: RequestedLimits
    confidence: Fraction
    interval: str = NOISE


class BatchExecutor:
    """Answers several questions for one charge.

    Args:
        catalog: the tables.
        ledger: where batches are charged, and their releases kept.
        replay: which finds what is kept.
        planner: which chooses measurements.
        performer: which reads and adds noise.
        limits: which finds the limits of tables.
    """

    def __init__(
        self,
        catalog: Catalog,
        ledger: Ledger,
        replay: Replay,
        planner: Planner,
        performer: ReleaseExecutor,
        *,
        limits: LimitsFinder,
    ) -> None:
        self._catalog, self._ledger, self._replay = catalog, ledger, replay
        self._planner, self._performer, self._limits = planner, performer, limits

    def ask(self, asked: RequestedBatch, caller: Caller) -> list[Answer]:
        """Returns an answer to each question, in order; see `Curator.ask_many`."""
        measurements = self._measurements(asked)
        account = self._ledger.admit(measurements[0].account, caller.analyst, caller.project)
        terms = QueryBudget.of(asked.epsilon, asked.delta, account.budget)
        share = QueryBudget(terms.epsilon / len(measurements), terms.delta / len(measurements))
        for place, one in enumerate(measurements):
            with naming(place):
                one.price(share)
                self._planner.check_interval(one, share, asked.interval)
        if caller.key is None or not self._ledger.is_charged(caller.analyst, caller.key):
            measurements = self._payable(measurements, share)
        if self._limits.find([(one, share) for one in measurements], caller):
            return self.ask(asked, caller)
        paid = PaidBatch(BatchPlan.of(measurements, terms, self._replay.find), self._performer, self._replay)
        return release_once(self._ledger, paid, caller, lambda bought: self._answers(bought, asked))

    def _measurements(self, asked: RequestedBatch) -> list[MeasurementPlan]:
        """Returns the measurement of each question.

        Raises:
            InvalidParameter: if there are no questions, or too many.
            UnsupportedQuery: if they are about people of several accounts: each account would need its own charge.
        """
        questions = asked.questions
        if isinstance(questions, str | Question) or not 1 <= len(questions) <= MOST:
            found = "one question" if isinstance(questions, str | Question) else f"{len(questions)} questions"
            hint = f"Pass a list of 1 to {MOST} questions. For one question, use ask."
            raise InvalidParameter("questions", found, "to be a list of questions", hint)
        found_plans = self._catalog.read_at_once(lambda: self._plan_questions(asked))
        known = [self._limits.known(one) for one in found_plans]
        return self._measurements(asked) if any(known) else found_plans

    def _plan_questions(self, asked: RequestedBatch) -> list[MeasurementPlan]:
        found_plans: list[MeasurementPlan] = []
        for place, question in enumerate(asked.questions):
            with naming(place):
                found_plans.append(self._planner.plan(self._catalog.read(question), limits=asked.limits))
                if found_plans[-1].account != found_plans[0].account:
                    reason = "It is about people of another account than the questions before it."
                    raise UnsupportedQuery(reason, "Ask one batch for each account. Each batch is charged once.")
        return found_plans

    def _payable(self, measurements: Sequence[MeasurementPlan], share: QueryBudget) -> list[MeasurementPlan]:
        """Returns the measurements; sums over private groups need these stored, or asked for in the same batch."""
        adding = [self._planner.is_of_shown_groups(one, share) for one in measurements]
        shown = {one.request_key(share) for one, adds in zip(measurements, adding, strict=True) if not adds}
        found: list[MeasurementPlan] = []
        for place, (one, adds) in enumerate(zip(measurements, adding, strict=True)):
            with naming(place):
                beside = adds and one.request_key(share) in shown
                found.append(one if not adds or beside else self._planner.payable(one, share))
        return found

    def _answers(self, bought: PricedResult[BatchResult], asked: RequestedBatch) -> list[Answer]:
        """Returns an answer to each question; those that the charge paid for say what it was, and for how many."""
        batch, results = bought.result
        layout, found, cost = batch.layout, [], bought.cost
        paid = [first in layout.paid_places for first in layout.first]
        told = f"One charge paid for {sum(paid)} answers. The cost shown is for all of them."
        for measurement, result, own in zip(batch.measurements, results, paid, strict=True):
            profile = self._replay.profile_for(measurement, batch.considered_terms)
            new = own and cost is not None
            answer = Answer.of(
                result,
                asked.confidence,
                bought.remaining,
                cost=cost if new else None,
                profile=profile,
                schemas=measurement.bounded_schemas(result.facts),
                interval=asked.interval,
                data=self._catalog.versions.describe(measurement.tables(result.facts), replayed=not new),
            )
            found.append(replace(answer, notes=(*answer.notes, told)) if new and sum(paid) > 1 else answer)
        return found


BatchResult = tuple[BatchPlan, list[MeasurementResult]]
"""A batch as it was run, and what each of its questions is answered from."""


@dataclass(frozen=True)
class PaidBatch:
    """Several questions that are asked once, for one charge: see `PaidRelease`.

    How the budget is shared is kept before anything is read, and each release as soon as it is made. A second run
    of the charge takes what is there, and draws the rest only.

    Args:
        batch: the questions, and how they are answered.
        performer: which reads and adds noise.
        replay: which finds what is kept.
    """

    batch: BatchPlan
    performer: ReleaseExecutor
    replay: Replay

    @cached_property
    def request(self) -> ChargeRequest:
        """Returns the one charge of all questions."""
        return self.batch.request

    @property
    def stage(self) -> str:
        """Returns what is planned, in public words."""
        tables = [one.plan.table for one in self.batch.measurements]
        return stage_name(tables, probing=bool(self.batch.missing))

    def find(self) -> BatchResult | None:
        """Returns all results, if all of them are kept, or follow from what is."""
        if self.batch.layout.parts:
            return None
        return self.batch, [
            self._find_stored_result(self.batch, place) for place in range(len(self.batch.measurements))
        ]

    def prepare(self) -> None:
        """Does nothing: each question was priced before."""

    # ------------------------------------------------------------------------------------------------------- measuring

    def execute(self, charge: ChargeRun) -> ReleaseOutcome:
        """Measures the batch as it was first laid out, and returns how it is answered.

        Raises:
            InternalError: if it would cost more than was charged, or was laid out by rules of before.
        """
        batch = self.batch
        text = json.dumps({"batch": batch.layout.fields})
        kept = charge.note(batch.place, text, question=self.request.question)
        layout = BatchLayout.read(json.loads(kept)["batch"])
        if layout.edition < ReleaseFormat.SEARCHED:  # since then rules differ in how intervals are found
            raise InternalError("A batch was planned by rules that are no longer supported.")
        keys = self._measure_batch(replace(batch, layout=layout), charge)
        outcome = json.dumps({"batch": {**layout.fields, "keys": keys}})
        return ReleaseOutcome(event=NOTHING, replay_key=batch.place, payload=outcome)

    def _measure_batch(self, batch: BatchPlan, charge: ChargeRun) -> list[str]:
        """Measures a batch, and returns under which keys its releases are kept."""
        found = {key: self.performer.probe(probe, batch.of_each_probe, charge) for key, probe in batch.missing.items()}
        parts = [
            (batch.measurements[place], self._settle_program(batch, place, found, charge))
            for place in batch.layout.measured
        ]
        parts += [(batch.cube(part), _merged_program(batch, part)) for part in batch.layout.merged]
        keys = [measurement.replay_key(one.program, one.facts) for measurement, one in parts]
        charge.plan({key: one.program.event for key, (_, one) in zip(keys, parts, strict=True)})
        for key, (measurement, one), part in zip(keys, parts, batch.layout.parts, strict=True):
            if charge.find_stored_result(key) is None:
                new = self.performer.release(measurement, one, batch.share_of(part))
                charge.keep(key, new.payload, event=new.event, question=canonical(measurement.plan))
        return keys

    def _settle_program(
        self, batch: BatchPlan, place: int, found: Mapping[str, Fact | None], charge: ChargeRun
    ) -> SettledProgram:
        """Returns the program of a question of a batch, at what was found out."""
        measurement, facts = batch.measurements[place], batch.measurements[place].facts
        for probe in measurement.missing:
            facts = facts.having(probe, found[probe_key(probe)])
        if place in batch.layout.probed:
            return settle_program(measurement, batch.share, facts, charge, probed=True)
        return SettledProgram(program=batch.program(place), terms=batch.share, facts=facts, law=batch.law)

    # --------------------------------------------------------------------------------------------------------- reading

    def read(self, kept: ChargedRelease) -> BatchResult | None:
        """Returns the batch as it was run, and what each question is answered from: the same for every caller."""
        fields = json.loads(kept.payload)["batch"]
        batch = replace(self.batch, layout=BatchLayout.read(fields))
        payloads = {part: kept.beside(key) for part, key in zip(batch.layout.parts, fields["keys"], strict=True)}
        return batch, [self._result(batch, place, payloads) for place in range(len(batch.measurements))]

    def _result(
        self, batch: BatchPlan, place: int, payloads: Mapping[tuple[int, ...], bytes | None]
    ) -> MeasurementResult:
        """Returns the source of an answer: a release of the batch, what follows from some, or what was kept before."""
        first, measurement = batch.layout.first[place], batch.measurements[place]
        for part, payload in payloads.items():
            if part == (first,):
                return self._unpack_release(measurement, payload)
            if first in part:
                cube = batch.cube(part)
                whole = self._unpack_release(cube, payload)
                return _require_result(self.replay.part_of(measurement, cube.plan, whole.released))
        if first not in batch.layout.derived:
            return self._find_stored_result(batch, place)
        single = {part[0]: payload for part, payload in payloads.items() if len(part) == 1}
        sources = [self._unpack_release(batch.measurements[other], payload) for other, payload in single.items()]
        derived = batch.follows(place, [source.released for source in sources])
        if derived is None:
            raise QueryFailed
        facts, private = measurement.facts, self.performer.private
        return MeasurementResult(released=derived, facts=facts, event=derived.event, private=private)

    def _unpack_release(self, measurement: MeasurementPlan, payload: bytes | None) -> MeasurementResult:
        return _require_result(None if payload is None else self.replay.unpack_release(measurement, payload))

    def _find_stored_result(self, batch: BatchPlan, place: int) -> MeasurementResult:
        return _require_result(
            self.replay.find(batch.measurements[place], batch.considered_terms, batch.considered_law)
        )


def _merged_program(batch: BatchPlan, part: Sequence[int]) -> SettledProgram:
    """Returns the program of several questions of a batch that are measured together."""
    program, facts = batch.cube_program(part), batch.cube(part).facts
    return SettledProgram(program=program, terms=batch.share_of(part), facts=facts, law=batch.law)


def _require_result(result: MeasurementResult | None) -> MeasurementResult:
    if result is None:
        raise QueryFailed
    return result


@contextmanager
def naming(place: int) -> Iterator[None]:
    """Makes errors say which question of a batch they are about; places are counted from 1."""
    try:
        yield
    except DiscreetError as error:
        error.args = (f"Question {place + 1}: {error}",)
        raise
