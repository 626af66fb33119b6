"""What an attack found, and the same attack beside defences: figures, a sentence for people, a chart.

A `Finding` is about one release. Attacks add figures of their own in subclasses. A `Comparison` puts the findings on a
raw release, on ad-hoc defences and on private releases side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from discreet.report import comparison_charts
from discreet.report.charts import Spec
from discreet.report.display import rate
from discreet.report.render import chart

RAW = "no defence"
"""The name of a release that nothing protects."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """How far an attack came.

    Attributes:
        attack: what was tried, in a few words that begin with a capital.
        goal: what the success rate is a share of, as in "people named rightly".
        success: the share of targets for which the attack was right.
        baseline: the share that somebody reaches who never saw the release.
        targets: how many targets the rate was measured on.
        predicted: the rate that theory predicts, where it does.
        bound: the largest rate that the guarantee of the release allows anybody; None without a guarantee.
        recovered: reconstructed values, matched pairs or members, where there are any.
    """

    attack: str
    goal: str
    success: float
    baseline: float
    targets: int
    predicted: float | None = None
    bound: float | None = None
    recovered: Any = None

    @property
    def advantage(self) -> float:
        """By how much the attack beats a guess."""
        return self.success - self.baseline

    @property
    def with_interval(self) -> str:
        """The rate with its 95 % interval, which a bound may well lie in: rates are measured on some targets only."""
        share, low, high = sampled(self.success, self.targets)
        return f"{rate(share)} ({rate(low)} to {rate(high)})"

    def summary(self) -> str:
        """The finding in plain sentences.

        >>> print(Finding(attack="Linkage", goal="people named", success=0.87, baseline=0.001, targets=1000).summary())
        Linkage: 87 % of 1,000 people named; a guess reaches 0.1 %.
        """
        known = [f"{rate(self.success)} of {self.targets:,} {self.goal}", f"a guess reaches {rate(self.baseline)}"]
        if self.predicted is not None:
            known.append(f"theory predicts {rate(self.predicted)}")
        if self.bound is not None:
            known.append(f"the guarantee allows at most {rate(self.bound)}")
        return " ".join([f"{self.attack}: {'; '.join(known)}.", *self.details()])

    def details(self) -> tuple[str, ...]:
        """Sentences about the attack's own figures."""
        return ()

    @property
    def headline(self) -> str:
        """The finding as the title of a chart."""
        return f"{self.attack}: {rate(self.success)} of {self.goal}, {rate(self.baseline)} by guessing"

    def spec(self) -> Spec:
        """The chart as a dictionary of Vega-Lite: the rate with its sampling error, beside what it is compared with."""
        marks = {"by guessing": self.baseline, "as predicted": self.predicted, "most possible": self.bound}
        known = {name: value for name, value in marks.items() if value is not None}
        return comparison_charts.rates(
            {"this attack": sampled(self.success, self.targets)}, known, headline=self.headline, across=self.goal
        )

    def chart(self) -> Any:
        """An Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())


@dataclass(frozen=True, kw_only=True)
class Trial:
    """An attack on one release.

    Attributes:
        defence: what was done to the release, as in "no defence", "rounded to 10" or "epsilon 1".
        epsilon: of a private release, for all of it together; None for others.
        finding: how far the attack came.
    """

    defence: str
    epsilon: float | None
    finding: Finding


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The same attack on several releases of the same data.

    Attributes:
        trials: the raw release first, then ad-hoc defences, then private releases by growing epsilon.
        ceiling: pairs of an epsilon and the largest rate it allows anybody, for the curve of the bound.
    """

    trials: tuple[Trial, ...]
    ceiling: tuple[tuple[float, float], ...]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    def __getitem__(self, defence: str) -> Finding:
        """The finding on a release, by its defence."""
        return {trial.defence: trial.finding for trial in self.trials}[defence]

    @property
    def raw(self) -> Finding:
        """On the release that nothing protects."""
        return self.trials[0].finding

    @property
    def private(self) -> tuple[Trial, ...]:
        """On private releases."""
        return tuple(trial for trial in self.trials if trial.epsilon is not None)

    def summary(self) -> str:
        """One line for each release."""
        width = max(len(trial.defence) for trial in self.trials)
        return "\n".join([self.headline, *(_line(trial, width) for trial in self.trials)])

    @property
    def headline(self) -> str:
        """The comparison as the title of a chart."""
        raw, strong = self.raw, min(self.private, key=lambda trial: trial.epsilon or math.inf, default=self.trials[0])
        private = f"{rate(strong.finding.success)} at {strong.defence}"
        return f"{raw.attack}: {rate(raw.success)} of {raw.goal} from the raw release, {private}"

    def spec(self) -> Spec:
        """Success against epsilon, with the bound, the ad-hoc defences and chance as lines."""
        lines = {trial.defence: trial.finding.success for trial in self.trials if trial.epsilon is None}
        found = {
            trial.epsilon: sampled(trial.finding.success, trial.finding.targets)
            for trial in self.private
            if trial.epsilon
        }
        return comparison_charts.against_epsilon(
            found,
            ceiling=self.ceiling,
            lines=lines | {"chance": self.raw.baseline},
            headline=self.headline,
            title=self.raw.goal,
        )

    def chart(self) -> Any:
        """An Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())


def sampled(share: float, targets: int) -> tuple[float, float, float]:
    """A rate with the ends of its 95 % interval (Wilson 1927), which lie in [0, 1].

    >>> [round(end, 3) for end in sampled(0.5, 100)]
    [0.5, 0.404, 0.596]
    """
    z = 1.959964
    centre = (share + z * z / (2 * targets)) / (1 + z * z / targets)
    reach = z / (1 + z * z / targets) * math.sqrt(share * (1 - share) / targets + z * z / (4 * targets**2))
    return share, max(0.0, centre - reach), min(1.0, centre + reach)


def _line(trial: Trial, width: int) -> str:
    finding = trial.finding
    bound = "" if finding.bound is None else f", at most {rate(finding.bound)} possible"
    return f"  {trial.defence:<{width}}  {finding.with_interval} of {finding.goal}{bound}"
