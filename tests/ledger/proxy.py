"""A server in front of a server, which cuts a connection at a chosen moment and lets all others pass."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

CHUNK = 1 << 16


class Proxy:
    """Passes bytes on between clients and a server on the loopback.

    Args:
        port: of the server.

    Attributes:
        port: where clients connect.
        sent: how many pieces clients have sent since it was armed.
        cut: whether it has cut.
    """

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._at, self._reply = -1, False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self.sent, self.cut = 0, False
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, piece: int, *, reply: bool) -> None:
        """Cuts at a piece that a client sends: before it reaches the server, or after the server has done its work."""
        with self._lock:
            self._at, self._reply, self.sent, self.cut = piece, reply, 0, False

    def close(self) -> None:
        """Stops, and cuts everything."""
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._sockets += client, server
                doomed = threading.Event()
                threading.Thread(target=self._up, args=(client, server, doomed), daemon=True).start()
                threading.Thread(target=self._down, args=(client, server, doomed), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK):
                with self._lock:
                    self.sent += 1
                    hit = self.sent == self._at
                if hit and self._reply:
                    doomed.set()  # whoever passes on the answer cuts instead
                elif hit:
                    self.cut = True
                    break
                server.sendall(data)
        _end(client, server)

    def _down(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                if doomed.is_set():
                    self.cut = True
                    break
                client.sendall(data)
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
