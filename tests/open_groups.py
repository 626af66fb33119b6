"""What engines hand over is sealed: tests look inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.exact.integer_columns import Column, objects
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.open_exact import open_exact
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.readings import Groups, Reading


def unsealed(groups: ExactGroups) -> Groups:
    """Returns the exact integers of each group."""
    return open_exact(groups).groups


def sealed(groups: Groups, reading: Reading) -> ExactGroups:
    """Returns groups as an engine would hand them over."""
    width = None if reading.split or reading.spread else len(reading.statistics)
    return ExactGroups(GroupColumns.of(groups, [key.type for key in reading.keys], width))


def rows_of(columns: Sequence[Column]) -> Integers:
    """Returns what meets noise, a row for each group."""
    return np.stack([objects(column) for column in columns], axis=1)
