"""The law of whole rows that agrees with the marginals of all cliques, and any of its marginals."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.inference.clique_plans import reduction
from discreet.synthetic.inference.factors import Attributes, Sizes, Table, cells
from discreet.synthetic.inference.junction_tree import JunctionTree

Named = tuple[Attributes, Table]
"""A table of non-negative numbers, and the attributes of its axes."""


def contract_tables(tables: Sequence[Named], keep: Attributes, sizes: Sizes) -> Table:
    """Returns the product of tables, summed over all attributes but some, with axes in the order asked for.

    Two tables are multiplied at a time, the cheapest pair first, and an attribute is summed as soon as no other table
    has it; the whole product is never formed.

    >>> ab = ("a", "b"), np.array([[0.1, 0.4], [0.2, 0.3]])
    >>> bc = ("b", "c"), np.array([[0.5, 0.5], [1.0, 0.5]])
    >>> contract_tables([ab, bc], ("c", "a"), dict(a=2, b=2, c=2)).round(9)
    array([[0.45, 0.4 ],
           [0.25, 0.25]])
    """
    pool = [
        _sum_out_attributes(table, _needed_attributes(keep, tables, {number})) for number, table in enumerate(tables)
    ]
    while len(pool) > 1:
        one, other = min(itertools.combinations(range(len(pool)), 2), key=lambda pair: _cost(pool, pair, sizes))
        product = _product(pool[one], pool[other], _needed_attributes(keep, pool, {one, other}), sizes)
        pool = [table for number, table in enumerate(pool) if number not in {one, other}] + [product]
    attributes, table = _sum_out_attributes(pool[0], set(keep))
    return np.ascontiguousarray(table.transpose([attributes.index(name) for name in keep]))


def _needed_attributes(keep: Collection[str], tables: Sequence[Named], without: Collection[int]) -> set[str]:
    """Returns the attributes that are asked for, or that other tables have."""
    return set(keep).union(*(names for number, (names, _) in enumerate(tables) if number not in without))


def _cost(pool: Sequence[Named], pair: tuple[int, int], sizes: Sizes) -> tuple[bool, int]:
    one, other = set(pool[pair[0]][0]), set(pool[pair[1]][0])
    return not one & other, cells(one | other, sizes)  # tables that share nothing wait: their product is an outer one


def _sum_out_attributes(table: Named, needed: set[str]) -> Named:
    names, values = table
    axes = tuple(axis for axis, name in enumerate(names) if name not in needed)
    return tuple(name for name in names if name in needed), np.asarray(values.sum(axis=axes)) if axes else values


def _product(one: Named, other: Named, needed: set[str], sizes: Sizes) -> Named:
    """Returns the product of two tables, summed over what is not needed: a product of matrices for each shared cell."""
    one, other = _sum_out_attributes(one, needed.union(other[0])), _sum_out_attributes(other, needed.union(one[0]))
    shared = [name for name in one[0] if name in other[0]]
    both, gone = (tuple(name for name in shared if (name in needed) is wanted) for wanted in (True, False))
    left, right = (tuple(name for name in table[0] if name not in shared) for table in (one, other))
    product = np.matmul(_matrices(one, both, left, gone, sizes), _matrices(other, both, gone, right, sizes))
    names = both + left + right
    return names, product.reshape([sizes[name] for name in names])


def _matrices(table: Named, batch: Attributes, rows: Attributes, columns: Attributes, sizes: Sizes) -> Table:
    names, values = table
    ordered = values.transpose([names.index(name) for name in batch + rows + columns])
    return ordered.reshape(cells(batch, sizes), cells(rows, sizes), cells(columns, sizes))


_KEPT = 1 << 16  # cells of a sum that may be asked for again

_Sums = dict[tuple[int, Attributes, bool], Table]


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedTree:
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
            names, table = self._sum_clique(home, set(attributes), sums, conditional=False)
            return np.array(table.transpose([names.index(name) for name in attributes]))
        wanted = set(attributes)
        alive = self._find_needed_cliques(wanted)
        parts = []
        for index in alive:
            below = [self.tree.separators[child] for child in alive if self.tree.parents[child] == index]
            conditional = self.tree.parents[index] in alive
            above = self.tree.separators[index] if conditional else ()
            parts.append(self._sum_clique(index, wanted.union(above, *below), sums, conditional=conditional))
        return contract_tables(parts, attributes, self.tree.sizes)

    def _sum_clique(self, index: int, keep: set[str], sums: _Sums, *, conditional: bool) -> Named:
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

    def _find_needed_cliques(self, wanted: set[str]) -> list[int]:
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
