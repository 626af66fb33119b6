"""Findings and comparisons as parts of a page, for readers who have never heard of epsilon."""

from __future__ import annotations

from discreet.report import blocks
from discreet.report.display import rate
from discreet.report.finding import Comparison, Finding, Trial
from discreet.report.html import Html
from discreet.report.page import page

EPSILON = (
    "Epsilon says how much one person's data may change what is published: the smaller it is, the less can be learned "
    "about anybody. Noise is added until no outcome becomes more than e^epsilon times likelier through one person, "
    "which is 1.1 times at epsilon 0.1, 2.7 times at epsilon 1, and 20 times at epsilon 3. From that follows the most "
    "that any attacker can reach, however clever and however much they know already: the dashed line."
)
_COLUMNS = ("what was released", "attack succeeds (95 % interval)", "by guessing", "most possible")


def found(finding: Finding) -> list[Html]:
    """One finding: its words and its chart."""
    figure = blocks.figure(finding.spec(), caption=_sampling(finding), description=finding.summary())
    return [blocks.paragraph(finding.summary()), figure]


def compared(comparison: Comparison) -> list[Html]:
    """A comparison: its chart and its table."""
    rows = [_row(trial) for trial in comparison]
    caption = f"{comparison.raw.attack}, on each release"
    table = blocks.table(_COLUMNS, rows, caption=caption, numbers=_COLUMNS[1:])
    figure = blocks.figure(comparison.spec(), caption=_reading(comparison), description=comparison.summary())
    return [figure, table]


def finding_page(*parts: Finding | Comparison) -> str:
    """A whole document about one attack."""
    first = parts[0] if isinstance(parts[0], Finding) else parts[0].raw
    inside = [piece for part in parts for piece in (found(part) if isinstance(part, Finding) else compared(part))]
    if any(isinstance(part, Comparison) for part in parts):
        inside.append(blocks.paragraph(EPSILON, kind="small"))
    lead = "What somebody who holds this release can find out about the people in it."
    return page(first.attack, *inside, lead=lead)


def _row(trial: Trial) -> tuple[str, ...]:
    finding = trial.finding
    most = "no limit known" if finding.bound is None else rate(finding.bound)
    return trial.defence, finding.with_interval, rate(finding.baseline), most


def _sampling(finding: Finding) -> str:
    return f"Share of {finding.targets:,} targets; the line at its end is where the rate lies with 95 % chance."


def _reading(comparison: Comparison) -> str:
    raw = comparison.raw
    return (
        f"Dots: measured on {raw.targets:,} targets, with 95 % intervals. Dashed: the most that anybody can reach. "
        "Dotted: releases without a guarantee, and a guess."
    )
