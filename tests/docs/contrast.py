"""How well a colour stands out from the pages of the site, by the guidelines for accessible pages (WCAG 2)."""

from __future__ import annotations

BACKGROUNDS = {"light": "#ffffff", "dark": "#131416"}
"""The theme's."""

ENOUGH = 4.5
"""The least ratio for text."""


def luminance(colour: str) -> float:
    """The relative luminance of a colour that is written as #rrggbb."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The ratio of contrast of two colours, from 1 to 21."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)
