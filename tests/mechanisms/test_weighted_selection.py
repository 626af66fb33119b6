"""Keys of units that have many: exact chances of a lone unit, the privacy curve on tiny tables, mutants, gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import special

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import PartitionSelection, WeightedSelection
from discreet.mechanisms.partition_selection import share_of_delta
from discreet.mechanisms.tails import normal_reach
from discreet.mechanisms.weighted_selection import _runs
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.effort import some

Unit = frozenset[int]
Table = tuple[Unit, ...]


def weighted(**options: Any) -> WeightedSelection:
    given: dict[str, Any] = {"epsilon": 1, "delta": 0.02, "max_groups": 3, "rounds": 2} | options
    return WeightedSelection(**given)


# ----------------------------------------------------------------------------------------------------- a unit by itself
def judge_lone_units(mechanism: WeightedSelection) -> None:
    """Whatever number of keys a unit has alone, the chance that one of them is shown is at most the share of delta."""
    share = float(mechanism.delta) / (2 * mechanism.rounds)
    for sigma, threshold in zip(mechanism.sigmas, mechanism.thresholds, strict=True):
        for keys in range(1, mechanism.max_groups + 1):
            far = (threshold - mechanism.weight(keys) - 0.5) / float(sigma)  # rounded half up, or to even
            shown = -math.expm1(keys * math.log1p(-float(special.ndtr(-far))))
            assert shown <= share * (1 + 1e-9), keys


def judge_lengths(mechanism: WeightedSelection) -> None:
    """The weights of a unit, and the change of a unit that is replaced, are no longer than the noise is made for."""
    sides = 1 if mechanism.neighbours is Neighbours.ADD_REMOVE else 2
    noises = mechanism.event.events[::2]
    for keys in range(1, mechanism.max_groups + 1):
        square = sides * keys * mechanism.weight(keys) ** 2
        for sigma, noise in zip(mechanism.sigmas, noises, strict=True):
            assert isinstance(noise, events.Gaussian)
            assert square * noise.noise_multiplier**2 <= sigma**2, keys


@every("max_groups", some([5, 1, 40], 3))
@every("rounds", [1, 3])
@every(("epsilon", "delta"), some([(1, 1e-6), ("0.1", 1e-3)], 2))
@every("neighbours", list(Neighbours))
def test_a_lone_unit_is_hidden_and_its_weights_are_covered(**options: Any) -> None:
    mechanism = weighted(**options)
    judge_lone_units(mechanism)
    judge_lengths(mechanism)
    assert accounting.epsilon([mechanism.event], mechanism.delta) <= mechanism.epsilon


def test_thresholds_are_right_to_the_last_step() -> None:
    mechanism = weighted(max_groups=6, delta=1e-6)
    lower = Mutant(mechanism, threshold=lambda right: right - 1)
    judge_lone_units(mechanism)
    with pytest.raises(AssertionError):
        judge_lone_units(lower)  # type: ignore[arg-type]


@dataclass
class Mutant:
    """A mechanism with a mistake."""

    right: WeightedSelection
    threshold: Callable[[int], int] = lambda right: right
    weigh: Callable[[WeightedSelection, int], int] = WeightedSelection.weight

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    @property
    def thresholds(self) -> tuple[int, ...]:
        return tuple(map(self.threshold, self.right.thresholds))

    def weight(self, keys: int) -> int:
        return self.weigh(self.right, keys)


def threshold(mechanism: WeightedSelection, share: float, *, shared: bool = True) -> int:
    """The threshold of the first round for another share of delta, or for one that keys of a unit do not share."""
    sigma, most = float(mechanism.sigmas[0]), mechanism.max_groups
    parts = [-math.expm1(math.log1p(-share) / (t if shared else 1)) for t in range(1, most + 1)]
    return max(math.ceil(mechanism.weight(t + 1) + 0.5 - sigma * special.ndtri(part)) for t, part in enumerate(parts))


def test_mutants_of_weights_and_thresholds_are_seen() -> None:
    """Weights rounded up, or equal; delta not shared by the keys of a unit, or by rounds."""
    mechanism = weighted(max_groups=8, delta=1e-3)
    up = Mutant(mechanism, weigh=lambda right, keys: math.isqrt((4**right.exponent - 1) // keys) + 1)
    counts = Mutant(mechanism, weigh=lambda right, _: right.weight(1))
    for wrong in (up, counts):
        with pytest.raises(AssertionError):
            judge_lengths(wrong)  # type: ignore[arg-type]
    assert abs(threshold(mechanism, 1e-3 / 4) - mechanism.thresholds[0]) <= 1
    lower = [
        threshold(mechanism, 1e-3 / 4, shared=False),
        threshold(mechanism, 1e-3 / 2),
        threshold(mechanism, 2e-3 / 4),
    ]
    for wrong_threshold in lower:
        with pytest.raises(AssertionError):
            judge_lone_units(Mutant(mechanism, threshold=partial(min, wrong_threshold)))  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------- tiny tables
def law(mechanism: WeightedSelection, table: Table, keys: Iterable[int]) -> dict[tuple[Unit, ...], float]:
    """The exact law of what each round finds."""
    laws: dict[tuple[Unit, ...], float] = {(): 1.0}
    for sigma, threshold in zip(mechanism.sigmas, mechanism.thresholds, strict=True):
        following: dict[tuple[Unit, ...], float] = {}
        for before, chance in laws.items():
            seen = frozenset().union(*before)
            left = tuple(unit - seen for unit in table)
            for found, share in round_law(mechanism, left, tuple(keys), (float(sigma), threshold)).items():
                following[(*before, found)] = chance * share
        laws = following
    return laws


def round_law(
    mechanism: WeightedSelection, table: Table, keys: tuple[int, ...], noise: tuple[float, int]
) -> dict[Unit, float]:
    weights, (sigma, threshold) = dict.fromkeys(keys, 0), noise
    for unit in table:
        for key in unit:
            weights[key] += mechanism.weight(len(unit))
    shown = {key: float(special.ndtr((w - threshold + 0.5) / sigma)) if w else 0.0 for key, w in weights.items()}
    subsets = [frozenset(some) for size in range(len(keys) + 1) for some in combinations(keys, size)]
    return {some: math.prod(shown[k] if k in some else 1 - shown[k] for k in keys) for some in subsets}


@cache
def claimed(event: events.Event, epsilon: float) -> float:
    return float(accounting.delta([event], epsilon))


def judge_tables(mechanism: WeightedSelection) -> None:
    """Neighbours of two or three keys and a few units, both ways, at several epsilons."""
    keys = (0, 1)
    own = [frozenset(some) for size in (1, 2) for some in combinations(keys, size)]
    base = [tuple([frozenset({0})] * a + [frozenset({0, 1})] * b) for a, b in product((0, 1, 5, 14), (0, 2, 9))]
    for table, unit in product(base, own):
        p, q = law(mechanism, table, keys), law(mechanism, (*table, unit), keys)
        for epsilon in (0.0, 0.3, 1.0):
            for one, other in ((p, q), (q, p)):
                seen = math.fsum(max(0.0, mass - math.exp(epsilon) * other[key]) for key, mass in one.items())
                assert seen <= claimed(mechanism.event, epsilon) + 1e-12, (table, unit, epsilon)


def test_neighbours_of_tiny_tables_are_told_apart_no_better_than_the_event_says() -> None:
    judge_tables(weighted(max_groups=2, delta=0.1))
    judge_tables(weighted(max_groups=2, delta=1e-3, rounds=1))


def test_mutant_keys_are_shown_as_soon_as_somebody_has_them() -> None:
    with pytest.raises(AssertionError):
        judge_tables(Mutant(weighted(max_groups=2, delta=0.1), threshold=lambda right: right // 3))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------- releases
def test_weights_are_those_of_the_formula(bits: SeededBits) -> None:
    mechanism = weighted(max_groups=2)
    units, keys = np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 0, 1, 2])
    weights = mechanism.weights(units, keys, 3, bits)
    one, half = mechanism.weight(1), mechanism.weight(2)
    assert weights.sum() == one + 4 * half
    assert weights[0] >= one + half
    assert mechanism.weights(units[:0], keys[:0], 2, bits).tolist() == [0, 0]


def test_keys_that_were_found_leave_room_for_others(bits: SeededBits) -> None:
    """40 units weigh 40 alone, and 28 beside a common key: below the threshold of the first round."""
    table = [["common", "rare"]] * 40 + [["common"]] * 500
    mechanism = weighted(epsilon=1, delta=1e-4, max_groups=2)
    first, last = mechanism.thresholds
    assert mechanism.weight(2) * 40 < first
    assert last < mechanism.weight(1) * 40
    found = [mechanism.release([*table, ["only mine"]], bits=bits) for _ in range(20)]
    assert all(one[0] == "common" for one in found)
    assert sum("rare" in one for one in found) >= 18
    assert not any("only mine" in one for one in found)


def test_more_keys_are_found_than_by_equal_counts(bits: SeededBits) -> None:
    """People of one to ten words each, words as frequent as 1 / rank: half as many again is the least to ask for."""
    chances = np.cumsum(1 / np.arange(1, 3001)) / np.sum(1 / np.arange(1, 3001))
    sizes = 1 + (bits.words(8000) >> np.uint64(61)).astype(int)
    words = np.searchsorted(chances, bits.words(int(sizes.sum())) / 2.0**64)
    table = [part.tolist() for part in np.split(words, np.cumsum(sizes)[:-1])]
    found = len(weighted(delta=1e-6, max_groups=8).release(table, bits=bits))
    once = len(weighted(delta=1e-6, max_groups=8, rounds=1).release(table, bits=bits))
    counts = np.bincount([key for unit in table for key in set(unit)], minlength=3000)
    best = int(PartitionSelection(epsilon=1, delta=1e-6, max_groups=8).select(counts, bits=bits).sum())
    assert found > once > 1.2 * best
    assert found > 1.5 * best


def test_the_same_seed_finds_the_same_keys() -> None:
    table = [[n % 7, n % 5] for n in range(300)]
    found = [weighted().release(table, bits=SeededBits(4)) for _ in range(2)]
    assert found[0] == found[1]
    shown = weighted().estimate(table, bits=SeededBits(4))
    assert tuple(shown.value) == found[0]
    assert (shown.low >= 1).all()
    assert np.isinf(shown.high).all()
    assert weighted().release([], bits=SeededBits(1)) == ()


@every(
    ("name", "value"),
    [
        *(("epsilon", value) for value in (0, -1, math.nan, True, 10**5, "1e-9")),
        *(("delta", value) for value in (0, 1, math.nan, "1e-200")),
        *((name, value) for name in ("max_groups", "rounds") for value in (0, -1, True, 1.5, None, 10**7)),
        ("neighbours", "swap"),
    ],
)
def test_bad_parameters_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidParameter) as caught:
        weighted(**{name: value})
    assert caught.value.name == name


@every("table", [5, "ab", ["ab"], [5], [[1, "a"]], [[1.5]], [[None]], [[True]]])
def test_bad_tables_are_refused_before_a_draw(table: object) -> None:
    with pytest.raises(InvalidValue):
        weighted().release(table, bits=NoBits())


@pytest.mark.parametrize("max_groups", [1, 3, 12, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "60", "1000"])
def test_a_threshold_is_the_largest_over_all_numbers_of_keys(epsilon: str, max_groups: int) -> None:
    """Runs that are skipped would not have raised it."""
    mechanism = WeightedSelection(epsilon=epsilon, delta="1e-6", max_groups=max_groups, rounds=1)
    share, (sigma,) = mechanism.delta / 2, mechanism.sigmas
    values = [
        math.ceil(mechanism.weight(first) + Fraction(1, 2) + sigma * normal_reach(2 * share_of_delta(share, last)))
        for first, last in _runs(max_groups)
    ]
    assert mechanism.thresholds == (max(values),)
