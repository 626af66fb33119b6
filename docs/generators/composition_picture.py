"""Draws docs/images/composition.svg, what many releases cost: `python -m docs.generators.composition_picture`.

Two panels, both axes growing by factors: Gaussian answers, and steps of training on samples. Every number is a bound of
`accounting.epsilon` at delta 1e-6, by one method each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet import accounting
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.report.comparison_charts import apart
from discreet.report.render import PALETTES, Scheme

PICTURE = Path(__file__).parents[1] / "images" / "composition.svg"

DELTA = 1e-6
NOISE_OF_AN_ANSWER, NOISE_OF_A_STEP, RATE = 20, 1, 0.01
METHODS = ("basic", "advanced", "zCDP", "RDP", "PLD")
DASHES = {"basic": "none", "advanced": "9 4", "zCDP": "3 3", "RDP": "12 3 3 3", "PLD": "none"}

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 420, 330, 54, 290, 72, 276
_LINE = 18 / (BOTTOM - TOP)  # of a name, as a part of the height


def cost(method: str, noise: int, count: int, *, rate: float = 1) -> float:
    """Returns epsilon at delta 1e-6 of so many Gaussian releases, each from a sample of the rows unless the rate is 1.

    Two methods know a release by one epsilon and delta only: basic composition adds them up, and what is called
    advanced here is the optimal composition of such pairs. Their deltas are shares of the whole.

    >>> [round(cost(method, NOISE_OF_AN_ANSWER, 100), 1) for method in METHODS]
    [23.9, 13.9, 2.4, 2.4, 2.3]
    """
    normal: Event = events.Gaussian(noise_multiplier=noise)
    known = {"basic": (1, "basic"), "advanced": (2, "optimal homogeneous")}
    if method in known:
        parts, method = known[method]
        spare = 0.999 * DELTA / (parts * count * rate)  # a little is left, since sums round up
        pair: Event = events.Approx(accounting.epsilon(normal, spare), spare)
        return accounting.epsilon(events.Repeated(_sampled(pair, rate), count), DELTA, method=method)
    return accounting.epsilon(events.Repeated(_sampled(normal, rate), count), DELTA, method=method)


def _sampled(event: Event, rate: float) -> Event:
    return event if rate == 1 else events.PoissonSampled(rate, event)


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: its title and subtitle, how far both axes reach, and the cost by method and number of releases."""

    title: str
    under: str
    counts: tuple[int, ...]
    lowest: float
    highest: float
    cost: Callable[[str, int], float]


PANELS = (
    Panel(
        "Answers with Gaussian noise",
        f"noise {NOISE_OF_AN_ANSWER} times what one person can change",
        (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300),
        0.1,
        100,
        lambda method, count: cost(method, NOISE_OF_AN_ANSWER, count),
    ),
    Panel(
        "Steps of training on random samples",
        f"noise multiplier {NOISE_OF_A_STEP}, sampling rate {RATE}",
        (1, 2, 4, 8, 16, 32, 64, 125, 250, 500, 1000, 2000, 3000),
        0.1,
        10_000,
        lambda method, count: cost(method, NOISE_OF_A_STEP, count, rate=RATE),
    ),
)


def picture() -> str:
    """Returns the picture; it has no background, and its colours stand on light and dark pages."""
    drawn = "\n".join(_drawn(panel, place * HIGH) for place, panel in enumerate(PANELS))
    high = HIGH * len(PANELS)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" width="{WIDE}" height="{high}" '
        f'role="img">\n<title>Epsilon of many releases at delta {DELTA:g}, by five methods of accounting</title>\n'
        f"<style>\n{_style()}</style>\n{drawn}\n</svg>\n"
    )


def _style() -> str:
    dark = _colours(Scheme.DARK)
    return (
        "text { font: 12.5px system-ui, sans-serif } .title { font-weight: 600; font-size: 14px }\n"
        ".curve { fill: none; stroke-width: 2.2 } .grid { stroke-width: 1 }\n"
        f"{_colours(Scheme.LIGHT)}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    )


def _colours(scheme: Scheme) -> str:
    palette = PALETTES[scheme]
    rules = [f"text {{ fill: {palette.faint} }} .title {{ fill: {palette.ink} }} .grid {{ stroke: {palette.rule} }}"]
    for method, colour in zip(METHODS, palette.series, strict=False):
        rules.append(f"path.{method} {{ stroke: {colour} }} text.{method} {{ fill: {colour}; font-weight: 600 }}")
    return "\n".join(rules) + "\n"


def _drawn(panel: Panel, down: int) -> str:
    found = {method: [panel.cost(method, count) for count in panel.counts] for method in METHODS}
    parts = [
        f'<text class="title" x="4" y="18">{panel.title}</text>',
        f'<text x="4" y="36">{panel.under}</text>',
        *_grid(panel),
        *(_curve(panel, method, values) for method, values in found.items()),
        *_names(panel, {method: values[-1] for method, values in found.items()}),
        f'<text x="{(LEFT + RIGHT) // 2}" y="{BOTTOM + 36}" text-anchor="middle">number of releases</text>',
    ]
    return f'<g transform="translate(0,{down})">\n' + "\n".join(parts) + "\n</g>"


def _part(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def _x(panel: Panel, count: float) -> float:
    return LEFT + (RIGHT - LEFT) * _part(count, 1, panel.counts[-1])


def _y(panel: Panel, epsilon: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * _part(epsilon, panel.lowest, panel.highest)


def _grid(panel: Panel) -> list[str]:
    powers = range(round(math.log10(panel.lowest)), round(math.log10(panel.highest)) + 1)
    drawn = []
    for epsilon in (10.0**power for power in powers):
        y = f"{_y(panel, epsilon):.1f}"
        drawn.append(f'<path class="grid" d="M{LEFT} {y}H{RIGHT}"/>')
        drawn.append(f'<text x="{LEFT - 6}" y="{y}" dy="4" text-anchor="end">{epsilon:,g}</text>')
    for count in (1, 10, 100, 1000):
        if count <= panel.counts[-1]:
            x = f"{_x(panel, count):.1f}"
            drawn.append(f'<path class="grid" d="M{x} {TOP}V{BOTTOM}"/>')
            drawn.append(f'<text x="{x}" y="{BOTTOM + 17}" text-anchor="middle">{count:,}</text>')
    return [*drawn, f'<text x="4" y="{TOP - 15}">epsilon</text>']


def _curve(panel: Panel, method: str, values: list[float]) -> str:
    points = zip(panel.counts, values, strict=True)
    places = " ".join(f"{_x(panel, count):.1f},{_y(panel, epsilon):.1f}" for count, epsilon in points)
    return f'<path class="curve {method}" stroke-dasharray="{DASHES[method]}" d="M{places}"/>'


def _names(panel: Panel, ends: dict[str, float]) -> list[str]:
    """Names of curves beside their ends, with the last number, moved apart where they would meet."""
    places = apart([_part(end, panel.lowest, panel.highest) for end in ends.values()], gap=_LINE)
    heights = [BOTTOM - (BOTTOM - TOP) * place for place in places]
    return [
        f'<text class="{method}" x="{RIGHT + 6}" y="{y:.1f}" dy="4">{method} {_short(end)}</text>'
        for (method, end), y in zip(ends.items(), heights, strict=True)
    ]


def _short(number: float) -> str:
    return f"{number:,.1f}" if number < 10 else f"{number:,.0f}"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
