"""Clusters of a private coreset, with a few private steps of Lloyd's method among all features."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans as WeightedKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from discreet import check
from discreet.learn.clusters.coreset import TURN, Coreset, Groups, coreset, release_groups, rotate_rows, rotation
from discreet.learn.features import Features, features
from discreet.learn.learner import Learner
from discreet.learn.row_inputs import rows_to_fit, rows_to_predict
from discreet.learn.weights import no_weights
from discreet.noise import Bits
from discreet.noise.experiment import normals, uniforms
from discreet.privacy.events import Composed, Event, Gaussian, Repeated
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, Integers, exact_product

Floats = NDArray[np.float64]

_PARTS = (6, 26, 18, 50)  # of the budget: moments, tree, leaves, all steps
_STARTS = 10  # of the clustering of the coreset


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Learner):  # type: ignore[misc]
    """Cluster centres with differential privacy.

    A tree of random hyperplanes makes a private coreset, see `coreset` (after Chang, Ghazi, Kumar, Manurangsi 2021);
    it is clustered without further cost; then, `steps` times, the rows nearest to each centre are averaged among all
    features, with noise, and drawn to the mean of all as far as noise explains that they differ from it (James and
    Stein 1961).

    Formal guarantee: a fit is several Gaussian releases, their multipliers fixed beforehand: moments of axes, one for
    each level of the tree at most, leaves, and steps. Later ones depend on the data and on what earlier ones
    released, so that they compose to mu-GDP with mu^2 the sum of all 1 / multiplier^2 (Dong, Roth, Su 2022, Corollary
    3.3). Labels and the inertia of the training rows are not stored: no budget paid for them. `fit_predict` labels rows
    that the caller holds, and its result is as private as they are.

    Args:
        n_clusters: how many.
        epsilon: what a fit may cost.
        delta: strictly between 0 and 1.
        bounds: public limits (low, high) of the features, numbers or arrays; or
        norm_bound: the length that a row may have, public.
        levels: how often a cell may be halved; None for a number that suits n_clusters.
        steps: of Lloyd's method, after the clustering of the coreset.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`, in addition to those of `Learner`:
        cluster_centers_: a row for each cluster.

    >>> X = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -1.0]] * 500)
    >>> model = KMeans(n_clusters=3, epsilon=4, norm_bound=2.0, random_state=1).fit(X)
    >>> sorted((model.cluster_centers_.round() + 0).tolist())
    [[-1.0, 1.0], [0.0, -1.0], [1.0, 1.0]]
    """

    def __init__(
        self,
        *,
        n_clusters: Any = 8,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        norm_bound: Any = None,
        levels: Any = None,
        steps: Any = 2,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm_bound = norm_bound
        self.levels = levels
        self.steps = steps
        self.neighbours = neighbours
        self.random_state = random_state

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features."""
        self._public(n_features)
        moments, tree, leaves, step = (Gaussian(noise_multiplier=part.noise_multiplier) for part in self._parts())
        return Composed([moments, Repeated(tree, self._depth()), leaves, Repeated(step, self._turns())])

    def fit(self, X: Any, y: Any = None, **weights: Any) -> KMeans:  # noqa: ARG002  # scikit-learn's interface
        """Finds the centres; missing values are the middle of their bounds."""
        no_weights(weights)
        X = rows_to_fit(self, X)
        public, event, bits = self._public(self.n_features_in_), self.plan_event(self.n_features_in_), self._bits()
        moments, tree, leaves, step = self._parts()
        rows, rotated = public.rows(X), rotation(self.n_features_in_, bits)
        axes = rotate_rows(rows, rotated)
        relation = self._relation
        found = coreset(axes, levels=self._depth(), parts=(moments, tree, leaves), neighbours=relation, bits=bits)
        first = _cluster_points(found, self._count(), bits)
        codes, centres = nearest(axes, first), first @ rotated / TURN
        for _ in range(self._turns()):
            groups = release_groups(rows, codes, len(first), spending=step, neighbours=relation, bits=bits)
            centres = _refine_centres(centres, groups)
            codes = nearest(rows, np.round(centres).astype(np.int64))
        self.cluster_centers_ = public.centre + centres * public.unit * public.spread
        self._account(event, bits)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Integers:
        """Fits, and labels the rows that were given: not a private release, unlike the model."""
        return self.fit(X, y).predict(X)

    def predict(self, X: Any) -> Integers:
        """Predicts the cluster of each row: that of the nearest centre."""
        return np.asarray(np.argmin(self.transform(X), axis=1), dtype=np.int64)

    def transform(self, X: Any) -> Floats:
        """Returns distances to all centres."""
        check_is_fitted(self)
        X = rows_to_predict(self, X, finite="allow-nan")
        middle = self._public(self.n_features_in_).centre
        known = np.where(np.isnan(X), middle, X)
        return np.stack([np.sqrt(np.sum((known - one) ** 2, axis=1)) for one in self.cluster_centers_], axis=1)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _count(self) -> int:
        return check.integer(n_clusters=self.n_clusters, at_least=1, at_most=10_000)

    def _depth(self) -> int:
        if self.levels is None:
            return 5 + math.ceil(math.log2(self._count() + 1))
        return check.integer(levels=self.levels, at_least=1, at_most=30)

    def _turns(self) -> int:
        return check.integer(steps=self.steps, at_least=1, at_most=100)

    def _parts(self) -> tuple[Spending, Spending, Spending, Spending]:
        """Returns the budgets of the moments, of one level, of the leaves and of one step."""
        moments, tree, leaves, steps = self._spending().shares(_PARTS)
        return moments, tree.share(Fraction(1, self._depth())), leaves, steps.share(Fraction(1, self._turns()))

    def _public(self, count: int) -> Features:
        self._count()
        return features(count, bounds=self._bounds, norm_bound=self.norm_bound)


