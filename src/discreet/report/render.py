"""Charts as pictures, and as objects of Altair: the one module that knows the optional dependencies.

Pictures are drawn in this process. No data, font or script is fetched, and a chart that asks for one is refused.
"""

from __future__ import annotations

import re
from hashlib import sha256
from importlib import import_module
from typing import Any

from discreet.errors import MissingExtra
from discreet.report.charts import Spec
from discreet.report.html import Html
from discreet.report.theme import Scheme, config

EXTRA = "report"
_IDS = re.compile(r'(\bid="|url\(#|href="#)')


def svg(spec: Spec, scheme: Scheme) -> Html:
    """The picture of a chart.

    Raises:
        MissingExtra: if vl-convert-python is not installed.
    """
    drawn: str = _converter().vegalite_to_svg(spec, config=config(scheme), allowed_base_urls=[])
    prefix = sha256(drawn.encode()).hexdigest()[:8]  # pictures on one page must not share names of clips
    return Html(_IDS.sub(rf"\g<1>{prefix}-", drawn))


def can_draw() -> bool:
    """Whether pictures can be made."""
    try:
        _converter()
    except MissingExtra:
        return False
    return True


def chart(spec: Spec) -> Any:
    """An Altair chart if Altair is installed, else the specification itself."""
    try:
        altair = import_module("altair")
    except ImportError:
        return spec
    return altair.Chart.from_dict(spec)


def _converter() -> Any:
    try:
        return import_module("vl_convert")
    except ImportError as error:
        raise MissingExtra("vl_convert", "Drawing a chart", EXTRA) from error
