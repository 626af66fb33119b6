"""Layouts: all needs of one question served by few forms, so that one noisy count feeds COUNT, AVG and a selection.

Two layouts differ in how arguments are counted (see `moments`). In the *paired* one each argument counts itself, which
is best for Laplace noise and few arguments. In the *centred* one all arguments share a count of rows, which is best for
Gaussian noise and for many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from discreet.dataclass import dataclass
from discreet.measurement.releases.additive import JointStatistics, LinearCombination
from discreet.measurement.releases.argument_moments import (
    PowerSums,
    centred_form,
    centred_sums,
    paired_form,
    paired_nulls,
    paired_sums,
    sum_form,
    values_form,
)
from discreet.measurement.releases.grids import Steps, bounded_steps
from discreet.measurement.releases.needs import (
    DistinctCountNeed,
    DistinctMomentNeed,
    MomentNeed,
    Need,
    ProductNeed,
    RowCountNeed,
    UnitCountNeed,
)
from discreet.measurement.releases.products import ArgumentPair, ProductSums
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Statistic
from discreet.plan.model.schema import TableSchema

_VALUES, _SUM = frozenset({0}), frozenset({1})

Arguments = tuple[Expression, Expression]


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a group, for a selection of private keys; a unit alone makes it at most `most`."""

    linear: LinearCombination
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The results of released numbers, for each need that they serve.

    Args:
        rows: the number of rows; None if nothing was to count them.
        units: the number of units.
        moments: for each argument.
        products: for each pair of arguments, in order.
        distinct: for each argument the number of its different values.
        different: for each argument the moments of these.
        drawn: for each need of what is drawn, that draw (see `draws`).
    """

    rows: LinearCombination | None
    units: LinearCombination | None
    moments: Mapping[Expression, PowerSums]
    products: Mapping[Arguments, ProductSums]
    distinct: Mapping[Expression, LinearCombination]
    different: Mapping[Expression, PowerSums]
    drawn: Mapping[Need, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """Forms, and what follows from their statistics.

    Args:
        forms: their statistics, one after the other, are the reading's.
        sources: what they tell.
        size: of a group, where keys are to be selected; None if nothing was to count rows or people.
    """

    forms: tuple[JointStatistics, ...]
    sources: Sources
    size: Size | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The needs of all aggregates of a question together, each need once.

    Args:
        powers: for each argument, which powers of its values are to be added up.
        steps: for each argument that is added up.
        pairs: of arguments that are multiplied.
        distinct: arguments whose different values are counted.
        different: for each argument whose different values are added up, its grid, and whether they are counted, too.
        rows: whether the number of rows is needed.
        people: whether the number of units needs a count of its own.
        most_rows: how many rows one unit may have in a group.
        sized: whether the size of groups is needed.
    """

    powers: Mapping[Expression, frozenset[int]]
    steps: Mapping[Expression, Steps]
    pairs: Mapping[Arguments, ArgumentPair]
    distinct: tuple[Expression, ...]
    different: Mapping[Expression, tuple[Steps, bool]]
    rows: bool
    people: bool
    most_rows: int
    sized: bool

    @classmethod
    def of(
        cls, needs: Iterable[Need], schema: TableSchema, *, most_rows: int, sized: bool, former: bool = False
    ) -> Requirements:
        """Merges the needs of a question; where a unit has one row in a group, people are rows.

        Args:
            needs: of all its aggregates.
            schema: what is public about its rows.
            most_rows: how many rows one unit may have in a group.
            sized: whether the size of groups is needed.
            former: see `bounded_steps`.

        Raises:
            UnsupportedQuery: if an argument that is added up has no public bounds.
        """
        listed = list(needs)
        moments = [need for need in listed if isinstance(need, MomentNeed)]
        products = [need for need in listed if isinstance(need, ProductNeed)]
        different = [need for need in listed if isinstance(need, DistinctMomentNeed)]
        people = most_rows > 1 and UnitCountNeed() in listed
        return cls(
            powers=_merge_powers(moments),
            steps=_steps(moments, schema, former=former),
            pairs=_pairs(products, schema, former=former),
            distinct=tuple(dict.fromkeys(need.argument for need in listed if isinstance(need, DistinctCountNeed))),
            different=_different(different, schema, former=former),
            rows=RowCountNeed() in listed or (UnitCountNeed() in listed and not people),
            people=people,
            most_rows=most_rows,
            sized=sized,
        )

    @property
    def requires_counts(self) -> bool:
        """Returns whether rows, or at least values, must be counted."""
        return self.rows or (self.sized and not self.people)


