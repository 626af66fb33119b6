"""Elementary functions: their grid, and spans that hold every value, tried over all small boxes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.plan.analysis.group_keys import values
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.functions import elementary
from discreet.plan.expressions.functions.elementary import DIGITS, LARGEST, on_grid
from discreet.plan.expressions.functions.elementary import ELEMENTARY as RECORDS
from discreet.plan.expressions.interval_arithmetic import EVERYTHING, Span
from discreet.plan.model.nodes import ColumnRef, Literal
from discreet.plan.model.schema import ColumnBounds
from discreet.plan.model.types import Type
from tests.plan.tables import VISITS

ELEMENTARY = {record.name: record.compute for record in RECORDS}
ELEMENTARY_RULES = {record.name: record.bounds for record in RECORDS if record.bounds is not None}

ENDS = [-1e9, -700.5, -10.0, -3.0, -1.5, -1.0, -0.3, 0.0, 1e-300, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 700.5, 1e9]
PAIRS = ("log", "power", "atan2")
FEW = [-7.0, -2.0, -0.5, 0.0, 0.5, 1.0, 2.5, 7.0]


def spans(ends: list[float]) -> list[tuple[float, float]]:
    return [(low, high) for low, high in itertools.product(ends, ends) if low <= high]


def inside(low: float, high: float, count: int) -> list[float]:
    """Points of a span: its ends, their neighbours, whole numbers near them and points between them."""
    between = [low + (high - low) * i / count for i in range(count + 1)]
    first = math.ceil(low)
    near = [math.nextafter(low, high), math.nextafter(high, low), *map(float, range(first, first + 4))]
    return [x for x in {*between, *near} if low <= x <= high]


def misses(name: str) -> list[Any]:
    """The arguments whose value is outside the span of the box that they are in."""
    found: list[Any] = []
    rule, value = ELEMENTARY_RULES[name], ELEMENTARY[name]
    boxes = itertools.product(spans(FEW), spans(FEW)) if name in PAIRS else [(span,) for span in spans(ENDS)]
    for box in boxes:
        held = rule([Span(Fraction(low), Fraction(high)) for low, high in box])
        for point in itertools.product(*(inside(*side, 4 if name in PAIRS else 20) for side in box)):
            result = value(*point)
            if result is not None and not held.low <= Fraction(result) <= held.high:
                found.append((box, point, result, held))
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ELEMENTARY_RULES)
def test_a_span_holds_every_value(name: str) -> None:
    assert not misses(name)


def test_a_span_that_is_moved_inwards_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementary, "_SLACK", Fraction(-1, 1 << DIGITS))
    assert misses("exp")
    assert misses("cube_root")


def test_spans_are_no_wider_than_they_need_be() -> None:
    """Ends are those of the function where it is monotone, but for less than a millionth of them."""
    for name, low, high in [
        ("ln", 1, 100),
        ("exp", -3, 5),
        ("log10", 10, 1000),
        ("cube_root", -8, 27),
        ("atan", -1, 1),
        ("acos", -1, 0.5),
        ("cosh", -1, 2),
        ("sinh", -1, 2),
        ("tan", -1, 1),
    ]:
        found = ELEMENTARY_RULES[name]([Span(Fraction(low), Fraction(high))])
        values = [ELEMENTARY[name](point) for point in inside(low, high, 300)]
        assert (found.low, found.high) == pytest.approx((min(values), max(values)), rel=1e-6, abs=1e-6), name
    box = [Span(Fraction(2), Fraction(3)), Span(Fraction(-1), Fraction(2))]
    assert ELEMENTARY_RULES["power"](box).high == pytest.approx(9)
    narrow = ELEMENTARY_RULES["sin"]([Span(Fraction(1), Fraction(1.01))])
    assert narrow.high - narrow.low < 0.02


def test_what_grows_without_limit_has_no_end() -> None:
    unbounded = Span(Fraction(0), math.inf)
    assert ELEMENTARY_RULES["exp"]([unbounded]).high == math.inf
    assert ELEMENTARY_RULES["exp"]([Span(Fraction(0), Fraction(5000))]).high == math.inf
    assert ELEMENTARY_RULES["exp"]([EVERYTHING]).low == 0
    assert ELEMENTARY_RULES["ln"]([Span(Fraction(0), Fraction(1))]).low == -math.inf
    assert ELEMENTARY_RULES["tan"]([Span(Fraction(1), Fraction(2))]) == EVERYTHING
    assert ELEMENTARY_RULES["ln"]([Span(Fraction(-2), Fraction(-1))]).is_empty


def test_the_logarithm_of_a_whole_number_is_not_negative() -> None:
    """Zero has none, and the next whole number is 1; a column of doubles may hold anything between."""
    whole = bounds(call("ln", ColumnRef("age", Type.INT)), VISITS)
    assert whole is not None
    assert whole.low == 0
    assert whole.high == pytest.approx(math.log(120))
    assert bounds(call("ln", ColumnRef("charge", Type.FLOAT)), VISITS, floored=False) is None
    plus_one = call("add", ColumnRef("charge", Type.FLOAT), Literal(1.0, Type.FLOAT))
    assert bounds(call("ln", plus_one), VISITS) is not None


def test_logarithms_near_zero_are_clipped_at_a_billionth_of_the_upper_bound() -> None:
    """No lower bound of 0 would do: the smallest double has the logarithm -744, and noise is made for the width."""
    charge = ColumnRef("charge", Type.FLOAT)
    for found in (bounds(call("ln", charge), VISITS), bounds(call("log", Literal(math.e, Type.FLOAT), charge), VISITS)):
        assert found is not None
        assert found.high == pytest.approx(math.log(50_000))
        assert found.width == pytest.approx(math.log(2**30))
    negative = call("subtract", ColumnRef("debt", Type.FLOAT), Literal(10.0, Type.FLOAT))
    assert bounds(call("ln", negative), VISITS) == ColumnBounds(Fraction(0), Fraction(1))  # no debt has one
    assert bounds(call("ln", ColumnRef("weight", Type.FLOAT)), VISITS) is None
    assert values(call("floor", call("ln", charge)), VISITS) is None  # groups are not clipped


@given(st.floats(-LARGEST, LARGEST))
def test_the_grid_has_so_many_digits_and_is_near(value: float) -> None:
    rounded = on_grid(value)
    assert rounded is not None
    assert abs(Fraction(rounded) - Fraction(value)) <= abs(Fraction(value)) / (1 << DIGITS)
    mantissa, _ = math.frexp(rounded)
    assert (mantissa * 2**DIGITS).is_integer()
    assert on_grid(rounded) == rounded


def test_there_is_no_value_outside_a_domain_or_beyond_the_largest() -> None:
    for name, arguments in [
        *((name, (x,)) for name in ("ln", "log2", "log10") for x in (0.0, -0.0, -1.0)),
        *(("log", pair) for pair in ((1.0, 2.0), (0.0, 2.0), (2.0, 0.0), (-2.0, 4.0))),
        *(("power", pair) for pair in ((-2.0, 0.5), (0.0, -1.0), (10.0, 305.0), (1e308, 2.0))),
        *((name, (x,)) for name in ("asin", "acos") for x in (1.0000000000000002, -2.0)),
        *((name, (x,)) for name in ("exp", "sinh", "cosh") for x in (695.0, 710.0, 1e300)),
    ]:
        assert ELEMENTARY[name](*arguments) is None, (name, arguments)
    assert ELEMENTARY["power"](0.0, 0.0) == 1.0
    assert ELEMENTARY["log"](3.0, 9.0) == 2.0
    assert ELEMENTARY["log10"](1000.0) == 3.0
