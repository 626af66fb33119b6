"""The law of whole rows that agrees with the marginals of all cliques, and any of its marginals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidParameter
from discreet.synthetic.inference.clique_plans import reduction
from discreet.synthetic.inference.factors import Attributes, Factor, Table, cells, eliminated
from discreet.synthetic.inference.junction_tree import JunctionTree


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

        Within one clique this is a sum; across cliques variables are eliminated from the smallest part of the tree
        that holds the attributes.
        """
        home = self.tree.home(attributes)
        if home is None:
            return np.exp(eliminated(self._conditionals(attributes), attributes).logs)
        clique = self.tree.cliques[home]
        inside = tuple(name for name in clique if name in attributes)
        table = reduction(clique, inside, inside, self.tree.sizes)(self.tables[home])
        order = [inside.index(name) for name in attributes]
        return np.array(table.transpose(order))

    def _conditionals(self, attributes: Attributes) -> list[Factor]:
        """Returns factors whose product has the marginal: cliques given their separators, summed where possible."""
        tree, wanted = self.tree, set(attributes)
        unknown = wanted - set(tree.attributes)
        if unknown:
            raise InvalidParameter("attributes", min(unknown), f"to be among {tree.attributes}")
        alive = self._needed(wanted)
        factors = []
        for index in alive:
            neighbours = [child for child in alive if tree.parents[child] == index]
            keep = wanted.union(tree.separators[index], *(tree.separators[child] for child in neighbours))
            clique = tree.cliques[index]
            inside = tuple(name for name in clique if name in keep)
            table = reduction(clique, inside, inside, tree.sizes)(self.tables[index])
            if tree.parents[index] in alive:
                rows = cells(tree.separators[index], tree.sizes)
                matrix = table.reshape(rows, -1)
                sums = matrix.sum(axis=1, keepdims=True)
                table = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums > 0).reshape(table.shape)
            with np.errstate(divide="ignore"):
                factors.append(Factor(inside, np.log(table)))
        return factors

    def _needed(self, wanted: set[str]) -> list[int]:
        """Returns the cliques that are left when leaves without own wanted attributes are taken off, and then roots."""
        tree = self.tree
        alive = set(range(len(tree.cliques)))
        for index in reversed(range(1, len(tree.cliques))):
            own = set(tree.cliques[index]) - set(tree.separators[index])
            if not own & wanted and not any(tree.parents[child] == index for child in alive):
                alive.discard(index)
        root = min(alive)
        while True:  # the top is not needed while it has one child, which shares with it all that is wanted there
            children = [child for child in alive if tree.parents[child] == root]
            if len(children) != 1 or set(tree.cliques[root]) & wanted - set(tree.cliques[children[0]]):
                return sorted(alive)
            alive.discard(root)
            root = children[0]
