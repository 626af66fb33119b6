"""Outputs as columns that an event can be chosen from: values, statuses, lengths, keys, and what low bits betray.

An output is taken apart into named atoms, whatever it is: numbers, texts, arrays, mappings, dataclasses, errors. Each
number also has a *grain*, the exponent of its lowest binary digit, and its low bits: noise that was added in floats
leaves traces there that depend on the exact value (Mironov 2012).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass

Column = NDArray[Any]
"""Floats with NaN where an output has no such number, or texts with "" where it has no such text."""

Atoms = Iterator[tuple[str, float | str]]
"""Names with a number or a text each."""

ROOT = "output"
_ENTRIES = 16  # of an array or a mapping; beyond, only its length, its sum and its keys count
_KINDS = 256  # as many different outputs may have columns of their own
_NO_GRAIN = 9999.0  # of zero, which has no lowest digit
_LOW = 16  # low bits are looked at modulo this


@dataclass(frozen=True, slots=True)
class ErrorOutput:
    """Represents a run that ended in an error: its type is an output like any other."""

    kind: str


def columns_of(outputs: Sequence[Any]) -> dict[str, Column]:
    """Returns the named columns of a list of outputs, one entry for each."""
    plain = _plain(outputs)
    found = {ROOT: plain} if plain is not None else _taken_apart(outputs)
    for name, column in list(found.items()):
        if column.dtype.kind == "f":
            found[f"grain of {name}"], found[f"low bits of {name}"] = _grains(column)
    if plain is not None and all(isinstance(output, int | np.integer) for output in outputs):
        whole = [int(output) for output in outputs]  # of any size: a float would lose the low bits of large ones
        found[f"low bits of {ROOT}"] = np.array([float(abs(number) % _LOW) for number in whole])
        found[f"grain of {ROOT}"] = np.array([_trailing(number) for number in whole])
    return found


def _trailing(number: int) -> float:
    return float((number & -number).bit_length() - 1) if number else _NO_GRAIN


def _plain(outputs: Sequence[Any]) -> Column | None:
    """Returns the column of outputs that are one number each: the fast way for what most mechanisms give."""
    kinds = set(map(type, outputs))
    if kinds <= {int, float, bool, np.int64, np.float64, np.bool_}:
        return np.array([_number(output) for output in outputs])
    return None


def _taken_apart(outputs: Sequence[Any]) -> dict[str, Column]:
    rows = [dict(_atoms(ROOT, output)) for output in outputs]
    names = dict.fromkeys(name for row in rows for name in row)
    found = {name: _column([row.get(name) for row in rows]) for name in names}
    whole = _whole(outputs)
    return found | ({} if whole is None else {f"all of {ROOT}": whole})


def _whole(outputs: Sequence[Any]) -> Column | None:
    """Returns each output as one text, unless there are too many different ones."""
    seen: set[str] = set()
    texts = []
    for output in outputs:
        text = _text(output)
        seen.add(text)
        texts.append(text)
        if len(seen) > _KINDS:
            return None
    return np.array(texts, dtype=object)


def _text(output: Any) -> str:
    return repr(output.tolist()) if isinstance(output, np.ndarray) else repr(output)


def _column(cells: list[Any]) -> Column:
    numeric = all(cell is None or isinstance(cell, float) for cell in cells)
    if numeric:
        return np.array([math.nan if cell is None else cell for cell in cells])
    return np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)


def _atoms(path: str, output: Any) -> Atoms:
    """Yields all that can be said of an output, by name."""
    number = isinstance(output, bool | int | float | np.number | np.bool_)
    if not number or path == ROOT:
        yield f"kind of {path}", output.kind if isinstance(output, ErrorOutput) else type(output).__name__
    if number:
        yield path, _number(output)
    else:
        yield from _parts(output, path)


@singledispatch
def _parts(output: Any, path: str) -> Atoms:
    """Yields what an output is made of: its fields, or what it looks like."""
    if dataclasses.is_dataclass(output):
        for part in dataclasses.fields(output):
            yield from _atoms(f"{path}.{part.name}", getattr(output, part.name))
    else:
        yield f"text of {path}", repr(output)


@_parts.register
def _(_output: ErrorOutput | None, _path: str) -> Atoms:
    """Yields nothing: the kind of this output says all."""
    yield from ()


@_parts.register
def _(output: str | bytes, path: str) -> Atoms:
    yield f"text of {path}", repr(output)


@_parts.register
def _(output: Mapping, path: str) -> Atoms:  # type: ignore[type-arg]
    keys = sorted(output, key=repr)
    yield f"length of {path}", float(len(keys))
    yield f"keys of {path}", repr(keys)
    for key in keys[:_ENTRIES]:
        yield from _atoms(f"{path}[{key!r}]", output[key])


@_parts.register
def _(output: AbstractSet, path: str) -> Atoms:  # type: ignore[type-arg]
    yield from _parts(sorted(map(repr, output)), path)


@_parts.register
def _(output: np.ndarray, path: str) -> Atoms:
    yield f"shape of {path}", repr(output.shape)
    yield from _parts(output.ravel().tolist(), path)


@_parts.register
def _(output: Sequence, path: str) -> Atoms:  # type: ignore[type-arg]
    yield f"length of {path}", float(len(output))
    if output and all(isinstance(entry, bool | int | float) for entry in output):
        yield f"sum of {path}", _number(sum(output))
        for place, (left, right) in enumerate(pairwise(output[:_ENTRIES])):
            yield f"{path}[{place + 1}] - {path}[{place}]", _number(right - left)
    for place, entry in enumerate(output[:_ENTRIES]):
        yield from _atoms(f"{path}[{place}]", entry)


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _grains(column: NDArray[np.float64]) -> tuple[Column, Column]:
    """Returns the exponent of the lowest binary digit of each number, and its low bits in units of the last place."""
    known = np.isfinite(column)
    fraction, exponent = np.frexp(np.where(known, column, 0.0))
    digits = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    lowest = np.log2(np.maximum(digits & -digits, 1))
    grain = np.where(digits == 0, _NO_GRAIN, exponent - 53 + lowest)
    whole = known & (grain >= 0) & (np.abs(np.where(known, column, 0.0)) < 2.0**53)
    low = np.where(whole, np.abs(np.where(whole, column, 0.0)) % _LOW, digits % _LOW + _LOW)
    return np.where(known, grain, math.nan), np.where(known, low, math.nan)
