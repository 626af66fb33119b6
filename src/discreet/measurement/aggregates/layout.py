"""All aggregates of one question as few forms: one noisy count feeds COUNT, AVG and the selection of keys.

Two layouts differ in how arguments are counted. In the *paired* one each argument counts itself, which is best for
Laplace noise and few arguments. In the *centred* one all arguments share a count of rows, which is best for Gaussian
noise and for many.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from discreet.measurement.aggregates.count import distinct_form, rows_form, units_form, values_form
from discreet.measurement.aggregates.covariance import Arguments, Pair, in_order, pairs
from discreet.measurement.aggregates.form import Form, Recipe, Size, Total
from discreet.measurement.aggregates.linear import Linear
from discreet.measurement.aggregates.mean import (
    Moments,
    centred_form,
    centred_moments,
    paired_form,
    paired_moments,
    paired_nulls,
)
from discreet.measurement.aggregates.steps import SPREADS, Steps, bounded_steps
from discreet.measurement.aggregates.sum import sum_form
from discreet.measurement.aggregates.variance import (
    centred_spread,
    centred_spread_form,
    paired_spread,
    paired_spread_form,
    variance,
)
from discreet.plan.model.nodes import Aggregate, Expression, Question
from discreet.plan.model.schema import TableSchema

_VALUES, _SUM = frozenset({"count_values"}), frozenset({"sum"})


@dataclass(frozen=True, slots=True)
class Layout:
    """Forms, and how each aggregate follows from their statistics.

    Args:
        forms: their statistics, one after the other, are the reading's.
        recipes: for each aggregate by name.
        size: of a group, where keys are to be selected; None if nothing was to count rows or people.
    """

    forms: tuple[Form, ...]
    recipes: dict[str, Recipe]
    size: Size | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a question asks of its forms.

    Args:
        aggregates: of the question.
        kinds: for each argument, what is asked of it.
        steps: for each argument that is added up.
        pairs: of arguments that are multiplied.
        people: whether COUNT(DISTINCT unit) needs a count of its own.
        most_rows: how many rows one unit may have in a group.
        sized: whether the size of groups is needed.
    """

    aggregates: tuple[Aggregate, ...]
    kinds: dict[Expression, frozenset[str]]
    steps: dict[Expression, Steps]
    pairs: dict[Arguments, Pair]
    people: bool
    most_rows: int
    sized: bool

    @classmethod
    def of(cls, question: Question, schema: TableSchema, *, most_rows: int, sized: bool, former: bool = False) -> Needs:
        """What a question needs; where a unit has one row in a group, people are rows.

        Args:
            question: what is asked.
            schema: what is public about its rows.
            most_rows: how many rows one unit may have in a group.
            sized: whether the size of groups is needed.
            former: see `bounded_steps`.

        Raises:
            UnsupportedQuery: if an argument that is added up has no public bounds.
        """
        kinds: dict[Expression, frozenset[str]] = {}
        products: dict[Expression, Steps] = {}
        for aggregate in question.aggregates:
            if aggregate.argument is None or aggregate.kind == "count_distinct":
                continue
            if aggregate.other is not None:
                both = aggregate.argument, aggregate.other
                products |= {x: bounded_steps((aggregate.kind,), x, schema, former=former) for x in both}
                continue
            kinds[aggregate.argument] = kinds.get(aggregate.argument, frozenset()) | {aggregate.kind}
        steps = {x: bounded_steps(of, x, schema, former=former) for x, of in kinds.items() if of != _VALUES}
        people = most_rows > 1 and any(aggregate.kind == "count_units" for aggregate in question.aggregates)
        return cls(
            aggregates=question.aggregates,
            kinds=kinds,
            steps=steps,
            pairs=pairs(question.aggregates, products),
            people=people,
            most_rows=most_rows,
            sized=sized,
        )

    @property
    def rows(self) -> bool:
        """Whether the number of rows is asked for."""
        return any(a.argument is None and not (self.people and a.kind == "count_units") for a in self.aggregates)

    def squared(self, x: Expression) -> bool:
        """Whether squares of an argument are asked for."""
        return not self.kinds[x].isdisjoint(SPREADS)

    @property
    def counted(self) -> bool:
        """Whether rows, or at least values, must be counted."""
        return self.rows or (self.sized and not self.people)


