"""Rules for `value_bounds`: spans of elementary functions, by monotony where there is one.

An end is the function of an end, computed in doubles and moved outwards by far more than the error of a library and the
rounding to the grid of `elementary` together. Where a function grows without limit an end is infinite, so that nobody
adds up what one person could move by hundreds of orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product

from discreet.exact import float_above, float_below
from discreet.plan.expressions.elementary import DIGITS, LARGEST
from discreet.plan.expressions.interval_arithmetic import EMPTY, EVERYTHING, End, Span, hull

Rule = Callable[[Sequence[Span]], Span]
_SLACK = Fraction(1, 1 << (DIGITS - 1))  # of a result: the grid's half step is a quarter of it
_PI = Fraction(math.pi) * (1 + _SLACK)


def _below(end: End) -> float:
    return end if isinstance(end, float) else float_below(end)


def _above(end: End) -> float:
    return end if isinstance(end, float) else float_above(end)


def _outwards(low: float, high: float) -> Span:
    """The span between two computed ends, each moved outwards; a result beyond the largest is no end."""
    down, up = (value if math.isinf(value) else Fraction(value) for value in (low, high))
    below = -math.inf if isinstance(down, float) or down < -LARGEST else down - abs(down) * _SLACK
    above = math.inf if isinstance(up, float) or up > LARGEST else up + abs(up) * _SLACK
    return Span(below, above)


def _at(function: Callable[..., float], *arguments: float) -> float:
    """The function at an end, infinite where it overflows; only the hyperbolic sine does so below zero."""
    try:
        return function(*arguments)
    except OverflowError:
        return math.inf if function is not math.sinh or arguments[0] > 0 else -math.inf


def _rising(function: Callable[[float], float], low: float = -math.inf, high: float = math.inf) -> Rule:
    """A function that never decreases between two numbers, outside of which it has no value."""

    def rule(spans: Sequence[Span]) -> Span:
        held = spans[0].within(_end(low), _end(high))
        return EMPTY if held.is_empty else _outwards(_at(function, _below(held.low)), _at(function, _above(held.high)))

    return rule


def _end(value: float) -> End:
    return value if math.isinf(value) else Fraction(value)


def _logarithm(function: Callable[[float], float]) -> Rule:
    """Rising from minus infinity at zero, where there is no value yet."""
    rule = _rising(lambda value: function(value) if value > 0 else -math.inf, 0.0)
    return lambda spans: rule(spans) if spans[0].high > 0 else EMPTY


def _wave(function: Callable[[float], float]) -> Rule:
    """Sine or cosine: between -1 and 1, and no farther from its value at the middle than the ends are."""

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


def _even(rule: Rule) -> Rule:
    """A function that is the same for x and -x."""
    return lambda spans: rule([abs(spans[0])])


def _tangent(spans: Sequence[Span]) -> Span:
    """Rising between two poles; anything where a pole may be near."""
    inside = not spans[0].is_empty and abs(spans[0]).high < Fraction(157, 100)
    return _rising(math.tan)(spans) if inside else EVERYTHING


def _angle(spans: Sequence[Span]) -> Span:
    """The angle of a point on the right is that of its tangent."""
    y, x = spans
    return _rising(math.atan)([y / x]) if x.low > 0 and not x.is_empty else Span(-_PI, _PI)


def _log(spans: Sequence[Span]) -> Span:
    base, value = (ELEMENTARY_RULES["ln"]([span]) for span in spans)
    exact = value / base
    return exact if not exact.is_bounded else _outwards(_below(exact.low), _above(exact.high))


def _power(spans: Sequence[Span]) -> Span:
    """Between the powers of the corners if the base is not negative: it is monotone in each argument."""
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
    """x^n of a base that may be negative."""
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
    found = [_at(_raised, *pair) for pair in product(bases, (_below(exponent.low), _above(exponent.high)))]
    return _outwards(min(found), max(found))


def _raised(base: float, exponent: float) -> float:
    return math.inf if base == 0 and exponent < 0 else math.pow(base, exponent)


LOGARITHMS = frozenset(("ln", "log2", "log10", "log"))
"""Functions that fall without limit near zero, of their last argument."""

ELEMENTARY_RULES: Mapping[str, Rule] = {
    "ln": _logarithm(math.log),
    "log2": _logarithm(math.log2),
    "log10": _logarithm(math.log10),
    "log": _log,
    "exp": _rising(math.exp),
    "power": _power,
    "cube_root": _rising(math.cbrt),
    "sin": _wave(math.sin),
    "cos": _wave(math.cos),
    "tan": _tangent,
    "asin": _rising(math.asin, -1.0, 1.0),
    "acos": lambda spans: -_rising(lambda value: -math.acos(value), -1.0, 1.0)(spans),
    "atan": _rising(math.atan),
    "atan2": _angle,
    "sinh": _rising(math.sinh),
    "cosh": _even(_rising(math.cosh)),
    "tanh": _rising(math.tanh),
}
"""Elementary functions by name; each span holds every value on the grid."""
