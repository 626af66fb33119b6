"""Releases: every exact number that leaves an engine passes through a `Releaser`, and meets its noise.

There are eight ways out, and no ninth: noise on statistics, a selection of private keys by people or by their weights,
points drawn by their ranks, several points drawn together, candidates drawn by their counts, a learner fitted to rows,
a model of a synthetic table. An audit takes the place of the releaser with one of its own, which only curators for
tests let in (see `discreet.curator.observation`).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.measurement.releases.additive import Integers, Measure
from discreet.measurement.releases.candidates import CandidateDraw
from discreet.mechanisms import PartitionSelection, WeightedSelection
from discreet.mechanisms.quantile_draw import divide, draw
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import Aim, Pick
from discreet.mechanisms.value_counts import Histogram, Key, Look
from discreet.noise import Bits, uniform_below
from discreet.plan.model.readings import Groups

_QUIET = threading.Lock()  # which warnings are shown is one setting of the whole process


class Releaser:
    """Exact numbers in, released ones out; each method is one mechanism, drawn with the releaser's bits.

    Args:
        bits: the source of randomness.
    """

    def __init__(self, bits: Bits) -> None:
        bits.ready()  # a broken source is refused now, not after a charge
        self.bits = bits

    def noise(self, measure: Measure, exact: Integers) -> Integers:
        """Adds noise to statistics, a row for each group."""
        return measure.release(exact, self.bits)

    def select(self, selection: PartitionSelection, people: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Selects the groups that are shown, given how many people each has."""
        return selection.select(people, bits=self.bits)

    def weigh(self, selection: WeightedSelection, turn: int, weights: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Selects the groups that a round shows, given the weight of each."""
        return selection.select(turn, weights, bits=self.bits)

    def points(
        self, groups: Mapping[Key, Histogram], picks: Sequence[Pick], look: Look, *, beside: Sequence[Aim] = ()
    ) -> dict[Key, list[int]]:
        """Draws, in each group, a point for each pick."""
        return draw(groups, picks, look, self.bits, beside=beside)

    def places(self, groups: Mapping[Key, Histogram], tree: QuantileTree, look: Look) -> dict[Key, list[int]]:
        """Draws, in each group, the places of several quantiles together."""
        return divide(groups, tree, look, self.bits)

    def candidates(self, draw: CandidateDraw, groups: Groups, keys: Sequence[Key]) -> list[int]:
        """Draws one candidate for each of these groups."""
        return draw.release(groups, keys, self.bits)

    def fit(self, learner: Any, X: Any, y: NDArray[Any] | None) -> Any:
        """Fits a learner to exact rows; its noise is secure, or has a seed if the releaser's bits are seeded.

        What it warns of can depend on rows, so nobody is warned.
        """
        if not self.bits.private and learner.random_state is None:
            learner.set_params(random_state=uniform_below(1 << 31, bits=self.bits))
        with _QUIET, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return learner.fit(X) if y is None else learner.fit(X, y)

    def model(self, generator: Any, rows: Any, domain: Any, **how: Any) -> Any:
        """Has a generator of synthetic tables measure exact rows with the releaser's bits; nobody is warned, as above.

        Args:
            generator: of `discreet.synthetic`.
            rows: codes, within the limit of each unit.
            domain: whose codes they are.
            how: the limit, and the kind of frames, as `fit_coded` takes them.
        """
        with _QUIET, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return generator.fit_coded(rows, domain, bits=self.bits, **how)
