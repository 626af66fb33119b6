"""Many files that are one table: those of a folder, of a pattern, or of a list.

Which files there are and how large they are is private, for one person's rows can decide it. So they are listed after
the charge, and the rule that chooses them is public: names that end as a known format does, in the folder or below it.
Links are passed over, as they can lead out of the folder, and so are names that begin with a point or a low line
(`_SUCCESS`, `.part.crc`, `_delta_log`) unless the low line begins a Hive partition.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote

from discreet.dataclass import dataclass
from discreet.engines.sources.open_object import OpenObject
from discreet.errors import InvalidParameter
from discreet.plan.validation import is_unicode
from discreet.server_address import check_is_file

PACKINGS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd"}
"""How text files may be packed, by what follows the ending of their format."""

PATTERN = frozenset("*?[")
"""Signs that make a path a pattern."""

ANYWHERE = ("**", "*")
"""The pattern of a folder: all that is in it and below it."""

_FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv"),
    "ndjson": (".ndjson", ".jsonl"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
_PACKED = ("csv", "ndjson")
_NAMED_ONLY = ".txt"  # a folder's README.txt is no table
_NO_VALUE = ("", "__HIVE_DEFAULT_PARTITION__")
_ODD = PATTERN | {"{"}  # which DuckDB would take for a pattern
_HINT = "Name a folder, a file, or a pattern such as 'visits/**/*.parquet'."

Partitions = Mapping[str, str | None]

ChosenColumns = Mapping[str, str]
"""For each column of a table the name that it has in the files."""

ReadableFile = Path | OpenObject
"""What a file is read by."""


def format_of(name: str, *, named: bool = True) -> tuple[str, str] | None:
    """Returns the format of a file and its packing, by its name.

    >>> format_of("visits.csv.gz"), format_of("visits.xlsx"), format_of("README.txt", named=False)
    (('csv', 'gzip'), None, None)
    """
    lowered = name.lower()
    packing = next((packing for ending, packing in PACKINGS.items() if lowered.endswith(ending)), "")
    bare = lowered.rpartition(".")[0] if packing else lowered
    if bare.endswith(_NAMED_ONLY):
        return ("csv", packing) if named else None
    found = next((one for one, endings in _FORMATS.items() if bare.endswith(endings)), None)
    return None if found is None or (packing and found not in _PACKED) else (found, packing)


def names_texts(pattern: Sequence[str]) -> bool:
    """Returns whether a pattern is about texts without a known format, which are CSV then."""
    return pattern[-1].lower().endswith((_NAMED_ONLY, *(f"{_NAMED_ONLY}{one}" for one in PACKINGS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file as one query finds it.

    Args:
        place: what DuckDB reads: its path, or an open descriptor if its name would be taken for a pattern, or the
            number of an open object.
        format: of its content.
        packing: of its bytes; empty if it is not packed.
        partitions: the values that its folders are named after.
        size: in bytes.
        inode: the device and the inode; of an object its address.
        opened: the object, if it is one.
    """

    place: str
    format: str
    packing: str
    partitions: Partitions
    size: int
    inode: str
    opened: OpenObject | None = None

    @property
    def path(self) -> ReadableFile:
        """What its content is read by."""
        return Path(self.place) if self.opened is None else self.opened


