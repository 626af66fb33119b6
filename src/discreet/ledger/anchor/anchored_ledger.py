"""A ledger that is compared with its anchor when it is opened, and keeps the anchor up to date.

The first entry of a ledger says that it has an anchor, so that every copy knows it, the oldest as well. Without the
anchor, an older copy would look like the ledger itself. So the ledger is refused until a steward accepts the loss or
types the head that another machine knows (`anchor_actions`); both are entries.

Order of writing, so that a process may be killed anywhere. A new ledger: the anchor is written with no entry in it,
then the first entry. A ledger of an earlier version, which has no such entry: the anchor is written, then the entry.
Every later entry: the ledger, then the anchor, then the answer leaves. So an anchor is never ahead of its ledger, and a
ledger that says it has one had it on the disk before.
"""

from __future__ import annotations

import os
import shlex
import threading
import warnings
from contextlib import suppress

from discreet.errors import AnchorMismatch, AnchorMissing, AnchorNotKept, InvalidParameter, LedgerError, LedgerMissing
from discreet.ledger import changes, policy
from discreet.ledger.anchor.anchor_file import (
    LedgerCheckpoint,
    alone,
    anchor_of,
    anchors_folder,
    find_known_anchor,
    is_default,
    read_anchor,
    remember_place,
    require_disk,
    require_folder,
    write_anchor,
)
from discreet.ledger.charges import Receipt
from discreet.ledger.entry import GENESIS, Head
from discreet.ledger.ledger import Ledger
from discreet.ledger.stewardship import new_salt
from discreet.ledger.store.ledger_store import VERSIONS, Transaction
from discreet.ledger.store.place import is_there
from discreet.ledger.store.sqlite import MEMORY
from discreet.postgres_url import is_postgres
from discreet.privacy.events import Event

NOTHING = LedgerCheckpoint(head=Head(0, GENESIS), states={})
"""The anchor of a ledger that has no entry yet."""


