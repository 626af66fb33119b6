"""Oracles for small domains: the whole joint table, written out."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from discreet.synthetic.inference.factors import Attributes, Factor
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal

Table = NDArray[np.float64]


def joint(sizes: Mapping[str, int], factors: Sequence[Factor]) -> Table:
    """The probabilities of all rows of a product of factors, by adding logarithms cell by cell."""
    names = tuple(sizes)
    logs = np.zeros(tuple(sizes.values()))
    for cell in np.ndindex(logs.shape):
        place = dict(zip(names, cell, strict=True))
        logs[cell] = sum(factor.logs[tuple(place[name] for name in factor.attributes)] for factor in factors)
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=None)))


def marginal(sizes: Mapping[str, int], table: Table, attributes: Attributes) -> Table:
    letters = dict(zip(sizes, string.ascii_letters, strict=False))
    return np.asarray(np.einsum(f"{''.join(letters.values())}->{''.join(letters[n] for n in attributes)}", table))


def best_joint(
    sizes: Mapping[str, int],
    marginals: Sequence[NoisyMarginal],
    total: float,
    weight: float,
    possible: NDArray[np.bool_] | None = None,
) -> Table:
    """The minimum of sum |M p - y|^2 / (2 s^2) - weight H(p) over all joint tables, in logits, by scipy."""
    shape = tuple(sizes.values())
    cells = np.flatnonzero(np.ones(shape) if possible is None else possible)
    names = tuple(sizes)

    def whole(p: Table) -> Table:
        table = np.zeros(shape)
        table.flat[cells] = p
        return table

    def value(logits: Table) -> tuple[float, Table]:
        logs = logits - np.logaddexp.reduce(logits)
        p = np.exp(logs)
        slope = weight * (logs + 1)
        loss = weight * float(p @ logs)
        for m in marginals:
            residual = marginal(sizes, whole(p), m.attributes) - m.values / total
            loss += float(np.sum(residual**2)) / (2 * (m.sigma / total) ** 2)
            spread = np.zeros(shape) + Factor(m.attributes, residual).within(names)
            slope += spread.reshape(-1)[cells] / (m.sigma / total) ** 2
        return loss, p * (slope - p @ slope)

    start = np.zeros(cells.size)
    options: Any = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 50}
    found = optimize.minimize(value, start, jac=True, method="L-BFGS-B", options=options)
    return whole(np.exp(found.x - np.logaddexp.reduce(found.x)))


@st.composite
def domains(draw: st.DrawFn, *, most: int = 6, values: int = 4) -> tuple[dict[str, int], list[Attributes]]:
    """Sizes of a few attributes, and some sets of them."""
    count = draw(st.integers(1, most))
    names = [f"x{index}" for index in range(count)]
    sizes = {name: draw(st.integers(1, values)) for name in names}
    sets = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True).map(tuple)
    return sizes, draw(st.lists(sets, min_size=1, max_size=6))
