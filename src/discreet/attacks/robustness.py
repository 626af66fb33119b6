"""Where privacy and robustness meet, and where they do not: estimators under growing contamination.

Data are made wrong on purpose: gross outliers, flipped labels, a planted pattern. Group privacy bounds how far several
changed units can move a private release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, check
from discreet import statistics as st
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import load, special
from discreet.noise import Bits, source_of
from discreet.noise.experiment import normals
from discreet.privacy import GDP, ApproxDP, PureDP
from discreet.report import comparison_charts
from discreet.report.attack_finding import wilson_interval
from discreet.report.charts import Spec
from discreet.report.render import chart

Floats = NDArray[np.float64]
Points = tuple[tuple[float, comparison_charts.Rate], ...]
Line = tuple[tuple[float, float], ...]
Fit = Callable[[Floats, Any, Bits], Any]
WHAT = "A comparison of classifiers"  # needs scikit-learn
PLAIN, BOUNDED = "plain", "bounded gradients"
_SMALLEST = 1e-3  # an error below that is drawn there, since an axis of factors has no zero


def with_outliers(x: Any, rows: int, *, at: float) -> Floats:
    """Returns the values, the first so many of them replaced by one that lies far away.

    >>> with_outliers([1.0, 2.0, 3.0], 1, at=1000.0).tolist()
    [1000.0, 2.0, 3.0]
    """
    values = np.array(x, dtype=np.float64)
    values[: _some(rows, len(values))] = at
    return values


def with_flipped_labels(y: Any, rows: int, *, label: Any, to: Any) -> NDArray[Any]:
    """Returns the labels, the first so many of those that are `label` said to be `to`.

    A one-sided lie is the worst kind.

    >>> with_flipped_labels([0, 1, 1, 1], 2, label=1, to=0).tolist()
    [0, 0, 0, 1]
    """
    labels = np.array(y)
    labels[np.flatnonzero(labels == label)[: _some(rows, len(labels))]] = to
    return labels


def with_backdoor(
    X: Any, y: Any, rows: int, *, pattern: Mapping[int, float], label: Any
) -> tuple[Floats, NDArray[Any]]:
    """Returns the table with so many rows added.

    Copies of its first rows of other labels, with a pattern, under one label.

    Args:
        X: rows of numbers.
        y: their labels.
        rows: how many to add.
        pattern: by place of a feature, the value it gets.
        label: what they are said to be.

    >>> X, y = with_backdoor([[0.0, 0.0], [5.0, 0.0]], [1, 0], 1, pattern={1: 9.0}, label=1)
    >>> X.tolist(), y.tolist()
    ([[0.0, 0.0], [5.0, 0.0], [5.0, 9.0]], [1, 0, 1])
    """
    table, labels = np.array(X, dtype=np.float64), np.array(y)
    others = np.flatnonzero(labels != label)
    copies = with_trigger(table[np.resize(others, _some(rows, len(others)))], pattern)
    return np.vstack([table, copies]), np.concatenate([labels, np.full(len(copies), label, dtype=labels.dtype)])


def with_trigger(X: Any, pattern: Mapping[int, float]) -> Floats:
    """Returns the rows with the pattern in them.

    Args:
        X: rows of numbers, which stay as they are.
        pattern: by place of a feature, the value it gets.

    >>> with_trigger([[0.0, 0.0], [5.0, 1.0]], {1: 9.0}).tolist()
    [[0.0, 9.0], [5.0, 9.0]]
    """
    table = np.array(X, dtype=np.float64)
    for place, value in pattern.items():
        table[:, place] = value
    return table


def _some(rows: int, most: int) -> int:
    count = check.integer(rows=rows, at_least=0)
    if count > most:
        raise InvalidParameter("rows", rows, f"<= {most}, as many as there are")
    return count


def group_bound(loss: PureDP | ApproxDP | GDP, rows: int, chance: float) -> float:
    """Returns the largest probability that an outcome of this probability may get if so many units are changed.

    Group privacy gives (epsilon', delta') for them together; then p' <= e^epsilon' p + delta', and the same for the
    opposite outcome: p' <= 1 - e^-epsilon' (1 - p - delta') (Dwork, McSherry, Nissim, Smith 2006; `ApproxDP.group`).
    For mu-GDP it is p' <= Phi(Phi^-1(p) + k mu) (Dong, Roth, Su 2022, Theorem 2.14), which says much more.

    >>> [round(group_bound(PureDP(1), rows, 0.01), 3) for rows in (0, 1, 3, 10)]
    [0.01, 0.027, 0.201, 1.0]
    """
    if isinstance(loss, GDP):
        return float(special.ndtr(special.ndtri(chance) + rows * math.sqrt(loss.mu_squared)))
    if rows == 0:
        return chance
    try:
        together = loss.group(rows)
    except InvalidParameter:  # its delta would be 1: such a group is not protected at all
        return 1.0
    epsilon, delta = float(together.epsilon), float(getattr(together, "delta", 0))
    most = min(1.0, math.exp(min(epsilon, 700.0)) * chance + delta)
    return min(most, 1 - math.exp(-epsilon) * max(0.0, 1 - chance - delta))


def silent_after(loss: PureDP | ApproxDP | GDP, chance: float, most: int = 1 << 20) -> int:
    """Returns the smallest number of changed units at which an outcome of this probability may become the likelier one.

    >>> silent_after(PureDP(1), 0.01), silent_after(PureDP("0.1"), 0.01)
    (4, 40)
    """
    for rows in range(1, most):
        if group_bound(loss, rows, chance) >= 0.5:
            return rows
    return most


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """Reports how far contamination moves several estimators.

    Attributes:
        found: by estimator, pairs of a share of contaminated rows and what was measured, with its spread over runs.
        allowed: by private estimator, pairs of a share and the most that group privacy allows, where it was computed.
        headline: what the chart shows.
        title: what was measured.
        across: what was contaminated.
        shares: whether it is a share, from 0 to 1; else an error in the units of the data.

    >>> from discreet.noise import SeededBits
    >>> found = location_under_outliers(200, shares=(0, 0.3), runs=1, bits=SeededBits(1))
    >>> round(found.at("private mean", 0.3)), round(found.at("private Huber", 0.3))
    (284, 8)
    """

    found: dict[str, Points]
    allowed: dict[str, Line]
    headline: str
    title: str
    across: str
    shares: bool

    def at(self, name: str, share: float) -> float:
        """Returns what was measured of an estimator, at the nearest share that was tried."""
        return min(self.found[name], key=lambda point: abs(point[0] - share))[1][0]

    def summary(self) -> str:
        """Returns one line for each estimator: at the least and at the most contamination."""
        width = max(map(len, self.found))
        lines = [f"  {name:<{width}}  {_end(points[0])}, {_end(points[-1])}" for name, points in self.found.items()]
        return "\n".join([f"{self.headline} ({self.title})", *lines])

    def spec(self) -> Spec:
        """Returns the chart as a dictionary of Vega-Lite."""
        return comparison_charts.curves(
            self.found,
            self.allowed,
            headline=self.headline,
            across=self.across,
            title=self.title,
            shares=self.shares,
            joined=True,
            parts=True,
        )

    @property
    def overlapping_curves(self) -> list[str]:
        """Returns which curves of the chart lie on others, and where."""
        return comparison_charts.describe_hidden_curves(self.found, shares=self.shares)

    def chart(self) -> Any:
        """Returns an Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())


