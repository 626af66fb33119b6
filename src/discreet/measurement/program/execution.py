"""A program at work: reads, noise, and rows of finished aggregates. Run after the charge, never before.

Notes say what limits, bounds and noise mean for an answer; they are functions of public facts alone. What an engine
would refuse for what it is must not be paid for: that is checked before the charge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from discreet.errors import InternalError, InvalidParameter, UnsupportedQuery
from discreet.measurement.intervals.estimators import Estimator, TotalEstimator
from discreet.measurement.program.cube import FittedTables
from discreet.measurement.program.group_steps import Finishing, compute_rows, note_on_shown_groups, same_values
from discreet.measurement.program.program import Program
from discreet.measurement.releases.additive import Integers, grains_of
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.grids import CLIPPED
from discreet.measurement.releases.releaser import Releaser
from discreet.measurement.selection import OptimalGroupSelection, Threshold, WeightedGroupSelection, release_shown
from discreet.plan.analysis.group_keys import rest_of
from discreet.plan.model.group_columns import ColumnarRows, Key, KeyRows
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, Output, Relation, columns, grouping, is_grouping
from discreet.plan.model.readings import Reading
from discreet.plan.model.relations import cuts
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import Cell, NoisyNumber, finish
from discreet.plan.validation import check_reading

TOTAL = "(all)"
"""How a key is printed that a grouping leaves out."""

SUMS = (
    "Totals are the sums of their parts: they count the rows that are counted by all keys together, and no others. "
    "All groupings were fitted to each other by least squares; counts need not be whole."
)

Change = Callable[[Aggregate, Estimator], Estimator]
"""Returns another estimator of an aggregate in the place of its own."""

_OF_A_GRID = ("exponent", "factor", "high", "less", "low", "shift", "times")


class Reader(Protocol):
    """All that a program needs of an engine."""

    def read(self, reading: Reading) -> ExactGroups:
        """Returns exact integers for each group, sealed."""


class ReleasedStatistics:
    """Noisy statistics of the groups that may be shown: released values, from which anything may be computed.

    Args:
        program: which read and noise they come from.
        keys: of the groups.
        noisy: a row for each group, a column for each statistic that met noise.
        beside: what was released together with it.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    >>> rows = [{"ward": "AB"[place % 2]} for place in range(300)]
    >>> curator.protect(rows, name="a", types={"ward": "text"}, keys={"ward": ["A", "B"]}, budget=Budget(epsilon=1))
    >>> released = curator.ask("SELECT ward, COUNT(*) AS n FROM a GROUP BY ward", epsilon=1).released
    >>> released.keys, released.noisy.tolist()
    ((('A',), ('B',)), [[151], [150]])
    >>> [(row["ward"], row["n"].value) for row in released.rows(Fraction(9, 10))]
    [('A', 151), ('B', 150)]
    """

    def __init__(
        self,
        program: Program,
        keys: KeyRows,
        noisy: Integers,
        beside: Sequence[ReleasedStatistics] = (),
    ) -> None:
        self.program, self.key_rows, self.noisy, self.beside = program, keys, noisy, tuple(beside)
        self._fitted: tuple[Integers, list[Integers]] | None = None

    @property
    def keys(self) -> tuple[Key, ...]:
        """Returns the keys of the groups."""
        return self.key_rows.tuples

    @property
    def without_salt(self) -> ReleasedStatistics:
        """Returns the same, to go out with an answer."""
        beside = [one.without_salt for one in self.beside]
        return ReleasedStatistics(self.program.without_salt, self.key_rows, self.noisy, beside)

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns no notes: those of the program are enough."""
        return ()

    def rows(self, confidence: Fraction) -> ColumnarRows[Cell]:
        """Returns the answer: outputs by name, each number with an interval of this confidence.

        An output made of k aggregates gets them with intervals of k times smaller risk, so that it keeps its own.
        """
        if not self.program.question.steps:
            return finish_rows(self.program, self.groups, confidence)
        return compute_rows(
            self.program, self.groups, confidence, self.own_statistics, [one.groups for one in self.beside]
        )

    def adapt(self, change: Change) -> ReleasedStatistics:
        """Returns the same groups with other estimators of their aggregates."""
        named = {aggregate.name: aggregate for aggregate in self.program.question.aggregates}
        parts = (self.program, *self.program.groupings)
        whole, *groupings = (
            replace(one, estimators={name: change(named[name], each) for name, each in one.estimators.items()})
            for one in parts
        )
        return ReleasedStatistics(replace(whole, groupings=tuple(groupings)), self.key_rows, self.noisy, self.beside)

    @property
    def own_statistics(self) -> Integers | None:
        """Returns the statistics of the groups, if they met the program's own noise, each group alone."""
        return self.noisy if self.program.tables is None else None

    def groups(self, outside: Fraction) -> ColumnarRows[Cell]:
        """Returns keys and aggregates of each group, with intervals that miss with at most this probability each."""
        labels, length = self.program.question.labels, self.key_rows.length
        keys = self.key_rows.columns if length else [()] * len(labels)
        return ColumnarRows({**dict(zip(labels, keys, strict=True)), **self._estimate_cells(outside)}, length)

    def totals(self, confidence: Fraction) -> list[frozenset[str]]:
        """Returns for each row of the answer the columns of keys that its grouping leaves out; nothing after steps."""
        question = self.program.question
        if not question.sets or question.steps:
            return []
        places = {ColumnRef(key.name, key.expression.type): place for place, key in enumerate(question.keys)}
        shown = {o.name: o.expression for o in question.outputs if isinstance(o.expression, ColumnRef)}
        keys = {name: places[column] for name, column in shown.items() if column in places}
        marks = tuple(Output(name, ColumnRef(grouping(place), Type.INT)) for name, place in keys.items())
        rows = finish(replace(question, outputs=marks), self.groups(1 - confidence))
        return [frozenset(name for name, absent in row.items() if absent) for row in rows]

    def _estimate_cells(self, outside: Fraction) -> Mapping[str, Sequence[Cell]]:
        """Returns each aggregate of all groups, with intervals."""
        if self.program.tables is not None:
            return self._of_tables(self.program.tables, outside)
        noise, estimators = self.program.noise, self.program.estimators.items()
        return {name: estimator.cells(noise, self.noisy, outside) for name, estimator in estimators}

    def _of_tables(self, tables: FittedTables, outside: Fraction) -> dict[str, list[Cell]]:
        """Returns each aggregate of all groups, for groupings that are fitted to each other."""
        parts, found = self.program.groupings, dict[str, list[Cell]]()
        if self._fitted is None:
            ends = np.cumsum([tables.cube.count(one) for one in tables.cube.sets])[:-1]
            self._fitted = tables.fit_tables(np.split(self.noisy, ends))
        finest, fitted = self._fitted
        for name, estimator in self.program.estimators.items():
            for part, rows in zip(parts, fitted, strict=True):
                found.setdefault(name, []).extend(estimator.cells(part.noise, rows, outside))
            if isinstance(estimator, TotalEstimator):
                least = min(estimator.variance(part.noise) for part in parts)
                sums = tables.added_up([estimator.linear.value(row) for row in finest], math.sqrt(least))
                values = [int(value) if estimator.whole else value for table in sums for value in table]
                found[name] = [
                    replace(cell, value=value)
                    for cell, value in zip(found[name], values, strict=True)
                    if isinstance(cell, NoisyNumber)
                ]
        return found


