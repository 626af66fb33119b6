"""Between a question and its charge: which measurement it is, and on which terms. Nothing is read, nothing is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Literal, Protocol

import numpy as np

from discreet import check
from discreet.curator.catalog.catalog import BoundQuestion
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget, add_bounds, unbounded_aggregates
from discreet.curator.replay.replay import Replay
from discreet.errors import DiscreetError, InternalError, InvalidParameter, UnknownTable, UnsupportedQuery
from discreet.hint_text import Hint
from discreet.measurement.aggregates import aggregation
from discreet.measurement.population.population_statistics import check_population
from discreet.measurement.probes.magnitudes import choosable
from discreet.measurement.probes.probes import (
    BoundsProbe,
    Counted,
    LimitsProbe,
    Probe,
    Schemas,
    Spot,
    describe_counted_rows,
    read_by,
)
from discreet.measurement.program.error_targets import COUNTED, ErrorTarget, Fewest, check_plain, means, solve
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.measurement.program.group_steps import is_of_shown_groups
from discreet.measurement.program.other_group import with_other
from discreet.measurement.program.program import Program
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.model.nodes import Aggregate, Question, Value
from discreet.plan.model.sample import POPULATION
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.post.steps import adds_up_groups
from discreet.privacy import Loss
from discreet.progress import stage
from discreet.sql.examples import different
from discreet.sql.rewrites import Rewrites, rewrites

CHOOSE = "choose"
"""As limits: they are found out privately."""

RequestedLimits = Limits | Literal["choose"] | None
"""Limits of a question: its own, those that are found out, or the table's."""

_ANY = QueryBudget(Fraction(1), Fraction(0))


class RequestedBudget(Protocol):
    """The cost that a question may have, as it was asked: an epsilon, or an error with a cap."""

    @property
    def epsilon(self) -> Fraction | None:
        """Returns what it may cost."""

    @property
    def delta(self) -> Fraction | None:
        """Returns its chance of more."""

    @property
    def within(self) -> Fraction | None:
        """Returns how far each number may be from the truth, instead of an epsilon."""

    @property
    def max_epsilon(self) -> Fraction | None:
        """Returns what that may cost at most."""

    @property
    def confidence(self) -> Fraction:
        """Returns the confidence of each interval."""

    @property
    def interval(self) -> str:
        """Returns what intervals cover."""


def refuse_profile(periods: tuple[str, ...]) -> None:
    """Refuses a profile, which looks at all rows, of a table whose rows have budgets by period.

    Raises:
        UnsupportedQuery: if they do.
    """
    if periods:
        reason = "A profile is about all rows, and here the rows of each period have a budget."
        raise UnsupportedQuery(reason, "Ask without a profile.")


