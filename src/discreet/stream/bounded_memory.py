"""Running sums in bounded memory: the square root as a short sum of exponentials.

Notation: c_0 = 1 and c_k = sum_i w_i l_i^(k-1) with weights w_i > 0 and rates 0 < l_i < 1 (a *buffered linear Toeplitz*
factor; Dvijotham, McMahan, Pillutla, Steinke, Thakurta 2024). Then C x needs one number for each rate,
s_i <- l_i s_i + x_t, and so does its inverse. The coefficients of 1 / sqrt(1 - z) are moments,

    c_k = 1/pi integral over (0, 1) of l^(k - 1/2) (1 - l)^(-1/2) dl,

and with l = exp(-e^u) the trapezoidal rule in u finds them with a handful of exponentials: the step 2 in u loses less
than a thousandth of the error's square root for horizons from 100 to a million, and needs ten rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from operator import mul

import numpy as np

from discreet.dataclass import dataclass
from discreet.exact import root_above
from discreet.stream.factor import Decoder, Encoder, Gain, Participation, SumFactorization

LARGEST_HORIZON = 1 << 40
"""The longest stream: a value each microsecond for twelve days. A stream of unknown horizon ends there, too."""

_RATE_BITS = 64  # rates and weights are multiples of 2^-64
_STATE_BITS = 96  # states are multiples of 2^-96
_STEP = 2.0  # of the trapezoidal rule
_EARLY, _LATE = 4.0, 2.0  # how far it goes beyond u = -ln(horizon) and u = 0
_DAMPING = 10.0  # in units of u: beyond it, a stream of unknown horizon spends less
_POWER_BITS = 160
_BLOCK = 64  # gains that are computed together
_ONE, _HALF = 1 << _RATE_BITS, 1 << (_RATE_BITS - 1)


@dataclass(frozen=True, eq=False)
class BoundedMemoryFactorization(SumFactorization):
    """A factor of running sums whose memory does not grow.

    Args:
        horizon: how many periods there are at most.
        rates: the l_i, in steps of 2^-64.
        weights: the w_i, in steps of 2^-64.
    """

    horizon: int
    rates: tuple[int, ...]
    weights: tuple[int, ...]
    bits: int = _RATE_BITS + _STATE_BITS

    def sensitivity(self, participation: Participation) -> Fraction:
        """Returns how far C x moves, the rounding of the states included.

        *Exact states.* The series is positive and does not increase, since c_1 <= 1 is checked and l_i < 1; so the
        earliest periods are the worst (`earliest_move`). Products of columns are geometric sums, computed in integers
        and rounded up.

        *Rounding.* A state becomes floor(l s + 1/2) + x. For two streams, floor(a + 1/2) - floor(b + 1/2) is less than
        one unit from a - b, so that the difference of states is that of exact states up to an error that grows by less
        than a unit per period and shrinks by l: less than 1 / (1 - l) units. Each output is then off by less than
        E = sum_i w_i / (1 - l_i) units of 2^-96, and all of them by less than sqrt(horizon) E in the L2 norm, which is
        added. This holds whatever the values are, hence also if they depend on earlier releases.
        """
        squared = Fraction(self._compute_squared_norm(participation), 1 << _POWER_BITS)
        drift = sum(Fraction(w, _ONE - rate) for rate, w in zip(self.rates, self.weights, strict=True))
        return root_above(squared) + root_above(Fraction(self.horizon)) * drift / (1 << _STATE_BITS)

    def _compute_squared_norm(self, participation: Participation) -> int:
        """Returns the squared norm of the sum of the earliest columns, in units of 2^-160, rounded up.

        It is the sum of G(r, s) over pairs r <= s of periods, twice if r < s, and with the lag g = p_s - p_r and
        m = horizon - 1 - p_s: G = c_g + sum_ij w_i w_j l_j^g (1 + q + ... + q^(m - 1)) for q = l_i l_j. Geometric sums
        of all periods are added up from the last one on, so that the work grows with the number of periods only.
        """
        periods = participation.earliest(self.horizon)
        count, apart = len(periods), participation.apart
        total = sum((1 + (m > 0)) * (count - m) * self._coefficient(m * apart) for m in range(count))
        for rate, weight in zip(self.rates, self.weights, strict=True):
            for other, other_weight in zip(self.rates, self.weights, strict=True):
                ratio = rate * other << (_POWER_BITS - 2 * _RATE_BITS)
                sums = _geometric_sums(ratio, [self.horizon - 1 - late for late in periods], apart)
                lagged = _power(other << (_POWER_BITS - _RATE_BITS), apart, up=True)
                total += _up(weight * other_weight * _at_lags(sums, lagged), 2 * _RATE_BITS)
        return total

    def _coefficient(self, k: int) -> int:
        """Returns an upper bound of c_k, in units of 2^-160."""
        if k == 0:
            return 1 << _POWER_BITS
        terms = zip(self.rates, self.weights, strict=True)
        return sum(_up(w * _power(rate << (_POWER_BITS - _RATE_BITS), k - 1, up=True), _RATE_BITS) for rate, w in terms)

    def encoder(self) -> Encoder:
        """Returns a new encoder, before the first period."""
        return _BoundedMemoryEncoder(self)

    def decoder(self) -> Decoder:
        """Returns a new decoder, before the first period."""
        return _BoundedMemoryDecoder(self)

    def gains(self) -> Iterator[Gain]:
        """Yields the gain of each period: the decoder's answer to a single impulse, computed in blocks."""
        return islice(self._gains_in_blocks(), self.horizon)

    def _gains_in_blocks(self) -> Iterator[Gain]:
        rates, weights = (
            np.ldexp(np.array(part, dtype=np.float64), -_RATE_BITS) for part in (self.rates, self.weights)
        )
        step = np.diag(rates) - np.outer(np.ones(len(rates)), weights)  # of the states, while nothing comes
        rows = [-weights]
        for _ in range(_BLOCK - 1):
            rows.append(rows[-1] @ step)
        answers, jump, states = np.array(rows), np.linalg.matrix_power(step, _BLOCK), np.ones(len(rates))
        weight, squared, total = 1.0, 1.0, 1.0
        yield Gain(squared, total)
        while True:
            found = weight + np.cumsum(answers @ states)
            squares, totals = squared + np.cumsum(found**2), total + np.cumsum(np.abs(found))
            yield from map(Gain, squares.tolist(), totals.tolist())
            weight, squared, total = float(found[-1]), float(squares[-1]), float(totals[-1])
            states = jump @ states


