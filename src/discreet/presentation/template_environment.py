"""Templates that every page about a ledger is made of: the report, the demo and the pages of a service.

Every value is escaped, whatever an analyst or a file called it, and a name that is not given is an error.
"""

from __future__ import annotations

import datetime as dt
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from discreet.lazy import load
from discreet.report.display import amount, printable
from discreet.report.html import NOTHING, Html

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_LETTERS = 240
"""Characters of a query in a table; `discreet history` and certificates have all."""


def environment(*packages: str) -> Environment:
    """Returns an environment with the templates of this room, and those of other packages before them.

    Raises:
        MissingExtra: if Jinja2 is not installed.
    """
    jinja = load("jinja2", "A page about a ledger")
    loaders = [jinja.PackageLoader(package, "templates") for package in (*packages, "discreet.presentation")]
    made: Environment = jinja.Environment(
        loader=jinja.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"shown": make_printable, "cut": cut, "picture": picture, "moment": moment, "json": json_text}
    made.filters |= {"amount": amount}
    return made


@cache
def _pages() -> Environment:
    return environment()


def render(template: str, **context: Any) -> Html:
    """Returns a template of this room, filled in.

    Raises:
        MissingExtra: if Jinja2 is not installed.
    """
    return Html(_pages().get_template(template).render(context))


def make_printable(value: object) -> str:
    """Returns a value as text without control characters, other than ends of lines."""
    return printable(str(value), lines=True)


def cut(text: str) -> str:
    """Returns a query as a line that a table holds.

    >>> cut("SELECT COUNT(*)" + " " * 9 + "FROM visits"), len(cut("x" * 999))
    ('SELECT COUNT(*) FROM visits', 240)
    """
    line = " ".join(printable(text.replace("\n", " ")).split())
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…"


def picture(drawn: Html | None) -> Html:
    """Returns markup that `report.html` has built, as it is; nothing else is let through.

    Raises:
        TypeError: for text.
    """
    if drawn is not None and not isinstance(drawn, Html):
        raise TypeError("Only markup of report.html is put in as it is.")
    return drawn or NOTHING


def json_text(value: Any) -> str:
    """Returns JSON, to be escaped as an attribute like any other text."""
    return json.dumps(value, allow_nan=False, ensure_ascii=True)


def moment(seconds: float | str | None) -> str:
    """Returns a time for people: seconds since 1970, or what the ledger writes.

    >>> moment(0), moment("2026-11-17T01:02:03.456Z"), moment(None)
    ('1970-01-01 00:00 UTC', '2026-11-17 01:02 UTC', 'never')
    """
    if seconds is None:
        return "never"
    if isinstance(seconds, str):
        return f"{seconds[:16].replace('T', ' ')} UTC"
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
