"""Record and replay: on neighbouring tables every input of noise is as near as its event says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator.catalog.declarations import declare
from discreet.engines import Memory
from discreet.measurement.program import program as program_module
from discreet.measurement.program.execution import run
from discreet.measurement.program.program import Program, choose
from discreet.measurement.releases import additive as measure_module
from discreet.measurement.releases.releaser import Releaser
from discreet.measurement.selection import OptimalGroupSelection, Threshold, WeightedGroupSelection
from discreet.noise import SeededBits
from discreet.plan.model.readings import Groups
from discreet.plan.model.schema import Limits, TableSchema
from discreet.privacy import Neighbours, events
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.curator.clinic import DECLARED, TYPES, Row, visits
from tests.curator.nearness import met
from tests.effort import some, tried
from tests.open_groups import unsealed

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(age) AS n, COUNT(DISTINCT patient) AS people FROM visits WHERE ward = 'A'",
    "SELECT SUM(charge) AS s FROM visits",
    "SELECT AVG(charge) AS m, AVG(age) AS a FROM visits WHERE kind <> 'other'",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT ward, AVG(charge) AS m, SUM(age) / COUNT(*) AS r FROM visits GROUP BY ward",
    "SELECT ward, SUM(CASE WHEN age > 40 THEN charge ELSE 0 END) AS s FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*), COUNT_IF(age > 40) AS o, SUM(charge) FILTER (WHERE age < 9) AS s FROM visits GROUP BY ward",
    "SELECT COUNT(DISTINCT kind) AS k FROM visits",
    "SELECT VARIANCE(age) AS v FROM visits",
    "SELECT COVAR_POP(age, charge) AS c FROM visits",
    "SELECT ward, CORR(age, charge) AS c, COVAR_SAMP(charge, age) AS d, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT kind, REGR_SLOPE(charge, age) AS b FROM visits GROUP BY kind",
    "SELECT ward, COUNT(*) AS n, AVG(charge) AS m, STDDEV(charge) AS d, VAR_POP(age) AS v FROM visits GROUP BY ward",
    "SELECT kind, STDDEV_POP(age) AS d, SUM(age) AS s FROM visits GROUP BY kind",
    "SELECT ward, SKEWNESS(age) AS w, SKEWNESS(charge) AS c, AVG(age) AS a, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT kind) AS k, COUNT(DISTINCT age // 10) AS b, AVG(age) AS a FROM visits GROUP BY ward",
    "SELECT kind, COUNT(DISTINCT age) AS a FROM visits GROUP BY kind",
    "SELECT ward, SUM(DISTINCT age) AS s, AVG(DISTINCT charge), COUNT(DISTINCT charge) FROM visits GROUP BY 1",
    "SELECT SUM(DISTINCT charge - 400) AS s, AVG(DISTINCT age) AS m FROM visits",
    "SELECT kind, AVG(DISTINCT age) AS m, SUM(age > 40) AS o FROM visits GROUP BY kind",
    "SELECT ward, SUM(age > 40) AS s, AVG(charge < 100) AS m, VAR(age = 7) AS v FROM visits GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT patient) AS people FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*) AS n, COUNT(age) AS k, AVG(age) AS a, SUM(charge) AS s FROM visits GROUP BY ward",
    "SELECT ward, AVG(age) AS a, AVG(charge) AS c, AVG(age + charge) AS b, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT kind, SUM(charge) AS s FROM visits GROUP BY kind",
    "SELECT kind, COUNT(DISTINCT patient) AS people FROM visits GROUP BY kind",
    "SELECT kind, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY kind",
)
PUBLIC = [sql for sql in QUESTIONS if "GROUP BY kind" not in sql]
PRIVATE = [sql for sql in QUESTIONS if "GROUP BY kind" in sql]


def schema(*, unit: str | None, limits: Limits, neighbours: Neighbours) -> TableSchema:
    return declare(
        "visits",
        TYPES,
        unit=unit,
        bounds=DECLARED["bounds"],
        keys=DECLARED["keys"],
        limits=limits,
        neighbours=neighbours,
        version="1",
    )


Read = Sequence[Row] | Groups
"""Rows, or what was read of them before."""


def loaded(rows: Sequence[Row]) -> Memory:
    engine = Memory()
    engine.register("visits", rows, TYPES)
    return engine


def exact(program: Program, rows: Read) -> Groups:
    return rows if isinstance(rows, Mapping) else unsealed(loaded(rows).read(program.reading))


def differences(program: Program, one: Read, other: Read) -> list[list[tuple[int, ...]]]:
    """For each measure the differences of its inputs, group by group; a group that is not there is zero."""
    a, b = exact(program, one), exact(program, other)
    width = len(program.reading.statistics)
    moved = [
        tuple(x - y for x, y in zip(*(met(program, each.get(key, (0,) * width)) for each in (a, b)), strict=True))
        for key in {**a, **b}
    ]
    result, start = [], 0
    for measure in program.measures:
        stop = start + len(measure.form.statistics)
        result.append([move[start:stop] for move in moved])
        start = stop
    return result


def check_within(program: Program, one: Read, other: Read) -> None:
    """Laplace: the L1 distance over the scale is at most the epsilon charged. Gaussian: half the square at most rho."""
    for measure, moves in zip(program.measures, differences(program, one, other), strict=True):
        ratios = [Fraction(x) / scale for move in moves for x, scale in zip(move, measure.scales, strict=True)]
        if isinstance(measure.event, events.DiscreteLaplace):
            assert sum(abs(r) for r in ratios) <= measure.event.sensitivity / measure.event.scale
        else:
            assert isinstance(measure.event, events.Concentrated)
            assert sum(r * r for r in ratios) / 2 <= measure.event.rho


def check_keys(program: Program, one: Read, other: Read) -> None:
    """Private groups that only one table has: few, small, and below the threshold without luck."""
    selection = program.selection
    if selection is None or isinstance(selection, WeightedGroupSelection):
        return
    a, b = exact(program, one), exact(program, other)
    alone = [met(program, values) for key, values in a.items() if key not in b]
    assert len(alone) <= program.contribution.limits.groups
    if isinstance(selection, OptimalGroupSelection):
        assert all(values[-1] == 1 for values in alone)
        return
    sizes = [selection.size.linear.value(values) for values in alone]
    assert all(size <= selection.size.most < selection.smallest for size in sizes)


def plan(sql: str, declared: TableSchema, delta: str) -> Program:
    return choose(parse(sql, {"visits": declared}), declared, epsilon=Fraction(1), delta=Fraction(delta), salt="pepper")


@cache
def planned(sql: str, delta: str, unit: str | None, limits: Limits, neighbours: Neighbours) -> Program | None:
    """The plan, once for each declaration; None if there is none. For honest code only."""
    if "DISTINCT patient" in sql and unit is None:
        return None
    if "GROUP BY kind" in sql and delta == "0":
        return None
    return plan(sql, schema(unit=unit, limits=limits, neighbours=neighbours), delta)


limits_of = st.builds(Limits, st.integers(1, 3), st.integers(1, 2))


CASES = [(sql, delta) for sql in QUESTIONS for delta in ("0", "1e-6")]


def check_all(unit: str | None, limits: Limits, neighbours: Neighbours, tables: Sequence[Sequence[Row]]) -> None:
    """Every question about two neighbouring tables."""
    engines = [loaded(rows) for rows in tables]

    def check(case: tuple[str, str]) -> None:
        program = planned(*case, unit, limits, neighbours)
        if program is not None:
            one, other = (unsealed(engine.read(program.reading)) for engine in engines)
            check_within(program, one, other)
            check_keys(program, one, other)
            if neighbours is Neighbours.REPLACE or unit is None:
                check_keys(program, other, one)

    try_all(CASES, check)


@pytest.mark.ci
@tried(25)
@given(
    seed=st.integers(0, 10**6), limits=limits_of, neighbours=st.sampled_from(list(Neighbours)), who=st.integers(0, 11)
)
def test_one_patient_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    rows = visits(seed)
    other = [row for row in rows if row["patient"] != who]
    if neighbours is Neighbours.REPLACE:
        other += [{**row, "patient": who} for row in visits(seed + 1) if row["patient"] == 0]
    check_all("patient", limits, neighbours, (rows, other))


@pytest.mark.ci
@tried(25)
@given(seed=st.integers(0, 10**6), neighbours=st.sampled_from(list(Neighbours)))
def test_one_row_moves_no_input_farther_than_charged(seed: int, neighbours: Neighbours) -> None:
    rows = visits(seed)
    others = rows[1:] if neighbours is Neighbours.ADD_REMOVE else [*rows[1:], visits(seed + 7)[0]]
    check_all(None, Limits(), neighbours, (rows, others))


def greedy(limits: Limits) -> list[Row]:
    """A patient who takes all that the limits allow, at the top of all bounds, and is alone with one kind of visit."""
    place = [(ward, kind) for ward in ("A", "B", "C") for kind in ("check", "fever", "alone")]
    row: Row = {"patient": 99, "age": 120, "charge": 1000.0}
    return [{**row, "ward": ward, "kind": kind} for ward, kind in place for _ in range(limits.rows)]


def check_greedy(sql: str, delta: str, limits: Limits) -> None:
    """The checks on a table with and without the greedy patient."""
    declared = schema(unit="patient", limits=limits, neighbours=Neighbours.ADD_REMOVE)
    program = plan(sql, declared, delta)
    crowd = visits(5)
    one, other = exact(program, crowd + greedy(limits)), exact(program, crowd)
    check_within(program, one, other)
    check_keys(program, one, other)


@every("limits", some([Limits(1, 1), Limits(2, 2), Limits(3, 2)], 3))
@every("delta", ["0", "1e-6"])
@every("sql", PUBLIC)
def test_a_greedy_patient(sql: str, delta: str, limits: Limits) -> None:
    check_greedy(sql, delta, limits)


@every("limits", [Limits(3, 2), Limits(1, 10), Limits(30, 1)])
@every("sql", PRIVATE)
def test_a_greedy_patient_with_a_private_key(sql: str, limits: Limits) -> None:
    check_greedy(sql, "1e-6", limits)


def test_mutant_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    right = measure_module.AdditiveNoise.laplace.__func__  # type: ignore[attr-defined]

    def halved(cls: Any, *arguments: Any) -> Any:
        found = right(cls, *arguments)
        scales = tuple(scale / 2 for scale in found.scales)
        return cls(form=found.form, law=found.law, scales=scales, event=found.event)

    monkeypatch.setattr(measure_module.AdditiveNoise, "laplace", classmethod(halved))
    with pytest.raises(AssertionError):
        check_greedy("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "0", Limits(3, 2))


def test_mutant_no_bounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "_bounding", lambda *_: None)
    with pytest.raises(AssertionError):
        check_greedy("SELECT COUNT(*) AS n FROM visits", "0", Limits(1, 1))


def test_mutant_threshold_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Threshold, "of", lambda size, *arguments: Threshold(size, 1, arguments[-1]))
    with pytest.raises(AssertionError):
        check_greedy(QUESTIONS[-1], "1e-6", Limits(3, 2))


def test_mutant_one_group_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    right = program_module._bounding

    def generous(*arguments: Any) -> Any:
        found = right(*arguments)
        assert found is not None
        return dataclasses.replace(found, groups=found.groups + 1)

    monkeypatch.setattr(program_module, "_bounding", generous)
    with pytest.raises(AssertionError):
        check_greedy("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "0", Limits(2, 1))


def test_the_event_is_what_was_asked() -> None:
    declared = schema(unit="patient", limits=Limits(2, 1), neighbours=Neighbours.ADD_REMOVE)
    for sql in PUBLIC:
        program = plan(sql, declared, "0")
        parts = program.event.events if isinstance(program.event, events.Composed) else ()
        total = sum(
            (part.sensitivity / part.scale for part in parts if isinstance(part, events.DiscreteLaplace)), Fraction(0)
        )
        assert total == 1
        assert len(parts) == len(program.measures)


def test_noise_is_added_to_every_statistic(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    right = measure_module._noise

    def recorded(*arguments: Any) -> Any:
        seen.append(arguments)
        return right(*arguments)

    monkeypatch.setattr(measure_module, "_noise", recorded)
    declared = schema(unit="patient", limits=Limits(2, 1), neighbours=Neighbours.ADD_REMOVE)
    program = plan(QUESTIONS[5], declared, "0")
    engine = Memory()
    engine.register("visits", visits(1), TYPES)
    run(program, engine, Releaser(SeededBits(3)))
    assert len(seen) == len(program.reading.statistics) == len(program.noise.scales)
    assert {size for *_, size, _ in seen} == {3}  # all three public wards, zeros included
