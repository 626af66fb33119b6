"""Plain words: what people read says one word for one thing, and names in code say what they are.

Texts are the strings with a space in them that are no docstrings, the text of the pages' templates, and the prose of
the documentation. What users type or have stored keeps its words.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.syntax import SOURCE, nodes

ROOT = Path(__file__).parent.parent

NEVER = {
    "anybody": "anyone",
    "beside": "next to, with, in addition to",
    "book": "ledger",
    "books": "ledgers",
    "by itself": "alone, on its own",
    "desk": "executor",
    "everybody": "everyone, all people",
    "if it has one": "optional",
    "in earnest": "in production",
    "lane": "queue",
    "lets go of": "releases, closes",
    "made-up": "synthetic, example",
    "nobody": "no one, no person",
    "nursery": "fork server",
    "of which": "a sentence of its own",
    "offices": "services",
    "pane": "group",
    "somebody": "a person, a caller",
    "stands": "is",
    "tells": "says, returns",
    "the usual one": "the default",
    "told": "said, returned",
    "what is left": "remaining",
    "whoever": "the person who, the caller",
    "worn": "used",
}
"""Words that readers stumble over, each with what is said instead."""

LONGEST_SENTENCE = 30
SHORTEST_DOCSTRING = 4

PARTICIPLES = (
    "asked begun bent bought broken brought built caught chosen dealt done drawn driven eaten fallen fed fled "
    "flown forbidden forgotten found frozen given gone ground grown heard held hidden kept known laid led left "
    "lent lost made meant met overwritten paid proven rebuilt redone rewritten risen said seen sent settled "
    "shone shot shown slid sold sought spent spoken spread stolen stood struck stuck sung sunk sworn swept "
    "taken taught thought thrown told torn undone unread unseen unset upheld understood withdrawn withheld won "
    "worn wound woven written"
)
"""Irregular ones, but for those that are verbs, too."""

NO_PARTICIPLES = "embed exceed feed need proceed seed"
"""Words that end like one."""

MOST_PARTICIPLES = 60

SHARED_CLASSES = {
    "DiscreteGaussian": "a mechanism and its event",
    "DiscreteLaplace": "a mechanism and its event",
    "Gaussian": "a mechanism and its event",
    "InternalError": "ours, and the one that PEP 249 asks for",
    "Laplace": "a mechanism and its event",
    "RandomizedResponse": "a mechanism, its event, and the local oracle",
}
"""Names that users know by two packages, each with what it stands for there."""

_WORDS = re.compile(rf"(?<![\w{{.-])({'|'.join(sorted(NEVER, key=len, reverse=True))})(?![\w}}(=-])", re.IGNORECASE)
_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*(?:[-*]|\d+\.) |\|")
_NO_PROSE = re.compile(r"SELECT|CASE WHEN|CREATE TABLE|^#? ?\w+ = ", re.MULTILINE)
"""SQL and TOML."""
_CODE = re.compile(r"```.*?^\s*```|`[^`]*`|<!--.*?-->|\]\([^)]*\)|\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL | re.MULTILINE)
_MARKUP = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<(script|style|svg)\b.*?</\1>|<[^>]*>", re.DOTALL)

Text = tuple[str, str]
"""Where a text is, and the text."""


@cache
def strings() -> tuple[Text, ...]:
    """The strings that people may read: not docstrings, and more than one word."""
    found = []
    for path, all_nodes in nodes().items():
        apart = {id(node.value) for node in all_nodes if isinstance(node, ast.Expr)}
        for node in all_nodes:
            text = node.value if isinstance(node, ast.Constant) and id(node) not in apart else None
            if isinstance(text, str) and " " in text.strip():
                found.append((f"{path.as_posix()}:{getattr(node, 'lineno', 1)}", text))
    return tuple(found)


@cache
def pages() -> tuple[Text, ...]:
    """The prose of the documentation."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    written = [path for path in sorted(files) if path.name != "CHANGELOG.md"]  # of old versions, in their words
    return tuple((path.relative_to(ROOT).as_posix(), _CODE.sub("", path.read_text("utf-8"))) for path in written)


@cache
def templates() -> tuple[Text, ...]:
    """The texts of pages that are made from templates."""
    files = sorted(SOURCE.rglob("*.html"))
    return tuple((path.relative_to(SOURCE).as_posix(), _MARKUP.sub("\n\n", path.read_text("utf-8"))) for path in files)


