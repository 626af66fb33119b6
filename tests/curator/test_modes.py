"""MODE as a question: equal on all engines, the mode of plain SQL with much budget, replayed, explained, refused."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import duckdb
import polars as pl
import pytest

from discreet import mode
from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.errors import UnsupportedQuery
from discreet.measurement.program.execution import run
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget
from tests.curator.clinic import TYPES, Row, visits
from tests.curator.spies import Spy, clinic
from tests.curator.test_neighbours import schema
from tests.measurement.test_mode_laws import ADD, BY_WARD, QUESTIONS, plan

# ------------------------------------------------------------------------------------------------- answers and engines


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    kinds = {"patient": pl.Int64, "ward": pl.String, "age": pl.Int64, "charge": pl.Float64, "kind": pl.String}
    return pl.DataFrame(rows, schema=kinds)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("unit", [None, "patient"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_engines_release_the_same_with_the_same_bits(sql: str, unit: str | None) -> None:
    rows = visits(3, patients=150)
    program = plan(sql, schema(unit=unit, limits=Limits(2, 2) if unit else Limits(), neighbours=ADD), "1e-4", "8")
    found = []
    for engine, source in ((Memory(), rows), (DuckDB(threads=2), frame(rows))):
        engine.register("visits", source, TYPES)
        released = run(program, engine, Releaser(SeededBits(9)))
        found.append((released.keys, released.noisy.tolist(), released.rows(Fraction(9, 10))))
    assert found[0] == found[1]


@pytest.mark.ci
def test_with_much_budget_it_is_the_mode_of_plain_sql() -> None:
    count = 3001
    rows = pl.DataFrame(
        {
            "g": [i % 4 for i in range(count)],
            "t": ["blue" if not i % 7 else ["red", "green", "grey", None][i * i * i % 4] for i in range(count)],
            "k": [(i * i) % 97 for i in range(count)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=(i * i * 31) % 887) for i in range(count)],
            "b": [i % 5 < 2 for i in range(count)],
            "x": [(i * i % 211) / 8 for i in range(count)],
        }
    )
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(17))
    curator.protect(
        rows,
        name="t",
        budget=Budget(epsilon=10**12, delta="1e-2"),
        bounds={"k": (0, 1000), "x": (0, 100), "day": ("2024-01-01", "2027-01-01")},
        keys={"g": [0, 1, 2, 3], "t": ["blue", "green", "grey", "red"]},
    )
    plain = duckdb.connect()
    plain.register("t", rows)
    compared = 0
    for value in ("t", "k", "day", "b", "FLOOR(x)", "CASE WHEN k < 50 THEN t ELSE 'red' END"):
        for where in ("", "WHERE k > 20"):
            answer = curator.ask(f"SELECT g, MODE({value}) AS m FROM t {where} GROUP BY g", epsilon=10**9, delta=0)
            for row in answer:
                known = plain.execute(
                    f"""SELECT {value} AS v, COUNT(*) AS n FROM t {where or "WHERE TRUE"} AND g = {row["g"]}
                    AND ({value}) IS NOT NULL GROUP BY 1 ORDER BY n DESC"""
                ).fetchall()
                best = [v for v, n in known if n == known[0][1]]
                assert row["m"] in best
                compared += len(best) == 1
    assert compared > 20  # so many have a single mode, which is the answer


def test_a_mode_is_a_column_without_an_interval() -> None:
    curator = clinic(Budget(epsilon=100))
    answer = curator.ask(
        "SELECT ward, MODE(age) AS m, MODE(age) + 1 AS more, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=50
    )
    assert answer.columns == ("ward", "m", "more", "n", "n_low", "n_high")
    assert all(row["more"] == row["m"] + 1 for row in answer)
    assert {row["m"] for row in answer} <= {5, 44, 67}
    assert any("MODE is drawn among 121 public values" in note for note in answer.notes)
    both = curator.ask("SELECT ward, MODE(age) + COUNT(*) AS s FROM visits GROUP BY ward", epsilon=50)
    assert both.columns == ("ward", "s", "s_low", "s_high")
    assert "s_low" in both._repr_html_() or "interval" in both._repr_html_()


def test_groups_by_their_modes() -> None:
    """A mode is a released value: it sorts, filters and groups what was released."""
    curator = clinic(Budget(epsilon=100))
    first = curator.ask(BY_WARD, epsilon=10)
    found = Counter(row["m"] for row in first)
    answer = curator.ask(f"SELECT m, COUNT(*) AS n FROM ({BY_WARD}) AS w GROUP BY m ORDER BY m", epsilon=10)
    assert answer.replayed
    assert answer.columns == ("m", "n")
    assert {row["m"]: row["n"] for row in answer} == dict(found)
    commonest = max(found, key=lambda value: found[value])
    kept = curator.ask(f"{BY_WARD} HAVING MODE(age) = {commonest} ORDER BY m, ward", epsilon=10)
    assert kept.replayed
    assert len(kept) == found[commonest]


def test_an_empty_group_has_any_of_the_values() -> None:
    """200 draws among three: each is missed with a probability of (2/3)^200."""
    rows = pl.DataFrame({"g": [0], "t": ["a"]})
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(3))
    curator.protect(
        rows.to_dicts(),
        name="t",
        types={"g": "int", "t": "text"},
        budget=Budget(epsilon=10),
        keys={"g": list(range(201)), "t": ["a", "b", "c"]},
    )
    answer = curator.ask("SELECT g, MODE(t) AS m FROM t GROUP BY g", epsilon=1)
    assert {row["m"] for row in answer if row["g"]} == {"a", "b", "c"}


# --------------------------------------------------------------------------------------------------- the curator around


def test_replayed_in_another_order_and_at_a_smaller_price() -> None:
    curator = clinic(Budget(epsilon=4))
    first = curator.ask("SELECT ward, MODE(age) AS m, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=2)
    again = curator.ask(
        "SELECT COUNT(*) AS n, MODE() WITHIN GROUP (ORDER BY age) AS m, ward FROM visits GROUP BY 3 ORDER BY 3 DESC",
        epsilon=1,
    )
    assert again.replayed
    assert [(row["ward"], row["m"]) for row in again] == [(row["ward"], row["m"]) for row in reversed(list(first))]
    assert curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon="0.5").replayed
    assert not curator.ask("SELECT ward, MODE(age) AS m FROM visits GROUP BY ward", epsilon="0.5").replayed


def test_a_stored_release_comes_back_from_the_file(tmp_path: Any) -> None:
    asked = "SELECT ward, MODE(age) AS m, MEDIAN(charge) AS h, COUNT(*) AS n FROM visits GROUP BY ward"
    ledger = str(tmp_path / "ledger")
    with clinic(Budget(epsilon=4), ledger=ledger) as curator:
        first = curator.ask(asked, epsilon=1)
    with clinic(Budget(epsilon=4), ledger=ledger) as curator:
        again = curator.ask(asked, epsilon=1)
    assert again.replayed
    assert again.records == first.records


def test_how_often_data_are_read() -> None:
    for sql, reads in (
        ("SELECT MODE(age) AS m FROM visits", 1),
        ("SELECT MODE(age) AS m, MODE(ward) AS w FROM visits WHERE ward = 'no such ward'", 2),
        ("SELECT ward, MODE(age) AS m, MEDIAN(age) AS a, COUNT(*) AS n FROM visits GROUP BY ward", 3),
    ):
        spy = Spy()
        clinic(engine=spy).ask(sql, epsilon=1)
        assert spy.reads == reads, sql


def test_private_keys_show_modes_of_shown_groups_only() -> None:
    curator = clinic(Budget(epsilon=10**6, delta="1e-2"))
    answer = curator.ask("SELECT kind, MODE(ward) AS m FROM visits GROUP BY kind", epsilon=10**4, delta="1e-3")
    assert {row["kind"] for row in answer} == {"check", "fever", "fracture", "other"}
    assert {row["m"] for row in answer} <= {"A", "B", "C"}


def test_the_fluent_front_asks_the_same() -> None:
    curator = clinic(Budget(epsilon=4))
    first = curator.table("visits").group_by("ward").agg(m=mode("age")).ask(epsilon=1)
    again = curator.ask(BY_WARD, epsilon=1)
    assert again.replayed
    assert again.records == first.records


def test_explained_and_rehearsed() -> None:
    curator = clinic(Budget(epsilon=4, delta="1e-6"))
    explained = curator.explain(BY_WARD, epsilon=1)
    assert re.search(r"exponential mechanism, within \d+ rows of the most frequent value", str(explained))
    assert explained.errors == {}
    made_up = curator.rehearse(BY_WARD)
    assert made_up.columns == ("ward", "m")
    assert len(curator.rehearse("SELECT kind, MODE(ward) AS m FROM visits GROUP BY kind", epsilon="0.1")) > 0


def test_an_error_is_not_promised_beforehand() -> None:
    with pytest.raises(UnsupportedQuery, match="mode"):
        clinic().ask("SELECT MODE(age) AS m FROM visits", within=5, max_epsilon=1)


@pytest.mark.parametrize("epsilon", ["1e-12", "1e12"])
def test_tiny_and_huge_budgets(epsilon: str) -> None:
    answer = clinic(Budget(epsilon="1e13")).ask(BY_WARD, epsilon=epsilon)
    assert len(answer) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MODE(kind) AS m, COUNT(*) AS n FROM visits",
        "SELECT ward, MODE(charge) AS m FROM visits GROUP BY ward",
        "SELECT MODE(patient) AS m FROM visits",
        "SELECT MODE(UPPER(kind)) || '' AS m FROM visits",
        "SELECT MODE(v.kind) AS m FROM visits AS v HAVING COUNT(*) > 3",
        "SELECT ward, MODE(age + 1000 * CAST(charge AS INT)) AS m FROM visits GROUP BY ROLLUP (ward)",
        "SELECT MODE(DISTINCT age) AS m FROM visits",
        "SELECT MODE() AS m FROM visits",
        "SELECT MODE(NULL) AS m FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE age = MODE(age)",
        "SELECT AVG(m) AS a FROM (SELECT patient, MODE(age) AS m FROM visits GROUP BY patient) AS t",
    ],
)
def test_refusals_propose_what_is_accepted(sql: str) -> None:
    curator = clinic(Budget(epsilon=4, delta="1e-3"))
    with pytest.raises(UnsupportedQuery) as refused:
        curator.ask(sql, epsilon=1)
    proposed = re.findall(r"`([^`]+)`", refused.value.hint)
    assert proposed
    for question in proposed:
        curator.explain(question, epsilon=1, delta="1e-4")


# ---------------------------------------------------------------------------------------------------- of private values
WRITTEN_OUT = {
    "SELECT MODE(kind) AS m FROM visits": (
        "SELECT kind AS m FROM visits WHERE kind IS NOT NULL GROUP BY kind ORDER BY COUNT(*) DESC LIMIT 1"
    ),
    "SELECT MODE() WITHIN GROUP (ORDER BY UPPER(v.kind)) FROM visits AS v WHERE v.age > 30": (
        "SELECT UPPER(kind) AS mode_upper_kind FROM visits WHERE age > 30 AND UPPER(kind) IS NOT NULL GROUP BY 1 "
        "ORDER BY COUNT(*) DESC LIMIT 1"
    ),
    **{
        f"SELECT ward AS w, MODE(kind) AS m FROM visits GROUP BY {key} ORDER BY w": (
            "SELECT ward AS w, kind AS m FROM visits WHERE kind IS NOT NULL GROUP BY ward, kind "
            "QUALIFY ROW_NUMBER() OVER (PARTITION BY ward ORDER BY COUNT(*) DESC) = 1 ORDER BY w"
        )
        for key in ("ward", "1", "w", "ALL")
    },
}


def test_the_mode_of_private_values_is_the_largest_of_their_groups() -> None:
    """The same plan as that of the groups, the same release, and the truth with much budget."""
    curator = clinic(Budget(epsilon=10**5, delta="1e-2"))
    for short, written in WRITTEN_OUT.items():
        first = curator.ask(written, epsilon=1000, delta="1e-4")
        again = curator.ask(short, epsilon=1000, delta="1e-4")
        assert again.replayed, short
        assert again.records == first.records, short
        assert len(again) >= (3 if "ward" in short else 1)
    with pytest.raises(UnsupportedQuery) as refused:
        clinic(Budget(epsilon=10)).ask("SELECT MODE(kind) AS m FROM visits", epsilon=1)
    assert "delta" in str(refused.value)
    assert clinic().explain("SELECT MODE(ward) AS m FROM visits", epsilon=1).program.selection is None
