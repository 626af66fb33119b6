"""Checks used on the real code, which must pass them, and on mutants, which must not."""

from __future__ import annotations

from typing import Any


def above_and_near(found: float, exact: Any, near: float = 1e-6, floor: float = 1e-12) -> None:
    """An upper bound of the exact number, and not much more: the float may lie half a unit below it, no further."""
    assert found >= exact * (1 - 2.0**-52), f"{found} is below the truth {exact}"
    assert found <= exact * (1 + near) + floor, f"{found} is far above the truth {exact}"
