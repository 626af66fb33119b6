"""Bounds that nobody declared: found privately inside the first question, paid by it, and remembered."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from discreet.accounting import epsilon as epsilon_of
from discreet.audit.queries.neighbour_distance import measure_distance
from discreet.audit.queries.recorder import QueryRecord, RecordingEngine, ask
from discreet.audit.queries.releases import allowance
from discreet.curator import Answer, Curator
from discreet.curator import paid_release as perform
from discreet.curator.measurement_plan import MeasurementPlan
from discreet.engines import DuckDB, Memory
from discreet.errors import InsufficientBudget, InvalidParameter, KeyConflict, QueryFailed, UnsupportedQuery
from discreet.measurement.probes.magnitudes import buckets
from discreet.measurement.probes.probes import SHARE, BoundsProbe
from discreet.measurement.program.execution import ReleasedStatistics, run
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits
from discreet.plan.model.group_columns import KeyRows
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import ColumnBounds, Limits
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Loss, Neighbours, PureDP, events
from discreet.sql.frame import mean
from tests.curator.fuzz import Question
from tests.curator.spies import Spy, planned
from tests.measurement.read_once import ReadOnce
from tests.open_groups import unsealed
from tests.redteam.judge import same_answers
from tests.redteam.salts import same_salt

Row = dict[str, Any]

TYPES = {"id": "int", "ward": "text", "age": "int", "charge": "float"}
MEAN = "SELECT AVG(charge) AS m FROM visits"
BOTH = "SELECT ward, AVG(charge) AS m, SUM(age) AS s, COUNT(*) AS n FROM visits GROUP BY ward"
RANKS = "SELECT ward, MEDIAN(charge) AS m, VARIANCE(age) AS v FROM visits GROUP BY ward"
LARGE = Budget(epsilon=1000)
OPTIONS: dict[str, Any] = {
    "unit": "id", "keys": {"ward": ["A", "B", "C"]}, "max_groups": 2, "max_rows": 2, "version": "1"
}  # fmt: skip


def people(count: int = 300, *, seed: int = 1) -> list[Row]:
    """Charges from -30 to 900, ages from 18 to 90, some missing; one row each but for a few."""
    rows = []
    for i in range(count):
        ward, age = "ABC"[(i + seed) % 3], 18 + (7 * i + seed) % 73
        charge = [float((37 * i + seed) % 931 - 30), None, float((i * seed) % 500)][i % 3]
        rows += [{"id": i, "ward": ward, "age": age, "charge": charge}] * (1 + (i % 10 == 0))
    return rows


def curator(
    rows: list[Row] | None = None,
    budget: Loss = LARGE,
    *,
    ledger: str = ":memory:",
    engine: Any = None,
    bits: SeededBits | None = None,
    **declared: Any,
) -> Curator:
    made = Curator.for_tests(ledger, engine=engine or Memory(), bits=bits or SeededBits(5))
    made.protect(people() if rows is None else rows, name="visits", types=TYPES, budget=budget, **(OPTIONS | declared))
    return made


def bounds_of(made: Curator, sql: str = MEAN) -> dict[tuple[str, str], ColumnBounds]:
    return dict(planned(made, sql).facts.bounds)


# ------------------------------------------------------------------------------------------------------------- one call


def test_one_call_answers_and_costs_what_was_asked() -> None:
    spy = Spy()
    made = curator(engine=spy)
    answer = made.ask(BOTH, epsilon=4)
    assert (answer.cost.details, spy.reads, len(answer)) == (PureDP(4), 3, 3)
    assert made.budget("visits").spent == PureDP(4)
    assert sum("chosen privately" in note for note in answer.notes) == 2
    assert epsilon_of(answer.event, 0) == 4.0  # probes and question together, no more and no less
    found = bounds_of(made, BOTH)
    assert found["visits", "age"] == ColumnBounds(Fraction(16), Fraction(128))
    assert found["visits", "charge"].high in (512, 1024)


def test_the_next_question_pays_nothing_for_bounds() -> None:
    spy = Spy()
    made = curator(engine=spy)
    made.ask(MEAN, epsilon=2)
    reads = spy.reads
    again = made.ask(MEAN, epsilon=2)
    assert (again.replayed, spy.reads) == (True, reads)
    other = made.ask("SELECT SUM(charge / 2) AS s FROM visits WHERE ward = 'A'", epsilon=1)
    assert (other.cost.details, spy.reads) == (PureDP(1), reads + 1)
    assert epsilon_of(other.event, 0) == 1.0
    (measure,) = made.explain("SELECT SUM(charge / 2) AS s FROM visits", epsilon=1).program.measures
    assert allowance(measure.event) == 1  # the whole budget goes to the answer


def test_other_curators_of_the_ledger_remember_too(tmp_path: Path) -> None:
    with curator(ledger=str(tmp_path / "book")) as first:
        answer = first.ask(MEAN, epsilon=2)
        found = bounds_of(first)
    spy = Spy()
    with curator([], ledger=str(tmp_path / "book"), engine=spy) as second:  # whatever is in the table now
        assert bounds_of(second) == found
        assert second.ask(MEAN, epsilon=2).records == answer.records
        assert spy.reads == 0
        second.protect([], name="visits", types=TYPES, budget=LARGE, **(OPTIONS | {"version": "2"}))
        assert bounds_of(second) == {}  # another version is other data


def test_history_tells_of_both() -> None:
    made = curator()
    made.ask(MEAN, epsilon=2)
    charges = [entry.content for entry in made.history("visits") if entry.kind == "charge"]
    assert [charge["cost"]["epsilon"] for charge in charges] == ["2/1", "0/1"]
    assert "magnitude of charge" in charges[1]["question"]
    made.verify()


def test_an_explanation_says_what_will_be_chosen_and_reads_nothing() -> None:
    spy = Spy()
    made = curator(engine=spy)
    before = made.verify()
    told = made.explain(BOTH, epsilon=2)
    assert [note for note in told.notes if "will be chosen" in note] == [
        f"Bounds of {name} will be chosen privately for epsilon 0.2, then remembered." for name in ("age", "charge")
    ]
    assert (told.cost.details, told.errors["m"], told.errors["s"]) == (PureDP(2), math.inf, math.inf)
    assert told.errors["n"] < 100
    assert made.choose_epsilon(BOTH, [1, 2]).choices[0].errors["m"] == math.inf
    assert len(made.rehearse(BOTH)) == 3
    assert (spy.reads, made.verify()) == (0, before)
    made.ask(BOTH, epsilon=2)
    known = made.explain(BOTH, epsilon=2)
    assert known.errors["s"] < 20_000
    assert not [note for note in known.notes if "will be chosen" in note]


def test_frames_nested_questions_and_several_columns() -> None:
    made = curator()
    assert made.table("visits").where("age > 20").agg(m=mean("charge")).ask(epsilon=2).cost.details == PureDP(2)
    nested = "SELECT AVG(double) AS m FROM (SELECT charge * 2 AS double, age FROM visits) WHERE age > 20"
    assert made.ask(nested, epsilon=1).cost.details == PureDP(1)
    together = "SELECT SUM(charge + age) AS s, AVG(age) AS a FROM visits"
    assert made.ask(together, epsilon=1).cost.details == PureDP(1)
    assert set(bounds_of(made, together)) == {("visits", "age"), ("visits", "charge")}


def test_declared_bounds_and_clipped_values_need_no_probes() -> None:
    spy = Spy()
    made = curator(engine=spy, bounds={"charge": (0, 500)})
    for sql in (MEAN, "SELECT SUM(GREATEST(LEAST(age, 90), 0)) AS s FROM visits"):
        assert not planned(made, sql).probes
        assert not [note for note in made.ask(sql, epsilon=1).notes if "cho" in note]  # chosen, or too few to choose
    assert spy.reads == 2


# ------------------------------------------------------------------------------------------------------------- refusals


def test_both_stages_are_affordable_or_nothing_is_charged_or_read() -> None:
    spy = Spy()
    made = curator(budget=Budget(epsilon=1), engine=spy)
    before = made.verify()
    with pytest.raises(InsufficientBudget):
        made.ask(MEAN, epsilon="1.01")
    made.appoint("ana", "analyst", account="visits", cap=Budget(epsilon="0.5"))
    with pytest.raises(InsufficientBudget):
        made.ask(MEAN, epsilon="0.6", analyst="ana")
    assert spy.reads == 0
    assert made.verify().sequence == before.sequence + 1  # the appointment
    assert made.ask(MEAN, epsilon=1).cost.details == PureDP(1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(1 / charge) AS s FROM visits",
        "SELECT AVG(t) AS m FROM (SELECT id, SUM(charge) AS t FROM visits GROUP BY id)",
        "SELECT AVG(id) AS m FROM visits",
        "SELECT AVG(ward) AS m FROM visits",
    ],
)
def test_what_has_no_bounds_whatever_is_found_is_refused_before_the_charge(sql: str) -> None:
    spy = Spy()
    made = curator(engine=spy)
    before = made.verify()
    for act in (made.ask, made.explain):
        with pytest.raises(UnsupportedQuery):
            act(sql, epsilon=1)
    assert (spy.reads, made.verify()) == (0, before)


def test_an_error_target_needs_the_bounds_first() -> None:
    made = curator()
    with pytest.raises(UnsupportedQuery, match="Bounds of charge"):
        made.ask("SELECT SUM(charge) AS s FROM visits", within=1000, max_epsilon=100)
    made.ask(MEAN, epsilon=2)
    assert made.explain("SELECT SUM(charge) AS s FROM visits", within=10_000, max_epsilon=100).cost is not None


# ------------------------------------------------------------------------------------------------------------- fallback


def test_too_few_people_pay_the_same_and_get_a_fixed_range() -> None:
    spy = Spy()
    made = curator(people(12), engine=spy)
    answer = made.ask(MEAN, epsilon=1)
    assert (answer.cost.details, spy.reads) == (PureDP(1), 2)
    assert "Too few people" in answer.notes[-1]
    assert -1 <= answer[0]["m_low"] <= answer[0]["m_high"] <= 1
    assert bounds_of(made) == {}  # nothing worth remembering
    again = made.ask(MEAN, epsilon=1)
    assert (again.replayed, again.records, spy.reads) == (True, answer.records, 2)
    better = made.ask(MEAN, epsilon=200)
    assert (better.cost.details, spy.reads) == (PureDP(200), 4)
    assert bounds_of(made) != {}


# ------------------------------------------------------------------------------------------------ neighbours and prices


def pair(rows: list[Row], other: list[Row], **declared: Any) -> list[tuple[Curator, RecordingEngine]]:
    with same_salt():
        engines = [RecordingEngine(Memory()) for _ in range(2)]
        return [
            (curator(each, engine=engine, **declared), engine)
            for each, engine in zip((rows, other), engines, strict=True)
        ]


def entries(made: Curator) -> list[Any]:
    """What the ledger says, but for times, hashes, salts and noise."""
    hidden = ("account", "digest", "replay_key", "salt", "declaration")
    return [
        (e.kind, e.who, e.price, e.about, {k: v for k, v in e.content.items() if k not in hidden})
        for e in made.history("visits")
    ]


def compare(
    rows: list[Row], other: list[Row], sql: str, *, epsilon: str = "3", delta: str = "0", **declared: Any
) -> QueryRecord:
    """Asks both, the second with the first one's noise: only inputs of noise differ, by what was paid."""
    (one, first_engine), (two, second_engine) = pair(rows, other, **declared)
    asked = Question(
        sql=sql, epsilon=Fraction(epsilon), delta=Fraction(delta), limits=None, private=False, grouped=False
    )
    first = ask(one, first_engine, asked)
    second = ask(two, second_engine, asked, frozen=first.noises)
    assert (first.status, first.spent, first.reads) == (second.status, second.spent, second.reads)
    assert entries(one) == entries(two)
    assert first.answer is not None
    assert second.answer is not None
    same_answers(first.answer, second.answer)
    total = Fraction(0)
    for a, b in zip(first.noises, second.noises, strict=True):
        assert a.release == b.release
        assert isinstance(a.release, AdditiveNoise)
        assert measure_distance(a, b) <= allowance(a.release.event)
        total += allowance(a.release.event) if a.release.law == "laplace" else 0
    assert total <= Fraction(epsilon)
    return first


