"""The audit's comparison of neighbours as an assertion."""

from __future__ import annotations

from discreet.audit.queries import verdicts
from discreet.audit.queries.recorder import AuditedQuery, QueryRecord
from discreet.curator import Answer


class Pair(verdicts.CuratorPair):
    """Two curators of neighbouring tables."""

    def judge(self, question: AuditedQuery) -> QueryRecord:
        """Asks both, and compares.

        Raises:
            AssertionError: if anything differs that no noise covers, or noise covers less than was charged.
        """
        found = self.compare(question)
        assert not found.violations, "\n".join(map(str, found.violations))
        return found.seen


def same_answers(one: Answer, other: Answer) -> None:
    """Equal in everything that an analyst sees, given that the same noise came out."""
    assert list(verdicts.same_answers(one, other)) == []
