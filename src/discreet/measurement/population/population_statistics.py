"""A release of a random sample as numbers of its population: which questions may be, and how each group follows.

Everything is a function of released numbers and of declarations: it costs nothing, and is done each time it is asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter, UnsupportedQuery
from discreet.hint_text import Hint
from discreet.measurement.aggregates import aggregation
from discreet.measurement.aggregates.aggregation import argument_of
from discreet.measurement.aggregates.quantile import QuantileEstimator
from discreet.measurement.aggregates.variance import VarianceEstimator
from discreet.measurement.intervals.estimators import Estimator, RatioEstimator, TotalEstimator
from discreet.measurement.population.population_estimators import PopulationRatio, PopulationTotal
from discreet.measurement.population.population_quantile import PopulationQuantile
from discreet.measurement.probes.probes import Schemas, describe_counted_rows, read_by
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.measurement.program.program import Program
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.model.group_columns import ColumnarRows, KeyRows
from discreet.plan.model.nodes import Aggregate, ColumnRef, Question
from discreet.plan.model.sample import POPULATION, Sample, SimpleSample
from discreet.plan.model.schema import TableSchema
from discreet.plan.post.outputs import Cell

ADDED = "Intervals cover noise and the random sampling of {sample}. COUNT and SUM are totals of the population."
LEFT_OUT = "Intervals cover noise only, not the random sampling of {sample}."
OFFERED = ' Ask again with the interval "population" to add it. This is free.'

COUNTS = frozenset({"count", "count_values", "count_units"})
_TOTALS = COUNTS | {"sum"}
_SPREADS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
_KINDS = _TOTALS | _SPREADS | {"mean", "quantile"}

_NORMAL = 2.3  # standard deviations, for shares that are proposed: more than an interval of 95 % needs
_PERCENT = 100


def sample_of(question: Question, schemas: Schemas) -> Sample:
    """Returns the sample that the people are whose rows a question counts.

    Raises:
        InvalidParameter: if a protected table that it reads is none, or is another one.
    """
    tables = [table for table in read_by(replace(question, beside=()), schemas) if not table.public]
    for table in tables:
        if table.sample is None:
            hint = Hint(
                "Leave {interval} out. Or have the steward declare the sampling design of the table (sample_of)."
            )
            condition = f"to be noise: table {table.name!r} is not declared a random sample"
            raise InvalidParameter("interval", "population", condition, hint)
        if table.sample != tables[0].sample:
            condition = f"to be noise: {tables[0].name!r} and {table.name!r} are different samples"
            raise InvalidParameter(
                "interval", "population", condition, Hint("Query one of them. Or leave {interval} out.")
            )
    found: Sample = tables[0].sample  # type: ignore[assignment]
    return found


def as_covered(
    released: ReleasedStatistics, schemas: Schemas, interval: str
) -> tuple[ReleasedStatistics, tuple[str, ...]]:
    """Returns a release as its intervals shall cover it, and what is said of that; nothing unless it is a sample."""
    if interval == POPULATION:
        found = PopulationStatistics(released, schemas)
        return found, (ADDED.format(sample=found.design),)
    declared = schemas.get(released.program.question.table)
    if declared is None or declared.sample is None:
        return released, ()
    offered = OFFERED if _has_population(released.program, schemas) else ""
    return released, (LEFT_OUT.format(sample=declared.sample) + offered,)


def _has_population(program: Program, schemas: Schemas) -> bool:
    try:
        check_population(program, schemas)
    except (InvalidParameter, UnsupportedQuery):
        return False
    return True


def check_population(program: Program, schemas: Schemas) -> None:
    """Refuses a question whose numbers have no interval for the population, by public facts alone.

    Raises:
        InvalidParameter: if a table is not declared a sample.
        UnsupportedQuery: if an aggregate is of no such kind, groups are private, or strata are mixed.
    """
    for part in (replace(program, beside=()), *program.beside):
        design = sample_of(part.question, schemas)
        if any(one.selection is not None for one in (part, *part.groupings)):
            raise UnsupportedQuery(
                "Which private groups are shown depends on the sample, so they have no interval for the population.",
                Hint("Have the keys declared, or leave {interval} out."),
            )
        for aggregate in part.question.aggregates:
            _check_aggregate(aggregate, part, design)
        _check_strata(part.question, design)


def _check_aggregate(aggregate: Aggregate, program: Program, design: Sample) -> None:
    word = aggregation(aggregate.kind).word
    if aggregate.kind not in _KINDS:
        raise UnsupportedQuery(
            f"A sample does not bound {word} of the population.",
            Hint("Ask for COUNT, SUM, AVG, VARIANCE, STDDEV or quantiles, or leave {interval} out."),
        )
    if aggregate.kind != "quantile":
        return
    q, others = _share(aggregate), [one for one in program.question.aggregates if _is_nearby(one, aggregate)]
    around = any(_share(one) < q for one in others) and any(_share(one) > q for one in others)
    if (not around and not _is_nearby_of_others(aggregate, program.question)) or _number(aggregate, program) is None:
        raise UnsupportedQuery(
            "The quantile of a population lies between quantiles of the sample, and the number of values says which.",
            f"Ask for these with it, such as {_proposal(aggregate, program, design)}.",
        )


def _share(aggregate: Aggregate) -> Fraction:
    return aggregate.quantile if aggregate.quantile is not None else Fraction(1, 2)


def _is_nearby(one: Aggregate, other: Aggregate) -> bool:
    return one.kind == other.kind == "quantile" and one.argument == other.argument and one.quantile != other.quantile


def _is_nearby_of_others(aggregate: Aggregate, question: Question) -> bool:
    """Returns whether it is only asked to bound others: the first or the last of three or more."""
    return len({_share(one) for one in question.aggregates if _is_nearby(one, aggregate)}) >= 2


def _proposal(aggregate: Aggregate, program: Program, design: Sample) -> str:
    """Returns a count and two quantiles that are far enough away in a group of the whole sample."""
    q, rows = float(_share(aggregate)), most_rows(program)
    size = sum(one.size for one in _samples(design))
    apart = (_NORMAL * math.sqrt(rows * q * (1 - q) * size) + rows + 2) / size
    low, high = math.floor((q - apart) * _PERCENT) / _PERCENT, math.ceil((q + apart) * _PERCENT) / _PERCENT
    shares = f"QUANTILE(x, {max(low, 0.01):g}) and QUANTILE(x, {min(high, 0.99):g})"
    return f"COUNT(x), {shares}, where x is its argument"


def _samples(design: Sample) -> tuple[SimpleSample, ...]:
    whole = design.together
    return tuple(design.strata.values()) if whole is None else (whole,)


def _check_strata(question: Question, design: Sample) -> None:
    """Refuses groups that mix strata which were not drawn in proportion to their sizes."""
    groupings = question.sets or (tuple(range(len(question.keys))),)
    place = _stratum_place(question, design)
    if design.together is None and any(place not in grouping for grouping in groupings):
        by, table = design.by, question.table
        added = f"SELECT SUM(n) AS n FROM (SELECT {by}, COUNT(*) AS n FROM {table} GROUP BY {by})"  # noqa: S608 - a hint
        raise UnsupportedQuery(
            f"Each {by} was sampled at another rate, so one number of several has no weight for each.",
            f"Add {by} to GROUP BY. To put the groups together, add up their numbers: {added}.",
        )


def _stratum_place(question: Question, design: Sample) -> int | None:
    """Returns which key of a question is the column of the strata."""
    expressions = [key.expression for key in question.keys]
    named = [place for place, x in enumerate(expressions) if isinstance(x, ColumnRef) and x.name == design.by]
    return named[0] if named and question.source is None else None


def most_rows(program: Program) -> int:
    """Returns how many rows one person has in a group at most."""
    limits = program.contribution.limits
    return limits.rows if program.tables is None else limits.most_rows


# ------------------------------------------------------------------------------------------------------------ estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adapter:
    """Makes estimators of a sample those of its population.

    Args:
        program: with all estimators.
        schema: what is public about the rows.
        sample: how they were drawn.
        plain: whether the estimators are those of one release, and not of several from which it follows.
    """

    program: Program
    schema: TableSchema
    sample: SimpleSample
    plain: bool

    def adapt(self, aggregate: Aggregate, estimator: Estimator) -> Estimator:
        """Returns the estimator of an aggregate for the population."""
        rows = most_rows(self.program)
        if isinstance(estimator, QuantileEstimator):
            return self._quantile(aggregate, estimator, rows)
        if isinstance(estimator, VarianceEstimator):
            squares = self._mean(estimator.squares, rows)
            return replace(estimator, sample=False, mean=self._mean(estimator.mean, rows), squares=squares)
        if isinstance(estimator, RatioEstimator):
            return replace(self._mean(estimator, rows), spread=self._spread(estimator))
        if not isinstance(estimator, TotalEstimator):
            raise InternalError(f"No number of a population follows from {aggregation(aggregate.kind).word}.")
        low, high = self._part(aggregate, rows)
        mean = self._released_mean(aggregate, rows)
        return PopulationTotal(base=estimator, sample=self.sample, low=low, high=high, mean=mean)

    def _released_mean(self, aggregate: Aggregate, rows: int) -> PopulationRatio | None:
        """Returns the mean of the values of a sum, if the question releases their variance."""
        named = self.program.question.aggregates if self.plain and aggregate.kind == "sum" else ()
        alike = [self.program.estimators[one.name] for one in named if one.argument == aggregate.argument]
        spread = next((one for one in alike if isinstance(one, VarianceEstimator)), None)
        return None if spread is None else replace(self._mean(spread.mean, rows), spread=spread)

    def _mean(self, estimator: RatioEstimator, rows: int) -> PopulationRatio:
        return PopulationRatio(
            top=estimator.top,
            bottom=estimator.bottom,
            centre=estimator.centre,
            low=estimator.low,
            high=estimator.high,
            rounding=estimator.rounding,
            sample=self.sample,
            rows=rows,
        )

    def _spread(self, mean: RatioEstimator) -> VarianceEstimator | None:
        """Returns the variance of the same values, if the question releases it."""
        if not self.plain:
            return None
        spreads = (one for one in self.program.estimators.values() if isinstance(one, VarianceEstimator))
        return next((one for one in spreads if one.mean == mean), None)

    def _part(self, aggregate: Aggregate, rows: int) -> tuple[Fraction, Fraction]:
        """Returns the smallest and the largest part that one person has in a total."""
        if aggregate.kind in COUNTS:
            return Fraction(0), Fraction(1 if aggregate.kind == "count_units" else rows)
        limits = bounds(argument_of(aggregate), self.schema)
        if limits is None:
            raise InternalError("A sum without bounds was released.")
        return min(rows * limits.low, Fraction(0)), max(rows * limits.high, Fraction(0))

    def _quantile(self, aggregate: Aggregate, estimator: QuantileEstimator, rows: int) -> Estimator:
        others = [one.name for one in self.program.question.aggregates if _is_nearby(one, aggregate)]
        nearby = [one for name in others if isinstance(one := self.program.estimators[name], QuantileEstimator)]
        number = _number(aggregate, self.program)
        if number is None:
            return estimator
        draws = tuple(one.draw for one in nearby)
        return PopulationQuantile(draw=estimator.draw, nearby=draws, number=number, sample=self.sample, rows=rows)


def _number(aggregate: Aggregate, program: Program) -> TotalEstimator | None:
    """Returns the number of values of an aggregate's argument, if something in its question counts them."""
    alike = [one for one in program.question.aggregates if one.argument == aggregate.argument]
    found = (program.estimators[one.name].values for one in alike if one.kind in ("mean", "count_values", "sum"))
    linear = next((values for values in found if values is not None), None)
    return None if linear is None else TotalEstimator(linear, whole=True)


