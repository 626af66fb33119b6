"""The report on a book: one HTML file, from the ledger alone; no data are read, and nothing is spent."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import InvalidParameter, LedgerTampered
from discreet.ledger import Book, Head
from discreet.presentation.ledger_report.ledger_history import BookHistory, read_history
from discreet.presentation.ledger_report.report_sections import (
    account_link,
    account_section,
    anchor_notes,
    asked_section,
    changes_section,
    failures_section,
    released_section,
    spenders,
)
from discreet.report import page
from discreet.report.html import Html

TITLE = "What the book says"
_UNREADABLE = AttributeError, KeyError, TypeError, ValueError  # of a book that is not as it was written
_SECTIONS = {
    "asked": "Who asked what",
    "released": "What was released",
    "changes": "What was declared and changed",
    "failures": "Failures",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether a book is as it was written.

    Attributes:
        head: its last entry, to be kept elsewhere.
        problem: what was found; empty if nothing was.
        anchor: a head that was exported earlier, if one was given.
        anchored: whether the book contains it; None without one.
    """

    head: Head
    problem: str = ""
    anchor: Head | None = None
    anchored: bool | None = None

    @property
    def passed(self) -> bool:
        """Whether the chain is whole and contains the anchor, if there is one."""
        return not self.problem and self.anchored is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class BookReport:
    """A report.

    Attributes:
        text: the page.
        verification: of the book it is about.

    >>> made = book_report(Book())
    >>> made.verification.passed, "The whole chain was walked: 0 entries" in made.text
    (True, True)
    """

    text: str
    verification: Verification


def book_report(book: Book, *, anchor: Head | None = None, now: dt.datetime | None = None) -> BookReport:
    """Returns the report on a book, of all of its accounts.

    Args:
        book: may be read-only; nothing is written to it.
        anchor: a head that was exported earlier, which the book must contain.
        now: the end of what is known, from which forecasts begin; the present unless given.

    Raises:
        MissingExtra: if charts cannot be drawn here.
    """
    time = now or dt.datetime.now(dt.UTC)
    verification = verified(book, anchor)
    try:
        history = read_history(book)
        sections, contents = _sections(book, history, time)
    except _UNREADABLE:
        if verification.passed:
            raise
        sections, contents, history = [], {}, BookHistory()
    lead = (
        f"As of {time.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC. Everything on this page was read from the ledger: no "
        "data were read for it, and nothing was spent. It names people and their questions, so it is for those who "
        "look after the data."
    )
    text = page.document(TITLE, _verdict(verification), *anchor_notes(history), *sections, lead=lead, contents=contents)
    return BookReport(text=text, verification=verification)


def write_report(
    book: Book | str, path: str | Path, *, anchor: Head | None = None, now: dt.datetime | None = None
) -> Verification:
    """Writes the report on a book to a file that only its owner may read, over an older one.

    Args:
        book: one that is open, or where it is: a file or an address.
        path: of the page.
        anchor: a head that was exported earlier, which the book must contain.
        now: the end of what is known; the present unless given.

    Returns:
        Whether the book is as it was written; the page tells it, too.

    Raises:
        MissingExtra: if charts cannot be drawn; nothing is written.
        InvalidParameter: if the file cannot be written.

    >>> import tempfile
    >>> from discreet.privacy import Budget, Unit
    >>> book = Book()
    >>> _ = book.stewardship.open_account("patients", unit=Unit("patient", "patient_id"), budget=Budget(epsilon=1))
    >>> write_report(book, tempfile.mkdtemp() + "/report.html").passed
    True
    """
    if isinstance(book, str):
        with Book(book, read_only=True) as opened:
            return write_report(opened, path, anchor=anchor, now=now)
    made = book_report(book, anchor=anchor, now=now)
    _write(Path(path), made.text)
    return made.verification


def _write(path: Path, text: str) -> None:
    """A page that is whole or not there: a scheduled run must not leave half of one."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        beside.replace(path)
    except OSError:
        raise InvalidParameter("out", str(path), "to be a file that can be written", "Name another.") from None


def verified(book: Book, anchor: Head | None = None) -> Verification:
    """Returns whether a book is as it was written and contains an anchor; unlike `check_anchor`, it freezes nothing.

    >>> from discreet.privacy import Budget, Unit
    >>> book = Book()
    >>> _ = book.stewardship.open_account("patients", unit=Unit("patient", "patient_id"), budget=Budget(epsilon=1))
    >>> anchor = book.head()  # kept elsewhere
    >>> verified(book, anchor).passed, verified(Book(), anchor).passed  # another book in its place
    (True, False)
    """
    problem = ""
    try:
        head = book.verify()
    except LedgerTampered as error:
        head, problem = book.head(), str(error)
    if anchor is None:
        return Verification(head=head, problem=problem)
    found = book.history(after=anchor.sequence - 1, limit=1) if anchor.sequence else ()
    anchored = not anchor.sequence or (bool(found) and found[0].hash == anchor.hash)
    return Verification(head=head, problem=problem, anchor=anchor, anchored=anchored)


def _verdict(found: Verification) -> Html:
    if found.passed:
        word, told = "Verified", f"The whole chain was walked: {found.head.sequence:,} entries, as they were written."
    elif found.problem:
        word, told = "Not as it was written", found.problem
    else:
        word, told = "Not this book", "It does not contain the anchor: it is older than that, or another one."
    anchored = (
        []
        if found.anchor is None or not found.passed
        else [f" It contains the anchor, entry {found.anchor.sequence:,}."]
    )
    head = page.paragraph("Its head; keep it elsewhere, as an anchor for the next time:")
    parts = page.verdict(word, told + "".join(anchored), passed=found.passed), head, page.code(str(found.head))
    return page.group(*parts)


def _sections(book: Book, history: BookHistory, now: dt.datetime) -> tuple[list[Html], dict[str, str]]:
    accounts = {name: spenders(book, account, now) for name, account in history.accounts.items()}
    parts = [account_section(history.accounts[name], found, now) for name, found in accounts.items()]
    balances = {name: found[0].balance for name, found in accounts.items()}
    parts += [
        asked_section(history),
        released_section(book, history),
        changes_section(history),
        failures_section(history, balances),
    ]
    return parts, dict(map(account_link, history.accounts)) | _SECTIONS
