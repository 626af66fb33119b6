"""What stands between a browser and every page: which Host, which Origin, and what the browser may do with a response.

DNS rebinding ends at the Host, requests that other sites make in somebody's browser end at the Origin, and the policy
of every response forbids scripts, styles, frames, forms and connections that are not the page's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.service.api.http_guard import SECURITY_HEADERS, is_own_host
from discreet.service.settings import Settings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

HEADERS = {
    **{name.decode(): value.decode() for name, value in SECURITY_HEADERS.items()},
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # with no-referrer, browsers send the Origin of a form as null
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""Of every response: answers and secrets stay out of caches, too, and only assets say otherwise."""
SAFE = ("GET", "HEAD")

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
        refusal = self._refusal(scope)
        if refusal is not None:
            scope.setdefault("state", {})["error"] = "NotPermitted"  # for the log

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        if not is_own_host(scope, self.settings):
            return PlainTextResponse(WRONG_HOST, 421)
        headers, scheme = Headers(scope=scope), "https" if self.settings.secure else "http"
        if scope["method"] not in SAFE and headers.getlist("origin") != [f"{scheme}://{headers['host']}"]:
            return PlainTextResponse(WRONG_ORIGIN, 403)
        return None
