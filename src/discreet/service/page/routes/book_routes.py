"""Pages of the book: accounts and acts on them, history, certificates, what is left, and whether the chain is whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from discreet.errors import InvalidParameter
from discreet.ledger import Entry
from discreet.presentation.documents.query_text import asked_text
from discreet.service.caller import Permission, ServiceRole
from discreet.service.desk import Document
from discreet.service.page import book_view
from discreet.service.page.routes.analyst_routes import attachment
from discreet.service.page.steward_forms import amounts, needed_amounts
from discreet.service.page.visit import PageRoute, Visit, to

ON_A_PAGE = 50
LATEST = 10
MOST_ENTRIES = 10_000
"""Of one account on its page; older ones are in the history."""


def overview(visit: Visit) -> Response:
    """Shows all accounts."""
    found = visit.site.acts.budgets(visit.caller)
    return visit.page("overview.html", accounts=[_account_view(visit, told) for told in found])


def _account_view(visit: Visit, told: Document) -> book_view.AccountView:
    return book_view.account_view(told, told["balance"], visit.site.acts.spending(visit.caller, told["account"]))


def account(visit: Visit) -> Response:
    """Shows one account, who may ask on it, and what a steward can do."""
    names = []
    if visit.caller.may(Permission.MANAGE_PEOPLE):
        names = [person.name for person in visit.site.identities.people(visit.caller) if not person.disabled]
    done = _DONE.get(visit.asked("done"), "")
    roles = [("analyst", "analyst"), *([("steward", "steward")] if visit.caller.role is ServiceRole.OWNER else [])]
    return visit.page("account.html", **_account(visit), names=names, roles=roles, done=done)


def _account(visit: Visit) -> dict[str, Any]:
    name = visit.request.path_params["account"]
    told = next((one for one in visit.site.acts.budgets(visit.caller) if one["account"] == name), None)
    if told is None:
        raise InvalidParameter("account", name, "to be one that you may see", "Choose one of the list.")
    entries, acts = _entries(visit, name, None), visit.site.acts
    asked, spending = acts.questions(visit.caller, name), acts.spending(visit.caller, name)
    people = [book_view.member_view(one, asked.get(one["name"], 0)) for one in told["people"]]
    return {
        "account": book_view.account_view(told, told["balance"], spending),
        "members": people,
        "askers": [each for each in people if each.questions],
        "projects": [book_view.member_view(one) for one in told["projects"]],
        "burned": book_view.burned(spending),
        "latest": [book_view.entry_line(entry) for entry in reversed(entries[-LATEST:])],
        "kinds": Counter(entry.kind for entry in entries),
    }


def _entries(visit: Visit, account: str, analyst: str | None) -> list[Entry]:
    """The newest entries of an account in order, as many as a page looks at."""
    found: list[Entry] = visit.site.acts.recent(visit.caller, account=account, analyst=analyst, limit=MOST_ENTRIES)
    return found[::-1]


def report(visit: Visit) -> Response:
    """Shows an account as a report to be printed."""
    acts = visit.site.acts
    return visit.page(
        "report.html", **_account(visit), head=acts.anchor(visit.caller), warnings=acts.missing_anchors(visit.caller)
    )


# ---------------------------------------------------------------------------------------------------- acts


def _act(name: str, work: Callable[[Visit, str], object]) -> PageRoute:
    """A form of an account that becomes an entry of the book."""

    def done(visit: Visit) -> Response:
        place = visit.request.path_params["account"]
        work(visit, place)
        return to(f"/accounts/{quote(place, safe='')}?done={name}")

    path = f"/accounts/{{account}}/{name}"
    return PageRoute(method="POST", path=path, permission=Permission.STEWARD, handler=done)


def _amend(visit: Visit, account: str) -> None:
    visit.site.acts.amend(visit.caller, account, needed_amounts(visit), note=visit.text("note"))


def _renew(visit: Visit, account: str) -> None:
    if visit.text("sure") != "yes":
        raise InvalidParameter("sure", "", "to be ticked", "A renewal gives the same people a new budget.")
    visit.site.acts.renew(visit.caller, account, amounts(visit) or None, note=visit.text("note"))


def _unlock(visit: Visit, account: str) -> None:
    visit.site.acts.unlock(visit.caller, account, note=visit.text("note"))


def _appoint(visit: Visit, account: str) -> None:
    who, role, cap = visit.text("who"), visit.text("role"), amounts(visit) or None
    visit.site.acts.appoint(visit.caller, who, role, account=account, cap=cap)


def _allot(visit: Visit, account: str) -> None:
    cap, note = needed_amounts(visit), visit.text("note")
    visit.site.acts.allot(visit.caller, visit.text("project"), account=account, cap=cap, note=note)


_DONE = {
    "amend": "The budget is amended.",
    "renew": "A new period has begun.",
    "unlock": "The failure credits are given back.",
    "appoint": "They are appointed.",
    "allot": "The project has its cap.",
}


# ---------------------------------------------------------------------------------------------------- history


def history(visit: Visit) -> Response:
    """Shows entries, the newest first: everybody's to those who may see them, else one's own."""
    everybody = visit.caller.may(Permission.SEE_ALL)
    place, who = visit.asked("account"), visit.asked("who") if everybody else ""
    found, older = _before(visit, place or None, who or None, visit.asked("before"))
    return visit.page(
        "history.html",
        items=[book_view.entry_line(entry) for entry in found],
        everybody=everybody,
        names=[(told["account"], told["account"]) for told in visit.site.acts.budgets(visit.caller)],
        account=place,
        who=who,
        older=older,
        newer=None,
    )


def _before(visit: Visit, account: str | None, who: str | None, before: str) -> tuple[list[Entry], int | None]:
    """A page of entries before one of them, and where the next page begins."""
    given = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    found = visit.site.acts.recent(visit.caller, account=account, analyst=who, before=given, limit=ON_A_PAGE + 1)
    return found[:ON_A_PAGE], found[ON_A_PAGE - 1].sequence if len(found) > ON_A_PAGE else None


def own_budget(visit: Visit) -> Response:
    """Shows what is left for whoever looks."""
    own = []
    for told in visit.site.acts.budgets(visit.caller):
        if told["own"] is not None:
            spending = visit.site.acts.own_spending(visit.caller, told["account"])
            view = book_view.account_view(told, told["own"], spending)
            own.append({"view": view, "burned": book_view.burned(spending)})
    return visit.page("budget.html", accounts=own)


def certificate(visit: Visit) -> Response:
    """Shows what was promised about an answer."""
    sequence = visit.request.path_params["sequence"]
    found = visit.site.acts.certificate(visit.caller, sequence)
    text = json.dumps(found, indent=1, sort_keys=True)
    return visit.page("certificate.html", sequence=sequence, facts=_told(found), how=found.get("check", ""), text=text)


_TOLD = ("guarantee", "account", "unit", "relation", "analyst", "project", "cost", "sequence", "hash", "time")


def _told(found: Document) -> dict[str, str]:
    """The parts of a certificate that people read first; the rest is in the whole text."""
    told = {name: _text(found.get(name)) for name in _TOLD if found.get(name)}
    outcome = found.get("outcome")
    told["outcome"] = "none yet" if outcome is None else f"{outcome['entry']}, entry {outcome['sequence']}"
    return {**told, "question": asked_text(found), "head": _text(found.get("head"))}


def _text(part: Any) -> str:
    return str(part["text"]) if isinstance(part, dict) and "text" in part else str(part)


def export_certificate(visit: Visit) -> Response:
    """Gives a certificate as a file."""
    sequence = visit.request.path_params["sequence"]
    found = visit.site.acts.certificate(visit.caller, sequence)
    return attachment(json.dumps(found, indent=1, sort_keys=True), "application/json", f"certificate-{sequence}.json")


def show_verify(visit: Visit) -> Response:
    """Shows the button."""
    return visit.page("verify.html", head="")


def verify(visit: Visit) -> Response:
    """Walks the whole book."""
    return visit.page("verify.html", head=str(visit.site.acts.verify(visit.caller)))


def anchor(visit: Visit) -> Response:
    """Gives the head of the book as a file."""
    return attachment(f"{visit.site.acts.anchor(visit.caller)}\n", "text/plain; charset=utf-8", "discreet.anchor")


_OWN, _ALL = Permission.SEE_OWN, Permission.SEE_ALL
ROUTES = (
    PageRoute(method="GET", path="/overview", permission=_ALL, handler=overview),
    PageRoute(method="GET", path="/accounts/{account}", permission=_ALL, handler=account),
    PageRoute(method="GET", path="/accounts/{account}/report", permission=Permission.VERIFY, handler=report),
    _act("amend", _amend),
    _act("renew", _renew),
    _act("unlock", _unlock),
    _act("appoint", _appoint),
    _act("allot", _allot),
    PageRoute(method="GET", path="/history", permission=_OWN, handler=history),
    PageRoute(method="GET", path="/budget", permission=_OWN, handler=own_budget),
    PageRoute(method="GET", path="/certificates/{sequence:int}", permission=_OWN, handler=certificate),
    PageRoute(method="GET", path="/certificates/{sequence:int}.json", permission=_OWN, handler=export_certificate),
    PageRoute(method="GET", path="/verify", permission=Permission.VERIFY, handler=show_verify),
    PageRoute(method="POST", path="/verify", permission=Permission.VERIFY, handler=verify),
    PageRoute(method="GET", path="/anchor", permission=Permission.VERIFY, handler=anchor),
)
