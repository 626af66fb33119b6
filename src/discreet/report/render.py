"""Charts as pictures, and as objects of Altair: the one module that knows the optional dependencies.

Pictures are drawn in this process. No data, font or script is fetched, and a chart that asks for one is refused.
Charts name the role of a mark (`measured`, `interval`, `exact` ...); what a role looks like is decided here, in one
place for a light page and for a dark one, by a configuration that is laid under the chart when it is drawn.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from hashlib import sha256
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import MissingExtra
from discreet.lazy import load
from discreet.report.charts import WIDTH, Spec, fitting
from discreet.report.html import Html

FONT = "Arial, Helvetica, Liberation Sans, Arimo, sans-serif"
"""Fonts of one width, of pages and pictures alike: whoever draws a picture and whoever shows it may have different ones
of them, and texts still have the room that was measured for them."""

NARROW = 372
"""Pixels of a picture on a telephone: a page of 420 pixels shows it as large as it is drawn."""


class Scheme(Enum):
    """The brightness of a page."""

    LIGHT, DARK = "light", "dark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """The colours of one scheme: contrast with the page's background is at least 4.5 for text, 3 for marks."""

    ink: str
    faint: str
    rule: str
    series: tuple[str, ...]
    alarm: str
    good: str


PALETTES = {
    Scheme.LIGHT: Palette(
        ink="#1d2733",
        faint="#566373",
        rule="#dde3ea",
        series=("#1f6f9f", "#b4570b", "#2e7d4f", "#7a4fa3", "#b0235f", "#0f7a80", "#7d6608"),
        alarm="#b3261e",
        good="#2e7d4f",
    ),
    Scheme.DARK: Palette(
        ink="#e7ecf2",
        faint="#a3b0bf",
        rule="#36424f",
        series=("#6cb8e6", "#f0a660", "#7fcf9d", "#c3a1e6", "#f39ac0", "#5fd3d8", "#d9c865"),
        alarm="#ff8a80",
        good="#7fcf9d",
    ),
}


def config(scheme: Scheme, *, width: int = WIDTH) -> dict[str, Any]:
    """Returns the configuration of Vega-Lite that goes under every chart.

    Args:
        scheme: how bright the page is.
        width: of the picture, which decides how long names may be, and how many stand in a line.
    """
    palette = PALETTES[scheme]
    beside = {"columns": max(1, width // 150), "labelLimit": 200, "symbolStrokeWidth": 3}
    return {
        "background": None,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "axis": _axis(palette) | {"labelLimit": 2 * width // 5},
        "axisLeft": {"titleAngle": 0, "titleAlign": "left", "titleX": 0, "titleY": -10, "titleBaseline": "bottom"},
        "legend": {"labelColor": palette.ink, "labelFontSize": 12, "titleColor": palette.faint, "titleFontSize": 12}
        | beside,
        "title": {"color": palette.ink, "fontSize": 13, "fontWeight": 600, "anchor": "start"},
        "range": {"category": list(palette.series)},
        "style": _styles(palette),
    }


def _axis(palette: Palette) -> dict[str, Any]:
    return {
        "domainColor": palette.rule,
        "gridColor": palette.rule,
        "tickColor": palette.rule,
        "labelColor": palette.ink,
        "labelFontSize": 12,
        "titleColor": palette.faint,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }


def _styles(palette: Palette) -> dict[str, Any]:
    first, second, *_ = palette.series
    return {
        "measured": {"color": first},
        "surface": {"color": first, "fillOpacity": 0.38},
        "compared": {"color": palette.faint, "fillOpacity": 0.3},
        "interval": {"color": palette.ink},
        "band": {"color": first, "fillOpacity": 0.22},
        "curve": {"color": first},
        "cloud": {"color": first, "opacity": 0.4},
        "exact": {"color": second},
        "kept": {"color": palette.good, "fillOpacity": 0.45},
        "broken": {"color": palette.alarm, "fillOpacity": 0.8},
        "limit": {"color": palette.ink},
        "beyond": {"color": palette.alarm, "fillOpacity": 0.1},
        "landmark": {"color": palette.alarm},
        "landmark-text": {"color": palette.alarm, "fontSize": 12},
        "figure-text": {"color": palette.ink, "fontSize": 12},
    }


_IDS = re.compile(r'(\bid="|url\(#|href="#)')


def svg(spec: Spec, scheme: Scheme, *, background: str | None = None, width: int = WIDTH) -> Html:
    """Returns the picture of a chart, on the page's own background unless another is named.

    Args:
        spec: the chart.
        scheme: how bright the page is.
        background: a colour.
        width: of a chart that `at_width` has made so wide.

    Raises:
        MissingExtra: if vl-convert-python is not installed.
    """
    under = config(scheme, width=width) | {"background": background}
    drawn: str = _converter().vegalite_to_svg(spec, config=under, allowed_base_urls=[])
    prefix = sha256(drawn.encode()).hexdigest()[:8]  # pictures on one page must not share names of clips
    return Html(_IDS.sub(rf"\g<1>{prefix}-", drawn))


def chart(spec: Spec) -> Any:
    """Returns an Altair chart that needs no network, if Altair is installed, else the specification itself.

    Titles of axes that are longer than the chart is wide are broken into lines: whatever shows it shows all of it.
    """
    whole = fitting(spec)
    try:
        altair = load("altair", "A chart of Altair")
    except MissingExtra:
        return whole
    drawn = altair.Chart.from_dict(whole)
    kind: Any = type(drawn)
    object.__setattr__(drawn, "__class__", _offline(kind))  # its own way to set sets parts of the chart
    return drawn


_USUAL = "default"  # Altair's renderer unless the user has chosen another
_VEGA_LITE = "application/vnd.vegalite.v6+json"


@cache
def _offline(kind: Any) -> type[Any]:
    """Returns a subclass of Altair's charts that loads nothing: Altair's own pages load Vega from the network."""

    class Offline(kind):  # type: ignore[misc]  # a class that is known only when Altair is loaded
        def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
            if load("altair", "A chart of Altair").renderers.active != _USUAL:  # the user has chosen another
                return super()._repr_mimebundle_(*args, **kwargs)
            spec = self.to_dict()
            try:
                return {"image/svg+xml": svg(spec, Scheme.LIGHT, background="white")}
            except MissingExtra:  # a notebook that knows Vega-Lite draws it itself
                return {_VEGA_LITE: spec, "text/plain": repr(self)}

        def to_html(self, *args: Any, inline: bool = True, **kwargs: Any) -> Any:
            return super().to_html(*args, inline=inline, **kwargs)

        def save(self, fp: Any, format: str | None = None, **kwargs: Any) -> Any:  # noqa: A002 - Altair's name
            is_page = format == "html" or (format is None and str(fp).endswith(".html"))
            return super().save(fp, format, **({"inline": True} if is_page else {}) | kwargs)

    Offline.__name__, Offline.__qualname__ = kind.__name__, kind.__qualname__
    return Offline


def _converter() -> Any:
    return load("vl_convert", "Drawing a chart")
