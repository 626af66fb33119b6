"""What all events share: nothing but being one, and how deep they are nested."""

from __future__ import annotations

from discreet.errors import InvalidParameter

DEEPEST = 32  # levels of nesting; no honest analysis needs ten


class Event:
    """A description of one release, or of several: frozen, hashable, equal by content."""

    __slots__ = ()

    @property
    def depth(self) -> int:
        """Returns levels of nesting, 1 for an event that contains no other."""
        return 1


def nested_depth(event: Event) -> int:
    """Returns the depth of an event, refused if one more level around it would be too much."""
    if event.depth >= DEEPEST:
        name, kind = "event", type(event).__name__
        raise InvalidParameter(name, f"a {kind} {event.depth} levels deep", f"below {DEEPEST} levels", "Flatten it.")
    return event.depth
