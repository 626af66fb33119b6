"""Geometric and discrete Laplace noise, digit by digit.

The binary digits of a geometric variable G, P(G = g) = (1 - a) a^g, are independent, and digit k is 1 with probability
a^(2^k) / (1 + a^(2^k)), because the product of (1 + a^(2^k)) over k is 1 / (1 - a). With a = exp(-1/scale) each digit
is a coin of an exactly known probability. Digits above the last stored one are nearly always 0: one more coin, of
probability P(G >= 2^K) = a^(2^K), says when they are not, and then, G having no memory, the upper part is 1 plus a
geometric variable of ratio a^(2^K). Nothing is cut off. The difference of two such variables is the discrete Laplace
law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.exact import Enclosure
from discreet.noise.coin import Coin, accept_many, accept_one, exponential, exponential_coin
from discreet.noise.rng import TURNS, Bits, Shape, endless, shape_of, source_of
from discreet.noise.uniform import uniform_below

_RARE = 11  # digits are stored up to the first K with 2^K >= 11 scale: then P(G >= 2^K) < 2^-15
_CHUNK = 8192  # draws whose random lanes stay in the processor's cache together
_GROUP = 14  # digits whose signed sum fits int16
_LARGEST = (1 << 63) - 1
_LARGEST_ARRAY_SCALE = 1 << 52  # above, draws need not fit int64 and arrays hold Python ints


@dataclass(frozen=True, slots=True)
class _Digits:
    """The coins of one scale, lowest digit first, and the coin that reaches beyond them."""

    scale: Fraction
    coins: tuple[Coin, ...]
    beyond: Coin
    looks: tuple[int, ...]  # 16-bit thresholds, highest digit first, that of `beyond` in front
    lanes: NDArray[np.uint16]  # the same as a column, lowest digit first, `beyond` last


def _digits(scale: Any) -> _Digits:
    try:
        return _digits_of(scale)
    except TypeError:
        check.positive(scale=scale)  # what cannot be hashed is no number: this says so
        raise


@lru_cache(maxsize=1024, typed=True)
def _digits_of(scale: Any) -> _Digits:
    exact = check.positive(scale=scale, floats="exact")
    count = (math.ceil(_RARE * exact) - 1).bit_length()
    rate = float(1 / exact)
    coins = tuple(_digit(exact, k, math.ldexp(rate, k)) for k in range(count))
    beyond = exponential_coin((1 << count) / exact)
    looks = (beyond.lane, *(coin.lane for coin in reversed(coins)))
    lanes = np.array(looks[::-1], dtype=np.uint16).reshape(-1, 1)
    return _Digits(exact, coins, beyond, looks, lanes)


def _digit(scale: Fraction, k: int, x: float) -> Coin:
    """Returns the coin of digit k, with chance exp(-x) / (1 + exp(-x)) = 1 / (1 + exp(x)), x = 2^k / scale < 22."""
    chance = exponential(x)
    return Coin(lambda digits: 1 / (Enclosure.of((1 << k) / scale, digits).exp() + 1), chance / (1 + chance))


@overload
def geometric(scale: check.Number, size: None = None, *, bits: Bits | None = None) -> int: ...
@overload
def geometric(scale: check.Number, size: Shape, *, bits: Bits | None = None) -> NDArray[np.int64]: ...
def geometric(scale: check.Number, size: Shape | None = None, *, bits: Bits | None = None) -> int | NDArray[np.int64]:
    """Draws exact geometric noise, P(g) = (1 - a) a^g for g = 0, 1, 2, ... with a = exp(-1/scale).

    >>> geometric("1/1000000")
    0
    """
    source = source_of(bits)
    digits = _digits(scale)
    if size is None:
        return _one(digits, source)
    return _array(digits, size, 1, source)


@overload
def discrete_laplace(scale: check.Number, size: None = None, *, bits: Bits | None = None) -> int: ...
@overload
def discrete_laplace(scale: check.Number, size: Shape, *, bits: Bits | None = None) -> NDArray[np.int64]: ...
def discrete_laplace(
    scale: check.Number, size: Shape | None = None, *, bits: Bits | None = None
) -> int | NDArray[np.int64]:
    """Draws exact discrete Laplace noise, P(z) proportional to exp(-|z| / scale) on all integers.

    Args:
        scale: any positive rational; a float is taken as the binary number it is.
        size: None for one int, else the shape of an int64 array (of Python ints for scales above 2^52).
        bits: the source of randomness; None is the secure one of the system.

    Formal guarantee: the law is exact and its support unbounded (Ghosh, Roughgarden, Sundararajan 2009).

    >>> discrete_laplace("1/1000000", (2, 3)).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    source = source_of(bits)
    digits = _digits(scale)
    if size is None:
        return _difference(digits, source)
    return _array(digits, size, 2, source)


