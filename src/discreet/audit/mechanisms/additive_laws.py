"""Exact laws of added noise on neighbouring values: Laplace, staircase, Gaussian, and tests with a threshold.

Two laws are listed side by side, piece by piece, in enclosures. The largest privacy loss follows from them, and delta
at an epsilon. A piece is a set of outputs of equal loss, or one output, with its probability on either dataset.
Whatever is not listed is bounded by the rest. No float takes part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, exact_value
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, ProposeTestRelease, Staircase
from discreet.mechanisms.staircase import Stairs
from discreet.mechanisms.tails import normal_tail

MOST_PIECES = 20_000
NOTHING = Fraction(0)

Ends = tuple[Fraction, Fraction]
Recipe = Callable[[int], "LawPair"]
"""Pieces computed with so many digits."""


@dataclass(frozen=True, slots=True)
class OutputMass:
    """Holds `count` outputs, each with probability p on the one dataset and q on the other."""

    p: Enclosure
    q: Enclosure
    count: int = 1


@dataclass(frozen=True, slots=True)
class LawPair:
    """Holds two laws as pieces with their masses on either dataset.

    Attributes:
        listed: all outputs but those of the rest.
        rest: a bound on the probability of everything else, on either dataset.
        unbounded: whether losses grow without bound among what is not listed one by one.
    """

    listed: tuple[OutputMass, ...]
    rest: Fraction = NOTHING
    unbounded: bool = False

    @property
    def swapped_pieces(self) -> LawPair:
        """Returns the same with the datasets exchanged."""
        return LawPair(tuple(OutputMass(one.q, one.p, one.count) for one in self.listed), self.rest, self.unbounded)

    def loss(self) -> Ends | None:
        """Returns between which numbers the largest ln(p / q) lies; None if it is infinite.

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
        """Returns between which numbers the sum of (p - e^epsilon q)_+ lies.

        That is the delta at this epsilon, in one direction.
        """
        low, high = NOTHING, self.rest
        for one in self.listed:
            beyond = one.p - one.q * Enclosure.of(epsilon, one.p.digits).exp()
            least, most = beyond.fractions()
            low += one.count * max(least, NOTHING)
            high += one.count * max(most, NOTHING)
        return low, high

    def times(self, other: LawPair) -> LawPair:
        """Returns both outputs of two independent parts."""
        if len(self.listed) * len(other.listed) > MOST_PIECES:
            hint = "Compare values that differ in fewer entries, or use `distinguish`."
            raise InvalidParameter("b", "another value", "to differ from a in few entries", hint)
        listed = tuple(
            OutputMass(one.p * two.p, one.q * two.q, one.count * two.count)
            for one in self.listed
            for two in other.listed
        )
        return LawPair(listed, self.rest + other.rest, self.unbounded or other.unbounded)


def _log(one: OutputMass) -> Ends:
    """Returns ln(p / q) rounded outwards; a probability that may be zero for all the digits has no lower end."""
    if one.p.low <= 0 or one.q.low <= 0:
        return Fraction(-(10**6)), Fraction(10**6)
    low, high = (one.p / one.q).log().fractions()
    return low, high


def product(parts: Sequence[Recipe]) -> Recipe:
    """Returns independent parts together; without parts, one certain output."""

    def recipe(digits: int) -> LawPair:
        one = Enclosure.of(1, digits)
        total = LawPair((OutputMass(one, one),))
        for part in parts:
            total = total.times(part(digits))
        return total

    return recipe


def total(terms: Iterable[Enclosure], digits: int) -> Enclosure:
    """Returns the sum of enclosures."""
    found = Enclosure.of(0, digits)
    for term in terms:
        found = found + term
    return found


def normalize_pieces(p: Sequence[Enclosure], q: Sequence[Enclosure], counts: Sequence[int], digits: int) -> LawPair:
    """Returns pieces from weights that are not yet divided by their sums."""
    sums = [total((w * c for w, c in zip(weights, counts, strict=True)), digits) for weights in (p, q)]
    listed = (OutputMass(a / sums[0], b / sums[1], c) for a, b, c in zip(p, q, counts, strict=True))
    return LawPair(tuple(listed))


def power(rate: Fraction, exponent: int | Fraction, digits: int) -> Enclosure:
    """Returns an enclosure of e^(-rate exponent)."""
    return Enclosure.of(-rate * exponent, digits).exp()


def whole_range(scale: Fraction, digits: int) -> int:
    """Returns how many steps from the centre discrete Laplace noise leaves less than 10^-digits outside."""
    return math.ceil(scale * digits * Fraction(2303, 1000)) + 1


_HALF = Fraction(1, 2)


