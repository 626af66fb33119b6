"""Who asks: the name and the project that are charged, the idempotency key of one call, and who hears of its stages."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.ledger.policy import OWNER
from discreet.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Says for whom something is done; what is done is a request of its own, which does not depend on it.

    Args:
        analyst: who asks, and pays from their cap.
        project: whose cap a charge counts against, beside the analyst's and the account's; empty for none.
        key: an idempotency key of the analyst's own; the same key with another request is refused.
        progress: is called with the name of every stage that begins.

    >>> Caller(analyst="ana", key="first")
    Caller(analyst='ana', project='', key='first')
    """

    analyst: str = OWNER
    project: str = ""
    key: str | None = None
    progress: Progress | None = None

    def __repr__(self) -> str:
        """Leaves out who listens, which says nothing about who is charged."""
        return f"Caller(analyst={self.analyst!r}, project={self.project!r}, key={self.key!r})"
