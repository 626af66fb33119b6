"""What a curator holds: protected tables under their accounts, and public ones beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from discreet import check
from discreet.curator.catalog.declarations import End, columns_of, declaration, declare
from discreet.curator.catalog.public_tables import Keys, listed, public_schema
from discreet.curator.catalog.stewardship import Stewardship
from discreet.curator.catalog.terms import terms
from discreet.curator.catalog.unit_of_privacy import UnitLike, account_of, owner, relation_of
from discreet.engines.base import Engine
from discreet.engines.duckdb.sources import files_of
from discreet.errors import InvalidParameter, UnknownTable, UnsupportedQuery
from discreet.ledger import Book
from discreet.ledger.stewardship import Origin, require_one_budget
from discreet.measurement.probes.magnitudes import supposing
from discreet.plan.analysis.relation_schema import describe, owned
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.model.nodes import Question, Relation
from discreet.plan.model.relations import PerUnit, Windowed, children
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Loss, Neighbours, Unit
from discreet.sql.clauses.select_lists import may_be_shown
from discreet.sql.scope import lookup, same
from discreet.sql.select import parse

_ID = "id"


def _folds(relation: Relation) -> Iterator[PerUnit | Windowed]:
    if isinstance(relation, PerUnit | Windowed):
        yield relation
    for child in children(relation):
        yield from _folds(child)


def _lacks_bounds(folded: PerUnit | Windowed, schemas: Mapping[str, TableSchema]) -> bool:
    rows = describe(folded.source, schemas)
    made = folded.folds if isinstance(folded, PerUnit) else folded.windows
    added = [fold.argument for fold in made if fold.kind in ("sum", "mean")]
    return any(x is not None and bounds(x, rows) is None for x in added)


def _called(source: Any) -> str:
    """A source in an error: its files, or what it is; never what it holds."""
    return ", ".join(files_of(source)) or type(source).__name__


class Holdings(Stewardship):
    """Tables by name: declared, registered with the engine, and entered in the book if they are protected."""

    def __init__(self, book: Book, engine: Engine) -> None:
        super().__init__(book)
        self._engine = engine
        self._schemas: dict[str, TableSchema] = {}
        self._public: dict[str, TableSchema] = {}
        self._sources: dict[str, tuple[Any, dict[str, Type]]] = {}
        self._published: dict[str, tuple[Any, Origin]] = {}

    def close(self) -> None:
        """Lets go of the ledger file and of the engine."""
        self._book.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def public(self, source: Any, *, name: str, types: Mapping[str, str] | None = None) -> None:
        """Registers a table that anybody may know: it has no account, and gives group keys to protected tables.

        Args:
            source: what the engine can read: a path, a frame.
            name: how declarations call it.
            types: of columns whose type the format does not carry.

        Raises:
            InvalidParameter: if the types do not fit, or a table of that name, or of the same data, is protected.
        """
        self._check_name(name, others=self._schemas)
        if name in self._book.tables():
            raise InvalidParameter("name", name, "not to be a protected table", "Give the public table another name.")
        columns = columns_of(self._engine, source, types)
        origin = self._origin_that_is_public(source)
        self._engine.register(name, source, columns)
        self._public[name], self._published[name] = public_schema(name, columns, self._engine), (source, origin)

    def protect(
        self,
        source: Any,
        *,
        name: str,
        unit: UnitLike = None,
        account: str | None = None,
        budget: Loss | None = None,
        types: Mapping[str, str] | None = None,
        bounds: Mapping[str, tuple[End, End]] | None = None,
        keys: Keys | None = None,
        max_groups: int = 1,
        max_rows: int = 1,
        neighbours: Neighbours | str | None = None,
        version: str = "",
        identity: str | None = None,
    ) -> None:
        """Puts a table under an account; doing it again with the same declarations changes nothing.

        The same file, or the same object, in another account is refused, since its people would get a second budget.
        A copy is not recognised: the content is not looked at.

        Args:
            source: what the engine can read: a path, a frame.
            name: how questions call it.
            unit: the column of ids of those who are protected; several columns that make an id together, such as
                ``("person", "day")``; a way to a protected table that tells whose rows they are, such as
                ``"order_id -> orders.id"``; None if each row is one person.
            account: whose budget it shares; a lone table opens one of its own name, one on a way shares that of the
                table it leads to.
            budget: of the account, given once.
            types: of columns whose type the format does not carry.
            bounds: public limits of numbers and dates, never read from the data.
            keys: public group keys: a list, or "table.column" of a public table for the values that are there now.
            max_groups: how many groups one unit may enter.
            max_rows: with how many rows each.
            neighbours: the relation of the account; add/remove unless it is given, or that of the table on the way.
            version: what the steward says about the state of the data.
            identity: a name for the data themselves, which the steward answers for. Tables of one identity share an
                account, also if they are copies; a file that once held other people's data may be protected under
                another identity.

        Raises:
            InvalidParameter: if a declaration does not fit, or the data have a budget in another account; nothing was
                opened.
        """
        self._check_name(name, others=self._public)
        check.label(version=version)
        columns = columns_of(self._engine, source, types)
        whose = owner(name, unit, columns, self._schemas)
        account = account_of(name, account, whose)
        schema = declare(
            name,
            columns,
            owner=whose,
            bounds=bounds or {},
            keys=listed(keys or {}, columns, self._public, self._engine),
            limits=Limits(max_groups, max_rows),
            neighbours=relation_of(neighbours, whose),
            version=version,
            account=account,
        )
        origin = self._origin_with_one_budget(name, source, account, identity)
        self._engine.register(name, source, columns)
        try:
            self._attach(schema, account, budget, origin)
        except BaseException:
            if name in self._sources:  # what was declared before stays as it was
                self._engine.register(name, *self._sources[name])
            raise
        self._sources[name] = source, columns
        pays = terms(1, None, self._book.account(account).budget).delta > 0
        self._schemas[name] = replace(schema, private_groups=pays)

    def _attach(self, schema: TableSchema, account: str, budget: Loss | None, origin: Origin) -> None:
        """Enters a table in the book; tables of one account may call the same people's ids differently."""
        who = Unit.row() if schema.unit is None else Unit(account, _ID)
        if schema.parts:
            who = Unit(account, [f"{_ID} {place}" for place in range(1, len(schema.parts) + 1)])
        if schema.reach is not None:
            who = self._book.account(account).unit
        self._book.stewardship.open_account(account, unit=who, neighbours=schema.neighbours, budget=budget)
        declared = declaration(schema)
        self._book.stewardship.attach(
            schema.name, account=account, declaration=declared, version=schema.version, origin=origin
        )
        self._accounts[schema.name] = account

    def _origin_with_one_budget(self, name: str, source: Any, account: str, identity: str | None) -> Origin:
        """Where data come from, if they have no budget in another account and are not public.

        Raises:
            InvalidParameter: otherwise.
        """
        origin = Origin.of(files_of(source), identity)
        for table, (public, files) in self._published.items():
            if public is source or origin.found(files.fields):
                hint = "Anybody may know what is public; leave one of the two out."
                raise InvalidParameter("source", _called(source), f"not to be the public table {table!r}", hint)
        require_one_budget(self._book.origins(), name, account, origin)
        again = name in self._sources and self._sources[name][0] is source
        for table, (known, _) in self._sources.items():
            if known is source and self._accounts[table] != account and not (identity or again):
                hint = f"Pass account={self._accounts[table]!r} to share its budget."
                condition = f"not to be the data of table {table!r}, which have a budget"
                raise InvalidParameter("source", _called(source), condition, hint)
        return origin

    def _origin_that_is_public(self, source: Any) -> Origin:
        """Where data come from, if they are not protected.

        Raises:
            InvalidParameter: naming the table that they are.
        """
        origin = Origin.of(files_of(source), None)
        held = [table for table, (known, _) in self._sources.items() if known is source]
        held += [table for table, told in self._book.origins().items() if origin.found(told)]
        if held:
            hint = "Write what may be published into a file of its own."
            raise InvalidParameter("source", _called(source), f"not to be the protected table {held[0]!r}", hint)
        return origin

    def _check_name(self, name: str, *, others: Iterable[str]) -> None:
        """A name means one table, whatever its letter case."""
        check.label(name=name)
        taken = [known for known in (*self._schemas, *self._public) if same(known, name) and known != name]
        if name in others or taken:
            hint = "Letter case does not matter in questions; give it another name."
            raise InvalidParameter("name", name, "to be the name of one table only", hint)

    def _schema(self, name: str) -> TableSchema:
        """The schema of a protected table.

        Raises:
            UnsupportedQuery: if the table is public.
            UnknownTable: if it is neither.
        """
        if name in self._schemas:
            return self._schemas[name]
        if lookup(name, self._public) is not None:
            raise UnsupportedQuery(f"Table {name!r} needs no private answer.", "It is public: query it directly.")
        raise UnknownTable(name, self._schemas)

    def _plan(self, question: str | Question) -> tuple[Question, TableSchema]:
        """A question as a plan, and what is public about the rows it counts."""
        if not isinstance(question, str):
            self._schema(check.instance(Question, question=question).table)
            plan = self._owned(question)
            return plan, self._described(plan)
        try:
            plan = parse(question, self._known)
        except UnknownTable as unknown:
            self._schema(unknown.name)  # a public one is refused in other words
            raise
        except UnsupportedQuery as refused:
            plan = self._supposing(question, refused)
        return plan, self._described(plan)

    def _owned(self, question: Question) -> Question:
        """A plan with the rows that it and the questions beside it are about.

        Raises:
            UnsupportedQuery: if a question beside it has others beside itself, or its columns have names that no answer
                may have.
        """
        for output in question.outputs:
            if not may_be_shown(output.name):
                reason = f"A column of the answer cannot be called {output.name!a}."
                raise UnsupportedQuery(reason, "Give it a printable name without # and the ends _low and _high.")
        if any(block.beside or block.steps for block in question.beside):
            raise UnsupportedQuery("A question beside another one stands alone.", "Ask them one by one.")
        for block in question.beside:
            self._schema(block.table)
        blocks = tuple(owned(block, self._known) for block in question.beside)
        return owned(replace(question, beside=blocks), self._known)

    def _supposing(self, question: str, refused: UnsupportedQuery) -> Question:
        """The plan of a question that lacks nothing but bounds, which may be chosen privately.

        Raises:
            UnsupportedQuery: as before, if something else is wrong; or if one person's rows are folded without bounds,
                for the plan of a fold is made of them.
        """
        try:
            plan = parse(question, {name: supposing(schema) for name, schema in self._known.items()})
        except UnsupportedQuery:
            raise refused from None
        if plan.source is not None and any(_lacks_bounds(fold, self._known) for fold in _folds(plan.source)):
            raise refused from None
        return plan

    @property
    def _known(self) -> dict[str, TableSchema]:
        """All tables that a question may name."""
        return {**self._schemas, **self._public}

    def _described(self, plan: Question) -> TableSchema:
        return self._schemas[plan.table] if plan.source is None else describe(plan.source, self._known)
