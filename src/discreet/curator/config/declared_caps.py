"""Caps, roles and teams that a file declares, compared with what a steward is about to enter in the ledger.

Every command that reads tables puts the caps of the file into the ledger, so an action that contradicts the file would
be undone by the next query. Such an action is refused, with the lines to write instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from discreet.curator.config.enrolment import toml_key
from discreet.curator.config.toml_file import Analyst, Config, DeclaredTeam, Project
from discreet.errors import InvalidParameter
from discreet.ledger import Role
from discreet.ledger.acts.cap_actions import Team
from discreet.ledger.serialization import write_loss
from discreet.privacy import AnyBudget
from discreet.privacy.amounts import decimal
from discreet.privacy.budget import split, write_calendar


def check_role(config: Config, path: Path, wanted: Analyst, role: Role) -> None:
    """Refuses a role or a cap of a person that the file declares otherwise.

    Raises:
        InvalidParameter: with what to write into the file instead.
    """
    for one in config.analysts:
        same = (one.name, one.account) == (wanted.name, wanted.account)
        if same and (role is not Role.ANALYST or one != wanted):
            place = f"analysts.{toml_key(one.name)}.{toml_key(one.account)}"
            if role is Role.ANALYST:
                raise _contradiction(path, place, one.cap, wanted.cap)
            hint = f"The file decides about the people it names. Delete [{place}] from {path}, and appoint them again."
            raise InvalidParameter("role", role.value, f"to be analyst, as under [{place}]", hint)


def check_cap(config: Config, path: Path, wanted: Project) -> None:
    """Refuses a cap of a project that the file declares otherwise.

    Raises:
        InvalidParameter: with what to write into the file instead.
    """
    for one in config.projects:
        if (one.name, one.account) == (wanted.name, wanted.account) and one.cap != wanted.cap:
            place = f"projects.{toml_key(one.name)}.{toml_key(one.account)}"
            raise _contradiction(path, place, one.cap, wanted.cap)


def check_team(config: Config, path: Path, wanted: DeclaredTeam) -> None:
    """Refuses a team that the file declares otherwise: with another cap, other members or other groups.

    Raises:
        InvalidParameter: with what to write into the file instead.
    """
    for one in config.teams:
        if (one.name, one.account) == (wanted.name, wanted.account) and _parts(one) != _parts(wanted):
            place = f"teams.{toml_key(one.name)}.{toml_key(one.account)}"
            lists = {"members": wanted.members, "groups": wanted.groups}
            lines = [*_cap_lines(wanted.cap), *(f"{key} = {_texts(names)}" for key, names in lists.items() if names)]
            condition, hint = f"to be {describe_team(one)}, as under [{place}]", _write_instead(path, place, lines)
            raise InvalidParameter("team", describe_team(wanted), condition, hint)


def describe_cap(cap: AnyBudget | None) -> str:
    """Returns a cap in words.

    >>> describe_cap(None)
    'no cap'
    """
    return "no cap" if cap is None else f"a cap of {cap}"


def describe_team(team: Team | DeclaredTeam | None) -> str:
    """Returns the cap of a team in words, and who belongs to it.

    >>> from discreet.privacy import PureDP
    >>> describe_team(Team(PureDP(1), ("ana", "ben"), ("dp-heart",)))
    'a cap of epsilon=1 for ana, ben, group dp-heart'
    """
    if team is None:
        return describe_cap(None)
    people = [*sorted({*team.members}), *(f"group {name}" for name in sorted({*team.groups}))]
    return f"{describe_cap(team.cap)} for {', '.join(people) or 'no members'}"


def _parts(team: DeclaredTeam) -> tuple[AnyBudget, set[str], set[str]]:
    return team.cap, {*team.members}, {*team.groups}


def _contradiction(path: Path, place: str, declared: AnyBudget | None, cap: AnyBudget | None) -> InvalidParameter:
    shown, hint = "none" if cap is None else cap, _write_instead(path, place, _cap_lines(cap))
    return InvalidParameter("cap", shown, f"to be {describe_cap(declared)}, as under [{place}]", hint)


def _write_instead(path: Path, place: str, lines: Iterable[str]) -> str:
    """Returns the hint with the lines that make the file say what a steward wants."""
    hint = "The file decides about the names in it, and the next query would undo this."
    return "\n".join((f"{hint} Write this into {path}, and run `discreet protect`:", f"[{place}]", *lines))


def _cap_lines(cap: AnyBudget | None) -> list[str]:
    return [] if cap is None else [f'{key} = "{amount}"' for key, amount in _amounts(cap).items()]


def _texts(names: Iterable[str]) -> str:
    """Returns names as a list of TOML."""
    return json.dumps(sorted({*names}), ensure_ascii=False).replace("\x7f", "\\u007f")


def _amounts(budget: AnyBudget) -> dict[str, str]:
    """Returns the amounts above 0 as people write them, as decimals where these are exact, and a calendar."""
    loss, schedule = split(budget)
    amounts = {name: Fraction(amount) for name, amount in write_loss(loss).items()}
    told = {name: (decimal(amount), amount) for name, amount in amounts.items() if amount}
    exact = {name: short if Fraction(short) == amount else str(amount) for name, (short, amount) in told.items()}
    return exact if schedule is None else {**exact, **write_calendar(schedule)}
