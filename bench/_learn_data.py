"""Tables to learn from, encoded by rules that anybody could write down without having seen a row.

Categories come from the published lists of each table, bins and limits from the meaning of a column.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _claims import DATA
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

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
HEART_NUMBERS = {
    "age": (20, 90),
    "trestbps": (80, 200),
    "chol": (100, 500),
    "thalach": (60, 210),
    "oldpeak": (0, 6),
    "ca": (0, 3),
}
HEART_TEXTS = {
    "sex": ("0.0", "1.0"),
    "cp": ("1.0", "2.0", "3.0", "4.0"),
    "fbs": ("0.0", "1.0"),
    "restecg": ("0.0", "1.0", "2.0"),
    "exang": ("0.0", "1.0"),
    "slope": ("1.0", "2.0", "3.0"),
    "thal": ("3.0", "6.0", "7.0"),
}
INSURANCE_NUMBERS = {"age": (18, 65), "bmi": (15, 50), "children": (0, 5)}
INSURANCE_TEXTS = {
    "sex": ("female", "male"),
    "smoker": ("no", "yes"),
    "region": ("northeast", "northwest", "southeast", "southwest"),
}
CENSUS_NUMBERS = {"AGEP": (16, 95), "EDU": (1, 12), "NPF": (1, 10), "NOC": (0, 5)}
CENSUS_TEXTS = {
    "SEX": ("1", "2"),
    "MSP": ("1", "2", "3", "4", "5", "6"),
    "RAC1P": tuple("123456789"),
    "HISP": tuple("01234"),
    "HOUSING_TYPE": ("1", "2", "3"),
    "OWN_RENT": ("0", "1", "2"),
    "INDP_CAT": ("N", *(str(code) for code in range(19))),
    "DREM": ("1", "2"),
    "DPHY": ("1", "2"),
    "DEYE": ("1", "2"),
    "DEAR": ("1", "2"),
}
CELL_LIMITS = {  # of a nucleus: mean, standard error, worst
    "radius": (30, 3, 40),
    "texture": (40, 5, 50),
    "perimeter": (200, 22, 250),
    "area": (2500, 550, 4500),
    "smoothness": (0.2, 0.04, 0.25),
    "compactness": (0.4, 0.15, 1.2),
    "concavity": (0.5, 0.4, 1.3),
    "concave points": (0.25, 0.06, 0.3),
    "symmetry": (0.35, 0.08, 0.7),
    "fractal dimension": (0.1, 0.03, 0.25),
}
WINE_LIMITS = (
    (10, 15),
    (0, 6),
    (1, 4),
    (10, 30),
    (70, 170),
    (0, 4),
    (0, 6),
    (0, 0.7),
    (0, 4),
    (0, 14),
    (0, 2),
    (1, 4),
    (200, 1700),
)


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
    texts = published_lists((DATA / "adult" / "adult.names").read_text())
    at_home = [[row["native_country"] == "United-States"] for row in rows]
    parts = [_one_hot(rows, name, values) for name, values in texts.items() if name != "native_country"]
    parts += [np.array(at_home, dtype=np.float64), _scaled(rows, "education_num", (1, 16))]
    parts += [_binned(rows, name, edges) for name, edges in ADULT_BINS.items()]
    names = [*ADULT_NUMBERS, *(name for name in texts if name != "education")]
    train = np.array([row["split"] == "train" for row in rows])
    y = np.array([int(row["income"] == ">50K") for row in rows])
    return _cut("adult", np.hstack(parts), y, train, norm=math.sqrt(13), raw=_raw(rows, names), limits=ADULT_NUMBERS)


def first_stays() -> list[dict[str, str]] | None:
    """The first stay of each diabetic."""
    rows = _rows(DATA / "diabetes130" / "diabetic_data.csv.gz")
    if rows is None:
        return None
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        first.setdefault(row["patient_nbr"], row)
    return list(first.values())


def patients() -> Data | None:
    """Whether a diabetic comes back to hospital; the first stay of each, every third for the test."""
    kept = first_stays()
    if kept is None:
        return None
    parts = [_one_hot(kept, name, values) for name, values in PATIENT_TEXTS.items()]
    parts += [_scaled(kept, name, limits) for name, limits in PATIENT_NUMBERS.items()]
    y = np.array([int(row["readmitted"] != "NO") for row in kept])
    train = np.arange(len(kept)) % 3 != 0  # their numbers are nearly all multiples of 9
    raw = _raw(kept, [*PATIENT_NUMBERS, *PATIENT_TEXTS])
    norm = math.sqrt(len(PATIENT_TEXTS) + len(PATIENT_NUMBERS) / 2)
    return _cut("diabetes130", np.hstack(parts), y, train, norm=norm, raw=raw, limits=PATIENT_NUMBERS)


def heart() -> Data | None:
    """Whether an angiogram shows a disease, 303 patients; every fourth for the test."""
    rows = _rows(DATA / "heart_disease" / "processed_cleveland.csv")
    y = None if rows is None else np.array([int(row["num"] != "0") for row in rows])
    return _mixed("heart", rows, y, HEART_NUMBERS, HEART_TEXTS)


def insurance() -> Data | None:
    """Whether a year costs more than 10,000, 1,338 people; every fourth for the test."""
    rows = _rows(DATA / "insurance" / "insurance.csv")
    y = None if rows is None else np.array([int(float(row["charges"]) > 10_000) for row in rows])
    return _mixed("insurance", rows, y, INSURANCE_NUMBERS, INSURANCE_TEXTS)


def census() -> Data | None:
    """Whether a grown-up's income is above 50,000, Massachusetts 2019; every fourth for the test."""
    rows = _rows(DATA / "nist_acs_excerpts" / "ma2019.csv")
    rows = None if rows is None else [row for row in rows if row["PINCP"] != "N"]
    y = None if rows is None else np.array([int(float(row["PINCP"]) > 50_000) for row in rows])
    return _mixed("nist_acs", rows, y, CENSUS_NUMBERS, CENSUS_TEXTS)


