"""From a question to a program: what will be read, which noise it meets, what that costs. Public facts only.

Nothing here sees data: forms, laws and shares are chosen from declared bounds, limits, public keys and the budget
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from discreet.accounting.zcdp import rho_for
from discreet.curator.measure import Law, Measure
from discreet.errors import UnsupportedQuery
from discreet.exact import float_below
from discreet.mechanisms.partition_selection import share_of_delta
from discreet.mechanisms.tails import discrete_gaussian_reach, laplace_reach
from discreet.plan.aggregates import (
    Form,
    count_forms,
    count_units_forms,
    count_values_forms,
    mean_forms,
    sum_forms,
)
from discreet.plan.bounds import bounds
from discreet.plan.nodes import Aggregate, Column, Question, Value
from discreet.plan.reading import Bounding, Reading
from discreet.plan.schema import Limits, TableSchema
from discreet.plan.stability import Contribution
from discreet.privacy import Neighbours, events

MOST_KEYS = 10**6  # public groups of one question


@dataclass(frozen=True, slots=True)
class Threshold:
    """Private keys: a group is shown if its noisy number of rows, statistic 0 of a measure, reaches a threshold.

    A group that only one unit has is shown with probability at most its share of delta: at most `limits.groups` such
    groups, of at most `limits.rows` rows each, so (0, delta)-DP beside the noise (as in `PartitionSelection`).
    """

    measure: int
    smallest: int
    delta: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One read and its noise.

    Args:
        question: what was asked.
        reading: what the engine computes; its statistics are those of the measures, in order.
        measures: noise for each form.
        uses: for each aggregate, the measure it is finished from.
        threshold: how private keys are selected, None if all keys are public.
        contribution: what one unit can change.
        event: the whole price.
    """

    question: Question
    reading: Reading
    measures: tuple[Measure, ...]
    uses: dict[str, int]
    threshold: Threshold | None
    contribution: Contribution
    event: events.Event


def choose(
    question: Question,
    schema: TableSchema,
    *,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    limits: Limits | None = None,
    salt: str = "",
) -> Program:
    """The program with the least noise at this budget, by public facts.

    Pure budgets get Laplace noise. With a delta, Gaussian noise is taken where its error is smaller; private keys need
    a delta, which they share with Gaussian noise.

    Raises:
        UnsupportedQuery: if keys are private and there is no delta, or an argument has no bounds.
    """
    bounded = limits or schema.limits
    contribution = Contribution(
        limits=bounded if schema.unit is not None else Limits(),
        grouped=bool(question.keys),
        neighbours=schema.neighbours,
    )
    keys = public_keys(question, schema)
    private = bool(question.keys) and keys is None
    if private:
        _check_private(schema, delta)
    noise_delta = delta / 2 if private else delta
    wanted = _Wanted.of(question, schema, count_first=private)
    measures = min(
        (wanted.measures(law, contribution, epsilon, noise_delta) for law in _laws(noise_delta)), key=_badness
    )
    left = delta - noise_delta if measures[0].law == "gaussian" else delta  # Laplace noise needs no delta
    threshold = _threshold(measures, contribution.limits, left) if private else None
    parts = [measure.event for measure in measures]
    if threshold is not None:
        parts.append(events.Approx(0, threshold.delta))
    return Program(
        question=question,
        reading=_reading(question, _bounding(schema, contribution, salt), keys, measures),
        measures=measures,
        uses=wanted.uses,
        threshold=threshold,
        contribution=contribution,
        event=events.Composed(parts),
    )


def public_keys(question: Question, schema: TableSchema) -> tuple[tuple[Value, ...], ...] | None:
    """All combinations of declared keys if every key is a column with declared ones; None if some are private."""
    declared = []
    for key in question.keys:
        column = schema.columns.get(key.expression.name) if isinstance(key.expression, Column) else None
        if column is None or column.keys is None:
            return None
        declared.append(column.keys)
    size = 1
    for values in declared:
        size *= len(values)
    if size > MOST_KEYS:
        raise UnsupportedQuery(
            f"The question has {size} groups of public keys.", f"Group by fewer columns: at most {MOST_KEYS} groups."
        )
    return tuple(product(*declared)) if question.keys else None


