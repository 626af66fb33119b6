"""One served clinic for all tests of the wire; tests look at differences of what was asked and spent."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.service.wire.served import Served, served


@pytest.fixture(scope="session")
def wire() -> Iterator[Served]:
    """The clinic, served."""
    with served() as made:
        yield made


@pytest.fixture
def connection(wire: Served) -> Iterator[psycopg.Connection]:
    """A connection of an analyst, each statement by itself."""
    with psycopg.connect(wire.url(), autocommit=True) as made:
        yield made


@pytest.fixture
def asking(connection: psycopg.Connection) -> psycopg.Connection:
    """A connection that may ask."""
    connection.execute("SET discreet.epsilon = 0.01")
    return connection
