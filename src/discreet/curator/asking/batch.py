"""Several questions asked as one: one plan, one charge, one outcome, and an answer to each.

What happens to a batch on its way is what happens to a question: its charge is durable before anything is read; each
release is kept under its own replay key, so that whoever asks one of the questions later pays nothing; a batch that was
stopped goes on under its idempotency key, and what it has released before is not drawn again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet import check
from discreet.curator.asking.answer import Answer
from discreet.curator.asking.batch_plan import BatchLayout, BatchPlan
from discreet.curator.asking.performer import Performer, charged
from discreet.curator.asking.planner import Planner, RequestedLimits
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.catalog.declarations import Terms
from discreet.curator.measurement_plan import MeasurementPlan
from discreet.curator.replay.replay import Replay
from discreet.curator.replay.stored_releases import MeasurementResult
from discreet.errors import DiscreetError, InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.ledger import Book, Receipt, Remaining
from discreet.plan.model.nodes import Question
from discreet.privacy import Loss

MOST = 1000  # questions of one batch


@dataclass(frozen=True, slots=True)
class RequestedBatch:
    """A batch as it was asked: the questions, what they may cost together, who pays, and how the answers are told.

    Args:
        questions: texts or plans.
        epsilon: what all answers may cost together.
        delta: their chance of more.
        limits: of each question.
        confidence: of each interval.
    """

    questions: Sequence[str | Question]
    epsilon: check.Number
    delta: check.Number | None
    limits: RequestedLimits
    confidence: Fraction


class BatchAsker:
    """Answers several questions for one charge.

    Args:
        catalog: the tables.
        book: where batches are charged, and their releases kept.
        replay: which finds what is kept.
        planner: which chooses measurements.
        performer: which reads and adds noise.
    """

    def __init__(self, catalog: Catalog, book: Book, replay: Replay, planner: Planner, performer: Performer) -> None:
        self._catalog, self._book, self._replay = catalog, book, replay
        self._planner, self._performer = planner, performer

    def ask(self, asked: RequestedBatch, *, analyst: str, key: str | None, project: str) -> list[Answer]:
        """Returns an answer to each question, in order; see `Curator.ask_many`."""
        measurements = self._measurements(asked)
        account = self._book.admit(measurements[0].account, analyst, project)
        terms = Terms.of(asked.epsilon, asked.delta, account.budget)
        share = Terms(terms.epsilon / len(measurements), terms.delta / len(measurements))
        for place, one in enumerate(measurements):
            with naming(place):
                one.price(share)
        if not self._book.is_charged(analyst, key):
            measurements = self._payable(measurements, share)
        batch = BatchPlan.of(measurements, terms, self._replay.find)
        if not batch.layout.parts and not self._book.is_charged(analyst, key):
            results = [self._kept(batch, place) for place in range(len(measurements))]
            return self._answers(batch, results, asked.confidence, Remaining.of(account.spent, account.budget))
        with charged(self._book, batch.request, analyst=analyst, key=key, project=project) as receipt:
            if not receipt.repeated:
                self._performer.read_all_and_add_noise(batch, receipt)
            batch, results = self._of_charge(batch, receipt)
            cost = None if receipt.repeated else receipt.cost
            return self._answers(batch, results, asked.confidence, receipt.left, cost)

    def _measurements(self, asked: RequestedBatch) -> list[MeasurementPlan]:
        """The measurement of each question.

        Raises:
            InvalidParameter: if there are no questions, or too many.
            UnsupportedQuery: if they are about the people of several accounts, each of which would have its own charge.
        """
        questions = asked.questions
        if isinstance(questions, str | Question) or not 1 <= len(questions) <= MOST:
            found = "one question" if isinstance(questions, str | Question) else f"{len(questions)} questions"
            hint = f"Pass a list of 1 to {MOST} questions; ask answers one."
            raise InvalidParameter("questions", found, "to be a list of questions", hint)
        found_plans: list[MeasurementPlan] = []
        for place, question in enumerate(questions):
            with naming(place):
                found_plans.append(self._planner.plan(self._catalog.read(question), limits=asked.limits))
                if found_plans[-1].account != found_plans[0].account:
                    reason = "It is about the people of another account than the questions before it."
                    raise UnsupportedQuery(reason, "Ask a batch of its own for each account: each is charged once.")
        return found_plans

    def _payable(self, measurements: Sequence[MeasurementPlan], share: Terms) -> list[MeasurementPlan]:
        """The measurements; what adds up private groups stays if they are stored, or asked for in the same batch."""
        adding = [self._planner.is_of_shown_groups(one, share) for one in measurements]
        shown = {one.request_key(share) for one, adds in zip(measurements, adding, strict=True) if not adds}
        found: list[MeasurementPlan] = []
        for place, (one, adds) in enumerate(zip(measurements, adding, strict=True)):
            with naming(place):
                beside = adds and one.request_key(share) in shown
                found.append(one if not adds or beside else self._planner.payable(one, share))
        return found

    def _of_charge(self, batch: BatchPlan, receipt: Receipt) -> tuple[BatchPlan, list[MeasurementResult]]:
        """The batch as it was run, and what each question is answered from: the same, whoever asks for it.

        Raises:
            QueryFailed: if the charge ended without an outcome.
        """
        payload = self._book.answer(receipt)
        if payload is None:
            raise QueryFailed
        fields = json.loads(payload)["batch"]
        run = replace(batch, layout=BatchLayout.read(fields))
        payloads = {
            part: self._book.beside(receipt, key) for part, key in zip(run.layout.parts, fields["keys"], strict=True)
        }
        return run, [self._result(run, place, payloads) for place in range(len(run.measurements))]

    def _result(
        self, batch: BatchPlan, place: int, payloads: Mapping[tuple[int, ...], bytes | None]
    ) -> MeasurementResult:
        """What a question is answered from: a release of the batch, what follows from some, or what was kept before."""
        first, measurement = batch.layout.first[place], batch.measurements[place]
        for part, payload in payloads.items():
            if part == (first,):
                return self._released(measurement, payload)
            if first in part:
                cube = batch.cube(part)
                whole = self._released(cube, payload)
                return _found(self._replay.part_of(measurement, cube.plan, whole.released))
        if first not in batch.layout.derived:
            return self._kept(batch, place)
        single = {part[0]: payload for part, payload in payloads.items() if len(part) == 1}
        sources = [self._released(batch.measurements[other], payload) for other, payload in single.items()]
        derived = batch.follows(place, [source.released for source in sources])
        if derived is None:
            raise QueryFailed
        facts, private = measurement.facts, self._performer.private
        return MeasurementResult(released=derived, facts=facts, event=derived.event, private=private)

    def _released(self, measurement: MeasurementPlan, payload: bytes | None) -> MeasurementResult:
        return _found(None if payload is None else self._replay.unpacked(measurement, payload))

    def _kept(self, batch: BatchPlan, place: int) -> MeasurementResult:
        return _found(self._replay.find(batch.measurements[place], batch.considered, batch.considered_law))

    def _answers(
        self,
        batch: BatchPlan,
        results: Sequence[MeasurementResult],
        confidence: Fraction,
        remaining: Remaining,
        cost: Loss | None = None,
    ) -> list[Answer]:
        """An answer to each question; those that the charge paid for say what it was, and for how many."""
        layout, found = batch.layout, []
        paid = [first in layout.paid for first in layout.first]
        told = f"One charge paid for {sum(paid)} answers; the cost is that of all."
        for measurement, result, own in zip(batch.measurements, results, paid, strict=True):
            portrait = self._replay.portrait(measurement, batch.considered)
            new = own and cost is not None
            answer = Answer.of(result, confidence, remaining, cost=cost if new else None, profile=portrait)
            found.append(replace(answer, notes=(*answer.notes, told)) if new and sum(paid) > 1 else answer)
        return found


def _found(result: MeasurementResult | None) -> MeasurementResult:
    if result is None:
        raise QueryFailed
    return result


@contextmanager
def naming(place: int) -> Iterator[None]:
    """Has errors say which question of a batch they are about; places are counted from 1."""
    try:
        yield
    except DiscreetError as error:
        error.args = (f"Question {place + 1}: {error}",)
        raise
