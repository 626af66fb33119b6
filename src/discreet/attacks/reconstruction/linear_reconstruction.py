"""Secrets from subset counts: too many answers that are too exact give every bit away (Dinur, Nissim 2003).

Curves show reconstruction against its prediction: by noise and number of queries, and by the strength of a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside, compare_trials, right_guess_gaussian
from discreet.attacks.reconstruction import solvers
from discreet.attacks.reconstruction.subset_counts import (
    Answerer,
    CuratorAnswerer,
    ExactAnswerer,
    GaussianAnswerer,
    NoisyAnswerer,
    PrivateAnswerer,
    RoundingAnswerer,
    SuppressingAnswerer,
    matrix,
    random_subsets,
    secret_bits,
)
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.lazy import linalg
from discreet.noise import Bits, source_of
from discreet.noise.experiment import coins
from discreet.report import comparison_charts
from discreet.report.attack_finding import Comparison, Finding, Trial, wilson_interval
from discreet.report.charts import Spec
from discreet.report.display import rate
from discreet.report.render import chart

Method = Literal["least_squares", "linear_program", "exhaustive", "hadamard"]
METHODS: tuple[Method, ...] = ("least_squares", "linear_program", "exhaustive", "hadamard")
Floats = NDArray[np.float64]

_DELTA = 1e-6


@dataclass(frozen=True, kw_only=True)
class Reconstruction(Finding):
    """Reports the bits that were rebuilt from answers.

    Attributes:
        method: the way back.
        queries: how many answers were used.
        measured: whether `success` was measured against the truth; else it is what is expected of these answers.
        certain: the share of bits that must be right because no error exceeds alpha; None where no theorem says so.
        residual: the root of the mean squared difference between the answers and those of the rebuilt bits.
    """

    method: Method
    queries: int
    measured: bool
    certain: float | None
    residual: float

    def details(self) -> tuple[str, ...]:
        """Returns how it was done, and what is sure."""
        known = [f"{self.queries:,} answers, by {self.method.replace('_', ' ')}."]
        if not self.measured:
            known.append("The rate is expected, not measured: the truth was not given.")
        if self.certain is not None:
            known.append(f"At least {rate(self.certain)} are right if no error exceeds alpha.")
        return tuple(known)


def _compare(
    secret: Any,
    *,
    epsilons: Sequence[check.Number] = ("0.1", 1, 10),
    delta: check.Number = _DELTA,
    queries: Any = None,
    method: Method = "least_squares",
    defences: Sequence[Answerer] | None = None,
    curator: bool = False,
    runs: int | None = None,
    bits: Bits | None = None,
) -> Comparison:
    """Compares the attack on exact counts, on ad-hoc defences and on private counts of the same subsets.

    The bound is about one person's bit, when all others are known, and for the law of the noise that was used: normal
    noise with parameter mu allows Phi(mu / 2) right guesses where bits are even. Least squares reaches about
    Phi(mu / (2 sqrt(2))) when noise is fitted to random subsets, and Phi(mu / 4) when fitted to their number alone.

    Args:
        secret: a bit for each person.
        epsilons: each for all answers together, when one bit is replaced.
        delta: likewise; 0 for pure privacy.
        queries: the subsets that are asked about; None for 4 n random ones, or Sylvester's Hadamard matrix.
        method: the way back.
        defences: ad-hoc ones; None for rounding to 5, withholding counts below 10, and noise of sqrt(n) / 4.
        curator: whether private answers come from SQL to a curator instead of one mechanism.
        runs: how often random answerers are asked, for the average; 10, or 1 of a curator. Epsilon is that of one run.
        bits: the source of randomness.
    """
    source, hidden, often = source_of(bits), secret_bits(secret), (1 if curator else 10) if runs is None else runs
    people = len(hidden)
    check.integer(runs=often, at_least=1)
    asked = _usual(people, method, source) if queries is None else matrix(queries)
    usual = [
        RoundingAnswerer(to=5),
        NoisyAnswerer(sd=people**0.5 / 4),
        *([] if method == "hadamard" else [SuppressingAnswerer(below=10)]),
    ]
    private = [
        CuratorAnswerer(total=each, delta=delta) if curator else PrivateAnswerer(total=each, delta=delta)
        for each in epsilons
    ]
    answerers = [ExactAnswerer(), *(usual if defences is None else defences), *private]
    inverse = solvers.normal_inverse(asked.astype(np.float64)) if method == "least_squares" else None
    trials = [
        Trial(
            defence=answerer.name,
            epsilon=answerer.epsilon,
            finding=repeat_attack(answerer, hidden, asked, method=method, runs=often, bits=source, inverse=inverse),
        )
        for answerer in answerers
    ]
    law = CuratorAnswerer if curator else PrivateAnswerer
    return compare_trials(
        trials, bound=lambda at: law(total=at, delta=delta).guess_bound(asked, prior=_commoner(hidden)) or 1.0
    )


def repeat_attack(
    answerer: Answerer,
    secret: Any,
    queries: Any,
    *,
    method: Method = "least_squares",
    runs: int,
    bits: Bits,
    inverse: Floats | None = None,
) -> Reconstruction:
    """Returns the attack on an answerer that is asked several times, with the average rate."""
    right, asked = secret_bits(secret), matrix(queries).astype(np.float64)
    shared = inverse if inverse is not None or method != "least_squares" else solvers.normal_inverse(asked)
    noise, bound = answerer.noise(asked), answerer.guess_bound(asked, prior=_commoner(right))
    given = [answerer.answer(right, asked, bits=bits) for _ in range(runs if answerer.varies else 1)]
    found = [
        _attack(asked, answers, method=method, truth=right, noise=noise, bound=bound, inverse=shared)
        for answers in given
    ]
    rate_of_all = float(np.mean([each.success for each in found]))
    return replace(found[0], success=rate_of_all, targets=found[0].targets * len(found))


def _reconstruct(
    queries: Any,
    answers: Any,
    *,
    method: Method = "least_squares",
    truth: Any = None,
    noise: float | None = None,
    alpha: float | None = None,
    bound: float | None = None,
) -> Reconstruction:
    """Rebuilds a secret bit of each person from answers about subsets.

    Least squares is the default; a linear program tolerates a few arbitrarily wrong answers; with at most 20 people all
    databases can be tried; n orthogonal queries of +1 and -1 are inverted at once ("hadamard").

    Args:
        queries: a row of weights for each query, with a column for each person; None for Sylvester's Hadamard matrix.
        answers: one for each query; NaN for one that was withheld.
        method: the way back.
        truth: the secret, to keep score; without it, success is what is expected of answers like these.
        noise: the standard deviation of the answers' errors, for the prediction; None estimates it if possible.
        alpha: the largest error of any answer, where it is known: any secret that keeps to it is taken.
        bound: what a guarantee allows.

    Raises:
        InvalidParameter: if shapes do not fit, or no secret keeps all errors within alpha.

    >>> found = reconstruct([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]], [2, 1, 1, 2], truth=[1, 1, 0])
    >>> found.recovered.tolist(), found.success
    ([1, 1, 0], 1.0)
    """
    known = _answers(answers)
    asked = _check_queries(queries, known, method)
    right = None if truth is None else _truth(truth, len(known) if asked is None else asked.shape[1])
    return _attack(asked, known, method=method, truth=right, noise=noise, alpha=alpha, bound=bound)


def _attack(
    asked: Floats | None,
    answers: Floats,
    *,
    method: Method,
    truth: NDArray[np.int64] | None,
    noise: float | None,
    alpha: float | None = None,
    bound: float | None = None,
    inverse: Floats | None = None,
) -> Reconstruction:
    people = len(answers) if asked is None else asked.shape[1]
    if asked is not None and np.isnan(answers).any():
        given = ~np.isnan(answers)
        asked, answers, inverse = asked[given], answers[given], None
    solution = _solution(asked, answers, method, noise=noise, alpha=alpha, inverse=inverse)
    expected, bits = solution.expected, solution.bits
    return Reconstruction(
        attack="Reconstruction",
        goal="bits rebuilt" if truth is not None else "bits expected to be rebuilt",
        success=float(np.mean(bits == truth)) if truth is not None else 0.5 if expected is None else expected,
        baseline=0.5 if truth is None else _commoner(truth),
        targets=people,
        predicted=None if method == "exhaustive" else expected,
        bound=bound,
        recovered=bits,
        method=method,
        queries=len(answers),
        measured=truth is not None,
        certain=solution.certain,
        residual=_residual(asked, answers, bits),
    )


def _usual(people: int, method: Method, bits: Bits) -> NDArray[np.int64]:
    if method != "hadamard":
        return random_subsets(4 * people, people, bits=bits)
    if people & (people - 1):
        raise InvalidParameter("secret", people, "to be 2^k bits", Hint('Pass {method:"least_squares"}.'))
    return np.asarray(linalg.hadamard(people), dtype=np.int64)


def _solution(
    asked: Floats | None,
    answers: Floats,
    method: Method,
    *,
    noise: float | None,
    alpha: float | None,
    inverse: Floats | None,
) -> solvers.ReconstructedBits:
    if method == "hadamard" or asked is None:
        return solvers.hadamard(asked, answers, alpha=alpha, noise=noise)
    if not len(answers):  # all were withheld
        return solvers.ReconstructedBits(bits=np.zeros(asked.shape[1], dtype=np.int8), expected=None)
    if method == "exhaustive":
        return solvers.exhaustive(asked, answers, alpha=alpha, noise=noise)
    if method == "linear_program":
        return solvers.linear_program(asked, answers, alpha=alpha, noise=noise)
    return solvers.least_squares(asked, answers, noise=noise, inverse=inverse)


def _answers(answers: Any) -> Floats:
    found = np.asarray(answers, dtype=np.float64)
    if found.ndim != 1 or not found.size or np.isinf(found).any():
        raise InvalidParameter("answers", found.shape, "to be a list of numbers", "Pass NaN for one that was withheld.")
    return found


def _check_queries(queries: Any, answers: Floats, method: Method) -> Floats | None:
    if method not in METHODS:
        raise InvalidParameter("method", method, f"to be one of {', '.join(METHODS)}")
    if queries is None and method != "hadamard":
        raise InvalidParameter("queries", None, "to be a matrix", "Pass the subsets that were asked about.")
    found = None if queries is None else matrix(queries).astype(np.float64)
    if found is not None and len(found) != len(answers):
        raise InvalidParameter("answers", len(answers), f"to be as many as the {len(found):,} queries")
    if method == "hadamard":
        _orthogonal(found, answers)
    return found


def _orthogonal(queries: Floats | None, answers: Floats) -> None:
    size = len(answers)
    if np.isnan(answers).any() or (queries is None and size & (size - 1)):
        raise InvalidParameter("answers", size, "to be complete, 2^k of them", Hint('Pass {method:"least_squares"}.'))
    if queries is not None and not (
        queries.shape == (size, size) and np.array_equal(queries.T @ queries, size * np.eye(size))
    ):
        hint = "Pass scipy.linalg.hadamard(n), or use another method."
        raise InvalidParameter("queries", queries.shape, "to be a Hadamard matrix: square, rows orthogonal", hint)


def _truth(truth: Any, people: int) -> NDArray[np.int64]:
    found = secret_bits(truth, name="truth")
    if len(found) != people:
        raise InvalidParameter("truth", len(found), f"to have a bit for each of {people:,} people")
    return found


def _commoner(secret: NDArray[np.int64]) -> float:
    """Returns the share of the commoner value: what a guess reaches that knows it."""
    ones = float(np.mean(secret))
    return max(ones, 1 - ones)


def _residual(asked: Floats | None, answers: Floats, found: NDArray[np.int8]) -> float:
    if not len(answers):
        return 0.0
    again = solvers.hadamard_transform(found.astype(np.float64)) if asked is None else asked @ found
    return float(np.sqrt(np.mean((answers - again) ** 2)))


reconstruct = beside(_compare)(_reconstruct)


Points = tuple[tuple[float, comparison_charts.Rate], ...]
Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Shows measured rates over the curves that theory predicts.

    Attributes:
        found: by series, pairs of a place and the rate there with its interval.
        expected: by series, pairs of a place and the rate that is predicted, or allowed.
        headline: what the chart shows.
        across: the horizontal axis, with its unit.
        title: what the rate is a share of.

    >>> from discreet.noise import SeededBits
    >>> curves = reconstruction_by_noise(32, per_person=(4,), noises=(0.25, 1), runs=4, bits=SeededBits(1))
    >>> [(noise, round(share, 2)) for noise, (share, low, high) in curves.found["128 queries"]]
    [(0.25, 0.95), (1, 0.7)]
    >>> [round(curves.expected["128 queries"][end][1], 2) for end in (0, -1)]  # what theory says of the same two
    [0.96, 0.67]
    """

    found: dict[str, Points]
    expected: dict[str, Line]
    headline: str
    across: str
    title: str = "bits rebuilt"

    def spec(self) -> Spec:
        """Returns the chart as a dictionary of Vega-Lite."""
        return comparison_charts.curves(
            self.found,
            self.expected,
            headline=self.headline,
            across=self.across,
            title=self.title,
            lines={"chance": 0.5},
            logarithmic=True,
        )

    def chart(self) -> Any:
        """Returns an Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())


def reconstruction_by_noise(
    people: int = 128,
    *,
    per_person: Sequence[int] = (2, 4, 10),
    noises: Sequence[float] = (0.125, 0.25, 0.5, 1, 2),
    runs: int = 10,
    bits: Bits | None = None,
) -> Curves:
    """Measures what least squares rebuilds as noise and queries grow, over Phi(sqrt(m - n) / (4 s)).

    Args:
        people: n, each with a random bit.
        per_person: m / n, how many random subsets are asked about for each person; a series for each.
        noises: standard deviations, in units of sqrt(n).
        runs: for the average; each with fresh noise.
        bits: the source of randomness.

    >>> from discreet.noise import SeededBits
    >>> curves = reconstruction_by_noise(32, per_person=(2, 8), noises=(0.5,), runs=4, bits=SeededBits(1))
    >>> {asked: round(share, 2) for asked, [(noise, (share, low, high))] in curves.found.items()}
    {'64 queries': 0.75, '256 queries': 0.84}
    """
    source, size = source_of(bits), check.integer(people=people, at_least=2)
    secret = coins(size, bits=source)
    places = np.geomspace(min(noises), max(noises), 40)
    found: dict[str, Points] = {}
    expected: dict[str, Line] = {}
    for share in per_person:
        queries, name = random_subsets(share * size, size, bits=source), f"{share * size:,} queries"
        each = [NoisyAnswerer(sd=noise * math.sqrt(size)) for noise in noises]
        hits = [repeat_attack(answerer, secret, queries, runs=runs, bits=source) for answerer in each]
        found[name] = tuple(
            (noise, wilson_interval(hit.success, hit.targets)) for noise, hit in zip(noises, hits, strict=True)
        )
        expected[name] = tuple(
            (float(noise), solvers.predicted_share(share * size, size, noise * math.sqrt(size))) for noise in places
        )
    return Curves(
        found=found,
        expected=expected,
        headline=f"More queries undo more noise: {size:,} secret bits rebuilt from random subset counts",
        across="standard deviation of the noise, in units of the square root of the number of people (log scale)",
    )


def reconstruction_by_guarantee(
    people: int = 128,
    *,
    per_person: int = 10,
    mus: Sequence[float] = (0.25, 0.5, 1, 2, 4),
    runs: int = 10,
    bits: Bits | None = None,
) -> Curves:
    """Measures what least squares rebuilds from answers under mu-Gaussian DP, below the bound for every attack.

    For m random subsets, noise of sqrt(m) / mu gives least squares Phi(mu sqrt(1 - n / m) / 4), hence at most
    Phi(mu / 4) however many queries there are; noise for the subsets that were asked has mu sqrt(2) in its place.
    No attack guesses more than Phi(mu / 2) of evenly spread bits.

    Args:
        people: n, each with a random bit.
        per_person: m / n, how many random subsets are asked about for each person.
        mus: of all answers together.
        runs: for the average; each with fresh noise.
        bits: the source of randomness.

    >>> from discreet.noise import SeededBits
    >>> curves = reconstruction_by_guarantee(32, per_person=4, mus=(0.5, 2), runs=8, bits=SeededBits(1))
    >>> [(mu, round(share, 2)) for mu, (share, low, high) in curves.found["least squares"]]
    [(0.5, 0.6), (2, 0.69)]
    >>> [round(curves.expected["most that any attack can guess"][end][1], 2) for end in (0, -1)]
    [0.6, 0.84]
    """
    source, size = source_of(bits), check.integer(people=people, at_least=2)
    secret, queries = coins(size, bits=source), random_subsets(per_person * size, size, bits=source)
    places = [float(mu) for mu in np.geomspace(min(mus), max(mus), 40)]
    hits = [repeat_attack(GaussianAnswerer(mu=mu, blind=True), secret, queries, runs=runs, bits=source) for mu in mus]
    at = sorted(mus)[len(mus) // 2]
    return Curves(
        found={
            "least squares": tuple(
                (mu, wilson_interval(hit.success, hit.targets)) for mu, hit in zip(mus, hits, strict=True)
            )
        },
        expected={
            "least squares": tuple((mu, solvers.phi(mu * math.sqrt(1 - 1 / per_person) / 4)) for mu in places),
            "least squares, many queries": tuple((mu, solvers.phi(mu / 4)) for mu in places),
            "most that any attack can guess": tuple((mu, right_guess_gaussian(mu)) for mu in places),
        },
        headline=f"A guarantee for all answers together ends reconstruction: at mu {at:.2g} no attack gets more than "
        f"{rate(right_guess_gaussian(at))}",
        across="mu of all answers together (log scale)",
    )
