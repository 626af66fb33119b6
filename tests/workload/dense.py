"""Residuals, tables and their noise as plain matrices over a small domain: the definitions, written out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from discreet.workload.product_domain import Attributes, ProductDomain


def table_matrix(attributes: Attributes, domain: ProductDomain) -> Any:
    """Maps counts of all cells to a table."""
    result: Any = np.ones((1, 1))
    for name, size in domain.sizes.items():
        result = np.kron(result, np.eye(size) if name in attributes else np.ones((1, size)))
    return result


def residual_matrix(attributes: Attributes, domain: ProductDomain) -> Any:
    """Maps counts of all cells to a residual."""
    result: Any = np.ones((1, 1))
    for name, size in domain.sizes.items():
        differences = np.hstack([np.ones((size - 1, 1)), -np.eye(size - 1)])
        result = np.kron(result, differences if name in attributes else np.ones((1, size)))
    return result


def residual_shape(attributes: Attributes, domain: ProductDomain) -> Any:
    """The covariance of a residual's noise, for sigma = 1."""
    result: Any = np.ones((1, 1))
    for size in (domain.sizes[name] for name in attributes):
        differences = np.hstack([np.ones((size - 1, 1)), -np.eye(size - 1)])
        result = np.kron(result, differences @ differences.T)
    return result


def cell_moves(cells: int, *, replaced: bool) -> list[Any]:
    """All that one unit can change: one cell more or less, and, if it may be replaced, one for another."""
    units = list(np.eye(cells))
    return units + [a - b for a, b in itertools.permutations(units, 2)] if replaced else units
