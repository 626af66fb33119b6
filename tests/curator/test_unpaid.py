"""Information nobody paid for, and the rule for each piece of it that concerns declarations."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.errors import AccountLocked, InvalidParameter, QueryFailed
from discreet.ledger import FAILURE_CREDITS
from discreet.noise import SecureBits, SeededBits
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget
from tests.curator.clinic import visits
from tests.curator.spies import COUNT, OPTIONS, Broken, Spy, clinic, filtered

LARGE = Budget(epsilon=10**12)
CERTAIN = 10**6  # an epsilon at which noise is zero, but for a chance of e^(-10^6)


# ---------------------------------------------------------------------------------------------------------------- types


def proposed(source: Any, engine: Any) -> str:
    """The line that a refusal proposes."""
    with Curator(engine=engine) as curator:
        with pytest.raises(InvalidParameter) as refused:
            curator.protect(source, name="visits", budget=Budget(epsilon=1))
        assert (refused.value.name, curator.accounts()) == ("types", ())
    return refused.value.hint.split("correct: ")[1]


def test_types_of_csv_are_declared_and_proposed_from_the_header_alone(tmp_path: Path) -> None:
    line = 'types={"id": "text", "age": "text"}'
    for content in ("id,age\n1,40\n", "id,age\n", "id,age\nx,y\nz,\n"):
        (tmp_path / "visits.csv").write_text(content)
        assert proposed(tmp_path / "visits.csv", DuckDB()) == line
    curator = Curator(engine=DuckDB())
    types = ast.literal_eval(line.removeprefix("types="))
    curator.protect(tmp_path / "visits.csv", name="visits", budget=Budget(epsilon=1), types=types)
    curator.ask("SELECT COUNT(age) AS n FROM visits", epsilon=1)


def test_types_of_python_objects_are_declared() -> None:
    frame = pd.DataFrame({"age": [1, 2], "ward": pd.Series(["A", 7], dtype=object)})
    assert proposed(frame, DuckDB()) == 'types={"ward": "text"}'
    assert proposed([{"age": 1, "ward": "A"}], Memory()) == 'types={"age": "text", "ward": "text"}'


def test_types_that_a_format_carries_need_no_word(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1, 2, 3], "height": [1.5, 1.6, 1.7]})
    frame.to_parquet(tmp_path / "visits.parquet")
    for source in (frame, tmp_path / "visits.parquet"):
        curator = Curator(engine=DuckDB())
        curator.protect(source, name="visits", budget=LARGE)
        assert curator.ask(COUNT, epsilon=CERTAIN)[0]["n"] == 3


def test_a_value_that_does_not_fit_its_type_is_missing_and_no_error() -> None:
    curator = Curator(engine=Memory())
    rows = [{"age": "40"}, {"age": "forty"}, {"age": ""}, {"age": None}, {"age": " 7 "}]
    curator.protect(rows, name="visits", types={"age": "int"}, budget=LARGE)
    assert curator.ask("SELECT COUNT(age) AS n FROM visits", epsilon=CERTAIN)[0]["n"] == 2


def test_bounds_and_keys_are_never_proposed_from_data() -> None:
    """Every refusal about a table of secrets says the same as about an empty one."""
    secrets = [{"patient": 4711, "ward": "Sanatorium", "age": 103, "charge": 98765.5, "kind": "Geheim"}]

    def told(rows: list[dict[str, Any]]) -> list[str]:
        curator, words = Curator(engine=Memory()), []
        bare = {"types": OPTIONS["types"], "unit": "patient", "budget": Budget(epsilon=1)}
        wrong: list[dict[str, Any]] = [{"bounds": {"age": (5, 5)}}, {"keys": {"ward": []}}, {"unit": "x"}]
        for declared in wrong:
            with pytest.raises(InvalidParameter) as refused:
                curator.protect(rows, name="visits", **({"max_rows": 1, **bare | declared}))
            words.append(str(refused.value))
        curator.protect(rows, name="visits", **{"max_rows": 1, **bare})
        for sql in ("SELECT AVG(1 / charge) AS a FROM visits", "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"):
            with pytest.raises(Exception) as asked:  # noqa: PT011 - whatever it is, its text is compared
                curator.ask(sql, epsilon=0.1)
            words.append(str(asked.value))
        return [*words, str(curator.explain("SELECT AVG(age) AS a FROM visits", epsilon=0.1))]

    assert told(secrets) == told([])


# ---------------------------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_ids_are_compared_after_one_normalisation_and_null_is_nobody(engine: str) -> None:
    ids = ["7", " 7 ", "7  ", None, "", "  ", "8"]
    source: Any = [{"who": who, "age": 40} for who in ids]
    if engine == "duckdb":
        source = pd.DataFrame({"who": pd.Series(ids, dtype="string"), "age": [40] * len(ids)})
    curator = Curator(engine=Memory() if engine == "memory" else DuckDB())
    curator.protect(source, name="visits", unit="who", max_rows=1, types={"who": "text", "age": "int"}, budget=LARGE)
    assert curator.ask(COUNT, epsilon=CERTAIN)[0]["n"] == 2  # people 7 and 8, one row each
    assert curator.ask("SELECT COUNT(DISTINCT who) AS n FROM visits", epsilon=CERTAIN)[0]["n"] == 2


def test_whole_ids_may_be_missing_too() -> None:
    rows = [{"who": who, "age": 40} for who in (7, 7, None, 8, None)]
    curator = Curator(engine=Memory())
    curator.protect(rows, name="visits", unit="who", max_rows=1, types={"who": "int", "age": "int"}, budget=LARGE)
    assert curator.ask(COUNT, epsilon=CERTAIN, limits=Limits(1, 5))[0]["n"] == 3


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("unit", "people"), [("who", "who"), (("who", "day"), "who and day"), (None, None)], ids=["one", "parts", "rows"]
)
def test_that_rows_of_nobody_are_left_out_is_told(unit: Any, people: str | None) -> None:
    curator = Curator(engine=Memory())
    types = {"who": "text", "day": "int", "age": "int"}
    curator.protect([], name="visits", unit=unit, max_rows=1, types=types, budget=LARGE, bounds={"age": (0, 120)})
    told = () if people is None else (f"Rows without {people} (NULL or blank) are not counted.",)
    for sql in (COUNT, "SELECT AVG(age) AS a FROM visits WHERE day > 3", "SELECT MEDIAN(age) AS m FROM visits"):
        for notes in (curator.ask(sql, epsilon=1).notes, curator.ask(sql, epsilon=1).notes):  # the second is a replay
            assert tuple(note for note in notes if "NULL or blank" in note) == told
        assert tuple(note for note in curator.explain(sql, epsilon=2).notes if "NULL or blank" in note) == told
        assert tuple(note for note in curator.rehearse(sql).notes if "NULL or blank" in note) == told


def test_that_rows_whose_way_leads_to_nobody_are_left_out_is_told() -> None:
    curator = Curator(engine=Memory())
    curator.protect(
        [], name="orders", unit="customer", max_rows=1, types={"id": "int", "customer": "text"}, budget=LARGE
    )
    curator.protect([], name="items", unit="order -> orders.id", max_rows=1, types={"order": "int"})
    assert (
        "Rows without customer (NULL or blank) are not counted."
        in curator.ask("SELECT COUNT(*) AS n FROM items", epsilon=1).notes
    )


def test_ids_that_are_floats_are_refused() -> None:
    curator = Curator(engine=Memory())
    with pytest.raises(InvalidParameter) as refused:
        curator.protect([], name="visits", unit="who", max_rows=1, types={"who": "float"}, budget=LARGE)
    assert (refused.value.name, curator.accounts()) == ("unit", ())


# --------------------------------------------------------------------------------------------------------------- limits


def test_limits_are_constants_that_are_told() -> None:
    curator = clinic(LARGE, max_groups=1, max_rows=1)
    assert curator.ask(COUNT, epsilon=1).notes[0].startswith("At most 1 row per patient")
    for rows in (visits(1, patients=5), []):  # other data, the same limits
        other = Curator(engine=Memory())
        other.protect(rows, name="visits", budget=LARGE, **(OPTIONS | {"max_groups": 1, "max_rows": 1}))
        assert other.ask(COUNT, epsilon=1).notes == curator.ask(COUNT, epsilon=1).notes
        assert other.explain(COUNT, epsilon=1).event == curator.explain(COUNT, epsilon=1).event


# --------------------------------------------------------------------------------------------------------------- replay


def test_replay_follows_the_declared_version_and_not_the_content(tmp_path: Path) -> None:
    curator = Curator(tmp_path / "book", engine=Memory())

    def count(rows: int, version: str) -> tuple[int, bool]:
        source = [{"age": 40} for _ in range(rows)]
        curator.protect(source, name="visits", types={"age": "int"}, budget=LARGE, version=version)
        answer = curator.ask(COUNT, epsilon=CERTAIN)
        return answer[0]["n"], answer.replayed

    assert count(10, "2026-11") == (10, False)
    assert count(99, "2026-11") == (10, True)  # whatever is in the table now: the same version, the same answer
    assert count(99, "2026-12") == (99, False)
    assert count(5, "2026-11") == (10, True)


# -------------------------------------------------------------------------------------------------------------- failure


class Hungry(Spy):
    """Runs out of memory, out of time, or into a mistake of ours, as asked."""

    error: Exception = MemoryError("p7 is 41 years old")

    def __init__(self) -> None:
        super().__init__()

        def fail() -> None:
            raise self.error

        self.before = fail


@pytest.mark.parametrize(
    "error", [MemoryError("p7"), TimeoutError("p7"), ValueError("p7"), InvalidParameter("p", 7, "")]
)
def test_every_failure_is_one_fixed_message_a_charge_and_a_credit(error: Exception) -> None:
    engine = Hungry()
    engine.error = error
    curator = clinic(Budget(epsilon=1), engine=engine)
    with pytest.raises(QueryFailed) as failed:
        curator.ask(COUNT, epsilon=0.25)
    assert str(failed.value) == str(QueryFailed())
    assert failed.value.__cause__ is failed.value.__context__ is None
    balance = curator.budget("visits")
    assert (str(balance.remaining.loss), balance.failures) == ("epsilon=0.75", 1)


def test_three_failures_lock_until_a_steward_acts() -> None:
    curator = clinic(Budget(epsilon=1), engine=Broken())
    for age in range(FAILURE_CREDITS):
        with pytest.raises(QueryFailed):
            curator.ask(filtered(age), epsilon=0.125)
    with pytest.raises(AccountLocked):
        curator.ask(COUNT, epsilon=0.125)
    assert str(curator.budget("visits").spent) == "epsilon=0.375"
    curator.unlock("visits", note="the disk was full")
    with pytest.raises(QueryFailed):
        curator.ask(COUNT, epsilon=0.125)


# ----------------------------------------------------------------------------------------------------------- randomness


def test_seeded_noise_needs_a_curator_for_tests() -> None:
    with pytest.raises(TypeError):
        Curator(engine=Memory(), bits=SeededBits(1))  # type: ignore[call-arg]
    assert isinstance(Curator(engine=Memory())._releaser.bits, SecureBits)
    assert not clinic(Budget(epsilon=1)).ask(COUNT, epsilon=0.1).private


# --------------------------------------------------------------------------------------------------------- declarations


def test_declaring_is_idempotent_and_reads_nothing(tmp_path: Path) -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), ledger=str(tmp_path / "book"), engine=spy)
    before = curator.verify()
    for _ in range(3):
        clinic(Budget(epsilon=1), ledger=str(tmp_path / "book"), engine=spy)
    assert (curator.verify(), spy.reads) == (before, 0)


def test_a_refused_declaration_leaves_the_table_as_it_was() -> None:
    curator = Curator(engine=Memory())
    types = {"age": "int"}
    curator.protect([{"age": 1}] * 3, name="visits", types=types, budget=LARGE)
    with pytest.raises(InvalidParameter):
        curator.protect([{"age": 1}] * 99, name="visits", types=types, bounds={"age": (0, 9)}, budget=LARGE)
    assert curator.ask(COUNT, epsilon=CERTAIN)[0]["n"] == 3
