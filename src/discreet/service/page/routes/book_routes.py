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
from discreet.service.caller import Permission
from discreet.service.page import book_view
from discreet.service.page.routes.analyst_routes import attachment
from discreet.service.page.steward_forms import budget, needed_budget
from discreet.service.page.visit import PageRoute, Visit, to

ON_A_PAGE = 50
LATEST = 10
MOST_ENTRIES = 20_000
"""Of one account on its page; older ones are in the history."""


async def overview(visit: Visit) -> Response:
    """Shows all accounts."""
    tables = _tables(visit)
    found = visit.site.acts.budgets(visit.caller)
    views = [book_view.account_view(name, balance, tables.get(name, ())) for name, balance in found.items()]
    return visit.page("overview.html", accounts=views)


def _tables(visit: Visit) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table in visit.site.desk.tables(visit.caller):
        if table["protected"]:
            found.setdefault(table["account"], []).append(table["name"])
    return found


async def account(visit: Visit) -> Response:
    """Shows one account, who may ask on it, and what a steward can do."""
    context = _account(visit)
    names = []
    if visit.caller.may(Permission.MANAGE_PEOPLE):
        names = [person.name for person in visit.site.identities.people(visit.caller) if not person.disabled]
    return visit.page("account.html", **context, names=names, done=_DONE.get(visit.asked("done"), ""))


def _account(visit: Visit) -> dict[str, Any]:
    name, acts = visit.request.path_params["account"], visit.site.acts
    balance = acts.budget(visit.caller, name)
    entries = acts.history(visit.caller, account=name, limit=MOST_ENTRIES)
    opened = acts.account(visit.caller, name)
    asked = book_view.questions_by_person(entries)
    roles = book_view.appointed(entries)
    members = [
        book_view.member_view(who, role, cap, acts.budget(visit.caller, name, analyst=who), asked[who])
        for who, (role, cap) in roles.items()
    ]
    strangers = [
        book_view.member_view(who, "", None, acts.budget(visit.caller, name, analyst=who), asked[who])
        for who in asked
        if who not in roles
    ]
    return {
        "account": book_view.account_view(name, balance, _tables(visit).get(name, ()), opened),
        "members": members,
        "askers": [each for each in (*members, *strangers) if each.questions],
        "projects": [
            book_view.member_view(project, "", cap, acts.budget(visit.caller, name, project=project))
            for project, cap in book_view.allotted(entries).items()
        ],
        "burned": book_view.burned(entries, balance),
        "latest": [book_view.entry_line(entry) for entry in reversed(entries[-LATEST:])],
        "kinds": Counter(entry.kind for entry in entries),
    }


async def report(visit: Visit) -> Response:
    """Shows an account as a report to be printed."""
    return visit.page("report.html", **_account(visit), head=str(visit.site.acts.anchor(visit.caller)))


# ---------------------------------------------------------------------------------------------------- acts


def _act(name: str, work: Callable[[Visit, str], object]) -> PageRoute:
    """A form of an account that becomes an entry of the book."""

    async def done(visit: Visit) -> Response:
        place = visit.request.path_params["account"]
        work(visit, place)
        return to(f"/accounts/{quote(place, safe='')}?done={name}")

    path = f"/accounts/{{account}}/{name}"
    return PageRoute(method="POST", path=path, permission=Permission.STEWARD, handler=done)


def _amend(visit: Visit, account: str) -> None:
    visit.site.acts.amend(visit.caller, account, budget=needed_budget(visit), note=visit.text("note"))


def _renew(visit: Visit, account: str) -> None:
    if visit.text("sure") != "yes":
        raise InvalidParameter("sure", "", "to be ticked", "A renewal gives the same people a new budget.")
    visit.site.acts.renew(visit.caller, account, budget=budget(visit), note=visit.text("note"))


def _unlock(visit: Visit, account: str) -> None:
    visit.site.acts.unlock(visit.caller, account, note=visit.text("note"))


