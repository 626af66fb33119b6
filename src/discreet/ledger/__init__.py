"""The durable book of accounts: charged before data are read, append-only, chained, exact.

`Book` is what the rest of the house uses. Money is counted by `tallies` (best of several filters over exact sums),
`charging` writes it, `outcomes` keeps answers for free replay, `claims` has an interrupted question run again,
`stewardship` and `policy` say who may change what, `verify` proves it afterwards, `store` is all that a database must
offer and `sqlite` offers it.
"""

from discreet.ledger.account import FAILURE_CEILING, FAILURE_CREDITS, Account, Role, Standing
from discreet.ledger.backups import restore
from discreet.ledger.balance import Balance, Remaining
from discreet.ledger.book import Book
from discreet.ledger.charges import Receipt
from discreet.ledger.entry import Entry, Head
from discreet.ledger.policy import OWNER
from discreet.ledger.store.base import Stored

__all__ = [
    "FAILURE_CEILING",
    "FAILURE_CREDITS",
    "OWNER",
    "Account",
    "Balance",
    "Book",
    "Entry",
    "Head",
    "Receipt",
    "Remaining",
    "Role",
    "Standing",
    "Stored",
    "restore",
]
