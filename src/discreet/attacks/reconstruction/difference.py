"""A person's number from two releases, with this person and without: totals and averages, or a regression's weights."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside, compare_trials, posterior
from discreet.attacks.reconstruction.attribute_inference import (
    ClippedValues,
    Inference,
    by_chance,
    evenly,
    make_inference,
    near_twice,
    sensible,
    span,
)
from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.noise import Bits, source_of
from discreet.report.attack_finding import RAW, Comparison, Trial

Floats = NDArray[np.float64]

_DIFFERENCING = "Differencing"
_REGRESSION = "Regression with and without"
_FEATURES = Grid(-10)  # on which features of private regressions lie


def _compare_totals(
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
    """Compares averages before and after one person leaves: exact, rounded, withheld if small, clipped, private.

    In every trial the one who leaves has a number of its own, spread evenly over `prior`. A private release clips
    values to the bounds, adds exact Laplace noise to their sum, and divides by the number of people, which is public.
    Those who stay are in both averages, so that each average has half of epsilon, and epsilon is for all that is
    released about a person, when one number is *replaced*.

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
    clip = ClippedValues(bounds=ends)
    low, high = float(ends[0]), float(ends[1])
    stay, leave = np.clip(values, low, high), np.clip(secret, low, high)

    def try_defence(name: str, first: Any, last: Any, epsilon: Fraction | None = None) -> Trial:
        finding = make_inference(
            _DIFFERENCING,
            sensible(size * first - (size - 1) * last, wide, reach),
            truth=secret,
            tolerance=reach,
            noise=None,
            predicted=None
            if epsilon is None or wide != ends
            else _predicted_rate(reach, clip.scale(epsilon / 2), chance),
            baseline=chance,
            bound=None if epsilon is None else posterior(float(epsilon), chance),
        )
        return Trial(defence=name, epsilon=None if epsilon is None else float(epsilon), finding=finding)

    found = [
        try_defence(RAW, before, after),
        try_defence(f"rounded to {step:g}", np.round(before / step) * step, np.round(after / step) * step),
        try_defence(f"fewer than {smallest} withheld", *_withhold_small(before, after, size, smallest)),
        try_defence("clipped", (stay.sum() + leave) / size, np.full(trials, stay.mean())),
    ]
    all_steps = int(clip.steps(values).sum())
    for epsilon in budgets:
        first = clip.noisy(all_steps + clip.steps(secret), epsilon=epsilon / 2, bits=source) / size
        last = clip.noisy(np.full(trials, all_steps), epsilon=epsilon / 2, bits=source) / (size - 1)
        found.append(try_defence(f"epsilon {float(epsilon):g}", first, last, epsilon))
    return compare_trials(found, bound=lambda at: posterior(at, chance))


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
    return make_inference(
        _DIFFERENCING, found, truth=truth, tolerance=reach, noise=noise, baseline=baseline, bound=bound
    )


def _total(name: str, release: Any) -> Any:
    """Returns the total, exact for numbers and in floats for arrays of trials."""
    if isinstance(release, tuple):
        if len(release) != 2:
            raise InvalidParameter(name, release, "to be a pair (people, average)", f"Pass e.g. {name}=(10, 50_000).")
        people = check.integer(**{name: release[0]}, at_least=1)
        return people * _total(name, release[1])
    if np.ndim(release):
        return np.asarray(release, dtype=np.float64)
    return check.rational(**{name: release})


def _predicted_rate(tolerance: float, scale: float, chance: float) -> float:
    """Returns the expected rate of sensible guesses after two Laplace draws."""
    return 1 - (1 - near_twice(tolerance, scale)) * (1 - chance)


def _withhold_small(before: Any, after: Any, size: int, smallest: int) -> tuple[Any, Any]:
    """Replaces averages of too few people by NaN."""
    check.integer(smallest=smallest, at_least=1)
    return before if size >= smallest else before * np.nan, after if size > smallest else after * np.nan


def _numbers(values: Any) -> Any:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise InvalidParameter("others", found.shape, "to be a list of numbers", "Pass the numbers of all who stay.")
    return found


difference = beside(_compare_totals)(_difference)


