"""The server of the PostgreSQL wire: it listens, signs clients in, and ends connections in good order."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import cast

from discreet.errors import DiscreetError, InvalidParameter
from discreet.noise.tokens import random_bytes
from discreet.presentation.documents.error_documents import OUR_FAULT
from discreet.service.acts import StewardActions
from discreet.service.connection_limits import ConnectionLimits, OpenConnection
from discreet.service.identity import Identities, RateLimits
from discreet.service.request_executor import RequestExecutor
from discreet.service.settings import LOOPBACK, Settings
from discreet.service.wire import protocol_messages as pg
from discreet.service.wire import startup_exchange
from discreet.service.wire.catalog.catalog_executor import CatalogExecutor
from discreet.service.wire.protocol_messages import ProtocolViolation, WireError
from discreet.service.wire.query_executor import QueryExecutor
from discreet.service.wire.startup_exchange import CancelRequest, StartupMessage
from discreet.service.wire.wire_connection import WireConnection
from discreet.service.wire.wire_session import WireSession

_LOG = logging.getLogger("discreet.wire")


def _stopping() -> WireError:
    return WireError("57P01", "The service is stopping", fatal=True)


def _full() -> WireError:
    return WireError("53300", "There are too many connections", "Close some, and try again.", fatal=True)


class WireServer:
    """Serves clients of PostgreSQL.

    Args:
        desk: answers queries.
        identities: the people and their keys.
        acts: return remaining budgets.
        limits: count requests.
        settings: of the service: how many connections there may be, and how soon a client must have signed in; a
            catalog query has the deadline of planning.
    """

    def __init__(
        self,
        desk: RequestExecutor,
        identities: Identities,
        acts: StewardActions,
        limits: RateLimits,
        settings: Settings,
    ) -> None:
        self._desk, self._identities, self._acts, self._limits = desk, identities, acts, limits
        self._catalog = CatalogExecutor(
            deadline=settings.planning_deadline, waiting=settings.queue, per_caller=settings.queue_per_caller
        )
        self._counted = ConnectionLimits(
            most=settings.wire_connections,
            reserved=settings.reserved_connections,
            per_address=settings.connections_per_address,
        )
        self._most_per_user, self._seconds = settings.wire_connections_per_person, settings.sign_in_deadline
        self._open: dict[tuple[int, int], WireConnection] = {}
        self._users: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._tls: ssl.SSLContext | None = None
        self._server: asyncio.Server | None = None
        self._warming: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int, ssl_context: ssl.SSLContext | None = None) -> int:
        """Begins to listen.

        Args:
            host: an address; beyond loopback it needs TLS.
            port: 0 for a free one.
            ssl_context: of TLS; clients of other machines must use it.

        Returns:
            The port.

        Raises:
            InvalidParameter: if the address needs TLS and there is none.
        """
        if host not in LOOPBACK and ssl_context is None:
            hint = "Set tls_certificate and tls_key, or listen on 127.0.0.1."
            raise InvalidParameter("host", host, "to be loopback without TLS", hint)
        self._tls = ssl_context
        self._server = await asyncio.start_server(self._serve_connection, host, port, limit=1 << 16)
        self._warming = asyncio.create_task(self._catalog.warm())
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stops listening, and ends all connections; what was charged stays charged."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait([self._warming])
        await self._catalog.close()

    # -------------------------------------------------------------------------------------------------- connections

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection from its first byte to its last; nothing it does ends another."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._tasks.add(task)
        counted = self._counted.open(startup_exchange.peer(writer), lambda: _cancel(task))
        try:
            if counted is None:
                raise _full()
            await self._authenticate_and_serve(reader, writer, counted)
        except asyncio.CancelledError:
            await _report(writer, _full() if counted is not None and counted.ended else _stopping())
        except TimeoutError:
            writer.transport.abort()  # it does not take what is sent: closing would wait for it
        except (OSError, EOFError):  # EOFError: the client is gone in the midst of a message
            pass
        except WireError as error:
            await _report(writer, error)
        except Exception:  # noqa: BLE001 - whatever it is, it is not for the client, and ends this connection only
            _log("fault")
            await _report(writer, WireError("XX000", OUR_FAULT, fatal=True))
        finally:
            self._tasks.discard(task)
            if counted is not None:
                counted.close()
            writer.close()

    async def _authenticate_and_serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counted: OpenConnection
    ) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                found = await startup_exchange.begin(reader, writer, self._tls)
                if isinstance(found, CancelRequest):
                    self._cancel(found)
                    return
                key_id = await startup_exchange.prove(reader, writer, found, self._identities, self._limits)
            counted.known = counted.busy = True
            await self._serve(reader, writer, found, key_id)
        except (ProtocolViolation, WireError) as error:
            violation = WireError("08P01", "The client does not speak the protocol", fatal=True)
            report = violation if isinstance(error, ProtocolViolation) else error
            _log("refused", sqlstate=report.sqlstate)
            raise report from None

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, start: StartupMessage, key_id: str
    ) -> None:
        try:
            caller = self._identities.caller_of_key(key_id)
        except DiscreetError:
            raise startup_exchange.wrong() from None
        if self._users[caller.name] >= self._most_per_user:
            raise _full()
        parameters = startup_exchange.settings_of(start)
        lane = QueryExecutor(
            desk=self._desk,
            identities=self._identities,
            limits=self._limits,
            catalog=self._catalog,
            parameters=parameters,
            key_id=key_id,
            database=start.database,
        )
        log = partial(_log, credential=key_id)
        connection = WireConnection(reader, writer, WireSession(lane, self._acts), parameters, log)
        await self._register_and_serve(connection, writer, caller.name)

    async def _register_and_serve(self, connection: WireConnection, writer: asyncio.StreamWriter, name: str) -> None:
        drawn = random_bytes(16)  # both parts are random: a cancel request proves itself by nothing else
        key = int.from_bytes(drawn[:4], "big") >> 1, int.from_bytes(drawn[4:8], "big")
        self._open[key] = connection
        self._users[name] += 1
        try:
            writer.write(pg.backend_key(*key))
            await connection.serve()
        finally:
            self._open.pop(key, None)
            self._users -= Counter([name])  # which keeps no zero

    def _cancel(self, asked: CancelRequest) -> None:
        connection = self._open.get((asked.process, asked.secret))
        if connection is not None:
            connection.stop()


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _report(writer: asyncio.StreamWriter, error: WireError) -> None:
    """Says why a connection ends, if the client still listens."""
    with suppress(OSError, TimeoutError, RuntimeError):
        writer.write(pg.error(error))
        async with asyncio.timeout(1):
            await writer.drain()


def _log(event: str, **more: str) -> None:
    """Logs one line of JSON, without queries, values and names."""
    _LOG.info("%s", json.dumps({"where": "wire", "event": event, **more}))
