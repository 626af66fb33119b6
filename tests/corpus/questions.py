"""The realistic and the everyday questions: read from the files beside, each with a complete system's verdict."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as an analyst writes it.

    Attributes:
        name: of the world, a slash, and what is asked.
        sql: the text.
        plain: the text for plain SQL, where DuckDB lacks a function that we have, or gives a list for our columns.
        refused: a word of the reason, if the question is rightly refused.
        rewrite: what to ask instead of a refused one.
        compare: why the answer is not compared with plain SQL, if it is not.
    """

    name: str
    sql: str
    plain: str
    refused: str = ""
    rewrite: str = ""
    compare: str = ""

    @property
    def world(self) -> str:
        """The world that it asks about."""
        return self.name.partition("/")[0]


def _read(path: Path) -> list[Asked]:
    world = path.stem.partition("_")[0]
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Asked(name=f"{world}/{name}", **({"plain": entry["sql"]} | entry)) for name, entry in found.items()]


REALISTIC = tuple(asked for path in sorted((FOLDER / "realistic").glob("*.toml")) for asked in _read(path))
PENDING = frozenset((FOLDER / "pending.txt").read_text(encoding="utf-8").split())
"""Names of questions that do not yet get their verdict; a test fails as soon as one does, so the list only shrinks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Everyday:
    """A question as it is written daily, in words of a dialect, before anybody tried what we accept.

    Attributes:
        name: of the world, a slash, and what is asked.
        dialect: that its writer thinks in: "duckdb" or "postgres".
        sql: the text.
        truth: the same for plain DuckDB, its parameters put in; None if nobody should answer the question.
        parameters: values of `?` and `$1` in a list, of `$name` and `:name` by name.
    """

    name: str
    dialect: str
    sql: str
    truth: str | None
    parameters: Any = field(default=None)

    @property
    def world(self) -> str:
        """The world that it asks about."""
        return self.name.partition("/")[0]


def _read_everyday(path: Path) -> list[Everyday]:
    world, _, dialect = path.stem.partition("_")
    made = []
    for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
        known = None if entry.pop("refused", False) else entry.get("truth", entry["sql"])
        made.append(Everyday(name=f"{world}/{name}", dialect=dialect, **(entry | {"truth": known})))
    return made


EVERYDAY = tuple(asked for path in sorted((FOLDER / "everyday").glob("*.toml")) for asked in _read_everyday(path))
PENDING_EVERYDAY = frozenset((FOLDER / "pending_everyday.txt").read_text(encoding="utf-8").split())
"""The same for everyday questions."""
