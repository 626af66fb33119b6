"""When a table is declared anew: what may change, what never does, and the difference in words.

What is promised to people is fixed with the account: who one unit is, the relation of neighbours, the budget, and that
all data about them are charged to it. Nothing of it may follow from a file that a person edits, so none of it changes
here: another unit, another column of ids, the same ids read as another type (007 and 7 are one id as whole numbers and
two as texts), another way to the people, another account, another identity are all refused. A budget is amended, which
is an act of its own.

Everything else a declaration says decides how one answer is computed: which values a column may have, where numbers are
clipped, which groups are shown, how many rows of one unit count. Each answer is planned from one declaration alone: its
sensitivity, its noise and the event that is charged follow from the same bounds, keys and limits that its reading is
clipped and bounded by. So an answer costs what it is charged for whatever the declaration is, and answers under several
ones compose as any others do, because they are about the same units. Wider bounds mean more noise for the same price,
never less privacy.

What was made under the former declaration stays what it was. Replay keys hold the declaration and the version, so a
stored answer, profile or model is given again only where both are the same; an idempotency key of a question that would
be planned otherwise now is refused; a stream goes on only if its noise was made for what one unit moves now.

A list of keys may be too long to be written into a declaration. A digest and the number of keys then replace it, and
the keys themselves are kept once in the ledger, as a block whose entry comes before the first declaration that names
it (`stewardship`). Two declarations with the same digest have the same keys in the same order.

An entry contains the declaration that it replaces, which must be the one in the ledger: a person replaces only what
they have seen, and `verify` finds a declaration that changed without saying so.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet.errors import DeclarationChanged, InvalidParameter
from discreet.ledger.serialization import canonical, parse_canonical

LONGEST_LIST = 1 << 12
"""Characters of a list of keys, as JSON, that is always written into its declaration. A longer list is written there
as well, as it always was, while the declaration as a whole has at most `serialization.LONGEST_TEXT` characters;
otherwise a digest and the number of keys stand for it."""

LONGEST_BLOCK = 1 << 26
"""Characters of a list of keys, as JSON, that can be declared at all: a million keys of 60 characters."""

ARROW = "->"
_MOST_SHOWN = 8  # keys that are listed in a difference
_LIMITS = "max_groups", "max_rows"
_TIMES = "date", "timestamp"
_TOLD = frozenset(("columns", "limits", "sample", "unit"))


def differences(before: str, after: str) -> tuple[str, ...]:
    """Returns how two declarations of a table differ, a line for each thing; nothing if they do not.

    >>> column = '{"columns":{"age":{"type":"int","bounds":["0","%s"],"keys":null}},"limits":[1,%s]}'
    >>> differences(column % (120, 1), column % (110, 3))
    ('bounds of age: 0 to 120 -> 0 to 110', 'max_rows: 1 -> 3')
    """
    old, new = parse_canonical(before), parse_canonical(after)
    return tuple(_lines(old, new))


def named_keys(declaration: str) -> dict[str, int]:
    """Returns the digests that stand for long lists of keys in a declaration, each with the number of keys.

    >>> named_keys('{"columns":{"g":{"keys":{"count":2,"digest":"ab"}},"h":{"keys":["x"]}}}')
    {'ab': 2}
    """
    if '"digest"' not in declaration:  # most have none, and that is seen without parsing
        return {}
    lists = [column.get("keys") for column in parse_canonical(declaration).get("columns", {}).values()]
    return {keys["digest"]: keys["count"] for keys in lists if isinstance(keys, dict)}


def keys_place(digest: str) -> str:
    """Returns the replay key under which the block of a list of keys is kept: replay keys of answers begin otherwise.

    >>> keys_place("ab")
    'keys:ab'
    """
    return f"keys:{digest}"


def check_same_people(table: str, before: str, after: str, others: Mapping[str, str]) -> None:
    """Refuses a declaration that would assign rows to other people, here or in a table on a way over this one.

    Args:
        table: the one that is declared anew.
        before: how it is declared.
        after: how it shall be.
        others: how the other tables of the ledger are declared.

    Raises:
        InvalidParameter: naming what says who is protected.
    """
    old, new = parse_canonical(before), parse_canonical(after)
    if old.get("unit") != new.get("unit"):
        raise InvalidParameter(
            "unit",
            _written_unit(new),
            f"to be {_written_unit(old)!r}, as when the people of table {table!r} got their budget",
            f"Another unit protects other people, who need a separate account. {_OTHER_TABLE}",
        )
    for column, whose in (
        *((column, "the ids of the protected people") for column in _id_columns(old)),
        *((key, f"the ids by which rows of table {other!r} find their people") for other, key in _ways(table, others)),
    ):
        kinds = _type(old, column), _type(new, column)
        if kinds[0] != kinds[1]:
            raise InvalidParameter(
                f"types[{column!r}]",
                kinds[1],
                f"to be {kinds[0]!r}: the column holds {whose}",
                f"Ids of another type belong to other people. {_OTHER_TABLE}",
            )


_OTHER_TABLE = "Protect the data as a table with another name."


def is_of_same_people(before: str, after: str) -> bool:
    """Returns whether two declarations of a table have the same units, as far as the table alone can show."""
    try:
        check_same_people("", before, after, {})
    except InvalidParameter:
        return False
    return True


def require_seen(table: str, before: str, after: str, replacing: str | None) -> None:
    """Checks that the caller knows the declaration that they replace.

    Raises:
        DeclarationChanged: with the difference, if nothing was said of replacing, or another one was meant.
    """
    if replacing == before:
        return
    hint = (
        "To enter the change in the ledger, protect the table with change=True, or run `discreet protect`."
        if replacing is None
        else "Another steward has changed the declaration in the meantime. Review the difference and decide again."
    )
    raise DeclarationChanged(table, differences(before, after), hint)


def describe_attachment(content: Mapping[str, Any]) -> str:
    """Returns what an entry says that puts a table, a version of it or another declaration under an account.

    >>> describe_attachment({"table": "visits", "version": "2026-11", "declaration": "{}"})
    'visits 2026-11'
    """
    said = f"{content['table']} {content['version']}".strip()
    told = "; ".join(differences(content["before"], content["declaration"])) if "before" in content else ""
    return f"{said}, new declaration: {told}" if told else said


# --------------------------------------------------------------------------------------------------- who is protected


def _id_columns(declared: Mapping[str, Any]) -> list[str]:
    """Returns the columns of a table that say whose its rows are: of a way, the one that it begins with."""
    unit = declared.get("unit")
    parts = [unit] if isinstance(unit, str) else list(unit or ())
    return [part.split(ARROW)[0].strip() if len(parts) == 1 and unit != part else part for part in parts]


def _ways(table: str, others: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Tables whose rows find their people by a column of this one, each with the column."""
    for other, declared in others.items():
        unit = parse_canonical(declared).get("unit")
        if other != table and isinstance(unit, list) and len(unit) == 1 and ARROW in unit[0]:
            end, _, key = unit[0].split(ARROW)[1].strip().partition(".")
            if end == table:
                yield other, key


