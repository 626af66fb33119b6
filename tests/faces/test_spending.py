"""What people are told of money: percents add up, what is explained is paid, and what is offered is accepted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.ledger.serialization import at_most
from discreet.noise import SeededBits, uniform_below
from discreet.privacy.amounts import SHOWN_DIGITS
from tests.faces.spending import BUDGETS, Spending, spending
from tests.ledger.shares import check_sums

QUERIES = (
    "SELECT COUNT(*) AS n FROM {table} WHERE age < {age}",
    "SELECT ward, COUNT(*) AS n, SUM(age) AS a, AVG(charge) AS c FROM {table} WHERE age < {age} GROUP BY ward",
    "SELECT ward, COUNT(*) AS n FROM {table} WHERE age < {age} GROUP BY ROLLUP (ward)",
    "SELECT MEDIAN(charge) AS m FROM {table} WHERE age < {age}",
    "SELECT ward, SUM(charge) AS c FROM {table} WHERE age >= {age} GROUP BY ward HAVING COUNT(*) > 3",
)
"""Of all kinds of noise that a budget can pay: Laplace, Gaussian over several columns and groupings, quantiles."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Spending]:
    with spending(tmp_path) as made:
        yield made


def spend(world: Spending, charges: int, seed: int) -> None:
    """Asks queries of all kinds on all accounts and faces; each costs what was explained."""
    draw, faces = SeededBits(seed), list(world.faces.items())
    for number in range(charges):
        name, face = faces[number % len(faces)]
        account = list(BUDGETS)[number // len(faces) % len(BUDGETS)]
        sql = QUERIES[uniform_below(len(QUERIES), bits=draw)].format(table=account, age=20 + number)
        epsilon = Fraction(1 + uniform_below(40, bits=draw), 100)
        explained = face.explain(sql, epsilon)
        assert face.ask(sql, epsilon) == explained, (name, sql)
        if number == charges // 2:
            world.curator.renew("again", note="a year has passed")
            world.curator.amend("both", budget=world.curator.budget("both").total * 2)
    for account in BUDGETS:
        check_sums(world.curator._ledger, account)


def check_offer(world: Spending, name: str, account: str, number: int) -> None:
    """The largest query that is offered is accepted, and the next larger one is refused and costs nothing."""
    face, before = world.faces[name], world.curator.budget(account)
    offered = Fraction(at_most(before.remaining.epsilon))
    larger = offered + Fraction(1, 10 ** (SHOWN_DIGITS - len(str(int(offered)))))
    sql = f"SELECT COUNT(*) AS n FROM {account} WHERE age > {number}"
    assert face.ask(sql, larger) is None
    assert world.curator.budget(account) == before
    explained = face.explain(sql, offered)
    assert face.ask(sql, offered) == explained
    check_sums(world.curator._ledger, account)
    assert world.curator.budget(account).remaining.share < Fraction(1, 1000)


@pytest.mark.ci
def test_percents_add_up_and_offers_are_accepted(world: Spending) -> None:
    spend(world, 16, seed=1)
    for number, (name, account) in enumerate(zip(world.faces, BUDGETS, strict=True)):
        check_offer(world, name, account, number)


@pytest.mark.slow
def test_two_hundred_charges(world: Spending) -> None:
    spend(world, 200, seed=2)
    for number, (name, account) in enumerate(itertools.product(world.faces, BUDGETS)):
        check_offer(world, name, account, number)
        world.curator.renew(account)
