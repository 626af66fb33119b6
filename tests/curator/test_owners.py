"""Rows whose people other tables tell, and people who are several columns: equal on all engines, and bounded."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.engines.memory import relation_rows as gather_module
from discreet.engines.row_choice import put_together
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.program.program import Program, choose
from discreet.noise import SeededBits
from discreet.plan.analysis.relation_schema import describe, own_rows
from discreet.plan.model.nodes import UNIT, Aggregate, ColumnRef, Output, Question, Relation
from discreet.plan.model.readings import Groups
from discreet.plan.model.relations import BaseTable, LinkedTable
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Neighbours
from discreet.sql.frame import count, count_units
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.curator.nearness import check_alone, check_moves
from tests.curator.shop import (
    DAYS,
    TYPES,
    UNITS,
    Data,
    customer,
    data,
    day,
    extend,
    frame,
    keys_of,
    loaded,
    schemas,
    without,
)
from tests.effort import tried
from tests.open_groups import unsealed

_WAYS = """
SELECT COUNT(*) AS n, SUM(total) AS s, COUNT(DISTINCT customer) AS c FROM orders;
SELECT kind, COUNT(*) AS n, AVG(price) AS m FROM items GROUP BY kind;
SELECT COUNT(*) AS n, AVG(stars) AS m FROM notes;
SELECT c.city, COUNT(*) AS n FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY c.city;
SELECT i.kind, COUNT(*) AS n, SUM(o.total) AS s FROM items AS i JOIN orders AS o ON i.order_id = o.id
  GROUP BY i.kind;
SELECT c.city, COUNT(DISTINCT c.id) AS people, SUM(i.price) AS s FROM items AS i JOIN orders AS o
  ON i.order_id = o.id JOIN customers AS c ON o.customer = c.id GROUP BY c.city;
SELECT AVG(spent) AS m FROM (SELECT o.customer, SUM(i.price) AS spent FROM orders AS o JOIN items AS i
  ON o.id = i.order_id GROUP BY o.customer) AS t;
SELECT COUNT(*) AS n FROM items WHERE order_id IN (SELECT id FROM orders WHERE total > 50);
SELECT COUNT(*) AS n FROM items AS i WHERE NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.id = i.order_id
  AND o.total > 9);
SELECT COUNT(*) AS n FROM items AS i JOIN items AS j ON i.order_id = j.order_id;
SELECT AVG(k) AS m, AVG(s) AS p, COUNT(*) AS n FROM (SELECT order_id, COUNT(*) AS k, SUM(price) AS s FROM items
  GROUP BY order_id) AS t WHERE k < 9;
SELECT kind, AVG(k) AS m FROM (SELECT o.id, i.kind, COUNT(*) AS k FROM orders AS o JOIN items AS i ON i.order_id = o.id
  GROUP BY o.id, i.kind) AS t GROUP BY kind
"""
_TOGETHER = """
SELECT COUNT(*) AS n, COUNT(DISTINCT (person, day)) AS days, SUM(count) AS s FROM steps;
SELECT kind, COUNT(*) AS n, COUNT(DISTINCT date, who) AS days FROM meals GROUP BY kind;
SELECT m.kind, COUNT(*) AS n, AVG(s.count) AS c FROM steps AS s JOIN meals AS m ON s.person = m.who
  AND s.day = m.date GROUP BY m.kind;
SELECT AVG(total) AS m FROM (SELECT who, date, SUM(kcal) AS total FROM meals GROUP BY who, date) AS t;
SELECT COUNT(*) AS n FROM steps AS s WHERE EXISTS (SELECT 1 FROM meals AS m WHERE m.who = s.person
  AND m.date = s.day);
