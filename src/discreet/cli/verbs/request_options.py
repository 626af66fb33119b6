"""Options of the command line for the arguments of requests: one table from kinds of arguments to types of Typer."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from discreet import check
from discreet.cli.output import COMMAND_LINE
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter
from discreet.hint_text import Hint
from discreet.presentation.documents.result_documents import write_amount
from discreet.requests.domain_arguments import EXAMPLES
from discreet.requests.request import Argument, ArgumentKind, Request, arguments, check_kinds, write_argument


class OptionPart(NamedTuple):
    """One of several options that make up an argument; `{help}` in its help is what the argument itself says."""

    name: str
    type: Any
    help: str


@dataclass(frozen=True, slots=True)
class OptionForm:
    """How the command line takes arguments of a kind.

    Attributes:
        type: what Typer reads; of an argument with parts, nothing.
        read: makes of the name and what Typer has read what a request takes; of the values of all parts, if there are.
        parts: its options, if it has several.
        repeated: whether the option is repeated although the argument is no list.
        metavar: what help shows for a value.
        positional: whether a required argument is written without the name of an option.
    """

    type: Any = str
    read: Callable[[str, Any], Any] = lambda _, value: value
    parts: tuple[OptionPart, ...] = ()
    repeated: bool = False
    metavar: str | None = None
    positional: bool = False


def _limits(_: str, given: Mapping[str, Any]) -> Any:
    """Returns limits as a request takes them, perhaps one of the two alone.

    Raises:
        InvalidParameter: if limits are given, and are to be found out.
    """
    groups, rows, choosing = (given[part.name] for part in _LIMITS)
    named = {"groups": groups, "rows": rows}
    for name, value in named.items():
        if value is not None:
            check.integer(at_least=1, at_most=10**9, **{f"limits_{name}": value})
    found = {name: value for name, value in named.items() if value is not None}
    if choosing and found:
        hint = "Pass limits or --choose-limits, but not both."
        raise InvalidParameter("--choose-limits", "given", "without --limits-groups and --limits-rows", hint)
    return "choose" if choosing else found or None


_LIMITS = (
    OptionPart("limits_groups", int, "The most groups that one unit may count in."),
    OptionPart("limits_rows", int, "The most rows of one unit in each group."),
    OptionPart("choose_limits", bool, "Choose limits privately, with a fifth of epsilon."),
)
_BUDGET = (
    OptionPart("epsilon", str, "{help} Kept exactly: 0.1 is one tenth."),
    OptionPart("delta", str, "With epsilon or rho."),
    OptionPart("rho", str, "Instead of epsilon."),
    OptionPart("per", str, "Renews per day, week, month, quarter, year; or never."),
    OptionPart("zone", str, "The time zone in which periods begin. Default: UTC."),
    OptionPart("start", str, "The first day of some period, such as 2026-07-01."),
    OptionPart("of", str, "A column of dates: the rows of each period have their own budget."),
)


def _budget(_: str, given: Mapping[str, Any]) -> Any:
    return {name: amount for name, amount in given.items() if amount is not None} or None


def _values(_: str, given: list[str]) -> Any:
    """Returns the values of parameters: by name, or as a list if the names are the numbers from 1 on.

    Raises:
        InvalidParameter: if one is not NAME=VALUE, or is given twice.
    """
    found: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or name in found:
            condition = "to be given once" if name in found else "to be NAME=VALUE"
            hint = "For example --parameter ward=A --parameter least=18."
            raise InvalidParameter("--parameter", text, condition, hint)
        found[name] = _value(value)
    numbers = [str(place + 1) for place in range(len(found))]
    return [found[name] for name in numbers] if set(numbers) == set(found) else found


def _value(text: str) -> object:
    """Reads a number, truth value, date, moment or quoted text as in discreet.toml; anything else is a plain text."""
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if set(found) == {"value"} else text


def _domain(name: str, path: Path) -> Any:
    """Returns the public values of columns that a file declares.

    Raises:
        InvalidParameter: if it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InvalidParameter(name, str(path), "to be a TOML file", EXAMPLES) from None


