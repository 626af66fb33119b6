"""Objects that are one table: one of them, all below a path, those of a pattern, or a list.

The rules are those of files (`file_set`): which objects there are is private, so they are listed after the charge, and
the rule that chooses them is public. Each object is opened when it is listed. From then on a query is about that
version of it: where another one was read, the query fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from discreet.dataclass import dataclass
from discreet.engines.objects import object_store
from discreet.engines.objects.object_address import WEB, AllowedPlaces, ObjectAddress, is_address
from discreet.engines.objects.object_store import Found, ObjectStore, for_steward, store_of, with_account
from discreet.engines.sources.file_set import (
    ANYWHERE,
    PATTERN,
    ListedFile,
    Listing,
    format_of,
    is_hidden,
    names_texts,
    partitions_of,
)
from discreet.engines.sources.open_object import TAIL, OpenObject
from discreet.errors import InvalidParameter

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 8  # requests
_TAILS_KEPT = 1 << 26  # bytes of the ends of all objects of a query
_HINT = "Name an object, a folder that ends in a slash, or a pattern such as s3://lake/visits/**/*.parquet."


class ObjectListing(Listing):
    """The objects that one query reads, each as it was found."""

    def __init__(self, files: Sequence[ListedFile], found: Sequence[tuple[ObjectAddress, Found]]) -> None:
        super().__init__(files)
        self._found = tuple(found)

    def require_unchanged(self) -> None:
        """Refuses what was read if an object has another version by now.

        Raises:
            ObjectUnavailable: then, or if one cannot be reached.
        """
        now = _at_once([address for address, _ in self._found], _find, None)
        if [one.version for one in now] != [found.version for _, found in self._found]:
            raise object_store.ObjectUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSet:
    """Objects that are one table.

    Args:
        root: what they are below; partitions are named by folders below it.
        pattern: which names they have below it, part by part; `**` stands for any number of folders.
        objects: those that are named, which have no pattern.
    """

    root: ObjectAddress
    pattern: tuple[str, ...] = ANYWHERE
    objects: tuple[ObjectAddress, ...] = ()

    @classmethod
    def of(cls, given: Any) -> Self | None:
        """Returns the objects of an address or of a list of addresses; None if it is neither.

        Raises:
            InvalidParameter: if an address has a secret in it, or what it names cannot be a table.
        """
        if is_address(given):
            return cls._of_address(
                with_account(ObjectAddress.of(given)), is_folder=given.partition("#")[0].endswith("/")
            )
        if (
            isinstance(given, str)
            or not isinstance(given, Sequence)
            or not isinstance(next(iter(given), 0), str | Path)
        ):
            return None  # rows may be a long list
        if any(map(is_address, given)):
            if not all(map(is_address, given)):
                hint = "Copy the files to one place, or protect two tables."
                raise InvalidParameter("source", "files and addresses", "to be of one kind", hint)
            return cls._of_list([with_account(ObjectAddress.of(one)) for one in given])
        return None

    @classmethod
    def _of_address(cls, address: ObjectAddress, *, is_folder: bool) -> Self:
        parts = address.path.split("/") if address.path else []
        first = next((place for place, part in enumerate(parts) if PATTERN & set(part)), None)
        if first is None and parts and not is_folder and format_of(parts[-1]) is not None:
            return cls(root=_above(address), pattern=(), objects=(address,))
        if address.scheme == WEB:
            hint = "Web servers have no lists of files. Name each file, all in one list."
            raise InvalidParameter("source", str(address), "to be a file of a known format", hint)
        if first is None and parts and "." in parts[-1] and not is_folder:
            raise InvalidParameter("source", str(address), "to be an object of a known format", _HINT)
        if first is None:
            return cls(root=address)
        pattern = tuple(parts[first:])
        root = replace(address, path="/".join(parts[:first]))
        return cls(root=root, pattern=(*pattern, "*") if pattern[-1] == "**" else pattern)

    @classmethod
    def _of_list(cls, addresses: Sequence[ObjectAddress]) -> Self:
        for address in addresses:
            name = address.path.rpartition("/")[2]
            if PATTERN & set(name) or format_of(name) is None:
                raise InvalidParameter("source", str(address), "to be an object of a known format", _HINT)
        return cls(root=_above(addresses[0]), pattern=(), objects=tuple(addresses))

    @property
    def origins(self) -> dict[str, str]:
        """Returns where the objects are: all below a root belong to it."""
        if self.objects:
            return {one.origin: one.origin for one in self.objects}
        return {f"{self.root.origin}/": f"{self.root.origin}/"}

    def require_allowed(self, allowed: AllowedPlaces) -> None:
        """Refuses addresses outside of the places that may be read.

        Raises:
            InvalidParameter: naming the first of them.
        """
        for address in self.objects or (self.root,):
            allowed.require(address)

    def require_readable(self) -> None:
        """Checks, for a steward, that the objects can be listed, or those that are named opened.

        Raises:
            InvalidParameter: with what to check.
        """
        for address in self.objects:
            for_steward(address, partial(_find, address))
        if not self.objects:
            names = [name.removeprefix(self._below) for name in for_steward(self.root, self._names)]
            _require_no_deleted_rows(self.root, names)

    def list_for_steward(self) -> Listing:
        """Returns the objects that are there now, as `list_files` does.

        Raises:
            InvalidParameter: with what to check, if they cannot be listed.
        """
        return for_steward(self.root, self.list_files)

    def list_files(self, stopped: threading.Event | None = None) -> Listing:
        """Returns the objects that are there now, in the order of their names, each of them opened.

        Args:
            stopped: says when the result is not wanted any more.

        Raises:
            ObjectUnavailable: if the bucket or one of the objects cannot be read.
        """
        chosen = [*self._choose_objects()]
        found = _at_once([address for address, _, _ in chosen], _find, stopped)
        keeps_tails = len(chosen) * TAIL <= _TAILS_KEPT
        files = [
            _describe(address, one, partitions, known, keeps_tail=keeps_tails)
            for (address, partitions, known), one in zip(chosen, found, strict=True)
        ]
        return ObjectListing(files, [(address, one) for (address, _, _), one in zip(chosen, found, strict=True)])

    @property
    def _below(self) -> str:
        return f"{self.root.path}/" if self.root.path else ""

    def _names(self) -> list[str]:
        store = store_of(self.root)
        names: list[str] = object_store.RETRIES.run(lambda: store.names(self.root.path))
        return sorted(names)

    def _choose_objects(self) -> Iterator[tuple[ObjectAddress, dict[str, str | None], tuple[str, str]]]:
        """Yields the objects that belong to the table, their partitions and their formats."""
        for address in self.objects:
            known = format_of(address.path.rpartition("/")[2])
            if known is not None:
                yield address, partitions_of(address.path.split("/")[:-1]), known
        named = not self.objects and names_texts(self.pattern)
        for name in [] if self.objects else self._names():
            parts = name.removeprefix(self._below).split("/")
            known = format_of(parts[-1], named=named)
            if known is not None and not any(map(is_hidden, parts)) and matches(parts, self.pattern):
                yield replace(self.root, path=name), partitions_of(parts[:-1]), known


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Returns whether a pattern describes a name, both part by part.

    >>> matches(["a", "b", "c.csv"], ["**", "*.csv"]), matches(["a", "c.csv"], ["*.csv"])
    (True, False)
    """
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(matches(parts[start:], pattern[1:]) for start in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and matches(parts[1:], pattern[1:])


def _find(address: ObjectAddress) -> Found:
    store: ObjectStore = store_of(address)
    found: Found = object_store.RETRIES.run(lambda: store.find(address.path))
    return found


def _describe(
    address: ObjectAddress,
    found: Found,
    partitions: dict[str, str | None],
    known: tuple[str, str],
    *,
    keeps_tail: bool,
) -> ListedFile:
    read = partial(_read, found.read)
    opened = OpenObject(address.path, found.size, read, keeps_tail=keeps_tail)
    return ListedFile(
        place=str(opened),
        format=known[0],
        packing=known[1],
        partitions=partitions,
        size=found.size,
        inode=address.origin,
        opened=opened,
    )


def _read(read: Callable[[int, int], bytes], start: int, length: int) -> bytes:
    """Reads bytes; a server that sends another number of them is asked again."""

    def whole() -> bytes:
        found = read(start, length)
        if len(found) != length:
            raise OSError
        return found

    found: bytes = object_store.RETRIES.run(whole)
    return found


def _at_once(given: Sequence[T], do: Callable[[T], R], stopped: threading.Event | None) -> list[R]:
    """Returns what is done with each of them, some at the same time; the first that fails ends it."""

    def unless_stopped(one: T) -> R:
        if stopped is not None and stopped.is_set():
            raise TimeoutError
        return do(one)

    if len(given) <= 1:
        return [unless_stopped(one) for one in given]
    with ThreadPoolExecutor(min(_AT_ONCE, len(given))) as pool:
        try:
            return list(pool.map(unless_stopped, given))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _above(address: ObjectAddress) -> ObjectAddress:
    return replace(address, path=address.path.rpartition("/")[0])


def _require_no_deleted_rows(root: ObjectAddress, names: Sequence[str]) -> None:
    """Refuses tables of formats whose folders also have rows that were deleted."""
    iceberg = any(name.startswith("metadata/") and name.endswith(".metadata.json") for name in names)
    for kind, found in (("Delta", any(name.startswith("_delta_log/") for name in names)), ("Iceberg", iceberg)):
        if found:
            hint = f"Its folder also has files that are no longer part of it. Write its rows to Parquet from {kind}."
            raise InvalidParameter("source", str(root), f"not to be a {kind} table", hint)
