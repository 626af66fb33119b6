"""Synthetic tables beside the real one: marginals, a classifier trained on made-up rows, CPU seconds, peak memory.

Four fifths of the rows are learnt at delta 1e-9, the rest is for testing; see `_synthetic_data` for the public domains.
Each run has a process of its own, whose peak memory is what is told. AIM and MST of smartnoise-synth run beside ours if
their environment is there. Total variation depends on the bins: the bootstrap of real rows says how fine they are. Data
that are not there are left out.

    python bench/synthetic.py                              # everything, hours
    python bench/synthetic.py adult --generators AllPairs --epsilons 1 --seeds 2
    python bench/synthetic.py nist kmarginal               # by name: adult, nist, kmarginal, wide
    python bench/synthetic.py adult --generators peer-AIM peer-MST --seeds 1
    python bench/synthetic.py choose                       # the constants of AllPairs, on other tables
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from _claims import Claim, show
from _synthetic_constants import Constants, chosen
from _synthetic_data import Codes, Discrete, adult, earlier, nist, patients, wide
from _synthetic_kmarginal import FEATURES, PARTS, PUBLISHED, kmarginal_run
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from discreet import synthetic

HERE = Path(__file__).parent
PEER = HERE.parent / ".venv-peers" / "smartnoise_synth"
DELTA = 1e-9
TABLES = {"adult": adult, "nist": nist, "earlier": earlier, "patients": patients}
OURS = ("AllPairs", "AIM", "MST", "Independent")
PEERS = ("peer-AIM", "peer-MST")
GOALS = {0.1: (0.167, None), 1.0: (0.047, 0.100), 10.0: (0.022, 0.064)}
KMARGINAL_GOAL = 976
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


def classified(data: Discrete, fake: Codes) -> tuple[float, float]:
    """Accuracy and AUC on real rows of a logistic regression of the label on the other columns, one-hot."""
    names, (label, code) = list(data.domain.columns), data.label
    others = [place for place, name in enumerate(names) if name != label]
    sizes = [data.domain.sizes[names[place]] for place in others]
    starts = np.concatenate([[0], np.cumsum(sizes[:-1])])
    hot, told = [], []
    for rows in (fake, data.codes[1]):
        table = np.zeros((len(rows), sum(sizes)), dtype=np.float32)
        np.put_along_axis(table, rows[:, others] + starts, 1.0, axis=1)
        hot.append(table)
        told.append(rows[:, names.index(label)] == code)
    if len(np.unique(told[0])) < 2:
        return float(np.mean(told[1] == told[0][0])), 0.5
    model = LogisticRegression(max_iter=300).fit(hot[0], told[0])
    scores = model.decision_function(hot[1])
    return float(np.mean((scores > 0) == told[1])), float(roc_auc_score(told[1], scores))


def ours(generator: str, data: Discrete, epsilon: float, seed: int) -> tuple[Codes, float, float]:
    """Made-up rows, CPU seconds and peak memory of one of our generators, or of none."""
    rows, start = len(data.codes[0]), time.process_time()
    if generator in ("real", "bootstrap"):
        places = np.arange(rows) if generator == "real" else np.random.default_rng(seed).integers(0, rows, rows)
        fake = data.codes[0][places]
    else:
        made = getattr(synthetic, generator)(epsilon=epsilon, delta=DELTA, random_state=seed)
        model = made.fit(data.train, domain=data.domain)
        fake = model.sample_codes(rows, bits=synthetic.fitted_model.sampling_bits(seed))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return fake, time.process_time() - start, memory


def peers(generator: str, data: Discrete, epsilon: float, seed: int) -> tuple[Codes, float, float]:
    """The same of smartnoise-synth, in its environment."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(given, codes=data.codes[0], sizes=np.array(list(data.domain.sizes.values())))
        worker = HERE / "peers" / "synthesize_smartnoise_synth.py"
        name = generator.removeprefix("peer-")
        words = [str(word) for word in (PEER / "bin" / "python", worker, given, name, epsilon, DELTA, seed, out)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        told = json.loads(done.stdout.splitlines()[-1])
        with np.load(out) as made:
            return made["codes"], told["seconds"], told["memory"]


def measured(table: str, generator: str, epsilon: float, seed: int) -> Scores:
    """One run, in this process."""
    data = TABLES[table](seed)
    assert data is not None
    fake, seconds, memory = (peers if generator in PEERS else ours)(generator, data, epsilon, seed)
    accuracy, auc = classified(data, fake)
    sizes = tuple(data.domain.sizes.values())
    two, three = (variation(data.codes[0], fake, sizes, degree) for degree in (2, 3))
    return {"two": two, "three": three, "accuracy": accuracy, "auc": auc, "seconds": seconds, "memory": memory}


def measured_wide() -> Scores:
    """The fast generator on a wide table, in this process."""
    domain, frame = wide()
    start, used = time.perf_counter(), time.process_time()
    model = synthetic.AllPairs(epsilon=1, delta=DELTA, random_state=1).fit(frame, domain=domain)
    model.sample_codes()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"wall": time.perf_counter() - start, "seconds": time.process_time() - used, "memory": memory}


