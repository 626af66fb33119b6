"""Free answers from earlier ones: the same release again, or what follows from several. Nothing is read.

Whether something is found depends on released values and declarations alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple

from discreet.curator.catalog.declarations import declaration
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget, area, replay_key
from discreet.curator.replay.cube_part import CubePart, PlaceInCube, part_program, place_in, stands_alone
from discreet.curator.replay.derivation import (
    DerivedStatistics,
    derive,
    may_follow,
    may_serve,
)
from discreet.curator.replay.stored_releases import (
    MeasurementResult,
    conditions,
    edition_of,
    facts_of,
    header_of,
    law_of,
    open_body,
    rebuild_program,
    serves,
    stored_conditions,
    unpack,
    was_bought_for,
)
from discreet.errors import UnsupportedQuery
from discreet.exact import root_above
from discreet.ledger import Ledger, StoredHeader
from discreet.ledger.serialization import at_most, read_header
from discreet.ledger.store.ledger_store import AnswerPlace
from discreet.measurement.probes.probes import NOTHING, Fact, Facts, Probe, describe_counted_rows
from discreet.measurement.profile.parts import ProfilePlan
from discreet.measurement.profile.profile import Profile
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.measurement.program.program import Program, ReleaseFormat
from discreet.mechanisms.mechanism import Law
from discreet.plan.canonical import recall
from discreet.plan.model.nodes import Question
from discreet.plan.model.schema import Limits, TableSchema
from discreet.privacy import events


class Replay:
    """Keeps releases in a ledger, and finds them again.

    Args:
        ledger: which keeps them.
        private: whether releases were made with secure noise. What a test released is never given as a private answer.
    """

    def __init__(self, ledger: Ledger, *, private: bool) -> None:
        self._ledger, self._private = ledger, private
        self._facts: dict[str, Fact] = {}

    # --------------------------------------------------------------------------------------------------- free answers

    def find(
        self, measurement: MeasurementPlan, terms: QueryBudget, law: Law | None = None
    ) -> MeasurementResult | None:
        """Returns what was released before, or follows from it, if it is as good as what is asked for.

        Args:
            measurement: the question.
            terms: what it may cost.
            law: of the noise it would have, unless that is chosen.
        """
        same = self._same(measurement, terms, law)
        if same is not None or measurement.missing:
            return same
        wanted = measurement.program(terms, measurement.facts, law)
        related = self._read_related_headers(measurement, wanted)
        part = self._part(measurement, wanted, related)
        if part is not None:
            return part
        derived = self._derive_answer(measurement, wanted, related, as_precise=True)
        if derived is None or derived.excess > 1:
            return None
        return MeasurementResult(released=derived, facts=measurement.facts, event=derived.event, private=self._private)

    def offer(self, measurement: MeasurementPlan, terms: QueryBudget) -> str | None:
        """Returns what earlier answers tell for nothing, in words: as precisely as asked for, or less."""
        if self.find(measurement, terms) is not None:
            return "Earlier answers already give this as precisely. Asking costs nothing."
        if measurement.missing:
            return None
        wanted = measurement.program(terms, measurement.facts)
        derived = self._derive_answer(
            measurement, wanted, self._read_related_headers(measurement, wanted), as_precise=False
        )
        if derived is None or not derived.excess:
            return None
        largest = terms.epsilon / root_above(derived.excess)
        for part in (Fraction(99, 100), Fraction(1, 2)):
            cheaper = replace(terms, epsilon=Fraction(at_most(largest * part)))
            if self.find(measurement, cheaper) is not None:
                told, most = f"{math.sqrt(derived.excess):.3g} times the noise", at_most(largest * part)
                return f"Earlier answers give this for nothing with {told}. Ask with an epsilon of {most} or less."
        return None

    def _same(self, measurement: MeasurementPlan, terms: QueryBudget, law: Law | None) -> MeasurementResult | None:
        """Returns a stored release of the same question that is as good as the one asked for, or was paid as much."""
        facts = measurement.facts
        for probe in measurement.missing:  # where nothing was found, a fixed range was taken
            facts = facts.having(probe, None)
        try:
            program = measurement.program(terms, facts)
        except UnsupportedQuery:
            if measurement.missing:
                return None
            raise
        for kept in self._ledger.read_headers(measurement.replay_key(program, facts), most=MOST_SAME):
            fields = self._fields(kept)
            found = self._program(measurement, fields)
            if found is None:
                continue
            wanted = measurement.program(terms, facts, law, edition=found.edition)
            if serves(found.program, wanted) or was_bought_for(fields, terms):
                result = found.open_release(self._ledger.read_answer(kept.place).payload, private=self._private)
                if kept.event:  # also what was released on the way to it
                    result = replace(result, event=events.from_json(kept.event))
                return result
        return None

    def _read_related_headers(self, measurement: MeasurementPlan, wanted: Program) -> tuple[StoredHeader, ...]:
        """Returns the headers of what was released about the same rows, the newest first."""
        return self._ledger.read_headers(area(wanted, measurement.tables(measurement.facts)))

    def _fields(self, kept: StoredHeader) -> Mapping[str, Any]:
        """Returns the header of a stored release; one that was stored without any is opened once."""
        if kept.header:
            return _header_fields(kept.header)
        found = _FORMER.get(kept.place)
        if found is None:
            found = header_of(self._ledger.read_answer(kept.place).payload)
            while len(_FORMER) >= _MOST_FORMER:
                _FORMER.pop(next(iter(_FORMER)), None)
            _FORMER[kept.place] = found
        return found

    def same_groups(self, measurement: MeasurementPlan, terms: QueryBudget) -> Iterator[Question]:
        """Yields a question with what was released of its groups, so that a stored release may serve it.

        A SELECT over groups need not use all numbers that were released of them.
        """
        plan = measurement.plan
        if measurement.missing or plan.beside or plan.rest or plan.bands:
            return
        wanted = measurement.program(terms, measurement.facts)
        for kept in reversed(self._read_related_headers(measurement, wanted)):
            other = recall(kept.question, plan)
            wider = None if other is None else _with_numbers_of(plan, other)
            if wider is not None:
                yield wider

    def _part(
        self, measurement: MeasurementPlan, wanted: Program, related: Sequence[StoredHeader]
    ) -> MeasurementResult | None:
        """Returns what was released of several groupings, if one of them is asked for and has no more noise."""
        for kept in related:
            several = recall(kept.question, measurement.plan) if '"sets"' in kept.question else None
            place = None if several is None else self._place(measurement, several)
            if several is None or place is None:
                continue
            whole = self._program_of_other(measurement, several, self._fields(kept))
            if whole is None or not stands_alone(whole):
                continue
            if serves(part_program(measurement.plan, whole, place), wanted):
                return self.part_of(
                    measurement, several, open_body(self._ledger.read_answer(kept.place).payload, whole)
                )
        return None

    def _place(self, measurement: MeasurementPlan, several: Question) -> PlaceInCube | None:
        return place_in(measurement.plan, several, describe_counted_rows(measurement.plan, measurement.schemas))

    def part_of(
        self, measurement: MeasurementPlan, several: Question, whole: ReleasedStatistics
    ) -> MeasurementResult | None:
        """Returns one grouping of several that were fitted to each other as the answer to a question.

        None if it is none of them, or people's rows were limited by other keys than its own.
        """
        found = self._place(measurement, several)
        if found is None or not stands_alone(whole.program):
            return None
        part = CubePart(measurement.plan, whole, found)
        return MeasurementResult(
            released=part, facts=measurement.facts, event=whole.program.event, private=self._private
        )

    def _derive_answer(
        self, measurement: MeasurementPlan, wanted: Program, related: Sequence[StoredHeader], *, as_precise: bool
    ) -> DerivedStatistics | None:
        """Returns the answer as it follows from releases about the same rows.

        Args:
            measurement: the question.
            wanted: its program.
            related: the headers of those releases.
            as_precise: leaves unopened what has too much noise; else the answer has however much it has.
        """
        plan = measurement.plan
        if plan.sets or plan.beside or plan.rest or plan.bands:
            return None
        asked, found = conditions(plan.where), list[ReleasedStatistics]()
        for kept in related:
            demanded = stored_conditions(kept.question)
            if demanded is None or not demanded <= asked:  # most are turned down here
                continue
            other = recall(kept.question, plan)
            if other is None or other.sets or not may_follow(plan, other):
                continue
            fields = self._fields(kept)
            if not may_serve(wanted, other, fields, as_precise=as_precise):
                continue
            program = self._program_of_other(measurement, other, fields)
            if program is not None:
                found.append(open_body(self._ledger.read_answer(kept.place).payload, program).without_salt)
        return derive(wanted.without_salt, found) if found else None

    def _program_of_other(
        self, measurement: MeasurementPlan, other: Question, fields: Mapping[str, Any]
    ) -> Program | None:
        """Returns the program of a release about the same rows, for another question, by its header."""
        if fields.get("limits") is None:
            return None
        limited = replace(measurement.about(other), limits=Limits(*fields["limits"]))
        try:
            found = self._program(limited, fields)
        except UnsupportedQuery:  # this version would refuse the question
            return None
        return None if found is None else found.program

    # ------------------------------------------------------------------------------------------------ earlier releases

    def facts(self, probes: Sequence[Probe]) -> Facts:
        """Returns what earlier questions found out about this version of the data: by the first that found anything."""
        facts = NOTHING
        for probe in probes:
            place = replay_key(probe.program(Fraction(1)), probe.tables)
            if place not in self._facts:
                found = next(self._find_facts(place, probe), None)
                if found is None:
                    continue
                self._facts[place] = found
            facts = facts.having(probe, self._facts[place])
        return facts

    def _find_facts(self, place: str, probe: Probe) -> Iterator[Fact]:
        for stored in self._ledger.read_answers(place):
            released = unpack(stored.payload, lambda epsilon, _: probe.program(epsilon), private=self._private)
            former = (edition_of(read_header(stored.payload)) or ReleaseFormat.ONE_GRID) < ReleaseFormat.UNCUT
            found = None if released is None else probe.find_fact(released, former=former)
            if found is not None:
                yield found

    def profile(self, plan: ProfilePlan, place: str) -> Profile | None:
        """Returns the most precise profile that is kept, of the same rows and in this version of the data."""
        found = (self.unpacked_profile(stored.payload, plan) for stored in self._ledger.read_answers(place))
        return max((one for one in found if one is not None), key=lambda one: one.epsilon, default=None)

    def unpacked_profile(self, payload: bytes, plan: ProfilePlan) -> Profile | None:
        """Returns a kept profile; None if this version of the library would have released something else."""
        fields = read_header(payload)
        about = fields["profile"]
        kept = replace(plan, columns=tuple(about["columns"]), by=tuple(tuple(keys) for keys in about["by"]))
        released = unpack(payload, lambda epsilon, _: kept.program(epsilon), private=self._private)
        if released is None:
            return None
        return Profile.of(kept, released, epsilon=Fraction(fields["epsilon"]), private=self._private)

    def profile_for(self, measurement: MeasurementPlan, terms: QueryBudget) -> Profile | None:
        """Returns the profile of a question's own rows, or of the table that it is about, if one was bought."""
        of_table = profile_key(measurement.schemas[measurement.plan.table])
        places = measurement.profile_place(terms), of_table
        kept = {stored.replay_key for stored in self._ledger.read_answers(*places)}
        for place in places if kept else ():  # rarely: most questions plan no profile
            if place in kept:
                plan = measurement.table_profile if place is of_table else measurement.own_profile
                return None if plan is None else self.profile(plan, place)
        return None

    def releases(self, measurement: MeasurementPlan, program: Program) -> Iterator[tuple[int, ReleasedStatistics]]:
        """Returns the releases of a question that are kept, each with the sequence of its entry, oldest first."""
        for stored in self._ledger.read_answers(measurement.replay_key(program, measurement.facts)):
            found = self.unpack_release(measurement, stored.payload)
            if found is not None:
                yield stored.sequence, found.released

    def unpack_release(self, measurement: MeasurementPlan, payload: bytes) -> MeasurementResult | None:
        """Returns a stored release, by the facts that are written with it."""
        found = self._program(measurement, read_header(payload))
        return None if found is None else found.open_release(payload, private=self._private)

    def _program(self, measurement: MeasurementPlan, fields: Mapping[str, Any]) -> _StoredProgram | None:
        """Returns what a release was made by, from its header; None if its body may not be given."""
        edition = edition_of(fields)
        if edition is None:
            return None
        facts = facts_of(fields)
        program = rebuild_program(
            fields, measurement.rebuild(facts, law_of(fields), edition=edition), private=self._private
        )
        return None if program is None else _StoredProgram(program, facts, edition)


