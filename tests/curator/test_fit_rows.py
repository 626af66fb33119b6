"""What a learner is given: on neighbouring tables the rows of one person, one of them, whatever else they hold."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.curator.observation import engine_of, observe_curator, training_of
from discreet.curator.training import training_plan as models_module
from discreet.curator.training.training_plan import TrainingPlan
from discreet.engines import DuckDB, Memory
from discreet.errors import UnsupportedQuery
from discreet.learn.persistence import store
from discreet.plan.model.readings import Reading
from discreet.privacy import Neighbours
from tests.curator.clinic import Row, neighbour, visits
from tests.curator.handing import Fit, Given, Listening, apart, bag, curated, handed
from tests.learn.tiny import TINY, TinyClassifier, TinyRegressor, TinyScaler
from tests.open_groups import unsealed

FITS: tuple[Fit, ...] = (
    (TinyClassifier(epsilon=1), "SELECT age, charge, ward FROM visits", "ward"),
    (
        TinyClassifier(epsilon=1),
        "SELECT age * 2 AS a, charge, ward FROM visits WHERE age > 10 OR kind = 'fever'",
        "ward",
    ),
    (TinyClassifier(epsilon=1, delta=1e-6), "SELECT age, ward, kind FROM visits", "kind"),
    (TinyRegressor(epsilon=1), "SELECT age, ward, charge FROM visits", "charge"),
    (TinyRegressor(epsilon=1, label_bounds=(0, 3)), "SELECT ward, LENGTH(kind) AS n, charge FROM visits", "n"),
    (TinyScaler(epsilon=1), "SELECT age, charge, ward, age > 40 AS old FROM visits", None),
    (
        TinyScaler(epsilon=1),
        "SELECT m, n FROM (SELECT patient, AVG(charge) AS m, COUNT(*) AS n FROM visits GROUP BY patient)",
        None,
    ),
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny learners are this library's own, for once."""
    monkeypatch.setattr(store, "kinds", lambda: dict(TINY))


def farthest(fit: Fit, seeds: Sequence[int]) -> int:
    """How many rows one person changes at most, over tables and people."""
    found = 0
    for seed in seeds:
        rows = visits(seed, patients=5)
        for who in range(5):
            other = neighbour(rows, seed, who, Neighbours.ADD_REMOVE)
            found = max(found, apart(handed(rows, fit), handed(other, fit)))
    return found


each = pytest.mark.parametrize("fit", FITS, ids=[question for _, question, _ in FITS])


@pytest.mark.ci
@pytest.mark.sampled(3)
@each
def test_a_person_is_one_row_of_a_learners_input(fit: Fit) -> None:
    if fit[2] == "kind":  # classes are found, which fails on so few rows
        fit = (TinyClassifier(epsilon=1, classes=["check", "fever", "fracture", "other"]), *fit[1:])
    assert farthest(fit, (1, 2)) == 1


@pytest.mark.ci
def test_without_bounding_the_same_check_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = TrainingPlan.reading.fget  # type: ignore[attr-defined]

    def unbounded(self: TrainingPlan) -> Reading:
        found: Reading = reading(self)
        return replace(found, bounding=replace(found.bounding, groups=3))  # type: ignore[type-var]

    monkeypatch.setattr(models_module.TrainingPlan, "reading", property(unbounded))
    assert farthest(FITS[0], (1, 2)) > 1


