"""Answers that somebody has just got, kept for a while so that they can be exported: what was released stays released.

Nothing is asked again for a download, and nobody gets another's answer: it is found by its caller's name and number.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import count

from discreet.service.desk import Document
from discreet.service.page.document_view import tables_of

MOST = 512
"""Answers of everybody; the oldest go first."""
MOST_OF_ONE = 16
MOST_CELLS = 200_000
MOST_LETTERS = 20 * MOST_CELLS
"""Of one answer, and of its JSON; a larger one is exported through the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A result and what was asked."""

    question: str
    document: Document

    @property
    def is_small(self) -> bool:
        """Tells whether it can be kept: neither its tables nor a model beside them are large."""
        if sum(len(table.rows) * len(table.headings) for table in tables_of(self.document)) > MOST_CELLS:
            return False
        return len(json.dumps(self.document)) <= MOST_LETTERS


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """The last answers of every caller.

    >>> kept = KeptAnswers()
    >>> number = kept.add("ana", Kept(question="SELECT 1", document={"rows": []}))
    >>> kept.find("ana", number).question, kept.find("ben", number)
    ('SELECT 1', None)
    """

    _kept: OrderedDict[tuple[str, int], Kept] = field(default_factory=OrderedDict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def add(self, who: str, answer: Kept) -> int:
        """Keeps an answer, and returns its number; 0 if it is too large to be kept."""
        if not answer.is_small:
            return 0
        number = next(self._numbers)
        self._kept[who, number] = answer
        own = [place for place in self._kept if place[0] == who]
        for place in own[:-MOST_OF_ONE]:
            del self._kept[place]
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return number

    def find(self, who: str, number: int) -> Kept | None:
        """Returns an answer of somebody's own; None for all others, and for those that have gone."""
        return self._kept.get((who, number))
