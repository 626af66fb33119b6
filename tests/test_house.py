"""The shape of the source tree: small folders, names with one meaning, a curator that is read from top to bottom."""

import ast
import inspect
import re
import shutil
import subprocess
import textwrap
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from discreet.curator import Curator
from discreet.requests.verbs import Verbs
from tests.syntax import SOURCE, nodes, trees

MOST_MODULES = 14
MOST_PIECES = 24
PIECES = {"mechanisms", "measurement/aggregates", "privacy/events"}
"""Folders of pieces that are found by registration."""

SHARED = {
    "covariance": "of two columns",
    "dialect": "of SQL",
    "engine": "where readings are computed",
    "gaussian": "the law",
    "laplace": "the law",
    "mean": "of a column",
    "quantile": "a value of a given rank",
    "sources": "what an engine can be given",
    "variance": "of a column",
}
"""Names that several rooms use, and their one meaning."""

NOUNS = {"attack_finding", "boosting", "local_hashing", "rounding", "unary_encoding"}
"""Modules that end like a verb and are none."""

LEFTOVER = re.compile(
    r"(^|/)(\.tmp|tmp[^/]*|__pycache__|core)(/|$)|\.(tmp|pyc|log|wal|duckdb|ledger|identities|bak|orig|rej|swp)$|~$"
)
"""What runs leave behind, by its path."""

ROOT = Path(__file__).parent.parent


def _modules() -> list[Path]:
    return [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")]


def _named() -> list[Path]:
    return [path for path in _modules() if not path.stem.startswith("__")]


def _by(paths: Iterable[Path], key: str) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        found[path.parent.as_posix() if key == "folder" else path.stem].append(path)
    return found


def test_no_folder_is_a_warehouse() -> None:
    sizes = {folder: len(paths) for folder, paths in _by(_named(), "folder").items()}
    crowded = {f: n for f, n in sizes.items() if n > (MOST_PIECES if f in PIECES else MOST_MODULES)}
    assert not crowded


def test_a_name_has_one_meaning() -> None:
    twice = {name: paths for name, paths in _by(_named(), "name").items() if len(paths) > 1}
    assert not {name: paths for name, paths in twice.items() if name not in SHARED}
    assert set(SHARED) <= set(twice)  # the list only names what there is


def test_modules_are_nouns() -> None:
    assert not [path for path in _named() if path.stem.endswith("ing") and path.stem not in NOUNS]


def test_every_file_says_what_it_holds() -> None:
    assert trees().keys() >= set(_modules())
    assert not [path for path in _modules() if not ast.get_docstring(trees()[path])]


def test_the_curator_is_composed() -> None:
    assert Curator.__bases__ == (Verbs,)


def test_a_question_can_be_followed_from_top_to_bottom() -> None:
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(Curator._ask))).body
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    assert len(statements) - 2 <= 25  # without the definition and its docstring


def _leftovers(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if LEFTOVER.search(path)]


def test_no_tracked_file_is_a_leftover() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("the sources are not in a repository")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "pyproject.toml" in listed
    assert _leftovers(listed.split("\0")) == []
    assert _leftovers([".tmp/duckdb_temp_14649_0_owner", "book.ledger", "docs/serving.md"]) == [
        ".tmp/duckdb_temp_14649_0_owner",
        "book.ledger",
    ]


def test_every_duckdb_says_where_it_may_write() -> None:
    """DuckDB's default is .tmp in the working directory, where private rows would stay."""
    opened = [
        (path, ast.unparse(node))
        for path, found in nodes().items()
        for node in found
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "duckdb.connect"
    ]
    assert len(opened) >= 3
    assert [(path, text) for path, text in opened if "temp_directory" not in text] == []
