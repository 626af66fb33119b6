"""People and their events: what one unit moves, one budget for two models, events that fit whose they are."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.accounting.zcdp import zcdp
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours
from discreet.privacy.events import Approx, Composed
from discreet.synthetic import AIM, MST, AllPairs, Bins, Domain, Independent, UnknownKeys
from discreet.synthetic.domain import FoundKeys, FrameKind
from discreet.synthetic.generator import Generator
from discreet.synthetic.linked import linked_generator
from discreet.synthetic.linked.linked_domain import LinkedDomain, LinkedRows, UnitColumns, linked_rows
from discreet.synthetic.linked.linked_generator import PEOPLE, check_selections, fit_linked, linked_event
from discreet.synthetic.linked.linked_model import LinkedModel
from discreet.synthetic.measurement_log import MeasurementLog

Make = Callable[..., Generator]
Tables = tuple[dict[str, list[Any]], dict[str, list[Any]]]
GENERATORS: list[Make] = [Independent, MST, AIM, AllPairs]
RELATIONS = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]


def domain_of(most: int = 3, *, texts: bool = False) -> LinkedDomain:
    people = Domain({"sex": ["F", "M"], "age": Bins([0, 40, 80], within="histogram")}, forbidden=[{"sex": [None]}])
    ward: Any = UnknownKeys(most=4) if texts else ["A", "B"]
    events = Domain({"ward": ward, "age": Bins([0, 40, 80]), "cost": Bins([0.0, 1.0, 9.0], within="histogram")})
    return LinkedDomain(people=people, events=events, names=("people", "visits"), most=most)


def tables(units: int, seed: int = 1) -> Tables:
    """The ward follows the sex, the number of visits the age; some visits are of nobody known."""
    u = uniforms((units, 2), bits=SeededBits(seed))
    people: dict[str, list[Any]] = {"who": [], "sex": [], "age": []}
    visits: dict[str, list[Any]] = {"who": [], "ward": [], "age": [], "cost": []}
    for who in range(units):
        sex, age = "FM"[int(2 * u[who, 0])], int(80 * u[who, 1])
        for column, value in zip(people.values(), (who, sex, age), strict=True):
            column.append(value)
        for visit in range(age // 20):  # 0 to 3
            row = (who, "AB"[sex == "M"], age, float(visit))
            for column, value in zip(visits.values(), row, strict=True):
                column.append(value)
    visits = {
        name: [*column, {"who": 10**6, "ward": "A", "age": 3, "cost": 2.0}[name]] for name, column in visits.items()
    }
    return people, visits


def rows_of(domain: LinkedDomain, found: Tables) -> LinkedRows:
    parts = [
        UnitColumns(table["who"], {name: column for name, column in table.items() if name != "who"}) for table in found
    ]
    return linked_rows(domain, *parts)


def fitted(made: Generator, found: Tables, domain: LinkedDomain, bits: Any = None) -> LinkedModel:
    rows = rows_of(domain, found)
    return fit_linked(made, rows, domain, kind=FrameKind.DICT, bits=bits or SeededBits(5))


def without(found: Tables, who: int, relation: Neighbours) -> Tables:
    """Both tables without a person, or with another of the same id, who has more of everything."""
    made = []
    for table in found:
        kept = [place for place, owner in enumerate(table["who"]) if owner != who]
        made.append({name: [column[place] for place in kept] for name, column in table.items()})
    if relation is Neighbours.REPLACE:
        for sex in "MF":
            for column, value in zip(made[0].values(), (who, sex, 75), strict=True):
                column.append(value)
        for visit in range(7):
            for column, value in zip(made[1].values(), (who, "AB"[visit % 2], 3, 8.0), strict=True):
                column.append(value)
    return made[0], made[1]


# ------------------------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("most", [1, 2])
def test_one_unit_moves_no_more_rows_than_its_limits_by_brute_force(most: int, relation: Neighbours) -> None:
    """All tables of one unit with up to 2 rows of people and 3 events, beside another's: rows that differ."""
    domain = LinkedDomain(
        people=Domain({"a": [0, 1]}), events=Domain({"b": UnknownKeys(most=2)}), names=("p", "e"), most=most
    )
    persons = [rows for n in range(3) for rows in itertools.combinations_with_replacement([0, 1], n)]
    events = [rows for n in range(4) for rows in itertools.combinations_with_replacement("xy", n)]
    seen: list[tuple[Counter[Any], ...]] = []
    for mine, theirs in itertools.product(persons, events):
        found = rows_of(
            domain,
            (
                {"who": ["bob", *["ann"] * len(mine)], "a": [1, *mine]},
                {"who": ["bob", *["ann"] * len(theirs)], "b": ["x", *theirs]},
            ),
        )
        texts = found.texts["e.b"]
        names = [*texts.texts, "other", None]
        people = Counter(map(tuple, found.people.codes.tolist()))
        visits = Counter((a, names[b]) for a, b in found.events.codes.tolist())
        units = Counter(dict(zip(texts.texts, texts.units.tolist(), strict=True)))
        seen.append((people, visits, units))
    against = seen if relation is Neighbours.REPLACE else [seen[0]]
    sides = 2 if relation is Neighbours.REPLACE else 1
    worst = [0, 0, 0]
    for one, other in itertools.product(seen, against):
        moved = [sum(((a - b) + (b - a)).values()) for a, b in zip(one, other, strict=True)]
        worst = [max(pair) for pair in zip(worst, moved, strict=True)]
    assert worst == [sides, sides * most, min(sides * most, 2)]  # there are two texts


