"""Robust location and regression by bounded scores, released by noisy descent with intervals for the population."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.privacy.events import Event
from discreet.statistics.bounds import with_price
from discreet.statistics.column import Column, column
from discreet.statistics.location import LocationPlan, location_plan, rank_choice
from discreet.statistics.scores import Huber, Score, WholeScore, score_of
from discreet.statistics.spending import Spending

_FINE = 1 << 16  # steps in one scale, at least
_MOST_SCALES = 1 << 32
SCALE_SHARE = Fraction(1, 5)  # of the budget, for a scale that nobody stated
NORMAL_GAP = Fraction(1349, 1000)  # between the quartiles of a standard normal law
_SCALE_HINT = "The scale is public: about how far a typical value lies from the middle of the values, e.g. scale=1.0."

Target = Literal["population", "sample"]


def huber_location(
    x: Any,
    *,
    bounds: Any,
    scale: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    k: Number = 1.345,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    size: int | None = None,
    start: Number | None = None,
    steps: int | None = None,
    step_size: Number = 1,
    target: Target = "population",
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """A location that a few wild values hardly move: the theta at which sum clip((x - theta) / scale, -k, k) is 0.

    It is `m_estimate` with the score `Huber(k)`: arguments and guarantee are written there.

    >>> from discreet.noise import SeededBits
    >>> ages = [30, 31, 35, 38, 40, 41, 44, 47, 52, 95] * 50
    >>> found = huber_location(ages, bounds=(0, 120), scale=10, epsilon=1, neighbours="replace", bits=SeededBits(1))
    >>> print(found)
    41.4094 [40.3231, 42.4957] NOT PRIVATE (seeded randomness)
    """
    return m_estimate(
        x,
        psi=Huber(k),
        bounds=bounds,
        scale=scale,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbours=neighbours,
        size=size,
        start=start,
        steps=steps,
        step_size=step_size,
        target=target,
        confidence=confidence,
        bits=bits,
    )


def m_estimate(
    x: Any,
    *,
    psi: Score,
    bounds: Any,
    scale: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    size: int | None = None,
    start: Number | None = None,
    steps: int | None = None,
    step_size: Number = 1,
    target: Target = "population",
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """A private M-estimate of location, the theta at which the scores of (x - theta) / scale add up to 0.

    theta <- theta + step_size (sum of scores + noise) / n, `steps` times from a private median, the later half of the
    iterates averaged. The interval covers the population's value: the sandwich variance E psi^2 / (n E[psi']^2), both
    released for a twentieth of the budget each, the noise of all steps with its exact law, and what is left of the
    start (Avella-Medina, Bradshaw, Loh 2023, with the sum for averaged iterates).

    Formal guarantee: epsilon-DP, (epsilon, delta)-DP or rho-zCDP, as asked, for the event of the estimate. A value
    adds psi(x - theta), an integer of size at most B, to each step's sum: its sensitivity is B under ADD_REMOVE and 2 B
    under REPLACE. Slopes and squares have their own ranges. Steps, step size and noise are fixed before the data.

    Args:
        x: one number for each unit; NaN is left out (ADD_REMOVE) or counts as the middle of the bounds (REPLACE).
        psi: `Huber()`, `Logistic()`, `Biweight()`, or a `Score` of your own.
        bounds: public limits (low, high).
        scale: the public spread of the bulk of the values; a wrong one costs accuracy only. None finds it for a fifth
            of the budget, as the distance of two private quartiles over 1.349.
        epsilon: with or without `delta`; or `rho` alone.
        delta: for Gaussian noise.
        rho: for Gaussian noise, as zCDP.
        neighbours: the relation to protect.
        size: about how many values there are, if that is public; else they are counted (ADD_REMOVE).
        start: a public guess; else the median is found for 15 % of the budget.
        steps: how many; 4, or 20 from a public start.
        step_size: at most 2; 1 suits scores of slope 1.
        target: "population", or "sample" for an interval that covers the clipped data's own value, noise only.
        confidence: of the interval.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if a parameter is missing or wrong; nothing has been read then.

    >>> from discreet.noise import SeededBits
    >>> from discreet.statistics.scores import Biweight
    >>> wages = [21, 24, 25, 26, 27, 28, 30, 31, 33, 400] * 100
    >>> found = m_estimate(wages, psi=Biweight(), bounds=(0, 500), scale=5, epsilon=1, bits=SeededBits(1))
    >>> bool(26 < found.value < 28), bool(found.low < found.value < found.high)
    (True, True)
    """
    spending, chance = Spending.of(epsilon, delta, rho), check.probability(confidence=confidence)
    relation, source = Neighbours(neighbours), source_of(bits)
    paid: tuple[Event, ...] = ()
    if target not in ("population", "sample"):
        raise InvalidParameter("target", target, "to be 'population' or 'sample'")
    replaced = relation is Neighbours.REPLACE

    def planned(spread: Number, part: Spending) -> LocationPlan:
        empty = column([], bounds=bounds, neighbours=relation, fine=_fine(bounds, spread))
        return location_plan(
            score=WholeScore(score_of(psi), round(check.positive(scale=spread) / empty.step)),
            spending=part,
            width=empty.width,
            neighbours=relation,
            size=1 if replaced else size,
            start=None if start is None else _place(start, empty),
            steps=steps,
            step_size=step_size,
            sample=target == "sample",
        )

    if scale is None:
        low, high = check.limits(bounds=bounds)
        rest = spending.share(1 - SCALE_SHARE)
        planned((high - low) / 10, rest)  # whatever is wrong is refused before a value is read
        scale, paid = quartile_scale(column(x, bounds=bounds, neighbours=relation), spending.share(SCALE_SHARE), source)
        spending = rest
    plan, fine = planned(scale, spending), _fine(bounds, scale)
    values = column(x, bounds=bounds, neighbours=relation, fine=fine)
    if replaced:
        plan = replace(plan, size=max(1, values.public_size))
    found = plan.run(values, chance, source)
    event = with_price(found.event, paid)
    return Estimate(found.value, found.low, found.high, event, confidence=chance, private=found.private)


def quartile_scale(values: Column, spending: Spending, bits: Bits) -> tuple[Fraction, tuple[Event, ...]]:
    """The distance of two private quartiles over 1.349, which is 1 for a standard normal law, and its price.

    It is at least 2^-10 of the range, so that values that are all alike are no error.
    """
    part, shares = spending.share(Fraction(1, 2)), (Fraction(1, 4), Fraction(3, 4))
    draws = [rank_choice(part, share, values.width, values.neighbours) for share in shares]
    low, high = (int(draw.release(values.steps, bits=bits)) for draw in draws)
    gap = max(Fraction(abs(high - low)) / NORMAL_GAP, Fraction(values.width, 1 << 10))
    return gap * values.step, tuple(draw.event for draw in draws)


def _place(start: Number, empty: Column) -> int:
    place = round((check.rational(start=start) - empty.low) / empty.step)
    if not 0 <= place <= empty.width:
        raise InvalidParameter("start", start, "to lie within the bounds")
    return place


def _fine(bounds: Any, scale: Number) -> int:
    """How many steps the bounds must have so that a scale has 2^16 at least."""
    low, high = check.limits(bounds=bounds)
    spread = check.positive(scale=scale)
    ratio = (high - low) / spread
    if not Fraction(1, 1 << 16) <= ratio <= _MOST_SCALES:
        raise InvalidParameter("scale", scale, "in proportion to the bounds", _SCALE_HINT)
    return max(1 << 8, int(ratio * _FINE) + 1)
