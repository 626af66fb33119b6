"""Budgets side by side: how wrong an answer would be, and how much an attacker could learn. Public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.accounting import Risk, risk
from discreet.curator.asking.explanation import ROWS, errors, forecast
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.measurement.program.program import choose
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.plan.model.nodes import Question
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import ApproxDP, Loss, Neighbours, PureDP, events
from discreet.privacy.amounts import below_one
from discreet.report import charts, render
from discreet.report.charts import Spec
from discreet.report.display import Display, DisplayMixin, amount, error, percent
from discreet.requests.request import CANDIDATES
from discreet.sql.select import parse

_LEAST_CHANCE, _LARGEST_CHANCE = Fraction(1, 10**6), Fraction(1, 2)
_RISKS = ("found of 100 people", "50 % suspicion becomes")
_TABLE, _UNIT, _COLUMN = "people", "person", "x"
_COUNT, _MEAN = 'SELECT COUNT(*) AS "count" FROM people', "SELECT AVG(x) AS mean FROM people"

Candidate = check.Number | PureDP | ApproxDP
"""An epsilon, or a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetChoice:
    """One budget.

    Attributes:
        budget: what would be spent.
        errors: for each number how far it may be from the truth at the stated confidence; infinite if anywhere.
        risk: what an attacker could learn about one unit.
    """

    budget: Loss
    errors: Mapping[str, float]
    risk: Risk

    @property
    def words(self) -> str:
        """Returns the risk in a sentence."""
        wrong, found = (_in_100(share) for share in (self.risk.false_positives, self.risk.power))
        prior, sure = (_in_100(share) for share in (self.risk.prior, self.risk.posterior))
        but = f", except with a probability of {float(self.risk.chance):g}" if self.risk.chance else ""
        return (
            f"An attacker with a {wrong} % false-positive rate finds at most {found} % of the people in the data. "
            f"A suspicion of {prior} % grows to at most {sure} %{but}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices(DisplayMixin):
    """Budgets side by side, in the order in which they were named; nothing was read and nothing was spent.

    Attributes:
        choices: one for each budget.
        confidence: of each error.
        rows: of the imagined group on which errors of means depend.
    """

    choices: tuple[BudgetChoice, ...]
    confidence: Fraction
    rows: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the names of the numbers whose errors are shown."""
        return tuple(self.choices[0].errors)

    @property
    def records(self) -> tuple[dict[str, Any], ...]:
        """Returns a row for each budget as plain values; an error without a bound is None."""
        return tuple(_record(choice) for choice in self.choices)

    @property
    def about(self) -> str:
        """Returns what the errors are errors of."""
        return f"Errors are for {percent(self.confidence)} intervals, in a group of {self.rows:,} rows."

    @property
    def headings(self) -> tuple[str, ...]:
        """Returns the columns of a table for people."""
        return ("budget", *(f"error of {name}" for name in self.columns), *_RISKS)

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """Returns the rows of a table for people."""
        return tuple(_cells(choice) for choice in self.choices)

    def _display(self) -> Display:
        words = (f"{choice.budget}: {choice.words}" for choice in self.choices)
        return Display(
            columns=self.headings,
            rows=self.cells,
            numbers=self.headings[1:],
            notes=(self.about, *words, "Nothing was read and nothing was spent."),
        )

    def spec(self) -> Spec:
        """Returns a chart as Vega-Lite: by budget, the error of each number, and what an attacker gains."""
        drawn = [
            self._panel(f"error of {name}", ".3~g", [choice.errors[name] for choice in self.choices])
            for name in self.columns
        ]
        drawn.append(self._panel(_RISKS[0], ".1f", [100 * choice.risk.power for choice in self.choices]))
        sure = [100 * choice.risk.posterior for choice in self.choices]
        return charts.panels([*drawn, self._panel(_RISKS[1], ".1f", sure)])

    def chart(self) -> Any:
        """Draws the same as an Altair chart; without Altair, a dictionary of Vega-Lite."""
        return render.chart(self.spec())

    def _panel(self, title: str, digits: str, figures: Sequence[float]) -> Spec:
        pairs = zip(self.choices, figures, strict=True)
        lengths = {str(choice.budget): figure for choice, figure in pairs if math.isfinite(figure)}
        return charts.lengths(lengths, title=title, digits=digits)


def choose_epsilon(
    candidates: Sequence[Candidate] = CANDIDATES,
    *,
    delta: check.Number = 0,
    bounds: tuple[check.Number, check.Number] | None = None,
    rows: int = ROWS,
    limits: Limits | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: check.Number = CONFIDENCE,
) -> Choices:
    """Returns what budgets buy and give away, without a table: for a count, and for a mean between bounds.

    Args:
        candidates: epsilons, or budgets.
        delta: of those that are epsilons.
        bounds: of the values whose mean is asked; without them, only a count is.
        rows: how many there are, on which the error of a mean depends.
        limits: how many rows of one person count; one, unless said otherwise.
        neighbours: the relation.
        confidence: of each error.

    Raises:
        InvalidParameter: if a budget or another parameter is outside its domain.

    >>> options = choose_epsilon([0.1, 1], bounds=(0, 100))
    >>> [(str(c.budget), c.errors["count"], round(c.risk.power, 3)) for c in options.choices]
    [('epsilon=0.1', 30.0, 0.055), ('epsilon=1', 3.0, 0.136)]
    """
    chance = check.probability(confidence=confidence)
    imagined = check.integer(rows=rows, at_least=1, at_most=10**18)
    schema = _example_schema(bounds, limits or Limits(), Neighbours(neighbours))
    questions = _questions(schema)

    def forecast_choice(terms: QueryBudget) -> BudgetChoice:
        programs = [choose(q, schema, epsilon=terms.epsilon, delta=terms.delta) for q in questions]
        found = {name: error for p in programs for name, error in errors(p, confidence=chance, rows=imagined).items()}
        promise = events.Approx(terms.epsilon, terms.delta) if terms.delta else events.Pure(terms.epsilon)
        return _choice(terms, found, promise, schema.neighbours)

    slack = below_one(delta=delta)
    choices = tuple(forecast_choice(terms_of(candidate, slack)) for candidate in check_candidates(candidates))
    return Choices(choices=choices, confidence=chance, rows=imagined)


def compare(
    measurement: MeasurementPlan, budgets: Sequence[QueryBudget], *, confidence: Fraction, rows: int
) -> Choices:
    """Compares budgets for one question, from its program at each of them."""

    def forecast_choice(terms: QueryBudget) -> BudgetChoice:
        program, found = forecast(measurement, terms, confidence=confidence, rows=rows)
        event = measurement.price(terms)
        return _choice(terms, found, event, program.contribution.neighbours)

    return Choices(choices=tuple(map(forecast_choice, budgets)), confidence=confidence, rows=rows)


def check_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidates, if there are any.

    Raises:
        InvalidParameter: if there are none, or it is no list.
    """
    if isinstance(candidates, str) or not candidates:
        raise InvalidParameter("candidates", candidates, "to be a list of budgets", "Pass e.g. [0.1, 0.5, 1].")
    return list(candidates)


def terms_of(candidate: Candidate, delta: Fraction) -> QueryBudget:
    """Returns a candidate as an epsilon and a delta; a budget brings its own."""
    if isinstance(candidate, ApproxDP):
        return QueryBudget(check.positive(epsilon=candidate.epsilon), candidate.delta)
    if isinstance(candidate, PureDP):
        return QueryBudget(check.positive(epsilon=candidate.epsilon), Fraction(0))
    return QueryBudget(check.positive(epsilon=candidate), delta)


def _choice(
    terms: QueryBudget, found: Mapping[str, float], event: events.Event, neighbours: Neighbours
) -> BudgetChoice:
    """Returns one budget; its posterior may be exceeded with ten times delta: with delta, anything may be revealed."""
    chance = min(max(_LEAST_CHANCE, 10 * terms.delta), _LARGEST_CHANCE)
    budget = ApproxDP(terms.epsilon, terms.delta) if terms.delta else PureDP(terms.epsilon)
    return BudgetChoice(budget=budget, errors=found, risk=risk(event, chance=chance, neighbours=neighbours))


def _example_schema(
    bounds: tuple[check.Number, check.Number] | None, limits: Limits, neighbours: Neighbours
) -> TableSchema:
    columns = {_UNIT: ColumnSchema(name=_UNIT, type=Type.INT)}
    if bounds is not None:
        low, high = (check.rational(bounds=end) for end in bounds)
        columns[_COLUMN] = ColumnSchema(name=_COLUMN, type=Type.FLOAT, bounds=ColumnBounds(low, high))
    return TableSchema(name=_TABLE, columns=columns, unit=_UNIT, limits=limits, neighbours=neighbours, account=_TABLE)


def _questions(schema: TableSchema) -> list[Question]:
    """Returns the questions, each to be asked alone with the whole budget."""
    asked = [_COUNT, _MEAN] if _COLUMN in schema.columns else [_COUNT]
    return [parse(sql, {_TABLE: schema}) for sql in asked]


def _record(choice: BudgetChoice) -> dict[str, Any]:
    budget = choice.budget
    return {
        "epsilon": float(getattr(budget, "epsilon", 0)),
        "delta": float(getattr(budget, "delta", 0)),
        **{f"{name}_error": error if math.isfinite(error) else None for name, error in choice.errors.items()},
        "power": choice.risk.power,
        "posterior": choice.risk.posterior,
        "guess": choice.risk.guess,
        "words": choice.words,
    }


def _cells(choice: BudgetChoice) -> tuple[str, ...]:
    risks = amount(100 * choice.risk.power), f"{amount(100 * choice.risk.posterior)} %"
    return (str(choice.budget), *map(error, choice.errors.values()), *risks)


def _in_100(share: float | Fraction) -> str:
    """Returns a rate in 100, never less than it is: ends are rounded up to a tenth."""
    return f"{math.ceil(round(1000 * float(share), 6)) / 10:g}"
