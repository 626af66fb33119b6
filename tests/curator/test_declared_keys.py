"""Lists of declared keys, from two to a million: how they are written down, and what is worked out for them once."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.curator.catalog import declarations
from discreet.curator.catalog.declarations import declaration, declare, key_block
from discreet.curator.config.declared_changes import declared_changes
from discreet.curator.config.toml_file import load
from discreet.engines import Memory
from discreet.errors import DeclarationChanged, InvalidParameter, LedgerTampered
from discreet.ledger import Ledger
from discreet.ledger.redeclaration import LONGEST_LIST, keys_place, named_keys
from discreet.ledger.serialization import LONGEST_TEXT
from discreet.noise import SeededBits
from discreet.plan.model.nodes import Value
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.presentation.ledger_report.release_cards import stored_releases
from discreet.presentation.ledger_report.released_numbers import released_numbers
from discreet.presentation.ledger_view.ledger_history import read_history
from discreet.privacy import Neighbours
from tests.ledger.ledgers import tamper

LONG = [f"{number:03d}" + "x" * 100 for number in range(150)]
"""More characters than a declaration may have where `short` makes it shorter."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts an end to declarations after few characters."""
    monkeypatch.setattr(declarations, "LONGEST_TEXT", 10_000)


def table(keys: dict[str, Sequence[Value]], types: dict[str, Type] | None = None, **more: Any) -> TableSchema:
    types = types or dict.fromkeys(keys, Type.TEXT)
    told: dict[str, Any] = {"bounds": {}, "limits": Limits(), "neighbours": Neighbours.ADD_REMOVE, "version": ""}
    return declare("visits", types, keys=keys, **told | more)


# ------------------------------------------------------------------------------------------------- how it is written


def written_out(schema: TableSchema) -> str:
    """A declaration as it was always written."""
    columns = {
        column.name: {
            "type": column.type.value,
            "bounds": None if column.bounds is None else [str(column.bounds.low), str(column.bounds.high)],
            "keys": None if column.keys is None else [_plain(key) for key in column.keys],
        }
        for column in schema.stored_columns.values()
    }
    fields = {"columns": columns, "limits": [1, 1], "name": "visits", "unit": schema.unit}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _plain(key: Value) -> Any:
    return key.isoformat() if isinstance(key, dt.date) else key


TYPES = {"z": Type.TEXT, "a": Type.INT, "ü": Type.DATE, "b": Type.BOOL, "t": Type.TIMESTAMP, 'q"': Type.FLOAT}


def test_declarations_with_few_keys_are_written_as_always() -> None:
    keys: dict[str, Sequence[Value]] = {
        "z": ["b", "é", '"', "\u2028"],
        "a": [3, -1, 2**62],
        "ü": [dt.date(2026, 1, 31), dt.date(1, 1, 1)],
        "b": [True, False],
        "t": [dt.datetime(2026, 1, 1, 12, 30)],
    }
    schema = table(keys, TYPES, bounds={'q"': (Fraction(1, 3), 7), "a": (0, 9)}, unit="z")
    assert declaration(schema) == written_out(schema)
    assert declaration(table({}, TYPES)) == written_out(table({}, TYPES))


def test_a_list_is_written_out_while_the_declaration_is_short_enough() -> None:
    edge = len(written_out(table({"g": [""]}))) - len('""')
    fits = ["x" * (LONGEST_TEXT - edge - len('"",""') - 1), "y"]
    schema, longer = table({"g": fits}), table({"g": [fits[0], "yy"]})
    assert declaration(schema) == written_out(schema)
    assert len(declaration(schema)) == LONGEST_TEXT
    assert declaration(longer) != written_out(longer)
    assert len(declaration(longer)) < 200


