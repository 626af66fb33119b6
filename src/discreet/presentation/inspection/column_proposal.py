"""Proposes what to declare about a column: a type that reads its cells, bounds of its kind, and what to mend first.

The type is proposed after looking at the cells, which is a steward's right before anything is answered; bounds are
those of the column's kind, from its name.
"""

from __future__ import annotations

from discreet.dataclass import dataclass
from discreet.engines.duckdb.cell_forms import CellFormat, Mend
from discreet.engines.duckdb.file_content import ColumnForms
from discreet.plan.model.types import Type
from discreet.presentation.inspection.column_kinds import ColumnKind, kind_of

_ENOUGH, _NOTABLE = 0.99, 0.5
"""The share of values that a type reads if it is proposed, and if it is mentioned."""

_COMMAS = (
    CellFormat.COMMA,
    CellFormat.COMMA_GROUPS,
    CellFormat.DECIMAL_COMMA,
    CellFormat.POINT_GROUPS,
    CellFormat.OTHER_GROUPS,
)
_SIGNS = (CellFormat.CURRENCY, CellFormat.PERCENT)
_SHORT_DAYS = (CellFormat.DAY_FIRST, CellFormat.MONTH_FIRST, CellFormat.DAY_OR_MONTH_FIRST)
_OTHER_DAYS = (*_SHORT_DAYS, CellFormat.YEAR_FIRST, CellFormat.NAMED_MONTH, CellFormat.ZONED)
_NUMBERS = (CellFormat.WHOLE, CellFormat.PADDED, CellFormat.NUMBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposal for what to declare about a column.

    Attributes:
        type: the one that its cells are read as.
        missing: how many cells are empty.
        unread: how many cells the type makes missing, since it does not read them.
        kind: what the column is about, if its name suggests it and its type fits.
        remarks: what a steward should know.
        mend: how its cells become ones that are read; None if there is nothing to mend, or no safe way to do it.
    """

    type: Type
    missing: int
    unread: int = 0
    kind: ColumnKind | None = None
    remarks: tuple[str, ...] = ()
    mend: Mend | None = None


def proposal(name: str, found: ColumnForms, bare: ColumnForms | None = None) -> Proposal:
    """Returns what to declare about a column.

    Args:
        name: of the column.
        found: the forms of its cells.
        bare: the same without signs of currencies and percents, if it has such.
    """
    missing = found.count(CellFormat.MISSING)
    if found.stored is not Type.TEXT:
        return Proposal(type=found.stored, missing=missing, kind=_fitting(name, found.stored))
    cells = sum(found.forms.values()) - missing - found.count(CellFormat.MARK)
    if not cells:
        return Proposal(type=Type.TEXT, missing=missing, remarks=("it is empty",))
    kind, remarks = _type(found, cells)
    mend, troubles = _mend(bare or found, found, cells)
    unread = 0 if kind is Type.TEXT else cells - _read(found, kind)
    if kind is not Type.TEXT and found.count(CellFormat.MARK):
        remarks += (f"{found.count(CellFormat.MARK)} marks of missing values, read as missing",)
    return Proposal(
        type=kind,
        missing=missing + (found.count(CellFormat.MARK) if kind is not Type.TEXT else 0),
        unread=unread,
        kind=_fitting(name, kind),
        remarks=(*remarks, *troubles),
        mend=mend,
    )


def _fitting(name: str, kind: Type) -> ColumnKind | None:
    known = kind_of(name)
    fits = known is not None and (kind in (Type.DATE, Type.TIMESTAMP) if known.is_day else kind.is_number)
    return known if fits else None


def _read(found: ColumnForms, kind: Type) -> int:
    """Returns how many cells a type reads."""
    return found.count(*_READ_BY[kind])


_READ_BY = {
    Type.INT: (CellFormat.WHOLE, CellFormat.PADDED),
    Type.FLOAT: _NUMBERS,
    Type.BOOL: (CellFormat.TRUTH,),
    Type.DATE: (CellFormat.DAY,),
    Type.TIMESTAMP: (CellFormat.DAY, CellFormat.MOMENT),
}
"""The forms that each type reads, the narrower types first."""


def _type(found: ColumnForms, cells: int) -> tuple[Type, tuple[str, ...]]:
    """Returns the narrowest type that reads nearly all cells, and remarks about those that come near to one."""
    for kind in _READ_BY:
        share = _read(found, kind) / cells
        if share >= _ENOUGH and kind.is_number and found.count(CellFormat.PADDED):
            return Type.TEXT, (f"{found.count(CellFormat.PADDED)} values have leading zeros, which only text keeps",)
        if share >= _ENOUGH and not (kind is Type.INT and found.count(CellFormat.NUMBER)):
            return kind, ()
    near = next((kind for kind in (Type.FLOAT, Type.TIMESTAMP) if _read(found, kind) / cells >= _NOTABLE), None)
    if near is None:
        return Type.TEXT, ()
    read = _read(found, near)
    return Type.TEXT, (f"{read} of {cells} values are of type {near.value}; with it, the others would be missing",)


# ------------------------------------------------------------------------------------------------------------- mend


def _mend(bare: ColumnForms, found: ColumnForms, cells: int) -> tuple[Mend | None, tuple[str, ...]]:
    """Returns how to write a column's numbers or days plainly, and what is the matter with them."""
    odd = found.count(*_COMMAS, *_SIGNS)
    if odd and (odd + found.count(*_NUMBERS)) / cells >= _NOTABLE:
        return _mended_numbers(bare, _write_form_counts(found, (*_SIGNS, *_COMMAS)))
    if found.count(*_OTHER_DAYS) / cells >= _NOTABLE:
        return _mended_days(found, _write_form_counts(found, _OTHER_DAYS))
    return None, ()


def _write_form_counts(found: ColumnForms, forms: tuple[CellFormat, ...]) -> str:
    return ", ".join(f"{form.value}: {found.count(form)} values" for form in forms if found.count(form))


def _mended_numbers(bare: ColumnForms, told: str) -> tuple[Mend | None, tuple[str, ...]]:
    decimal, groups = bare.count(CellFormat.DECIMAL_COMMA, CellFormat.POINT_GROUPS), bare.count(CellFormat.COMMA_GROUPS)
    if decimal and groups:
        return None, (f"{told}: commas mean decimals in some values and thousands in others",)
    if bare.count(CellFormat.COMMA) and not decimal and not groups and not bare.count(CellFormat.NUMBER):
        return None, (f"{told}: a comma may mean decimals or thousands, and the values do not show which",)
    if not decimal:
        return Mend.COMMA_GROUPS, (told,)
    return Mend.POINT_GROUPS if bare.count(CellFormat.POINT_GROUPS) else Mend.DECIMAL_COMMA, (told,)


def _mended_days(found: ColumnForms, told: str) -> tuple[Mend | None, tuple[str, ...]]:
    if found.count(CellFormat.DAY_FIRST) and found.count(CellFormat.MONTH_FIRST):
        return None, (f"{told}: the order differs from value to value",)
    if found.count(CellFormat.DAY_OR_MONTH_FIRST) and not found.count(CellFormat.DAY_FIRST, CellFormat.MONTH_FIRST):
        return None, (f"{told}: both orders are possible, and the values do not show which",)
    most = max(_BY_FORM, key=found.count)
    return _BY_FORM[most], (told,)


_BY_FORM = {
    CellFormat.DAY_FIRST: Mend.DAY_FIRST,
    CellFormat.MONTH_FIRST: Mend.MONTH_FIRST,
    CellFormat.YEAR_FIRST: Mend.YEAR_FIRST,
    CellFormat.NAMED_MONTH: Mend.NAMED_MONTH,
    CellFormat.ZONED: Mend.ZONED,
}
