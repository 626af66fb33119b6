"""Streams of a curator: charged once, released period by period, and nobody counts more often than was charged."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet import accounting
from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose
from discreet.curator import Curator
from discreet.curator.streams.curated_stream import CuratedStream
from discreet.curator.streams.stream_plan import PeriodCalendar
from discreet.engines import DuckDB, Memory
from discreet.errors import (
    AccountLocked,
    InsufficientBudget,
    InvalidParameter,
    KeyConflict,
    NotPermitted,
    QueryFailed,
    StreamError,
    UnsupportedQuery,
)
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Budget
from discreet.privacy.events import from_json
from discreet.stream.gaussian_factor import GaussianFactor
from tests.cases import every
from tests.effort import some

Row = dict[str, Any]
DAILY = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
BY_WARD = "SELECT ward, day, SUM(cost) AS total FROM visits GROUP BY ward, day"
TYPES = {"person": "int", "day": "date", "ward": "text", "cost": "int"}
START = dt.date(2026, 1, 1)


def row(person: int | None, day: int, ward: str = "A", cost: int = 1) -> Row:
    return {"person": person, "day": START + dt.timedelta(days=day), "ward": ward, "cost": cost}


ROWS = [
    row(p, d, "AB"[p % 2], p + d) for p in range(6) for d in range(4) for _ in range(1 + (p + d) % 2) if (p + d) % 3
]


def curator_of(
    rows: list[Row], ledger: Path | str = ":memory:", *, budget: Any = None, unit: Any = "person", **declared: Any
) -> Curator:
    made = Curator(ledger, engine=Memory())
    protect(made, rows, budget=budget or Budget(rho=10**9), unit=unit, **declared)
    return made


def protect(curator: Curator, rows: list[Row], **declared: Any) -> None:
    usual: dict[str, Any] = {"types": TYPES, "bounds": {"cost": (0, 20)}, "keys": {"ward": ["A", "B"]}, "max_rows": 2}
    curator.protect(rows or [row(None, 0)], name="visits", **(usual | declared))


def started(curator: Curator, question: str = DAILY, **how: Any) -> CuratedStream:
    usual: dict[str, Any] = {"every": "day", "horizon": 4, "start": START}
    if "epsilon" not in how and "rho" not in how:
        how["rho"] = 10**8
    return curator.stream(question, **(usual | how))


def numbers(answer: Any, name: str = "n") -> list[int]:
    return [round(record[name]) for record in answer]


def test_a_stream_is_charged_once_and_before_anything_is_read() -> None:
    class Closed(Memory):
        reads = 0

        def read(self, reading: Reading) -> ExactGroups:
            Closed.reads += 1
            return super().read(reading)

    curator = Curator(engine=Closed())
    protect(curator, ROWS, budget=Budget(rho=1), unit="person", max_groups=4)
    stream = started(curator, rho="0.5")
    assert curator.budget("visits").remaining.loss == Budget(rho="0.5")
    assert Closed.reads == 0
    for t in range(4):
        answer = stream.release()
        assert answer.columns == ("day", "n", "n_low", "n_high")
        assert answer.records[0]["day"] == START + dt.timedelta(days=t)
        assert answer.event == stream.event
        assert answer.cost.is_zero
    assert Closed.reads == 4
    assert curator.budget("visits").remaining.loss == Budget(rho="0.5")
    assert any("lifetime" in note for note in answer.notes)
    with pytest.raises(StreamError, match="All 4 periods"):
        stream.release()
    with pytest.raises(InsufficientBudget):
        started(curator, rho="0.6")
    assert Closed.reads == 4


def test_totals_are_those_of_limited_rows() -> None:
    """At most two rows per person and day; with all periods paid for, everybody counts on every day."""
    stream = started(curator_of(ROWS), periods=4)
    by_day = [sum(1 for r in ROWS if r["day"] == START + dt.timedelta(days=t)) for t in range(4)]
    assert [numbers(stream.release())[0] for _ in range(4)] == [sum(by_day[: t + 1]) for t in range(4)]
    weekly = started(curator_of(ROWS), every="week", horizon=1, periods=1)
    assert numbers(weekly.release()) == [min(2, 99) * 6]  # two rows per person in the one week


def test_nobody_counts_in_more_periods_than_declared() -> None:
    """With one period for each person, they count on the first day on which they come."""
    first: dict[int, dt.date] = {}
    for r in sorted(ROWS, key=lambda r: r["day"]):
        first.setdefault(r["person"], r["day"])
    expected = [
        sum(1 for r in ROWS if r["day"] == first[r["person"]] <= START + dt.timedelta(days=t)) for t in range(4)
    ]
    stream = started(curator_of(ROWS, max_groups=1))
    assert [numbers(stream.release())[0] for _ in range(4)] == expected


def test_groups_and_windows() -> None:
    stream = started(curator_of(ROWS, max_groups=2), BY_WARD, window=2, periods=4)
    for t in range(4):
        days = {START + dt.timedelta(days=d) for d in range(max(0, t - 1), t + 1)}
        expected = [sum(r["cost"] for r in ROWS if r["day"] in days and r["ward"] == ward) for ward in "AB"]
        answer = stream.release()
        assert numbers(answer, "total") == expected
        assert [record["ward"] for record in answer] == ["A", "B"]


def measured(stream: CuratedStream, one: list[list[int]], other: list[list[int]]) -> float:
    """How far two streams of values are apart where they meet noise, as a share of the sensitivity that was charged."""
    mechanism = stream._sums._mechanism
    assert isinstance(mechanism, GaussianFactor)
    squared = 0.0
    for a, b in zip(np.transpose(one).tolist(), np.transpose(other).tolist(), strict=True):
        left, right = mechanism.factor.encoder(), mechanism.factor.encoder()
        shifts = [(left.step(x) - right.step(y)) / 2.0**mechanism.factor.bits for x, y in zip(a, b, strict=True)]
        squared += float(np.sum(np.square(shifts)))
    return math.sqrt(squared) / float(mechanism.mechanism.sensitivity) * (1 - 1e-12)


def inputs(
    rows: list[Row], folder: Path, question: str, declared: dict[str, Any], how: dict[str, Any]
) -> list[list[int]]:
    """What meets noise in every period, as the private state has it."""
    folder.mkdir(parents=True)
    with curator_of(rows, folder / "book", **declared) as curator:
        stream = started(curator, question, **how)
        for _ in range(4):
            stream.release()
    (state,) = (folder / "book.streams").glob("*.state")
    return [json.loads(line)["values"] for line in state.read_text().splitlines()[1:]]


CASES = [
    (DAILY, {"max_groups": 1}, {}),
    (DAILY, {"max_groups": 2}, {}),
    (DAILY, {"max_groups": 2, "neighbours": "replace"}, {}),
    (DAILY, {"max_groups": 2, "neighbours": "replace"}, {"window": 2}),
    (BY_WARD, {"max_groups": 2}, {"periods": 1}),
    (BY_WARD, {"max_groups": 1}, {"periods": 3, "limits": Limits(2, 1)}),
]


@every(("question", "declared", "how"), some(CASES, 4))
def test_one_person_moves_no_more_periods_and_no_farther_than_charged(
    question: str, declared: dict[str, Any], how: dict[str, Any], tmp_path: Path
) -> None:
    """With and without each person, in both relations: moved periods, and moves within one of them."""
    folder = tmp_path / str(CASES.index((question, declared, how)))
    stream = started(curator_of(ROWS, **declared), question, **how)
    plan = stream._plan
    bound, most = float(plan.sensitivity("gaussian")), plan.periods
    replaced = declared.get("neighbours") == "replace"
    whole = inputs(ROWS, folder / "all", question, declared, how)
    for person in (0, 1, 5):
        others = [r for r in ROWS if r["person"] != person]
        if replaced:
            others += [row(person, d, "B", 19) for d in (3, 1, 0) for _ in range(3)]
        fewer = inputs(others, folder / str(person), question, declared, how)
        moves = [
            sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) ** 0.5
            for one, two in zip(whole, fewer, strict=True)
        ]
        assert sum(1 for move in moves if move) <= most * (2 if replaced else 1)
        assert max(moves) <= bound
        assert measured(stream, whole, fewer) <= 1


def test_spellings_of_one_id_are_one_person(tmp_path: Path) -> None:
    """Ids count without white space at their ends: in all periods together, and within one of them."""
    spelled = ("p", " p", "p ", "p\u3000")
    rows: list[Row] = [row(None, t) | {"person": name} for t, name in enumerate(spelled)]
    rows += [row(None, 3, ward) | {"person": name} for name in spelled for ward in "AB"] + [
        row(None, 0) | {"person": " "}
    ]
    declared: dict[str, Any] = {"types": TYPES | {"person": "text"}}
    for groups, periods in ((1, 1), (2, 1), (2, 3), (9, 4)):
        found = inputs(
            rows,
            tmp_path / f"{groups}-{periods}",
            "SELECT ward, day, COUNT(*) AS n FROM visits GROUP BY ward, day",
            declared | {"max_groups": groups, "max_rows": 1},
            {"periods": periods},
        )
        assert sum(1 for values in found if any(values)) <= periods
        assert max(max(values) for values in found) == 1


@pytest.mark.ci
def test_engines_agree_on_every_kind_of_period() -> None:
    """Days, moments and whole numbers tell periods; rows on their edges, of nobody and of other wards included."""
    edges = [dt.datetime(2026, 1, 1 + day, hour, 59 * (hour > 0)) for day in range(4) for hour in (0, 23)]
    rows = [
        {"person": name, "day": at.date(), "at": at, "turn": place, "ward": "ABC"[(place + own) % 3]}
        for place, at in enumerate(edges)
        for own, name in enumerate(["p", "s", "q ", "r", None, ""])
    ]
    types = {"person": "text", "day": "date", "at": "timestamp", "turn": "int", "ward": "text"}
    columns = {name: [r[name] for r in rows] for name in types}
    found = []
    for engine, source in ((Memory(), rows), (DuckDB(), pa.table(columns))):
        curator = Curator(engine=engine)
        declared: dict[str, Any] = {"types": types, "keys": {"ward": ["A", "B"]}, "max_groups": 9, "max_rows": 2}
        curator.protect(source, name="visits", unit="person", budget=Budget(rho=10**9), **declared)
        for key, how in (("day", {}), ("at", {}), ("turn", {"every": 2, "start": 0})):
            question = f"SELECT {key}, ward, COUNT(*) AS n FROM visits GROUP BY {key}, ward"
            stream = started(curator, question, periods=2, **how)
            found.append([numbers(stream.release()) for _ in range(4)])
    assert found[:3] == found[3:]
    assert found[0] == found[1]
    assert found[0][-1] != [0, 0]


def test_totals_beyond_all_integers_are_clipped() -> None:
    curator = curator_of([row(p, 0, cost=1 << 51) for p in range(9)], bounds={"cost": (0, 1 << 51)})
    answer = started(curator, "SELECT day, SUM(cost) AS n FROM visits GROUP BY day", rho="0.5").release()
    assert answer.records[0]["n_low"] <= 1 << 52


def test_ids_that_tell_the_period_need_no_memory(tmp_path: Path) -> None:
    """A unit of a person and a day is in one period by construction: everybody counts on every day."""
    by_day = [sum(1 for r in ROWS if r["day"] == START + dt.timedelta(days=t)) for t in range(4)]
    for unit, note in ((("person", "day"), "in one period"), (None, "one row")):
        stream = started(curator_of(ROWS, tmp_path / f"{unit}", unit=unit, **({} if unit else {"max_rows": 1})))
        answers = [stream.release() for _ in range(4)]
        assert [numbers(a)[0] for a in answers] == [sum(by_day[: t + 1]) for t in range(4)]
        assert any(note in told for told in answers[0].notes)
        assert stream._plan.periods == 1


def test_a_restart_goes_on_and_charges_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "book"
    declared: dict[str, Any] = {"budget": Budget(rho=1), "max_groups": 1}
    with curator_of(ROWS, ledger, **declared) as curator:
        first = started(curator, rho="0.5", name="daily").release()
        assert curator.stream(name="daily") is started(curator, rho="0.5", name="daily")
    shown = [first.records[0]]
    for t in range(1, 4):
        with curator_of(ROWS, ledger, **declared) as again:
            stream = again.stream(name="daily") if t % 2 else started(again, rho="0.5", name="daily")
            assert stream.released == t
            assert list(stream.answers()) == shown
            assert stream.release(period=START).records[0] == first.records[0]
            shown.append(stream.release().records[0])
            assert again.budget("visits").remaining.loss == Budget(rho="0.5")
            with pytest.raises(StreamError, match="has the stream"):
                curator_of(ROWS, ledger, **declared).stream(name="daily")
            with pytest.raises(KeyConflict):
                started(again, rho="0.4", name="daily")
    with curator_of(ROWS, ledger, **declared) as last:
        assert last.verify()


def test_streams_of_two_analysts_are_two(tmp_path: Path) -> None:
    with curator_of(ROWS, tmp_path / "book", budget=Budget(rho=1)) as curator:
        for who in ("ana", "bob"):
            curator.appoint(who, "analyst", account="visits")
        ana, bob = (started(curator, rho="0.125", name="daily", analyst=who) for who in ("ana", "bob"))
        assert ana is not bob
        assert ana is curator.stream(name="daily", analyst="ana")
        assert curator.budget("visits").remaining.loss == Budget(rho="0.75")
        ana.release()
        assert (ana.released, bob.released) == (1, 0)
        with pytest.raises(NotPermitted):
            started(curator, rho="0.1", name="daily", analyst="eve")
        with pytest.raises(StreamError, match="no state"):
            curator.stream(name="daily")


def states(ledger: Path) -> Path:
    (found,) = Path(f"{ledger}.streams").glob("*.state")
    return found


def test_old_and_lost_states_are_refused(tmp_path: Path) -> None:
    ledger, old = tmp_path / "book", tmp_path / "old"
    with curator_of(ROWS, ledger) as curator:
        stream = started(curator, name="daily")
        stream.release()
        shutil.copy(states(ledger), old)
        stream.release()
        stream.release()
    newest = states(ledger).read_bytes()
    for content, match in ((old.read_bytes(), "old copy"), (b"", "empty")):
        states(ledger).write_bytes(content)
        with curator_of(ROWS, ledger) as again, pytest.raises(StreamError, match=match):
            started(again, name="daily")
    states(ledger).write_bytes(newest)
    with curator_of(ROWS, ledger) as again:
        assert started(again, name="daily").released == 3


@pytest.mark.parametrize(
    ("off", "goes_on"),
    [(1 + Fraction(1, 1 << 50), True), (1 - Fraction(1, 1 << 50), True), (1 + Fraction(1, 1 << 20), False)],
)
def test_a_stream_goes_on_where_doubles_round_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: Fraction, goes_on: bool
) -> None:
    """It draws the noise that was charged; noise of another size than rounding explains is refused."""
    ledger, terms = tmp_path / "book", dict[str, Any](epsilon=2, delta="1e-5", name="daily")
    budget = Budget(epsilon=3, delta="1e-4")
    with curator_of(ROWS, ledger, budget=budget) as curator:
        first = started(curator, **terms)
        charged, told = first.event, first.release().records
    found = accounting.gaussian_sigma
    monkeypatch.setattr(accounting, "gaussian_sigma", lambda *given, **named: found(*given, **named) * off)
    with curator_of(ROWS, ledger, budget=budget) as again:
        if not goes_on:
            with pytest.raises(StreamError, match="other noise"):
                started(again, **terms)
            return
        stream = started(again, **terms)
        assert (stream.released, stream.event, stream._sums.event) == (1, charged, charged)
        assert stream.release(period=START).records == told
        assert not stream.release().replayed


class Crash(BaseException):
    """The process dies."""


@every("step", ["state", "ledger before", "ledger after"])
def test_a_crash_shows_nothing_and_loses_nothing(step: str, tmp_path: Path) -> None:
    """Between the state and the ledger, and after both: the period is then released with the noise it had."""
    ledger = tmp_path / step.replace(" ", "-")
    with pytest.MonkeyPatch.context() as patch:
        curator = curator_of(ROWS, ledger, max_groups=1)
        stream = started(curator, name="daily")
        stream.release()
        keep: Callable[..., Any] = type(curator._ledger).store_beside

        def crash(*arguments: Any, **named: Any) -> Any:
            if step == "ledger after":
                keep(*arguments, **named)
            raise Crash

        if step == "state":
            patch.setattr("discreet.stream.state_file.StateFile._write", crash)
        else:
            patch.setattr(type(curator._ledger), "store_beside", crash)
        with pytest.raises(Crash):
            stream.release()
    curator.close()
    noisy = [json.loads(line)["noisy"] for line in states(ledger).read_text().splitlines()[1:]]
    with curator_of(ROWS, ledger, max_groups=1) as again:
        resumed = started(again, name="daily")
        resumed.close()
        resumed = started(again, name="daily")  # closed, it is opened anew
        assert resumed.released == len(noisy) == (1 if step == "state" else 2)
        resumed.release()
        assert resumed._witness.read_releases()[: len(noisy)] == noisy


def test_a_failure_of_the_engine_ends_no_stream() -> None:
    class Weak(Memory):
        weak = False

        def read(self, reading: Reading) -> ExactGroups:
            if Weak.weak:
                raise QueryFailed
            return super().read(reading)

    curator = Curator(engine=Weak())
    protect(curator, ROWS, budget=Budget(rho=10**9), unit="person")
    stream = started(curator)
    stream.release()
    Weak.weak = True
    with pytest.raises(QueryFailed):
        stream.release()
    assert curator.history("visits")[-1].kind == "fail"
    Weak.weak = False
    assert stream.release().records[0]["day"] == START + dt.timedelta(days=1)
    Weak.weak = True
    kinds = []
    for _ in range(20):
        with pytest.raises((QueryFailed, AccountLocked)) as caught:
            stream.release()
        kinds.append(caught.type)
    assert kinds[0] is QueryFailed
    assert kinds[-1] is AccountLocked
    curator.unlock("visits")
    Weak.weak = False
    stream.release()


def test_new_data_come_by_protecting_the_table_again() -> None:
    """A period's own rows, or all so far: both give the same totals, and who was counted is remembered."""
    curator = curator_of([], max_groups=1)
    stream = started(curator)
    found = []
    for t in range(4):
        protect(curator, [r for r in ROWS if r["day"] == START + dt.timedelta(days=t)], unit="person", version=str(t))
        found += numbers(stream.release())
    whole = started(curator_of(ROWS, max_groups=1))
    assert found == [numbers(whole.release())[0] for _ in range(4)]


