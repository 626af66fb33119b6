"""A served clinic for tests: a real curator behind a small desk, real identities, and the wire on a free port."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pandas as pd

from discreet.curator import Curator
from discreet.errors import UnknownTable
from discreet.noise import SeededBits
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.presentation.documents.plan_documents import EXPLANATION
from discreet.privacy import Budget
from discreet.service.acts import StewardActions
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity.identities import Identities
from discreet.service.identity.rate_limits import RateLimits
from discreet.service.request_executor import OPERATIONS, Document, JobRequest, JobStatus
from discreet.service.settings import Settings
from discreet.service.wire.wire_server import WireServer

TYPES = {
    "patient": "int",
    "ward": "text",
    "age": "int",
    "charge": "float",
    "day": "date",
    "at": "timestamp",
    "urgent": "bool",
}
ROWS = 40
TOTAL = 100
PATIENT = Settings(planning_deadline=60)  # a busy machine is no reason to fail

Found = TypeVar("Found")


def visits() -> pd.DataFrame:
    """Visits of made-up patients."""
    days = pd.date_range("2024-01-01", periods=ROWS)
    return pd.DataFrame(
        {
            "patient": range(ROWS),
            "ward": ["ABC"[i % 3] for i in range(ROWS)],
            "age": [20 + i for i in range(ROWS)],
            "charge": [10.5 * i for i in range(ROWS)],
            "day": [each.date() for each in days],
            "at": days,
            "urgent": [i % 2 == 0 for i in range(ROWS)],
        }
    )


def clinic() -> Curator:
    """A curator with a table that everybody may see, and one that is for some."""
    made = Curator.for_tests(bits=SeededBits(7))
    for name in ("visits", "staff"):
        made.protect(
            visits(),
            name=name,
            unit="patient",
            max_rows=1,
            budget=Budget(epsilon=TOTAL),
            types=TYPES,
            bounds={"age": (0, 120), "charge": (0, 500)},
            keys={"ward": ["A", "B", "C"]},
        )
    for account in made.accounts():
        for analyst in ("ann", "bob"):
            made.appoint(analyst, account=account, role="analyst")
    return made


@dataclass
class ClinicDesk:
    """Does work at once, in the process of the tests.

    Attributes:
        done: what was performed, in order.
        held: if set, questions wait for it before they are asked.
    """

    curator: Curator
    done: list[JobRequest] = field(default_factory=list)
    held: asyncio.Event | None = None
    callers: list[ServiceCaller] = field(default_factory=list)

    async def perform(self, caller: ServiceCaller, work: JobRequest) -> Document:
        """Asks or explains."""
        self.done.append(work)
        self.callers.append(caller)
        given = dict(work.arguments)
        sql = given.pop("sql")
        for name in ("visits", "staff"):
            if name in sql and not caller.sees(name):
                raise UnknownTable(name, ())
        if work.operation is OPERATIONS["explain"]:
            return EXPLANATION.write(self.curator.explain(sql, analyst=caller.name, project=work.project, **given))
        assert work.operation is OPERATIONS["ask"]
        if self.held is not None:
            await self.held.wait()
        return ANSWER.write(self.curator.ask(sql, analyst=caller.name, project=work.project, key=work.key, **given))

    def asked(self) -> int:
        """How many questions were asked."""
        return sum(work.operation is OPERATIONS["ask"] for work in self.done)

    def begin(self, caller: ServiceCaller, work: JobRequest) -> JobStatus:
        """The wire begins no jobs."""
        raise NotImplementedError

    def job(self, caller: ServiceCaller, job: str) -> JobStatus:
        """The wire begins no jobs."""
        raise NotImplementedError

    def follow(self, caller: ServiceCaller, job: str) -> AsyncIterator[JobStatus]:
        """The wire begins no jobs."""
        raise NotImplementedError

    def cancel(self, caller: ServiceCaller, job: str) -> JobStatus:
        """The wire begins no jobs."""
        raise NotImplementedError

    async def check_ledger(self) -> bool:
        """Tells that the ledger answers."""
        return True

    def tables(self, caller: ServiceCaller) -> list[Document]:
        """Returns public facts."""
        columns: list[Document] = [{"name": name, "type": kind, "bounds": None} for name, kind in TYPES.items()]
        columns[2]["bounds"] = [0, 120]
        facts = {"protected": True, "unit": "one patient", "columns": columns}
        return [{"name": name, **facts} for name in ("staff", "visits") if caller.sees(name)]


class Served:
    """The wire in a thread of its own.

    Attributes:
        port: where it listens.
        keys: of each person the id and the text of a key.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None, settings: Settings | None = None) -> None:
        self.curator = clinic()
        self.desk = ClinicDesk(self.curator)
        self.identities = Identities(":memory:")
        self.keys = {name: self.key(name) for name in ("ann", "bob")}
        self.keys["cy"] = self.key("cy", role=ServiceRole.AUDITOR)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.limits = RateLimits(self.identities, requests_per_minute=6000)
        acts = StewardActions(self.curator._ledger, self.identities)
        self.server = WireServer(self.desk, self.identities, acts, self.limits, settings or PATIENT)
        self.port = self.run(self.server.start("127.0.0.1", 0, tls))

    def key(self, name: str, *, role: ServiceRole = ServiceRole.ANALYST, **how: Any) -> tuple[str, str]:
        """A new key of somebody."""
        return self.identities.make_key(self.identities.local, name, role, **how)

    def run(self, work: Coroutine[Any, Any, Found]) -> Found:
        """What a coroutine returns, in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def call(self, act: Callable[[], Found]) -> Found:
        """What a function returns, in the server's loop."""

        async def called() -> Found:
            return act()

        return self.run(called())

    def close(self) -> None:
        """Stops the server and its thread."""
        self.run(self.server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self.identities.close()
        self.curator.close()

    def spent(self) -> float:
        """What was charged of both accounts."""
        return sum(TOTAL - float(self.curator.balance(each).remaining.epsilon) for each in self.curator.accounts())

    def url(self, name: str = "ann", scheme: str = "postgresql") -> str:
        """An address with the key of somebody as the password."""
        return f"{scheme}://{name}:{self.keys[name][1]}@127.0.0.1:{self.port}/clinic"

    def environment(self, name: str = "ann") -> dict[str, str]:
        """What psql needs."""
        where = {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGDATABASE": "clinic"}
        return where | {"PGUSER": name, "PGPASSWORD": self.keys[name][1], "PGSSLMODE": "prefer", "LC_ALL": "C.UTF-8"}


@contextmanager
def served(**how: Any) -> Iterator[Served]:
    """A served clinic that is closed at the end."""
    made = Served(**how)
    try:
        yield made
    finally:
        made.close()


# --------------------------------------------------------------------------------------------------------- a raw client


def startup(parameters: Mapping[str, str], code: int = 3 << 16) -> bytes:
    """A first message."""
    body = b"".join(name.encode() + b"\0" + value.encode() + b"\0" for name, value in parameters.items()) + b"\0"
    return struct.pack("!iI", len(body) + 8, code) + body


def framed(kind: bytes, body: bytes = b"") -> bytes:
    """A message."""
    return kind + struct.pack("!i", len(body) + 4) + body


class RawClient:
    """Sends bytes, and reads messages."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._read = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        """Sends bytes."""
        self.socket.sendall(data)

    def message(self) -> tuple[bytes, bytes] | None:
        """The next message; None if the server has closed the connection."""
        try:
            head = self._read.read(5)
            if len(head) < 5:
                return None
            return head[:1], self._read.read(struct.unpack("!i", head[1:])[0] - 4)
        except ConnectionError:
            return None

    def until(self, kind: bytes) -> list[tuple[bytes, bytes]]:
        """All messages until one of a kind, or until the connection ends."""
        found = []
        while (message := self.message()) is not None:
            found.append(message)
            if message[0] == kind:
                break
        return found

    def rest(self) -> list[tuple[bytes, bytes]]:
        """All messages until the connection ends."""
        return self.until(b"")

    def close(self) -> None:
        """Hangs up."""
        self._read.close()
        self.socket.close()


def report(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}
