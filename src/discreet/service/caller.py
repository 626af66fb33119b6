"""Who calls: a proven name, a role, and what it may do; front ends get callers from `identity` and pass them on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from discreet.dataclass import dataclass
from discreet.errors import NotPermitted
from discreet.requests.verb_table import Permission

__all__ = ["PERMISSIONS", "Permission", "ServiceCaller", "ServiceRole"]


class ServiceRole(Enum):
    """What a person may do in the service; caps and appointments on accounts are in the ledger."""

    OWNER = "owner"
    """Runs the service: may do everything, and adds stewards."""

    STEWARD = "steward"
    """Protects tables, gives budgets and keys, looks at history; may ask, and pays like all others."""

    ANALYST = "analyst"
    """Asks queries within an appointment and a cap."""

    AUDITOR = "auditor"
    """Reads the ledger and verifies it; asks nothing."""


_EVERYBODY = {Permission.SEE_TABLES, Permission.SEE_OWN}
_ASKING = _EVERYBODY | {Permission.PLAN, Permission.ASK}
_ALL = frozenset(Permission)
PERMISSIONS: Mapping[ServiceRole, frozenset[Permission]] = {
    ServiceRole.OWNER: _ALL,
    ServiceRole.STEWARD: _ALL,  # who adds whom is decided in `identity`: a steward adds no steward
    ServiceRole.ANALYST: frozenset(_ASKING),
    ServiceRole.AUDITOR: frozenset(_EVERYBODY | {Permission.SEE_ALL, Permission.VERIFY}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCaller:
    """A person who has proven who they are, for one request.

    Attributes:
        name: whose budget is charged, as the ledger calls them.
        role: what they are.
        credential: the public id of the key or session that was shown; it is what limits count, and logs may name it.
        tables: which tables the key is for; None for all.
        project: the project that the key is bound to, "" for none: then a request may name one.
    """

    name: str
    role: ServiceRole
    credential: str
    tables: frozenset[str] | None = None
    project: str = ""

    def may(self, permission: Permission) -> bool:
        """Returns whether their role has a permission."""
        return permission in PERMISSIONS[self.role]

    def require(self, permission: Permission) -> None:
        """Checks that their role has a permission.

        Raises:
            NotPermitted: if it does not.
        """
        if not self.may(permission):
            raise NotPermitted(self.name, permission.value, f"The role {self.role.value!r} does not allow it.")

    def sees(self, table: str) -> bool:
        """Returns whether a table is within what the key is for."""
        return self.tables is None or table in self.tables
