"""The commands by name, each loaded when it is called: help and short questions do not wait for the rest."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from discreet.cli import output
from discreet.errors import DiscreetError, InternalError, InvalidParameter
from discreet.hint_text import PYTHON
from discreet.requests.verb_table import VERBS

_TYPED = "discreet.cli.typed"


class Late(NamedTuple):
    """A command that is not loaded yet.

    Attributes:
        where: its module and the function in it, or the group of commands; `VERB` if it is made of a request.
        summary: what it does, as in its own help.
    """

    where: str
    summary: str


VERB = "discreet.cli.verbs.verb_commands:verb_command"
"""The place of all commands that are made of a request alone, by their names."""

COMMANDS = {
    "demo": Late(
        "discreet.cli.demo:demo",
        "Make a small clinic, protect it, ask, attack exact and private answers, and write an HTML report.",
    ),
    "init": Late(
        "discreet.cli.declarations:init",
        "Write a commented discreet.toml to fill in; an existing one is never overwritten.",
    ),
    "check": Late(
        "discreet.cli.files:check",
        "Look into a file before it is protected, for the steward's eyes only: what is read, what is not, whose rows.",
    ),
    "protect": Late(
        "discreet.cli.declarations:protect",
        "Open the declared accounts, attach the tables, appoint the analysts; show and enter what is declared anew.",
    ),
    "postgres-role": Late(
        "discreet.cli.postgres_role:postgres_role",
        "Print the SQL that makes a role which can read tables of a PostgreSQL server and do nothing else; for psql.",
    ),
    "ask": Late(
        "discreet.cli.verbs.questions:ask",
        "Ask a question and pay for it; the same question again is answered from the ledger for free.",
    ),
    "explain": Late(
        VERB,
        "Show what a question would cost and how wrong its answer would be; reads no data, spends nothing.",
    ),
    "rehearse": Late(VERB, "Show the shape of an answer on synthetic rows; reads no data, spends nothing."),
    "profile": Late(
        VERB,
        "Buy a portrait of a table: people, rows and groups per person, and what limits and bounds leave out.",
    ),
    "synthesize": Late(
        "discreet.cli.verbs.synthetic_tables:synthesize",
        "Make a synthetic table like a protected one, to hand on; the same again is written from the ledger for free.",
    ),
    "plan-synthesize": Late(VERB, "Show what a synthetic table would release and cost; reads no data, spends nothing."),
    "plan-synthesize-tables": Late(
        VERB, "Show what two linked synthetic tables would release and cost; reads no data, spends nothing."
    ),
    "choose-epsilon": Late(
        "discreet.cli.verbs.questions:choose_epsilon",
        "Compare budgets: how wrong an answer would be, what an attacker could learn; reads no data, spends nothing.",
    ),
    "audit": Late(
        "discreet.cli.audits:audit",
        "Try to tell neighbouring tables apart by the answers; charges nothing, shows no data, ends with 5 if it can.",
    ),
    "stream": Late(
        "discreet.cli.verbs.periods:app",
        "Publish again and again for one charge: running totals of a question, released one period at a time.",
    ),
    "survey": Late(
        "discreet.cli.surveys:app",
        "Ask people who trust nobody: make a randomized survey, answer it, estimate from the reports.",
    ),
    "budget": Late(
        "discreet.cli.steward.budgets:budget",
        "Show what each account, analyst and project may spend, has spent and has left, and lifetime spending.",
    ),
    "amend": Late(
        "discreet.cli.steward.acts:amend",
        "Give an account another budget of its currency; what was spent stays spent, and the ledger keeps both.",
    ),
    "renew": Late(
        "discreet.cli.steward.acts:renew",
        "Begin a new period of an account with nothing spent; only for data about other people, or a decided renewal.",
    ),
    "unlock": Late(
        "discreet.cli.steward.acts:unlock",
        "Give everybody's failure credits on an account back, after a look at why questions failed.",
    ),
    "appoint": Late(
        "discreet.cli.steward.acts:appoint",
        "Give somebody a role on an account, and perhaps a cap; from the first analyst on, only those appointed ask.",
    ),
    "allot": Late(
        "discreet.cli.steward.acts:allot",
        "Give a project a cap on an account: questions asked for the project count against both.",
    ),
    "history": Late(
        "discreet.cli.steward.history:history",
        "List the entries of the ledger: sequence, time, who, what was asked or done, cost.",
    ),
    "verify": Late(
        "discreet.cli.steward.history:verify",
        "Walk the whole ledger and print its head; keep that elsewhere, and pass it as --anchor the next time.",
    ),
    "anchor": Late(
        "discreet.cli.steward.backups:anchor",
        "Compare the ledger with its anchor and print its head; join another machine, or accept that it is lost.",
    ),
    "backup": Late(
        "discreet.cli.steward.backups:backup",
        "Copy the book to a new place, verify the copy, and keep its head in the anchor, apart from it.",
    ),
    "restore": Late(
        "discreet.cli.steward.backups:restore_book",
        "Put a backup in the place of a lost book; one that has forgotten what was spent is refused.",
    ),
    "report": Late(
        "discreet.cli.steward.history:report",
        "Write a page from the ledger alone: budgets over time, who asked what, what was released; spends nothing.",
    ),
    "ledger": Late(
        "discreet.cli.ledgers:app",
        "Keep the book on a PostgreSQL server: print the SQL that makes one, move a book there, copy it.",
    ),
    "serve": Late(
        "discreet.service.command:serve",
        "Serve questions over HTTP, on a page and on the PostgreSQL wire, from processes that analysts cannot reach.",
    ),
    "attack": Late(
        "discreet.cli.attacks:app",
        "Attack a release: who can be found in it, what can be told about them, and what noise changes.",
    ),
}
"""Commands in the order of the help; a test compares the summaries with those of the functions.