REFUSED: list[tuple[str, dict[str, Any], type[Exception]]] = [
    ("SELECT COUNT(*) AS n FROM visits", {}, UnsupportedQuery),
    ("SELECT day, AVG(cost) AS n FROM visits GROUP BY day", {}, UnsupportedQuery),
    ("SELECT day, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY day", {}, UnsupportedQuery),
    ("SELECT day, COUNT(*) + 1 AS n FROM visits GROUP BY day", {}, UnsupportedQuery),
    ("SELECT day, COUNT(*) AS n FROM visits GROUP BY day ORDER BY n", {}, UnsupportedQuery),
    ("SELECT day, TRIM(ward) AS w, COUNT(*) AS n FROM visits GROUP BY day, w", {"keys": None}, UnsupportedQuery),
    (DAILY, {"every": "hour"}, InvalidParameter),
    (DAILY, {"every": 1}, UnsupportedQuery),
    (DAILY, {"every": "month", "start": START + dt.timedelta(days=1)}, InvalidParameter),
    (DAILY, {"start": "soon"}, InvalidParameter),
    (DAILY, {"start": dt.datetime(2026, 1, 1, 5)}, InvalidParameter),
    (DAILY, {"horizon": 0}, InvalidParameter),
    (DAILY, {"horizon": 10**7}, InvalidParameter),
    (DAILY, {"window": 9}, InvalidParameter),
    (DAILY, {"periods": 0}, InvalidParameter),
    (DAILY, {"rho": 0}, InvalidParameter),
    (DAILY, {"epsilon": 1, "rho": 1}, InvalidParameter),
    (DAILY, {"name": ""}, InvalidParameter),
]


