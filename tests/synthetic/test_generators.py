"""Generators: their budget to the last digit, neighbours through the recorder, mutants, bad input, text, accuracy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import accounting
from discreet.accounting.zcdp import zcdp
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.errors import InternalError, InvalidParameter
from discreet.mechanisms import Exponential, Gaussian
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import ZCDP, Neighbours
from discreet.progress import told_to
from discreet.synthetic import AIM, MST, AllPairs, Bins, Domain, Independent, Keys, Model, all_pairs, measurement_log
from discreet.synthetic.coded_rows import CodedRows
from discreet.synthetic.generator import Generator, LearnedModel
from discreet.synthetic.inference.junction_tree import tree_size
from discreet.synthetic.measurement_log import MeasurementLog
from discreet.synthetic.merged_values import Merge

Frame = dict[str, list[Any]]
Make = Callable[..., Generator]

DOMAIN = {"a": ["x", "y"], "b": range(0, 6, 2), "c": [0, 1]}
GENERATORS: list[Make] = [Independent, MST, AIM, AllPairs]
RELATIONS = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]
FORBIDDEN = [{"a": ["x"], "b": range(2)}]


def rows(count: int, seed: int = 1, units: int = 0) -> Frame:
    """Rows with columns that depend on each other, and missing values."""
    u = uniforms((count, 4), bits=SeededBits(seed))
    a = u[:, 0] < 0.6
    frame: Frame = {
        "a": [None if gone else "xy"[int(x)] for x, gone in zip(a, u[:, 3] < 0.1, strict=True)],
        "b": (6 * np.where(a, u[:, 1], u[:, 1] ** 2)).tolist(),
        "c": [int(x) for x in (u[:, 2] < 0.8) ^ a],
    }
    return frame | ({"who": [row % units for row in range(count)]} if units else {})


def without(frame: Frame, places: set[int], instead: Frame | None = None) -> Frame:
    more = instead or {name: [] for name in frame}
    return {
        name: [value for place, value in enumerate(column) if place not in places] + more[name]
        for name, column in frame.items()
    }


def fitted(generator: Generator, frame: Frame, recorder: MechanismRecorder, **options: Any) -> Model:
    with watch_mechanisms(recorder):
        return generator.fit(frame, **({"domain": DOMAIN} | options))


def public(model: Model) -> dict[str, Any]:
    """All that a model holds, which is a function of what was released if it is private."""
    found: dict[str, Any] = json.loads(model.to_json())
    return found


def complaint(generator: Generator, frame: Frame, neighbour: Frame, **options: Any) -> str:
    """What is wrong with a generator on neighbours, if the same is released from both; empty if nothing is."""
    seen = MechanismRecorder(SeededBits(3))
    model = fitted(generator, frame, seen, **options)
    again = MechanismRecorder(SeededBits(3), frozen=seen.made)
    try:
        other = fitted(generator, neighbour, again, **options)
    except InvalidParameter:  # what came out before does not fit what is asked for now
        assert again.strayed
        return "another mechanism, or another shape"
    if again.strayed or len(seen.made) != len(again.made):
        return "another mechanism, or another shape"
    for one, two in zip(seen.made, again.made, strict=True):
        moved = np.abs(np.asarray(one.inputs[0]) - np.asarray(two.inputs[0]))
        if isinstance(one.mechanism, Gaussian) and int((moved**2).sum()) > one.mechanism.sensitivity**2:
            return "a marginal moved too far"
        if isinstance(one.mechanism, Exponential) and int(moved.max()) > one.mechanism.sensitivity:
            return "a score moved too far"
    priced = sum((zcdp(handed.mechanism.event).rho for handed in seen.made), Fraction(0))
    if priced > model.rho:
        return "more was drawn than charged"
    return "" if public(model) == public(other) else "a model that was not released"


def neighbours(frame: Frame, relation: Neighbours, limit: int, seed: int) -> Frame:
    """The frame without one unit, or with other rows of it; rows in another order."""
    first = seed % 4
    mine = {place for place, who in enumerate(frame.get("who", range(len(frame["a"])))) if who == first}
    if relation is Neighbours.ADD_REMOVE:
        return without(frame, mine)
    instead = rows(2 * limit, seed + 50)
    if "who" in frame:
        instead["who"] = [first] * (2 * limit)
    else:
        instead = {name: column[:1] for name, column in instead.items()}
    return without(frame, mine, instead)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("limit", [1, 2])
def test_one_unit_moves_what_is_measured_by_no_more_than_its_sensitivity(
    make: Make, relation: Neighbours, limit: int
) -> None:
    for seed in range(4):
        generator = make(epsilon=3 if seed % 2 else 100, delta=1e-6, neighbours=relation)
        grouped = {"unit": "who", "rows_per_unit": limit} if limit > 1 else {}
        frame = rows(30, seed, units=12 if limit > 1 else 0)
        other = neighbours(frame, relation, limit, seed)
        assert complaint(generator, frame, other, **grouped) == ""


@pytest.mark.slow
@pytest.mark.parametrize("make", GENERATORS)
def test_two_hundred_random_tables_are_like_their_neighbours(make: Make) -> None:
    """Other domains, rules, limits and relations each time."""
    kinds: list[Any] = [["x", "y"], ["x"], [0, 1], range(0, 6, 2), Bins([0, 1.5, 6], missing=False)]
    for seed in range(200):
        draws = uniforms(8, bits=SeededBits(seed + 1000))
        relation, limit = RELATIONS[int(draws[0] * 2)], 1 + int(draws[1] * 3)
        domain = {name: kinds[int(draw * len(kinds))] for name, draw in zip("abc", draws[2:], strict=False)}
        frame = rows(int(draws[5] * 40), seed, units=12)
        generator = make(epsilon=float(10 ** (3 * draws[6] - 1)), delta=1e-6, neighbours=relation)
        other = neighbours(frame, relation, limit, seed)
        told = complaint(generator, frame, other, domain=domain, unit="who", rows_per_unit=limit)
        assert told == "", seed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", GENERATORS)
def test_an_empty_table_is_like_one_with_a_single_row(make: Make) -> None:
    empty: Frame = {"a": [], "b": [], "c": []}
    generator = make(epsilon=1, delta=1e-6)
    assert complaint(generator, rows(1), empty) == ""
    assert complaint(generator, {"a": [None], "b": [None], "c": [None]}, empty, forbidden=FORBIDDEN) == ""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("domain", [DOMAIN, {"a": ["x", "y"]}])
def test_charges_are_the_budget_exactly_and_draws_are_the_charges(
    make: Make, relation: Neighbours, domain: Mapping[str, Any]
) -> None:
    generator = make(epsilon=1, delta=1e-9, neighbours=relation)
    seen = MechanismRecorder(SeededBits(3))
    frame = {name: column for name, column in rows(200).items() if name in domain}
    model = fitted(generator, frame, seen, domain=domain)
    assert sum((rho for _, rho in model.charges), Fraction(0)) == model.rho
    assert model.event == generator.plan_event(domain)
    prices = [zcdp(handed.mechanism.event).rho for handed in seen.made]
    assert len(prices) == len(model.charges)
    for price, (_, charged) in zip(prices, model.charges, strict=True):
        assert charged * (1 - Fraction(1, 10**12)) < price <= charged
    if make is not AIM:
        assert [handed.mechanism.event for handed in seen.made] == list(generator.plan_releases(Domain(domain)) or [])
    epsilon = accounting.epsilon(model.event, 1e-9)
    gaussian = make is MST and len(domain) == 1  # for which zCDP leaves a little unused
    assert (0.94 if gaussian else 0.999) < epsilon <= 1


@dataclass(frozen=True, kw_only=True)
class ExactNumber(Independent):
    """Knows the number of rows without having paid for it."""

    def measure_and_fit(
        self, log: MeasurementLog, rows: CodedRows, domain: Domain, total: float | None
    ) -> LearnedModel:
        del total
        return super().measure_and_fit(log, rows, domain, float(len(rows.codes)))


@dataclass(frozen=True, kw_only=True)
class BinsOfData(Independent):
    """Takes the last edge from the data."""

    def fit(self, frame: Any, *, domain: Any, **options: Any) -> Model:
        return super().fit(frame, domain={**domain, "b": Bins([0, 2, max(frame["b"])])}, **options)


@dataclass(frozen=True, kw_only=True)
class DataWeights(AIM):
    """Weights candidates by how many rows there are."""

    def measure_and_fit(
        self, log: MeasurementLog, rows: CodedRows, domain: Domain, total: float | None
    ) -> LearnedModel:
        weights = {names: weight * len(rows.codes) for names, weight in self.weights(domain).items()}
        biased = AIM(epsilon=self.epsilon, delta=self.delta)
        object.__setattr__(biased, "weights", lambda _: weights)
        return biased.measure_and_fit(log, rows, domain, total)


@dataclass(frozen=True, kw_only=True)
class UnpaidMerge(MST):
    """Merges values by exact counts."""

    def measure_and_fit(
        self, log: MeasurementLog, rows: CodedRows, domain: Domain, total: float | None
    ) -> LearnedModel:
        found = super().measure_and_fit(log, rows, domain, total)
        weights = rows.counts(("b",)) / max(1, len(rows.codes))
        return replace(found, merges={**found.merges, "b": Merge(np.zeros(4, dtype=np.int64), weights)})


MUTANTS: list[tuple[Make, str]] = [
    (ExactNumber, "a model that was not released"),
    (BinsOfData, "a model that was not released"),
    (UnpaidMerge, "a model that was not released"),
    (DataWeights, "another mechanism, or another shape"),
]


@pytest.mark.parametrize(("make", "told"), MUTANTS)
def test_a_look_that_was_not_paid_for_is_noticed(make: Make, told: str) -> None:
    frame = rows(30)
    other = without(frame, {int(np.argmax(frame["b"]))})
    assert complaint(make(epsilon=3, delta=1e-6), frame, other) == told


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [MST, AIM])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_score_of_another_sensitivity_is_noticed(
    make: Make, relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is three times as large, while the log is told of once."""
    honest = measurement_log.l1_error
    module = __import__(f"discreet.synthetic.{make.__name__.lower()}", fromlist=["l1_error"])
    monkeypatch.setattr(module, "l1_error", lambda counts, estimate: 3 * honest(counts, estimate))
    generator = make(epsilon=100, delta=1e-6, neighbours=relation)
    frame = rows(30)
    found = {complaint(generator, frame, neighbours(frame, relation, 1, seed)) for seed in range(5)}
    assert "a score moved too far" in found


