"""How unique somebody is, from the number of people in an area."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from discreet.attacks import how_unique, share_unique
from discreet.errors import InvalidParameter

AGES = {("F", 0): 30, ("F", 20): 50, ("M", 0): 40, ("M", 20): 80}
"""The last band is as wide as the one before it: 20 years."""


def test_without_shares_people_are_spread_evenly() -> None:
    found = how_unique("02139", "1980-05-17", "F", population=7500, today="2025-01-01")
    assert found.success == pytest.approx((1 - 1 / (2 * 80 * 365.25)) ** 7499, rel=1e-12)
    assert found.success == pytest.approx(0.8795, abs=2e-4)  # the same with years of 365 days
    assert found.others == pytest.approx(7499 / 58_440)


def test_shares_of_age_and_sex_are_those_of_the_band() -> None:
    found = how_unique("here", "2000-06-01", "M", population={"here": 1000}, ages=AGES, today="2025-01-01")
    chance = 80 / 200 / (20 * 365.25)
    assert found.others == pytest.approx(999 * chance)
    assert found.success == pytest.approx((1 - chance) ** 999)
    # The day before the twentieth birthday belongs to the first band.
    young = how_unique("here", "2005-01-02", "M", population={"here": 1000}, ages=AGES, today="2025-01-01")
    assert young.others == pytest.approx(999 * 40 / 200 / (20 * 365.25))


def test_a_table_of_areas_is_as_good_as_a_mapping() -> None:
    table = {"zcta": ["a", "b"], "people": ["700", "9000"]}
    assert share_unique(table, ages=AGES) == share_unique({"a": 700, "b": 9000}, ages=AGES)
    found = how_unique("b", "1990-01-01", "F", population=table, ages=AGES, today="2025-01-01")
    assert found.targets == 9000
    assert found == how_unique("b", "1990-01-01", "F", population=np.int64(9000), ages=AGES, today="2025-01-01")


def test_the_share_of_all_is_the_mean_over_people() -> None:
    areas = {"a": 700, "b": 9000, "nobody": 0}
    expected = 0.0
    for area, count in areas.items():
        for (sex, first), many in AGES.items():
            birth = f"{2024 - first}-06-01"
            if count:
                alone = how_unique(area, birth, sex, population=areas, ages=AGES, today="2025-01-01").success
                expected += count / 9700 * many / 200 * alone
    assert share_unique(areas, ages=AGES) == pytest.approx(expected, rel=1e-12)


def test_more_people_hide_better() -> None:
    chances = [how_unique("x", "1980-01-01", "F", population=n, today="2025-01-01").success for n in (1, 100, 10**5)]
    assert chances[0] == 1
    assert chances == sorted(chances, reverse=True)
    assert math.isclose(chances[2], math.exp(-(10**5) / 58_440), rel_tol=1e-4)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("postcode", {"population": {"b": 10}}),
        ("population", {"population": 0}),
        ("population", {"population": 10.5}),
        ("population", {"population": {"a": [1], "b": [2], "c": [3]}}),
        ("sex", {"population": 10, "ages": {("M", 0): 1}}),
        ("ages", {"population": 10, "ages": {("F", 0): 0}}),
        ("today", {"population": 10, "today": "yesterday"}),
        ("birth", {"population": 10, "today": "1900-01-01"}),
    ],
)
def test_bad_input_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        how_unique("a", "1980-05-17", "F", **{"today": "2025-01-01"} | given)
    assert refused.value.name == name