def errors(table: str, epsilon: float, constants: Constants) -> tuple[float, float]:
    """Of pairs and of triples, with some constants, in a process of its own."""
    run = apart("constants", table, epsilon, constants.share, constants.power, constants.certain)
    return run["two"], run["three"]


def measured_constants(table: str, epsilon: float, constants: Constants) -> Scores:
    """One run of the fast generator with some constants, in this process."""
    constants.set()
    data = TABLES[table](0)
    assert data is not None
    made = synthetic.AllPairs(epsilon=epsilon, delta=DELTA, certain=constants.certain, random_state=0)
    model = made.fit(data.train, domain=data.domain)
    fake = model.sample_codes(len(data.codes[0]), bits=synthetic.fitted_model.sampling_bits(0))
    sizes = tuple(data.domain.sizes.values())
    two, three = (variation(data.codes[0], fake, sizes, degree) for degree in (2, 3))
    return {"two": two, "three": three}


def apart(*words: object) -> Scores:
    """One run in a process of its own, with one thread for linear algebra; prints what came out."""
    command = [sys.executable, __file__, "one", *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stderr}")
    found: Scores = json.loads(done.stdout.splitlines()[-1])
    print(*words, " ".join(f"{name}={value:.4g}" for name, value in found.items()), file=sys.stderr, flush=True)
    return found


def compare(table: str, asked: argparse.Namespace) -> None:
    """All generators at all epsilons, beside real rows and a bootstrap of them."""
    rows = Table(title=f"{table}, delta {DELTA:g}, {asked.seeds} seeds", title_justify="left")
    for heading in ("generator", "epsilon", "2-way TV", "3-way TV", "accuracy", "AUC", "CPU s", "GB"):
        rows.add_column(heading)
    found: dict[tuple[str, float], list[Scores]] = {}
    for name in ("real", "bootstrap"):
        rows.add_row(name, "-", *_means([apart(table, name, 1, seed) for seed in range(asked.seeds)]))
    for name in asked.generators:
        if name in PEERS and not (PEER / ".made").exists():
            rows.add_row(name, "-", "not installed")
            continue
        for epsilon in asked.epsilons:
            seeds = range(min(asked.seeds, asked.peer_seeds) if name in PEERS else asked.seeds)
            found[name, epsilon] = [apart(table, name, epsilon, seed) for seed in seeds]
            rows.add_row(name, f"{epsilon:g}", *_means(found[name, epsilon]))
    Console(width=None if sys.stdout.isatty() else 150).print(rows)
    for name in asked.generators:
        if table == "adult" and name in OURS:
            show(f"{name} on Adult", claims(name, found))


def _means(runs: list[Scores]) -> list[str]:
    digits = {"two": 4, "three": 4, "accuracy": 4, "auc": 4, "seconds": 1, "memory": 2}
    return [f"{np.mean([run[name] for run in runs]):.{places}f}" for name, places in digits.items()]


