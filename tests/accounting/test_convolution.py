"""The transform against convolution by hand: never below, and within the error it claims."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import pld
from discreet.accounting.composition import Terms
from discreet.accounting.loss_distributions.convolution import GridLaw, View, _weight_norm, compose, connect
from discreet.accounting.loss_distributions.pairs import DistributionPair, GaussianPair, LaplacePair, SampledPair
from discreet.privacy import events
from tests.accounting import reference

STEP = 0.25
mp = reference.mp


def exact_delta(laws: list[tuple[GridLaw, int]], epsilon: float) -> Any:
    """The same grid laws, convolved with 60 digits."""
    total: reference.Law = {reference.mpf(0): reference.mpf(1)}
    finite = reference.mpf(1)
    for law, count in laws:
        points = zip(law.losses, law.log_masses, strict=True)
        masses = {reference.real(float(loss)): mp.exp(float(log)) for loss, log in points if log > -math.inf}
        finite *= (1 - reference.real(law.infinite)) ** count
        total = reference.composed([total, *[masses] * count])
    return 1 - finite + reference.hockey_stick(total, epsilon)


def check_transform(laws: list[tuple[GridLaw, int]], tilt: float, epsilons: tuple[float, ...]) -> None:
    """Above the exact value by at most twice the claimed errors: once what floats did, once the bound that is added.

    The drift moves epsilon and is tiny here.
    """
    found = compose(laws, View(tilt=tilt, low=-16.0, steeper=1.0, log_size=8))
    for epsilon in epsilons:
        exact = exact_delta(laws, epsilon)
        claimed = found.lost + math.exp(found.log_roundoff - tilt * epsilon) + found._rounding + 2 * found.drift
        claimed += 1e-9 * float(exact) + 1e-300
        assert exact <= found.delta(epsilon) * (1 + 1e-15)
        assert found.delta(epsilon) <= exact + 2 * claimed


weights = st.lists(st.integers(0, 10**6), min_size=2, max_size=7).filter(any)


@st.composite
def grid_laws(draw: st.DrawFn) -> GridLaw:
    masses = np.array(draw(weights), dtype=float)
    leak = draw(st.sampled_from([0.0, 1e-12, 1e-3]))
    with np.errstate(divide="ignore"):
        return GridLaw(STEP, draw(st.integers(-4, 2)), np.log(masses / masses.sum() * (1 - leak)), leak)


@settings(max_examples=30)
@given(
    laws=st.lists(st.tuples(grid_laws(), st.integers(1, 4)), min_size=1, max_size=2),
    tilt=st.sampled_from([1e-4, 0.5, 3.0, 20.0]),
)
def test_small_laws(laws: list[tuple[GridLaw, int]], tilt: float) -> None:
    check_transform(laws, tilt, (0.0, 0.1, 0.25, 1.3, 4.0))


def test_deltas_far_below_the_roundoff_of_a_plain_transform() -> None:
    """A coin whose 24 heads have the probability 1e-144: untilted floats would drown it at 1e-17."""
    law = GridLaw(STEP, -1, np.log(np.array([1 - 1e-6, 0.0, 1e-6]) + 1e-300), 0.0)
    found = compose([(law, 24)], View(tilt=55.0, low=-16.0, steeper=1.0, log_size=8))
    exact = exact_delta([(law, 24)], 5.8)
    assert exact <= found.delta(5.8) <= exact * 1.001


@pytest.mark.parametrize("heads", [0.3, 0.5])
def test_what_lies_above_the_window_counts_in_full_at_every_epsilon(heads: float) -> None:
    """The sum of 24 coins may reach 6, the window ends at 4: what lies above is bounded by E[e^(5 S)] e^(-5 4).

    At and beyond the window's end nothing else is left of the claim but rounding errors; these fall with epsilon, that
    bound does not.
    """
    law = GridLaw(STEP, -1, np.log(np.array([1 - heads, 1e-300, heads])), 0.0)
    found = compose([(law, 24)], View(tilt=3.0, low=0.0, steeper=2.0, log_size=4))
    chernoff = ((1 - heads) * mp.exp(-5 * STEP) + heads * mp.exp(5 * STEP)) ** 24 * mp.exp(-5 * 4)
    for epsilon in (3.6, 3.9, 4.0, 4.5, 5.4):
        assert exact_delta([(law, 24)], epsilon) <= found.delta(epsilon)
    for epsilon in (4.0, 5.4):
        assert chernoff <= found.delta(epsilon) <= chernoff * 1.001


@pytest.mark.parametrize(
    "pair",
    [
        GaussianPair(0.7),
        LaplacePair(1.3),
        SampledPair(GaussianPair(1.0), 0.1, removal=True),
        SampledPair(LaplacePair(1.0), 0.1, removal=False),
    ],
    ids=repr,
)
def test_the_grid_is_never_better_than_the_pair(pair: DistributionPair) -> None:
    """On the grid's points the profiles agree, between them the grid's lies on the chord, above the convex truth."""
    law = connect(pair, 0.05, -60.0)
    for epsilon in (0.0, 0.01, 0.05, 0.12, 0.6):
        above = pair.masses(np.array([epsilon, np.inf]))
        true = float(above.p[0]) - math.exp(epsilon) * float(above.q[0])
        kept = law.losses > epsilon
        found = law.infinite + float((np.exp(law.log_masses[kept]) * -np.expm1(epsilon - law.losses[kept])).sum())
        assert found >= true * (1 - 1e-12)
        assert found <= true + 0.05**2  # second order in the step


# ---------------------------------------------------------------------------------------------- the same, for less work


@pytest.mark.parametrize("step", [1e-7, 0.003, 0.5])
@pytest.mark.parametrize("tilt", [1e-3, 1.0, 4e4])
def test_weights_have_the_norm_of_their_formula(tilt: float, step: float) -> None:
    points = np.arange(1 << 12) * step
    plain = np.exp(-tilt * points) * -np.expm1(-(points + step))
    assert _weight_norm(tilt, step, 1 << 12) == math.sqrt(float(np.square(plain).sum()))


def test_a_sum_over_part_of_the_window_gives_the_same_deltas_there() -> None:
    law = connect(GaussianPair(0.1), 0.01, -80.0)
    view = View(tilt=2.0, low=-6.0, steeper=1.0, log_size=11)
    whole, part = compose([(law, 50)], view), compose([(law, 50)], replace(view, least=1.0))
    assert part.first > whole.first == 0
    for epsilon in (1.0, 1.005, 1.7, 3.0, 9.0):
        assert part.delta(epsilon) == whole.delta(epsilon)
    assert part.delta(0.5) == 1.0
    assert part.holds_answer(whole.delta(2.0))
    assert part.epsilon(whole.delta(2.0)) == whole.epsilon(whole.delta(2.0))
    assert not part.holds_answer(whole.delta(0.5))


@pytest.mark.parametrize("delta", [0.4, 0.05, 1e-3, 1e-9])
def test_an_answer_below_the_part_that_was_summed_is_found(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    released: Terms = {events.Laplace(4): 30}
    found = pld.epsilon(released, delta)
    for skipped in (0.0, 0.9):  # all of the window at once, or hardly any of it
        monkeypatch.setattr(pld, "_UNLIKELY", skipped)
        assert pld.epsilon(released, delta) == found


def test_points_above_the_lowest_stay_as_they_are() -> None:
    whole, cut = (connect(GaussianPair(0.7), 0.01, -60.0, lowest) for lowest in (None, 30))
    assert cut.first == 30
    assert (cut.log_masses[1:] == whole.log_masses[30 - whole.first + 1 :]).all()
    assert cut.infinite == whole.infinite