def test_events_of_nobody_are_dropped_and_numbers_are_those_kept() -> None:
    domain = domain_of(2)
    rows = rows_of(domain, tables(50))
    people, visits = tables(50)
    exact = Counter(visits["who"])
    assert rows.people.codes[:, -1].tolist() == [min(exact[who], 2) for who in people["who"]]
    assert len(rows.events.codes) == rows.people.codes[:, -1].sum()
    assert domain.number == "number of visits"
    assert list(rows.events.sizes) == ["people.sex", "people.age", "visits.ward", "visits.age", "visits.cost"]


# ------------------------------------------------------------------------------------------------------------ budget


def complaint(made: Generator, one: Tables, other: Tables, domain: LinkedDomain) -> str:
    """What is wrong on neighbours, if the same is released from both; empty if nothing is."""
    seen = MechanismRecorder(SeededBits(3))
    with watch_mechanisms(seen):
        model = fitted(made, one, domain)
    again = MechanismRecorder(SeededBits(3), frozen=seen.made)
    with watch_mechanisms(again):
        twin = fitted(made, other, domain)
    if again.strayed or len(seen.made) != len(again.made):
        return "another mechanism, or another shape"
    for first, second in zip(seen.made, again.made, strict=True):
        moved = np.abs(np.asarray(first.inputs[0]) - np.asarray(second.inputs[0]))
        square = int((moved**2).sum()) if type(first.mechanism).__name__ == "Gaussian" else int(moved.max()) ** 2
        if square > first.mechanism.sensitivity**2:
            return "something moved too far"
    if sum((zcdp(handed.mechanism.event).rho for handed in seen.made), Fraction(0)) > made.whole_rho():
        return "more was drawn than charged"
    return "" if json.loads(model.to_json()) == json.loads(twin.to_json()) else "models that were not released"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", GENERATORS)
def test_one_unit_moves_both_models_no_further_than_noise_hides(make: Make, relation: Neighbours) -> None:
    one = tables(25)
    made = make(epsilon=30, delta=1e-6, neighbours=relation)
    for who in (3, 8):
        assert complaint(made, one, without(one, who, relation), domain_of()) == ""


@pytest.mark.ci
def test_mutants_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the limit's factor, with too many events, and with a whole budget for each model."""
    one = tables(25)
    made = Independent(epsilon=30, delta=1e-6)
    busy = max(range(25), key=lambda who: Counter(one[1]["who"])[who])
    other = without(one, busy, Neighbours.ADD_REMOVE)
    assert complaint(made, one, other, domain_of()) == ""
    with monkeypatch.context() as patch:
        patch.setattr(MeasurementLog, "l2_sensitivity", property(lambda _: Fraction(1)))
        assert complaint(made, one, other, domain_of()) == "something moved too far"
    with monkeypatch.context() as patch:
        honest = linked_generator.fit_linked

        def greedy(made: Generator, rows: LinkedRows, domain: LinkedDomain, **how: Any) -> LinkedModel:
            small = LinkedDomain(people=domain.people, events=domain.events, names=domain.names, most=1)
            rows.people.codes[:, -1] = rows.people.codes[:, -1].clip(0, 1)
            return honest(made, rows, small, **how)

        patch.setitem(globals(), "fit_linked", greedy)
        assert complaint(made, one, other, domain_of()) == "something moved too far"
    with monkeypatch.context() as patch:
        patch.setattr(Generator, "spent_rho", lambda self: self.whole_rho())
        assert complaint(made, one, other, domain_of()) == "more was drawn than charged"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", GENERATORS)
