"""What child processes draw from a source that their parent was already using."""

from __future__ import annotations

import os
import struct
import warnings

from discreet.noise import Bits


def draws_of_children(source: Bits, children: int) -> list[list[int]]:
    """Sixteen lanes from each of so many forked processes."""
    return [_child(source) for _ in range(children)]


def _child(source: Bits) -> list[int]:
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads; the child does next to nothing
        process = os.fork()
    if process == 0:
        os.write(write, struct.pack("16H", *source.lanes(16)))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(process, 0)
    return list(struct.unpack("16H", data))
