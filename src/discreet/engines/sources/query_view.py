"""What one query sees: files are listed once, after the charge, and every stage of the query reads that list.

A folder may gain a file between two stages of one query. Both stages must be about the same rows: the second one asks
for the groups that the first one has found, and its noise was planned for the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

T = TypeVar("T")


class QueryView:
    """What was found for one query, kept until it ends."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}
        self._ends = ExitStack()

    def once(self, key: Hashable, find: Callable[[], T], close: Callable[[T], object]) -> T:
        """Returns what was found under a key; the first caller finds it, and the end of the query closes it."""
        if key not in self._found:
            found = find()
            self._ends.callback(close, found)
            self._found[key] = found
        return cast("T", self._found[key])

    def close(self) -> None:
        """Closes all that was found."""
        self._found.clear()
        self._ends.close()


_VIEW: ContextVar[QueryView | None] = ContextVar("query view", default=None)


@contextmanager
def query_view() -> Iterator[QueryView]:
    """Gives the view of the present query; outside of any query, one that ends with the block.

    >>> with query_view() as view, query_view() as inner:
    ...     inner is view
    True
    """
    present = _VIEW.get()
    if present is not None:
        yield present
        return
    view = QueryView()
    token = _VIEW.set(view)
    try:
        yield view
    finally:
        _VIEW.reset(token)
        view.close()