def _mixed(
    name: str,
    rows: list[dict[str, str]] | None,
    y: NDArray[np.int64] | None,
    numbers: dict[str, tuple[float, float]],
    texts: dict[str, tuple[str, ...]],
) -> Data | None:
    if rows is None or y is None:
        return None
    parts = [_one_hot(rows, column, values) for column, values in texts.items()]
    parts += [_scaled(rows, column, limits) for column, limits in numbers.items()]
    norm = math.sqrt(len(texts) + len(numbers) / 2)
    middles = [
        {column: row[column] if _is_number(row[column]) else f"{sum(ends) / 2:g}" for column, ends in numbers.items()}
        | {column: row[column] for column in texts}
        for row in rows
    ]
    train = np.arange(len(y)) % 4 != 0
    return _cut(name, np.hstack(parts), y, train, norm=norm, raw=_raw(middles, [*numbers, *texts]), limits=numbers)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def digits() -> Data:
    """Which digit an 8 by 8 image shows, pixels from -1 to 1."""
    X, y = load_digits(return_X_y=True)
    return _numbers("digits", X, y, ((0, 16),) * 64)


def wine() -> Data:
    """Which of three growers made a wine, 178 of them."""
    X, y = load_wine(return_X_y=True)
    return _numbers("wine", X, y, WINE_LIMITS)


def cancer() -> Data:
    """Whether a tumour is benign, 569 of them."""
    X, y = load_breast_cancer(return_X_y=True)
    return _numbers("cancer", X, y, tuple((0, tops[part]) for part in range(3) for tops in CELL_LIMITS.values()))


def _numbers(name: str, X: Floats, y: NDArray[np.int64], limits: tuple[tuple[float, float], ...]) -> Data:
    low, high = np.array(limits, dtype=np.float64).T
    scaled = 2 * (np.clip(X, low, high) - low) / (high - low) - 1
    train = np.arange(len(y)) % 4 != 0
    columns = {f"{place}": pair for place, pair in enumerate(limits)}
    raw = np.clip(X, low, high).astype(str)
    return _cut(name, scaled, y, train, norm=math.sqrt(X.shape[1]), raw=raw, limits=columns)


def line(seed: int, rows: int = 10_000, features: int = 10) -> Data:
    """Normal features and a normal error such that least squares has an R2 of .816."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(2 * rows, features))
    weights = draws.normal(size=features)
    signal = X @ (weights / np.linalg.norm(weights))
    y = signal + draws.normal(size=2 * rows) * math.sqrt(1 / 0.816 - 1)
    train = np.arange(2 * rows) < rows
    return _cut(f"line{seed}", X, y, train, norm=1.3 * math.sqrt(features), low=-4.0, high=4.0)


def of_other_packages(folder: Path) -> tuple[dict[str, Data], list[str]]:
    """The tables of `peers/learn_tables.py` and the names of those kept aside; none if they are not installed."""
    here = Path(__file__).parent
    python = here.parent / ".venv-peers" / "tables" / "bin" / "python"
    if not (python.parent.parent / ".made").exists():
        print("Tables of other packages are not installed: make .venv-peers/tables/.tried")
        return {}, []
    subprocess.run([str(python), str(here / "peers" / "learn_tables.py"), str(folder)], check=True)
    tables = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as found:
            X, y = ((found[f"{kind}_train"], found[f"{kind}_test"]) for kind in "Xy")
            tables[path.stem] = Data(name=path.stem, X=X, y=y, norm=float(found["norm"]), low=-1.0, high=1.0)
    return tables, (folder / "aside.txt").read_text().split()


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
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return list(csv.DictReader(file))


def published_lists(text: str) -> dict[str, tuple[str, ...]]:
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
    found = [float(row[name]) if _is_number(row[name]) else (low + high) / 2 for row in rows]
    return (2 * (np.clip(found, low, high) - low) / (high - low) - 1)[:, None]


def _binned(rows: Sequence[dict[str, str]], name: str, edges: Sequence[float]) -> Floats:
    places = np.searchsorted(edges, [float(row[name]) for row in rows], side="right")
    return np.eye(len(edges) + 1)[places]


def _raw(rows: Sequence[dict[str, str]], names: Sequence[str]) -> NDArray[np.str_]:
    return np.array([[row[name] for name in names] for row in rows])


TABLES: dict[str, Callable[[], Data | None]] = {
    "adult": adult,
    "heart": heart,
    "insurance": insurance,
    "diabetes130": patients,
    "nist_acs": census,
    "wine": wine,
    "cancer": cancer,
    "digits": digits,
}
