"""A holdout that survives being asked again: Thresholdout, with a budget that ends.

What a holdout is worth after it was used to choose is shown by an experiment on labels that nothing can predict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InsufficientBudget, InvalidParameter
from discreet.exact import float_above
from discreet.learn.learner import bits_of
from discreet.mechanisms import Laplace, SparseVector
from discreet.mechanisms.sparse_vector import SparseVectorSession
from discreet.noise import Bits, source_of
from discreet.noise.experiment import coins
from discreet.privacy import ApproxDP, Neighbours, PureDP, events
from discreet.privacy.events import Event
from discreet.statistics.inputs import NumericColumn, column

Signs = NDArray[np.int8]

FINE = 1 << 10  # steps of a query's range
CALM = 4  # sigma is at most the threshold over this, or noise alone would spend the budget
_LOUD = f"Noise may be a {CALM}th of the threshold at most: raise the threshold, epsilon or the number of rows."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """Accuracies of a classifier whose features were chosen with the help of a holdout; the truth is one half.

    Attributes:
        train: on the training set.
        reported: on the holdout, as the person who chose would report it.
        fresh: on rows that were not used.
        answered: how many queries the holdout answered itself.

    >>> from discreet.noise import SeededBits
    >>> for found in reuse(1000, 1000, chosen=100, bits=SeededBits(1)):
    ...     print(f"reported {found.reported:.2f}, true {found.fresh:.2f}, answered {found.answered}")
    reported 0.61, true 0.50, answered 1001
    reported 0.48, true 0.50, answered 1
    """

    train: float
    reported: float
    fresh: float
    answered: int


@dataclass(frozen=True, slots=True)
class _Sample:
    X: Signs
    y: Signs

    def agreement(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns 1 where a vote of the features is right, -1 where it is wrong."""
        votes = self.X.astype(np.int64) @ weights
        return np.where(np.where(votes >= 0, 1, -1) == self.y, 1.0, -1.0)


def reuse(
    rows: int = 3000,
    features: int = 3000,
    *,
    chosen: int = 200,
    threshold: Number | None = None,
    sigma: Number = "0.01",
    bits: Bits | None = None,
) -> tuple[Reuse, Reuse]:
    """Returns the same analyst with a plain holdout and with a `Holdout`, on features and labels that are fair coins.

    The analyst asks for the correlation of every feature with the label, keeps features on which training set and
    holdout agree, and lets the strongest vote. Nothing can be learned, so a report above one half is overfitting to the
    holdout.

    Args:
        rows: of the training set, the holdout and the fresh sample each.
        features: how many there are.
        chosen: how many may vote.
        threshold: of the `Holdout`; None for its smallest, four standard deviations of the difference.
        sigma: the scale of its noise.
        bits: the source of randomness of the samples and, if seeded, of a seed for the noise.

    Returns:
        What was reported with the plain holdout, and with `Holdout`.
    """
    source = source_of(bits)
    train, held, fresh = (_sample(rows, features, source) for _ in range(3))
    plain = _analyst(lambda values, _: float(np.mean(values)), train, held, fresh, chosen)
    seed = None if source.private else source.integer(32)
    smallest = 4 * math.sqrt(2 / rows) * (1 + 1e-9)
    guard = Holdout(
        rows,
        threshold=smallest if threshold is None else threshold,
        sigma=sigma,
        budget=features + 1,
        range=(-1, 1),
        random_state=seed,
    )
    guarded = _analyst(guard.query, train, held, fresh, chosen)
    answered = guard.budget - guard.remaining
    return (
        Reuse(train=plain[0], reported=plain[1], fresh=plain[2], answered=features + 1),
        Reuse(train=guarded[0], reported=guarded[1], fresh=guarded[2], answered=answered),
    )


def _sample(rows: int, features: int, bits: Bits) -> _Sample:
    signs = 2 * coins((rows, features + 1), bits=bits) - 1
    return _Sample(signs[:, :-1], signs[:, -1])


def _analyst(
    ask: Callable[[NDArray[np.float64], float], float], train: _Sample, held: _Sample, fresh: _Sample, chosen: int
) -> tuple[float, float, float]:
    """Returns the accuracies on the training set, as reported by the holdout, and on fresh rows."""
    rows, features = train.X.shape
    known = np.array([float(np.mean(train.X[:, j] * train.y)) for j in range(features)])
    told = np.array([ask((held.X[:, j] * held.y).astype(np.float64), known[j]) for j in range(features)])
    kept = (np.sign(known) == np.sign(told)) & (np.minimum(abs(known), abs(told)) > 1 / math.sqrt(rows))
    strongest = np.argsort(np.where(kept, -abs(known + told), 0.0), kind="stable")[:chosen]
    weights = np.zeros(features, dtype=np.int64)
    weights[strongest] = np.sign(known[strongest]) * kept[strongest]
    on_train = float(np.mean(train.agreement(weights)))
    reported = ask(held.agreement(weights), on_train)
    return tuple((1 + mean) / 2 for mean in (on_train, reported, float(np.mean(fresh.agreement(weights)))))  # type: ignore[return-value]


