"""Questions after a table is declared anew: planned, charged and kept by the new declaration, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from discreet import audit
from discreet.curator import Curator, measurement_plan
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.measurement_plan import QueryBudget
from discreet.curator.replay import replay
from discreet.engines import DuckDB, Memory
from discreet.errors import DeclarationChanged, DiscreetError, InvalidParameter, KeyConflict, UnsupportedQuery
from discreet.learn import DecisionTreeClassifier
from discreet.ledger import Ledger
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.plan.model.types import Type
from discreet.privacy import Budget, PureDP
from tests.curator.spies import Spy, planned
from tests.open_groups import unsealed

Rows = list[dict[str, Any]]
TYPES = {"patient": "text", "ward": "text", "age": "int", "day": "int"}
DECLARED: dict[str, Any] = {
    "name": "visits",
    "unit": "patient",
    "types": TYPES,
    "bounds": {"age": (0, 10), "day": (1, 30)},
    "keys": {"ward": ["A", "B"]},
    "max_groups": 2,
    "budget": Budget(epsilon=50),
    "version": "1",
}
WIDER: dict[str, Any] = {"bounds": {"age": (-20, 40), "day": (1, 30)}}
SUM, COUNT = "SELECT SUM(age) AS s FROM visits", "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, SUM(age) AS s FROM visits GROUP BY ward"
CROWD: Rows = [{"patient": f"p{i}", "ward": "ABC"[i % 3], "age": i * 7 - 30, "day": 1 + i} for i in range(12)]


def curator(rows: Any = CROWD, *, ledger: str = ":memory:", engine: Any = None, **declared: Any) -> Curator:
    found = Curator.for_tests(ledger, engine=engine or Memory(), bits=SeededBits(5))
    found.protect(rows, **DECLARED | declared)
    return found


def redeclared(rows: Any = CROWD, *, engine: Any = None, **declared: Any) -> Curator:
    """A curator whose table was asked about, and declared anew since."""
    found = curator(rows, engine=engine)
    found.protect(rows, **DECLARED | declared, change=True)
    return found


# ------------------------------------------------------------------------------------------------- what is asked next


def statistic(rows: Rows, reading: Reading) -> list[int]:
    """What is read for the first aggregate, by public group."""
    engine = Memory()
    engine.register("visits", rows, {name: Type(kind) for name, kind in TYPES.items()})
    found = unsealed(engine.read(reading))
    return [found.get(key, (0,))[0] for key in ((), ("A",), ("B",))]


OWNED = [("A", -500), ("A", 500), ("B", 500)]  # a ward, and an age beyond all bounds


@pytest.mark.parametrize(
    "change",
    [WIDER, {"bounds": {"age": (0, 4)}}, {"max_groups": 1}, {"max_rows": 2}, {"keys": {"ward": ["A"]}}],
    ids=["wider", "narrower", "groups", "rows", "keys"],
)
@pytest.mark.parametrize("sql", [SUM, BY_WARD])
def test_one_person_moves_a_sum_as_far_as_the_new_declaration_says(change: dict[str, Any], sql: str) -> None:
    """All that one person can own, of few values: no more than the noise was made for, and exactly as much by one."""
    measurement = planned(redeclared(**change), sql)
    program = measurement.program(QueryBudget(Fraction(1), Fraction(0)), measurement.facts)
    (measure,) = program.measures
    allowed = program.contribution.l1(measure.form.corners, [Fraction(1)] * len(measure.form.statistics))
    nobody = statistic(CROWD[:3], program.reading)
    furthest = 0
    for owned in (owned for size in (1, 2, 4) for owned in product(OWNED, repeat=size)):
        rows = [{"patient": "x", "ward": ward, "age": age, "day": day} for day, (ward, age) in enumerate(owned)]
        with_x = statistic([*CROWD[:3], *rows], program.reading)
        furthest = max(furthest, sum(abs(a - b) for a, b in zip(with_x, nobody, strict=True)))
    assert furthest == allowed


@pytest.mark.ci
def test_nobody_is_seen_after_a_change() -> None:
    for change in (WIDER, {"max_groups": 1, "keys": {"ward": ["A", "B", "C"]}}):
        found = audit.query(partial(redeclared, **change), [SUM, BY_WARD], CROWD, neighbours=6)
        assert found.passed, found.summary()


def test_a_forgotten_change_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: noise for the former bounds, values clipped to the new ones."""
    right = measurement_plan.MeasurementPlan.program

    def program(self: Any, *arguments: Any, **options: Any) -> Any:
        found, narrow = right(self, *arguments, **options), Fraction(1, 6)
        small = tuple(replace(m, scales=tuple(scale * narrow for scale in m.scales)) for m in found.measures)
        return replace(found, measures=small)

    monkeypatch.setattr(measurement_plan.MeasurementPlan, "program", program)
    found = audit.query(lambda rows: redeclared(rows, **WIDER), SUM, CROWD, neighbours=6)
    assert not found.passed


