"""A clock to be set, and people to try the service with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity import Identities, SessionLimits
from discreet.service.identity.people import LOCAL

NOON = 1_800_000_000.0 - 1_800_000_000.0 % 86400 + 43200
"""Some day, 12:00 UTC."""


@dataclass
class Clock:
    """Stands still until it is moved."""

    now: float = NOON

    def __call__(self) -> float:
        return self.now


@dataclass
class Recorded:
    """What was told to the ledger, and whether the ledger can be written."""

    acts: list[tuple[str, str, str, str]] = field(default_factory=list)
    broken: bool = False

    def __call__(self, act: str, *, by: str, about: str, key: str = "", role: ServiceRole | None = None) -> None:
        assert (act == "make person") == (role is not None)
        if self.broken:
            raise OSError("the ledger cannot be written")
        self.acts.append((act, by, about, key))


@dataclass
class Office:
    """Identities with a clock and a record, and a caller of each role with a key of their own."""

    path: str | Path = ":memory:"
    clock: Clock = field(default_factory=Clock)
    recorded: Recorded = field(default_factory=Recorded)

    def __post_init__(self) -> None:
        self.identities = Identities(self.path, record=self.recorded, limits=SessionLimits(), clock=self.clock)
        self.texts: dict[str, str] = {}
        self.owner = LOCAL
        self.sam = self.person("sam", ServiceRole.STEWARD)
        self.sue = self.person("sue", ServiceRole.STEWARD)
        self.ana = self.person("ana", ServiceRole.ANALYST)
        self.ben = self.person("ben", ServiceRole.ANALYST)
        self.eve = self.person("eve", ServiceRole.AUDITOR)

    def person(self, name: str, role: ServiceRole) -> ServiceCaller:
        """Makes somebody, with a key."""
        _, self.texts[name] = self.identities.make_key(LOCAL, name, role)
        return self.identities.authenticate_key(self.texts[name])

    def session(self, name: str) -> str:
        """Signs somebody in."""
        return self.identities.sign_in(self.identities.make_link(LOCAL, name))
