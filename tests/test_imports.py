"""The import graph of src, from one pass over its syntax trees: no circle of files, and no crowded folder.

Imports for annotations only (`if TYPE_CHECKING`) count as well: two files that need each other's names are one idea.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Collection, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.syntax import SOURCE, nodes


def _name(path: Path) -> str:
    parts = (SOURCE.name, *path.with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(inside: Iterable[ast.AST], modules: Collection[str]) -> Iterator[str]:
    """What a module imports: `from a.b import c` is a.b.c if that is a module, else a.b."""
    for node in inside:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def imports() -> dict[str, set[str]]:
    """For each module the modules of ours that it imports."""
    found = {_name(path): inside for path, inside in nodes().items()}
    return {name: set(_imported(inside, found)) & found.keys() - {name} for name, inside in found.items()}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """A circle of modules, empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle_of_files() -> None:
    assert circle(imports()) == []


def test_a_circle_would_be_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != []


LATE = {
    "psycopg": ("engines/postgres", "ledger/store"),
    "pymysql": ("engines/mariadb",),
    "pyspark": ("engines/spark",),
}
"""Optional modules, and the folders that load them by name, which no graph of imports shows."""


LOADERS = ("load", "import_module", "__import__")


def loaded(inside: Iterable[ast.AST]) -> Iterator[str]:
    """The packages that a module loads by name."""
    for node in inside:
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in LOADERS:
            first = [value.value for value in node.args[:1] if isinstance(value, ast.Constant)]
            yield from (name.partition(".")[0] for name in first if isinstance(name, str))


def test_drivers_are_loaded_where_they_are_used_and_nowhere_else() -> None:
    found = {(name, path.parent.as_posix()) for path, inside in nodes().items() for name in loaded(inside)}
    expected = {(name, folder) for name, folders in LATE.items() for folder in folders}
    assert {place for place in found if place[0] in LATE} == expected


def test_no_folder_is_crowded() -> None:
    """A folder shows its own order; where pieces are found by registration, a reader looks one up by its name."""
    modules = [path.parent.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    registered = {Path("mechanisms"), Path("measurement/aggregates")}
    crowded = {folder for folder in modules if modules.count(folder) > (24 if folder in registered else 14)}
    assert not crowded


def test_contracts_of_layers_are_about_folders_that_need_an_order() -> None:
    """Five modules show their order by themselves; circles are excluded everywhere."""
    text = (SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    folders = [SOURCE.parent / name.replace(".", "/") for each in contracts for name in each.get("containers", ())]
    assert len(folders) > 20
    assert not [folder for folder in folders if len(list(_children(folder))) < 6]


def _children(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.glob("*.py") if path.name != "__init__.py")
    yield from (path.parent for path in folder.glob("*/__init__.py"))
