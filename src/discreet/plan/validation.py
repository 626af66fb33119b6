"""A reading held against the declared columns and the table of functions, before any row is touched: fail closed."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.errors import InvalidParameter
from discreet.lazy import Module
from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW
from discreet.plan.expressions.functions import FUNCTIONS, Signature
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, FunctionCall, Literal, Relation, Value
from discreet.plan.model.readings import ContributionBounding, Reading, Split, Spread, Statistic
from discreet.plan.model.relations import (
    BaseTable,
    Cut,
    Declared,
    Join,
    LinkedTable,
    MarkJoin,
    RelationUnion,
    Select,
    SemiJoin,
    UnitAggregation,
    Window,
    WindowedRelation,
    children,
    cuts,
    shape,
)
from discreet.plan.model.row_period import names_days
from discreet.plan.model.schema import MANY, IdentityKey
from discreet.plan.model.types import Type

if TYPE_CHECKING:
    from discreet.plan.expressions import pattern_grammar, patterns
else:  # most readings have no pattern
    pattern_grammar = Module("discreet.plan.expressions.pattern_grammar")
    patterns = Module("discreet.plan.expressions.patterns")

LARGEST_STEPS = 1 << 62
LARGEST_EXPONENT = 1000
MOST_TERMS = 3  # of a product
LARGEST_SHIFT = 62
LONGEST_RUN = 1 << 16  # cells of one group, one after the other
DEEPEST = 120

_PYTHON: Mapping[Type, type] = {
    Type.INT: int,
    Type.FLOAT: float,
    Type.BOOL: bool,
    Type.TEXT: str,
    Type.DATE: dt.date,
    Type.TIMESTAMP: dt.datetime,
}
_OF_ROWS, _OF_VALUES = ("rows", "units"), ("values", "nulls", "sum", "product", "distinct", "distinct_sum")
_PATTERNS = {"matches": 0, "extract": 1}  # how many groups their patterns have
_LITERALS_ONLY = {"in": 1, **dict.fromkeys(("like", "strip", "strip_left", "strip_right", *_PATTERNS), 1)}
"""From which argument on."""


def find_argument_types(call: FunctionCall) -> tuple[Type, ...]:
    """Returns the types to which arguments are converted: an INT becomes a FLOAT where the signature asks for one.

    Raises:
        InvalidParameter: for a function that is not in the table, arguments it does not take, or another result type.
    """
    given = tuple([argument.type for argument in call.arguments])
    signature = _signature(call.function, given)
    if signature is None or signature.result is not call.type:
        kinds = ", ".join(kind.value for kind in given)
        raise InvalidParameter("function", f"{call.function}({kinds})", "to be a function of the table")
    return signature.types_of(len(given))


@lru_cache(maxsize=4096)
def _signature(function: str, given: tuple[Type, ...]) -> Signature | None:
    found = FUNCTIONS.get(function)
    return found.result(given) if found else None


def check_reading(reading: Reading, declared: Declared) -> None:
    """Refuses whatever an engine could not run with the documented meaning.

    Args:
        reading: what is asked.
        declared: the columns of each table.

    Raises:
        InvalidParameter: naming the part that is wrong.
    """
    if reading.source is None:
        columns = declared[reading.table]
    else:
        _require_named(reading.source, None)
        check_relation(reading.source, declared)
        columns = shape(reading.source, declared)
        if reading.bounding is None and next(cuts(reading.source), None) is not None:
            raise InvalidParameter("relation", "a cut", "to be read with limits, whose salt chooses the rows that stay")
    for expression in _expressions(reading):
        _check_expression(expression, columns)
    if reading.where is not None and reading.where.type is not Type.BOOL:
        raise InvalidParameter("where", reading.where.type.value, "to be a condition of type bool")
    for key in reading.keys:
        if key.type is Type.FLOAT:
            raise InvalidParameter("key", "float", "not to be of type float", "Group by to_int, round or a text.")
    _check_keys(reading.public_keys or (), reading.keys)
    if reading.bounding is not None:
        _check_bounding(reading.bounding, columns)
    _check_asked(reading)


def _check_asked(reading: Reading) -> None:
    if [bool(reading.statistics), reading.split is not None, reading.spread is not None].count(True) != 1:
        raise InvalidParameter("statistics", reading.statistics, "to ask for something, unless there is a split")
    if reading.spread is not None:
        _check_spread(reading.spread, reading)
    if reading.split is not None:
        _check_split(reading.split, reading.keys)
    for statistic in reading.statistics:
        _check_statistic(statistic)


def check_relation(relation: Relation, declared: Declared) -> None:
    """Refuses a relation with columns or types that its parts do not have.

    Raises:
        InvalidParameter: naming the part that is wrong.
    """
    _check_own(relation, declared)
    _check_periods(relation)
    for child in children(relation):
        check_relation(child, declared)
    for expression, source in _computed_expressions(relation):
        _check_expression(expression, shape(source, declared))
    shapes = [shape(child, declared) for child in children(relation)]
    if isinstance(relation, LinkedTable):
        _check_step(relation, declared[relation.name], shapes[0])
    elif isinstance(relation, WindowedRelation):
        _check_windows(relation, shapes[0])
    elif isinstance(relation, UnitAggregation | Cut):
        _check_has_people(relation, shapes[0])
    elif isinstance(relation, RelationUnion) and any(list(one.items()) != list(shapes[0].items()) for one in shapes):
        raise InvalidParameter("relation", "these parts", "to have the same columns")
    elif isinstance(relation, Join | SemiJoin | MarkJoin):
        _check_pairs(relation)
        _check_people(*shapes)
        if isinstance(relation, Join) and relation.single and any(UNIT in one for one in shapes):
            raise InvalidParameter("join", "single", "to pair rows that are units of their own with public ones")
        if isinstance(relation, MarkJoin) and relation.name in shapes[0]:
            raise InvalidParameter("relation", relation.name, "to be a unique name")


def _check_has_people(relation: UnitAggregation | Cut, columns: Mapping[str, Type]) -> None:
    done = "cut" if isinstance(relation, Cut) else "folded"
    if UNIT not in columns:
        raise InvalidParameter(
            "relation", "rows without an id", f"to be {done} person by person only where there are people"
        )
    if isinstance(relation, Cut):
        check.integer(rows=relation.rows, at_least=1, at_most=10**9)


def _check_pairs(relation: Join | SemiJoin | MarkJoin) -> None:
    for one, other in relation.on:
        if one.type is not other.type:
            raise InvalidParameter("join", f"{one.type.value} and {other.type.value}", "to compare the same type")


def _inside(window: Window) -> Iterable[Expression]:
    yield from (() if window.argument is None else (window.argument,))
    yield from window.partition
    yield from (order.expression for order in window.order)


def _check_windows(relation: WindowedRelation, columns: Mapping[str, Type]) -> None:
    names = [*columns, *(window.name for window in relation.windows)]
    if UNIT not in columns or len(set(names)) != len(names):
        raise InvalidParameter("relation", "these windows", "to have unique names, over rows with an id")
    for window in relation.windows:
        check.integer(offset=window.offset, at_least=1, at_most=10**6)


def _check_own(relation: Relation, declared: Declared) -> None:
    """Checks that the columns of ids of a table are its own, and of types that ids may have."""
    if not isinstance(relation, BaseTable) or relation.unit is None:
        return
    parts = relation.unit if isinstance(relation.unit, tuple) else (relation.unit,)
    if not parts or any(declared[relation.name].get(part) in (None, Type.FLOAT) for part in parts):
        raise InvalidParameter("unit", relation.unit, "to be declared columns of whole or text ids")


def _check_periods(relation: Relation) -> None:
    """Checks that rows with budgets by period are read in periods that are named.

    A release costs those periods alone to which it was charged. So whatever reads all rows is refused here, whoever
    planned it: the condition must be the first that is asked of the rows.
    """
    for child in children(relation):
        _require_named(child, relation.where if isinstance(relation, Select) else None)


def _require_named(relation: Relation, where: Expression | None) -> None:
    if not isinstance(relation, BaseTable) or relation.period is None:
        return
    if where is None or not names_days(where, relation.period.date):
        raise InvalidParameter("relation", relation.name, "to be read in named periods of its rows alone")


def _check_step(relation: LinkedTable, own: Mapping[str, Type], through: Mapping[str, Type]) -> None:
    kinds = own.get(relation.column), through.get(relation.key)
    if None in kinds or Type.FLOAT in kinds or kinds[0] is not kinds[1] or UNIT not in through:
        step = f"{relation.column} -> {relation.key}"
        raise InvalidParameter("unit", step, "to lead to a column of the same type, in rows with an id")


def _check_people(left: Mapping[str, Type], right: Mapping[str, Type]) -> None:
    """Checks that a pair is of one person: where the right side has people, the left has ids of the same type."""
    if UNIT in right and left.get(UNIT) is not right[UNIT]:
        raise InvalidParameter("relation", "these tables", "to be about the same people")


def _computed_expressions(relation: Relation) -> Iterable[tuple[Expression, Relation]]:
    """Yields the expressions of a relation, and over whose rows each is computed."""
    if isinstance(relation, Select):
        yield from ((column.expression, relation.source) for column in relation.columns)
        if relation.where is not None:
            yield relation.where, relation.source
    elif isinstance(relation, UnitAggregation):
        yield from ((key.expression, relation.source) for key in relation.keys)
        yield from ((fold.argument, relation.source) for fold in relation.folds if fold.argument is not None)
        yield from ((fold.by, relation.source) for fold in relation.folds if fold.by is not None)
    elif isinstance(relation, WindowedRelation):
        yield from ((part, relation.source) for window in relation.windows for part in _inside(window))
    elif isinstance(relation, Cut):
        yield from ((part, relation.source) for part in relation.by)
    elif isinstance(relation, Join | SemiJoin | MarkJoin):
        left, right = children(relation)
        for one, other in relation.on:
            yield one, left
            yield other, right


def _expressions(reading: Reading) -> Iterable[Expression]:
    if reading.where is not None:
        yield reading.where
    yield from reading.keys
    for statistic in reading.statistics:
        yield from _arguments(statistic)
    if reading.split is not None:
        yield reading.split.argument


def _arguments(statistic: Statistic) -> Iterator[Expression]:
    """Yields what is added up or multiplied."""
    if statistic.argument is not None:
        yield statistic.argument
    if statistic.factor is not None:
        yield from _arguments(statistic.factor)


def _check_expression(expression: Expression, columns: Mapping[str, Type], depth: int = 0) -> None:
    if depth > DEEPEST:
        raise InvalidParameter("expression", "nested too deeply", f"to be at most {DEEPEST} calls deep")
    if isinstance(expression, FunctionCall):
        find_argument_types(expression)
        first = _LITERALS_ONLY.get(expression.function, len(expression.arguments))
        for argument in expression.arguments[first:]:
            if not isinstance(argument, Literal) or argument.value is None:
                raise InvalidParameter(expression.function, "an expression", "to be given literals to compare with")
        if expression.function in _PATTERNS:
            _check_pattern(expression)
        for argument in expression.arguments:
            _check_expression(argument, columns, depth + 1)
    elif isinstance(expression, Literal):
        check_value(expression.value, expression.type)
    elif not isinstance(expression, ColumnRef) or columns.get(expression.name) is not expression.type:
        raise InvalidParameter("column", getattr(expression, "name", expression), "to be declared with this type")


def _check_pattern(expression: FunctionCall) -> None:
    """Checks that a pattern is in the normal form, which means the same to all engines."""
    pattern = expression.arguments[1]
    text = str(pattern.value) if isinstance(pattern, Literal) else ""
    try:
        found = pattern_grammar.parse(text)
    except pattern_grammar.PatternError as error:
        raise InvalidParameter("pattern", text, "to be understood", error.reason) from None
    if patterns.write_pattern(found) != text or patterns.groups(found) != _PATTERNS[expression.function]:
        raise InvalidParameter("pattern", text, "to be in its normal form, with a group to extract and no other")


def check_value(value: Value, kind: Type) -> None:
    """Refuses a literal or a public key that is not a value of its type."""
    if value is None:
        return
    good = type(value) is _PYTHON[kind]
    good = good and (kind is not Type.INT or INT_LOW <= int(value) <= INT_HIGH)  # type: ignore[arg-type]
    good = good and (kind is not Type.FLOAT or math.isfinite(value))  # type: ignore[arg-type]
    good = good and (kind is not Type.TEXT or is_unicode(str(value)))
    good = good and getattr(value, "tzinfo", None) is None
    if not good:
        raise InvalidParameter("value", value, f"to be of type {kind.value}")


def is_unicode(text: str) -> bool:
    """Returns whether a text has no half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_keys(listed: Sequence[tuple[Value, ...]], keys: tuple[Expression, ...]) -> None:
    """Refuses a key that is not of the types of its expressions; a long list is looked at once."""
    kinds = tuple(key.type for key in keys)
    if len(listed) > MANY and isinstance(listed, tuple):
        _check_many_keys(IdentityKey(listed), kinds)
    else:
        _check_key_types(listed, kinds)


