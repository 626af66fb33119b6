"""Which groups and rows of a unit are kept: the definition that every engine follows to the bit.

Groups. Ids and keys become whole numbers, the same everywhere: INT itself, BOOL 0 or 1, DATE days and TIMESTAMP
microseconds since 1970-01-01, TEXT the first seven hexadecimal digits of md5(salt, text), NULL the salt's own constant.
They are mixed by arithmetic modulo the prime P = 2^31 - 1, which costs a database a few nanoseconds where a digest of
each pair would cost half a microsecond:

    unit = fifth(a * whole(id) + b),   key = sum of c_i * whole(key_i),   rank = fifth(unit + key)

with a, b and the c_i from md5(salt) and fifth(z) = z^5 mod P, a permutation because 5 does not divide P - 1. A unit
with more than `groups` different ranks keeps the groups whose rank is below the (groups + 1)-th smallest; a unit that
still has more than `groups` groups keeps none. This happens only if keys share a rank (numbers that differ by a
multiple of P, texts whose digests begin alike), and so the limit holds without any assumption on the mixing.

Rows. Within one unit and group, rows are ordered by md5(salt, id, keys, all columns) and then by their FLOAT columns,
so that rows in the same place are equal in all columns. FLOAT enters the digest as floor(2^20 * x), clipped to 2^62.

Neither is a claim of randomness: no privacy is credited to the choice, only that it depends on one unit's rows alone.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.plan.nodes import Value

P = (1 << 31) - 1
FLOAT_LIMIT = 2.0**42
FLOAT_SCALE = 2.0**20


def fifth(z: int) -> int:
    """The mixing step: z^5 mod P."""
    return pow(z, 5, P)


def digest(text: str) -> str:
    """The 32 hexadecimal digits of md5, the one digest that every database has."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def normalised(unit: Value) -> Value:
    """The id that counts: TEXT without spaces at both ends, NULL if nothing is left."""
    return (unit.strip(" ") or None) if isinstance(unit, str) else unit


@dataclass(frozen=True)
class Salt:
    """The constants that follow from a salt, and the rank of a group."""

    text: str

    @cached_property
    def prefix(self) -> str:
        """What every digested text begins with: no salt's is the beginning of another's."""
        return f"{len(self.text)}:{self.text};"

    def constant(self, name: str) -> int:
        """A number from 1 to P - 1."""
        return int(digest(f"{self.prefix}{name}"), 16) % (P - 1) + 1

    def whole(self, value: Value) -> int:
        """A value that is not a FLOAT as a number modulo P."""
        if value is None:
            return self.constant("null")
        if isinstance(value, str):
            return int(digest(self.prefix + value)[:7], 16)
        return _WHOLE[type(value)](value) % P

    def rank(self, unit: Value, keys: tuple[Value, ...]) -> int:
        """The rank of a group within one unit, as the module defines it."""
        mixed = fifth(self.constant("a") * self.whole(unit) + self.constant("b"))
        places = (self.constant(f"key {i}") * self.whole(key) for i, key in enumerate(keys))
        return fifth(mixed + sum(places))


_EPOCH = dt.datetime(1970, 1, 1)
_WHOLE: dict[type, Callable[[Any], int]] = {
    int: int,
    bool: int,
    dt.date: lambda day: day.toordinal() - _EPOCH.toordinal(),
    dt.datetime: lambda moment: (moment - _EPOCH) // dt.timedelta(microseconds=1),
}
_CANONICAL: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "n",
    str: lambda text: f"{len(text)}:{text}",
    float: lambda x: str(math.floor(max(-FLOAT_LIMIT, min(FLOAT_LIMIT, x)) * FLOAT_SCALE)),
    bool: lambda truth: "true" if truth else "false",
    int: str,
    dt.date: str,
    dt.datetime: lambda moment: str(_WHOLE[dt.datetime](moment)),
}


def canonical(value: Value) -> str:
    """A value in the text that is digested; none is the beginning of another of the same type.

    >>> canonical("a;b"), canonical(None), canonical(0.5)
    ('3:a;b;', 'n;', '524288;')
    """
    return _CANONICAL[type(value)](value) + ";"
