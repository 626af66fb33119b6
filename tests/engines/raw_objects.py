"""Raw columns of pandas, of tables of a .duckdb file, of CSV files, and of Python rows."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from discreet.engines.duckdb.sources import FileTable
from discreet.plan.model.types import Type
from tests.engines.raw import (
    INTEGERS,
    TEXTS,
    Build,
    Specimen,
    decimals,
    draw_integer,
    draw_text,
    floats,
    integers,
    moments,
    number_of,
    same,
    text,
    texts,
    whole,
)
from tests.engines.raw_arrow import fixed_array, text_array


class Rude:
    """An object that answers nothing."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


_EXACT = Context(prec=80)
LONE = ["\ud800", "a\udfffb", "\udc80"]
OBJECTS: list[Any] = [
    *("1", "2", "3", None, 4, 5.5, float("nan"), True, "x", *LONE, b"bytes", b"\xff", bytearray(b"1")),
    *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e999999"), Decimal(7), 10**400, 10**5000),
    *(
        1 << 63,
        -(1 << 63),
        math.inf,
        dt.date(2024, 2, 29),
        dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=5))),
    ),
    *(
        pd.NaT,
        pd.NA,
        np.int64(8),
        np.float32("nan"),
        np.datetime64("2024-01-01"),
        np.datetime64("NaT"),
        [1],
        {},
        (),
        Rude(),
    ),
    *(
        Fraction(1, 3),
        Fraction(10**400),
        complex(1, 1),
        uuid.UUID(int=5),
        object,
        np.array([1, 2]),
        pd.Timestamp("2024-01-01"),
    ),
    *(
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))),
        dt.timedelta(1),
        memoryview(b"x"),
        np.bool_(True),
        "",
    ),
]


def _text_of(raw: Any) -> str | None:
    """What an object column holds: the text of an object that has one and is equal to itself."""
    try:
        found = None if raw is None or isinstance(raw, bytes | bytearray | memoryview) or raw != raw else str(raw)  # noqa: PLR0124
        return None if found is None else found.encode().decode()
    except Exception:  # noqa: BLE001 - whatever an object raises
        return None


def _frame(series: Callable[[Sequence[Any]], Any]) -> Build:
    def build(cells: Sequence[Any], folder: Path) -> pd.DataFrame:
        del folder
        count = np.arange(len(cells))
        return pd.DataFrame({"id": count, "n": count % 5, "x": series(cells)})

    return build


def _objects(cells: Sequence[Any]) -> pd.Series[Any]:
    column = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        column[place] = cell
    return pd.Series(column, dtype=object)


def _moments_of_pandas(cells: Sequence[Any], unit: str, zone: str | None) -> Any:
    raw = np.array([(-(1 << 63)) if cell is None else cell for cell in cells], dtype=np.int64)
    series = pd.Series(raw.view(f"datetime64[{unit}]"))
    return series if zone is None else series.dt.tz_localize("UTC").dt.tz_convert(zone)


def _pandas() -> Iterator[Specimen]:
    rest = [cell for cell in INTEGERS if cell != -(1 << 63)]  # which is NaT
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin"):
            series = partial(_moments_of_pandas, unit=unit, zone=zone)
            yield moments(f"pandas {unit} {zone}", unit, _frame(series), rest)
    yield Specimen("pandas objects", Type.TEXT, OBJECTS, _text_of, _frame(_objects))
    words = ["a", "b", "c", None, "", *LONE, "🤦"]
    python = _frame(lambda cells: pd.Series(cells, dtype=pd.StringDtype("python")))
    yield Specimen("pandas python text", Type.TEXT, words, _text_of, python)
    category = _frame(lambda cells: pd.Series(pd.Categorical(_objects(cells))))
    yield Specimen("pandas category", Type.TEXT, words, _text_of, category)
    mixed = _frame(lambda cells: pd.Series(pd.Categorical(_objects(cells))))
    yield Specimen("pandas mixed category", Type.TEXT, ["a", 1, 2.5, "\ud800", None, 1 << 70], _text_of, mixed)
    yield integers(
        name="pandas Int64", type=Type.INT, meaning=whole, build=_frame(lambda cells: pd.Series(cells, dtype="Int64"))
    )
    yield floats(name="pandas float", build=_frame(lambda cells: pd.Series(cells, dtype="float64")))
    coded = _frame(lambda cells: pd.Series(pd.Categorical(pd.Series(cells, dtype="Int64"))))
    yield integers(name="pandas category of numbers", type=Type.INT, meaning=whole, build=coded)
    arrow = pd.ArrowDtype(pa.string())
    yield texts(
        name="pandas arrow text",
        build=_frame(
            lambda cells: pd.Series(pd.arrays.ArrowExtensionArray(text_array(cells, pa.string())), dtype=arrow)
        ),
    )
    wide = _frame(lambda cells: pd.Series(pd.arrays.ArrowExtensionArray(fixed_array(cells, pa.decimal128(5, 2), 16))))
    yield decimals("pandas arrow decimal", 38, 2, wide)


