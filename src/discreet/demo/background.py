"""The effects of noise, accountants and epsilons, in numbers."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet import accounting
from discreet.dataclass import dataclass
from discreet.mechanisms import Laplace
from discreet.noise import Bits
from discreet.privacy import events
from discreet.report.charts import CurvePoint

VISITS = 1_204  # people in an imaginary waiting room
QUERIES = 100
EACH = Fraction(1, 10)
DELTA = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A count that was released at one epsilon, and the event that describes it."""

    epsilon: str
    value: int
    low: int
    high: int
    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountantBound:
    """The epsilon of a hundred releases by one accountant, and why."""

    method: str
    epsilon: float
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The gain of an attacker at one epsilon, and the loss of an analyst."""

    epsilon: str
    belief: float
    power: float
    error: int


def counts(bits: Bits | None = None) -> list[Count]:
    """Returns one count at several budgets, with fresh noise."""
    return [_count(epsilon, bits) for epsilon in ("0.05", "0.1", "0.5", "1")]


def _count(epsilon: str, bits: Bits | None) -> Count:
    mechanism = Laplace(epsilon=epsilon, sensitivity=1)
    estimate, event = mechanism.estimate(VISITS, bits=bits), mechanism.event
    described = f"DiscreteLaplace({event.scale}, {event.sensitivity})"
    value, low, high = (int(part) for part in (estimate.value, estimate.low, estimate.high))
    return Count(epsilon=epsilon, value=value, low=low, high=high, event=described)


def errors() -> list[CurvePoint]:
    """Returns how far a released count may lie from the true one, from epsilon 0.05 to 2."""
    epsilons = [Fraction(round(1000 * 0.05 * 40 ** (i / 24)), 1000) for i in range(25)]
    return [_reading(epsilon) for epsilon in epsilons]


def _reading(epsilon: Fraction) -> CurvePoint:
    ends = Laplace(epsilon=epsilon, sensitivity=1).interval(VISITS, confidence="0.95")
    return CurvePoint(x=float(epsilon), value=VISITS, low=float(ends.low), high=float(ends.high))


def accounts() -> list[AccountantBound]:
    """Returns a hundred Laplace releases under four accountants, and the least of all bounds."""
    release = events.Repeated(events.Laplace(noise_multiplier=1 / EACH), QUERIES)
    known = {
        "basic": "epsilons add up",
        "zCDP": "concentrated: good for many small releases",
        "optimal homogeneous": "tight if only each epsilon is known",
        "PLD": "tight, because the noise is known to be Laplace",
    }
    found = [
        AccountantBound(method=method, epsilon=accounting.epsilon(release, DELTA, method=method), remark=remark)
        for method, remark in known.items()
    ]
    least = accounting.epsilon(release, DELTA)
    return [*found, AccountantBound(method="discreet", epsilon=least, remark="the least of all valid bounds")]


def meanings() -> list[Meaning]:
    """Returns what several epsilons mean for one person."""
    return [_meaning(epsilon) for epsilon in ("0.1", "0.5", "1", "3", "8")]


def _meaning(epsilon: str) -> Meaning:
    power = 1 - accounting.trade_off(events.Pure(epsilon), "0.05")
    error = Laplace(epsilon=epsilon, sensitivity=1).interval(0, confidence="0.95").high
    return Meaning(epsilon=epsilon, belief=posterior(float(epsilon)), power=power, error=int(error))


def posterior(epsilon: float, prior: float = 0.5) -> float:
    """Returns the largest belief that a pure epsilon-DP release can leave where the prior was, by Bayes' rule.

    >>> round(posterior(1.0), 4)
    0.7311
    """
    return prior * math.exp(epsilon) / (1 - prior + prior * math.exp(epsilon))
