"""Synthetic tables are planned, paid, and only then made; what is given is what was charged, and again it is free."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import synthetic
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.curator import Curator
from discreet.curator.observation import observe_curator
from discreet.curator.paid_release import STAYS
from discreet.curator.synthesis import synthesis_plan
from discreet.curator.synthesis.synthetic_table import KeptTable
from discreet.engines import DuckDB, Memory
from discreet.errors import (
    InsufficientBudget,
    InvalidParameter,
    KeyConflict,
    NotPermitted,
    QueryFailed,
    UnknownTable,
    UnsupportedQuery,
)
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits
from discreet.plan.model.readings import ContributionBounding, Reading
from discreet.presentation.ledger_view.query_text import plan_text
from discreet.privacy import Budget, Neighbours
from tests.curator.clinic import DECLARED, neighbour, visits
from tests.curator.spies import OPTIONS, Broken, Spy, clinic

ROWS = "SELECT ward, age FROM visits"
KIND = {"kind": ["check", "fever"]}
QUICK: dict[str, Any] = {"epsilon": 1, "generator": "independent"}
GENERATORS = ("independent", "mst", "aim")


def spied(budget: Any = None, **declared: Any) -> tuple[Curator, Spy]:
    spy = Spy()
    return clinic(budget or Budget(epsilon=4, delta=1e-6), engine=spy, **declared), spy


def charges(curator: Curator) -> int:
    return sum(entry.kind == "charge" for entry in curator.history("visits"))


# --------------------------------------------------------------------------------------------------------- one table


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_table_is_made_and_says_what_it_cost(generator: str) -> None:
    curator, spy = spied()
    made = curator.synthesize("visits", epsilon=1, generator=generator, domain=KIND)
    assert made.table.column_names == ["ward", "age", "charge", "kind"]
    assert 100 < len(made) < 300  # 200 patients, one row each; the noise of a total is below 40
    assert set(made.table["ward"].to_pylist()) <= {"A", "B", "C", None}
    assert set(made.table["kind"].to_pylist()) <= {"check", "fever", None}
    assert all(age is None or 0 <= age <= 120 for age in made.table["age"].to_pylist())
    assert made.model.domain.sizes == {"ward": 4, "age": 17, "charge": 17, "kind": 3}
    assert (made.replayed, made.private, made.event) == (False, False, made.model.event)
    assert (spy.reads, charges(curator)) == (1, 1)
    assert curator.history("visits")[-2].content["sql"] == "SELECT ward, age, charge, kind FROM visits"
    assert len(made.sample(7)) == 7
    assert made.to_pandas().shape == made.table.shape
    assert made.to_polars().shape == made.table.shape
    assert "synthetic rows" in str(made)
    assert "Not private" in str(made)
    curator.verify()


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_plan_reads_nothing_costs_nothing_and_is_what_happens(generator: str) -> None:
    curator, spy = spied()
    plan = curator.plan_synthesize(ROWS, epsilon=1, generator=generator)
    assert (spy.reads, charges(curator), plan.free, plan.refusal) == (0, 0, False, None)
    made = curator.synthesize(ROWS, epsilon=1, generator=generator)
    assert (plan.event, plan.cost, plan.notes) == (made.event, made.cost, made.notes)
    assert str(plan.cost) in str(plan)
    again = curator.plan_synthesize(ROWS, epsilon=1, generator=generator)
    assert (again.free, "it is stored" in str(again)) == (True, True)
    assert curator.plan_synthesize(ROWS, epsilon=100, generator=generator).refusal is not None


def test_the_charge_comes_before_the_first_row() -> None:
    curator, spy = spied()
    seen: list[int] = []
    spy.before = lambda: seen.append(charges(curator))
    curator.synthesize(ROWS, **QUICK)
    assert seen == [1]


def test_the_ledger_says_what_was_made() -> None:
    curator, _ = spied()
    curator.synthesize(ROWS, **QUICK)
    question = curator.history("visits")[-2].content["question"]
    assert plan_text(question) == "synthetic table by Independent of ward, age of visits"
    made = json.loads(question)["synthesize"]
    assert (made["parameters"]["epsilon"], set(made["domain"]["columns"])) == ("1", {"ward", "age"})


def test_stages_are_told_by_name() -> None:
    curator, _ = spied()
    told: list[str] = []
    curator.synthesize(ROWS, **QUICK, progress=told.append)
    assert told == ["Planning", "Charging the account", "Reading visits and fitting Independent"]


# -------------------------------------------------------------------------------------------------------------- free


def test_the_same_again_is_free_and_the_same(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book.db")
    with clinic(Budget(epsilon=4, delta=1e-6), ledger=ledger) as curator:
        first = curator.synthesize(ROWS, **QUICK)
    spy = Spy()
    with clinic(Budget(epsilon=4, delta=1e-6), ledger=ledger, engine=spy) as curator:
        again = curator.synthesize("select WARD, age from visits", **QUICK)
        assert again.table.equals(first.table)
        assert (again.replayed, str(again.cost.details), spy.reads, charges(curator)) == (
            True,
            "epsilon=0, delta=0",
            0,
            1,
        )
        assert again.remaining == first.remaining
        same = curator.synthesize(ROWS, **QUICK, rows=len(first))
        assert same.table.equals(first.table)
        more = curator.synthesize(ROWS, **QUICK, rows=1000)
        assert (len(more), more.replayed, charges(curator)) == (1000, True, 1)
        assert np.array_equal(more.model.counts(("ward", "age")), first.model.counts(("ward", "age")))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 2},
        {"delta": 1e-9},
        {"generator": "mst"},
        {"bins": 8},
        {"rows_per_unit": 2},
        {"domain": {"age": range(0, 120, 30)}},
        {"forbidden": [{"ward": ["A"], "age": [None]}]},
    ],
    ids=str,
)
def test_another_table_is_paid(other: dict[str, Any]) -> None:
    curator, spy = spied()
    curator.synthesize(ROWS, **QUICK)
    assert not curator.synthesize(ROWS, **(QUICK | other)).replayed
    assert (spy.reads, charges(curator)) == (2, 2)


def test_a_table_of_seeded_noise_never_comes_back_as_private(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book.db")
    with clinic(Budget(epsilon=4, delta=1e-6), ledger=ledger) as curator:
        curator.synthesize(ROWS, **QUICK)
    with Curator(ledger, engine=Memory()) as curator:
        curator.protect(visits(3, patients=200), name="visits", budget=Budget(epsilon=4, delta=1e-6), **OPTIONS)
        made = curator.synthesize(ROWS, **QUICK)
        assert (made.replayed, made.private) == (False, True)
        assert "Not private" not in str(made)


def test_a_key_is_charged_once_and_belongs_to_one_table() -> None:
    curator, spy = spied()
    first = curator.synthesize(ROWS, **QUICK, key="k")
    again = curator.synthesize(ROWS, **QUICK, key="k")
    assert again.table.equals(first.table)
    assert (again.replayed, spy.reads, charges(curator)) == (True, 1, 1)
    with pytest.raises(KeyConflict):
        curator.synthesize("SELECT ward FROM visits", **QUICK, key="k")


def test_seeded_curators_repeat() -> None:
    rows: dict[str, Any] = {"unit": None, "max_groups": 1, "max_rows": 1}  # no row is chosen by the account's secret
    one, other = (spied(**rows)[0].synthesize(ROWS, **QUICK) for _ in range(2))
    assert one.table.equals(other.table)


def test_what_is_kept_is_plain_text_and_says_nothing_else() -> None:
    day, sex = synthetic.Calendar("year_month", years=(2023, 2024)), synthetic.Keys(["F", "M"])
    frame = {"day": [dt.date(2023, 5, 1)] * 50, "sex": ["F"] * 50}
    generator = synthetic.Independent(epsilon=1, delta=1e-9, random_state=1)
    model = generator.fit(frame, domain={"day": day, "sex": sex})
    kept = KeptTable.sample_from(model, 30, SeededBits(1))
    again = KeptTable.from_json(kept.to_json())
    assert (again.columns, again.rows) == (kept.columns, 30)
    assert again.to_json() == kept.to_json()
    for text in ("{}", "[]", "no", json.dumps({"format": "discreet synthetic table 1"})):
        with pytest.raises(InvalidParameter):
            KeptTable.from_json(text)


# ---------------------------------------------------------------------------------------------------------- failures


def test_a_failure_stays_charged_and_says_nothing() -> None:
    broken = Broken()
    curator = clinic(Budget(epsilon=4, delta=1e-6), engine=broken)
    with pytest.raises(QueryFailed) as error:
        curator.synthesize(ROWS, **QUICK)
    assert error.value.__cause__ is None
    assert charges(curator) == 1
    assert [entry.kind for entry in curator.history("visits")][-1] == "fail"


def test_a_crash_after_the_charge_loses_nothing_but_the_charge(tmp_path: Path) -> None:
    """The process ends between charge and read: the charge is durable, and the same key makes the table for it."""
    ledger, spy = str(tmp_path / "book.db"), Spy()

    def stop() -> None:
        raise KeyboardInterrupt

    spy.before = stop
    with clinic(Budget(epsilon=4, delta=1e-6), ledger=ledger, engine=spy) as curator:
        with pytest.raises(KeyboardInterrupt) as stopped:
            curator.synthesize(ROWS, **QUICK, key="k")
        assert STAYS in stopped.value.__notes__
    with clinic(Budget(epsilon=4, delta=1e-6), ledger=ledger) as curator:
        assert charges(curator) == 1
        spent = curator.budget("visits")
        made = curator.synthesize(ROWS, **QUICK, key="k")
        assert len(made) > 0
        assert (charges(curator), curator.budget("visits").remaining) == (1, spent.remaining)
        curator.verify()


def test_a_generator_that_releases_something_else_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    curator, _ = spied()
    right = synthetic.Independent.fit_coded

    def wrong(_: Any, rows: Any, domain: Any, **how: Any) -> Any:
        return right(synthetic.Independent(epsilon=2, delta=1e-9), rows, domain, **how)

    monkeypatch.setattr(synthetic.Independent, "fit_coded", wrong)
    with pytest.raises(QueryFailed):
        curator.synthesize(ROWS, **QUICK)


@pytest.mark.parametrize("generator", GENERATORS)
def test_no_rows_are_no_error(generator: str) -> None:
    curator, _ = spied()
    made = curator.synthesize(f"{ROWS} WHERE age > 1000", epsilon=1, generator=generator)
    assert len(made) >= 1


# ---------------------------------------------------------------------------------------------------------- refusals


def refused(call: Callable[[Curator], object], error: type[Exception], **declared: Any) -> Any:
    """A call that fails before anything is charged or read."""
    curator, spy = spied(**declared)
    with pytest.raises(error) as told:
        call(curator)
    assert (spy.reads, charges(curator)) == (0, 0)
    return told.value


def test_a_column_without_public_values_is_refused_by_name() -> None:
    error = refused(lambda curator: curator.synthesize("visits", **QUICK), UnsupportedQuery)
    assert "kind has no public values" in str(error)
    assert "Keys([...])" in error.hint
    assert "in the domain" in error.hint


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"generator": "gan"}, "generator"),
        ({"generator": 3.5}, "generator"),
        ({"generator": synthetic.MST(epsilon=1, delta=1e-9)}, "epsilon"),
        ({"generator": synthetic.MST(epsilon=1, delta=1e-9, random_state=1), "epsilon": None}, "random_state"),
        ({"generator": synthetic.MST(epsilon=1, delta=1e-9, neighbours="replace"), "epsilon": None}, "neighbours"),
        ({"domain": {"nobody": ["a"]}}, "domain"),
        ({"domain": {"age": ["a", "b"]}}, "domain of age"),
        ({"domain": {"age": [True, False]}}, "domain of age"),
        ({"domain": {"ward": range(3)}}, "domain of ward"),
        ({"domain": {"ward": synthetic.Calendar("weekday")}}, "domain of ward"),
        ({"bins": 0}, "bins"),
        ({"rows": 0}, "rows"),
        ({"rows": 10**9}, "rows"),
        ({"rows_per_unit": 0}, "rows_per_unit"),
        ({"forbidden": [{"nobody": [1]}]}, "forbidden"),
    ],
    ids=str,
)
def test_what_is_refused_costs_nothing(how: dict[str, Any], name: str) -> None:
    error = refused(lambda curator: curator.synthesize(ROWS, **(QUICK | how)), InvalidParameter)
    assert error.name == name


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ("nobody", UnknownTable),
        ("SELECT patient FROM visits", UnsupportedQuery),
        ("SELECT COUNT(*) AS n FROM visits", UnsupportedQuery),
        ("SELECT ward, age FROM visits LIMIT 3", UnsupportedQuery),
    ],
)
def test_rows_that_are_refused_cost_nothing(question: str, error: type[Exception]) -> None:
    refused(lambda curator: curator.synthesize(question, **QUICK), error)


def test_a_foreign_generator_is_refused() -> None:
    class Peeking(synthetic.Independent):
        """Might return anything."""

    foreign = Peeking(epsilon=1, delta=1e-9)
    error = refused(lambda curator: curator.synthesize(ROWS, generator=foreign), InvalidParameter)
    assert error.name == "generator"


def test_two_tables_of_one_account_are_refused_with_the_reason() -> None:
    curator, spy = spied()
    people = [{"patient": 1, "sex": "F"}]
    curator.protect(
        people,
        name="people",
        unit="patient",
        max_rows=1,
        account="visits",
        types={"patient": "int", "sex": "text"},
        keys={"sex": ["F", "M"]},
    )
    joined = "SELECT v.ward, p.sex FROM visits v JOIN people p ON v.patient = p.patient"
    with pytest.raises(UnsupportedQuery, match="one protected table"):
        curator.synthesize(joined, **QUICK)
    assert (spy.reads, charges(curator)) == (0, 0)


def test_a_pure_budget_cannot_pay() -> None:
    error = refused(lambda curator: curator.synthesize(ROWS, **QUICK), InvalidParameter, budget=Budget(epsilon=4))
    assert error.name == "delta"


def test_each_row_is_a_person_where_nobody_is_named() -> None:
    error = refused(
        lambda curator: curator.synthesize("SELECT ward FROM visits", **QUICK, rows_per_unit=2),
        InvalidParameter,
        unit=None,
        max_groups=1,
        max_rows=1,
    )
    assert error.name == "rows_per_unit"


def test_those_who_may_not_ask_and_cannot_pay_read_nothing() -> None:
    refused(lambda curator: curator.synthesize(ROWS, epsilon=100, generator="mst"), InsufficientBudget)
    curator, spy = spied()
    curator.appoint("ana", "analyst", account="visits")
    with pytest.raises(NotPermitted):
        curator.synthesize(ROWS, **QUICK, analyst="eve")
    with pytest.raises(NotPermitted):
        curator.plan_synthesize(ROWS, **QUICK, analyst="eve")
    assert curator.synthesize(ROWS, **QUICK, analyst="ana").table.num_rows
    assert spy.reads == 1


# ----------------------------------------------------------------------------------------------------------- domains


def test_declared_facts_become_domains() -> None:
    types = {"who": "int", "day": "date", "seen": "timestamp", "sick": "bool", "level": "int", "x": "float"}
    rows = [
        {"who": n, "day": dt.date(2023, 1 + n % 12, 3), "seen": dt.datetime(2024, 2, 3, 4), "sick": n % 2 == 0}
        | {"level": n % 4, "x": n / 7}
        for n in range(300)
    ]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(5))
    bounds: dict[str, Any] = {"day": (dt.date(2022, 3, 1), dt.date(2024, 6, 1)), "level": (1, 3), "x": (-1, 1)}
    curator.protect(
        rows,
        name="t",
        unit="who",
        max_rows=1,
        types=types,
        bounds=bounds,
        budget=Budget(epsilon=100, delta=1e-5),
    )
    seen = {"seen": synthetic.Calendar("weekday")}
    made = curator.synthesize("t", epsilon=50, generator="independent", domain=seen)
    domain = made.model.domain
    assert domain.columns["day"] == synthetic.Calendar("year_month", years=(2022, 2024))
    assert domain.columns["sick"] == synthetic.Keys([False, True])
    assert domain.columns["level"] == synthetic.Bins([1, 2, 3, 4])
    assert domain.columns["x"] == synthetic.Bins(np.linspace(-1, 1, 17))
    counts = {name: made.model.counts((name,)) for name in domain.columns}
    assert np.allclose(counts["seen"], [0] * 5 + [300, 0, 0], atol=15)  # a Saturday
    assert np.allclose(counts["level"], [150, 75, 75, 0], atol=15)  # 0 is clipped to 1
    assert np.allclose(counts["sick"], [150, 150, 0], atol=15)
    assert np.allclose(counts["day"][12:24], 25, atol=10)
    assert {type(day) for day in made.table["day"].to_pylist()} <= {dt.date, type(None)}
    again = curator.synthesize("t", epsilon=50, generator="independent", domain=seen)
    assert (again.replayed, again.table.equals(made.table)) == (True, True)


def test_a_given_domain_with_rules_keeps_them() -> None:
    curator, _ = spied()
    given = synthetic.Domain(
        {"WARD": ["A", "B"], "age": range(0, 120, 40)}, forbidden=[{"WARD": ["A"], "age": (0, 40)}]
    )
    made = curator.synthesize(ROWS, **QUICK, domain=given, forbidden=[{"ward": ["B"], "age": (40, 80)}])
    found = made.model.counts(("ward", "age"))
    assert (found[0, 0], found[1, 1]) == (0, 0)
    assert found[0, 1] > 0


# -------------------------------------------------------------------------------------------------------- neighbours


def handed(rows: list[Any], how: dict[str, Any], frozen: Any = None, **declared: Any) -> MechanismRecorder:
    """What mechanisms are given while a table is made; or, with what came out before, comes out again."""
    bits = SeededBits(7)
    recorder = MechanismRecorder(bits, frozen=frozen, seed=1)
    with Curator.for_tests(engine=Memory(), bits=bits) as curator:
        options = {"unit": "patient", **DECLARED, **declared}
        curator.protect(rows, name="visits", budget=Budget(epsilon=20, delta=1e-6), **{"max_rows": 1, **options})
        twin = observe_curator(curator, engine=curator._engine, releaser=Releaser(bits), salt="salt")
        with watch_mechanisms(recorder):
            twin.synthesize("SELECT ward, age, charge FROM visits", **how)
    return recorder


def moved(rows: list[Any], other: list[Any], how: dict[str, Any], **declared: Any) -> tuple[int, float]:
    """How many releases there are, and how far an input moved at most, as a share of what is hidden."""
    one = handed(rows, how, **declared)
    two = handed(other, how, frozen=one.made, **declared)
    assert not one.unjudged
    assert not two.strayed
    assert len(one.made) == len(two.made)
    shares = []
    for first, second in zip(one.made, two.made, strict=True):
        assert first.mechanism == second.mechanism
        apart = np.asarray(first.inputs[0], dtype=object) - np.asarray(second.inputs[0], dtype=object)
        if type(first.mechanism).__name__ == "Exponential":
            size = float(max(abs(step) for step in apart.ravel()))
        else:
            size = float(np.sqrt(float((apart * apart).sum())))
        shares.append(size / float(first.mechanism.sensitivity))
    return len(shares), max(shares)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", list(Neighbours), ids=lambda one: str(one.value))
@pytest.mark.parametrize(("generator", "limit"), [("independent", 1), ("independent", 3), ("mst", 2), ("aim", 1)])
def test_one_person_moves_what_is_measured_no_further_than_noise_hides(
    generator: str, limit: int, neighbours: Neighbours
) -> None:
    how = {"epsilon": 4, "generator": generator, "rows_per_unit": limit, "bins": 3}
    largest = 0.0
    for seed in range(2):
        rows = visits(seed)
        found, share = moved(rows, neighbour(rows, seed, seed + 3, neighbours), how, neighbours=neighbours)
        assert found >= 3
        largest = max(largest, share)
    assert 0 < largest <= 1


def test_a_wrong_limit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that keeps three rows of a person and pays for one moves further than its noise hides."""
    right = synthesis_plan.SynthesisPlan.reading.fget  # type: ignore[attr-defined]

    def wide(self: Any) -> Reading:
        made: Reading = right(self)
        assert made.bounding is not None
        limit = ContributionBounding(unit=made.bounding.unit, groups=3, rows=1, salt=made.bounding.salt)
        return Reading(table=made.table, source=made.source, keys=made.keys, bounding=limit, statistics=made.statistics)

    monkeypatch.setattr(synthesis_plan.SynthesisPlan, "reading", property(wide))
    rows = visits(1)
    shares = [moved(rows, neighbour(rows, 1, who, Neighbours.ADD_REMOVE), {**QUICK, "bins": 3})[1] for who in range(4)]
    assert max(shares) > 1


def test_engines_agree() -> None:
    made = []
    for engine in (Memory(), DuckDB()):
        with Curator.for_tests(engine=engine, bits=SeededBits(2)) as curator:
            source: Any = visits(3, patients=200)
            if isinstance(engine, DuckDB):
                pandas = pytest.importorskip("pandas")
                source = pandas.DataFrame(source).astype({"age": "Int64"})
            curator.protect(source, name="visits", budget=Budget(epsilon=20, delta=1e-6), **OPTIONS)
            twin = observe_curator(curator, engine=engine, releaser=Releaser(SeededBits(2)), salt="salt")
            made.append(twin.synthesize("SELECT ward, age, charge FROM visits", **QUICK))
    assert made[0].table.equals(made[1].table)
