"""One question from its plan to its answer: found, or charged, measured, stored and shown."""

from __future__ import annotations

from fractions import Fraction

from discreet.curator.asking.answer import Answer
from discreet.curator.asking.performer import PaidQuestion, Performer, WantedProfile
from discreet.curator.asking.planner import Planner
from discreet.curator.asking.profiler import Profiler
from discreet.curator.catalog.declarations import Terms
from discreet.curator.measurement_plan import MeasurementPlan
from discreet.curator.paid_release import Bought, release_once
from discreet.curator.replay.replay import Replay
from discreet.curator.replay.stored_releases import MeasurementResult
from discreet.ledger import Book, Caller


class QuestionAsker:
    """Answers one question.

    Args:
        book: where questions are charged, and their releases kept.
        planner: which says how a question is paid for.
        performer: which reads and adds noise.
        replay: which finds what is kept.
        profiler: which buys profiles.
    """

    def __init__(
        self, book: Book, planner: Planner, performer: Performer, replay: Replay, *, profiler: Profiler
    ) -> None:
        self._book, self._planner, self._performer, self._replay = book, planner, performer, replay
        self._profiler = profiler

    def ask(
        self,
        measurement: MeasurementPlan,
        terms: Terms,
        caller: Caller,
        *,
        profile: WantedProfile | None,
        confidence: Fraction,
    ) -> Answer:
        """Returns the answer; see `Curator.ask`. A profile wanted with an answer that is kept is bought alone."""

        def show(bought: Bought[MeasurementResult]) -> Answer:
            if bought.found:
                self._profiler.buy_missing(profile, caller)
            portrait = self._replay.portrait(measurement, terms)
            return Answer.of(bought.result, confidence, bought.remaining, cost=bought.cost, profile=portrait)

        paid = PaidQuestion(
            measurement=measurement,
            terms=terms,
            profile=profile,
            payable=lambda: self._planner.payable(measurement, terms),
            performer=self._performer,
            replay=self._replay,
        )
        return release_once(self._book, paid, caller, show)