def _type(declared: Mapping[str, Any], column: str) -> str | None:
    found: str | None = declared.get("columns", {}).get(column, {}).get("type")
    return found


def _written_unit(declared: Mapping[str, Any]) -> str:
    unit = declared.get("unit")
    return "each row" if unit is None else unit if isinstance(unit, str) else ", ".join(unit)


# ------------------------------------------------------------------------------------------------------ what is shown


def _lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old.get("unit") != new.get("unit"):
        yield f"unit: {_written_unit(old)} -> {_written_unit(new)}"
    before, after = old.get("columns", {}), new.get("columns", {})
    for column in (*before, *(added for added in after if added not in before)):
        yield from _column(_plain(column), before.get(column), after.get(column))
    yield from _limits(old.get("limits") or [1, 1], new.get("limits") or [1, 1])
    if old.get("sample") != new.get("sample"):
        yield f"sample_of: {_written_sample(old.get('sample'))} -> {_written_sample(new.get('sample'))}"
    for name in sorted((old.keys() | new.keys()) - _TOLD):  # what a later version of this library may declare
        if old.get(name) != new.get(name):
            yield f"{name}: {json.dumps(old.get(name))} -> {json.dumps(new.get(name))}"


def _limits(old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new) == len(_LIMITS):
        yield from (f"{name}: {was} -> {now}" for name, was, now in zip(_LIMITS, old, new, strict=True) if was != now)
    elif old != new:
        yield f"limits: {_written_limits(old)} -> {_written_limits(new)}"


def _written_limits(limits: Any) -> str:
    if isinstance(limits, dict):
        price = limits["private"]
        return "private" if price is None else f"private, for epsilon {float(Fraction(price)):g}"
    if len(limits) > len(_LIMITS):
        return f"{limits[-1]} rows in all"
    return ", ".join(f"{name} {number}" for name, number in zip(_LIMITS, limits, strict=True))


