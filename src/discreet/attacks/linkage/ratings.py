"""Ratings without names, and auxiliary information: an attacker knows a few of a person's, not quite right."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.linkage.attacker_tables import Codes, Column, Columns, columns_of, select_columns
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.noise import Bits, source_of
from discreet.noise.experiment import uniforms

Floats = NDArray[np.float64]
Weight = Callable[[Floats], Floats]

_EPOCH = dt.date(1970, 1, 1).toordinal()
_BLOCK = 4_000_000  # pairs of a known item and a record with it that are scored at once
_CELLS = 8_000_000  # scores held at once


def smoothed_weight(support: Floats) -> Floats:
    """Returns the weight of items that so many records have: 1 / ln(1 + support), finite for an item of one record.

    >>> smoothed_weight(np.array([1, 10, 1000])).round(2).tolist()  # what few people have rated says most
    [1.44, 0.42, 0.14]
    """
    return np.asarray(1 / np.log1p(support))


def capped_weight(support: Floats) -> Floats:
    """Returns the weight of the paper, 1 / ln(support), where an item of one record counts like one of two.

    >>> round(float(capped_weight(np.array([10.0]))[0] * (np.exp(-1 / 1.5) + np.exp(-10 / 30))), 6)
    0.53416
    """
    return np.asarray(1 / np.log(np.maximum(support, 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names the columns of ratings; without a rating or a day, those are not compared."""

    user: str = "user"
    item: str = "item"
    rating: str | None = "rating"
    day: str | None = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Holds ratings as arrays of numbers.

    Attributes:
        users: labels; all people with a rating.
        items: numbers of items by label.
        user: of each rating, the place of its user.
        item: of each rating, the number of its item; -1 for one that is not among the items.
        rating: NaN where it is not known.
        day: as a number of days, NaN where it is not known.
    """

    users: tuple[Any, ...]
    items: dict[Any, int] = field(repr=False)
    user: Codes
    item: Codes
    rating: Floats
    day: Floats

    def where(self, kept: NDArray[np.bool_]) -> Ratings:
        """Returns some of the ratings, and the users who have any; items keep their numbers."""
        left, user = np.unique(self.user[kept], return_inverse=True)
        return Ratings(
            users=tuple(self.users[place] for place in left),
            items=self.items,
            user=user,
            item=self.item[kept],
            rating=self.rating[kept],
            day=self.day[kept],
        )


def ratings_of(table: Any, names: Names, *, items: dict[Any, int] | None = None) -> Ratings:
    """Returns a table of ratings as numbers.

    Args:
        table: one row a rating.
        names: of its columns. A table without the column of users is about one person, called None.
        items: those of another table, so that numbers agree.
    """
    columns = columns_of(table)
    listed = columns[names.user] if names.user in columns else np.full(len(next(iter(columns.values()))), None)
    users, user = _labels(listed)
    (item,) = select_columns(columns, [names.item], parameter="item")
    known = {label: place for place, label in enumerate(dict.fromkeys(item.tolist()))} if items is None else items
    return Ratings(
        users=users,
        items=known,
        user=user,
        item=np.fromiter((known.get(label, -1) for label in item.tolist()), np.intp, len(item)),
        rating=_numbers(columns, names.rating, "rating"),
        day=_numbers(columns, names.day, "day"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityScale:
    """Describes how the ratings of a record and of a target are scored.

    Attributes:
        rating: the difference in ratings at which a rating counts 1 / e.
        day: the difference in days at which a date counts 1 / e.
        weight: of an item, from the number of records that have it.
    """

    rating: float = 1.5
    day: float = 30.0
    weight: Weight = smoothed_weight

    def __post_init__(self) -> None:
        check.positive(rating_scale=self.rating)
        check.positive(day_scale=self.day)


def score(released: Ratings, known: Ratings, scale: SimilarityScale) -> Iterator[tuple[slice, Floats]]:
    """Yields blocks of targets and their scores, a row a target and a column a record.

    The score of a record is the sum, over known items that it has, of weight (e^-|rating difference| / 1.5 + e^-|days
    apart| / 30); a term whose value is not known is left out, and where neither is known the item itself counts 1.
    """
    order = np.argsort(released.item, kind="stable")
    support, weight = weigh_items(released, scale)
    start = np.cumsum(support) - support
    usable = np.flatnonzero(known.item >= 0)
    usable = usable[np.argsort(known.user[usable], kind="stable")]
    for first, last in _blocks(support[known.item[usable]], known.user[usable], len(known.users), len(released.users)):
        lines = usable[np.searchsorted(known.user[usable], first) : np.searchsorted(known.user[usable], last)]
        lengths = support[known.item[lines]]
        line = np.repeat(lines, lengths)
        within = np.arange(len(line)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        row = order[np.repeat(start[known.item[lines]], lengths) + within]
        near = _near(known.rating[line], released.rating[row], scale.rating)
        near += _near(known.day[line], released.day[row], scale.day)
        alone = np.isnan(known.rating[line] - released.rating[row]) & np.isnan(known.day[line] - released.day[row])
        values = weight[known.item[line]] * np.where(alone, 1.0, near)
        cell = (known.user[line] - first) * len(released.users) + released.user[row]
        size = (last - first) * len(released.users)
        yield (
            slice(first, last),
            np.asarray(np.bincount(cell, values, size), dtype=np.float64).reshape(last - first, -1),
        )


def weigh_items(released: Ratings, scale: SimilarityScale) -> tuple[Codes, Floats]:
    """Returns how many records have each item, and its weight."""
    support = np.bincount(released.item, minlength=len(released.items))
    return support, scale.weight(np.maximum(support, 1).astype(np.float64))


def most(released: Ratings, known: Ratings, scale: SimilarityScale) -> Floats:
    """Returns for each target the score of a record that has all known items as they are known."""
    _, weight = weigh_items(released, scale)
    terms = np.zeros(len(known.item))
    for part, other in ((known.rating, released.rating), (known.day, released.day)):
        terms += ~np.isnan(part) & bool(np.any(~np.isnan(other)))
    usable = known.item >= 0
    values = weight[known.item[usable]] * np.maximum(terms[usable], 1)
    return np.asarray(np.bincount(known.user[usable], values, len(known.users)), dtype=np.float64)


def _near(known: Floats, released: Floats, scale: float) -> Floats:
    apart = np.abs(known - released)
    return np.where(np.isnan(apart), 0.0, np.exp(-apart / scale))


def _blocks(lengths: Codes, target: Codes, targets: int, records: int) -> Iterator[tuple[int, int]]:
    """Yields ranges of targets that fit into memory together, at least one target each."""
    work = np.bincount(target, lengths, targets)
    first, most = 0, max(1, _CELLS // max(1, records))
    while first < targets:
        reach = int(np.searchsorted(np.cumsum(work[first:]), _BLOCK, side="right"))
        last = min(targets, first + min(most, max(1, reach)))
        yield first, last
        first = last


def _labels(column: Column) -> tuple[tuple[Any, ...], Codes]:
    known: dict[Any, int] = {}
    place = np.fromiter((known.setdefault(label, len(known)) for label in column.tolist()), np.intp, len(column))
    return tuple(known), place


def _numbers(columns: dict[str, Column], name: str | None, parameter: str) -> Floats:
    """Returns a column as floats, a date as its number of days; all unknown where the column is not wanted."""
    if name is None:
        return np.full(len(next(iter(columns.values()))), np.nan)
    (column,) = select_columns(columns, [name], parameter=parameter)
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    if column.dtype.kind == "M":
        return np.where(np.isnat(column), np.nan, column.astype("datetime64[D]").astype(np.float64) + _EPOCH)
    try:
        return np.array([_number(value) for value in column.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        hint = f"Pass numbers or dates, or {parameter}=None if they are not known."
        raise InvalidParameter(parameter, name, "to be a column of numbers or dates", hint) from None


def _number(value: Any) -> float:
    if value is None:
        return np.nan
    if isinstance(value, dt.date):
        return float(value.toordinal())
    if isinstance(value, str) and value[4:5] == "-":
        return float(dt.date.fromisoformat(value[:10]).toordinal())
    return float(value)


def known_ratings(
    ratings: Any,
    *,
    items: int = 8,
    rating_error: float = 0.0,
    days: int = 14,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    day: str | None = "day",
    bits: Bits | None = None,
) -> Columns:
    """Returns a table of what is known about each person: some of their ratings, wrong by a little.

    Each person's items are drawn evenly without replacement (all of them for a person with fewer); every rating is off
    by a number spread evenly over plus or minus `rating_error`, every date by a whole number of days spread evenly over
    plus or minus `days`, all independently.

    Args:
        ratings: one row a rating.
        items: how many are known of each person.
        rating_error: the most a known rating is off.
        days: the most a known date is off.
        user: the name of the column.
        item: the name of the column.
        rating: the name of the column; None if ratings are not known.
        day: the name of the column; None if dates are not known.
        bits: the source of randomness.

    Returns:
        A table with the same names of columns, to be passed as `auxiliary`.

    >>> rated = {"user": ["u", "u", "v"], "item": ["a", "b", "a"], "rating": [5, 3, 1], "day": [10, 20, 30]}
    >>> known = known_ratings(rated, items=1, days=2)
    >>> list(known["user"]), len(known["day"])
    (['u', 'v'], 2)
    """
    names = Names(user=user, item=item, rating=rating, day=day)
    found = sampled_ratings(ratings_of(ratings, names), items=items, rating_error=rating_error, days=days, bits=bits)
    labels = np.empty(len(found.items), dtype=object)
    labels[:] = list(found.items)
    users = np.empty(len(found.users), dtype=object)
    users[:] = found.users
    shown = {user: users[found.user], item: labels[found.item]}
    return shown | {name: part for name, part in ((rating, found.rating), (day, found.day)) if name is not None}


def sampled_ratings(
    ratings: Ratings, *, items: int, rating_error: float, days: int, bits: Bits | None = None
) -> Ratings:
    """Returns some ratings of each person with errors, as in `known_ratings`."""
    count, reach = check.integer(items=items, at_least=1), check.integer(days=days, at_least=0)
    wrong, source = float(check.not_negative(rating_error=rating_error)), source_of(bits)
    some = at_random(ratings, count, source)
    rows = len(some.user)
    off = np.floor(uniforms(rows, bits=source) * (2 * reach + 1)) - reach
    return Ratings(
        users=some.users,
        items=some.items,
        user=some.user,
        item=some.item,
        rating=some.rating + wrong * (2 * uniforms(rows, bits=source) - 1),
        day=some.day + off,
    )


def at_random(ratings: Ratings, count: int, bits: Bits) -> Ratings:
    """Returns so many ratings of each person, drawn evenly; all ratings of those who have fewer."""
    order = np.lexsort((uniforms(len(ratings.user), bits=bits), ratings.user))
    sizes = np.bincount(ratings.user, minlength=len(ratings.users))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = np.zeros(len(order), dtype=np.bool_)
    kept[order[rank < count]] = True
    return ratings.where(kept)
