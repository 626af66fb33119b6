"""Events as text and back: canonical JSON, version 1.

The text is an object with sorted keys and no spaces. It has a "version" (outermost only), a "kind" from `KINDS`, and
the fields of that kind: rationals as "p/q", whole numbers as they are, events as objects without a version.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

from discreet import check
from discreet.errors import InvalidParameter
from discreet.privacy.events.event_kinds import (
    DEEPEST,
    Approx,
    BoundedRange,
    Calibrated,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    RandomizedResponse,
    Repeated,
)

VERSION = 1
LONGEST = 1 << 25  # characters; a ledger entry beyond 32 MB was not written by us

KINDS: dict[str, type[Event]] = {
    "approx": Approx,
    "bounded_range": BoundedRange,
    "calibrated": Calibrated,
    "composed": Composed,
    "concentrated": Concentrated,
    "discrete_gaussian": DiscreteGaussian,
    "discrete_laplace": DiscreteLaplace,
    "gaussian": Gaussian,
    "laplace": Laplace,
    "poisson_sampled": PoissonSampled,
    "pure": Pure,
    "randomized_response": RandomizedResponse,
    "repeated": Repeated,
}
"""The names of events in JSON; a name is never changed, removed or given to another meaning."""

_NAMES = {kind: name for name, kind in KINDS.items()}
_RATIO = re.compile(r"(-?[0-9]{1,2500})/([0-9]{1,2500})")  # 2^8192, the longest parameter, has 2467 digits


def to_json(event: Event) -> str:
    """Returns the one canonical text of an event.

    Args:
        event: any event of `KINDS`.

    Returns:
        JSON that `from_json` turns into an equal event, now and in every later version.

    Raises:
        InvalidParameter: if the event is of no known kind or its text would be too long to be read again.

    >>> to_json(Gaussian(1.5))
    '{"kind":"gaussian","noise_multiplier":"3/2","version":1}'
    >>> KINDS["gaussian"](1.5) == Gaussian(1.5), sorted(KINDS)[:4]
    (True, ['approx', 'bounded_range', 'calibrated', 'composed'])
    """
    text = _TEXTS.get(event) or _text(event)
    if len(text) > LONGEST:
        raise InvalidParameter(
            "event", f"a {type(event).__name__} of {len(text)} characters", f"<= {LONGEST} characters"
        )
    if len(text) <= _LONGEST_REMEMBERED:
        while len(_TEXTS) >= _MOST_REMEMBERED:
            _TEXTS.pop(next(iter(_TEXTS)), None)
        _TEXTS[event] = text
    return text


_TEXTS: dict[Event, str] = {}  # a charge, its release and its later readers all write the same event
_MOST_REMEMBERED, _LONGEST_REMEMBERED = 256, 4096


def _text(event: Event) -> str:
    fields = {**_write_event(event), "version": VERSION}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def from_json(text: str, most: int | None = None) -> Event:
    """Returns the event that a text describes.

    Args:
        text: what `to_json` wrote, in this or an earlier version.
        most: how many events, with all that are inside others, are read before the rest is refused; None reads all
            that fit a text.

    Returns:
        The event, equal to the one that was written.

    Raises:
        InvalidParameter: if anything about the text is not understood.

    >>> from_json('{"kind":"gaussian","noise_multiplier":"3/2","version":1}')
    Gaussian(noise_multiplier=Fraction(3, 2))
    """
    if len(check.instance(str, text=text)) > LONGEST:
        _refuse(text, f"to have at most {LONGEST} characters")
    content = _parse(text, most)
    if not isinstance(content, dict):
        _refuse(text, "to be a JSON object")
    version = content.pop("version", None)
    if type(version) is not int or version != VERSION:
        _refuse(
            text,
            f"to be of version {VERSION}",
            "A newer version of this library wrote it, or it is not an event. Upgrade to read it.",
        )
    return _read_event(content, depth=1)


def _refuse(found: object, condition: str, hint: str = "") -> NoReturn:
    raise InvalidParameter("text", found, condition, hint or "Only texts written by to_json are read.")


def _parse(text: str, most: int | None) -> Any:
    left = len(text) if most is None else most

    def check_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal left
        left -= 1
        if left < 0:  # noticed while the text is parsed: no event was made yet
            _refuse(f"more than {most} events", "to hold fewer", "Use Repeated for equal events.")
        return _distinct(pairs)

    try:
        return json.loads(text, parse_float=_no_float, parse_constant=_no_float, object_pairs_hook=check_pairs)
    except InvalidParameter:
        raise
    except (ValueError, RecursionError):  # malformed, an integer of thousands of digits, or absurdly nested
        _refuse(text, "to be JSON")


def _no_float(literal: str) -> NoReturn:
    _refuse(literal, "to hold whole numbers and 'p/q' only")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        _refuse(", ".join(name for name, _ in pairs), "to name each field once")
    return fields


def _write_event(event: Event) -> dict[str, Any]:
    if type(event) not in _NAMES:
        raise InvalidParameter("event", type(event).__name__, f"to be one of {', '.join(KINDS)}")
    fields = {field.name: _write(getattr(event, field.name)) for field in dataclasses.fields(event)}  # type: ignore[arg-type]
    return {**fields, "kind": _NAMES[type(event)]}


def _write(value: Fraction | int | Event | tuple[Event, ...]) -> Any:
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, tuple):
        return [_write_event(event) for event in value]
    return _write_event(value) if isinstance(value, Event) else value


def _read_event(content: Any, depth: int) -> Event:
    if not isinstance(content, dict):
        _refuse(type(content).__name__, "to hold an event as an object")
    if depth > DEEPEST:
        _refuse(f"{depth} levels", f"to nest events at most {DEEPEST} levels deep")
    kind = content.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        _refuse(
            str(kind) if isinstance(kind, str) else type(kind).__name__, f"to be of a kind among {', '.join(KINDS)}"
        )
    readers = _READERS[kind]
    if content.keys() != readers.keys():
        _refuse(", ".join(content), f"to have exactly the fields {', '.join(readers)} of {kind}")
    return KINDS[kind](**{name: read(content[name], depth) for name, read in readers.items()})


def _read_fraction(value: Any, _depth: int) -> Fraction:
    match = _RATIO.fullmatch(value) if isinstance(value, str) else None
    if match is None or not int(match[2]):
        _refuse(value if isinstance(value, str) else type(value).__name__, "to write a rational as 'p/q'")
    return Fraction(int(match[1]), int(match[2]))


def _read_whole(value: Any, _depth: int) -> int:
    if type(value) is not int:
        _refuse(type(value).__name__, "to hold a whole number")
    return value


def _read_nested(value: Any, depth: int) -> Event:
    return _read_event(value, depth + 1)


def _read_several(value: Any, depth: int) -> tuple[Event, ...]:
    if not isinstance(value, list):
        _refuse(type(value).__name__, "to hold events as a list")
    return tuple(_read_event(entry, depth + 1) for entry in value)


_BY_TYPE: dict[object, Callable[[Any, int], Any]] = {  # annotations are texts: `from __future__ import annotations`
    "Fraction": _read_fraction,
    "int": _read_whole,
    "Event": _read_nested,
    "tuple[Event, ...]": _read_several,
}
_READERS = {
    name: {field.name: _BY_TYPE[field.type] for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name, kind in KINDS.items()
}
