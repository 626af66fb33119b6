"""Values and small tables for people: as text for a terminal, as HTML for a notebook.

An interval decides how many digits its number deserves. Texts come from data and from analysts: control characters are
spelled out, and markup is escaped.
"""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.report.html import Html, element

Number = int | float
"""A released number or an end of its interval, which may be infinite."""

_MOST_PLACES = 6
_SMALLEST_SHARE = Fraction(1, 10**6)  # of a budget that is shown in digits
_LARGEST = 1e15  # from here on, digits before the point are noise themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """The printed form of a public object: a title, a table, facts and notes; the same as text and as HTML.

    Attributes:
        title: the line above the table.
        columns: the headings of the table; it has no line of headings if all of them are empty.
        rows: values of any type, one for each column.
        numbers: the columns that are aligned on the right.
        facts: lines below the table, by their labels.
        notes: sentences below the facts.

    >>> rows = [("A", 12), ("B & C", 7)]
    >>> print(Display(title="Visits", columns=("ward", "n"), rows=rows, numbers=["n"], facts={"Cost": "1"}).text())
    Visits
    ward    n
    -----  --
    A      12
    B & C   7
    Cost: 1
    """

    title: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    numbers: Collection[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Returns the title, the table, the facts and the notes as lines of plain text."""
        table = text_table(self.columns, self.rows, numbers=self.numbers)
        facts = [f"{printable(label)}: {printable(line)}" for label, line in self.facts.items()]
        notes = [f"- {printable(note)}" for note in self.notes]
        return "\n".join(filter(None, [printable(self.title), table, *facts, *notes]))

    def html(self) -> Html:
        """Returns the same as a piece of HTML that needs no style sheet."""
        table = [html_table(self.columns, self.rows, numbers=self.numbers)] if self.rows else []
        title = [element("p", element("strong", printable(self.title)))] if self.title else []
        facts = [html_table(("", ""), list(self.facts.items()))] if self.facts else []
        notes = [element("ul", *(element("li", printable(note)) for note in self.notes))] if self.notes else []
        return element("div", *title, *table, *facts, *notes)


