"""Between a question and its charge: its program at any budget, what was released before, and the budget itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Literal

import numpy as np

from discreet import check
from discreet.curator.asking.found import facts_of, law_of, was_bought_for
from discreet.curator.asking.performer import Told
from discreet.curator.catalog.catalog import Holdings
from discreet.curator.catalog.terms import terms
from discreet.curator.measurement_plan import Prepared, limits_probes, unbounded
from discreet.curator.replay.stored_releases import Asked, is_former, replay_key, serves, unpack
from discreet.engines.base import Engine
from discreet.errors import InternalError, InvalidParameter, UnsupportedQuery
from discreet.ledger import Book
from discreet.measurement.aggregates import aggregation
from discreet.measurement.probes.probes import NOTHING, BoundsProbe, Fact, Facts, Probe
from discreet.measurement.program.error_targets import COUNTED, Fewest, Target, check_plain, means, solve
from discreet.measurement.program.execution import Released
from discreet.measurement.program.other_group import with_other
from discreet.measurement.program.program import Program
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import source_of
from discreet.plan.model.nodes import Aggregate, Question, Value
from discreet.plan.model.schema import Limits
from discreet.privacy import Loss

CHOOSE = "choose"
"""As limits: they are found out privately."""

LimitsWish = Limits | Literal["choose"] | None
"""Limits of a question: its own, those that are found out, or the table's."""

