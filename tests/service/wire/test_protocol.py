"""The protocol itself, byte by byte: what is asked when, what ends a connection, and that nothing else does."""

import struct
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.service.identity.scram import ITERATIONS
from discreet.service.settings import Settings
from discreet.service.wire import protocol_messages as pg
from discreet.service.wire.protocol_messages import LONGEST, Body, ProtocolViolation
from tests.service.wire.raw_sign_in import signed_in
from tests.service.wire.served import RawClient, Served, framed, report, served, startup

QUESTION = b"SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture
def raw(wire: Served) -> Iterator[RawClient]:
    """A client that has signed in and may ask."""
    client = signed_in(wire)
    client.send(framed(b"Q", b"SET discreet.epsilon = 0.01\0"))
    client.until(b"Z")
    yield client
    client.close()


def _kinds(found: list[tuple[bytes, bytes]]) -> str:
    return b"".join(kind for kind, _ in found).decode()


def _parse(text: bytes, name: bytes = b"", types: tuple[int, ...] = ()) -> bytes:
    return framed(b"P", name + b"\0" + text + b"\0" + struct.pack(f"!H{len(types)}I", len(types), *types))


def _bind(*values: bytes, portal: bytes = b"", name: bytes = b"", form: int = 0) -> bytes:
    given = b"".join(struct.pack("!i", len(value)) + value for value in values)
    head = portal + b"\0" + name + b"\0" + struct.pack("!HH", 0, len(values))
    return framed(b"B", head + given + struct.pack("!Hh", 1, form))


def _describe(kind: bytes, name: bytes = b"") -> bytes:
    return framed(b"D", kind + name + b"\0")


def _execute(most: int = 0, portal: bytes = b"") -> bytes:
    return framed(b"E", portal + b"\0" + struct.pack("!i", most))


SYNC = framed(b"S")


# ------------------------------------------------------------------------------------------------------- who asks when


def test_a_storm_of_parse_and_describe_spends_nothing(wire: Served, raw: RawClient) -> None:
    asked, spent = wire.desk.asked(), wire.spent()
    for number in range(50):
        name = b"s%d" % number
        raw.send(_parse(QUESTION, name) + _describe(b"S", name) + _bind(name=name) + _describe(b"P") + SYNC)
        assert _kinds(raw.until(b"Z")) == "1tT2TZ"
    assert (wire.desk.asked(), wire.spent()) == (asked, spent)


def test_a_storm_of_descriptions_is_planned_once(wire: Served, raw: RawClient) -> None:
    before = len(wire.desk.done)
    raw.send(_parse(b"SELECT COUNT(*) AS n FROM visits WHERE age > 77", b"x") + _describe(b"S", b"x") * 30 + SYNC)
    assert _kinds(raw.until(b"Z")) == "1" + "tT" * 30 + "Z"
    assert len(wire.desk.done) == before + 1


def test_a_portal_that_is_fetched_further_never_asks_again(wire: Served, raw: RawClient) -> None:
    asked = wire.desk.asked()
    raw.send(framed(b"Q", b"BEGIN\0"))
    raw.until(b"Z")
    raw.send(_parse(QUESTION) + _bind(portal=b"p") + _execute(1, b"p") + SYNC)
    assert _kinds(raw.until(b"Z")) == "12NDsZ"
    raw.send(_execute(1, b"p") + _execute(1, b"p") + _execute(5, b"p") + SYNC)
    assert _kinds(raw.until(b"Z")) == "DsDCCZ"
    assert wire.desk.asked() == asked + 1
    raw.send(framed(b"Q", b"COMMIT\0"))
    raw.until(b"Z")
    raw.send(_execute(0, b"p") + SYNC)
    assert report(raw.until(b"Z")[0][1])["C"] == "34000"


def test_each_execution_of_a_prepared_statement_is_a_question(wire: Served, raw: RawClient) -> None:
    asked = wire.desk.asked()
    raw.send(_parse(QUESTION, b"twice") + (_bind(name=b"twice") + _execute() + SYNC) * 2)
    raw.until(b"Z")
    raw.until(b"Z")
    assert wire.desk.asked() == asked + 2


