"""Pages of the ledger: accounts and actions on them, history, certificates, budgets, and whether it is whole."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from discreet.errors import InvalidParameter
from discreet.presentation.ledger_view.account_view import burn_down_chart
from discreet.presentation.ledger_view.entry_view import view_entry
from discreet.presentation.ledger_view.query_text import asked_text
from discreet.requests.request import arguments
from discreet.requests.verb_table import VERBS, Queue, Verb
from discreet.service.caller import Permission, ServiceRole
from discreet.service.page.page_request import PageRequest, PageRoute, attachment, to
from discreet.service.page.request_forms import FormField, form_of, label_of, read_form
from discreet.service.request_executor import Document

ON_A_PAGE = 50
LATEST = 10


def overview(visit: PageRequest) -> Response:
    """Shows all accounts that the caller may see."""
    acts, caller = visit.site.acts, visit.caller
    views = [acts.account_view(caller, told["account"]) for told in acts.budgets(caller)]
    return visit.page("overview.html", accounts=views)


def account(visit: PageRequest) -> Response:
    """Shows one account, who may ask on it, and what a steward can do."""
    names = []
    if visit.caller.may(Permission.MANAGE_PEOPLE):
        names = [person.name for person in visit.site.identities.people(visit.caller) if not person.disabled]
    actions = [(verb, label_of(verb.name), _fields(visit, verb)) for verb in ACTIONS]
    done = next((title for verb, title, _ in actions if verb.name == visit.query_parameter("done")), "")
    return visit.page("account.html", **_account(visit), names=names, actions=actions, safe=SAFE, done=done)


def _account(visit: PageRequest) -> dict[str, Any]:
    name, acts = visit.request.path_params["account"], visit.site.acts
    if all(told["account"] != name for told in acts.budgets(visit.caller)):
        raise InvalidParameter("account", name, "to be one that you may see", "Choose one from the list of accounts.")
    view, latest = acts.account_view(visit.caller, name), acts.recent(visit.caller, account=name, limit=LATEST)
    chart = burn_down_chart([view.whole])
    return {"account": view, "burned": chart, "latest": list(map(view_entry, latest))}


def report(visit: PageRequest) -> Response:
    """Shows an account as a report to be printed."""
    acts = visit.site.acts
    return visit.page(
        "report.html", **_account(visit), head=acts.anchor(visit.caller), warnings=acts.missing_anchors(visit.caller)
    )


# ---------------------------------------------------------------------------------------------------- actions

SAFE = ("appoint", "allot", "set_team", "set_aside", "give_back", "approve")
"""Actions that only share out a budget; all others change what people are promised."""

_STEWARD = [verb for verb in VERBS.values() if (verb.permission, verb.queue) == (Permission.STEWARD, Queue.LEDGER)]
_ABOUT_ACCOUNTS = [verb for verb in _STEWARD if any(each.name == "account" for each in arguments(verb.request))]
ACTIONS = sorted((verb for verb in _ABOUT_ACCOUNTS if "page" in verb.faces), key=lambda verb: verb.name not in SAFE)
"""What a steward does to an account: each is an entry of the ledger."""


def _fields(visit: PageRequest, verb: Verb) -> list[FormField]:
    """Returns the fields of an action on this account; only the owner appoints stewards."""
    fields = form_of(verb.request, without=("account",))
    hidden = () if visit.caller.role is ServiceRole.OWNER else (ServiceRole.STEWARD.value,)
    return [replace(each, choices=tuple(one for one in each.choices if one[0] not in hidden)) for each in fields]


def _action(verb: Verb) -> PageRoute:
    def perform_action(visit: PageRequest) -> Response:
        place = visit.request.path_params["account"]
        if verb.name == "renew" and visit.text("sure") != "yes":
            hint = "Tick the box: a renewal gives the same people a new budget."
            raise InvalidParameter("sure", "", "to be ticked", hint)
        visit.site.acts.perform(visit.caller, read_form(verb.request, visit.form, account=place))
        return to(f"/accounts/{quote(place, safe='')}?done={verb.name}")

    path = f"/accounts/{{account}}/{verb.name}"
    return PageRoute(method="POST", path=path, permission=verb.permission, handler=perform_action, verbs=(verb.name,))


# ---------------------------------------------------------------------------------------------------- history


def history(visit: PageRequest) -> Response:
    """Shows entries, the newest first: all of them to callers who may see them, else the caller's own."""
    everybody = visit.caller.may(Permission.SEE_ALL)
    place, who = visit.query_parameter("account"), visit.query_parameter("who") if everybody else ""
    before = visit.query_parameter("before")
    given = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    acts, most = visit.site.acts, ON_A_PAGE
    found = acts.recent(visit.caller, account=place or None, analyst=who or None, before=given, limit=most + 1)
    return visit.page(
        "history.html",
        items=list(map(view_entry, found[:most])),
        everybody=everybody,
        names=[(told["account"], told["account"]) for told in acts.budgets(visit.caller)],
        account=place,
        who=who,
        older=found[most - 1].sequence if len(found) > most else None,
    )


