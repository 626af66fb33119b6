"""Class B: how far one person moves what meets noise, whatever the person brings and however it is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.audit.queries.neighbour_distance import measure_distance
from discreet.audit.queries.recorder import RecordedRelease, RecordingEngine, ask
from discreet.audit.queries.releases import QuantileLevelRelease, allowance
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.mechanisms.ranks import price_ranks
from discreet.plan.model.schema import Limits
from discreet.privacy import Neighbours, PureDP, events
from tests.engines.tables import EDGES, F
from tests.redteam.clinics import (
    APPROXIMATE,
    CROWD,
    DECLARED,
    Row,
    Untouchable,
    asking,
    clinic,
    neighbours,
    noises,
    planned,
    row,
    spent,
)
from tests.redteam.salts import same_salt

BOTH: list[Callable[[], Engine]] = [Memory, lambda: DuckDB(threads=1)]
engines = pytest.mark.parametrize("engine", BOTH, ids=["memory", "duckdb"])


def exact(found: list[RecordedRelease]) -> list[Any]:
    return [noise.exact for noise in found]


@pytest.mark.parametrize("outlier", [100.0, 1e300, -1e300, math.inf, -math.inf, math.nan, 5.000001, None], ids=str)
def test_an_outlier_moves_no_more_than_its_bounds(outlier: float | None) -> None:
    """RT-018: a value of 100 where 5 is the bound, as record and replay see it."""
    pair = neighbours([*CROWD, row(99, charge=outlier)], CROWD, bounds={"charge": (0, 5)})
    for sql in ("SELECT SUM(charge) AS s FROM visits", "SELECT ward, AVG(charge) AS m FROM visits GROUP BY ward"):
        assert pair.judge(asking(sql)).status == "answered"


def test_sums_far_from_zero_are_exact() -> None:
    """RT-013: between 2^52 and 2^52 + 1 a change of one value moves the exact sum of whole numbers by one at most."""
    low = 1 << 52
    rows = [row(i, age=low + i % 2) for i in range(1000)]
    other = [row(0, age=low + 1), *rows[1:]]
    declared: dict[str, Any] = {"bounds": {"age": (low, low + 1)}, "neighbours": Neighbours.REPLACE, "max_rows": 1}
    (one,), (two,) = (noises("SELECT SUM(age) AS s FROM visits", table, **declared) for table in (rows, other))
    ((a,),), ((b,),) = one.exact, two.exact
    assert a == sum(visit["age"] for visit in rows)
    assert abs(a - b) == 1


def test_doubles_far_from_zero_are_exact_or_refused_before_they_cost() -> None:
    """RT-013 for doubles: exact, or refused while nothing has been charged."""
    low = 2.0**52
    watched = RecordingEngine(Memory())
    rows = [row(i, charge=low + i % 2) for i in range(100)]
    curator = clinic(rows, engine=watched, bounds={"charge": (low, low + 1)})
    seen = ask(curator, watched, asking("SELECT AVG(charge) AS m FROM visits"))
    assert seen.status in ("answered", "refused")
    assert seen.answer is None or low <= seen.answer[0]["m"] <= low + 1


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_sums_do_not_depend_on_threads_or_order(threads: int) -> None:
    """RT-015: the same exact numbers whatever the number of threads and the order of rows."""
    rows = [row(i % 500, charge=1000 / (1 + i), age=i % 120, ward="ABC"[i % 3]) for i in range(6000)]
    sql = "SELECT ward, AVG(charge) AS m, SUM(age) AS s, COUNT(DISTINCT patient) AS p FROM visits GROUP BY ward"
    shuffled = rows[threads::2] + rows[:threads] + rows[threads + 1 :: 2]
    assert exact(noises(sql, shuffled, engine=DuckDB(threads=threads))) == exact(noises(sql, rows))


@engines
def test_doubles_are_rounded_as_rationals_are(engine: Callable[[], Engine]) -> None:
    """RT-016: every edge of the doubles, as Python's rationals have it."""
    doubles = [x for x in EDGES[F] if x is not None] + [k / 7 for k in range(-700, 7700, 11)]
    rows = [row(i, charge=x) for i, x in enumerate(doubles)]
    (noise,) = noises("SELECT SUM(charge) AS s FROM visits", rows, engine=engine(), bounds={"charge": (-3, 1000)})
    assert isinstance(noise.release, AdditiveNoise)
    (statistic,), (grain,) = noise.release.form.statistics, noise.release.form.grains
    grid = Fraction(2) ** statistic.exponent
    steps = [math.floor(Fraction(x) / grid + Fraction(1, 2)) for x in doubles if math.isfinite(x)]
    total = sum(min(max(step, statistic.low), statistic.high) for step in steps)
    assert noise.exact == [(math.floor(Fraction(total, 1 << grain) + Fraction(1, 2)),)]


