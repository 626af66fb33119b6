"""Audits of the tables that a discreet.toml declares, on throw-away curators: the real ledger is never opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from discreet import check
from discreet.audit.query_finding import QueryAudit
from discreet.audit.querying import NEIGHBOURS, ROWS, Progress, query
from discreet.audit.questions import standard
from discreet.curator import Curator
from discreet.curator.config import FILE, Config, Table, load
from discreet.curator.enrol import check_sources, register
from discreet.curator.terms import terms
from discreet.curator.watching import schema_of
from discreet.engines.copies import copy_of
from discreet.engines.duckdb import DuckDB
from discreet.errors import InvalidParameter, UnknownTable
from discreet.noise import SeededBits
from discreet.privacy import ZCDP, ApproxDP, Budget, Loss

_AMPLE = 10**9
_SEED = 1


def protected(
    config: str | os.PathLike[str] = FILE,
    table: str | None = None,
    *,
    sql: str | Sequence[str] = (),
    epsilon: check.Number = 1,
    delta: check.Number | None = None,
    neighbours: int = NEIGHBOURS,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> QueryAudit:
    """Audits the answers of a declared table, as `query` does: a steward's act, which reads the data and shows none.

    Its declarations are copied to curators with ledgers in memory, ample budgets and seeded noise. The ledger of the
    file is neither opened nor charged.

    Args:
        config: a discreet.toml.
        table: which; may be left out where there is only one.
        sql: one question or several about this table alone; a standard set, made of its declarations, unless given.
        epsilon: of each question.
        delta: of each; a hundredth of the account's unless it is given.
        neighbours: how many pairs of neighbouring tables are tried.
        rows: of larger tables so many rows, of whole units, are taken at random.
        progress: told after every pair.

    Raises:
        UnknownTable: if no such table is declared.
        InvalidParameter: if a declaration does not fit, or another table tells whose rows it has.
        UnsupportedQuery: if a question is refused.
    """
    declared = load(config)
    check_sources(declared)
    chosen = _chosen(declared, table)
    factory = _factory(declared, chosen)
    copy = copy_of(str(chosen.source), chosen.declared.get("types"))
    whole = copy.changed()
    questions = [sql] if isinstance(sql, str) else list(sql)
    if not questions:
        with factory(whole) as curator:
            asked = terms(epsilon, delta, curator.budget(chosen.name).total)
            questions = standard(curator, schema_of(curator, chosen.name), asked)
    return query(
        factory,
        questions,
        whole,
        epsilon=epsilon,
        delta=delta,
        name=chosen.name,
        neighbours=neighbours,
        rows=rows,
        progress=progress,
    )


def _chosen(config: Config, name: str | None) -> Table:
    known = {table.name: table for table in config.tables}
    if name is None and len(known) > 1:
        raise InvalidParameter("table", None, "to be named", f"Declared are: {', '.join(known)}.")
    found = known.get(next(iter(known)) if name is None else name)
    if found is None:
        raise UnknownTable(str(name), known)
    if isinstance(found.unit, str) and "->" in found.unit:
        hint = "Audit the table that the way leads to."
        raise InvalidParameter("table", found.name, "to tell by itself whose rows it has", hint)
    return found


def _factory(config: Config, table: Table) -> Callable[[Any], Curator]:
    """Makes curators of this table and the public ones, with a budget that no audit uses up."""

    def make(rows: Any) -> Curator:
        curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(_SEED))
        for public in config.public:
            register(curator, public)
        curator.protect(
            rows,
            name=table.name,
            unit=table.unit,
            account=table.account,
            budget=ample(config.budgets[table.account]),
            **table.declared,
        )
        return curator

    return make


def ample(budget: Loss) -> Loss:
    """A budget of the same kind and delta with room for everything.

    >>> print(ample(Budget(epsilon=1, delta="1e-6")))
    epsilon=1000000000, delta=1e-06
    """
    delta = budget.delta if isinstance(budget, ApproxDP | ZCDP) else 0
    if isinstance(budget, ZCDP):
        return Budget(rho=_AMPLE, delta=delta) if delta else Budget(rho=_AMPLE)
    return Budget(epsilon=_AMPLE, delta=delta) if delta else Budget(epsilon=_AMPLE)
