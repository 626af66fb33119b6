"""Private groups of people who are in many: found in rounds by weights, and watched on neighbours."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from discreet import Budget, Curator, audit
from discreet.engines import Memory
from discreet.measurement.program.program import Program, ReleaseFormat, choose
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.selection import OptimalGroupSelection, Threshold, WeightedGroupSelection
from discreet.mechanisms import WeightedSelection
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours, events
from discreet.sql.select import parse

Row = dict[str, Any]
WORDS = "SELECT word FROM notes GROUP BY word"
COUNTED = "SELECT word, COUNT(*) AS n FROM notes GROUP BY word"


def notes(people: int = 60, words: int = 7) -> list[Row]:
    """Everybody has a few words out of many, some often, and one of their own."""
    several = [
        {"id": i, "word": f"w{(i * i + j * j * j) % words}"}
        for i in range(people)
        for j in range(1 + i % 9)
        for _ in "ab"
    ]
    return [*several, *({"id": i, "word": f"own {i}"} for i in range(0, people, 3)), {"id": None, "word": "nobody's"}]


def curator(rows: list[Row], **declared: Any) -> Curator:
    made = Curator.for_tests(engine=declared.pop("engine", None) or Memory(), bits=SeededBits(5))
    given: dict[str, Any] = {"max_groups": 9, "max_rows": 30, "budget": Budget(epsilon=100, delta="1e-2")} | declared
    made.protect(rows, name="notes", unit="id", types={"id": "int", "word": "text"}, **given)
    return made


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_neighbours_differ_by_what_noise_covers(relation: Neighbours) -> None:
    asked = [WORDS, COUNTED]
    found = audit.query(
        lambda rows: curator(rows, neighbours=relation), asked, notes(30), epsilon=3, delta="1e-3", neighbours=3
    )
    assert found.passed, found.summary()


def mutated(name: str, value: Any, owner: type = WeightedGroupSelection) -> audit.QueryAudit:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, value)
        return audit.query(curator, WORDS, notes(30), epsilon=3, delta="1e-3", neighbours=3)


def test_mutants_are_seen() -> None:
    """Weights of one whatever a person has; every word shown; weights that noise is not made for."""
    whole: Callable[..., int] = lambda self, keys: 1 << self.exponent  # noqa: ARG005, E731
    assert not mutated("weight", whole, WeightedSelection).passed
    assert not mutated("find", lambda self, reading, read, _: sorted(read(self.reading(reading)))).passed
    assert not mutated("_weight", lambda _, numbers: 1000 * sum(numbers)).passed


@pytest.mark.ci
def test_words_are_found_in_rounds_and_counted_if_asked() -> None:
    """People's own words stay hidden; reads are one for each round, and one more for counts."""
    reads: list[Reading] = []

    class Watching(Memory):
        def read(self, reading: Reading) -> ExactGroups:
            reads.append(reading)
            return super().read(reading)

    made = curator(notes(300), engine=Watching())
    answer = made.ask(WORDS, epsilon=4, delta="1e-6")
    assert {record["word"] for record in answer.records} == {f"w{i}" for i in range(7)}
    assert [reading.spread is not None for reading in reads] == [True, True]
    assert reads[1].spread is not None
    assert {word for (word,) in reads[1].spread.without} <= {f"w{i}" for i in range(7)}
    assert any("by people's weights" in note for note in answer.notes)
    assert answer.event == events.Composed([events.Approx(4, "1e-6")])
    reads.clear()
    counted = made.ask(COUNTED, epsilon=4, delta="1e-6")
    assert [reading.spread is not None for reading in reads] == [True, True, False]
    assert reads[2].public_keys == tuple((record["word"],) for record in counted.records)
    assert made.ask(WORDS, epsilon=4, delta="1e-6").replayed
    assert made.ask(COUNTED, epsilon=3, delta="1e-6").replayed


def test_no_words_are_an_answer_too() -> None:
    made = curator(notes(2))
    assert len(made.ask(COUNTED, epsilon=1, delta="1e-6")) == 0
    assert len(made.ask(WORDS, epsilon=1, delta="1e-6")) == 0
    assert len(made.rehearse(WORDS, epsilon=1, delta="1e-6")) > 0


def program(sql: str, limits: Limits, edition: ReleaseFormat = ReleaseFormat.NOW, **options: Any) -> Program:
    columns = {name: ColumnSchema(name=name, type=kind) for name, kind in (("id", Type.INT), ("word", Type.TEXT))}
    schema = TableSchema(name="notes", columns=columns, unit="id", limits=limits)
    given: dict[str, Any] = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)} | options
    return choose(parse(sql, {"notes": schema}), schema, edition=edition, **given)


def test_the_selection_is_chosen_by_public_facts() -> None:
    assert isinstance(program(WORDS, Limits(1, 1)).selection, OptimalGroupSelection)
    assert isinstance(program(WORDS, Limits(10, 1)).selection, WeightedGroupSelection)
    assert isinstance(
        program(WORDS, Limits(10, 1), ReleaseFormat.UNCUT).selection, OptimalGroupSelection
    )  # what was kept is unpacked
    assert isinstance(program(COUNTED, Limits(10, 1)).selection, Threshold)
    assert isinstance(program(COUNTED, Limits(10, 30)).selection, WeightedGroupSelection)
    assert isinstance(program(WORDS, Limits(10, 1), epsilon=Fraction(1, 10**7)).selection, OptimalGroupSelection)
    rolled = "SELECT word, COUNT(*) AS n FROM notes GROUP BY ROLLUP (word)"
    assert not isinstance(program(rolled, Limits(10, 30)).selection, WeightedGroupSelection)
    for made in (program(WORDS, Limits(10, 1)), program(COUNTED, Limits(10, 30))):
        assert made.selection is not None
        assert made.readings[0].spread is not None
