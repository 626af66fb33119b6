"""A budget for the rows of each month: a query is charged to the months that it names, and reads rows of no others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet import Budget, Curator, audit
from discreet.audit.queries.recorder import RecordingEngine
from discreet.curator.catalog import catalog as catalog_module
from discreet.curator.config.enrolment import check_budgets
from discreet.curator.config.toml_file import load
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import DiscreetError, InsufficientBudget, InvalidParameter, UnsupportedQuery
from discreet.learn import GaussianNB
from discreet.noise import SeededBits
from discreet.plan.analysis.row_periods import name_all_periods
from discreet.sql.examples import Examples

TODAY = dt.date(2026, 11, 19)
MONTHLY = Budget(epsilon=1, delta="1e-6", per="month", of="day")
OPTIONS: dict[str, Any] = {
    "name": "visits",
    "unit": "patient",
    "max_groups": 2,
    "max_rows": 2,
    "keys": {"ward": ["A", "B"]},
    "bounds": {"charge": (0, 50)},
    "types": {"patient": "text", "day": "date", "ward": "text", "charge": "float"},
}
IN_JANUARY = "day >= '2026-01-01' AND day < '2026-02-01'"
JANUARY = f"SELECT COUNT(*) AS n FROM visits WHERE {IN_JANUARY}"
BOTH = (
    "SELECT ward, COUNT(*) AS n, AVG(charge) AS m FROM visits "
    "WHERE day BETWEEN '2026-01-20' AND '2026-02-10' GROUP BY ward"
)
MARCH = "SELECT SUM(charge) AS s FROM visits WHERE EXTRACT(year FROM day) = 2026 AND EXTRACT(month FROM day) = 3"
JOINED = (
    "SELECT w.floor, COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.ward "
    "WHERE v.day >= '2026-02-01' AND v.day < '2026-03-01' GROUP BY w.floor"
)


def rows(people: int = 30) -> list[dict[str, Any]]:
    made = [
        {
            "patient": f"p{who}",
            "day": dt.date(2026, month, 1 + (who * 7 + turn * 5) % 27),
            "ward": "AB"[(who + turn) % 2],
        }
        for who in range(people)
        for month in range(1, 5)
        for turn in range(3)
    ]
    made += [{"patient": "p1", "day": None, "ward": "A"}, {"patient": None, "day": dt.date(2026, 1, 1), "ward": "B"}]
    return [{**row, "charge": float(place % 60)} for place, row in enumerate(made)]


def clinic(
    data: Any = None, engine: Engine | None = None, budget: Any = MONTHLY, path: str = ":memory:", **more: Any
) -> Curator:
    """With tables in the form that the engine takes: rows for the referee, columns for DuckDB."""
    here = Memory() if engine is None else engine
    curator = Curator.for_tests(path, engine=here, bits=SeededBits(1), today=TODAY)
    table = rows() if data is None else data
    if isinstance(here, DuckDB):
        table = pa.Table.from_pylist(table)
    curator.protect(table, budget=budget, **{**OPTIONS, **more})
    wards = [{"ward": "A", "floor": 1}, {"ward": "B", "floor": 2}]
    public = pa.Table.from_pylist(wards) if isinstance(here, DuckDB) else wards
    curator.public(public, name="wards", types={"ward": "text", "floor": "int"}, unique=["ward"])
    return curator


def test_each_month_of_rows_has_the_whole_amount() -> None:
    curator = clinic()
    curator.ask(BOTH, epsilon="0.5")
    first = curator.ask(JANUARY, epsilon="0.5")
    assert (str(first.remaining), str(first.cost)) == ("0 %", "epsilon=0.5, 50 % of the budget")
    with pytest.raises(InsufficientBudget):
        curator.ask(JANUARY.replace("COUNT(*)", "SUM(charge)"), epsilon="0.1")
    assert curator.ask(JANUARY, epsilon="0.5").replayed
    assert str(curator.ask(MARCH, epsilon=1).remaining) == "0 %"
    assert str(curator.explain(JANUARY.replace("-01-", "-02-").replace("-02-01'", "-03-01'", 1), epsilon=1).remaining)
    assert curator.budget("visits").periods == (
        ("2026-01-01", "100 %"),
        ("2026-02-01", "50 %"),
        ("2026-03-01", "100 %"),
    )


def test_answers_are_those_of_rows_in_the_named_months() -> None:
    ample = Budget(epsilon=10**7, delta="1e-3", per="month", of="day")
    january = [row for row in rows() if row["day"] is not None and row["day"].month == 1 and row["patient"]]
    for engine in (Memory(), DuckDB(threads=1)):
        curator = clinic(engine=engine, budget=ample)
        (answer,) = curator.ask(JANUARY, epsilon=10**6)
        assert answer["n"] == pytest.approx(2 * 30, abs=0.5)  # of three rows of each person in the month
        joined = curator.ask(JOINED, epsilon=10**6)
        assert sum(row["n"] for row in joined) == pytest.approx(3 * 30, abs=2)  # in two groups of up to two rows
    assert len(january) == 3 * 30


def test_explain_says_what_the_answer_costs() -> None:
    curator = clinic()
    for sql in (BOTH, JANUARY, MARCH, JOINED):
        told = curator.explain(sql, epsilon="0.25")
        answer = curator.ask(sql, epsilon="0.25")
        assert str(told.cost) == str(answer.cost)
        assert told.cost.share is not None
        assert told.remaining.share - told.cost.share == answer.remaining.share


def test_batches_and_fits_are_charged_to_their_months() -> None:
    curator = clinic()
    curator.ask_many([JANUARY, MARCH], epsilon="0.5")
    assert curator.budget("visits").periods == (("2026-01-01", "50 %"), ("2026-03-01", "50 %"))
    curator = clinic()
    learner = GaussianNB(epsilon="0.25", bounds=(0, 50), classes=["A", "B"])
    curator.fit(learner, f"SELECT charge, ward FROM visits WHERE {IN_JANUARY}", target="ward")
    ((month, _),) = curator.budget("visits").periods
    assert month == "2026-01-01"
    made = curator.synthesize("SELECT ward FROM visits WHERE day = '2026-02-01'", rows=9, epsilon="0.1")
    assert (len(made), [month for month, _ in curator.budget("visits").periods]) == (9, ["2026-01-01", "2026-02-01"])
    with pytest.raises(UnsupportedQuery, match="does not name any"):
        curator.fit(learner, "SELECT charge, ward FROM visits", target="ward")


REFUSED: dict[str, Callable[[Curator], object]] = {
    "does not name any": lambda curator: curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1"),
    "A profile is about all rows": lambda curator: curator.ask(JANUARY, epsilon="0.1", profile="0.05"),
    "A profile is about": lambda curator: curator.ask(JANUARY, epsilon="0.1", coverage="0.2"),
    "A profile is about all rows, and here": lambda curator: curator.profile("visits", epsilon="0.05"),
    "query does not name any": lambda curator: curator.synthesize("visits", rows=10, epsilon="0.1"),
    "A stream goes on": lambda curator: curator.stream(
        f"SELECT day, COUNT(*) AS n FROM visits WHERE {IN_JANUARY} GROUP BY day", every="day", horizon=9, epsilon="0.1"
    ),
    "would be chosen by all rows": lambda curator: curator.ask(
        f"SELECT SUM(age) AS s FROM visits WHERE {IN_JANUARY}", epsilon="0.1"
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_looks_at_all_rows_is_refused(reason: str) -> None:
    curator = clinic([{**row, "age": 4} for row in rows(3)], types={**OPTIONS["types"], "age": "int"})
    with pytest.raises(DiscreetError, match=reason):
        REFUSED[reason](curator)
    assert curator.budget("visits").periods == ()
    assert [entry.kind for entry in curator.history("visits")] == ["open", "attach"]


def test_declarations_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="to name a column of dates of 'visits'"):
        clinic(budget=Budget(epsilon=1, per="month", of="charge"))
    with pytest.raises(InvalidParameter, match="to be one column of ids"):
        clinic(unit=None)
    with pytest.raises(InvalidParameter, match="to be one column of ids"):
        clinic(unit=["patient", "ward"])
    with pytest.raises(InvalidParameter, match="to be numbers"):
        clinic(max_rows=None, max_groups=None, limits="private")
    with pytest.raises(InvalidParameter, match="sample_of"):
        clinic(sample_of={"population": 100, "size": 30})
    curator = clinic()
    labs = [{"who": "p1", "day": dt.date(2026, 1, 1)}, {"who": "p1", "day": dt.date(2026, 2, 1)}]
    told: dict[str, Any] = {"name": "labs", "unit": "who", "account": "visits", "max_rows": 1}
    with pytest.raises(InvalidParameter, match="to name a column of dates of 'labs'"):
        curator.protect(labs, types={"who": "text"}, **told)
    curator.protect(labs, types={"who": "text", "day": "date"}, **told)
    curator.ask("SELECT COUNT(*) AS n FROM labs WHERE day = '2026-02-01'", epsilon="0.5")
    assert curator.budget("visits").periods == (("2026-02-01", "50 %"),)
    with pytest.raises(UnsupportedQuery):  # a person's rows of two months are two units'
        curator.ask(
            "SELECT COUNT(*) AS n FROM visits AS v JOIN labs AS l ON v.patient = l.who "
            "WHERE v.day = '2026-01-01' AND l.day = '2026-02-01'",
            epsilon="0.1",
        )


def test_a_ledger_and_its_file_go_on(tmp_path: Path) -> None:
    text = """
