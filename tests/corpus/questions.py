"""The realistic questions: read from the files beside, each with the verdict that a complete system gives."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

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
