"""Statements made before anything is read: declarations of tables by stewards, and terms of questions by analysts.

Declarations are checked and made canonical; they are the only source of bounds, keys and limits. Terms are what a
question may spend, made exact from what was asked and from the account's budget.
"""

from __future__ import annotations

import datetime as dt
import json
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet import check
from discreet.curator.catalog.unit_of_privacy import ARROW, Owner
from discreet.curator.catalog.unit_of_privacy import owner as owner_of
from discreet.engines.abstract_engine import Engine
from discreet.engines.duckdb.sources import ArrowFrame, Csv, source_of
from discreet.engines.lakes.lake_table import LakeTable
from discreet.engines.objects.object_set import ObjectSet
from discreet.engines.sources.file_set import FileSet
from discreet.engines.sources.sqlite_table import SqliteTable
from discreet.errors import InvalidParameter
from discreet.lazy import Module
from discreet.ledger.redeclaration import LONGEST_LIST
from discreet.ledger.serialization import LONGEST_TEXT, canonical
from discreet.plan.expressions.functions.date_functions import day_number
from discreet.plan.model.nodes import UNIT, Value
from discreet.plan.model.sample import Sample
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, IdentityKey, Limits, PrivateLimits, TableSchema
from discreet.plan.model.types import Type
from discreet.plan.validation import are_plainly, check_value
from discreet.privacy import Neighbours

if TYPE_CHECKING:
    from discreet.engines.duckdb.composed import file_parts
else:  # DuckDB, which is loaded with the first curator that reads files
    file_parts = Module("discreet.engines.duckdb.composed.file_parts")

End = check.Number | dt.date
"""An end of a column's bounds: a number, or a day or moment, which may be written as a text."""

_KINDS: dict[Type, tuple[type, Callable[[Any], Value]]] = {
    Type.INT: (numbers.Integral, int),
    Type.BOOL: (bool, bool),
    Type.TEXT: (str, str),
    Type.DATE: (dt.date, lambda day: dt.date(day.year, day.month, day.day)),
    Type.TIMESTAMP: (dt.datetime, lambda moment: dt.datetime.combine(moment.date(), moment.timetz())),
}
"""What a key may be given as, and how it becomes the plain value that engines compare."""


def columns_of(engine: Engine, source: Any, types: Mapping[str, str] | None) -> dict[str, Type]:
    """Returns the columns of a source: types that its format carries, and those that the steward declares.

    Raises:
        InvalidParameter: if the format leaves columns without a type and none are declared; the hint proposes a line
            made of the names alone, which are public. The content is never looked at. Also if the name of a column has
            control characters: names are printed.
    """
    columns = engine.schema_of(source)
    untyped = untyped_columns(source)
    missing = [] if types else [name for name in untyped if name not in columns]
    if not columns and not untyped and not types and _is_many_files(source):
        hint = 'No file has columns yet, or they are JSON. Declare them, e.g. types={"age": "int", "ward": "text"}.'
        raise InvalidParameter("types", None, "to be given", hint)
    if missing:
        proposed = ", ".join(f'{json.dumps(name, ensure_ascii=False)}: "text"' for name in missing)
        look = "As the steward, look them up with discreet.check_file(path).types. Or paste"
        look = "Paste" if ObjectSet.of(source) is not None else look  # which only reads files
        hint = f"The format has no column types. {look} and correct: types={{{proposed}}}"
        raise InvalidParameter("types", None, "to be given", hint)
    declared = columns | {column: Type(kind) for column, kind in by_column("types", types or {}).items()}
    for column in declared:
        check.label(column=column)
    if UNIT in declared:  # the column of ids is called so in rows that are put together
        raise InvalidParameter("column", UNIT, "to have another name", "Rename it in the source.")
    return declared


def _is_many_files(source: Any) -> bool:
    """Returns whether a source is files that each query lists anew."""
    try:
        return isinstance(source_of(source), FileSet | LakeTable | ObjectSet)
    except InvalidParameter:
        return False