def replaced(rows: list[Row], who: int) -> list[Row]:
    absurd: list[Row] = [{"id": who, "ward": "B", "age": -(2**60), "charge": 1e300}] * 3
    return [row for row in rows if row["id"] != who] + absurd


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sql", [MEAN, BOTH, "SELECT SUM(age) AS s FROM visits WHERE charge > 5"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("who", [0, 7])
def test_one_person_moves_nothing_farther_than_was_paid(sql: str, neighbours: Neighbours, who: int) -> None:
    rows = people(40)
    other = [row for row in rows if row["id"] != who]
    if neighbours is Neighbours.REPLACE:
        other = replaced(rows, who)
    for epsilon in ("0.5", "40"):  # nothing found, everything found
        compare(rows, other, sql, epsilon=epsilon, neighbours=neighbours)
        compare(other, rows, sql, epsilon=epsilon, neighbours=neighbours)


def test_one_row_is_one_person() -> None:
    rows = people(60)
    compare(rows, rows[1:], MEAN, unit=None, max_groups=1, max_rows=1)
    compare(rows[1:], rows, MEAN, epsilon="40", unit=None, max_groups=1, max_rows=1)


def test_a_crowd_of_one_with_everything() -> None:
    greedy = [
        {"id": 999, "ward": ward, "age": sign * 2**power, "charge": sign * 2.0**power}
        for ward in "ABC"
        for power in range(0, 60, 7)
        for sign in (-1, 1)
    ]
    compare(people(40) + greedy, people(40), BOTH)
    compare(greedy, [], BOTH)


