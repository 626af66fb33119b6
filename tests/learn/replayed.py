"""Record and replay: what meets noise, when every release is forced to say the same whatever the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet.noise import SeededBits
from discreet.noise.experiment import normals


def recorded(
    patch: pytest.MonkeyPatch, mechanism: type, run: Callable[[], Any], *, size: float = 1.0, first: int = 0
) -> list[tuple[Any, np.ndarray[Any, Any]]]:
    """Each mechanism that released during a run, with its exact input; its outputs are made up from a fixed seed.

    Outputs have a standard deviation of `size` sensitivities around 0; the first release around `first`.

    Whatever a later input depends on is then the same for neighbours, but for the row that differs.
    """
    found: list[tuple[Any, np.ndarray[Any, Any]]] = []
    made_up = SeededBits(99)

    def release(self: Any, value: Any, **_: Any) -> Any:
        found.append((self, np.array(value)))
        noise = np.rint(size * float(self.sensitivity) * normals(np.shape(value), bits=made_up)).astype(np.int64)
        return noise + (first if len(found) == 1 else 0)

    with patch.context() as patched:
        patched.setattr(mechanism, "release", release)
        run()
    return found


def worst_excess(
    patch: pytest.MonkeyPatch, mechanism: type, run: Callable[[Any], Any], pairs: list[tuple[Any, Any]], **made_up: Any
) -> float:
    """The largest move of an input between neighbours, in the L2 norm, over the sensitivity it was released with."""
    worst = 0.0
    for here, there in pairs:
        one = recorded(patch, mechanism, partial(run, here), **made_up)
        other = recorded(patch, mechanism, partial(run, there), **made_up)
        assert [(a[0], a[1].shape) for a in one] == [(b[0], b[1].shape) for b in other]
        for (used, a), (_, b) in zip(one, other, strict=True):
            move = float(np.sqrt(np.sum((a - b).astype(np.float64) ** 2)))
            worst = max(worst, move / float(used.sensitivity))
    return worst
