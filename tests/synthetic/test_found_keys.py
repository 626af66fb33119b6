"""Keys that are found: what one unit moves, what is paid, what comes out, and what is refused."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import accounting
from discreet.accounting.zcdp import zcdp
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.errors import InvalidParameter
from discreet.mechanisms import PartitionSelection
from discreet.noise import SeededBits
from discreet.privacy import Neighbours
from discreet.privacy.events import Approx, Composed, Concentrated, Gaussian
from discreet.synthetic import AIM, MST, AllPairs, Bins, Domain, Independent, Model, UnknownKeys, generator
from discreet.synthetic.coded_rows import units_of_values
from discreet.synthetic.domain import FoundKeys
from discreet.synthetic.domain.text_keys import LONGEST
from discreet.synthetic.found_keys import Texts, found_keys, key_selection, selection_terms
from discreet.synthetic.generator import Generator

Make = Callable[..., Generator]
GENERATORS: list[Make] = [Independent, MST, AIM, AllPairs]
RELATIONS = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]
DOMAIN: dict[str, Any] = {"city": UnknownKeys(most=5), "sex": ["F", "M"], "age": Bins([0, 30, 60], within="histogram")}
CITIES = ["Bern", "Rome", "Oslo", "other", "x" * (LONGEST + 1), None, 7]


def frame(count: int, units: int = 0) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {
        "city": [CITIES[row % 7] for row in range(count)],
        "sex": ["FM"[row % 2] for row in range(count)],
        "age": [row % 60 for row in range(count)],
    }
    return made | ({"who": [row % units for row in range(count)]} if units else {})


# --------------------------------------------------------------------------------------------------------- selection


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("limit", [1, 2])
def test_one_unit_moves_as_many_texts_as_the_selection_is_built_for(relation: Neighbours, limit: int) -> None:
    """All texts of one unit, of up to 4 rows, beside those of others: the largest move by brute force."""
    selection = key_selection((Fraction(1), Fraction(1, 10**6)), neighbours=relation, rows_per_unit=limit)
    others: list[tuple[Any, str]] = [("bob", "a"), ("bob", "c"), ("eve", "b"), (None, "a")]
    mine = [rows for n in range(4) for rows in itertools.combinations_with_replacement("abcd", n)]
    counted = []
    for rows in mine:
        whole = [*others, *(("ann", text) for text in rows)]
        texts = Texts.of_rows([text for _, text in whole], [who for who, _ in whole], limit)
        counted.append(Counter(dict(zip(texts.texts, texts.units.tolist(), strict=True))))
    pairs = (
        itertools.product(counted, counted)
        if relation is Neighbours.REPLACE
        else ((one, counted[0]) for one in counted)
    )
    moves = [{text: abs(one[text] - other[text]) for text in "abcd"} for one, other in pairs]
    assert max(max(move.values()) for move in moves) == 1
    assert max(sum(move.values()) for move in moves) == selection.max_groups
    assert selection.max_groups == limit * (1 if relation is Neighbours.ADD_REMOVE else 2)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_law_of_a_text_that_one_unit_moves(relation: Neighbours) -> None:
    """Each moved text is (epsilon / n, share of delta)-DP, by its exact probability of being shown; a mutant is not."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)

    def shown(selection: PartitionSelection, count: int) -> float:
        """P(count + Z >= threshold) for truncated discrete Laplace noise."""
        cut, scale = selection.threshold - 1, float(selection.scale)
        weights = {z: np.exp(-abs(z) / scale) for z in range(-cut, cut + 1)}
        return 0.0 if count == 0 else sum(w for z, w in weights.items() if count + z > cut) / sum(weights.values())

    def holds(selection: PartitionSelection, groups: int) -> bool:
        part, chance = float(epsilon) / groups, 1 - (1 - float(delta)) ** (1 / groups)
        for count in range(60):
            one, other = shown(selection, count), shown(selection, count + 1)
            for p, q in ((one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one)):
                if p > np.exp(part) * q + chance * (1 + 1e-9):
                    return False
        return True

    honest = key_selection((epsilon, delta), neighbours=relation, rows_per_unit=3)
    assert holds(honest, 3 if relation is Neighbours.ADD_REMOVE else 6)
    forgetful = key_selection((epsilon, delta), neighbours=relation, rows_per_unit=1)  # without the limit's factor
    assert not holds(forgetful, 3 if relation is Neighbours.ADD_REMOVE else 6)


