"""No value makes a domain, or the limit of a unit, fail: an error would tell that somebody has it."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet.engines.row_choice import normalize_id
from discreet.synthetic import Bins, Calendar, Domain, Independent, Keys
from discreet.synthetic.coded_rows import id_text, rows_within_limit
from tests.engines.test_ids import spellings


class Overflowing:
    """No number, and says that it is too large for one."""

    def __float__(self) -> float:
        raise OverflowError


class Unequal:
    """Cannot be compared, with the hash of a key."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        return hash(1)


HOSTILE: list[Any] = [
    *(None, True, 0, -1, 10**400, -(10**5000), 2.5, float("nan"), float("inf"), -0.0, 3 + 0j),
    *("", "a", "\ud800", "2024-02-30", "9999-99-99", b"a", b"2024-01-01", "٣", "1"),
    *(decimal.Decimal("sNaN"), decimal.Decimal("1e999999"), Fraction(10**400), Fraction(1, 3)),
    *(dt.date.min, dt.date.max, dt.datetime.max, dt.time(1), dt.timedelta(days=3), uuid.UUID(int=1)),
    *(np.float32("nan"), np.uint8(3), np.bool_(True), np.int64(-(2**63)), np.str_("a"), np.array([1, 2]), np.array([])),
    *(np.datetime64("NaT"), np.datetime64("2024-01-01"), np.datetime64(10**15, "Y"), np.timedelta64(3, "D")),
    *(np.timedelta64("NaT"), pd.NaT, pd.NA, pd.Timestamp("2024-01-01", tz="UTC"), pd.Timedelta(days=3)),
    *([], [1], (1,), {}, {1}, object(), object, Overflowing(), Unequal(), len, range(3)),
]
DOMAINS: dict[str, Any] = {
    "words": Keys(["a", "b"]),
    "numbers": Keys([1, 2.5]),
    "truths": Keys([True]),
    "days": Keys([dt.date(2024, 1, 1)]),
    "bins": Bins([0, 1, 2], missing=False),
    "years": Calendar("year", years=(2020, 2024)),
    "weekdays": Calendar("weekday"),
    "months": Calendar("month", missing=False),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_every_value_has_the_code_that_it_has_alone(name: str) -> None:
    domain = DOMAINS[name]
    together = domain.codes(HOSTILE).tolist()
    assert together == [int(domain.codes([value])[0]) for value in HOSTILE]
    assert all(0 <= code < domain.size for code in together)


ARRAYS: list[Any] = [
    np.array([1 + 2j, 3], dtype=complex),
    np.array([b"a", b"b"]),
    np.array(["a", "b"]),
    np.array([1, 2], dtype="timedelta64[D]"),
    np.array(["NaT", "2024-01-01"], dtype="datetime64[ns]"),
    np.array([None, "a"], dtype=object),
    np.array([(1, 2.0), (3, 4.0)], dtype=[("x", int), ("y", float)]),
    np.array([np.inf, np.nan]),
    np.array([2**64 - 1, 0], dtype=np.uint64),
    np.ma.masked_array([1, 2], mask=[True, False]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.dtype))
@pytest.mark.parametrize("name", DOMAINS)
def test_arrays_of_every_type_have_codes(name: str, array: Any) -> None:
    codes = Domain({"x": DOMAINS[name]}).encode({"x": array})
    assert codes.shape == (2, 1)


def test_every_id_is_somebodys_or_nobodys() -> None:
    """Floats and objects are nobody; whoever is left has at most the limit."""
    codes = np.arange(3 * len(HOSTILE)).reshape(-1, 1) % 7
    kept = rows_within_limit(HOSTILE * 3, codes, 2)
    known = [value for value in HOSTILE if len(rows_within_limit([value], codes[:1], 1))]
    assert 10 < len(known) < len(HOSTILE)
    assert len(kept) <= 2 * len(known)


def test_an_id_is_the_one_that_engines_count() -> None:
    """Python's `strip` takes control characters away as well, which would make one person of two."""
    texts = [text for text in spellings() if text is not None] + ["p1\x1c", "\x1fp1", "\x1d"]
    for text in texts:
        counted = normalize_id(text)
        assert id_text(text) == (None if counted is None else f"text {counted}")


def test_a_table_of_such_values_is_learned_like_any_other() -> None:
    frame = dict.fromkeys(DOMAINS, HOSTILE) | {"who": HOSTILE}
    model = Independent(epsilon=1, delta=1e-6, random_state=1).fit(frame, domain=DOMAINS, unit="who", rows_per_unit=2)
    assert len(model.sample(5)["days"]) == 5
