"""Class A: noise through the curator, exact on its grid, of the law and the size that was paid for."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.audit.queries.releases import allowance
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.privacy import Neighbours, PureDP
from tests.cases import every
from tests.effort import some
from tests.redteam.clinics import APPROXIMATE, CROWD, Untouchable, clinic, noises, planned, row, spent

KEYS = 20_000
FALSE_ALARM = 1e-9
DISTANCE = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * KEYS))
"""Dvoretzky, Kiefer, Wolfowitz with Massart's constant: a sample strays farther from its law with at most that chance.

0.0231 for 20,000 draws. A Laplace law that is 30 % too wide is 0.048 away, a Gaussian one 0.063: more than twice that.
"""


def draws(delta: Any) -> tuple[AdditiveNoise, np.ndarray[Any, Any]]:
    """The noise of a count in as many public groups, all of them empty."""
    declared: dict[str, Any] = {"keys": {"age": list(range(KEYS))}, "max_rows": 1}
    wide = {"max_groups": 1 if not delta else 50}
    sql = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    (noise,) = noises(sql, [], epsilon=Fraction(1, 3), delta=delta, budget=APPROXIMATE, **declared, **wide)
    assert isinstance(noise.release, AdditiveNoise)
    assert noise.exact == [(0,)] * KEYS
    return noise.release, np.array([out for (out,) in noise.out])


def far(found: np.ndarray[Any, Any], law: Callable[[Any], Any]) -> float:
    """The largest distance of distribution functions, at whole numbers."""
    at = np.arange(found.min() - 1, found.max() + 1)
    return float(np.max(np.abs(np.searchsorted(np.sort(found), at, side="right") / len(found) - law(at))))


def gaussian(sigma: float) -> Callable[[Any], Any]:
    """The distribution function of the discrete Gaussian law, summed where it has mass."""
    reach = int(12 * sigma)
    mass = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    below = np.cumsum(mass) / mass.sum()
    return lambda at: below[np.clip(at + reach, 0, 2 * reach)]


@pytest.mark.ci
def test_laplace_noise_of_a_curator_has_its_law() -> None:
    """RT-001, RT-004: whole numbers, of the discrete Laplace law at the scale of the event, and of no wider one."""
    measure, found = draws(0)
    scale = float(measure.scales[0])
    assert measure.law == "laplace"
    assert far(found, stats.dlaplace(1 / scale).cdf) <= DISTANCE
    assert far(found, stats.dlaplace(1 / (scale * 1.3)).cdf) > DISTANCE
    assert far(found, stats.dlaplace(1 / (scale / 1.3)).cdf) > DISTANCE


@pytest.mark.ci
def test_gaussian_noise_of_a_curator_has_its_law() -> None:
    """RT-003: the same for Gaussian noise."""
    measure, found = draws(Fraction(1, 10**6))
    sigma = float(measure.scales[0])
    assert measure.law == "gaussian"
    assert far(found, gaussian(sigma)) <= DISTANCE
    assert far(found, gaussian(sigma * 1.3)) > DISTANCE
    assert far(found, gaussian(sigma / 1.3)) > DISTANCE


def test_numbers_meet_noise_as_whole_numbers_and_leave_as_such() -> None:
    """RT-001: what enters and leaves noise are Python's exact integers, for counts, sums and means of doubles."""
    sql = "SELECT COUNT(*) AS n, SUM(charge) AS s, AVG(charge / 3) AS m FROM visits"
    for delta in (0, "1/1000"):
        for noise in noises(sql, delta=delta, budget=APPROXIMATE):
            assert all(type(number) is int for numbers in (*noise.exact, *noise.out) for number in numbers)


def test_noise_is_not_shared_between_statistics_or_groups() -> None:
    """Two columns of noise of one answer do not move together: |r| < 6 / sqrt(n), at 1e-8 for fair ones."""
    sql = "SELECT age, COUNT(*) AS n, COUNT(DISTINCT patient) AS p FROM visits GROUP BY age"
    found = noises(sql, [], keys={"age": list(range(4000))}, max_rows=2)
    columns = [
        np.array([numbers[i] for numbers in noise.out], float) for noise in found for i in range(len(noise.out[0]))
    ]
    assert len(columns) >= 2
    for i, one in enumerate(columns):
        assert len(set(one)) > 5
        assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 6 / math.sqrt(len(one))
        for other in columns[:i]:
            assert abs(np.corrcoef(one, other)[0, 1]) < 6 / math.sqrt(len(one))


