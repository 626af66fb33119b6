"""Releases as the ledger keeps them: noisy statistics, from which all that follows is answered for free."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.curator.catalog.declarations import declaration
from discreet.measurement.program.execution import Released
from discreet.measurement.program.program import Program
from discreet.plan.canonical import origin, replay
from discreet.plan.model.schema import TableSchema
from discreet.privacy import events

VERSION = 4
FORMER = 3  # values on a single grid, whose rounding intervals did not count

Rebuild = Callable[[Fraction, Fraction], Program]
"""The same question's program at another epsilon and delta."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The budget a release was chosen for."""

    epsilon: Fraction
    delta: Fraction


def replay_key(program: Program, tables: Sequence[TableSchema]) -> str:
    """What two questions must share for one release to serve both: everything but budget and post-processing."""
    limits = program.contribution.limits
    parts = [replay(program.question), [limits.groups, limits.rows]]
    return area(program, tables) + _digest(parts)


def area(program: Program, tables: Sequence[TableSchema]) -> str:
    """How the replay keys of all questions about the same rows begin: tables as declared, and what is made of them."""
    parts = [
        origin(program.question),
        [[declaration(table), table.version] for table in tables],
        program.contribution.neighbours.value,
    ]
    return f"{_digest(parts)[:32]}:"


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def pack(released: Released, asked: Asked, *, private: bool, beside: Mapping[str, Any] | None = None) -> str:
    """A release as JSON: exact integers, keys with their types, what it was chosen for, and whether it may be shown.

    Args:
        released: what is kept.
        asked: the budget its program was chosen for.
        private: whether its noise was.
        beside: what else its program was built from.
    """
    return json.dumps(
        {
            **(beside or {}),
            "version": VERSION,
            "private": private,
            "epsilon": str(asked.epsilon),
            "delta": str(asked.delta),
            "limits": [released.program.contribution.limits.groups, released.program.contribution.limits.rows],
            "event": events.to_json(released.program.event),
            **_block(released),
            **({"blocks": [_block(one) for one in released.beside]} if released.beside else {}),
        }
    )


def _block(released: Released) -> dict[str, Any]:
    return {
        "keys": [[_written(value) for value in key] for key in released.keys],
        "noisy": [[int(v) for v in row] for row in released.noisy],
    }


def is_former(fields: Mapping[str, Any]) -> bool:
    """Whether a release was made on the former grid: by another program, whose intervals stay what they were."""
    return bool(fields["version"] == FORMER)


def unpack(payload: bytes | str, rebuild: Rebuild, *, private: bool) -> Released | None:
    """The release that `pack` wrote; the program must be rebuilt as `is_former` says.

    None if this version of the library would have released it differently, or if one of the two has seeded noise: what
    a test released must never come back as a private answer.
    """
    fields = json.loads(payload)
    if fields["version"] not in (FORMER, VERSION) or fields["private"] is not private:
        return None
    program = rebuild(Fraction(fields["epsilon"]), Fraction(fields["delta"]))
    if events.to_json(program.event) != fields["event"]:
        return None
    blocks = zip(program.beside, fields.get("blocks", ()), strict=True)
    return _release(program, fields, [_release(*block) for block in blocks])


def _release(program: Program, fields: Mapping[str, Any], beside: Sequence[Released] = ()) -> Released:
    keys = [tuple(_read(value) for value in key) for key in fields["keys"]]
    noisy = np.array(fields["noisy"], dtype=object).reshape(len(keys), program.width)
    return Released(program, keys, noisy, beside)


def serves(released: Released, wanted: Program) -> bool:
    """Whether a release has, for each aggregate, noise no larger than the one asked for."""
    pairs = zip((released.program, *released.program.beside), (wanted, *wanted.beside), strict=True)
    return all(
        given.estimators[name].variance(given.noise) <= estimator.variance(asked.noise)
        for given, asked in pairs
        for name, estimator in asked.estimators.items()
    )


def _written(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    return value


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return dt.date.fromisoformat(text) if kind == "date" else dt.datetime.fromisoformat(text)