class _BoundedMemoryEncoder(Encoder):
    __slots__ = ("_rates", "_states", "_weights")

    def __init__(self, factor: BoundedMemoryFactorization) -> None:
        self._rates, self._weights = factor.rates, factor.weights
        self._states = [0] * len(factor.rates)

    def step(self, value: int) -> int:
        """Takes the next value and returns the next entry of C x."""
        scaled, states = value << _STATE_BITS, self._states
        pairs = zip(self._rates, states, strict=True)
        self._states = [(rate * state + _HALF >> _RATE_BITS) + scaled for rate, state in pairs]
        weighted: int = sum(map(mul, self._weights, states))
        return (scaled << _RATE_BITS) + weighted


class _BoundedMemoryDecoder(Decoder):
    """Runs the inverse: x_t = y_t - sum_i w_i s_i with the same states, and adds the x_t up."""

    __slots__ = ("_rates", "_states", "_total", "_weights")

    def __init__(self, factor: BoundedMemoryFactorization) -> None:
        self._rates = [math.ldexp(rate, -_RATE_BITS) for rate in factor.rates]
        self._weights = [math.ldexp(weight, -_RATE_BITS) for weight in factor.weights]
        self._states = [0.0] * len(factor.rates)
        self._total = 0.0

    def step(self, measured: float) -> float:
        """Takes the next entry of y and returns the next entry of B y."""
        value = measured - sum(map(mul, self._weights, self._states))
        self._states = [rate * state + value for rate, state in zip(self._rates, self._states, strict=True)]
        self._total += value
        return self._total


@lru_cache(maxsize=8)
def bounded_memory_factor(horizon: int | None) -> BoundedMemoryFactorization:
    """Returns a factor of running sums for a horizon, or for an unknown one.

    With an unknown horizon the weight of slow rates is damped by 1 / (1 - u / 10): the sensitivity then grows so slowly
    that one that holds for 2^40 periods costs little. From the eighth period on the root-mean-square error is at
    most 1.5 times that of the square root for a horizon that ends right there.
    """
    last = LARGEST_HORIZON if horizon is None else horizon
    rates, weights = [], []
    u = -math.log(last) - _EARLY
    while u < _LATE:
        speed = math.exp(u)
        weight = _STEP / math.pi * speed * math.exp(-1.5 * speed) / math.sqrt(-math.expm1(-speed))
        damping = 1 / (1 + max(-u, 0.0) / _DAMPING) if horizon is None else 1.0
        rates.append(_ONE - max(1, round(math.ldexp(-math.expm1(-speed), _RATE_BITS))))
        weights.append(round(math.ldexp(weight * damping, _RATE_BITS)))
        u += _STEP
    excess = max(sum(weights) - _ONE, 0)  # c_1 <= c_0 = 1, which the proof above needs
    return BoundedMemoryFactorization(last, tuple(rates), tuple(w - -(-excess * w // sum(weights)) for w in weights))


def _up(value: int, bits: int) -> int:
    """Returns the value divided by 2^bits, rounded up."""
    return -(-value >> bits)


def _power(base: int, exponent: int, *, up: bool) -> int:
    """Returns a bound of (base / 2^160)^exponent from above or below, in units of 2^-160."""
    result, square = 1 << _POWER_BITS, base
    while exponent:
        if exponent & 1:
            result = _round_power(result * square, up=up)
        square = _round_power(square * square, up=up)
        exponent >>= 1
    return result


def _round_power(value: int, *, up: bool) -> int:
    return _up(value, _POWER_BITS) if up else value >> _POWER_BITS


def _geometric_sums(ratio: int, terms: list[int], apart: int) -> list[int]:
    """Returns upper bounds, for each place, of the geometric sums of q = ratio / 2^160 < 1 from that place to the last.

    Args:
        ratio: in units of 2^-160, as are the results.
        terms: how many each sum has: fewer by `apart` from one to the next.
        apart: by how many.
    """
    one = 1 << _POWER_BITS
    power, step = _power(ratio, terms[-1], up=False), _power(ratio, apart, up=False)
    found, total = [], 0
    for _ in terms:
        total -= (power - one << _POWER_BITS) // (one - ratio)
        found.append(total)
        power = power * step >> _POWER_BITS
    return found[::-1]


def _at_lags(sums: list[int], lagged: int) -> int:
    """Returns the sums, each times the power of a number by its place, and twice but for the first; rounded up."""
    total, power = sums[0], lagged
    for found in sums[1:]:
        total += 2 * _up(found * power, _POWER_BITS)
        power = _up(power * lagged, _POWER_BITS)
    return total
