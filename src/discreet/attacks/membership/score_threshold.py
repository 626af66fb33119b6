"""Scores of membership and their thresholds: a score above what strangers reach means a member.

Symbols: d coordinates (or sites), n people in the group, r people in the reference, R the matrix of correlations of the
coordinates, sigma the noise of a released mean per coordinate, alpha the rate of false positives, z its quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, check
from discreet.attacks.attack import ceiling
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.noise import Bits
from discreet.noise.experiment import shuffle_indices
from discreet.privacy.events import Event, Pure
from discreet.report import comparison_charts
from discreet.report.attack_finding import Finding, wilson_interval
from discreet.report.charts import Spec
from discreet.report.display import rate

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ENOUGH = 200  # strangers whose inner products give the effective number within a percent or so


@dataclass(frozen=True, kw_only=True)
class Tracing(Finding):
    """Reports who was accused of being in a group.

    `recovered` holds the places of the accused among the candidates. Success is the share of members accused; where it
    is not known who is a member, the share of candidates accused.

    Attributes:
        threshold: the score above which a candidate is accused.
        allowed: the rate of false positives that the threshold was set for.
        false_positives: the share of candidates outside the group who were accused; None if unknown.
        strangers: how many candidates outside the group that share was measured on.
        coordinates: how many numbers of the release were used.
        effective: how many independent coordinates carry as much information, for the prediction.

    >>> from discreet.attacks import trace
    >>> from discreet.noise import SeededBits
    >>> from discreet.noise.experiment import normals
    >>> bits = SeededBits(1)
    >>> group, reference, others = (normals((count, 200), bits=bits) for count in (20, 200, 50))
    >>> found = trace(group.mean(axis=0), reference, np.concatenate([group, others]), members=range(20), bits=bits)
    >>> found.recovered[:5].tolist(), found.coordinates, round(found.effective)
    ([0, 1, 2, 3, 4], 200, 198)
    """

    threshold: float
    allowed: float
    false_positives: float | None
    strangers: int
    coordinates: int
    effective: float

    def details(self) -> tuple[str, ...]:
        """Returns what the accusations cost, and what they rest on."""
        used = f"{self.coordinates:,} numbers were used, worth {self.effective:,.0f} independent ones."
        if self.false_positives is None:
            return (used,)
        wrong = f"{rate(self.false_positives)} of people outside were accused, {rate(self.allowed)} were allowed."
        return wrong, used

    def spec(self) -> Spec:
        """Returns the chart as a dictionary of Vega-Lite: members accused next to strangers accused."""
        if self.false_positives is None:
            return super().spec()
        found = {
            "members": wilson_interval(self.success, self.targets),
            "strangers": wilson_interval(self.false_positives, self.strangers),
        }
        marks = {"members, as predicted": self.predicted, "members, most possible": self.bound}
        known = {name: value for name, value in marks.items() if value is not None}
        return comparison_charts.rates(found, known, headline=self.headline, across="accused")


def accuse(
    scores: Floats,
    controls: Floats,
    *,
    members: Mask | None,
    false_positives: float,
    event: Event | None,
    **figures: Any,
) -> Tracing:
    """Returns the finding from scores of candidates and of people known to be outside.

    Formal guarantee: the threshold is the ceil((1 - alpha)(k + 1))-th smallest of k control scores, so that an outsider
    who is exchangeable with the controls is accused with probability at most alpha, whatever the law of the score
    (Vovk, Gammerman, Shafer 2005). The power against a release with a guarantee is then at most 1 - f(alpha), f the
    trade-off function of its event, on average over groups drawn from the same population.
    """
    threshold = threshold_of(controls, false_positives)
    accused = scores > threshold
    inside = accused if members is None else accused[members]
    outside = np.empty(0) if members is None else accused[~members]
    return Tracing(
        goal="candidates accused" if members is None else "members accused",
        success=float(np.mean(inside)),
        baseline=false_positives,
        targets=len(inside),
        bound=None if event is None else bound_of(event, false_positives),
        recovered=np.flatnonzero(accused),
        threshold=threshold,
        allowed=false_positives,
        false_positives=float(np.mean(outside)) if len(outside) else None,
        strangers=len(outside),
        **figures,
    )


def average_findings(findings: Sequence[Tracing]) -> Tracing:
    """Returns findings on several releases of the same data as one.

    The accused and the threshold are those of the last.

    The guarantee bounds what happens on average over the noise: one draw of it can be lucky for many members at once.
    """
    wrong = [found.false_positives for found in findings if found.false_positives is not None]
    return replace(
        findings[-1],
        success=float(np.mean([found.success for found in findings])),
        targets=sum(found.targets for found in findings),
        false_positives=float(np.mean(wrong)) if wrong else None,
        strangers=sum(found.strangers for found in findings),
    )


def bound_of(event: Event, false_positives: float) -> float:
    """Returns the largest power of any test with so many false positives, against a release with this event."""
    if isinstance(event, Pure):  # the same in closed form
        return ceiling(float(event.epsilon), false_positives)
    return 1 - accounting.trade_off(event, false_positives)


def threshold_of(controls: Floats, false_positives: float) -> float:
    """Returns the score that an exchangeable stranger exceeds with at most this probability.

    >>> threshold_of(np.arange(1.0, 100.0), 0.05)
    95.0
    """
    rank = math.ceil((1 - false_positives) * (len(controls) + 1) - 1e-9)
    if rank > len(controls):
        need = math.ceil(1 / false_positives - 1e-9) - 1
        hint = "Pass more controls, or allow more false positives."
        raise InvalidParameter("controls", f"{len(controls)} people", f"to be at least {need} people", hint)
    return float(np.partition(controls, rank - 1)[rank - 1])


def power(
    coordinates: float,
    n: int,
    *,
    noise: float = 0.0,
    reference: float = math.inf,
    effective: float | None = None,
    false_positives: float = 0.05,
) -> float:
    """Returns the power that theory predicts for the centred inner product, and for the likelihood ratio of genomes.

    With unit variances a member scores d/n more than a stranger, and scores have the variance (1/n + 1/r) |R|^2 + d
    sigma^2, where |R|^2 = d^2 / effective is d for independent coordinates: the power is Phi(d / (n sd) - z). With a
    known population and independent coordinates it is Phi(sqrt(d / (n + n^2 sigma^2)) - z) (Dwork, Smith, Steinke,
    Ullman, Vadhan 2015; Sankararaman, Obozinski, Jordan, Halperin 2009).

    Args:
        coordinates: d.
        n: people in the group.
        noise: sigma, in standard deviations of the coordinate.
        reference: people whose mean replaces that of the population.
        effective: how many independent coordinates carry as much information; None if all are independent.
        false_positives: alpha.

    >>> round(power(1000, 100), 3), round(power(5000, 100, noise=0.5), 3)
    (0.935, 0.398)
    """
    norm = coordinates**2 / (coordinates if effective is None else effective)
    spread = math.sqrt((1 / n + 1 / reference) * norm + coordinates * noise**2)
    return float(special.ndtr(coordinates / n / spread - special.ndtri(1 - false_positives)))


def effective_number(products: Floats) -> float:
    """Returns how many independent coordinates equal these in information, from products of standardised strangers.

    For two strangers E<z, z'>^2 = |R|^2, the sum of all squared correlations, so that d^2 / |R|^2 follows from the
    spread of the products off the diagonal; d is the mean of those on it.
    """
    count = len(products)
    if count < 3:
        return float(np.mean(np.diag(products)))
    off = products[np.triu_indices(count, 1)]
    total = float(np.mean(np.diag(products)))
    spread = float(np.var(off, ddof=1))
    return min(total, total**2 / spread) if spread > 0 else 1.0


def split(reference: Floats, controls: Any, bits: Bits | None) -> tuple[Floats, Floats]:
    """Returns the rows for the population and the rows that set the threshold; without controls, a half each."""
    if controls is not None:
        return reference, people(reference.shape[1], controls=controls)
    if len(reference) < 4:
        raise InvalidParameter("reference", f"{len(reference)} people", "to be at least 4", "Pass more people.")
    order = shuffle_indices(len(reference), bits=bits)
    half = len(reference) // 2
    return reference[order[:half]], reference[order[half:]]


def people(width: int | None = None, **parameter: Any) -> Floats:
    """Returns a table of numbers with one row for each person, all of them finite."""
    ((name, values),) = parameter.items()
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        hint = "Pass one row for each person."
        raise InvalidParameter(name, type(values).__name__, "to be a table of numbers", hint) from None
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise InvalidParameter(name, table.shape, "to be rows of finite numbers", "Pass one row for each person.")
    if width is not None and table.shape[1] != width:
        raise InvalidParameter(name, table.shape, f"to have {width} columns", "Give all people the same columns.")
    return table


def mask_of(members: Any, candidates: int) -> Mask | None:
    """Returns who is a member, as a mask: from a mask, or from places among the candidates."""
    if members is None:
        return None
    found = np.asarray(members)
    if found.dtype == bool and found.shape == (candidates,):
        mask = found
    elif found.dtype.kind in "iu" and found.ndim == 1 and found.size and 0 <= found.min() <= found.max() < candidates:
        mask = np.zeros(candidates, dtype=bool)
        mask[found] = True
    else:
        hint = "Pass a mask over the candidates, or the positions of members among them."
        raise InvalidParameter("members", members, f"to choose among {candidates} candidates", hint)
    if not mask.any():
        raise InvalidParameter("members", members, "to name at least one person", "Pass None if members are unknown.")
    return mask


def allowed_rate(false_positives: check.Number) -> float:
    """Returns the rate of false positives, strictly between 0 and 1."""
    return float(check.probability(false_positives=false_positives))