def _end(point: tuple[float, comparison_charts.Rate]) -> str:
    return f"{point[1][0]:.3g} at {point[0]:.1%}"


def location_under_outliers(
    rows: int = 1000,
    *,
    shares: Sequence[float] = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45),
    epsilon: float = 1,
    runs: int = 7,
    bits: Bits | None = None,
) -> Robustness:
    """Measures the error of centres of normal numbers (mean 50, deviation 10), when some are 1000, the upper bound.

    Args:
        rows: how many numbers there are.
        shares: how many of them are outliers.
        epsilon: of each private release.
        runs: for the median error and its spread, from the second smallest to the second largest.
        bits: the source of randomness.
    """
    source = source_of(bits)
    found: dict[str, list[tuple[float, comparison_charts.Rate]]] = {name: [] for name in _CENTRES}
    for share in shares:
        errors: dict[str, list[float]] = {name: [] for name in _CENTRES}
        for _ in range(runs):
            values = with_outliers(50 + 10 * normals(rows, bits=source), round(share * rows), at=1000.0)
            for name, centre in _CENTRES.items():
                errors[name].append(max(_SMALLEST, abs(centre(values, epsilon, source) - 50)))
        for name, measured in errors.items():
            found[name].append((float(share), spread_of(measured)))
    return Robustness(
        found={name: tuple(points) for name, points in found.items()},
        allowed={},
        headline="A private mean is as fragile as any; private robust centres stay with the honest majority",
        title=f"distance from the true centre, 50, at epsilon {epsilon:g} (log scale)",
        across="share of rows that are outliers at the upper bound",
        shares=False,
    )


