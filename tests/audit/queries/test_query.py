"""Audits of answers: an honest curator passes whatever it is asked, and each dishonest one is caught."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import audit
from discreet.audit.queries.query_audit import epsilon_below
from discreet.audit.queries.recorder import RecordedRelease
from discreet.curator import Curator, paid_release
from discreet.curator.asking import answer as answer_module
from discreet.engines import DuckDB, Memory
from discreet.errors import InvalidParameter, QueryFailed, UnknownTable, UnsupportedQuery
from discreet.ledger import Ledger
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.selection import Threshold
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.privacy import Budget, Neighbours, events
from tests.audit.held import OPTIONS, PURE, QUESTIONS, Factory, clinic
from tests.cases import every
from tests.curator.clinic import TYPES, visits
from tests.curator.fuzz import question
from tests.effort import rounds
from tests.engines.tables import arrow
from tests.open_groups import rows_of, unsealed
from tests.redteam.changed import Changed
from tests.redteam.worlds import world

ROWS = visits(3, patients=40)
COUNT, BY_WARD, SUM, MEDIAN, BY_KIND, PEOPLE = QUESTIONS


# ------------------------------------------------------------------------------------------------------ an honest one


@pytest.mark.ci
@pytest.mark.sampled(4)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
@pytest.mark.parametrize("unit", ["patient", None], ids=["patients", "rows"])
def test_an_honest_curator_passes(relation: Neighbours, unit: str | None) -> None:
    asked = [sql for sql in QUESTIONS if unit is not None or sql != PEOPLE]
    found = audit.query(clinic(neighbours=relation, unit=unit), asked, ROWS, neighbours=8)
    assert found.passed, found.summary()
    assert found.neighbours == 8
    assert found.share <= 1
    assert found.epsilon_lower <= found.epsilon_claimed == 1
    assert found.share > Fraction(9, 10)  # strangers at the ends of all bounds use what was paid


@pytest.mark.parametrize("seed", [0, 5, 10, pytest.param(15, marks=pytest.mark.slow)])
def test_random_questions_on_hostile_tables(seed: int) -> None:
    made = world(seed)
    asked = [question(seed + place, made.setting).sql for place in range(4)]
    given = Fraction(1, 100) if made.setting.delta else Fraction(0)

    def factory(rows: Any) -> Curator:
        return made.curator(Memory(), rows)

    first = factory(made.rows)
    answered = [sql for sql in asked if _explained(first, sql, given)]
    found = audit.query(factory, answered, made.rows, delta=given, neighbours=rounds(4, 2))
    assert len(answered) >= 3
    assert found.passed, found.summary()


def _explained(curator: Curator, sql: str, delta: Fraction) -> bool:
    try:
        curator.explain(sql, epsilon=1, delta=delta)
    except UnsupportedQuery:
        return False
    return True


def test_pure_noise_is_certified_to_the_last_bit() -> None:
    """With delta = 0 the certified bound is the sum of all movements, and one stranger reaches what was paid."""
    found = audit.query(clinic(budget=PURE), [COUNT, BY_WARD], ROWS, epsilon="1/2", neighbours=8)
    assert [each.share for each in found.questions] == [1, 1]
    assert [each.epsilon_lower for each in found.questions] == [0.5, 0.5]


@pytest.mark.ci
@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_frames_and_files_are_audited_where_they_are_read(form: str, tmp_path: Path) -> None:
    table: Any = arrow(ROWS, TYPES)
    if form == "csv":
        table = tmp_path / "visits.csv"
        lines = [",".join("" if v is None else str(v) for v in row.values()) for row in ROWS]
        table.write_text("\n".join([",".join(TYPES), *lines]) + "\n")
    if form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(table, tmp_path / "visits.parquet")
        table = tmp_path / "visits.parquet"
    found = audit.query(
        clinic(lambda: DuckDB(threads=1)), [COUNT, BY_WARD], table, neighbours=rounds(4, 2), rows=rounds(60, 30)
    )
    assert found.passed, found.summary()


def test_people_who_are_several_columns_together() -> None:
    found = audit.query(clinic(unit=("patient", "kind")), [COUNT, BY_WARD], ROWS, neighbours=6)
    assert found.passed, found.summary()
    assert found.unit == "patient and kind"


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_an_empty_table_has_strangers_for_neighbours(relation: Neighbours) -> None:
    found = audit.query(clinic(neighbours=relation), [COUNT], [], neighbours=5)
    assert found.passed
    assert found.neighbours == 5


# ------------------------------------------------------------------------------------------------------- dishonest ones


def caught(factory: Factory, sql: str | list[str] = BY_WARD, **options: Any) -> set[str]:
    """The kinds of violations; what was found must not pass."""
    found = audit.query(factory, sql, ROWS, **({"neighbours": 6} | options))
    assert not found.passed
    assert "FAILED" in found.summary()
    return {violation.kind for violation in found.violations}


def changing(change: Callable[[Reading], Reading]) -> Factory:
    return clinic(lambda: Changed(change))


def test_mutant_no_clipping() -> None:
    wide = 1 << 62

    def unclipped(reading: Reading) -> Reading:
        sums = (replace(s, low=-wide, high=wide) if s.kind == "sum" else s for s in reading.statistics)
        return replace(reading, statistics=tuple(sums))

    assert caught(changing(unclipped)) == {"movement"}


@pytest.mark.parametrize("more", [{"groups": 1}, {"rows": 1}], ids=str)
def test_mutant_looser_limits(more: dict[str, int]) -> None:
    def looser(reading: Reading) -> Reading:
        if reading.bounding is None:
            return reading
        wider = {name: getattr(reading.bounding, name) + extra for name, extra in more.items()}
        return replace(reading, bounding=replace(reading.bounding, **wider))

    assert caught(changing(looser)) == {"movement"}


def test_mutant_limits_are_ignored() -> None:
    assert caught(changing(lambda reading: replace(reading, bounding=None))) == {"movement"}


def test_mutant_half_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    right = AdditiveNoise.laplace.__func__  # type: ignore[attr-defined]

    def halved(cls: type[AdditiveNoise], *arguments: Any) -> AdditiveNoise:
        found: AdditiveNoise = right(cls, *arguments)
        return replace(found, scales=tuple(scale / 2 for scale in found.scales))

    monkeypatch.setattr(AdditiveNoise, "laplace", classmethod(halved))
    found = audit.query(clinic(budget=PURE), COUNT, ROWS, neighbours=6)
    assert {violation.kind for violation in found.violations} == {"movement"}
    assert (float(found.share), found.epsilon_lower) == (
        2.0,
        2.0,
    )  # twice the claim, and certified


def test_mutant_half_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Ledger.charge_all

    def cheap(ledger: Ledger, parts: Mapping[str, events.Event], **options: Any) -> Any:
        ((account, event),) = parts.items()
        assert isinstance(event, events.Composed)
        return right(ledger, {account: events.Composed(event.events[:1])}, **options)

    monkeypatch.setattr(Ledger, "charge_all", cheap)
    assert caught(clinic(budget=PURE), "SELECT SUM(age) AS s, SUM(charge) AS c FROM visits")  # it is refused, unread
    monkeypatch.setattr(paid_release.ChargeRun, "_require_paid", lambda *_: None)
    assert "uncharged" in caught(clinic(budget=PURE), "SELECT SUM(age) AS s, SUM(charge) AS c FROM visits")


def test_mutant_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record and replay cannot see it: the size of the noise can be heard."""
    monkeypatch.setattr(AdditiveNoise, "release", lambda _self, exact, _groups, _bits: rows_of(exact))
    assert caught(clinic()) == {"noise"}


