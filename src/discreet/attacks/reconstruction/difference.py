"""A number from two releases: before and after one person left."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.attacks.attack import beside
from discreet.attacks.ceiling import compared, posterior
from discreet.attacks.reconstruction.attribute_inference import (
    Clipped,
    Inference,
    by_chance,
    evenly,
    inferred,
    near_twice,
    sensible,
    span,
)
from discreet.errors import InvalidParameter
from discreet.noise import Bits, source_of
from discreet.report.finding import RAW, Comparison, Trial

_ATTACK = "Differencing"


def _compare(
    others: Any,
    *,
    bounds: tuple[check.Number, check.Number],
    prior: tuple[check.Number, check.Number] | None = None,
    tolerance: float | None = None,
    epsilons: Sequence[check.Number] = ("0.1", 1, 10),
    rounding: float | None = None,
    smallest: int = 5,
    trials: int = 1000,
    bits: Bits | None = None,
) -> Comparison:
    """Averages of a group before and after one person leaves: exact, rounded, withheld if small, clipped, private.

    In every trial the one who leaves has a number of its own, spread evenly over `prior`. A private release clips
    values to the bounds, adds exact Laplace noise to their sum, and divides by the number of people, which is public.
    Those who stay are in both averages, so that each average has half of epsilon, and epsilon is for all that is
    released about anybody, when one number is *replaced*.

    The bound: a window that holds a share b of the prior holds at most b e^epsilon / (1 - b + b e^epsilon) of what is
    known after the release, whatever was known about the others.

    Args:
        others: the numbers of those who stay.
        bounds: public, to which private averages clip.
        prior: where the leaver's number may lie; wider than the bounds for an outlier. None for the bounds.
        tolerance: how near counts as right; None for a hundredth of the prior's width.
        epsilons: each for both averages together.
        rounding: of rounded averages; None for a hundredth of the width of the bounds.
        smallest: averages of fewer people are withheld.
        trials: for each release.
        bits: the source of randomness.
    """
    source, values = source_of(bits), _numbers(others)
    ends = span("bounds", bounds)
    wide = ends if prior is None else span("prior", prior)
    reach = float(wide[1] - wide[0]) / 100 if tolerance is None else float(check.positive(tolerance=tolerance))
    step = float(ends[1] - ends[0]) / 100 if rounding is None else float(check.positive(rounding=rounding))
    budgets = sorted(check.positive(epsilon=each) for each in epsilons)
    secret = evenly(wide, check.integer(trials=trials, at_least=1), bits=source)
    size, chance = len(values) + 1, by_chance(wide, reach)
    before, after = (values.sum() + secret) / size, np.full(trials, values.mean())
    clip = Clipped(bounds=ends)
    low, high = float(ends[0]), float(ends[1])
    stay, leave = np.clip(values, low, high), np.clip(secret, low, high)

    def tried(name: str, first: Any, last: Any, epsilon: Fraction | None = None) -> Trial:
        finding = inferred(
            _ATTACK,
            sensible(size * first - (size - 1) * last, wide, reach),
            truth=secret,
            tolerance=reach,
            noise=None,
            predicted=None if epsilon is None or wide != ends else _predicted(reach, clip.scale(epsilon / 2), chance),
            baseline=chance,
            bound=None if epsilon is None else posterior(float(epsilon), chance),
        )
        return Trial(defence=name, epsilon=None if epsilon is None else float(epsilon), finding=finding)

    found = [
        tried(RAW, before, after),
        tried(f"rounded to {step:g}", np.round(before / step) * step, np.round(after / step) * step),
        tried(f"fewer than {smallest} withheld", *_withheld(before, after, size, smallest)),
        tried("clipped", (stay.sum() + leave) / size, np.full(trials, stay.mean())),
    ]
    all_steps = int(clip.steps(values).sum())
    for epsilon in budgets:
        first = clip.noisy(all_steps + clip.steps(secret), epsilon=epsilon / 2, bits=source) / size
        last = clip.noisy(np.full(trials, all_steps), epsilon=epsilon / 2, bits=source) / (size - 1)
        found.append(tried(f"epsilon {float(epsilon):g}", first, last, epsilon))
    return compared(found, bound=lambda at: posterior(at, chance))


def _difference(
    before: Any,
    after: Any,
    *,
    truth: Any = None,
    tolerance: float = 0.5,
    noise: float | None = None,
    baseline: float = 0.0,
    bound: float | None = None,
) -> Inference:
    """Infers the number of one person from a release with this person and one without.

    An average counts as often as it has people: the number is n1 m1 - n2 m2. Totals and counts are subtracted.

    Args:
        before: with the person: a total, or a pair (people, average); averages may be an array of trials.
        after: without the person, in the same form.
        truth: the person's number, to keep score; one for each trial if there are several.
        tolerance: how near counts as right.
        noise: the standard deviation of what is inferred, if the releases are noisy.
        baseline: how often a guess is right.
        bound: what a guarantee allows.

    Raises:
        InvalidParameter: if a release is neither a number nor such a pair.

    Ten people earn 50,000 on average. One leaves, and the other nine earn 48,000:

    >>> difference((10, 50_000), (9, 48_000)).recovered
    68000
    """
    found = _total("before", before) - _total("after", after)
    if isinstance(found, Fraction) and found.denominator == 1:
        found = int(found)
    reach = float(check.not_negative(tolerance=tolerance))
    return inferred(_ATTACK, found, truth=truth, tolerance=reach, noise=noise, baseline=baseline, bound=bound)


def _total(name: str, release: Any) -> Any:
    """Exactly for numbers; in floats for arrays of trials."""
    if isinstance(release, tuple):
        if len(release) != 2:
            raise InvalidParameter(name, release, "to be a pair (people, average)", f"Pass e.g. {name}=(10, 50_000).")
        people = check.integer(**{name: release[0]}, at_least=1)
        return people * _total(name, release[1])
    if np.ndim(release):
        return np.asarray(release, dtype=np.float64)
    return check.rational(**{name: release})


def _predicted(tolerance: float, scale: float, chance: float) -> float:
    """Of sensible guesses after two Laplace draws."""
    return 1 - (1 - near_twice(tolerance, scale)) * (1 - chance)


def _withheld(before: Any, after: Any, size: int, smallest: int) -> tuple[Any, Any]:
    """Averages of too few people are NaN."""
    check.integer(smallest=smallest, at_least=1)
    return before if size >= smallest else before * np.nan, after if size > smallest else after * np.nan


def _numbers(values: Any) -> Any:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise InvalidParameter("others", found.shape, "to be a list of numbers", "Pass those of everybody who stays.")
    return found


difference = beside(_compare)(_difference)