def test_a_sensitivity_of_the_other_relation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MeasurementLog, "l2_sensitivity", property(lambda _: Fraction(1)))
    frame = rows(30)
    generator = Independent(epsilon=3, delta=1e-6, neighbours=Neighbours.REPLACE)
    found = {complaint(generator, frame, neighbours(frame, Neighbours.REPLACE, 1, seed)) for seed in range(3)}
    assert "a marginal moved too far" in found


@pytest.mark.parametrize("make", GENERATORS)
def test_charges_that_differ_from_draws_are_noticed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that draws for twice the price, with its own check taken out."""
    honest = MeasurementLog._noise
    monkeypatch.setattr(MeasurementLog, "_noise", lambda self, rho: honest(self, 2 * rho))
    with pytest.raises(InternalError):
        make(epsilon=3, delta=1e-6).fit(rows(30), domain=DOMAIN)
    monkeypatch.setattr(measurement_log, "zcdp", lambda _: ZCDP(0))
    frame = rows(30)
    if make is AIM:
        assert complaint(make(epsilon=3, delta=1e-6), frame, without(frame, {0})) == "more was drawn than charged"
    else:  # what was planned is not what was drawn
        with pytest.raises(InternalError):
            make(epsilon=3, delta=1e-6).fit(frame, domain=DOMAIN)


@pytest.mark.parametrize("make", GENERATORS)
def test_a_model_is_kept_as_text(make: Make) -> None:
    model = make(epsilon=2, delta=1e-9, random_state=5).fit(pd.DataFrame(rows(300)), domain=DOMAIN, forbidden=FORBIDDEN)
    again = Model.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    assert not model.private
    first, second = model.sample(100, random_state=1), again.sample(100, random_state=1)
    assert isinstance(first, pd.DataFrame)
    pd.testing.assert_frame_equal(first, second)
    assert len(model.sample()) == model.rows
    with pytest.raises(InvalidParameter):
        Model.from_json("{}")


@pytest.mark.parametrize("make", GENERATORS)
def test_what_is_forbidden_never_occurs(make: Make) -> None:
    rules: list[dict[str, Any]] = [{"a": ["x"], "b": range(2)}, {"c": [None]}, {"a": [None], "c": [1]}]
    model = make(epsilon=5, delta=1e-6, random_state=4).fit(rows(400), domain=DOMAIN, forbidden=rules)
    codes = model.sample_codes(5000)
    a, b, c = codes.T
    assert not ((a == 0) & (b == 0)).any()
    assert not (c == 2).any()
    assert not ((a == 2) & (c == 1)).any()
    assert len(np.unique(codes, axis=0)) > 3


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", [MST, AIM, AllPairs])
def test_almost_without_noise_a_chain_is_reproduced(make: Make) -> None:
    """At a huge epsilon all pairs of a chain a - b - c come back, up to noise and the rounding of probabilities."""
    u = uniforms((20_000, 3), bits=SeededBits(8))
    a = (u[:, 0] < 0.3).astype(int)
    b = np.where(u[:, 1] < 0.8, a, 2)
    c = np.where(u[:, 2] < 0.7, b, 0)
    domain = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1, 2]}
    model = make(epsilon=1e6, delta=1e-6, random_state=1).fit({"a": a, "b": b, "c": c}, domain=domain)
    assert model.rows == 20_000
    exact = CodedRows(model.domain.sizes, np.stack([a, b, c], axis=1))
    for pair in [("a", "b"), ("b", "c")]:
        np.testing.assert_allclose(model.counts(pair), exact.counts(pair), atol=1e-6 * model.rows)
    sample = CodedRows(model.domain.sizes, model.sample_codes())
    for pair in [("a", "b"), ("b", "c")]:
        assert np.abs(sample.counts(pair) - exact.counts(pair)).max() <= 20


def test_rare_values_are_one_and_are_told_apart_again() -> None:
    values = ["common"] * 4000 + ["often"] * 4000 + ["rare"] * 3
    other = [int(value == "often") for value in values]
    domain = {"word": ["common", "often", "rare", *(f"never {n}" for n in range(40))], "flag": [0, 1]}
    model = MST(epsilon=1, delta=1e-6, random_state=3).fit({"word": values, "flag": other}, domain=domain)
    merge = model.merges["word"]
    assert merge.size < 10
    assert merge.weights[merge.places == merge.places[5]].sum() == pytest.approx(1)
    found = model.counts(("word", "flag"))
    assert found.shape == (44, 3)
    assert found.sum() == pytest.approx(model.rows)
    words = CodedRows(model.domain.sizes, model.sample_codes()).counts(("word",))
    assert np.abs(words - found.sum(axis=1)).max() < 60


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"domain": {"a": ["x"], "b": [1]}}, "column"),
        ({"domain": {}}, "domain"),
        ({"unit": "who"}, "unit"),
        ({"unit": "a"}, "unit"),
        ({"rows_per_unit": 2}, "rows_per_unit"),
        ({"rows": 0}, "rows"),
    ],
)
def test_bad_input_is_refused_by_public_facts(options: dict[str, Any], name: str) -> None:
    for make in GENERATORS:
        with pytest.raises(InvalidParameter) as caught:
            make(epsilon=1, delta=1e-6).fit(rows(5), **({"domain": DOMAIN} | options))
        assert caught.value.name == name


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MST(epsilon=0, delta=1e-6),
        lambda: MST(epsilon=1, delta=0),
        lambda: MST(epsilon=1, delta=1e-6, neighbours="both"),
        lambda: MST(epsilon=1, delta=1e-6, random_state="x"),  # type: ignore[arg-type]
        lambda: MST(epsilon=1, delta=1e-6, shares=(1, 1)),  # type: ignore[arg-type]
        lambda: MST(epsilon=1, delta=1e-6, shares=(1, 0, 1)),
        lambda: AIM(epsilon=1, delta=1e-6, degree=0),
        lambda: AIM(epsilon=1, delta=1e-6, workload=(("z",),)).plan_event(DOMAIN),
        lambda: AIM(epsilon=1, delta=1e-6, most_cells=3).plan_event(DOMAIN),
        lambda: AIM(epsilon=1, delta=1e-6, workload=()).plan_event(DOMAIN),
        lambda: MST(epsilon=1, delta=1e-6).plan_event({"a": range(60_000), "b": range(60_000)}),
    ],
)
def test_bad_parameters_are_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(InvalidParameter):
        wrong()


def test_a_number_of_rows_that_is_public_is_kept() -> None:
    for make in GENERATORS:
        model = make(epsilon=1, delta=1e-6, random_state=2).fit(rows(100), domain=DOMAIN, rows=100)
        assert model.rows == 100
        assert len(model.sample()["a"]) == 100


def test_a_workload_says_what_is_worth_measuring() -> None:
    generator = AIM(epsilon=1, delta=1e-6, workload=(("a", "b"),), random_state=2)
    assert generator.weights(Domain(DOMAIN)) == {("a",): 1, ("b",): 1, ("a", "b"): 2}
    model = generator.fit(rows(2000), domain=DOMAIN)
    assert {about for about, _ in model.charges} <= {("a",), ("b",), ("c",), ("a", "b"), ("choice",)}


def test_aim_pays_by_rounds_of_one_to_nine_that_only_become_dearer() -> None:
    model = AIM(epsilon=1, delta=1e-6, random_state=2).fit(rows(3000), domain=DOMAIN)
    prices = [rho for _, rho in model.charges]
    assert prices[:3] == [model.rho * Fraction(9, 10) / (16 * 3)] * 3
    rounds = list(zip(prices[3::2], prices[4::2], strict=True))
    assert all(9 * choice == measured for choice, measured in rounds)
    steps = [later[0] / earlier[0] for earlier, later in pairwise(rounds[:-1])]
    assert set(steps) <= {Fraction(1), Fraction(4)}
    assert len(rounds) < 45  # some rounds became dearer


@pytest.mark.parametrize("most", [20, 24, 36])
def test_aim_keeps_its_model_within_the_limit(most: int) -> None:
    model = AIM(epsilon=50, delta=1e-6, degree=3, most_cells=most, random_state=2).fit(rows(3000), domain=DOMAIN)
    size = tree_size(model.domain.sizes, [measured.attributes for measured in model.measurements])
    assert size <= most
    assert (size == 36) is (most == 36)  # three columns at once are worth it, where there is room for them


@pytest.mark.parametrize("part", [64, 1])
def test_a_costly_pair_does_not_take_the_room_of_cheap_ones(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an order of cheap and costly (a part of 1) it does, since the model gains most from it."""
    monkeypatch.setattr(all_pairs, "_ROUNDS", 1)
    monkeypatch.setattr(all_pairs, "_CHEAP", part)
    first = np.arange(6000) % 60
    frame = {"a": first, "b": first, "c": first % 2}
    domain = {name: Keys(range(size), missing=False) for name, size in {"a": 60, "b": 60, "c": 2}.items()}
    made = AllPairs(epsilon=10, delta=1e-9, most_cells=4000, random_state=1)  # room for a and b, not for all three
    model = made.fit(frame, domain=domain)
    together = {frozenset(clique) for clique in model.law.tree.cliques}
    assert (frozenset("ab") in together) is (part == 1)
    assert ({frozenset("ac"), frozenset("bc")} <= together) is (part == 64)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("generator", "stages"),
    [
        (Independent, ["Measuring columns"]),
        (AllPairs, ["Measuring columns", "Measuring pairs of columns"]),
        (MST, ["Measuring columns", "Choosing pairs of columns and measuring them"]),
        (AIM, ["Measuring columns", "Choosing combinations of columns and measuring them"]),
    ],
)
def test_stages_are_planned_whatever_is_drawn(generator: type[Generator], stages: list[str]) -> None:
    """Neither what was chosen nor how often can be told from them, without a curator as with one."""
    frame, domain = (
        {"a": [0, 0, 1, 1] * 50, "b": [0, 0, 1, 1] * 50, "c": [0, 1] * 100},
        {name: [0, 1] for name in "abc"},
    )
    charges = set()
    for seed in range(4):
        told: list[str] = []
        with told_to(told.append):
            model = generator(epsilon=1, delta=1e-6, random_state=seed).fit(frame, domain=domain)
        assert told == stages
        charges.add(tuple(about for about, _ in model.charges))
    assert (len(charges) > 1) is (generator in (MST, AIM))  # of these, what was measured differs
