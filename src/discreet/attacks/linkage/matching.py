"""Scores of records made into matches: the best one, if it stands out from the second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.linkage.generalization import Codes
from discreet.attacks.linkage.ratings import Floats, Ratings, Scale, most, score

TOP = 5  # records of a target that are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The records that fit each target best.

    Attributes:
        best: places of records, the best first; a row a target.
        chance: their probabilities in the soft version, proportional to e^(score / standard deviation).
        eccentricity: by how many standard deviations of all scores the best one beats the second.
        own: the probability of the right record in the soft version, 0 where there is none.
        fit: the score of the best record as a share of that of a record with all that is known.
    """

    best: Codes
    chance: Floats
    eccentricity: Floats
    own: Floats
    fit: Floats

    def named(self, least: float) -> NDArray[np.bool_]:
        """For which targets the best record stands out."""
        return np.asarray(self.eccentricity >= least)


def matched(released: Ratings, known: Ratings, scale: Scale) -> Matches:
    """The best records of all targets; users of the same label are the same, which keeps score only."""
    numbers = {label: number for number, label in enumerate(released.users)}
    truth = np.array([numbers.get(label, -1) for label in known.users])
    targets, kept = len(known.users), min(TOP, len(released.users))
    best, chance = np.zeros((targets, kept), dtype=np.intp), np.zeros((targets, kept))
    eccentricity, own, highest = np.zeros(targets), np.zeros(targets), np.zeros(targets)
    for block, scores in score(released, known, scale):
        spread = scores.std(axis=1)
        some = spread > 0
        top = _largest(scores, kept)
        unit = scores / np.where(some, spread, 1.0)[:, None]
        odds = np.exp(unit - unit.max(axis=1, keepdims=True))
        best[block], highest[block] = top, scores.max(axis=1)
        odds /= odds.sum(axis=1, keepdims=True)
        chance[block] = np.take_along_axis(odds, top, axis=1)
        own[block] = np.where(truth[block] < 0, 0.0, odds[np.arange(len(odds)), truth[block]])
        first = np.take_along_axis(unit, top[:, :2], axis=1)
        eccentricity[block] = np.where(some, first[:, 0] - first[:, -1], 0.0)
    possible = most(released, known, scale)
    fit = np.divide(highest, possible, out=np.zeros(targets), where=possible > 0)
    return Matches(best=best, chance=chance, eccentricity=eccentricity, own=own, fit=fit)


def _largest(scores: Floats, kept: int) -> Codes:
    """Places of the largest scores of each row, in falling order."""
    some = np.argpartition(-scores, kept - 1, axis=1)[:, :kept]
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)
