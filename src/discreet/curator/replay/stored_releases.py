"""Releases as the ledger keeps them: noisy statistics, from which all that follows is answered for free."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.curator.measurement_plan import QueryBudget, Rebuild, SettledProgram
from discreet.dataclass import dataclass
from discreet.exact.integer_columns import array_of
from discreet.ledger.serialization import read_body, read_header, with_body
from discreet.measurement.probes.probes import Fact, Facts
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.measurement.program.program import Program, ReleaseFormat
from discreet.measurement.releases.additive import Integers
from discreet.mechanisms.mechanism import Law
from discreet.plan.canonical import read_back
from discreet.plan.model.group_columns import KeyRows
from discreet.plan.model.nodes import Expression, FunctionCall
from discreet.plan.model.schema import ColumnBounds
from discreet.privacy import events

LISTS, WORDS = BODIES = 1, 2
"""Editions of the body: columns of keys and of noisy statistics, of the release itself and of those beside it.

Each column is a list; of long releases, columns of whole numbers are words of 64 bits in base 64.
"""

_LONG = 1000

_EDITIONS: Mapping[Any, ReleaseFormat] = {int(edition): edition for edition in ReleaseFormat}

Written = Sequence[Any] | Mapping[str, str]

_FORMER = ("keys", "noisy", "blocks")  # what an answer in one line, as all once were, has in addition to its header


def pack(
    released: ReleasedStatistics,
    terms: QueryBudget,
    *,
    private: bool,
    beside: Mapping[str, Any] | None = None,
) -> str:
    """Writes a release as a header, by which it is judged, and a body: exact integers, and keys with their types.

    Args:
        released: what is kept.
        terms: the budget its program was chosen for.
        private: whether its noise was.
        beside: what else its program was built from.
    """
    program = released.program
    header = {
        **(beside or {}),
        "version": int(ReleaseFormat.NOW),
        "private": private,
        "epsilon": str(terms.epsilon),
        "delta": str(terms.delta),
        "limits": program.contribution.limits.numbers,
        "event": events.to_json(program.event),
        "groups": released.key_rows.length,
        "variances": [str(variance) for variance in _variances(program)],
        "body": WORDS if max(one.key_rows.length for one in (released, *released.beside)) >= _LONG else LISTS,
    }
    blocks = {"blocks": [_block(one) for one in released.beside]} if released.beside else {}
    return with_body(header, _block(released) | blocks)


def _variances(program: Program) -> list[Fraction]:
    """Returns the variance of the noise of each aggregate, in the order of the program."""
    known = [program.estimators.get(aggregate.name) for aggregate in program.question.aggregates]
    return [] if None in known else [one.variance(program.noise) for one in known if one is not None]


def _block(released: ReleasedStatistics) -> dict[str, Any]:
    return {
        "count": released.key_rows.length,
        "columns": [_written_column(column) for column in released.key_rows.columns],
        "noisy": [_written_numbers(column) for column in released.noisy.T],
    }


def _written_column(values: Sequence[Any]) -> Written:
    """Returns a column of keys; whole numbers of a long one have 64 bits, as all keys of theirs."""
    kinds = set(map(type, values))
    if kinds == {int} and len(values) >= _LONG:
        return _written_numbers(np.array(values, dtype=np.int64))
    return [_write_value(value) for value in values] if {dt.date, dt.datetime} & kinds else values


def _written_numbers(column: Integers) -> Written:
    """Returns a column of integers: of a long one the words, if 64 bits hold them all."""
    if column.dtype == np.int64 and len(column) >= _LONG:
        return {"int64": base64.b64encode(column.astype("<i8").tobytes()).decode()}
    return [int(value) for value in column.tolist()]


def header_of(payload: bytes | str) -> Mapping[str, Any]:
    """Returns the header of a release, also of one in one line: everything but its keys and numbers."""
    fields = read_header(payload)
    groups = {"groups": len(fields["keys"])} if "noisy" in fields else {}
    return {**groups, **{name: value for name, value in fields.items() if name not in _FORMER}}


def edition_of(fields: Mapping[str, Any]) -> ReleaseFormat | None:
    """Returns by whose rules a release was made: its noise and its intervals stay what they were; None if unknown."""
    return _EDITIONS.get(fields["version"])


def unpack(payload: bytes | str, rebuild: Rebuild, *, private: bool) -> ReleasedStatistics | None:
    """Reads the release that `pack` wrote, if its program can be rebuilt from its header."""
    program = rebuild_program(read_header(payload), rebuild, private=private)
    return None if program is None else open_body(payload, program)


def rebuild_program(fields: Mapping[str, Any], rebuild: Rebuild, *, private: bool) -> Program | None:
    """Returns the program of a release from its header, by the rules that `edition_of` returns.

    None if this version of the library would have released it differently, or if one of the two has seeded noise: what
    a test released must never come back as a private answer.
    """
    if edition_of(fields) is None or fields["private"] is not private or fields.get("body", LISTS) not in BODIES:
        return None
    program = rebuild(Fraction(fields["epsilon"]), Fraction(fields["delta"]))
    if events.to_json(program.event) != fields["event"]:  # an earlier version stored noise without what it is for
        stored = events.from_json(fields["event"])
        return program if events.strip_calibration(program.event) == stored else None
    return program


def open_body(payload: bytes | str, program: Program) -> ReleasedStatistics:
    """Reads the body of a release, whose program is known from its header."""
    fields = read_body(payload)
    blocks = zip(program.beside, fields.get("blocks", ()), strict=True)
    return _release(program, fields, [_release(*block) for block in blocks])


def _release(
    program: Program, fields: Mapping[str, Any], beside: Sequence[ReleasedStatistics] = ()
) -> ReleasedStatistics:
    """Returns a release from columns; from rows, where it is in one line."""
    if "columns" in fields:
        length = fields["count"]
        keys = KeyRows.of_columns([_read_column(column) for column in fields["columns"]], length)
        columns = [_read_numbers(column) for column in fields["noisy"]]
        noisy: Integers = np.array(columns, dtype=None if columns else object).reshape(program.width, length).T
    else:
        keys = KeyRows.of([tuple(_read(value) for value in key) for key in fields["keys"]])
        noisy = np.array(fields["noisy"], dtype=object).reshape(keys.length, program.width)
    return ReleasedStatistics(program, keys, noisy, beside)


def _read_numbers(column: Written) -> Integers:
    if isinstance(column, Mapping):
        return np.frombuffer(base64.b64decode(column["int64"]), dtype="<i8").astype(np.int64)
    return array_of(column)


def _read_column(values: Written) -> Sequence[Any]:
    if isinstance(values, Mapping):
        return list(_read_numbers(values).tolist())
    return [_read(value) for value in values] if dict in set(map(type, values)) else values


def conditions(where: Expression | None) -> frozenset[Expression]:
    """Returns what WHERE demands, one by one."""
    if where is None:
        return frozenset()
    if isinstance(where, FunctionCall) and where.function == "and":
        return frozenset().union(*(conditions(part) for part in where.arguments))
    return frozenset({where})


@lru_cache(maxsize=4096)
def stored_conditions(question: str) -> frozenset[Expression] | None:
    """Returns what the WHERE of a stored question demands; None if it cannot be read."""
    read = read_back(question)
    return None if read is None else conditions(read[1])


def serves(stored: Program, wanted: Program) -> bool:
    """Returns whether a stored release has, for each aggregate, noise no larger than the one asked for.

    Where nothing but private keys is asked for, it must show groups at least as small.
    """
    pairs = list(zip((stored, *stored.beside), (wanted, *wanted.beside), strict=True))
    if not all(asked.estimators or _shows(given, asked) for given, asked in pairs):
        return False
    return all(
        given.estimators[name].variance(given.noise) <= estimator.variance(asked.noise)
        for given, asked in pairs
        for name, estimator in asked.estimators.items()
    )


def _shows(given: Program, asked: Program) -> bool:
    if given.selection is None or asked.selection is None:
        return given.selection is asked.selection
    return given.selection.half_kept <= asked.selection.half_kept


def _write_value(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    return value


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return dt.date.fromisoformat(text) if kind == "date" else dt.datetime.fromisoformat(text)


def write_facts(settled: SettledProgram, bought: QueryBudget) -> dict[str, Any]:
    """Writes the facts of a program, the law it is held to, and what was paid with its probes, as JSON fields."""
    if not settled.facts.known:
        return {} if settled.law is None else {"law": settled.law}
    guessed = settled.facts.guessed
    chosen = [[*spot, _written_fact(fact), spot not in guessed] for spot, fact in settled.facts.known.items()]
    days = {"times": sorted(settled.facts.times)} if settled.facts.times else {}
    return {"chosen": chosen, "law": settled.law, "bought": [str(bought.epsilon), str(bought.delta)], **days}


def facts_of(fields: Mapping[str, Any]) -> Facts:
    """Reads the facts that `write_facts` wrote."""
    rows = fields.get("chosen", [])
    return Facts(
        known={(table, what): _read_fact(fact) for table, what, fact, _ in rows},
        guessed=frozenset((table, what) for table, what, _, found in rows if not found),
        times=frozenset((table, what) for table, what in fields.get("times", [])),
    )


def _written_fact(fact: Fact) -> int | list[str]:
    return fact if isinstance(fact, int) else [str(fact.low), str(fact.high)]


def _read_fact(fact: int | list[str]) -> Fact:
    if isinstance(fact, int):
        return fact
    low, high = fact
    return ColumnBounds(Fraction(low), Fraction(high))


def law_of(fields: Mapping[str, Any]) -> Law | None:
    """Returns the law that its program was held to; None if to none."""
    law: Law | None = fields.get("law")
    return law


def was_bought_for(fields: Mapping[str, Any], terms: QueryBudget) -> bool:
    """Returns whether a release was paid with at least this budget, probes included: asking again for it is free."""
    epsilon, delta = fields.get("bought", ("0", "0"))
    return Fraction(epsilon) >= terms.epsilon and Fraction(delta) >= terms.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementResult:
    """A result that may be shown: a release or what follows from some, its facts, and all that was released.

    Args:
        released: the release.
        facts: what was found out before.
        event: all that was released.
        private: False if the noise was seeded, for a test.
        edition: by whose rules it was made.
    """

    released: ReleasedStatistics
    facts: Facts
    event: events.Event
    private: bool
    edition: ReleaseFormat = ReleaseFormat.NOW
