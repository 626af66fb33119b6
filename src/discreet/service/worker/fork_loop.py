"""Where workers come from: a process that has loaded everything, holds nothing private, and forks on request.

    python -m discreet.service.worker.fork_loop FD

A forked worker is ready in a tenth of the time that a fresh interpreter takes. Forking is safe because nothing here has
threads, files or random numbers of its own: libraries are set to one thread, and if one starts more, a worker is a
fresh interpreter after all. The owner of the ledger never forks.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from discreet.service.worker import limits
from discreet.service.worker.life import live
from discreet.service.worker.messages import PID


def main() -> None:
    """Forks a worker for every socket that the owner passes, until the owner is gone."""
    control = socket.socket(fileno=int(sys.argv[1]))
    limits.die_with_parent()
    with suppress(ImportError):  # learners are an extra; loading them takes longer than planning a fit may
        import_module("discreet.learn")
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        said, files, _, _ = socket.recv_fds(control, 1, 1)
        if not said:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until the child has a handle that stays its own
        pid = os.fork()
        if not pid:
            control.close()
            _become_worker(files[0])
        os.close(files[0])
        handle = os.pidfd_open(pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        socket.send_fds(control, [PID.pack(pid)], [handle])
        os.close(handle)


def _become_worker(file: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    try:
        if _threads() == 1:
            live(file)
        else:
            os.set_inheritable(file, True)
            os.execv(sys.executable, [sys.executable, "-m", "discreet.service.worker", str(file)])  # noqa: S606 - ours
    finally:
        os._exit(0)


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main()