def _written_sample(sample: Any) -> str:
    """Returns a sample in words, each stratum by itself.

    >>> _written_sample({"by": "ward", "strata": [["A", 500, 20], ["B", 300, 10]]})
    '20 of 500 in A, 10 of 300 in B, by ward'
    """
    if sample is None:
        return "none"
    if "strata" not in sample:
        return f"{sample['size']} of {sample['population']}"
    strata = (f"{size} of {population} in {_plain(key)}" for key, population, size in sample["strata"][:_MOST_SHOWN])
    more = len(sample["strata"]) - _MOST_SHOWN
    return f"{', '.join(strata)}{f' and {more} more' if more > 0 else ''}, by {sample['by']}"


def _column(name: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[str]:
    if old is None or new is None:
        found = old or new or {}
        told = "added" if old is None else "removed"
        yield f"column {name} ({found.get('type')}): {told}"
        if new is not None and new.get("bounds"):
            yield f"bounds of {name}: {_range(new)}"
        if new is not None and new.get("keys"):
            yield f"keys of {name}: {_describe_keys(new['keys'])}"
        return
    if old.get("type") != new.get("type"):
        yield f"type of {name}: {old.get('type')} -> {new.get('type')}"
    if old.get("bounds") != new.get("bounds"):
        yield f"bounds of {name}: {_range(old)} -> {_range(new)}"
    yield from _keys(name, old.get("keys"), new.get("keys"))


_Listed = list[Any] | dict[str, Any] | None
"""Keys in a declaration: listed, or as a digest and their number."""


def _keys(name: str, old: _Listed, new: _Listed) -> Iterator[str]:
    if isinstance(old, dict) or isinstance(new, dict):
        if _digest(old) != _digest(new):
            other = "other " if _number(old) == _number(new) else ""
            yield f"keys of {name}: {_describe_keys(old)} -> {other}{_describe_keys(new)}"
        return
    if old is None or new is None:
        if old is not new:
            yield f"keys of {name}: {_describe_keys(old)} -> {_describe_keys(new)}"
        return
    written = [[json.dumps(key) for key in keys] for keys in (old, new)]  # 1 and True are different keys
    before, after = map(set, written)
    removed = [key for key, sign in zip(old, written[0], strict=True) if sign not in after]
    added = [key for key, sign in zip(new, written[1], strict=True) if sign not in before]
    if added:
        yield f"keys of {name}: added {_describe_keys(added)}"
    if removed:
        yield f"keys of {name}: removed {_describe_keys(removed)}"
    if not added and not removed and old != new:
        yield f"keys of {name}: in another order"


def _digest(keys: _Listed) -> str | None:
    """Returns the digest that replaces a long list of keys, or would; None without keys."""
    if keys is None or isinstance(keys, dict):
        return None if keys is None else str(keys["digest"])
    return sha256(canonical(keys).encode()).hexdigest()


def _number(keys: _Listed) -> int | None:
    return keys["count"] if isinstance(keys, dict) else None if keys is None else len(keys)


def _describe_keys(keys: _Listed) -> str:
    if keys is None:
        return "none"
    if isinstance(keys, dict):
        return f"{keys['count']} keys"
    shown = ", ".join(_plain(key) for key in keys[:_MOST_SHOWN])
    return shown if len(keys) <= _MOST_SHOWN else f"{shown} and {len(keys) - _MOST_SHOWN} more"


def _range(column: Mapping[str, Any]) -> str:
    ends = column.get("bounds")
    return "none" if ends is None else " to ".join(_end(end, column.get("type")) for end in ends)


def _end(text: str, kind: str | None) -> str:
    """Returns an end of bounds in words; days and moments are kept as numbers of days, 1 for 0001-01-01."""
    number = Fraction(text)
    if kind not in _TIMES or not 1 <= number < dt.date.max.toordinal():
        return text if number.denominator == 1 else f"{float(number):g}"
    day = dt.datetime.fromordinal(math.floor(number))
    moment = day + dt.timedelta(microseconds=int((number - math.floor(number)) * 86_400_000_000))
    return moment.date().isoformat() if moment == day else moment.isoformat()


def _plain(value: object) -> str:
    """Returns a name or a key on one line, in quotes where it would not be read as one word or number."""
    if (
        isinstance(value, str)
        and value
        and value.isprintable()
        and value == value.strip()
        and not set(value) & set(",;")
    ):
        return value
    return json.dumps(value)
