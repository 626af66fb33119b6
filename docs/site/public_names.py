"""The public names of the library: what the reference lists, and what the tests compare it with."""

from __future__ import annotations

from dataclasses import dataclass

from docs.site.source_names import Definition, exports, module_definition, resolve

BESIDE = (
    "discreet.curator",
    "discreet.audit.mechanisms.goodness_of_fit",
    "discreet.presentation.ledger_report.report_page",
    "discreet.engines.postgres",
    "discreet.engines.spark",
    "discreet.noise.experiment",
    "discreet.remote.dbapi",
    "discreet.service.settings",
    "discreet.statistics.diagnostics",
)
"""Modules that no `__all__` above them names, and from which pages import, or whose settings they show."""


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """A module that offers names.

    Attributes:
        path: the dotted name that people import.
        definition: the module behind it.
        names: what it offers that is no module, in the order of the alphabet.
        rooms: paths of the modules that it offers.
    """

    path: str
    definition: Definition
    names: dict[str, Definition]
    rooms: tuple[str, ...]


def rooms() -> list[Room]:
    """Returns all public modules: the front door, what it offers, what these offer, and those beside.

    >>> [room.path for room in rooms()][:3]
    ['discreet', 'discreet.accounting', 'discreet.attacks']
    """
    found = {room.path: room for path in ("discreet", *BESIDE) for room in _below(path, module_definition(path))}
    return [found[path] for path in sorted(found)]


def _below(path: str, module: Definition) -> list[Room]:
    resolved = {name: resolve(module.module, name) for name in sorted(exports(module.module), key=str.lower)}
    inner = {f"{path}.{name}": one for name, one in resolved.items() if one.is_module}
    names = {name: one for name, one in resolved.items() if not one.is_module}
    room = Room(path, module, names, tuple(inner))
    return [room, *(below for there, one in inner.items() for below in _below(there, one))]