def claims(generator: str, found: dict[tuple[str, float], list[Scores]]) -> list[Claim]:
    """What one generator should reach, of what was measured."""

    def mean(epsilon: float, name: str) -> float:
        return float(np.mean([run[name] for run in found[generator, epsilon]]))

    made = []
    for epsilon, (two, three) in GOALS.items():
        if (generator, epsilon) not in found:
            continue
        made.append(Claim(f"2-way TV at epsilon {epsilon:g}", mean(epsilon, "two"), most=two))
        if three is not None:
            made.append(Claim(f"3-way TV at epsilon {epsilon:g}", mean(epsilon, "three"), most=three))
    if (generator, 1.0) in found:
        made.append(Claim("accuracy at epsilon 1", mean(1.0, "accuracy"), least=0.845))
        made.append(Claim("AUC at epsilon 1", mean(1.0, "auc"), least=0.89))
        made.append(Claim("CPU at epsilon 1", mean(1.0, "seconds"), most=60, unit="s"))
        made.append(Claim("peak memory at epsilon 1", mean(1.0, "memory"), most=1, unit="GB"))
    return made


def kmarginal_claims(asked: argparse.Namespace) -> list[Claim]:
    """The k-marginal score of SDNist on the national excerpt of 2019, for each set of features."""
    made = []
    for share, score in PARTS.items():
        mean = np.mean([apart("kmarginal", "part", share, seed, PUBLISHED)["score"] for seed in range(asked.seeds)])
        made.append(
            Claim(f"{PUBLISHED}, {share:.0%} of the rows", float(mean), unit="of 1000", note=f"published: {score}")
        )
    for features in FEATURES:
        for name in ("bootstrap", *(name for name in asked.generators if name in OURS)):
            for epsilon in (1.0,) if name == "bootstrap" else asked.epsilons:
                runs = [apart("kmarginal", name, epsilon, seed, features)["score"] for seed in range(asked.seeds)]
                goal = KMARGINAL_GOAL if features == PUBLISHED and name == "AllPairs" and epsilon == 1 else None
                about = f"{features}, {name}, epsilon {epsilon:g}" if name != "bootstrap" else f"{features}, {name}"
                made.append(Claim(about, float(np.mean(runs)), least=goal, unit="of 1000"))
    return made


def wide_claims() -> list[Claim]:
    """What the fast generator should keep to on a wide table."""
    run = apart("wide")
    note = "100 columns of 10 values, 100,000 rows"
    time_claim = Claim("AllPairs, wall clock", run["wall"], most=120, unit="s", note=note)
    return [time_claim, Claim("AllPairs, peak memory", run["memory"], most=4, unit="GB", note=note)]


def one(words: list[str]) -> Scores:
    """What a process of its own is asked for."""
    if words[0] == "wide":
        return measured_wide()
    if words[0] == "constants":
        table, epsilon, share, power, certain = words[1:]
        return measured_constants(table, float(epsilon), Constants(share, power, int(certain)))
    table, generator, epsilon, seed, *features = words
    if table == "kmarginal":
        return {"score": kmarginal_run(generator, float(epsilon), int(seed), features[0], delta=DELTA)}
    return measured(table, generator, float(epsilon), int(seed))


def main(words: list[str]) -> Any:
    """Runs what is asked for."""
    if words[:1] == ["one"]:
        print(json.dumps(one(words[1:])))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("parts", nargs="*", default=["adult", "nist", "kmarginal", "wide"])
    parser.add_argument("--generators", nargs="+", choices=OURS + PEERS, default=OURS + PEERS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-seeds", type=int, default=1)
    asked = parser.parse_args(words)
    for part in asked.parts:
        if part == "wide":
            show("A wide table", wide_claims())
        elif nist() is None or adult() is None:
            print(f"{part}: the data are not there.")
        elif part == "choose":
            print(f"chosen: {chosen(errors)}")
        elif part == "kmarginal":
            show("k-marginal score, NIST excerpt (national, 2019)", kmarginal_claims(asked))
        else:
            compare(part, asked)


if __name__ == "__main__":
    main(sys.argv[1:])
