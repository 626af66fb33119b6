"""Without noise a chain comes back to 1e-6: what was measured, and what follows from it by independence alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.mechanisms import Exponential, Gaussian
from discreet.noise import SeededBits
from discreet.privacy import Budget
from discreet.synthetic import AIM, MST, AllPairs, Independent, Model
from discreet.synthetic.coded_rows import CodedRows
from discreet.synthetic.generator import Generator

Make = Callable[..., Generator]

FIRST = np.array([[40, 8, 4], [4, 12, 40]])  # of a and b
SECOND = np.array([[3, 1], [1, 2], [1, 5]])  # of b and c
THIRD = np.array([[2, 1, 7], [5, 1, 1]])  # of c and d
DOMAIN = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1], "d": [0, 1, 2]}


def chain() -> CodedRows:
    """a - b - c - d: a product of three tables, so that b and c tell of all that a and d have in common, exactly."""
    counts = np.einsum("ab,bc,cd->abcd", FIRST, SECOND, THIRD)
    return repeated(counts)


def product() -> CodedRows:
    """Columns that tell nothing of each other, exactly."""
    sums = (FIRST.sum(axis=1) // 4, FIRST.sum(axis=0) // 12, SECOND.sum(axis=0), THIRD.sum(axis=0))
    return repeated(np.einsum("a,b,c,d->abcd", *sums))


def repeated(counts: Any) -> CodedRows:
    codes = np.repeat(np.argwhere(counts >= 0), counts.reshape(-1), axis=0)
    return CodedRows({name: len(keys) + 1 for name, keys in DOMAIN.items()}, codes)  # none of them is missing


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What mechanisms release is exact, and what they choose is the best."""
    monkeypatch.setattr(Gaussian, "release", lambda *given, **_: np.asarray(given[1]))
    monkeypatch.setattr(Exponential, "choose", lambda *given, **_: int(np.argmax(given[1])))


def furthest(model: Model, rows: CodedRows) -> float:
    """The largest difference of any cell of any pair, as a share of all rows."""
    apart = [np.abs(model.counts(pair) - rows.counts(pair)).max() for pair in combinations(DOMAIN, 2)]
    return float(max(apart)) / len(rows.codes)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("make", "rows"), [(MST, chain()), (AIM, chain()), (AllPairs, chain()), (Independent, product())]
)
def test_all_pairs_of_columns_come_back(make: Make, rows: CodedRows) -> None:
    frame = {name: rows.codes[:, place] for place, name in enumerate(DOMAIN)}
    model = make(epsilon=1e9, delta=1e-6).fit(frame, domain=DOMAIN)
    assert model.rows == len(rows.codes)
    assert furthest(model, rows) < 1e-6


@pytest.mark.usefixtures("no_noise")
def test_columns_alone_do_not_bring_a_chain_back() -> None:
    rows = chain()
    frame = {name: rows.codes[:, place] for place, name in enumerate(DOMAIN)}
    assert furthest(Independent(epsilon=1e9, delta=1e-6).fit(frame, domain=DOMAIN), rows) > 0.01


@pytest.mark.usefixtures("no_noise")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mst", "aim", "allpairs"])
def test_a_curator_brings_a_chain_back(name: str) -> None:
    """Through an engine, a ledger and a stored model; and rows differ from the model by rounding only."""
    rows = chain()
    with Curator.for_tests(engine=Memory(), bits=SeededBits(1)) as curator:
        curator.protect(
            [dict(zip(DOMAIN, line, strict=True)) for line in rows.codes.tolist()],
            name="t",
            budget=Budget(rho=10**15),
            types=dict.fromkeys(DOMAIN, "int"),
            keys=DOMAIN,
        )
        curator.synthesize("t", epsilon=1e9, delta=1e-6, generator=name)
        made = curator.synthesize("t", epsilon=1e9, delta=1e-6, generator=name)
    assert made.replayed
    assert furthest(made.model, rows) < 1e-6
    drawn = made.model.domain.encode(made.table)
    counted = CodedRows(rows.sizes, drawn)
    for pair in [("a", "b"), ("b", "c"), ("c", "d")]:
        assert np.abs(counted.counts(pair) - rows.counts(pair)).max() <= 12  # a rounding below 1 for each earlier cell
