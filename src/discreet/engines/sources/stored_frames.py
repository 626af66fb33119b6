"""Frames that a library keeps or reads by itself: their columns, and a function that reads all rows anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import InvalidParameter

STORE_IT = "Store it, then protect it: write its rows to a Parquet file, and pass the path."
"""What to do with a table that computes something, as a view does."""


class StoredFrame:
    """A table that is read anew whenever it is asked for: rows as they are stored, some of their columns.

    Args:
        schema: in Arrow.
        read: returns a table of Arrow with this schema.
        origins: the files that the rows are kept in, as those of other sources are written; none for rows in memory.
    """

    def __init__(self, schema: Any, read: Callable[[], Any], origins: Mapping[str, str] | None = None) -> None:
        self.schema, self._read, self.origins = schema, read, dict(origins or {})

    def batches(self) -> Any:
        """Returns the rows in batches."""
        return self._read().to_batches()


def computes(given: Any, what: str) -> InvalidParameter:
    """Returns the refusal of a table that computes, as a view does.

    Its expressions may fail on a value, mix the rows of several people, or find other rows at each step of a query.

    Args:
        given: the table.
        what: what it does, such as "to be files with chosen and renamed columns".
    """
    return InvalidParameter("source", type(given).__name__, what, STORE_IT)
