"""Connections: bounded in number, with deadlines for what clients owe, and room for those who have signed in."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from discreet.errors import InvalidParameter
from discreet.service import server
from discreet.service.caller import ServiceRole
from discreet.service.connection_limits import ConnectionLimits, OpenConnection
from discreet.service.http_listener import TimedConnection
from discreet.service.settings import Settings
from tests.service.api.offices import Office, office
from tests.service.wire.test_sign_in import make_certificate

Found = TypeVar("Found")
LONG = Settings(connections=8, reserved_connections=2, connections_per_address=4, header_deadline=60.0)
"""Few connections, and deadlines that no test reaches."""


# --------------------------------------------------------------------------------------------------------- the count


class Clients:
    """Connections as a listener counts them, and which of them were ended."""

    def __init__(self, **limits: Any) -> None:
        self.limits = ConnectionLimits(**limits)
        self.ended: list[str] = []

    def open(self, name: str, address: str = "192.0.2.7", *, known: bool = False, busy: bool = False) -> bool:
        made = self.limits.open(address, lambda: self.ended.append(name))
        if made is not None:
            made.known, made.busy = known, busy
        return made is not None


def test_the_oldest_silent_connection_of_an_address_makes_way() -> None:
    clients = Clients(most=100, reserved=10, per_address=3)
    for name in "abcde":
        assert clients.open(name)
    assert clients.ended == ["a", "b"]
    assert clients.open("other", "192.0.2.8")
    assert clients.ended == ["a", "b"]


def test_addresses_of_one_network_are_one() -> None:
    clients = Clients(most=100, reserved=10, per_address=2)
    for host in range(4):
        clients.open(str(host), f"2001:db8::{host}")
    assert clients.ended == ["0", "1"]


def test_one_that_is_at_work_stays_and_the_new_one_is_refused() -> None:
    clients = Clients(most=100, reserved=10, per_address=2)
    assert clients.open("a", busy=True)
    assert clients.open("b", busy=True)
    assert not clients.open("c")
    assert clients.ended == []


def test_strangers_leave_the_reserve_and_who_has_most_loses_one() -> None:
    clients = Clients(most=6, reserved=2, per_address=None)
    for name, address in (("a", "192.0.2.1"), ("b", "192.0.2.9"), ("c", "192.0.2.9"), ("d", "192.0.2.9")):
        clients.open(name, address)
    assert clients.open("e", "192.0.2.2")
    assert clients.ended == ["b"]  # not the oldest of all
    assert len(clients.limits) == 4


def test_signed_in_connections_are_ended_last_and_never_at_work() -> None:
    clients = Clients(most=4, reserved=1, per_address=None)
    for name in "ab":
        clients.open(name, known=True)
    clients.open("s")
    clients.open("c", known=True, busy=True)
    assert clients.open("d", known=True)
    assert clients.open("e", known=True, busy=True)
    assert clients.ended == ["s", "a"]
    assert clients.open("f", known=True, busy=True)
    assert clients.open("g", known=True, busy=True)
    assert not clients.open("h")
    assert clients.ended == ["s", "a", "b", "d"]
    assert len(clients.limits) == 4


def test_who_closes_gives_the_place_back() -> None:
    limits = ConnectionLimits(most=1, reserved=0)
    for _ in range(5):
        made = limits.open("192.0.2.7", lambda: pytest.fail("there was room"))
        assert isinstance(made, OpenConnection)
        made.close()
        made.close()
    assert len(limits) == 0


@pytest.mark.parametrize("change", [{"connections": 50}, {"wire_connections": 10}, {"header_deadline": 0}])
def test_settings_that_leave_no_room_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Settings(**change)


def test_the_limit_of_open_files_is_raised_or_told(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, made = [(256, 4096), (256, 512), (4096, 4096)], list[tuple[int, int]]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits.pop(0))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: made.append(pair))
    server.require_descriptors(Settings(connections=400))
    with pytest.raises(InvalidParameter, match="open files"):
        server.require_descriptors(Settings(connections=400))
    server.require_descriptors(Settings(connections=400, pg_port=5432))
    assert made == [(700, 4096)]


# ---------------------------------------------------------------------------------------------------------- on sockets


class Served:
    """An API on a free port of the loopback, in a thread of its own."""

    def __init__(self, settings: Settings) -> None:
        self.office: Office = office(settings=settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listening = server._listening(self.office.app, settings, "127.0.0.1", 0)
        self.port = self.run(self._listening.__aenter__())
        self.clients: list[socket.socket] = []

    def run(self, work: Coroutine[Any, Any, Found]) -> Found:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def call(self, act: Callable[[], Found]) -> Found:
        async def called() -> Found:
            return act()

        return self.run(called())

    def hold(self) -> tuple[asyncio.Event, threading.Semaphore]:
        """Has work wait for an event; the other is released whenever some has begun."""
        go, begun, perform = self.call(asyncio.Event), threading.Semaphore(0), self.office.desk.perform

        async def held(caller: Any, work: Any) -> Any:
            begun.release()
            await go.wait()
            return await perform(caller, work)

        self.office.desk.perform = held  # type: ignore[method-assign]
        return go, begun

    def connect(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self.clients.append(client)
        client.sendall(sent)
        return client

    def head(self, path: str = "/v1/tables", method: str = "GET", **headers: str) -> bytes:
        told = {"Host": f"localhost:{self.port}", "Authorization": f"Bearer {self.office.keys[ServiceRole.ANALYST]}"}
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in {**told, **headers}.items() if value]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.run(self._listening.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self.office.identities.close()


@contextmanager
def served(settings: Settings) -> Iterator[Served]:
    made = Served(settings)
    try:
        yield made
    finally:
        made.close()


def status(client: socket.socket) -> int:
    """The status of the next response, whose body is read; 0 if the connection has ended."""
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            more = client.recv(65536)
        except ConnectionError:
            return 0
        if not more:
            return 0
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0].split(b":")[1]) - len(body) if lengths else 0
    while missing > 0:
        missing -= len(client.recv(missing))
    return int(head.split(b" ")[1])


def ended(client: socket.socket) -> bool:
    """Waits until the service has ended a connection."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def test_silent_connections_do_not_keep_anybody_out() -> None:
    with served(LONG) as made:
        silent = [made.connect() for _ in range(40)]
        signed_in = [made.connect(made.head()) for _ in range(3)]
        assert [status(each) for each in signed_in] == [200] * 3
        assert all(ended(each) for each in silent[:36])
        silent += [made.connect() for _ in range(20)]
        for each in signed_in:  # those who have signed in stay
            each.sendall(made.head())
        assert [status(each) for each in signed_in] == [200] * 3


