"""The printed parts of a reading: keys k0, k1, ..., terms t0, t1, ..., and the aggregates a0, a1, ... made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.printer import Printer, Term
from discreet.plan.model.nodes import Value
from discreet.plan.model.types import Type

TermKind = Choice["values", "sum", "distinct"]


@dataclass(frozen=True)
class Parts:
    """What the statements of a reading have in common.

    The aggregates a0 and a1 are the numbers of rows and of units; a2, a3, ... belong to the terms, which are counted
    where they are not NULL (*values*), summed, or counted without repetition (*distinct*). Rows are *made* if they are
    not simply those of a table: then they are worth keeping between one look and the next. If `heavy` is given, it is a
    query for units u without which nobody exceeds the limits.
    """

    printer: Printer
    keys: tuple[tuple[Term, Type], ...]
    where: Term | None
    terms: tuple[tuple[TermKind, Term], ...]
    public_keys: tuple[tuple[Value, ...], ...] | None
    counts_units: bool
    made: bool = False
    heavy: str | None = None

    @property
    def dialect(self) -> Dialect:
        """The dialect of the printer."""
        return self.printer.dialect

    @property
    def k(self) -> list[str]:
        """The names of the keys."""
        return [f"k{i}" for i in range(len(self.keys))]

    @property
    def t(self) -> list[str]:
        """The names of the terms."""
        return [f"t{i}" for i in range(len(self.terms))]

    @property
    def a(self) -> list[str]:
        """The names of the terms' aggregates."""
        return [f"a{i + 2}" for i in range(len(self.terms))]

    @property
    def keyed(self) -> list[str]:
        """The keys under their names."""
        return [f"{key.sql} AS k{i}" for i, (key, _) in enumerate(self.keys)]

    @property
    def termed(self) -> list[str]:
        """The terms under their names."""
        return [f"{term.sql} AS t{i}" for i, (_, term) in enumerate(self.terms)]

    @property
    def distinct(self) -> list[int]:
        """The places of terms whose different values are counted, which no sum over pairs can tell."""
        return [i for i, (kind, _) in enumerate(self.terms) if kind == "distinct"]

    def aggregates(self, terms: list[str]) -> list[str]:
        """Prints the aggregates of the terms, which the caller knows under these names."""
        made = [_aggregate(self.dialect, kind, t) for (kind, _), t in zip(self.terms, terms, strict=True)]
        return [f"{total} AS {a}" for total, a in zip(made, self.a, strict=True)]

    def same_keys(self, one: str, other: str) -> list[str]:
        """Prints conditions that rows of two tables are of the same group, NULL being like NULL."""
        return [self.dialect.same(f"{one}.{k}", f"{other}.{k}") for k in self.k]

    def public(self, table: str) -> str:
        """Prints the condition to be among the public keys, "" if there are none; to be used once."""
        if self.public_keys is None:
            return ""
        if not self.keys:
            return "TRUE" if self.public_keys else "FALSE"
        kinds = [kind for _, kind in self.keys]
        lists = [[values[i] for values in self.public_keys] for i in range(len(kinds))]
        public = self.dialect.public_table(lists, kinds, self.printer.parameters)
        same = " AND ".join(
            self.dialect.same(f"q.p{i}", f"{table}.k{i}") if None in values else f"q.p{i} = {table}.k{i}"
            for i, values in enumerate(lists)
        )
        return f"EXISTS (SELECT 1 FROM ({public}) AS q WHERE {same})"


def _aggregate(dialect: Dialect, kind: TermKind, term: str) -> str:
    if kind == "sum":
        return dialect.total(term)
    return f"COUNT({term})" if kind == "values" else f"COUNT(DISTINCT {term})"


def select(*columns: str, source: str, where: str = "", group: list[str] | None = None, having: str = "") -> str:
    """Prints a query; what is empty is left out."""
    text = f"SELECT {', '.join(columns)} FROM {source}"
    for word, part in (("WHERE", where), ("GROUP BY", ", ".join(group or ())), ("HAVING", having)):
        text += f" {word} {part}" if part else ""
    return text


def nested(text: str, name: str = "x") -> str:
    """Prints a query as a named table."""
    return f"({text}) AS {name}"
