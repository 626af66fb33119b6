"""A verb that is not there, one file and one line of `VERBS`: put into a copy of the sources, for tests of faces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINE = (
    '            Verb("count_rows", "discreet.requests.count_rows:CountRows", "", _P.ASK, _Q.ASKING, "count_rows", '
    "charges=True),\n"
)
FILE = '''"""A request for a noisy number of rows, and its handler."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from discreet.ledger import Caller
from discreet.ledger.cost import Cost
from discreet.requests.request import Arg, ArgumentKind
from discreet.requests.question_requests import Ask
from discreet.requests.request import Request


@dataclass(frozen=True)
class RowCount:
    """A number of rows, and what it cost."""

    table: str
    rows: int
    ends: tuple[int, ...]
    cost: Cost


@dataclass(frozen=True, kw_only=True)
class CountRows(Request[RowCount]):
    """Count the rows of a table, and pay for it."""

    verb: ClassVar[str] = "count_rows"
    table: Annotated[str, Arg(ArgumentKind.NAME, "A protected table.", example="visits")]
    epsilon: Annotated[Fraction, Arg(ArgumentKind.AMOUNT, "What it may cost.", example="0.1", spends=True)]


def count_rows(curator: Any, request: CountRows, caller: Caller) -> RowCount:
    """Returns a noisy number of rows."""
    sql = f"SELECT COUNT(*) AS n FROM {request.table}"
    answer = curator.perform(Ask.of(sql=sql, epsilon=request.epsilon), caller)
    (row,) = answer.records
    return RowCount(request.table, row["n"], (row["n_low"], row["n_high"]), answer.cost)
'''


def sources_with_the_verb(folder: Path) -> Path:
    """Returns a folder of sources that are those of this project, and one verb more."""
    package, own = folder / "discreet", ROOT / "src" / "discreet"
    package.mkdir(parents=True)
    for entry in own.iterdir():
        if entry.name not in ("requests", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    shutil.copytree(own / "requests", package / "requests", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "requests" / "count_rows.py").write_text(FILE)
    table = package / "requests" / "verb_table.py"
    before = '            Verb("ask_many",'
    text = table.read_text()
    assert text.count(before) == 1
    table.write_text(text.replace(before, LINE + before))
    return folder


def run_with_the_verb(folder: Path, program: str) -> str:
    """Returns what a program prints that finds one verb more in the library."""
    sources = sources_with_the_verb(folder / "sources")
    env = {**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