class Listing:
    """The files that one query reads, to be closed at its end."""

    def __init__(
        self, files: Sequence[ListedFile], descriptors: Sequence[int] = (), chosen: ChosenColumns | None = None
    ) -> None:
        self.files, self.chosen, self._descriptors = tuple(files), chosen, list(descriptors)

    @property
    def size(self) -> int:
        """Returns the bytes of all files."""
        return sum(file.size for file in self.files)

    def require_unchanged(self) -> None:
        """Refuses what was read of objects that have another version by now; files are read as they are."""

    def close(self) -> None:
        """Closes files that were opened for their names."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSet:
    """Files that are one table.

    Args:
        root: the folder that they are in; partitions are named by folders below it.
        pattern: which names they have below it, part by part; `**` stands for any number of folders.
        paths: of a list, which has no pattern.
        partitions: the values that files have for all of their rows, by their paths; None if folders are named so.
        chosen: the columns that the table has; None if it has all.
    """

    root: Path
    pattern: tuple[str, ...] = ANYWHERE
    paths: tuple[Path, ...] = ()
    partitions: Mapping[Path, Partitions] | None = None
    chosen: ChosenColumns | None = None

    @classmethod
    def of_paths(cls, paths: Sequence[str | Path]) -> Self:
        """Returns a list of files.

        Raises:
            InvalidParameter: if one of them is not there, or of no known format.
        """
        found = tuple(map(_existing, paths))
        for path in found:
            if format_of(path.name) is None:
                raise InvalidParameter("source", path.name, f"to end in {_endings()}", "Convert the file.")
        return cls(root=Path(os.path.commonpath([path.parent for path in found])), pattern=(), paths=found)

    @classmethod
    def of_places(cls, given: Sequence[str]) -> Self:
        """Returns a list of files, or those of one folder or pattern.

        Raises:
            InvalidParameter: as `of_paths` and `of_place` do.
        """
        return (cls.of_place(given[0]) if len(given) == 1 else None) or cls.of_paths(given)

    @classmethod
    def of_place(cls, given: str | os.PathLike[str]) -> Self | None:
        """Returns the files of a folder or of a pattern; None if it is neither.

        Raises:
            InvalidParameter: if a pattern does not begin in a folder, or leaves it.
        """
        check_is_file(given)
        text = os.fspath(given)
        if "\0" in text or "://" in text:
            return None
        if os.path.isdir(text):
            return cls(root=_checked_folder(Path(text).resolve()))
        if not PATTERN & set(text) or os.path.isfile(text):
            return None
        parts = Path(text).parts
        first = next(place for place, part in enumerate(parts) if PATTERN & set(part))
        root, pattern = Path(*parts[:first]).resolve(), parts[first:]
        if ".." in pattern or not root.is_dir():
            raise InvalidParameter("source", text, "to be a pattern of files in an existing folder", _HINT)
        return cls(root=_checked_folder(root), pattern=(*pattern, "*") if pattern[-1] == "**" else pattern)

    @property
    def origins(self) -> dict[str, str]:
        """Returns where the files are, and what is there: a folder ends in a slash, for all below it belongs to it."""
        places = self.paths or (self.root,)
        found = {}
        for place in places:
            state = place.stat()
            found[f"{place}{'' if self.paths else os.sep}"] = f"{state.st_dev}:{state.st_ino}"
        return found

    def list_files(self) -> Listing:
        """Returns the files that are there now, in the order of their paths.

        Raises:
            OSError: if a folder cannot be read, or a file of a list is gone.
        """
        found, descriptors = list[ListedFile](), list[int]()
        try:
            for path, named in self._paths():
                known = format_of(path.name, named=named)
                if known is not None:
                    found.append(describe_file(path, known, self._partitions_of(path), descriptors))
        except BaseException:
            Listing((), descriptors).close()
            raise
        return Listing(found, descriptors, self.chosen)

    def _paths(self) -> Iterator[tuple[Path, bool]]:
        """Yields the paths, and whether each was named rather than found."""
        if self.paths:
            yield from ((path, True) for path in self.paths)
            return
        named = names_texts(self.pattern)
        yield from ((path, named) for path in sorted(set(_matching(self.root, self.pattern))))

    def _partitions_of(self, path: Path) -> Partitions:
        if self.partitions is not None:
            return self.partitions.get(path, {})
        return partitions_of(path.parent.parts if self.paths else path.parent.relative_to(self.root).parts)


def describe_file(path: Path, known: tuple[str, str], partitions: Partitions, descriptors: list[int]) -> ListedFile:
    """Returns a file as it is now; one whose name would be taken for a pattern is opened, and the descriptor added.

    Raises:
        OSError: if it is gone, or is a link or anything else than a file.
    """
    state = path.stat(follow_symlinks=False)
    if not stat.S_ISREG(state.st_mode):
        raise OSError
    place = str(path)
    if _is_odd(place):
        descriptors.append(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        place = f"/dev/fd/{descriptors[-1]}"
    return ListedFile(
        place=place,
        format=known[0],
        packing=known[1],
        partitions=partitions,
        size=state.st_size,
        inode=f"{state.st_dev}:{state.st_ino}",
    )


def partitions_of(folders: Sequence[str]) -> dict[str, str | None]:
    """Returns the values in the names of folders, as texts; the innermost one counts if a name comes twice.

    >>> partitions_of(["lake", "ward=A%2FB", "day=__HIVE_DEFAULT_PARTITION__"])
    {'ward': 'A/B', 'day': None}
    """
    pairs = (folder.partition("=") for folder in folders)
    named = ((_decode_name(name), _decode_name(value)) for name, sign, value in pairs if sign)
    return {name: None if value in _NO_VALUE else value for name, value in named if name}


def _decode_name(text: str) -> str | None:
    """Returns a text as Hive and Spark write it into names of folders; None if it is not Unicode."""
    try:
        found = unquote(text, errors="strict")
    except UnicodeError:
        return None
    return found if is_unicode(found) else None


def _matching(folder: Path, pattern: Sequence[str]) -> Iterator[Path]:
    """Yields the files of a folder that a pattern describes; a folder that cannot be read is an error, not empty."""
    head, *rest = pattern
    if head == "**":
        yield from _matching(folder, rest)
    with os.scandir(folder) as entries:
        shown = [entry for entry in entries if not is_hidden(entry.name) and not entry.is_symlink()]
    for entry in shown:
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            if head == "**":
                yield from _matching(path, pattern)
            elif rest and fnmatchcase(entry.name, head):
                yield from _matching(path, rest)
        elif not rest and head != "**" and fnmatchcase(entry.name, head) and entry.is_file(follow_symlinks=False):
            yield path


def _is_odd(place: str) -> bool:
    """Returns whether DuckDB would take a path for a pattern, or cannot be given it."""
    return bool(_ODD & set(place)) or not is_unicode(place)


def is_hidden(name: str) -> bool:
    """Returns whether a file or a folder is passed over for its name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _existing(path: str | Path) -> Path:
    check_is_file(path)
    text = os.fspath(path)
    found = None if "\0" in text else Path(text).resolve()
    if found is None or not found.is_file():
        raise InvalidParameter("source", str(path), "to be an existing file", "Name files, or one pattern alone.")
    return found


