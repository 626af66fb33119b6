"""Commands of requests: their options, who asks, how a result is printed; and a command for every verb without its own.

A command that does more than to perform a request takes a `CommandCall`, and names its further options in its own
signature.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.declaration_commands import HERE, ConfigFile
from discreet.cli.output import COMMAND_LINE, Csv, Json, OutputFormat, form, print_json, say, stages, with_options
from discreet.cli.verbs.request_options import option_names, options, read_options
from discreet.curator.curator import Curator
from discreet.curator.paid_release import USED_UP
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import spell
from discreet.ledger import OWNER, Caller
from discreet.noise import system_bits
from discreet.presentation.documents.result_documents import result_of
from discreet.report.csv_text import csv_text
from discreet.report.display import printable
from discreet.requests.question_requests import Explain
from discreet.requests.request import R, Request
from discreet.requests.verb_table import VERBS, Permission, Verb

Analyst = Annotated[str, typer.Option(help="The analyst who asks, and whose cap pays.")]
Project = Annotated[str, typer.Option(help="The project whose cap pays as well.")]
Account = Annotated[str | None, typer.Argument(metavar="[ACCOUNT]", help="The account; --account is the same.")]
By = Annotated[str, typer.Option(help="The steward who acts. Default: the owner of the ledger.")]
Key = Annotated[
    str | None,
    typer.Option(help="An idempotency key of your own: the same question with the same key is charged once."),
]
Details = Annotated[bool, typer.Option("--details", help="Also print how spending is computed, rule by rule.")]

_KEY_BITS = 64
_DETAILED = ("ask", "budget", "explain")
_ROWS = ("answer", "answers", "choices", "entries", "stream")  # documents of results that are rows, too


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command as it was typed.

    Attributes:
        values: of all options, by their names.
        form: how the result is printed.
    """

    values: Mapping[str, Any]
    form: OutputFormat

    @property
    def config(self) -> Path:
        """Returns the file of the declarations."""
        found: Path = self.values["config"]
        return found

    @property
    def caller(self) -> Caller:
        """Returns who asks, or acts."""
        who = self.values.get("by") or self.values.get("analyst") or OWNER
        return Caller(analyst=who, project=self.values.get("project") or "", key=self.values.get("key"))

    def request(self, kind: type[Request[R]], **others: Any) -> Any:
        """Returns the request that the options tell, with arguments that come from elsewhere.

        Raises:
            InvalidParameter: if an argument does not fit.
        """
        return kind.of(**(read_options(kind, self.values) | others))

    def beyond(self, kind: type[Request[Any]], whole: type[Request[Any]]) -> dict[str, Any]:
        """Returns what was given of the arguments of a request that another, smaller one does not have."""
        known = option_names(kind)
        return {name: value for name, value in read_options(whole, self.values).items() if name not in known.values()}


def perform(call: CommandCall, kind: type[Request[R]], stage: str = "Working", **others: Any) -> R:
    """Returns the result of the request that a call makes, of a curator of the declared tables.

    Raises:
        InvalidParameter: before anything is opened, if an argument does not fit.
        DiscreetError: as the request does.
    """
    request = call.request(kind, **others)
    with (
        stages(stage),
        _provide_key(call.caller, charges=VERBS[kind.verb].charges) as caller,
        Curator.from_config(call.config, opening=False) as curator,
    ):
        found: R = curator.perform(_with_whole_limits(curator, request, call), caller)
        return found


def _with_whole_limits(curator: Curator, request: Any, call: CommandCall) -> Any:
    """Completes the limits of a question: of two, the one that is not given is the table's own."""
    given = {name: call.values.get(f"limits_{name}") for name in ("groups", "rows")}
    if list(given.values()).count(None) != 1 or not {"sql", "parameters"} <= {each.name for each in fields(request)}:
        return request
    asked = Explain.of(sql=request.sql, parameters=request.parameters, epsilon=1, delta=request.delta)
    program = curator.perform(asked, Caller(analyst=call.caller.analyst)).program
    usual = curator.table(program.question.table).schema.limits
    return replace(request, limits=usual.with_numbers(given["groups"], given["rows"]))


@contextmanager
def _provide_key(caller: Caller, *, charges: bool) -> Iterator[Caller]:
    """Yields the caller with a key, given or new; a person who stops the question is shown how to go on with it."""
    if not charges:
        yield caller
        return
    key = f"once-{system_bits().integer(_KEY_BITS):016x}" if caller.key is None else caller.key
    try:
        yield replace(caller, key=key)
    except KeyboardInterrupt as stop:
        notes = getattr(stop, "__notes__", ())
        if USED_UP not in notes:
            stop.add_note(f"The key is: --key {key}" if notes else "Nothing was charged.")
        raise


