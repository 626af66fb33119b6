"""Attacks on releases: canaries in one run, two neighbours in many, and tracing from the means of made-up rows.

Attackers see a model and all that was measured, which is more than rows tell. An honest generator stays within what its
epsilon and delta allow; one that was broken on purpose is caught by the same attack.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest

from discreet import audit
from discreet.attacks import trace
from discreet.attacks.membership.score_threshold import Tracing
from discreet.curator import Curator
from discreet.engines import Memory
from discreet.mechanisms import Exponential, Gaussian
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Budget, Neighbours
from discreet.synthetic import AIM, MST, AllPairs, Independent, Keys, Model
from discreet.synthetic.generator import Generator

Make = Callable[..., Generator]

GENERATORS: list[Make] = [Independent, MST, AIM, AllPairs]
EPSILON, DELTA = 1, 1e-6


def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What mechanisms release is exact, and what they choose is the best."""
    monkeypatch.setattr(Gaussian, "release", lambda *given, **_: np.asarray(given[1]))
    monkeypatch.setattr(Exponential, "choose", lambda *given, **_: int(np.argmax(given[1])))


# ------------------------------------------------------------------------------------------------------------- one run

CANARIES = [f"person {place}" for place in range(120)]


def seen(model: Model, canary: str) -> float:
    """How many made-up rows have the name of a canary, as the model expects."""
    return float(model.counts(("name",))[CANARIES.index(canary)])


def one_run(make: Make, epsilon: float) -> audit.OneRun:
    """Canaries with a name each, among strangers with other values."""

    def release(included: list[str]) -> Model:
        frame = {"name": [*included, *[None] * 50], "flag": [0] * len(included) + [1] * 50}
        return make(epsilon=epsilon, delta=DELTA, random_state=3).fit(frame, domain={"name": CANARIES, "flag": [0, 1]})

    return audit.one_run(release, CANARIES, seen, epsilon=EPSILON, delta=DELTA, guesses=100, bits=SeededBits(5))


@pytest.mark.parametrize("make", GENERATORS)
def test_canaries_are_not_found_in_an_honest_release(make: Make) -> None:
    found = one_run(make, EPSILON)
    assert found.passed
    assert found.epsilon_lower <= EPSILON
    assert found.correct <= 100 * math.e / (1 + math.e) + 3 * math.sqrt(25)  # what epsilon 1 allows, and luck


