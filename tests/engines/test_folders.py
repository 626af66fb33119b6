"""Folders as tables: how files become numbers, which rows there are, and that nothing tells of a file that is wrong."""

from __future__ import annotations

import io
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines import DuckDB, Folder
from discreet.engines.folders import file_arrays
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits, uniform_below
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.cases import every
from tests.engines.pictures import SIGNATURE, chunk, header, png
from tests.open_groups import unsealed


def pixels(height: int, width: int, channels: int) -> Any:
    return uniform_below(256, (height, width, channels), bits=SeededBits(3)).astype(np.uint8)


def rows_of(source: Folder) -> list[tuple[str | None, ...]]:
    table = pa.RecordBatchReader.from_stream(source).read_all()
    return sorted(zip(*(table[name].to_pylist() for name in source.columns), strict=True), key=str)


def saved(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=array.dtype.hasobject)
    return file.getvalue()


# ------------------------------------------------------------------------------------------------------------ formats


@every(
    ("channels", "filters"),
    [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (3, 4), (2, 3), (4, 4), (3, (0, 1, 2, 3, 4)), (4, (4, 3, 2, 1, 0))],
)
def test_a_png_is_read_as_it_was_drawn(channels: int, filters: Any) -> None:
    drawn = pixels(5, 7, channels)
    colours = 3 if channels > 2 else 1
    found = file_arrays.png(png(drawn, filters), (colours, 5, 7))
    assert np.array_equal(found, drawn[:, :, :colours].transpose(2, 0, 1))


def test_a_png_with_a_palette() -> None:
    palette, places = pixels(4, 3, 1).reshape(4, 3), np.array([[[0], [3]], [[2], [1]]], np.uint8)
    data = png(places, colour=3).replace(chunk(b"tEXt", b"note"), chunk(b"PLTE", palette.tobytes()))
    assert np.array_equal(file_arrays.png(data, (3, 2, 2)), palette[places[:, :, 0]].transpose(2, 0, 1))


def test_pnm_npy_and_txt() -> None:
    grey, colour = pixels(2, 3, 1), pixels(2, 3, 3)
    assert np.array_equal(
        file_arrays.pnm(b"P5 # made\n3 2\n255\n" + grey.tobytes(), (1, 2, 3)), grey.transpose(2, 0, 1)
    )
    assert np.array_equal(file_arrays.pnm(b"P6\n3 2 255 " + colour.tobytes(), (3, 2, 3)), colour.transpose(2, 0, 1))
    numbers = np.arange(6.0).reshape(2, 3)
    for array in (numbers, np.asfortranarray(numbers), numbers.astype(">i2"), numbers > 2):
        assert np.array_equal(file_arrays.npy(saved(array), (2, 3)), array)
    assert file_arrays.txt(b"abcdef", (3,)).tolist() == [97, 98, 99]


BAD_PNG = [
    b"",
    SIGNATURE,
    SIGNATURE + header(2, 2),
    png(pixels(2, 2, 1), depth=16),
    png(pixels(2, 2, 1), interlaced=1),
    png(pixels(2, 3, 1)),
    png(pixels(2, 2, 3)),
    png(pixels(2, 2, 1), colour=9),
    png(pixels(2, 2, 1), colour=3),
    png(pixels(2, 2, 1))[:-30],
    SIGNATURE + header(2, 2) + chunk(b"IDAT", zlib.compress(b"\x09\0\0" * 2)),
    SIGNATURE + header(2, 2) + chunk(b"IDAT", zlib.compress(bytes(10**6))),
    SIGNATURE + header(2, 2) + chunk(b"IDAT", b"garbage"),
]


@pytest.mark.parametrize(
    ("suffix", "shape", "files"),
    [
        (".png", (1, 2, 2), BAD_PNG),
        (".pgm", (1, 2, 2), [b"P5 2 2 65535 " + bytes(8), b"P5 2 2 255 abc", b"P6 2 2 255 " + bytes(12), b"P5"]),
        (
            ".npy",
            (2, 2),
            [
                b"\x93NUMPY",
                saved(np.zeros(4)),
                saved(np.array([[1, "a"], [None, 2]], dtype=object)),
                saved(np.zeros((2, 2), complex)),
                saved(np.array([["a", "b"], ["c", "d"]])),
                saved(np.zeros((2, 2)))[:-1],
                saved(np.zeros((2, 2))).replace(b"(2, 2)", b"(2,-2)"),
            ],
        ),
    ],
)
def test_what_cannot_be_read_is_a_blank(tmp_path: Path, suffix: str, shape: Any, files: list[bytes]) -> None:
    for place, data in enumerate(files):
        (tmp_path / f"{place}{suffix}").write_bytes(data)
    source = Folder(path=tmp_path, suffix=suffix, shape=shape)
    names = [f"{place}{suffix}" for place in range(len(files))]
    assert len(rows_of(source)) == len(files)
    found = source.numbers([*names, f"missing{suffix}", None, 3])
    assert np.isnan(found).all()
    assert found.shape == (len(files) + 3, 4)


