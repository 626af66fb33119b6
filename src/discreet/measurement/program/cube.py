"""Tables of one set of rows by several sets of public keys, released so that they agree: totals are sums of parts.

Notation: A, B, C are sets of keys, n_A the number of groups by A, F all keys together, x the exact table by F.

*What is released.* The table by A is a sum of groups of x, plus independent discrete noise of a scale of its own; a
table may have none of the budget, and is then not released. Every released number is an integer that met integer noise,
and is paid as such; all that follows here is post-processing.

*Least squares.* Of all tables by F, the one is taken that is nearest to what was released, in units of its variance.
The space of tables is the sum of orthogonal parts, one for each set B: what depends on the keys in B and averages out
over each of them. A table by A, whose noise has the precision t_A, estimates the part of B inside A with precision
t_A / n_(A - B), as many cells being added up; so each part is the average of what the tables say of it, weighted with
these, and the variance of a cell by C is

    sum over B inside C of  prod_(i in B) (n_i - 1) / n_i  /  n_(C - B)^2  /  s_B,      s_B = sum_A t_A / n_(A - B)

(Xiao, He, Zhang, Kifer 2023, whose optimal noise has these covariances for any s; those that come from no weights
t >= 0 are left aside). It is convex in t, and so is the sum of the logarithms of all tables' variances, which is made
least: 1 / s_B is log-convex, and so are sums of such.

*Exactly.* Weights are whole numbers of a 2^16th that add up to one, so that nothing is biased. Values of cells by F are
rounded to fine fractions with a power of two below, and those of every table are added up from them: totals are sums of
their parts, in doubles as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, product

import numpy as np

from discreet.dataclass import dataclass
from discreet.measurement.intervals.noise import Noise, NoiseDraws
from discreet.measurement.releases.additive import Integers
from discreet.mechanisms.mechanism import Law

Keys = tuple[int, ...]
"""The places of keys, in order."""

MOST_CELLS = 200_000
"""By all keys, times the number of tables: what is worked out in a few seconds."""

PARTS = 1024
"""Of the budget: a table has so many of them, or none."""

_WHOLE = 1 << 16
_FINE = 64  # steps in a standard deviation, of what is added up from all cells
_ROUNDS = 200
_MIXES = 32
_SPARE = 1e-3  # what rounding of weights may cost


@dataclass(frozen=True)
class Cube:
    """The shape of all tables.

    Args:
        sizes: how many values each key has.
        sets: the keys of each table; none twice.
    """

    sizes: tuple[int, ...]
    sets: tuple[Keys, ...]

    def count(self, keys: Sequence[int]) -> int:
        """Returns how many groups there are by some keys."""
        return math.prod(self.sizes[key] for key in keys)

    @property
    def cells(self) -> int:
        """Returns how many groups there are by all keys."""
        return self.count(range(len(self.sizes)))

    @property
    def is_small(self) -> bool:
        """Returns whether it can be worked out at once."""
        return self.cells * len(self.sets) <= MOST_CELLS and all(size > 0 for size in self.sizes)

    @cached_property
    def parts(self) -> tuple[Keys, ...]:
        """Returns all sets inside some table's."""
        inside = (part for one in self.sets for size in range(len(one) + 1) for part in combinations(one, size))
        return tuple(dict.fromkeys(inside))

    # ------------------------------------------------------------------------------------------------------- the budget

    def variances(self, precisions: Sequence[float]) -> list[float]:
        """Returns the variance of a cell of each table, given the precision of each table's own noise."""
        told = self._part_precisions(precisions)
        return [_add_up(self._weight(part, one) / told[part] for part in _inside(one)) for one in self.sets]

    def _part_precisions(self, precisions: Sequence[float]) -> dict[Keys, float]:
        """Returns the precision of each part."""
        told = dict.fromkeys(self.parts, 0.0)
        for one, precision in zip(self.sets, precisions, strict=True):
            for part in _inside(one):
                told[part] += precision / self.count(_without(one, part))
        return told

    def _weight(self, part: Keys, one: Keys) -> float:
        """Returns the variance of a cell for each unit of variance of a part."""
        smaller = math.prod(self.sizes[key] - 1 for key in part)
        return smaller / (self.count(part) * self.count(_without(one, part)) ** 2)

    def shares(self, law: Law, spreads: Sequence[float]) -> tuple[Fraction, ...]:
        """Returns the part of the budget that each table gets, for the least product of all tables' variances.

        With Gaussian noise no table is noisier than it would be alone, with an equal share: where the best shares
        would make one so, they are moved towards equal ones, at which all of them gain by the others.

        Args:
            law: of the noise; its precision grows with the share, of Laplace noise with its square.
            spreads: the scale of each table's noise, if it had the whole budget.

        Formal guarantee: the parts add up to one. Sums, products, quotients and square roots of doubles are the same on
        every machine, and nothing else decides, so that a stored release has the shares it was made with.
        """
        return _shares(self, law, tuple(spread / spreads[0] for spread in spreads))

    def _shares(self, law: Law, spreads: Sequence[float]) -> tuple[Fraction, ...]:
        power = 2 if law == "laplace" else 1
        largest = [not any(set(one) < set(other) for other in self.sets) for one in self.sets]
        best = self.best_shares(law, spreads)
        if law == "laplace":
            return _whole_parts(best, largest)
        equal = 1 / len(best)
        alone = [1 / precision for precision in _precisions([equal] * len(best), power, spreads)]
        for part in range(_MIXES):
            mixed = [(share * (_MIXES - part) + equal * part) / _MIXES for share in best]
            found = _whole_parts(mixed, largest)
            noisy = self.variances(_precisions([float(share) for share in found], power, spreads))
            if all(variance <= usual * (1 - _SPARE) for variance, usual in zip(noisy, alone, strict=True)):
                return found
        return _whole_parts([equal] * len(best), largest)

    def best_shares(self, law: Law, spreads: Sequence[float]) -> list[float]:
        """Returns the shares with the least product of all tables' variances."""
        power = 2 if law == "laplace" else 1
        largest = [not any(set(one) < set(other) for other in self.sets) for one in self.sets]
        starts = [[1.0] * len(self.sets), [1.0 if is_largest else 1e-6 for is_largest in largest]]
        found = [self._improve_shares(start, power, spreads) for start in starts]
        return min(found, key=lambda shares: self._badness(shares, power, spreads))

    def _badness(self, shares: Sequence[float], power: int, spreads: Sequence[float]) -> tuple[int, float]:
        """Returns the product of all variances as a power of two and a factor: doubles overflow with many variances."""
        exponent, product_of_all = 0, 1.0
        for variance in self.variances(_precisions(shares, power, spreads)):
            product_of_all, more = math.frexp(product_of_all * variance)
            exponent += more
        return exponent, product_of_all

    def _improve_shares(self, start: Sequence[float], power: int, spreads: Sequence[float]) -> list[float]:
        """Returns shares that are moved towards where more of them helps most, as in the design of experiments.

        At the optimum a share is proportional to itself times what more of it would save; the root of that step never
        oversteps it. The best that was met is taken.
        """
        shares = _normal(start)
        best, least = shares, self._badness(shares, power, spreads)
        for _ in range(_ROUNDS):
            precisions = _precisions(shares, power, spreads)
            saved = [gain * precision for gain, precision in zip(self._gains(precisions), precisions, strict=True)]
            shares = _normal([math.sqrt(share * each) for share, each in zip(shares, saved, strict=True)])
            badness = self._badness(shares, power, spreads)
            if badness < least:
                best, least = shares, badness
        return best

    def _gains(self, precisions: Sequence[float]) -> list[float]:
        """Returns how much more precision of each table would lower the sum of the logarithms of variances."""
        told, variances = self._part_precisions(precisions), self.variances(precisions)
        slopes = dict.fromkeys(self.parts, 0.0)
        for one, variance in zip(self.sets, variances, strict=True):
            for part in _inside(one):
                slopes[part] += self._weight(part, one) / (told[part] * told[part] * variance)
        return [_add_up(slopes[part] / self.count(_without(one, part)) for part in _inside(one)) for one in self.sets]


