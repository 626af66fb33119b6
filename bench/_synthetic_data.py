"""Tables to learn by heart: Adult with bins that anybody could write down without having seen a row, and a wide one."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np
from _claims import DATA
from _learn_data import published_lists
from numpy.typing import NDArray

from discreet.synthetic import Bins, Domain, Keys

Codes = NDArray[np.int64]

NUMBERS = {
    "age": Bins(range(17, 92, 2)),
    "fnlwgt": Bins(range(0, 1_000_000, 20_000)),
    "education_num": Keys([str(years) for years in range(1, 17)]),
    "capital_gain": Bins(range(0, 100_000, 2_000)),
    "capital_loss": Bins(range(0, 5_000, 100)),
    "hours_per_week": Bins(range(0, 100, 2)),
}


@dataclass(frozen=True, kw_only=True)
class Discrete:
    """A table cut in two, as codes of a public domain."""

    domain: Domain
    train: dict[str, Any]
    codes: tuple[Codes, Codes]


def adult(seed: int = 0) -> Discrete | None:
    """All 15 columns of Adult; four fifths of the rows to learn from, chosen by a seed."""
    path = DATA / "adult" / "adult.csv.gz"
    if not path.exists():
        return None
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = published_lists((DATA / "adult" / "adult.names").read_text())
    columns: dict[str, Any] = {}
    for name in rows[0]:
        if name in NUMBERS:
            columns[name] = NUMBERS[name]
        elif name in texts:
            columns[name] = Keys(texts[name])
    domain = Domain(columns | {"income": Keys(["<=50K", ">50K"], missing=False)})
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = len(rows) * 4 // 5
    parts = []
    for places in (order[:cut], order[cut:]):
        part: dict[str, Any] = {name: [rows[place][name] for place in places] for name in domain.columns}
        parts.append({name: _typed(name, values) for name, values in part.items()})
    return Discrete(domain=domain, train=parts[0], codes=(domain.encode(parts[0]), domain.encode(parts[1])))


def _typed(name: str, values: list[str]) -> list[Any]:
    return [int(value) for value in values] if isinstance(NUMBERS.get(name), Bins) else values


def wide(columns: int = 100, values: int = 10, rows: int = 100_000, seed: int = 0) -> tuple[Domain, dict[str, Any]]:
    """Columns of which each repeats an earlier one half of the time."""
    draws = np.random.default_rng(seed)
    made = draws.integers(0, values, size=(rows, columns))
    for column in range(1, columns):
        copied = draws.random(rows) < 0.5
        made[copied, column] = made[copied, draws.integers(0, column)]
    domain = Domain({f"c{column}": Keys(range(values), missing=False) for column in range(columns)})
    return domain, {f"c{column}": made[:, column] for column in range(columns)}
