"""A test of the system's random bytes before any key is made of them: stuck, repeating and lopsided ones are refused.

In the spirit of NIST SP 800-90B, section 4.4 (repetition count, adaptive proportion), for a source that claims full
entropy. It sees sources that are broken, not sources that somebody predicts: those pass every test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from discreet.errors import RandomnessUnavailable

CALLS = 4  # more than one, because a source may give the same bytes to every call
CALL_BYTES = 1024
_BLOCK = 16  # bytes
_MOST_OFTEN = 100


def check_health(draw: Callable[[int], bytes]) -> None:
    """Refuses a source of bytes whose sample no honest source would give.

    Two tests on 4,096 bytes from 4 calls:

    - *Repetition*: all 256 blocks of 16 bytes differ. Fair bytes have two equal ones with a probability below
      256^2 / 2 * 2^-128 = 2^-113. A constant, a short period and a source that starts anew with each call fail.
    - *Proportion*: no byte comes up more than 100 times, where 16 are expected. By Chernoff's bound a fair one does
      with a probability of (16 / 101)^101 e^(101 - 16) < 2^-145, any of 256 with less than 2^-137.

    Raises:
        RandomnessUnavailable: if one of them fails, falsely less than once in 2^112 times.
    """
    sample = b"".join(draw(CALL_BYTES) for _ in range(CALLS))
    blocks = {sample[start : start + _BLOCK] for start in range(0, len(sample), _BLOCK)}
    if len(blocks) * _BLOCK < len(sample):
        raise RandomnessUnavailable("The operating system's random bytes repeat; no noise can be drawn from them.")
    if max(Counter(sample).values()) > _MOST_OFTEN:
        raise RandomnessUnavailable(
            "The operating system's random bytes are lopsided; no noise can be drawn from them."
        )
