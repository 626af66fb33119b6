"""The data that a curator knows: the same data must not get two budgets, nor be public and protected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.duckdb.sources import present_files
from discreet.engines.lakes.lake_table import is_pin
from discreet.errors import InvalidParameter
from discreet.ledger.stewardship import DataOrigin, TableRecord, require_one_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownData:
    """The data of all tables.

    Args:
        published: of public tables, the source and where it comes from, by name.
        protected: of protected tables, the source and its columns, by name.
        accounts: of protected tables, by name.
        recorded: what the ledger says about the data of protected tables, by name.
    """

    published: Mapping[str, tuple[Any, DataOrigin]]
    protected: Mapping[str, tuple[Any, Any]]
    accounts: Mapping[str, str]
    recorded: Mapping[str, TableRecord]

    def require_one_budget(self, origin: DataOrigin, source: Any, *, name: str, account: str) -> None:
        """Checks that data have no budget in another account and are not public.

        Args:
            origin: where they come from.
            source: what they are.
            name: of the table that they shall be.
            account: of that table.

        Raises:
            InvalidParameter: otherwise.
        """
        present = origin.with_files(present_files(source))  # hard links to files of a folder too
        for table, (public, files) in self.published.items():
            if public is source or present.is_origin_of(files.with_files(present_files(public)).fields):
                hint = "A table is either public or protected. Declare it once."
                condition = f"not to be the public table {table!r}"
                raise InvalidParameter("source", _describe(origin, source), condition, hint)
        require_one_budget(self.recorded, name, account, present)
        again = name in self.protected and self.protected[name][0] is source
        for table, (known, _) in self.protected.items():
            alike = known is source or {*present_files(known).values()} & {*present.files.values()}
            if alike and self.accounts[table] != account and not (origin.identity or again):
                hint = f"Pass account={self.accounts[table]!r} to share its budget."
                condition = f"not to be the data of table {table!r}, which has a budget"
                raise InvalidParameter("source", _describe(origin, source), condition, hint)

    def require_public(self, origin: DataOrigin, source: Any) -> DataOrigin:
        """Returns where data come from, if they are not protected.

        Raises:
            InvalidParameter: naming the table that they are.
        """
        present = origin.with_files(present_files(source))
        held = [table for table, (known, _) in self.protected.items() if known is source]
        held += [table for table, told in self.recorded.items() if present.is_origin_of(told)]
        if held:
            hint = "Write the part that may be published into a separate file."
            condition = f"not to be the protected table {held[0]!r}"
            raise InvalidParameter("source", _describe(origin, source), condition, hint)
        return origin


def _describe(origin: DataOrigin, source: Any) -> str:
    """Returns a source in an error: where it is, or what it is; never what it holds."""
    return ", ".join(place for place in origin.files if not is_pin(place)) or type(source).__name__
