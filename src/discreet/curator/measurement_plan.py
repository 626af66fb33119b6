"""A question before its charge: its program at any terms, by declarations and by facts that were found out.

It reads nothing and spends nothing. What it releases is kept under a replay key, and its charge is known by a request:
both are functions of the question and of the declarations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from discreet import check
from discreet.curator.catalog.declarations import declaration
from discreet.curator.paid_release import ChargeRequest
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter, UnsupportedQuery
from discreet.hint_text import Hint
from discreet.measurement.probes.probes import (
    NOTHING,
    SHARE,
    Facts,
    Probe,
    Schemas,
    Spot,
    describe_counted_rows,
    read_by,
)
from discreet.measurement.profile.parts import ProfilePlan
from discreet.measurement.program.execution import answerable, exact_numbers
from discreet.measurement.program.program import Program, ReleaseFormat, choose
from discreet.mechanisms.mechanism import Law
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.canonical import canonical, origin, replay, replay_order
from discreet.plan.model.nodes import Aggregate, Question, columns
from discreet.plan.model.schema import ColumnBounds, Limits, TableSchema
from discreet.plan.post.steps import UnionAll
from discreet.privacy import ZCDP, ApproxDP, Loss, PureDP, events
from discreet.privacy.amounts import below_one
from discreet.sql.clauses.histograms import with_edges

Rebuild = Callable[[Fraction, Fraction], Program]
"""The same question's program at another epsilon and delta."""

_PARTS = (Fraction(1), Fraction(9, 10), Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))

DELTA_SHARE = Fraction(1, 100)
"""Of the account's delta, for a question that names none."""


