"""When outcomes may leave: at admission + tick x 2^k, so that their time tells little of how long the data took."""

from __future__ import annotations


def release_time(admitted: float, ready: float, tick: float) -> float:
    """Returns the first moment admitted + tick x 2^k that is not before `ready`.

    Formal guarantee: with a deadline d at least as long as the tick t, an outcome that is ready by admitted + d leaves
    at one of at most log2(d / t) + 2 moments, whatever the data.

    >>> [release_time(10.0, 10.0 + seconds, 0.25) for seconds in (0.1, 0.25, 0.3, 1.1)]
    [10.25, 10.25, 10.5, 12.0]
    """
    wait = tick
    while admitted + wait < ready:
        wait *= 2
    return admitted + wait


def last_release_time(admitted: float, now: float, tick: float) -> float | None:
    """Returns the last such moment that has passed; None if none has. What is told meanwhile is what was so then.

    >>> last_release_time(0.0, 0.2, 0.25), last_release_time(0.0, 0.9, 0.25)
    (None, 0.5)
    """
    if now < admitted + tick:
        return None
    wait = tick
    while admitted + 2 * wait <= now:
        wait *= 2
    return admitted + wait
