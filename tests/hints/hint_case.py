"""A refused question, and how its hint is applied word for word."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from discreet.curator import Answer, Curator
from discreet.errors import UnknownTable, UnsupportedQuery
from tests.corpus.truth import Truth, check, truth
from tests.corpus.world import World

EPSILON, DELTA = 10**6, "1e-4"
PROPOSED = re.compile(r"`([^`]*)`( \(a different question\))?")
"""What a hint proposes, and whether it says that this is a different question."""
_WITHOUT_COUNTERPART = re.compile(r"\bHISTOGRAM\(", re.IGNORECASE)
"""Functions that plain DuckDB has in another meaning: what uses them is asked, and not compared."""


@dataclass(frozen=True, slots=True)
class Case:
    """One refusal.

    Args:
        sql: the question that is refused.
        applied: the question as the words of the hint change it, where they name SQL to write.
        changed: why the words of the hint change what is asked, where they do and say so.
        options: further arguments of the question that is refused.
    """

    sql: str
    applied: str | None = None
    changed: str = ""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks what hints propose, and compares the answers with plain DuckDB.

    Args:
        world: the tables.
        curator: which is asked.
        planner: which only plans: what it refuses does not depend on releases that other tests paid for.
        plain: DuckDB.
    """

    world: World
    curator: Curator
    planner: Curator
    plain: duckdb.DuckDBPyConnection
    known: dict[str, Answer] = field(default_factory=dict)
    refusals: dict[str, UnsupportedQuery | None] = field(default_factory=dict)

    def refusal(self, case: Case) -> UnsupportedQuery | None:
        """The refusal of a question; None if it is accepted, or is about a table that is not declared."""
        if case.sql not in self.refusals:
            self.refusals[case.sql] = None
            try:
                options: dict[str, Any] = {"epsilon": 1, "delta": DELTA} | case.options
                self.planner.explain(case.sql, **options)
            except UnsupportedQuery as refused:
                self.refusals[case.sql] = refused
            except UnknownTable:
                pass
        return self.refusals[case.sql]

    def check(self, case: Case, refused: UnsupportedQuery) -> None:
        """Everything that the hint proposes is accepted, and asks what was asked unless the hint says otherwise."""
        for proposal, differs in PROPOSED.findall(refused.hint):
            self.compare(proposal, proposal if differs else self.original(case.sql, proposal))
        if case.applied is not None:
            self.compare(case.applied, case.applied if case.changed else self.original(case.sql, case.applied))

    def original(self, sql: str, proposal: str) -> str:
        """The refused question; the proposed one, if plain DuckDB does not run the former: nothing else is known."""
        try:
            self.plain.execute(sql).fetchall()
        except duckdb.Error:
            return proposal
        return sql

    def truth(self, sql: str) -> Truth:
        """The rows of plain DuckDB; of one SELECT without its LIMIT, under which ties could be cut in another way."""
        if isinstance(sqlglot.parse_one(sql, dialect="duckdb"), exp.Select):
            return truth(sql, self.world, self.plain)
        return Truth(self.plain.execute(sql).fetchall(), {})

    def compare(self, asked: str, original: str) -> None:
        """An answer has the values of plain DuckDB."""
        answer = self.known.get(asked)
        if answer is None:
            answer = self.known[asked] = self.curator.ask(asked, epsilon=EPSILON, delta=DELTA)
        if _WITHOUT_COUNTERPART.search(original):
            return
        known = self.truth(original)
        try:
            check(answer, known, _limit(original))
        except AssertionError as error:
            if _is_within(answer, known):
                return
            raise AssertionError(f"{asked}\ndiffers from {original}\n{answer}\n{error}") from None


def _is_within(answer: Answer, known: Truth) -> bool:
    """Whether one row of numbers is in its intervals, which wide bounds make wider than the usual difference."""
    names = [name for name in answer.columns if not name.endswith(("_low", "_high"))]
    if known.ranks or len(known.rows) != 1 or len(answer) != 1:
        return False
    ends = [(answer[0].get(f"{name}_low"), answer[0].get(f"{name}_high")) for name in names]
    pairs = zip(ends, known.rows[0], strict=True)
    return all(low is not None and high is not None and low <= value <= high for (low, high), value in pairs)


def _limit(sql: str) -> int | None:
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    limit = tree.args.get("limit")
    return int(limit.expression.name) if isinstance(limit, exp.Limit) else None
