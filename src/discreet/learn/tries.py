"""The number of tries, drawn exactly and without looking at data."""

from __future__ import annotations

from discreet.accounting.tuning import Tries
from discreet.errors import InvalidParameter
from discreet.noise import Bits, bernoulli


def draw_tries(tries: Tries, bits: Bits) -> int:
    """K with P(K = k) ~ (1-gamma)^k * product over 1 <= l < k of (l + eta) / (l + 1), by rejection from eta = 1.

    A geometric number is kept with the probability of that product, whose factors are at most 1 if eta <= 1; all
    coins are rational and exact.
    """
    if tries.eta > 1:
        raise InvalidParameter("eta", tries.eta, "<= 1", "Larger ones cost more and are never needed.")
    while True:
        count = 1
        while not bernoulli(tries.gamma, bits=bits):
            count += 1
        if all(bernoulli((place + tries.eta) / (place + 1), bits=bits) for place in range(1, count)):
            return count
