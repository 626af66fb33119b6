"""Random questions on neighbouring tables: nothing differs but what noise covers, and the noise is what was paid for.

Half of a mutant's noise, one group too many, an exact number in a note: the same check must notice each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.audit.queries.recorder import QueryRecord, RecordingEngine, ask
from discreet.curator import Curator
from discreet.curator.asking import answer as answer_module
from discreet.engines import DuckDB, Memory
from discreet.engines.postgres.posix_patterns import UNCERTAIN
from discreet.errors import DiscreetError, InvalidParameter, QueryFailed, UnknownTable, UnsupportedQuery
from discreet.ledger import Ledger
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.readings import Reading
from discreet.privacy import events
from tests.curator.fuzz import Draw, Question, question
from tests.effort import rounds, shadowed
from tests.engines.postgres_tables import PostgresOfRows, PostgresTables
from tests.engines.tables import POSTGRES, arrow, stored
from tests.open_groups import unsealed
from tests.redteam.changed import changed
from tests.redteam.judge import Pair, same_answers
from tests.redteam.salts import same_salt
from tests.redteam.worlds import World, world

QUICK, ALL = 100, 2000
BATCH = 25  # questions of one test
SAME_WORLD = 5  # questions of one pair of tables
ACCEPTED = Fraction(95, 100)


@pytest.fixture(autouse=True)
def salted() -> Iterator[None]:
    with same_salt():
        yield


def pair(made: World, engine: Callable[[], RecordingEngine] = lambda: RecordingEngine(Memory())) -> Pair:
    one, other = engine(), engine()
    return Pair((made.curator(one, made.rows), one), (made.curator(other, made.other), other))


def judged(
    seeds: range, engine: Callable[[], RecordingEngine] = lambda: RecordingEngine(Memory())
) -> list[QueryRecord]:
    """Every question of these seeds, judged on a pair of tables that a few of them share."""
    found = []
    for start in range(seeds.start, seeds.stop, SAME_WORLD):
        made = world(start)
        curators = pair(made, engine)
        stop = min(start + SAME_WORLD, seeds.stop)
        found += [curators.judge(question(seed, made.setting)) for seed in range(start, stop)]
    return found


def batches(start: int, stop: int) -> list[int]:
    return list(range(start, stop, BATCH))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "start", [*batches(0, QUICK), *(pytest.param(b, marks=pytest.mark.slow) for b in batches(QUICK, ALL))]
)
def test_neighbours_differ_by_noise_alone(start: int) -> None:
    seen = judged(range(start, start + rounds(BATCH, 10)))
    assert not [one for one in seen if one.status == "failed"]
    accepted = sum(one.status == "answered" for one in seen)
    assert accepted >= ACCEPTED * len(seen) - 3 * (len(seen) * ACCEPTED * (1 - ACCEPTED)) ** 0.5  # of all together


@shadowed(POSTGRES)
@pytest.mark.parametrize("start", [0, *(pytest.param(b, marks=pytest.mark.slow) for b in batches(BATCH, ALL))])
def test_neighbours_differ_by_noise_alone_on_postgres(start: int, postgres_tables: PostgresTables) -> None:
    seen = judged(range(start, start + BATCH), lambda: RecordingEngine(PostgresOfRows(postgres_tables)))
    assert not [one for one in seen if one.status == "failed"]


# ------------------------------------------------------------------------------------------------------- both engines


def both(made: World, asked: Question) -> tuple[QueryRecord, QueryRecord]:
    """The same question on both engines, rows in another order on the second."""
    memory, duckdb = RecordingEngine(Memory()), RecordingEngine(DuckDB(threads=1))
    one = ask(made.curator(memory, made.rows), memory, asked)
    with made.curator(duckdb, arrow(made.rows[::-1], made.types)) as curator:
        return one, ask(curator, duckdb, asked)


def agree(one: QueryRecord, other: QueryRecord) -> None:
    assert (one.status, one.error, one.spent) == (other.status, other.error, other.spent)
    assert [noise.exact for noise in one.noises] == [noise.exact for noise in other.noises]
    assert [noise.keys for noise in one.noises] == [noise.keys for noise in other.noises]
    if one.answer is not None and other.answer is not None:
        same_answers(one.answer, other.answer)


@pytest.mark.ci
@pytest.mark.parametrize(
    "start", [0, 10, *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(20, 300, 10))]
)
def test_engines_agree_whatever_the_order_of_rows(start: int) -> None:
    for seed in range(10_000 + start, 10_000 + start + rounds(10, 4)):
        made = world(seed)
        agree(*both(made, question(seed, made.setting)))


@shadowed(POSTGRES)
@pytest.mark.parametrize("start", [0, *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(10, 300, 10))])
def test_postgres_agrees_whatever_the_order_of_rows(start: int, postgres_tables: PostgresTables) -> None:
    for seed in range(10_000 + start, 10_010 + start):
        made = world(seed)
        memory, postgres = RecordingEngine(Memory()), RecordingEngine(PostgresOfRows(postgres_tables))
        asked, rows = question(seed, made.setting), list(map(stored, made.rows))
        one = ask(made.curator(memory, rows), memory, asked)
        with made.curator(postgres, rows[::-1]) as curator:
            other = ask(curator, postgres, asked)
            if other.status == "refused" and UNCERTAIN in other.error:
                assert not other.reads  # a pattern that PostgreSQL matches in another way
            else:
                agree(one, other)


def test_mutant_where_after_bounding() -> None:
    """Rows are chosen first and filtered then: private, but another question."""

    class Late(Memory):
        def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
            return super()._prepare(replace(reading, where=None))

    made = world(3)
    asked = replace(question(1, made.setting), sql="SELECT COUNT(*) AS n FROM visits WHERE age > 50")
    late, duckdb = RecordingEngine(Late()), RecordingEngine(DuckDB(threads=1))
    one = ask(made.curator(late, made.rows), late, asked)
    other = ask(made.curator(duckdb, arrow(made.rows, made.types)), duckdb, asked)
    with pytest.raises(AssertionError):
        agree(one, other)


# ------------------------------------------------------------------------------------- refusals and explanations


class Untouchable(Memory):
    """Nothing is read from it."""

    def read(self, reading: Reading) -> ExactGroups:
        raise AssertionError(reading)


@pytest.mark.ci
def test_explaining_reads_nothing_and_costs_nothing() -> None:
    refused = 0
    for seed in range(0, rounds(100, 20), SAME_WORLD):
        made = world(seed)
        curator = made.curator(Untouchable(), made.rows)
        before = len(curator.history("visits"))
        for place in range(SAME_WORLD):
            asked = question(seed + place, made.setting)
            try:
                curator.explain(asked.sql, epsilon=asked.epsilon, delta=asked.delta, limits=asked.limits)
            except UnsupportedQuery:  # numbers too fine for a grid
                refused += 1
        assert len(curator.history("visits")) == before
    assert refused <= (1 - ACCEPTED) * rounds(100, 20)


JUNK = [
    *("MAX(age)", "SELECT", "*", "patient", "(", ")", "OVER ()", "JOIN", "random()", "nothing", "'", ";", "--", "1"),
    *(",", "visits", "now()", "DISTINCT", "\0", "{", "?", "NULL", "charge"),
]


def broken(sql: str, draw: Draw) -> str:
    """A question with a word taken out, doubled, moved or replaced by junk."""
    words = sql.split(" ")
    at = draw.below(len(words))
    before, word, after, junk = words[:at], words[at], words[at + 1 :], draw.one(JUNK)
    ways: list[list[str]] = [[], [word, word], [junk], [junk, word], [word, junk]]
    return " ".join([*before, *draw.one(ways), *after] if draw.chance(90) else [word, *after, *before])


def refusal(curator: Curator, sql: str, asked: Question) -> DiscreetError | None:
    try:
        curator.explain(sql, epsilon=asked.epsilon, delta=asked.delta)
    except DiscreetError as error:
        return error
    return None


@pytest.mark.ci
def test_refusals_say_why_and_where_and_read_nothing() -> None:
    refused = 0
    for seed in range(0, rounds(600, 60), 20):
        made, draw = world(seed), Draw(seed + 1)
        curator = made.curator(Untouchable(), made.rows)
        before = len(curator.history("visits"))
        for place in range(20):
            asked = question(seed + place, made.setting)
            sql = broken(asked.sql, draw)
            error = refusal(curator, sql, asked)
            if error is None:
                continue
            refused += 1
            if isinstance(error, InvalidParameter):  # junk made a parameter of a word, and there is no value for it
                assert error.name == "parameters"
                continue
            assert isinstance(error, UnsupportedQuery | UnknownTable)
            assert error.hint
            if isinstance(error, UnsupportedQuery):
                assert error.reason
                assert error.position is None or min(error.position) >= 1
            with pytest.raises(type(error)):
                curator.ask(sql, epsilon=asked.epsilon, delta=asked.delta)
        assert len(curator.history("visits")) == before
    assert refused >= rounds(400, 30)


# ------------------------------------------------------------------------------------------------------------- mutants


def noticed(engine: Callable[[], RecordingEngine] = lambda: RecordingEngine(Memory())) -> None:
    """A few hundred questions at most bring a mutant to light."""
    with pytest.raises(AssertionError):
        judged(range(300), engine)


def test_mutant_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    right = AdditiveNoise.laplace.__func__  # type: ignore[attr-defined]

    def halved(cls: type[AdditiveNoise], *arguments: Any) -> AdditiveNoise:
        found: AdditiveNoise = right(cls, *arguments)
        return replace(found, scales=tuple(scale / 2 for scale in found.scales))

    monkeypatch.setattr(AdditiveNoise, "laplace", classmethod(halved))
    noticed()


@pytest.mark.ci
def test_mutant_gaussian_noise_a_tenth_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    right = AdditiveNoise.gaussian.__func__  # type: ignore[attr-defined]

    def smaller(cls: type[AdditiveNoise], *arguments: Any) -> AdditiveNoise:
        found: AdditiveNoise = right(cls, *arguments)
        return replace(found, scales=tuple(scale * Fraction(9, 10) for scale in found.scales))

    monkeypatch.setattr(AdditiveNoise, "gaussian", classmethod(smaller))
    noticed()


@pytest.mark.slow
def test_mutant_no_clipping() -> None:
    wide = 1 << 62

    def unclipped(reading: Reading) -> Reading:
        return replace(
            reading,
            statistics=tuple(replace(s, low=-wide, high=wide) if s.kind == "sum" else s for s in reading.statistics),
        )

    noticed(lambda: changed(unclipped))


@pytest.mark.parametrize(
    "more",
    [{"groups": 1}, {"rows": 1}, pytest.param({"total": 1}, marks=pytest.mark.ci), {"rows": 10**6}, {"groups": 10**6}],
    ids=str,
)
def test_mutant_looser_limits(more: dict[str, int]) -> None:
    def looser(reading: Reading) -> Reading:
        if reading.bounding is None:
            return reading
        held = {name: getattr(reading.bounding, name) for name in more}
        wider = {name: limit + more[name] for name, limit in held.items() if limit is not None}
        return replace(reading, bounding=replace(reading.bounding, **wider))

    noticed(lambda: changed(looser))


def test_mutant_each_row_its_own_unit() -> None:
    noticed(lambda: changed(lambda reading: replace(reading, bounding=None)))


def test_mutant_an_exact_number_in_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[RecordingEngine] = []

    def engine() -> RecordingEngine:
        made.append(RecordingEngine(Memory()))
        return made[-1]

    def telling(program: Any) -> tuple[str, ...]:
        read = next(e for e in reversed(made) if e.seen and e.seen[-1][0] == program.reading)
        return (f"{sum(sum(map(abs, numbers)) for numbers in read.seen[-1][1].values())} steps were added.",)

    monkeypatch.setattr(answer_module, "notes", telling)
    noticed(engine)


class Fragile(RecordingEngine):
    """Fails on what only one table has."""

    def __init__(self) -> None:
        super().__init__(Memory())

    def read(self, reading: Reading) -> ExactGroups:
        found = super().read(reading)
        if any(number > 40 for numbers in unsealed(found).values() for number in numbers):
            raise QueryFailed
        return found


@pytest.mark.ci
def test_mutant_an_error_that_depends_on_data() -> None:
    noticed(Fragile)


@pytest.mark.slow
def test_mutant_a_refusal_that_depends_on_data() -> None:
    class Picky(Fragile):
        def read(self, reading: Reading) -> ExactGroups:
            try:
                return super().read(reading)
            except QueryFailed:
                raise UnsupportedQuery("Too many.", "Ask for fewer.") from None

    noticed(Picky)


def test_mutant_everything_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Private groups with a single person are shown without a threshold."""
    selection = pytest.importorskip("discreet.measurement.selection")
    monkeypatch.setattr(selection.Threshold, "select_groups", lambda _self, noisy, _exact, _bits: [True] * len(noisy))
    noticed()


def test_mutant_half_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Ledger.charge_all

    def cheap(ledger: Ledger, parts: Mapping[str, events.Event], **options: Any) -> Any:
        ((account, event),) = parts.items()
        assert isinstance(event, events.Composed)
        return right(ledger, {account: events.Composed(event.events[:1])}, **options)

    monkeypatch.setattr(Ledger, "charge_all", cheap)
    noticed()
