"""Debian's Chromium, driven on loopback: what it complains about is collected, and must be nothing."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright
from starlette.types import ASGIApp

CHROMIUM = shutil.which("chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_BAD = ("error", "warning")
_PATIENCE = 30.0  # seconds for a server to listen


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serves an application on a free port of loopback."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    began = time.monotonic()
    while not server.started and time.monotonic() < began + _PATIENCE:
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_PATIENCE)
        listening.close()


@dataclass
class Complaints:
    """What a browser says on its console, and requests that went elsewhere."""

    told: list[str] = field(default_factory=list)

    def watch(self, page: Page, origin: str) -> None:
        page.on("console", lambda said: self.told.append(f"{said.text} {said.location}") if said.type in _BAD else None)
        page.on("pageerror", lambda error: self.told.append(str(error)))
        page.on("request", lambda asked: self._elsewhere(asked.url, origin))

    def _elsewhere(self, address: str, origin: str) -> None:
        if not address.startswith((origin, "data:")):
            self.told.append(f"asked for {address}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Starts the browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS), headless=True)
        try:
            yield browser
        finally:
            browser.close()


def new_page(browser: Browser, **settings: Any) -> Page:
    """Opens a window of its own, with its own cookies."""
    return browser.new_context(**settings).new_page()