def _appoint(visit: Visit, account: str) -> None:
    visit.site.acts.appoint(visit.caller, visit.text("who"), visit.text("role"), account=account, cap=budget(visit))


def _allot(visit: Visit, account: str) -> None:
    cap, note = needed_budget(visit), visit.text("note")
    visit.site.acts.allot(visit.caller, visit.text("project"), account=account, cap=cap, note=note)


_DONE = {
    "amend": "The budget is amended.",
    "renew": "A new period has begun.",
    "unlock": "The failure credits are given back.",
    "appoint": "They are appointed.",
    "allot": "The project has its cap.",
}


# ---------------------------------------------------------------------------------------------------- history


async def history(visit: Visit) -> Response:
    """Shows entries, the newest first: everybody's to those who may see them, else one's own."""
    everybody = visit.caller.may(Permission.SEE_ALL)
    place, who = visit.asked("account"), visit.asked("who") if everybody else ""
    found, older = _before(visit, place or None, who or None, visit.asked("before"))
    return visit.page(
        "history.html",
        items=[book_view.entry_line(entry) for entry in found],
        everybody=everybody,
        names=[(name, name) for name in visit.site.acts.budgets(visit.caller)],
        account=place,
        who=who,
        older=older,
        newer=None,
    )


def _before(visit: Visit, account: str | None, who: str | None, before: str) -> tuple[list[Entry], int | None]:
    """A page of entries before one of them, and where the next page begins."""
    given = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    found = visit.site.acts.recent(visit.caller, account=account, analyst=who, before=given, limit=ON_A_PAGE + 1)
    shown = list(found[:ON_A_PAGE])
    return shown, shown[-1].sequence if len(found) > ON_A_PAGE else None


async def own_budget(visit: Visit) -> Response:
    """Shows what is left for whoever looks."""
    acts, own = visit.site.acts, []
    for name, balance in acts.own_budgets(visit.caller).items():
        entries = acts.history(visit.caller, account=name, analyst=visit.caller.name, limit=MOST_ENTRIES)
        own.append({"view": book_view.account_view(name, balance), "burned": book_view.burned(entries, balance)})
    return visit.page("budget.html", accounts=own)


async def certificate(visit: Visit) -> Response:
    """Shows what was promised about an answer."""
    sequence = visit.request.path_params["sequence"]
    found = visit.site.acts.certificate(visit.caller, sequence)
    text = json.dumps(found, indent=1, sort_keys=True)
    return visit.page("certificate.html", sequence=sequence, facts=_plain_facts(found), text=text)


def _plain_facts(found: dict[str, Any], before: str = "") -> dict[str, str]:
    """The parts of a certificate by name, those of its parts included; long ones are in the whole text."""
    told: dict[str, str] = {}
    for name, value in found.items():
        if isinstance(value, dict) and "text" in value:
            told[f"{before}{name}"] = str(value["text"])
        elif isinstance(value, dict):
            told |= _plain_facts(value, f"{before}{name}, ") if name not in ("event", "answer") else {}
        elif isinstance(value, str | int | float | bool) and len(str(value)) <= book_view.MOST_DETAILS:
            told[f"{before}{name}"] = str(value)
    return told


async def export_certificate(visit: Visit) -> Response:
    """Gives a certificate as a file."""
    sequence = visit.request.path_params["sequence"]
    found = visit.site.acts.certificate(visit.caller, sequence)
    return attachment(json.dumps(found, indent=1, sort_keys=True), "application/json", f"certificate-{sequence}.json")


async def show_verify(visit: Visit) -> Response:
    """Shows the button."""
    return visit.page("verify.html", head="")


async def verify(visit: Visit) -> Response:
    """Walks the whole book."""
    return visit.page("verify.html", head=str(visit.site.acts.verify(visit.caller)))


async def anchor(visit: Visit) -> Response:
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