ledger = "clinic.ledger"
anchor = ""
[budgets.visits]
epsilon = 1
per = "month"
of = "day"
[tables.visits]
source = "visits.csv"
unit = "patient"
max_rows = 1
types = { patient = "text", day = "date" }
"""
    (tmp_path / "visits.csv").write_text("patient,day\n" + "".join(f"p{i},2026-01-{1 + i % 9:02}\n" for i in range(40)))
    (tmp_path / "discreet.toml").write_text(text)
    for turn in range(2):
        with Curator.from_config(str(tmp_path / "discreet.toml")) as curator:
            answer = curator.ask("SELECT COUNT(*) AS n FROM visits WHERE day = '2026-01-03'", epsilon="0.5")
            assert answer.replayed is bool(turn)
            assert curator.budget("visits").periods == (("2026-01-01", "50 %"),)
    for other in ('per = "month"', 'per = "year"\nof = "day"'):
        (tmp_path / "discreet.toml").write_text(text.replace('per = "month"\nof = "day"', other))
        with pytest.raises(InvalidParameter) as refused:
            check_budgets(load(tmp_path / "discreet.toml"))
        assert "open another account" in str(refused.value.hint)
    (tmp_path / "discreet.toml").write_text(text.replace("epsilon = 1", "epsilon = 2"))
    with pytest.raises(InvalidParameter, match="discreet amend visits --epsilon 2 --per month --of day"):
        check_budgets(load(tmp_path / "discreet.toml"))


# ----------------------------------------------------------------------------------------------------------- neighbours


def readings(data: list[dict[str, Any]], sql: str) -> list[Any]:
    """What a query reads before any noise."""
    engine = RecordingEngine(Memory())
    curator = clinic(data, engine, max_rows=99)  # so that no secret chooses rows
    curator.ask(sql, epsilon="0.5")
    return [dict(groups) for _, groups in engine.seen]


CHARGED = {JANUARY: {1}, BOTH: {1, 2}, MARCH: {3}, JOINED: {2}}


def without(who: str, month: int) -> list[dict[str, Any]]:
    return [row for row in rows() if row["patient"] != who or row["day"] is None or row["day"].month != month]


def check_months(sql: str) -> None:
    """One person's rows of a month move what is read for the months alone that are charged."""
    before = readings(rows(), sql)
    for month in range(1, 5):
        after = readings(without("p3", month), sql)
        assert (after == before) is (month not in CHARGED[sql])


