"""The guard before all routes and pages: sizes, the Host, the Origin, headers that browsers obey, one line of log.

DNS rebinding ends at the Host, requests that other sites make in a user's browser end at the Origin, and the policy
of every page forbids scripts, styles, frames, forms and connections that are not its own.

Formal guarantee: whatever happens behind it, a client gets a response without a word about why, if the error is none of
this library's own; no exception gets past it, so that no server prints what it holds.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.dataclass import dataclass
from discreet.errors import InternalError, TooManyRequests
from discreet.noise.tokens import token
from discreet.service.api.http_responses import error_response, refusal
from discreet.service.caller import ServiceCaller
from discreet.service.connection_limits import CONNECTION
from discreet.service.metrics import Metrics
from discreet.service.settings import Settings

MOST_BODY = 1 << 20  # bytes of a body under /v1
MOST_HEADERS = 1 << 14  # bytes of all headers together
SLOWEST_BODY = 1 << 16  # bytes a second, after the deadline of a body
GONE = 499  # what is counted for a client that went away
_ONCE = (b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"transfer-encoding")
"""Headers that may appear only once, since two readers could take different ones."""

SECURITY_HEADERS: Mapping[bytes, bytes] = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
PAGE_HEADERS: Mapping[bytes, bytes] = {
    **SECURITY_HEADERS,
    b"content-security-policy": POLICY.encode(),
    b"referrer-policy": b"same-origin",  # with no-referrer, browsers send the Origin of a form as null
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_TLS_ONLY = (b"strict-transport-security", b"max-age=31536000")
_LOG = logging.getLogger("discreet.service.http")


class HttpGuard:
    """Middleware before an application.

    Args:
        app: what it guards.
        settings: which names the service has, and whether it has TLS.
        metrics: what counts requests, and durations for stewards.
    """

    def __init__(self, app: ASGIApp, *, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._at_once: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, counts it, and logs it in one line."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        passage = _Passage(scope, receive, send, self._settings, self._at_once)
        start = time.monotonic()
        refused = self._refusal_status(scope)
        try:
            if refused:
                await passage.refuse(refused)
            else:
                await self._app(scope, passage.receive, passage.send)
        except _TooLarge:
            await passage.refuse(413)
        except ClientDisconnect:  # before its request was whole: no client is there to be answered
            passage.error, passage.status = "ServiceError", passage.status or GONE
        except Exception as error:  # noqa: BLE001 - nothing may get to the server, which would print it
            await passage.fail(error)
        finally:
            passage.end()
        self._metrics.count(passage.route, passage.status, time.monotonic() - start)
        _LOG.info("%s", json.dumps(passage.line))

    def _refusal_status(self, scope: Scope) -> int:
        """Returns the status of a request that is refused unread; 0 for all others."""
        names = [name for name, _ in scope["headers"]]
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
            return 431
        repeated = any(names.count(name) > 1 for name in _ONCE)
        if repeated or (b"content-length" in names and b"transfer-encoding" in names):
            return 431
        if not self._is_own_host(scope):
            return 421
        if is_api(scope):
            return 413 if _is_too_long(scope) else 0
        return 403 if scope["method"] not in _SAFE and not self._is_own_origin(scope) else 0

    def _is_own_host(self, scope: Scope) -> bool:
        hosts = Headers(scope=scope).getlist("host")
        return len(hosts) == 1 and host_name(hosts[0]) in {name.lower() for name in self._settings.hosts}

    def _is_own_origin(self, scope: Scope) -> bool:
        headers, scheme = Headers(scope=scope), "https" if self._settings.secure else "http"
        return headers.getlist("origin") == [f"{scheme}://{headers['host']}"]


class _TooLarge(Exception):
    """A body is longer than what is taken."""


@dataclass(slots=True)
class _Passage:
    """One request on its way in, and its response on the way out."""

    scope: Scope
    client_receive: Receive
    client_send: Send
    settings: Settings
    at_once: Counter[str]
    id: str = field(default_factory=lambda: token(16))
    status: int = 0
    error: str = ""
    caller: str = ""
    began: float | None = None
    read: int = 0
    whole: bool = False
    late: bool = False

    def __post_init__(self) -> None:
        self.scope.setdefault("state", {}).update(id=self.id, recognise=self.recognise)

    @property
    def route(self) -> str:
        """The template of the route, without any part of the address."""
        return str(getattr(self.scope.get("route"), "path", "other"))

    @property
    def line(self) -> dict[str, Any]:
        """The line of the log: nothing of what was sent, and no durations."""
        state = self.scope["state"]
        known = state.get("known")
        return {
            "request": self.id,
            "method": self.scope["method"] if self.scope["method"] in _METHODS else "other",
            "route": self.route,
            "status": self.status,
            "credential": known.credential if known is not None else "",
            "role": known.role.value if known is not None else "",
            "error": self.error or state.get("error", ""),
        }

    def recognise(self, caller: ServiceCaller) -> None:
        """Notes who has proven to be the caller: their connection is no stranger's, and has its place.

        Raises:
            TooManyRequests: if the caller has too many requests at once; many connections would be no way around it.
        """
        connection = self.scope.get("extensions", {}).get(CONNECTION)
        if connection is not None:
            connection.known = True
        if self.at_once[caller.name] >= self.settings.requests_at_once:
            hint = "Wait for an answer to one of them."
            raise TooManyRequests("Too many of your requests are running", hint, retry_after=1)
        self.at_once[caller.name] += 1
        self.caller = caller.name

    def end(self) -> None:
        """Takes the request out of the count."""
        if self.caller:
            self.at_once -= Counter([self.caller])  # which keeps no zero

    async def receive(self) -> Message:
        if self.whole:
            return await self.client_receive()
        message = await self._in_time()
        if message["type"] == "http.request":
            self.read += len(message.get("body", b""))
            if self.read > MOST_BODY and is_api(self.scope):
                raise _TooLarge
        self.whole = not message.get("more_body", False)
        return message

    async def _in_time(self) -> Message:
        """Returns the next part of the body; a client that is too slow gets status 408, and its connection ends."""
        now = time.monotonic()
        self.began = now if self.began is None else self.began
        allowed = self.settings.body_deadline + self.read / SLOWEST_BODY
        try:
            async with asyncio.timeout(self.began + allowed - now):
                return await self.client_receive()
        except TimeoutError:
            await self.refuse(408)
            self.late = True
            raise ClientDisconnect from None

    async def send(self, message: Message) -> None:
        if self.late:  # it was answered
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": self._headers(message["headers"])}
        await self.client_send(message)

    def _headers(self, given: Any) -> list[tuple[bytes, bytes]]:
        own = {name.lower() for name, _ in given}
        more = {**(SECURITY_HEADERS if is_api(self.scope) else PAGE_HEADERS), b"x-request-id": self.id.encode()}
        more |= dict([_TLS_ONLY]) if self.settings.secure else {}
        return [*given, *((name, value) for name, value in more.items() if name not in own)]

    async def refuse(self, status: int) -> None:
        """Answers with what HTTP itself refuses, unless something was answered before."""
        self.error = "ServiceError"
        if not self.status:
            told = error_response(refusal(status), status=status)
            told.headers["Connection"] = "close"  # what follows may be the rest of this body, or another's request
            await told(self.scope, self.client_receive, self.send)

    async def fail(self, error: Exception) -> None:
        """Answers with status 500; the log has the kind of the error, and its message is dropped."""
        self.error = type(error).__name__
        _LOG.error("%s", json.dumps({"request": self.id, "route": self.route, "fault": self.error}))
        if not self.status:
            told = error_response(InternalError(), request_id=self.id)
            await told(self.scope, self.client_receive, self.send)


_SAFE = ("GET", "HEAD")
_METHODS = (*_SAFE, "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def is_api(scope: Scope) -> bool:
    """Returns whether a request is for the API or its health; all else is for the page, which reads its own bodies."""
    return str(scope["path"]).startswith(("/v1", "/healthz", "/readyz"))


def _is_too_long(scope: Scope) -> bool:
    """Returns whether a body says that it is longer than what is taken, or says what is no number."""
    text = Headers(scope=scope).get("content-length", "0")
    return not (text.isascii() and text.isdigit() and len(text) < 16) or int(text) > MOST_BODY


def host_name(header: str) -> str:
    """Returns the name in a Host header, without its port; nothing for what is no host.

    >>> host_name("Localhost:8642"), host_name("[::1]:8642"), host_name("a@b"), host_name("evil.example:80:80")
    ('localhost', '::1', '', '')
    """
    name, colon, port = header.rpartition(":")
    if not colon or header.endswith("]"):
        name, port = header, "0"
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    letters = ".-:" if bare != name else ".-"
    fits = header.isascii() and port.isdigit() and all(c.isalnum() or c in letters for c in bare)
    return bare.lower() if fits else ""
