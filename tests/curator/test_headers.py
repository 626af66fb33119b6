"""Stored releases are judged by their headers: what does not serve is not opened, and what is found is the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.curator.asking import performer
from discreet.curator.measurement_plan import QueryBudget
from discreet.curator.replay import derivation, replay
from discreet.curator.replay.stored_releases import LISTS, WORDS, header_of, open_body, pack, rebuild_program
from discreet.engines import Memory
from discreet.ledger.serialization import read_header
from discreet.measurement.program.program import ReleaseFormat
from discreet.noise import SeededBits
from discreet.privacy import Budget
from tests.curator.editions import packed
from tests.curator.test_free import BY_BOTH, FOLLOWING, NOT_FOLLOWING, ROWS, TYPES, WARDS, clinic, one

Opened = list[int]
COUNT = "SELECT COUNT(*) AS n FROM visits"


@contextmanager
def openings() -> Iterator[Opened]:
    """The number of groups in each body that is opened to find an answer."""
    opened: Opened = []

    def counted(payload: bytes, program: Any) -> Any:
        found = open_body(payload, program)
        opened.append(len(found.keys))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "open_body", counted)
        yield opened


def test_what_cannot_serve_stays_closed() -> None:
    """A question is paid for, and the only body that is opened is its own, from the stored bytes."""
    curator = clinic()
    one(curator, BY_BOTH, 1)
    one(curator, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", 1)
    one(curator, "SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, sex)", 1)
    of_one_ward = "SELECT ward, COUNT(*) AS n FROM visits WHERE ward = 'B' GROUP BY ward"
    for sql, epsilon in ((COUNT, 1), (f"{COUNT} WHERE age > 40", "0.01"), (of_one_ward, 2), (COUNT, 2)):
        with openings() as opened:
            assert not one(curator, sql, epsilon).replayed
        assert len(opened) == 1, sql


def test_what_serves_is_opened_alone() -> None:
    curator = clinic()
    for epsilon in ("0.1", 1, 10):
        one(curator, "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", epsilon)
    with openings() as opened:
        assert one(curator, COUNT, 4).replayed
    assert opened == [2]
    with openings() as opened:
        assert one(curator, "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", 10).replayed
    assert opened == [2]


def test_more_groups_than_are_added_up_stay_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "MOST_PARTS", 5)
    curator = clinic()
    one(curator, BY_BOTH, 10)
    with openings() as opened:
        assert not one(curator, COUNT, "0.001").replayed
    assert opened == [1]


def asked(judged: bool) -> list[tuple[str, bool, object]]:
    """Whether questions are free, and what they are answered, after several releases of different precision."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        if not judged:
            patch.setattr(replay, "may_serve", lambda *_, **__: True)
        curator = clinic(delta="1e-6")
        for sql, epsilon in ((BY_BOTH, "0.5"), (BY_BOTH, 2), (FOLLOWING[1], 8), (FOLLOWING[2], 1), (FOLLOWING[4], 3)):
            one(curator, sql, epsilon)
        for sql in (*FOLLOWING, *NOT_FOLLOWING[:4]):
            for epsilon in ("0.05", "0.9"):
                answer = one(curator, sql, epsilon)
                found.append((sql, answer.replayed, answer.records if answer.replayed else None))
    return found


@pytest.mark.ci
def test_headers_find_what_all_bodies_would() -> None:
    judged = asked(judged=True)
    assert judged == asked(judged=False)
    free = [replayed for _, replayed, _ in judged]
    assert 5 < sum(free) < len(free) - 5


def clinic_at(path: Path) -> Curator:
    made = Curator.for_tests(path / "book", engine=Memory(), bits=SeededBits(3))
    declared: dict[str, Any] = {"keys": {"ward": WARDS, "sex": ("m", "f")}, "bounds": {"age": (0, 90)}, "types": TYPES}
    made.protect(ROWS, name="visits", budget=Budget(epsilon=100), **declared)
    return made


def test_releases_without_headers_are_found_and_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(performer, "pack", packed(ReleaseFormat.NOW))
        with clinic_at(tmp_path) as old:
            first = one(old, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", 5)
            one(old, f"{COUNT} WHERE age > 40", 1)
    looks: list[int] = []

    def counted(payload: bytes) -> Mapping[str, Any]:
        looks.append(len(payload))
        return header_of(payload)

    monkeypatch.setattr(replay, "header_of", counted)
    with clinic_at(tmp_path) as now:
        again = one(now, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", 5)
        assert (again.replayed, again.records) == (True, first.records)
        for epsilon in ("0.5", "0.4"):
            assert one(now, COUNT, epsilon).replayed
        for age in range(50, 55):
            assert not one(now, f"{COUNT} WHERE age > {age}", "0.1").replayed
        assert len(looks) == 1
        assert now._ledger.verify() == now._ledger.head()


def test_a_body_of_a_later_edition_is_not_guessed_at(tmp_path: Path) -> None:
    later = lambda *given, **more: pack(*given, **more).replace(f'"body": {LISTS}', f'"body": {WORDS + 1}', 1)  # noqa: E731
    with clinic_at(tmp_path) as curator:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(performer, "pack", later)
            patch.setattr("discreet.curator.replay.stored_releases.BODIES", (WORDS + 1,))
            one(curator, COUNT, 5)
        assert not one(curator, COUNT, 5).replayed
        assert one(curator, COUNT, 5).replayed


def test_a_header_says_what_it_was_judged_by() -> None:
    curator = clinic()
    one(curator, BY_BOTH, 1)
    (stored,) = curator._ledger.read_answers(curator.entries()[-1].content["replay_key"])
    fields = read_header(stored.payload)
    assert {"columns", "noisy"}.isdisjoint(fields)
    assert (fields["groups"], fields["body"], len(fields["variances"]), fields["private"]) == (6, LISTS, 3, False)
    length, _ = curator.entries()[-1].content["header"]
    assert stored.payload[length : length + 1] == b"\n"


def test_mutant_seeded_releases_are_served_as_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that says that its noise was seeded is never judged further."""

    def check(path: Path) -> None:
        path.mkdir()
        with clinic_at(path) as seeded:
            one(seeded, COUNT, 5)
            private = replay.Replay(seeded._ledger, private=True)
            measurement = seeded._planner.plan(seeded._catalog.read(COUNT), limits=None, other=None)
            terms = QueryBudget.of(5, None, Budget(epsilon=100))
            assert seeded._replay.find(measurement, terms) is not None
            assert private.find(measurement, terms) is None

    check(tmp_path / "right")
    monkeypatch.setattr(
        replay,
        "rebuild_program",
        lambda fields, rebuild, **_: rebuild_program(fields, rebuild, private=fields["private"]),
    )
    with pytest.raises(AssertionError):
        check(tmp_path / "wrong")
