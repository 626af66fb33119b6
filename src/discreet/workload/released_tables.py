"""Tables that were released: each with its error, and, on request, the nearest ones without negative counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.privacy import Estimate
from discreet.report.display import Display, DisplayMixin
from discreet.workload.product_domain import Attributes, ProductDomain, closure
from discreet.workload.residuals import assemble_table, component_of_table

Floats = NDArray[np.float64]

_ROUNDS = 500
_NEAR = 1e-7  # of the total: a negative count so small is put right by a little of the even table


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedTables(Mapping[Attributes, Estimate], DisplayMixin):
    """Private tables that agree with each other: where two share attributes, their sums are the same.

    Attributes:
        domain: the attributes.
        estimates: for each set, the raw table with its intervals. Raw counts are unbiased, and may be negative.
        variances: of each cell of a table.
        private: False if the noise came from a seeded source.

    >>> from discreet.noise import SeededBits
    >>> from discreet.privacy import Budget
    >>> from discreet.workload import Marginals
    >>> plan = Marginals({"sex": 2, "ward": 3}, [("sex",), ("sex", "ward")]).plan(budget=Budget(rho=0.5))
    >>> released = plan.release(np.array([[20, 0, 5], [10, 15, 0]]), bits=SeededBits(1))
    >>> released["sex"].value.round(1), released["ward", "sex"].value.sum(axis=1).round(1)
    (array([23.5, 25.9]), array([23.5, 25.9]))
    >>> released.projected()["sex", "ward"].round(1)
    array([[18.4,  0.7,  4.5],
           [11.4, 15.5,  0. ]])
    """

    domain: ProductDomain
    estimates: dict[Attributes, Estimate]
    variances: dict[Attributes, float]
    private: bool

    def __getitem__(self, attributes: object) -> Estimate:
        """Returns the table of a set of attributes, named in any order; its axes are in the order of the domain."""
        key = self.domain.order_attributes((attributes,) if isinstance(attributes, str) else attributes)
        return self.estimates[key]

    def __iter__(self) -> Iterator[Attributes]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    @cached_property
    def raw(self) -> dict[Attributes, Any]:
        """Returns the released counts, without their errors."""
        return {attributes: estimate.value for attributes, estimate in self.estimates.items()}

    def projected(self) -> dict[Attributes, Floats]:
        """Returns the nearest tables without negative counts that agree with each other, by weighted least squares.

        They are made of the raw ones alone, and cost nothing. They are usually nearer to the truth, and biased: small
        counts are pulled up. The intervals of the raw tables are not about them.

        Alternating projections with Dykstra's correction (Boyle, Dykstra 1986) onto the tables that agree, where a
        component is the mean of what all tables say of it, weighted by their precision, and onto those without negative
        counts. Negative counts that remain after the last round are removed by mixing in the even table.
        """
        current = dict(self.raw)
        removed = {attributes: np.zeros_like(table) for attributes, table in current.items()}
        for _ in range(_ROUNDS):
            moved = {attributes: table - removed[attributes] for attributes, table in current.items()}
            clipped = {attributes: np.maximum(table, 0.0) for attributes, table in moved.items()}
            removed = {attributes: clipped[attributes] - moved[attributes] for attributes in current}
            current = self._agreeing(clipped)
            largest = max(float(np.max(table)) for table in current.values())
            if min(float(np.min(table)) for table in current.values()) >= -_NEAR * max(1.0, largest):
                break
        return self._remove_negatives(current)

    def _agreeing(self, tables: dict[Attributes, Floats]) -> dict[Attributes, Floats]:
        components: dict[Attributes, Floats] = {}
        known: dict[Attributes, float] = {}
        for attributes, table in tables.items():
            for part in closure([attributes], self.domain):
                rest = math.prod(self.domain.sizes[name] for name in attributes if name not in part)
                weight = 1 / (max(self.variances[attributes], 1e-300) * rest)
                said = weight * component_of_table(table, attributes, tuple(n for n in attributes if n in part))
                components[part] = components.get(part, 0.0) + said
                known[part] = known.get(part, 0.0) + weight
        means = {part: component / known[part] for part, component in components.items()}
        return {attributes: assemble_table(attributes, means, self.domain) for attributes in tables}

    def _remove_negatives(self, tables: dict[Attributes, Floats]) -> dict[Attributes, Floats]:
        """Mixes in as much of the even table as the most negative count needs."""
        total = float(np.sum(next(iter(tables.values()))))
        if total <= 0:
            return {attributes: np.zeros_like(table) for attributes, table in tables.items()}
        even = {attributes: total / table.size for attributes, table in tables.items()}
        lowest = {attributes: min(float(np.min(table)), 0.0) for attributes, table in tables.items()}
        part = max(-lowest[attributes] / (even[attributes] - lowest[attributes]) for attributes in tables)
        mixed = {attributes: table + part * (even[attributes] - table) for attributes, table in tables.items()}
        return {attributes: np.maximum(table, 0.0) for attributes, table in mixed.items()}

    def _display(self) -> Display:
        """Returns a table with a row for each set of attributes."""
        rows = [
            (", ".join(attributes) or "(all rows)", self.domain.cells(attributes), f"{math.sqrt(variance):.4g}")
            for attributes, variance in self.variances.items()
        ]
        return Display(
            title="" if self.private else "NOT PRIVATE (seeded randomness)",
            columns=("table", "cells", "standard error of a cell"),
            rows=rows,
            numbers=("cells", "standard error of a cell"),
        )
