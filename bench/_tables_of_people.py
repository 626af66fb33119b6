"""Tables of people with several rows each: real ones, if they are at hand, and a made-up one; and questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Case:
    """A table, what is declared about it, and what is asked.

    Args:
        name: of the table.
        source: the file.
        rows: the same as plain SQL reads it.
        unit: the column of ids; None if each row is one person.
        declared: bounds and keys.
        key: a column with declared keys.
        value: a column with declared bounds.
        filters: conditions that people ask about.
    """

    name: str
    source: Path
    rows: str
    unit: str | None
    declared: dict[str, Any]
    key: str
    value: str
    filters: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def questions(self) -> list[tuple[str, str]]:
        """Returns questions about the table, each with its group or condition: fifteen of them."""
        x, key, table = self.value, self.key, self.name
        people = "COUNT(*)" if self.unit is None else f"COUNT(DISTINCT {self.unit})"
        found = [
            (f"SELECT {what} AS x FROM {table}", "")
            for what in ("COUNT(*)", f"COUNT({x})", f"SUM({x})", f"AVG({x})", people)
        ]
        found += [(f"SELECT {key}, {what} AS x FROM {table} GROUP BY {key}", key) for what in ("COUNT(*)", f"AVG({x})")]
        for condition in self.filters:
            for what in ("COUNT(*)", f"SUM({x})", f"AVG({x})", people):
                found.append((f"SELECT {what} AS x FROM {table} WHERE {condition}", condition))
        return found


def made_up(folder: Path, rows: int) -> Case:
    """Returns a table in which a thousandth of the people have half of all rows."""
    path = folder / "events.parquet"
    people = rows // 25
    duckdb.execute(
        f"COPY (SELECT i * 7919 % (CASE WHEN i % 2 = 0 THEN {people} ELSE {max(people // 1000, 1)} END) AS p, "
        f"['a', 'b', 'c'][1 + i * 31 % 3] AS kind, (i * 48271 % 1000) / 10.0 AS amount FROM range({rows}) t(i)) "
        f"TO '{path}' (FORMAT parquet)"
    )
    declared = {"bounds": {"amount": (0, 95)}, "keys": {"kind": ["a", "b", "c"]}}
    filters = ("kind = 'a'", "amount > 50")
    return Case("events", path, f"SELECT * FROM '{path}'", "p", declared, "kind", "amount", filters)


def real(folder: Path) -> list[Case]:
    """Returns the tables that are there."""
    if not DATA.exists():
        print("../shared/data is not there: only the made-up table is judged.")
        return []
    diabetes, acs = folder / "diabetes.parquet", folder / "acs.parquet"
    for path, source, chosen in (
        (diabetes, DATA / "diabetes130" / "diabetic_data.csv.gz", "patient_nbr, gender, time_in_hospital"),
        (acs, DATA / "nist_acs_excerpts" / "ma2019.csv", "SEX, TRY_CAST(AGEP AS INTEGER) AS AGEP"),
    ):
        duckdb.execute(f"COPY (SELECT {chosen} FROM read_csv('{source}')) TO '{path}' (FORMAT parquet)")
    flights, ratings = DATA / "nycflights13" / "flights.parquet", folder / "ratings.parquet"
    source = DATA / "movielens_latest_small" / "ratings.csv.gz"
    stars = f"SELECT *, CAST(rating * 2 AS INTEGER) AS stars FROM read_csv('{source}')"
    duckdb.execute(f"COPY ({stars}) TO '{ratings}' (FORMAT parquet)")
    make: Callable[..., Case] = Case
    return [
        make("encounters", diabetes, f"SELECT * FROM '{diabetes}'", "patient_nbr",
             {"bounds": {"time_in_hospital": (1, 14)}, "keys": {"gender": ["Female", "Male"]}},
             "gender", "time_in_hospital", ("gender = 'Male'", "time_in_hospital > 3")),
        make("stays", diabetes, f"SELECT * FROM '{diabetes}'", "patient_nbr",
             {"bounds": {"time_in_hospital": (1, 14)}, "keys": {"gender": ["Female", "Male"]}},
             "gender", "time_in_hospital", ("gender = 'Male'", "time_in_hospital > 3"),
             {"domain": {"time_in_hospital": (1, 14)}, "most_rows": 60}),
        make("flights", flights, f"SELECT * FROM '{flights}'", "tailnum",
             {"bounds": {"dep_delay": (-30, 300)}, "keys": {"origin": ["EWR", "JFK", "LGA"]}},
             "origin", "dep_delay", ("month = 7", "origin = 'JFK'")),
        make("ratings", ratings, f"SELECT * FROM '{ratings}'", "userId",
             {"bounds": {"stars": (0, 10)}, "keys": {"stars": list(range(1, 11))}},
             "stars", "stars", ("stars > 6", "timestamp > 1400000000")),
        make("persons", acs, f"SELECT * FROM '{acs}'", None,
             {"bounds": {"AGEP": (0, 99)}, "keys": {"SEX": [1, 2]}},
             "SEX", "AGEP", ("SEX = 1", "AGEP > 17"), {"domain": {"AGEP": (0, 99)}}),
    ]  # fmt: skip
