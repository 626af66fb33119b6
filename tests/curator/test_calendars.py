"""Budgets that renew, amounts set aside, teams and approvals, as a curator and a file of declarations have them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.curator.config.toml_file import parse
from discreet.errors import InsufficientBudget, InvalidParameter, NotPermitted, UnknownTable
from discreet.noise import SeededBits
from discreet.privacy import PureDP
from tests.ledger.renewal.machines import Machine

ROWS = {"patient": list(range(40)), "ward": ["A", "B"] * 20, "day": [dt.date(2026, 11, 19)] * 40}
COUNT = "SELECT COUNT(*) AS n FROM visits"
DAILY = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
MONTHLY = Budget(epsilon=1, per="month")
TOML = """
ledger = "clinic.ledger"
anchor = ""
[budgets.visits]
epsilon = 3
per = "month"
zone = "Europe/Berlin"
approvals = 2
[tables.visits]
source = "visits.csv"
unit = "patient"
max_rows = 1
types = { patient = "int", ward = "text" }
[analysts.ana.visits]
epsilon = 1
per = "day"
[teams.heart.visits]
epsilon = 2
members = ["ben", "ana"]
groups = ["dp-heart"]
"""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch, dt.datetime(2026, 11, 19, 9, tzinfo=dt.UTC))


def clinic(path: str | Path = ":memory:") -> Curator:
    curator = Curator.for_tests(str(path), bits=SeededBits(1))
    curator.protect(pa.table(ROWS), name="visits", unit="patient", max_rows=1, budget=MONTHLY)
    return curator


def written(folder: Path, text: str = TOML) -> Path:
    (folder / "visits.csv").write_text("patient,ward\n" + "".join(f"{i},A\n" for i in range(40)))
    path = folder / "discreet.toml"
    path.write_text(text)
    return path


def test_answers_of_a_period_stay_free_in_the_next(machine: Machine) -> None:
    curator = clinic()
    first = curator.ask(COUNT, epsilon=1)
    with pytest.raises(InsufficientBudget, match=r"renews per month; next on 2026-12-01"):
        curator.ask(COUNT + " WHERE ward = 'A'", epsilon=1)
    machine.pass_days(12)
    again = curator.ask(COUNT, epsilon=1)
    assert (again.records, again.replayed) == (first.records, True)
    other = curator.ask(COUNT + " WHERE ward = 'A'", epsilon=1)
    assert str(other.cost) == "epsilon=1, 100 % of the budget"
    assert curator.budget("visits").lifetime == PureDP(2)
    curator.verify()


def test_explain_says_what_it_costs_in_the_period_that_is_due(machine: Machine) -> None:
    curator = clinic()
    curator.ask(COUNT, epsilon=1)
    assert curator.explain(COUNT + " WHERE ward = 'A'", epsilon="0.5").refusal is not None
    machine.pass_days(12)
    told = curator.explain(COUNT + " WHERE ward = 'A'", epsilon="0.5")
    asked = curator.ask(COUNT + " WHERE ward = 'A'", epsilon="0.5")
    assert (told.refusal, told.cost) == (None, asked.cost)


def test_a_stream_lives_on_an_amount_set_aside(machine: Machine) -> None:
    curator = clinic()
    told = {"every": "day", "horizon": 40, "epsilon": "0.5", "start": "2026-11-19", "periods": 1}
    with pytest.raises(InvalidParameter, match="reserve") as refused:
        curator.stream(DAILY, **told)  # type: ignore[arg-type]
    assert "set an amount aside" in refused.value.hint
    curator.set_aside("daily", budget=Budget(epsilon="0.5"))
    stream = curator.stream(DAILY, **told, reserve="daily")  # type: ignore[arg-type]
    stream.release()
    machine.pass_days(12)
    curator.ask(COUNT, epsilon="0.5")  # a new period
    assert curator.stream(DAILY, **told, reserve="daily") is stream  # type: ignore[arg-type]
    stream.release()
    with pytest.raises(InsufficientBudget):
        curator.ask(COUNT + " WHERE ward = 'A'", epsilon="0.1")  # the rest is set aside
    curator.verify()


def test_a_question_is_paid_from_what_was_set_aside() -> None:
    curator = clinic()
    curator.set_aside("report", budget=Budget(epsilon="0.6"), person="ana", note="agreed")
    asked = curator.ask(COUNT, epsilon="0.6", analyst="ana", reserve="report")
    assert str(asked.cost).startswith("epsilon=0.6, 0 %")
    with pytest.raises(NotPermitted):
        curator.ask(COUNT + " WHERE ward = 'A'", epsilon="0.1", analyst="ben", reserve="report")
    assert curator.budget("visits").facts["set aside for report"] == "60 %, for ana; 60 % of the budget used"
    assert "set aside for report" in str(curator.budget("visits"))
    curator.give_back("report")
    assert curator.budget("visits").spent == PureDP("0.6")


def test_a_query_beyond_a_cap_is_asked_for_approved_and_asked_once() -> None:
    curator = clinic()
    curator.appoint("sue", "steward")
    curator.appoint("ana", "analyst", account="visits", cap=Budget(epsilon="0.1"))
    with pytest.raises(InsufficientBudget, match="request an approval"):
        curator.ask(COUNT, epsilon="0.5", analyst="ana")
    asked = curator.request_approval(COUNT, epsilon="0.5", reason="for the board", analyst="ana")
    assert (asked.state, asked.sql, asked.asked) == ("waiting", COUNT, "1/2")
    assert curator.approvals(analyst="ben") == []
    assert [one.number for one in curator.approvals(analyst="ana")] == [asked.number]
    curator.approve(asked.number, by="sue")
    assert curator.ask(COUNT, epsilon="0.5", analyst="ana").cost.epsilon is not None
    assert [one.state for one in curator.approvals()] == ["used"]
    with pytest.raises(InsufficientBudget):
        curator.ask(COUNT + " WHERE ward = 'A'", epsilon="0.5", analyst="ana")
    with pytest.raises(UnknownTable):
        curator.request_approval("SELECT ward FROM nothing", epsilon=1, reason="?", analyst="ana")
    curator.verify()


# ------------------------------------------------------------------------------------------------------- discreet.toml


def test_a_file_declares_calendars_teams_and_approvals(machine: Machine, tmp_path: Path) -> None:
    path = written(tmp_path)
    with Curator.from_config(path) as curator:
        ledger = curator._ledger
        assert ledger.balance("visits").renews == "per month, in Europe/Berlin; next on 2026-12-01"
        team = ledger.caps.team("heart", account="visits")
        assert team == (PureDP(2), ("ana", "ben"), ("dp-heart",))
        assert ledger.caps.needed("visits") == 2
        assert ledger.analyst_cap("ana", account="visits") == Budget(epsilon=1, per="day")
        entries = len(curator.entries())
    with Curator.from_config(path) as curator:
        assert len(curator.entries()) == entries  # nothing new, no entry
        curator.ask(COUNT, epsilon=1, analyst="ana")
        curator.amend("visits", budget=Budget(epsilon=4, per="week"))
    with Curator.from_config(path) as curator:  # the file has the first amount
        assert curator.budget("visits").renews == "per week; next on 2026-11-23"
    machine.pass_days(5)
    written(tmp_path, TOML.replace("epsilon = 2\n", "epsilon = 2.5\n"))
    with Curator.from_config(path) as curator:
        found = curator._ledger.caps.team("heart", account="visits")
        assert found is not None
        assert found.cap == PureDP("2.5")
        curator.verify()


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (('per = "month"', 'per = "moon"'), "budgets.visits.per"),
        (('zone = "Europe/Berlin"', 'zone = "Nowhere"'), "budgets.visits.zone"),
        (("approvals = 2", "approvals = 0"), "budgets.visits.approvals"),
        (('per = "day"', "per = 5"), "analysts.ana.visits.per"),
        (("[teams.heart.visits]", "[teams.heart.elsewhere]"), "teams.heart.elsewhere"),
        (('members = ["ben", "ana"]', 'members = "ben"'), "teams.heart.visits.members"),
    ],
)
def test_mistakes_name_their_key(wrong: tuple[str, str], name: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse(TOML.replace(*wrong), Path("/data"))
    assert caught.value.name == name