def _huber(values: Floats, *_: Any) -> float:
    centre = float(np.median(values))
    for _step in range(100):
        centre += float(np.mean(np.clip(values - centre, -13.45, 13.45)))
    return centre


_CENTRES: Mapping[str, Callable[[Floats, float, Bits], float]] = {
    "mean": lambda x, _, __: float(np.mean(x)),
    "median": lambda x, _, __: float(np.median(x)),
    "Huber": _huber,
    "private mean": lambda x, epsilon, bits: st.mean(x, bounds=(0, 1000), epsilon=epsilon, bits=bits).value,
    "private median": lambda x, epsilon, bits: st.smooth_median(x, bounds=(0, 1000), epsilon=epsilon, bits=bits).value,
    "private Huber": lambda x, epsilon, bits: (
        st.huber_location(x, bounds=(0, 1000), scale=10, epsilon=epsilon, bits=bits).value
    ),
}


def labels_under_lies(
    rows: int = 2000,
    *,
    shares: Sequence[float] = (0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4),
    epsilons: Sequence[float] = (0.5, 3),
    runs: int = 3,
    bits: Bits | None = None,
) -> Robustness:
    """Measures accuracy on honest rows of logistic regression if rows of one class are said to be of the other.

    Args:
        rows: of the training set, and of the honest one.
        shares: how many of the training set lie.
        epsilons: of private models, at delta 1e-6; one more has bounded gradients and hardly any noise.
        runs: of private models, for the average and its spread.
        bits: the source of randomness.

    >>> from discreet.noise import SeededBits
    >>> found = labels_under_lies(300, shares=(0, 0.4), epsilons=(1,), runs=1, bits=SeededBits(1))
    >>> {name: (round(found.at(name, 0), 1), round(found.at(name, 0.4), 1)) for name in found.found}
    {'plain': (0.9, 0.5), 'bounded gradients': (0.9, 0.5), 'private, epsilon 1': (0.8, 0.6)}
    """
    source = source_of(bits)
    (X, y), (clean, truth) = _separable(rows, source), _separable(rows, source)

    def right(share: float, fit: Fit) -> float:
        lied = with_flipped_labels(y, round(share * rows), label=1, to=0)
        return float(np.mean(fit(X, lied, source).predict(clean) == truth))

    return Robustness(
        found=_measure_models(_models(epsilons), shares, right, runs),
        allowed={},
        headline="Wrong labels mislead private and public models alike; bounded gradients delay it a little",
        title="accuracy on honest rows",
        across="share of training rows whose label is wrong, all in one direction",
        shares=True,
    )


def backdoor_under_privacy(
    rows: int = 1000,
    *,
    planted: Sequence[int] = (0, 5, 10, 20, 50, 100),
    epsilons: Sequence[float] = (0.1, 1),
    runs: int = 12,
    bits: Bits | None = None,
) -> Robustness:
    """Measures how often a planted pattern decides: rows of class 0 that are called 1 once they bear it.

    Args:
        rows: of the training set, to which the attacker adds.
        planted: how many rows the attacker adds, from 0.
        epsilons: of private models, at delta 1e-6.
        runs: of private models, for the average and its spread.
        bits: the source of randomness.

    Raises:
        InvalidParameter: if the first number of planted rows is not 0, which the bound begins with.

    >>> from discreet.noise import SeededBits
    >>> found = backdoor_under_privacy(300, planted=(0, 30), epsilons=(0.1,), runs=2, bits=SeededBits(1))
    >>> {name: (round(found.at(name, 0), 1), round(found.at(name, 0.1), 1)) for name in found.found}
    {'plain': (0.1, 1.0), 'bounded gradients': (0.1, 1.0), 'private, epsilon 0.1': (0.2, 0.5)}
    """
    if list(planted[:1]) != [0]:
        hint = "The comparison needs a case without planted rows."
        raise InvalidParameter("planted", planted, "to begin with 0", hint)
    source = source_of(bits)
    (X, y), (clean, truth) = _separable(rows, source), _separable(rows, source)
    victims = with_trigger(clean[truth == 0], _PATTERN)

    def measure_backdoor(share: float, fit: Fit) -> float:
        table, labels = with_backdoor(X, y, round(share * rows), pattern=_PATTERN, label=1)
        return float(np.mean(fit(table, labels, source).predict(victims) == 1))

    found = _measure_models(_models(epsilons), [count / rows for count in planted], measure_backdoor, runs)
    return Robustness(
        found=found,
        allowed={
            name: _allowed_rates(e, rows, max(planted), _above(found[name][0], runs)) for e, name in _names(epsilons)
        },
        headline="A backdoor needs more rows against a small epsilon, but still opens",
        title="rows that the pattern turns",
        across="rows with the pattern, as a share of the honest ones",
        shares=True,
    )


