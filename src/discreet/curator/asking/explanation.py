"""Explains a question before it is asked: what it would read, its cost and its errors, from public facts only."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction

import numpy as np

from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget, of_each_probe
from discreet.curator.replay.replay import Replay
from discreet.dataclass import dataclass
from discreet.exact.integer_columns import column_of, round_column
from discreet.ledger import Ledger, RemainingBudget
from discreet.ledger.account import AccountState
from discreet.ledger.cost import Cost, cost_now, describe_cost, meaning
from discreet.measurement.population.population_statistics import ADDED, PopulationStatistics, sample_of
from discreet.measurement.probes.probes import Schemas
from discreet.measurement.program.execution import ReleasedStatistics, notes
from discreet.measurement.program.program import Program, ReleaseFormat
from discreet.measurement.releases.additive import AdditiveNoise, grains_of
from discreet.plan.model.group_columns import KeyRows
from discreet.plan.model.nodes import Expression, FunctionCall, PostProcessingStep
from discreet.plan.model.readings import Statistic
from discreet.plan.model.sample import NOISE
from discreet.plan.model.schema import Limits
from discreet.plan.post.outputs import Cell, Measured, NoisyTime
from discreet.plan.post.steps import AttachQuestion, FilterGroups, Regroup
from discreet.privacy import ApproxDP
from discreet.privacy.events import Event
from discreet.report.display import Display, DisplayMixin, error, percent
from discreet.requests.refused_budgets import refusal_text

ROWS = 1000  # of an imagined group
_NOTICED = 1.01  # smaller noise that is worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(DisplayMixin):
    """A question before it is asked: nothing was read and nothing was spent.

    Attributes:
        program: what would be read, and the noise it would meet.
        account: who would pay.
        unit: who is protected, and in which relation.
        cost: what would be charged.
        remaining: what the account can spend now.
        errors: for each released number how far it may be from the truth, with this confidence, in a group of so many
            imagined rows whose values lie in the middle of their bounds (for quantiles, spread evenly between them);
            infinite if it may be anything. Those of days and moments are in days.
        confidence: of each error.
        rows: of the imagined group.
        event: what would be released, or what is promised of it where bounds are still to be chosen.
        remarks: what is chosen privately, and for how much.
        free: what earlier answers tell for nothing, if they do.
        pending: whether something is still to be chosen; limits and scales of noise then follow from it.
        caps: what the caps of the analyst and of the project leave, if they have any.
        refusal: why `ask` would refuse the question now; None if it would not.
        details: how the cost is computed, with the account's own numbers: a line for each rule by which it is counted.
        meaning: how often a guess about one person can be right, with this answer and with all of the account.
        saved: how many times smaller the noise is, of every number, because few groups are shown; 1 if it is not.
    """

    program: Program
    account: str
    unit: str
    cost: Cost
    remaining: RemainingBudget
    errors: dict[str, float]
    confidence: Fraction
    rows: int
    event: Event
    remarks: tuple[str, ...] = ()
    free: str | None = None
    pending: bool = False
    caps: Mapping[str, RemainingBudget] = field(default_factory=dict)
    refusal: str | None = None
    details: tuple[str, ...] = ()
    meaning: str = ""
    saved: float = 1.0

    def __repr__(self) -> str:
        return f"Explanation({self.cost}; account {self.account!r})"

    @property
    def limits(self) -> Limits:
        """Returns how much one unit counts."""
        return self.program.contribution.limits

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns what limits and bounds mean for the answer."""
        return (*notes(self.program), *self.remarks)

    @property
    def facts(self) -> dict[str, str]:
        """Returns cost, noise, limits, unit and groups, a line each."""
        return {
            **({} if self.refusal is None else {"refused": f"It would be refused now. {self.refusal}"}),
            **({} if self.free is None else {"free": self.free}),
            "cost": f"{self.cost}; remaining on account {self.account!r}: {self.remaining}",
            **({} if not self.caps else {"caps": "; ".join(f"{who}: {left} left" for who, left in self.caps.items())}),
            "noise": _pending(self.program) if self.pending else "; ".join(_noises(self.program)) or "none",
            "limits": self._limits,
            "unit": self.unit,
            "groups": self._groups,
        }

    @property
    def _limits(self) -> str:
        if self.limits.total is not None:
            return f"rows per unit: {self.limits.total}"
        return f"groups per unit: {self.limits.groups}; rows per unit and group: {self.limits.rows}"

    def _unit(self, name: str) -> str:
        kinds = {output.name: output.expression.type for output in self.program.question.outputs}
        return " days" if kinds[name].is_time and math.isfinite(self.errors[name]) else ""

    @property
    def _groups(self) -> str:
        """Says whose keys they have, how many there are, and what that saves."""
        if self.program.selection is not None:
            return "private"
        if not self.program.question.keys:
            return "public"
        shown = sum(len(one.reading.public_keys or ((),)) for one in self.program.groupings or (self.program,))
        less = f"; noise is {self.saved:.3g} times smaller than for the limit" if self.saved > _NOTICED else ""
        return f"public, {shown:,} of them{less}"

    def _display(self) -> Display:
        head = f"error at {percent(self.confidence)}, in a group of {self.rows:,} rows"
        return Display(
            columns=("column", head),
            rows=[(name, error(width) + self._unit(name)) for name, width in self.errors.items()],
            numbers=[head],
            facts=self.facts,
            notes=(*filter(None, (self.meaning,)), *self.notes, "Nothing was read and nothing was spent."),
        )