def test_added_and_removed_columns_are_there_and_gone() -> None:
    rows = [row | {"pain": 5} for row in CROWD]
    after = redeclared(rows, types=TYPES | {"pain": "int"}, bounds={"pain": (0, 10)})
    assert after.ask("SELECT SUM(pain) AS s FROM visits", epsilon=20)
    without = {name: kind for name, kind in TYPES.items() if name != "age"}
    after.protect(rows, **DECLARED | {"types": without, "bounds": {}}, change=True)
    with pytest.raises(UnsupportedQuery):
        after.ask(SUM, epsilon=1)
    assert after.verify()


def test_another_type_is_another_reading(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("patient,ward,age,day\n" + "".join(f"p{i},07,{i},1\n" for i in range(9)))
    after = redeclared(str(path), types=TYPES | {"ward": "int"}, keys={"ward": [7]}, engine=DuckDB())
    answer = after.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=20)
    assert [row["ward"] for row in answer] == [7]


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"unit": "ward"}, "unit"),
        ({"unit": None}, "unit"),
        ({"unit": ("patient", "ward")}, "unit"),
        ({"types": TYPES | {"patient": "int"}}, "types['patient']"),
        ({"neighbours": "replace"}, "neighbours"),
        ({"account": "others"}, "account"),
        ({"budget": Budget(epsilon=100)}, "budget"),
        ({"identity": "another"}, "identity"),
    ],
)
def test_what_the_guarantee_rests_on_never_changes(change: dict[str, Any], name: str) -> None:
    held = curator(identity="visits")
    head, answer = held.verify(), held.ask(COUNT, epsilon=1)
    with pytest.raises(InvalidParameter) as caught:
        held.protect(CROWD, **DECLARED | {"identity": "visits"} | WIDER | change, change=True)
    assert caught.value.name == name
    assert (held.verify().sequence, held.ask(COUNT, epsilon=1).to_arrow()) == (head.sequence + 2, answer.to_arrow())


def test_without_change_the_difference_is_told_and_nothing_happens() -> None:
    held = curator()
    answer = held.ask(SUM, epsilon=1)
    with pytest.raises(DeclarationChanged) as caught:
        held.protect([], **DECLARED | WIDER)
    assert caught.value.differences == ("bounds of age: 0 to 10 -> -20 to 40",)
    assert "change=True" in caught.value.hint
    again = held.ask(SUM, epsilon=1)
    assert (again.replayed, again.to_arrow()) == (True, answer.to_arrow())
    assert held.ask("SELECT SUM(day) AS s FROM visits", epsilon=1)  # of the rows as they were


def test_what_was_spent_stays_spent() -> None:
    held = curator()
    held.ask(SUM, epsilon=7)
    held.protect(CROWD, **DECLARED | WIDER, change=True)
    assert held.budget("visits").spent == PureDP(7)


# ------------------------------------------------------------------------------------------------------- what was kept


def test_a_stored_answer_is_given_for_its_own_declaration_alone() -> None:
    engine = Spy()
    held = curator(engine=engine)
    first = held.ask(SUM, epsilon=2)
    held.protect(CROWD, **DECLARED | WIDER, change=True)
    second = held.ask(SUM, epsilon=2)
    assert not second.replayed
    assert held.ask(SUM, epsilon=2).to_arrow() == second.to_arrow()
    held.protect(CROWD, **DECLARED, change=True)
    third = held.ask(SUM, epsilon=2)
    assert (third.replayed, third.to_arrow()) == (True, first.to_arrow())
    assert (engine.reads, held.budget("visits").spent) == (2, PureDP(4))


SHIFTED: dict[str, Any] = {"bounds": {"age": (-10, 0), "day": (1, 30)}}
"""Bounds under which one person moves a sum as far as before: noise and price are the same, the sum is not."""


def test_an_answer_of_the_same_price_is_still_another_one() -> None:
    held = curator()
    first = held.ask(SUM, epsilon=2)
    held.protect(CROWD, **DECLARED | SHIFTED, change=True)
    second = held.ask(SUM, epsilon=2)
    assert (second.replayed, second.event) == (False, first.event)


