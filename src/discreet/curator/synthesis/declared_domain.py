"""The public domain of rows that are to be synthesized: from declared keys and bounds, completed by what a caller says.

Nothing is read: a column without any public fact is refused. Values are made small inside the engine, where every one
becomes a declared key, a whole number of steps between declared limits, or nothing.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

from discreet import check
from discreet.curator.training.column_features import Number, OneHot, number_of
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import Expression, Literal, Value
from discreet.plan.model.schema import ColumnBounds
from discreet.plan.model.types import Type
from discreet.sql.examples import quote_name
from discreet.sql.scope import lookup
from discreet.sql.training_rows import RowColumn, TrainingRows
from discreet.synthetic import Bins, Calendar, Domain, Keys, UnknownKeys
from discreet.synthetic.domain import ColumnDomain, FoundKeys

BINS = 16
"""Bins of equal width into which declared bounds are cut, unless another number is given."""

MOST_PIECES = 64
"""Pieces of time into which declared bounds of days are cut at most, if years are not more."""

Cut = Callable[..., Bins]
_EPOCH = dt.date(1970, 1, 1)
_FIRST, _LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
_PLAIN: dict[Type, tuple[type, ...]] = {
    Type.INT: (int,),
    Type.BOOL: (bool,),
    Type.TEXT: (str,),
    Type.DATE: (dt.date,),
}


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text as it is, whose keys are to be found."""

    key: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainColumn:
    """A column, how it is read, and its domain.

    Args:
        name: as the text has it.
        domain: its public values.
        part: what is read of a row: a key or NULL, steps on a grid, or a text whose keys are to be found.
        days: whether steps are days from 1970.
    """

    name: str
    domain: ColumnDomain
    part: Number | OneHot | PlainText
    days: bool = False

    @property
    def key(self) -> Expression:
        """Returns the expression that is read of a row."""
        return self.part.key

    def decode(self, values: Sequence[Value]) -> Sequence[Any]:
        """Decodes what was read into values, which the domain turns into codes."""
        if isinstance(self.part, OneHot | PlainText):
            return list(values)
        if self.days:
            return [None if value is None else _EPOCH + dt.timedelta(days=int(str(value))) for value in values]
        return [None if step != step else step for step in self.part.decode(values)[:, 0].tolist()]  # noqa: PLR0124


def domain_columns(
    rows: TrainingRows, given: Mapping[str, ColumnDomain], bins: int, within: str
) -> tuple[DomainColumn, ...]:
    """Returns the columns of rows with their domains: those that are given, and for all others those declared.

    Args:
        rows: what is selected.
        given: domains of some columns.
        bins: into how many declared bounds of numbers are cut.
        within: how numbers get their place within such bins back.

    Raises:
        UnsupportedQuery: if nothing public is known of a column.
        InvalidParameter: if a given domain is not about values of the column's type.
    """
    own = [lookup(name, {column.name: column.name for column in rows.columns}) for name in given]
    for name, found in zip(given, own, strict=True):
        if found is None:
            known = ", ".join(column.name for column in rows.columns)
            raise InvalidParameter("domain", name, "to be a column of the rows", f"The columns are {known}.")
    chosen = dict(zip(own, given.values(), strict=True))
    cut = partial(equal_bins, bins=bins, within=within)
    return tuple(_column(column, rows, chosen.get(column.name), cut) for column in rows.columns)


def given_domains(domain: Any) -> dict[str, ColumnDomain]:
    """Returns the domains of columns that a caller gave, as a dict or as a `Domain`; None gives none."""
    if domain is None or (isinstance(domain, Mapping) and not domain):
        return {}
    return dict(Domain.of(domain).columns)


def whole_domain(columns: Iterable[DomainColumn], given: Any, forbidden: Iterable[Mapping[str, Any]]) -> Domain:
    """Returns the domain of rows, with the rules of a `Domain` that was given, and further ones."""
    domains = {column.name: column.domain for column in columns}
    if not isinstance(given, Domain) or not given.forbidden:
        return Domain(domains, forbidden=forbidden)
    names = {name: lookup(name, {one: one for one in domains}) for name in given.columns}
    rules = [{names[name]: sorted(codes) for name, codes in rule.items()} for rule in given.forbidden]
    written = {"columns": {name: one.as_dict() for name, one in domains.items()}, "forbidden": rules}
    return Domain(Domain.from_json(json.dumps(written)), forbidden=forbidden)


def _column(column: RowColumn, rows: TrainingRows, given: ColumnDomain | None, cut: Cut) -> DomainColumn:
    domain = given if given is not None else _domain_from_schema(column, rows, cut)
    if isinstance(domain, Keys):
        return _make_key_column(column, domain)
    if isinstance(domain, Calendar):
        return _make_date_column(column, domain)
    if isinstance(domain, UnknownKeys | FoundKeys) and column.column.type is Type.TEXT:
        return DomainColumn(name=column.name, domain=domain, part=PlainText(column.column))
    if not isinstance(domain, Bins) or not column.column.type.is_number:
        _misfit(column, domain)
    number = number_of(column, rows.source, ColumnBounds(Fraction(domain.edges[0]), Fraction(domain.edges[-1])))
    return DomainColumn(name=column.name, domain=domain, part=number)


