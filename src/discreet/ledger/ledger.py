"""The ledger: who is protected, what may be spent, what was spent on which question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Self

from discreet.errors import AccountLocked, DiscreetError, InsufficientBudget, LedgerError, UnsupportedEvent
from discreet.ledger import changes, charges, outcomes, policy, standings
from discreet.ledger.account import Account, AccountState, Balance, Role
from discreet.ledger.acts.cap_actions import CapActions
from discreet.ledger.acts.table_versions import TableVersions
from discreet.ledger.caps import period_budgets
from discreet.ledger.charges import Receipt
from discreet.ledger.entry import Entry, Head
from discreet.ledger.journal import DeclaredTable, Journal
from discreet.ledger.serialization import name, text
from discreet.ledger.stewardship import Stewardship, TableRecord, tables
from discreet.ledger.store import place
from discreet.ledger.store.ledger_store import AnswerPlace, Store, StoredAnswer, StoredHeader
from discreet.ledger.store.sqlite import MEMORY
from discreet.privacy import AnyBudget
from discreet.privacy.events import Event


class Ledger:
    """A durable, append-only, hash-chained ledger, in one SQLite file or in a PostgreSQL database.

    Args:
        path: the file, made with mode 0600 if there is none; ":memory:" for play; an address that begins with
            "postgresql://" for a ledger that several machines share; or a store that is open already.
        timeout: seconds to wait for others who write.
        read_only: refuses every write and creates nothing.
        anchor: a head exported earlier; a ledger that does not contain it is frozen.

    Attributes:
        stewardship: the acts of stewards: accounts are opened, amended and renewed there.
        caps: their acts on teams and on amounts that are set aside.
        versions: their acts on the versions of tables.
        path: the file, or the address.
        in_memory: whether it dies with the process.

    Raises:
        LedgerError: if the file or the database cannot be used, or `AnchoredLedger` must open it.

    Formal guarantee: if data are read only for receipts of `charge` that are not `repeated`, and for those of `claim`,
    and nothing is shown that was not stored for its charge, then everything that was released from an account between
    two renewals satisfies the account's budget, for its unit and its relation, although every question may depend on
    all answers before it (`ledger.tallies`, `ledger.outcomes`). A receipt is returned after the charge is durable.
    Nothing is ever given back.

    >>> from discreet.privacy import Budget, Unit, events
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient", "patient_id"), budget=Budget(epsilon=1))
    >>> receipt = ledger.charge("patients", events.Pure(0.4), analyst="ana", question='{"count":"visits"}')
    >>> print(receipt.sequence, receipt.cost, receipt.remaining)
    2 epsilon=0.4, 40 % of the budget epsilon=0.6
    >>> ledger.charge("patients", events.Pure(0.7), analyst="ana", question='{"sum":"age"}')
    Traceback (most recent call last):
    discreet.errors.InsufficientBudget: The charge needs epsilon=0.7, 70 % of the budget. Remaining: 60 %. ...
    """

    _is_compared = False  # with its anchor, by the caller who opens it

    def __init__(
        self,
        path: str | Store = ":memory:",
        *,
        timeout: float = 30.0,
        read_only: bool = False,
        anchor: Head | None = None,
    ) -> None:
        store = path if isinstance(path, Store) else place.store_at(path, timeout=timeout, read_only=read_only)
        self._journal = Journal(store)
        self.stewardship, self.caps = Stewardship(self._journal), CapActions(self._journal)
        self.versions = TableVersions(self._journal)
        self._accounts: dict[str, Account] = {}
        self.path = path if isinstance(path, str) else store.path
        self.in_memory, self.give_up = store.path == MEMORY, store.give_up
        self._check_on_opening(anchor, writes=not (read_only or self.in_memory or self._is_compared))

    def _check_on_opening(self, anchor: Head | None, *, writes: bool) -> None:
        try:
            if writes:
                self._journal.require_unanchored()
            if anchor is not None:
                self.check_anchor(anchor)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file, or the connections."""
        self._journal.store.close()

    def project_cap(self, project: str, *, account: str) -> AnyBudget | None:
        """Returns the cap of a project on an account; None if it was allotted nothing."""
        with self._journal.reading() as rows:
            now = changes.account_state(rows, account)
            known = None if now is None else changes.project(rows, account, project, now)
            return None if known is None else known.limit

    def analyst_cap(self, analyst: str, *, account: str) -> AnyBudget | None:
        """Returns the cap of an analyst on an account; None if they have none of their own."""
        with self._journal.reading() as rows:
            now = changes.account_state(rows, account)
            return None if now is None else changes.member(rows, account, analyst, now).limit

    def admit(self, account: str, analyst: str, project: str = "", periods: Sequence[str] = ()) -> AccountState:
        """Returns the state of an account, if an analyst may ask on it, also for what is free.

        Where rows have budgets by period, it is that of the period with least left, of those that are named.

        Raises:
            NotPermitted: if the analyst may not ask.
            InvalidParameter: if there is no such account, or no such name is possible.
        """
        who, _ = name(analyst=analyst), project and name(project=project)
        with self._journal.reading() as rows:
            now = policy.present_account(rows, account)
            if who != policy.OWNER:
                policy.require_asking(rows, account, who, changes.member(rows, account, who, now), now)
            return (
                period_budgets.fullest(now, period_budgets.find_periods(rows, account, now, periods))
                if periods
                else now
            )

    def is_charged(self, analyst: str, key: str) -> bool:
        """Returns whether an idempotency key was charged; `charge` then gives its receipt, or refuses it."""
        return self.restart(analyst, key) is not None

    def restart(self, analyst: str, key: str) -> str | None:
        """Returns what `charge` was given as `restart` under a key, empty if nothing; None if the key is new."""
        with self._journal.reading() as rows:
            found = rows.by_key(name(analyst=analyst), name(key=key))
        return None if found is None else str(found.content.get("restart", ""))

    def charge(
        self,
        account: str,
        event: Event,
        *,
        analyst: str = policy.OWNER,
        question: str = "{}",
        key: str | None = None,
        replay_key: str = "",
        terms: str | None = None,
        project: str = "",
        sql: str = "",
        restart: str = "",
        asked: str = "",
        reserve: str = "",
        periods: Sequence[str] = (),
    ) -> Receipt:
        """Charges one event to one account, durably, or raises and spends nothing.

        Args:
            account: the account to charge.
            event: what will be released.
            analyst: who asks.
            question: the canonical JSON of what is asked.
            key: an idempotency key of the analyst's own. The same key with the same request returns the same receipt,
                marked `repeated`, and charges nothing. A request is known by its account, question, replay key and
                terms, whatever its event is by now.
            replay_key: under which the answer will be kept, or what replaces it before that is known.
            terms: what may be spent, in words of the caller's own; without any, the event replaces them.
            project: whose cap it counts against, too.
            sql: the text as it was asked, for people who read the history.
            restart: what a process that knows the key alone needs to go on with the charge.
            asked: the epsilon that was asked for, as "p/q", for people who read the history.
            reserve: an amount that was set aside, from which it is paid.
            periods: the first days of all periods whose rows it may depend on, where each has a budget.

        Raises:
            InsufficientBudget: if the account or the analyst's cap would not hold.
            AccountLocked: if the analyst's failure credits on the account are used up.
            NotPermitted: if the analyst may not ask.
            KeyConflict: if the key came with another request before.
            LedgerError: if the ledger cannot be written.
        """
        return self.charge_all(
            {account: event},
            analyst=analyst,
            question=question,
            key=key,
            replay_key=replay_key,
            terms=terms,
            project=project,
            sql=sql,
            restart=restart,
            asked=asked,
            reserve=reserve,
            periods=periods,
        )[0]

    def charge_all(
        self,
        events_by_account: Mapping[str, Event],
        *,
        analyst: str = policy.OWNER,
        question: str = "{}",
        key: str | None = None,
        replay_key: str = "",
        terms: str | None = None,
        project: str = "",
        sql: str = "",
        restart: str = "",
        asked: str = "",
        reserve: str = "",
        periods: Sequence[str] = (),
    ) -> tuple[Receipt, ...]:
        """Charges several accounts like `charge`, all or none; the answer belongs to the first by name."""
        priced = charges.request(
            events_by_account,
            self.account,
            analyst=analyst,
            question=question,
            key=key,
            replay_key=replay_key,
            terms=terms,
            project=project,
            sql=sql,
            restart=restart,
            asked=asked,
            reserve=reserve,
            periods=periods,
        )
        with self._journal.acting(priced.places) as rows:
            return (priced.key and charges.earlier(rows, priced)) or charges.charge(rows, priced)

    def refusal(
        self,
        account: str,
        event: Event,
        *,
        analyst: str,
        project: str = "",
        reserve: str = "",
        periods: Sequence[str] = (),
    ) -> DiscreetError | None:
        """Returns the error with which `charge` would refuse an event now; writes nothing.

        Raises:
            NotPermitted: if the analyst may not ask, or the project may not spend.
        """
        try:
            whose = {"analyst": analyst, "project": project, "reserve": reserve}
            asked = charges.request({account: event}, self.account, periods=periods, **whose)
            with self._journal.reading() as rows:
                charges.weigh(rows, asked)
        except (InsufficientBudget, AccountLocked, UnsupportedEvent) as error:
            return error
        return None

    def claim(self, receipt: Receipt, *, wait: float = 0.0) -> Receipt | None:
        """Returns a receipt to run a `repeated` charge again, after waiting for its runner; None if it has ended.

        Raises:
            AccountLocked, NotPermitted: as for a new charge.
            RunsUsedUp: if it was run three times; the charge stays.
            LedgerError: if its account was renewed since, or the ledger restored.
        """
        return outcomes.claim_run(self._journal, receipt, wait)

    def reopen(self, receipt: Receipt) -> Receipt | None:
        """Returns a receipt to go on with a `repeated` charge; None if it has ended."""
        with self._journal.reading() as rows:
            return outcomes.reopen(rows, receipt)

    def interrupt(self, receipt: Receipt) -> bool:
        """Notes that the runner of a question has stopped, and returns whether the charge has an answer anyway."""
        with self._journal.acting() as rows:
            return outcomes.interrupt(rows, receipt)

    def fail(self, *receipts: Receipt) -> None:
        """Notes that a question failed after its charge, which uses one of the analyst's credits on the account."""
        with self._journal.acting() as rows:
            for receipt in receipts:
                outcomes.fail(rows, receipt)

    def store_answer(
        self, receipt: Receipt, replay_key: str, payload: bytes | str, *, event: Event | None = None
    ) -> bool:
        """Keeps an answer, durably, before it is sent.

        Args:
            receipt: of its charge.
            replay_key: under which it is found again.
            payload: what is kept.
            event: all that was released for it, also on the way; None if the charge's own event says it.

        Returns:
            Whether it is kept; if not, another runner has claimed the charge and ended it, and `answer` returns how.

        Raises:
            LedgerError: if this charge was already answered otherwise, has failed, or was found under its key.
        """
        data = payload.encode() if isinstance(payload, str) else bytes(payload)
        with self._journal.acting() as rows:
            return outcomes.store_answer(rows, receipt, text(replay_key=replay_key), data, event)

    def store_beside(self, receipt: Receipt, replay_key: str, payload: str, *, question: str) -> bytes:
        """Keeps what was released on the way to an answer, for nothing: the charge of the answer pays for it.

        Returns:
            What is kept: the payload, or what another runner of the same charge has stored before.
        """
        free = charges.beside(receipt, self.account, question)
        with self._journal.acting(free.places) as rows:
            return outcomes.store_beside(rows, receipt, free, text(replay_key=replay_key), payload.encode())

    def beside(self, receipt: Receipt, replay_key: str) -> bytes | None:
        """Returns what `store_beside` keeps for a charge under a replay key; None if nothing is kept yet."""
        with self._journal.reading() as rows:
            return outcomes.beside(rows, receipt, replay_key)

    def all_beside(self, receipt: Receipt) -> tuple[StoredAnswer, ...]:
        """Returns everything that `store_beside` keeps for a charge."""
        with self._journal.reading() as rows:
            return outcomes.all_beside(rows, receipt)

    def read_released_event(self, receipt: Receipt) -> Event:
        """Returns all that was released for a charge, see `outcomes.released`."""
        with self._journal.reading() as rows:
            return outcomes.read_released_event(rows, receipt)

    def read_answers(self, *replay_keys: str) -> tuple[StoredAnswer, ...]:
        """Returns the answers kept under each replay key, oldest first; giving one again costs nothing."""
        with self._journal.reading() as rows:
            return tuple([kept for replay_key in replay_keys for kept in outcomes.read_answers(rows, replay_key)])

    def read_headers(self, start: str, *, most: int = 100) -> tuple[StoredHeader, ...]:
        """Returns the headers of the newest answers whose replay key begins like this, the newest first."""
        with self._journal.reading() as rows:
            return outcomes.read_headers(rows, start, most)

    def read_answer(self, place: AnswerPlace) -> StoredAnswer:
        """Returns the whole answer of a header, see `outcomes.opened`."""
        with self._journal.reading() as rows:
            return outcomes.read_answer(rows, place)

    def answer(self, receipt: Receipt, *, wait: float = 0.0) -> bytes | None:
        """Returns the answer of a charge, waiting so many seconds for its runner; None if there is none."""
        return outcomes.awaited_answer(self._journal, receipt, wait)

    def account(self, account: str) -> Account:
        """Returns what an account was opened as.

        Raises:
            InvalidParameter: if there is none of that name.
        """
        known = self._accounts.get(account)
        if known is None:
            with self._journal.reading() as rows:
                known = self._accounts[account] = policy.require_account_opened(rows, name(account=account))
        return known

    def accounts(self) -> tuple[str, ...]:
        """Returns the names of all accounts."""
        with self._journal.reading() as rows:
            return tuple(place for _, place, _ in rows.states("account"))

    def tables(self) -> dict[str, str]:
        """Returns the account of every table."""
        with self._journal.reading() as rows:
            return {table: told["account"] for table, told in tables(rows).items()}

    def origins(self) -> dict[str, TableRecord]:
        """Returns what the ledger says of every table: its account, its files and its identity."""
        with self._journal.reading() as rows:
            return tables(rows)

    def declaration(self, table: str) -> str | None:
        """Returns what was declared about a table, as JSON; None if it was never attached."""
        known = self.declared_table(table)
        return None if known is None else known.declaration

    def declared_table(self, table: str) -> DeclaredTable | None:
        """Returns how a table is declared now and its versions; None if it was never attached."""
        return self._journal.declared_table(table)

    def standing(self, account: str) -> standings.Standing:
        """Returns the figures of an account, and below it each person's and each project's cap and spending."""
        with self._journal.reading() as rows:
            return standings.standing(rows, account)

    def outcome(self, charge: int) -> Entry | None:
        """Returns the entry that says how a charge ended; None while it has not."""
        with self._journal.reading() as rows:
            return rows.outcome(charge)

    def balance(
        self, account: str, *, analyst: str | None = None, project: str | None = None, team: str | None = None
    ) -> Balance:
        """Returns the figures of an account, or of one analyst, project or team on it."""
        with self._journal.reading() as rows:
            return policy.balance(rows, account, analyst=analyst, project=project, team=team)

    def role(self, account: str, who: str) -> Role | None:
        """Returns the role of a person on an account, or (account "") on the whole ledger."""
        with self._journal.reading() as rows:
            return policy.role(rows, account, who)

    def history(
        self,
        account: str | None = None,
        *,
        analyst: str | None = None,
        project: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> tuple[Entry, ...]:
        """Entries in order of their sequence, of one account or of the whole ledger, without the salts of accounts.

        Args:
            account: whose entries; None for all.
            analyst: only what this name did, and what was done to it.
            project: only what was charged for this project and allotted to it.
            after: the last sequence to leave out.
            limit: how many at most.

        >>> from discreet.ledger import OWNER
        >>> len(Ledger().history(analyst=OWNER))
        0
        """
        with self._journal.reading() as rows:
            found = (entry.without_salt for entry in rows.entries(after, account) if entry.concerns(analyst, project))
            return tuple(islice(found, limit))

    def head(self) -> Head:
        """Returns the last entry's place and hash; keep a copy elsewhere, it anchors the ledger."""
        return self._journal.head()

    def verify(self) -> Head:
        """Walks the whole chain, adds all charges up again, and returns the head.

        Raises:
            LedgerTampered: with the first entry that does not fit. This process then writes no more.
        """
        return self._journal.verify()

    def check_anchor(self, anchor: Head) -> None:
        """Compares the ledger with a head that was exported from it.

        Raises:
            LedgerTampered: if the ledger does not contain it: it is older, or another one. It is then read-only until a
                steward resumes it, and both are entries.
        """
        self._journal.check_anchor(anchor)

    @property
    def is_frozen(self) -> bool:
        """Whether the ledger is read-only until a steward resumes it."""
        return self._journal.is_frozen()

    @property
    def is_stopped(self) -> bool:
        """Whether this process writes no more until it is started again: what it wrote last cannot be relied on."""
        return self._journal.is_stopped

    def resume(self, *, by: str = policy.OWNER, note: str = "") -> None:
        """Makes a frozen ledger writable again; the steward who does it answers for the charges that were lost."""
        self._journal.resume(by=name(by=by), note=text(note=note))

    def backup(self, path: str) -> Head:
        """Writes a copy of the ledger to a new file, or to an empty database.

        Returns:
            The head of the copy. Keep it apart from the copy: it is what `restore` compares.
        """
        place.back_up(self._journal.store, path)
        with Ledger(path, read_only=True) as copy:
            return copy.head()

    def move(self, path: str) -> Head:
        """Moves the ledger to a new file, or to an empty database, with its chain; this one is read-only from then on.

        No caller can charge meanwhile, and nothing is charged here afterwards, so that no budget is spent twice.

        Returns:
            The head of the ledger at its new place, verified.

        Raises:
            LedgerError: if something is there already.
        """
        with self._journal.writing() as rows:  # no act: what freezes the ledger must be seen by the next one
            if changes.is_frozen(rows):
                raise LedgerError("The ledger is read-only already", "Ask a steward to find out why and resume it.")
            head = place.copy(rows, path, again=True)
            changes.apply(rows, rows.add("freeze", {"anchor": str(head), "moved": True}, who=policy.OWNER))
        with Ledger(path, read_only=True, anchor=head) as copy:
            return copy.verify()
