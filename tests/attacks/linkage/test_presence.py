"""Who took part in ratings: records give people away, private sums stay below the bound, and a mutant does not."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.attacks import Comparison, posterior, scoreboard
from discreet.attacks.linkage.presence import ItemSums, Presence
from discreet.attacks.linkage.ratings import Names, ratings_of, sampled_ratings
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from tests.attacks.made import ratings

EPSILONS = (0.1, 1, 1000)


def _compared(seed: int = 1) -> Comparison:
    table = ratings(150, items=3000, each=20)
    return scoreboard.compare(table, epsilons=EPSILONS, limit=20, rounds=6, bits=SeededBits(seed))


def _above(found: Comparison) -> list[str]:
    """Private releases that exceed their bound by more than four standard errors of a share."""
    return [
        trial.defence
        for trial in found.private
        if trial.finding.success > (trial.finding.bound or 0) + 4 * math.sqrt(0.25 / trial.finding.targets)
    ]


def test_records_give_people_away_and_private_sums_do_not() -> None:
    found = _compared()
    assert found.raw.success > 0.9
    assert found.raw.baseline == 0.5
    weak = found["epsilon 0.1"]
    assert isinstance(weak, Presence)
    assert weak.bound == posterior(0.1, 0.5)
    assert weak.success < 0.5 + 4 * math.sqrt(0.25 / weak.targets)
    assert _above(found) == []
    assert found["epsilon 1000"].success > 0.75  # the attack is no straw man: it works where noise is negligible
    assert "half of the ratings left out" in found.summary()


def test_a_mechanism_without_noise_breaks_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Laplace, "release", lambda _self, value, bits=None: value)  # noqa: ARG005 - its signature
    assert "epsilon 0.1" in _above(_compared())


def test_the_same_seed_repeats_everything() -> None:
    assert _compared(2) == _compared(2)


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("bounds", [(0.5, 5.0), (1.0, 4.0), (2.0, 2.25)])
def test_one_person_moves_counts_and_sums_within_their_sensitivity(limit: int, bounds: tuple[float, float]) -> None:
    table = ratings(12, items=40, each=8)
    table["rating"] = table["rating"] * 3 - 5  # far outside of the bounds
    data = ratings_of(table, Names())
    known = sampled_ratings(data, items=2, rating_error=0, days=0, bits=SeededBits(1))
    sums = ItemSums(data, known, limit=limit, bounds=bounds, epsilon=Fraction(1))
    for person in range(12):
        counts, totals = sums.exact(np.arange(12) == person, SeededBits(person))
        assert np.abs(counts).sum() == min(limit, 8)
        assert np.abs(counts).sum() <= sums.count.sensitivity
        assert np.abs(totals).sum() <= sums.sum.sensitivity
    assert sums.count.epsilon + sums.sum.epsilon == 1
    if limit == 100:  # nobody's ratings are chosen among: what is released is the sum of what everybody brings
        everybody = sums.exact(np.ones(12, dtype=np.bool_), SeededBits(0))
        each = [sums.exact(np.arange(12) == person, SeededBits(0)) for person in range(12)]
        assert np.array_equal(everybody, np.sum(each, axis=0))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("limit", {"limit": 0}),
        ("rounds", {"rounds": 0}),
        ("bounds", {"bounds": (5, 1)}),
        ("epsilon", {"epsilons": (-1,)}),
    ],
)
def test_bad_input_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        scoreboard.compare(ratings(10), **given)
    assert refused.value.name == name


def test_too_few_people_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least 4 people"):
        scoreboard.compare(ratings(3))