@every(("question", "how", "error"), REFUSED)
def test_what_is_no_stream_is_refused_before_it_is_charged(question: str, how: dict[str, Any], error: Any) -> None:
    curator = curator_of(ROWS, **({"keys": how["keys"]} if "keys" in how else {}))
    with pytest.raises(error) as caught:
        started(curator, question, **{name: value for name, value in how.items() if name != "keys"})
    assert curator.budget("visits").spent == Budget(rho=1) * 0
    if isinstance(caught.value, UnsupportedQuery):
        assert caught.value.hint
    with pytest.raises(InvalidParameter):
        curator.stream()


def test_threads_release_each_period_once() -> None:
    stream = started(curator_of(ROWS), horizon=12)
    with ThreadPoolExecutor(4) as threads:
        days = [answer.records[0]["day"] for answer in threads.map(lambda _: stream.release(), range(12))]
    assert sorted(days) == [START + dt.timedelta(days=t) for t in range(12)]
    assert stream.released == 12


def test_seeded_noise_is_marked() -> None:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    protect(curator, ROWS, budget=Budget(rho=1), unit="person")
    assert not started(curator, rho="0.5").release().private


def test_accounts_with_a_delta_have_gaussian_noise_however_few_periods_there_are() -> None:
    curator = curator_of(ROWS, budget=Budget(epsilon=2, delta="1e-6"), max_groups=1)
    streams = [started(curator, epsilon="0.5", horizon=horizon) for horizon in (4, 5, 6)]
    assert {stream.method for stream in streams} == {"square root"}
    charged = [from_json(entry.content["event"]) for entry in curator.entries() if entry.kind == "charge"]
    assert compose(terms(charged)).rho < 0.02  # as Laplace noise it would be 0.375


def test_pure_accounts_have_trees_and_reported_lifetimes() -> None:
    curator = curator_of(ROWS, budget=Budget(epsilon=1), max_groups=1)
    stream = started(curator, epsilon="0.5")
    assert stream.method == "tree"
    assert stream.lifetime_epsilon() <= 0.5
    assert curator.budget("visits").spent == Budget(epsilon="0.5")


@every(
    ("every_", "start", "kind", "third"),
    [
        ("day", "2026-01-31", Type.DATE, dt.date(2026, 2, 2)),
        ("week", dt.date(2026, 1, 5), Type.DATE, dt.date(2026, 1, 19)),
        ("quarter", "2026-11-01", Type.DATE, dt.date(2027, 5, 1)),
        ("year", "2024-02-01", Type.TIMESTAMP, dt.datetime(2026, 2, 1)),
        (7, 3, Type.INT, 17),
    ],
)
def test_periods_follow_the_calendar(every_: Any, start: Any, kind: Type, third: Any) -> None:
    calendar = PeriodCalendar.of(every_, start, kind)
    assert calendar.ends(2)[0] == third
    assert calendar.ends(1)[1] == third
