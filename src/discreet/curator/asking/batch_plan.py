"""Several questions before their one charge: which are measured, and which follow from those or are kept already.

Equal releases are measured once. What is kept and as good as a share of the budget would make it takes no share. A
question whose groups are some of another's takes none either, if it then has no more noise than it would have had:
the other shares are larger for it. Questions about the same rows by different keys are measured as the groupings
of one, where no number is noisier for it. All of that follows from declarations, the budget and what was released
before; nothing is read and nothing is spent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any, Self

import numpy as np

from discreet.accounting.composition import terms as listed
from discreet.accounting.zcdp import compose, rho_for, zcdp_epsilon
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget, promised_event, replay_key
from discreet.curator.paid_release import ChargeRequest
from discreet.curator.replay.cube_part import cube_of
from discreet.curator.replay.derivation import DerivedStatistics, derive, may_follow
from discreet.curator.replay.stored_releases import MeasurementResult
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter, UnsupportedEvent, UnsupportedQuery
from discreet.exact import float_below
from discreet.measurement.probes.probes import SHARE, Probe, describe_counted_rows
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.measurement.program.program import Program, ReleaseFormat
from discreet.mechanisms.mechanism import Law
from discreet.plan.canonical import canonical, origin
from discreet.plan.model.group_columns import KeyRows
from discreet.privacy import events

Find = Callable[[MeasurementPlan, QueryBudget, Law | None], MeasurementResult | None]
"""What was released before and is as good as a question on these terms, with noise of this law."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLayout:
    """The layout of a batch's answer: decided before the charge and kept with it, so that a second run is the same.

    Args:
        first: for each question the place of the first that asks for the same release.
        measured: the places that are measured.
        merged: places that are measured together, as the groupings of one question.
        derived: those that follow from the measured ones. All others are kept from before.
        considered: among how many the budget was shared when it was decided what is as good.
        probed: the measured ones for which facts were missing.
        probes: how many probes their shares pay for.
        law: of all noise, if the questions share a rho; None if they share an epsilon and a delta.
        edition: by whose rules; one of rules before `SEARCHED` is read, and not run.
    """

    first: tuple[int, ...]
    measured: tuple[int, ...]
    derived: tuple[int, ...]
    considered: int
    merged: tuple[tuple[int, ...], ...] = ()
    probed: tuple[int, ...] = ()
    probes: int = 0
    law: Law | None = None
    edition: ReleaseFormat = ReleaseFormat.NOW

    @property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Returns what is released, each by the places that it is for."""
        return (*((place,) for place in self.measured), *self.merged)

    @property
    def shares(self) -> int:
        """Returns among how many the budget is shared: one for each place that is measured."""
        return max(sum(map(len, self.parts)), 1)

    @property
    def paid_places(self) -> frozenset[int]:
        """Returns the places that the charge pays for."""
        return frozenset(self.derived).union(*self.parts)

    @property
    def fields(self) -> dict[str, Any]:
        """Returns the layout as JSON fields."""
        return {
            "version": int(self.edition),
            "first": list(self.first),
            "measured": list(self.measured),
            "derived": list(self.derived),
            "merged": [list(group) for group in self.merged],
            "considered": self.considered,
            "probed": list(self.probed),
            "probes": self.probes,
            "law": self.law,
        }

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Returns the layout that `fields` wrote."""
        return cls(
            first=tuple(fields["first"]),
            measured=tuple(fields["measured"]),
            derived=tuple(fields["derived"]),
            merged=tuple(tuple(group) for group in fields["merged"]),
            considered=fields["considered"],
            probed=tuple(fields["probed"]),
            probes=fields["probes"],
            law=fields["law"],
            edition=ReleaseFormat(fields["version"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """Questions with the budget that they share, and how it is shared.

    Formal guarantee: `event` is all that is released for the batch. Shares of an epsilon and a delta add up to them;
    shares of a rho add up to one that implies them (see `share_terms`).

    Args:
        measurements: the questions, in order.
        terms: of all together.
        layout: how they are answered.
    """

    measurements: tuple[MeasurementPlan, ...]
    terms: QueryBudget
    layout: BatchLayout

    @classmethod
    def of(cls, measurements: Sequence[MeasurementPlan], terms: QueryBudget, find: Find) -> Self:
        """Returns the plan of a batch, given what was released before."""
        keys = [one.request_key(terms) for one in measurements]
        first = tuple(keys.index(key) for key in keys)
        distinct = tuple(dict.fromkeys(first))
        layout = BatchLayout(first=first, measured=distinct, derived=(), considered=len(distinct))
        draft = cls(measurements=tuple(measurements), terms=terms, layout=layout)
        draft = draft._having(law=draft._law())
        usual = draft.considered_terms, draft.considered_law
        left = tuple(place for place in distinct if find(measurements[place], *usual) is None)
        return draft._having(measured=left)._merge_queries()._drop_derivable()._with_probes()

    def _having(self, **changes: Any) -> Self:
        return replace(self, layout=replace(self.layout, **changes))

    # ----------------------------------------------------------------------------------------------------------- shares

    @property
    def considered_terms(self) -> QueryBudget:
        """Returns the share of each question, if nothing were kept and nothing followed."""
        return share_terms(self.terms, self.layout.considered, self.layout.law)

    @property
    def considered_law(self) -> Law | None:
        """Returns the law of its noise, then."""
        return self.layout.law if self.layout.considered > 1 else None

    @property
    def share(self) -> QueryBudget:
        """Returns the share of each question that is measured."""
        return self.share_of((0,))

    def share_of(self, part: Sequence[int]) -> QueryBudget:
        """Returns the share of questions that are measured together."""
        return share_terms(self.terms, Fraction(self.layout.shares, len(part)), self.layout.law)

    @property
    def law(self) -> Law | None:
        """Returns the law that noise is held to; one release alone has the quieter one."""
        return self.layout.law if len(self.layout.parts) > 1 else None

    def cube(self, part: Sequence[int]) -> MeasurementPlan:
        """Returns the one question whose groupings are several questions."""
        first, *others = (self.measurements[place] for place in part)
        schema = describe_counted_rows(first.plan, first.schemas)
        question = cube_of([first.plan, *(other.plan for other in others)], schema)
        if question is None:
            raise InternalError("The questions cannot be measured as groupings of one question.")
        return first.about(question)

    def cube_program(self, part: Sequence[int]) -> Program:
        """Returns the program of several questions that are measured together."""
        cube = self.cube(part)
        return cube.program(self.share_of(part), cube.facts, self.law, edition=self.layout.edition)

    def program(self, place: int) -> Program:
        """Returns the program of a question at its share, where no facts are missing."""
        one = self.measurements[place]
        return one.program(self.share, one.facts, self.law, edition=self.layout.edition)

    @property
    def of_each_probe(self) -> Fraction:
        """Returns what each probe may spend: those that need facts give the usual part of their shares."""
        return self.share.epsilon * SHARE * len(self.layout.probed) / max(self.layout.probes, 1)

    # -------------------------------------------------------------------------------------------------------- decisions

    def _law(self) -> Law | None:
        """Returns Gaussian noise for shares of one rho, where all can have it and it is quieter on the whole.

        Shares of a rho have noise that grows with the root of their number, shares of an epsilon with the number.
        """
        places = self.layout.measured
        if not self.terms.delta or len(places) == 1 or any(self.measurements[place].missing for place in places):
            return None
        joint = self._having(law="gaussian")
        apart, together = ([plan.program(place) for place in places] for plan in (self, joint))
        rho = _rho([program.event for program in together])
        if rho is None or rho > self._largest_rho or _badness(together) > _badness(apart):
            return None
        return "gaussian"

    def _merge_queries(self) -> Self:
        """Merges questions about the same rows into groupings of one, where no number is noisier for it.

        Only where each row is a unit: people's rows would be limited by other keys than a question's own.
        """
        groups: dict[str, list[int]] = {}
        for place in self.layout.measured:
            one = self.measurements[place]
            if not one.missing and not _is_manifold(one) and not one.plan.steps:
                sums = sorted(repr(replace(aggregate, name="")) for aggregate in one.plan.aggregates)
                groups.setdefault(f"{origin(one.plan)} {one.plan.where!r} {sums}", []).append(place)
        best = self
        for group in groups.values():
            together = best._together(tuple(group))
            best = best if together is None else together
        return best

    def _together(self, group: tuple[int, ...]) -> Self | None:
        first = self.measurements[group[0]]
        plans = [self.measurements[place].plan for place in group]
        if cube_of(plans, describe_counted_rows(first.plan, first.schemas)) is None:
            return None
        left = tuple(place for place in self.layout.measured if place not in group)
        found = self._having(measured=left, merged=(*self.layout.merged, group))
        try:
            program = found.cube_program(group)
        except (UnsupportedQuery, InvalidParameter):  # too many groups by all keys together
            return None
        if program.tables is None or program.reading.bounding is not None:
            return None
        alone = [self.program(place) for place in group]
        quieter = (_is_quieter(part, usual) for part, usual in zip(program.groupings, alone, strict=True))
        return found if all(quieter) else None

    def _drop_derivable(self) -> Self:
        """Takes out questions that follow from the others, one by one, the one with the fewest groups first."""
        usual = {place: self.program(place) for place in self.layout.measured if self._may_follow(place)}
        best = self
        for place in sorted(usual, key=lambda place: len(usual[place].reading.public_keys or ())):
            layout = best.layout
            fewer = best._having(
                measured=tuple(other for other in layout.measured if other != place),
                derived=tuple(sorted([*layout.derived, place])),
            )
            if fewer.layout.parts and all(fewer._is_as_good(other, usual[other]) for other in fewer.layout.derived):
                best = fewer
        return best

    def _may_follow(self, place: int) -> bool:
        """Returns whether a question may follow from another measured one, by its text alone."""
        one = self.measurements[place]
        if one.missing or _is_manifold(one):
            return False
        others = (self.measurements[other] for other in self.layout.measured if other != place)
        return any(
            not other.missing and not _is_manifold(other) and may_follow(one.plan, other.plan) for other in others
        )

    def _is_as_good(self, place: int, usual: Program) -> bool:
        """Returns whether a question follows from the measured ones with no more noise than it would have alone."""
        sources = [
            _silent(self.program(other))
            for other in self.layout.measured
            if not self.measurements[other].missing
            and not _is_manifold(self.measurements[other])
            and may_follow(self.measurements[place].plan, self.measurements[other].plan)
        ]
        found = derive(usual.without_salt, [source for source in sources if source is not None])
        return found is not None and found.is_of_single_groups and found.excess <= 1

    def follows(self, place: int, released: Sequence[ReleasedStatistics]) -> DerivedStatistics | None:
        """Returns the answer to a question that was to follow from the releases of the batch."""
        return derive(self.program(place).without_salt, [one.without_salt for one in released])

    def _with_probes(self) -> Self:
        probed = tuple(place for place in self.layout.measured if self.measurements[place].missing)
        return self._having(probed=probed, probes=len(self.missing))

    @property
    def missing(self) -> dict[str, Probe]:
        """Returns what must be found out first: each fact once, by the key under which it is kept."""
        probes = (probe for place in self.layout.measured for probe in self.measurements[place].missing)
        return {probe_key(probe): probe for probe in probes}

    # ------------------------------------------------------------------------------------------------------------ price

    @property
    def event(self) -> events.Event:
        """Returns the whole price; of one release alone, its own.

        Shares of a rho are charged as what they are together: noise that is calibrated to the epsilon and the delta of
        the batch, since the sum of their rho implies these (`share_terms`).
        """
        parts = [*self.probe_events, *(self._price(place) for place in self.layout.measured)]
        parts += [self.cube_program(part).event for part in self.layout.merged]
        if len(parts) == 1:
            return parts[0]
        rho = None if self.law is None else _rho(parts)
        if rho is None or rho > self._largest_rho:
            return events.Composed(parts)
        together = events.strip_calibration(events.Composed(parts))
        return events.Calibrated(together, self.terms.epsilon, self.terms.delta)

    @property
    def _largest_rho(self) -> Fraction:
        """Returns the largest rho that implies the epsilon and the delta of the batch."""
        return Fraction(rho_for(float_below(self.terms.epsilon), float_below(self.terms.delta)))

    @property
    def probe_events(self) -> list[events.Event]:
        """Returns what is paid for probes, also for those whose facts are known by now; they all cost the same."""
        probes = (probe for place in self.layout.probed for probe in self.measurements[place].probes)
        return [probe.program(self.of_each_probe).event for probe in islice(probes, self.layout.probes)]

    def _price(self, place: int) -> events.Event:
        if place in self.layout.probed:
            return promised_event(self.measurements[place].widest_program(self.share).event)
        return self.program(place).event

    @property
    def request(self) -> ChargeRequest:
        """Returns the charge of the whole batch; under an idempotency key it is known by its questions and terms."""
        questions = ",".join(canonical(one.plan) for one in self.measurements)
        return ChargeRequest(
            accounts=(self.measurements[0].account,),
            event=self.event,
            question=f'{{"batch":[{questions}]}}',
            replay_key=self.place,
            terms=self.terms.text,
            sql=";\n".join(filter(None, (one.sql for one in self.measurements))),
            asked=self.terms.epsilon,
            periods=tuple(sorted({day for one in self.measurements for day in one.periods})),
        )

    @property
    def place(self) -> str:
        """Returns under which key the layout of the batch is kept."""
        keys = [one.request_key(self.terms) for one in self.measurements]
        return f"batch:{sha256(json.dumps(keys).encode()).hexdigest()}"


@lru_cache(maxsize=256)
def share_terms(terms: QueryBudget, count: int | Fraction, law: Law | None) -> QueryBudget:
    """Returns the terms of each of so many questions that share a budget.

    Without a law, epsilon and delta are divided (basic composition). Gaussian noise is rho-zCDP, and rho adds up
    (Bun, Steinke 2016, Lemma 1.7): then each gets an epsilon that its part of the largest rho of the whole implies.

    >>> share_terms(QueryBudget(Fraction(1), Fraction(0)), 4, None)
    QueryBudget(epsilon=Fraction(1, 4), delta=Fraction(0, 1))
    >>> float(share_terms(QueryBudget(Fraction(1), Fraction(1, 10**6)), 4, "gaussian").epsilon) > 0.47
    True
    """
    if law is None or count == 1:
        return QueryBudget(terms.epsilon / count, terms.delta / count)
    delta = float_below(terms.delta)
    part = Fraction(rho_for(float_below(terms.epsilon), delta)) / count
    epsilon, less = zcdp_epsilon(float_below(part), delta), 2.0**-48
    while Fraction(rho_for(epsilon, delta)) > part:
        epsilon, less = epsilon * (1 - less), 2 * less
    return QueryBudget(Fraction(epsilon), terms.delta)


def probe_key(probe: Probe) -> str:
    """Returns under which key a probe's release is kept, whatever its budget."""
    return replay_key(probe.program(Fraction(1)), probe.tables)


def _rho(parts: Sequence[events.Event]) -> Fraction | None:
    """Returns the rho of all of it; None if there is a delta in it, or something else than concentrated noise."""
    try:
        total = compose(listed(events.Composed(list(parts))))
    except UnsupportedEvent:
        return None
    return None if total.delta else total.rho


def _badness(programs: Sequence[Program]) -> Fraction:
    """Returns the product of the variances of all aggregates: smaller is better, whatever the units."""
    parts = [part for program in programs for part in (program, *program.beside)]
    return math.prod((e.variance(part.noise) for part in parts for e in part.estimators.values()), start=Fraction(1))


def _is_quieter(part: Program, usual: Program) -> bool:
    """Returns whether no aggregate is noisier; both have them in the order in which releases are stored."""
    pairs = zip(part.estimators.values(), usual.estimators.values(), strict=True)
    return all(one.variance(part.noise) <= other.variance(usual.noise) for one, other in pairs)


def _is_manifold(one: MeasurementPlan) -> bool:
    """Returns whether a question has several groupings or parts, or groups that no other question has."""
    plan = one.plan
    return bool(plan.sets or plan.beside or plan.rest or plan.bands)


def _silent(program: Program) -> ReleasedStatistics | None:
    """Returns a release with the noise of a program and zeros as numbers; None if its groups are private."""
    if program.selection is not None:
        return None
    keys = program.reading.public_keys if program.question.keys else ((),)
    if keys is None:
        return None
    nothing = np.zeros((len(keys), program.width), dtype=object)
    return ReleasedStatistics(program.without_salt, KeyRows.of(keys), nothing)
