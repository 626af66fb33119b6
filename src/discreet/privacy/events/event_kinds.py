"""What all events are, and every kind of them.

Some are made of others: sampling, repetition, composition. Of added noise the law of the output is known exactly. The
others are known by the inequality they satisfy: the law of their output may be anything that obeys it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import islice

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.privacy.amounts import below_one, repetitions

DEEPEST = 32  # levels of nesting; no honest analysis needs ten
MOST_EVENTS = 1 << 20  # of one composition; more of the same is `Repeated`


class Event:
    """A description of one release, or of several: frozen, hashable, equal by content."""

    __slots__ = ()

    @property
    def depth(self) -> int:
        """Returns levels of nesting, 1 for an event that contains no other."""
        return 1

    def _set(self, **fields: object) -> None:
        """Sets its fields, while it is being built."""
        assign(self, **fields)


def nested_depth(event: Event) -> int:
    """Returns the depth of an event, refused if one more level around it would be too much."""
    if event.depth >= DEEPEST:
        name, kind = "event", type(event).__name__
        raise InvalidParameter(name, f"a {kind} {event.depth} levels deep", f"below {DEEPEST} levels", "Flatten it.")
    return event.depth


@dataclass(frozen=True, slots=True, init=False)
class PoissonSampled(Event):
    """The event, run on a secret sample that each unit enters independently with the given probability.

    Defined for `Neighbours.ADD_REMOVE` only, and `event` describes the release for that relation on the sampled
    units. All rows of a unit enter together: units are sampled, not rows. Several releases from one sample are one
    `Composed` inside; a fresh sample for each is a `Composed` or `Repeated` outside (Li, Qardaji, Su 2012; Balle,
    Barthe, Gaboardi 2018).

    Args:
        probability: above 0 and at most 1.
        event: what is released from the sample.

    Raises:
        InvalidParameter: outside these domains, or if events are nested too deeply.

    >>> PoissonSampled(0.01, Repeated(Composed([]), 2)).probability
    Fraction(1, 100)
    """

    probability: Fraction
    event: Event

    def __init__(self, probability: Number, event: Event) -> None:
        chance = check.positive(probability=probability)
        if chance > 1:
            raise InvalidParameter("probability", probability, "<= 1", "Pass a share, e.g. probability=0.01.")
        self._set(probability=chance, event=_inner(event))

    @property
    def depth(self) -> int:
        """Returns levels of nesting."""
        return self.event.depth + 1


@dataclass(frozen=True, slots=True, init=False)
class Repeated(Event):
    """So many releases on the same data, each described by the event, with independent noise.

    Each may be chosen after seeing the ones before, as long as the event describes it (adaptive composition; Dwork,
    Rothblum, Vadhan 2010). The number was fixed beforehand.

    Args:
        event: what each release is.
        count: a whole number from 0.

    Raises:
        InvalidParameter: outside these domains, or if events are nested too deeply.

    >>> Repeated(Composed([]), 1000).count
    1000
    """

    event: Event
    count: int

    def __init__(self, event: Event, count: int) -> None:
        self._set(event=_inner(event), count=repetitions(count))

    @property
    def depth(self) -> int:
        """Returns levels of nesting."""
        return self.event.depth + 1


@dataclass(frozen=True, slots=True, init=False)
class Composed(Event):
    """All the events on the same data, in this order, with independent noise; an empty list releases nothing.

    Each release may depend on the outcomes of the ones before; the list of events was fixed beforehand (adaptive
    composition of a declared list; Dwork, Rothblum, Vadhan 2010).

    Args:
        events: any iterable of events.

    Raises:
        InvalidParameter: if a member is no event, there are more than 2^20, or events are nested too deeply.

    >>> Composed([]).events
    ()
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event]) -> None:
        if not isinstance(events, Iterable):
            raise InvalidParameter("events", events, "to be several events", "Pass a list, e.g. Composed([event]).")
        members = tuple(_inner(event) for event in islice(events, MOST_EVENTS + 1))
        if len(members) > MOST_EVENTS:
            raise InvalidParameter(
                "events", f"more than {MOST_EVENTS} events", "to be fewer", "Use Repeated for equal events."
            )
        self._set(events=members)

    @property
    def depth(self) -> int:
        """Returns levels of nesting."""
        return max((event.depth for event in self.events), default=0) + 1