def _compare_weights(
    features: Any,
    outcomes: Any,
    *,
    person: int,
    bounds: tuple[check.Number, check.Number],
    prior: tuple[check.Number, check.Number] | None = None,
    tolerance: float | None = None,
    epsilons: Sequence[check.Number] = ("0.1", 1, 10),
    digits: int = 2,
    trials: int = 1000,
    bits: Bits | None = None,
) -> Comparison:
    """Compares weights before and after one person leaves: exact, rounded, of clipped outcomes, private.

    In every trial the person's outcome is spread evenly over `prior`; features are public. Private weights come from
    X'y of clipped outcomes with exact Laplace noise. Those who stay are in both regressions, so that each has half of
    epsilon, and epsilon is for all that is released about a person, when one outcome is *replaced*: X'y moves by at
    most the largest L1 norm of a row times the width of the bounds.

    The bound: a window that holds a share b of the prior holds at most b e^epsilon / (1 - b + b e^epsilon) of what is
    known after the release.

    Args:
        features: a row for each person, public; with a column of ones for an intercept.
        outcomes: one for each person; that of `person` is not used.
        person: the row of the one who leaves.
        bounds: public, to which private regressions clip outcomes.
        prior: where the outcome may lie; wider than the bounds for an outlier. None for the bounds.
        tolerance: how near counts as right; None for a hundredth of the prior's width.
        epsilons: each for both regressions together.
        digits: of rounded weights, after the point.
        trials: for each release.
        bits: the source of randomness.
    """
    source, rows = source_of(bits), _rows(features)
    known = np.asarray(outcomes, dtype=np.float64)
    if known.shape != (len(rows),):
        raise InvalidParameter("outcomes", known.shape, f"to be one number for each of {len(rows):,} people")
    row = _place(person, rows)
    ends = span("bounds", bounds)
    wide = ends if prior is None else span("prior", prior)
    reach = float(wide[1] - wide[0]) / 100 if tolerance is None else float(check.positive(tolerance=tolerance))
    budgets = sorted(check.positive(epsilon=each) for each in epsilons)
    secret, chance = evenly(wide, check.integer(trials=trials, at_least=1), bits=source), by_chance(wide, reach)
    clip, steps = ClippedValues(bounds=ends), np.asarray(_FEATURES.steps(rows))
    largest = int(np.abs(steps).sum(axis=1).max())
    everybody = np.tile(known[:, None], trials)
    everybody[row] = secret
    with_one, without = np.ones(len(rows), dtype=bool), np.arange(len(rows)) != row

    def try_defence(name: str, before: Floats, after: Floats, epsilon: Fraction | None = None) -> Trial:
        finding = make_inference(
            _REGRESSION,
            sensible(_outcome(before, after, rows, row), wide, reach),
            truth=secret,
            tolerance=reach,
            noise=None,
            baseline=chance,
            bound=None if epsilon is None else posterior(float(epsilon), chance),
        )
        return Trial(defence=name, epsilon=None if epsilon is None else float(epsilon), finding=finding)

    def noisy(kept: NDArray[np.bool_], epsilon: Fraction) -> Floats:
        moments = steps[kept].T @ clip.steps(everybody[kept])
        released = clip.noisy(moments, epsilon=epsilon / 2, reach=largest, bits=source) * float(_FEATURES.step)
        return _solve_weights(rows[kept], released)

    def fit_weights(values: Floats, kept: NDArray[np.bool_]) -> Floats:
        return _solve_weights(rows[kept], rows[kept].T @ values[kept])

    before, after = fit_weights(everybody, with_one), fit_weights(everybody, without)
    inside = np.clip(everybody, float(ends[0]), float(ends[1]))
    found = [
        try_defence(RAW, before, after),
        try_defence(f"rounded to {digits} digits", np.round(before, digits), np.round(after, digits)),
        try_defence("clipped", fit_weights(inside, with_one), fit_weights(inside, without)),
        *(
            try_defence(f"epsilon {float(each):g}", noisy(with_one, each), noisy(without, each), each)
            for each in budgets
        ),
    ]
    return compare_trials(found, bound=lambda at: posterior(at, chance))


def _leverage(
    before: Any,
    after: Any,
    *,
    features: Any,
    person: int,
    truth: Any = None,
    tolerance: float = 0.5,
    noise: float | None = None,
    baseline: float = 0.0,
    bound: float | None = None,
) -> Inference:
    """Infers a person's outcome from the weights of a least-squares regression with this person, and without.

    With x the person's features and h = x' (X'X)^-1 x their leverage, adding the person moves the prediction at x by h
    (y - x'w): hence y = x'w + (x'v - x'w) / h, with w the weights without and v those with the person. Only features
    are needed, not the others' outcomes.

    Args:
        before: weights with the person.
        after: weights without the person.
        features: a row for each person before, public; with a column of ones for an intercept.
        person: the row of the one who left.
        truth: the person's outcome, to keep score.
        tolerance: how near counts as right.
        noise: the standard deviation of what is inferred, if the weights are noisy.
        baseline: how often a guess is right.
        bound: what a guarantee allows.

    Raises:
        InvalidParameter: if shapes do not fit, or features are not independent.

    Three outcomes lie on a line, and a fourth, at 5, bends it:

    >>> features = [[1, 0], [1, 1], [1, 2], [1, 5]]
    >>> round(leverage([39 / 14, -1 / 7], [1, 2], features=features, person=3).recovered, 6)
    1.0
    """
    rows = _rows(features)
    place = _place(person, rows)
    pair = [np.asarray(weights, dtype=np.float64) for weights in (before, after)]
    if any(weights.shape != (rows.shape[1],) for weights in pair):
        raise InvalidParameter("before", pair[0].shape, f"to be {rows.shape[1]} weights, and after likewise")
    found = float(_outcome(pair[0], pair[1], rows, place))
    reach = float(check.not_negative(tolerance=tolerance))
    return make_inference(_REGRESSION, found, truth=truth, tolerance=reach, noise=noise, baseline=baseline, bound=bound)


def _outcome(before: Floats, after: Floats, rows: Floats, person: int) -> Floats:
    one = rows[person]
    share = float(one @ np.linalg.solve(rows.T @ rows, one))
    return np.asarray(one @ after + (one @ before - one @ after) / share)


def _solve_weights(rows: Floats, moments: Floats) -> Floats:
    return np.asarray(np.linalg.solve(rows.T @ rows, moments))


def _rows(features: Any) -> Floats:
    found = np.asarray(features, dtype=np.float64)
    if found.ndim != 2 or not np.isfinite(found).all() or np.linalg.matrix_rank(found) < found.shape[-1]:
        hint = "Leave out columns that follow from others."
        raise InvalidParameter("features", found.shape, "to be a matrix of numbers with independent columns", hint)
    return found


def _place(person: int, rows: Floats) -> int:
    """Returns a row that is not needed for full column rank, and is not empty."""
    place = check.integer(person=person, at_least=0, at_most=len(rows) - 1)
    if not rows[place].any() or np.linalg.matrix_rank(np.delete(rows, place, axis=0)) < rows.shape[1]:
        condition = "to have features, and to leave enough people for a regression"
        raise InvalidParameter("person", person, condition, "Choose another row.")
    return place


leverage = beside(_compare_weights)(_leverage)
