"""The body of a request: strict JSON whose numbers are kept as they are written.

Formal guarantee: a name that stands twice in an object, NaN, an infinity, a number beyond all floats and nesting deeper
than `DEEPEST` are refused, so that no two readers can understand one body differently.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn, Self

from starlette.requests import Request

from discreet.errors import ServiceError

DEEPEST = 32


class MalformedBody(ServiceError):
    """The body of a request is no JSON that has one meaning."""


class WrittenFloat(float):
    """A number with a point or an exponent, and its text.

    >>> WrittenFloat("0.10").text
    '0.10'
    """

    text: str

    def __new__(cls, text: str) -> Self:
        """Returns the number; the text stays beside it."""
        made = super().__new__(cls, text)
        made.text = text
        return made


def parsed(body: bytes) -> Any:
    """Returns the content of a body.

    Raises:
        MalformedBody: if it is not understood.

    >>> parsed(b'{"epsilon": 0.1, "epsilon": 10}')
    Traceback (most recent call last):
    discreet.service.api.exact_json.MalformedBody: The body is not usable: a name stands twice in an object. Send JSON.
    """
    try:
        content = json.loads(
            body.decode("utf-8"), object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant
        )
    except RecursionError:
        _refuse("it is nested too deeply")
    except ValueError:  # of JSON, of UTF-8, and of a whole number with thousands of digits
        _refuse("it is no JSON in UTF-8")
    if _depth(content) > DEEPEST:
        _refuse(f"it is nested more than {DEEPEST} deep")
    return content


class ExactRequest(Request):
    """A request whose JSON is read by `parsed`."""

    async def json(self) -> Any:
        """See `parsed`."""
        return parsed(await self.body())


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        _refuse("a name stands twice in an object")
    return made


def _finite(text: str) -> WrittenFloat:
    found = WrittenFloat(text)
    if not math.isfinite(found):
        _refuse("a number is too large")
    return found


def _no_constant(_: str) -> NoReturn:
    _refuse("NaN and infinities are no numbers")


def _refuse(reason: str) -> NoReturn:
    raise MalformedBody(f"The body is not usable: {reason}", "Send JSON.")


def _depth(content: Any) -> int:
    deepest, level = 0, [content]
    while level:
        deepest += 1
        inner = [each for each in level if isinstance(each, dict | list)]
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
    return deepest
