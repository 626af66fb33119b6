from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.synthetic.inference import convex_solvers
from discreet.synthetic.inference.estimation import GraphicalModel, Solver, fit, model_of
from discreet.synthetic.inference.factors import Attributes, Factor, Sizes
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal, combine_marginals, estimated_total
from tests.synthetic.enumerated import best_joint, domains, marginal

Table = NDArray[np.float64]

TOTAL = 1000.0
SIZES = {"a": 3, "b": 2, "c": 4, "d": 2}
CYCLE: list[Attributes] = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("c",)]


def noisy(sizes: Sizes, sets: list[Attributes], sigma: float, seed: int) -> tuple[Table, list[NoisyMarginal]]:
    """A random joint table, and noisy marginals of it; noise differs by set."""
    bits = SeededBits(seed)
    joint = -np.log(uniforms(tuple(sizes.values()), bits=bits))
    joint *= TOTAL / joint.sum()
    marginals = []
    for number, names in enumerate(sets):
        exact = marginal(sizes, joint, names)
        scale = sigma * (1 + number % 3)
        marginals.append(NoisyMarginal(names, exact + scale * normals(exact.shape, bits=bits), scale))
    return joint, marginals


def largest_difference(one: GraphicalModel, other: Table, sets: list[Attributes]) -> float:
    sizes = one.tree.sizes
    return max(float(np.abs(one.counts(s) - TOTAL * marginal(sizes, other, s)).max()) for s in sets)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entropy", [10.0, 1.0, 0.2])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_fit_is_the_minimum_over_all_joint_tables(entropy: float, seed: int) -> None:
    _, marginals = noisy(SIZES, CYCLE, 10.0, seed)
    found = fit(SIZES, marginals, total=TOTAL, entropy=entropy, tolerance=1e-10, evaluations=5000)
    best = best_joint(SIZES, marginals, TOTAL, entropy * TOTAL / 30)
    assert largest_difference(found, best, [*CYCLE, ("a", "c"), ("b", "d"), ("a", "b", "c", "d")]) < 0.01
    other = best_joint(SIZES, marginals, TOTAL, 1.3 * entropy * TOTAL / 30)  # the comparison sees another weight
    assert largest_difference(found, other, [("a", "b", "c", "d")]) > 0.01


@settings(max_examples=15)
@given(domains(most=4, values=3), st.integers(0, 2**32))
def test_random_problems_reach_the_minimum(case: tuple[dict[str, int], list[Attributes]], seed: int) -> None:
    sizes, sets = case
    _, marginals = noisy(sizes, sets, 10.0, seed)
    found = fit(sizes, marginals, total=TOTAL, tolerance=1e-8)
    largest = max(m.sigma for m in combine_marginals(marginals))
    best = best_joint(sizes, marginals, TOTAL, TOTAL / largest)
    assert largest_difference(found, best, sets) < 0.05


def _vectors() -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = json.loads(Path(__file__).with_name("mbi_marginals.json").read_text())
    return vectors


@pytest.mark.sampled(2)
@pytest.mark.parametrize("vector", _vectors())
def test_the_oracle_mbi_fits_the_same(vector: dict[str, Any]) -> None:
    """mbi_vectors.py made the vectors. Without entropy the minimum is the same; 0.1 is under 2 % of the least sigma."""
    marginals = [NoisyMarginal(tuple(m["attributes"]), np.array(m["values"]), m["sigma"]) for m in vector["measured"]]
    found = fit(vector["sizes"], marginals, total=vector["total"], entropy=1e-3, tolerance=1e-7, evaluations=20_000)
    for names, counts in vector["fitted"].items():
        assert np.abs(found.counts(tuple(names)) - np.array(counts)).max() < 0.1


