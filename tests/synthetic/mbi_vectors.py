"""Writes mbi_marginals.json: what PyPI's mbi 2.0.0 fits to small random problems.

mbi needs jax and is no dependency of ours. In an environment of its own (`python3 -m venv mbi; mbi/bin/pip install
mbi==2.0.0`), from the root of the project: `mbi/bin/python tests/synthetic/mbi_vectors.py`.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

PROBLEMS: list[tuple[dict[str, int], list[tuple[str, ...]]]] = [
    ({"a": 2, "b": 3, "c": 2}, [("a", "b"), ("b", "c")]),
    ({"a": 3, "b": 3, "c": 3, "d": 3}, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a",)]),
    ({"a": 2, "b": 4, "c": 3, "d": 2, "e": 3}, [("a", "b", "c"), ("c", "d"), ("d", "e"), ("b",), ("e",)]),
    ({"a": 4, "b": 2, "c": 5}, [("a", "b"), ("c",), ("a", "b")]),
]
TOTAL = 1000.0


def problem(number: int) -> dict[str, Any]:
    """One problem: a random joint table, its marginals with noise, and what mbi makes of them."""
    draws = np.random.default_rng(number)  # noqa: TID251 - test data, no noise
    sizes, sets = PROBLEMS[number]
    names = tuple(sizes)
    joint = TOTAL * draws.dirichlet(np.ones(int(np.prod(list(sizes.values()))))).reshape(tuple(sizes.values()))
    measured = []
    for attributes in sets:
        exact = np.einsum(f"{''.join(names)}->{''.join(attributes)}", joint)
        sigma = float(draws.integers(5, 30))
        values = np.round(exact + sigma * draws.standard_normal(exact.shape))
        measured.append({"attributes": attributes, "sigma": sigma, "values": values.tolist()})
    fitted = {"".join(pair): _fitted(sizes, measured, pair) for pair in [*sets, (names[0], names[-1])]}
    return {"sizes": sizes, "total": TOTAL, "measured": measured, "fitted": fitted}


def _fitted(sizes: dict[str, int], measured: list[dict[str, Any]], attributes: tuple[str, ...]) -> Any:
    importlib.import_module("jax").config.update("jax_enable_x64", True)
    mbi = importlib.import_module("mbi")
    ours = [mbi.LinearMeasurement(np.ravel(m["values"]), m["attributes"], m["sigma"]) for m in measured]
    domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    model = mbi.estimation.MirrorDescent().estimate(domain, ours, known_total=TOTAL, iters=20_000)
    return np.asarray(model.project(attributes).values).round(6).tolist()


if __name__ == "__main__":
    found = [problem(number) for number in range(len(PROBLEMS))]
    Path(__file__).with_name("mbi_marginals.json").write_text(json.dumps(found, indent=1) + "\n")
