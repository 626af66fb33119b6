"""Raw columns of Arrow tables and streams, and of frames of polars: buffers filled with any bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from discreet.plan.model.types import Type
from tests.engines.raw import (
    FLOATS,
    SHORT,
    Build,
    Specimen,
    day,
    decimals,
    draw_short,
    floats,
    integers,
    moments,
    number_of,
    same,
    texts,
    whole,
    wrapped,
)


class Stream:
    """An object with the Arrow PyCapsule interface, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _valid(cells: Sequence[Any]) -> pa.Buffer:
    return pa.py_buffer(np.packbits([cell is not None for cell in cells], bitorder="little").tobytes())


def text_array(cells: Sequence[bytes | None], kind: Any) -> pa.Array:
    """Bytes called text, without a check."""
    joined = b"".join(cell or b"" for cell in cells)
    ends = np.cumsum([0, *(len(cell or b"") for cell in cells)])
    if kind == pa.string_view():
        views = pa.array(cells, pa.binary_view())
        return pa.Array.from_buffers(kind, len(cells), views.buffers())
    width = np.int64 if kind == pa.large_string() else np.int32
    buffers = [_valid(cells), pa.py_buffer(ends.astype(width).tobytes()), pa.py_buffer(joined)]
    return pa.Array.from_buffers(kind, len(cells), buffers)


def fixed_array(cells: Sequence[int | None], kind: Any, size: int = 8) -> pa.Array:
    """Whole numbers of so many bytes called something else, without a check."""
    raw = b"".join((cell or 0).to_bytes(size, "little", signed=True) for cell in cells)
    return pa.Array.from_buffers(kind, len(cells), [_valid(cells), pa.py_buffer(raw)])


def _coded(cells: Sequence[int | None], kind: Any) -> pa.Array:
    return fixed_array(cells, kind).dictionary_encode()


def _table(array: Callable[[Sequence[Any]], Any], wrap: Callable[[pa.Table], Any] = same) -> Build:
    def build(cells: Sequence[Any], folder: Path) -> Any:
        del folder
        count = list(range(len(cells)))
        return wrap(pa.table({"id": count, "n": [place % 5 for place in count], "x": array(cells)}))

    return build


def _moments() -> Iterator[Specimen]:
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin"):
            array = partial(fixed_array, kind=pa.timestamp(unit, zone))
            yield moments(f"arrow {unit} {zone}", unit, _table(array))
            yield moments(f"stream {unit} {zone}", unit, _table(array, Stream))
        yield moments(f"arrow dictionary {unit}", unit, _table(partial(_coded, kind=pa.timestamp(unit, "UTC"))))
    days = partial(fixed_array, kind=pa.date32(), size=4)
    yield integers(name="arrow date32", type=Type.DATE, meaning=day, build=_table(days), cells=SHORT, draw=draw_short)
    whole_days = partial(fixed_array, kind=pa.date64())
    yield integers(
        name="arrow date64",
        type=Type.DATE,
        meaning=lambda raw: None if raw is None else day(int(raw / 86_400_000) if abs(raw) < 1 << 50 else raw),
        build=_table(whole_days),
    )


def _numbers() -> Iterator[Specimen]:
    for size, signed in ((8, True), (8, False), (16, True), (16, False), (32, False)):
        kind = pa.type_for_alias(f"{'' if signed else 'u'}int{size}")
        short = [None if cell is None else wrapped(cell, size=size, signed=True) for cell in SHORT]
        build = _table(partial(fixed_array, kind=kind, size=size // 8))
        meaning = partial(wrapped, size=size, signed=signed)
        yield Specimen(name=f"arrow {kind}", type=Type.INT, cells=short, meaning=meaning, build=build)
    unsigned = _table(partial(fixed_array, kind=pa.uint64()))
    yield integers(name="arrow uint64", type=Type.INT, meaning=partial(wrapped, size=64, signed=False), build=unsigned)
    yield integers(
        name="arrow int64", type=Type.INT, meaning=whole, build=_table(partial(fixed_array, kind=pa.int64()), Stream)
    )
    coded = _table(lambda cells: pa.array(cells, pa.int64()).dictionary_encode())
    yield integers(name="arrow dictionary int", type=Type.INT, meaning=whole, build=coded)
    runs = _table(lambda cells: pc.run_end_encode(pa.array(cells, pa.int64())))
    yield integers(name="arrow runs", type=Type.INT, meaning=whole, build=runs)
    truth = [True, False, None, True]
    for name, wrap in (("arrow", same), ("polars", pl.from_arrow)):
        yield Specimen(f"{name} bool", Type.BOOL, truth, same, _table(lambda cells: pa.array(cells, pa.bool_()), wrap))
    yield floats(name="arrow double", build=_table(lambda cells: pa.array(cells, pa.float64())))
    half = [cell if cell is None else float(np.float16(cell)) for cell in FLOATS[:9]]
    build = _table(lambda cells: pa.array([None if c is None else np.float16(c) for c in cells], pa.float16()))
    yield Specimen(name="arrow half", type=Type.FLOAT, cells=half, meaning=number_of, build=build)


def _decimals() -> Iterator[Specimen]:
    """Of any width: Arrow has room for 38 digits in each."""
    for precision, scale in ((4, 2), (9, 2), (15, 5), (18, 0), (38, 0), (38, 10), (38, 38)):
        array = partial(fixed_array, kind=pa.decimal128(precision, scale), size=16)
        yield decimals(f"arrow decimal128 {precision} {scale}", 38, scale, _table(array))
    narrow = partial(fixed_array, kind=pa.decimal32(4, 2), size=4)
    yield decimals("arrow decimal32", 38, 2, _table(narrow), size=32)
    middle = partial(fixed_array, kind=pa.decimal64(12, 2), size=8)
    yield decimals("arrow decimal64", 38, 2, _table(middle), size=64)


def _texts() -> Iterator[Specimen]:
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        for wrap in (same, Stream):
            yield texts(name=f"arrow {kind} {wrap.__name__}", build=_table(partial(text_array, kind=kind), wrap))
    coded = _table(lambda cells: text_array(cells, pa.string()).dictionary_encode())
    yield texts(name="arrow dictionary text", build=coded)


def _polars() -> Iterator[Specimen]:
    for unit in ("ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin"):
            array = partial(fixed_array, kind=pa.timestamp(unit, zone))
            yield moments(f"polars {unit} {zone}", unit, _table(array, pl.from_arrow))
    days = partial(fixed_array, kind=pa.date32(), size=4)
    frame = _table(days, pl.from_arrow)
    yield integers(name="polars date", type=Type.DATE, meaning=day, build=frame, cells=SHORT, draw=draw_short)
    yield floats(name="polars float", build=_table(lambda cells: pa.array(cells, pa.float64()), pl.from_arrow))
    words = ["a", "b", "c", None, "", "ß", "🤦", "a\0b", "\x7f"]
    for name, kind in (
        ("text", pl.String),
        ("category", pl.Categorical),
        ("enum", pl.Enum([w for w in words if w is not None])),
    ):

        def build(cells: Sequence[Any], folder: Path, kind: Any = kind) -> pl.DataFrame:
            del folder
            count = list(range(len(cells)))
            series = {"id": count, "n": [place % 5 for place in count], "x": pl.Series(cells, dtype=kind)}
            return pl.DataFrame(series)

        yield Specimen(name=f"polars {name}", type=Type.TEXT, cells=words, meaning=same, build=build)


def specimens() -> list[Specimen]:
    return [*_moments(), *_numbers(), *_decimals(), *_texts(), *_polars()]
