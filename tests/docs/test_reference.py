"""The reference is complete, agrees with what Python imports, and each of its names is shown by an example."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from docs.site.code_blocks import blocks
from docs.site.navigation import DOCS, pages
from docs.site.public_names import Room, rooms
from docs.site.reference_pages import Reference, reference
from docs.site.source_names import SOURCE, Definition, Function, own_definition
from tests.cases import every

EVERY = [DOCS.parent / "README.md", *pages()]
ROOMS = rooms()
PUBLIC = {f"{room.path}.{name}": one for room in ROOMS for name, one in room.names.items()}
NEEDS = {"discreet.deep": "torch"}
_IMPORT = re.compile(r"^(?:>>> )?from (discreet[\w.]*) import ([\w, ]+)", re.MULTILINE)


@cache
def _reference() -> Reference:
    return reference()


def _has_example(one: Definition) -> bool:
    return any(">>>" in text for text in _docstrings(one))


def _docstrings(one: Definition) -> Iterator[str]:
    yield one.docstring
    yield from (ast.get_docstring(node) or "" for node in _functions(one) if node is not one.node)


def _functions(one: Definition) -> list[Function]:
    body = one.node.body if isinstance(one.node, ast.ClassDef) else [one.node]
    return [node for node in body if isinstance(node, Function)]


def _typed(text: str) -> set[str]:
    lines = (line.strip() for line in text.splitlines())
    return {word for line in lines if line.startswith((">>>", "...")) for word in re.findall(r"\w+", line)}


@cache
def _shown() -> tuple[set[str], set[ast.AST | None]]:
    """The words that are typed in any example, and the classes that functions with an example return."""
    on_pages = {word for page in EVERY for block in blocks(page) if block.is_session for word in _typed(block.body)}
    in_docstrings = {word for one in PUBLIC.values() for text in _docstrings(one) for word in _typed(text)}
    returned = {
        own_definition(one.module, part.id)
        for one in PUBLIC.values()
        if _has_example(one)
        for node in _functions(one)
        for part in (ast.walk(node.returns) if node.returns else ())
        if isinstance(part, ast.Name)
    }
    return on_pages | in_docstrings, returned


def _is_shown(name: str, one: Definition) -> bool:
    words, returned = _shown()
    return _has_example(one) or one.node in returned or name.rpartition(".")[2] in words


def _missing(path: str) -> bool:
    return any(path.startswith(room) and find_spec(needed) is None for room, needed in NEEDS.items())


def _imported() -> Iterator[tuple[str, ModuleType]]:
    yield from ((room.path, import_module(room.definition.module)) for room in ROOMS if not _missing(room.path))


def test_every_name_that_python_offers_is_public() -> None:
    known = {room.path: room for room in ROOMS}
    for path, module in _imported():
        listed = set(getattr(module, "__all__", known[path].names))
        assert listed == set(known[path].names) | {inner.rpartition(".")[2] for inner in known[path].rooms}, path


def test_names_mean_what_they_mean_in_python() -> None:
    for room in ROOMS:
        if not _missing(room.path):
            module = import_module(room.definition.module)
            strange = [name for name, one in room.names.items() if not _is_of(module, name, one)]
            assert not strange, (room.path, strange)


def _is_of(module: ModuleType, name: str, one: Definition) -> bool:
    value = getattr(module, name)
    return not isinstance(one.node, ast.ClassDef | Function) or value.__module__ == one.module


def test_every_folder_that_lists_names_and_is_offered_is_there() -> None:
    offered = {f"discreet.{name}" for name in import_module("discreet").__all__}
    assert {path for path in offered if (SOURCE / path.replace(".", "/")).is_dir()} <= {room.path for room in ROOMS}


@every("room", ROOMS)
def test_every_name_has_an_entry_with_its_source(room: Room) -> None:
    page = _reference().pages[room.path]
    for name, one in room.names.items():
        assert re.search(rf"(?m)^:::+{{py:(class|exception|function|data)}} {name}\b", page), name
        module, line = _reference().places[room.path, name]
        text = one.file.read_text(encoding="utf-8").splitlines()
        assert module == one.module
        assert re.search(rf"\b{one.name}\b|^@", text[line - 1]), (name, line)


@every("name", sorted(PUBLIC))
def test_names_are_described(name: str) -> None:
    assert PUBLIC[name].docstring


@every("name", sorted(PUBLIC))
def test_names_have_an_example(name: str) -> None:
    assert _is_shown(name, PUBLIC[name]), "add an example to its docstring"


def test_what_pages_import_is_in_the_reference() -> None:
    known = {room.path for room in ROOMS} | set(PUBLIC)
    texts = [page.read_text(encoding="utf-8") for page in EVERY]
    used = {
        f"{module}.{name.split(' as ')[0].strip()}"
        for text in texts
        for module, names in _IMPORT.findall(text)
        for name in names.split(",")
    }
    assert not used - known


def test_pages_are_written_without_extras() -> None:
    assert "{py:class} Trainer(" in _reference().pages["discreet.deep"]
    assert "{py:class} Spark(" in _reference().pages["discreet.engines.spark"]


def test_a_function_with_the_name_of_its_folder_is_a_function() -> None:
    assert "{py:function} linkage(" in _reference().pages["discreet.attacks"]
