"""Groupings that agree: paid for whatever one unit moves of them, fitted without bias, as noisy as they say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.measurement.program.cube import Cube, FittedTables
from discreet.measurement.program.execution import ReleasedStatistics, run
from discreet.measurement.program.program import Program, ReleaseFormat, _plan_agreeing_groupings, choose
from discreet.measurement.releases.additive import LinearCombination
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.sums import (
    gaussian_reaches,
    laplace_reaches,
    many_gaussian_reaches,
    many_laplace_reaches,
    repeated_gaussian_reach,
    repeated_laplace_reach,
)
from discreet.noise import SeededBits
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import Limits
from discreet.privacy import Neighbours, events
from discreet.sql.select import parse
from tests.cases import try_all
from tests.effort import some
from tests.measurement.test_few_groups import NAMES, Row, inputs, schema, used
from tests.open_groups import sealed

BOTH = "SELECT g, h, COUNT(*) AS n FROM t GROUP BY CUBE (g, h)"
SUMS = "SELECT g, h, SUM(x) AS s, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY ROLLUP (g, h)"
CUBES = (Cube((2, 3), ((0, 1), (0,), (1,), ())), Cube((3, 2, 2), ((0, 1), (1, 2), (0,), ())), Cube((4,), ((0,), ())))


def agreed(sql: str, shown: int, limits: Limits, neighbours: Neighbours, delta: str = "0") -> Program | None:
    """The program whose groupings are sums of one table, whether or not it would be taken."""
    declared = schema(shown, limits, neighbours)
    program = choose(parse(sql, {"t": declared}), declared, epsilon=Fraction(1), delta=Fraction(delta), salt="salt")
    return program if program.tables is not None else None


def moves_of_groupings(program: Program, tables: Sequence[NDArray[np.int64]]) -> list[list[NDArray[np.int64]]]:
    """For each grouping the exact statistics that meet noise, given those by all keys."""
    assert program.tables is not None
    cube, found = program.tables.cube, []
    for places in cube.sets:
        axes = tuple(axis for axis in range(len(cube.sizes)) if axis not in places)
        shaped = [table.reshape(*cube.sizes, -1) for table in tables]
        found.append([table.sum(axis=axes).reshape(cube.count(places), -1) for table in shaped])
    return found


def shares_used(program: Program, tables: Sequence[NDArray[np.int64]], neighbours: Neighbours) -> list[Fraction]:
    """For each measure of each grouping the largest share of its price that neighbours use up."""
    found = []
    for one, each in zip(program.groupings, moves_of_groupings(program, tables), strict=True):
        every = np.unique(np.array(each), axis=0)
        moves = every[:, None] - every if neighbours is Neighbours.REPLACE else every[:, None]
        start = 0
        for measure in one.measures:
            stop = start + len(measure.scales)
            found.append(used(measure, moves[..., start:stop]))
            start = stop
    return found


def owned(shown: int, rows: int) -> list[list[Row]]:
    """All that one unit can own of a small world: in each group nothing, or more rows than limits keep, of a value."""
    cells = list(product(NAMES[:shown], "uv"))
    full: list[list[int | None]] = [[], [9] * (rows + 1), [-2] * (rows + 1)]
    kept = []
    for groups in product(full, repeat=len(cells)):
        pairs = [(cell, x) for cell, own in zip(cells, groups, strict=True) for x in own]
        kept.append([{"unit": 1, "g": g, "h": h, "w": "p", "x": x} for (g, h), x in pairs])
    return kept


@cache
def read(reading: Reading, shown: int, rows: int) -> list[NDArray[np.int64]]:
    return [inputs([reading], own) for own in owned(shown, rows)]


LAWS: tuple[Law, ...] = ("laplace", "gaussian")
CASES = [
    (sql, law, Limits(groups, rows), neighbours)
    for sql in (BOTH, SUMS)
    for law, groups, rows, neighbours in product(LAWS, (1, 2, 3, 4), (1, 2), Neighbours)
]


@pytest.mark.ci
def test_nobody_moves_a_grouping_farther_than_was_paid_for() -> None:
    """Whether or not it would be taken: all that one unit can own of four groups, with both laws."""

    def check(case: tuple[str, Law, Limits, Neighbours]) -> None:
        sql, law, limits, neighbours = case
        declared = schema(2, limits, neighbours)
        budget = Fraction(1), Fraction(1, 1000)
        program = _plan_agreeing_groupings(parse(sql, {"t": declared}), declared, None, budget, law=law, salt="salt")
        assert program is not None
        assert program.noise.law == law
        shares = shares_used(program, read(program.reading, 2, limits.rows), neighbours)
        assert max(shares) < 1 + 1e-9
        if neighbours is Neighbours.ADD_REMOVE:
            assert max(shares) > 1 - 1e-6
        assert events.strip_calibration(program.event) == events.Composed(
            [m.event for one in program.groupings for m in one.measures]
        )

    try_all(some(CASES, 5), check)


@pytest.mark.ci
def test_it_is_taken_for_one_group_of_everybody_and_where_it_is_quieter() -> None:
    taken = [
        groups
        for groups, neighbours, delta in product((1, 2, 3, 4), Neighbours, ("0", "1e-3"))
        if agreed(BOTH, 2, Limits(groups, 1), neighbours, delta) is not None
    ]
    assert taken.count(1) == 4
    assert len(taken) > 4


def test_mutant_sums_paid_as_single_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody in two groups moves their sum by both."""
    for relation in Neighbours:
        assert farthest(relation) < 1 + 1e-9
    monkeypatch.setattr(QueryContribution, "added_up", lambda self, **_: self)
    for relation in Neighbours:
        assert farthest(relation) > 1.2


