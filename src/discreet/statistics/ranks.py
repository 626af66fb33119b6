"""Points near given ranks of a column: one by itself, or several from one tree."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NoReturn

from discreet.errors import InternalError
from discreet.mechanisms import Quantile
from discreet.mechanisms.base import Law
from discreet.mechanisms.quantile_draw import divide
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import OneValueEach
from discreet.mechanisms.value_counts import Histogram
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Concentrated, Event, Pure
from discreet.statistics.column import Column
from discreet.statistics.spending import Spending

_LONGEST = 1 << 20  # of the denominator of a share within a part


def one_point(column: Column, share: Fraction, spending: Spending, bits: Bits) -> tuple[int, Event]:
    """Draws the step of a private quantile of a column; returns it with its price."""
    mechanism = choice(share, column.width, spending, column.neighbours)
    return int(mechanism.release(column.steps, bits=bits)), mechanism.event


def choice(share: Fraction, last: int, spending: Spending, neighbours: Neighbours) -> Quantile:
    """Returns the draw of a quantile among the whole numbers from 0 to `last`, for all of a budget."""
    return Quantile(
        epsilon=spending.range_epsilon, quantile=share, bounds=(0, max(last, 1)), grid=1, neighbours=neighbours
    )


def tree_of(shares: Sequence[Fraction], last: int, spending: Spending, neighbours: Neighbours) -> QuantileTree | None:
    """Returns how several quantiles are drawn together, for all of a budget; None if each does better by itself."""
    budget: tuple[Law, Fraction] = "gaussian", spending.rho
    if spending.is_pure:
        budget = "laplace", spending.pure_epsilon
    return QuantileTree.of(None, shares, last, OneValueEach(neighbours), budget, longest=_LONGEST)


def many_points(column: Column, shares: Sequence[Fraction], spending: Spending, bits: Bits) -> tuple[list[int], Event]:
    """Draws the steps of several private quantiles, given in ascending order; returns them with their price.

    They are drawn together from one tree, each in the part of the values that those before it leave (`QuantileTree`),
    or each by itself for an equal part of the budget, if that errs less; then they are put in order.

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
