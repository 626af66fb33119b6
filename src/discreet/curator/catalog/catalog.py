"""The tables of a curator: protected ones under their accounts, and public ones.

A question is bound to the catalog: parsed with what is declared about its tables, and given the account that pays.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Container, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from discreet import check
from discreet.check import Number
from discreet.curator.catalog.data_versions import FollowedVersions
from discreet.curator.catalog.declarations import End, columns_of, declaration, declare, key_block, recorded_columns
from discreet.curator.catalog.declared_limits import DeclaredLimits, known_limits, limits_of
from discreet.curator.catalog.known_data import KnownData
from discreet.curator.catalog.lazy_tables import LazyTables
from discreet.curator.catalog.public_tables import Keys, Unique, public_schema, resolve_keys
from discreet.curator.catalog.unit_of_privacy import (
    UnitLike,
    account_of,
    in_periods,
    owner,
    relation_of,
    row_schedule,
)
from discreet.dataclass import dataclass
from discreet.engines.abstract_engine import Engine
from discreet.engines.duckdb.sources import files_of, named_table
from discreet.engines.folders.folder import Folder
from discreet.engines.lakes.lake_table import lake_place, pin, pin_snapshot
from discreet.errors import DeclarationChanged, InvalidParameter, UnknownTable, UnsupportedQuery
from discreet.ledger import Ledger
from discreet.ledger.redeclaration import differences
from discreet.ledger.stewardship import DataOrigin, TableRecord
from discreet.measurement.probes.magnitudes import supposing
from discreet.plan.analysis.join_rows import cut_rows, with_cuts
from discreet.plan.analysis.relation_schema import add_source, describe, folds_in, lacks_bounds
from discreet.plan.analysis.row_periods import name_all_periods, name_row_periods
from discreet.plan.model.nodes import Question, Relation, expressions_in
from discreet.plan.model.relations import tables
from discreet.plan.model.sample import Sample
from discreet.plan.model.schema import FileSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import AnyBudget, Neighbours, Unit
from discreet.progress import stage
from discreet.requests.ledger_requests import account_of as recorded_account
from discreet.sql.clauses.select_parts import may_be_shown
from discreet.sql.parameters import Parameters, as_asked
from discreet.sql.scope import lookup, same
from discreet.sql.select import parse
from discreet.sql.training_rows import TrainingRows, training_rows

_ID = "id"

Found = TypeVar("Found")

Day = dt.date | None
"""The public day that CURRENT_DATE stands for; None if the word is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuestion:
    """A question with what is declared about its tables.

    Args:
        plan: the question.
        rows: what is public about the rows that it counts.
        schemas: all tables that there are, by name.
        account: of the people whom it is about; it pays.
        sql: its text as it was asked, for the ledger; nothing if it was asked as a plan.
        periods: whose rows it may count, where rows have budgets by period.
    """

    plan: Question
    rows: TableSchema
    schemas: Mapping[str, TableSchema]
    account: str
    sql: str = ""
    periods: tuple[str, ...] = ()


