"""A charged question at work: probes first, where facts are missing, then the question itself.

Nothing is read before its charge is durable, and no charge is given back. The plan of a stage depends only on what
earlier stages released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget, SettledProgram, of_each_probe, replay_key
from discreet.curator.paid_release import ChargedRelease, ChargeRequest, ChargeRun, ReleaseOutcome
from discreet.curator.replay.replay import Replay
from discreet.curator.replay.stored_releases import MeasurementResult, edition_of, pack, unpack, write_facts
from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.ledger.serialization import read_header
from discreet.measurement.probes.probes import Fact, Facts, Probe
from discreet.measurement.profile.parts import ProfilePlan
from discreet.measurement.program.execution import Reader, run
from discreet.measurement.program.program import Program, ReleaseFormat
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.canonical import canonical
from discreet.privacy import events


@dataclass(frozen=True, kw_only=True)
class ProfileRequest:
    """A profile that is bought with a question, in one charge: of its table, or of its own rows.

    Args:
        plan: what it counts.
        epsilon: what it may cost.
        place: under which key it is kept.
        kept: whether one as precise is.
    """

    plan: ProfilePlan
    epsilon: Fraction
    place: str
    kept: bool

    @cached_property
    def program(self) -> Program:
        """Returns what is read and released for it."""
        return self.plan.program(self.epsilon)

    def without(self, event: events.Event) -> events.Event:
        """Returns what a charge leaves for the question itself."""
        both = isinstance(event, events.Composed) and event.events[:-1] == (self.program.event,)
        return event.events[-1] if both and isinstance(event, events.Composed) else event

    def release_profile(self, engine: Reader, releaser: Releaser) -> str:
        """Reads, adds noise, and returns what is kept of it."""
        made, private = run(self.program, engine, releaser), releaser.bits.private
        about = {"columns": list(self.plan.columns), "by": [list(one) for one in self.plan.by]}
        return pack(made, QueryBudget(self.epsilon, Fraction(0)), private=private, beside={"profile": about})


def with_profile(request: ChargeRequest, wanted: ProfileRequest | None) -> ChargeRequest:
    """Returns the one charge of a question and of a profile; under a key, it is known by what that may cost, too."""
    if wanted is None:
        return request
    terms = f"{request.terms} profile {wanted.epsilon}"
    if wanted.kept:
        return replace(request, terms=terms)
    asked = None if request.asked is None else request.asked + wanted.epsilon
    return replace(request, event=events.Composed([wanted.program.event, request.event]), terms=terms, asked=asked)


class ReleaseExecutor:
    """Reads for charges, stage by stage, and adds noise.

    Args:
        engine: which reads.
        releaser: which adds noise.
    """

    def __init__(self, engine: Reader, releaser: Releaser) -> None:
        self._engine, self._releaser = engine, releaser

    @property
    def private(self) -> bool:
        """Returns whether its noise is private; False if it is seeded for a test."""
        return self._releaser.bits.private

    def release(self, measurement: MeasurementPlan, settled: SettledProgram, bought: QueryBudget) -> ReleaseOutcome:
        """Reads what a program asks for, adds noise, and returns it as it is kept."""
        made = run(settled.program, self._engine, self._releaser)
        beside = write_facts(settled, bought)
        return ReleaseOutcome(
            event=settled.program.event,
            replay_key=measurement.replay_key(settled.program, settled.facts),
            payload=pack(made, settled.terms, private=self.private, beside=beside),
        )

    def probe(self, probe: Probe, epsilon: Fraction, charge: ChargeRun) -> Fact | None:
        """Returns what a probe found, kept under a key of its own; if its charge was run before, what was found then.

        It is kept at once, so that it is never paid again, even if the question fails.

        Raises:
            InternalError: if what was kept then cannot be read.
        """
        made = run(probe.program(epsilon), self._engine, self._releaser)
        payload = pack(made, QueryBudget(epsilon, Fraction(0)), private=self.private)
        key, question = replay_key(made.program, probe.tables), canonical(made.program.question)
        kept = charge.keep(key, payload, event=made.program.event, question=question)
        if kept == payload.encode():
            return probe.find_fact(made)
        first = unpack(kept, lambda epsilon, _: probe.program(epsilon), private=self.private)
        if first is None:
            raise InternalError("The stored release of a charge cannot be read.")
        return probe.find_fact(
            first, former=(edition_of(read_header(kept)) or ReleaseFormat.ONE_GRID) < ReleaseFormat.UNCUT
        )

    def profile(self, wanted: ProfileRequest, charge: ChargeRun) -> events.Event:
        """Keeps a profile that a charge has paid for, and returns what the charge leaves for the question itself."""
        rest = wanted.without(charge.receipt.event)
        if rest is not charge.receipt.event and not wanted.kept:
            payload, question = wanted.release_profile(self._engine, self._releaser), canonical(wanted.program.question)
            charge.keep(wanted.place, payload, event=wanted.program.event, question=question)
        return rest


@dataclass(frozen=True, kw_only=True)
class PaidQuestion:
    """A question that is asked once: see `PaidRelease`.

    Args:
        measurement: the question.
        terms: what may be spent on it.
        profile: what is bought with it, in the same charge.
        payable: returns the question as it is paid for, or refuses it.
        performer: which reads and adds noise.
        replay: which finds what is stored, and reads it.
    """

    measurement: MeasurementPlan
    terms: QueryBudget
    profile: ProfileRequest | None
    payable: Callable[[], MeasurementPlan]
    performer: ReleaseExecutor
    replay: Replay

    @cached_property
    def request(self) -> ChargeRequest:
        """Returns the one charge of the question and its profile."""
        return with_profile(self.measurement.request(self.terms), self.profile)

    @property
    def stage(self) -> str:
        """Returns what is planned, in public words."""
        return stage_name([self.measurement.plan.table], probing=bool(self.measurement.missing))

    def find(self) -> MeasurementResult | None:
        """Returns what was released before, or follows from it."""
        return self.replay.find(self.payable(), self.terms)

    def prepare(self) -> None:
        """Does nothing: what cannot be paid for was refused when it was looked for."""

    def execute(self, charge: ChargeRun) -> ReleaseOutcome:
        """Finds facts that are missing, then measures the question at what they leave.

        A charge that is run again spends what it was made for, whatever was found out since: the share of its probes
        is spent.
        """
        measurement, terms = self.measurement, self.terms
        paid_for = charge.receipt.event if self.profile is None else self.performer.profile(self.profile, charge)
        paid = measurement.probes_paid(terms, paid_for) if charge.receipt.claim else len(measurement.missing)
        missing, facts = measurement.missing, measurement.facts
        epsilon = of_each_probe(terms, paid) if missing else Fraction(0)
        for probe in missing:
            facts = facts.having(probe, self.performer.probe(probe, epsilon, charge))
        found = settle_program(measurement, terms, facts, charge, probed=paid > 0)
        charge.require_paid(found.program.event)
        return self.performer.release(measurement, found, terms)

    def read(self, kept: ChargedRelease) -> MeasurementResult | None:
        """Returns the release that is stored, with the event of all that was released for it."""
        found = self.replay.unpack_release(self.measurement, kept.payload)
        return found if found is None or found.event is kept.event else replace(found, event=kept.event)


def stage_name(tables: Sequence[str], *, probing: bool) -> str:
    """Names a run by what is planned, in words that no draw changes."""
    reading = f"Reading {' and '.join(dict.fromkeys(tables))} and adding noise"
    return f"Choosing bounds and limits, then {reading[0].lower()}{reading[1:]}" if probing else reading


def settle_program(
    measurement: MeasurementPlan, terms: QueryBudget, facts: Facts, charge: ChargeRun, *, probed: bool
) -> SettledProgram:
    """Returns the question's own program, from what probes leave if the charge was made for some."""
    if not probed:
        return SettledProgram(program=measurement.program(terms, facts), terms=terms, facts=facts)
    return measurement.settle_program(terms, facts, charge.covers)
