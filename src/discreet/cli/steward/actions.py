"""`discreet amend`, `renew`, `unlock`, `grant`, `set-cap` and `set-team`: the acts of a steward, each a ledger entry.

Of caps and teams, discreet.toml decides about the names in it (`declared_caps`), and the ledger about all others. Of
the budget of an account, the ledger decides: the file has the first amount.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from discreet.cli.output import OutputFormat, say
from discreet.cli.steward.budgets import show
from discreet.cli.verbs.verb_commands import CommandCall, command, print_result
from discreet.curator.config.declared_caps import check_cap, check_role, check_team, describe_cap, describe_team
from discreet.curator.config.enrolment import declared_ledger
from discreet.curator.config.toml_file import Analyst, Config, DeclaredTeam, Project, load
from discreet.ledger import Ledger, Role
from discreet.requests.cap_requests import SetTeam
from discreet.requests.ledger_requests import Allot, Amend, Appoint, Renew, Unlock, account_or_only_one
from discreet.requests.request import Request
from discreet.requests.verb_table import VERBS

Seen = TypeVar("Seen")


def _request(call: CommandCall, kind: type[Request[Any]]) -> tuple[Config, Any]:
    """Returns the declarations, and the request with its account: if none is named, the only one of the ledger.

    A role without a cap is for the whole ledger.
    """
    declared, request = load(call.config), call.request(kind)
    if request.account or getattr(request, "cap", True) is not None:
        with declared_ledger(declared, read_only=True) as ledger:
            request = replace(request, account=account_or_only_one(ledger, request.account))
    return declared, request


def _run_action(
    call: CommandCall, declared: Config, request: Any, look: Callable[[Ledger, str], Seen]
) -> tuple[Seen, Seen] | None:
    """Does an action on the declared ledger, and opens no table: what the file declares about tables may be outdated.

    Returns:
        What was seen of the account before and after; None if the result was printed as JSON instead.
    """
    with declared_ledger(declared) as ledger:
        before = look(ledger, request.account)
        result = VERBS[request.verb].implementation(ledger, request, call.caller)
        now = look(ledger, request.account)
    if call.form is not OutputFormat.JSON:
        return before, now
    print_result(type(request), result, call.form)
    return None


@command(Amend)
def amend(call: CommandCall) -> None:
    """Change the budget of an account, in its currency. What was spent stays spent. The ledger keeps both budgets."""
    if seen := _run_action(call, *_request(call, Amend), Ledger.standing):
        before, now = seen
        say(f"The budget of account {now.account!r} was {before.total} and is {now.total}. What was spent stays spent.")
        show(now)


@command(Renew)
def renew(call: CommandCall) -> None:
    """Begin a new period of an account with nothing spent. Only for data about other people, or a decided renewal."""
    if seen := _run_action(call, *_request(call, Renew), Ledger.standing):
        before, now = seen
        spent = "an unbounded amount" if before.spent is None else str(before.spent)
        name = f"{now.account!r}"
        say(f"Account {name} spent {spent} in period {before.period}. Period {now.period} begins with nothing spent.")
        say("People in the account can lose both budgets: 'spent in its lifetime' adds up all periods.")
        show(now)


@command(Unlock)
def unlock(call: CommandCall) -> None:
    """Restore the failure credits of all people on an account. First find out why queries failed."""
    if seen := _run_action(call, *_request(call, Unlock), Ledger.standing):
        before, _ = seen
        who = ", ".join(name or "names without a role" for name in before.stopped) or "no one"
        failed = f"Account {before.account!r} had {before.failures} failed queries"
        say(f"{failed}, and {who} was stopped. Now all may ask again.")
        say("Each failure reveals one bit about the data for free. Find out why before the next one.")


@command(Appoint)
def grant(call: CommandCall) -> None:
    """Give a person a role on an account, and perhaps a cap. From the first analyst on, all others lose access."""
    declared, request = _request(call, Appoint)
    name, account, given = request.who, request.account, Role(request.role)
    check_role(declared, call.config, Analyst(name=name, account=account, cap=request.cap), given)
    if seen := _run_action(call, declared, request, lambda ledger, account: _describe_role(ledger, name, account)):
        (before, _), (now, listed) = seen
        say(f"{name!r} was {before} and is {now} {f'on account {account!r}' if account else 'on the whole ledger'}.")
        if given is Role.ANALYST and listed:
            say(f"Only appointed people may ask on {account!r}.")


@command(Allot)
def set_cap(call: CommandCall) -> None:
    """Give a project a cap on an account. Queries for the project count against both."""
    declared, request = _request(call, Allot)
    project, account = request.project, request.account
    check_cap(declared, call.config, Project(name=project, account=account, cap=request.cap))
    if seen := _run_action(call, declared, request, lambda ledger, at: ledger.project_cap(project, account=at)):
        before, now = map(describe_cap, seen)
        say(f"Project {project!r} had {before} on account {account!r} and has {now}. What it spent stays spent.")


@command(SetTeam)
def set_team(call: CommandCall) -> None:
    """Give a team a cap on an account, and list its members. Their queries count against it besides their own caps."""
    declared, request = _request(call, SetTeam)
    parts = {name: getattr(request, name) for name in ("account", "cap", "members", "groups")}
    team = DeclaredTeam(name=request.team, **parts)
    check_team(declared, call.config, team)
    if seen := _run_action(call, declared, request, lambda ledger, at: ledger.caps.team(team.name, account=at)):
        before, now = map(describe_team, seen)
        say(f"Team {team.name!r} had {before} on account {team.account!r} and has {now}. What it spent stays spent.")


def _describe_role(ledger: Ledger, name: str, account: str) -> tuple[str, bool]:
    """Returns a person's role in words, and whether only appointed people may ask."""
    role = ledger.role(account, name)
    if not account:
        return "without a role" if role is None else role.value, False
    cap = describe_cap(ledger.analyst_cap(name, account=account))
    return "without a role" if role is None else f"{role.value} with {cap}", ledger.standing(account).listed