def test_two_models_are_one_budget_exactly(make: Make, relation: Neighbours, texts: bool) -> None:
    made = make(epsilon=2, delta=1e-6, neighbours=relation)
    domain = domain_of(texts=texts)
    seen = MechanismRecorder(SeededBits(3))
    with watch_mechanisms(seen):
        model = fitted(made, tables(60), domain)
    rest = made.rest(domain.event_domain)
    charged = [sum(rho for _, rho in part.charges) for part in (model.people, model.events)]
    assert charged == [part.rho for part in (model.people, model.events)]
    assert charged == [PEOPLE * rest.whole_rho(), (1 - PEOPLE) * rest.whole_rho()]
    assert sum(charged) == rest.whole_rho()
    assert model.event == linked_event(made, domain)
    assert isinstance(model.event, Composed)
    assert list(model.event.events)[-2:] == [model.people.event, model.events.event]
    assert accounting.epsilon(model.event, 1e-6) <= 2 * (1 + 1e-9)
    assert (model.people.rows_per_unit, model.events.rows_per_unit) == (1, 3)
    drawn = [handed.mechanism for handed in seen.made]
    if texts:
        found = model.events.domain.columns["visits.ward"]
        assert isinstance(found, FoundKeys)
        assert model.event.events[0] == Approx(*found.paid) == Approx(drawn[0].epsilon, drawn[0].delta)
        assert drawn[0].max_groups == (3 if relation is Neighbours.ADD_REMOVE else 6)
        assert found.paid[0] + Fraction(rest.epsilon) == 2
        assert list(check_selections(made, domain)) == ["visits.ward"]
        drawn = drawn[1:]
    assert sum((zcdp(each.event).rho for each in drawn), Fraction(0)) <= rest.whole_rho()


# ----------------------------------------------------------------------------------------------------- what it gives


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", [MST, AIM, AllPairs])
@pytest.mark.parametrize("texts", [False, True])
def test_events_fit_whose_they_are(make: Make, texts: bool) -> None:
    found = tables(4000)
    model = fitted(make(epsilon=20, delta=1e-6), found, domain_of(texts=texts))
    again = LinkedModel.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    people, visits = model.sample(3000, key="who", bits=SeededBits(2))
    same = again.sample(3000, key="who", bits=SeededBits(2))
    assert same == (people, visits)
    assert list(people) == ["who", "sex", "age"]
    assert list(visits) == ["who", "ward", "age", "cost"]
    assert people["who"] == list(range(1, 3001))
    numbers = Counter(visits["who"])
    assert set(numbers) <= set(people["who"])
    assert max(numbers.values()) <= 3
    sex = dict(zip(people["who"], people["sex"], strict=True))
    assert None not in people["sex"]  # a rule
    wards = Counter((sex[who], ward) for who, ward in zip(visits["who"], visits["ward"], strict=True))
    fits = wards["F", "A"] + wards["M", "B"]
    assert fits > 0.95 * sum(wards.values())
    old = [numbers[who] for who, age in zip(people["who"], people["age"], strict=True) if age is not None and age >= 40]
    young = [
        numbers[who] for who, age in zip(people["who"], people["age"], strict=True) if age is not None and age < 40
    ]
    assert abs(np.mean(old) - 2.5) < 0.15
    assert abs(np.mean(young) - 0.5) < 0.15
    assert len(model.sample(bits=SeededBits(1))[0]["id"]) == model.people.rows


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", GENERATORS)
def test_nobody_and_no_events(make: Make) -> None:
    people, visits = tables(30)
    nothing: Tables = ({name: [] for name in people}, {name: [] for name in visits})
    for found in (nothing, (people, nothing[1]), (nothing[0], visits)):
        model = fitted(make(epsilon=1, delta=1e-6), found, domain_of(texts=True))
        first, second = model.sample(10)
        assert len(first["id"]) == 10
        assert len(second["id"]) <= 30
    assert model.sample(0) == ({"id": [], "sex": [], "age": []}, {"id": [], "ward": [], "age": [], "cost": []})


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda: domain_of(0), "rows_per_unit"),
        (lambda: domain_of(5000), "rows_per_unit"),
        (
            lambda: LinkedDomain(people=Domain({"a": [1]}), events=Domain({"a": [1]}), names=("x", "x"), most=1),
            "events",
        ),
        (lambda: linked_event(AIM(epsilon=1, delta=1e-6, workload=(("a",),)), domain_of()), "workload"),
        (lambda: Domain({"a": [1]}).beside(Domain({"a": [2]})), "domain"),
        (lambda: LinkedModel.from_json("{}"), "text"),
        (lambda: LinkedModel.from_json("no"), "text"),
        (lambda: Independent(epsilon=1, delta=1e-6, share=2), "share"),
        (lambda: Independent(epsilon=1, delta=1e-6, share="0.5").plan_event({"a": UnknownKeys()}), "share"),
    ],
)
def test_bad_input_is_refused(wrong: Callable[[], object], name: str) -> None:
    with pytest.raises(InvalidParameter) as told:
        wrong()
    assert told.value.name == name


def test_a_key_is_no_column() -> None:
    model = fitted(Independent(epsilon=1, delta=1e-6), tables(20), domain_of())
    with pytest.raises(InvalidParameter) as told:
        model.sample(3, key="ward")
    assert told.value.name == "key"
