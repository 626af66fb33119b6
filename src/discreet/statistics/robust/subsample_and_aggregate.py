"""Subsample and aggregate: any estimator becomes private by being asked about many small random parts of the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Quantile
from discreet.noise import Bits, source_of, uniform_below
from discreet.privacy import Estimate, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.noise_errors import half_width

MOST_BLOCKS = 10**6
_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)


def subsample_and_aggregate(
    x: Any,
    estimator: Callable[[Any], Any],
    *,
    blocks: int,
    bounds: Any = None,
    epsilon: Number | None = None,
    default: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """Releases the median of what an estimator says about each of many random blocks of units.

    The interval covers the median of the law of what the estimator says about a block, which is the population's value
    if the estimator is as often too high as too low there; the bias of small blocks is not in it. It consists of two
    further private quantiles, as many ranks off the middle as sampling (normal) and the choice (about Laplace with
    scale 2 / epsilon, in ranks) make likely together.

    Args:
        x: units: a vector, a matrix with a row for each, or a list of anything.
        estimator: called with the units of a block, as an array like `x` or as a list; returns a number. Whatever
            else it does (prints, files, time, shared variables) is not protected: it must be trusted with the data.
        blocks: how many there are, public; about as many as the square root of the number of units, and at least 30.
        bounds: public limits (low, high) of what the estimator returns; anything else is clipped.
        epsilon: of everything that is released.
        default: public, what an empty or failed block counts as; None is the middle of the bounds.
        neighbours: the relation to protect; both cost the same.
        confidence: the probability that the interval covers.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: outside these domains, before anything is read.

    Formal guarantee: epsilon-DP under ADD_REMOVE and REPLACE. Units go to blocks by independent fair draws, so that
    neighbours can be given blocks that differ in one unit of one block; what a failed, empty or NaN block counts as is
    public. One of `blocks` values is then *replaced*, never added, under both relations, and the quantiles are
    calibrated for that (Nissim, Raskhodnikova, Smith 2007; Smith 2011).

    >>> from discreet.noise import SeededBits
    >>> found = subsample_and_aggregate(
    ...     np.arange(4000.0), np.median, blocks=200, bounds=(0, 5000), epsilon=2, bits=SeededBits(1)
    ... )
    >>> bool(found.low < 2000 < found.high)
    True
    """
    low, high = check.limits(bounds=bounds)
    Neighbours(neighbours)
    constant = (low + high) / 2 if default is None else check.rational(default=default)
    if not low <= constant <= high:
        raise InvalidParameter("default", default, "to be within the bounds", "A failed block counts as this value.")
    if not callable(estimator):
        raise InvalidParameter("estimator", estimator, "to be callable", "Pass a function of an array, e.g. np.median.")
    chance = check.probability(confidence=confidence)
    count = check.integer(blocks=blocks, at_least=1, at_most=MOST_BLOCKS)
    plan = BlockPlan.of(Spending.of(epsilon).pure_epsilon, count, (low, high), 1 - chance)
    source = source_of(bits)
    values = block_values(_units(x), estimator, count, float(constant), source)
    return plan.estimate(np.clip(values, float(low), float(high)), chance, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """The quantiles of block values that are released: the median, and two ends if there are blocks enough."""

    middle: Quantile
    ends: tuple[Quantile, Quantile] | None

    @classmethod
    def of(cls, epsilon: Fraction, blocks: int, bounds: tuple[Fraction, Fraction], outside: Fraction) -> BlockPlan:
        """Plans half of epsilon for the median and a quarter for each end; all for it if ends would be the bounds."""

        def quantile(share: Fraction, at: Fraction) -> Quantile:
            return Quantile(epsilon=epsilon * share, quantile=at, bounds=bounds, neighbours=Neighbours.REPLACE)

        ranks = half_width(1 - outside, deviation=blocks**0.5 / 2, scales=[float(2 / (epsilon * _QUARTER))])
        off = Fraction(ranks / blocks).limit_denominator(10**4)
        if off >= _HALF:
            return cls(middle=quantile(Fraction(1), _HALF), ends=None)
        ends = quantile(_QUARTER, _HALF - off), quantile(_QUARTER, _HALF + off)
        return cls(middle=quantile(_HALF, _HALF), ends=ends)

    @property
    def event(self) -> Event:
        """Returns the event of all releases."""
        return events.Composed([part.event for part in (self.middle, *(self.ends or ()))])

    def estimate(self, values: NDArray[np.float64], confidence: Fraction, bits: Bits) -> Estimate:
        """Releases the releases: the ends are put in order, with the median between them."""
        value = float(self.middle.release(values, bits=bits))
        limits = [float(limit) for limit in self.middle.bounds]
        found = [float(end.release(values, bits=bits)) for end in self.ends] if self.ends else limits
        step = float(self.middle.grid.step)
        low, high = min(value, *found) - step, max(value, *found) + step
        ends = max(low, limits[0]), min(high, limits[1])
        return Estimate(value, *ends, event=self.event, confidence=confidence, private=bits.private)


def block_values(
    units: NDArray[Any] | Sequence[Any], estimator: Callable[[Any], Any], blocks: int, default: float, bits: Bits
) -> NDArray[np.float64]:
    """Returns what the estimator says about each block, the default where it says nothing.

    Each unit is put into a block by a fair draw of its own, so that one unit more or less leaves the others alone.
    """
    places = uniform_below(blocks, len(units), bits=bits)
    order = np.argsort(places, kind="stable")
    parts = np.split(order, np.searchsorted(places[order], np.arange(1, blocks)))
    return np.array([_estimate_block(units, part, estimator, default) for part in parts])


def _estimate_block(units: Any, part: NDArray[np.intp], estimator: Callable[[Any], Any], default: float) -> float:
    """Returns one number, whatever the estimator does: its errors and warnings depend on the data and stay here."""
    if not part.size:
        return default
    block = units[part] if isinstance(units, np.ndarray) else [units[i] for i in part.tolist()]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = float(estimator(block))
    except Exception:  # noqa: BLE001 - that an estimator fails on a block is private
        return default
    return default if np.isnan(value) else value


def _units(x: Any) -> NDArray[Any] | Sequence[Any]:
    """Returns units that can be taken by their place: arrays as they are, else a list."""
    if isinstance(x, np.ndarray) and x.ndim >= 1:
        return x
    if isinstance(x, list | tuple):
        return x
    if hasattr(x, "__array__") and np.ndim(x) >= 1:
        return np.asarray(x)
    raise InvalidValue("to be a list or an array of units", "Pass a row for each unit.")
