"""Private points of a column: near given ranks, alone or several from one tree, and on both sides of a quantile.

Two points on both sides, its *fences*, hold a quantile of the population between them but for a stated risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.lazy import special
from discreet.mechanisms import Gaussian, Laplace, Quantile
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.quantile_draw import divide
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import OneValueEach
from discreet.mechanisms.value_counts import Histogram
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Concentrated, Event, Pure
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import NumericColumn

_LONGEST = 1 << 20  # of the denominator of a share within a part

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
POINT_SHARE, COUNT_SHARE = Fraction(7, 20), Fraction(2, 25)  # of the budget; the fences have the rest
_COUNT_RISK = 0.05  # of all that may go wrong
_NARROWEST = 1 << 14  # blocks next to a point are this part of the range
_WIDER = 1.1  # how much further each next edge is from the point
_SIZES = 9  # numbers of values that are tried between the ends of their interval
_UNTRIED = 0.98  # of the risk is used, for the numbers in between
_CELLS = 400  # in which the law of a number of values is summed up, over 18 deviations
_FINEST = 1 << 20  # the aim of a fence is a multiple of 1 / 2^20


def one_point(column: NumericColumn, share: Fraction, spending: Spending, bits: Bits) -> tuple[int, Event]:
    """Draws the step of a private quantile of a column; returns it with its price."""
    mechanism = choice(share, column.width, spending, column.neighbours)
    return int(mechanism.release(column.steps, bits=bits)), mechanism.event


def choice(share: Fraction, last: int, spending: Spending, neighbours: Neighbours) -> Quantile:
    """Returns the draw of a quantile among the whole numbers from 0 to `last`, for all of a budget."""
    return Quantile(
        epsilon=spending.range_epsilon, quantile=share, bounds=(0, max(last, 1)), grid=1, neighbours=neighbours
    )


def tree_of(shares: Sequence[Fraction], last: int, spending: Spending, neighbours: Neighbours) -> QuantileTree | None:
    """Returns how several quantiles are drawn together, for all of a budget; None if each alone does better."""
    budget: tuple[Law, Fraction] = "gaussian", spending.rho
    if spending.is_pure:
        budget = "laplace", spending.pure_epsilon
    return QuantileTree.of(None, shares, last, OneValueEach(neighbours), budget, longest=_LONGEST)


def many_points(
    column: NumericColumn, shares: Sequence[Fraction], spending: Spending, bits: Bits
) -> tuple[list[int], Event]:
    """Draws the steps of several private quantiles, given in ascending order; returns them with their price.

    They are drawn together from one tree, each in the part of the values that those before it leave (`QuantileTree`),
    or each alone for an equal part of the budget, if that errs less; then they are put in order.

    Formal guarantee: the budget, under the relation of the column.
    """
    if len(shares) == 1:
        point, price = one_point(column, shares[0], spending, bits)
        return [point], price
    event: Event = Pure(spending.pure_epsilon) if spending.is_pure else Concentrated(spending.rho)
    tree = tree_of(shares, column.width, spending, column.neighbours)
    if tree is None:
        part = spending.share(Fraction(1, len(shares)))
        return sorted(one_point(column, share, part, bits)[0] for share in shares), event
    (places,) = divide({(): Histogram.of_values(column.width, column.steps)}, tree, _nothing, bits).values()
    return [place >> tree.grain for place in places], event


def _nothing(_: object) -> NoReturn:
    raise InternalError("All values are known.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fences:
    """Holds what all fences share: how many values there may be, the budget of each draw, and its risk.

    Attributes:
        sizes: numbers of values between the ends of what the count allows.
        spending: of one fence.
        risk: of one end of one interval, but for that of the count.
        neighbours: the relation to protect.
        events: what the count costs.
    """

    sizes: Integers
    spending: Spending
    risk: float
    neighbours: Neighbours
    events: tuple[Event, ...]

    @classmethod
    def of(cls, values: NumericColumn, shares: list[Fraction], spending: Spending, risk: float, bits: Bits) -> Fences:
        """Returns what is known before the first fence is drawn."""
        private = values.neighbours is Neighbours.ADD_REMOVE
        rest = 1 - POINT_SHARE - (COUNT_SHARE if private else 0)
        part = spending.share(rest / (2 * len(shares)))
        if not private:
            sizes, paid = np.array([values.public_size]), ()
            return cls(sizes=sizes, spending=part, risk=risk / 2, neighbours=values.neighbours, events=paid)
        released, far, event = _count(values, spending.share(COUNT_SHARE), _COUNT_RISK * risk, bits)
        ends = max(released - far, 0), max(released + far, 0)
        sizes = np.unique(np.linspace(*ends, _SIZES).astype(np.int64))
        left = (1 - _COUNT_RISK) * risk / 2
        return cls(sizes=sizes, spending=part, risk=left, neighbours=values.neighbours, events=(event,))

    def draw(
        self, values: NumericColumn, share: Fraction, point: int, bits: Bits
    ) -> tuple[tuple[int, Event], tuple[int, Event]]:
        """Draws the lowest and the highest step of the interval of a quantile, each with the price of its draw.

        Fences are edges of blocks of values, narrow next to the released point and wide far from it, and only of those
        on their side of it; all that lies beyond the point counts with the block next to it. Few blocks are missed by
        few ranks. A draw whose aim is out of reach is made, and paid for, all the same: whether it is needed
        is no matter.
        """
        edges = blocks(point, values.width)
        under, over = edges[edges <= point], edges[edges > point]
        below, above = self._aim(share, under.size), self._aim(1 - share, over.size)
        lower = choice(below, under.size - 1, self.spending, self.neighbours)
        upper = choice(1 - above, over.size - 1, self.spending, self.neighbours)
        first = lower.release(np.searchsorted(under, values.steps, side="right") - 1, bits=bits)
        last = upper.release(np.minimum(np.searchsorted(over, values.steps, side="right"), over.size - 1), bits=bits)
        # next to a bound one block is all there is on that side, and a draw has two places at least
        low = int(under[min(int(first), under.size - 1)]) if below > 0 else 0
        high = int(over[min(int(last), over.size - 1)]) - 1 if above > 0 else values.width
        return (low, lower.event), (high, upper.event)

    def _aim(self, share: Fraction, count: int) -> Fraction:
        """Returns the largest share p for which a lower fence among so many blocks keeps its risk; 0 if there is none.

        Let the draw's loss for p be T: at most p n + T values lie below the fence, and P(T > t) <= count e^(-rate t),
        because the blocks cover all values, so that some block has no loss. If the quantile of the population lay below
        the fence, B values, a binomial number of n tries with a chance of at least `share`, would be among them. So the
        risk is at most the mean of min(1, count e^(-rate (B - p n))), which is summed over cells of B from above.
        """
        if share == 0 or int(self.sizes[0]) == 0:
            return Fraction(0)
        laws = [_cells(int(size), float(share)) for size in self.sizes]
        low, high = 0, int(share * _FINEST)
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._risk(Fraction(middle, _FINEST), count, laws) <= _UNTRIED * self.risk
            low, high = (middle, high) if fits else (low, middle - 1)
        return Fraction(low, _FINEST)

    def _risk(self, aim: Fraction, count: int, laws: list[tuple[Floats, Floats]]) -> float:
        rate = float(choice(aim, count - 1, self.spending, self.neighbours).rate * aim.denominator)
        found = 0.0
        for size, (starts, chances) in zip(self.sizes.tolist(), laws, strict=True):
            worst = np.log(count) - rate * (starts - float(aim) * size)
            found = max(found, float(chances @ np.exp(np.minimum(worst, 0.0))))
        return found


def blocks(point: int, width: int) -> Integers:
    """Returns the edges of blocks of steps from 0 to `width`: the distances of edges from a point grow by a tenth each.

    >>> blocks(3, 10).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    """
    first = max(width / _NARROWEST, 1.0)
    count = int(np.log(max(width, 2) / first) / np.log(_WIDER)) + 2
    offsets = np.ceil(first * _WIDER ** np.arange(count)).astype(np.int64)
    near = np.concatenate([point - offsets, [point], point + offsets])
    return np.unique(np.concatenate([[0, width + 1], near[(near > 0) & (near <= width)]]))


def _cells(tries: int, share: float) -> tuple[Floats, Floats]:
    """Returns cells of the law of Bin(tries, share): the least number in each, and its chance.

    What is far below the mean counts as 0, what is far above as the last edge: both on the safe side for anything that
    falls with the number.
    """
    middle, reach = tries * share, 9 * np.sqrt(tries * share * (1 - share)) + 9
    edges = np.unique(np.floor(np.linspace(max(middle - reach, 0), min(middle + reach, tries), _CELLS)))
    until = np.concatenate([[0.0], special.bdtr(edges - 1, tries, share) if share < 1 else np.zeros(edges.size), [1.0]])
    return np.concatenate([[0.0], edges]), np.diff(np.nan_to_num(until, nan=0.0))


def _count(values: NumericColumn, spending: Spending, risk: float, bits: Bits) -> tuple[int, int, Event]:
    """Returns the noisy number of values, the distance it keeps from the true one but for a risk, and its price."""
    mechanism: Laplace | Gaussian
    if spending.is_pure:
        mechanism = Laplace(epsilon=spending.pure_epsilon, sensitivity=1)
    else:
        mechanism = Gaussian.with_multiplier(noise_multiplier=spending.noise_multiplier, sensitivity=1, grid=1)
    far = int(mechanism.error(confidence=1 - Fraction(risk))) + 1
    return int(mechanism.release(values.size, bits=bits)), far, mechanism.event