def print_result(kind: type[Request[R]], result: R, chosen: OutputFormat) -> None:
    """Prints the result of a request: as text, as the document that a service sends, or its rows as CSV."""
    found: list[Any] = result if isinstance(result, list) else [result]
    if chosen is OutputFormat.JSON:
        print_json(result_of(VERBS[kind.verb]).write(result))
    elif result is not None:
        texts = [csv_text(one.columns, one.records) if chosen is OutputFormat.CSV else _line(one) for one in found]
        typer.echo("\n".join(texts), nl=False)


def show_details(call: CommandCall, lines: Iterable[str]) -> None:
    """Prints how a cost, or what is spent, is computed, if that is asked for and not part of a document."""
    if call.values.get("details") and call.form is OutputFormat.TABLE:
        for line in ("How this is computed:", *(f"- {line}" for line in lines)):
            say(line)


def _line(result: object) -> str:
    refusal = getattr(result, "refusal", None) or ""
    return f"{printable(str(result).replace(refusal, spell(refusal, COMMAND_LINE)), lines=True)}\n"


# ------------------------------------------------------------------------------------------------------- signatures


def command(
    *requests: type[Request[Any]],
    positional: Collection[str] = (),
    optional: Collection[str] = (),
    without: Collection[str] = (),
    only: Collection[str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function: with the options of requests, with its own, and with those that all commands have.

    Args:
        requests: whose arguments are options; of two of one name the first one counts.
        positional: arguments that stand without the name of an option.
        optional: arguments that the command line does not require.
        without: options that are left out.
        only: options that are kept, besides the function's own, if there are few.
    """

    def decorate(run: Callable[..., None]) -> Callable[..., None]:
        own = {name: each for name, each in signature(run, eval_str=True).parameters.items() if name != "call"}
        derived = [each for request in requests for each in options(request, positional=positional, optional=optional)]
        made = {each.name: each for each in reversed(derived)} | own | _common(VERBS[requests[0].verb])
        order = dict.fromkeys((*positional, *(each.name for each in derived), *own, *made))
        wanted = [name for name in order if name not in without and (only is None or name in {*only, *own})]

        def run_with_values(**values: Any) -> None:
            chosen = form(as_json=values.get("json", False), as_csv=values.get("csv", False))
            run(CommandCall(_with_one_account(values), chosen), **{name: values[name] for name in own})

        run_with_values.arguments = {k: v for request in requests for k, v in option_names(request).items()}  # type: ignore[attr-defined]
        return with_options(run_with_values, [made[name] for name in wanted], like=run)

    return decorate


def _with_one_account(values: dict[str, Any]) -> dict[str, Any]:
    """Returns values in which the account is that of ACCOUNT, if it was written without the name of the option."""
    place, account = values.get("place"), values.get("account")
    if place and account and place != account:
        raise InvalidParameter("account", account, f"to be {place!r}, as before it", "Name one account, once.")
    return values | {"account": place} if place else values


def _common(verb: Verb) -> dict[str, Parameter]:
    """Returns the options that commands of such a verb have whatever their arguments are."""
    found: dict[str, tuple[Any, Any]] = {}
    if verb.permission is Permission.STEWARD:
        found |= {**({"place": (Account, None)} if "account" in option_names(verb.request) else {}), "by": (By, OWNER)}
    elif verb.permission in (Permission.ASK, Permission.PLAN):
        found |= {"analyst": (Analyst, OWNER), "project": (Project, "")}
    if verb.charges:
        found |= {"key": (Key, None)}
    if verb.name in _DETAILED:
        found |= {"details": (Details, False)}
    found |= {"json": (Json, False), **({"csv": (Csv, False)} if verb.document in _ROWS else {})}
    found |= {"config": (ConfigFile, HERE)}
    return {
        name: Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in found.items()
    }


def verb_command(name: str) -> Callable[..., None]:
    """Returns the command that performs a verb and prints its result."""
    request = VERBS[name.replace("-", "_")].request

    def run(call: CommandCall) -> None:
        found: Any = perform(call, request)
        print_result(request, found, call.form)
        show_details(call, getattr(found, "details", ()))

    run.__name__, run.__doc__ = name, request.__doc__
    return command(request)(run)