@every("neighbours", list(Neighbours))
@every("epsilon", ["1/10", "1/3", "1/1000000", "10"])
@every("bounds", some([(0, 1), ("-1/3", "1/3"), (-(10**15), 1), (-1, 1000)], 2))
def test_scales_are_at_least_exact(epsilon: str, bounds: tuple[Any, Any], neighbours: Neighbours) -> None:
    """RT-006, RT-019: no noise is smaller than groups x rows x the farthest move of a value over epsilon, as rationals.

    A row comes or goes: the larger end. Of three wards, all of which may be entered, none is left for another one: a
    replaced row goes from one end to the other, or to nothing, in each.
    """
    curator = clinic([], bounds={"charge": bounds}, max_groups=3, max_rows=2, neighbours=neighbours)
    sql = "SELECT ward, SUM(charge) AS s FROM visits GROUP BY ward"
    (measure,) = planned(curator, sql, epsilon=epsilon).measures
    step = Fraction(2) ** (measure.form.statistics[0].exponent + measure.form.grains[0])
    low, high = (Fraction(end) for end in bounds)
    zero = Fraction(0)
    farthest = max(abs(low), abs(high)) if neighbours is Neighbours.ADD_REMOVE else max(high, zero) - min(low, zero)
    for scale in measure.scales:
        assert scale * step >= 3 * 2 * farthest / Fraction(epsilon)
    assert curator.ask(sql, epsilon=epsilon).cost.details == PureDP(epsilon)


# ------------------------------------------------------------------------------------------------------ private keys

SINGLES = 20_000


def shown_alone(measure: AdditiveNoise, smallest: int, rows: int) -> float:
    """P(rows + Z >= smallest) of the discrete Laplace law, which is cut just below that threshold or not at all."""
    a = math.exp(-1 / float(measure.scales[0]))
    whole = a ** (smallest - rows) / (1 + a)
    beyond = a**smallest / (1 + a) if measure.cuts else 0.0
    return (whole - beyond) / (1 - 2 * beyond)


def threshold(notes: tuple[str, ...]) -> int:
    (said,) = [note for note in notes if "noisy count reaches" in note]
    return int(said.rstrip(".").split()[-1])


@pytest.mark.ci
def test_groups_of_one_person_are_hardly_ever_shown() -> None:
    """RT-009, RT-044: of 20,000 groups of one person at most a share of delta, by Clopper and Pearson at 1e-6.

    And by the law itself: 1 + Z reaches the threshold with at most delta, and one less would be too small.
    """
    delta = 0.01
    rows = [row(i, kind=str(i)) for i in range(SINGLES)]
    curator = clinic(rows, budget=APPROXIMATE, max_groups=1, max_rows=1, seed=5)
    asked: dict[str, Any] = {"epsilon": 1, "delta": delta}
    sql = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
    (measure,) = planned(curator, sql, **asked).measures
    answer = curator.ask(sql, **asked)
    lower = stats.beta.ppf(1e-6, len(answer), SINGLES - len(answer) + 1) if len(answer) else 0.0
    assert lower <= delta
    smallest = threshold(answer.notes)
    assert measure.law == "laplace"
    assert measure.cuts == ((0, smallest - 1),)
    assert shown_alone(measure, smallest, 1) <= delta < shown_alone(measure, smallest - 1, 1)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("groups", [1, 4])
def test_the_threshold_counts_all_rows_and_all_groups_of_a_person(rows: int, groups: int) -> None:
    """The peers' threshold off by one: rows + Z reaches it, in any of the person's groups, with at most delta."""
    curator = clinic(budget=APPROXIMATE, max_groups=groups, max_rows=rows)
    asked: dict[str, Any] = {"epsilon": 3, "delta": Fraction(1, 100)}
    sql = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
    answer, (measure,) = curator.ask(sql, **asked), planned(curator, sql, **asked).measures
    assert measure.law == "laplace"
    smallest = threshold(answer.notes)
    assert not measure.cuts or measure.cuts == ((0, smallest - 1),)
    assert 1 - (1 - shown_alone(measure, smallest, rows)) ** groups <= 0.01
    assert 1 - (1 - shown_alone(measure, smallest - 1, rows)) ** groups > 0.01


