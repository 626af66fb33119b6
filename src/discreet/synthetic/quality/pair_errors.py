"""How far a model is from measured pairs of columns, next to what the noise of measuring contributes.

Everything is post-processing of released numbers. Let M be the exact counts of a pair's n cells, y = M + z the noisy
ones, E those of the model, and N the number of rows that the model represents. Distances are total variation,
|.|_1 / (2 N). By the triangle inequality, whatever E is and however it depends on y,

    |y - E|_1 - |z|_1 <= |M - E|_1 <= |y - E|_1 + |z|_1.

The law of z is public. If z = A g, g independent standard normal numbers, then E|z|_1 = sqrt(2 / pi) times the sum of
the cells' deviations, and |A g|_1 moves by at most sqrt(n) |A|_2 |g - g'|_2, so that it exceeds its mean by more than
sqrt(2 n ln(1 / b)) |A|_2 with a chance of at most b (Tsirelson, Ibragimov, Sudakov 1976). Cells may be correlated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

import numpy as np

from discreet.dataclass import dataclass
from discreet.synthetic.fitted_model import Model
from discreet.synthetic.inference.factors import Attributes, Table
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal, combine_marginals

CONFIDENCE = 0.95
"""The chance with which an interval of one pair holds its true error."""

_EXPECTED = math.sqrt(2 / math.pi)  # of the absolute value of a standard normal number


@dataclass(frozen=True, slots=True, kw_only=True)
class PairError:
    """How far a model is from one pair of columns, as shares of rows in the wrong cell (total variation).

    Attributes:
        columns: the pair.
        cells: how many cells were measured, after rare values were merged.
        distance: between the model and what was measured.
        noise: the distance that noise alone is expected to contribute to it.
        low: the error of the model is at least this, with a chance of 95 %.
        high: and at most this.
    """

    columns: tuple[str, str]
    cells: int
    distance: float
    noise: float
    low: float
    high: float

    @property
    def beyond_noise(self) -> float:
        """Returns by how much the distance exceeds what noise is expected to contribute; negative if it does not."""
        return self.distance - self.noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredPair:
    """A pair of columns as it was measured.

    Args:
        counts: the noisy counts of its cells, over merged values.
        deviations: of the noise of each cell.
        norm: the spectral norm of the linear map from independent standard normal numbers to the noise.
    """

    counts: Table
    deviations: Table
    norm: float

    def error(self, columns: tuple[str, str], estimate: Table, rows: float) -> PairError:
        """Returns how far an estimate is from it."""
        distance, size = float(np.abs(self.counts - estimate).sum()), self.counts.size
        noise = _EXPECTED * float(self.deviations.sum())
        most = noise + self.norm * math.sqrt(2 * size * math.log(1 / (1 - CONFIDENCE)))
        return PairError(
            columns=columns,
            cells=size,
            distance=distance / (2 * rows),
            noise=noise / (2 * rows),
            low=max(0.0, distance - most) / (2 * rows),
            high=min(1.0, (distance + most) / (2 * rows)),
        )


def pair_errors(model: Model) -> list[PairError]:
    """Returns the errors of all pairs that were measured; first those that noise explains least.

    Formal guarantee: a function of the released model alone. Each interval holds the total variation of the model from
    the counts that were measured, of the rows that were kept, with a chance of at least 95 % over the noise.
    """
    pairs = measured_pairs(model)
    tables = model.law.marginals(pairs)
    found = [
        pair.error(names, model.rows * table, model.rows)
        for (names, pair), table in zip(pairs.items(), tables, strict=True)
    ]
    return sorted(found, key=lambda error: -error.beyond_noise)


def unmeasured_pairs(model: Model) -> list[tuple[str, str]]:
    """Returns the pairs of columns that were not measured, neither by themselves nor with others."""
    known = measured_pairs(model)
    return [pair for pair in combinations(model.domain.columns, 2) if pair not in known]


def measured_pairs(model: Model) -> dict[tuple[str, str], MeasuredPair]:
    """Returns the pairs of columns that were measured, in the order of the columns.

    A pair of a larger marginal is a sum over the others' cells, with as much more variance. Several measurements of one
    pair are put together. A residual is completed by what was measured of the two columns.
    """
    whole = [marginal for marginal in model.measurements if not marginal.residual and _fits(marginal, model)]
    parts = [part for marginal in whole for part in _pairs_of(marginal)]
    order = {name: place for place, name in enumerate(model.domain.columns)}
    found: dict[tuple[str, str], MeasuredPair] = {}
    for marginal in combine_marginals(parts):
        first, second = sorted(marginal.attributes, key=order.__getitem__)
        counts = marginal.transpose_to((first, second)).values
        deviations = np.full(counts.shape, marginal.sigma)
        found[first, second] = MeasuredPair(counts=counts, deviations=deviations, norm=marginal.sigma)
    alone = {m.attributes[0]: m for m in combine_marginals(m for m in whole if len(m.attributes) == 1)}
    for residual in combine_marginals(m for m in model.measurements if m.residual and len(m.attributes) == 2):
        first, second = sorted(residual.attributes, key=order.__getitem__)
        if (first, second) not in found:
            found[first, second] = _complete_pair(residual.transpose_to((first, second)), alone, model)
    return dict(sorted(found.items(), key=lambda item: [order[name] for name in item[0]]))


def _fits(marginal: NoisyMarginal, model: Model) -> bool:
    """Returns whether a marginal is over the values that the model has."""
    sizes = model.law.tree.sizes
    return marginal.values.shape == tuple(sizes[name] for name in marginal.attributes)


def _pairs_of(marginal: NoisyMarginal) -> Iterator[NoisyMarginal]:
    places = range(len(marginal.attributes))
    for pair in combinations(places, 2):
        others = tuple(place for place in places if place not in pair)
        summed = math.prod(marginal.values.shape[place] for place in others)
        names: Attributes = tuple(marginal.attributes[place] for place in pair)
        yield NoisyMarginal(names, marginal.values.sum(axis=others), marginal.sigma * math.sqrt(summed))


def _complete_pair(residual: NoisyMarginal, alone: Mapping[str, NoisyMarginal], model: Model) -> MeasuredPair:
    """Returns the counts of a pair: its residual, the means of its columns, and the mean of all.

    The three parts lie in orthogonal spaces. A column's noise is centred and spread over the other column's m values,
    each with 1 / m of it, which has the norm 1 / sqrt(m).
    """
    shape = residual.values.shape
    counts = residual.values + model.rows / residual.values.size
    centred = math.prod(1 - 1 / size for size in shape)
    variances, norms = np.full(shape, residual.sigma**2 * centred), [residual.sigma]
    for axis, name in enumerate(residual.attributes):
        values, deviations = _column(name, alone, model)
        other, side = shape[1 - axis], [-1 if place == axis else 1 for place in (0, 1)]
        counts = counts + ((values - values.mean()) / other).reshape(side)
        variances = variances + (deviations**2 / other**2).reshape(side)
        norms.append(float(deviations.max()) / math.sqrt(other))
    return MeasuredPair(counts=counts, deviations=np.sqrt(variances), norm=max(norms))


def _column(name: str, alone: Mapping[str, NoisyMarginal], model: Model) -> tuple[Table, Table]:
    """Returns the measured counts of a column's values and their deviations; a group's is that of its sum."""
    if name not in alone:
        values = model.rows * model.law.marginal((name,))
        return values, np.zeros_like(values)
    sigma = alone[name].sigma
    sizes = np.bincount(model.merges[name].places) if name in model.merges else np.ones(len(alone[name].values))
    return alone[name].values, sigma * np.sqrt(sizes)


def implied_pairs(model: Model, pairs: Iterable[tuple[str, str]], *, least: float = 1e-6) -> list[tuple[str, str]]:
    """Returns those of some pairs whose columns depend on each other in the model, although they were not measured."""
    listed = list(pairs)
    tables = model.law.marginals(listed)
    apart = [float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum()) / 2 for table in tables]
    return [pair for pair, distance in zip(listed, apart, strict=True) if distance > least]
