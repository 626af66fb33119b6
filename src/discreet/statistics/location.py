"""Location by noisy descent: the plan of a private M-estimate, made from public facts, and its run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.mechanisms import Gaussian, Laplace, Quantile
from discreet.noise import Bits
from discreet.privacy import Estimate, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.column import Column
from discreet.statistics.descent import Path, deviation, number_noise, pure_part
from discreet.statistics.scores import SLOPE_UNIT, WholeScore
from discreet.statistics.spending import Spending
from discreet.statistics.widths import half_width

# What each release gets of the budget; those that are not needed leave theirs to the others in proportion.
START, COUNT, DESCENT, SLOPE, SQUARE = Fraction(15), Fraction(5), Fraction(70), Fraction(5), Fraction(5)
_CAREFUL = 1.3  # deviations of their own noise by which the plugged-in slope and variance err to the wide side
_LEAST_SLOPE = 0.05
_MOST_STEPS = 10_000
Noise = Laplace | Gaussian


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationPlan:
    """Everything about a run that is fixed before a value is seen.

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
        """What a run costs."""
        first = [part.event for part in (self.start, self.size) if not isinstance(part, int)]
        last = [part.event for part in (self.slope, self.square) if part is not None]
        return events.Composed([*first, events.Repeated(self.descent.event, self.path.steps), *last])

    def run(self, values: Column, confidence: Number, bits: Bits) -> Estimate:
        """The estimate: every line that reads `values` ends in a mechanism."""
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
        """By the sandwich E psi^2 / (n h^2) and the noise of all steps, both released values on their careful side.

        Rounding comes in addition: a value is moved by less than a step, and the estimate with them; a score by half a
        unit, as much as a step, and so is each place. An error of a step's sum is 1 / h times as large in the estimate,
        and stays where steps are short.
        """
        found = (slope - _CAREFUL * deviation(self.slope)) / (SLOPE_UNIT * size)
        held = min(max(found, _LEAST_SLOPE), self.score.slope_range[1] / SLOPE_UNIT)
        variance = 0.0
        if self.square is not None:
            mean = (spread + _CAREFUL * deviation(self.square)) * self.score.bound / size
            variance = min(max(mean, 0.0), self.score.bound**2) / (size * held**2)
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
    """The plan for a column of `width` steps, before its values are seen."""
    usual = 4 if start is None else 20
    count = usual if steps is None else check.integer(steps=steps, at_least=1, at_most=_MOST_STEPS)
    known = None if size is None else check.integer(size=size, at_least=1)
    path = Path(steps=count, last=max(1, count // 2), rate=float(check.positive(step_size=step_size)))
    if path.rate > 2:
        raise InvalidParameter("step_size", step_size, "<= 2", "Longer steps than 2 never settle; 1 is a good one.")
    parts = _parts(spending, start=start is None, count=known is None, square=not sample)
    twice = 2 if neighbours is Neighbours.REPLACE else 1
    low, high = score.slope_range
    slope_move = high - low if neighbours is Neighbours.REPLACE else max(high, -low)
    return LocationPlan(
        score=score,
        path=path,
        start=start if start is not None else rank_choice(parts["start"], Fraction(1, 2), width, neighbours),
        size=known if known is not None else number_noise(parts["count"], 1),
        descent=number_noise(parts["descent"].share(Fraction(1, count)), twice * score.bound),
        slope=number_noise(parts["slope"], slope_move),
        square=None if sample else number_noise(parts["square"], score.bound),
    )


def _parts(spending: Spending, *, start: bool, count: bool, square: bool) -> dict[str, Spending]:
    weights = {"descent": DESCENT, "slope": SLOPE}
    weights |= {"start": START} if start else {}
    weights |= {"count": COUNT} if count else {}
    weights |= {"square": SQUARE} if square else {}
    return dict(zip(weights, spending.shares(list(weights.values())), strict=True))


def rank_choice(part: Spending, share: Fraction, width: int, neighbours: Neighbours) -> Quantile:
    """The draw of a quantile of a column of `width` steps that fits into a part of a budget of either kind."""
    return Quantile(
        epsilon=pure_part(part), quantile=share, bounds=(0, width), grid=Grid.integers(), neighbours=neighbours
    )
