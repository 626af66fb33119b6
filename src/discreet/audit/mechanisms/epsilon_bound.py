"""Findings of an audit: the certified bound next to the claim, and what neither can show.

A claim is an epsilon at a delta, and a mu of Gaussian DP where the event is Gaussian.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import accounting, check
from discreet.accounting import gdp
from discreet.accounting.composition import basic, exact_delta, terms
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import float_above
from discreet.mechanisms import Mechanism
from discreet.mechanisms.randomized_response import clopper_pearson
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.report import comparison_charts
from discreet.report.charts import Spec
from discreet.report.display import Display, DisplayMixin, rate
from discreet.report.render import chart

DELTA = Fraction(1, 10**5)  # at which a curve without a delta of its own is looked at


@dataclass(frozen=True, slots=True)
class Claim:
    """States an epsilon that holds at a delta, and the mu of Gaussian DP where that is claimed."""

    epsilon: float
    delta: float
    mu: float | None = None


def claim_of(
    mechanism: object,
    *,
    epsilon: check.Number | None,
    delta: check.Number | None,
    event: Event | None,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Claim:
    """Returns the claim of a mechanism, by its own event, by another one, or by numbers.

    Raises:
        InvalidParameter: if nothing is claimed, or two things are.
    """
    if epsilon is not None:
        if event is not None:
            raise InvalidParameter("epsilon", epsilon, "to be left out", "The event says what is claimed.")
        exact = check.not_negative(epsilon=epsilon)
        return Claim(float_above(exact), float_above(exact_delta(0 if delta is None else delta)))
    known = event or (mechanism.event if isinstance(mechanism, Mechanism) else None)
    if known is None:
        raise InvalidParameter("epsilon", None, "to be given", "Pass what is claimed, e.g. epsilon=1, delta=1e-6.")
    at = own_delta(known) if delta is None else exact_delta(delta)
    return Claim(accounting.epsilon(known, at, neighbours=neighbours), float_above(at), _mu(known))


def own_delta(event: Event) -> Fraction:
    """Returns the delta at which an event is looked at: what its promises add up to, and a little where it has a curve.

    >>> own_delta(events.Pure(1)), own_delta(events.Approx(1, 1e-6))
    (Fraction(0, 1), Fraction(1, 1000000))
    """
    total, curves = Fraction(0), False
    for part, count in terms(event).items():
        try:
            total += count * basic(part).delta
        except UnsupportedEvent:
            curves = True
    return total + (DELTA if curves else 0)


def _mu(event: Event) -> float | None:
    """Returns the mu of a list of Gaussian releases; None for all others, discrete Gaussian ones included."""
    parts = terms(event)
    if not parts or not all(isinstance(part, events.Gaussian) for part in parts):
        return None
    return float_above(gdp.compose(parts).mu)


@dataclass(frozen=True, kw_only=True)
class LowerBound(DisplayMixin):
    """Reports a certified lower bound on epsilon, next to the claim.

    Attributes:
        mechanism: what was audited.
        epsilon_lower: whatever is private here is so with no smaller epsilon, at this delta, with this confidence.
        epsilon_claimed: what the mechanism says of itself.
        delta: at which both are meant.
        confidence: the probability, over the runs, that the bound holds.
        runs: how often the mechanism ran.
        most: the largest bound that so many runs could have certified.
    """

    mechanism: str
    epsilon_lower: float
    epsilon_claimed: float
    delta: float
    confidence: float
    runs: int
    most: float

    @property
    def passed(self) -> bool:
        """Returns whether the claim survived: true does not say that it holds, false says that it does not."""
        return self.epsilon_lower <= self.epsilon_claimed

    @property
    def headline(self) -> str:
        """Returns the finding as the title of a chart."""
        verdict = "not refuted" if self.passed else "refuted"
        found = f"epsilon is at least {self.epsilon_lower:.3g}, claimed {self.epsilon_claimed:.3g}"
        return f"{self.mechanism}: {found}: {verdict}"

    def summary(self) -> str:
        """Returns the finding in plain sentences, with what it does not say."""
        return " ".join(filter(None, [self._bound_text(), *self.details(), self._meaning(), self._limits()]))

    def details(self) -> tuple[str, ...]:
        """Returns sentences about how it was found."""
        return ()

    @abstractmethod
    def spec(self) -> Spec:
        """Returns the chart as a dictionary of Vega-Lite."""

    def chart(self) -> Any:
        """Returns an Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())

    def _display(self) -> Display:
        at = f" at delta {self.delta:.3g}" if self.delta else ""
        rows = [
            ("epsilon, certified", f"at least {self.epsilon_lower:.3f}{at}, with confidence {self.confidence:.6g}"),
            ("epsilon, claimed", f"{self.epsilon_claimed:.3f}"),
            ("runs", f"{self.runs:,}, which could have certified at most {self.most:.2f}"),
            ("verdict", "the claim is not refuted" if self.passed else "the claim is refuted"),
        ]
        return Display(title=self.mechanism, columns=("", ""), rows=rows, notes=(*self.details(), self._meaning()))

    def _bound_text(self) -> str:
        at = f" at delta {self.delta:.3g}" if self.delta else ""
        return (
            f"{self.mechanism}: epsilon is at least {self.epsilon_lower:.3f}{at}, with confidence "
            f"{self.confidence:.6g}; claimed is {self.epsilon_claimed:.3f}."
        )

    def _meaning(self) -> str:
        if self.passed:
            known = "it is the best that one search found, not the worst there is"
            return f"The claim is not refuted. This proves nothing: {known}."
        return f"The claim is false, unless an event of chance below {1 - self.confidence:.2g} happened."

    def _limits(self) -> str:
        if not self.passed:
            return ""
        reach = f"This many runs could have certified at most {self.most:.2f}"
        if self.most < self.epsilon_claimed:
            return f"{reach}, less than the claim: this audit could not have failed. Run more."
        return f"{reach}."


