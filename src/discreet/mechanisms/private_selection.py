"""The base of the mechanisms that choose one of several options by private scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Grid, Interval, float_above, upper
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, numeric, public_grid, reasonable_noise
from discreet.noise import Bits, choose_exponential, source_of, uniform_below
from discreet.privacy import Estimate

_MOST_OPTIONS = 10**18


@dataclass(frozen=True, slots=True, init=False)
class Selection(Mechanism):
    """Chooses an option whose score is high; the scores are private, the number of options is public.

    Args:
        epsilon: above 0.
        sensitivity: how far one unit can move any single score.
        monotone: True only if between neighbours all scores move in the same direction, as counts do under ADD_REMOVE
            (never under REPLACE); half of the noise then gives the same guarantee.
        grid: the public grid the scores are rounded to. A score that moves by at most `sensitivity` moves by at most
            ceil(sensitivity / step) steps, and it is this number that the noise is calibrated to.

    Raises:
        InvalidParameter: outside these domains.
    """

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool
    grid: Grid

    def __init__(
        self,
        *,
        epsilon: check.Number,
        sensitivity: check.Number,
        monotone: bool = False,
        grid: Grid | check.Number = Grid.integers(),
    ) -> None:
        assign(
            self,
            epsilon=check.positive(epsilon=epsilon),
            sensitivity=check.positive(sensitivity=sensitivity),
            monotone=check.instance(bool, monotone=monotone),
            grid=public_grid(grid),
        )
        reasonable_noise(1 / self.rate, "epsilon")

    @property
    def rate(self) -> Fraction:
        """Returns the r of the weights e^(-r gap), gap being how many steps an option's score is below the best.

        Rounding half up is monotone, so rounded scores move by -m to m steps, m = ceil(sensitivity / step), or by 0
        to m if they are monotone. What counts is the length of that range: 2 m or m.
        """
        moves = self.grid.l1_steps(self.sensitivity)
        return self.epsilon / (moves if self.monotone else 2 * moves)

    def choose(self, scores: Any, *, bits: Bits | None = None) -> Any:
        """Chooses the index of an option; for rows of scores, an array with one index for each row.

        Args:
            scores: numbers, one for each option; or a matrix with one row for each choice to be made.
            bits: the source of randomness; None is the secure one.

        Returns:
            An int, or an int64 array. Each row is one event.

        Raises:
            InvalidValue: if there are no options, or a score is not finite or out of the grid's range.
        """
        source = source_of(bits)
        rows = score_steps(scores, self.grid)
        if rows.ndim == 1:
            return int(self._pick(rows[np.newaxis], source)[0])
        return self._pick(rows, source)

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Chooses as `choose` does."""
        return self.choose(value, bits=bits)

    @abstractmethod
    def _pick(self, rows: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        """Returns one index for each row of scores in steps."""

    def interval(self, released: Any, *, options: int | None = None, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns where the best score lies, given the score of the chosen option.

        The score itself is private: this is for planning, or for a score that was paid for separately. Scores are
        meant as they are after rounding to the grid.

        Args:
            released: the score of the chosen option, or an array of them.
            options: how many options there were.
            confidence: the probability of the statement, over the choice.

        Raises:
            InvalidParameter: if the number of options is missing or a parameter is outside its domain.
        """
        if options is None:
            raise InvalidParameter("options", options, "to be given", "Say how many there were, e.g. options=10.")
        count = check.integer(options=options, at_least=1, at_most=_MOST_OPTIONS)
        chance = check.probability(confidence=confidence)
        width = math.floor(upper(lambda digits: _log_odds(count, chance, digits) * self._regret / self.rate))
        if np.ndim(released) == 0:
            return Interval(*self._ends(self.grid.steps(released), width))
        steps = np.asarray(self.grid.steps(numeric(released)))
        ends = np.array([self._ends(step, width) for step in steps.ravel().tolist()]).reshape(*steps.shape, 2)
        return Interval(ends[..., 0], ends[..., 1])

    @property
    def _regret(self) -> int:
        """Returns r: the lost score is below r ln(options / (1 - confidence)) / rate with this confidence."""
        return 1

    def _ends(self, steps: int, width: int) -> tuple[float, float]:
        if self.grid.exponent >= 0:
            return self.grid.value(steps), self.grid.value(steps + width)
        return self.grid.value(steps), above_or_infinite((steps + width) * self.grid.step)

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """Releases a choice.

        Its ends are the first and the last index, because a distance between indices means nothing.
        """
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        chosen = self.choose(value, bits=source)
        last = np.full_like(chosen, np.shape(value)[-1] - 1)[()]
        return Estimate(chosen, last * 0, last, self.event, confidence=chance, private=source.private)


def _log_odds(options: int, confidence: Fraction, digits: int) -> Enclosure:
    return Enclosure.of(options / (1 - confidence), digits).log()


def score_steps(scores: Any, grid: Grid) -> NDArray[np.int64]:
    """Scores as whole steps of the grid: a vector, or a matrix of several, with at least one option."""
    table = np.asarray(numeric(scores))
    if table.ndim not in (1, 2) or not table.shape[-1]:
        raise InvalidValue("to be a vector or a matrix of scores", "Pass one number for each option.")
    return np.asarray(grid.steps(table), dtype=np.int64)


def choose_point(
    starts: NDArray[np.int64], counts: NDArray[np.int64], losses: NDArray[np.int64], rate: Fraction, bits: Bits
) -> int:
    """Chooses one of all the points starts_i, ..., starts_i + counts_i - 1, of weight e^(-rate losses_i) each, exactly.

    The cell is drawn by its total weight, then a point in it uniformly: together the probability of a point is its
    weight over the sum of all.
    """
    cell = choose_exponential(losses - losses[counts > 0].min(), rate, bits, weights=counts)
    return int(starts[cell]) + uniform_below(int(counts[cell]), bits=bits)


def above_or_infinite(value: Fraction | int) -> float:
    """Returns the smallest float at or above a number, infinity if there is no finite one."""
    try:
        return float_above(value)
    except OverflowError:
        return math.inf
