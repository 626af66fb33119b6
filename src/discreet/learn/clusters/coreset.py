"""A private coreset: a few weighted points that represent all rows, from a tree of random hyperplanes.

Rows are turned by a random rotation (onto fewer axes if there are many), which no data decides. Private means and
variances of these axes say where rows are; then cells are halved, level by level, while their noisy counts are large;
leaves become points. Wherever rows meet a hyperplane, both are exact integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import root_above
from discreet.learn.noisy_moments import ColumnMoments, release_columns
from discreet.mechanisms import Gaussian
from discreet.noise import Bits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, Integers, exact_product, within

Floats = NDArray[np.float64]

AXES = 8  # rows of more features are projected to so many axes
TURN = 1 << 20  # what 1 is in an integer rotation: sums stay below 2^12 2^20 2^10
_REACH = 2.5  # deviations to either side of the mean that cells divide
_WORTH = 1.0  # times the noise of a mean fits into the spread of a cell that is halved
_DEVIATIONS = 3  # of noise that a count must exceed to be split, or to be a point


@dataclass(frozen=True, slots=True, kw_only=True)
class Coreset:
    """Weighted points on turned axes; all of it is released.

    Attributes:
        points: where they are, in integer units.
        weights: how many rows each represents.
        middle: the mean of all rows.
        spread: the deviation of rows on each axis.
    """

    points: Floats
    weights: Floats
    middle: Floats
    spread: Floats


def rotation(features: int, bits: Bits) -> Integers:
    """Returns a random orthogonal matrix, or the first AXES rows of one, in integers of 1 / TURN.

    No data decides it.
    """
    turned = np.linalg.qr(normals((features, features), bits=bits))[0][: min(features, AXES)]
    return np.asarray(np.round(turned * TURN), dtype=np.int64)


def rotate_rows(rows: Integers, rotated: Integers) -> Integers:
    """Returns rows on the axes of a rotation, again at most RADIUS long.

    Each is a function of itself, by exact products.
    """
    found = exact_product(rows.astype(np.float64), rotated.T.astype(np.float64), RADIUS * TURN * rows.shape[1])
    return within(np.floor(found / TURN + 0.5).astype(np.int64))


def level_sensitivity(neighbours: Neighbours) -> Fraction:
    """Counts of disjoint cells: one row is in one of them, a replaced one may leave one and enter another."""
    return Fraction(1) if neighbours is Neighbours.ADD_REMOVE else root_above(Fraction(2))


def point_sensitivities(width: int, neighbours: Neighbours) -> tuple[Fraction, Fraction]:
    """Returns sensitivities of counts and sums of disjoint groups of rows with ||x|| <= RADIUS that hold together.

    ADD_REMOVE: 1 / count^2 + RADIUS^2 / sums^2 <= 1, divided so that counts and sums bring the same error to means of
    squared length RADIUS^2 / 3: as 1 to sqrt(3 width).

    REPLACE: a row that changes its group moves counts by 2 and sums by up to 2 RADIUS^2, in squares; one that stays
    moves sums by (2 RADIUS)^2. So 2 / count^2 + 2 RADIUS^2 / sums^2 <= 1 and 4 RADIUS^2 / sums^2 <= 1, which count = 2
    and sums = 2 RADIUS exhaust.
    """
    if neighbours is Neighbours.REPLACE:
        return Fraction(2), Fraction(2 * RADIUS)
    part = Fraction(1, 1 + math.isqrt(3 * width))
    return root_above(1 / part), root_above(1 / (1 - part)) * RADIUS


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Noisy counts and sums of disjoint groups of rows."""

    counts: Floats
    sums: Floats
    count_sigma: float
    sum_sigma: float


def release_groups(
    rows: Integers, codes: Integers, groups: int, *, spending: Spending, neighbours: Neighbours, bits: Bits
) -> Groups:
    """Counts and sums of groups for all of a Gaussian budget: the event is Gaussian(spending.noise_multiplier)."""
    counts = np.bincount(codes, minlength=groups).astype(np.int64)
    sums = _sums(rows, codes, groups)
    of_count, of_sums = point_sensitivities(rows.shape[1], neighbours)
    multiplier = spending.noise_multiplier
    counter = Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=of_count)
    adder = Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=of_sums)
    return Groups(
        counts=np.asarray(counter.release(counts, bits=bits), dtype=np.float64),
        sums=np.asarray(adder.release(sums, bits=bits), dtype=np.float64),
        count_sigma=float(counter.sigma),
        sum_sigma=float(adder.sigma),
    )


