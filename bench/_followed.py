"""Notes which functions of the library call which, in this process and in all that it starts, while a window is open.

A window is a number in a small file that every process maps: 0 is closed. Each call of a function by another is
written once in each window, as a line of a pipe: workers of the service may write to no file.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

HERE = Path(__file__).parents[1] / "src"
_BEGIN = "import sys; sys.path.append({bench!r}); from _followed import follow; follow({folder!r}, {source!r})\n"


class Call(NamedTuple):
    """A function of the library and the one that called it, each as "file:name"; an empty caller is from outside."""

    window: str
    called: str
    caller: str


def prepare(folder: Path, source: Path = HERE) -> dict[str, str]:
    """Returns an environment in which every interpreter is followed from its start, with the library from a folder."""
    (folder / "window").write_bytes(b"\0")
    os.mkfifo(folder / "calls")
    root = f"{source.resolve() / 'discreet'}{os.sep}"
    begin = _BEGIN.format(bench=str(Path(__file__).parent), folder=str(folder), source=root)
    (folder / "sitecustomize.py").write_text(begin, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(source.resolve())])}


def open_window(folder: Path, number: int) -> None:
    """Opens a window for all processes, or closes it."""
    with (folder / "window").open("r+b") as file:
        file.write(bytes([number]))


@contextmanager
def listening(folder: Path) -> Iterator[list[Call]]:
    """Collects what is noted, in all windows; `prepare` comes first."""
    found: list[Call] = []
    held = os.open(folder / "calls", os.O_RDWR)  # a pipe that somebody can write to has no end before its time

    def collect() -> None:
        with (folder / "calls").open(encoding="utf-8") as lines:
            found.extend(Call(*line.rstrip("\n").split("\t")) for line in lines)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        yield found
    finally:
        os.close(held)
        thread.join()


def follow(folder: str, source: str) -> None:
    """Follows this process, its threads, and whatever it forks."""
    out = os.open(f"{folder}/calls", os.O_WRONLY)
    file = os.open(f"{folder}/window", os.O_RDONLY)
    window = mmap.mmap(file, 1, prot=mmap.PROT_READ)
    seen: set[tuple[Any, ...]] = set()

    dataclasses = (
        f"{source}dataclass.py"  # as little followed as the module of the standard library for which it stands
    )

    def is_ours(frame: FrameType) -> bool:
        place = frame.f_code.co_filename
        return place.startswith(source) and place != dataclasses and frame.f_code.co_name != "<module>"

    def name(frame: FrameType) -> str:
        return f"{frame.f_code.co_filename[len(source) :]}:{frame.f_code.co_qualname}"

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not window[0] or not is_ours(frame):
            return
        caller = frame.f_back
        while caller is not None and not is_ours(caller):
            caller = caller.f_back
        key = window[0], frame.f_code, None if caller is None else caller.f_code
        if key not in seen:
            seen.add(key)
            os.write(out, f"{window[0]}\t{name(frame)}\t{'' if caller is None else name(caller)}\n".encode())

    threading.setprofile(note)
    sys.setprofile(note)
