"""Tables whose rows are people of their own, joined with public rows: one each, whatever the public table holds."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.curator.config.toml_file import load
from discreet.engines import DuckDB, Memory
from discreet.engines.memory import relation_rows
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Neighbours
from tests.cases import try_all
from tests.effort import some

WARDS = [
    {"ward": "A", "site": "north", "beds": 10},
    {"ward": "B", "site": "south", "beds": 20},
    {"ward": None, "site": "nowhere", "beds": 1},
    {"ward": None, "site": "nowhere", "beds": 2},
]
SITES = [{"place": "north", "year": 1, "cost": 3}, {"place": "north", "year": 2, "cost": 4}]
VISITS = [{"ward": ward, "year": year, "age": age} for ward, year, age in product("ABZ", (1, 2, 3), (10, 20, 40))]
VISITS += [{"ward": None, "year": 1, "age": 30}]
TYPES = {"ward": "text", "year": "int", "age": "int"}
JOINED = "SELECT w.site, COUNT(*) AS n, SUM(w.beds) AS b FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.site"
ASKED = (
    JOINED,
    "SELECT COUNT(*) AS n, SUM(beds) AS b FROM visits LEFT JOIN wards USING (ward)",
    "SELECT COUNT(*) AS n FROM wards w JOIN visits v ON w.ward = v.ward AND v.age > w.beds",
    "SELECT COUNT(*) AS n FROM visits v, wards w WHERE v.ward = w.ward AND w.site = 'north'",
    (
        "SELECT SUM(s.cost) AS c, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward "
        "JOIN sites s ON s.place = w.site AND s.year = v.year"
    ),
    "SELECT AVG(b.beds) AS b FROM visits JOIN (SELECT ward AS w, beds FROM wards WHERE beds > 5) AS b ON w = ward",
    "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM wards WHERE site = 'north')",
)
FRAMES = {
    "visits": pl.Schema({"ward": pl.String, "year": pl.Int64, "age": pl.Int64}),
    "wards": pl.Schema({"ward": pl.String, "site": pl.String, "beds": pl.Int64}),
    "sites": pl.Schema({"place": pl.String, "year": pl.Int64, "cost": pl.Int64}),
}


def _curator(rows: Any, *, engine: Any = Memory, neighbours: Any = None, **declared: Any) -> Curator:
    made = Curator.for_tests(engine=engine(), bits=SeededBits(1))

    def given(name: str, listed: Any) -> Any:
        return list(listed) if engine is Memory else pl.DataFrame(list(listed), schema=FRAMES[name])

    unique: dict[str, Any] = {"wards": ["ward"], "sites": [("place", "year")]} | declared
    for name, listed in (("wards", WARDS), ("sites", SITES)):
        types = {"ward": "text", "site": "text", "beds": "int", "place": "text", "year": "int", "cost": "int"}
        own = {column: types[column] for column in FRAMES[name]}
        made.public(given(name, listed), name=name, types=own, unique=unique[name])
    made.protect(
        given("visits", rows),
        name="visits",
        types=TYPES,
        bounds={"age": (0, 100)},
        keys={"year": [1, 2, 3]},
        neighbours=neighbours,
        budget=Budget(epsilon=10**14, delta="0.1"),
    )
    return made


@pytest.mark.ci
def test_without_noise_it_is_plain_sql_on_both_engines() -> None:
    plain = duckdb.connect()
    for name, rows in (("visits", VISITS), ("wards", WARDS), ("sites", SITES)):
        plain.register(name, pl.DataFrame(rows, schema=FRAMES[name]).to_arrow())
    curators = [_curator(VISITS, engine=engine) for engine in (Memory, DuckDB)]

    def same(case: tuple[str, Curator]) -> None:
        sql, curator = case
        answer = curator.ask(sql, epsilon=10**12, delta="1e-6")
        names = [name for name in answer.columns if not name.endswith(("_low", "_high"))]
        found = sorted((tuple(row[name] for name in names) for row in answer), key=repr)
        expected = sorted(plain.execute(sql).fetchall(), key=repr)
        for one, other in zip(found, expected, strict=True):
            assert one == pytest.approx(other)

    try_all(some(product(ASKED, curators), 3), same)
    for curator in curators:
        curator.close()


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_one_row_moves_no_input_farther_than_charged(relation: Neighbours) -> None:
    """Also where the public table has changed since, and holds a ward twice."""
    twice = [*WARDS, {"ward": "A", "site": "south", "beds": 20}, {"ward": "A", "site": "north", "beds": 10}]
    private = [sql.replace("GROUP BY w.site", "GROUP BY w.site ORDER BY 1") for sql in ASKED]

    def changed(rows: Any) -> Curator:
        made = _curator(rows, neighbours=relation)
        made._engine.register("wards", twice, {"ward": Type.TEXT, "site": Type.TEXT, "beds": Type.INT})
        return made

    found = audit.query(changed, private, VISITS[:12], neighbours=4)
    assert found.passed, found.summary()


@pytest.mark.ci
def test_mutant_a_row_takes_all_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relation_rows, "_smallest", lambda rows: rows)
    with pytest.raises(AssertionError):
        test_one_row_moves_no_input_farther_than_charged(Neighbours.ADD_REMOVE)


def test_remedies_are_followed_word_for_word() -> None:
    """What the refusal names is declared, and the same question is answered; what it proposes instead is, too."""
    with _curator(VISITS, sites=()) as curator:
        undeclared = "SELECT COUNT(*) AS n FROM visits v JOIN sites s ON s.year = v.year AND s.place = v.ward"
        with pytest.raises(UnsupportedQuery, match="could repeat rows") as refused:
            curator.ask(undeclared, epsilon=1)
        hint = refused.value.hint
        (proposed,) = re.findall(r"`([^`]+)`", hint)
        assert len(curator.ask(proposed, epsilon=1, delta="1e-6")) >= 0
        (name,) = re.findall(r"name='(\w+)'", hint)
        unique = eval(re.findall(r"unique=(\[.*?\])\)", hint)[0])
        assert (name, unique) == ("sites", [("place", "year")])
        curator.public(list(SITES), name=name, types={"place": "text", "year": "int", "cost": "int"}, unique=unique)
        assert len(curator.ask(undeclared, epsilon=1)) == 1
        both = "(SELECT w.ward AS ward, s.cost AS cost FROM wards w JOIN sites s ON s.place = w.site) AS t"
        with pytest.raises(UnsupportedQuery, match="could repeat rows") as refused:  # no declaration would help
            curator.ask(f"SELECT SUM(cost) AS c FROM visits v JOIN {both} ON t.ward = v.ward", epsilon=1)
        assert "unique=" not in refused.value.hint


def test_what_is_not_unique_is_not_declared() -> None:
    with Curator.for_tests(engine=Memory(), bits=SeededBits(1)) as curator:
        types = {"place": "text", "year": "int", "cost": "int"}
        for unique in (["place"], [("place", "colour")], ["colour"], [()]):
            with pytest.raises(InvalidParameter, match="unique"):
                curator.public(list(SITES), name="sites", types=types, unique=unique)
        curator.public(list(SITES), name="sites", types=types, unique=["year", ("place", "year"), "cost"])


def test_a_file_of_declarations_has_it(tmp_path: Path) -> None:
    text = '[public.wards]\nsource = "wards.csv"\nunique = ["ward", ["site", "beds"]]\n'
    (tmp_path / "discreet.toml").write_text(text)
    (public,) = load(tmp_path / "discreet.toml").public
    assert public.unique == ["ward", ("site", "beds")]
