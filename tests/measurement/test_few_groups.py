"""Questions that show few groups: noise covers what one unit can move in them, no less and no more, through an engine.

What one unit may own is tried out: rows of each public key, and of a key that nobody declared, more of them than limits
allow. Other units are left out, since what they add is the same for neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from discreet.engines import DuckDB, Memory
from discreet.measurement.program import program as program_module
from discreet.measurement.program.program import Program, ReleaseFormat, choose
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.rank_draws import RankDraws
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours, events
from discreet.sql.select import parse
from tests.cases import try_all
from tests.effort import some
from tests.measurement.draws import modes, readings
from tests.open_groups import unsealed

ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
TYPES = {"unit": Type.INT, "g": Type.TEXT, "h": Type.TEXT, "w": Type.TEXT, "x": Type.INT}
NAMES = "abcd"
Row = dict[str, Any]

COUNT = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
QUESTIONS = (
    COUNT,
    "SELECT g, SUM(x) AS s FROM t GROUP BY g",
    "SELECT g, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY g",
    "SELECT g, COUNT(DISTINCT unit) AS n FROM t GROUP BY g",
)


def schema(shown: int, limits: Limits, neighbours: Neighbours) -> TableSchema:
    columns = {name: ColumnSchema(name=name, type=kind) for name, kind in TYPES.items()}
    columns["g"] = ColumnSchema(name="g", type=Type.TEXT, keys=tuple(NAMES[:shown]))
    columns["h"] = ColumnSchema(name="h", type=Type.TEXT, keys=("u", "v"))
    columns["x"] = ColumnSchema(name="x", type=Type.INT, bounds=ColumnBounds(Fraction(-2), Fraction(5)))
    return TableSchema(name="t", columns=columns, unit="unit", limits=limits, neighbours=neighbours)


def plan(sql: str, declared: TableSchema, *, delta: str = "0", edition: ReleaseFormat = ReleaseFormat.NOW) -> Program:
    asked = parse(sql, {"t": declared})
    return choose(asked, declared, epsilon=Fraction(1), delta=Fraction(delta), salt="salt", edition=edition)


def owned(shown: int, rows: int) -> Iterator[list[Row]]:
    """More rows than the limit of each value, or none, in each public group; some of a key that nobody declared."""
    values = (-2, 9, None) if shown < 4 else (-2, 9)
    full: list[list[int | None]] = [[], *([x] * (rows + 1) for x in values)]
    foreign: list[list[int | None]] = [[], [9, 9, 9]]
    for groups in product(full, repeat=shown):
        for more in foreign:
            each = zip((*NAMES[:shown], "z"), (*groups, more), strict=True)
            yield [{"unit": 1, "g": g, "h": "u", "w": "p", "x": x} for g, own in each for x in own]


def inputs(readings: Sequence[Reading], rows: Sequence[Row]) -> NDArray[np.int64]:
    """The statistics that meet noise, of all groups of all groupings one after the other."""
    engine = Memory()
    engine.register("t", rows, TYPES)
    found = []
    for reading in readings:
        groups = unsealed(engine.read(reading))
        nothing = (0,) * len(reading.statistics)
        found += [groups.get(key, nothing) for key in reading.public_keys or ((),)]
    return np.array(found, dtype=np.int64)


@cache  # both relations read the same, and so do all limits that are no fewer than the groups
def owned_inputs(readings: tuple[Reading, ...], shown: int, rows: int) -> list[NDArray[np.int64]]:
    return [inputs(readings, own) for own in owned(shown, rows)]


def moved(program: Program, tables: Sequence[NDArray[np.int64]], neighbours: Neighbours) -> list[Fraction]:
    """For each measure the largest share of its price that neighbours use up."""
    every = np.unique(np.array(tables), axis=0)
    moves = every[:, None] - every if neighbours is SWAP else every[:, None]
    starts = np.cumsum([0, *(len(measure.scales) for measure in program.measures)])
    return [
        used(measure, moves[..., start : start + len(measure.scales)])
        for measure, start in zip(program.measures, starts, strict=False)
    ]


def used(measure: AdditiveNoise, moves: NDArray[np.int64]) -> Fraction:
    if isinstance(measure.event, events.DiscreteLaplace):
        return Fraction(int(np.abs(moves).sum(axis=(2, 3)).max())) / measure.event.sensitivity
    assert isinstance(measure.event, events.Concentrated)
    squares = (moves.astype(float) / np.array([float(scale) for scale in measure.scales])) ** 2
    return Fraction(float(squares.sum(axis=(2, 3)).max())) / (2 * measure.event.rho)


def check(sql: str, shown: int, limits: Limits, neighbours: Neighbours, delta: str = "0") -> None:
    """Each measure is moved as far as was paid for, and no farther; standard deviations are rounded up."""
    program = plan(sql, schema(shown, limits, neighbours), delta=delta)
    for share in moved(program, owned_inputs(program.readings, shown, limits.rows), neighbours):
        assert share <= 1 if program.noise.law == "laplace" else share < 1 + 1e-9
        assert share > 1 - 1e-6 or (shown == 4 and len(program.measures) > 1)  # where nothing is missing


CASES = [
    (shown, Limits(groups, rows), neighbours)
    for shown, groups, rows, neighbours in product(range(1, 5), range(1, 5), (1, 2, 3), Neighbours)
    if rows < 3 or groups < 3
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_noise_is_for_what_one_unit_can_move(sql: str) -> None:
    """No neighbour moves the inputs farther than was paid for, and some move them as far."""
    try_all(some(CASES, 4), lambda case: check(sql, *case))


def test_gaussian_noise_too() -> None:
    few = [
        (shown, Limits(groups, 2), neighbours) for shown, groups, neighbours in product((2, 3), (1, 2, 3), Neighbours)
    ]
    for sql in QUESTIONS[:2]:
        try_all(few, lambda case, sql=sql: check(sql, *case, delta="1e-3"))  # type: ignore[misc]


def test_groupings() -> None:
    """Each grouping by the number of its own groups; the total without keys is one group, in which people stay."""
    sql = "SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP (g)"
    for groups, shown, neighbours in product((1, 2, 3), (1, 2, 3), Neighbours):
        program = plan(sql, schema(shown, Limits(groups, 1), neighbours), edition=ReleaseFormat.UNCUT)
        (measure,) = program.measures
        entered = min(groups, shown)
        away = min(2 * entered, shown) if neighbours is SWAP else entered
        assert isinstance(measure.event, events.DiscreteLaplace)
        assert measure.event.sensitivity == away + 1
        assert max(moved(program, owned_inputs(program.readings, shown, 1), neighbours)) <= 1
    both = "SELECT g, h, COUNT(*) AS n FROM t GROUP BY CUBE (g, h)"
    tables = [
        [{"unit": 1, "g": g, "h": h, "w": "p", "x": 1} for g, h in own] for own in subsets(list(product("ab", "uv")))
    ]
    for groups, neighbours in product((1, 2, 3, 9), Neighbours):
        program = plan(both, schema(2, Limits(groups, 1), neighbours), edition=ReleaseFormat.UNCUT)
        assert max(moved(program, [inputs(program.readings, own) for own in tables], neighbours)) <= 1
        assert program.contribution.groups == min(groups, 4) + 2 * min(groups, 2) + 1


def subsets(items: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    return [[item for item, taken in zip(items, chosen, strict=True) if taken] for chosen in product((0, 1), repeat=4)]


def test_private_keys_and_what_is_gathered_know_no_number_of_groups() -> None:
    declared = schema(2, Limits(7, 1), SWAP)
    private = plan("SELECT w, g, COUNT(*) AS n FROM t GROUP BY w, g", declared, delta="1e-6")
    assert (private.contribution.groups, private.contribution.overlap) == (7, 0)
    mixed = plan("SELECT g, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((g), (w), ())", declared, delta="1e-6")
    assert (mixed.contribution.groups, mixed.contribution.overlap) == (2 + 7 + 1, 2 + 0 + 1)
    assert [one.contribution.groups for one in mixed.groupings] == [2, 7, 1]


def test_undeclared_keys_use_up_no_groups_on_any_engine() -> None:
    """Rows outside the public keys are dropped before groups are counted, so that a limit of two keeps both."""
    declared = schema(2, Limits(2, 1), ADD)
    rows = [{"unit": unit, "g": g, "h": "u", "w": "p", "x": 1} for unit in range(40) for g in "zyxwvab"]
    program = plan(COUNT, declared)
    for engine, source in ((Memory(), rows), (DuckDB(), pl.DataFrame(rows))):
        engine.register("t", source, TYPES)
        assert unsealed(engine.read(program.reading)) == {("a",): (40,), ("b",): (40,)}
        engine.close()


def test_noise_before_and_now() -> None:
    """By the rules of before, noise was for as many groups as the limit says; of many groups, nothing changes."""

    def scale(shown: int, limits: Limits, neighbours: Neighbours, edition: ReleaseFormat) -> Fraction:
        return plan(COUNT, schema(shown, limits, neighbours), edition=edition).noise.scales[0]

    for neighbours, before, now in ((ADD, 20, 2), (SWAP, 40, 2)):
        few = 2, Limits(20, 1), neighbours
        assert scale(*few, ReleaseFormat.BY_LIMITS) == before
        assert scale(*few, ReleaseFormat.NOW) == now
        many = 4, Limits(2, 1), neighbours
        assert scale(*many, ReleaseFormat.BY_LIMITS) == scale(*many, ReleaseFormat.NOW)


# ---------------------------------------------------------------------------------------------------------------- draws


def test_draws_take_fewer_groups_too() -> None:
    """The mode and the median of two groups: rates are those of a limit of two, whatever the limit is."""
    for sql, neighbours in product(("MODE(x)", "MEDIAN(x)", "QUANTILE(x, 0.9)", "MIN(x)"), Neighbours):
        asked = f"SELECT g, {sql} AS m FROM t GROUP BY g"
        wide, tight = (plan(asked, schema(2, Limits(groups, 1), neighbours)) for groups in (9, 2))
        assert (wide.draws, wide.event) == (tight.draws, tight.event)
    rated = plan("SELECT g, MODE(x) AS m FROM t GROUP BY g", schema(2, Limits(9, 1), ADD))
    assert [mode.rate for mode in modes(rated)] == [Fraction(1, 2)]
    assert readings(plan("SELECT g, MIN(x) AS m FROM t GROUP BY g", schema(2, Limits(9, 1), ADD)), RankDraws)


# -------------------------------------------------------------------------------------------------------------- mutants


def overlap_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Those who are replaced stay in all groups, however many there are."""
    right = QueryContribution.of
    patch.setattr(QueryContribution, "of", lambda **given: _with_overlap(right(**given)))


