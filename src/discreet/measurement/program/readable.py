"""The last gate before the charge: what an engine would refuse for what it is must not be paid for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.program.program import Program
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.plan.validation import check_reading

_OF_A_GRID = ("exponent", "factor", "high", "less", "low", "shift", "times")


@contextmanager
def exact_numbers() -> Iterator[None]:
    """Turns a grid that does not exist into a refusal with a remedy.

    Raises:
        UnsupportedQuery: if numbers of the question do not fit on a grid of exact integers.
    """
    try:
        yield
    except InvalidParameter as error:
        if error.name not in _OF_A_GRID:
            raise
        reason = "The numbers of this question are too large, too small or too fine to be added up exactly."
        hint = "Scale them, or clip them to moderate limits with GREATEST and LEAST."
        raise UnsupportedQuery(reason, hint) from None


def answerable(program: Program, schemas: Mapping[str, TableSchema]) -> Program:
    """The program, if every engine can run it: a function of the question and the declarations alone.

    Raises:
        InvalidParameter: naming the part that no engine takes.
    """
    for reading in program.readings:
        check_readable(reading, schemas)
    return program


def check_readable(reading: Reading, schemas: Mapping[str, TableSchema]) -> None:
    """Refuses a reading that engines would refuse for what it is.

    Raises:
        InvalidParameter: naming the part that no engine takes.
    """
    check_reading(reading, {table: _types(schema) for table, schema in schemas.items()})


def _types(schema: TableSchema) -> dict[str, Type]:
    return {name: column.type for name, column in schema.stored.items()}
