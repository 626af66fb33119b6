"""The one log through which generators see private rows: it owns the budget, draws all noise and adds up its price.

Sensitivities. One unit has at most k rows. Let u count its rows in the cells of a marginal: u >= 0 and |u|_1 <= k.

- ADD_REMOVE: the marginal moves by u. |u|_1 <= k, and |u|_2 <= |u|_1 <= k, both reached when all rows share a cell.
- REPLACE: it moves by u - v, both as above. |u - v|_1 <= 2 k; and |u - v|_2^2 = |u|^2 + |v|^2 - 2 u v <= 2 k^2 because
  no entry is negative, reached when u and v each have one cell, another one.
- Residuals of pairs of columns, several at once: derived in `residual_contrasts`. With shares s that add up to 1 and
  squared moves b of one row, factors of sqrt(s / b) make all of them together move by at most k.
- A score that is weight times |M - E|_1, plus a constant, with weight, E and constant public, moves by at most weight
  times |M - M'|_1 (the triangle inequality read backwards): k and 2 k times the largest weight.

Prices. Normal noise of deviation sigma on a vector that moves by D costs D^2 / (2 sigma^2)-zCDP in any number of
dimensions, and its rounding to whole numbers costs nothing (Bun, Steinke 2016, Proposition 1.6 and post-processing). A
choice by the exponential mechanism costs epsilon^2 / 8 (Cesar, Rogers 2021). Adaptively chosen prices whose sum stays
within rho are rho-zCDP together (a zCDP filter: Whitehouse, Ramdas, Rogers, Wu 2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from discreet import check
from discreet.accounting.zcdp import rho_for, zcdp
from discreet.dataclass import dataclass
from discreet.errors import InsufficientBudget, InternalError, InvalidParameter
from discreet.exact import float_below, root_above, root_below
from discreet.mechanisms import Exponential, Gaussian
from discreet.noise import Bits, source_of
from discreet.privacy import ZCDP, Neighbours
from discreet.privacy.events import Composed, Event
from discreet.synthetic.coded_rows import CodedRows, Integers, checked_shape
from discreet.synthetic.inference.factors import Table
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal
from discreet.synthetic.residual_contrasts import contrast_factors, residual_move, residual_of, scaled_contrasts

STEPS = 1 << 8
"""Of a score, to one row: estimates are rounded to such steps, and all scores are whole numbers of them."""

MOST_ROWS_PER_UNIT = 1 << 20
_LARGEST_SCORE = 1 << 61
_LARGEST_ESTIMATE = 2.0**52  # rows in all cells together: sums of steps then stay within 64 bits
_LEAST = 2.0**-10
_LARGEST_WHOLE = 1 << 20  # a deviation above which a grid of single rows is as good as a coarser one, and far slower
_PRECISION = 12  # bits of the smallest factor of a contrast
_LARGEST_SCALE = 1 << 40
_REACH = 12  # whole numbers beyond it have a chance below 1e-26 where sigma is below 1


def concentrated_budget(epsilon: check.Number, delta: check.Number) -> Fraction:
    """Returns the largest rho that implies (epsilon, delta)-DP, rounded down.

    Raises:
        InvalidParameter: if there is none.

    >>> f"{float(concentrated_budget(1, 1e-9)):.6f}"
    '0.014973'
    """
    wanted, chance = check.positive(epsilon=epsilon), check.probability(delta=delta)
    rho = Fraction(rho_for(float_below(wanted), float_below(chance)))
    if rho <= 0:
        raise InvalidParameter("epsilon", epsilon, "to be met by some amount of noise", "Raise epsilon or delta.")
    return rho


def noise_event(rho: Fraction) -> Event:
    """Returns the event of one marginal at a price, which no sensitivity changes: the noise grows with it.

    >>> noise_event(Fraction(1, 2))
    Gaussian(noise_multiplier=Fraction(1, 1))
    """
    return Gaussian.for_rho(rho=rho, sensitivity=1, grid=1).event


def choice_event(rho: Fraction) -> Event:
    """Returns the event of one choice at a price.

    >>> choice_event(Fraction(1, 8))
    BoundedRange(epsilon=Fraction(1, 1))
    """
    return Exponential(epsilon=root_below(8 * rho), sensitivity=1).event


@dataclass(frozen=True, slots=True)
class Charge:
    """Holds one entry of a log: what was read, what was paid for it, and the release as accounting knows it."""

    about: tuple[str, ...]
    rho: Fraction
    event: Event


class MeasurementLog:
    """Releases from private rows within a budget of zCDP.

    Formal guarantee: all that is returned from one log, chosen adaptively, is rho-zCDP for the units of privacy, rho
    the budget. Each release is charged before anything is drawn for it, by an exact rational, and refused if the sum
    would exceed the budget. What a release costs by accounting is never more than its charge.

    Args:
        rho: the budget.
        neighbours: the relation.
        rows_per_unit: the most rows that one unit has in the rows to be measured.
        bits: the source of randomness; None is the secure one.

    Attributes:
        charges: in the order of releases.
        marginals: those that were measured.

    >>> rows = CodedRows({"a": 2}, np.array([[0], [1], [1]]))
    >>> log = MeasurementLog(rho="0.1")
    >>> round(log.marginal(rows, ("a",), rho="0.1").sigma, 3)
    2.255
    >>> log.remaining
    Fraction(0, 1)
    >>> log.marginal(rows, ("a",), rho="0.1")
    Traceback (most recent call last):
    discreet.errors.InsufficientBudget: The charge needs rho=0.1. Remaining: rho=0. Nothing was drawn.
    """

    def __init__(
        self,
        *,
        rho: check.Number,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        rows_per_unit: int = 1,
        bits: Bits | None = None,
    ) -> None:
        self.budget = check.positive(rho=rho)
        self.neighbours = Neighbours(neighbours)
        self.rows_per_unit = check.integer(rows_per_unit=rows_per_unit, at_least=1, at_most=MOST_ROWS_PER_UNIT)
        self.charges: list[Charge] = []
        self.marginals: list[NoisyMarginal] = []
        self._bits = source_of(bits)

    @property
    def private(self) -> bool:
        """Returns whether the noise is secure: False if it was seeded."""
        return self._bits.private

    @property
    def spent(self) -> Fraction:
        """Returns the sum of all charges."""
        return sum((charge.rho for charge in self.charges), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """Returns the remaining budget."""
        return self.budget - self.spent

    @property
    def event(self) -> Composed:
        """Returns all that was released, in order."""
        return Composed([charge.event for charge in self.charges])

    @property
    def l1_sensitivity(self) -> int:
        """Returns how far one unit moves a marginal in the L1 norm."""
        return self.rows_per_unit * (2 if self.neighbours is Neighbours.REPLACE else 1)

    @property
    def l2_sensitivity(self) -> Fraction:
        """Returns how far one unit moves a marginal in the L2 norm, rounded up where it is irrational."""
        return root_above(Fraction(self.rows_per_unit * self.l1_sensitivity))

    def sigma(self, rho: check.Number) -> float:
        """Returns the deviation of the noise of a marginal that is measured at this price."""
        return _deviation(self._noise(check.positive(rho=rho)))

    def marginal(self, rows: CodedRows, attributes: Sequence[str], *, rho: check.Number) -> NoisyMarginal:
        """Measures how many rows each cell of some columns has: exact counts plus normal noise, on a public grid.

        Args:
            rows: the private rows.
            attributes: the columns; none for the number of rows.
            rho: what this release may cost.

        Raises:
            InsufficientBudget: if more is asked for than is left; nothing is drawn then.
            InvalidParameter: if a column is unknown, or there are too many cells.
        """
        names, price = tuple(attributes), check.positive(rho=rho)
        checked_shape(names, rows.sizes)
        mechanism = self._noise(price)
        self._charge(names, price, mechanism.event)
        noisy = np.asarray(mechanism.release(rows.counts(names), bits=self._bits), dtype=np.float64)
        self.marginals.append(NoisyMarginal(names, noisy, _deviation(mechanism)))
        return self.marginals[-1]

    def residuals(
        self, rows: CodedRows, pairs: Mapping[tuple[str, str], int], *, rho: check.Number
    ) -> list[NoisyMarginal]:
        """Measures what pairs of columns add to the columns themselves, all pairs at once, in one release.

        Args:
            rows: the private rows.
            pairs: at least one, of columns with at least 2 values, and a weight of each: its part of the price.
            rho: what this release may cost.

        Returns:
            A residual marginal of each pair.

        Raises:
            InsufficientBudget: if more is asked for than is left; nothing is drawn then.
            InvalidParameter: if a column is unknown or has one value only, or there are too many cells.
        """
        price = check.positive(rho=rho)
        squares = self._squares(rows, pairs)
        scale = _scale(rows, squares)
        factors = {
            pair: contrast_factors(checked_shape(pair, rows.sizes), square * scale**2)
            for pair, square in squares.items()
        }
        mechanism = Gaussian.for_rho(rho=price, sensitivity=scale * self.rows_per_unit)
        self._charge(("pairs",), price, mechanism.event)
        exact = [scaled_contrasts(rows.counts(pair), factor).reshape(-1) for pair, factor in factors.items()]
        noisy = np.asarray(mechanism.release(np.concatenate(exact), bits=self._bits), dtype=np.float64)
        found, start = [], 0
        for pair, factor in factors.items():
            part = noisy[start : start + factor.size].reshape(factor.shape)
            sigma = float(mechanism.sigma) / (scale * math.sqrt(squares[pair]))
            found.append(NoisyMarginal(pair, residual_of(part, factor), max(_LEAST, sigma), residual=True))
            start += factor.size
        self.marginals.extend(found)
        return found

    def _squares(self, rows: CodedRows, pairs: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], Fraction]:
        """Returns the squares of what contrasts of length 1 are multiplied by, so that all move by at most 1 a row."""
        whole = sum(check.integer(weight=weight, at_least=1) for weight in pairs.values())
        found = {}
        for pair, weight in pairs.items():
            first, second = checked_shape(pair, rows.sizes)
            if min(first, second) < 2:
                raise InvalidParameter("pairs", pair, "to have at least 2 values in each column")
            found[pair] = Fraction(weight, whole) / residual_move((first, second), self.neighbours)
        return found

    def choose(
        self, scores: Sequence[int], *, rho: check.Number, weight: int = 1, about: Sequence[str] = ("choice",)
    ) -> int:
        """Chooses the index of a high score.

        Args:
            scores: whole numbers of steps, STEPS times a distance in rows, as `l1_error` gives them, plus a constant.
            rho: what this choice may cost.
            weight: the largest number that any of the distances was multiplied by.
            about: what is chosen, for the log.

        Raises:
            InsufficientBudget: if more is asked for than is left; nothing is drawn then.
        """
        price, most = check.positive(rho=rho), check.integer(weight=weight, at_least=1)
        mechanism = Exponential(epsilon=root_below(8 * price), sensitivity=STEPS * most * self.l1_sensitivity)
        clipped = [min(max(int(score), -_LARGEST_SCORE), _LARGEST_SCORE) for score in scores]
        self._charge(tuple(about), price, mechanism.event)
        return int(mechanism.choose(np.array(clipped, dtype=np.int64), bits=self._bits))

    def _noise(self, rho: Fraction) -> Gaussian:
        whole = Gaussian.for_rho(rho=rho, sensitivity=self.l2_sensitivity, grid=1)
        if whole.sigma <= _LARGEST_WHOLE:
            return whole
        return Gaussian.for_rho(rho=rho, sensitivity=self.l2_sensitivity)

    def _charge(self, about: tuple[str, ...], rho: Fraction, event: Event) -> None:
        """Charges before anything is drawn, without a notice: what a release is about was drawn by earlier ones."""
        if zcdp(event).rho > rho:
            raise InternalError("A release costs more than its charge.")
        if rho > self.remaining:
            raise InsufficientBudget(ZCDP(rho), ZCDP(self.remaining), "Nothing was drawn.")
        self.charges.append(Charge(about, rho, event))


def _scale(rows: CodedRows, squares: Mapping[tuple[str, str], Fraction]) -> int:
    """Returns a power of two at which the smallest factor of a contrast still has some bits: public facts decide."""
    least = min(float(square) ** 0.5 / math.prod(rows.sizes[name] for name in pair) for pair, square in squares.items())
    return min(_LARGEST_SCALE, 1 << max(_PRECISION, _PRECISION + math.ceil(-math.log2(least))))


def _deviation(mechanism: Gaussian) -> float:
    """Returns the deviation of normal noise rounded to whole numbers, at least 2^-10: models need one above zero.

    The square of a whole number is the sum of the odd numbers up to it, so that the variance is the sum over k >= 1 of
    (2 k - 1) P(|noise| >= k - 1/2). From sigma = 1 on, it is sigma^2 + 1/12 to eight digits (Sheppard 1898).
    """
    sigma = float(mechanism.sigma)
    if sigma >= 1:
        return math.sqrt(sigma * sigma + 1 / 12)
    reach = math.sqrt(2) * sigma
    variance = sum((2 * k - 1) * math.erfc((k - 0.5) / reach) for k in range(1, _REACH))
    return max(_LEAST, math.sqrt(variance))


def l1_error(counts: Integers, estimate: Table) -> int:
    """Returns the L1 distance of exact counts and a public estimate, in steps of 1 / STEPS rows.

    Formal guarantee: a whole number, computed in whole numbers, since a sum of floats would move by more than the
    counts did. For counts that differ by D in the L1 norm it differs by at most STEPS D.

    >>> l1_error(np.array([3, 0]), np.array([1.5, 0.25])) / STEPS
    1.75
    """
    most = _LARGEST_ESTIMATE / max(1, estimate.size)
    public = np.rint(np.clip(estimate, 0.0, most) * STEPS).astype(np.int64)
    return int(np.abs(counts * STEPS - public).sum())