@lru_cache(maxsize=16)
def _check_many_keys(listed: IdentityKey[tuple[tuple[Value, ...], ...]], kinds: tuple[Type, ...]) -> None:
    _check_key_types(listed.value, kinds)


def _check_key_types(listed: Sequence[tuple[Value, ...]], kinds: tuple[Type, ...]) -> None:
    """Checks the types of keys by column, for there may be many."""
    if set(map(len, listed)) - {len(kinds)}:
        wrong = next(values for values in listed if len(values) != len(kinds))
        raise InvalidParameter("public_keys", wrong, f"to have {len(kinds)} values each")
    for place, kind in enumerate(kinds):
        column = [values[place] for values in listed]
        if not are_plainly(column, kind):
            for value in column:
                check_value(value, kind)


def are_plainly(values: Sequence[Value], kind: Type) -> bool:
    """Returns whether values are of a type or NULL, as far as that is seen of all at once; False says nothing."""
    present = [value for value in values if value is not None]
    if set(map(type, present)) - {_PYTHON[kind]}:
        return False
    if kind is Type.INT:
        whole: list[Any] = present
        return not whole or (min(whole) >= INT_LOW and max(whole) <= INT_HIGH)
    return kind in (Type.BOOL, Type.DATE) or (kind is Type.TEXT and "".join(map(str, present)).isascii())


