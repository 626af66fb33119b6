"""Questions as canonical JSON: one form for the ledger, one for finding a stored release, and the way back.

The form is part of the ledger's format: its meaning never changes. A change of the plan's nodes means a new number in
`VERSION`, and old texts stay what they are.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import Any

from discreet.errors import InternalError
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.model.nodes import (
    Aggregate,
    ColumnRef,
    Expression,
    FunctionCall,
    Key,
    Literal,
    Output,
    PostProcessingStep,
    Question,
    Relation,
    Value,
)
from discreet.plan.model.relations import (
    BaseTable,
    Cut,
    Join,
    LinkedTable,
    MarkJoin,
    RelationUnion,
    Select,
    SemiJoin,
    UnitAggregation,
    WindowedRelation,
)
from discreet.plan.model.types import Type
from discreet.plan.post.steps import AttachQuestion, FilterGroups, GroupWindows, Regroup, UnionAll

VERSION = 1

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
"""Made once: `json.dumps` makes one for each text that is not written in its own way."""


def canonical(question: Question) -> str:
    """Writes the whole question as JSON: equal for equal questions, however they were written.

    >>> from discreet.plan.model.nodes import Output
    >>> from discreet.plan.model.types import Type
    >>> n = Aggregate(name="#1", kind="count")
    >>> asked = Question(table="visits", aggregates=(n,), outputs=(Output("n", ColumnRef("#1", Type.INT)),), limit=3)
    >>> print(canonical(asked))
    {"aggregates":[{"kind":"count"}],"keys":[],"limit":3,"outputs":[["n",["#","1"]]],"table":"visits","version":1}
    """
    form = {
        **_release_form(question),
        "keys": [[key.name, _form(key.expression)] for key in question.keys],
        "outputs": [[output.name, _form(output.expression)] for output in question.outputs],
        "having": None if question.having is None else _form(question.having),
        "order": [[_form(order.expression), order.descending] for order in question.order] or None,
        "limit": question.limit,
        "offset": question.offset or None,
        "steps": [_step(step) for step in question.steps] or None,
        "beside": [json.loads(canonical(block)) for block in question.beside] or None,
    }
    return _json(form)


def replay(question: Question) -> str:
    """Writes what is released for a question as JSON: without outputs, HAVING, ORDER BY, LIMIT and names.

    Two questions with the same text here are answered by the same release; all that differs is post-processing. The
    aggregates are in an order of their own, given by `replay_order`.

    >>> from discreet.plan.model.nodes import Output
    >>> from discreet.plan.model.types import Type
    >>> n = Aggregate(name="#1", kind="count")
    >>> print(replay(Question(table="visits", aggregates=(n,), outputs=(Output("n", ColumnRef("#1", Type.INT)),))))
    {"aggregates":[{"kind":"count"}],"keys":[],"table":"visits","version":1}
    """
    form = {
        **_release_form(question),
        "keys": [_form(key.expression) for key in question.keys],
        "aggregates": [_aggregate(aggregate) for aggregate in replay_order(question)],
        "beside": [json.loads(replay(block)) for block in question.beside] or None,
    }
    return _json(form)


def origin(question: Question) -> str:
    """Writes which rows a question is about as JSON: its table, and what they are made of if not simply of it."""
    return json.dumps([question.table, None if question.source is None else _rows(question.source)])


def replay_order(question: Question) -> list[Aggregate]:
    """Returns the aggregates in the order of the replay form, which does not depend on the order of outputs."""
    return sorted(question.aggregates, key=lambda aggregate: _json(_aggregate(aggregate)))


def _release_form(question: Question) -> dict[str, Any]:
    return {
        "version": VERSION,
        "table": question.table,
        "source": None if question.source is None else _rows(question.source),
        "where": None if question.where is None else _form(question.where),
        "aggregates": [_aggregate(aggregate) for aggregate in question.aggregates],
        "sets": [list(one) for one in question.sets] or None,
        "rest": None if question.rest is None else _form(question.rest),
        "bands": None if question.bands is None else [_form(question.bands.argument), question.bands.count],
    }


def _aggregate(aggregate: Aggregate) -> dict[str, Any]:
    form: dict[str, Any] = {"kind": aggregate.kind}
    if aggregate.argument is not None:
        form["argument"] = _form(aggregate.argument)
    if aggregate.other is not None:
        form["other"] = _form(aggregate.other)
    if aggregate.quantile is not None:
        form["quantile"] = str(aggregate.quantile)
    return form


def _json(form: dict[str, Any]) -> str:
    shown = {name: part for name, part in form.items() if part is not None}
    return _ENCODER.encode(shown)


@singledispatch
def _rows(relation: Relation) -> list[Any]:
    """Returns a relation: its name and its parts."""
    raise InternalError(f"A {type(relation).__name__} has no canonical form.")


@_rows.register
def _(relation: BaseTable) -> list[Any]:
    unit = list(relation.unit) if isinstance(relation.unit, tuple) else relation.unit
    period = [] if relation.period is None else [[relation.period.column, relation.period.per]]
    return ["table", relation.name, unit, *period]


@_rows.register
def _(relation: LinkedTable) -> list[Any]:
    return ["reached", relation.name, relation.column, _rows(relation.through), relation.key]


@_rows.register
def _(relation: Select) -> list[Any]:
    where = None if relation.where is None else _form(relation.where)
    return ["select", _rows(relation.source), _output_forms(relation.columns), where]


@_rows.register
def _(relation: UnitAggregation) -> list[Any]:
    folds = [
        [
            *[f.name, f.kind, f.type.value, None if f.argument is None else _form(f.argument)],
            *[f.exponent, f.low, f.high, *([] if f.by is None else [_form(f.by)])],
        ]
        for f in relation.folds
    ]
    return ["per_unit", _rows(relation.source), _output_forms(relation.keys), folds]


@_rows.register
def _(relation: WindowedRelation) -> list[Any]:
    windows = [
        [
            *[w.name, w.kind, w.type.value, None if w.argument is None else _form(w.argument)],
            [_form(part) for part in w.partition],
            [[_form(order.expression), order.descending] for order in w.order],
            *[w.offset, w.exponent, w.low, w.high],
        ]
        for w in relation.windows
    ]
    return ["windowed", _rows(relation.source), windows]


@_rows.register
def _(relation: Join) -> list[Any]:
    single = ["single"] if relation.single else []
    return ["join", _rows(relation.left), _rows(relation.right), _pairs(relation.on), relation.outer, *single]


@_rows.register
def _(relation: Cut) -> list[Any]:
    return ["cut", _rows(relation.source), [_form(part) for part in relation.by], relation.rows]


@_rows.register
def _(relation: SemiJoin) -> list[Any]:
    return ["matched", _rows(relation.source), _rows(relation.other), _pairs(relation.on), relation.negated]


@_rows.register
def _(relation: MarkJoin) -> list[Any]:
    return ["marked", _rows(relation.source), _rows(relation.other), _pairs(relation.on), relation.name]


@_rows.register
def _(relation: RelationUnion) -> list[Any]:
    return ["union", *(_rows(source) for source in relation.sources)]


@singledispatch
def _step(step: PostProcessingStep) -> list[Any]:
    raise InternalError(f"A {type(step).__name__} has no canonical form.")


@_step.register
def _(step: FilterGroups) -> list[Any]:
    return ["keep", _form(step.condition)]


@_step.register
def _(step: AttachQuestion) -> list[Any]:
    on = [[_form(part), name] for part, name in step.on]
    return ["attach", step.place, _output_forms(step.columns), on, step.outer]


@_step.register
def _(step: GroupWindows) -> list[Any]:
    windows = [
        [
            *[w.name, w.kind, w.type.value, None if w.argument is None else _form(w.argument)],
            [_form(part) for part in w.partition],
            [[_form(order.expression), order.descending] for order in w.order],
            *[w.offset, None if w.rows is None else list(w.rows)],
        ]
        for w in step.windows
    ]
    return ["frames", windows]


@_step.register
def _(step: Regroup) -> list[Any]:
    folds = [[f.name, f.kind, f.type.value, None if f.argument is None else _form(f.argument)] for f in step.folds]
    return ["gather", _output_forms(step.keys), folds]


@_step.register
def _(step: UnionAll) -> list[Any]:
    return ["union", _output_forms(step.columns), [[place, list(names)] for place, names in step.others]]


def _output_forms(columns: Sequence[Output]) -> list[Any]:
    return [[column.name, _form(column.expression)] for column in columns]


def _pairs(on: Sequence[tuple[Expression, Expression]]) -> list[Any]:
    return [[_form(one), _form(other)] for one, other in on]


@singledispatch
def _form(expression: Expression) -> list[Any]:
    raise InternalError(f"A {type(expression).__name__} has no canonical form.")


@_form.register
def _(expression: ColumnRef) -> list[Any]:
    if expression.name.startswith("#") and expression.name[1:].isdecimal():
        return ["#", expression.name[1:]]
    return ["column", expression.name, expression.type.value]


@_form.register
def _(expression: Literal) -> list[Any]:
    return [expression.type.value, _text(expression.value)]


@_form.register
def _(expression: FunctionCall) -> list[Any]:
    return [expression.function, expression.type.value, *(_form(argument) for argument in expression.arguments)]


def _text(value: object) -> object:
    """Doubles as their exact hexadecimal text, dates as ISO texts, the rest as JSON has it."""
    if isinstance(value, float):
        return value.hex()
    return value.isoformat() if isinstance(value, dt.date) else value


_PARTS = frozenset(("version", "table", "source", "where", "keys", "aggregates", "sets")) | frozenset(
    ("outputs", "having", "order", "limit", "offset", "steps")
)
"""The fields of a question without side questions."""

_TYPES = {kind.value: kind for kind in Type}


def recall(text: str, like: Question) -> Question | None:
    """Reads the released part of a question back, without outputs, HAVING, ORDER BY and LIMIT.

    Args:
        text: what `canonical` wrote.
        like: a question about the same rows; its table and source are taken, if they are what the text names.

    Returns:
        None if the text is of another version, of other rows, or names something that is no longer known.

    >>> asked = Question(table="visits", aggregates=(Aggregate(name="#1", kind="count"),), outputs=())
    >>> recall(canonical(asked), asked) == asked
    True
    """
    read = read_back(text)
    if read is None or read[0] != origin(like):
        return None
    _, where, keys, aggregates, sets = read
    return Question(
        table=like.table, source=like.source, where=where, keys=keys, aggregates=aggregates, outputs=(), sets=sets
    )


_Read = tuple[str, Expression | None, tuple[Key, ...], tuple[Aggregate, ...], tuple[tuple[int, ...], ...]]


@lru_cache(maxsize=4096)  # the same few releases are looked at for every question about their rows
def read_back(text: str) -> _Read | None:
    """Returns which rows a question was about, its WHERE, its keys, its aggregates and its groupings.

    None if the text is of another version, or names something that is no longer known.
    """
    form = json.loads(text)
    if not form.keys() <= _PARTS or form.get("version") != VERSION:
        return None
    try:
        return (
            json.dumps([form.get("table"), form.get("source")]),
            _expression(form["where"]) if "where" in form else None,
            tuple(Key(name, _expression(part)) for name, part in form["keys"]),
            tuple(_read_aggregate(place + 1, part) for place, part in enumerate(form["aggregates"])),
            tuple(tuple(one) for one in form.get("sets", ())),
        )
    except (KeyError, ValueError, TypeError):  # written by a version that knew more
        return None


def _read_aggregate(place: int, form: dict[str, Any]) -> Aggregate:
    parts: dict[str, Any] = {name: _expression(form[name]) for name in ("argument", "other") if name in form}
    if "quantile" in form:
        parts["quantile"] = Fraction(form["quantile"])
    return Aggregate(name=f"#{place}", kind=form["kind"], **parts)


def _expression(form: list[Any]) -> Expression:
    """A column is ["column", name, type], a literal [type, value], a call [function, type, *arguments]."""
    first, *rest = form
    if first == "column":
        name, kind = rest
        return ColumnRef(name, _TYPES[kind])
    if first in _TYPES and len(rest) == 1:
        return Literal(_value(rest[0], _TYPES[first]), _TYPES[first])
    kind, *arguments = rest
    return FunctionCall(FUNCTIONS[first].name, tuple(_expression(argument) for argument in arguments), _TYPES[kind])


def _value(written: Any, kind: Type) -> Value:
    if written is None or not isinstance(written, str):
        value: Value = written
    elif kind is Type.FLOAT:
        value = float.fromhex(written)
    elif kind is Type.DATE:
        value = dt.date.fromisoformat(written)
    elif kind is Type.TIMESTAMP:
        value = dt.datetime.fromisoformat(written)
    else:
        value = written
    return value
