"""Secrets that cannot be guessed: keys, tokens of sessions, nonces."""

from __future__ import annotations

from discreet import check
from discreet.noise.rng import Bits, source_of

LEAST_BYTES = 16
"""128 bits: too many to guess even one of a great number of tokens."""


def random_bytes(count: int, *, bits: Bits | None = None) -> bytes:
    """Returns secure random bytes.

    Raises:
        InvalidParameter: if they are too few to be a secret.

    >>> len(random_bytes(16))
    16
    """
    size = check.integer(count=count, at_least=LEAST_BYTES)
    return source_of(bits).integer(8 * size).to_bytes(size, "big")


def token(count: int = 32, *, bits: Bits | None = None) -> str:
    """Returns so many secure random bytes, as a text of digits and letters a to f.

    >>> len(token(16)), token(16) == token(16)
    (32, False)
    """
    return random_bytes(count, bits=bits).hex()
