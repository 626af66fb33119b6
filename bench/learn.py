"""Learners beside diffprivlib, DP-EBM and scikit-learn without privacy: accuracy, AUC, R2, clustering cost, and time.

All at equal epsilon and add/remove neighbours (diffprivlib: pure, its own relation; ours and DP-EBM: delta 1e-6), on
the same rows with the same public bounds. DP-EBM gets raw columns, which it bins by itself. Parameters are the
defaults of each library. Data that are not there are left out, and so are libraries that are not installed.

    python bench/learn.py [SEEDS] [TABLE ...]
    python bench/learn.py auto [SEEDS] [TABLE ...]    # what AutoClassifier chooses, beside the best default of others
    python bench/learn.py suite [SEEDS] [TABLE ...]   # the same on tables of other packages; its constants were chosen
                                                      # on eight of them; "aside" names four kept apart
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _claims import Claim, show
from _learn_data import TABLES, Data, line, of_other_packages
from _learn_regression import rows
from peers.learning import Scores, Task, run, score
from rich.console import Console
from rich.table import Table
from sklearn import cluster, ensemble, linear_model, naive_bayes

from discreet import learn

HERE = Path(__file__).parent
EPSILONS = (0.1, 0.5, 1.0, 3.0)
PEERS = {"diffprivlib": ("logistic", "linear", "bayes", "kmeans", "forest", "tree"), "interpret": ("additive",)}
GOALS = {0.1: (0.830, 0.880), 1.0: (0.847, 0.897), 3.0: (0.850, 0.901)}
LINE_GOALS = {0.5: 0.74, 1.0: 0.80, 3.0: 0.81}

Fit = Callable[[Task, int, Any, Any], Any]


def ours(name: str) -> Fit:
    """Our learner under the name that a task gives it."""

    def fit(task: Task, seed: int, X: Any, y: Any) -> Any:
        common = {"epsilon": task.epsilon, "delta": task.delta, "random_state": seed}
        bounds = (task.low, task.high)
        classes = None if task.learner in ("linear", "kmeans") else sorted(set(y.tolist()))
        build: dict[str, Callable[[], Any]] = {
            "logistic": lambda: learn.LogisticRegression(norm_bound=task.norm, classes=classes, **common),
            "linear": lambda: learn.LinearRegression(
                norm_bound=task.norm, label_bounds=(task.label_low, task.label_high), **common
            ),
            "bayes": lambda: learn.GaussianNB(bounds=bounds, classes=classes, **common),
            "kmeans": lambda: learn.KMeans(n_clusters=task.clusters, bounds=bounds, **common),
            "forest": lambda: learn.RandomForestClassifier(bounds=bounds, classes=classes, **common),
            "auto": lambda: learn.AutoClassifier(bounds=bounds, norm_bound=task.norm, classes=classes, **common),
        }
        return build[name]().fit(X, y)

    return fit


def without_privacy(task: Task, seed: int, X: Any, y: Any) -> Any:
    """scikit-learn's own."""
    build: dict[str, Callable[[], Any]] = {
        "logistic": lambda: linear_model.LogisticRegression(max_iter=1000),
        "linear": linear_model.LinearRegression,
        "bayes": naive_bayes.GaussianNB,
        "kmeans": lambda: cluster.KMeans(task.clusters, n_init=1, random_state=seed),
        "forest": lambda: ensemble.RandomForestClassifier(random_state=seed),
    }
    return build[task.learner]().fit(X, y)


