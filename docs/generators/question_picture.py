"""Draws docs/images/question.svg, the way of a question: `python -m docs.generators.question_picture`.

The picture has no background, and its texts are as large as those of a page of 420 pixels when it is shown there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "images" / "question.svg"

WIDE, BOX, GAP, LABEL, EDGE = 420, 48, 16, 30, 10

_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #454f5a } .name { font-weight: 600; font-size: 14px; fill: #1d2733 }
.zone { font-size: 12.5px; font-style: italic } .mark { font-weight: 600; fill: #0b5fa5 }
.public { fill: #2f81f7; fill-opacity: .08 } .private { fill: #db6d28; fill-opacity: .13; stroke: #c2591b; \
stroke-width: 1.5; stroke-dasharray: 5 4 }
.box { fill: none; stroke: #7d8894 } .promise { fill: none; stroke: #0b5fa5; stroke-width: 2.5 }
.arrow { fill: none; stroke: #66717d; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
text { fill: #b6c0cb } .name { fill: #e7ecf2 } .mark { fill: #7cc0ff } .promise { stroke: #7cc0ff }
.public { fill-opacity: .16 } .private { stroke: #f0a660; fill-opacity: .2 } .arrow { stroke: #a3b0bf }
}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the way: its name, what happens, and what it means for the promise, if anything."""

    name: str
    words: str
    promise: str = ""


@dataclass(frozen=True, slots=True)
class Zone:
    """Steps that lie on the same side: what they work on is public, or private."""

    kind: str
    says: str
    steps: tuple[Step, ...]


WAY = (
    Zone(
        "public",
        "Public: follows from text and declarations alone",
        (
            Step("1. Text", "a question in SQL"),
            Step("2. Gates", "words, then the parser's tree; the rest is refused"),
            Step("3. Plan", "rows bounded, values clipped; no step can fail"),
            Step("4. Program", "which integers, how far one person moves them"),
            Step("5. Charge", "the event is paid in the ledger, or refused", "the promise is made"),
        ),
    ),
    Zone(
        "private",
        "Private: seen by no one",
        (
            Step("6. Reading", "the engine reads rows only now"),
            Step("7. Integers", "exact sums and counts, on a public grid"),
            Step("8. Noise", "exact random integers, as the event says", "the promise is kept"),
        ),
    ),
    Zone(
        "public",
        "Public: whatever is done with noisy integers is free",
        (
            Step("9. Finish", "arithmetic that turns them into numbers"),
            Step("10. Answer", "each number with its interval, and its cost"),
            Step("11. Kept record", "asked again, it is answered from here, free"),
        ),
    ),
)


def picture() -> str:
    """Returns the picture."""
    drawn: list[str] = []
    top, last = EDGE, None
    for zone in WAY:
        high = LABEL + len(zone.steps) * (BOX + GAP) - GAP + EDGE
        drawn.append(_rectangle(zone.kind, 2, top, WIDE - 4, high))
        drawn.append(f'<text class="zone" x="16" y="{top + 20}">{zone.says}</text>')
        for place, step in enumerate(zone.steps):
            y = top + LABEL + place * (BOX + GAP)
            drawn += [*([] if last is None else [_arrow(last, y)]), *_step(step, y)]
            last = y + BOX
        top += high + GAP
    steps = "; ".join(f"{zone.says}: " + ", ".join(step.name for step in zone.steps) for zone in WAY)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {top}" width="{WIDE}" height="{top}" '
        f'role="img">\n<title>The way of a question. {steps}</title>\n<style>\n{_STYLE}</style>\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _step(step: Step, y: int) -> list[str]:
    drawn = [
        _rectangle("promise" if step.promise else "box", 16, y, WIDE - 32, BOX),
        f'<text class="name" x="28" y="{y + 20}">{step.name}</text>',
        f'<text x="28" y="{y + 38}">{step.words}</text>',
    ]
    mark = f'<text class="mark" x="{WIDE - 28}" y="{y + 20}" text-anchor="end">{step.promise}</text>'
    return [*drawn, mark] if step.promise else drawn


def _rectangle(kind: str, x: int, y: int, width: int, height: int) -> str:
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'


def _arrow(start: int, end: int) -> str:
    """A line down the right side, where no label of a zone stands, and its head."""
    x, tip = WIDE - 60, end - 2
    return f'<path class="arrow" d="M{x} {start + 2}V{tip}M{x - 4} {tip - 5}L{x} {tip}L{x + 4} {tip - 5}"/>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
