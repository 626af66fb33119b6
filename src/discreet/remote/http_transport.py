"""Requests to a service and their outcomes: TLS that is checked, a key that goes nowhere else, errors as they were.

Formal guarantee: a request that may be charged is sent again only under its idempotency key, so that it is charged once
however often it was sent. Redirections are not followed; http:// is refused but for this machine.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, InvalidParameter, ServiceError, ServiceUnavailable
from discreet.presentation.documents.error_documents import read_error

TIMEOUT = 120.0  # seconds; a question is killed by its service before
TRIES = 3
LONGEST_WAIT = 10  # seconds until a request is sent again
LARGEST = 1 << 28  # bytes of a response
_HTTP_ERRORS = (OSError, http.client.HTTPException)


def read_address(url: object) -> SplitResult:
    """Returns the address that a URL names.

    Raises:
        InvalidParameter: if it is no address of a service, or would send the key unencrypted.

    >>> read_address("http://data.example")
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected url='http://data.example' to begin with https://. Without TLS, ...
    """
    shown = "this one" if {"@", "?", "#"} & set(str(url)) else url  # it may hold a secret
    try:
        parts = urlsplit(str(url))
        usable = parts.port != 0 and bool(parts.hostname)  # a bad port is found only when it is looked at
    except ValueError:
        usable = False
    if not usable or parts.scheme not in ("https", "http"):
        raise InvalidParameter("url", shown, "to be like https://NAME", 'Pass e.g. "https://data.example".')
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidParameter("url", shown, "to be only an address", "Pass the key as key=.")
    if parts.scheme == "http" and not is_loopback(str(parts.hostname)):
        hint = "Without TLS, others could read the key on its way. Plain http works only for a service on this machine."
        raise InvalidParameter("url", shown, "to begin with https://", hint)
    return parts._replace(path=parts.path.rstrip("/"))


def is_loopback(host: str) -> bool:
    """Returns whether a name means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Sends requests with a key.

    Attributes:
        address: of the service.
        key: as it was shown once; no text of this object holds it.
        timeout: seconds without a word after which a connection is given up.
        context: how TLS is checked.
        pause: waits for seconds.
    """

    address: SplitResult
    key: str = field(repr=False)
    timeout: float = TIMEOUT
    context: ssl.SSLContext | None = field(default=None, repr=False)
    pause: Callable[[float], object] = field(default=time.sleep, repr=False)

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        repeatable: bool = False,
    ) -> Any:
        """Returns the document of a response.

        Args:
            method: GET, POST or DELETE.
            path: from /v1 on.
            body: of a POST.
            key: its idempotency key: then it may be sent again.
            repeatable: whether it may be sent again without one, since it spends and changes nothing.

        Raises:
            DiscreetError: that the service sent.
            ServiceUnavailable: if there is no service, or its response cannot be read.
        """
        tries = TRIES if key is not None or repeatable else 1
        for attempt in range(1, tries + 1):
            try:
                return self._once(method, path, body, key)
            except ServiceUnavailable as error:
                if attempt == tries:
                    raise
                self.pause(min(error.retry_after or attempt, LONGEST_WAIT))
        raise ServiceUnavailable("The service was not asked")

    def _once(self, method: str, path: str, body: Mapping[str, Any] | None, key: str | None) -> Any:
        with self._open_response(method, path, body, key) as response:
            return _outcome(response.status, response.read(LARGEST))

    def events(self, path: str) -> Iterator[Any]:
        """Yields the data of server-sent events, as they come.

        Raises:
            DiscreetError: that the service sent.
            ServiceUnavailable: if the stream breaks off.
        """
        with self._open_response("GET", path, None, None) as response:
            if response.status != http.client.OK:
                _outcome(response.status, response.read(LARGEST))
            while line := response.readline(LARGEST):
                if line.startswith(b"data:"):
                    yield json.loads(line[len(b"data:") :])

    @contextmanager
    def _open_response(
        self, method: str, path: str, body: Mapping[str, Any] | None, key: str | None
    ) -> Iterator[http.client.HTTPResponse]:
        """Yields a response, and closes its connection afterwards."""
        connection = self._connection()
        try:
            data = None if body is None else json.dumps(body).encode("ascii")
            connection.request(method, f"{self.address.path}{path}", data, self._headers(body, key))
            yield connection.getresponse()
        except _HTTP_ERRORS as error:
            reason = f"The service at {self.address.hostname} cannot be reached"
            raise ServiceUnavailable(reason, f"{type(error).__name__}: is it running, and is its name right?") from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        where = (str(self.address.hostname), self.address.port)
        if self.address.scheme == "http":
            return http.client.HTTPConnection(*where, timeout=self.timeout)
        context = self.context or ssl.create_default_context()
        return http.client.HTTPSConnection(*where, timeout=self.timeout, context=context)

    def _headers(self, body: Mapping[str, Any] | None, key: str | None) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.key}",
            "Accept": "application/json",
            "Connection": "close",
            **({} if body is None else {"Content-Type": "application/json"}),
            **({} if key is None else {"Idempotency-Key": key}),
        }


def _outcome(status: int, body: bytes) -> Any:
    """Returns the document of a response, or raises the error in it."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if 200 <= status < 300 and isinstance(found, dict):
        return found
    raise _read_failure(status, found)


def _read_failure(status: int, found: Any) -> DiscreetError:
    if isinstance(found, dict) and "error" in found:
        with suppress(InvalidParameter):
            return read_error(found)
    reason = f"The service gave status {status} with a body that Discreet cannot read"
    kind = ServiceUnavailable if status >= 500 else ServiceError
    return kind(reason, "Is it a Discreet service?")
