"""HISTOGRAM as a question: bands between public edges, equal to plain SQL with much budget, and a plain grouping."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import duckdb
import polars as pl
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.errors import UnsupportedQuery
from discreet.measurement.program.program import choose
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import every
from tests.curator.clinic import neighbour, visits
from tests.curator.nearness import check_moves
from tests.curator.spies import clinic
from tests.curator.test_neighbours import exact, schema
from tests.effort import some

ROWS = pl.DataFrame(
    {
        "k": [None if i % 13 == 0 else (i * i * 7) % 130 - 4 for i in range(1500)],
        "x": [None if i % 11 == 0 else (i * i % 1009) / 8 - 3 for i in range(1500)],
        "w": [float(i % 50) for i in range(1500)],
    }
)


def ample() -> Curator:
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(2))
    curator.protect(ROWS, name="t", budget=Budget(epsilon=10**12), bounds={"k": (0, 120), "x": (-1, 100)})
    return curator


def plain(value: str, edges: list[float], *, clipped: bool) -> list[int]:
    """Bands hold their lower edge, the last one both; what lies beyond the edges is in the end bands or in none."""
    found = []
    for place, (low, high) in enumerate(pairwise(edges)):
        first, last = place == 0, place == len(edges) - 2
        above = "TRUE" if first and clipped else f"{value} >= {low!r}"
        below = "TRUE" if last and clipped else f"{value} {'<=' if last else '<'} {high!r}"
        found.append(f"COUNT(*) FILTER (WHERE {value} IS NOT NULL AND {above} AND {below})")
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        return list(connection.execute(f"SELECT {', '.join(found)} FROM t").fetchall()[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("asked", "value", "edges"),
    [
        ("k", "k", [12 * i for i in range(11)]),
        ("k, 3", "k", [0, 40, 80, 120]),
        ("k, 7", "k", [120 * i / 7 for i in range(8)]),
        ("x, 4", "x", [-1, 24.25, 49.5, 74.75, 100]),
        ("x * 2, 1", "(x * 2)", [-2, 200]),
        ("k % 10, 2", "(k % 10)", [0, 4.5, 9]),
    ],
)
def test_even_bands_between_declared_bounds(asked: str, value: str, edges: list[float]) -> None:
    answer = ample().ask(f"SELECT HISTOGRAM({asked}) AS h FROM t", epsilon=10**9, delta=0)
    assert answer.columns == ("low", "high", "h", "h_low", "h_high")
    assert [row["low"] for row in answer] == edges[:-1]
    assert [row["high"] for row in answer] == edges[1:]
    assert [row["h"] for row in answer] == plain(value, edges, clipped=True)


@every("edges", some([[0, 18, 65, 120], [-3.5, 0.125, 0.25, 90], [0, 1e300], [20, 21]], 5))
@every("value", ["k", "x", "w"])
def test_bands_between_written_edges(value: str, edges: list[float]) -> None:
    written = ", ".join(map(repr, edges))
    answer = ample().ask(f"SELECT HISTOGRAM({value}, {written}) FROM t", epsilon=10**9, delta=0)
    assert answer.columns == ("low", "high", "count", "count_low", "count_high")
    bands = [(low, high) for low, high in pairwise(edges) if value != "k" or math.ceil(low) < high]
    assert [(row["low"], row["high"]) for row in answer] == bands
    counts = dict(zip(pairwise(edges), plain(value, edges, clipped=False), strict=True))
    assert [row["count"] for row in answer] == [counts[band] for band in bands]


def test_it_is_a_grouping_by_bands_and_nothing_else() -> None:
    """One count, all bands public, empty ones included, no delta; asked again it is free."""
    curator = clinic(Budget(epsilon=4))
    asked = "SELECT HISTOGRAM(age, 6) AS n FROM visits WHERE ward = 'A'"
    explained = curator.explain(asked, epsilon=1)
    assert explained.facts["groups"] == "public, 6 of them"
    assert set(explained.errors) == {"n"}
    first = curator.ask(asked, epsilon=1)
    assert len(first) == 6
    assert getattr(first.cost, "epsilon", None) == 1
    again = curator.ask(asked, epsilon="0.5")
    assert again.replayed
    assert again.records == first.records
    assert len(curator.rehearse(asked)) == 6


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("limits", [Limits(1, 1), Limits(3, 2)], ids=str)
def test_one_patient_moves_no_band_farther_than_charged(limits: Limits, neighbours: Neighbours) -> None:
    declared = schema(unit="patient", limits=limits, neighbours=neighbours)
    asked = parse("SELECT HISTOGRAM(age, 5) AS n FROM visits", {"visits": declared})
    program = choose(asked, declared, epsilon=Fraction(1), salt="pepper")
    assert len(program.reading.public_keys or ()) == 5
    for seed in range(20):
        rows: list[dict[str, Any]] = visits(seed)
        other = neighbour(rows, seed, seed % 12, neighbours)
        check_moves(program, exact(program, rows), exact(program, other))


def test_engines_agree() -> None:
    found = []
    for engine, source in ((Memory(), ROWS.to_dicts()), (DuckDB(threads=2), ROWS)):
        curator = Curator.for_tests(engine=engine, bits=SeededBits(8))
        types = {"k": "int", "x": "float", "w": "float"}
        curator.protect(source, name="t", types=types, budget=Budget(epsilon=9), bounds={"k": (0, 120), "x": (-1, 100)})
        found.append([curator.ask(f"SELECT HISTOGRAM({c}, 9) FROM t", epsilon=1).records for c in ("k", "x")])
    assert found[0] == found[1]


def test_edges_are_paid_for_where_nobody_declared_bounds() -> None:
    """A fifth of the first budget finds bounds, for all questions to come; edges lie evenly between them."""
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(2))
    curator.protect(ROWS, name="t", budget=Budget(epsilon=100))
    asked = "SELECT HISTOGRAM(w, 5) AS h FROM t WHERE w >= 10"
    assert any(
        "Bounds of w will be chosen privately for epsilon 4" in note
        for note in curator.explain(asked, epsilon=20).notes
    )
    assert len(curator.rehearse(asked)) >= 1  # those of imagined bounds that reach ten
    first = curator.ask(asked, epsilon=20)
    assert getattr(first.cost, "epsilon", None) == 20
    assert [row["low"] for row in first] == [64 * i / 5 for i in range(5)]
    assert [row["high"] for row in first] == [64 * i / 5 for i in range(1, 6)]
    values = [value for value in ROWS["w"].to_list() if value >= 10]
    known = [sum(row["low"] <= value < row["high"] for value in values) for row in first]
    assert all(row["h_low"] <= n <= row["h_high"] for row, n in zip(first, known, strict=True))
    again = curator.ask(asked, epsilon=10)
    assert again.replayed
    assert again.records == first.records
    finer = curator.ask("SELECT HISTOGRAM(w, 4) AS h FROM t", epsilon=1)
    assert [row["high"] for row in finer] == [16, 32, 48, 64]
    assert not any("will be chosen" in note for note in curator.explain("SELECT AVG(w) AS m FROM t", epsilon=1).notes)


def test_what_was_released_between_chosen_edges_is_never_taken_for_other_bands() -> None:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(2))
    curator.protect(
        ROWS.to_dicts(), name="t", types={"k": "int", "x": "float", "w": "float"}, budget=Budget(epsilon=100)
    )
    asked = "SELECT HISTOGRAM(w, 2) AS h FROM t"
    curator.ask(asked, epsilon=20)
    plan = parse("SELECT HISTOGRAM(w, 0, 32, 64) AS h FROM t", {"t": curator.table("t").schema})
    assert not curator.ask(replace(plan, where=None), epsilon=1).replayed
    assert curator.explain(asked, epsilon=20).free is not None


def test_limits_are_not_chosen_for_bands_that_are_still_to_be_found() -> None:
    curator = clinic(Budget(epsilon=9), bounds={})
    with pytest.raises(UnsupportedQuery, match="before the edges"):
        curator.ask("SELECT HISTOGRAM(age, 5) AS n FROM visits", epsilon=1, limits="choose")
    assert len(curator.ask("SELECT HISTOGRAM(age, 0, 40, 80) AS n FROM visits", epsilon=1, limits="choose")) == 2
    found = curator.ask("SELECT HISTOGRAM(age, 5) AS n FROM visits", epsilon=1, limits=Limits(2, 2))
    assert len(found) in {3, 5}  # of five bands from -1 to 1, where nothing was found, those with a whole number


def test_without_bounds_the_parser_proposes_edges() -> None:
    declared = schema(unit="patient", limits=Limits(), neighbours=Neighbours.ADD_REMOVE)
    bare = replace(declared, columns={name: replace(c, bounds=None) for name, c in declared.columns.items()})
    with pytest.raises(UnsupportedQuery, match="need bounds") as refused:
        parse("SELECT HISTOGRAM(age, 5) AS h FROM visits", {"visits": bare})
    _, proposed, *_ = refused.value.hint.split("`")
    assert len(parse(proposed, {"visits": bare}).outputs) == 3
