"""An engine that is asked for something else than the curator meant: the hand of a mutant."""

from __future__ import annotations

from collections.abc import Callable

from discreet.audit.queries.recorder import RecordingEngine
from discreet.engines import Memory
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.model.readings import Reading


class Changed(Memory):
    """Changes every reading."""

    def __init__(self, change: Callable[[Reading], Reading]) -> None:
        super().__init__()
        self.change = change

    def read(self, reading: Reading) -> ExactGroups:
        return super().read(self.change(reading))


def changed(change: Callable[[Reading], Reading]) -> RecordingEngine:
    """The same, watched."""
    return RecordingEngine(Changed(change))
