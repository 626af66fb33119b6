"""Findings of an attack, and of the same attack against defences: figures, a sentence for people, a chart.

A `Finding` is about one release. Attacks add figures of their own in subclasses. A `Comparison` puts the findings on a
raw release, on ad-hoc defences and on private releases side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from discreet.dataclass import dataclass
from discreet.report import comparison_charts, page
from discreet.report.charts import Spec
from discreet.report.display import Display, DisplayMixin, rate
from discreet.report.html import Html
from discreet.report.render import chart

RAW = "no defence"
"""The name of a release that nothing protects."""

COLUMNS = ("what was released", "attack succeeds (95 % interval)", "by guessing", "most possible")
"""The headings of a comparison."""

EPSILON = (
    "Epsilon limits how much one person's data can change what is published. The smaller it is, the less an attacker "
    "can learn about any one person. Noise keeps every outcome at most e^epsilon times likelier with one person's data "
    "than without. That factor is 1.1 at epsilon 0.1, 2.7 at epsilon 1, and 20 at epsilon 3. The dashed line follows "
    "from it: no attacker can do better, however clever they are and whatever they know already."
)


@dataclass(frozen=True, kw_only=True)
class Finding(DisplayMixin):
    """The success of an attack on one release; `print` shows it with what it is compared with.

    >>> print(Finding(attack="Linkage", goal="people named", success=0.87, baseline=0.001, targets=1000))
    Linkage
    attack succeeds (95 % interval)  87 % (85 % to 89 %) of 1,000 people named
    by guessing                      0.1 %
    verdict                          better than a guess; no guarantee limits it

    Attributes:
        attack: what was tried, in a few words that begin with a capital.
        goal: what the success rate is a share of, as in "people named rightly".
        success: the share of targets for which the attack was right.
        baseline: the share that an attacker reaches without the release.
        targets: how many targets the rate was measured on.
        predicted: the rate that theory predicts, where it does.
        bound: the largest rate that the guarantee of the release allows; None without a guarantee.
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
    def with_interval(self) -> str:
        """Returns the rate with its 95 % interval, which a bound may well lie in.

        Rates are measured on some targets only.
        """
        share, low, high = wilson_interval(self.success, self.targets)
        return f"{rate(share)} ({rate(low)} to {rate(high)})"

    def summary(self) -> str:
        """Returns the finding in plain sentences.

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
        """Returns sentences about the attack's own figures."""
        return ()

    @property
    def headline(self) -> str:
        """Returns the finding as the title of a chart."""
        return f"{self.attack}: {rate(self.success)} of {self.goal}, {rate(self.baseline)} by guessing"

    def spec(self) -> Spec:
        """Returns the chart as a dictionary of Vega-Lite.

        It shows the rate with its sampling error, and what it is compared with.
        """
        marks = {"by guessing": self.baseline, "as predicted": self.predicted, "most possible": self.bound}
        known = {name: value for name, value in marks.items() if value is not None}
        return comparison_charts.rates(
            {"this attack": wilson_interval(self.success, self.targets)},
            known,
            headline=self.headline,
            across=self.goal,
        )

    def chart(self) -> Any:
        """Returns an Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())

    @property
    def verdict(self) -> str:
        """Returns what the rate means for the release, with the sampling error considered."""
        _, low, _ = wilson_interval(self.success, self.targets)
        if self.bound is not None:
            beyond = low > self.bound
            return "more than the guarantee allows (95 % sure)" if beyond else "within what the guarantee allows"
        return "better than a guess; no guarantee limits it" if low > self.baseline else "no better than a guess"

    def _display(self) -> Display:
        compared = (("by guessing", self.baseline), ("as predicted", self.predicted), ("most possible", self.bound))
        rates = [(name, rate(value)) for name, value in compared if value is not None]
        success = ("attack succeeds (95 % interval)", f"{self.with_interval} of {self.targets:,} {self.goal}")
        rows = [success, *rates, ("verdict", self.verdict)]
        return Display(title=self.attack, columns=("", ""), rows=rows, notes=self.details())


@dataclass(frozen=True, kw_only=True)
class Trial:
    """An attack on one release.

    Attributes:
        defence: what was done to the release, as in "no defence", "rounded to 10" or "epsilon 1".
        epsilon: of a private release, for all of it together; None for others.
        finding: how far the attack came.

    >>> from discreet.attacks import uniqueness
    >>> from discreet.noise import SeededBits
    >>> people = {"zip": ["10", "11", "20", "21"] * 5, "illness": ["flu", "flu", "asthma", "cancer"] * 5}
    >>> found = uniqueness.compare(people, ["zip"], sensitive="illness", epsilons=[0.1, 1], bits=SeededBits(1))
    >>> [(trial.epsilon, trial.finding.success, round(trial.finding.bound, 2)) for trial in found.private]
    [(0.1, 0.5, 0.55), (1.0, 0.95, 0.97)]
    """

    defence: str
    epsilon: float | None
    finding: Finding


@dataclass(frozen=True, kw_only=True)
class Comparison(DisplayMixin):
    """The same attack on several releases of the same data.

    Attributes:
        trials: the raw release first, then ad-hoc defences, then private releases by growing epsilon.
        ceiling: pairs of an epsilon and the largest rate it allows, for the curve of the bound.

    >>> from discreet.attacks import uniqueness
    >>> from discreet.noise import SeededBits
    >>> people = {"zip": ["10", "11", "20", "21"] * 5, "illness": ["flu", "flu", "asthma", "cancer"] * 5}
    >>> found = uniqueness.compare(people, ["zip"], sensitive="illness", epsilons=[0.1, 1], bits=SeededBits(1))
    >>> [trial.defence for trial in found]
    ['no defence', '5-anonymous', 'counts below 5 left out', 'epsilon 0.1', 'epsilon 1']
    >>> found.raw.success, found["5-anonymous"].success, found["epsilon 0.1"].success
    (1.0, 1.0, 0.5)
    """

    trials: tuple[Trial, ...]
    ceiling: tuple[tuple[float, float], ...]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    def __getitem__(self, defence: str) -> Finding:
        """Returns the finding on a release, by its defence."""
        return {trial.defence: trial.finding for trial in self.trials}[defence]

    @property
    def raw(self) -> Finding:
        """Returns the finding on the release that nothing protects."""
        return self.trials[0].finding

    @property
    def private(self) -> tuple[Trial, ...]:
        """Returns the trials on private releases."""
        return tuple(trial for trial in self.trials if trial.epsilon is not None)

    def summary(self) -> str:
        """Returns the comparison as text, one line for each release."""
        width = max(len(trial.defence) for trial in self.trials)
        return "\n".join([self.headline, *(_line(trial, width) for trial in self.trials)])

    @property
    def headline(self) -> str:
        """Returns the comparison as the title of a chart."""
        raw, strong = self.raw, min(self.private, key=lambda trial: trial.epsilon or math.inf, default=self.trials[0])
        private = f"{rate(strong.finding.success)} at {strong.defence}"
        return f"{raw.attack}: {rate(raw.success)} of {raw.goal} from the raw release, {private}"

    def spec(self) -> Spec:
        """Returns success against epsilon, with the bound, the ad-hoc defences and chance as lines."""
        lines = {trial.defence: trial.finding.success for trial in self.trials if trial.epsilon is None}
        found = {
            trial.epsilon: wilson_interval(trial.finding.success, trial.finding.targets)
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
        """Returns an Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())

    def _display(self) -> Display:
        rows, counted = [comparison_row(trial) for trial in self.trials], f"{self.raw.targets:,} {self.raw.goal}"
        return Display(
            title=self.headline, columns=COLUMNS, rows=rows, numbers=COLUMNS[1:], notes=(f"Shares of {counted}.",)
        )