A verb that is not listed is a command all the same, whose request says what it does.
"""

_WITH_OTHERS = ("ask_many", "synthesize_tables")  # `ask` takes several queries, `synthesize` takes --events


def unlisted() -> list[str]:
    """Returns the commands of verbs that are not in `COMMANDS`."""
    offered = [verb.name for verb in VERBS.values() if "cli" in verb.faces and verb.name not in _WITH_OTHERS]
    return [name.replace("_", "-") for name in offered if name.replace("_", "-") not in COMMANDS]


class Guarded(TyperGroup):
    """The group of all commands: loads the one that is called, and makes help and exit codes of its errors."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of all commands."""
        return [*super().list_commands(ctx), *unlisted()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns a command that is not loaded yet, or that of a verb that is not listed."""
        return super().get_command(ctx, cmd_name) or loaded(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Puts the command in the place of its summary, and keeps it for the words of errors."""
        name, _, rest = super().resolve_command(ctx, args)
        found = loaded(str(name))
        below = getattr(found, "commands", {})
        ctx.meta[_TYPED] = below.get(rest[0], found) if rest else found
        return name, found, rest

    def invoke(self, ctx: Any) -> Any:
        """Runs a command.

        No traceback is ever shown. Messages of this library are functions of public facts; those of anything else
        could hold data, so they are dropped.
        """
        spelling = PYTHON
        try:
            with output.warnings_shown():
                return super().invoke(ctx)
        except DiscreetError as error:
            found: DiscreetError = error
            spelling = output.spelling_of(ctx.meta.get(_TYPED), error)
        except KeyboardInterrupt as error:
            output.show_stop(error)
            raise typer.Exit(output.STOPPED) from None
        except BrokenPipeError:  # whoever read our output has read enough
            raise
        except OSError as error:  # the system's own words name files, never their content
            found = InvalidParameter("file", error.filename or "a file", f"to be usable: {error.strerror}")
        except Exception as error:  # an unforeseen message could hold data: only its kind is told
            if type(error).__module__.startswith(("click", "typer")):
                raise
            found = InternalError(f"Something unforeseen happened ({type(error).__name__}). Please report it.")
        output.show_error(found, spelling)
        raise typer.Exit(output.exit_code(found)) from None


def loaded(name: str) -> Any:
    """Imports a command, or a group of commands, and returns it with all of its options; None if there is none."""
    if name not in COMMANDS and name not in unlisted():
        return None
    place = COMMANDS[name].where if name in COMMANDS else VERB
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found(name) if place == VERB else found)
        found = alone
    return get_command(found)


def main() -> None:
    """Runs the command line."""
    app()


def _unloaded() -> None:
    """Stands for every command until it is called."""


app = typer.Typer(
    cls=Guarded,
    name="discreet",
    help="Private answers about tables of people, with an error bar on every number and a book of what they cost.",
    epilog="Exit codes: 0 answered, 2 wrong usage, 3 budget refused, 4 question refused, 5 failed, 130 stopped.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"discreet {import_module('importlib.metadata').version('discreet')}")  # rarely asked: loaded late
        raise typer.Exit


@app.callback()
def _beside_commands(
    *,
    version: Annotated[bool, typer.Option("--version", callback=_show_version, help="Print the version.")] = False,
) -> None:
    del version


for _name, _late in COMMANDS.items():
    app.command(_name, help=_late.summary)(_unloaded)