SELECT MONTH(day) AS month, COUNT(*) AS n FROM (SELECT DISTINCT person, day FROM steps) AS t GROUP BY 1
"""
WAYS, TOGETHER = (tuple(" ".join(part.split()) for part in text.split(";")) for text in (_WAYS, _TOGETHER))
QUESTIONS = (*WAYS, *TOGETHER)
NAMES = [f"c{i}" for i in range(5)]


def plan(sql: str, declared: dict[str, TableSchema], delta: str = "1e-3") -> Program:
    asked = parse(sql, declared)
    schema = declared[asked.table] if asked.source is None else describe(asked.source, declared)
    return choose(asked, schema, epsilon=Fraction(1), delta=Fraction(delta), salt="pepper")


def exact(program: Program, found: Data) -> Groups:
    return unsealed(loaded(Memory(), found).read(program.reading))


def check(program: Program, one: Data, other: Data) -> None:
    check_read(program, exact(program, one), exact(program, other))


def check_read(program: Program, one: Groups, other: Groups) -> None:
    check_moves(program, one, other)
    check_alone(program, one, other)


@cache
def engines(seed: int) -> tuple[Engine, Engine]:
    """The referee and DuckDB over the same rows, for everybody who only reads."""
    return loaded(Memory(), data(seed)), loaded(DuckDB(threads=1), data(seed))


@cache
def planned(sql: str, limits: Limits, neighbours: Neighbours) -> Program:
    """The plan, once for each declaration. For honest code only."""
    return plan(sql, schemas(limits, neighbours))


@lru_cache(maxsize=512)
def memory(seed: int) -> Engine:
    return loaded(Memory(), data(seed))


@lru_cache(maxsize=512)
def without_customer(seed: int, neighbours: Neighbours, who: int) -> Engine:
    """Without somebody, or with other rows of the same person."""
    other = without(data(seed), f"c{who}", NAMES)
    if neighbours is Neighbours.REPLACE:
        extend(other, customer(f"c{who}", SeededBits(seed + 1)))
    return loaded(Memory(), other)


@lru_cache(maxsize=512)
def without_day(seed: int, neighbours: Neighbours, date: Any) -> Engine:
    """Without somebody's day, or with other rows of it."""
    found = data(seed)
    other = {
        **found,
        "steps": [row for row in found["steps"] if ((row["person"] or "").strip(), row["day"]) != ("x", date)],
        "meals": [row for row in found["meals"] if (row["who"], row["date"]) != ("x", date)],
    }
    if neighbours is Neighbours.REPLACE:
        extend(other, day("x", date, SeededBits(seed + 1)))
    return loaded(Memory(), other)


def check_engines(program: Program, *pair: Engine) -> None:
    """Both ways."""
    one, other = (unsealed(engine.read(program.reading)) for engine in pair)
    check_read(program, one, other)
    check_read(program, other, one)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sql", QUESTIONS)
def test_engines_agree(sql: str) -> None:
    for seed in range(4):
        program = plan(sql, schemas(Limits(1 + seed % 3, 1 + seed % 2)))
        one, other = (unsealed(engine.read(program.reading)) for engine in engines(seed))
        assert one == other, seed


@tried(12)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 4),
)
def test_one_customer_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    """Keys collide between customers: who comes or goes brings or takes nothing of the others'."""
    pair = memory(seed), without_customer(seed, neighbours, who)
    try_all(WAYS, lambda sql: check_engines(planned(sql, limits, neighbours), *pair))


def test_a_stranger_who_claims_all_orders_counts_within_the_limits() -> None:
    for sql in WAYS:
        program, found = plan(sql, schemas(Limits(1, 1))), data(3)
        claims = {
            **found,
            "orders": [*found["orders"], *({"id": i, "customer": "zz", "total": 99.0} for i in range(11))],
        }
        check(program, found, claims)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    date=st.sampled_from(DAYS),
)
def test_one_day_of_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, date: Any
) -> None:
    pair = memory(seed), without_day(seed, neighbours, date)
    try_all(TOGETHER, lambda sql: check_engines(planned(sql, limits, neighbours), *pair))


