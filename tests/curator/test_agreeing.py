"""CUBE, ROLLUP and GROUPING SETS by public keys: totals are the sums of their parts, as released, and stay so."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget
from discreet.engines import DuckDB, Memory
from discreet.measurement.program.program import Program, ReleaseFormat
from discreet.noise import SeededBits
from discreet.privacy import Budget, Neighbours
from tests.cases import try_all
from tests.curator.clinic import DECLARED, TYPES, visits
from tests.curator.editions import packed
from tests.curator.spies import clinic, planned
from tests.curator.test_shapes import frame
from tests.effort import some

KEYS = {"ward": ["A", "B", "C"], "kind": ["check", "fever", "fracture", "other"]}
SUMS = "COUNT(*) AS n, COUNT(charge) AS k, SUM(charge) AS s, SUM(age) AS a, AVG(charge) AS m"
CUBE = f"SELECT ward, kind, {SUMS} FROM visits GROUP BY CUBE (ward, kind)"
ROLLUP = "SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, kind)"
SETS = "SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (kind), ())"
SOME = "SELECT ward, age > 40 AS old, COUNT(*) AS n, SUM(charge) AS s FROM visits GROUP BY CUBE (ward, old)"
RICH = Budget(epsilon=100, delta="1e-3")


def by_rows(**declared: Any) -> Curator:
    return clinic(RICH, **{"unit": None, "keys": KEYS, **declared})


def check_sums(answer: Any, names: str) -> None:
    """Every total is the sum of its parts, in doubles, to the last bit."""
    rows = {(row["ward"], row["kind"]): row for row in answer.records}
    wards, kinds = (list(dict.fromkeys(key[i] for key in rows if key[i] is not None)) for i in (0, 1))
    for name in names:
        if (None, None) in rows:
            whole = rows[None, None][name]
            if (wards[0], None) in rows:
                assert sum(rows[ward, None][name] for ward in wards) == whole
            if (None, kinds[0]) in rows:
                assert sum(rows[None, kind][name] for kind in kinds) == whole
        for ward in wards:
            if (ward, kinds[0]) in rows and (ward, None) in rows:
                assert sum(rows[ward, kind][name] for kind in kinds) == rows[ward, None][name]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("delta", [0, "1e-5"])
def test_totals_are_sums_of_their_parts(delta: Any) -> None:
    def check(case: tuple[str, str, dict[str, Any]]) -> None:
        text, names, declared = case
        curator = by_rows(**declared)
        answer = curator.ask(text, epsilon="0.5", delta=delta)
        check_sums(answer, names)
        again = curator.ask(f"{text} HAVING n > -100000 ORDER BY n DESC", epsilon="0.5", delta=delta)
        assert again.replayed
        assert sorted(row["n"] for row in again) == sorted(row["n"] for row in answer)
        for row in answer:
            assert row["n_low"] <= row["n"] <= row["n_high"]

    many = {"ward": [*"ABC", *(f"ward {i}" for i in range(30))], "kind": KEYS["kind"]}
    people = {"unit": "patient", "max_groups": 1, "max_rows": 2}
    cases: list[tuple[str, str, dict[str, Any]]] = [(CUBE, "nksa", {}), (ROLLUP, "n", {}), (SETS, "n", {})]
    cases += [
        (CUBE, "nksa", {"keys": many}),
        (CUBE, "nksa", people),
        (ROLLUP, "n", {"neighbours": "replace", **people}),
    ]
    try_all(some(cases, 4), check)


def test_the_law_is_the_quieter_one_and_quieter_than_apart() -> None:
    """The product of all variances: of the law that is taken, of the other one, and of groupings each by itself."""
    keys = "ward, kind, age > 40 AS old"
    text = f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, kind, old)"
    curator, terms = by_rows(), QueryBudget(Fraction(1), Fraction("1e-5"))
    plan = planned(curator, text)
    taken = variances(plan.program(terms, plan.facts))
    for law in ("laplace", "gaussian"):
        assert taken <= variances(plan.program(terms, plan.facts, law)) * (1 + 1e-12)
    assert taken < 1e-3 * variances(plan.program(terms, plan.facts, edition=ReleaseFormat.UNCUT))
    forced = plan.program(terms, plan.facts, "gaussian")
    apart = plan.program(terms, plan.facts, "gaussian", edition=ReleaseFormat.UNCUT)
    name = apart.question.aggregates[0].name
    noisy = [one.estimators[name].variance(one.noise) for one in forced.groupings]
    assert all(each < apart.estimators[name].variance(apart.noise) for each in noisy)


def variances(program: Program) -> float:
    name = program.question.aggregates[0].name
    return math.prod(float(one.estimators[name].variance(one.noise)) for one in program.groupings)


def test_numbers_work_on_and_notes_tell_what_a_total_counts() -> None:
    curator = by_rows()
    text = ROLLUP.replace("COUNT(*) AS n", "COUNT(*) AS n, 2 * COUNT(*) AS twice, COUNT(*) / 10 AS tenth")
    answer = curator.ask(f"{text} HAVING COUNT(*) > 5 ORDER BY n DESC LIMIT 4", epsilon=5, delta="1e-5")
    assert len(answer) == 4
    assert all(row["twice"] == pytest.approx(2 * row["n"]) for row in answer)
    assert any("Totals are the sums of their parts" in note for note in answer.notes)
    assert answer.scope == "what was counted"
    check_sums(curator.ask(ROLLUP, epsilon=5, delta="1e-5").adjusted(), "")
    assert curator.rehearse(ROLLUP).columns == ("ward", "kind", "n", "n_low", "n_high")
    inner = "SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, kind)"
    windows = f"SELECT ward, kind, n, SUM(n) OVER () AS t FROM ({inner})"
    assert len(curator.ask(windows, epsilon=1, delta="1e-5")) == 20


def test_intervals_hold_the_truth() -> None:
    """At 99.9 % confidence, of 20 groups of 6 questions hardly any is missed: more than 4 of 600 are, once in 10^3."""
    rows = [row for row in visits(3, patients=200) if row["ward"] in KEYS["ward"]]
    truth = {
        (ward, kind): sum(ward in (None, row["ward"]) and kind in (None, row["kind"]) for row in rows)
        for ward in (*KEYS["ward"], None)
        for kind in (*KEYS["kind"], None)
    }
    missed = 0
    for seed in range(6):
        curator = Curator.for_tests(engine=Memory(), bits=SeededBits(seed))
        curator.protect(rows, name="visits", budget=RICH, **{**DECLARED, "keys": KEYS})
        text = "SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, kind)"
        answer = curator.ask(text, epsilon="0.3", delta="1e-5" if seed % 2 else 0, confidence="0.999")
        missed += sum(not row["n_low"] <= truth[row["ward"], row["kind"]] <= row["n_high"] for row in answer)
    assert missed <= 4


def test_engines_agree() -> None:
    found = []
    for engine in (Memory(), DuckDB(threads=1)):
        rows: Any = visits(3, patients=60)
        if isinstance(engine, DuckDB):
            rows = frame(rows, TYPES)
        curator = Curator.for_tests(engine=engine, bits=SeededBits(3))
        curator.protect(rows, name="visits", budget=RICH, **{**DECLARED, "keys": KEYS})
        found.append(curator.ask(CUBE, epsilon=1, delta="1e-5").records)
        curator.close()
    assert found[0] == found[1]


def made(relation: Neighbours) -> Any:
    """Makes curators of people with a few visits."""

    def curator(rows: Any) -> Curator:
        found = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
        options: dict[str, Any] = {"unit": "patient", "max_groups": 2, "max_rows": 2, "neighbours": relation}
        found.protect(list(rows), name="visits", budget=RICH, **{**DECLARED, **options, "keys": KEYS})
        return found

    return curator


def test_nobody_uses_more_than_was_paid() -> None:
    found = audit.query(made(Neighbours.REPLACE), SOME, visits(3, patients=20), neighbours=2, delta="1e-3")
    assert found.passed, found.summary()
    assert found.share > Fraction(1, 5)


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Neighbours))
def test_nobody_ever_uses_more_than_was_paid(relation: Neighbours) -> None:
    for delta in ("1e-3", "1e-5", "0"):
        asked = [CUBE, ROLLUP, SOME]
        found = audit.query(made(relation), asked, visits(3, patients=20), neighbours=6, delta=delta)
        assert found.passed, found.summary()


def test_what_was_released_before_stays_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored cube of an earlier edition has the noise of one scale, and answers the same question for nothing."""
    curator, usual = by_rows(), MeasurementPlan._choose_program
    with monkeypatch.context() as patch:
        patch.setattr(
            MeasurementPlan, "_choose_program", lambda *known, **more: usual(*known, **{**more, "edition": 5})
        )
        patch.setattr("discreet.curator.asking.performer.pack", packed(ReleaseFormat.UNCUT))
        old = curator.ask(ROLLUP, epsilon=1, delta=0)
    again = curator.ask(ROLLUP, epsilon=1, delta=0)
    assert again.replayed
    assert again.records == old.records
    assert all(isinstance(row["n"], int) for row in again)
    new = curator.ask(ROLLUP, epsilon=2, delta=0)
    assert not new.replayed
    check_sums(new, "n")
