"""Discreet: learn from private data without exposing anyone in it.

Differential privacy with exact discrete noise, a description and a price for every release, and an error bar on every
number. The rooms load when they are first used: ``discreet.mechanisms``, ``discreet.accounting``,
``discreet.privacy``, ``discreet.noise``, ``discreet.errors``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet import accounting, errors, exact, mechanisms, noise, privacy
    from discreet.privacy import Budget

__version__ = "0.1.0"

_ROOMS = ("accounting", "errors", "exact", "mechanisms", "noise", "privacy")
_NAMES = {"Budget": "discreet.privacy"}

__all__ = ["Budget", "accounting", "errors", "exact", "mechanisms", "noise", "privacy"]


def __getattr__(name: str) -> object:
    """Loads a room, or a name from its room, on first use: importing the package itself stays nearly free."""
    if name in _ROOMS:
        return import_module(f"discreet.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
