"""How a database writes SQL: everything in which databases differ, in one class with a subclass for each of them.

The printers write SELECT, JOIN, GROUP BY, UNION ALL, CASE, comparisons and plain aggregates themselves, as all of them
do, and ask the dialect for everything else. What has a form here is understood by DuckDB, PostgreSQL and Spark with the
same meaning; what has none is abstract. A new database gets a folder next to `engines/duckdb` with a subclass that
overrides what it writes, or means, in another way.
"""

from __future__ import annotations

import datetime as dt
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal

from discreet.engines.abstract_engine import FALSE, TRUE
from discreet.errors import InternalError, InvalidParameter
from discreet.plan.expressions.functions import FUNCTIONS, Template
from discreet.plan.model.types import Type

Strategy = Literal["suspects", "one_sort", "group_sort"]
"""How contributions are bounded: with work only where limits may bind (`contribution_bounds`), or by sorting."""


Extremes = Mapping[str, tuple[tuple[str, ...], str]]
"""For each kind of extreme terms of a value {0} and what it is ordered by {1}, and the aggregate of the terms."""


def struct_extremes(struct: Callable[..., str], part: str) -> Extremes:
    """Returns the extremes of a database that has structs, and compares them part by part.

    Args:
        struct: writes a struct with parts of these names.
        part: the part b of a struct {0}.
    """
    known = f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {struct(a='{1}', b='{0}')} END"
    first, last = (
        f"CASE WHEN {{1}} IS NOT NULL THEN {struct(a='{1}', n=f'{{0}} IS {word}', b='{0}')} END"
        for word in ("NULL", "NOT NULL")
    )
    smallest, largest = (part.replace("{0}", f"{extreme}({{0}})") for extreme in ("MIN", "MAX"))
    return {
        "arg_min": ((known,), smallest),
        "arg_max": ((known,), largest),
        "first": ((first,), smallest),
        "last": ((last,), largest),
    }


Templates = Mapping[str | tuple[str, Type], Template]
"""Templates by function, or by function and the type of its first argument, which is looked up first."""


