"""Pipelines under a curator: mixed columns are searched, trained, saved, loaded elsewhere, and predict the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline as PlainPipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.preprocessing import StandardScaler as ReadingScaler

from discreet import learn
from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.noise import SeededBits
from discreet.presentation.documents.model_documents import FIT_PLAN, MODEL
from discreet.privacy import Budget
from discreet.requests.learner_arguments import read_learner, write_learner

REGIONS = ["north", "east", "south", "west"]
SMOKES = ["no", "yes"]
ROWS = "SELECT age, bmi, children, smoker, region, costly FROM policies"


def policies(count: int) -> pd.DataFrame:
    """People with an insurance: costs are high for those who smoke, and for the old who are heavy."""
    place = np.arange(count)
    age, bmi = 18 + (place * 37) % 47, 16 + (place * 53) % 300 / 10
    smoker = np.where((place * 7) % 5 == 0, "yes", "no")
    costly = (smoker == "yes") | ((age > 50) & (bmi > 30))
    region = np.array([*REGIONS, "abroad"])[(place * 11) % 5]
    missing = np.where(place % 17 == 0, np.nan, bmi)
    return pd.DataFrame(
        {"age": age, "bmi": missing, "children": place % 4, "smoker": smoker, "region": region, "costly": costly}
    )


def curated(count: int = 600, **declared: Any) -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(11))
    options: dict[str, Any] = {
        "types": {"age": "int", "bmi": "float", "children": "int", "smoker": "text", "region": "text"},
        "bounds": {"age": (18, 64), "bmi": (10, 60), "children": (0, 6)},
        "keys": {"smoker": SMOKES, "region": REGIONS},
        **declared,
    }
    rows = [
        {name: None if value != value else value for name, value in row.items()}  # noqa: PLR0124  # NaN
        for row in policies(count).to_dict("records")
    ]
    options["types"]["costly"] = "bool"
    curator.protect(rows, name="policies", budget=Budget(epsilon=60, delta="1e-4"), **options)
    return curator


def mixed(*, told: bool = True) -> ColumnTransformer:
    """Numbers to one range, texts to indicators, one of them by scikit-learn's encoder, with everything declared."""
    bounds = {"age": (18, 64), "bmi": (10, 60), "children": (0, 6)} if told else None
    numbers = PlainPipeline(
        [
            ("known", SimpleImputer(strategy="constant", fill_value=25.0, keep_empty_features=True)),
            ("scaled", learn.PublicScaler(bounds=None if bounds is None else ([18, 10, 0], [64, 60, 6]))),
        ]
    )
    return ColumnTransformer(
        [
            ("numbers", numbers, ["age", "bmi", "children"]),
            ("smoker", learn.PublicOneHotEncoder(categories={"smoker": SMOKES} if told else None), ["smoker"]),
            ("region", OneHotEncoder(categories=[REGIONS], handle_unknown="ignore"), ["region"]),
        ]
    )


def searched(**given: Any) -> learn.GridSearchCV:
    tree = learn.DecisionTreeClassifier(bounds=(0, 1), cells=16)
    pipeline = PlainPipeline([("columns", mixed()), ("tree", tree)])
    options = {"epsilon": 20, "delta": 0, **given}
    return learn.GridSearchCV(pipeline, {"tree__max_depth": [1, 3]}, **options)


LOADED = """
import json, sys
import pandas as pd
from discreet import learn
model = learn.load(sys.argv[1])
rows = pd.read_json(sys.argv[2], orient="split", dtype=False)
print(json.dumps([model.predict(rows).tolist(), model.predict_proba(rows).tolist()]))
"""


