"""An engine that reads everything once: releases that differ in their noise alone."""

from __future__ import annotations

from discreet.measurement.program.execution import Reader
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.model.readings import Reading


class ReadOnce:
    """Reads through another engine, and remembers what it read."""

    def __init__(self, engine: Reader) -> None:
        self._engine, self._read = engine, dict[Reading, ExactGroups]()

    def read(self, reading: Reading) -> ExactGroups:
        if reading not in self._read:
            self._read[reading] = self._engine.read(reading)
        return self._read[reading]
