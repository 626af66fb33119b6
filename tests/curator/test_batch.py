"""Several questions as one: one charge, equal ones measured once, all or nothing, and each is free afterwards."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from discreet.accounting.composition import terms as listed
from discreet.accounting.zcdp import compose, rho_for
from discreet.curator import Curator, paid_release
from discreet.curator.asking import batch as asking
from discreet.curator.asking.batch_plan import BatchPlan, share_terms
from discreet.curator.measurement_plan import QueryBudget
from discreet.curator.paid_release import AGAIN, LOST, STAYS, STORED, costs_no_more
from discreet.engines import Memory
from discreet.errors import (
    InsufficientBudget,
    InvalidParameter,
    KeyConflict,
    QueryFailed,
    UnknownTable,
    UnsupportedQuery,
)
from discreet.ledger import Ledger
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget, PureDP, Unit, events
from tests.curator.clinic import visits
from tests.curator.spies import BY_WARD, COUNT, Broken, Spy, clinic, filtered

WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
OLD = "SELECT COUNT(*) AS n, SUM(charge) AS s FROM visits WHERE age > 40"
SEVERAL = [COUNT, BY_WARD, f"{WARDS} ORDER BY n LIMIT 1", OLD]

rows_alone: dict[str, Any] = {"unit": None}


def charges(curator: Curator) -> list[Any]:
    """The charges that cost something."""
    found = [entry for entry in curator.history("visits") if entry.kind == "charge"]
    return [entry for entry in found if not entry.content.get("beside")]


def charged_event(curator: Curator) -> events.Event:
    return events.from_json(charges(curator)[-1].content["event"])


def drawn(curator: Curator) -> list[str]:
    """The digests of all releases that are kept."""
    return [entry.content["digest"] for entry in curator.history("visits") if entry.kind == "answer"]


# -------------------------------------------------------------------------------------------------------------- sharing


@pytest.mark.parametrize("delta", [0, "1e-8"])
def test_equal_questions_cost_what_one_costs(delta: Any) -> None:
    same = [WARDS, f"{WARDS} ORDER BY n DESC", WARDS.replace("AS n", "AS many") + " HAVING COUNT(*) > 10", WARDS]
    many, one = clinic(engine=(spy := Spy())), clinic()
    answers = many.ask_many(same, epsilon=1, delta=delta)
    alone = one.ask(WARDS, epsilon=1, delta=delta)
    assert charged_event(many) == charged_event(one) == answers[0].event == alone.event
    assert {str(answer.cost) for answer in answers} == {str(alone.cost)}
    assert many.budget("visits").spent == one.budget("visits").spent
    assert answers[0].records == alone.records == answers[3].records  # the same bits, the same noise
    assert [row["n"] for row in answers[1]] == sorted((row["n"] for row in alone), reverse=True)
    assert spy.reads == 1


def test_questions_that_differ_in_anything_that_is_released_are_measured_each() -> None:
    curator = clinic(engine=(spy := Spy()))
    curator.ask_many([WARDS, f"{WARDS[:-14]} WHERE age > 1 GROUP BY ward", BY_WARD], epsilon=1, delta=0)
    event = charged_event(curator)
    assert isinstance(event, events.Composed)
    assert (len(event.events), spy.reads) == (3, 3)
    assert curator.budget("visits").spent == PureDP(1) or str(curator.budget("visits").spent).startswith("epsilon=1")


def test_the_charge_is_the_sum_of_shares_and_each_is_free_afterwards() -> None:
    curator = clinic(engine=(spy := Spy()))
    answers = curator.ask_many(SEVERAL, epsilon=1, delta=0)
    assert len(charges(curator)) == 1
    event = charged_event(curator)
    assert isinstance(event, events.Composed)
    parts = [planned_event(curator, text, Fraction(1, len(event.events))) for text in SEVERAL]
    assert all(part in parts for part in event.events)
    reads, spent = spy.reads, curator.budget("visits").spent
    for text, answer in zip(SEVERAL, answers, strict=True):
        again = curator.ask(text, epsilon="0.25", delta=0)
        assert again.replayed
        assert again.records == answer.records
    assert (spy.reads, curator.budget("visits").spent) == (reads, spent)
    free = curator.ask_many(SEVERAL, epsilon=1, delta=0)
    assert all(answer.replayed and answer.cost.is_zero for answer in free)
    assert len(charges(curator)) == 1
    curator.verify()


def planned_event(curator: Curator, text: str, epsilon: Fraction) -> events.Event:
    return curator.explain(text, epsilon=epsilon, delta=0).event


def test_what_is_kept_takes_no_share() -> None:
    curator = clinic()
    kept = curator.ask(WARDS, epsilon="0.5", delta=0)
    first, second = curator.ask_many([WARDS, COUNT], epsilon=1, delta=0)
    assert first.replayed
    assert first.records == kept.records
    assert charged_event(curator) == planned_event(curator, COUNT, Fraction(1)) == second.event
    other = clinic()
    other.ask(WARDS, epsilon="0.4", delta=0)  # less than its share: it is measured again
    answers = other.ask_many([WARDS, COUNT], epsilon=1, delta=0)
    assert not any(answer.replayed for answer in answers)


KINDS = {"ward": ["A", "B", "C"], "kind": ["check", "fever", "fracture", "other"]}
MARGINS = [
    WARDS,
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind",
    "SELECT ward, kind, COUNT(*) AS many FROM visits GROUP BY ward, kind ORDER BY many",
]


@pytest.mark.ci
def test_questions_about_the_same_rows_are_planned_together() -> None:
    """One read and one joint release; nobody has more noise than with a share of their own, and all count all rows."""
    for delta in (0, "1e-6"):
        curator = clinic(Budget(epsilon=100, delta="1e-3"), engine=(spy := Spy()), **rows_alone, keys=KINDS)
        answers = curator.ask_many([*MARGINS, MARGINS[0]], epsilon=9, delta=delta, key="k")
        assert spy.reads == 1
        assert any("fitted" in note for note in answers[0].notes)
        rows = visits(3, patients=200)
        for name, answer in (("ward", answers[0]), ("kind", answers[1])):
            assert [row[name] for row in answer] == KINDS[name]
            for row in answer:  # those with another ward or kind are in the sums: an interval of 9 / 3 is small
                assert abs(row["n"] - sum(each[name] == row[name] for each in rows)) < 25
        assert answers[3].records == answers[0].records
        apart = clinic(Budget(epsilon=100, delta="1e-3"), **rows_alone, keys=KINDS)
        for text, answer in zip(MARGINS, answers, strict=False):
            name = "many" if "many" in text else "n"
            alone = apart.ask(text, epsilon=3, delta=0)
            wide, usual = (max(row[f"{name}_high"] - row[f"{name}_low"] for row in one) for one in (answer, alone))
            assert wide <= usual + 1
        again = curator.ask_many([*MARGINS, MARGINS[0]], epsilon=9, delta=delta, key="k")
        assert [one.records for one in again] == [one.records for one in answers]
        free = curator.ask(MARGINS[1], epsilon="2.9", delta=delta)
        assert free.replayed
        assert free.records == answers[1].records
        assert all(one.replayed for one in curator.ask_many(MARGINS, epsilon=9, delta=delta))
        assert len(charges(curator)) == 1
        curator.verify()


@pytest.mark.usefixtures("ctrl_c")
def test_a_joint_release_is_drawn_once() -> None:
    curator = clinic(Budget(epsilon=100, delta="1e-3"), engine=(spy := Spy()), **rows_alone, keys=KINDS)
    spy.before = stop
    with pytest.raises(KeyboardInterrupt):
        curator.ask_many(MARGINS, epsilon=9, delta=0, key="k")
    spy.before = lambda: None
    answers = curator.ask_many(MARGINS, epsilon=9, delta=0, key="k")
    assert len(drawn(curator)) == 3  # the layout, one release, the outcome
    again = curator.ask_many(MARGINS, epsilon=9, delta=0, key="k")
    assert [one.records for one in again] == [one.records for one in answers]


def test_a_total_counts_all_rows_whatever_is_asked_beside_it() -> None:
    """Most of these rows have a ward that nobody declared."""
    rows = [{"ward": ward, "x": 1} for ward in ["A"] * 10 + ["Z"] * 990]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(3))
    options: dict[str, Any] = {"types": {"ward": "text", "x": "int"}, "keys": {"ward": ["A", "B"]}}
    curator.protect(rows, name="visits", budget=Budget(epsilon=100), **options)
    total, wards = curator.ask_many([COUNT, WARDS], epsilon=9)
    assert abs(total[0]["n"] - 1000) < 20
    assert [row["ward"] for row in wards] == ["A", "B"]
    assert abs(wards[0]["n"] - 10) < 20


def test_a_part_follows_from_the_whole_where_that_is_no_worse() -> None:
    curator = clinic(engine=(spy := Spy()), **rows_alone)
    ward = f"{COUNT} WHERE ward = 'A'"
    one, wards = curator.ask_many([ward, WARDS], epsilon=1, delta=0)
    assert spy.reads == 1
    assert charged_event(curator) == planned_event(curator, WARDS, Fraction(1))
    assert one[0]["n"] == wards[0]["n"]
    assert any("follow" in note for note in one.notes)
    assert not one.replayed


def test_people_are_counted_by_the_keys_of_each_question() -> None:
    curator = clinic(engine=(spy := Spy()))
    curator.ask_many([COUNT, WARDS], epsilon=1, delta=0)
    assert spy.reads == 2


def test_gaussian_shares_grow_with_the_root() -> None:
    terms = QueryBudget(Fraction(1), Fraction(1, 10**6))
    whole = Fraction(rho_for(1.0, 1e-6))
    for count in (2, 4, 9, 100):
        share = share_terms(terms, count, "gaussian")
        assert whole * Fraction(999, 1000) < Fraction(rho_for(float(share.epsilon), 1e-6)) * count <= whole
    wards = [f"SELECT ward, COUNT(*) AS n FROM visits WHERE age > {age} GROUP BY ward" for age in range(8)]
    declared: dict[str, Any] = {"max_groups": 3, "max_rows": 1}
    curator = clinic(Budget(epsilon=10, delta="1e-4"), **declared)
    answers = curator.ask_many(wards, epsilon=1, delta="1e-6")
    total = compose(listed(charged_event(curator)))
    assert total.delta == 0
    assert whole * Fraction(99, 100) < total.rho <= whole
    alone = clinic(Budget(epsilon=10, delta="1e-4"), **declared).ask(wards[0], epsilon=1, delta="1e-6")
    widths = [answer[0]["n_high"] - answer[0]["n_low"] for answer in (*answers, alone)]
    assert max(widths[:-1]) <= 5 * widths[-1]  # Laplace noise, with eight shares of epsilon, would have eight times
    assert curator.ask(wards[3], epsilon="0.15", delta="1e-6").records == answers[3].records
    assert curator.ask_many(wards, epsilon=1, delta="1e-6")[5].replayed


MANY = [filtered(age) for age in range(20, 36)]


def test_gaussian_shares_are_charged_as_what_they_are_together() -> None:
    """By plain sums the batch costs the epsilon that was asked for, and not the larger sum of its shares."""
    curator = clinic(budget=Budget(epsilon=10, delta="1e-4"))
    curator.ask_many(MANY, epsilon=1, delta="1e-6")
    event = charged_event(curator)
    assert isinstance(event, events.Calibrated)
    assert (event.epsilon, event.delta) == (Fraction(1), Fraction(1, 10**6))
    assert compose(listed(event)).rho <= rho_for(1.0, 1e-6)
    assert len(listed(event)) == 1  # equal noise for each of them
    plain = curator.budget("visits").details[1]
    assert plain.spent == Budget(epsilon=1, delta="1e-6")


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("call", [0, 2, 15])
def test_a_gaussian_batch_that_is_stopped_goes_on(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """What is kept of it is a part of what was charged."""
    monkeypatch.setattr(paid_release, "WAIT", 0.0)
    curator, usual, calls = clinic(budget=Budget(epsilon=10, delta="1e-4")), Ledger.store_beside, iter(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "store_beside", lambda *a, **k: stop() if next(calls) == call else usual(*a, **k))
        with pytest.raises(KeyboardInterrupt):
            curator.ask_many(MANY, epsilon=1, delta="1e-6", key="k")
    answers = curator.ask_many(MANY, epsilon=1, delta="1e-6", key="k")
    assert len(answers) == len(MANY)
    assert len(charges(curator)) == 1


def test_more_than_the_parts_of_a_gaussian_batch_is_not_covered() -> None:
    ledger = Ledger()
    account = ledger.stewardship.open_account("a", unit=Unit("person"), budget=Budget(epsilon=10, delta="1e-4"))
    part = events.Calibrated(events.Concentrated("0.01"), "0.6", "1e-6")
    bare = events.Concentrated("0.01")
    whole = events.Calibrated(events.Composed([bare, bare]), 1, "1e-6")
    assert costs_no_more(part, whole, account)
    assert costs_no_more(events.Composed([part, part]), whole, account)
    assert not costs_no_more(events.Composed([part, part, part]), whole, account)
    assert not costs_no_more(events.Composed([part, events.Concentrated("0.011")]), whole, account)


def test_facts_that_several_need_are_bought_once() -> None:
    curator = clinic(Budget(epsilon=10), engine=(spy := Spy()), bounds={"age": (0, 120)})
    texts = ["SELECT AVG(charge) AS c FROM visits", "SELECT ward, SUM(charge) AS c FROM visits GROUP BY ward", COUNT]
    answers = curator.ask_many(texts, epsilon=6, delta=0)
    assert spy.reads == 4  # one probe, three questions
    event = charged_event(curator)
    assert isinstance(event, events.Composed)
    assert len(event.events) == 4
    assert str(curator.budget("visits").spent) == "epsilon=6"
    assert all("chosen privately" in " ".join(answer.notes) for answer in answers[:2])
    assert curator.ask(texts[0], epsilon=1, delta=0).replayed
    with_limits = clinic(engine=(spy := Spy()))
    with_limits.ask_many([COUNT, COUNT, filtered(3)], epsilon=1, delta=0, limits="choose")
    assert spy.reads == 3  # rows per person are counted unfiltered, once


def test_limits_are_part_of_what_is_asked() -> None:
    curator = clinic(engine=(spy := Spy()))
    curator.ask(WARDS, epsilon=1, delta=0, limits=Limits(1, 1))
    curator.ask_many([WARDS, COUNT], epsilon="0.5", delta=0)
    assert spy.reads == 3


# ------------------------------------------------------------------------------------------------------------- refusals


def test_refusals_name_the_question_and_spend_nothing() -> None:
    curator = clinic(engine=(spy := Spy()))
    before = curator.verify()
    cases: list[tuple[list[Any], type[Exception], str]] = [
        ([COUNT, "SELECT patient FROM visits"], UnsupportedQuery, "Question 2: "),
        ([COUNT, COUNT, "SELECT COUNT(*) FROM nowhere"], UnknownTable, "Question 3: "),
        ([WARDS, "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"], UnsupportedQuery, "Question 2: The groups"),
        ([], InvalidParameter, "Expected questions"),
        ([COUNT] * (asking.MOST + 1), InvalidParameter, "Expected questions"),
        ([7], InvalidParameter, "Question 1: "),
    ]
    for texts, kind, told in cases:
        with pytest.raises(kind, match=told):
            curator.ask_many(texts, epsilon=1, delta=0)
    with pytest.raises(InvalidParameter, match="to be a list of questions"):
        curator.ask_many(COUNT, epsilon=1)
    with pytest.raises(InsufficientBudget):
        curator.ask_many([COUNT, WARDS], epsilon=5, delta=0)
    assert (curator.verify(), spy.reads) == (before, 0)


def test_questions_about_people_of_two_accounts_are_refused() -> None:
    curator = clinic()
    rows = [{"x": 1}]
    curator.protect(rows, name="others", types={"x": "int"}, budget=Budget(epsilon=1))
    with pytest.raises(UnsupportedQuery, match="Question 2: It is about people of another account") as caught:
        curator.ask_many([COUNT, "SELECT COUNT(*) FROM others"], epsilon=1, delta=0)
    assert "one batch for each account" in caught.value.hint


# ------------------------------------------------------------------------------------------------ stopped and run again


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.ci
@pytest.mark.usefixtures("ctrl_c")
def test_a_batch_that_is_stopped_anywhere_goes_on_under_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped before each thing that is kept and after it: what is kept stays, one charge, the same answers again."""
    texts = [COUNT, BY_WARD, OLD]
    monkeypatch.setattr(paid_release, "WAIT", 0.0)
    stops = [("store_beside", 0), ("store_beside", 2), ("store_answer", 0)]
    for (name, call), late in product(stops, (False, True)):
        _stopped_and_run_again(texts, name, call, late=late)


