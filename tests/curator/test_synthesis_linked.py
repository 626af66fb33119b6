"""Synthetic tables of rows whose owner another table tells: a customer's items, by the orders that they belong to."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.audit.queries.mechanism_recorder import MechanismCall, MechanismRecorder, watch_mechanisms
from discreet.curator import Curator
from discreet.curator.observation import observe_curator
from discreet.engines import Memory
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits, uniform_below
from discreet.privacy import Neighbours
from tests.curator.synthesis_cases import BUDGET, GENERATORS, Made, Row, charged_in, complaint_of

Shop = tuple[list[Row], list[Row]]
"""Orders and items."""


def shop(seed: int) -> Shop:
    """Customers with some orders, some of them under the same number; items of orders, and of none that is known."""
    bits = SeededBits(seed)

    def pick(limit: int) -> int:
        return int(uniform_below(limit, bits=bits))

    orders = [{"id": pick(14), "customer": pick(6) or None, "total": pick(50)} for _ in range(12)]
    items = [{"order_id": pick(16), "price": [None, 1.0, 9.5, 400.0][pick(4)], "gift": pick(2) > 0} for _ in range(40)]
    return orders, items


def without(found: Shop, who: int, neighbours: Neighbours, seed: int) -> Shop:
    """The shop without the orders of a customer, or with others of theirs; items without an order are nobody's."""
    orders, items = found
    left = [order for order in orders if order["customer"] != who]
    if neighbours is Neighbours.REPLACE and len(left) < len(orders):
        bits = SeededBits(seed + 1000)
        left += [{"id": int(uniform_below(14, bits=bits)), "customer": who, "total": 1} for _ in range(3)]
    return left[::-1], items[::-1]


def made(found: Shop, neighbours: Neighbours, frozen: list[MechanismCall] | None = None, **how: Any) -> Made:
    recorder = MechanismRecorder(SeededBits(3), frozen=frozen)
    with Curator.for_tests(engine=Memory(), bits=SeededBits(5)) as curator:
        types = {"id": "int", "customer": "int", "total": "int"}
        curator.protect(
            found[0],
            name="orders",
            unit="customer",
            max_rows=1,
            account="shop",
            budget=BUDGET,
            types=types,
            neighbours=neighbours,
        )
        types = {"order_id": "int", "price": "float", "gift": "bool"}
        curator.protect(
            found[1], name="items", unit="order_id -> orders.id", max_rows=1, types=types, bounds={"price": (0, 20)}
        )
        twin = observe_curator(curator, engine=curator._engine, releaser=Releaser(SeededBits(7)), salt="salt")
        with watch_mechanisms(recorder):
            table = twin.synthesize("SELECT price, gift FROM items", epsilon=20, delta=1e-6, bins=3, **how)
        seen = {"model": table.model.to_json(), "rows": table.table.to_pydict(), "notes": table.notes}
        return Made(recorder.made, recorder.strayed, seen, table.event, charged_in(curator))


def complaint(seed: int, name: str, neighbours: Neighbours, limit: int) -> str:
    found = shop(seed)
    how: dict[str, Any] = {"generator": name, "rows_per_unit": limit}
    first = made(found, neighbours, **how)
    other = without(found, 1 + seed % 5, neighbours, seed)
    return complaint_of(first, made(other, neighbours, first.handed, **how))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", list(Neighbours), ids=lambda one: str(one.value))
@pytest.mark.parametrize("name", GENERATORS)
def test_a_customer_moves_the_items_no_further_than_noise_hides(name: str, neighbours: Neighbours) -> None:
    assert complaint(4, name, neighbours, 2) == ""


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", list(Neighbours), ids=lambda one: str(one.value))
@pytest.mark.parametrize("name", GENERATORS)
def test_many_customers_move_the_items_no_further_than_noise_hides(name: str, neighbours: Neighbours) -> None:
    for seed in range(25):
        assert complaint(seed, name, neighbours, 1 + seed % 3) == "", seed


def test_the_table_of_items_is_charged_to_the_account_of_customers() -> None:
    found = made(shop(1), Neighbours.ADD_REMOVE, generator="mst")
    assert [found.event] == found.charged
