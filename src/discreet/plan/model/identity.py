"""Things compared by what they are, not by what they hold: declared lists of keys may be very long."""

from __future__ import annotations

from typing import Generic, TypeVar

Thing = TypeVar("Thing")

MANY = 10_000
"""Of a list: a longer one is looked up by its identity, because comparing it takes as long as the work it saves."""


class IdentityKey(Generic[Thing]):
    """Holds something that never changes, equal to itself alone: what was worked out for it once holds for ever.

    A cache whose keys hold it keeps it alive, so no other thing can get its identity meanwhile.

    Args:
        value: what it holds.

    >>> keys = (1, 2)
    >>> IdentityKey(keys) == IdentityKey(keys), IdentityKey(keys) == IdentityKey((1, *keys[1:]))
    (True, False)
    """

    __slots__ = ("value",)

    def __init__(self, value: Thing) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.value is other.value
