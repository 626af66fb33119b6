"""How often the best guess about a secret can be right, against a guarantee for the change from one value to another.

The secret has one of two values; one of them is the truth with a prior probability that everybody knows, whatever is
known about everybody else. The guarantee is about data with the one value and data with the other.
"""

from __future__ import annotations

import math

from discreet.lazy import special


def right_guess(epsilon: float, *, prior: float = 0.5, delta: float = 0.0) -> float:
    """The largest share of right guesses against (epsilon, delta)-DP.

    Formal guarantee: a guess is a test with errors a and b, and a + e^epsilon b >= 1 - delta, b + e^epsilon a >= 1 -
    delta (Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015). The share p (1 - a) + (1 - p) (1 - b) is largest at a
    corner: a = b = (1 - delta) / (1 + e^epsilon), or the commoner value whenever delta does not tell. With a prior of
    one half and delta = 0 it is the posterior e^epsilon / (1 + e^epsilon).

    Args:
        epsilon: between data with the one value and data with the other.
        prior: of the likelier value, at least one half.
        delta: likewise.

    >>> round(right_guess(1), 4), right_guess(0.1, prior=0.75), round(right_guess(1, delta=0.01), 4)
    (0.7311, 0.75, 0.7337)
    """
    error = (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))
    return min(1.0, max(1 - error, prior + (1 - prior) * delta))


def right_guess_gaussian(mu: float, *, prior: float = 0.5) -> float:
    """The largest share of right guesses against mu-Gaussian DP; Phi(mu / 2) if both values are equally likely.

    Formal guarantee: no test is better than the likelihood ratio of N(0, 1) and N(mu, 1) (Dong, Roth, Su 2022), which
    decides for the likelier value p unless the ratio exceeds p / (1 - p).

    >>> round(right_guess_gaussian(1), 4), round(right_guess_gaussian(1, prior=0.75), 4)
    (0.6915, 0.7775)
    """
    if mu <= 0:
        return prior
    lean = math.log(prior / (1 - prior)) / mu if prior < 1 else math.inf
    return float(prior * special.ndtr(mu / 2 + lean) + (1 - prior) * special.ndtr(mu / 2 - lean)) if prior < 1 else 1.0