def _with_overlap(found: QueryContribution) -> QueryContribution:
    return QueryContribution(
        limits=found.limits, neighbours=found.neighbours, groups=found.groups, overlap=found.groups
    )


def one_group_too_few(patch: pytest.MonkeyPatch) -> None:
    right = QueryContribution.of
    patch.setattr(
        QueryContribution, "of", lambda *, shown, **given: right(shown=[max(1, n - 1) for n in shown], **given)
    )


def undeclared_keys_count(patch: pytest.MonkeyPatch) -> None:
    """The reading does not drop them: the number of groups is one that nothing holds people to."""
    right = program_module._reading

    def all_keys(*given: Any) -> Reading:
        reading = right(*given)
        added = (*(reading.public_keys or ()), ("z",))
        return Reading(**{name: getattr(reading, name) for name in reading.__slots__} | {"public_keys": added})

    patch.setattr(program_module, "_reading", all_keys)


@pytest.mark.parametrize(
    ("mutant", "case"),
    [
        (overlap_is_forgotten, (3, Limits(1, 1), SWAP)),
        (overlap_is_forgotten, (3, Limits(2, 1), SWAP)),
        (one_group_too_few, (3, Limits(2, 1), SWAP)),
        (undeclared_keys_count, (2, Limits(9, 1), SWAP)),
    ],
)
def test_mutants(monkeypatch: pytest.MonkeyPatch, mutant: Any, case: tuple[int, Limits, Neighbours]) -> None:
    check(COUNT, *case)
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        check(COUNT, *case)
