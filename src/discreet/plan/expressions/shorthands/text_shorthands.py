"""Shorthands of texts: parts of them, and texts put together."""

from __future__ import annotations

from functools import reduce

from discreet.plan.expressions.calls import NULL, Mismatch, call
from discreet.plan.expressions.shorthands.shorthand import Shorthand
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type

_WHOLE_REST = Literal(2**31 - 1, Type.INT)  # longer than any text: SUBSTRING without a length
_ONE, _NOTHING = Literal(1, Type.INT), Literal("", Type.TEXT)


def _substring(text: Expression, start: Expression, length: Expression = _WHOLE_REST) -> Expression:
    return call("substring", text, start, length)


def _take_left(text: Expression, size: Expression) -> Expression:
    return call("substring", text, _ONE, _size(size))


def _right(text: Expression, size: Expression) -> Expression:
    """Writes RIGHT: it begins so many places before the end; a place before the beginning is clipped."""
    begin = call("add", call("subtract", call("length", text), _size(size)), _ONE)
    return call("substring", text, begin, size)


def _size(size: Expression) -> Expression:
    if isinstance(size, Literal) and isinstance(size.value, int) and size.value < 0:
        raise Mismatch("LEFT and RIGHT take a length from 0 on.", "Use SUBSTRING: {grouped}.")
    return size


def as_text(value: Expression) -> Expression:
    """Returns a whole number, a truth value or a day as a text, as they are where texts are put together."""
    if value is NULL:
        return Literal(None, Type.TEXT)
    return value if value.type is Type.TEXT else call("to_text", value)


def together(one: Expression, other: Expression) -> Expression:
    """Returns two texts in a row."""
    return call("concat", one, other)


def _concat(*values: Expression) -> Expression:
    parts = [as_text(value) for value in values]
    present = [part if isinstance(part, Literal) and part.value else call("coalesce", part, _NOTHING) for part in parts]
    return reduce(together, present)


def _replace(text: Expression, old: Expression, new: Expression = _NOTHING) -> Expression:
    return call("replace", text, old, new)


TEXT_SHORTHANDS = (
    Shorthand(
        words=("SUBSTRING", "SUBSTR"),
        meaning="the part of a that starts at position b (1 is the first), at most c code points long",
        example="WHERE SUBSTRING(note, 6, 1) = '1'",
        counts=(2, 3),
        expand=_substring,
    ),
    Shorthand(
        words=("LEFT",),
        meaning="the first b code points of a",
        example="WHERE LEFT(note, 4) = 'note'",
        counts=(2,),
        expand=_take_left,
    ),
    Shorthand(
        words=("RIGHT",),
        meaning="the last b code points of a",
        example="WHERE RIGHT(note, 1) = '1'",
        counts=(2,),
        expand=_right,
    ),
    Shorthand(
        words=("CONCAT",),
        meaning="joins all arguments, and skips NULL",
        example="WHERE CONCAT(ward, '-', note) = 'heart-note 1'",
        counts=(2,),
        expand=_concat,
    ),
    Shorthand(
        words=("REPLACE",),
        meaning="replaces every b in a with c, or removes it if there is no c",
        example="WHERE REPLACE(note, 'note ', '') = '1'",
        counts=(2, 3),
        expand=_replace,
    ),
)
