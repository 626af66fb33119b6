"""The noise of questions that show few groups: by the limit of groups alone, and by the groups that are shown.

Both programs have the same budget and answer from the same rows; nothing is measured, since the scales say it all. The
error is that of a 95 % interval in a group of 10,000 rows. A ratio of 1 says that nothing can be saved: the limit is
what decides. Where a question had groups that no row can be in, these are left out now, and so is their noise.

    python bench/few_groups.py
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from discreet.curator.asking.explanation import errors
from discreet.measurement.program.program import Program, ReleaseFormat, choose
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from discreet.sql.select import parse

EPSILON, CONFIDENCE, ROWS = Fraction(1), Fraction(19, 20), 10_000
COLUMNS = {
    "patient": ColumnSchema(name="patient", type=Type.INT),
    "sex": ColumnSchema(name="sex", type=Type.TEXT, keys=("female", "male")),
    "ward": ColumnSchema(name="ward", type=Type.TEXT, keys=tuple("ABCDEFGH")),
    "age": ColumnSchema(name="age", type=Type.INT, bounds=ColumnBounds(Fraction(0), Fraction(120))),
    "smoker": ColumnSchema(name="smoker", type=Type.BOOL),
    "cost": ColumnSchema(name="cost", type=Type.FLOAT, bounds=ColumnBounds(Fraction(0), Fraction(1000))),
}


@dataclass(frozen=True)
class Case:
    """A question, how many groups one patient may be in, and the least by which its noise must shrink."""

    sql: str
    limit: int
    neighbours: Neighbours
    target: float


ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
BY_SEX = "SELECT sex, COUNT(*) AS a FROM visits GROUP BY sex"
CASES = (
    Case(BY_SEX, 2, ADD, 1),
    Case(BY_SEX, 2, SWAP, 1.9),
    Case(BY_SEX, 20, ADD, 9),
    Case(BY_SEX, 20, SWAP, 19),
    Case("SELECT sex, AVG(cost) AS a FROM visits GROUP BY sex", 6, SWAP, 2.9),
    Case("SELECT sex, MEDIAN(cost) AS a FROM visits GROUP BY sex", 6, ADD, 2.5),
    Case("SELECT sex, QUANTILE(cost, 0.9) AS a FROM visits GROUP BY sex", 2, SWAP, 1.5),
    Case("SELECT ward, COUNT(*) AS a FROM visits GROUP BY ward", 3, ADD, 1),
    Case("SELECT ward, COUNT(*) AS a FROM visits GROUP BY ward", 6, SWAP, 1.4),
    Case("SELECT ward, COUNT(*) AS a FROM visits WHERE ward = 'A' GROUP BY ward", 3, ADD, 2.9),
    Case("SELECT ward, COUNT(*) AS a FROM visits WHERE ward IN ('A', 'B') GROUP BY ward", 6, SWAP, 5.5),
    Case("SELECT age // 10 AS b, COUNT(*) AS a FROM visits WHERE age BETWEEN 20 AND 39 GROUP BY b", 5, ADD, 2.4),
    Case("SELECT smoker, SUM(cost) AS a FROM visits WHERE smoker IS NOT NULL GROUP BY smoker", 3, ADD, 1.4),
    Case("SELECT sex, smoker, COUNT(*) AS a FROM visits GROUP BY CUBE (sex, smoker)", 9, ADD, 1.8),
)


def program(case: Case, edition: ReleaseFormat) -> Program:
    schema = TableSchema(
        name="visits", columns=COLUMNS, unit="patient", limits=Limits(case.limit, 1), neighbours=case.neighbours
    )
    return choose(parse(case.sql, {"visits": schema}), schema, epsilon=EPSILON, edition=edition)


def shown(made: Program) -> int:
    return sum(len(one.reading.public_keys or ((),)) for one in made.groupings or (made,))


def main() -> int:
    heads = ("question", "relation", "limit", "groups", "shown", "error before", "error now", "ratio", "at least")
    table = Table(*heads, title=f"epsilon {EPSILON}, one row per patient and group")
    missed = 0
    for case in CASES:
        before, now = (program(case, edition) for edition in (ReleaseFormat.BY_LIMITS, ReleaseFormat.NOW))
        (old,), (new,) = (errors(made, confidence=CONFIDENCE, rows=ROWS).values() for made in (before, now))
        missed += old < case.target * new
        told = f"{old:.3g}", f"{new:.3g}", f"{old / new:.2f}", f"{case.target:g}"
        table.add_row(case.sql, case.neighbours.value, str(case.limit), str(shown(before)), str(shown(now)), *told)
    Console(width=200).print(table)
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
