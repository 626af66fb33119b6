"""Record and replay: what meets noise, when every release is forced to say the same whatever the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from discreet.audit.queries.mechanism_recorder import Call, MechanismRecorder, watch_mechanisms
from discreet.noise import SeededBits
from discreet.noise.experiment import normals


class _MadeUp(MechanismRecorder):
    """Releases of one kind of mechanism are made up; those of others are their own."""

    def __init__(self, kind: type[Any], size: float, first: int) -> None:
        super().__init__()
        self.kind, self.size, self.first = kind, size, first
        self.drawn = SeededBits(99)

    def answer(self, mechanism: Any, inputs: tuple[Any, ...], call: Call) -> Any:
        if not isinstance(mechanism, self.kind):
            return super().answer(mechanism, inputs, call)
        spread = self.size * float(mechanism.sensitivity)
        noise = np.rint(spread * normals(np.shape(inputs[0]), bits=self.drawn)).astype(np.int64)
        return noise + (self.first if not any(isinstance(each.mechanism, self.kind) for each in self.made) else 0)


def recorded(
    mechanism: type[Any], run: Callable[[], Any], *, size: float = 1.0, first: int = 0
) -> list[tuple[Any, np.ndarray[Any, Any]]]:
    """Each mechanism that released during a run, with its exact input; its outputs are made up from a fixed seed.

    Outputs have a standard deviation of `size` sensitivities around 0; the first release around `first`.

    Whatever a later input depends on is then the same for neighbours, but for the row that differs.
    """
    recorder = _MadeUp(mechanism, size, first)
    with watch_mechanisms(recorder):
        run()
    return [
        (each.mechanism, np.array(each.inputs[0])) for each in recorder.made if isinstance(each.mechanism, mechanism)
    ]


def worst_excess(
    mechanism: type[Any], run: Callable[[Any], Any], pairs: list[tuple[Any, Any]], **made_up: Any
) -> float:
    """The largest move of an input between neighbours, in the L2 norm, over the sensitivity it was released with."""
    worst = 0.0
    for here, there in pairs:
        one = recorded(mechanism, partial(run, here), **made_up)
        other = recorded(mechanism, partial(run, there), **made_up)
        assert [(a[0], a[1].shape) for a in one] == [(b[0], b[1].shape) for b in other]
        for (used, a), (_, b) in zip(one, other, strict=True):
            move = float(np.sqrt(np.sum((a - b).astype(np.float64) ** 2)))
            worst = max(worst, move / float(used.sensitivity))
    return worst