def nearest(rows: Integers, centres: Integers) -> Integers:
    """Returns the nearest of integer centres for each integer row, the first of several; exact, and row by row."""
    lengths = np.sum(centres * centres, axis=1)
    largest = 4 * RADIUS * RADIUS * rows.shape[1]
    products = exact_product(rows.astype(np.float64), centres.T.astype(np.float64), largest)
    return np.asarray(np.argmin(lengths - 2 * products.astype(np.int64), axis=1), dtype=np.int64)


def _cluster_points(found: Coreset, count: int, bits: Bits) -> Integers:
    """Returns centres of the coreset as integers; points of no weight are added where there are too few."""
    points, weights = found.points, found.weights
    if len(points) < count:
        extra = found.middle + found.spread * normals((count, len(found.middle)), bits=bits)
        points, weights = np.vstack([points, extra]), np.append(weights, np.full(count, 1e-6))
    seed = int(uniforms(1, bits=bits)[0] * 2**31)
    model = WeightedKMeans(n_clusters=count, n_init=_STARTS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # two points of the coreset may coincide
        model.fit(points, sample_weight=weights)
    return np.asarray(np.clip(np.round(model.cluster_centers_), -RADIUS, RADIUS), dtype=np.int64)


def _refine_centres(first: Floats, groups: Groups) -> Floats:
    """Returns averages of the rows of each cluster, where there are enough of them, else the centre that there was."""
    enough = groups.counts > 3 * groups.count_sigma
    counts = np.maximum(groups.counts, 1.0)[:, None]
    middle = groups.sums.sum(axis=0) / max(1.0, float(groups.counts.sum()))
    away = groups.sums / counts - middle
    noise = away.shape[1] * (groups.sum_sigma / counts) ** 2
    signal = np.maximum(np.sum(away**2, axis=1, keepdims=True), 1e-300)
    centres = np.where(enough[:, None], middle + np.clip(1 - noise / signal, 0, 1) * away, first)
    lengths = np.linalg.norm(centres, axis=1, keepdims=True)
    return np.asarray(centres * np.minimum(1.0, RADIUS / np.maximum(lengths, 1e-300)))
