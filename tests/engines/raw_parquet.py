"""Raw columns of Parquet files: bytes of every physical type under every annotation that we read."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.plan.model.types import Type
from tests.engines import parquet_bytes as p
from tests.engines.parquet_bytes import Stored, parquet
from tests.engines.raw import (
    SHORT,
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
from tests.engines.raw_arrow import text_array

Encode = Callable[[Any], bytes]


@dataclass(frozen=True)
class File:
    """Writes the columns id, n and x, and perhaps a moment of each in milliseconds."""

    encode: Encode
    annotations: Mapping[str, Any]

    def __call__(self, cells: Sequence[Any], folder: Path, at: Sequence[int] = ()) -> Path:
        raw = [None if cell is None else self.encode(cell) for cell in cells]
        columns = {"id": range(len(cells)), "n": [place % 5 for place in range(len(cells))]}
        stored = {name: Stored(p.INT64, [_eight(cell) for cell in column]) for name, column in columns.items()}
        if at:
            stored["at"] = Stored(p.INT64, [_eight(cell) for cell in at], converted=p.TIMESTAMP_MILLIS)
        path = folder / "raw.parquet"
        path.write_bytes(parquet(stored | {"x": Stored(cells=raw, **self.annotations)}))
        return path


def _file(encode: Encode, *, physical: int, **annotations: Any) -> File:
    return File(encode, {"type": physical, **annotations})


def _four(cell: int) -> bytes:
    return struct.pack("<i", cell)


def _eight(cell: int) -> bytes:
    return struct.pack("<q", cell)


def _big(cell: int, size: int) -> bytes:
    return cell.to_bytes(size, "big", signed=True)


def _integers() -> Iterator[Specimen]:
    short: dict[str, Any] = {"cells": SHORT, "draw": draw_short, "type": Type.INT}
    narrow = (
        (p.INT_8, 8, True),
        (p.UINT_8, 8, False),
        (p.INT_16, 16, True),
        (p.UINT_16, 16, False),
        (p.UINT_32, 32, False),
    )
    for converted, size, signed in narrow:
        build = _file(_four, physical=p.INT32, converted=converted, statistics=signed)
        meaning = partial(wrapped, size=size, signed=signed)
        yield integers(name=f"parquet int {size} {signed}", meaning=meaning, build=build, **short)
    yield integers(name="parquet int32", meaning=same, build=_file(_four, physical=p.INT32), **short)
    yield integers(name="parquet int64", type=Type.INT, meaning=whole, build=_file(_eight, physical=p.INT64))
    unsigned = _file(_eight, physical=p.INT64, converted=p.UINT_64, statistics=False)
    yield integers(
        name="parquet uint64", type=Type.INT, meaning=partial(wrapped, size=64, signed=False), build=unsigned
    )
    days = _file(_four, physical=p.INT32, converted=p.DATE)
    yield integers(name="parquet date", meaning=day, build=days, **short | {"type": Type.DATE})


def _moments() -> Iterator[Specimen]:
    for place, unit in enumerate(("ms", "us", "ns"), 1):
        for utc in (False, True):
            logical = p.logical_timestamp(place, utc=utc)
            for statistics in (False, True):
                build = _file(_eight, physical=p.INT64, logical=logical, statistics=statistics)
                yield moments(f"parquet {unit} utc={utc} statistics={statistics}", unit, build)
    for unit, converted in (("ms", p.TIMESTAMP_MILLIS), ("us", p.TIMESTAMP_MICROS)):
        yield moments(f"parquet converted {unit}", unit, _file(_eight, physical=p.INT64, converted=converted))


def _decimals() -> Iterator[Specimen]:
    for physical, encode, precision, size in (
        (p.INT32, _four, 9, 32),
        (p.INT64, _eight, 18, 64),
        (p.INT64, _eight, 12, 64),
    ):
        kind = {"converted": p.DECIMAL, "precision": precision, "scale": 2}
        yield decimals(
            f"parquet decimal {precision}", precision, 2, _file(encode, physical=physical, **kind), size=size
        )
    for length, precision, scale in ((2, 4, 1), (5, 11, 2), (16, 38, 0), (16, 38, 2), (16, 38, 37), (9, 20, 3)):
        kind = {"converted": p.DECIMAL, "precision": precision, "scale": scale, "length": length, "statistics": False}
        build = _file(partial(_big, size=length), physical=p.FIXED, **kind)
        yield decimals(f"parquet decimal {precision} {scale}", precision, scale, build, size=8 * length)


def _others() -> Iterator[Specimen]:
    for name, kind in (
        ("utf8", {"converted": p.UTF8}),
        ("enum", {"converted": p.ENUM}),
    ):
        for statistics in (False, True):
            build = _file(same, physical=p.BYTES, statistics=statistics, **kind)
            yield texts(name=f"parquet {name} statistics={statistics}", build=build)
    yield floats(name="parquet double", build=_file(partial(struct.pack, "<d"), physical=p.DOUBLE))
    build = _file(partial(struct.pack, "<f"), physical=p.FLOAT)
    single = [0.5, 1.5, 2.5, None, float("nan"), float("inf"), 3.4028234663852886e38, 1e-45]
    yield Specimen(
        name="parquet float",
        type=Type.FLOAT,
        cells=[cell if cell is None else struct.unpack("<f", struct.pack("<f", cell))[0] for cell in single],
        meaning=number_of,
        build=build,
    )


def _encoded() -> Iterator[Specimen]:
    """Texts in every encoding that a library writes, in pages of a few."""
    for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY"):

        def build(cells: Sequence[Any], folder: Path, encoding: str = encoding) -> Path:
            path, plain = folder / "raw.parquet", encoding != "RLE_DICTIONARY"
            count = list(range(len(cells)))
            columns = {"id": count, "n": [place % 5 for place in count], "x": text_array(cells, pa.string())}
            options = {"column_encoding": {"x": encoding}} if plain else {}
            pq.write_table(pa.table(columns), path, use_dictionary=not plain, row_group_size=3, **options)
            return path

        yield texts(name=f"parquet text {encoding}", build=build)


def specimens() -> list[Specimen]:
    return [*_integers(), *_moments(), *_decimals(), *_others(), *_encoded()]
