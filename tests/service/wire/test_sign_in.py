"""Who comes in: keys as passwords, TLS, limits, and cancelling."""

import asyncio
import datetime as dt
import ipaddress
import ssl
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from discreet.errors import InvalidParameter
from discreet.service.wire import startup_exchange
from tests.service.wire.raw_sign_in import first_message, last_message, signed_in
from tests.service.wire.served import PATIENT, RawClient, Served, framed, report, served, startup


def _tried(wire: Served, name: str, password: str, binding: str = "biws") -> list[tuple[bytes, int]]:
    """What a client sees: kinds and lengths of messages, and the error."""
    client = RawClient(wire.port)
    client.send(startup({"user": name}))
    seen = [client.message()]
    client.send(first_message())
    seen.append(client.message())
    assert seen[1] is not None
    client.send(last_message(seen[1][1][4:].decode(), password, binding=binding))
    seen += client.rest()
    client.close()
    return [(each[0], len(each[1])) for each in seen if each is not None]


def test_strangers_and_wrong_keys_see_the_same(wire: Served) -> None:
    wrong = _tried(wire, "ann", "x" * 20)
    assert [kind for kind, _ in wrong] == [b"R", b"R", b"E"]
    assert _tried(wire, "nobody", "x" * 20) == wrong
    assert _tried(wire, "nobody", wire.keys["ann"][1]) == wrong
    assert _tried(wire, "bob", wire.keys["ann"][1]) == wrong
    assert _tried(wire, "ann", wire.keys["ann"][1], binding="eSws") == wrong  # another channel binding than was said


def test_salts_of_a_name_stay_the_same(wire: Served) -> None:
    def salt(name: str) -> str:
        client = RawClient(wire.port)
        client.send(startup({"user": name}) + first_message())
        client.message()
        _, body = client.message() or (b"", b"")
        client.close()
        return body[4:].decode().split(",")[1]

    assert salt("nobody") == salt("nobody")
    assert salt("nobody") != salt("somebody")
    assert salt("ann") == salt("ann")


def test_a_revoked_key_does_not_come_in(wire: Served) -> None:
    key_id, text = wire.key("bob")
    wire.identities.revoke_key(wire.identities.local, key_id)
    with pytest.raises(psycopg.OperationalError, match="wrong"):
        psycopg.connect(wire.url("bob"), password=text)


def test_nothing_is_done_before_the_sign_in(wire: Served) -> None:
    before = len(wire.desk.done)
    client = RawClient(wire.port)
    client.send(startup({"user": "ann"}) + framed(b"Q", b"SET discreet.epsilon = 1\0"))
    found = client.rest()
    client.close()
    assert [kind for kind, _ in found] == [b"R", b"E"]
    assert report(found[1][1])["C"] == "08P01"
    assert len(wire.desk.done) == before


@pytest.mark.parametrize("mechanism", [b"SCRAM-SHA-256-PLUS", b"PLAIN", b""])
def test_other_mechanisms_are_refused(wire: Served, mechanism: bytes) -> None:
    client = RawClient(wire.port)
    client.send(startup({"user": "ann"}) + framed(b"p", mechanism + b"\0" + struct.pack("!i", 0)))
    found = client.rest()
    client.close()
    assert report(found[-1][1])["C"] == "28P01"


def test_settings_come_with_the_connection(wire: Served) -> None:
    options = "-c discreet.epsilon=0.125 --application_name=a\\ b"
    with psycopg.connect(wire.url(), options=options, autocommit=True) as connection:
        assert connection.execute("SHOW discreet.epsilon").fetchone() == ("0.125",)
        assert connection.info.parameter_status("application_name") == "a b"
        connection.execute("SET discreet.epsilon = 1")
        connection.execute("RESET ALL")
        assert connection.execute("SHOW discreet.epsilon").fetchone() == ("0.125",)


@pytest.mark.parametrize("options", ["-c no.such=1", "-c discreet.epsilon=-1", "-x", "-c nothing"])
def test_bad_options_are_refused(wire: Served, options: str) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(wire.url(), options=options)


def test_replication_is_refused(wire: Served) -> None:
    client = RawClient(wire.port)
    client.send(startup({"user": "ann", "replication": "true"}))
    assert report(client.rest()[0][1])["C"] == "0A000"
    client.close()


def test_failed_sign_ins_are_limited() -> None:
    with served() as wire:
        codes = []
        for _ in range(22):
            client = RawClient(wire.port)
            client.send(startup({"user": "ann"}) + framed(b"p", b"PLAIN\0" + struct.pack("!i", 0)))
            codes.append(report(client.rest()[-1][1])["C"])
            client.close()
        assert codes[0] == "28P01"
        assert codes[-1] == "53400"
        signed_in(wire).close()  # whoever has a key comes in, though others of the address failed


