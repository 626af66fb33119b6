"""Rental bikes: riders with names of several alphabets, their trips and tickets; stations, plans and a calendar."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any

from tests.corpus.world import Chance, Row, Table, World

RIDERS = 320
FIRST, LAST = dt.date(2024, 1, 1), dt.date(2025, 12, 31)
PLANS = {"annual": 44, "monthly": 34, "day pass": 22}
KINDS = {"classic": 56, "electric": 34, "cargo": 10}
STATIONS = 12
CITIES = {"Łódź": 22, "łódź": 6, "ŁÓDŹ ": 5, "Köln": 20, "KÖLN": 6, " köln": 5, "Zürich": 14, "Málaga": 12, "Αθήνα": 10}
FIRST_NAMES = ("Zofia", "Łukasz", "Jürgen", "Özlem", "Émile", "Ana", "José", "Élodie", "Søren", "Ewa", "Νίκος", "Иван")
LAST_NAMES = ("Müller", "Nowak", "Wiśniewska", "García", "Çelik", "Nguyễn", "Smith", "Dvořák", "Åberg", "O'Neil")
DOMAINS = {"gmail.com": 44, "wp.pl": 20, "web.de": 20, "uni-koeln.de": 16}
PROMOS = {None: 62, "SPRING_10": 12, "SUMMER_25": 10, "50%_OFF": 8, "FIRST RIDE": 8}
RATINGS = {None: 30, 5: 32, 4: 20, 3: 10, 2: 4, 1: 4}
SUBJECTS = {
    "Brake is loose": 20,
    "flat tyre": 18,
    "Chain fell off": 14,
    "App does not unlock": 22,
    "Überhöhte Rechnung": 12,
    "refund for a trip": 14,
}


def _rider(number: int, chance: Chance) -> Row:
    dot = chance.one((".", "_", ""))
    return {
        "rider_id": number,
        "name": f"{chance.one(FIRST_NAMES)} {chance.one(LAST_NAMES)}",
        "city": chance.weighted(CITIES),
        "plan": chance.weighted(PLANS),
        "birth_year": None if chance.happens(6) else chance.between(1945, 2008),
        "joined": chance.day(dt.date(2021, 1, 1), dt.date(2025, 6, 30)),
        "email": f"rider{dot}{chance.one('abcdefgh')}{number}@{chance.weighted(DOMAINS)}",
        "newsletter": None if chance.happens(10) else chance.happens(50),
        "balance": chance.around(8, 14) / 2 - 1,
    }


def _trip(rider: Row, chance: Chance) -> Row:
    started = chance.moment(chance.day(max(FIRST, rider["joined"]), LAST))
    minutes = chance.between(2, 75)
    kind = chance.weighted(KINDS)
    return {
        "rider_id": rider["rider_id"],
        "kind": kind,
        "started_at": started,
        "ended_at": None if chance.happens(3) else started + dt.timedelta(minutes=minutes),
        "from_station": chance.between(1, STATIONS),
        "to_station": chance.between(1, STATIONS),
        "distance_m": 0 if chance.happens(4) else minutes * chance.between(90, 260),
        "fare": 1.0 + minutes * (0.25 if kind == "electric" else 0.125),
        "rating": chance.weighted(RATINGS),
        "promo": chance.weighted(PROMOS),
        "helmet": None if chance.happens(5) else chance.happens(42),
    }


def _tickets(rider: Row, chance: Chance) -> list[Row]:
    return [
        {
            "rider_id": rider["rider_id"],
            "opened_at": chance.moment(chance.day(max(FIRST, rider["joined"]), LAST)),
            "subject": chance.weighted(SUBJECTS),
            "priority": chance.weighted({1: 20, 2: 50, 3: 30}),
            "resolved": chance.happens(70),
        }
        for _ in range(chance.weighted({0: 50, 1: 30, 2: 20}))
    ]


def _season(day: dt.date) -> str:
    return ("winter", "spring", "summer", "autumn")[day.month % 12 // 3]


DAYS = [FIRST + dt.timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
PUBLIC = (
    Table(
        name="stations",
        types={"station_id": "int", "station": "text", "zone": "text", "docks": "int", "opened": "date"},
        rows=[
            {
                "station_id": i,
                "station": f"Stacja {'ĄBĆDEFGHIJKŁ'[i - 1]}",
                "zone": ("1", "2", "10")[i % 3],
                "docks": 10 + 2 * i,
                "opened": dt.date(2018 + i // 3, 1 + i % 12, 15),
            }
            for i in range(1, STATIONS + 1)
        ],
    ),
    Table(
        name="plans",
        types={"plan": "text", "monthly_fee": "float", "is_subscription": "bool"},
        rows=[
            {"plan": "annual", "monthly_fee": 8.0, "is_subscription": True},
            {"plan": "monthly", "monthly_fee": 12.5, "is_subscription": True},
            {"plan": "day pass", "monthly_fee": None, "is_subscription": False},
        ],
    ),
    Table(
        name="calendar",
        types={"day": "date", "weekday": "int", "is_holiday": "bool", "season": "text"},
        rows=[
            {
                "day": day,
                "weekday": day.isoweekday(),
                "is_holiday": (day.month, day.day) in {(1, 1), (5, 1), (5, 3), (8, 15), (11, 11), (12, 25), (12, 26)},
                "season": _season(day),
            }
            for day in DAYS
        ],
    ),
)


@cache
def world(riders: int = RIDERS) -> World:
    """The bikes, the same every time."""
    chance = Chance(505)
    people = [_rider(number, chance) for number in range(1, riders + 1)]
    trips: list[Row] = []
    for rider in people:
        for _ in range(chance.weighted({0: 10, 1: 20, 2: 20, 4: 24, 6: 16, 11: 10})):
            trips.append({"trip_id": len(trips) + 1} | _trip(rider, chance))
    about: Any = {"unit": "rider_id", "account": "riders"}
    protected = (
        Table(
            name="riders",
            rows=people,
            types={
                "rider_id": "int",
                "name": "text",
                "city": "text",
                "plan": "text",
                "birth_year": "int",
                "joined": "date",
                "email": "text",
                "newsletter": "bool",
                "balance": "float",
            },
            bounds={"birth_year": (1900, 2020), "joined": ("2020-01-01", "2026-12-31"), "balance": (-50, 50)},
            keys={"plan": "plans.plan"},
            **about,
        ),
        Table(
            name="trips",
            rows=trips,
            types={
                "trip_id": "int",
                "rider_id": "int",
                "kind": "text",
                "started_at": "timestamp",
                "ended_at": "timestamp",
                "from_station": "int",
                "to_station": "int",
                "distance_m": "int",
                "fare": "float",
                "rating": "int",
                "promo": "text",
                "helmet": "bool",
            },
            bounds={
                "started_at": ("2023-01-01", "2026-12-31"),
                "ended_at": ("2023-01-01", "2026-12-31"),
                "distance_m": (0, 30_000),
                "fare": (0, 50),
                "rating": (1, 5),
            },
            keys={
                "kind": list(KINDS),
                "from_station": "stations.station_id",
                "to_station": "stations.station_id",
            },
            **about,
        ),
        Table(
            name="tickets",
            rows=[row for rider in people for row in _tickets(rider, chance)],
            types={
                "rider_id": "int",
                "opened_at": "timestamp",
                "subject": "text",
                "priority": "int",
                "resolved": "bool",
            },
            bounds={"opened_at": ("2023-01-01", "2026-12-31"), "priority": (1, 3)},
            keys={"priority": [1, 2, 3]},
            **about,
        ),
    )
    return World(name="bikes", tables=(*PUBLIC, *protected), max_groups=24, max_rows=32)
