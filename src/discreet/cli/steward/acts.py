"""`discreet amend`, `renew`, `unlock`, `appoint` and `allot`: the acts of a steward, each an entry of the book.

Caps that discreet.toml declares are put into the book by every command that reads tables, so an act that contradicts
the file would be undone by the next question. Such an act is refused, with the lines to write instead. Names that the
file does not have are the book's alone. The budget of an account is the other way round: the book decides, and the file
must say the same.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from discreet.cli.output import Form, say
from discreet.cli.steward.budgets import opened, show
from discreet.cli.verbs.verb_commands import Call, command, print_result
from discreet.curator.config.enrolment import declared_book, toml_key
from discreet.curator.config.toml_file import Analyst, Config, load
from discreet.curator.curator import Curator
from discreet.errors import InvalidParameter
from discreet.ledger import Role, Standing
from discreet.ledger.serialization import write_loss
from discreet.privacy import Loss
from discreet.report.display import printable
from discreet.requests.ledger_requests import Allot, Amend, Appoint, Renew, Unlock


def _acting(config: Config) -> Curator:
    """Returns a curator of the declared ledger, and of no tables: what the file says of them may be wrong now."""
    return Curator(declared_book(config))


@command(Amend)
def amend(call: Call) -> None:
    """Give an account another budget of its currency; what was spent stays spent, and the ledger keeps both."""
    declared, request = load(call.config), call.request(Amend)
    before = _standing(declared, request.account)
    with _acting(declared) as curator:
        balance, now = curator.perform(request, call.caller), curator.budget(request.account)
    if call.form is Form.JSON:
        print_result(Amend, balance, call.form)
        return
    say(f"The budget of account {now.account!r} was {before.total} and is {now.total}. What was spent stays spent.")
    show(now)
    _remind(declared, call.config, now.account, request.budget)


@command(Renew)
def renew(call: Call) -> None:
    """Begin a new period of an account with nothing spent; only for data about other people, or a decided renewal."""
    declared, request = load(call.config), call.request(Renew)
    before = _standing(declared, request.account)
    with _acting(declared) as curator:
        balance, now = curator.perform(request, call.caller), curator.budget(request.account)
    if call.form is Form.JSON:
        print_result(Renew, balance, call.form)
        return
    spent = "an amount without bound" if before.spent is None else str(before.spent)
    name = f"{now.account!r}"
    say(f"Account {name} had spent {spent} in period {before.period}; period {now.period} begins with nothing.")
    say("The people in it can lose both: what they have lost in all periods is 'spent in its lifetime'.")
    show(now)
    _remind(declared, call.config, now.account, now.total)


@command(Unlock)
def unlock(call: Call) -> None:
    """Give everybody's failure credits on an account back, after a look at why questions failed."""
    declared, request = load(call.config), call.request(Unlock)
    before = _standing(declared, request.account)
    with _acting(declared) as curator:
        done = curator.perform(request, call.caller)
    if call.form is Form.JSON:
        print_result(Unlock, done, call.form)
        return
    who = ", ".join(name or "names without a role" for name in before.stopped) or "nobody"
    say(
        f"Account {before.account!r} had {before.failures} failed questions, and {who} was stopped; "
        "now all may ask again."
    )
    say("A failure tells one bit about the data that nobody paid for: find out why before the next time.")


@command(Appoint, optional=("role",))
def appoint(call: Call) -> None:
    """Give somebody a role on an account, and perhaps a cap; from the first analyst on, only those appointed ask."""
    role = call.values["role"] or Role.ANALYST.value
    declared, request = load(call.config), call.request(Appoint, role=role)
    name, account, given = request.who, request.account, Role(request.role)
    _check_file(declared, call.config, Analyst(name=name, account=account, cap=request.cap), given)
    with _acting(declared) as curator:
        before = _appointed(curator, name, account)
        done = curator.perform(request, call.caller)
        now = _appointed(curator, name, account)
        listed = bool(account) and curator.budget(account).listed
    if call.form is Form.JSON:
        print_result(Appoint, done, call.form)
        return
    say(f"{name!r} was {before} and is {now} {f'on account {account!r}' if account else 'on the whole book'}.")
    if given is Role.ANALYST and listed:
        say(f"Only those who were appointed may ask on {account!r}.")


@command(Allot)
def allot(call: Call) -> None:
    """Give a project a cap on an account: questions asked for the project count against both."""
    declared, request = load(call.config), call.request(Allot)
    project, account, cap = request.project, request.account, request.cap
    for one in declared.projects:
        if (one.name, one.account) == (project, account) and one.cap != cap:
            raise _contradiction(call.config, f"projects.{toml_key(project)}.{toml_key(account)}", one.cap, cap)
    with _acting(declared) as curator:
        before = curator.allotted(project, account=account)
        done = curator.perform(request, call.caller)
    if call.form is Form.JSON:
        print_result(Allot, done, call.form)
        return
    say(
        f"Project {project!r} had {_cap(before)} on account {account!r} and has {_cap(cap)}. What it spent stays spent."
    )


def _standing(config: Config, account: str) -> Standing:
    with opened(config) as book:
        return book.standing(account)


def _appointed(curator: Curator, name: str, account: str) -> str:
    role = curator.role(account, name)
    if role is None:
        return "without a role"
    cap = curator.capped(name, account=account) if account else None
    return f"{role.value} with {_cap(cap)}" if account else role.value


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
            hint = f"The file decides whom it names. Take [{place}] out of {path}, and appoint them again."
            raise InvalidParameter("role", role.value, f"to be analyst, as under [{place}]", hint)


def _contradiction(path: Path, place: str, declared: Loss | None, cap: Loss | None) -> InvalidParameter:
    lines = "" if cap is None else "\n".join(("", *(f'{key} = "{amount}"' for key, amount in _amounts(cap).items())))
    hint = (
        f"The file decides about the names in it, and the next question would undo this. Write into {path}, and run "
        f"`discreet protect`:\n[{place}]{lines}"
    )
    return InvalidParameter("cap", "none" if cap is None else cap, f"to be {_cap(declared)}, as under [{place}]", hint)


def _amounts(loss: Loss) -> dict[str, str]:
    """The amounts above 0 as one writes them: as decimals where these are exact."""
    amounts = {name: Fraction(amount) for name, amount in write_loss(loss).items()}
    return {name: _written(amount) for name, amount in amounts.items() if amount}


def _written(amount: Fraction) -> str:
    short = f"{float(amount):g}"
    return short if Fraction(short) == amount else str(amount)


def _remind(config: Config, path: Path, account: str, budget: Loss) -> None:
    if account in config.budgets and config.budgets[account] != budget:
        amounts = ", ".join(f'{name} = "{amount}"' for name, amount in _amounts(budget).items())
        say(f"Write {amounts} under [budgets.{printable(account)}] of {path}; until then other commands refuse it.")