def farthest(neighbours: Neighbours) -> float:
    """The largest share of a price that one person in three of four groups uses up, with Gaussian noise."""
    program = choose_gaussian(BOTH, Limits(3, 1), neighbours)
    return float(max(shares_used(program, read(program.reading, 2, 1), neighbours)))


def choose_gaussian(sql: str, limits: Limits, neighbours: Neighbours) -> Program:
    declared = schema(2, limits, neighbours)
    asked = parse(sql, {"t": declared})
    made = choose(asked, declared, epsilon=Fraction(1), delta=Fraction(1, 1000), salt="salt", law="gaussian")
    assert made.tables is not None
    return made


def test_the_price_is_the_budget() -> None:
    for delta in ("0", "1e-3"):
        program = agreed(SUMS, 2, Limits(1, 2), Neighbours.REPLACE, delta)
        assert program is not None
        parts = [m.event for one in program.groupings for m in one.measures]
        if program.noise.law == "laplace":
            pure = [part for part in parts if isinstance(part, events.DiscreteLaplace)]
            assert sum((part.sensitivity / part.scale for part in pure), Fraction(0)) == 1
        else:
            assert all(isinstance(part, events.Concentrated) for part in parts)


def test_what_is_no_sum_and_what_was_kept_before_is_counted_each_by_itself() -> None:
    one = Limits(1, 1)
    for sql in (BOTH.replace("COUNT(*)", "COUNT(DISTINCT unit)"), BOTH.replace("COUNT(*)", "VARIANCE(x)")):
        assert agreed(sql, 2, one, Neighbours.ADD_REMOVE) is None
    declared = schema(2, one, Neighbours.ADD_REMOVE)
    asked = parse(BOTH, {"t": declared})
    before = choose(asked, declared, epsilon=Fraction(1), salt="salt", edition=ReleaseFormat.UNCUT)
    assert before.tables is None
    assert len(before.readings) == 4


# -------------------------------------------------------------------------------------------------------- least squares


def made(cube: Cube, law: Law, spread: float = 1.0) -> FittedTables:
    """Tables with the shares that are best, and scales of about ten."""
    spreads = [1.0 + spread * len(one) for one in cube.sets]
    shares = cube.shares(law, spreads)
    power = 1 if law == "laplace" else 0.5
    scales = [
        (Fraction(10 * s / float(share) ** power).limit_denominator(1000),) if share else ()
        for share, s in zip(shares, spreads, strict=True)
    ]
    return FittedTables(cube, law, tuple(scales), (False,))