@dataclass(slots=True)
class _Draft:
    """Forms so far, and what they tell: totals of whole arguments, moments, the number of rows and of people."""

    needs: Needs
    forms: list[Form] = field(default_factory=list)
    width: int = 0
    totals: dict[tuple[str, Expression], Total] = field(default_factory=dict)
    moments: dict[Expression, Moments] = field(default_factory=dict)
    rows: Linear | None = None
    people: Linear | None = None
    places: dict[Arguments, int] = field(default_factory=dict)

    def add(self, form: Form) -> int:
        """The place of the form's first statistic."""
        self.forms.append(form)
        self.width += len(form.statistics)
        return self.width - len(form.statistics)

    def add_sum(self, x: Expression) -> None:
        steps = self.needs.steps[x]
        place = self.add(sum_form(x, steps))
        self.totals["sum", x] = Total(
            Linear.at(place) * steps.step,
            whole=steps.whole,
            error=steps.error,
            positive=steps.bounds.low >= 0,
        )

    def add_values(self, x: Expression, *, nulls: bool = False) -> None:
        place = self.add(values_form(x, nulls=nulls))
        self.totals["count_values", x] = Total(Linear.at(place), whole=True, positive=True)
        if nulls:
            self.rows = Linear.at(place) + Linear.at(place + 1)

    def add_pair(self, x: Expression, *, nulls: bool = False) -> None:
        steps = self.needs.steps[x]
        if self.needs.squared(x):
            place = self.add(paired_spread_form(x, steps, nulls=nulls))
            self.moments[x], missing = paired_spread(place, steps)
        else:
            place = self.add(paired_form(x, steps, nulls=nulls))
            self.moments[x], missing = paired_moments(place, steps), paired_nulls(place, steps)
        if nulls:
            self.rows = self.moments[x].values + missing

    def add_centred(self, x: Expression, rows: Linear) -> None:
        steps = self.needs.steps[x]
        if self.needs.squared(x):
            self.moments[x] = centred_spread(self.add(centred_spread_form(x, steps)), steps, rows)
        else:
            self.moments[x] = centred_moments(self.add(centred_form(x, steps)), steps, rows)

    def add_rows(self) -> Linear:
        self.rows = Linear.at(self.add(rows_form()))
        return self.rows

    def finished(self) -> Layout:
        if self.needs.people:
            self.people = Linear.at(self.add(units_form()))
        for aggregate in self.needs.aggregates:
            if aggregate.kind == "count_distinct" and aggregate.argument is not None:
                place = self.add(distinct_form(aggregate.argument))
                self.totals["count_distinct", aggregate.argument] = Total(Linear.at(place), whole=True, positive=True)
        self.places = {arguments: self.add(pair.form()) for arguments, pair in self.needs.pairs.items()}
        recipes = {aggregate.name: self._recipe(aggregate) for aggregate in self.needs.aggregates}
        return Layout(tuple(self.forms), recipes, self._size())

    def _recipe(self, aggregate: Aggregate) -> Recipe:
        x = aggregate.argument
        if x is None:
            people = self.people if aggregate.kind == "count_units" else None
            return Total(people or self.rows or Linear(()), whole=True, positive=True)
        arguments = in_order(aggregate)
        if arguments is not None:
            pair, place = self.needs.pairs[arguments], self.places[arguments]
            return pair.recipe(place, aggregate, swapped=arguments[0] != x)
        if x not in self.moments or aggregate.kind == "count_distinct":
            return self.totals[aggregate.kind, x]
        known = self.moments[x]
        if aggregate.kind in SPREADS and known.squares is not None:
            sample, root = SPREADS[aggregate.kind]
            return variance(known, known.squares, sample=sample, root=root)
        recipes: dict[str, Recipe] = {"count_values": known.count, "sum": known.sum, "mean": known.mean}
        return recipes[aggregate.kind]

    def _size(self) -> Size | None:
        """People if they are counted, else rows, else the values of some argument."""
        if self.people is not None:
            return Size(self.people, 1)
        values = [moments.values for moments in self.moments.values()]
        values += [total.linear for (kind, _), total in self.totals.items() if kind == "count_values"]
        counted = self.rows or (values[0] if values else None)
        return None if counted is None else Size(counted, self.needs.most_rows)


def paired(needs: Needs) -> Layout:
    """Every argument counts itself; one of them, if rows are to be counted, counts its NULLs too."""
    draft = _Draft(needs)
    carrier = _carrier(needs) if needs.counted else None
    for x, kinds in needs.kinds.items():
        nulls = x == carrier and needs.rows
        if kinds == _VALUES:
            draft.add_values(x, nulls=nulls)
        elif kinds == _SUM and x != carrier:
            draft.add_sum(x)
        else:
            draft.add_pair(x, nulls=nulls)
    if needs.counted and carrier is None:
        draft.add_rows()
    return draft.finished()


def _carrier(needs: Needs) -> Expression | None:
    """The argument whose form counts for all: one that is counted anyway, if there is one."""

    def place(x: Expression) -> int:
        return 1 if needs.kinds[x] == _VALUES else 2 if needs.kinds[x] == _SUM else 0

    return min(needs.kinds, key=place, default=None)


def centred(needs: Needs) -> Layout:
    """All arguments whose number matters share one count of rows."""
    draft = _Draft(needs)
    shared = [x for x, kinds in needs.kinds.items() if kinds not in (_VALUES, _SUM)]
    rows = draft.add_rows() if needs.counted or shared else None
    for x, kinds in needs.kinds.items():
        if rows is not None and x in shared:
            draft.add_centred(x, rows)
        elif kinds == _VALUES:
            draft.add_values(x)
        else:
            draft.add_sum(x)
    return draft.finished()
