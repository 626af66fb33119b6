"""Iterative covariances: moves of the sums on all neighbours, maps in integers, events, coverage."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.statistics.moments import iterative_covariance as module
from discreet.statistics.moments.iterative_covariance import UNITS, Root, iterative_covariance
from tests.conformance.nothing import NoBits

ROWS = np.array([[0.0, 1.0], [3.0, -4.0], [100.0, 100.0], [-1e9, 2.0], [np.nan, np.inf]])
NEW = [np.array([1e6, -1e6]), np.array([0.1, 0.2]), np.array([1e3, 1e3])]
COVARIANCE = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 0.2]])


def run(x: Any, **options: Any) -> Any:
    chosen: dict[str, Any] = {"upper": 4, "epsilon": 1, "delta": 1e-6, "bits": SeededBits(1), **options}
    return iterative_covariance(x, **chosen)


def sums_of(monkeypatch: pytest.MonkeyPatch, x: Any, **options: Any) -> list[tuple[Any, float]]:
    """What the noise is added to in each step, when each step releases a fixed matrix."""
    seen = []
    fixed = np.array([[5e7, 1e7], [1e7, 3e7]])

    def release(sums: Any, *, noise_multiplier: Any, sensitivity: Any, bits: Any) -> Any:  # noqa: ARG001 - called so
        seen.append((sums, float(sensitivity)))
        return fixed

    with monkeypatch.context() as patch:
        patch.setattr(module, "release_symmetric", release)
        patch.setattr(Gaussian, "release", lambda *_, **__: 30.0)
        run(x, **options)
    return seen


@pytest.mark.parametrize("relation", list(Neighbours))
def test_all_neighbours_keep_the_promises(monkeypatch: pytest.MonkeyPatch, relation: Neighbours) -> None:
    first = sums_of(monkeypatch, ROWS, neighbours=relation)
    assert len(first) == 4
    rest = [np.delete(ROWS, i, axis=0) for i in range(len(ROWS))]
    if relation is Neighbours.ADD_REMOVE:
        others = rest + [np.vstack([ROWS, row]) for row in NEW]
    else:
        others = [np.vstack([part, row]) for part in rest for row in NEW]
    worst = 0.0
    for y in others:
        for (sums, allowed), (changed, _) in zip(first, sums_of(monkeypatch, y, neighbours=relation), strict=True):
            worst = max(worst, float(np.linalg.norm((sums - changed).astype(float))) / allowed)
    assert 0.9 < worst <= 1


def test_mapped_rows_are_functions_of_themselves() -> None:
    wanted = normals((6, 6), bits=SeededBits(2))
    root = Root._of(wanted, 0.01, 30.0)
    rows = normals((200, 6), bits=SeededBits(3)) * np.logspace(-1, 3, 200)[:, None]
    together = root.rows(rows)
    alone = np.vstack([root.rows(rows[i : i + 1]) for i in range(200)])
    assert (together == alone).all()
    assert (np.sum(together * together, axis=1) <= UNITS * UNITS).all()
    near = rows[np.linalg.norm(rows @ root.map, axis=1) < 29]
    assert 50 < len(near) < 150
    found = root.rows(near) * (30.0 / UNITS)
    assert np.abs(found - near @ root.map).max() < 0.2  # rows were rounded to 0.01 and the map is not small


@pytest.mark.parametrize("relation", list(Neighbours))
def test_the_event_is_the_budget(relation: Neighbours) -> None:
    found = [run(x, neighbours=relation).event for x in (ROWS, np.zeros((100, 2)))]
    assert found[0] == found[1]
    assert 0.99 < accounting.epsilon(found[0], 1e-6, neighbours=relation) <= 1
    assert len(found[0].events) == (5 if relation is Neighbours.ADD_REMOVE else 4)


def test_released_numbers_decide_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "release_symmetric", lambda *_, **__: np.array([[5e7, 1e7], [1e7, 3e7]]))
    monkeypatch.setattr(Gaussian, "release", lambda *_, **__: 30.0)
    first, second = run(ROWS), run(np.zeros((1000, 2)))
    assert (first.low == second.low).all()
    assert (first.high == second.high).all()


@pytest.mark.parametrize("relation", list(Neighbours))
def test_intervals_cover(relation: Neighbours) -> None:
    """12 runs of 6 entries: of 72 intervals fewer than 61 at 95 % have a probability below 0.1 %."""
    factor = np.linalg.cholesky(COVARIANCE)
    hits, errors = 0, []
    for seed in range(12):
        x = 10 + normals((20_000, 3), bits=SeededBits(50 + seed)) @ factor.T
        found = run(x, centre=10, neighbours=relation, bits=SeededBits(seed))
        inside = (found.low <= COVARIANCE) & (found.high >= COVARIANCE)
        hits += int(np.sum(inside[np.triu_indices(3)]))
        errors.append(np.abs(found.value - COVARIANCE).max())
        assert np.linalg.eigvalsh(found.value).min() > -1e-12
        assert np.allclose(found.value, found.value.T)
    assert hits >= 61
    assert np.median(errors) < 0.25


def test_later_steps_make_a_vague_bound_good() -> None:
    """With variances a thousand times below the bound one step is useless, four are not."""
    x = normals((50_000, 2), bits=SeededBits(8))
    once, often = (run(x, upper=1000, shares=shares).value for shares in ((1,), None))
    assert np.abs(once - np.eye(2)).max() > 10 * np.abs(often - np.eye(2)).max()


def test_one_dimension_and_no_rows() -> None:
    assert run(normals((5000, 1), bits=SeededBits(1)), upper=2).value.shape == (1, 1)
    assert np.isfinite(run(np.empty((0, 2))).value).all()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": None, "delta": None}, "epsilon"),
        ({"delta": None}, "delta"),
        ({"upper": 0}, "upper"),
        ({"shares": ()}, "shares"),
        ({"confidence": 2}, "confidence"),
    ],
)
def test_refusals_come_before_the_data_is_read(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        run("unread", bits=NoBits(), **options)
    assert refused.value.name == name
    with pytest.raises(InvalidValue):
        run("text", bits=NoBits())


def test_mutant_sensitivity_of_added_rows_under_replace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orthogonal rows move the matrix sqrt 2 times as far as one row does: the check of moves notices."""
    monkeypatch.setattr(module, "moment_sensitivity", lambda squares, _: Fraction(squares))
    x, y = np.array([[1e6, 0.0]]), np.array([[0.0, 1e6]])
    (first, allowed), *_ = sums_of(monkeypatch, x, neighbours="replace")
    (second, _), *_ = sums_of(monkeypatch, y, neighbours="replace")
    moved = float(np.linalg.norm((first - second).astype(float))) / allowed
    assert moved == pytest.approx(math.sqrt(2), rel=1e-3)
