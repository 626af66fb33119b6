"""The acts of stewards: open, attach, amend, renew, appoint, unlock. Each is an entry, and none erases another.

The same data must not get two budgets. So the ledger keeps, besides what was declared about a table, the paths of its
files, what file was found there last (a device and an inode, as the curator writes them), and perhaps an identity, a
name that a steward gives to the data. It never holds anything that was read from the data. Tables of one account may
share data, since they share a budget. A table is compared with those of other accounts by its identity if it has one,
else by its files: a steward who declares an identity answers for it, and the entry says who did. Ledgers of earlier
versions have no files, and nothing is compared until a table of theirs is protected again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, NotPermitted
from discreet.hint_text import Hint
from discreet.ledger import changes, policy
from discreet.ledger.account import Account, AccountState, Balance, Role, cap_in, same_currency
from discreet.ledger.entry import digest
from discreet.ledger.journal import Journal
from discreet.ledger.redeclaration import LONGEST_BLOCK, check_same_people, keys_place, named_keys, require_seen
from discreet.ledger.renewal.open_period import first_opening
from discreet.ledger.serialization import name, parse_canonical, text, write_loss, write_ratio
from discreet.ledger.store.ledger_store import CALENDARS, VERSIONS, Transaction, no_charge
from discreet.ledger.tallies import rules
from discreet.noise import system_bits
from discreet.privacy import AnyBudget, Loss, Neighbours, RenewalSchedule, Unit
from discreet.privacy.budget import split

TableRecord = Mapping[str, Any]
"""The fields of a table in the ledger."""

Blocks = Callable[[str], bytes]
"""Returns the canonical JSON of a list of keys, by its SHA-256; raises KeyError for any other digest."""


def no_blocks(told: str) -> bytes:
    """Raises KeyError: short lists of keys are written into their declarations."""
    raise KeyError(told)


@dataclass(frozen=True, slots=True)
class DataOrigin:
    """Files by their paths, and an identity or none."""

    files: Mapping[str, str]
    identity: str

    @classmethod
    def of(cls, files: Mapping[str, str] | None, identity: str | None) -> DataOrigin:
        """Returns the origin that a steward's words and a source's files tell.

        Raises:
            InvalidParameter: if the identity is no name.
        """
        told = {text(path=path): text(file=file) for path, file in (files or {}).items()}
        return cls(told, "" if identity is None else name(identity=identity))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of its entry, without those that are empty."""
        return {
            **({"files": dict(self.files)} if self.files else {}),
            **({"identity": self.identity} if self.identity else {}),
        }

    def with_files(self, files: Mapping[str, str]) -> DataOrigin:
        """Returns the origin with files that it has now, for a comparison."""
        return DataOrigin({**self.files, **files}, self.identity)

    def is_told(self, told: TableRecord) -> bool:
        """Returns whether the ledger says all of it already."""
        return self.files.items() <= told.get("files", {}).items() and self.identity in ("", told.get("identity"))

    def is_origin_of(self, told: TableRecord) -> bool:
        """Returns whether a table was read from one of these paths, or one of these files wherever they were then.

        A path that ends in a slash is a folder whose files are one table: all below it belong to it.
        """
        theirs: Mapping[str, str] = told.get("files", {})
        if self.files.keys() & theirs.keys() or set(self.files.values()) & set(theirs.values()):
            return True
        return _is_below(self.files, theirs) or _is_below(theirs, self.files)


def _is_below(places: Iterable[str], folders: Iterable[str]) -> bool:
    above = tuple(folder for folder in folders if folder.endswith("/"))
    return any(place.startswith(above) for place in places) if above else False


NOWHERE = DataOrigin({}, "")
"""The origin of data that were never in a file, and have no name."""


def require_one_budget(known: Mapping[str, TableRecord], table: str, account: str, origin: DataOrigin) -> None:
    """Refuses a table whose data have a budget already, in another account.

    Args:
        known: what the ledger says of every table.
        table: the one to be attached.
        account: the account it is for.
        origin: where its data come from.

    Raises:
        InvalidParameter: naming the other account; or if the table itself has another account or identity.
    """
    own = known.get(table, {})
    _check_same_account(own, table, account)
    identity = origin.identity or own.get("identity", "")
    if own.get("identity", identity) != identity:
        raise InvalidParameter("identity", identity, f"to be {own['identity']!r}, as declared before")
    for other, told in known.items():
        if other == table or told["account"] == account:
            continue
        hint = f"Pass account={told['account']!r} to share its budget, or"
        if identity and told.get("identity") == identity:
            raise InvalidParameter("identity", identity, f"not to be that of table {other!r}", f"{hint} use another.")
        before = own.get("files", {}).keys() & told.get("files", {}).keys()  # then an identity was declared
        if not identity and origin.is_origin_of(told) and not before:
            condition = f"not to be the data of table {other!r}, which has a budget"
            hint += " say with identity=... which other data it holds."
            raise InvalidParameter("source", next(iter(origin.files)), condition, hint)


