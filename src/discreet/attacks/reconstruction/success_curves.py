"""Reconstruction against its prediction: by noise and number of queries, and by the strength of a guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import check
from discreet.attacks.attack import right_guess_gaussian
from discreet.attacks.reconstruction import solvers
from discreet.attacks.reconstruction.linear_reconstruction import repeated
from discreet.attacks.reconstruction.subset_counts import GaussianPrivate, Noisy, random_subsets
from discreet.noise import Bits, source_of
from discreet.noise.experiment import coins
from discreet.report import comparison_charts
from discreet.report.charts import Spec
from discreet.report.display import rate
from discreet.report.finding import sampled
from discreet.report.render import chart

Points = tuple[tuple[float, comparison_charts.Rate], ...]
Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Measured rates over the curves that theory draws.

    Attributes:
        found: by series, pairs of a place and the rate there with its interval.
        expected: by series, pairs of a place and the rate that is predicted, or allowed.
        headline: what the chart shows.
        across: the horizontal axis, with its unit.
        title: what the rate is a share of.
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
    """
    source, size = source_of(bits), check.integer(people=people, at_least=2)
    secret = coins(size, bits=source)
    places = np.geomspace(min(noises), max(noises), 40)
    found: dict[str, Points] = {}
    expected: dict[str, Line] = {}
    for share in per_person:
        queries, name = random_subsets(share * size, size, bits=source), f"{share * size:,} queries"
        each = [Noisy(sd=noise * math.sqrt(size)) for noise in noises]
        hits = [repeated(answerer, secret, queries, runs=runs, bits=source) for answerer in each]
        found[name] = tuple((noise, sampled(hit.success, hit.targets)) for noise, hit in zip(noises, hits, strict=True))
        expected[name] = tuple(
            (float(noise), solvers.predicted(share * size, size, noise * math.sqrt(size))) for noise in places
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
    """Measures what least squares rebuilds from answers under mu-Gaussian DP, below what anybody could.

    For m random subsets, noise of sqrt(m) / mu gives least squares Phi(mu sqrt(1 - n / m) / 4), hence at most
    Phi(mu / 4) however many queries there are; noise for the subsets that were asked has mu sqrt(2) in its place.
    Nobody guesses more than Phi(mu / 2) of evenly spread bits.
    """
    source, size = source_of(bits), check.integer(people=people, at_least=2)
    secret, queries = coins(size, bits=source), random_subsets(per_person * size, size, bits=source)
    places = [float(mu) for mu in np.geomspace(min(mus), max(mus), 40)]
    hits = [repeated(GaussianPrivate(mu=mu, blind=True), secret, queries, runs=runs, bits=source) for mu in mus]
    at = sorted(mus)[len(mus) // 2]
    return Curves(
        found={
            "least squares": tuple((mu, sampled(hit.success, hit.targets)) for mu, hit in zip(mus, hits, strict=True))
        },
        expected={
            "least squares": tuple((mu, solvers.phi(mu * math.sqrt(1 - 1 / per_person) / 4)) for mu in places),
            "least squares, many queries": tuple((mu, solvers.phi(mu / 4)) for mu in places),
            "most that anybody can guess": tuple((mu, right_guess_gaussian(mu)) for mu in places),
        },
        headline=f"A guarantee for all answers together ends reconstruction: at mu {at:.2g} nobody gets more than "
        f"{rate(right_guess_gaussian(at))}",
        across="mu of all answers together (log scale)",
    )
