"""A report tells what the ledger says, from the ledger alone, and spends nothing."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from discreet.curator import Curator
from discreet.engines.memory import Memory
from discreet.errors import InvalidParameter, MissingExtra
from discreet.ledger import Entry, Head, Ledger, Role
from discreet.ledger.store import ledger_store
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.presentation.ledger_report.released_numbers import released_numbers
from discreet.presentation.ledger_report.report_page import ledger_report, verify_ledger, write_report
from discreet.presentation.ledger_view import ledger_history
from discreet.presentation.ledger_view.forecast import forecast
from discreet.presentation.ledger_view.ledger_history import read_history
from discreet.privacy import Budget, Unit, events
from discreet.report import render
from tests.report.reader import Page

BEGIN = dt.datetime(2026, 6, 1, 9, tzinfo=dt.UTC)
ROWS = [{"id": f"p{n}", "ward": "AB"[n % 2], "age": 20 + n % 60} for n in range(400)]
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(age) AS years FROM visits GROUP BY ward"


@dataclass
class Clock:
    """A clock that is set by hand."""

    now: dt.datetime = field(default=BEGIN)

    def later(self, days: float) -> None:
        self.now += dt.timedelta(days=days)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(ledger_store, "_now", lambda: found.now.isoformat(timespec="milliseconds"))
    return found


@pytest.fixture
def ledger(clock: Clock) -> Iterator[Ledger]:
    """Two analysts and a project with caps, a renewal half way."""
    with Ledger() as found:
        acts = found.stewardship
        acts.open_account("patients", unit=Unit("patient", "id"), budget=Budget(epsilon=2))
        acts.appoint("ana", Role.ANALYST, account="patients", cap=Budget(epsilon=1))
        acts.appoint("ben", Role.ANALYST, account="patients")
        acts.allot("flu", account="patients", cap=Budget(epsilon="0.5"))
        for spent, who, project in (("0.5", "ana", "flu"), ("0.25", "ben", "")):
            clock.later(5)
            receipt = found.charge("patients", events.Pure(spent), analyst=who, question="{}", project=project)
        found.fail(receipt)
        yield found


def test_what_is_left_falls_with_every_charge_and_begins_again_with_a_renewal(ledger: Ledger, clock: Clock) -> None:
    ledger.stewardship.renew("patients")
    clock.later(1)
    ledger.charge("patients", events.Pure("0.2"), analyst="ana", question="{}")
    account = read_history(ledger).accounts["patients"]
    assert [step.remaining_share for step in account.own.curve] == pytest.approx([1, 0.75, 0.625, 1, 0.9])
    assert [step.remaining_share for step in account.people["ana"].curve] == pytest.approx([1, 0.5, 1, 0.8])
    ben = account.people["ben"]  # has no cap of their own: the account's budget is theirs
    assert [step.remaining_share for step in ben.curve] == pytest.approx([1, 0.875, 1])
    assert ben.cap is None
    assert [step.remaining_share for step in account.projects["flu"].curve] == pytest.approx([1, 0, 1])


def test_an_amended_budget_keeps_what_was_spent(ledger: Ledger) -> None:
    ledger.stewardship.amend("patients", budget=Budget(epsilon=3))
    assert read_history(ledger).accounts["patients"].own.remaining_share == pytest.approx(0.75)


def test_shares_are_those_of_the_balance(ledger: Ledger) -> None:
    account = read_history(ledger).accounts["patients"]
    left = ledger.balance("patients").remaining.epsilon
    assert account.own.remaining_share == pytest.approx(float(left / 2))
    assert account.people["ana"].remaining_share == pytest.approx(
        float(ledger.balance("patients", analyst="ana").remaining.epsilon)
    )


def test_outcomes_are_counted_for_the_account_the_person_and_the_project(ledger: Ledger) -> None:
    account = read_history(ledger).accounts["patients"]
    assert (account.own.questions, account.own.failed, account.people["ben"].failed) == (2, 1, 1)
    assert (account.people["ana"].questions, account.projects["flu"].questions) == (1, 1)


def test_pages_of_entries_are_read_to_the_end(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_history(ledger)
    monkeypatch.setattr(ledger_history, "PAGE", 2)
    assert read_history(ledger) == whole
    assert whole.entries == ledger.head().sequence


def test_the_newest_questions_are_kept_and_all_are_counted(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_history, "MOST_LISTED", 1)
    history = read_history(ledger)
    assert [one.entry.who for one in history.charges.values()] == ["ben"]
    assert history.counts["charge"] == 2


def test_a_forecast_is_a_straight_line_and_none_is_made_too_early() -> None:
    later = BEGIN + dt.timedelta(days=10)
    found = forecast(0.5, 0.5, since=BEGIN, now=later)
    assert found is not None
    assert found.used_up == BEGIN + dt.timedelta(days=20)
    assert forecast(0.5, 0.5, since=BEGIN, now=BEGIN + dt.timedelta(hours=23)) is None
    assert forecast(0.0, 1.0, since=None, now=later) is None
    far = forecast(1e-6, 1 - 1e-6, since=BEGIN, now=later)
    assert far is not None
    assert far.words == "not within ten years"


@pytest.mark.ci
def test_the_page_tells_everything_and_stands_alone(ledger: Ledger, clock: Clock) -> None:
    before = ledger.head()
    made = ledger_report(ledger, now=clock.now + dt.timedelta(days=5))
    read = Page(made.text)
    assert read.fetched == []
    links = [a["href"] for a in read.named("a")]
    assert links == [f"#{a['id']}" for a in read.named("h2")]
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in read.tags}
    for told in ("Verified", "ana", "ben", "project flu", "1 queries failed", "Forecast:", str(before)):
        assert told in made.text
    assert "about 3 July 2026" in made.text  # 37.5 % used in the 10 days since the first charge
    assert ledger.head() == before
    assert made.verification.passed


def test_names_are_no_markup(clock: Clock) -> None:
    evil = "<script>alert(1)</script>"
    with Ledger() as ledger:
        ledger.stewardship.open_account(evil, unit=Unit("patient", "id"), budget=Budget(epsilon=2))
        ledger.charge(evil, events.Pure(1), analyst=evil, question="{}")
        assert "<script" not in ledger_report(ledger, now=clock.now).text


def test_a_ledger_without_its_anchor_is_told_and_not_frozen(ledger: Ledger) -> None:
    assert verify_ledger(ledger, ledger.head()).passed
    assert verify_ledger(ledger, Head(0, "0" * 64)).passed
    other = Head(2, "f" * 64)
    found = ledger_report(ledger, anchor=other)
    assert not found.verification.passed
    assert "Anchor not found" in found.text
    assert not verify_ledger(ledger, Head(10_000, "f" * 64)).passed
    assert not ledger.is_frozen


def test_an_altered_ledger_is_told_on_the_page(tmp_path: Path) -> None:
    path = str(tmp_path / "book.ledger")
    with Ledger(path) as ledger:
        ledger.stewardship.open_account("patients", unit=Unit("patient", "id"), budget=Budget(epsilon=2))
        ledger.charge("patients", events.Pure(1), analyst="ana", question="{}")
    with sqlite3.connect(path) as file:
        table = next(name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE name LIKE 'entr%'"))
        triggers = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            file.execute(f"DROP TRIGGER {name}")
        file.execute(f"UPDATE {table} SET who = 'eve' WHERE sequence = 2")
        for _, sql in triggers:
            file.execute(sql)
    found = write_report(path, tmp_path / "report.html")
    assert not found.passed
    assert "Ledger changed" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.ci
def test_the_page_is_its_owners_and_replaces_an_older_one(ledger: Ledger, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("old", encoding="utf-8")
    write_report(ledger, page)
    assert page.stat().st_mode & 0o777 == 0o600
    assert "Verified" in page.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(InvalidParameter) as refusal:
        write_report(ledger, tmp_path / "nowhere" / "report.html")
    assert refusal.value.name == "out"


def test_without_the_extra_nothing_is_written(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtra("Drawing a chart", "report", "vl_convert")

    monkeypatch.setattr(render, "_converter", missing)
    with pytest.raises(MissingExtra):
        write_report(ledger, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------------------- released numbers


@pytest.fixture
def curator(bits: SeededBits) -> Iterator[Curator]:
    with Curator.for_tests(engine=Memory(), bits=bits) as found:
        found.protect(
            ROWS,
            name="visits",
            unit="id",
            max_rows=1,
            account="patients",
            budget=Budget(epsilon=20),
            types={"id": "text", "ward": "text", "age": "int"},
            bounds={"age": (0, 120)},
            keys={"ward": ["A", "B"]},
            version="1",
        )
        yield found


def _answers(curator: Curator) -> Iterator[tuple[Entry, bytes, ledger_history.LedgerHistory]]:
    ledger = curator._ledger
    history = read_history(ledger)
    for asked in history.charges.values():
        sequence = asked.entry.sequence
        (payload,) = [kept.payload for kept in ledger.read_answers(asked.replay_key) if kept.charge == sequence]
        yield curator.entries()[sequence - 1], payload, history


def test_numbers_within_private_limits_are_told_from_the_ledger() -> None:
    """The limits were found by a release of their own, which is no table and is not shown as one."""
    with Curator.for_tests(engine=Memory(), bits=SeededBits(1)) as made:
        types = {"id": "text", "ward": "text", "age": "int"}
        made.protect(ROWS, name="visits", unit="id", limits="private", budget=Budget(epsilon=20), types=types)
        answer = made.ask("SELECT COUNT(*) AS n FROM visits", epsilon=2)
        found = [
            released_numbers(charge.content["question"], payload, history.declared_at(charge.sequence))
            for charge, payload, history in _answers(made)
        ]
    assert found[0] is None
    assert found[1] is not None
    assert [dict(row) for row in found[1].records] == [dict(row) for row in answer]


def test_the_numbers_of_an_answer_are_told_from_the_ledger(curator: Curator) -> None:
    answer = curator.ask(BY_WARD, epsilon=2, limits=Limits(1, 1))
    ((charge, payload, history),) = _answers(curator)
    found = released_numbers(charge.content["question"], payload, history.declared_at(charge.sequence))
    assert found is not None
    assert found.records == answer.records
    assert not found.private  # seeded, and told so


def test_a_release_under_another_declaration_is_not_guessed_at(curator: Curator) -> None:
    curator.ask(BY_WARD, epsilon=2)
    ((charge, payload, history),) = _answers(curator)
    told = history.declared_at(charge.sequence)
    wider = told["visits"].declaration.replace('"120"', '"999"')
    other = {"visits": replace(told["visits"], declaration=wider)}
    assert released_numbers(charge.content["question"], payload, other) is None
    assert released_numbers(charge.content["question"], payload, {}) is None
    assert released_numbers(charge.content["question"], b"{}", told) is None
    assert released_numbers("no JSON", payload, told) is None


def test_a_report_of_a_test_says_that_nobody_is_protected(curator: Curator, clock: Clock) -> None:
    curator.ask(BY_WARD, epsilon=2)
    text = ledger_report(curator._ledger, now=clock.now).text
    assert "Not private: the noise was seeded" in text
    assert BY_WARD in text