def elsewhere(model: Path, rows: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(model), str(rows)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_pipeline_is_searched_trained_saved_and_loaded_elsewhere(tmp_path: Path) -> None:
    curator, fresh = curated(), policies(400).drop(columns="costly")
    plan = curator.plan_fit(searched(), ROWS, target="costly")
    model = curator.fit(searched(), ROWS, target="costly")
    assert (plan.event, str(plan.cost.details)) == (model.event_, "epsilon=20")
    assert plan.features == ("age", "bmi", "children", "smoker", "region")
    assert np.mean(model.predict(fresh) == policies(400)["costly"]) > 0.9
    assert model.best_params_ == {"tree__max_depth": 3}
    learn.save(model, tmp_path / "model.json")
    fresh.to_json(tmp_path / "rows.json", orient="split")
    predicted, shares = elsewhere(tmp_path / "model.json", tmp_path / "rows.json")
    assert predicted == model.predict(fresh).tolist()
    assert shares == model.predict_proba(fresh).tolist()


def test_a_searched_pipeline_comes_back_as_it_was() -> None:
    curator, fresh = curated(150), policies(50).drop(columns="costly")
    model = curator.fit(searched(), ROWS, target="costly")
    again = curator.fit(searched(), ROWS, target="costly")
    assert again.replayed_
    assert again.predict_proba(fresh).tolist() == model.predict_proba(fresh).tolist()
    loaded = learn.from_json(learn.to_json(model))
    assert loaded.predict_proba(fresh).tolist() == model.predict_proba(fresh).tolist()
    assert learn.to_json(loaded) == learn.to_json(again)


def test_steps_that_were_told_nothing_are_told_what_is_declared() -> None:
    steps = [("columns", mixed(told=False)), ("tree", learn.DecisionTreeClassifier(epsilon=5))]
    plan = curated(40).plan_fit(PlainPipeline(steps), ROWS, target="costly")
    inside = dict(plan.params["steps"])
    assert inside["tree"].classes == [0, 1]
    numbers, smoker, _ = (part for _, part, _ in inside["columns"].transformers)
    assert numbers.steps[1][1].bounds == ([18.0, 10.0, 0.0], [64.0, 60.0, 25.0])  # what is filled in is 25
    assert smoker.categories == [SMOKES]
    assert inside["tree"].bounds == ([0.0] * 9, [1.0] * 9)
    assert any("PublicOneHotEncoder" in note for note in plan.notes)
    assert "smoker: texts" in str(plan)


def test_private_steps_are_paid_for_together() -> None:
    scaler = learn.StandardScaler(epsilon=1, delta="1e-7", bounds=(0, 1))
    line = learn.LogisticRegression(epsilon=3, delta="1e-7", bounds=(-4, 4))
    pipeline = learn.Pipeline([("columns", mixed()), ("scaler", scaler), ("line", line)])
    curator = curated()
    model = curator.fit(pipeline, ROWS, target="costly")
    assert model.event_ == pipeline.set_params(line__classes=[0, 1]).plan_event(5)
    assert model.privacy_spent_.epsilon <= 4
    assert np.mean(model.predict(policies(300).drop(columns="costly")) == policies(300)["costly"]) > 0.8


def test_an_epsilon_of_the_call_is_divided_among_private_steps() -> None:
    steps: list[tuple[str, Any]] = [
        ("columns", mixed()),
        ("scaler", learn.StandardScaler(epsilon=1, delta="1e-7", bounds=(0, 1))),
        ("line", learn.LogisticRegression(epsilon=3, delta="1e-7", bounds=(-4, 4))),
    ]
    parts = dict(curated(40).plan_fit(learn.Pipeline(steps), ROWS, target="costly", epsilon=2).params["steps"])
    assert parts["scaler"].epsilon + parts["line"].epsilon == 2
    assert (steps[1][1].epsilon, steps[2][1].epsilon) == (1, 3)


def test_a_pipeline_that_begins_with_a_learner_is_given_numbers() -> None:
    scaler = learn.StandardScaler(epsilon=1, delta="1e-7")
    line = learn.LogisticRegression(epsilon=3, delta="1e-7", norm_bound=3)
    plan = curated(40).plan_fit(learn.Pipeline([("scaler", scaler), ("line", line)]), ROWS, target="costly")
    assert plan.features[:5] == ("age", "bmi", "children", "smoker=no", "smoker=yes")
    assert dict(plan.params["steps"])["scaler"].bounds[1][:3] == [64.0, 60.0, 6.0]
    unknown = learn.Pipeline([("scaler", scaler), ("line", learn.LogisticRegression(epsilon=3, delta="1e-7"))])
    with pytest.raises(InvalidParameter, match="bounds"):
        curated(40).plan_fit(unknown, ROWS, target="costly")


@pytest.mark.parametrize("step", [ReadingScaler(), OneHotEncoder(handle_unknown="ignore"), SimpleImputer()])
def test_a_step_that_reads_rows_is_refused_before_anything_is_paid(step: Any) -> None:
    tree = learn.DecisionTreeClassifier(epsilon=1, bounds=(0, 1))
    for estimator in (
        PlainPipeline([("first", step), ("tree", tree)]),
        PlainPipeline([("columns", ColumnTransformer([("first", step, ["age"])])), ("tree", tree)]),
        learn.GridSearchCV(PlainPipeline([("first", step), ("tree", tree)]), {"tree__max_depth": [1]}, delta=0),
    ):
        curator = curated(40)
        with pytest.raises(InvalidParameter, match=f"first.*{type(step).__name__}"):
            curator.fit(estimator, ROWS, target="costly")
        assert str(curator.budget("policies").spent) == "epsilon=0"


def test_no_rows_and_texts_that_nobody_declared_are_a_fit_like_any_other() -> None:
    pipeline = learn.Pipeline([("columns", mixed()), ("tree", learn.DecisionTreeClassifier(epsilon=1, bounds=(0, 1)))])
    curator = curated(60, keys={"smoker": SMOKES})
    none = curator.fit(pipeline, f"{ROWS} WHERE age > 1000", target="costly")
    some = curator.fit(pipeline, ROWS, target="costly")
    assert none.event_ == some.event_
    assert {name: np.shape(value) for name, value in vars(none[-1]).items()} == {
        name: np.shape(value) for name, value in vars(some[-1]).items()
    }


def test_bounds_by_name_complete_declarations() -> None:
    rows = "SELECT age, bmi, children, costly FROM policies"
    curator = curated(60, bounds={"age": (18, 64), "children": (0, 6)})
    tree = learn.DecisionTreeClassifier(epsilon=1)
    with pytest.raises(UnsupportedQuery, match="bmi"):
        curator.plan_fit(tree, rows, target="costly")
    plan = curator.plan_fit(tree.set_params(bounds={"bmi": (10, 60)}), rows, target="costly")
    assert plan.params["bounds"] == ([18.0, 10.0, 0.0], [64.0, 60.0, 6.0])
    with pytest.raises(InvalidParameter, match="weight"):
        curator.plan_fit(tree.set_params(bounds={"bmi": (10, 60), "weight": (0, 1)}), rows, target="costly")


def test_a_seed_in_a_step_is_refused_where_somebody_is_protected(tmp_path: Path) -> None:
    curator = Curator(tmp_path / "book.sqlite", engine=Memory())
    options: dict[str, Any] = {"types": {"age": "int", "costly": "bool"}, "bounds": {"age": (18, 64)}}
    curator.protect([{"age": 20, "costly": True}], name="policies", budget=Budget(epsilon=3), **options)
    tree = learn.DecisionTreeClassifier(epsilon=1, random_state=1)
    with pytest.raises(InvalidParameter, match="random_state"):
        curator.plan_fit(
            PlainPipeline([("scaled", learn.PublicScaler()), ("tree", tree)]),
            "SELECT age, costly FROM policies",
            target="costly",
        )


@pytest.mark.ci
def test_a_pipeline_travels_as_a_document() -> None:
    """What a client sends to a service, and what comes back: the learner, the plan of its fit, the model."""
    curator, fresh = curated(60), policies(20).drop(columns="costly")
    alone = PlainPipeline([("columns", mixed(told=False)), ("tree", learn.DecisionTreeClassifier(epsilon=5))])
    for estimator in (searched(), alone):
        sent = json.loads(json.dumps(write_learner(estimator)))
        there = read_learner(sent)
        plan = curator.plan_fit(there, ROWS, target="costly")
        back = FIT_PLAN.read(json.loads(json.dumps(FIT_PLAN.write(plan))))
        assert (str(back), back.event) == (str(plan), plan.event)
        model = curator.fit(there, ROWS, target="costly")
        again = MODEL.read(json.loads(json.dumps(MODEL.write(model))))
        assert again.predict(fresh).tolist() == model.predict(fresh).tolist()