@pytest.mark.usefixtures("short")
def test_a_digest_stands_for_each_long_list_and_for_no_short_one() -> None:
    short = ["s" * (LONGEST_LIST - len('[""]'))]
    schema = table({"g": LONG, "h": [*LONG, "one more"], "s": short, "t": [short[0] + "s"]})
    told = json.loads(declaration(schema))["columns"]
    assert told["s"]["keys"] == short
    assert told["t"]["keys"]["count"] == 1
    assert told["g"]["keys"]["count"] == 150
    for column in ("g", "h", "t"):
        block = key_block(schema, told[column]["keys"]["digest"])
        keys = schema.columns[column].keys
        assert keys is not None
        assert json.loads(block) == list(keys)
    assert named_keys(declaration(schema)).keys() == {told[column]["keys"]["digest"] for column in "ght"}
    with pytest.raises(KeyError):
        key_block(schema, "ab")


@pytest.mark.usefixtures("short")
def test_other_keys_or_another_order_have_another_digest() -> None:
    declared = {declaration(table({"g": keys})) for keys in (LONG, LONG[::-1], LONG[1:], [*LONG, "another"])}
    assert len(declared) == 4


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (Type.INT, [1, 2, None]),
        (Type.INT, [1, True]),
        (Type.INT, [1, 2**63]),
        (Type.INT, [1, "2"]),
        (Type.TEXT, ["a", "\ud800"]),
        (Type.TEXT, ["a", None]),
        (Type.DATE, [dt.date(2026, 1, 1), dt.datetime(2026, 1, 2)]),
        (Type.BOOL, [True, 0]),
        (Type.INT, [1, 2, 1]),
        (Type.INT, []),
    ],
)
def test_a_key_that_is_none_is_found_among_all(kind: Type, keys: list[Any]) -> None:
    with pytest.raises(InvalidParameter, match="keys"):
        table({"g": keys}, {"g": kind})


def test_keys_of_numpy_become_plain() -> None:
    found = table({"g": list(np.arange(3))}, {"g": Type.INT}).columns["g"].keys
    assert found == (0, 1, 2)
    assert {type(key) for key in found} == {int}


# --------------------------------------------------------------------------------------------------- through a ledger


COUNTS = "SELECT g, COUNT(*) AS n FROM visits GROUP BY g"


def opened(path: Path, keys: Sequence[str] = LONG, **more: Any) -> Curator:
    curator = Curator.for_tests(path, engine=Memory(), bits=SeededBits(7))
    rows = [{"g": key} for key in LONG[:5]]
    told: dict[str, Any] = {"types": {"g": "text"}, "keys": {"g": keys}, "budget": Budget(epsilon=9)}
    curator.protect(rows, name="visits", **told | more)
    return curator


@pytest.mark.usefixtures("short")
def test_a_table_with_long_lists_is_declared_asked_and_declared_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    curator = opened(path)
    answer = curator.ask(COUNTS, epsilon=1)
    assert [record["g"] for record in answer.records] == LONG
    before = curator._ledger.head()
    again = opened(path)
    assert again._ledger.head() == before
    assert again.ask(COUNTS, epsilon=1).records == answer.records  # the stored one
    assert again._ledger.head() == before
    again._ledger.verify()


@pytest.mark.usefixtures("short")
def test_other_keys_are_entered_by_a_steward_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    curator = opened(path)
    first = curator.ask(COUNTS, epsilon=1)
    with pytest.raises(DeclarationChanged, match="150 keys -> 149 keys"):
        opened(path, LONG[1:])
    changed = opened(path, LONG[1:], change=True)
    assert len(changed.ask(COUNTS, epsilon=1).records) == 149
    with pytest.raises(DeclarationChanged, match="150 keys -> 149 keys"):
        curator.ask(COUNTS, epsilon=1)  # it was opened before
    assert opened(path, change=True).ask(COUNTS, epsilon=1).records == first.records
    changed._ledger.verify()


@pytest.mark.usefixtures("short")
def test_a_changed_list_is_found_by_verifying(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    opened(path)._ledger.close()
    tamper(path, "UPDATE answers SET payload = CAST(replace(payload, '149x', '150x') AS BLOB)")
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered, match="list of keys was changed"):
        ledger.verify()


