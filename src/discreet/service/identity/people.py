"""People: their names, and who may make and manage whom."""

from __future__ import annotations

import sqlite3
import unicodedata
from typing import Protocol

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, NotPermitted
from discreet.ledger import OWNER
from discreet.ledger.serialization import name as checked_name
from discreet.service.caller import Permission, ServiceCaller, ServiceRole
from discreet.service.identity.look_alikes import look_alike

LOCAL = ServiceCaller(name=OWNER, role=ServiceRole.OWNER, credential="local")
"""The owner, who starts the service on the machine that holds the files."""

MAKES = {
    ServiceRole.OWNER: (ServiceRole.STEWARD, ServiceRole.AUDITOR, ServiceRole.ANALYST),
    ServiceRole.STEWARD: (ServiceRole.AUDITOR, ServiceRole.ANALYST),
}
"""The roles that each role adds, and whose keys it manages in addition to its own."""


class ActionRecorder(Protocol):
    """Writes actions on people and keys into the ledger; `acts.recorder` makes one."""

    def __call__(self, act: str, *, by: str, about: str, key: str = "", role: ServiceRole | None = None) -> None:
        """Writes one action into the ledger.

        Args:
            act: what was done, such as "make key".
            by: the person who did it.
            about: the person whom it was done to.
            key: the public id of a key; never a secret.
            role: the role of a new person.
        """


def record_nothing(act: str, *, by: str, about: str, key: str = "", role: ServiceRole | None = None) -> None:
    """Writes nothing, for tests and examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person who may be given keys.

    Attributes:
        created, disabled: seconds since 1970; None if they are not disabled.
    """

    name: str
    role: ServiceRole
    created: float
    disabled: float | None = None

    @classmethod
    def of(cls, row: sqlite3.Row) -> Person:
        """Returns the person of a row."""
        role = ServiceRole(row["role"])
        return cls(name=row["name"], role=role, created=row["created"], disabled=row["disabled"])


def fold_name(name: str) -> str:
    r"""Returns a form that names share if they differ only by case or compatible letters.

    >>> fold_name("Owner") == fold_name("owner") == fold_name("\uff4fwner")
    True
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def check_person_name(name: object, role: ServiceRole) -> str:
    """Returns the name of a new person.

    Raises:
        InvalidParameter: if the ledger does not take it as a name, or it looks like the owner's, which is reserved.

    >>> check_person_name("Owner", ServiceRole.ANALYST)
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected name='Owner' not to be the name of the owner. Choose another name.
    """
    called = checked_name(name=name)
    if role is ServiceRole.OWNER and called != OWNER:
        raise InvalidParameter("role", role.value, f"to be the role of {OWNER!r} only", "Make a steward instead.")
    if role is not ServiceRole.OWNER and look_alike(called, OWNER):
        raise InvalidParameter("name", called, "not to be the name of the owner", "Choose another name.")
    return called


def require_whole(by: ServiceCaller, act: str) -> None:
    """Refuses a credential that is for some tables or one project: it would make one that is for more.

    Raises:
        NotPermitted: if it is.
    """
    if by.tables is not None or by.project:
        raise NotPermitted(by.name, act, "This key is for some tables or one project. Use another key, or the page.")


def require_managing(by: ServiceCaller, name: str, role: ServiceRole, act: str) -> None:
    """Checks that a caller may add a person of a role, or act on their keys.

    Raises:
        NotPermitted: if they may not, or their key is for some tables or one project.
    """
    by.require(Permission.MANAGE_PEOPLE)
    require_whole(by, act)
    if not manages(by, name, role):
        raise NotPermitted(by.name, f"{act} for the role {role.value!r}", "Ask the owner.")


def manages(by: ServiceCaller, name: str, role: ServiceRole) -> bool:
    """Returns whether a caller may act on the keys of a person: their own, or those of roles that theirs adds."""
    return by.name == name or role in MAKES.get(by.role, ())
