"""Estimates: a value, its interval, its event, and the mark of seeded randomness."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.exact import Interval
from discreet.privacy import Estimate, events

EVENT = events.Pure(1)


def test_fields_and_defaults() -> None:
    estimate = Estimate(42, 39, 45, EVENT)
    assert (estimate.value, estimate.low, estimate.high, estimate.event) == (42, 39, 45, EVENT)
    assert (estimate.confidence, estimate.private) == (Fraction(19, 20), True)
    assert estimate.interval == Interval(39, 45)
    assert Estimate(1, 0, 2, EVENT, confidence=0.9).confidence == Fraction(9, 10)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(42, 39, 45, EVENT), "42 [39, 45]"),
        (Estimate(0.1 + 0.2, 0.0, 1e9, EVENT), "0.3 [0, 1e+09]"),
        (Estimate(np.float64(1.5), np.float64(1), np.float64(2), EVENT), "1.5 [1, 2]"),
        (Estimate(1, 0, 2, EVENT, private=False), "1 [0, 2] NOT PRIVATE (seeded randomness)"),
        (Estimate(np.zeros(0), np.zeros(0), np.zeros(0), EVENT), ""),
    ],
)
def test_text(estimate: Estimate, text: str) -> None:
    assert str(estimate) == text


def test_text_of_a_large_array_is_short() -> None:
    table = np.arange(1000).reshape(10, 100)
    lines = [line.split(maxsplit=2) for line in str(Estimate(table, table - 1, table + 1, EVENT)).splitlines()]
    assert [line[-1] for line in lines[2:8]] == ["0 [-1, 1]", *(f"{i} [{i - 1}, {i + 1}]" for i in range(1, 6))]
    assert lines[7][:2] == ["0,", "5"]
    assert lines[8:] == [["-", "1,000", "in all"]]


def test_arrays_are_tables() -> None:
    lines = str(Estimate([1.5, 2.0], [0.0, 1.0], [2.0, 3.0], EVENT, confidence=0.9, private=False)).splitlines()
    assert lines[0] == "NOT PRIVATE (seeded randomness)"
    assert lines[1].split(maxsplit=1) == ["entry", "value [90 % interval]"]
    assert [line.split(maxsplit=1) for line in lines[3:]] == [["0", "1.5 [0, 2]"], ["1", "2 [1, 3]"]]


def test_a_notebook_shows_a_table() -> None:
    one = Estimate(42, 39, 45, EVENT, private=False)._repr_html_()
    assert all(part in one for part in ("42 [39, 45]", "95 % interval", "NOT PRIVATE"))
    assert "entry" not in one
    assert Estimate(np.arange(10), np.arange(10), np.arange(10), EVENT)._repr_html_().count("<tr>") == 7


@pytest.mark.parametrize(
    ("arguments", "options", "name"),
    [
        ((1, [0], 2, EVENT), {}, "low"),
        ((np.zeros(3), np.zeros(3), np.zeros(2), EVENT), {}, "high"),
        ((1, 0, 2, "pure"), {}, "event"),
        ((1, 0, 2, EVENT), {"confidence": 1}, "confidence"),
        ((1, 0, 2, EVENT), {"confidence": 95}, "confidence"),
        ((1, 0, 2, EVENT), {"private": "no"}, "private"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        Estimate(*arguments, **options)
    assert refusal.value.name == name


def test_estimates_are_frozen_and_compare_by_identity() -> None:
    estimate = Estimate(np.zeros(2), np.zeros(2), np.zeros(2), EVENT)
    with pytest.raises(AttributeError):
        estimate.private = False  # type: ignore[misc]
    assert hash(estimate) == hash(estimate)
    assert estimate != Estimate(np.zeros(2), np.zeros(2), np.zeros(2), EVENT)