def test_mutant_a_key_of_two_people_belongs_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tempting rule: who claims others' orders makes their items disappear, without limit."""
    right = gather_module.gather.dispatch(LinkedTable)

    def dropping(relation: LinkedTable, *arguments: Any) -> list[dict[str, Any]]:
        rows = right(relation, *arguments)
        owners: dict[Any, set[Any]] = {}
        for row in rows:
            owners.setdefault(row[relation.column], set()).add(row[UNIT])
        return [row for row in rows if len(owners[row[relation.column]]) == 1]

    def patched(relation: Relation, *arguments: Any) -> Any:
        return (
            dropping(relation, *arguments) if isinstance(relation, LinkedTable) else right_gather(relation, *arguments)
        )

    right_gather = gather_module.gather
    monkeypatch.setattr("discreet.engines.memory.engine.gather", patched)
    found: Data = {table: [] for table in TYPES}
    found["orders"] = [{"id": i, "customer": f"c{i}", "total": 1.0} for i in range(9)]
    found["items"] = [{"order_id": i, "kind": "a", "price": 1.0, "code": None} for i in range(9)]
    claims = {**found, "orders": [*found["orders"], *({"id": i, "customer": "zz", "total": 1.0} for i in range(9))]}
    with pytest.raises(AssertionError):
        check(plan("SELECT COUNT(*) AS n FROM items", schemas(Limits(1, 1))), found, claims)


def test_no_two_people_make_one_id() -> None:
    """Without lengths before the parts they would."""
    ids = [
        put_together(parts) for parts in (("1:x", "y"), ("1", "x1:y"), ("x", "1"), ("x1", ""), (" x", "1 "), ("x", 1))
    ]
    assert ids == ["3:1:x1:y", "1:14:x1:y", "1:x1:1", None, "1:x1:1", "1:x1:1"]
    assert len({put_together((a, b)) for a in ("a", "ab", "1:a") for b in ("b", "bb", "a")}) == 9


def curator(engine: Any = None, **options: Any) -> Curator:
    made = Curator.for_tests(engine=engine or Memory(), bits=SeededBits(3))
    found = data(3)
    for table, unit in UNITS.items():
        source: Any = found[table] if engine is None else frame(table, found[table])
        first = table in ("customers", "steps")
        made.protect(
            source,
            name=table,
            unit=unit,
            types={name: kind.value for name, kind in TYPES[table].items()} if engine is None else None,
            account="days" if table in ("steps", "meals") else None,
            budget=Budget(epsilon=1) if first else None,
            **{"max_rows": 1, **options},
        )
    return made


@pytest.mark.ci
def test_tables_on_a_way_share_one_account() -> None:
    made = curator()
    answer = made.ask("SELECT COUNT(*) AS n FROM items", epsilon="0.25")
    for table in ("customers", "orders", "items", "notes"):
        assert str(made.budget(table).remaining.loss) == "epsilon=0.75"
    assert made.ask("SELECT COUNT(*) AS m FROM items AS i", epsilon="0.25").replayed
    assert "At most 1 row per customer" in answer.notes[0]
    assert made.table("items").agg(n=count()).ask(epsilon="0.25").replayed
    assert made.rehearse("SELECT COUNT(*) AS n FROM notes").columns == ("n", "n_low", "n_high")


def test_units_of_several_columns_have_their_own_account() -> None:
    made = curator(DuckDB(threads=1))
    assert "id 1, id 2" in made.explain("SELECT COUNT(*) AS n FROM steps", epsilon=1).unit
    first = made.ask("SELECT COUNT(DISTINCT person, day) AS n FROM steps", epsilon="0.25")
    assert "per person and day" in first.notes[0]
    assert made.table("steps").agg(n=count_units()).ask(epsilon="0.25").replayed
    with pytest.raises(InvalidParameter) as refused:
        made.protect(frame("customers", []), name="more", unit="id", max_rows=1, account="days")
    assert "unit" in str(refused.value)


def test_bounds_are_found_privately_where_other_tables_or_columns_tell_the_people() -> None:
    for engine in (None, DuckDB(threads=1)):
        made = curator(engine)
        for sql in ("SELECT SUM(price) AS s FROM items", "SELECT SUM(count) AS s FROM steps"):
            assert made.ask(sql, epsilon="0.5").columns == ("s", "s_low", "s_high")
        assert str(made.budget("items").remaining.loss) == "epsilon=0.5"


