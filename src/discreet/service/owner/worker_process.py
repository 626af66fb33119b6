"""A worker as the owner sees it: a process and a socket, asked one thing at a time, and killed without ceremony."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import field
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, InternalError
from discreet.presentation.documents.error_documents import error_document, read_error
from discreet.service.owner.fork_server import Child, ForkServer
from discreet.service.owner.ledger_gateway import LedgerGateway
from discreet.service.request_executor import Document
from discreet.service.worker.messages import LENGTH, MOST, pack_message, parse_message


class WorkerLost(Exception):
    """The worker is gone, or sends a message that cannot be understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """The first message to a worker.

    Attributes:
        config: the path of discreet.toml.
        tables: declarations of tables that were protected since.
        memory: bytes it may use; the database gets half of them.
        seconds: of the processor, in its whole life.
        steward: whether it may enter accounts and tables into the ledger.
    """

    config: str
    memory: int
    seconds: int
    tables: tuple[Document, ...] = ()
    steward: bool = False

    @property
    def message(self) -> dict[str, Any]:
        """The message as the worker reads it."""
        return {
            "config": self.config,
            "memory": self.memory,
            "database_memory": f"{max(self.memory // 2 >> 20, 64)}MiB",
            "seconds": self.seconds,
            "tables": list(self.tables),
            "steward": self.steward,
        }


@dataclass(slots=True)
class WorkerProcess:
    """A running worker, and the socket to it.

    Attributes:
        facts: what is public about its tables.
        served: how many requests it has had.
    """

    process: Child
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ledger_threads: Executor
    facts: list[Document] = field(default_factory=list)
    served: int = 0

    @classmethod
    async def start(
        cls, nursery: ForkServer, start: WorkerStart, door: LedgerGateway, ledger_threads: Executor
    ) -> WorkerProcess:
        """Starts a worker, and returns it once it can be asked.

        Args:
            nursery: the fork server that it comes from.
            start: the first message to it.
            door: the gateway by which it reads the ledger while it starts.
            ledger_threads: threads in which the ledger is used.

        Raises:
            DiscreetError: if the tables cannot be had.
            WorkerLost: if it dies.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await asyncio.get_running_loop().run_in_executor(ledger_threads, nursery.fork, theirs)
            reader, writer = await asyncio.open_connection(sock=ours)
        except BaseException:  # the service stops, say
            ours.close()
            raise
        worker = cls(process, reader, writer, ledger_threads)
        try:
            worker._send(start.message)
            said = await worker._conversation(door, lambda _: None)
        except BaseException:
            worker.kill()
            raise
        if "ready" not in said:
            worker.kill()
            raise read_error(said.get("failed", {}))
        worker.facts = said["ready"]
        return worker

    async def perform(self, request: dict[str, Any], door: LedgerGateway, told: Callable[[str], None]) -> Document:
        """Has the worker do a request, and returns its document.

        Args:
            request: what to do, for whom.
            door: the gateway by which it reaches the ledger.
            told: a function that is called with the name of every stage that begins.

        Raises:
            DiscreetError: as the worker says.
            WorkerLost: if it dies.
        """
        self.served += 1
        self._send(request)
        said = await self._conversation(door, told)
        if "done" in said:
            return dict(said["done"])
        raise read_error(said.get("failed", {}))

    @property
    def alive(self) -> bool:
        """Returns whether the process runs."""
        return self.process.alive

    def kill(self) -> None:
        """Closes the socket and kills the process."""
        self.writer.close()
        self.process.kill()

    def _send(self, message: dict[str, Any]) -> None:
        self.writer.write(pack_message(message))

    async def _conversation(self, door: LedgerGateway, told: Callable[[str], None]) -> dict[str, Any]:
        """Serves the worker's calls until it has something else to say."""
        while True:
            message = await self._receive()
            if "call" in message:
                self._send(await self._reply(door, message))
                await self.writer.drain()
            elif "stage" in message:
                told(str(message["stage"]))
            else:
                return message

    async def _reply(self, door: LedgerGateway, message: dict[str, Any]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        try:
            with door.asking():
                return {
                    "value": await loop.run_in_executor(
                        self.ledger_threads, door.serve, message["call"], message["with"]
                    )
                }
        except DiscreetError as error:
            return {"error": error_document(error)}
        except (TypeError, KeyError, ValueError):  # a worker that does not speak our language
            raise WorkerLost from None

    async def _receive(self) -> dict[str, Any]:
        try:
            (length,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
            if length > MOST:
                raise WorkerLost
            return parse_message(await self.reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError, InternalError):
            raise WorkerLost from None
