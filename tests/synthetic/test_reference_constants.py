"""The constants of generators, derived again from the papers' formulas and compared with what mechanisms are given.

Nothing of the generators is used to compute what is expected: prices, deviations, scores, the rule of dearer rounds and
the conversions to (epsilon, delta) are written down once more, in floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.special import log_ndtr, ndtr

from discreet.audit.queries.mechanism_recorder import MechanismCall, MechanismRecorder, watch_mechanisms
from discreet.mechanisms import Exponential, Gaussian
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours
from discreet.synthetic import AIM, MST, AllPairs, Domain, Independent, Model, aim, all_pairs
from discreet.synthetic.coded_rows import CodedRows
from discreet.synthetic.generator import Generator
from discreet.synthetic.inference.estimation import fit
from discreet.synthetic.inference.junction_tree import tree_size
from discreet.synthetic.measurement_log import STEPS

DOMAIN = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1, 2, 3], "d": [0, 1]}
SIZES = {"a": 3, "b": 4, "c": 5, "d": 3}  # each with a code for missing values
EPSILON, DELTA = 2.0, 1e-7
RELATIONS = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]
EXPECTED = math.sqrt(2 / math.pi)


def table(rows: int = 500, seed: int = 2) -> CodedRows:
    u = uniforms((rows, 4), bits=SeededBits(seed))
    a = (u[:, 0] < 0.3).astype(int)
    b = np.where(u[:, 1] < 0.7, a, 2)
    c = np.where(u[:, 2] < 0.6, b, 3)
    return CodedRows(SIZES, np.stack([a, b, c, (u[:, 3] < 0.5).astype(int)], axis=1))


def run(generator: Generator, rows: CodedRows) -> tuple[Model, list[MechanismCall]]:
    recorder = MechanismRecorder(SeededBits(4))
    frame = {name: rows.codes[:, place] for place, name in enumerate(SIZES)}
    with watch_mechanisms(recorder):
        model = generator.fit(frame, domain=DOMAIN)
    return model, recorder.made


def sensitivities(relation: Neighbours) -> tuple[int, float]:
    """L1 and L2 of a marginal when one row comes or goes, or is another: e, or e - f."""
    return (1, 1.0) if relation is Neighbours.ADD_REMOVE else (2, math.sqrt(2))


def rounded(sigma: float) -> float:
    """The deviation of normal noise of at least 1 after rounding to whole numbers (Sheppard)."""
    return math.sqrt(sigma**2 + 1 / 12)


# -------------------------------------------------------------------------------------------------------- conversions


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The least over orders of the bound of Canonne, Kamath, Steinke 2020, Proposition 12."""

    def bound(log_excess: float) -> float:
        alpha = 1 + math.exp(log_excess)
        told = math.log(1 / delta) + alpha * math.log(1 - 1 / alpha) - math.log(alpha - 1)
        return alpha * rho + told / (alpha - 1)

    return float(optimize.minimize_scalar(bound, bounds=(-8, 12), method="bounded", options={"xatol": 1e-10}).fun)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Balle, Wang 2018, Theorem 8."""
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_budgets_are_the_largest_that_keep_to_epsilon_and_delta(epsilon: float, delta: float) -> None:
    domain = Domain(DOMAIN)
    for make in (MST, AIM):
        rho = float(make(epsilon=epsilon, delta=delta).rho(domain))
        assert zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-7)
    for kind in (Independent, AllPairs):
        mu = math.sqrt(2 * float(kind(epsilon=epsilon, delta=delta).rho(domain)))
        assert gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)
        assert gaussian_delta(mu, epsilon) <= delta * (1 + 1e-10)


def test_the_mean_of_normal_noise_is_what_scores_take_off() -> None:
    found, _ = integrate.quad(lambda x: 2 * x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi), 0, math.inf)
    assert pytest.approx(found, rel=1e-12) == EXPECTED == aim._EXPECTED


# ---------------------------------------------------------------------------------------------------------------- AIM

MOST = 90  # cells of the model
WORKLOAD = [set(pair) for pair in combinations(SIZES, 2)]
SUBSETS: list[tuple[str, ...]] = [(name,) for name in SIZES] + list(combinations(SIZES, 2))
WEIGHTS = {names: sum(len(each & set(names)) for each in WORKLOAD) for names in SUBSETS}
SLACK = 20 * 6 / STEPS  # cells times the largest weight, each rounded to a step


@dataclass
class Rounds:
    """What a run has spent and measured so far, by the rules of the paper."""

    rows: CodedRows
    rho: float
    price: float
    spent: float
    measured: list[tuple[str, ...]] = field(default_factory=lambda: [(name,) for name in SIZES])
    dearer: int = 0

    def begin(self) -> None:
        """When less than two rounds are left, the next one costs all that remains."""
        if self.rho - self.spent < 2 * self.price * (1 - 1e-9):
            self.price = self.rho - self.spent

    def scores(self, model: Any, sigma: float) -> dict[tuple[str, ...], float]:
        """Of the candidates for which there is room: w_r (|M_r - E_r|_1 - sqrt(2 / pi) sigma n_r)."""
        room = MOST * (self.spent + self.price) / self.rho * (1 + 1e-12)
        fits = [names for names in SUBSETS if len(names) == 1 or tree_size(SIZES, [*self.measured, names]) <= room]
        errors = {names: float(np.abs(self.rows.counts(names) - model.counts(names)).sum()) for names in fits}
        return {names: WEIGHTS[names] * (errors[names] - EXPECTED * sigma * cells(names)) for names in fits}

    def end(self, chosen: tuple[str, ...], moved: float, sigma: float) -> None:
        """A model that moved by less than noise would have rounds cost four times as much."""
        self.spent += self.price
        self.measured.append(chosen)
        if moved <= EXPECTED * sigma * cells(chosen):
            self.price, self.dearer = 4 * self.price, self.dearer + 1


def cells(names: tuple[str, ...]) -> int:
    return math.prod(SIZES[name] for name in names)


@pytest.mark.parametrize("relation", RELATIONS)
def test_aim_chooses_measures_and_pays_by_the_rules(relation: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round by round: candidates, weights, scores, epsilon, sigma and the price of the next round."""
    fits: list[Any] = []

    def kept(*given: Any, **how: Any) -> Any:
        fits.append(fit(*given, **how))
        return fits[-1]

    monkeypatch.setattr(aim, "fit", kept)
    rows, (l1, l2) = table(), sensitivities(relation)
    model, handed = run(AIM(epsilon=EPSILON, delta=DELTA, neighbours=relation, most_cells=MOST), rows)
    rho, turns = float(model.rho), 16 * 4
    for one in handed[:4]:
        assert float(one.mechanism.sigma) == pytest.approx(l2 * math.sqrt(turns / (2 * 0.9 * rho)))
    state = Rounds(rows, rho, price=rho / turns, spent=4 * 0.9 * rho / turns)
    steps = zip(pairwise(fits), handed[4::2], handed[5::2], model.measurements[4:], strict=True)
    for (before, after), choice, noise, measured in steps:
        state.begin()
        sigma = l2 / math.sqrt(2 * 0.9 * state.price)
        assert isinstance(choice.mechanism, Exponential)
        assert isinstance(noise.mechanism, Gaussian)
        assert float(choice.mechanism.epsilon) == pytest.approx(math.sqrt(8 * 0.1 * state.price))
        assert float(noise.mechanism.sigma) == pytest.approx(sigma)
        expected, found = state.scores(before, rounded(sigma)), np.asarray(choice.inputs[0]) / STEPS
        assert choice.mechanism.sensitivity == STEPS * l1 * max(WEIGHTS[names] for names in expected)
        np.testing.assert_allclose(np.sort(found), np.sort(list(expected.values())), atol=SLACK)
        chosen = measured.attributes
        assert found[choice.out] == pytest.approx(expected[chosen], abs=SLACK)
        state.end(chosen, float(np.abs(after.counts(chosen) - before.counts(chosen)).sum()), rounded(sigma))
    assert state.spent == pytest.approx(rho)
    assert state.dearer > 1
    assert len({names for names in state.measured if len(names) > 1}) > 1


