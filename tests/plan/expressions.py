"""Random typed expressions, and a printer that writes them as SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from discreet.plan.expressions.calls import Mismatch, call
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.expressions.functions.date_functions import DATES
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal
from discreet.plan.model.types import Type
from tests.plan.tables import VISITS

N, F, B, T, D, S = Type.INT, Type.FLOAT, Type.BOOL, Type.TEXT, Type.DATE, Type.TIMESTAMP

texts = st.text("aAbB1%_'é -", max_size=4)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    N: st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1)),
    F: st.one_of(st.sampled_from([0.0, 0.5, -1.5, 1e300]), st.floats(allow_nan=False, allow_infinity=False)),
    B: st.booleans(),
    T: texts,
    D: st.dates(),
    S: st.datetimes(),
}

ELEMENTARY = {
    *("ln", "log2", "log10", "exp", "cube_root", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    "atan2",
}
"""The elementary functions that are read as they are written: LOG and POWER are others if a number is written out."""

_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "integer_divide": "//",
    "modulo": "%",
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and": "AND",
    "or": "OR",
    "like": "LIKE",
    "concat": "||",
}
_PREFIX = {
    **{name: function.words[0] for name, function in FUNCTIONS.items() if function.words},
    **{name: name.upper() for name in ("round", "substring", "replace", "log2", "log10")},
}
_CASTS = {
    **dict.fromkeys(("to_int", "round_to_int"), "INT"),
    "to_float": "DOUBLE",
    "to_text": "TEXT",
    "to_date": "DATE",
    "to_timestamp": "TIMESTAMP",
}


def sql(expression: Expression) -> str:
    """The expression as SQL, in brackets wherever there could be a doubt."""
    if isinstance(expression, ColumnRef):
        return '"' + expression.name + '"'
    if isinstance(expression, Literal):
        return _literal(expression)
    assert isinstance(expression, FunctionCall)
    return "(" + _call(expression.function, [sql(argument) for argument in expression.arguments]) + ")"


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        names = {N: "BIGINT", F: "DOUBLE", T: "TEXT", D: "DATE", S: "TIMESTAMP", B: "BOOLEAN"}
        return f"CAST(NULL AS {names[literal.type]})"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return f"({_number(value)})"


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    digits = repr(value)
    return digits if "e" in digits or "." in digits else digits + ".0"


def _call(function: str, parts: list[str]) -> str:
    if function in _OPERATORS:
        return f"{parts[0]} {_OPERATORS[function]} {parts[1]}"
    if function in _CASTS:
        return f"CAST({parts[0]} AS {_CASTS[function]})"
    if function in _PREFIX:
        return f"{_PREFIX[function]}({', '.join(parts)})"
    if function.startswith("start_of_"):
        return f"DATE_TRUNC('{function.removeprefix('start_of_')}', {parts[0]})"
    forms = {
        "trim": "TRIM({0}, ' ')",
        "trim_left": "LTRIM({0}, ' ')",
        "trim_right": "TRIM(TRAILING ' ' FROM {0})",
        "negate": "-({0})",
        "not": "NOT ({0})",
        "days_between": "DATE_DIFF('day', {0}, {1})",
        "microseconds_between": "DATE_DIFF('microsecond', {0}, {1})",
        "add_days": "{0} + INTERVAL ({1}) DAY",
        "add_months": "{0} + INTERVAL ({1}) MONTH",
        "is_null": "({0}) IS NULL",
        "if": "CASE WHEN {0} THEN {1} ELSE {2} END" if len(parts) > 2 else "",
        "in": "{0} IN (" + ", ".join(parts[1:]) + ")",
    }
    return forms[function].format(*parts)


_PLANS: dict[Type, Sequence[tuple[str, tuple[Type, ...]]]] = {
    N: [
        *((name, (N, N)) for name in ("add", "subtract", "multiply", "integer_divide", "modulo", "greatest", "least")),
        *((name, (N, N)) for name in ("coalesce", "null_if")),
        *((name, (N,)) for name in ("negate", "absolute")),
        *((("to_int"), (kind,)) for kind in (T, B)),
        ("round_to_int", (F,)),
        *((part.name, part.signatures[0].arguments) for part in DATES if part.calendar.parts),
        ("days_between", (D, D)),
        ("microseconds_between", (S, S)),
        ("position", (T, T)),
        ("length", (T,)),
        ("if", (B, N, N)),
    ],
    F: [
        *((name, (F, F)) for name in ("add", "subtract", "multiply", "divide", "greatest", "least", "coalesce")),
        *((name, (F,)) for name in ("negate", "absolute", "round", "floor", "ceil", "square_root")),
        *((name, (F, F) if name == "atan2" else (F,)) for name in sorted(ELEMENTARY)),
        *(("to_float", (kind,)) for kind in (N, T)),
        ("add", (N, F)),
        ("divide", (N, N)),
        ("if", (B, F, F)),
        ("null_if", (F, F)),
    ],
    B: [
        *((name, (kind, kind)) for name in ("equal", "less", "greater_equal") for kind in (N, F, T, D, S)),
        *((name, (B, B)) for name in ("and", "or", "not_equal", "coalesce")),
        *(("is_null", (kind,)) for kind in (N, F, B, T, D, S)),
        ("less_equal", (N, F)),
        *((name, (T, T)) for name in ("starts_with", "ends_with", "contains")),
        ("not", (B,)),
    ],
    T: [
        *((name, (T,)) for name in ("upper_case", "lower_case", "trim", "trim_left", "trim_right")),
        *((name, (D,)) for name in ("day_name", "month_name")),
        ("concat", (T, T)),
        ("replace", (T, T, T)),
        ("split_part", (T, T, N)),
        *(("to_text", (kind,)) for kind in (N, B, D)),
        ("substring", (T, N, N)),
        ("greatest", (T, T)),
        ("coalesce", (T, T)),
        ("if", (B, T, T)),
    ],
    D: [
        *((f"start_of_{part}", (kind,)) for part in ("year", "quarter", "month", "week") for kind in (D, S)),
        *(("to_date", (kind,)) for kind in (S, T)),
        ("least", (D, D)),
        ("add_days", (D, N)),
        ("add_months", (D, N)),
        ("end_of_month", (D,)),
    ],
    S: [
        *(("coalesce", (S, S)), ("if", (B, S, S)), ("add_days", (S, N)), ("add_months", (S, N))),
        ("to_timestamp", (D,)),
    ],
}


def leaves(kind: Type) -> st.SearchStrategy[Expression]:
    columns = [ColumnRef(name, column.type) for name, column in VISITS.columns.items() if column.type is kind]
    literals = VALUES[kind].map(lambda value: Literal(value + 0.0 if kind is F else value, kind))
    return st.one_of(st.sampled_from(columns), literals)


@st.composite
def expressions(draw: st.DrawFn, kind: Type, depth: int = 3) -> Expression:
    """An expression of a type; literals are kept from standing alone in casts that would read them as constants."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(leaves(kind))
    function, kinds = draw(st.sampled_from(list(_PLANS[kind])))
    arguments = [draw(expressions(part, depth - 1)) for part in kinds]
    if function == "to_date" and isinstance(arguments[0], Literal):
        arguments = [ColumnRef("ward", T) if kinds == (T,) else ColumnRef("seen", S)]
    if function == "to_timestamp" and isinstance(arguments[0], Literal):
        arguments = [ColumnRef("day", D)]
    if function == "round_to_int" and isinstance(arguments[0], Literal):
        arguments = [ColumnRef("charge", F)]
    try:
        return call(function, *arguments)
    except Mismatch:
        return draw(leaves(kind))


def rows(bounded: Mapping[str, tuple[int, int]]) -> st.SearchStrategy[dict[str, Any]]:
    """Rows of the table, columns with bounds within them, everything possibly NULL."""

    def values(name: str, kind: Type) -> st.SearchStrategy[Any]:
        if name not in bounded:
            return VALUES[kind]
        low, high = bounded[name]
        return st.integers(low, high) if kind is N else st.floats(low, high)

    return st.fixed_dictionaries(
        {name: st.one_of(st.none(), values(name, column.type)) for name, column in VISITS.columns.items()}
    )