def laplace_drawer(scale: check.Number) -> Callable[[Bits], int]:
    """Draws of one scale for a sampler that makes many: the parameter is checked once."""
    return partial(_difference, _digits(scale))


def _one(digits: _Digits, bits: Bits) -> int:
    return _careful(digits, bits.lanes(len(digits.looks)), bits)


def _difference(digits: _Digits, bits: Bits) -> int:
    """Two draws side by side: the common case, no digit tied and none beyond the stored ones, in one short loop."""
    count = len(digits.looks)
    drawn = bits.lanes(2 * count)
    first, second = drawn[:count], drawn[count:]
    value = 0
    for threshold, plus, minus in zip(digits.looks, first, second, strict=True):
        value += value + (plus < threshold) - (minus < threshold)
        if plus == threshold or minus == threshold:  # noqa: PLR1714 - a tuple here costs a third of the draw
            break
    else:
        if first[0] > digits.looks[0] < second[0]:
            return value
    return _careful(digits, first, bits) - _careful(digits, second, bits)


def _careful(digits: _Digits, drawn: list[int], bits: Bits) -> int:
    """Returns a geometric draw from the first 16 bits of every digit."""
    value = _upper(digits, bits) if digits.beyond.resume(drawn[0], bits) else 0
    for coin, lane in zip(reversed(digits.coins), drawn[1:], strict=True):
        value += value + coin.resume(lane, bits)
    return value


def _upper(digits: _Digits, bits: Bits) -> int:
    """Returns the part of a geometric draw above the stored digits, given that it is not zero."""
    for value in range(1, TURNS):
        if not digits.beyond.toss(bits):
            return value
    raise endless()


def _array(digits: _Digits, size: Shape, parts: int, bits: Bits) -> NDArray[Any]:
    shape = shape_of(size)
    count = math.prod(shape)
    if digits.scale > _LARGEST_ARRAY_SCALE:
        draw = _difference if parts > 1 else _one
        return np.array([draw(digits, bits) for _ in range(count)], dtype=object).reshape(shape)
    if count == 1:
        return np.array([_alone(digits, parts, bits)], dtype=np.int64).reshape(shape)
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        _fill(digits, result[start : start + _CHUNK], parts, bits)
    return result.reshape(shape)


def _fill(digits: _Digits, out: NDArray[np.int64], parts: int, bits: Bits) -> None:
    """Writes geometric draws (one part) or their differences (two parts)."""
    lanes = np.empty((parts, len(digits.lanes), out.size), dtype=np.uint16)
    bits.fill(lanes)
    ones = (lanes < digits.lanes).view(np.int8)
    _combine((ones[0] - ones[1] if parts > 1 else ones[0])[:-1], out)
    rare = lanes == digits.lanes
    rare[:, -1] |= ones[:, -1].view(np.bool_)
    for part, digit, index in zip(*np.unravel_index(np.flatnonzero(rare), rare.shape), strict=True):
        late = _late(digits, int(digit), int(lanes[part, digit, index]), bits)
        total = int(out[index]) + (late if part == 0 else -late)
        if not -_LARGEST <= total <= _LARGEST:  # less than once in e^2000 draws
            raise endless()
        out[index] = total