def _stopped_and_run_again(texts: list[str], name: str, call: int, *, late: bool) -> None:
    curator, calls = clinic(engine=(spy := Spy())), iter(range(100))
    with pytest.MonkeyPatch.context() as patch:
        usual = getattr(Ledger, name)

        def halting(*arguments: Any, **options: Any) -> Any:
            now = next(calls) == call
            if now and not late:
                stop()
            found = usual(*arguments, **options)
            if now:
                stop()
            return found

        patch.setattr(Ledger, name, halting)
        with pytest.raises(KeyboardInterrupt) as caught:
            curator.ask_many(texts, epsilon=1, delta=0, key="k")
    ended = name == "store_answer" and late
    assert caught.value.__notes__ == [STAYS, STORED if ended else AGAIN]
    kept, reads = drawn(curator), spy.reads
    answers = curator.ask_many(texts, epsilon=1, delta=0, key="k")
    assert drawn(curator)[: len(kept)] == kept
    assert len(drawn(curator)) == 5  # the layout, three releases and the outcome, each once
    lost = name == "store_beside" and call and not late  # read, and stopped before it was kept
    assert spy.reads == 3 + bool(lost)
    assert reads <= spy.reads
    again = curator.ask_many(texts, epsilon=1, delta=0, key="k")
    assert [one.records for one in again] == [one.records for one in answers]
    assert all(one.replayed for one in again)
    assert len(charges(curator)) == 1
    with pytest.raises(KeyConflict):
        curator.ask_many(texts[:2], epsilon=1, delta=0, key="k")
    curator.verify()