class Catalog:
    """Tables by name: declared, registered with the engine, and entered in the ledger if they are protected.

    Args:
        ledger: where accounts are.
        engine: where tables are read.
        today: the value of CURRENT_DATE.
        recorded: what another ledger says of tables, for the snapshots that it has; None for this one.
    """

    def __init__(
        self, ledger: Ledger, engine: Engine, today: Day = None, recorded: Mapping[str, TableRecord] | None = None
    ) -> None:
        self._ledger, self._engine, self._today, self._recorded = ledger, engine, today, recorded
        self._protected: dict[str, TableSchema] = {}
        self._public: dict[str, TableSchema] = {}
        self._sources: dict[str, tuple[Any, dict[str, Type]]] = {}
        self._lazy = LazyTables()
        self._kept: dict[str, Any] = {}  # what the engine reads of protected tables
        self._published: dict[str, tuple[Any, DataOrigin]] = {}
        self._accounts: dict[str, str] = {}  # of the tables; a table never changes its account
        self.versions = FollowedVersions()

    # ------------------------------------------------------------------------------------------------- declarations

    def public(
        self,
        source: Any,
        *,
        name: str,
        types: Mapping[str, str] | None = None,
        unique: Unique = (),
        table: str | None = None,
    ) -> None:
        """Registers a public table; see `Curator.public`."""
        source = self._lazy.resolve(named_table(source, table))
        self._check_name(name, others=self._protected)
        if name in self._ledger.tables():
            raise InvalidParameter("name", name, "not to be a protected table", "Give the public table another name.")
        columns = columns_of(self._engine, source, types)
        origin = self._known_data.require_public(DataOrigin.of(self._files(source), None), source)
        self._engine.register(name, source, columns, public=True)
        schema = public_schema(name, columns, self._engine, unique)
        self._public[name], self._published[name] = schema, (source, origin)

    def protect(
        self,
        source: Any,
        *,
        name: str,
        unit: UnitLike = None,
        account: str | None = None,
        budget: AnyBudget | None = None,
        types: Mapping[str, str] | None = None,
        bounds: Mapping[str, tuple[End, End]] | None = None,
        keys: Keys | None = None,
        limits: DeclaredLimits = None,
        limits_epsilon: Number | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        neighbours: Neighbours | str | None = None,
        version: str = "",
        identity: str | None = None,
        most_rows: int | None = None,
        domain: Mapping[str, tuple[End, End]] | None = None,
        sample_of: Sample | Mapping[str, Any] | None = None,
        table: str | None = None,
        replacing: str | None = None,
    ) -> None:
        """Puts a table under an account; see `Curator.protect`.

        The declaration in the ledger may be replaced if it is `replacing`, the one that the steward has seen.
        """
        source = self._lazy.resolve(named_table(source, table))
        self._check_name(name, others=self._public)
        version, known = self._version_of(name, version)
        source = self._at_snapshot(source, name, version)
        recorded = None if replacing or known is None else recorded_columns(source, types, known)
        columns = recorded or columns_of(self._engine, source, types)
        whose = owner(name, unit, columns, self._protected)
        account = account_of(name, account, whose)
        held = limits_of(limits, limits_epsilon, max_groups, max_rows)
        fixed, searched = held or known_limits(self._ledger, name, account, budget, whose.unit)
        by_rows = row_schedule(self._ledger.account(account) if account in self._ledger.accounts() else None, budget)
        if by_rows is not None:
            whose = in_periods(name, whose, by_rows, columns, searched=searched is not None, sample=sample_of)
        schema = declare(
            name,
            columns,
            owner=whose,
            bounds=bounds or {},
            keys=resolve_keys(keys or {}, columns, self._public, self._engine),
            limits=fixed,
            private_limits=searched if whose.unit is not None else None,
            neighbours=relation_of(neighbours, whose),
            version=version,
            account=account,
            domain=domain,
            most_rows=most_rows,
            sample_of=sample_of,
        )
        if isinstance(source, Folder):
            schema = self._with_files(schema, source)
        origin = DataOrigin.of({**self._files(source), **pin(source, version)}, identity)
        self._known_data.require_one_budget(origin, source, name=name, account=account)
        kept = self._engine.freeze(source, columns)
        self._engine.register(name, kept, columns)
        try:
            schema = self._attach(schema, account, budget, origin, replacing)
        except BaseException:
            if name in self._sources:  # what was declared before stays as it was
                self._engine.register(name, self._kept[name], self._sources[name][1])
            raise
        self._sources[name], self._kept[name], self._protected[name] = (source, columns), kept, schema
        self.versions.note_source(name, source)

    def _at_snapshot(self, source: Any, name: str, version: str) -> Any:
        """Returns a table of a lakehouse at the snapshot of a version; every other source as it is."""
        if lake_place(source) is None:
            return source
        recorded = self._ledger.origins() if self._recorded is None else self._recorded
        return pin_snapshot(source, version, recorded.get(name, {}).get("files", {}))

    def _version_of(self, name: str, version: str) -> tuple[str, str | None]:
        """Returns the version of a table at which this curator asks, and its declaration in the ledger."""
        check.label(version=version)
        known = self._ledger.declared_table(name)
        return (version, None) if known is None else (known.current(version), known.declaration)

    def set_limits(self, table: TableSchema, limits: Limits) -> None:
        """Fills in limits that were found privately, unless another question has moved on to a version without them."""
        schema = self._protected[table.name]
        if schema.private_limits is not None and schema.version == table.version:
            found = replace(schema.private_limits, found=True)
            self._protected[table.name] = replace(schema, limits=limits, private_limits=found)

    def _with_files(self, schema: TableSchema, folder: Folder) -> TableSchema:
        """Returns the schema of a folder; accounts may not have folders inside each other's, or files had two budgets.

        Raises:
            InvalidParameter: if it does.
        """
        for table, known in self.folders.items():
            if self._accounts[table] != schema.account and (known.holds(folder) or folder.holds(known)):
                hint = f"Pass account={self._accounts[table]!r} to share its budget."
                told = f"to share no files with table {table!r}, which has a budget"
                raise InvalidParameter("source", str(folder.root), told, hint)
        files = FileSchema(schema.name, folder.sides, *folder.limits, folder.suffix)
        column = replace(schema.columns[folder.file_column], files=files)
        return replace(schema, columns={**schema.columns, column.name: column})

    @property
    def folders(self) -> dict[str, Folder]:
        """Returns the protected tables that are folders of files."""
        return {name: source for name, (source, _) in self._sources.items() if isinstance(source, Folder)}

    def _attach(
        self, schema: TableSchema, account: str, budget: AnyBudget | None, origin: DataOrigin, replacing: str | None
    ) -> TableSchema:
        """Enters a table in the ledger; tables of one account may call the same people's ids differently.

        Returns:
            The table as questions know it, whose declaration is written now, and not for each question.
        """
        who = Unit.row() if schema.unit is None else Unit(account, _ID)
        if schema.parts:
            who = Unit(account, [f"{_ID} {place}" for place in range(1, len(schema.parts) + 1)])
        if schema.period is not None:
            who = Unit(account, [_ID, f"{schema.period.per} of {schema.period.column}"])
        if schema.reach is not None:
            who = self._ledger.account(account).unit
        self._ledger.stewardship.open_account(account, unit=who, neighbours=schema.neighbours, budget=budget)
        pays = getattr(self._ledger.account(account).budget, "delta", 0) > 0
        schema = replace(schema, private_groups=pays)
        self._ledger.stewardship.attach(
            schema.name,
            account=account,
            declaration=declaration(schema),
            version=schema.version,
            origin=origin,
            replacing=replacing,
            blocks=partial(key_block, schema),
        )
        self._accounts[schema.name] = account
        return schema

    def _files(self, source: Any) -> Mapping[str, str]:
        """Returns where data come from: files, or a table of a server."""
        return self._engine.origins(source) or files_of(source)

    @property
    def _known_data(self) -> KnownData:
        return KnownData(
            published=self._published, protected=self._sources, accounts=self._accounts, recorded=self._ledger.origins()
        )

    def _check_name(self, name: str, *, others: Iterable[str]) -> None:
        """Checks that a name means one table, whatever its letter case."""
        check.label(name=name)
        taken = [known for known in (*self._protected, *self._public) if same(known, name) and known != name]
        if name in others or taken:
            hint = "Letter case does not matter in questions. Choose another name."
            raise InvalidParameter("name", name, "to be the name of one table only", hint)

    # ----------------------------------------------------------------------------------------------------- questions

    @property
    def today(self) -> dt.date:
        """Returns the day that was set as CURRENT_DATE, or that of the clock."""
        return dt.date.today() if self._today is None else self._today

    @property
    def schemas(self) -> dict[str, TableSchema]:
        """Returns all tables that a question may name."""
        return {**self._protected, **self._public}

    def schema(self, name: str) -> TableSchema:
        """Returns the schema of a protected table.

        Raises:
            UnsupportedQuery: if the table is public.
            UnknownTable: if it is neither.
        """
        if name in self._protected:
            return self._protected[name]
        if lookup(name, self._public) is not None:
            raise UnsupportedQuery(f"Table {name!r} needs no private answer.", "It is public: query it directly.")
        raise UnknownTable(name, self._protected)

    def require_current(self, names: Iterable[str]) -> None:
        """Lets pass tables that are declared here as in the ledger; others were declared anew since.

        A question that begins after a change is in the ledger is not answered under the former declaration. One that
        began before may still be: all of it, its price included, follows from the declaration that it began with.

        Raises:
            DeclarationChanged: with the difference.
        """
        for name in names:
            schema = self._protected.get(name)
            present = None if schema is None else self._ledger.declared_table(name)
            if schema is None or present is None:
                continue
            own = declaration(schema)
            if present.declaration != own:
                hint = "The declaration changed after this curator was opened. Protect the table as it is declared now."
                raise DeclarationChanged(name, differences(own, present.declaration), hint)
            moved = self.versions.follow(schema, present) if present.times else schema
            if moved is not schema:  # a question that began before keeps the table as it was planned with it
                self._protected[name] = moved
                self._read_snapshot_of(moved)

    def _read_snapshot_of(self, schema: TableSchema) -> None:
        """Reads a table of a lakehouse from now on at the snapshot that the ledger has for its version."""
        before, columns = self._sources[schema.name]
        source = self._at_snapshot(before, schema.name, schema.version)
        if source != before:
            self._engine.register(schema.name, source, columns)
            self._sources[schema.name], self._kept[schema.name] = (source, columns), source

    def source(self, name: str) -> Any:
        """Returns what a protected table was made of.

        Raises:
            UnknownTable: if it is not here.
        """
        return self._sources[self.schema(name).name][0]

    def showing(self, names: Container[str]) -> Catalog:
        """Returns a catalog of the same ledger and engine in which a question finds some of the tables only."""
        part = copy(self)
        part._protected = {name: schema for name, schema in self._protected.items() if name in names}
        part._public = {name: schema for name, schema in self._public.items() if name in names}
        return part

    def account_of(self, name: str) -> str:
        """Returns the account of a table in the ledger, or the account of that name.

        Raises:
            UnknownTable: if there is neither.
        """
        return self._accounts[name] if name in self._accounts else recorded_account(self._ledger, name)

    def read(self, question: str | Question, parameters: Parameters = None) -> BoundQuestion:
        """Returns a question as a plan, with what is declared about its tables and the account that pays."""
        stage("Reading the question")
        sql = "" if not isinstance(question, str) else as_asked(question, parameters) if parameters else question
        return self.read_at_once(lambda: self.bind(self.parse(question, parameters), sql=sql))

    def read_at_once(self, read: Callable[[], Found]) -> Found:
        """Returns what is read of tables or questions, once more if a table moved on: all are at one version."""
        moves, found = self.versions.moves, read()
        return found if moves == self.versions.moves else self.read_at_once(read)

    def parse(self, question: str | Question, parameters: Parameters = None) -> Question:
        """Returns a question as a plan.

        Raises:
            UnsupportedQuery: if it cannot be answered privately.
            UnknownTable: if it names a table that is not here.
            InvalidParameter: if the values do not fit the parameters of the text, or a plan has any.
        """
        if not isinstance(question, str):
            self.schema(check.instance(Question, question=question).table)
            if parameters is not None:
                hint = "Put the values into the plan, e.g. with table(...).where(condition, parameters=...)."
                raise InvalidParameter("parameters", type(parameters).__name__, "to come with a SQL text", hint)
            return self._add_owned_rows(question)
        try:
            return parse(question, self.schemas, parameters, self._today)
        except UnknownTable as unknown:
            self.schema(unknown.name)  # a public one is refused in other words
            raise
        except UnsupportedQuery as refused:
            return self._supposing(question, parameters, refused)

    def parse_rows(self, question: str) -> TrainingRows:
        """Returns the rows that a SELECT without aggregates names, for a learner.

        Raises:
            UnsupportedQuery: if they cannot be learned from privately.
            UnknownTable: if it names a table that is not here.
        """
        return self.read_at_once(lambda: self._parse_rows(question))

    def _parse_rows(self, question: str) -> TrainingRows:
        try:
            rows = training_rows(question, self.schemas, self._today)
        except UnknownTable as unknown:
            self.schema(unknown.name)
            raise
        self._check_readable(rows.schema.name, rows.relation, (rows.relation, rows.columns))
        known, relation = self.schemas, rows.relation
        relation, periods = name_row_periods(relation, known, self.today) if self._has_periods else (relation, ())
        return replace(rows, relation=cut_rows(relation, known), periods=periods)

    @property
    def _has_periods(self) -> bool:
        return any(schema.period is not None for schema in self._protected.values())

    def bind(self, plan: Question, sql: str = "") -> BoundQuestion:
        """Returns a question with what is declared about its tables, the account that pays, and its text if it has one.

        Each side of a join is cut to a public number of rows per person, however the plan was made.

        Raises:
            UnsupportedQuery: if questions that are released together, and charged once, are about the people of
                different accounts, or one person could have too many joined rows.
        """
        self._check_one_account(plan)
        for one in (plan, *plan.beside):
            self._check_readable(one.table, one.source, (one.source, one.where, one.keys, one.aggregates))
        schemas = self.schemas
        plan, periods = name_all_periods(plan, schemas, self.today) if self._has_periods else (plan, ())
        if plan.source is not None or plan.beside:
            plan = with_cuts(plan, schemas)
        rows = self._protected[plan.table] if plan.source is None else describe(plan.source, schemas)
        account = self._accounts[rows.name]
        return BoundQuestion(plan=plan, rows=rows, schemas=schemas, account=account, sql=sql, periods=periods)

    def _check_readable(self, table: str, source: Relation | None, computed: tuple[object, ...]) -> None:
        """Refuses what the engine cannot compute, whatever the rows are, and tables that were declared anew since."""
        names = {table, *(() if source is None else tables(source))}
        self.require_current(sorted(names))
        self._engine.check(names, tuple(expressions_in(computed)))

    def _check_one_account(self, plan: Question) -> None:
        if len({self._accounts[one.table] for one in (plan, *plan.beside)}) > 1:
            reason = "The questions inside this one are about people of different accounts."
            raise UnsupportedQuery(reason, "Ask them one by one.")

    def _add_owned_rows(self, question: Question) -> Question:
        """Returns a plan with the rows that it and the questions inside it are about.

        Raises:
            UnsupportedQuery: if a question inside it has others inside itself, or its columns have names that no answer
                may have.
        """
        for output in question.outputs:
            if not may_be_shown(output.name):
                reason = f"A column of the answer cannot be called {output.name!a}."
                raise UnsupportedQuery(reason, "Choose a printable name without # that does not end in _low or _high.")
        if any(block.beside or block.steps for block in question.beside):
            raise UnsupportedQuery("A query inside another one cannot contain further queries.", "Ask them one by one.")
        for block in question.beside:
            self.schema(block.table)
        blocks = tuple(add_source(block, self.schemas) for block in question.beside)
        return add_source(replace(question, beside=blocks), self.schemas)

    def _supposing(self, question: str, parameters: Parameters, refused: UnsupportedQuery) -> Question:
        """Returns the plan of a question that lacks nothing but bounds, which may be chosen privately.

        Raises:
            UnsupportedQuery: as before, if something else is wrong; or if one person's rows are folded without bounds,
                for the plan of a fold is made of them.
        """
        try:
            widest = {name: supposing(schema) for name, schema in self.schemas.items()}
            plan = parse(question, widest, parameters, self._today)
        except UnsupportedQuery:
            raise refused from None
        sources = [one.source for one in (plan, *plan.beside) if one.source is not None]
        if any(lacks_bounds(fold, self.schemas) for source in sources for fold in folds_in(source)):
            raise refused from None
        return plan
