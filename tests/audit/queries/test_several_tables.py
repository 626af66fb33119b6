"""Audits over several tables: ways, joins of one account, public tables beside them, and people of two accounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import InvalidParameter, UnknownTable
from discreet.privacy import Neighbours
from tests.audit.several import (
    OF_PATIENTS,
    OF_STAFF,
    ON_WAYS,
    PURE,
    THE_HOSPITAL,
    THE_SHOP,
    of_family,
    shopping,
    wards,
)
from tests.engines.tables import arrow

RELATIONS = [Neighbours.ADD_REMOVE, pytest.param(Neighbours.REPLACE, marks=pytest.mark.slow)]


@pytest.mark.ci
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_tables_on_a_way_pass(relation: Neighbours) -> None:
    found = audit.query(of_family(THE_SHOP, neighbours=relation), ON_WAYS[:5], shopping(), neighbours=4)
    assert found.passed, found.summary()
    assert found.unit == "id"
    assert found.table == "customers, orders, items, notes"


@pytest.mark.slow
@pytest.mark.parametrize("engine", [Memory, lambda: DuckDB(threads=1)], ids=["memory", "duckdb"])
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_whatever_is_asked_of_several_tables(relation: Neighbours, engine: Callable[[], Engine]) -> None:
    for family, asked, tables in ((THE_SHOP, ON_WAYS, shopping(5, 30)), (THE_HOSPITAL, OF_PATIENTS, wards(5, 30))):
        frames = {name: arrow(rows, family.types[name]) for name, rows in tables.items()}
        given: Any = tables if engine is Memory else frames
        found = audit.query(of_family(family, engine, neighbours=relation), asked, given, neighbours=24, rows=60)
        assert found.passed, found.summary()


def test_a_stranger_uses_up_what_was_paid_for_items() -> None:
    found = audit.query(of_family(THE_SHOP, budget=PURE), ON_WAYS[:1], shopping(), neighbours=4)
    assert found.share == 1
    assert found.epsilon_lower == 1.0


@pytest.mark.ci
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_joins_of_one_account_and_people_of_two_pass(relation: Neighbours) -> None:
    asked = [*OF_PATIENTS[:2], *OF_STAFF]
    found = audit.query(of_family(THE_HOSPITAL, neighbours=relation), asked, wards(), neighbours=6)
    assert found.passed, found.summary()
    assert found.unit == "patient or id or row"
    assert min(each.share for each in found.questions) > 0  # people of each account were changed


def test_people_of_one_account_if_a_table_is_named() -> None:
    tables = wards()
    found = audit.query(of_family(THE_HOSPITAL), [OF_PATIENTS[0], *OF_STAFF], tables, name="staff", neighbours=3)
    assert found.passed
    assert found.unit == "id"
    assert [each.share > 0 for each in found.questions] == [False, True]


def test_all_protected_tables_that_are_read_must_be_given() -> None:
    """Otherwise neighbours would differ in a part of somebody's rows, or in nobody's."""
    whole = wards()

    def of_visits(rows: Any) -> Curator:
        return of_family(THE_HOSPITAL)({**whole, "visits": rows})

    alone = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    assert audit.query(of_visits, alone, whole["visits"], name="visits", neighbours=3).passed
    with pytest.raises(InvalidParameter) as refused:
        audit.query(of_visits, OF_PATIENTS[0], whole["visits"], name="visits")
    assert "labs" in str(refused.value)
    factory = of_family(THE_SHOP)
    lacking = {name: rows for name, rows in shopping().items() if name in ("customers", "items")}
    with pytest.raises(InvalidParameter) as refused:
        audit.query(lambda tables: factory({**shopping(), **tables}), ON_WAYS[0], lacking)
    assert "orders" in str(refused.value)


def test_tables_that_cannot_be_told_apart_are_refused() -> None:
    factory, tables = of_family(THE_HOSPITAL), wards()
    wrong: list[dict[str, Any]] = [
        {"table": {}},
        {"table": {1: tables["visits"]}},
        {"table": tables | {"nowhere": []}},
        {"table": tables, "name": "nobody"},
        {"table": {"wards": tables["wards"]}},
    ]
    for each in wrong:
        with pytest.raises((InvalidParameter, UnknownTable)):
            audit.query(factory, OF_PATIENTS[0], each.pop("table"), **each)


def test_accounts_of_different_relations_are_audited_one_by_one() -> None:
    def factory(tables: Any) -> Curator:
        made = of_family(THE_HOSPITAL)({name: rows for name, rows in tables.items() if name != "staff"})
        made.protect(
            tables["staff"],
            name="staff",
            unit="id",
            max_rows=1,
            types={"id": "int", "ward": "text"},
            keys={"ward": ["A", "B"]},
            neighbours="replace",
            budget=PURE,
        )
        return made

    with pytest.raises(InvalidParameter) as refused:
        audit.query(factory, OF_STAFF[0], wards())
    assert refused.value.name == "name"
    found = audit.query(factory, OF_STAFF[0], wards(), name="staff", neighbours=4)
    assert found.passed, found.summary()
    assert found.relation is Neighbours.REPLACE
