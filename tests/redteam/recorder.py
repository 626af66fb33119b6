"""Record and replay: what entered every noise, and the same question on a neighbour with the same noise coming out.

On a first table the inputs and outputs of every `Measure.release`, of every selection of keys and of every drawn point
are recorded. On its neighbour the outputs are frozen to the recorded ones, so that whatever still differs in the answer
was not covered by noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.curator import Answer, Curator
from discreet.curator import ranks as ranks_module
from discreet.curator.divide import divide
from discreet.curator.draw import draw
from discreet.curator.histogram import Histogram, Look
from discreet.curator.measure import Law, Measure
from discreet.curator.modes import Modal
from discreet.curator.pick import Aim, Pick
from discreet.curator.tree import Tree
from discreet.engines import Engine
from discreet.errors import DiscreetError, QueryFailed, UnsupportedQuery
from discreet.ledger import stewardship
from discreet.mechanisms import PartitionSelection
from discreet.mechanisms.partition_selection import Selected
from discreet.noise import Bits, SeededBits
from discreet.plan.reading import Groups, Reading
from discreet.plan.types import Type
from discreet.privacy import events
from tests.curator.fuzz import Question
from tests.curator.nearness import range_of
from tests.redteam.ranks import Divided, Drawn, cost_of_moves, cost_of_parts

Key = tuple[Any, ...]
Numbers = tuple[int, ...]


class Watched(Engine):
    """An engine that remembers what was read; a mutant changes what it is asked for, or what it says."""

    def __init__(self, inner: Engine, change: Callable[[Reading], Reading] = lambda reading: reading) -> None:
        super().__init__()
        self.inner, self.change = inner, change
        self.seen: list[tuple[Reading, Groups]] = []

    def read(self, reading: Reading) -> Groups:
        found = self.inner.read(self.change(reading))
        self.seen.append((reading, found))
        return found

    def register(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        self.inner.register(name, source, columns)

    def schema_of(self, source: Any) -> dict[str, Type]:
        return self.inner.schema_of(source)

    def close(self) -> None:
        self.inner.close()

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        raise NotImplementedError

    def _prepare(self, reading: Reading) -> Iterator[tuple[Any, Any]]:
        raise NotImplementedError


@dataclass(frozen=True)
class Voted:
    """One candidate in every group, from the counts of a read."""

    recipe: Modal
    read: int

    @property
    def event(self) -> events.Event:
        return self.recipe.event

    @property
    def law(self) -> Law:
        return "gaussian" if isinstance(self.event, events.Concentrated) else "laplace"


@dataclass
class Noise:
    """One release: which, its groups in order, what entered and what came out; and how many reads came before it."""

    release: Measure | PartitionSelection | Drawn | Divided | Voted
    keys: list[Key]
    exact: list[Numbers]
    out: list[Any]
    reads: int

    def inputs(self) -> dict[Key, Numbers]:
        return dict(zip(self.keys, self.exact, strict=True))

    def outputs(self) -> dict[Key, Any]:
        return dict(zip(self.keys, self.out, strict=True))


@dataclass
class Seen:
    """What a question did."""

    status: str
    error: str = ""
    answer: Answer | None = None
    noises: list[Noise] = field(default_factory=list)
    spent: str = ""
    reads: int = 0


class Recorder:
    """Stands in the place of all kinds of release."""

    def __init__(self, engine: Watched, frozen: list[Noise] | None, beside: Watched | None) -> None:
        self.engine, self.frozen, self.beside = engine, frozen, beside
        self.quiet: set[Key] = set()
        self.made: list[Noise] = []
        self.before = len(engine.seen)
        self._noise, self._select, self._vote = Measure.release, PartitionSelection.release, Modal.release

    def noise(self, measure: Measure, exact: Any, *, bits: Bits) -> Any:
        keys, inputs = self._keys(), [tuple(int(n) for n in row) for row in exact]
        fresh: list[Any] = inputs
        if self.frozen is None:
            fresh = [tuple(int(n) for n in row) for row in self._noise(measure, exact, bits)]
        out = [self._out(key, drawn, row) for key, drawn, row in zip(keys, fresh, inputs, strict=True)]
        self.made.append(Noise(measure, keys, inputs, out, len(self.engine.seen) - self.before))
        return np.array(out, dtype=object).reshape(len(keys), len(measure.scales))

    def select(self, selection: PartitionSelection, value: Any, *, bits: Bits | None = None) -> Selected:
        keys = self._keys()
        inputs: list[Numbers] = [(int(n),) for n in value]
        fresh = [False] * len(keys)
        if self.frozen is None:
            fresh = self._select(selection, value, bits=bits).kept.tolist()
        kept = [self._out(key, drawn, False) for key, drawn in zip(keys, fresh, strict=True)]
        self.made.append(Noise(selection, keys, inputs, kept, len(self.engine.seen) - self.before))
        return Selected(np.array(kept, dtype=bool), None)

    def points(
        self,
        groups: Mapping[Key, Histogram],
        picks: Sequence[Pick],
        look: Look,
        bits: Bits,
        *,
        beside: Sequence[Aim] = (),
    ) -> dict[Key, list[int]]:
        inputs, keys = self._finest(groups), list(groups)
        wanted = picks if self.frozen is None else ()  # the same reads, if nothing else
        fresh = draw(groups, wanted, look, bits, beside=beside)
        shift, last = next(((h.shift, h.last) for h in groups.values()), (0, 0))
        drawn = []
        for place, pick in enumerate(picks):
            points = [fresh[key][place] if self.frozen is None else 0 for key in keys]
            drawn.append([self._out(key, point, 0) for key, point in zip(keys, points, strict=True)])
            release = Drawn(pick, last, shift, self._counted() - self.before)
            self.made.append(Noise(release, keys, [inputs[key] for key in keys], drawn[-1], release.read))
        return {key: [out[i] for out in drawn] for i, key in enumerate(keys)}

    def votes(self, recipe: Modal, groups: Groups, keys: Sequence[Key], bits: Bits) -> list[int]:
        inputs, fresh = [groups.get(key, ()) for key in keys], [0] * len(keys)
        if self.frozen is None:
            fresh = self._vote(recipe, groups, keys, bits)
        out = [self._out(key, drawn, 0) for key, drawn in zip(keys, fresh, strict=True)]
        read = len(self.engine.seen) - self.before
        self.made.append(Noise(Voted(recipe, read), list(keys), inputs, out, read))
        return out

    def places(self, groups: Mapping[Key, Histogram], tree: Tree, look: Look, bits: Bits) -> dict[Key, list[int]]:
        """All levels at once: what each costs depends on the places of those before."""
        inputs, keys = self._finest(groups), list(groups)
        nothing = [0] * len(tree.shares)
        fresh = divide(groups, tree, look, bits) if self.frozen is None else dict.fromkeys(keys, nothing)
        out = [self._out(key, fresh[key], nothing) for key in keys]
        shift, last = next(((h.shift, h.last) for h in groups.values()), (0, 0))
        for level in range(len(tree.levels)):
            release = Divided(tree, level, last, shift, self._counted() - self.before)
            self.made.append(Noise(release, keys, [inputs[key] for key in keys], out, release.read))
        return dict(zip(keys, out, strict=True))

    def _finest(self, groups: Mapping[Key, Histogram]) -> dict[Key, Numbers]:
        """The points that have values, then how many each has: all that losses depend on."""
        if all(histogram.shift == 0 for histogram in groups.values()):
            return {key: (*h.blocks.tolist(), *h.counts.tolist()) for key, h in groups.items()}
        reading, _ = self.engine.seen[self._counted()]
        assert reading.split is not None
        fine = self.engine.inner.read(self.engine.change(replace(reading, split=replace(reading.split, shift=0))))
        for key, histogram in groups.items():
            numbers = fine.get(key, ())
            assert sum(numbers[len(numbers) // 2 :]) == histogram.counts.sum()
        return {key: fine.get(key, ()) for key in groups}

    def _counted(self) -> int:
        """The last read that counted all values."""
        splits = [(place, reading.split) for place, (reading, _) in enumerate(self.engine.seen)]
        return max(place for place, split in splits if split is not None and split.only is None)

    def _out(self, key: Key, fresh: Any, quiet: Any) -> Any:
        """What comes out: what came out before, if there was a before; no noise for groups that must be quiet."""
        if key in self.quiet:
            return quiet
        return fresh if self.frozen is None else self.frozen[len(self.made)].outputs()[key]

    def _keys(self) -> list[Key]:
        """The groups in the order in which they meet noise: as declared, or by their values."""
        reading, groups = self.engine.seen[-1]
        if reading.public_keys is not None:
            return list(reading.public_keys)
        if reading.keys and self.beside is not None:
            self.quiet = set(groups) ^ set(self.beside.inner.read(self.beside.change(reading)))
        return sorted(groups, key=repr) if reading.keys else [()]


def ask(
    curator: Curator,
    engine: Watched,
    question: Question,
    *,
    frozen: list[Noise] | None = None,
    beside: Watched | None = None,
) -> Seen:
    """Asks, and tells what happened; anything but an answer, a refusal or the one failure is an error of ours.

    Args:
        curator: of one table.
        engine: its engine.
        question: what to ask.
        frozen: what came out of a neighbour's noise, and comes out again.
        beside: the neighbour's engine: groups that only one of the two has get no noise and are not selected, as noise
            shows them with a probability of at most delta.
    """
    recorder, before = Recorder(engine, frozen, beside), len(engine.seen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measure, "release", lambda m, exact, bits: recorder.noise(m, exact, bits=bits))
        patch.setattr(
            PartitionSelection, "release", lambda s, value, *, bits=None: recorder.select(s, value, bits=bits)
        )
        patch.setattr(ranks_module, "draw", recorder.points)
        patch.setattr(Modal, "release", lambda *given: recorder.votes(*given))  # noqa: PLW0108 - to be called as a method
        patch.setattr(ranks_module, "divide", recorder.places)
        seen = _asked(curator, question)
    seen.noises, seen.reads = recorder.made, len(engine.seen) - before
    seen.spent = str(curator.budget(question.account).spent)
    return seen


def _asked(curator: Curator, question: Question) -> Seen:
    try:
        answer = curator.ask(question.sql, epsilon=question.epsilon, delta=question.delta, limits=question.limits)
    except QueryFailed as error:
        return Seen("failed", str(error))
    except UnsupportedQuery as error:
        return Seen("refused" if error.reason and error.hint else "refused in silence", str(error))
    except DiscreetError as error:
        return Seen(type(error).__name__, str(error))
    return Seen("answered", answer=answer)


def moved(one: Noise, other: Noise) -> Fraction:
    """How far apart two inputs are, in the measure of their noise; a group that is not there is zero.

    Laplace: the sum of |a - b| / scale, which is the epsilon. Gaussian: half the sum of ((a - b) / sigma)^2, which is
    the rho. A selection: the number of groups whose number of people differs, and none by more than one. Points: the
    epsilon or the rho of the ranges of their privacy losses.
    """
    a, b = one.inputs(), other.inputs()
    release = one.release
    if isinstance(release, Drawn):
        return cost_of_moves(release, a, b)
    if isinstance(release, Voted):
        ranges = [release.recipe.rate * range_of(release.recipe, a.get(key, ()), b.get(key, ())) for key in {**a, **b}]
        gaussian = release.law == "gaussian"
        return sum((r * r / 8 if gaussian else r for r in ranges), Fraction(0))
    if isinstance(release, Divided):
        return cost_of_parts(release, a, b, {**other.outputs(), **one.outputs()})
    scales = release.scales if isinstance(release, Measure) else (Fraction(1),)
    zero = (0,) * len(scales)
    ratios = [
        abs(Fraction(x - y) / scale)
        for key in {**a, **b}
        for x, y, scale in zip(a.get(key, zero), b.get(key, zero), scales, strict=True)
    ]
    if isinstance(release, PartitionSelection):
        assert max(ratios, default=Fraction(0)) <= 1
    elif release.law == "gaussian":
        return sum((ratio * ratio for ratio in ratios), Fraction(0)) / 2
    return sum(ratios, Fraction(0))


@contextmanager
def same_salt() -> Iterator[None]:
    """Accounts opened inside have one salt, so that the same rows are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stewardship, "system_bits", lambda: SeededBits(99))
        yield
