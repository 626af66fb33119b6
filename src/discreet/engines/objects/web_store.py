"""Files of web servers, read by ranges over https: each request says which version it wants.

Requests run in a thread of their own, in which the loggers of the libraries are silent: what they log has addresses in
it. Redirects are refused, since they could lead to a host that is not listed.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import ssl
import threading
from typing import Any

import aiohttp
from fsspec.implementations.http import HTTPFileSystem

from discreet.engines.objects.object_store import Found, ObjectStore
from discreet.quiet_loggers import quiet

_LOGGERS = ("asyncio", "fsspec", "fsspec.http", "aiohttp.client", "aiohttp.internal", "charset_normalizer")
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}  # by process: a child of a fork has no such thread
_LOCK = threading.Lock()
_TIMES = aiohttp.ClientTimeout(total=None, connect=5, sock_read=10)
_PARTIAL = 206


class WebStore(ObjectStore):
    """A web server.

    Args:
        host: with its port, if it is not the usual one.
        options: a token, or a user and a password, and the certificates that are trusted.
    """

    def __init__(self, host: str, options: dict[str, Any]) -> None:
        self._host = host
        trusted = ssl.create_default_context(cafile=options.get("ca_file"))
        self._files = HTTPFileSystem(
            loop=_loop(),
            skip_instance_cache=True,
            client_kwargs={"timeout": _TIMES, "raise_for_status": _require_expected},
            ssl=trusted,
            allow_redirects=False,
            headers={"Accept-Encoding": "identity", **_credentials(options)},
            encoded=True,
        )

    def names(self, path: str) -> list[str]:
        """Returns the one file that a path is: a web server has no list of its files."""
        return [path]

    def find(self, name: str) -> Found:
        """Asks for the size and the version of a file."""
        url = f"https://{self._host}/{name}"
        try:
            told = self._files.info(url)
        except FileNotFoundError as error:  # of whatever kind it is
            raise error.__cause__ or error from None
        size = told["size"]
        version = tuple((key.lower(), str(told[key])) for key in ("ETag", "Last-Modified") if told.get(key))
        if size is None or not version:  # a file that changes while it is read would not be noticed
            raise OSError
        same = _conditions(dict(version))

        def read(start: int, length: int) -> bytes:
            headers = {**self._files.kwargs["headers"], **same}
            found: bytes = self._files.cat_file(url, start=start, end=start + length, headers=headers)
            return found

        return Found(size=size, version=(*version, ("size", str(size))), read=read)


def _conditions(version: dict[str, str]) -> dict[str, str]:
    """Returns headers with which a server sends nothing of another version; weak tags cannot be asked for."""
    tag = version.get("etag", "W/")
    if not tag.startswith("W/"):
        return {"If-Match": tag}
    return {"If-Unmodified-Since": version["last-modified"]} if "last-modified" in version else {}


def _credentials(options: dict[str, Any]) -> dict[str, str]:
    if "token" in options:
        return {"Authorization": f"Bearer {options['token']}"}
    if "user" in options:
        pair = f"{options['user']}:{options.get('password', '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


async def _require_expected(response: aiohttp.ClientResponse) -> None:
    """Refuses what was not asked for: redirects, and whole files in place of their parts."""
    status, is_part = response.status, "Range" in response.request_info.headers
    if status in (401, 403):
        raise PermissionError
    if status == 404:
        raise FileNotFoundError
    if status != (_PARTIAL if is_part else 200):
        raise OSError


def _loop() -> asyncio.AbstractEventLoop:
    """Returns the loop of this process, which runs in a thread that logs nothing."""
    with _LOCK:
        process = os.getpid()
        if process not in _LOOPS:
            loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(loop,), daemon=True).start()
            _LOOPS[process] = loop
        return _LOOPS[process]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    with quiet(*map(logging.getLogger, _LOGGERS)):
        asyncio.set_event_loop(loop)
        loop.run_forever()