@pytest.mark.ci
def test_selection_by_people_shows_groups_of_one_with_a_share_of_delta() -> None:
    """RT-044: the optimal rule, where it is taken, keeps single people with at most its delta."""
    rows = [row(i, kind=str(i)) for i in range(SINGLES)]
    curator = clinic(rows, budget=APPROXIMATE, max_groups=1, max_rows=40, seed=6)
    answer = curator.ask("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind", epsilon=1, delta=Fraction(1, 100))
    assert any("at random" in note for note in answer.notes)
    assert stats.beta.ppf(1e-6, max(len(answer), 1), SINGLES - len(answer) + 1) <= 0.01


# ---------------------------------------------------------------------------------------------------- no noise at all


@pytest.mark.parametrize(
    "bounds", [{"charge": (0, 0)}, {"charge": (5, 1)}, {"charge": (math.nan, 1)}, {"charge": (0, math.inf)}], ids=str
)
def test_bounds_that_are_none_are_refused(bounds: dict[str, Any]) -> None:
    """RT-011: never noise of scale zero."""
    with pytest.raises(InvalidParameter):
        clinic(bounds=bounds)


@pytest.mark.parametrize("argument", ["CAST(note AS INT)", "1 / weight", "patient"])
def test_no_bounds_means_a_refusal(argument: str) -> None:
    """RT-011, RT-024: a sum that no bounds of columns could bound is refused, not read, not charged."""
    curator = clinic(CROWD, engine=Untouchable())
    before = spent(curator)
    for aggregate in ("SUM", "AVG"):
        with pytest.raises(UnsupportedQuery) as refused:
            curator.ask(f"SELECT {aggregate}({argument}) AS s FROM visits", epsilon=1)
        assert "bounds" in str(refused.value)
    assert spent(curator) == before


@pytest.mark.parametrize("argument", ["weight", "weight + 1", "GREATEST(weight, 0)"])
def test_bounds_that_nobody_declared_are_paid_for(argument: str) -> None:
    """RT-011, RT-024: they are chosen from noisy counts, in which every patient counts once, inside the one charge."""
    sql = f"SELECT SUM({argument}) AS s FROM visits"
    probe, noise = noises(sql)
    assert isinstance(probe.release, AdditiveNoise)
    assert isinstance(noise.release, AdditiveNoise)
    assert allowance(probe.release.event) == Fraction(1, 5)
    assert allowance(noise.release.event) == Fraction(4, 5)
    assert sum(number for (number,) in probe.exact) <= len({row["patient"] for row in CROWD})
    assert min((*probe.release.scales, *noise.release.scales)) > 0


@pytest.mark.parametrize("argument", ["0", "0.0", "age - age", "age * 0", "CAST(NULL AS INT)", "NULLIF(age, age)", "7"])
def test_constants_get_noise_too(argument: str) -> None:
    """RT-011: an argument that cannot vary has noise of at least one step, whatever it is."""
    for noise in noises(f"SELECT SUM({argument}) AS s, AVG({argument}) AS m FROM visits"):
        assert isinstance(noise.release, AdditiveNoise)
        assert min(noise.release.scales) >= 1
        assert noise.release.event.__class__.__name__ == "DiscreteLaplace"


def test_a_release_draws_as_often_as_it_has_numbers() -> None:
    """The sampler is asked for every group and statistic: none is left without noise, none shared."""
    found = noises("SELECT ward, SUM(age) AS s, AVG(charge) AS m FROM visits GROUP BY ward", seed=3)
    assert sum(len(numbers) for noise in found for numbers in noise.out) >= 3 * 3
    for noise in found:
        moves = [
            out - exact for a, b in zip(noise.out, noise.exact, strict=True) for out, exact in zip(a, b, strict=True)
        ]
        assert len(set(moves)) > len(moves) // 2