@pytest.mark.usefixtures("ctrl_c")
def test_a_batch_run_again_is_shared_as_it_was() -> None:
    """Somebody asks one of its questions in between: the others keep their shares, and the charge pays for all."""
    curator = clinic(Budget(epsilon=10, delta="1e-6"), engine=(spy := Spy()))
    spy.before = stop
    with pytest.raises(KeyboardInterrupt):
        curator.ask_many([COUNT, WARDS], epsilon=1, delta=0, key="k")
    spy.before = lambda: None
    precise = curator.ask(WARDS, epsilon=5, delta=0)
    count, wards = curator.ask_many([COUNT, WARDS], epsilon=1, delta=0, key="k")
    assert count.event == planned_event(curator, filtered(0), Fraction(1, 2))
    assert wards.records != precise.records
    spy.before = stop
    with pytest.raises(KeyboardInterrupt) as caught:
        curator.ask_many([OLD, filtered(7)], epsilon=2, delta=0)
    assert caught.value.__notes__ == [STAYS, LOST]


@pytest.mark.usefixtures("ctrl_c")
def test_probes_of_a_batch_are_released_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["SELECT AVG(charge) AS c FROM visits", "SELECT ward, SUM(charge) AS c FROM visits GROUP BY ward", COUNT]
    monkeypatch.setattr(paid_release, "WAIT", 0.0)
    curator = clinic(Budget(epsilon=10), engine=(spy := Spy()), bounds={"age": (0, 120)})
    spy.before = lambda: stop() if spy.reads == 3 else None
    with pytest.raises(KeyboardInterrupt):
        curator.ask_many(texts, epsilon=6, delta=0, key="k")
    kept = drawn(curator)
    spy.before = lambda: None
    answers = curator.ask_many(texts, epsilon=6, delta=0, key="k")
    assert drawn(curator)[: len(kept)] == kept
    assert spy.reads == 5  # the second question was stopped while it was read
    assert not any(answer.replayed for answer in answers)
    assert len(charges(curator)) == 1


