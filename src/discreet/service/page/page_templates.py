"""Templates that escape: every value is text, whatever an analyst or a file called it."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment

from discreet.presentation import template_environment
from discreet.report.display import percent
from discreet.report.render import Scheme, config
from discreet.service.caller import Permission
from discreet.service.page.request_forms import in_words

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
ASSETS = ("htmx.js", "editor.js", "charts.js", "page.js", "page.css", "mark.svg")
"""All files that pages load."""


def environment() -> Environment:
    """Returns the environment of all pages, with the templates that reports share."""
    made = template_environment.environment("discreet.service.page")
    made.filters |= {"first_question": first_question, "confidence": confidence, "in_words": in_words}
    made.globals |= {
        "asset": asset_address,
        "may": Permission,
        "chart_colours": template_environment.json_text({scheme.value: config(scheme) for scheme in Scheme}),
    }
    return made


def asset(name: str) -> bytes:
    """Returns the content of an asset."""
    return files("discreet.service.page").joinpath("assets", name).read_bytes()


@cache
def asset_address(name: str) -> str:
    """Returns the address of an asset, which changes with its content."""
    return f"/assets/{name}?v={sha256(asset(name)).hexdigest()[:12]}"


def first_question(table: str) -> str:
    """Returns a question to begin with.

    >>> first_question("visits"), first_question("Visits 2026")
    ('SELECT COUNT(*) AS n FROM visits', 'SELECT COUNT(*) AS n FROM "Visits 2026"')
    """
    quoted = table if _PLAIN.fullmatch(table) else '"' + table.replace('"', '""') + '"'
    return f"SELECT COUNT(*) AS n FROM {quoted}"  # noqa: S608 - a draft in an editor, which is never run here


def confidence(exact: str | Fraction) -> str:
    """Returns a confidence in percent.

    >>> confidence("0.95")
    '95 %'
    """
    return percent(Fraction(exact))
