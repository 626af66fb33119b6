"""Charts and pages: released numbers with their intervals, as Vega-Lite, as pictures, as one HTML file.

Whatever is shown here was released before. Charts are plain dictionaries and need nothing; pictures need the extra
`discreet[report]`.
"""

from discreet.report import answers, blocks, charts, comparison_charts, findings
from discreet.report.charts import Point, Reading, Spec
from discreet.report.finding import Comparison, Finding, Trial
from discreet.report.html import Html, element
from discreet.report.page import page
from discreet.report.render import can_draw, chart, svg
from discreet.report.theme import Scheme

__all__ = [
    "Comparison",
    "Finding",
    "Html",
    "Point",
    "Reading",
    "Scheme",
    "Spec",
    "Trial",
    "answers",
    "blocks",
    "can_draw",
    "chart",
    "charts",
    "comparison_charts",
    "element",
    "findings",
    "page",
    "svg",
]