def _domain_from_schema(column: RowColumn, rows: TrainingRows, cut: Cut) -> ColumnDomain:
    """Returns the domain that declarations give a column."""
    public, kind = column.schema, column.column.type
    keys = tuple(key for key in public.keys or () if key is not None)
    if kind is Type.BOOL:
        return Keys([False, True])
    if keys and kind in _PLAIN:
        return Keys(keys)
    if public.bounds is not None and kind.is_number:
        return cut(public.bounds, whole=kind is Type.INT)
    if public.bounds is not None and kind is Type.DATE:
        return _pieces(public.bounds)
    return _unknown(column, rows)


def equal_bins(bounds: ColumnBounds, bins: int, *, whole: bool, within: str = "uniform") -> Bins:
    """Returns bins of equal width between bounds; of whole numbers as equal as they can be, and no more than numbers.

    >>> equal_bins(ColumnBounds(Fraction(0), Fraction(119)), 4, whole=True).edges
    (0.0, 30.0, 60.0, 90.0, 120.0)
    >>> equal_bins(ColumnBounds(Fraction(0), Fraction(2)), 16, whole=True).size
    4
    """
    if whole:
        low, high = -(-bounds.low // 1), bounds.high // 1 + 1
        count = max(1, min(bins, high - low))
        edges = [int(low + (high - low) * place // count) for place in range(count + 1)]
        return Bins(edges, whole=True, within=within)
    ends = [float(bounds.low + bounds.width * place / bins) for place in range(bins + 1)]
    return Bins(ends, whole=False, within=within)


def _pieces(bounds: ColumnBounds) -> Calendar:
    """Returns months, if they are few, else quarters, else years; of whole years."""
    first, last = (dt.date.fromordinal(int(end)).year for end in (bounds.low, bounds.high))  # 1 is 0001-01-01
    for part, per_year in (("year_month", 12), ("quarter", 4)):
        if (last - first + 1) * per_year <= MOST_PIECES:
            return Calendar(part, years=(first, last))
    return Calendar("year", years=(first, last))


def _make_key_column(column: RowColumn, domain: Keys) -> DomainColumn:
    kind, plain = column.column.type, _PLAIN.get(column.column.type, ())
    if not all(isinstance(key, plain) and isinstance(key, bool) is (kind is Type.BOOL) for key in domain.keys):
        _misfit(column, domain)
    part = OneHot(name=column.name, value=column.column, keys=domain.keys)
    return DomainColumn(name=column.name, domain=domain, part=part)


def _make_date_column(column: RowColumn, domain: Calendar) -> DomainColumn:
    """Returns a day, clipped to the declared years; a moment counts as its day."""
    kind = column.column.type
    if not kind.is_time:
        _misfit(column, domain)
    day = column.column if kind is Type.DATE else call("to_date", column.column)
    first, last = (_FIRST, _LAST)
    if domain.years is not None:
        first, last = dt.date(domain.years[0], 1, 1), dt.date(domain.years[1], 12, 31)
    low, high = ((end - _EPOCH).days for end in (first, last))
    days = call("days_between", Literal(_EPOCH, Type.DATE), day)
    part = Number(name=column.name, value=days, exponent=0, low=low, high=high)
    return DomainColumn(name=column.name, domain=domain, part=part, days=True)


def _misfit(column: RowColumn, domain: ColumnDomain) -> NoReturn:
    kind = column.column.type
    hint = (
        "Use Keys or Bins for whole numbers, Bins for other numbers, Keys or a Calendar for days, a Calendar for "
        "moments, and Keys or UnknownKeys for texts."
    )
    told = f"to fit the column, which is {kind.value}"
    raise InvalidParameter(f"domain of {column.name}", type(domain).__name__, told, hint)


_REMEDIES = {
    Type.TEXT: "Keys([...])",
    Type.DATE: "Calendar('year_month', years=(2020, 2024))",
    Type.TIMESTAMP: "Calendar('year_month', years=(2020, 2024))",
}


def _unknown(column: RowColumn, rows: TrainingRows) -> NoReturn:
    name, kind = quote_name(column.name), column.column.type
    fact = "bounds" if kind.is_number or kind.is_time else "keys"
    missing = "keys or bounds" if fact == "bounds" else fact
    reason = f"{name} has no public values: it is {kind.value} without declared {missing}."
    remedy = _REMEDIES.get(kind, "Bins([...])")
    hint = f"Pass public values in the domain: {remedy} for it. Or ask the steward to declare {fact}. "
    if kind is Type.TEXT:
        hint += "Or have keys found for a part of the budget, with UnknownKeys(most=100) in the domain. "
    rows.source.refuse(reason, hint + "Or select only other columns, such as {count}.", column.at)


def checked_bins(bins: int) -> int:
    """Returns a number of bins."""
    return check.integer(bins=bins, at_least=1, at_most=1 << 12)
