"""Audits of the tables that a discreet.toml declares, on throw-away curators: the real ledger is never opened.

Without questions of the user's, a standard set is made of what is declared about a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from discreet import check
from discreet.audit.queries.query_audit import NEIGHBOURS, ROWS, Progress, query
from discreet.audit.queries.query_verdict import QueryAudit
from discreet.audit.queries.units import ids_of
from discreet.curator import Curator
from discreet.curator.config.enrolment import check_sources, register
from discreet.curator.config.toml_file import FILE, Config, Place, ProtectedTable, as_given, load
from discreet.curator.measurement_plan import QueryBudget
from discreet.curator.observation import schemas_of
from discreet.engines.duckdb.copies import copy_of
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import DiscreetError, InvalidParameter, UnknownTable
from discreet.noise import SeededBits
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import ZCDP, AnyBudget, ApproxDP, Budget, Loss
from discreet.privacy.budget import split
from discreet.progress import stage
from discreet.server_address import COPY

MOST = 2
"""Columns of a kind that are asked about, so that a wide table is not asked for ever."""


def standard(curator: Curator, schema: TableSchema, asked: QueryBudget) -> list[str]:
    """Counts, sums, means, quantiles, groups by public and by private keys: those of them that are answered at all.

    Whether a question is answered is found out by `explain`, which reads nothing.
    """
    found = []
    for sql in dict.fromkeys(_questions(schema)):
        with suppress(DiscreetError):
            curator.explain(sql, epsilon=asked.epsilon, delta=asked.delta)
            found.append(sql)
    return found


def _questions(schema: TableSchema) -> Iterator[str]:
    """Yields every kind of question, whether it is answered or not."""
    table, others = (
        quote_name(schema.name),
        [c for name, c in schema.stored_columns.items() if name not in ids_of(schema)],
    )
    numbers = [column for column in others if column.type.is_number and column.bounds is not None][:MOST]
    keys = [column for column in others if column.keys is not None][:MOST]
    yield f"SELECT COUNT(*) AS n FROM {table}"
    if len(ids_of(schema)) == 1:
        yield f"SELECT COUNT(DISTINCT {quote_name(ids_of(schema)[0])}) AS units FROM {table}"
    for column in numbers:
        yield from _about(quote_name(column.name), table)
    for key in keys:
        yield from _grouped_queries(quote_name(key.name), numbers, table)
    if len(keys) > 1:
        both = ", ".join(quote_name(key.name) for key in keys[:2])
        yield f"SELECT {both}, COUNT(*) AS n FROM {table} GROUP BY {both}"
    yield from _undeclared_queries(others, table)


def _about(x: str, table: str) -> Iterator[str]:
    yield f"SELECT SUM({x}) AS total FROM {table}"
    yield f"SELECT AVG({x}) AS mean, COUNT({x}) AS n FROM {table}"
    yield f"SELECT VARIANCE({x}) AS v FROM {table}"
    yield f"SELECT MEDIAN({x}) AS middle FROM {table}"
    yield f"SELECT QUANTILE({x}, 0.25) AS low, MEDIAN({x}) AS middle, QUANTILE({x}, 0.75) AS high FROM {table}"
    yield f"SELECT MIN({x}) AS low, MAX({x}) AS high FROM {table} WHERE {x} IS NOT NULL"


def _grouped_queries(key: str, numbers: Sequence[ColumnSchema], table: str) -> Iterator[str]:
    yield f"SELECT {key}, COUNT(*) AS n FROM {table} GROUP BY {key}"
    yield f"SELECT MODE({key}) AS most FROM {table}"
    for column in numbers[:1]:
        x = quote_name(column.name)
        yield f"SELECT {key}, AVG({x}) AS mean, SUM({x}) AS total FROM {table} GROUP BY {key}"
        yield f"SELECT {key}, MEDIAN({x}) AS middle FROM {table} GROUP BY {key}"


def _undeclared_queries(others: Sequence[ColumnSchema], table: str) -> Iterator[str]:
    """Yields private groups, which need a delta; and numbers whose bounds are chosen privately."""
    private = [c for c in others if c.keys is None and c.type in (Type.TEXT, Type.INT, Type.BOOL, Type.DATE)]
    for column in private[:MOST]:
        x = quote_name(column.name)
        yield f"SELECT {x}, COUNT(*) AS n FROM {table} GROUP BY {x}"
        yield f"SELECT COUNT(DISTINCT {x}) AS different FROM {table}"
    for column in [c for c in others if c.type.is_number and c.bounds is None][:MOST]:
        yield f"SELECT AVG({quote_name(column.name)}) AS mean FROM {table}"


def quote_name(name: str) -> str:
    """Returns a name as it is written in a question.

    >>> quote_name("ward"), quote_name("ward no")
    ('ward', '"ward no"')
    """
    return name if name.isidentifier() and name.islower() else '"' + name.replace('"', '""') + '"'


_AMPLE = 10**9
_SEED = 1


def audit_table(
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
    r"""Audits the answers of a declared table, as `query` does: a steward's act, which reads the data and shows none.

    The declarations of all tables of its account are copied to curators with ledgers in memory, ample budgets and
    seeded noise; neighbours differ in one person's rows in all of them. The ledger of the file is neither opened nor
    charged.

    Args:
        config: a discreet.toml.
        table: which; may be left out where there is only one, or, with questions, only one account.
        sql: one question or several about tables of its account; a standard set about this table, made of its
            declarations, unless given.
        epsilon: of each question.
        delta: of each; a hundredth of the account's unless it is given.
        neighbours: how many pairs of neighbouring tables are tried.
        rows: of larger tables so many rows, of whole units, are taken at random.
        progress: called after every pair.

    Raises:
        UnknownTable: if no such table is declared.
        InvalidParameter: if a declaration does not fit.
        UnsupportedQuery: if a question is refused.

    >>> import tempfile
    >>> from pathlib import Path
    >>> table = 'tables.visits = { source = "visits.csv", unit = "", account = "all", types = { age = "int" } }'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "visits.csv").write_text("age\n40\n50\n60\n", encoding="utf-8")
    ...     config = Path(folder, "discreet.toml")
    ...     _ = config.write_text(table + "\nbudgets.all.epsilon = 1", encoding="utf-8")
    ...     found = audit_table(config, sql="SELECT COUNT(*) AS n FROM visits", neighbours=2)
    >>> found.headline
    'Passed: 1 question on 2 pairs of neighbouring tables, with no difference beyond the noise'
    """
    declared = load(config)
    check_sources(declared)
    questions = [sql] if isinstance(sql, str) else list(sql)
    chosen = _select_table(declared, table, asked=bool(questions))
    tables = [each for each in declared.tables if each.account == chosen.account]
    for name, source in [(each.name, each.source) for each in tables] + [(p.name, p.source) for p in declared.public]:
        _check_is_file(name, source)
    factory = _factory(declared, tables)
    stage("Copying tables")
    whole = {each.name: copy_of(as_given(each.source), each.declared.get("types")).with_changes() for each in tables}
    if not questions:
        stage("Choosing questions")
        with factory(whole) as curator:
            asked = QueryBudget.of(epsilon, delta, curator.budget(chosen.name).total)
            questions = standard(curator, schemas_of(curator)[chosen.name], asked)
    found = query(
        factory, questions, whole, epsilon=epsilon, delta=delta, neighbours=neighbours, rows=rows, progress=progress
    )
    return replace(found, table=chosen.name)


def _select_table(config: Config, name: str | None, *, asked: bool) -> ProtectedTable:
    known = {table.name: table for table in config.tables}
    accounts = {table.account for table in config.tables}
    if name is None and len(accounts if asked else known) > 1:
        raise InvalidParameter("table", None, "to be named", f"Name one of: {', '.join(known)}.")
    found = known.get(next(iter(known)) if name is None else name)
    if found is None:
        raise UnknownTable(str(name), known)
    return found


def _check_is_file(name: str, source: Place) -> None:
    """Checks that rows are in a file: an audit makes many tables that differ in a person's rows, never on a server."""
    if isinstance(source, str):
        hint = (
            "Copy the rows to a file, from which the same questions get the same numbers. Declare the file by the same "
            f"name, with types, in another discreet.toml, and pass that with --config. From PostgreSQL: {COPY}"
        )
        raise InvalidParameter("table", name, "to be read from a file, to be audited", hint)


def _factory(config: Config, tables: Sequence[ProtectedTable]) -> Callable[[Mapping[str, Any]], Curator]:
    """Makes curators of these tables and the public ones, with a budget that no audit uses up."""

    def make(rows: Mapping[str, Any]) -> Curator:
        curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(_SEED))
        for public in config.public:
            register(curator, public)
        for table in tables:
            curator.protect(
                rows[table.name],
                name=table.name,
                unit=table.unit,
                account=table.account,
                budget=ample(config.budgets[table.account]),
                **table.declared,
            )
        return curator

    return make


def ample(budget: AnyBudget) -> Loss:
    """Returns a budget of the same kind and delta with room for everything.

    >>> print(ample(Budget(epsilon=1, delta="1e-6")))
    epsilon=1000000000, delta=1e-06
    """
    amount, _ = split(budget)
    delta = amount.delta if isinstance(amount, ApproxDP | ZCDP) else 0
    if isinstance(amount, ZCDP):
        return Budget(rho=_AMPLE, delta=delta) if delta else Budget(rho=_AMPLE)
    return Budget(epsilon=_AMPLE, delta=delta) if delta else Budget(epsilon=_AMPLE)
