"""Junction trees: the triangulated graph of some sets of attributes, its maximal cliques, and a tree of them.

A distribution that is a product of factors over the sets is also one over the cliques of any triangulation of their
graph, and its marginals on cliques follow from messages along a tree with the running-intersection property (Lauritzen
and Spiegelhalter 1988). The cost is the number of cells of the cliques, which depends on the order of elimination; the
best order is NP-hard (Arnborg, Corneil, Proskurowski 1987), so several greedy ones are tried (Kjaerulff 1990).

Sets of attributes are integers here, one bit for each: a tree's size is asked for thousands of times.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.inference.factors import Attributes, Sizes, cells

_CACHE = 1 << 14  # elimination orders of graphs, of a few hundred bytes each
_Rule = tuple[bool, int]
_RULES: tuple[_Rule, ...] = ((True, 1), (False, 1), (True, -1), (False, -1))
"""Fill edges before cells or cells before fill edges, and ties to the first or to the last attribute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JunctionTree:
    """A tree of cliques in which the cliques that hold an attribute are connected.

    Cliques come in an order in which parents precede children. Axes of all tables are ordered by `attributes`, the
    order in which attributes first appear; the separator of a clique and its parent is then a prefix of the clique.

    Args:
        sizes: how many values each attribute has.
        attributes: all attributes, in the order of axes.
        cliques: the maximal cliques.
        parents: for each clique the index of its parent, -1 for the first.
        separators: for each clique what it shares with its parent.
    """

    sizes: Mapping[str, int]
    attributes: Attributes
    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]
    separators: tuple[Attributes, ...]

    @property
    def size(self) -> int:
        """Returns the number of cells of all cliques."""
        return sum(cells(clique, self.sizes) for clique in self.cliques)

    def order_attributes(self, attributes: Collection[str]) -> Attributes:
        """Returns a set of attributes in the order of axes."""
        return tuple(name for name in self.attributes if name in attributes)

    def home(self, attributes: Collection[str]) -> int | None:
        """Returns the smallest clique that holds some attributes, or None."""
        wanted = set(attributes)
        holding = [index for index, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(holding, key=lambda index: cells(self.cliques[index], self.sizes), default=None)


def junction_tree(sizes: Sizes, sets: Iterable[Collection[str]]) -> JunctionTree:
    """Returns a junction tree whose cliques hold the given sets of attributes; each attribute is in some clique.

    Args:
        sizes: how many values each attribute has.
        sets: attributes that must be in one clique together.

    Raises:
        InvalidParameter: if an attribute is unknown.

    >>> junction_tree({"a": 2, "b": 3, "c": 4}, [("a", "b"), ("b", "c")]).cliques
    (('b', 'c'), ('b', 'a'))
    """
    names = tuple(sizes)
    order, parents, shared = _spanning_tree(list(_best(sizes, sets)), tuple(sizes.values()))
    seen = {bit: None for clique in order for bit in _bits(clique)}
    position = {bit: index for index, bit in enumerate(seen)}

    def attribute_names(mask: int) -> Attributes:
        return tuple(names[bit] for bit in sorted(_bits(mask), key=position.__getitem__))

    return JunctionTree(
        sizes=dict(sizes),
        attributes=tuple(names[bit] for bit in seen),
        cliques=tuple(map(attribute_names, order)),
        parents=tuple(parents),
        separators=tuple(map(attribute_names, shared)),
    )


def tree_size(sizes: Sizes, sets: Iterable[Collection[str]]) -> int:
    """Returns the number of cells of the junction tree of some sets, without building it.

    >>> tree_size({"a": 2, "b": 3, "c": 4}, [("a", "b"), ("b", "c")])
    18
    """
    values = tuple(sizes.values())
    return sum(_cells(clique, values) for clique in _best(sizes, sets))


def _best(sizes: Sizes, sets: Iterable[Collection[str]]) -> tuple[int, ...]:
    """Returns the maximal cliques of the best triangulation that the greedy rules find."""
    place = {name: index for index, name in enumerate(sizes)}
    neighbours = [0] * len(place)
    for attributes in sets:
        unknown = [name for name in attributes if name not in place]
        if unknown:
            raise InvalidParameter("attributes", unknown[0], f"to be among {list(place)}")
        mask = sum(1 << bit for bit in {place[name] for name in attributes})
        for bit in _bits(mask):
            neighbours[bit] |= mask & ~(1 << bit)
    return _triangulate_graph(tuple(neighbours), tuple(sizes.values()))


@lru_cache(maxsize=_CACHE)
def _triangulate_graph(neighbours: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns maximal cliques; what can be eliminated without new edges is, since that is never worse."""
    graph = list(neighbours)
    safe, left = _simplicial(graph)
    if not left:  # the graph was triangulated already: its maximal cliques are unique
        return tuple(safe)
    orders = [_eliminate_attributes(graph.copy(), left, sizes, rule) for rule in _RULES]
    best = min(orders, key=lambda cliques: sum(_cells(clique, sizes) for clique in cliques))
    return tuple(safe) + tuple(clique for clique in best if not any(clique & ~other == 0 for other in safe))


def _simplicial(neighbours: list[int]) -> tuple[list[int], int]:
    """Eliminates attributes whose neighbours are all joined, as long as there is one; returns cliques and the rest."""
    cliques: list[int] = []
    left = (1 << len(neighbours)) - 1
    waiting = left
    while waiting:
        bit = waiting & -waiting
        waiting ^= bit
        node = bit.bit_length() - 1
        around = neighbours[node]
        clique = around | bit
        members = list(_bits(around))
        if any(clique & ~(neighbours[other] | 1 << other) for other in members):
            continue
        _collect(cliques, clique)
        for other in members:
            neighbours[other] &= ~bit
        left &= ~bit
        waiting |= around
    return cliques, left


def _collect(cliques: list[int], clique: int) -> None:
    """Keeps a clique unless an earlier one holds it; a later one never holds an earlier one's eliminated attribute."""
    if all(clique & ~other for other in cliques):
        cliques.append(clique)


def _eliminate_attributes(neighbours: list[int], left: int, sizes: tuple[int, ...], rule: _Rule) -> list[int]:
    """Eliminates the attributes that are left by a greedy rule; returns maximal cliques."""
    costs = {node: _cost(node, neighbours, sizes, rule) for node in _bits(left)}
    cliques: list[int] = []
    while left:
        node = min(costs, key=costs.__getitem__)
        clique = neighbours[node] | 1 << node
        _collect(cliques, clique)
        if clique == left:  # whatever follows is part of it
            break
        left &= ~(1 << node)
        del costs[node]
        for other in _bits(_remove(node, neighbours)):
            costs[other] = _cost(other, neighbours, sizes, rule)
    return cliques


def _remove(node: int, neighbours: list[int]) -> int:
    """Joins the neighbours of a node to each other and forgets the node; returns the nodes whose costs change."""
    around = neighbours[node]
    changed = around
    for other in _bits(around):
        before = neighbours[other]
        neighbours[other] = (before | around) & ~(1 << other | 1 << node)
        if around & ~(before | 1 << other):  # a new edge concerns all that are joined to both its ends
            changed |= neighbours[other]
    return changed


def _cost(node: int, neighbours: list[int], sizes: tuple[int, ...], rule: _Rule) -> tuple[int, int, int]:
    around = neighbours[node]
    size, fill = sizes[node], 0
    for other in _bits(around):
        size *= sizes[other]
        fill += (around & ~neighbours[other]).bit_count() - 1
    by_fill, tie = rule
    return (fill, size, tie * node) if by_fill else (size, fill, tie * node)


def _spanning_tree(cliques: list[int], sizes: tuple[int, ...]) -> tuple[list[int], list[int], list[int]]:
    """Returns cliques from the largest on, their parents, and what they share: a maximum-weight spanning tree.

    A spanning tree of maximal cliques whose shared attributes are as many as possible has the running-intersection
    property (Jensen and Jensen 1994). Prim's algorithm; among equals the largest shared table wins.
    """

    def weight(a: int, b: int) -> tuple[int, int]:
        return (a & b).bit_count(), _cells(a & b, sizes)

    waiting = sorted(cliques, key=lambda clique: (-_cells(clique, sizes), clique))
    root = waiting.pop(0)
    order, parents, shared = [root], [-1], [0]
    closest = {clique: (weight(clique, root), 0) for clique in waiting}
    while closest:
        clique = max(closest, key=lambda candidate: closest[candidate][0])
        _, parent = closest.pop(clique)
        parents.append(parent)
        shared.append(clique & order[parent])
        order.append(clique)
        for other, (best, _) in closest.items():
            new = weight(other, clique)
            if new > best:
                closest[other] = (new, len(order) - 1)
    return order, parents, shared


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _cells(mask: int, sizes: tuple[int, ...]) -> int:
    return math.prod(sizes[bit] for bit in _bits(mask))
