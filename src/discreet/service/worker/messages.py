"""Messages between the owner of the ledger and a worker: a length in four bytes, then JSON; nothing is ever unpickled.

Stored answers and caps travel as JSON, too, exactly.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from discreet.errors import InternalError
from discreet.ledger.serialization import read_budget, write_budget
from discreet.ledger.store.ledger_store import AnswerPlace, StoredAnswer, StoredHeader
from discreet.privacy import AnyBudget

MOST = 256 << 20
"""Bytes of the longest message."""

LENGTH = struct.Struct(">I")
PID = struct.Struct(">I")
"""The reply of a fork server about a worker that it has forked."""


def pack_message(message: dict[str, Any]) -> bytes:
    """Returns a message as bytes.

    Raises:
        InternalError: if it is too long.
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    if len(body) > MOST:
        raise InternalError("A message between processes is too long.")
    return LENGTH.pack(len(body)) + body


def parse_message(body: bytes) -> dict[str, Any]:
    """Returns the message of a body.

    Raises:
        InternalError: if it is none.
    """
    try:
        message = json.loads(body)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise InternalError("A message between processes cannot be read.")
    return message


class Channel:
    """The worker's end: it asks and waits for the reply, one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._file = connection, connection.makefile("rb")

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message to the owner."""
        self._connection.sendall(pack_message(message))

    def receive(self) -> dict[str, Any]:
        """Waits for a message.

        Raises:
            EOFError: if the owner is gone.
        """
        head = self._file.read(LENGTH.size)
        if len(head) < LENGTH.size:
            raise EOFError
        (length,) = LENGTH.unpack(head)
        body = self._file.read(length) if length <= MOST else b""
        if len(body) < length:
            raise EOFError
        return parse_message(body)


def write_stored(stored: StoredAnswer) -> list[Any]:
    """Returns a stored answer as a list; what answers are stored as is text."""
    return [stored.sequence, stored.charge, stored.replay_key, stored.payload.decode(), stored.event]


def read_stored(fields: list[Any]) -> StoredAnswer:
    """Returns the stored answer that `write_stored` wrote."""
    sequence, charge, replay_key, payload, event = fields
    return StoredAnswer(sequence, charge, replay_key, payload.encode(), event)


def write_header(header: StoredHeader) -> list[Any]:
    """Returns the header of a stored answer as a list."""
    return [list(header.place), header.question, header.header.decode(), header.event]


def read_header(fields: list[Any]) -> StoredHeader:
    """Returns the header that `write_header` wrote."""
    place, question, header, event = fields
    return StoredHeader(AnswerPlace(*place), question, header.encode(), event)


def write_cap(cap: AnyBudget | None) -> dict[str, str] | None:
    """Returns a cap as JSON fields; None for no cap."""
    return None if cap is None else write_budget(cap)


def read_cap(fields: dict[str, str] | None) -> AnyBudget | None:
    """Returns the amount that `write_cap` wrote."""
    return None if fields is None else read_budget(fields)
