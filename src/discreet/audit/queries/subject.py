"""An audit needs tables, what is declared about them, and a way to make curators of their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import cycle, islice
from typing import Any, Self

from discreet.audit.queries.neighbours import Change, Changes, NeighbouringTables, neighbourings
from discreet.audit.queries.units import UnitRows, by_account, unit_name
from discreet.audit.queries.verdicts import Violation
from discreet.curator import Curator
from discreet.curator.observation import check_observable, is_in_memory, schemas_of
from discreet.dataclass import dataclass
from discreet.engines.duckdb.copies import Copy, copy_of
from discreet.errors import InvalidParameter, UnknownTable
from discreet.noise import Bits
from discreet.plan.model.schema import TableSchema
from discreet.privacy import Neighbours

Factory = Callable[[Any], Curator]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Holds tables and makes curators of them.

    Attributes:
        factory: makes a curator of the tables, in the form in which they were given.
        copies: the protected tables, by name.
        public: tables that stay as they are.
        schemas: what is declared about the protected ones.
        single: whether the factory takes one table, and not a mapping.
        accounts: whose people neighbours differ in.
        missing: protected tables that the curator has and that were not given.
    """

    factory: Factory
    copies: Mapping[str, Copy]
    public: Mapping[str, Any]
    schemas: Mapping[str, TableSchema]
    single: bool
    accounts: tuple[str, ...]
    missing: frozenset[str]

    @classmethod
    def of(cls, factory: Factory, table: Any, name: str | None) -> Self:
        """Reads the declarations of one table, or of a mapping of several.

        Raises:
            InvalidParameter: if a curator may not be observed, or it is not clear which table is which.
            UnknownTable: if a name is not one of the curator's.
        """
        single = not isinstance(table, Mapping)
        copies = {"": copy_of(table)} if single else _copy_tables(table)
        with _observable(factory(copies[""].with_changes() if single else _whole(copies))) as curator:
            known = schemas_of(curator)
        protected = {each: schema for each, schema in known.items() if not schema.public}
        if single:
            copies = {_only(protected, name): copies[""]}
        unknown = [each for each in copies if each not in known]
        if unknown:
            raise UnknownTable(unknown[0], known)
        schemas = {each: schema for each, schema in protected.items() if each in copies}
        if not schemas:
            raise InvalidParameter("table", ", ".join(copies), "to hold a protected table", "Pass those it is about.")
        return cls(
            factory=factory,
            copies={each: copies[each] for each in schemas},
            public={} if single else {each: table[each] for each in table if each not in schemas},
            schemas=schemas,
            single=single,
            accounts=_accounts(schemas, None if single else name),
            missing=frozenset(protected) - frozenset(schemas),
        )

    @property
    def first(self) -> str:
        """Returns a table of the first account."""
        return next(name for name, schema in self.schemas.items() if schema.account == self.accounts[0])

    @property
    def relation(self) -> Neighbours:
        """Returns what makes tables neighbours."""
        return self.schemas[self.first].neighbours

    @property
    def unit(self) -> str:
        """Returns who is protected, in words."""
        groups = by_account(self.schemas.values())
        return " or ".join(dict.fromkeys(unit_name(list(groups[account].values())) for account in self.accounts))

    def check_read(self, tables: Iterable[str]) -> None:
        """Refuses a question whose neighbours would differ in only a part of one person's rows, or in no rows.

        Raises:
            InvalidParameter: if it reads a protected table that is not given.
        """
        lacking = sorted(self.missing & set(tables))
        if lacking:
            hint = "Pass a mapping of all protected tables that the questions read, and make the curator of it."
            raise InvalidParameter("table", ", ".join(self.schemas), f"to come with {lacking[0]!r}", hint)

    def sample(self, most: int, bits: Bits) -> Subject:
        """Returns at most so many rows of each account, of whole units; rows without an id stay only where all do."""
        kept = dict(self.copies)
        for own in by_account(self.schemas.values()).values():
            people = UnitRows({name: self.copies[name] for name in own}, own)
            if sum(bool(owners) for listed in people.owners.values() for owners in listed) > most:
                kept |= {name: self.copies[name].keep(places) for name, places in people.sample(most, bits).items()}
        return replace(self, copies=kept)

    def pairs(self, wanted: int, bits: Bits) -> Iterator[tuple[str, NeighbouringTables]]:
        """Yields so many pairs of neighbours, each with the account of the person in whom they differ.

        Accounts take turns.
        """
        groups = by_account(self.schemas.values())
        turns = {
            account: neighbourings({name: self.copies[name] for name in groups[account]}, groups[account], wanted, bits)
            for account in self.accounts
        }
        found = ((account, next(turns[account], None)) for account in cycle(turns))
        listed = islice(found, wanted * len(turns))
        yield from islice(((account, pair) for account, pair in listed if pair is not None), wanted)

    def curator(self, changes: Changes | None = None) -> Curator:
        """Returns a curator of the tables with some changes.

        Raises:
            InvalidParameter: if it protects real data, or its ledger is a file.
        """
        done = changes or {}
        nothing = Change()
        states = {
            name: copy.with_changes(done.get(name, nothing).without, done.get(name, nothing).more)
            for name, copy in self.copies.items()
        }
        return _observable(self.factory(next(iter(states.values())) if self.single else {**self.public, **states}))

    def declared_alike(self, neighbour: str, *curators: Curator) -> Iterator[Violation]:
        """Yields a violation for each curator whose declarations are not those of the first."""
        for curator in curators:
            found = schemas_of(curator)
            if not all(name in found and schema.is_declared_like(found[name]) for name, schema in self.schemas.items()):
                due = "the same for every table: they must not be read from the data"
                yield Violation("declarations", neighbour, due, "others")


