"""What somebody may know about people's ratings: a few of them, not quite right."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet import check
from discreet.attacks.linkage.ratings import Names, Ratings, ratings_of
from discreet.attacks.tables import Columns
from discreet.noise import Bits, source_of
from discreet.noise.experiment import uniforms


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
    """A table of what is known about everybody: some of their ratings, wrong by a little.

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
    """Some ratings of everybody with errors, as in `known_ratings`."""
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
    """So many ratings of everybody, drawn evenly; all of those who have fewer."""
    order = np.lexsort((uniforms(len(ratings.user), bits=bits), ratings.user))
    sizes = np.bincount(ratings.user, minlength=len(ratings.users))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = np.zeros(len(order), dtype=np.bool_)
    kept[order[rank < count]] = True
    return ratings.where(kept)
