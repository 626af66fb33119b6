"""Every refusal that the sources can raise, found by walking their syntax: its reason and its hint as patterns.

A text that is put together is a pattern with a gap; a name is looked up where it is assigned, a function where it
returns. A hint that another part made (`refusal.hint`) is found where it was made, and is in `PASSED_ON` here.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import discreet
from discreet.hint_text import Hint

SOURCES = Path(discreet.__file__).parent
GAP = "\x01"
"""A part of a text that is known only when the refusal is raised."""

_CALLS = {"refuse", "_refuse", "UnsupportedQuery", "Refusal", "Mismatch", "PatternError"}
_PAIRS = {"no_target", "not_of_rows"}
"""Properties that return a reason and a hint."""

_EXAMPLE = re.compile(r"\\\{[a-z_]+\\\}")
_PROPOSED = r"`[^`]*` \(a different question\)"

PASSED_ON = {
    ("plan/expressions/pattern_grammar.py", "hint"),
    ("sql/catalog_queries.py", "node"),
    ("sql/catalog_queries.py", "tree"),
    ("sql/clauses/from_clause.py", "mismatch.hint"),
    ("sql/clauses/outer_select.py", "near(node, self.released, self.source)"),
    ("sql/clauses/outer_select.py", "near(part, names, scope.source)"),
    ("sql/clauses/union_clause.py", "mismatch.hint"),
    ("sql/functions/grammar.py", "mismatch.hint"),
    ("sql/functions/grammar.py", "refusal.hint"),
    ("sql/functions/recorded_functions.py", "mismatch.hint"),
    ("sql/refusals.py", "fill_examples(hint, self.examples)"),
    ("sql/scope.py", "hint"),
    ("sql/select.py", "refusal.hint"),
    ("sql/sql_tokens.py", "refusal.hint"),
    ("sql/training_rows.py", "hint"),
    ("sql/training_rows.py", "reason"),
    ("sql/training_rows.py", "proposed"),
    ("service/wire/catalog/catalog_executor.py", "reply['hint']"),
}
"""Calls whose hints are made elsewhere, by file and by what they pass."""


@dataclass(frozen=True, slots=True)
class HintText:
    """One hint that a place of the sources can give."""

    file: str
    line: int
    reasons: tuple[str, ...]
    hint: str

    def is_of(self, reason: str, hint: str) -> bool:
        """Whether a refusal that was raised is this one."""
        return _matches(self.hint, hint) and any(_matches(text, reason) for text in self.reasons)

    @property
    def shown(self) -> str:
        return f"{self.file}:{self.line} {' / '.join(self.reasons)} -> {self.hint}".replace(GAP, "...")


def _matches(pattern: str, text: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


@cache
def _pattern(text: str) -> re.Pattern[str]:
    gaps = _EXAMPLE.sub(lambda _: _PROPOSED, re.escape(text.replace("{word}", GAP))).replace(re.escape(GAP), ".*")
    return re.compile(gaps, re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A call whose hint is not a text that can be found."""

    file: str
    passed: str


def all_hints(*folders: str) -> tuple[list[HintText], set[Unresolved]]:
    """The hints of some folders of the sources, and the calls that pass on what they were given."""
    hints: list[HintText] = []
    passed: set[Unresolved] = set()
    for path in sorted(SOURCES.rglob("*.py")):
        file = path.relative_to(SOURCES).as_posix()
        if file.startswith(folders):
            module = _Module(file, ast.parse(path.read_text(encoding="utf-8")))
            hints += map(_as_raised, module.hints())
            passed |= module.passed
    return hints, passed


def _as_raised(found: HintText) -> HintText:
    """A pattern's own hint as `sql.functions.regular_expressions` raises it, with a place and an example."""
    if found.file != "plan/expressions/pattern_grammar.py":
        return found
    reasons = tuple(reason.removesuffix(".") + GAP for reason in found.reasons)
    return replace(found, reasons=reasons, hint=f"{found.hint} For example {{pattern}}.")