class Holdout:
    """Answers questions about a holdout with their value on the training set, until that is wrong.

    A query is a mean of values in a public range, one value for each row. If its mean on the holdout is near the
    mean on the training set, the training set's own mean comes back and costs nothing; if not, the query has
    overfitted: the holdout's mean comes back with noise, and one of `budget` such answers is used up. After the last
    one nothing is answered any more. Only the holdout is protected; the training set gets no privacy.

    Args:
        holdout: the private rows, an array or a tuple of arrays such as (X, y); or their number alone, if every query
            comes as values.
        threshold: T, how far a query may be off before it counts as overfitted; at least 2 r sqrt(2 / n) for a range of
            length r, which is four standard deviations of the difference for the widest law there is; by default
            twice that.
        sigma: the scale of the noise of an answer, in the units of the query; at most T / 4; by default what epsilon
            and delta say, or T / 10 without them.
        budget: B, how many overfitted queries are answered.
        range: the public limits of a query's values, which are clipped to it.
        epsilon, delta: what the whole life of the holdout may cost, instead of sigma.
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: REPLACE with n public. A replaced row moves the sum of a query's values by at most the range, r,
    and |sum - n t| for any public t as well. Between two overfitted queries lies an epoch: one sparse vector with one
    yes, whose noise makes it e-DP, e = r / (sigma n) (`SparseVector`: shift the threshold's noise by r, that of the yes
    by 2 r), and one answer with Laplace noise of scale sigma n on the sum, e-DP as well. Given what was released, the
    next epoch has fresh noise, so B epochs are an adaptive composition of 2 B releases that are e-DP: 2 B e purely,
    rho = B e^2 in zCDP, and less by their laws (`event`). Splitting the e of a test as 2 sigma and 4 sigma would also
    do (Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015); the split used here makes the test a little less noisy.
    What privacy buys is their transfer theorem: answers of a private mechanism that are accurate on the sample are
    accurate for the population, though queries were chosen after seeing earlier answers.

    >>> holdout = Holdout(10_000, sigma="0.01", budget=100, random_state=0)
    >>> print(holdout.spent(), round(float(holdout.spent(delta=1e-6).epsilon), 3))
    epsilon=2 0.571
    >>> holdout.query(np.full(10_000, 0.5), 0.5), holdout.remaining
    (0.5, 100)
    """

    def __init__(
        self,
        holdout: Any,
        *,
        threshold: check.Number | None = None,
        sigma: check.Number | None = None,
        budget: int,
        range: tuple[Any, Any] = (0, 1),  # noqa: A002  # the word for it
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        random_state: int | None = None,
    ) -> None:
        self._rows, self.size = _rows_of(holdout)
        self.budget = check.integer(budget=budget, at_least=1, at_most=10**9)
        self.range = check.limits(range=range)
        self.threshold = _threshold(threshold, self.smallest_threshold)
        self.sigma = self._sigma(sigma, epsilon, delta)
        if self.sigma * CALM > self.threshold:
            raise InvalidParameter("sigma", float(self.sigma), f"<= {float(self.threshold / CALM):.6g}", _LOUD)
        self._test, self._noise = self._epoch(self._width / (self.sigma * self.size))
        self._bits = bits_of(random_state)
        self.private = self._bits.private
        self.remaining = self.budget
        self._session: SparseVectorSession | None = None

    def __repr__(self) -> str:
        return f"Holdout(size={self.size}, budget={self.budget}, remaining={self.remaining})"

    @property
    def smallest_threshold(self) -> Fraction:
        """Returns 2 r sqrt(2 / n).

        These are four standard deviations of the difference of two means of n values, each at most r / 2.
        """
        return 2 * self._width * Fraction(math.sqrt(2 / self.size))

    @property
    def event(self) -> Event:
        """Returns the whole life of the holdout, paid for when it begins, however early it ends."""
        return events.Repeated(events.Composed([self._test.event, self._noise.event]), self.budget)

    def spent(self, delta: check.Number = 0) -> ApproxDP | PureDP:
        """Returns what the whole life of the holdout costs, at a delta; pure without one."""
        slack = check.not_negative(delta=delta)
        found = Fraction(accounting.epsilon(self.event, slack, neighbours=Neighbours.REPLACE))
        return ApproxDP(found, slack) if slack else PureDP(2 * self.budget * self._noise.epsilon)

    def query(self, query: Callable[..., Any] | Any, train_value: float) -> float:
        """Returns the value of a query: the training set's, or, if that is off, the holdout's with noise.

        Args:
            query: a function of one row, called for each row alone; or the values, one for each row of the holdout
                in its order, each a function of its own row alone (not of a batch: a float product over many rows
                can depend on all of them).
            train_value: the mean on the training set, public from the holdout's point of view.

        Raises:
            InsufficientBudget: once all overfitted queries were answered; nothing is answered then.
            InvalidParameter: if there is not one value for each row.
        """
        if self.remaining == 0:
            hint = "This holdout has used up its budget. Take a fresh one."
            raise InsufficientBudget("one more query", "no overfitted answers", hint)
        values = self._values(query)
        clipped = min(max(check.rational(train_value=train_value, floats="exact"), self.range[0]), self.range[1])
        expected = math.floor((clipped - values.low) * self.size / values.step + Fraction(1, 2))
        return self._answer(int(values.steps.sum()), expected, values, float(train_value))

    def _answer(self, found: int, expected: int, values: NumericColumn, train_value: float) -> float:
        if self._session is None:
            self._session = self._test.start(bits=self._bits)
        if not self._session.ask_steps(abs(found - expected)):
            return train_value
        self._session = None
        self.remaining -= 1
        noisy = self._noise.release(found, bits=self._bits)
        return float(values.low + noisy * values.step / self.size)

    def _values(self, query: Any) -> NumericColumn:
        given = self._evaluate_query(query) if callable(query) else query
        values = column(given, bounds=self.range, neighbours=Neighbours.REPLACE, fine=FINE)
        if values.public_size != self.size:
            raise InvalidParameter("query", f"{values.public_size} values", f"to be one for each of {self.size} rows")
        return values

    def _evaluate_query(self, query: Callable[..., Any]) -> NDArray[np.float64]:
        if self._rows is None:
            hint = "This holdout knows only the number of its rows."
            raise InvalidParameter("query", "a function", "to be values", hint)
        return np.array([float(query(*row)) for row in zip(*self._rows, strict=True)])

    @property
    def _width(self) -> Fraction:
        return self.range[1] - self.range[0]

    def _sigma(self, sigma: Any, epsilon: Any, delta: Any) -> Fraction:
        if sigma is not None and epsilon is not None:
            hint = "Pass one of them: each of them sets the noise."
            raise InvalidParameter("sigma", sigma, "to come without epsilon", hint)
        if sigma is not None:
            return check.positive(sigma=sigma)
        if epsilon is None:
            return self.threshold / 10
        return self._width * self._noise_for(check.positive(epsilon=epsilon), delta) / self.size

    def _noise_for(self, epsilon: Fraction, delta: Any) -> Fraction:
        """Returns 1 / e for a whole life that keeps to (epsilon, delta)."""
        pure = 2 * self.budget / epsilon
        if delta is None or delta == 0:
            return pure

        def family(noise: Fraction) -> Event:
            return events.Repeated(events.Composed([part.event for part in self._epoch(1 / noise)]), self.budget)

        found = accounting.calibrate(
            family, epsilon=epsilon, delta=check.probability(delta=delta), neighbours=Neighbours.REPLACE, start=pure
        )
        return min(pure, found)

    def _epoch(self, epsilon: Fraction) -> tuple[SparseVector, Laplace]:
        """Tests until the first yes, and the answer to it, each at this epsilon."""
        unit = column([], bounds=self.range, neighbours=Neighbours.REPLACE, fine=FINE)
        test = SparseVector(
            epsilon=epsilon,
            sensitivity=unit.width,
            threshold=self.threshold * self.size / unit.step,
            neighbours=Neighbours.REPLACE,
        )
        return test, Laplace(epsilon=epsilon, sensitivity=unit.width)


def _threshold(threshold: Any, smallest: Fraction) -> Fraction:
    if threshold is None:
        return 2 * smallest
    asked = check.positive(threshold=threshold)
    if asked < smallest:
        hint = "Below that, chance alone uses up the budget and its noise is fitted. Pass None for the default."
        raise InvalidParameter("threshold", threshold, f">= {float_above(smallest):.6g}", hint)
    return asked


def _rows_of(holdout: Any) -> tuple[tuple[NDArray[Any], ...] | None, int]:
    """Returns the rows, if there are any, and their number."""
    if isinstance(holdout, int | np.integer):
        return None, check.integer(holdout=holdout, at_least=1)
    parts = tuple(np.asarray(part) for part in (holdout if isinstance(holdout, tuple) else (holdout,)))
    sizes = {len(part) for part in parts}
    if len(sizes) != 1 or not next(iter(sizes)):
        raise InvalidParameter(
            "holdout", f"parts of {sorted(sizes)} rows", "to have the same number of rows, at least 1"
        )
    return parts, sizes.pop()