def recorded_columns(source: Any, types: Mapping[str, str] | None, recorded: str | None) -> dict[str, Type] | None:
    """Returns the columns of many files as the ledger has them; None if they are to be found anew.

    What was declared stays, though files with other columns have come since: else opening a curator again would fail.

    Args:
        source: what is protected.
        types: the types that the steward declares; those that differ from the ledger's are a new declaration.
        recorded: the declaration in the ledger; None if the table is new.
    """
    if recorded is None or not _is_many_files(source):
        return None
    known = {name: Type(column["type"]) for name, column in json.loads(recorded)["columns"].items()}
    declared = {column: Type(kind) for column, kind in by_column("types", types or {}).items()}
    return known if declared.items() <= known.items() else None


def untyped_columns(source: Any) -> tuple[str, ...]:
    """Returns the columns to which the format of a source gives no type: all of CSV, objects of a frame, dicts.

    Of many files, these are also partitions, and columns that two files store as different types.

    >>> untyped_columns([{"ward": "A", "age": 40}])
    ('ward', 'age')
    """
    if isinstance(source, Sequence) and source and isinstance(source[0], Mapping):
        return tuple(map(str, source[0]))
    try:
        kind = source_of(source)
    except InvalidParameter:  # a table of another engine, which knows its types
        return ()
    if isinstance(kind, FileSet | ObjectSet):
        return tuple(name for name, told in file_parts.describe_files(kind).items() if told is None)
    if isinstance(kind, SqliteTable):
        return kind.columns()
    return kind.header if isinstance(kind, Csv) else kind.texts if isinstance(kind, ArrowFrame) else ()


def declare(
    name: str,
    columns: Mapping[str, Type],
    *,
    unit: str | None = None,
    owner: Owner | None = None,
    bounds: Mapping[str, tuple[End, End]],
    keys: Mapping[str, Sequence[Value]],
    limits: Limits,
    neighbours: Neighbours,
    version: str,
    account: str = "",
    domain: Mapping[str, tuple[End, End]] | None = None,
    most_rows: int | None = None,
    private_limits: PrivateLimits | None = None,
    sample_of: Sample | Mapping[str, Any] | None = None,
) -> TableSchema:
    """Returns the schema of a protected table; `owner` says whose rows they are, or simply `unit`, a column of ids.

    Raises:
        InvalidParameter: if a declaration names no column, or does not fit its type.
    """
    facts = domain or {}
    for option, names in (("bounds", bounds), ("keys", keys), ("domain", facts)):
        for column in by_column(option, names):
            if column not in columns:
                raise InvalidParameter(option, column, f"to name a column of {name!r}", _columns_hint(columns))
    whose = owner_of(name, unit, columns, {}) if owner is None else owner
    described = {
        column: ColumnSchema(
            name=column,
            type=kind,
            bounds=_bounds(column, kind, bounds[column]) if column in bounds else None,
            keys=_keys(column, kind, keys[column]) if column in keys else None,
            link=whose.link(column),
            domain=_bounds(column, kind, facts[column], option="domain") if column in facts else None,
        )
        for column, kind in columns.items()
    }
    if whose.column is not None:
        described[UNIT] = whose.column
    return TableSchema(
        name=name,
        columns=described,
        unit=whose.unit,
        parts=whose.parts,
        reach=whose.reach,
        people=whose.people,
        limits=limits,
        private_limits=private_limits,
        neighbours=neighbours,
        version=version,
        account=account,
        most_rows=None if most_rows is None else check.integer(most_rows=most_rows, at_least=1, at_most=10**12),
        sample=None if sample_of is None else _sample(sample_of, described),
        person=whose.person,
        period=whose.period,
    )


def _sample(given: Sample | Mapping[str, Any], columns: Mapping[str, ColumnSchema]) -> Sample:
    """Returns a declared sample, its strata being the declared keys of a column.

    A file has keys as texts, so that strata are found by how keys are written.
    """
    sample = Sample.of(given)
    if sample.by is None:
        return sample
    keys = columns[sample.by].keys if sample.by in columns else None
    if keys is None:
        hint = f"Declare its values, e.g. keys={{{sample.by!r}: {list(sample.strata)}}}."
        raise InvalidParameter("sample_of.by", sample.by, "to name a column with declared keys", hint)
    found = {str(_text(key)): one for key, one in sample.strata.items()}
    if found.keys() != {str(_text(key)) for key in keys} or len(found) != len(keys):
        hint = "Give the population and the size of each key, and of no other value."
        raise InvalidParameter("sample_of.population", sorted(found), f"to have the keys of {sample.by!r}", hint)
    strata = {key: found[str(_text(key))] for key in keys}
    return Sample(
        population={key: one.population for key, one in strata.items()},
        size={key: one.size for key, one in strata.items()},
        by=sample.by,
    )


