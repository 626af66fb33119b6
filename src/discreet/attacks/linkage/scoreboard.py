"""The scoreboard names records by a few known ratings, if the best record is far enough above the second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet import check
from discreet.attacks.attack import beside
from discreet.attacks.linkage.presence import Matches, compare, match_records
from discreet.attacks.linkage.ratings import (
    Names,
    Ratings,
    SimilarityScale,
    Weight,
    ratings_of,
    sampled_ratings,
    smoothed_weight,
)
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.noise import Bits, source_of
from discreet.report import comparison_charts
from discreet.report.attack_finding import Finding, wilson_interval
from discreet.report.charts import Spec
from discreet.report.display import rate
from discreet.report.render import chart


@dataclass(frozen=True, kw_only=True)
class Scoreboard(Finding):
    """Reports the share of targets whose records were named.

    Attributes:
        wrong: the share of targets named wrongly; None without the truth.
        silent: the share of targets who get no record: the best is too close to the second.
        soft: the mean probability that the soft version gives to the right record; None without the truth.
        eccentricity: by target, by how many standard deviations of all scores the best one beats the second.
        lineup: by target, its best records with their probabilities in the soft version.
        recovered: by target, the record that was named, or None.
    """

    wrong: float | None
    silent: float
    soft: float | None
    eccentricity: dict[Any, float]
    lineup: dict[Any, tuple[tuple[Any, float], ...]]
    recovered: dict[Any, Any]

    def details(self) -> tuple[str, ...]:
        """Returns what happens to the others."""
        wrong = () if self.wrong is None else (f"{rate(self.wrong)} are named wrongly.",)
        return (*wrong, f"For {rate(self.silent)}, the best record is too close to the second best.")

    def spec(self) -> Spec:
        """Returns the shares of targets named rightly, wrongly and not at all, next to chance."""
        parts = {"named rightly" if self.wrong is not None else "named": self.success, "named wrongly": self.wrong}
        found = {name: wilson_interval(share, self.targets) for name, share in parts.items() if share is not None}
        found["no answer"] = wilson_interval(self.silent, self.targets)
        return comparison_charts.rates(found, {"chance": self.baseline}, headline=self.headline, across="targets")


@beside(compare)
def scoreboard(
    ratings: Any,
    auxiliary: Any,
    *,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    day: str | None = "day",
    rating_scale: float = 1.5,
    day_scale: float = 30.0,
    weight: Weight = smoothed_weight,
    eccentricity: float = 1.5,
) -> Scoreboard:
    """Names the records of ratings that fit what is known about some people.

    A record is named if its score beats the second best by `eccentricity` standard deviations of all scores, else none
    is (Narayanan, Shmatikov 2008). The printed formula of the paper lacks the minus sign and the absolute value; its
    weight 1 / ln(support) has no value for an item of one record, hence `smoothed_weight`, or `capped`.

    Args:
        ratings: the release without names: one row a rating, a user is a pseudonym.
        auxiliary: what is known, one row a rating, with the same columns. Its users, where the column is there, say
            whose record it is, by the pseudonym, and keep score only; without the column all is about one person.
        user: the name of the column.
        item: the name of the column.
        rating: the name of the column; None if it is not to be compared.
        day: the name of the column, of dates or numbers of days; None if it is not to be compared.
        rating_scale: the difference at which a rating counts 1 / e.
        day_scale: the number of days at which a date counts 1 / e.
        weight: of an item, from the number of records that have it.
        eccentricity: how many standard deviations a match must be above the second.

    >>> rated = {
    ...     "user": [1, 1, 2, 2, 3],
    ...     "item": ["a", "b", "a", "c", "c"],
    ...     "rating": [5, 2, 1, 4, 3],
    ...     "day": [1, 9, 5, 3, 8],
    ... }
    >>> scoreboard(rated, {"item": ["a", "b"], "rating": [5, 2], "day": [2, 9]}).recovered
    {None: 1}
    """
    names, least = (
        Names(user=user, item=item, rating=rating, day=day),
        float(check.not_negative(eccentricity=eccentricity)),
    )
    scale = SimilarityScale(rating=rating_scale, day=day_scale, weight=weight)
    released = ratings_of(ratings, names)
    known = ratings_of(auxiliary, names, items=released.items)
    for name, table in (("ratings", released), ("auxiliary", known)):
        if not table.users:
            raise InvalidParameter(name, 0, "to have rows", "Pass at least one rating.")
    return _score_matches(released, known, match_records(released, known, scale), least)


def _score_matches(released: Ratings, known: Ratings, found: Matches, least: float) -> Scoreboard:
    named = found.named_targets(least)
    place = {label: number for number, label in enumerate(released.users)}
    truth = np.array([place.get(label, -1) for label in known.users])
    judged = known.users != (None,)
    right = named & (found.best[:, 0] == truth)
    return Scoreboard(
        attack="Scoreboard",
        goal="targets named rightly" if judged else "targets named",
        success=float(np.mean(right if judged else named)),
        baseline=1 / len(released.users),
        targets=len(known.users),
        wrong=float(np.mean(named & ~right)) if judged else None,
        silent=float(np.mean(~named)),
        soft=float(np.mean(found.own)) if judged else None,
        eccentricity=dict(zip(known.users, found.eccentricity.tolist(), strict=True)),
        lineup={
            target: tuple((released.users[record], float(p)) for record, p in zip(best, chance, strict=True))
            for target, best, chance in zip(known.users, found.best, found.chance, strict=True)
        },
        recovered={
            target: released.users[record] if sure else None
            for target, record, sure in zip(known.users, found.best[:, 0], named, strict=True)
        },
    )


@dataclass(frozen=True, kw_only=True)
class KnownItems:
    """Reports the scoreboard's success by the number of known items, for several errors of dates.

    Attributes:
        findings: by days off and number of items.

    >>> from discreet.noise import SeededBits
    >>> n = range(200)  # 40 people saw 5 of 12 films each
    >>> rated = {"user": [i // 5 for i in n], "item": [i % 12 for i in n], "day": [31 * i % 365 for i in n]}
    >>> known = scoreboard_by_items(rated, items=(2, 4), days=(0, 3), rating=None, bits=SeededBits(1))
    >>> {(days, items): found.success for (days, items), found in known.findings.items()}
    {(0, 2): 0.4, (0, 4): 1.0, (3, 2): 0.325, (3, 4): 0.85}
    >>> known.headline
    '4 known ratings, dates off by up to 0 days, name 100 % of people'
    """

    findings: dict[tuple[int, int], Scoreboard]

    def summary(self) -> str:
        """Returns the findings as text, one line for each."""
        return "\n".join(
            f"{items} known, dates off by up to {days} days: {rate(found.success)} named rightly"
            for (days, items), found in self.findings.items()
        )

    @property
    def headline(self) -> str:
        """Returns the best of the findings as the title of a chart."""
        (days, items), best = max(self.findings.items(), key=lambda pair: pair[1].success)
        return f"{items} known ratings, dates off by up to {days} days, name {rate(best.success)} of people"

    def spec(self) -> Spec:
        """Returns success against the number of known items."""
        series: dict[str, list[tuple[float, comparison_charts.Rate]]] = {}
        for (days, items), found in self.findings.items():
            series.setdefault(f"{days} days off", []).append((items, wilson_interval(found.success, found.targets)))
        lines = {name: [(x, middle) for x, (middle, _, _) in points] for name, points in series.items()}
        chance = next(iter(self.findings.values())).baseline
        return comparison_charts.curves(
            series,
            lines,
            headline=self.headline,
            across="ratings known of a person (items)",
            title="people named rightly",
            lines={"chance": chance},
            logarithmic=True,
        )

    def chart(self) -> Any:
        """Returns an Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())


def scoreboard_by_items(
    ratings: Any,
    *,
    items: Sequence[int] = (1, 2, 4, 8, 16),
    days: Sequence[int] = (3, 14),
    rating_error: float = 0.0,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    day: str | None = "day",
    weight: Weight = smoothed_weight,
    eccentricity: float = 1.5,
    bits: Bits | None = None,
) -> KnownItems:
    """Returns how many people the scoreboard names, by how much is known and how well.

    What is known is drawn anew for each number of items and error of dates, as in `known_ratings`.

    Args:
        ratings: the release without names.
        items: how many ratings of each person are known.
        days: the most a known date is off.
        rating_error: the most a known rating is off.
        user: the name of the column.
        item: the name of the column.
        rating: the name of the column; None if it is not to be compared.
        day: the name of the column; None if it is not to be compared.
        weight: of an item, from the number of records that have it.
        eccentricity: how many standard deviations a match must be above the second.
        bits: the source of randomness.

    Raises:
        InvalidParameter: if no number of items or of days is given, or a parameter is outside of its domain.

    >>> from discreet.noise import SeededBits
    >>> n = range(200)  # 40 people saw 5 of 12 films each
    >>> rated = {"user": [i // 5 for i in n], "item": [i % 12 for i in n], "day": [31 * i % 365 for i in n]}
    >>> print(scoreboard_by_items(rated, items=(1, 2, 4), days=(3,), rating=None, bits=SeededBits(1)).summary())
    1 known, dates off by up to 3 days: 0 % named rightly
    2 known, dates off by up to 3 days: 18 % named rightly
    4 known, dates off by up to 3 days: 80 % named rightly
    """
    if not len(items) or not len(days):
        raise InvalidParameter(
            "items", items, "and days to name at least one number", "Pass e.g. items=(2, 8), days=(14,)."
        )
    least = float(check.not_negative(eccentricity=eccentricity))
    source, scale, found = source_of(bits), SimilarityScale(weight=weight), {}
    released = ratings_of(ratings, Names(user=user, item=item, rating=rating, day=day))
    for off in days:
        for count in items:
            known = sampled_ratings(released, items=count, rating_error=rating_error, days=off, bits=source)
            found[off, count] = _score_matches(released, known, match_records(released, known, scale), least)
    return KnownItems(findings=found)
