"""Real-valued noise, released exactly: computed from lazily drawn bits until the rounded result is certain.

A uniform real is an endless bit string with a known prefix. Everything computed from such reals is an enclosure; when
an enclosure does not decide a comparison or a rounding, more bits are drawn and it is computed again.
What comes out is the ideal real-valued result, rounded: post-processing of the ideal mechanism, whose guarantee carries
over unchanged.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.exact import Enclosure, Real, settle
from discreet.noise.rng import MOST_BITS, TURNS, WORD, Bits, endless

_HALF = Fraction(1, 2)


class LazyUniform:
    """A uniform real between 0 and 1 that draws its bits when they are asked for.

    Calling it with a number of digits gives an enclosure of that precision; every call agrees with the ones before.

    >>> from discreet.noise import SeededBits
    >>> uniform = LazyUniform(SeededBits(7))
    >>> uniform(4)
    Enclosure(low=Decimal('0.05855'), high=Decimal('0.05856'), digits=4)
    >>> uniform(8)
    Enclosure(low=Decimal('0.058558119'), high=Decimal('0.058558120'), digits=8)
    """

    __slots__ = ("_bits", "_count", "_prefix")

    def __init__(self, bits: Bits, prefix: int | None = None) -> None:
        """Starts from a 64-bit prefix, drawn now unless given."""
        self._bits = bits
        self._prefix = bits.word() if prefix is None else prefix
        self._count = WORD

    def __call__(self, digits: int) -> Enclosure:
        """Returns an enclosure of width 10^-digits or less."""
        wanted = 10 * digits // 3 + WORD
        if wanted > MOST_BITS:
            raise endless()
        if self._count < wanted:
            more = -(-(wanted - self._count) // WORD) * WORD
            self._prefix = self._prefix << more | self._bits.integer(more)
            self._count += more
        return Enclosure.quotients(self._prefix, self._prefix + 1, 1 << self._count, digits)


def round_real(real: Real) -> int:
    """Returns the nearest integer to a real number that is certainly no half-integer.

    >>> round_real(lambda digits: Enclosure.of(2, digits).sqrt() * 10**9)
    1414213562
    """
    return settle(lambda digits: (real(digits) + _HALF).floor())


def exponential_deviate(bits: Bits) -> Real:
    """Returns a standard exponential variable, -ln U: one real number, known to as many digits as are asked for.

    >>> from discreet.noise import SeededBits
    >>> wait = exponential_deviate(SeededBits(7))
    >>> wait(6), round_real(wait)
    (Enclosure(low=Decimal('2.83772'), high=Decimal('2.83775'), digits=6), 3)
    """
    uniform = LazyUniform(bits)
    return lambda digits: -uniform(digits).log()


def normal_deviate(bits: Bits) -> Real:
    """Returns a standard normal variable by the polar method (Marsaglia, Bray 1964).

    >>> from discreet.noise import SeededBits
    >>> normal = normal_deviate(SeededBits(7))
    >>> round_real(lambda digits: normal(digits) * 1000), round_real(lambda digits: normal(digits) * 10**12)
    (-706, -705697906301)
    """
    return polar(*disc_point(bits))


def disc_point(bits: Bits) -> tuple[LazyUniform, LazyUniform]:
    """Draws two uniform coordinates whose point, stretched to [-1, 1], lies in the unit disc: four of five do."""
    for _ in range(TURNS):
        point = LazyUniform(bits), LazyUniform(bits)
        if in_disc(*point):
            return point
    raise endless()


def in_disc(first: Real, second: Real) -> bool:
    """Returns whether the point with two uniform coordinates, stretched to [-1, 1], lies in the unit disc."""
    return settle(lambda digits: _square_radius(first, second, digits).below(1))


def polar(first: Real, second: Real) -> Real:
    """Returns the normal variable that belongs to a point of the unit disc, given by two uniform coordinates."""

    def normal(digits: int) -> Enclosure:
        square = _square_radius(first, second, digits)
        return _convert_to_signed(first, digits) * (square.log() * -2 / square).sqrt()

    return normal


def _convert_to_signed(uniform: Real, digits: int) -> Enclosure:
    return uniform(digits) * 2 - 1


def _square_radius(first: Real, second: Real, digits: int) -> Enclosure:
    x, y = _convert_to_signed(first, digits), _convert_to_signed(second, digits)
    return x * x + y * y
