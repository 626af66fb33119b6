"""Belief propagation: the marginals of a product of factors, by two passes of messages over a junction tree.

Messages go up to the root and down again (Lauritzen and Spiegelhalter 1988; Jensen, Lauritzen, Olesen 1990). On the way
up each clique becomes the conditional law of its own attributes given its separator; on the way down it is multiplied
by the separator's marginal. Tables are multiplied as they are, each scaled to a largest cell of 1, since an exponential
of each cell would cost more than all the rest; where a conditional law comes near the smallest float that way, its
clique is done again in log space, so that results are those of log space always.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.inference.calibrated_tree import CalibratedTree
from discreet.synthetic.inference.clique_plans import CliquePlan, clique_plan, sum_middle_axis
from discreet.synthetic.inference.factors import Attributes, Factor, Table, cells, shape_within
from discreet.synthetic.inference.junction_tree import JunctionTree

_SMALL = 1e-200  # a sum of cells above it has lost nothing that matters to underflow at 1e-308


@dataclass(frozen=True, slots=True)
class _Clique:
    """What is fixed about a clique: its factors (potentials, zeros, messages of children, in this order), its plan."""

    plan: CliquePlan
    potentials: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    zeros: tuple[Table, ...]
    children: tuple[int, ...]
    child_shapes: tuple[tuple[int, ...], ...]
    rows: int
    possible: slice | NDArray[np.intp]


@dataclass(slots=True)
class _Message:
    """A table exp(shift) times `scaled`, whose largest cell is 1; `logs` of it where exponentials may have vanished."""

    scaled: Table
    shift: float
    logs: Table | None = None

    def log_table(self) -> Table:
        return np.log(self.scaled) if self.logs is None else self.logs


class BeliefPropagation:
    """Marginals of products of potentials over fixed scopes, computed again and again for changing potentials.

    Potentials are one vector, the tables of all scopes one after another, as are the marginals that come out. The
    tables of cliques are kept between calls and overwritten: one object serves one thread.

    Args:
        tree: a junction tree in which some clique holds each scope.
        scopes: the attributes of each potential, with axes in the order of the tree.
        zeros: factors whose cells are 0 or minus infinity: what cannot be, known to the public.

    Raises:
        InvalidParameter: if a scope is in no clique, or nothing at all is possible.

    >>> from discreet.synthetic.inference.junction_tree import junction_tree
    >>> tree = junction_tree({"a": 2, "b": 2}, [("a", "b")])
    >>> propagation = BeliefPropagation(tree, [tree.order_attributes({"a", "b"})])
    >>> propagation(np.log([1.0, 2.0, 3.0, 4.0]))[1].round(9)
    array([0.1, 0.2, 0.3, 0.4])
    """

    def __init__(self, tree: JunctionTree, scopes: Sequence[Attributes], zeros: Iterable[Factor] = ()) -> None:
        self.tree = tree
        self.scopes = tuple(scopes)
        lengths = [cells(scope, tree.sizes) for scope in self.scopes]
        ends = np.cumsum([0, *lengths])
        self.slices = tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))
        self.length = int(ends[-1])
        self._starts = ends[:-1]
        self._lengths = np.array(lengths, dtype=np.intp)
        self._cliques = self._compile(
            [factor.transpose_to(tree.order_attributes(factor.attributes)) for factor in zeros]
        )
        self._tables = [np.empty(clique.plan.shape) for clique in self._cliques]

    def __call__(self, potentials: Table) -> tuple[float, Table]:
        """Returns the logarithm of the sum of the product over all rows of the domain, and the marginals of scopes."""
        log_total = self._propagate(potentials)
        return log_total, self._marginals

    def calibrate(self, potentials: Table) -> CalibratedTree:
        """Returns the marginals of all cliques."""
        self._propagate(potentials)
        return CalibratedTree(self.tree, tuple(table.copy() for table in self._tables))

    def _propagate(self, potentials: Table) -> float:
        scaled, tops = self._scale_potentials(potentials)
        messages: dict[int, _Message] = {}
        sums: dict[int, Table] = {}
        for index in reversed(range(len(self._cliques))):
            sums[index], messages[index] = self._up(index, potentials, scaled, tops, messages)
        self._marginals = np.empty(self.length)
        separators = {0: np.ones(1)}
        for index in range(len(self._cliques)):
            self._down(index, separators[index].reshape(-1), sums[index], separators)
        return messages[0].shift

    def _scale_potentials(self, potentials: Table) -> tuple[Table, Table]:
        """Returns the potentials with a largest cell of 1 each, and the logarithms of what they were divided by."""
        if not self.length:
            return np.empty(0), np.empty(0)
        tops = np.maximum.reduceat(potentials, self._starts)
        return np.exp(potentials - np.repeat(tops, self._lengths)), tops

    def _up(
        self, index: int, potentials: Table, scaled: Table, tops: Table, messages: Mapping[int, _Message]
    ) -> tuple[Table, _Message]:
        """Fills the table of a clique and returns its sums on the separator, and the message to the parent."""
        clique, table = self._cliques[index], self._tables[index]
        coming = [messages[child] for child in clique.children]
        shift = float(sum(tops[number] for number in clique.potentials)) + sum(message.shift for message in coming)
        leaves = [
            *(scaled[self.slices[n]].reshape(shape) for n, shape in zip(clique.potentials, clique.shapes, strict=True)),
            *clique.zeros,
            *(m.scaled.reshape(shape) for m, shape in zip(coming, clique.child_shapes, strict=True)),
        ]
        clique.plan.product(leaves, table)
        rows = table.reshape(clique.rows, -1)
        sums = _row_sums(rows)
        if sums[clique.possible].min() < _SMALL:
            return self._up_in_logs(index, potentials, tops, coming, shift)
        top = float(sums.max())
        return sums, _Message(sums / top, shift + float(np.log(top)))

    def _up_in_logs(
        self, index: int, potentials: Table, tops: Table, coming: Sequence[_Message], shift: float
    ) -> tuple[Table, _Message]:
        """Does the same with the largest cell of each conditional law taken out first."""
        clique, table = self._cliques[index], self._tables[index]
        with np.errstate(divide="ignore"):
            leaves = [
                *(
                    (potentials[self.slices[n]] - tops[n]).reshape(shape)
                    for n, shape in zip(clique.potentials, clique.shapes, strict=True)
                ),
                *(np.log(zeros) for zeros in clique.zeros),
                *(m.log_table().reshape(shape) for m, shape in zip(coming, clique.child_shapes, strict=True)),
            ]
            clique.plan.product(leaves, table, logs=True)
            rows = table.reshape(clique.rows, -1)
            tops_of_rows = rows.max(axis=1)
            finite = np.where(np.isneginf(tops_of_rows), 0.0, tops_of_rows)
            np.exp(rows - finite[:, None], out=rows)
            sums = _row_sums(rows)
            logs = np.log(sums) + finite
        top = float(logs.max())
        return sums, _Message(np.exp(logs - top), shift + top, logs - top)

    def _down(self, index: int, above: Table, below: Table, separators: dict[int, Table]) -> None:
        """Turns the table of a clique into its marginal, and hands parts of it to potentials and children."""
        clique, table = self._cliques[index], self._tables[index]
        rows = table.reshape(clique.rows, -1)
        rows *= np.divide(above, below, out=np.zeros_like(below), where=below > 0)[:, None]
        parts = clique.plan.sums(table)
        for place, number in enumerate(clique.potentials):
            self._marginals[self.slices[number]] = parts[place].reshape(-1)
        for place, child in enumerate(clique.children, start=len(clique.potentials) + len(clique.zeros)):
            separators[child] = parts[place]

    def _compile(self, zeros: Sequence[Factor]) -> list[_Clique]:
        """Assigns each factor to the smallest clique that holds it, and finds what is possible in each clique."""
        tree = self.tree
        potentials: list[list[int]] = [[] for _ in tree.cliques]
        for number, scope in enumerate(self.scopes):
            potentials[self._home(scope)].append(number)
        impossible: list[list[Factor]] = [[] for _ in tree.cliques]
        for factor in zeros:
            impossible[self._home(factor.attributes)].append(factor)
        result: list[_Clique] = []
        possible: dict[int, Table] = {}
        for index in reversed(range(len(tree.cliques))):
            children = [child for child, parent in enumerate(tree.parents) if parent == index]
            result.append(self._clique(index, potentials[index], impossible[index], children, possible))
        return result[::-1]

    def _clique(
        self, index: int, numbers: list[int], zeros: list[Factor], children: list[int], possible: dict[int, Table]
    ) -> _Clique:
        tree = self.tree
        clique, sizes = tree.cliques[index], tree.sizes
        mine = [self.scopes[number] for number in numbers]
        shared = [tree.separators[child] for child in children]
        scopes = [*mine, *(factor.attributes for factor in zeros), *shared]
        wanted = [True] * len(mine) + [False] * len(zeros) + [True] * len(shared)
        plan = clique_plan(clique, scopes, wanted, sizes)
        masks = tuple(np.exp(factor.within(clique)) for factor in zeros)
        child_shapes = tuple(shape_within(names, clique, sizes) for names in shared)
        rows = cells(tree.separators[index], sizes)
        alive = np.ones(rows, dtype=bool)
        known = [(child, shape) for child, shape in zip(children, child_shapes, strict=True) if child in possible]
        if masks or known:
            table = np.ones(plan.shape)
            for mask in (*masks, *(possible[child].reshape(shape) for child, shape in known)):
                table *= mask
            alive = np.logical_or.reduce(table.reshape(rows, -1), axis=1)
            if not alive.any():
                raise InvalidParameter("zeros", clique, "to leave something possible")
            if not alive.all():
                possible[index] = alive.astype(float)
        return _Clique(
            plan=plan,
            potentials=tuple(numbers),
            shapes=tuple(shape_within(scope, clique, sizes) for scope in mine),
            zeros=masks,
            children=tuple(children),
            child_shapes=child_shapes,
            rows=rows,
            possible=slice(None) if alive.all() else np.flatnonzero(alive),
        )

    def _home(self, attributes: Attributes) -> int:
        home = self.tree.home(attributes)
        if home is None or attributes != self.tree.order_attributes(attributes):
            raise InvalidParameter("attributes", attributes, "to be in one clique, in the order of the tree")
        return home


def _row_sums(rows: Table) -> Table:
    return sum_middle_axis(rows, (*rows.shape, 1)).reshape(-1)