@dataclass(frozen=True, slots=True, init=False)
class Calibrated(Event):
    """The event, with noise that was calibrated to an epsilon and a delta: it is (epsilon, delta)-DP as a whole, too.

    Both descriptions hold for the output laws on neighbours. A composition that knows the law of the noise uses the
    event. Sums of epsilons and deltas use these two amounts, where noise such as `Gaussian` has no single pair of them.

    Args:
        event: the release.
        epsilon: above 0.
        delta: strictly between 0 and 1.

    Raises:
        InvalidParameter: outside these domains, if `event` is none, or if events are nested too deeply.

    >>> Calibrated(Gaussian(5), 1, 1e-6).epsilon
    Fraction(1, 1)
    """

    event: Event
    epsilon: Fraction
    delta: Fraction

    def __init__(self, event: Event, epsilon: Number, delta: Number) -> None:
        check.positive(delta=delta)
        self._set(event=_inner(event), epsilon=check.positive(epsilon=epsilon), delta=below_one(delta=delta))

    @property
    def depth(self) -> int:
        """Returns levels of nesting."""
        return self.event.depth + 1


def strip_calibration(event: Event) -> Event:
    """Returns the same release without the amounts to which its noise was calibrated.

    What was composed to be calibrated together is a part of the composition around it again.

    >>> strip_calibration(Composed([Calibrated(Composed([Gaussian(5)]), 1, 1e-6)]))
    Composed(events=(Gaussian(noise_multiplier=Fraction(5, 1)),))
    """
    if isinstance(event, Calibrated):
        return strip_calibration(event.event)
    if isinstance(event, Composed):
        return Composed([bare for part in event.events for bare in _bare_parts(part)])
    if isinstance(event, Repeated):
        return Repeated(strip_calibration(event.event), event.count)
    if isinstance(event, PoissonSampled):
        return PoissonSampled(event.probability, strip_calibration(event.event))
    return event


def _bare_parts(part: Event) -> tuple[Event, ...]:
    bare = strip_calibration(part)
    return bare.events if isinstance(part, Calibrated) and isinstance(bare, Composed) else (bare,)


def _inner(event: object) -> Event:
    inner = check.instance(Event, event=event)
    nested_depth(inner)
    return inner


@dataclass(frozen=True, slots=True, init=False)
class Laplace(Event):
    """Release of v + Z, Z of independent Lap(b); one unit moves v by at most b / noise_multiplier in the L1 norm.

    Lap(b) has the density e^(-|z| / b) / (2 b). In any dimension the hardest case is one entry that carries the whole
    move: a move in steps is a path of neighbours, group privacy bounds it by the composed trade-off functions (Dong,
    Roth, Su 2022, Theorem 2.14), and for a log-concave shift family these compose to the trade-off of one shift by
    the sum. Pure epsilon-DP with epsilon = 1 / noise_multiplier (Dwork, McSherry, Nissim, Smith 2006).

    Args:
        noise_multiplier: above 0; a float is taken as the binary number it is.

    Raises:
        InvalidParameter: outside that domain.

    >>> Laplace(2)
    Laplace(noise_multiplier=Fraction(2, 1))
    """

    noise_multiplier: Fraction

    def __init__(self, noise_multiplier: Number) -> None:
        self._set(noise_multiplier=check.positive(noise_multiplier=noise_multiplier, floats="exact"))