_ANY = Asked(Fraction(1), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a question may cost, as it was asked: an epsilon, or an error with a cap."""

    epsilon: check.Number | None
    delta: check.Number | None
    within: check.Number | None
    max_epsilon: check.Number | None
    confidence: Fraction


class Preparing(Holdings):
    """Chooses programs and budgets from declarations and the book alone; nothing here reads data or spends."""

    def __init__(self, book: Book, engine: Engine) -> None:
        super().__init__(book, engine)
        self._releaser = Releaser(source_of(None))
        self._salt: str | None = None  # of watched curators, which must keep the same rows
        self._remembered: dict[str, Fact] = {}

    def _prepare(
        self, question: str | Question, limits: LimitsWish, *, salt: str | None = None, other: Value = None
    ) -> Prepared:
        """A question with everything its program is chosen from: declarations, and what was found out before."""
        if limits is not None and limits != CHOOSE:
            check.instance(Limits, limits=limits)
        plan, schema = self._plan(question)
        if other is not None:
            plan = with_other(plan, schema, other)
        if plan.bands is not None and limits == CHOOSE:
            raise UnsupportedQuery(
                "How many bands a person is in is not known before the edges of the bands are.",
                "Write the edges, such as HISTOGRAM(x, 0, 25, 50), or name limits.",
            )
        self._check_accounts(plan)
        salt = self._salt if salt is None else salt
        secret = self._book.account(self._accounts[schema.name]).salt.hex() if salt is None else salt
        schemas = self._known
        bounds = [BoundsProbe(schemas, table, column, secret) for table, column in unbounded(plan, schemas)]
        others = limits_probes(plan, schema, schemas, secret) if limits == CHOOSE else []
        probes: tuple[Probe, ...] = (*bounds, *others)
        return Prepared(
            plan=plan,
            table=schema.name,
            schemas=schemas,
            limits=limits if isinstance(limits, Limits) else None,
            salt=secret,
            probes=probes,
            facts=self._recalled(probes),
        )

    def _check_accounts(self, plan: Question) -> None:
        """Questions that are released together are charged once.

        Raises:
            UnsupportedQuery: if they are about the people of different accounts.
        """
        if len({self._accounts[one.table] for one in (plan, *plan.beside)}) > 1:
            raise UnsupportedQuery(
                "The questions inside this one are about the people of different accounts.",
                "Ask them one by one.",
            )

    def _recalled(self, probes: Sequence[Probe]) -> Facts:
        """What earlier questions found out about this version of the data: always by the first that found anything."""
        facts = NOTHING
        for probe in probes:
            place = replay_key(probe.program(Fraction(1)), probe.tables)
            if place not in self._remembered:
                self._remembered.update((place, found) for found in islice(self._told(place, probe), 1))
            if place in self._remembered:
                facts = facts.having(probe, self._remembered[place])
        return facts

    def _told(self, place: str, probe: Probe) -> Iterator[Fact]:
        for stored in self._book.stored(place):
            released = unpack(
                stored.payload, lambda epsilon, _: probe.program(epsilon), private=self._releaser.bits.private
            )
            found = None if released is None else probe.found(released)
            if found is not None:
                yield found

    def _asked(self, prepared: Prepared, wish: Wish, budget: Loss) -> Asked:
        """The epsilon and delta of a question: as it names them, or solved from the error it names.

        Raises:
            InvalidParameter: if neither or both are named, or the error needs more than the cap.
            UnsupportedQuery: if the error is not known beforehand.
        """
        if wish.within is None:
            if wish.max_epsilon is not None:
                hint = "It caps what within= may cost; pass epsilon= alone, or within= and max_epsilon=."
                raise InvalidParameter("max_epsilon", wish.max_epsilon, "to accompany within", hint)
            return terms(wish.epsilon, wish.delta, budget)
        if wish.epsilon is not None:
            hint = "Name what it may cost, or how near it must be, not both."
            raise InvalidParameter("within", wish.within, "without an epsilon", hint)
        target = Target.of(wish.within, wish.confidence, wish.max_epsilon)
        delta = terms(target.max_epsilon, wish.delta, budget).delta
        return Asked(self._solved(prepared, target, delta), delta)

    def _solved(self, prepared: Prepared, target: Target, delta: Fraction) -> Fraction:
        check_plain(prepared.plan)
        if prepared.missing:
            raise UnsupportedQuery(
                f"The error is not known before something else is: {prepared.missing[0].subject}.",
                "Ask once with an epsilon: it is then chosen privately and remembered; or declare it.",
            )
        rebuild = prepared.rebuild(prepared.facts)
        program = rebuild(target.max_epsilon, delta)
        refused: InvalidParameter | None = None
        for fewest in self._fewest(prepared, program, (1 - target.confidence) * COUNTED):
            try:
                return solve(lambda epsilon: rebuild(epsilon, delta), target, fewest)
            except InvalidParameter as error:
                refused = error
        if refused is not None:
            raise refused
        raise UnsupportedQuery(
            "The error of a mean depends on how many values each group has, and no released count tells of any.",
            "Release a COUNT first: ask the same question with COUNT(x) in place of AVG(x), precisely enough that its "
            "interval lies above zero.",
        )

    def _fewest(self, prepared: Prepared, program: Program, outside: Fraction) -> Iterator[Fewest]:
        """How many values each mean has at least, by what was released: the oldest release first, for it stays first.

        A budget that is solved again, for the same idempotency key, is then solved alike.
        """
        needed = means(program)
        kinds = {aggregate.name: aggregate for aggregate in program.question.aggregates}
        for registered in (aggregation(kinds[name].kind) for name in needed):
            if not registered.targetable:
                raise UnsupportedQuery(*registered.no_target)
        if needed and program.selection is not None:
            raise UnsupportedQuery(
                "The error of a mean depends on how many values each group has, and the groups are private.",
                "Declare the keys with keys=..., or ask with an epsilon.",
            )
        found = {name: self._counted(prepared, kinds[name], outside) for name in needed}
        for place in range(min((len(each) for each in found.values()), default=1)):
            counts = {name: each[place] for name, each in found.items()}
            if all(count > 0 for count in counts.values()):
                yield counts

    def _counted(self, prepared: Prepared, mean: Aggregate, outside: Fraction) -> list[int]:
        """The lower ends of released counts of a mean's values in the smallest group, oldest first."""
        x = mean.argument
        count, rows = Aggregate(name="#n", kind="count_values", argument=x), Aggregate(name="#r", kind="count")
        alone = replace(prepared.plan, outputs=(), having=None, order=(), limit=None)
        asked = [alone.aggregates, (count,), (count, rows), (mean,), (mean, rows), (mean, count), (mean, count, rows)]
        found: dict[int, int] = {}
        for aggregates in asked:
            other = prepared.about(replace(alone, aggregates=aggregates))
            program = other.program(_ANY, other.facts)
            for stored in self._book.stored(other.place(program, other.facts)):
                told = self._unpacked(other, stored.payload)
                if told is not None:
                    found[stored.sequence] = _least(told.released, x, outside)
        return [found[sequence] for sequence in sorted(found)]

    def _stored(self, prepared: Prepared, asked: Asked) -> Told | None:
        """A stored release of the same data that is as good as the one asked for, or was paid with as much."""
        facts = prepared.facts
        for probe in prepared.missing:  # where nothing was found, a fixed range was taken
            facts = facts.having(probe, None)
        try:
            program = prepared.program(asked, facts)
        except UnsupportedQuery:
            if prepared.missing:
                return None
            raise
        for stored in reversed(self._book.stored(prepared.place(program, facts))):
            told = self._unpacked(prepared, stored.payload)
            if told is None:
                continue
            wanted = prepared.program(asked, facts, former=True) if told.former else program
            if serves(told.released, wanted) or was_bought_for(stored.payload, asked):
                return told
        return None

    def _unpacked(self, prepared: Prepared, payload: bytes) -> Told | None:
        """A stored release, by the facts that are written beside it."""
        fields = json.loads(payload)
        facts = facts_of(fields)
        former = is_former(fields)
        rebuild = prepared.rebuild(facts, law_of(fields), former=former)
        released = unpack(payload, rebuild, private=self._releaser.bits.private)
        if released is None:
            return None
        return Told(released=released, facts=facts, event=released.program.event, former=former)


def _least(released: Released, argument: object, outside: Fraction) -> int:
    """A number of values that every group has, but for this probability each."""
    program = released.program
    (linear, *_) = (
        program.estimators[aggregate.name].values
        for aggregate in program.question.aggregates
        if aggregate.argument == argument and aggregate.kind in ("mean", "count_values")
    )
    if linear is None:
        raise InternalError("A mean or a count does not tell the number of its values.")
    reach = program.noise.reach(linear, 2 * outside)  # one of the two sides
    numerators, denominator = linear.values(np.asarray(released.noisy))
    return min(int((Fraction(n, denominator) - reach).__floor__()) for n in numerators)
