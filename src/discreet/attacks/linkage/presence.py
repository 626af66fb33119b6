"""Whether a person's record is in the data: one question for ratings of any kind of release.

Scores of records become matches: the best one, if it is far enough above the second. A private release has no records
that could be named. What can be asked of every release is whether a person took part: a fair coin decides for each
person, and the attacker, who knows a few of each person's ratings, says who is in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import compare_trials, posterior
from discreet.attacks.linkage.attacker_tables import Codes
from discreet.attacks.linkage.ratings import (
    Floats,
    Names,
    Ratings,
    SimilarityScale,
    at_random,
    most,
    ratings_of,
    sampled_ratings,
    score,
)
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of
from discreet.noise.experiment import coins, uniforms
from discreet.report.attack_finding import RAW, Comparison, Finding, Trial
from discreet.report.display import rate

TOP = 5  # records of a target that are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Holds the records that fit each target best.

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

    def named_targets(self, least: float) -> NDArray[np.bool_]:
        """Returns for which targets the best record is far enough above the second."""
        return np.asarray(self.eccentricity >= least)


def match_records(released: Ratings, known: Ratings, scale: SimilarityScale) -> Matches:
    """Returns the best records of all targets; users of the same label are the same, which keeps score only."""
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
    """Returns places of the largest scores of each row, in falling order."""
    some = np.argpartition(-scores, kept - 1, axis=1)[:, :kept]
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


Said = NDArray[np.bool_]

FIT = 0.5  # of the score of all that is known: a record that matches less than this is another person's


@dataclass(frozen=True, kw_only=True)
class Presence(Finding):
    """Reports how often an attacker says correctly who is in the data.

    Attributes:
        found: the share of those who are in of whom it is said.
        accused: the share of those who are not in of whom it is said.

    >>> from discreet.attacks import scoreboard
    >>> from discreet.noise import SeededBits
    >>> n = range(200)  # 40 people rated 5 of 37 films each
    >>> rated = {"user": [i // 5 for i in n], "item": [i % 37 for i in n], "rating": [1 + i % 5 for i in n]}
    >>> result = scoreboard.compare(rated | {"day": [31 * i % 365 for i in n]}, epsilons=[1], bits=SeededBits(1))
    >>> round(result.raw.found, 2), round(result.raw.accused, 2)
    (1.0, 0.05)
    >>> round(result["epsilon 1"].found, 2), round(result["epsilon 1"].accused, 2)
    (0.51, 0.54)
    """

    found: float
    accused: float

    def details(self) -> tuple[str, ...]:
        """Returns the two ways to be right and wrong."""
        return (f"{rate(self.found)} of those in the data are found, {rate(self.accused)} of the others accused.",)


def compare(
    ratings: Any,
    *,
    items: int = 8,
    rating_error: float = 0.0,
    days: int = 14,
    limit: int = 20,
    bounds: tuple[float, float] = (0.5, 5.0),
    epsilons: Sequence[check.Number] = (0.1, 1, 10),
    rounds: int = 5,
    user: str = "user",
    item: str = "item",
    rating: str = "rating",
    day: str = "day",
    eccentricity: float = 1.5,
    bits: Bits | None = None,
) -> Comparison:
    """Says who is in the data, from records and from private counts and sums of ratings for each item.

    A fair coin decides who is in; the attacker knows some of each person's ratings (see `known_ratings`). From records
    without names, with less in them or not, a person is said to be in if the scoreboard names a record that has half of
    what is known or more (a quarter where half of it is left out). A private release has a count and a sum of ratings
    for every item of a public list, of at most `limit` ratings of a person, drawn at random; a person is said to be in
    if the counts and sums of the known items, weighed by their variance, exceed what the popularity of the items
    explains, which the attacker is given.

    Formal guarantee of the bound: counts and sums get half of epsilon each, at L1 sensitivities of `limit` and `limit`
    times the furthest rating from the middle of its bounds, for adding or removing one person with all ratings. Given
    the other coins, "is said to be in" is an event of the release that is at most e^epsilon times as likely with the
    person as without, and so is its opposite the other way round: over a fair coin, at most e^epsilon / (1 +
    e^epsilon) of what is said is right (`posterior` from one half), whatever the attacker knows besides.

    Args:
        ratings: the data themselves, one row a rating.
        items: how many ratings of each person are known.
        rating_error: the most a known rating is off.
        days: the most a known date is off.
        limit: how many ratings of a person enter the private release.
        bounds: of ratings in the private release; public, halves are kept.
        epsilons: of private releases; each is for all about a person, for adding or removing the person.
        rounds: how often coins are tossed.
        user: the name of the column.
        item: the name of the column.
        rating: the name of the column.
        day: the name of the column.
        eccentricity: how many standard deviations a match must be above the second.
        bits: the source of randomness.
    """
    source, shares = source_of(bits), sorted(check.positive(epsilon=epsilon) for epsilon in epsilons)
    check.integer(limit=limit, at_least=1)
    check.integer(rounds=rounds, at_least=1)
    if not bounds[0] < bounds[1]:
        raise InvalidParameter("bounds", bounds, "to rise", "Pass the least and the largest rating.")
    data = ratings_of(ratings, Names(user=user, item=item, rating=rating, day=day))
    if len(data.users) < 4:
        raise InvalidParameter("ratings", len(data.users), "to be of at least 4 people", "Pass more people's ratings.")
    known = sampled_ratings(data, items=items, rating_error=rating_error, days=days, bits=source)

    def records(changed: Callable[[Ratings], Ratings], kept: float = 1.0) -> Callable[[Said], Said]:
        def accuse_members(inside: Said) -> Said:
            found = match_records(changed(data.where(inside[data.user])), known, SimilarityScale())
            return found.named_targets(eccentricity) & (found.fit >= FIT * kept)

        return accuse_members

    def sums(epsilon: Fraction) -> Callable[[Said], Said]:
        release = ItemSums(data, known, limit=limit, bounds=bounds, epsilon=epsilon)
        return lambda inside: release.accuse_members(inside, source)

    ways = {
        RAW: records(lambda released: released),
        "dates left out": records(_without_dates),
        "half of the ratings left out": records(lambda released: _sample_half(released, source), kept=0.5),
    }
    trials = [
        Trial(defence=name, epsilon=None, finding=_play_rounds(data, way, rounds, source)) for name, way in ways.items()
    ]
    for epsilon in shares:
        bound = posterior(float(epsilon), 0.5)
        finding = _play_rounds(data, sums(epsilon), rounds, source, bound)
        trials.append(Trial(defence=f"epsilon {float(epsilon):g}", epsilon=float(epsilon), finding=finding))
    return compare_trials(trials, bound=lambda epsilon: posterior(epsilon, 0.5))


def _play_rounds(
    data: Ratings, attack: Callable[[Said], Said], rounds: int, bits: Bits, bound: float | None = None
) -> Presence:
    """Rounds of coins, releases and accusations.

    The first person is always in and the second never, so that there is a release in every round; neither counts.
    """
    inside = coins((rounds, len(data.users)), bits=bits).astype(np.bool_)
    inside[:, :2] = [True, False]
    said = np.array([attack(coin) for coin in inside])
    inside, said = inside[:, 2:], said[:, 2:]
    return Presence(
        attack="Who is in the data",
        goal="people rightly said to be in or not",
        success=float(np.mean(said == inside)),
        baseline=0.5,
        targets=inside.size,
        bound=bound,
        found=float(np.mean(said[inside])),
        accused=float(np.mean(said[~inside])),
    )


def _without_dates(released: Ratings) -> Ratings:
    return Ratings(
        users=released.users,
        items=released.items,
        user=released.user,
        item=released.item,
        rating=released.rating,
        day=np.full(len(released.day), np.nan),
    )


def _sample_half(released: Ratings, bits: Bits) -> Ratings:
    return released.where(uniforms(len(released.user), bits=bits) < 0.5)


class ItemSums:
    """Releases a private count and sum for each item, and judges targets by them and by the popularity of items.

    Attributes:
        count: the mechanism of counts.
        sum: the mechanism of sums, in half steps from the middle of the bounds.
    """

    def __init__(
        self, data: Ratings, known: Ratings, *, limit: int, bounds: tuple[float, float], epsilon: Fraction
    ) -> None:
        self._data, self._known, self._limit = data, known, limit
        self._centre = round(sum(bounds))  # in half steps, like all ratings here
        steps = self._steps(np.array(bounds), bounds)
        self._bounds, reach = bounds, max(1, int(np.abs(steps).max()))
        self.count = Laplace(epsilon=epsilon / 2, sensitivity=limit)
        self.sum = Laplace(epsilon=epsilon / 2, sensitivity=limit * reach)
        rows = np.bincount(data.user)
        chance = np.minimum(1.0, limit / rows)[data.user] / 2  # that a rating is in the release, over coin and choice
        value = self._steps(data.rating, bounds)
        size = len(data.items)
        noise = [2 * float(2 * limit / epsilon) ** 2, 2 * float(2 * limit * reach / epsilon) ** 2]
        self._expected = [np.bincount(data.item, chance * part, size) for part in (1, value)]
        spread = [np.bincount(data.item, chance * part**2, size) for part in (np.ones(len(value)), value)]
        self._variance = [part + more for part, more in zip(spread, noise, strict=True)]

    def exact(self, inside: Said, bits: Bits) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns counts and sums of at most `limit` ratings of each person who is in, before noise."""
        some = at_random(self._data.where(inside[self._data.user]), self._limit, bits)
        totals = np.zeros(len(self._data.items), dtype=np.int64)
        np.add.at(totals, some.item, self._steps(some.rating, self._bounds))
        return np.bincount(some.item, minlength=len(totals)), totals

    def accuse_members(self, inside: Said, bits: Bits) -> Said:
        """Returns who is said to be in, from one release of those who are."""
        counts, totals = self.exact(inside, bits)
        shown = (self.count.release(counts, bits=bits), self.sum.release(totals, bits=bits))
        known = self._known
        own = (1, self._steps(known.rating, self._bounds))
        evidence = np.zeros(len(known.item))
        for released, expected, variance, times in zip(shown, self._expected, self._variance, own, strict=True):
            evidence += times * ((released - expected) / variance)[known.item]
        return np.asarray(np.bincount(known.user, evidence, len(known.users)) > 0)

    def _steps(self, rating: Floats, bounds: tuple[float, float]) -> NDArray[np.int64]:
        """Returns ratings as whole half steps from the middle of their bounds."""
        held = np.clip(np.nan_to_num(rating, nan=sum(bounds) / 2), *bounds)
        return np.rint(2 * held).astype(np.int64) - self._centre
