"""How far any attack can come against a guarantee: the bound that every private release is compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from discreet.report.finding import Comparison, Trial


def ceiling(epsilon: float, baseline: float, *, delta: float = 0.0) -> float:
    """The largest rate at which a test accuses a unit that is in the data, against (epsilon, delta)-DP.

    Formal guarantee: let the accusation fall with probability b if the release is made without the unit (or with
    another one in its place). With the unit it falls with at most min(e^epsilon b + delta, 1 - e^-epsilon (1 - b -
    delta)): the definition of differential privacy for the accusation and for its absence (Wasserman, Zhou 2010;
    Kairouz, Oh, Viswanath 2015). The same holds for any other event, such as "the guess about the unit is right".

    Args:
        epsilon: of the whole release about the unit.
        baseline: b, the rate without the unit: the false positives of a test, the chance of a guess.
        delta: of the whole release.

    >>> round(ceiling(1, 0.05), 4), round(ceiling(1, 0.5), 4)
    (0.1359, 0.8161)
    """
    upper = math.exp(min(epsilon, 700.0)) * baseline + delta
    lower = 1 - math.exp(-epsilon) * (1 - baseline - delta)
    return min(1.0, upper, lower)


def posterior(epsilon: float, prior: float) -> float:
    """The most that a guess with this prior can be right after a release, against pure DP.

    Formal guarantee: whatever is released, the odds of what is guessed (a value, a range of them) against everything
    else grow by at most e^epsilon if data with the one and with the other differ by an epsilon-private step: the
    posterior is at most p e^epsilon / (1 - p + p e^epsilon).

    Args:
        epsilon: between data with what is guessed and data with anything else in its place.
        prior: of the best guess.

    >>> round(posterior(1, 0.5), 4)
    0.7311
    """
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def compared(trials: Iterable[Trial], *, bound: Callable[[float], float]) -> Comparison:
    """Trials side by side, under the curve of the bound over their epsilons.

    Args:
        trials: the raw release first, then ad-hoc defences, then private releases.
        bound: of an epsilon, the largest success that it allows.
    """
    found = tuple(trials)
    tried = [trial.epsilon for trial in found if trial.epsilon is not None]
    places = np.geomspace(min(tried), max(tried), 60) if tried else np.empty(0)
    return Comparison(trials=found, ceiling=tuple((float(x), bound(float(x))) for x in places))
