"""Two k-anonymous releases laid one over the other, and two private ones."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.attacks import Comparison, intersection, k_anonymity
from discreet.attacks.linkage.attribute_disclosure import Disclosure
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from tests.attacks.made import people

QUASI = ["zip", "birth", "sex"]
ROUNDS = 20
PEOPLE = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("abc"), st.sampled_from(["A", "B", "AB"])),
    min_size=1,
    max_size=20,
)


@given(PEOPLE)
def test_values_left_by_brute_force(rows: list[tuple[int, int, str, str]]) -> None:
    def release(name: str, area: int) -> dict[str, list[Any]]:
        kept = [(place, row) for place, row in enumerate(rows) if name in row[3]]
        return {"who": [p for p, _ in kept], "area": [r[area] for _, r in kept], "value": [r[2] for _, r in kept]}

    a, b = release("A", 0), release("B", 1)
    both = [place for place, row in enumerate(rows) if row[3] == "AB"]
    if not both:
        with pytest.raises(InvalidParameter, match="both releases"):
            intersection(a, b, on=["area"], sensitive="value", person="who")
        return
    found = intersection(a, b, on=["area"], sensitive="value", person="who")
    sets = {
        who: [
            {row[2] for row in rows if name in row[3] and row[area] == rows[who][area]}
            for name, area in (("A", 0), ("B", 1))
        ]
        for who in both
    }
    resolved = {who: rows[who][2] for who, (first, second) in sets.items() if len(first & second) == 1}
    assert found.recovered == resolved
    assert found.success == len(resolved) / len(both)
    assert found.alone == tuple(sum(len(sets[who][place]) == 1 for who in both) / len(both) for place in (0, 1))
    assert found.left == pytest.approx(sum(len(first & second) for first, second in sets.values()) / len(both))


def test_two_releases_that_are_safe_by_themselves_are_not_together() -> None:
    table = people(600, areas=100, years=100, illnesses=60)
    releases = []
    for area in (table["zip"], [birth[:4] for birth in table["birth"]]):
        kept = [place for place in table["id"] if area.count(area[place]) >= 5]
        releases.append({"id": kept, "area": [area[p] for p in kept], "illness": [table["illness"][p] for p in kept]})
    assert [k_anonymity(part, quasi=["area"], sensitive="illness").k for part in releases] == [5, 5]
    found = intersection(*releases, on=["area"], sensitive="illness", person="id")
    assert max(found.alone) == 0
    assert found.success > 0.1
    assert all(table["illness"][who] == value for who, value in found.recovered.items())


def test_a_value_that_changed_in_between_is_not_told_rightly() -> None:
    a = {"who": [1, 2], "area": ["x", "x"], "value": ["flu", "hiv"]}
    b = {"who": [1, 3], "area": ["y", "y"], "value": ["hiv", "cold"]}
    found = intersection(a, b, on=["area"], sensitive="value", person="who")
    assert (found.recovered, found.success) == ({1: "hiv"}, 0)


def _compared(seed: int = 1) -> Comparison:
    return intersection.compare(
        people(2000), quasi=QUASI, sensitive="illness", epsilons=(0.1, 1, 10), rounds=ROUNDS, bits=SeededBits(seed)
    )


def _above(found: Comparison) -> list[str]:
    """Private releases whose rate exceeds its bound by more than four standard errors of a share of all guesses."""
    above = []
    for trial in found.private:
        bound = trial.finding.bound or 0
        if trial.finding.success > bound + 4 * math.sqrt(bound * (1 - bound) / trial.finding.targets / ROUNDS) + 1e-12:
            above.append(trial.defence)
    return above


@pytest.mark.ci
def test_two_anonymous_releases_tell_more_than_one_and_private_ones_keep_the_bound() -> None:
    found = _compared()
    assert found.raw.success > 0.99
    assert found["5-anonymous, both"].success > found["5-anonymous, one"].success + 0.03
    assert found["epsilon 0.1"].success < found.raw.baseline + 0.05
    assert isinstance(found["epsilon 1"], Disclosure)
    assert found["epsilon 1"].success > found["epsilon 1"].without  # a person's rows do count for something
    assert _above(found) == []
    assert found == _compared()


def test_a_mechanism_without_noise_breaks_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Laplace, "release", lambda _self, value, bits=None: value)  # noqa: ARG005 - its signature
    assert set(_above(_compared())) == {"epsilon 0.1", "epsilon 1"}


@pytest.mark.parametrize(
    ("name", "given"), [("common", {"common": 1}), ("rounds", {"rounds": 0}), ("quasi", {"sensitive": "name"})]
)
def test_bad_input_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        intersection.compare(people(20), **{"quasi": QUASI, "sensitive": "illness"} | given)
    assert refused.value.name == name
