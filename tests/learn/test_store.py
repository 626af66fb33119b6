"""Learners as text: plain data only, the same again, and nothing of a hostile file is believed or run."""

from __future__ import annotations

import base64
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.learn.persistence import plain_data as plain
from discreet.learn.persistence import store
from discreet.privacy import ZCDP, ApproxDP, Neighbours, PureDP, events
from tests.cases import every
from tests.learn.tiny import TINY, TinyClassifier, TinyRegressor, TinyScaler


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny learners are this library's own, for once."""
    monkeypatch.setattr(store, "kinds", lambda: dict(TINY))


def model(**params: Any) -> TinyClassifier:
    given: dict[str, Any] = {"epsilon": 1.0, "bounds": (0, 1), "classes": ["no", "yes"], "random_state": 1, **params}
    return TinyClassifier(**given).fit([[0.0], [1.0]], np.array(["no", "yes"]))


# ------------------------------------------------------------------------------------------------------- there and back


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or (isinstance(one, float) and math.isnan(one)))


def again(value: Any) -> Any:
    return plain.read(json.loads(json.dumps(plain.write(value), allow_nan=False)))


@every(
    "value",
    [
        None,
        True,
        -(2**80),
        0.1,
        float("nan"),
        float("-inf"),
        "naïve \ud7ff \U0001d53b",
        Fraction(1, 3),
        Decimal("0.1"),
        (1, [2, (3,)]),
        Neighbours.REPLACE,
        PureDP(1),
        ApproxDP(1, "1e-6"),
        ZCDP("1/3"),
        events.Composed([events.Gaussian(2), events.Pure("1/3")]),
        np.array([1.5, np.nan, -np.inf]),
        np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::2],
        np.array([[True], [False]]),
        np.array(["b", "aé\U0001d53b", ""]),
        np.zeros((0, 3)),
        np.array(7),
        np.float32(0.1),
        np.int64(-3),
        np.str_("x"),
        np.bool_(True),
    ],
)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    assert same(again(value), value)


def test_byte_orders_and_texts_of_frames_become_our_own() -> None:
    big = np.array([1, 258], dtype=">i4")
    assert same(again(big), np.array([1, 258], dtype=np.int32))
    assert same(again(np.array(["a", "bc"], dtype=object)), np.array(["a", "bc"]))


def test_a_dict_comes_back_as_it_was() -> None:
    value = {"a": 1, 2: [np.array([1.0])]}
    found = again(value)
    assert list(found) == ["a", 2]
    assert same(found[2], value[2])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda s: st.lists(s) | st.tuples(s)
    )
)
def test_whatever_is_plain_comes_back(value: Any) -> None:
    try:
        found = again(value)
    except InvalidParameter:  # nested too deeply, or a number of thousands of bits
        return
    assert same(found, value)


@every(
    "value",
    [
        object(),
        print,
        lambda: 1,
        {1.5: 2},
        {(1, 2): 3},
        b"bytes",
        {1, 2},
        1j,
        np.array([object()]),
        np.array([1j]),
        np.array([b"x"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=[("a", "i4")]),
        np.ma.masked_array([1]),
        np.zeros((1,) * 9),
        np.array(["x" * 5000]),
        1 << 5000,
        Fraction(1, 10**400),
        type("Text", (str,), {})("x"),
    ],
)
def test_what_is_no_plain_data_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        plain.write(value, "bounds")
    assert refused.value.name == "bounds"


def test_data_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidParameter):
        plain.write(endless)


def test_a_model_comes_back(tmp_path: Path) -> None:
    one = model()
    store.save(one, tmp_path / "m.json")
    other = store.load(tmp_path / "m.json")
    assert type(other) is TinyClassifier
    assert other.get_params() == one.get_params()
    assert same(other.centres_, one.centres_)
    assert same(other.classes_, one.classes_)
    assert (other.event_, other.privacy_spent_, other.private_) == (one.event_, one.privacy_spent_, False)
    assert other.n_features_in_ == 1
    assert list(other.predict([[1.0]])) == list(one.predict([[1.0]]))
    assert store.to_json(other) == store.to_json(one)


def test_others_come_back_too() -> None:
    scaler = TinyScaler(epsilon=1, bounds=(0, 1), random_state=None).fit([[0.5]])
    assert store.from_json(store.to_json(scaler)).private_ is True
    regressor = TinyRegressor(epsilon=Fraction(1, 3), norm_bound=1, label_bounds=(0, 1)).fit([[0.5]], [1.0])
    assert store.from_json(store.to_json(regressor).encode()).epsilon == Fraction(1, 3)


def test_a_learner_inside_a_learner_comes_back() -> None:
    outer = TinyScaler(epsilon=1, bounds=(0, 1)).fit([[0.5]])
    outer.best_estimator_ = model()
    found = store.from_json(store.to_json(outer))
    assert same(found.best_estimator_.centres_, outer.best_estimator_.centres_)


