"""Uniqueness: classes by brute force, the predicted share, and which columns to coarsen."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.attacks import uniqueness
from discreet.attacks.linkage.attacker_tables import forms
from discreet.attacks.linkage.uniqueness import alone
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms

ROWS = st.lists(
    st.tuples(st.sampled_from(["02139", "02138", "94103"]), st.integers(0, 30), st.sampled_from(["F", "M", None])),
    min_size=1,
    max_size=40,
)


def test_the_predicted_share_of_the_unique() -> None:
    assert alone(7500, 2 * 365 * 80) == pytest.approx(0.8795, abs=5e-5)
    assert alone(1, 10) == 1


def test_people_spread_evenly_are_as_unique_as_predicted() -> None:
    people, cells = 7500, 58_400
    cell = np.floor(uniforms(people, bits=SeededBits(3)) * cells)
    found = uniqueness({"cell": cell}, ["cell"], cells=cells)
    assert found.predicted is not None
    assert found.predicted == pytest.approx(0.8795, abs=5e-5)
    # Four standard errors; people collide in pairs, which at most doubles the variance of a share.
    error = 4 * math.sqrt(2 * found.predicted * (1 - found.predicted) / people)
    assert abs(found.success - found.predicted) < error < 0.025
    wrong = uniqueness({"cell": cell}, ["cell"], cells=cells // 2)
    assert wrong.predicted is not None
    assert abs(wrong.success - wrong.predicted) > error


@given(ROWS)
def test_classes_by_brute_force(rows: list[tuple[str, int, str | None]]) -> None:
    table = dict(zip(("zip", "age", "sex"), (list(part) for part in zip(*rows, strict=True)), strict=True))
    found = uniqueness(table, ["zip", "age", "sex"])
    sizes = Counter(rows)
    assert found.success == sum(size == 1 for size in sizes.values()) / len(rows)
    assert (found.classes, found.k) == (len(sizes), min(sizes.values()))
    assert sum(found.sizes.values()) == pytest.approx(1)
    assert found.sizes["3 to 5"] == pytest.approx(sum(s for s in sizes.values() if 3 <= s <= 5) / len(rows))


@given(ROWS)
def test_every_coarser_form_is_tried_and_the_best_is_first(rows: list[tuple[str, int, str | None]]) -> None:
    table = dict(zip(("zip", "age", "sex"), (list(part) for part in zip(*rows, strict=True)), strict=True))
    found = uniqueness(table, ["zip", "age", "sex"])
    expected = {}
    for name, column in table.items():
        for form in forms(np.array(column, dtype=object)):
            coarse = table | {name: list(form.apply_to(np.array(column, dtype=object)))}
            sizes = Counter(zip(*coarse.values(), strict=True))
            expected[name, form.name] = sum(size == 1 for size in sizes.values()) / len(rows)
    assert {(one.column, one.form): one.unique for one in found.coarsen} == expected
    assert [one.unique for one in found.coarsen] == sorted(expected.values())
    assert max(expected.values()) <= found.success  # a coarser column never singles anybody out


def test_the_finding_reads_and_draws() -> None:
    found = uniqueness({"zip": ["02139", "02138", "94103"], "sex": ["F", "F", "M"]}, ["zip", "sex"], cells=10)
    assert "With zip coarsened to first 3 characters, 33 % would be unique." in found.summary()
    spec = found.spec()
    assert [row["name"] for row in spec["data"]["values"]][:2] == ["1: unique", "2"]
    assert spec["title"]["text"] == ["100 % of 3 people are the only ones with their zip and sex"]


def test_bad_input_is_refused() -> None:
    for table, quasi, name in (({"a": [1]}, ["b"], "quasi"), ({"a": [1]}, [], "quasi"), ({"a": []}, ["a"], "table")):
        with pytest.raises(InvalidParameter) as refused:
            uniqueness(table, quasi)
        assert refused.value.name == name
    with pytest.raises(InvalidParameter, match="cells"):
        uniqueness({"a": [1]}, ["a"], cells=0)