CURRENCIES = [Budget(epsilon=100), Budget(epsilon=100, delta="1e-3"), Budget(rho=1000, delta="1e-3")]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("budget", CURRENCIES, ids=str)
@pytest.mark.parametrize("sql", [MEAN, BOTH, BOTH.replace("ward", "age % 5"), RANKS])
def test_the_charge_follows_from_the_question_alone(budget: Loss, sql: str) -> None:
    """The same on no data, little, much and absurd data; and what is released costs no more, in every currency."""
    private = "%" in sql
    if private and not hasattr(budget, "delta"):
        return
    seen = set()
    for rows in ([], people(150), replaced(people(20), 3)):
        made = curator(rows, budget)
        explained = made.explain(sql, epsilon=8)
        answer = made.ask(sql, epsilon=8)
        (charge, *memos) = [e for e in made.history("visits") if e.kind == "charge"]
        seen.add((str(answer.cost), charge.price, charge.content["event"], str(explained.cost)))
        assert str(explained.cost) == str(answer.cost)
        assert {str(memo.content["cost"]) for memo in memos} <= {str(memos[0].content["cost"]) if memos else ""}
        account = made.account("visits")
        assert perform.costs_no_more(answer.event, _event(charge), account)
    assert len(seen) == 1


def _event(charge: Any) -> events.Event:
    return events.from_json(charge.content["event"])


