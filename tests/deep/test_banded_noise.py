"""Noise that is correlated between steps: its sensitivity by brute force, its law, its account, and interruptions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import nn

from discreet import accounting
from discreet.deep import BandedNoise, Flat, Trainer
from discreet.deep.banded_noise import Band, CorrelatedNoiseState
from discreet.deep.gradient_noise import NoisySum
from discreet.deep.poisson_batches import PoissonBatches
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits, uniform_below
from discreet.noise.experiment import normals, uniforms
from discreet.privacy.events import Composed, Gaussian, PoissonSampled, Repeated
from tests.deep.replayed import Draws, moves, size_of
from tests.deep.test_trainer import MULTIPLIER, losses, network, rows, train, trainer
from tests.learn.spying import told

ONE = 1 << 12


def encoded(band: Band, stream: Any) -> torch.Tensor:
    """C x, in steps of 2^-12."""
    correlation = CorrelatedNoiseState(band)
    return torch.stack([correlation.encode(entry) for entry in torch.as_tensor(stream, dtype=torch.float64)]) * ONE


def matrix(band: Band, steps: int) -> Any:
    return np.stack([np.concatenate([np.zeros(j), band.column, np.zeros(steps)])[:steps] for j in range(steps)], axis=1)


# ------------------------------------------------------------------------------------------------------ sensitivity


@pytest.mark.parametrize("bands", [1, 2, 3])
def test_no_participation_moves_more_than_its_windows(bands: int) -> None:
    """All sets of steps of each part, all signs: windows do not meet, and each moves by at most ||c||, exactly."""
    steps, band = 3 * bands, BandedNoise(bands).band(3 * bands)
    length = sum(c * c for c in band.column)
    assert band.sensitivity**2 >= Fraction(length, ONE**2)
    assert float(band.sensitivity) ** 2 == pytest.approx(length / ONE**2, rel=1e-9)
    base = torch.arange(steps, dtype=torch.float64) - 2
    reached = 0
    for part, signs in itertools.product(range(bands), itertools.product((-1, 0, 1), repeat=3)):
        stream = torch.zeros(steps, dtype=torch.float64)
        stream[part::bands] = torch.tensor(signs, dtype=torch.float64)
        moved = (encoded(band, base + stream) - encoded(band, base)).long().tolist()
        outside = moved[:part]
        windows = [moved[start : start + bands] for start in range(part, steps, bands)]
        assert not any(outside)
        for sign, window in zip(signs, windows, strict=True):
            assert window == [sign * c for c in band.column[: len(window)]]
        reached = max(reached, sum(entry**2 for entry in moved))
    assert reached == 3 * length  # of the first part


def test_participation_in_neighbouring_steps_would_move_more() -> None:
    """The mutant that draws parts anew for each step: its windows meet."""
    band = BandedNoise(3).band(9)
    stream = torch.zeros(9, dtype=torch.float64)
    stream[[0, 1, 6]] = 1
    moved = encoded(band, stream).long().tolist()
    assert sum(entry**2 for entry in moved) > 3 * sum(c * c for c in band.column)


def test_the_matrix_is_exact_on_a_grid() -> None:
    band = BandedNoise(bands=5).band(100)
    stream = torch.from_numpy(uniform_below(1 << 31, (20, 7), bits=SeededBits(1))) - (1 << 30)
    whole = encoded(band, stream.double() / 1024) * 1024
    expected = matrix(band, 20).astype(object) @ stream.numpy().astype(object)
    assert (whole.long().numpy().astype(object) == expected).all()


@pytest.mark.ci
def test_coefficients_fall_from_one() -> None:
    """Then all zeros of their polynomial lie outside the unit circle, and C^-1 is stable."""
    for bands, steps in itertools.product([2, 3, 10, 100], [4, 100, 5000]):
        column = BandedNoise(bands).band(steps).column
        assert (column[0], len(column)) == (ONE, bands)
        assert column[0] > column[1] >= column[-1] > 0
        assert list(column) == sorted(column, reverse=True)


def test_decoding_inverts() -> None:
    band = BandedNoise(bands=4).band(50)
    correlation, stream = CorrelatedNoiseState(band), torch.from_numpy(normals((50, 3), bits=SeededBits(2)))
    back = torch.stack([correlation.decode(entry / ONE) for entry in encoded(band, stream)])
    assert torch.allclose(back, stream, atol=1e-12)


# -------------------------------------------------------------------------------------------------------- the noise

STEPS, WIDTH = 6, 20_000


def covariance(released: Any) -> Any:
    return released @ released.T / WIDTH


@pytest.mark.parametrize("exact", [True, False])
def test_released_gradients_have_the_correlated_law(*, exact: bool) -> None:
    """The covariance over steps is sigma^2 C^-1 C^-T; an entry's deviation is at most sqrt(2 / 20000) v = 0.01 v.

    Six deviations of the largest variance v; independent noise of any size is rejected by the same sample.
    """
    band = BandedNoise(bands=3).band(STEPS)
    sums = NoisySum({"w": WIDTH}, Flat(2), 5, band=band, exact=exact)
    bits = SeededBits(3)
    found = covariance(np.stack([sums.release(bits)["w"].numpy() for _ in range(STEPS)]))
    inverse = np.linalg.inv(matrix(band, STEPS) / ONE)
    law = float(sums.mechanism.sigma) ** 2 * inverse @ inverse.T
    assert float(sums.mechanism.sigma) == pytest.approx(10 * float(band.sensitivity))
    close = 6 * 0.01 * float(law.max())
    assert np.abs(found - law).max() < close
    assert np.abs(found - np.diag(np.diag(law))).max() > 2 * close


@pytest.mark.slow
def test_correlated_noise_cancels_in_running_sums() -> None:
    """At the same epsilon, by a public formula; and a few bands beat none where sampling hides little."""
    rate, steps = Fraction(1, 100), 500

    def error(bands: int) -> float:
        noise = BandedNoise(bands)
        sigma = accounting.calibrate(lambda m: noise.event(rate, m, steps), epsilon=4, delta=1e-6)
        return float(sigma) * noise.band(steps).error(steps)

    assert error(8) < 0.65 * error(1)
    assert BandedNoise().band(steps).error(steps) == pytest.approx(np.sqrt(501 / 2))


# ------------------------------------------------------------------------------------------------------ the account


def test_a_run_counts_windows_and_samples_parts() -> None:
    made: Any = trainer(rows(10), size=10, batch_size=1, epochs=1.3, bands=4)
    assert made.steps == 16
    assert made.planned_event == Repeated(PoissonSampled(Fraction(4, 10), Gaussian(MULTIPLIER)), 4)
    assert made.event == Composed([])
    for batch in made:
        made.step(losses(made.net, batch))
        if made.taken == 5:
            assert made.event == Repeated(PoissonSampled(Fraction(4, 10), Gaussian(MULTIPLIER)), 2)
    assert made.event == made.planned_event
    made.close()


@pytest.mark.slow
def test_noise_is_found_from_epsilon() -> None:
    made = trainer(rows(10), batch_size=2, noise_multiplier=None, epsilon=2, bands=3)
    assert 1.99 < accounting.epsilon(made.planned_event, 1e-5) <= 2
    made.close()


PARTS, CHANCE, NOISE, WINDOWS = 3, 0.5, 1.0, 2


def delta_of(in_use: Any, column: Any, epsilon: float, *, added: bool = False) -> tuple[float, float]:
    """delta(epsilon) of y = C x + z against y = z by 100,000 runs with x, or of z against it, and its deviation.

    Args:
        in_use: steps in which the one example is, by runs: its own draws, and nothing else.
        column: c, of length 1.
        epsilon: where.
        added: whether runs are those without the example.
    """
    runs, steps = in_use.shape
    c = np.stack([np.concatenate([np.zeros(j), column, np.zeros(steps)])[:steps] for j in range(steps)], axis=1)
    noisy = (0 if added else in_use @ c.T) + NOISE * normals((runs, steps), bits=SeededBits(9))
    # The likelihood of y given x by all patterns of the law of x, each with its probability.
    patterns, weights = np.unique(in_use, axis=0, return_counts=True)
    means = patterns @ c.T
    logs = (noisy @ means.T - (means**2).sum(1) / 2) / NOISE**2
    ratio = np.exp(logs) @ (weights / runs)
    terms = np.maximum(0.0, 1 - np.exp(epsilon) * (ratio if added else 1 / ratio))
    return float(terms.mean()), float(terms.std() / np.sqrt(runs))


def drawn() -> Any:
    """Steps of one example: its part, and a coin in each of its steps."""
    runs, bits = 100_000, SeededBits(8)
    part = np.floor(uniforms(runs, bits=bits) * PARTS).astype(int)
    coins = uniforms((runs, WINDOWS), bits=bits) < CHANCE
    found = np.zeros((runs, WINDOWS * PARTS))
    for window in range(WINDOWS):
        found[np.arange(runs), window * PARTS + part] = coins[:, window]
    return found


@pytest.mark.ci
def test_the_account_covers_the_law_of_one_example() -> None:
    """The true delta of a run with one example of full length, against that of the event; and mutants beyond theirs."""
    column = np.array(BandedNoise(PARTS).band(WINDOWS * PARTS).column) / ONE
    column /= np.linalg.norm(column)
    event = BandedNoise(PARTS).event(Fraction(1, 6), Fraction(1), WINDOWS * PARTS)
    assert event == Repeated(PoissonSampled(Fraction(1, 2), Gaussian(1)), WINDOWS)
    claimed = accounting.delta(event, 0.5)
    found, deviation = delta_of(drawn(), column, 0.5)
    assert found < claimed + 5 * deviation
    found, deviation = delta_of(drawn(), column, 0.5, added=True)
    assert found < claimed + 5 * deviation
    first = np.zeros((100_000, WINDOWS * PARTS))
    first[:, ::PARTS] = uniforms((100_000, WINDOWS), bits=SeededBits(7)) < CHANCE
    known, deviation = delta_of(first, column, 0.5)
    assert abs(known - claimed) < 5 * deviation  # tight for an example whose part is known
    # Parts that are drawn anew in every round: windows meet, and two steps in a row move what both cover.
    neighbours = np.zeros((100_000, WINDOWS * PARTS))
    neighbours[:, PARTS - 1 : PARTS + 1] = uniforms((100_000, WINDOWS), bits=SeededBits(7)) < CHANCE
    met, deviation = delta_of(neighbours, column, 0.5)
    assert met > claimed + 5 * deviation
    # Counted as if noise were independent: a step's sample of 1/6, but each step is covered by a part of the noise.
    independent = Repeated(PoissonSampled(Fraction(1, 6), Gaussian(1)), WINDOWS * PARTS)
    assert accounting.delta(independent, 0.5) < known - 5 * deviation


# -------------------------------------------------------------------------------------------------- record and replay

BANDS = 3


def draws_of(examples: int, steps: int, seed: int) -> Draws:
    bits = SeededBits(seed)
    coins = uniforms((steps, examples), bits=bits) < 0.6
    return Draws(coins, np.floor(uniforms(examples, bits=bits) * BANDS).astype(np.int64))


def correlated(data: Any, **changed: Any) -> Any:
    options = {"size": 9, "batch_size": 1, "epochs": 1, "physical_batch": 1, "bands": BANDS}
    return train(trainer(data, **{**options, **changed}))


def window_moves(place: int, draws: Draws) -> list[float]:
    """How far one example moves each of its windows; in what is before the first one it moves nothing."""
    outputs = [normals(size_of(network()), bits=SeededBits(step)) for step in range(9)]
    found = moves(correlated, rows(10), place, draws, outputs)
    assert draws.parts is not None
    part = int(draws.parts[place])
    assert all(not vector.any() for vector in found[:part])
    return [float(np.linalg.norm(np.concatenate(found[at : at + BANDS]))) for at in range(part, 9, BANDS)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", [0, 4, 9])
def test_one_example_moves_each_window_by_at_most_its_bound(place: int) -> None:
    """With the same draws, and the same outputs, of noise: the others stay where they are, exactly."""
    for seed in range(3):
        draws = draws_of(10, 9, seed)
        assert draws.parts is not None
        found = window_moves(place, draws)
        assert max(found) <= 1 / MULTIPLIER
        entered = [bool(draws.coins[at, place]) for at in range(int(draws.parts[place]), 9, BANDS)]
        assert [move > 0 for move in found] == entered


@pytest.mark.ci
def test_mutant_participation_without_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example in any step, under banded noise: windows meet."""
    honest = PoissonBatches.__init__

    def broken(self: Any, *args: Any, parts: int = 1, **options: Any) -> None:  # noqa: ARG001 - that is what is broken
        honest(self, *args, **options)

    monkeypatch.setattr(PoissonBatches, "__init__", broken)
    draws = Draws(np.ones((9, 10), dtype=bool), np.zeros(10, dtype=np.int64))
    assert max(window_moves(9, draws)) > 1.3 / MULTIPLIER


