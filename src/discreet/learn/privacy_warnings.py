"""Warnings for a caller who holds the rows: prices that add up, steps that were not private, labels of no class.

A warning that depends on rows is for the caller who runs the fit, and must not be passed on: it is a look at the data
that no budget pays for. So a fit under an account, whose analyst does not hold the rows (`in_an_account`), gives no
warning, and no warning contains a number of rows or a value.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.noise import source_of
from discreet.privacy import ApproxDP, Loss, PureDP

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

KEPT = 256  # fits that are remembered
SAMPLE = 128  # rows of each by which it is known again
ALIKE = 0.1  # of the sampled rows, from which on two fits are said to share rows
_EXACT = 1e-6

_silent: ContextVar[bool] = ContextVar("silent", default=False)
_read: ContextVar[Sketch | None] = ContextVar("read", default=None)
"""The rows of the fit that is going on."""


class PrivacyWarning(UserWarning):
    """Warns that something is less private than it seems; only for a person who holds the rows.

    >>> import warnings
    >>> from discreet.learn import GaussianNB, PrivacyWarning
    >>> learner = GaussianNB(epsilon=1, bounds=(0, 1), classes=["no", "yes"], random_state=1)
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always", PrivacyWarning)
    ...     model = learner.fit([[0.2], [0.8]], ["no", "perhaps"])
    >>> print(seen[0].message)
    Some labels are not in classes=...; their rows count nowhere. This depends on your rows: do not share it.
    """


@contextmanager
def in_an_account() -> Iterator[None]:
    """Runs fits whose price a curator, a search or a pipeline adds up, without warnings about their rows."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def is_silent() -> bool:
    """Returns whether warnings about rows are off."""
    return _silent.get()


@dataclass(frozen=True, slots=True)
class Sketch:
    """Recognises rows by keyed hashes: the smallest ones are a sample that equal rows share.

    Attributes:
        sample: the smallest hashes, each once.
        distinct: whether no two rows in the sample are equal; if some are, equal rows need not be the same people.
        total: the sum of all hashes.
    """

    sample: frozenset[int]
    distinct: bool
    total: int

    @classmethod
    def of(cls, X: Floats) -> Sketch:
        """Returns the sketch of rows."""
        hashes = _hashes(X)
        least = np.sort(hashes if len(hashes) <= 2 * SAMPLE else np.partition(hashes, 2 * SAMPLE)[: 2 * SAMPLE])
        sample = np.unique(least)
        total = int(hashes.sum(dtype=np.uint64))
        return cls(frozenset(sample[:SAMPLE].tolist()), len(sample) == len(least), total)

    def shares(self, other: Sketch) -> bool:
        """Returns whether rows of both are likely to be the same: a tenth of all of them, or all."""
        if self.total == other.total and self.sample == other.sample:
            return True
        if not (self.distinct and other.distinct):
            return False
        union = sorted(self.sample | other.sample)[:SAMPLE]
        common = self.sample & other.sample
        return sum(one in common for one in union) > ALIKE * len(union)


@dataclass(frozen=True, slots=True)
class _Fit:
    sketch: Sketch
    cost: Loss


_FITS: deque[_Fit] = deque(maxlen=KEPT)


def forget_fits() -> None:
    """Forgets all fits that were remembered."""
    _FITS.clear()


def note_rows(X: Floats) -> None:
    """Notes the rows of a fit that begins, for `remember_fit` when it ends."""
    if not is_silent():
        _read.set(Sketch.of(X) if len(X) else None)


def note_table(X: Any) -> None:
    """Notes the rows of a table of numbers and texts; each text becomes a number that this process alone knows."""
    if is_silent():
        return
    try:
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=object)
    except (TypeError, ValueError):  # no table: what reads it says so
        return
    if rows.ndim == 2:
        note_rows(np.array([[_number(value) for value in row] for row in rows], dtype=np.float64).reshape(rows.shape))


