"""What readers of a ledger see: the figures of an account, and of each person and project on it, and its entries."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.ledger import changes, policy
from discreet.ledger.account import Balance, Role, describe_share
from discreet.ledger.caps.teams import find_team
from discreet.ledger.cost import Cost
from discreet.ledger.entry import Entry
from discreet.ledger.store.ledger_store import Transaction
from discreet.privacy import Loss
from discreet.report.display import Display, DisplayMixin

_HEADINGS = ("sequence", "time", "who", "account", "what", "cost")  # of entries as a table
_MOST_ROWS = 500
_SCOPES = "member", "project", "team"  # of states that belong to a person, project or team on an account


@dataclass(frozen=True, slots=True, kw_only=True)
class Appointment:
    """A person's role, or a project's cap.

    Attributes:
        name: whose it is.
        role: the person's on the account, or on the whole ledger; None for a project, and for names without one.
        cap: what they may spend of the account at most; None if only the account's budget limits them.

    >>> from discreet import Curator
    >>> curator = Curator(":memory:")
    >>> curator.appoint("ben", "auditor")
    Appointment(name='ben', role=<Role.AUDITOR: 'auditor'>, cap=None)
    """

    name: str
    role: Role | None
    cap: Loss | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(Appointment):
    """A person's, or a project's, part of an account.

    Attributes:
        balance: what they have spent, and what the cap leaves.
        spendable: the largest epsilon of a pure question that both the cap and the account leave.

    >>> from discreet.ledger import Ledger
    >>> from discreet.privacy import Budget, Unit, events
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient"), budget=Budget(epsilon=1))
    >>> ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon=0.5))
    >>> _ = ledger.charge("patients", events.Pure(0.2), analyst="ana")
    >>> (share,) = ledger.standing("patients").people
    >>> print(share.name, share.cap, share.balance.spent, share.spendable)
    ana epsilon=0.5 epsilon=0.2 3/10
    """

    balance: Balance
    spendable: Fraction

    @property
    def figures(self) -> tuple[str, str, str]:
        """The cap, the amount spent and the amount remaining, in words; without a cap only the account limits."""
        if self.cap is None:
            return "none", describe_share(self.balance.spent_share), "as the account"
        return str(self.cap), describe_share(self.balance.spent_share), str(self.balance.remaining)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Balance):
    """The figures of an account, and of every person and project on it.

    Attributes:
        account: its name.
        listed: whether only people who were appointed may ask.
        people: all who asked or were appointed, by name.
        projects: all that were allotted something, by name.
        teams: all that have a cap, by name.

    >>> from discreet.ledger import Ledger
    >>> from discreet.privacy import Budget, Unit
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient", "id"), budget=Budget(epsilon=1))
    >>> standing = ledger.standing("patients")
    >>> type(standing).__name__, str(standing.total)
    ('Standing', 'epsilon=1')
    """

    account: str
    listed: bool = False
    people: tuple[Share, ...] = ()
    projects: tuple[Share, ...] = ()
    teams: tuple[Share, ...] = ()

    __repr__ = Balance.__repr__

    @property
    def lines(self) -> list[tuple[str, str, str, str, str]]:
        """A line for each person, project and team: name, role, cap, spent, remaining."""
        people = [(one.name, "no role" if one.role is None else one.role.value, *one.figures) for one in self.people]
        return people + [
            (one.name, kind, *one.figures)
            for kind, shares in (("project", self.projects), ("team", self.teams))
            for one in shares
        ]

    def _display(self) -> Display:
        facts = list(self.facts.items())
        shares = [
            f"{name} ({role}): cap {cap}; spent {spent}; remaining {left}"
            for name, role, cap, spent, left in self.lines
        ]
        return Display(columns=("", ""), rows=facts, notes=shares)


def spenders(rows: Transaction, account: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Returns the names of all who asked or were appointed on an account, of its projects and of its teams."""
    found = [(scope, *place.split("\n", 1)) for scope, place, _ in rows.states() if "\n" in place]
    people, projects, teams = (
        tuple(who for kind, at, who in found if (kind, at) == (scope, account)) for scope in _SCOPES
    )
    return people, projects, teams


def standing(rows: Transaction, account: str) -> Standing:
    """Returns the figures of an account, and of every person and project on it.

    Raises:
        InvalidParameter: if there is none of that name.
    """
    now, whole = policy.present_account(rows, account), policy.balance(rows, account)
    people, projects, teams = spenders(rows, account)
    fields = {field.name: getattr(whole, field.name) for field in dataclasses.fields(Balance)}
    return Standing(
        **fields,
        account=account,
        listed=now.listed,
        people=tuple(_person(rows, account, who, whole) for who in people),
        projects=tuple(_project(rows, account, name, whole) for name in projects),
        teams=tuple(_team(rows, account, name, whole) for name in teams),
    )


def _person(rows: Transaction, account: str, who: str, whole: Balance) -> Share:
    cap = changes.member(rows, account, who, policy.require_account(rows, account)).cap
    own = policy.balance(rows, account, analyst=who)
    return _share(who, policy.role(rows, account, who), cap, own, whole)


def _project(rows: Transaction, account: str, name: str, whole: Balance) -> Share:
    known = changes.project(rows, account, name, policy.require_account(rows, account))
    own = policy.balance(rows, account, project=name)
    return _share(name, None, None if known is None else known.cap, own, whole)


def _team(rows: Transaction, account: str, name: str, whole: Balance) -> Share:
    known = find_team(rows, account, name, policy.require_account(rows, account))
    own = policy.balance(rows, account, team=name)
    return _share(name, None, None if known is None else known.cap, own, whole)


def _share(name: str, role: Role | None, cap: Loss | None, own: Balance, whole: Balance) -> Share:
    left = whole.remaining.epsilon if cap is None else min(own.remaining.epsilon, whole.remaining.epsilon)
    return Share(name=name, role=role, cap=cap, balance=own, spendable=left)


class LedgerEntries(DisplayMixin, tuple[Entry, ...]):
    """Entries in order of their sequence: a tuple that prints as a table of the newest ones.

    >>> from discreet.ledger import Ledger
    >>> from discreet.privacy import Budget, Unit, events
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("a", unit=Unit("person"), budget=Budget(epsilon=1))
    >>> _ = ledger.charge("a", events.Pure("0.1"), question="{}", sql="SELECT COUNT(*) AS n FROM visits", asked="1/10")
    >>> found = LedgerEntries(ledger.history())
    >>> found, [row[4:] for row in found._display().rows]
    (LedgerEntries(2), [('open', ''), ('charge SELECT COUNT(*) AS n FROM visits', 'epsilon=0.1, 10 %')])
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"LedgerEntries({len(self)})"

    def _display(self) -> Display:
        left_out = len(self) - _MOST_ROWS
        notes = (f"The newest {_MOST_ROWS} of {len(self):,} entries are shown.",) if left_out > 0 else ()
        rows = [_row(entry) for entry in self[-_MOST_ROWS:]]
        return Display(columns=_HEADINGS, rows=rows, numbers=_HEADINGS[:1], notes=notes)


def _row(entry: Entry) -> tuple[object, ...]:
    content = entry.content
    said = content.get("sql") or content.get("note") or (f"of entry {entry.about}" if entry.about else "")
    cost = Cost.read(content).brief if content.get("cost") else ""
    moment = entry.time[:19].replace("T", " ")
    return entry.sequence, moment, entry.who, entry.account, " ".join(f"{entry.kind} {said}".split()), cost