def test_a_plan_made_by_hand_is_read_along_the_declared_way() -> None:
    """Without its rows' people a question would count rows as if each were a person."""
    asked = Question(
        table="items",
        aggregates=(Aggregate(name="#1", kind="count"),),
        outputs=(Output("n", ColumnRef("#1", Type.INT)),),
    )
    made = curator()
    assert made.ask(asked, epsilon="0.25").event == made.ask("SELECT COUNT(*) AS n FROM items", epsilon="0.25").event
    declared = schemas(Limits(1, 1))
    for relation in (
        BaseTable("items", None),
        BaseTable("items", UNIT),
        BaseTable("items", "order_id"),
        BaseTable("steps", "person"),
        BaseTable("steps", ("day", "person")),
        LinkedTable("items", "code", own_rows("orders", declared), "id"),
        LinkedTable("items", "order_id", BaseTable("customers", "id"), "id"),
        LinkedTable("orders", "customer", BaseTable("customers", "id"), "id"),
    ):
        with pytest.raises(UnsupportedQuery):
            describe(relation, declared)


def test_declaring_again_changes_nothing_and_otherwise_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "book"
    for _ in range(2):
        with Curator(ledger, engine=Memory()) as made:
            for table in ("customers", "orders", "items"):
                types = {name: kind.value for name, kind in TYPES[table].items()}
                made.protect([], name=table, unit=UNITS[table], max_rows=1, types=types, budget=Budget(epsilon=1))
            for other in ("order_id", None, ("order_id", "kind"), "code -> customers.city"):
                with pytest.raises(InvalidParameter):
                    made.protect(
                        [], name="items", unit=other, max_rows=1, types={n: k.value for n, k in TYPES["items"].items()}
                    )


@every(
    ("unit", "condition"),
    [
        ("order_id -> items.order_id", "not to lead back"),
        ("order_id -> nowhere.id", "to lead to a protected table"),
        ("order_id -> orders.nothing", "to lead to a column of 'orders'"),
        ("code -> orders.id", "to join columns of one type"),
        ("nothing -> orders.id", "to name a column"),
        ("price -> orders.total", "not to be of type float"),
        ("orders.id -> orders.id", "to begin with a column of 'items'"),
        ("order_id -> rows.id", "to lead to a table with ids"),
        ("order_id -> orders", "to be a column, or steps"),
        ("order_id -> ", "to be a column, or steps"),
        ("order_id -> orders.id -> customers.id", "to be a column, or steps"),
        ("order_id -> orders.id, orders.id -> customers.id", "to match how those tables were declared"),
        ("order_id -> orders.id, customer -> days.person", "to match how those tables were declared"),
        (("order_id", "order_id"), "to name each column once"),
        (("order_id", "nothing"), "to name a column"),
        (("order_id", "price"), "not to be of type float"),
        ((), "to name each column once"),
        (7, "to name a column"),
    ],
)
def test_ways_that_lead_nowhere(unit: Any, condition: str) -> None:
    made = Curator(engine=Memory())
    types = {table: {name: kind.value for name, kind in kinds.items()} for table, kinds in TYPES.items()}
    made.protect([], name="customers", unit="id", max_rows=1, types=types["customers"], budget=Budget(epsilon=1))
    made.protect([], name="orders", unit="customer -> customers.id", max_rows=1, types=types["orders"])
    made.protect([], name="rows", types={"id": "int"}, budget=Budget(epsilon=1))
    before = made.verify()
    with pytest.raises(InvalidParameter) as refused:
        made.protect([], name="items", unit=unit, max_rows=1, types=types["items"])
    assert condition in refused.value.condition
    assert made.verify() == before


