from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

from discreet.errors import InvalidParameter
from discreet.synthetic.inference.factors import Attributes, cells
from discreet.synthetic.inference.junction_tree import JunctionTree, junction_tree, tree_size
from tests.synthetic.enumerated import domains


def has_running_intersection(tree: JunctionTree) -> bool:
    """Cliques that hold an attribute are connected: all but one of them share it with their parent."""
    for name in tree.attributes:
        holders = [index for index, clique in enumerate(tree.cliques) if name in clique]
        if sum(name not in tree.separators[index] for index in holders) != 1:
            return False
    return True


@given(domains(most=8))
def test_the_tree_is_a_junction_tree(case: tuple[dict[str, int], list[Attributes]]) -> None:
    sizes, sets = case
    tree = junction_tree(sizes, sets)
    assert sorted(tree.attributes) == sorted(sizes)
    assert all(tree.home(names) is not None for names in sets)
    assert has_running_intersection(tree)
    for clique, parent, separator in zip(tree.cliques, tree.parents, tree.separators, strict=True):
        assert clique == tree.order_attributes(clique)
        assert clique[: len(separator)] == separator
        assert parent < tree.cliques.index(clique)
        assert set(separator) == (set(clique) & set(tree.cliques[parent]) if parent >= 0 else set())
    for one, other in itertools.permutations(tree.cliques, 2):
        assert not set(one) <= set(other)
    assert tree.size == sum(cells(clique, sizes) for clique in tree.cliques) == tree_size(sizes, sets)


@given(domains(most=5))
def test_greedy_orders_are_as_good_as_all_orders_of_few_attributes(
    case: tuple[dict[str, int], list[Attributes]],
) -> None:
    sizes, sets = {name: size + 1 for name, size in case[0].items()}, case[1]  # a value alone makes any clique free
    best = min(_size_of_order(sizes, sets, order) for order in itertools.permutations(sizes))
    assert best <= tree_size(sizes, sets) <= 1.5 * best


def _size_of_order(sizes: dict[str, int], sets: list[Attributes], order: Attributes) -> int:
    edges = {frozenset(pair) for names in sets for pair in itertools.combinations(names, 2)}
    cliques: list[set[str]] = []
    left = list(order)
    for name in order:
        around = {other for other in left if frozenset((name, other)) in edges}
        edges |= {frozenset(pair) for pair in itertools.combinations(sorted(around), 2)}
        cliques.append(around | {name})
        left.remove(name)
    largest = [c for i, c in enumerate(cliques) if not any(c < o or (c == o and j < i) for j, o in enumerate(cliques))]
    return sum(cells(clique, sizes) for clique in largest)


def test_a_cycle_gets_the_chord_between_small_attributes() -> None:
    sizes = {"a": 2, "b": 30, "c": 2, "d": 30}
    assert tree_size(sizes, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]) == 2 * 30 * 2 * 2


def test_a_tree_that_is_not_one_is_seen() -> None:
    tree = junction_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    broken = JunctionTree(
        sizes=tree.sizes, attributes=tree.attributes, cliques=tree.cliques, parents=tree.parents, separators=((), ())
    )
    assert has_running_intersection(tree)
    assert not has_running_intersection(broken)


def test_the_order_of_sets_does_not_matter() -> None:
    names = [f"x{i}" for i in range(15)]
    sizes = {name: 2 + i % 7 for i, name in enumerate(names)}
    sets = [(names[i], names[(3 * i + 1) % 15]) for i in range(15) if i != (3 * i + 1) % 15]
    assert junction_tree(sizes, sets) == junction_tree(sizes, sets[::-1])
    assert np.isfinite(tree_size(sizes, sets))


def test_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(InvalidParameter) as caught:
        junction_tree({"a": 2}, [("a", "b")])
    assert caught.value.value == "b"
