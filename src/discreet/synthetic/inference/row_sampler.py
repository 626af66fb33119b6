"""Rows drawn from a fitted model, attribute by attribute along its junction tree.

The model is public by then: this randomness gives no privacy, and comes from the common source so that a seed repeats
it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.noise import Bits
from discreet.noise.experiment import uniforms
from discreet.synthetic.inference.calibrated_tree import CalibratedTree
from discreet.synthetic.inference.factors import Attributes, Table, cells

Column = NDArray[np.int64]


def sample_rows(model: CalibratedTree, rows: int, *, bits: Bits | None = None) -> dict[str, Column]:
    """Returns a table drawn from a model: codes of values, one column per attribute, in the order of the domain.

    Each attribute is drawn given those before it in its clique. The rows that agree on these get each value as often
    as its conditional probability says, rounded at random: expected counts are exact, counts differ from them by less
    than one, and there is far less sampling error than in rows drawn one by one. Which of these rows gets which value
    is a random order.

    Formal guarantee: a function of the model, the number of rows and the bits. Cells of probability 0 never occur.

    Args:
        model: the marginals of a junction tree.
        rows: how many rows to draw.
        bits: the source of randomness; the operating system's if None.
    """
    check.integer(rows=rows, at_least=0)
    columns: dict[str, Column] = {}
    for before, name, table in _conditionals(model):
        group = np.zeros(rows, dtype=np.int64)
        for known in before:
            group = group * model.tree.sizes[known] + columns[known]
        columns[name] = drawn_values(table.reshape(-1, model.tree.sizes[name]), group, bits)
    return {name: columns[name] for name in model.tree.sizes}


def _conditionals(model: CalibratedTree) -> Iterator[tuple[Attributes, str, Table]]:
    """Yields each attribute with those it is drawn after, and the table of both, the attribute last."""
    tree = model.tree
    for clique, separator, table in zip(tree.cliques, tree.separators, model.tables, strict=True):
        for place in range(len(separator), len(clique)):
            before = clique[:place]
            joint = table.reshape(cells(clique[: place + 1], tree.sizes), -1).sum(axis=1)
            yield before, clique[place], joint


def drawn_values(table: Table, group: Column, bits: Bits | None) -> Column:
    """Returns a value for each row, given the line of the table that the row belongs to."""
    order = np.argsort(group + uniforms(group.size, bits=bits) / 2)  # by group, which a half cannot change by rounding
    lines, sizes = np.unique(group, return_counts=True)
    counts = rounded_counts(table[lines], sizes, uniforms(lines.size, bits=bits))
    values = np.empty(group.size, dtype=np.int64)
    values[order] = np.repeat(np.tile(np.arange(table.shape[1]), lines.size), counts.reshape(-1))
    return values


def rounded_counts(weights: Table, totals: Column, starts: Table) -> NDArray[np.int64]:
    """Returns whole numbers in proportion to weights, which add up to a total in each line.

    Systematic rounding (Madow 1949): with a start u uniform on (0, 1) and cumulative shares c, the j-th count is
    floor(c_j + u) - floor(c_(j-1) + u). Its mean is c_j - c_(j-1) exactly, it differs from it by less than 1, and a
    weight of 0 gives a count of 0.

    >>> rounded_counts(np.array([[0.5, 0.0, 0.25, 0.25]]), np.array([2]), np.array([0.6]))
    array([[1, 0, 1, 0]])
    """
    sums = np.cumsum(weights, axis=1)
    cumulative = sums / sums[:, -1:] * totals[:, None]
    steps = np.minimum(np.floor(cumulative + starts[:, None]), totals[:, None])  # a sum may be rounded up to total + 1
    return np.diff(steps, axis=1, prepend=0).astype(np.int64)