def own_budget(visit: PageRequest) -> Response:
    """Shows what the caller may still spend."""
    own, acts = [], visit.site.acts
    for told in acts.budgets(visit.caller):
        if told["own"] is not None:
            view = acts.own_view(visit.caller, told["account"])
            own.append({"account": told["account"], "view": view, "burned": burn_down_chart([view])})
    return visit.page("budget.html", accounts=own)


def certificate(visit: PageRequest) -> Response:
    """Shows what was promised about an answer."""
    sequence = visit.request.path_params["sequence"]
    found = visit.site.acts.certificate(visit.caller, sequence)
    told = {name: _text(found[name]) for name in _TOLD if found[name]}
    ended = found["outcome"]
    told["outcome"] = "none yet" if ended is None else f"{ended['entry']}, entry {ended['sequence']}"
    told |= {"question": asked_text(found), "head": _text(found["head"])}
    return visit.page("certificate.html", sequence=sequence, facts=told, how=found["check"], text=_format_json(found))


_TOLD = ("guarantee", "account", "unit", "relation", "analyst", "project", "cost", "sequence", "hash", "time")
"""The parts of a certificate that people read first; the rest is in the whole text."""


def _text(part: Any) -> str:
    return str(part["text"] if isinstance(part, dict) else part)


def _format_json(found: Document) -> str:
    return json.dumps(found, indent=1, sort_keys=True)


def export_certificate(visit: PageRequest) -> Response:
    """Returns a certificate as a file."""
    sequence = visit.request.path_params["sequence"]
    found = visit.site.acts.certificate(visit.caller, sequence)
    return attachment(_format_json(found), "application/json", f"certificate-{sequence}.json")


def show_verify(visit: PageRequest) -> Response:
    """Shows the button that verifies the ledger."""
    return visit.page("verify.html", head="")


def verify(visit: PageRequest) -> Response:
    """Verifies the whole ledger, and shows its head."""
    return visit.page("verify.html", head=str(visit.site.acts.verify(visit.caller)))


def anchor(visit: PageRequest) -> Response:
    """Returns the head of the ledger as a file."""
    return attachment(f"{visit.site.acts.anchor(visit.caller)}\n", "text/plain; charset=utf-8", "discreet.anchor")


_OWN, _ALL = Permission.SEE_OWN, Permission.SEE_ALL
ROUTES = (
    PageRoute(method="GET", path="/overview", permission=_ALL, handler=overview),
    PageRoute(method="GET", path="/accounts/{account}", permission=_ALL, handler=account),
    PageRoute(method="GET", path="/accounts/{account}/report", permission=Permission.VERIFY, handler=report),
    *map(_action, ACTIONS),
    PageRoute(method="GET", path="/history", permission=_OWN, handler=history, verbs=("history",)),
    PageRoute(method="GET", path="/budget", permission=_OWN, handler=own_budget, verbs=("budget",)),
    PageRoute(method="GET", path="/certificates/{sequence:int}", permission=_OWN, handler=certificate),
    PageRoute(method="GET", path="/certificates/{sequence:int}.json", permission=_OWN, handler=export_certificate),
    PageRoute(method="GET", path="/verify", permission=Permission.VERIFY, handler=show_verify),
    PageRoute(method="POST", path="/verify", permission=Permission.VERIFY, handler=verify, verbs=("verify",)),
    PageRoute(method="GET", path="/anchor", permission=Permission.VERIFY, handler=anchor),
)
