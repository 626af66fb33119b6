"""Events on outputs that separate two datasets, and the search for the one that certifies most.

The search sees training runs only. One part of them says how likely each bin of each column is on either dataset, and
trains a logistic regression on the logarithms of these ratios; the other part chooses among all candidates: sets of
bins by falling ratio, numbers up to or from a cut, and scores of the regression from a cut. What the chosen event
certifies is for others to count, on runs that the search never saw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from discreet.audit.mechanisms.output_features import Column
from discreet.dataclass import dataclass

Columns = Mapping[str, Column]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Score = Callable[[Floats, Floats], Floats]
"""What counts on the dataset where an event is likelier, and on the other, are worth: larger is better."""

_BINS = 64
_SHOWN = 4  # bins named in the words for an event
_STEPS = 25  # of Newton's method
_RIDGE = 1.0
_SAME = 1e-9  # of two scores: equal outputs have equal scores but for rounding
_WIDEST = 24  # columns of the regression, those that separate most


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBins:
    """Cuts a column into bins: one for each value if they are few, else at quantiles; the last one is for the rest."""

    name: str
    values: Column | None
    cuts: Floats | None

    @classmethod
    def of(cls, name: str, column: Column) -> ColumnBins:
        """Returns bins that suit a column."""
        known = column[~np.isnan(column)] if column.dtype.kind == "f" else column
        values, counts = np.unique(known, return_counts=True)
        if column.dtype.kind != "f" or values.size <= _BINS:
            kept = np.sort(values[np.argsort(-counts, kind="stable")[:_BINS]])
            return cls(name, kept, None)
        finite = known[np.isfinite(known)]  # infinities fall into the first and the last bin
        return cls(name, None, np.unique(np.quantile(finite, np.linspace(0, 1, _BINS)[1:-1])))

    @property
    def count(self) -> int:
        """Returns how many bins there are, the rest included."""
        if self.values is not None:
            return self.values.size + 1
        return 0 if self.cuts is None else self.cuts.size + 2

    @property
    def is_ordered(self) -> bool:
        """Returns whether bins follow each other on the line of numbers."""
        return self.cuts is not None or (self.values is not None and self.values.dtype.kind == "f")

    def codes(self, column: Column) -> NDArray[np.int64]:
        """Returns the bin of each entry."""
        if self.cuts is not None:
            found = np.searchsorted(self.cuts, column, side="left")
            return np.where(np.isnan(column), self.count - 1, found).astype(np.int64)
        values = np.empty(0) if self.values is None else self.values
        if values.dtype.kind == "O" and column.dtype.kind == "f":  # texts were expected and numbers came
            return np.full(column.size, self.count - 1)
        return _places(values, column)

    def words(self, chosen: Mask) -> str:
        """Returns what membership in some of the bins means."""
        bins = np.flatnonzero(chosen)
        if self.cuts is not None:
            return self._ranges(bins)
        values = np.empty(0) if self.values is None else self.values
        if self.is_ordered and not chosen[-1] and _SHOWN < bins.size < values.size and np.all(np.diff(bins) == 1):
            low = f" from {_word(values[bins[0]])}" if bins[0] else ""
            high = f" up to {_word(values[bins[-1]])}" if bins[-1] < values.size - 1 else ""
            return f"{self.name} is{low}{high}"
        named = [_word(values[i]) if i < values.size else "anything else" for i in bins[:_SHOWN]]
        more = "" if bins.size <= _SHOWN else f" or one of {bins.size - _SHOWN} more"
        return f"{self.name} is {' or '.join(named)}{more}"

    def _ranges(self, bins: NDArray[np.intp]) -> str:
        cuts = np.empty(0) if self.cuts is None else self.cuts
        inside = bins[bins <= cuts.size]
        if inside.size and np.all(np.diff(inside) == 1):
            low = "" if inside[0] == 0 else f" above {cuts[inside[0] - 1]:.6g}"
            high = "" if inside[-1] == cuts.size else f" up to {cuts[inside[-1]]:.6g}"
            return f"{self.name} is{low}{' and' if low and high else ''}{high or ('' if low else ' there')}"
        return f"{self.name} is in one of {bins.size} of {self.count} ranges"


def _places(values: Column, column: Column) -> NDArray[np.int64]:
    if not values.size:
        return np.zeros(column.size, dtype=np.int64)
    if values.dtype.kind == "O":
        known = {value: place for place, value in enumerate(values.tolist())}
        return np.array([known.get(str(cell), values.size) for cell in column.tolist()], dtype=np.int64)
    if column.dtype.kind != "f":
        return np.full(column.size, values.size)
    place = np.minimum(np.searchsorted(values, column), values.size - 1)
    return np.where(values[place] == column, place, values.size).astype(np.int64)


def _word(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


class OutputEvent(ABC):
    """Describes a set of outputs that is likelier on one of two datasets.

    Attributes:
        first: whether it is likelier on the first dataset.
    """

    first: bool

    @abstractmethod
    def falls(self, columns: Columns, runs: int) -> Mask:
        """Returns for each run whether the event falls."""

    @abstractmethod
    def __str__(self) -> str:
        """Returns the event in words."""


@dataclass(frozen=True, slots=True, eq=False)
class BinEvent(OutputEvent):
    """Holds where one column lies in some of its bins."""

    bins: ColumnBins
    chosen: Mask
    first: bool

    def falls(self, columns: Columns, runs: int) -> Mask:
        """Returns for each run whether the event falls; a column that never appears is missing everywhere."""
        if self.bins.name not in columns:
            return np.full(runs, bool(self.chosen[-1]))
        return np.asarray(self.chosen[self.bins.codes(columns[self.bins.name])])

    def __str__(self) -> str:
        return self.bins.words(self.chosen)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreEvent(OutputEvent):
    """Holds where a weighted sum of the log-likelihood ratios of several columns reaches a cut."""

    bins: tuple[ColumnBins, ...]
    ratios: tuple[Floats, ...]
    weights: Floats
    cut: float
    first: bool

    def falls(self, columns: Columns, runs: int) -> Mask:
        """Returns for each run whether the event falls."""
        logs = [_logs(bins, ratio, columns, runs) for bins, ratio in zip(self.bins, self.ratios, strict=True)]
        scores = np.column_stack([*logs, np.ones(runs)]) @ self.weights
        return np.asarray(scores >= self.cut - _SAME if self.first else scores <= self.cut + _SAME)

    def __str__(self) -> str:
        side = "at least" if self.first else "at most"
        return f"a trained score of {len(self.bins)} features is {side} {self.cut:.4g}"


def _logs(bins: ColumnBins, ratio: Floats, columns: Columns, runs: int) -> Floats:
    if bins.name not in columns:
        return np.full(runs, float(ratio[-1]))
    return np.asarray(ratio[bins.codes(columns[bins.name])])


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Holds the columns of runs on both datasets, the first half of them from the first."""

    columns: Columns
    each: int

    @property
    def from_first(self) -> Mask:
        """Returns which runs are of the first dataset."""
        return np.arange(2 * self.each) < self.each


