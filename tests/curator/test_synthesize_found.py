"""What a curator finds out for a synthetic table beside its marginals: keys of texts, and places within bins."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import synthetic
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.curator import Curator
from discreet.curator.observation import observe_curator
from discreet.engines import DuckDB, Memory
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms import PartitionSelection
from discreet.noise import SeededBits
from discreet.plan.model.readings import Groups, Reading
from discreet.privacy import Budget, Neighbours
from discreet.privacy.events import Approx, Composed
from discreet.synthetic import generator
from discreet.synthetic.domain import FoundKeys
from discreet.synthetic.found_keys import Texts
from tests.curator.spies import Spy
from tests.open_groups import unsealed

TYPES = {"who": "int", "city": "text", "age": "int"}
FOUND: dict[str, Any] = {"domain": {"city": synthetic.UnknownKeys(most=10)}, "within": "histogram", "bins": 4}
QUICK: dict[str, Any] = {"epsilon": 6, "generator": "independent"} | FOUND


def people(count: int = 900) -> list[dict[str, Any]]:
    """Everybody has two rows; every fifth lives in a village of their own, every seventh nowhere."""
    rows: list[dict[str, Any]] = []
    for who in range(count):
        city = ["Bern", "Rome", "Oslo"][who % 3] if who % 5 else f"village {who}"
        place = city if who % 7 else None
        rows += [{"who": who, "city": place, "age": 20 + who % 10}, {"who": who, "city": "Rome", "age": 20 + who % 7}]
    return rows


def curator(rows: Any = None, budget: Any = None, engine: Any = None, **declared: Any) -> Curator:
    made = Curator.for_tests(engine=engine or Memory(), bits=SeededBits(4), **declared.pop("how", {}))
    options = {"unit": "who", "types": TYPES, "bounds": {"age": (0, 119)}} | declared
    made.protect(
        people() if rows is None else rows,
        name="t",
        budget=budget or Budget(epsilon=8, delta=1e-6),
        **{"max_rows": 1, **options},
    )
    return made


def charges(made: Curator) -> int:
    return sum(entry.kind == "charge" for entry in made.history("t"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("generator", ["independent", "mst", "aim", "allpairs"])
def test_keys_and_places_are_found_charged_first_and_kept(generator: str, tmp_path: Path) -> None:
    spy = Spy()
    made = curator(engine=spy, how={"ledger": str(tmp_path / "book.db")})
    how = QUICK | {"generator": generator}
    plan = made.plan_synthesize("t", **how)
    assert (spy.reads, charges(made)) == (0, 0)
    seen: list[int] = []
    spy.before = lambda: seen.append(charges(made))
    table = made.synthesize("t", **how)
    assert seen == [1, 1]  # the people of each text, and the rows: both after the charge
    assert (plan.event, plan.cost, plan.notes) == (table.event, table.cost, table.notes)
    assert isinstance(table.event, Composed)
    column = table.model.domain.columns["city"]
    assert isinstance(column, FoundKeys)
    assert column.labels == ("Bern", "Oslo", "Rome", "other")
    assert Approx(*column.paid) in table.event.events
    cities = Counter(table.table["city"].to_pylist())
    assert set(cities) <= {"Bern", "Oslo", "Rome", "other", None}
    assert 20 < cities["other"] < 200  # one row of each is kept: about half of 154
    assert all(isinstance(age, int) for age in table.table["age"].to_pylist() if age is not None)
    told = " ".join(table.notes)
    assert "found by a private selection" in told
    assert "placed within its bin by a private histogram" in told
    assert "reaches" in told
    assert "village" not in repr([entry.content for entry in made.history("t")])
    made.close()
    again = curator(how={"ledger": str(tmp_path / "book.db")})
    same = again.synthesize("t", **how)
    assert (same.replayed, same.table.equals(table.table), same.model.domain) == (True, True, table.model.domain)
    again.close()


def test_places_within_bins_come_back() -> None:
    """All ages are 20 to 29, in a bin of 0 to 29."""
    made = curator()
    spread = made.synthesize("SELECT age FROM t", epsilon=2, generator="independent", bins=4)
    placed = made.synthesize("SELECT age FROM t", epsilon=2, generator="independent", bins=4, within="histogram")
    ages = [[age for age in one.table["age"].to_pylist() if age is not None] for one in (spread, placed)]
    right = [np.mean([18 <= age < 30 for age in each]) for each in ages]
    assert right[0] < 0.5
    assert right[1] > 0.8
    assert "evenly" in " ".join(spread.notes)


@pytest.mark.parametrize(
    ("how", "budget", "name"),
    [
        ({}, Budget(rho=1), "delta"),
        ({"delta": 1e-9}, Budget(rho=1), "domain of city"),
        ({}, Budget(epsilon=8), "delta"),
        ({"within": "evenly"}, None, "within"),
        ({"domain": {"age": synthetic.UnknownKeys(), "city": ["Bern"]}}, None, "domain of age"),
        ({"domain": {"city": synthetic.UnknownKeys()}, "forbidden": [{"city": ["Bern"]}]}, None, "forbidden"),
    ],
)
def test_what_cannot_be_paid_or_is_wrong_is_refused_for_nothing(how: Any, budget: Any, name: str) -> None:
    spy = Spy()
    made = curator(budget=budget, engine=spy)
    with pytest.raises(InvalidParameter) as told:
        made.synthesize("t", **(QUICK | how))
    assert told.value.name == name
    assert (spy.reads, charges(made)) == (0, 0)


def test_a_refusal_of_a_text_says_how_keys_are_found() -> None:
    with pytest.raises(UnsupportedQuery) as told:
        curator().synthesize("t", epsilon=1)
    assert "UnknownKeys(most=100)" in told.value.hint


def test_a_table_of_rows_without_people_counts_rows() -> None:
    rows = [{"city": "Bern" if n % 2 else f"village {n}", "age": n % 9} for n in range(900)]
    made = curator(rows, unit=None, types={"city": "text", "age": "int"}, max_groups=1, max_rows=1)
    assert made.synthesize("t", **QUICK).model.domain.columns["city"].labels == ("Bern", "other")


def test_engines_agree() -> None:
    tables = []
    for engine in (Memory(), DuckDB()):
        pandas = pytest.importorskip("pandas")
        rows: Any = people(300) if isinstance(engine, Memory) else pandas.DataFrame(people(300))
        with curator(rows, engine=engine) as made:
            twin = observe_curator(made, engine=engine, releaser=Releaser(SeededBits(2)), salt="salt")
            tables.append(twin.synthesize("t", **QUICK, rows_per_unit=2).table)
    assert tables[0].equals(tables[1])


# -------------------------------------------------------------------------------------------------------- neighbours


class Watching(Memory):
    """An engine that keeps what it read."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[Groups] = []

    def read(self, reading: Reading) -> ExactGroups:
        found = super().read(reading)
        self.groups.append(unsealed(found))
        return found