def _checked_folder(root: Path) -> Path:
    """Refuses the whole disk, and tables of formats whose folders also have rows that were deleted.

    Raises:
        InvalidParameter: naming what it is.
    """
    if root == Path(root.anchor):
        raise InvalidParameter("source", str(root), "to be a folder of files", _HINT)
    check_plain(root)
    iceberg = any(name.name.endswith(".metadata.json") for name in _names(root / "metadata"))
    for kind, found, instead in (
        ("Delta", (root / "_delta_log").is_dir(), "Protect the folder of the table itself, without a pattern."),
        ("Iceberg", iceberg, 'Name its table in a catalog, "iceberg://CATALOG/NAMESPACE.TABLE", or a metadata file.'),
    ):
        if found:
            hint = f"Its folder also has files that are no longer part of it. {instead}"
            raise InvalidParameter("source", str(root), f"not to be a folder of the {kind} format", hint)
    return root


def check_plain(root: Path) -> None:
    """Refuses a folder whose path would be taken for a pattern: each of its files would have to stay open.

    Raises:
        InvalidParameter: if it is one.
    """
    if _is_odd(str(root)):
        hint = "Rename the folder, or what it is in."
        raise InvalidParameter("source", str(root), "to have a path without the signs * ? [ {", hint)


def _names(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _endings() -> str:
    *others, last = [ending for endings in _FORMATS.values() for ending in endings]
    return f"{', '.join(others)} or {last}, or .csv.gz"