class Planner:
    """Chooses measurements and their terms, from declarations and from what was released before.

    Args:
        replay: what was released before.
        read: reads the text of a question.
        salt: returns the secret by which rows of the people of an account are kept.
    """

    def __init__(self, replay: Replay, *, read: Callable[[str], BoundQuestion], salt: Callable[[str], str]) -> None:
        self._replay, self._read, self._salt = replay, read, salt

    def plan(
        self, bound: BoundQuestion, *, limits: RequestedLimits = None, other: Value = None, salt: str | None = None
    ) -> MeasurementPlan:
        """Returns the measurement of a question: what must be found out for it, and what is known already.

        Args:
            bound: the question, with what is declared about its tables.
            limits: how much one unit may count.
            other: the label of one more group, of all that is not shown.
            salt: by which rows are kept, for measurements that are only rehearsed.

        Raises:
            UnsupportedQuery: if limits cannot be found out for it.
            InvalidParameter: if the limits or the label do not fit.
        """
        stage("Planning")
        if limits is not None and limits != CHOOSE:
            check.instance(Limits, limits=limits)
        plan, schemas = bound.plan, bound.schemas
        if other is not None:
            plan = with_other(plan, bound.rows, other)
        if plan.bands is not None and limits == CHOOSE:
            raise UnsupportedQuery(
                "Limits cannot be chosen before the edges of the bands are known.",
                "Write the edges, such as HISTOGRAM(x, 0, 25, 50), or pass limits.",
            )
        secret = self._salt(bound.account) if salt is None else salt
        probes: list[Probe] = [BoundsProbe(schemas, *spot, secret) for spot in unbounded_columns(plan, schemas)]
        if probes and bound.periods:
            reason = f"{probes[0].subject} would be chosen by all rows, and here the rows of each period have a budget."
            raise UnsupportedQuery(reason, "Ask a steward to declare bounds for the column.")
        if limits == CHOOSE:
            probes += limits_probes(plan, bound.rows, schemas, secret)
        return MeasurementPlan(
            plan=plan,
            account=bound.account,
            schemas=schemas,
            limits=limits if isinstance(limits, Limits) else None,
            salt=secret,
            probes=tuple(probes),
            facts=self._replay.facts(probes),
            sql=bound.sql,
            periods=bound.periods,
        )

    def payable(self, measurement: MeasurementPlan, terms: QueryBudget) -> MeasurementPlan:
        """Returns what is to be found or charged for: the question itself, or one of the same groups that is stored.

        Raises:
            UnsupportedQuery: if it adds up groups, only some are shown, and these are not stored.
        """
        if not self.is_of_shown_groups(measurement, terms) or self._replay.find(measurement, terms) is not None:
            return measurement
        for plan in self._replay.same_groups(measurement, terms):
            rows, schemas = describe_counted_rows(plan, measurement.schemas), measurement.schemas
            account, periods = measurement.account, measurement.periods
            bound = BoundQuestion(plan=plan, rows=rows, schemas=schemas, account=account, periods=periods)
            stored = replace(self.plan(bound, limits=measurement.limits), sql=measurement.sql)
            if self._replay.find(stored, terms) is not None:
                return stored
        accepts = partial(self._is_payable, limits=measurement.limits, terms=terms)
        raise refusal_of_shown_groups(measurement, accepts)

    def is_of_shown_groups(self, measurement: MeasurementPlan, terms: QueryBudget) -> bool:
        """Returns whether a question adds up groups although only those large enough are shown."""
        several = any(adds_up_groups(one) for one in (measurement.plan, *measurement.plan.beside))
        return several and is_of_shown_groups(measurement.planned_program(terms))

    def _is_payable(self, sql: str, *, limits: Limits | None, terms: QueryBudget) -> bool:
        """Returns whether a text could be asked at these terms."""
        try:
            other = self.plan(self._read(sql), limits=limits)
            other.price(terms)
            return not self.is_of_shown_groups(other, terms)
        except (UnsupportedQuery, UnknownTable, InvalidParameter):
            return False

    def terms(self, measurement: MeasurementPlan, requested: RequestedBudget, budget: Loss) -> QueryBudget:
        """Returns the epsilon and delta of a question: as it names them, or solved from the error it names.

        Raises:
            InvalidParameter: if neither or both are named, or the error needs more than the cap.
            UnsupportedQuery: if the error is not known beforehand.
        """
        if requested.within is None:
            if requested.max_epsilon is not None:
                hint = "It caps what {within} may cost. Pass {epsilon} alone, or {within} and {max_epsilon}."
                raise InvalidParameter("max_epsilon", requested.max_epsilon, Hint("to come with {within}"), Hint(hint))
            if requested.epsilon is None:
                hint = "Pass the cost, e.g. {epsilon:0.1}, or the largest error and cost: {within:20} {max_epsilon:1}."
                raise InvalidParameter("epsilon", None, "to be given", Hint(hint))
            return QueryBudget.of(requested.epsilon, requested.delta, budget)
        if requested.epsilon is not None:
            either = Hint("Pass {epsilon} for the cost or {within} for the largest error, not both.")
            raise InvalidParameter("within", requested.within, "without an epsilon", either)
        if requested.interval == POPULATION:
            either = Hint("{within} is the error of noise alone. Pass {epsilon}, or leave {interval} out.")
            raise InvalidParameter("within", requested.within, "without an interval for the population", either)
        target = ErrorTarget.of(requested.within, requested.confidence, requested.max_epsilon)
        delta = QueryBudget.of(target.max_epsilon, requested.delta, budget).delta
        return QueryBudget(self._solve_epsilon(measurement, target, delta), delta)

    def check_interval(self, measurement: MeasurementPlan, terms: QueryBudget, interval: str) -> None:
        """Refuses an interval for the population where the question has none, before anything is charged.

        Raises:
            InvalidParameter: if a table is not declared a sample.
            UnsupportedQuery: if the question has numbers that a sample does not bound.
        """
        if interval == POPULATION:
            schemas = measurement.bounded_schemas(measurement.facts)
            check_population(measurement.planned_program(terms), schemas)

    def _solve_epsilon(self, measurement: MeasurementPlan, target: ErrorTarget, delta: Fraction) -> Fraction:
        check_plain(measurement.plan)
        held = describe_counted_rows(measurement.plan, measurement.schemas).private_limits
        if held is not None and not held.found and measurement.limits is None:
            raise UnsupportedQuery(
                "The error depends on something that is not known yet: how many rows of one person count.",
                Hint("Ask once with an epsilon, so that it is chosen privately and remembered. Or pass {limits}."),
            )
        if measurement.missing:
            raise UnsupportedQuery(
                f"The error depends on something that is not known yet: {measurement.missing[0].subject}.",
                "Ask once with an epsilon, so that it is chosen privately and remembered. Or declare it.",
            )
        rebuild = measurement.rebuild(measurement.facts)
        program = rebuild(target.max_epsilon, delta)
        refused: InvalidParameter | None = None
        for fewest in self._fewest(measurement, program, (1 - target.confidence) * COUNTED):
            try:
                return solve(lambda epsilon: rebuild(epsilon, delta), target, fewest)
            except InvalidParameter as error:
                refused = error
        if refused is not None:
            raise refused
        raise UnsupportedQuery(
            "The error of a mean depends on how many values each group has, and no released count shows it yet.",
            "Release a COUNT first: ask the same question with COUNT(x) in place of AVG(x), precisely enough that its "
            "interval lies above zero.",
        )

    def _fewest(self, measurement: MeasurementPlan, program: Program, outside: Fraction) -> Iterator[Fewest]:
        """Yields how many values each mean has at least, by released counts: the oldest first, since it stays first.

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
                "Declare the keys, or ask with an epsilon.",
            )
        found = {name: self._collect_counts(measurement, kinds[name], outside) for name in needed}
        for place in range(min((len(each) for each in found.values()), default=1)):
            counts = {name: each[place] for name, each in found.items()}
            if all(count > 0 for count in counts.values()):
                yield counts

    def _collect_counts(self, measurement: MeasurementPlan, mean: Aggregate, outside: Fraction) -> list[int]:
        """Returns the lower ends of released counts of a mean's values in the smallest group, oldest first."""
        x = mean.argument
        count, rows = Aggregate(name="#n", kind="count_values", argument=x), Aggregate(name="#r", kind="count")
        alone = replace(measurement.plan, outputs=(), having=None, order=(), limit=None, offset=0)
        asked = [alone.aggregates, (count,), (count, rows), (mean,), (mean, rows), (mean, count), (mean, count, rows)]
        found: dict[int, int] = {}
        for aggregates in asked:
            other = measurement.about(replace(alone, aggregates=aggregates))
            for sequence, released in self._replay.releases(other, other.program(_ANY, other.facts)):
                found[sequence] = _least(released, x, outside)
        return [found[sequence] for sequence in sorted(found)]


