"""Where a ledger is: a file, or a PostgreSQL database; and how it gets from one place to another with its chain.

A copy has the same entries with the same hashes, so heads that were exported before anchor it as well.
"""

from __future__ import annotations

import os
from typing import cast

from discreet.errors import LedgerError
from discreet.lazy import load
from discreet.ledger.entry import Head
from discreet.ledger.store.ledger_store import Store, Transaction, needed_version
from discreet.ledger.store.sqlite import SqliteStore
from discreet.postgres_url import is_postgres


def store_at(place: str, *, timeout: float = 30.0, read_only: bool = False) -> Store:
    """Opens the store at an address that begins with "postgresql://", or in a file.

    Raises:
        LedgerError: if it cannot be used.
    """
    if is_postgres(place):
        postgres = load("discreet.ledger.store.postgres", "A ledger on PostgreSQL")
        return cast("Store", postgres.PostgresStore(place, timeout=timeout, read_only=read_only))
    return SqliteStore(place, timeout=timeout, read_only=read_only)


def is_there(place: str) -> bool:
    """Returns whether there can be a ledger: a server reports that it has none only when it is opened.

    >>> is_there("no such ledger.db"), is_there("postgresql://db.example/ledger")
    (False, True)
    """
    return is_postgres(place) or os.path.exists(place)


def back_up(store: Store, place: str) -> None:
    """Writes a copy of one state of a ledger to a new place.

    Raises:
        LedgerError: if something is there already.
    """
    if isinstance(store, SqliteStore) and not is_postgres(place):
        store.backup(place)
        return
    with store.reading() as rows:
        copy(rows, place)


def copy(rows: Transaction, place: str, *, again: bool = False) -> Head:
    """Copies the ledger that a transaction sees to a new place, in one transaction there.

    Args:
        rows: what is copied.
        place: where to.
        again: whether the same copy may be there already, because a process was stopped right after making it.

    Returns:
        The head of both.

    Raises:
        LedgerError: if something else is there already.
    """
    if not is_postgres(place) and os.path.exists(place) and not again:
        raise LedgerError("The file for the copy already exists", "Name another file.")
    target = store_at(place)
    try:
        into = target.begin()
        try:
            if not (again and into.tail() == rows.tail()):
                _fill(rows, into)
        except BaseException as error:
            target.end(error)
            raise
        target.end(None)
    finally:
        target.close()
    return rows.tail()


def _fill(rows: Transaction, into: Transaction) -> None:
    if into.tail().sequence:
        raise LedgerError("The place of the copy already has a ledger", "Name another place.")
    version = 0
    for entry in rows.entries():
        if needed_version(entry) > version:
            version = needed_version(entry)
            into.require_version(version)
        into.append(entry)
    for answer in rows.answers():
        into.add_answer(*answer[:4])  # what an entry says of it is in the entry
    for scope, name, text in rows.states():
        into.put(((scope, name), text))
