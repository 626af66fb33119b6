"""The modes of a program at work: values counted by candidate, and one candidate drawn in each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from discreet.measurement.intervals.variances import Integers
from discreet.measurement.program.program import Program
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.model.nodes import Value
from discreet.plan.model.readings import Groups, Reading

Read = Callable[[Reading], Groups]


def released_modes(program: Program, shown: Sequence[tuple[Value, ...]], read: Read, releaser: Releaser) -> Integers:
    """A row for each group that is shown and a column for each mode, as places among its candidates."""
    found = np.empty((len(shown), len(program.modal)), dtype=object)
    for reading in program.polls:
        groups = read(reading)
        for column, recipe in enumerate(program.modal):
            if recipe.candidates.split == reading.split:
                found[:, column] = releaser.candidates(recipe, groups, shown)
    return found
