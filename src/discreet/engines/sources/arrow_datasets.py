"""Datasets of Arrow: those of local files are read as files, those in memory as frames.

Arrow's own scanner fails at a value that its schema does not expect, and guesses the types of texts from their content.
So of a dataset of files only the paths, the partitions and the names of the columns are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from discreet.engines.sources.file_set import FileSet, Partitions, format_of
from discreet.engines.sources.stored_frames import StoredFrame, computes
from discreet.errors import InvalidParameter
from discreet.lazy import Module, pa

ds = Module("pyarrow.dataset")

_PLAIN = "to be a dataset without a filter"
_FORMATS = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "json": "ndjson"}
"""Our names of Arrow's formats, by the endings that Arrow gives them."""

_OPTIONS = ("parse_options", "default_fragment_scan_options")


def table_of(given: Any) -> Any:
    """Returns the files or the rows of a dataset; what is no dataset is returned as it is.

    Raises:
        InvalidParameter: if it filters, is not made of local files or of memory alone, or reads files in another way.
    """
    if isinstance(given, ds.Scanner):
        raise InvalidParameter(
            "source", type(given).__name__, "to be a dataset, not a scanner of one", "Pass the dataset."
        )
    if not isinstance(given, ds.Dataset):
        return given
    parts = list(_parts(given))
    if all(isinstance(part, ds.FileSystemDataset) for part in parts):
        return _files(parts, given.schema.names)
    if all(isinstance(part, ds.InMemoryDataset) for part in parts):
        return StoredFrame(given.schema, partial(_rows, given))
    hint = "Protect a dataset of local files, or one that is in memory."
    raise InvalidParameter("source", type(given).__name__, "to be of one kind", hint)


def _parts(given: Any) -> Iterator[Any]:
    if getattr(given, "_scan_options", None):
        raise computes(given, _PLAIN)
    if isinstance(given, ds.UnionDataset):
        for child in given.children:
            yield from _parts(child)
    else:
        yield given


def _rows(given: Any) -> Any:
    return given.to_table(use_threads=False)


def _files(parts: list[Any], names: list[str]) -> FileSet:
    partitions = dict[Path, Partitions]()
    for part in parts:
        _check_format(part)
        for fragment in part.get_fragments():
            path = Path(fragment.path).resolve()
            known = format_of(path.name)
            if known is None or known[0] != _FORMATS.get(part.format.default_extname):
                hint = "Give the files names that end as their format does, such as .parquet."
                raise InvalidParameter("source", path.name, f"to end in .{part.format.default_extname}", hint)
            partitions[path] = _texts(ds.get_partition_keys(fragment.partition_expression))
    if not partitions:
        hint = "Pass the folder itself: each query finds the files that are in it then."
        raise InvalidParameter("source", "dataset", "to have files", hint)
    return replace(FileSet.of_paths(tuple(partitions)), partitions=partitions, chosen={name: name for name in names})


def _texts(keys: Mapping[str, Any]) -> Partitions:
    return {name: None if value is None else str(value) for name, value in keys.items()}


def _check_format(part: Any) -> None:
    """Refuses files of another machine, and texts that are not read as we read them."""
    if not isinstance(part.filesystem, pa.fs.LocalFileSystem):
        hint = "Copy the files to this machine."
        raise InvalidParameter("source", type(part.filesystem).__name__, "to be local files", hint)
    if part.format.default_extname not in _FORMATS:
        hint = "Write the rows to Parquet."
        raise InvalidParameter("source", part.format.default_extname, "to be a format of files that is read", hint)
    default = type(part.format)()
    if any(getattr(part.format, name, None) != getattr(default, name, None) for name in _OPTIONS):
        hint = "Pass the paths, or the folder: delimiters are found in the header."
        raise InvalidParameter("source", type(part).__name__, "to have the default options of its format", hint)