def _copy_tables(tables: Mapping[Any, Any]) -> dict[str, Copy]:
    if not tables or not all(isinstance(name, str) for name in tables):
        hint = "Pass one table, or a mapping like {'orders': ..., 'items': ...}."
        raise InvalidParameter("table", list(tables), "to be named by texts", hint)
    return {name: copy_of(table) for name, table in tables.items()}


def _whole(copies: Mapping[str, Copy]) -> dict[str, Any]:
    return {name: copy.with_changes() for name, copy in copies.items()}


def _observable(made: Curator) -> Curator:
    """Returns a curator that may be observed.

    Raises:
        InvalidParameter: if it protects real data, or its ledger is a file, which must never be charged for an audit.
    """
    curator = check_observable(made)
    if not is_in_memory(curator):
        curator.close()
        hint = "Leave the ledger out: an audit must not charge a real account."
        raise InvalidParameter("curator_factory", "a ledger in a file", "to keep its ledger in memory", hint)
    return curator


def _only(protected: Mapping[str, TableSchema], name: str | None) -> str:
    """Returns the name of the one table that is given."""
    if name is None and len(protected) != 1:
        hint = f"Name one of {', '.join(protected)}." if protected else "The factory must protect the table."
        raise InvalidParameter("name", name, "to be given, if there is not exactly one protected table", hint)
    found = next(iter(protected)) if name is None else name
    if found not in protected:
        raise UnknownTable(found, protected)
    return found


def _accounts(schemas: Mapping[str, TableSchema], name: str | None) -> tuple[str, ...]:
    """Returns the accounts whose people are changed: that of a table, or all of one relation."""
    if name is not None:
        if name not in schemas:
            raise UnknownTable(name, schemas)
        return (schemas[name].account,)
    if len({schema.neighbours for schema in schemas.values()}) > 1:
        hint = f"Audit one account after the other: name= one of {', '.join(schemas)}."
        raise InvalidParameter("name", name, "to be given, if accounts have different relations", hint)
    return tuple(by_account(schemas.values()))
