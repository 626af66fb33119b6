"""The terms of a question: what it may cost, made exact from what was asked and from the account's budget."""

from __future__ import annotations

from fractions import Fraction

from discreet import check
from discreet.curator.replay.stored_releases import Asked
from discreet.errors import InvalidParameter
from discreet.privacy import ZCDP, ApproxDP, Loss, PureDP
from discreet.privacy.amounts import below_one

DELTA_SHARE = Fraction(1, 100)
"""Of the account's delta, for a question that names none."""


def terms(epsilon: check.Number | None, delta: check.Number | None, budget: Loss) -> Asked:
    """The epsilon and delta that a question is answered with.

    >>> terms("0.1", None, ApproxDP(1, "1e-6")).delta
    Fraction(1, 100000000)

    Raises:
        InvalidParameter: if epsilon is missing or no amount, or delta is given although the budget is pure.
    """
    if epsilon is None:
        raise InvalidParameter("epsilon", None, "to be given", "Pass e.g. epsilon=0.1; explain shows its error.")
    slack = _usual_delta(budget) if delta is None else below_one(delta=delta)
    if slack and isinstance(budget, PureDP):
        raise InvalidParameter("delta", delta, "to be 0: the account's budget is pure", "Leave it out.")
    return Asked(check.positive(epsilon=epsilon), slack)


def _usual_delta(budget: Loss) -> Fraction:
    return budget.delta * DELTA_SHARE if isinstance(budget, ApproxDP | ZCDP) else Fraction(0)
