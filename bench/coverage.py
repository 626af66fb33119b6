"""How often what an answer says about itself is true: intervals for the whole table, and shares of what is left out.

Four tables, default limits, a profile, then 300 answers at epsilon 1; one table again with declared facts. An answer is
judged by plain SQL on the same rows: a number labelled as of the whole table by the true number, a coverage by the true
share of what is left out. Both have 95 % intervals. Three of the tables are in ../shared/data; without it the made-up
one is judged alone.

    python bench/coverage.py [ROWS OF THE MADE-UP TABLE]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from _tables_of_people import Case, made_up, real

import discreet
from discreet.engines import DuckDB
from discreet.measurement.profile.coverage import Coverage
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Groups, Reading

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
    curator.protect(
        str(case.source), name=case.name, unit=case.unit, max_rows=1, budget=budget, **case.declared, **case.facts
    )
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
