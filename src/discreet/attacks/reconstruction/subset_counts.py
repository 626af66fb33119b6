"""Subset counts about a secret bit of each person: queries to ask, and answers: exact, with defences, or private.

Queries are rows of weights, 0 and 1 or +1 and -1, with a column for each person. They are public: who is in which
subset is known, and only the bits are secret.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import right_guess, right_guess_gaussian
from discreet.curator import Curator
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import root_above
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits, source_of
from discreet.noise.experiment import coins, normals, uniforms
from discreet.privacy import Budget
from discreet.report.attack_finding import RAW

__all__ = [
    "Answerer",
    "BoundedNoiseAnswerer",
    "CuratorAnswerer",
    "ExactAnswerer",
    "GaussianAnswerer",
    "NoisyAnswerer",
    "PrivateAnswerer",
    "RoundingAnswerer",
]
__all__ += ["SuppressingAnswerer"]
__all__ += ["all_subsets", "random_subsets"]

_MOST_COUNTS = 300  # in one question of at most 5,000 words

Whole = NDArray[np.int64]
Answers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerer:
    """Answers subset counts, exactly unless a subclass protects them.

    Guarantees are about one person whose bit is *replaced*. That moves the answers as far as adding or removing a
    person who has a 1 does, by the weights of the person's column, so that noise for the one is noise for the other.

    Attributes:
        varies: whether asking again gives other answers.

    >>> from discreet.noise import SeededBits
    >>> queries = [[1, 1, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1]]  # who of four people is in each of three subsets
    >>> for answerer in (ExactAnswerer(), SuppressingAnswerer(below=2), PrivateAnswerer(total=1)):
    ...     print(
    ...         answerer.name, answerer.answer([1, 0, 1, 1], queries, bits=SeededBits(1)), answerer.guess_bound(queries)
    ...     )
    no defence [1. 3. 3.] None
    below 2 withheld [nan  3.  3.] None
    epsilon 1 [6. 2. 5.] 0.7310585786300049
    """

    varies: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Returns the defence, for people."""
        return RAW

    @property
    def epsilon(self) -> float | None:
        """Returns the epsilon of all answers together; None without a guarantee."""
        return None

    def answer(self, secret: Any, queries: Any, *, bits: Bits | None = None) -> Answers:
        """Returns one number for each query; NaN where an answer is withheld."""
        asked, hidden = matrix(queries), secret_bits(secret)
        if asked.shape[1] != len(hidden):
            people = f"a column for each of {len(hidden):,} people"
            raise InvalidParameter("queries", asked.shape, f"to have {people}", "Transpose them, or check the secret.")
        return np.asarray(self._answers(hidden, asked, source_of(bits)), dtype=np.float64)

    def noise(self, queries: Any) -> float | None:
        """Returns the standard deviation of an answer's error, if it is the same for all; None if it is not public."""
        return self._noise(matrix(queries))

    def guess_bound(self, queries: Any, *, prior: float = 0.5) -> float | None:
        """Returns the largest share of bits that any attack guesses correctly; None without a guarantee.

        Args:
            queries: all that are answered.
            prior: how often the commoner value is the right one; this is public.
        """
        return self._guess_bound(matrix(queries), prior)

    def _answers(self, secret: Whole, queries: Whole, _bits: Bits, /) -> NDArray[Any]:
        return queries @ secret

    def _noise(self, _queries: Whole, /) -> float | None:
        return 0.0

    def _guess_bound(self, _queries: Whole, _prior: float, /) -> float | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteedAnswerer(Answerer):
    """Answers all queries together under one guarantee.

    Attributes:
        total: epsilon of the whole set of queries, when one person's bit is replaced.
        delta: likewise.
    """

    total: check.Number
    delta: check.Number = 0
    varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.positive(epsilon=self.total)
        check.not_negative(delta=self.delta)

    @property
    def epsilon(self) -> float | None:
        """Returns the epsilon of all answers together."""
        return float(self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorAnswerer(GuaranteedAnswerer):
    """Asks a curator: one SELECT with a COUNT for each query, over a table whose other columns are public attributes.

    Attribute j of a person is 1 if they are in subset j, so that weights are 0 and 1. One charge covers all counts.

    Formal guarantee: (epsilon, delta)-DP when a person is added or removed. As the counts are of people who have a 1,
    replacing a person's 1 by 0 moves them as removing this person does, and what is released depends on the counts
    alone: the same holds when a bit is replaced.

    >>> from discreet.noise import SeededBits
    >>> CuratorAnswerer(total=1).answer([1, 0, 1, 1], [[1, 1, 0, 0], [1, 1, 1, 1]], bits=SeededBits(1)).tolist()
    [1.0, 5.0]
    """

    @property
    def name(self) -> str:
        """Returns the defence, for people."""
        return f"curator, epsilon {float(self.total):g}"

    def _answers(self, secret: Whole, queries: Whole, bits: Bits, /) -> NDArray[Any]:
        if queries.min() < 0:
            raise InvalidParameter("queries", "negative weights", "to be subsets", "A curator counts people.")
        if len(queries) > _MOST_COUNTS:
            hint = "One question can hold no more. Pass fewer queries."
            raise InvalidParameter("queries", f"{len(queries):,} rows", f"to be at most {_MOST_COUNTS}", hint)
        names = [f"a{place}" for place in range(len(queries))]
        counted = ", ".join(f"COUNT(*) FILTER (WHERE {name} = 1) AS q{name}" for name in names)
        curator = Curator(":memory:") if bits.private else Curator.for_tests(bits=bits)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "people.csv"
            table = np.column_stack([np.arange(len(secret)), secret, queries.T]).tolist()
            _write(path, [["person", "secret", *names], *table])
            curator.protect(
                str(path),
                name="people",
                unit="person",
                max_rows=1,
                budget=self._budget,
                types=dict.fromkeys(["person", "secret", *names], "int"),
                version="1",
            )
            (row,) = curator.ask(f"SELECT {counted} FROM people WHERE secret = 1", epsilon=self.total)  # noqa: S608 - names are ours
        return np.array([float(row[f"q{name}"]) for name in names])

    @property
    def _budget(self) -> Any:
        slack = check.not_negative(delta=self.delta)
        return Budget(epsilon=self.total, delta=slack) if slack else Budget(epsilon=self.total)

    def _noise(self, _queries: Whole, /) -> float | None:
        return None

    def _guess_bound(self, _queries: Whole, prior: float, /) -> float | None:
        return right_guess(float(self.total), prior=prior, delta=float(self.delta))


def matrix(queries: Any) -> Whole:
    """Returns queries as whole weights.

    Raises:
        InvalidParameter: if they are no matrix of -1, 0 and 1.
    """
    found = np.asarray(queries)
    whole = found if found.dtype.kind in "biu" else np.round(found)
    if found.ndim != 2 or not found.size or abs(whole).max() > 1 or not np.array_equal(whole, found):
        shape = "a matrix of 0 and 1, or of +1 and -1, with a row for each query and a column for each person"
        raise InvalidParameter("queries", found.shape, f"to be {shape}", "Use e.g. subset_counts.random_subsets.")
    return whole.astype(np.int64, copy=False)


def secret_bits(secret: Any, *, name: str = "secret") -> Whole:
    """Returns a bit for each person.

    Raises:
        InvalidParameter: if they are anything else.
    """
    found = np.asarray(secret)
    if found.ndim != 1 or not found.size or not np.isin(found, (0, 1)).all():
        raise InvalidParameter(name, found.shape, "to be a list of 0 and 1", "Pass one bit for each person.")
    return found.astype(np.int64)


def norms(queries: Any) -> tuple[int, Fraction]:
    """Returns the largest L1 norm of a person's column, and the largest L2 norm, rounded up.

    At least 1, as of one answer.
    """
    asked = matrix(queries)
    largest = max(1, int(np.abs(asked).sum(axis=0).max()))  # the same sum as of squares: weights are -1, 0 and 1
    return largest, root_above(Fraction(largest))


def laplace_spread(scale: Fraction) -> float:
    """Returns the standard deviation of discrete Laplace noise: 1 / (sqrt(2) sinh(1 / (2 scale)))."""
    return 1 / (math.sqrt(2) * math.sinh(float(1 / scale) / 2))


def _write(path: Path, rows: Iterable[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


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
class ExactAnswerer(Answerer):
    """Answers with the exact counts.

    >>> ExactAnswerer().answer([1, 0, 1, 1], [[1, 1, 0, 0], [1, 1, 1, 1]]).tolist()
    [1.0, 3.0]
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundingAnswerer(Answerer):
    """Rounds every count to the nearest multiple of `to`; one in the middle to an even multiple.

    >>> RoundingAnswerer(to=5).answer([1, 0, 1, 1], [[1, 1, 0, 0], [1, 1, 1, 1]]).tolist()
    [0.0, 5.0]
    """

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
        middle = 2 if self.to % 2 == 0 else -1  # of an even number, where half a multiple is half as often on each side
        return math.sqrt((self.to**2 + middle) / 12)  # of errors spread evenly over as many values


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyAnswerer(Answerer):
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
class BoundedNoiseAnswerer(Answerer):
    """Adds errors spread evenly between -`alpha` and `alpha`.

    >>> from discreet.noise import SeededBits
    >>> BoundedNoiseAnswerer(alpha=0.5).answer([1, 0, 1, 1], [[1, 1, 0, 0], [1, 1, 1, 1]], bits=SeededBits(1)).round(
    ...     2
    ... ).tolist()
    [0.76, 3.16]
    """

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
class SuppressingAnswerer(Answerer):
    """Withholds counts below `below`.

    >>> SuppressingAnswerer(below=2).answer([1, 0, 1, 1], [[1, 1, 0, 0], [1, 1, 1, 1]]).tolist()
    [nan, 3.0]
    """

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
class PrivateAnswerer(GuaranteedAnswerer):
    """Answers all queries together under one (epsilon, delta).

    Formal guarantee: with delta = 0, exact discrete Laplace noise for the largest L1 norm of a person's column of
    weights. With delta above 0, that or normal noise rounded to whole numbers for the largest L2 norm, by the exact
    profile (Balle, Wang 2018), whichever is smaller. The queries are chosen before the first answer.

    >>> from discreet.noise import SeededBits
    >>> queries = random_subsets(100, 20, bits=SeededBits(1))
    >>> {total: round(PrivateAnswerer(total=total).noise(queries)) for total in (1, 10)}  # of counts up to 20
    {1: 85, 10: 8}
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

    def _guess_bound(self, queries: Whole, prior: float, /) -> float | None:
        law = self.mechanism(queries)
        if isinstance(law, Gaussian):
            return right_guess_gaussian(float(law.sensitivity / law.sigma), prior=prior)
        return right_guess(float(self.total), prior=prior)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianAnswerer(Answerer):
    """Answers all queries together under mu-Gaussian DP, with normal noise rounded to whole numbers.

    Formal guarantee: mu-GDP when one person's bit is replaced (Dong, Roth, Su 2022), for the largest L2 norm of a
    person's column. Without a look at the queries the norm is sqrt(m), as if a person were in all m subsets: `blind`.

    >>> from discreet.noise import SeededBits
    >>> queries = random_subsets(100, 20, bits=SeededBits(1))
    >>> round(GaussianAnswerer(mu=1).noise(queries), 2), round(GaussianAnswerer(mu=1, blind=True).noise(queries), 2)
    (7.75, 10.0)
    >>> round(GaussianAnswerer(mu=1).guess_bound(queries), 3)
    0.691
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

    def _guess_bound(self, _queries: Whole, prior: float, /) -> float | None:
        return right_guess_gaussian(float(self.mu), prior=prior)
