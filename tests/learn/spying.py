"""What a fit hands to its mechanisms: exact integers, and the deviations of the noise that will cover them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.mechanisms import Gaussian
from discreet.noise import Bits


@dataclass(frozen=True)
class Told:
    """One value on its way into Gaussian noise."""

    sigma: Fraction
    value: Any


def told(fit: Callable[[], Any], outputs: list[Any] | None = None) -> list[Told]:
    """The values that a fit hands to `Gaussian.release`, in order; with `outputs`, those are returned in their place.

    What a later stage does depends only on what earlier ones released: forcing the same outputs on neighbours shows
    whether that is so.
    """
    found: list[Told] = []
    honest = Gaussian.release

    def release(self: Gaussian, value: Any, *, bits: Bits | None = None) -> Any:
        found.append(Told(self.sigma, np.array(value, copy=True)))
        return honest(self, value, bits=bits) if outputs is None else outputs[len(found) - 1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gaussian, "release", release)
        fit()
    return found


def replies(fit: Callable[[], Any]) -> list[Any]:
    """What the mechanisms of a fit released, in order."""
    found: list[Any] = []
    honest = Gaussian.release

    def release(self: Gaussian, value: Any, *, bits: Bits | None = None) -> Any:
        found.append(honest(self, value, bits=bits))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gaussian, "release", release)
        fit()
    return found


def squared_distance(left: list[Told], right: list[Told]) -> Fraction:
    """The squared distance of two sequences of values, each in deviations of its noise: exact."""
    assert [one.sigma for one in left] == [one.sigma for one in right]
    total = Fraction(0)
    for one, other in zip(left, right, strict=True):
        assert np.array_equal(one.value, np.round(one.value)), "values must be whole numbers"
        move = np.atleast_1d(np.asarray(one.value, dtype=object) - np.asarray(other.value, dtype=object))
        total += Fraction(sum(int(step) ** 2 for step in move.ravel())) / one.sigma**2
    return total