@pytest.mark.ci
def test_mutant_noise_of_a_third_of_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    right = AdditiveNoise.release

    def quiet(measure: AdditiveNoise, columns: Any, groups: int, bits: Any) -> Any:
        noisy, exact = right(measure, columns, groups, bits), np.asarray(rows_of(columns), dtype=object)
        return exact + (noisy - exact) // 3

    monkeypatch.setattr(AdditiveNoise, "release", quiet)
    assert caught(clinic(), neighbours=14) == {"noise"}


class Fragile(Memory):
    """Fails on what only one table has."""

    def read(self, reading: Reading) -> ExactGroups:
        found = super().read(reading)
        if sum(number for numbers in unsealed(found).values() for number in numbers) % 2:
            raise QueryFailed
        return found


def test_mutant_a_failure_that_depends_on_data() -> None:
    assert "outcome" in caught(clinic(Fragile), COUNT)


def test_mutant_a_refusal_that_depends_on_data(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Curator.ask

    def picky(curator: Curator, *asked: Any, **options: Any) -> Any:
        answer = right(curator, *asked, **options)
        if len(curator._engine._rows["visits"]) > len(ROWS):  # type: ignore[attr-defined]
            raise UnsupportedQuery("Too many.", "Ask for fewer.")
        return answer

    monkeypatch.setattr(Curator, "ask", picky)
    assert "outcome" in caught(clinic(), COUNT)


def test_mutant_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("patient 7")

    monkeypatch.setattr(Curator, "ask", broken)
    found = audit.query(clinic(), COUNT, ROWS, neighbours=2)
    assert "crash" in {violation.kind for violation in found.violations}
    assert "patient 7" not in found.summary()


def test_mutant_notes_that_depend_on_data(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    class Telling(Memory):
        def read(self, reading: Reading) -> ExactGroups:
            read.append(len(self._rows["visits"]))
            return super().read(reading)

    monkeypatch.setattr(answer_module, "notes", lambda _program: (f"{read[-1]} rows were read.",))
    assert caught(clinic(Telling), COUNT) == {"notes"}


def test_mutant_everything_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Threshold, "select_groups", lambda _self, noisy, _exact, _releaser: [True] * len(noisy))
    assert "groups" in caught(clinic(), BY_KIND)


def test_mutant_a_threshold_that_one_person_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Threshold.of.__func__  # type: ignore[attr-defined]
    low = classmethod(lambda cls, *given: replace(right(cls, *given), smallest=2))
    monkeypatch.setattr(Threshold, "of", low)
    assert "threshold" in caught(clinic(), BY_KIND)


def test_mutant_bounds_that_are_read_from_the_data() -> None:
    def factory(rows: Any) -> Curator:
        ages = [row["age"] for row in rows if row["age"] is not None]
        return clinic(bounds={"age": (0, max(ages) + 1)})(rows)

    assert "declarations" in caught(factory, COUNT)


# ------------------------------------------------------------------------------------------------ what it will not do


def test_only_curators_for_tests_are_audited(tmp_path: Path) -> None:
    def real(rows: Any) -> Curator:
        curator = Curator(engine=Memory())
        curator.protect(rows, name="visits", budget=PURE, **OPTIONS)
        return curator

    with pytest.raises(InvalidParameter) as refused:
        audit.query(real, COUNT, ROWS)
    assert "for_tests" in refused.value.hint

    def filed(rows: Any) -> Curator:
        curator = Curator.for_tests(tmp_path / "ledger", engine=Memory(), bits=SeededBits(1))
        curator.protect(rows, name="visits", budget=PURE, **OPTIONS)
        return curator

    with pytest.raises(InvalidParameter) as refused:
        audit.query(filed, COUNT, ROWS)
    assert refused.value.name == "curator_factory"


def test_bad_questions_and_parameters() -> None:
    with pytest.raises(UnsupportedQuery):
        audit.query(clinic(), "SELECT * FROM visits", ROWS)
    wrong: list[dict[str, Any]] = [{"neighbours": 0}, {"rows": 0}, {"epsilon": 0}, {"sql": []}, {"name": "nobody"}]
    for each in wrong:
        options: dict[str, Any] = {"sql": COUNT} | each
        with pytest.raises((InvalidParameter, UnknownTable)):
            audit.query(clinic(), options.pop("sql"), ROWS, **options)


def test_questions_without_an_answer_do_not_pass() -> None:
    """A budget for one of two questions: the other was never tried, and nobody may think it was."""
    found = audit.query(clinic(budget=Budget(epsilon=1)), [COUNT, SUM], ROWS, neighbours=4)
    assert not found.violations
    assert not found.passed
    assert [each.sql for each in found.unanswered_queries] == [SUM]
    assert "InsufficientBudget" in found.summary()


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    audit.query(clinic(), COUNT, ROWS, neighbours=3, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.ci
def test_the_same_seed_tries_the_same() -> None:
    one, two = (audit.query(clinic(), [COUNT, SUM], ROWS, neighbours=5, bits=SeededBits(7)) for _ in range(2))
    assert one == two


def test_words_figures_and_charts() -> None:
    found = audit.query(clinic(), [COUNT, BY_KIND], ROWS, neighbours=4)
    told = found.summary()
    assert "Passed" in told
    assert "cannot show" in told
    assert json.loads(json.dumps(found.record))["questions"][0]["sql"] == COUNT
    spec = found.spec()
    assert [row["share"] for row in spec["data"]["values"]] == [float(each.share) for each in found.questions]


# ------------------------------------------------------------------------------------------------- the certified bound


def noise(scale: Fraction, *numbers: int, law: str = "laplace") -> RecordedRelease:
    found: Any = object.__new__(AdditiveNoise)
    for name, value in {"form": None, "law": law, "scales": (scale,) * len(numbers), "event": None}.items():
        object.__setattr__(found, name, value)
    return RecordedRelease(found, [()], [numbers], [()], 1)


def true_epsilon(weights: Callable[[Any], Any], move: int, delta: float, most: float) -> float:
    """The smallest at which the hockey-stick divergence of a law and its translation is at most delta."""
    k = np.arange(-2000, 2001)
    whole = weights(k).sum()
    law, moved = weights(k) / whole, weights(k - move) / whole
    low, high = 0.0, most
    for _ in range(100):
        middle = (low + high) / 2
        apart = float(np.maximum(law - np.exp(middle) * moved, 0).sum())
        low, high = (middle, high) if apart > delta else (low, middle)
    return high


@every("delta", ["1e-6", "0.01", "0.2"])
@every(("sigma", "move"), [("2", 1), ("2", 5), ("1/2", 2), ("30", 40)])
def test_no_gaussian_certificate_exceeds_the_true_epsilon(sigma: str, move: int, delta: str) -> None:
    """A tail is the best event for one number, but it is not the one that the divergence is largest at."""
    s = float(Fraction(sigma))
    high = true_epsilon(lambda k: np.exp(-(k**2) / (2 * s * s)), move, float(delta), 60.0)
    inputs = [[noise(Fraction(sigma), number, law="gaussian")] for number in (0, move)]
    for one, other in (inputs, inputs[::-1]):
        bound = epsilon_below(one, other, Fraction(delta))
        assert bound <= high + 1e-9
        assert bound > high / 2 or high < 0.1
    assert epsilon_below(inputs[0], inputs[1], Fraction(0)) == 0


@every("delta", ["0", "1e-6", "0.01", "0.2"])
@every(("scale", "move"), [("2", 1), ("2", 3), ("1/2", 2), ("7", 20)])
def test_no_certificate_exceeds_the_true_epsilon(scale: str, move: int, delta: str) -> None:
    b, d = float(Fraction(scale)), float(delta)
    high = true_epsilon(lambda k: np.exp(-np.abs(k) / b), move, d, move / b)
    bound = epsilon_below([noise(Fraction(scale), 0)], [noise(Fraction(scale), move)], Fraction(delta))
    assert bound <= high + 1e-9
    assert bound == pytest.approx(move / b) if not d else bound < move / b
    if d <= 0.01:
        assert bound > 0.9 * high - 0.03  # and it is near


def test_certificates_of_several_numbers() -> None:
    one, other = noise(Fraction(2), 0, 5, 7), noise(Fraction(2), 1, 3, 7)
    assert epsilon_below([one], [other], Fraction(0)) == 1.5
    assert epsilon_below([one, one], [other, other], Fraction(0)) == 3.0
    chance = 1 / (1 + math.exp(-1 / 2)) ** 2
    assert epsilon_below([one], [other], Fraction(1, 100)) == pytest.approx(1.5 + math.log1p(-0.01 / chance))