def step_of(measure: AdditiveNoise) -> Fraction:
    """The unit of the first noise."""
    return Fraction(2) ** (measure.form.statistics[0].exponent + measure.form.grains[0])


@pytest.mark.parametrize("bounds", [(-1, 1000), (-1000, 1), (5, 10), (-10, -5)], ids=str)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_the_larger_end_decides(bounds: tuple[int, int], relation: Neighbours) -> None:
    """RT-019: the widest move of an asymmetric bound is covered, and not much more."""
    ends = [float(end) for end in bounds]
    for value in ends:
        start = [row(99, charge=ends[0] if value == ends[1] else ends[1])] if relation is Neighbours.REPLACE else []
        pair = neighbours(
            [*CROWD, row(99, charge=value)], CROWD + start, bounds={"charge": bounds}, neighbours=relation, max_rows=1
        )
        assert pair.judge(asking("SELECT SUM(charge) AS s, AVG(charge) AS m FROM visits")).status == "answered"
    reach = (
        max(map(abs, bounds)) if relation is Neighbours.ADD_REMOVE else max(bounds[1] - bounds[0], *map(abs, bounds))
    )
    curator = clinic(bounds={"charge": bounds}, neighbours=relation, max_rows=1)
    (measure,) = planned(curator, "SELECT SUM(charge) AS s FROM visits").measures
    assert measure.scales[0] * step_of(measure) <= reach


COLLAPSED = (
    "SELECT UPPER(ward) AS ward, COUNT(*) AS n FROM visits GROUP BY UPPER(ward)",
    "SELECT CASE WHEN ward IS NULL THEN 'x' ELSE 'x' END AS ward, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT LENGTH(kind) AS kind, SUM(charge) AS charge FROM visits GROUP BY 1",
    "SELECT SUBSTRING(kind, 1, 1) AS ward, AVG(age) AS age FROM visits GROUP BY SUBSTRING(kind, 1, 1)",
    "SELECT age % 2 AS age, COUNT(*) AS n FROM visits GROUP BY age % 2",
)


def many(patient: int = 99) -> list[Row]:
    """A person in many groups, at the upper ends of all bounds."""
    return [row(patient, ward=w, kind=f"{w}{i}", age=120, charge=1000.0) for w in "ABC" for i in range(12)]


@pytest.mark.sampled(2)
@engines
@pytest.mark.parametrize("sql", COLLAPSED)
def test_limits_hold_for_the_groups_that_are_asked_for(sql: str, engine: Callable[[], Engine]) -> None:
    """RT-021: keys are collapsed first, contributions bounded then."""
    pair = neighbours(CROWD + many(), CROWD, engine, budget=APPROXIMATE)
    for limits in (Limits(1, 1), Limits(2, 3)):
        assert pair.judge(asking(sql, 1, "1/100", limits, private=True)).status == "answered"