def _check_private(schema: TableSchema, delta: Fraction) -> None:
    if not delta:
        raise UnsupportedQuery(
            "The groups of this question are private, and showing them needs a delta.",
            "Declare the keys with keys=..., or ask with a delta, e.g. delta=1e-8.",
        )
    if schema.neighbours is not Neighbours.ADD_REMOVE:
        raise UnsupportedQuery(
            "Private groups are only selected under the add/remove relation.", "Declare the keys with keys=..."
        )


def _laws(delta: Fraction) -> tuple[Law, ...]:
    return ("laplace", "gaussian") if delta else ("laplace",)


def _badness(measures: Sequence[Measure]) -> Fraction:
    """The product of the variances: smaller is better, whatever the units."""
    result = Fraction(1)
    for measure in measures:
        result *= measure.variance
    return result


Forms = tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The forms a question needs, each once, and which aggregate uses which."""

    forms: tuple[Forms, ...]
    uses: dict[str, int]

    @classmethod
    def of(cls, question: Question, schema: TableSchema, *, count_first: bool) -> _Wanted:
        """Equal forms are shared; a selection of keys looks at the number of rows, which then comes first."""
        forms: list[Forms] = [count_forms()] if count_first else []
        uses = {}
        for aggregate in question.aggregates:
            found = _FORMS[aggregate.kind](aggregate, schema)
            if found not in forms:
                forms.append(found)
            uses[aggregate.name] = forms.index(found)
        return cls(tuple(forms), uses)

    def measures(self, law: Law, contribution: Contribution, epsilon: Fraction, delta: Fraction) -> tuple[Measure, ...]:
        """The budget in equal shares."""
        count = len(self.forms)
        if law == "laplace":
            return tuple(Measure.laplace(forms[0], contribution, epsilon / count) for forms in self.forms)
        rho = Fraction(rho_for(float_below(epsilon), float_below(delta))) / count
        return tuple(Measure.gaussian(forms[-1], contribution, rho) for forms in self.forms)


def _bounded(build: Callable[..., Forms], name: str) -> Callable[[Aggregate, TableSchema], Forms]:
    def forms(aggregate: Aggregate, schema: TableSchema) -> Forms:
        argument = aggregate.argument
        limits = None if argument is None else bounds(argument, schema)
        if argument is None or limits is None:
            raise UnsupportedQuery(
                f"{name} needs public bounds of its argument.",
                f"Declare them with bounds=..., or clip in the question: {name}(GREATEST(LEAST(x, 100), 0)).",
            )
        return build(argument, limits)

    return forms


def _values(aggregate: Aggregate, _: TableSchema) -> Forms:
    if aggregate.argument is None:
        return count_forms()
    return count_values_forms(aggregate.argument)


_FORMS: dict[str, Callable[[Aggregate, TableSchema], Forms]] = {
    "count": lambda _aggregate, _schema: count_forms(),
    "count_values": _values,
    "count_units": lambda _aggregate, _schema: count_units_forms(),
    "sum": _bounded(sum_forms, "SUM"),
    "mean": _bounded(mean_forms, "AVG"),
}


def _threshold(measures: Sequence[Measure], limits: Limits, delta: Fraction) -> Threshold:
    """The smallest count that is shown: a unit's own rows, and a distance that noise passes with its share of delta."""
    share = share_of_delta(delta, limits.groups)
    reach = laplace_reach if measures[0].law == "laplace" else discrete_gaussian_reach
    return Threshold(0, limits.rows + reach(measures[0].scales[0], 2 * share) + 1, delta)


def _reading(
    question: Question,
    bounding: Bounding | None,
    keys: tuple[tuple[Value, ...], ...] | None,
    measures: Sequence[Measure],
) -> Reading:
    return Reading(
        table=question.table,
        where=question.where,
        keys=tuple(key.expression for key in question.keys),
        public_keys=keys,
        bounding=bounding,
        statistics=tuple(statistic for measure in measures for statistic in measure.form.statistics),
    )


def _bounding(schema: TableSchema, contribution: Contribution, salt: str) -> Bounding | None:
    if schema.unit is None:
        return None
    return Bounding(unit=schema.unit, groups=contribution.groups, rows=contribution.limits.rows, salt=salt)