@dataclass(frozen=True, slots=True)
class QueryBudget:
    """The budget of a question: an epsilon, and a chance delta of more."""

    epsilon: Fraction
    delta: Fraction

    @classmethod
    def of(cls, epsilon: check.Number | None, delta: check.Number | None, budget: Loss) -> QueryBudget:
        """Returns the terms that a question names, under an account of this budget.

        >>> QueryBudget.of("0.1", None, ApproxDP(1, "1e-6")).delta
        Fraction(1, 100000000)

        Raises:
            InvalidParameter: if epsilon is missing or no amount, or delta is given although the budget is pure.
        """
        if epsilon is None:
            hint = Hint("Pass e.g. {epsilon:0.1}. To see the error first, use explain.")
            raise InvalidParameter("epsilon", None, "to be given", hint)
        slack = _usual_delta(budget) if delta is None else below_one(delta=delta)
        if slack and isinstance(budget, PureDP):
            raise InvalidParameter("delta", delta, "to be 0: the account's budget is pure", "Leave it out.")
        return cls(check.positive(epsilon=epsilon), slack)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Returns the two as numerators and denominators, which are quicker to look up than fractions."""
        return *self.epsilon.as_integer_ratio(), *self.delta.as_integer_ratio()

    @property
    def text(self) -> str:
        """Returns the two in one line; it never changes, because digests in ledgers are made of it."""
        return f"{self.epsilon} {self.delta}"


def _usual_delta(budget: Loss) -> Fraction:
    return budget.delta * DELTA_SHARE if isinstance(budget, ApproxDP | ZCDP) else Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """A question with everything its program is chosen from.

    Args:
        plan: as it was asked.
        account: which pays.
        schemas: the declared tables by name.
        limits: of the question; None for the table's.
        salt: of the rule by which rows are kept.
        probes: for the facts that the question needs and no declaration has.
        facts: what was found out before.
        built: programs and replay keys that were worked out already.
        periods: whose rows it may count, where rows have budgets by period.
    """

    plan: Question
    account: str
    schemas: Schemas
    limits: Limits | None
    salt: str = field(repr=False)
    probes: tuple[Probe, ...]
    facts: Facts
    sql: str = field(default="", repr=False, compare=False)
    periods: tuple[str, ...] = ()
    built: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def about(self, plan: Question) -> MeasurementPlan:
        """Returns another question about the same rows, with the same facts."""
        return replace(self, plan=plan, built={})

    @property
    def unknown(self) -> frozenset[str]:
        """Returns the outputs whose error depends on facts that are missing."""
        several = self.missing and self.plan.beside
        if several or any(isinstance(probe.assumed_fact, int) for probe in self.missing):
            return frozenset(output.name for output in self.plan.outputs)
        lacking = {a.name for a in unbounded_aggregates(self.plan, self.bounded_schemas(self.facts))}
        outputs = self.plan.outputs
        return frozenset(o.name for o in outputs if lacking & {column.name for column in columns(o.expression)})

    @property
    def waits_for_limits(self) -> bool:
        """Returns whether some table's limits are still to be found; perhaps not one that it reads."""
        found = (schema.private_limits for schema in self.schemas.values())
        return any(limits is not None and not limits.found for limits in found)

    @property
    def missing(self) -> tuple[Probe, ...]:
        """Returns what must be found out first."""
        return tuple(probe for probe in self.probes if probe.spot not in self.facts.known)

    def tables(self, facts: Facts) -> list[TableSchema]:
        """Returns the tables it reads, declared as these facts say."""
        return read_by(self.plan, self.bounded_schemas(facts))

    def bounded_schemas(self, facts: Facts) -> Schemas:
        """Returns the declarations, with the bounds that were found."""
        return add_bounds(self.schemas, facts.bounds) if facts.known else self.schemas

    def program(
        self, terms: QueryBudget, facts: Facts, law: Law | None = None, *, edition: ReleaseFormat = ReleaseFormat.NOW
    ) -> Program:
        """Returns the program at a budget, its aggregates in the order in which releases are stored.

        Args:
            terms: the budget.
            facts: what was found out.
            law: of its noise, unless it is chosen.
            edition: by whose rules, where it is that of a release that is kept.
        """
        known = terms.numbers, tuple(facts.known.items()), law, edition
        if known not in self.built:
            self.built[known] = self._program(terms, facts, law, edition)
        found: Program = self.built[known]
        return found

    def _program(self, terms: QueryBudget, facts: Facts, law: Law | None, edition: ReleaseFormat) -> Program:
        schemas = self.bounded_schemas(facts)
        plans = self.plan, *self.plan.beside
        rows, *rows_beside = [describe_counted_rows(one, schemas) for one in plans]
        limits = [facts.limits(self.limits or rows.limits), *(self.limits or one.limits for one in rows_beside)]
        alike = self._alike(limits)
        count = len(set(alike)) if alike else len(plans)
        share = terms if count == 1 else QueryBudget(terms.epsilon / count, terms.delta / count)
        with exact_numbers():
            chosen = partial(self._choose_program, terms=share, edition=edition)
            program = chosen(self.plan, rows, limits=limits[0], law=law)
            if self.plan.beside:
                asked = zip(self.plan.beside, rows_beside, limits[1:], strict=True)
                others = tuple(chosen(one, own, limits=most, law=None) for one, own, most in asked)
                program = replace(program, beside=others, alike=alike)
                program = replace(program, event=events.Composed([one.event for one in program.released_programs]))
            return answerable(program, self.schemas)

    def _alike(self, limits: Sequence[Limits]) -> tuple[int, ...]:
        """Returns for each SELECT of a UNION ALL the first that asks for the same release; only that one is paid.

        Other questions keep a release for each question inside them, as those that were stored before.
        """
        plan = self.plan
        if not any(isinstance(step, UnionAll) for step in plan.steps):
            return ()
        asked = map(replay, (replace(plan, beside=()), *plan.beside))
        known = list(zip(asked, limits, strict=True))
        return tuple(known.index(one) for one in known)

    def _choose_program(
        self,
        plan: Question,
        rows: TableSchema,
        *,
        terms: QueryBudget,
        limits: Limits,
        law: Law | None,
        edition: ReleaseFormat,
    ) -> Program:
        """Returns the program of one of the questions that share a budget, at its share."""
        known = plan if plan.bands is None else with_edges(plan, rows)
        if len(known.aggregates) > 1:
            known = replace(known, aggregates=tuple(replay_order(known)))
        return choose(
            known,
            rows,
            epsilon=terms.epsilon,
            delta=terms.delta,
            limits=limits,
            salt=self.salt,
            law=law,
            edition=edition,
        )

    def rebuild(self, facts: Facts, law: Law | None = None, *, edition: ReleaseFormat = ReleaseFormat.NOW) -> Rebuild:
        """Returns the program at any budget."""
        return lambda epsilon, delta: self.program(QueryBudget(epsilon, delta), facts, law, edition=edition)

    def replay_key(self, program: Program, facts: Facts) -> str:
        """Returns the key under which releases of its program are kept, given these facts."""
        known = "replay key", id(program), tuple(facts.known.items())
        if known not in self.built:
            self.built[known] = program, replay_key(program, self.tables(facts))  # whose identity stays its own
        found: str = self.built[known][1]
        return found

    # ----------------------------------------------------------------------------------------------------- profiles

    @property
    def table_profile(self) -> ProfilePlan:
        """Returns a profile of the table that it is about, of nothing in particular."""
        return ProfilePlan(table=self.plan.table, schemas=self.schemas, columns=(), by=(), salt=self.salt)

    @property
    def own_profile(self) -> ProfilePlan | None:
        """Returns the profile of its own rows; None if they are those of several questions, or limits are not known."""
        plan, unlimited = self.plan, any(isinstance(probe.assumed_fact, int) for probe in self.missing)
        if unlimited or plan.beside or plan.sets or plan.rest or plan.bands:
            return None
        return ProfilePlan.of(plan, self._own_limits, self.schemas, self.salt)

    def profile_place(self, terms: QueryBudget) -> str:
        """Returns under which key profiles of its own rows are kept; the terms decide nothing."""
        limits = self._own_limits
        told = ":".join(map(str, limits.numbers))
        return f"coverage:{told}:{self.replay_key(self.program(terms, self.widest), NOTHING)}"

    @property
    def _own_limits(self) -> Limits:
        return self.facts.limits(self.limits or describe_counted_rows(self.plan, self.schemas).limits)

    # ------------------------------------------------------------------------------------------------------- stages

    @property
    def widest(self) -> Facts:
        """Returns the facts that a price is made with: widest bounds of undeclared columns, the table's own limits."""
        return Facts(known={probe.spot: probe.assumed_fact for probe in self.probes})

    def widest_program(self, terms: QueryBudget) -> Program:
        """Returns the program with what probes leave, at the widest bounds: it decides law and price, come what may."""
        return self.program(left_by_probes(terms), self.widest)

    def planned_program(self, terms: QueryBudget) -> Program:
        """Returns the program by what is known, else by what is supposed: its shape does not depend on facts."""
        return self.widest_program(terms) if self.missing else self.program(terms, self.facts)

    def event(self, terms: QueryBudget, probes: int) -> events.Event:
        """Returns the whole price if so many facts are missing; it depends on none of them."""
        if not probes:
            return self.program(terms, self.facts).event
        each, *_ = [probe.program(of_each_probe(terms, probes)).event for probe in self.probes]
        return events.Composed([*([each] * probes), promised_event(self.widest_program(terms).event)])

    def probes_paid(self, terms: QueryBudget, event: events.Event) -> int:
        """Returns for how many probes a charge has paid, by its event; at least for those that are missing now.

        Raises:
            InternalError: if some are missing, and the charge is not for probes at these terms.
        """
        parts = event.events if isinstance(event, events.Composed) else ()
        parts = tuple(map(events.strip_calibration, parts))
        for probes in range(max(len(self.missing), 1), len(self.probes) + 1):
            each = events.strip_calibration(self.probes[0].program(of_each_probe(terms, probes)).event)
            if len(parts) == probes + 1 and parts[:-1] == (each,) * probes:
                return probes
        if self.missing:
            raise InternalError("A question was charged at a price that is not its own.")
        return 0

    def price(self, terms: QueryBudget) -> events.Event:
        """Returns the event that is charged for now: all that will be released, missing facts included."""
        return self.event(terms, len(self.missing))

    def request(self, terms: QueryBudget) -> ChargeRequest:
        """Returns the charge of the question.

        For an idempotency key it is the same request whatever was found out in between: where facts must be found, the
        widest ones replace them in the replay key.
        """
        return ChargeRequest(
            accounts=(self.account,),
            event=self.price(terms),
            question=canonical(self.plan),
            replay_key=self.request_key(terms),
            terms=terms.text,
            sql=self.sql,
            asked=terms.epsilon,
            periods=self.periods,
        )

    def request_key(self, terms: QueryBudget) -> str:
        """Returns the key of a request in place of the replay key, whatever was found out in between."""
        key = self.replay_key(self.program(terms, self.widest), NOTHING)
        if not self.probes:
            return key
        about = " ".join(f"{table}.{what}" for table, what in (probe.spot for probe in self.probes))
        return sha256(f"{key} {terms.text} {about}".encode()).hexdigest()

    def settle_program(
        self, terms: QueryBudget, facts: Facts, covered: Callable[[events.Event, events.Event], bool]
    ) -> SettledProgram:
        """Returns the program at the bounds that were found, for no more than was charged.

        Bounds can change how many forms share the budget, and so the price under some rules: then a little less is
        spent. Where they make numbers that cannot be added up, the widest bounds, which were tried before the charge,
        are taken instead.
        """
        supposed = self.widest_program(terms)
        promise, law, main = promised_event(supposed.event), supposed.noise.law, left_by_probes(terms)
        for part in _PARTS:
            less = QueryBudget(main.epsilon * part, main.delta)
            with suppress(UnsupportedQuery, InvalidParameter):
                program = self.program(less, facts, law)
                if covered(program.event, promise):
                    return SettledProgram(program=program, terms=less, facts=facts, law=law)
        return SettledProgram(program=supposed, terms=main, facts=self.widest, law=law)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledProgram:
    """A program, and all that is needed to build it again."""

    program: Program
    terms: QueryBudget
    facts: Facts
    law: Law | None = None