def finish_rows(program: Program, groups: Finishing, confidence: Fraction) -> ColumnarRows[Cell]:
    """Returns the rows of an answer, from keys and aggregates of each group at any risk."""
    question, names = program.question, set(program.estimators)
    if question.steps:
        return compute_rows(program, groups, confidence)
    counts = {output.name: max(1, _aggregates(output.expression, names)) for output in question.outputs}
    risk, shared = 1 - confidence, sorted(set(counts.values()) - {1})
    first = groups(risk)
    answers = {1: finish(question, first)}
    if not shared:
        return answers[1]
    answers |= {k: finish(question, same_values(first, groups(risk / k))) for k in shared}
    return ColumnarRows({name: answers[k].columns[name] for name, k in counts.items()}, len(answers[1]))


def _aggregates(expression: Expression, names: set[str]) -> int:
    return len({column.name for column in columns(expression)} & names)


def run(program: Program, engine: Reader, releaser: Releaser) -> ReleasedStatistics:
    """Reads the exact statistics, adds noise, and keeps the groups that may be shown.

    Public keys are all there, in their declared order, zeros included. Private ones are shown in an order of their
    values, which does not depend on how the data lie. Groupings come one after the other. Nothing is charged here: a
    `Curator` has charged `program.event` before.

    Args:
        program: what is read, and the noise it meets; made by `choose`, or in an `Explanation`.
        engine: where it is read.
        releaser: draws all noise.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> from discreet.measurement.releases.releaser import Releaser
    >>> engine = Memory()
    >>> curator = Curator(engine=engine)
    >>> curator.protect([{"age": 40}] * 300, name="a", types={"age": "int"}, budget=Budget(epsilon=1))
    >>> program = curator.explain("SELECT COUNT(*) AS n FROM a", epsilon=1).program
    >>> run(program, engine, Releaser(SeededBits(1))).noisy.tolist()
    [[298]]
    """
    if program.beside:
        return _beside(program, engine, releaser)
    if program.tables is not None:
        return _together(program, _tables(program, program.tables, engine, releaser))
    if program.groupings:
        return _together(program, [run(one, engine, releaser) for one in program.groupings])
    if isinstance(program.selection, WeightedGroupSelection):
        return _release_weighted(program, program.selection, engine, releaser)
    shown, noisy = _measure_groups(program, engine, releaser)
    drawn = [draws.release(program.reading, shown.tuples, engine.read, releaser) for draws in program.draws]
    return ReleasedStatistics(program, shown, np.concatenate([noisy, *drawn], axis=1) if drawn else noisy)


