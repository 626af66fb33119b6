"""Weights of a training run in a file: tensors, numbers and texts, which are loaded without running any code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from discreet.errors import InvalidParameter

_OWNER_ONLY = 0o600


def save(path: Path, state: dict[str, Any]) -> None:
    """Writes a state in place of an older one: at every moment one of the two is whole."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def load(path: Path, run: str, taken: int) -> dict[str, Any] | None:
    """Returns the state of a run; None if none was saved.

    Raises:
        InvalidParameter: if it belongs to another run, or knows of more steps than were counted.
    """
    if not path.exists():
        return None
    state: dict[str, Any] = torch.load(path, weights_only=True)
    if state.get("run") != run:
        hint = "Its count of steps is missing or another's: find it, or pass another path to start anew."
        raise InvalidParameter("checkpoint", str(path), "to belong to its count of steps", hint)
    if state["taken"] > taken:
        hint = "Steps would be spent twice. Find the newest count."
        raise InvalidParameter("checkpoint", str(path), "to be no newer than its count of steps", hint)
    return state
