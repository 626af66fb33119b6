"""After the price: budgets that are none, and limits that are none."""

from __future__ import annotations

from typing import Any

from tests.corpus.hostile.case import Case

COUNT = "SELECT COUNT(*) AS n FROM visits"

NONSENSE: dict[str, dict[str, Any]] = {
    "nothing": {"epsilon": 0},
    "less than nothing": {"epsilon": -1},
    "no number": {"epsilon": float("nan")},
    "all": {"epsilon": float("inf")},
    "a truth value": {"epsilon": True},
    "a word": {"epsilon": "much"},
    "none": {"epsilon": None},
    "a list": {"epsilon": [1]},
    "next to nothing": {"epsilon": "1e-400"},
    "more than there is": {"epsilon": 10**40},
    "a negative delta": {"epsilon": 1, "delta": -1e-9},
    "a certain delta": {"epsilon": 1, "delta": 1},
    "a delta that is no number": {"epsilon": 1, "delta": float("nan")},
    "a confidence of one": {"epsilon": 1, "confidence": 1},
    "a confidence that is no number": {"epsilon": 1, "confidence": float("nan")},
    "limits of another kind": {"epsilon": 1, "limits": (1, 1)},
    "an analyst who is nobody": {"epsilon": 1, "analyst": ""},
    "a key that is no text": {"epsilon": 1, "key": 7},
}

CASES: tuple[Case, ...] = tuple(
    Case(name=f"epsilon: {name}", sql=COUNT, asked=asked) for name, asked in NONSENSE.items()
)