@dataclass(frozen=True)
class FittedTables:
    """Tables with noise, and the tables nearest to them that agree with each other.

    Args:
        cube: their shape.
        law: of the noise.
        scales: of each table the scale for each statistic; empty if it was not released.
        rounded: which statistics of a cell were rounded before anything was added up.
    """

    cube: Cube
    law: Law
    scales: tuple[tuple[Fraction, ...], ...]
    rounded: tuple[bool, ...]

    @property
    def is_sum(self) -> bool:
        """Returns whether one table alone was released: all others are sums of its groups."""
        return sum(map(bool, self.scales)) == 1

    @cached_property
    def weights(self) -> dict[Keys, list[tuple[int, int]]]:
        """Returns for each part the tables that contain it, by place, each with its weight as a number of 2^16ths."""
        found: dict[Keys, list[tuple[int, int]]] = {part: [] for part in self.cube.parts}
        told: dict[Keys, list[tuple[int, Fraction]]] = {part: [] for part in self.cube.parts}
        for place, (one, scales) in enumerate(zip(self.cube.sets, self.scales, strict=True)):
            for part in _inside(one) if scales else ():
                told[part].append((place, 1 / (scales[0] ** 2 * self.cube.count(_without(one, part)))))
        for part, tables in told.items():
            whole = sum((precision for _, precision in tables), Fraction(0))
            shares = [(place, math.floor(_WHOLE * precision / whole)) for place, precision in tables]
            best = max(range(len(shares)), key=lambda i: tables[i][1])
            rest = _WHOLE - sum(share for _, share in shares)
            shares[best] = shares[best][0], shares[best][1] + rest
            found[part] = [share for share in shares if share[1]]
        return found

    def fit_tables(self, noisy: Sequence[Integers]) -> tuple[Integers, list[Integers]]:
        """Returns the statistics by all keys, and tables that agree with them in the order of the sets, exactly.

        Args:
            noisy: of each table the statistics, a row for each group; of one that was not released, anything.
        """
        cube, width = self.cube, len(self.rounded)
        shaped = [
            table.astype(object).reshape([*(cube.sizes[key] for key in one), width])
            for one, table in zip(cube.sets, noisy, strict=True)
        ]
        finest = np.zeros([*cube.sizes, width], dtype=object)
        for part in cube.parts:
            told = self._part(part, shaped)
            axes = [size if key in part else 1 for key, size in enumerate(cube.sizes)]
            finest = finest + told.reshape([*axes, width])
        bottom = _WHOLE * cube.cells
        return _over(finest, bottom), [_over(self._sum_cells(finest, one), bottom) for one in cube.sets]

    def _sum_cells(self, cells: Integers, one: Keys) -> Integers:
        axes = tuple(axis for axis in range(len(self.cube.sizes)) if axis not in one)
        return np.asarray(cells.sum(axis=axes) if axes else cells, dtype=object)

    def added_up(self, values: Sequence[Fraction], deviation: float) -> list[list[Fraction]]:
        """Returns the values of every table as sums of those by all keys, which are rounded to fine steps first.

        Args:
            values: of an aggregate that is a sum, by all keys.
            deviation: the smallest standard deviation of its noise in any table; steps are a small part of it.
        """
        _, exponent = math.frexp(deviation / (_FINE * self.cube.cells))
        step = Fraction(2) ** (exponent - 1)
        cells = np.empty(len(values), dtype=object)
        cells[:] = [round(value / step) for value in values]
        shaped = cells.reshape(self.cube.sizes)
        return [[int(count) * step for count in self._sum_cells(shaped, one).ravel()] for one in self.cube.sets]

    def _part(self, part: Keys, shaped: Sequence[Integers]) -> Integers:
        """Returns the estimate of a part from all tables, times 2^16 and the number of its cells."""
        sums = []
        for place, weight in self.weights[part]:
            one = self.cube.sets[place]
            axes = tuple(axis for axis, key in enumerate(one) if key not in part)
            sums.append(weight * (shaped[place].sum(axis=axes) if axes else shaped[place]))
        told = sum(sums[1:], start=sums[0])
        for axis, key in enumerate(part):
            told = told * self.cube.sizes[key] - told.sum(axis=axis, keepdims=True)
        return np.asarray(told, dtype=object)

    def noise(self, place: int) -> Noise:
        """Returns the noise of a cell of a table: that of all tables, as least squares weigh it."""
        one = self.cube.sets[place]
        draws = [draw for other in range(len(self.scales)) for draw in self._draws(one, other)]
        joined = self.cube.cells // self.cube.count(one)
        moved = tuple(Fraction(joined if was_rounded else 0, 2) for was_rounded in self.rounded)
        usual = next(scales for scales in self.scales if scales)
        return Noise(self.law, usual, self.rounded, draws=tuple(draws), moved=moved)

    def _draws(self, one: Keys, other: int) -> list[NoiseDraws]:
        """Returns what the noise of a table adds to a cell of another: alike where the same keys of the two agree."""
        cube, keys, scales = self.cube, self.cube.sets[other], self.scales[other]
        if not scales:
            return []
        shared = tuple(key for key in keys if key in one)
        outside = cube.count([key for key in keys if key not in one])
        draws = []
        for agree in product((True, False), repeat=len(shared)):
            same = {key for key, yes in zip(shared, agree, strict=True) if yes}
            count = outside * math.prod(cube.sizes[key] - 1 for key in shared if key not in same)
            weight = sum((self._draw_weight(part, one, other, same) for part in _inside(shared)), Fraction(0))
            if count and weight:
                draws.append(NoiseDraws(weight=weight, scales=scales, count=count))
        return draws

    def _draw_weight(self, part: Keys, one: Keys, other: int, same: set[int]) -> Fraction:
        share = Fraction(dict(self.weights[part]).get(other, 0), _WHOLE)
        signs = (Fraction(self.cube.sizes[key] - 1 if key in same else -1, self.cube.sizes[key]) for key in part)
        return share / self.cube.count(_without(one, part)) * math.prod(signs, start=Fraction(1))


