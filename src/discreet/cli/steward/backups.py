"""`discreet backup` and `restore`: copies of the book, and an anchor that tells whether a copy has forgotten something.

The anchor is a file beside discreet.toml, or where `anchor` in it says. Every command that opens the book compares both
and brings the anchor up to date, so that an older copy in the place of the book is noticed, however it got there.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import say
from discreet.cli.steward.acts import By, Note
from discreet.cli.steward.history import parsed_head
from discreet.curator.config.enrolment import declared_book
from discreet.curator.config.toml_file import Config, load
from discreet.errors import InvalidParameter
from discreet.ledger import OWNER, AnchoredBook, Book, Restored, is_there, restore, restore_anchored
from discreet.postgres_url import is_postgres

Target = Annotated[str, typer.Argument(metavar="TARGET", help="A new file, a folder, or an empty database.")]
Source = Annotated[str, typer.Argument(metavar="SOURCE", help="A backup: a file, or postgresql://host/database.")]
AcceptLoss = Annotated[
    bool, typer.Option("--accept-loss", help="Take an older copy; what the anchor knows beyond it counts as spent.")
]
Anchored = Annotated[
    str | None, typer.Option("--anchor", metavar="SEQ:HASH", help="A head that was printed, if the anchor is lost.")
]


def backup(target: Target, *, config: ConfigFile = HERE) -> None:
    """Copy the book to a new place, verify the copy, and keep its head in the anchor, apart from it."""
    declared = load(config)
    with declared_book(declared, read_only=True) as book:
        place = _place(target, declared.ledger, book.verify().sequence)
        if not is_postgres(place) and os.path.exists(place):
            raise InvalidParameter("TARGET", place, "not to exist yet", "Name a new file, or a folder.")
        head = book.backup(place)
        with Book(place, read_only=True) as copy:
            copy.verify()
        if isinstance(book, AnchoredBook):
            book.keep_anchor(backup=head)
    say(f"Copied {head.sequence} entries to {place}, readable by its owner only, and verified them.")
    if declared.anchor:
        say(f"The anchor {declared.anchor} knows the copy. Keep both apart: a backup with its anchor notices nothing.")
    typer.echo(str(head))


def restore_book(
    source: Source,
    *,
    accept_loss: AcceptLoss = False,
    anchor: Anchored = None,
    note: Note = "",
    by: By = OWNER,
    config: ConfigFile = HERE,
) -> None:
    """Put a backup in the place of a lost book; one that has forgotten what was spent is refused."""
    declared = load(config)
    if not is_there(source):
        raise InvalidParameter("SOURCE", source, "to exist", "Name a backup.")
    if anchor is not None:
        _restore_by_head(source, declared, anchor)
        return
    if not declared.anchor:
        raise InvalidParameter("anchor", None, "to be declared, or given", "Pass --anchor SEQ:HASH, printed by backup.")
    done = restore_anchored(
        source, declared.ledger, anchor_file=declared.anchor, accept_loss=accept_loss, by=by, note=note
    )
    _tell(done, declared)


def _tell(done: Restored, config: Config) -> None:
    if not done.missing:
        say(f"The book is back at {config.ledger}: {done.head.sequence} entries, all that the anchor knows.")
    else:
        say(f"The book is back at {config.ledger}, without {done.missing} entries that the anchor knows.")
        for account, lost in done.lost.items():
            amount = "more than can be bounded" if lost is None else str(lost)
            say(f"Account {account!r}: counted as spent for them: {amount}.")
        say("Questions that were answered in them are not stored any more, and cost again.")
    typer.echo(str(done.head))


def _restore_by_head(source: str, config: Config, anchor: str) -> None:
    """Without an anchor file: a copy that contains the head is taken, any other is not."""
    head = parsed_head(anchor)
    with Book(source, read_only=True) as copy:
        found = copy.history(after=head.sequence - 1, limit=1)
        if not found or found[0].hash != head.hash:
            hint = "Look for a newer copy: what was spent after this one is not known."
            raise InvalidParameter("anchor", anchor, f"to be in {source}, which ends with {copy.head()}", hint)
    restore(source, config.ledger, anchor=head).close()
    with declared_book(config) as book:
        now = book.head()
    _tell(Restored(head=now, missing=0, lost={}), config)


def _place(target: str, ledger: str, entries: int) -> str:
    """A file with the number of entries in its name, if the target is a folder."""
    if is_postgres(target) or not os.path.isdir(target):
        return target
    name = "discreet.ledger" if is_postgres(ledger) else os.path.basename(ledger)
    return os.path.join(target, f"{name}.{entries}")
