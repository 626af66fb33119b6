"""What earlier answers tell for nothing: the same release again, or what follows from several. Nothing is read.

Whether something is found depends on released values and declarations alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import count

from discreet.curator.catalog.declarations import Terms, declaration
from discreet.curator.measurement_plan import MeasurementPlan, area, replay_key
from discreet.curator.replay.derivation import CubePart, Derived, PlaceInCube, derive, may_follow, place_in
from discreet.curator.replay.stored_releases import (
    MeasurementResult,
    edition_of,
    facts_of,
    law_of,
    serves,
    unpack,
    was_bought_for,
)
from discreet.errors import UnsupportedQuery
from discreet.exact import root_above
from discreet.ledger import Book, Stored
from discreet.ledger.serialization import at_most
from discreet.measurement.probes.probes import NOTHING, Fact, Facts, Probe, described
from discreet.measurement.profile.parts import ProfilePlan
from discreet.measurement.profile.profile import Profile
from discreet.measurement.program.execution import Released
from discreet.measurement.program.program import Edition, Program
from discreet.mechanisms.base import Law
from discreet.plan.canonical import recall
from discreet.plan.model.nodes import Question
from discreet.plan.model.schema import Limits, TableSchema
from discreet.privacy import events


class Replay:
    """Keeps releases in a book, and finds them again.

    Args:
        book: which keeps them.
        private: whether releases were made with secure noise. What a test released is never given as a private answer.
    """

    def __init__(self, book: Book, *, private: bool) -> None:
        self._book, self._private = book, private
        self._facts: dict[str, Fact] = {}

    # --------------------------------------------------------------------------------------------------- free answers

    def find(self, measurement: MeasurementPlan, terms: Terms, law: Law | None = None) -> MeasurementResult | None:
        """Returns what was released before, or follows from it, if it is as good as what is asked for.

        Args:
            measurement: the question.
            terms: what it may cost.
            law: of the noise it would have, unless that is chosen.
        """
        known = self._same(measurement, terms, law) or self._part(measurement, terms, law)
        if known is not None:
            return known
        derived = self._derived(measurement, terms, law)
        if derived is None or derived.excess > 1:
            return None
        return MeasurementResult(released=derived, facts=measurement.facts, event=derived.event, private=self._private)

    def offer(self, measurement: MeasurementPlan, terms: Terms) -> str | None:
        """Returns what earlier answers tell for nothing, in words: as precisely as asked for, or less."""
        if self.find(measurement, terms) is not None:
            return "Earlier answers tell this as precisely: ask, and nothing is charged."
        derived = self._derived(measurement, terms)
        if derived is None or not derived.excess:
            return None
        largest = terms.epsilon / root_above(derived.excess)
        for part in (Fraction(99, 100), Fraction(1, 2)):
            cheaper = replace(terms, epsilon=Fraction(at_most(largest * part)))
            if self.find(measurement, cheaper) is not None:
                told, most = f"{math.sqrt(derived.excess):.3g} times the noise", at_most(largest * part)
                return f"Earlier answers tell this with {told}: ask with an epsilon of {most} or less."
        return None

    def _same(self, measurement: MeasurementPlan, terms: Terms, law: Law | None) -> MeasurementResult | None:
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
        for stored in reversed(self._book.stored(measurement.replay_key(program, facts))):
            found = self.unpacked(measurement, stored.payload)
            if found is None:
                continue
            if stored.event:  # also what was released on the way to it
                found = replace(found, event=events.from_json(stored.event))
            wanted = measurement.program(terms, facts, law, edition=found.edition)
            if serves(found.released, wanted) or was_bought_for(stored.payload, terms):
                return found
        return None

    def same_groups(self, measurement: MeasurementPlan, terms: Terms) -> Iterator[Question]:
        """Yields a question with what was released of its groups beside it, so that a stored release may serve it.

        A SELECT over groups need not use all numbers that were released of them.
        """
        plan = measurement.plan
        if measurement.missing or plan.beside or plan.rest or plan.bands:
            return
        wanted = measurement.program(terms, measurement.facts)
        for question, _ in reversed(list(self._book.related(area(wanted, measurement.tables(measurement.facts))))):
            other = recall(question, plan)
            wider = None if other is None else _with_numbers_of(plan, other)
            if wider is not None:
                yield wider

    def _part(self, measurement: MeasurementPlan, terms: Terms, law: Law | None) -> MeasurementResult | None:
        """Returns what was released of several groupings, if one of them is asked for and has no more noise."""
        if measurement.missing:
            return None
        wanted = measurement.program(terms, measurement.facts, law)
        for question, stored in self._book.related(area(wanted, measurement.tables(measurement.facts))):
            several = recall(question, measurement.plan) if '"sets"' in question else None
            if several is None or self._place(measurement, several) is None:
                continue
            whole = self._of_other(measurement, several, stored)
            found = None if whole is None else self.part_of(measurement, several, whole)
            if found is not None and serves(found.released, wanted):
                return found
        return None

    def _place(self, measurement: MeasurementPlan, several: Question) -> PlaceInCube | None:
        return place_in(measurement.plan, several, described(measurement.plan, measurement.schemas))

    def part_of(self, measurement: MeasurementPlan, several: Question, whole: Released) -> MeasurementResult | None:
        """Returns one grouping of several that were fitted to each other as the answer to a question.

        None if it is none of them, or people's rows were limited by other keys than its own.
        """
        found = self._place(measurement, several)
        if found is None or whole.program.tables is None or whole.program.reading.bounding is not None:
            return None
        part = CubePart(measurement.plan, whole, found)
        return MeasurementResult(
            released=part, facts=measurement.facts, event=whole.program.event, private=self._private
        )

    def _derived(self, measurement: MeasurementPlan, terms: Terms, law: Law | None = None) -> Derived | None:
        """Returns the answer as it follows from releases about the same rows, however much noise it has."""
        plan = measurement.plan
        if measurement.missing or plan.sets or plan.beside or plan.rest or plan.bands:
            return None
        wanted = measurement.program(terms, measurement.facts, law)
        start = area(wanted, measurement.tables(measurement.facts))
        found = [self._source(measurement, *kept) for kept in self._book.related(start)]
        known = [released.unsalted for released in found if released is not None]
        return derive(wanted.unsalted, known) if known else None

    def _source(self, measurement: MeasurementPlan, question: str, stored: Stored) -> Released | None:
        """Returns a release about the same rows, for another question of one grouping from which this may follow."""
        other = recall(question, measurement.plan)
        if other is None or other.sets or not may_follow(measurement.plan, other):
            return None
        return self._of_other(measurement, other, stored)

    def _of_other(self, measurement: MeasurementPlan, other: Question, stored: Stored) -> Released | None:
        """Returns a release about the same rows, for another question."""
        groups_and_rows = json.loads(stored.payload).get("limits")
        if groups_and_rows is None:
            return None
        limited = replace(measurement.about(other), limits=Limits(*groups_and_rows))
        try:
            found = self.unpacked(limited, stored.payload)
        except UnsupportedQuery:  # this version would refuse the question
            return None
        return None if found is None else found.released

    # ------------------------------------------------------------------------------------------------ earlier releases

    def facts(self, probes: Sequence[Probe]) -> Facts:
        """Returns what earlier questions found out about this version of the data: by the first that found anything."""
        facts = NOTHING
        for probe in probes:
            place = replay_key(probe.program(Fraction(1)), probe.tables)
            if place not in self._facts:
                found = next(self._found(place, probe), None)
                if found is None:
                    continue
                self._facts[place] = found
            facts = facts.having(probe, self._facts[place])
        return facts

    def _found(self, place: str, probe: Probe) -> Iterator[Fact]:
        for stored in self._book.stored(place):
            released = unpack(stored.payload, lambda epsilon, _: probe.program(epsilon), private=self._private)
            former = (edition_of(json.loads(stored.payload)) or Edition.ONE_GRID) < Edition.UNCUT
            found = None if released is None else probe.found(released, former=former)
            if found is not None:
                yield found

    def profile(self, plan: ProfilePlan, place: str) -> Profile | None:
        """Returns the most precise profile that is kept, of the same rows and in this version of the data."""
        found = (self.unpacked_profile(stored.payload, plan) for stored in self._book.stored(place))
        return max((one for one in found if one is not None), key=lambda one: one.epsilon, default=None)

    def unpacked_profile(self, payload: bytes, plan: ProfilePlan) -> Profile | None:
        """Returns a kept profile; None if this version of the library would have released something else."""
        fields = json.loads(payload)
        about = fields["profile"]
        kept = replace(plan, columns=tuple(about["columns"]), by=tuple(tuple(keys) for keys in about["by"]))
        released = unpack(payload, lambda epsilon, _: kept.program(epsilon), private=self._private)
        if released is None:
            return None
        return Profile.of(kept, released, epsilon=Fraction(fields["epsilon"]), private=self._private)

    def portrait(self, measurement: MeasurementPlan, terms: Terms) -> Profile | None:
        """Returns the profile of a question's own rows, or of the table that it is about, if one was bought."""
        of_table = profile_key(measurement.schemas[measurement.plan.table])
        for place in (measurement.profile_place(terms), of_table):
            if self._book.stored(place):  # rarely: most questions plan no profile
                plan = measurement.table_profile if place is of_table else measurement.own_profile
                return None if plan is None else self.profile(plan, place)
        return None

    def releases(self, measurement: MeasurementPlan, program: Program) -> Iterator[tuple[int, Released]]:
        """Returns the releases of a question that are kept, each with the sequence of its entry, oldest first."""
        for stored in self._book.stored(measurement.replay_key(program, measurement.facts)):
            found = self.unpacked(measurement, stored.payload)
            if found is not None:
                yield stored.sequence, found.released

    def unpacked(self, measurement: MeasurementPlan, payload: bytes) -> MeasurementResult | None:
        """Returns a stored release, by the facts that are written beside it."""
        fields = json.loads(payload)
        facts, edition = facts_of(fields), edition_of(fields)
        if edition is None:
            return None
        rebuild = measurement.rebuild(facts, law_of(fields), edition=edition)
        released = unpack(payload, rebuild, private=self._private)
        if released is None:
            return None
        return MeasurementResult(
            released=released, facts=facts, event=released.program.event, private=self._private, edition=edition
        )


def _groups_of(plan: Question) -> tuple[object, ...]:
    return tuple(key.expression for key in plan.keys), plan.where, plan.sets


def _with_numbers_of(plan: Question, other: Question) -> Question | None:
    """A question with the aggregates of another about the same groups; None if that has not all of its own."""
    same = _groups_of(plan) == _groups_of(other)
    own = {replace(each, name=""): each for each in plan.aggregates}
    released = {replace(each, name=""): each for each in other.aggregates}
    if not same or not own.keys() <= released.keys() or len(own) == len(released):
        return None
    names = (f"#{place}" for place in count(1) if f"#{place}" not in {each.name for each in plan.aggregates})
    more = tuple(replace(each, name=next(names)) for each in released if each not in own)
    return replace(plan, aggregates=(*plan.aggregates, *more))


def profile_key(schema: TableSchema) -> str:
    """Returns under which key profiles of a table are kept: by its declaration and the version of its data."""
    about = json.dumps([declaration(schema), schema.version, schema.neighbours.value])
    return f"profile:{sha256(about.encode()).hexdigest()}"
