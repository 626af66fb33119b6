"""Synthetic tables beside the real one: marginals, a classifier trained on made-up rows, CPU seconds, peak memory.

Adult with public bins: four fifths of the rows are learnt at delta 1e-9, the rest is for testing. Each run has a
process of its own, whose peak memory is what is told. Left out if the data are not there. Total variation depends on
the bins: the bootstrap of real rows in the table says how fine they are.

    python bench/synthetic.py [SEEDS] [GENERATOR ...]
    python bench/synthetic.py wide                    # 100 columns of 10 values, 10^5 rows
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from itertools import combinations
from typing import Any

import numpy as np
from _claims import Claim, show
from _synthetic_data import Codes, adult, wide
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from discreet import synthetic

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
GENERATORS = ("AllPairs", "AIM", "MST", "Independent")
GOALS = {0.1: (0.167, None), 1.0: (0.047, 0.100), 10.0: (0.022, 0.064)}
Scores = dict[str, float]


def variation(real: Codes, fake: Codes, sizes: tuple[int, ...], degree: int) -> float:
    """The mean total variation of all marginals of so many columns."""
    found = []
    for columns in combinations(range(len(sizes)), degree):
        shape = tuple(sizes[column] for column in columns)
        tables = [
            np.bincount(np.ravel_multi_index(rows[:, columns].T, shape), minlength=int(np.prod(shape))) / len(rows)
            for rows in (real, fake)
        ]
        found.append(0.5 * np.abs(tables[0] - tables[1]).sum())
    return float(np.mean(found))


def classified(train: Codes, test: Codes, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Accuracy and AUC of a logistic regression of the last column on the others, one-hot."""
    starts = np.concatenate([[0], np.cumsum(sizes[:-2])])
    hot = [np.zeros((len(rows), sum(sizes[:-1])), dtype=np.float32) for rows in (train, test)]
    for table, rows in zip(hot, (train, test), strict=True):
        np.put_along_axis(table, rows[:, :-1] + starts, 1.0, axis=1)
    if len(np.unique(train[:, -1])) < 2:
        return float(np.mean(test[:, -1] == train[0, -1])), 0.5
    model = LogisticRegression(max_iter=300).fit(hot[0], train[:, -1])
    scores = model.decision_function(hot[1])
    return float(np.mean((scores > 0) == test[:, -1])), float(roc_auc_score(test[:, -1], scores))


def measured(generator: str, epsilon: float, seed: int) -> Scores:
    """One run, in this process."""
    data = adult(seed)
    assert data is not None
    sizes = tuple(data.domain.sizes.values())
    if generator in ("real", "bootstrap"):
        draws = np.random.default_rng(seed).integers(0, len(data.codes[0]), len(data.codes[0]))
        fake, used = (data.codes[0] if generator == "real" else data.codes[0][draws]), 0.0
    else:
        start = time.process_time()
        made = getattr(synthetic, generator)(epsilon=epsilon, delta=DELTA, random_state=seed)
        model = made.fit(data.train, domain=data.domain)
        fake = model.sample_codes(len(data.codes[0]))
        used = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    accuracy, auc = classified(fake, data.codes[1], sizes)
    two, three = (variation(data.codes[0], fake, sizes, degree) for degree in (2, 3))
    return {"two": two, "three": three, "accuracy": accuracy, "auc": auc, "seconds": used, "memory": memory}


def measured_wide() -> Scores:
    """The fast generator on a wide table, in this process."""
    domain, frame = wide()
    start, used = time.perf_counter(), time.process_time()
    model = synthetic.AllPairs(epsilon=1, delta=DELTA, random_state=1).fit(frame, domain=domain)
    model.sample_codes()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"wall": time.perf_counter() - start, "seconds": time.process_time() - used, "memory": memory}


def apart(*arguments: str) -> Scores:
    """One run in a process of its own, with one thread for linear algebra."""
    command = [sys.executable, __file__, "one", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def written(runs: list[Scores]) -> list[str]:
    """Means of all figures."""
    names = ("two", "three", "accuracy", "auc", "seconds", "memory")
    return [
        f"{np.mean([run[name] for run in runs]):.4f}"
        if name in names[:4]
        else f"{np.mean([run[name] for run in runs]):.1f}"
        for name in names
    ]


def compare(seeds: int, generators: tuple[str, ...]) -> dict[tuple[str, float], list[Scores]]:
    """All generators at all epsilons, beside real rows and a bootstrap of them."""
    table = Table(title=f"Adult, delta {DELTA:g}, {seeds} seeds", title_justify="left")
    for heading in ("generator", "epsilon", "2-way TV", "3-way TV", "accuracy", "AUC", "CPU s", "GB"):
        table.add_column(heading)
    found: dict[tuple[str, float], list[Scores]] = {}
    for name in ("real", "bootstrap"):
        table.add_row(name, "-", *written([apart(name, "1", str(seed)) for seed in range(seeds)]))
    for name in generators:
        for epsilon in EPSILONS:
            found[name, epsilon] = [apart(name, str(epsilon), str(seed)) for seed in range(seeds)]
            table.add_row(name, f"{epsilon:g}", *written(found[name, epsilon]))
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    return found


def claims(generator: str, found: dict[tuple[str, float], list[Scores]]) -> list[Claim]:
    """What one generator should reach."""

    def mean(epsilon: float, name: str) -> float:
        return float(np.mean([run[name] for run in found[generator, epsilon]]))

    made = []
    for epsilon, (two, three) in GOALS.items():
        made.append(Claim(f"2-way TV at epsilon {epsilon:g}", mean(epsilon, "two"), most=two))
        if three is not None:
            made.append(Claim(f"3-way TV at epsilon {epsilon:g}", mean(epsilon, "three"), most=three))
    made.append(Claim("accuracy at epsilon 1", mean(1.0, "accuracy"), least=0.845))
    made.append(Claim("AUC at epsilon 1", mean(1.0, "auc"), least=0.89))
    made.append(Claim("CPU at epsilon 1", mean(1.0, "seconds"), most=60, unit="s"))
    made.append(Claim("peak memory at epsilon 1", mean(1.0, "memory"), most=1, unit="GB"))
    return made


def wide_claims() -> list[Claim]:
    """What the fast generator should keep to on a wide table."""
    run = apart("wide")
    note = "100 columns of 10 values, 100,000 rows"
    time_claim = Claim("AllPairs, wall clock", run["wall"], most=120, unit="s", note=note)
    return [time_claim, Claim("AllPairs, peak memory", run["memory"], most=4, unit="GB", note=note)]


def main(arguments: list[str]) -> Any:
    """Runs what is asked for."""
    if arguments[:1] == ["one"]:
        generator, *more = arguments[1:]
        found = measured_wide() if generator == "wide" else measured(generator, float(more[0]), int(more[1]))
        print(json.dumps(found))
        return
    if arguments[:1] != ["wide"]:
        seeds = int(arguments[0]) if arguments else 5
        generators = tuple(arguments[1:]) or GENERATORS
        if adult() is None:
            print("Adult is not there.")
        else:
            scores = compare(seeds, generators)
            for name in generators:
                show(f"{name} on Adult", claims(name, scores))
    show("A wide table", wide_claims())


if __name__ == "__main__":
    main(sys.argv[1:])
