"""What stands between a browser and every page: which Host, which Origin, and what the browser may do with a response.

DNS rebinding ends at the Host, requests that other sites make in somebody's browser end at the Origin, and the policy
of every response forbids scripts, styles, frames, forms and connections that are not the page's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.service.settings import Settings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send the Origin of a form as null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
SAFE = ("GET", "HEAD")
NOT_KEPT = "no-store"
"""Of every response but assets: answers and secrets stay out of caches."""

WRONG_HOST = "This service does not go by that name. Add it to service.hosts if it should."
WRONG_ORIGIN = "This request did not come from the service's own page."


@dataclass(frozen=True, slots=True)
class BrowserGuard:
    """Refuses foreign hosts and origins, and gives every response its headers.

    Args:
        app: what is guarded.
        settings: the names of the service, and whether browsers come over TLS.
    """

    app: ASGIApp
    settings: Settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it before anything of it is read."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is not None:
            scope.setdefault("state", {})["error"] = "NotPermitted"  # for the log

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", NOT_KEPT)
            await send(message)

        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, method: str, headers: Headers) -> ASGIApp | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or host_name(hosts[0]) not in self.settings.hosts:
            return PlainTextResponse(WRONG_HOST, 421)
        if method not in SAFE and headers.getlist("origin") != [f"{self._scheme}://{hosts[0]}"]:
            return PlainTextResponse(WRONG_ORIGIN, 403)
        return None

    @property
    def _scheme(self) -> str:
        return "https" if self.settings.secure else "http"


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
