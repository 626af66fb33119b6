"""A budget, as the one amount that noise is made for."""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.privacy import ZCDP, ApproxDP, PureDP
from discreet.privacy.losses import Loss
from discreet.statistics.budget_split import Spending

_HINT = "Pass e.g. budget=Budget(rho=0.1), Budget(epsilon=1, delta=1e-6) or Budget(epsilon=1)."


def gaussian_or_pure(budget: Loss) -> tuple[Fraction, Fraction | None]:
    """Returns mu^2 of Gaussian DP and None, or zero and a pure epsilon.

    Raises:
        InvalidParameter: if it is no budget, or an empty one.

    >>> from discreet.privacy import Budget
    >>> gaussian_or_pure(Budget(rho=0.5)), gaussian_or_pure(Budget(epsilon=2))
    ((Fraction(1, 1), None), (Fraction(0, 1), Fraction(2, 1)))
    """
    if isinstance(budget, ZCDP) and budget.rho > 0:
        return 2 * budget.rho, None
    if isinstance(budget, PureDP | ApproxDP) and budget.epsilon > 0:
        spending = Spending.of(budget.epsilon, budget.delta if isinstance(budget, ApproxDP) else None)
        return spending.mu_squared or Fraction(0), spending.epsilon
    raise InvalidParameter("budget", budget, "to be an amount above 0 of epsilon or rho", _HINT)