def test_a_made_up_row_that_stands_in_for_nothing_alone_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it were there for empty tables only, one person would change two rows."""
    one = [row for row in visits(1, patients=1) if row["ward"] in ("A", "B", "C")][:1] or [
        {"patient": 0, "ward": "A", "age": 5, "charge": 1.0, "kind": "other"}
    ]
    assert apart(handed(one, FITS[0]), handed([{**one[0], "ward": None}], FITS[0])) == 1
    decode = TrainingPlan.decode

    def conditional(self: TrainingPlan, groups: Any) -> Given:
        X, y = decode(self, groups)
        assert y is not None
        return (X, y) if len(X) == 1 else (X[y != ""], y[y != ""])

    monkeypatch.setattr(models_module.TrainingPlan, "decode", conditional)
    assert apart(handed(one, FITS[0]), handed([{**one[0], "ward": None}], FITS[0])) == 2


def test_many_rows_and_rows_of_nobody() -> None:
    crowd = [{"patient": 7, "ward": "A", "age": age, "charge": 1.0, "kind": "other"} for age in range(50)]
    nobody = [{**row, "patient": None} for row in crowd]
    X, y = handed([*crowd, *nobody], FITS[0])
    assert y is not None
    assert len(X) == 2  # one, and the made-up row
    assert y.tolist().count("A") == 1
    ages = {handed(crowd, FITS[0], salt)[0][0, 0] for salt in "abcdefgh"}
    assert len(ages) > 1  # which one follows from the salt


def test_equal_rows_of_one_person_count_once() -> None:
    same = [{"patient": 7, "ward": "A", "age": 30, "charge": 1.0, "kind": "other"}] * 9
    assert len(handed(same, FITS[0])[0]) == 2


def test_several_rows_of_a_person_where_the_learner_accounts_for_them() -> None:
    crowd = [{"patient": 7, "ward": "A", "age": age, "charge": 1.0, "kind": "other"} for age in range(50)]
    curator, releaser = curated(crowd), Listening()
    twin = observe_curator(curator, engine=engine_of(curator), releaser=releaser, salt="s")
    model = twin.fit(TinyClassifier(epsilon=1), FITS[0][1], target="ward", rows_per_unit=3)
    assert len(releaser.given[0][0]) == 4
    assert model.rows_per_unit == 3


@pytest.mark.sampled(2)
@each
def test_engines_hand_over_the_same_rows(fit: Fit) -> None:
    rows = visits(4, patients=40)
    estimator, question, target = fit
    training = training_of(curated(rows), estimator, question, target, 1)
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    found = []
    for engine, source in ((Memory(), rows), (DuckDB(threads=2), table)):
        curator = curated(source, engine=engine)
        found.append(unsealed(engine_of(curator).read(training.reading)))
        curator.close()
    assert found[0] == found[1]
    assert sum(count for (count,) in found[0].values()) <= 40
    X, _ = training.decode(found[0])
    for place, (low, high) in enumerate(training.limits):
        known = X[~np.isnan(X[:, place]), place]
        assert ((known >= low) & (known <= high)).all()


def test_the_order_of_rows_does_not_matter() -> None:
    rows = visits(4, patients=20)
    one, other = handed(rows, FITS[0]), handed(rows[::-1], FITS[0])
    assert np.array_equal(one[0], other[0], equal_nan=True)
    assert np.array_equal(one[1], other[1])  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------ values


def odd_rows() -> list[Row]:
    return [
        {"flag": True, "day": dt.date(2020, 1, 2), "n": 7, "x": 0.25, "word": "a"},
        {"flag": False, "day": dt.date(1999, 1, 1), "n": -(2**62), "x": 1e300, "word": "zebra"},
        {"flag": None, "day": None, "n": None, "x": math.nan, "word": None},
        {"flag": True, "day": dt.date(2020, 12, 31), "n": 3, "x": -math.inf, "word": "b"},
    ]


ODD: dict[str, Any] = {
    "unit": None,
    "types": {"flag": "bool", "day": "date", "n": "int", "x": "float", "word": "text"},
    "bounds": {"day": (dt.date(2020, 1, 1), dt.date(2020, 12, 31)), "n": (0, 5), "x": (-1, 1)},
    "keys": {"word": ["a", "b"]},
}
EPOCH = dt.date(1970, 1, 1)


def test_values_become_numbers_by_public_rules() -> None:
    X, y = handed(odd_rows(), (TinyScaler(epsilon=1), "SELECT flag, day, n, x, word FROM visits", None), **ODD)
    assert y is None
    first, last = float((dt.date(2020, 1, 2) - EPOCH).days), float((dt.date(2020, 12, 31) - EPOCH).days)
    nan = math.nan
    wanted = [
        [1, first, 5, 0.25, 1, 0],
        [0, first - 1, 0, 1, 0, 0],
        [nan, nan, nan, nan, 0, 0],
        [1, last, 3, nan, 0, 1],  # an infinity is NULL as soon as it is read
        [nan, nan, nan, nan, 0, 0],  # the made-up row
    ]
    assert bag((X, y)) == bag((np.array(wanted, dtype=float), None))


@pytest.mark.parametrize(("target", "classes"), [("flag", [0, 1]), ("word", ["a", "b"])])
def test_labels_are_public_and_others_are_left_out(target: str, classes: list[Any]) -> None:
    fit = (TinyClassifier(epsilon=1), f"SELECT n, {target} FROM visits", target)
    _, y = handed(odd_rows(), fit, **ODD)
    assert y is not None
    known = Counter(row[target] for row in odd_rows() if row[target] in classes)
    assert Counter(label for label in y.tolist() if label in classes) == known
    assert len(y) == sum(known.values()) + 1


def test_a_norm_alone_keeps_long_rows_long() -> None:
    fit = (TinyScaler(epsilon=1, norm_bound=2), "SELECT x FROM visits", None)
    rows = [{"x": value} for value in (0.123456789, 1e3, -1e9)]
    X, _ = handed(rows, fit, unit=None, types={"x": "float"}, bounds={}, keys={})
    known = sorted(X[~np.isnan(X)])
    assert known[0] == pytest.approx(-2 * 2**20, rel=1e-9)
    assert known[1:] == pytest.approx([0.123456789, 1e3], abs=2**-19)


def test_a_learners_own_bounds_serve_where_nothing_is_declared() -> None:
    fit = (TinyScaler(epsilon=1, bounds=(0, 10)), "SELECT x FROM visits", None)
    X, _ = handed([{"x": 3.0}, {"x": 300.0}], fit, unit=None, types={"x": "float"}, bounds={}, keys={})
    assert sorted(X[~np.isnan(X)]) == [3.0, 10.0]


# ----------------------------------------------------------------------------------------------------------- replace


def replacing(rows: Sequence[Row], question: str, **declared: Any) -> Given:
    return handed(rows, (TinyClassifier(epsilon=1), question, "ward"), neighbours="replace", **declared)


def test_under_replace_every_row_is_there_and_one_differs() -> None:
    rows = visits(3)
    for place in range(0, len(rows), 5):
        other = [*rows[:place], visits(9)[0], *rows[place + 1 :]]
        one, two = (replacing(each, "SELECT age, charge, ward FROM visits", unit=None) for each in (rows, other))
        assert len(one[0]) == len(two[0]) == len(rows)
        assert apart(one, two) in (0, 2)


def test_under_replace_a_number_of_rows_that_is_not_public_is_refused() -> None:
    plain, filtered = "SELECT age, charge, ward FROM visits", "SELECT age, ward FROM visits WHERE age > 3"
    nested = "SELECT age, ward FROM (SELECT age, ward FROM visits WHERE age > 3)"
    for question, unit in ((filtered, None), (nested, None), (plain, "patient")):
        with pytest.raises(UnsupportedQuery, match="public number of rows") as refused:
            replacing(visits(3), question, unit=unit)
        assert "add_remove" in refused.value.hint


def test_under_replace_the_learner_is_told() -> None:
    curator = curated(visits(3), neighbours="replace", unit=None)
    model = curator.fit(TinyClassifier(epsilon=1), "SELECT age, charge, ward FROM visits", target="ward")
    assert model.neighbours == "replace"
    assert any("neighbours=" in note for note in model.notes_)
    twice = TinyClassifier(epsilon=1, neighbours="replace", classes=["A", "B", "C"], bounds=(0, 1))
    assert model.event_ == twice.plan_event(2)
    once = curated(visits(3), unit=None).fit(TinyClassifier(epsilon=1), FITS[0][1], target="ward")
    assert once.event_ != model.event_


def test_classes_that_are_not_public_are_not_found_under_replace() -> None:
    fit = (TinyClassifier(epsilon=1, delta=1e-6), "SELECT age, kind FROM visits", "kind")
    with pytest.raises(UnsupportedQuery, match="not public"):
        handed(visits(3), fit, neighbours="replace", unit=None)


def test_a_public_table_may_be_joined() -> None:
    wards = [{"ward": name, "beds": beds} for name, beds in (("A", 3), ("B", 9))]
    curator = curated(visits(3))
    curator.public(wards, name="wards", types={"ward": "text", "beds": "int"})
    question = "SELECT v.age, LEAST(GREATEST(w.beds, 0), 10) AS beds FROM visits v JOIN wards w ON v.ward = w.ward"
    assert curator.fit(TinyScaler(epsilon=1), question).columns_ == ["age", "beds"]
