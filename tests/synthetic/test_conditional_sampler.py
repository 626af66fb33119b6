"""Rows given some of their attributes: their law against the whole joint table, written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.synthetic.inference import conditional_sampler
from discreet.synthetic.inference.belief_propagation import BeliefPropagation
from discreet.synthetic.inference.calibrated_tree import CalibratedTree
from discreet.synthetic.inference.conditional_sampler import _Evidence, sample_given
from discreet.synthetic.inference.factors import Attributes, Factor
from discreet.synthetic.inference.junction_tree import junction_tree
from tests.synthetic.enumerated import domains

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
SETS: list[Attributes] = [("a", "b"), ("b", "c"), ("c", "d")]


def model_of(
    sizes: dict[str, int], sets: list[Attributes], seed: int, walls: list[Factor] | None = None
) -> CalibratedTree:
    tree = junction_tree(sizes, [*sets, *(wall.attributes for wall in walls or [])])
    propagation = BeliefPropagation(tree, [tree.order_attributes(names) for names in sets], walls or [])
    return propagation.calibrate(1.5 * normals(propagation.length, bits=SeededBits(seed)))


@given(domain=domains(most=5, values=3), data=st.data(), seed=st.integers(0, 5))
@settings(deadline=None, max_examples=60)
def test_the_weights_of_the_root_are_the_conditional_law(
    domain: tuple[dict[str, int], list[Attributes]], data: st.DataObject, seed: int
) -> None:
    """Exactly: the table of the first clique is proportional to the joint law at the evidence, summed over the rest."""
    sizes, sets = domain
    model = model_of(sizes, sets, seed)
    names = data.draw(st.lists(st.sampled_from(list(sizes)), unique=True, min_size=1))
    lines = list(itertools.product(*(range(sizes[name]) for name in names)))
    evidence = {name: np.array([line[place] for line in lines]) for place, name in enumerate(names)}
    tree = _Evidence(model, evidence, len(lines))
    free = tree.given[0].free
    joint = model.marginal((*names, *free))
    for row, line in enumerate(lines):
        weights = tree.given[0].tables[tree.given[0].which[row]]
        np.testing.assert_allclose(weights / weights.sum(), joint[line] / joint[line].sum(), atol=1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("cells", [1 << 23, 40])
def test_rows_follow_the_conditional_law(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells of the joint law of 30,000 rows whose evidence has the model's own law, in one part or in many."""
    monkeypatch.setattr(conditional_sampler, "_MOST_CELLS", cells)
    model = model_of(SIZES, SETS, 3)
    rows = 30_000 if cells > 40 else 3000
    shares = model.marginal(("a", "d"))
    counts = np.floor(shares * rows).astype(int)
    pairs = np.repeat(np.indices(shares.shape).reshape(2, -1), counts.reshape(-1), axis=1)
    found = sample_given(model, {"a": pairs[0], "d": pairs[1]}, bits=SeededBits(1))
    assert list(found) == ["b", "c"]
    table = np.zeros([SIZES[name] for name in "abcd"])
    np.add.at(table, (pairs[0], found["b"], found["c"], pairs[1]), 1)
    expected = model.marginal(tuple("abcd")) / shares[:, None, None, :] * counts[:, None, None, :]
    most = 6 * np.sqrt(np.maximum(expected, 1)) + 1  # rounding errs less than coins, whose deviation this is
    assert np.all(np.abs(table - expected) <= most)
    wrong = np.roll(expected, 1, axis=1)
    assert not np.all(np.abs(table - wrong) <= most)  # the test has power


def test_what_cannot_be_never_is_and_impossible_evidence_is_left_out() -> None:
    wall = np.zeros((3, 4))
    wall[0, :] = -np.inf  # nobody has a = 0
    forbidden = np.zeros((4, 2))
    forbidden[1, 1] = -np.inf
    model = model_of(SIZES, SETS, 1, [Factor(("a", "b"), wall), Factor(("b", "c"), forbidden)])
    found = sample_given(model, {"a": np.array([0] * 500 + [1] * 500)}, bits=SeededBits(1))
    assert not ((found["b"] == 1) & (found["c"] == 1)).any()
    assert len(set(found["d"][:500].tolist())) > 1
    assert sample_given(model, {"a": np.zeros(0, dtype=np.int64)})["b"].size == 0
    whole = {name: np.array([1, 0]) for name in "abcd"}
    assert sample_given(model, whole) == {}
