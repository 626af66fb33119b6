"""Between a question and its charge: its program at any budget, what was released before, and the budget itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet import check
from discreet.curator.gate import answerable, exact_numbers
from discreet.curator.holdings import Holdings
from discreet.curator.program import Program, choose
from discreet.curator.run import Released
from discreet.curator.stored import Asked, Rebuild, replay_key, serves, unpack
from discreet.curator.targets import COUNTED, Fewest, Target, check_plain, means, solve
from discreet.curator.terms import terms
from discreet.engines.base import Engine
from discreet.errors import InternalError, InvalidParameter, UnsupportedQuery
from discreet.ledger import Book
from discreet.noise import source_of
from discreet.plan.aggregates import Linear, Ratio, Total
from discreet.plan.canonical import replay_order
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.schema import Limits, TableSchema
from discreet.privacy import Loss


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
        self._bits = source_of(None)

    def _rebuild(self, plan: Question, schema: TableSchema, limits: Limits | None, salt: str | None = None) -> Rebuild:
        """The program of a question at any budget, its aggregates in the order in which releases are stored."""
        if limits is not None:
            check.instance(Limits, limits=limits)
        ordered = replace(plan, aggregates=tuple(replay_order(plan)))
        secret = self._book.account(self._accounts[schema.name]).salt.hex() if salt is None else salt

        def rebuild(epsilon: Fraction, delta: Fraction) -> Program:
            with exact_numbers():
                program = choose(ordered, schema, epsilon=epsilon, delta=delta, limits=limits, salt=secret)
                return answerable(program, self._known)

        return rebuild

    def _asked(self, plan: Question, schema: TableSchema, limits: Limits | None, wish: Wish, budget: Loss) -> Asked:
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
        return Asked(self._solved(plan, schema, limits, target, delta), delta)

    def _solved(
        self, plan: Question, schema: TableSchema, limits: Limits | None, target: Target, delta: Fraction
    ) -> Fraction:
        check_plain(plan)
        rebuild = self._rebuild(plan, schema, limits)
        program = rebuild(target.max_epsilon, delta)
        refused: InvalidParameter | None = None
        for fewest in self._fewest(plan, schema, limits, program, (1 - target.confidence) * COUNTED):
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

    def _fewest(
        self, plan: Question, schema: TableSchema, limits: Limits | None, program: Program, outside: Fraction
    ) -> Iterator[Fewest]:
        """How many values each mean has at least, by what was released: the oldest release first, for it stays first.

        A budget that is solved again, for the same idempotency key, is then solved alike.
        """
        needed = means(program)
        kinds = {aggregate.name: aggregate for aggregate in program.question.aggregates}
        unknown = [name for name in needed if kinds[name].kind != "mean"]
        if unknown:
            raise UnsupportedQuery("within= knows COUNT, SUM and AVG.", "Ask with an epsilon instead.")
        if needed and program.selection is not None:
            raise UnsupportedQuery(
                "The error of a mean depends on how many values each group has, and the groups are private.",
                "Declare the keys with keys=..., or ask with an epsilon.",
            )
        found = {name: self._counted(plan, schema, limits, kinds[name], outside) for name in needed}
        for place in range(min((len(each) for each in found.values()), default=1)):
            counts = {name: each[place] for name, each in found.items()}
            if all(count > 0 for count in counts.values()):
                yield counts

    def _counted(
        self, plan: Question, schema: TableSchema, limits: Limits | None, mean: Aggregate, outside: Fraction
    ) -> list[int]:
        """The lower ends of released counts of a mean's values in the smallest group, oldest first."""
        x = mean.argument
        count, rows = Aggregate(name="#n", kind="count_values", argument=x), Aggregate(name="#r", kind="count")
        alone = replace(plan, outputs=(), having=None, order=(), limit=None)
        asked = [alone.aggregates, (count,), (count, rows), (mean,), (mean, rows), (mean, count), (mean, count, rows)]
        found: dict[int, int] = {}
        for aggregates in asked:
            other = replace(alone, aggregates=aggregates)
            rebuild = self._rebuild(other, schema, limits)
            place = replay_key(rebuild(Fraction(1), Fraction(0)), self._read_by(other))
            for stored in self._book.stored(place):
                released = unpack(stored.payload, rebuild, private=self._bits.private)
                if released is not None:
                    found[stored.sequence] = _least(released, x, outside)
        return [found[sequence] for sequence in sorted(found)]

    def _stored(self, place: str, program: Program, rebuild: Rebuild) -> Released | None:
        """A stored release of the same data that is as good as the one asked for."""
        for stored in reversed(self._book.stored(place)):
            released = unpack(stored.payload, rebuild, private=self._bits.private)
            if released is not None and serves(released, program):
                return released
        return None


def _least(released: Released, argument: object, outside: Fraction) -> int:
    """A number of values that every group has, but for this probability each."""
    program = released.program
    (linear, *_) = (
        _values(program, aggregate)
        for aggregate in program.question.aggregates
        if aggregate.argument == argument and aggregate.kind in ("mean", "count_values")
    )
    reach = program.noise.reach(linear, 2 * outside)  # one of the two sides
    numerators, denominator = linear.values(np.asarray(released.noisy))
    return min(int((Fraction(n, denominator) - reach).__floor__()) for n in numerators)


def _values(program: Program, aggregate: Aggregate) -> Linear:
    recipe = program.recipes[aggregate.name]
    if isinstance(recipe, Total):
        return recipe.linear
    if not isinstance(recipe, Ratio):
        raise InternalError("A mean is no ratio.")
    return recipe.bottom