@dataclass(frozen=True, kw_only=True)
class Audit(LowerBound):
    """Reports many runs on each of two datasets and one event: see `distinguish`.

    Attributes:
        event: the event in words.
        likelier_on: "a" or "b", the dataset on which it was expected to fall more often.
        first: how often it fell there, in runs that the search never saw.
        second: how often it fell on the other.
        counted: how many such runs there were on each.
        mu_lower: the certified mu, where Gaussian DP is claimed.
        mu_claimed: the claimed one.
    """

    event: str
    likelier_on: str
    first: int
    second: int
    counted: int
    mu_lower: float | None = None
    mu_claimed: float | None = None

    @property
    def passed(self) -> bool:
        """Returns whether the claim survived, in epsilon and, where it is claimed, in mu."""
        if self.mu_lower is not None and self.mu_claimed is not None and self.mu_lower > self.mu_claimed:
            return False
        return self.epsilon_lower <= self.epsilon_claimed

    def details(self) -> tuple[str, ...]:
        """Returns which event it was, and how often it fell."""
        other = "b" if self.likelier_on == "a" else "a"
        fell = (
            f'The event "{self.event}" fell in {self.first:,} of {self.counted:,} runs on {self.likelier_on} and in '
            f"{self.second:,} on {other}; it was chosen on other runs."
        )
        if self.mu_lower is None:
            return (fell,)
        return fell, f"As Gaussian DP: mu is at least {self.mu_lower:.3f}, claimed {self.mu_claimed:.3f}."

    def spec(self) -> Spec:
        """Returns both rates of the event with their limits, and the most that the claim allows next to the second."""
        outside = 1 - self.confidence
        shown = {}
        for name, hits in ((self.likelier_on, self.first), ("b" if self.likelier_on == "a" else "a", self.second)):
            low, high = clopper_pearson(np.array(hits), self.counted, outside)
            shown[f"on {name}"] = (hits / self.counted, float(low), float(high))
        upper = shown["on b" if self.likelier_on == "a" else "on a"][2]
        allowed = math.exp(min(self.epsilon_claimed, 700.0)) * upper + self.delta
        contrary = 1 - math.exp(-self.epsilon_claimed) * (1 - upper - self.delta)
        marks = {"most that the claim allows": min(1.0, allowed, contrary)}
        return comparison_charts.rates(shown, marks, headline=self.headline, across="runs in which the event fell")


@dataclass(frozen=True, kw_only=True)
class OneRun(LowerBound):
    """Reports guesses about many canaries in one run: see `one_run`.

    Attributes:
        canaries: how many there were.
        guesses: about how many of them a guess was made.
        correct: how many guesses were right.
    """

    canaries: int
    guesses: int
    correct: int

    def details(self) -> tuple[str, ...]:
        """Returns what was guessed."""
        share = rate(self.correct / self.guesses)
        told = f"{self.correct:,} of {self.guesses:,} guesses were right ({share})"
        return (f"One run with {self.canaries:,} canaries, each in or out by a fair coin: {told}.",)

    def spec(self) -> Spec:
        """Returns the share of right guesses next to chance and what the claim allows on average."""
        low, high = clopper_pearson(np.array(self.correct), self.guesses, 1 - self.confidence)
        found = {"right guesses": (self.correct / self.guesses, float(low), float(high))}
        allowed = 1 / (1 + math.exp(-min(self.epsilon_claimed, 700.0)))
        marks = {"chance": 0.5, "most on average at the claim": allowed}
        return comparison_charts.rates(found, marks, headline=self.headline, across="right guesses")
