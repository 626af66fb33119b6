"""Layouts: whatever is asked follows from the statistics exactly, shares what can be shared, and names its size."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.aggregates import estimators
from discreet.measurement.aggregates import needs as needs_of
from discreet.measurement.aggregates.variance import VarianceEstimator
from discreet.measurement.intervals.estimators import Estimator, RatioEstimator, TotalEstimator
from discreet.measurement.releases.grids import Steps
from discreet.measurement.releases.layouts import Layout, Requirements, build_centred_layout, build_paired_layout
from discreet.plan.model.nodes import Aggregate, ColumnRef
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from tests.plan.test_stability import added

X, Y, FREE = ColumnRef("x", Type.INT), ColumnRef("y", Type.FLOAT), ColumnRef("free", Type.INT)
KINDS: tuple[tuple[str, ColumnRef | None], ...] = (
    ("count", None),
    ("count_values", X),
    ("sum", X),
    ("mean", X),
    ("count_units", None),
    ("var_pop", X),
    ("stddev_samp", X),
    ("count_distinct", X),
)
ints = st.integers(-50, 50)
LAYOUTS = pytest.mark.parametrize("build", [build_paired_layout, build_centred_layout])
Build = Callable[[Requirements], Layout]


def schema(low: int = -20, high: int = 30) -> TableSchema:
    limits = ColumnBounds(Fraction(low), Fraction(high))
    columns = {column.name: ColumnSchema(name=column.name, type=column.type, bounds=limits) for column in (X, Y)}
    columns["free"] = ColumnSchema(name="free", type=Type.INT)
    return TableSchema(name="t", columns=columns)


def aggregates(*asked: tuple[str, ColumnRef | None]) -> tuple[Aggregate, ...]:
    return tuple(Aggregate(name=f"#{i}", kind=kind, argument=argument) for i, (kind, argument) in enumerate(asked))


def needs(*asked: tuple[str, ColumnRef | None], sized: bool = False, most_rows: int = 1, **limits: int) -> Requirements:
    return Requirements.of(needs_of(aggregates(*asked)), schema(**limits), most_rows=most_rows, sized=sized)


def statistics(layout: Layout, rows: tuple[int | None, ...]) -> list[int]:
    """Of a group whose rows belong to one unit each."""
    found: list[int] = []
    for form in layout.forms:
        if form.statistics[0].kind == "distinct":
            found.append(len(set(rows) - {None}))
        else:
            found += [len(rows)] if form.once else added(form, rows)
    return found


def value(recipe: Estimator, exact: list[int]) -> Fraction | None:
    if isinstance(recipe, TotalEstimator):
        return recipe.linear.value(exact)
    if isinstance(recipe, VarianceEstimator):
        return variance(recipe, exact)
    assert isinstance(recipe, RatioEstimator)
    bottom = recipe.bottom.value(exact)
    return recipe.centre + recipe.top.value(exact) / bottom if bottom else None


def variance(recipe: VarianceEstimator, exact: list[int]) -> Fraction | None:
    """The variance before its root is taken."""
    mean, squares, n = value(recipe.mean, exact), value(recipe.squares, exact), recipe.mean.bottom.value(exact)
    if mean is None or squares is None or n <= recipe.sample:
        return None
    return (squares - (mean - recipe.origin) ** 2) * n / (n - recipe.sample)


def truth(kind: str, rows: tuple[int | None, ...], low: int, high: int) -> Fraction | None:
    clipped = [Fraction(min(max(x, low), high)) for x in rows if x is not None]
    if kind == "mean":
        return sum(clipped, Fraction(0)) / len(clipped) if clipped else None
    if kind == "count_distinct":
        return Fraction(len(set(rows) - {None}))
    if kind in ("var_pop", "stddev_samp"):
        less = int(kind == "stddev_samp")
        mean = sum(clipped, Fraction(0)) / max(len(clipped), 1)
        squares = sum(((x - mean) ** 2 for x in clipped), Fraction(0))
        return squares / (len(clipped) - less) if len(clipped) > less else None
    if kind == "sum":
        return sum(clipped, Fraction(0))
    return Fraction(len(clipped) if kind == "count_values" else len(rows))


EVERY_SUBSET = [chosen for n in range(1, len(KINDS) + 1) for chosen in combinations(KINDS, n)]


@LAYOUTS
@given(
    st.sampled_from(EVERY_SUBSET),
    st.lists(st.none() | ints, max_size=6).map(tuple),
    st.lists(ints, min_size=2, max_size=2, unique=True).map(sorted),
    st.integers(1, 2),
    st.booleans(),
)
def test_without_noise_every_aggregate_is_exact(  # noqa: PLR0917 - hypothesis passes them in order
    build: Build,
    asked: tuple[tuple[str, ColumnRef | None], ...],
    rows: tuple[int | None, ...],
    ends: list[int],
    most_rows: int,
    sized: bool,
) -> None:
    low, high = ends
    layout = build(needs(*asked, sized=sized, most_rows=most_rows, low=low, high=high))
    exact, found = statistics(layout, rows), estimators(aggregates(*asked), layout.sources)
    for i, (kind, _) in enumerate(asked):
        assert value(found[f"#{i}"], exact) == truth(kind, rows, low, high)
    if sized:
        assert layout.size is not None
        values = sum(x is not None for x in rows)
        assert layout.size.linear.value(exact) in (values, len(rows))


def test_one_noisy_count_feeds_everything() -> None:
    layout = build_paired_layout(needs(("count", None), ("mean", X), ("sum", X), ("count_values", X), sized=True))
    assert len(layout.forms) == 1
    assert layout.size is not None
    assert layout.size.linear == layout.sources.rows


def test_many_arguments_share_one_count() -> None:
    layout = build_centred_layout(needs(("count", None), ("mean", X), ("mean", Y), sized=True))
    assert [len(form.statistics) for form in layout.forms] == [1, 2, 2]


def test_people_are_rows_where_each_has_one() -> None:
    assert len(build_paired_layout(needs(("count", None), ("count_units", None), most_rows=1)).forms) == 1
    both = build_paired_layout(needs(("count", None), ("count_units", None), most_rows=2, sized=True))
    assert [form.once for form in both.forms] == [False, True]
    assert both.size is not None
    assert both.size.most == 1


def test_a_sum_that_must_be_counted_becomes_a_pair_and_else_stays_alone() -> None:
    assert len(build_paired_layout(needs(("sum", X))).forms[0].statistics) == 1
    counted = build_paired_layout(needs(("sum", X), sized=True))
    assert [len(form.statistics) for form in counted.forms] == [2]
    assert counted.size is not None
    assert counted.size.most == 1


def test_no_bounds_no_sum() -> None:
    for kind, name in (("sum", "SUM"), ("mean", "AVG"), ("var_samp", "VARIANCE")):
        with pytest.raises(UnsupportedQuery, match=name):
            needs((kind, FREE))
    assert build_paired_layout(needs(("count_values", FREE))).forms


def test_real_arguments_get_a_million_steps_inside_their_bounds() -> None:
    steps = Steps.of(ColumnBounds(Fraction(0), Fraction(100)), Type.FLOAT)
    assert 1 << 20 <= steps.width < 1 << 21
    assert steps.high * Fraction(2) ** steps.exponent <= 100
    assert Steps.of(ColumnBounds(Fraction(1, 2), Fraction(7, 2)), Type.INT) == Steps(0, 1, 3)


def test_bounds_without_two_whole_numbers_are_refused() -> None:
    with pytest.raises(InvalidParameter) as refused:
        Steps.of(ColumnBounds(Fraction(1, 3), Fraction(2, 3)), Type.INT)
    assert refused.value.name == "bounds"


def test_a_variance_feeds_the_mean_and_the_count_too() -> None:
    asked: list[tuple[str, ColumnRef | None]] = [
        ("count", None),
        ("mean", X),
        ("var_pop", X),
        ("stddev_samp", X),
    ]
    layout = build_paired_layout(needs(*asked, ("sum", X), ("count_values", X), sized=True))
    assert [len(form.statistics) for form in layout.forms] == [4]
    assert [len(form.statistics) for form in build_centred_layout(needs(*asked)).forms] == [1, 3]


def test_numbers_that_cannot_be_squared_exactly_are_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="square"):
        needs(("var_pop", X), low=0, high=1 << 32)
    assert build_paired_layout(needs(("var_pop", X), low=0, high=1 << 31)).forms
    assert build_paired_layout(needs(("var_pop", Y), low=0, high=1 << 60)).forms
    with pytest.raises(UnsupportedQuery, match="square"):
        needs(("var_pop", Y), low=0, high=10**151)