def test_what_a_call_to_a_curator_said_is_not_kept() -> None:
    one = model()
    one.cost_, one.remaining_, one.replayed_, one.notes_ = PureDP(1), object(), True, ("a",)
    text = store.to_json(one)
    assert not {"cost_", "remaining_", "replayed_", "notes_"} & vars(store.from_json(text)).keys()


def test_what_is_not_fitted_or_not_ours_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameter, match="fitted"):
        store.to_json(TinyScaler())
    one = model()
    one._secret = 1
    with pytest.raises(InvalidParameter, match="_secret"):
        store.to_json(one)
    monkeypatch.setattr(store, "kinds", dict)
    with pytest.raises(InvalidParameter, match=r"discreet\.learn"):
        store.to_json(model())


# -------------------------------------------------------------------------------------------------------- hostile files


def changed(**parts: Any) -> str:
    content = json.loads(store.to_json(model()))
    content["model"].update(parts)
    return json.dumps(content)


def with_fitted(**parts: Any) -> str:
    content = json.loads(store.to_json(model()))
    content["model"]["fitted"].update(parts)
    return json.dumps(content)


def array(**parts: Any) -> Any:
    data = base64.b64encode(np.zeros(4).tobytes()).decode()
    return {"$": "array", "dtype": "<f8", "shape": [4], "data": data, **parts}


