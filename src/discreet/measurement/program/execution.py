"""A program at work: reads, noise, and rows of finished aggregates. Called after the charge, never before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from discreet.measurement.aggregates import Recipe
from discreet.measurement.aggregates.ranked import Ranked
from discreet.measurement.intervals.sums_and_means import Noise
from discreet.measurement.intervals.variances import Integers
from discreet.measurement.program.group_steps import Finishing, worked
from discreet.measurement.program.modes import released_modes
from discreet.measurement.program.program import Program
from discreet.measurement.program.quantiles import released_points
from discreet.measurement.releases.mode import Modal
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.model.nodes import Expression, Value, columns
from discreet.plan.model.readings import Groups, Reading
from discreet.plan.post.outputs import Cell, finish

Key = tuple[Value, ...]


class Reader(Protocol):
    """All that a program needs of an engine."""

    def read(self, reading: Reading) -> Groups:
        """Exact integers for each group."""


class Released:
    """Noisy statistics of the groups that may be shown: released values, from which anything may be computed.

    Args:
        program: which read and noise they come from.
        keys: of the groups.
        noisy: a row for each group, a column for each statistic that met noise.
        beside: what was released together with it.
    """

    def __init__(self, program: Program, keys: Sequence[Key], noisy: Integers, beside: Sequence[Released] = ()) -> None:
        self.program, self.keys, self.noisy, self.beside = program, tuple(keys), noisy, tuple(beside)

    @property
    def unsalted(self) -> Released:
        """The same, to go out with an answer."""
        beside = [one.unsalted for one in self.beside]
        return Released(self.program.unsalted, self.keys, self.noisy, beside)

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say beside the notes of the program: nothing."""
        return ()

    def rows(self, confidence: Fraction) -> list[dict[str, Cell]]:
        """The answer: outputs by name, each number with an interval of this confidence.

        An output made of k aggregates gets them with intervals of k times smaller risk, so that it keeps its own.
        """
        if not self.program.question.steps:
            return finished(self.program, self.groups, confidence)
        return worked(self.program, self.groups, confidence, self.drawn, [one.groups for one in self.beside])

    @property
    def drawn(self) -> Integers | None:
        """The statistics of the groups, if they met the program's own noise, each group by itself."""
        return self.noisy

    def groups(self, outside: Fraction) -> Iterator[dict[str, Cell]]:
        """Keys and aggregates of each group, with intervals that miss with at most this probability each."""
        finished = self._finished(outside)
        names = self.program.question.labels
        for index, key in enumerate(self.keys):
            row: dict[str, Cell] = dict(zip(names, key, strict=True))
            yield row | {name: cells[index] for name, cells in finished.items()}

    def _finished(self, outside: Fraction) -> Mapping[str, Sequence[Cell]]:
        """Each aggregate of all groups."""
        recipes = self.program.recipes.items()
        return {name: _cells(recipe, self.program.noise, self.noisy, outside) for name, recipe in recipes}


def _cells(recipe: Recipe | Ranked | Modal, noise: Noise, noisy: Integers, outside: Fraction) -> Sequence[Cell]:
    return recipe.finish(noisy) if isinstance(recipe, Modal) else noise.finish(recipe, noisy, outside)


def finished(program: Program, groups: Finishing, confidence: Fraction) -> list[dict[str, Cell]]:
    """The rows of an answer, from keys and aggregates of each group at any risk."""
    question, names = program.question, set(program.recipes)
    if question.steps:
        return worked(program, groups, confidence)
    counts = {output.name: max(1, _aggregates(output.expression, names)) for output in question.outputs}
    answers = {k: finish(question, list(groups((1 - confidence) / k))) for k in sorted(set(counts.values()))}
    length = len(next(iter(answers.values())))
    return [{name: answers[k][i][name] for name, k in counts.items()} for i in range(length)]


def _aggregates(expression: Expression, names: set[str]) -> int:
    return len({column.name for column in columns(expression)} & names)


def run(program: Program, engine: Reader, releaser: Releaser) -> Released:
    """Reads the exact statistics, adds noise, and keeps the groups that may be shown.

    Public keys are all there, in their declared order, zeros included. Private ones are shown in an order of their
    values, which does not depend on how the data lie. Groupings come one after the other.
    """
    if program.beside:
        main = run(replace(program, beside=()), engine, releaser)
        return Released(program, main.keys, main.noisy, [run(one, engine, releaser) for one in program.beside])
    if program.groupings:
        return _together(program, [run(one, engine, releaser) for one in program.groupings])
    groups = engine.read(program.reading) if program.reading.statistics else {}
    keys = program.reading.public_keys
    shown: Sequence[Key] = keys if keys is not None else _ordered(program, groups)
    nothing = (0,) * len(program.reading.statistics)
    exact = np.empty((len(shown), len(nothing)), dtype=object)
    for index, key in enumerate(shown):
        exact[index] = groups.get(key, nothing)
    noisy = _noisy(program, exact, releaser)
    if program.selection is not None:
        kept = np.flatnonzero(program.selection.kept(noisy, exact, releaser)).tolist()
        shown, noisy = [shown[i] for i in kept], noisy[kept]
        if program.contribution.gathers and program.question.rest is not None:
            hidden = np.delete(exact, kept, axis=0)
            together = np.array([[sum(column) for column in hidden.T]], dtype=object)
            shown.append((program.question.rest.value,) * len(program.question.keys))
            noisy = np.concatenate([noisy, _noisy(program, together, releaser)], axis=0)
    points = released_points(program, shown, engine.read, releaser)
    if program.modal:
        points[:, -len(program.modal) :] = released_modes(program, shown, engine.read, releaser)
    return Released(program, shown, np.concatenate([noisy, points], axis=1))


def _together(program: Program, parts: Sequence[Released]) -> Released:
    """The groups of all groupings, with NULL for the keys that each leaves out, and which these are."""
    keys: list[Key] = []
    for places, part in zip(program.question.sets, parts, strict=True):
        absent = tuple(int(place not in places) for place in range(len(program.question.keys)))
        for key in part.keys:
            known = dict(zip(places, key, strict=True))
            keys.append((*(known.get(place) for place in range(len(absent))), *absent))
    return Released(program, keys, np.concatenate([part.noisy for part in parts], axis=0))


def _ordered(program: Program, groups: Groups) -> list[Key]:
    return sorted(groups, key=repr) if program.question.keys else [()]


def _noisy(program: Program, exact: Integers, releaser: Releaser) -> Integers:
    parts, start = [], 0
    for measure in program.measures:
        stop = start + len(measure.form.statistics)
        parts.append(releaser.noise(measure, measure.rounded(exact[:, start:stop])))
        start = stop
    return np.concatenate(parts, axis=1) if parts else np.empty((len(exact), 0), dtype=object)
