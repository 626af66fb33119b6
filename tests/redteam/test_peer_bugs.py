"""Privacy bugs that other libraries had, each as a case for us; the table at the end says where the rest are tested."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from discreet.audit.queries.recorder import RecordedRelease
from discreet.engines import DuckDB, Engine, Memory
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.plan.model.schema import Limits
from tests.redteam.clinics import APPROXIMATE, CROWD, PURE, Row, asking, clinic, neighbours, noises, planned, row

BOTH: list[Callable[[], Engine]] = [Memory, lambda: DuckDB(threads=1)]
engines = pytest.mark.parametrize("engine", BOTH, ids=["memory", "duckdb"])
NAN = math.nan


def value(noise: RecordedRelease) -> Fraction:
    """The only number that met a noise, in units of its column."""
    assert isinstance(noise.release, AdditiveNoise)
    form = noise.release.form
    (statistic,), (grain,) = form.statistics, form.grains
    ((steps,),) = noise.exact
    return Fraction(steps) * Fraction(2) ** (statistic.exponent + grain)


# ------------------------------------------------------------------------------------------------------- NaN and bounds

BANDED = (
    "SELECT CASE WHEN weight < 50 THEN 'a' WHEN weight >= 50 THEN 'b' END AS a, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT CAST(FLOOR(weight / 10) AS INT) AS band, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT COUNT(CASE WHEN weight < 50 THEN 1 WHEN weight >= 50 THEN 2 END) AS n, COUNT(*) AS m FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE NOT (weight < 50) AND NOT (weight >= 50)",
    "SELECT COUNT(*) - COUNT(CAST(note AS INT)) AS nulls FROM visits",
)


@engines
@pytest.mark.parametrize("sql", BANDED, ids=range(len(BANDED)))
def test_values_that_no_band_takes_are_counted_at_a_price(sql: str, engine: Callable[[], Engine]) -> None:
    """`cut` on NaN and a cast that is not strict made NULLs, and their exact number came out for nothing."""
    absurd = [row(98, weight=NAN, note="no number"), row(98, weight=None, note=None)]
    private = "GROUP BY" in sql
    pair = neighbours([*CROWD, *absurd], CROWD, engine, budget=APPROXIMATE if private else PURE)
    seen = pair.judge(asking(sql, delta=Fraction(1, 1000) if private else 0, private=private))
    assert seen.status == "answered"
    assert seen.noises
    assert seen.spent != "epsilon=0"


@pytest.mark.sampled(3)
@engines
@pytest.mark.parametrize(
    "clamped",
    [
        "GREATEST(LEAST(weight, 10), -10)",
        "LEAST(GREATEST(weight, -10), 10)",
        "CASE WHEN weight > 10 THEN 10 WHEN weight < -10 THEN -10 ELSE GREATEST(LEAST(weight, 10), -10) END",
    ],
)
def test_nan_passes_no_clamp(clamped: str, engine: Callable[[], Engine]) -> None:
    """NaN is neither above nor below a bound: a clamp by comparisons let it through, and one person moved all sums."""
    rows = [row(i, weight=1.0) for i in range(5)]
    sql = f"SELECT SUM({clamped}) AS s FROM visits"
    for absurd in (NAN, math.inf, -math.inf):
        (noise,) = noises(sql, [*rows, row(9, weight=absurd)], engine=engine())
        assert abs(value(noise) - 5) <= 10
        assert neighbours([*rows, row(9, weight=absurd)], rows, engine).judge(asking(sql)).status == "answered"


# --------------------------------------------------------------------------------------------------- clips and cut-offs


@engines
def test_values_are_clipped_before_they_are_added(engine: Callable[[], Engine]) -> None:
    """A clip of the sum instead of its terms: here the terms are 1000, 0 and 250, and not 1750 cut to 1000."""
    rows = [row(1, charge=2000.0), row(2, charge=-500.0), row(3, charge=250.0)]
    (noise,) = noises("SELECT SUM(charge) AS s FROM visits", rows, engine=engine())
    assert value(noise) == 1000 + 0 + 250


@pytest.mark.parametrize(
    "wrapped", ["LEAST(SUM(charge), 5)", "GREATEST(0, LEAST(SUM(charge), 1))", "SUM(charge) / 1e9"]
)
def test_what_is_done_to_a_sum_does_not_make_its_noise_smaller(wrapped: str) -> None:
    """A clip after aggregation says nothing about how far one person moves what meets noise."""
    plain = planned(clinic(), "SELECT SUM(charge) AS s FROM visits")
    later = planned(clinic(), f"SELECT {wrapped} AS s FROM visits")
    assert [measure.scales for measure in later.measures] == [measure.scales for measure in plain.measures]


@pytest.mark.sampled(3)
@engines
@pytest.mark.parametrize("groups", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_exactly_so_many_groups_and_rows_are_kept(groups: int, rows: int, engine: Callable[[], Engine]) -> None:
    """A truncation kept k - 1 groups where k were paid for: as many as allowed are kept, and not one more."""
    visits: list[Row] = [row(7, ward=ward, age=age) for ward in "ABCDEF" for age in range(6)]
    declared: dict[str, Any] = {"keys": {"ward": list("ABCDEF")}, "max_groups": groups, "max_rows": rows}
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    (noise,) = noises(sql, visits, engine=engine(), **declared)
    kept = [count for (count,) in noise.exact if count]
    assert kept == [rows] * groups
    assert planned(clinic(visits, **declared), sql).contribution.limits == Limits(groups, rows)


# ------------------------------------------------------------------------------------------------------------ elsewhere

ELSEWHERE = {
    "a threshold off by one": "test_noise.test_the_threshold_counts_all_rows_and_all_groups_of_a_person",
    "an exact count at epsilon 0": "test_values.test_texts_that_are_no_numbers_are_null_and_never_free",
    "fill_null with a number outside of the bounds": "test_values.test_filling_missing_values_is_paid_in_noise",
    "a cast to Float32 that overflows": "test_values.test_narrower_types_do_not_overflow",
    "a column redefined after truncation": "test_sensitivity.test_a_redefined_column_is_another_column",
    "the row count in generated SQL": "test_canaries.test_what_is_sent_to_an_engine_does_not_depend_on_data",
    "an average charged half": "test_sensitivity.test_every_aggregate_is_paid_for",
    "no bounds meaning no noise": "test_noise.test_no_bounds_means_a_refusal",
    "an answer charged afterwards": "test_budget.test_charged_before_and_not_after",
    "failed questions refunded": "test_budget.test_failures_are_not_refunded_and_lock_the_account",
    "budgets that colluders multiply": "test_budget.test_colluders_share_the_cap_of_the_data",
}


@pytest.mark.parametrize("bug", ELSEWHERE)
def test_every_other_bug_has_its_test(bug: str) -> None:
    module, _, name = ELSEWHERE[bug].partition(".")
    assert callable(getattr(importlib.import_module(f"tests.redteam.{module}"), name))
