"""Attacks are functions with a `compare`; guarantees bound how far any attack can come.

`attack(...)` attacks one release; `attack.compare(...)` also attacks the same data under several defences. A bound
about a secret with two values is about guessing the true one. Its prior probability is public, and the attacker may
know all other people's data; the guarantee is then about data with the one value and data with the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import update_wrapper, wraps
from typing import Generic, ParamSpec, TypeVar

import numpy as np

from discreet.lazy import special
from discreet.progress import stage
from discreet.report.attack_finding import Comparison, Finding, Trial

Given = ParamSpec("Given")
Raw = ParamSpec("Raw")
Found = TypeVar("Found", bound=Finding)


class Attack(Generic[Given, Found, Raw]):
    """Attacks a release when called; `compare` protects data in several ways and attacks each result.

    Attributes:
        compare: takes the data themselves, makes releases of them, and compares the findings.

    >>> from discreet.attacks import uniqueness
    >>> from discreet.noise import SeededBits
    >>> people = {"zip": ["10", "11", "20", "21"] * 5, "illness": ["flu", "flu", "asthma", "cancer"] * 5}
    >>> uniqueness(people, ["zip"]).k  # the smallest class of one release
    5
    >>> print(uniqueness.compare(people, ["zip"], sensitive="illness", epsilons=[0.1], bits=SeededBits(1)).summary())
    Looking people up: 100 % of sensitive values guessed correctly from the raw release, 50 % at epsilon 0.1
      no defence               100 % (84 % to 100 %) of sensitive values guessed correctly
      5-anonymous              100 % (84 % to 100 %) of sensitive values guessed correctly
      counts below 5 left out  100 % (84 % to 100 %) of sensitive values guessed correctly
      epsilon 0.1              50 % (30 % to 70 %) of sensitive values guessed correctly, at most 55 % possible
    """

    def __init__(self, run: Callable[Given, Found], compare: Callable[Raw, Comparison]) -> None:
        update_wrapper(self, run)
        self._run = run

        @wraps(compare)
        def announce_and_compare(*given: Raw.args, **named: Raw.kwargs) -> Comparison:
            stage(f"Comparing defences against {self._words}")
            return compare(*given, **named)

        self.compare = announce_and_compare

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Found:
        """Attacks one release and returns what it found."""
        stage(f"Attacking by {self._words}")
        return self._run(*given, **named)

    @property
    def _words(self) -> str:
        return self._run.__name__.replace("_", " ")


def beside(compare: Callable[Raw, Comparison]) -> Callable[[Callable[Given, Found]], Attack[Given, Found, Raw]]:
    """Makes an attack of a function, with this companion."""
    return lambda run: Attack(run, compare)


def ceiling(epsilon: float, baseline: float, *, delta: float = 0.0) -> float:
    """Returns the largest rate at which a test accuses a unit that is in the data, against (epsilon, delta)-DP.

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
    """Returns the most that a guess with this prior can be right after a release, against pure DP.

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


def compare_trials(trials: Iterable[Trial], *, bound: Callable[[float], float]) -> Comparison:
    """Puts trials side by side, under the curve of the bound over their epsilons.

    Args:
        trials: the raw release first, then ad-hoc defences, then private releases.
        bound: of an epsilon, the largest success that it allows.

    >>> from discreet.attacks import uniqueness
    >>> from discreet.noise import SeededBits
    >>> people = {"zip": ["10", "11", "20", "21"] * 5, "illness": ["flu", "flu", "asthma", "cancer"] * 5}
    >>> found = uniqueness.compare(people, ["zip"], sensitive="illness", epsilons=[1], bits=SeededBits(1))
    >>> compare_trials([found.trials[0], *found.private], bound=right_guess)["epsilon 1"].success
    1.0
    """
    found = tuple(trials)
    tried = [trial.epsilon for trial in found if trial.epsilon is not None]
    places = np.geomspace(min(tried), max(tried), 60) if tried else np.empty(0)
    return Comparison(trials=found, ceiling=tuple((float(x), bound(float(x))) for x in places))


def right_guess(epsilon: float, *, prior: float = 0.5, delta: float = 0.0) -> float:
    """Returns the largest share of right guesses against (epsilon, delta)-DP.

    Formal guarantee: a guess is a test with errors a and b, and a + e^epsilon b >= 1 - delta, b + e^epsilon a >= 1 -
    delta (Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015). The share p (1 - a) + (1 - p) (1 - b) is largest at a
    corner: a = b = (1 - delta) / (1 + e^epsilon), or the commoner value whenever delta does not reveal the truth. With
    a prior of one half and delta = 0 it is the posterior e^epsilon / (1 + e^epsilon).

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
    """Returns the largest share of right guesses against mu-Gaussian DP; Phi(mu / 2) if both values are equally likely.

    Formal guarantee: no test is better than the likelihood ratio of N(0, 1) and N(mu, 1) (Dong, Roth, Su 2022), which
    decides for the likelier value p unless the ratio exceeds p / (1 - p).

    >>> round(right_guess_gaussian(1), 4), round(right_guess_gaussian(1, prior=0.75), 4)
    (0.6915, 0.7775)
    """
    if mu <= 0:
        return prior
    lean = math.log(prior / (1 - prior)) / mu if prior < 1 else math.inf
    return float(prior * special.ndtr(mu / 2 + lean) + (1 - prior) * special.ndtr(mu / 2 - lean)) if prior < 1 else 1.0