def of_peer(peer: str, task: Task) -> Scores:
    """What another library reaches, in its own environment; nothing if it is not there or fails."""
    python = HERE.parent / ".venv-peers" / peer / "bin" / "python"
    if not (python.parent.parent / ".made").exists():
        return {}
    command = [str(python), str(HERE / "peers" / f"learn_{peer}.py")]
    done = subprocess.run(command, input=task.text(), capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        print(f"{peer} on {task.learner}: {(done.stderr.strip().splitlines() or ['?'])[-1][:120]}")
        return {}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def written(scores: Scores) -> str:
    """Means, and a standard error of the first figure."""
    figures = [name for name in ("accuracy", "auc", "r2", "cost") if name in scores]
    if not figures:
        return "-"
    text = " / ".join(f"{np.mean(scores[name]):.3f}" for name in figures)
    count = len(scores[figures[0]])
    spread = np.std(scores[figures[0]], ddof=1) / math.sqrt(count) if count > 1 else 0.0
    return f"{text} (+-{spread:.3f}, {np.median(scores['seconds']):.2f} s)"


def compare(data: Data, learner: str, epsilons: tuple[float, ...], seeds: int, folder: Path, **more: Any) -> dict:
    """One learner on one table at several epsilons, beside everybody else."""
    task = Task(
        path=data.save(folder),
        learner=learner,
        epsilon=1.0,
        norm=data.norm,
        low=data.low,
        high=data.high,
        seeds=seeds,
        **more,
    )
    table = Table(title=f"{data.name}: {learner}", title_justify="left")
    for heading in ("epsilon", "ours", *PEERS):
        table.add_column(heading)
    plain = run(replace(task, seeds=1), without_privacy)
    found: dict[str, Any] = {"plain": plain}
    for epsilon in epsilons:
        asked = replace(task, epsilon=epsilon)
        here = run(asked, ours(learner))
        others = {}
        for peer, can in PEERS.items():
            job = replace(asked, learner=can[0]) if learner == "logistic" else asked
            if job.learner == "additive":
                job = replace(job, kinds=data.kinds, limits=data.limits)
            known = job.learner in can and not (job.learner == "additive" and data.raw is None)
            others[peer] = of_peer(peer, job) if known else {}
        table.add_row(f"{epsilon:g}", written(here), *(written(others[peer]) for peer in PEERS))
        found[epsilon] = {"ours": here, **others}
    table.add_row("none", written(plain), *("" for _ in PEERS))
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    return found


def adult_claims(found: dict) -> list[Claim]:
    """The targets of logistic regression on Adult."""
    claims = []
    for epsilon, (accuracy, auc) in GOALS.items():
        here = found[epsilon]["ours"]
        claims.append(Claim(f"accuracy at epsilon {epsilon:g}", float(np.mean(here["accuracy"])), least=accuracy))
        claims.append(Claim(f"AUC at epsilon {epsilon:g}", float(np.mean(here["auc"])), least=auc))
    for epsilon in EPSILONS:
        here, peers = found[epsilon]["ours"], [found[epsilon][peer] for peer in PEERS if found[epsilon][peer]]
        for figure, slack in (("accuracy", 0.0), ("auc", 0.005)):
            best = max((float(np.mean(peer[figure])) for peer in peers), default=0.0) - slack
            text = f"{figure} at epsilon {epsilon:g}, beside peers"
            claims.append(Claim(text, float(np.mean(here[figure])), least=best))
    for figure, slack in (("accuracy", 0.006), ("auc", 0.009)):
        least = found["plain"][figure][0] - slack
        claims.append(
            Claim(f"{figure} at epsilon 3, beside no privacy", float(np.mean(found[3.0]["ours"][figure])), least=least)
        )
    return claims


AUTO_EPSILONS = (0.1, 1.0, 3.0, 10.0)
SUITE_EPSILONS = (0.1, 1.0, 3.0)
BELOW_MAJORITY = 0.02


def auto_claims(data: Data, seeds: int, folder: Path, epsilons: tuple[float, ...] = AUTO_EPSILONS) -> list[Claim]:
    """What `AutoClassifier` reaches on a table, beside every default of others and the largest class.

    Peers draw their own noise, so that their best is known to a standard error or two; it is told beside.
    """
    largest = float(np.max(np.bincount(data.y[1]))) / len(data.y[1])
    claims = []
    for epsilon in epsilons:
        common = {"epsilon": epsilon, "norm": data.norm, "low": data.low, "high": data.high, "seeds": seeds}
        task = Task(path=data.save(folder), learner="auto", **common)
        pure = {
            name: of_peer("diffprivlib", replace(task, learner=name))
            for name in ("logistic", "bayes", "forest", "tree")
        }
        others = {name: found["accuracy"] for name, found in pure.items() if found}
        for delta in (0.0, 1e-6):
            if delta and data.raw is not None and len(np.unique(data.y[0])) == 2:
                found = of_peer("interpret", replace(task, learner="additive", kinds=data.kinds, limits=data.limits))
                others |= {"DP-EBM": found["accuracy"]} if found else {}
            here = run(replace(task, delta=delta), ours("auto"))["accuracy"]
            mean, text = float(np.mean(here)), f"{data.name}, epsilon {epsilon:g}, delta {delta:g}"
            claims.append(Claim(f"{text}, largest class", mean, least=largest - BELOW_MAJORITY))
            if others:
                best = max(others, key=lambda name: float(np.mean(others[name])))
                spread = math.sqrt(sum(np.var(found, ddof=1) / len(found) for found in (here, others[best])))
                note = f"{best}; a standard error of the difference is {spread:.3f}"
                claims.append(Claim(f"{text}, best of others", mean, least=float(np.mean(others[best])), note=note))
    return claims


def auto(seeds: int, names: list[str]) -> None:
    """One table of claims for each table of data."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            data = TABLES[name]()
            if data is not None:
                show(f"AutoClassifier on {name}", auto_claims(data, seeds, Path(place)))


def suite(seeds: int, names: list[str]) -> None:
    """The same on tables that other packages have, by default on those that constants were chosen on."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        tables, aside = of_other_packages(Path(place))
        chosen = aside if names == ["aside"] else names or [name for name in tables if name not in aside]
        for name in chosen if tables else ():
            show(f"AutoClassifier on {name}", auto_claims(tables[name], seeds, Path(place), SUITE_EPSILONS))


def line_claims(seeds: int) -> list[Claim]:
    """Linear regression on rows made up afresh for every seed."""
    claims = []
    for epsilon, least in LINE_GOALS.items():
        reached, plain, seconds = [], [], 0.0
        for seed in range(seeds):
            data = line(1000 + seed)
            task = Task(path="", learner="linear", epsilon=epsilon, norm=data.norm, label_low=-4.5, label_high=4.5)
            start = time.process_time()
            model = ours("linear")(task, seed, data.X[0], data.y[0])
            seconds += time.process_time() - start
            reached.append(score(task, model, data.X[1], data.y[1])["r2"])
            plain.append(score(task, without_privacy(task, seed, data.X[0], data.y[0]), data.X[1], data.y[1])["r2"])
        note = f"without privacy {np.mean(plain):.3f}, {seconds / seeds:.2f} s"
        claims.append(Claim(f"R2 at epsilon {epsilon:g}", float(np.mean(reached)), least=least, unit="", note=note))
    return claims


def main(seeds: int, names: list[str]) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in names:
            data = TABLES[name]() if name in TABLES else None
            if data is None:
                continue
            found = compare(data, "logistic", EPSILONS, seeds, folder)
            if name == "adult":
                show("Logistic regression on Adult", adult_claims(found))
            if name == "digits":
                compare(data, "bayes", EPSILONS, seeds, folder)
                compare(data, "kmeans", EPSILONS, seeds, folder, clusters=10)
        if "line" in names:
            compare(line(1), "linear", tuple(LINE_GOALS), seeds, folder, label_low=-4.5, label_high=4.5)
            show("Linear regression, 10,000 rows of 10 features", line_claims(seeds))
            show("Intervals of coefficients, and clusters beside noisy Lloyd steps", rows())


if __name__ == "__main__":
    if sys.argv[1:2] == ["suite"]:
        suite(int(sys.argv[2]) if len(sys.argv) > 2 else 20, sys.argv[3:])
        raise SystemExit
    if sys.argv[1:2] == ["auto"]:
        auto(int(sys.argv[2]) if len(sys.argv) > 2 else 10, sys.argv[3:] or [*TABLES])
        raise SystemExit
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    main(count, sys.argv[2:] or [*TABLES, "line"])