@dataclass(frozen=True, slots=True, init=False)
class Gaussian(Event):
    """Release of v + N(0, sigma^2 I); one unit moves v by at most sigma / noise_multiplier in the L2 norm.

    With mu = 1 / noise_multiplier the privacy loss has the law N(mu^2 / 2, mu^2) in any dimension when the move is as
    long as it may be, and mu-GDP is exact (Dong, Roth, Su 2022, Theorem 2.7).

    Args:
        noise_multiplier: above 0; a float is taken as the binary number it is.

    Raises:
        InvalidParameter: outside that domain.

    >>> Gaussian(noise_multiplier=1.5)
    Gaussian(noise_multiplier=Fraction(3, 2))
    """

    noise_multiplier: Fraction

    def __init__(self, noise_multiplier: Number) -> None:
        self._set(noise_multiplier=check.positive(noise_multiplier=noise_multiplier, floats="exact"))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(Event):
    """Release of v + Z, v an integer vector, Z of independent integers with P(z) ~ e^(-|z| / scale).

    One unit moves v by an integer vector whose L1 norm is at most `sensitivity`. As for `Laplace`, one entry that
    carries the whole move is the hardest case, since this law is log-concave on the integers. Pure epsilon-DP with
    epsilon = sensitivity / scale (Ghosh, Roughgarden, Sundararajan 2009).

    Args:
        scale: above 0; a float is taken as the binary number it is.
        sensitivity: a whole number from 1.

    Raises:
        InvalidParameter: outside these domains.

    >>> DiscreteLaplace(scale=10, sensitivity=1)
    DiscreteLaplace(scale=Fraction(10, 1), sensitivity=1)
    """

    scale: Fraction
    sensitivity: int

    def __init__(self, scale: Number, sensitivity: int) -> None:
        self._set(
            scale=check.positive(scale=scale, floats="exact"),
            sensitivity=check.integer(sensitivity=sensitivity, at_least=1, at_most=10**check.LARGEST_EXPONENT),
        )


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(Event):
    """Release of v + Z, v an integer vector, Z of independent integers with P(z) ~ e^(-z^2 / (2 sigma^2)).

    v has `dimension` entries, and one unit moves it by an integer vector whose L2 norm is at most `sensitivity`. It
    satisfies zCDP with rho = sensitivity^2 / (2 sigma^2) in any dimension (Canonne, Kamath, Steinke 2020). It is not
    Gaussian DP, and in several dimensions no single shift is the hardest case: that is why the dimension is recorded.

    Args:
        sigma: above 0, the parameter of the law (its standard deviation is slightly smaller); a float is taken exactly.
        sensitivity: above 0, and whole if there is one dimension, where integers move by whole numbers.
        dimension: a whole number from 1.

    Raises:
        InvalidParameter: outside these domains.

    >>> DiscreteGaussian(sigma=5, sensitivity=1)
    DiscreteGaussian(sigma=Fraction(5, 1), sensitivity=Fraction(1, 1), dimension=1)
    """

    sigma: Fraction
    sensitivity: Fraction
    dimension: int

    def __init__(self, sigma: Number, sensitivity: Number, dimension: int = 1) -> None:
        move = check.positive(sensitivity=sensitivity, floats="exact")
        entries = check.integer(dimension=dimension, at_least=1, at_most=10**18)
        if entries == 1 and move.denominator != 1:
            raise InvalidParameter(
                "sensitivity", sensitivity, "to be whole in one dimension", "Integers move by whole steps."
            )
        self._set(sigma=check.positive(sigma=sigma, floats="exact"), sensitivity=move, dimension=entries)


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
        self._set(epsilon=check.positive(epsilon=epsilon))


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
        self._set(epsilon=check.not_negative(epsilon=epsilon), delta=below_one(delta=delta))


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
        self._set(rho=check.positive(rho=rho), delta=below_one(delta=delta))


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
        self._set(epsilon=check.positive(epsilon=epsilon))


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
        self._set(
            epsilon=check.positive(epsilon=epsilon),
            options=check.integer(options=options, at_least=2, at_most=MOST_OPTIONS),
        )
