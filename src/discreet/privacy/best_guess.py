"""What a guarantee means for somebody who guesses whether one person is in the data."""

from __future__ import annotations

import math

from discreet.errors import InvalidParameter
from discreet.privacy.losses import GDP, ZCDP, ApproxDP, Loss, PureDP


def best_guess(guarantee: Loss) -> float:
    """Returns how often a guess whether one unit is in the data can be right, where both are equally likely.

    Formal guarantee: no test is right more often than (1 + TV) / 2. Under (epsilon, delta) that is at most
    (e^epsilon + delta) / (1 + e^epsilon) (Kairouz, Oh, Viswanath 2015, by the trade-off function). Under rho-zCDP the
    KL divergence is at most rho, so TV <= sqrt(rho / 2) (Pinsker) and TV <= sqrt(1 - e^-rho) (Bretagnolle, Huber
    1979); a delta adds at most itself to TV. Under mu-GDP it is Phi(mu / 2) (Dong, Roth, Su 2022).

    Returns:
        A bound, computed in floats; round it up to show it.

    >>> from discreet.privacy import ApproxDP, PureDP
    >>> round(best_guess(PureDP("0.5")), 4), round(best_guess(ApproxDP(2, "1e-6")), 4), best_guess(PureDP(0))
    (0.6225, 0.8808, 0.5)

    Raises:
        InvalidParameter: for a guarantee of another kind.
    """
    if isinstance(guarantee, PureDP | ApproxDP):
        delta = 0.0 if isinstance(guarantee, PureDP) else float(guarantee.delta)
        other = math.exp(-float(guarantee.epsilon))
        return min((1 + delta * other) / (1 + other), 1.0)
    if isinstance(guarantee, GDP):
        return (1 + math.erf(math.sqrt(float(guarantee.mu_squared) / 8))) / 2
    if isinstance(guarantee, ZCDP):
        rho = float(guarantee.rho)
        distance = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho))) + float(guarantee.delta)
        return min((1 + distance) / 2, 1.0)
    raise InvalidParameter(
        "guarantee", guarantee, "to be a PureDP, ApproxDP, ZCDP or GDP", "Build it with Budget(...)."
    )