def pairs(a: Any, b: Any, steps: Callable[[Any], Any]) -> Iterator[tuple[int, int]]:
    """Returns the entries in which two values differ, in steps."""
    if np.shape(a) != np.shape(b):
        raise InvalidParameter("b", f"a value of shape {np.shape(b)}", f"to have the shape of a, {np.shape(a)}")
    one, other = (np.ravel(np.asarray(steps(value), dtype=object)).tolist() for value in (a, b))
    return ((int(x), int(y)) for x, y in zip(one, other, strict=True) if x != y)


# ------------------------------------------------------------------------------------------------------------ Laplace
def laplace_pieces(scale: Fraction, shift: int, digits: int) -> LawPair:
    """Returns P(z) ~ e^(-|z| / scale) around 0 and around the shift.

    Both tails have one loss each, the middle has its own.
    """
    if shift > MOST_PIECES:
        raise InvalidParameter("b", "another value", "to be at most 20,000 steps from a", "Use a coarser grid.")
    a = Enclosure.of(-1 / scale, digits).exp()
    powers = [Enclosure.of(-k / scale, digits).exp() for k in range(shift + 1)]
    point = (1 - a) / (a + 1)
    tail = 1 / (a + 1)
    ends = (OutputMass(tail, tail * powers[shift]), OutputMass(tail * powers[shift], tail))
    middle = (OutputMass(point * powers[z], point * powers[shift - z]) for z in range(1, shift))
    return LawPair((*ends, *middle))


def laplace(mechanism: Laplace, a: Any, b: Any) -> Recipe:
    """Returns both laws of Laplace noise on a grid, for every entry that differs."""
    scale = mechanism._scale
    return _compose_shifts(
        pairs(a, b, mechanism.grid.steps), lambda shift, digits: laplace_pieces(scale, shift, digits)
    )


def discrete_laplace(mechanism: DiscreteLaplace, a: Any, b: Any) -> Recipe:
    """Returns both laws of discrete Laplace noise, for every entry that differs."""
    scale = mechanism.scale
    return _compose_shifts(
        pairs(a, b, mechanism.grid.steps), lambda shift, digits: laplace_pieces(scale, shift, digits)
    )


def _compose_shifts(moves: Iterator[tuple[int, int]], law: Callable[[int, int], LawPair]) -> Recipe:
    def part(x: int, y: int) -> Recipe:
        def recipe(digits: int) -> LawPair:
            found = law(abs(x - y), digits)
            return found if x <= y else found.swapped_pieces

        return recipe

    return product([part(x, y) for x, y in moves])


# ---------------------------------------------------------------------------------------------------------- staircase
def staircase(mechanism: Staircase, a: Any, b: Any) -> Recipe:
    """Returns both laws of staircase noise, for every entry that differs; outputs are counted by their two stairs."""
    stairs = mechanism.stairs
    return _compose_shifts(
        pairs(a, b, mechanism.grid.steps), lambda shift, digits: stairs_pieces(stairs, shift, digits)
    )


def stairs_pieces(stairs: Stairs, shift: int, digits: int) -> LawPair:
    """Returns P(z) = c b^k(z), outputs by the pair of exponents.

    It lists stairs up to those that less than 10^-digits of the mass reaches.
    """
    blocks = math.ceil(digits * Fraction(2303, 1000) / stairs.epsilon) + 2
    reach = blocks * stairs.steps
    z = np.arange(-reach, reach + shift + 1)
    codes = Counter(zip(_exponents(stairs, z).tolist(), _exponents(stairs, z - shift).tolist(), strict=True))
    b = Enclosure.of(-stairs.epsilon, digits).exp()
    scale = (1 - b) / (b * (2 * (stairs.steps - stairs.high)) + 2 * stairs.high - (1 - b))
    powers = [
        Enclosure.of(-stairs.epsilon * k, digits).exp() * scale for k in range(max(max(pair) for pair in codes) + 1)
    ]
    listed = tuple(OutputMass(powers[k], powers[j], count) for (k, j), count in codes.items())
    return LawPair(listed, stairs.tail(reach)(digits).fractions()[1])


def _exponents(stairs: Stairs, z: Any) -> Any:
    block, place = np.divmod(np.abs(z), stairs.steps)
    return block + (place >= stairs.high)


# ----------------------------------------------------------------------------------------------------------- Gaussian
def discrete_gaussian(mechanism: DiscreteGaussian, a: Any, b: Any) -> Recipe:
    """Returns both laws of discrete Gaussian noise, for every entry that differs."""
    sigma = mechanism.sigma / mechanism.grid.step
    return _compose_shifts(
        pairs(a, b, mechanism.grid.steps), lambda shift, digits: gaussian_pieces(sigma, shift, digits)
    )