def explanation(
    measurement: MeasurementPlan,
    terms: QueryBudget,
    ledger: Ledger,
    state: AccountState,
    *,
    confidence: Fraction,
    rows: int = ROWS,
    interval: str = NOISE,
) -> Explanation:
    """Returns the explanation of a question, given the present state of its account."""
    program, found = forecast(measurement, terms, confidence=confidence, rows=rows, interval=interval)
    account, event = ledger.account(measurement.account), measurement.price(terms)
    return Explanation(
        program=program.without_salt,
        account=account.name,
        unit=f"{account.unit}, {account.neighbours.value}",
        cost=cost_now(account, state, event, terms.epsilon),
        remaining=state.remaining,
        errors=found,
        confidence=confidence,
        rows=rows,
        event=event,
        remarks=(*_on_interval(measurement, interval), *to_come(measurement, terms), *measurement.facts.remarks),
        pending=bool(measurement.missing),
        details=describe_cost(account, state, event),
        meaning=meaning(
            account,
            state.budget,
            state.period,
            ApproxDP(terms.epsilon, terms.delta),
            renews=state.renews is not None,
        ),
        saved=_precision_gain(measurement, terms, program),
    )


SUPPOSED_LIMITS = (1, 10, 100)
"""Limits for which errors are shown while a table's own are not known."""


def with_supposed_limits(
    found: Explanation,
    measurement: MeasurementPlan,
    terms: QueryBudget,
    *,
    table: str,
    epsilon: Fraction,
) -> Explanation:
    """Returns an explanation that says what limits will cost, and shows errors for three of them.

    Args:
        found: the explanation by supposed limits.
        measurement: the question.
        terms: its budget.
        table: whose limits are not known yet.
        epsilon: what they cost.
    """
    told = []
    for total in SUPPOSED_LIMITS:
        other = replace(measurement, limits=Limits(total=total), built={})
        _, widths = forecast(other, terms, confidence=found.confidence, rows=found.rows)
        told.append(f"{total} row{'s' * (total > 1)}: {', '.join(f'{n} {error(w)}' for n, w in widths.items())}")
    remark = (
        f"Limits of {table} will be chosen privately before its first query, for epsilon {float(epsilon):g}, which the "
        f"account pays once. Errors by the number of rows per person that count: {'; '.join(told)}."
    )
    return replace(found, remarks=(remark, *found.remarks))


def with_offers(
    found: Explanation,
    measurement: MeasurementPlan,
    terms: QueryBudget,
    ledger: Ledger,
    replay: Replay,
    *,
    who: tuple[str, str],
) -> Explanation:
    """Returns an explanation with what earlier answers tell for nothing, what caps leave, and whether `ask` refuses.

    Args:
        found: the explanation.
        measurement: the question.
        terms: its budget.
        ledger: the ledger.
        replay: which finds earlier answers.
        who: the analyst and the project.
    """
    (analyst, project), refusal = who, None
    if replay.find(measurement, terms) is None:
        periods = measurement.periods
        refusal = ledger.refusal(found.account, found.event, analyst=analyst, project=project, periods=periods)
    return replace(
        found,
        free=replay.offer(measurement, terms),
        caps=caps(ledger, found.account, analyst, project),
        refusal=refusal_text(refusal),
    )


def _precision_gain(measurement: MeasurementPlan, terms: QueryBudget, now: Program) -> float:
    """Returns the least ratio of standard deviations, over all numbers, by limits alone and now."""
    if measurement.missing or not now.question.keys:
        return 1.0
    before = measurement.program(terms, measurement.facts, edition=ReleaseFormat.BY_LIMITS)
    both = [(before.estimators[name], each) for name, each in now.estimators.items()]
    ratios = [one.variance(before.noise) / other.variance(now.noise) for one, other in both]
    return math.sqrt(min(ratios, default=Fraction(1)))


def _on_interval(measurement: MeasurementPlan, interval: str) -> tuple[str, ...]:
    """Returns what errors cover, if it is more than noise."""
    if interval == NOISE:
        return ()
    return (ADDED.format(sample=sample_of(measurement.plan, measurement.schemas)),)


def forecast(
    measurement: MeasurementPlan, terms: QueryBudget, *, confidence: Fraction, rows: int, interval: str = NOISE
) -> tuple[Program, dict[str, float]]:
    """Returns the program of a question, and its errors: infinite where they depend on facts still to be found."""
    program = (
        measurement.widest_program(terms) if measurement.missing else measurement.program(terms, measurement.facts)
    )
    schemas = None if interval == NOISE else measurement.bounded_schemas(measurement.facts)
    found = errors(program, confidence=confidence, rows=rows, sampled=None if measurement.missing else schemas)
    unknown = measurement.unknown
    return program, {name: math.inf if name in unknown else error for name, error in found.items()}


