"""The lessons in examples/ are valid notebooks without outputs, with solutions that are hidden, and their cells run."""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs.site.navigation import DOCS
from tests.cases import every
from tests.docs.test_pages import misspelled

EXAMPLES = DOCS.parent / "examples"
LESSONS = sorted(EXAMPLES.glob("*.ipynb"))
Notebook = dict[str, Any]

ALLOWED = {"discreet", "math", "numpy", "sklearn"}
"""What lessons may import: the library, and what it stands on."""

_KEYS = {"markdown": {"cell_type", "id", "metadata", "source"}}
_KEYS["code"] = _KEYS["markdown"] | {"execution_count", "outputs"}


def read(lesson: Path) -> Notebook:
    found: Notebook = json.loads(lesson.read_text(encoding="utf-8"))
    return found


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def code(notebook: Notebook) -> list[str]:
    return [source(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def faults(notebook: Notebook) -> list[str]:
    """What is wrong with a notebook, by the schema of nbformat 4.5 and by our own rules."""
    wrong = []
    if notebook.keys() != {"cells", "metadata", "nbformat", "nbformat_minor"}:
        wrong.append("keys of the notebook")
    if (notebook.get("nbformat"), notebook.get("nbformat_minor")) != (4, 5):
        wrong.append("version")
    if notebook.get("metadata", {}).keys() - {"kernelspec", "language_info"}:
        wrong.append("metadata of the notebook")
    ids = [cell.get("id") for cell in notebook["cells"]]
    if len(ids) != len(set(ids)):
        wrong.append("ids are not unique")
    return wrong + [f"{cell.get('id')}: {fault}" for cell in notebook["cells"] for fault in _faults_of(cell)]


def _faults_of(cell: dict[str, Any]) -> list[str]:
    found = {
        "keys": cell.keys() != _KEYS.get(cell.get("cell_type", "")),
        "id": not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(cell.get("id", ""))),
        "metadata": not cell.get("metadata", {}).keys() <= {"jupyter", "tags"},
        "source": not _is_source(cell.get("source")),
        "outputs": bool(cell.get("outputs")),
        "execution count": cell.get("execution_count") is not None,
    }
    return [name for name, is_wrong in found.items() if is_wrong]


def _is_source(lines: Any) -> bool:
    """Whether a source is a list of lines, of which all but the last end in a line break."""
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) for line in lines):
        return False
    return all(line.endswith("\n") for line in lines[:-1]) and not lines[-1].endswith("\n")


def test_there_are_five_lessons() -> None:
    assert [lesson.name[:2] for lesson in LESSONS] == ["1_", "2_", "3_", "4_", "5_"]


@every("lesson", LESSONS)
def test_lessons_are_valid_notebooks_without_outputs(lesson: Path) -> None:
    notebook = read(lesson)
    assert faults(notebook) == []
    assert 10 <= len(notebook["cells"]) <= 18
    assert source(notebook["cells"][0]).startswith(f"# {lesson.name[0]}. ")


_BROKEN: dict[str, Callable[[Notebook], Any]] = {
    "an output": lambda ledger: ledger["cells"][1].update(outputs=[{"output_type": "stream"}]),
    "a count": lambda ledger: ledger["cells"][1].update(execution_count=3),
    "an id twice": lambda ledger: ledger["cells"][1].update(id=ledger["cells"][0]["id"]),
    "no id": lambda ledger: ledger["cells"][0].pop("id"),
    "a bad id": lambda ledger: ledger["cells"][0].update(id="a b"),
    "an older format": lambda ledger: ledger.update(nbformat_minor=4),
    "a strange cell": lambda ledger: ledger["cells"][0].update(cell_type="heading"),
    "metadata of an editor": lambda ledger: ledger["cells"][0]["metadata"].update(collapsed=True),
    "more metadata": lambda ledger: ledger["metadata"].update(author="me"),
    "one line": lambda ledger: ledger["cells"][0].update(source="# Title"),
    "outputs of text": lambda ledger: ledger["cells"][0].update(outputs=[]),
}


@every("name", sorted(_BROKEN))
def test_faults_are_seen(name: str) -> None:
    notebook = copy.deepcopy(read(LESSONS[0]))
    _BROKEN[name](notebook)
    assert faults(notebook)


@every("lesson", LESSONS)
def test_every_exercise_has_a_hidden_solution(lesson: Path) -> None:
    cells = read(lesson)["cells"]
    exercises = [place for place, cell in enumerate(cells) if re.search(r"(?m)^\*\*Exercise \d", source(cell))]
    solutions = [place for place, cell in enumerate(cells) if cell["metadata"].get("tags") == ["solution"]]
    assert len(exercises) >= 2
    assert solutions == [place + step for place in exercises for step in (1, 2)]
    for place in exercises:
        words, hidden = cells[place + 1 : place + 3]
        assert (words["cell_type"], hidden["cell_type"]) == ("markdown", "code")
        assert source(words).startswith("**Solution")
        assert hidden["metadata"]["jupyter"] == {"source_hidden": True}


@every("lesson", LESSONS)
def test_lessons_import_the_library_and_little_else(lesson: Path) -> None:
    nodes = [node for text in code(read(lesson)) for node in ast.walk(ast.parse(text))]
    plain = {name.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for name in node.names}
    taken = {str(node.module).split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    assert plain | taken <= ALLOWED


def test_the_page_of_the_course_lists_them() -> None:
    page = (DOCS / "course.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\S+\.ipynb)\)", page) == [f"../examples/{lesson.name}" for lesson in LESSONS]


def test_words_of_lessons_are_spelled_right() -> None:
    assert misspelled(*map(str, LESSONS)) == []


def _chart(text: str, space: dict[str, Any]) -> Any:
    """Runs a cell and returns what its last line shows."""
    tree = ast.parse(text)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    exec(compile(tree, "cell", "exec"), space)
    shown = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
    return shown if isinstance(shown, dict) else shown.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_cells_run_in_order_and_end_with_a_chart(lesson: Path) -> None:
    *cells, last = code(read(lesson))
    space: dict[str, Any] = {"__name__": lesson.stem}
    for text in cells:
        exec(compile(text, lesson.name, "exec"), space)
    assert _chart(last, space)["layer"]
