"""Quantiles: what every draw costs between neighbours, with the draws before it held fixed, and how intervals cover."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv, gammaln

from discreet import accounting
from discreet import statistics as st
from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace, Quantile
from discreet.mechanisms.quantile_draw import IntervalDraw
from discreet.mechanisms.ranks import price_ranks
from discreet.noise import Bits, SeededBits
from discreet.privacy import Neighbours
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import column
from discreet.statistics.quantiles.points import _cells, blocks, many_points, tree_of
from tests.cases import every
from tests.statistics.recorded import BOTH, neighbouring
from tests.statistics.test_mean import beta_sample

Draws = list[tuple[str, float, Any]]
POINTS = [0.0, 3.0, 4.0]


def drawn(monkeypatch: pytest.MonkeyPatch, statistic: Any, places: tuple[float, ...]) -> Draws:
    """Log-probabilities of forced outputs, each at a place of its range that has nothing to do with the data.

    A count is forced to 60, and its scale is kept with the true one.
    """
    found: Draws = []

    def choose(self: Quantile, value: Any, **_: object) -> int:
        first, last = self.ends
        point = first + math.floor(places[len(found) % len(places)] * (last - first))
        starts, sizes, losses = self.cells(value)
        logs = np.log(np.maximum(sizes, 1e-300)) - float(self.rate) * losses
        cell = int(np.flatnonzero((starts <= point) & (point < starts + sizes))[0])
        total = np.max(logs) + math.log(np.sum(np.exp(logs - np.max(logs))))
        found.append(("choice", float(-float(self.rate) * losses[cell] - total), (self.quantile, self.epsilon)))
        return point

    def propose(self: IntervalDraw, _: Bits) -> bool:
        self.place = self.low + math.floor(places[len(found) % len(places)] * (self.high - self.low))
        exponents = -float(self.rate) * losses_of_places(self)
        total = float(np.max(exponents)) + math.log(np.sum(np.exp(exponents - np.max(exponents))))
        found.append(("place", float(exponents[self.place - self.low]) - total, (self.share, self.rate)))
        return True

    def count(self: Laplace, value: Any, **_: object) -> int:
        found.append(("count", float(-abs(60 - value) / self.event.scale), self.event.scale))
        return 60

    with monkeypatch.context() as patch:
        patch.setattr(Quantile, "release", choose)
        patch.setattr(IntervalDraw, "propose", propose)
        patch.setattr(Laplace, "release", count)
        statistic()
    return found


def losses_of_places(part: IntervalDraw) -> Any:
    """By the definition, in ranks: values are spread evenly over the places of their point."""
    values, size = part.histogram, 1 << part.grain
    ends = (values.blocks[:, None] * size + [0, size]).ravel()  # between which the mass below grows evenly
    below = np.repeat(np.concatenate([[0], np.cumsum(values.counts)]), 2)[1:-1]
    mass = (
        np.interp(np.arange(part.low, part.high + 2), ends, below) if ends.size else np.zeros(part.high + 2 - part.low)
    )
    if part.high < (values.last + 1) * size - 1:
        mass[-1] = mass[-2]  # what begins with the last place is another part's
    target = mass[0] + float(part.share) * (mass[-1] - mass[0])
    return np.maximum(np.maximum(mass[:-1] - target, target - mass[1:]), 0)


def loss(one: Draws, other: Draws) -> float:
    """The privacy loss of one transcript: draws of the same kinds, for the same shares and budgets."""
    assert [(kind, public) for kind, _, public in one] == [(kind, public) for kind, _, public in other]
    return sum(log for _, log, _ in one) - sum(log for _, log, _ in other)


def losses_of_trees(monkeypatch: pytest.MonkeyPatch, neighbours: Neighbours, **budget: Any) -> list[float]:
    shares = [Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)]

    @cache
    def seen(x: tuple[float, ...], places: tuple[float, ...]) -> Draws:
        values = column(x, bounds=(0, 4), neighbours=neighbours, fine=4)
        return drawn(
            monkeypatch, lambda: many_points(values, shares, Spending.of(**budget), SeededBits(len(places))), places
        )

    found: list[float] = []
    for extra in ([], [0.0] * 10 + [4.0] * 10, [2.0] * 20):
        for one, other in neighbouring(POINTS, neighbours, 1):
            # the value that differs is the last one, so the others keep their random bits
            found += [
                loss(seen((*extra, *one), places), seen((*extra, *other), places))
                for places in ((0.5, 0.98, 0.7), (0.3, 0.0, 1.0), (0.9, 0.5, 0.7))
            ]
    return found


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", BOTH)
def test_several_quantiles_cost_epsilon_at_most(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    found = losses_of_trees(monkeypatch, neighbours, epsilon=2)
    assert max(np.abs(found)) <= 2 + 1e-9
    assert max(np.abs(found)) > 0.9  # and are no gift either: draws between equal neighbours lose half of it


@pytest.mark.ci
def test_a_replaced_value_costs_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that takes too much is caught by the check above."""
    right = price_ranks

    def loud(*arguments: Any) -> tuple[Fraction, Event]:
        rate, event = right(*arguments)
        return 4 * rate, event

    monkeypatch.setattr("discreet.mechanisms.quantile_tree.price_ranks", loud)
    assert max(np.abs(losses_of_trees(monkeypatch, Neighbours.REPLACE, epsilon=2))) > 2


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 1}])
def test_levels_cost_the_budget_together(neighbours: Neighbours, budget: dict[str, int]) -> None:
    shares = [Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)]
    tree = tree_of(shares, 4, Spending.of(**budget), neighbours)
    assert tree is not None
    paid = basic(terms(tree.levels)).epsilon if "epsilon" in budget else zcdp(terms(tree.levels)).rho
    assert paid == 1


