from __future__ import annotations

from typing import Any

from discreet.ledger import Book
from discreet.service.caller import Permission


class FakeActs:
    def __init__(self, book: Book) -> None:
        self.book = book

    def budgets(self, caller: Any) -> Any:
        return {name: self.book.balance(name) for name in self.book.accounts()}

    def own_budgets(self, caller: Any) -> Any:
        return {name: self.book.balance(name, analyst=caller.name) for name in self.book.accounts()}

    def budget(self, caller: Any, account: str, **who: Any) -> Any:
        return self.book.balance(account, **who)

    def account(self, caller: Any, name: str) -> Any:
        return self.book.account(name)

    def history(self, caller: Any, account: Any = None, analyst: Any = None, after: int = 0, limit: Any = None) -> Any:
        return self.book.history(account, analyst=analyst, after=after, limit=limit)

    def recent(self, caller: Any, account: Any = None, analyst: Any = None, before: Any = None, limit: int = 50) -> Any:
        who = analyst if caller.may(Permission.SEE_ALL) else caller.name
        every = [e for e in self.book.history(account, analyst=who) if before is None or e.sequence < before]
        return every[::-1][:limit]

    def verify(self, caller: Any) -> Any:
        return self.book.verify()

    def anchor(self, caller: Any) -> Any:
        return self.book.head()

    def certificate(self, caller: Any, sequence: int) -> Any:
        (entry,) = self.book.history(after=sequence - 1, limit=1)
        return {"entry": entry._asdict(), "head": str(self.book.head())}

    def amend(self, caller: Any, account: str, **more: Any) -> Any:
        return self.book.stewardship.amend(account, by=caller.name, **more)

    def renew(self, caller: Any, account: str, **more: Any) -> Any:
        return self.book.stewardship.renew(account, by=caller.name, **more)

    def unlock(self, caller: Any, account: str, **more: Any) -> Any:
        return self.book.stewardship.unlock(account, by=caller.name, **more)

    def appoint(self, caller: Any, who: str, role: str, **more: Any) -> Any:
        return self.book.stewardship.appoint(who, role, by=caller.name, **more)

    def allot(self, caller: Any, project: str, **more: Any) -> Any:
        return self.book.stewardship.allot(project, by=caller.name, **more)
