"""The sparse vector technique: many questions "is it above the threshold?"; only the yeses cost."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InsufficientBudget, InvalidParameter, InvalidValue
from discreet.exact import Grid, Interval
from discreet.mechanisms.mechanism import CONFIDENCE, HALF, Mechanism, around, numeric, public_grid, reasonable_noise
from discreet.mechanisms.tails import laplace_reach
from discreet.noise import Bits, discrete_laplace, source_of
from discreet.privacy import Neighbours, events

_MOST_POSITIVES = 10**9
_PARTS = 1024  # the split of epsilon is public and any rational will do; a short one keeps the arithmetic short


@dataclass(frozen=True, slots=True, init=False)
class SparseVector(Mechanism):
    """Says of any number of queries whether they are above a threshold, until `max_positives` of them were.

    A session draws the noise of the threshold once and never shows it; each query gets fresh noise. With
    e1 + e2 = epsilon and m = ceil(sensitivity / step) the scales are m / e1 and 2 c m / e2 steps, c = max_positives.

    Args:
        epsilon: above 0, for all the yes and no answers of a session together.
        sensitivity: how far one unit can move any single query.
        threshold: public; rounded to the grid.
        max_positives: after so many yeses the session is over.
        monotone: True only if between neighbours all queries move in the same direction, as counts do under ADD_REMOVE;
            the noise of queries is then halved. Refused under REPLACE, where the loss would be e1 + 2 e2.
        neighbours: the relation for which the sensitivity holds.
        answer_epsilon: if given, each yes comes with a number, made noisy by fresh discrete Laplace noise; this is the
            price of all those numbers together, in addition to `epsilon`.
        grid: the public grid of the queries' values.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the yes and no answers, with queries chosen adaptively (Dwork, Roth 2014, section
    3.6; Lyu, Su, Li 2017, Algorithm 7). Map the threshold's noise r to r + m, and the noise of each yes to itself
    plus 2 m: then every answer is the same for the neighbour. The first costs m e1 / m, each yes 2 m e2 / (2 c m),
    the noes nothing. If all queries rise, yeses need a shift of m only; if all fall, r stays and yeses need m. The
    numbers are independent of all other noise given the answers, so their likelihood ratios multiply: adaptive
    composition of the two parts.

    >>> session = SparseVector(epsilon=100, sensitivity=1, threshold=50, max_positives=2).start()
    >>> [session.ask(value) for value in (3, 97, 4, 99)]
    [False, True, False, True]
    >>> session.finished
    True
    """

    epsilon: Fraction
    sensitivity: Fraction
    threshold: Fraction
    max_positives: int
    monotone: bool
    neighbours: Neighbours
    answer_epsilon: Fraction | None
    grid: Grid

    def __init__(
        self,
        *,
        epsilon: check.Number,
        sensitivity: check.Number,
        threshold: check.Number,
        max_positives: int = 1,
        monotone: bool = False,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        answer_epsilon: check.Number | None = None,
        grid: Grid | check.Number = Grid.integers(),
    ) -> None:
        relation = Neighbours(neighbours)
        if check.instance(bool, monotone=monotone) and relation is Neighbours.REPLACE:
            hint = "A replaced unit can raise one query and lower another: pass monotone=False."
            raise InvalidParameter("monotone", monotone, "to be False under REPLACE", hint)
        assign(
            self,
            epsilon=check.positive(epsilon=epsilon),
            sensitivity=check.positive(sensitivity=sensitivity),
            threshold=check.rational(threshold=threshold),
            max_positives=check.integer(max_positives=max_positives, at_least=1, at_most=_MOST_POSITIVES),
            monotone=monotone,
            neighbours=relation,
            answer_epsilon=None if answer_epsilon is None else check.positive(answer_epsilon=answer_epsilon),
            grid=public_grid(grid),
        )
        reasonable_noise(self.threshold_scale, "epsilon")
        reasonable_noise(self.query_scale, "epsilon")
        if self.answer_epsilon is not None:
            reasonable_noise(self.answer_scale, "answer_epsilon")
        self.grid.steps(self.threshold)

    @property
    def event(self) -> events.Event:
        """Returns what a whole session costs, however early it ends."""
        answers = events.Pure(self.epsilon)
        if self.answer_epsilon is None:
            return answers
        number = events.DiscreteLaplace(scale=self.answer_scale, sensitivity=self._moves)
        return events.Composed([answers, events.Repeated(number, self.max_positives)])

    @property
    def _moves(self) -> int:
        return self.grid.l1_steps(self.sensitivity)

    @property
    def threshold_scale(self) -> Fraction:
        """Returns the scale of the threshold's noise in steps.

        e1 : e2 = 1 : (2 c)^(2/3), or 1 : c^(2/3) if monotone, makes the variance of the comparison smallest.
        """
        return self._moves / self._threshold_epsilon

    @property
    def query_scale(self) -> Fraction:
        """Returns the scale of each query's noise in steps."""
        shift = self._moves if self.monotone else 2 * self._moves
        return shift * self.max_positives / (self.epsilon - self._threshold_epsilon)

    @property
    def _threshold_epsilon(self) -> Fraction:
        shifts = self.max_positives if self.monotone else 2 * self.max_positives
        ratio = Fraction(round(math.cbrt(shifts) ** 2 * _PARTS), _PARTS)
        return self.epsilon / (1 + ratio)

    @property
    def answer_scale(self) -> Fraction:
        """Returns the scale of a number's noise in steps; each costs answer_epsilon / max_positives."""
        if self.answer_epsilon is None:
            raise InvalidParameter("answer_epsilon", None, "to be given", "Without it, answers have no numbers.")
        return self._moves * self.max_positives / self.answer_epsilon

    def start(self, *, bits: Bits | None = None) -> SparseVectorSession:
        """Returns a new session, which is one event; queries may be chosen after seeing earlier answers."""
        return SparseVectorSession(self, source_of(bits))

    def release(self, value: Any, *, bits: Bits | None = None) -> NDArray[np.bool_]:
        """Releases the answers to a list of queries, in order; the array ends at the last yes a session allows.

        Args:
            value: the exact values of the queries.
            bits: the source of randomness; None is the secure one.
        """
        queries = np.asarray(numeric(value))
        if queries.ndim != 1:
            raise InvalidValue("to be a vector of numbers", "Pass a list, or ask one query at a time in a session.")
        steps = np.asarray(self.grid.steps(queries))
        session = self.start(bits=bits)
        for step in steps.tolist():
            if session.finished:
                break
            session.ask_steps(step)
        return np.array(session.above, dtype=bool)

    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns where a query's value lies: given a yes or no, or given the number of a yes.

        A wrong answer by w steps needs a difference of two noises of w; the confidence is shared between them. Half a
        step of rounding is added, but on the grid of whole numbers, where values are taken to be whole.

        Args:
            released: a bool or an array of them; or a number that came with a yes, or an array of such.
            confidence: the probability of each statement.
        """
        chance = check.probability(confidence=confidence)
        rounding = HALF if self.grid.exponent else 0
        if np.asarray(released).dtype != bool:
            reach = laplace_reach(self.answer_scale, 1 - chance) + rounding
            return around(released, reach * self.grid.step, self.grid)
        # P(|Z| > reach) <= 1 - chance is half of it on the one side that matters, for each of the two noises.
        width = sum(laplace_reach(scale, 1 - chance) for scale in (self.threshold_scale, self.query_scale))
        level = self.grid.value(self.grid.steps(self.threshold))
        lowest, highest = around(level, (width + rounding) * self.grid.step, self.grid)
        yes = np.asarray(released)
        low, high = np.where(yes, float(lowest), -math.inf), np.where(yes, math.inf, float(highest))
        return Interval(low, high) if yes.ndim else Interval(float(low), float(high))


class SparseVectorSession:
    """One run of `SparseVector`: it holds the secret noise of the threshold and counts the yeses."""

    __slots__ = ("_above", "_answers", "_bits", "_level", "_mechanism", "_positives", "_scale")

    def __init__(self, mechanism: SparseVector, bits: Bits) -> None:
        self._mechanism, self._bits = mechanism, bits
        noise = discrete_laplace(mechanism.threshold_scale, bits=bits)
        self._level = mechanism.grid.steps(mechanism.threshold) + noise
        self._above: list[bool] = []
        self._answers: list[int | float] = []
        self._positives = 0
        self._scale = mechanism.query_scale

    def __repr__(self) -> str:
        return f"SparseVectorSession(asked={len(self._above)}, positives={self._positives})"

    @property
    def above(self) -> tuple[bool, ...]:
        """Returns all answers so far."""
        return tuple(self._above)

    @property
    def answers(self) -> tuple[int | float, ...]:
        """Returns the numbers of the yeses so far; empty unless they are paid for by `answer_epsilon`."""
        return tuple(self._answers)

    @property
    def finished(self) -> bool:
        """Returns whether all yeses are used up."""
        return self._positives >= self._mechanism.max_positives

    def ask(self, value: Any) -> bool:
        """Returns whether a query is above the threshold, up to noise.

        Args:
            value: the exact value of the query.

        Raises:
            InsufficientBudget: once all yeses are used up; nothing more is answered, ever.
            InvalidValue: if the value is no finite number.
        """
        number = numeric(value)
        if isinstance(number, np.ndarray):
            raise InvalidValue("to be one number", "Ask one query at a time, or use release for a list.")
        return self.ask_steps(self._mechanism.grid.steps(number))

    def ask_steps(self, steps: int) -> bool:
        """Returns the same for a value that is already a count of steps."""
        if self.finished:
            hint = "Start a new session and charge its event."
            raise InsufficientBudget("one more answer", "no positive answers of this session", hint)
        mechanism = self._mechanism
        above = bool(steps + discrete_laplace(self._scale, bits=self._bits) >= self._level)
        self._above.append(above)
        self._positives += above
        if above and mechanism.answer_epsilon is not None:
            noisy = steps + discrete_laplace(mechanism.answer_scale, bits=self._bits)
            self._answers.append(mechanism.grid.value(noisy))
        return above
