"""What an analyst meets: settings, transactions that refund nothing, questions that cost once, and refusals."""

from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from discreet.service.caller import ServiceRole
from tests.service.wire.served import Served, served

QUESTION = "SELECT COUNT(*) AS n FROM visits"


def _notices(connection: psycopg.Connection) -> list[str]:
    found: list[str] = []
    connection.add_notice_handler(lambda told: found.append(str(told.message_primary)))
    return found


def _new(place: list[int] = [0]) -> str:  # noqa: B006 - a question that nobody has asked
    place[0] += 1
    return f"SELECT COUNT(*) AS n FROM visits WHERE age > {place[0]}"


# ------------------------------------------------------------------------------------------------------------ questions


def test_nothing_is_asked_before_an_epsilon_is_set(wire: Served, connection: psycopg.Connection) -> None:
    before = len(wire.desk.done)
    with pytest.raises(errors.ObjectNotInPrerequisiteState) as caught:
        connection.execute(QUESTION)
    assert "SET discreet.epsilon" in str(caught.value.diag.message_hint)
    assert len(wire.desk.done) == before


def test_an_answer_has_intervals_and_tells_its_cost(asking: psycopg.Connection) -> None:
    told = _notices(asking)
    cursor = asking.execute(_new())
    assert [each.name for each in cursor.description or ()] == ["n", "n_low", "n_high"]
    (row,) = cursor.fetchall()
    assert row[1] < row[0] < row[2]
    assert len(told) == 1
    assert told[0].startswith("Cost: epsilon=0.01, 0.01 % of the budget; remaining: 99.9")


def test_an_equal_question_is_free(wire: Served, asking: psycopg.Connection) -> None:
    question = _new()
    first = asking.execute(question).fetchall()
    spent, told = wire.spent(), _notices(asking)
    assert asking.execute(question).fetchall() == first
    assert wire.spent() == spent
    assert told[0].startswith("Cost: nothing")


def test_parameters_become_values_and_never_text(wire: Served, asking: psycopg.Connection) -> None:
    hostile = "A'; DROP TABLE visits; --"
    asking.execute("SELECT COUNT(*) AS n FROM visits WHERE ward = %s AND age > %s", (hostile, 30))
    work = wire.desk.done[-1]
    assert work.arguments["parameters"] == [hostile, 30]
    assert hostile not in work.arguments["sql"]


def test_the_schema_may_be_named(asking: psycopg.Connection) -> None:
    assert asking.execute('SELECT COUNT(*) AS n FROM "public"."visits"').fetchall()


def test_explain_is_free_and_tells_the_error(wire: Served, asking: psycopg.Connection) -> None:
    spent, asked = wire.spent(), wire.desk.asked()
    lines = [line for (line,) in asking.execute(f"EXPLAIN {_new()}").fetchall()]
    assert any("cost" in line for line in lines)
    assert (wire.spent(), wire.desk.asked()) == (spent, asked)


@pytest.mark.parametrize("text", ["EXPLAIN ANALYZE SELECT COUNT(*) FROM visits", "EXPLAIN (FORMAT JSON) SELECT 1"])
def test_explain_never_asks(wire: Served, asking: psycopg.Connection, text: str) -> None:
    asked = wire.desk.asked()
    with pytest.raises(errors.FeatureNotSupported):
        asking.execute(text)
    assert wire.desk.asked() == asked


def test_two_questions_in_one_message_are_refused_before_anything(wire: Served, asking: psycopg.Connection) -> None:
    asked, spent = wire.desk.asked(), wire.spent()
    with pytest.raises(errors.FeatureNotSupported) as caught:
        asking.execute(sql.SQL(f"{_new()}; {_new()}"), prepare=False)
    assert (wire.desk.asked(), wire.spent()) == (asked, spent)
    assert int(str(caught.value.diag.statement_position)) > len(QUESTION)


def test_a_key_makes_the_next_question_idempotent(wire: Served, asking: psycopg.Connection) -> None:
    question = _new()
    asking.execute("SET discreet.key = 'monday'")
    asking.execute(question)
    assert wire.desk.done[-1].key == "monday"
    asking.execute("SET discreet.key = 'monday'")
    with pytest.raises(errors.UniqueViolation):
        asking.execute(_new())
    assert asking.execute(question).fetchall()
    assert wire.desk.done[-1].key is None


def test_settings_of_a_question_are_exact(wire: Served, asking: psycopg.Connection) -> None:
    asking.execute("SET discreet.epsilon = '1/300'")
    asking.execute("SET discreet.confidence TO 0.9")
    asking.execute(_new())
    assert wire.desk.done[-1].arguments["epsilon"] == "1/300"
    assert wire.desk.done[-1].arguments["confidence"] == "0.9"


