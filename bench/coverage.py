"""How often what an answer says about itself is true: intervals for the whole table, and shares of what is left out.

Four tables, default limits, a profile, then 300 answers at epsilon 1; one table again with declared facts. An answer is
judged by plain SQL on the same rows: a number labelled as of the whole table by the true number, a coverage by the true
share of what is left out. Both have 95 % intervals. Three of the tables are in ../shared/data; without it the made-up
one is judged alone.

    python bench/coverage.py [ROWS OF THE MADE-UP TABLE]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

import discreet
from discreet.engines import DuckDB
from discreet.measurement.profile.coverage import Coverage
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Groups, Reading

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ANSWERS = 300
ROUNDS = 5


class Remembering(DuckDB):
    """Reads everything once: repetitions differ in their noise alone."""

    def __init__(self) -> None:
        super().__init__()
        self._read: dict[Reading, Groups] = {}

    def read(self, reading: Reading) -> ExactGroups:
        """Returns what was read before, if it was."""
        if reading not in self._read:
            self._read[reading] = super().read(reading)
        return self._read[reading]


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


@dataclass
class Score:
    """How many numbers were judged, and how many of them held the truth."""

    judged: int = 0
    held: int = 0

    def add(self, holds: bool) -> None:
        """Counts one more."""
        self.judged += 1
        self.held += holds

    def __str__(self) -> str:
        return f"{self.held} of {self.judged}" + (f" ({self.held / self.judged:.1%})" if self.judged else "")


def judge(case: Case) -> tuple[Score, Score, Score]:
    """Asks everything several times, and compares with plain SQL."""
    curator = discreet.Curator.for_tests(engine=Remembering(), bits=SeededBits(1))
    budget = discreet.Budget(epsilon=10**9, delta="1e-3")
    curator.protect(str(case.source), name=case.name, unit=case.unit, budget=budget, **case.declared, **case.facts)
    plain = duckdb.connect()
    plain.execute(f"CREATE VIEW {case.name} AS {case.rows}")
    whole, shares, filtered = Score(), Score(), Score()
    for turn in range(ROUNDS):
        curator.profile(case.name, epsilon=0.05 + turn / 10_000)
        for sql, _ in case.questions:
            answer = curator.ask(sql, epsilon=1 + turn / 1000)
            truth = {tuple(row[:-1]): row[-1] for row in plain.execute(sql).fetchall()}
            for record in answer:
                exact = truth.get(tuple(v for k, v in record.items() if not k.startswith("x")))
                if answer.scope == "whole table" and exact is not None:
                    whole.add(record["x_low"] - 1e-6 <= float(exact) <= record["x_high"] + 1e-6)
            if answer.scope != "whole table" and answer.coverage is not None:
                _judge_coverage(case, plain, sql, answer.coverage["x"], (shares, filtered))
    curator.close()
    return whole, shares, filtered


def _judge_coverage(case: Case, plain: Any, sql: str, found: Coverage, scores: tuple[Score, Score]) -> None:
    """With one row and one group a person, as many rows are counted as there are people."""
    (shares, filtered), where = scores, sql.partition(" WHERE ")[2]
    condition = f"WHERE {where}" if where else ""
    unit = case.unit or "rowid"
    total, kept, clipped = plain.execute(
        f"SELECT COUNT(*), COUNT(DISTINCT {unit}), COUNT(DISTINCT CASE WHEN {_outside(case)} THEN {unit} END) "
        f"FROM (SELECT *, row_number() OVER () AS rowid FROM {case.name} {condition})"
    ).fetchone()
    if case.unit is not None:
        (kept,) = plain.execute(f"SELECT COUNT(DISTINCT {unit}) FROM {case.name} {condition}").fetchone()
    left = total - kept
    if found.share is None:
        filtered.add(found.rows.low - 1 <= left <= found.rows.high + 1)
        return
    least, most = left / total, (left + (clipped if found.clipped is not None else 0)) / total
    if case.unit is None and found.clipped is not None:
        least = most
    shares.add(found.low - 1e-9 <= most and least <= found.high + 1e-9)


def _outside(case: Case) -> str:
    low, high = case.declared["bounds"][case.value]
    return f"{case.value} < {low} OR {case.value} > {high}"


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
    flights = DATA / "nycflights13" / "flights.parquet"
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
        make("persons", acs, f"SELECT * FROM '{acs}'", None,
             {"bounds": {"AGEP": (0, 99)}, "keys": {"SEX": [1, 2]}},
             "SEX", "AGEP", ("SEX = 1", "AGEP > 17"), {"domain": {"AGEP": (0, 99)}}),
    ]  # fmt: skip


def main() -> None:
    """Prints how many of the judged numbers hold the truth; each is to be at least 92 %."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    asked, totals = 0, (Score(), Score(), Score())
    print(f"{'table':12} {'whole table':>22} {'share left out':>22} {'rows, filtered':>22}")
    with TemporaryDirectory() as folder:
        for case in (*real(Path(folder)), made_up(Path(folder), rows)):
            found = judge(case)
            asked += ROUNDS * len(case.questions)
            print(f"{case.name:12} " + " ".join(f"{score!s:>22}" for score in found))
            for total, score in zip(totals, found, strict=True):
                total.judged, total.held = total.judged + score.judged, total.held + score.held
    print(f"{'together':12} " + " ".join(f"{score!s:>22}" for score in totals) + f"   of {asked} answers")


if __name__ == "__main__":
    main()
