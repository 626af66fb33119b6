"""Messages of PostgreSQL's protocol, version 3: cut from a stream of bytes, read and written.

Everything a client sends is bounded before it is read: a message has at most `LONGEST` bytes, the first one
`LONGEST_STARTUP`. What does not fit its own length is a `ProtocolViolation`, after which the connection ends.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from functools import partialmethod
from typing import NamedTuple

from discreet.dataclass import dataclass
from discreet.service.wire.value_formats import SIZES

LONGEST = 1 << 20
LONGEST_STARTUP = 10_000
MOST_PARAMETERS = 1_000
MOST_NAME = 200  # characters of the names of statements and portals

PROTOCOL_3 = 3 << 16
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


class ProtocolViolation(Exception):
    """A client does not speak the protocol; the connection ends."""


class WireError(Exception):
    """An error of the protocol or of a command, as it is reported.

    Args:
        sqlstate: PostgreSQL's code.
        message: what is wrong.
        hint: what to do.
        place: the character of the statement at which it is, from 0; None if it has no place.
        fatal: whether the connection ends.
    """

    def __init__(
        self, sqlstate: str, message: str, hint: str = "", *, place: int | None = None, fatal: bool = False
    ) -> None:
        self.sqlstate, self.message, self.hint, self.place, self.fatal = sqlstate, message, hint, place, fatal
        super().__init__(message)

    def shift_place(self, offset: int) -> WireError:
        """Returns the same error for a text that begins so many characters earlier."""
        place = None if self.place is None else self.place + offset
        return WireError(self.sqlstate, self.message, self.hint, place=place, fatal=self.fatal)

    def ending(self) -> WireError:
        """Returns the same error, after which the connection ends."""
        return WireError(self.sqlstate, self.message, self.hint, place=self.place, fatal=True)


@dataclass(slots=True)
class Body:
    """The bytes of one message, read from the left: texts, and numbers of two and four bytes."""

    data: bytes
    place: int = 0

    def take(self, count: int) -> bytes:
        """Returns so many bytes.

        Raises:
            ProtocolViolation: if there are fewer.
        """
        end = self.place + count
        if count < 0 or end > len(self.data):
            raise ProtocolViolation("a message ends too early")
        taken, self.place = self.data[self.place : end], end
        return taken

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    int16, uint16 = partialmethod(_number, "!h"), partialmethod(_number, "!H")
    int32, uint32 = partialmethod(_number, "!i"), partialmethod(_number, "!I")

    def text(self) -> str:
        """Returns a text up to its closing zero.

        Raises:
            ProtocolViolation: if there is none, or the text is not UTF-8.
        """
        end = self.data.find(b"\0", self.place)
        if end < 0:
            raise ProtocolViolation("a text does not end")
        raw, self.place = self.data[self.place : end], end + 1
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolViolation("a text is not UTF-8") from None

    def name(self) -> str:
        """Returns the name of a statement or a portal."""
        found = self.text()
        if len(found) > MOST_NAME:
            raise ProtocolViolation("a name is too long")
        return found

    def end(self) -> None:
        """Checks that the message has ended.

        Raises:
            ProtocolViolation: if it is longer.
        """
        if self.place != len(self.data):
            raise ProtocolViolation("a message is longer than what it says")


async def read_body(reader: asyncio.StreamReader, *, most: int = LONGEST) -> Body:
    """Returns the body of a message whose kind was read, or of a first message, which has none.

    Raises:
        ProtocolViolation: if its length is absurd.
        IncompleteReadError: if the client is gone.
    """
    length = int(struct.unpack("!i", await reader.readexactly(4))[0])
    if not 4 <= length <= most:
        raise ProtocolViolation("the length of a message is out of range")
    return Body(await reader.readexactly(length - 4))


# ------------------------------------------------------------------------------------------------- what clients send


class Bind(NamedTuple):
    """Gives values to the parameters of a statement.

    Attributes:
        formats, result_formats: 0 for text and 1 for binary; none for text throughout, one for all.
        values: as bytes; None for NULL.
    """

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


def read_parse(body: Body) -> tuple[str, str, tuple[int, ...]]:
    """Returns the name and the text of a statement to prepare, and the types of its parameters."""
    name, sql = body.name(), body.text()
    types = tuple(body.uint32() for _ in range(_count(body)))
    body.end()
    return name, sql, types


def read_bind(body: Body) -> Bind:
    """Returns the values that a statement is given."""
    portal, statement, formats = body.name(), body.name(), _formats(body)
    values = tuple(_value(body) for _ in range(_count(body)))
    results = _formats(body)
    body.end()
    if len(formats) not in (0, 1, len(values)):
        raise ProtocolViolation("formats and parameters differ in number")
    return Bind(portal, statement, formats, values, results)


def read_target(body: Body) -> tuple[str, str]:
    """Returns what Describe and Close are about: S for a statement or P for a portal, and its name."""
    kind, name = body.take(1), body.name()
    body.end()
    if kind not in (b"S", b"P"):
        raise ProtocolViolation("neither a statement nor a portal is meant")
    return kind.decode(), name


def read_execute(body: Body) -> tuple[str, int]:
    """Returns the portal whose rows are wanted, and how many at most; 0 for all."""
    portal, most = body.name(), body.int32()
    body.end()
    return portal, max(0, most)


def _count(body: Body) -> int:
    count = body.uint16()
    if count > MOST_PARAMETERS:
        raise ProtocolViolation("there are too many parameters or columns")
    return count


def _formats(body: Body) -> tuple[int, ...]:
    found = tuple(body.int16() for _ in range(_count(body)))
    if any(each not in (0, 1) for each in found):
        raise ProtocolViolation("a format is neither text nor binary")
    return found


def _value(body: Body) -> bytes | None:
    length = body.int32()
    return None if length == -1 else body.take(length)


def startup_parameters(body: Body) -> dict[str, str]:
    """Returns what a client says of itself in its first message."""
    found: dict[str, str] = {}
    while name := body.text():
        found[name] = body.text()
    body.end()
    return found


# --------------------------------------------------------------------------------------------------- what we answer


class FieldDescription(NamedTuple):
    """A column of rows to come: its name, and PostgreSQL's type."""

    name: str
    oid: int


