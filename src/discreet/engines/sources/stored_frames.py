"""Frames that a library keeps or reads by itself: their columns, and a function that reads all rows anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.errors import InvalidParameter

STORE_IT = "Store it, then protect it: write its rows to a Parquet file, and pass the path."
"""What to do with a table that computes something, as a view does."""


class StoredFrame:
    """A table that is read anew whenever it is asked for: rows as they are stored, some of their columns.

    Args:
        schema: in Arrow.
        read: returns a table of Arrow with this schema.
    """

    def __init__(self, schema: Any, read: Callable[[], Any]) -> None:
        self.schema, self._read = schema, read

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
