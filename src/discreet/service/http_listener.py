"""The listener of HTTP: a bounded number of connections, and deadlines for what their clients owe.

Connections are counted when they are accepted, before TLS, so that a client that never speaks is counted as well. A
deadline runs from there to the end of the first request's head, and again after each response; the body has one of its
own (`api.http_guard`), and so has a client that does not take what is sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from discreet.errors import InvalidParameter
from discreet.service.connection_limits import CONNECTION, ConnectionLimits, OpenConnection
from discreet.service.settings import Settings

KEEP_ALIVE = 15  # seconds between two requests on a connection
_BACKLOG = 512  # connections that wait to be accepted
_AT_ONCE = 16  # connections that are accepted before others are served

Peer = tuple[str, int]


class _Accepted(socket.socket):
    """A connection that leaves the count when it is closed."""

    timed: TimedConnection | None = None

    def close(self) -> None:
        super().close()
        if self.timed is not None:
            self.timed.close()
            self.timed = None


class TimedConnection:
    """An accepted connection, which is ended unless its client does in time what it owes."""

    def __init__(self, listener: LimitedListener, accepted: _Accepted, peer: Peer) -> None:
        self._listener, self._accepted, self._peer = listener, accepted, peer
        self._timer: asyncio.TimerHandle | None = None
        self._requests = 0
        self.counted: OpenConnection | None = None

    def end(self) -> None:
        """Ends it, whatever state it is in: its transport reads the end, and closes."""
        with suppress(OSError):
            self._accepted.shutdown(socket.SHUT_RDWR)

    def expect(self, seconds: float) -> None:
        """Ends it unless the head of a request is there by then."""
        self.satisfy()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end)

    @contextmanager
    def serving(self, rest: float) -> Iterator[None]:
        """Serves a request; after the last, the next one has so many seconds to come.

        One may begin while the one before it tidies up after its response.
        """
        self._requests += 1
        self.satisfy()
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self.expect(rest)
            if self.counted is not None:
                self.counted.busy = bool(self._requests)

    def satisfy(self) -> None:
        """Takes the deadline away: a request is there."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Takes it out of the count."""
        self.satisfy()
        self._listener.open.pop(self._peer, None)
        if self.counted is not None:
            self.counted.close()


class LimitedListener(socket.socket):
    """A listening socket that accepts as many connections as there may be.

    Args:
        host, port: where; port 0 for a free one.
        limits: how many, of whom.
        header_deadline: seconds from a connection to the head of its first request, TLS included.

    Raises:
        InvalidParameter: if the address is taken.
    """

    def __init__(self, host: str, port: int, limits: ConnectionLimits, *, header_deadline: float) -> None:
        super().__init__(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self._limits, self._deadline, self._burst = limits, header_deadline, 0
        self.open: dict[Peer, TimedConnection] = {}
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.bind((host, port))
            self.listen(_BACKLOG)  # from now on no client is refused, however soon it comes
        except OSError as error:
            self.close()
            hint = "Choose another with --port, or stop the program that listens there."
            raise InvalidParameter("port", port, f"to be free: {error.strerror}", hint) from None

    def accept(self) -> tuple[socket.socket, Any]:
        """Returns the next connection that there is room for; others are closed.

        Raises:
            BlockingIOError: if there is none, or others are to be served first: those that were ended are closed then.
        """
        while True:
            self._burst += 1
            if self._burst > _AT_ONCE:
                self._burst = 0
                raise BlockingIOError
            plain, address = super().accept()
            accepted = _Accepted(fileno=plain.detach())
            timed = TimedConnection(self, accepted, (str(address[0]), int(address[1])))
            timed.counted = self._limits.open(str(address[0]), timed.end)
            if timed.counted is None:
                accepted.close()
                continue
            accepted.timed = self.open[str(address[0]), int(address[1])] = timed
            timed.expect(self._deadline)
            return accepted, address


class WatchedApp:
    """An application behind a listener: its requests know their connections, and end those that owe too much.

    Args:
        app: what is served.
        listener: from which requests come.
        settings: deadlines, and whether a proxy names the client.
    """

    def __init__(self, app: ASGIApp, listener: LimitedListener, settings: Settings) -> None:
        proxied: Any = ProxyHeadersMiddleware(app, trusted_hosts="127.0.0.1")  # type: ignore[arg-type]
        self._app: ASGIApp = proxied if settings.behind_proxy else app  # inside: here the client is the connection's
        self._listener, self._settings = listener, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request under the deadlines of its connection."""
        client = scope.get("client")
        timed = self._listener.open.get((client[0], client[1])) if client else None
        if timed is None or timed.counted is None:
            await self._app(scope, receive, send)
            return
        passage = _Passage(timed, timed.counted, receive, send, self._settings.send_deadline)
        scope.setdefault("extensions", {})[CONNECTION] = timed.counted
        with timed.serving(KEEP_ALIVE + self._settings.header_deadline):
            timed.counted.busy = True
            await self._app(scope, passage.receive, passage.send)


class _Passage:
    """The messages of one request; while the client is waited for, its connection is not busy."""

    def __init__(
        self, timed: TimedConnection, counted: OpenConnection, receive: Receive, send: Send, send_deadline: float
    ) -> None:
        self._timed, self._counted, self._deadline = timed, counted, send_deadline
        self._receive, self._send, self._whole = receive, send, False

    async def receive(self) -> Message:
        if self._whole:  # next comes only that the client has gone, which is awaited during the work
            return await self._receive()
        self._counted.busy = False
        try:
            message = await self._receive()
        finally:
            self._counted.busy = True
        self._whole = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._deadline):
                await self._send(message)
        except TimeoutError:
            self._timed.end()
            raise ClientDisconnect from None
