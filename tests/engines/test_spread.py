"""Spreads: every engine counts the same kept units by their numbers of groups, and one unit moves few of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest

from discreet.engines import Memory
from discreet.engines.row_choice import normalize_id
from discreet.errors import InvalidParameter
from discreet.plan.model.readings import Groups, Reading, Spread, Statistic
from discreet.plan.validation import check_reading
from tests.cases import every, try_all
from tests.effort import some
from tests.engines.tables import ENGINES, PRINTERS, B, Bench, N, T, bounding, call, col, lit
from tests.engines.test_bounding import COLUMNS, crowd, table
from tests.engines.test_split import counts
from tests.open_groups import unsealed

KEYS = (col("a", N), col("b", T))
LIMITS = [(1, 1), (3, 1), (17, 2), (10**9, 10**9)]


def reading(limits: tuple[int, int], keys: tuple[Any, ...] = KEYS, **more: Any) -> Reading:
    return Reading(table="t", keys=keys, bounding=bounding(*limits), **{"spread": Spread()} | more)


@pytest.mark.parametrize("rows", [table(13, 150, 11), crowd()[:200]], ids=["table", "crowd"])
def test_every_engine_counts_the_same(bench: Bench, rows: list[dict[str, Any]]) -> None:
    bench.load(rows, COLUMNS)
    among = ENGINES if len(rows) == 150 else PRINTERS

    def check_units(limits: tuple[int, int]) -> None:
        whole = reading(limits)
        found = counts(bench.agreed(whole))
        people = bench.agreed(dataclasses.replace(whole, spread=None, statistics=(Statistic(kind="units"),)))
        assert {key: (sum(each.values()),) for key, each in found.items()} == people
        assert all(n <= limits[0] for each in found.values() for n in each)
        first = tuple(sorted(found, key=repr)[:3])
        for other in (
            reading(limits, keys=(col("b", T),)),
            reading(limits, where=call("less", B, col("a", N), lit(6, N))),
            reading(limits, spread=Spread(first)),
            reading(limits, spread=Spread(((1, "1"), (2, None), (99, "nobody's")))),
        ):
            bench.agreed(other, among=among)
        assert not set(first) & set(bench.agreed(reading(limits, spread=Spread(first)), among=among))

    try_all(some(LIMITS, 7), check_units)


def spread_of(rows: list[dict[str, Any]], limits: tuple[int, int], without: tuple[Any, ...] = ()) -> Groups:
    engine = Memory()
    engine.register("t", rows, COLUMNS)
    return unsealed(engine.read(reading(limits, spread=Spread(without))))


@every("limits", [(1, 1), (2, 1), (4, 2)])
@every("hides", [False, True])
def test_one_unit_more_is_one_more_in_each_of_its_groups(limits: tuple[int, int], hides: bool) -> None:
    rows = table(9, 80, 5)
    units = sorted({unit for row in rows if (unit := normalize_id(row["u"])) is not None}, key=repr)
    without = tuple(sorted(spread_of(rows, limits), key=repr)[:4]) if hides else ()
    whole = counts(spread_of(rows, limits, without))
    for unit in units:
        fewer = counts(spread_of([row for row in rows if normalize_id(row["u"]) != unit], limits, without))
        moved = {key: whole.get(key, Counter()) - fewer.get(key, Counter()) for key in {**whole, **fewer}}
        back = {key: fewer.get(key, Counter()) - whole.get(key, Counter()) for key in moved}
        changed = [each for each in moved.values() if each]
        assert not any(back.values())
        assert len(changed) <= limits[0]
        assert all(each == Counter({len(changed): 1}) for each in changed)


@every(
    "wrong",
    [
        {"bounding": None},
        {"keys": ()},
        {"public_keys": ((1, "1"),)},
        {"statistics": (Statistic(kind="rows"),)},
        {"spread": Spread(((1,),))},
        {"spread": Spread((("1", "1"),))},
    ],
)
def test_other_readings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        check_reading(dataclasses.replace(reading((2, 1)), **wrong), {"t": COLUMNS})
