"""Proposes a discreet.toml for a file: what is private in it is a comment that says so."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from discreet.curator.config.enrolment import from_here, toml_key
from discreet.engines.duckdb.file_content import Cell
from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type
from discreet.presentation.inspection.column_kinds import is_id
from discreet.presentation.inspection.file_check import EACH_ROW, ColumnCheck, FileCheck

_HEAD = """\
# Proposed by `discreet check`. Read every line, change what is wrong, then run: discreet protect
#
# What is not a comment is public. Types were chosen after a look at the data; bounds are those of a column's kind,
# known from its name and not from the data. Lines marked PRIVATE were read from the data, for your eyes: an end may be
# one person's, and so may a rare value. Write what you would know without the file instead, or delete the line, before
# you show this to others.

ledger = "discreet.ledger"
"""
_ADDED = """\
# Proposed by `discreet check`: read every line, and change what is wrong. Lines marked PRIVATE were read from the data,
# for your eyes: write what you would know without the file instead, or delete them, before you show this to others.
"""
_PRIVATE = "PRIVATE: read from the data"


def table_name(path: Path) -> str:
    """Returns the name of a file as one that questions need not quote.

    >>> table_name(Path("Visits 2026.csv.gz")), table_name(Path("2026.csv"))
    ('visits_2026', 't_2026')
    """
    words = re.sub(r"[^a-z0-9]+", "_", path.name.split(".")[0].lower()).strip("_") or "t"
    return words if words[0].isalpha() else f"t_{words}"


def proposed_config(found: FileCheck, *, name: str, folder: Path, account: str = "") -> str:
    """Returns the text of a discreet.toml in a folder, for a file that was looked through.

    Raises:
        InvalidParameter: if the file cannot be read as it is, or it is not given whose rows they are.
    """
    table = proposed_table(found, name=name, folder=folder, account=account)
    return "\n".join((_HEAD, table.removeprefix(f"{_ADDED}\n"), proposed_budget(account or name)))


def proposed_table(found: FileCheck, *, name: str, folder: Path, account: str = "") -> str:
    """Returns the sections of a table as they are added to a discreet.toml in a folder.

    Raises:
        InvalidParameter: if the file cannot be read as it is, or it is not given whose rows they are.
    """
    require_columns(found)
    if found.unit is None:
        hint = (
            "No column name looks like ids of people. Name the column with --unit COLUMN, or pass --unit '' if each "
            "row is one person."
        )
        raise InvalidParameter("--unit", None, "to be given", hint)
    table = f"tables.{toml_key(name)}"
    lines = [_ADDED, f"[{table}]", f"source = {quote_text(relative_path(found.path, folder))}"]
    lines += [*([] if found.table is None else [f"table = {quote_text(found.table)}"]), *_unit(found)]
    lines += [f"account = {quote_text(account)}"] if account else []
    lines += ["", proposed_types(found, table).rstrip("\n")]
    lines += ["", f"[{table}.bounds]", *_bounds(found)]
    lines += ["", f"[{table}.keys]", *_keys(found)]
    return "\n".join((*lines, ""))


def require_columns(found: FileCheck) -> None:
    """Refuses a file that cannot be read as it is.

    Raises:
        InvalidParameter: with what is wrong.
    """
    if not found.columns:
        copy = (
            f" To write a repaired copy, run: discreet check {shlex.quote(str(from_here(found.path)))} --mend COPY.csv"
        )
        hint = f"{found.troubles[0]}{copy if found.mends else ''}"
        raise InvalidParameter("file", found.path.name, "to be a table that can be read", hint)


def proposed_types(found: FileCheck, table: str) -> str:
    """Returns the section of a table's types; `table` is its place in the file, such as "tables.visits"."""
    return "\n".join((f"[{table}.types]", *types_lines(found.types), ""))


def types_lines(types: Mapping[str, str]) -> list[str]:
    """Returns columns with their types, a line of TOML for each.

    >>> types_lines({"age": "int", "ward no": "text"})
    ['age = "int"', '"ward no" = "text"']
    """
    return [f'{toml_key(name)} = "{kind}"' for name, kind in types.items()]


def proposed_budget(account: str) -> str:
    """Returns the section of an account's budget."""
    told = "the most that all answers together may reveal about one person: you decide"
    lines = [f"[budgets.{toml_key(account)}]", _add_comment('epsilon = "1"', told)]
    told = "needed for groups that are not declared; keep it far below 1 / number of people"
    return "\n".join((*lines, _add_comment('delta = "1e-6"', told), ""))


def _unit(found: FileCheck) -> Iterator[str]:
    why = (
        "guessed from its name"
        if found.guessed
        else "each row is one person"
        if found.unit == EACH_ROW
        else "as you named it"
    )
    yield _add_comment(f"unit = {quote_text(str(found.unit))}", why)
    if found.unit != EACH_ROW:
        yield _add_comment('limits = "private"', "found for 2 % of the budget, before the first query")
        yield "# Or declare how many rows of one person count, max_rows, and in how many groups, max_groups. They are"
        yield "# public: write what you would know without the file."


def _bounds(found: FileCheck) -> Iterator[str]:
    for name, column in found.columns.items():
        kind, key = column.proposal.kind, toml_key(name)
        if name == found.unit or is_id(name):
            continue
        if kind is not None:
            ends = f"[{json.dumps(kind.low)}, {json.dumps(kind.high)}]"
            yield _add_comment(f"{key} = {ends}", kind.name)
        elif column.values.low is not None and column.values.high is not None:
            ends = f"[{_round_outwards(column.values.low, up=False)}, {_round_outwards(column.values.high, up=True)}]"
            yield _add_comment(f"# {key} = {ends}", f"{_PRIVATE}, rounded")


def _keys(found: FileCheck) -> Iterator[str]:
    for name, column in found.columns.items():
        if name != found.unit and _is_listed(column):
            values = ", ".join(
                quote_text(v) if isinstance(v, str) else json.dumps(v) for v in column.values.values or ()
            )
            yield _add_comment(f"# {toml_key(name)} = [{values}]", _PRIVATE)


def _add_comment(line: str, why: str) -> str:
    return f"{line:<30}  # {why}"


def _is_listed(column: ColumnCheck) -> bool:
    return column.proposal.type in (Type.TEXT, Type.INT, Type.BOOL) and bool(column.values.values)


def _round_outwards(value: Cell, *, up: bool) -> str:
    """Returns an end of a range, outwards to one digit and zeros, or to a year's end.

    >>> (
    ...     _round_outwards(63770.43, up=True),
    ...     _round_outwards(-17, up=False),
    ...     _round_outwards(0.034, up=False),
    ...     _round_outwards(18, up=False),
    ... )
    ('70000', '-20', '0.03', '10')
    """
    if isinstance(value, dt.date):
        return f'"{value.year:04}-{"12-31" if up else "01-01"}"'
    number = float(value)
    if not number:
        return "0"
    step = math.floor(math.log10(abs(number)))
    digits = (math.ceil if up else math.floor)(number / 10.0**step)
    return (
        f"{digits}e{step}"
        if abs(step) > 15
        else f"{digits * 10**step}"
        if step >= 0
        else f"{digits * 10.0**step:.{-step}f}"
    )


def relative_path(path: Path, folder: Path) -> str:
    """Returns a path as a discreet.toml in a folder names it."""
    return os.path.relpath(path, folder.resolve())


def quote_text(text: str) -> str:
    """Returns a text as TOML quotes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
