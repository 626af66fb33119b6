"""From a question to a program: what will be read, which noise it meets, what that costs. Public facts only.

Nothing here sees data: layouts, laws, shares and selections are chosen from declared bounds, limits, public keys and
the budget asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from fractions import Fraction
from functools import partial

from discreet.dataclass import dataclass
from discreet.errors import UnsupportedQuery
from discreet.hint_text import Hint
from discreet.measurement.aggregates import aggregation, needs
from discreet.measurement.intervals.estimators import Estimator, adapt_estimator
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.program.cube import Cube, FittedTables
from discreet.measurement.program.draft import LAYOUTS, Draft, draft_of, quietest, rho_of
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.draws import Draws
from discreet.measurement.releases.layouts import Layout, Requirements
from discreet.measurement.selection import FEW_ROWS, Selection, Threshold, WeightedGroupSelection, own_budget
from discreet.mechanisms.mechanism import Law
from discreet.plan.analysis.group_keys import MOST_VALUES, combinations, is_declared, values
from discreet.plan.analysis.reachable_groups import reachable
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, Question, Value
from discreet.plan.model.readings import ContributionBounding, Reading
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import events

MOST_KEYS = 10**6  # public groups of one question
Keys = tuple[tuple[Value, ...], ...]


class ReleaseFormat(IntEnum):
    """The rules by which a program is made: a stored release keeps its rules, and so its noise."""

    ONE_GRID = 3
    """Values on a single grid, whose rounding intervals did not count."""
    BY_LIMITS = 4
    """Noise for as many groups as limits allow, however few are shown; groups that no row can be in."""
    UNCUT = 5
    """Noise that may reach any distance where private keys are selected by it: higher thresholds. Groupings that are
    counted each by itself, with noise of one scale."""
    SEARCHED = 6
    """Intervals of means by a search for each group, however many there are."""
    NOW = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One read and its noise, with what is drawn in addition.

    Args:
        question: what was asked.
        reading: what the engine computes: the statistics of the measures, in order, then those of the selection.
        measures: noise for each form.
        draws: what is drawn instead, each from reads of its own.
        noise: the noise of each statistic.
        estimators: how each aggregate follows from what is released.
        selection: how private keys are selected, None if all keys are public.
        contribution: what one unit can change.
        people: what the units are called.
        event: the whole price.
        groupings: if there are several, what is read for each; the noise covers all of them at once.
        beside: what is released together with it, for the same price.
        alike: for itself and those released with it, the place of the first with the same release; empty if all differ.
        tables: how the groupings are fitted to each other, where all of them are read at once.
        whole: the aggregates that no limit and no bound leaves anything out of, by declared facts.
        remarks: what bounds mean for these aggregates in particular.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> curator = Curator(engine=Memory())
    >>> ages = {"types": {"age": "int"}, "bounds": {"age": (0, 120)}}
    >>> curator.protect([{"age": 40}], name="a", budget=Budget(epsilon=1), **ages)
    >>> program = curator.explain("SELECT AVG(age) AS age FROM a", epsilon=0.5).program
    >>> [(each.kind, each.shift) for each in program.reading.statistics]  # age, and age less its upper bound
    [('sum', 0), ('sum', 120)]
    >>> program.noise.law, program.noise.scales
    ('laplace', (Fraction(240, 1), Fraction(240, 1)))
    """

    question: Question
    reading: Reading
    measures: tuple[AdditiveNoise, ...]
    draws: tuple[Draws, ...]
    noise: Noise
    estimators: dict[str, Estimator]
    selection: Selection | None
    contribution: QueryContribution
    people: str
    event: events.Event
    groupings: tuple[Program, ...] = ()
    beside: tuple[Program, ...] = ()
    alike: tuple[int, ...] = ()
    tables: FittedTables | None = None
    whole: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()

    @property
    def released_programs(self) -> tuple[Program, ...]:
        """Returns itself and those with it that have a release of their own, for a share of the price each."""
        parts = (replace(self, beside=(), alike=()), *self.beside) if self.beside else (self,)
        return tuple(part for place, part in enumerate(parts) if not self.alike or self.alike[place] == place)

    @property
    def width(self) -> int:
        """Returns how many numbers are released of each group."""
        return len(self.noise.scales) + sum(each.columns for each in self.draws)

    @property
    def without_salt(self) -> Program:
        """Returns the same without the secret by which rows are kept: what goes out with an answer needs no reading."""
        if self.reading.bounding is None and not self.groupings and not self.beside:
            return self
        return replace(
            self,
            reading=self.reading.without_salt,
            groupings=tuple(one.without_salt for one in self.groupings),
            beside=tuple(one.without_salt for one in self.beside),
        )

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Returns everything that is read first."""
        if self.beside:
            return tuple(reading for one in self.released_programs for reading in one.readings)
        if self.groupings and self.tables is None:
            return tuple(reading for one in self.groupings for reading in one.readings)
        drawn = (reading for each in self.draws for reading in each.readings(self.reading))
        found = (self.selection.reading(self.reading),) if isinstance(self.selection, WeightedGroupSelection) else ()
        return (*found, *((self.reading,) if self.reading.statistics else ()), *drawn)


def choose(
    question: Question,
    schema: TableSchema,
    *,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    limits: Limits | None = None,
    salt: str = "",
    keys: Keys | None = None,
    law: Law | None = None,
    edition: ReleaseFormat = ReleaseFormat.NOW,
) -> Program:
    """Returns the program with the least noise at this budget, by public facts.

    Pure budgets get Laplace noise. With a delta, Gaussian noise is taken where its error is smaller, unless a law is
    given; private keys need a delta, which they share with Gaussian noise.

    Args:
        question: what is asked.
        schema: what is public about its rows.
        epsilon: what it may cost.
        delta: its chance of more.
        limits: how much one unit counts; the table's unless given.
        salt: of the rule by which rows are kept.
        keys: all values that the question's keys may have, where its own construction says so.
        law: of the noise.
        edition: by whose rules.

    Raises:
        UnsupportedQuery: if keys are private and there is no delta, or an argument has no bounds.
    """
    asked, former = question.groupings or (question,), edition is ReleaseFormat.ONE_GRID
    listed = [(one, _shown_keys(one, schema, edition) if keys is None else keys) for one in asked]
    contribution = _contribution(listed, schema, limits, edition)
    if all(known is not None for one, known in listed if one.keys):
        draft = quietest(question, schema, contribution, epsilon, delta, sized=False, law=law, former=former)
    else:
        _check_private(delta, schema)
        contribution = _gathering(question, contribution)
        draft = _selecting(question, schema, contribution, epsilon, delta, law=law, edition=edition)
    if edition < ReleaseFormat.NOW:
        draft = replace(draft, noise=replace(draft.noise, tabled=False))
    if not question.sets:
        return _program(question, schema, contribution, draft, keys=listed[0][1], salt=salt)
    if draft.selection is None and edition >= ReleaseFormat.SEARCHED:
        agreed = _plan_agreeing_groupings(question, schema, limits, (epsilon, delta), law=law, salt=salt)
        if agreed is not None and (agreed.contribution.groups == 1 or _badness(agreed) <= draft.badness ** len(asked)):
            return agreed
    each = [
        _program(one, schema, _contribution([(one, known)], schema, limits, edition), draft, keys=known, salt=salt)
        for one, known in listed
    ]
    return replace(
        each[0],
        question=question,
        contribution=contribution,
        selection=draft.selection,
        event=draft.event,
        groupings=tuple(each),
    )


# ------------------------------------------------------------------------------------------------- groupings that agree


def _plan_agreeing_groupings(
    question: Question,
    schema: TableSchema,
    limits: Limits | None,
    budget: tuple[Fraction, Fraction],
    *,
    law: Law | None,
    salt: str,
) -> Program | None:
    """Returns all groupings as sums of one table by all keys, with rows bounded once; None if they are not its sums.

    Formal guarantee: each grouping's noise covers what a unit moves of its sums (`QueryContribution.added_up`), for a
    share of the budget, and the shares add up to it; to fit the tables to each other is post-processing (`cube`).
    """
    finest = replace(question, keys=tuple(question.keys), sets=())
    keys, cube = public_keys(finest, schema), _cube(question, schema)
    if keys is None or cube is None or reachable(finest, keys) != keys:
        return None
    contribution = _contribution([(finest, keys)], schema, limits, ReleaseFormat.NOW)
    added = Requirements.of(needs(question.aggregates), schema, most_rows=contribution.limits.rows, sized=False)
    laws: tuple[Law, ...] = ("laplace", "gaussian") if budget[1] else ("laplace",)
    found = []
    for each in laws if law is None else (law,):
        layouts = {layout.forms: layout for layout in (build(added) for build in LAYOUTS[each])}
        amount = budget[0] if each == "laplace" else rho_of(*budget)
        for layout in layouts.values():
            tables = _tables(question, cube, layout, contribution, (each, amount / len(layout.forms)))
            made = _of_tables(question, finest, schema, contribution, tables, salt=salt)
            found.append(made if each == "laplace" else replace(made, event=events.Calibrated(made.event, *budget)))
    return min(found, key=_badness)


_SUMS = frozenset({"count", "count_values", "sum", "mean"})


def _cube(question: Question, schema: TableSchema) -> Cube | None:
    """Returns the shape of the tables; None if something in them is no sum, or some key is in none."""
    lists = [values(key.expression, schema) for key in question.keys]
    sizes = tuple(len(listed) for listed in lists if listed is not None)
    ordered = all(list(one) == sorted(one) for one in question.sets)
    used = {place for one in question.sets for place in one}
    if len(sizes) < len(lists) or not ordered or len(used) < len(lists):
        return None
    cube = Cube(sizes, question.sets)
    sums = question.aggregates and all(aggregate.kind in _SUMS for aggregate in question.aggregates)
    return cube if sums and cube.is_small and question.rest is None else None


def _tables(
    question: Question, cube: Cube, layout: Layout, contribution: QueryContribution, budget: tuple[Law, Fraction]
) -> tuple[FittedTables, list[Draft]]:
    """Returns the noise of every table for its share, and how they are fitted; a table without a share has none."""
    law, amount = budget
    each = [
        contribution.added_up(sums=cube.count(one), parts=cube.cells // cube.count(one))
        if contribution.groups > 1
        else QueryContribution.of(
            limits=contribution.limits, neighbours=contribution.neighbours, shown=[cube.count(one) if one else 1]
        )
        for one in cube.sets
    ]
    alone = [draft_of(question.aggregates, layout, (), one, budget) for one in each]
    shares = cube.shares(law, [float(draft.noise.scales[0]) for draft in alone])
    drafts = [
        draft_of(question.aggregates, layout, (), one, (law, amount * share)) if share else replace(draft, measures=())
        for one, share, draft in zip(each, shares, alone, strict=True)
    ]
    scales = tuple(draft.noise.scales if draft.measures else () for draft in drafts)
    return FittedTables(cube, law, scales, alone[0].noise.rounded or (False,) * len(alone[0].noise.scales)), drafts


def _of_tables(
    question: Question,
    finest: Question,
    schema: TableSchema,
    contribution: QueryContribution,
    made: tuple[FittedTables, list[Draft]],
    *,
    salt: str,
) -> Program:
    tables, drafts = made
    found = {name: adapt_estimator(each, whole=tables.is_sum) for name, each in drafts[0].estimators.items()}
    each = [
        replace(
            _program(one, schema, contribution, draft, keys=public_keys(one, schema), salt=salt),
            noise=tables.noise(place),
            estimators=found,
            whole=frozenset(),
        )
        for place, (one, draft) in enumerate(zip(question.groupings, drafts, strict=True))
    ]
    worst = max(each, key=lambda one: _badness(replace(one, groupings=())))
    measured = next(draft for draft in drafts if draft.measures)
    whole = _program(finest, schema, contribution, measured, keys=public_keys(finest, schema), salt=salt)
    return replace(
        whole,
        question=question,
        noise=worst.noise,
        estimators=found,
        event=events.Composed([measure.event for draft in drafts for measure in draft.measures]),
        groupings=tuple(each),
        tables=tables,
        whole=frozenset(),
    )


def _badness(program: Program) -> Fraction:
    """Returns the product of the variances of all aggregates in all groupings."""
    parts = program.groupings or (program,)
    return math.prod((e.variance(part.noise) for part in parts for e in part.estimators.values()), start=Fraction(1))


def _shown_keys(question: Question, schema: TableSchema, edition: ReleaseFormat) -> Keys | None:
    """Returns the public groups that some row can be in; None if they are private."""
    known = public_keys(question, schema)
    return known if known is None or edition < ReleaseFormat.UNCUT else reachable(question, known)


def _contribution(
    listed: Sequence[tuple[Question, Keys | None]], schema: TableSchema, limits: Limits | None, edition: ReleaseFormat
) -> QueryContribution:
    """Returns what one unit can change of groupings with these public keys, None of them being known of private ones.

    Noise is made for all groupings together; the rows of each are bounded by what is its own.
    """
    held = (limits or schema.limits) if schema.unit is not None else Limits()
    if edition < ReleaseFormat.UNCUT:
        grouped = [bool(one.keys) for one, _ in listed]
        return QueryContribution.by_limits(limits=held, neighbours=schema.neighbours, grouped=grouped)
    shown = [(None if known is None else len(known)) if one.keys else 1 for one, known in listed]
    return QueryContribution.of(limits=held, neighbours=schema.neighbours, shown=shown)


def _program(
    question: Question,
    schema: TableSchema,
    contribution: QueryContribution,
    draft: Draft,
    *,
    keys: Keys | None,
    salt: str,
) -> Program:
    """Returns the program of one grouping; its keys are public if they are given, or if there are none."""
    selects = draft.selection is not None or any(measure.cuts for measure in draft.measures)
    if selects and (not question.keys or keys is not None):
        draft = replace(draft, selection=None, measures=tuple(measure.uncut for measure in draft.measures))
    reading = _reading(question, _bounding(schema, contribution, salt), keys, draft)
    return Program(
        question=question,
        reading=reading,
        measures=draft.measures,
        draws=draft.draws,
        noise=draft.noise,
        estimators=draft.estimators,
        selection=draft.selection,
        contribution=contribution,
        people=schema.people or schema.unit or "row",
        event=draft.event,
        whole=frozenset(each.name for each in question.aggregates if _leaves_nothing_out(each, question, schema)),
        remarks=(_FLOORED,) if any(_is_floored(each, schema) for each in question.aggregates) else (),
    )


_FLOORED = "Logarithms near zero are clipped, below a 2^30th of the upper bound of their argument."


def _is_floored(aggregate: Aggregate, schema: TableSchema) -> bool:
    """Returns whether limits of what is added up leave logarithms near zero out."""
    added = [x for x in (aggregate.argument, aggregate.other) if x is not None and x.type is Type.FLOAT]
    return any(bounds(x, schema) != bounds(x, schema, floored=False) for x in added)


def _leaves_nothing_out(aggregate: Aggregate, question: Question, schema: TableSchema) -> bool:
    """Returns whether an aggregate is of the whole table: every row counts, and no value is clipped.

    Rows count as people where each is one; people count where they are counted themselves, and there are no groups.
    Values are not clipped where a declared fact says that bounds hold all of them.
    """
    if schema.unit is not None:
        return aggregate.kind == "count_units" and not question.keys
    kind = aggregation(aggregate.kind)
    if kind.drawn:
        return False
    return not kind.bounded or all(
        _is_inside(x, schema) for x in (aggregate.argument, aggregate.other) if x is not None
    )


def _is_inside(x: Expression, schema: TableSchema) -> bool:
    column = schema.columns.get(x.name) if isinstance(x, ColumnRef) else None
    if column is None or column.domain is None or column.bounds is None:
        return False
    return column.bounds.low <= column.domain.low and column.domain.high <= column.bounds.high


def public_keys(question: Question, schema: TableSchema) -> Keys | None:
    """Returns all combinations of the keys' values if every key has public ones; None if some are private.

    Declared keys are public however many they are. Those that follow from an expression are as long as the groups that
    they make are few.
    """
    if not question.keys:
        return None
    lists = [values(key.expression, schema) for key in question.keys]
    known = [listed for listed in lists if listed is not None]
    size = math.prod(len(listed) for listed in known)
    declared = all(is_declared(key.expression, schema) for key in question.keys)
    if len(known) < len(lists) or (size > MOST_VALUES and not declared):
        return None
    if size > MOST_KEYS:
        hint = f"Group by fewer columns: at most {MOST_KEYS} groups."
        raise UnsupportedQuery(f"The question has {size} groups of public keys.", hint)
    return combinations(known)


def _check_private(delta: Fraction, schema: TableSchema) -> None:
    if not delta:
        declare = "Its account has none: declare the keys, or group by something whose values are known."
        hint = Hint("Declare the keys, or ask with a delta, e.g. {delta:1e-8}.") if schema.private_groups else declare
        raise UnsupportedQuery("The groups of this question are private, and showing them needs a delta.", hint)


def _gathering(question: Question, contribution: QueryContribution) -> QueryContribution:
    """Adds to the contribution what the group of all that is not shown adds.

    Raises:
        UnsupportedQuery: if an aggregate of several groups is not the sum of theirs.
    """
    if question.rest is None:
        return contribution
    groups = contribution.limits.groups
    if not all(aggregation(aggregate.kind).adds_up(groups) for aggregate in question.aggregates):
        raise UnsupportedQuery(
            Hint(
                "What {other} gathers is a sum over groups, and different values, people in several groups, quantiles "
                "and modes do not add up."
            ),
            "Ask for COUNT(*), SUM or AVG. People can be counted if the limit is one group per person.",
        )
    return replace(contribution, gathers=True)


def _selecting(
    question: Question,
    schema: TableSchema,
    contribution: QueryContribution,
    epsilon: Fraction,
    delta: Fraction,
    *,
    law: Law | None,
    edition: ReleaseFormat,
) -> Draft:
    """Selects private keys by a threshold on a noisy size, or by a selection that takes half of the budget.

    The second doubles the noise. It is taken if its groups may have less than half as many people: the smallest groups
    that are shown then have the smaller relative error. Where nothing but keys is asked for, it takes the whole budget.
    """
    noise_for = partial(quietest, question, schema, contribution, law=law, former=edition is ReleaseFormat.ONE_GRID)
    weighs = edition >= ReleaseFormat.SEARCHED and not (question.sets or question.rest or question.beside)
    if not question.aggregates:
        silent = noise_for(epsilon, delta, sized=False)
        return replace(silent, selection=own_budget(contribution, epsilon, delta, weighs=weighs))
    draft = noise_for(epsilon, delta / 2, sized=True)
    if draft.layout.size is None:
        raise UnsupportedQuery("The question counts nothing.", "Add COUNT(*) to it.")
    left = delta / 2 if draft.law == "gaussian" else delta  # Laplace noise needs no delta
    cuts = edition >= ReleaseFormat.SEARCHED
    threshold = Threshold.lowest(draft.layout.size, draft.noise, contribution, left, cuts=cuts)
    other = own_budget(contribution, epsilon / 2, delta / 2, weighs=weighs and contribution.rows > FEW_ROWS)
    if 2 * other.half_kept >= threshold.half_kept:
        return replace(draft, selection=threshold, measures=threshold.cuts(draft.measures))
    return replace(noise_for(epsilon / 2, delta / 2, sized=False), selection=other)


def _reading(question: Question, bounding: ContributionBounding | None, keys: Keys | None, draft: Draft) -> Reading:
    statistics = [statistic for form in draft.layout.forms for statistic in form.statistics]
    return Reading(
        table=question.table,
        source=question.source,
        where=question.where,
        keys=tuple(key.expression for key in question.keys),
        public_keys=keys,
        bounding=bounding,
        statistics=(*statistics, *(draft.selection.statistics if draft.selection else ())),
    )


def _bounding(schema: TableSchema, held: QueryContribution, salt: str) -> ContributionBounding | None:
    if schema.unit is None:
        return None
    most = held.limits
    return ContributionBounding(unit=schema.unit, groups=held.groups, rows=most.rows, salt=salt, total=most.total)