def test_mutant_noise_for_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sensitivity of one entry of C x, not of a window."""
    monkeypatch.setattr(Band, "sensitivity", Fraction(1))
    assert max(window_moves(9, draws_of(10, 9, 0))) > 1.1 / MULTIPLIER


def test_parts_are_drawn_fairly_and_by_example() -> None:
    """3,000 examples in 3 parts: each part within six deviations of 25.8 of a third."""
    batches = PoissonBatches(rows(3000), Fraction(1), 3000, parts=3)
    batches.assign(SeededBits(4))
    found = [sum(size for _, size, _ in batches.draw(part=part)) for part in range(3)]
    assert sum(found) == 3000
    assert all(abs(size - 1000) < 155 for size in found)


# ------------------------------------------------------------------------------------------------------ interruptions


def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order: parts that are drawn, and parts of which batches are drawn."""
    log: list[str] = []
    assign, draw = PoissonBatches.assign, PoissonBatches.draw

    def logged_assign(self: Any, bits: Any = None) -> None:
        log.append("new")
        assign(self, bits)

    def logged_draw(self: Any, bits: Any = None, *, part: int = 0) -> Any:
        log.append(str(part))
        return draw(self, bits, part=part)

    monkeypatch.setattr(PoissonBatches, "assign", logged_assign)
    monkeypatch.setattr(PoissonBatches, "draw", logged_draw)
    return log