def comparison_row(trial: Trial) -> tuple[str, ...]:
    """Returns the cells of a trial below `COLUMNS`."""
    finding = trial.finding
    most = "no limit known" if finding.bound is None else rate(finding.bound)
    return trial.defence, finding.with_interval, rate(finding.baseline), most


def wilson_interval(share: float, targets: int) -> tuple[float, float, float]:
    """Returns a rate with the ends of its 95 % interval (Wilson 1927), which lie in [0, 1].

    >>> [round(end, 3) for end in wilson_interval(0.5, 100)]
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


def finding_section(finding: Finding, *told: Html) -> list[Html]:
    """Returns the words and the chart of a finding as parts of a page, after the parts that are given."""
    figure = page.figure(finding.spec(), caption=_sampling(finding), description=finding.summary())
    return [page.beside(page.group(*told, page.paragraph(finding.summary())), figure)]


def comparison_section(comparison: Comparison, *told: Html) -> list[Html]:
    """Returns the chart of a comparison above its table, with the given parts next to it; else the two side by side."""
    rows = [comparison_row(trial) for trial in comparison]
    caption = f"{comparison.raw.attack}, on each release"
    table = page.table(COLUMNS, rows, caption=caption, numbers=COLUMNS[1:])
    figure = page.figure(comparison.spec(), caption=_reading(comparison), description=comparison.summary())
    return [page.beside(page.group(*told), figure), table] if told else [page.beside(figure, table)]


def finding_page(*parts: Finding | Comparison) -> str:
    """Returns a whole document about one attack."""
    first = parts[0] if isinstance(parts[0], Finding) else parts[0].raw
    sections = [finding_section(part) if isinstance(part, Finding) else comparison_section(part) for part in parts]
    inside = [piece for section in sections for piece in section]
    if any(isinstance(part, Comparison) for part in parts):
        inside.append(page.paragraph(EPSILON, kind="small"))
    lead = "What an attacker with this release can find out about the people in it."
    return page.document(first.attack, *inside, lead=lead)


def _sampling(finding: Finding) -> str:
    return f"Share of {finding.targets:,} targets; the line at its end is the 95 % interval of the rate."


def _reading(comparison: Comparison) -> str:
    raw = comparison.raw
    return (
        f"Dots: measured on {raw.targets:,} targets, with 95 % intervals. Dashed: the most any attacker can reach. "
        "Dotted: releases without a guarantee, and a guess."
    )


def attack_document(value: Any) -> Any:
    """Returns a value as JSON has it: dataclasses as objects, arrays as lists, what is not finite as null."""
    if isinstance(value, Comparison):
        value = {"trials": value.trials, "ceiling": value.ceiling}
    elif hasattr(value, "__dataclass_fields__"):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): attack_document(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [attack_document(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
