"""Elementary functions: logarithms, powers, angles, each rounded to a public grid of 32 binary digits.

Libraries compute them to the last of 53 digits or nearly so, and differ there. On the grid their results are the same
but where the true value lies so near to the middle of two steps that they fall on different sides, about once in a
million values; then they are one step apart. What a row becomes depends on that row alone in any case, and an aggregate
clips it afterwards: privacy rests on the clip, equality of engines on the grid.

Rounding is Dekker's and Veltkamp's splitting, three operations of doubles that every engine does alike. Results beyond
2^1000 in size, where it would overflow, are NULL, as are arguments outside a function's domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product

from discreet.exact import float_above, float_below
from discreet.plan.expressions.functions.record import BoundsRule, F, Forms, Function, Rounding, Template, each
from discreet.plan.expressions.interval_arithmetic import EMPTY, EVERYTHING, End, Span, hull

DIGITS = 32
SPLITTER = 2.0 ** (53 - DIGITS) + 1
LARGEST = 2.0**1000


def on_grid(value: float) -> float | None:
    """Rounds a double to so many binary digits; None beyond the largest, or if it is no number.

    >>> on_grid(3.0000000000000004), on_grid(1e302)
    (3.0, None)
    """
    if not abs(value) <= LARGEST:
        return None
    split = value * SPLITTER
    return split - (split - value)


def _total(function: Callable[..., float]) -> Callable[..., float | None]:
    """Returns the function on the grid, None where Python raises: outside its domain, and where it overflows."""

    def total(*arguments: float) -> float | None:
        try:
            return on_grid(function(*arguments))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None

    return total


# --------------------------------------------------------------------------------------------------------------- bounds
#
# An end is the function of an end, computed in doubles and moved outwards by far more than the error of a library and
# the rounding to the grid together. Where a function grows without limit an end is infinite, so that no caller adds up
# what one person could move by hundreds of orders of magnitude.

_SLACK = Fraction(1, 1 << (DIGITS - 1))  # of a result: the grid's half step is a quarter of it
_PI = Fraction(math.pi) * (1 + _SLACK)


def _below(end: End) -> float:
    return end if isinstance(end, float) else float_below(end)


def _above(end: End) -> float:
    return end if isinstance(end, float) else float_above(end)


def _outwards(low: float, high: float) -> Span:
    """Returns the span between two computed ends, each moved outwards; a result beyond the largest is no end."""
    down, up = (value if math.isinf(value) else Fraction(value) for value in (low, high))
    below = -math.inf if isinstance(down, float) or down < -LARGEST else down - abs(down) * _SLACK
    above = math.inf if isinstance(up, float) or up > LARGEST else up + abs(up) * _SLACK
    return Span(below, above)


def _at(function: Callable[..., float], *arguments: float) -> float:
    """Returns the function at an end, infinite where it overflows; only the hyperbolic sine does so below zero."""
    try:
        return function(*arguments)
    except OverflowError:
        return math.inf if function is not math.sinh or arguments[0] > 0 else -math.inf


def _rising(function: Callable[[float], float], low: float = -math.inf, high: float = math.inf) -> BoundsRule:
    """Returns a function that never decreases between two numbers, and has no value outside of them."""

    def rule(spans: Sequence[Span]) -> Span:
        held = spans[0].within(_end(low), _end(high))
        return EMPTY if held.is_empty else _outwards(_at(function, _below(held.low)), _at(function, _above(held.high)))

    return rule


def _end(value: float) -> End:
    return value if math.isinf(value) else Fraction(value)


def _logarithm(function: Callable[[float], float]) -> BoundsRule:
    """Bounds a function that rises from minus infinity at zero, where it has no value."""
    rule = _rising(lambda value: function(value) if value > 0 else -math.inf, 0.0)
    return lambda spans: rule(spans) if spans[0].high > 0 else EMPTY


def _wave(function: Callable[[float], float]) -> BoundsRule:
    """Bounds sine or cosine: between -1 and 1, and no farther from its value at the middle than the ends are."""

    def rule(spans: Sequence[Span]) -> Span:
        (span,) = spans
        if span.is_empty:
            return EMPTY
        if not span.is_bounded or abs(span).high > 1 << 50:
            return Span(Fraction(-1), Fraction(1))
        middle, half = Fraction(span.low + span.high) / 2, Fraction(span.high - span.low) / 2
        far = half + (abs(middle) + 1) * _SLACK
        centre = Fraction(function(float(middle)))
        return Span(centre - far, centre + far).within(Fraction(-1), Fraction(1))

    return rule


def _even(rule: BoundsRule) -> BoundsRule:
    """Returns a function that is the same for x and -x."""
    return lambda spans: rule([abs(spans[0])])


def _tangent(spans: Sequence[Span]) -> Span:
    """Bounds a tangent: it rises between two poles, and is anything where a pole may be near."""
    inside = not spans[0].is_empty and abs(spans[0]).high < Fraction(157, 100)
    return _rising(math.tan)(spans) if inside else EVERYTHING


def _angle(spans: Sequence[Span]) -> Span:
    """Bounds an angle: for a point on the right it is that of its tangent."""
    y, x = spans
    return _rising(math.atan)([y / x]) if x.low > 0 and not x.is_empty else Span(-_PI, _PI)


def _log(spans: Sequence[Span]) -> Span:
    base, value = (_LN([span]) for span in spans)
    exact = value / base
    return exact if not exact.is_bounded else _outwards(_below(exact.low), _above(exact.high))


def _power(spans: Sequence[Span]) -> Span:
    """Bounds a power by those of the corners if the base is not negative: it is monotone in each argument."""
    base, exponent = spans
    if base.is_empty or exponent.is_empty:
        return EMPTY
    if base.low >= 0:
        return _corners(base, exponent)
    size = _corners(abs(base), exponent)
    if exponent.low == exponent.high and Fraction(exponent.low).denominator == 1:
        return _whole_power(base, int(exponent.low), size)
    return hull([size, -size])


def _whole_power(base: Span, exponent: int, size: Span) -> Span:
    """Bounds x^n of a base that may be negative."""
    if exponent % 2 == 0:
        return size
    if base.high <= 0:
        return -size
    if exponent < 0:
        return EVERYTHING
    ends = [_corners(abs(Span(end, end)), Span.exactly(exponent)) for end in (base.low, base.high)]
    return Span(-ends[0].high, ends[1].high)


def _corners(base: Span, exponent: Span) -> Span:
    bases = (max(_below(base.low), 0.0), _above(base.high))
    found = [_at(_compute_power, *pair) for pair in product(bases, (_below(exponent.low), _above(exponent.high)))]
    return _outwards(min(found), max(found))


def _compute_power(base: float, exponent: float) -> float:
    return math.inf if base == 0 and exponent < 0 else math.pow(base, exponent)


_LN = _logarithm(math.log)

# ------------------------------------------------------------------------------------------------------------------ SQL


def _write_gridded(text: str, domain: str = "") -> Template:
    """Returns a function of arguments in its domain; of others it is NULL, for some databases fail on them."""
    held = f"CASE WHEN {domain} THEN {{0}} END" if domain else "{0}"
    return Template(text.replace("{0}", held), repeats=(0,) if domain else (), gridded=True)


# -------------------------------------------------------------------------------------------------------------- records


def _elementary(
    name: str,
    meaning: str,
    function: Callable[..., float],
    bounds: BoundsRule,
    sql: Forms,
    *,
    arguments: int = 1,
    spelled: Mapping[str, Forms] | None = None,
    word: str = "",
    example: str = "",
) -> Function:
    return Function(
        name,
        meaning,
        each(arguments, (F,)),
        compute=_total(function),
        bounds=bounds,
        rounding=Rounding.GRID,
        words=(word,) if word else (),
        example=example,
        sql=sql,
        spelled=spelled or {},
    )


_SIZE = "abs({0}) <= 1"

ELEMENTARY = (
    _elementary(
        "ln",
        "the natural logarithm; NULL if a <= 0",
        math.log,
        _LN,
        _write_gridded("ln({0})", "{0} > 0"),
        word="LN",
        example="AVG(LN(charge + 1))",
    ),
    _elementary(
        "log2",
        "the logarithm to base 2; NULL if a <= 0",
        math.log2,
        _logarithm(math.log2),
        _write_gridded("log2({0})", "{0} > 0"),
        spelled={"postgres": _write_gridded("ln({0}) / CAST('0.6931471805599453' AS double precision)", "{0} > 0")},
    ),
    _elementary(
        "log10",
        "the logarithm to base 10; NULL if a <= 0",
        math.log10,
        _logarithm(math.log10),
        _write_gridded("log10({0})", "{0} > 0"),
        spelled={"postgres": _write_gridded("log({0})", "{0} > 0")},
    ),
    _elementary(
        "log",
        "ln(b) / ln(a); NULL if a <= 0, a = 1 or b <= 0",
        lambda base, value: math.log(value) / math.log(base),
        _log,
        Template("CASE WHEN {0} > 0 AND {0} <> 1 AND {1} > 0 THEN ln({1}) / ln({0}) END", repeats=(0, 1), gridded=True),
        arguments=2,
    ),
    _elementary(
        "exp",
        "e to the power of a",
        math.exp,
        _rising(math.exp),
        _write_gridded("exp({0})"),
        word="EXP",
        example="AVG(EXP(charge / 1000))",
    ),
    _elementary(
        "power",
        "a to the power of b; NULL if a < 0 and b is not whole, or a = 0 and b < 0",
        math.pow,
        _power,
        _write_gridded("power({0}, {1})"),
        arguments=2,
        spelled={"duckdb": _write_gridded("pow({0}, {1})")},
    ),
    _elementary(
        "cube_root",
        "the cube root",
        math.cbrt,
        _rising(math.cbrt),
        _write_gridded("cbrt({0})"),
        word="CBRT",
        example="AVG(CBRT(charge))",
    ),
    _elementary(
        "sin",
        "the sine of an angle in radians",
        math.sin,
        _wave(math.sin),
        _write_gridded("sin({0})"),
        word="SIN",
        example="AVG(SIN(age))",
    ),
    _elementary(
        "cos",
        "the cosine of an angle in radians",
        math.cos,
        _wave(math.cos),
        _write_gridded("cos({0})"),
        word="COS",
        example="AVG(COS(age))",
    ),
    _elementary(
        "tan",
        "the tangent of an angle in radians; clip it in your query",
        math.tan,
        _tangent,
        _write_gridded("tan({0})"),
        word="TAN",
        example="AVG(GREATEST(LEAST(TAN(age), 9), -9))",
    ),
    _elementary(
        "asin",
        "the angle whose sine is a; NULL if a is not between -1 and 1",
        math.asin,
        _rising(math.asin, -1.0, 1.0),
        _write_gridded("asin({0})", _SIZE),
        word="ASIN",
        example="AVG(ASIN(age / 120))",
    ),
    _elementary(
        "acos",
        "the angle whose cosine is a; NULL if a is not between -1 and 1",
        math.acos,
        lambda spans: -_rising(lambda value: -math.acos(value), -1.0, 1.0)(spans),
        _write_gridded("acos({0})", _SIZE),
        word="ACOS",
        example="AVG(ACOS(age / 120))",
    ),
    _elementary(
        "atan",
        "the angle whose tangent is a",
        math.atan,
        _rising(math.atan),
        _write_gridded("atan({0})"),
        word="ATAN",
        example="AVG(ATAN(age))",
    ),
    _elementary(
        "atan2",
        "the angle of the point (b, a), from -pi to pi; -0 counts as 0",
        lambda y, x: math.atan2(y + 0.0, x + 0.0),
        _angle,
        _write_gridded("atan2({0} + 0, {1} + 0)"),
        arguments=2,
        word="ATAN2",
        example="AVG(ATAN2(age, charge))",
        spelled={
            "postgres": _write_gridded(
                "atan2({0} + CAST('0.0' AS double precision), {1} + CAST('0.0' AS double precision))"
            ),
            "spark": _write_gridded("atan2({0} + 0D, {1} + 0D)"),
        },
    ),
    _elementary(
        "sinh",
        "the hyperbolic sine",
        math.sinh,
        _rising(math.sinh),
        _write_gridded("sinh({0})"),
        word="SINH",
        example="AVG(SINH(age / 120))",
    ),
    _elementary(
        "cosh",
        "the hyperbolic cosine",
        math.cosh,
        _even(_rising(math.cosh)),
        _write_gridded("cosh({0})"),
        word="COSH",
        example="AVG(COSH(age / 120))",
    ),
    _elementary(
        "tanh",
        "the hyperbolic tangent",
        math.tanh,
        _rising(math.tanh),
        _write_gridded("tanh({0})"),
        word="TANH",
        example="AVG(TANH(age))",
    ),
)

LOGARITHMS = frozenset(("ln", "log2", "log10", "log"))
"""Functions that fall without limit near zero, of their last argument."""