def in_order(one: Expression, other: Expression) -> Arguments:
    """Returns two arguments in an order that does not depend on how they were written."""
    first, second = sorted((one, other), key=repr)
    return first, second


def _merge_powers(moments: Iterable[MomentNeed | DistinctMomentNeed]) -> dict[Expression, frozenset[int]]:
    powers: dict[Expression, frozenset[int]] = {}
    for need in moments:
        powers[need.argument] = powers.get(need.argument, frozenset()) | need.powers
    return powers


def _different(
    needs: Sequence[DistinctMomentNeed], schema: TableSchema, *, former: bool
) -> dict[Expression, tuple[Steps, bool]]:
    """Returns the arguments whose different values are added up, each once."""
    steps = _steps(needs, schema, former=former)
    return {x: (steps[x], 0 in powers) for x, powers in _merge_powers(needs).items()}


def _steps(
    moments: Iterable[MomentNeed | DistinctMomentNeed], schema: TableSchema, *, former: bool
) -> dict[Expression, Steps]:
    """Returns the grid of each argument that is added up, fine enough for the highest power of it."""
    highest: dict[Expression, tuple[int, str]] = {}
    for need in moments:
        power = max(need.powers)
        if power > highest.get(need.argument, (0, ""))[0]:
            highest[need.argument] = power, need.name
    return {x: bounded_steps(x, schema, name=name, power=power, former=former) for x, (power, name) in highest.items()}


def _pairs(products: Iterable[ProductNeed], schema: TableSchema, *, former: bool) -> dict[Arguments, ArgumentPair]:
    """Returns the pairs of arguments whose products are needed, each once."""
    squared: dict[Arguments, frozenset[Expression]] = {}
    steps: dict[Expression, Steps] = {}
    for need in products:
        arguments = in_order(need.first, need.second)
        squared[arguments] = squared.get(arguments, frozenset()) | need.squared
        for x in (need.first, need.second):
            steps[x] = bounded_steps(x, schema, name=need.name, power=2, former=former)
    return {
        (x, y): ArgumentPair.of((x, steps[x], x in needed), (y, steps[y], y in needed))
        for (x, y), needed in squared.items()
    }


@dataclass(slots=True)
class _Draft:
    """The forms so far, and what follows from them."""

    needs: Requirements
    forms: list[JointStatistics] = field(default_factory=list)
    width: int = 0
    moments: dict[Expression, PowerSums] = field(default_factory=dict)
    rows: LinearCombination | None = None

    def add(self, form: JointStatistics) -> int:
        """Returns the place of the form's first statistic."""
        self.forms.append(form)
        self.width += len(form.statistics)
        return self.width - len(form.statistics)

    def add_sum(self, x: Expression) -> None:
        steps = self.needs.steps[x]
        self.moments[x] = PowerSums(powers={1: LinearCombination.at(self.add(sum_form(x, steps)))}, steps=steps)

    def add_values(self, x: Expression, *, nulls: bool = False) -> None:
        place = self.add(values_form(x, nulls=nulls))
        self.moments[x] = PowerSums(powers={0: LinearCombination.at(place)})
        if nulls:
            self.rows = LinearCombination.at(place) + LinearCombination.at(place + 1)

    def add_pair(self, x: Expression, *, nulls: bool = False) -> None:
        steps, order = self.needs.steps[x], max(self.needs.powers[x])
        place = self.add(paired_form(x, steps, order, nulls=nulls))
        self.moments[x] = paired_sums(place, steps, order)
        if nulls:
            self.rows = self.moments[x].power(0) + paired_nulls(place, steps, order)

    def add_centred(self, x: Expression, rows: LinearCombination) -> None:
        steps, order = self.needs.steps[x], max(self.needs.powers[x])
        self.moments[x] = centred_sums(self.add(centred_form(x, steps, order)), steps, order, rows)

    def add_rows(self) -> LinearCombination:
        self.rows = LinearCombination.at(self.add(rows_form()))
        return self.rows

    def build_layout(self) -> Layout:
        needs = self.needs
        units = LinearCombination.at(self.add(units_form())) if needs.people else None
        sources = Sources(
            rows=self.rows,
            units=units if needs.people else self.rows,
            moments=self.moments,
            distinct={x: LinearCombination.at(self.add(distinct_form(x))) for x in needs.distinct},
            products={arguments: pair.sums(self.add(pair.form())) for arguments, pair in needs.pairs.items()},
            different={x: self._different(x, *found) for x, found in needs.different.items()},
        )
        return Layout(tuple(self.forms), sources, self._size(units))

    def _different(self, x: Expression, steps: Steps, counted: bool) -> PowerSums:
        """Adds pairs in both layouts: without a shared count, they suit Gaussian noise as well as a count and a sum."""
        place = self.add(of_different(paired_form(x, steps, nulls=False) if counted else sum_form(x, steps)))
        return (
            paired_sums(place, steps, 1) if counted else PowerSums(powers={1: LinearCombination.at(place)}, steps=steps)
        )

    def _size(self, units: LinearCombination | None) -> Size | None:
        """Returns people if they are counted, else rows, else values of an argument, of one that is added up if any."""
        if units is not None:
            return Size(units, 1)
        counting = [sums for sums in self.moments.values() if 0 in sums.powers]
        values = [sums.power(0) for sums in sorted(counting, key=lambda sums: sums.steps is None)]
        counted = self.rows or (values[0] if values else None)
        return None if counted is None else Size(counted, self.needs.most_rows)