def replay_key(program: Program, tables: Sequence[TableSchema]) -> str:
    """Returns what two questions must share for one release to serve both: all but budget and post-processing."""
    limits = program.contribution.limits
    parts = [replay(program.question), limits.numbers]
    return area(program, tables) + _digest(parts)


def area(program: Program, tables: Sequence[TableSchema]) -> str:
    """Returns how the replay keys of all questions about the same rows begin: of tables as declared and joined."""
    return _area(origin(program.question), tuple(tables), program.contribution.neighbours.value)


@lru_cache(maxsize=256)  # a declaration may hold very many keys, and every question asks several times
def _area(rows: str, tables: Sequence[TableSchema], neighbours: str) -> str:
    schemas = [table if table.sample is None else replace(table, sample=None) for table in tables]
    declared = [[declaration(schema), schema.version] for schema in schemas]  # a design changes no release
    return f"{_digest([rows, declared, neighbours])[:32]}:"


def _digest(parts: object) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()


def left_by_probes(terms: QueryBudget) -> QueryBudget:
    """Returns the terms that remain for the question itself."""
    return QueryBudget(terms.epsilon * (1 - SHARE), terms.delta)


def of_each_probe(terms: QueryBudget, probes: int) -> Fraction:
    """Returns what each of so many probes may spend."""
    return terms.epsilon * SHARE / probes


