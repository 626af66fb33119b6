from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import attacks
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import coins, uniforms

TRACKER = [[1] * 10, [1] * 9 + [0], [1] * 8 + [0, 0], [1] * 5 + [0] * 5, [0] * 5 + [1] * 5]


def rank(rows: list[list[int]]) -> int:
    """By elimination on fractions, the slow and obvious way."""
    work, done = [[Fraction(entry) for entry in row] for row in rows], 0
    for column in range(len(work[0])):
        pivot = next((row for row in range(done, len(work)) if work[row][column]), None)
        if pivot is None:
            continue
        work[done], work[pivot] = work[pivot], work[done]
        for row in range(done + 1, len(work)):
            factor = work[row][column] / work[done][column]
            work[row] = [entry - factor * above for entry, above in zip(work[row], work[done], strict=True)]
        done += 1
    return done


matrices = st.integers(1, 5).flatmap(
    lambda people: st.lists(st.lists(st.integers(-2, 2), min_size=people, max_size=people), min_size=1, max_size=6)
)


@given(matrices)
def test_exposed_people_are_those_whose_unit_vector_does_not_raise_the_rank(queries: list[list[int]]) -> None:
    found = attacks.isolate(queries)
    people = len(queries[0])
    units = [[int(place == person) for place in range(people)] for person in range(people)]
    assert found.exposed == tuple(
        person for person in range(people) if rank([*queries, units[person]]) == rank(queries)
    )
    for person, factors in found.combinations.items():
        columns = zip(*queries, strict=True)
        assert [sum(f * entry for f, entry in zip(factors, column, strict=True)) for column in columns] == units[person]


def test_values_follow_from_exact_answers() -> None:
    values = [12, 7, 30, 5, 9, 21, 3, 14, 8, 100]
    found = attacks.isolate(TRACKER, [sum(w * v for w, v in zip(row, values, strict=True)) for row in TRACKER])
    assert found.recovered == {8: 8, 9: 100}
    scored = attacks.isolate(TRACKER, np.array(TRACKER) @ values, truth=values)
    assert (scored.success, scored.measured, scored.targets) == (0.2, True, 10)
    assert "2 people are exposed" in scored.summary()


def test_rational_factors() -> None:
    # A + B, B + C and A + C give every one of them by halves.
    found = attacks.isolate([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [3, 5, 5])
    half = Fraction(1, 2)
    assert found.combinations[0] == (half, -half, half)
    assert found.recovered == {0: Fraction(3, 2), 1: Fraction(3, 2), 2: Fraction(7, 2)}


def test_nobody_is_exposed_by_two_disjoint_groups() -> None:
    found = attacks.isolate([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])
    assert (found.exposed, found.success, found.recovered) == ((), 0.0, None)
    assert "No combination" in found.summary()


def test_many_random_groups_expose_everybody_without_rounding_errors() -> None:
    asked = coins((60, 60), bits=SeededBits(1)).astype(np.int64)
    values = (1000 * uniforms(60, bits=SeededBits(2))).astype(np.int64)
    found = attacks.isolate(asked, [int(total) for total in asked @ values], truth=values, tolerance=0)
    assert len(found.exposed) == 60
    assert found.success == 1  # factors have dozens of digits; floats would not do


def test_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = attacks.isolate.compare(TRACKER, epsilons=(1, 10, 1000), trials=400, bits=SeededBits(3))
    chance, people, trials = 1 / 1001, 10, 400
    # Two of ten are exposed, the others are guessed.
    assert compared.raw.success == pytest.approx(0.2 + 0.8 * chance)
    assert compared["fewer than 3 withheld"].success == compared.raw.success
    assert compared["rounded to 10"].success < 0.05
    for trial in compared.private:
        bound = trial.finding.bound or 0.0
        # A rate is a mean of 0/1 scores: four standard errors of so many.
        assert trial.finding.success <= bound + 4 * (chance / (people * trials)) ** 0.5
    assert compared["epsilon 1"].success < compared["epsilon 1000"].success < 0.2
    assert compared.spec()["layer"]

    monkeypatch.setattr(Laplace, "release", lambda _self, value, **_: value)
    broken = attacks.isolate.compare(TRACKER, epsilons=(1,), bits=SeededBits(3))
    assert broken["epsilon 1"].success > 50 * (broken["epsilon 1"].bound or 1)


@pytest.mark.parametrize(
    ("queries", "more", "name"),
    [
        ([1, 0], {}, "queries"),
        ([[0.5, 1.0]], {}, "queries"),
        ([[1, 0]], {"answers": [1, 2]}, "answers"),
        ([[1, 0]], {"answers": [1], "truth": [1]}, "truth"),
        ([[1, 0]], {"truth": [1, 2]}, "truth"),
    ],
)
def test_bad_input_is_refused(queries: Any, more: Any, name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        attacks.isolate(queries, **more)
    assert refused.value.name == name