@given(
    rows=st.lists(st.tuples(st.sampled_from(["ann", "bob", None]), st.integers(0, 4)), max_size=10),
    limit=st.integers(1, 3),
)
@settings(deadline=None)
def test_what_counts_of_a_unit_is_its_own_matter(rows: list[tuple[Any, int]], limit: int) -> None:
    def counted(lines: list[tuple[Any, int]]) -> Any:
        values = np.array([value for _, value in lines], dtype=np.int64)
        return units_of_values([who for who, _ in lines], values, 4, limit)

    total = counted(rows)
    parts = [counted([row for row in rows if row[0] == who]) for who in ("ann", "bob")]
    assert total.tolist() == sum(parts).tolist()
    for who, part in zip(("ann", "bob"), parts, strict=True):
        different = {value for owner, value in rows if owner == who and value < 4}
        assert part.sum() == min(limit, len(different))
        assert part.max() <= 1


def test_the_most_common_keys_are_kept_in_the_order_of_the_alphabet() -> None:
    column = UnknownKeys(most=2, other="rest")
    selection = PartitionSelection(epsilon=1, delta=1e-6, method="truncated")
    texts = Texts(("a", "b", "c", "d", "rest"), np.array([900, 3, 9000, 5000, 99_999]))
    found = found_keys(column, texts, selection, SeededBits(1))
    assert found.keys == ("c", "d")
    assert found.labels == ("c", "d", "rest")
    assert found.codes(["d", "a", "rest", "", None]).tolist() == [1, 2, 2, 2, 3]
    assert FoundKeys([], other="o", missing=False, paid=(1, "0.1")).codes(["d", None]).tolist() == [0, 0]


# ------------------------------------------------------------------------------------------------------------ budget


@pytest.mark.sampled(3)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("limit", [1, 3])
def test_selection_and_model_are_the_budget_exactly(make: Make, relation: Neighbours, limit: int) -> None:
    made = make(epsilon=2, delta=1e-6, neighbours=relation)
    seen = MechanismRecorder(SeededBits(3))
    with watch_mechanisms(seen):
        model = made.fit(frame(400, units=200), domain=DOMAIN, unit="who", rows_per_unit=limit)
    column = model.domain.columns["city"]
    assert isinstance(column, FoundKeys)
    rest = made.rest(Domain(DOMAIN))
    epsilon, delta = column.paid
    assert epsilon + Fraction(rest.epsilon) == 2
    assert delta + Fraction(rest.delta) == Fraction(1, 10**6)
    assert sum(rho for _, rho in model.charges) == model.rho == rest.whole_rho()
    assert model.event == made.plan_event(DOMAIN)
    assert isinstance(model.event, Composed)
    selection, *drawn = [handed.mechanism for handed in seen.made]
    assert model.event.events[0] == Approx(epsilon, delta) == Approx(selection.epsilon, selection.delta)
    assert selection.max_groups == limit * (1 if relation is Neighbours.ADD_REMOVE else 2)
    promise = model.event.events[1]
    assert isinstance(promise, Gaussian if make in (Independent, AllPairs) else Concentrated)
    assert sum((zcdp(each.event).rho for each in drawn), Fraction(0)) <= zcdp(promise).rho
    assert accounting.epsilon(promise, rest.delta) <= float(rest.epsilon) * (1 + 1e-12)
    assert accounting.epsilon(model.event, made.delta) <= 2 * (1 + 1e-9)


def test_several_columns_share_the_part() -> None:
    domain = Domain({"a": UnknownKeys(), "b": UnknownKeys(), "c": ["x"]})
    assert selection_terms(domain, 1, "1e-6") == dict.fromkeys("ab", (Fraction(1, 20), Fraction(1, 20 * 10**6)))
    rest = Independent(epsilon=1, delta="1e-6").rest(domain)
    assert (rest.epsilon, rest.delta) == (Fraction(9, 10), Fraction(9, 10**7))
    assert selection_terms(domain, 10**9, "1e-6")["a"][0] == 1000


