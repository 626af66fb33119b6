"""`discreet amend`, `renew`, `unlock`, `appoint` and `allot`: the acts of a steward, each an entry of the ledger.

Caps that discreet.toml declares are put into the ledger by every command that reads tables, so an act that contradicts
the file would be undone by the next question. Such an act is refused, with the lines to write instead. Names that the
file does not have are the ledger's alone. The budget of an account is the other way round: the ledger decides, and the
file must say the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from discreet.cli.output import OutputFormat, say
from discreet.cli.steward.budgets import show
from discreet.cli.verbs.verb_commands import CommandCall, command, print_result
from discreet.curator.config.enrolment import declared_ledger, toml_key
from discreet.curator.config.toml_file import Analyst, Config, load
from discreet.errors import InvalidParameter
from discreet.ledger import Ledger, Role
from discreet.ledger.serialization import write_loss
from discreet.privacy import Loss
from discreet.privacy.amounts import decimal
from discreet.requests.ledger_requests import Allot, Amend, Appoint, Renew, Unlock
from discreet.requests.request import Request
from discreet.requests.verb_table import VERBS

Seen = TypeVar("Seen")


def _run_action(
    call: CommandCall, declared: Config, request: Request[Any], look: Callable[[Ledger], Seen]
) -> tuple[Seen, Seen] | None:
    """Does an action on the declared ledger, and opens no table: what the file declares about tables may be outdated.

    Returns:
        What was seen before and after; None if the result was printed as JSON instead.
    """
    with declared_ledger(declared) as ledger:
        before = look(ledger)
        result = VERBS[request.verb].implementation(ledger, request, call.caller)
        now = look(ledger)
    if call.form is not OutputFormat.JSON:
        return before, now
    print_result(type(request), result, call.form)
    return None


@command(Amend)
def amend(call: CommandCall) -> None:
    """Change the budget of an account, in its currency. What was spent stays spent. The ledger keeps both budgets."""
    declared, request = load(call.config), call.request(Amend)
    if seen := _run_action(call, declared, request, lambda ledger: ledger.standing(request.account)):
        before, now = seen
        say(f"The budget of account {now.account!r} was {before.total} and is {now.total}. What was spent stays spent.")
        show(now)


@command(Renew)
def renew(call: CommandCall) -> None:
    """Begin a new period of an account with nothing spent. Only for data about other people, or a decided renewal."""
    declared, request = load(call.config), call.request(Renew)
    if seen := _run_action(call, declared, request, lambda ledger: ledger.standing(request.account)):
        before, now = seen
        spent = "an unbounded amount" if before.spent is None else str(before.spent)
        name = f"{now.account!r}"
        say(f"Account {name} spent {spent} in period {before.period}. Period {now.period} begins with nothing spent.")
        say("People in the account can lose both budgets: 'spent in its lifetime' adds up all periods.")
        show(now)


@command(Unlock)
def unlock(call: CommandCall) -> None:
    """Restore the failure credits of all people on an account. First find out why queries failed."""
    request = call.request(Unlock)
    if seen := _run_action(call, load(call.config), request, lambda ledger: ledger.standing(request.account)):
        before, _ = seen
        who = ", ".join(name or "names without a role" for name in before.stopped) or "no one"
        failed = f"Account {before.account!r} had {before.failures} failed queries"
        say(f"{failed}, and {who} was stopped. Now all may ask again.")
        say("Each failure reveals one bit about the data for free. Find out why before the next one.")


@command(Appoint, optional=("role",))
def grant(call: CommandCall) -> None:
    """Give a person a role on an account, and perhaps a cap. From the first analyst on, all others lose access."""
    declared = load(call.config)
    request = _with_account(call.request(Appoint, role=call.values["role"] or Role.ANALYST.value), declared)
    name, account, given = request.who, request.account, Role(request.role)
    _check_file(declared, call.config, Analyst(name=name, account=account, cap=request.cap), given)
    if seen := _run_action(call, declared, request, lambda ledger: _describe_role(ledger, name, account)):
        (before, _), (now, listed) = seen
        say(f"{name!r} was {before} and is {now} {f'on account {account!r}' if account else 'on the whole ledger'}.")
        if given is Role.ANALYST and listed:
            say(f"Only appointed people may ask on {account!r}.")


@command(Allot, positional=("project", "account"), optional=("account",))
def set_cap(call: CommandCall) -> None:
    """Give a project a cap on an account. Queries for the project count against both."""
    declared = load(call.config)
    request = _with_account(call.request(Allot), declared)
    project, account, cap = request.project, request.account, request.cap
    for one in declared.projects:
        if (one.name, one.account) == (project, account) and one.cap != cap:
            raise _contradiction(call.config, f"projects.{toml_key(project)}.{toml_key(account)}", one.cap, cap)
    if seen := _run_action(call, declared, request, lambda ledger: _cap(ledger.project_cap(project, account=account))):
        before, now = seen
        say(f"Project {project!r} had {before} on account {account!r} and has {now}. What it spent stays spent.")


def _with_account(request: Any, declared: Config) -> Any:
    """Returns a request for a cap with its account: if none is named, the only one that is declared."""
    alone = len(declared.budgets) == 1 and not request.account and request.cap is not None
    return replace(request, account=next(iter(declared.budgets))) if alone else request


def _describe_role(ledger: Ledger, name: str, account: str) -> tuple[str, bool]:
    """Returns a person's role in words, and whether only appointed people may ask."""
    role = ledger.role(account, name)
    if not account:
        return "without a role" if role is None else role.value, False
    told = "without a role" if role is None else f"{role.value} with {_cap(ledger.analyst_cap(name, account=account))}"
    return told, ledger.standing(account).listed


def _cap(cap: Loss | None) -> str:
    return "no cap" if cap is None else f"a cap of {cap}"


def _check_file(config: Config, path: Path, wanted: Analyst, role: Role) -> None:
    """Refuses what the next command that reads tables would undo.

    Raises:
        InvalidParameter: with what to write into the file instead.
    """
    for one in config.analysts:
        same = (one.name, one.account) == (wanted.name, wanted.account)
        if same and (role is not Role.ANALYST or one != wanted):
            place = f"analysts.{toml_key(one.name)}.{toml_key(one.account)}"
            if role is Role.ANALYST:
                raise _contradiction(path, place, one.cap, wanted.cap)
            hint = f"The file decides about the people it names. Delete [{place}] from {path}, and appoint them again."
            raise InvalidParameter("role", role.value, f"to be analyst, as under [{place}]", hint)


def _contradiction(path: Path, place: str, declared: Loss | None, cap: Loss | None) -> InvalidParameter:
    lines = "" if cap is None else "\n".join(("", *(f'{key} = "{amount}"' for key, amount in _amounts(cap).items())))
    hint = (
        f"The file decides about the names in it, and the next query would undo this. Write this into {path}, and run "
        f"`discreet protect`:\n[{place}]{lines}"
    )
    return InvalidParameter("cap", "none" if cap is None else cap, f"to be {_cap(declared)}, as under [{place}]", hint)


def _amounts(loss: Loss) -> dict[str, str]:
    """Returns the amounts above 0 as people write them: as decimals where these are exact."""
    amounts = {name: Fraction(amount) for name, amount in write_loss(loss).items()}
    told = {name: (decimal(amount), amount) for name, amount in amounts.items() if amount}
    return {name: short if Fraction(short) == amount else str(amount) for name, (short, amount) in told.items()}
