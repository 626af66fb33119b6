"""Loggers of other libraries that would print statements and values, silent while this library calls them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Silent(threading.local):
    names: frozenset[str] = frozenset()


_silent = _Silent()


def _is_wanted(record: logging.LogRecord) -> bool:
    return record.name not in _silent.names


@contextmanager
def quiet(*loggers: logging.Logger) -> Iterator[None]:
    """Runs a block in which these loggers print nothing from this thread; other threads and loggers are as they were.

    >>> logger = logging.getLogger("a.driver")
    >>> with quiet(logger):
    ...     logger.error("Key (who)=(ana) already exists.")
    """
    for logger in loggers:
        logger.addFilter(_is_wanted)  # which has it once however often it is added
    before, _silent.names = _silent.names, _silent.names.union(logger.name for logger in loggers)
    try:
        yield
    finally:
        _silent.names = before
