"""Catalog queries have a queue of their own: one process, one query at a time with a deadline, callers in turn."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import ServiceUnavailable, UnknownTable, UnsupportedQuery
from discreet.service.owner.job_queue import JobQueue
from discreet.service.wire.protocol_messages import FieldDescription

_PROGRAM = "discreet.service.wire.catalog.catalog_process"
_LONGEST_REPLY = 1 << 26  # bytes
_STARTING = 30.0  # seconds
_LATE = {"error": "UnsupportedQuery", "reason": "The catalog query took too long.", "hint": "Make it smaller."}
_ENVIRONMENT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "SYSTEMROOT")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogQuery:
    """A query, the caller who asks it, and the tables that they may see.

    Attributes:
        parameters: values of $1, $2 and so on.
        facts: the public facts about the tables that the caller may see.
        settings: what current_setting and version() return.
    """

    sql: str
    parameters: Sequence[object]
    facts: Sequence[Mapping[str, Any]]
    settings: Mapping[str, str]
    user: str
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRows:
    """Columns, and rows of plain values."""

    columns: tuple[FieldDescription, ...]
    rows: tuple[tuple[Any, ...], ...]


class CatalogExecutor:
    """Starts the process when it is first needed, and anew after it was killed.

    Args:
        deadline: seconds for a query.
        waiting: how many queries of all callers may wait; `per_caller` of one caller.

    Formal guarantee: a query waits for at most one query of each other caller, however many they have sent.
    """

    def __init__(self, *, deadline: float, waiting: int = 64, per_caller: int = 16) -> None:
        self._deadline = deadline
        self._lane = JobQueue(slots=1, waiting=waiting, per_caller=per_caller)
        self._process: asyncio.subprocess.Process | None = None

    async def answer(self, query: CatalogQuery) -> CatalogRows:
        """Returns the rows of a catalog query.

        Raises:
            UnsupportedQuery: if the query is refused, or takes too long.
            UnknownTable: if the catalog has no such table.
            TooManyRequests: if too many of the caller's own queries wait.
            ServiceUnavailable: if too many of all callers wait.
        """
        async with self._lane.slot(query.user):
            return _read(await self._exchange(query))

    async def warm(self) -> None:
        """Starts the process before it is needed."""
        async with self._lane.slot(""):
            await self._running()

    async def _exchange(self, query: CatalogQuery) -> dict[str, Any]:
        process = await self._running()
        fields = {name: getattr(query, name) for name in CatalogQuery.__slots__}
        finished = False
        try:
            async with asyncio.timeout(self._deadline):
                reply = await _send_request(process, fields)
            finished = bool(reply)
        except (TimeoutError, ConnectionError, ValueError):
            reply = {}
        finally:
            if not finished:  # also when the client cancels: a half-read reply would answer the next query
                await self._kill()
        return reply or _LATE

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _PROGRAM),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                limit=_LONGEST_REPLY,
                start_new_session=True,  # Ctrl-C in the terminal is for the service, which ends it
            )
            await self._greet(self._process)
        return self._process

    async def _greet(self, process: asyncio.subprocess.Process) -> None:
        """Waits until the process has loaded what it needs, which does not count against a query's deadline."""
        try:
            async with asyncio.timeout(_STARTING):
                await _send_request(process, {})
        except (TimeoutError, ConnectionError, ValueError):
            await self._kill()
            raise ServiceUnavailable("The catalog does not start", "Try again.", retry_after=5) from None

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())

    async def close(self) -> None:
        """Ends the process of the catalog."""
        await self._kill()


async def _send_request(process: asyncio.subprocess.Process, request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the reply of the process to a request; an empty one if it has ended."""
    if process.stdin is None or process.stdout is None:
        raise ConnectionError
    process.stdin.write(json.dumps(request).encode() + b"\n")
    await process.stdin.drain()
    line = await process.stdout.readline()
    found: dict[str, Any] = json.loads(line) if line else {}
    return found


def _read(reply: Mapping[str, Any]) -> CatalogRows:
    if reply.get("error") == "UnknownTable":
        raise UnknownTable(reply["name"], reply["known"])
    if "error" in reply:
        position = reply.get("position")
        raise UnsupportedQuery(reply["reason"], reply["hint"], tuple(position) if position else None)
    columns = tuple(FieldDescription(name, oid) for name, oid in reply["columns"])
    return CatalogRows(columns=columns, rows=tuple(map(tuple, reply["rows"])))
