"""Every verb that is paid, with a small table for it, so that one test body covers them all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import DiscreetError
from discreet.lazy import load
from discreet.ledger import Ledger
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.privacy import Budget

BUDGET = Budget(epsilon=100, delta=1e-3)
START = dt.date(2026, 1, 1)
TYPES = {"person": "int", "ward": "text", "age": "int", "free": "int", "ill": "int", "street": "text", "day": "date"}
PEOPLE = {"person": "int", "sex": "text", "town": "text"}

Call = Callable[..., Any]


@dataclass(frozen=True)
class PaidVerb:
    """A call of a curator that charges.

    Args:
        call: takes the curator, and `key` and `progress`.
        site: the function of `discreet.curator` that has it released once.
        beside: whether releases are stored on the way to its answer.
    """

    name: str
    call: Call
    site: str
    beside: bool = False

    def __str__(self) -> str:
        return self.name


class Watched(Memory):
    """Notes reads in a list that others write to as well."""

    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self.seen = seen

    def read(self, reading: Reading) -> ExactGroups:
        self.seen.append("READ")
        return super().read(reading)


def rows(people: int = 60) -> list[dict[str, Any]]:
    """Two visits of each person; columns tell of each other."""
    return [
        {
            "person": person,
            "ward": "AB"[person % 2],
            "age": 20 + 30 * (person % 2) + visit,
            "free": 100 * person,
            "ill": int(person % 3 == 0),
            "street": "KLM"[person % 3],
            "day": START + dt.timedelta(days=visit),
        }
        for person in range(people)
        for visit in range(2)
    ]


def hospital(ledger: str | Ledger = ":memory:", *, seed: int = 1, seen: list[str] | None = None) -> Curator:
    """A curator of two tables of the same people, whose noise has a seed."""
    engine = Watched([] if seen is None else seen)
    curator = Curator.for_tests(ledger, engine=engine, bits=SeededBits(seed))  # type: ignore[arg-type]  # a ledger is taken
    curator.protect(
        [{"person": person, "sex": "FM"[person % 2], "town": "XY"[person % 3 == 0]} for person in range(60)],
        name="people",
        unit="person",
        max_rows=1,
        account="patients",
        types=PEOPLE,
        keys={"sex": ["F", "M"], "town": ["X", "Y"]},
        budget=BUDGET,
    )
    curator.protect(
        rows(),
        name="visits",
        unit="person",
        account="patients",
        types=TYPES,
        bounds={"age": (0, 100), "ill": (0, 1)},
        keys={"ward": ["A", "B"]},
        max_rows=2,
    )
    return curator


def _ask(sql: str, **how: Any) -> Call:
    def call(curator: Curator, **more: Any) -> Any:
        return curator.ask(sql, **{"epsilon": 1, **how, **more})

    return call


def _fit(make: Callable[[], Any]) -> Call:
    def call(curator: Curator, **more: Any) -> Any:
        return curator.fit(make(), "SELECT age, ill FROM visits", target="ill", **more)

    return call


def _learner(name: str, *given: Any, **how: Any) -> Any:
    return getattr(load("discreet.learn", "A learner"), name)(*given, **how)  # late: scikit-learn takes long to load


def _search() -> Any:
    return _learner("GridSearchCV", _learner("DecisionTreeClassifier", **_TREE), {"max_depth": [1, 2]}, delta=1e-6)


def _network() -> Any:
    made = load("discreet.deep", "A network").Classifier
    return made(epsilon=2, size=120, batch_size=40, epochs=1, hidden=(2,))


def _synthesize(generator: str, **how: Any) -> Call:
    def call(curator: Curator, **more: Any) -> Any:
        chosen = {"epsilon": 3, "generator": generator, "bins": 2, **how}
        return curator.synthesize("SELECT ward, age, ill FROM visits", **chosen, **more)

    return call


def _tables(curator: Curator, **more: Any) -> Any:
    events = "SELECT ward, age FROM visits"
    how: dict[str, Any] = {"epsilon": 3, "generator": "mst", "bins": 2}
    return curator.synthesize_tables("people", events, **how, **more)


def _many(curator: Curator, **more: Any) -> Any:
    questions = ["SELECT ward, SUM(age) AS s FROM visits GROUP BY ward", "SELECT COUNT(*) AS n FROM visits"]
    return curator.ask_many(questions, epsilon=1, **more)


_COUNT = "SELECT COUNT(*) AS n FROM visits"
_STREETS = "SELECT street, COUNT(*) AS n FROM visits GROUP BY street"
_TREE = {"epsilon": 2, "bounds": (0, 100), "classes": [0, 1]}

GENERATORS = ("aim", "mst", "allpairs", "independent")

VERBS = [
    PaidVerb("ask", _ask(_COUNT), "Curator._ask"),
    PaidVerb(
        "ask for private groups", _ask("SELECT street, COUNT(*) AS n FROM visits GROUP BY street"), "Curator._ask"
    ),
    PaidVerb("ask for a median", _ask("SELECT MEDIAN(age) AS m FROM visits"), "Curator._ask"),
    PaidVerb("ask with private bounds", _ask("SELECT SUM(free) AS s FROM visits"), "Curator._ask", beside=True),
    PaidVerb("ask with private limits", _ask(_COUNT, limits="choose"), "Curator._ask", beside=True),
    PaidVerb("ask with a profile", _ask(_COUNT, profile=1), "Curator._ask", beside=True),
    PaidVerb("ask with its coverage", _ask(_COUNT, coverage="0.3"), "Curator._ask", beside=True),
    PaidVerb("ask_many", _many, "BatchExecutor.ask", beside=True),
    PaidVerb("profile", lambda curator, **more: curator.profile("visits", epsilon=1, **more), "Profiler.buy"),
    PaidVerb("fit", _fit(lambda: _learner("DecisionTreeClassifier", **_TREE)), "FitExecutor.fit"),
    PaidVerb("fit a search", _fit(_search), "FitExecutor.fit"),
    PaidVerb(
        "fit the best learner", _fit(lambda: _learner("AutoClassifier", epsilon=3, delta=1e-6)), "FitExecutor.fit"
    ),
    PaidVerb("fit a network", _fit(_network), "FitExecutor.fit"),
    *(PaidVerb(f"synthesize by {one}", _synthesize(one), "Synthesizer.synthesize") for one in GENERATORS),
    *(
        PaidVerb(f"synthesize by {one}", _synthesize(one), "Synthesizer.synthesize")
        for one in ("allpairs", "independent")
    ),
    PaidVerb("synthesize within bins", _synthesize("aim", within="histogram"), "Synthesizer.synthesize"),
    PaidVerb("synthesize_tables", _tables, "Synthesizer.synthesize_tables"),
]
"""A new verb that charges must be listed: `test_every_place_that_charges_is_listed` finds it."""

RESUMED = {"Streams.open", "Streams._again"}
"""A stream's charge never ends: each draw is stored as it is made, and the stream goes on from there."""

CHARGES = {"release_once", "charge_request", "_charge"}
"""The functions of `paid_release` that charge for all of them."""

LIMITS = {"LimitsFinder._release"}
"""A charge of the account's own, before the first question of a table whose limits are private."""

SPENDS_NOTHING = {"_fail_step"}
"""A charge of nothing, which carries the failure of a period of a stream."""


@dataclass
class Outside:
    """All that leaves a run: what is told, logged, printed and raised, in the order in which it leaves."""

    seen: list[str] = field(default_factory=list)
    drawn: list[Any] = field(default_factory=list)
    """What would have been stored, in which two runs must differ for a comparison to mean anything."""

    def hear(self, name: str) -> None:
        self.seen.append(f"stage: {name}")

    def caught(self, error: BaseException) -> None:
        assert not isinstance(error, DiscreetError) or error.__context__ is None
        self.seen += [f"error: {type(error).__name__} {error}", *getattr(error, "__notes__", ())]
        trace = error.__traceback__
        while trace is not None:
            self.seen.append(f"frame: {trace.tb_frame.f_code.co_qualname}")
            trace = trace.tb_next
