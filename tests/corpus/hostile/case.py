"""What a hostile question is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question after something that nobody may have, and what must happen.

    Refused: an error with a reason, before anything is read or charged. Harmless: answered or refused alike on
    neighbouring tables, with the same charge and shape, every input of noise as near as its event says.
    """

    name: str
    sql: str
    harmless: bool = False
    world: str = "clinic"
    asked: Mapping[str, Any] = field(default_factory=dict)


def refused(texts: Mapping[str, str], **also: Any) -> tuple[Case, ...]:
    """Questions that must be refused."""
    return tuple(Case(name=name, sql=sql, **also) for name, sql in texts.items())


def harmless(texts: Mapping[str, str], **also: Any) -> tuple[Case, ...]:
    """Questions whose answer says no more than was paid for."""
    return tuple(Case(name=name, sql=sql, harmless=True, **also) for name, sql in texts.items())
