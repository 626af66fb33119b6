"""Two laws side by side, piece by piece, in enclosures: the largest privacy loss, and delta at an epsilon.

A piece is a set of outputs of equal loss, or one output, with its probability on either dataset. Whatever is not listed
is bounded by the rest. No float takes part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.exact import Enclosure

MOST_PIECES = 20_000
NOTHING = Fraction(0)

Ends = tuple[Fraction, Fraction]
Recipe = Callable[[int], "Pieces"]
"""Pieces computed with so many digits."""


@dataclass(frozen=True, slots=True)
class Piece:
    """`count` outputs, each with probability p on the one dataset and q on the other."""

    p: Enclosure
    q: Enclosure
    count: int = 1


@dataclass(frozen=True, slots=True)
class Pieces:
    """Two laws.

    Attributes:
        listed: all outputs but those of the rest.
        rest: a bound on the probability of everything else, on either dataset.
        unbounded: whether losses grow without bound among what is not listed one by one.
    """

    listed: tuple[Piece, ...]
    rest: Fraction = NOTHING
    unbounded: bool = False

    @property
    def swapped(self) -> Pieces:
        """The same with the datasets exchanged."""
        return Pieces(tuple(Piece(one.q, one.p, one.count) for one in self.listed), self.rest, self.unbounded)

    def loss(self) -> Ends | None:
        """Between which numbers the largest ln(p / q) lies; None if it is infinite.

        With a rest the losses there are not known, and the upper end covers what is listed only.
        """
        if self.unbounded:
            return None
        ends = []
        for one in self.listed:
            if one.p.high <= 0:
                continue
            if one.q.high <= 0:
                return None
            ends.append(_log(one))
        return max([NOTHING, *(low for low, _ in ends)]), max([NOTHING, *(high for _, high in ends)])

    def excess(self, epsilon: Fraction) -> Ends:
        """Between which numbers the sum of (p - e^epsilon q)_+ lies: the delta at this epsilon, in one direction."""
        low, high = NOTHING, self.rest
        for one in self.listed:
            beyond = one.p - one.q * Enclosure.of(epsilon, one.p.digits).exp()
            least, most = beyond.fractions()
            low += one.count * max(least, NOTHING)
            high += one.count * max(most, NOTHING)
        return low, high

    def times(self, other: Pieces) -> Pieces:
        """Both outputs of two independent parts."""
        if len(self.listed) * len(other.listed) > MOST_PIECES:
            hint = "Compare values that differ in fewer entries, or take `distinguish`."
            raise InvalidParameter("b", "another value", "to differ from a in few entries", hint)
        listed = tuple(
            Piece(one.p * two.p, one.q * two.q, one.count * two.count) for one in self.listed for two in other.listed
        )
        return Pieces(listed, self.rest + other.rest, self.unbounded or other.unbounded)


def _log(one: Piece) -> Ends:
    """ln(p / q) outwards; a probability that may be zero for all the digits has no lower end."""
    if one.p.low <= 0 or one.q.low <= 0:
        return Fraction(-(10**6)), Fraction(10**6)
    low, high = (one.p / one.q).log().fractions()
    return low, high


def product(parts: Sequence[Recipe]) -> Recipe:
    """Independent parts together; no parts, one certain output."""

    def recipe(digits: int) -> Pieces:
        one = Enclosure.of(1, digits)
        total = Pieces((Piece(one, one),))
        for part in parts:
            total = total.times(part(digits))
        return total

    return recipe


def total(terms: Iterable[Enclosure], digits: int) -> Enclosure:
    """A sum."""
    found = Enclosure.of(0, digits)
    for term in terms:
        found = found + term
    return found


def normalised(p: Sequence[Enclosure], q: Sequence[Enclosure], counts: Sequence[int], digits: int) -> Pieces:
    """Pieces from weights that are not yet divided by their sums."""
    sums = [total((w * c for w, c in zip(weights, counts, strict=True)), digits) for weights in (p, q)]
    listed = (Piece(a / sums[0], b / sums[1], c) for a, b, c in zip(p, q, counts, strict=True))
    return Pieces(tuple(listed))


def power(rate: Fraction, exponent: int | Fraction, digits: int) -> Enclosure:
    """e^(-rate exponent)."""
    return Enclosure.of(-rate * exponent, digits).exp()


def whole_range(scale: Fraction, digits: int) -> int:
    """How many steps from the centre discrete Laplace noise leaves less than 10^-digits outside."""
    return math.ceil(scale * digits * Fraction(2303, 1000)) + 1