def test_the_rest_depends_on_what_was_found_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was found frozen, neighbours with another text differ within sensitivities, and in nothing else."""
    one = frame(60, units=20)
    kept = [place for place, who in enumerate(one["who"]) if who != 3]
    other = {name: [column[place] for place in kept] for name, column in one.items()}
    one["city"] = ["nobody else's" if who == 3 else city for city, who in zip(one["city"], one["who"], strict=True)]
    found = FoundKeys(["Bern", "Rome"], other="other", missing=True, paid=("0.1", "1e-7"))
    monkeypatch.setattr(generator, "found_keys", lambda *_: found)
    for make in GENERATORS:
        made = make(epsilon=30, delta=1e-6)
        seen = MechanismRecorder(SeededBits(3))
        with watch_mechanisms(seen):
            first = made.fit(one, domain=DOMAIN, unit="who", rows_per_unit=2)
        again = MechanismRecorder(SeededBits(3), frozen=seen.made)
        with watch_mechanisms(again):
            second = made.fit(other, domain=DOMAIN, unit="who", rows_per_unit=2)
        assert not again.strayed
        assert json.loads(first.to_json()) == json.loads(second.to_json())
        for left, right in zip(seen.made, again.made, strict=True):
            moved = np.abs(np.asarray(left.inputs[0]) - np.asarray(right.inputs[0]))
            square = int((moved**2).sum()) if type(left.mechanism).__name__ == "Gaussian" else int(moved.max()) ** 2
            assert square <= left.mechanism.sensitivity**2


def drawn_as_charged(made: Generator, table: dict[str, list[Any]]) -> bool:
    """Whether every selection that the event charges was drawn, with its epsilon and delta, before all else."""
    seen = MechanismRecorder(SeededBits(3))
    with watch_mechanisms(seen):
        event = made.fit(table, domain=DOMAIN).event
    assert isinstance(event, Composed)
    charged = [one for one in event.events if isinstance(one, Approx)]
    drawn = [handed.mechanism for handed in seen.made[: len(charged)]]
    return charged == [Approx(one.epsilon, one.delta) for one in drawn if isinstance(one, PartitionSelection)]


def test_an_unpaid_selection_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = frame(300)
    table["city"][0] = "nobody else's"
    made = Independent(epsilon=3, delta=1e-6, random_state=1)
    assert "nobody else's" not in made.fit(table, domain=DOMAIN).to_json()
    assert drawn_as_charged(made, table)

    def unpaid(column: UnknownKeys, texts: Texts, selection: PartitionSelection, bits: Any) -> FoundKeys:
        del bits
        paid = (selection.epsilon, selection.delta)
        return FoundKeys(texts.texts[:2], other=column.other, missing=True, paid=paid)

    monkeypatch.setattr(generator, "found_keys", unpaid)
    assert not drawn_as_charged(made, table)


# -------------------------------------------------------------------------------------------------- what it gives


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", GENERATORS)
def test_keys_of_many_come_back_and_all_others_are_one(make: Make) -> None:
    table = frame(7000)
    model = make(epsilon=4, delta=1e-6, random_state=2).fit(table, domain=DOMAIN)
    assert model.domain.columns["city"].labels == ("Bern", "Oslo", "Rome", "other")
    again = Model.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    cities = Counter(model.sample(7000, random_state=1)["city"])
    exact = {"Bern": 1000, "Rome": 1000, "Oslo": 1000, "other": 2000, None: 2000}
    assert set(cities) == set(exact)
    for city, count in exact.items():
        assert abs(cities[city] - count) < 100  # the noise of a count has a deviation of about 10


def test_nothing_is_found_where_there_is_nothing() -> None:
    empty: dict[str, list[Any]] = {"city": [], "sex": [], "age": []}
    for table in (empty, {"city": [None] * 9, "sex": ["F"] * 9, "age": [3] * 9}):
        model = MST(epsilon=1, delta=1e-6, random_state=1).fit(table, domain=DOMAIN)
        assert model.domain.columns["city"].labels == ("other",)
        assert set(model.sample(20)["city"]) <= {"other", None}


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda: UnknownKeys(most=0), "most"),
        (lambda: UnknownKeys(most=1 << 16), "most"),
        (lambda: UnknownKeys(most=1.5), "most"),  # type: ignore[arg-type]
        (lambda: UnknownKeys(other=3), "other"),  # type: ignore[arg-type]
        (lambda: UnknownKeys(missing=3), "missing"),  # type: ignore[arg-type]
        (lambda: Domain(DOMAIN, forbidden=[{"city": ["Bern"]}]), "forbidden"),
        (lambda: Domain(DOMAIN).encode(frame(3)), "domain"),
        (lambda: Domain({"city": UnknownKeys()}).decode(np.zeros((1, 1), dtype=np.int64)), "domain"),
        (lambda: FoundKeys(["other"], other="other", missing=True, paid=(1, "0.1")), "keys"),
        (lambda: FoundKeys(["a", "a"], other="other", missing=True, paid=(1, "0.1")), "keys"),
        (lambda: FoundKeys(["a"], other="o", missing=True, paid=(1, "0.1")).members(["b"]), "forbidden"),
        (lambda: Independent(epsilon=1, delta=1e-6).fit({"sex": ["F"], "age": [1]}, domain=DOMAIN), "domain"),
    ],
)
def test_bad_input_is_refused(wrong: Callable[[], object], name: str) -> None:
    with pytest.raises(InvalidParameter) as told:
        wrong()
    assert told.value.name == name


def test_halves_of_letters_and_long_texts_are_others() -> None:
    texts = Texts.of_rows(["\ud800", "x" * (LONGEST + 1), "a", None, 3], None, 1)
    assert texts.texts == ("a",)
    assert texts.numbers(["\ud800", "a", None, 3]).tolist() == [1, 0, 2, 2]


def test_domains_with_keys_to_be_found_are_kept_as_text() -> None:
    domain = Domain(DOMAIN)
    assert Domain.from_json(domain.to_json()) == domain
    found = domain.with_columns({"city": FoundKeys(["a"], other="other", missing=True, paid=("1/3", "1e-9"))})
    assert Domain.from_json(found.to_json()) == found