def tables(rows: Transaction) -> dict[str, TableRecord]:
    """Returns what the ledger says of every table."""
    return {place: parse_canonical(content) for _, place, content in rows.states("table")}


SALT_BITS = 256


def new_salt() -> bytes:
    """Returns a new secret, by which rows of one unit are chosen."""
    return system_bits().integer(SALT_BITS).to_bytes(SALT_BITS // 8, "big")


def amendment(now: AccountState, budget: Loss, note: str) -> dict[str, Any]:
    """Returns the body of an entry that changes a budget.

    It has how far the share that is spent moves by that, so that the shares of all entries of a period still add up.
    """
    moved = now.added_share(now.with_budget(budget))
    return {"budget": write_loss(budget), "note": note, "share": write_ratio(moved)}


class Stewardship:
    """The acts of stewards on the accounts of a ledger; each is an entry of its own, and none reads data.

    Args:
        journal: the ledger's.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def open_account(
        self,
        account: str,
        *,
        unit: Unit,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        budget: AnyBudget | None = None,
        by: str = policy.OWNER,
    ) -> Account:
        """Opens an account, or returns the one that was opened with the same declarations.

        A budget with a calendar opens the period that the clock of the ledger is in.

        Raises:
            InvalidParameter: if it was opened with another unit, relation or budget (a steward may amend its budget,
                nothing else), or a new one has no budget.
            NotPermitted: if the account is new and the caller is no steward.
        """
        called, relation, steward = name(account=account), Neighbours(neighbours), name(by=by)
        with self._journal.acting() as rows:
            known = rows.get("account", called)
            if known is not None:
                return _same_account(rows, Account.read(known), unit, relation, budget)
            policy.require_steward(rows, "", steward, "open accounts")
            if budget is None:
                hint = "Pass e.g. Budget(epsilon=1)."
                raise InvalidParameter("budget", None, f"to be given for the new account {called!r}", hint)
            amount, schedule = split(budget)
            rules(amount)
            by_rows = schedule if schedule is not None and schedule.of else None
            opened = Account(name=called, unit=unit, neighbours=relation, budget=amount, salt=new_salt(), rows=by_rows)
            if by_rows is not None:
                rows.require_version(CALENDARS)
            calendar = {} if by_rows is not None else calendar_fields(rows, schedule)
            body = {"account": parse_canonical(opened.write()), **calendar}
            changes.apply(rows, rows.add("open", body, who=steward, account=called))
        return opened

    def attach(
        self,
        table: str,
        *,
        account: str,
        declaration: str,
        version: str = "",
        origin: DataOrigin = NOWHERE,
        replacing: str | None = None,
        blocks: Blocks = no_blocks,
        by: str = policy.OWNER,
    ) -> None:
        """Puts a table, a new version or another declaration of it under an account; again, it changes nothing.

        Args:
            table: its name, one in the whole ledger.
            account: the account of the people in it.
            declaration: everything the steward declared about it, as canonical JSON.
            version: as the steward declared it; never a function of the content.
            origin: where its data come from.
            replacing: the declaration in the ledger that this one takes the place of, as the steward has seen it.
            blocks: returns the long lists of keys for which digests stand in the declaration; each is kept once.
            by: the steward.

        Raises:
            DeclarationChanged: if the table is declared otherwise in the ledger, and that is not what is replaced.
            InvalidParameter: if the account is unknown, the table has another account or identity, its data are those
                of a table in another account, or others than before would be protected (`ledger.redeclaration`).
            NotPermitted: if there is something new to attach and the caller is no steward.
        """
        called, owner, steward = name(table=table), name(account=account), name(by=by)
        body = {"declaration": text(declaration=declaration), "table": called, "version": text(version=version)}
        with self._journal.acting() as rows:
            if rows.get("account", owner) is None:
                raise policy.unknown(owner)
            known = changes.table(rows, called)
            if known is not None:
                _check_same_account(known, called, owner)
                if known["declaration"] != declaration:
                    body |= replace_declaration(tables(rows), called, declaration, replacing)
                elif version in known["versions"] and origin.is_told(known):
                    return
            require_one_budget(tables(rows), called, owner, origin)
            policy.require_steward(rows, owner, steward, "attach tables")
            for told, count in named_keys(declaration).items():
                if changes.keys_kept(rows, told) is None:
                    _keep_keys(rows, _block(told, count, blocks), count, by=steward, account=owner)
            changes.apply(rows, rows.add("attach", {**body, **origin.fields}, who=steward, account=owner))

    def amend(self, account: str, *, budget: AnyBudget, by: str = policy.OWNER, note: str = "") -> Balance:
        """Gives an account another budget of its currency, or calendar; what was spent stays spent.

        Without a calendar the budget renews as before; with one per "never", it renews no longer.
        """
        return self._change_budget("amend", account, budget, name(by=by), text(note=note))

    def renew(
        self, account: str, *, budget: AnyBudget | None = None, by: str = policy.OWNER, note: str = ""
    ) -> Balance:
        """Starts a new period of an account with nothing spent; its lifetime spending goes on and is shown.

        A budget with a calendar goes on from the period that the clock of the ledger is in.
        """
        return self._change_budget("renew", account, budget, name(by=by), text(note=note))

    def _change_budget(self, kind: str, account: str, budget: AnyBudget | None, by: str, note: str) -> Balance:
        with self._journal.acting() as rows:
            policy.require_account(rows, account)
            policy.require_steward(rows, account, by, f"{kind} account {account!r}")
            if kind == "amend":
                policy.open_due_period(rows, account)
            now = policy.require_account(rows, account)
            amount, schedule = (now.budget, None) if budget is None else split(budget)
            schedule = _clock_of(policy.require_account_opened(rows, account), schedule)
            chosen = same_currency(now.budget, amount)
            if kind == "renew" and schedule is None and now.renews is not None:
                schedule = now.renews.schedule
            body = amendment(now, chosen, note) if kind == "amend" else {"budget": write_loss(chosen), "note": note}
            changes.apply(rows, rows.add(kind, {**body, **calendar_fields(rows, schedule)}, who=by, account=account))
            return policy.balance(rows, account)

    def appoint(
        self, who: str, role: Role | str, *, account: str = "", cap: AnyBudget | None = None, by: str = policy.OWNER
    ) -> None:
        """Gives a person a role on an account, or (account "") on the whole ledger, and perhaps a cap of their own.

        A cap of epsilon alone has the same share of the account's delta.

        Raises:
            InvalidParameter: if the account is unknown, the cap is of another currency, or comes without an account.
            NotPermitted: if the caller is no steward, or the owner is appointed.
        """
        called, given, steward = name(who=who), Role(role), name(by=by)
        with self._journal.acting() as rows:
            if called == policy.OWNER:
                raise NotPermitted(
                    steward,
                    "appoint the owner",
                    "The owner of the ledger's file is always a steward. Use another name.",
                )
            if cap is not None and not account:
                hint = Hint("Name the account, e.g. {account:visits}.")
                raise InvalidParameter("cap", cap, "to come with an account", hint)
            fields = cap_fields(rows, account, cap) if account else {"cap": None}
            policy.require_steward(rows, account, steward, "appoint people")
            body = {**fields, "name": called, "role": given.value}
            changes.apply(rows, rows.add("appoint", body, who=steward, account=account))

    def allot(self, project: str, *, account: str, cap: AnyBudget, by: str = policy.OWNER, note: str = "") -> None:
        """Gives a project a cap on an account; charges that name it count against both. What it has spent stays spent.

        Raises:
            InvalidParameter: if the account is unknown, or the cap is of another currency.
            NotPermitted: if the caller is no steward.
        """
        called, steward, why = name(project=project), name(by=by), text(note=note)
        with self._journal.acting() as rows:
            fields = cap_fields(rows, account, cap)
            policy.require_steward(rows, account, steward, "set project caps")
            body = {**fields, "note": why, "project": called}
            changes.apply(rows, rows.add("allot", body, who=steward, account=account))

    def record(self, act: str, *, about: str, by: str = policy.OWNER, facts: Mapping[str, str] | None = None) -> None:
        """Writes down what a service did to people and keys; it changes no account.

        Args:
            act: what was done, such as "revoke key".
            about: to whom.
            by: who did it: a steward, or the person.
            facts: what else to record, such as the public id of a key; never a secret.

        Raises:
            NotPermitted: if the caller acts on others and is no steward.
        """
        person, steward = name(about=about), name(by=by)
        told = {name(fact=key): name(**{key: value}) for key, value in (facts or {}).items()}
        with self._journal.acting() as rows:
            if person != steward:
                policy.require_steward(rows, "", steward, act)
            rows.require_version(VERSIONS["service"])
            body = {**told, "about": person, "act": name(act=act)}
            changes.apply(rows, rows.add("service", body, who=steward))

    def unlock(self, account: str, *, by: str = policy.OWNER, note: str = "") -> None:
        """Gives back the failure credits of all people on an account."""
        steward, why = name(by=by), text(note=note)
        with self._journal.acting() as rows:
            policy.require_account(rows, account)
            policy.require_steward(rows, account, steward, f"unlock account {account!r}")
            changes.apply(rows, rows.add("unlock", {"note": why}, who=steward, account=account))


def cap_fields(rows: Transaction, account: str, cap: AnyBudget | None) -> dict[str, Any]:
    """Returns the fields of an entry that gives a person, project or team a cap on an account."""
    now = policy.require_account(rows, account)
    if cap is None:
        return {"cap": None}
    amount, schedule = split(cap_in(now.budget, cap))
    return {"cap": write_loss(amount), **calendar_fields(rows, schedule)}


def calendar_fields(rows: Transaction, schedule: RenewalSchedule | None) -> dict[str, Any]:
    """Returns the field of an entry by which a budget renews; none without a calendar."""
    if schedule is None:
        return {}
    rows.require_version(CALENDARS)
    return {"renews": first_opening(schedule, rows)}


def _clock_of(opened: Account, schedule: RenewalSchedule | None) -> RenewalSchedule | None:
    """Returns the calendar by which an account shall renew; None where rows have budgets by their dates.

    Raises:
        InvalidParameter: if that changes by which periods of rows the account is counted.
    """
    by_rows = schedule if schedule is not None and schedule.of else None
    if by_rows == opened.rows and (opened.rows is None or schedule is not None):
        return None if by_rows is not None else schedule
    if schedule is None:
        return None
    told = "per never" if opened.rows is None else str(opened.rows)
    hint = "Which rows share a budget is fixed when an account is opened. Open another account."
    raise InvalidParameter("budget", str(schedule), f"to be counted {told}", hint)


def _same_account(
    rows: Transaction, known: Account, unit: Unit, neighbours: Neighbours, budget: AnyBudget | None
) -> Account:
    hint = "An account keeps what it was opened with. Open another account, or amend its budget."
    if unit != known.unit:
        raise InvalidParameter("unit", unit, f"to be {known.unit}, the unit of account {known.name!r}", hint)
    if neighbours is not known.neighbours:
        raise InvalidParameter("neighbours", neighbours.value, f"to be {known.neighbours.value}", hint)
    now = changes.account_state(rows, known.name)
    amount, schedule = (None, None) if budget is None else split(budget)
    if amount is not None and amount != known.budget and (now is None or amount != now.budget):
        raise InvalidParameter("budget", budget, f"to be {known.budget}, as declared before", hint)
    present = known.rows if now is None or now.renews is None else now.renews.schedule
    if schedule not in (None, present):
        raise InvalidParameter("budget", budget, f"to renew {present or 'per never'}, as in the ledger", hint)
    return known


def _block(told: str, count: int, blocks: Blocks) -> bytes:
    """Returns the list of keys that a declaration names by its digest.

    Raises:
        InvalidParameter: if it is too long, is missing, or is another one.
    """
    try:
        block = blocks(told)
    except KeyError:
        block = b""
    if len(block) > LONGEST_BLOCK:
        condition = f"to have at most {LONGEST_BLOCK} characters together"
        raise InvalidParameter("keys", f"{len(block)} characters", condition, "Declare fewer or shorter keys.")
    if digest(block) != told or len(parse_canonical(block.decode())) != count:
        raise InvalidParameter("keys", f"{count} keys", "to be those that the declaration names")
    return block


def _keep_keys(rows: Transaction, block: bytes, count: int, *, by: str, account: str) -> None:
    """Keeps a list of keys in the ledger, under an entry that has its digest."""
    told = digest(block)
    rows.require_version(VERSIONS["keys"])
    body = {"count": count, "digest": told, "replay_key": keys_place(told)}
    entry = rows.add("keys", body, who=by, account=account)
    rows.add_answer(entry.sequence, no_charge(entry.sequence), keys_place(told), block)
    changes.apply(rows, entry)


def _check_same_account(known: TableRecord, table: str, account: str) -> None:
    if known.get("account", account) != account:
        raise InvalidParameter(
            "account",
            account,
            f"to be {known['account']!r}, the account of table {table!r}",
            "Every version of a table stays in its account: what was spent on its people is recorded there.",
        )


def replace_declaration(
    known: Mapping[str, TableRecord], table: str, declaration: str, replacing: str | None
) -> dict[str, str]:
    """Returns the fields of an entry that describe the declaration it replaces.

    Raises:
        DeclarationChanged: if that is not the one in the ledger.
        InvalidParameter: if others than before would be protected.
    """
    declared = {other: told["declaration"] for other, told in known.items()}
    before = declared.pop(table)
    check_same_people(table, before, declaration, declared)
    require_seen(table, before, declaration, replacing)
    return {"before": before}