def rows_form() -> JointStatistics:
    """Counts kept rows: each moves the count by one."""
    return JointStatistics(statistics=(Statistic(kind="rows"),), corners=((1,),))


def units_form() -> JointStatistics:
    """Counts units with a kept row: one each per group, however many rows they have."""
    return JointStatistics(statistics=(Statistic(kind="units"),), corners=((1,),), once=True)


def distinct_form(argument: Expression) -> JointStatistics:
    """Counts different values among kept rows.

    A row more makes one value more at most, and none fewer, whatever the others hold: so the kept rows of a unit move
    the number of values in their group by one each at most, as they move the number of rows. Values that a column's
    public keys do not name are values like others.
    """
    return JointStatistics(statistics=(Statistic(kind="distinct", argument=argument),), corners=((1,),))


def of_different(form: JointStatistics) -> JointStatistics:
    """Adds up different values among kept rows instead of all, each clipped and on its grid.

    A row more makes one value more at most, and none fewer: what it adds to the form's statistics is what its value
    adds in the form of all values, or nothing. So the corners are the same. A unit that is replaced takes at most as
    many values away as it has rows, and brings at most as many: again what its rows could do, or less.
    """
    return replace(form, statistics=tuple(replace(each, kind="distinct_sum") for each in form.statistics))


def build_paired_layout(needs: Requirements) -> Layout:
    """Has every argument count itself; one of them, if rows are to be counted, counts its NULLs too."""
    draft = _Draft(needs)
    carrier = _carrier(needs) if needs.requires_counts else None
    for x, powers in needs.powers.items():
        nulls = x == carrier and needs.rows
        if powers == _VALUES:
            draft.add_values(x, nulls=nulls)
        elif powers == _SUM and x != carrier:
            draft.add_sum(x)
        else:
            draft.add_pair(x, nulls=nulls)
    if needs.requires_counts and carrier is None:
        draft.add_rows()
    return draft.build_layout()


def _carrier(needs: Requirements) -> Expression | None:
    """Returns the argument whose form counts for all: one that is counted anyway, if there is one."""

    def place(x: Expression) -> int:
        return 1 if needs.powers[x] == _VALUES else 2 if needs.powers[x] == _SUM else 0

    return min(needs.powers, key=place, default=None)


def build_centred_layout(needs: Requirements) -> Layout:
    """Has all arguments whose number matters share one count of rows."""
    draft = _Draft(needs)
    shared = {x for x, powers in needs.powers.items() if powers not in (_VALUES, _SUM)}
    rows = draft.add_rows() if needs.requires_counts or shared else None
    for x, powers in needs.powers.items():
        if rows is not None and x in shared:
            draft.add_centred(x, rows)
        elif powers == _VALUES:
            draft.add_values(x)
        else:
            draft.add_sum(x)
    return draft.build_layout()