def test_without_noise_a_chain_is_reproduced() -> None:
    sizes = {"a": 4, "b": 3, "c": 5, "d": 2, "e": 4}
    links: list[Attributes] = list(itertools.pairwise(sizes))
    bits = SeededBits(5)
    chain = np.ones(())
    for one, other in links:
        step = -np.log(uniforms((sizes[one], sizes[other]), bits=bits))
        chain = chain[..., None] * (step / step.sum(axis=1, keepdims=True)) if chain.ndim else step / step.sum()
    marginals = [NoisyMarginal(pair, marginal(sizes, chain, pair), 1e-9) for pair in links]
    found = fit(sizes, marginals, total=1.0, tolerance=1e-3, evaluations=5000)
    for pair in itertools.combinations(sizes, 2):  # also those that were not measured: the table is a chain
        assert np.abs(found.counts(pair) - marginal(sizes, chain, pair)).max() < 1e-6


@pytest.mark.parametrize("entropy", [3.0, 0.3])
def test_the_gap_is_a_certificate(entropy: float) -> None:
    """The value of the regularised problem exceeds its minimum by at most the gap, after few steps as after many."""
    _, marginals = noisy(SIZES, CYCLE, 10.0, 7)
    weight = entropy * TOTAL / 30
    best = _value(best_joint(SIZES, marginals, TOTAL, weight), marginals, weight)
    for evaluations in (5, 20, 50, 400):
        found = fit(SIZES, marginals, total=TOTAL, entropy=entropy, tolerance=1e-9, evaluations=evaluations)
        above = _value(found.model.marginal(tuple(SIZES)), marginals, weight) - best
        assert -1e-6 < above <= found.gap + 1e-6


def _value(joint: Table, marginals: list[NoisyMarginal], weight: float) -> float:
    loss = sum(
        float(np.sum((TOTAL * marginal(SIZES, joint, m.attributes) - m.values) ** 2)) / (2 * m.sigma**2)
        for m in marginals
    )
    return loss + weight * float(np.sum(joint * np.log(joint)))


def test_both_solvers_agree() -> None:
    _, marginals = noisy(SIZES, CYCLE, 10.0, 3)
    slow = fit(SIZES, marginals, total=TOTAL, solver=Solver.MIRROR_DESCENT, tolerance=1e-9, evaluations=20_000)
    fast = fit(SIZES, marginals, total=TOTAL, entropy=1e-3, tolerance=1e-6, evaluations=5000)
    assert slow.loss == pytest.approx(fast.loss, abs=0.01)
    for names in CYCLE:
        assert np.abs(slow.counts(names) - fast.counts(names)).max() < 0.5


def test_a_solver_that_forgets_the_ridge_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    _, marginals = noisy(SIZES, CYCLE, 10.0, 1)
    right = convex_solvers._at

    def wrong(problem: Any, ridge: Table, weights: Table, theta: Table) -> Any:
        return right(problem, 0.5 * ridge, weights, theta)

    best = best_joint(SIZES, marginals, TOTAL, TOTAL / 30)
    monkeypatch.setattr(convex_solvers, "_at", wrong)
    found = fit(SIZES, marginals, total=TOTAL, tolerance=1e-8, evaluations=3000)
    assert largest_difference(found, best, CYCLE) > 0.5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [4, 5, 6])
def test_zeros_are_exact_and_the_rest_is_fitted(seed: int) -> None:
    _, marginals = noisy(SIZES, CYCLE, 5.0, seed)
    closed = np.zeros((3, 4), dtype=bool)
    closed[0, 1:] = closed[2, 0] = True
    wall = Factor(("a", "c"), np.where(closed, -np.inf, 0.0))
    found = fit(SIZES, marginals, total=TOTAL, zeros=[wall], tolerance=1e-8)
    everything = found.counts(tuple(SIZES))
    assert np.all(found.counts(("a", "c"))[closed] == 0)
    assert np.all(everything.sum(axis=(1, 3))[closed] == 0)
    possible = np.broadcast_to(~closed[:, None, :, None], everything.shape)
    best = best_joint(SIZES, marginals, TOTAL, TOTAL / 15, possible)
    assert np.abs(everything - TOTAL * best).max() < 0.05
    assert fit(SIZES, marginals, total=TOTAL, zeros=[wall], start=found, tolerance=1e-7).evaluations == 1


