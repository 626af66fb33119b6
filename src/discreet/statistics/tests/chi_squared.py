"""Private chi-squared tests: a noisy table, and a null law that knows of the noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import root_above
from discreet.lazy import special
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits, source_of
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.noise_errors import deviation
from discreet.statistics.tests.results import TestResult

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST = 1_000_000
_HINT = "Pass the public categories, e.g. categories=(['a', 'b'], [0, 1]), or a table of counts without them."


def chi_squared_test(
    x: Any,
    y: Any = None,
    *,
    categories: Any = None,
    null: Any = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    simulations: int = 999,
    bits: Bits | None = None,
) -> TestResult:
    """Tests counts against given chances (goodness of fit), or two attributes for independence.

    Every cell gets noise once. The statistic is the sum of (cell - expected)^2 / (expected + variance of the noise),
    and its law under the null is simulated *with* the noise; the classical critical value would reject far too often.

    Formal guarantee: the event of the noisy table: a unit is in one cell, so adding or removing it moves the table by
    1 in the L1 and L2 norms, replacing it by 2 and sqrt(2). All else is post-processing. For goodness of fit under
    REPLACE the level is exact but for the simulation's own chance; under ADD_REMOVE the number of units, and for
    independence the margins, are taken from the noisy table, and the level is approximate (Gaboardi and others 2016).

    Args:
        x: a category for each unit, or without `categories` a table of counts, of one or two dimensions.
        y: the second attribute.
        categories: the public categories of x, or for two attributes a pair of lists; what is in none counts nowhere.
        null: the chances of the categories, for one attribute; None means all are equal.
        epsilon: with or without `delta`; or `rho` alone.
        delta: for Gaussian noise.
        rho: for Gaussian noise, as zCDP.
        neighbours: the relation to protect; under REPLACE the number of units is public.
        simulations: how many tables the null law is estimated from.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if a parameter is missing or wrong.
        InvalidValue: if the data is no table of whole counts, or the attributes differ in length.

    >>> from discreet.noise import SeededBits
    >>> table = [[120, 80], [60, 140]]
    >>> chi_squared_test(table, epsilon=1, neighbours="replace", bits=SeededBits(1)).p_value
    0.001
    """
    spending, relation = Spending.of(epsilon, delta, rho), Neighbours(neighbours)
    count = check.integer(simulations=simulations, at_least=19, at_most=_MOST)
    source = source_of(bits)
    table, units = _table(x, y, categories)
    chances = None if table.ndim == 2 else _chances(null, table.size)
    if chances is None and null is not None:
        raise InvalidParameter("null", null, "to be left out for two attributes", "The test is about independence.")
    noise = _noise(spending, relation)
    test = _Test(
        noise=noise, shape=table.shape, size=units if relation is Neighbours.REPLACE else None, chances=chances
    )
    released = np.asarray(noise.release(table.ravel(), bits=source), dtype=np.float64)
    found = test.statistic(released)
    simulated = test.simulate_statistic(released, count, source)
    p_value = (1 + int(np.count_nonzero(simulated >= found))) / (count + 1)
    return TestResult(p_value=p_value, statistic=float(found), event=noise.event, private=source.private)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """What is public of a table; `statistic` and `simulate_statistic` are functions of noisy tables only."""

    noise: Laplace | Gaussian
    shape: tuple[int, ...]
    size: int | None
    chances: Floats | None

    def _fit_null(self, tables: Floats) -> tuple[Floats, Floats]:
        """Returns numbers of units and chances of cells under the null, for each noisy table in the last axis."""
        sizes = np.maximum(tables.sum(axis=-1), 1.0) if self.size is None else np.full(tables.shape[:-1], self.size)
        if self.chances is not None:
            return sizes[..., None], np.broadcast_to(self.chances, tables.shape)
        cells = tables.reshape(*tables.shape[:-1], *self.shape)
        margins = [_margin(cells.sum(axis=-1)), _margin(cells.sum(axis=-2))]
        chances = margins[0][..., :, None] * margins[1][..., None, :]
        return sizes[..., None], chances.reshape(tables.shape)

    def statistic(self, tables: Floats) -> Any:
        """Returns squared distances from what is expected, over their variances."""
        sizes, chances = self._fit_null(tables)
        expected = sizes * chances
        return np.sum((tables - expected) ** 2 / (expected + deviation(self.noise) ** 2), axis=-1)

    def simulate_statistic(self, released: Floats, count: int, bits: Bits) -> Any:
        """Returns the statistic of tables drawn under the null that fits the released one, with the same noise."""
        sizes, chances = self._fit_null(released)
        drawn = multinomials(max(1, round(float(sizes[0]))), chances, count, bits)
        return self.statistic(np.asarray(self.noise.release(drawn, bits=bits), dtype=np.float64))


def multinomials(size: int, chances: Floats, count: int, bits: Bits) -> Integers:
    """Returns tables of `size` units, a row each: cell after cell by inverting the binomial law of the rest."""
    left, mass = np.full(count, size, dtype=np.float64), 1.0
    tables = np.zeros((count, chances.size))
    for cell, chance in enumerate(chances[:-1]):
        share = min(max(chance / mass, 0.0), 1.0) if mass > 0 else 0.0
        tables[:, cell] = _binomials(left, share, uniforms(count, bits=bits))
        left -= tables[:, cell]
        mass -= chance
    tables[:, -1] = left
    return tables.astype(np.int64)


def _binomials(sizes: Floats, chance: float, levels: Floats) -> Floats:
    if chance in (0.0, 1.0):
        return sizes * chance
    with np.errstate(all="ignore"):
        found = np.ceil(special.bdtrik(levels, np.maximum(sizes, 1), chance))
    return np.where(sizes > 0, np.clip(np.nan_to_num(found, nan=0.0), 0, sizes), 0.0)


def _margin(sums: Floats) -> Floats:
    """Returns chances from noisy sums: none is below half a unit's."""
    kept = np.maximum(sums, 0.5)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def _noise(spending: Spending, relation: Neighbours) -> Laplace | Gaussian:
    twice = relation is Neighbours.REPLACE
    if spending.epsilon is not None:
        return Laplace(epsilon=spending.epsilon, sensitivity=2 if twice else 1)
    move = root_above(check.positive(squared=2 if twice else 1))
    return Gaussian.with_multiplier(noise_multiplier=spending.noise_multiplier, sensitivity=move)


