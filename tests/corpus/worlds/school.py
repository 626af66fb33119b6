"""Schools: pupils, their marks, absences and clubs; teachers under an account of their own; schools and subjects."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any

from tests.corpus.world import Chance, Row, Table, World

PUPILS = 380
FIRST, LAST = dt.date(2024, 9, 1), dt.date(2025, 7, 15)
SUBJECTS = ("math", "english", "physics", "history", "art")
REASONS = {"illness": 60, "family": 18, "unexcused": 14, "doctor": 8}
CLUBS = {"chess": 26, "football": 34, "choir": 22, "robotics": 18}
LANGUAGES = {"english": 64, "polish": 14, "arabic": 12, "urdu": 10}


def _pupil(number: int, chance: Chance) -> Row:
    grade = chance.between(5, 10)
    return {
        "pupil_id": number,
        "school_id": chance.between(1, 6),
        "grade": grade,
        "gender": chance.weighted({"f": 49, "m": 49, "x": 2}),
        "birth_date": dt.date(2025 - grade - 6, chance.between(1, 12), chance.between(1, 28)),
        "free_meals": chance.happens(24),
        "home_language": chance.weighted(LANGUAGES),
    }


def _marks(pupil: Row, chance: Chance) -> list[Row]:
    talent = chance.around(62, 12)
    made = []
    for term in (1, 2):
        for subject in SUBJECTS:
            if chance.happens(80):
                score = min(100, max(0, chance.around(talent - 6 * pupil["free_meals"] + 2 * term, 9)))
                made.append(
                    {
                        "pupil_id": pupil["pupil_id"],
                        "subject": subject,
                        "term": term,
                        "score": None if chance.happens(3) else float(score),
                        "exam_date": dt.date(2025, 1, 20) if term == 1 else chance.day(dt.date(2025, 6, 2), LAST),
                    }
                )
    return made


def _absences(pupil: Row, chance: Chance) -> list[Row]:
    count = chance.weighted({0: 30, 1: 26, 2: 18, 4: 16, 9: 10})
    return [
        {
            "pupil_id": pupil["pupil_id"],
            "day": chance.day(FIRST, LAST),
            "reason": None if chance.happens(6) else chance.weighted(REASONS),
            "lessons": chance.between(1, 6),
        }
        for _ in range(count)
    ]


def _clubs(pupil: Row, chance: Chance) -> list[Row]:
    return [
        {"pupil_id": pupil["pupil_id"], "club": chance.weighted(CLUBS), "joined": chance.day(FIRST, LAST)}
        for _ in range(chance.weighted({0: 44, 1: 40, 2: 16}))
    ]


PUBLIC = (
    Table(
        name="schools",
        types={"school_id": "int", "school_name": "text", "district": "text", "kind": "text", "places": "int"},
        rows=[
            {
                "school_id": i,
                "school_name": f"School {'ABCDEF'[i - 1]}",
                "district": ("North", "South", "West")[i % 3],
                "kind": "grammar" if i % 2 else "comprehensive",
                "places": 60 + 10 * i,
            }
            for i in range(1, 7)
        ],
    ),
    Table(
        name="subjects",
        types={"subject": "text", "faculty": "text", "pass_mark": "float"},
        rows=[
            {"subject": "math", "faculty": "science", "pass_mark": 50.0},
            {"subject": "english", "faculty": "humanities", "pass_mark": 45.0},
            {"subject": "physics", "faculty": "science", "pass_mark": 50.0},
            {"subject": "history", "faculty": "humanities", "pass_mark": 45.0},
            {"subject": "art", "faculty": "arts", "pass_mark": 40.0},
        ],
    ),
    Table(
        name="districts",
        types={"district": "text", "population": "int"},
        rows=[
            {"district": "North", "population": 41000},
            {"district": "South", "population": 56000},
            {"district": "West", "population": 23000},
        ],
    ),
)


@cache
def world(pupils: int = PUPILS) -> World:
    """The schools, the same every time."""
    chance = Chance(303)
    people = [_pupil(number, chance) for number in range(1, pupils + 1)]
    about: Any = {"unit": "pupil_id", "account": "pupils"}
    protected = (
        Table(
            name="pupils",
            rows=people,
            types={
                "pupil_id": "int",
                "school_id": "int",
                "grade": "int",
                "gender": "text",
                "birth_date": "date",
                "free_meals": "bool",
                "home_language": "text",
            },
            bounds={"grade": (1, 13), "birth_date": ("1995-01-01", "2025-12-31")},
            keys={"school_id": "schools.school_id", "grade": [5, 6, 7, 8, 9, 10]},
            **about,
        ),
        Table(
            name="marks",
            rows=[row for pupil in people for row in _marks(pupil, chance)],
            types={"pupil_id": "int", "subject": "text", "term": "int", "score": "float", "exam_date": "date"},
            bounds={"score": (0, 100), "term": (1, 2)},
            keys={"subject": "subjects.subject", "term": [1, 2]},
            **about,
        ),
        Table(
            name="absences",
            rows=[row for pupil in people for row in _absences(pupil, chance)],
            types={"pupil_id": "int", "day": "date", "reason": "text", "lessons": "int"},
            bounds={"lessons": (0, 8)},
            **about,
        ),
        Table(
            name="clubs",
            rows=[row for pupil in people for row in _clubs(pupil, chance)],
            types={"pupil_id": "int", "club": "text", "joined": "date"},
            keys={"club": list(CLUBS)},
            **about,
        ),
        Table(
            name="teachers",
            unit="teacher_id",
            account="staff",
            rows=[
                {
                    "teacher_id": i,
                    "school_id": 1 + i % 6,
                    "subject": chance.one(SUBJECTS),
                    "salary": 38000.0 + 250 * chance.below(120),
                    "hired": chance.day(dt.date(1995, 1, 1), FIRST),
                }
                for i in range(90)
            ],
            types={"teacher_id": "int", "school_id": "int", "subject": "text", "salary": "float", "hired": "date"},
            bounds={"salary": (0, 150_000)},
            keys={"subject": "subjects.subject"},
        ),
    )
    return World(name="school", tables=(*PUBLIC, *protected), max_groups=24, max_rows=32)