def search(fit: Runs, choose: Runs, score: Score) -> OutputEvent:
    """Returns the event with the best score on the runs to choose by, among those that the runs to fit suggest."""
    bins = [ColumnBins.of(name, column) for name, column in fit.columns.items()]
    ratios = [_ratios(one, fit) for one in bins]
    pairs = zip(bins, ratios, strict=True)
    found = [candidate for one, ratio in pairs for candidate in _sets(one, ratio, choose, score)]
    found += _find_best_cuts(bins, ratios, fit, choose, score)
    return max(found, key=lambda pair: pair[0])[1]


def _ratios(bins: ColumnBins, runs: Runs) -> Floats:
    """Returns the logarithm of how much likelier each bin is on the first dataset.

    It is drawn towards 0 where little was seen.
    """
    one, other = _tallies(bins, runs)
    return np.asarray(np.log((one + 0.5) / (other + 0.5)))


def _tallies(bins: ColumnBins, runs: Runs) -> tuple[Floats, Floats]:
    if bins.name not in runs.columns:
        missing = np.zeros(bins.count)
        missing[-1] = runs.each
        return missing, missing
    codes = bins.codes(runs.columns[bins.name])
    one, other = (np.bincount(part, minlength=bins.count) for part in (codes[: runs.each], codes[runs.each :]))
    return one.astype(np.float64), other.astype(np.float64)


