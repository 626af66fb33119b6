"""Tracing from means: a member pulls the group's mean towards themselves, a little in every coordinate.

The private sides of comparisons are sums that a person moves in every coordinate, with noise for all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside, compare_trials
from discreet.attacks.membership.score_threshold import (
    ENOUGH,
    Floats,
    Tracing,
    accuse,
    allowed_rate,
    average_findings,
    bound_of,
    effective_number,
    mask_of,
    people,
    power,
    split,
)
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Grid, root_above
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits, source_of
from discreet.privacy.events import Event, Pure
from discreet.report.attack_finding import RAW, Comparison, Trial

Law = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Holds a mechanism for sums, with its guarantee in the form that bounds of attacks take.

    Attributes:
        mechanism: adds the noise.
        event: what the release is for a person.
        noise: standard deviation of the noise of one sum.
    """

    mechanism: Laplace | Gaussian
    event: Event
    noise: float


@dataclass(frozen=True, slots=True)
class PrivateSums:
    """Holds private sums, with the noise of each and the guarantee of the whole release for a person."""

    values: NDArray[np.float64]
    noise: float
    event: Event


def private_law(law: Law, epsilon: float, delta: check.Number, coordinates: int, largest: int = 1) -> Guarantee:
    """Returns noise for whole sums that one person moves by at most `largest` in every coordinate.

    Formal guarantee: epsilon-DP with Laplace noise, whose L1 sensitivity is largest * d; (epsilon, delta)-DP and the
    trade-off curve of the Gaussian mechanism with Gaussian noise, whose L2 sensitivity is largest * sqrt(d). If a
    person's values lie between 0 and `largest`, both hold when a person is added or removed and when one is replaced
    by another: in either case every sum moves by at most `largest`.
    """
    if law == "laplace":
        laplace = Laplace(epsilon=epsilon, sensitivity=coordinates * largest)
        return Guarantee(laplace, Pure(laplace.epsilon), math.sqrt(2) * float(laplace.event.scale))
    if law == "gaussian":
        move = largest * root_above(Fraction(coordinates))
        gaussian = Gaussian(epsilon=epsilon, delta=delta, sensitivity=move)
        return Guarantee(gaussian, gaussian.event, float(gaussian.sigma))
    raise InvalidParameter("law", law, "to be 'laplace' or 'gaussian'", "Gaussian noise has a delta, Laplace has none.")


def noisy_sums(
    sums: NDArray[np.int64], largest: int, law: Law, *, epsilon: float, delta: check.Number, bits: Bits
) -> PrivateSums:
    """Returns whole sums of values between 0 and `largest`, made private together."""
    guarantee = private_law(law, epsilon, delta, sums.size, largest)
    values = np.asarray(guarantee.mechanism.release(sums, bits=bits), dtype=np.float64)
    return PrivateSums(values, guarantee.noise, guarantee.event)


STEPS = 1024  # of the grid on which sums are protected, to the width of the bounds


@dataclass(frozen=True, slots=True)
class _Means:
    """Holds released means, with the noise of each in its units, and the guarantee."""

    values: Floats
    noise: float = 0.0
    event: Event | None = None