@pytest.mark.parametrize("value", ["0", "-1", "'a'", "'nan'", "1e400", "''; DROP"])
def test_a_bad_epsilon_is_refused(connection: psycopg.Connection, value: str) -> None:
    with pytest.raises((errors.InvalidParameterValue, errors.SyntaxError, errors.ReadOnlySqlTransaction)):
        connection.execute(sql.SQL(f"SET discreet.epsilon = {value}"))
    assert connection.execute("SHOW discreet.epsilon").fetchone() == ("",)


@pytest.mark.parametrize("prepare", [False, True], ids=["simple", "prepared and described"])
def test_what_remains_is_shown(asking: psycopg.Connection, prepare: bool) -> None:
    cursor = asking.execute("SHOW discreet.remaining", prepare=prepare)
    assert [each.name for each in cursor.description or ()][:3] == ["account", "of", "remaining"]
    assert {(row[0], row[1]) for row in cursor.fetchall()} == {("visits", "ann"), ("staff", "ann")}


# --------------------------------------------------------------------------------------------------------- transactions


def test_rollback_refunds_nothing_and_says_so(wire: Served, asking: psycopg.Connection) -> None:
    spent, told = wire.spent(), _notices(asking)
    asking.execute("BEGIN")
    asking.execute(_new())
    charged = wire.spent()
    asking.execute("ROLLBACK")
    assert charged > spent
    assert wire.spent() == charged
    assert "refunds nothing" in told[-1]


def test_rollback_without_a_charge_says_nothing(connection: psycopg.Connection) -> None:
    told = _notices(connection)
    connection.execute("BEGIN")
    connection.execute("ROLLBACK")
    assert told == []


def test_a_failed_transaction_waits_for_its_end(wire: Served, asking: psycopg.Connection) -> None:
    asking.execute("BEGIN")
    with pytest.raises(errors.FeatureNotSupported):
        asking.execute("SELECT age FROM visits")
    asked = wire.desk.asked()
    with pytest.raises(errors.InFailedSqlTransaction):
        asking.execute(_new())
    assert wire.desk.asked() == asked
    assert asking.execute("COMMIT").statusmessage == "ROLLBACK"
    assert asking.execute(_new()).fetchall()


def test_savepoints_and_settings_go_back_together(connection: psycopg.Connection) -> None:
    def epsilon() -> Any:
        row = connection.execute("SHOW discreet.epsilon").fetchone()
        return row[0] if row else None

    connection.execute("SET discreet.epsilon = 0.5")
    connection.execute("BEGIN")
    connection.execute("SET discreet.epsilon = 0.25")
    connection.execute("SAVEPOINT a")
    connection.execute("SET discreet.epsilon = 0.125")
    connection.execute("ROLLBACK TO SAVEPOINT a")
    assert epsilon() == "0.25"
    connection.execute("RELEASE a")
    with pytest.raises(errors.InvalidSavepointSpecification):
        connection.execute("ROLLBACK TO a")
    connection.execute("ROLLBACK")
    assert epsilon() == "0.5"
    connection.execute("BEGIN")
    connection.execute("SET LOCAL discreet.epsilon = 0.0625")
    assert epsilon() == "0.0625"
    connection.execute("COMMIT")
    assert epsilon() == "0.5"
    connection.execute("RESET discreet.epsilon")
    assert epsilon() == ""


def test_a_used_key_does_not_come_back_with_a_rollback(wire: Served, asking: psycopg.Connection) -> None:
    asking.execute("SET discreet.key = 'tuesday'")
    asking.execute("BEGIN")
    asking.execute(_new())
    asking.execute("ROLLBACK")
    asking.execute(_new())
    assert wire.desk.done[-1].key is None


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("COPY visits TO STDOUT", "0A000"),
        ("COPY visits FROM STDIN", "0A000"),
        ("INSERT INTO visits VALUES (1)", "25006"),
        ("UPDATE visits SET age = 1", "25006"),
        ("DELETE FROM visits", "25006"),
        ("CREATE TABLE a (b int)", "25006"),
        ("DROP TABLE visits", "25006"),
        ("GRANT SELECT ON visits TO bob", "42501"),
        ("SET ROLE owner", "42501"),
        ("SET SESSION AUTHORIZATION owner", "42501"),
        ("DECLARE c CURSOR FOR SELECT 1", "0A000"),
        ("PREPARE a AS SELECT 1", "0A000"),
        ("LISTEN a", "0A000"),
        ("FROBNICATE", "42601"),
        ("SELECT 'a", "42601"),
        ("SELECT COUNT(*) FROM nowhere", "42P01"),
        ("SELECT age FROM visits", "0A000"),
        ("SELECT * FROM pg_catalog.pg_authid", "42P01"),
        ("SELECT * FROM pg_shadow", "42P01"),
        ("SELECT pg_read_file('/etc/passwd')", "0A000"),
        ("SELECT pg_sleep(100)", "0A000"),
        ("SELECT * FROM pg_class, visits", "42P01"),
        ("SET no_such = 1", "42704"),
        ("SET server_version = 99", "55P02"),
        ("SET client_encoding = 'LATIN1'", "22023"),
        ("SHOW no_such", "42704"),
        ("RELEASE a", "25P01"),
        ("SAVEPOINT a", "25P01"),
    ],
)
def test_refusals_have_their_codes_and_spend_nothing(
    wire: Served, asking: psycopg.Connection, text: str, sqlstate: str
) -> None:
    spent = wire.spent()
    with pytest.raises(psycopg.Error) as caught:
        asking.execute(sql.SQL(text))
    assert caught.value.sqlstate == sqlstate
    assert wire.spent() == spent
    assert asking.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("piece", ["/**/", "a.", "public.", "''", "(", "$a$$a$"])