def _sets(bins: ColumnBins, ratio: Floats, choose: Runs, score: Score) -> Iterator[tuple[float, OutputEvent]]:
    """Yields the best sets of bins: by falling ratio, and, of numbers, everything below or above a cut."""
    one, other = _tallies(bins, choose)
    orders = [np.argsort(-ratio, kind="stable")]
    if bins.is_ordered:
        natural = np.arange(bins.count - 1)
        orders += [natural, natural[::-1]]
    for order in orders:
        for first, way in ((True, order), (False, order[::-1])):
            hits, misses = np.cumsum(one[way]), np.cumsum(other[way])
            worth = score(hits, misses) if first else score(misses, hits)
            best = int(np.argmax(worth))
            chosen = np.zeros(bins.count, dtype=bool)
            chosen[way[: best + 1]] = True
            yield float(worth[best]), BinEvent(bins, chosen, first)


def _find_best_cuts(
    bins: list[ColumnBins], ratios: list[Floats], fit: Runs, choose: Runs, score: Score
) -> list[tuple[float, OutputEvent]]:
    """Returns the best cuts of a logistic regression on the log-likelihood ratios of all columns."""
    pairs = zip(bins, ratios, strict=True)
    spread = [float(np.mean(np.abs(_logs(one, ratio, fit.columns, 2 * fit.each)))) for one, ratio in pairs]
    kept = sorted(range(len(bins)), key=lambda i: -spread[i])[:_WIDEST]
    if len(kept) < 2:
        return []
    chosen, logs = tuple(bins[i] for i in kept), tuple(ratios[i] for i in kept)
    weights = regression(_matrix(chosen, logs, fit), fit.from_first)
    scores = _matrix(chosen, logs, choose) @ weights
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, 4 * _BINS)))
    found: list[tuple[float, OutputEvent]] = []
    for first in (True, False):
        signed, limits = (scores, cuts) if first else (-scores, -cuts)
        one, other = (_count_reaching(part, limits) for part in (signed[: choose.each], signed[choose.each :]))
        worth = score(one, other) if first else score(other, one)
        best = int(np.argmax(worth))
        found.append((float(worth[best]), ScoreEvent(chosen, logs, weights, float(cuts[best]), first)))
    return found


def _count_reaching(scores: Floats, cuts: Floats) -> Floats:
    """Returns how many scores are at least each cut."""
    return np.asarray(scores.size - np.searchsorted(np.sort(scores), cuts, side="left"), dtype=np.float64)


def _matrix(bins: tuple[ColumnBins, ...], ratios: tuple[Floats, ...], runs: Runs) -> Floats:
    columns = [_logs(one, ratio, runs.columns, 2 * runs.each) for one, ratio in zip(bins, ratios, strict=True)]
    return np.column_stack([*columns, np.ones(2 * runs.each)])


def regression(features: Floats, labels: Mask) -> Floats:
    """Returns the weights of a logistic regression with a ridge, by Newton's method."""
    weights = np.zeros(features.shape[1])
    penalty = _RIDGE * np.eye(features.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (labels - chance) - penalty @ weights
        bend = (features * (chance * (1 - chance))[:, None]).T @ features + penalty
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if float(np.max(np.abs(step))) < 1e-8:
            break
    return weights