class DisplayMixin(ABC):
    """A public object that prints as a small table, and shows itself in a notebook as the same in HTML."""

    __slots__ = ()

    def __str__(self) -> str:
        return self._display().text()

    def _repr_html_(self) -> str:
        return self._display().html()

    @abstractmethod
    def _display(self) -> Display:
        """Returns the title, table, facts and notes to show."""


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Collection[str] = ()) -> str:
    r"""Returns rows as lines of text in aligned columns; nothing if there are no rows.

    Args:
        columns: the headings; a table whose headings are all empty has no line of headings.
        rows: values of any type, shown by `plain`.
        numbers: the columns that are aligned on the right.

    >>> print(text_table(["", ""], [("cost", "epsilon 1"), ("remaining\x1b", "epsilon 2")]))
    cost           epsilon 1
    remaining\x1b  epsilon 2
    """
    if not rows:
        return ""
    head, body = [plain(name) for name in columns], [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = [head, ["-" * width for width in widths], *body] if any(head) else body
    sides = [str.rjust if name in numbers else str.ljust for name in columns]
    return "\n".join(
        "  ".join(side(cell, width) for side, cell, width in zip(sides, line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Collection[str] = (), caption: str = ""
) -> Html:
    """Returns rows as an HTML table that needs no style sheet: a notebook has none of ours.

    >>> html_table(["", ""], [("<b>", 1)]).count("&lt;b&gt;")
    1
    """
    sides = [f"text-align:{'right' if name in numbers else 'left'}" for name in columns]
    heads = (element("th", plain(name), scope="col", style=side) for name, side in zip(columns, sides, strict=True))
    head = [element("thead", element("tr", *heads))] if any(columns) else []
    body = (
        element("tr", *(element("td", plain(cell), style=side) for cell, side in zip(row, sides, strict=True)))
        for row in rows
    )
    named = [element("caption", printable(caption))] if caption else []
    return element("table", *named, *head, element("tbody", *body))


def printable(text: str, *, lines: bool = False) -> str:
    r"""Returns a text with control characters spelled out: a group's name must not steer the terminal.

    Args:
        text: what is to be shown.
        lines: whether ends of lines stay.

    >>> printable("A\x1b[31m")
    'A\\x1b[31m'
    """
    return "".join(c if c.isprintable() or (lines and c == "\n") else ascii(c)[1:-1] for c in text)


def plain(value: object) -> str:
    r"""Returns a key of a group, or any other value, as a text without control characters.

    >>> plain("A\x1b[31m"), plain(None), plain(True), plain(1234.5), plain(-0.0)
    ('A\\x1b[31m', 'NULL', 'true', '1234.5', '0.0')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return printable(str(value + 0.0 if isinstance(value, float) else value))  # a zero has no sign


def format_measured(value: Number | dt.date | None, low: Number | dt.date, high: Number | dt.date) -> str:
    """Returns a number and its interval, whose ends are rounded outwards; or a day or moment, as it is.

    >>> format_measured(632.1036, 447.3053, 816.9019)
    '632 (447 to 817)'
    >>> format_measured(0.51234, 0.50117, 0.52481), format_measured(1466, 1346, 1586)
    ('0.512 (0.501 to 0.525)', '1,466 (1,346 to 1,586)')
    >>> format_measured(134.816566, 134.816565, 1000.0), format_measured(-0.2, -3.0, -0.0)
    ('135 (134 to 1,000)', '-0.2 (-3.0 to 0.0)')
    >>> (
    ...     format_measured(None, -math.inf, math.inf),
    ...     format_measured(3.25, -math.inf, 4.0),
    ...     format_measured(3.25, -math.inf, math.inf),
    ... )
    ('no value', '3.25 (no bound to 4.00)', '3.2 (no bounds)')
    >>> format_measured(dt.date(2026, 3, 1), dt.date(2026, 2, 26), dt.date.max)
    '2026-03-01 (2026-02-26 to no bound)'
    """
    if value is None:
        return "no value"
    if isinstance(value, dt.date) or isinstance(low, dt.date) or isinstance(high, dt.date):
        return f"{value} ({_format_end(low)} to {_format_end(high)})"
    if math.isinf(low) and math.isinf(high):
        return f"{_format_rounded(value, _places(value, low, high))} (no bounds)"
    places = _places(value, low, high)
    return f"{_format_rounded(value, places)} ({_end(low, places, ROUND_FLOOR)} to {_end(high, places, ROUND_CEILING)})"


def on_a_scale(part: Number | dt.date) -> Number:
    """Returns a number, or a day or moment as milliseconds from 1970 on; the ends of the calendar are infinite.

    >>> on_a_scale(dt.date(1970, 1, 2)), on_a_scale(dt.datetime.max), on_a_scale(3)
    (86400000.0, inf, 3)
    """
    if not isinstance(part, dt.date):
        return part
    if _is_end(part):
        return -math.inf if part.year == dt.MINYEAR else math.inf
    moment = part if isinstance(part, dt.datetime) else dt.datetime.combine(part, dt.time())
    return (moment - dt.datetime(1970, 1, 1)) / dt.timedelta(milliseconds=1)


def _is_end(part: dt.date) -> bool:
    """Returns whether a day or moment is the first or the last there is: what nothing is known about."""
    return part in ((dt.datetime.min, dt.datetime.max) if isinstance(part, dt.datetime) else (dt.date.min, dt.date.max))


def _format_end(end: Number | dt.date) -> str:
    return "no bound" if isinstance(end, dt.date) and _is_end(end) else str(end)


def number(value: Number | Fraction, places: int = 0) -> str:
    """Returns a number with so many digits after the point.

    >>> number(Fraction(48751, 2)), number(0.125, 2)
    ('24,376', '0.12')
    """
    return _format_rounded(value, places)


def amount(value: Number | Fraction) -> str:
    """Returns a number that has no interval, with at most six digits after the point.

    >>> amount(12345), amount(0.125), amount(float("inf")), amount(1234567.891)
    ('12,345', '0.125', 'inf', '1,234,567.891')
    """
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}"
    size = abs(float(value))
    if size and not 1e-4 <= size < 1e12:
        return f"{float(value):.4g}"
    places = 3 if size >= 1 else 6
    return f"{float(value) + 0.0:,.{places}f}".rstrip("0").rstrip(".")


def error(width: float) -> str:
    """Returns how far a number may be from the truth.

    >>> error(30.0), error(math.inf)
    ('± 30', 'unbounded')
    """
    return "unbounded" if math.isinf(width) else f"± {amount(width)}"


def percent(share: float | Fraction) -> str:
    """Returns a share in percent.

    >>> percent(Fraction(19, 20))
    '95 %'
    """
    return f"{float(100 * share) + 0.0:g} %"


def share_spent(share: Fraction) -> str:
    """Returns a share of a budget in percent, in four digits, rounded up.

    >>> share_spent(Fraction(1, 10)), share_spent(Fraction(1, 70)), share_spent(Fraction(1, 10**9))
    ('10 %', '1.429 %', 'less than 0.0001 %')
    """
    return _share(share, ROUND_CEILING)


def share_left(share: Fraction) -> str:
    """Returns what is left of a budget in percent, in four digits, rounded down: all is said of all alone.

    >>> share_left(Fraction(1)), share_left(Fraction(999999, 10**6)), share_left(Fraction(0))
    ('100 %', '99.99 %', '0 %')
    """
    return _share(share, ROUND_FLOOR)


def _share(share: Fraction, rounding: str) -> str:
    if 0 < share < _SMALLEST_SHARE:
        return f"less than {float(100 * _SMALLEST_SHARE):g} %"
    context = Context(prec=4, rounding=rounding)
    shown = context.divide(Decimal(100 * share.numerator), Decimal(share.denominator)).normalize(context)
    return f"{float(shown):g} %"


def rate(share: float) -> str:
    """Returns a measured share of some targets, with as many digits as it is worth.

    >>> rate(0.8795), rate(0.0014), rate(1.0), rate(0.0), rate(0.9987)
    ('88 %', '0.14 %', '100 %', '0 %', '99.9 %')
    """
    shown = 100 * share
    near = min(shown, 100 - shown)  # 99.9 % is not all
    places = 0 if near <= 0 or (near >= 0.5 and shown >= 10) else 1 if shown >= 1 else 2
    text = f"{shown:.{places}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def _places(*parts: Number) -> int:
    """Returns the places that show two digits of the distance between a number and its farthest finite end."""
    if all(isinstance(part, int) or math.isinf(part) for part in parts):
        return 0
    value, *ends = parts
    reaches = [abs(end - value) for end in ends if math.isfinite(end) and end != value]
    size = max(reaches, default=abs(value)) or 1.0
    return min(max(0, 1 - math.floor(math.log10(size))), _MOST_PLACES)


def _end(end: Number, places: int, rounding: str) -> str:
    return "no bound" if math.isinf(end) else _format_rounded(end, places, rounding)


def _format_rounded(value: Number | Fraction, places: int, rounding: str = ROUND_HALF_EVEN) -> str:
    if isinstance(value, Fraction):
        value = float(value)
    if abs(value) >= _LARGEST:
        return f"{float(value):.4g}"
    return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding) + 0:,}"  # and not -0