def params(**parts: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(store.to_json(model()))["model"]["params"]
    return {**content, **parts}


HOSTILE: dict[str, Any] = {
    "no JSON": "{",
    "a number": "3",
    "a list": "[]",
    "nothing": "",
    "NaN": '{"format": NaN, "version": 1, "model": 1}',
    "deep": "[" * 100_000,
    "deep data": lambda: with_fitted(a_=json.loads("[" * 60 + "]" * 60)),
    "another format": json.dumps({"format": "x", "version": 1, "model": {}}),
    "another version": json.dumps({"format": store.FORMAT, "version": 2, "model": {}}),
    "a version that is true": json.dumps({"format": store.FORMAT, "version": True, "model": {}}),
    "a class of nobody": lambda: changed(**{"class": "os.system"}),
    "a class that is the base": lambda: changed(**{"class": "Learner"}),
    "a class that is no text": lambda: changed(**{"class": ["TinyScaler"]}),
    "a further field": lambda: changed(more=1),
    "a parameter too many": lambda: changed(params=params(shell="x")),
    "a parameter too few": lambda: changed(params={"epsilon": 1}),
    "parameters that are a list": lambda: changed(params=[1]),
    "an attribute that is a method": lambda: with_fitted(fit="x"),
    "an attribute of the class": lambda: with_fitted(__class__="x"),
    "an attribute that begins with _": lambda: with_fitted(_x_=1),
    "an attribute of a call": lambda: with_fitted(cost_=1),
    "an unknown kind": lambda: with_fitted(a_={"$": "pickle", "data": "gASVDA=="}),
    "an object without a kind": lambda: with_fitted(a_={"a": 1}),
    "an array of objects": lambda: with_fitted(a_=array(dtype="|O8")),
    "an array of a record": lambda: with_fitted(a_=array(dtype="<f8,<f8")),
    "an array of times": lambda: with_fitted(a_=array(dtype="<M8[s]")),
    "an array of nothing": lambda: with_fitted(a_=array(dtype="<U0", shape=[1 << 39], data="")),
    "an array of a strange size": lambda: with_fitted(a_=array(dtype="<f7")),
    "an array too long": lambda: with_fitted(a_=array(shape=[1 << 39])),
    "an array of a negative length": lambda: with_fitted(a_=array(shape=[-4])),
    "an array of true length": lambda: with_fitted(a_=array(shape=[True] * 4)),
    "an array of many dimensions": lambda: with_fitted(a_=array(shape=[1] * 40 + [4])),
    "an array that is no base64": lambda: with_fitted(a_=array(data="*" * 43 + "=")),
    "an array with more": lambda: with_fitted(a_=array(strides=[0])),
    "texts that are none": lambda: with_fitted(
        a_=array(dtype="<U8", shape=[1], data=base64.b64encode(b"\xff" * 32).decode())
    ),
    "truth values that are none": lambda: with_fitted(
        a_=array(dtype="|b1", shape=[1], data=base64.b64encode(b"\x07").decode())
    ),
    "a whole number that is none": lambda: with_fitted(a_={"$": "whole", "value": "9" * 5000}),
    "a fraction by zero": lambda: with_fitted(a_={"$": "fraction", "value": "1/0"}),
    "a loss of nobody": lambda: with_fitted(a_={"$": "loss", "loss": "none", "amounts": []}),
    "an event of nobody": lambda: with_fitted(event_={"$": "event", "value": "{}"}),
    "no event": lambda: with_fitted(event_=None),
    "a mark that is no truth value": lambda: with_fitted(private_="yes"),
    "a dict of lists": lambda: with_fitted(a_={"$": "dict", "items": [[[1], 2]]}),
    "an empty array with sides of half a million millions": lambda: with_fitted(
        a_=array(shape=[0, 1 << 39, 1 << 39], data="")
    ),
    "an empty array with a side of half a million millions": lambda: with_fitted(a_=array(shape=[0, 1 << 39], data="")),
    "an empty array of eight long sides": lambda: with_fitted(a_=array(shape=[0] + [1 << 39] * 7, data="")),
    "two hundred thousand events": lambda: with_fitted(event_=composed(200_000)),
    "events whose keys are written otherwise": lambda: with_fitted(event_=composed(20_000, key="\\u006bind")),
    "events in events": lambda: with_fitted(event_=composed(100, inside=composed(200)["value"][:-13] + "}")),
    "events too deep": lambda: with_fitted(event_=deep_event(40)),
    "events far too deep": lambda: with_fitted(event_=deep_event(100_000)),
    "an event with a number of a million digits": lambda: with_fitted(
        event_={"$": "event", "value": '{"epsilon":"' + "9" * 10**6 + '/1","kind":"pure","version":1}'}
    ),
    "learners in learners": lambda: nested(150),
    "a whole number that is written out": lambda: with_fitted(a_=10**400),
    "a whole number of a million digits": lambda: with_fitted(a_="@").replace('"@"', "9" * 10**6),
    "a fraction of a million digits": lambda: with_fitted(a_={"$": "fraction", "value": "1/" + "9" * 10**6}),
    "a decimal of a million digits": lambda: with_fitted(a_={"$": "decimal", "value": "9" * 10**6}),
    "a decimal of a large exponent": lambda: with_fitted(a_={"$": "decimal", "value": "1e999999999"}),
    "a million values": lambda: with_fitted(a_="@").replace('"@"', "[" + "0," * 10**6 + "0]"),
    "a million empty lists": lambda: with_fitted(a_="@").replace('"@"', "[" + "[]," * 10**6 + "0]"),
}


def composed(count: int, key: str = "kind", inside: str = '{"epsilon":"1/1","@":"pure"}') -> Any:
    text = '{"events":[' + ",".join([inside] * count) + '],"@":"composed","version":1}'
    return {"$": "event", "value": text.replace("@", key)}


def deep_event(levels: int) -> Any:
    inner = '{"event":' * levels + '{"epsilon":"1/1","kind":"pure"}' + ',"count":1,"kind":"repeated"}' * levels
    return {"$": "event", "value": inner[:-1] + ',"version":1}'}


def nested(levels: int) -> str:
    """A learner as a parameter of a learner, again and again."""
    content = json.loads(store.to_json(model()))
    text = json.dumps(content["model"])
    for _ in range(levels):
        params = {**content["model"]["params"], "epsilon": "@"}
        text = json.dumps({**content["model"], "params": params}).replace('"@"', text)
    return json.dumps({**content, "model": "@"}).replace('"@"', text)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused(name: str, tmp_path: Path) -> None:
    text = HOSTILE[name]() if callable(HOSTILE[name]) else HOSTILE[name]
    with pytest.raises(InvalidParameter):
        store.from_json(text)
    (tmp_path / "m").write_text(text)
    with pytest.raises(InvalidParameter):
        store.load(tmp_path / "m")


def test_the_longest_honest_models_come_back() -> None:
    """Thousands of events, amounts of hundreds of digits, an empty array, a list of a hundred thousand numbers."""
    fitted = model()
    many = events.Composed([events.Gaussian(Fraction(n + 1, 7)) for n in range(4096)])
    fitted.event_, fitted.long_ = many, Fraction(3**400, 2**700)
    fitted.empty_, fitted.list_ = np.zeros((0, 1000, 3)), [0.5] * 100_000
    found = store.from_json(store.to_json(fitted))
    assert (found.event_, found.long_, found.list_) == (many, fitted.long_, fitted.list_)
    assert found.empty_.shape == (0, 1000, 3)


def test_what_could_not_be_read_again_is_not_written() -> None:
    for too_much in (events.Composed([events.Pure(1)] * 20_000), [0] * 300_000):
        fitted = model()
        fitted.large_ = too_much
        with pytest.raises(InvalidParameter):
            store.to_json(fitted)


def test_a_pickle_is_no_model_and_is_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "touched",))

    (tmp_path / "m").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InvalidParameter):
        store.load(tmp_path / "m")
    assert not (tmp_path / "touched").exists()


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(model(), tmp_path / "m")
    monkeypatch.setattr(store, "LONGEST", 100)
    with pytest.raises(InvalidParameter):
        store.load(tmp_path / "m")
    with pytest.raises(InvalidParameter):
        store.to_json(model())


def test_a_loaded_array_is_its_own_and_can_be_written() -> None:
    found = store.from_json(store.to_json(model()))
    found.centres_[0, 0] = 5.0
    assert found.centres_.flags.owndata
