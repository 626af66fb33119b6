"""Windows over lists of dicts in plain Python: what `frames` must agree with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cmp_to_key, partial
from typing import Any

from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.nodes import UNIT, Order, Value
from discreet.plan.model.relations import Window

Row = dict[str, Value]
Fold = Callable[[Window, Sequence[Row]], Value]


def places(window: Window, rows: Sequence[Row], columns: Sequence[str], fold: Fold) -> list[Value]:
    """The value of a window for each row.

    Args:
        window: which one.
        rows: all of them.
        columns: by which rows are ordered where the window's own order leaves a choice.
        fold: one value of several rows.
    """
    groups: dict[tuple[Value, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        groups[(row[UNIT], *(evaluate(part, row) for part in window.partition))].append(place)
    found: list[Value] = [None] * len(rows)
    for group in groups.values():
        by_rows = cmp_to_key(partial(_compare, window.order, columns))
        ordered = sorted(group, key=lambda place: by_rows(rows[place]))
        for place, value in zip(ordered, _values(window, [rows[place] for place in ordered], fold), strict=True):
            found[place] = value
    return found


def _values(window: Window, rows: Sequence[Row], fold: Fold) -> Iterator[Value]:
    """The values of rows of one group, which are in order."""
    last = _last_peers(window, rows)
    firsts = sorted({0, *(place + 1 for place in last)})
    for place in range(len(rows)):
        if window.kind == "row_number":
            yield place + 1
        elif window.kind == "rank":
            yield max(first for first in firsts if first <= place) + 1
        elif window.kind == "dense_rank":
            yield sum(first <= place for first in firsts)
        elif window.kind in ("lag", "lead", "first", "last"):
            yield _elsewhere(window, rows, place)
        else:
            yield fold(window, rows[: last[place] + 1] if window.order else rows)


def _elsewhere(window: Window, rows: Sequence[Row], place: int) -> Value:
    there = {"lag": place - window.offset, "lead": place + window.offset, "first": 0, "last": len(rows) - 1}[
        window.kind
    ]
    if window.argument is None or not 0 <= there < len(rows):
        return None
    value: Value = evaluate(window.argument, rows[there])
    return value


def _last_peers(window: Window, rows: Sequence[Row]) -> list[int]:
    """For each row the place of the last one that is equal to it in the window's order."""
    last = list(range(len(rows)))
    for place in reversed(range(len(rows) - 1)):
        if _compare(window.order, (), rows[place], rows[place + 1]) == 0:
            last[place] = last[place + 1]
    return last


def _compare(order: Sequence[Order], columns: Sequence[str], one: Row, other: Row) -> int:
    for part in order:
        found = _sign(evaluate(part.expression, one), evaluate(part.expression, other), descending=part.descending)
        if found:
            return found
    return next((found for name in columns if (found := _sign(one[name], other[name]))), 0)


def _sign(a: Any, b: Any, *, descending: bool = False) -> int:
    """NULL last, in both directions."""
    if a is None or b is None:
        return (a is None) - (b is None)
    return int((a < b) - (a > b) if descending else (a > b) - (a < b))
