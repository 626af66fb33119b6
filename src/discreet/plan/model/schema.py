"""What is publicly declared about tables: columns, bounds, keys, whose rows they are, and how much one unit counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.plan.model.nodes import UNIT, Value
from discreet.plan.model.row_period import RowPeriod
from discreet.plan.model.sample import Sample
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours

Thing = TypeVar("Thing")

MANY = 10_000
"""Of a list: a longer one is looked up by its identity, because comparing it takes as long as the work it saves."""


class IdentityKey(Generic[Thing]):
    """Holds something that never changes, equal to itself alone: what was worked out for it once holds for ever.

    A cache whose keys hold it keeps it alive, so no other thing can get its identity meanwhile.

    Args:
        value: what it holds.

    >>> keys = (1, 2)
    >>> IdentityKey(keys) == IdentityKey(keys), IdentityKey(keys) == IdentityKey((1, *keys[1:]))
    (True, False)
    """

    __slots__ = ("value",)

    def __init__(self, value: Thing) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.value is other.value


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Public limits to which the values of a column are clipped."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not self.low < self.high:
            shown = f"({float(self.low):g}, {float(self.high):g})"
            raise InvalidParameter("bounds", shown, "to have low < high", "Declare public limits, e.g. (0, 100).")

    @property
    def width(self) -> Fraction:
        """Returns the distance between the limits."""
        return self.high - self.low

    @property
    def middle(self) -> Fraction:
        """Returns the number half way between the limits."""
        return (self.low + self.high) / 2

    @property
    def largest(self) -> Fraction:
        """Returns the largest absolute value."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True)
