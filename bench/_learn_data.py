"""Tables to learn from, encoded by rules that anybody could write down without having seen a row.

Categories come from the published lists of each table, bins and limits from the meaning of a column.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _claims import DATA
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Floats = NDArray[np.float64]

ADULT_NUMBERS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (1, 99),
}
ADULT_BINS = {
    "age": (20, 25, 30, 35, 40, 45, 50, 55, 60, 65),
    "hours_per_week": (20, 35, 40, 41, 50, 60),
    "capital_gain": (1, 3_000, 5_000, 7_000, 10_000, 20_000),
    "capital_loss": (1, 1_500, 1_800, 2_000, 2_200),
}
PATIENT_NUMBERS = {
    "time_in_hospital": (1, 14),
    "num_lab_procedures": (0, 100),
    "num_procedures": (0, 6),
    "num_medications": (0, 50),
    "number_outpatient": (0, 10),
    "number_emergency": (0, 10),
    "number_inpatient": (0, 10),
    "number_diagnoses": (1, 16),
}
PATIENT_TEXTS = {
    "gender": ("Female", "Male"),
    "age": tuple(f"[{low}-{low + 10})" for low in range(0, 100, 10)),
    "A1Cresult": ("None", "Norm", ">7", ">8"),
    "insulin": ("No", "Steady", "Up", "Down"),
    "change": ("No", "Ch"),
    "diabetesMed": ("No", "Yes"),
}


@dataclass(frozen=True, kw_only=True)
class Data:
    """A table cut in two, encoded and, for libraries that encode by themselves, raw."""

    name: str
    X: tuple[Floats, Floats]
    y: tuple[NDArray[np.int64] | Floats, NDArray[np.int64] | Floats]
    norm: float
    low: float
    high: float
    raw: tuple[NDArray[np.str_], NDArray[np.str_]] | None = None
    kinds: tuple[str, ...] = ()
    limits: tuple[tuple[float, float] | None, ...] = ()

    def save(self, folder: Path) -> str:
        """Writes the table where other interpreters find it."""
        path = folder / f"{self.name}.npz"
        more = {} if self.raw is None else {"raw_train": self.raw[0], "raw_test": self.raw[1]}
        np.savez(path, X_train=self.X[0], X_test=self.X[1], y_train=self.y[0], y_test=self.y[1], **more)
        return str(path)


def adult() -> Data | None:
    """Whether somebody earns more than 50,000: one-hot texts, binned numbers, the shipped split."""
    rows = _rows(DATA / "adult" / "adult.csv.gz")
    if rows is None:
        return None
    texts = _lists((DATA / "adult" / "adult.names").read_text())
    at_home = [[row["native_country"] == "United-States"] for row in rows]
    parts = [_one_hot(rows, name, values) for name, values in texts.items() if name != "native_country"]
    parts += [np.array(at_home, dtype=np.float64), _scaled(rows, "education_num", (1, 16))]
    parts += [_binned(rows, name, edges) for name, edges in ADULT_BINS.items()]
    names = [*ADULT_NUMBERS, *(name for name in texts if name != "education")]
    train = np.array([row["split"] == "train" for row in rows])
    y = np.array([int(row["income"] == ">50K") for row in rows])
    return _cut("adult", np.hstack(parts), y, train, norm=math.sqrt(13), raw=_raw(rows, names), limits=ADULT_NUMBERS)


def patients() -> Data | None:
    """Whether a diabetic comes back to hospital; the first stay of each, every third for the test."""
    rows = _rows(DATA / "diabetes130" / "diabetic_data.csv.gz")
    if rows is None:
        return None
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        first.setdefault(row["patient_nbr"], row)
    kept = list(first.values())
    parts = [_one_hot(kept, name, values) for name, values in PATIENT_TEXTS.items()]
    parts += [_scaled(kept, name, limits) for name, limits in PATIENT_NUMBERS.items()]
    y = np.array([int(row["readmitted"] != "NO") for row in kept])
    train = np.array([int(row["patient_nbr"]) % 3 != 0 for row in kept])
    raw = _raw(kept, [*PATIENT_NUMBERS, *PATIENT_TEXTS])
    norm = math.sqrt(len(PATIENT_TEXTS) + len(PATIENT_NUMBERS) / 2)
    return _cut("diabetes130", np.hstack(parts), y, train, norm=norm, raw=raw, limits=PATIENT_NUMBERS)


def digits() -> Data:
    """Which digit an 8 by 8 image shows, pixels from -1 to 1."""
    X, y = load_digits(return_X_y=True)
    train = np.arange(len(y)) % 4 != 0
    return _cut("digits", X / 8 - 1, y, train, norm=8.0)


def line(seed: int, rows: int = 10_000, features: int = 10) -> Data:
    """Normal features and a normal error such that least squares has an R2 of .816."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(2 * rows, features))
    weights = draws.normal(size=features)
    signal = X @ (weights / np.linalg.norm(weights))
    y = signal + draws.normal(size=2 * rows) * math.sqrt(1 / 0.816 - 1)
    train = np.arange(2 * rows) < rows
    return _cut(f"line{seed}", X, y, train, norm=1.3 * math.sqrt(features), low=-4.0, high=4.0)


def _cut(
    name: str,
    X: Floats,
    y: NDArray[np.int64] | Floats,
    train: NDArray[np.bool_],
    *,
    norm: float,
    low: float = -1.0,
    high: float = 1.0,
    raw: NDArray[np.str_] | None = None,
    limits: dict[str, tuple[float, float]] | None = None,
) -> Data:
    count = 0 if raw is None or limits is None else raw.shape[1]
    numbers = len(limits or {})
    return Data(
        name=name,
        X=(X[train], X[~train]),
        y=(y[train], y[~train]),
        norm=norm,
        low=low,
        high=high,
        raw=None if raw is None else (raw[train], raw[~train]),
        kinds=tuple("continuous" if place < numbers else "nominal" for place in range(count)),
        limits=(*(limits or {}).values(), *(None for _ in range(count - numbers))),
    )


def _rows(path: Path) -> list[dict[str, str]] | None:
    if not path.exists():
        return None
    with gzip.open(path, "rt") as file:
        return list(csv.DictReader(file))


def _lists(text: str) -> dict[str, tuple[str, ...]]:
    """The published categories of each text column."""
    found = re.findall(r"^([a-z-]+): (.*)\.$", text, re.MULTILINE)
    return {
        name.replace("-", "_"): tuple(value.strip() for value in values.split(","))
        for name, values in found
        if values != "continuous"
    }


def _one_hot(rows: Sequence[dict[str, str]], name: str, values: Sequence[str]) -> Floats:
    return np.array([[float(row[name] == value) for value in values] for row in rows])


def _scaled(rows: Sequence[dict[str, str]], name: str, limits: tuple[float, float]) -> Floats:
    low, high = limits
    return np.array([[2 * (min(max(float(row[name]), low), high) - low) / (high - low) - 1] for row in rows])


def _binned(rows: Sequence[dict[str, str]], name: str, edges: Sequence[float]) -> Floats:
    places = np.searchsorted(edges, [float(row[name]) for row in rows], side="right")
    return np.eye(len(edges) + 1)[places]


def _raw(rows: Sequence[dict[str, str]], names: Sequence[str]) -> NDArray[np.str_]:
    return np.array([[row[name] for name in names] for row in rows])


TABLES: dict[str, Callable[[], Data | None]] = {"adult": adult, "diabetes130": patients, "digits": digits}