def _sums(rows: Integers, codes: Integers, groups: int) -> Integers:
    """Returns the sum of the rows of each group, exactly: floats hold sums of up to 2^40 entries of RADIUS."""
    columns = [np.bincount(codes, weights=column, minlength=groups) for column in rows.T]
    return np.asarray(np.stack(columns, axis=1), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Cell:
    """A box: where its rows lie (low, high), and where it is to be halved (start, end)."""

    low: Floats
    high: Floats
    start: Floats
    end: Floats

    def halves(self, axis: int) -> tuple[float, Cell, Cell]:
        """Returns the place where it is cut, and what is below and above."""
        cut = float(np.round((self.start[axis] + self.end[axis]) / 2))
        below, above = ([np.array(side) for side in (self.low, self.high, self.start, self.end)] for _ in range(2))
        below[1][axis] = below[3][axis] = cut
        above[0][axis] = above[2][axis] = cut
        return cut, Cell(*below), Cell(*above)


def coreset(
    rows: Integers, *, levels: int, parts: tuple[Spending, Spending, Spending], neighbours: Neighbours, bits: Bits
) -> Coreset:
    """Returns a private coreset of turned integer rows.

    Formal guarantee: the events are Gaussian(multiplier) of parts[0] (moments of the axes), of parts[1] for each level
    of the tree that has cells to halve, and of parts[2] (counts and sums of leaves), each calibrated for the relation.
    A row is in one cell of a level at most, and cells are cut at places that earlier releases decide.

    Args:
        rows: turned, at most RADIUS long.
        levels: how often cells may be halved, at which counts are drawn.
        parts: the budgets of moments, of one level, and of leaves.
        neighbours: the relation to protect.
        bits: the source of randomness.
    """
    around = release_columns(rows, None, 1, spending=parts[0], neighbours=neighbours, bits=bits)
    of_sums = point_sensitivities(rows.shape[1], neighbours)[1] * parts[2].noise_multiplier
    noise = float(of_sums) * math.sqrt(rows.shape[1])
    cells, codes = _grow(rows, _root(around), levels, noise=noise, each=parts[1], neighbours=neighbours, bits=bits)
    leaves = release_groups(rows, codes, len(cells), spending=parts[2], neighbours=neighbours, bits=bits)
    kept = leaves.counts > _DEVIATIONS * leaves.count_sigma
    places = [
        np.clip(total / count, cell.low, cell.high)
        for cell, total, count, enough in zip(cells, leaves.sums, leaves.counts, kept, strict=True)
        if enough
    ]
    return Coreset(
        points=np.array(places).reshape(-1, rows.shape[1]),
        weights=leaves.counts[kept],
        middle=around.mean[0] * RADIUS,
        spread=np.sqrt(around.variance[0]) * RADIUS,
    )


def _root(around: ColumnMoments) -> Cell:
    middle, reach = around.mean[0] * RADIUS, _REACH * np.sqrt(around.variance[0]) * RADIUS
    far = np.full(len(middle), float(RADIUS))
    return Cell(-far, far, np.maximum(middle - reach, -far), np.minimum(middle + reach, far))


def _grow(
    rows: Integers, root: Cell, levels: int, *, noise: float, each: Spending, neighbours: Neighbours, bits: Bits
) -> tuple[list[Cell], Integers]:
    """Returns the leaves of the tree, and the leaf of each row.

    On every level all growing cells are halved on the widest axis, and their halves are counted; a half grows on if its
    noisy count is surely above 0 and so large that the noise of its mean, `noise` over the count, is small against the
    spread of rows in it. Cells that stopped are not counted again.
    """
    move = level_sensitivity(neighbours)
    counter = Gaussian.with_multiplier(noise_multiplier=each.noise_multiplier, sensitivity=move)
    sure = _DEVIATIONS * float(counter.sigma)
    cells, growing = [root], [0]
    codes = np.zeros(len(rows), dtype=np.int64)
    widths = root.end - root.start
    for _ in range(levels):
        if not growing:
            break
        axis = int(np.argmax(widths))
        widths[axis] /= 2
        enough = max(sure, _WORTH * noise / float(np.linalg.norm(widths / math.sqrt(12))))
        cuts, above = np.full(len(cells), np.inf), np.arange(len(cells))
        for place in growing:
            cuts[place], cells[place], other = cells[place].halves(axis)
            above[place] = len(cells)
            cells.append(other)
        codes = np.where(rows[:, axis] >= cuts[codes], above[codes], codes)
        halves = np.concatenate([growing, above[growing]])
        noisy = counter.release(np.bincount(codes, minlength=len(cells))[halves], bits=bits)
        growing = [int(place) for place, count in zip(halves, noisy, strict=True) if count > enough]
    return cells, codes
