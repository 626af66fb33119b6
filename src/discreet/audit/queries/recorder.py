"""Record and replay: what entered every noise, and the same question on a neighbour with the same noise coming out.

On a first table the inputs and outputs of everything that the curator releases are recorded. On its neighbour the
outputs are frozen to the recorded ones, so that whatever still differs in the answer was not covered by noise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.audit.queries.releases import (
    CandidateRelease,
    PointRelease,
    QuantileLevelRelease,
    Release,
    SelectionRound,
)
from discreet.curator import Answer, Curator
from discreet.curator.asking.planner import RequestedLimits
from discreet.curator.observation import bits_of, observe_curator
from discreet.dataclass import dataclass
from discreet.engines import Engine
from discreet.errors import DiscreetError, InternalError, QueryFailed, UnsupportedQuery
from discreet.measurement.releases.additive import AdditiveNoise, Integers
from discreet.measurement.releases.candidates import CandidateDraw
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.open_exact import open_exact
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms import PartitionSelection, SparseVector, WeightedSelection
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import Pick, RankAim
from discreet.mechanisms.value_counts import Histogram, Look
from discreet.noise import Bits
from discreet.plan.analysis.group_keys import in_order
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.nodes import Expression, Value
from discreet.plan.model.readings import Groups, Reading
from discreet.plan.model.types import Type
from discreet.privacy import events

T = TypeVar("T")
Key = tuple[Any, ...]
Numbers = tuple[int, ...]

REST: Key = (...,)
"""The group of all that is not shown: no value of a key is an ellipsis."""

SALT = "audit"
"""The salt of all watched curators: neighbours keep the same rows of all other people."""


@dataclass(frozen=True, kw_only=True)
class AuditedQuery:
    """Holds a question with its budget and limits, the label of hidden groups, and the table or account that pays."""

    sql: str
    epsilon: Fraction
    delta: Fraction
    limits: RequestedLimits = None
    other: Value = None
    account: str


class RecordingEngine(Engine):
    """Reads through an engine and remembers what was read."""

    def __init__(self, inner: Engine) -> None:
        super().__init__()
        self.inner = inner
        self.seen: list[tuple[Reading, Groups]] = []

    def read(self, reading: Reading) -> ExactGroups:
        """Returns what the engine behind it reads."""
        found = self.inner.read(reading)
        self.seen.append((reading, open_exact(found).groups))
        return found

    def read_public(self, reading: Reading) -> Groups:
        """Returns what the engine behind it reads of public tables."""
        return self.inner.read_public(reading)

    def register(self, name: str, source: Any, columns: Mapping[str, Type], *, public: bool = False) -> None:
        """Registers the table with the engine behind it."""
        self.inner.register(name, source, columns, public=public)

    def schema_of(self, source: Any) -> dict[str, Type]:
        """Returns what the engine behind it knows."""
        return self.inner.schema_of(source)

    def check(self, names: Collection[str], expressions: Collection[Expression]) -> None:
        """Refuses what the engine behind it refuses."""
        self.inner.check(names, expressions)

    def origins(self, source: Any) -> dict[str, str]:
        """Returns what the engine behind it knows."""
        return self.inner.origins(source)

    def close(self) -> None:
        """Closes the engine behind it."""
        self.inner.close()

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        self.inner._attach(name, source, columns)

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        return self.inner._prepare(reading)


@dataclass
class RecordedRelease:
    """Holds one release, its groups in order, what entered, what came out, and how many reads came before it.

    What came out may be frozen; `drawn` is the noise on statistics that the curator would have added.
    """

    release: Release
    keys: list[Key]
    exact: list[Numbers]
    out: list[Any]
    reads: int
    drawn: list[Numbers] = field(default_factory=list)

    def inputs(self) -> dict[Key, Numbers]:
        """Returns what entered, by group."""
        return dict(zip(self.keys, self.exact, strict=True))

    def outputs(self) -> dict[Key, Any]:
        """Returns what came out, by group."""
        return dict(zip(self.keys, self.out, strict=True))


@dataclass(frozen=True)
class RecordedSearch:
    """Holds a search for the limits of a table: how many people are in each place of the list, and which was found."""

    search: SparseVector
    people: tuple[int, ...]
    found: int


@dataclass
class QueryRecord:
    """Records what a question did.

    Attributes:
        status: "answered", "refused", "failed", "crashed", or the name of another refusal.
        error: the text of a refusal.
        answer: what the analyst got.
        noises: every release.
        spent: what each account has spent afterwards.
        charged: what the question charged to each account, by the ledger.
        reads: how often the engine was read.
        selects: whether groups with private keys were read.
        searches: for the limits of tables, which the account paid for before the question.
    """

    status: str
    error: str = ""
    answer: Answer | None = None
    noises: list[RecordedRelease] = field(default_factory=list)
    spent: str = ""
    charged: dict[str, events.Event] = field(default_factory=dict)
    reads: int = 0
    selects: bool = False
    searches: list[RecordedSearch] = field(default_factory=list)


def _whole(release: Release) -> Release:
    """Returns a noise that was held to a cut as it is without one."""
    return release.uncut if isinstance(release, AdditiveNoise) else release


class RecordingReleaser(Releaser):
    """Releases like a `Releaser` and keeps what passes.

    Args:
        bits: the curator's own.
        engine: what it reads from.
        frozen: what came out of a neighbour's noise, and comes out again.
        beside: the neighbour's engine: groups that only one of the two has get no noise and are not selected.
        searches: what a neighbour's searches for limits found, and find again.
    """

    def __init__(
        self,
        bits: Bits,
        engine: RecordingEngine,
        frozen: list[RecordedRelease] | None,
        beside: RecordingEngine | None,
        *,
        searches: Sequence[RecordedSearch] = (),
    ) -> None:
        super().__init__(bits)
        self.searched, self._found = list[RecordedSearch](), searches
        self.engine, self.frozen, self.beside = engine, frozen, beside
        self.quiet: set[Key] = set()
        self.made: list[RecordedRelease] = []
        self.before = len(engine.seen)

    def noise(self, measure: AdditiveNoise, exact: ExactGroups) -> Integers:
        """Adds noise and records it; a second time after one read, the same noise is for all that is not shown."""
        reads, inputs = len(self.engine.seen) - self.before, open_exact(exact).numbers
        again = any(noise.reads == reads and _whole(noise.release) == measure for noise in self.made)
        keys = [REST] if again and self._is_private() and len(inputs) == 1 else self._keys()
        if len(keys) != len(inputs) and not self._is_private():  # sums of public groups, labelled by their places
            keys = [(place,) for place in range(len(inputs))]
        fresh = [tuple(int(n) for n in row) for row in super().noise(measure, exact)]
        drawn = [tuple(a - b for a, b in zip(*pair, strict=True)) for pair in zip(fresh, inputs, strict=True)]
        out = [self._out(key, noisy, row) for key, noisy, row in zip(keys, fresh, inputs, strict=True)]
        self.made.append(RecordedRelease(measure, keys, inputs, out, reads, drawn))
        return np.array(out, dtype=object).reshape(len(keys), len(measure.scales))

    def select(self, selection: PartitionSelection, people: ExactGroups) -> NDArray[np.bool_]:
        """Selects groups and records what was kept."""
        keys = self._keys()
        inputs: list[Numbers] = open_exact(people).numbers
        fresh = [False] * len(keys)
        if self.frozen is None:
            fresh = super().select(selection, people).tolist()
        kept = [self._out(key, drawn, False) for key, drawn in zip(keys, fresh, strict=True)]
        self.made.append(RecordedRelease(selection, keys, inputs, kept, len(self.engine.seen) - self.before))
        return np.array(kept, dtype=bool)

    def weigh(self, selection: WeightedSelection, turn: int, weights: ExactGroups) -> NDArray[np.bool_]:
        """Runs a round of a weighted selection and records what was kept."""
        keys = self._keys()
        inputs: list[Numbers] = open_exact(weights).numbers
        fresh = [False] * len(keys) if self.frozen is not None else super().weigh(selection, turn, weights).tolist()
        kept = [self._out(key, drawn, False) for key, drawn in zip(keys, fresh, strict=True)]
        self.made.append(
            RecordedRelease(SelectionRound(selection, turn), keys, inputs, kept, len(self.engine.seen) - self.before)
        )
        return np.array(kept, dtype=bool)

    def points(
        self, groups: Mapping[Key, Histogram], picks: Sequence[Pick], look: Look, *, beside: Sequence[RankAim] = ()
    ) -> dict[Key, list[int]]:
        """Draws points and records them, one release for each pick."""
        inputs, keys = self._finest(groups), list(groups)
        wanted = picks if self.frozen is None else ()  # the same reads, if nothing else
        fresh = super().points(groups, wanted, look, beside=beside)
        shift, last = next(((h.shift, h.last) for h in groups.values()), (0, 0))
        drawn = []
        for place, pick in enumerate(picks):
            points = [fresh[key][place] if self.frozen is None else 0 for key in keys]
            drawn.append([self._out(key, point, 0) for key, point in zip(keys, points, strict=True)])
            release = PointRelease(pick, last, shift, self._find_counting_read() - self.before)
            self.made.append(RecordedRelease(release, keys, [inputs[key] for key in keys], drawn[-1], release.read))
        return {key: [out[i] for out in drawn] for i, key in enumerate(keys)}

    def places(self, groups: Mapping[Key, Histogram], tree: QuantileTree, look: Look) -> dict[Key, list[int]]:
        """Draws all levels at once and records them: what each costs depends on the places of those before."""
        inputs, keys = self._finest(groups), list(groups)
        nothing = [0] * len(tree.shares)
        fresh = super().places(groups, tree, look) if self.frozen is None else dict.fromkeys(keys, nothing)
        out = [self._out(key, fresh[key], nothing) for key in keys]
        shift, last = next(((h.shift, h.last) for h in groups.values()), (0, 0))
        for level in range(len(tree.levels)):
            release = QuantileLevelRelease(tree, level, last, shift, self._find_counting_read() - self.before)
            self.made.append(RecordedRelease(release, keys, [inputs[key] for key in keys], out, release.read))
        return dict(zip(keys, out, strict=True))

    def candidates(self, recipe: CandidateDraw, groups: ExactGroups, keys: Sequence[Key]) -> list[int]:
        """Draws a candidate in every group and records them."""
        counted = open_exact(groups).groups
        inputs, fresh = [counted.get(key, ()) for key in keys], [0] * len(keys)
        if self.frozen is None:
            fresh = super().candidates(recipe, groups, keys)
        out = [self._out(key, drawn, 0) for key, drawn in zip(keys, fresh, strict=True)]
        read = len(self.engine.seen) - self.before
        self.made.append(RecordedRelease(CandidateRelease(recipe, read), list(keys), inputs, out, read))
        return out

    def first_of_few(self, search: SparseVector, people: ExactGroups) -> int:
        """Searches for a limit and records it."""
        counts = tuple(count for (count,) in open_exact(people).numbers)
        place = len(self.searched)
        found = self._found[place].found if place < len(self._found) else super().first_of_few(search, people)
        self.searched.append(RecordedSearch(search, counts, found))
        return found

    def _finest(self, groups: Mapping[Key, Histogram]) -> dict[Key, Numbers]:
        """Returns the points that have values, then how many each has: all that losses depend on."""
        if all(histogram.shift == 0 for histogram in groups.values()):
            return {key: (*h.blocks.tolist(), *h.counts.tolist()) for key, h in groups.items()}
        reading, _ = self.engine.seen[self._find_counting_read()]
        if reading.split is None:
            raise InternalError("Points are drawn from values that were not counted.")
        fine = open_exact(self.engine.inner.read(replace(reading, split=replace(reading.split, shift=0)))).groups
        for key, histogram in groups.items():
            numbers = fine.get(key, ())
            if sum(numbers[len(numbers) // 2 :]) != histogram.counts.sum():
                raise InternalError("Blocks and points count different values.")
        return {key: fine.get(key, ()) for key in groups}

    def _find_counting_read(self) -> int:
        """Returns the last read that counted all values."""
        splits = [(place, reading.split) for place, (reading, _) in enumerate(self.engine.seen)]
        return max(place for place, split in splits if split is not None and split.only is None)

    def _out(self, key: Key, fresh: Any, quiet: Any) -> Any:
        """Returns what came out before, if there was a before, else fresh noise; none for groups that must be quiet."""
        if key in self.quiet:
            return quiet
        return fresh if self.frozen is None else self.frozen[len(self.made)].outputs()[key]

    def _is_private(self) -> bool:
        """Returns whether the groups that were read last have private keys."""
        reading, _ = self.engine.seen[-1]
        return bool(reading.keys) and reading.public_keys is None

    def _keys(self) -> list[Key]:
        """Returns the groups in the order in which they meet noise: as declared, or by their values."""
        reading, groups = self.engine.seen[-1]
        self.quiet = set()
        if reading.public_keys is not None:
            return list(reading.public_keys)
        if self._is_private() and self.beside is not None:
            self.quiet = set(groups) ^ set(open_exact(self.beside.inner.read(reading)).key_tuples)
        return in_order(groups) if reading.keys else [()]


def ask(
    curator: Curator,
    engine: RecordingEngine,
    question: AuditedQuery,
    *,
    frozen: list[RecordedRelease] | None = None,
    beside: RecordingEngine | None = None,
    searches: Sequence[RecordedSearch] = (),
    bits: Bits | None = None,
) -> QueryRecord:
    """Asks a question and returns what happened.

    Args:
        curator: of one table, for tests.
        engine: wraps the curator's own, or is the curator's own.
        question: what to ask.
        frozen: what came out of a neighbour's noise, and comes out again.
        beside: the neighbour's engine: groups that only one of the two has get no noise and are not selected, as noise
            shows them with a probability of at most delta.
        searches: what a neighbour's searches for limits found, and find again.
        bits: of the noise; the curator's own unless they are given.
    """
    own = bits_of(curator) if bits is None else bits
    recorder = RecordingReleaser(own, engine, frozen, beside, searches=searches)
    before = len(curator.entries())
    seen = _ask_query(observe_curator(curator, engine=engine, releaser=recorder, salt=SALT), question)
    read = [reading for reading, _ in engine.seen[recorder.before :]]
    seen.noises, seen.searches = recorder.made, recorder.searched
    seen.reads = len(read) - len(recorder.searched)
    seen.selects = any(reading.keys and reading.public_keys is None for reading in read)
    account(seen, curator, before)
    return seen


def account(seen: QueryRecord, curator: Curator, before: int) -> None:
    """Notes what was charged after so many entries of the ledger, and what every account has spent."""
    entries = [entry for entry in curator.entries()[before:] if entry.kind == "charge"]
    for name in curator.accounts():
        own = [events.from_json(entry.content["event"]) for entry in entries if entry.account == name]
        seen.charged[name] = events.Composed(own)
    seen.spent = ", ".join(f"{name}: {curator.balance(name).spent}" for name in curator.accounts())


def _ask_query(curator: Curator, question: AuditedQuery) -> QueryRecord:
    status, error, answer = attempt_call(
        lambda: curator.ask(
            question.sql, epsilon=question.epsilon, delta=question.delta, limits=question.limits, other=question.other
        )
    )
    return QueryRecord(status, error, answer)


def attempt_call(call: Callable[[], T]) -> tuple[str, str, T | None]:
    """Returns how something ended: a status, the text of a refusal, and what came of it."""
    try:
        return "answered", "", call()
    except QueryFailed as error:
        return "failed", str(error), None
    except UnsupportedQuery as error:
        return "refused" if error.reason and error.hint else "refused in silence", str(error), None
    except DiscreetError as error:
        return type(error).__name__, str(error), None
    except Exception as error:  # noqa: BLE001 - an unforeseen error is a finding; its text may hold data
        return "crashed", type(error).__name__, None
