"""Intervals for a population: declared, asked for, replayed, refused, and as often right as they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.curator import Answer, Curator
from discreet.engines import Memory
from discreet.errors import DeclarationChanged, InvalidParameter, UnsupportedQuery
from discreet.measurement.population import population_statistics
from discreet.measurement.population.population_estimators import PopulationRatio
from discreet.noise import SeededBits
from discreet.plan.model.sample import Sample, SimpleSample
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.privacy import Budget
from tests.curator.surveys import ADDED_UP, BY_WARD, QUANTILES, SQL, Row, Survey, population, score

COUNT = "SELECT COUNT(*) AS n FROM visits"
ADULTS = "SELECT COUNT(*) AS n, AVG(age) AS age FROM visits WHERE age >= 18"
SMALL = Survey(population(2000), 200)
ROWS = SMALL.draw(0)


def curator(sample: Any = SMALL.sample, *, ledger: str = ":memory:", **declared: Any) -> Curator:
    made = Curator.for_tests(ledger, engine=Memory(), bits=SeededBits(1))
    protect(made, sample, **declared)
    return made


def protect(made: Curator, sample: Any, **declared: Any) -> None:
    given: dict[str, Any] = {
        "types": {name: kind for name, kind in TYPES.items() if name in ROWS[0]},
        "bounds": {"age": (0, 100), "ill": (0, 1), "cost": (0, 50)},
        "keys": {"ward": ["A", "B"]},
        "budget": Budget(epsilon=100, delta="1e-3"),
    }
    made.protect(ROWS, name="visits", **{**given, "sample_of": sample, **declared})


TYPES = {"person": "int", "ward": "text", "age": "int", "ill": "int", "cost": "float"}


# ------------------------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"population": 10, "size": 11}, "size"),
        ({"population": 0, "size": 1}, "population"),
        ({"population": 10}, "sample_of"),
        (500, "sample_of"),
        ({"population": {"A": 10, "B": 10}, "size": {"A": 1, "B": 1}}, "by"),
        ({"population": {"A": 10, "B": 10}, "size": {"A": 1}, "by": "ward"}, "size"),
        ({"population": {"A": 10}, "size": {"A": 1}, "by": "ward"}, "sample_of.population"),
        ({"population": {"A": 10, "B": 10}, "size": {"A": 1, "B": 1}, "by": "age"}, "sample_of.by"),
        ({"population": {}, "size": {}, "by": "ward"}, "population"),
    ],
)
def test_a_sample_that_does_not_fit_is_refused(given: object, named: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        curator(given)
    assert caught.value.name == named
    assert caught.value.hint or named in ("size", "population")


def test_the_ledger_keeps_a_sample_and_shows_how_another_differs(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger")
    with curator(Sample(population=2000, size=200), ledger=place) as made:
        assert json.loads(declaration(made))["sample"] == {"population": 2000, "size": 200}
        protect(made, {"population": 2000, "size": 200})
        with pytest.raises(DeclarationChanged) as caught:
            protect(made, Sample(population=3000, size=200))
        assert caught.value.differences == ("sample_of: 200 of 2000 -> 200 of 3000",)
        strata = Sample(population={"A": 1500, "B": 500}, size={"A": 100, "B": 100}, by="ward")
        protect(made, strata, change=True)
        kept = {"by": "ward", "strata": [["A", 1500, 100], ["B", 500, 100]]}
        assert json.loads(declaration(made))["sample"] == kept
    with curator(None) as plain:
        assert "sample" not in declaration(plain)


def declaration(made: Curator) -> str:
    entry = [one for one in made.entries("visits") if "declaration" in one.content][-1]
    return str(entry.content["declaration"])


def test_a_file_declares_a_sample(tmp_path: Path) -> None:
    lines = ["person,ward,age", *(f"{n},{'AB'[n % 2]},{n}" for n in range(60))]
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    text = """
        [budgets.visits]
        epsilon = 5
        [tables.visits]
        source = "visits.csv"
        unit = ""
        types = { person = "int", ward = "int", age = "int" }
        keys = { ward = [1, 2] }
        sample_of = { population = { 1 = 500, 2 = 300 }, size = { 1 = 30, 2 = 30 }, by = "ward" }
    """
    (tmp_path / "discreet.toml").write_text(
        text.replace('ward = "int"', 'ward = "text"')
        .replace("[1, 2]", '["A", "B"]')
        .replace("1 =", "A =")
        .replace("2 =", "B =")
    )
    with Curator.from_config(tmp_path / "discreet.toml") as made:
        answer = made.ask(
            COUNT.replace("COUNT(*)", "ward, COUNT(*)") + " GROUP BY ward", epsilon=1, interval="population"
        )
        assert [row["ward"] for row in answer] == ["A", "B"]
    (tmp_path / "discreet.toml").write_text(text.replace("size =", "sise ="))
    with pytest.raises(InvalidParameter, match=r"tables.visits.sample_of.sise"):
        Curator.from_config(tmp_path / "discreet.toml")


def test_strata_of_a_file_are_keys_of_their_type() -> None:
    rows = [{"ward": place % 2, "age": 1} for place in range(60)]
    made = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    sample = {"population": {"0": 500, "1": 100}, "size": {"0": 30, "1": 30}, "by": "ward"}
    facts: dict[str, Any] = {"types": {"ward": "int", "age": "int"}, "keys": {"ward": [0, 1]}}
    made.protect(rows, name="v", budget=Budget(epsilon=10), sample_of=sample, **facts)
    answer = made.ask("SELECT ward, COUNT(*) AS n FROM v GROUP BY ward", epsilon=5, interval="population")
    assert [(row["ward"], abs(row["n"] - n) < 60) for row, n in zip(answer, (500, 100), strict=True)] == [
        (0, True),
        (1, True),
    ]


# ------------------------------------------------------------------------------------------------------------ answers


def test_another_interval_is_free_and_is_made_of_the_same_release() -> None:
    made = curator()
    noise = made.ask(ADULTS, epsilon=1)
    spent = made.balance("visits").spent
    found = made.ask(ADULTS, epsilon=1, interval="population")
    assert found.replayed
    assert made.balance("visits").spent == spent
    (one,), (other,) = noise, found
    assert abs(other["n"] - 10 * one["n"]) <= 5  # rounded to whole people after it is multiplied
    assert other["age"] == pytest.approx(one["age"])
    assert other["age_high"] - other["age_low"] > 1.5 * (one["age_high"] - one["age_low"])
    assert made.ask(ADULTS, epsilon=1).records[0] == one


@pytest.mark.ci
def test_an_answer_says_what_it_covers() -> None:
    made = curator()
    noise, found = made.ask(ADULTS, epsilon=1), made.ask(ADULTS, epsilon=1, interval="population")
    assert noise.notes[0].startswith("Intervals cover noise only, not the random sampling of 200 of 2,000.")
    assert found.notes[0].startswith("Intervals cover noise and the random sampling of 200 of 2,000.")
    assert (noise.scope, found.scope) == ("what was counted", "population")
    assert "Intervals cover: population" in str(found)
    assert found.descriptions["n"] == "released with a 95 % interval for the population"
    assert caption(noise) == "95 % intervals cover noise only."
    assert caption(found) == "95 % intervals cover noise and the sampling of the population."
    assert ANSWER.read(json.loads(json.dumps(ANSWER.write(found)))).scope == "population"
    with pytest.raises(InvalidParameter, match="interval"):
        found.adjusted()
    assert not any("sampling" in note for note in curator(None).ask(ADULTS, epsilon=1).notes)
    extreme = made.ask("SELECT MAX(age) AS m FROM visits", epsilon=1)
    assert extreme.notes[0] == "Intervals cover noise only, not the random sampling of 200 of 2,000."


def caption(answer: Answer) -> str:
    chart = answer.chart()
    return str((chart if isinstance(chart, dict) else chart.to_dict())["title"]["text"])


def test_a_sample_that_is_declared_later_makes_stored_answers_those_of_a_population() -> None:
    made = curator(None)
    noise = made.ask(ADULTS, epsilon=1)
    protect(made, SMALL.sample, change=True)
    found = made.ask(ADULTS, epsilon=1, interval="population")
    assert found.replayed
    assert abs(found[0]["n"] - 10 * noise[0]["n"]) <= 5


def test_a_batch_and_an_explanation_take_the_interval() -> None:
    made = curator()
    first, second = made.ask_many([ADULTS, COUNT], epsilon=2, interval="population")
    assert (first.scope, second.scope) == ("population", "population")
    noise, found = (made.explain(ADULTS, epsilon=1, interval=each, rows=150) for each in ("noise", "population"))
    assert found.errors["age"] > 1.5 * noise.errors["age"]
    assert found.errors["n"] > 10 * noise.errors["n"]
    assert any("sampling of 200 of 2,000" in note for note in found.remarks)


def test_answers_that_follow_from_others_are_those_of_the_population_as_well() -> None:
    made = curator()
    made.ask(BY_WARD, epsilon=8)
    derived = made.ask(
        "SELECT COUNT(*) AS n, SUM(cost) AS paid, AVG(age) AS age FROM visits", epsilon=1, interval="population"
    )
    assert derived.replayed
    truth = SMALL.truth(SQL)[""]
    assert all(derived[0][f"{name}_low"] <= truth[name] <= derived[0][f"{name}_high"] for name in ("n", "paid", "age"))
    assert abs(derived[0]["n"] - 2000) < 100


def test_groupings_are_those_of_the_population_as_well() -> None:
    sql = "SELECT ward, ill, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, ill)"
    made = curator(keys={"ward": ["A", "B"], "ill": [0, 1]})
    answer = made.ask(sql, epsilon=5, interval="population")
    totals = {(row["ward"], row["ill"]): row for row in answer}
    assert abs(totals[None, None]["n"] - 2000) < 60
    assert sum(row["n"] for key, row in totals.items() if None not in key) == pytest.approx(2000, abs=60)
    part = made.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1, interval="population")
    truth = SMALL.truth(BY_WARD)
    assert all(row["n_low"] <= truth[row["ward"]]["n"] <= row["n_high"] for row in part)


@pytest.mark.ci
def test_a_released_variance_narrows_intervals() -> None:
    survey = Survey(population(20_000), 4000)
    made = survey.curator(survey.draw(1), 1)
    plain, spread = (
        made.ask(f"SELECT AVG(cost) AS cost, SUM(cost) AS paid{more} FROM visits", epsilon=4, interval="population")[0]
        for more in ("", ", STDDEV(cost) AS apart")
    )
    for name in ("cost", "paid"):
        widths = [row[f"{name}_high"] - row[f"{name}_low"] for row in (spread, plain)]
        assert widths[0] < 0.85 * widths[1]
    assert spread["apart_low"] <= spread["apart"] <= spread["apart_high"]


def test_fences_of_other_quantiles_bound_the_quantile_of_a_population() -> None:
    made = curator()
    noise, found = (made.ask(QUANTILES, epsilon=60, interval=each)[0] for each in ("noise", "population"))
    assert found["middle"] == noise["middle"]
    assert noise["low_low"] <= found["middle_low"] < noise["middle_low"]
    assert noise["middle_high"] < found["middle_high"] <= noise["high_high"]
    assert (found["low_low"], found["high_high"]) == (0, 100)  # nothing was released beyond them


# ------------------------------------------------------------------------------------------------------------ refusals

STRATA = Sample(population={"A": 1500, "B": 500}, size={"A": 100, "B": 100}, by="ward")


@pytest.mark.parametrize(
    ("sql", "sample", "changes", "told"),
    [
        (COUNT, None, {}, "not declared a random sample"),
        (COUNT, SMALL.sample, {"interval": "sampling"}, "one of noise, population"),
        (COUNT, SMALL.sample, {"epsilon": None, "within": 5, "max_epsilon": 1}, "error of noise alone"),
        ("SELECT MAX(age) AS m FROM visits", SMALL.sample, {}, "does not bound MAX"),
        ("SELECT COUNT(DISTINCT age) AS m FROM visits", SMALL.sample, {}, "does not bound COUNT"),
        ("SELECT MEDIAN(age) AS m FROM visits", SMALL.sample, {}, "QUANTILE"),
        ("SELECT person, COUNT(*) AS n FROM visits GROUP BY person", SMALL.sample, {}, "private groups"),
        (COUNT, STRATA, {}, "Add ward to GROUP BY"),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)", STRATA, {}, "Add ward to GROUP BY"),
        (
            "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM visits WHERE age > 4) AS n FROM visits",
            STRATA,
            {},
            "Add ward",
        ),
    ],
)
def test_what_has_no_interval_is_refused_before_it_costs(sql: str, sample: Any, changes: Row, told: str) -> None:
    made = curator(sample, bounds={"ill": (0, 1), "cost": (0, 50), "age": (0, 100)})
    before = made.balance("visits")
    for ask in (made.ask, made.explain):
        with pytest.raises((InvalidParameter, UnsupportedQuery), match=told):
            ask(sql, **{"epsilon": 1, "interval": "population", **changes})
    assert made.balance("visits") == before
    if "within" not in changes:
        with pytest.raises((InvalidParameter, UnsupportedQuery), match=told):
            made.ask_many([sql], epsilon=1, interval=changes.get("interval", "population"))


def test_samples_are_joined_with_public_tables_and_with_the_same_sample_alone() -> None:
    made = curator()
    wards, types = [{"ward": "A", "beds": 3}, {"ward": "B", "beds": 9}], {"ward": "text", "beds": "int"}
    made.public(wards, name="wards", types=types, unique=["ward"])
    sql = "SELECT COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward WHERE beds > 5"
    found = made.ask(sql, epsilon=5, interval="population")[0]
    assert found["n_low"] <= SMALL.truth(BY_WARD)["B"]["n"] <= found["n_high"]


# ------------------------------------------------------------------------------------------------------------ coverage


@cache
def simple() -> Survey:
    return Survey(population(3000), 300)


@cache
def clusters() -> Survey:
    return Survey(population(3000, most=4), 300, most=4)


def proportional() -> Survey:
    return replace(simple(), sizes={ward: round(len(people) / 10) for ward, people in simple().wards.items()})


def strata() -> Survey:
    return replace(simple(), sizes={"A": 150, "B": 250})


def strata_of_clusters() -> Survey:
    return replace(clusters(), sizes={"A": 150, "B": 250})


DESIGNS: dict[str, tuple[Callable[[], Survey], str, int]] = {
    "simple": (simple, SQL, 1),
    "simple, quantiles": (simple, QUANTILES, 20),
    "clusters": (clusters, SQL, 1),
    "clusters, quantiles": (clusters, QUANTILES, 40),
    "proportional": (proportional, SQL, 1),
    "strata": (strata, BY_WARD, 1),
    "strata, added up": (strata, ADDED_UP, 1),
    "strata of clusters": (strata_of_clusters, BY_WARD, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_hold_the_population_in_92_of_100_samples(name: str) -> None:
    """Of 300 samples, 95 % intervals hold the truth in 276 at least; those of noise alone clearly do not."""
    make, sql, epsilon = DESIGNS[name]
    survey = make()
    found = score(survey, sql, samples=300, epsilon=epsilon)
    assert {name: each.coverage for name, each in found.items() if each.coverage < 0.92} == {}
    noise = score(survey, sql, samples=60, epsilon=epsilon, interval="noise")
    assert min(each.coverage for each in noise.values()) < 0.75


@pytest.mark.ci
@pytest.mark.parametrize("name", ["simple", "strata"])
def test_intervals_hold_the_population_in_a_few_samples(name: str) -> None:
    make, sql, epsilon = DESIGNS[name]
    survey = make()
    found = score(survey, sql, samples=5, epsilon=epsilon)
    assert sum(each.held for each in found.values()) >= 0.9 * sum(each.judged for each in found.values())


def coverage_of_age(survey: Survey, samples: int = 25) -> float:
    (found,) = score(survey, "SELECT AVG(age) AS age FROM visits", samples=samples, epsilon=20).values()
    return found.coverage


def alike() -> Survey:
    """People whose rows all have one value, at an end of its bounds: the bounds of variances are tight."""
    people = [[{**row, "age": 100 * (one[0]["age"] > 40)} for row in one] for one in population(1000, most=4)]
    return Survey(people, 100, most=4)


def without_sampling(_: SimpleSample) -> Fraction:
    return Fraction(0)


def of_rows(self: Any, estimator: Any, rows: int) -> PopulationRatio:
    return replace(MEAN(self, estimator, rows), rows=1)


MEAN: Callable[..., PopulationRatio] = population_statistics._Adapter._mean


@pytest.mark.ci
def test_mutants_without_a_design_variance_or_clusters_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = alike()
    assert coverage_of_age(survey) >= 0.92
    with monkeypatch.context() as changed:
        changed.setattr(SimpleSample, "design_factor", property(without_sampling))
        assert coverage_of_age(survey) < 0.5
    with monkeypatch.context() as changed:
        changed.setattr(population_statistics._Adapter, "_mean", of_rows)
        assert coverage_of_age(survey) < 0.9


def test_the_package_has_samples() -> None:
    assert discreet.Sample is Sample
