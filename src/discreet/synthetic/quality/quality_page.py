"""A page on a synthetic table: its columns, its worst pairs, what was not measured, and what it is good for.

All of it follows from the released model: post-processing, which costs nothing and reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from discreet.dataclass import dataclass
from discreet.report import answers, page
from discreet.report.display import printable, rate
from discreet.report.html import NOTHING, Html
from discreet.report.marginal_charts import Distance, distances, distribution
from discreet.synthetic.domain import Bins, Calendar
from discreet.synthetic.fitted_model import Model
from discreet.synthetic.inference.factors import cells
from discreet.synthetic.quality.column_shares import ColumnShares, column_shares, worst_column
from discreet.synthetic.quality.pair_errors import PairError, implied_pairs, pair_errors, unmeasured_pairs

MOST_PAIRS = 12
"""Pairs that are shown one by one, the worst ones."""

MOST_CHARTS = 30
"""Columns that have a chart, which takes half a second; further ones have a table."""

MOST_NAMED = 60
"""Unmeasured pairs that are named; of more, only how many there are."""

MOST_IMPLIED = 10**6
"""Cells of an unmeasured pair that is looked at."""

FOLLOWS = (
    "Everything on this page follows from what was released with that model: no private row was read for it, and "
    "nothing was spent."
)
_SECTIONS = {
    "use": "What it is good for",
    "columns": "Columns",
    "pairs": "Pairs of columns",
    "values": "How values are made",
}
_MANY = (
    "Combinations of many columns, rare ones above all: no more than {several} were measured at a time, and what more "
    "of them have in common is what the model implies."
)
_EXTREMES = (
    "Outliers and extremes: what lies outside of declared bounds counts in the outermost bin, so that the smallest and "
    "largest values are those of the declaration."
)
_UNDECLARED = "Values and keys that were not declared and not found: they are “missing or other”."
_INTERVALS = (
    "Intervals and tests that treat synthetic rows as people: they ignore the noise, and come out too narrow. "
    "Use the errors on this page, or ask the question itself under the ledger."
)
_NOTHING_NEW = "More than was measured: other rows of the model are free, and contain nothing new."
_NOBODY = "Finding real people: no row is a person's, and no two rows belong to one person."
_SEEDED = "The noise was seeded, for tests: this table gives no privacy."


def quality_page(model: Model, *, name: str = "", rows: int | None = None, notes: Sequence[str] = ()) -> str:
    """Returns the page on a model, and on rows that were drawn from it.

    Formal guarantee: a function of the released model and of the other arguments, which are public: the same for a
    table that was replayed.

    Args:
        model: of a generator.
        name: of the table.
        rows: how many were drawn; None for a page on the model alone.
        notes: what limits and domains mean for the rows.

    Raises:
        MissingExtra: if charts cannot be drawn here.
    """
    drawn = "" if rows is None else f"{rows:,} synthetic rows, "
    lead = f"{drawn}drawn from a model that was learned under differential privacy. {FOLLOWS}"
    part = ModelPart(model=model, rows=rows, notes=notes)
    return page.document(
        f"Synthetic table {printable(name)}" if name else "A synthetic table",
        *part.sections(),
        lead=lead[0].upper() + lead[1:],
        contents=part.contents,
    )


@dataclass(frozen=True, kw_only=True)
class ModelPart:
    """Renders what a page says of one model.

    Args:
        model: of a generator.
        rows: how many were drawn; None for a page on the model alone.
        notes: what limits and domains mean for the rows.
        name: of the table, on a page about several.
        no_person: why no row is a real person's.
    """

    model: Model
    rows: int | None
    notes: Sequence[str]
    name: str = ""
    no_person: str = _NOBODY

    @property
    def contents(self) -> dict[str, str]:
        """Returns the headings of the sections, by their anchors."""
        about = f", {printable(self.name)}" if self.name else ""
        return {self._anchor(key): f"{heading}{about}" for key, heading in _SECTIONS.items()}

    def sections(self) -> list[Html]:
        """Returns a warning if it is due, facts, and the sections."""
        columns, pairs, unknown = column_shares(self.model), pair_errors(self.model), unmeasured_pairs(self.model)
        warned = NOTHING if self.model.private else page.paragraph(_SEEDED, kind="refusal")
        use = _use(_good(columns, pairs, self.rows), [*_bad(self.model, unknown), self.no_person])
        bodies = {
            "use": [use],
            "columns": _columns(columns),
            "pairs": _pairs(self.model, pairs, unknown),
            "values": _values(columns, self.notes),
        }
        heads = self.contents
        made = [
            page.section(anchor, heads[anchor], *body)
            for anchor, body in ((self._anchor(key), body) for key, body in bodies.items())
        ]
        return [warned, self._facts(), *made]

    def _facts(self) -> Html:
        found = {} if self.rows is None else {"synthetic rows": f"{self.rows:,}"}
        found |= {"rows measured, about": f"{self.model.rows:,}", "columns": str(len(self.model.domain.columns))}
        found |= {"noisy marginals": f"{len(self.model.measurements):,}", "generator": self.model.generator}
        kept, together = self.model.promise, " of all tables" if self.name else ""  # a model knows what all keep to
        if kept is not None:
            found |= {f"epsilon{together}": f"{float(kept.epsilon):g}", f"delta{together}": f"{float(kept.delta):.1g}"}
        return page.facts(found)

    def _anchor(self, key: str) -> str:
        return f"{self.name}-{key}" if self.name else key


# --------------------------------------------------------------------------------------------------------------- use


def _use(good: Sequence[str], bad: Sequence[str]) -> Html:
    return page.beside(
        page.group(page.paragraph("Good for", kind="headline"), page.bullets(*good)),
        page.group(page.paragraph("Not good for", kind="headline"), page.bullets(*bad)),
    )


def _good(columns: Sequence[ColumnShares], pairs: Sequence[PairError], rows: int | None) -> list[str]:
    said = []
    if any(column.is_measured for column in columns):
        wide = rate(worst_column(columns))
        said.append(
            "Counts and shares of single columns: "
            f"what was measured of each value is within {wide} of all rows, with a chance of 95 %."
        )
    if pairs:
        most = sorted(pair.high for pair in pairs)
        said.append(
            f"Counts and shares of two columns that were measured together: at most {rate(median(most))} of the rows "
            f"are in the wrong cell for half of these pairs, at most {rate(most[-1])} for each of them."
        )
    if rows:
        chance = rate(rows**-0.5)
        said.append(f"Drawing {rows:,} rows moves any one share by {chance} at most, with a chance of 95 %.")
    said.append("Trying out programs, charts, forms and lessons on rows that look like the real ones.")
    return said


def _bad(model: Model, unknown: Sequence[tuple[str, str]]) -> list[str]:
    most = max((len(marginal.attributes) for marginal in model.measurements), default=1)
    several = "one column" if most == 1 else f"{most} columns"
    said = [_MANY.format(several=several)]
    if unknown:
        said.append(f"Pairs of columns that were not measured, {len(unknown):,} of them, which are named below.")
    if any(isinstance(column, Bins | Calendar) for column in model.domain.columns.values()):
        said.append(_EXTREMES)
    even = [name for name, detail in model.domain.details.items() if "evenly" in detail]
    if even:
        named = printable(", ".join(even[:MOST_NAMED]))
        said.append(f"Places within a bin or a piece of time: values are spread evenly there, in {named}.")
    return [*said, _UNDECLARED, _INTERVALS, _NOTHING_NEW]


def _number(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


# ----------------------------------------------------------------------------------------------------------- columns


def _columns(columns: Sequence[ColumnShares]) -> list[Html]:
    told = (
        "Bars: shares of the model, from which rows are drawn. Ticks: what was measured, with noise; the line through "
        "a tick holds the true share with a chance of 95 %. A bar may well differ from its tick: the model fits all "
        "measurements together, is drawn a little towards even shares, and has no negative counts."
    )
    figures = [_column(column) for column in columns[:MOST_CHARTS]]
    tables = [_render_column_table(column) for column in columns[MOST_CHARTS:]]
    return [page.paragraph(told), page.beside(*figures, *tables)]


def _render_column_table(column: ColumnShares) -> Html:
    """Returns a column as a table, in percent, with small error bars."""
    head = "measured, % (95 % interval)"
    records: list[dict[str, object]] = []
    for share in column.shares:
        ends = zip(("", "_low", "_high"), (share.measured, share.low, share.high), strict=True)
        measured = {f"{head}{end}": None if part is None else 100 * part for end, part in ends}
        records.append({"value": share.label, "model": rate(share.share).replace(" ", "\u00a0"), **measured})
    caption = printable(column.name)
    return page.scrolling(answers.table(records, caption=caption), label=caption)


def _column(column: ColumnShares) -> Html:
    shown = len(column.shares)
    caption = _number(column.values, "value") + (f", in {shown} lines" if shown < column.values else "")
    caption += "." if column.is_measured else "; no measurement of single values is kept: the model has it from others."
    largest = max(column.shares, key=lambda share: share.share)
    described = f"Shares of {column.name}: {rate(largest.share)} have {largest.label}, the largest of {shown}."
    chart = distribution(column.shares) | {"title": {"text": printable(column.name)}}
    return page.figure(chart, caption=caption, description=printable(described))


# ------------------------------------------------------------------------------------------------------------- pairs


def _pairs(model: Model, pairs: Sequence[PairError], unknown: Sequence[tuple[str, str]]) -> list[Html]:
    parts = [*_render_measured_pairs(pairs), *_render_unmeasured_pairs(model, unknown)]
    return parts or [page.paragraph("There is one column only.")]


def _render_measured_pairs(pairs: Sequence[PairError]) -> list[Html]:
    if not pairs:
        return []
    worst = pairs[:MOST_PAIRS]
    within = sum(pair.low == 0 for pair in pairs)
    told = (
        f"{_number(len(pairs), 'pair')} of columns were measured. A distance is the share of rows that would have to "
        "move to another cell to make two tables the same. What was measured holds noise, so that its distance from "
        "the model is not the model's error: noise alone contributes the grey bar. The error of the model lies within "
        f"the line, with a chance of 95 % for each pair. For {within:,} of {len(pairs):,} the line begins at zero: "
        "noise may explain all of the distance."
    )
    rows = [Distance(label=_name(p.columns), distance=p.distance, noise=p.noise, low=p.low, high=p.high) for p in worst]
    more = "" if len(worst) == len(pairs) else f"The {len(worst)} of {len(pairs):,} pairs that noise explains least. "
    lines = (
        "Dots: between the model and what was measured. Grey: expected of noise alone. Lines: the error of the model."
    )
    caption = f"{more}{lines}"
    described = f"The pair that the model misses most, beyond noise, is {_name(worst[0].columns)}."
    chart = distances(rows) | {"title": {"text": "How far the model is from pairs, next to noise"}}
    figure = page.figure(chart, caption=caption, description=printable(described), broad=True)
    return [page.paragraph(told), figure, _table(worst)]


def _table(pairs: Sequence[PairError]) -> Html:
    heads = ("pair", "cells", "distance from what was measured", "expected of noise", "error of the model (95 %)")
    rows = [
        (
            printable(_name(pair.columns)),
            f"{pair.cells:,}",
            rate(pair.distance),
            rate(pair.noise),
            f"{rate(pair.low)} to {rate(pair.high)}",
        )
        for pair in pairs
    ]
    return page.table(heads, rows, caption="Pairs that noise explains least, as shares of rows", numbers=heads[1:])


def _render_unmeasured_pairs(model: Model, unknown: Sequence[tuple[str, str]]) -> list[Html]:
    if not unknown:
        return []
    small = [pair for pair in unknown if cells(pair, model.law.tree.sizes) <= MOST_IMPLIED]
    dependent, looked_at = set(implied_pairs(model, small)), set(small)
    told = (
        f"{_number(len(unknown), 'pair')} of columns were not measured. The model has them only as far as what was "
        "measured implies: nothing is known of their errors."
    )
    groups = {
        "Related in the model, through other columns": [pair for pair in small if pair in dependent],
        "Independent in the model, whatever they are in the data": [pair for pair in small if pair not in dependent],
        "With too many cells to be looked at here": [pair for pair in unknown if pair not in looked_at],
    }
    return [page.paragraph(told), *(_render_partners(words, listed) for words, listed in groups.items() if listed)]


def _render_partners(words: str, pairs: Sequence[tuple[str, str]]) -> Html:
    partners: dict[str, list[str]] = {}
    for first, second in pairs[:MOST_NAMED]:
        partners.setdefault(first, []).append(second)
    shown = "; ".join(f"{first} with {', '.join(others)}" for first, others in partners.items())
    more = f"; and {len(pairs) - MOST_NAMED:,} more" if len(pairs) > MOST_NAMED else ""
    return page.paragraph(f"{words} ({len(pairs):,}): {printable(shown)}{more}.", kind="small")


def _name(columns: tuple[str, str]) -> str:
    return " and ".join(columns)


# ------------------------------------------------------------------------------------------------------------ values


def _values(columns: Sequence[ColumnShares], notes: Sequence[str]) -> list[Html]:
    heads = ("column", "values", "a value is")
    rows = [(printable(column.name), f"{column.values:,}", column.detail) for column in columns]
    own = [note for note in notes if not any(note == f"{c.name}: {c.detail}." for c in columns)]
    inside = [page.table(heads, rows, caption="How a value is made of what the model knows", numbers=heads[1:2])]
    return [*inside, *([page.bullets(*map(printable, own))] if own else [])]