def _check_bounding(bounding: ContributionBounding, columns: Mapping[str, Type]) -> None:
    if columns.get(bounding.unit) in (None, Type.FLOAT):
        raise InvalidParameter("unit", bounding.unit, "to be a declared column of whole or text ids")
    check.integer(groups=bounding.groups, at_least=1, at_most=10**9)
    check.integer(rows=bounding.rows, at_least=1, at_most=10**9)
    check_value(bounding.salt, Type.TEXT)


def _check_split(split: Split, keys: tuple[Expression, ...]) -> None:
    _check_statistic(split.term)
    check.integer(high=split.high, at_most=split.low + LARGEST_STEPS)
    check.integer(shift=split.shift, at_least=0, at_most=LARGEST_SHIFT)
    if split.only is not None:
        check.integer(shift=split.only.shift, at_least=0, at_most=LARGEST_SHIFT)
        for values, first, last in split.only.places:
            _check_keys([values], keys)
            check.integer(first=first, at_least=0, at_most=LARGEST_STEPS)
            check.integer(last=last, at_least=first, at_most=first + LONGEST_RUN)


def _check_spread(spread: Spread, reading: Reading) -> None:
    if reading.bounding is None or not reading.keys or reading.public_keys is not None:
        raise InvalidParameter("spread", "a reading", "to count units of several rows by private groups")
    for values in spread.without:
        _check_keys([values], reading.keys)


