"""Adjusted answers: totals are sums of their parts, counts are not negative, and nothing else changes."""

from __future__ import annotations

import pytest

from discreet.errors import InvalidParameter
from discreet.measurement.program.program import Program
from tests.curator.test_free import ROWS, clinic, one

ROLLUP = "SELECT ward, sex, COUNT(*) AS n, SUM(charge) AS s, AVG(age) AS a FROM visits GROUP BY ROLLUP (ward, sex)"


def test_totals_are_sums_of_their_parts() -> None:
    raw = one(clinic(), ROLLUP, "0.5")
    answer = raw.adjusted(nonnegative=False)
    parts = [row for row in answer if row["sex"] is not None]
    wards = [row for row in answer if row["ward"] is not None and row["sex"] is None]
    (whole,) = [row for row in answer if row["ward"] is None]
    assert sum(row["s"] for row in parts) == pytest.approx(whole["s"], abs=1e-6)
    assert sum(row["s"] for row in wards) == pytest.approx(whole["s"], abs=1e-6)
    assert abs(sum(row["n"] for row in parts) - whole["n"]) <= len(parts) / 2 + 1  # whole numbers are rounded
    assert [row["a"] for row in answer] == [row["a"] for row in raw]
    assert answer.raw is raw
    assert [(row["s_low"], row["s_high"]) for row in answer] == [(row["s_low"], row["s_high"]) for row in raw]


@pytest.mark.slow
def test_they_are_nearer_to_the_truth_on_the_whole() -> None:
    truth = sum(row["charge"] for row in ROWS)  # type: ignore[misc]
    raw = adjusted = 0.0
    for seed in range(40):
        answer = one(clinic(seed=seed), ROLLUP, "0.1")
        fitting = answer.adjusted()
        (before,), (after,) = ([row["s"] for row in each if row["ward"] is None] for each in (answer, fitting))
        raw, adjusted = raw + (before - truth) ** 2, adjusted + (after - truth) ** 2
    assert adjusted < raw


def test_counts_are_not_negative() -> None:
    sql = "SELECT ward, COUNT(*) AS n, SUM(charge) AS s FROM visits WHERE age > 1000 GROUP BY ward"
    seen = 0
    for seed in range(10):
        raw = one(clinic(seed=seed), sql, "0.1")
        seen += sum(row["n"] < 0 for row in raw)
        for row in raw.adjusted():
            assert min(row["n"], row["n_low"], row["s"], row["s_low"]) >= 0
            assert row["n_low"] <= row["n"] <= row["n_high"]
    assert seen


@pytest.mark.ci
def test_no_answer_carries_the_secret_of_its_account() -> None:
    curator = clinic(unit="patient")
    salt = curator._ledger.account("visits").salt.hex()
    first = one(curator, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", 10)
    derived = one(curator, "SELECT COUNT(*) AS n FROM visits WHERE ward = 'A'", "0.01")
    assert derived.replayed
    for answer in (first, derived, first.adjusted(consistent=False)):
        assert not told(salt, answer.released)
    explained = curator.explain("SELECT ward, MEDIAN(age) AS half FROM visits GROUP BY ROLLUP (ward)", epsilon=1)
    assert not told(salt, explained)


def test_mutant_the_secret_goes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "without_salt", property(lambda program: program))
    with pytest.raises(AssertionError):
        test_no_answer_carries_the_secret_of_its_account()


def told(secret: str, thing: object) -> bool:
    """Whether a text can be reached; asked so, since pytest's diff of a million characters has no end."""
    return secret in str(everything(thing))


def everything(thing: object, depth: int = 12) -> list[object]:
    """All that can be reached from an object, as texts."""
    if depth == 0 or isinstance(thing, str | int | float | bool | type(None)):
        return [thing]
    if isinstance(thing, dict):
        return [part for pair in thing.items() for one in pair for part in everything(one, depth - 1)]
    if isinstance(thing, list | tuple | set | frozenset):
        return [part for one in thing for part in everything(one, depth - 1)]
    names = [*getattr(thing, "__dict__", {}), *getattr(type(thing), "__slots__", ())]
    return [part for name in names if hasattr(thing, name) for part in everything(getattr(thing, name), depth - 1)]


def test_what_does_not_add_up_is_refused() -> None:
    text = "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ROLLUP (ward)"
    people = one(clinic(unit="patient"), text, "0.5")
    with pytest.raises(InvalidParameter, match="consistent"):
        people.adjusted()
    assert people.adjusted(consistent=False).raw is people
    private = one(
        clinic(delta="1e-3"), "SELECT city, COUNT(*) AS n FROM visits GROUP BY ROLLUP (city)", 5, delta="1e-4"
    )
    with pytest.raises(InvalidParameter, match="public"):
        private.adjusted()
