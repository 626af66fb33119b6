"""The law of whole rows that agrees with the marginals of all cliques, and any of its marginals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidParameter
from discreet.synthetic.inference.clique_plans import reduction
from discreet.synthetic.inference.contraction import Named, contracted
from discreet.synthetic.inference.factors import Attributes, Table, cells
from discreet.synthetic.inference.junction_tree import JunctionTree

_KEPT = 1 << 16  # cells of a sum that may be asked for again

_Sums = dict[tuple[int, Attributes, bool], Table]


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """Marginals of all cliques of a junction tree, which agree with each other: a distribution of whole rows.

    Args:
        tree: the junction tree.
        tables: the probabilities of each clique's cells.
    """

    tree: JunctionTree
    tables: tuple[Table, ...]

    def marginal(self, attributes: Attributes) -> Table:
        """Returns the probabilities of some attributes, with the axes in the order asked for.

        Within one clique this is a sum; across cliques attributes are eliminated from the smallest part of the tree
        that holds those asked for.

        Raises:
            InvalidParameter: if an attribute is unknown or named twice.
        """
        return self.marginals([attributes])[0]

    def marginals(self, sets: Iterable[Attributes]) -> list[Table]:
        """Returns several marginals, which share sums over cliques."""
        sums: _Sums = {}
        return [self._marginal(attributes, sums) for attributes in sets]

    def _marginal(self, attributes: Attributes, sums: _Sums) -> Table:
        unknown = [name for name in attributes if name not in self.tree.sizes]
        if unknown or len(set(attributes)) != len(attributes):
            raise InvalidParameter("attributes", attributes, f"to name each once, among {self.tree.attributes}")
        home = self.tree.home(attributes)
        if home is not None:
            names, table = self._summed(home, set(attributes), sums, conditional=False)
            return np.array(table.transpose([names.index(name) for name in attributes]))
        wanted = set(attributes)
        alive = self._needed(wanted)
        parts = []
        for index in alive:
            below = [self.tree.separators[child] for child in alive if self.tree.parents[child] == index]
            conditional = self.tree.parents[index] in alive
            above = self.tree.separators[index] if conditional else ()
            parts.append(self._summed(index, wanted.union(above, *below), sums, conditional=conditional))
        return contracted(parts, attributes, self.tree.sizes)

    def _summed(self, index: int, keep: set[str], sums: _Sums, *, conditional: bool) -> Named:
        """Returns a clique's table summed over what is not kept, given its separator where it has a parent."""
        tree, clique = self.tree, self.tree.cliques[index]
        inside = tuple(name for name in clique if name in keep)
        found = sums.get((index, inside, conditional))
        if found is None:
            found = reduction(clique, inside, inside, tree.sizes)(self.tables[index])
            if conditional:
                found = conditional_table(found, cells(tree.separators[index], tree.sizes))
            if found.size <= _KEPT:
                sums[index, inside, conditional] = found
        return inside, found

    def _needed(self, wanted: set[str]) -> list[int]:
        """Returns the cliques that are left when leaves without own wanted attributes are taken off, and then roots."""
        tree = self.tree
        alive = set(range(len(tree.cliques)))
        children = [0] * len(tree.cliques)
        for parent in tree.parents[1:]:
            children[parent] += 1
        for index in reversed(range(1, len(tree.cliques))):
            if not children[index] and wanted.isdisjoint(tree.cliques[index][len(tree.separators[index]) :]):
                alive.discard(index)
                children[tree.parents[index]] -= 1
        root = 0
        while children[root] == 1:  # the top is not needed while its one child shares with it all that is wanted there
            (child,) = (index for index in alive if tree.parents[index] == root)
            if (wanted & set(tree.cliques[root])) - set(tree.cliques[child]):
                break
            alive.discard(root)
            root = child
        return sorted(alive)


def conditional_table(table: Table, rows: int) -> Table:
    """Returns a table whose first axes are the separator, each line divided by its sum; impossible lines stay 0."""
    lines = table.reshape(rows, -1)
    sums = lines.sum(axis=1, keepdims=True)
    shares: Table = np.divide(lines, sums, out=np.zeros_like(lines), where=sums > 0)
    return shares.reshape(table.shape)
