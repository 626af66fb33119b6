"""Around a synthetic table: its page, what history says, stages, tables of other versions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.errors import InvalidParameter, QueryFailed
from discreet.learn import GaussianNB
from discreet.presentation.ledger_report.report_page import ledger_report
from discreet.presentation.ledger_view.query_text import asked_text
from discreet.privacy import Budget
from discreet.synthetic import Independent
from tests.curator.spies import Spy, clinic
from tests.report.reader import Page

ROWS = "SELECT ward, age FROM visits"
QUICK: dict[str, Any] = {"epsilon": 1, "generator": "independent"}


def opened(folder: Path, engine: Spy | None = None) -> Curator:
    return clinic(Budget(epsilon=4, delta=1e-6), ledger=str(folder / "book.db"), engine=engine or Spy())


# -------------------------------------------------------------------------------------------------------------- page


@pytest.mark.ci
def test_a_replayed_table_has_the_same_page_and_nothing_is_read_or_spent_for_it(tmp_path: Path) -> None:
    spy = Spy()
    with opened(tmp_path, spy) as curator:
        made = curator.synthesize(ROWS, epsilon=1, generator="mst")
        before = curator.entries()
        page = made.to_html()
        assert (curator.entries(), spy.reads) == (before, 1)
    with opened(tmp_path) as curator:
        again = curator.synthesize(ROWS, epsilon=1, generator="mst")
        assert again.replayed
        again.report(tmp_path / "visits.html")
    assert (tmp_path / "visits.html").read_text(encoding="utf-8") == page
    read = Page(page)
    assert "Synthetic table visits" in read.text("h1")
    assert "At most 1 row(s) per patient are counted" in read.text("li")
    assert all(link.startswith("#") for link in read.fetched)
    with pytest.raises(InvalidParameter):
        again.report(tmp_path / "no" / "where.html")


# ----------------------------------------------------------------------------------------------------------- history


@pytest.mark.ci
def test_history_says_what_was_made_of_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as curator:
        curator.synthesize(ROWS, **QUICK)
        curator.fit(GaussianNB(epsilon=1), "SELECT age, ward FROM visits", target="ward")
        told = [asked_text(entry.content) for entry in curator.history("visits") if entry.kind == "charge"]
        assert told[0] == f"synthetic table by Independent of {ROWS}"
        assert told[1] == "GaussianNB fitted to SELECT age, ward FROM visits"
        assert f"synthetic table by Independent of {ROWS}" in ledger_report(curator._ledger).text


@pytest.mark.parametrize("question", ["", "no", "[]", "3", '{"fit": 3}', '{"synthesize": {}}', None])
def test_foreign_texts_are_no_error(question: Any) -> None:
    assert asked_text({"sql": ROWS, "question": question}) == ROWS


# ------------------------------------------------------------------------------------------------------------ stages


@pytest.mark.parametrize("generator", ["independent", "mst", "aim", "allpairs"])
def test_one_stage_stands_for_all_that_is_drawn(generator: str, tmp_path: Path) -> None:
    told: list[Any] = []
    with opened(tmp_path) as curator:
        curator.synthesize(ROWS, epsilon=1, generator=generator, bins=3, within="histogram", progress=told.append)
    assert told[:2] == ["Planning", "Charging the account"]
    assert [stage.lower() for stage in told[2:]] == [f"reading visits and fitting {generator}"]
    assert {stage.spent for stage in told} == {None}


# ---------------------------------------------------------------------------------------------------------- versions


def frugal(monkeypatch: pytest.MonkeyPatch, part: Fraction) -> None:
    """Another version of the generator, which releases with more or less noise."""
    right = Independent.whole_rho
    monkeypatch.setattr(Independent, "whole_rho", lambda self: part * right(self))


def test_a_stored_table_of_another_version_is_given_again(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        frugal(patched, Fraction(1, 2))
        with opened(tmp_path) as curator:
            first = curator.synthesize(ROWS, **QUICK)
    spy = Spy()
    with opened(tmp_path, spy) as curator:
        assert curator.plan_synthesize(ROWS, **QUICK).free
        again = curator.synthesize(ROWS, **QUICK)
        assert (again.replayed, spy.reads) == (True, 0)
        assert again.table.equals(first.table)
        assert again.event == first.event != curator.plan_synthesize(ROWS, **QUICK).event
        curator.verify()


@pytest.mark.parametrize(("part", "pays"), [(Fraction(2), True), (Fraction(1, 2), False)])
def test_a_stopped_charge_of_another_version_pays_for_what_costs_no_more(
    part: Fraction, pays: bool, tmp_path: Path
) -> None:
    """The process of another version ended between charge and read; this one would release at 1 of its budget."""

    def stop() -> None:
        raise KeyboardInterrupt

    spy = Spy()
    spy.before = stop
    with pytest.MonkeyPatch.context() as patched:
        frugal(patched, part)
        with opened(tmp_path, spy) as curator, pytest.raises(KeyboardInterrupt):
            curator.synthesize(ROWS, **QUICK, key="k")
    reader = Spy()
    with opened(tmp_path, reader) as curator:
        if pays:
            made = curator.synthesize(ROWS, **QUICK, key="k")
            assert made.event == curator.plan_synthesize(ROWS, **QUICK).event
        else:
            with pytest.raises(QueryFailed):
                curator.synthesize(ROWS, **QUICK, key="k")
        assert reader.reads == int(pays)
        assert sum(entry.kind == "charge" for entry in curator.history("visits")) == 1


def test_a_table_of_a_later_version_is_refused_clearly(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched, opened(tmp_path) as curator:
        curator.synthesize(ROWS, **QUICK)
        patched.setattr("discreet.curator.synthesis.synthetic_table.FORMAT", "discreet synthetic table 0")
        with pytest.raises(InvalidParameter, match="the text of a synthetic table"):
            curator.synthesize(ROWS, **QUICK)