def looked(
    rows: list[Any], limit: int, neighbours: Neighbours, frozen: Any = None
) -> tuple[Watching, MechanismRecorder]:
    bits = SeededBits(7)
    recorder = MechanismRecorder(bits, frozen=frozen, seed=1)
    engine = Watching()
    with curator(rows, engine=engine, neighbours=neighbours) as made:
        twin = observe_curator(made, engine=engine, releaser=Releaser(bits), salt="salt")
        with watch_mechanisms(recorder):
            twin.synthesize("t", **QUICK, rows_per_unit=limit)
    return engine, recorder


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("limit", [1, 2])
def test_one_person_moves_keys_and_pieces_no_further_than_noise_hides(
    limit: int, neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keys are found is frozen; how far one person moves the numbers behind them is looked at itself."""
    selections: list[PartitionSelection] = []

    def frozen(column: Any, texts: Texts, selection: PartitionSelection, bits: Any) -> FoundKeys:
        del texts, bits
        selections.append(selection)
        return FoundKeys(["Bern", "Rome"], other=column.other, missing=True, paid=(selection.epsilon, selection.delta))

    monkeypatch.setattr(generator, "found_keys", frozen)
    rows = people(30)
    for who in (5, 8):
        other = [row for row in rows if row["who"] != who]
        if neighbours is Neighbours.REPLACE:
            other += [{"who": who, "city": city, "age": 90} for city in ("nowhere", "Bern", "Oslo", None)]
        first, one = looked(rows, limit, neighbours)
        second, two = looked(other, limit, neighbours, one.made)
        counts = [{key: count for key, (count,) in engine.groups[0].items()} for engine in (first, second)]
        moved = {key: abs(counts[0].get(key, 0) - counts[1].get(key, 0)) for key in counts[0] | counts[1]}
        assert max(moved.values()) == 1
        assert sum(moved.values()) <= selections[-1].max_groups
        assert not two.strayed
        assert len(one.made) == len(two.made) == 3  # pieces of ages, cities, ages
        for left, right in zip(one.made, two.made, strict=True):
            apart = np.asarray(left.inputs[0]) - np.asarray(right.inputs[0])
            assert 0 < int((apart**2).sum()) <= left.mechanism.sensitivity**2
