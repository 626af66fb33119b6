"""Rows drawn from a fitted model given the values of some attributes: evidence goes up its tree, and rows come down.

Let T be the table of a clique, given its separator S where it has a parent. With the evidence fixed in it, and the
messages of its children multiplied in, it is W; the message to its parent is W summed over what is neither evidence nor
in S. Along the tree this is the probability of all evidence below, given S (Lauritzen, Spiegelhalter 1988). So W is the
law of a clique's free attributes given the evidence everywhere, up to a factor, once those in S are drawn. Rows that
agree on all evidence below a clique share one W.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.dataclass import dataclass
from discreet.noise import Bits
from discreet.synthetic.inference.calibrated_tree import CalibratedTree, conditional_table
from discreet.synthetic.inference.factors import Attributes, Table, cells
from discreet.synthetic.inference.row_sampler import Column, drawn_values, sample_rows

_MOST_CELLS = 1 << 23  # of one clique's tables at a time


def sample_given(
    model: CalibratedTree, evidence: Mapping[str, Column], *, bits: Bits | None = None
) -> dict[str, Column]:
    """Returns the other attributes of rows, drawn from a model given some attributes of each.

    Rows that agree on all they depend on get each value as often as its conditional probability says, rounded at
    random, as `sample_rows` does. Where the evidence has probability 0 in the model, other attributes are drawn as if
    there were none.

    Formal guarantee: a function of the model, the evidence and the bits. Cells of probability 0 never occur among the
    other attributes.

    Args:
        model: the marginals of a junction tree.
        evidence: codes of at least one attribute, one for each row.
        bits: the source of randomness; the operating system's if None.
    """
    rows = len(next(iter(evidence.values())))
    sizes = model.tree.sizes
    widest = max(cells((name for name in clique if name not in evidence), sizes) for clique in model.tree.cliques)
    step = max(1, _MOST_CELLS // widest)
    free = [name for name in sizes if name not in evidence]
    found = {name: np.zeros(rows, dtype=np.int64) for name in free}
    order = np.lexsort(tuple(evidence.values()))  # rows that agree are together
    for start in range(0, rows, step):
        part = order[start : start + step]
        for name, values in _part(model, {name: column[part] for name, column in evidence.items()}, bits).items():
            found[name][part] = values
    return found


def _part(model: CalibratedTree, evidence: Mapping[str, Column], bits: Bits | None) -> dict[str, Column]:
    rows = len(next(iter(evidence.values())))
    tree = _Evidence(model, evidence, rows)
    columns = tree.draw_columns(bits)
    lost = np.flatnonzero(tree.impossible)
    if lost.size:
        instead = sample_rows(model, lost.size, bits=bits)
        for name, column in columns.items():
            column[lost] = instead[name]
    return columns


@dataclass(frozen=True, slots=True)
class _Given:
    """A clique given evidence: which table each row has, and the tables over free attributes, in their order."""

    which: Column
    tables: Table
    free: Attributes


class _Evidence:
    """All cliques of a tree given the evidence of some rows."""

    def __init__(self, model: CalibratedTree, evidence: Mapping[str, Column], rows: int) -> None:
        self.model, self.evidence, self.rows = model, evidence, rows
        self.given: dict[int, _Given] = {}
        for index in reversed(range(len(model.tree.cliques))):
            self.given[index] = self._clique(index)
        root = self.given[0]
        self.impossible = ~(root.tables.reshape(len(root.tables), -1).sum(axis=1) > 0)[root.which]

    def _clique(self, index: int) -> _Given:
        tree = self.model.tree
        clique = tree.cliques[index]
        fixed = tuple(name for name in clique if name in self.evidence)
        free = tuple(name for name in clique if name not in self.evidence)
        children = [child for child, parent in enumerate(tree.parents) if parent == index and child != index]
        keys = [self.evidence[name] for name in fixed] + [self.given[child].which for child in children]
        lines = np.stack(keys, axis=1) if keys else np.zeros((self.rows, 0), dtype=np.int64)
        different, which = _distinct(lines)
        table = self.model.tables[index]
        if index:
            table = conditional_table(table, cells(tree.separators[index], tree.sizes))
        order = [clique.index(name) for name in (*fixed, *free)]
        shape = [tree.sizes[name] for name in fixed]
        found = table.transpose(order).reshape(*shape, *(tree.sizes[name] for name in free))
        tables = np.array(found[tuple(different[:, place] for place in range(len(fixed)))])
        if not fixed:
            tables = np.repeat(tables[None], len(different), axis=0)
        for place, child in enumerate(children, start=len(fixed)):
            tables = tables * self._message(child, free)[different[:, place]]
        return _Given(which, tables, free)

    def _message(self, child: int, frame: Attributes) -> Table:
        """Returns the message of a clique to its parent, with an axis for each free attribute of the parent."""
        tree, below = self.model.tree, self.given[child]
        kept = set(tree.separators[child])
        axes = tuple(axis for axis, name in enumerate(below.free, start=1) if name not in kept)
        message = below.tables.sum(axis=axes)
        flat = message.reshape(len(message), -1)
        top = flat.max(axis=1, keepdims=True)
        flat = np.divide(flat, top, out=np.zeros_like(flat), where=top > 0)
        return np.asarray(flat).reshape(len(flat), *(tree.sizes[name] if name in kept else 1 for name in frame))

    def draw_columns(self, bits: Bits | None) -> dict[str, Column]:
        """Draws the free attributes, clique by clique from the root."""
        columns: dict[str, Column] = {}
        sizes = self.model.tree.sizes
        for index in range(len(self.model.tree.cliques)):
            given = self.given[index]
            for place, name in enumerate(given.free):
                if name in columns:
                    continue
                before = given.free[:place]
                group = given.which.copy()
                for known in before:
                    group = group * sizes[known] + columns[known]
                joint = given.tables.reshape(-1, sizes[name], cells(given.free[place + 1 :], sizes)).sum(axis=2)
                joint[~(joint.sum(axis=1) > 0)] = 1.0  # of rows that are drawn otherwise
                columns[name] = drawn_values(joint, group, bits)
        return columns


def _distinct(lines: Column) -> tuple[Column, Column]:
    """Returns the different lines, and which of them each line is."""
    if not lines.shape[1]:
        return np.zeros((1, 0), dtype=np.int64), np.zeros(len(lines), dtype=np.int64)
    different, which = np.unique(lines, axis=0, return_inverse=True)
    return different, which.reshape(-1)
