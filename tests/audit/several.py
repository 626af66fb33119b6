"""Factories of curators of several tables, for audits: a shop whose items are on a way, and a hospital."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.curator import Curator
from discreet.engines import Engine, Memory
from discreet.noise import SeededBits
from discreet.privacy import Budget, Loss, Neighbours
from tests.audit.held import AMPLE
from tests.curator import hospital, shop
from tests.curator.families import HOSPITAL, SHOP, Data, Family
from tests.curator.states import _source

ON_WAYS = (
    "SELECT COUNT(*) AS n FROM items",
    "SELECT kind, SUM(price) AS s FROM items GROUP BY kind",
    "SELECT AVG(stars) AS m, COUNT(*) AS n FROM notes",
    "SELECT i.kind, SUM(o.total) AS t FROM items AS i JOIN orders AS o ON i.order_id = o.id GROUP BY i.kind",
    "SELECT k.shelf > 1 AS high, COUNT(*) AS n FROM items AS i JOIN kinds AS k ON i.kind = k.kind GROUP BY 1",
    "SELECT c.city, COUNT(*) AS n FROM customers AS c LEFT JOIN orders AS o ON o.customer = c.id GROUP BY c.city",
    "SELECT MEDIAN(price) AS m FROM items",
)
OF_PATIENTS = (
    "SELECT v.ward, COUNT(*) AS n FROM visits AS v JOIN labs AS l ON v.patient = l.person GROUP BY v.ward",
    "SELECT w.floor > 1 AS high, AVG(age) AS a FROM visits AS v JOIN wards AS w ON v.ward = w.ward GROUP BY 1",
    "SELECT SUM(charge) AS s FROM visits WHERE patient IN (SELECT person FROM labs WHERE result > 0)",
)
OF_STAFF = ("SELECT ward, COUNT(*) AS n FROM staff GROUP BY ward",)

Factory = Callable[[Mapping[str, Any]], Curator]


def of_family(
    family: Family,
    engine: Callable[[], Engine] = Memory,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    budget: Loss = AMPLE,
    units: Mapping[str, Any] | None = None,
) -> Factory:
    """Makes curators of a family's tables; with other units, of the tables that are named."""
    owned = {**family.units, **(units or {})}

    def make(tables: Mapping[str, Any]) -> Curator:
        made = engine()
        curator = Curator.for_tests(engine=made, bits=SeededBits(1))
        for name, types in family.types.items():
            if name not in tables:
                continue
            declared = {column: kind.value for column, kind in types.items()}
            source = _source(made, tables[name], types) if isinstance(tables[name], list) else tables[name]
            if name in family.public:
                curator.public(source, name=name, types=declared)
                continue
            reached = "->" in str(owned[name])
            curator.protect(
                source,
                name=name,
                types=declared,
                unit=owned[name],
                account=None if reached else family.accounts.get(name, family.account),
                bounds={column: ends for column, ends in family.bounds.items() if column in types},
                keys={column: list(few) for column, few in family.keys.items() if column in types},
                max_groups=2,
                max_rows=2,
                neighbours=None if reached else neighbours,
                budget=budget,
                version="1",
            )
        return curator

    return make


def shopping(seed: int = 3, customers: int = 12) -> Data:
    """The tables of the shop, and the public one of kinds."""
    found = shop.data(seed, customers=customers)
    kinds = [{"kind": kind, "shelf": shelf} for kind, shelf in (("a", 1), ("b", 1), ("b", 2), ("c", None))]
    return {name: found[name] for name in ("customers", "orders", "items", "notes")} | {"kinds": kinds}


def wards(seed: int = 3, patients: int = 12) -> Data:
    """The tables of the hospital."""
    return hospital.data(seed, patients)


THE_SHOP, THE_HOSPITAL, PURE = SHOP, HOSPITAL, Budget(epsilon=10**6)
