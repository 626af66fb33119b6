"""All hostile questions."""

from __future__ import annotations

from tests.corpus.hostile import money, people, statements, texts, values
from tests.corpus.hostile.case import Case

HOSTILE: tuple[Case, ...] = (*statements.CASES, *people.CASES, *values.CASES, *texts.CASES, *money.CASES)
