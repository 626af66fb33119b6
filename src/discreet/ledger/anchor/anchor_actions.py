"""What a steward does when a ledger's anchor is missing: accepts the loss, or joins the anchor of another machine.

Formal guarantee: both are entries of the ledger, written before the new anchor is, so that no anchor is ever made for a
ledger that had one without an entry that says by whom. A steward who accepts answers for charges that an older copy
forgot; a steward who joins has typed a head that the ledger contains, so that it is no older than that head.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import InvalidParameter, LedgerError
from discreet.ledger import policy
from discreet.ledger.anchor.anchor_file import (
    LedgerCheckpoint,
    alone,
    anchor_of,
    remember_place,
    require_folder,
    write_anchor,
)
from discreet.ledger.anchor.anchored_ledger import enter, id_of, mismatch, read_known
from discreet.ledger.entry import Head
from discreet.ledger.ledger import Ledger
from discreet.ledger.serialization import name, text
from discreet.ledger.store.ledger_store import Transaction

Evidence = Callable[[Transaction], dict[str, str]]
"""Returns what the entry says about why the ledger is taken for the newest."""


class UncheckedLedger(Ledger):
    """A ledger that is opened to be compared with its anchor afterwards, or to get another."""

    _is_compared = True


def accept_missing_anchor(path: str, *, by: str, reason: str, anchor_file: str | None = None) -> Head:
    """Makes a new anchor for a ledger whose anchor is lost; what an older copy has forgotten is forgotten.

    Args:
        path: of the ledger, a file or an address.
        by: the steward who answers for it.
        reason: why; it is an entry of the ledger, and every report shows it.
        anchor_file: of the anchor; in the state folder unless it is given.

    Returns:
        The head of the ledger, verified.

    Raises:
        NotPermitted: if that name is no steward on the whole ledger.
        LedgerError: if the anchor is there, or the ledger cannot be used.
        LedgerTampered: if the ledger was altered.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from discreet.ledger import AnchoredLedger
    >>> with TemporaryDirectory() as folder:
    ...     place = {"path": f"{folder}/ledger.db", "anchor_file": f"{folder}/anchor"}
    ...     AnchoredLedger(**place).close()
    ...     Path(place["anchor_file"]).unlink()
    ...     head = accept_missing_anchor(**place, by="owner", reason="its disk broke")
    ...     AnchoredLedger(**place).close()
    >>> head.sequence
    2
    """
    why = text(reason=reason).strip()
    if not why:
        raise InvalidParameter("reason", reason, "to say why the anchor is missing", "Write a few words.")

    def evidence(_: Transaction) -> dict[str, str]:
        return {"how": "accepted", "reason": why}

    return _made_again(path, anchor_file, name(by=by), evidence)


def join_anchor(path: str, head: Head, *, by: str = policy.OWNER, anchor_file: str | None = None) -> Head:
    """Makes an anchor on this machine for a ledger whose anchor is on another, with the head that one shows.

    Args:
        path: of the ledger, a file or an address.
        head: what `discreet anchor` prints on the other machine.
        by: the steward who has typed it.
        anchor_file: of the anchor; in the state folder unless it is given.

    Returns:
        The head of the ledger, verified.

    Raises:
        InvalidParameter: if the ledger does not contain that head: it is older, or another one.
        NotPermitted: if that name is no steward on the whole ledger.
        LedgerError: if there is an anchor here already, or the ledger cannot be used.
        LedgerTampered: if the ledger was altered.

    >>> from tempfile import TemporaryDirectory
    >>> from discreet.ledger import AnchoredLedger
    >>> with TemporaryDirectory() as folder:
    ...     with AnchoredLedger(f"{folder}/ledger.db", anchor_file=f"{folder}/there") as ledger:
    ...         shown = ledger.head()
    ...     joined = join_anchor(f"{folder}/ledger.db", shown, anchor_file=f"{folder}/here")
    >>> shown.sequence, joined.sequence
    (1, 2)
    """

    def evidence(rows: Transaction) -> dict[str, str]:
        found = rows.hash_at(head.sequence) if head.sequence else None
        if found != head.hash:
            hint = "This ledger is older than the other machine's, or another one. Type what `discreet anchor` printed."
            raise InvalidParameter("join", str(head), f"to be in {path}, which ends with {rows.tail()}", hint)
        return {"head": str(head), "how": "joined"}

    return _made_again(path, anchor_file, name(by=by), evidence)


def _made_again(path: str, given: str | None, by: str, evidence: Evidence) -> Head:
    with UncheckedLedger(path) as ledger:
        with ledger._journal.reading() as rows:
            ledger_id, head = id_of(rows), rows.tail()
        if ledger_id is None:
            raise LedgerError(
                f"The ledger {path} has no entries, and so no anchor", "Open the ledger first: that makes its anchor."
            )
        file = given or anchor_of(ledger_id)
        known = read_known(file)
        if known is not None:
            with ledger._journal.reading() as rows:
                if not known.is_in(rows):
                    raise mismatch(path, head, file, known)
            raise LedgerError(
                f"The anchor {file} exists, and the ledger has every entry that it knows", "You need no new anchor."
            )
        ledger.verify()
        if given is None:
            require_folder()
        with ledger._journal.writing() as rows:  # no act: a frozen ledger may lack its anchor as well
            policy.require_steward(rows, "", by, "make the anchor again")
            enter(rows, {"id": ledger_id, **evidence(rows)}, by=by)
        with alone(file), ledger._journal.reading() as rows:
            write_anchor(file, LedgerCheckpoint.of(rows))
            now = rows.tail()
        if given is None:
            remember_place(path, ledger_id)
    return now
