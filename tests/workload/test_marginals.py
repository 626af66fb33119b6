"""Tables of a product domain: optimal, exact in cost, consistent, and as wrong as they say."""

from __future__ import annotations

import itertools
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms.optimal_gram import optimal_gram
from discreet.noise import SeededBits
from discreet.privacy import Budget, Neighbours, events
from discreet.workload import Marginals, MarginalsPlan, gaussian_residuals
from discreet.workload.counted_tables import CountedTables
from discreet.workload.gaussian_residuals import GaussianResiduals
from discreet.workload.laplace_tables import LaplaceTables
from discreet.workload.product_domain import ProductDomain
from tests.cases import try_all
from tests.conformance.nothing import NoBits
from tests.workload.dense import cell_moves, residual_matrix, residual_shape, table_matrix

TWO_BY_THREE = ({"a": 2, "b": 3}, [("a",), ("b",), ("a", "b")])
CASES: list[tuple[dict[str, int], list[tuple[str, ...]]]] = [
    TWO_BY_THREE,
    ({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c"), ("a", "c")]),
    ({"a": 3, "b": 2, "c": 2}, [("a", "b"), ("c",), ()]),
    ({"a": 4}, [("a",)]),
    ({"a": 2, "b": 1, "c": 3}, [("b", "c"), ("a",)]),
    ({"a": 2, "b": 3}, [()]),
]
COUNTS = np.array([[50, 0, 7], [30, 20, 100]])


def _gaussian(plan: MarginalsPlan) -> GaussianResiduals:
    assert isinstance(plan.noise, GaussianResiduals)
    return plan.noise


def test_the_published_vector() -> None:
    plan = Marginals(*TWO_BY_THREE).plan(budget=Budget(rho=0.5))
    variances = {part: float(sigma) ** 2 for part, sigma in _gaussian(plan).sigmas.items()}
    assert variances == pytest.approx(
        {(): 4.047207, ("a",): 2.478398, ("b",): 1.907872, ("a", "b"): 1.652265}, abs=1e-6
    )
    expected = {("a",): 2.251001, ("b",): 1.721604, ("a", "b"): 1.118845}
    assert plan.variances == pytest.approx(expected, abs=1e-6)
    assert plan.total_variance == pytest.approx(16.379882, abs=1e-6)
    naive = 3 * (2 + 3 + 6)  # each of three tables with a third of mu^2
    assert naive == 33


def test_no_gaussian_strategy_is_better() -> None:
    for sizes, sets in CASES:
        marginals = Marginals(sizes, sets)
        plan = marginals.plan(budget=Budget(rho=0.5))
        workload = np.vstack([table_matrix(table, marginals.domain) for table in plan.sets])
        gram = workload.T @ workload
        ridge = 1e-10 * np.eye(len(gram))  # makes a workload of lower rank solvable; it only adds to the bound
        bound = optimal_gram(gram + ridge, precision=1e-4).total_variance
        assert plan.total_variance <= bound * (1 + 1e-6)
        assert plan.total_variance >= optimal_gram(gram + ridge, precision=1e-4).lower_bound * (1 - 1e-3)


def test_one_unit_costs_what_is_charged_and_no_more() -> None:
    """mu^2 of the worst pair of neighbours, from matrices over the whole domain, against the event."""
    for (sizes, sets), neighbours in itertools.product(CASES, Neighbours):
        marginals = Marginals(sizes, sets)
        plan = marginals.plan(budget=Budget(rho=0.3), neighbours=neighbours)
        precision = sum(
            residual_matrix(part, marginals.domain).T
            @ np.linalg.solve(residual_shape(part, marginals.domain), residual_matrix(part, marginals.domain))
            / float(sigma) ** 2
            for part, sigma in _gaussian(plan).sigmas.items()
        )
        moves = cell_moves(len(precision), replaced=neighbours is Neighbours.REPLACE)
        worst = max(move @ precision @ move for move in moves)
        assert isinstance(plan.event, events.Gaussian)
        charged = 1 / plan.event.noise_multiplier**2
        assert worst <= charged * (1 + Fraction(1, 10**12))
        assert worst == pytest.approx(float(charged), rel=1e-6)
        assert charged <= Fraction(6, 10)


def test_many_attributes_are_bounded_term_by_term(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, sets = {"a": 2, "b": 3, "c": 2}, [("a", "b"), ("b", "c")]
    exact = Marginals(sizes, sets).plan(budget=Budget(rho=0.3), neighbours="replace")
    monkeypatch.setattr(gaussian_residuals, "_FEW", 0)
    bounded = Marginals(sizes, sets).plan(budget=Budget(rho=0.3), neighbours="replace")
    assert exact.total_variance < bounded.total_variance < 2 * exact.total_variance
    monkeypatch.undo()
    sizes = {f"x{i}": 2 + i % 2 for i in range(12)}
    wide = Marginals(sizes, itertools.combinations(sizes, 2)).plan(budget=Budget(rho=0.3), neighbours="replace")
    assert isinstance(wide.event, events.Gaussian)
    assert 0.6 * (1 - 1e-7) < 1 / wide.event.noise_multiplier**2 <= Fraction(6, 10)


def test_variances_are_those_of_the_noise_written_out() -> None:
    for sizes, sets in CASES:
        marginals = Marginals(sizes, sets)
        plan = marginals.plan(budget=Budget(rho=2))
        sigmas = _gaussian(plan).sigmas
        residuals = np.vstack([residual_matrix(part, marginals.domain) for part in sigmas])
        shapes = [residual_shape(part, marginals.domain) * float(sigma) ** 2 for part, sigma in sigmas.items()]
        covariance = np.zeros((len(residuals), len(residuals)))
        start = 0
        for shape in shapes:
            covariance[start : start + len(shape), start : start + len(shape)] = shape
            start += len(shape)
        for table, variance in plan.variances.items():
            answer = table_matrix(table, marginals.domain) @ np.linalg.pinv(residuals)
            assert np.diag(answer @ covariance @ answer.T) == pytest.approx(variance, rel=1e-6)


def test_the_exact_law_of_a_tiny_table_keeps_to_its_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both residuals of one attribute of two values, rounded to whole numbers, where rounding can be seen.

    The masses of all outputs are enumerated for all neighbours, and their hockey-stick divergence is compared with
    that of the event; without the correlation paid for, it would be mu^2 = 2 instead of 3/2, so the bound has a power.
    """
    monkeypatch.setattr(gaussian_residuals, "_STEPS", 1)
    monkeypatch.setattr(gaussian_residuals, "_FINEST", 0)
    plan = Marginals({"a": 2}, [("a",)]).plan(budget=Budget(rho=0.5))
    sigmas = _gaussian(plan).sigmas
    support = np.arange(-60, 61)

    def masses(value: int, sigma: float) -> Any:
        law = NormalDist(value, sigma)
        return np.array([law.cdf(z + 0.5) - law.cdf(z - 0.5) for z in support.tolist()])

    def output(counts: tuple[int, int]) -> Any:
        total = masses(sum(counts), float(sigmas[()]))
        difference = masses(counts[0] - counts[1], float(sigmas[("a",)]) * 2**0.5)
        return np.outer(total, difference)

    base = output((3, 5))
    for other in ((4, 5), (3, 6), (2, 5), (3, 4)):
        moved = output(other)
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            for first, second in ((base, moved), (moved, base)):
                found = float(np.sum(np.maximum(first - np.exp(epsilon) * second, 0)))
                assert found <= accounting.delta(plan.event, epsilon) + 1e-12
    draws = [int(gaussian_residuals._release(np.array([7]), sigmas[("a",)], SeededBits(s))[0]) - 7 for s in range(1500)]
    expected = float(sigmas[("a",)]) ** 2 * 2 + 1 / 12
    assert np.var(draws) == pytest.approx(expected, rel=0.25)  # 6.8 sd of 1,500 squares


@pytest.mark.ci
def test_measured_errors_are_the_claimed_ones(bits: SeededBits) -> None:
    """300 releases of 11 cells: a mean square within 5 sd; and intervals cover as often as they say, and not always."""
    for budget in (Budget(rho=0.5), Budget(epsilon=1)):
        plan = Marginals(*TWO_BY_THREE).plan(budget=budget)
        truths = {("a",): COUNTS.sum(1), ("b",): COUNTS.sum(0), ("a", "b"): COUNTS}
        squares: dict[Any, list[float]] = {table: [] for table in truths}
        covered = []
        for _ in range(300):
            released = plan.release(COUNTS, bits=bits)
            for table, truth in truths.items():
                estimate = released[table]
                squares[table].append(float(np.mean((estimate.value - truth) ** 2)))
                covered.append(np.mean((estimate.low <= truth) & (truth <= estimate.high)))
        for table, found in squares.items():
            sd = plan.variances[table] * (5 if budget == Budget(epsilon=1) else 2) ** 0.5 / 300**0.5
            assert abs(np.mean(found) - plan.variances[table]) < 5 * sd
        assert 0.93 < np.mean(covered) <= (0.97 if budget == Budget(rho=0.5) else 1)


def test_tables_agree_and_every_form_of_counts_gives_the_same() -> None:
    plan = Marginals(*TWO_BY_THREE).plan(budget=Budget(rho=0.5))
    first, second = (np.repeat(place.ravel(), COUNTS.ravel()) for place in np.indices(COUNTS.shape))
    forms = [COUNTS, {("a", "b"): COUNTS}, {("b", "a"): COUNTS.T}, {"a": first, "b": second, "other": second}]
    released = [plan.release(form, bits=SeededBits(5)) for form in forms]
    for tables in released:
        for table in plan.sets:
            assert np.array_equal(tables[table].value, released[0][table].value)
    one = released[0]
    assert one["a", "b"].value.sum(axis=1) == pytest.approx(one["a"].value)
    assert one["b", "a"].value.sum(axis=0) == pytest.approx(one["b"].value)
    assert not one.private
    assert "NOT PRIVATE" in str(one)
    assert list(one) == list(plan.sets)
    assert one["a"].event == plan.event


def test_values_of_rows_are_found_by_their_labels_and_strangers_count_nowhere() -> None:
    domain: dict[str, Any] = {"sex": ["F", "M"], "age": [10, 20, 30], "mixed": ["x", 1, None]}
    plan = Marginals(domain, [("sex", "age"), ("mixed",)]).plan(budget=Budget(epsilon=10**7))
    rows: dict[str, Any] = {
        "sex": np.array(["F", "M", "M", "X", "F"]),
        "age": np.array([10, 30, 30, 10, 99]),
        "mixed": np.array(["x", 1, 1, None, None], dtype=object),
    }
    released = plan.release(rows)
    assert np.round(released["sex", "age"].value).tolist() == [[1, 0, 0], [0, 0, 2]]
    assert np.round(released["mixed"].value).tolist() == [1, 2, 0]


def test_frames_of_all_kinds_are_counted() -> None:
    plan = Marginals({"a": 2, "b": ["x", "y"]}, [("a", "b")]).plan(budget=Budget(epsilon=10**7))
    columns = {"a": [0, 1, 1, 7], "b": ["x", "y", "y", "x"]}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        assert np.round(plan.release(frame)["a", "b"].value).tolist() == [[1, 0], [0, 2]]


def test_the_interval_of_one_draw_is_that_of_its_law() -> None:
    plan = Marginals({"a": 3}, [("a",)]).plan(budget=Budget(epsilon="1/10"))
    estimate = plan.release(np.array([5, 6, 7]), bits=SeededBits(1))["a"]
    assert (estimate.high - estimate.low) / 2 == pytest.approx(30, abs=0.01)  # P(|Z| > 30) = 2 a^31 / (1 + a) < 0.05


def test_the_same_set_twice_costs_what_one_costs_and_weights_shift_the_error() -> None:
    one = Marginals({"a": 5}, [("a",)]).plan(budget=Budget(rho=0.1))
    twice = Marginals({"a": 5}, [("a",)] * 7).plan(budget=Budget(rho=0.1))
    assert twice.variances == one.variances
    assert one.variances[("a",)] == pytest.approx(5, rel=1e-5)  # 1 / (2 rho): nothing is lost
    even, leaning = (
        Marginals({"a": 2, "b": 2}, [("a",), ("b",)], weights=weights).plan(budget=Budget(rho=0.1))
        for weights in ([1, 1], [10, 1])
    )
    assert leaning.variances[("a",)] < even.variances[("a",)] < leaning.variances[("b",)]


def test_projected_tables_are_nonnegative_agree_and_are_nearer() -> None:
    sizes = {"a": 3, "b": 4, "c": 2}
    truth = np.zeros((3, 4, 2), dtype=np.int64)
    truth[0, 1, 0], truth[2, 3, 1], truth[1, 1, 1] = 60, 25, 9
    plan = Marginals(sizes, [("a", "b"), ("b", "c"), ("c",)]).plan(budget=Budget(rho=0.02))
    truths = {("a", "b"): truth.sum(2), ("b", "c"): truth.sum(0), ("c",): truth.sum((0, 1))}
    raw = projected = 0.0
    for seed in range(8):
        released = plan.release(truth, bits=SeededBits(seed))
        nearest = released.projected()
        assert all(np.all(table >= 0) for table in nearest.values())
        assert nearest["a", "b"].sum(axis=0) == pytest.approx(nearest["b", "c"].sum(axis=1), abs=1e-4)
        assert nearest["b", "c"].sum(axis=0) == pytest.approx(nearest[("c",)], abs=1e-4)
        raw += sum(float(np.sum((released.raw[t] - truths[t]) ** 2)) for t in truths)
        projected += sum(float(np.sum((nearest[t] - truths[t]) ** 2)) for t in truths)
    assert projected < raw
    empty = plan.release(np.zeros_like(truth) - 1000, bits=SeededBits(1)).projected()
    assert all(np.all(table == 0) for table in empty.values())


def test_units_of_several_rows_pay_for_all_of_them() -> None:
    for budget in (Budget(rho=0.5), Budget(epsilon=1), Budget(epsilon=1, delta=1e-6)):
        one, three = (Marginals(*TWO_BY_THREE).plan(budget=budget, rows_per_unit=rows) for rows in (1, 3))
        assert three.total_variance == pytest.approx(9 * one.total_variance, rel=0.1)  # small discrete noise is less
        delta = getattr(budget, "delta", 0)
        for plan in (one, three):
            assert accounting.epsilon(plan.event, delta or 1e-6) <= accounting.epsilon(one.event, delta or 1e-6) * 1.001


def test_pure_budgets_are_kept_and_no_simple_choice_is_better() -> None:
    for (sizes, sets), neighbours in itertools.product(CASES, Neighbours):
        plan = Marginals(sizes, sets).plan(budget=Budget(epsilon=1), neighbours=neighbours)
        noise = plan.noise
        assert isinstance(noise, LaplaceTables)
        domain = ProductDomain(sizes)
        rows = [
            np.abs(_measured(m.attributes, m.differences, domain)) * float(share) for m, share in noise.shares.items()
        ]
        signed = np.vstack([_measured(m.attributes, m.differences, domain) * float(s) for m, s in noise.shares.items()])
        assert rows
        moves = cell_moves(signed.shape[1], replaced=neighbours is Neighbours.REPLACE)
        worst = max(np.sum(np.abs(signed @ move)) for move in moves)
        charged = accounting.epsilon(plan.event, 0)
        assert worst <= charged * (1 + 1e-12)
        assert charged <= 1
        spread = 2 if neighbours is Neighbours.REPLACE else 1
        cells = [domain.cells(table) for table in plan.sets]
        roots = sum(cell ** (1 / 3) for cell in cells)
        assert plan.total_variance <= 2 * spread**2 * roots**3 * (1 + 1e-6)  # each table by itself, with its best share


def _measured(attributes: tuple[str, ...], differences: tuple[str, ...], domain: ProductDomain) -> Any:
    result = np.ones((1, 1))
    for name, size in domain.sizes.items():
        part = np.array([[1, -1]]) if name in differences else np.eye(size)
        result = np.kron(result, part if name in attributes else np.ones((1, size)))
    return result


def test_differences_of_two_values_are_measured_where_they_help() -> None:
    """Ten binary attributes: a difference of two cells, of variance b^2, says more than two cells of 2 b^2 each.

    Ten tables at epsilon / 10 and the mean of their sums have 2 x 100 x (10 + 1) in all; ten differences and one total
    with the best shares have 2 (10 / 2^(1/3) + 5^(1/3))^3, from v = 1 of each difference and 5 of the total.
    """
    sizes = dict.fromkeys("abcdefghij", 2)
    plan = Marginals(sizes, [(name,) for name in sizes]).plan(budget=Budget(epsilon=1))
    assert isinstance(plan.noise, LaplaceTables)
    assert any(measured.differences for measured in plan.noise.shares)
    assert plan.total_variance <= 2 * (10 / 2 ** (1 / 3) + 5 ** (1 / 3)) ** 3 * (1 + 1e-6) < 2200


def test_bad_domains_and_sets_are_refused() -> None:
    bad: list[tuple[Any, Any]] = [({}, [()]), ("a", []), ({"a": 0}, [("a",)]), ({"a": -1}, [()]), ({"a": 2.5}, [()])]
    bad += [({"a": True}, [()]), ({"a": []}, [()]), ({"a": ["x", "x"]}, [()]), ({"a": [float("nan")]}, [()])]
    bad += [({1: 2}, [()]), ({"a": 2}, []), ({"a": 2}, [("b",)]), ({"a": 2}, ["a"]), ({"a": 2}, "a"), ({"a": 2}, 3)]
    bad += [({"a": 2}, [("a", "a")]), ({f"x{i}": 2 for i in range(30)}, [[f"x{i}" for i in range(30)]])]
    bad += [({"a": 2}, [(["a"],)]), ({"a": 2}, [(1,)])]
    bad += [({"a": None}, [()]), ({"a": "xy"}, [()]), (None, [()]), ({"a": 1 << 40}, [()])]

    def is_refused(case: tuple[Any, Any]) -> None:
        with pytest.raises(InvalidParameter):
            Marginals(*case)

    try_all(bad, is_refused)
    for weights in ([1], [1, 0], [1, -1], [1, float("nan")]):
        with pytest.raises(InvalidParameter):
            Marginals({"a": 2}, [("a",), ()], weights=weights)


def test_bad_plans_and_counts_are_refused_before_a_bit_is_drawn() -> None:
    marginals = Marginals({"a": 2, "b": 3}, [("a",), ("b",)])
    wrong: list[dict[str, Any]] = [{"budget": None}, {"budget": 1}, {"budget": Budget(rho=1), "neighbours": "swap"}]
    wrong += [{"budget": Budget(rho=1), "rows_per_unit": rows} for rows in (0, -1, 1.5, True)]
    wrong += [{"budget": Budget(rho=Fraction(1, 10**60))}]

    def plan_is_refused(arguments: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter):
            marginals.plan(**arguments)

    try_all(wrong, plan_is_refused)
    plan = marginals.plan(budget=Budget(rho=1))
    counts: list[Any] = [COUNTS.T, COUNTS.astype(float), COUNTS > 1, COUNTS[0], 5, "a", None, {("a",): [1, 2]}]
    counts += [{("a", "b"): COUNTS.T}, {"a": np.array([0, 1])}, {"a": np.array([0.0]), "b": np.array([0])}]
    counts += [{"a": np.array([0, 1]), "b": np.array([0])}, {"a": COUNTS, "b": COUNTS}, {}]

    def counts_are_refused(value: Any) -> None:
        with pytest.raises(InvalidValue) as refused:
            plan.release(value, bits=NoBits())
        assert refused.value.hint

    try_all(counts, counts_are_refused)
    with pytest.raises(InvalidParameter, match="confidence"):
        plan.release(COUNTS, confidence=1, bits=NoBits())
    with pytest.raises(InvalidParameter, match="to be one of"):
        plan.release({("a", "z"): COUNTS}, bits=NoBits())


def test_huge_counts_and_huge_noise_stay_exact() -> None:
    plan = Marginals({"a": 2}, [("a",)]).plan(budget=Budget(rho=10**6))
    counts = np.array([1 << 48, -(1 << 47)])
    assert plan.release(counts).raw[("a",)] == pytest.approx(counts.astype(float), rel=1e-9)
    noisy = Marginals({"a": 3}, [("a",)]).plan(budget=Budget(rho=Fraction(1, 10**14)))
    released = noisy.release(np.array([5, 6, 7]), bits=SeededBits(1))["a"]
    assert np.all(np.abs(released.value) < 8 * noisy.variances[("a",)] ** 0.5)


@pytest.mark.slow
def test_all_pairs_of_twenty_attributes() -> None:
    sizes = {f"x{i}": 10 for i in range(20)}
    plan = Marginals(sizes, itertools.combinations(sizes, 2)).plan(budget=Budget(rho=0.5))
    rows = {name: (np.arange(10**5) * (place + 3) // 7) % 10 for place, name in enumerate(sizes)}
    released = plan.release(rows, bits=SeededBits(1))
    truth = np.bincount(rows["x3"] * 10 + rows["x7"], minlength=100).reshape(10, 10)
    errors = released["x3", "x7"].value - truth
    assert np.mean(errors**2) == pytest.approx(plan.variances["x3", "x7"], rel=0.7)
    assert released["x3", "x7"].value.sum(axis=1) == pytest.approx(released["x3", "x9"].value.sum(axis=1))
    assert plan.total_variance < 190 * 100 * 190 / 1.3  # each table by itself would have 190 in every cell


def test_no_counts_are_refused_for_what_they_are() -> None:
    """An error would tell of them: they are clipped to a public number, and move no farther than before."""
    sets = [("a",), ("b",)]
    domain = Marginals({"a": 2, "b": 3}, sets).domain
    most = (1 << 50) // 6
    for edge in (most - 1, most, most + 1, (1 << 63) - 2, -most - 1, -most):
        counts = np.full((2, 3), edge)
        more = counts.copy()
        more[1, 2] += 1
        one, other = (CountedTables(table, [("a", "b")], domain).table(("a", "b")) for table in (counts, more))
        moved = other - one
        assert moved.ravel()[:-1].tolist() == [0] * 5
        assert moved[1, 2] in (0, 1)
    plan = Marginals({"a": 2, "b": 3}, sets).plan(budget=Budget(rho=1))
    for given in (np.full((2, 3), (1 << 63) - 1), {("a", "b"): np.full((2, 3), -(1 << 63))}):
        assert np.isfinite(plan.release(given, bits=SeededBits(2)).raw[("a",)]).all()