class Dialect(ABC):
    """What one database calls things, and how it writes them.

    Class attributes are SQL with {0}, {1} for arguments, or tables of it. Every form is total: it has a value, or
    NULL, for all rows.

    Formal guarantees that a subclass owes: `wide` holds every sum and product of two 64-bit integers exactly;
    `rank_numbers`, `by_code_points`, `normalised_id` and `is_id` mean to the bit what `row_choice` defines.
    """

    name: ClassVar[str] = ""
    """What the records of functions call it, where they spell a function for it."""

    functions: ClassVar[Templates] = {}
    """The templates of functions that rest on more than words, such as functions that its engine registers.

    They override those of the records (`plan.expressions.functions`)."""

    of_trimmed: ClassVar[Mapping[str, Template]] = {}
    """The templates of functions that read a text without the spaces at its ends, where that is faster in one step."""

    types: ClassVar[Mapping[Type, str]]
    """Its types for ours."""

    wide: ClassVar[str]
    """The type of exact sums and products of INTs."""

    narrow_repeats: ClassVar[bool] = False
    """Whether `narrow` writes its argument more than once."""

    marker: ClassVar[str] = "$"
    """The sign before the name of a parameter."""

    folds: ClassVar[Mapping[str | tuple[str, Type], str]] = {
        "count_values": "COUNT({0})",
        "count_distinct": "COUNT(DISTINCT {0})",
        "min": "MIN({0})",
        "max": "MAX({0})",
    }
    """Aggregates of a term {0} that need nothing but the values, by kind, or by kind and type, looked up first."""

    rank_numbers: ClassVar[Mapping[Type, str]]
    """Ids and keys as numbers between -P and P, equal to `row_choice.Salt.whole` modulo P."""

    id_parts: ClassVar[Mapping[Type, str]]
    """A part of an id as text, equal to that of `row_choice.put_together`."""

    normalised_id: ClassVar[str]
    """A TEXT as the id that it is."""

    is_id: ClassVar[str]
    """Whether a TEXT is an id."""

    length: ClassVar[str] = "length({0})"
    """The number of code points of a TEXT."""

    by_code_points: ClassVar[str] = "{0}"
    """A TEXT as it is sorted by its code points."""

    finite: ClassVar[str]
    """A double, NULL if it is NaN or infinite."""

    nearest: ClassVar[str]
    """The whole number nearest to a double that is in range, halves up, as an INT: exact, without adding a half."""

    nearest_to_half: ClassVar[str]
    """The whole number nearest to half of a double whose size is below 2^62, halves up: floor(x/2 + 1/2) is
    floor((floor(x) + 1) / 2), which takes fewer steps than `nearest`."""

    quotient: ClassVar[str]
    """The quotient of two wide numbers that are not negative, rounded down."""

    shifted: ClassVar[str]
    """An INT that is not negative, divided by two to the power of another and rounded down."""

    bucket_bit: ClassVar[str]
    """An INT with the one bit of a rank's bucket."""

    bits: ClassVar[str] = "bit_or({0})"
    """An aggregate: all bits that are set in one of the rows."""

    odd_bits: ClassVar[str] = "bit_xor({0})"
    """An aggregate: all bits that are set in an odd number of rows."""

    bit_count: ClassVar[str]
    """How many bits of an INT are set."""

    ordered_list: ClassVar[str]
    """An aggregate: the values {0} in the order of {1}."""

    run: ClassVar[str]
    """A row for each whole number from one to another; empty where a column cannot make rows."""

    pairwise: ClassVar[Collection[str]] = ()
    """Functions of any number of arguments whose templates take two at a time."""

    extremes: ClassVar[Extremes]
    """For each kind of extreme terms of a value {0} and what it is ordered by {1}, and the aggregate of the terms.

    Of *first* and *last* the value may be NULL; of rows that are equal in the order, one with a value comes first.
    """

    count_between: ClassVar[str] = ""
    """An aggregate: how many different INTs {0} there are from {1} to {2}; empty where none is quicker than groups."""

    strategy: Strategy = "suspects"
    """How it bounds contributions best."""

    together: ClassVar[str] = ""
    """What comes after SELECT for rows that are exchanged between machines once, so that those with equal {0} meet."""

    once: ClassVar[str] = "AS MATERIALIZED"
    """Introduces a common table expression that is computed once."""

    inline: ClassVar[str] = "AS NOT MATERIALIZED"
    """Introduces a common table expression that is read anew where it is named."""

    def __init__(self) -> None:
        recorded = {
            function.name if kind is None else (function.name, kind): template
            for function in FUNCTIONS.values()
            for kind, template in function.templates(self.name, self).items()
        }
        self._templates = {**recorded, **_for_reading(self), **self.functions}
        known = {name if isinstance(name, str) else name[0] for name in self._templates}
        missing = FUNCTIONS.keys() - known
        if missing:
            raise InternalError(f"No SQL for {sorted(missing)}.")

    def template(self, function: str, first: Type) -> Template:
        """Returns the template of a function, by its first argument's type where that matters.

        Raises:
            InvalidParameter: for a function that the dialect does not know.
        """
        found = self._templates.get((function, first)) or self._templates.get(function)
        if found is None:
            raise InvalidParameter("function", function, "to be known to this engine")
        return found

    def quote_name(self, name: str) -> str:
        """Writes a declared name as an identifier, such as "a""b".

        Raises:
            InvalidParameter: for a name with NUL.
        """
        if "\0" in name:
            raise InvalidParameter("column", name, "to have a name without NUL")
        return '"' + name.replace('"', '""') + '"'

    def text_literal(self, text: str) -> str:
        """Writes a text of the steward's, such as a path, as a literal.

        Raises:
            InvalidParameter: for a text with NUL.
        """
        if "\0" in text:
            raise InvalidParameter("text", text, "to be without NUL")
        return "'" + text.replace("'", "''") + "'"

    def literal(self, value: Any, kind: Type) -> str:
        """Writes a number, a truth value, a day or a moment; texts are passed as parameters."""
        if value is None:
            return self.cast("NULL", kind)
        if kind is Type.BOOL:
            return "TRUE" if value else "FALSE"
        if kind is Type.INT:
            return self.cast(str(int(value)), kind)
        return self.cast(f"'{_write_value(value)}'", kind)

    def parameters_of(self, sql: str) -> set[str]:
        """Returns the names of the parameters that stand in a statement; no text that it holds looks like one."""
        return set(re.findall(f"{re.escape(self.marker)}(q[0-9]+)", sql))

    def write_parameter(self, value: Any, kind: Type, parameters: dict[str, Any]) -> str:
        """Writes a place for a value that travels apart from the text, and adds it to the parameters.

        A database without parameters writes the value itself, as a literal that nothing can break out of.
        """
        return self.cast(self.parameter(value, parameters), kind)

    def parameter(self, value: Any, parameters: dict[str, Any]) -> str:
        """Adds a value to the parameters, and writes its name."""
        name = f"q{len(parameters)}"
        parameters[name] = value
        return f"{self.marker}{name}"

    def pattern(self, written: str) -> str:
        """Returns a regular expression, given in its normal form (`patterns.written`), as the database reads it."""
        return written

    def with_pattern(self, function: str, written: str) -> tuple[str, str]:
        """Returns the template's name for a pattern of LIKE or a regular expression, and the pattern as it is read."""
        return function, written if function == "like" else self.pattern(written)

    @abstractmethod
    def public_table(self, lists: Sequence[list[Any]], kinds: Sequence[Type], parameters: dict[str, Any]) -> str:
        """Writes a query for a table of public values, which travel apart from the text; its columns are p0, p1, ..."""

    def looked_up(self, table: str, keys: Sequence[str]) -> str:
        """Writes a query for a public table again, whose rows all differ in the keys: it is short to search.

        Args:
            table: the query.
            keys: the names of its keys.
        """
        del keys
        return table

    def cast(self, sql: str, kind: Type) -> str:
        """Writes a conversion that never fails."""
        return f"CAST({sql} AS {self.types[kind]})"

    def widen(self, sql: str) -> str:
        """Writes an INT as a number that can be added to others and multiplied by another exactly."""
        return f"CAST({sql} AS {self.wide})"

    @abstractmethod
    def narrow(self, sql: str) -> str:
        """Writes a wide number as an INT, NULL if 64 bits do not hold it."""

    def scale_by_power(self, exponent: int) -> Template:
        """Returns a double {0} times two to a power; beyond the range of doubles it is infinite, or zero."""
        return Template(f"{{0}} * {self.literal(2.0**exponent, Type.FLOAT)}")

    def scaled_within(self, exponent: int) -> Template:
        """Returns a double {0} times two to a power, where it is known that the result is below 2^62 in size.

        Its text is all of it: what it repeats has a name.
        """
        return self.scale_by_power(exponent)

    def key_number(self, key: str, kind: Type, null: int) -> str:
        """Writes a key as its number of `rank_numbers`, and NULL as another one below P."""
        if kind is Type.INT:  # a database may know that the column has no NULL
            return self.rank_numbers[kind].format(f"coalesce({key}, {null})")
        return f"coalesce({self.rank_numbers[kind].format(key)}, {null})"

    def fold(self, kind: str, argument: Type) -> str | None:
        """Returns the aggregate of a kind, of terms {0} of a type; None if it needs more than the values."""
        return self.folds.get((kind, argument)) or self.folds.get(kind)

    def extreme(self, kind: str, value: Type) -> tuple[tuple[str, ...], str]:
        """Returns the terms and the aggregate of a kind of extreme, of a value of a type."""
        del value
        return self.extremes[kind]

    def sort_key(self, sql: str, *, descending: bool = False, nulls_first: bool = False) -> str:
        """Writes a value as a part of ORDER BY; where NULL comes does not depend on the direction."""
        return f"{sql}{' DESC' if descending else ''} NULLS {'FIRST' if nulls_first else 'LAST'}"

    def total(self, sql: str, *, distinct: bool = False) -> str:
        """Writes an aggregate: the exact sum of INTs, or of those that differ, without overflow up to 10^19 rows."""
        return f"SUM({'DISTINCT ' if distinct else ''}{self.widen(sql)})"

    def same(self, one: str, other: str) -> str:
        """Writes that two values are equal, NULL being like NULL."""
        return f"{one} IS NOT DISTINCT FROM {other}"

    def write_subquery(self, query: str, *, once: bool = True) -> str:
        """Writes a query as it appears after FROM, where its name is never used.

        Args:
            query: the query.
            once: whether it has values that are used more than once above and cost something to compute.
        """
        del once
        return f"({query})"


def _write_value(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "microseconds")
    return value.isoformat() if isinstance(value, dt.date) else repr(float(value))


def _words(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _for_reading(dialect: Dialect) -> dict[str | tuple[str, Type], Template]:
    """Returns the templates of two of the functions for reading (`base.READS`), which are no functions of a plan."""
    return {
        "read_bool": Template(
            f"CASE WHEN {{0}} IN ({_words(TRUE)}) THEN TRUE WHEN {{0}} IN ({_words(FALSE)}) THEN FALSE END",
            repeats=(0,),
        ),
        "midnight": Template(dialect.cast("{0}", Type.TIMESTAMP)),
    }
