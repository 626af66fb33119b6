"""Finds definitions in the source of the library without importing it: no extra has to be installed.

A public name is often defined elsewhere than where it is offered, and sometimes a function has the name of the folder
that it comes from (`discreet.attacks.linkage`): statements of import are followed as Python follows them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Value = ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A name where it is defined.

    Attributes:
        module: the full name of the module.
        node: the statement; None for a module.
        docstring: of the name, cleaned; empty if it has none.
        name: the one it has there.
    """

    module: str
    node: ast.ClassDef | Function | Value | None
    docstring: str
    name: str

    @property
    def file(self) -> Path:
        """Returns the file that holds it."""
        return _file(self.module)

    @property
    def is_module(self) -> bool:
        """Tells whether it is a module or a package."""
        return self.node is None

    @property
    def line(self) -> int:
        """Returns the first line, decorators included."""
        if self.node is None:
            return 1
        decorators: list[ast.expr] = getattr(self.node, "decorator_list", [])
        return min([self.node.lineno, *(one.lineno for one in decorators)])


def _file(module: str) -> Path:
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def is_module(path: str) -> bool:
    """Tells whether a dotted name is a file or a folder of the source."""
    return _file(path).is_file()


@cache
def tree(module: str) -> ast.Module:
    """Returns the syntax tree of a module."""
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields statements of a module, those inside `if`, `with` and `try` included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.With | ast.Try):
            yield from _statements(statement.body)
            yield from _statements(getattr(statement, "orelse", []))


@cache
def _bindings(module: str) -> dict[str, ast.stmt]:
    """Returns the statement that gives each name of a module its value; the last one wins, as when it runs."""
    found: dict[str, ast.stmt] = {}
    for statement in _statements(tree(module).body):
        if isinstance(statement, ast.ImportFrom):
            found |= {alias.asname or alias.name: statement for alias in statement.names}
        elif isinstance(statement, ast.ClassDef | Function):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            found |= {target.id: statement for target in statement.targets if isinstance(target, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = statement
    return found


def exports(module: str) -> list[str]:
    """Returns what `__all__` of a module lists; without one, the classes and functions that a file defines itself.

    >>> exports("discreet.stream")
    ['Participation', 'RunningSum', 'SlidingWindow']
    """
    listed: list[str] | None = None
    for statement in tree(module).body:
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            listed = [*(listed or []), *ast.literal_eval(statement.value)]  # type: ignore[attr-defined]
    if listed is not None:
        return listed
    if _file(module).name == "__init__.py":
        return []  # a package without a list offers nothing by itself
    own = (ast.ClassDef, ast.FunctionDef)
    return [name for name, node in _bindings(module).items() if isinstance(node, own) and not name.startswith("_")]


def resolve(module: str, name: str) -> Definition:
    """Follows imports and assignments from a name of a module to its definition.

    Raises:
        LookupError: if there is no such name.

    >>> resolve("discreet", "Budget").module
    'discreet.privacy.budget'
    >>> resolve("discreet.attacks", "linkage").module
    'discreet.attacks.linkage.record_linkage'
    >>> resolve("discreet", "noise").is_module
    True
    """
    node = _bindings(module).get(name)
    if isinstance(node, ast.ImportFrom):
        there = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
        if (node.module, there) != (module, name):
            return resolve(node.module or "", there)
        node = None  # from discreet import noise, inside discreet: the folder
    if isinstance(node, ast.ClassDef | Function):
        return Definition(module, node, ast.get_docstring(node) or "", name)
    if isinstance(node, Value):
        return _assigned(module, name, node)
    if is_module(f"{module}.{name}"):
        return module_definition(f"{module}.{name}")
    raise LookupError(f"{module} has no {name}")


def module_definition(module: str) -> Definition:
    """Returns a module as a definition."""
    return Definition(module, None, ast.get_docstring(tree(module)) or "", module.rpartition(".")[2])


def _assigned(module: str, name: str, node: Value) -> Definition:
    """Returns an assigned name; another name for a function, or a decorated one, is documented as that function."""
    value = node.value
    note = _note_after(module, node)
    if isinstance(value, ast.Call) and value.args and isinstance(value.func, ast.Call):
        value = value.args[-1]  # refit = beside(_compare)(_refit)
    if not note and isinstance(value, ast.Name) and value.id in _bindings(module):
        return resolve(module, value.id)
    return Definition(module, node, note, name)


def _note_after(module: str, node: Value) -> str:
    """Returns the string below an assignment, which describes it."""
    body = list(_statements(tree(module).body))
    after = body[body.index(node) + 1 :][:1]
    match after:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return text.strip()
    return ""


def own_definition(module: str, name: str) -> ast.AST | None:
    """Returns the statement that defines what a name means in a module, if the library defines it."""
    if name not in _bindings(module) or not _of_ours(module, name):
        return None
    return resolve(module, name).node


def bases(found: Definition) -> list[Definition]:
    """Returns the base classes that the library defines itself, nearest first."""
    if not isinstance(found.node, ast.ClassDef):
        return []
    names = [base.value if isinstance(base, ast.Subscript) else base for base in found.node.bases]
    known = [name.id for name in names if isinstance(name, ast.Name) and name.id in _bindings(found.module)]
    own = [resolve(found.module, name) for name in known if _of_ours(found.module, name)]
    return [base for direct in own for base in (direct, *bases(direct))]


def _of_ours(module: str, name: str) -> bool:
    node = _bindings(module)[name]
    return not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] == "discreet"
