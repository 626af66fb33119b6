"""What one fit of a search may cost, planned from public facts, and how many fits there are.

The cheaper of two ways to pay for all fits is taken; where their number is random, it is drawn without looking at data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from discreet import accounting
from discreet.accounting.random_repetitions import Tries, tuned_epsilon
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits, bernoulli
from discreet.noise.rng import TURNS, endless
from discreet.privacy import Neighbours
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending

CAREFUL = 1 - Fraction(1, 1 << 30)  # of a share, so that prices rounded up stay within the budget
FEW = 8  # candidates; more of them are never cheaper one by one
_FINER = 7  # halvings in the search for the budget of one fit: to a part in 128


def draw_tries(tries: Tries, bits: Bits) -> int:
    """Draws K with P(K = k) ~ (1-gamma)^k * product over 1 <= l < k of (l + eta) / (l + 1), by rejection from eta = 1.

    A geometric number is kept with the probability of that product, whose factors are at most 1 if eta <= 1; all
    coins are rational and exact.
    """
    if tries.eta > 1:
        raise InvalidParameter("eta", tries.eta, "<= 1", "Larger ones cost more and are never needed.")
    most = TURNS * math.ceil(1 / tries.gamma)  # each turn of both loops ends it with probability gamma or more
    for _ in range(most):
        count = next((place for place in range(1, most) if bernoulli(tries.gamma, bits=bits)), None)
        if count is None:
            break
        if all(bernoulli((place + tries.eta) / (place + 1), bits=bits) for place in range(1, count)):
            return count
    raise endless()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """What one fit may cost.

    Attributes:
        epsilon, delta: of one fit, and of the noisy loss of one try.
        tries: the law of their number; None if every candidate is fitted once.
        most: what one row adds at most to a loss.
    """

    epsilon: Fraction
    delta: Fraction
    tries: Tries | None
    most: int

    @property
    def score_noise(self) -> Laplace | Gaussian:
        """Returns the noise of a loss on the rows that are held out."""
        spending = Spending.of(self.epsilon, self.delta)
        if spending.is_pure:
            return Laplace(epsilon=self.epsilon, sensitivity=self.most)
        return Gaussian.with_multiplier(noise_multiplier=spending.noise_multiplier, sensitivity=self.most)


def search_plan(
    released: Callable[[SearchPlan], list[Event]],
    *,
    candidates: int,
    epsilon: Fraction,
    delta: Fraction,
    tries: Number | None,
    most: int,
    neighbours: Neighbours,
) -> SearchPlan:
    """Returns the plan that leaves most for one fit.

    Args:
        released: what each candidate would release under a plan.
        candidates: how many there are.
        epsilon: of the whole search.
        delta: of the whole search.
        tries: how many are drawn in the mean; None if each may also be fitted once.
        most: what one row adds at most to the loss by which candidates are compared.
        neighbours: the relation to protect.
    """
    law = Tries.of_mean(2 * candidates if tries is None else tries)
    once = SearchPlan(epsilon=epsilon, delta=delta / (2 * candidates), tries=None, most=most)
    each = delta / Fraction(2 * law.mean).limit_denominator(1000)
    often = SearchPlan(epsilon=epsilon, delta=each, tries=law, most=most)

    def can_run_by_turns(plan: SearchPlan) -> bool:
        return accounting.epsilon(released(plan), delta, neighbours=neighbours) <= epsilon

    def can_run_by_lot(plan: SearchPlan) -> bool:
        return tuned_epsilon([*released(plan), plan.score_noise.event], law, delta, neighbours=neighbours) <= epsilon

    if delta == 0:
        by_turns = _with(once, CAREFUL * epsilon / candidates)
        by_lot = _with(often, CAREFUL * epsilon / (2 + law.eta))
    else:
        by_lot = _largest(can_run_by_lot, often)
        by_turns = _largest(can_run_by_turns, once) if tries is None and candidates <= FEW else _with(once, Fraction(0))
    return by_turns if tries is None and by_turns.epsilon >= by_lot.epsilon else by_lot


def _with(plan: SearchPlan, epsilon: Fraction) -> SearchPlan:
    return replace(plan, epsilon=epsilon)


def _largest(holds: Callable[[SearchPlan], bool], plan: SearchPlan) -> SearchPlan:
    """Returns the plan with an epsilon near the largest that was seen to hold, at most its own; costs grow with it."""
    total = plan.epsilon
    low, high = total, total
    while not holds(_with(plan, low)):
        low, high = low / 2, low
        if low < total / 2**40:
            raise InvalidParameter("epsilon", float(total), "to be large enough for one fit", "Search a smaller grid.")
    for _ in range(_FINER if low < high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(_with(plan, middle)) else (low, middle)
    return _with(plan, low)
