"""Pages of the book: accounts and acts on them, history, certificates, what is left, and whether the chain is whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from discreet.errors import InvalidParameter
from discreet.ledger import Entry
from discreet.presentation.ledger_view.account_view import burn_down_chart
from discreet.presentation.ledger_view.entry_view import view_entry
from discreet.presentation.ledger_view.query_text import asked_text
from discreet.requests.ledger_requests import Allot, Amend, Appoint, Renew, Unlock
from discreet.service.caller import Permission, ServiceRole
from discreet.service.desk import Document
from discreet.service.page.routes.analyst_routes import attachment
from discreet.service.page.steward_forms import amounts, needed_amounts
from discreet.service.page.visit import PageRoute, Visit, to

ON_A_PAGE = 50
LATEST = 10


def overview(visit: Visit) -> Response:
    """Shows all accounts."""
    acts, caller = visit.site.acts, visit.caller
    views = [acts.account_view(caller, told["account"]) for told in acts.budgets(caller)]
    return visit.page("overview.html", accounts=views)


def account(visit: Visit) -> Response:
    """Shows one account, who may ask on it, and what a steward can do."""
    names = []
    if visit.caller.may(Permission.MANAGE_PEOPLE):
        names = [person.name for person in visit.site.identities.people(visit.caller) if not person.disabled]
    done = _DONE.get(visit.asked("done"), "")
    roles = [("analyst", "analyst"), *([("steward", "steward")] if visit.caller.role is ServiceRole.OWNER else [])]
    return visit.page("account.html", **_account(visit), names=names, roles=roles, done=done)


def _account(visit: Visit) -> dict[str, Any]:
    name, acts = visit.request.path_params["account"], visit.site.acts
    if all(told["account"] != name for told in acts.budgets(visit.caller)):
        raise InvalidParameter("account", name, "to be one that you may see", "Choose one of the list.")
    view, latest = acts.account_view(visit.caller, name), acts.recent(visit.caller, account=name, limit=LATEST)
    chart = burn_down_chart([view.whole])
    return {"account": view, "burned": chart, "latest": list(map(view_entry, latest))}


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
    return PageRoute(method="POST", path=path, permission=Permission.STEWARD, handler=done, verbs=(name,))


def _amend(visit: Visit, account: str) -> None:
    asked = Amend.of(account=account, budget=needed_amounts(visit), note=visit.text("note"))
    visit.site.acts.perform(visit.caller, asked)


def _renew(visit: Visit, account: str) -> None:
    if visit.text("sure") != "yes":
        raise InvalidParameter("sure", "", "to be ticked", "A renewal gives the same people a new budget.")
    asked = Renew.of(account=account, budget=amounts(visit) or None, note=visit.text("note"))
    visit.site.acts.perform(visit.caller, asked)


def _unlock(visit: Visit, account: str) -> None:
    visit.site.acts.perform(visit.caller, Unlock.of(account=account, note=visit.text("note")))


def _appoint(visit: Visit, account: str) -> None:
    who, role, cap = visit.text("who"), visit.text("role"), amounts(visit) or None
    visit.site.acts.perform(visit.caller, Appoint.of(who=who, role=role, account=account, cap=cap))


def _allot(visit: Visit, account: str) -> None:
    cap, note = needed_amounts(visit), visit.text("note")
    asked = Allot.of(project=visit.text("project"), account=account, cap=cap, note=note)
    visit.site.acts.perform(visit.caller, asked)


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
        items=list(map(view_entry, found)),
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
    """Shows what the caller may still spend."""
    own, acts = [], visit.site.acts
    for told in acts.budgets(visit.caller):
        if told["own"] is not None:
            view = acts.own_view(visit.caller, told["account"])
            own.append({"account": told["account"], "view": view, "burned": burn_down_chart([view])})
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
    PageRoute(method="GET", path="/history", permission=_OWN, handler=history, verbs=("history",)),
    PageRoute(method="GET", path="/budget", permission=_OWN, handler=own_budget, verbs=("budget",)),
    PageRoute(method="GET", path="/certificates/{sequence:int}", permission=_OWN, handler=certificate),
    PageRoute(method="GET", path="/certificates/{sequence:int}.json", permission=_OWN, handler=export_certificate),
    PageRoute(method="GET", path="/verify", permission=Permission.VERIFY, handler=show_verify),
    PageRoute(method="POST", path="/verify", permission=Permission.VERIFY, handler=verify, verbs=("verify",)),
    PageRoute(method="GET", path="/anchor", permission=Permission.VERIFY, handler=anchor),
)