def unbounded_columns(plan: Question, schemas: Schemas) -> tuple[Spot, ...]:
    """Returns the columns of protected tables without which an argument has no bounds, and with which all have some.

    None if all arguments have bounds as they are, or would lack them even then.
    """
    if not _lacking(plan, schemas):
        return ()
    candidates = {
        (table.name, column): limits for table in read_by(plan, schemas) for column, limits in choosable(table).items()
    }
    if _lacking(plan, add_bounds(schemas, candidates)):
        return ()
    for spot in list(candidates):
        fewer = {other: limits for other, limits in candidates.items() if other != spot}
        if not _lacking(plan, add_bounds(schemas, fewer)):
            candidates = fewer
    return tuple(candidates)


def _lacking(plan: Question, schemas: Schemas) -> bool:
    bands = plan.bands is not None and bounds(plan.bands.argument, describe_counted_rows(plan, schemas)) is None
    return bands or bool(unbounded_aggregates(plan, schemas)) or any(_lacking(one, schemas) for one in plan.beside)


def limits_probes(plan: Question, schema: TableSchema, schemas: Schemas, salt: str) -> list[Probe]:
    """Returns the probes for how much one person may count: none where each row is a unit, no groups without keys.

    Args:
        plan: the question.
        schema: what is public about its rows.
        schemas: the declared tables by name.
        salt: of the rule by which rows are kept.
    """
    if schema.unit is None:
        return []
    usual = {"#rows": schema.limits.rows, "#groups": schema.limits.groups}
    counted: tuple[Counted, ...] = ("#rows", "#groups") if plan.keys else ("#rows",)
    return [LimitsProbe(counted=each, plan=plan, schemas=schemas, fallback=usual[each], salt=salt) for each in counted]


