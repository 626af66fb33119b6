"""A database for ledgers on PostgreSQL, shared by the tests of one process: each ledger gets a schema of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.postgres_server import PostgresServer

_NUMBERS = count()


@pytest.fixture(scope="session")
def ledgers(postgres_server: PostgresServer) -> str:
    """The address of a database of which whoever connects may do everything."""
    return postgres_server.url(database=postgres_server.make_database())


@pytest.fixture
def new_place(ledgers: str) -> Callable[[], str]:
    """Addresses where no ledger is yet."""
    return lambda: f"{ledgers}?schema=book_{next(_NUMBERS)}"


@pytest.fixture
def place(new_place: Callable[[], str]) -> str:
    """An address where no ledger is yet."""
    return new_place()
