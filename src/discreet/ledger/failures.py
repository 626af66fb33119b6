"""Whose failures count for whom: a failed question tells something that nobody paid for, so every name has credits.

A name with a role, the owner included, has `FAILURE_CREDITS` of its own on each account; all names without a role share
one set, since anybody can make them up. Whoever has used up a set charges nothing more. Once `FAILURE_CEILING` credits
of an account are used, several names may be working together: then everybody who had a failure is stopped, and nobody
else. So nobody is ever stopped who has not failed, and nobody alone stops anybody else. A steward's `unlock` gives all
credits of an account back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.errors import AccountLocked
from discreet.ledger import changes, policy
from discreet.ledger.account import FAILURE_CEILING, FAILURE_CREDITS, Standing
from discreet.ledger.store.base import Rows

SHARED = ""
"""Stands for all names without a role; nobody is called so."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed questions on an account since it was last unlocked.

    Attributes:
        counts: by name; `SHARED` for all names without a role.

    >>> used = Failures({"ana": 3, "ben": 1})
    >>> used.stopped, used.stops("ben"), Failures({"ana": 3, "ben": 3, "cid": 2, "dan": 1}).stopped
    (('ana',), False, ('ana', 'ben', 'cid', 'dan'))
    """

    counts: Mapping[str, int]

    @property
    def used(self) -> int:
        """Credits that were used up: questions that fail at once can be more than the credits of a name."""
        return sum(min(count, FAILURE_CREDITS) for count in self.counts.values())

    def stops(self, name: str) -> bool:
        """Whether a name, or `SHARED`, may charge nothing more."""
        own = self.counts.get(name, 0)
        return own >= FAILURE_CREDITS or (own > 0 and self.used >= FAILURE_CEILING)

    @property
    def stopped(self) -> tuple[str, ...]:
        """All that may charge nothing more."""
        return tuple(sorted(name for name in self.counts if self.stops(name)))


NONE = Failures({})


def credited(rows: Rows, account: str, who: str) -> str:
    """Whose credits a failure of somebody uses: their own, or `SHARED`."""
    return SHARED if policy.role(rows, account, who) is None else who


def failures(rows: Rows, account: str, now: Standing) -> Failures:
    """The failures of an account, by whose credits they use.

    Entries of earlier versions say whose question failed and not whose credit that uses; they count for the same name.
    Such an account is walked through, until a steward unlocks it.
    """
    counts = Counter(changes.credits_used(rows, account) or {})
    if counts.total() < now.failures:
        counts.update(credited(rows, account, who) for who in _earlier(rows, account))
    return Failures(dict(counts))


def require_credit(rows: Rows, account: str, who: str, now: Standing) -> None:
    """Lets pass who may still fail.

    Raises:
        AccountLocked: for everybody else.
    """
    if not now.failures:
        return
    found, name = failures(rows, account, now), credited(rows, account, who)
    if found.stops(name):
        raise AccountLocked(account, found.counts[name], analyst=who, total=found.used, shared=name == SHARED)


def _earlier(rows: Rows, account: str) -> list[str]:
    """Whose questions failed since the account was last unlocked, by entries that name no credit."""
    names: list[str] = []
    for entry in rows.entries(account=account):
        if entry.kind == "unlock":
            names.clear()
        elif entry.kind == "fail" and "credit" not in entry.content:
            names.append(entry.who)
    return names
