"""The state of a stream in a file: saved before a release is returned, held by one process, never rolled back.

The file has one line of JSON for the stream and one for each period: the values, which are private, and the noisy
measurements. A *witness* apart from it knows the number of periods. A period is appended to the state first, then
counted by the witness, then returned. So a state that is one period ahead of its witness is one whose last release was
never seen; a state that is behind is an old copy, from which noise would be drawn a second time for periods that were
released, and is refused. If state and witness are set back together, nothing here can notice it: keep the witness on
another disk than the backups of the state, or use a curator, whose ledger is the witness.

A process can be killed between any two of these writes. What it leaves is one of: no file, or a first line that is not
whole, with a witness of no periods, and the stream begins; a last line that is not whole, which was never returned and
is removed; a state one period ahead, whose last line goes to the witness as it is. In each the stream goes on, and no
period is measured again once its noise is in the file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import StreamError
from discreet.hint_text import Hint
from discreet.noise import system_bits

FORMAT = "discreet stream 1"
_FIRST = f'{{"format":"{FORMAT}"'.encode()  # as `StateFile` writes it
_OWNER_ONLY = 0o600
_NAME_BITS = 128
_OLD = "Going on would release periods a second time. Find the newest state and its witness, or start a new stream."

File = os.PathLike[str] | str
Entry = dict[str, Any]
"""What is kept of a period: "values", one for each line, and "noisy", the measurements of each line."""


class Witness(Protocol):
    """Knows how many periods of a stream were released, apart from its state."""

    def count_periods(self, stream: str) -> int | None:
        """Returns the number of periods; None if it was lost, or no stream was ever recorded."""

    def testify(self, stream: str, periods: int, entry: Entry | None) -> None:
        """Takes the number of periods and the last one, durably."""


class Keeper(Protocol):
    """Keeps the periods of a stream before they are shown."""

    def take_periods(self) -> list[Entry]:
        """Returns the periods that were kept before, once."""

    def append(self, values: Sequence[int], noisy: Sequence[Sequence[int]]) -> None:
        """Keeps a period, and returns when it may be shown."""

    def close(self) -> None:
        """Releases the periods and what holds them."""


class StateFile:
    """A file that one stream in one process appends its periods to.

    Args:
        path: of the file; it is made if it is not there, readable by its owner only.
        parameters: of the stream, which must be those in the file.
        witness: next to the file, with `.witness` added to its name, unless given.

    Raises:
        StreamError: if another process has the file, it belongs to another stream, or it is an old copy.
    """

    def __init__(self, path: File, parameters: Mapping[str, Any], witness: Witness | File | None = None) -> None:
        beside = f"{os.fspath(path)}.witness" if witness is None else witness
        self._witness = FileWitness(beside) if isinstance(beside, str | os.PathLike) else beside
        self._path = Path(path)
        self._descriptor = _open_file(self._path)
        self.count, self._stream = 0, ""
        self._loaded: list[Entry] = []
        try:
            _lock(self._descriptor)
            self._load(json.loads(json.dumps(parameters)))
        except BaseException:
            self.close()
            raise

    def _load(self, parameters: Entry) -> None:
        lines, whole, torn = _lines(self._descriptor)
        if not lines:
            _check_unused(torn)
            self._stream = f"{system_bits().integer(_NAME_BITS):032x}"
            if self._witness.count_periods(self._stream):
                raise StreamError("The state of the stream is empty, but its witness is not", _OLD)
            os.ftruncate(self._descriptor, 0)
            self._write({"format": FORMAT, "stream": self._stream, "parameters": parameters}, at=0)
            _sync_folder(self._path.parent)  # the file must be found after a crash of the machine, too
            self._witness.testify(self._stream, 0, None)
            return
        head, *self._loaded = lines
        self._check(head, parameters)
        self.count = len(self._loaded)
        self._check_witness()
        if torn:  # a release that was not saved whole, hence not returned
            os.ftruncate(self._descriptor, whole)

    def _check(self, head: Entry, parameters: Entry) -> None:
        if head.get("format") != FORMAT:
            raise StreamError("The file is no state of a stream", "Pass the path of a new file, or of a stream's own.")
        self._stream = head["stream"]
        known = head["parameters"]
        wrong = sorted(name for name in {*parameters, *known} if parameters.get(name) != known.get(name))
        if wrong:
            hint = "Pass the parameters it was started with, or the path of a new file."
            raise StreamError(f"The file holds a stream with other parameters: {', '.join(wrong)}", hint)

    def _check_witness(self) -> None:
        seen = self._witness.count_periods(self._stream)
        if seen is None:
            if self.count:
                raise StreamError("The witness of the state is missing", _OLD)
            seen = 0  # interrupted between the first two writes
        if self.count < seen:
            raise StreamError(f"The state is an old copy: it has {self.count} of the {seen} released periods", _OLD)
        if self.count > seen + 1:
            raise StreamError(f"The witness is an old copy: it has {seen} of the {self.count} periods", _OLD)
        self._witness.testify(self._stream, self.count, self._loaded[-1] if self._loaded else None)

    def append(self, values: Sequence[int], noisy: Sequence[Sequence[int]], **beside: Any) -> None:
        """Saves a period, and returns when state and witness are durable: from then on it may be shown."""
        entry = {"values": list(values), "noisy": [list(each) for each in noisy], **beside}
        self._write(entry, at=os.fstat(self._descriptor).st_size)
        self.count += 1
        self._witness.testify(self._stream, self.count, entry)

    def take_periods(self) -> list[Entry]:
        """Returns the periods that the file held when it was opened, and forgets them."""
        periods, self._loaded = self._loaded, []
        return periods

    def _write(self, entry: Entry, at: int) -> None:
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        while line:
            done = os.pwrite(self._descriptor, line, at)
            line, at = line[done:], at + done
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Releases the file, so that another process may go on with the stream."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class FileWitness:
    """A second file with the number of periods; it is replaced as a whole, so that it is never half written."""

    def __init__(self, path: File) -> None:
        self._path = Path(path)

    def count_periods(self, stream: str) -> int | None:
        """Returns the number of periods; None if there is no file.

        Raises:
            StreamError: if it cannot be read, or belongs to another stream.
        """
        if not self._path.exists():
            return None
        try:
            found = json.loads(self._path.read_text())
            periods = int(found["periods"])
        except (OSError, ValueError, TypeError, LookupError):
            raise StreamError("The witness of the state is broken", _OLD) from None
        if found.get("stream") != stream:
            raise StreamError("The witness belongs to another stream, or its state is gone", _OLD)
        return periods

    def testify(self, stream: str, periods: int, entry: Entry | None) -> None:  # noqa: ARG002 - a number is enough
        """Writes the number of periods."""
        fresh = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
        try:
            os.write(descriptor, json.dumps({"stream": stream, "periods": periods}).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        fresh.replace(self._path)
        _sync_folder(self._path.parent)


def parameters_in(path: File) -> Entry:
    """Returns the parameters of the stream whose state a file holds.

    Raises:
        StreamError: if it holds none.
    """
    try:
        with Path(path).open() as file:
            head = json.loads(file.readline())
        if head["format"] == FORMAT:
            return dict(head["parameters"])
    except (OSError, ValueError, LookupError, TypeError):
        pass
    raise StreamError("There is no state of such a stream", "Start it first.")


def _open_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
    except OSError as error:
        raise StreamError(f"The state of the stream cannot be opened: {error.strerror}", "Check its path.") from None


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StreamError(
            "Another process, or another object of this one, has the stream", "Close it there, then open it here."
        ) from None


def require_unused(path: File) -> None:
    """Refuses a file that holds anything: a stream that is about to be charged has no state yet.

    Raises:
        StreamError: if it does.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StreamError(f"The state of the stream cannot be opened: {error.strerror}", "Check its path.") from None
    if b"\n" in content:
        hint = "Nothing was charged. Pass the path of a new file, {state:...}, or start the stream under another name."
        raise StreamError("The file holds something that this ledger has not charged", Hint(hint))
    _check_unused(content)


