"""Tables that are declared together, with hostile rows in which people, keys and ids collide."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.curator.catalog.unit_of_privacy import UnitLike
from discreet.noise import SeededBits
from discreet.plan.model.types import Type
from tests.curator import hospital, shop
from tests.curator.fuzz import Draw

Row = dict[str, Any]
Data = dict[str, list[Row]]
Column = tuple[str, str]
"""A table and one of its columns."""

NAN = float("nan")
MANY = 25  # people alike, so that groups with private keys are shown


@dataclass(frozen=True, kw_only=True)
class Family:
    """Declared tables.

    Args:
        account: of its people.
        types: of all tables, the public ones and those of other accounts too; in the order in which they are declared.
        units: whose rows those of protected tables are; None if each is a person of its own.
        accounts: of the tables whose unit does not tell.
        ids: columns that are the id of whose row it is, where there are such.
        bounds: of columns, in whichever table.
        keys: public ones, likewise.
        links: columns of protected tables that are equal only if two rows are of one person, by declaration.
        lookups: columns of protected tables, and of public ones that say more about their values.
        crowd: the rows that both neighbours have.
        person: the rows of one more person, who takes as much as there is to take if greedy.
        roots: tables whose rows say whose they are by themselves.
        refused: questions that tell one person about another, or that this family cannot answer.
    """

    account: str
    types: Mapping[str, Mapping[str, Type]]
    units: Mapping[str, UnitLike]
    accounts: Mapping[str, str]
    ids: Mapping[str, tuple[str, ...]]
    bounds: Mapping[str, tuple[int, int]]
    keys: Mapping[str, tuple[Any, ...]]
    links: tuple[tuple[Column, Column], ...]
    lookups: tuple[tuple[Column, Column], ...]
    crowd: Callable[[Draw], Data]
    person: Callable[[Draw, bool], Data]
    roots: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def own(self) -> tuple[str, ...]:
        """The tables about its people."""
        return tuple(name for name in self.types if name in self.ids)

    @property
    def public(self) -> tuple[str, ...]:
        return tuple(name for name in self.types if name not in self.units)


def again(draw: Draw, data: Data) -> Data:
    """The same with some rows repeated, in public tables as well."""
    return {name: [*rows, *(row for row in rows if draw.chance(15))] for name, rows in data.items()}


# --------------------------------------------------------------------------------------------------------- the hospital


def _hospital(draw: Draw) -> Data:
    found = hospital.data(draw.below(1 << 30), patients=3 + draw.below(4))
    if draw.chance(25):
        shared: Data = {"visits": [], "labs": []}
        hospital.add_patient(shared, "x", SeededBits(draw.below(1 << 30)), most=2)
        for who in range(MANY):
            found["visits"] += [row | {"patient": f"q{who}"} for row in shared["visits"]]
            found["labs"] += [row | {"person": f"q{who}"} for row in shared["labs"]]
    nobody = {"ward": "A", "age": 40, "charge": 3.5, "day": dt.date(2026, 2, 1)}
    found["visits"] += [nobody | {"patient": who} for who in (None, "", "  ")]
    found["labs"] += [{"person": who, "test": "x", "result": 2.5} for who in (None, "", " ")]
    found["wards"] += [{"ward": "A", "floor": 1}, {"ward": "A", "floor": 2}]
    return again(draw, found)


def _patient(draw: Draw, greedy: bool) -> Data:
    found: Data = {"visits": [], "labs": []}
    if not greedy:
        hospital.add_patient(found, "p9", SeededBits(draw.below(1 << 30)), most=draw.one((1, 3, 9)))
        return found
    end = draw.below(2)
    found["visits"] = [
        {"patient": draw.one(("p9", " p9", "p9  ")), "ward": ward, "age": (0, 120)[end], "charge": charge, "day": day}
        for ward in ("A", "B", "C")
        for charge, day in (((0.0, 1000.0)[end], dt.date(2026, 1, 5)), ((0.0, 1e300)[end], dt.date(2026, 7, 1)))
        for _ in range(1 + draw.below(2))
    ]
    results = ((-5.0, 10.0)[end], (-1e9, 1e9)[end], NAN)
    found["labs"] = [{"person": "p9", "test": test, "result": result} for test in "xy" for result in results]
    return found


HOSPITAL = Family(
    account="patients",
    types=hospital.TYPES,
    units={"visits": "patient", "labs": "person", "staff": "id", "calls": None},
    accounts={"staff": "staff", "calls": "calls"},
    ids={"visits": ("patient",), "labs": ("person",)},
    bounds={"age": (0, 120), "charge": (0, 1000), "result": (-5, 10), "minutes": (0, 60)},
    keys={"ward": ("A", "B", "C"), "test": ("x", "y")},
    links=(),
    lookups=((("visits", "ward"), ("wards", "ward")),),
    crowd=_hospital,
    person=_patient,
    roots=("visits", "labs"),
    refused=(
        "SELECT COUNT(*) AS n FROM visits AS v JOIN labs AS l ON v.ward = l.test",
        "SELECT COUNT(*) AS n FROM visits AS v JOIN visits AS w ON v.ward = w.ward",
        "SELECT COUNT(*) AS n FROM visits AS v JOIN staff AS s ON v.ward = s.ward",
        "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM visits WHERE age > 60)",
        "SELECT COUNT(*) AS n FROM visits WHERE ward NOT IN (SELECT ward FROM calls)",
        "SELECT COUNT(*) AS n FROM visits AS v WHERE EXISTS (SELECT 1 FROM labs AS l WHERE l.test = v.ward)",
        (
            "SELECT COUNT(*) AS n FROM (SELECT patient, RANK() OVER (PARTITION BY ward ORDER BY age) AS r FROM visits)"
            " AS t WHERE r < 3"
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT ward, COUNT(*) AS k FROM visits GROUP BY ward) AS t JOIN visits AS v"
            " ON t.ward = v.ward"
        ),
        "SELECT AVG(charge) AS m FROM visits WHERE charge > (SELECT AVG(charge) FROM visits)",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward, age FROM visits) AS t",
        "SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient",
    ),
)


# ------------------------------------------------------------------------------------------------------------- the shop


def _shop(draw: Draw) -> Data:
    found = shop.data(draw.below(1 << 30), customers=4 + draw.below(4))
    found = {name: rows for name, rows in found.items() if name in SHOP.types}
    if draw.chance(25):
        found["customers"] += [{"id": f"q{i}", "city": "X"} for i in range(MANY)]
        found["orders"] += [{"id": 1000 + i, "customer": f"q{i}", "total": 7.5} for i in range(MANY)]
        found["items"] += [
            {"order_id": 1000 + i, "kind": "c", "price": 1.5, "code": draw.one(("p", None))} for i in range(MANY)
        ]
    found["customers"] += [{"id": who, "city": "Y"} for who in (None, "  ")]
    found["orders"] += [{"id": 3, "customer": None, "total": 5.0}, {"id": 4, "customer": " ", "total": NAN}]
    found["kinds"] = [{"kind": kind, "shelf": shelf} for kind, shelf in (("a", 1), ("b", 1), ("b", 2), (None, 3))]
    found["kinds"] += [{"kind": "c", "shelf": None}, {"kind": "z", "shelf": 9}]
    return again(draw, found)


def _customer(draw: Draw, greedy: bool) -> Data:
    """Orders whose ids others have too, all of them if greedy, and others of their own with items that are theirs."""
    found = shop.customer("c9", SeededBits(draw.below(1 << 30)), ids=range(11))
    end, own = draw.below(2), range(100, 100 + (4 if greedy else draw.below(2)))
    ids = [*own, *(range(11) if greedy else ())]
    found["orders"] += [{"id": i, "customer": draw.one(("c9", " c9 ")), "total": (0.0, 100.0)[end]} for i in ids]
    found["items"] = [
        {"order_id": i, "kind": kind, "price": (-3.0, 1e300)[end], "code": draw.one(("p", "own", None))}
        for i in own
        for kind in ("a", "b", "c")
        for _ in range(1 + draw.below(2))
    ]
    if any(row["code"] == "own" for row in found["items"]):
        found["notes"] = [{"item": "own", "stars": stars} for stars in (1, 5, 9)]
    return found


SHOP = Family(
    account="customers",
    types={name: shop.TYPES[name] for name in ("customers", "orders", "items", "notes")}
    | {"kinds": {"kind": Type.TEXT, "shelf": Type.INT}},
    units={name: shop.UNITS[name] for name in ("customers", "orders", "items", "notes")},
    accounts={},
    ids={"customers": ("id",), "orders": ("customer",), "items": (), "notes": ()},
    bounds=shop.BOUNDS,
    keys={"kind": ("a", "b"), "city": ("X", "Y")},
    links=((("items", "order_id"), ("orders", "id")), (("notes", "item"), ("items", "code"))),
    lookups=((("items", "kind"), ("kinds", "kind")),),
    crowd=_shop,
    person=_customer,
    roots=("customers", "orders"),
    refused=(
        "SELECT COUNT(*) AS n FROM items AS i JOIN orders AS o ON i.price = o.total",
        "SELECT COUNT(*) AS n FROM items AS i JOIN items AS j ON i.kind = j.kind",
        "SELECT COUNT(*) AS n FROM orders WHERE total IN (SELECT price FROM items)",
        "SELECT COUNT(*) AS n FROM notes WHERE stars NOT IN (SELECT order_id FROM items)",
        "SELECT AVG(k) AS m FROM (SELECT id, COUNT(*) AS k FROM orders GROUP BY id) AS t JOIN notes AS c ON t.k = 1",
        "SELECT COUNT(*) AS n FROM (SELECT SUM(price) OVER (PARTITION BY order_id) AS s FROM items) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT id FROM orders UNION SELECT order_id FROM items) AS t",
    ),
)


# ----------------------------------------------------------------------------------------------------------------- days


def _days(draw: Draw) -> Data:
    found = shop.data(draw.below(1 << 30), customers=0)
    dishes = [{"dish": dish, "heat": heat} for dish, heat in (("a", 1), ("a", 2), ("b", None), (None, 3))]
    return again(draw, {"steps": found["steps"], "meals": found["meals"], "dishes": dishes})


def _day(draw: Draw, greedy: bool) -> Data:
    when = dt.date(2026, 3, 1)
    if not greedy:
        return shop.day("x", when, SeededBits(draw.below(1 << 30)))
    end = draw.below(2)
    return {
        "steps": [{"person": " x"[draw.below(2) :], "day": when, "count": (0, 1000)[end]} for _ in range(4)],
        "meals": [
            {"who": "x", "date": when, "kcal": (0, 1 << 62)[end], "kind": kind} for kind in ("a", "b", "c", None) * 2
        ],
    }


DAYS = Family(
    account="days",
    types={name: shop.TYPES[name] for name in ("steps", "meals")} | {"dishes": {"dish": Type.TEXT, "heat": Type.INT}},
    units={name: shop.UNITS[name] for name in ("steps", "meals")},
    accounts={},
    ids={"steps": ("person", "day"), "meals": ("who", "date")},
    bounds=shop.BOUNDS,
    keys={"kind": ("a", "b")},
    links=(),
    lookups=((("meals", "kind"), ("dishes", "dish")),),
    crowd=_days,
    person=_day,
    roots=("steps", "meals"),
    refused=(
        "SELECT COUNT(*) AS n FROM steps AS s JOIN meals AS m ON s.person = m.who",
        "SELECT COUNT(*) AS n FROM steps WHERE person IN (SELECT who FROM meals)",
        (
            "SELECT AVG(k) AS m FROM (SELECT person, COUNT(*) AS k FROM steps GROUP BY person) AS t JOIN meals AS m"
            " ON t.person = m.who"
        ),
        "SELECT COUNT(*) AS n FROM (SELECT RANK() OVER (PARTITION BY person ORDER BY day) AS r FROM steps) AS t",
    ),
)


# ---------------------------------------------------------------------------------------------- rows that are people


def _calls(draw: Draw) -> Data:
    found = hospital.data(draw.below(1 << 30), patients=0)
    return again(draw, {"calls": found["calls"], "wards": found["wards"]})


def _call(draw: Draw, greedy: bool) -> Data:
    minutes = draw.one((0, 60, 1 << 62)) if greedy else draw.one((None, 7, -5))
    return {"calls": [{"ward": draw.one(("A", "B", "Z", None)), "minutes": minutes}]}


CALLS = Family(
    account="calls",
    types={name: hospital.TYPES[name] for name in ("calls", "wards")},
    units={"calls": None},
    accounts={},
    ids={"calls": ()},
    bounds={"minutes": (0, 60)},
    keys={"ward": ("A", "B", "C")},
    links=(),
    lookups=((("calls", "ward"), ("wards", "ward")),),
    crowd=_calls,
    person=_call,
    roots=("calls",),
    refused=(
        "SELECT COUNT(*) AS n FROM calls AS c JOIN wards AS w ON c.ward = w.ward",
        "SELECT COUNT(*) AS n FROM (SELECT ward FROM calls UNION ALL SELECT ward FROM calls) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM calls) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT RANK() OVER (PARTITION BY ward ORDER BY minutes) AS r FROM calls) AS t",
    ),
)