class _Module:
    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file, self.tree = file, tree
        self.passed: set[Unresolved] = set()
        self._functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}

    def hints(self) -> Iterator[HintText]:
        for function, call in self._calls(self.tree, self.tree):
            reasons, hints = (self._texts(argument, function, call.lineno) for argument in call.args[:2])
            found = [hint for hint in hints if hint.strip(GAP)]
            if not found:
                self.passed.add(Unresolved(self.file, ast.unparse(call.args[1])))
            yield from (HintText(self.file, call.lineno, tuple(reasons), hint) for hint in found)
        yield from self._advice()
        for function in self._functions.values():
            yield from self._pairs(function) if function.name in _PAIRS else ()

    def _advice(self) -> Iterator[HintText]:
        """What records of functions advise where types do not fit (`calls._misfit`)."""
        for call in ast.walk(self.tree):
            if isinstance(call, ast.Call) and _name(call.func) == "Function":
                given = [word.value for word in call.keywords if word.arg == "advice"]
                for text in (text for value in given for text in self._texts(value, self.tree)):
                    yield HintText(self.file, call.lineno, (f"{GAP} does not take {GAP}.",), text)

    def _pairs(self, function: ast.FunctionDef) -> Iterator[HintText]:
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                reasons, hints = (self._texts(part, function) for part in node.value.elts)
                yield from (HintText(self.file, node.lineno, tuple(reasons), hint) for hint in hints)

    def _calls(self, node: ast.AST, function: ast.AST) -> Iterator[tuple[ast.AST, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            yield from self._calls(child, child if isinstance(child, ast.FunctionDef) else function)
            if isinstance(child, ast.Call) and _has_texts(child):
                yield function, child

    def _texts(self, node: ast.expr | None, function: ast.AST, line: int = 10**9, depth: int = 6) -> list[str]:  # noqa: C901, PLR0911 - a case for each kind of expression
        """All texts that an expression can be, with gaps."""
        if not depth:
            return [GAP]
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return self._joined(parts, function, line, depth - 1)
            case ast.FormattedValue(value=value):
                return self._texts(value, function, line, depth - 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([left, right], function, line, depth - 1)
            case ast.IfExp(body=one, orelse=other):
                return [*self._texts(one, function, line, depth - 1), *self._texts(other, function, line, depth - 1)]
            case ast.Name(id=name):
                return self._assigned(name, function, line, depth - 1)
            case ast.Call(func=ast.Name(id="Hint"), args=[template]):  # as Python spells it
                return [str(Hint(text)) for text in self._texts(template, function, line, depth - 1)]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=table), attr="get"), args=[_, default]):
                return [
                    *self._assigned(table, function, line, depth - 1),
                    *self._texts(default, function, line, depth - 1),
                ]
            case ast.Dict(values=values) | ast.BoolOp(op=ast.Or(), values=values):
                return [text for value in values for text in self._texts(value, function, line, depth - 1)]
            case ast.Call(func=called) if (made := self._functions.get(_name(called))) is not None:
                returned = [n.value for n in ast.walk(made) if isinstance(n, ast.Return)]
                return [text for value in returned for text in self._texts(value, made, depth=depth - 1)] or [GAP]
        return [GAP]

    def _joined(self, parts: Sequence[ast.expr], function: ast.AST, line: int, depth: int) -> list[str]:
        each = [self._texts(part, function, line, depth) for part in parts]
        return ["".join(texts) for texts in itertools.product(*each)]

    def _assigned(self, name: str, function: ast.AST, line: int, depth: int) -> list[str]:
        scopes = [function] if function is self.tree else [function, self.tree]
        for scope in scopes:
            whole = scope is not self.tree
            nodes = ast.walk(scope) if whole else iter(self.tree.body)
            values = [value for node in nodes for value in _values(node, name) if value.lineno <= line or not whole]
            if values:
                texts = [text for value in values for text in self._texts(value, function, line, depth)]
                return list(dict.fromkeys(texts))
        return [GAP]


def _values(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a statement assigns to a name."""
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            yield value
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
            yield value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = zip(targets, values, strict=True)
            yield from (value for target, value in pairs if isinstance(target, ast.Name) and target.id == name)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _has_texts(call: ast.Call) -> bool:
    """Whether it takes a reason and a hint; `_refuse(source, refusal, token)` has no texts of its own."""
    if _name(call.func) not in _CALLS or len(call.args) < 2 or isinstance(call.args[0], ast.Starred):
        return False
    return not (isinstance(call.args[0], ast.Name) and call.args[0].id == "source")
