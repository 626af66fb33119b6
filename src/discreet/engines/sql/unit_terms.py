"""Whose row it is, as terms of SQL: a column of ids, several together, or a person in one period."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.engines.sql.printer import Printer, Term
from discreet.plan.model.nodes import UNIT, ColumnRef
from discreet.plan.model.row_period import RowPeriod
from discreet.plan.model.types import Type


def unit_of(printer: Printer, column: str, kind: Type) -> Term:
    """Prints the id that counts (`row_choice.normalised`)."""
    unit = printer.name(printer.print(ColumnRef(column, kind)))
    known = kind is not Type.TEXT or column == UNIT  # which was made by this function
    return unit if known else printer.name(printer.fill(printer.dialect.normalised_id, unit))


def is_somebody(printer: Printer, column: str, kind: Type) -> Term:
    """Prints that the id is not NULL, from the column as stored: a database would compute the id once more."""
    unit = printer.name(printer.print(ColumnRef(column, kind)))
    known = kind is not Type.TEXT or column == UNIT
    return printer.fill("{0} IS NOT NULL" if known else printer.dialect.is_id, unit)


def unit_of_parts(printer: Printer, columns: Sequence[tuple[str, Type]]) -> Term:
    """Prints the id that several columns make (`row_choice.put_together`); what is joined to NULL is NULL."""
    return _put_together(printer, [(unit_of(printer, column, kind), kind) for column, kind in columns])


def unit_of_period(printer: Printer, column: str, period: RowPeriod) -> Term:
    """Prints the id of one person's rows of one period, of two parts like any other."""
    person = unit_of(printer, column, printer.declared[column])
    first_day = printer.name(printer.print(period.first_day))
    return _put_together(printer, [(person, printer.declared[column]), (first_day, Type.DATE)])


def _put_together(printer: Printer, parts: Sequence[tuple[Term, Type]]) -> Term:
    texts = [printer.name(printer.fill(printer.dialect.id_parts[kind], part)) for part, kind in parts]
    lengths = (printer.dialect.cast(f"length({{{i}}})", Type.TEXT) for i in range(len(texts)))
    pieces = " || ".join(f"{length} || ':' || {{{i}}}" for i, length in enumerate(lengths))
    return printer.name(printer.fill(pieces, *texts))