def design(tables: FittedTables) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sums that were released, one row for each, and the precision of each."""
    rows, precisions = [], []
    for keys, scales in zip(tables.cube.sets, tables.scales, strict=True):
        for group in product(*(range(tables.cube.sizes[key]) for key in keys)) if scales else ():
            cells = product(*(range(size) for size in tables.cube.sizes))
            rows.append([float(all(cell[k] == g for k, g in zip(keys, group, strict=True))) for cell in cells])
            precisions.append(1 / (float(scales[0]) ** 2 * (2 if tables.law == "laplace" else 1)))
    return np.array(rows), np.array(precisions)


def sums(cube: Cube, keys: tuple[int, ...]) -> NDArray[np.float64]:
    return design(
        FittedTables(cube, "gaussian", tuple((Fraction(1),) if one == keys else () for one in cube.sets), (False,))
    )[0]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_tables_are_fitted_by_least_squares(law: Law) -> None:
    """Against the normal equations of all released sums: values, and the variance that is claimed."""
    bits = np.arange(997) * 7919 % 1009
    for cube in CUBES:
        tables = made(cube, law)
        matrix, precisions = design(tables)
        covariance = np.linalg.pinv(matrix.T @ (precisions[:, None] * matrix))
        noisy = [np.array(bits[: cube.count(one)] % 100, dtype=object).reshape(-1, 1) for one in cube.sets]
        seen = np.concatenate([t[:, 0] for t, s in zip(noisy, tables.scales, strict=True) if s]).astype(float)
        expected = covariance @ (matrix.T @ (precisions * seen))
        _, found = tables.fit_tables(noisy)
        for place, keys in enumerate(cube.sets):
            adding = sums(cube, keys)
            np.testing.assert_allclose(found[place][:, 0].astype(float), adding @ expected, atol=0.05)
            variances = np.diag(adding @ covariance @ adding.T)
            claimed = float(tables.noise(place).variance(LinearCombination.at(0)))
            np.testing.assert_allclose(variances, claimed, rtol=1e-3)
            assert claimed <= float(
                cube.variances([0 if not s else 1 / float(s[0]) ** 2 for s in tables.scales])[place]
            ) * (2.001 if law == "laplace" else 1.001)


def test_without_noise_they_are_the_truth_and_always_agree() -> None:
    for cube in CUBES:
        tables = made(cube, "gaussian")
        truth = np.array([(3 * i * i) % 101 for i in range(cube.cells)], dtype=object).reshape(*cube.sizes, 1)
        exact = [tables._sum_cells(truth, one).reshape(-1, 1) for one in cube.sets]
        _, found = tables.fit_tables(exact)
        assert all((one == other).all() for one, other in zip(found, exact, strict=True))
        noisy = [table + np.array([[(i * 37) % 11] for i in range(len(table))], dtype=object) for table in exact]
        finest, found = tables.fit_tables(noisy)
        summed = tables.added_up([row[0] for row in finest], 3.0)
        whole = [sum(table) for table in summed]
        assert len(set(whole)) == 1
        assert all(float(value) == value for table in summed for value in table)
        assert sum(map(float, summed[0])) == whole[0]  # in doubles as well
        near = [
            abs(a - b[0]) for table, rows in zip(summed, found, strict=True) for a, b in zip(table, rows, strict=True)
        ]
        assert max(near) <= 3 / 64


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_shares_are_best(law: Law) -> None:
    """No table has a smaller product of variances with shares moved a little, nor with equal ones."""
    power = 2 if law == "laplace" else 1
    for cube in CUBES:
        spreads = [1.0] * len(cube.sets)
        found = cube.best_shares(law, spreads)
        assert sum(cube.shares(law, spreads)) == 1

        def badness(shares: Sequence[float], cube: Cube = cube) -> float:
            return sum(map(math.log, cube.variances([max(s, 1e-9) ** power for s in shares])))

        best = badness(found)
        kept = cube.variances([float(share) ** power for share in cube.shares(law, spreads)])
        if law == "gaussian":
            assert max(kept) <= len(found)  # nobody is noisier than with a share of their own
        assert best <= badness([1 / len(found)] * len(found)) + 1e-9
        for i, j in permutations(range(len(found)), 2):
            moved = list(found)
            step = min(0.02, moved[i])
            moved[i], moved[j] = moved[i] - step, moved[j] + step
            assert best <= badness(moved) + 2e-3


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_noise_is_as_large_as_is_claimed_and_intervals_cover(law: Law) -> None:
    """800 releases of a total and of a cell: a variance is within 6 standard errors of what is claimed.

    Of a normal draw, the standard error of a square is sqrt(2) times its mean; of a Laplace draw sqrt(5), and of sums
    of several less: 6 of them are 30 and 47 %. A variance that is twice as large is not within that.
    """
    declared = replace(schema(3, Limits(1, 1), Neighbours.ADD_REMOVE), unit=None)
    asked = parse(BOTH, {"t": declared})
    program = choose(asked, declared, epsilon=Fraction(1, 8), delta=Fraction(1, 1000), law=law)
    assert program.tables is not None
    tables, releaser, count, places = program.tables, Releaser(SeededBits(5)), 800, (0, len(program.groupings) - 1)
    ends = np.cumsum([tables.cube.count(one) for one in tables.cube.sets])[:-1]
    found = []
    for _ in range(count):
        _, fitted = tables.fit_tables(np.split(run(program, _Nobody(), releaser).noisy, ends))
        found.append([float(fitted[place][0, 0]) for place in places])
    for values, place in zip(np.array(found).T, places, strict=True):
        noise = program.groupings[place].noise
        claimed = float(noise.variance(LinearCombination.at(0)))
        measured = float(np.mean(values**2))
        error = 6 * math.sqrt((5 if law == "laplace" else 2) / count)
        assert abs(measured / claimed - 1) < error
        assert abs(measured / (2 * claimed) - 1) > error / 2
        covered = float(np.mean(np.abs(values) <= float(noise.reach(LinearCombination.at(0), Fraction(1, 10)))))
        assert covered >= 0.9 - 5 * math.sqrt(0.09 / count)
        assert covered <= (0.99 if law == "laplace" else 0.9 + 5 * math.sqrt(0.09 / count))


class _Nobody:
    """Has no rows."""

    def read(self, reading: Reading) -> ExactGroups:
        return sealed({}, reading)


def test_reaches_of_many_draws_are_those_of_each() -> None:
    weights, sigmas, counts = np.array([[0.7], [-0.2], [0.05]]), np.array([9.0, 12.0, 7.0]), np.array([1.0, 3.0, 12.0])
    rows = np.repeat(np.arange(3), counts.astype(int))
    alone = gaussian_reaches((weights * sigmas[:, None])[rows], weights[rows], sigmas[rows], 0.05)
    together = many_gaussian_reaches(weights, sigmas, counts, 0.05)
    assert abs(float(together[0]) / float(alone[0]) - 1) < 0.02
    variance = float(np.sum(counts * (weights[:, 0] * sigmas) ** 2))
    assert 1.9 < float(together[0]) / math.sqrt(variance) < 2.1
    small = many_gaussian_reaches(weights, np.array([0.3, 0.2, 0.1]), counts, 0.05)
    assert float(small[0]) >= repeated_gaussian_reach(weights[0], np.array([0.3]), 1, 0.05) * 0.999
    ones = many_laplace_reaches(np.ones((1, 1)), np.array([4.0]), np.array([20.0]), 0.05)
    bound = repeated_laplace_reach(np.ones(1), np.array([4.0]), 20, 0.05)
    assert 1.9 * math.sqrt(2 * 20 * 16) < float(ones[0]) <= bound * 1.0001
    wide = many_laplace_reaches(np.ones((1, 1)), np.array([4.0]), np.array([1e5]), 0.05)
    assert 1.9 * math.sqrt(2 * 1e5 * 16) < float(wide[0]) < 3 * math.sqrt(2 * 1e5 * 16)


def test_the_law_of_a_sum_of_laplace_draws() -> None:
    """Against the closed forms for one and for several equal draws, and between them for draws of several sizes."""
    one = many_laplace_reaches(np.ones((1, 1)), np.array([1000.0]), np.array([1.0]), 0.05)
    assert float(one[0]) >= 1000 * math.log(20) * 0.999
    for count in (8, 30):
        rows = np.ones((count, 1))
        closed = float(laplace_reaches(rows * 1000.0, rows, 0.05)[0])
        found = float(many_laplace_reaches(np.ones((1, 1)), np.array([1000.0]), np.array([float(count)]), 0.05)[0])
        assert found == pytest.approx(closed, rel=1e-4)
    weights, scales, counts = np.array([[0.8], [0.1]]), np.array([1000.0, 1500.0]), np.array([1.0, 20.0])
    deviation = math.sqrt(2 * (800**2 + 20 * 150**2))
    found = float(many_laplace_reaches(weights, scales, counts, 0.05)[0])
    assert 1.96 * deviation < found < 2.15 * deviation
    few = np.array([[1.0], [0.5], [0.2]])
    exact = float(laplace_reaches(few * 1000.0, few, 0.05)[0])
    assert float(many_laplace_reaches(few, np.full(3, 1000.0), np.ones(3), 0.05)[0]) == pytest.approx(exact, rel=2e-2)


def test_stored_statistics_are_what_was_released() -> None:
    """Integers of every table that met noise; those without a share are zeros, which tell nothing."""
    program = agreed(BOTH, 2, Limits(1, 1), Neighbours.ADD_REMOVE)
    assert program is not None
    released = run(program, _Nobody(), Releaser(SeededBits(1)))
    assert isinstance(released, ReleasedStatistics)
    assert all(isinstance(number, int) for row in released.noisy for number in row)
    assert released.own_statistics is None
    assert len(released.keys) == 4 + 2 + 2 + 1
