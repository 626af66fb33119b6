"""Hostile questions: refused before anything is read or charged, or alike for neighbours in all but noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.audit.queries.recorder import RecordingEngine
from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import DiscreetError, UnsupportedQuery
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.model.readings import Reading
from tests.cases import every
from tests.corpus.hostile.aggregates import RANKS
from tests.corpus.hostile.case import Case
from tests.corpus.hostile.every import HOSTILE
from tests.corpus.hostile.people import NAMED
from tests.corpus.world import World
from tests.corpus.worlds import clinic, school, shop
from tests.curator.fuzz import Question
from tests.effort import some
from tests.redteam.changed import changed
from tests.redteam.judge import Pair
from tests.redteam.salts import same_salt

PATIENTS, SOMEBODY = 38, 7  # somebody with six visits and four laboratory results
EPSILON, DELTA = Fraction(1), Fraction(1, 10**4)
TIGHT: dict[str, Any] = {"max_groups": 2, "max_rows": 2}
REFUSED = [case for case in HOSTILE if not case.harmless]
HARMLESS = [pytest.param(case, id=case.name) for case in HOSTILE if case.harmless and case.name not in RANKS]
DRAWN = [pytest.param(sql, id=name) for name, sql in RANKS.items()]


class Closed(Memory):
    """From which nothing may be read, once public keys have been."""

    is_closed = False

    def read(self, reading: Reading) -> ExactGroups:
        assert not self.is_closed, reading
        return super().read(reading)


@pytest.fixture(scope="module")
def closed() -> Iterator[dict[str, Curator]]:
    """Curators whose tables nobody may read."""
    made = {}
    for world in (clinic.world(PATIENTS), school.world(PATIENTS), shop.world(PATIENTS)):
        engine = Closed()
        made[world.name] = world.curator(engine)
        engine.is_closed = True
    yield made
    for curator in made.values():
        curator.close()


def _standing(curator: Curator) -> list[Any]:
    return [(name, str(curator.budget(name).spent), len(curator.history(name))) for name in curator.accounts()]


@pytest.mark.ci
@every("case", some(REFUSED, 4))
def test_is_refused_before_anything_is_read_or_charged(case: Case, closed: dict[str, Curator]) -> None:
    curator = closed[case.world]
    before = _standing(curator)
    with pytest.raises(DiscreetError) as refused:
        curator.ask(case.sql, **({"epsilon": EPSILON, "delta": DELTA} | dict(case.asked)))
    assert str(refused.value)
    if isinstance(refused.value, UnsupportedQuery):
        assert refused.value.reason
        assert refused.value.hint
    assert _standing(curator) == before


@pytest.mark.slow
@every("case", [case for case in REFUSED if not case.asked])
def test_explain_and_rehearse_refuse_it_too(case: Case, closed: dict[str, Curator]) -> None:
    for door in (closed[case.world].explain, closed[case.world].rehearse):
        with pytest.raises(DiscreetError):
            door(case.sql, epsilon=EPSILON, delta=DELTA)


def _neighbours(change: Any = None) -> Pair:
    """The clinic with and without somebody, kept by the same salt."""
    world = clinic.world(PATIENTS)
    engines = [RecordingEngine(Memory()) if change is None else changed(change) for _ in range(2)]
    with same_salt():
        one, other = (
            _held(state, engine) for state, engine in zip((world, world.without(SOMEBODY)), engines, strict=True)
        )
    return Pair((one, engines[0]), (other, engines[1]))


def _held(world: World, engine: RecordingEngine) -> Curator:
    return world.curator(engine, **TIGHT)


def _question(sql: str) -> Question:
    grouped = "GROUP BY" in sql
    return Question(sql=sql, epsilon=EPSILON, delta=DELTA, limits=None, private=grouped, grouped=grouped)


@pytest.fixture(scope="module")
def neighbours() -> Pair:
    return _neighbours()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", HARMLESS)
def test_is_alike_for_neighbours(case: Case, neighbours: Pair) -> None:
    """The same status, shape and charge, and every input of noise no farther apart than its event says."""
    seen = neighbours.judge(_question(case.sql))
    assert seen.status in ("answered", "refused")
    if seen.answer is not None:
        assert seen.answer.replayed or seen.noises


@pytest.mark.parametrize("sql", DRAWN)
def test_a_rank_is_alike_for_neighbours(sql: str, neighbours: Pair) -> None:
    """Ranks are drawn, not added to: status, shape, charge and the number of reads are the same on both sides."""
    seen = []
    for curator, engine in (neighbours.one, neighbours.other):
        before = len(engine.seen)
        answer = curator.ask(sql, epsilon=EPSILON, delta=DELTA)
        seen.append((answer.columns, len(answer), answer.cost, answer.event, answer.notes, len(engine.seen) - before))
    assert seen[0] == seen[1]
    assert seen[0][-1] > 0


@pytest.mark.ci
def test_most_of_these_are_answered(neighbours: Pair) -> None:
    """A judge who never sees noise would prove nothing."""
    seen = [neighbours.judge(_question(case.values[0].sql)) for case in some(HARMLESS, 4)]  # type: ignore[union-attr]
    assert sum(one.status == "answered" for one in seen) > len(seen) * 3 / 4


def test_mutant_nobody_is_bounded() -> None:
    """Without the bounding of rows, a join that multiplies is found out."""

    def unbounded(reading: Reading) -> Reading:
        return replace(reading, bounding=None)

    pair = _neighbours(unbounded)
    with pytest.raises(AssertionError):
        pair.judge(_question(NAMED["a join that multiplies"]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(*) AS n FROM visits WHERE patient_id <> 7"),
        ("SELECT SUM(charge) AS s FROM visits", "SELECT SUM(charge) AS s FROM visits WHERE NOT patient_id = 7"),
        ("SELECT COUNT(*) AS n FROM visits WHERE charge > 500", "SELECT COUNT(*) AS n FROM visits WHERE charge > 501"),
        ("SELECT COUNT(*) AS n FROM patients", "SELECT COUNT(*) AS n FROM patients WHERE patient_id IN (7)"),
        (
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
            "SELECT ward, COUNT(*) AS n FROM visits WHERE patient_id <> 7 GROUP BY ward",
        ),
    ],
)
def test_both_of_a_differencing_pair_are_paid(one: str, other: str) -> None:
    with clinic.world(PATIENTS).curator(Memory()) as curator:
        costs = [curator.ask(sql, epsilon=EPSILON, delta=0).cost for sql in (one, other)]
        assert [str(cost.details) for cost in costs] == ["epsilon=1", "epsilon=1"]
        assert str(curator.budget("visits").spent).startswith("epsilon=2")


def test_the_corpus_is_large_and_has_no_question_twice() -> None:
    assert len(HOSTILE) >= 110
    assert len({case.name for case in HOSTILE}) == len(HOSTILE)
    assert len({(case.sql, repr(case.asked)) for case in HOSTILE}) == len(HOSTILE)
