"""Frequent strings in the local model: found if they are frequent, and nothing else; exact law; refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidParameter, InvalidValue
from discreet.local import HeavyHitters, heavy_hitters
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.conformance.nothing import NoBits
from tests.local.exact_laws import judge_privacy, report_law

NAMES = {"anna": 4000, "annabel": 2500, "otto": 2000, "o": 1500}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def people() -> list[str]:
    rare = [f"{a}{b}x{c}" for a in LETTERS for b in LETTERS for c in LETTERS[:3]]  # each of 2,028 strings once
    return [name for name, count in NAMES.items() for _ in range(count)] + rare


def test_reports_are_exactly_private() -> None:
    """All texts of up to two symbols, whatever their number of blocks and their hash function."""
    finder = HeavyHitters(epsilon=Fraction(1, 2), length=2, alphabet="ab")
    assert (finder.levels, finder.hashes) == (1, 2)
    judge_privacy([report_law(finder, text) for text in ("", "a", "b", "ab", "bb")], Fraction(1, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heavy_hitters, "_BLOCK_BITS", 2)  # one symbol a block
        assert finder.levels == 2
        judge_privacy([report_law(finder, text) for text in ("", "a", "b", "ab", "bb")], Fraction(1, 2))


def test_frequent_strings_are_found_and_no_others(bits: SeededBits) -> None:
    """12,028 people in four groups: the share of a string has a deviation of 0.01, and the rarest one is 0.12."""
    finder = HeavyHitters(epsilon=3, length=8, alphabet=LETTERS)
    assert finder.levels == 4
    found = finder.estimate(finder.privatize(people(), bits=bits))
    assert set(found) == set(NAMES)
    for name, count in NAMES.items():
        share = count / len(people())
        assert found[name].low <= share <= found[name].high
        assert found[name].event == finder.event == events.Pure(3)
        assert not found[name].private
    assert next(iter(found)) == "anna"
    assert "annabel" in str(found)


def test_any_text_is_taken_byte_by_byte(bits: SeededBits) -> None:
    finder = HeavyHitters(epsilon=6, length=6)
    texts = ["Zoë", "山", "", "Zoë"] * 1500 + ["longer than six bytes"] * 1500
    found = finder.estimate(finder.privatize(np.array(texts, dtype=object), bits=bits))
    assert set(found) == {"Zoë", "山", "", "longer"}
    assert found["Zoë"].low < 0.4 < found["Zoë"].high


def test_nothing_is_found_where_nothing_is_frequent(bits: SeededBits) -> None:
    """Of strings that one person each has, one is reported with a probability of 5 % at most; the seed is fixed."""
    finder = HeavyHitters(epsilon=1, length=4, alphabet=LETTERS)
    rare = [a + b + c + "q" for a in LETTERS for b in LETTERS for c in LETTERS[:4]]
    assert len(finder.estimate(finder.privatize(rare, bits=bits))) == 0
    assert len(finder.estimate(finder.privatize(["abcd"], bits=bits))) == 0


def test_one_report_moves_a_share_by_its_influence_at_most(bits: SeededBits) -> None:
    finder = HeavyHitters(epsilon=4, length=2, alphabet="abc")
    rows = finder.privatize(["ab"] * 400 + ["c"] * 200, bits=bits).rows
    before = finder.estimate(rows)
    moved = []
    for row in finder.privatize(["ab", "c", "bb", "a"] * 20, bits=bits).rows:
        other = rows.copy()
        other[0] = row
        moved.append(abs(finder.estimate(other)["ab"].value - before["ab"].value))
    assert max(moved) == pytest.approx(finder.influence(600))


def test_bad_input_is_refused(bits: SeededBits) -> None:
    finder = HeavyHitters(epsilon=1, length=3, alphabet="abc")
    for value in ("d", ["a", "A"], [1], [None], 3, ["a\x00"]):
        with pytest.raises(InvalidValue):
            finder.privatize(value, bits=NoBits())
    with pytest.raises(InvalidValue):
        HeavyHitters(epsilon=1).privatize("a\x00b", bits=NoBits())
    for alphabet in ("", "a", "aa", "a\x1b", 3):
        with pytest.raises(InvalidParameter, match="alphabet"):
            HeavyHitters(epsilon=1, alphabet=alphabet)  # type: ignore[arg-type]
    for length in (0, 65, 1.5):
        with pytest.raises(InvalidParameter, match="length"):
            HeavyHitters(epsilon=1, length=length)  # type: ignore[arg-type]
    reports = finder.privatize(["a", "abc"], bits=bits)
    with pytest.raises(InvalidParameter, match="for this oracle"):
        HeavyHitters(epsilon=1, length=4, alphabet="abc").estimate(reports)
    for place, wrong in ((0, finder.levels), (0, -1), (1, finder.hashes), (2, 1 << 20), (2, -1)):
        rows = reports.rows.copy()
        rows[0, place] = wrong
        with pytest.raises(InvalidParameter, match="1 impossible rows"):
            finder.estimate(rows)
        assert len(finder.estimate(rows, drop=True)) >= 0
    with pytest.raises(InvalidParameter, match="at least one report"):
        finder.estimate(reports[:0])
    assert math.isclose(finder.influence(10), finder.influence(1) / 10)
