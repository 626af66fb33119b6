"""What it costs to start: help, and a question about a small table, beside importing what a question needs anyway.

Processor time of fresh interpreters, the least of several runs. One peer imports numpy, duckdb, sqlglot and typer and
does nothing; the other numpy and duckdb alone, without which no question is read. Bytecode of the library must be
there, as pip leaves it: `make` compiles the source tree.
"""

from __future__ import annotations

import os
import tempfile
from fractions import Fraction
from itertools import count
from pathlib import Path

from _timing import Row, cpu_of_python, show

NEEDED, LEAST = "import numpy, duckdb, sqlglot, typer", "import numpy, duckdb"
ROWS = 2000
TOML = """\
anchor = "discreet.anchor"

[tables.visits]
source = "visits.csv"
unit = "patient"
max_rows = 1
types = { patient = "int", ward = "text", charge = "float" }
bounds = { charge = [0, 1000] }
keys = { ward = ["A", "B", "C"] }

[budgets.visits]
epsilon = "100"
"""
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits WHERE charge > {} GROUP BY ward"


def command(*arguments: str) -> str:
    """Python that runs a command."""
    return f"import sys; sys.argv = ['discreet', *{list(arguments)!r}]; from discreet.cli import run_alone; run_alone()"


def fresh_question(numbers: count[int]) -> str:
    """A question that nobody asked before, so that nothing is replayed."""
    return command("ask", BY_WARD.format(next(numbers)), "--epsilon", "0.1")


def clinic(folder: Path) -> None:
    lines = [f"{i},{'ABC'[i % 3]},{i % 997}" for i in range(ROWS)]
    (folder / "visits.csv").write_text("\n".join(["patient,ward,charge", *lines]))
    (folder / "discreet.toml").write_text(TOML)
    os.chdir(folder)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clinic(Path(folder))
        cpu_of_python(command("protect"), repeats=1)
        numbers, peer = count(), cpu_of_python(NEEDED)
        asked = min(cpu_of_python(fresh_question(numbers), repeats=1) for _ in range(5))
        rows = [
            Row("import discreet", cpu_of_python("import discreet"), peer, Fraction(13, 20)),
            Row("discreet --help", cpu_of_python(command("--help")), peer, Fraction(13, 10)),
            Row("discreet ask, a table of 2,000 rows", asked, peer, Fraction(13, 5)),
        ]
        least = [Row("discreet ask; 0.6 s at most", asked, cpu_of_python(LEAST), None)]
    show(f"starting, beside `{NEEDED}`", rows, unit="s", per=1.0)
    show(f"starting, beside `{LEAST}`", least, unit="s", per=1.0)


if __name__ == "__main__":
    main()