def test_a_broken_loop_begins_new_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    log = begun(monkeypatch)
    made: Any = trainer(rows(10), size=10, batch_size=3, epochs=3, bands=BANDS, bits=SeededBits(6))
    assert made.steps == 12
    for batch in made:
        if made.taken == 4:
            break
        made.step(losses(made.net, batch))
    train(made)
    assert log == ["new", "0", "1", "2", "0", "new", "0", "1", "2", "0", "1", "2"]
    assert made.event == made.planned_event
    assert made.event.count == 4


def test_a_step_without_a_release_begins_new_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error was caught, and the loop goes on: a matrix a step behind the parts would let windows meet."""
    log = begun(monkeypatch)
    made: Any = trainer(rows(10), size=10, batch_size=3, epochs=3, bands=BANDS, bits=SeededBits(6))

    def caught() -> None:
        for batch in made:
            try:
                made.step(losses(made.net, batch).mean() if made.taken == 5 else losses(made.net, batch))
            except InvalidParameter:
                continue

    seen = told(caught)
    assert log == ["new", "0", "1", "2", "0", "1", "new", "0", "1", "2", "0", "1", "2"]
    assert (len(seen), made.taken) == (10, 12)  # the fifth was not released, the sixth is given up


def test_a_new_loop_forgets_sums_and_their_noise() -> None:
    """Else an example of the fourth step would move the windows after it, too."""
    made: Any = trainer(rows(10), size=10, batch_size=3, epochs=3, bands=BANDS, bits=SeededBits(6))
    net, outputs = made.net, [np.zeros(size_of(network()))] * 12

    def broken_off() -> None:
        for batch in made:
            if made.taken == 5:
                break
            made.step(losses(net, batch))
        for _ in made:  # a loop whose losses have no gradient
            made.step(sum(p.sum() for p in net.parameters()) * torch.zeros(made._waiting))

    seen = told(broken_off, outputs)
    assert any(told.value.any() for told in seen[:4])
    assert not any(told.value.any() for told in seen[4:])


def test_a_run_that_goes_on_keeps_its_account_and_its_secrets(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    options: dict[str, Any] = {"size": 10, "batch_size": 3, "epochs": 3, "bands": BANDS, "bits": SeededBits(6)}
    options |= {"checkpoint": path, "save_every": 1}
    first: Any = trainer(rows(10), **options)
    for batch in first:
        first.step(losses(first.net, batch))
        if first.taken == 4:
            break
    first.close()
    saved = torch.load(path, weights_only=True)
    assert set(saved) == {"run", "taken", "model", "optimizer"}  # no sum, no noise, no parts
    assert sum(value.numel() for value in saved["model"].values()) == size_of(network())
    with pytest.raises(InvalidParameter, match="event"):
        trainer(rows(10), **{**options, "bands": 1})
    second: Any = trainer(rows(10), **options)
    assert second.taken == 4
    seen = told(lambda: train(second))
    assert len(seen) == 6
    assert second.event == second.planned_event == first.planned_event


def test_bands_are_checked() -> None:
    for wrong in (0, -1, 1025, 1.5):
        with pytest.raises(InvalidParameter, match="bands"):
            BandedNoise(bands=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="at most 3"):
        trainer(rows(10), batch_size=3, bands=4)


def test_one_band_is_independent_noise() -> None:
    def weights(**options: Any) -> Any:
        net = network()
        train(trainer(rows(10), net, bits=SeededBits(5), **options))
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    assert torch.equal(weights(), weights(bands=1))


def test_all_steps_of_an_epoch_use_an_example_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many bands as batches: nothing is left to chance but the parts."""
    seen: list[int] = []
    collated = PoissonBatches._collate_batch

    def logged(self: Any, places: Any) -> Any:
        seen.extend(places)
        return collated(self, places)

    monkeypatch.setattr(PoissonBatches, "_collate_batch", logged)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    options: dict[str, Any] = {"size": 10, "batch_size": 2, "epochs": 3, "bands": 5, "delta": 1e-5}
    with Trainer(net, optimizer, rows(10), noise_multiplier=1, **options) as made:
        for batch in made:
            made.step(losses(net, batch))
    assert sorted(seen) == sorted([*range(10)] * 3)
    assert made.event == Repeated(PoissonSampled(Fraction(1), Gaussian(1)), 3)
