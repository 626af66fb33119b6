"""Numbers that fit each other, on request: totals that are the sums of their parts, counts that are not negative.

Post-processing: it costs nothing, and the raw values stay beside it. Adjusted values are nearer to the truth on the
whole, but they are no longer unbiased one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.measurement.program.execution import Released
from discreet.plan.post.outputs import Cell, Noisy

SUMS = frozenset({"count", "count_values", "sum"})
"""Aggregates of a group that are sums over its parts, whoever owns the rows."""

MOST_ROWS = 5000  # that are made to fit each other
Floats = NDArray[np.float64]


class Adjusted(Released):
    """A release whose numbers were made to fit; intervals are those of the raw values, cut where they are impossible.

    Args:
        raw: what was released.
        consistent: whether totals of several groupings are made the sums of their parts. Of all such numbers those
            nearest to the released ones are taken (least squares, which is best for noise of one scale; Hay, Rastogi,
            Miklau, Suciu 2010).
        nonnegative: whether counts, and sums of what is not negative, are held to zero.

    Raises:
        InvalidParameter: if sums of groups are no totals, because people count in each grouping by themselves or
            because some groups are hidden, or if there are too many rows.
    """

    def __init__(self, raw: Released, *, consistent: bool, nonnegative: bool) -> None:
        super().__init__(raw.program, raw.keys, raw.noisy, raw.beside)
        self._raw, self._nonnegative = raw, nonnegative
        self._fit = _fitting(raw) if consistent and raw.program.question.sets else None

    def groups(self, outside: Fraction) -> Iterator[dict[str, Cell]]:
        """See `Released.groups`."""
        rows = list(self._raw.groups(outside))
        for aggregate in self.program.question.aggregates:
            total = self.program.estimators[aggregate.name].total
            if total is None:
                continue
            cells = [cell for row in rows if isinstance(cell := row[aggregate.name], Noisy)]
            if self._fit is not None and aggregate.kind in SUMS:
                cells = _fitted(cells, self._fit)
            if self._nonnegative and total.positive:
                cells = [_held(cell) for cell in cells]
            for row, cell in zip(rows, cells, strict=True):
                row[aggregate.name] = cell
        yield from rows


def _held(cell: Noisy) -> Noisy:
    value = None if cell.value is None else max(cell.value, 0)
    return Noisy(value, max(cell.low, 0), max(cell.high, 0))


def _fitted(cells: Sequence[Noisy], fit: Floats) -> list[Noisy]:
    values = fit @ np.array([float(cell.value or 0) for cell in cells])
    found = []
    for cell, value in zip(cells, values.tolist(), strict=True):
        near = min(max(Fraction(value), Fraction(cell.low)), Fraction(cell.high))
        found.append(Noisy(round(near) if isinstance(cell.value, int) else near, cell.low, cell.high))
    return found


def _fitting(raw: Released) -> Floats:
    """The projection on numbers whose totals are sums of their parts."""
    if raw.program.reading.bounding is not None:
        hint = "Their totals are answers to other questions; leave consistent out."
        raise InvalidParameter("consistent", True, "for rows that are units: people count in each grouping", hint)
    if any(one.selection is not None for one in raw.program.groupings):
        hint = "Parts may be missing; declare the keys, or leave consistent out."
        raise InvalidParameter("consistent", True, "for public groups only", hint)
    if len(raw.keys) > MOST_ROWS:
        raise InvalidParameter("consistent", True, f"for at most {MOST_ROWS} rows", "Ask for fewer groupings.")
    demands = [row for coarse, fine in _levels(raw) for row in _demand(raw, coarse, fine)]
    rows = np.array(demands, dtype=np.float64).reshape(-1, len(raw.keys))
    whole: Floats = np.eye(len(raw.keys)) - np.linalg.pinv(rows) @ rows
    return whole


def _levels(raw: Released) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Each grouping with those that are the next finer."""
    sets = raw.program.question.sets
    pairs = [(one, other) for one, other in permutations(sets, 2) if set(one) < set(other)]
    return [(a, b) for a, b in pairs if not any(set(a) < set(c) < set(b) for c in sets)]


def _demand(raw: Released, coarse: tuple[int, ...], fine: tuple[int, ...]) -> list[list[int]]:
    """For each total one row: itself less its parts."""
    found = []
    for total in _places(raw, coarse):
        row = [0] * len(raw.keys)
        row[total] = 1
        for part in _places(raw, fine):
            if all(raw.keys[part][key] == raw.keys[total][key] for key in coarse):
                row[part] = -1
        found.append(row)
    return found


def _places(raw: Released, grouping: tuple[int, ...]) -> list[int]:
    count = len(raw.program.question.keys)
    absent = tuple(int(place not in grouping) for place in range(count))
    return [place for place, key in enumerate(raw.keys) if key[count:] == absent]
