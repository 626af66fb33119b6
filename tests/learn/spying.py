"""What a fit hands to its mechanisms: exact integers, and the deviations of the noise that will cover them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit.queries.mechanism_recorder import Call, MechanismCall, MechanismRecorder, watch_mechanisms
from discreet.mechanisms import Gaussian


@dataclass(frozen=True)
class Told:
    """One value on its way into Gaussian noise."""

    sigma: Fraction
    value: Any


class _Spy(MechanismRecorder):
    """Keeps everything; Gaussian noise is replaced by outputs, if there are some."""

    def __init__(self, outputs: list[Any] | None) -> None:
        super().__init__()
        self.outputs = None if outputs is None else iter(outputs)

    def answer(self, mechanism: Any, inputs: tuple[Any, ...], call: Call) -> Any:
        if self.outputs is None or not isinstance(mechanism, Gaussian):
            return super().answer(mechanism, inputs, call)
        return next(self.outputs)


def _spied(fit: Callable[[], Any], outputs: list[Any] | None = None) -> list[MechanismCall]:
    spy = _Spy(outputs)
    with watch_mechanisms(spy):
        fit()
    return [handed for handed in spy.made if isinstance(handed.mechanism, Gaussian)]


def told(fit: Callable[[], Any], outputs: list[Any] | None = None) -> list[Told]:
    """The values that a fit hands to `Gaussian.release`, in order; with `outputs`, those are returned in their place.

    What a later stage does depends only on what earlier ones released: forcing the same outputs on neighbours shows
    whether that is so.
    """
    return [Told(handed.mechanism.sigma, np.array(handed.inputs[0])) for handed in _spied(fit, outputs)]


def replies(fit: Callable[[], Any]) -> list[Any]:
    """What the mechanisms of a fit released, in order."""
    return [handed.out for handed in _spied(fit)]


def squared_distance(left: list[Told], right: list[Told]) -> Fraction:
    """The squared distance of two sequences of values, each in deviations of its noise: exact."""
    assert [one.sigma for one in left] == [one.sigma for one in right]
    total = Fraction(0)
    for one, other in zip(left, right, strict=True):
        assert np.array_equal(one.value, np.round(one.value)), "values must be whole numbers"
        move = np.atleast_1d(np.asarray(one.value, dtype=object) - np.asarray(other.value, dtype=object))
        total += Fraction(sum(int(step) ** 2 for step in move.ravel())) / one.sigma**2
    return total
