"""Four tables of people with many rows each, and a hundred questions that somebody who knows the table would ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SHARES = {"whole": 9, "filtered": 36, "grouped": 31, "both": 24}
"""How many of the questions are of which kind: a hundred together."""


@dataclass(frozen=True)
class Table:
    """A table, what is declared about it, and what is asked.

    Args:
        name: of the table.
        source: the file.
        unit: the column of ids.
        bounds: of the columns of which sums and means are asked.
        keys: of the columns by which is grouped.
        filters: conditions.
    """

    name: str
    source: Path
    unit: str
    bounds: dict[str, tuple[float, float]]
    keys: dict[str, Sequence[Any]]
    filters: tuple[str, ...]

    @property
    def questions(self) -> list[str]:
        """Returns a hundred questions: of the whole table, filtered, by groups, and both."""
        what = ["COUNT(*)", *(f"{name}({column})" for column in self.bounds for name in ("SUM", "AVG"))]
        where = [f" WHERE {condition}" for condition in self.filters]
        grouped = [
            (i + j, x, key) for i, key in enumerate(self.keys) for j, x in enumerate(what) if f"({key})" not in x
        ]
        kinds = {
            "whole": [self._ask(x) for x in what],
            "filtered": [self._ask(x, condition) for condition in where for x in what],
            "grouped": [self._ask(x, key=key) for _, x, key in grouped],
            "both": [self._ask(x, where[place % len(where)], key) for place, x, key in grouped],
        }
        return [sql for kind, number in SHARES.items() for sql in _spread(kinds[kind], number)]

    def _ask(self, what: str, where: str = "", key: str = "") -> str:
        """Returns one question, whose number is called x."""
        group = f" GROUP BY {key}" if key else ""
        return f"SELECT {f'{key}, ' if key else ''}{what} AS x FROM {self.name}{where}{group}"


def _spread(questions: list[str], number: int) -> list[str]:
    """Returns so many of the questions, evenly spread over the list."""
    if len(questions) < number:
        raise ValueError(f"{len(questions)} questions of a kind are fewer than {number}")
    return [questions[i * len(questions) // number] for i in range(number)]


def made_up(folder: Path, rows: int) -> Table:
    """Returns a table in which a thousandth of the people have half of all rows."""
    path, people = folder / "events.parquet", rows // 25
    duckdb.execute(
        f"COPY (SELECT i * 7919 % (CASE WHEN i % 2 = 0 THEN {people} ELSE {max(people // 1000, 1)} END) AS p, "
        f"['a', 'b', 'c'][1 + i * 31 % 3] AS kind, i * 17 % 24 AS hour, ['n', 'e', 's', 'w'][1 + i * 13 % 4] AS site, "
        f"(i * 48271 % 1000) / 10.0 AS amount, (i * 16807 % 500) / 5.0 AS speed, i * 69621 % 60 AS minutes, "
        f"1 + i * 40692 % 9 AS grade FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
    )
    return Table(
        "events", path, "p",
        {"amount": (0, 95), "speed": (0, 100), "minutes": (0, 60), "grade": (1, 9)},
        {"kind": ["a", "b", "c"], "hour": range(24), "site": ["n", "e", "s", "w"], "grade": range(1, 10)},
        ("kind = 'a'", "amount > 50", "hour < 6", "hour >= 18", "site = 'n'", "minutes > 30", "grade >= 7",
         "speed BETWEEN 20 AND 60"),
    )  # fmt: skip


def real(folder: Path) -> list[Table]:
    """Returns the tables that are there."""
    if not DATA.exists():
        print("../shared/data is not there: only the made-up table is judged.")
        return []
    return [_flights(), _encounters(folder), _ratings(folder)]


def _flights() -> Table:
    return Table(
        "flights", DATA / "nycflights13" / "flights.parquet", "tailnum",
        {"dep_delay": (-30, 300), "arr_delay": (-60, 300), "air_time": (20, 400), "distance": (0, 3000)},
        {"origin": ["EWR", "JFK", "LGA"], "month": range(1, 13), "hour": range(5, 24),
         "carrier": ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]},
        ("month = 7", "origin = 'JFK'", "carrier = 'UA'", "hour < 9", "distance > 1000", "dep_delay > 15",
         "arr_delay <= 0", "month IN (12, 1, 2)"),
    )  # fmt: skip


def _encounters(folder: Path) -> Table:
    path, source = folder / "encounters.parquet", DATA / "diabetes130" / "diabetic_data.csv.gz"
    chosen = (
        "patient_nbr, gender, race, age, readmitted, insulin, time_in_hospital, num_lab_procedures, num_medications, "
        "number_diagnoses, number_inpatient"
    )
    duckdb.execute(f"COPY (SELECT {chosen} FROM read_csv('{source}', sample_size=-1)) TO '{path}' (FORMAT parquet)")
    return Table(
        "encounters", path, "patient_nbr",
        {"time_in_hospital": (1, 14), "num_lab_procedures": (0, 120), "num_medications": (0, 60),
         "number_diagnoses": (1, 16)},
        {"gender": ["Female", "Male"], "age": [f"[{age}-{age + 10})" for age in range(0, 100, 10)],
         "readmitted": ["NO", "<30", ">30"], "insulin": ["No", "Up", "Down", "Steady"],
         "race": ["Caucasian", "AfricanAmerican", "Hispanic", "Asian", "Other"]},
        ("gender = 'Male'", "time_in_hospital > 3", "age = '[70-80)'", "readmitted = '<30'", "insulin <> 'No'",
         "num_medications >= 20", "number_inpatient > 0", "race = 'AfricanAmerican'"),
    )  # fmt: skip


def _ratings(folder: Path) -> Table:
    path, source = folder / "ratings.parquet", DATA / "movielens_latest_small" / "ratings.csv.gz"
    moment = "make_timestamp(timestamp * 1000000)"
    duckdb.execute(
        f"COPY (SELECT userId, movieId, rating, CAST(rating * 2 AS INTEGER) AS stars, CAST(rating >= 4 AS INTEGER) "
        f"AS liked, hour({moment}) AS hour, year({moment}) AS year, month({moment}) AS month, "
        f"dayofweek({moment}) AS weekday "
        f"FROM read_csv('{source}')) TO '{path}' (FORMAT parquet)"
    )
    return Table(
        "ratings", path, "userId",
        {"stars": (0, 10), "rating": (0, 5), "hour": (0, 23), "liked": (0, 1)},
        {"stars": range(1, 11), "year": range(1996, 2019), "weekday": range(7), "month": range(1, 13)},
        ("stars > 6", "stars <= 4", "year >= 2010", "weekday IN (0, 6)", "hour < 6", "hour >= 18", "movieId < 1000",
         "year < 2002"),
    )  # fmt: skip