def _chances(null: Any, size: int) -> Floats:
    if null is None:
        return np.full(size, 1 / size)
    given = np.asarray(null, dtype=np.float64)
    if given.shape != (size,) or not (given > 0).all() or abs(given.sum() - 1) > 1e-6:
        raise InvalidParameter("null", null, f"to be {size} chances that add up to 1", "Leave out impossible cells.")
    return np.asarray(given / given.sum())


def _table(x: Any, y: Any, categories: Any) -> tuple[Integers, int]:
    """Counts, and the number of units."""
    if categories is None:
        if y is not None:
            raise InvalidParameter("categories", categories, "to be given for two attributes", _HINT)
        return _counts(np.asarray(x))
    lists = [categories] if y is None else categories
    if not isinstance(lists, tuple | list) or len(lists) != (1 if y is None else 2):
        raise InvalidParameter("categories", categories, "to be a list, or a pair of lists for x and y", _HINT)
    finders = [_finder(known) for known in lists]
    places = [find(values) for find, values in zip(finders, [x] if y is None else [x, y], strict=True)]
    if len({place.size for place in places}) > 1:
        raise InvalidValue("to have both attributes of each unit", "Pass x and y of the same length.")
    known = np.logical_and.reduce([place >= 0 for place in places])
    table = np.zeros([len(known_list) for known_list in lists], dtype=np.int64)
    np.add.at(table, tuple(place[known] for place in places), 1)
    return table, places[0].size


def _counts(table: NDArray[Any]) -> tuple[Integers, int]:
    if table.ndim not in (1, 2) or min(table.shape) < 2 or table.dtype.kind not in "iu":
        raise InvalidValue("to be a table of whole counts with at least two cells each way", _HINT)
    return table.astype(np.int64), int(table.sum())


def _finder(known: Any) -> Callable[[Any], Integers]:
    """Returns a function from values to their places among public categories, -1 for none of them."""
    if not isinstance(known, tuple | list | np.ndarray) or len(set(known)) != len(known) or len(known) < 2:
        raise InvalidParameter("categories", known, "to be at least two different values", _HINT)
    places = {value: place for place, value in enumerate(known)}

    def find(values: Any) -> Integers:
        given = np.asarray(values)
        if given.ndim != 1:
            raise InvalidValue("to be a vector of categories", "Pass one category for each unit.")
        return np.array([places.get(value, -1) for value in given.tolist()], dtype=np.int64)

    return find
