"""Pictures as bytes, made by the letter of their formats, for what reads them."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def header(width: int, height: int, *, depth: int = 8, colour: int = 0, interlaced: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))


def png(pixels: NDArray[Any], filters: Any = 0, **changed: int) -> bytes:
    """A picture of (height, width, channels); one filter for all lines, or one for each."""
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, -1).astype(int)
    kinds = [filters] * height if isinstance(filters, int) else list(filters)
    lines = bytearray()
    for place, kind in enumerate(kinds):
        above = rows[place - 1] if place else np.zeros_like(rows[0])
        lines.append(kind)
        lines += bytes(filtered(rows[place], above, channels, kind))
    shown = {"colour": COLOURS[channels], **changed}
    body = zlib.compress(bytes(lines))
    halves = chunk(b"IDAT", body[:5]) + chunk(b"tEXt", b"note") + chunk(b"IDAT", body[5:])
    return SIGNATURE + header(width, height, **shown) + halves + chunk(b"IEND", b"")


def filtered(row: NDArray[Any], above: NDArray[Any], channels: int, kind: int) -> list[int]:
    """A line as the standard's definition of a filter says it, byte by byte."""
    made = []
    for place, value in enumerate(row.tolist()):
        left = int(row[place - channels]) if place >= channels else 0
        corner = int(above[place - channels]) if place >= channels else 0
        up = int(above[place])
        nearest = min((left, up, corner), key=lambda one: abs(left + up - corner - one))
        made.append((value - (0, left, up, (left + up) // 2, nearest)[kind]) % 256)
    return made
