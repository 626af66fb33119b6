"""Relations that any accountant obeys, whatever the numbers are."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import accounting
from discreet.accounting.composition import terms
from discreet.errors import UnsupportedEvent
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Composed, Event, PoissonSampled, Repeated

SLACK = 1 + 1e-3  # grids differ a little with what is put on them
FEW = settings(max_examples=20)

sizes = st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(10), Fraction(100)])
rates = st.sampled_from([Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
plain: st.SearchStrategy[Event] = st.one_of(
    st.builds(events.Gaussian, sizes),
    st.builds(events.Laplace, sizes),
    st.builds(events.Pure, sizes),
    st.builds(events.RandomizedResponse, sizes, st.integers(2, 9)),
    st.builds(events.DiscreteLaplace, sizes, st.integers(1, 5)),
    st.builds(events.DiscreteGaussian, sizes, st.integers(1, 5)),
    st.builds(events.BoundedRange, sizes),
    st.builds(events.Approx, sizes, st.sampled_from(["1e-9", "1e-12"])),
)
anything = st.one_of(plain, st.builds(PoissonSampled, rates, plain))
deltas = st.sampled_from([1e-2, 1e-5, 1e-8])


@pytest.mark.ci
@FEW
@given(event=anything, count=st.integers(0, 5), delta=deltas)
def test_a_list_of_n_is_a_repetition(event: Event, count: int, delta: float) -> None:
    assert accounting.epsilon([event] * count, delta) == accounting.epsilon(Repeated(event, count), delta)


@pytest.mark.ci
@FEW
@given(listed=st.lists(anything, min_size=2, max_size=3), delta=deltas)
def test_order_does_not_matter(listed: list[Event], delta: float) -> None:
    one, other = accounting.epsilon(listed, delta), accounting.epsilon(listed[::-1], delta)
    assert one == pytest.approx(other, rel=1e-9)  # sums of floats in another order


@given(listed=st.lists(anything, max_size=4), outer=st.integers(0, 4), inner=st.integers(0, 4))
def test_nesting_does_not_matter(listed: list[Event], outer: int, inner: int) -> None:
    nested = Composed([Repeated(Repeated(Composed([Composed(listed)]), inner), outer)])
    assert terms(nested) == terms(listed * (outer * inner))


@pytest.mark.parametrize(
    "nothing", [[], Composed([]), Repeated(events.Gaussian(1), 0), PoissonSampled("0.1", Composed([]))]
)
def test_nothing_costs_nothing(nothing: Event | list[Event]) -> None:
    assert accounting.epsilon(nothing, 0) == accounting.delta(nothing, 0) == 0
    assert accounting.trade_off(nothing, 0.25) == 0.75


@pytest.mark.ci
@FEW
@given(event=anything, count=st.sampled_from([1, 2, 17]), delta=deltas)
def test_a_larger_delta_never_costs_more(event: Event, count: int, delta: float) -> None:
    repeated = Repeated(event, count)
    assert accounting.epsilon(repeated, delta * 10) <= accounting.epsilon(repeated, delta) * SLACK


@pytest.mark.ci
@FEW
@given(event=anything, count=st.sampled_from([1, 2, 17]), at=st.sampled_from([0.0, 0.3, 1.0, 4.0]))
def test_a_larger_epsilon_never_leaves_more_delta(event: Event, count: int, at: float) -> None:
    repeated = Repeated(event, count)
    assert accounting.delta(repeated, at + 0.5) <= accounting.delta(repeated, at) * SLACK


@pytest.mark.ci
@FEW
@given(event=anything, count=st.sampled_from([1, 2, 17]), at=st.sampled_from([0.1, 1.0, 4.0]))
def test_epsilon_undoes_delta(event: Event, count: int, at: float) -> None:
    repeated = Repeated(event, count)
    delta = accounting.delta(repeated, at)
    if 1e-200 < delta < 1:
        assert accounting.epsilon(repeated, Fraction(delta)) <= at * SLACK + 1e-6


@pytest.mark.ci
@FEW
@given(listed=st.lists(anything, min_size=1, max_size=2), more=anything, delta=deltas)
def test_one_more_release_never_costs_less(listed: list[Event], more: Event, delta: float) -> None:
    assert accounting.epsilon(listed, delta) <= accounting.epsilon([*listed, more], delta) * SLACK


@pytest.mark.ci
@FEW
@given(
    family=st.sampled_from([events.Gaussian, events.Laplace]),
    size=sizes,
    rate=st.none() | rates,
    count=st.sampled_from([1, 3, 40]),
    delta=deltas,
)
def test_more_noise_never_costs_more(
    family: type[events.Gaussian | events.Laplace],
    size: Fraction,
    rate: Fraction | None,
    count: int,
    delta: float,
) -> None:
    def cost(noise: Fraction) -> float:
        event: Event = family(noise)
        return accounting.epsilon(Repeated(event if rate is None else PoissonSampled(rate, event), count), delta)

    assert cost(size * Fraction(11, 10)) <= cost(size) * SLACK


@pytest.mark.slow
@FEW
@given(event=plain, rate=rates, count=st.sampled_from([1, 3, 40]), delta=deltas)
def test_a_larger_sample_never_costs_less(event: Event, rate: Fraction, count: int, delta: float) -> None:
    less = accounting.epsilon(Repeated(PoissonSampled(rate / 2, event), count), delta)
    more = accounting.epsilon(Repeated(PoissonSampled(rate, event), count), delta)
    whole = accounting.epsilon(Repeated(event, count), delta)
    assert less <= more * SLACK <= whole * SLACK**2


@given(event=plain, rate=rates)
def test_a_sample_of_everybody_and_a_sample_of_a_sample(event: Event, rate: Fraction) -> None:
    assert terms(PoissonSampled(1, event)) == terms(event)
    assert terms(PoissonSampled(rate, PoissonSampled(rate, event))) == terms(PoissonSampled(rate**2, event))


def test_gaussians_from_one_sample_are_one_gaussian() -> None:
    twice = PoissonSampled("0.1", Composed([events.Gaussian("5/3"), events.Gaussian("5/4")]))
    assert terms(twice) == terms(PoissonSampled("0.1", events.Gaussian(1)))
    rounded = terms(PoissonSampled("0.1", Repeated(events.Gaussian(1), 2)))
    (merged,) = rounded
    assert isinstance(merged, PoissonSampled)
    assert isinstance(merged.event, events.Gaussian)
    assert 0 <= Fraction(1, 2) - merged.event.noise_multiplier**2 < Fraction(1, 2**60)  # rounded to less noise


def test_one_sample_for_several_releases_costs_more_than_fresh_samples() -> None:
    one = PoissonSampled("0.1", Repeated(events.Laplace(2), 4))
    fresh = Repeated(PoissonSampled("0.1", events.Laplace(2)), 4)
    assert accounting.epsilon(one, 1e-5) > accounting.epsilon(fresh, 1e-5)


@pytest.mark.parametrize("inside", [events.Composed([events.Gaussian(1), events.Laplace(1)]), events.Concentrated(1)])
def test_what_has_no_amplification_keeps_its_price(inside: Event) -> None:
    assert accounting.epsilon(PoissonSampled("0.1", inside), 1e-5) <= accounting.epsilon(inside, 1e-5) * 2
    for method in ("zCDP", "RDP"):
        found = accounting.epsilon(PoissonSampled("0.1", inside), 1e-5, method=method)
        assert found == accounting.epsilon(inside, 1e-5, method=method)


@pytest.mark.parametrize("around", [lambda e: e, lambda e: Repeated(e, 3), lambda e: Composed([events.Pure(1), e])])
def test_sampling_is_refused_under_replacement(around: Callable[[Event], Event]) -> None:
    sampled = PoissonSampled("0.1", events.Gaussian(1))
    event = around(sampled)
    with pytest.raises(UnsupportedEvent) as refused:
        accounting.epsilon(event, 1e-5, neighbours=Neighbours.REPLACE)
    assert refused.value.event == sampled
    with pytest.raises(UnsupportedEvent):
        accounting.delta(event, 1, neighbours=Neighbours.REPLACE)
    with pytest.raises(UnsupportedEvent):
        accounting.trade_off(event, 0.1, neighbours=Neighbours.REPLACE)


def test_disjoint_groups_get_no_discount() -> None:
    """A list is a list: whoever releases on two groups is charged twice."""
    assert accounting.epsilon([events.Pure("0.5"), events.Pure("0.5")], 0) == 1
