"""Lazy frames of polars: scans of files with chosen and renamed columns are read as files, everything else is refused.

What a lazy frame does is read from the plan that polars writes of it, and only nodes and options that are listed here
pass. A cast may fail on one person's value, a filter may, a mean mixes people, and a sample differs from one step of a
query to the next: such a frame is like a view of a database.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.sources.file_set import ANYWHERE, FileSet
from discreet.engines.sources.stored_frames import computes
from discreet.errors import InvalidParameter
from discreet.lazy import load

_PLAIN = "to be files with chosen and renamed columns"
_CELLS = re.compile(r'"df":\[[0-9,]*\]')  # of a frame in memory, whose rows are part of its plan
_SCANS = {"Parquet": "scan_parquet", "Csv": "scan_csv", "NDJson": "scan_ndjson", "Ipc": "scan_ipc"}
_HOW_FAST = (
    *("cache", "chunk_size", "infer_schema_files", "infer_schema_length", "low_memory", "n_threads", "parallel"),
    *("rechunk", "use_statistics"),
)
"""Options of a scan that change no row; names of partitions have one of their own."""

Node = Mapping[str, Any]


class _OtherPlan(Exception):
    """A plan has a part that is not listed here."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a plan: for some the names that they are stored under, and whether all others are there too."""

    stored: Mapping[str, str]
    is_all: bool
    gone: frozenset[str] = frozenset()

    def find(self, name: str) -> str:
        """Returns the stored name of a column."""
        if name in self.stored:
            return self.stored[name]
        if not self.is_all or name in self.gone:
            raise _OtherPlan
        return name

    def rename(self, existing: Sequence[str], new: Sequence[str]) -> _Columns:
        """Returns the columns with other names; all that is not renamed keeps its name."""
        found = {name: self.find(old) for old, name in zip(existing, new, strict=True)}
        kept = {name: stored for name, stored in self.stored.items() if name not in existing}
        gone = (self.gone | frozenset(existing)) - frozenset(new)
        return _Columns({**kept, **found}, self.is_all, gone)

    def drop(self, names: Iterable[str]) -> _Columns:
        """Returns the columns without some."""
        left = frozenset(names)
        kept = {name: stored for name, stored in self.stored.items() if name not in left}
        return _Columns(kept, self.is_all, self.gone | left)


def table_of(given: Any) -> Any:
    """Returns the files of a lazy frame, or its frame in memory; what is not lazy is returned as it is.

    Raises:
        InvalidParameter: if it computes anything, or reads its files with options of its own.
    """
    polars = load("polars", "A frame of polars")
    if not isinstance(given, polars.LazyFrame):
        return given
    try:
        leaf, columns = _read_plan(_plan_of(given))
        if set(leaf) == {"DataFrameScan"}:
            return given.collect()
        files = _files(leaf, polars)
        names = (
            given.collect_schema().names() if columns.is_all and (columns.stored or columns.gone) else columns.stored
        )
        chosen = {name: columns.find(name) for name in names} or None
    except InvalidParameter:
        raise
    except Exception:  # noqa: BLE001 - a plan of another shape than is known here, or one that polars cannot write
        raise computes(given, _PLAIN) from None
    return replace(files, chosen=chosen)


def _plan_of(frame: Any) -> Node:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars keeps its right to change what it writes: so all of it is checked
        written = frame.serialize(format="json")
    plan: Node = json.loads(_CELLS.sub('"df":[]', written))
    return plan


def _read_plan(plan: Node) -> tuple[Node, _Columns]:
    """Returns where rows come from, and the columns that are chosen of them."""
    ((kind, node),) = plan.items()
    if kind not in _STEPS:
        return plan, _Columns({}, is_all=True)
    if not node.keys() <= {"input", "expr", "options", "function"}:
        raise _OtherPlan
    leaf, columns = _read_plan(node["input"])
    return leaf, _STEPS[kind](columns, node)


def _select(columns: _Columns, node: Node) -> _Columns:
    shown = list[tuple[str, str]]()
    for expression in node["expr"]:
        ((kind, content),) = expression.items()
        if kind == "Column":
            shown.append((content, columns.find(content)))
        elif kind == "Alias" and set(content[0]) == {"Column"}:
            shown.append((content[1], columns.find(content[0]["Column"])))
        elif kind == "Selector" and len(node["expr"]) == 1:
            return _select_some(columns, content)
        else:
            raise _OtherPlan
    return _Columns(dict(shown), is_all=False)


def _select_some(columns: _Columns, selector: Any) -> _Columns:
    if selector == "Wildcard":
        return columns
    ((kind, content),) = selector.items()
    if kind == "ByName":
        return _Columns({name: columns.find(name) for name in content["names"]}, is_all=False)
    if kind == "Difference" and content[0] == "Wildcard" and set(content[1]) == {"ByName"}:
        return columns.drop(content[1]["ByName"]["names"])
    raise _OtherPlan


def _rename(columns: _Columns, node: Node) -> _Columns:
    ((kind, content),) = node["function"].items()
    if kind != "Rename":
        raise _OtherPlan
    return columns.rename(content["existing"], content["new"])


_STEPS: Mapping[str, Callable[[_Columns, Node], _Columns]] = {"Select": _select, "MapFunction": _rename}
"""Nodes of a plan that choose and rename columns; of all others only a scan may be there."""


def _files(leaf: Node, polars: Any) -> FileSet:
    """Returns the files of a scan that is like the one that polars makes without options."""
    node = leaf["Scan"]
    ((kind, _),) = node["scan_type"].items()
    paths = [place["inner"] for place in node["sources"]["Paths"]]
    usual = _plan_of(getattr(polars, _SCANS[kind])("#"))["Scan"]
    hive = node["unified_scan_args"]["hive_options"]["enabled"]
    if set(leaf) != {"Scan"} or set(node["sources"]) != {"Paths"} or _rows_of(node) != _rows_of(usual):
        raise _OtherPlan
    files = FileSet.of_places(paths)
    is_folder = files.pattern == ANYWHERE
    return files if hive or (hive is None and is_folder) else replace(files, partitions={})


def _rows_of(node: Any) -> Any:
    """Returns what of a scan decides its rows."""
    if not isinstance(node, Mapping):
        return node
    left_out = {*_HOW_FAST, "sources"} | ({"enabled"} if "hive_start_idx" in node else set())
    return {name: _rows_of(part) for name, part in node.items() if name not in left_out}
