"""A plain clinic for single attacks: one row of a patient, curators and pairs of them, questions with their budget."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from discreet.audit.queries.recorder import RecordedRelease, RecordingEngine, ask
from discreet.curator import Curator, Program
from discreet.engines import DuckDB, Engine, Memory
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Loss
from tests.curator.fuzz import Question
from tests.engines.tables import arrow
from tests.redteam.judge import Pair
from tests.redteam.salts import same_salt

Row = dict[str, Any]

TYPES = {
    "patient": Type.INT,
    "ward": Type.TEXT,
    "kind": Type.TEXT,
    "age": Type.INT,
    "charge": Type.FLOAT,
    "weight": Type.FLOAT,
    "note": Type.TEXT,
    "day": Type.DATE,
    "smoker": Type.BOOL,
}
DECLARED: dict[str, Any] = {
    "types": {name: kind.value for name, kind in TYPES.items()},
    "bounds": {"age": (0, 120), "charge": (0, 1000)},
    "keys": {"ward": ["A", "B", "C"]},
    "unit": "patient",
    "max_groups": 2,
    "max_rows": 2,
    "version": "1",
}
PURE, APPROXIMATE = Budget(epsilon=1000), Budget(epsilon=1000, delta=Fraction(1, 10))


class Untouchable(Memory):
    """An engine from which nothing may be read."""

    def read(self, reading: Reading) -> ExactGroups:
        raise AssertionError(reading)


def row(patient: Any = 1, **values: Any) -> Row:
    """A visit like many others."""
    made: Row = {"patient": patient, "ward": "A", "kind": "check", "age": 44, "charge": 12.5, "weight": 70.0}
    return made | {"note": "12", "day": dt.date(2024, 2, 29), "smoker": True} | values


CROWD: list[Row] = [row(i, ward="ABC"[i % 3], age=20 + i, charge=10.0 * i) for i in range(12)]


def clinic(
    rows: Sequence[Row] = CROWD,
    *,
    engine: Engine | None = None,
    budget: Loss = PURE,
    seed: int = 1,
    ledger: str = ":memory:",
    **declared: Any,
) -> Curator:
    """A curator of these rows, in the form that its engine takes."""
    made = engine or Memory()
    curator = Curator.for_tests(ledger, engine=made, bits=SeededBits(seed))
    inner = made.inner if isinstance(made, RecordingEngine) else made
    source = arrow(rows, TYPES) if isinstance(inner, DuckDB) else list(rows)
    curator.protect(source, name="visits", budget=budget, **(DECLARED | declared))
    return curator


def neighbours(
    rows: Sequence[Row], other: Sequence[Row], engine: Callable[[], Engine] = Memory, **declared: Any
) -> Pair:
    """Two curators that differ in their rows alone."""
    one, two = RecordingEngine(engine()), RecordingEngine(engine())
    with same_salt():
        return Pair((clinic(rows, engine=one, **declared), one), (clinic(other, engine=two, **declared), two))


def asking(
    sql: str, epsilon: Any = 1, delta: Any = 0, limits: Limits | None = None, *, private: bool = False
) -> Question:
    """A question with its budget."""
    return Question(
        sql=sql,
        epsilon=Fraction(epsilon),
        delta=Fraction(delta),
        limits=limits,
        private=private,
        grouped="GROUP BY" in sql,
    )


def noises(
    sql: str, rows: Sequence[Row] = CROWD, *, epsilon: Any = 1, delta: Any = 0, **declared: Any
) -> list[RecordedRelease]:
    """What entered and left every noise of a question."""
    engine = RecordingEngine(declared.pop("engine", None) or Memory())
    with same_salt():
        curator = clinic(rows, engine=engine, **declared)
    seen = ask(curator, engine, asking(sql, epsilon, delta))
    assert seen.status == "answered", seen.error
    return seen.noises


def planned(curator: Curator, sql: str, **asked: Any) -> Program:
    """The program of a question."""
    found: Any = curator.explain(sql, **({"epsilon": 1} | asked))
    program: Program = getattr(found, "program", found)
    return program


def spent(curator: Curator) -> str:
    """What the account has spent, and how many entries it has."""
    return f"{curator.budget('visits').spent} in {len(curator.history('visits'))} entries"


def chain(error: BaseException | None) -> list[BaseException]:
    """An error, its causes and its contexts."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__]
    return found
