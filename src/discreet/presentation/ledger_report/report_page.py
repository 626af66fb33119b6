"""The report on a ledger: one HTML file, from the ledger alone; no data are read, and nothing is spent."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, LedgerTampered
from discreet.ledger import Head, Ledger
from discreet.presentation.ledger_report.release_cards import stored_releases
from discreet.presentation.ledger_view.account_view import AccountView, burn_down_chart, headline, view_account
from discreet.presentation.ledger_view.forecast import METHOD
from discreet.presentation.ledger_view.ledger_history import LedgerHistory, anchor_note, read_history
from discreet.presentation.template_environment import render
from discreet.report import page
from discreet.report.display import plain, rate
from discreet.report.html import Html

TITLE = "What the ledger says"
MOST_SPENDERS = 50
MOST_WORDINGS = 20
SHARES = (
    "Shares follow the rule that leaves the most budget. Many small queries cost less together than their sum, so a "
    "share can be larger than the remaining budget by the rule in force, which the command budget shows."
)
_UNREADABLE = AttributeError, KeyError, TypeError, ValueError  # of a ledger that is not as it was written
_SECTIONS = {
    "asked": "Who asked what",
    "released": "What was released",
    "changes": "What was declared and changed",
    "failures": "Failures",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of verifying a ledger.

    Attributes:
        head: its last entry, to be kept elsewhere.
        problem: what was found; empty if nothing was.
        anchor: a head that was exported earlier, if one was given.
        anchored: whether the ledger contains it; None without one.
    """

    head: Head
    problem: str = ""
    anchor: Head | None = None
    anchored: bool | None = None

    @property
    def passed(self) -> bool:
        """Returns whether the chain is whole and contains the anchor, if there is one."""
        return not self.problem and self.anchored is not False

    @property
    def word(self) -> str:
        """Returns the verdict in a few words."""
        return "Verified" if self.passed else "Ledger changed" if self.problem else "Anchor not found"

    @property
    def words(self) -> str:
        """Returns the verdict, in a sentence or two."""
        if self.problem:
            return self.problem
        if not self.passed:
            return "The ledger does not contain the anchor: it is older than the anchor, or it is another ledger."
        anchored = "" if self.anchor is None else f" It contains the anchor, entry {self.anchor.sequence:,}."
        return f"The whole chain was verified: {self.head.sequence:,} entries, all unchanged.{anchored}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport:
    """A report on a ledger, as a page.

    Attributes:
        text: the page.
        verification: of the ledger it is about.

    >>> made = ledger_report(Ledger())
    >>> made.verification.passed, "The whole chain was verified: 0 entries" in made.text
    (True, True)
    """

    text: str
    verification: Verification


def ledger_report(ledger: Ledger, *, anchor: Head | None = None, now: dt.datetime | None = None) -> LedgerReport:
    """Returns the report on a ledger, of all of its accounts.

    Args:
        ledger: may be read-only; nothing is written to it.
        anchor: a head that was exported earlier, which the ledger must contain.
        now: the end of what is known, from which forecasts begin; the present unless given.

    Raises:
        MissingExtra: if charts cannot be drawn here.
    """
    time = now or dt.datetime.now(dt.UTC)
    verification = verify_ledger(ledger, anchor)
    try:
        told, contents = _collect_content(ledger, read_history(ledger), time)
    except _UNREADABLE:
        if verification.passed:
            raise
        told, contents = {"readable": False, "accounts": [], "notes": []}, {}
    lead = (
        f"As of {time.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC. Everything on this page comes from the ledger: no data "
        "were read for it, and nothing was spent. The page names people and their queries, so show it only to people "
        "who look after the data."
    )
    body = render("ledger_report.html", verification=verification, **told)
    return LedgerReport(text=page.document(TITLE, body, lead=lead, contents=contents), verification=verification)


