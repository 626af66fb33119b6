"""A source of bits that must not be asked."""

from __future__ import annotations

from typing import Any, NoReturn

from numpy.typing import NDArray

from discreet.noise import Bits


class NoBits(Bits):
    """Fails on first use: what is refused must be refused before anything is drawn."""

    def fill(self, array: NDArray[Any]) -> NoReturn:
        raise AssertionError(f"{array.size} entries were drawn")

    def lanes(self, count: int) -> NoReturn:
        raise AssertionError(f"{count} lanes were drawn")
