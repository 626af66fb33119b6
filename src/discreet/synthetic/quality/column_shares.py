"""The distribution of each column in a model, next to what was measured of it: shares of values with error bars."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from discreet.dataclass import dataclass
from discreet.report.display import amount, plain
from discreet.report.marginal_charts import ShareBar
from discreet.synthetic.coded_rows import Integers
from discreet.synthetic.domain import Bins, Calendar
from discreet.synthetic.domain.column_domains import ColumnDomain
from discreet.synthetic.fitted_model import Model
from discreet.synthetic.inference.factors import Table
from discreet.synthetic.inference.noisy_marginals import combine_marginals

MOST_SHOWN = 24
"""Values of one column that are shown one by one; neighbouring bins are put together until there are no more."""

CONFIDENCE = 0.95
MISSING = "missing or other"
_DEVIATIONS = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnShares:
    """Holds the distribution of one column.

    Attributes:
        name: of the column.
        shares: of its values in order; of more than are shown, several together.
        values: how many there are.
        detail: how a value is made of its bin, in words.
    """

    name: str
    shares: tuple[ShareBar, ...]
    values: int
    detail: str

    @property
    def is_measured(self) -> bool:
        """Returns whether the column alone was measured."""
        return any(share.measured is not None for share in self.shares)


def column_shares(model: Model) -> list[ColumnShares]:
    """Returns the distribution of every column: a function of what was released alone."""
    return [_column(model, name, domain) for name, domain in model.domain.columns.items()]


def _column(model: Model, name: str, domain: ColumnDomain) -> ColumnShares:
    shares = model.counts((name,)) / model.rows
    groups, labels = _groups(domain, shares)
    sums = _sum_groups(shares, groups)
    found, deviations = _measured_shares(model, name, groups)
    ends = [deviations * _DEVIATIONS * side for side in (-1, 1)]
    told = [
        ShareBar(
            label=label,
            share=float(sums[place]),
            measured=None if found is None else float(found[place]),
            low=0.0 if found is None else max(0.0, float(found[place] + ends[0][place])),
            high=0.0 if found is None else max(0.0, float(found[place] + ends[1][place])),
        )
        for place, label in enumerate(labels)
    ]
    return ColumnShares(name=name, shares=tuple(told), values=domain.size, detail=domain.detail)


def _measured_shares(model: Model, name: str, groups: Integers) -> tuple[Table | None, Table]:
    """Returns the noisy shares of groups of values and their deviations; of values that were merged, as released."""
    alone = [m for m in (*model.unmerged, *model.measurements) if m.attributes == (name,) and not m.residual]
    found = combine_marginals(m for m in alone if m.values.size == groups.size)
    if not found:
        return None, np.zeros(int(groups.max()) + 1)
    sizes = np.bincount(groups)
    return _sum_groups(found[0].values, groups) / model.rows, found[0].sigma * np.sqrt(sizes) / model.rows


def _sum_groups(values: Table, groups: Integers) -> Table:
    return np.asarray(np.bincount(groups, weights=values))


def _groups(domain: ColumnDomain, shares: Table) -> tuple[Integers, list[str]]:
    """Returns for each value the number of its line, and what lines are called."""
    known = len(domain.labels)
    if domain.size <= MOST_SHOWN:
        places, labels = np.arange(known), [_label(domain, place, place) for place in range(known)]
    elif isinstance(domain, Bins | Calendar):
        step = -(-known // (MOST_SHOWN - 1))  # as many in each line, so that lines can be compared
        places = np.arange(known) // step
        labels = [_label(domain, first, min(first + step, known) - 1) for first in range(0, known, step)]
    else:
        places, labels = _largest(domain, shares[:known])
    if domain.missing:
        places, labels = np.append(places, len(labels)), [*labels, MISSING]
    return places.astype(np.int64), labels


def _largest(domain: ColumnDomain, shares: Table) -> tuple[Integers, list[str]]:
    """Returns the keys that the model has most of, and all others in one line."""
    count = MOST_SHOWN - 2
    first = np.argsort(-shares, kind="stable")[:count]
    places = np.full(shares.size, count)
    places[first] = np.arange(first.size)
    return places, [*(_label(domain, place, place) for place in first), f"{shares.size - count:,} others"]


def _label(domain: ColumnDomain, first: int, last: int) -> str:
    """Returns what values from one place to another are called."""
    if isinstance(domain, Bins):
        return _numbers(domain.edges[first], domain.edges[last + 1], whole=domain.whole)
    part = domain.part if isinstance(domain, Calendar) else ""
    one, other = (_text(domain.labels[place], part) for place in (first, last))
    return one if first == last else f"{one} to {other}"


def _numbers(low: float, high: float, *, whole: bool) -> str:
    """Returns a bin in words; of whole numbers, its first and its last one.

    >>> _numbers(20, 25, whole=True), _numbers(3, 4, whole=True), _numbers(0.5, 1, whole=False)
    ('20 to 24', '3', '0.5 up to 1')
    """
    if not whole:
        return f"{amount(low)} up to {amount(high)}"
    return amount(int(low)) if high - low == 1 else f"{amount(int(low))} to {amount(int(high) - 1)}"


def _text(label: object, part: str = "") -> str:
    """Returns a label as text, and one of a piece of time by as much of its first day as names it.

    >>> _text(dt.date(2024, 4, 1), "quarter"), _text(dt.date(2024, 4, 1), "year_month"), _text(None)
    ('2024 Q2', '2024-04', 'NULL')
    """
    if not isinstance(label, dt.date):
        return plain(label)
    return (
        f"{label.year} Q{(label.month + 2) // 3}"
        if part == "quarter"
        else label.strftime(_PIECES.get(part, "%Y-%m-%d"))
    )


_PIECES = {"year": "%Y", "year_month": "%Y-%m"}


def worst_column(columns: Sequence[ColumnShares]) -> float:
    """Returns the widest half of an interval of all shares that were measured."""
    return max((s.high - s.low for c in columns for s in c.shares if s.measured is not None), default=0.0) / 2
