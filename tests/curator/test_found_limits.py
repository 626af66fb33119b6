"""Limits are a decision: declared by a steward, or found by one release of the table that its account pays for."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit.queries.recorder import AuditedQuery, RecordingEngine
from discreet.audit.queries.verdicts import CuratorPair
from discreet.curator import Curator
from discreet.curator.catalog.declared_limits import limits_epsilon, limits_place
from discreet.engines import DuckDB, Memory
from discreet.errors import (
    AccountLocked,
    InsufficientBudget,
    InvalidParameter,
    NotPermitted,
    QueryFailed,
    UnsupportedQuery,
)
from discreet.measurement.probes import total_limit
from discreet.measurement.probes.total_limit import FEW, LIMITS, TotalLimit
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits
from discreet.plan.model.nodes import Aggregate, ColumnRef, Key, Literal, Output, Question
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import ZCDP, Budget, Loss, Neighbours, events
from tests.cases import every
from tests.curator.spies import Spy
from tests.open_groups import unsealed

Row = dict[str, Any]

TYPES = {"id": "int", "ward": "text", "age": "int"}
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
LARGE = Budget(epsilon=10**4)


def rows_of(sizes: list[int]) -> list[Row]:
    """People with so many rows each, spread over three wards."""
    return [
        {"id": person, "ward": "ABC"[(person + place) % 3], "age": 30 + place % 9}
        for person, size in enumerate(sizes)
        for place in range(size)
    ]


def curator(rows: list[Row], ledger: Any = ":memory:", *, budget: Loss = LARGE, **declared: Any) -> Curator:
    made = Curator.for_tests(ledger, engine=declared.pop("engine", None) or Memory(), bits=SeededBits(5))
    options: dict[str, Any] = {"unit": "id", "keys": {"ward": ["A", "B", "C"]}, "limits": "private", **declared}
    made.protect(rows, name="visits", types=TYPES, budget=budget, **options)
    return made


def charges(made: Curator) -> list[tuple[str, events.Event]]:
    found = [entry for entry in made.entries() if entry.kind == "charge"]
    priced = [(entry.who, events.from_json(entry.content["event"])) for entry in found]
    return [(who, event) for who, event in priced if event != events.Composed(())]  # parts of a batch are paid with it


# ---------------------------------------------------------------------------------------------------------- a decision


def test_neither_is_refused_with_both_ways_and_each_is_accepted() -> None:
    """What the refusal proposes is pasted as it stands."""
    spy = Spy()
    made = Curator(engine=spy)
    with pytest.raises(InvalidParameter) as refused:
        made.protect(rows_of([3]), name="visits", unit="id", types=TYPES, budget=Budget(epsilon=10))
    assert (refused.value.name, refused.value.value) == ("limits", None)
    hint = refused.value.hint
    assert "epsilon 0.2" in hint
    assert not made.entries()
    proposed = re.findall(r'\b(limits="private"|max_rows=\d+|max_groups=\d+)', hint)
    assert len(proposed) == 3
    for place, one in enumerate(proposed):
        given_ = eval(f"dict({one})")
        made.protect(rows_of([3]), name=f"t{place}", unit="id", types=TYPES, budget=Budget(epsilon=10), **given_)
    assert spy.reads == 0


@every(
    "given_",
    [
        {"limits": "private", "max_rows": 3},
        {"limits": "secret"},
        {"limits_epsilon": 1, "max_rows": 3},
        {"limits": "private", "limits_epsilon": 0},
        {"limits": Limits(total=3), "max_groups": 3},
    ],
)
def test_contradictions(given_: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Curator(engine=Memory()).protect([], name="t", unit="id", types=TYPES, budget=LARGE, **given_)
    assert refused.value.name in {"limits", "limits_epsilon"}


def test_a_table_in_the_ledger_keeps_what_it_has(tmp_path: Path) -> None:
    """An account that was opened before goes on as it was: nothing has to be said again."""
    ledger = tmp_path / "a.ledger"
    with curator(rows_of([3]), ledger, limits=None, max_rows=2) as made:
        before = made.verify()
    with curator(rows_of([3]), ledger, limits=None) as made:
        assert made.verify() == before
        assert made.explain(COUNT, epsilon=1).limits == Limits(1, 2)


def test_rows_that_are_people_need_none() -> None:
    made = Curator(engine=Memory())
    made.protect(rows_of([3]), name="visits", types=TYPES, budget=LARGE)
    assert made.explain(COUNT, epsilon=1).limits == Limits()


# --------------------------------------------------------------------------------------------------------- the release


def test_it_is_paid_once_by_the_account_before_the_first_question() -> None:
    spy = Spy()
    made = curator(rows_of([5] * 63), engine=spy, budget=Budget(epsilon=100), limits_epsilon=10)
    told = made.explain(COUNT, epsilon=1)
    assert "1 row: n ± 3; 10 rows: n ± 30; 100 rows: n ± 300" in told.remarks[0]
    assert "for epsilon 10," in told.remarks[0]
    assert (spy.reads, len(charges(made))) == (0, 0)
    first = made.ask(COUNT, epsilon=1, analyst="ana")
    assert first.counted == "At most 5 rows per id are counted."
    assert str(first).splitlines()[0].endswith(first.counted)
    assert charges(made)[0] == ("owner", events.Pure(10))
    assert (spy.reads, [who for who, _ in charges(made)]) == (2, ["owner", "ana"])
    assert first.cost == told.cost
    assert first.notes[-1].endswith("The account paid epsilon 10, once.")
    assert not made.explain(COUNT, epsilon=1).remarks
    made.ask(BY_WARD, epsilon=1, analyst="ben")
    assert made.ask(COUNT, epsilon=1, analyst="ben").replayed
    assert (spy.reads, [who for who, _ in charges(made)]) == (3, ["owner", "ana", "ben"])


def test_whoever_comes_later_finds_it(tmp_path: Path) -> None:
    """Another process, other bounds: the same limits. Another version or another price: another release."""
    ledger, rows = tmp_path / "a.ledger", rows_of([5] * 60)
    with curator(rows, ledger) as made:
        made.ask(COUNT, epsilon=1)
        assert len(charges(made)) == 2
    with curator(rows, ledger, bounds={"age": (0, 100)}, change=True) as made:
        assert made.explain(COUNT, epsilon=1).limits == Limits(total=5)
        made.ask("SELECT SUM(age) AS s FROM visits", epsilon=1)
        assert len(charges(made)) == 3
    others: list[dict[str, Any]] = [{"version": "2"}, {"limits_epsilon": 50, "version": "2"}]
    for number, again in enumerate(others):
        with curator(rows, ledger, bounds={"age": (0, 100)}, change=True, **again) as made:
            made.ask(COUNT, epsilon=1)
            assert len(charges(made)) == 5 + 2 * number


def test_no_cap_counts_it() -> None:
    made = curator(rows_of([2] * 50), budget=Budget(epsilon=100), limits_epsilon=20)
    made._ledger.stewardship.appoint("ana", "analyst", account="visits", cap=Budget(epsilon=1))
    made.ask(COUNT, epsilon=1, analyst="ana")
    assert [who for who, _ in charges(made)] == ["owner", "ana"]
    with pytest.raises(NotPermitted):
        made.ask(COUNT, epsilon=1, analyst="ben")


def test_nothing_is_found_for_a_question_that_is_refused() -> None:
    made = curator(rows_of([2] * 50), budget=Budget(epsilon=1))
    for sql, epsilon, error in (
        (COUNT, 2, InsufficientBudget),
        ("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", "0.1", UnsupportedQuery),
        (COUNT, None, InvalidParameter),
    ):
        with pytest.raises(error):
            made.ask(sql, epsilon=epsilon)
    with pytest.raises(UnsupportedQuery, match="how many rows of one person count"):
        made.ask(COUNT, within=10, max_epsilon=1)
    with pytest.raises(InsufficientBudget):
        made.ask_many([COUNT, BY_WARD], epsilon=2)
    assert not charges(made)
    made.ask(COUNT, epsilon="0.5")
    assert made.ask(COUNT, within=1000, max_epsilon="0.1").replayed
    assert len(charges(made)) == 2


def test_a_search_that_fails_is_tried_twice_more() -> None:
    """Each attempt is a charge of its own, made by a question of its own; then a steward has to decide."""

    class Weak(Memory):
        fails = 0

        def read(self, reading: Any) -> Any:
            if type(self).fails:
                type(self).fails -= 1
                raise RuntimeError("out of memory")
            return super().read(reading)

    for failures, answered in ((1, True), (2, True), (3, False)):
        made = curator(rows_of([5] * 60), engine=Weak())
        Weak.fails = failures
        for _ in range(failures):
            with pytest.raises(QueryFailed):
                made.ask(COUNT, epsilon=1)
        assert len(charges(made)) == failures
        if answered:
            assert made.ask(COUNT, epsilon=1).counted == "At most 5 rows per id are counted."
            assert len(charges(made)) == failures + 2
        else:
            with pytest.raises(AccountLocked):
                made.ask(COUNT, epsilon=1)
            made._ledger.stewardship.unlock("visits")
            with pytest.raises(QueryFailed):
                made.ask(COUNT, epsilon=1)
            assert len(charges(made)) == failures
            assert made.ask(COUNT, epsilon=1, limits=Limits(1, 5))


def test_an_account_that_cannot_pay_says_what_else_can_be_done() -> None:
    made = curator(rows_of([2] * 50), budget=Budget(epsilon=1), limits_epsilon=2)
    with pytest.raises(InsufficientBudget, match="max_rows and max_groups"):
        made.ask(COUNT, epsilon="0.5")
    assert not charges(made)
    assert made.ask(COUNT, epsilon="0.5", limits=Limits(1, 2))  # limits of its own need no others


def test_batches_profiles_and_frames_find_it_too() -> None:
    ways: list[Callable[[Curator], object]] = [
        lambda made: made.ask_many([COUNT, BY_WARD], epsilon=2),
        lambda made: made.profile("visits", epsilon=1),
        lambda made: made.ask(COUNT, epsilon=1, key="first"),
    ]
    for ask in ways:
        made = curator(rows_of([5] * 60))
        for _ in range(2):
            ask(made)
        assert [who for who, _ in charges(made)] == ["owner", "owner"]
        assert made.explain(COUNT, epsilon=1).limits == Limits(total=5)


def test_streams_and_linked_tables_say_what_they_need() -> None:
    made = curator(rows_of([5] * 60))
    with pytest.raises(InvalidParameter) as refused:
        made.stream("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", every=1, horizon=9, epsilon=1, start=30)
    assert refused.value.name == "limits"
    made.protect([{"id": 1, "ward": "A"}], name="people", unit="id", account="visits", max_rows=1, types=TYPES)
    with pytest.raises(InvalidParameter) as refused:
        made.synthesize_tables("people", "visits", epsilon=1)
    assert refused.value.name == "rows_per_unit"
    assert not charges(made)


def test_prices_of_accounts() -> None:
    assert limits_epsilon(Budget(epsilon=10, delta=1e-6)) == Fraction(1, 5)
    epsilon = limits_epsilon(ZCDP("0.5"))
    assert epsilon**2 / 2 <= Fraction(1, 100) < (epsilon * Fraction(1001, 1000)) ** 2 / 2


def test_no_two_tables_have_one_place() -> None:
    declared = [json.dumps({"limits": {"private": None}, "name": a, "unit": b}) for a, b in (("a", "b"), ("b", "a"))]
    places = {limits_place(one, v, n) for one in declared for v in ("", "1") for n in ("add_remove", "replace")}
    assert len(places) == 8


# ------------------------------------------------------------------------------------------------------ its guarantee

SIZES = st.lists(st.integers(1, 40), max_size=12)


def searched(sizes: list[int], neighbours: Neighbours) -> tuple[int, ...]:
    """How many people have more rows than each limit, as the search counts them."""
    made = curator(rows_of(sizes), neighbours=neighbours)
    search = TotalLimit(table="visits", schemas=made._catalog.schemas, epsilon=Fraction(1), salt="s")
    seen: list[int] = []

    class Watched(Releaser):
        def first_of_few(self, search: Any, people: Any) -> int:
            counts = [n for (n,) in unsealed(people).values()]
            seen.extend(sum(counts[place + 1 :]) for place in range(len(counts) - 1))
            return super().first_of_few(search, people)

    search.release(made._engine, Watched(SeededBits(1)))
    return tuple(seen)


@pytest.mark.ci
@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(0, 40))
def test_a_person_moves_each_query_by_one_in_one_direction(sizes: list[int], size: int) -> None:
    check_moves(sizes, size)


def check_moves(sizes: list[int], size: int) -> None:
    before = searched(sizes, Neighbours.ADD_REMOVE)
    assert before == tuple(sum(s > limit for s in sizes) for limit in LIMITS[:-1])
    moved = np.subtract(searched([*sizes, *([size] if size else [])], Neighbours.ADD_REMOVE), before)
    assert set(moved.tolist()) <= {0, 1}
    if sizes:
        replaced = np.subtract(searched([*sizes[:-1], max(size, 1)], Neighbours.REPLACE), before)
        assert set(replaced.tolist()) in ({0}, {0, 1}, {0, -1}, {1}, {-1})


def test_the_search_is_the_sparse_vector_technique() -> None:
    for neighbours in Neighbours:
        made = curator([], neighbours=neighbours)
        search = TotalLimit(table="visits", schemas=made._catalog.schemas, epsilon=Fraction(1, 5), salt="s")
        mechanism = search.mechanism
        assert search.event == events.Pure(Fraction(1, 5)) == mechanism.event
        assert [mechanism.threshold, mechanism.sensitivity, mechanism.max_positives] == [-5 * FEW, 1, 1]
        assert mechanism.monotone is (neighbours is Neighbours.ADD_REMOVE)


@pytest.mark.ci
def test_its_law() -> None:
    """The place that is found has the law of noisy comparisons, by the convolution of two discrete Laplace laws."""
    sizes, epsilon = [1] * 4 + [2] * 3 + [4] * 2 + [9], Fraction(2)
    made = curator(rows_of(sizes))
    search = TotalLimit(table="visits", schemas=made._catalog.schemas, epsilon=epsilon, salt="s")
    beyond = [sum(s > limit for s in sizes) for limit in LIMITS[:-1]]
    draws = 2000
    bits = SeededBits(11)
    people = made._engine.read(search.reading).align_to(search.reading.public_keys or ())
    found = Counter(LIMITS[Releaser(bits).first_of_few(search.mechanism, people)] for _ in range(draws))
    expected = law(beyond, math.ceil(FEW / epsilon), float(search.mechanism.threshold_scale))
    likely = {LIMITS[place]: p for place, p in enumerate(expected) if p * draws >= 10}
    rest = 1 - sum(likely.values())
    cells = [(found[limit], p) for limit, p in likely.items()]
    cells.append((draws - sum(n for n, _ in cells), rest))
    statistic = sum((n - draws * p) ** 2 / (draws * p) for n, p in cells if p * draws >= 5)
    assert statistic < len(cells) - 1 + 5 * math.sqrt(2 * len(cells)) + 12  # exceeded with a chance below 1e-6


def law(beyond: list[int], threshold: int, scale: float) -> list[float]:
    """The probability of each place: given the noise of the threshold, comparisons are independent."""
    reach = 200
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(steps) / scale)
    weights /= weights.sum()
    upper = np.cumsum(weights[::-1])[::-1]  # P(noise >= step)
    found = np.zeros(len(beyond) + 1)
    for level, weight in zip(steps, weights, strict=True):
        left = weight
        for place, count in enumerate(beyond):
            least = level - threshold + count  # -count + noise >= -threshold + level
            above = upper[np.clip(least + reach, 0, 2 * reach)]
            found[place] += left * above
            left *= 1 - above
        found[-1] += left
    return found.tolist()


QUESTIONS = (
    COUNT,
    BY_WARD,
    "SELECT AVG(age) AS a FROM visits",
    "SELECT ward, SUM(age) AS s FROM visits WHERE age > 31 GROUP BY ward",
    "SELECT ward, MEDIAN(age) AS m FROM visits GROUP BY ward",
)


def pair_of(sizes: list[int], more: int, engine: type[Memory | DuckDB] = Memory) -> CuratorPair:
    def one(sizes: list[int]) -> tuple[Curator, RecordingEngine]:
        recording = RecordingEngine(engine())
        return curator(rows_of(sizes), engine=recording, bounds={"age": (20, 60)}), recording

    return CuratorPair(one(sizes), one([*sizes, more]), account="visits")


def check_pair(sizes: list[int], more: int, sql: str) -> None:
    pair = pair_of(sizes, more)
    for place, asked in enumerate((sql, COUNT, BY_WARD)):
        question = AuditedQuery(sql=asked, epsilon=Fraction(1), delta=Fraction(0), account="visits")
        compared = pair.compare(question)
        assert not compared.violations
        assert len(compared.seen.searches) == (place == 0)


@pytest.mark.ci
@settings(max_examples=15, deadline=None)
@given(SIZES, st.integers(1, 60), st.sampled_from(QUESTIONS))
def test_limits_change_later_questions_only_by_what_was_released(sizes: list[int], more: int, sql: str) -> None:
    """Record and replay: with the same limit found, neighbours have the same status, notes, charges and reads."""
    check_pair(sizes, more, sql)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(SIZES, st.integers(1, 60), st.sampled_from(QUESTIONS))
def test_of_three_hundred_pairs(sizes: list[int], more: int, sql: str) -> None:
    check_pair(sizes, more, sql)


class TestMutants:
    def test_rows_instead_of_people(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A search among rows would move by as many as one person has."""
        monkeypatch.setattr(TotalLimit, "question", property(count_of_rows))
        monkeypatch.setattr(total_limit, "ONCE", Limits(1, 40))
        with pytest.raises(AssertionError):
            check_moves([2, 3], 7)

    def test_a_limit_that_is_read_from_the_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = TotalLimit.release

        def unpaid(self: TotalLimit, engine: Any, releaser: Any) -> Limits:
            right(self, engine, releaser)
            (rows,) = engine.inner._rows.values()
            return Limits(total=max(Counter(row["id"] for row in rows).values(), default=1))

        monkeypatch.setattr(TotalLimit, "release", unpaid)
        with pytest.raises(AssertionError):
            check_pair([1, 2, 3], 30, COUNT)


def count_of_rows(search: TotalLimit) -> Question:
    keys = (Key("rows", Literal(3, Type.INT)),)
    return Question(
        table=search.table,
        keys=keys,
        aggregates=(Aggregate(name="#1", kind="count"),),
        outputs=(Output("people", ColumnRef("#1", Type.INT)),),
    )
