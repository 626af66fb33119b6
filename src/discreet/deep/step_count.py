"""The number of steps that a training run has taken, on disk before a step reads any data.

A run that is killed and goes on from older weights has spent what it spent: the count, and not the weights, says how
many steps remain. Only appending changes the file, and one process holds it. If you set it back to an old copy, you
spend the same steps again, which nothing here can detect.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter
from discreet.noise import system_bits

_FORMAT = "discreet training run 1"
_OWNER_ONLY = 0o600
_NAME_BITS = 128
_LINE = b"1\n"


class StepCount:
    """Counts the steps of a run, in memory or in a file.

    Args:
        path: of the file; None counts in memory only.
        parameters: of the run, which must be those in the file.

    Attributes:
        run: the run's name, drawn when it started.
        taken: how many steps were begun.

    Raises:
        InvalidParameter: if the file belongs to another run, is held by another process, or is none of ours.
    """

    def __init__(self, path: os.PathLike[str] | str | None, parameters: dict[str, Any]) -> None:
        self.run, self.taken = f"{system_bits().integer(_NAME_BITS):032x}", 0
        self._descriptor = -1
        if path is None:
            return
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._load(Path(path), json.loads(json.dumps(parameters)))
        except BlockingIOError:
            self.close()
            hint = "Close it there, or pass another path."
            raise InvalidParameter(
                "checkpoint", str(path), "to be free", f"Another process is using it. {hint}"
            ) from None
        except BaseException:
            self.close()
            raise

    def _load(self, path: Path, parameters: dict[str, Any]) -> None:
        content = path.read_bytes()
        if not content:
            begun = {"format": _FORMAT, "run": self.run, "parameters": parameters}
            self._append(json.dumps(begun).encode() + b"\n")
            _sync_folder(path.parent)
            return
        first, _, steps = content.partition(b"\n")
        try:
            head = json.loads(first)
            known = head["parameters"] if head["format"] == _FORMAT else None
        except (ValueError, LookupError, TypeError):
            known = None
        if known is None:
            raise InvalidParameter("checkpoint", str(path), "to be a count of steps", "Pass the path of a new file.")
        wrong = sorted(name for name in {*known, *parameters} if known.get(name) != parameters.get(name))
        if wrong:
            hint = f"It has other parameters: {', '.join(wrong)}. Pass those it began with, or another path."
            raise InvalidParameter("checkpoint", str(path), "to be of this run", hint)
        self.run = head["run"]
        self.taken = -(-len(steps) // len(_LINE))  # a line that is half written was begun, too

    def take(self) -> None:
        """Counts a step, and returns when that is durable: from then on the step may read data."""
        if self._descriptor >= 0:
            self._append(_LINE)
        self.taken += 1

    def _append(self, line: bytes) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_END)
        while line:
            line = line[os.write(self._descriptor, line) :]
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file that holds the count."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
