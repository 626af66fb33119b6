"""Where anchors are: in the state folder of whoever holds a ledger, by the ledger's id, or where somebody says.

A ledger's id is in its first entry, so that all copies of it have the same one, and find the same anchor. Beside the
anchors there is a small file for each place where a ledger was: a ledger that is gone from there is not begun anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from discreet.errors import LedgerError
from discreet.postgres_url import is_postgres

_PLACES = "places"


def anchors_folder() -> str:
    """Returns the folder of all anchors that have no place of their own: `discreet/anchors` in $XDG_STATE_HOME."""
    given = os.environ.get("XDG_STATE_HOME", "")
    state = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "discreet", "anchors")


def anchor_of(ledger_id: str) -> str:
    """Returns the file of a ledger's anchor in that folder."""
    return os.path.join(anchors_folder(), ledger_id)


def is_default(anchor_file: str) -> bool:
    """Tells whether an anchor is found by the id of its ledger alone."""
    return os.path.dirname(anchor_file) == anchors_folder()


def require_folder() -> None:
    """Makes the folder of all anchors, before there is a ledger that needs one.

    Raises:
        LedgerError: if it cannot be made, or nothing can be written there.
    """
    folder = anchors_folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.makedirs(os.path.join(folder, _PLACES), mode=0o700, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
        reason = "it may not be written"
    except OSError as error:
        writable, reason = False, str(error.strerror).lower()
    if not writable:
        raise LedgerError(
            f"The anchor of the ledger cannot be kept in {folder}: {reason}",
            'Name a file on another disk, `anchor = "/var/lib/discreet/clinic.anchor"` in discreet.toml or '
            '`Curator(ledger, anchor="/var/lib/discreet/clinic.anchor")`, or set XDG_STATE_HOME to a folder of yours.',
        )


def remember_place(place: str, ledger_id: str) -> None:
    """Notes that a ledger is at a place; what cannot be noted is not: the anchor itself is what counts."""
    file = _place_file(place)
    with suppress(OSError):
        if _read(file) != ledger_id:
            beside = f"{file}.{os.getpid()}"
            with open(beside, "w", encoding="utf-8") as out:
                out.write(ledger_id)
            os.replace(beside, file)


def remembered(place: str) -> str | None:
    """Returns the anchor of the ledger that was at a place; None if no ledger is known to have been there."""
    ledger_id = _read(_place_file(place))
    return anchor_of(ledger_id) if ledger_id and ledger_id.isalnum() else None


def _place_file(place: str) -> str:
    whole = place if is_postgres(place) else os.path.realpath(place)
    return os.path.join(anchors_folder(), _PLACES, hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest())


def _read(file: str) -> str | None:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read(200)
    except (OSError, UnicodeDecodeError):
        return None


@contextmanager
def alone(anchor_file: str) -> Iterator[None]:
    """Keeps other processes from writing anchors in the same folder, so that none is put back to an earlier head.

    The folder itself is locked: a file for it would be left behind. Where a disk knows no locks, nobody waits.
    """
    descriptor = os.open(os.path.dirname(os.path.abspath(anchor_file)), os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
