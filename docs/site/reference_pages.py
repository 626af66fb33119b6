"""The reference: one page for each public module, with every public name, its signature, its docstring and its source.

Pages are Markdown with the directives of Sphinx for Python; nothing of the library is imported to write them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from docs.site.docstring_markdown import inline, markdown
from docs.site.public_names import Room, rooms
from docs.site.source_names import Definition, Function, bases, own_definition

FOLDER = "reference"
T = TypeVar("T", bound=ast.AST)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """All pages, and where each name on them is defined.

    Attributes:
        pages: texts by the names of their modules.
        places: for module and name, the file below src and the line.
    """

    pages: dict[str, str]
    places: dict[tuple[str, str], tuple[str, int]]


def reference() -> Reference:
    """Writes all pages."""
    writer = _Writer(rooms())
    return Reference({room.path: writer.page(room) for room in writer.rooms}, writer.places)


class _Writer:
    def __init__(self, found: list[Room]) -> None:
        self.rooms = found
        self.places: dict[tuple[str, str], tuple[str, int]] = {}
        self._home: dict[int, str] = {}  # a definition is described where it is offered first
        for room in sorted(found, key=lambda room: room.path.count(".")):
            for name, definition in room.names.items():
                self._home.setdefault(id(definition.node), f"{room.path}.{name}")
        self._names = {f"{room.path}.{name}" for room in found for name in room.names}
        self._modules = {room.path for room in found}

    def page(self, room: Room) -> str:
        """Writes the page of a module: what it is for, a table of its names, and each of them."""
        link = self._links(room.path)
        text = [f"# {room.path}", markdown(room.definition.docstring, link), f"```{{py:module}} {room.path}\n```"]
        text += ["\n".join(f"- [{path}]({path}.md)" for path in room.rooms)] if room.rooms else []
        text += [self._table(room)] if room.names else []
        text += [self._entry(room.path, name, one) for name, one in room.names.items()]
        return "\n\n".join(text) + "\n"

    def _links(self, path: str) -> _Links:
        return _Links(path, self._names)

    def _table(self, room: Room) -> str:
        rows = [
            f"| [`{n}`](#{room.path}.{n}) | {inline(_first_sentence(one.docstring))} |" for n, one in room.names.items()
        ]
        return "\n".join(["| name | what it is |", "|---|---|", *rows])

    def _entry(self, path: str, name: str, one: Definition) -> str:
        self._place(path, name, one)
        home = self._home[id(one.node)]
        kind = (
            "class" if isinstance(one.node, ast.ClassDef) else "function" if isinstance(one.node, Function) else "data"
        )
        if home != f"{path}.{name}":
            return _directive(3, kind, name, f"The same as {{py:obj}}`{home}`.")
        if isinstance(one.node, ast.ClassDef):
            return self._class(path, name, one, one.node)
        signature = _signature(self._qualified(one, one.node)) if isinstance(one.node, Function) else ""
        return _directive(3, kind, name + signature, markdown(one.docstring, self._links(path)))

    def _qualified(self, owner: Definition, node: T) -> T:
        """Returns a statement whose annotations name public classes in full: short names may have two meanings."""
        changed: T = _Annotations(owner.module, self._home).visit(copy.deepcopy(node))
        return changed

    def _class(self, path: str, name: str, one: Definition, node: ast.ClassDef) -> str:
        link = self._links(path)
        text = [self._bases(one), markdown(one.docstring, link)]
        for owner, member in _members(one, self._home):
            self._place(path, f"{name}.{member.name}", Definition(owner.module, member, "", member.name))
            note = markdown(ast.get_docstring(member) or "", link)
            kind, signature = _member(self._qualified(owner, member))
            text.append(_directive(3, kind, f"{signature}\n:no-contents-entry:", note))
        kind = "exception" if _is_exception(one) else "class"
        return _directive(4, kind, name + self._constructor(one, node), "\n\n".join(filter(None, text)))

    def _constructor(self, one: Definition, node: ast.ClassDef) -> str:
        """Returns the signature of `__init__`, of its own or of a base, or that of the fields of a dataclass."""
        for owner in [one, *bases(one)]:
            body = owner.node.body if isinstance(owner.node, ast.ClassDef) else []
            for made in body:
                if isinstance(made, Function) and made.name == "__init__":
                    return _signature(self._qualified(owner, made), method=True).removesuffix(" -> None")
            if owner is one and _dataclass(node) is not None:
                return self._fields(one, node)
        return ""

    def _fields(self, one: Definition, node: ast.ClassDef) -> str:
        found: dict[str, str] = {}
        for owner in [*reversed(bases(one)), one]:
            if isinstance(owner.node, ast.ClassDef) and _dataclass(owner.node) is not None:
                body = self._qualified(owner, owner.node).body
                found |= {name: text for name, text in map(_field, body) if name and not name.startswith("_")}
        keyword = "kw_only=True" in ast.unparse(_dataclass(node) or ast.Constant(""))
        return f"({'*, ' if keyword and found else ''}{', '.join(found.values())})"

    def _bases(self, one: Definition) -> str:
        known = [self._home[id(base.node)] for base in bases(one) if id(base.node) in self._home]
        return "Is a " + ", ".join(f"{{py:obj}}`{base}`" for base in dict.fromkeys(known)) + "." if known else ""

    def _place(self, path: str, name: str, one: Definition) -> None:
        self.places[path, name] = (one.module, one.line)


class _Annotations(ast.NodeTransformer):
    """Writes the full public name of each class that an annotation names."""

    def __init__(self, module: str, home: dict[int, str]) -> None:
        self._module, self._home = module, home

    def visit_arg(self, node: ast.arg) -> ast.arg:
        if node.annotation is not None:
            node.annotation = self._named(node.annotation)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.visit(node.args)
        node.returns = self._named(node.returns) if node.returns else None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = self._named(node.annotation)
        return node

    def _named(self, annotation: ast.expr) -> ast.expr:
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name):
                node.id = self._home.get(id(own_definition(self._module, node.id)), node.id)
        return annotation


class _Links:
    """Finds what a word in a docstring stands for: a name of the same module, or one with the path before it."""

    def __init__(self, path: str, names: set[str]) -> None:
        self._path, self._names = path, names

    def __call__(self, text: str) -> str | None:
        text = text.removesuffix("()")
        found = (f"{self._path}.{text}", text, f"discreet.{text}")
        return next((name for name in found if name in self._names), None)


def _directive(colons: int, kind: str, signature: str, text: str) -> str:
    fence = ":" * colons
    return "\n".join([f"{fence}{{py:{kind}}} {signature}", "", text, fence])


def _first_sentence(docstring: str) -> str:
    return " ".join(docstring.partition("\n\n")[0].split()).replace("|", "\\|")


def _signature(node: Function, *, method: bool = False) -> str:
    arguments = ast.arguments(**dict(ast.iter_fields(node.args)))
    decorators = {ast.unparse(one) for one in node.decorator_list}
    if method and "staticmethod" not in decorators:
        drop = "posonlyargs" if arguments.posonlyargs else "args"
        setattr(arguments, drop, getattr(arguments, drop)[1:])
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){result}"


def _member(node: Function) -> tuple[str, str]:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    if decorators & {"property", "cached_property", "functools.cached_property"}:
        kind = f": {ast.unparse(node.returns)}" if node.returns else ""
        return "property", f"{node.name}" + (f"\n:type{kind}" if kind else "")
    flags = [f"\n:{word}:" for word in ("classmethod", "staticmethod", "abstractmethod") if word in decorators]
    return "method", f"{node.name}{_signature(node, method=True)}" + "".join(flags)


def _members(one: Definition, public: dict[int, str]) -> Iterator[tuple[Definition, Function]]:
    """Yields public methods and properties: its own, and those of bases that have no entry of their own."""
    seen: set[str] = set()
    for owner in [one, *(base for base in bases(one) if id(base.node) not in public)]:
        for node in owner.node.body if isinstance(owner.node, ast.ClassDef) else ():
            if isinstance(node, Function) and _is_shown(node) and node.name not in seen:
                seen.add(node.name)
                yield owner, node


def _is_shown(node: Function) -> bool:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    hidden = {"overload"} & decorators or any(one.endswith(".setter") for one in decorators)
    return not hidden and (not node.name.startswith("_") or (node.name == "__call__" and bool(ast.get_docstring(node))))


def _dataclass(node: ast.ClassDef) -> ast.expr | None:
    return next((d for d in node.decorator_list if ast.unparse(d).split("(")[0].endswith("dataclass")), None)


def _field(statement: ast.stmt) -> tuple[str, str]:
    if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
        return "", ""
    name, kind = statement.target.id, ast.unparse(statement.annotation)
    if kind.startswith("ClassVar") or "init=False" in ast.unparse(statement.value or ast.Constant(0)):
        return "", ""
    value = statement.value
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
        given = {one.arg: one.value for one in value.keywords}
        value = given.get("default", ast.Constant(...) if "default_factory" in given else None)
    return name, f"{name}: {kind}" + (f" = {ast.unparse(value)}" if value is not None else "")


def _is_exception(one: Definition) -> bool:
    names = {base.name for base in [one, *bases(one)]}
    return bool(names & {"DiscreetError", "PrivacyWarning", "Undecided", "Error", "Warning"})
