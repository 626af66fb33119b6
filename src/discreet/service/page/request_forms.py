"""Forms of requests: for each kind of argument the macro of its input, and how what was posted is read.

A field has one label, in the form and in every message about it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from starlette.datastructures import ImmutableMultiDict

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, explain_error
from discreet.hint_text import Hint, Spelling
from discreet.privacy.amounts import decimal
from discreet.privacy.budget import BUDGET_PARTS
from discreet.requests.argument_texts import read_text
from discreet.requests.request import Arg, Argument, ArgumentKind, R, Request, arguments, check_kinds, read_argument

Posted = ImmutableMultiDict[str, str]
NOTHING: Posted = ImmutableMultiDict()
_LABELS = {"sql": "SQL query", "expires_days": "Days until it expires"}
_PYTHON_BUDGET = re.compile(r"Budget\((.*)\)")
"""How examples of budgets are written."""


def label_of(name: str) -> str:
    """Returns what people call an argument, or a verb.

    >>> label_of("rows_per_unit"), label_of("sql"), label_of("budget.epsilon")
    ('Rows per unit', 'SQL query', 'Budget epsilon')
    """
    return _LABELS.get(name) or name.replace("_", " ").replace(".", " ").capitalize()


def _spell_argument(name: str, value: str) -> str:
    budget = _PYTHON_BUDGET.fullmatch(value)
    shown = budget[1].replace("=", " ") if budget else value
    return f"{label_of(name)}: {shown}" if shown else f"“{label_of(name)}”"


PAGE = Spelling(name=label_of, given=_spell_argument)
"""How messages write arguments: by their labels."""


def in_words(error: DiscreetError) -> str:
    """Returns what a page says about an error.

    >>> from discreet.errors import InvalidParameter
    >>> in_words(InvalidParameter("rows_per_unit", -1, "> 0", Hint("Pass e.g. {rows_per_unit:0.1}.")))
    'Expected Rows per unit=-1 > 0. Pass e.g. Rows per unit: 0.1.'
    """
    told = explain_error(error, PAGE)
    place = told.get("Position", "").partition("\n")[0]
    parts = (told[type(error).__name__], told.get("Hint", ""), f"({place})" if place else "")
    return " ".join(part for part in parts if part)


# ------------------------------------------------------------------------------------------------------------ kinds


_SHORT = (
    ArgumentKind.NAME,
    ArgumentKind.NAMES,
    ArgumentKind.TEXT,
    ArgumentKind.AMOUNT,
    ArgumentKind.SHARE,
    ArgumentKind.DELTA,
    ArgumentKind.PRICE,
    ArgumentKind.COUNT,
    ArgumentKind.LIMITS,
)
_MACROS: Mapping[ArgumentKind, str] = check_kinds(
    {
        **dict.fromkeys((*_SHORT, ArgumentKind.VALUE, ArgumentKind.VALUES, ArgumentKind.GENERATOR), "line"),
        **dict.fromkeys((ArgumentKind.LEARNER, ArgumentKind.DOMAIN, ArgumentKind.DOMAINS, ArgumentKind.RULES), "area"),
        ArgumentKind.SQL: "query",
        ArgumentKind.BUDGET: "amounts",
    },
    "page",
)
"""The macro of `macros.html` by which each kind is typed in."""


def _read(posted: Posted, name: str, arg: Arg) -> Any:
    """Returns what a form gives for an argument, as `Request.of` takes it; None if it gives nothing."""
    if arg.kind is ArgumentKind.BUDGET:
        return {part: text for part in BUDGET_PARTS if (text := posted.get(f"{name}.{part}", "").strip())} or None
    text = posted.get(name, "").strip()
    return read_text(name, text, arg) if text else None


_COUNT = Arg(ArgumentKind.COUNT, "A whole number.")
_ON_LINES = {
    ArgumentKind.SQL: "Separate queries by an empty line.",
    ArgumentKind.NAMES: "Write one group on each line, with commas between its columns.",
}
"""The hints of lists whose items are not on one line with commas between them."""


# ------------------------------------------------------------------------------------------------------------ forms


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """An argument in a form, as its macro shows it."""

    name: str
    label: str
    hint: str
    macro: str
    value: Any
    required: bool
    placeholder: str
    choices: tuple[tuple[str, str], ...]

    @property
    def wide(self) -> bool:
        """Returns whether it needs a line of its own."""
        return self.macro not in ("line", "options")


def form_of(
    request: type[Request[Any]], posted: Posted = NOTHING, *, without: Collection[str] = (), **usual: str
) -> tuple[FormField, ...]:
    """Returns the fields of a request, with what was posted before, or else their defaults.

    Args:
        request: what is asked for.
        posted: the form that was sent.
        without: arguments that are elsewhere, as in the address.
        usual: values that replace defaults.
    """
    return tuple(_field(each, posted, usual) for each in _page_arguments(request) if each.name not in without)


def read_form(
    request: type[Request[R]], posted: Posted, *, usual: Mapping[str, str] = MappingProxyType({}), **fixed: Any
) -> Request[R]:
    """Returns the request that a form makes; fields that it does not have are not looked at.

    Args:
        request: what is asked for.
        posted: the form.
        usual: texts of fields that were left empty.
        fixed: arguments that are elsewhere.

    Raises:
        InvalidParameter: naming the first argument that does not fit.
    """
    given = {each.name: _read(posted, each.name, each.arg) for each in _page_arguments(request)}
    left = {name: text for name, text in usual.items() if given.get(name) is None}
    return request.of(**{**given, **left, **fixed})


def read_count(posted: Posted, name: str) -> int | None:
    """Returns a whole number of at least 1 that a form of no request gives; None if it is blank.

    Raises:
        InvalidParameter: if it is not one.
    """
    found = _read(posted, name, _COUNT)
    return None if found is None else int(read_argument(name, found, _COUNT))


def _page_arguments(request: type[Request[Any]]) -> list[Argument]:
    return [each for each in arguments(request) if "page" in each.arg.faces]


def _field(argument: Argument, posted: Posted, usual: Mapping[str, str]) -> FormField:
    name, arg = argument.name, argument.arg
    on_lines = _ON_LINES.get(arg.kind, "Separate them by commas.") if arg.many else ""
    macro = "options" if arg.choices else "area" if arg.kind in _ON_LINES and arg.many else _MACROS[arg.kind]
    return FormField(
        name=name,
        label=label_of(name),
        hint=" ".join(filter(None, (Hint(arg.help).spell_for(PAGE), on_lines))),
        macro=macro,
        value=_field_value(argument, posted, usual),
        required=argument.is_required,
        placeholder="" if arg.kind in (ArgumentKind.SQL, ArgumentKind.BUDGET) and not arg.many else arg.example,
        choices=tuple((choice, choice) for choice in arg.choices),
    )


def _field_value(argument: Argument, posted: Posted, usual: Mapping[str, str]) -> Any:
    name = argument.name
    if argument.arg.kind is ArgumentKind.BUDGET:
        return {part: posted.get(f"{name}.{part}", "") for part in BUDGET_PARTS}
    default = "" if argument.is_required or argument.default is None else _format_value(argument.default)
    return posted.get(name, usual.get(name, default))


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_format_value, value))
    return decimal(value) if isinstance(value, Fraction) else str(value)