def _number(value: Any) -> float:
    if isinstance(value, float | int | np.number | np.bool_):
        return float(value)
    return float(hash((_key(), value))) if isinstance(value, Hashable) else 0.0


def remember_fit(cost: Loss) -> None:
    """Warns if rows were fitted before in this process, outside an account, and says what all of it costs.

    Rows are known again by keyed hashes of some of them; the key is drawn for each process and never leaves it.
    """
    sketch = _read.get()
    if is_silent() or sketch is None:
        return
    _read.set(None)
    mine = _Fit(sketch, cost)
    fits = [fit for fit in _FITS if fit.sketch.shares(mine.sketch)]
    _FITS.append(mine)
    if fits:
        text = (
            f"Rows of this fit were fitted before: {len(fits) + 1} fits on them cost {_together(fits, mine)} together, "
            f"not {cost}. Use discreet.learn.GridSearchCV, or a curator, which keeps an account."
        )
        warnings.warn(text, PrivacyWarning, stacklevel=5)


def _together(fits: list[_Fit], last: _Fit) -> Loss:
    """Returns what several fits cost, by basic composition."""
    epsilon, delta = Fraction(0), Fraction(0)
    for fit in (*fits, last):
        if isinstance(fit.cost, PureDP | ApproxDP):
            epsilon += fit.cost.epsilon
            delta += fit.cost.delta if isinstance(fit.cost, ApproxDP) else 0
    return PureDP(epsilon) if delta == 0 else ApproxDP(epsilon, delta)


def check_preparation(X: Floats) -> None:
    """Warns if columns have mean 0 and variance 1 to the last digits: they were scaled by their own moments.

    The first column is looked at before the others, which is all the work for rows that were not scaled so.
    """
    if is_silent() or len(X) < 2 or not X.shape[1] or not _is_standard(X[:, :1]) or not _is_standard(X):
        return
    text = (
        "Columns have mean 0 and variance 1, as after scikit-learn's StandardScaler: an earlier step read the rows "
        "without privacy. Use discreet.learn.StandardScaler, or PublicScaler with public bounds."
    )
    warnings.warn(text, PrivacyWarning, stacklevel=4)


def _is_standard(X: Floats) -> bool:
    """Returns whether all columns are standardised; constant ones stay 0, and missing values are passed over."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a column without any value
        means, variances = np.nanmean(X, axis=0), np.nanvar(X, axis=0)
    standard = (np.abs(means) < _EXACT) & (np.abs(variances - 1) < _EXACT)
    constant = (means == 0) & (variances == 0)
    return bool((standard | constant).all() and standard.any())


def check_labels(y: NDArray[Any], places: NDArray[np.int64]) -> None:
    """Warns if labels lie outside the declared classes; missing ones are passed over, and none is named or counted."""
    if is_silent():
        return
    outside = y[places < 0]
    if outside.dtype.kind == "f":
        outside = outside[~np.isnan(outside)]
    elif outside.dtype.kind == "O":
        outside = outside[[one is not None and one == one for one in outside]]  # noqa: PLR0124  # NaN differs from itself
    if len(outside):
        text = (
            "Some labels are not in classes=...; their rows count nowhere. This depends on your rows: do not share it."
        )
        warnings.warn(text, PrivacyWarning, stacklevel=4)


@cache
def _key() -> int:
    """Returns a number of this process alone."""
    return source_of(None).integer(64)


def _hashes(X: Floats) -> Hashes:
    """Returns a keyed hash of each row: a sum of its bits times odd numbers, mixed so that order says nothing."""
    words = np.ascontiguousarray(X + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    places = np.arange(1, X.shape[1] + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        odd = _mix_words(places * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(_key())) | np.uint64(1)
        folded = words ^ (words >> np.uint64(29))
        return _mix_words(folded @ odd)


def _mix_words(words: Hashes) -> Hashes:
    """Applies Splitmix64's finaliser: every bit of a word reaches every other."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(31))