# ---------------------------------------------------------------------------------------------------------------- MST


@pytest.mark.parametrize("relation", RELATIONS)
def test_mst_spends_a_third_each_on_columns_choices_and_pairs(relation: Neighbours) -> None:
    rows = table(5000)
    model, handed = run(MST(epsilon=EPSILON, delta=DELTA, neighbours=relation, rare=0), rows)
    (l1, l2), rho, d = sensitivities(relation), float(model.rho), 4
    columns, choices, pairs = handed[:d], handed[d : 2 * d - 1], handed[2 * d - 1 :]
    assert (len(choices), len(pairs)) == (d - 1, d - 1)
    for one in columns:
        assert float(one.mechanism.sigma) == pytest.approx(l2 * math.sqrt(3 * d / (2 * rho)))
    for one in pairs:
        assert float(one.mechanism.sigma) == pytest.approx(l2 * math.sqrt(3 * (d - 1) / (2 * rho)))
    for one in choices:
        assert float(one.mechanism.epsilon) == pytest.approx(math.sqrt(8 * rho / 3 / (d - 1)))
        assert one.mechanism.sensitivity == STEPS * l1
    shares = {m.attributes[0]: m.values.clip(0) / m.values.clip(0).sum() for m in model.measurements[:d]}
    total = np.mean([m.values.sum() for m in model.measurements[:d]])
    scores = np.asarray(choices[0].inputs[0]) / STEPS
    for pair, score in zip(combinations(SIZES, 2), scores, strict=True):
        alone = total * np.multiply.outer(shares[pair[0]], shares[pair[1]])
        assert score == pytest.approx(float(np.abs(rows.counts(pair) - alone).sum()), rel=0.1, abs=200)
    chosen = {m.attributes for m in model.measurements[d:]}
    assert chosen == {("a", "b"), ("b", "c")} | {pair for pair in chosen if "d" in pair}