def test_long_messages_are_refused_unread(asking: psycopg.Connection, piece: str) -> None:
    with pytest.raises(errors.ProgramLimitExceeded):
        asking.execute(sql.SQL("SELECT " + piece * (900_000 // len(piece))))


def test_a_refusal_points_at_its_place(asking: psycopg.Connection) -> None:
    text = "SELECT COUNT(*) AS n\nFROM visits WHERE STRING_AGG(ward) = 'A'"
    with pytest.raises(errors.FeatureNotSupported) as caught:
        asking.execute(text)
    assert text[int(str(caught.value.diag.statement_position)) - 1 :].startswith("STRING_AGG")
    assert caught.value.diag.message_hint


def test_an_overspent_budget_is_told(asking: psycopg.Connection) -> None:
    asking.execute("SET discreet.epsilon = 1000")
    with pytest.raises(errors.ConfigurationLimitExceeded):
        asking.execute(_new())


def test_an_error_that_is_not_ours_is_not_repeated(wire: Served, asking: psycopg.Connection) -> None:
    async def broken(*_: object) -> dict[str, Any]:
        raise RuntimeError("ZZ-CANARY-7")

    honest = wire.desk.perform
    wire.desk.perform = broken  # type: ignore[method-assign, assignment]
    try:
        with pytest.raises(psycopg.Error) as caught:
            asking.execute(_new())
    finally:
        wire.desk.perform = honest  # type: ignore[method-assign]
    assert "CANARY" not in str(caught.value)
    assert caught.value.sqlstate == "XX000"


# ------------------------------------------------------------------------------------------------------------------ who


def test_a_key_for_some_tables_shows_and_asks_no_others(wire: Served) -> None:
    _, text = wire.key("bob", tables=["visits"])
    with psycopg.connect(wire.url("bob"), password=text, autocommit=True) as connection:
        connection.execute("SET discreet.epsilon = 0.01")
        shown = connection.execute("SELECT tablename FROM pg_tables").fetchall()
        assert shown == [("visits",)]
        told = connection.execute("SELECT count(*) FROM information_schema.columns WHERE table_name = 'staff'")
        assert told.fetchone() == (0,)
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT COUNT(*) AS n FROM staff")


def test_an_auditor_sees_and_asks_nothing(wire: Served) -> None:
    with psycopg.connect(wire.url("cy"), autocommit=True) as connection:
        connection.execute("SET discreet.epsilon = 0.01")
        for text in (QUESTION, f"EXPLAIN {QUESTION}"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(text)
        assert connection.execute("SELECT count(*) FROM pg_tables").fetchone() == (2,)


def test_a_revoked_key_stops_on_the_open_connection(wire: Served) -> None:
    key_id, text = wire.key("bob")
    asked = wire.desk.asked()
    with psycopg.connect(wire.url("bob"), password=text, autocommit=True) as connection:
        connection.execute("SET discreet.epsilon = 0.01")
        wire.identities.revoke_key(wire.identities.local, key_id)
        with pytest.raises(psycopg.OperationalError) as caught:
            connection.execute(_new())
        assert caught.value.sqlstate == "28000"
        assert connection.closed
    assert wire.desk.asked() == asked


def test_the_project_of_a_key_is_fixed(wire: Served) -> None:
    _, text = wire.key("bob", role=ServiceRole.ANALYST, project="atlas")
    with psycopg.connect(wire.url("bob"), password=text, autocommit=True) as connection:
        connection.execute("SET discreet.epsilon = 0.01")
        connection.execute("SET discreet.project = 'other'")
        with pytest.raises(psycopg.Error):  # nothing is allotted to it; what matters is whose cap was asked
            connection.execute(_new())
    assert wire.desk.done[-1].project == "atlas"


def test_limits_count_questions() -> None:
    with served() as other:
        other.limits._per_day = 1
        with psycopg.connect(other.url(), autocommit=True) as connection:
            connection.execute("SET discreet.epsilon = 0.01")
            connection.execute("SELECT COUNT(*) AS n FROM visits")
            with pytest.raises(errors.ConfigurationLimitExceeded):
                connection.execute("SELECT COUNT(*) AS n FROM staff")
        assert other.desk.asked() == 1