_NOT_OFFERED = OptionForm(type=None)
_FORMS: Mapping[ArgumentKind, OptionForm] = check_kinds(
    {
        ArgumentKind.SQL: OptionForm(positional=True),
        ArgumentKind.NAME: OptionForm(positional=True),
        ArgumentKind.NAMES: OptionForm(read=lambda _, value: [name.strip() for name in value.split(",")]),
        **dict.fromkeys((ArgumentKind.TEXT, ArgumentKind.VALUE, ArgumentKind.GENERATOR), OptionForm()),
        **dict.fromkeys(
            (ArgumentKind.AMOUNT, ArgumentKind.SHARE, ArgumentKind.DELTA, ArgumentKind.PRICE), OptionForm()
        ),
        ArgumentKind.COUNT: OptionForm(type=int),
        ArgumentKind.LIMITS: OptionForm(parts=_LIMITS, read=_limits),
        ArgumentKind.VALUES: OptionForm(repeated=True, read=_values, metavar="NAME=VALUE"),
        ArgumentKind.LEARNER: _NOT_OFFERED,
        **dict.fromkeys(
            (ArgumentKind.DOMAIN, ArgumentKind.DOMAINS), OptionForm(type=Path, read=_domain, metavar="FILE")
        ),
        ArgumentKind.RULES: _NOT_OFFERED,
        ArgumentKind.BUDGET: OptionForm(parts=_BUDGET, read=_budget),
    },
    "cli",
)
"""How the command line takes each kind of argument."""


def offered_arguments(request: type[Request[Any]]) -> Iterator[tuple[Argument, OptionForm]]:
    """Yields the arguments of a request that the command line has, each with its form.

    Raises:
        InternalError: if one is of a kind that no option can hold.
    """
    for argument in arguments(request):
        if "cli" in argument.arg.faces:
            form = _FORMS[argument.arg.kind]
            if form is _NOT_OFFERED:
                raise InternalError(f"{request.__name__}.{argument.name} cannot be written on the command line.")
            yield argument, form


def option_names(request: type[Request[Any]]) -> dict[str, str]:
    """Returns for the name of each option of a request the argument to which it belongs."""
    return {
        name: argument.name
        for argument, form in offered_arguments(request)
        for name in ([part.name for part in form.parts] or [argument.name])
    }


def options(
    request: type[Request[Any]], *, positional: Collection[str] = (), optional: Collection[str] = ()
) -> Iterator[Parameter]:
    """Yields the options of a request as Typer reads them from a signature.

    Args:
        request: whose arguments they are.
        positional: arguments that are written without the name of an option, besides required names and queries.
        optional: arguments that the command line does not require.
    """
    for argument, form in offered_arguments(request):
        if form.parts:
            yield from _parts(argument, form)
        else:
            required = (argument.is_required or argument.name in positional) and argument.name not in optional
            placed = argument.name in positional or (required and form.positional and not argument.arg.choices)
            yield _option(argument, form, required=required, placed=placed)


def _option(argument: Argument, form: OptionForm, *, required: bool, placed: bool) -> Parameter:
    arg, listed = argument.arg, argument.arg.many or form.repeated
    described: dict[str, Any] = {"help": Hint(arg.help).spell_for(COMMAND_LINE)}
    if form.type is Path:
        described["dir_okay"] = False
    if placed:
        shown = argument.name.upper() if required else f"[{argument.name.upper()}]"
        info: Any = typer.Argument(metavar=shown, **described)
    else:
        if listed:
            described["help"] = f"{described['help'].removesuffix('.')}. Repeatable."
        word = (arg.option or argument.name).replace("_", "-")
        info = typer.Option(f"--{word}", metavar=form.metavar, **described)
    kind = list[form.type] if listed else form.type  # type: ignore[name-defined]
    default = Parameter.empty if required else _default(argument)
    return _parameter(argument.name, kind if required else kind | None, info, default)


def _parts(argument: Argument, form: OptionForm) -> Iterator[Parameter]:
    for part in form.parts:
        told = part.help.format(help=argument.arg.help)
        info = typer.Option(f"--{part.name.replace('_', '-')}", help=told)
        flag = part.type is bool
        yield _parameter(part.name, bool if flag else part.type | None, info, False if flag else None)


def _parameter(name: str, kind: Any, info: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def _default(argument: Argument) -> Any:
    """Returns the default of a request as a person would type it."""
    default = None if argument.is_required else argument.default
    if isinstance(default, Fraction):
        return write_amount(default)
    if isinstance(default, tuple):
        return [write_amount(one) if isinstance(one, Fraction) else one for one in default] or None
    return default if default is None else write_argument(argument.name, default, argument.arg)


def read_options(request: type[Request[Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a request from the values of its options; what was not given is left out.

    Raises:
        InvalidParameter: if a value cannot be read.
    """
    found: dict[str, Any] = {}
    for argument, form in offered_arguments(request):
        if form.parts:
            value = form.read(argument.name, {part.name: values.get(part.name) for part in form.parts})
        else:
            value = values.get(argument.name)
            if argument.arg.many and value:
                value = [form.read(argument.name, one) for one in value]
            elif value not in (None, []):
                value = form.read(argument.name, value)
        if value not in (None, []):
            found[argument.name] = value
    return found
