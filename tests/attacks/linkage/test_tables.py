"""Coarser forms of columns, and tables made k-anonymous by them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.attacks import k_anonymised
from discreet.attacks.linkage.attacker_tables import AS_IT_IS, forms, number_values
from discreet.errors import InvalidParameter
from tests.attacks.made import people


@pytest.mark.parametrize(
    ("values", "coarse"),
    [
        (["1980-05-17", "1979-01-02"], [["1980-05", "1979-01"], ["1980", "1979"], ["1980s", "1970s"]]),
        ([dt.date(1980, 5, 17), None], [["1980-05", None], ["1980", None], ["1980s", None]]),
        (["17", "90"], [["from 10 below 20", "from 90 below 100"]]),
        ([-5, 7], [["from -10 below 0", "from 0 below 10"]]),
        ([3.5, 212.0], [["from 0 below 10", "from 210 below 220"], ["from 0 below 100", "from 200 below 300"]]),
        (["02139", "94103"], [["021", "941"], ["02", "94"], ["0", "9"]]),
        (["F", "M"], []),
        ([True, False], []),
    ],
)
def test_forms_follow_from_values(values: list[Any], coarse: list[list[Any]]) -> None:
    column = np.array(values, dtype=object)
    found = forms(column)
    assert found[-1].name == "dropped"
    assert [list(form.apply_to(column)) for form in found[:-1]] == coarse
    assert list(found[-1].apply_to(column)) == [None] * len(values)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("FM"), st.sampled_from("abcd")), min_size=1, max_size=60),
    st.integers(2, 7),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_every_class_that_is_kept_has_k_people(rows: list[tuple[int, str, str]], k: int, suppress: float) -> None:
    age, sex, kind = zip(*rows, strict=True)
    made = k_anonymised({"age": age, "sex": sex, "kind": kind}, ["age", "sex"], k=k, suppress=suppress)
    classes = Counter(zip(made.columns["age"], made.columns["sex"], strict=True))
    assert all(size >= k for size in classes.values())
    assert made.suppressed == pytest.approx(1 - sum(classes.values()) / len(rows))
    assert made.suppressed <= suppress or len(rows) < k  # everything coarsened away leaves one class of all
    assert [kind[row] for row in made.kept] == list(made.columns["kind"])


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_of_numpy_are_dates(unit: str) -> None:
    column = np.array(["1980-05-17", "1979-01-02", "NaT"], dtype=f"datetime64[{unit}]")
    assert list(forms(column)[1].apply_to(column)) == ["1980", "1979", None]
    assert number_values(column).tolist() == [0, 1, 2]


def test_missing_values_are_equal() -> None:
    assert number_values(np.array([1.0, np.nan, np.nan, 2.0])).tolist() == [0, 1, 1, 2]


def test_no_column_can_be_made_finer() -> None:
    table, quasi = people(600), ["zip", "birth", "sex"]
    form = k_anonymised(table, quasi, k=5, suppress=0.05).form
    columns = {name: np.array(table[name], dtype=object) for name in quasi}
    for name in quasi:
        ladder = (AS_IT_IS, *forms(columns[name]))
        rung = [step.name for step in ladder].index(form[name].name)
        if rung:
            finer = form | {name: ladder[rung - 1]}
            sizes = Counter(zip(*(finer[other].apply_to(columns[other]) for other in quasi), strict=True))
            assert sum(size for size in sizes.values() if size < 5) > 0.05 * 600


def test_a_column_that_is_kept_stays_finer() -> None:
    table, quasi = people(600), ["zip", "birth", "sex"]
    kept = {keep: k_anonymised(table, quasi, k=5, keep=keep).columns for keep in ("zip", "birth")}
    assert len(set(kept["zip"]["zip"])) > len(set(kept["birth"]["zip"]))
    assert len(set(kept["birth"]["birth"])) > len(set(kept["zip"]["birth"]))


@pytest.mark.parametrize(("name", "given"), [("k", {"k": 1}), ("suppress", {"suppress": 1.5}), ("quasi", {})])
def test_bad_input_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        k_anonymised({"age": [1, 2]}, ["age"] if given else ["size"], **given)
    assert refused.value.name == name
