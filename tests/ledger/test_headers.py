"""Headers of stored answers: they are read alone, checked against the chain, and remembered by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import LedgerTampered
from discreet.ledger import Ledger, outcomes
from discreet.ledger.serialization import read_body, read_header, with_body
from discreet.ledger.store.ledger_store import StoredAnswer, StoredHeader
from discreet.ledger.store.sqlite import SqliteTransaction
from discreet.privacy import events
from tests.ledger.ledgers import opened, tamper

HEADER = {"version": 1, "epsilon": "1/10"}
TWO_LINES = with_body(HEADER, {"noisy": [[n] for n in range(50_000)]})
CHEAP = events.Pure(0.01)
ONE_LINE = '{"version": 1, "noisy": [[7]]}'


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered that another test has read."""
    monkeypatch.setattr(outcomes, "_HEADERS", {})
    monkeypatch.setattr(outcomes, "_PLACES", {})


def answered(ledger: Ledger, *payloads: str) -> Ledger:
    for place, payload in enumerate(payloads):
        receipt = ledger.charge("patients", CHEAP, question=f'{{"number":{place}}}')
        ledger.store_answer(receipt, f"area:{place}", payload)
    return ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    answered(opened(tmp_path / "book"), TWO_LINES, ONE_LINE).close()
    outcomes._HEADERS.clear()  # as if another process had written them
    return tmp_path / "book"


def check_headers(ledger: Ledger) -> None:
    one, two = ledger.read_headers("area:")
    assert (one.header, one.question, one.event) == (b"", '{"number":1}', "")
    assert (read_header(two.header + b"\n"), two.question) == (HEADER, '{"number":0}')
    assert [ledger.read_answer(kept.place).payload.decode() for kept in (one, two)] == [ONE_LINE, TWO_LINES]
    assert [kept.place.replay_key for kept in ledger.read_headers("area:", most=1)] == ["area:1"]
    assert ledger.read_headers("other:") == ()


def test_the_newest_come_first_each_with_its_question(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        check_headers(ledger)
        assert ledger.verify() == ledger.head()


def test_on_a_server(place: str) -> None:
    with answered(opened(place), TWO_LINES, ONE_LINE) as ledger:
        check_headers(ledger)


def test_two_lines_are_one_document() -> None:
    """So that a version that knows no headers reads them as it always did."""
    assert read_header(TWO_LINES) | read_body(TWO_LINES) == HEADER | {"noisy": [[n] for n in range(50_000)]}
    assert read_header(TWO_LINES) == HEADER
    assert read_body(ONE_LINE) == read_header(ONE_LINE) == {"version": 1, "noisy": [[7]]}


def counting(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """The arguments with which a method of transactions is called: those by place, and those by name."""
    calls: list[Any] = []
    method: Callable[..., object] = getattr(SqliteTransaction, name)

    def counted(rows: SqliteTransaction, *given: object, **named: object) -> object:
        calls.append((given, named))
        return method(rows, *given, **named)

    monkeypatch.setattr(SqliteTransaction, name, counted)
    return calls


def test_a_header_is_read_without_its_body_and_once_in_a_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, starts = counting(monkeypatch, "answer_at"), counting(monkeypatch, "answer_start")
    entries = counting(monkeypatch, "entry")
    with Ledger(str(path)) as ledger:
        first = ledger.read_headers("area:")
        assert (whole, len(starts), len(entries)) == ([], 1, 4)  # each answer's entry and charge
    with Ledger(str(path)) as ledger:
        assert [known is kept for known, kept in zip(ledger.read_headers("area:"), first, strict=True)] == [True, True]
    assert (whole, len(starts), len(entries)) == ([], 1, 4)


def test_a_header_is_not_read_by_whoever_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = counting(monkeypatch, "answer_start")
    with answered(opened(tmp_path / "book"), TWO_LINES) as ledger:
        (written,) = ledger.read_headers("area:")
        assert starts == []
        outcomes._HEADERS.clear()
        assert ledger.read_headers("area:") == (written,)
        assert len(starts) == 1


MANY = outcomes._MANY + 1


def test_of_many_answers_only_later_ones_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counting(monkeypatch, "answer_places")
    with answered(opened(tmp_path / "book"), *[TWO_LINES] * MANY) as ledger:
        first = ledger.read_headers("area:", most=MANY)
        answered(ledger, ONE_LINE)
        second = ledger.read_headers("area:", most=MANY)
        outcomes._PLACES.clear()
        assert ledger.read_headers("area:", most=MANY) == second
    assert (len(first), second[1:], len(second)) == (MANY, first[:-1], MANY)
    assert [named.get("after", 0) > 0 for _, named in asked] == [False, True, False]


def test_places_of_another_ledger_are_not_taken_for_its_own(tmp_path: Path) -> None:
    """Nor those of the same ledger at a time that it has forgotten since."""
    with answered(opened(tmp_path / "one"), *[TWO_LINES] * MANY) as one:
        assert len(one.read_headers("area:")) == MANY
    with answered(opened(tmp_path / "other"), ONE_LINE) as other:
        assert len(other.read_headers("area:")) == 1


def test_a_bounded_number_is_remembered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "_MOST_HEADERS", 1)
    with Ledger(str(path)) as ledger:
        assert len(ledger.read_headers("area:")) == 2
    assert len(outcomes._HEADERS) == 1


CHANGES = {
    "its header": "UPDATE answers SET payload = x'7b7d' || substr(payload, 3) WHERE sequence = 3",
    "its place": "UPDATE answers SET replay_key = 'area:9' WHERE sequence = 3",
    "its charge": "UPDATE answers SET charge = 99 WHERE sequence = 3",
    "its entry": "DELETE FROM entries WHERE sequence = 3",
    "its bytes": "UPDATE answers SET payload = 'text' WHERE sequence = 3",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES)
def test_a_changed_header_is_never_judged_by(path: Path, statement: str) -> None:
    tamper(path, statement)
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered):
        ledger.read_headers("area:")


