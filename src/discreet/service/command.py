"""`discreet serve`: the service at the command line."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlsplit

import typer
from rich.console import Console

from discreet.curator.config import toml_file
from discreet.lazy import load
from discreet.ledger import OWNER
from discreet.service import demo_clinic
from discreet.service.caller import ServiceRole
from discreet.service.identity import Identities
from discreet.service.settings import Settings

if TYPE_CHECKING:
    from discreet.service.server import RunningService

_HERE, _FOLDER = Path(toml_file.FILE), Path("discreet-clinic")

Config = Annotated[Path, typer.Option("--config", help="The declarations.", dir_okay=False)]
Demo = Annotated[
    bool, typer.Option("--demo", help="Make an example clinic with an analyst and a steward, and serve it.")
]
Folder = Annotated[Path, typer.Option(help="The folder where --demo puts the clinic.", file_okay=False)]
Port = Annotated[
    int | None, typer.Option(help="The port of the page and the API; 0 picks a free one.", min=0, max=65535)
]
Wire = Annotated[
    int | None, typer.Option("--pg", help="The port of the PostgreSQL wire; 0 picks a free one.", min=0, max=65535)
]
Metrics = Annotated[int | None, typer.Option(help="The port of metrics, on loopback.", min=0, max=65535)]
Link = Annotated[bool, typer.Option("--link", help="Print a sign-in link for the owner.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON when it is ready.")]


def serve(
    *,
    config: Config = _HERE,
    demo: Demo = False,
    folder: Folder = _FOLDER,
    port: Port = None,
    pg: Wire = None,
    metrics: Metrics = None,
    link: Link = False,
    as_json: AsJson = False,
) -> None:
    """Serve questions over HTTP, on a page and on the PostgreSQL wire, from processes that analysts cannot reach."""
    file = demo_clinic.make(folder) if demo else config
    settings = Settings.read(toml_file.load(file).service, file.absolute().parent)
    given: dict[str, Any] = {"port": port, "pg_port": pg, "metrics_port": metrics}
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})

    def announce(started: RunningService) -> None:
        told = _collect_access(started, demo=demo, link=demo or link)
        typer.echo(json.dumps(told) if as_json else "")
        if not as_json:
            _show(told)

    server = load("discreet.service.server", "Serving")
    with _log_to_standard_error():
        asyncio.run(server.run(file, settings, announce))


@contextmanager
def _log_to_standard_error() -> Iterator[None]:
    """Prints the lines of the front ends, which are JSON already, as they are, as long as the service runs."""
    lines = logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(message)s"))
    own = logging.getLogger("discreet")
    level, propagate = own.level, own.propagate
    own.addHandler(lines)
    own.setLevel(logging.INFO)
    own.propagate = False
    try:
        yield
    finally:
        own.removeHandler(lines)
        own.setLevel(level)
        own.propagate = propagate


def _collect_access(started: RunningService, *, demo: bool, link: bool) -> dict[str, str]:
    """Returns what is printed when the service is ready; secrets only where they were asked for."""
    told = {"url": started.url}
    people = started.identities
    if link:
        told["link"] = f"{started.url}/sign-in?token={quote(people.make_link(people.local, OWNER))}"
    if demo:
        told["analyst_key"] = _key(people, demo_clinic.ANALYST, ServiceRole.ANALYST)
        told["steward_key"] = _key(people, demo_clinic.STEWARD, ServiceRole.STEWARD)
    if started.pg_port is not None:
        who = f"{demo_clinic.ANALYST}:{told['analyst_key']}@" if demo else ""
        told["pg"] = f"postgresql://{who}{urlsplit(started.url).hostname}:{started.pg_port}/discreet"
    if started.metrics_port is not None:
        told["metrics"] = f"http://127.0.0.1:{started.metrics_port}/metrics"
    return told


def _key(people: Identities, name: str, role: ServiceRole) -> str:
    """Makes a key for a person in the clinic, for a day."""
    _, secret = people.make_key(people.local, name, role, expires_days=1, note="of the demo")
    return secret


def _show(told: dict[str, str]) -> None:
    console = Console(highlight=False)
    labels = {
        "url": "Serving at",
        "link": "Sign in once as the owner",
        "analyst_key": "A key of the analyst",
        "steward_key": "A key of the steward",
        "pg": "With psql",
        "metrics": "Metrics for stewards",
    }
    for name, text in told.items():
        console.print(f"[bold]{labels[name]}:[/] {text}", soft_wrap=True)
    console.print("Ctrl-C stops it.")
