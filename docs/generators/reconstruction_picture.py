"""Draws docs/images/reconstruction.svg, the README's picture: `python -m docs.generators.reconstruction_picture`.

A hundred people have a secret bit each; 400 counts of random groups are released exactly, and with noise for epsilon 1.
The library's own attack rebuilds the bits from both, as on the page attacks_rebuilding, with the same seed. Rates are
means of its attacks, cells are those of one of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet import attacks
from discreet.attacks import subset_counts
from discreet.noise import SeededBits
from discreet.noise.experiment import coins

PICTURE = Path(__file__).parents[1] / "images" / "reconstruction.svg"

PEOPLE, COUNTS, ACROSS, STEP = 100, 400, 10, 22

_STYLE = """\
text { font: 14px system-ui, sans-serif; fill: #656d76 } .rate { font-size: 22px; font-weight: 600 }
.right { fill: #2f81f7 } .wrong { fill: none; stroke: #db6d28; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #9198a1 } }
"""


def picture() -> str:
    """Returns the picture; it has no background, and its colours stand on light and dark pages."""
    bits = SeededBits(2026)
    secret = coins(PEOPLE, bits=bits)
    groups = subset_counts.random_subsets(COUNTS, PEOPLE, bits=bits)
    subset_counts.NoisyAnswerer(sd=2.0).answer(
        secret, groups, bits=bits
    )  # drawn and left, as on the page attacks_rebuilding
    compared = attacks.reconstruct.compare(secret, queries=groups, bits=bits)
    panels = [(20, "from exact counts", compared.raw), (320, "from counts at epsilon 1", compared["epsilon 1"])]
    drawn = "\n".join(_panel(left, words, found, secret) for left, words, found in panels)
    told = "; ".join(f"{found.success:.0%} {words}" for _, words, found in panels)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 300" width="600" height="300" role="img">\n'
        f"<title>Secret bits of {PEOPLE} people, rebuilt from {COUNTS} counts: {told}</title>\n"
        f"<style>\n{_STYLE}</style>\n{drawn}\n</svg>\n"
    )


def _panel(left: int, words: str, found: Any, secret: Any) -> str:
    cells = [
        _cell(left, place, bool(guess == bit))
        for place, (guess, bit) in enumerate(zip(found.recovered, secret, strict=True))
    ]
    rate = f'<text class="rate" x="{left}" y="26">{found.success:.0%} rebuilt</text>'
    return "\n".join([rate, f'<text x="{left}" y="48">{words}</text>', *cells])


def _cell(left: int, place: int, right: bool) -> str:
    x, y = left + place % ACROSS * STEP, 64 + place // ACROSS * STEP
    if right:
        return f'<rect class="right" x="{x}" y="{y}" width="18" height="18" rx="3"/>'
    return f'<rect class="wrong" x="{x + 1}" y="{y + 1}" width="16" height="16" rx="3"/>'


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