def check_body_is_checked(path: Path) -> None:
    """What is remembered of an answer does not make up for the answer itself."""
    with Ledger(str(path)) as ledger:
        *_, kept = ledger.read_headers("area:")
    changed = TWO_LINES.replace("[[0], [1]", "[[9], [1]").encode().hex()
    tamper(path, f"UPDATE answers SET payload = x'{changed}' WHERE sequence = 3")
    with Ledger(str(path)) as ledger:
        assert ledger.read_headers("area:")[-1] is kept
        with pytest.raises(LedgerTampered):
            ledger.read_answer(kept.place)
        with pytest.raises(LedgerTampered):
            ledger.verify()


def test_a_changed_body_is_never_opened(path: Path) -> None:
    check_body_is_checked(path)


def test_mutant_answers_are_opened_unchecked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "_check_answer", lambda _rows, answer: answer)
    with pytest.raises(pytest.fail.Exception):
        check_body_is_checked(path)


def test_mutant_headers_are_remembered_by_their_place_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that took the place of another would be judged by headers that it does not have."""

    class ByPlace(dict[object, StoredHeader]):
        def get(self, key: object, default: object = None) -> object:  # type: ignore[override]
            return next((kept for kept in self.values() if kept.place[:3] == tuple(key)[:3]), default)  # type: ignore[arg-type]

    def check(folder: Path) -> None:
        folder.mkdir()
        with Ledger(str(path)) as ledger:
            ledger.read_headers("area:")
        with answered(opened(folder / "book"), with_body({"version": 2}, {}), ONE_LINE) as ledger:
            assert read_header(ledger.read_headers("area:")[-1].header + b"\n") == {"version": 2}

    check(path.parent / "right")
    monkeypatch.setattr(outcomes, "_HEADERS", ByPlace())
    with pytest.raises(AssertionError):
        check(path.parent / "wrong")


def test_what_is_shown_of_a_header_holds_nothing_that_was_released(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        *_, kept = ledger.read_headers("area:")
    assert repr(kept) == f"StoredHeader(sequence=3, {len(kept.header)} bytes)"
    assert "noisy" not in repr(StoredAnswer(1, 1, "k", TWO_LINES.encode()))
