"""Whose a row is, and which groups and rows of a unit are kept: definitions that every engine follows to the bit.

Ids. A text counts as `unit_ids.id_text` of it, and is NULL if nothing is left.

Groups. Ids and keys become whole numbers, the same everywhere: INT itself, BOOL 0 or 1, DATE days and TIMESTAMP
microseconds since 1970-01-01, TEXT the number that the first seven hexadecimal digits of md5(text) write, NULL a
constant of the salt. With the prime P = 63 * 2^24 - 121 and constants b, c_0, c_1, ... of the salt,

    rank(unit, keys) = (whole(unit) + c_0 whole(key_0) + c_1 whole(key_1) + ... + b)^4  mod P

A unit keeps the `groups` groups of the smallest rank. Groups of equal rank are ordered by their keys, the first one
first: NULL, then by size, FALSE before TRUE, texts by code points. So there is an order without ties, whatever keys
collide, and the limit holds without any assumption on the mixing.

Why a fourth power: as the unit varies, the ranks of four different keys are polynomials without a constant combination
of small coefficients, and so they are spread as independent numbers would be (Weyl). Products of numbers below 2^30 fit
every database's integers, and a rank costs a few nanoseconds where a digest of each pair would cost half a microsecond.

Rows. Within one unit and group, rows are ordered by their terms: for each statistic of the reading in turn, what the
row adds to a *sum* or a *product*, NULL before all numbers, the value that it has among *distinct* ones, in the order
of keys, and for *values* and *nulls* whether the argument is NULL, NULL first. Rows in the same place are
interchangeable for this reading. Of n rows, more than `rows`, the one in place i = 0, 1, ... is kept if

    (i * rows + rank) mod n >= n - rows,

which holds for exactly `rows` of them, evenly spaced in their order, and for every place equally often as ranks vary.

Rows in all groups together. Where a *total* is bounded, all of a unit's rows in groups that count are put in order by
their keys, NULL first, as above, then by their terms; of n rows, more than the total, those are kept for which the same
holds with the total for `rows` and rank(unit, ()) for the rank.

Cuts. Before a join, a unit's rows on one side are ordered by rank(unit, value) of what the join compares, then by
rank(unit, all columns), and the first ones are kept; `plan.model.relations.Cut` has the whole order.

Neither is a claim of randomness: no privacy is credited to the choice, only that it depends on one unit's rows alone.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from discreet.dataclass import dataclass
from discreet.plan.model.nodes import Value
from discreet.plan.model.unit_ids import id_text


def normalize_id(unit: Value) -> Value:
    """Returns the id that counts: a text id in its normal form, every other as it is.

    >>> normalize_id("Zoe\u0308\u00a0") == normalize_id(" Zo\u00eb"), normalize_id("\u3000"), normalize_id(7)
    (True, None, 7)
    """
    return (id_text(unit) or None) if isinstance(unit, str) else unit


BUCKETS = 63
"""How many buckets ranks are sorted into; a set of them fits into a 64-bit integer."""

BUCKET = 1 << 24
"""How many ranks make a bucket."""

P = BUCKETS * BUCKET - 121


def digest(text: str) -> str:
    """Returns the 32 hexadecimal digits of md5, the one digest that every database has."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def put_together(parts: Sequence[Value]) -> str | None:
    """Joins the values of several columns to one id: each after its length and a colon; NULL if one of them is.

    Moments count as whole microseconds. No two lists of values make the same text.

    >>> put_together([" p1 ", 7]), put_together(["p1", None])
    ('2:p11:7', None)
    """
    texts = [_text(normalize_id(part)) for part in parts]
    return None if None in texts else "".join(f"{len(text)}:{text}" for text in texts if text is not None)


def _text(part: Value) -> str | None:
    if part is None:
        return None
    if isinstance(part, bool):
        return "true" if part else "false"
    if isinstance(part, dt.datetime):
        return str(_WHOLE[dt.datetime](part))
    return part.isoformat() if isinstance(part, dt.date) else str(part)


def stays(place: int, rows: int, start: int, n: int) -> bool:
    """Returns whether the row in this place of n > rows is kept.

    >>> [place for place in range(10) if stays(place, 3, 12, 10)]
    [2, 5, 9]
    """
    return (place * rows + start) % n >= n - rows


@dataclass(frozen=True)
class Salt:
    """The constants that follow from a salt, and the rank of a group."""

    text: str

    def constant(self, name: str) -> int:
        """Returns a number from 1 to P - 1; no salt and name are written like others."""
        return int(digest(f"{len(self.text)}:{self.text};{name}"), 16) % (P - 1) + 1

    @cached_property
    def null(self) -> int:
        """Returns the whole number that NULL counts as."""
        return self.constant("null")

    @cached_property
    def shift(self) -> int:
        """Returns the constant b of the rank."""
        return self.constant("b")

    def factor(self, place: int) -> int:
        """Returns the constant c_i of the rank, of the key in this place."""
        if place not in self._factors:
            self._factors[place] = self.constant(f"c {place}")
        return self._factors[place]

    @cached_property
    def _factors(self) -> dict[int, int]:
        return {}

    def whole(self, value: Value) -> int:
        """Returns a value that is not a FLOAT as a whole number."""
        return self.null if value is None else _WHOLE[type(value)](value)

    def rank(self, unit: Value, keys: tuple[Value, ...]) -> int:
        """Computes the rank of a group within one unit, as the module defines it."""
        return pow(self.whole(unit) + self.of_keys(keys), 4, P)

    def of_keys(self, keys: tuple[Value, ...]) -> int:
        """Returns what the keys of a group add to the number whose power is its rank, modulo P."""
        places = (self.factor(i) * self.whole(key) for i, key in enumerate(keys))
        return (sum(places) + self.shift) % P


_EPOCH = dt.datetime(1970, 1, 1)
_WHOLE: dict[type, Callable[[Any], int]] = {
    int: int,
    bool: int,
    dt.date: lambda day: day.toordinal() - _EPOCH.toordinal(),
    dt.datetime: lambda moment: (moment - _EPOCH) // dt.timedelta(microseconds=1),
    str: lambda text: int(digest(text)[:7], 16),
}
