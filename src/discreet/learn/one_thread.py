"""One thread for products of tall and narrow matrices: more would only wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _pools() -> ThreadpoolController:
    """The libraries of this process that multiply; looking for them takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Multiplies with one thread inside the block.

    A gradient of 50,000 rows and a few dozen features takes milliseconds, and threads that wait for each other spend
    ten times as much of the processors.
    """
    with _pools().limit(limits=1, user_api="blas"):
        yield
