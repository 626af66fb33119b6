"""Bad input to synthetic tables: what is refused is refused by name, for public facts, before anything is paid or read.

What is merely odd, such as a table in which all is missing, is no error: an error would tell what the table holds.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import DiscreetError, InvalidParameter, UnsupportedQuery
from discreet.noise import SeededBits
from discreet.privacy import Budget
from discreet.synthetic import AIM, MST, AllPairs, Bins, Calendar, Independent, Keys
from tests.curator.spies import Spy
from tests.curator.synthesis_cases import GENERATORS, charged_in

Row = dict[str, Any]

TYPES = {"who": "int", "word": "text", "level": "int", "real": "float", "flag": "bool", "day": "date", "free": "text"}
TYPES |= {"moment": "timestamp", "other": "int"}
DECLARED: dict[str, Any] = {"keys": {"word": ["x", "y"]}, "bounds": {"level": (0, 9), "real": (0, 1)}}
ROWS = "SELECT word, level FROM t"
NONE = dict.fromkeys(TYPES)


def curator_of(rows: list[Row], engine: Memory | None = None) -> Curator:
    curator = Curator.for_tests(engine=engine or Memory(), bits=SeededBits(3))
    budget = Budget(epsilon=100, delta=1e-4)
    curator.protect(rows, name="t", unit="who", types=TYPES, budget=budget, **{"max_rows": 1, **DECLARED})
    return curator


def refusal(sql: str, **how: Any) -> DiscreetError:
    """The error of something that is refused before anything is paid or read, planned or made."""
    spy = Spy()
    curator = curator_of([{**NONE, "who": 1, "word": "x", "level": 3}], spy)
    with pytest.raises((InvalidParameter, UnsupportedQuery)) as planned:
        curator.plan_synthesize(sql, **how)
    with pytest.raises(type(planned.value)) as told:
        curator.synthesize(sql, **how)
    assert (spy.reads, charged_in(curator)) == (0, [])
    assert str(told.value) == str(planned.value)
    return told.value


# ------------------------------------------------------------------------------------------------------------- domains


@pytest.mark.parametrize(
    ("column", "remedy"),
    [("free", "Keys([...])"), ("day", "Calendar("), ("moment", "Calendar("), ("other", "Bins([...])")],
)
@pytest.mark.parametrize("name", GENERATORS)
def test_a_column_without_domain_is_named_with_a_remedy(name: str, column: str, remedy: str) -> None:
    error = refusal(f"SELECT word, {column} FROM t", epsilon=1, generator=name)
    assert isinstance(error, UnsupportedQuery)
    assert f"{column} has no public values" in str(error)
    assert remedy in error.hint


LARGE: list[tuple[dict[str, Any], str]] = [
    ({"domain": {"free": [str(n) for n in range(1 << 16)] + ["one more"]}}, "keys"),
    ({"domain": {"other": range((1 << 16) + 1)}}, "edges"),
    ({"bins": (1 << 12) + 1}, "bins"),
]


@pytest.mark.parametrize(("how", "name"), LARGE, ids=[name for _, name in LARGE])
def test_a_column_of_too_many_values_is_refused(how: dict[str, Any], name: str) -> None:
    """Where a domain is made, also by the caller: nobody else has seen it yet."""
    given = how.get("domain", {})
    with pytest.raises(InvalidParameter) as told:
        curator_of([]).plan_synthesize("SELECT word, free, other FROM t" if given else ROWS, epsilon=1, **how)
    assert told.value.name == name


@pytest.mark.parametrize("name", ["mst", "allpairs"])
def test_columns_of_too_many_values_together_are_refused(name: str) -> None:
    domain = {"level": range(1 << 15), "other": range(1 << 15)}
    error = refusal("SELECT level, other FROM t", epsilon=1, generator=name, domain=domain)
    assert isinstance(error, InvalidParameter)
    assert error.name == "domain"
    assert "wider bins" in str(error)


@pytest.mark.parametrize("name", ["independent", "aim"])
def test_columns_that_are_measured_alone_may_have_many_values(name: str) -> None:
    domain = {"level": range(1 << 12), "other": range(1 << 12)}
    assert (
        curator_of([])
        .plan_synthesize("SELECT level, other FROM t", epsilon=1, generator=name, domain=domain)
        .cost.share
    )


@pytest.mark.parametrize("make", [AIM, AllPairs])
def test_a_model_without_room_for_its_columns_is_refused(make: type[Any]) -> None:
    error = refusal(ROWS, generator=make(epsilon=1, delta=1e-6, most_cells=5))
    assert isinstance(error, InvalidParameter)
    assert error.name == "most_cells"


NOTHING: list[list[dict[str, Any]]] = [
    [{"word": ["x", "y", None]}],
    [{"word": ["x"]}, {"word": ["y"]}, {"word": [None]}],
    [{"word": ["x"]}, {"word": ["y", None], "flag": [True]}, {"flag": [False, None]}],
]


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("forbidden", NOTHING, ids=len)
def test_rules_that_leave_nothing_are_refused(name: str, forbidden: list[dict[str, Any]]) -> None:
    """Also those of which each leaves something."""
    error = refusal("SELECT word, flag, level FROM t", epsilon=1, generator=name, forbidden=forbidden)
    assert isinstance(error, InvalidParameter)
    assert error.name == "forbidden"


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({"domain": {"word": []}}, "keys"),
        ({"domain": {"word": ["x", "x"]}}, "keys"),
        ({"domain": {"word": ["x", None]}}, "keys"),
        ({"domain": {"level": Bins([0, 5])}, "forbidden": [{"level": (0, 3)}]}, "forbidden"),
        ({"domain": {"level": Keys([1.5, 2.5])}}, "domain of level"),
        ({"domain": {"word": "xy"}}, "domain"),
        ({"domain": ["word"]}, "domain"),
        ({"forbidden": [{}]}, "forbidden"),
        ({"forbidden": [{"word": ["z"]}]}, "forbidden"),
        ({"generator": "AIM2"}, "generator"),
        ({"generator": ""}, "generator"),
        ({"generator": 5}, "generator"),
        ({"generator": MST}, "generator"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "much"}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": -1e-9}, "delta"),
        ({"rows_per_unit": (1 << 20) + 1}, "rows_per_unit"),
        ({"rows_per_unit": 1.5}, "rows_per_unit"),
        ({"bins": 2.5}, "bins"),
    ],
    ids=str,
)
def test_what_is_refused_is_named(how: dict[str, Any], name: str) -> None:
    def refused() -> DiscreetError:
        return refusal(ROWS, **({"epsilon": 1} | how))

    try:
        error = refused()
    except InvalidParameter as made:  # by the declaration itself, before a curator sees it
        error = made
    assert isinstance(error, InvalidParameter)
    assert error.name == name


@pytest.mark.parametrize("rows", [0, -1, 2.5, 10**8])
@pytest.mark.parametrize("name", GENERATORS)
def test_a_number_of_rows_that_cannot_be_kept_is_refused(name: str, rows: Any) -> None:
    spy = Spy()
    curator = curator_of([], spy)
    with pytest.raises(InvalidParameter) as told:
        curator.synthesize(ROWS, epsilon=1, generator=name, rows=rows)
    assert (told.value.name, spy.reads, charged_in(curator)) == ("rows", 0, [])


# ----------------------------------------------------------------------------------------------------------------- odd

ODD: dict[str, list[Row]] = {
    "no rows": [],
    "one row": [{**NONE, "who": 1, "word": "x", "level": 3, "flag": True}],
    "all missing": [{**NONE, "who": who} for who in range(20)],
    "nobody's": [{**NONE, "word": "x", "level": 1} for _ in range(20)],
    "outside": [{**NONE, "who": who, "word": "?", "level": 10**18, "real": -1e308} for who in range(20)],
    "one value": [{**NONE, "who": who, "word": "x", "level": 0, "flag": False} for who in range(20)],
    "one person": [{**NONE, "who": 1, "word": "xy"[n % 2], "level": n % 9} for n in range(50)],
}
WHOLE = "SELECT word, level, real FROM t"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", GENERATORS)
def test_odd_tables_are_like_others_to_whoever_looks(name: str) -> None:
    """One charge, one read, the same price, notes and columns; what differs was released."""
    seen = []
    for rows in ODD.values():
        spy = Spy()
        curator = curator_of(rows, spy)
        made = curator.synthesize(WHOLE, epsilon=1, generator=name, bins=3)
        assert (spy.reads, len(charged_in(curator))) == (1, 1)
        assert made.model.rows >= 1
        assert len(made) == made.model.rows
        domain = made.model.domain
        for row in made.table.to_pylist():
            assert row["word"] in ("x", "y", None)
            assert row["level"] is None or 0 <= row["level"] <= 9
            assert row["real"] is None or 0 <= row["real"] <= 1
        seen.append((made.event, made.cost, made.notes, domain, made.table.column_names))
    assert all(one == seen[0] for one in seen)


ONE: dict[str, Any] = {
    "word": Keys(["x"], missing=False),
    "level": Bins([0, 1], missing=False),
    "flag": Keys([True], missing=False),
}


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("columns", [("word",), ("word", "level"), ("word", "level", "flag")], ids=len)
def test_columns_of_one_value_can_be_made_up(name: str, columns: tuple[str, ...]) -> None:
    """Also one column alone; whatever is stored, there is one row to make up, and the number of them is private."""
    domain = {column: ONE[column] for column in columns}
    made = curator_of(ODD["one value"]).synthesize(
        f"SELECT {', '.join(columns)} FROM t", epsilon=50, generator=name, domain=domain
    )
    whole: Row = {"word": "x", "level": 0, "flag": True}
    assert made.table.to_pylist() == [{column: whole[column] for column in columns}] * len(made)
    assert abs(len(made) - 20) < 10
    assert sum(rho for _, rho in made.model.charges) == made.model.rho


@pytest.mark.parametrize("make", [Independent, MST, AIM, AllPairs])
def test_a_generator_draws_no_rows_if_it_is_asked_for_none(make: type[Any]) -> None:
    model = make(epsilon=1, delta=1e-6, random_state=1).fit({"a": [1, 2]}, domain={"a": [1, 2]})
    assert model.sample(0) == {"a": []}
    for rows in (-1, 1.5):
        with pytest.raises(InvalidParameter) as told:
            model.sample(rows)
        assert told.value.name == "rows"


def test_days_of_any_year_have_a_place() -> None:
    days = [dt.date.min, dt.date.max, dt.date(2023, 5, 5), None]
    rows = [{**NONE, "who": who, "day": day} for who, day in enumerate(days * 10)]
    domain = {"day": Calendar("year_month", years=(2023, 2023))}
    made = curator_of(rows).synthesize("SELECT day FROM t", epsilon=80, generator="independent", domain=domain)
    found = made.model.counts(("day",))
    assert found[[0, 4, 11, 12]] == pytest.approx([10] * 4, abs=3)