@pytest.mark.parametrize("make", GENERATORS)
def test_canaries_are_found_without_noise(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    no_noise(monkeypatch)
    found = one_run(make, EPSILON)
    assert not found.passed
    assert found.epsilon_lower > EPSILON


@pytest.mark.parametrize("make", GENERATORS)
def test_canaries_are_found_if_more_is_spent_than_is_claimed(make: Make) -> None:
    """A hundred and fifty times the epsilon, so that single people are seen."""
    assert not one_run(make, 150 * EPSILON).passed


@pytest.mark.parametrize("name", ["independent", "mst", "aim", "allpairs"])
def test_canaries_are_not_found_in_a_table_of_a_curator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody has two rows, of which one counts; without noise they are found there, too."""

    def release(included: list[str]) -> Model:
        with Curator.for_tests(engine=Memory(), bits=SeededBits(7)) as curator:
            rows: list[dict[str, Any]] = [
                {"who": who, "name": who, "flag": flag} for who in included for flag in (False, True)
            ]
            rows += [{"who": f"stranger {place}", "name": None, "flag": True} for place in range(50)]
            types = {"who": "text", "name": "text", "flag": "bool"}
            budget = Budget(epsilon=2, delta=1e-5)
            curator.protect(rows, name="t", unit="who", max_rows=1, types=types, keys={"name": CANARIES}, budget=budget)
            return curator.synthesize("SELECT name, flag FROM t", epsilon=EPSILON, delta=DELTA, generator=name).model

    def audited() -> audit.OneRun:
        return audit.one_run(release, CANARIES, seen, epsilon=EPSILON, delta=DELTA, guesses=100, bits=SeededBits(5))

    assert audited().passed
    no_noise(monkeypatch)
    assert not audited().passed


# ------------------------------------------------------------------------------------------------------ two neighbours

DOMAIN = {"a": [0, 1], "b": [0, 1]}
FEW = {"a": [0] * 6, "b": [0] * 6}
MORE = {"a": [*FEW["a"], 1], "b": [*FEW["b"], 1]}


def fitted(make: Make, frame: Any, *, epsilon: float = EPSILON, seed: int = 1, rows: int | None = None) -> Model:
    return make(epsilon=epsilon, delta=DELTA, random_state=seed).fit(frame, domain=DOMAIN, rows=rows)


def told_apart(make: Make, runs: int, *, epsilon: float = EPSILON, noiseless: bool = False) -> audit.Audit:
    """Six people who are alike, and one more who is not; all that was measured, and the model."""
    seeds, known = count(1), dict[int, list[float]]()

    def released(frame: Any) -> list[float]:
        if noiseless and len(frame["a"]) in known:
            return known[len(frame["a"])]  # it would be the same again
        model = fitted(make, frame, epsilon=epsilon, seed=next(seeds))
        numbers = [float(number) for one in model.measurements for number in one.values.ravel()]
        known[len(frame["a"])] = [float(model.rows), *model.counts(("a", "b")).ravel().tolist(), *numbers[:6]]
        return known[len(frame["a"])]

    return audit.distinguish(released, FEW, MORE, runs=runs, epsilon=EPSILON, delta=DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("make", GENERATORS)
def test_an_audit_finds_no_more_than_is_claimed(make: Make) -> None:
    found = told_apart(make, 600)
    assert found.passed
    assert found.epsilon_lower <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("make", GENERATORS)
def test_an_audit_finds_out_who_spends_more_than_is_claimed(make: Make) -> None:
    assert not told_apart(make, 300, epsilon=30 * EPSILON).passed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", GENERATORS)
def test_an_audit_finds_out_who_adds_no_noise(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    no_noise(monkeypatch)
    assert not told_apart(make, 200, noiseless=True).passed


@pytest.mark.parametrize("make", GENERATORS)
def test_an_audit_finds_out_who_knows_the_number_of_rows(make: Make) -> None:
    """`rows=` is for numbers that are public: whoever passes the exact one tells who is there."""
    numbers = {len(frame["a"]): fitted(make, frame, rows=len(frame["a"])).rows for frame in (FEW, MORE)}
    found = audit.distinguish(lambda frame: numbers[len(frame["a"])], FEW, MORE, runs=200, epsilon=EPSILON, delta=DELTA)
    assert not found.passed


# ------------------------------------------------------------------------------------------------------------- tracing


def traced(make: Make, sites: int, *, spent: float, people: int = 30) -> Tracing:
    """Members against strangers, by the means of made-up rows, as many as there were people.

    One member in another's place is one row in another's place: the bound is about the claimed epsilon under REPLACE.
    """
    bits = SeededBits(1)
    chances = 0.2 + 0.6 * uniforms(sites, bits=bits)
    group, reference, others = (
        (uniforms((size, sites), bits=bits) < chances).astype(int) for size in (people, 600, 400)
    )
    names = [f"site {place}" for place in range(sites)]
    domain = {name: Keys([0, 1], missing=False) for name in names}
    frame = dict(zip(names, group.T, strict=True))
    how: dict[str, Any] = {"delta": DELTA, "neighbours": Neighbours.REPLACE, "random_state": 5}
    model = make(epsilon=spent, **how).fit(frame, domain=domain, rows=people)  # how many there are is public here
    return trace(
        model.sample_codes(people, bits=SeededBits(2)).mean(axis=0),
        reference,
        np.concatenate([group, others]),
        members=np.arange(people + len(others)) < people,
        event=make(epsilon=EPSILON, **how).plan_event(domain),
        bits=SeededBits(3),
    )


SMALL = partial(AllPairs, most_cells=1 << 8)  # columns and a few pairs: means need no more
SITES = [(Independent, 60), pytest.param(SMALL, 60, marks=pytest.mark.slow)]
SITES += [pytest.param(MST, 60, marks=pytest.mark.slow), pytest.param(AIM, 12, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("make", "sites"), SITES)
def test_members_are_not_traced_from_an_honest_table(make: Make, sites: int) -> None:
    """At 5 % of false positives, epsilon 1 allows less than 10 % of members; of 30 people that is up to 7 by luck."""
    found = traced(make, sites, spent=EPSILON)
    assert found.bound is not None
    assert found.bound < 0.1
    assert found.success <= found.bound + 3 * math.sqrt(found.bound / 30)


@pytest.mark.parametrize(("make", "sites"), SITES[:2])
def test_members_are_traced_from_an_unprotected_table(make: Make, sites: int) -> None:
    found = traced(make, sites, spent=10**5)
    assert found.bound is not None
    assert found.success > found.bound + 3 * math.sqrt(found.bound / 30)