def _alone(digits: _Digits, parts: int, bits: Bits) -> int:
    """Returns what `_fill` writes for one draw, from the same bits: arrays of one number take much longer."""
    lanes = np.empty((parts, len(digits.looks)), dtype=np.uint16)
    bits.fill(lanes)
    value, is_late, last = 0, False, len(digits.coins)
    for part, drawn in enumerate(lanes.tolist()):
        added = 0
        for digit, (lane, threshold) in enumerate(zip(drawn, reversed(digits.looks), strict=True)):
            if lane == threshold or (digit == last and lane < threshold):
                added, is_late = added + _late(digits, digit, lane, bits), True
            else:
                added += (lane < threshold) << digit
        value += -added if part else added
    if is_late and not -_LARGEST <= value <= _LARGEST:
        raise endless()
    return value


def _late(digits: _Digits, digit: int, lane: int, bits: Bits) -> int:
    """Returns what an undecided digit adds once it is decided; the digits beyond the stored ones count as one."""
    if digit < len(digits.coins):
        return digits.coins[digit].resume(lane, bits) << digit
    return _upper(digits, bits) << digit if digits.beyond.resume(lane, bits) else 0


def _combine(signed: NDArray[np.int8], out: NDArray[np.int64]) -> None:
    """Sums digit k times 2^k over the rows, in groups small enough for 16 bits."""
    out[:] = 0
    for start in range(0, len(signed), _GROUP):
        group = signed[start : start + _GROUP]
        total = np.zeros(out.size, dtype=np.int16)
        for row in group[::-1]:
            total += total
            total += row
        out += total.astype(np.int64) << np.int64(start)


# ------------------------------------------------------------------------------------------------------------ truncated


def truncated_laplace(scale: check.Number, most: int, size: Shape, *, bits: Bits | None = None) -> NDArray[Any]:
    """Draws exact discrete Laplace noise under the condition |z| <= most: P(z) ~ exp(-|z| / scale) on -most ... most.

    Args:
        scale: any positive rational; a float is taken as the binary number it is.
        most: the largest size of a draw, at least 0.
        size: the shape of the array: of int64, or of Python ints for scales or sizes above 2^52.
        bits: the source of randomness; None is the secure one of the system.

    Formal guarantee: the law is exact. Draws of the whole law are thrown away where they are too large, or, where most
    of them would be, whole numbers from -most to most are kept with probability exp(-|z| / scale). Either way more than
    half are kept: P(|Z| <= most) >= 1 - 1/e where most >= scale, and the mean of exp(-|z| / scale) is no less below.

    >>> truncated_laplace("1/1000000", 5, (2, 3)).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    source = source_of(bits)
    exact, limit = check.positive(scale=scale, floats="exact"), check.integer(most=most, at_least=0)
    shape = shape_of(size)
    count = math.prod(shape)
    if limit >= exact:
        return _long(exact, limit, count, source).reshape(shape)
    if limit <= _LARGEST_ARRAY_SCALE:
        return _short(exact, limit, count, source).reshape(shape)
    return np.array([_short_one(exact, limit, source) for _ in range(count)], dtype=object).reshape(shape)


def _long(scale: Fraction, most: int, count: int, bits: Bits) -> NDArray[Any]:
    """Draws of the whole law."""
    result = discrete_laplace(scale, count, bits=bits)
    for _ in range(TURNS):
        outside = np.flatnonzero((result > most) | (result < -most))
        if not outside.size:
            return result
        result[outside] = discrete_laplace(scale, outside.size, bits=bits)
    raise endless()


def _short(scale: Fraction, most: int, count: int, bits: Bits) -> NDArray[np.int64]:
    """Draws of a flat law."""
    result = np.empty(count, dtype=np.int64)
    missing, rate = np.arange(count), float(1 / scale)
    for _ in range(TURNS):
        if not missing.size:
            return result
        drawn = uniform_below(2 * most + 1, missing.size, bits=bits) - most
        exact = partial(_rate, drawn, scale)
        good = accept_many(np.abs(drawn) * rate, exact, bits)
        result[missing[good]] = drawn[good]
        missing = missing[~good]
    raise endless()


def _rate(drawn: NDArray[np.int64], scale: Fraction, index: int) -> Fraction:
    return abs(int(drawn[index])) / scale


def _short_one(scale: Fraction, most: int, bits: Bits) -> int:
    for _ in range(TURNS):
        drawn = uniform_below(2 * most + 1, bits=bits) - most
        x = abs(drawn) / scale
        if accept_one(float(x), partial(Fraction, x), bits):
            return drawn
    raise endless()
