"""Places within bins: pieces of public edges, one paid histogram of each column, numbers that come back into them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.zcdp import zcdp
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.errors import InternalError, InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours
from discreet.privacy.events import Composed, Concentrated
from discreet.synthetic import AIM, MST, AllPairs, Bins, Domain, Independent, Model, generator
from discreet.synthetic.coded_rows import CodedRows
from discreet.synthetic.domain.bin_pieces import PIECES, BinPieces
from discreet.synthetic.generator import HISTOGRAM_SHARE, Generator, coarse, measured_pieces
from discreet.synthetic.measurement_log import MeasurementLog

Make = Callable[..., Generator]
GENERATORS: list[Make] = [Independent, MST, AIM, AllPairs]
RELATIONS = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]
DOMAIN = {
    "age": Bins([0, 30, 60], within="histogram"),
    "sex": ["F", "M"],
    "pay": Bins([0.0, 1.0, 8.0], within="histogram"),
}


def frame(count: int, seed: int = 1, units: int = 0) -> dict[str, list[Any]]:
    u = uniforms((count, 3), bits=SeededBits(seed))
    made: dict[str, list[Any]] = {
        "age": [int(30 * x * x) + 30 * (y < 0.3) for x, y, _ in u],
        "sex": ["FM"[int(2 * z)] for *_, z in u],
        "pay": [None if x < 0.1 else float(8 * y**3) for x, y, _ in u],
    }
    return made | ({"who": [row % units for row in range(count)]} if units else {})


# ----------------------------------------------------------------------------------------------------------- pieces


@given(
    edges=st.sets(st.integers(-(2**40), 2**40), min_size=2, max_size=6).map(sorted),
    numbers=st.lists(st.floats(), max_size=20),
    whole=st.booleans(),
    missing=st.booleans(),
)
@settings(deadline=None)
def test_a_piece_lies_in_its_bin(edges: list[int], numbers: list[float], whole: bool, missing: bool) -> None:
    bins = Bins(edges, whole=whole, within="histogram", missing=missing)
    given_numbers = [*numbers, *edges, *(edge - 0.5 for edge in edges), None]
    fine = bins.fine_codes(given_numbers)
    assert ((fine >= 0) & (fine < bins.fine_size)).all()
    assert bins.code_of_fine[fine].tolist() == bins.codes(given_numbers).tolist()
    assert bins.code_of_fine.size == bins.fine_size
    assert fine.tolist() == [bins.fine_codes([number])[0] for number in given_numbers]


@given(
    edges=st.sets(st.floats(-1e300, 1e300), min_size=2, max_size=5).map(sorted),
    shares=st.lists(st.floats(0, 1), min_size=PIECES, max_size=PIECES),
    uniform=st.sampled_from([2.0**-53, 0.25, 0.5, 1 - 2.0**-53]),
)
@settings(deadline=None)
def test_numbers_come_back_into_their_bins(edges: list[float], shares: list[float], uniform: float) -> None:
    bins = Bins(edges, whole=False, within="histogram")
    part = np.array(shares) + 1e-3
    told = bins.with_shares(np.tile(part / part.sum(), len(edges) - 1))
    codes = np.arange(told.size)
    assert told.codes(told.values(codes, np.full(codes.size, uniform))).tolist() == codes.tolist()


def test_whole_numbers_stay_whole_and_have_the_shares_of_their_pieces() -> None:
    bins = Bins([0, 3, 100], within="histogram")
    pieces = bins.pieces
    assert pieces.bins.tolist() == [0] * 3 + [1] * PIECES
    assert pieces.edges[:4].tolist() == [0, 1, 2, 3]
    shares = [0.5, 0.0, 0.5, *([0.0] * 7), 1.0]
    told = bins.with_shares(shares)
    found = told.values(np.repeat([0, 1], 1000), uniforms(2000, bits=SeededBits(1)))
    assert {type(number) for number in found} == {int}
    assert set(found[:1000]) == {0, 2}
    assert abs(found[:1000].count(0) - 500) < 100  # six deviations of 16
    assert min(found[1000:]) >= pieces.edges[-2]
    assert set(found[1000:]) == set(range(int(pieces.edges[-2]), 100))


def test_bins_of_one_number_have_nothing_to_measure() -> None:
    bins = Bins(range(5), within="histogram")
    assert not bins.asks
    assert "evenly" in bins.detail
    made = Independent(epsilon=1, delta=1e-9, random_state=1).fit({"a": [1, 2]}, domain={"a": bins})
    assert len(made.charges) == 1


def test_noisy_counts_become_shares() -> None:
    pieces = BinPieces.of((0.0, 2.0, 4.0, 6.0), whole=True)
    found = pieces.shares(np.array([6.0, 2.0, 9.0, -1.0, 0.4, -0.2]), 0.5)
    np.testing.assert_allclose(found, [0.75, 0.25, 1.0, 0.0, 0.5, 0.5])


@pytest.mark.parametrize("shares", [[1.0], [0.5] * 16, [2.0, -1.0] * 8, [float("nan")] * 16])
def test_other_shares_are_refused(shares: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        Bins([0.0, 1.0, 2.0], within="histogram").with_shares(shares)


@pytest.mark.parametrize("wrong", ["even", "", None, 8])
def test_another_way_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter) as told:
        Bins([0, 1], within=wrong)
    assert told.value.name == "within"


def test_texts_of_domains_keep_how_and_old_texts_are_the_same() -> None:
    domain = Domain(DOMAIN)
    assert Domain.from_json(domain.to_json()) == domain
    told = domain.with_columns({"age": Bins([0, 30, 60], within="histogram").with_shares([1 / 8] * 16)})
    assert Domain.from_json(told.to_json()) == told
    assert Bins([0, 1]).as_dict() == {"kind": "bins", "edges": [0.0, 1.0], "missing": True, "whole": True}
    assert domain.sizes == Domain({"age": Bins([0, 30, 60]), "sex": ["F", "M"], "pay": Bins([0.0, 1.0, 8.0])}).sizes


# ----------------------------------------------------------------------------------------------------------- budget


def complaint(make: Generator, one: Any, other: Any, **options: Any) -> str:
    """What is wrong with a generator on neighbours, if the same is released from both; empty if nothing is."""
    seen = MechanismRecorder(SeededBits(3))
    with watch_mechanisms(seen):
        model = make.fit(one, domain=DOMAIN, **options)
    again = MechanismRecorder(SeededBits(3), frozen=seen.made)
    with watch_mechanisms(again):
        twin = make.fit(other, domain=DOMAIN, **options)
    if again.strayed or len(seen.made) != len(again.made):
        return "another mechanism, or another shape"
    for first, second in zip(seen.made, again.made, strict=True):
        moved = np.abs(np.asarray(first.inputs[0]) - np.asarray(second.inputs[0]))
        square = int((moved**2).sum()) if type(first.mechanism).__name__ == "Gaussian" else int(moved.max()) ** 2
        if square > first.mechanism.sensitivity**2:
            return "something moved too far"
    if sum((zcdp(handed.mechanism.event).rho for handed in seen.made), Fraction(0)) > make.whole_rho():
        return "more was drawn than charged"
    same = json.loads(model.to_json()) == json.loads(twin.to_json())
    return "" if same else "a model that was not released"


def neighbour(table: dict[str, list[Any]], relation: Neighbours, who: int) -> dict[str, list[Any]]:
    """Without a person, or with other rows of them."""
    kept = [place for place, owner in enumerate(table["who"]) if owner != who]
    left = {name: [column[place] for place in kept] for name, column in table.items()}
    if relation is Neighbours.ADD_REMOVE:
        return left
    instead = frame(4, seed=who + 70) | {"who": [who] * 4}
    return {name: left[name] + instead[name] for name in left}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("limit", [1, 3])
def test_one_unit_moves_histograms_no_further_than_noise_hides(make: Make, relation: Neighbours, limit: int) -> None:
    table = frame(40, seed=limit, units=12)
    made = make(epsilon=30, delta=1e-6, neighbours=relation)
    assert complaint(made, table, neighbour(table, relation, limit), unit="who", rows_per_unit=limit) == ""


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("limit", [1, 2])
def test_the_sensitivity_of_a_histogram_by_brute_force(relation: Neighbours, limit: int) -> None:
    """All rows of one unit in 6 fine cells, beside those of others: the largest move is the declared one."""
    bins = Bins([0, 2, 5], within="histogram")
    domain = Domain({"a": bins})
    assert bins.fine_size == 6
    log = MeasurementLog(rho=1, neighbours=relation, rows_per_unit=limit)
    tables = [cells for n in range(limit + 1) for cells in itertools.combinations_with_replacement(range(6), n)]
    pairs = itertools.product(tables, tables) if relation is Neighbours.REPLACE else ((one, ()) for one in tables)
    worst = 0
    for one, other in pairs:
        lines = [np.array([3, *cells], dtype=np.int64)[:, None] for cells in (one, other)]
        first, second = (CodedRows(domain.fine_sizes, line).counts(("a",)) for line in lines)
        worst = max(worst, int(((first - second) ** 2).sum()))
    assert worst == log.rows_per_unit * log.l1_sensitivity <= log.l2_sensitivity**2


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", GENERATORS)
def test_histograms_are_part_of_the_budget_to_the_last_digit(make: Make, relation: Neighbours) -> None:
    made = make(epsilon=1, delta=1e-9, neighbours=relation)
    seen = MechanismRecorder(SeededBits(3))
    with watch_mechanisms(seen):
        model = made.fit(frame(60, units=20), domain=DOMAIN, unit="who", rows_per_unit=2)
    whole = made.whole_rho()
    assert sum(rho for _, rho in model.charges) == model.rho == whole
    assert model.charges[:2] == ((("age",), HISTOGRAM_SHARE * whole / 2), (("pay",), HISTOGRAM_SHARE * whole / 2))
    assert made.rho(Domain(DOMAIN)) == (1 - HISTOGRAM_SHARE) * whole
    assert model.event == made.plan_event(DOMAIN)
    drawn = [handed.mechanism.event for handed in seen.made]
    if isinstance(model.event, Composed):
        assert drawn == list(model.event.events)
    else:
        assert model.event == Concentrated(whole)
    assert sum((zcdp(event).rho for event in drawn), Fraction(0)) <= whole
    assert seen.made[0].inputs[0].size == 2 * PIECES + 1  # the pieces, and what is missing


@pytest.mark.ci
def test_mutants_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A histogram that is not charged, one that is not perturbed, and one that forgets how many rows a unit has."""
    table = frame(40, units=12)
    made = Independent(epsilon=30, delta=1e-6)
    options: dict[str, Any] = {"unit": "who", "rows_per_unit": 3}

    def unpaid(log: MeasurementLog, rows: CodedRows, domain: Domain) -> Domain:
        found = measured_pieces(log, rows, domain)
        log.charges.clear()
        return found

    def exact(log: MeasurementLog, rows: CodedRows, domain: Domain) -> Domain:
        measured_pieces(log, rows, domain)
        told = {}
        for name in ("age", "pay"):
            column = domain.columns[name]
            assert isinstance(column, Bins)
            counts = rows.counts((name,))[: column.pieces.bins.size].astype(float)
            told[name] = column.with_shares(column.pieces.shares(counts, 0.0))
        return domain.with_columns(told)

    def forgetful(log: MeasurementLog, rows: CodedRows, domain: Domain) -> Domain:
        log.rows_per_unit = 1
        return measured_pieces(log, rows, domain)

    def found() -> set[str]:
        return {complaint(made, table, neighbour(table, Neighbours.ADD_REMOVE, who), **options) for who in range(4)}

    with monkeypatch.context() as patch:
        patch.setattr(generator, "measured_pieces", unpaid)
        with pytest.raises(InternalError):
            found()
    with monkeypatch.context() as patch:
        patch.setattr(generator, "measured_pieces", exact)
        assert "a model that was not released" in found()
    with monkeypatch.context() as patch:
        patch.setattr(generator, "measured_pieces", forgetful)
        assert "something moved too far" in found()
    with monkeypatch.context() as patch:  # pays nothing by its own reckoning, and measures nevertheless
        patch.setattr(generator, "HISTOGRAM_SHARE", Fraction(1, 10**9))
        assert found() == {""}  # a small part is dear in noise, not in privacy


