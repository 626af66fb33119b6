"""What a worker may not do, whatever it is asked: write files, leave a core, outlive the owner, use memory at will."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

NO_FILE = 0  # bytes that may be written to any file
MOST_FILES = 512
_PDEATHSIG, _NO_NEW_PRIVILEGES, _DUMPABLE = 1, 38, 4  # of prctl(2), Linux


def bind(memory: int, seconds: int) -> None:
    """Binds this process for good.

    Args:
        memory: bytes of data (RLIMIT_DATA: heaps and private mappings); address space is left free, since a database
            maps far more of it than it uses.
        seconds: of the processor, for the whole life of the process; deadlines of single requests are the owner's.
    """
    for what, amount in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, NO_FILE),
        (resource.RLIMIT_NOFILE, MOST_FILES),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CPU, seconds),
    ):
        _, hard = resource.getrlimit(what)
        allowed = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(what, (allowed, allowed))
    die_with_parent()


def die_with_parent() -> None:
    """Asks the kernel to kill us with our parent, to give us no rights, and to keep our memory from other processes."""
    if sys.platform != "linux":  # elsewhere the end of the socket ends us, at the next message
        return
    libc, parent = ctypes.CDLL(None, use_errno=True), os.getppid()
    for option, value in ((_PDEATHSIG, signal.SIGKILL), (_NO_NEW_PRIVILEGES, 1), (_DUMPABLE, 0)):
        libc.prctl(option, int(value), 0, 0, 0)
    if os.getppid() != parent:  # it died before we were bound to it
        os.kill(os.getpid(), signal.SIGKILL)
