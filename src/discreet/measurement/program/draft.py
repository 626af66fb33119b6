"""Layouts with their noise, for a share of a budget: which is quietest, by public facts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache

from discreet.accounting.zcdp import rho_for
from discreet.dataclass import dataclass
from discreet.exact import float_below
from discreet.measurement.aggregates import estimators, needs
from discreet.measurement.intervals.estimators import Estimator
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases import draws
from discreet.measurement.releases.additive import AdditiveNoise, grains_of
from discreet.measurement.releases.draws import DrawRequest, Draws
from discreet.measurement.releases.layouts import Layout, Requirements, build_centred_layout, build_paired_layout
from discreet.measurement.selection import Selection
from discreet.mechanisms.mechanism import Law
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.nodes import Aggregate, Question
from discreet.plan.model.schema import TableSchema
from discreet.privacy import events

LAYOUTS = {"laplace": (build_paired_layout, build_centred_layout), "gaussian": (build_centred_layout,)}


@dataclass(frozen=True)
class Draft:
    """A layout with its noise, and what is drawn.

    Attributes:
        calibrated: the epsilon and the delta that Gaussian noise was calibrated to; None of other noise, which has an
            epsilon of its own, and of a part of what was calibrated together.
    """

    law: Law
    layout: Layout
    measures: tuple[AdditiveNoise, ...]
    draws: tuple[Draws, ...]
    noise: Noise
    estimators: dict[str, Estimator]
    selection: Selection | None = None
    calibrated: tuple[Fraction, Fraction] | None = None

    @cached_property
    def event(self) -> events.Event:
        """Returns the price of all of it; a draft serves all questions with the same aggregates."""
        parts = [measure.event for measure in self.measures]
        parts += [price for each in self.draws for price in each.prices]
        if parts and self.calibrated is not None:
            parts = [_calibrate(_compose_events(tuple(parts)), *self.calibrated)]
            if self.selection is None:
                return parts[0]
        return _compose_events(tuple(parts if self.selection is None else [*parts, self.selection.event]))

    @property
    def badness(self) -> Fraction:
        """Returns the product of the aggregates' variances: smaller is better, whatever the units."""
        each = [each.variance(self.noise).as_integer_ratio() for each in self.estimators.values()]
        return Fraction(math.prod(top for top, _ in each), math.prod(bottom for _, bottom in each))


@lru_cache(maxsize=256)
def _calibrate(event: events.Event, epsilon: Fraction, delta: Fraction) -> events.Event:
    """Returns a release whose rho is at most `rho_of` the epsilon and the delta with these two amounts."""
    return events.Calibrated(event, epsilon, delta)


@lru_cache(maxsize=256)  # one object for equal prices: what is worked out for it is found by its identity
def _compose_events(parts: tuple[events.Event, ...]) -> events.Event:
    return events.Composed(parts)


def quietest(
    question: Question,
    schema: TableSchema,
    contribution: QueryContribution,
    epsilon: Fraction,
    delta: Fraction,
    *,
    sized: bool,
    law: Law | None,
    former: bool,
) -> Draft:
    """Returns the layout and the law with the least noise."""
    budget = epsilon, delta
    asked = question.aggregates
    written = repr(asked)  # equal numbers may differ: 0.0 is -0.0
    return _quietest(asked, written, schema, contribution, budget, sized=sized, law=law, former=former)


@lru_cache(maxsize=64)  # questions that differ in their conditions alone have the same noise
def _quietest(
    aggregates: tuple[Aggregate, ...],
    _written: str,
    schema: TableSchema,
    contribution: QueryContribution,
    budget: tuple[Fraction, Fraction],
    *,
    sized: bool,
    law: Law | None,
    former: bool,
) -> Draft:
    asked = needs(aggregates)
    added = Requirements.of(asked, schema, most_rows=contribution.limits.rows, sized=sized, former=former)
    kinds = {type(need) for need in asked}
    wanted = [draw.of(asked, schema, former=former) for need, draw in draws.KINDS.items() if need in kinds]
    first, *others = _drafts(aggregates, added, wanted, contribution, budget, only=law)
    return min([first, *others], key=lambda draft: draft.badness) if others else first


def _drafts(
    aggregates: Sequence[Aggregate],
    added: Requirements,
    wanted: Sequence[DrawRequest],
    contribution: QueryContribution,
    budget: tuple[Fraction, Fraction],
    *,
    only: Law | None,
) -> Iterator[Draft]:
    """Returns the budget in equal shares, one for each form and for each need of what is drawn."""
    epsilon, delta = budget
    laws: tuple[Law, ...] = ("laplace", "gaussian") if delta else ("laplace",)
    for law in laws if only is None else (only,):
        layouts = {layout.forms: layout for layout in (build(added) for build in LAYOUTS[law])}
        for layout in layouts.values():
            parts = max(len(layout.forms) + sum(map(len, wanted)), 1)  # keys alone meet no noise
            share = (epsilon if law == "laplace" else rho_of(epsilon, delta)) / parts
            draft = draft_of(aggregates, layout, wanted, contribution, (law, share))
            yield draft if law == "laplace" else replace(draft, calibrated=budget)


def draft_of(
    aggregates: Sequence[Aggregate],
    layout: Layout,
    wanted: Sequence[DrawRequest],
    contribution: QueryContribution,
    budget: tuple[Law, Fraction],
) -> Draft:
    """Returns a layout with noise for an equal share of the budget each."""
    law, share = budget
    measures = tuple(AdditiveNoise.of(law, form, contribution, share) for form in layout.forms)
    scales = tuple(scale for measure in measures for scale in measure.scales)
    grains = grains_of(measures)
    place, made = len(scales), []
    for each in wanted:
        made.append(each.plan_draws(contribution, budget, place))
        place += made[-1].columns
    drawn = {need: draw for each in made for need, draw in each.by_need.items()}
    finished = estimators(aggregates, replace(layout.sources, drawn=drawn))
    return Draft(law, layout, measures, tuple(made), Noise(law, scales, tuple(map(bool, grains))), finished)


@lru_cache(maxsize=1024)
def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Returns the largest rho that stays within an epsilon and a delta."""
    return Fraction(rho_for(float_below(epsilon), float_below(delta)))
