"""How the table of one clique is multiplied from its factors, and summed back to each of them, in few passes.

The product of a clique's factors is formed in pairs, the pair with the smallest joint table first; only the last
products are as large as the clique. Sums back to the factors take the same steps in reverse, since the derivative of a
broadcast product is a sum: one pass over the large table serves several factors.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np

from discreet.dataclass import dataclass
from discreet.synthetic.inference.factors import Attributes, Sizes, Table, cells, shape_within

_FEW = 8  # columns that are added one by one: a reduction of so short an axis is slow


def sum_middle_axis(table: Table, shape: tuple[int, int, int]) -> Table:
    """Returns the sum of a table of shape (before, summed, after) over its middle axis, as (before, after)."""
    before, length, after = shape
    if after > 1 or length > _FEW:
        result: Table = np.add.reduce(table.reshape(shape), axis=1)
        return result
    columns = table.reshape(before, length)
    result = columns[:, 0].copy()
    for column in range(1, length):
        result += columns[:, column]
    return result


@dataclass(frozen=True, slots=True)
class Reduction:
    """The sum of a table over some of its axes, one group of adjacent axes at a time.

    Args:
        steps: shapes (before, summed, after) of the table at each step.
        shape: what comes out.
    """

    steps: tuple[tuple[int, int, int], ...]
    shape: tuple[int, ...]

    def __call__(self, table: Table) -> Table:
        """Returns the sum; the table itself where nothing is summed."""
        for shape in self.steps:
            table = sum_middle_axis(table, shape)
        return table.reshape(self.shape)


def reduction(scope: Attributes, keep: Sequence[str], frame: Attributes, sizes: Sizes) -> Reduction:
    """Returns the sum from a scope to a part of it; shapes are those of a frame that holds both."""
    groups = [[kept, cells(names, sizes)] for kept, names in itertools.groupby(scope, key=lambda name: name in keep)]
    steps = []
    while not all(kept for kept, _ in groups):
        largest = max((size, index) for index, (kept, size) in enumerate(groups) if not kept)[1]
        sizes_before = [size for _, size in groups[:largest]]
        sizes_after = [size for _, size in groups[largest + 1 :]]
        before, after = (int(np.prod(part, dtype=np.int64)) for part in (sizes_before, sizes_after))
        steps.append((before, groups[largest][1], after))
        del groups[largest]
    return Reduction(tuple(steps), shape_within(keep, frame, sizes))


@dataclass(frozen=True, slots=True)
class _Merge:
    """Multiplies two tables to a third, and holds the ways back."""

    left: int
    right: int
    back_left: Reduction | None
    back_right: Reduction | None


@dataclass(frozen=True, slots=True)
class CliquePlan:
    """The products that make the table of a clique from its factors.

    Args:
        shape: of the clique.
        leaves: how many factors there are, numbered from 0; results of products are numbered on from there.
        merges: the products; the last one fills the clique.
        whole: the way back from the clique to the last product, where that has fewer attributes.
    """

    shape: tuple[int, ...]
    leaves: int
    merges: tuple[_Merge, ...]
    whole: Reduction

    def product(self, leaves: Sequence[Table], out: Table, *, logs: bool = False) -> None:
        """Fills the clique's table with the product of its factors, or with the sum of their logarithms."""
        combine = np.add if logs else np.multiply
        nodes = list(leaves)
        for merge in self.merges[:-1]:
            nodes.append(combine(nodes[merge.left], nodes[merge.right]))
        if self.merges:
            last = self.merges[-1]
            combine(nodes[last.left], nodes[last.right], out=out)
        elif nodes:
            out[...] = nodes[0]
        else:
            out[...] = 0.0 if logs else 1.0

    def sums(self, table: Table) -> dict[int, Table]:
        """Returns the marginal on each factor that asks for one."""
        if not self.leaves:
            return {}
        nodes = {self.leaves + len(self.merges) - 1: self.whole(table)}
        for number in range(len(self.merges) - 1, -1, -1):
            merge = self.merges[number]
            node = nodes.pop(self.leaves + number, None)
            if node is not None and merge.back_left is not None:
                nodes[merge.left] = merge.back_left(node)
            if node is not None and merge.back_right is not None:
                nodes[merge.right] = merge.back_right(node)
        return nodes


def clique_plan(clique: Attributes, scopes: Sequence[Attributes], wanted: Sequence[bool], sizes: Sizes) -> CliquePlan:
    """Returns the products that make a clique's table.

    Args:
        clique: its attributes, in the order of axes.
        scopes: the attributes of each factor, in the same order.
        wanted: whether the marginal on each factor is asked for.
        sizes: how many values each attribute has.
    """
    nodes, asked = list(scopes), list(wanted)
    pool = set(range(len(nodes)))
    merges = []
    while len(pool) > 1:
        left, right = _cheapest(nodes, pool, sizes)
        union = {*nodes[left], *nodes[right]}
        joint = tuple(name for name in clique if name in union)
        if len(pool) == 2:  # the last product fills the clique, whatever its factors lack
            joint = clique
        back = [reduction(joint, nodes[side], clique, sizes) if asked[side] else None for side in (left, right)]
        merges.append(_Merge(left, right, *back))
        pool -= {left, right}
        pool.add(len(nodes))
        nodes.append(joint)
        asked.append(asked[left] or asked[right])
    whole = reduction(clique, nodes[-1] if nodes else clique, clique, sizes)
    return CliquePlan(shape_within(clique, clique, sizes), len(scopes), tuple(merges), whole)


def _cheapest(nodes: Sequence[Attributes], pool: Collection[int], sizes: Sizes) -> tuple[int, int]:
    pairs = itertools.combinations(sorted(pool), 2)
    return min(pairs, key=lambda pair: cells({*nodes[pair[0]], *nodes[pair[1]]}, sizes))