@pytest.mark.parametrize("seed", range(40))
def test_no_bytes_at_all_are_an_error(tmp_path: Path, seed: int) -> None:
    bits = SeededBits(seed)
    data = bytearray(png(pixels(3, 3, 1), 4))
    for _ in range(3):
        data[uniform_below(len(data), bits=bits)] = uniform_below(256, bits=bits)
    (tmp_path / "a.png").write_bytes(data[: 20 + uniform_below(len(data), bits=bits)])
    found = Folder(path=tmp_path, suffix=".png", shape=(1, 3, 3)).numbers(["a.png"])
    assert np.isnan(found).all() or ((found >= 0) & (found <= 255)).all()


def test_numbers_are_clipped_and_missing_ones_stay_missing(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(saved(np.array([np.nan, np.inf, -np.inf, 0.5])))
    found = Folder(path=tmp_path, suffix=".npy", shape=(4,), bounds=(0, 1)).numbers(["a.npy"])
    assert np.array_equal(found, [[np.nan, 1, 0, 0.5]], equal_nan=True)


def test_a_file_is_read_up_to_a_public_length(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(b"ab" * 10**6)
    (tmp_path / "long.npy").write_bytes(saved(np.zeros(2)) + bytes(10**5))
    texts = Folder(path=tmp_path, suffix=".txt", shape=(3,))
    assert texts.numbers(["long.txt"]).tolist() == [[97, 98, 97]]
    assert np.isnan(Folder(path=tmp_path, suffix=".npy", shape=(2,)).numbers(["long.npy"])).all()


# --------------------------------------------------------------------------------------------------------------- rows


def test_rows_are_files_with_a_label_and_a_person(tmp_path: Path) -> None:
    for name in ("cat/ana_1.png", "cat/deep/ana_2.PNG", "dog/bob.png", "top_1.png", "dog/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    os.symlink(tmp_path / "dog", tmp_path / "link")
    os.symlink(tmp_path / "top_1.png", tmp_path / "cat/ana_9.png")
    source = Folder(path=tmp_path, suffix=".png", shape=(1, 1, 1), person=r"([a-z]+)_[0-9]")
    assert rows_of(source) == [
        ("cat/ana_1.png", "cat", "ana"),
        ("cat/deep/ana_2.PNG", "cat", "ana"),
        ("dog/bob.png", "dog", None),
        ("top_1.png", None, "top"),
    ]


def test_no_name_makes_a_read_fail(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(raw)
    for name in (b"/a.npy", b"/\xfe.npy"):
        with open(raw + name, "wb") as file:
            file.write(saved(np.zeros(1)))
    source = Folder(path=tmp_path, suffix=".npy", shape=(1,), person="(.)[.]npy")
    assert rows_of(source) == [(None, None, "a"), (None, None, None)]
    with DuckDB() as engine:
        engine.register("t", source, engine.schema_of(source))
        reading = Reading(table="t", keys=(ColumnRef("label", Type.TEXT),), statistics=(Statistic(kind="rows"),))
        assert unsealed(engine.read(reading)) == {(None,): (2,)}


@every("name", ["../outside.npy", "/etc/passwd", "link/a.npy", "a.npy/../a.npy", "\0.npy"])
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    for where in (inside, tmp_path / "other"):
        where.mkdir(exist_ok=True)
        (where / "a.npy").write_bytes(saved(np.zeros(1)))
    (tmp_path / "outside.npy").write_bytes(saved(np.zeros(1)))
    if not (inside / "link").exists():
        os.symlink(tmp_path / "other", inside / "link")
    source = Folder(path=inside, suffix=".npy", shape=(1,))
    assert np.isnan(source.numbers([name])).all()
    assert source.numbers(["a.npy"]) == 0


def test_nothing_is_listed_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[Any] = []
    walk = os.walk

    def watched(*given: Any) -> Any:
        walked.append(given)
        return walk(*given)

    monkeypatch.setattr(os, "walk", watched)
    source = Folder(path=tmp_path, suffix=".png", shape=(1, 1, 1))
    with DuckDB() as engine:
        engine.register("t", source, engine.schema_of(source))
        assert walked == []
        unsealed(engine.read(Reading(table="t", statistics=(Statistic(kind="rows"),))))
        assert walked


@every(
    ("changed", "name"),
    [
        ({"path": "/nowhere"}, "path"),
        ({"suffix": ".jpg"}, "suffix"),
        ({"suffix": ".PNG"}, "suffix"),
        ({"shape": (28, 28)}, "shape"),
        ({"shape": (2, 28, 28)}, "shape"),
        ({"shape": (3, 300, 300)}, "shape"),
        ({"shape": (1, 0, 1)}, "shape"),
        ({"shape": (1, 1, 1.5)}, "shape"),
        ({"suffix": ".pgm", "shape": (3, 2, 2)}, "shape"),
        ({"suffix": ".npy", "shape": ()}, "shape"),
        ({"bounds": (1, 1)}, "bounds"),
        ({"bounds": 3}, "bounds"),
        ({"person": "nobody"}, "person"),
        ({"person": "("}, "person"),
        ({"person": 3}, "person"),
        ({"column": "label"}, "column"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, changed: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"path": tmp_path, "suffix": ".png", "shape": (1, 2, 2), **changed}
    with pytest.raises(InvalidParameter) as caught:
        Folder(**given)
    assert caught.value.name == name