def _measure_groups(program: Program, engine: Reader, releaser: Releaser) -> tuple[KeyRows, Integers]:
    """Returns the groups that may be shown, and their noisy statistics."""
    keys = program.reading.public_keys if program.question.keys else ((),)
    selection = program.selection
    groups = engine.read(program.reading) if program.reading.statistics else ExactGroups.nothing()
    if keys is not None:
        exact = groups.align_to(keys).round_statistics(grains_of(program.measures))
        return KeyRows.of(keys), releaser.statistics(program.measures, exact)
    if not isinstance(selection, Threshold | OptimalGroupSelection):
        raise InternalError("Private groups are shown by a selection alone.")
    rest = program.question.rest if program.contribution.gathers else None
    other = None if rest is None else (rest.value,) * len(program.question.keys)
    return release_shown(selection, groups.in_order(), program.measures, releaser, other=other)


def _release_weighted(
    program: Program, selection: WeightedGroupSelection, engine: Reader, releaser: Releaser
) -> ReleasedStatistics:
    """Finds the groups first; they are released, and what else is asked is of them, as of public keys."""
    found = selection.find(program.reading, engine.read, releaser)
    reading = replace(program.reading, public_keys=tuple(found))
    released = run(replace(program, reading=reading, selection=None), engine, releaser)
    return ReleasedStatistics(program, released.key_rows, released.noisy)


def _beside(program: Program, engine: Reader, releaser: Releaser) -> ReleasedStatistics:
    """Runs several questions in order; what is alike is released once, and each is finished in its own way."""
    made: list[ReleasedStatistics] = []
    for place, part in enumerate((replace(program, beside=(), alike=()), *program.beside)):
        first = program.alike[place] if program.alike else place
        same = first != place
        made.append(
            ReleasedStatistics(part, made[first].key_rows, made[first].noisy) if same else run(part, engine, releaser)
        )
    main, *others = made
    return ReleasedStatistics(program, main.key_rows, main.noisy, others)


