"""The k-anonymity family: the published example, definitions by brute force, and what can be ruled out."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.attacks import k_anonymity
from discreet.attacks.linkage.k_anonymity import Anonymity
from discreet.errors import InvalidParameter

EXAMPLE = {"area": list("AAABBBB"), "illness": ["flu", "flu", "cancer", "flu", "hiv", "hiv", "cancer"]}
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=25)


def _found(rows: list[tuple[int, int]], **given: Any) -> Anonymity:
    table = {"area": [area for area, _ in rows], "level": [level for _, level in rows]}
    return k_anonymity(table, quasi=["area"], sensitive="level", **given)


def _classes(rows: list[tuple[int, int]]) -> list[Counter[int]]:
    return [Counter(level for other, level in rows if other == area) for area in dict.fromkeys(a for a, _ in rows)]


def test_the_example() -> None:
    found = k_anonymity(EXAMPLE, quasi=["area"], sensitive="illness")
    assert (found.k, found.distinct_l, found.success) == (3, 2, 0)
    assert found.entropy_l == pytest.approx(1.8899, abs=5e-5)
    assert found.entropy_l == pytest.approx(math.exp(0.6365), abs=1e-4)
    assert found.t == pytest.approx(2 / 7)
    assert dict(zip(found.classes, found.distances, strict=True)) == pytest.approx({("A",): 2 / 7, ("B",): 3 / 14})
    assert found.recursive_c(2) == 2  # A: 2 < c * 1
    assert not found.recursive(2, 2)
    assert found.recursive(2.1, 2)
    assert found.recursive_c(3) == math.inf
    # Without flu, A has cancer alone: one of its three people is known. Without cancer too, B keeps hiv: two more.
    assert found.ruling_out("flu") == pytest.approx(1 / 7)
    assert found.ruling_out("cancer") == pytest.approx(2 / 7)
    assert found.ruling_out("flu", "cancer") == pytest.approx(2 / 7)
    assert [found.ruling_out_any(number) for number in (0, 1, 2)] == pytest.approx([0, 3 / 7, 1])


@given(ROWS)
def test_definitions_by_brute_force(rows: list[tuple[int, int]]) -> None:
    found, classes, everybody = _found(rows), _classes(rows), Counter(level for _, level in rows)
    assert found.k == min(c.total() for c in classes)
    assert found.distinct_l == min(len(c) for c in classes)
    entropies = [-sum(n / c.total() * math.log(n / c.total()) for n in c.values()) for c in classes]
    assert found.entropy_l == pytest.approx(math.exp(min(entropies)))
    apart = [sum(abs(c[v] / c.total() - everybody[v] / len(rows)) for v in everybody) / 2 for c in classes]
    assert found.t == pytest.approx(max(apart))
    assert found.success == sum(c.total() for c in classes if len(c) == 1) / len(rows)
    for depth in (1, 2, 3):
        falling = [sorted(c.values(), reverse=True) for c in classes]
        needed = max(r[0] / sum(r[depth - 1 :]) if len(r) >= depth else math.inf for r in falling)
        assert found.recursive_c(depth) == pytest.approx(needed)


@given(ROWS)
def test_the_distance_of_ordered_values_moves_earth(rows: list[tuple[int, int]]) -> None:
    """Over ranks in a line, the least work is the sum of what crosses each gap; every gap is 1 / (values - 1) wide."""
    found, everybody = _found(rows, ordered=range(5)), Counter(level for _, level in rows)
    moved = []
    for c in _classes(rows):
        below = [sum(c[v] for v in range(g + 1)) / c.total() for g in range(4)]
        whole = [sum(everybody[v] for v in range(g + 1)) / len(rows) for g in range(4)]
        moved.append(sum(abs(a - b) for a, b in zip(below, whole, strict=True)) / 4)
    assert found.t == pytest.approx(max(moved))


@given(ROWS, st.sets(st.integers(0, 4)))
def test_what_is_ruled_out_by_brute_force(rows: list[tuple[int, int]], wanted: set[int]) -> None:
    found, classes = _found(rows), dict(zip(dict.fromkeys(a for a, _ in rows), _classes(rows), strict=True))
    out = wanted & set(found.values)
    known = [
        len(classes[area]) == 1 or (level not in out and len(set(classes[area]) - out) == 1) for area, level in rows
    ]
    assert found.ruling_out(*out) == pytest.approx(sum(known) / len(rows))
    for number in (0, 1, 2):
        # Somebody who chooses which values to rule out, separately for each person, and never the true one.
        sure = [
            any(
                set(classes[area]) - set(chosen) == {level}
                for size in range(number + 1)
                for chosen in combinations(set(classes[area]) - {level}, size)
            )
            for area, level in rows
        ]
        assert found.ruling_out_any(number) == pytest.approx(sum(sure) / len(rows))


def test_missing_values_are_a_value() -> None:
    table = {"area": np.array([1, 1, 2, 2]), "level": np.array([np.nan, np.nan, 1.0, np.nan])}
    found = k_anonymity(table, quasi=["area"], sensitive="level")
    assert (found.values, found.success, found.distinct_l) == ((None, 1.0), 0.5, 1)
    with pytest.raises(InvalidParameter, match="sorted"):
        k_anonymity(table, quasi=["area"], sensitive="level", ordered=True)
    assert k_anonymity(table, quasi=["area"], sensitive="level", ordered=[None, 1.0]).t == pytest.approx(0.25)


def test_homogeneous_classes_tell_everything_whatever_k() -> None:
    table = {"area": ["A"] * 50 + ["B"] * 50, "illness": ["hiv"] * 50 + ["flu", "cancer"] * 25}
    found = k_anonymity(table, quasi=["area"], sensitive="illness")
    assert (found.k, found.success, found.entropy_l) == (50, 0.5, 1)
    assert "50 % of 100 people whose illness is certain despite k = 50" in found.summary()
    assert [row["name"] for row in found.spec()["data"]["values"]][:3] == [f"{number} ruled out" for number in range(3)]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("quasi", {"quasi": ["street"]}),
        ("sensitive", {"sensitive": "name"}),
        ("ordered", {"ordered": ["flu", "hiv"]}),
    ],
)
def test_bad_input_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        k_anonymity(EXAMPLE, **{"quasi": ["area"], "sensitive": "illness"} | given)
    assert refused.value.name == name
    with pytest.raises(InvalidParameter, match="to occur"):
        k_anonymity(EXAMPLE, quasi=["area"], sensitive="illness").ruling_out("cold")
