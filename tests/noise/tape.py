"""Sources of bits that are not random at all: scripted ones, and one that walks through all that can be drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from discreet.noise import Bits

LANES = 1 << 16


class Untouched(Bits):
    """Fails as soon as anything is drawn: for parameters that must be refused first."""

    def fill(self, array: NDArray[Any]) -> None:
        raise AssertionError(f"drew an array of {array.size}")

    def lanes(self, count: int) -> list[int]:
        raise AssertionError(f"drew {count} lanes")


class Tape(Bits):
    """A fixed sequence of 16-bit lanes, read in order by scalars and arrays alike."""

    def __init__(self, lanes: Iterable[int]) -> None:
        self._lanes = iter(lanes)

    def lanes(self, count: int) -> list[int]:
        return [next(self._lanes) for _ in range(count)]

    def fill(self, array: NDArray[Any]) -> None:
        flat = array.reshape(-1)
        per_entry = array.dtype.itemsize // 2
        for i in range(flat.size):
            flat[i] = sum(lane << 16 * (per_entry - 1 - j) for j, lane in enumerate(self.lanes(per_entry)))

    def left(self) -> int:
        """How many lanes nobody read."""
        return sum(1 for _ in self._lanes)


def spread(value: int, bits: int) -> list[int]:
    """An integer as lanes, highest first; `bits` is a multiple of 16."""
    return [value >> shift & (LANES - 1) for shift in range(bits - 16, -1, -16)]


@dataclass(frozen=True)
class Cell:
    """A run of equally treated values that starts at `first`, with its share of the draw's probability."""

    first: int
    chance: Fraction


def cells(cuts: Iterable[int], size: int) -> list[Cell]:
    """0..size-1 cut into runs below, at and above each cut: a comparison with a cut has one outcome on each."""
    starts = sorted({0, *(end for cut in cuts for end in (cut, cut + 1) if end < size)})
    return [Cell(a, Fraction(b - a, size)) for a, b in zip(starts, [*starts[1:], size], strict=True)]


class Unread(Exception):
    """The branch is less likely than anybody wants to know: not followed, and no error."""


class Branching(Bits):
    """Plays one branch of a tree: recorded choices first, then the first cell of every further draw."""

    def __init__(
        self, lane_cells: Callable[[int, int], Sequence[Cell]], rest: Sequence[Cell], cutoff: Fraction
    ) -> None:
        """Keeps the cells.

        Args:
            lane_cells: the cells of the lane at a position of a draw of so many lanes.
            rest: the cells of the 48 bits that follow a tied lane.
            cutoff: branches less likely than this are not followed.
        """
        self._lane_cells, self._rest, self._cutoff = lane_cells, rest, cutoff
        self.path: list[tuple[Sequence[Cell], int]] = []
        self.start()

    def start(self) -> None:
        self._depth, self.chance = 0, Fraction(1)

    def _choose(self, options: Sequence[Cell]) -> int:
        if self._depth == len(self.path):
            self.path.append((options, 0))
        cell = self.path[self._depth][0][self.path[self._depth][1]]
        self._depth += 1
        self.chance *= cell.chance
        if self.chance < self._cutoff:
            raise Unread
        return cell.first

    def advance(self) -> bool:
        """Moves to the next branch, as an odometer does; False after the last."""
        del self.path[self._depth :]
        while self.path:
            options, index = self.path.pop()
            if index + 1 < len(options):
                self.path.append((options, index + 1))
                return True
        return False

    def lanes(self, count: int) -> list[int]:
        return [self._choose(self._lane_cells(i, count)) for i in range(count)]

    def fill(self, array: NDArray[Any]) -> None:
        flat = array.reshape(-1)
        for i in range(flat.size):
            flat[i] = self._choose(self._lane_cells(i, flat.size))

    def integer(self, count: int) -> int:
        assert count == 48
        return self._choose(self._rest)

    def word(self) -> int:
        raise Unread  # a tie of 64 bits


def law_of(draw: Callable[[Bits], int], bits: Branching) -> tuple[dict[int, Fraction], Fraction]:
    """The exact probability of every value over all branches followed, and the mass of those that were not."""
    known: defaultdict[int, Fraction] = defaultdict(Fraction)
    unread = Fraction(0)
    for _ in _branches(bits):
        try:
            known[draw(bits)] += bits.chance
        except Unread:
            unread += bits.chance
    assert sum(known.values()) + unread == 1
    return known, unread


def _branches(bits: Branching) -> Iterator[None]:
    while True:
        bits.start()
        yield
        if not bits.advance():
            return