def _together(program: Program, parts: Sequence[ReleasedStatistics]) -> ReleasedStatistics:
    """Returns the groups of all groupings, with NULL for the keys that each leaves out, and which these are."""
    keys: list[Key] = []
    for places, part in zip(program.question.sets, parts, strict=True):
        absent = tuple(int(place not in places) for place in range(len(program.question.keys)))
        for key in part.keys:
            known = dict(zip(places, key, strict=True))
            keys.append((*(known.get(place) for place in range(len(absent))), *absent))
    return ReleasedStatistics(program, KeyRows.of(keys), np.concatenate([part.noisy for part in parts], axis=0))


def _tables(program: Program, tables: FittedTables, engine: Reader, releaser: Releaser) -> list[ReleasedStatistics]:
    """Adds noise for every grouping that has some, to sums of the groups by all keys."""
    sizes, grains = tables.cube.sizes, grains_of(program.measures)
    cells = engine.read(program.reading).align_to(program.reading.public_keys or ((),)).round_statistics(grains)
    made = []
    for one, places in zip(program.groupings, tables.cube.sets, strict=True):
        sums = cells.sum_over_axes(sizes, [axis for axis in range(len(sizes)) if axis not in places])
        keys = KeyRows.of(one.reading.public_keys or ((),))
        nothing = np.zeros((keys.length, len(grains)), dtype=object)
        made.append(ReleasedStatistics(one, keys, releaser.statistics(one.measures, sums) if one.measures else nothing))
    return made


# ------------------------------------------------------------------------------------------------------- in sentences


def notes(program: Program) -> tuple[str, ...]:
    """Returns everything a reader must know to read the numbers right."""
    own = _notes(program)
    count = len(program.released_programs)
    shared = [f"The budget is shared equally by {count} questions, which are released together."]
    has_groups = program.question.keys or program.groupings or program.beside
    return tuple(
        dict.fromkeys(
            [
                *own,
                *(note for one in program.beside for note in _notes(one)),
                *(note_on_shown_groups(program) if has_groups else []),
                *(shared if count > 1 else []),
            ]
        )
    )


def _notes(program: Program) -> tuple[str, ...]:
    reading = program.reading
    if not program.width and program.selection is None and not program.groupings:
        return ("Groups are those of public keys, empty ones included; nothing is read for them.",)
    said = _whose_rows(program)
    if any(statistic.kind in ("sum", "product", "distinct_sum") for statistic in reading.statistics):
        said.append("Values are clipped to their public bounds before they are added.")
    said += program.remarks
    said += list(dict.fromkeys(note for estimator in program.estimators.values() for note in estimator.notes))
    if reading.public_keys is not None:
        said.append(
            f"Groups are those of public keys, empty ones included; rows with other keys are {_elsewhere(program)}."
        )
    if program.groupings and not any(_is_told(output.expression) for output in program.question.outputs):
        said.append(
            f"Totals have no value for the keys they leave out, and are printed as {TOTAL}; GROUPING marks them."
        )
    if program.selection is not None:
        said.append(str(program.selection))
    if program.contribution.gathers and program.question.rest is not None:
        said.append(f"All groups that are not shown are added up under {program.question.rest.value!r}.")
    if program.tables is not None:
        said.append(SUMS)
    if program.noise.scales:
        law = "Laplace" if program.noise.law == "laplace" else "Gaussian"
        said.append(f"Noise is exact discrete {law} noise; a count can come out negative.")
    return tuple(said)


def note_on_limits(program: Program) -> str:
    """Says how many rows of one person count; nothing where each row is one unit, or nothing is read."""
    return "" if program.reading.bounding is None or not program.readings else _describe_limits(program)


