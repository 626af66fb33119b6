"""The counts of a profile: people by the size of a number of theirs, and rows that bounds and missing ids leave out.

Every part is a question like any other, about one row for each person, so that a person counts once in it. Sizes lie
in public buckets that end at powers of two. A bucket (w, 2w] counts its people and adds up how far each is above w, in
units of w: both meet their noise as one paired form, which costs as much as the count alone would.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from discreet.dataclass import dataclass
from discreet.measurement.probes.magnitudes import bucket_of, edge
from discreet.measurement.probes.probes import LARGEST_LIMIT, ONCE, Schemas, describe_counted_rows, read_by
from discreet.measurement.program.execution import answerable
from discreet.measurement.program.program import Program, choose
from discreet.plan.analysis.relation_schema import add_source, own_rows
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, Key, Literal, Output, Question, Relation, Value
from discreet.plan.model.nodes import columns as columns_of
from discreet.plan.model.relations import Fold, Select, UnitAggregation
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import WHITE_SPACE
from discreet.privacy import events

ROWS = "rows"
"""The part that tells how many rows people have; of a table whose rows are people, how many there are."""

IDS = "ids"
"""The part that counts the rows without an id."""

MOST = 1 << LARGEST_LIMIT
"""The end of the last bucket: whoever has more counts as if they had as much."""

BUCKETS = range(1, LARGEST_LIMIT + 2)

PEOPLE, EXCESS = "#people", "#excess"
_SIZE = ColumnRef("#f0", Type.INT)
_SHARE_OF_ROWS = Fraction(1, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCount:
    """One count of a profile.

    Args:
        subject: what it is about: ROWS or IDS; "groups" or "beyond" and a set of keys; "outside" or "missing" and a
            column.
        question: what is asked.
        schema: what is public about its rows.
        keys: the numbers of its buckets; one group of all people if there are none.
    """

    subject: tuple[str, ...]
    question: Question
    schema: TableSchema
    keys: tuple[tuple[Value, ...], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ProfilePlan:
    """A profile before its charge.

    Formal guarantee: each part is a program whose event says what it costs, one person counting once; rows without an
    id belong to no unit, and each of them counts for itself. The event of the whole is their composition.

    Args:
        table: which is described.
        schemas: the declared tables by name.
        columns: those whose values outside their bounds, and whose missing ones, are counted.
        by: sets of keys for which the groups of people are counted.
        salt: of the rule by which rows are kept.
        question: whose rows are described instead of the table's: filtered, joined and grouped as it says.
        limited: how much one person counts in it; as declared unless given.
    """

    table: str
    schemas: Schemas = field(repr=False)
    columns: tuple[str, ...]
    by: tuple[tuple[str, ...], ...]
    salt: str = field(repr=False)
    question: Question | None = None
    limited: Limits | None = None

    @classmethod
    def of(cls, question: Question, limits: Limits, schemas: Schemas, salt: str) -> ProfilePlan:
        """Returns the profile of what a question counts: its own rows, its groups, the values it adds up."""
        asked = add_source(question, schemas)
        stored = describe_counted_rows(asked, schemas).columns
        arguments = {a.argument.name for a in asked.aggregates if isinstance(a.argument, ColumnRef)}
        used = [name for name in sorted(arguments) if stored[name].type.is_number and stored[name].bounds is not None]
        by = (tuple(key.name for key in asked.keys),) if asked.keys else ()
        columns = tuple(used)
        return cls(
            table=question.table, schemas=schemas, columns=columns, by=by, salt=salt, question=asked, limited=limits
        )

    @cached_property
    def schema(self) -> TableSchema:
        """Returns the declared table, or what is public about the rows of the question."""
        return self.schemas[self.table] if self.question is None else describe_counted_rows(self.question, self.schemas)

    @property
    def keys(self) -> tuple[str, ...]:
        """Returns the keys of the question."""
        return next(iter(self.by), ())

    def key_column(self, name: str) -> ColumnSchema | None:
        """Returns the column that a key is; None if it is computed."""
        keys = () if self.question is None else self.question.keys
        expression = next((key.expression for key in keys if key.name == name), None)
        if expression is None:
            return self.schema.columns[name]
        return self.schema.columns[expression.name] if isinstance(expression, ColumnRef) else None

    @property
    def limits(self) -> Limits:
        """Returns how much one person counts."""
        return self.limited or self.schema.limits

    @property
    def most_rows(self) -> int | None:
        """Returns how many rows one person has at most, by a declared fact; joins can make more of them."""
        joined = self.question is not None and self.question.source is not None
        return None if joined else self.schema.most_rows

    @property
    def most_counted(self) -> int:
        """Returns how many rows of one person count, in all groups of a question together."""
        return self.limits.most_rows if self.question is not None and self.question.keys else self.limits.rows

    @property
    def _where(self) -> Expression | None:
        return None if self.question is None else self.question.where

    @cached_property
    def _rows(self) -> Relation:
        source = None if self.question is None else self.question.source
        rows = own_rows(self.table, self.schemas) if source is None else source
        return rows if self._where is None else Select(rows, self._read, self._where)

    @property
    def _read(self) -> tuple[Output, ...]:
        """Returns the columns that are looked at in filtered rows."""
        keys = () if self.question is None else self.question.keys
        named = {column.name for key in keys for column in columns_of(key.expression)} | set(self.columns)
        return tuple(Output(name, ColumnRef(name, self.schema.columns[name].type)) for name in sorted(named))

    def _build_count_query(self, condition: Expression | None = None) -> Question:
        """Counts the rows for which a condition holds, where each row is a person."""
        parts = [part for part in (self._where, condition) if part is not None]
        where = call("and", *parts) if len(parts) > 1 else next(iter(parts), None)
        source = None if self.question is None else self.question.source
        return Question(
            table=self.table, source=source, where=where, aggregates=(_people(),), outputs=(_output(PEOPLE),)
        )

    @cached_property
    def parts(self) -> tuple[ProfileCount, ...]:
        """Returns everything that is counted, the rows of people first."""
        schema = self.schema
        if schema.unit is None:
            first, others = ProfileCount(subject=(ROWS,), question=self._build_count_query(), schema=schema), []
        else:
            first = self._sizes((ROWS,), _fold_per_unit(self._rows, _count()))
            others = [part for keys in self.by for part in self._groups(keys)]
            others += self._count_rows_without_id()
        values = [part for column in self.columns for part in self._values(column)]
        return (first, *others, *values)

    def program(self, epsilon: Fraction) -> Program:
        """Returns all parts as one program: a third of epsilon for the rows of people, the rest in equal shares."""
        first, *others = self.parts
        share = _SHARE_OF_ROWS if others else Fraction(1)
        made = self._build_program(first, epsilon * share)
        beside = tuple(self._build_program(part, epsilon * (1 - share) / len(others)) for part in others)
        event = events.Composed([made.event, *(one.event for one in beside)])
        return replace(made, beside=beside, event=event)

    @property
    def tables(self) -> list[TableSchema]:
        """Returns the tables that are read."""
        return read_by(self.parts[0].question, self.schemas)

    def _build_program(self, part: ProfileCount, epsilon: Fraction) -> Program:
        made = choose(part.question, part.schema, epsilon=epsilon, limits=ONCE, salt=self.salt, keys=part.keys)
        return answerable(made, self.schemas)

    def _groups(self, keys: tuple[str, ...]) -> tuple[ProfileCount, ProfileCount]:
        """Returns how many groups people have, and how many rows their groups have beyond the limit of rows."""
        schema, limit = self.schema, self.limits.rows
        columns: list[Expression] = [
            ColumnRef(name, schema.columns[name].type) for name in keys if self.question is None
        ]
        columns += [key.expression for key in self.question.keys] if self.question is not None else []
        by_group = UnitAggregation(self._rows, tuple(Output(f"k{i}", x) for i, x in enumerate(columns)), (_count(),))
        beyond = call("greatest", call("subtract", _SIZE, Literal(limit, Type.INT)), Literal(0, Type.INT))
        summed = Fold(name="#f0", kind="sum", type=Type.INT, argument=beyond, low=0, high=MOST)
        return (
            self._sizes(("groups", *keys), _fold_per_unit(by_group, _count())),
            self._sizes(("beyond", *keys), _fold_per_unit(by_group, summed)),
        )

    def _sizes(self, subject: tuple[str, ...], source: Relation) -> ProfileCount:
        """Returns people by the bucket of their number, and how far they are above where their bucket begins."""
        size = call("least", _SIZE, Literal(MOST, Type.INT))
        question = Question(
            table=self.table,
            source=source,
            keys=(Key("bucket", bucket_of(size)),),
            aggregates=(_people(), Aggregate(name=EXCESS, kind="sum", argument=_excess(size))),
            outputs=(Output("bucket", ColumnRef("bucket", Type.INT)), _output(PEOPLE), _output(EXCESS, Type.FLOAT)),
        )
        keys: tuple[tuple[Value, ...], ...] = tuple((bucket,) for bucket in BUCKETS)
        return ProfileCount(
            subject=subject, question=question, schema=describe_counted_rows(question, self.schemas), keys=keys
        )

    def _values(self, column: str) -> list[ProfileCount]:
        schema = self.schema.columns[column]
        x, found = ColumnRef(column, schema.type), {"missing": call("is_null", ColumnRef(column, schema.type))}
        if schema.bounds is not None and schema.type.is_number:
            low, high = (Literal(end, schema.type) for end in _ends(schema.type, schema.bounds))
            found["outside"] = call("or", call("less", x, low), call("greater", x, high))
        return [self._holding((kind, column), condition) for kind, condition in found.items()]

    def _holding(self, subject: tuple[str, ...], condition: Expression) -> ProfileCount:
        """Returns the people who have such a row, and their rows of the kind, as a share of the limit of rows."""
        if self.schema.unit is None:
            return ProfileCount(subject=subject, question=self._build_count_query(condition), schema=self.schema)
        rows = Select(self._rows, (), condition)
        limit = Literal(float(self.most_counted), Type.FLOAT)
        share = _between_0_and_1(call("divide", _SIZE, limit))
        question = Question(
            table=self.table,
            source=_fold_per_unit(rows, _count()),
            aggregates=(_people(), Aggregate(name=EXCESS, kind="sum", argument=share)),
            outputs=(_output(PEOPLE), _output(EXCESS, Type.FLOAT)),
        )
        return ProfileCount(subject=subject, question=question, schema=describe_counted_rows(question, self.schemas))

    def _count_rows_without_id(self) -> list[ProfileCount]:
        """Returns the count of rows without an id: they belong to no person, so each is a unit of its own.

        A row counts only if engines find that it has no id (`is_without_id`).
        """
        schema, source = self.schemas[self.table], None if self.question is None else self.question.source
        if source is not None or schema.unit is None or schema.unit not in schema.stored_columns:
            return []  # rows that were joined or computed, an id made of parts, or found in another table
        without_id = is_without_id(ColumnRef(schema.unit, schema.columns[schema.unit].type))
        return [
            ProfileCount(
                subject=(IDS,), question=self._build_count_query(without_id), schema=replace(schema, unit=None)
            )
        ]


def is_without_id(id_: ColumnRef) -> Expression:
    """Returns the condition that an id is missing, just as engines leave its row out.

    It is NULL, or a text of nothing but white space of any kind: NFC makes no white space of another sign, nor another
    sign of white space, so that the text need not be normalised for this.
    """
    missing = call("is_null", id_)
    if id_.type is not Type.TEXT:
        return missing
    left = call("strip", id_, Literal(WHITE_SPACE, Type.TEXT))
    return call("or", missing, call("equal", left, Literal("", Type.TEXT)))


def width(bucket: int) -> int:
    """Returns where a bucket begins, which is also how wide it is; the first one begins at zero and holds ones.

    >>> [width(bucket) for bucket in (1, 2, 3, 4)]
    [0, 1, 2, 4]
    """
    return 0 if bucket == 1 else int(edge(Type.INT, bucket - 1))


def choose_columns_and_keys(
    schema: TableSchema, columns: Sequence[str] | None, by: Sequence[tuple[str, ...]] | None
) -> Chosen:
    """Returns which columns and keys a profile is about: those with declared bounds or keys, unless they are given."""
    usual = tuple(
        name for name, column in schema.stored_columns.items() if column.bounds is not None and column.type.is_number
    )
    keyed = tuple((name,) for name, column in schema.stored_columns.items() if column.keys is not None)
    return tuple(columns) if columns is not None else usual, tuple(by) if by is not None else keyed


Chosen = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


def _fold_per_unit(rows: Relation, fold: Fold) -> UnitAggregation:
    return UnitAggregation(rows, (), (fold,))


def _count() -> Fold:
    return Fold(name=_SIZE.name, kind="count", type=Type.INT)


def _people() -> Aggregate:
    return Aggregate(name=PEOPLE, kind="count")


def _output(name: str, kind: Type = Type.INT) -> Output:
    return Output(name, ColumnRef(name, kind))


@lru_cache(maxsize=4)  # the same in every part
def _excess(size: Expression) -> Expression:
    """Returns the excess of a number over its bucket's start, in units of that start; 1 in the first two buckets."""
    found: Expression = Literal(1.0, Type.FLOAT)
    for bucket in BUCKETS[2:]:
        start = Literal(float(width(bucket)), Type.FLOAT)
        above = call("divide", call("subtract", size, start), start)
        found = call("if", call("greater", size, Literal(width(bucket), Type.INT)), above, found)
    return _between_0_and_1(found)


def _between_0_and_1(x: Expression) -> Expression:
    return call("least", call("greatest", x, Literal(0.0, Type.FLOAT)), Literal(1.0, Type.FLOAT))


def _ends(kind: Type, bounds: ColumnBounds) -> tuple[Value, Value]:
    """Returns bounds as literals; for whole columns the first and the last whole number inside."""
    low, high = bounds.low, bounds.high
    return (float(low), float(high)) if kind is Type.FLOAT else (math.ceil(low), math.floor(high))
