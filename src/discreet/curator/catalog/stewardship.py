"""The book behind a curator, as stewards and auditors use it: what may be spent, what was, and who may change it."""

from __future__ import annotations

from dataclasses import replace

from discreet.errors import UnknownTable
from discreet.ledger import OWNER, Account, Balance, Book, Entry, Head, Role
from discreet.privacy import Loss


class Stewardship:
    """Acts on accounts and looks into the book; none of them reads data.

    >>> from discreet.curator import Curator
    >>> from discreet.engines import Memory
    >>> from discreet.privacy import Budget
    >>> curator = Curator(engine=Memory())
    >>> curator.protect([{"age": 40}], name="visits", types={"age": "int"}, budget=Budget(epsilon=1))
    >>> print(curator.amend("visits", budget=Budget(epsilon=2), note="agreed by the board").remaining)
    epsilon=2
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._accounts: dict[str, str] = {}  # of the tables; a table never changes its account

    # ------------------------------------------------------------------------------------------------------- acts

    def amend(self, account: str, *, budget: Loss, by: str = OWNER, note: str = "") -> Balance:
        """Gives an account another budget of its currency; what was spent stays spent. A steward's act, an entry."""
        return self._book.stewardship.amend(account, budget=budget, by=by, note=note)

    def renew(self, account: str, *, budget: Loss | None = None, by: str = OWNER, note: str = "") -> Balance:
        """Starts a new period of an account with nothing spent; its lifetime spending goes on and is shown."""
        return self._book.stewardship.renew(account, budget=budget, by=by, note=note)

    def appoint(
        self, who: str, role: Role | str, *, account: str = "", cap: Loss | None = None, by: str = OWNER
    ) -> None:
        """Gives somebody a role on an account, or on the whole book, and perhaps a cap under the account's own."""
        self._book.stewardship.appoint(who, role, account=account, cap=cap, by=by)

    def allot(self, project: str, *, account: str, cap: Loss, by: str = OWNER, note: str = "") -> None:
        """Gives a project a cap on an account: questions that name the project count against both."""
        self._book.stewardship.allot(project, account=account, cap=cap, by=by, note=note)

    def allotted(self, project: str, *, account: str) -> Loss | None:
        """The cap of a project on an account; None if it has none."""
        return self._book.allotted(project, account=account)

    def capped(self, analyst: str, *, account: str) -> Loss | None:
        """The cap of an analyst on an account; None if they have none of their own."""
        return self._book.capped(analyst, account=account)

    def unlock(self, account: str, *, by: str = OWNER, note: str = "") -> None:
        """Gives an account its failure credits back, after somebody has looked why questions failed."""
        self._book.stewardship.unlock(account, by=by, note=note)

    # ------------------------------------------------------------------------------------------------------ looks

    def budget(self, name: str) -> Balance:
        """What a table's account, or the account of that name, may spend, has spent and has left.

        Raises:
            UnknownTable: if there is neither.
        """
        return self._book.balance(self._account_of(name))

    def history(self, name: str, *, analyst: str | None = None, project: str | None = None) -> tuple[Entry, ...]:
        """Every entry of a table's account, or of the account of that name; perhaps of one analyst or project only."""
        return self._book.history(self._account_of(name), analyst=analyst, project=project)

    def balance(self, account: str, *, analyst: str | None = None, project: str | None = None) -> Balance:
        """The figures of an account, or of one analyst or project on it."""
        return self._book.balance(account, analyst=analyst, project=project)

    def entries(self, account: str | None = None) -> tuple[Entry, ...]:
        """The entries of one account, or of the whole book, in order."""
        return self._book.history(account)

    def account(self, name: str) -> Account:
        """What an account was opened as; its salt, by which rows are chosen, is not told."""
        return replace(self._book.account(name), salt=b"")

    def accounts(self) -> tuple[str, ...]:
        """The names of all accounts in the book."""
        return self._book.accounts()

    def tables(self) -> dict[str, str]:
        """The account of every table in the book, whether this curator holds the table or not."""
        return self._book.tables()

    def role(self, account: str, who: str) -> Role | None:
        """The role of somebody on an account, or (account "") on the whole book."""
        return self._book.role(account, who)

    def verify(self) -> Head:
        """Walks the whole book; raises if anything was changed."""
        return self._book.verify()

    def _account_of(self, name: str) -> str:
        if name in self._accounts:
            return self._accounts[name]
        tables, accounts = self._book.tables(), self._book.accounts()
        if name not in tables and name not in accounts:
            raise UnknownTable(name, dict.fromkeys((*tables, *accounts)))
        return tables.get(name, name)
