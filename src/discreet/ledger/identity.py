"""Results remembered for an object itself: a loss takes longer to hash than most things about it take to work out."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Thing = TypeVar("Thing")
Result = TypeVar("Result")

_MOST = 256  # objects that one function remembers


def by_identity(work: Callable[[Thing], Result]) -> Callable[[Thing], Result]:
    """The function, worked out once for each object; objects must not change.

    Each object is kept with its result, so no other can get its identity while it is remembered.
    """
    known: dict[int, tuple[Thing, Result]] = {}

    @wraps(work)
    def find(thing: Thing) -> Result:
        found = known.get(id(thing))
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            found = known[id(thing)] = thing, work(thing)
        return found[1]

    return find