def test_several_measurements_of_one_marginal_are_their_mean() -> None:
    _, once = noisy(SIZES, CYCLE, 10.0, 8)
    _, twice = noisy(SIZES, [("b", "a"), ("c", "b")], 25.0, 9)
    together = combine_marginals([*once, *twice])
    assert len(together) == len(once)
    direct = best_joint(SIZES, [*once, *twice], TOTAL, TOTAL / 30)
    entropy = max(m.sigma for m in together) / 30
    found = fit(SIZES, [*once, *twice], total=TOTAL, entropy=entropy, tolerance=1e-9, evaluations=3000)
    assert largest_difference(found, direct, CYCLE) < 0.02


def test_residuals_tell_together_what_their_marginal_tells() -> None:
    """|m - y|^2 of a table over a and b is the sum over subsets of the residuals' squares, divided by missing sizes."""
    _, marginals = noisy(SIZES, [("a", "b"), ("b", "c")], 10.0, 11)
    table, other = marginals
    rows, columns = table.values.shape
    parts = [
        NoisyMarginal(("a", "b"), table.values, table.sigma, residual=True),
        NoisyMarginal(("a",), table.values.sum(axis=1), table.sigma * np.sqrt(columns), residual=True),
        NoisyMarginal(("b",), table.values.sum(axis=0), table.sigma * np.sqrt(rows), residual=True),
    ]
    whole = fit(SIZES, [table, other], total=TOTAL, tolerance=1e-10, evaluations=3000)
    entropy = max(part.sigma for part in parts) / other.sigma  # the same weight of entropy
    split = fit(SIZES, [*parts, other], total=TOTAL, entropy=max(1.0, entropy), tolerance=1e-10, evaluations=3000)
    assert np.abs(whole.counts(("a", "b", "c")) - split.counts(("a", "b", "c"))).max() < 0.01
    without = fit(SIZES, [parts[0], other], total=TOTAL, tolerance=1e-10, evaluations=3000)
    assert np.abs(whole.counts(("a", "b")) - without.counts(("a", "b"))).max() > 0.5


def test_an_earlier_fit_saves_work() -> None:
    _, marginals = noisy(SIZES, CYCLE, 10.0, 12)
    first = fit(SIZES, marginals[:-1], total=TOTAL)
    cold, warm = fit(SIZES, marginals, total=TOTAL), fit(SIZES, marginals, total=TOTAL, start=first)
    assert warm.evaluations < cold.evaluations
    for names in CYCLE:
        assert np.abs(warm.counts(names) - cold.counts(names)).max() < 10


def test_a_model_is_had_again_from_its_potentials() -> None:
    _, marginals = noisy(SIZES, CYCLE, 10.0, 15)
    wall = Factor(("a", "d"), np.where(np.arange(6).reshape(3, 2) == 3, -np.inf, 0.0))
    found = fit(SIZES, marginals, total=TOTAL, zeros=[wall])
    again = model_of(SIZES, found.potentials.values(), zeros=[wall])
    assert np.array_equal(again.marginal(tuple(SIZES)), found.model.marginal(tuple(SIZES)))
    with pytest.raises(InvalidParameter):
        model_of(SIZES, [wall])
    with pytest.raises(InvalidParameter):
        model_of(SIZES, [Factor(("a",), np.zeros(2))])


def test_a_fit_that_runs_out_of_evaluations_is_no_worse_than_its_start() -> None:
    _, marginals = noisy(SIZES, CYCLE, 10.0, 16)
    gaps = [fit(SIZES, marginals, total=TOTAL, tolerance=1e-12, evaluations=most).gap for most in (3, 10, 30, 100, 300)]
    assert gaps[-1] < 1e-3 * gaps[0]
    first = fit(SIZES, marginals, total=TOTAL, tolerance=1e-12, evaluations=60)
    for most in (1, 2, 5):
        again = fit(SIZES, marginals, total=TOTAL, tolerance=1e-12, evaluations=most, start=first)
        assert again.gap <= first.gap * (1 + 1e-9)