def _file(kind: str, write: Callable[[Any], str] = "{!r}".format) -> Build:
    """A table of a .duckdb file; cells are written as SQL."""

    def build(cells: Sequence[Any], folder: Path) -> FileTable:
        path = folder / "raw.duckdb"
        path.unlink(missing_ok=True)
        rows = ", ".join(
            f"({place}, {place % 5}, {'NULL' if cell is None else write(cell)})" for place, cell in enumerate(cells)
        )
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE t (id BIGINT, n BIGINT, x {kind})")
            connection.execute(f"INSERT INTO t VALUES {rows}")
        return FileTable(path=path, table="t")

    return build


def _cast(kind: str, suffix: str = "") -> Build:
    """A table whose cells are texts that DuckDB reads as a type."""

    def write(raw: Any) -> str:
        return f"CAST('{raw}{'' if raw in _ENDLESS else suffix}' AS {kind})"

    return _file(kind, write)


_ENDLESS = ("infinity", "-infinity")
_NEAR = [dt.datetime(2024, 2, 29, 12), dt.datetime(1999, 12, 31), dt.datetime(2001, 1, 1), None, *_ENDLESS]
_FAR = [*_NEAR, "294247-01-10 04:00:54", "290309-12-22 (BC) 00:00:00", "10000-01-01", "0001-12-31 (BC)"]
_DAYS = [
    dt.date(2024, 1, 1),
    dt.date(1, 1, 1),
    dt.date(9999, 12, 31),
    None,
    *_ENDLESS,
    "10000-01-01",
    "0001-12-31 (BC)",
]


def _if_known(raw: Any) -> Any:
    """Days and moments that are given as such; others are beyond those that there are."""
    return raw if isinstance(raw, dt.date) else None


def _duckdb() -> Iterator[Specimen]:
    for kind, cells in (("TIMESTAMP", _FAR), ("TIMESTAMP_S", _FAR), ("TIMESTAMP_MS", _FAR), ("TIMESTAMP_NS", _NEAR)):
        yield Specimen(f"duckdb {kind}", Type.TIMESTAMP, cells, _if_known, _cast(kind))
    yield Specimen("duckdb TIMESTAMPTZ", Type.TIMESTAMP, _NEAR, _if_known, _cast("TIMESTAMPTZ", "+00"))
    yield Specimen("duckdb DATE", Type.DATE, _DAYS, _if_known, _cast("DATE"))
    enum = _file("ENUM('a', 'b', 'c', 'it''s', '')", lambda raw: "'" + raw.replace("'", "''") + "'")
    yield Specimen("duckdb ENUM", Type.TEXT, ["a", "b", "c", None, "it's", ""], same, enum)
    ids = [str(uuid.UUID(int=place)) for place in (0, 1, 2, (1 << 128) - 1, 1 << 127)]
    yield Specimen("duckdb UUID", Type.TEXT, [*ids[:3], None, *ids[3:]], same, _cast("UUID"))


def _duckdb_numbers() -> Iterator[Specimen]:
    for kind, least, most in (
        ("HUGEINT", -(1 << 127), (1 << 127) - 1),
        ("UHUGEINT", 0, (1 << 128) - 1),
        ("UBIGINT", 0, (1 << 64) - 1),
    ):
        wide = [1, 2, 3, None, least, most, most - 1, (1 << 63) - 1, 1 << 63]
        yield Specimen(f"duckdb {kind}", Type.INT, wide, whole, _cast(kind))
    for precision, scale in ((4, 2), (15, 3), (18, 9), (38, 0), (38, 38), (38, 19)):
        most, kind = 10**precision - 1, f"DECIMAL({precision},{scale})"
        digits = [1, 2, 3, None, 0, -1, most, -most, most // 3, -(most // 7)]
        cells = [None if cell is None else f"{Decimal(cell).scaleb(-scale, _EXACT):f}" for cell in digits]
        yield Specimen(f"duckdb {kind}", Type.FLOAT, cells, _float, _cast(kind))
    words = ["0.5", "1.5", "-2", None, "nan", "inf", "-inf", "1e308", "5e-324"]
    yield Specimen("duckdb DOUBLE", Type.FLOAT, words, _float, _cast("DOUBLE"))


def _float(raw: str | None) -> float | None:
    return None if raw is None else number_of(float(raw))


def _csv(write: Callable[[Any], bytes]) -> Build:
    def build(cells: Sequence[Any], folder: Path) -> Path:
        texts = [b"" if cell is None else write(cell).replace(b'"', b'""') for cell in cells]
        lines = [f'{place},{place % 5},"'.encode() + cell + b'"\n' for place, cell in enumerate(texts)]
        path = folder / "raw.csv"
        path.write_bytes(b"id,n,x\n" + b"".join(lines))
        return path

    return build


def _csvs() -> Iterator[Specimen]:
    """A line with bytes that are not UTF-8 is left out; an empty cell is NULL."""
    yield Specimen(
        name="csv text",
        type=Type.TEXT,
        cells=TEXTS,
        meaning=lambda raw: text(raw or b"") or None,
        build=_csv(bytes),
        draw=draw_text,
        left_out=lambda cell: cell is not None and text(cell) is None,
    )
    as_text = _csv(lambda cell: str(cell).encode())
    yield Specimen("csv numbers", Type.INT, INTEGERS, whole, as_text, draw_integer)
    yield Specimen("csv days", Type.DATE, _DAYS, _if_known, as_text)


def specimens() -> list[Specimen]:
    return [*_pandas(), *_duckdb(), *_duckdb_numbers(), *_csvs()]
