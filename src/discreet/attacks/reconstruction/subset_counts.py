"""Subset counts about secret bits: queries to ask, and answers: exact, with ad-hoc defences, or private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import right_guess, right_guess_gaussian
from discreet.attacks.reconstruction.answerer import Answerer, Asked, Guaranteed, Whole, laplace_spread, norms
from discreet.exact import root_above
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits
from discreet.noise.experiment import coins, normals, uniforms

__all__ = [
    "Answerer",
    "Asked",
    "Bounded",
    "Exact",
    "GaussianPrivate",
    "Noisy",
    "Private",
    "Rounded",
    "Suppressed",
    "all_subsets",
    "random_subsets",
]


def random_subsets(count: int, people: int, *, bits: Bits | None = None) -> Whole:
    """Returns queries about subsets in which each person is with probability one half."""
    size = (check.integer(count=count, at_least=1), check.integer(people=people, at_least=1))
    return coins(size, bits=bits).astype(np.int64)


def all_subsets(people: int) -> Whole:
    """Returns queries about all 2^n subsets.

    >>> all_subsets(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    size = check.integer(people=people, at_least=1, at_most=16)
    return np.asarray(np.arange(1 << size)[:, None] >> np.arange(size) & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact(Answerer):
    """Tells the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded(Answerer):
    """Rounds every count to the nearest multiple of `to`."""

    to: int

    def __post_init__(self) -> None:
        check.integer(to=self.to, at_least=1)

    @property
    def name(self) -> str:
        """Returns the defence, for people."""
        return f"rounded to {self.to:,}"

    def _answers(self, secret: Whole, queries: Whole, _bits: Bits, /) -> NDArray[Any]:
        return np.asarray(np.round(queries @ secret / self.to) * self.to)

    def _noise(self, _queries: Whole, /) -> float | None:
        return math.sqrt((self.to**2 - 1) / 12)  # of errors spread evenly over as many values


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy(Answerer):
    """Adds normal errors of standard deviation `sd`, drawn anew for every query: a defence that keeps no account."""

    sd: float
    varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.not_negative(sd=self.sd)

    @property
    def name(self) -> str:
        """Returns the defence, for people."""
        return f"noise of {self.sd:.3g}"

    def _answers(self, secret: Whole, queries: Whole, bits: Bits, /) -> NDArray[Any]:
        return np.asarray(queries @ secret + self.sd * normals(len(queries), bits=bits))

    def _noise(self, _queries: Whole, /) -> float | None:
        return self.sd


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded(Answerer):
    """Adds errors spread evenly between -`alpha` and `alpha`."""

    alpha: float
    varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.not_negative(alpha=self.alpha)

    @property
    def name(self) -> str:
        """Returns the defence, for people."""
        return f"errors up to {self.alpha:.3g}"

    def _answers(self, secret: Whole, queries: Whole, bits: Bits, /) -> NDArray[Any]:
        return np.asarray(queries @ secret + self.alpha * (2 * uniforms(len(queries), bits=bits) - 1))

    def _noise(self, _queries: Whole, /) -> float | None:
        return self.alpha / math.sqrt(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed(Answerer):
    """Withholds counts below `below`."""

    below: int

    def __post_init__(self) -> None:
        check.integer(below=self.below, at_least=1)

    @property
    def name(self) -> str:
        """Returns the defence, for people."""
        return f"below {self.below:,} withheld"

    def _answers(self, secret: Whole, queries: Whole, _bits: Bits, /) -> NDArray[Any]:
        exact = queries @ secret
        return np.where(exact < self.below, np.nan, exact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Private(Guaranteed):
    """Answers all queries together under one (epsilon, delta).

    Formal guarantee: with delta = 0, exact discrete Laplace noise for the largest L1 norm of a person's column of
    weights. With delta above 0, that or normal noise rounded to whole numbers for the largest L2 norm, by the exact
    profile (Balle, Wang 2018), whichever is smaller. The queries are chosen before the first answer.
    """

    @property
    def name(self) -> str:
        """Returns the defence, for people."""
        return f"epsilon {float(self.total):g}"

    def mechanism(self, queries: Any) -> Laplace | Gaussian:
        """Returns the law with the least noise for these queries."""
        first, second = norms(queries)
        laplace = Laplace(epsilon=self.total, sensitivity=first)
        if not check.not_negative(delta=self.delta):
            return laplace
        gaussian = Gaussian(epsilon=self.total, delta=self.delta, sensitivity=second, grid=1)
        return gaussian if gaussian.sigma < laplace_spread(laplace.event.scale) else laplace

    def _answers(self, secret: Whole, queries: Whole, bits: Bits, /) -> NDArray[Any]:
        return np.asarray(self.mechanism(queries).release(queries @ secret, bits=bits))

    def _noise(self, queries: Whole, /) -> float | None:
        law = self.mechanism(queries)
        return float(law.sigma) if isinstance(law, Gaussian) else laplace_spread(law.event.scale)

    def _bound(self, queries: Whole, prior: float, /) -> float | None:
        law = self.mechanism(queries)
        if isinstance(law, Gaussian):
            return right_guess_gaussian(float(law.sensitivity / law.sigma), prior=prior)
        return right_guess(float(self.total), prior=prior)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPrivate(Answerer):
    """Answers all queries together under mu-Gaussian DP, with normal noise rounded to whole numbers.

    Formal guarantee: mu-GDP when one person's bit is replaced (Dong, Roth, Su 2022), for the largest L2 norm of a
    person's column. One who does not look at the queries takes sqrt(m), as if somebody were in all m subsets: `blind`.
    """

    mu: check.Number
    blind: bool = False
    varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.positive(mu=self.mu)

    @property
    def name(self) -> str:
        """Returns the defence, for people."""
        return f"mu {float(self.mu):g}"

    def mechanism(self, queries: Any) -> Gaussian:
        """Returns normal noise of norm / mu."""
        norm = root_above(Fraction(len(queries))) if self.blind else norms(queries)[1]
        return Gaussian.with_multiplier(noise_multiplier=1 / check.positive(mu=self.mu), sensitivity=norm, grid=1)

    def _answers(self, secret: Whole, queries: Whole, bits: Bits, /) -> NDArray[Any]:
        return np.asarray(self.mechanism(queries).release(queries @ secret, bits=bits))

    def _noise(self, queries: Whole, /) -> float | None:
        return float(self.mechanism(queries).sigma)

    def _bound(self, _queries: Whole, prior: float, /) -> float | None:
        return right_guess_gaussian(float(self.mu), prior=prior)
