"""How many connections there may be, and of whom: strangers leave room for those who have signed in.

A connection is a stranger's until its client has proven who they are. When strangers, or those of one address, have as
many as they may, the oldest of them that waits for its client is ended, and the new one is taken: a client that holds
silent connections loses them, and one that signs in at once gets in, also from behind the same proxy or tunnel.

Formal guarantee: there are never more than `most` connections, nor more than `most - reserved` of strangers. One that
is at work is never ended for another. One whose client has signed in is ended only if it rests, no stranger's
connection rests, and all `most` are taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

from discreet.dataclass import dataclass
from discreet.service.caller import ServiceCaller
from discreet.service.identity.rate_limits import network

CONNECTION = "discreet.connection"
"""The extension of an ASGI scope that is its `OpenConnection`."""


@dataclass(eq=False, slots=True, kw_only=True)
class OpenConnection:
    """One connection while it lasts.

    Attributes:
        address: the address or network that it comes from, as `network` returns it.
        end: ends it, whatever state it is in.
        known: whether its client has signed in.
        busy: whether the service works for it; else it waits for its client.
        ended: whether it was ended to make room.
    """

    address: str
    end: Callable[[], None]
    forget: Callable[[OpenConnection], None]
    known: bool = False
    busy: bool = False
    ended: bool = False

    def close(self) -> None:
        """Takes it out of the count."""
        self.forget(self)


@dataclass(slots=True, kw_only=True)
class ConnectionLimits:
    """Counts the connections of one listener.

    Attributes:
        most: how many, of all clients.
        reserved: of these, how many are for clients who have signed in.
        per_address: of strangers from one address; None behind a proxy, whose address all have.
    """

    most: int
    reserved: int
    per_address: int | None = None
    _open: dict[OpenConnection, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._open)

    def open(self, address: str, end: Callable[[], None]) -> OpenConnection | None:
        """Takes a new connection, if there is room or room can be made; None if there is none.

        Args:
            address: of the client.
            end: ends the connection, should its place be needed.
        """
        origin = network(address)
        if not self._make_room(origin):
            return None
        made = OpenConnection(address=origin, end=end, forget=self._forget)
        self._open[made] = None
        return made

    def _make_room(self, origin: str) -> bool:
        strangers = [each for each in self._open if not each.known]
        counts = Counter(each.address for each in strangers)
        if self.per_address is not None and counts[origin] >= self.per_address:
            return self._end_first(each for each in strangers if each.address == origin)
        if len(strangers) >= self.most - self.reserved:
            return self._end_first(sorted(strangers, key=lambda each: -counts[each.address]))
        if len(self._open) >= self.most:
            return self._end_first((*strangers, *(each for each in self._open if each.known)))
        return True

    def _end_first(self, candidates: Iterable[OpenConnection]) -> bool:
        """Ends the first that waits for its client, of those in the order in which they came."""
        found = next((each for each in candidates if not each.busy), None)
        if found is None:
            return False
        found.ended = True
        self._forget(found)
        found.end()
        return True

    def _forget(self, connection: OpenConnection) -> None:
        self._open.pop(connection, None)


def recognise(state: Any, caller: ServiceCaller) -> None:
    """Notes who a request is from, for its log, its connection and the count of what the caller has at once.

    Raises:
        TooManyRequests: if the caller has too many requests at once.
    """
    state.known = caller
    note = getattr(state, "recognise", None)
    if note is not None:
        note(caller)
