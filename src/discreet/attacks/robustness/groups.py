"""How far several changed units can move a private release: group privacy, as a bound on probabilities."""

from __future__ import annotations

import math

from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.privacy import GDP, ApproxDP, PureDP


def group_bound(loss: PureDP | ApproxDP | GDP, rows: int, chance: float) -> float:
    """The largest probability that an outcome of this probability may get if so many units are changed.

    Group privacy gives (epsilon', delta') for them together; then p' <= e^epsilon' p + delta', and the same for the
    opposite outcome: p' <= 1 - e^-epsilon' (1 - p - delta') (Dwork, McSherry, Nissim, Smith 2006; `ApproxDP.group`).
    For mu-GDP it is p' <= Phi(Phi^-1(p) + k mu) (Dong, Roth, Su 2022, Theorem 2.14), which says much more.

    >>> [round(group_bound(PureDP(1), rows, 0.01), 3) for rows in (0, 1, 3, 10)]
    [0.01, 0.027, 0.201, 1.0]
    """
    if isinstance(loss, GDP):
        return float(special.ndtr(special.ndtri(chance) + rows * math.sqrt(loss.mu_squared)))
    if rows == 0:
        return chance
    try:
        together = loss.group(rows)
    except InvalidParameter:  # its delta would be 1: such a group is not protected at all
        return 1.0
    epsilon, delta = float(together.epsilon), float(getattr(together, "delta", 0))
    most = min(1.0, math.exp(min(epsilon, 700.0)) * chance + delta)
    return min(most, 1 - math.exp(-epsilon) * max(0.0, 1 - chance - delta))


def silent_after(loss: PureDP | ApproxDP | GDP, chance: float, most: int = 1 << 20) -> int:
    """The smallest number of changed units at which an outcome of this probability may become the likelier one.

    >>> silent_after(PureDP(1), 0.01), silent_after(PureDP("0.1"), 0.01)
    (4, 40)
    """
    for rows in range(1, most):
        if group_bound(loss, rows, chance) >= 0.5:
            return rows
    return most
