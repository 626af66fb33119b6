"""Sums of products of several tables: variable elimination, two tables at a time, as products of matrices."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np

from discreet.synthetic.inference.factors import Attributes, Sizes, Table, cells

Named = tuple[Attributes, Table]
"""A table of non-negative numbers, and the attributes of its axes."""


def contracted(tables: Sequence[Named], keep: Attributes, sizes: Sizes) -> Table:
    """Returns the product of tables, summed over all attributes but some, with axes in the order asked for.

    Two tables are multiplied at a time, the cheapest pair first, and an attribute is summed as soon as no other table
    has it; the whole product is never formed.

    >>> ab = ("a", "b"), np.array([[0.1, 0.4], [0.2, 0.3]])
    >>> bc = ("b", "c"), np.array([[0.5, 0.5], [1.0, 0.5]])
    >>> contracted([ab, bc], ("c", "a"), dict(a=2, b=2, c=2)).round(9)
    array([[0.45, 0.4 ],
           [0.25, 0.25]])
    """
    pool = [_summed(table, _needed(keep, tables, {number})) for number, table in enumerate(tables)]
    while len(pool) > 1:
        one, other = min(itertools.combinations(range(len(pool)), 2), key=lambda pair: _cost(pool, pair, sizes))
        product = _product(pool[one], pool[other], _needed(keep, pool, {one, other}), sizes)
        pool = [table for number, table in enumerate(pool) if number not in {one, other}] + [product]
    attributes, table = _summed(pool[0], set(keep))
    return np.ascontiguousarray(table.transpose([attributes.index(name) for name in keep]))


def _needed(keep: Collection[str], tables: Sequence[Named], without: Collection[int]) -> set[str]:
    """Returns the attributes that are asked for, or that other tables have."""
    return set(keep).union(*(names for number, (names, _) in enumerate(tables) if number not in without))


def _cost(pool: Sequence[Named], pair: tuple[int, int], sizes: Sizes) -> tuple[bool, int]:
    one, other = set(pool[pair[0]][0]), set(pool[pair[1]][0])
    return not one & other, cells(one | other, sizes)  # tables that share nothing wait: their product is an outer one


def _summed(table: Named, needed: set[str]) -> Named:
    names, values = table
    axes = tuple(axis for axis, name in enumerate(names) if name not in needed)
    return tuple(name for name in names if name in needed), np.asarray(values.sum(axis=axes)) if axes else values


def _product(one: Named, other: Named, needed: set[str], sizes: Sizes) -> Named:
    """Returns the product of two tables, summed over what is not needed: a product of matrices for each shared cell."""
    one, other = _summed(one, needed.union(other[0])), _summed(other, needed.union(one[0]))
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
