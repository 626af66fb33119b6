from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.synthetic.inference.belief_propagation import BeliefPropagation
from discreet.synthetic.inference.calibrated_tree import CalibratedTree
from discreet.synthetic.inference.factors import Attributes, Factor
from discreet.synthetic.inference.junction_tree import junction_tree
from discreet.synthetic.inference.row_sampler import rounded_counts, sample_rows

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
SETS: list[Attributes] = [("a", "b"), ("b", "c"), ("c", "d")]


def random_model(seed: int, walls: list[Factor] | None = None) -> CalibratedTree:
    extra = [wall.attributes for wall in walls or []]
    tree = junction_tree(SIZES, [*SETS, *extra])
    propagation = BeliefPropagation(tree, [tree.order_attributes(names) for names in SETS], walls or [])
    return propagation.calibrate(1.5 * normals(propagation.length, bits=SeededBits(seed)))


def counted(rows: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]], names: Attributes) -> np.ndarray:
    table = np.zeros([SIZES[name] for name in names])
    np.add.at(table, tuple(rows[name] for name in names), 1)
    return table


@given(
    st.lists(st.sampled_from([0.0, 1e-9, 0.1, 0.3, 1.0, 7.0]), min_size=1, max_size=8).filter(any),
    st.integers(0, 50),
    st.floats(1e-9, 1 - 1e-9),
)
def test_counts_are_rounded_to_neighbours_and_add_up(weights: list[float], total: int, start: float) -> None:
    counts = rounded_counts(np.array([weights]), np.array([total]), np.array([start]))[0]
    expected = total * np.array(weights) / sum(weights)
    assert counts.sum() == total
    assert np.all(np.abs(counts - expected) < 1 + 1e-9)
    assert not np.any(counts[np.array(weights) == 0])


def test_expected_counts_are_exact() -> None:
    """The mean over starts is an integral of a step function with steps at 1/40: the midpoint rule is exact."""
    weights = np.array([3.0, 0.0, 5.0, 2.0, 10.0])  # shares of 7 rows: multiples of 7/20
    starts = (np.arange(40) + 0.5) / 40
    counts = rounded_counts(np.tile(weights, (40, 1)), np.full(40, 7), starts)
    assert np.allclose(counts.mean(axis=0), 7 * weights / 20, atol=1e-12)


@pytest.mark.parametrize("rows", [0, 1, 2, 999, 20_000])
def test_rows_follow_the_model(rows: int) -> None:
    """A cell of the first clique is off by less than 1 for each of its two roundings.

    In a child of k lines per separator value, the separator's count is off by less than 2 k, and a cell by as much
    and 1 more; k is at most 5 here.
    """
    model = random_model(1)
    sample = sample_rows(model, rows, bits=SeededBits(2))
    assert list(sample) == list(SIZES)
    assert all(column.size == rows for column in sample.values())
    root = model.tree.cliques[0]
    assert np.all(np.abs(counted(sample, root) - rows * model.tables[0]) < 2)
    for names in SETS:
        assert np.abs(counted(sample, names) - rows * model.marginal(names)).max() < 2 * 5 + 2


def test_attributes_apart_are_independent_given_what_lies_between() -> None:
    """Counts of (a, d) given (b, c) have mean n p; the sum of squares over p stays near its number of cells.

    Mutant: columns that are filled in order, without a random order in each group, are far from it.
    """
    model = random_model(3)
    rows = 200_000
    sample = sample_rows(model, rows, bits=SeededBits(4))
    expected = rows * model.marginal(("a", "b", "c", "d"))
    assert _chi_square(counted(sample, ("a", "b", "c", "d")), expected) < 2 * expected.size
    order = np.lexsort([sample[name] for name in ("a", "b", "c")])
    sample["d"][order] = sample["d"][order][np.argsort(sample["c"][order] * 10 + sample["d"][order], kind="stable")]
    assert _chi_square(counted(sample, ("a", "b", "c", "d")), expected) > 10 * expected.size


def _chi_square(seen: np.ndarray, expected: np.ndarray) -> float:
    return float(np.sum((seen - expected) ** 2 / expected))


def test_what_cannot_be_never_occurs() -> None:
    closed = np.where(uniforms((3, 5), bits=SeededBits(5)) < 0.5, -np.inf, 0.0)
    model = random_model(6, [Factor(("a", "d"), closed)])
    for seed, rows in itertools.product(range(5), (1, 10, 3000)):
        sample = sample_rows(model, rows, bits=SeededBits(seed))
        assert not np.any(counted(sample, ("a", "d"))[np.isneginf(closed)])


def test_a_seed_repeats_the_table() -> None:
    model = random_model(7)
    one, again, other = (sample_rows(model, 500, bits=SeededBits(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], again[name]) for name in SIZES)
    assert not all(np.array_equal(one[name], other[name]) for name in SIZES)


def test_negative_numbers_of_rows_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        sample_rows(random_model(1), -1)
