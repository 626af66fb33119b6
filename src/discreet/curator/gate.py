"""The last gate before the charge: what an engine would refuse for what it is must not be paid for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from discreet.curator.program import Program
from discreet.engines.validation import check_reading
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.plan.schema import TableSchema

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
    declared = {table: {name: c.type for name, c in schema.stored.items()} for table, schema in schemas.items()}
    for reading in program.readings:
        check_reading(reading, declared)
    return program
