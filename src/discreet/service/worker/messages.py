"""Messages between the owner of the book and a worker: a length in four bytes, then JSON. Nothing is ever unpickled."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from discreet.errors import InternalError

MOST = 256 << 20
"""Bytes of the longest message."""

LENGTH = struct.Struct(">I")
PID = struct.Struct(">I")
"""What a nursery says of a worker that it has forked."""


def packed(message: dict[str, Any]) -> bytes:
    """Returns a message as bytes.

    Raises:
        InternalError: if it is too long.
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    if len(body) > MOST:
        raise InternalError("A message between processes is too long.")
    return LENGTH.pack(len(body)) + body


def parsed(body: bytes) -> dict[str, Any]:
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
        """Sends a message."""
        self._connection.sendall(packed(message))

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
        return parsed(body)
