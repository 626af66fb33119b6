"""One ledger, one set of words and numbers: the command line, HTTP, a remote curator, the report and the page agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.curator import Curator
from discreet.ledger import Ledger
from discreet.ledger.changes import _CHANGES
from discreet.presentation.ledger_report import report_page
from discreet.presentation.ledger_view.entry_view import _WORDS, EntryView, view_entry
from discreet.presentation.ledger_view.ledger_history import ACTIONS
from discreet.presentation.template_environment import cut
from discreet.remote import RemoteCurator
from discreet.report.display import share_spent
from discreet.service.acts import StewardActions
from discreet.service.api.application import create_api
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import ServiceRole
from discreet.service.identity import Identities, RateLimits
from discreet.service.page import create_page
from discreet.service.settings import Settings
from tests.presentation.ledger_view.every_entry import CURRENCIES, every_entry
from tests.remote.served import CuratorDesk, running
from tests.service.page.fakes import Browser, Clinic

Row = tuple[str, ...]


@dataclass
class Faces:
    """One ledger behind every face."""

    ledger: Ledger
    url: str
    key: str
    remote: RemoteCurator
    browser: Browser
    report: str

    def printed(self, *command: str) -> str:
        """What a command prints on a terminal that folds nothing."""
        found = CliRunner(env={"COLUMNS": "1000", "NO_COLOR": "1"}).invoke(app, list(command))
        assert found.exit_code == 0, found.output
        return found.stdout

    def sent(self, path: str) -> Any:
        """A document of the service."""
        return httpx.get(f"{self.url}{path}", headers={"Authorization": f"Bearer {self.key}"}).raise_for_status().json()


class _Tables(HTMLParser):
    """The rows of all tables of a page, by their captions."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self._tag, self._caption, self._row = "", "", list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        if tag in ("caption", "th", "td"):
            self._tag = tag
            self._caption, self._row = ("", self._row) if tag == "caption" else (self._caption, [*self._row, ""])
        if tag == "tr":
            self._row = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "tr":
            self.rows.setdefault(self._caption, []).append([" ".join(cell.split()) for cell in self._row])
        if tag in ("caption", "th", "td"):
            self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag == "caption":
            self._caption += data
        elif self._tag:
            self._row[-1] += data


def tables(text: str, caption: str) -> list[list[str]]:
    """The rows of all tables of a page whose captions begin so, without their headings."""
    return [row for told, rows in _Tables(text).rows.items() if told.startswith(caption) for row in rows[1:]]


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faces]:
    folder = tmp_path_factory.mktemp("ledger")
    with every_entry(folder) as ledger, pytest.MonkeyPatch.context() as patch:
        (folder / "discreet.toml").write_text('ledger = "clinic.ledger"\nanchor = "anchor"\n')
        patch.chdir(folder)
        ledger.stewardship.appoint("stella", "steward")
        identities, curator = Identities(folder / "identities"), Curator(ledger)
        identities.make_person(identities.local, "stella", ServiceRole.STEWARD)
        _, key = identities.make_key(identities.local, "stella")
        limits = RateLimits(identities, requests_per_minute=100_000, questions_per_day=100_000)
        desk, acts, settings = CuratorDesk(curator=curator), StewardActions(ledger, identities), Settings(folder=folder)
        page: Any = create_page(ServiceContext(desk, identities, acts, limits, settings))
        clinic = Clinic(folder, settings, curator, desk, identities, acts, page)  # type: ignore[arg-type]  # of one process
        patch.setattr(report_page, "_figure", lambda *_: None)  # drawing takes seconds, and tests of their own
        report = report_page.ledger_report(ledger).text
        with running(create_api(ServiceContext(desk, identities, acts, limits, settings))) as url:
            yield Faces(ledger, url, key, discreet.connect(url, key=key), clinic.browser("stella"), report)
        identities.close()


# -------------------------------------------------------------------------------------------------------------- entries


def line(view: EntryView) -> Row:
    """What every face says of an entry."""
    return str(view.sequence), view.kind, view.who, view.account, view.cost_text, cut(view.words)


@pytest.fixture
def lines(faces: Faces) -> list[Row]:
    return [line(view_entry(entry)) for entry in faces.ledger.history()]


def test_the_ledger_has_entries_of_every_kind_and_each_has_words(lines: list[Row]) -> None:
    assert set(_WORDS) == set(_CHANGES) == {kind for _, kind, *_ in lines}
    silent = {kind for _, kind, *_, words in lines if not words}
    assert silent == set()


def test_the_command_line_prints_the_entries(faces: Faces, lines: list[Row]) -> None:
    rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in faces.printed("history").splitlines()]
    told = [(place, who, account, cost, what) for place, _, account, who, what, cost in filter(None, rows)]
    wanted = [(place, who, account, cost, f"{kind} {words}") for place, kind, who, account, cost, words in lines]
    assert [(*row[:-1], cut(row[-1])) for row in told] == wanted


