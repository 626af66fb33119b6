"""A question before its charge: its program at any budget, by declarations and by facts that were found out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import Any

from discreet.curator.replay.stored_releases import Asked, Rebuild, replay_key
from discreet.errors import InternalError, InvalidParameter, UnsupportedQuery
from discreet.measurement.probes.magnitudes import choosable
from discreet.measurement.probes.probes import (
    SHARE,
    Counted,
    Facts,
    LimitsProbe,
    Probe,
    Schemas,
    Spot,
    described,
    read_by,
)
from discreet.measurement.program.execution import answerable, exact_numbers
from discreet.measurement.program.program import Program, choose
from discreet.mechanisms.base import Law
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.canonical import replay_order
from discreet.plan.model.nodes import Aggregate, Question, columns
from discreet.plan.model.schema import Bounds, Limits, TableSchema
from discreet.privacy import events
from discreet.sql.clauses.histograms import with_edges

_PARTS = (Fraction(1), Fraction(9, 10), Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question with everything its program is chosen from.

    Args:
        plan: as it was asked.
        table: the first protected one, whose account pays.
        schemas: the declared tables by name.
        limits: of the question; None for the table's.
        salt: of the rule by which rows are kept.
        probes: for the facts that nobody declared and the question needs.
        facts: what was found out before.
        built: programs that were built already.
    """

    plan: Question
    table: str
    schemas: Schemas
    limits: Limits | None
    salt: str = field(repr=False)
    probes: tuple[Probe, ...]
    facts: Facts
    built: dict[Any, Program] = field(default_factory=dict, repr=False, compare=False)

    def about(self, plan: Question) -> Prepared:
        """Another question about the same rows, with the same facts."""
        return replace(self, plan=plan, built={})

    @property
    def unknown(self) -> frozenset[str]:
        """The outputs whose error depends on facts that are missing."""
        if any(isinstance(probe.supposed, int) for probe in self.missing):
            return frozenset(output.name for output in self.plan.outputs)
        lacking = {a.name for a in _unbounded_by(self.plan, bounded(self.schemas, self.facts.bounds))}
        outputs = self.plan.outputs
        return frozenset(o.name for o in outputs if lacking & {column.name for column in columns(o.expression)})

    @property
    def missing(self) -> tuple[Probe, ...]:
        """What must be found out first."""
        return tuple(probe for probe in self.probes if probe.spot not in self.facts.known)

    def tables(self, facts: Facts) -> list[TableSchema]:
        """The tables it reads, declared as these facts say."""
        return read_by(self.plan, bounded(self.schemas, facts.bounds))

    def program(self, asked: Asked, facts: Facts, law: Law | None = None, *, former: bool = False) -> Program:
        """The program at a budget, its aggregates in the order in which releases are stored.

        Args:
            asked: the budget.
            facts: what was found out.
            law: of its noise, unless it is chosen.
            former: whether it is that of a release from before values had two grids.
        """
        known = asked, tuple(facts.known.items()), law, former
        if known not in self.built:
            self.built[known] = self._program(asked, facts, law, former)
        return self.built[known]

    def _program(self, asked: Asked, facts: Facts, law: Law | None, former: bool) -> Program:
        schemas, count = bounded(self.schemas, facts.bounds), 1 + len(self.plan.beside)
        share = Asked(asked.epsilon / count, asked.delta / count)
        limits = facts.limits(self.limits or described(self.plan, schemas).limits)
        with exact_numbers():
            chosen = partial(self._chosen, schemas=schemas, asked=share, former=former)
            program = chosen(self.plan, limits=limits, law=law)
            if self.plan.beside:
                others = tuple(chosen(one, limits=self.limits, law=None) for one in self.plan.beside)
                event = events.Composed([program.event, *(other.event for other in others)])
                program = replace(program, beside=others, event=event)
            return answerable(program, self.schemas)

    def _chosen(
        self, plan: Question, *, schemas: Schemas, asked: Asked, limits: Limits | None, law: Law | None, former: bool
    ) -> Program:
        """One of the questions that share a budget, at its share."""
        schema = described(plan, schemas)
        known = with_edges(plan, schema)
        return choose(
            replace(known, aggregates=tuple(replay_order(known))),
            schema,
            epsilon=asked.epsilon,
            delta=asked.delta,
            limits=limits or schema.limits,
            salt=self.salt,
            law=law,
            former=former,
        )

    def rebuild(self, facts: Facts, law: Law | None = None, *, former: bool = False) -> Rebuild:
        """The program at any budget."""
        return lambda epsilon, delta: self.program(Asked(epsilon, delta), facts, law, former=former)

    def place(self, program: Program, facts: Facts) -> str:
        """Under which releases of its program are kept, given these facts."""
        return replay_key(program, self.tables(facts))

    # ------------------------------------------------------------------------------------------------------- stages

    @property
    def widest(self) -> Facts:
        """What a price is made with: the widest bounds of all columns that nobody declared, the table's own limits."""
        return Facts(known={probe.spot: probe.supposed for probe in self.probes})

    def supposed(self, asked: Asked) -> Program:
        """The question with what probes leave, at the widest bounds: it decides law and price, whatever is found."""
        return self.program(left_by_probes(asked), self.widest)

    def event(self, asked: Asked, probes: int) -> events.Event:
        """The whole price if so many facts are missing; it depends on none of them."""
        if not probes:
            return self.program(asked, self.facts).event
        each, *_ = [probe.program(of_each_probe(asked, probes)).event for probe in self.probes]
        return events.Composed([*([each] * probes), promised(self.supposed(asked).event)])

    def probes_paid(self, asked: Asked, event: events.Event) -> int:
        """For how many probes an event is the whole price; at least for those that are missing now.

        Raises:
            InternalError: if it is the price of something else.
        """
        for probes in range(len(self.missing), len(self.probes) + 1):
            if self.event(asked, probes) == event:
                return probes
        if not self.missing and self.program(asked, self.facts, former=True).event == event:
            return 0
        raise InternalError("A question was charged with another price than its own.")

    def other_events(self, asked: Asked) -> list[events.Event]:
        """What the whole price may have been before: when more facts were missing, or fewer, or on the former grid."""
        counts = range(1 if self.missing else 0, len(self.probes) + 1)
        others = [self.event(asked, probes) for probes in counts if probes != len(self.missing)]
        return others if self.missing else [*others, self.program(asked, self.facts, former=True).event]

    def request(self, asked: Asked) -> str:
        """What makes a request the same one for an idempotency key, whatever was found out in between."""
        if not self.probes:
            return self.place(self.program(asked, self.facts), self.facts)
        key = replay_key(self.program(asked, self.widest), read_by(self.plan, self.schemas))
        about = " ".join(f"{table}.{what}" for table, what in (probe.spot for probe in self.probes))
        return sha256(f"{key} {asked.epsilon} {asked.delta} {about}".encode()).hexdigest()

    def settled(self, asked: Asked, facts: Facts, covered: Callable[[events.Event, events.Event], bool]) -> Settled:
        """The question at the bounds that were found, for no more than was charged.

        Bounds can change how many forms share the budget, and so the price under some rules: then a little less is
        spent. Where they make numbers that cannot be added up, the widest bounds, which were tried before the charge,
        are taken instead.
        """
        supposed = self.supposed(asked)
        promise, law, main = promised(supposed.event), supposed.noise.law, left_by_probes(asked)
        for part in _PARTS:
            less = Asked(main.epsilon * part, main.delta)
            with suppress(UnsupportedQuery, InvalidParameter):
                program = self.program(less, facts, law)
                if covered(program.event, promise):
                    return Settled(program=program, asked=less, facts=facts, law=law)
        return Settled(program=supposed, asked=main, facts=self.widest, law=law)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A program, and all that is needed to build it again."""

    program: Program
    asked: Asked
    facts: Facts
    law: Law | None = None


def left_by_probes(asked: Asked) -> Asked:
    """What is left for the question itself."""
    return Asked(asked.epsilon * (1 - SHARE), asked.delta)


def of_each_probe(asked: Asked, probes: int) -> Fraction:
    """What each of so many probes may spend."""
    return asked.epsilon * SHARE / probes


def bounded(schemas: Schemas, found: Mapping[Spot, Bounds]) -> Schemas:
    """The declarations with further bounds."""
    changed = dict(schemas)
    for (table, column), limits in found.items():
        columns = changed[table].columns
        changed[table] = replace(changed[table], columns={**columns, column: replace(columns[column], bounds=limits)})
    return changed


def unbounded(plan: Question, schemas: Schemas) -> tuple[Spot, ...]:
    """The columns of protected tables without which an argument has no bounds, and with which all have some.

    None if all arguments have bounds as they are, or would lack them even then.
    """
    if not _lacking(plan, schemas):
        return ()
    candidates = {
        (table.name, column): limits for table in read_by(plan, schemas) for column, limits in choosable(table).items()
    }
    if _lacking(plan, bounded(schemas, candidates)):
        return ()
    for spot in list(candidates):
        fewer = {other: limits for other, limits in candidates.items() if other != spot}
        if not _lacking(plan, bounded(schemas, fewer)):
            candidates = fewer
    return tuple(candidates)


def _lacking(plan: Question, schemas: Schemas) -> bool:
    bands = plan.bands is not None and bounds(plan.bands.argument, described(plan, schemas)) is None
    return bands or bool(_unbounded_by(plan, schemas))


def _unbounded_by(plan: Question, schemas: Schemas) -> list[Aggregate]:
    """The aggregates that add up an argument without bounds."""
    schema = described(plan, schemas)
    return [
        aggregate
        for aggregate in plan.aggregates
        if not aggregate.kind.startswith("count")
        and aggregate.is_measured
        and any(
            x is not None and x.type.is_number and bounds(x, schema) is None
            for x in (aggregate.argument, aggregate.other)
        )
    ]


def limits_probes(plan: Question, schema: TableSchema, schemas: Schemas, salt: str) -> list[Probe]:
    """For how much one person may count in a question: nothing where each row is one, no groups where there are none.

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
    return [
        LimitsProbe(
            counted=each,
            plan=plan,
            schemas=schemas,
            fallback=usual[each],
            salt=salt,
        )
        for each in counted
    ]


def promised(event: events.Event) -> events.Event:
    """What noise promises, without its scale, which depends on bounds.

    Discrete Laplace noise is its epsilon; everything else says nothing of scales.
    """
    if isinstance(event, events.Composed):
        return events.Composed([promised(part) for part in event.events])
    if isinstance(event, events.DiscreteLaplace):
        return events.Pure(event.sensitivity / event.scale)
    return event
