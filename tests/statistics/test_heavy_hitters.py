"""Texts that many have: what is counted, thresholds and the price of a tree, what is found, mutants, refusals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import special

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import PartitionSelection
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from discreet.statistics import PrefixTree, heavy_hitters
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.effort import some

WORDS = ["", "a", "ab", "abc", "b"]


def tree(**options: Any) -> PrefixTree:
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-3, "lengths": (1, 2)} | options
    return PrefixTree(**given)


@contextmanager
def counted(found: Callable[[set[Any]], set[Any]]) -> Iterator[list[Any]]:
    """What each level counts, if these are the nodes that it shows."""
    seen: list[Any] = []

    def shown(_: PrefixTree, counts: Counter[Any], __: Any) -> dict[Any, int]:
        seen.append(counts)
        return dict.fromkeys(found(set(counts)), 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrefixTree, "_release_level", shown)
        yield seen


SHOWN: list[Callable[[set[Any]], set[Any]]] = [
    lambda nodes: nodes,
    lambda _: set(),
    lambda nodes: {node for node in nodes if node[0].startswith("a")},
    lambda nodes: {node for node in nodes if not node[1]},
]


def test_a_unit_moves_one_count_of_each_level() -> None:
    """A unit moves one count of each level at most, by one, whatever the levels before have shown."""
    for base, own, found in product((["ab", "b"], ["abc", "abc", "a"]), WORDS, SHOWN):
        with counted(found) as one:
            tree(lengths=(1, 2, 3)).release(base, bits=NoBits())
        fixed = [found(set(counts)) for counts in one]
        shows = iter(fixed)
        with counted(lambda _: next(shows)) as other:  # noqa: B023 - used at once
            tree(lengths=(1, 2, 3)).release([*base, own], bits=NoBits())
        for a, b in zip(one, other, strict=True):
            moves = [abs(a[node] - b[node]) for node in {**a, **b}]
            assert sum(moves) <= 1


def test_what_was_shown_as_a_whole_is_not_counted_again() -> None:
    with counted(lambda nodes: nodes) as seen:
        tree(lengths=(1, 2, 4)).release(["a", "ab", "abcdef", "abc", None], bits=NoBits())
    assert seen == [
        {("a", True): 1, ("a", False): 3},
        {("ab", True): 1, ("ab", False): 2},
        {("abc", True): 1, ("abcd", False): 1},
    ]


def judge_threshold(mechanism: PrefixTree, threshold: int) -> None:
    """On all levels together, the chance that something of one unit alone is shown is at most half of delta."""
    levels = len(mechanism.lengths)
    alone = float(special.ndtr(-(threshold - 1.5) / float(mechanism.sigma)))
    assert levels * alone <= float(mechanism.delta) / 2 * (1 + 1e-9)


@every("lengths", [(1,), (2, 4, 8, 16, 32)])
@every("neighbours", list(Neighbours))
@every(("epsilon", "delta"), some([(1, 1e-6), ("0.1", 1e-3)], 3))
def test_thresholds_and_prices(lengths: tuple[int, ...], **options: Any) -> None:
    mechanism = tree(lengths=lengths, **options)
    judge_threshold(mechanism, mechanism.threshold)
    with pytest.raises(AssertionError):
        judge_threshold(mechanism, mechanism.threshold - 1)
    assert accounting.epsilon([mechanism.event], mechanism.delta) <= mechanism.epsilon
    sides = 1 if mechanism.neighbours is Neighbours.ADD_REMOVE else 2
    (repeated,) = mechanism.event.events
    assert isinstance(repeated, events.Repeated)
    assert repeated.count == len(lengths)
    noise, _ = repeated.event.events  # type: ignore[attr-defined]
    assert sides * noise.noise_multiplier**2 <= mechanism.sigma**2  # a replaced unit moves two counts


def test_mutant_delta_of_one_level_for_all() -> None:
    mechanism = tree(lengths=(2, 4, 8))
    far = float(mechanism.sigma) * -float(special.ndtri(float(mechanism.delta) / 2))
    with pytest.raises(AssertionError):
        judge_threshold(mechanism, math.ceil(1.5 + far))


# ------------------------------------------------------------------------------------------------------------- findings
def people() -> list[str | None]:
    """Words as frequent as 1 / rank, and everybody's own."""
    common = [f"{'xyz'[i % 3]}{i}" * (1 + i % 3) for i in range(1, 60) for _ in range(3000 // i)]
    return [*common, *(f"x only {i}" for i in range(2000)), None, ""]


@pytest.mark.parametrize("method", ["selection", "tree"])
def test_common_texts_are_found_and_nobodys_own(method: Any, bits: SeededBits) -> None:
    truth = Counter(people())
    found = heavy_hitters(people(), epsilon=2, delta=1e-6, method=method, confidence=0.999, bits=bits)
    assert not any("only" in text for text in found.texts)
    rule = tree(epsilon=2, delta=1e-6, lengths=(2, 4, 8, 16, 32)) if method == "tree" else None
    least = PartitionSelection(epsilon=2, delta=1e-6).half_kept_count() if rule is None else rule.threshold
    assert {text for text, count in truth.items() if count > 2 * least and text} <= set(found.texts)
    exact = np.array([truth[text] for text in found.texts])
    assert np.mean((found.counts.low <= exact) & (exact <= found.counts.high)) > 0.95
    assert found.counts.value.tolist() == sorted(found.counts.value.tolist(), reverse=True)
    assert len(found) == len(found.texts)
    assert "NOT PRIVATE" in str(found)


def test_beginnings_that_many_have_are_shown_where_whole_texts_are_rare(bits: SeededBits) -> None:
    shown = {(text, whole) for text, whole, _ in tree(lengths=(2, 8)).release(people(), bits=bits)}
    assert ("x ", False) in shown
    assert ("x only 1", False) in shown
    assert all(not whole or "only" not in text for text, whole in shown)


def test_the_noise_of_a_tree_has_the_size_it_claims(bits: SeededBits) -> None:
    """The square of 40 counts' errors over sigma^2 lies between 9 and 100, but for one time in 10^9."""
    mechanism = tree(epsilon=0.5, delta=1e-3, lengths=(3,))
    found = mechanism.estimate([f"{i:03}" for i in range(40) for _ in range(1000)], bits=bits)
    square = float((((found.value - 1000) / float(mechanism.sigma)) ** 2).sum())
    assert special.gammaincinv(20, 1e-9) * 2 < square < special.gammainccinv(20, 1e-9) * 2
    assert found.event == mechanism.event


def test_a_unit_that_is_replaced_has_two_counts() -> None:
    for method in ("selection", "tree"):
        both = [
            heavy_hitters(["a"] * 200, epsilon=1, delta=1e-6, method=method, neighbours=one, bits=SeededBits(1)).counts
            for one in Neighbours
        ]
        assert len({str(one.high - one.low) for one in both}) == 2
    assert len(heavy_hitters([], epsilon=1, delta=1e-6, bits=SeededBits(1))) == 0
    assert len(heavy_hitters([], epsilon=1, delta=1e-6, method="tree", bits=SeededBits(1))) == 0


@every(
    ("name", "value"),
    [
        *(("epsilon", value) for value in (0, -1, math.nan, True, None)),
        *(("delta", value) for value in (0, 1, math.nan, None)),
        *(("lengths", value) for value in ((), (2, 2), (3, 1), (0,), (1.5,), "ab", 5, None, range(1, 1000))),
        *(("method", value) for value in ("trie", None, 1)),
        *(("neighbours", value) for value in ("swap", None)),
        *(("confidence", value) for value in (0, 1, None)),
    ],
)
def test_bad_parameters_are_refused(name: str, value: object) -> None:
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "method": "tree"} | {name: value}
    with pytest.raises(InvalidParameter) as caught:
        heavy_hitters(["a"], **given, bits=NoBits())
    assert caught.value.name == name


@every("x", [5, "abc", b"abc", [1], [["a"]], [math.nan], None])
@every("method", ["selection", "tree"])
def test_bad_texts_are_refused_before_a_draw(x: object, method: Any) -> None:
    with pytest.raises(InvalidValue):
        heavy_hitters(x, epsilon=1, delta=1e-6, method=method, bits=NoBits())
