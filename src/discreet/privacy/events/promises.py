"""Events known by the inequality they satisfy: the law of the output may be anything that obeys it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet import check
from discreet.check import Number, assign
from discreet.privacy.amounts import below_one
from discreet.privacy.events.base import Event

MOST_OPTIONS = 10**18


@dataclass(frozen=True, slots=True, init=False)
class Pure(Event):
    """Any release whose output laws P, Q on neighbours satisfy P(S) <= e^epsilon Q(S) for every set S of outputs.

    Dwork, McSherry, Nissim, Smith 2006, Definition 1.

    Args:
        epsilon: above 0.

    Raises:
        InvalidParameter: outside that domain.

    >>> Pure(0.1)
    Pure(epsilon=Fraction(1, 10))
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        assign(self, epsilon=check.positive(epsilon=epsilon))


@dataclass(frozen=True, slots=True, init=False)
class Approx(Event):
    """Any release whose output laws P, Q on neighbours satisfy P(S) <= e^epsilon Q(S) + delta for every set S.

    Dwork, Kenthapadi, McSherry, Mironov, Naor 2006. With epsilon = 0 the total variation distance is at most delta.

    Args:
        epsilon: at least 0.
        delta: strictly between 0 and 1; a release with delta = 0 is `Pure`.

    Raises:
        InvalidParameter: outside these domains.

    >>> Approx(1, 1e-6)
    Approx(epsilon=Fraction(1, 1), delta=Fraction(1, 1000000))
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        check.positive(delta=delta)
        assign(self, epsilon=check.not_negative(epsilon=epsilon), delta=below_one(delta=delta))


@dataclass(frozen=True, slots=True, init=False)
class Concentrated(Event):
    """Any release with D_a(P' || Q') <= rho a for all a > 1, where P = (1 - delta) P' + delta P'' and likewise Q.

    P, Q are the output laws on neighbours and D_a is the Renyi divergence of order a: delta-approximate rho-zCDP, and
    plain rho-zCDP if delta = 0 (Bun and Steinke 2016, Definitions 1.1 and 8.1).

    Args:
        rho: above 0.
        delta: at least 0 and below 1.

    Raises:
        InvalidParameter: outside these domains.

    >>> Concentrated(0.5)
    Concentrated(rho=Fraction(1, 2), delta=Fraction(0, 1))
    """

    rho: Fraction
    delta: Fraction

    def __init__(self, rho: Number, delta: Number = 0) -> None:
        assign(self, rho=check.positive(rho=rho), delta=below_one(delta=delta))


@dataclass(frozen=True, slots=True, init=False)
class BoundedRange(Event):
    """Any release whose privacy loss ln(P(y) / Q(y)) on neighbours stays in an interval of length epsilon.

    The same interval holds for all outputs y and may depend on the pair of neighbours. The exponential mechanism has
    this property with the epsilon of its pure guarantee (Durfee and Rogers 2019); it implies
    epsilon-DP and epsilon^2 / 8-zCDP (Cesar and Rogers 2021).

    Args:
        epsilon: above 0, the length of the interval.

    Raises:
        InvalidParameter: outside that domain.

    >>> BoundedRange(0.5)
    BoundedRange(epsilon=Fraction(1, 2))
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        assign(self, epsilon=check.positive(epsilon=epsilon))


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse(Event):
    """Release of one of `options` values: the true one with odds e^epsilon against each single other.

    The true one has the probability e^epsilon / (e^epsilon + options - 1), every other 1 / (e^epsilon + options - 1),
    and on neighbours the true value may be any two of them. Pure epsilon-DP (Warner 1965; Kairouz, Oh, Viswanath
    2014). That a report was sent is not protected: who takes part is public, or those who do not take part send a
    public value.

    Args:
        epsilon: above 0.
        options: a whole number from 2.

    Raises:
        InvalidParameter: outside these domains.

    >>> RandomizedResponse(1)
    RandomizedResponse(epsilon=Fraction(1, 1), options=2)
    """

    epsilon: Fraction
    options: int

    def __init__(self, epsilon: Number, options: int = 2) -> None:
        assign(
            self,
            epsilon=check.positive(epsilon=epsilon),
            options=check.integer(options=options, at_least=2, at_most=MOST_OPTIONS),
        )
