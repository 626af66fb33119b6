"""The text of a query, for people who read the history: the SQL as it was written, else the plan in a few words.

A charge holds the text of a question since there is a place for it. Older charges, and questions that were built in
Python, hold the plan alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_BETWEEN = {
    "add": "+",
    "and": "AND",
    "divide": "/",
    "equal": "=",
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
    "multiply": "*",
    "not_equal": "<>",
    "or": "OR",
    "subtract": "-",
}
_LITERALS = ("bool", "date", "decimal", "float", "int", "text", "timestamp")
_LONGEST = 300  # characters of a condition or an output; `--json` has the whole plan


def asked_text(content: Mapping[str, Any]) -> str:
    """Returns what the content of a charge says was asked, and what was made of rows that were not counted.

    >>> asked_text({"sql": "SELECT COUNT(*) FROM visits", "question": "{}"})
    'SELECT COUNT(*) FROM visits'
    >>> made = '{"synthesize": {"generator": "AIM"}}'
    >>> asked_text({"sql": "SELECT ward, age FROM visits", "question": made})
    'synthetic table by AIM of SELECT ward, age FROM visits'
    """
    sql, question = content.get("sql"), content.get("question")
    if not isinstance(sql, str) or not sql:
        return plan_text(question)
    return f"{_describe_derivation(question) if isinstance(question, str) else ''}{sql}"


def plan_text(question: Any) -> str:
    """Returns a question that is kept as a plan, in a few words.

    >>> where = ["greater_equal", "bool", ["column", "age", "int"], ["int", 40]]
    >>> counted = {"aggregates": [{"kind": "count"}], "outputs": [["n", ["#", "1"]]], "keys": [], "table": "visits"}
    >>> plan_text(json.dumps({**counted, "where": where}))
    'n = COUNT() of visits where age >= 40'
    """
    return _read_plan(question) if isinstance(question, str) else _told_plan(question)


@lru_cache(maxsize=4096)  # the same questions are asked again and again
def _read_plan(question: str) -> str:
    try:
        return _told_plan(json.loads(question))
    except (ValueError, RecursionError):
        return question


def _told_plan(asked: Any) -> str:
    try:
        if "batch" in asked:
            return "; ".join(_plan(one) for one in asked["batch"])
        return _plan(asked)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):
        return json.dumps(asked) if isinstance(asked, dict) else str(asked)


@lru_cache(maxsize=4096)
def _describe_derivation(question: str) -> str:
    """Returns what was made of rows, in words that come before them; nothing of a question that was answered."""
    try:
        return _maker(json.loads(question))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return ""


def _maker(asked: Mapping[str, Any]) -> str:
    if "fit" in asked:
        return f"{asked['fit']['class']} fitted to "
    if "synthesize" in asked:
        made = asked["synthesize"]
        return f"synthetic table{'s' if 'people' in made else ''} by {made['generator']} of "
    return ""


def outputs_text(question: str) -> str:
    """Returns the columns of a release that was made on the way to an answer, and its table; else its plan.

    >>> outputs_text('{"outputs": [["n", ["#", "1"]]], "table": "visits"}'), outputs_text('{"noisy": "sums"}')
    ('n of visits', '{"noisy": "sums"}')
    """
    asked = json.loads(question)
    if "outputs" not in asked or "table" not in asked:
        return plan_text(question) if "batch" in asked else question
    return f"{', '.join(name for name, *_ in asked['outputs'])} of {asked['table']}"


def _plan(asked: Mapping[str, Any]) -> str:
    """Returns one question in words; what it does before rows are counted, such as joins, is left out."""
    table, outputs = str(asked.get("table", "")), asked.get("outputs", ())
    if any(name == "#people" for name, *_ in outputs):
        return f"profile of {table}"
    made = _maker(asked)
    if made:
        return f"{made}{', '.join(name for name, *_ in outputs)} of {table}"
    aggregates, keys = asked.get("aggregates", ()), [str(name) for name, *_ in asked.get("keys", ())]
    told = [f"{name} = {_words(one, aggregates)}" for name, one in outputs if name not in keys]
    by = f" by {', '.join(keys)}" if keys else ""
    where = f" where {_words(asked['where'], aggregates)}" if asked.get("where") else ""
    return f"{', '.join(told) or 'groups'} of {table}{where}{by}"


def _words(part: Any, aggregates: Any) -> str:
    """Returns an expression of a plan, cut where it gets long."""
    text = _expression(part, aggregates)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _expression(part: Any, aggregates: Any) -> str:
    head, *rest = part
    if head == "#":
        return _aggregate(aggregates[int(rest[0]) - 1])
    if head == "column":
        return str(rest[0])
    if head in _LITERALS and len(rest) == 1:
        return _literal(rest[0])
    arguments = [_expression(one, aggregates) for one in rest[1:]]
    if head in _BETWEEN and len(arguments) > 1:
        return f" {_BETWEEN[head]} ".join(arguments)
    return arguments[0] if head.startswith("to_") else f"{head.upper()}({', '.join(arguments)})"


def _aggregate(one: Mapping[str, Any]) -> str:
    inside = _expression(one["argument"], ()) if one.get("argument") else ""
    return f"{str(one['kind']).upper()}({inside})"


def _literal(value: Any) -> str:
    if isinstance(value, str) and value.startswith(("0x", "-0x")):
        return f"{float.fromhex(value):g}"
    return "NULL" if value is None else repr(value)
