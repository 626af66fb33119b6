"""Searches among points, beside looking at all of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.accounting.numerics import valley


@given(size=st.integers(2, 200), lowest=st.floats(-1.5, 1.5), power=st.floats(0.5, 6))
def test_the_lowest_of_all_points_is_seen(size: int, lowest: float, power: float) -> None:
    points = np.linspace(-1, 1, size)
    looks: list[float] = []

    def function(some: NDArray[np.float64]) -> NDArray[np.float64]:
        looks.extend(some.tolist())
        return np.asarray(np.abs(some - lowest) ** power)

    seen, everything = valley(function, points), np.abs(points - lowest) ** power
    assert seen.min() == everything.min()
    assert seen.argmin() == everything.argmin()
    assert len(looks) == len(set(looks)) <= 14 + size // 7 + 2
    assert ((seen == everything) | np.isinf(seen)).all()