def test_connections_with_half_a_head_are_silent_too() -> None:
    with served(LONG) as made:
        half = [made.connect(made.head()[:-2]) for _ in range(10)]
        assert status(made.connect(made.head())) == 200
        assert all(ended(each) for each in half[:6])


def test_a_head_that_does_not_end_in_time_ends_the_connection() -> None:
    with served(replace(LONG, header_deadline=0.05)) as made:
        assert ended(made.connect())
        assert ended(made.connect(b"GET / HTTP/1.1\r\n"))


def test_a_second_head_has_a_deadline_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service.http_listener.KEEP_ALIVE", -59.95)  # of the deadline a moment is left
    with served(LONG) as made:
        client = made.connect(made.head())
        assert status(client) == 200
        client.sendall(made.head()[:20])  # which puts off the server's own deadline for a rest
        assert ended(client)


def test_a_request_that_begins_before_the_last_has_tidied_up_has_no_deadline() -> None:
    async def act() -> None:
        ours, theirs = socket.socketpair()
        timed = TimedConnection(cast("Any", SimpleNamespace(open={})), cast("Any", ours), ("127.0.0.1", 1))
        first, second = timed.serving(60.0), timed.serving(60.0)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        waits = [timed._timer is not None]
        second.__exit__(None, None, None)
        assert [*waits, timed._timer is not None] == [False, True]
        timed.close()
        ours.close()
        theirs.close()

    asyncio.run(act())