class PopulationStatistics(ReleasedStatistics):
    """A release whose numbers are those of the population that its people were drawn from.

    Args:
        raw: what was released.
        schemas: the declared tables, with the bounds that were found.
    """

    def __init__(self, raw: ReleasedStatistics, schemas: Schemas) -> None:
        beside = [PopulationStatistics(one, schemas) for one in raw.beside]
        super().__init__(raw.program, raw.key_rows, raw.noisy, beside)
        self._raw, self._schema = raw, describe_counted_rows(raw.program.question, schemas)
        self._design = sample_of(raw.program.question, schemas)

    @property
    def design(self) -> Sample:
        """Returns the sample that the people are."""
        return self._design

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns where the numbers come from."""
        return self._raw.notes

    @property
    def own_statistics(self) -> None:
        """Returns None, because sums over groups are drawn from the same sample: their errors depend on each other."""

    @property
    def without_salt(self) -> ReleasedStatistics:
        """Returns the same, to go out with an answer."""
        made = PopulationStatistics.__new__(PopulationStatistics)
        made.__dict__.update(self.__dict__)
        made._raw = self._raw.without_salt
        made.program, made.beside = made._raw.program, tuple(one.without_salt for one in self.beside)
        return made

    def groups(self, outside: Fraction) -> ColumnarRows[Cell]:
        """Returns keys and aggregates of each group of the population; see `ReleasedStatistics.groups`."""
        designs = self._designs()
        distinct = list(dict.fromkeys(designs))
        if len(distinct) == 1:
            return self._of_sample(self._raw, distinct[0]).groups(outside)
        cells: dict[str, list[Cell]] = {}
        for sample in distinct:
            places = [place for place, one in enumerate(designs) if one == sample]
            for name, column in self._groups_at(places, sample, outside).items():
                found = cells.setdefault(name, [None] * len(designs))
                for place, cell in zip(places, column, strict=True):
                    found[place] = cell
        return ColumnarRows(cells, len(designs))

    def _groups_at(
        self, places: Sequence[int], sample: SimpleSample, outside: Fraction
    ) -> Mapping[str, Sequence[Cell]]:
        """Returns some groups, all of one sample."""
        raw, plain = self._raw, self._is_plain
        part = ReleasedStatistics(raw.program, KeyRows.of([raw.keys[place] for place in places]), raw.noisy[places])
        found = self._of_sample(part if plain else raw, sample).groups(outside).columns
        return found if plain else {name: [column[place] for place in places] for name, column in found.items()}

    @property
    def _is_plain(self) -> bool:
        """Returns whether its groups are those of one release, each with noise of its own."""
        return type(self._raw) is ReleasedStatistics and self._raw.program.tables is None

    def _of_sample(self, released: ReleasedStatistics, sample: SimpleSample) -> ReleasedStatistics:
        """Returns a release with all its groups taken as of one sample."""
        adapter = _Adapter(program=released.program, schema=self._schema, sample=sample, plain=self._is_plain)
        return released.adapt(adapter.adapt)

    def _designs(self) -> list[SimpleSample]:
        """Returns for each group the sample that its people are."""
        place = _stratum_place(self.program.question, self._design)
        strata, length = self._design.strata, self.key_rows.length
        if place is None or not strata:
            return [self._widest] * max(length, 1)
        return [strata.get(key[place]) or self._widest for key in self.keys] or [self._widest]

    @property
    def _widest(self) -> SimpleSample:
        """Returns the sample of all strata; where they differ, groups of no stratum are examples: the widest error."""
        return max(_samples(self._design), key=lambda sample: sample.factor)
