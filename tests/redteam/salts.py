"""Accounts with one salt, so that curators of neighbouring tables keep the same rows when nobody watches them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from discreet.ledger import stewardship
from discreet.noise import SeededBits


@contextmanager
def same_salt() -> Iterator[None]:
    """Accounts opened inside have one salt."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stewardship, "system_bits", lambda: SeededBits(99))
        yield
