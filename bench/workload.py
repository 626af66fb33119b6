"""Many answers at once: their total variance beside noise on each answer or each cell, and the time of a large case.

- Tables of a product domain: the residual method beside an equal share of the budget for each table, and beside noise
  on every cell of the domain.
- Ranges and prefixes: the optimal strategy beside noise on each answer and on each cell, and beside the lower bound.
- A pure budget: the strategy that is found beside noise on each answer (as one call of a Laplace mechanism on all of
  them, OpenDP's or ours, has it) and on each cell. Where OpenDP is installed, its own scale is measured.
- A CUBE of four public keys asked of a curator, beside its sixteen questions one by one at the same total epsilon.
- All pairs of 20 attributes with 10 values: planned in 10 seconds, answered from a million rows in a minute.

    python bench/workload.py [rows, default 1000000]
"""

from __future__ import annotations

import itertools
import sys
import time
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from _claims import Claim
from _claims import show as show_claims
from rich.console import Console
from rich.table import Table

from discreet.curator import Curator, Program
from discreet.engines import Memory
from discreet.mechanisms.optimal_gram import optimal_gram
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Budget
from discreet.workload import Marginals, Prefixes, Ranges, Workload

RHO, PURE = Budget(rho=0.5), Budget(epsilon=1)
Row = tuple[str, float, float, float, float | None]


def table_rows() -> list[Row]:
    found = []
    for name, sizes, ways in (
        ("all tables of 2 x 3", {"a": 2, "b": 3}, (1, 2)),
        ("pairs of 8 binary attributes", {f"b{i}": 2 for i in range(8)}, (2,)),
        ("triples of 10 binary attributes", {f"b{i}": 2 for i in range(10)}, (3,)),
        ("pairs of 6 attributes with 5 values", {f"f{i}": 5 for i in range(6)}, (2,)),
    ):
        sets = [s for way in ways for s in itertools.combinations(sizes, way)]
        cells = [int(np.prod([sizes[n] for n in s])) for s in sets]
        ours = Marginals(sizes, sets).plan(budget=RHO).total_variance
        whole = float(np.prod(list(sizes.values())))
        found.append((name, ours, float(len(sets) * sum(cells)), len(sets) * whole, None))
    return found


def matrix_rows() -> list[Row]:
    found: list[Row] = []
    for name, queries in (("256 prefixes", Prefixes(256)), ("all ranges of 128 cells", Ranges(128))):
        plan = Workload(queries).plan(budget=RHO)
        matrix = queries.matrix()
        each = float(np.max(np.sum(matrix**2, axis=0))) * queries.count
        bound = optimal_gram(queries.gram()).lower_bound
        found.append((name, plan.total_variance, each, float(np.trace(queries.gram())), bound))
    return found


def pure_rows() -> list[Row]:
    found: list[Row] = []
    for name, queries in (("64 prefixes, pure", Prefixes(64)), ("all ranges of 128 cells, pure", Ranges(128))):
        plan = Workload(queries).plan(budget=PURE)
        each = float(np.max(np.sum(np.abs(queries.matrix()), axis=0)))
        per_query = 2 * each**2 * queries.count
        found.append((name, plan.total_variance, per_query, 2 * float(np.trace(queries.gram())), None))
    return found


def show(rows: list[Row]) -> None:
    table = Table(
        "total variance", "ours", "noise on each answer", "on each cell", "ours / best of them", "lower bound"
    )
    for name, ours, answers, cells, bound in rows:
        best = f"{ours / min(answers, cells):.3f}"
        table.add_row(name, f"{ours:,.1f}", f"{answers:,.1f}", f"{cells:,.1f}", best, f"{bound:,.1f}" if bound else "")
    Console(width=140).print(table)


def opendp_scale() -> None:
    """What OpenDP's own calibration says of the noise on all 64 prefixes at epsilon 1: one L1 sensitivity for all."""
    try:
        dp = import_module("opendp.prelude")
    except ImportError:
        print("OpenDP is not installed: its scale for noise on each answer is not measured.")
        return
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    scale = dp.binary_search_param(lambda s: dp.m.make_laplace(*space, s), d_in=64, d_out=1.0)
    ours = Workload(Prefixes(64)).plan(budget=PURE).total_variance / 64
    print(f"OpenDP's Laplace scale for 64 prefixes: {scale:.1f}, a variance of {2 * scale**2:,.0f}; ours: {ours:,.0f}")


def large(rows: int) -> list[Claim]:
    sizes = {f"x{i}": 10 for i in range(20)}
    start = time.perf_counter()
    plan = Marginals(sizes, itertools.combinations(sizes, 2)).plan(budget=RHO)
    planned = time.perf_counter() - start
    bits = SeededBits(1)
    columns: dict[str, Any] = {name: (uniforms(rows, bits=bits) * 10).astype(np.int64) for name in sizes}
    start = time.perf_counter()
    released = plan.release(columns)
    answered = time.perf_counter() - start
    truth = np.bincount(columns["x0"] * 10 + columns["x1"], minlength=100).reshape(10, 10)
    off = float(np.mean((released["x0", "x1"].value - truth) ** 2)) / plan.variances["x0", "x1"]
    return [
        Claim("plan 190 pairs of 20 attributes", planned, most=10, unit="s"),
        Claim(f"answer them from {rows:,} rows", answered, most=60, unit="s"),
        Claim("mean square of a table's errors, claimed 1", off, least=0.5, most=1.6, unit=""),
        Claim("variance of a cell (each table by itself: 190)", plan.variances["x0", "x1"], most=190, unit=""),
    ]


SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}


def cube_claims() -> list[Claim]:
    """The variance of a cell in each of sixteen tables, by the programs that a curator would run; nothing is read."""
    sets = [keys for size in range(len(SIZES) + 1) for keys in itertools.combinations(SIZES, size)]
    cube = f"SELECT {', '.join(SIZES)}, COUNT(*) AS n FROM t GROUP BY CUBE ({', '.join(SIZES)})"
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    keys = {name: list(range(size)) for name, size in SIZES.items()}
    types, budget = dict.fromkeys(SIZES, "int"), Budget(epsilon=10, delta="1e-3")
    curator.protect([dict.fromkeys(SIZES, 0)], name="t", types=types, keys=keys, budget=budget)
    found = []
    for delta in (0, Fraction(1, 10**6)):
        program = curator.explain(cube, epsilon=1, delta=delta).program
        together = {len(one.reading.public_keys or ((),)): _variance(one) for one in program.groupings}
        apart = {}
        for names in sets:
            by = f" GROUP BY {', '.join(names)}" if names else ""
            text = f"SELECT COUNT(*) AS n FROM t{by}"
            one = curator.explain(text, epsilon=Fraction(1, len(sets)), delta=delta / len(sets)).program
            apart[len(one.reading.public_keys or ((),))] = _variance(one)
        ratios = [apart[cells] / together[cells] for cells in together]
        label = f"CUBE of 4 keys, {'pure' if not delta else 'with delta'}, times less variance than sixteen questions"
        mean = float(np.exp(np.mean(np.log(ratios))))
        note = f"from {min(ratios):.1f} to {max(ratios):.1f}; {program.noise.law} noise"
        found.append(Claim(label, mean, least=2, unit="times", note=note))
    return found


def _variance(program: Program) -> float:
    (estimator,) = program.estimators.values()
    return float(estimator.variance(program.noise))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    show([*table_rows(), *matrix_rows(), *pure_rows()])
    opendp_scale()
    show_claims("A cube asked of a curator", cube_claims())
    show_claims("Twenty attributes with ten values", large(rows))


if __name__ == "__main__":
    main()
