"""Which keys of a private table may be shown: a key that one person brought must hardly ever appear."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, check
from discreet.accounting.calibration import increase_noise
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Interval, lower, root_above
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, add, numeric, reasonable_noise
from discreet.mechanisms.optimal_selection import OptimalRule
from discreet.mechanisms.tails import discrete_gaussian_reach, laplace_cut, laplace_reach
from discreet.noise import Bits, discrete_gaussian, discrete_laplace, source_of, truncated_laplace
from discreet.privacy import Estimate, Neighbours, events

Method = Literal["optimal", "truncated", "laplace", "gaussian"]
_METHODS = ("optimal", "truncated", "laplace", "gaussian")
_MOST = 10**9
_LARGEST_COUNT = 1 << 62
_LARGEST_EPSILON = 1000  # probabilities as near to 1 as 1 - e^-epsilon must differ from 1
_SMALLEST_DELTA = Fraction(1, 10**280)  # leaves room for shares of it above 1e-300
_REPLACE_HINT = "Build it for ADD_REMOVE and convert the loss: privacy.convert(loss, ...) doubles epsilon."


@dataclass(frozen=True, slots=True, eq=False)
class SelectedKeys:
    """The keys that may be shown.

    Show them in an order that does not depend on the data, such as the alphabet's; neither the mask nor its length is
    public, only the keys it keeps are.
    """

    kept: NDArray[np.bool_]
    """For each key, whether it is kept."""

    counts: NDArray[Any] | None
    """A noisy count for each kept key, in the same order; None if the method gives none."""


@dataclass(frozen=True, slots=True, init=False)
class PartitionSelection(Mechanism):
    """Keeps keys that enough units have, under ADD_REMOVE, when each unit has at most `max_groups` keys.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        max_groups: the largest number of keys of one unit.
        method: "optimal" keeps the most keys and returns no counts; the others keep keys whose noisy count reaches a
            threshold, and return that count. "truncated" is Laplace noise that stays below the threshold: it keeps
            nearly as many keys as the optimal method, and more than "laplace". "gaussian" has the smallest noise when
            units have many keys.
        rows_per_group: how much one unit adds to the count of one key at most; 1 if units are counted.
        neighbours: ADD_REMOVE; the proofs below hold for no other relation.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: (epsilon, delta)-DP. Let l = max_groups, c = rows_per_group, d = 1 - (1 - delta)^(1/l).
    *Optimal*: each key is (epsilon / l, d)-DP by `OptimalRule`, keys are independent, and l of them compose to
    (epsilon, 1 - (1 - d)^l) (Kairouz, Oh, Viswanath 2015). *Thresholds*: keys that both neighbours have are released
    with noise, at most l of them move, by at most c each. A key that only the unit has is kept with probability at
    most P(c + Z >= threshold) <= d, and otherwise both neighbours show nothing of it: total variation d, over t <= l
    such keys 1 - (1 - d)^t. The worst t is l because the count of a key does not depend on t. For the discrete
    Laplace law P(Z >= k) = e^(-k / scale) / (1 + e^(-1 / scale)); that of the discrete Gaussian is summed on the safe
    side. *Gaussian* splits delta in halves: one for the noise, one for the threshold.

    *Truncated*: Z is discrete Laplace noise of the scale l c / epsilon under |Z| <= k, and a key is shown if its noisy
    count exceeds k. A key that no unit has could get noise as well, for it would never be shown: the release is a
    function of noisy counts of all keys there could be, and nothing is to be said of keys that only one neighbour has.
    Let one unit move the count n of a key to n + m, m <= c. Let S be what both noisy counts can be, from n + m - k to
    n + k. Each lies outside S with the same probability d_m = P(Z > k - m) <= d: so both laws are mixtures, with
    weights 1 - d_m and d_m, of laws P and Q inside S and of something else. P and Q are those of the whole noise under
    the condition S, which has the same probability s under both. Let b = m epsilon / (l c) and
    H(P, Q) = sup over sets of P - e^t Q. For 0 <= t <= b, the whole laws have H = s H(P, Q) + p (1 - e^(t - b)), where
    p is what the first has below S; by symmetry 1 - s = p (1 + e^-b), and H(P, Q) <= (e^b - e^t) / (1 + e^b), as for
    any b-DP pair of symmetric laws; so H(P, Q) is at most that of the whole laws, and likewise for t < 0. Hence
    releasing all noisy counts is described by the event of untruncated noise composed with (0, delta), as with
    "laplace". For c = l = 1 the probabilities of being kept are those of the optimal rule with d = P(Z = k)
    (Desfontaines, Voss, Gipson, Mandayam 2022, Section 3.2); k is whole, so that this d may be below delta.

    >>> PartitionSelection(epsilon=1, delta=1e-5, method="laplace").threshold
    13
    >>> PartitionSelection(epsilon=1, delta=1e-5, method="truncated").threshold
    12
    >>> PartitionSelection(epsilon=1, delta=1e-5).select([0, 40, 1000]).tolist()
    [False, True, True]
    """

    epsilon: Fraction
    delta: Fraction
    max_groups: int
    method: Method
    rows_per_group: int
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: check.Number,
        delta: check.Number,
        max_groups: int = 1,
        method: Method = "optimal",
        rows_per_group: int = 1,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        if method not in _METHODS:
            raise InvalidParameter("method", method, f"to be one of {', '.join(_METHODS)}")
        if Neighbours(neighbours) is not Neighbours.ADD_REMOVE:
            raise InvalidParameter("neighbours", neighbours, "to be ADD_REMOVE", _REPLACE_HINT)
        rows = check.integer(rows_per_group=rows_per_group, at_least=1, at_most=_MOST)
        if method == "optimal" and rows > 1:
            hint = "The optimal rule counts units: pass the number of distinct units of each key."
            raise InvalidParameter("rows_per_group", rows_per_group, "to be 1", hint)
        chance = check.probability(delta=delta)
        if chance < _SMALLEST_DELTA:
            raise InvalidParameter("delta", delta, ">= 1e-280", "A smaller delta keeps no key.")
        amount = check.positive(epsilon=epsilon)
        if amount > _LARGEST_EPSILON:
            raise InvalidParameter("epsilon", epsilon, f"<= {_LARGEST_EPSILON}", "A larger one gives no protection.")
        assign(
            self,
            epsilon=amount,
            delta=chance,
            max_groups=check.integer(max_groups=max_groups, at_least=1, at_most=_MOST),
            method=method,
            rows_per_group=rows,
            neighbours=Neighbours.ADD_REMOVE,
        )
        reasonable_noise(self.rows_per_group * self.max_groups / self.epsilon, "epsilon")

    @property
    def event(self) -> events.Event:
        """Returns what one selection costs."""
        if self.method == "optimal":
            return events.Approx(self.epsilon, self.delta)
        if self.method == "gaussian":
            return _gaussian_event(self.scale, self._threshold_delta, self._length, self.max_groups)
        noise = events.DiscreteLaplace(scale=self.scale, sensitivity=self.rows_per_group * self.max_groups)
        return events.Composed([noise, events.Approx(0, self._threshold_delta)])

    @property
    def _threshold_delta(self) -> Fraction:
        return self.delta / 2 if self.method == "gaussian" else self.delta

    @property
    def _length(self) -> Fraction:
        """Returns the L2 norm of what one unit adds: c in each of at most l keys."""
        return self.rows_per_group * root_above(Fraction(self.max_groups))

    @property
    def scale(self) -> Fraction:
        """Returns the scale of the Laplace noise, or the sigma of the Gaussian noise."""
        if self.method in ("laplace", "truncated"):
            return self.rows_per_group * self.max_groups / self.epsilon
        if self.method == "gaussian":
            return _sigma(self.epsilon, self.delta, self._length, self.max_groups)
        raise InvalidParameter("method", self.method, "to add noise", "Pass method='laplace' or 'gaussian'.")

    @property
    def threshold(self) -> int:
        """Returns the smallest noisy count that is shown: c plus the first k with P(Z >= k) <= d.

        Truncated noise stays below it.
        """
        share = share_of_delta(self._threshold_delta, self.max_groups)
        if self.method == "truncated":
            return laplace_cut(self.scale, self.rows_per_group, share) + 1
        return self.rows_per_group + self._reach(2 * share) + 1

    def _reach(self, outside: Fraction) -> int:
        """Returns a whole t with P(|Z| > t) <= outside."""
        reach = discrete_gaussian_reach if self.method == "gaussian" else laplace_reach
        return reach(self.scale, outside)  # that of the whole law where noise is truncated: never less

    @property
    def rule(self) -> OptimalRule:
        """Returns the probabilities of the optimal method."""
        return OptimalRule.of(self.epsilon / self.max_groups, share_of_delta(self.delta, self.max_groups))

    def half_kept_count(self) -> int:
        """Returns the smallest count that is kept with a probability of at least one half.

        It follows from public facts alone, and says what to expect.

        >>> PartitionSelection(epsilon=0.1, delta=1e-5).half_kept_count()
        86
        """
        # Symmetric noise Z has P(Z >= 0) > 1/2 > P(Z >= 1).
        return self.rule.reaching(Fraction(1, 2)) if self.method == "optimal" else self.threshold

    def select(self, counts: Any, *, bits: Bits | None = None) -> NDArray[np.bool_]:
        """Returns for each key whether it is kept: `release` without the counts."""
        return self.release(counts, bits=bits).kept

    def release(self, value: Any, *, bits: Bits | None = None) -> SelectedKeys:
        """Releases the keys that may be shown, given the exact count of each; a key of count 0 is never shown.

        Args:
            value: a vector of whole numbers of at least 0.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: for anything else.
        """
        source = source_of(bits)
        counts = _counts(value)
        if self.method == "optimal":
            return SelectedKeys(self.rule.select(counts, source), None)
        noisy = add(counts, self._noise(counts.size, source))
        kept = np.asarray((counts > 0) & (noisy >= self.threshold), dtype=bool)
        return SelectedKeys(kept, noisy[kept])

    def _noise(self, size: int, bits: Bits) -> NDArray[Any]:
        if self.method == "truncated":
            return truncated_laplace(self.scale, self.threshold - 1, size, bits=bits)
        draw = discrete_laplace if self.method == "laplace" else discrete_gaussian
        return draw(self.scale, size, bits=bits)

    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns where the exact counts lie.

        Over the noise of each key, the probability that it is shown with an interval that misses its count is at most
        1 - confidence; among the keys that happen to be shown the share can be larger if their counts are near the
        threshold.

        Args:
            released: what `release` returned, or its counts; for the optimal method its mask, which only says that
                counts of kept keys are not so small, and of dropped keys not so large, as to make that unlikely.
            confidence: the probability of each statement.
        """
        chance = check.probability(confidence=confidence)
        shown = self._released_values(released)
        if self.method == "optimal":
            return _from_mask(self.rule, np.asarray(shown, dtype=bool), chance)
        half = self._reach(1 - chance)
        return Interval(np.maximum(shown - half, 1)[()], np.maximum(shown + half, 1)[()])

    def _released_values(self, released: Any) -> NDArray[Any]:
        part = released
        if isinstance(released, SelectedKeys):
            part = released.kept if self.method == "optimal" else released.counts
        return np.asarray(part)

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """Releases the noisy counts of the kept keys, or the mask of the optimal method, with intervals."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        shown = self._released_values(self.release(value, bits=source))
        low, high = self.interval(shown, confidence=chance)
        return Estimate(shown, low, high, self.event, confidence=chance, private=source.private)


@lru_cache(maxsize=1024)
def share_of_delta(delta: Fraction, parts: int) -> Fraction:
    """Returns at most 1 - (1 - delta)^(1/parts), and hardly less.

    It is what each of so many independent parts may fail with.
    """
    if parts == 1:
        return delta
    digits = 40 + len(str(math.ceil(parts / delta)))
    exact = lower(lambda n: 1 - (Enclosure.of(1 - delta, n).log() / parts).exp(), digits)
    scale = 1 << (math.ceil(1 / exact).bit_length() + 64)
    return Fraction(math.floor(exact * scale), scale)


@lru_cache(maxsize=1024)
def _sigma(epsilon: Fraction, delta: Fraction, sensitivity: Fraction, dimension: int) -> Fraction:
    """Returns the sigma of noise and threshold together, with half of delta for each."""
    half = delta / 2
    sigma = accounting.discrete_gaussian_sigma(epsilon, half, sensitivity=sensitivity, dimension=dimension)
    family = partial(_gaussian_event, leak=half, sensitivity=sensitivity, dimension=dimension)
    return increase_noise(sigma, family, epsilon=epsilon, delta=delta)


def _gaussian_event(sigma: Fraction, leak: Fraction, sensitivity: Fraction, dimension: int) -> events.Event:
    noise = events.DiscreteGaussian(sigma=sigma, sensitivity=sensitivity, dimension=dimension)
    return events.Composed([noise, events.Approx(0, leak)])


def _counts(value: Any) -> NDArray[np.int64]:
    counts = np.asarray(numeric(value))
    if counts.ndim != 1 or (counts.dtype.kind not in "iu" and counts.size):
        raise InvalidValue("to be a vector of whole numbers", "Pass the count of each key as an int.")
    if counts.size and not 0 <= int(counts.min()) <= int(counts.max()) < _LARGEST_COUNT:
        raise InvalidValue("to be counts from 0 to 2^62", "Count the units or rows of each key.")
    return counts.astype(np.int64)


def _from_mask(rule: OptimalRule, kept: NDArray[np.bool_], confidence: Fraction) -> Interval:
    """Returns all counts for which the observed answer had a probability of at least 1 - confidence."""
    smallest, largest = rule.reaching(1 - confidence), rule.reaching(confidence)
    return Interval(np.where(kept, smallest, 0.0)[()], np.where(kept, math.inf, largest)[()])