# ----------------------------------------------------------------------------------------------------------- AllPairs


@pytest.mark.parametrize("relation", RELATIONS)
def test_all_pairs_shares_are_what_they_are_said_to_be(relation: Neighbours) -> None:
    """Columns at n^(2/3), pairs at the root of their free numbers; sensitivities by going through all rows."""
    rows = table(3000)
    model, handed = run(AllPairs(epsilon=EPSILON, delta=DELTA, neighbours=relation, rare=0), rows)
    (_, l2), rho, part = sensitivities(relation), float(model.rho), float(all_pairs.COLUMNS)
    weights = {name: size ** (2 / 3) for name, size in SIZES.items()}
    assert len(handed) == 5
    for name, one in zip(SIZES, handed, strict=False):
        price = part * rho * weights[name] / sum(weights.values())
        assert float(one.mechanism.sigma) == pytest.approx(l2 / math.sqrt(2 * price), rel=1e-6)
    assert float(handed[-1].mechanism.event.noise_multiplier) == pytest.approx(1 / math.sqrt(2 * (1 - part) * rho))
    pairs = {m.attributes: m.sigma for m in model.measurements if m.residual}
    assert set(pairs) == set(combinations(SIZES, 2))

    def moves(pair: tuple[str, ...]) -> float:
        """The square of how far one row moves a residual, over all rows and pairs of rows."""
        n, m = (SIZES[name] for name in pair)
        both = np.kron(np.eye(n) - 1 / n, np.eye(m) - 1 / m)
        if relation is Neighbours.ADD_REMOVE:
            return float(max(line @ line for line in both))
        return float(max((p - q) @ (p - q) for p in both for q in both))

    shares = {pair: moves(pair) / (2 * (1 - part) * rho * sigma**2) for pair, sigma in pairs.items()}
    assert sum(shares.values()) == pytest.approx(1, rel=1e-3)  # sigma^2 = moves / (2 share rho)

    free: dict[tuple[str, ...], float] = {
        (one, other): math.sqrt((SIZES[one] - 1) * (SIZES[other] - 1)) for one, other in shares
    }
    for pair, share in shares.items():
        assert share == pytest.approx(free[pair] / sum(free.values()), rel=1e-3)
