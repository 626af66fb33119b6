"""Between the optimistic and the pessimistic estimate of an independent accountant."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import accounting
from discreet.privacy import events
from discreet.privacy.events import Event
from tests.accounting import oracle
from tests.cases import try_all
from tests.effort import some, tried

G, L, S = events.Gaussian, events.Laplace, events.PoissonSampled
LISTS: list[list[tuple[Event, int]]] = [
    [(L(2), 1)],
    [(L(2), 30)],
    [(G(3), 1), (L(2), 4)],
    [(S("0.1", L(1)), 50)],
    [(S("0.01", G("0.7")), 300), (L(5), 3)],
    [(S("0.5", G(2)), 10), (S("0.2", L(3)), 10), (G(8), 5)],
]


def check_bracket(listed: list[tuple[Event, int]], delta: float, grid: float) -> None:
    """Both estimates err by first-order rounding (low) or by the peer's grid (high)."""
    ours = accounting.epsilon([events.Repeated(event, count) for event, count in listed], delta)
    low = oracle.composed(listed, pessimistic=False, grid=grid).get_epsilon_for_delta(delta)
    high = oracle.composed(listed, pessimistic=True, grid=grid).get_epsilon_for_delta(delta)
    assert low <= ours <= high * (1 + 1e-3) + 1e-4


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("listed", LISTS, ids=range(len(LISTS)))
def test_fixed_lists(listed: list[tuple[Event, int]]) -> None:
    try_all(some([1e-2, 1e-5, 1e-9], 4), lambda delta: check_bracket(listed, delta, grid=5e-4))


@pytest.mark.slow
@pytest.mark.parametrize("listed", LISTS, ids=range(len(LISTS)))
def test_fixed_lists_on_a_fine_grid(listed: list[tuple[Event, int]]) -> None:
    try_all([1e-2, 1e-6], lambda delta: check_bracket(listed, delta, grid=1e-4))


noise = st.sampled_from([Fraction(n, 4) for n in range(3, 40)])
rates = st.sampled_from([Fraction(1, n) for n in (2, 3, 10, 50, 300)])
bases = st.builds(G, noise) | st.builds(L, noise)
releases = st.tuples(bases | st.builds(S, rates, bases), st.integers(1, 40))


@pytest.mark.ci
@tried(25)
@given(listed=st.lists(releases, min_size=1, max_size=3), exponent=st.sampled_from([2, 5, 8]))
def test_random_lists(listed: list[tuple[Event, int]], exponent: int) -> None:
    check_bracket(listed, 10.0**-exponent, grid=1e-3)


@pytest.mark.slow
@settings(max_examples=1000)
@given(listed=st.lists(releases, min_size=1, max_size=4), exponent=st.integers(1, 10))
def test_many_random_lists(listed: list[tuple[Event, int]], exponent: int) -> None:
    check_bracket(listed, 10.0**-exponent, grid=1e-3)