def test_columns_are_those_that_were_described(raw: RawClient) -> None:
    raw.send(_parse(QUESTION, b"c") + _describe(b"S", b"c") + _bind(name=b"c", form=1) + _execute() + SYNC)
    found = raw.until(b"Z")
    (described,) = [body for kind, body in found if kind == b"T"]
    assert struct.unpack("!H", described[:2]) == (4,)
    rows = [body for kind, body in found if kind == b"D"]
    assert len(rows) == 3
    assert all(struct.unpack("!H", row[:2]) == (4,) and len(row) == 2 + 5 + 3 * 12 for row in rows)  # text, 3 int8


def test_unbound_parameters_are_described_without_asking(wire: Served, raw: RawClient) -> None:
    asked = wire.desk.asked()
    text = b"SELECT COUNT(*) AS n FROM visits WHERE age > $1 AND ward = $2 AND day > $3"
    raw.send(_parse(text, types=(20, 25, 1082)) + _describe(b"S") + SYNC)
    found = raw.until(b"Z")
    assert _kinds(found) == "1tTZ"
    assert struct.unpack("!H3I", found[1][1]) == (3, 20, 25, 1082)
    raw.send(_parse(b"SELECT COUNT(*) AS n FROM visits WHERE day > $1") + _describe(b"S") + SYNC)
    assert _kinds(raw.until(b"Z")) == "1tTZ"
    assert wire.desk.asked() == asked


# --------------------------------------------------------------------------------------------------------------- errors


def test_after_an_error_all_is_skipped_until_sync(wire: Served, raw: RawClient) -> None:
    asked = wire.desk.asked()
    raw.send(_parse(b"SELECT frob FROM visits") + _bind() + _describe(b"P") + _execute())
    raw.send(_parse(QUESTION) + _bind() + _execute() + SYNC)
    found = raw.until(b"Z")
    assert _kinds(found) == "12EZ"
    assert wire.desk.asked() == asked
    raw.send(_parse(QUESTION) + _bind() + _execute() + SYNC)
    assert _kinds(raw.until(b"Z")).endswith("DDDCZ")


@pytest.mark.parametrize(
    ("sent", "sqlstate"),
    [
        (_parse(b"SELECT 1; SELECT 2"), "42601"),
        (_parse(b"COPY visits TO STDOUT"), "0A000"),
        (_bind(name=b"nobody"), "26000"),
        (_execute(portal=b"nobody"), "34000"),
        (_describe(b"S", b"nobody"), "26000"),
        (_describe(b"P", b"nobody"), "34000"),
        (_parse(b"SELECT $1::int") + _bind(), "08P01"),
        (_parse(b"SELECT $99999::int") + _describe(b"S"), "54000"),
        (_parse(b"SELECT COUNT(*) FROM visits WHERE age > $1", types=(20,)) + _bind(b"x"), "22023"),
    ],
)
def test_errors_leave_the_connection_as_it_was(raw: RawClient, sent: bytes, sqlstate: str) -> None:
    raw.send(sent + SYNC)
    found = raw.until(b"Z")
    assert report(next(body for kind, body in found if kind == b"E"))["C"] == sqlstate
    raw.send(framed(b"Q", b"SHOW discreet.epsilon\0"))
    assert _kinds(raw.until(b"Z")) == "TDCZ"


def test_parameters_in_a_plain_query_are_refused(raw: RawClient) -> None:
    raw.send(framed(b"Q", b"SELECT COUNT(*) FROM visits WHERE age > $1\0"))
    assert report(raw.until(b"Z")[0][1])["C"] == "42P02"


