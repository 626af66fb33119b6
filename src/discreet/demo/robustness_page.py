"""Privacy and robustness as a page: what contamination does to private, robust and other estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from discreet.attacks import (
    backdoor_under_privacy,
    labels_under_lies,
    location_under_outliers,
    regression_under_outliers,
    silent_after,
)
from discreet.attacks.robustness import Robustness
from discreet.noise import Bits
from discreet.privacy import PureDP
from discreet.report import page
from discreet.report.display import amount, percent, rate
from discreet.report.html import Html

FILE, LAB = "robustness.html", "lab.html"
_TITLES = {
    "outliers": "Means: numbers that are wrong",
    "regression": "Regression: targets that are wrong",
    "labels": "Classification: labels that are wrong",
    "backdoor": "A planted pattern",
}
_TOLD = {
    "outliers": (
        "Some of a thousand numbers around 50 were replaced by 1000. A private mean follows them as any mean does: "
        "bounds limit the harm to a share of their width. Noise covers what one row can change. One row changes a "
        "robust centre little, so a robust centre needs little noise."
    ),
    "regression": (
        "Some of two thousand points around the line 10 + 3 x have the value 100, whatever x is. Each of those pulls "
        "least squares, with or without noise. Huber's line bounds how much one point can pull, which privacy needs "
        "anyway. The private line is nearly as good as the one without privacy."
    ),
    "labels": (
        "Some rows of one class are labelled as the other. A private model bounds what one row can change, which "
        "delays the harm a little. Its noise does not help. If most of a class is wrong, every model learns the error."
    ),
    "backdoor": (
        "An attacker adds rows with a pattern, under a label of their choice. A few rows are enough against a plain "
        "model. A small epsilon takes many more. The dashed curves are the most that so many added rows can do."
    ),
}
Claim = tuple[str, bool]
"""A sentence with what was measured, and whether it bears the claim out."""


def run_contamination(*, bits: Bits | None = None) -> dict[str, Robustness]:
    """Returns the experiments, by name; those on models need scikit-learn and are left out without it.

    Args:
        bits: the source of all randomness; None is the secure one.
    """
    found = {"outliers": location_under_outliers(shares=(0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.55), runs=5, bits=bits)}
    if find_spec("sklearn") is None:
        return found
    lines = regression_under_outliers(shares=(0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4), runs=3, bits=bits)
    lies = labels_under_lies(1000, shares=(0, 0.1, 0.2, 0.3, 0.4), epsilons=(1,), runs=2, bits=bits)
    planted = backdoor_under_privacy(600, planted=(0, 3, 6, 30, 60), runs=6, bits=bits)
    return found | {"regression": lines, "labels": lies, "backdoor": planted}


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
        "A private release depends little on any one row. A robust release depends little on rows that are wrong. This "
        "page shows where the two agree, and where they do not."
    )
    sections = [page.section(name, _TITLES[name], *_render_experiment(name, curves)) for name, curves in found.items()]
    contents = {name: _TITLES[name] for name in found} | {"promise": "What privacy guarantees"}
    back = page.paragraph(page.link("The lab of attacks", LAB))
    promise = page.section("promise", contents["promise"], page.paragraph(_promise((0.1, 1))))
    return page.document("Privacy and robustness", *sections, promise, back, lead=lead, contents=contents)


def _render_experiment(name: str, curves: Robustness) -> list[Html]:
    """Returns the text and the claims next to the chart, above the table of all that was measured."""
    told = [*map(_format_claim, _CLAIMS[name](curves))]
    words = page.group(page.paragraph(_TOLD[name]), page.bullets(*told, kind="claims"))
    figure = page.figure(curves.spec(), caption=_caption(curves), description=curves.summary())
    return [page.beside(words, figure), _table(curves)]


def _caption(curves: Robustness) -> str:
    dashed = ["Dashed: the most that the guarantee allows."] if curves.allowed else []
    on_others = curves.overlapping_curves or ["No curve lies on another."]
    return " ".join(["Dots: what was measured, with its spread over runs.", *dashed, *on_others])


def _format_claim(claim: Claim) -> str:
    text, holds = claim
    return f"{'✓ Holds' if holds else '✗ Not in this run'}: {text}"


def _table(curves: Robustness) -> Html:
    shares = [share for share, _ in next(iter(curves.found.values()))]
    columns = ("", *(percent(round(share, 4)) for share in shares))
    shown: Callable[[float], str] = rate if curves.shares else lambda value: amount(float(f"{value:.2g}"))
    rows = [(name, *(shown(value) for _, (value, _, _) in points)) for name, points in curves.found.items()]
    title = curves.title.removesuffix(" (log scale)")
    return page.table(columns, rows, caption=f"{title}, by {curves.across}", numbers=columns[1:])


def _promise(epsilons: Sequence[float]) -> str:
    """Returns what group privacy says, in a sentence for each epsilon."""
    told = [f"{silent_after(PureDP(epsilon), 0.01)} changed rows at epsilon {epsilon:g}" for epsilon in epsilons]
    return (
        "An outcome that happens once in a hundred times stays less likely than not until "
        f"{' or '.join(told)}. This is how far the guarantee goes for a group of rows, however many rows there are in "
        "all. It protects against a handful of wrong rows, and not against a share of all rows."
    )


# ------------------------------------------------------------------------------------------------------------- claims


def _about_means(found: Robustness) -> list[Claim]:
    mean, private = found.at("mean", 0.1), found.at("private mean", 0.1)
    median, huber = (found.at(f"private {name}", 0.3) for name in ("median", "Huber"))
    clean = {name: found.at(f"private {name}", 0) for name in ("mean", "median", "Huber")}
    last, nearest = next(iter(found.found.values()))[-1][0], min(found.at(name, 1) for name in found.found)
    fragile = f"a private mean is as fragile as a mean; with 10 % of outliers, off by {private:.0f} and {mean:.0f}."
    robust = f"with 30 % the private median is off by {median:.1f} and the private Huber centre by {huber:.1f}."
    cheap = f"without outliers they are off by {clean['median']:.2f} and {clean['Huber']:.2f}"
    broken = f"beyond one half, all of them break: with {percent(last)} the nearest is off by {nearest:.0f}."
    return [
        (fragile, private > mean / 2),
        (f"private robust centres stay with the majority; {robust}", max(median, huber) < private),
        (f"{_CHEAP} {cheap}, the private mean by {clean['mean']:.2f}.", max(clean.values()) == clean["mean"]),
        (broken, last > 0.5 and nearest > 100),
    ]


_CHEAP = "robustness makes privacy cheap:"


def _about_regression(found: Robustness) -> list[Claim]:
    plain, private = found.at("least squares", 0.1), found.at("private least squares", 0.1)
    huber, robust = found.at("Huber", 0.1), found.at("private Huber", 0.1)
    clean, robust_clean = found.at("private least squares", 0), found.at("private Huber", 0)
    fragile = f"with 10 % of outliers they are off by {private:.1f} and {plain:.1f}."
    stays = f"with 10 % it is off by {robust:.2f}, the one without privacy by {huber:.2f}."
    cheap = f"without outliers a private Huber line is off by {robust_clean:.2f}, private least squares {clean:.2f}."
    return [
        (f"private least squares are as fragile as least squares; {fragile}", private > plain / 2),
        (f"a private Huber line stays; {stays}", robust < plain / 10),
        (f"{_CHEAP} {cheap}", robust_clean < clean),
    ]


def _about_labels(found: Robustness) -> list[Claim]:
    private = next(name for name in found.found if name.startswith("private"))
    plain, bounded, noisy = (found.at(name, 0.2) for name in ("plain", "bounded gradients", private))
    worst = [found.at(name, 0.4) for name in found.found]
    delayed = (
        f"with 20 % wrong labels, {rate(bounded)} of honest rows are classified correctly, "
        f"{rate(plain)} by a plain model."
    )
    return [
        (f"bounded gradients delay the harm a little: {delayed}", bounded >= plain),
        (f"noise does not help: {rate(noisy)} with it ({private}).", abs(noisy - bounded) < 0.1),
        (f"with 40 % wrong labels, every model guesses: {rate(min(worst))} to {rate(max(worst))}.", max(worst) < 0.65),
    ]


def _about_backdoors(found: Robustness) -> list[Claim]:
    private = [name for name in found.found if name.startswith("private")]
    (few, _), (many, _) = found.found["plain"][1], found.found["plain"][-1]
    plain, strong, weak = found.at("plain", few), found.at(private[0], few), found.at(private[-1], many)
    enough = f"{percent(round(few, 4))} of them change the class of {rate(plain)} of rows with the pattern"
    return [
        (f"a few rows are enough: {enough}, and {rate(strong)} against {private[0]}.", plain > strong),
        ("all rates stay below what the guarantee allows, given the error of sampling.", _is_allowed(found)),
        (f"an attacker who can add one row in ten still succeeds: {rate(weak)} against {private[-1]}.", weak > 0.9),
    ]


def _is_allowed(found: Robustness) -> bool:
    """Returns whether no interval lies above the bound at its place."""
    bounds = {(name, place): most for name, line in found.allowed.items() for place, most in line}
    lows = {(name, place): low for name, points in found.found.items() for place, (_, low, _) in points}
    return all(lows[spot] <= bounds[spot] + 1e-9 for spot in lows.keys() & bounds.keys())


_CLAIMS: dict[str, Callable[[Robustness], list[Claim]]] = {
    "outliers": _about_means,
    "regression": _about_regression,
    "labels": _about_labels,
    "backdoor": _about_backdoors,
}
