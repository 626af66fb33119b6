"""`discreet anchor`, `backup` and `restore`: copies of the ledger, and the anchor, which shows what a copy lacks.

The anchor is in the state folder, by the ledger's id, or where `anchor` in discreet.toml says. Every command that opens
the ledger compares both and brings the anchor up to date, so that an older copy in its place is noticed, however it got
there.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from discreet.cli.declaration_commands import HERE, ConfigFile
from discreet.cli.output import say
from discreet.cli.steward.history import parsed_head
from discreet.cli.verbs.verb_commands import By
from discreet.curator.config.enrolment import declared_ledger
from discreet.curator.config.toml_file import load
from discreet.errors import InvalidParameter
from discreet.ledger import (
    OWNER,
    AnchoredLedger,
    Head,
    Ledger,
    RestoreReport,
    accept_missing_anchor,
    is_there,
    join_anchor,
    open_ledger,
    restore_anchored,
    restore_by_head,
)
from discreet.postgres_url import is_postgres

Target = Annotated[str, typer.Argument(metavar="TARGET", help="A new file, a folder, or an empty database.")]
Source = Annotated[str, typer.Argument(metavar="SOURCE", help="A backup: a file, or postgresql://host/database.")]
AcceptLoss = Annotated[
    bool, typer.Option("--accept-loss", help="Accept an older copy. What only the anchor knows counts as spent.")
]
Anchored = Annotated[
    str | None,
    typer.Option("--anchor", metavar="SEQ:HASH", help="A head that was printed earlier, if the anchor is lost."),
]
NewPlace = Annotated[
    str | None, typer.Option(metavar="LEDGER", help="Where to put the ledger, instead of the place in discreet.toml.")
]
LedgerPlace = Annotated[
    str | None, typer.Argument(metavar="[LEDGER]", help="A file or an address. Default: the ledger of discreet.toml.")
]
AnchorFile = Annotated[
    str | None, typer.Option("--file", metavar="FILE", help="The anchor, if it is not in the state folder.")
]
Join = Annotated[
    str | None, typer.Option(metavar="SEQ:HASH", help="Make an anchor here from the head that another machine prints.")
]
Accept = Annotated[bool, typer.Option("--accept-missing", help="Replace a lost anchor. Needs --by and --reason.")]
Note = Annotated[str, typer.Option(help="The reason, kept in the ledger.")]
Who = Annotated[str | None, typer.Option(metavar="NAME", help="The steward who is responsible.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why the anchor is missing. Every report shows it.")]


def anchor(
    ledger: LedgerPlace = None,
    *,
    join: Join = None,
    accept_missing: Accept = False,
    by: Who = None,
    reason: Reason = "",
    file: AnchorFile = None,
    config: ConfigFile = HERE,
) -> None:
    """Compare the ledger with its anchor and print its head. Or join another machine, or accept a lost anchor."""
    place, kept, former = _places(ledger, file, config)
    require_ledger("LEDGER", place)
    if join is not None and accept_missing:
        hint = "Use --join alone if you have the head of another machine."
        raise InvalidParameter("--join", join, "to come without --accept-missing", hint)
    if accept_missing:
        if by is None or not reason.strip():
            hint = 'For example: --accept-missing --by ana --reason "the disk of the anchor broke".'
            raise InvalidParameter("--by", by, "to come with a --reason", hint)
        head = accept_missing_anchor(place, by=by, reason=reason, anchor_file=kept)
        say(f"The ledger has a new anchor. Entry {head.sequence} says who accepted it and why; every report shows it.")
    elif join is not None:
        head = join_anchor(place, parsed_head(join), by=by or OWNER, anchor_file=kept)
        say(f"The ledger has all that the other machine knows, and an anchor here. See entry {head.sequence}.")
    else:
        with open_ledger(place, anchor=kept, former=former, read_only=True) as book:
            head, found = book.head(), book.anchor_file if isinstance(book, AnchoredLedger) else ""
        say(f"The ledger has all that its anchor {found} knows." if found else "The ledger has no anchor.")
    typer.echo(str(head))


def _places(ledger: str | None, file: str | None, config: ConfigFile) -> tuple[str, str | None, str]:
    """Returns the ledger, the file of its anchor if that is given, and where earlier versions kept it."""
    if ledger is not None:
        return ledger, file, ""
    declared = load(config)
    if declared.anchor == "" and file is None:
        hint = 'Delete `anchor = ""` from discreet.toml, or pass --file FILE.'
        raise InvalidParameter("anchor", "", "not to be switched off", hint)
    return declared.ledger, file or declared.anchor, declared.former_anchor


def backup(target: Target, *, config: ConfigFile = HERE) -> None:
    """Copy the ledger to a new place, verify the copy, and record its head in the anchor."""
    declared = load(config)
    with declared_ledger(declared, read_only=True) as ledger:
        place = _place(target, declared.ledger, ledger.verify().sequence)
        if not is_postgres(place) and os.path.exists(place):
            raise InvalidParameter("TARGET", place, "not to exist yet", "Name a new file, or a folder.")
        head = write_copy(ledger, place)
        if isinstance(ledger, AnchoredLedger):
            ledger.keep_anchor(backup=head)
    say(f"Copied {head.sequence} entries to {place}, readable by its owner only, and verified them.")
    if isinstance(ledger, AnchoredLedger):
        say(
            f"The anchor {ledger.anchor_file} now knows the copy. Store the copy and the anchor in different places: "
            "restored together, they cannot show what is missing."
        )
    typer.echo(str(head))


def restore_ledger(
    source: Source,
    *,
    accept_loss: AcceptLoss = False,
    anchor: Anchored = None,
    note: Note = "",
    by: By = OWNER,
    ledger: NewPlace = None,
    config: ConfigFile = HERE,
) -> None:
    """Put a backup in the place of a lost ledger. A backup that lacks spending is refused."""
    declared = None if ledger is not None else load(config)
    target = str(ledger) if declared is None else declared.ledger
    require_ledger("SOURCE", source, "Name a backup.")
    file = None if declared is None else declared.anchor
    if anchor is not None:
        done = restore_by_head(source, target, head=parsed_head(anchor), anchor_file=file or None, by=by)
    elif file == "":
        hint = "Pass --anchor SEQ:HASH, as `discreet backup` printed it."
        raise InvalidParameter("anchor", None, "to be declared, or given", hint)
    else:
        done = restore_anchored(source, target, anchor_file=file, accept_loss=accept_loss, by=by, note=note)
    _tell(done, target)


def require_ledger(word: str, place: str, hint: str = "Name a ledger file, or an address.") -> None:
    """Refuses a place where no ledger is.

    Raises:
        InvalidParameter: naming the word of the command line.
    """
    if not is_there(place):
        raise InvalidParameter(word, place, "to exist", hint)


def write_copy(ledger: Ledger, place: str) -> Head:
    """Writes a copy of a ledger and verifies it; returns the head of both."""
    head = ledger.backup(place)
    with Ledger(place, read_only=True) as copy:
        copy.verify()
    return head


def _tell(done: RestoreReport, ledger: str) -> None:
    if not done.missing:
        say(f"The ledger is restored at {ledger}: {done.head.sequence} entries, all that the anchor knows.")
    else:
        say(f"The ledger is restored at {ledger}, without {done.missing} entries that the anchor knows.")
        for account, lost in done.lost.items():
            amount = "an unbounded amount" if lost is None else str(lost)
            say(f"Account {account!r}: for the missing entries, {amount} counts as spent.")
        say("The answers in the missing entries are no longer stored. Asking those queries again costs again.")
    typer.echo(str(done.head))


def _place(target: str, ledger: str, entries: int) -> str:
    """Returns the target, or a file with the number of entries in its name if the target is a folder."""
    if is_postgres(target) or not os.path.isdir(target):
        return target
    name = "discreet.ledger" if is_postgres(ledger) else os.path.basename(ledger)
    return os.path.join(target, f"{name}.{entries}")