def test_connections_are_limited_for_each_and_for_all() -> None:
    few = replace(PATIENT, wire_connections_per_person=2, wire_connections=4, reserved_connections=0)
    with served(settings=few) as wire:
        first, second = signed_in(wire), signed_in(wire)
        with pytest.raises(psycopg.OperationalError, match="too many"):
            psycopg.connect(wire.url())
        third, fourth = signed_in(wire, "bob"), signed_in(wire, "bob")
        fifth = RawClient(wire.port)
        assert report(fifth.rest()[0][1])["C"] == "53300"  # those who have signed in stay
        for each in (first, second, third, fourth, fifth):
            each.close()


@pytest.mark.ci
def test_silent_connections_make_way_for_who_signs_in() -> None:
    few = replace(PATIENT, wire_connections=6, reserved_connections=2, connections_per_address=3)
    with served(settings=few) as wire:
        silent = [RawClient(wire.port) for _ in range(20)]
        clients = [signed_in(wire) for _ in range(3)]
        assert [report(each.rest()[0][1])["C"] for each in silent[:17]] == ["53300"] * 17  # the oldest went first
        clients += [signed_in(wire, "bob") for _ in range(2)]
        with psycopg.connect(wire.url(), autocommit=True) as last:  # the sixth: all others are silent
            assert last.execute("SELECT 1").fetchone() == (1,)
        for each in (*silent, *clients):
            each.close()


def test_silent_connections_of_many_addresses_leave_the_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(startup_exchange, "peer", lambda _: f"127.0.{next(numbers) % 250}.1")
    few = replace(PATIENT, wire_connections=6, reserved_connections=2)
    with served(settings=few) as wire:
        silent = [RawClient(wire.port) for _ in range(12)]
        clients = [signed_in(wire) for _ in range(5)]
        assert wire.call(lambda: len(wire.server._counted)) <= 6
        for each in (*silent, *clients):
            each.close()


# -------------------------------------------------------------------------------------------------------------- cancel


@pytest.fixture
def held(wire: Served) -> Iterator[asyncio.Event]:
    """Questions wait until the event is set."""
    event = wire.call(asyncio.Event)
    wire.desk.held = event
    yield event
    wire.call(event.set)
    wire.desk.held = None


@pytest.mark.usefixtures("held")
def test_a_question_can_be_cancelled(wire: Served) -> None:
    with psycopg.connect(wire.url(), autocommit=True) as connection:
        connection.execute("SET discreet.epsilon = 0.01")
        asked = wire.desk.asked()

        def cancel() -> None:
            while wire.desk.asked() == asked:
                pass
            connection.cancel_safe()

        other = threading.Thread(target=cancel)
        other.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT COUNT(*) AS n FROM staff WHERE age > 3")
        other.join()
        assert connection.execute("SHOW discreet.epsilon").fetchone() == ("0.01",)


@pytest.mark.usefixtures("held")
def test_a_guessed_cancel_request_stops_nobody(wire: Served) -> None:
    client = signed_in(wire)
    client.send(framed(b"Q", b"SET discreet.epsilon = 0.01\0"))
    client.until(b"Z")
    asked = wire.desk.asked()
    client.send(framed(b"Q", b"SELECT COUNT(*) AS n FROM staff WHERE age > 4\0"))
    while wire.desk.asked() == asked:
        pass
    stranger = RawClient(wire.port)
    stranger.send(struct.pack("!iIII", 16, 80877102, 1, 1))
    assert stranger.rest() == []
    stranger.close()
    assert wire.desk.held is not None
    wire.call(wire.desk.held.set)
    assert [kind for kind, _ in client.until(b"Z")] == [b"N", b"T", b"D", b"C", b"Z"]
    client.close()


def test_closing_tells_clients() -> None:
    with served() as wire:
        client = signed_in(wire)
        wire.run(wire.server.close())
        assert report(client.rest()[0][1])["C"] == "57P01"
        client.close()


# ----------------------------------------------------------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of our own, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Files of a certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    plain = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(plain)
    return folder / "cert.pem", folder / "key.pem"


def _context(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(*certificate)
    return made


def test_tls_is_used_and_checked(certificate: tuple[Path, Path]) -> None:
    with served(tls=_context(certificate)) as wire:
        how = {"sslmode": "verify-full", "sslrootcert": str(certificate[0])}
        with psycopg.connect(wire.url(), autocommit=True, **how) as connection:  # type: ignore[arg-type]
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SHOW server_version").fetchone() == ("15.0",)


def test_what_is_sent_in_the_clear_before_tls_ends_it(certificate: tuple[Path, Path]) -> None:
    with served(tls=_context(certificate)) as wire:
        client = RawClient(wire.port)
        client.send(struct.pack("!iI", 8, 80877103) + startup({"user": "ann"}))
        found = client.socket.recv(1)
        client.close()
        assert found != b"S"


def test_other_machines_need_tls(wire: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service.wire.startup_exchange.peer", lambda _: "192.0.2.7")
    client = RawClient(wire.port)
    client.send(startup({"user": "ann"}))
    assert report(client.rest()[0][1])["C"] == "28000"
    client.close()


def test_no_address_but_loopback_without_tls(wire: Served) -> None:
    with pytest.raises(InvalidParameter) as caught:
        wire.run(wire.server.start("0.0.0.0", 0))
    assert caught.value.name == "host"