def test_a_body_that_does_not_come_is_told_and_ends_the_connection() -> None:
    with served(replace(LONG, body_deadline=0.05)) as made:
        about = {"Content_Length": "100", "Content_Type": "application/json"}
        client = made.connect(made.head("/v1/explain", "POST", **about) + b"{")
        assert status(client) == 408
        assert ended(client)
        strange = made.connect(made.head("/v1/explain", "POST", Authorization="", **about))
        assert status(strange) == 401  # nothing of it is waited for


def test_work_that_takes_long_has_no_deadline_of_its_body() -> None:
    with served(replace(LONG, body_deadline=0.05)) as made:
        go, begun = made.hold()
        body = b'{"sql":"SELECT COUNT(*) AS n FROM visits","epsilon":"0.1"}'
        about = {"Content_Length": str(len(body)), "Content_Type": "application/json"}
        client = made.connect(made.head("/v1/explain", "POST", **about) + body)
        assert begun.acquire(timeout=30)
        assert status(made.connect(made.head("/v1/explain", "POST", **about))) == 408  # its deadline has passed
        made.call(go.set)
        assert status(client) == 200


@pytest.mark.parametrize(
    "framing",
    [
        {"Content_Length": "5", "Transfer_Encoding": "chunked"},
        {"Transfer_Encoding": "chunked", "Content_Length": "0"},
        {"Content_Length": "5, 6"},
        {"Transfer_Encoding": "gzip, chunked"},
        {"Transfer_Encoding": "identity"},
        {"Content_Length": "-1"},
        {"Content_Length": "0x5"},
    ],
)
def test_a_body_whose_length_is_told_twice_ends_the_connection(framing: dict[str, str]) -> None:
    """What follows could be the rest of a body for one reader and a request for another."""
    with served(LONG) as made:
        smuggled = made.head("/v1/tables")
        client = made.connect(
            made.head("/v1/explain", "POST", Content_Type="application/json", **framing) + b"0\r\n\r\n" + smuggled
        )
        assert status(client) in (400, 431, 501)
        assert ended(client)
        assert made.office.desk.seen == []


def test_two_lengths_of_a_body_end_the_connection() -> None:
    with served(LONG) as made:
        head = made.head("/v1/explain", "POST", Content_Length="5")[:-2] + b"Content-Length: 6\r\n\r\n"
        client = made.connect(head + b"aaaaa" + made.head())
        assert status(client) in (400, 431)
        assert ended(client)


def test_a_caller_has_only_so_many_requests_at_once() -> None:
    with served(replace(LONG, requests_at_once=2, connections=20)) as made:
        go, begun = made.hold()
        body = b'{"sql":"SELECT COUNT(*) AS n FROM visits","epsilon":"0.1"}'
        about = {"Content_Length": str(len(body)), "Content_Type": "application/json"}
        waiting = [made.connect(made.head("/v1/explain", "POST", **about) + body) for _ in range(2)]
        for _ in waiting:
            assert begun.acquire(timeout=30)
        assert status(made.connect(made.head())) == 429
        steward = {"Authorization": f"Bearer {made.office.keys[ServiceRole.STEWARD]}"}
        assert status(made.connect(made.head(**steward))) == 200
        made.call(go.set)
        assert [status(each) for each in waiting] == [200, 200]
        assert status(made.connect(made.head())) == 200


def test_a_client_that_does_not_shake_hands_is_counted(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    secured = replace(LONG, tls_certificate=certificate, tls_key=key)
    with served(secured) as made:
        silent = [made.connect() for _ in range(20)]
        assert all(ended(each) for each in silent[:16])
        context = ssl.create_default_context(cafile=str(certificate))
        context.check_hostname = False
        with context.wrap_socket(made.connect()) as client:
            client.sendall(made.head())
            assert status(client) == 200
    with served(replace(secured, header_deadline=0.05)) as made:
        assert ended(made.connect())
