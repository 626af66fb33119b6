"""Templates that escape: every value is text, whatever an analyst or a file called it."""

from __future__ import annotations

import datetime as dt
import json
import re
from fractions import Fraction
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from discreet.report.display import amount, percent, printable
from discreet.report.html import Html
from discreet.report.render import Scheme, config
from discreet.service.caller import Permission

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
ASSETS = ("htmx.js", "editor.js", "charts.js", "page.js", "page.css", "mark.svg")
"""All that is served beside pages."""


def environment() -> Environment:
    """Returns the environment of all templates; a name that is not given is an error, not an empty text."""
    made = Environment(
        loader=PackageLoader("discreet.service.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"shown": shown, "picture": picture, "moment": moment, "json": json_text, "amount": amount}
    made.filters |= {"first_question": first_question, "confidence": confidence}
    made.globals |= {
        "asset": asset_address,
        "may": Permission,
        "chart_colours": json_text({scheme.value: config(scheme) for scheme in Scheme}),
    }
    return made


def asset(name: str) -> bytes:
    """Returns the content of an asset."""
    return files("discreet.service.page").joinpath("assets", name).read_bytes()


_VERSIONS: dict[str, str] = {}


def asset_address(name: str) -> str:
    """Returns the address of an asset, which changes with its content."""
    if name not in _VERSIONS:
        _VERSIONS[name] = sha256(asset(name)).hexdigest()[:12]
    return f"/assets/{name}?v={_VERSIONS[name]}"


def shown(value: object) -> str:
    """Returns a value as text without control characters, other than ends of lines."""
    return printable(str(value), lines=True)


def picture(drawn: Html | None) -> Markup:
    """Returns markup that `report.html` has built, as it is; nothing else is let through.

    Raises:
        TypeError: for text.
    """
    if drawn is None:
        return Markup("")
    if not isinstance(drawn, Html):
        raise TypeError("Only markup of report.html is put in as it is.")
    return Markup(drawn)  # noqa: S704 - it escapes all that it is given


def first_question(table: str) -> str:
    """Returns a question to begin with.

    >>> first_question("visits"), first_question("Visits 2026")
    ('SELECT COUNT(*) AS n FROM visits', 'SELECT COUNT(*) AS n FROM "Visits 2026"')
    """
    quoted = table if _PLAIN.fullmatch(table) else '"' + table.replace('"', '""') + '"'
    return f"SELECT COUNT(*) AS n FROM {quoted}"  # noqa: S608 - a draft in an editor, which nobody runs


def confidence(text: str) -> str:
    """Returns an exact confidence in percent.

    >>> confidence("0.95")
    '95 %'
    """
    return percent(Fraction(text))


def json_text(value: Any) -> str:
    """Returns JSON, to be escaped as an attribute like any other text."""
    return json.dumps(value, allow_nan=False, ensure_ascii=True)


def moment(seconds: float | str | None) -> str:
    """Returns a time for people: seconds since 1970, or what the book writes.

    >>> moment(0), moment("2026-11-17T01:02:03.456Z"), moment(None)
    ('1970-01-01 00:00 UTC', '2026-11-17 01:02 UTC', 'never')
    """
    if seconds is None:
        return "never"
    if isinstance(seconds, str):
        return f"{seconds[:16].replace('T', ' ')} UTC"
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
