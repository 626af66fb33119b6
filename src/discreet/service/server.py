"""The whole service: one ledger, its owner, people, and the front ends on their listeners, from start to stop."""

from __future__ import annotations

import asyncio
import resource
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from discreet.curator.config.enrolment import declared_ledger
from discreet.curator.config.toml_file import load
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.ledger import Ledger
from discreet.service.acts import StewardActions, recorder
from discreet.service.api.application import create_api
from discreet.service.api.metrics_listener import create_metrics_app
from discreet.service.api.route_access import ServiceContext
from discreet.service.connection_limits import ConnectionLimits
from discreet.service.http_listener import KEEP_ALIVE, LimitedListener, WatchedApp
from discreet.service.identity import Identities, RateLimits
from discreet.service.metrics import Metrics
from discreet.service.owner.worker_executor import WorkerExecutor
from discreet.service.page import create_page
from discreet.service.settings import Settings, require_anchor
from discreet.service.wire.wire_server import WireServer

_LOOK = 0.5  # seconds between looks for keys that were revoked while their requests run
_METRICS_CONNECTIONS = 32
_OTHER_FILES = 300  # workers, ledgers, files that are read, metrics
_GRACE = 5  # seconds for what runs when the service stops


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningService:
    """A service that takes requests.

    Attributes:
        url: of the page and the API.
        pg_port: of the wire; None without one.
        identities: of its people.
    """

    url: str
    pg_port: int | None
    metrics_port: int | None
    identities: Identities


class _Quiet(uvicorn.Server):
    """A server that leaves signals to the program that started it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def service(config: Path, settings: Settings) -> AsyncIterator[RunningService]:
    """Opens the ledger, the people and the workers, then the listeners; closes them in the opposite order.

    Raises:
        DiscreetError: if something does not fit; nothing listens then.
    """
    require_descriptors(settings)
    async with AsyncExitStack() as stack:
        ledger = stack.enter_context(_served_ledger(config))
        identities = Identities(settings.identities, record=recorder(ledger))
        stack.callback(identities.close)
        acts = StewardActions(ledger, identities)
        limits = RateLimits(
            identities, requests_per_minute=settings.requests_per_minute, questions_per_day=settings.questions_per_day
        )
        desk = WorkerExecutor(ledger, settings, config=str(config.absolute()))
        stack.push_async_callback(desk.close, grace=_GRACE)
        await desk.open()
        offices, metrics = ServiceContext(desk, identities, acts, limits, settings), Metrics(lambda: desk.gauges)
        app = create_api(offices, metrics=metrics)
        app.mount("/", create_page(offices))
        port = await stack.enter_async_context(_listening(app, settings, settings.host, settings.port))
        watched = None
        if settings.metrics_port is not None:
            told = create_metrics_app(metrics, identities)
            watched = await stack.enter_async_context(
                _listening(told, _for_metrics(settings), "127.0.0.1", settings.metrics_port)
            )
        pg = None
        if settings.pg_port is not None:
            wire = WireServer(desk, identities, acts, limits, settings)
            pg = await wire.start(settings.host, settings.pg_port, _tls(settings))
            stack.push_async_callback(wire.close)
        stack.push_async_callback(desk.drain, grace=_GRACE)  # before the listeners close: they wait for its answers
        watch = asyncio.get_running_loop().create_task(_watching(desk, identities))
        stack.callback(watch.cancel)
        yield RunningService(url=_url(settings, port), pg_port=pg, metrics_port=watched, identities=identities)


def _served_ledger(config: Path) -> Ledger:
    declared = load(config)
    require_anchor(declared.anchor)
    return declared_ledger(declared, new=True)


async def _watching(desk: WorkerExecutor, identities: Identities) -> None:
    """Stops requests whose key or session has ended since they began."""
    while True:
        await asyncio.sleep(_LOOK)
        desk.stop_ended(identities.is_valid)


@asynccontextmanager
async def _listening(app: ASGIApp, settings: Settings, host: str, port: int) -> AsyncIterator[int]:
    """Serves an app at an address until the end of the block; port 0 takes a free one."""
    limits = ConnectionLimits(
        most=settings.connections,
        reserved=settings.reserved_connections,
        per_address=None if settings.behind_proxy else settings.connections_per_address,
    )
    bound = LimitedListener(host, port, limits, header_deadline=settings.header_deadline)
    watched: Any = WatchedApp(app, bound, settings)
    chosen = uvicorn.Config(
        watched,  # an ASGI app; uvicorn's own type for them is private
        http="h11",  # others, where they are installed, have other limits
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # `WatchedApp` reads them
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=None if settings.tls_key is None else str(settings.tls_key),
        h11_max_incomplete_event_size=32_768,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
        ws="none",
        lifespan="off",
    )
    server = _Quiet(chosen)
    task = asyncio.get_running_loop().create_task(server.serve([bound]))
    try:
        yield int(bound.getsockname()[1])
    finally:
        server.should_exit = True
        await task


def _for_metrics(settings: Settings) -> Settings:
    return replace(settings, connections=_METRICS_CONNECTIONS, reserved_connections=0, behind_proxy=False)


def require_descriptors(settings: Settings) -> None:
    """Raises this process's limit of open files to what the settings need.

    Raises:
        InvalidParameter: if it may not be raised so far.
    """
    wire = 0 if settings.pg_port is None else settings.wire_connections
    needed = settings.connections + wire + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        hint = f"Raise the limit of open files with `ulimit -n {needed}`, or allow fewer connections."
        raise InvalidParameter("service.connections", settings.connections, f"to fit into {hard} open files", hint)
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls_certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    return context


def _url(settings: Settings, port: int) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.secure else 'http'}://{host}:{port}"


async def run(config: Path, settings: Settings, announce: Callable[[RunningService], None]) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        config: the declarations.
        settings: of the service.
        announce: is called once it takes requests.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with service(config, settings) as started:
        announce(started)
        await stop.wait()