def test_bounds_that_change_the_price_of_a_layout_spend_a_little_less() -> None:
    """Zeros and ones make another layout than wide bounds; under zCDP its price is another one, too."""
    columns = [f"x{i}" for i in range(4)]
    made = Curator.for_tests(engine=Memory(), bits=SeededBits(3))
    rows = [dict.fromkeys(columns, i % 2) for i in range(400)]
    made.protect(rows, name="t", types=dict.fromkeys(columns, "int"), budget=Budget(rho=10**6))
    sql = f"SELECT {', '.join(f'AVG({name}) AS {name}' for name in columns)} FROM t"
    answer = made.ask(sql, epsilon=40)
    (charge, *_) = [e for e in made.history("t") if e.kind == "charge"]
    assert perform.costs_no_more(answer.event, _event(charge), made.account("t"))
    assert all(0.4 < answer[0][name] < 0.6 for name in columns)


# --------------------------------------------------------------------------------------------------- kills and failures


class Dying(Spy):
    """Ends everything, as a kill would, at the n-th read."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

        def die() -> None:
            if self.reads == self.at:
                raise KeyboardInterrupt

        self.before = die


@pytest.mark.parametrize(("at", "remembered"), [(1, False), (2, True)])
def test_a_kill_at_a_read_loses_no_charge_and_keeps_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, remembered: bool
) -> None:
    path = str(tmp_path / "book")
    with pytest.raises(KeyboardInterrupt), curator(ledger=path, engine=Dying(at)) as made:
        made.ask(MEAN, epsilon=2, key="k")
    spy = Spy()
    with curator(ledger=path, engine=spy, bits=SeededBits(6)) as after:
        assert after.budget("visits").spent == PureDP(2)
        assert (bounds_of(after) != {}) is remembered
        monkeypatch.setattr("discreet.curator.paid_release.WAIT", 0.0)
        answer = after.ask(MEAN, epsilon=2, key="k")
        assert (answer.replayed, after.budget("visits").spent) == (False, PureDP(2))
        assert spy.reads == (1 if remembered else 2)
        check_spent_once(after, answer)


def check_spent_once(made: Curator, answer: Answer) -> None:
    """All that was released under one key costs what was charged, the probe's part included; it was kept once."""
    (charge,) = [e for e in made.history("visits") if e.kind == "charge" and e.key]
    beside = [e for e in made.history("visits") if e.content.get("beside") == charge.sequence]
    assert len(beside) == 1
    (stored,) = [e for e in made.history("visits") if e.about == charge.sequence]
    (main,) = [
        kept for kept in made._ledger.read_answers(stored.content["replay_key"]) if kept.charge == charge.sequence
    ]
    spent = Fraction(json.loads(main.payload)["epsilon"])
    assert spent <= 2 * (1 - SHARE)
    assert perform.costs_no_more(answer.event, _event(charge), made.account("visits"))
    made.verify()