@pytest.mark.usefixtures("short")
def test_released_numbers_are_told_with_the_keys_of_the_ledger(tmp_path: Path) -> None:
    curator = opened(tmp_path / "ledger")
    answer = curator.ask(COUNTS, epsilon=1)
    ledger = curator._ledger
    history = read_history(ledger)
    (charge,) = history.charges.values()
    ((payload, plan),) = [(kept.payload, charge.entry.plan) for kept in ledger.read_answers(charge.replay_key)]
    assert plan is not None
    declared = history.declared_at(charge.entry.sequence)
    found = released_numbers(plan, payload, declared, lambda told: ledger.read_answers(keys_place(told))[0].payload)
    assert found is not None
    assert found.records == answer.records
    assert released_numbers(plan, payload, declared) is None  # without the keys
    assert len(stored_releases(ledger, history).cards) == 1


@pytest.mark.usefixtures("short")
def test_a_file_of_declarations_is_compared_by_its_keys(tmp_path: Path) -> None:
    def declared_with(keys: Sequence[str]) -> Path:
        table = f'source = "visits.csv"\nunit = ""\ntypes = {{ g = "text" }}\nkeys = {{ g = {json.dumps(keys)} }}\n'
        file = tmp_path / "discreet.toml"
        file.write_text(f'ledger = "ledger"\n[tables.visits]\n{table}[budgets.visits]\nepsilon = 1\n')
        return file

    (tmp_path / "visits.csv").write_text("g\nA\n")
    with Curator.from_config(declared_with(LONG)) as curator:
        assert declared_changes(load(declared_with(LONG))) == ()
        assert [entry.kind for entry in curator.entries()].count("keys") == 1
    (change,) = declared_changes(load(declared_with(LONG[1:])))
    assert change.declared == ("keys of g: 150 keys -> 149 keys",)


# --------------------------------------------------------------------------------------------------- worked out once


def of_numbers(count: int, path: Path) -> Curator:
    rows = pa.table({"g": np.arange(100), "x": np.linspace(0, 9, 100)})
    curator = Curator(str(path))
    told: dict[str, Any] = {"keys": {"g": range(count)}, "bounds": {"x": (0, 10)}, "budget": Budget(epsilon=9)}
    curator.protect(rows, name="visits", **told)
    return curator


def test_a_question_finds_what_was_worked_out_for_the_keys_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with of_numbers(20_000, tmp_path / "ledger") as curator:
        first = curator.explain(COUNTS, epsilon=1).program.reading.public_keys
        for name in ("_keys_text", "_keys"):
            monkeypatch.delattr(declarations, name)  # nobody writes or checks them again
        monkeypatch.setattr("discreet.plan.validation._check_key_types", None)
        sums = curator.explain("SELECT g, AVG(x) AS x FROM visits WHERE x > 3 GROUP BY g", epsilon=2)
        assert sums.program.reading.public_keys is first


def test_two_hundred_thousand_keys(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with of_numbers(200_000, path) as curator:
        assert len(curator.explain(COUNTS, epsilon=1).program.reading.public_keys or ()) == 200_000
        assert [entry.kind for entry in curator.entries()][-2:] == ["keys", "attach"]
    assert path.stat().st_size < 2_000_000


@pytest.mark.ci
def test_a_million_keys_are_declared_and_planned_in_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    for _ in range(2):  # declared, and declared again
        with of_numbers(1_000_000, path) as curator:
            curator.explain(COUNTS, epsilon=1)
            curator._ledger.verify()
            begun = time.process_time()
            curator.explain("SELECT g, COUNT(*) AS n, AVG(x) AS x FROM visits WHERE x > 1 GROUP BY g", epsilon=1)
            assert time.process_time() - begun < 0.5  # seconds if lists are walked through
            assert [entry.kind for entry in curator.entries()].count("keys") == 1
