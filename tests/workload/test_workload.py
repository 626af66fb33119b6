"""Workloads: optimal or nearly so, exact in cost, as wrong as they say, and the same with and without structure."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms.strategy import StrategyMechanism
from discreet.noise import SeededBits
from discreet.privacy import Budget, Neighbours, events
from discreet.workload import (
    Contribution,
    Each,
    Matrix,
    Prefixes,
    Product,
    Ranges,
    Total,
    Union,
    Workload,
    WorkloadPlan,
)
from discreet.workload.product_strategy import ProductStrategy
from tests.cases import try_all
from tests.conformance.nothing import NoBits
from tests.workload.dense import cell_moves

RHO = Budget(rho=0.5)
PURE = Budget(epsilon=1)
ONE_WAY = np.vstack([np.kron(np.eye(2), np.ones((1, 3))), np.kron(np.ones((1, 2)), np.eye(3))])
SMALL: list[Any] = [
    Each(3),
    Prefixes(5),
    Ranges(4),
    [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]],
    ONE_WAY,
    [[1, 1, 0], [0.25, 0.25, 0]],
    [[1 / 3, 1 / 3, 0], [0, 1 / 3, 1 / 3], [1 / 3, 2 / 3, 1 / 3]],
    Product(Ranges(3), Each(2)),
    Product(Prefixes(2), [[1, -1], [1, 1]]),
    Union(Product(Each(2), Total(3)), Product(Total(2), Each(3))),
]


def _written(workload: Workload) -> Any:
    """The queries as one matrix, by the definition of a Kronecker product."""
    parts = []
    for part in workload.union.parts:
        rows: Any = np.ones((1, 1))
        for factor in part.factors:
            rows = np.kron(rows, factor.matrix())
        parts.append(rows)
    return np.vstack(parts)


def _measured(mechanism: StrategyMechanism) -> Any:
    """The integers that a mechanism measures of every cell."""
    assert isinstance(mechanism.strategy, ProductStrategy)
    rows: Any = np.ones((1, 1), dtype=object)
    for factor in mechanism.strategy.factors:
        rows = np.kron(rows, factor.strategy.matrix.astype(object))
    return rows


def test_structures_are_what_their_matrices_say() -> None:
    for queries in (Each(4), Total(4), Prefixes(4), Ranges(4), Matrix([[1, 2, 0, 2], [0, 1, 0, 1]])):
        matrix = queries.matrix()
        assert matrix.shape == (queries.count, queries.cells)
        assert queries.gram() == pytest.approx(matrix.T @ matrix)
        spread = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.5
        assert queries.variances(spread) == pytest.approx(np.diag(matrix @ spread @ matrix.T))
        table = np.arange(12.0).reshape(4, 3)
        assert queries.apply(table) == pytest.approx(matrix @ table)
    assert Matrix([[1, 2, 0, 2], [0, 1, 0, 1]]).classes().tolist()[2] == -1
    assert len(set(Matrix([[1, 2, 0, 2], [0, 1, 0, 1]]).classes().tolist())) == 3


def test_published_optima() -> None:
    assert Workload(Prefixes(8)).plan(budget=RHO).total_variance / 8 == pytest.approx(2.233272, abs=2e-5)
    both = Union(Product(Each(2), Total(3)), Product(Total(2), Each(3)), Product(Each(2), Each(3)))
    assert Workload(both).plan(budget=RHO).total_variance == pytest.approx(16.379882, abs=1e-4)
    assert Workload(Each(7)).plan(budget=RHO).total_variance == pytest.approx(7)


def test_the_same_question_many_times_costs_what_one_costs() -> None:
    for budget in (RHO, PURE, Budget(epsilon=1, delta=1e-6)):
        one = Workload([[1, 1, 0, 0]]).plan(budget=budget)
        many = Workload([[1, 1, 0, 0]] * 50).plan(budget=budget)
        assert many.variances == pytest.approx(one.variances[0], rel=1e-6)
        assert many.event == one.event
        released = many.release([3, 4, 5, 6], bits=SeededBits(1))
        assert len(set(released.value.tolist())) == 1


def test_structure_costs_what_the_matrix_costs() -> None:
    """A product has the product of errors, and that is the optimum of the written matrix, too."""
    product = Workload(Product(Ranges(4), Prefixes(3)))
    written = Workload(_written(product))
    for budget in (RHO, Budget(rho=0.01)):
        plain, quick = written.plan(budget=budget), product.plan(budget=budget)
        assert quick.total_variance == pytest.approx(plain.total_variance, rel=1e-3)  # coarser grids of factors
        assert quick.variances.ravel() == pytest.approx(plain.variances, rel=2e-3)
    factors = [Workload(Ranges(4)), Workload(Prefixes(3))]
    expected = np.prod([factor.plan(budget=RHO).total_variance for factor in factors])
    assert product.plan(budget=RHO).total_variance == pytest.approx(expected, rel=1e-3)


def test_coarse_grids_of_many_attributes_leave_answers_without_bias() -> None:
    """Six attributes have five bits each; what they measure is coarse, exact, and determines all queries."""
    product = Workload(Product(*[Prefixes(3)] * 4, [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]], Each(2)))
    plan = product.plan(budget=Budget(rho=10**9))
    counts = np.arange(3**4 * 8) % 11
    expected = product.union.parts[0].apply(counts.reshape(product.shape).astype(float))
    assert plan.release(counts).value == pytest.approx(expected, abs=0.5)
    exact = product.plan(budget=Budget(epsilon=10**9)).release(counts).value
    assert exact == pytest.approx(expected, abs=0.5)
    ideal = np.prod([Workload(factor).plan(budget=RHO).total_variance for factor in product.union.parts[0].factors])
    assert product.plan(budget=RHO).total_variance < 1.3 * ideal
    tiny = Union(Product(Each(3)), Product(1e-30 * np.eye(3)))
    assert len(Workload(tiny).plan(budget=RHO).variances) == 6


def test_laplace_strategies_are_never_worse_than_simple_ones() -> None:
    for queries in (Each(6), Prefixes(16), Ranges(16), [[1, 1, 1, 1]], [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]]):
        workload = Workload(queries)
        matrix = _written(workload)
        found = workload.plan(budget=Budget(epsilon="1/100")).total_variance / 2e4
        each = float(np.sum(matrix**2))
        own = float(np.max(np.sum(np.abs(matrix), axis=0))) ** 2 * len(matrix)
        assert found <= min(each, own) * (1 + 1e-6)
    ranges = Workload(Ranges(32)).plan(budget=Budget(epsilon="1/100")).total_variance / 2e4
    assert ranges < 0.95 * float(np.sum(np.diag(Ranges(32).gram())))  # a better strategy than cells is found


def test_one_unit_moves_measurements_no_farther_than_charged() -> None:
    """The exact integers of every strategy, over all neighbours, against the noise that was drawn for them."""

    def check(case: tuple[Any, Any, Neighbours]) -> None:
        queries, budget, neighbours = case
        plan = Workload(queries).plan(budget=budget, neighbours=neighbours)
        moves = cell_moves(int(np.prod(plan.workload.shape)), replaced=neighbours is Neighbours.REPLACE)
        cost: Any = [Fraction(0)] * len(moves)
        for mechanism, _ in plan.measured:
            rows = _measured(mechanism)
            for place, move in enumerate(moves):
                moved = rows @ move.astype(int).astype(object)
                if budget is PURE:
                    cost[place] += Fraction(sum(abs(moved))) / mechanism.noise.scale  # type: ignore[union-attr]
                else:
                    cost[place] += Fraction(sum(moved * moved)) / mechanism.noise.sigma**2  # type: ignore[union-attr]
        assert max(cost) <= 1  # epsilon = 1, and mu^2 = 2 rho = 1
        if neighbours is Neighbours.ADD_REMOVE:
            assert max(cost) > 0.99 / len(plan.measured)

    try_all(itertools.product(SMALL, (RHO, PURE), Neighbours), check)


def test_events_keep_to_the_budget() -> None:
    for queries in SMALL:
        assert accounting.epsilon(Workload(queries).plan(budget=PURE).event, 0) <= 1
        plan = Workload(queries).plan(budget=Budget(epsilon=1, delta=1e-6))
        assert accounting.epsilon(plan.event, 1e-6) <= 1
    single = Workload(Each(3)).plan(budget=RHO).event
    assert isinstance(single, events.Gaussian)


def test_units_in_several_cells_pay_for_all_of_them() -> None:
    one = Workload(Prefixes(6)).plan(budget=RHO)
    several = Workload(Prefixes(6)).plan(budget=RHO, contribution=Contribution(cells=2, amount=3))
    assert 9 * 2 <= several.total_variance / one.total_variance <= 9 * 4 + 1e-6
    product = Product(Each(2), Each(3))
    assert Workload(product).plan(budget=RHO, contribution=Contribution(amount=2)).total_variance == pytest.approx(24)


def _squares(plan: WorkloadPlan, bits: SeededBits, runs: int) -> tuple[Any, float]:
    counts = np.arange(int(np.prod(plan.workload.shape))).reshape(plan.workload.shape) * 7
    truth = _written(plan.workload) @ counts.ravel()
    squares, covered = [], []
    for _ in range(runs):
        released = plan.release(counts, bits=bits)
        squares.append((np.ravel(released.value) - truth) ** 2)
        covered.append(np.mean((np.ravel(released.low) <= truth) & (truth <= np.ravel(released.high))))
    return np.mean(squares, axis=0), float(np.mean(covered))


def _errors_are_claimed(queries: Any, bits: SeededBits, runs: int) -> None:
    """A mean square of runs has sd sqrt(2 / runs) of itself for normal noise, sqrt(5 / runs) for a Laplace draw."""
    for budget, kurtosis in ((RHO, 2), (PURE, 5)):
        plan = Workload(queries).plan(budget=budget)
        squares, covered = _squares(plan, bits, runs)
        assert np.max(np.abs(squares / plan.variances.ravel() - 1)) < 6.5 * (kurtosis / runs) ** 0.5
        assert 0.9 < covered <= (0.99 if budget is RHO else 1)
        if budget is RHO:  # and a sigma wrong by 30 % would be seen
            assert np.min(squares / (plan.variances.ravel() * 1.69)) < 1 - 5 * (kurtosis / runs) ** 0.5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", [1, 4, 9])
def test_measured_errors_are_the_claimed_ones(place: int, bits: SeededBits) -> None:
    _errors_are_claimed(SMALL[place], bits, 250)


@pytest.mark.slow
def test_all_measured_errors_are_the_claimed_ones(bits: SeededBits) -> None:
    for queries in SMALL:
        _errors_are_claimed(queries, bits, 600)


def test_projected_answers_are_those_of_counts_without_negative_ones() -> None:
    plan = Workload(Ranges(12)).plan(budget=Budget(rho=0.005))
    counts = np.zeros(12, dtype=np.int64)
    counts[3] = 90
    truth = Ranges(12).apply(counts.astype(float))
    raw = projected = 0.0
    for seed in range(6):
        released = plan.release(counts, bits=SeededBits(seed))
        nearest = released.projected()
        cells = nearest[[i * 12 - i * (i - 1) // 2 for i in range(12)]]  # ranges of one cell
        assert np.all(cells >= 0)
        assert nearest == pytest.approx(Ranges(12).apply(cells), abs=1e-6)
        raw += float(np.sum((released.value - truth) ** 2))
        projected += float(np.sum((nearest - truth) ** 2))
    assert projected < raw
    assert "entry" in str(released)
    assert released.event == plan.event


def test_bad_input_is_refused_before_a_bit_is_drawn() -> None:
    bad: list[Any] = [[], [[]], [1, 2], [[0, 0]], [[np.nan, 1]], [[np.inf, 1]], [["a"]], "a", None, 3, [[1], [2, 3]]]
    bad += [Product, Ranges, np.ones((1, 5000)), np.ones((2, 2, 2)), {}]

    def is_refused(queries: Any) -> None:
        with pytest.raises(InvalidParameter):
            Workload(queries)

    try_all(bad, is_refused)
    kinds: list[Any] = [Ranges, Prefixes, Each, Total]
    for kind, size in itertools.product(kinds, (0, -1, 1.5, True, "a", 5000)):
        with pytest.raises(InvalidParameter):
            kind(size)
    for wrong in ((), (Product(Each(2)), Product(Each(3)))):
        with pytest.raises(InvalidParameter):
            Union(*wrong)
    with pytest.raises(InvalidParameter):
        Product()
    workload = Workload(Product(Each(2), Each(3)))
    for arguments in ({"budget": None}, {"budget": RHO, "neighbours": "x"}, {"budget": RHO, "contribution": 2}):
        with pytest.raises(InvalidParameter):
            workload.plan(**arguments)
    plan = workload.plan(budget=RHO)

    def counts_are_refused(counts: Any) -> None:
        with pytest.raises(InvalidValue) as refused:
            plan.release(counts, bits=NoBits())
        assert refused.value.hint

    wrong_counts: list[Any] = [[1, 2], np.ones((2, 3)), np.ones((3, 2), dtype=int), None, "a", [[True] * 3] * 2, 4]
    try_all(wrong_counts, counts_are_refused)
    with pytest.raises(InvalidParameter, match="confidence"):
        plan.release([0] * 6, confidence=2, bits=NoBits())


def test_no_counts_are_refused_for_what_they_are() -> None:
    """An error would tell of them: the largest counts are measured exactly, by integers of any size."""
    plan = Workload(Product(Each(2), Each(3))).plan(budget=RHO)
    counts = np.full((2, 3), (1 << 63) - 1)
    counts[0, 0] = -(1 << 63)
    released = plan.release(counts, bits=SeededBits(1))
    assert np.ravel(released.value) == pytest.approx(counts.astype(float).ravel(), rel=1e-9)


@pytest.mark.slow
def test_a_thousand_cells_are_planned_and_answered() -> None:
    plan = Workload(Ranges(1024)).plan(budget=RHO)
    each = float(np.sum(np.diag(Ranges(1024).gram())))
    assert plan.total_variance < each / 10
    counts = np.arange(1024) % 17
    released = plan.release(counts, bits=SeededBits(1))
    truth = Ranges(1024).apply(counts.astype(float))
    assert np.mean((released.low <= truth) & (truth <= released.high)) > 0.8
