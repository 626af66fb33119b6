"""The scoreboard: the published example, scores by brute force, and how many a few known ratings name."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pytest

from discreet.attacks import known_ratings, scoreboard, scoreboard_by_items
from discreet.attacks.linkage import ratings as internals
from discreet.attacks.linkage.ratings import Names, SimilarityScale, capped_weight, ratings_of, score, smoothed_weight
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from tests.attacks.made import ratings


def _scores(table: Any, known: Any, scale: SimilarityScale) -> Any:
    released = ratings_of(table, Names())
    aux = ratings_of(known, Names(), items=released.items)
    return np.concatenate([block for _, block in score(released, aux, scale)])


def test_the_score_of_one_item() -> None:
    """A known rating of 5 on day 100, a record with 4 on day 110, and ten records with the item."""
    table = {"user": range(10), "item": ["x"] * 10, "rating": [4] + [1] * 9, "day": [110] + [5000] * 9}
    found = _scores(table, {"item": ["x"], "rating": [5], "day": [100]}, SimilarityScale(weight=capped_weight))
    assert found[0, 0] == pytest.approx(0.534160, abs=5e-7)
    smooth = _scores(table, {"item": ["x"], "rating": [5], "day": [100]}, SimilarityScale())
    assert smooth[0, 0] == pytest.approx(0.534160 * math.log(10) / math.log(11), abs=1e-6)


@pytest.mark.parametrize("weight", [smoothed_weight, capped_weight])
@pytest.mark.parametrize("block", [1, 50, 4_000_000])
def test_scores_by_brute_force(weight: Any, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internals, "_BLOCK", block)
    table = ratings(12, items=15, each=6)
    known = known_ratings(table, items=3, rating_error=1, days=9, bits=SeededBits(4))
    known["day"][::4] = np.nan  # some dates are not known
    rows = list(zip(*(list(table[name]) for name in ("user", "item", "rating", "day")), strict=True))
    expected = np.zeros((12, 12))
    for target, item, stars, day in zip(*(known[name] for name in ("user", "item", "rating", "day")), strict=True):
        support = sum(other == item for _, other, _, _ in rows)
        for user, other, star, on in rows:
            if other == item:
                near = math.exp(-abs(stars - star) / 1.5) + (0 if np.isnan(day) else math.exp(-abs(day - on) / 30))
                expected[target, user] += near * float(weight(np.array([float(support)]))[0])
    assert _scores(table, known, SimilarityScale(weight=weight)) == pytest.approx(expected)


def test_eight_known_ratings_name_nearly_everybody() -> None:
    table = ratings(200)
    found = scoreboard(table, known_ratings(table, items=8, days=14, bits=SeededBits(1)))
    assert found.success >= 0.9
    assert found.wrong == 0
    assert found.baseline == 1 / 200
    assert found.success + (found.wrong or 0) + found.silent == pytest.approx(1)
    assert found.recovered[7] in (7, None)


def test_what_is_known_about_strangers_names_few() -> None:
    found = scoreboard(ratings(200), known_ratings(ratings(200, seed=2), items=8, days=14, bits=SeededBits(1)))
    assert found.success < 0.05
    assert found.silent > 0.5


def test_matches_need_to_stand_out() -> None:
    table = ratings(60)
    known = known_ratings(table, items=2, bits=SeededBits(3))
    bold, careful = (scoreboard(table, known, eccentricity=e) for e in (0, 6))
    assert bold.silent == 0
    assert careful.silent > 0
    named = {target for target, record in careful.recovered.items() if record is not None}
    assert named == {target for target, far in careful.eccentricity.items() if far >= 6}


def test_the_base_of_the_logarithm_does_not_matter() -> None:
    table = ratings(40)
    known = known_ratings(table, items=4, bits=SeededBits(3))
    natural, binary = (
        scoreboard(table, known),
        scoreboard(table, known, weight=lambda s: smoothed_weight(s) * np.log(2)),
    )
    assert list(natural.eccentricity.values()) == pytest.approx(list(binary.eccentricity.values()))
    assert natural.recovered == binary.recovered


@pytest.mark.parametrize("users", [4, 30])
def test_the_soft_version_is_a_distribution(users: int) -> None:
    table = ratings(users, items=8, each=4)
    known = known_ratings(table, items=2, rating_error=5, days=900, bits=SeededBits(3))
    found, scores = scoreboard(table, known), _scores(table, known, SimilarityScale())
    weights = np.exp(scores / scores.std(axis=1, keepdims=True))
    chances = weights / weights.sum(axis=1, keepdims=True)
    for target, lineup in found.lineup.items():
        assert len(lineup) == min(5, users)
        assert [chance for _, chance in lineup] == pytest.approx(sorted(chances[target], reverse=True)[: len(lineup)])
        assert all(chance == pytest.approx(chances[target, record]) for record, chance in lineup)
    assert found.soft == pytest.approx(np.mean(np.diag(chances)))


def test_one_person_without_a_name_and_dates_as_dates() -> None:
    days = [dt.date(2005, 3, 1), dt.date(2005, 6, 1), dt.date(2006, 1, 1), dt.date(2001, 1, 1), dt.date(2002, 1, 1)]
    table = {"user": list("abcde"), "item": [1, 1, 1, 2, 3], "rating": [3, 3, 3, 1, 1]}
    known = {"item": [1, 99], "rating": [3, 5], "day": ["2005-06-03", "2005-06-03"]}
    found = scoreboard(table | {"day": days}, known, eccentricity=0.5)
    assert (found.recovered, found.wrong, found.soft) == ({None: "b"}, None, None)
    for unit in ("D", "ns"):
        same = scoreboard(table | {"day": np.array(days, dtype=f"datetime64[{unit}]")}, known, eccentricity=0.5)
        assert same == found
    assert "targets named" in found.summary()


def test_items_alone_count_where_nothing_else_is_compared() -> None:
    table = {"user": list("aabbc"), "item": [1, 2, 2, 3, 3]}
    found = scoreboard(table, {"item": [1, 2]}, rating=None, day=None, eccentricity=0.5)
    assert found.recovered == {None: "a"}


def test_a_single_record_stands_out_from_nothing() -> None:
    found = scoreboard({"user": [1], "item": [1], "rating": [1], "day": [1]}, {"item": [1], "rating": [1], "day": [1]})
    assert found.recovered == {None: None}


def test_known_ratings_are_a_persons_own_with_errors_in_their_range() -> None:
    table = ratings(100)
    known = known_ratings(table, items=6, rating_error=0.75, days=5, bits=SeededBits(9))
    own = {(u, i): (r, d) for u, i, r, d in zip(*(table[n] for n in ("user", "item", "rating", "day")), strict=True)}
    assert np.bincount(known["user"].astype(int)).tolist() == [6] * 100
    assert len(set(zip(known["user"], known["item"], strict=True))) == 600
    off = np.array(
        [
            (stars - own[user, item][0], day - own[user, item][1])
            for user, item, stars, day in zip(*(known[n] for n in ("user", "item", "rating", "day")), strict=True)
        ]
    )
    assert set(off[:, 1]) == set(range(-5, 6))  # each of 11 values is missed by 600 draws with chance below 1e-24
    assert 0.7 < np.abs(off[:, 0]).max() <= 0.75


def test_more_known_items_name_more() -> None:
    found = scoreboard_by_items(ratings(150), items=(1, 8), days=(3, 60), rating_error=1, bits=SeededBits(1))
    assert found.findings[3, 8].success > found.findings[3, 1].success
    assert found.findings[3, 1].success > found.findings[60, 1].success
    assert "8 known ratings" in found.headline
    assert {row["series"] for row in found.spec()["data"]["values"]} == {"3 days off", "60 days off"}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("rating_scale", {"rating_scale": 0}),
        ("day_scale", {"day_scale": -1}),
        ("eccentricity", {"eccentricity": -1}),
        ("item", {"item": "film"}),
        ("day", {"day": "item"}),
    ],
)
def test_bad_input_is_refused(name: str, given: dict[str, Any]) -> None:
    table = {"user": [1], "item": ["x"], "rating": [1], "day": [1]}
    with pytest.raises(InvalidParameter) as refused:
        scoreboard(table, table, **given)
    assert refused.value.name == name


def test_a_match_that_stands_out_by_less_than_nothing_is_refused_by_items_too() -> None:
    with pytest.raises(InvalidParameter) as refused:
        scoreboard_by_items({"user": [1], "item": ["x"], "rating": [1], "day": [1]}, eccentricity=-1)
    assert refused.value.name == "eccentricity"
