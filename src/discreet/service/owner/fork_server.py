"""Processes that are not our children, by handles that stay theirs: forked by a fork server, killed by us."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import field

from discreet.dataclass import dataclass
from discreet.errors import ServiceUnavailable
from discreet.service.worker.messages import PID

_SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}  # what starts no threads
_WAIT = 60.0  # seconds for the fork server to load, or to fork


@dataclass(slots=True)
class Child:
    """A process by its handle (pidfd): the number may be given to another process, the handle never is."""

    pid: int
    handle: int
    _closed: bool = field(default=False, init=False)

    @property
    def alive(self) -> bool:
        """Returns whether it runs: the handle of a process that has ended can be read."""
        if self._closed:
            return False
        watched = select.poll()
        watched.register(self.handle, select.POLLIN)
        return not watched.poll(0)

    def kill(self) -> None:
        """Kills the process, and closes the handle."""
        if self._closed:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        os.close(self.handle)
        self._closed = True


class ForkServer:
    """The process that forks workers; it is started when the first is wanted, and again if it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()

    def fork(self, theirs: socket.socket) -> Child:
        """Returns a new worker, which has the other end of a socket.

        Raises:
            ServiceUnavailable: if none can be had.
        """
        with self._lock:
            control = self._open_control()
            try:
                socket.send_fds(control, [b"w"], [theirs.fileno()])
                said, handles, _, _ = socket.recv_fds(control, PID.size, 1)
            except OSError:
                said, handles = b"", []
            if len(said) != PID.size or not handles:
                self._end()
                raise ServiceUnavailable("No worker could be started", "Ask again later.", retry_after=2)
        return Child(PID.unpack(said)[0], handles[0])

    def close(self) -> None:
        """Ends it, and with it every worker."""
        with self._lock:
            self._end()

    def _open_control(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self._end()
        ours, theirs = socket.socketpair()
        ours.settimeout(_WAIT)
        command = [sys.executable, "-m", "discreet.service.worker.fork_loop", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, and nothing of a caller's
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_SINGLE},
            )
        self._control = ours
        return ours

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._control = None