def test_nothing_is_derived_from_answers_of_another_declaration() -> None:
    held = curator()
    held.ask(BY_WARD, epsilon=5)
    held.protect(CROWD, **DECLARED | WIDER, change=True)
    assert not held.ask(f"{SUM} WHERE ward IN ('A', 'B')", epsilon=1).replayed
    assert not held.ask(BY_WARD, epsilon=1).replayed


def test_a_profile_is_of_its_own_declaration() -> None:
    held = curator()
    held.profile("visits", epsilon=1)
    assert held.ask(SUM, epsilon=1).coverage is not None
    held.protect(CROWD, **DECLARED | WIDER, change=True)
    assert held.ask(SUM, epsilon=1).coverage is None
    spent = held.budget("visits").spent
    held.profile("visits", epsilon=1)
    assert held.budget("visits").spent != spent


def test_a_model_is_of_its_own_declaration() -> None:
    held = curator(max_groups=1)
    learner, rows = DecisionTreeClassifier(epsilon=2, delta=0), "SELECT age, ward FROM visits"
    held.fit(learner, rows, target="ward")
    held.protect(CROWD, **DECLARED | WIDER | {"max_groups": 1}, change=True)
    assert not held.fit(learner, rows, target="ward").replayed_
    assert held.fit(learner, rows, target="ward").replayed_


def test_private_bounds_are_of_their_own_declaration() -> None:
    """A fact that was found out about a column is not taken for one of another type."""
    without: dict[str, Any] = {"bounds": {}}
    held = curator(**without)
    held.ask(SUM, epsilon=5)
    held.protect(CROWD, **DECLARED | without | {"types": TYPES | {"age": "float"}}, change=True)
    spent = held.budget("visits").spent
    assert not held.ask(SUM, epsilon=5).replayed
    assert held.budget("visits").spent != spent


@pytest.mark.parametrize("many", [False, True])
def test_a_key_belongs_to_the_question_as_it_was_declared(many: bool) -> None:
    held = curator()

    def ask() -> Any:
        return held.ask_many([SUM, BY_WARD], epsilon=2, key="k") if many else held.ask(SUM, epsilon=2, key="k")

    first = ask()
    held.protect(CROWD, **DECLARED | WIDER, change=True)
    with pytest.raises(KeyConflict):
        ask()
    held.protect(CROWD, **DECLARED, change=True)
    again = ask()
    assert (again if many else [again])[0].to_arrow() == (first if many else [first])[0].to_arrow()


STREAM = "SELECT day, SUM(age) AS s FROM visits GROUP BY day"


def stream(held: Curator) -> Any:
    return held.stream(STREAM, every=1, horizon=10, start=1, epsilon=5, periods=10, name="daily")


def test_a_stream_goes_on_only_with_the_noise_it_was_charged_for(tmp_path: Path) -> None:
    path = str(tmp_path / "book")
    with curator(ledger=path) as held:
        stream(held).release()
    with Curator.for_tests(path, engine=Memory(), bits=SeededBits(6)) as later:
        later.protect(CROWD, **DECLARED | WIDER, change=True)
        with pytest.raises(KeyConflict):
            stream(later)
        later.protect(CROWD, **DECLARED | {"max_rows": 1, "keys": {"ward": ["A", "B", "C"]}}, change=True)
        stream(later).release()  # what changed has nothing to do with it
        assert later.budget("visits").spent == PureDP(5)


def test_a_stream_that_is_open_goes_on_as_it_was_charged() -> None:
    held = curator()
    opened = stream(held)
    first = opened.release()
    held.protect(CROWD, **DECLARED | WIDER, change=True)
    second = opened.release()
    assert len(first) == len(second) == 1
    assert held.budget("visits").spent == PureDP(5)
    held.protect(CROWD, **DECLARED | {"types": TYPES | {"age": "float"}}, change=True)
    with pytest.raises(DiscreetError):  # its reading does not fit the table any more, and no row is touched
        opened.release()


# --------------------------------------------------------------------------------------------------------- two curators


def both(path: Path) -> tuple[Curator, Curator, Spy]:
    """One that was opened before a change, and the one that made it."""
    engine = Spy()
    stale = curator(ledger=str(path), engine=engine)
    fresh = Curator.for_tests(str(path), engine=Memory(), bits=SeededBits(7))
    fresh.protect(CROWD, **DECLARED | WIDER, change=True)
    return stale, fresh, engine