def _check_statistic(statistic: Statistic) -> None:
    if statistic.kind not in (*_OF_ROWS, *_OF_VALUES):
        raise InvalidParameter("statistic", statistic.kind, f"to be one of {', '.join((*_OF_ROWS, *_OF_VALUES))}")
    if (statistic.argument is None) is (statistic.kind in _OF_VALUES):
        raise InvalidParameter("argument", statistic.kind, f"to be given for {', '.join(_OF_VALUES)} only")
    check.integer(times=statistic.times, at_least=1, at_most=LARGEST_STEPS)
    if (statistic.factor is None) is (statistic.kind == "product"):
        raise InvalidParameter("factor", statistic.kind, "to be given for a product only")
    check.integer(less=statistic.less, at_least=-LARGEST_STEPS, at_most=LARGEST_STEPS)
    if statistic.factor is not None:
        _check_product(statistic, statistic.factor)
    if statistic.kind in ("sum", "product", "distinct_sum"):
        if statistic.argument is None or not statistic.argument.type.is_number:
            raise InvalidParameter("argument", "this expression", "to be a number")
        check.integer(low=statistic.low, at_least=-LARGEST_STEPS, at_most=statistic.high)
        check.integer(high=statistic.high, at_most=LARGEST_STEPS)
        check.integer(shift=statistic.shift, at_least=-LARGEST_STEPS, at_most=LARGEST_STEPS)
        check.integer(exponent=statistic.exponent, at_least=-LARGEST_EXPONENT, at_most=LARGEST_EXPONENT)


def _check_product(statistic: Statistic, factor: Statistic) -> None:
    """Products of terms stay in 64 bits, so that a database multiplies and adds them exactly."""
    if factor.kind not in ("sum", "product") or factor.times != 1 or factor.less:
        raise InvalidParameter("factor", factor.kind, "to be a plain sum, or a product of two")
    _check_statistic(factor)
    terms = statistic.terms
    ends = [max(abs(term.low - term.shift), abs(term.high - term.shift)) for term in terms]
    if len(terms) > MOST_TERMS or max(*ends, *accumulate(ends, mul)) > LARGEST_STEPS:
        raise InvalidParameter("factor", "these bounds", "to have products below 2^62 steps", "Use a coarser grid.")