def test_a_way_never_leads_to_another_account_or_round_in_a_circle() -> None:
    made = Curator(engine=Memory())
    types = {"id": "int", "up": "int"}
    made.protect([], name="a", unit="id", max_rows=1, types=types, budget=Budget(epsilon=1))
    with pytest.raises(InvalidParameter) as refused:
        made.protect(
            [], name="b", unit="up -> a.id", max_rows=1, account="others", types=types, budget=Budget(epsilon=1)
        )
    assert refused.value.name == "account"
    made.protect([], name="b", unit="up -> a.up", max_rows=1, types=types)
    made.protect([], name="c", unit="up -> b.id", max_rows=1, types=types)
    for unit in ("up -> c.id", "up -> b.id", "up -> a.id"):
        with pytest.raises(InvalidParameter):
            made.protect([], name="a", unit=unit, max_rows=1, types=types)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM items AS i JOIN orders AS o ON i.price = o.total",
        "SELECT COUNT(*) AS n FROM items AS i JOIN items AS j ON i.kind = j.kind",
        "SELECT COUNT(*) AS n FROM steps AS s JOIN meals AS m ON s.person = m.who",
        "SELECT COUNT(*) AS n FROM steps AS s JOIN meals AS m ON s.day = m.date",
        "SELECT COUNT(*) AS n FROM steps AS s JOIN customers AS c ON s.person = c.id",
        "SELECT person, COUNT(DISTINCT day, count) AS n FROM steps GROUP BY person",
        'SELECT COUNT(DISTINCT "#unit") AS n FROM items',
        "SELECT COUNT(DISTINCT m.who, date) AS n FROM steps LEFT JOIN meals AS m ON person = m.who AND day = date",
    ],
)
def test_what_does_not_say_whose_rows_they_are_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedQuery):
        parse(sql, schemas(Limits(1, 1)))


def test_items_without_an_order_are_nobodys() -> None:
    found: Data = {table: [] for table in TYPES}
    found["items"] = [{"order_id": i, "kind": "a", "price": 1.0, "code": None} for i in (1, 2, None)]
    program = plan("SELECT COUNT(*) AS n FROM items", schemas(Limits(1, 9)), "0")
    assert exact(program, found) == {}
    found["orders"] = [{"id": 1, "customer": "c", "total": 1.0}, {"id": None, "customer": "c", "total": 1.0}]
    found["orders"] += [{"id": 2, "customer": "  ", "total": 1.0}, {"id": 1, "customer": " c", "total": 2.0}]
    assert exact(program, found) == {(): (1,)}
    assert keys_of(found, "c") == ({1}, set())


CONFIG = """
[tables.items]
source = "items.csv"
unit = "order_id -> orders.id"
max_rows = 1
types = { order_id = "int", kind = "text" }
[tables.orders]
source = "orders.csv"
unit = "customer -> customers.id"
max_rows = 1
types = { id = "int", customer = "text" }
[tables.customers]
source = "customers.csv"
unit = "id"
max_rows = 1
types = { id = "text" }
[tables.steps]
source = "steps.csv"
unit = ["person", "day"]
max_rows = 1
types = { person = "text", day = "date" }
[budgets.customers]
epsilon = 1
[budgets.steps]
epsilon = 1
"""


def test_a_file_declares_ways_and_several_columns(tmp_path: Path) -> None:
    for name, header in (
        ("items", "order_id,kind"),
        ("orders", "id,customer"),
        ("customers", "id"),
        ("steps", "person,day"),
    ):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n")
    path = tmp_path / "discreet.toml"
    path.write_text(CONFIG)
    for opening in (True, False):
        with Curator.from_config(path, opening=opening) as made:
            made.ask("SELECT COUNT(*) AS n FROM items", epsilon="0.25")
            made.ask("SELECT COUNT(DISTINCT person, day) AS n FROM steps", epsilon="0.25")
            assert str(made.budget("customers").remaining.loss) == "epsilon=0.75"
    path.write_text(CONFIG.replace('unit = "id"', 'unit = "id -> items.kind"'))
    with pytest.raises(InvalidParameter) as refused:
        Curator.from_config(path)
    assert refused.value.name == "tables.items.unit"
