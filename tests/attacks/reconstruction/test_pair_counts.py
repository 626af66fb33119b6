"""Whole genomes from exact counts of pairs, up to the order of people."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from discreet.attacks import genotypes_from_pairs
from discreet.attacks.attack import ceiling
from discreet.attacks.reconstruction.pair_counts import _tables
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import coins


def rows(table: Any) -> Any:
    return Counter(map(tuple, np.asarray(table).tolist()))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8])
def test_more_pairs_than_bits_give_the_table_away(n: int, bits: SeededBits) -> None:
    people = coins((n, 2 * n + 2), bits=bits).astype(np.int64)
    found = genotypes_from_pairs(people.T @ people, n, truth=people)
    assert found.unique
    assert rows(found.recovered) == rows(people)
    assert found.success == found.predicted == 1.0
    assert found.baseline == n * 2.0 ** -(2 * n + 2)


@pytest.mark.parametrize(("n", "sites"), [(2, 3), (3, 3), (4, 2)])
def test_every_solution_is_met_once(n: int, sites: int) -> None:
    everything = [np.array(list(t)).reshape(n, sites) for t in itertools.product((0, 1), repeat=n * sites)]
    by_counts: dict[bytes, set[Any]] = {}
    for table in everything:
        key = (table.T @ table).astype(np.int64).tobytes()
        by_counts.setdefault(key, set()).add(tuple(sorted(map(tuple, table.tolist()))))
    for key, tables in by_counts.items():
        counts = np.frombuffer(key, dtype=np.int64).reshape(sites, sites)
        found = [tuple(sorted(map(tuple, table.tolist()))) for table in _tables(counts, n)]
        assert len(found) == len(set(found))
        assert set(found) == tables


def test_few_sites_leave_a_choice() -> None:
    # All four rows once, or each of two opposite halves twice: same counts of ones, other pairs; but three sites of
    # even and of odd parity have the same pairs.
    even = np.array([t for t in itertools.product((0, 1), repeat=3) if sum(t) % 2 == 0])
    found = genotypes_from_pairs(even.T @ even, 4)
    assert not found.unique
    assert found.success < 1
    assert found.predicted is None
    assert "Other tables" in found.summary()


def test_counts_of_nobody_have_no_solution() -> None:
    found = genotypes_from_pairs([[1, 1], [1, 0]], 2)
    assert found.recovered is None
    assert found.success == 0
    assert not found.unique
    assert "No table" in found.summary()


def test_private_counts_give_nobody_away_and_exact_ones_everybody(bits: SeededBits) -> None:
    people = coins((5, 12), bits=bits)
    found = genotypes_from_pairs.compare(people, bits=bits)
    assert found.raw.success == 1
    assert found["rounded to 2"].success == 0
    for trial in found.private:
        assert trial.epsilon is not None
        assert trial.finding.success == 0
        assert trial.finding.bound == ceiling(trial.epsilon, trial.finding.baseline)


def test_with_the_noise_off_the_bound_is_broken(bits: SeededBits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Laplace, "release", lambda _self, value, **_: value)
    private = genotypes_from_pairs.compare(coins((5, 12), bits=bits), bits=bits)["epsilon 0.1"]
    assert private.bound is not None
    assert private.success > private.bound


def test_one_person_moves_all_counts_by_no_more_than_the_noise_is_for() -> None:
    sites = 4
    persons = [np.array(t) for t in itertools.product((0, 1), repeat=sites)]
    upper = np.triu_indices(sites)
    added = max(np.outer(a, a)[upper].sum() for a in persons)
    replaced = max(np.abs(np.outer(a, a) - np.outer(b, b))[upper].sum() for a in persons for b in persons)
    assert added == replaced == len(upper[0])


@pytest.mark.parametrize(
    ("name", "pairs", "other"),
    [
        ("pairs", [[1, 0], [1, 1]], {}),
        ("pairs", [[0.5]], {}),
        ("pairs", [1, 2], {}),
        ("n", [[1]], {"n": 15}),
        ("truth", [[1]], {"truth": [[2]]}),
        ("truth", [[1]], {"truth": [[1]]}),
    ],
)
def test_what_does_not_fit_is_refused(name: str, pairs: Any, other: dict[str, Any]) -> None:
    given: dict[str, Any] = {"n": 2} | other
    with pytest.raises(InvalidParameter) as caught:
        genotypes_from_pairs(pairs, given.pop("n"), **given)
    assert caught.value.name == name
