"""Privacy and robustness as a page: what contamination does to private, robust and other estimators."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from discreet.attacks import (
    Robustness,
    backdoor_under_privacy,
    labels_under_lies,
    location_under_outliers,
    silent_after,
)
from discreet.noise import Bits
from discreet.privacy import PureDP
from discreet.report import page
from discreet.report.html import Html

FILE, LAB = "robustness.html", "lab.html"
_TITLES = {"outliers": "Numbers that are wrong", "labels": "Labels that lie", "backdoor": "A planted pattern"}
_TOLD = {
    "outliers": (
        "A thousand numbers around 50, of which some were replaced by 1000. A private mean follows them as any mean "
        "does: bounds limit the harm to a share of their width. The private median and the private Huber centre stay "
        "with the majority, and without any outlier they are nearer to the truth than the private mean, since noise "
        "covers what one row could do, and to them a row can do little. Near one half all of them break."
    ),
    "labels": (
        "Some rows of one class say that they are of the other. A private model bounds what a row may pull, which "
        "delays the harm a little, and its noise does nothing. If most of a class lies, every model learns the lie."
    ),
    "backdoor": (
        "Somebody adds rows that bear a pattern, under a label of their choice. A few are enough against a plain "
        "model. A small epsilon asks for many more: the dashed curves are the most that so many added rows can do. "
        "Whoever can add one row in twenty wins all the same."
    ),
}


def contaminated(*, bits: Bits | None = None) -> dict[str, Robustness]:
    """Returns the experiments, by name; those on models need scikit-learn and are left out without it.

    Args:
        bits: the source of all randomness; None is the secure one.
    """
    found = {"outliers": location_under_outliers(shares=(0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4), runs=3, bits=bits)}
    if find_spec("sklearn") is None:
        return found
    lies = labels_under_lies(1000, shares=(0, 0.1, 0.2, 0.3, 0.4), epsilons=(1,), runs=2, bits=bits)
    planted = backdoor_under_privacy(600, planted=(0, 3, 6, 30, 60), runs=6, bits=bits)
    return found | {"labels": lies, "backdoor": planted}


def write_robust(found: dict[str, Robustness], folder: Path) -> Path:
    """Writes the page, over an older one, and says where it is.

    Raises:
        MissingExtra: if charts cannot be drawn; nothing is written.
    """
    text = robust(found)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    return path


def robust(found: dict[str, Robustness]) -> str:
    """Returns the whole page."""
    lead = (
        "A private release depends little on any one row, a robust one little on rows that are wrong. Where the two "
        "meet, and where they do not."
    )
    sections = [page.section(name, _TITLES[name], *_shown(name, curves)) for name, curves in found.items()]
    contents = {name: _TITLES[name] for name in found} | {"promise": "What privacy promises"}
    back = page.paragraph(page.link("The lab of attacks", LAB))
    promise = page.section("promise", contents["promise"], page.paragraph(_promise((0.1, 1))))
    return page.document("Privacy and robustness", *sections, promise, back, lead=lead, contents=contents)


def _shown(name: str, curves: Robustness) -> list[Html]:
    caption = "Dots: what was measured, with its spread over runs."
    if curves.allowed:
        caption += " Dashed: the most that the guarantee allows."
    figure = page.figure(curves.spec(), caption=caption, description=curves.summary())
    return [page.paragraph(_TOLD[name]), figure]


def _promise(epsilons: Sequence[float]) -> str:
    """Returns what group privacy says, in a sentence for each epsilon."""
    told = [f"{silent_after(PureDP(epsilon), 0.01)} changed rows at epsilon {epsilon:g}" for epsilon in epsilons]
    return (
        "Whatever happens once in a hundred times stays the less likely outcome until "
        f"{' or '.join(told)}: so far goes the promise about a group of rows, however many rows there are in all. It "
        "protects against a handful of wrong rows and not against a share of them."
    )