def by_column(option: str, given: Any) -> Mapping[str, Any]:
    """Returns what is declared of columns, by their names.

    Raises:
        InvalidParameter: if it is a list or a pair without the names of columns.
    """
    if not isinstance(given, Mapping):
        hint = f"Write {option}={_EXAMPLES[option]}."
        raise InvalidParameter(option, type(given).__name__, "to be a dict by column name", hint)
    return given


_EXAMPLES = {
    "bounds": '{"age": (0, 120)}',
    "domain": '{"age": (0, 120)}',
    "keys": '{"ward": ["A", "B"]}',
    "types": '{"age": "int"}',
}


def _columns_hint(columns: Mapping[str, Type]) -> str:
    return f"Its columns are {', '.join(sorted(columns))}."


def _bounds(column: str, kind: Type, pair: Any, *, option: str = "bounds") -> ColumnBounds:
    if not kind.is_number and kind not in (Type.DATE, Type.TIMESTAMP):
        condition = "to be for a column of numbers or dates"
        raise InvalidParameter(f"{option}[{column!r}]", kind.value, condition, "Leave it out.")
    ends = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else ()
    if len(ends) != 2:
        raise InvalidParameter(f"{option}[{column!r}]", pair, "to be a pair (low, high)", "Pass e.g. (0, 120).")
    if kind.is_number:
        low, high = (check.rational(bounds=end) for end in ends)
        return ColumnBounds(low, high)
    first, last = (_moment(column, end) for end in ends)
    return ColumnBounds(
        day_number(first), day_number(last) + (0 if isinstance(last, dt.datetime) or kind is Type.DATE else 1)
    )


def _moment(column: str, end: object) -> dt.date:
    """Returns a day or moment, given as one or as its text YYYY-MM-DD."""
    try:
        found = dt.date.fromisoformat(end) if isinstance(end, str) else end
    except ValueError:
        found = None
    if not isinstance(found, dt.date) or (isinstance(found, dt.datetime) and found.tzinfo is not None):
        condition = "to be a day in the years 1 to 9999, without a time zone"
        raise InvalidParameter(f"bounds[{column!r}]", end, condition, "Write it as YYYY-MM-DD.")
    return found


def _keys(column: str, kind: Type, values: Sequence[Value]) -> tuple[Value, ...]:
    option = f"keys[{column!r}]"
    if kind is Type.FLOAT:
        raise InvalidParameter(option, "float", "to be of another type", "Group by bands instead.")
    listed = tuple(values)
    if not (are_plainly(listed, kind) and None not in listed):  # what a column's own values are is seen of all at once
        listed = tuple(_plain(option, kind, value) for value in listed)
    if not listed:
        raise InvalidParameter(option, "no keys", "to list at least one key", "List every public key.")
    if len(set(listed)) != len(listed):
        raise InvalidParameter(option, "repeated keys", "to be different", "List each key once.")
    return listed


def _plain(option: str, kind: Type, value: Value) -> Value:
    """Returns a key as the plain value of its type; those of numpy and pandas are converted.

    Raises:
        InvalidParameter: if it is of another type, or one that no engine can hold.
    """
    wanted, convert = _KINDS[kind]
    plain = convert(value) if isinstance(value, wanted) and not _is_narrower(kind, value) else None
    try:
        check_value(plain, kind)
    except InvalidParameter:
        plain = None
    if plain is None:
        raise InvalidParameter(option, value, f"to be of type {kind.value}", "List every public key.")
    return plain


def _is_narrower(kind: Type, value: Value) -> bool:
    """Returns whether a value is of a narrower type: Python calls True an int and a datetime a date, columns do not."""
    return (isinstance(value, bool) and kind is not Type.BOOL) or (isinstance(value, dt.datetime) and kind is Type.DATE)


