"""Releases: every exact number that leaves an engine passes through a `Releaser`, and meets its noise.

There are nine ways out, and no tenth: noise on statistics, a selection of private keys by people or by their weights,
points drawn by their ranks, several points drawn together, candidates drawn by their counts, the first limit that few
people exceed, a learner fitted to rows, a model of a synthetic table. An audit takes the place of the releaser with one
of its own, which only curators for tests let in (see `discreet.curator.observation`).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.exact.integer_columns import in_words_or_objects
from discreet.measurement.releases.additive import AdditiveNoise, Integers
from discreet.measurement.releases.candidates import CandidateDraw
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.open_exact import open_exact, opens
from discreet.mechanisms import PartitionSelection, SparseVector, WeightedSelection
from discreet.mechanisms.quantile_draw import divide, draw
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import Pick, RankAim
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

    def statistics(self, measures: Sequence[AdditiveNoise], exact: ExactGroups) -> Integers:
        """Adds noise to the statistics of all measures, a row for each group.

        Args:
            measures: what each statistic meets, in the order of the statistics.
            exact: rounded as the measures say, of public groups. `measurement.selection` alone passes
                private groups, and shows a few of them.
        """
        parts, start = [], 0
        for measure in measures:
            stop = start + len(measure.form.statistics)
            parts.append(self.noise(measure, exact.slice_statistics(start, stop)))
            start = stop
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts, axis=1) if parts else np.empty((open_exact(exact).length, 0), dtype=object)

    @opens
    def noise(self, measure: AdditiveNoise, exact: ExactGroups) -> Integers:
        """Adds noise to statistics that are rounded as a measure says, a row for each group."""
        content = open_exact(exact)
        return measure.release(content.statistics, content.length, self.bits)

    @opens
    def select(self, selection: PartitionSelection, people: ExactGroups) -> NDArray[np.bool_]:
        """Selects the groups that are shown, given how many people each has."""
        return selection.select(_only_column(people), bits=self.bits)

    @opens
    def weigh(self, selection: WeightedSelection, turn: int, weights: ExactGroups) -> NDArray[np.bool_]:
        """Selects the groups that a round shows, given the weight of each."""
        return selection.select(turn, _only_column(weights), bits=self.bits)

    @opens
    def points(
        self, groups: Mapping[Key, Histogram], picks: Sequence[Pick], look: Look, *, beside: Sequence[RankAim] = ()
    ) -> dict[Key, list[int]]:
        """Draws, in each group, a point for each pick."""
        return draw(groups, picks, look, self.bits, beside=beside)

    @opens
    def places(self, groups: Mapping[Key, Histogram], tree: QuantileTree, look: Look) -> dict[Key, list[int]]:
        """Draws, in each group, the places of several quantiles together."""
        return divide(groups, tree, look, self.bits)

    @opens
    def candidates(self, draw: CandidateDraw, groups: ExactGroups, keys: Sequence[Key]) -> list[int]:
        """Draws one candidate for each of these groups."""
        return draw.release(open_exact(groups).groups, keys, self.bits)

    @opens
    def first_of_few(self, search: SparseVector, people: ExactGroups) -> int:
        """Returns the first place that few people are beyond, given how many are in each; the last if there is none."""
        counts = _only_column(people)
        beyond = counts.sum() - np.cumsum(counts)
        found = search.release(-beyond[:-1], bits=self.bits)
        return len(found) - 1 if found[-1] else len(found)

    @opens
    def fit(self, learner: Any, decoder: RowDecoder, groups: ExactGroups) -> Any:
        """Fits a learner to the rows that were read, as a decoder makes them from groups."""
        return self.fit_rows(learner, *decoder.decode(open_exact(groups).groups))

    def fit_rows(self, learner: Any, X: Any, y: NDArray[Any] | None) -> Any:
        """Fits a learner to exact rows; its noise is secure, or has a seed if the releaser's bits are seeded.

        What it warns of can depend on rows, so warnings are dropped.
        """
        if not self.bits.private and learner.random_state is None:
            learner.set_params(random_state=uniform_below(1 << 31, bits=self.bits))
        with _QUIET, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return learner.fit(X) if y is None else learner.fit(X, y)

    @opens
    def model(self, modeller: RowModeller, groups: Sequence[ExactGroups]) -> Any:
        """Has synthetic tables measured in the rows that were read, with the releaser's bits; warnings are dropped."""
        with _QUIET, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return modeller.fit([open_exact(each).groups for each in groups], self.bits)


class RowDecoder(Protocol):
    """Makes a learner's rows from groups: a function of public facts."""

    def decode(self, groups: Groups) -> tuple[Any, NDArray[Any] | None]:
        """Returns features and target."""


class RowModeller(Protocol):
    """A decoder that makes rows from groups and fits a generator to them."""

    def fit(self, groups: Sequence[Groups], bits: Bits) -> Any:
        """Fits the generator and returns its model."""


def _only_column(groups: ExactGroups) -> NDArray[np.int64]:
    (column,) = open_exact(groups).statistics
    return np.asarray(in_words_or_objects(column), dtype=np.int64)
