"""Names that steer a terminal are refused, also where an answer is free; nothing that is told holds the salt."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from discreet import count
from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import DiscreetError
from discreet.ledger import Entry, Ledger
from discreet.plan.model.nodes import Aggregate, Output, Question
from discreet.plan.model.nodes import ColumnRef as PlanColumn
from discreet.plan.model.types import Type
from discreet.privacy import Budget
from tests.cases import every, try_all

TYPES = {"who": "text", "ward": "text", "age": "int"}
COUNT = "SELECT COUNT(*) AS n FROM visits"
STEERING = ("a\nb", "a\tb", "a\x1b[2J", "a\x9b", "a\u202e", "a\u2028", "\x7f")


def rows() -> list[dict[str, Any]]:
    return [{"who": f"p{i % 20}", "ward": "AB"[i % 2], "age": i} for i in range(60)]


def made(ledger: str = ":memory:") -> Curator:
    curator = Curator(ledger, engine=Memory())
    declared: dict[str, Any] = {"types": TYPES, "bounds": {"age": (0, 100)}, "keys": {"ward": ["A"]}}
    curator.protect(
        rows(), name="visits", unit="who", budget=Budget(epsilon=10, delta="1e-3"), **{"max_rows": 1, **declared}
    )
    curator.allot("study", account="visits", cap=Budget(epsilon=5, delta="1e-3"))
    return curator


def planned(alias: str) -> Question:
    aggregate = Aggregate(name="#1", kind="count")
    return Question(table="visits", aggregates=(aggregate,), outputs=(Output(alias, PlanColumn("#1", Type.INT)),))


DOORS: dict[str, Callable[[Curator, str], object]] = {
    "alias": lambda c, bad: c.ask(f'SELECT COUNT(*) AS "{bad}" FROM visits', epsilon=1),
    "alias explained": lambda c, bad: c.explain(f'SELECT COUNT(*) AS "{bad}" FROM visits', epsilon=1),
    "alias rehearsed": lambda c, bad: c.rehearse(f'SELECT COUNT(*) AS "{bad}" FROM visits'),
    "alias of a group": lambda c, bad: c.ask(
        f'SELECT ward AS "{bad}", COUNT(*) AS n FROM visits GROUP BY 1', epsilon=1
    ),
    "alias of a plan": lambda c, bad: c.ask(planned(bad), epsilon=1),
    "alias by keyword": lambda c, bad: c.table("visits").agg(**{bad: count()}).ask(epsilon=1),
    "project": lambda c, bad: c.ask(COUNT, epsilon=1, project=bad),
    "analyst": lambda c, bad: c.ask(COUNT, epsilon=1, analyst=bad),
    "key": lambda c, bad: c.ask(COUNT, epsilon=1, key=bad),
    "other": lambda c, bad: c.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1, other=bad),
    "table": lambda c, bad: c.protect([], name=bad, types=TYPES, budget=Budget(epsilon=1)),
    "account": lambda c, bad: c.protect([], name="t", account=bad, types=TYPES, budget=Budget(epsilon=1)),
    "version": lambda c, bad: c.protect([], name="t", version=bad, types=TYPES, budget=Budget(epsilon=1)),
    "identity": lambda c, bad: c.protect([], name="t", identity=bad, types=TYPES, budget=Budget(epsilon=1)),
    "column": lambda c, bad: c.protect([], name="t", types={bad: "int"}, budget=Budget(epsilon=1)),
    "public table": lambda c, bad: c.public([], name=bad, types=TYPES),
    "public column": lambda c, bad: c.public([], name="t", types={bad: "int"}),
}


@every("door", DOORS)
def test_names_that_steer_are_refused(door: str) -> None:
    curator = made()
    curator.ask(COUNT, epsilon=1)  # so that the question itself would be a free replay
    curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    before = len(curator.entries())

    def check(bad: str) -> None:
        with pytest.raises(DiscreetError) as refused:
            DOORS[door](curator, bad)
        assert len(curator.entries()) == before
        assert not set(str(refused.value)) & set(bad) - set("abx[2J")

    try_all(STEERING, check)


def test_a_plan_with_a_good_name_is_answered() -> None:
    assert made().ask(planned("n"), epsilon=1).columns == ("n", "n_low", "n_high")


# ------------------------------------------------------------------------------------------------------------ the salt


def reachable(thing: object) -> Iterator[object]:
    """Everything that a thing holds, through whatever holds it; not the code it is made of."""
    code = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType)
    seen, waiting = {id(thing): thing}, [thing]
    while waiting:
        found = waiting.pop()
        yield found
        for part in gc.get_referents(found):
            if id(part) not in seen and not isinstance(part, code):
                seen[id(part)] = part
                waiting.append(part)


def holds(thing: object, salt: bytes) -> bool:
    """Whether a salt can be found in a thing, as bytes or as text."""
    for part in reachable(thing):
        if (isinstance(part, bytes) and salt in part) or (isinstance(part, str) and salt.hex() in part):
            return True
    return False


LOOKS: dict[str, Callable[[Curator], object]] = {
    "history": lambda c: c.history("visits"),
    "history of an analyst": lambda c: c.history("visits", analyst="owner"),
    "entries": lambda c: c.entries(),
    "entries of an account": lambda c: c.entries("visits"),
    "account": lambda c: c.account("visits"),
    "budget": lambda c: c.budget("visits"),
    "answer": lambda c: c.ask("SELECT ward, AVG(age) AS m FROM visits GROUP BY ward", epsilon=1),
    "replayed": lambda c: c.ask(COUNT, epsilon=1),
    "explained": lambda c: c.explain(COUNT, epsilon=1),
    "rehearsed": lambda c: c.rehearse(COUNT),
    "choices": lambda c: c.choose_epsilon(COUNT),
    "frame": lambda c: c.table("visits").agg(n=count()).question,
    "head": lambda c: c.verify(),
}


@every("look", LOOKS)
def test_nothing_that_is_told_holds_the_salt(look: str) -> None:
    curator = made()
    curator.ask(COUNT, epsilon=1)
    salt = curator._ledger.account("visits").salt
    assert len(salt) == 32
    assert not holds(LOOKS[look](curator), salt)


def test_the_search_finds_a_salt_where_there_is_one() -> None:
    curator = made()
    salt = curator._ledger.account("visits").salt
    assert holds(curator._ledger.account("visits"), salt)
    with curator._ledger._journal.reading() as stored:
        assert holds(list(stored.entries()), salt)


def test_an_entry_without_its_salt_keeps_everything_else() -> None:
    curator = made()
    opened = curator.history("visits")[0]
    assert isinstance(opened, Entry)
    assert opened.kind == "open"
    assert opened.content["account"].keys() == {"budget", "name", "neighbours", "unit"}
    with curator._ledger._journal.reading() as stored:
        written = next(iter(stored.entries()))
    assert written._replace(body="") == opened._replace(body="")
    assert curator.verify().sequence == len(curator.entries())


def test_mutant_history_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Entry, "without_salt", property(lambda self: self))
    curator = made()
    assert holds(curator.history("visits"), curator._ledger.account("visits").salt)


def test_a_ledger_shows_no_salt_either() -> None:
    with Ledger() as ledger:
        ledger.stewardship.open_account("visits", unit=made().account("visits").unit, budget=Budget(epsilon=1))
        assert not holds(ledger.history(), ledger.account("visits").salt)
