"""Numbers as text never promise more than the interval does."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report.display import measured, plain

FINITE = st.floats(-1e12, 1e12)
_PARTS = re.compile(r"(\S+) \((\S+) to (\S+)\)")


@given(FINITE, FINITE, FINITE)
def test_written_ends_hold_the_interval(a: float, b: float, c: float) -> None:
    low, value, high = sorted((a, b, c))
    match = _PARTS.fullmatch(measured(value, low, high))
    assert match is not None
    written = [float(part.replace(",", "")) for part in match.groups()]
    assert written[1] <= low
    assert written[2] >= high
    assert written[1] <= written[0] <= written[2]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((1466, 1346, 1586), "1,466 (1,346 to 1,586)"),
        ((2.6, 1.04, 4.26), "2.6 (1.0 to 4.3)"),
        ((0.0, -0.001, 0.001), "0.0000 (-0.0010 to 0.0010)"),
        ((5.0, 5.0, 5.0), "5.0 (5.0 to 5.0)"),
        ((7, -math.inf, math.inf), "7 (no bounds)"),
        ((7.5, 7.0, math.inf), "7.50 (7.00 to no bound)"),
        ((None, -math.inf, math.inf), "no value"),
        ((3 * 10**20, 10**20, 4 * 10**20), "3e+20 (1e+20 to 4e+20)"),
    ],
)
def test_measured(parts: tuple[float | None, float, float], text: str) -> None:
    assert measured(*parts) == text


def test_names_cannot_steer_what_shows_them() -> None:
    assert plain("a\x1b[2J\u202eb\n") == "a\\x1b[2J\\u202eb\\n"
