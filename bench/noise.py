"""What one exact draw costs beside OpenDP's, diffprivlib's and numpy's, CPU time, all measured in this run.

numpy's generators are insecure and continuous; they mark what speed alone could reach.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from _timing import Row, cpu, cpu_of_python, show

from discreet.noise import discrete_gaussian, discrete_laplace

COUNT = 1_000_000  # ours and numpy's
PEER_COUNT = 20_000  # peers cost ten microseconds and more a draw
SCALARS = 2_000
SCALES = (1, 10, 1000, 10**6)
SIGMA = 10


@cache
def optional(name: str) -> Any:
    """A peer's module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def per_draw(work: Callable[[], object], draws: int) -> float:
    work()  # thresholds and tables are computed once per scale
    return cpu(work) / draws


def opendp_vector(kind: str, scale: float) -> float | None:
    dp = optional("opendp.prelude")
    if dp is None:
        return None
    dp.enable_features("contrib")
    make, distance = (dp.m.make_laplace, dp.l1_distance) if kind == "laplace" else (dp.m.make_gaussian, dp.l2_distance)
    measure = make(dp.vector_domain(dp.atom_domain(T=int)), distance(T=int), scale=scale)
    zeros = [0] * PEER_COUNT
    return per_draw(lambda: measure(zeros), PEER_COUNT)


def opendp_scalar(kind: str, scale: float) -> float | None:
    dp = optional("opendp.prelude")
    if dp is None:
        return None
    dp.enable_features("contrib")
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    measure = make(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=scale)
    return per_draw(lambda: [measure(0) for _ in range(SCALARS)], SCALARS)


def diffprivlib_gaussian(sigma: float) -> float | None:
    """diffprivlib calibrates by itself; its scale is overwritten so that all draw the same law."""
    mechanisms = optional("diffprivlib.mechanisms")
    if mechanisms is None:
        return None
    mechanism = mechanisms.GaussianDiscrete(epsilon=1, delta=1e-5)
    mechanism._scale = sigma
    return per_draw(lambda: [mechanism.randomise(0) for _ in range(SCALARS)], SCALARS)


def laplace_rows(scales: Sequence[int]) -> list[Row]:
    generator = np.random.default_rng(1)
    rows = []
    for scale in scales:
        ours = per_draw(lambda: discrete_laplace(scale, COUNT), COUNT)  # noqa: B023 - called before the next turn
        numpys = per_draw(lambda: generator.laplace(0, scale, COUNT), COUNT)  # noqa: B023
        limit = Fraction(5) if scale <= 1000 else Fraction(8)
        rows += [
            Row(
                f"discrete Laplace, scale {scale:g}, OpenDP",
                ours,
                opendp_vector("laplace", float(scale)),
                Fraction(1, 70),
            ),
            Row(f"discrete Laplace, scale {scale:g}, numpy laplace", ours, numpys, limit),
        ]
    return rows


def gaussian_rows(sigma: int) -> list[Row]:
    generator = np.random.default_rng(1)
    ours = per_draw(lambda: discrete_gaussian(sigma, COUNT), COUNT)
    numpys = per_draw(lambda: generator.normal(0, sigma, COUNT), COUNT)
    return [
        Row(
            f"discrete Gaussian, sigma {sigma}, OpenDP", ours, opendp_vector("gaussian", float(sigma)), Fraction(1, 30)
        ),
        Row(f"discrete Gaussian, sigma {sigma}, diffprivlib", ours, diffprivlib_gaussian(float(sigma)), None),
        Row(f"discrete Gaussian, sigma {sigma}, numpy normal", ours, numpys, None),
    ]


def scalar_rows(scale: int) -> list[Row]:
    laplace = per_draw(lambda: [discrete_laplace(scale) for _ in range(SCALARS)], SCALARS)
    gaussian = per_draw(lambda: [discrete_gaussian(scale) for _ in range(SCALARS)], SCALARS)
    return [
        Row(
            f"one discrete Laplace, scale {scale}, OpenDP",
            laplace,
            opendp_scalar("laplace", float(scale)),
            Fraction(1, 12),
        ),
        Row(
            f"one discrete Gaussian, sigma {scale}, OpenDP",
            gaussian,
            opendp_scalar("gaussian", float(scale)),
            Fraction(1, 12),
        ),
        Row(f"one discrete Gaussian, sigma {scale}, diffprivlib", gaussian, diffprivlib_gaussian(float(scale)), None),
    ]


def import_rows() -> list[Row]:
    ours = cpu_of_python("import discreet, discreet.noise")
    bare = cpu_of_python("import discreet")
    peers = None if optional("duckdb") is None else cpu_of_python("import numpy, duckdb")
    return [
        Row("import discreet; numpy and duckdb", bare, peers, Fraction(3, 2)),
        Row("import discreet.noise; numpy and duckdb", ours, peers, None),
    ]


def main() -> None:
    show(f"Vectors of {COUNT:,} draws, per draw", laplace_rows(SCALES) + gaussian_rows(SIGMA))
    show("Single draws", scalar_rows(SIGMA))
    show("Import", import_rows(), unit="ms", per=1e-3)


if __name__ == "__main__":
    main()