def gaussian_pieces(sigma: Fraction, shift: int, digits: int) -> LawPair:
    """Returns P(z) ~ e^(-z^2 / (2 sigma^2)), point by point; the tails are below geometric series."""
    reach = math.ceil(float(sigma) * math.sqrt(2 * 2.303 * digits)) + 2
    if 2 * reach + shift > MOST_PIECES:
        raise InvalidParameter("mechanism", sigma, "to have a sigma of at most some hundred steps", "Coarsen its grid.")
    rate = 1 / (2 * sigma * sigma)
    weights = {z: Enclosure.of(-rate * z * z, digits).exp() for z in range(reach + shift + 1)}
    left = weights[reach] / (1 - Enclosure.of(-2 * rate * reach, digits).exp())
    known = total((weights[abs(z)] for z in range(-reach + 1, reach)), digits)
    everything = Enclosure(known.low, (known + left * 2).high, digits)
    rest = (left * 2 / everything).fractions()[1]
    listed = tuple(
        OutputMass(weights[abs(z)] / everything, weights[abs(z - shift)] / everything)
        for z in range(-reach, reach + shift + 1)
    )
    return LawPair(listed, rest, unbounded=bool(shift))


def gaussian(mechanism: Gaussian, a: Any, b: Any, epsilon: Fraction) -> Recipe:
    """Returns both laws of Gaussian noise for the one entry that differs, in cells of the grid.

    Losses rise from cell to cell, so that signs change in one cell.

    (p - e^epsilon q) is positive up to a cell and negative from the next one on, or the reverse, and so is (q -
    e^epsilon p): the pieces are these cells and what lies between them.
    """
    step = mechanism.grid.step
    if np.shape(a) != np.shape(b):
        raise InvalidParameter("b", f"a value of shape {np.shape(b)}", f"to have the shape of a, {np.shape(a)}")
    one, other = ([exact_value(x) / step for x in np.ravel(np.asarray(v, dtype=object)).tolist()] for v in (a, b))
    moved = [(x, y) for x, y in zip(one, other, strict=True) if x != y]
    if len(moved) > 1:
        hint = "Only the distance counts: put all of it into one entry."
        raise InvalidParameter("b", "another value", "to differ from a in one entry", hint)
    sigma = mechanism.sigma / step
    return product([_cells(x, y, sigma, epsilon) for x, y in moved])


def _cells(x: Fraction, y: Fraction, sigma: Fraction, epsilon: Fraction) -> Recipe:
    middle, offset = (x + y) / 2, epsilon * sigma * sigma / (y - x)
    edges = sorted({math.floor(middle + side * offset + _HALF) + k for side in (-1, 1) for k in (0, 1)})
    cuts = [edge - _HALF for edge in edges]

    def masses(centre: Fraction, digits: int) -> list[Enclosure]:
        tails = [normal_tail(Enclosure.of((cut - centre) / sigma, digits)) for cut in cuts]
        chain = [Enclosure.of(1, digits), *tails, Enclosure.of(0, digits)]
        return [_not_negative(left - right) for left, right in pairwise(chain)]

    def recipe(digits: int) -> LawPair:
        listed = (OutputMass(p, q) for p, q in zip(masses(x, digits), masses(y, digits), strict=True))
        return LawPair(tuple(listed), unbounded=True)

    return recipe


def _not_negative(value: Enclosure) -> Enclosure:
    return Enclosure(max(value.low, Decimal(0)), value.high, value.digits)


# ------------------------------------------------------------------------------------------------ propose-test-release
def propose_test_release(mechanism: ProposeTestRelease, a: Any, b: Any) -> Recipe:
    """Returns both laws of (value, distance): nothing is released, or a number from one of the two shifted laws."""
    (x, far), (y, near) = a, b
    scale = mechanism._laplace._scale
    one, other = mechanism.grid.steps(x), mechanism.grid.steps(y)

    def recipe(digits: int) -> LawPair:
        p, q = (upper_tail(1 / mechanism.epsilon, mechanism.cut - d, digits) for d in (far, near))
        numbers = laplace_pieces(scale, abs(one - other), digits)
        shown = numbers if one <= other else numbers.swapped_pieces
        listed = (OutputMass(part.p * p, part.q * q, part.count) for part in shown.listed)
        return LawPair((OutputMass(1 - p, 1 - q), *listed))

    return recipe


def upper_tail(scale: Fraction, k: int, digits: int) -> Enclosure:
    """Returns P(Z >= k) for P(z) ~ e^(-|z| / scale)."""
    a = Enclosure.of(-1 / scale, digits).exp()
    if k > 0:
        return Enclosure.of(-k / scale, digits).exp() / (a + 1)
    return 1 - Enclosure.of((k - 1) / scale, digits).exp() / (a + 1)