def _describe_limits(program: Program) -> str:
    limits, each = program.contribution.limits, program.groupings and program.tables is None
    if limits.total is not None:
        where = " in each grouping" if each else ""
        return f"At most {_times(limits.total, 'row')} per {program.people} are counted{where}."
    where = " of each grouping" if each else ""
    most = f", in at most {_times(limits.groups, 'group')}{where}" if _leaves_out_groups(program) else ""
    return f"At most {_times(limits.rows, 'row')} per {program.people} and group are counted{most}."


def _whose_rows(program: Program) -> list[str]:
    """Says who is protected, and how many rows of each count: a forgotten column of ids shows in every answer."""
    if program.reading.bounding is None:
        alone = "Each row is protected as one person, since no column of ids is declared (unit)."
        return [alone] if program.people == "row" else []
    return [
        _describe_limits(program),
        *cut_notes(program.reading.source, program.people),
        note_rows_without_id(program.people, "counted"),
    ]


def _is_told(expression: Expression) -> bool:
    """Returns whether a column of the answer marks the totals."""
    return any(is_grouping(column.name) for column in columns(expression))


def _leaves_out_groups(program: Program) -> bool:
    """Returns whether a unit may be in more groups than limits allow."""
    parts = (program,) if program.tables is not None else program.groupings or (program,)
    readings = [one.reading for one in parts if one.question.keys]
    most = program.contribution.limits.groups
    return any(reading.public_keys is None or len(reading.public_keys) > most for reading in readings)


def cut_notes(source: Relation | None, people: str) -> list[str]:
    """Says how many rows of each table are joined: constants of the plan, whether or not a person has more.

    >>> from discreet.plan.model.relations import Cut, BaseTable
    >>> cut_notes(Cut(source=BaseTable("visits", "patient"), by=(), rows=1000), "patient")
    ['Up to 1,000 rows per patient of each joined table are used.']
    """
    found = sorted({cut.rows for cut in cuts(source)}) if source is not None else []
    if not found:
        return []
    most = f"{found[-1]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"
    fewer = "" if len(found) == 1 else ", fewer where more tables are joined"
    return [f"Up to {most} rows per {people} of each joined table are used{fewer}."]


def note_rows_without_id(people: str, used: str) -> str:
    """Says that rows without an id are left out, as every answer about rows of people does.

    >>> note_rows_without_id("patient", "counted")
    'Rows without patient (NULL or blank) are not counted.'
    """
    return f"Rows without {people} (NULL or blank) are not {used}."


def _elsewhere(program: Program) -> str:
    """Returns where rows are that have none of the public keys."""
    rests = [rest_of(key.expression) for key in program.question.keys]
    labels = dict.fromkeys(repr(rest.value) for rest in rests if rest is not None)
    return f"counted under {' and '.join(labels)}" if rests and None not in rests else "not counted"


def _times(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


# ---------------------------------------------------------------------------------------------------- before the charge


@contextmanager
def exact_numbers() -> Iterator[None]:
    """Turns a grid that does not exist into a refusal with a remedy.

    Raises:
        UnsupportedQuery: if numbers of the question do not fit on a grid of exact integers.
    """
    try:
        yield
    except InvalidParameter as error:
        if error.name not in _OF_A_GRID:
            raise
        reason = "The numbers of this question are too large, too small or too fine to be added up exactly."
        hint = f"Scale them, or clip them to moderate limits, as in {CLIPPED}."
        raise UnsupportedQuery(reason, hint) from None


def answerable(program: Program, schemas: Mapping[str, TableSchema]) -> Program:
    """Returns the program, if every engine can run it: a function of the question and the declarations alone.

    Raises:
        InvalidParameter: naming the part that no engine takes.
    """
    for reading in program.readings:
        check_readable(reading, schemas)
    return program


def check_readable(reading: Reading, schemas: Mapping[str, TableSchema]) -> None:
    """Refuses a reading that engines would refuse for what it is.

    Raises:
        InvalidParameter: naming the part that no engine takes.
    """
    check_reading(reading, {table: _types(schema) for table, schema in schemas.items()})


def _types(schema: TableSchema) -> dict[str, Type]:
    return {name: column.type for name, column in schema.stored_columns.items()}
