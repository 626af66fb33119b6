"""A census in which households are protected: dwellings, persons in them, moves and benefits; districts and jobs."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any

from tests.corpus.world import Chance, Row, Table, World

HOUSEHOLDS = 320
EDUCATION = {"primary": 16, "secondary": 42, "bachelor": 26, "master": 13, "doctorate": 3}
MARITAL = {"single": 38, "married": 46, "divorced": 11, "widowed": 5}
MODES = {"car": 46, "transit": 28, "bike": 14, "walk": 12}
BENEFITS = {"child": 50, "housing": 30, "unemployment": 20}
OCCUPATIONS = ("nurse", "teacher", "clerk", "driver", "engineer", "cook", "farmer")
SECTORS = ("health", "public", "services", "services", "industry", "services", "primary")
PAY = {"nurse": 34, "teacher": 38, "clerk": 29, "driver": 27, "engineer": 55, "cook": 23, "farmer": 21}


def _household(number: int, chance: Chance) -> Row:
    tenure = chance.weighted({"owner": 46, "tenant": 48, "other": 6})
    return {
        "household_id": number,
        "district_id": chance.between(1, 8),
        "tenure": tenure,
        "rooms": chance.between(1, 7),
        "rent": float(chance.around(900, 140)) if tenure == "tenant" else None,
        "cars": chance.weighted({0: 30, 1: 46, 2: 20, 3: 4}),
        "built": chance.between(1890, 2022),
    }


def _person(number: int, place: int, home: Row, chance: Chance) -> Row:
    age = chance.between(18, 92) if place == 1 else chance.between(0, 88)
    adult = age >= 18
    employed = adult and age < 67 and chance.happens(74)
    occupation = chance.one(OCCUPATIONS) if employed else None
    income = None
    if adult and not chance.happens(6):
        income = float(1000 * (PAY[occupation] if occupation else 12) + 50 * chance.around(20 + age, 60))
    return {
        "person_id": number,
        "household_id": home["household_id"],
        "age": age,
        "sex": chance.one(("female", "male")),
        "marital": chance.weighted(MARITAL) if adult else "single",
        "education": chance.weighted(EDUCATION) if adult else None,
        "employed": employed,
        "occupation": occupation,
        "income": None if income is None else max(0.0, income),
        "hours": float(chance.around(36, 6)) if employed else None,
        "commute_min": chance.between(3, 85) if employed else None,
        "commute_mode": chance.weighted(MODES) if employed else None,
        "born_abroad": chance.happens(18),
        "birthplace": chance.one(("Berlin", "berlin ", "Warsaw", "Lyon", " Madrid", "Berlin")),
    }


def _moves(home: Row, chance: Chance) -> list[Row]:
    return [
        {
            "household_id": home["household_id"],
            "moved_on": chance.day(dt.date(2015, 1, 1), dt.date(2025, 12, 31)),
            "from_district": chance.between(1, 8),
            "to_district": home["district_id"],
        }
        for _ in range(chance.weighted({0: 50, 1: 34, 2: 16}))
    ]


def _benefits(home: Row, chance: Chance) -> list[Row]:
    if not chance.happens(35):
        return []
    kind, amount = chance.weighted(BENEFITS), 50.0 * chance.between(2, 18)
    first = chance.between(1, 8)
    return [
        {"household_id": home["household_id"], "kind": kind, "amount": amount, "month": dt.date(2025, first + i, 1)}
        for i in range(chance.between(1, 4))
    ]


PUBLIC = (
    Table(
        name="districts",
        types={"district_id": "int", "district_name": "text", "region": "text", "area_km2": "float", "urban": "bool"},
        rows=[
            {
                "district_id": i,
                "district_name": f"District {i}",
                "region": "East" if i <= 3 else "West",
                "area_km2": 10.0 * i,
                "urban": i in (1, 2, 5),
            }
            for i in range(1, 9)
        ],
    ),
    Table(
        name="occupations",
        types={"occupation": "text", "sector": "text"},
        rows=[{"occupation": o, "sector": s} for o, s in zip(OCCUPATIONS, SECTORS, strict=True)],
    ),
)


@cache
def world(households: int = HOUSEHOLDS) -> World:
    """The census, the same every time."""
    chance = Chance(404)
    homes = [_household(number, chance) for number in range(1, households + 1)]
    persons: list[Row] = []
    for home in homes:
        for place in range(1, 1 + chance.weighted({1: 34, 2: 32, 3: 16, 4: 12, 6: 6})):
            persons.append(_person(len(persons) + 1, place, home, chance))
    about: Any = {"unit": "household_id", "account": "households"}
    protected = (
        Table(
            name="households",
            rows=homes,
            types={
                "household_id": "int",
                "district_id": "int",
                "tenure": "text",
                "rooms": "int",
                "rent": "float",
                "cars": "int",
                "built": "int",
            },
            bounds={"rooms": (0, 20), "rent": (0, 5000), "cars": (0, 10), "built": (1500, 2030)},
            keys={"district_id": "districts.district_id", "tenure": ["owner", "tenant", "other"]},
            **about,
        ),
        Table(
            name="persons",
            rows=persons,
            types={
                "person_id": "int",
                "household_id": "int",
                "age": "int",
                "sex": "text",
                "marital": "text",
                "education": "text",
                "employed": "bool",
                "occupation": "text",
                "income": "float",
                "hours": "float",
                "commute_min": "int",
                "commute_mode": "text",
                "born_abroad": "bool",
                "birthplace": "text",
            },
            bounds={"age": (0, 120), "income": (0, 200_000), "hours": (0, 80)},
            keys={
                "sex": ["female", "male"],
                "education": list(EDUCATION),
                "occupation": "occupations.occupation",
            },
            **about,
        ),
        Table(
            name="moves",
            rows=[row for home in homes for row in _moves(home, chance)],
            types={"household_id": "int", "moved_on": "date", "from_district": "int", "to_district": "int"},
            bounds={"moved_on": ("2000-01-01", "2029-12-31")},
            **about,
        ),
        Table(
            name="benefits",
            rows=[row for home in homes for row in _benefits(home, chance)],
            types={"household_id": "int", "kind": "text", "amount": "float", "month": "date"},
            bounds={"amount": (0, 2000)},
            **about,
        ),
    )
    return World(name="census", tables=(*PUBLIC, *protected), max_groups=24, max_rows=32)
