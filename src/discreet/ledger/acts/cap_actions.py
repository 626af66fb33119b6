"""The acts of stewards on teams and on amounts that are set aside; each is an entry of its own, and none reads data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from discreet import check
from discreet.errors import InternalError, InvalidParameter, NotPermitted
from discreet.hint_text import Hint
from discreet.ledger import changes, charges, policy
from discreet.ledger.account import Balance, same_currency
from discreet.ledger.caps import approvals, period_budgets
from discreet.ledger.caps.approvals import ApprovalRequest
from discreet.ledger.caps.reserves import reserve_price
from discreet.ledger.caps.teams import LASTS, find_team, groups_of, members_of, membership
from discreet.ledger.journal import Journal
from discreet.ledger.serialization import name, parse_canonical, text, write_loss, write_ratio
from discreet.ledger.stewardship import cap_fields
from discreet.ledger.store.ledger_store import VERSIONS, Transaction
from discreet.ledger.tallies import Reserve, prices, rules
from discreet.privacy import AnyBudget, PureDP, RenewingBudget
from discreet.privacy.events import Event


class Team(NamedTuple):
    """A team on an account.

    Attributes:
        cap: what its members may spend together.
        members: those whom a steward listed.
        groups: of the sign-in provider, whose people belong to it.
    """

    cap: AnyBudget | None
    members: tuple[str, ...]
    groups: tuple[str, ...]


class CapActions:
    """Teams with their caps, and amounts set aside, on the accounts of a ledger.

    Args:
        journal: the ledger's.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def set_team(
        self,
        team: str,
        *,
        account: str,
        cap: AnyBudget,
        members: Sequence[str] = (),
        groups: Sequence[str] = (),
        by: str = policy.OWNER,
        note: str = "",
    ) -> None:
        """Gives a team a cap on an account, and says who it is; what the team has spent stays spent.

        Every charge of a member counts against the cap, besides their own, the project's and the account's.

        Args:
            team: its name.
            account: the account.
            cap: what its members may spend together.
            members: people who belong to it.
            groups: groups of a sign-in provider whose people belong to it, for a day after they sign in.
            by: the steward.
            note: why.

        Raises:
            InvalidParameter: if the account is unknown, or the cap is of another currency.
            NotPermitted: if the caller is no steward.
        """
        called, steward, why = name(team=team), name(by=by), text(note=note)
        listed = sorted({name(member=member) for member in members})
        named = sorted({name(group=group) for group in groups})
        with self._journal.acting() as rows:
            fields = cap_fields(rows, account, cap)
            policy.require_steward(rows, account, steward, "set team caps")
            rows.require_version(VERSIONS["team"])
            body = {**fields, "groups": named, "members": listed, "note": why, "team": called}
            changes.apply(rows, rows.add("team", body, who=steward, account=account))

    def claim_teams(self, who: str, teams: Sequence[str], *, account: str) -> None:
        """Notes a person's teams on an account as a sign-in provider named them; they hold for a day.

        Teams that have no cap on the account are left out.
        """
        called = name(who=who)
        with self._journal.acting() as rows:
            now = policy.require_account(rows, account)
            known = sorted({team for team in teams if find_team(rows, account, team, now) is not None})
            before = membership(rows, account, called)
            if not known and not before.claimed:
                return
            rows.require_version(VERSIONS["claim teams"])
            until = (rows.clock().moment + LASTS).isoformat(timespec="milliseconds") if known else ""
            body = {"name": called, "teams": known, "until": until}
            changes.apply(rows, rows.add("claim teams", body, who=called, account=account))

    def claim_groups(self, who: str, groups: Sequence[str]) -> None:
        """Notes the teams of a person on all accounts, by the groups that a sign-in provider has named."""
        with self._journal.reading() as rows:
            found: dict[str, list[str]] = {account: [] for _, account, _ in rows.states("account")}
            for _, place, told in rows.states("groups"):
                account, _, team = place.partition("\n")
                if set(parse_canonical(told)) & set(groups):
                    found[account].append(team)
        for account, teams in found.items():
            self.claim_teams(who, teams, account=account)

    def team(self, team: str, *, account: str) -> Team | None:
        """Returns a team's cap, its members and groups on an account; None if there is none."""
        with self._journal.reading() as rows:
            now = policy.require_account(rows, account)
            known = find_team(rows, account, team, now)
            if known is None:
                return None
            return Team(known.limit, members_of(rows, account, team), groups_of(rows, account, team))

    def needed(self, account: str) -> int:
        """Returns how many stewards must approve a request on an account."""
        with self._journal.reading() as rows:
            return approvals.needed(rows, account)

    def reserve(
        self,
        purpose: str,
        *,
        account: str,
        budget: AnyBudget,
        analyst: str = "",
        by: str = policy.OWNER,
        note: str = "",
    ) -> Balance:
        """Sets an amount of an account aside for a purpose, which alone may spend it; it counts as spent at once.

        Args:
            purpose: its name, such as that of a stream or of a report.
            account: the account.
            budget: how much: an epsilon, for charges without a delta, or an amount of the account's currency.
            analyst: the person who may spend it; empty for all who may ask.
            by: the steward.
            note: why.

        Raises:
            InvalidParameter: if the account is unknown, the name is in use, or the amount is of another currency.
            InsufficientBudget: if the account does not have so much left.
            NotPermitted: if the caller is no steward.
        """
        called, steward, why = name(purpose=purpose), name(by=by), text(note=note)
        person = name(analyst=analyst) if analyst else ""
        if isinstance(budget, RenewingBudget):
            hint = "Leave the period out: an amount that is set aside does not renew."
            raise InvalidParameter("budget", str(budget), "to be an amount", hint)
        with self._journal.acting() as rows:
            opened = policy.require_account_opened(rows, account)
            policy.require_steward(rows, account, steward, f"set amounts aside on account {account!r}")
            policy.open_due_period(rows, account)
            now = policy.require_account(rows, account)
            if now.reserve(called) is not None:
                hint = Hint("Choose another name, or give back the rest of it first.")
                raise InvalidParameter("purpose", called, "to be new: an amount is set aside under it", hint)
            amount = budget if isinstance(budget, PureDP) else same_currency(now.budget, budget)
            rules(amount)
            promise = reserve_price(amount, opened.budget, opened.neighbours)
            after = now.with_reserve(Reserve(called, person, promise, promise * 0))
            periods = [] if opened.rows is None else period_budgets.all_periods(rows, account, now)
            seen = [period_budgets.fullest(one, periods) for one in (now, after)]  # it counts in every period of rows
            charges.require_room(opened, seen[0], seen[1], amount)
            rows.require_version(VERSIONS["reserve"])
            body = {
                "budget": write_loss(amount),
                "for": person,
                "note": why,
                "reserve": called,
                "share": write_ratio(now.added_share(after)),
            }
            changes.apply(rows, rows.add("reserve", body, who=steward, account=account, price=promise.text))
            return policy.balance(rows, account)

    def give_back(self, purpose: str, *, account: str, by: str = policy.OWNER, note: str = "") -> Balance:
        """Gives back the rest of an amount that was set aside; what was spent of it stays spent.

        Raises:
            InvalidParameter: if the account is unknown, or nothing is set aside under the name.
            NotPermitted: if the caller is no steward.
        """
        called, steward, why = name(purpose=purpose), name(by=by), text(note=note)
        with self._journal.acting() as rows:
            policy.require_account(rows, account)
            policy.require_steward(rows, account, steward, f"give back amounts on account {account!r}")
            policy.open_due_period(rows, account)
            now = policy.require_account(rows, account)
            if now.reserve(called) is None:
                told = ", ".join(reserve.name for reserve in now.reserves) or "nothing"
                hint = f"Set aside on this account: {told}."
                raise InvalidParameter("purpose", called, "to be set aside", hint)
            moved = now.added_share(now.without_reserve(called))
            body = {"note": why, "reserve": called, "share": write_ratio(moved)}
            changes.apply(rows, rows.add("give back", body, who=steward, account=account))
            return policy.balance(rows, account)

    def request_approval(
        self, account: str, event: Event, *, analyst: str, replay_key: str, sql: str, asked: str, reason: str
    ) -> ApprovalRequest:
        """Asks the stewards of an account to allow one query beyond a cap.

        Args:
            account: which would pay.
            event: what would be released.
            analyst: who asks.
            replay_key: of the query, as in its charge.
            sql: the query, for the stewards.
            asked: its epsilon, as "p/q".
            reason: why.

        Raises:
            InvalidParameter: if the account is unknown, or there is no reason.
            NotPermitted: if the analyst may not ask on the account.
        """
        who, why = name(analyst=analyst), text(reason=check.label(reason=reason))
        if not why.strip():
            hint = Hint("Say what the query is for, e.g. {reason:for the board meeting}.")
            raise InvalidParameter("reason", reason, "to be given", hint)
        with self._journal.acting() as rows:
            opened = policy.require_account_opened(rows, account)
            charges.require_admission(rows, account, who)
            rows.require_version(VERSIONS["request"])
            price = prices(event, opened.budget, opened.neighbours)
            body = {"asked": asked, "reason": why, "replay_key": replay_key, "sql": text(sql=sql)}
            entry = rows.add("request", body, who=who, account=account, price=price.text)
            changes.apply(rows, entry)
            return _view(rows, entry.sequence)

    def approve(
        self, number: int, *, account: str | None = None, by: str = policy.OWNER, note: str = ""
    ) -> ApprovalRequest:
        """Allows the query of a request, once and for seven days; where several stewards must, each of them does.

        Raises:
            InvalidParameter: if there is no such request, or it was approved, also by this steward.
            NotPermitted: if the caller is no steward, or asked for it.
        """
        steward, why = name(by=by), text(note=note)
        with self._journal.acting() as rows:
            told = approvals.read_request(rows, check.integer(at_least=1, number=number))
            if told is None or account not in (None, told["account"]):
                hint = "The list of approvals has the numbers."
                raise InvalidParameter("number", number, "to be the number of a request", hint)
            account = str(told["account"])
            policy.require_steward(rows, account, steward, f"approve requests on account {account!r}")
            if steward == told["who"]:
                raise NotPermitted(steward, "approve their own request", "Ask another steward.")
            if told["used"] or told["until"] or steward in told["by"]:
                hint = "It needs nothing more of you." if not told["used"] else "Each approval is for one charge."
                raise InvalidParameter("number", number, "to be a request that waits for your approval", hint)
            last = len(told["by"]) + 1 >= approvals.needed(rows, account)
            until = (rows.clock().moment + approvals.LASTS).isoformat(timespec="milliseconds") if last else ""
            body = {"note": why, "request": number, "until": until}
            changes.apply(rows, rows.add("approve", body, who=steward, account=account))
            return _view(rows, number)

    def require_approvals(self, account: str, *, count: int, by: str = policy.OWNER, note: str = "") -> None:
        """Says how many stewards must approve each request on an account.

        Raises:
            InvalidParameter: if the account is unknown, or the number is below 1.
            NotPermitted: if the caller is no steward.
        """
        steward, why = name(by=by), text(note=note)
        check.integer(at_least=1, at_most=100, count=count)
        with self._journal.acting() as rows:
            policy.require_account(rows, account)
            policy.require_steward(rows, account, steward, f"change approvals on account {account!r}")
            rows.require_version(VERSIONS["approvals"])
            body = {"needed": count, "note": why}
            changes.apply(rows, rows.add("approvals", body, who=steward, account=account))

    def requests(self, account: str | None = None, *, analyst: str | None = None) -> tuple[ApprovalRequest, ...]:
        """Returns the requests for queries beyond a cap, the newest first: of one account or of all, of one person."""
        with self._journal.reading() as rows:
            moment = rows.clock().moment
            found = [(int(number), parse_canonical(told)) for _, number, told in rows.states("approval")]
            return tuple(
                approvals.request_view(rows, number, told, moment)
                for number, told in sorted(found, key=lambda one: -one[0])
                if account in (None, told["account"]) and analyst in (None, told["who"])
            )


def _view(rows: Transaction, number: int) -> ApprovalRequest:
    told = approvals.read_request(rows, number)
    if told is None:
        raise InternalError("A request was lost while it was written.")
    return approvals.request_view(rows, number, told, rows.clock().moment)
