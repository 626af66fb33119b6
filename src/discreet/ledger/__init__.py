"""The durable ledger: charged before data are read, append-only, chained, exact.

`Ledger` is what the rest of the house uses, and `Stewardship` on it is for those who may change accounts. Money is
counted by `tallies` (best of several filters over exact sums), `charges` writes it, `outcomes` keeps answers for free
replay and has an interrupted question run again, `policy` says who may do what, `journal` verifies it afterwards,
`store` is all that a database must offer; SQLite and PostgreSQL offer it.
"""

import warnings
from typing import Any

from discreet.ledger.account import FAILURE_CEILING, FAILURE_CREDITS, Account, AccountState, Balance, Role
from discreet.ledger.anchor.anchor_actions import accept_missing_anchor, join_anchor
from discreet.ledger.anchor.anchored_ledger import (
    AnchoredLedger,
    is_anchored,
    open_ledger,
    require_never_there,
    require_there,
)
from discreet.ledger.anchor.recovery import RestoreReport, restore, restore_anchored, restore_by_head
from discreet.ledger.charges import Receipt
from discreet.ledger.entry import Entry, Head
from discreet.ledger.ledger import Ledger
from discreet.ledger.policy import OWNER, Caller
from discreet.ledger.standings import Appointment, LedgerEntries, Share, Standing
from discreet.ledger.store.ledger_store import StoredAnswer, StoredHeader
from discreet.ledger.store.place import is_there
from discreet.ledger.tallies import RemainingBudget

__all__ = [
    "FAILURE_CEILING",
    "FAILURE_CREDITS",
    "OWNER",
    "Account",
    "AccountState",
    "Balance",
    "Entry",
    "Head",
    "Ledger",
]
__all__ += [
    "Appointment",
    "Caller",
    "LedgerEntries",
    "Receipt",
    "RemainingBudget",
    "Role",
    "Share",
    "Standing",
    "StoredAnswer",
    "StoredHeader",
]
__all__ += [
    "AnchoredLedger",
    "RestoreReport",
    "accept_missing_anchor",
    "is_anchored",
    "is_there",
    "join_anchor",
    "open_ledger",
]
__all__ += ["require_never_there", "require_there", "restore", "restore_anchored", "restore_by_head"]

_RENAMED = {"AnchoredBook": "AnchoredLedger", "Book": "Ledger", "open_book": "open_ledger"}


def __getattr__(name: str) -> Any:
    """Returns what had another name in version 0.2, with a warning.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     from discreet.ledger import Book
    >>> Book is Ledger, str(caught[0].message)
    (True, 'discreet.ledger.Book is now Ledger. The old name works until version 0.4.')
    """
    new = _RENAMED.get(name)
    if new is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    text = f"discreet.ledger.{name} is now {new}. The old name works until version 0.4."
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return globals()[new]
