"""Tables to learn by heart, with domains that anybody could write down without having seen a row.

Adult as the literature on marginals has it: 14 columns (the name of an education repeats its number), ages and hours
one by one, and 100 bins of equal width for each of the other numbers. The NIST excerpts of the American Community
Survey by their published schema: 21 columns (industries by group, without survey weights). And a wide table that is
made up.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _claims import DATA
from _learn_data import PATIENT_NUMBERS, PATIENT_TEXTS, first_stays, published_lists
from numpy.typing import NDArray

from discreet.synthetic import Bins, Domain, Keys

Codes = NDArray[np.int64]
Rows = list[dict[str, str]]

ADULT_NUMBERS = {
    "age": Bins(range(17, 91), missing=False),
    "fnlwgt": Bins(range(0, 1_500_000, 15_000), missing=False),
    "education_num": Keys([str(years) for years in range(1, 17)], missing=False),
    "capital_gain": Bins(range(0, 100_000, 1_000), missing=False),
    "capital_loss": Bins(range(0, 5_000, 50), missing=False),
    "hours_per_week": Bins(range(1, 100), missing=False),
}
WEIGHTS = ("PWGTP", "WGTP")
DEMOGRAPHIC = ("PUMA", "AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE")
"""The demographic feature set of the NIST collaborative research cycle, with the area."""


@dataclass(frozen=True, kw_only=True)
class Discrete:
    """A table cut in two, as codes of a public domain; the label is a column and the code to be told from others."""

    domain: Domain
    train: dict[str, Any]
    codes: tuple[Codes, Codes]
    label: tuple[str, int]


def adult(seed: int = 0) -> Discrete | None:
    """Fourteen columns of Adult; four fifths of the rows to learn from, chosen by a seed."""
    rows = _rows(DATA / "adult" / "adult.csv.gz")
    if rows is None:
        return None
    texts = published_lists((DATA / "adult" / "adult.names").read_text())
    columns: dict[str, Any] = {
        name: ADULT_NUMBERS[name] if name in ADULT_NUMBERS else Keys(texts[name])
        for name in rows[0]
        if name in ADULT_NUMBERS or (name in texts and name != "education")
    }
    return _cut(rows, Domain(columns | {"income": Keys(["<=50K", ">50K"], missing=False)}), ("income", 1), seed)


def nist(seed: int = 0, only: Iterable[str] | None = None) -> Discrete | None:
    """The national excerpt of 2019; four fifths of the rows to learn from, chosen by a seed."""
    rows = nist_rows()
    return None if rows is None else _cut(rows, nist_domain(only), ("OWN_RENT", 1), seed)


def nist_rows(year: int = 2019) -> Rows | None:
    """All rows of the national excerpt of a year."""
    return _rows(DATA / "nist_acs_excerpts" / f"national{year}.csv.gz")


def earlier(seed: int = 0) -> Discrete | None:
    """The national excerpt of 2018: other people than those of 2019."""
    rows = nist_rows(2018)
    return None if rows is None else _cut(rows, nist_domain(), ("OWN_RENT", 1), seed)


def patients(seed: int = 0) -> Discrete | None:
    """The first stay in hospital of each diabetic, 15 columns."""
    rows = first_stays()
    if rows is None:
        return None
    columns: dict[str, Any] = {name: Keys(values) for name, values in PATIENT_TEXTS.items()}
    columns |= {name: Bins(range(low, high + 2), missing=False) for name, (low, high) in PATIENT_NUMBERS.items()}
    columns["readmitted"] = Keys(["NO", "<30", ">30"], missing=False)
    return _cut(rows, Domain(columns), ("readmitted", 0), seed)


def nist_domain(only: Iterable[str] | None = None, *, leave: Iterable[str] = ("INDP", *WEIGHTS)) -> Domain:
    """The published schema: listed values, N for what does not apply, and bins of numbers.

    Args:
        only: the columns; all of the schema if None.
        leave: columns to be left out.
    """
    path = DATA / "nist_acs_excerpts" / "national2019.schema.json"
    schema = json.loads(path.read_text())["schema"]
    bins = {
        "AGEP": Bins(range(0, 100, 5), missing=False),
        "DENSITY": Bins(density_edges(52_864), missing=False),
        "PINCP": Bins(
            [-20_000, 0, 1, *range(5_000, 100_000, 5_000), *range(100_000, 200_001, 20_000), 400_000, 1_400_000]
        ),
        "POVPIP": Bins([*range(0, 501, 25), 502]),
        "PWGTP": Bins([1, *range(20, 301, 20), 500, 2_100], missing=False),
        "WGTP": Bins([0, 1, *range(20, 301, 20), 500, 1_700], missing=False),
    }
    columns = {
        name: bins[name] if name in bins else _listed(told)
        for name, told in schema.items()
        if name not in set(leave) and (only is None or name in set(only))
    }
    return Domain(columns)


def density_edges(most: float) -> list[float]:
    """The bins of population density that SDNist has: equal in logarithms, those below 150 in one."""
    steps = np.logspace(1.0, math.log10(most + 500), num=21)
    return [0.0, 150.0, *(float(step) for step in steps[8:])]


def _listed(told: dict[str, Any]) -> Keys:
    return Keys([str(value) for value in told["values"] if value != "N"], missing="has_null" in told)


def _rows(path: Path) -> Rows | None:
    if not path.exists():
        return None
    with gzip.open(path, "rb") as file:
        return list(csv.DictReader(io.TextIOWrapper(file, newline="")))


def _cut(rows: Rows, domain: Domain, label: tuple[str, int], seed: int) -> Discrete:
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = len(rows) * 4 // 5
    parts = [frame_of([rows[place] for place in places], domain) for places in (order[:cut], order[cut:])]
    return Discrete(
        domain=domain, train=parts[0], codes=(domain.encode(parts[0]), domain.encode(parts[1])), label=label
    )


def frame_of(rows: Rows, domain: Domain) -> dict[str, Any]:
    """Columns of a domain, numbers as numbers; what is no number there is missing."""
    return {name: [_typed(domain.columns[name], row[name]) for row in rows] for name in domain.columns}


def _typed(column: Any, value: str) -> Any:
    if not isinstance(column, Bins):
        return value
    return None if value == "N" else float(value)


def wide(columns: int = 100, values: int = 10, rows: int = 100_000, seed: int = 0) -> tuple[Domain, dict[str, Any]]:
    """Columns of which each repeats an earlier one half of the time."""
    draws = np.random.default_rng(seed)
    made = draws.integers(0, values, size=(rows, columns))
    for column in range(1, columns):
        copied = draws.random(rows) < 0.5
        made[copied, column] = made[copied, draws.integers(0, column)]
    domain = Domain({f"c{column}": Keys(range(values), missing=False) for column in range(columns)})
    return domain, {f"c{column}": made[:, column] for column in range(columns)}
