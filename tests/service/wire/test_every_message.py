"""Every kind of message, well formed or not, in every state of a connection: it is answered, or the connection ends."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from itertools import product

import pytest

from tests.service.whole_service import Connection
from tests.service.wire.raw_sign_in import first_message, signed_in
from tests.service.wire.served import RawClient, Served, framed, report, served, startup

KINDS = (*(bytes([letter]) for letter in b"QPBDECSHFdcfpXRZvzt"), b"\0", b"\xff")
BODIES = (b"", b"\0" * 12, b"SELECT 1\0", struct.pack("!iii", -1, -1, -1))
SYNC = framed(b"S")
STATES = {
    "idle": b"",
    "in a transaction": framed(b"Q", b"BEGIN\0"),
    "in a failed transaction": framed(b"Q", b"BEGIN\0") + framed(b"Q", b"nonsense\0"),
    "after an error, before Sync": framed(b"P", b"\0nonsense\0" + struct.pack("!H", 0)),
    "with a statement": framed(b"P", b"\0SELECT 1\0" + struct.pack("!H", 0)),
}


async def _told(wire: Served, sent: bytes) -> list[tuple[bytes, bytes]]:
    """What a connection of somebody who has signed in says to some bytes, until it has ended."""
    client, _ = await Connection.opened(wire.server, wire.keys["ann"][0])
    client.reader.feed_data(sent)
    client.reader.feed_eof()
    await client.task
    return list(_messages(bytes(client.output.data)))


def _messages(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    while data:
        end = 1 + int(struct.unpack("!i", data[1:5])[0])
        yield data[:1], data[5:end]
        data = data[end:]


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("state", STATES)
def test_a_signed_in_client_is_answered_or_let_go(wire: Served, state: str) -> None:
    for kind, body in product(KINDS, BODIES):
        told = wire.run(_told(wire, STATES[state] + framed(kind, body) + SYNC))
        codes = [report(text)["C"] for letter, text in told if letter == b"E"]
        assert kind == b"X" or told[-1][0] == b"Z" or codes[-1] == "08P01", (kind, body)
        assert "XX000" not in codes, (kind, body)


@pytest.mark.ci
def test_a_stranger_is_answered_or_let_go() -> None:
    begun = startup({"user": "ann"})
    with served() as wire:  # one of its own, since failed sign-ins are counted
        for before, kind in product((b"", begun, begun + first_message()), KINDS):
            client = RawClient(wire.port)
            client.send(before + b"".join(framed(kind, body) for body in BODIES))
            client.socket.shutdown(socket.SHUT_WR)  # nothing more comes from here
            told = client.rest()
            client.close()
            assert all(letter in (b"R", b"E", b"v") for letter, _ in told), (before, kind)


def test_a_call_of_a_function_is_refused_and_the_client_goes_on(wire: Served) -> None:
    client = signed_in(wire)
    client.send(framed(b"F", struct.pack("!IHHH", 1598, 0, 0, 0)))
    told = client.until(b"Z")
    assert [letter for letter, _ in told][-2:] == [b"E", b"Z"]
    assert report(told[-2][1])["C"] == "0A000"
    client.send(framed(b"Q", b"SELECT 1\0"))
    assert [letter for letter, _ in client.until(b"Z")] == [b"T", b"D", b"C", b"Z"]
    client.close()


def test_a_call_of_a_function_in_a_failed_transaction_is_answered_too(wire: Served) -> None:
    client = signed_in(wire)
    client.send(framed(b"Q", b"BEGIN\0"))
    client.until(b"Z")
    client.send(framed(b"F"))
    assert client.until(b"Z")[-1] == (b"Z", b"E")
    client.send(framed(b"F"))
    assert client.until(b"Z")[-1] == (b"Z", b"E")
    client.close()