class AnchoredLedger(Ledger):
    """A ledger whose newest head is kept in a file apart.

    The anchor is kept before an answer leaves, and when the ledger is closed. So a ledger that is older than an answer
    that a person has seen is refused, also if its file was replaced by hand. If the anchor cannot be written, a warning
    says so: what was paid for is still answered.

    Args:
        path: of the ledger, see `Ledger`. One that has no anchor yet gets one, and an entry that says so.
        anchor_file: of the anchor; in the state folder, by the ledger's id, unless it is given.
        former: where earlier versions kept the anchor of this ledger, if not next to it.
        timeout: seconds to wait for others who write.
        read_only: writes nothing, the anchor included.

    Attributes:
        anchor_file: of the anchor; empty for a ledger without entries that is only read.

    Raises:
        AnchorMismatch: if the ledger lacks entries that its anchor knows, is another one, or is gone.
        AnchorMissing: if it has an anchor, which is not there.
        LedgerError: if the ledger or the anchor cannot be used.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with AnchoredLedger(f"{folder}/ledger.db", anchor_file=f"{folder}/anchor") as ledger:
    ...         ledger.stewardship.appoint("ana", "steward")
    ...         _ = ledger.backup(f"{folder}/monday.db")
    ...         ledger.stewardship.appoint("ben", "auditor")
    ...     AnchoredLedger(f"{folder}/monday.db", anchor_file=f"{folder}/anchor")
    Traceback (most recent call last):
    discreet.errors.AnchorMismatch: ...monday.db ends with 2:..., but its anchor ... ends with 3:...: 1 entry is ...
    """

    _is_compared = True

    def __init__(
        self,
        path: str,
        *,
        anchor_file: str | None = None,
        former: str = "",
        timeout: float = 30.0,
        read_only: bool = False,
    ) -> None:
        self._read_only, self._keeping = read_only, threading.Lock()
        self.anchor_file = ""
        if anchor_file is not None:
            require_there(path, anchor_file)
        elif path != MEMORY and not is_there(path):
            _require_new(path)
            if not read_only:
                require_folder()
        super().__init__(path, timeout=timeout, read_only=read_only)
        try:
            self._open(path, anchor_file, former or ("" if is_postgres(path) else f"{path}.anchor"))
        except BaseException:
            super().close()
            raise

    def _open(self, path: str, given: str | None, former: str) -> None:
        with self._journal.reading() as rows:
            ledger_id, marked = id_of(rows), changes.find_anchored_id(rows) is not None
        if ledger_id is None and not self._read_only:
            ledger_id, marked = self._begin(path, given), True
        self.anchor_file = given or ("" if ledger_id is None else anchor_of(ledger_id))
        known = read_known(self.anchor_file)  # before the ledger is looked at: others may add to it in between
        adopted = known is None and given is None and not marked and os.path.exists(former)
        known = read_anchor(former) if adopted else known
        if known is None and marked:
            raise missing(path, self.anchor_file)
        if known is not None:
            self._compare(known, former if adopted else self.anchor_file)
        if ledger_id is not None and not self._read_only:
            if not marked:
                self._mark(ledger_id, known)
            if adopted:
                with suppress(OSError):
                    os.unlink(former)
            if given is None and path != MEMORY:
                remember_place(path, ledger_id)
        self._known = known
        self._kept = None if known is None else known.head

    def _begin(self, path: str, given: str | None) -> str:
        """Makes the anchor of a new ledger, then its first entry; returns the id of the ledger."""
        if given is None:
            require_folder()
        ledger_id = new_salt().hex()[:32]
        file = given or anchor_of(ledger_id)
        with alone(file):
            if read_anchor(file) is None:
                write_anchor(file, NOTHING)
        begun = False
        try:
            with self._journal.writing() as rows:
                first = id_of(rows)
                if first is None:
                    if given is None and path != MEMORY:  # again: only now no other process can begin it meanwhile
                        require_never_there(path)
                    enter(rows, {"how": "begun", "id": ledger_id}, by=policy.OWNER)
                    begun = True
        finally:
            if given is None and not begun:  # another process began the same ledger a moment ago, or one was there
                os.unlink(file)
        return first or ledger_id

    def _mark(self, ledger_id: str, known: LedgerCheckpoint | None) -> None:
        """Gives a ledger of an earlier version its anchor, and then the entry that says so."""
        if is_default(self.anchor_file):
            require_folder()
        with alone(self.anchor_file):
            if read_anchor(self.anchor_file) is None:
                with self._journal.reading() as rows:
                    write_anchor(self.anchor_file, LedgerCheckpoint.of(rows, known))
        try:
            with self._journal.writing() as rows:
                if changes.find_anchored_id(rows) is None:
                    enter(rows, {"how": "marked", "id": ledger_id}, by=policy.OWNER)
        except LedgerError as error:  # only the owner of tables on a server may make them ones of a later version
            text = f"The ledger does not record that it has an anchor, so a lost anchor would not be noticed. {error}"
            warnings.warn(text, AnchorNotKept, stacklevel=5)

    def _compare(self, known: LedgerCheckpoint, anchor_file: str) -> None:
        with self._journal.reading() as rows:
            if not known.is_in(rows):
                raise mismatch(str(self.path), rows.tail(), anchor_file, known)

    def store_answer(
        self, receipt: Receipt, replay_key: str, payload: bytes | str, *, event: Event | None = None
    ) -> bool:
        """Stores an answer as `Ledger.store_answer` does, and keeps the anchor before the answer is sent."""
        stored = super().store_answer(receipt, replay_key, payload, event=event)
        self.keep_anchor(went_on=stored)
        return stored

    def move(self, path: str) -> Head:
        """Moves the ledger as `Ledger.move` does; the anchor goes on with the ledger at its new place."""
        self.keep_anchor()
        head = super().move(path)
        if is_default(self.anchor_file):
            remember_place(path, os.path.basename(self.anchor_file))
        return head

    def close(self) -> None:
        """Keeps the anchor, and closes the file or the connections."""
        try:
            self.keep_anchor()
        finally:
            super().close()

    def keep_anchor(self, *, backup: Head | None = None, went_on: bool = False) -> None:
        """Brings the anchor up to date, unless the ledger is only read.

        Args:
            backup: the head of a copy that was made.
            went_on: whether it is known that the ledger has entries that the anchor lacks.
        """
        if (self._read_only and backup is None) or not self.anchor_file:
            return
        try:
            with self._keeping:
                self._keep(backup, went_on=went_on)
        except (InvalidParameter, LedgerError, OSError) as error:  # the first if its disk is not there any more
            reason = error.strerror if isinstance(error, OSError) else str(error)
            text = (
                f"The anchor {self.anchor_file} was not kept ({reason}). Nothing in the ledger is lost. Check the disk."
            )
            warnings.warn(text, AnchorNotKept, stacklevel=3)

    def _keep(self, backup: Head | None, *, went_on: bool) -> None:
        if backup is None and not went_on and self._journal.head() == self._kept:
            return
        require_disk(self.anchor_file)
        with alone(self.anchor_file):
            known = read_anchor(self.anchor_file)
            with self._journal.reading() as rows:
                head = rows.tail()
                if not head.sequence or changes.is_frozen(rows):  # a ledger that was moved ends elsewhere than here
                    return
                if known is not None and not known.is_in(rows):
                    if known.head.sequence > head.sequence:  # others went on meanwhile, and have kept it
                        return
                    raise LedgerError("the anchor belongs to another ledger")
                is_newest = known is not None and known.head == head
                anchor = known if known is not None and is_newest else LedgerCheckpoint.of(rows, known or self._known)
            anchor = anchor if backup is None else anchor.with_backup(backup)
            write_anchor(self.anchor_file, anchor)
        self._kept, self._known = head, anchor
        if known is None:  # this process has seen the ledger all along: only who removed the file is not known
            text = f"The anchor {self.anchor_file} was missing and has been written again. Find out who removed it."
            warnings.warn(text, AnchorNotKept, stacklevel=4)