def test_the_total_has_the_least_variance_of_weighted_means() -> None:
    bits = SeededBits(13)
    marginals = [
        NoisyMarginal(("a",), 25 + normals(4, bits=bits), 1.0),
        NoisyMarginal(("a", "b"), 5 + 3 * normals((4, 5), bits=bits), 3.0),
        NoisyMarginal((), np.array(103.0), 2.0),
    ]
    variances = np.array([4 * 1.0, 20 * 9.0, 4.0])
    weights = (1 / variances) / (1 / variances).sum()
    assert estimated_total(marginals) == pytest.approx(weights @ [m.total for m in marginals])
    for move in ([0.1, -0.1, 0], [0, 0.1, -0.1], [0.1, 0, -0.1]):
        assert (weights + move) ** 2 @ variances > weights**2 @ variances
    assert estimated_total([NoisyMarginal(("a",), np.array([-3.0, -5.0]), 1.0)]) == 1.0
    sizes = {"a": 4, "b": 5}
    assert fit(sizes, marginals).total == pytest.approx(estimated_total(marginals))


def test_only_a_total_gives_the_uniform_table() -> None:
    found = fit({"a": 2, "b": 5}, [NoisyMarginal((), np.array(50.0), 1.0)])
    assert np.allclose(found.counts(("a", "b")), 5.0)


def test_bad_input_is_refused() -> None:
    good = NoisyMarginal(("a",), np.ones(3), 1.0)
    cases: list[dict[str, Any]] = [
        {"marginals": []},
        {"marginals": [NoisyMarginal(("a",), np.ones(2), 1.0)]},
        {"marginals": [NoisyMarginal(("z",), np.ones(2), 1.0)]},
        {"marginals": [good], "total": 0},
        {"marginals": [good], "entropy": 0},
        {"marginals": [good], "tolerance": -1},
        {"marginals": [good], "zeros": [Factor(("a",), np.ones(3))]},
        {"marginals": [good], "zeros": [Factor(("a",), np.full(3, -np.inf))]},
        {"marginals": [NoisyMarginal(("a",), np.ones(3), 1.0, residual=True)]},
    ]
    for case in cases:
        with pytest.raises(InvalidParameter):
            fit(SIZES, **case)
    for arguments in ((("a",), np.ones(3), 0.0), (("a",), np.array([np.nan]), 1.0), (("a", "a"), np.ones((2, 2)), 1.0)):
        with pytest.raises(InvalidParameter):
            NoisyMarginal(*arguments)
    with pytest.raises(InvalidParameter):
        NoisyMarginal(("a",), np.ones((2, 2)), 1.0)
    with pytest.raises(InvalidParameter):
        combine_marginals([NoisyMarginal(("a",), np.ones(2), 1.0), NoisyMarginal(("a",), np.ones(3), 1.0)])


@pytest.mark.slow
def test_a_hundred_columns_fit() -> None:
    names = [f"x{i}" for i in range(100)]
    sizes = dict.fromkeys(names, 10)
    bits = SeededBits(14)
    sets: list[Attributes] = [(names[i], names[(i - 1) // 3]) for i in range(1, 100)]
    marginals = []
    for attributes in sets:
        table = -np.log(uniforms((10,) * len(attributes), bits=bits))
        table *= 1e5 / table.sum()
        marginals.append(NoisyMarginal(attributes, table + 100 * normals(table.shape, bits=bits), 100.0))
    found = fit(sizes, marginals, total=1e5)
    assert found.gap <= 0.01 * 0.5 * 99 * 100
    assert found.tree.size == 99 * 100
