"""Boosting of one feature at a time: an additive model on public cells, with readable votes.

Probabilities come from whole scores by table and integer division: no bit of a row's share depends on other rows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discreet import check
from discreet.dataclass import dataclass
from discreet.exact import root_above
from discreet.learn.features import FeatureCells, Integers
from discreet.learn.learner import ClassPlan, read_rows
from discreet.learn.trees.cell_classifier import CellClassifier
from discreet.learn.weights import ONE as WHOLE
from discreet.learn.weights import class_shares, shrink_values
from discreet.mechanisms import Gaussian
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.inputs import within

ONE = 1 << 20  # a score of 1
UNIT = 1 << 10  # a probability of 1
_STEP = 12  # bits of a score that the table ignores: it has 256 entries for a score of 1
_TABLE = np.rint((1 << 20) * np.exp(-np.arange(16 << 8) / 256)).astype(np.int64)

ROWS = Fraction(1, 100)  # of mu^2, for the number of rows, by which cells and steps are chosen
COUNTS = Fraction(9, 100)  # of mu^2, for the counts of cells by which they are merged
ENOUGH = 8  # a merged cell holds this many times the noise of its sum, if there are so many rows
ROOTS = 2  # a merged cell holds this many roots of the number of rows: what chance does in it is not learned
FEW = 3  # merged cells of a feature, at least about: few rows are shared between so many
PARTS = 32  # merged cells of a feature, at most about
BOLD = 2.0  # the largest step
STEADY = 80  # rows for each unit of noise at which steps have length 1
PLENTY = 450  # rows for each unit of noise from which residuals are best left as they are
FURTHEST = 32 * ONE  # of one feature's vote


def shares(scores: Integers) -> Integers:
    """Returns e^score of each output over the sum of all, in units; a single output is joined by another of score 0.

    >>> shares(np.array([[0], [ONE], [-50 * ONE]])).ravel().tolist()
    [512, 749, 0]
    >>> shares(np.array([[0, 0, ONE]])).tolist()
    [[217, 217, 590]]
    """
    single = scores.shape[1] == 1
    columns = np.hstack([np.zeros_like(scores), scores]) if single else scores
    gaps = (reduce(np.maximum, columns.T)[:, None] - columns) >> _STEP  # column by column: rows are short
    weights = _TABLE[np.minimum(gaps, len(_TABLE) - 1)]
    total = np.einsum("ij->i", weights)[:, None]  # of integers: exact in any order
    found = (2 * UNIT * weights + total) // (2 * total)
    return np.asarray(found[:, 1:] if single else found, dtype=np.int64)


class AdditiveClassifier(CellClassifier):
    """A classifier that adds up votes, one for each feature, each a step function: boosting of stumps.

    First the number of rows is released: the fewer there are for the noise, the coarser the cells and the shorter the
    steps. Then the number of rows in each public cell is, and neighbouring cells are merged until each is worth more
    than the noise. Then, feature by feature and round by round, the sum of residuals (label minus predicted
    probability) in each merged cell is released, and the feature's votes move by it. What all visits agree on is the
    prior of the classes, which so outlives noise that hides each feature. Votes are released values: they may be
    shown, drawn and corrected by hand.

    Args:
        epsilon, delta: what one fit may cost; a delta is needed.
        bounds: public limits (low, high), one pair or one for each feature. Codes of categories 0 to k - 1 get cells of
            their own if `cells` is at least k.
        classes: the public labels; None to find them for a part of the budget.
        rounds: how often each feature is visited.
        cells: into how many equal parts the bounds are cut, at most: fewer if rows are few for the noise.
        residual_bound: residuals are shortened to this length; less of it means less noise and less pull by rows that
            are badly wrong. None is 1/2, or 1 if the released counts say that there are rows enough.
        class_weight: public weights of classes, e.g. {0: 1, 1: 3}: residuals are shrunk by the weight over the largest.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes:
        classes_: the labels.
        terms_: the votes, by feature, cell and output; one output for two classes, else one for each class.

    Formal guarantee: one row, added or replaced, moves the number of rows that have a class by 1. It lies in one cell
    of each of d features, however fine they are, so one row added moves all counts by sqrt(d), one replaced by
    sqrt(2 d), in the L2 norm. Its residuals are whole numbers of length at most c, in one cell: a row moves one
    feature's sums by c, a replaced one by 2 c (both may lie in the same cell and pull opposite ways). Residuals depend
    on the row and on released votes alone. Every release is exact Gaussian noise, and mu-GDP adds up in squares over
    the number of rows, the counts and `rounds` * d sums (Dong, Roth, Su 2022, Corollary 3.3), which are an adaptive
    composition fixed in advance: how fine cells are changes no sensitivity. Boosting with noisy histograms: Nori,
    Caruana, Bu, Shen, Kulkarni 2021; here releases go through exact integers and steps are larger.

    >>> model = AdditiveClassifier(epsilon=3, delta=1e-6, bounds=(0, 1), classes=[0, 1], random_state=0)
    >>> X = np.linspace(0, 1, 4000)[:, None]
    >>> round(model.fit(X, (abs(X[:, 0] - 0.5) < 0.25).astype(int)).score(X, abs(X[:, 0] - 0.5) < 0.25), 1)
    1.0
    >>> model.event_ == model.plan_event(1)
    True
    """

    most_cells: ClassVar[int] = 1 << 16
    terms_: NDArray[np.float64]

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        classes: Any = None,
        rounds: int = 8,
        cells: int = 64,
        residual_bound: Any = None,
        class_weight: Any = None,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.rounds = rounds
        self.cells = cells
        self.residual_bound = residual_bound
        self.class_weight = class_weight
        self.neighbours = neighbours
        self.random_state = random_state

    def _learn(self, releases: _Releases, places: Integers, labels: Integers, bits: Bits) -> None:
        self.terms_ = np.zeros((places.shape[1], releases.cells, 1))
        if not self.constant_:
            shares = class_shares(self.class_weight, self.classes_)
            self.terms_ = _boost_terms(places[labels >= 0], labels[labels >= 0], shares, releases, bits)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Returns the sum of all votes: for the second of two classes, else a column for each class."""
        check_is_fitted(self)
        X = read_rows(self, X)
        places = FeatureCells.of(X.shape[1], self._bounds, self.terms_.shape[1]).places(X)
        votes = sum(self.terms_[j][places[:, j]] for j in range(X.shape[1]))
        return np.asarray(votes)[:, 0] if len(self.classes_) <= 2 else np.asarray(votes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Returns the probability of each class."""
        votes = self.decision_function(X)
        if self.constant_:
            return np.ones((len(votes), 1))
        columns = np.column_stack([np.zeros(len(votes)), votes]) if votes.ndim == 1 else votes
        powers = np.exp(columns - columns.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the most probable class of each row."""
        votes = self.decision_function(X)
        return np.asarray(self.classes_[(votes > 0).astype(int) if votes.ndim == 1 else votes.argmax(axis=1)])

    def _releases(self, plan: ClassPlan, n_features: int, /) -> _Releases:
        rounds = check.integer(rounds=self.rounds, at_least=1, at_most=10**6)
        bound = None if self.residual_bound is None else check.positive(residual_bound=self.residual_bound)
        replaced = self._relation is Neighbours.REPLACE
        return _Releases(
            features=n_features,
            rounds=rounds,
            cells=self._cells(),
            bound=None if bound is None else max(1, math.floor(min(bound, Fraction(2)) * UNIT)),
            replaced=replaced,
            rows=Gaussian.with_multiplier(
                noise_multiplier=plan.rest.share(ROWS).noise_multiplier,
                sensitivity=1,
            ),
            counts=Gaussian.with_multiplier(
                noise_multiplier=plan.rest.share(COUNTS).noise_multiplier,
                sensitivity=root_above(Fraction(2 * n_features if replaced else n_features)),
            ),
            multiplier=plan.rest.share((1 - ROWS - COUNTS) / (rounds * n_features)).noise_multiplier,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Releases:
    """All that a fit draws, known beforehand but for the unit of residuals, which the noise follows."""

    features: int
    rounds: int
    cells: int
    bound: int | None
    replaced: bool
    rows: Gaussian
    counts: Gaussian
    multiplier: Fraction

    @property
    def event(self) -> Event:
        visits = events.Repeated(events.Gaussian(self.multiplier), self.rounds * self.features)
        return events.Composed([self.rows.event, self.counts.event, visits])

    def bound_for(self, rows: float) -> int:
        """Returns the length of residuals, in units, for a released number of rows."""
        if self.bound is not None:
            return self.bound
        return UNIT if rows >= PLENTY * float(self.sums(UNIT).sigma) / UNIT else UNIT // 2

    def sums(self, bound: int) -> Gaussian:
        """Returns the noise of one visit to a feature."""
        sensitivity = 2 * bound if self.replaced else bound
        return Gaussian.with_multiplier(noise_multiplier=self.multiplier, sensitivity=sensitivity)


def _boost_terms(
    places: Integers, labels: Integers, shares: Integers, releases: _Releases, bits: Bits
) -> NDArray[np.float64]:
    """Returns the votes, by feature, cell and output; `shares` has the weight of each class."""
    rows = max(1.0, float(releases.rows.release(len(labels), bits=bits)))
    bound = releases.bound_for(rows)
    mechanism = releases.sums(bound)
    noise = float(mechanism.sigma) / UNIT
    coarse = _coarse(releases.cells, rows / noise)
    noisy = releases.counts.release(_histograms(places, releases.cells, coarse), bits=bits)
    counts = _adding_up(np.asarray(noisy, dtype=np.float64), rows, releases)
    merged = [_merge_cells(row, noise, rows) for row in counts]
    groups = [np.maximum(np.bincount(kept, weights=row), 0.0) for kept, row in zip(merged, counts, strict=True)]
    parts = [kept[coarse] for kept in merged]
    visits = _Visits(
        step=min(BOLD, rows / (STEADY * noise)),
        noise=noise,
        bound=bound,
        inside=[kept[places[:, j]] for j, kept in enumerate(parts)],
        groups=groups,
        shares=shares,
    )
    votes = visits.run(labels, 1 if len(shares) == 2 else len(shares), releases.rounds, mechanism, bits)
    return np.stack([votes[j][kept] for j, kept in enumerate(parts)]) / ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visits:
    """The rounds: `inside` and the labels are private, all else is released or public."""

    step: float
    noise: float
    bound: int
    inside: list[Integers]
    groups: list[NDArray[np.float64]]
    shares: Integers

    def run(self, labels: Integers, outputs: int, rounds: int, mechanism: Gaussian, bits: Bits) -> list[Integers]:
        votes = [np.zeros((len(group), outputs), dtype=np.int64) for group in self.groups]
        scores = np.zeros((len(labels), outputs), dtype=np.int64)
        for _ in range(rounds):
            for j, group in enumerate(self.groups):
                pulls = self._pulls(scores, labels)
                sums = _sums(self.inside[j], pulls, len(group))
                released = np.asarray(mechanism.release(sums, bits=bits), dtype=np.float64) / UNIT
                moves = np.rint(ONE * self.step * released / (group + self.noise)[:, None]).astype(np.int64)
                moved = np.clip(votes[j] + moves, -FURTHEST, FURTHEST)
                scores += (moved - votes[j])[self.inside[j]]
                votes[j] = moved
        return votes

    def _pulls(self, scores: Integers, labels: Integers) -> Integers:
        """Returns residuals of rows by the weights of their classes; equal public weights change nothing."""
        found = _residuals(scores, labels, self.bound)
        return found if (self.shares == WHOLE).all() else shrink_values(found, self.shares[labels])


def _coarse(cells: int, rows_for_noise: float) -> Integers:
    """Returns the wider cell of each cell: about one for each unit of noise that the rows are worth, at least two."""
    wide = int(np.clip(rows_for_noise, 2, cells))
    return np.arange(cells, dtype=np.int64) * wide // cells


def _histograms(places: Integers, cells: int, coarse: Integers) -> Integers:
    """Returns how many rows lie in each wider cell, for each feature."""
    exact = np.stack([np.bincount(column, minlength=cells) for column in places.T])
    return np.add.reduceat(exact, np.searchsorted(coarse, np.arange(coarse[-1] + 1)), axis=1).astype(np.int64)


def _adding_up(counts: NDArray[np.float64], rows: float, releases: _Releases) -> NDArray[np.float64]:
    """Returns released counts, moved alike: each feature's add up to the number of rows as far as that is known better.

    Their sum and the number of rows are two measurements of one number: weights are inverse to the variances.
    """
    cells = counts.shape[1]
    loud, known = cells * float(releases.counts.sigma) ** 2, float(releases.rows.sigma) ** 2
    return np.asarray(counts + (rows - counts.sum(axis=1, keepdims=True)) / cells * (loud / (loud + known)))


def _merge_cells(counts: NDArray[np.float64], noise: float, rows: float) -> Integers:
    """Returns the group of each cell: neighbours go together until they hold enough. It reads released counts only."""
    enough = max(rows / PARTS, min(max(ENOUGH * noise, ROOTS * math.sqrt(rows)), rows / FEW))
    groups, current, held = np.zeros(len(counts), dtype=np.int64), 0, 0.0
    for place, count in enumerate(counts):
        groups[place] = current
        held += count
        if held >= enough and place < len(counts) - 1:
            current, held = current + 1, 0.0
    if held < enough / 2 and current > 0:
        groups[groups == current] = current - 1
    return groups


def _residuals(scores: Integers, labels: Integers, bound: int) -> Integers:
    """Returns label minus predicted share, in units, each row clipped to the bound: a function of row and votes."""
    outputs = scores.shape[1]
    expected = shares(scores)
    first = 1 if outputs == 1 else 0  # of two classes the second one is followed
    right = (labels[:, None] == np.arange(first, first + outputs)).astype(np.int64)
    return within(UNIT * right - expected, bound)


def _sums(groups: Integers, residuals: Integers, count: int) -> Integers:
    """Returns the sum of residuals in each group, by output: whole numbers, which floats add up exactly below 2^53."""
    columns = [np.bincount(groups, weights=column, minlength=count) for column in residuals.T]
    return np.stack(columns, axis=1).astype(np.int64)
