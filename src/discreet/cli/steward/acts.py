"""`discreet amend`, `renew`, `unlock`, `appoint` and `allot`: the acts of a steward, each an entry of the book.

Caps that discreet.toml declares are put into the book by every command that reads tables, so an act that contradicts
the file would be undone by the next question. Such an act is refused, with the lines to write instead. Names that the
file does not have are the book's alone. The budget of an account is the other way round: the book decides, and the file
must say the same.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import say
from discreet.cli.steward.budgets import opened, show
from discreet.curator.config.enrolment import declared_book, toml_key
from discreet.curator.config.toml_file import Analyst, Config, load
from discreet.errors import InvalidParameter
from discreet.ledger import OWNER, Book, Role, Standing
from discreet.ledger.serialization import write_loss
from discreet.privacy import Budget, Loss
from discreet.report.display import printable

OnAccount = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account.")]
Epsilon = Annotated[str | None, typer.Option(help="Kept exactly: 0.1 is one tenth.")]
Delta = Annotated[str | None, typer.Option(help="Beside epsilon or rho.")]
Rho = Annotated[str | None, typer.Option(help="Instead of epsilon.")]
Note = Annotated[str, typer.Option(help="Why; kept in the book.")]
By = Annotated[str, typer.Option(help="Who acts: a steward; the owner of the book, unless given.")]


def amend(
    account: OnAccount,
    *,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    note: Note = "",
    by: By = OWNER,
    config: ConfigFile = HERE,
) -> None:
    """Give an account another budget of its currency; what was spent stays spent, and the book keeps both."""
    declared, wanted = load(config), Budget(epsilon=epsilon, delta=delta, rho=rho)
    before = _standing(declared, account)
    with declared_book(declared) as book:
        book.stewardship.amend(account, budget=wanted, by=by, note=note)
        now = book.standing(account)
    say(f"The budget of account {account!r} was {before.total} and is {now.total}. What was spent stays spent.")
    show(now)
    _remind(declared, config, account, wanted)


def renew(
    account: OnAccount,
    *,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    note: Note = "",
    by: By = OWNER,
    config: ConfigFile = HERE,
) -> None:
    """Begin a new period of an account with nothing spent; only for data about other people, or a decided renewal."""
    declared = load(config)
    wanted = None if epsilon is delta is rho is None else Budget(epsilon=epsilon, delta=delta, rho=rho)
    before = _standing(declared, account)
    with declared_book(declared) as book:
        book.stewardship.renew(account, budget=wanted, by=by, note=note)
        now = book.standing(account)
    spent = "an amount without bound" if before.spent is None else str(before.spent)
    say(f"Account {account!r} had spent {spent} in period {before.period}; period {now.period} begins with nothing.")
    say("The people in it can lose both: what they have lost in all periods is 'spent in its lifetime'.")
    show(now)
    _remind(declared, config, account, now.total)


def unlock(account: OnAccount, *, note: Note = "", by: By = OWNER, config: ConfigFile = HERE) -> None:
    """Give everybody's failure credits on an account back, after a look at why questions failed."""
    declared = load(config)
    before = _standing(declared, account)
    with declared_book(declared) as book:
        book.stewardship.unlock(account, by=by, note=note)
    who = ", ".join(name or "names without a role" for name in before.stopped) or "nobody"
    say(f"Account {account!r} had {before.failures} failed questions, and {who} was stopped; now all may ask again.")
    say("A failure tells one bit about the data that nobody paid for: find out why before the next time.")


def appoint(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who.")],
    *,
    account: Annotated[str, typer.Option(help="On which account; all of them, unless given.")] = "",
    role: Annotated[str, typer.Option(help="analyst, steward or auditor.")] = "analyst",
    epsilon: Annotated[str | None, typer.Option(help="Of a cap on the account; no cap unless given.")] = None,
    delta: Delta = None,
    rho: Rho = None,
    by: By = OWNER,
    config: ConfigFile = HERE,
) -> None:
    """Give somebody a role on an account, and perhaps a cap; from the first analyst on, only those appointed ask."""
    declared, given = load(config), Role(role)
    cap = None if epsilon is delta is rho is None else Budget(epsilon=epsilon, delta=delta, rho=rho)
    _check_file(declared, config, Analyst(name=name, account=account, cap=cap), given)
    with declared_book(declared) as book:
        before = _appointed(book, name, account)
        book.stewardship.appoint(name, given, account=account, cap=cap, by=by)
        now = _appointed(book, name, account)
        listed = bool(account) and book.standing(account).listed
    say(f"{name!r} was {before} and is {now} {f'on account {account!r}' if account else 'on the whole book'}.")
    if given is Role.ANALYST and listed:
        say(f"Only those who were appointed may ask on {account!r}.")


def allot(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="What questions are asked for.")],
    account: OnAccount,
    *,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    note: Note = "",
    by: By = OWNER,
    config: ConfigFile = HERE,
) -> None:
    """Give a project a cap on an account: questions asked with --project count against both."""
    declared, cap = load(config), Budget(epsilon=epsilon, delta=delta, rho=rho)
    for one in declared.projects:
        if (one.name, one.account) == (project, account) and one.cap != cap:
            raise _contradiction(config, f"projects.{toml_key(project)}.{toml_key(account)}", one.cap, cap)
    with declared_book(declared) as book:
        before = book.allotted(project, account=account)
        book.stewardship.allot(project, account=account, cap=cap, by=by, note=note)
    say(
        f"Project {project!r} had {_cap(before)} on account {account!r} and has {_cap(cap)}. What it spent stays spent."
    )


def _standing(config: Config, account: str) -> Standing:
    with opened(config) as book:
        return book.standing(account)


def _appointed(book: Book, name: str, account: str) -> str:
    role = book.role(account, name)
    if role is None:
        return "without a role"
    cap = book.capped(name, account=account) if account else None
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
