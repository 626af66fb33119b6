"""Files as numbers of one public shape: pictures (PNG, PGM, PPM), NumPy arrays, and plain texts as their bytes.

Every reader is a function of one file and of the declared shape. It raises for what it does not understand, and its
caller takes the file for a blank: no file is an error, since an error would reveal it. Nothing is unpacked beyond what
the declared shape needs.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Bytes = NDArray[np.uint8]
Reader = Callable[[bytes, Shape], NDArray[Any]]

_FORM = "This file does not have the declared form."
_PNG = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of the colour types of PNG
_PNM = re.compile(rb"\AP([56])\s+(?:#[^\n]*\n\s*)*([0-9]{1,6})\s+([0-9]{1,6})\s+([0-9]{1,3})\s")
_HEADER = 1 << 12  # bytes that an array has in addition to its numbers
_NOTES = 1 << 16  # and a picture: colour profiles, and what cameras write


def png(data: bytes, shape: Shape) -> NDArray[Any]:
    """Reads a PNG of 8 bits for a number, not interlaced; what is transparent is read as if it were not.

    Raises:
        ValueError: if it is none, or its shape or colours are not (channels, height, width) of the shape.
    """
    chunks = _chunks(data)
    width, height, depth, colour, packing, filters, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    _require((depth, packing, filters, interlaced) == (8, 0, 0, 0) and (height, width) == shape[1:])
    count = _CHANNELS[colour]
    length = height * (1 + width * count)
    lines = zlib.decompressobj().decompress(chunks[b"IDAT"], length + 1)
    _require(len(lines) == length)
    pixels = _undo_filters(np.frombuffer(lines, np.uint8).reshape(height, -1), count).reshape(height, width, count)
    if colour == 3:
        palette = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)
        pixels = palette[pixels[:, :, 0]]
    colours = 3 if colour in (2, 3, 6) else 1
    _require(colours == shape[0])
    return pixels[:, :, :colours].transpose(2, 0, 1)


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """Returns the parts of a PNG by name, those of one name put together."""
    _require(data.startswith(_PNG))
    found: dict[bytes, bytes] = {}
    place = len(_PNG)
    while place + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, place)
        found[name] = found.get(name, b"") + data[place + 8 : place + 8 + length]
        place += 12 + length
    return found


def _undo_filters(lines: Bytes, count: int) -> Bytes:
    """Returns the lines of a PNG, whose first bytes say how each follows from those before it."""
    above = np.zeros(lines.shape[1] - 1, np.uint8)
    found = []
    for line in lines:
        above = _FILTERS[int(line[0])](line[1:], above, count)
        found.append(above)
    return np.stack(found)


def _sub(line: Bytes, above: Bytes, count: int) -> Bytes:
    del above
    return np.add.accumulate(line.reshape(-1, count), axis=0, dtype=np.uint8).ravel()


def _average(line: Bytes, above: Bytes, count: int) -> Bytes:
    made = [0] * count
    for value, up in zip(line.tolist(), above.tolist(), strict=True):
        made.append((value + (made[-count] + up) // 2) & 255)
    return np.array(made[count:], np.uint8)


def _paeth(line: Bytes, above: Bytes, count: int) -> Bytes:
    made, ups = [0] * count, [0] * count + above.tolist()
    for place, value in enumerate(line.tolist()):
        left, up, corner = made[place], ups[place + count], ups[place]
        far = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
        near = left if far[0] <= far[1] and far[0] <= far[2] else up if far[1] <= far[2] else corner
        made.append((value + near) & 255)
    return np.array(made[count:], np.uint8)


_FILTERS: Mapping[int, Callable[[Bytes, Bytes, int], Bytes]] = {
    0: lambda line, above, count: line,  # noqa: ARG005 - all have one form
    1: _sub,
    2: lambda line, above, count: line + above,  # noqa: ARG005
    3: _average,
    4: _paeth,
}


def pnm(data: bytes, shape: Shape) -> NDArray[Any]:
    """Reads a PGM or PPM of bytes.

    Raises:
        ValueError: if it is none, or has another shape.
    """
    head = _PNM.match(data)
    if head is None:
        raise ValueError(_FORM)
    kind, width, height, most = (int(part) for part in head.groups())
    channels = 1 if kind == 5 else 3
    _require(most <= 255 and (channels, height, width) == shape)
    pixels = np.frombuffer(data, np.uint8, count=math.prod(shape), offset=head.end())
    return pixels.reshape(height, width, channels).transpose(2, 0, 1)


def npy(data: bytes, shape: Shape) -> NDArray[Any]:
    """Reads an array of numbers as numpy.save writes it; objects are never read.

    Raises:
        ValueError: if it is none, or has another shape.
    """
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    _require(version in ((1, 0), (2, 0)))
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    found, fortran, kind = read(file, max_header_size=_HEADER)
    _require(found == shape and kind.kind in "biuf" and kind.itemsize <= 8)
    numbers = np.frombuffer(data, kind, count=math.prod(shape), offset=file.tell())
    return numbers.reshape(shape, order="F" if fortran else "C")


def txt(data: bytes, shape: Shape) -> NDArray[Any]:
    """Reads the first bytes of a text; a shorter one is followed by zeros.

    >>> txt("né".encode(), (5,)).tolist()
    [110, 195, 169, 0, 0]
    """
    given = np.frombuffer(data[: shape[0]], np.uint8)
    return np.pad(given, (0, shape[0] - len(given)))


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError(_FORM)


READERS: Mapping[str, Reader] = {".png": png, ".pgm": pnm, ".ppm": pnm, ".npy": npy, ".txt": txt}
"""How files are read, by the ends of their names."""


def longest(suffix: str, shape: Shape) -> int:
    """Returns how many bytes of a file are read at most: a file of another length than its shape needs is a blank."""
    size = math.prod(shape)
    return shape[0] if suffix == ".txt" else _HEADER + 8 * size if suffix == ".npy" else _NOTES + 4 * size