@lru_cache(maxsize=256)
def _shares(cube: Cube, law: Law, spreads: tuple[float, ...]) -> tuple[Fraction, ...]:
    return cube._shares(law, spreads)


@lru_cache(maxsize=1024)
def _inside(one: Keys) -> tuple[Keys, ...]:
    return tuple(part for size in range(len(one) + 1) for part in combinations(one, size))


@lru_cache(maxsize=4096)
def _without(one: Keys, part: Keys) -> Keys:
    return tuple(key for key in one if key not in part)


def _over(numerators: Integers, bottom: int) -> Integers:
    """Divides whole numbers, whose last axis are statistics, by a common one."""
    flat = numerators.reshape(-1, numerators.shape[-1])
    made = np.empty(flat.shape, dtype=object)
    for place, number in np.ndenumerate(flat):
        made[place] = Fraction(int(number), bottom)
    return made


def _precisions(shares: Sequence[float], power: int, spreads: Sequence[float]) -> list[float]:
    pairs = zip(shares, spreads, strict=True)
    return [share * (share if power > 1 else 1.0) / (spread * spread) for share, spread in pairs]


def _add_up(numbers: Iterable[float]) -> float:
    """Returns the sum, each addition rounded; that of Python differs from one version to the next."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _normal(shares: Sequence[float]) -> list[float]:
    whole = _add_up(shares)
    return [max(share / whole, 1e-12) for share in shares]


def _whole_parts(shares: Sequence[float], needed: Sequence[bool]) -> tuple[Fraction, ...]:
    """Returns shares as whole parts; those needed, because only they show all their groups, have one at least."""
    parts = [max(round(share * PARTS), int(is_needed)) for share, is_needed in zip(shares, needed, strict=True)]
    parts[parts.index(max(parts))] += PARTS - sum(parts)
    return tuple(Fraction(part, PARTS) for part in parts)