@pytest.fixture(scope="module", autouse=True)
def _texts() -> None:
    """Reads and parses all files before the first test, whose own time is measured."""
    strings(), pages(), templates(), definitions()


def forbidden(texts: tuple[Text, ...]) -> list[str]:
    """The words of `NEVER` in texts, with their places."""
    return [
        f"{place}: {found.group(1)!r} ({NEVER[found.group(1).lower()]}): {text[max(0, found.start() - 60) :][:120]!r}"
        for place, text in texts
        for found in _WORDS.finditer(text)
    ]


def too_long(texts: tuple[Text, ...]) -> list[str]:
    """The sentences of more than 30 words, with their places."""
    return [
        f"{place}: {len(words)} words: {sentence.strip()[:100]!r}"
        for place, text in texts
        if place.endswith(".md") or not _NO_PROSE.search(text)
        for sentence in _END.split(text)
        if place.endswith(".md") or re.search(r"[a-z][.!?:;]", text)  # and no list of names
        if len(words := [word for word in sentence.split() if re.search(r"\w", word)]) > LONGEST_SENTENCE
    ]


def test_messages_use_plain_words() -> None:
    assert forbidden(strings()) == []


def test_pages_use_plain_words() -> None:
    assert forbidden(templates()) == []


def test_the_documentation_uses_plain_words() -> None:
    assert forbidden(pages()) == []


def test_sentences_of_messages_are_short() -> None:
    assert too_long(strings()) == []


def test_sentences_of_the_documentation_are_short() -> None:
    assert too_long(pages()) == []


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def definitions() -> tuple[tuple[Path, Definition], ...]:
    """All classes and functions, with the files that they are in."""
    return tuple((path, node) for path, found in nodes().items() for node in found if isinstance(node, Definition))


def test_docstrings_say_something() -> None:
    short = [
        f"{path.as_posix()}:{node.lineno} {text!r}"
        for path, node in definitions()
        if (text := ast.get_docstring(node, clean=False)) is not None and len(text.split()) < SHORTEST_DOCSTRING
    ]
    assert short == []


def is_bare_participle(name: str) -> bool:
    """Whether a name is one participle and says neither what is done nor what it is.

    >>> [is_bare_participle(name) for name in ("_told", "listed", "write_row", "read", "seed")]
    [True, True, False, False, False]
    """
    word = name.strip("_")
    regular = len(word) > 3 and word.endswith("ed") and "_" not in word and word not in NO_PARTICIPLES.split()
    return regular or word in PARTICIPLES.split()


def test_functions_are_verbs_or_nouns() -> None:
    bare = [
        f"{path.as_posix()}:{node.lineno} {node.name}"
        for path, node in definitions()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_bare_participle(node.name)
    ]
    assert len(bare) <= MOST_PARTICIPLES, bare


def test_no_package_exports_a_bare_participle() -> None:
    exported = [
        f"{path.as_posix()}: {constant.value!r}"
        for path, all_nodes in nodes().items()
        if path.name == "__init__.py"
        for node in all_nodes
        if isinstance(node, ast.Assign | ast.AugAssign) and "__all__" in ast.unparse(node).split("=")[0]
        for constant in ast.walk(node.value)
        if isinstance(constant, ast.Constant)
        and str(constant.value).islower()
        and is_bare_participle(str(constant.value))
    ]
    assert exported == []


def test_a_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for path, node in definitions():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            places[node.name].append(f"{path.as_posix()}:{node.lineno}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in SHARED_CLASSES} == {}
    assert twice.keys() == SHARED_CLASSES.keys()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Nobody tells what is left.", ["Nobody", "tells", "what is left"]),
        ("It is booked at the bookshop, and {book} stays.", []),
        ("A made-up row stands beside it.", ["made-up", "stands", "beside"]),
    ],
)
def test_the_check_finds_words(text: str, words: list[str]) -> None:
    assert [found.group(1) for found in _WORDS.finditer(text)] == words
    assert len(forbidden((("here", text),))) == len(words)


def test_the_check_counts_words_of_sentences() -> None:
    assert too_long((("here", "word " * LONGEST_SENTENCE + ". " + "word " * LONGEST_SENTENCE),)) == []
    assert len(too_long((("here", "word " * (LONGEST_SENTENCE + 1) + "word."),))) == 1