def _check_unused(torn: bytes) -> None:
    """Accepts an empty file, or the beginning of a first line; zeros may follow it if the machine crashed."""
    if not _FIRST.startswith(torn.rstrip(b"\0")[: len(_FIRST)]):
        raise StreamError("The file is no state of a stream", "Pass the path of a new file, or of a stream's own.")


class RunCount:
    """Counts how often a period was begun, in a small file, so that no period is measured again and again in vain.

    Args:
        path: of the file.
    """

    def __init__(self, path: File) -> None:
        self._witness = FileWitness(path)

    def begin(self, period: int) -> int:
        """Notes that a period is begun, durably, and returns how often it was begun before and never kept."""
        try:
            runs = self._witness.count_periods(f"period {period}") or 0
        except StreamError:  # of another period, or broken
            runs = 0
        self._witness.testify(f"period {period}", runs + 1, None)
        return runs

    def end(self, period: int) -> None:
        """Notes that the runs of a period have ended otherwise."""
        self._witness.testify(f"period {period}", 0, None)


def _lines(descriptor: int) -> tuple[list[Entry], int, bytes]:
    """Returns the entries of a file, the length of its whole lines, and the part of a last line that is not whole."""
    content = b""
    while block := os.pread(descriptor, 1 << 24, len(content)):
        content += block
    whole = content.rfind(b"\n") + 1
    try:
        entries = [json.loads(line) for line in content[:whole].splitlines()]
    except ValueError:
        raise StreamError("The state of the stream is damaged", "Restore it from an undamaged copy.") from None
    return entries, whole, content[whole:]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
