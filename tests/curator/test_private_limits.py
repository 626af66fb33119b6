"""Limits that are found out privately: once per person, paid by the question, remembered by table and keys."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from discreet.accounting import epsilon as epsilon_of
from discreet.audit.queries.neighbour_distance import measure_distance
from discreet.audit.queries.recorder import RecordingEngine
from discreet.audit.queries.recorder import ask as recorded
from discreet.audit.queries.releases import allowance
from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.errors import InvalidParameter, KeyConflict, UnsupportedQuery
from discreet.measurement.probes.probes import LimitsProbe, _least_error
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget, Loss, Neighbours, PureDP
from discreet.sql.frame import count
from tests.curator.fuzz import Question
from tests.curator.spies import Spy, planned
from tests.redteam.judge import same_answers
from tests.redteam.salts import same_salt

Row = dict[str, Any]

TYPES = {"id": "int", "ward": "text", "age": "int"}
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
MEAN = "SELECT AVG(age) AS a FROM visits"
LARGE = Budget(epsilon=1000)


def people(count: int = 200, rows: int = 3) -> list[Row]:
    """So many rows each, in two wards; one in fifty has twenty times as many."""
    return [
        {"id": i, "ward": "AB"[place % 2], "age": 30 + i % 9}
        for i in range(count)
        for place in range(rows * (20 if i % 50 == 49 else 1))
    ]


def curator(rows: list[Row] | None = None, budget: Loss = LARGE, engine: Any = None, **declared: Any) -> Curator:
    made = Curator.for_tests(engine=engine or Memory(), bits=SeededBits(5))
    options: dict[str, Any] = {"unit": "id", "keys": {"ward": ["A", "B", "C"]}, "version": "1", **declared}
    made.protect(
        people() if rows is None else rows, name="visits", types=TYPES, budget=budget, **{"max_rows": 1, **options}
    )
    return made


def test_limits_that_keep_most_people_are_found_paid_and_remembered() -> None:
    spy = Spy()
    made = curator(engine=spy)
    assert made.explain(COUNT, epsilon=5).limits == Limits(1, 1)  # declared ones come first
    told = made.explain(BY_WARD, epsilon=5, limits="choose")
    assert [note for note in told.notes if "will be chosen" in note] == [
        f"The limit of {what} will be chosen privately for epsilon 0.5, then remembered."
        for what in ("rows per person and group", "groups per person")
    ]
    assert (told.cost.details, spy.reads) == (PureDP(5), 0)
    answer = made.ask(BY_WARD, epsilon=5, limits="choose")
    assert (answer.cost.details, spy.reads, epsilon_of(answer.event, 0)) == (PureDP(5), 3, 5.0)
    assert answer.notes[0] == "At most 2 rows per id and group are counted, in at most 2 groups."
    assert "Limits were chosen privately" in answer.notes[-1]
    assert made.ask(BY_WARD, epsilon=5, limits="choose").replayed
    assert made.ask(f"{BY_WARD} HAVING COUNT(*) > 10", epsilon=5, limits="choose").replayed
    filtered = made.ask(BY_WARD.replace("GROUP", "WHERE age > 31 GROUP"), epsilon=1, limits="choose")
    assert (filtered.cost.details, spy.reads) == (PureDP(1), 4)
    plain = made.ask(COUNT, epsilon=5, limits="choose")  # other keys, another fact
    assert plain.notes[0] == "At most 4 rows per id and group are counted."
    assert spy.reads == 6


@pytest.mark.parametrize(("rows", "limit"), [(1, 1), (2, 2), (5, 8), (16, 16)])
def test_the_limit_is_the_next_power_of_two(rows: int, limit: int) -> None:
    assert curator(people(40, rows)).ask(COUNT, epsilon=50, limits="choose").notes[0].startswith(f"At most {limit} row")


@pytest.mark.parametrize(("epsilon", "limit"), [(5, 4), (100, 64)])
def test_heavy_people_are_kept_where_noise_is_smaller_than_what_they_have(epsilon: int, limit: int) -> None:
    """196 people have 3 rows, 4 have 60: 226 rows would be left out, or the noise of a limit of 64 be borne."""
    told = curator().ask(COUNT, epsilon=epsilon, limits="choose").notes
    assert told[0].startswith(f"At most {limit} row")


def test_the_limit_has_the_least_error_by_hand() -> None:
    people = [0, 100, 0, 0, 10, *[0] * 16]  # two rows each; ten of nine to sixteen
    assert _least_error(people, Fraction(1)) == 16  # 16 of noise, for 12.5 - 2 rows of ten people
    assert _least_error(people, Fraction(50)) == 2
    assert _least_error(people, Fraction(1000)) == 1


def test_engines_agree() -> None:
    rows = people(60)
    frame = pl.DataFrame(rows, schema={"id": pl.Int64, "ward": pl.String, "age": pl.Int64})
    made = [curator(rows), Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(5))]
    made[1].protect(
        frame, name="visits", unit="id", max_rows=1, keys={"ward": ["A", "B", "C"]}, version="1", budget=LARGE
    )
    notes = [each.ask(BY_WARD, epsilon=100, limits="choose").notes for each in made]
    assert notes[0] == notes[1]


def test_too_few_people_pay_the_same_and_keep_the_tables_limits() -> None:
    spy = Spy()
    made = curator(people(3), engine=spy, max_rows=7)
    answer = made.ask(COUNT, epsilon=1, limits="choose")
    assert (answer.cost.details, spy.reads) == (PureDP(1), 2)
    assert answer.notes[0].startswith("At most 7 rows")
    assert "Too few people to choose limits" in answer.notes[-1]
    assert made.ask(COUNT, epsilon=1, limits="choose").replayed


def test_bounds_and_limits_together_frames_and_keys() -> None:
    made = curator()
    answer = made.ask(MEAN, epsilon=30, limits="choose", key="k")
    assert answer.cost.details == PureDP(30)
    assert len(planned(made, MEAN, "choose").facts.known) == 2
    assert made.ask(MEAN, epsilon=30, limits="choose", key="k").records == answer.records
    with pytest.raises(KeyConflict):
        made.ask(MEAN, epsilon=30, key="k")
    assert made.table("visits").agg(n=count()).ask(epsilon=1, limits="choose").cost.details == PureDP(1)
    assert len(made.rehearse(BY_WARD, limits="choose")) == 3


def test_rows_that_are_people_need_no_limits_and_nonsense_is_refused() -> None:
    spy = Spy()
    made = curator(engine=spy, unit=None)
    made.ask(COUNT, epsilon=1, limits="choose")
    assert spy.reads == 1
    for wrong in ("chose", 3, (1, 1)):
        with pytest.raises(InvalidParameter):
            made.ask(COUNT, epsilon=1, limits=wrong)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedQuery):
        curator().ask(COUNT, within=5, max_epsilon=5, limits="choose")


# ----------------------------------------------------------------------------------------------------------- neighbours


def compare(rows: list[Row], other: list[Row], sql: str, epsilon: str, **declared: Any) -> None:
    """Asks both, the second with the first one's noise: only inputs of noise differ, by what was paid."""
    with same_salt():
        engines = [RecordingEngine(Memory()) for _ in range(2)]
        both = [curator(each, engine=e, **declared) for each, e in zip((rows, other), engines, strict=True)]
    choosing: Any = "choose"
    asked = Question(
        sql=sql, epsilon=Fraction(epsilon), delta=Fraction(0), limits=choosing, private=False, grouped=False
    )
    first = recorded(both[0], engines[0], asked)
    second = recorded(both[1], engines[1], asked, frozen=first.noises)
    assert (first.status, first.spent, first.reads) == (second.status, second.spent, second.reads)
    assert first.answer is not None
    assert second.answer is not None
    same_answers(first.answer, second.answer)
    total = Fraction(0)
    for a, b in zip(first.noises, second.noises, strict=True):
        assert a.release == b.release
        assert measure_distance(a, b) <= allowance(a.release.event)
        total += allowance(a.release.event)
    assert total <= Fraction(epsilon)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sql", [COUNT, BY_WARD, MEAN])
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("epsilon", ["1", "60"])
def test_one_person_moves_nothing_farther_than_was_paid(sql: str, neighbours: Neighbours, epsilon: str) -> None:
    rows = people(50)
    for who in (0, 49):  # one like the others, and the one with sixty rows
        other = [row for row in rows if row["id"] != who]
        if neighbours is Neighbours.REPLACE:
            other += [{"id": who, "ward": ward, "age": 99} for ward in "ABCABCABC"]
        compare(rows, other, sql, epsilon, neighbours=neighbours)
        compare(other, rows, sql, epsilon, neighbours=neighbours)


def test_mutant_rows_that_are_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A histogram in which a person counts in many buckets moves by more than it says."""
    right = LimitsProbe.program

    def careless(self: LimitsProbe, epsilon: Fraction) -> Any:
        made: Any = right(self, epsilon)
        bounding = replace(made.reading.bounding, groups=99, rows=99)
        source = made.reading.source.source  # rows by group, each of which counts
        return replace(made, reading=replace(made.reading, bounding=bounding, source=source))

    monkeypatch.setattr(LimitsProbe, "program", careless)
    rows = people(50)
    with pytest.raises(AssertionError):
        compare(rows, [row for row in rows if row["id"] != 49], BY_WARD, "60")


def test_mutant_limits_of_the_data_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[Any] = []
    right = Memory.read

    def looking(self: Memory, reading: Any) -> Any:
        engines[:] = [self]
        return right(self, reading)

    monkeypatch.setattr(Memory, "read", looking)
    monkeypatch.setattr(LimitsProbe, "find_fact", lambda *_: len(engines[0]._rows["visits"]))
    rows = people(50)
    with pytest.raises(AssertionError):
        compare(rows, rows[1:], COUNT, "60")
