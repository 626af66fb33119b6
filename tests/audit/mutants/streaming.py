"""Mistakes in streams: a sensitivity of too few columns, noise that is used twice, people counted too often."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from discreet.curator import Curator
from discreet.curator.streams import curated_stream, stream_plan
from discreet.curator.streams.stream_plan import StreamPlan
from discreet.engines import Memory
from discreet.ledger import Ledger
from discreet.noise import SeededBits, draw_buffer
from discreet.plan.analysis import relation_schema
from discreet.plan.model.nodes import columns
from discreet.privacy import Budget
from discreet.stream import Participation, bounded_memory, toeplitz
from discreet.stream.factor import SumFactorization
from discreet.stream.laplace_tree import LaplaceTree
from discreet.stream.state_file import StateFile
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.curator.stream_worlds import check_paid


def _column(factor: SumFactorization, place: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    encoder = factor.encoder()
    return np.array([encoder.step(int(t == place)) / 2.0**factor.bits for t in range(factor.horizon)])


def _moves(factor: SumFactorization, unit: Participation) -> float:
    """The farthest move of measurements, over all periods that a unit may be in."""
    places = [
        chosen
        for count in range(1, unit.times + 1)
        for chosen in itertools.combinations(range(factor.horizon), count)
        if all(b - a >= unit.apart for a, b in itertools.pairwise(chosen))
    ]
    return max(float(np.linalg.norm(sum(_column(factor, place) for place in chosen))) for chosen in places)


@catcher("brute force")
def a_unit_moves_no_measurement_farther_than_declared() -> None:
    toeplitz.square_root_factor.cache_clear()
    bounded_memory.bounded_memory_factor.cache_clear()
    for factor in (toeplitz.square_root_factor(6), bounded_memory.bounded_memory_factor(6)):
        for unit in (Participation(), Participation(2, 2), Participation(3)):
            assert _moves(factor, unit) <= float(factor.sensitivity(unit)) * (1 + 1e-9)


@catcher("exact values")
def measurements_are_exact() -> None:
    factor = toeplitz.square_root_factor(6)
    values = [1 << 50, -(1 << 50), 3, 1 << 51, -1, 7]
    encoder = factor.encoder()
    for t, value in enumerate(values):
        exact = sum(int(factor.column[t - j]) * x for j, x in enumerate(values[: t + 1]))
        assert encoder.step(value) == exact


@catcher("exact values")
def no_draw_is_used_twice() -> None:
    ahead = draw_buffer.DrawBuffer(iter_numbers())
    assert len({ahead.next() for _ in range(1000)}) == 1000


def iter_numbers() -> Any:
    """Draws that all differ."""
    numbers = itertools.count()
    return lambda count: [next(numbers) for _ in range(count)]


@catcher("exact values")
def every_level_of_a_tree_is_charged() -> None:
    tree = LaplaceTree((Fraction(1, 3),) * 3, 2)
    line = tree.line()
    moved = sum(abs(x) for t in range(4) for x in line.measure(2 if t == 0 else 0))
    assert moved <= tree.event.sensitivity  # type: ignore[attr-defined] # of equal levels
    assert tree.event.sensitivity / tree.event.scale == 1  # type: ignore[attr-defined]


def _visits(days: int, **how: Any) -> Any:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    rows = [{"person": p, "day": dt.date(2026, 1, 1 + d)} for p in range(3) for d in range(days)]
    declared = {"types": {"person": "int", "day": "date"}, "budget": Budget(rho=10**9)}
    curator.protect(rows, name="visits", unit="person", **declared, **how)  # type: ignore[arg-type] # all of a kind
    question = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
    return curator.stream(question, horizon=4, rho=10**8, start="2026-01-01")


@catcher("record and replay")
def no_person_counts_in_more_periods_than_charged() -> None:
    stream = _visits(4, max_groups=2)
    assert stream._plan.participation.times == 2
    totals = [round(stream.release().records[0]["n"]) for _ in range(4)]
    assert totals == [3, 6, 6, 6]


@catcher("record and replay")
def a_replaced_person_leaves_and_enters() -> None:
    alone = _visits(1, max_groups=2)._plan.sensitivity("gaussian")
    assert _visits(1, max_groups=2, neighbours="replace")._plan.sensitivity("gaussian") ** 2 >= 2 * alone**2


@catcher("record and replay")
def no_unit_moves_a_stream_farther_than_was_charged() -> None:
    check_paid((12, 36, 67))


class _Crash(BaseException):
    """The process dies."""


@catcher("record and replay")
def a_period_that_was_saved_is_released_with_its_noise() -> None:
    """The first period is in the state when the process dies, and not yet in the ledger."""
    rows = [{"person": p, "day": dt.date(2026, 1, 1)} for p in range(3)]
    with TemporaryDirectory() as folder:

        def opened() -> Any:
            curator = Curator(f"{folder}/ledger", engine=Memory())
            types = {"person": "int", "day": "date"}
            curator.protect(rows, name="visits", unit="person", max_rows=1, types=types, budget=Budget(rho=1))
            question = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
            return curator, curator.stream(question, horizon=4, rho="0.5", start="2026-01-01")

        def die(*_: Any, **__: Any) -> Any:
            raise _Crash

        with pytest.MonkeyPatch.context() as patch, suppress(_Crash):
            curator, stream = opened()
            patch.setattr(Ledger, "store_beside", die)
            stream.release()
        curator.close()
        (state,) = Path(f"{folder}/ledger.streams").glob("*.state")
        saved = json.loads(state.read_text().splitlines()[1])["noisy"]
        curator, stream = opened()
        with curator:
            stream.release(period="2026-01-01")
            assert stream._witness.read_releases() == [saved]


def _measured_again(self: Any) -> None:
    self.count = self._witness.count_periods(self._stream) or 0
    self._loaded = self._loaded[: self.count]


def _found_by_name(expression: Any, schema: Any) -> bool:
    read = {column.name for column in columns(expression)}
    return bool(read) and read <= {*schema.parts, schema.unit}


def _found_as_written(column: Any, schema: Any) -> bool:
    return relation_schema._is_id(column, schema) or relation_schema._is_part(schema.columns[column.name].link)


_HULL, _DERIVED = relation_schema._hull, relation_schema.derive_column


def _linked_like_its_first_column(output: Any, schema: Any) -> Any:
    read = list(columns(output.expression))
    return replace(_DERIVED(output, schema), link=schema.columns[read[0].name].link if read else "")


_SQUARED = bounded_memory.BoundedMemoryFactorization._compute_squared_norm


def _one_column(column: Any, *_: Any) -> int:
    return sum(c * c for c in column)


def _same_again(self: Any) -> Any:
    if not self._waiting:
        self._waiting = self._draw(64)
    return self._waiting[-1]


MUTANTS = [
    Mutant(
        "a person in several periods counted once",
        "The sensitivity of a stream covers one period, however many periods a person may be in.",
        setting(toeplitz, "earliest_move", _one_column),
        a_unit_moves_no_measurement_farther_than_declared,
    ),
    Mutant(
        "products of a person's periods forgotten",
        "Products between columns of a bounded-memory factor are left out of its sensitivity.",
        setting(
            bounded_memory.BoundedMemoryFactorization,
            "_compute_squared_norm",
            lambda self, unit: len(unit.earliest(self.horizon)) * _SQUARED(self, Participation()),
        ),
        a_unit_moves_no_measurement_farther_than_declared,
    ),
    Mutant(
        "the second half of a column forgotten",
        "The norm of a column covers its first half only.",
        setting(toeplitz, "earliest_move", lambda column, *_: sum(c * c for c in column[: len(column) // 2])),
        a_unit_moves_no_measurement_farther_than_declared,
    ),
    Mutant(
        "measurements in floats",
        "The private side of a stream is computed in floats, whose rounding depends on other people's values.",
        setting(
            toeplitz.History,
            "product",
            lambda self, _, weights: int(weights @ self._floats[: self.count]),
        ),
        measurements_are_exact,
    ),
    Mutant(
        "noise used twice",
        "Noise that was drawn in advance stays in the buffer after it is used.",
        setting(draw_buffer.DrawBuffer, "next", _same_again),
        no_draw_is_used_twice,
    ),
    Mutant(
        "one level of a tree charged",
        "A tree is charged as if each value were in only one of its nodes.",
        setting(LaplaceTree, "levels", 1),
        every_level_of_a_tree_is_charged,
    ),
    Mutant(
        "who was counted is forgotten",
        "A stream does not remember in how many periods each person was counted.",
        setting(curated_stream.UnitMemory, "count", lambda *_: None),
        no_person_counts_in_more_periods_than_charged,
    ),
    Mutant(
        "a replaced person only leaves",
        "Under replacement, the periods that the new person enters are not counted.",
        setting(
            StreamPlan,
            "sensitivity",
            lambda self, _: self.program.contribution.l1(self.program.measures[0].form.corners, [Fraction(1)]),
        ),
        a_replaced_person_leaves_and_enters,
    ),
    Mutant(
        "a period taken from the name of a column",
        "A column with the name of a part of the id is taken for that part, whatever the column holds.",
        setting(stream_plan, "follows_from_id", _found_by_name),
        no_unit_moves_a_stream_farther_than_was_charged,
    ),
    Mutant(
        "a period taken from the text of an id",
        "The period is read from a text in the id, although one unit may write this text in several ways.",
        setting(relation_schema, "_is_one_value", _found_as_written),
        no_unit_moves_a_stream_farther_than_was_charged,
    ),
    Mutant(
        "a union that follows its first side",
        "A column of UNION ALL is taken for a part of the id if it is one on the first side only.",
        setting(relation_schema, "_hull", lambda found: replace(_HULL(found), link=found[0].link)),
        no_unit_moves_a_stream_farther_than_was_charged,
    ),
    Mutant(
        "a computed column that follows its first input",
        "A column computed from a part of the id is taken for that part, whatever else it is computed from.",
        setting(relation_schema, "derive_column", _linked_like_its_first_column),
        no_unit_moves_a_stream_farther_than_was_charged,
    ),
    Mutant(
        "a period that was saved is measured again",
        "A period that is in the state but not in the ledger is dropped, and its values get new noise.",
        setting(StateFile, "_check_witness", _measured_again),
        a_period_that_was_saved_is_released_with_its_noise,
    ),
]