def _collect_content(ledger: Ledger, history: LedgerHistory, now: dt.datetime) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns all that the template shows of a ledger, and the table of contents."""
    views = [view_account(ledger.standing(name), account, now) for name, account in history.accounts.items()]
    charges = [one for one in reversed(history.charges.values()) if not one.entry.paid_by]
    told = {
        "readable": True,
        "notes": [anchor_note(action) for action in reversed(history.missing_anchors)],
        "accounts": [_account(view, now) for view in views],
        "shares": SHARES,
        "often": [(view.name, *counted) for view in views for counted in view.wordings[:MOST_WORDINGS]],
        "asked": charges,
        "released": stored_releases(ledger, history),
        "actions": list(reversed(history.actions)),
        "failures": sum(view.whole.failed for view in views),
        "stopped": [(who[:1].upper() + who[1:], view.name) for view in views for who in view.whole.stopped_names],
        "failed": [one for one in reversed(history.charges.values()) if one.outcome == "failed"],
    }
    return told, {_anchor(view.name): f"Account {plain(view.name)}" for view in views} | _SECTIONS


def _account(view: AccountView, now: dt.datetime) -> dict[str, Any]:
    whole = view.whole
    pace = {"Share remaining": rate(whole.left), "Queries": f"{whole.queries:,}", "Runs out": whole.used_up}
    return {
        "view": view,
        "anchor": _anchor(view.name),
        "figures": whole.facts | pace,
        "figure": _figure(view, now),
        "spenders": view.ranked_spenders[:MOST_SPENDERS],
    }


def _figure(view: AccountView, now: dt.datetime) -> Html | None:
    shown = [view.whole, *view.ranked_spenders]
    chart = burn_down_chart(shown, now=now)
    if chart is None:
        return None
    return page.figure(
        chart,
        caption=f"Lines: the remaining share of each budget or cap. Dashed: the forecast. {METHOD}",
        description=f"{headline(view.whole, is_forecast=True)}. "
        + "; ".join(f"{one.label}: {rate(one.left)} remaining" for one in shown[: 1 + MOST_SPENDERS]),
        broad=True,
    )


def _anchor(account: str) -> str:
    return "account-" + "".join(letter if letter.isalnum() else f"-{ord(letter):x}-" for letter in account)


def write_report(
    ledger: Ledger | str, path: str | Path, *, anchor: Head | None = None, now: dt.datetime | None = None
) -> Verification:
    """Writes the report on a ledger to a file that only its owner may read, over an older one.

    Args:
        ledger: one that is open, or where it is: a file or an address.
        path: of the page.
        anchor: a head that was exported earlier, which the ledger must contain.
        now: the end of what is known; the present unless given.

    Returns:
        Whether the ledger is as it was written; the page says so, too.

    Raises:
        MissingExtra: if charts cannot be drawn; nothing is written.
        InvalidParameter: if the file cannot be written.

    >>> import tempfile
    >>> from discreet.privacy import Budget, Unit
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient", "patient_id"), budget=Budget(epsilon=1))
    >>> write_report(ledger, tempfile.mkdtemp() + "/report.html").passed
    True
    """
    if isinstance(ledger, str):
        with Ledger(ledger, read_only=True) as opened:
            return write_report(opened, path, anchor=anchor, now=now)
    made = ledger_report(ledger, anchor=anchor, now=now)
    _write(Path(path), made.text)
    return made.verification


def _write(path: Path, text: str) -> None:
    """Writes a page whole or not at all: a scheduled run must not leave half of one."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        beside.replace(path)
    except OSError:
        raise InvalidParameter("out", str(path), "to be a file that can be written", "Name another file.") from None


def verify_ledger(ledger: Ledger, anchor: Head | None = None) -> Verification:
    """Returns whether a ledger is as it was written and contains an anchor; unlike `check_anchor`, it freezes nothing.

    >>> from discreet.privacy import Budget, Unit
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient", "patient_id"), budget=Budget(epsilon=1))
    >>> anchor = ledger.head()  # kept elsewhere
    >>> verify_ledger(ledger, anchor).passed, verify_ledger(Ledger(), anchor).passed  # another ledger in its place
    (True, False)
    """
    problem = ""
    try:
        head = ledger.verify()
    except LedgerTampered as error:
        head, problem = ledger.head(), str(error)
    if anchor is None:
        return Verification(head=head, problem=problem)
    found = ledger.history(after=anchor.sequence - 1, limit=1) if anchor.sequence else ()
    anchored = not anchor.sequence or (bool(found) and found[0].hash == anchor.hash)
    return Verification(head=head, problem=problem, anchor=anchor, anchored=anchored)