def test_a_redefined_column_is_another_column() -> None:
    """RT-021, the peers' column redefined after truncation: an output's name changes nothing inside aggregates."""
    for sql in (
        "SELECT 1000000 * age AS charge, SUM(charge) AS s FROM visits GROUP BY age",
        "SELECT SUM(charge) AS age, SUM(age) AS charge FROM visits",
        "SELECT ward AS kind, SUM(charge) AS weight FROM visits GROUP BY ward",
    ):
        pair = neighbours(CROWD + many(), CROWD, budget=APPROXIMATE)
        assert pair.judge(asking(sql, 1, "1/100", private="GROUP BY age" in sql)).status == "answered"
    curator = clinic()
    plain = planned(curator, "SELECT SUM(charge) AS s FROM visits").measures
    renamed = planned(curator, "SELECT SUM(charge) AS age FROM visits").measures
    assert plain == renamed
    scaled = planned(curator, "SELECT SUM(1000 * charge) AS charge FROM visits").measures
    unit = [m.scales[0] * step_of(m) for m in (*plain, *scaled)]
    assert unit[1] >= 999 * unit[0]


@engines
@pytest.mark.parametrize("limits", [Limits(1, 1), Limits(3, 2), Limits(40, 7)], ids=str)
def test_one_person_with_very_many_rows(limits: Limits, engine: Callable[[], Engine]) -> None:
    """RT-023: exactly the groups that the limits allow, not one more and not one less, and exactly so many rows."""
    keys = list(range(100))
    rows = [row(99, age=i % 100, charge=1000.0) for i in range(4000)]
    sql = "SELECT age, COUNT(*) AS n, SUM(charge) AS s FROM visits GROUP BY age"
    watched = RecordingEngine(engine())
    with same_salt():
        curator = clinic(rows, engine=watched, keys={"age": keys})
    seen = ask(curator, watched, asking(sql, 1, 0, limits))
    _, groups = watched.seen[-1]
    assert len(groups) == limits.groups
    for noise in seen.noises:
        assert isinstance(noise.release, AdditiveNoise)
        nothing = replace(noise, exact=[(0,) * len(numbers) for numbers in noise.exact])
        assert measure_distance(noise, nothing) == allowance(noise.release.event)


@pytest.mark.slow
def test_one_person_with_a_million_rows_in_ten_thousand_groups() -> None:
    """RT-023 in full."""
    rows = [row(99, age=i % 10_000, charge=1000.0) for i in range(1_000_000)]
    pair = neighbours(CROWD + rows, CROWD, lambda: DuckDB(threads=2), keys={"age": list(range(10_000))})
    sql = "SELECT age, COUNT(*) AS n, AVG(charge) AS m FROM visits GROUP BY age"
    assert pair.judge(asking(sql, 1, 0, Limits(5, 3))).status == "answered"


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_ids_that_look_different_and_are_one_person(relation: Neighbours) -> None:
    """Spaces around a text id make no second person; ids that are missing make none at all."""
    ids = ["7", " 7", "7 ", "  7  "]
    mine = [row(ids[i % 4], charge=1000.0) for i in range(8)]
    nobody = [row(who) for who in ("", " ", None)]
    crowd = [row(str(i)) for i in range(10, 14)]
    other = crowd if relation is Neighbours.ADD_REMOVE else [*crowd, row(" 7 ", charge=0.0)]
    declared: dict[str, Any] = {"types": DECLARED["types"] | {"patient": "text"}, "max_rows": 1}
    pair = neighbours(crowd + mine + nobody, other + nobody, neighbours=relation, **declared)
    sql = "SELECT COUNT(*) AS n, COUNT(DISTINCT patient) AS p, SUM(charge) AS s FROM visits"
    assert pair.judge(asking(sql)).status == "answered"
    (people,) = noises("SELECT COUNT(DISTINCT patient) AS p FROM visits", crowd + mine + nobody, **declared)
    assert people.exact == [(5,)]