def test_command_line_and_http_give_one_document_of_the_history(faces: Faces, lines: list[Row]) -> None:
    told = json.loads(faces.printed("history", "--json"))
    page = faces.sent("/v1/history?limit=50")
    pages: list[Any] = page["entries"]
    while page["next"] is not None:
        page = faces.sent(f"/v1/history?after={page['next']}&limit=50")
        pages += page["entries"]
    assert told == {"entries": pages, "next": None}
    assert not [entry for entry in pages if entry["key"] or "salt" in entry["body"]]
    cost = [
        one["cost"]["text"].removesuffix(" of the budget")
        if one["cost"] is not None
        else share_spent(Fraction(one["share"]))
        if Fraction(one["share"] or 0)
        else ""
        for one in pages
    ]
    found = [
        (str(one["sequence"]), one["who"], one["account"], paid, one["what"])
        for one, paid in zip(pages, cost, strict=True)
    ]
    assert [(*row[:-1], cut(row[-1])) for row in found] == [
        (place, who, account, paid, f"{kind} {words}") for place, kind, who, account, paid, words in lines
    ]


def test_a_remote_curator_reads_the_same_entries(faces: Faces, lines: list[Row]) -> None:
    assert [line(view_entry(entry)) for entry in faces.remote.history()] == lines


def test_the_page_shows_the_same_entries(faces: Faces, lines: list[Row]) -> None:
    found, before = list[Row](), ""
    while len(found) < len(lines):
        rows = tables(faces.browser.get(f"/history?before={before}").text, "Entries of the ledger")
        found += [(place, kind, who, account, cost, words) for place, _, kind, who, account, cost, words in rows]
        before = found[-1][0]
    assert found[::-1] == [(*row[:2], with_project(faces, row), *row[3:]) for row in lines]


def with_project(faces: Faces, row: Row) -> str:
    """The name of who asked, and of the project that they asked for."""
    (entry,) = faces.ledger.history(after=int(row[0]) - 1, limit=1)
    view = view_entry(entry)
    return f"{view.who} for {view.project}" if view.project and view.kind == "charge" else view.who


def test_the_report_shows_the_same_actions_and_charges(faces: Faces, lines: list[Row]) -> None:
    actions = tables(faces.report, "The newest")
    acted = {(row[0], *row[2:]) for row in actions if row[2] in ACTIONS}
    assert acted == {row for row in lines if row[1] in ACTIONS}
    charged = {(place, who, account, cost, words) for place, _, account, who, words, cost, _ in map(tuple, actions)}
    free = {str(view.sequence) for view in map(view_entry, faces.ledger.history()) if view.paid_by}
    wanted = [row for row in lines if row[1] == "charge" and row[0] not in free]
    assert charged >= {(row[0], with_project(faces, row), row[3], row[4], row[5]) for row in wanted}


# ------------------------------------------------------------------------------------------------------------- balances


def test_command_line_http_and_remote_give_one_document_of_balances(faces: Faces) -> None:
    told = json.loads(faces.printed("budget", "--json"))["budgets"]
    sent = faces.sent("/v1/budget")["budgets"]
    assert sorted(one["account"] for one in told) == sorted(faces.ledger.accounts())
    by_name = {one["account"]: {**one, "own": None} for one in sent}  # what is the caller's own differs with the caller
    assert {one["account"]: one for one in told} == by_name
    for account in faces.ledger.accounts():
        assert faces.remote.budget(account) == faces.ledger.standing(account)


@pytest.mark.parametrize("account", CURRENCIES)
def test_every_face_shows_the_same_figures_of_everybody(faces: Faces, account: str) -> None:
    standing = faces.ledger.standing(account)
    assert standing.lines  # name, role, cap, spent, remaining
    printed = [tuple(row.split()) for row in faces.printed("budget", "--account", account).splitlines()]
    assert {tuple(" ".join(cells).split()) for cells in standing.lines} <= set(printed)
    own = faces.browser.get(f"/accounts/{account}").text
    page = [row for told in ("People", "Projects", "Teams") for row in tables(own, f"{told} on this account")]
    assert [tuple(row[:5]) for row in page] == standing.lines
    shown = tables(faces.browser.get(f"/accounts/{account}/report").text, "Analysts, projects and teams")
    report = faces.report.partition(f'id="account-{account}"')[2].partition("</section>")[0]
    reported = tables(report, "Analysts, projects and teams")
    assert sorted(shown) == sorted(page) == sorted(reported)  # with queries, outcomes and forecasts
    for label, text in standing.facts.items():
        fact = f"<dt>{label.capitalize()}</dt><dd>{text}</dd>"
        assert fact in own
        assert fact in report


@pytest.mark.parametrize("account", CURRENCIES)
def test_counts_of_queries_are_those_of_the_entries(faces: Faces, account: str) -> None:
    views = [view_entry(entry) for entry in faces.ledger.history(account)]
    charges = {view.sequence: view for view in views if view.kind == "charge" and not view.paid_by}
    page = faces.browser.get(f"/accounts/{account}").text
    for name, role, *_, asked, answered, failed, _ in tables(page, "People on") + tables(page, "Projects on"):
        own = {place for place, view in charges.items() if name == (view.project if role == "project" else view.who)}
        ended = [sum(view.kind == kind and view.about in own for view in views) for kind in ("answer", "fail")]
        assert [int(asked), int(answered), int(failed)] == [len(own), *ended]


def test_a_face_with_words_of_its_own_is_noticed(
    faces: Faces, lines: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_WORDS, "amend", lambda _: "other words")
    with pytest.raises(AssertionError):
        test_the_command_line_prints_the_entries(faces, lines)
