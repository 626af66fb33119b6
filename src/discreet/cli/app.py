"""The commands by name, each loaded when it is called: help and short questions do not wait for the rest."""

from __future__ import annotations

import ast
import atexit
import gc
import os
import sys
import threading
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from discreet.cli import output
from discreet.errors import DiscreetError, InternalError, InvalidParameter
from discreet.hint_text import PYTHON
from discreet.requests.verb_table import VERBS

_TYPED = "discreet.cli.typed"
_MAKER = "discreet.cli.verbs.verb_commands:verb_command"  # makes the commands of requests, by their names

OF_REQUEST = ""
"""The place of a command that is made of a request alone."""

COMMANDS = {
    "demo": "discreet.cli.demo:demo",
    "init": "discreet.cli.declaration_commands:init",
    "check": "discreet.cli.files:check",
    "protect": "discreet.cli.declaration_commands:protect",
    "public": "discreet.cli.files:public",
    "postgres-role": "discreet.cli.postgres_role:postgres_role",
    "ask": "discreet.cli.verbs.questions:ask",
    "explain": OF_REQUEST,
    "rehearse": OF_REQUEST,
    "profile": OF_REQUEST,
    "synthesize": "discreet.cli.verbs.synthetic_tables:synthesize",
    "plan-synthesize": OF_REQUEST,
    "plan-synthesize-tables": OF_REQUEST,
    "choose-epsilon": "discreet.cli.verbs.questions:choose_epsilon",
    "audit": "discreet.cli.audits:audit",
    "stream": "discreet.cli.verbs.periods:stream",
    "survey": "discreet.cli.surveys:survey",
    "budget": "discreet.cli.steward.budgets:budget",
    "amend": "discreet.cli.steward.actions:amend",
    "renew": "discreet.cli.steward.actions:renew",
    "unlock": "discreet.cli.steward.actions:unlock",
    "grant": "discreet.cli.steward.actions:grant",
    "set-cap": "discreet.cli.steward.actions:set_cap",
    "set-team": "discreet.cli.steward.actions:set_team",
    **dict.fromkeys(("set-aside", "give-back", "request-approval"), OF_REQUEST),
    **dict.fromkeys(("approvals", "approve", "require-approvals", "advance", "erase-check"), OF_REQUEST),
    "history": "discreet.cli.steward.history:history",
    "verify": "discreet.cli.steward.history:verify",
    "anchor": "discreet.cli.steward.backups:anchor",
    "backup": "discreet.cli.steward.backups:backup",
    "restore": "discreet.cli.steward.backups:restore_ledger",
    "report": "discreet.cli.steward.history:report",
    "ledger": "discreet.cli.ledgers:ledger",
    "serve": "discreet.service.command:serve",
    "attack": "discreet.cli.attacks:attack",
}
"""Commands in the order of the help, each with its module and function; of a group, the function that describes it.

A verb that is not listed is a command all the same.
"""

RENAMED = {"appoint": "grant", "allot": "set-cap"}
"""Commands under the names that they had before: not in the help, and called with a warning until the next version."""

_WITH_OTHERS = ("ask_many", "synthesize_tables")  # `ask` takes several queries, `synthesize` takes --events


def unlisted_commands() -> list[str]:
    """Returns the commands of verbs that are not in `COMMANDS`."""
    offered = [verb.name for verb in VERBS.values() if "cli" in verb.faces and verb.name not in _WITH_OTHERS]
    names = [name.replace("_", "-") for name in offered]
    return [name for name in names if name not in COMMANDS and name not in RENAMED]