def open_ledger(path: str, *, anchor: str | None = None, former: str = "", read_only: bool = False) -> Ledger:
    """Opens a ledger with its anchor, if it can have one: a ledger in memory dies with the process.

    Args:
        path: see `Ledger`.
        anchor: the file of the anchor; None to find it by the ledger's id; "" to keep none for a ledger that never had
            one: an older copy of it is not noticed.
        former: see `AnchoredLedger`.
        read_only: refuses every write.

    >>> with open_ledger(":memory:") as ledger:
    ...     ledger.head().sequence
    0
    """
    if anchor == "" and not read_only and is_anchored(path):
        hint = 'Remove `anchor = ""` from discreet.toml or Curator(...), or name the file of the anchor.'
        raise LedgerError(f"The ledger {path} has an anchor, which cannot be switched off", hint)
    if path == MEMORY or anchor == "":
        return Ledger(path, read_only=read_only)
    return AnchoredLedger(path, anchor_file=anchor, former=former, read_only=read_only)


def is_anchored(path: str) -> bool:
    """Returns whether a ledger says that it has an anchor; one that does not exist yet says nothing.

    >>> is_anchored("no such ledger"), is_anchored(":memory:")
    (False, False)
    """
    if path == MEMORY or not is_there(path):
        return False
    try:
        with Ledger(path, read_only=True) as ledger, ledger._journal.reading() as rows:
            return changes.find_anchored_id(rows) is not None
    except LedgerMissing:  # a server reports this only when it is asked
        return False


def id_of(rows: Transaction) -> str | None:
    """Returns the id of a ledger: the one its first entry gives, else the hash of its first entry; None without any.

    All copies of a ledger have the same one, also those from before it had an anchor.
    """
    return changes.find_anchored_id(rows) or rows.hash_at(1)


def enter(rows: Transaction, body: dict[str, str], *, by: str) -> None:
    """Writes an entry about the anchor: that it was begun, was missing and that was accepted, or who joined it."""
    rows.require_version(VERSIONS["anchor"])
    entry = rows.add("anchor", body, who=by)
    changes.apply(rows, entry)
    if changes.makes_anchor_again(entry):
        policy.doubt_calendars(rows, by=by)


def read_known(anchor_file: str) -> LedgerCheckpoint | None:
    """Returns an anchor; None if there is none, or no folder of anchors at all."""
    if not anchor_file or (is_default(anchor_file) and not os.path.isdir(anchors_folder())):
        return None
    return read_anchor(anchor_file)