def _least(released: ReleasedStatistics, argument: object, outside: Fraction) -> int:
    """Returns a number of values that every group has, but for this probability each."""
    program = released.program
    (linear, *_) = (
        program.estimators[aggregate.name].values
        for aggregate in program.question.aggregates
        if aggregate.argument == argument and aggregate.kind in ("mean", "count_values")
    )
    if linear is None:
        raise InternalError("A mean or a count does not determine the number of its values.")
    reach = program.noise.reach(linear, 2 * outside)  # one of the two sides
    numerators, denominator = linear.values(np.asarray(released.noisy))
    return min(int((Fraction(n, denominator) - reach).__floor__()) for n in numerators)


# ------------------------------------------------------------------------------------------------ groups that are shown

_SHOWN_ALONE = (
    "The inner groups are private and only those that are large enough are shown, so this would leave groups out "
    "without saying how many."
)

Accepts = Callable[[str], bool]
"""Returns whether a text could be asked in the place of a question."""


def refusal_of_shown_groups(measurement: MeasurementPlan, accepts: Accepts) -> UnsupportedQuery:
    """Returns the refusal; everything that it proposes was read and planned at the terms of the question.

    Args:
        measurement: the question.
        accepts: whether a text could be asked in its place.
    """
    found, several = _rewrites(measurement), bool(measurement.plan.beside)
    distinct, by_person = _first(found.distinct, accepts), _first(found.by_person, accepts)
    groups = None if several else _first(found.groups, accepts)  # one stored release does not serve several
    ways = [
        f"count different values, without NULL: {different(distinct)}" if distinct else "",
        f"group by the person, too, whose rows are limited: {different(by_person)}" if by_person else "",
        f"ask for the groups first, {different(groups)}, and then ask this again, which is free and covers the groups "
        "shown"
        if groups
        else "",
    ]
    usual = "declare the keys, or ask for each SELECT with GROUP BY on its own"
    told = "; or ".join(filter(None, ways)) or usual
    return UnsupportedQuery(_SHOWN_ALONE, f"{told[0].upper()}{told[1:]}.")


def _rewrites(measurement: MeasurementPlan) -> Rewrites:
    """Returns what the text suggests; nothing if there is none, or it has parameters."""
    try:
        return rewrites(measurement.sql, measurement.schemas) if measurement.sql else Rewrites()
    except DiscreetError:
        return Rewrites()


def _first(texts: Sequence[str], accepts: Accepts) -> str | None:
    return next((text for text in texts if "`" not in text and accepts(text)), None)
