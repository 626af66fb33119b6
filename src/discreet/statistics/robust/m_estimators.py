"""Robust location by bounded scores, released by noisy descent with intervals for the population.

A run is planned from public facts before it starts.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.mechanisms import Gaussian, Laplace, Quantile
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.histogram import with_price
from discreet.statistics.inputs import NumericColumn, column
from discreet.statistics.noise_errors import Path, deviation, half_width, number_noise, pure_part
from discreet.statistics.robust.scores import SLOPE_UNIT, Huber, Score, WholeScore, score_of

# What each release gets of the budget; those that are not needed leave theirs to the others in proportion.
START, COUNT, DESCENT, SLOPE, SQUARE = Fraction(15), Fraction(5), Fraction(70), Fraction(5), Fraction(5)
_CAREFUL = 1.3  # deviations of their own noise by which the plugged-in slope and variance err to the wide side
_LEAST_SLOPE = 0.05
_MOST_STEPS = 10_000
Noise = Laplace | Gaussian

_FINE = 1 << 16  # steps in one scale, at least
_MOST_SCALES = 1 << 32
SCALE_SHARE = Fraction(1, 5)  # of the budget, for a scale that was not given
NORMAL_GAP = Fraction(1349, 1000)  # between the quartiles of a standard normal law
_SCALE_HINT = "The scale is public: about how far a typical value lies from the middle of the values, e.g. scale=1.0."
Target = Literal["population", "sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationPlan:
    """Holds everything about a run that is fixed before a value is seen.

    Formal guarantee: the run releases a median (if there is no public start), a count (if the number of values is
    neither public nor given), `path.steps` sums of scores, a sum of slopes and a sum of squared scores, and nothing
    else depends on the data. Each is a sum over values of an integer from a public range at a released theta; `event`
    is their composition, in which pure parts add up, or all are Gaussian DP and their mu^2 add up (`Spending`).

    Attributes:
        score: in integers.
        path: steps, averaging and step size.
        start: the public start, or the mechanism that finds one.
        size: the public number of values, or the mechanism that counts them.
        descent: the noise of each step.
        slope: the noise of the sum of slopes.
        square: the noise of the sum of squared scores; None if only the sample's own value is wanted.
    """

    score: WholeScore
    path: Path
    start: Quantile | int
    size: Noise | int
    descent: Noise
    slope: Noise
    square: Noise | None

    @property
    def event(self) -> Event:
        """Returns what a run costs."""
        first = [part.event for part in (self.start, self.size) if not isinstance(part, int)]
        last = [part.event for part in (self.slope, self.square) if part is not None]
        return events.Composed([*first, events.Repeated(self.descent.event, self.path.steps), *last])

    def run(self, values: NumericColumn, confidence: Number, bits: Bits) -> Estimate:
        """Returns the estimate: every line that reads `values` ends in a mechanism."""
        steps, limit = values.steps, values.width
        start = self.start if isinstance(self.start, int) else int(self.start.release(steps, bits=bits))
        size = self.size if isinstance(self.size, int) else max(1, int(self.size.release(steps.size, bits=bits)))
        place, visited = start, []
        for _ in range(self.path.steps):
            noisy = float(self.descent.release(int(self.score.psi(steps - place).sum()), bits=bits))
            place = min(max(place + round(self.path.rate * noisy / size), 0), limit)
            visited.append(place)
        result = float(np.mean(visited[-self.path.last :]))
        differences = steps - round(result)
        slope = float(self.slope.release(int(self.score.slopes(differences).sum()), bits=bits))
        spread = 0.0
        if self.square is not None:
            spread = float(self.square.release(int(self.score.squares(differences).sum()), bits=bits))
        wide = self._half_width(start - result, size, slope, spread, confidence)
        value, low, high = values.value([result, result - wide, result + wide]).tolist()
        low, high = max(low, float(values.low)), min(high, float(values.top))
        return Estimate(value, low, high, self.event, confidence=confidence, private=bits.private)

    def _half_width(self, moved: float, size: int, slope: float, spread: float, confidence: Number) -> float:
        """Returns a half-width by the sandwich E psi^2 / (n h^2) and the noise of all steps, both on the careful side.

        Rounding comes in addition: a value is moved by less than a step, and the estimate with them; a score by half a
        unit, as much as a step, and so is each place. An error of a step's sum is 1 / h times as large in the estimate,
        and stays where steps are short.
        """
        found = (slope - _CAREFUL * deviation(self.slope)) / (SLOPE_UNIT * size)
        held = min(max(found, _LEAST_SLOPE), self.score.slope_range[1] / SLOPE_UNIT)
        variance = 0.0
        if self.square is not None:
            mean = (spread + _CAREFUL * deviation(self.square)) * self.score.score_bound / size
            variance = min(max(mean, 0.0), self.score.score_bound**2) / (size * held**2)
        weights = self.path.weights(held) / size
        drift = self.path.drift(held, moved) + 1 + 1 / (held * min(self.path.rate, 1.0))
        if isinstance(self.descent, Laplace):
            scale = float(self.descent.sensitivity / self.descent.epsilon)
            return drift + half_width(confidence, deviation=variance**0.5, scales=weights * scale)
        noise = float(np.sum(weights**2)) * deviation(self.descent) ** 2
        return drift + half_width(confidence, deviation=(variance + noise) ** 0.5)


def location_plan(
    *,
    score: WholeScore,
    spending: Spending,
    width: int,
    neighbours: Neighbours,
    size: int | None,
    start: int | None,
    steps: int | None,
    step_size: Number,
    sample: bool,
) -> LocationPlan:
    """Returns the plan for a column of `width` steps, before its values are seen."""
    usual = 4 if start is None else 20
    count = usual if steps is None else check.integer(steps=steps, at_least=1, at_most=_MOST_STEPS)
    known = None if size is None else check.integer(size=size, at_least=1)
    path = Path(steps=count, last=max(1, count // 2), rate=float(check.positive(step_size=step_size)))
    if path.rate > 2:
        raise InvalidParameter("step_size", step_size, "<= 2", "Steps longer than 2 never converge. 1 is a good value.")
    parts = _parts(spending, start=start is None, count=known is None, square=not sample)
    twice = 2 if neighbours is Neighbours.REPLACE else 1
    low, high = score.slope_range
    slope_move = high - low if neighbours is Neighbours.REPLACE else max(high, -low)
    return LocationPlan(
        score=score,
        path=path,
        start=start if start is not None else rank_choice(parts["start"], Fraction(1, 2), width, neighbours),
        size=known if known is not None else number_noise(parts["count"], 1),
        descent=number_noise(parts["descent"].share(Fraction(1, count)), twice * score.score_bound),
        slope=number_noise(parts["slope"], slope_move),
        square=None if sample else number_noise(parts["square"], score.score_bound),
    )


def _parts(spending: Spending, *, start: bool, count: bool, square: bool) -> dict[str, Spending]:
    weights = {"descent": DESCENT, "slope": SLOPE}
    weights |= {"start": START} if start else {}
    weights |= {"count": COUNT} if count else {}
    weights |= {"square": SQUARE} if square else {}
    return dict(zip(weights, spending.shares(list(weights.values())), strict=True))


def rank_choice(part: Spending, share: Fraction, width: int, neighbours: Neighbours) -> Quantile:
    """Returns the draw of a quantile of a column of `width` steps that fits into a part of a budget of either kind."""
    return Quantile(
        epsilon=pure_part(part), quantile=share, bounds=(0, width), grid=Grid.integers(), neighbours=neighbours
    )


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
    """Estimates a location that wild values hardly move: sum clip((x - theta) / scale, -k, k) is 0 there.

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
    """Estimates the theta at which the scores of (x - theta) / scale add up to 0.

    theta <- theta + step_size (sum of scores + noise) / n, `steps` times from a private median, the later half of the
    iterates averaged. The interval covers the population's value: the sandwich variance E psi^2 / (n E[psi']^2), both
    released for a twentieth of the budget each, the noise of all steps with its exact law, and the remaining influence
    of the start (Avella-Medina, Bradshaw, Loh 2023, with the sum for averaged iterates).

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
    >>> from discreet.statistics.robust.scores import Biweight
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

    def build_plan(spread: Number, part: Spending) -> LocationPlan:
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
        build_plan((high - low) / 10, rest)  # whatever is wrong is refused before a value is read
        scale, paid = quartile_scale(column(x, bounds=bounds, neighbours=relation), spending.share(SCALE_SHARE), source)
        spending = rest
    plan, fine = build_plan(scale, spending), _fine(bounds, scale)
    values = column(x, bounds=bounds, neighbours=relation, fine=fine)
    if replaced:
        plan = replace(plan, size=max(1, values.public_size))
    found = plan.run(values, chance, source)
    event = with_price(found.event, paid)
    return Estimate(found.value, found.low, found.high, event, confidence=chance, private=found.private)


def quartile_scale(values: NumericColumn, spending: Spending, bits: Bits) -> tuple[Fraction, tuple[Event, ...]]:
    """Returns the distance of two private quartiles over 1.349, which is 1 for a standard normal law, and its price.

    It is at least 2^-10 of the range, so that values that are all alike are no error.
    """
    part, shares = spending.share(Fraction(1, 2)), (Fraction(1, 4), Fraction(3, 4))
    draws = [rank_choice(part, share, values.width, values.neighbours) for share in shares]
    low, high = (int(draw.release(values.steps, bits=bits)) for draw in draws)
    gap = max(Fraction(abs(high - low)) / NORMAL_GAP, Fraction(values.width, 1 << 10))
    return gap * values.step, tuple(draw.event for draw in draws)


def _place(start: Number, empty: NumericColumn) -> int:
    place = round((check.rational(start=start) - empty.low) / empty.step)
    if not 0 <= place <= empty.width:
        raise InvalidParameter("start", start, "to lie within the bounds")
    return place


def _fine(bounds: Any, scale: Number) -> int:
    """Returns how many steps the bounds must have so that a scale has 2^16 at least."""
    low, high = check.limits(bounds=bounds)
    spread = check.positive(scale=scale)
    ratio = (high - low) / spread
    if not Fraction(1, 1 << 16) <= ratio <= _MOST_SCALES:
        raise InvalidParameter("scale", scale, "to be in proportion to the bounds", _SCALE_HINT)
    return max(1 << 8, int(ratio * _FINE) + 1)