def require_there(path: str, anchor_file: str) -> LedgerCheckpoint | None:
    """Returns the anchor of a ledger, if there is one.

    Raises:
        AnchorMismatch: if of the ledger only the anchor is left.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     before = require_there(f"{folder}/ledger.db", f"{folder}/anchor")
    ...     with AnchoredLedger(f"{folder}/ledger.db", anchor_file=f"{folder}/anchor") as ledger:
    ...         ledger.stewardship.appoint("ana", "steward")
    ...     after = require_there(f"{folder}/ledger.db", f"{folder}/anchor")
    >>> before, after.head.sequence
    (None, 2)
    """
    folder = os.path.dirname(os.path.abspath(anchor_file))
    if folder == os.path.dirname(os.path.abspath(path)) and not os.path.isdir(folder):
        return None  # neither can be there; the ledger says so itself
    known = read_anchor(anchor_file)
    if known is not None and known.head.sequence and not is_there(path):
        raise _missing_ledger_error(path, anchor_file, known)
    return known


def _require_new(path: str) -> None:
    """Refuses a file that is gone, but not one that another process has begun since it was looked for."""
    try:
        require_never_there(path)
    except AnchorMismatch:
        if not is_there(path):
            raise


def require_never_there(path: str) -> None:
    """Refuses to begin a ledger where one was whose anchor is known.

    Raises:
        AnchorMismatch: if there was one.

    >>> require_never_there("a ledger that was never there")
    """
    anchor_file = find_known_anchor(path)
    known = None if anchor_file is None else read_known(anchor_file)
    if anchor_file is not None and known is not None and known.head.sequence:
        raise _missing_ledger_error(path, anchor_file, known)


def _missing_ledger_error(path: str, anchor_file: str, known: LedgerCheckpoint) -> AnchorMismatch:
    hint = (
        f"Restore a backup: discreet restore BACKUP. A new ledger would forget what was spent. If you start with "
        f"data about other people, move {anchor_file} away."
    )
    reason = f"The ledger {path} is gone, but its anchor knows {known.head.sequence} entries"
    return AnchorMismatch(reason, hint, head=None, anchor=str(known.head), missing=known.head.sequence)


def missing(path: str, anchor_file: str) -> AnchorMissing:
    """Returns the error for a ledger that has an anchor, which is not there."""
    default = is_default(anchor_file)
    command = f"discreet anchor {shlex.quote(path)}" + ("" if default else f" --file {shlex.quote(anchor_file)}")
    reason = (
        f"The ledger {path} has an anchor, but the anchor is not at {anchor_file}. This may be an older copy that has "
        "forgotten what was spent"
    )
    hint = (
        "Put the anchor back, or name its file (`anchor` in discreet.toml, `Curator(ledger, anchor=FILE)`). If it "
        f"is on another machine, run `discreet anchor` there. Then run `{command} --join SEQ:HASH` here, with what it "
        f"printed. If it is lost, a steward runs `{command} --accept-missing --by NAME --reason TEXT`. This makes an "
        "entry of the ledger, and every report shows it."
    )
    return AnchorMissing(reason, hint, ledger=path, anchor_file=anchor_file)


def mismatch(
    path: str, head: Head, anchor_file: str, known: LedgerCheckpoint, target: str | None = None
) -> AnchorMismatch:
    """Returns the error for a ledger that is older than its anchor, or another one; a copy of it may have a target."""
    lacking = known.head.sequence - head.sequence
    missing = "1 entry is missing" if lacking == 1 else f"{lacking} entries are missing"
    what = missing if lacking > 0 else "it is another ledger, or has other entries"
    reason = f"{path} ends with {head}, but its anchor {anchor_file} ends with {known.head}: {what}"
    place = f" --ledger {shlex.quote(target or path)}" if is_default(anchor_file) else ""
    again = f"discreet restore {shlex.quote(path)}{place} --accept-loss"
    hint = f"Put the newest ledger back. If it is lost, `{again}` counts as spent what the anchor knows."
    return AnchorMismatch(reason, hint, head=str(head), anchor=str(known.head), missing=max(lacking, 0))