@lru_cache(maxsize=64)
def declaration(schema: TableSchema) -> str:
    """Returns everything declared but the version, as canonical JSON: what the ledger compares when it comes again.

    Keys are written out where the ledger has room for the text (`LONGEST_TEXT`); otherwise a digest and the number of
    keys stand for each list of more than `LONGEST_LIST` characters, see `key_block`.
    """
    columns = [schema.stored_columns[name] for name in sorted(schema.stored_columns)]
    rest: dict[str, Any] = {
        "limits": _written_limits(schema),
        "name": schema.name,
        "unit": _unit(schema),
    }
    files = {column.name: str(column.files) for column in columns if column.files is not None}
    if files:  # other declarations are written as they always were
        rest["files"] = files
    if schema.period is not None:
        rest["periods"] = {"of": schema.period.column, "per": schema.period.per}
    if schema.sample is not None:
        rest["sample"] = _written_sample(schema.sample)
    lists = {column.name: _write_keys(IdentityKey(column.keys)) for column in columns if column.keys is not None}
    frame = len(_put_together(columns, {}, rest)) - len("null") * len(lists)
    if frame + sum(listed.length for listed in lists.values()) <= LONGEST_TEXT:
        return _put_together(columns, {name: listed.text for name, listed in lists.items()}, rest)
    return _put_together(columns, {name: listed.short for name, listed in lists.items()}, rest)


def key_block(schema: TableSchema, digest: str) -> bytes:
    """Returns the canonical JSON of the declared list of keys that has a digest.

    Raises:
        KeyError: if no column has these keys.
    """
    for column in schema.stored_columns.values():
        if column.keys is not None and _write_keys(IdentityKey(column.keys)).digest == digest:
            return _keys_text(column.keys).encode()
    raise KeyError(digest)


def _written_limits(schema: TableSchema) -> tuple[int, ...] | dict[str, str | None]:
    """Returns limits as they are declared, whatever was found since."""
    if schema.private_limits is None:
        return schema.limits.numbers
    price = schema.private_limits.epsilon
    return {"private": None if price is None else str(price)}


def _written_sample(sample: Sample) -> dict[str, Any]:
    """Returns a sample by its numbers; strata are listed in the order of their keys."""
    if sample.by is None:
        return {"population": sample.population, "size": sample.size}
    rows = [[_text(key), one.population, one.size] for key, one in sample.strata.items()]
    return {"by": sample.by, "strata": rows}


def _put_together(columns: Iterable[ColumnSchema], lists: Mapping[str, str], rest: Mapping[str, Any]) -> str:
    """Returns the canonical JSON of a declaration; its long lists of keys were written before."""
    described = ",".join(
        f'{canonical(column.name)}:{{"bounds":{_written_bounds(column.bounds)},"keys":{lists.get(column.name, "null")},'
        f'"type":{canonical(column.type.value)}}}'
        for column in columns
    )
    return f'{{"columns":{{{described}}},{canonical(rest)[1:]}'


def _written_bounds(bounds: ColumnBounds | None) -> str:
    return "null" if bounds is None else canonical([str(bounds.low), str(bounds.high)])


class _WrittenKeys(NamedTuple):
    """A list of keys as it is in a declaration: written out, or by its digest."""

    text: str
    """Empty if it cannot be written out: it is longer than all that a declaration may be."""
    length: int
    keys: int
    """How many there are."""
    digest: str

    @property
    def short(self) -> str:
        """Returns its text for a declaration: the digest if the list would be too long."""
        return self.text if self.length <= LONGEST_LIST else canonical({"count": self.keys, "digest": self.digest})


@lru_cache(maxsize=64)  # tables that differ in found bounds alone have the same keys
def _write_keys(keys: IdentityKey[tuple[Value, ...]]) -> _WrittenKeys:
    text = _keys_text(keys.value)
    kept = text if len(text) <= LONGEST_TEXT else ""
    return _WrittenKeys(kept, len(text), len(keys.value), sha256(text.encode()).hexdigest())


def _keys_text(keys: tuple[Value, ...]) -> str:
    plain = set(map(type, keys)) <= {int, str, bool}
    return canonical(keys if plain else [_text(value) for value in keys])


def _unit(schema: TableSchema) -> str | list[str] | None:
    """Returns the unit of a declaration: a column; several; or a way, as a list of one."""
    if schema.reach is not None:
        return [f"{schema.reach.column} {ARROW} {schema.reach.link}"]
    return list(schema.parts) if schema.parts else schema.person or schema.unit


def _text(value: Value) -> str | int | bool | None:
    return (
        value.isoformat() if isinstance(value, dt.date) else str(Fraction(value)) if isinstance(value, float) else value
    )
