"""Profiles under the ledger: paid once, kept, found again, and what answers say because of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import InsufficientBudget, InvalidParameter, KeyConflict, UnknownTable
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.plan.model.unit_ids import WHITE_SPACE
from discreet.privacy import Budget, events
from tests.curator.clinic import DECLARED, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"


class Stopping(Memory):
    """An engine whose reader is stopped with Ctrl-C at some read."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def read(self, reading: Reading) -> ExactGroups:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().read(reading)


def clinic(
    ledger: str | Path = ":memory:", *, engine: Memory | None = None, bits: SeededBits | None = None, **declared: Any
) -> Curator:
    curator = Curator.for_tests(ledger, engine=engine or Memory(), bits=bits or SeededBits(1))
    given = {"unit": "patient", "budget": Budget(epsilon=100), "max_rows": 2, **DECLARED, **declared}
    curator.protect(visits(3, patients=60, most=9), name="visits", **given)
    return curator


class Remembering(Memory):
    """An engine that reads everything once."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[Reading, ExactGroups] = {}

    def read(self, reading: Reading) -> ExactGroups:
        if reading not in self.kept:
            self.kept[reading] = super().read(reading)
        return self.kept[reading]


def clinics(folder: Path, seeds: range, **declared: Any) -> Iterator[Curator]:
    """Curators of copies of one account, which keep the same rows of everybody: they differ in their noise alone."""
    opened, engine = folder / "opened.db", Remembering()
    clinic(opened, **declared).close()
    for seed in seeds:
        copied = folder / f"{seed}.db"
        copied.write_bytes(opened.read_bytes())
        yield clinic(copied, engine=engine, bits=SeededBits(seed), **declared)


@pytest.mark.ci
def test_a_profile_is_paid_once_and_kept() -> None:
    curator = clinic()
    bought = curator.profile("visits", epsilon=5)
    assert str(curator.budget("visits").spent) == "epsilon=5"
    assert str(curator.profile("visits", epsilon=2)) == str(bought)
    assert str(curator.budget("visits").spent) == "epsilon=5"
    assert curator.profile("visits", epsilon=6).epsilon == 6
    assert str(curator.budget("visits").spent) == "epsilon=11"
    curator.verify()


def test_a_key_charges_once() -> None:
    curator = clinic()
    first, again = (curator.profile("visits", epsilon=1, key="mine") for _ in range(2))
    assert str(first) == str(again)
    assert str(curator.budget("visits").spent) == "epsilon=1"


def test_answers_say_what_they_leave_out_from_then_on() -> None:
    curator = clinic()
    before = curator.ask(COUNT, epsilon=1)
    assert before.coverage is None
    assert before.scope == "what was counted"
    curator.profile("visits", epsilon=20)
    after = curator.ask(COUNT, epsilon=1)
    assert after.replayed
    assert after.coverage is not None
    rows = visits(3, patients=60, most=9)
    people: dict[int, int] = {}
    for row in rows:
        people[row["patient"]] = people.get(row["patient"], 0) + 1
    truth = sum(max(0, n - 2) for n in people.values()) / len(rows)
    found = after.coverage["n"]
    assert found.low <= truth <= found.high
    assert found.share == pytest.approx(truth, abs=0.1)
    assert "Coverage of n" in str(after)
    assert "left out" in after._repr_html_()


def test_a_filter_leaves_a_number_and_no_share() -> None:
    curator = clinic(most_rows=9)
    curator.profile("visits", epsilon=20)
    found = curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 50", epsilon=1).coverage
    assert found is not None
    assert found["n"].share is None
    assert 0 < found["n"].rows.high < 400


def test_of_joined_rows_and_other_keys_nothing_is_known() -> None:
    curator = clinic(budget=Budget(epsilon=100, delta=1e-3))
    curator.profile("visits", epsilon=20)
    for sql in (
        "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind",
        "SELECT COUNT(*) AS n FROM (SELECT patient, SUM(charge) AS c FROM visits GROUP BY patient)",
    ):
        assert curator.ask(sql, epsilon=1).coverage is None


def test_groups_and_values_are_told() -> None:
    curator = clinic(max_groups=2, most_rows=9)
    curator.profile("visits", epsilon=50)
    answer = curator.ask("SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward", epsilon=1)
    assert answer.coverage is not None
    assert answer.coverage["age"].clipped is not None
    assert answer.coverage["n"].clipped is None
    assert 0 <= answer.coverage["n"].low <= answer.coverage["n"].high <= 1


def test_another_version_of_the_data_has_no_profile() -> None:
    curator = clinic()
    curator.profile("visits", epsilon=5)
    rows = visits(4)
    curator.protect(rows, name="visits", unit="patient", max_rows=2, version="next", **DECLARED)
    assert curator.ask(COUNT, epsilon=1).coverage is None


def test_a_question_buys_both_or_nothing() -> None:
    curator = clinic(budget=Budget(epsilon=1))
    with pytest.raises(InsufficientBudget):
        curator.ask(COUNT, epsilon=0.7, profile=0.5)
    assert str(curator.budget("visits").spent) == "epsilon=0"
    answer = curator.ask(COUNT, epsilon=0.5, profile=0.5)
    assert answer.coverage is not None
    assert str(answer.cost.details) == "epsilon=1"
    assert str(curator.budget("visits").remaining.loss) == "epsilon=0"
    paid = [entry for entry in curator.history("visits") if entry.kind == "charge" and "beside" not in entry.content]
    assert len(paid) == 1
    assert paid[0].content["event"] == events.to_json(answer.event)
    curator.verify()


def test_a_profile_is_bought_alone_for_an_answer_that_is_kept() -> None:
    curator = clinic()
    first = curator.ask(COUNT, epsilon=1)
    again = curator.ask(COUNT, epsilon=1, profile=2)
    assert (again.replayed, again.records) == (True, first.records)
    assert again.coverage is not None
    assert str(curator.budget("visits").spent) == "epsilon=3"
    curator.ask(f"{COUNT} WHERE age > 3", epsilon=1, profile=2)
    assert str(curator.budget("visits").spent) == "epsilon=4"


@pytest.mark.ci
@pytest.mark.parametrize("option", ["profile", "coverage"])
def test_a_charge_of_both_that_was_stopped_is_run_again_for_what_it_was_made_for(tmp_path: Path, option: str) -> None:
    """Wherever it stops: before the profile, between the two, and after."""
    wanted: dict[str, Any] = {"epsilon": 1, "key": "mine", option: "0.25"}
    for reads in range(1, 4):
        ledger = tmp_path / f"{reads}.db"
        with pytest.raises(KeyboardInterrupt):
            clinic(ledger, engine=Stopping(reads)).ask(COUNT, **wanted)
        curator = clinic(ledger)
        answer = curator.ask(COUNT, **wanted)
        assert answer.coverage is not None
        assert curator.ask(COUNT, **wanted).records == answer.records
        assert str(curator.budget("visits").spent) == f"epsilon={1.25 if option == 'profile' else 1:g}"
        with pytest.raises(KeyConflict):
            curator.ask(COUNT, **{**wanted, option: "0.5"})
        curator.verify()


FILTERED = f"{COUNT} WHERE age > 30"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 10 GROUP BY ward"
JOINED = "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.patient = b.patient AND a.ward = b.ward"


def truly_left(kept: Sequence[dict[str, Any]], groups: int, key: str | None) -> float:
    """The share of rows beyond two of a person, or of a person and a group."""
    by = Counter((row["patient"], row[key] if key else 0) for row in kept)
    if key is None:
        return sum(max(0, n - 2) for n in by.values()) / len(kept)
    assert groups >= len({row[key] for row in kept})
    return sum(max(0, n - 2) for n in by.values()) / len(kept)


@pytest.mark.ci
def test_coverage_of_a_question_of_its_own(tmp_path: Path) -> None:
    """Of 24 answers at most 7 may miss: more has a chance below 1e-4 if each does with 1/20."""
    rows = visits(3, patients=60, most=9)
    asked = {
        FILTERED: ([row for row in rows if row["age"] is not None and row["age"] > 30], None),
        BY_WARD: ([row for row in rows if row["age"] is not None and row["age"] > 10], "ward"),
    }
    misses = 0
    truths = {}
    for sql, (kept, key) in asked.items():
        of_people = [row for row in kept if row["patient"] is not None]
        without_id = len(kept) - len(of_people)
        truths[sql] = (truly_left(of_people, 9, key) * len(of_people) + without_id) / len(kept)
    for curator in clinics(tmp_path, range(12), max_groups=9, most_rows=9):
        for sql, truth in truths.items():
            found = (curator.ask(sql, epsilon=20, coverage="0.8").coverage or {})["n"]
            assert found.share is not None
            misses += not found.low <= truth <= found.high
            assert found.high - found.low < 0.8
    assert misses <= 7


def test_coverage_is_a_part_of_the_epsilon_and_is_kept() -> None:
    curator = clinic()
    answer = curator.ask(JOINED, epsilon=4, coverage="0.5")
    assert answer.coverage is not None
    assert str(curator.budget("visits").spent) == "epsilon=4"
    again = curator.ask(JOINED, epsilon=2)
    assert (again.replayed, again.coverage) == (True, answer.coverage)
    assert curator.ask(f"{COUNT} WHERE age > 3", epsilon=1).coverage is None
    for wrong in ({"coverage": 1}, {"coverage": "0.5", "profile": 1}, {"coverage": "0.5", "limits": "choose"}):
        with pytest.raises(InvalidParameter, match="coverage"):
            curator.ask(FILTERED, epsilon=1, **wrong)
    with pytest.raises(InvalidParameter, match="coverage"):
        curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)", epsilon=1, coverage="0.5")


@pytest.mark.slow
def test_sums_and_means_of_the_whole_table(tmp_path: Path) -> None:
    """Of 40 numbers at most 9 may miss: more has a chance below 1e-4 if each does with 1/20."""
    rows = visits(3, patients=60, most=9)
    ages = [row["age"] for row in rows if row["age"] is not None]
    truths = {"SUM(age)": sum(ages), "AVG(age)": sum(ages) / len(ages)}
    misses = 0
    declared: dict[str, Any] = {"domain": {"age": (0, 300)}, "bounds": {**DECLARED["bounds"], "age": (0, 250)}}
    for curator in clinics(tmp_path, range(20), most_rows=9, max_rows=8, **declared):
        curator.profile("visits", epsilon=50)
        for sql, truth in truths.items():
            answer = curator.ask(f"SELECT {sql} AS x FROM visits", epsilon=10)
            assert answer.scope == "whole table"
            (record,) = answer
            misses += not record["x_low"] <= truth <= record["x_high"]
    assert misses <= 9
    assert curator.ask("SELECT SUM(charge) AS x FROM visits", epsilon=1).scope == "what was counted"
    few = clinic(most_rows=9, **declared)  # so much is left out that no such interval would tell anything
    few.profile("visits", epsilon=20)
    answer = few.ask("SELECT SUM(age) AS x FROM visits", epsilon=10)
    assert answer.scope == "what was counted"
    assert answer[0]["x_high"] - answer[0]["x_low"] < answer[0]["x"]


def test_bad_parameters_cost_nothing() -> None:
    curator = clinic()
    with pytest.raises(UnknownTable):
        curator.profile("nothing", epsilon=1)
    wrongs: list[dict[str, Any]] = [{"columns": ["no"]}, {"by": ["patient"]}, {"epsilon": 0}, {"by": [("ward", "no")]}]
    for wrong in wrongs:
        with pytest.raises(InvalidParameter):
            curator.profile("visits", **{"epsilon": 1, **wrong})
    assert str(curator.budget("visits").spent) == "epsilon=0"


def test_what_the_intervals_are_about() -> None:
    rows = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    domain = {"age": (0, 120)}
    rows.protect(visits(3), name="visits", budget=Budget(epsilon=100), domain=domain, **DECLARED)
    scopes = {
        "COUNT(*)": "whole table",
        "SUM(age)": "whole table",
        "AVG(age)": "whole table",
        "SUM(charge)": "what was counted",
        "MAX(age)": "what was counted",
        "COUNT(*) + SUM(age)": "whole table",
    }
    for sql, scope in scopes.items():
        assert rows.ask(f"SELECT {sql} AS x FROM visits WHERE kind = 'fever'", epsilon=1).scope == scope, sql
    people = clinic()
    assert people.ask("SELECT COUNT(DISTINCT patient) AS n FROM visits", epsilon=1).scope == "whole table"
    by_ward = "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ward"
    assert people.ask(by_ward, epsilon=1).scope == "what was counted"


def test_facts_change_no_declaration_and_no_number() -> None:
    plain, factual = clinic(), clinic(most_rows=9, domain={"age": (0, 120)})
    assert [entry.body for entry in plain.history("visits")][1] == [e.body for e in factual.history("visits")][1]
    assert plain.ask(COUNT, epsilon=1).records == factual.ask(COUNT, epsilon=1).records
    with pytest.raises(InvalidParameter, match="most_rows"):
        clinic(most_rows=0)
    with pytest.raises(InvalidParameter, match="domain"):
        clinic(domain={"ward": (0, 1)})


@pytest.mark.ci
def test_with_a_fact_a_count_is_of_the_whole_table(tmp_path: Path) -> None:
    """Of 20 curators at most 6 may miss: more has a chance below 1e-4 if each does with 1/20."""
    rows = visits(3, patients=60, most=9)
    misses = 0
    for curator in clinics(tmp_path, range(20), most_rows=9):
        answer = curator.ask(COUNT, epsilon=1, profile=8)
        assert answer.scope == "whole table"
        (record,) = answer
        assert record["n_low"] <= record["n"] <= record["n_high"]
        misses += not record["n_low"] <= len(rows) <= record["n_high"]
    assert misses <= 6
    assert any("bounds and missing ids leave out" in note for note in answer.notes)
    assert curator.ask(f"{COUNT} WHERE age > 3", epsilon=1).scope == "what was counted"


def test_columns_of_the_whole_table_are_named_where_others_are_not() -> None:
    rows = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    rows.protect(visits(3), name="visits", budget=Budget(epsilon=100), **DECLARED)
    answer = rows.ask("SELECT COUNT(*) AS n, SUM(age) AS s FROM visits", epsilon=1)
    for shown in (str(answer), answer._repr_html_()):
        assert "what was counted; of n: whole table" in shown
    assert answer.descriptions["n"].endswith("interval for the whole table")
    assert b"for what was counted" in answer.to_arrow().schema.field("s").metadata[b"description"]


def test_rows_without_an_id_are_counted_as_answers_leave_them_out() -> None:
    """Of 85 rows without an id, 5 have plain spaces: a tab or a wide space is nobody's id either."""
    blank = [None, "", " ", "  ", "   ", *[mark * n for mark in WHITE_SPACE if mark != " " for n in (1, 2, 3)], "\t "]
    blank += ["\u2000 \u2001"] * (85 - len(blank))
    curator = Curator.for_tests(":memory:", engine=Memory(), bits=SeededBits(1))
    rows = [{"who": who} for who in (*blank, *(f"p{place}\u3000" for place in range(30)))]
    curator.protect(rows, name="calls", unit="who", types={"who": "text"}, budget=Budget(epsilon=1000), max_rows=1)
    found = curator.profile("calls", epsilon=500)
    assert round(found.rows_without_id(Fraction(1, 20)).value) == len(blank) == 85