@pytest.mark.parametrize("sql", CHARGED)
def test_months_that_are_not_charged_move_nothing(sql: str) -> None:
    check_months(sql)


def test_reading_months_that_are_not_charged_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that names one month too few, and would read it all the same, is refused before anything is charged."""

    def forgetful(plan: Any, *told: Any) -> Any:
        _, periods = name_all_periods(plan, *told)
        return plan, periods[1:] or periods

    monkeypatch.setattr(catalog_module, "name_all_periods", forgetful)
    curator = clinic()
    with pytest.raises(InvalidParameter, match="named periods"):
        curator.ask(BOTH, epsilon="0.5")
    assert curator.budget("visits").periods == ()


@pytest.mark.ci
def test_neighbours_differ_by_one_persons_month() -> None:
    def make(data: Any) -> Curator:
        return clinic(data, Memory(), Budget(epsilon=10**6, delta="0.1", per="month", of="day"))

    found = audit.query(make, [JANUARY, BOTH, MARCH], rows(12), neighbours=12)
    assert found.passed, found.summary()


def test_examples_in_refusals_name_a_month() -> None:
    curator = clinic()
    schema = curator._catalog.schemas["visits"]
    names = [name for name, kind in vars(Examples).items() if isinstance(kind, property) and name != "table"]
    for name in names:
        curator.explain(Examples(schema).in_one_period(getattr(Examples(schema), name)), epsilon="0.1")
    with pytest.raises(UnsupportedQuery) as refused:
        curator.ask("SELECT STRING_AGG(ward) AS w FROM visits", epsilon="0.1")
    assert "WHERE day >= DATE '2026-01-01' AND day < DATE '2026-02-01'" in str(refused.value.hint)