def errors(program: Program, *, confidence: Fraction, rows: int, sampled: Schemas | None = None) -> dict[str, float]:
    """Returns for each number how far it may be from the truth, in an example group; infinite if without limit.

    Args:
        program: of the question.
        confidence: of each error.
        rows: of the group.
        sampled: the declared tables, if errors are those of the population.
    """
    answer = example_answer(program, confidence=confidence, rows=rows, sampled=sampled)
    return {name: _error(cell) for name, cell in answer.items() if isinstance(cell, Measured)}


def example_answer(
    program: Program, *, confidence: Fraction, rows: int, sampled: Schemas | None = None
) -> dict[str, Cell]:
    """Returns the answer for an example group with values in the middle of their bounds, before noise."""
    released = _example_release(program, rows)
    shown = released if sampled is None else PopulationStatistics(released, sampled)
    first, *others = shown.rows(confidence)
    return {name: max((row[name] for row in (first, *others)), key=_width) for name in first}


def _example_release(program: Program, rows: int) -> ReleasedStatistics:
    """Returns the release of one group, with one group of each question that is released with it."""
    steps = [step for step in program.question.steps if not isinstance(step, FilterGroups)]
    alone = tuple(map(_of_one_group, steps))
    question = replace(program.question, having=None, order=(), limit=None, offset=0, steps=alone)
    statistics = [number for measure in program.measures for number in _in_the_middle(measure, rows)]
    key = (None,) * len(question.labels)
    statistics += [number for draws in program.draws for number in draws.example_numbers(rows)]
    beside = [_example_release(one, rows) for one in program.beside]
    alike = replace(program, question=question, tables=None)  # one group has the noise of the noisiest
    return ReleasedStatistics(alike, KeyRows.of([key]), np.array([statistics], dtype=object), beside)


def _of_one_group(step: PostProcessingStep) -> PostProcessingStep:
    """Returns the step for one example group that has equal keys and passes every FILTER."""
    if isinstance(step, AttachQuestion):
        return replace(step, on=())
    if not isinstance(step, Regroup):
        return step
    return replace(
        step, folds=tuple(replace(fold, argument=_unfiltered_argument(fold.argument)) for fold in step.folds)
    )


def _unfiltered_argument(argument: Expression | None) -> Expression | None:
    """Returns what an aggregate takes of groups that satisfy its FILTER, which is CASE WHEN it holds."""
    return argument.arguments[1] if isinstance(argument, FunctionCall) and argument.function == "if" else argument


def _in_the_middle(measure: AdditiveNoise, rows: int) -> list[int]:
    """Returns what meets noise of such a group."""
    exact = [_middle(statistic, rows) for statistic in measure.form.statistics]
    pairs = zip(exact, grains_of([measure]), strict=True)
    return [int(round_column(column_of([total]), grain)[0]) for total, grain in pairs]


def _middle(statistic: Statistic, rows: int) -> int:
    """Returns the statistic of rows that all have a value, half way between its bounds."""
    each = _middle_term(statistic) if statistic.kind in ("sum", "product", "distinct_sum") else 1
    return 0 if statistic.kind == "nulls" else rows * statistic.times * each


def _middle_term(statistic: Statistic) -> int:
    term = (statistic.low + statistic.high) // 2 - statistic.shift
    return term if statistic.factor is None else term * _middle_term(statistic.factor) - statistic.less


def _error(cell: Measured) -> float:
    if cell.value is None:
        return math.inf
    if isinstance(cell, NoisyTime):
        return max(cell.high - cell.value, cell.value - cell.low) / dt.timedelta(days=1)
    return float(max(cell.high - cell.value, cell.value - cell.low))


def _width(cell: Cell) -> float:
    return _error(cell) if isinstance(cell, Measured) else 0.0


def _pending(program: Program) -> str:
    law = [f"discrete {program.noise.law.capitalize()}"] if program.measures else ["exponential mechanism"]
    return f"{law[0]}, with a scale that depends on what is chosen"


def _noises(program: Program) -> list[str]:
    return [*map(str, program.measures), *(law for draws in program.draws for law in draws.laws)]


def to_come(measurement: MeasurementPlan, terms: QueryBudget) -> tuple[str, ...]:
    """Returns what will be found out first, and for how much."""
    missing = measurement.missing
    return tuple(
        f"{probe.subject} will be chosen privately for epsilon {float(of_each_probe(terms, len(missing))):g}, "
        "then remembered."
        for probe in missing
    )


def caps(ledger: Ledger, account: str, analyst: str, project: str) -> dict[str, RemainingBudget]:
    """Returns what the caps leave that a question would count against, too, by whose they are."""
    found: dict[str, RemainingBudget] = {}
    if ledger.analyst_cap(analyst, account=account) is not None:
        found[f"analyst {analyst}"] = ledger.balance(account, analyst=analyst).remaining
    if project:
        found[f"project {project}"] = ledger.balance(account, project=project).remaining
    return found