def test_empty_queries(raw: RawClient) -> None:
    raw.send(framed(b"Q", b" ; -- nothing\0") + _parse(b"") + _bind() + _describe(b"P") + _execute() + SYNC)
    assert _kinds(raw.until(b"Z")) == "IZ"
    assert _kinds(raw.until(b"Z")) == "12nIZ"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x01" + struct.pack("!i", 4),
        b"Q" + struct.pack("!i", 3),
        b"Q" + struct.pack("!i", LONGEST + 1),
        b"Q" + struct.pack("!i", -1),
        framed(b"Q", b"SELECT 1"),
        framed(b"Q", b"SELECT 1\0more"),
        framed(b"Q", b"\xff\xfe\0"),
        framed(b"P", b"\0SELECT 1\0" + struct.pack("!H", 60000)),
        framed(b"B", b"\0\0" + struct.pack("!Hh", 1, 7)),
        framed(b"B", b"\0\0" + struct.pack("!HHi", 0, 1, 1 << 30)),
        framed(b"D", b"X\0"),
        framed(b"E", b"\0"),
        framed(b"p", b"password\0"),
    ],
)
def test_malformed_messages_end_the_connection(wire: Served, raw: RawClient, sent: bytes) -> None:
    raw.send(sent)
    found = raw.rest()
    assert [report(body)["C"] for kind, body in found if kind == b"E"] == ["08P01"]
    with psycopg.connect(wire.url(), autocommit=True) as other:  # nobody else is disturbed
        assert other.execute("SHOW server_version").fetchone() == ("15.0",)


@given(st.binary(max_size=80))
def test_no_body_is_read_otherwise_than_whole(body: bytes) -> None:
    for read in (pg.read_parse, pg.read_bind, pg.read_target, pg.read_execute):
        try:
            read(Body(body))
        except ProtocolViolation:
            continue


_FRAMED = st.builds(framed, st.sampled_from([bytes([i]) for i in b"QPBDECSHFdcfX"]), st.binary(max_size=20))


@given(st.lists(st.one_of(st.binary(max_size=30), _FRAMED), max_size=6))
@settings(max_examples=15)
def test_no_bytes_break_the_server(wire: Served, pieces: list[bytes]) -> None:
    client = signed_in(wire)
    client.send(b"".join(pieces) + framed(b"X"))
    client.socket.shutdown(1)
    found = client.rest()
    client.close()
    assert all(report(body)["C"] != "XX000" for kind, body in found if kind == b"E")


@given(st.binary(max_size=60))
@settings(max_examples=15)
def test_no_first_bytes_break_the_server(wire: Served, data: bytes) -> None:
    client = RawClient(wire.port)
    client.send(data)
    client.socket.shutdown(1)
    found = client.rest()
    client.close()
    assert all(report(body)["C"] in ("08P01", "28000", "0A000", "42601") for kind, body in found if kind == b"E")


# ---------------------------------------------------------------------------------------------------------------- start


def test_a_newer_minor_version_is_negotiated(wire: Served) -> None:
    client = RawClient(wire.port)
    client.send(startup({"user": "ann", "_pq_.new": "1"}, (3 << 16) + 2))
    kind, body = client.message() or (b"", b"")
    client.close()
    assert kind == b"v"
    assert struct.unpack("!ii", body[:8]) == (3 << 16, 1)


@pytest.mark.parametrize("code", [2 << 16, 0, 1234])
def test_other_protocols_are_refused(wire: Served, code: int) -> None:
    client = RawClient(wire.port)
    client.send(startup({"user": "ann"}, code))
    found = client.rest()
    client.close()
    assert report(found[0][1])["C"] == "08P01"


def test_encryption_is_declined_politely_without_a_certificate(wire: Served) -> None:
    client = RawClient(wire.port)
    for code in (80877104, 80877103):
        client.send(struct.pack("!iI", 8, code))
        assert client.socket.recv(1) == b"N"
    client.close()


def test_a_client_that_does_not_sign_in_is_cut_off() -> None:
    with served(settings=Settings(sign_in_deadline=0.05)) as wire:
        silent, slow = RawClient(wire.port), RawClient(wire.port)
        slow.send(b"\0\0")
        assert silent.rest() == []
        assert slow.rest() == []
        silent.close()
        slow.close()


def test_a_long_first_message_is_refused(wire: Served) -> None:
    client = RawClient(wire.port)
    client.send(struct.pack("!iI", 10_001, 3 << 16))
    assert report(client.rest()[0][1])["C"] == "08P01"
    client.close()


def test_iterations_are_those_of_the_verifiers(wire: Served) -> None:
    assert wire.identities.scram_verifier("ann")[0].iterations == ITERATIONS