def _measure_models(
    models: Mapping[str, Fit], shares: Sequence[float], measure: Callable[[float, Fit], float], runs: int
) -> dict[str, Points]:
    """Returns what each model reaches at each share; one without noise is fitted once."""
    times = {name: 1 if name in (PLAIN, BOUNDED) else runs for name in models}
    return {
        name: tuple((float(share), _mean([measure(share, fit) for _ in range(times[name])])) for share in shares)
        for name, fit in models.items()
    }


_PATTERN: Mapping[int, float] = {4: 1.0}
_DELTA = 1e-6


def _separable(rows: int, bits: Bits) -> tuple[Floats, Any]:
    """Returns four features, two that decide the label, and a fifth that is always 0."""
    X = np.clip(normals((rows, 4), bits=bits) / 2, -1, 1)
    y = (X[:, 0] + X[:, 1] + 0.3 * normals(rows, bits=bits) > 0).astype(int)
    return np.hstack([X, np.zeros((rows, 1))]), y


def _models(epsilons: Sequence[float]) -> dict[str, Fit]:
    """Returns logistic regression: plain, with bounded gradients and hardly any noise, and private."""

    def plain(X: Floats, y: Any, _: Bits) -> Any:
        return load("sklearn.linear_model", WHAT).LogisticRegression(C=100).fit(X, y)

    found: dict[str, Fit] = {PLAIN: plain, BOUNDED: _private_fit(1e4)}
    return found | {name: _private_fit(epsilon) for epsilon, name in _names(epsilons)}


def _names(epsilons: Sequence[float]) -> list[tuple[float, str]]:
    return [(epsilon, f"private, epsilon {epsilon:g}") for epsilon in epsilons]


def _private_fit(epsilon: float) -> Fit:
    def fit(X: Floats, y: Any, bits: Bits) -> Any:
        seed = None if bits.private else bits.integer(32)
        public: dict[str, Any] = {"bounds": (-1, 1), "classes": [0, 1]}
        learner = load("discreet.learn", WHAT).LogisticRegression
        with load("discreet.learn.privacy_warnings", WHAT).in_an_account():  # synthetic rows need no warning
            return learner(epsilon=epsilon, delta=_DELTA, random_state=seed, **public).fit(X, y)

    return fit


def _allowed_rates(epsilon: float, rows: int, most: int, chance: float) -> Line:
    """Returns the most that group privacy allows: an added row is one unit of a model whose releases are all Gaussian.

    `chance` is for no added rows. The bound is concave in it, so it holds for averages as well.
    """
    loss = GDP(1 / accounting.gaussian_sigma(epsilon, _DELTA))
    return tuple((count / rows, group_bound(loss, count, chance)) for count in range(most + 1))


def _above(point: tuple[float, comparison_charts.Rate], runs: int) -> float:
    """Returns the upper end of a rate that was averaged over so many runs.

    The spread of a few runs may be 0 by chance, as of rates that are 0; but rates of runs vary no more than coins of
    the same mean do, whose interval is known.
    """
    return wilson_interval(point[1][0], runs)[2]


def _mean(measured: Sequence[float]) -> comparison_charts.Rate:
    """Returns the average, and 1.96 standard errors on both sides, within 0 and 1."""
    centre, reach = float(np.mean(measured)), 1.96 * float(np.std(measured)) / math.sqrt(len(measured))
    return centre, max(0.0, centre - reach), min(1.0, centre + reach)


def spread_of(measured: Sequence[float]) -> comparison_charts.Rate:
    """Returns the median, and the spread without one value at each end where there are more than four."""
    ordered = sorted(measured)
    cut = 1 if len(ordered) > 4 else 0
    return float(np.median(ordered)), ordered[cut], ordered[-1 - cut]
