"""What is loaded when: help loads no library of numbers, a count no special function, and nothing needs an extra."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from discreet.lazy import EXTRAS
from tests.cli.clinic import BY_WARD, COUNT, write

LATE = {"scipy", "sklearn", "altair", "vl_convert", "pandas", "polars", "pyarrow", "narwhals"}
EARLY = {"numpy", "duckdb", "sqlglot", "cryptography"}

_BLOCK = """\
import importlib.abc, json, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
_COMMANDS = """\
from discreet.cli import main
ends = []
for arguments in {lines!r}:
    sys.argv = ["discreet", *arguments]
    try:
        main()
    except SystemExit as end:
        ends.append([end.code, sorted({{name.partition(".")[0] for name in sys.modules}})])
print(json.dumps(ends))
"""


def python(code: str, *, without: Iterable[str] = (), folder: Path | None = None) -> Any:
    """The JSON that a fresh interpreter prints at last; some modules are not installed there."""
    code = _BLOCK.format(names=set(without)) + code
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def commands(folder: Path, *lines: tuple[str, ...], without: Iterable[str] = ()) -> list[set[str]]:
    """The packages that one process has loaded when each of its commands has ended well."""
    ends = python(_COMMANDS.format(lines=lines), without=without, folder=folder)
    assert len(ends) == len(lines)
    assert not any(code for code, _ in ends)
    return [set(loaded) for _, loaded in ends]


def test_the_module_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "discreet", "--help"], capture_output=True, text=True, check=False)
    assert (ended.returncode, "Exit codes" in ended.stdout) == (0, True)


ALONE = """\
import atexit, sys
from discreet.cli import run_alone
atexit.register(print, "ended")
sys.argv = ["discreet", *sys.argv[1:]]
run_alone()
"""


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("no-such-command", 2)])
def test_a_process_of_its_own_ends_in_order(argument: str, code: int) -> None:
    """Its output is there, functions for its end have run, and its exit code is that of the command."""
    ended = subprocess.run([sys.executable, "-c", ALONE, argument], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (code, "ended")
    assert bool(ended.stdout.splitlines()[:-1]) == (not code)


def test_help_loads_neither_numbers_nor_databases(tmp_path: Path) -> None:
    (loaded,) = commands(tmp_path, ("--help",))
    assert not loaded & (LATE | EARLY)


@pytest.mark.ci
def test_a_question_loads_its_engine_after_its_command_and_says_nothing_but_its_answer(tmp_path: Path) -> None:
    """What is loaded with the command is never searched for garbage, of which DuckDB would complain at the end."""
    write(tmp_path)
    commands(tmp_path, ("protect",))
    found = python(
        "from discreet.cli.app import load_command; load_command('ask'); print(json.dumps(sorted(sys.modules)))"
    )
    patterns = {f"discreet.plan.expressions.{name}" for name in ("patterns", "pattern_grammar", "pattern_matcher")}
    assert not set(found) & {"duckdb", "discreet.engines.memory.engine", "discreet.accounting.pld", *patterns}
    line = [sys.executable, "-m", "discreet", "ask", COUNT, "--epsilon", "0.1"]
    ended = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Cost: epsilon=0.1" in ended.stdout


@pytest.mark.ci
def test_questions_load_what_they_need_and_no_extra(tmp_path: Path) -> None:
    write(tmp_path)
    commands(tmp_path, ("protect",), without=EXTRAS)
    for loaded in commands(tmp_path, *(("ask", question, "--epsilon", "0.1") for question in (COUNT, BY_WARD))):
        assert loaded & (LATE | EARLY) == EARLY


_CLINIC = """\
import discreet, numpy as np
curator = discreet.Curator(":memory:")
curator.protect({source}, name="t", unit=None, budget=discreet.Budget(epsilon=9), bounds={{"x": (0, 9)}})
answer = curator.ask("SELECT COUNT(*) AS n, AVG(x) AS m FROM t", epsilon=1)
"""
_DOORS = """\
from discreet.errors import MissingExtra
from discreet.report import charts, render
X, y = np.zeros((40, 2)), np.arange(40) % 2
model = type("Model", (), {"fit": None, "predict": None, "get_params": dict})()

def told(door):
    try:
        eval(door) if not door.startswith("import") else exec(door)
    except MissingExtra as missing:
        return [missing.module, str(missing)]

"""
DOORS = {
    "sklearn": (
        "import discreet.learn",
        "discreet.learn.LogisticRegression",
        "curator.fit(model, 'SELECT x FROM t')",
        "curator.plan_fit(model, 'SELECT x FROM t')",
        "discreet.attacks.membership(model, (X, y), (X, y))",
        "discreet.attacks.membership.compare(X, y, bounds=(0, 1), epsilons=[1.0])",
    ),
    "pandas": ("answer.to_pandas()",),
    "polars": ("answer.to_polars()",),
    "vl_convert": ("render.svg(charts.lengths({'a': 1.0}, title='x', digits='.1f'), render.Scheme.LIGHT)",),
}


_BARE = """
from discreet.cli.app import COMMANDS, load_command
names = [load_command(name).name for name in COMMANDS]
print(json.dumps([names, type(answer.chart()).__name__, list(map(told, {doors!r}))]))
"""


@pytest.mark.ci
def test_without_any_extra_all_commands_load_a_chart_is_a_dictionary_and_what_is_missing_is_named() -> None:
    """With the line that installs it."""
    doors = [(module, door) for module, found in DOORS.items() for door in found]
    clinic = _CLINIC.format(source='__import__("pyarrow").table({"x": [1, 2, 3]})')
    bare = _BARE.format(doors=[door for _, door in doors])
    names, chart, tales = python(clinic + _DOORS + bare, without=EXTRAS)
    assert "attack" in names
    assert chart == "dict"
    for (module, door), told in zip(doors, tales, strict=True):
        assert told is not None, door
        assert told[0] == module, door
        assert told[1].endswith(f"In a checkout of Discreet, run: pip install '.[{EXTRAS[module]}]'")


@pytest.mark.ci
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_needs_its_own_library_and_no_extra(library: str) -> None:
    clinic = f"import {library}\n" + _CLINIC.format(source=f"{library}.DataFrame({{'x': [1.5, 2, 3]}})")
    assert python(clinic + "print(json.dumps(len(answer)))", without=EXTRAS.keys() - {library}) == 1


def test_extras_hold_what_the_errors_promise_and_all_holds_every_one() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    named = {"grpc": "pyspark[connect]", "sklearn": "scikit-learn", "vl_convert": "vl-convert-python"}
    named |= {"prometheus_client": "prometheus-client", "starlette": "fastapi"}
    for module, extra in EXTRAS.items():
        package = module.partition(".")[0]
        assert any(line.startswith(named.get(package, package)) for line in extras[extra])
    light = sorted({*EXTRAS.values()} - {"deep", "spark"})  # torch is large; Spark is half a gigabyte, and needs Java
    assert extras["all"] == [f"discreet[{','.join(light)}]"]