class FileSchema:
    """What the files hold that the texts of a column name: numbers of one public shape, within public limits.

    Args:
        table: the table in whose folder they lie.
        shape: of the numbers of each file.
        low: their lower limit.
        high: their upper limit.
        kind: how they are read.
    """

    table: str
    shape: tuple[int, ...]
    low: float
    high: float
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} {'x'.join(map(str, self.shape))}, {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSchema:
    """A declared column.

    Args:
        name: its name.
        type: its type.
        bounds: public limits of numbers, or of dates as numbers of days.
        keys: public group keys. They are compared, and left out of the hash: there may be a million of them.
        decimals: how many decimals are enough to write every value, if it is known that so many are.
        domain: a public fact, where one was declared: all values lie in it. It labels answers, and bounds nothing.
        limited: whether the bounds are a limit of ours, beyond which values are to be expected.
        link: what it has in common with columns of other tables: the part of the unit's id that it is, or the key of
            another table on the way to the unit.
        files: what the files hold that its texts name, if they name files.
        present: whether no row that counts has NULL in it, as far as public facts tell. Lists of groups go without it.
    """

    name: str
    type: Type
    bounds: ColumnBounds | None = None
    keys: tuple[Value, ...] | None = field(default=None, hash=False)
    decimals: int | None = None
    limited: bool = False
    link: str = ""
    domain: ColumnBounds | None = None
    files: FileSchema | None = None
    present: bool = False

    @property
    def has_values(self) -> bool:
        """Returns whether it has a value in every row that counts: NULL is none of its keys, or is in no row."""
        return self.present or (self.keys is not None and None not in self.keys)


@dataclass(frozen=True)
class Limits:
    """How many groups one unit may enter, and with how many rows each: constants, shown with every answer.

    Or how many rows of one unit count in all groups together, `total`: no number of groups needs to be chosen then.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    >>> visits = [{"patient": place % 50, "day": place % 7} for place in range(350)]  # 7 rows each
    >>> types = {"patient": "int", "day": "int"}
    >>> curator.protect(visits, name="visits", unit="patient", max_rows=1, types=types, budget=Budget(epsilon=2))
    >>> sql = "SELECT COUNT(*) AS n FROM visits"
    >>> curator.ask(sql, epsilon=1)[0], curator.ask(sql, epsilon=1, limits=Limits(rows=7))[0]
    ({'n': 48, 'n_low': 45, 'n_high': 51}, {'n': 358, 'n_low': 337, 'n_high': 379})
    """

    groups: int = 1
    rows: int = 1
    total: int | None = None

    def __post_init__(self) -> None:
        check.integer(groups=self.groups, at_least=1, at_most=10**9)
        check.integer(rows=self.rows, at_least=1, at_most=10**9)
        if self.total is None:
            return
        total = check.integer(total=self.total, at_least=1, at_most=10**9)
        if (self.groups, self.rows) not in ((1, 1), (total, total)):
            raise InvalidParameter("total", total, "without groups and rows", "Give a total, or groups and rows.")
        assign(self, groups=total, rows=total)

    @property
    def most_rows(self) -> int:
        """Returns how many rows of one unit count in all groups together."""
        return self.groups * self.rows if self.total is None else self.total

    def with_numbers(self, groups: int | None, rows: int | None) -> Limits:
        """Returns limits of which some are given, and the others are these; nothing of a total stays with them.

        >>> Limits(3, 2).with_numbers(None, 5), Limits(total=54).with_numbers(None, 5)
        (Limits(groups=3, rows=5, total=None), Limits(groups=1, rows=5, total=None))
        """
        usual = self if self.total is None else Limits()
        return Limits(groups or usual.groups, rows or usual.rows)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Returns the limits one after the other: groups and rows, and the total if there is one."""
        return (self.groups, self.rows, *(() if self.total is None else (self.total,)))


@dataclass(frozen=True, slots=True)
class PrivateLimits:
    """Limits that one paid release of the table finds, before its first question.

    Args:
        epsilon: what the release costs; None for a fixed share of the account's budget.
        found: whether they are known. Until then a table has supposed ones, and nothing is asked of it.
    """

    epsilon: Fraction | None = None
    found: bool = False


Lookup = Callable[[tuple[str, ...], str], Sequence[tuple[tuple[Value, ...], Value]] | None]
"""Columns of a public table and one more: all combinations of their values that its rows have; None if too many."""


@dataclass(frozen=True, slots=True)
class UnitLink:
    """The owners of a table's rows, by another protected table: those who have a row there with the same key."""

    column: str
    table: str
    key: str

    @property
    def link(self) -> str:
        """Returns the name of what the two columns have in common."""
        return f"{self.table}.{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSchema:
    """A declared table: protected if it has an account, else public.

    A table is equal to itself alone: it may hold a million keys, and much is worked out once for it and looked up.

    Args:
        name: how questions call it.
        columns: by name.
        unit: the column that says who is protected; None if each row is one unit; `UNIT` if it is none of its own.
        limits: default contribution limits; meaningless, and 1, without a unit column.
        neighbours: the relation of its account.
        version: what the steward says about the data's state; never computed from the data.
        public: whether it is public.
        owners: columns that repeat the unit's id.
        account: whose people they are; tables of one account may be joined.
        people: what the units are called, where no column is theirs any more.
        parts: the columns that make the unit's id together, if they are several.
        reach: the way to the unit, if another table has the id of its rows.
        lookup: of a public table, what its rows hold.
        repeated: of a public table, how many of its rows agree at most: in columns, and in none, which are all of them.
        most_rows: a public fact, where one was declared: no unit has more rows. It labels answers, and bounds nothing.
        unique: of a public table, columns in which no two rows agree, as was declared.
        private_limits: how its limits are found, if they are not declared.
        sample: which sample of a population its people are, if that was declared.
        person: the column of ids, where a unit is one person's rows of one period.
        period: the periods of its rows, where each has a budget of its own.
        private_groups: whether groups may be shown whose keys are not public: its account has a delta to pay with.
    """

    name: str
    columns: Mapping[str, ColumnSchema] = field(default_factory=dict)
    unit: str | None = None
    limits: Limits = Limits()
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    version: str = ""
    public: bool = False
    owners: frozenset[str] = frozenset()
    account: str = ""
    people: str = ""
    parts: tuple[str, ...] = ()
    reach: UnitLink | None = None
    private_groups: bool = True
    lookup: Lookup | None = field(default=None, repr=False, compare=False)
    repeated: Mapping[tuple[str, ...], int] = field(default_factory=dict, repr=False, compare=False)
    most_rows: int | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    private_limits: PrivateLimits | None = None
    sample: Sample | None = None
    person: str = ""
    period: RowPeriod | None = None

    def is_declared_like(self, other: TableSchema) -> bool:
        """Returns whether two tables are declared alike, down to their keys."""
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(self) if one.compare)

    @property
    def stored_columns(self) -> dict[str, ColumnSchema]:
        """Returns the columns that its source has."""
        return {name: column for name, column in self.columns.items() if name != UNIT}

    @property
    def ids(self) -> frozenset[str]:
        """Returns the columns that say whose row it is."""
        return self.owners if self.unit is None else self.owners | {self.unit}

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in self.columns:
            raise InvalidParameter("unit", self.unit, f"to be a column of {self.name!r}", "Name the column of ids.")
        if self.unit is not None and self.columns[self.unit].type is Type.FLOAT:
            raise InvalidParameter("unit", self.unit, "not to be of type float", "Use whole numbers or texts as ids.")
