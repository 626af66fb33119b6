"""From declarations to a curator: accounts, tables and analysts; doing it again changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.cli.config import Analyst, Config, Table
from discreet.curator.curator import Curator
from discreet.engines.sources import Csv, source_of
from discreet.errors import InvalidParameter
from discreet.ledger import Book, Role
from discreet.plan.schema import Limits

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEYS = {"type": "types", "groups": "max_groups", "rows": "max_rows"}  # as the curator calls them, and as the file does


def protect(config: Config) -> Curator:
    """A curator that holds every declared table.

    Raises:
        InvalidParameter: if a declaration does not fit its table, or what was declared before.
    """
    if not config.tables:
        raise InvalidParameter("tables", None, "to declare a table", "Add [tables.NAME] to discreet.toml.")
    for table in config.tables:
        _check_types(table)
    curator = Curator(str(config.ledger))
    for table in config.tables:
        _attach(curator, table, config)
    with Book(str(config.ledger)) as book:
        for analyst in config.analysts:
            _appoint(book, analyst)
    return curator


def protected(config: Config) -> Curator:
    """The same for questions, which open no account: all tables must be in the book already."""
    known = tables(config)
    for table in config.tables:
        if table.name not in known:
            name = f"tables.{table.name}"
            raise InvalidParameter(name, table.name, "to be protected already", "Run `discreet protect` first.")
    return protect(config)


def tables(config: Config) -> dict[str, str]:
    """The account of every table in the book; none if there is no book yet."""
    if not config.ledger.exists():
        return {}
    with Book(str(config.ledger), read_only=True) as book:
        return book.tables()


def limits(
    curator: Curator, question: str, epsilon: str, delta: str | None, *, groups: int | None, rows: int | None
) -> Limits | None:
    """The limits of a question; of two, the one that is not given is the table's own."""
    if groups is None and rows is None:
        return None
    usual = curator.explain(question, epsilon=epsilon, delta=delta).contribution.limits
    return Limits(usual.groups if groups is None else groups, usual.rows if rows is None else rows)


def _attach(curator: Curator, table: Table, config: Config) -> None:
    with _naming(table):
        curator.protect(
            str(table.source),
            name=table.name,
            unit=table.unit,
            account=table.account,
            budget=config.budgets[table.account],
            **table.declared,
        )


@contextmanager
def _naming(table: Table) -> Iterator[None]:
    """Errors name the key of the file, not the argument of a function."""
    try:
        yield
    except InvalidParameter as error:
        key = _KEYS.get(error.name, error.name)
        name = f"budgets.{table.account}" if key == "budget" else f"tables.{table.name}.{key}"
        raise InvalidParameter(name, error.value, error.condition, error.hint) from None


def _appoint(book: Book, analyst: Analyst) -> None:
    """Only what is new: every appointment is an entry."""
    account = analyst.account
    cap = book.balance(account, analyst=analyst.name).total
    wanted = book.balance(account).total if analyst.cap is None else analyst.cap
    if book.role(account, analyst.name) is not Role.ANALYST or cap != wanted:
        book.appoint(analyst.name, Role.ANALYST, account=account, cap=analyst.cap)


def _check_types(table: Table) -> None:
    """CSV carries no types: the refusal proposes a line made of the header, which is public, and of nothing else."""
    with _naming(table):
        source = source_of(str(table.source))
    if isinstance(source, Csv) and not table.declared.get("types"):
        hint = (
            f"CSV carries no types. Paste this under [tables.{table.name}] and correct it:\n{types_line(source.header)}"
        )
        raise InvalidParameter(f"tables.{table.name}.types", None, "to be given", hint)


def types_line(header: tuple[str, ...]) -> str:
    """A line of TOML that declares every column as text.

    >>> types_line(("age", "ward no"))
    'types = { age = "text", "ward no" = "text" }'
    """
    pairs = ", ".join(f'{_key(name)} = "text"' for name in header)
    return f"types = {{ {pairs} }}"


def _key(name: str) -> str:
    if _BARE.fullmatch(name):
        return name
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
