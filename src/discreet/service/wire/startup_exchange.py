"""How a connection begins: TLS, the proof of a key, and the settings of the client.

Formal guarantee: a client with an unknown name and one with a wrong key see the same messages; nothing but the exchange
of SCRAM is answered before it ends.
"""

from __future__ import annotations

import asyncio
import ssl
import struct

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, NotAuthenticated
from discreet.service.identity import Identities, RateLimits
from discreet.service.identity.scram import MECHANISM, Exchange
from discreet.service.settings import LOOPBACK
from discreet.service.wire import protocol_messages as pg
from discreet.service.wire.protocol_messages import Body, ProtocolViolation, WireError
from discreet.service.wire.session_parameters import SessionParameters
from discreet.service.wire.sqlstates import wire_error

_NOT_SETTINGS = {"user", "database", "options", "replication"}
_ROUNDS = 3  # of asking for encryption


def wrong() -> WireError:
    """Returns the one report for unknown names and for wrong keys."""
    return WireError("28P01", "The name or the key is wrong", "Use the text of your key as the password.", fatal=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequest:
    """Asks to stop what another connection does."""

    process: int
    secret: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupMessage:
    """The first message of a client: its user, database and settings."""

    user: str
    database: str
    settings: dict[str, str]


async def begin(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext | None
) -> StartupMessage | CancelRequest:
    """Returns what a client wants, after TLS if it asked for it.

    Raises:
        ProtocolViolation: if it speaks another protocol.
        WireError: if it must use TLS and does not, or asks for something unsupported.
    """
    secure = False
    for _ in range(_ROUNDS):
        body = await pg.read_body(reader, most=pg.LONGEST_STARTUP)
        code = body.uint32()
        if code == pg.CANCEL_REQUEST:
            found = CancelRequest(process=body.uint32(), secret=body.uint32())
            body.end()
            return found
        if code == pg.SSL_REQUEST and tls is not None and not secure:
            await _encrypt(reader, writer, tls)
            secure = True
        elif code in (pg.SSL_REQUEST, pg.GSS_REQUEST):
            writer.write(b"N")
        else:
            return _start(code, body, writer, secure=secure)
    raise ProtocolViolation("encryption is asked for again and again")


async def _encrypt(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext) -> None:
    """Starts TLS; text sent in the clear after the request would pass for encrypted, and ends the connection."""
    if getattr(reader, "_buffer", b""):
        raise ProtocolViolation("something was sent before TLS began")
    writer.write(b"S")
    await writer.drain()
    await writer.start_tls(tls)


def _start(code: int, body: Body, writer: asyncio.StreamWriter, *, secure: bool) -> StartupMessage:
    if code >> 16 != 3:
        raise ProtocolViolation("only version 3 of the protocol is spoken")
    given = pg.startup_parameters(body)
    if not secure and not is_loopback(peer(writer)):
        raise WireError("28000", "TLS is needed from another machine", "Connect with sslmode=require.", fatal=True)
    if given.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise WireError("0A000", "Replication is not supported", fatal=True)
    _negotiate(code, given, writer)
    user = given.get("user", "")
    if not user:
        raise WireError("28000", "The connection names no user", "Set user to your name.", fatal=True)
    named = [name for name in given if name not in _NOT_SETTINGS and not name.startswith("_pq_.")]
    settings = {name: given[name] for name in named} | _options(given.get("options", ""))
    return StartupMessage(user=user, database=given.get("database") or user, settings=settings)


def _negotiate(code: int, given: dict[str, str], writer: asyncio.StreamWriter) -> None:
    """Answers a client of a newer minor version that the server speaks 3.0."""
    unknown = [name for name in given if name.startswith("_pq_.")]
    if code & 0xFFFF or unknown:
        named = b"".join(map(pg.zero_ended, unknown))
        writer.write(pg.message(b"v", struct.pack("!ii", pg.PROTOCOL_3, len(unknown)) + named))


def _options(text: str) -> dict[str, str]:
    r"""Returns the settings of `-c name=value` and `--name=value`; a backslash keeps a space.

    >>> _options("-c discreet.epsilon=0.1 --application_name=a\\ b")
    {'discreet.epsilon': '0.1', 'application_name': 'a b'}
    """
    found: dict[str, str] = {}
    words = [word.replace("\0", " ") for word in text.replace("\\ ", "\0").split()]
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        elif word.startswith(("-c", "--")):
            word = word[2:]
        else:
            word = ""
        name, given, value = word.partition("=")
        if not given:
            raise WireError("42601", "The options cannot be read", "Write -c name=value.", fatal=True)
        found[name.replace("-", "_")] = value
    return found


def settings_of(start: StartupMessage) -> SessionParameters:
    """Returns the settings of a connection.

    Raises:
        WireError: if one is not known or does not fit; it ends the connection.
    """
    try:
        return SessionParameters(start.settings)
    except (WireError, DiscreetError) as error:
        raise wire_error(error).ending() from None


async def prove(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    start: StartupMessage,
    identities: Identities,
    limits: RateLimits,
) -> str:
    """Returns the id of the key that a client has proven to have.

    Raises:
        WireError: if it has not, without saying why.
    """
    try:
        return await _run_exchange(reader, writer, Exchange(identities.scram_verifier(start.user)))
    except NotAuthenticated:
        try:
            limits.note_failure(peer(writer))
        except DiscreetError as error:
            raise wire_error(error).ending() from None
        raise wrong() from None


async def _run_exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, exchange: Exchange) -> str:
    writer.write(pg.authentication(10, pg.zero_ended(MECHANISM) + b"\0"))
    await writer.drain()
    first = await _response(reader)
    if first.text() != MECHANISM:
        raise NotAuthenticated
    message = first.take(first.int32())
    first.end()
    writer.write(pg.authentication(11, exchange.first(message)))
    await writer.drain()
    last = await _response(reader)
    said, key_id = exchange.final(last.data)
    writer.write(pg.authentication(12, said) + pg.authentication(0))
    return key_id


async def _response(reader: asyncio.StreamReader) -> Body:
    kind, body = await reader.readexactly(1), await pg.read_body(reader, most=pg.LONGEST_STARTUP)
    if kind != b"p":
        raise ProtocolViolation("a step of the sign-in is missing")
    return body


def peer(writer: asyncio.StreamWriter) -> str:
    """Returns the address of a client; "" if it has none."""
    found = writer.get_extra_info("peername")
    return str(found[0]) if isinstance(found, tuple) and found else ""


def is_loopback(address: str) -> bool:
    """Returns whether an address is this machine's own."""
    return address in LOOPBACK or address.startswith(("127.", "::ffff:127."))
