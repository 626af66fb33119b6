"""The published figures on real data, where they are at hand: nothing of them is part of the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.attacks import known_ratings, scoreboard, share_unique
from discreet.attacks.linkage.attacker_tables import columns_of
from discreet.noise import SeededBits

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
AREAS = DATA / "zcta" / "zcta_demographics_acs2013.csv.gz"
MOVIES = DATA / "movielens_latest_small" / "ratings.csv.gz"


@pytest.mark.skipif(not AREAS.exists(), reason="the populations of ZIP areas are not here")
def test_nearly_two_thirds_of_the_country_are_unique() -> None:
    """Golle (2006) counts 63 % by ZIP area, birth date and sex; populations changed little until 2013."""
    areas = columns_of(AREAS)
    found = share_unique({"zip": areas["zcta"], "people": areas["total_population"]})
    assert found == pytest.approx(0.63, abs=0.02)


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.skipif(not MOVIES.exists(), reason="the ratings of films are not here")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eight_ratings_with_dates_two_weeks_off_name_nine_of_ten(seed: int) -> None:
    table = columns_of(MOVIES)
    rated: dict[str, Any] = {
        "user": table["userId"],
        "item": table["movieId"],
        "rating": table["rating"].astype(np.float64),
        "day": table["timestamp"].astype(np.float64) // 86_400,
    }
    found = scoreboard(rated, known_ratings(rated, items=8, days=14, bits=SeededBits(seed)))
    assert found.targets == 610
    assert found.success >= 0.9
    assert found.wrong is not None
    assert found.wrong <= 0.01