def add_bounds(schemas: Schemas, found: Mapping[Spot, ColumnBounds]) -> Schemas:
    """Returns the declarations with further bounds."""
    changed = dict(schemas)
    for (table, column), limits in found.items():
        columns = changed[table].columns
        changed[table] = replace(changed[table], columns={**columns, column: replace(columns[column], bounds=limits)})
    return changed


def unbounded_aggregates(plan: Question, schemas: Schemas) -> list[Aggregate]:
    """Returns the aggregates that add up an argument without bounds."""
    added = [one for one in plan.aggregates if not one.kind.startswith("count") and one.is_measured]
    if not added:
        return []
    rows = describe_counted_rows(plan, schemas)
    return [
        aggregate
        for aggregate in added
        if any(x is not None and bounds(x, rows) is None for x in (aggregate.argument, aggregate.other))
    ]


def promised_event(event: events.Event) -> events.Event:
    """Returns what noise promises, without its scale, which depends on bounds.

    Discrete Laplace noise is its epsilon; everything else says nothing of scales.
    """
    if isinstance(event, events.Composed):
        return events.Composed([promised_event(part) for part in event.events])
    if isinstance(event, events.Calibrated):
        return events.Calibrated(promised_event(event.event), event.epsilon, event.delta)
    if isinstance(event, events.DiscreteLaplace):
        return events.Pure(event.sensitivity / event.scale)
    return event
