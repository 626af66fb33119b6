"""Linkage: pairs by brute force, confirmation by a population, and score kept by the truth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.attacks import linkage
from discreet.errors import InvalidParameter
from tests.attacks.made import people

Row = tuple[int, str | None]
CELLS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["F", "M", None])), min_size=1, max_size=12)


def _table(rows: list[Row]) -> dict[str, list[Any]]:
    return {"age": [age for age, _ in rows], "sex": [sex for _, sex in rows]}


@given(CELLS, CELLS, st.none() | CELLS)
def test_matches_by_brute_force(released: list[Row], named: list[Row], others: list[Row] | None) -> None:
    population = None if others is None else others + released
    found = linkage(
        _table(released),
        _table(named),
        on=["age", "sex"],
        population=None if others is None else _table(population or []),
    )
    pairs = [(i, j) for i, a in enumerate(released) for j, b in enumerate(named) if a == b and None not in a]
    both = [(i, j) for i, j in pairs if released.count(released[i]) == 1 and named.count(named[j]) == 1]
    sure = both if population is None else [(i, j) for i, j in both if population.count(released[i]) == 1]
    assert [tuple(pair) for pair in found.recovered] == sure
    assert (found.matches, found.confirmed) == (len(pairs), len(sure))
    assert found.ambiguous == len({i for i, _ in pairs}) - len(sure)
    assert found.overstated == (None if population is None else len(both) - len(sure))
    assert found.success == len(sure) / len(released)
    assert found.baseline == 1 / len(named)


def test_the_truth_only_keeps_score() -> None:
    # Rows 0 and 1 match one name each; the second name belongs to somebody else.
    released = {"zip": ["a", "b", "c"], "who": [1, 2, 3], "illness": ["flu", "hiv", "flu"]}
    named = {"zip": ["a", "b", "d", "d"], "who": [1, 9, 3, 4]}
    found = linkage(released, named, on=["zip"], truth="who", sensitive="illness")
    assert (found.success, found.right, found.confirmed) == (1 / 3, 0.5, 2)
    assert found.baseline == pytest.approx(2 / 3 / 4)  # two of three rows have a name on the list, of four names
    assert found.told == 2
    assert "overstates the risk" in found.summary()


def test_sample_uniques_overstate_the_risk() -> None:
    everybody = people(20_000, areas=5)
    quasi = ["zip", "birth", "sex"]
    sample = {name: values[:2000] for name, values in everybody.items()}
    listed = {name: values[1000:4000] for name, values in everybody.items()}
    alone = linkage(sample, listed, on=quasi, truth="id")
    known = linkage(sample, listed, on=quasi, truth="id", population=everybody)
    assert alone.right is not None
    assert alone.right < 1
    assert known.right == 1
    assert 0 < known.confirmed < alone.confirmed
    assert known.overstated == alone.confirmed - known.confirmed


def test_a_class_of_one_value_tells_it_without_a_match() -> None:
    released = {"zip": ["a", "a", "b", "b"], "illness": ["flu", "flu", "flu", "hiv"]}
    found = linkage(released, {"zip": ["a", "a", "b", "c"]}, on=["zip"], sensitive="illness")
    assert (found.confirmed, found.told) == (0, 2)


@pytest.mark.parametrize("given", [{"on": ["age", "size"]}, {"on": ["age"], "truth": "id"}, {"on": []}])
def test_bad_input_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        linkage({"age": [1]}, {"age": [1]}, **given)
    assert refused.value.name == "on"


def test_several_rows_of_a_person_have_no_bound() -> None:
    table = {"age": [1, 2], "who": [7, 7], "illness": ["flu", "hiv"]}
    with pytest.raises(InvalidParameter) as refused:
        linkage.compare(table, table, on=["age"], sensitive="illness", truth="who")
    assert refused.value.name == "truth"


def test_empty_tables_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="to have rows"):
        linkage({"age": []}, {"age": [1]}, on=["age"])
