"""The algebra of residuals: what a table says beyond all tables of fewer attributes, and back.

For a set B of attributes with n_i values let Sub be the (n - 1) x n matrix [1 | -I]. The residual of B is Sub applied
to the table of B along every axis; its component is the table itself, centred along every axis, P = I - 11^T / n on
each. Components are orthogonal, and a table is the sum of its subsets' components, each spread evenly:

    table(A) = sum over B in A of component(B) / prod of n_j over A without B.

If a residual has the covariance s_B (x) Sub Sub^T, then its component has s_B (x) P, since Sub^+ Sub = P, and a cell of
the table of A has the variance sum over B of s_B prod_(i in B) (n_i - 1) / n_i prod_(j in A, not in B) 1 / n_j^2 (Xiao,
He, Zhang, Kifer 2023, whose notation the formulas keep).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.workload.product_domain import Attributes, ProductDomain, closure, subsets

Floats = NDArray[np.float64]


def share(residual: Attributes, domain: ProductDomain) -> float:
    """Returns p_B, the product of (n_i - 1) / n_i: what a unit moves the whitened residual by, squared."""
    return math.prod((domain.sizes[name] - 1) / domain.sizes[name] for name in residual)


def coefficient(table: Attributes, residual: Attributes, domain: ProductDomain) -> float:
    """Returns how much of a residual's s_B is in the variance of a cell of a table."""
    rest = math.prod(domain.sizes[name] for name in table if name not in residual)
    return share(residual, domain) / rest**2


def table_variance(table: Attributes, scales: Mapping[Attributes, float], domain: ProductDomain) -> float:
    """Returns the variance of each cell of a table, for the scales s_B of residuals."""
    return sum(scales[part] * coefficient(table, part, domain) for part in closure([table], domain))


def weights(tables: Mapping[Attributes, float], domain: ProductDomain) -> dict[Attributes, float]:
    """Returns v_B: how much one s_B adds to the weighted sum of the variances of all cells."""
    found = dict.fromkeys(closure(tables, domain), 0.0)
    for table, weight in tables.items():
        for part in closure([table], domain):
            found[part] += weight * domain.cells(table) * coefficient(table, part, domain)
    return found


def centre_table(table: Floats) -> Floats:
    """Returns a table minus its mean, along every axis."""
    for axis in range(table.ndim):
        table = table - np.mean(table, axis=axis, keepdims=True)
    return table


def component_of_residual(residual: Any) -> Floats:
    """Returns Sub^+ along every axis: the centred table that has this residual."""
    table = np.asarray(residual, dtype=np.float64)
    for axis in range(table.ndim):
        widths = [(int(place == axis), 0) for place in range(table.ndim)]
        table = -np.pad(table, widths)  # the table whose first entry is 0, up to a constant
    return centre_table(table)


def component_of_table(table: Floats, attributes: Attributes, part: Attributes) -> Floats:
    """Returns what a table says of the component of a subset of its attributes."""
    others = tuple(axis for axis, name in enumerate(attributes) if name not in part)
    return centre_table(np.sum(table, axis=others))


def assemble_table(table: Attributes, components: Mapping[Attributes, Floats], domain: ProductDomain) -> Floats:
    """Returns the table that has these components; what no component is known of counts as zero."""
    result = np.zeros(domain.shape(table))
    for part in subsets(table):
        if part in components:
            shape = tuple(domain.sizes[name] if name in part else 1 for name in table)
            rest = math.prod(domain.sizes[name] for name in table if name not in part)
            result += components[part].reshape(shape) / rest
    return result