class _StoredProgram(NamedTuple):
    """The program and the facts of a stored release."""

    program: Program
    facts: Facts
    edition: ReleaseFormat

    def open_release(self, payload: bytes, *, private: bool) -> MeasurementResult:
        """Returns the release with its keys and numbers."""
        released = open_body(payload, self.program)
        return MeasurementResult(
            released=released, facts=self.facts, event=self.program.event, private=private, edition=self.edition
        )


MOST_SAME = 1000  # releases of one question that are looked at, the newest first

_FORMER: dict[AnswerPlace, Mapping[str, Any]] = {}  # headers of releases in one line, by the hash of their entry
_MOST_FORMER = 1000


@lru_cache(maxsize=4096)
def _header_fields(header: bytes) -> Mapping[str, Any]:
    return read_header(header + b"\n")


def _groups_of(plan: Question) -> tuple[object, ...]:
    return tuple(key.expression for key in plan.keys), plan.where, plan.sets


def _with_numbers_of(plan: Question, other: Question) -> Question | None:
    """Returns a question with the aggregates of another about the same groups; None if that has not all of its own."""
    same = _groups_of(plan) == _groups_of(other)
    own = {replace(each, name=""): each for each in plan.aggregates}
    released = {replace(each, name=""): each for each in other.aggregates}
    if not same or not own.keys() <= released.keys() or len(own) == len(released):
        return None
    names = (f"#{place}" for place in count(1) if f"#{place}" not in {each.name for each in plan.aggregates})
    more = tuple(replace(each, name=next(names)) for each in released if each not in own)
    return replace(plan, aggregates=(*plan.aggregates, *more))


@lru_cache(maxsize=64)  # a declaration may hold very many keys
def profile_key(schema: TableSchema) -> str:
    """Returns under which key profiles of a table are kept: by its declaration and the version of its data."""
    about = json.dumps([declaration(schema), schema.version, schema.neighbours.value])
    return f"profile:{sha256(about.encode()).hexdigest()}"
