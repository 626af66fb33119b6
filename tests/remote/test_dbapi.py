"""A service as a database: PEP 249, with questions that are paid and rows that have intervals."""

import datetime as dt

import pytest

from discreet.remote import dbapi
from tests.remote.served import Served

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture
def connection(service: Served) -> dbapi.Connection:
    return dbapi.connect(service.url, key=service.keys["ana"], epsilon="0.5")


def test_a_question_gives_rows_and_says_what_they_are(connection: dbapi.Connection) -> None:
    with connection.cursor() as cursor:
        assert cursor.execute(BY_WARD) is cursor
        assert cursor.description is not None
        assert [each[:2] for each in cursor.description] == [
            ("ward", "text"),
            ("n", "int"),
            ("n_low", "int"),
            ("n_high", "int"),
        ]
        assert all(len(each) == 7 for each in cursor.description)
        assert cursor.description[0][1] == dbapi.STRING
        assert cursor.description[1][1] == dbapi.NUMBER
        assert cursor.description[1][1] != dbapi.DATETIME
        assert cursor.rowcount == 3
        first = cursor.fetchone()
        assert first is not None
        assert first[0] == "A"
        assert len(cursor.fetchmany()) == 1
        assert len(cursor.fetchall()) == 1
        assert cursor.fetchone() is None
        assert cursor.fetchmany(5) == []
        assert cursor.answer is not None
        assert str(cursor.answer.cost.details) == "epsilon=0.5"


def test_rows_are_iterated_and_parameters_are_values(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE ward = ? AND age >= ?", ("A' OR 1=1", 18))
    assert len([row for row in cursor]) == 1  # noqa: C416 - iteration is what is tried
    assert cursor.connection is connection


def test_nothing_is_asked_before_an_epsilon_is_set(service: Served) -> None:
    connection = dbapi.connect(service.url, key=service.keys["ana"])
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute(BY_WARD)
    assert not service.desk.seen
    for text in ("SET discreet.epsilon = 0.25", "set discreet.epsilon to '1/4';"):
        cursor.execute(text)
        assert cursor.description is None
    assert cursor.execute(BY_WARD).answer is not None
    assert service.desk.seen[0][1].arguments["epsilon"] == "1/4"


def test_rollback_gives_nothing_back(connection: dbapi.Connection, service: Served) -> None:
    connection.cursor().execute(BY_WARD)
    connection.rollback()
    connection.commit()
    assert str(service.desk.curator.budget("visits").spent) == "epsilon=0.5"


def test_errors_are_those_of_the_pep_and_have_their_cause(connection: dbapi.Connection, service: Served) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError) as refused:
        cursor.execute("SELECT charge FROM visits")
    assert type(refused.value.__cause__).__name__ == "UnsupportedQuery"
    connection.epsilon = connection.epsilon and connection.epsilon * 1000
    with pytest.raises(dbapi.OperationalError):
        cursor.execute(BY_WARD)
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany(BY_WARD, [])
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchone()
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SET discreet.epsilon = 0")
    with pytest.raises(dbapi.ProgrammingError):
        dbapi.connect("http://data.example", key="k")
    stranger = dbapi.connect(service.url, key="nobody", epsilon=1)
    with pytest.raises(dbapi.OperationalError):
        stranger.cursor().execute(BY_WARD)
    assert issubclass(dbapi.OperationalError, connection.DatabaseError)


def test_what_is_closed_is_closed(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute(BY_WARD)
    with connection:
        other = connection.cursor()
    for act in (connection.cursor, connection.commit, connection.rollback, other.fetchone):
        with pytest.raises(dbapi.InterfaceError):
            act()


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.paramstyle) == ("2.0", "qmark")
    assert dbapi.Date(2026, 3, 1) == dt.date(2026, 3, 1)
    assert isinstance(dbapi.TimestampFromTicks(0), dt.datetime)
    assert isinstance(dbapi.DateFromTicks(0), dt.date)
    assert isinstance(dbapi.TimeFromTicks(0), dt.time)
