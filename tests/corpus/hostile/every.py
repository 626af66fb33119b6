"""All hostile questions."""

from __future__ import annotations

from tests.corpus.hostile import aggregates, money, people, statements, texts, values
from tests.corpus.hostile.case import Case

HOSTILE: tuple[Case, ...] = tuple(
    case for group in (statements, people, values, aggregates, texts, money) for case in group.CASES
)