def test_a_batch_that_fails_fails_as_a_whole() -> None:
    curator = clinic(engine=Broken())
    for _ in range(2):
        with pytest.raises(QueryFailed):
            curator.ask_many([COUNT, WARDS], epsilon="0.5", delta=0, key="k")
    balance = curator.budget("visits")
    assert (str(balance.spent), balance.failures) == ("epsilon=0.5", 1)


def test_what_costs_more_than_was_charged_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    curator = clinic(engine=(spy := Spy()))
    monkeypatch.setattr(BatchPlan, "event", events.Pure(Fraction(1, 2)))
    with pytest.raises(QueryFailed):
        curator.ask_many([COUNT, WARDS], epsilon=1, delta=0)
    assert spy.reads == 0


def test_two_who_run_one_batch_give_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else claims the charge while it is run, and ends it first: everybody shows what is kept."""
    curator = clinic(engine=(spy := Spy()))
    monkeypatch.setattr(paid_release, "WAIT", 0.0)
    others: list[Any] = []

    def claimed() -> None:
        spy.before = lambda: None
        others.extend(curator.ask_many([COUNT, WARDS], epsilon=1, delta=0, key="k"))

    spy.before = claimed
    answers = curator.ask_many([COUNT, WARDS], epsilon=1, delta=0, key="k")
    assert [one.records for one in answers] == [one.records for one in others]
    assert len(drawn(curator)) == 4
    curator.verify()


def test_seeded_noise_is_told() -> None:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    curator.protect([{"x": 1}], name="t", types={"x": "int"}, budget=Budget(epsilon=1))
    stages: list[str] = []
    (answer,) = curator.ask_many(["SELECT COUNT(*) AS n FROM t"], epsilon=1, progress=stages.append)
    assert not answer.private
    assert stages.count("Charging the account") == 1
    assert not any("One charge" in note for note in answer.notes)