def test_shares_with_many_digits_and_shares_that_are_close() -> None:
    long = [Fraction("0.123456789"), Fraction("0.456789123"), Fraction("0.987654321")]
    assert tree_of(long, 1 << 21, Spending.of(epsilon=1), Neighbours.ADD_REMOVE) is not None
    close = [0.5, 0.501]
    assert tree_of([Fraction(str(share)) for share in close], 9, Spending.of(epsilon=1), Neighbours.ADD_REMOVE) is None
    found = st.quantiles(range(1000), close, bounds=(0, 1000), epsilon=20, intervals=False)
    assert list(found.value) == sorted(found.value)
    assert found.value == pytest.approx([500, 501], abs=20)
    assert accounting.epsilon([found.event], 0) == 20


@pytest.mark.ci
@pytest.mark.parametrize("neighbours", BOTH)
def test_points_fences_and_count_cost_epsilon_at_most(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    @cache
    def seen(x: tuple[float, ...], places: tuple[float, ...]) -> Draws:
        def ask() -> None:
            st.median(x, bounds=(0, 4), epsilon=20, neighbours=neighbours, bits=SeededBits(1))

        return drawn(monkeypatch, ask, places)

    found: list[float] = []
    for one, other in neighbouring(POINTS, neighbours, 1):
        rest = [2.0] * 30 + [3.0] * 28
        found += [
            loss(seen((*rest, *one), places), seen((*rest, *other), places))
            for places in ((0.5, 0.2, 0.8), (0.3, 0.0, 1.0), (0.9, 0.5, 0.5))
        ]
    assert max(np.abs(found)) <= 20 + 1e-9
    assert max(np.abs(found)) > 5


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("shares", [[0.5], [0.1, 0.5, 0.9, 0.95]])
@pytest.mark.parametrize("intervals", [True, False])
def test_the_event_is_the_budget(neighbours: Neighbours, shares: list[float], intervals: bool) -> None:
    options: Any = {"bounds": (0, 4), "neighbours": neighbours, "intervals": intervals}
    pure = st.quantiles([1, 2, 3], shares, epsilon=0.5, **options)
    assert 0.499 < accounting.epsilon([pure.event], 0, neighbours=neighbours) <= 0.5
    concentrated = st.quantiles([1, 2, 3], shares, rho=0.1, **options)
    most = accounting.zcdp.zcdp_epsilon(0.1, 1e-6)
    assert accounting.epsilon([concentrated.event], 1e-6, neighbours=neighbours) <= most * (1 + 1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("count", "pure"), [(1, True), (30, False)])
@pytest.mark.parametrize("neighbours", BOTH)
def test_a_delta_is_used_where_it_helps(neighbours: Neighbours, count: int, pure: bool) -> None:
    shares = [i / (count + 1) for i in range(1, count + 1)]
    options: Any = {"bounds": (0, 4), "epsilon": 1, "delta": 1e-6, "neighbours": neighbours}
    found = st.quantiles([1, 2, 3], [round(share, 3) for share in shares], **options)
    assert accounting.epsilon([found.event], 1e-6, neighbours=neighbours) <= 1
    assert (accounting.epsilon([found.event], 0, neighbours=neighbours) <= 1) == pure


def test_quantiles_come_in_the_order_they_are_asked_in() -> None:
    x = np.repeat(np.arange(1000), 5)  # ties
    found = st.quantiles(x, [0.9, 0.1, 0.5, 0.5], bounds=(0, 1000), epsilon=20, intervals=False)
    assert found.value == pytest.approx([900, 100, 500, 500], abs=20)
    assert found.value[2] == found.value[3]


def test_ties_do_not_mislead_the_parts() -> None:
    """Half of the values are equal: all of them on one side of the median would move the quartiles."""
    x = np.concatenate([np.linspace(0, 40, 2500), np.full(5000, 50.0), np.linspace(60, 100, 2500)])
    found = st.quantiles(x, [0.125, 0.5, 0.875], bounds=(0, 100), epsilon=5, intervals=False, bits=SeededBits(2))
    assert found.value == pytest.approx([20, 50, 80], abs=1.5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("count", "options"), [(1000, {}), (3000, {"rho": 0.1}), (1500, {"neighbours": "replace"})])
@pytest.mark.parametrize("runs", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_intervals_of_medians_cover_and_are_short(count: int, options: dict[str, Any], runs: int) -> None:
    """They are made for the worst population, so that hardly one of a few misses an ordinary one."""
    truth = 100 * betaincinv(2, 5, 0.5)
    budget = options if "rho" in options else {"epsilon": 1, **options}
    bits, missed, lengths, errors, plain = SeededBits(count), 0, [], [], []
    for _ in range(runs):
        x = beta_sample(count, bits)
        found = st.median(x, bounds=(0, 100), bits=bits, **budget)
        missed += not found.low <= truth <= found.high
        assert found.low <= found.value <= found.high
        lengths.append(found.high - found.low)
        errors.append(abs(found.value - float(np.median(x))))
        plain.append(float(np.median(x)))
    assert missed <= 0.06 * runs
    density = 30 * truth / 100 * (1 - truth / 100) ** 4 / 100
    assert np.mean(lengths) < 2 * (2 * 1.96 * 0.5 / (density * np.sqrt(count))) + 2 * np.quantile(errors, 0.95)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_intervals_cover_populations_of_two_values(share: float) -> None:
    """The hardest kind: the quantile is 1, and a hair fewer values of 1 would make it 0."""
    missed = 0
    bits = SeededBits(4)
    for _ in range(60):
        x = (beta_sample(2000, bits) > 100 * betaincinv(2, 5, share * 0.995)).astype(float)
        found = st.quantile(x, share, bounds=(-1, 2), epsilon=2, bits=bits)
        missed += not found.low <= 1 <= found.high
    assert missed <= 3


@every("tries", [1, 5, 30, 3000])
@every("share", [0.1, 0.5, 0.99])
def test_cells_of_the_binomial_law_err_on_the_safe_side(tries: int, share: float) -> None:
    """For whatever falls with the number, and not by much: cells start at their least number."""
    starts, chances = _cells(tries, share)
    numbers = np.arange(tries + 1)
    logs = gammaln(tries + 1) - gammaln(numbers + 1) - gammaln(tries - numbers + 1)
    law = np.exp(logs + numbers * np.log(share) + (tries - numbers) * np.log1p(-share))
    assert chances.sum() == pytest.approx(1)  # nothing is lost
    assert (chances >= 0).all()
    for rate in (0.01, 0.3):
        exact = float(law @ np.exp(-rate * np.maximum(numbers - 0.9 * share * tries, 0)))
        summed = float(chances @ np.exp(-rate * np.maximum(starts - 0.9 * share * tries, 0)))
        assert exact * (1 - 1e-9) <= summed <= 1.1 * exact + 1e-9


@pytest.mark.parametrize("width", [1, 10, 1 << 20])
def test_blocks_cover_every_step_once(width: int) -> None:
    for point in {0, 1, width // 3, width}:
        edges = blocks(point, width)
        assert (edges[0], edges[-1]) == (0, width + 1)
        assert (np.diff(edges) > 0).all()
        assert point in edges


@every("neighbours", BOTH)
@every("budget", [{"epsilon": 1}, {"rho": 0.1}])
@every("x", [[], [3], [np.nan, np.nan], [None, 2], [np.inf, -np.inf]])
def test_few_values_are_no_error(x: list[Any], budget: dict[str, Any], neighbours: Neighbours) -> None:
    found = st.median(x, bounds=(-5, 5), neighbours=neighbours, **budget)
    assert (found.low, found.high) == (-5, 5)
    assert -5 <= found.value <= 5
    spread = st.interquartile_range(x, bounds=(-5, 5), neighbours=neighbours, **budget)
    assert 0 <= spread.low <= spread.value <= spread.high <= 10


def test_the_interquartile_range_covers() -> None:
    bits = SeededBits(6)
    truth = 100 * (betaincinv(2, 5, 0.75) - betaincinv(2, 5, 0.25))
    for _ in range(10):
        found = st.interquartile_range(beta_sample(5000, bits), bounds=(0, 100), epsilon=2, bits=bits)
        assert found.low <= truth <= found.high
        assert found.value == pytest.approx(truth, abs=3)


def test_what_is_wrong_is_refused_before_the_values_are_seen() -> None:
    for shares in ([], 0.5, "0.5", [1.5], [0.1234567891234]):
        with pytest.raises(InvalidParameter):
            st.quantiles(["text"], shares, bounds=(0, 1), epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="bounds"):
        st.median(["text"], bounds=None, epsilon=1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("value", [0.0, 100.0])
def test_values_that_all_lie_at_a_bound_are_no_error(value: float, neighbours: Neighbours) -> None:
    """The released point is the bound then, and one block is all there is beyond it."""
    for seed in range(20):
        found = st.median([value] * 3000, bounds=(0, 100), epsilon=1, neighbours=neighbours, bits=SeededBits(seed))
        assert found.low <= value <= found.high
        assert found.high - found.low < 1


@pytest.mark.parametrize("value", [0.0, 100.0])
def test_a_draw_beyond_the_only_block_is_the_bound(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a chance of e^-1000, and no index may be out of range even then."""
    point = iter([0 if value == 0 else None])

    def last(self: Quantile, _: Any, **__: object) -> int:
        found = next(point, None)
        return self.ends[1] if found is None else found

    monkeypatch.setattr(Quantile, "release", last)
    found = st.median([value] * 3000, bounds=(0, 100), epsilon=1)
    assert 0 <= found.low <= found.value <= found.high <= 100