# ------------------------------------------------------------------------------------------------------- what it gives


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", GENERATORS)
def test_places_come_back_and_only_then(make: Make) -> None:
    """Ages are dense at the lower end of their bin; evenly, half of them would be below the middle."""
    table = frame(5000)
    shares = {}
    for within in ("uniform", "histogram"):
        domain = DOMAIN | {"age": Bins([0, 30, 60], within=within), "pay": Bins([0.0, 1.0, 8.0], within=within)}
        model = make(epsilon=10, delta=1e-6, random_state=4).fit(table, domain=domain)
        again = Model.from_json(model.to_json())
        first, second = model.sample(5000, random_state=1), again.sample(5000, random_state=1)
        assert first == second
        assert all(isinstance(age, int) for age in first["age"] if age is not None)
        shares[within] = np.mean([age % 30 < 15 for age in first["age"] if age is not None])
        assert ("histogram" in model.domain.details["age"]) is (within == "histogram")
    exact = np.mean([age % 30 < 15 for age in table["age"]])
    assert abs(shares["uniform"] - 0.5) < 0.05  # six deviations of 5000 coins are 0.042
    assert abs(shares["histogram"] - exact) < 0.05
    assert exact > 0.65


def test_a_released_domain_needs_no_other_histogram() -> None:
    model = Independent(epsilon=1, delta=1e-6, random_state=4).fit(frame(500), domain=DOMAIN)
    again = Independent(epsilon=1, delta=1e-6, random_state=5).fit(frame(500), domain=model.domain)
    assert [about for about, _ in again.charges] == [("age",), ("sex",), ("pay",)]
    assert again.domain == model.domain


def test_nothing_and_nothing_but_missing_values() -> None:
    empty: dict[str, list[Any]] = {"age": [], "sex": [], "pay": []}
    for table in (empty, {"age": [None] * 5, "sex": [None] * 5, "pay": [float("nan")] * 5}):
        model = MST(epsilon=1, delta=1e-6, random_state=1).fit(table, domain=DOMAIN)
        assert len(model.sample(10)["age"]) == 10


def test_codes_of_pieces_are_codes_of_bins() -> None:
    domain = Domain(DOMAIN)
    table = frame(200)
    fine = CodedRows(domain.fine_sizes, domain.codes(table, fine=True))
    assert coarse(fine, domain).codes.tolist() == domain.codes(table).tolist()
