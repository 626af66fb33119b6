"""Pipelines: what their steps make of columns, what they cost, what is refused, and how they are kept."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as UnpaidRegression
from sklearn.pipeline import Pipeline as PlainPipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, MinMaxScaler, OneHotEncoder, OrdinalEncoder

from discreet import learn
from discreet.errors import InvalidParameter
from discreet.learn.pipelines.public_steps import Flow, PublicColumn, follow
from discreet.learn.selection.choice import predictions
from discreet.privacy.events import Composed
from tests.cases import every
from tests.effort import some

KINDS = ["a", "b", "c"]
N = 300
TABLE = pd.DataFrame(
    {
        "age": np.arange(N) % 90 + 0.5,
        "kind": np.array([*KINDS, "?"])[np.arange(N) % 4],
        "size": np.where(np.arange(N) % 7 == 0, np.nan, np.arange(N) % 11),
    }
)
LABELS = ((TABLE["age"] > 40) & (TABLE["kind"] != "a")).to_numpy()
FILLED = SimpleImputer(strategy="constant", fill_value=-1.0, keep_empty_features=True)


def tree(**given: Any) -> learn.DecisionTreeClassifier:
    options = {"epsilon": 4, "bounds": (-1, 20), "classes": [False, True], "random_state": 1, **given}
    return learn.DecisionTreeClassifier(**options)


def columns(**given: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", learn.PublicScaler(bounds={"age": (0, 90)}), ["age"]),
            ("kind", learn.PublicOrdinalEncoder(categories={"kind": KINDS}), ["kind"]),
            ("size", clone(FILLED), ["size"]),
        ],
        **given,
    )


def private() -> learn.Pipeline:
    """Two private steps beside each other, and one behind them."""
    scaled = learn.StandardScaler(epsilon=1, delta=1e-7, bounds=(0, 90), random_state=1)
    parts = learn.PCA(epsilon=1, delta=1e-7, bounds=(-1, 11), n_components=1, random_state=1)
    inside = PlainPipeline([("filled", clone(FILLED)), ("parts", parts)])
    made = ColumnTransformer([("scaled", scaled, ["age"]), ("parts", inside, ["size"])])
    line = learn.LogisticRegression(epsilon=2, delta=1e-7, norm_bound=4, classes=[False, True], random_state=1)
    return learn.Pipeline([("columns", made), ("line", line)])


# ------------------------------------------------------------------------------------------------------------ columns

FLOWS = {
    "scaler": (learn.PublicScaler(bounds=(0, 4), feature_range=(-1, 1)), [(-1, 1), (-1, 1)]),
    "one hot": (learn.PublicOneHotEncoder(categories=[["x"], ["y", "z"]]), [(0, 1)] * 3),
    "ordinal": (learn.PublicOrdinalEncoder(categories=[["x", "y", "z"], ["x"]]), [(0, 2), (0, 1)]),
    "their one hot": (OneHotEncoder(categories=[["x"], ["y", "z"]], handle_unknown="ignore"), [(0, 1)] * 3),
    "their ordinal": (
        OrdinalEncoder(categories=[["x"], ["y", "z"]], handle_unknown="use_encoded_value", unknown_value=-1),
        [(-1, 1), (-1, 1)],
    ),
    "filled": (SimpleImputer(strategy="constant", fill_value=9, keep_empty_features=True), [(0, 9), (0, 9)]),
    "passthrough": ("passthrough", [(0, 3), (0, 5)]),
    "drop": ("drop", []),
}


@every("name", FLOWS)
def test_what_a_step_makes_of_columns_is_known_before_the_rows(name: str) -> None:
    step, limits = FLOWS[name]
    given = Flow(columns=(PublicColumn(name="p", low=0, high=3), PublicColumn(name="q", low=0, high=5)))
    found = follow(step, given)
    assert [column.limits for column in found.columns] == limits
    assert found.events == ()
    if not isinstance(step, str):
        rows = np.array([["x", "y"], ["?", "z"]], dtype=object) if "h" in name or "ord" in name else np.eye(2)
        made: Any = clone(step).fit_transform(rows)
        dense = made.toarray() if hasattr(made, "toarray") else np.asarray(made, dtype=float)
        assert dense.shape == (2, len(limits))
        assert all(
            low <= value <= high
            for row in dense
            for value, (low, high) in zip(row, limits, strict=True)
            if not np.isnan(value)
        )


def test_columns_are_chosen_by_name_or_place_and_the_rest_remains() -> None:
    flow = Flow.of(3, ["age", "kind", "size"])
    by_place = ColumnTransformer([("s", learn.PublicScaler(bounds=(0, 1)), [0, -1])], remainder="passthrough")
    assert [column.name for column in follow(by_place, flow).columns] == ["s__age", "s__size", "remainder__kind"]
    by_slice = ColumnTransformer([("s", "passthrough", slice(0, 2))], verbose_feature_names_out=False)
    assert [column.name for column in follow(by_slice, flow).columns] == ["age", "kind"]
    by_name = ColumnTransformer([("s", "passthrough", ["size"])], remainder="passthrough")
    assert len(follow(by_name, Flow.of(3, None)).columns) == 3
    for wrong in (["weight"], [3], make_column_selector(dtype_include=float), [True, False, True]):
        with pytest.raises(InvalidParameter):
            follow(ColumnTransformer([("s", "passthrough", wrong)]), flow)


# -------------------------------------------------------------------------------------------------------------- price


def test_what_was_planned_is_what_was_released() -> None:
    model = private()
    planned = model.plan_event(3, list(TABLE.columns))
    assert planned == model.plan_event(3)
    fitted = model.fit(TABLE, LABELS)
    assert fitted.event_ == planned
    assert isinstance(planned, Composed)
    assert len(planned.events) == 3
    assert fitted.privacy_spent_.epsilon <= fitted.epsilon == 4  # type: ignore[attr-defined]
    assert fitted.delta == Fraction(3e-7).limit_denominator(10**9)
    assert (fitted.private_, fitted.neighbours) == (False, "add_remove")


def test_one_private_step_has_its_own_event() -> None:
    model = learn.Pipeline([("columns", columns()), ("tree", tree(random_state=None))])
    assert model.plan_event(3) == tree().plan_event(3)
    assert model.fit(TABLE, LABELS).private_


def test_a_budget_is_divided_in_the_proportion_that_steps_have() -> None:
    model = private().set_params(epsilon=8, delta=3e-6, neighbours="replace", random_state=None)
    assert [float(each.epsilon) for each in model._learners()] == [2, 2, 4]
    assert float(model.delta) == pytest.approx(3e-6)
    assert model.neighbours == "replace"
    assert model.random_state is None
    seeded = model.set_params(random_state=5)
    assert len({each.random_state for each in seeded._learners()}) == 3
    model._learners()[0].set_params(neighbours="add_remove")
    with pytest.raises(InvalidParameter, match="the same in all steps"):
        _ = model.neighbours


REFUSED = {
    "MinMaxScaler": MinMaxScaler(),
    "KBinsDiscretizer": KBinsDiscretizer(),
    "FunctionTransformer": FunctionTransformer(np.log1p),
    "declared categories": OneHotEncoder(handle_unknown="ignore"),
    "handle_unknown": OneHotEncoder(categories=[KINDS]),
    "min_frequency": OneHotEncoder(categories=[KINDS], handle_unknown="ignore", min_frequency=3),
    "unknown categories": OrdinalEncoder(categories=[KINDS]),
    "constant": SimpleImputer(),
    "keep all columns": SimpleImputer(strategy="constant", fill_value=0),
    "memory": PlainPipeline([("s", "passthrough")], memory="cache"),
    "n_jobs": ColumnTransformer([("s", "passthrough", [0])], n_jobs=2),
    "to be 'passthrough'": "skip",
}


@every("told", REFUSED)
def test_a_step_that_reads_rows_is_refused_by_its_name(told: str) -> None:
    read = pd.DataFrame({"kind": ["a", "b"]})
    for model in (
        learn.Pipeline([("reader", REFUSED[told]), ("tree", tree())]),
        learn.GridSearchCV(PlainPipeline([("reader", REFUSED[told]), ("tree", tree())]), {"tree__max_depth": [1]}),
    ):
        with pytest.raises(InvalidParameter, match=told) as caught:
            model.fit(read, [False, True])
        assert "reader" in str(caught.value)


def test_a_pipeline_ends_with_a_private_learner() -> None:
    for last in (UnpaidRegression(), learn.PublicScaler(bounds=(0, 1)), "passthrough"):
        with pytest.raises(InvalidParameter):
            learn.Pipeline([("scaled", learn.PublicScaler(bounds=(0, 1))), ("last", last)]).fit(np.eye(3), [0, 1, 0])


def test_weights_are_refused_with_the_reason() -> None:
    with pytest.raises(InvalidParameter, match="count at most once"):
        learn.Pipeline([("tree", tree())]).fit(np.eye(2), [0, 1], tree__sample_weight=[1, 2])


# --------------------------------------------------------------------------------------------------------------- rows


def test_a_pipeline_predicts_and_names_are_checked_as_scikit_learn_does() -> None:
    model = learn.Pipeline([("columns", columns()), ("tree", tree())]).fit(TABLE, LABELS)
    assert model.score(TABLE, LABELS) > 0.8
    assert model.feature_names_in_.tolist() == list(TABLE.columns)
    assert np.array_equal(model.predict(TABLE[["size", "age", "kind"]]), model.predict(TABLE))
    with pytest.raises(ValueError, match="age"):
        model.predict(TABLE.drop(columns="age"))
    assert not model.constant_
    assert learn.Pipeline.of(PlainPipeline(model.steps)).steps == model.steps


def test_each_row_is_predicted_by_itself() -> None:
    model = learn.Pipeline([("columns", columns()), ("tree", tree())]).fit(TABLE, LABELS)
    assert predictions(model, TABLE[:9]) == model.predict(TABLE[:9]).tolist()
    behind = private().fit(TABLE, LABELS)
    assert predictions(behind, TABLE[:9]) == behind.predict(TABLE[:9]).tolist()


def test_a_table_of_another_library_gives_the_same_search() -> None:
    pipeline = PlainPipeline([("columns", columns()), ("tree", tree(random_state=None))])
    search = learn.GridSearchCV(pipeline, {"tree__max_depth": [1, 2]}, epsilon=8, delta=0, random_state=3)
    found = clone(search).fit(TABLE, LABELS)
    assert found.privacy_spent_.epsilon == 8
    assert found.best_params_.keys() == {"tree__max_depth"}
    again = clone(search).fit(TABLE, LABELS)
    assert learn.to_json(found) == learn.to_json(again)
    other = learn.GridSearchCV(
        learn.Pipeline(pipeline.steps), {"tree__max_depth": [1, 2]}, epsilon=8, delta=0, random_state=3
    )
    assert np.array_equal(other.fit(TABLE, LABELS).predict(TABLE), found.predict(TABLE))


@pytest.mark.ci
def test_a_search_divides_its_budget_among_private_steps() -> None:
    grid = {"line__C": [0.1, 1.0], "columns__scaled__with_mean": [True]}
    found = learn.GridSearchCV(private(), grid, epsilon=6, delta=1e-5, random_state=2).fit(TABLE, LABELS)
    own = [each.epsilon for each in found.best_estimator_._learners()]
    assert own[2] == 2 * own[1] == 2 * own[0]
    with pytest.raises(InvalidParameter, match="epsilon"):
        learn.GridSearchCV(private(), {"line__epsilon": [1, 2]}).fit(TABLE, LABELS)
    with pytest.raises(InvalidParameter, match="one for each"):
        learn.GridSearchCV(private(), grid).fit(TABLE, LABELS[:-1])


# --------------------------------------------------------------------------------------------------------------- kept

KEPT: dict[str, Any] = {
    "public": lambda: learn.Pipeline([("columns", columns()), ("tree", tree())]).fit(TABLE, LABELS),
    "private": lambda: private().fit(TABLE, LABELS),
    "numbers": lambda: learn.Pipeline([("s", learn.PublicScaler(bounds=(0, 90))), ("tree", tree())]).fit(
        TABLE[["age"]].to_numpy(), LABELS
    ),
    "texts": lambda: learn.Pipeline(
        [("k", OneHotEncoder(categories=[KINDS], handle_unknown="ignore")), ("tree", tree())]
    ).fit(TABLE[["kind"]].to_numpy(dtype=object), LABELS),
    "searched": lambda: learn.GridSearchCV(
        PlainPipeline([("columns", columns()), ("tree", tree(random_state=None))]),
        {"tree__max_depth": [1, 2], "columns__numbers": ["passthrough", learn.PublicScaler(bounds=(0, 90))]},
        epsilon=8,
        delta=0,
        random_state=1,
    ).fit(TABLE, LABELS),
}
GIVEN: dict[str, Any] = {"numbers": TABLE[["age"]].to_numpy(), "texts": TABLE[["kind"]].to_numpy(dtype=object)}


@pytest.mark.ci
@every("name", some(KEPT, 4))
def test_a_pipeline_is_kept_as_text_and_is_the_same_again(name: str) -> None:
    model, rows = KEPT[name](), GIVEN.get(name, TABLE)
    text = learn.to_json(model)
    again = learn.from_json(text)
    assert learn.to_json(again) == text
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert (again.event_, again.privacy_spent_, again.private_) == (model.event_, model.privacy_spent_, False)
    assert "pickle" not in text


def changed(path: str, value: Any) -> str:
    """The text of a pipeline with one thing changed in it."""
    content = json.loads(learn.to_json(KEPT["public"]()))
    part = content["model"]
    *inside, last = path.split("/")
    for step in inside:
        part = part[int(step)] if isinstance(part, list) else part[step]
    part[int(last) if isinstance(part, list) else last] = value
    return json.dumps(content)


STEP = "params/steps/0/items/1"
HOSTILE = {
    "a class that is none": (f"{STEP}/class", "sklearn.FunctionTransformer"),
    "a class by its path": (f"{STEP}/class", "os.system"),
    "a parameter that is none": (f"{STEP}/params", {"code": "x"}),
    "no parameters": (f"{STEP}/params", None),
    "processes": (f"{STEP}/params/n_jobs", 64),
    "a transformer that reads": (f"{STEP}/params/transformers", 7),
    "steps that are no list": ("params/steps", 7),
    "no learners": ("fitted/learners_", []),
    "learners that are none": ("fitted/learners_", [1]),
    "columns of another number": ("fitted/columns_seen_", [["age", "<f8"]]),
    "a type that is none": ("fitted/columns_seen_", [["age", "object"], ["kind", "text"], ["size", "<f8"]]),
    "columns that are none": ("fitted/columns_seen_", 3),
    "too many columns": ("fitted/columns_seen_", [[None, "<f8"]] * 20_000),
}


@pytest.mark.ci
@every("name", HOSTILE)
def test_a_hostile_text_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter):
        learn.from_json(changed(*HOSTILE[name]))


def test_a_cache_on_disk_is_never_made(tmp_path: Any) -> None:
    inner = {"$": "step", "class": "sklearn.Pipeline", "params": {"steps": [], "memory": str(tmp_path / "cache")}}
    with pytest.raises(InvalidParameter):
        learn.from_json(changed("params/steps/0/items/1", inner))
    assert not (tmp_path / "cache").exists()


@pytest.mark.ci
def test_polars_tables_are_searched() -> None:
    found = KEPT["searched"]()
    frame = pl.DataFrame(TABLE.to_dict("list"))
    again = clone(found).fit(frame, LABELS)
    assert np.array_equal(again.predict(TABLE), found.predict(TABLE))
    encoder = learn.PublicOneHotEncoder(categories={"kind": KINDS}).fit(frame.select("kind"))
    assert np.array_equal(encoder.transform(frame.select("kind")), encoder.transform(TABLE[["kind"]]))
