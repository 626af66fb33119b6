"""Questions that a declared table accepts, made from its schema alone: what a refusal proposes instead."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from discreet.dataclass import dataclass
from discreet.plan.analysis.group_keys import values
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import ColumnRef, Expression, Literal
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import RenewalSchedule

DIALECT = Dialect.get_or_raise("duckdb")
"""The dialect that questions are read in."""


_SOME_DAY = dt.date(2026, 1, 1)
_SIMPLE = re.compile(r"[a-z_][a-z0-9_]*")


def quote_name(name: str) -> str:
    """Writes a name as a question does: in quotes unless it is a plain word.

    >>> quote_name("ward"), quote_name("Heart rate"), quote_name("order"), quote_name("group by")
    ('ward', '"Heart rate"', '"order"', '"group by"')
    """
    if _SIMPLE.fullmatch(name) and name not in _WORDS:
        kinds = [token.token_type for token in DIALECT.tokenize(name)]
        if kinds == [TokenType.VAR]:
            return name
    return '"' + name.replace('"', '""') + '"'


def clip_expression(text: str, low: str = "0", high: str = "100") -> str:
    """Writes an expression between two limits; NULL stays NULL, which GREATEST and LEAST alone turn into a limit.

    >>> clip_expression("weight")
    'CASE WHEN weight IS NOT NULL THEN GREATEST(LEAST(weight, 100), 0) END'
    """
    return f"CASE WHEN {text} IS NOT NULL THEN GREATEST(LEAST({text}, {high}), {low}) END"


def different(question: str) -> str:
    """Writes a proposed question that does not ask what was asked: the text says so.

    >>> different("SELECT COUNT(*) AS n FROM visits")
    '`SELECT COUNT(*) AS n FROM visits` (a different question)'
    """
    return f"`{question}` (a different question)"


def same_question(hint: str) -> str | None:
    """Finds the proposed question that asks what was asked, if a hint has one.

    >>> same_question("Count: `SELECT 1` (a different question). Or clip: `SELECT 2`.")
    'SELECT 2'
    """
    found = _SAME.search(hint)
    return None if found is None else found[1]


_SAME = re.compile(r"`([^`]*)`(?! \(a different question\))(?:[^`]*`[^`]*`)*[^`]*\Z")
_WORDS = {"order", "group", "by", "cast", "if", "extract", "try_cast", "nulls", "to", "at", "columns", "div"}


@dataclass(frozen=True, slots=True)
class Examples:
    """Accepted questions about one table."""

    schema: TableSchema

    @property
    def table(self) -> str:
        """Returns the table's name, as written."""
        return quote_name(self.schema.name)

    @property
    def count(self) -> str:
        """Returns a query for the number of rows."""
        return f"SELECT COUNT(*) AS n FROM {self.table}"

    def in_one_period(self, question: str) -> str:
        """Returns a query about the rows of one period, where each has a budget of its own."""
        if self.schema.period is None:
            return question
        column, schedule = quote_name(self.schema.period.column), RenewalSchedule(self.schema.period.per)
        dates = f"{column} >= DATE '{_SOME_DAY}' AND {column} < DATE '{schedule.after(schedule.period_of(_SOME_DAY))}'"
        before, told, after = question.partition(f" FROM {self.table}")
        rest = f" AND {after.removeprefix(' WHERE ')}" if after.startswith(" WHERE ") else after
        return f"{before}{told} WHERE {dates}{rest}"

    @property
    def units(self) -> str:
        """Returns a query for the number of units."""
        own = self.schema.unit if self.schema.unit in self.schema.stored_columns else None
        ids = ", ".join(quote_name(name) for name in self.schema.parts or ([] if own is None else [own]))
        return f"SELECT COUNT(DISTINCT {ids}) AS units FROM {self.table}" if ids else self.count

    @property
    def varieties(self) -> str:
        """Returns a query for the number of different values of a key."""
        column = self._key()
        return (
            self.count if column is None else f"SELECT COUNT(DISTINCT {quote_name(column.name)}) AS n FROM {self.table}"
        )

    @property
    def some_units(self) -> str:
        """Returns a query for the number of units with a row that satisfies a condition."""
        column = self._number()
        return self.units if column is None else f"{self.units} WHERE {quote_name(column.name)} >= 10"

    @property
    def mean(self) -> str:
        """Returns a mean, clipped in the question if no column is bounded."""
        column = self._number()
        return self.count if column is None else self.mean_of(column)

    def mean_of(self, column: ColumnSchema, aggregate: str = "AVG") -> str:
        """Writes the mean of a column of numbers."""
        name = quote_name(column.name)
        argument = name if column.bounds else clip_expression(name)
        return f"SELECT {aggregate}({argument}) AS answer FROM {self.table}"

    @property
    def median(self) -> str:
        """Returns a median, clipped in the question if no column is bounded."""
        column = self._number()
        return self.count if column is None else self.mean_of(column, "MEDIAN")

    @property
    def filtered(self) -> str:
        """Returns a count of rows that satisfy a condition."""
        column = self._number()
        if column is None:
            return self.count
        return f"{self.count} WHERE {quote_name(column.name)} >= 10"

    @property
    def conditional(self) -> str:
        """Returns a count of the rows that satisfy a condition, with one of all rows."""
        column = self._number()
        if column is None:
            return self.count
        some = f"COUNT(*) FILTER (WHERE {quote_name(column.name)} >= 10)"
        return f"SELECT COUNT(*) AS n, {some} AS some FROM {self.table}"

    @property
    def grouped(self) -> str:
        """Returns a count of rows by a key."""
        key = self._key_text()
        return self.count if key is None else self.grouped_by(key)

    def grouped_by(self, expression: str, alias: str = "key") -> str:
        """Writes a count of rows by an expression that may be a key."""
        return f"SELECT {expression} AS {alias}, COUNT(*) AS n FROM {self.table} GROUP BY 1"

    @property
    def top(self) -> str:
        """Returns a query for the largest groups."""
        return self.count if self._key_text() is None else f"{self.grouped} ORDER BY n DESC LIMIT 10"

    @property
    def place(self) -> str:
        """Returns a query for the places of groups by their size."""
        key = self._key_text()
        if key is None:
            return self.count
        over = "RANK() OVER (ORDER BY COUNT(*) DESC)"
        return f"SELECT {key} AS key, COUNT(*) AS n, {over} AS place FROM {self.table} GROUP BY 1"

    @property
    def ranked(self) -> str:
        """Returns a query for each person's first row, by a window over their rows."""
        own = self.schema.unit if self.schema.unit in self.schema.stored_columns else None
        order = self._of(Type.DATE, Type.TIMESTAMP, Type.INT, Type.FLOAT)
        if own is None or order is None:
            return self.count
        place = f"ROW_NUMBER() OVER (PARTITION BY {quote_name(own)} ORDER BY {order}) AS place"
        return f"SELECT COUNT(*) AS n FROM (SELECT {quote_name(own)}, {place} FROM {self.table}) AS t WHERE place = 1"

    @property
    def kept(self) -> str:
        """Returns a query for the groups of a released size."""
        return self.count if self._key_text() is None else f"{self.grouped} HAVING COUNT(*) > 10"

    @property
    def present(self) -> str:
        """Returns a count of rows that have a value."""
        column = self._key() or self._number()
        return self.count if column is None else f"{self.count} WHERE {quote_name(column.name)} IS NOT NULL"

    @property
    def pattern(self) -> str:
        """Returns a count of rows whose text is like a pattern."""
        column = self._of(Type.TEXT)
        return self.count if column is None else f"{self.count} WHERE UPPER({column}) LIKE 'A%'"

    @property
    def since(self) -> str:
        """Returns a count of rows from a day on."""
        column = self._of(Type.DATE, Type.TIMESTAMP)
        return self.count if column is None else f"{self.count} WHERE {column} >= DATE '2026-01-01'"

    @property
    def weekdays(self) -> str:
        """Returns a count of rows by day of the week."""
        column = self._of(Type.DATE, Type.TIMESTAMP)
        return self.count if column is None else self.grouped_by(f"EXTRACT(ISODOW FROM {column})")

    @property
    def months(self) -> str:
        """Returns a count of rows by month."""
        found = [c for c in self.schema.columns.values() if c.type in (Type.DATE, Type.TIMESTAMP)]
        column = next((c for c in found if c.name != self.schema.unit), None)
        if column is None:
            return self.count
        if not self.shows(call("start_of_month", ColumnRef(column.name, column.type))):
            return self.weekdays
        return self.grouped_by(f"DATE_TRUNC('month', {quote_name(column.name)})")

    def shows(self, key: Expression) -> bool:
        """Returns whether groups of a key can be shown: the account has a delta, or all its values are public."""
        return self.schema.private_groups or values(key, self.schema) is not None

    def _of(self, *kinds: Type) -> str | None:
        found = (c for c in self.schema.columns.values() if c.type in kinds and c.name != self.schema.unit)
        return next((quote_name(column.name) for column in found), None)

    @property
    def bands(self) -> str:
        """Returns a count of rows by bands of a number."""
        column = self._number()
        if column is None:
            return self.count
        if not self.shows(band(ColumnRef(column.name, column.type))):
            return self.buckets
        return self.grouped_by(f"CAST(FLOOR({quote_name(column.name)} / 10) AS INT)", "band")

    @property
    def buckets(self) -> str:
        """Returns a count of rows by ten equal bands of a number."""
        column = self._number()
        if column is None:
            return self.count
        return self.grouped_by(f"WIDTH_BUCKET({quote_name(column.name)}, 0, 100, 10)", "band")

    def _number(self) -> ColumnSchema | None:
        numbers = [c for c in self.schema.columns.values() if c.type.is_number and c.name != self.schema.unit]
        return next((c for c in numbers if c.bounds), numbers[0] if numbers else None)

    def _key_text(self) -> str | None:
        """Returns something to group by: a column, or if none has public values, days of the week or bands."""
        column, day, number = self._key(), self._of(Type.DATE, Type.TIMESTAMP), self._number()
        if column is not None and self.shows(ColumnRef(column.name, column.type)):
            return quote_name(column.name)
        if day is not None:
            return f"EXTRACT(ISODOW FROM {day})"
        return None if number is None else f"WIDTH_BUCKET({quote_name(number.name)}, 0, 100, 10)"

    def _key(self) -> ColumnSchema | None:
        columns = [c for c in self.schema.columns.values() if c.type is not Type.FLOAT and c.name != self.schema.unit]
        shown = {c.name: self.shows(ColumnRef(c.name, c.type)) for c in columns}
        ranked = sorted(columns, key=lambda c: (not shown[c.name], c.keys is None, c.type is not Type.TEXT))
        return ranked[0] if ranked else None


