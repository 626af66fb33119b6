from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.synthetic.inference import belief_propagation
from discreet.synthetic.inference.belief_propagation import BeliefPropagation
from discreet.synthetic.inference.factors import Attributes, Factor
from discreet.synthetic.inference.junction_tree import junction_tree
from tests.synthetic.enumerated import domains, joint, marginal

Case = tuple[dict[str, int], list[Attributes]]


def random_factors(sizes: dict[str, int], sets: list[Attributes], scale: float, bits: SeededBits) -> list[Factor]:
    return [Factor(names, scale * normals(tuple(sizes[name] for name in names), bits=bits)) for names in sets]


def agrees_with_enumeration(case: Case, scale: float, seed: int, *, zeros: bool = False) -> bool:
    sizes, sets = case
    bits = SeededBits(seed)
    tree = junction_tree(sizes, sets)
    factors = random_factors(sizes, [tree.order_attributes(names) for names in sets], scale, bits)
    walls = []
    if zeros:
        closed = uniforms(factors[0].logs.shape, bits=bits) < 0.5
        closed.flat[0] = False
        walls = [Factor(factors[0].attributes, np.where(closed, -np.inf, 0.0))]
    propagation = BeliefPropagation(tree, [factor.attributes for factor in factors], walls)
    theta = np.concatenate([factor.logs.reshape(-1) for factor in factors])
    _, marginals = propagation(theta)
    model = propagation.calibrate(theta)
    truth = joint(sizes, [*factors, *walls])
    checks = [
        np.allclose(marginals[part].reshape(f.logs.shape), marginal(sizes, truth, f.attributes), rtol=1e-9, atol=1e-12)
        for part, f in zip(propagation.slices, factors, strict=True)
    ]
    for names in itertools.islice(itertools.permutations(sizes, min(3, len(sizes))), 20):
        found, wanted = model.marginal(names), marginal(sizes, truth, names)
        checks.append(np.allclose(found, wanted, rtol=1e-9, atol=1e-12))
    if walls:
        checks.append(bool(np.all(model.marginal(walls[0].attributes)[closed] == 0)))
    return all(checks)


@given(domains(), st.sampled_from([0.1, 1.0, 30.0, 3000.0]), st.integers(0, 2**32), st.booleans())
def test_marginals_are_those_of_the_joint_table(case: Case, scale: float, seed: int, zeros: bool) -> None:
    assert agrees_with_enumeration(case, scale, seed, zeros=zeros)


def test_without_log_space_large_potentials_go_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    case: Case = ({"a": 3, "b": 3, "c": 3, "d": 3}, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    assert all(agrees_with_enumeration(case, 3000.0, seed) for seed in range(5))
    monkeypatch.setattr(belief_propagation, "_SMALL", -1.0)
    with np.errstate(all="ignore"):
        assert not all(agrees_with_enumeration(case, 3000.0, seed) for seed in range(5))


@given(domains(), st.integers(0, 2**32))
def test_the_log_total_is_that_of_the_product(case: Case, seed: int) -> None:
    sizes, sets = case
    tree = junction_tree(sizes, sets)
    factors = random_factors(sizes, [tree.order_attributes(names) for names in sets], 2.0, SeededBits(seed))
    rest = [Factor((name,), np.zeros(size)) for name, size in sizes.items()]
    propagation = BeliefPropagation(tree, [factor.attributes for factor in factors])
    log_total, _ = propagation(np.concatenate([factor.logs.reshape(-1) for factor in factors]))
    product = math.prod([*factors, *rest], start=Factor((), np.zeros(())))
    assert log_total == pytest.approx(product.log_total, rel=1e-9, abs=1e-9)


def test_factors_multiply_and_sum_like_tables() -> None:
    bits = SeededBits(3)
    sizes = {"a": 2, "b": 3, "c": 4}
    one, two = random_factors(sizes, [("c", "a"), ("b", "c")], 1.0, bits)
    product = np.einsum("ca,bc->abc", np.exp(one.logs), np.exp(two.logs))
    assert np.allclose(np.exp((one * two).transpose_to(("a", "b", "c")).logs), product)
    assert np.allclose(np.exp((one * two).marginal(("b", "a")).logs), product.sum(axis=2).T)
    assert np.isneginf(Factor(("a",), np.full(2, -np.inf)).log_total)


def test_zeros_that_leave_nothing_are_refused() -> None:
    tree = junction_tree({"a": 2, "b": 2}, [("a", "b")])
    scope = tree.order_attributes({"a", "b"})
    half = np.array([[0.0, 0.0], [-np.inf, -np.inf]])
    with pytest.raises(InvalidParameter):
        BeliefPropagation(tree, [scope], [Factor(scope, half), Factor(scope, half[::-1])])


def test_bad_factors_are_refused() -> None:
    tree = junction_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    with pytest.raises(InvalidParameter):
        BeliefPropagation(tree, [tree.order_attributes({"a", "c"})])
    with pytest.raises(InvalidParameter):
        Factor(("a", "a"), np.zeros((2, 2)))
    with pytest.raises(InvalidParameter):
        Factor(("a",), np.zeros((2, 2)))
    with pytest.raises(InvalidParameter):
        Factor(("a",), np.zeros(2)) * Factor(("a",), np.zeros(3))
    model = BeliefPropagation(tree, []).calibrate(np.empty(0))
    assert np.allclose(model.marginal(("c", "a")), 0.25)
    with pytest.raises(InvalidParameter):
        model.marginal(("nobody",))
