"""Published and recomputed values, each to the tolerance of its kind: closed forms 1e-9, roots 1e-6, grids 1e-3."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet import accounting
from discreet.accounting.composition import amplified_epsilon
from discreet.accounting.loss_distributions.dominating_pairs import discrete_gaussian_delta
from discreet.accounting.rdp import ORDERS, rdp
from discreet.accounting.zcdp import zcdp_epsilon
from discreet.privacy import ApproxDP, events
from tests.accounting import reference

CLOSED, ROOT = 1e-9, 1e-6


@pytest.mark.parametrize(("size", "true"), [(2, 3.218e-5), (3, 7.644e-5), (5, 3.043e-4), (10, 4.055e-3)])
def test_a_group_of_a_gaussian_is_the_gaussian_of_a_longer_move(size: int, true: float) -> None:
    sigma = accounting.gaussian_sigma(1, 1e-5)
    found = accounting.delta(events.Gaussian(sigma / size), size)
    assert found == pytest.approx(true, rel=2e-4)  # four printed digits
    assert found <= ApproxDP(1, 1e-5).group(size).delta


@pytest.mark.parametrize(("epsilon", "distance"), [(0.1, 0.049958), (1, 0.462117), (2, 0.761594)])
def test_total_variation_of_a_pure_release(epsilon: float, distance: float) -> None:
    assert accounting.delta(events.Pure(epsilon), 0) == pytest.approx(math.tanh(epsilon / 2), rel=CLOSED)
    assert accounting.delta(events.Pure(epsilon), 0) == pytest.approx(distance, abs=1e-6)


def test_power_of_the_best_attacker() -> None:
    power = 1 - accounting.trade_off(events.Pure(1), 0.05)
    assert 0.05 * math.e <= power < 0.05 * math.e * (1 + 1e-4)  # 0.1359


@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.3, 0.9])
def test_trade_off_of_a_gaussian_is_exact_and_rounded_down(alpha: float) -> None:
    mp = reference.mp
    beta = mp.ncdf(-mp.sqrt(2) * mp.erfinv(2 * reference.real(alpha) - 1) - 1)
    found = accounting.trade_off(events.Gaussian(1), alpha)
    assert beta * (1 - 1e-11) < found <= beta


@pytest.mark.parametrize(("at", "true"), [(0.5, 0.22119922), (0.9, 0.04877058), (1, 0), (7, 0)])
def test_profile_of_laplace(at: float, true: float) -> None:
    assert accounting.delta(events.Laplace(1), at) == pytest.approx(max(0.0, -math.expm1((at - 1) / 2)), rel=CLOSED)
    assert accounting.delta(events.Laplace(1), at) == pytest.approx(true, abs=1e-8)


SIGMAS = [
    (1, 1e-5, 3.7306316348),
    (0.1, 1e-5, 30.7495661320),
    (0.5, 1e-6, 8.0576184807),
    (2, 1e-5, 1.9938124456),
    (5, 1e-6, 0.9800490003),
    (10, 1e-6, 0.5410868318),
    (1, 1e-9, 5.4952661572),
    (1, 1e-6, 4.2246788893),
    (0.01, 1e-6, 306.3503761538),
    (8, 1e-5, 0.6002290722),
]


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), SIGMAS)
def test_analytic_gaussian(epsilon: float, delta: float, sigma: float) -> None:
    assert float(accounting.gaussian_sigma(epsilon, delta)) == pytest.approx(sigma, rel=1e-9)
    assert accounting.gaussian_sigma(epsilon, delta, 7) == 7 * accounting.gaussian_sigma(epsilon, delta)


@pytest.mark.parametrize(("constant", "epsilon", "delta", "true"), [(1.25, 10, 1e-6, 1.90e-6), (2, 10, 1e-6, 1.15e-6)])
def test_classical_formulas_miss_their_delta(constant: float, epsilon: float, delta: float, true: float) -> None:
    sigma = math.sqrt(2 * math.log(constant / delta)) / epsilon
    found = accounting.delta(events.Gaussian(sigma), epsilon)
    assert found > delta
    assert found == pytest.approx(true, rel=5e-3)  # three printed digits


@pytest.mark.parametrize(("constant", "crossing"), [(1.25, 8.42), (2, 9.39)])
def test_classical_formulas_hold_up_to_a_point(constant: float, crossing: float) -> None:
    def found(epsilon: float) -> float:
        return accounting.delta(events.Gaussian(math.sqrt(2 * math.log(constant / 1e-5)) / epsilon), epsilon)

    assert found(crossing - 0.02) < 1e-5 < found(crossing + 0.02)


def test_the_continuous_sigma_is_too_small_on_integers() -> None:
    sigma = accounting.gaussian_sigma(1, 1e-5)
    assert accounting.delta(events.DiscreteGaussian(sigma, 1), 1) == pytest.approx(1.0346e-5, rel=1e-4)
    assert float(accounting.discrete_gaussian_sigma(1, 1e-5)) == pytest.approx(3.740485, rel=ROOT)
    at_two = accounting.gaussian_sigma(2, 1e-5)
    assert accounting.delta(events.DiscreteGaussian(at_two, 1), 2) == pytest.approx(1.103e-5, rel=1e-3)


@pytest.mark.parametrize(("steps", "ratio"), [(1, 1.0346), (64, 1.000005)])
def test_discrete_gaussian_against_gaussian_dp(steps: int, ratio: float) -> None:
    sigma = float(accounting.gaussian_sigma(1, 1e-5))
    found = discrete_gaussian_delta(Fraction(sigma * steps), steps, 1.0)
    assert found / 1e-5 == pytest.approx(ratio, abs=2e-6 if steps > 1 else 1e-4)


HOMOGENEOUS = [
    (100, "0.1", 10, 5.2215, 4.774568, 4.692667),
    (10, "0.1", 1, 1.4716, 0.999371, 0.998978),
    (50, "0.5", 25, 23.6973, 20.301001, 18.754681),
    (365, "0.05", 18.25, 4.9584, 4.613448, 4.568866),
]


@pytest.mark.parametrize(("count", "each", "basic", "zcdp", "optimal", "laplace"), HOMOGENEOUS)
def test_composition_of_one_guarantee(  # noqa: PLR0917 - one row of the table
    count: int, each: str, basic: float, zcdp: float, optimal: float, laplace: float
) -> None:
    pure = events.Repeated(events.Pure(each), count)
    noise = events.Repeated(events.Laplace(1 / Fraction(each)), count)
    assert accounting.epsilon(pure, 1e-6, method="basic") == basic
    assert accounting.epsilon(pure, 1e-6, method="zCDP") == pytest.approx(zcdp, abs=1e-4)
    assert accounting.epsilon(pure, 1e-6, method="optimal homogeneous") == pytest.approx(optimal, rel=ROOT)
    assert accounting.epsilon(pure, 1e-6, method="PLD") == pytest.approx(optimal, rel=ROOT)
    assert accounting.epsilon(noise, 1e-6) == pytest.approx(laplace, rel=1e-5)
    assert accounting.epsilon(pure, 1e-6) <= optimal * (1 + ROOT)


@pytest.mark.parametrize(
    ("rho", "delta", "true"),
    [("0.5", 1e-6, 5.221534), ("0.1", 1e-6, 2.141939), ("1", 1e-5, 7.077197), ("0.01", 1e-8, 0.752326)],
)
def test_conversion_of_zcdp(rho: str, delta: float, true: float) -> None:
    assert accounting.epsilon(events.Concentrated(rho), delta, method="zCDP") == pytest.approx(true, rel=ROOT)
    assert zcdp_epsilon(float(rho), delta) < float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / delta))


def test_gaussian_dp_is_exact_where_zcdp_is_not() -> None:
    assert accounting.epsilon(events.Gaussian(1), 1e-6) == pytest.approx(4.886554, rel=ROOT)
    assert accounting.epsilon([events.Gaussian("5/3"), events.Gaussian("5/4")], 1e-6) == pytest.approx(
        4.886554, rel=ROOT
    )


DP_SGD = [
    ("0.01", "1", 1000, 1e-5, 1.8282, 2.1014),
    ("256/60000", "1.1", 14062, 1e-5, 2.3817, 2.5966),
    ("0.01", "0.8", 2000, 1e-5, 4.2934, 4.8611),
    ("0.001", "0.6", 10000, 1e-6, 3.1522, 3.9992),
    ("0.1", "4", 500, 1e-5, 2.3407, 2.5488),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("rate", "sigma", "steps", "delta", "pld", "renyi"), DP_SGD)
def test_noisy_gradients(  # noqa: PLR0917 - one row of the table
    rate: str, sigma: str, steps: int, delta: float, pld: float, renyi: float
) -> None:
    training = events.Repeated(events.PoissonSampled(rate, events.Gaussian(sigma)), steps)
    found = accounting.epsilon(training, delta)
    assert abs(found - pld) <= 1e-3
    assert found >= pld - 1e-4  # the printed digits are rounded
    assert accounting.epsilon(training, delta, method="RDP") == pytest.approx(renyi, rel=1e-3)


def test_the_promised_interval() -> None:
    training = events.Repeated(events.PoissonSampled("0.01", events.Gaussian(1)), 1000)
    assert 1.8280 <= accounting.epsilon(training, 1e-5) <= 1.8285


@pytest.mark.parametrize(("rate", "true"), [("0.01", 0.0170369), ("0.1", 0.1585651)])
def test_amplification(rate: str, true: float) -> None:
    q = Fraction(rate)
    found = amplified_epsilon(Fraction(1), q)
    exact = reference.mp.log1p(reference.real(q) * reference.mp.expm1(1))
    assert float(found) == pytest.approx(true, abs=5e-8)
    assert exact <= reference.real(found) <= exact * (1 + reference.mpf("1e-50"))
    assert accounting.epsilon(events.PoissonSampled(q, events.Pure(1)), 0) >= true - 5e-8


def test_amplification_scales_delta() -> None:
    sampled = events.PoissonSampled("0.01", events.Approx(1, "1e-5"))
    assert accounting.delta(sampled, 1) == pytest.approx(1e-7, rel=CLOSED)
    assert accounting.epsilon(sampled, "1e-7", method="basic") == pytest.approx(0.0170369, abs=5e-8)


def test_renyi_curve_of_a_pair_of_units() -> None:
    """Order 8, two units: the true divergence is far above four times the curve of one at the same order."""
    one = rdp(events.PoissonSampled("0.01", events.Gaussian(1))).divergences
    at = {order: float(one[list(ORDERS).index(order)]) for order in (8.0, 16.0)}
    assert 4 * at[8.0] == pytest.approx(0.003575, rel=1e-3)
    assert 3 * at[16.0] == pytest.approx(9.263552, rel=ROOT)


def test_renyi_curve_of_laplace() -> None:
    a = 2.0
    exact = math.log(a / (2 * a - 1) * math.exp(a - 1) + (a - 1) / (2 * a - 1) * math.exp(-a)) / (a - 1)
    assert rdp(events.Laplace(1)).divergences[list(ORDERS).index(a)] == pytest.approx(exact, rel=CLOSED)