def band(value: Expression) -> Expression:
    """Writes the tens of a number: CAST(FLOOR(x / 10) AS INT)."""
    return call("to_int", call("floor", call("divide", value, Literal(10.0, Type.FLOAT))))


def fill_examples(template: str, examples: Examples | None) -> str:
    """Fills the examples into a hint, where they stand as {name}; without a declared table there are none.

    An example is about the same table and not about what was asked, so that it is marked as a different question.

    >>> schema = TableSchema(name="visits", columns={"ward": ColumnSchema(name="ward", type=Type.TEXT)})
    >>> fill_examples("Count: {grouped}.", Examples(schema))
    'Count: `SELECT ward AS key, COUNT(*) AS n FROM visits GROUP BY 1` (a different question).'
    """
    if examples is None:
        return "Declare a table first, with protect."
    return _PLACE.sub(lambda place: different(examples.in_one_period(getattr(examples, place[1]))), template)


_NAMES = (
    "count units some_units varieties mean median filtered conditional grouped top kept present pattern since weekdays"
    " months bands buckets place ranked"
)
_PLACE = re.compile(r"\{(" + _NAMES.replace(" ", "|") + r")\}")


def find_examples(text: str, schemas: Mapping[str, TableSchema]) -> Examples | None:
    """Returns examples for the table that a text speaks of, or else for the first one."""
    folded = text.casefold()
    spoken = [schema for schema in schemas.values() if schema.name.casefold() in folded]
    schema = next(iter([*spoken, *schemas.values()]), None)
    return None if schema is None else Examples(schema)