def test_nothing_is_inferred_from_data() -> None:
    """RT-024: without declarations no groups; sums are explained without a look, and read once they are charged."""
    curator = clinic(engine=Untouchable(), bounds={}, keys={})
    before = spent(curator)
    with pytest.raises(UnsupportedQuery) as refused:
        curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    assert not any(word in str(refused.value) for word in ("'A'", "110", "44"))
    for sql in ("SELECT SUM(age) AS s FROM visits", "SELECT AVG(charge) AS m FROM visits"):
        assert "will be chosen privately" in str(curator.explain(sql, epsilon=1))
    assert spent(curator) == before
    with pytest.raises(QueryFailed):
        curator.ask("SELECT AVG(charge) AS m FROM visits", epsilon=1)
    assert curator.budget("visits").spent == PureDP(1)
    with pytest.raises(InvalidParameter):
        clinic(engine=DuckDB(), types={"age": "bool", "nothing": "int"})


@pytest.mark.parametrize("delta", [0, "1/1000"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS a, SUM(age) AS b, AVG(charge) AS c FROM visits",
        "SELECT AVG(age) AS a FROM visits",
        "SELECT AVG(age) AS a, AVG(charge) AS b, COUNT(charge) AS c, COUNT(DISTINCT patient) AS d FROM visits",
        "SELECT COUNT(*) AS n FROM visits HAVING AVG(age) > 3 AND SUM(charge) > 0",
        "SELECT COUNT(*) AS n FROM visits ORDER BY SUM(age)",
    ],
)
def test_every_aggregate_is_paid_for(sql: str, delta: Any) -> None:
    """RT-026, the peers' average charged half: what is released is what is charged, also in HAVING and ORDER BY."""
    pair = neighbours(CROWD + many(), CROWD, budget=APPROXIMATE)
    seen = pair.judge(asking(sql, "1/2", delta))
    curator, _ = pair.one
    charge = [entry for entry in curator.history("visits") if entry.kind == "charge"][-1]
    written = events.from_json(charge.content["event"])
    assert seen.answer is not None
    assert written == seen.answer.event
    assert len(seen.noises) >= 1


SEVERAL = (
    "SELECT MEDIAN(charge) AS m, QUANTILE(charge, 0.25) AS a, QUANTILE(charge, 0.75) AS b FROM visits",
    "SELECT ward, QUANTILE(age, 0.1) AS a, MEDIAN(age) AS m, QUANTILE(age, 0.9), MAX(age) FROM visits GROUP BY ward",
)


def check_several(sql: str, relation: Neighbours, delta: str = "0") -> None:
    rows = [row(i % 40, charge=17.5 * (i % 31), age=20 + i % 5, ward="AB"[i % 2]) for i in range(160)]
    old, new = [row(99, charge=0.0, age=20)] * 2, [row(99, charge=500.0, age=90, ward="B")] * 2
    declared: dict[str, Any] = {"neighbours": relation, "max_groups": 1, "budget": APPROXIMATE}
    pair = neighbours([*rows, *new], [*rows, *(old if relation is Neighbours.REPLACE else [])], **declared)
    for seed in range(4):  # other questions, so that other points come out
        seen = pair.judge(asking(sql.replace("visits", f"visits WHERE age > -{seed + 1}"), 2, delta))
        assert seen.status == "answered"
        assert any(isinstance(noise.release, QuantileLevelRelease) for noise in seen.noises)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("delta", ["0", "1/100"])
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
@pytest.mark.parametrize("sql", SEVERAL, ids=["all", "by ward"])
def test_several_quantiles_at_once(sql: str, relation: Neighbours, delta: str) -> None:
    """RT-045: each is drawn from values between those that came out before it, and each level is paid."""
    check_several(sql, relation, delta)


def test_mutant_levels_that_are_twice_as_sharp(monkeypatch: pytest.MonkeyPatch) -> None:
    right = price_ranks

    def sharp(*arguments: Any) -> tuple[Fraction, events.Event]:
        constant, event = right(*arguments)
        return 3 * constant, event

    monkeypatch.setattr("discreet.mechanisms.quantile_tree.price_ranks", sharp)
    with pytest.raises(AssertionError):
        check_several(SEVERAL[0], Neighbours.ADD_REMOVE)
