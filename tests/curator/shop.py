"""Customers, their orders and the items in them: rows whose people are told by other tables; and days of people."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import polars as pl

from discreet.curator.catalog.declarations import declare
from discreet.curator.catalog.unit_of_privacy import UnitLike, account_of, owner
from discreet.engines import Engine, Memory
from discreet.noise import SeededBits, uniform_below
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours

Row = dict[str, Any]
Data = dict[str, list[Row]]

TYPES: Mapping[str, Mapping[str, Type]] = {
    "customers": {"id": Type.TEXT, "city": Type.TEXT},
    "orders": {"id": Type.INT, "customer": Type.TEXT, "total": Type.FLOAT},
    "items": {"order_id": Type.INT, "kind": Type.TEXT, "price": Type.FLOAT, "code": Type.TEXT},
    "notes": {"item": Type.TEXT, "stars": Type.INT},
    "steps": {"person": Type.TEXT, "day": Type.DATE, "count": Type.INT},
    "meals": {"who": Type.TEXT, "date": Type.DATE, "kcal": Type.INT, "kind": Type.TEXT},
}
UNITS: Mapping[str, UnitLike] = {
    "customers": "id",
    "orders": "customer -> customers.id",
    "items": "items.order_id -> orders.id, orders.customer -> customers.id",
    "notes": "item -> items.code",
    "steps": ("person", "day"),
    "meals": ["who", "date"],
}
ACCOUNTS = {"steps": "days", "meals": "days"}
BOUNDS = {"total": (0, 100), "price": (0, 50), "stars": (1, 5), "count": (0, 1000), "kcal": (0, 4000)}
KEYS = {"kind": ["a", "b"], "city": ["X", "Y"]}


def schemas(limits: Limits, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> dict[str, TableSchema]:
    """All six, as a steward would declare them."""
    made: dict[str, TableSchema] = {}
    for table, types in TYPES.items():
        whose = owner(table, UNITS[table], types, made)
        made[table] = declare(
            table,
            types,
            owner=whose,
            bounds={name: pair for name, pair in BOUNDS.items() if name in types},
            keys={name: few for name, few in KEYS.items() if name in types},
            limits=limits,
            neighbours=neighbours,
            version="",
            account=account_of(table, ACCOUNTS.get(table), whose),
        )
    return made


def pick(bits: SeededBits, *values: Any) -> Any:
    """One of a few values."""
    return values[uniform_below(len(values), bits=bits)]


def customer(name: str, bits: SeededBits, ids: range = range(9)) -> Data:
    """A customer with orders, whose ids others may use as well; no items."""
    orders = range(uniform_below(4, bits=bits))
    return {
        "customers": [{"id": pick(bits, name, f" {name}"), "city": pick(bits, "X", "Y", "Z", None)}],
        "orders": [
            {
                "id": pick(bits, *ids, None),
                "customer": pick(bits, name, f"{name} "),
                "total": pick(bits, 7.5, 900.0, None),
            }
            for _ in orders
        ],
    }


def item(bits: SeededBits, ids: range = range(11)) -> Row:
    """An item of some order, perhaps of none."""
    price, code = pick(bits, 1.5, 60.0, None), pick(bits, "p", "q", "r", "s", "t", None)
    return {"order_id": pick(bits, *ids, None), "kind": pick(bits, "a", "b", "c", None), "price": price, "code": code}


def day(who: str, date: dt.date, bits: SeededBits) -> Data:
    """One person's day."""
    return {
        "steps": [
            {"person": pick(bits, who, f" {who}"), "day": date, "count": pick(bits, 3, 5000, None)}
            for _ in range(uniform_below(3, bits=bits))
        ],
        "meals": [
            {"who": who, "date": date, "kcal": pick(bits, 500, 9000, None), "kind": pick(bits, "a", "b", None)}
            for _ in range(uniform_below(3, bits=bits))
        ],
    }


DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(26, 1, 1)]


def data(seed: int, customers: int = 5) -> Data:
    """A shop where ids of orders and codes of items collide between people."""
    made = _data(seed, customers)
    return {table: [dict(row) for row in rows] for table, rows in made.items()}  # everybody may change their own


@lru_cache(maxsize=1024)
def _data(seed: int, customers: int) -> Data:
    bits = SeededBits(seed)
    found: Data = {table: [] for table in TYPES}
    for place in range(customers):
        extend(found, customer(f"c{place}", bits))
    found["items"] = [item(bits) for _ in range(12)]
    found["notes"] = [
        {"item": pick(bits, "p", "q", "r", "s", "z", None), "stars": pick(bits, 1, 5, 9)} for _ in range(9)
    ]
    for who in ("x", "x1", "1:x"):
        for date in DAYS:
            extend(found, day(who, date, bits))
    found["steps"] += [{"person": None, "day": DAYS[0], "count": 1}, {"person": "x", "day": None, "count": 1}]
    found["steps"] += [{"person": "  ", "day": DAYS[0], "count": 1}]
    return found


def extend(found: Data, more: Data) -> None:
    """Adds rows."""
    for table, rows in more.items():
        found[table] = [*found[table], *rows]


def keys_of(found: Data, name: str) -> tuple[set[Any], set[Any]]:
    """The ids of a customer's orders, and the codes of the items in them."""
    orders = {row["id"] for row in found["orders"] if row["customer"].strip() == name} - {None}
    return orders, {row["code"] for row in found["items"] if row["order_id"] in orders} - {None}


def without(found: Data, name: str, names: list[str]) -> Data:
    """The shop without a customer: with rows that are theirs alone, rows that are others' too stay."""
    orders, codes = keys_of(found, name)
    others = [keys_of(found, other) for other in names if other != name]
    orders -= set().union(*(o for o, _ in others))
    codes -= set().union(*(c for _, c in others))
    return {
        **found,
        "customers": [row for row in found["customers"] if row["id"].strip() != name],
        "orders": [row for row in found["orders"] if row["customer"].strip() != name],
        "items": [row for row in found["items"] if row["order_id"] not in orders],
        "notes": [row for row in found["notes"] if row["item"] not in codes],
    }


POLARS = {Type.TEXT: pl.String, Type.INT: pl.Int64, Type.FLOAT: pl.Float64, Type.DATE: pl.Date}


def frame(table: str, rows: list[Row]) -> pl.DataFrame:
    """Rows as a frame."""
    return pl.DataFrame(rows, schema={name: POLARS[kind] for name, kind in TYPES[table].items()})


def loaded(engine: Engine, found: Data) -> Engine:
    """An engine that holds all tables."""
    for table, types in TYPES.items():
        engine.register(table, found[table] if isinstance(engine, Memory) else frame(table, found[table]), dict(types))
    return engine