@pytest.mark.parametrize("at", [1, 2])
def test_two_at_work_for_one_charge_release_one_probe_and_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Somebody else claims the charge and answers it while the first one reads, for bounds or for the question."""
    monkeypatch.setattr("discreet.curator.paid_release.WAIT", 0.0)
    path, spy, found = str(tmp_path / "book"), Spy(), []
    with curator(ledger=path, engine=spy) as one, curator(ledger=path, bits=SeededBits(6)) as other:

        def overtake() -> None:
            if spy.reads == at:
                found.append(other.ask(MEAN, epsilon=2, key="k"))

        spy.before = overtake
        answer = one.ask(MEAN, epsilon=2, key="k")
        assert answer.records == found[0].records
        check_spent_once(one, found[0])


@pytest.mark.parametrize("at", [1, 2])
def test_an_engine_that_fails_is_charged_and_uses_up_one_credit(at: int) -> None:
    spy = Dying(at)

    def fail() -> None:
        if spy.reads == spy.at:
            raise MemoryError("p7 is 41 years old")

    spy.before = fail
    made = curator(engine=spy)
    with pytest.raises(QueryFailed):
        made.ask(MEAN, epsilon=2)
    balance = made.budget("visits")
    assert (balance.spent, balance.failures) == (PureDP(2), 1)
    assert made.ask(MEAN, epsilon=2).cost.details == PureDP(2)


# ----------------------------------------------------------------------------------------------------------------- keys


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", [None, MEAN, "SELECT AVG(age) AS a FROM visits", BOTH])
def test_a_key_is_charged_once_however_much_is_known_by_then(first: str | None) -> None:
    made = curator()
    if first is not None:
        made.ask(first, epsilon=1 if first == BOTH else 20)
    answer = made.ask(BOTH, epsilon=2, key="k")
    assert not answer.replayed
    spent = made.budget("visits").spent
    again = made.ask(BOTH, epsilon=2, key="k")
    assert (again.records, again.replayed, made.budget("visits").spent) == (answer.records, True, spent)
    others: list[dict[str, Any]] = [{"epsilon": 3}, {"epsilon": 2, "limits": Limits(1, 1)}]
    for wrong in others:
        with pytest.raises(KeyConflict):
            made.ask(BOTH, key="k", **wrong)
    with pytest.raises(KeyConflict):
        made.ask(MEAN, epsilon=2, key="k")
    assert made.budget("visits").spent == spent


# ------------------------------------------------------------------------------------------------------------- coverage


GROUPS, EACH = 2_000, (3.0, 100.0, 700.0, None)


@pytest.mark.parametrize("confidence", ["0.5", "0.95"])
def test_intervals_cover_the_clipped_table_as_stated(confidence: str) -> None:
    """One question about 2,000 equal groups: a coverage p within four standard errors of sqrt(p (1 - p) / 2000)."""
    rows = [{"id": f"{g}-{i}", "g": g, "charge": x} for g in range(GROUPS) for i, x in enumerate(EACH)]
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(29))
    frame = pl.DataFrame(rows, schema={"id": pl.String, "g": pl.Int64, "charge": pl.Float64})
    made.protect(frame, name="t", unit="id", max_rows=1, keys={"g": list(range(GROUPS))}, budget=LARGE)
    sql = "SELECT g, SUM(charge) AS s FROM t GROUP BY g"
    answer = made.ask(sql, epsilon=4, confidence=confidence)
    found = bounds_of(made, sql)["t", "charge"]
    assert found == ColumnBounds(Fraction(2), Fraction(1024))
    true = sum(min(max(Fraction(x), found.low), found.high) for x in EACH if x is not None)
    share = sum(row["s_low"] <= true <= row["s_high"] for row in answer) / GROUPS
    p = float(confidence)
    assert abs(share - p) <= 4 * math.sqrt(p * (1 - p) / GROUPS)


@pytest.mark.ci
def test_an_empty_bucket_is_hardly_ever_taken_for_one_in_use(bits: SeededBits) -> None:
    """At most one histogram in a thousand: 8 or more of 600 have a chance below comb(600, 8) / 1000^8 < 4e-7."""
    probe = BoundsProbe(curator([])._catalog.schemas, "visits", "charge", "salt")
    engine = Memory()
    engine.register("visits", [], {name: column.type for name, column in probe.tables[0].columns.items()})
    program = probe.program(Fraction(1, 10))
    once = ReadOnce(engine)
    found = [probe.find_fact(run(program, once, Releaser(bits))) for _ in range(600)]
    assert sum(each is not None for each in found) < 8


BEYOND = [({}, 64), ({8: 22}, 128), ({9: 22, 8: 1}, 64), ({9: 30}, 256), ({40: 50}, 64)]


@pytest.mark.parametrize(("extra", "high"), BEYOND, ids=str)
def test_bounds_are_wider_where_a_bucket_beyond_is_too_large_for_its_distance(extra: dict[int, int], high: int) -> None:
    """Noise of scale 5: 19 is too much one bucket beyond the last, 26 two beyond, 240 thirty-three beyond."""
    probe = BoundsProbe(curator([])._catalog.schemas, "visits", "age", "salt")
    keys = [(bucket,) for bucket in buckets(Type.INT)]
    counts = {1: 500, 7: 500, **extra}
    noisy = np.array([[counts.get(bucket, 0)] for (bucket,) in keys], dtype=object)
    released = ReleasedStatistics(probe.program(Fraction(1, 5)), KeyRows.of(keys), noisy)
    assert probe.find_fact(released) == ColumnBounds(Fraction(0), Fraction(high))
    assert probe.find_fact(released, former=True) == ColumnBounds(Fraction(0), Fraction(64))


@pytest.mark.ci
def test_noise_alone_hardly_ever_widens_bounds(bits: SeededBits) -> None:
    """Each side with at most WIDER / 3: of 500 at 1/30, 32 or more have a chance below 1e-3, 4 or fewer below 1e-3."""
    probe = BoundsProbe(curator([])._catalog.schemas, "visits", "age", "salt")
    engine = Memory()
    types = {name: column.type for name, column in probe.tables[0].columns.items()}
    engine.register("visits", [{"id": i, "ward": "A", "age": 50, "charge": 1.0} for i in range(400)], types)
    program = probe.program(Fraction(1, 5))
    once = ReadOnce(engine)
    found = [probe.find_fact(run(program, once, Releaser(bits))) for _ in range(500)]
    wider = sum(each != ColumnBounds(Fraction(32), Fraction(64)) for each in found)
    assert 4 < wider < 32


# -------------------------------------------------------------------------------------------------------------- mutants


def test_mutant_bounds_of_the_data_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Reading] = []
    right = Memory.read

    def looking(self: Memory, reading: Reading) -> ExactGroups:
        found = right(self, reading)
        used: list[Any] = [key[0] for key in unsealed(found) if reading.public_keys and len(reading.public_keys) > 50]
        if used:
            exact = ColumnBounds(Fraction(0), Fraction(2) ** max(used))
            monkeypatch.setattr(BoundsProbe, "find_fact", lambda *_, **__: exact)
        seen.append(reading)
        return found

    monkeypatch.setattr(Memory, "read", looking)
    rows = people(60)
    with pytest.raises(AssertionError):
        compare(
            rows, [*rows, {"id": 999, "ward": "A", "age": 2**40, "charge": 1.0}], "SELECT SUM(age) AS s FROM visits"
        )
    assert seen


def test_mutant_a_probe_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    right = BoundsProbe.program

    def quiet(self: BoundsProbe, epsilon: Fraction) -> Any:
        return right(self, epsilon * 10**6)

    monkeypatch.setattr(BoundsProbe, "program", quiet)
    with pytest.raises(AssertionError):
        compare(people(60), people(59), MEAN)


def test_mutant_a_probe_in_which_people_count_often(monkeypatch: pytest.MonkeyPatch) -> None:
    right = BoundsProbe.program

    def generous(self: BoundsProbe, epsilon: Fraction) -> Any:
        made: Any = right(self, epsilon)
        bounding = replace(made.reading.bounding, groups=50, rows=50)
        return replace(made, reading=replace(made.reading, bounding=bounding))

    monkeypatch.setattr(BoundsProbe, "program", generous)
    with pytest.raises(AssertionError):
        test_a_crowd_of_one_with_everything()


def test_mutant_a_price_without_its_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be released costs more than the charge, and is refused."""
    right = MeasurementPlan.event
    monkeypatch.setattr(MeasurementPlan, "event", lambda self, asked, *_: right(self, asked, 1).events[-1])  # type: ignore[attr-defined]
    with pytest.raises(QueryFailed):
        test_one_call_answers_and_costs_what_was_asked()


def test_mutant_a_price_that_depends_on_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fallback that gives its share to the answer is noticed: more noise is paid for than was charged."""
    right = MeasurementPlan.settle_program

    def generous(self: MeasurementPlan, asked: Any, facts: Any, *given: Any) -> Any:
        more = type(asked)(asked.epsilon / (1 - SHARE), asked.delta) if facts.guessed else asked
        return right(self, more, facts, *given)

    monkeypatch.setattr(MeasurementPlan, "settle_program", generous)
    with pytest.raises(AssertionError):
        compare(people(12), people(11), MEAN, epsilon="1")


def test_a_budget_must_still_be_named() -> None:
    with pytest.raises(InvalidParameter):
        curator().ask(MEAN)
