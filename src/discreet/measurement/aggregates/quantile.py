"""MEDIAN, QUANTILE, MIN and MAX: the grid of their argument, and how its values are counted."""

from __future__ import annotations

from discreet.errors import UnsupportedQuery
from discreet.measurement.aggregates.steps import Steps
from discreet.plan.analysis.function_bounds import is_whole
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.model.readings import Split
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type

MOST_POINTS = 4096
"""A grid of at most so many points is read as it is."""

_BLOCKS = 1024


def steps_of(aggregate: Aggregate, schema: TableSchema, *, former: bool = False) -> Steps:
    """The grid of an aggregate's argument; releases of earlier versions do not count how it rounds.

    Raises:
        UnsupportedQuery: if it has no public bounds.
    """
    argument = aggregate.argument
    limits = None if argument is None else bounds(argument, schema)
    if argument is None or limits is None:
        raise UnsupportedQuery(
            "A quantile needs public bounds of its argument.",
            "Declare them with bounds=..., or clip in the question: MEDIAN(GREATEST(LEAST(x, 100), 0)).",
        )
    found = Steps.of(limits, argument.type)
    return found if former or argument.type is Type.INT else found.clipping(limits, whole=is_whole(argument))


def shift_of(steps: Steps) -> int:
    """How wide blocks of points are, as a power of two: a function of the public grid alone.

    >>> shift_of(Steps(0, 0, 120)), shift_of(Steps(-10, 0, 1 << 20))
    (0, 11)
    """
    return 0 if steps.width < MOST_POINTS else (steps.width // _BLOCKS).bit_length()


def counted(argument: Expression, steps: Steps) -> Split:
    """How the values of an argument are counted first: by blocks."""
    return Split(argument=argument, exponent=steps.exponent, low=steps.low, high=steps.high, shift=shift_of(steps))
