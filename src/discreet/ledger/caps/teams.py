"""Teams on an account: a cap that several people share, and who they are.

A steward lists a team's members, or says which groups of a sign-in provider are the team: then a person belongs to it
for a day after each sign-in. A person whose groups are older than that charges nothing until they sign in again, since
a team's cap would not count them.
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import LedgerTampered, NotPermitted
from discreet.ledger.account import AccountMember, AccountState
from discreet.ledger.entry import Entry
from discreet.ledger.renewal.open_period import OpenPeriod
from discreet.ledger.serialization import canonical, parse_canonical, read_loss
from discreet.ledger.store.ledger_store import Place, StateStore

LASTS = dt.timedelta(days=1)
"""How long a person belongs to a team by a group of the sign-in provider."""


@dataclass(frozen=True, slots=True)
class TeamMembership:
    """The teams of a person on an account.

    Attributes:
        declared: those that list the person.
        claimed: those by the groups that the sign-in provider named last.
        until: when these groups must be named again, in ISO 8601; empty where none ever were.
    """

    declared: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    until: str = ""

    @property
    def teams(self) -> tuple[str, ...]:
        """All of them, by name."""
        return tuple(sorted({*self.declared, *self.claimed}))

    def require_known(self, who: str, moment: dt.datetime) -> None:
        """Checks that the groups of a person are no older than a day.

        Raises:
            NotPermitted: if they are.
        """
        if self.until and dt.datetime.fromisoformat(self.until) <= moment:
            hint = "The groups of your last sign-in are more than a day old. Sign in again."
            raise NotPermitted(who, "charge an account", hint)

    def write(self) -> str:
        """Returns the membership as canonical JSON."""
        return canonical({"claimed": list(self.claimed), "declared": list(self.declared), "until": self.until})

    @staticmethod
    def read(text: str) -> TeamMembership:
        """Returns the membership that `write` wrote."""
        fields = parse_canonical(text)
        return TeamMembership(tuple(fields["declared"]), tuple(fields["claimed"]), fields["until"])


NO_TEAMS = TeamMembership()


def place_of_team(account: str, name: str) -> Place:
    """Returns the place of a team's state."""
    return "team", f"{account}\n{name}"


@lru_cache(maxsize=1024)
def place_of_membership(account: str, who: str) -> Place:
    """Returns the place of the teams of a person."""
    return "teams", f"{account}\n{who}"


def find_team(states: StateStore, account: str, name: str, now: AccountState) -> AccountMember | None:
    """Returns what a team has spent on an account, and its cap; None if there is no such team."""
    known = states.read(place_of_team(account, name), AccountMember.read)
    return None if known is None else known.in_period(now)


def membership(states: StateStore, account: str, who: str) -> TeamMembership:
    """Returns the teams of a person on an account."""
    text = states.get(*place_of_membership(account, who))
    return NO_TEAMS if text is None else TeamMembership.read(text)


def members_of(states: StateStore, account: str, team: str) -> tuple[str, ...]:
    """Returns the people whom a steward listed as members of a team."""
    text = states.get("members", f"{account}\n{team}")
    return () if text is None else tuple(parse_canonical(text))


def groups_of(states: StateStore, account: str, team: str) -> tuple[str, ...]:
    """Returns the groups of the sign-in provider whose people are members of a team."""
    text = states.get("groups", f"{account}\n{team}")
    return () if text is None else tuple(parse_canonical(text))


def set_team(states: StateStore, entry: Entry, now: AccountState) -> None:
    """Gives a team a cap, and the members that a steward listed."""
    content, account = entry.content, entry.account
    name, members = content["team"], content["members"]
    known = find_team(states, account, name, now) or AccountMember.of(now)
    states.put((place_of_team(account, name), with_cap(known, content, entry.sequence, now)))
    for who in {*members_of(states, account, name), *members}:
        known_teams = membership(states, account, who)
        others = [team for team in known_teams.declared if team != name]
        declared = tuple(sorted([*others, name] if who in members else others))
        changed = TeamMembership(declared, known_teams.claimed, known_teams.until)
        states.put((place_of_membership(account, who), changed.write()))
    states.put((("members", f"{account}\n{name}"), canonical(sorted(members))))
    states.put((("groups", f"{account}\n{name}"), canonical(content["groups"])))


def set_claimed(states: StateStore, entry: Entry) -> None:
    """Notes the teams of a person by the groups that the sign-in provider named."""
    content, account = entry.content, entry.account
    if any(states.get(*place_of_team(account, team)) is None for team in content["teams"]):
        raise LedgerTampered(entry.sequence, "it is about a team that has no cap")
    declared = membership(states, account, content["name"]).declared
    changed = TeamMembership(declared, tuple(content["teams"]), content["until"])
    states.put((place_of_membership(account, content["name"]), changed.write()))


def with_cap(known: AccountMember, content: dict[str, Any], entry: int, now: AccountState) -> AccountMember:
    """Returns a person, project or team with the cap of an entry; what was spent stays spent."""
    cap = None if content["cap"] is None else read_loss(content["cap"])
    renews = OpenPeriod.opened_by(entry, content.get("renews"))
    return known._replace(cap=cap, renews=renews, period=now.period)