class LazyCommandGroup(TyperGroup):
    """The group of all commands: loads the one that is called, and makes help and exit codes of its errors."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name in COMMANDS:  # typer would look for the options of each, which took as long as a query
            self.add_command(TyperCommand(name, callback=_placeholder_command))

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of all commands, for their help, and gives them summaries."""
        for name, command in self.commands.items():
            command.help = summary_of(name)
        return [*super().list_commands(ctx), *unlisted_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns a command that is not loaded yet, that of a verb that is not listed, or one under its old name."""
        if (new := RENAMED.get(cmd_name)) is not None:
            output.show_warning(f"`discreet {cmd_name}` is now `discreet {new}`. The old name works until version 0.4.")
            cmd_name = new
        return super().get_command(ctx, cmd_name) or load_command(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Puts the command in the place of its summary, keeps it for the words of errors, and informs `main`."""
        name, _, rest = super().resolve_command(ctx, args)
        found = load_command(RENAMED.get(str(name), str(name)))
        below = getattr(found, "commands", {})
        ctx.meta[_TYPED] = below.get(rest[0], found) if rest else found
        if ctx.obj is not None:
            ctx.obj()
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
        except BrokenPipeError:  # the reader of our output has read enough
            raise
        except OSError as error:  # the system's own words name files, never their content
            found = InvalidParameter("file", error.filename or "a file", f"to be usable: {error.strerror}")
        except Exception as error:  # an unforeseen message could hold data: only its class is shown
            if type(error).__module__.startswith(("click", "typer")):
                raise
            found = InternalError(f"An unexpected error occurred ({type(error).__name__}). Please report it.")
        output.show_error(found, spelling)
        raise typer.Exit(output.exit_code(found)) from None


def summary_of(name: str) -> str:
    """Returns what a command does, as its own help says."""
    module, _, attribute = (COMMANDS.get(name) or VERBS[name.replace("-", "_")].place).partition(":")
    return _docstrings(module).get(attribute) or str(load_command(name).help)


@cache
def _docstrings(module: str) -> dict[str, str]:
    """Returns the docstrings in a module's source, if it exists: importing all modules of commands is much slower."""
    found: Any = find_spec(module)
    body = ast.parse(found.loader.get_source(module) or "").body
    named = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return {node.name: ast.get_docstring(node) or "" for node in named}


def load_command(name: str) -> Any:
    """Imports a command, or a group of commands, and returns it with all of its options; None if there is none."""
    if name not in COMMANDS and name not in unlisted_commands():
        return None
    place = COMMANDS.get(name)
    module, _, attribute = (place or _MAKER).partition(":")
    source = import_module(module)
    group = getattr(source, "app", None)
    if group is None:
        found, group = getattr(source, attribute), typer.Typer(add_completion=False)
        group.command()(found if place else found(name))
    made = get_command(group)
    made.name = name
    return made


def main() -> None:
    """Runs the command line.

    What a command imports lives until the program ends. To search it for garbage while it is imported, while the
    command runs and when the interpreter exits took a sixth of the time of a short command.
    """
    gc.disable()
    app(obj=_keep_modules)


def run_alone() -> None:
    """Runs the command line in a process of its own, which ends without taking its modules apart."""
    try:
        main()
    except SystemExit as end:
        _leave(end.code)
        raise


def _leave(code: object) -> None:
    """Ends the process, once everything is written that it has to write; returns where the interpreter should end it.

    Commands close what they open. A thread that is still at work, an exit code that is a message, or output whose
    reader is gone is left to the interpreter.
    """
    if threading.active_count() > 1 or not isinstance(code, int | None):
        return
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(code or 0)


def _keep_modules() -> None:
    """Leaves everything imported so far out of all further searches for garbage.

    DuckDB complains to the terminal about each of its types that is never searched: commands should load it later.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()
    gc.enable()


def _placeholder_command() -> None:
    """Represents every command until it is called."""


app = typer.Typer(
    cls=LazyCommandGroup,
    name="discreet",
    help="Private answers about tables of people, with an error bar on every number and a ledger of what they cost.",
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
    *, version: Annotated[bool, typer.Option("--version", callback=_show_version, help="Print the version.")] = False
) -> None:
    del version