def compare(
    group: Any,
    reference: Any,
    others: Any,
    *,
    bounds: tuple[float, float],
    epsilons: Iterable[float] = (0.1, 1, 10),
    law: Law = "laplace",
    delta: check.Number = 1e-6,
    rounding: float | None = None,
    repeats: int = 10,
    controls: Any = None,
    false_positives: check.Number = 0.05,
    bits: Bits | None = None,
) -> Comparison:
    """Compares tracing from raw means, from rounded ones, from a tenth of them, and from private ones.

    Formal guarantee of the private releases: values are clipped to the bounds and put on a public grid, and their exact
    sums get noise for one person replaced by another, in all coordinates together; the size of the group is public. A
    group with a member and the same group with a stranger in the member's place are such neighbours, so that the bound
    is 1 - f(alpha) of the whole release, the pure one for Laplace noise and the Gaussian trade-off curve for Gaussian.

    Args:
        group: people whose mean is released, one row each.
        reference: people of the same population whom the attacker knows, none of them in the group.
        others: people outside, who measure the false positives.
        bounds: between which every value lies, or is clipped.
        epsilons: each for all means together.
        law: "laplace" (pure) or "gaussian" (with delta).
        delta: of the Gaussian law.
        rounding: step of the rounded release; None is a twentieth of the bounds' width.
        repeats: private releases at each epsilon, over which findings are averaged.
        controls: people who set the threshold; None takes half of the reference.
        false_positives: allowed rate.
        bits: source of randomness.
    """
    inside, source = people(group=group), source_of(bits)
    outside = people(inside.shape[1], others=others)
    low, high = float(bounds[0]), float(bounds[1])
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidParameter("bounds", bounds, "to be two finite numbers, the lower first", "Pass public bounds.")
    step = (high - low) / 20 if rounding is None else float(check.positive(rounding=rounding))
    chosen = sorted(float(check.positive(epsilons=epsilon)) for epsilon in epsilons)
    times = check.integer(repeats=repeats, at_least=1)
    candidates = np.concatenate([inside, outside])
    start, stop = split(people(inside.shape[1], reference=reference), controls, source)

    def trace_means(means: _Means, columns: slice = slice(None)) -> Tracing:
        return trace(
            means.values[columns],
            start[:, columns],
            candidates[:, columns],
            members=np.arange(len(candidates)) < len(inside),
            n=len(inside),
            noise=means.noise,
            controls=stop[:, columns],
            false_positives=false_positives,
            event=means.event,
        )

    def private(epsilon: float) -> Tracing:
        means = (_private(inside, (low, high), law, epsilon=epsilon, delta=delta, bits=source) for _ in range(times))
        return average_findings([trace_means(release) for release in means])

    raw = inside.mean(axis=0)
    ad_hoc = {
        RAW: trace_means(_Means(raw)),
        f"rounded to {step:g}": trace_means(_Means(np.round(raw / step) * step)),
        "one mean in ten": trace_means(_Means(raw), slice(0, max(1, len(raw) // 10))),
    }
    trials = [Trial(defence=name, epsilon=None, finding=finding) for name, finding in ad_hoc.items()]
    trials += [Trial(defence=f"epsilon {e:g}", epsilon=e, finding=private(e)) for e in chosen]
    alpha = allowed_rate(false_positives)
    return compare_trials(trials, bound=lambda e: bound_of(private_law(law, e, delta, raw.size).event, alpha))


def _private(
    group: Floats, bounds: tuple[float, float], law: Law, *, epsilon: float, delta: check.Number, bits: Bits
) -> _Means:
    """Returns means of clipped values on a grid, from sums with noise."""
    low, high = bounds
    step = float(Grid.finer_than(Fraction(high - low) / STEPS).step)
    levels = math.floor((high - low) / step)
    sums = np.clip(np.round((group - low) / step), 0, levels).astype(np.int64).sum(axis=0)
    released = noisy_sums(sums, levels, law, epsilon=epsilon, delta=delta, bits=bits)
    scale = step / len(group)
    return _Means(low + released.values * scale, released.noise * scale, released.event)


@beside(compare)
def trace(
    released_mean: Any,
    reference: Any,
    candidates: Any,
    *,
    n: int | None = None,
    members: Any = None,
    noise: float = 0.0,
    controls: Any = None,
    false_positives: check.Number = 0.05,
    event: Event | None = None,
    bits: Bits | None = None,
) -> Tracing:
    """Accuses candidates of being in a group whose mean was released.

    The score of y is sum_j (mean_j - mu_j)(y_j - mu_j) / variance_j, mu and variances from a reference sample
    (Homer et al. 2008; Dwork, Smith, Steinke, Ullman, Vadhan 2015). Without the centring by mu there is next to no
    power. The threshold comes from people who are neither in the group nor in the sample that gave mu.

    Args:
        released_mean: one number for each coordinate.
        reference: people of the same population, one row each, none of them in the group.
        candidates: whom to judge, one row each.
        n: how many people are in the group, for the prediction; None if that is unknown.
        members: which candidates are in the group, to keep score: a mask or places; None if that is unknown.
        noise: standard deviation of the noise of each released number, for the prediction.
        controls: people outside who set the threshold; None takes half of the reference.
        false_positives: how many of those outside may be accused.
        event: the guarantee of the whole release about a person, for the bound.
        bits: source of randomness, for the split of the reference.

    Raises:
        InvalidParameter: if tables do not fit, or there are too few controls for the rate of false positives.

    >>> from discreet.noise import SeededBits
    >>> from discreet.noise.experiment import normals
    >>> bits = SeededBits(1)
    >>> group, reference, others = (normals((count, 200), bits=bits) for count in (20, 200, 50))
    >>> candidates = np.concatenate([group, others])
    >>> print(trace(group.mean(axis=0), reference, candidates, n=20, members=range(20), bits=bits))
    Tracing from means
    attack succeeds (95 % interval)  85 % (64 % to 95 %) of 20 members accused
    by guessing                      5 %
    as predicted                     89 %
    verdict                          better than a guess; no guarantee limits it
    - 4 % of people outside were accused, 5 % were allowed.
    - 200 numbers were used, worth 198 independent ones.
    """
    mean = people(released_mean=np.atleast_2d(released_mean))[0]
    start, stop = split(people(len(mean), reference=reference), controls, bits)
    judged = people(len(mean), candidates=candidates)
    known, alpha = mask_of(members, len(judged)), allowed_rate(false_positives)
    size = None if n is None else check.integer(n=n, at_least=1)
    spread = float(check.not_negative(noise=noise, floats="exact"))
    centre, scale = start.mean(axis=0), start.std(axis=0, ddof=1)
    used = scale > 0  # a coordinate in which all known people agree says nothing about membership
    if not used.any():
        raise InvalidParameter("reference", start.shape, "to vary in some coordinate", "Pass more people.")
    weights = np.where(used, (mean - centre) / np.where(used, scale, 1.0) ** 2, 0.0)
    strangers = (stop[:ENOUGH, used] - centre[used]) / scale[used]
    effective = effective_number(strangers @ strangers.T)
    return accuse(
        judged @ weights - centre @ weights,
        stop @ weights - centre @ weights,
        members=known,
        false_positives=alpha,
        event=event,
        attack="Tracing from means",
        coordinates=int(used.sum()),
        effective=effective,
        predicted=None
        if size is None
        else power(
            int(used.sum()),
            size,
            noise=spread * math.sqrt(np.mean(scale[used] ** -2.0)),
            reference=len(start),
            effective=effective,
            false_positives=alpha,
        ),
    )
