"""A folder with a small CSV and its discreet.toml, and a way to run commands in it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from discreet.cli import app

CSV = "patient_id,ward,age,charge\n" + "".join(
    f"p{i},{'ABC'[(i + j) % 3]},{20 + i % 60},{10.5 * (i % 40)}\n" for i in range(120) for j in range(1 + i % 3)
)
TOML = """\
ledger = "clinic.ledger"

[tables.visits]
source = "visits.csv"
unit = "patient_id"
account = "patients"
types = { patient_id = "text", ward = "text", age = "int", charge = "float" }
bounds = { age = [0, 120], charge = [0, 500] }
keys = { ward = ["A", "B", "C"] }
max_groups = 2
max_rows = 1
version = "1"

[budgets.patients]
epsilon = 2
delta = "1e-6"
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits GROUP BY ward"
_LINE = re.compile(r"^(\w+): (.*)$")


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> dict[str, str]:
        """The labelled lines of an error."""
        return {match[1]: match[2] for line in self.err.splitlines() if (match := _LINE.match(line))}


def run(*arguments: str) -> Outcome:
    """Runs one command in the current folder."""
    result = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, list(arguments))
    assert "Traceback" not in result.output
    return Outcome(result.exit_code, result.stdout, result.stderr)


def write(folder: Path, toml: str = TOML) -> None:
    """Puts the clinic's files into a folder."""
    (folder / "visits.csv").write_text(CSV)
    (folder / "discreet.toml").write_text(toml)


def records(printed: str) -> list[dict[str, Any]]:
    """The rows of an answer that `--json` printed, by the names of their columns."""
    document = json.loads(printed)
    names = [column["name"] for column in document["columns"]]
    return [dict(zip(names, row, strict=True)) for row in document["rows"]]


def told_budget(account: str = "patients") -> dict[str, Any]:
    """What `discreet budget --json` says of an account; people and projects by their names."""
    (told,) = [one for one in json.loads(run("budget", "--json").out)["budgets"] if one["account"] == account]
    return {**told, **{kind: {one["name"]: one for one in told[kind]} for kind in ("people", "projects")}}


def told_history(*arguments: str) -> list[dict[str, Any]]:
    """The entries of `discreet history --json`."""
    found: list[dict[str, Any]] = json.loads(run("history", "--json", *arguments).out)["entries"]
    return found