def message(kind: bytes, body: bytes = b"") -> bytes:
    """Returns a message of a kind."""
    return kind + struct.pack("!i", len(body) + 4) + body


def zero_ended(text: str) -> bytes:
    """Returns a text as the protocol has it; a zero inside would end it."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def authentication(code: int, more: bytes = b"") -> bytes:
    """Returns a step of the sign-in of a client."""
    return message(b"R", struct.pack("!i", code) + more)


def parameter_status(name: str, value: str) -> bytes:
    """Returns the message that reports a setting."""
    return message(b"S", zero_ended(name) + zero_ended(value))


def backend_key(process: int, secret: int) -> bytes:
    """Returns the message with the numbers that cancel a query of this connection."""
    return message(b"K", struct.pack("!II", process, secret))


def ready(status: str) -> bytes:
    """Returns the message that the next command may come."""
    return message(b"Z", status.encode())


def command_complete(tag: str) -> bytes:
    """Returns the message that a command is done."""
    return message(b"C", zero_ended(tag))


def row_description(fields: Sequence[FieldDescription], formats: Sequence[int]) -> bytes:
    """Returns the message with the columns of rows to come."""
    parts = [struct.pack("!H", len(fields))]
    for field, form in zip(fields, formats, strict=True):
        size = SIZES.get(field.oid, -1)
        parts.append(zero_ended(field.name) + struct.pack("!IhIhih", 0, 0, field.oid, size, -1, form))
    return message(b"T", b"".join(parts))


def parameter_description(types: Sequence[int]) -> bytes:
    """Returns the message with the types of a statement's parameters."""
    return message(b"t", struct.pack(f"!H{len(types)}I", len(types), *types))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """Returns the message of one row."""
    parts = [struct.pack("!H", len(values))]
    parts += [struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value for value in values]
    return message(b"D", b"".join(parts))


def error(found: WireError) -> bytes:
    """Returns the report of an error; positions count characters of the whole message, from 1."""
    position = "" if found.place is None else str(found.place + 1)
    severity = "FATAL" if found.fatal else "ERROR"
    return _report(b"E", severity, found.sqlstate, M=found.message, H=found.hint, P=position)


def notice(text: str, *, detail: str = "") -> bytes:
    """Returns the message of a notice."""
    return _report(b"N", "NOTICE", "00000", M=text, D=detail)


def _report(kind: bytes, severity: str, code: str, **more: str) -> bytes:
    """Returns a report with its fields by letter, without those that have no text."""
    fields = {"S": severity, "V": severity, "C": code, **more}
    parts = [letter.encode() + zero_ended(text) for letter, text in fields.items() if text]
    return message(kind, b"".join(parts) + b"\0")


PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY_QUERY, SUSPENDED = message(b"n"), message(b"I"), message(b"s")
