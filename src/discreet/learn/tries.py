"""The number of tries, drawn exactly and without looking at data."""

from __future__ import annotations

import math

from discreet.accounting.tuning import Tries
from discreet.errors import InvalidParameter
from discreet.noise import Bits, bernoulli
from discreet.noise.endless import TURNS, endless


def draw_tries(tries: Tries, bits: Bits) -> int:
    """K with P(K = k) ~ (1-gamma)^k * product over 1 <= l < k of (l + eta) / (l + 1), by rejection from eta = 1.

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