ASKED: dict[str, Callable[[Curator], object]] = {
    "ask": lambda held: held.ask(SUM, epsilon=1),
    "joined": lambda held: held.ask("SELECT COUNT(*) AS n FROM visits v JOIN visits w USING (patient)", epsilon=1),
    "ask_many": lambda held: held.ask_many([COUNT, SUM], epsilon=1),
    "explain": lambda held: held.explain(SUM, epsilon=1),
    "rehearse": lambda held: held.rehearse(SUM),
    "choose_epsilon": lambda held: held.choose_epsilon(SUM),
    "profile": lambda held: held.profile("visits", epsilon=1),
    "fit": lambda held: held.fit(
        DecisionTreeClassifier(epsilon=1, delta=0), "SELECT age, ward FROM visits", target="ward"
    ),
    "stream": stream,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ASKED)
def test_whoever_missed_a_change_answers_nothing(tmp_path: Path, way: str) -> None:
    stale, fresh, engine = both(tmp_path / "book")
    with stale, fresh:
        head = fresh.verify()
        with pytest.raises(DeclarationChanged) as caught:
            ASKED[way](stale)
        assert caught.value.differences == ("bounds of age: 0 to 10 -> -20 to 40",)
        assert (engine.reads, fresh.verify()) == (0, head)
        stale.protect(CROWD, **DECLARED | WIDER)
        if way != "joined":
            assert ASKED[way](stale)


def test_what_was_stored_is_not_given_by_whoever_missed_a_change(tmp_path: Path) -> None:
    with curator(ledger=str(tmp_path / "book")) as stale:
        stale.ask(SUM, epsilon=1)
        with Curator.for_tests(str(tmp_path / "book"), engine=Memory(), bits=SeededBits(7)) as fresh:
            fresh.protect(CROWD, **DECLARED | WIDER, change=True)
        with pytest.raises(DeclarationChanged):
            stale.ask(SUM, epsilon=1)


def test_a_question_that_has_begun_is_finished_as_it_was_charged(tmp_path: Path) -> None:
    """Somebody changes the table while it is read: the answer is that of the declaration it was planned by."""
    path, engine = str(tmp_path / "book"), Spy()

    def change() -> None:
        engine.before = lambda: None
        with Curator.for_tests(path, engine=Memory(), bits=SeededBits(7)) as fresh:
            fresh.protect(CROWD, **DECLARED | WIDER, change=True)

    with curator(ledger=path, engine=engine) as held:
        expected = held.explain(SUM, epsilon=1).event
        engine.before = change
        assert held.ask(SUM, epsilon=1).event == expected
        with pytest.raises(DeclarationChanged):
            held.ask(COUNT, epsilon=1)
        held.protect(CROWD, **DECLARED | WIDER)
        assert not held.ask(SUM, epsilon=1).replayed  # what was stored meanwhile is of the former declaration
        assert held.budget("visits").spent == PureDP(2)
        held.verify()


def test_two_who_change_at_once_cannot_both_have_seen_the_same(tmp_path: Path) -> None:
    with curator(ledger=str(tmp_path / "book")) as held:
        seen = held._ledger.declaration("visits")
        held.protect(CROWD, **DECLARED | WIDER, change=True)
        with pytest.raises(DeclarationChanged, match="in the meantime"):
            held._catalog.protect(CROWD, **DECLARED | {"max_rows": 5}, replacing=seen)


# -------------------------------------------------------------------------------------------------------------- mutants


def _no_declaration(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(measurement_plan, "declaration", lambda table: table.name)


def _no_declaration_of_profiles(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replay, "declaration", lambda table: table.name)


def _nobody_looks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Catalog, "require_current", lambda *_: None)


@pytest.mark.parametrize(
    ("mistake", "check"),
    [
        (_no_declaration, test_an_answer_of_the_same_price_is_still_another_one),
        (_no_declaration_of_profiles, test_a_profile_is_of_its_own_declaration),
        (_nobody_looks, test_what_was_stored_is_not_given_by_whoever_missed_a_change),
    ],
)
def test_mistakes_are_seen(tmp_path: Path, mistake: Callable[[Any], None], check: Callable[..., None]) -> None:
    arguments = (tmp_path,) if check.__code__.co_argcount else ()
    with pytest.MonkeyPatch.context() as patch:
        mistake(patch)
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - pytest's own failure is no Exception
            check(*arguments)
    assert not isinstance(caught.value, KeyboardInterrupt)


def test_the_ledger_tells_every_change(tmp_path: Path) -> None:
    stale, fresh, _ = both(tmp_path / "book")
    stale.close()
    fresh.close()
    with Ledger(str(tmp_path / "book"), read_only=True) as ledger:
        kinds = [entry.kind for entry in ledger.history("visits")]
        assert kinds == ["open", "attach", "attach"]
        ledger.verify()
