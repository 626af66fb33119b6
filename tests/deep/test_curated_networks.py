"""Networks under a curator: planned, paid, then trained; kept as text; what one person moves; what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

from torch import nn

from discreet import accounting, deep, learn
from discreet.curator import Curator
from discreet.curator.observation import engine_of, observe_curator
from discreet.deep.estimators.private_run import RunParameters
from discreet.engines import Folder
from discreet.errors import InsufficientBudget, InvalidParameter, QueryFailed
from discreet.noise import SeededBits, uniform_below
from discreet.presentation.documents.model_documents import MODEL
from discreet.privacy import Budget, Neighbours, events
from discreet.requests.learner_arguments import read_learner, write_learner
from tests.cases import every
from tests.curator.clinic import neighbour, visits
from tests.curator.handing import Listening, apart, curated, handed
from tests.curator.spies import OPTIONS, Broken, Spy, clinic
from tests.effort import rounds
from tests.engines.pictures import png
from tests.learn.spying import told

WARD = "SELECT age, charge, ward FROM visits"
BUDGET = Budget(epsilon=20, delta=1e-3)


def network(**changed: Any) -> Any:
    return deep.Classifier(**{"epsilon": 2, "size": 200, "batch_size": 50, "epochs": 1, "hidden": (4,), **changed})


@pytest.fixture(scope="module", autouse=True)
def priced() -> None:
    """The noise of the network is calibrated once in a process, which takes seconds: no test is the first."""
    spied(Budget(epsilon=20, delta="1e-6"))[0].plan_fit(network(), WARD, target="ward")


def spied(budget: Any = BUDGET, **declared: Any) -> tuple[Curator, Spy]:
    spy = Spy()
    return clinic(budget, engine=spy, **declared), spy


def charges(curator: Curator) -> int:
    return sum(entry.kind == "charge" for entry in curator.history("visits"))


@pytest.mark.ci
def test_a_fit_is_planned_paid_read_and_given_again_for_nothing(tmp_path: Path) -> None:
    curator, spy = spied()
    plan = curator.plan_fit(network(), WARD, target="ward")
    assert (spy.reads, charges(curator)) == (0, 0)
    seen: list[int] = []
    spy.before = lambda: seen.append(charges(curator))
    model = curator.fit(network(), WARD, target="ward")
    assert seen == [1]
    assert (model.event_, model.cost_) == (plan.event, plan.cost)
    assert (list(model.classes_), model.columns_, model.replayed_) == (["A", "B", "C"], ["age", "charge"], False)
    assert model.predict([[30, 100.0]])[0] in "ABC"
    again = curator.fit(network(), "select AGE, charge, ward from visits", target="ward")
    assert (again.replayed_, spy.reads, charges(curator)) == (True, 1, 1)
    assert all(np.array_equal(again.weights_[name], array) for name, array in model.weights_.items())
    assert not curator.fit(network(hidden=(5,)), WARD, target="ward").replayed_
    asked = json.loads(curator.history("visits")[-2].content["question"])
    assert asked["fit"]["class"] == "deep.Classifier"
    learn.save(again, tmp_path / "model.json")
    assert learn.load(tmp_path / "model.json").event_ == model.event_
    curator.verify()


@pytest.mark.ci
def test_a_regressor_is_fitted_too() -> None:
    curator, _ = spied()
    estimator = deep.Regressor(epsilon=2, size=200, batch_size=50, epochs=1, hidden=(4,))
    model = curator.fit(estimator, "SELECT age, ward, charge FROM visits", target="charge")
    assert model.columns_ == ["age", "ward=A", "ward=B", "ward=C"]
    assert 0 <= model.predict([[30, 1, 0, 0]])[0] <= 1000


@pytest.mark.slow
def test_many_steps_on_small_samples_cost_what_the_whole_costs() -> None:
    """A filter would take each of 400 steps for one on all rows."""
    curator, _ = spied()
    model = curator.fit(network(batch_size=1, epochs=2), WARD, target="ward")
    (charge,) = [entry for entry in curator.history("visits") if entry.kind == "charge"]
    paid = events.from_json(charge.content["event"])
    assert isinstance(paid, events.Approx)
    assert paid.epsilon >= accounting.epsilon(model.event_, 1e-6)
    assert float(paid.epsilon) == pytest.approx(2, abs=0.01)
    assert float(paid.delta) == 1e-6
    assert isinstance(model.event_, events.Repeated)
    assert model.event_.count == 400
    assert any("epsilon and delta of the whole fit" in note for note in model.notes_)
    assert str(curator.budget("visits").remaining.loss).startswith("epsilon=18")


def test_a_budget_without_a_delta_pays_every_step_or_nothing() -> None:
    curator, spy = spied(Budget(epsilon=20))
    with pytest.raises(Exception, match="rho or a delta"):
        curator.fit(network(), WARD, target="ward")
    assert (spy.reads, charges(curator)) == (0, 0)
    curator, spy = spied(Budget(rho=5))
    model = curator.fit(network(), WARD, target="ward")
    event: Any = model.event_
    assert model.cost_.details.rho == event.count / (2 * event.event.event.noise_multiplier**2)


@pytest.mark.ci
@pytest.mark.parametrize("batch_size", [1, 50])
def test_a_charge_is_never_less_than_what_is_released(batch_size: int) -> None:
    """Whichever of the two descriptions is charged, the event keeps to it."""
    curator, _ = spied(Budget(epsilon=1.5, delta=1e-3))
    plan = curator._trainer.plan(network(batch_size=batch_size), WARD, "ward", 1)
    if plan.promise is None:
        assert plan.charge == plan.event
    else:
        assert accounting.epsilon(plan.event, plan.promise.delta) <= plan.promise.epsilon
    with pytest.raises(InsufficientBudget):
        curator.fit(network(batch_size=batch_size), WARD, target="ward")


# ------------------------------------------------------------------------------------------------------- one person


@pytest.mark.slow
@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_one_person_has_so_many_rows(rows_per_unit: int) -> None:
    for seed in range(4):
        rows = visits(seed, patients=5)
        for who in range(5):
            other = neighbour(rows, seed, who, Neighbours.ADD_REMOVE)
            fits = [_given(each, rows_per_unit) for each in (rows, other)]
            assert apart(*fits) <= rows_per_unit


def _given(rows: Any, rows_per_unit: int) -> Any:
    curator, releaser = curated(rows), Listening()
    watched = observe_curator(curator, engine=engine_of(curator), releaser=releaser, salt="s")
    watched.fit(network(epochs="1/4"), WARD, target="ward", rows_per_unit=rows_per_unit)
    (given,) = releaser.given
    return given


@pytest.mark.ci
def test_one_person_moves_the_sums_no_more_than_the_charge_says() -> None:
    """Every row is in the only batch, and goes through the network alone."""
    rows = visits(1, patients=6)
    options: dict[str, Any] = {"size": 6, "batch_size": 6, "epochs": 1, "physical_batch": 1, "random_state": 1}
    X, y = handed(rows, (network(), WARD, "ward"))
    moved = []
    for who in range(rounds(6, 2)):
        fewer, less = handed(neighbour(rows, 1, who, Neighbours.ADD_REMOVE), (network(), WARD, "ward"))

        def sums(given: Any, labels: Any) -> list[Any]:
            made = network(**options, bounds=([0, 0], [120, 1000]), classes=["A", "B", "C"])
            return told(lambda: made.fit(given, labels))

        (one,), (other,) = sums(X, y), sums(fewer, less)
        moved.append(float(np.linalg.norm(one.value - other.value)))
    assert 0 < max(moved) <= 1


@pytest.mark.slow
def test_several_rows_of_a_person_are_priced() -> None:
    curator, _ = spied()
    model = curator.fit(network(), WARD, target="ward", rows_per_unit=2)
    assert model.rows_per_unit == 2
    assert model.event_ == model.plan_event(2)
    assert any("at most 2 row(s) per patient" in note for note in model.notes_)


# ------------------------------------------------------------------------------------------------------------- files


def scans(root: Path, people: int = 60) -> Folder:
    """Pictures of 8 x 8, bright above or below; two of everybody, and some that are none."""
    for place in range(2 * people):
        label = ("above", "below")[place % 2]
        drawn = uniform_below(60, (8, 8, 1), bits=SeededBits(place))
        drawn[slice(0, 4) if place % 2 == 0 else slice(4, 8)] += 150
        (root / label).mkdir(exist_ok=True)
        (root / label / f"p{place // 2}_{place}.png").write_bytes(png(drawn) if place % 17 else b"none")
    return Folder(path=root, suffix=".png", shape=(1, 8, 8), person=r"(p[0-9]+)_")


@pytest.mark.ci
def test_a_network_learns_from_a_folder(tmp_path: Path) -> None:
    curator = Curator.for_tests(bits=SeededBits(2))
    keys = {"label": ["above", "below"]}
    curator.protect(scans(tmp_path), name="scans", unit="person", max_rows=1, keys=keys, budget=BUDGET)
    estimator = deep.Classifier("cnn", epsilon=8, size=60, batch_size=20, epochs=10)
    model = curator.fit(estimator, "SELECT image, label FROM scans", target="label")
    assert (model.shape, model.bounds, model.columns_) == ((1, 8, 8), (0.0, 255.0), ["image"])
    bright, dark = np.full(32, 180.0), np.full(32, 30.0)
    assert list(model.predict([np.r_[bright, dark], np.r_[dark, bright]])) == ["above", "below"]
    again = curator.fit(estimator, "SELECT image, label FROM scans", target="label")
    assert (again.replayed_, again.event_) == (True, model.event_)


@pytest.mark.slow
def test_texts_are_given_as_bytes_to_an_embedding(tmp_path: Path) -> None:
    """Their numbers are words as they are, if they are not moved to [-1, 1]."""

    class Words(nn.Module):
        def __init__(self, features: Any, outputs: int) -> None:
            super().__init__()
            self.words, self.last = nn.Embedding(256, 4), nn.Linear(4 * features[0], outputs)

        def forward(self, x: Any) -> Any:
            return self.last(self.words(x.round().long()).flatten(1))

    deep.register_model("words_for_tests", Words)
    for place in range(40):
        label = ("no", "yes")[place % 2]
        (tmp_path / label).mkdir(exist_ok=True)
        (tmp_path / label / f"{place}.txt").write_text(f"{label}, é {place}")
    curator = Curator.for_tests(bits=SeededBits(2))
    source = Folder(path=tmp_path, suffix=".txt", shape=(6,))
    curator.protect(source, name="notes", keys={"label": ["no", "yes"]}, budget=BUDGET)
    estimator = deep.Classifier("words_for_tests", epsilon=8, size=40, batch_size=20, epochs=20, scaled=False)
    model = curator.fit(estimator, "SELECT text, label FROM notes", target="label")
    assert list(model.predict(np.array([list(b"yes, 1"), list(b"no, 12")]))) == ["yes", "no"]


# --------------------------------------------------------------------------------------------- failures, refusals


def test_a_failure_stays_charged_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    curator = clinic(BUDGET, engine=Broken())
    with pytest.raises(QueryFailed) as failed:
        curator.fit(network(), WARD, target="ward")
    assert (failed.value.__cause__, charges(curator)) == (None, 1)
    curator, _ = spied()
    train = RunParameters.train

    def leaking(self: RunParameters, *given: Any, **options: Any) -> Any:
        if options["most_steps"] is None:
            raise ValueError(f"ZZ-CANARY {given}")
        return train(self, *given, **options)

    monkeypatch.setattr(RunParameters, "train", leaking)
    with pytest.raises(QueryFailed) as failed:
        curator.fit(network(), WARD, target="ward")
    assert "ZZ" not in repr(failed.value)
    assert (charges(curator), curator.budget("visits").failures) == (1, 1)


def test_a_fit_that_was_stopped_is_fitted_when_it_is_asked_again() -> None:
    curator, spy = spied()

    def vanish() -> None:
        raise KeyboardInterrupt

    spy.before = vanish
    with pytest.raises(KeyboardInterrupt):
        curator.fit(network(), WARD, target="ward", key="k")
    spy.before = lambda: None
    model = curator.fit(network(), WARD, target="ward", key="k")
    assert (spy.reads, charges(curator), model.replayed_) == (2, 1, False)


@pytest.mark.ci
def test_a_rehearsal_is_one_step() -> None:
    curator, _ = spied()
    seen = told(lambda: curator.plan_fit(network(epochs=50), WARD, target="ward"))
    assert len(seen) <= 2


def failing(*_: Any) -> nn.Module:
    raise RuntimeError("no such network")


deep.register_model("failing_for_tests", failing)
deep.register_model(
    "batch_norm_for_tests", lambda n, k: nn.Sequential(nn.Linear(n, 4), nn.BatchNorm1d(4), nn.Linear(4, k))
)
deep.register_model("narrow_for_tests", lambda n, k: nn.Linear(n, k + 1))


@every(
    ("estimator", "name"),
    [
        (network(size=None), "size"),
        (network(model=failing), "model"),
        (network(model=nn.Linear(2, 3)), "model"),
        (network(model="nobody"), "model"),
        (network(model="failing_for_tests"), "model"),
        (network(model="narrow_for_tests"), "model"),
        (network(model="batch_norm_for_tests"), "layer"),
        (network(classes=["A"]), "classes"),
        (network(classes=[0, 1]), "classes"),
        (network(bounds=(1, 1)), "bounds"),
        (network(shape=(3,)), "shape"),
        (network(random_state=1), "random_state"),
        (network(delta=0), "delta"),
        (network(neighbours="replace"), "neighbours"),
        (network(hidden=(10**6,)), "hidden"),
    ],
)
def test_what_is_refused_costs_nothing(estimator: Any, name: str) -> None:
    spy = Spy()
    with Curator(engine=spy) as curator:
        curator.protect(visits(3, patients=20), name="visits", budget=BUDGET, **OPTIONS)
        with pytest.raises(InvalidParameter) as caught:
            curator.fit(estimator, WARD, target="ward")
        assert (spy.reads, charges(curator)) == (0, 0)
        assert caught.value.name == name


def test_an_account_of_replaced_rows_is_refused() -> None:
    curator = Curator.for_tests(engine=Spy(), bits=SeededBits(1))
    facts: dict[str, Any] = {"types": {"a": "float", "b": "bool"}, "bounds": {"a": (0, 1)}, "neighbours": "replace"}
    curator.protect([{"a": 0.5, "b": True}], name="visits", budget=BUDGET, **facts)
    with pytest.raises(InvalidParameter) as caught:
        curator.fit(network(), "SELECT a, b FROM visits", target="b")
    assert (caught.value.name, charges(curator)) == ("neighbours", 0)


@pytest.mark.slow
def test_classes_are_found_for_a_part_of_the_budget() -> None:
    curator, _ = spied()
    model = curator.fit(network(delta=1e-5), "SELECT age, charge, kind FROM visits", target="kind")
    assert isinstance(model.event_, events.Composed)
    assert len(model.classes_) >= 1


def test_a_pipeline_that_ends_in_a_network() -> None:
    curator, _ = spied()
    scaler = learn.StandardScaler(epsilon=1, delta=1e-6)
    pipeline = learn.Pipeline([("scaler", scaler), ("network", network(bounds=(-3, 3)))])
    model = curator.fit(pipeline, WARD, target="ward")
    assert model.predict([[30, 100.0]])[0] in "ABC"
    assert isinstance(model.event_, events.Composed)


def test_a_column_without_bounds_is_refused() -> None:
    curator, spy = spied(bounds={"age": (0, 120)})
    with pytest.raises(Exception, match="charge"):
        curator.fit(network(), WARD, target="ward")
    assert (spy.reads, charges(curator)) == (0, 0)


def test_no_rows_and_labels_of_no_class_are_no_error() -> None:
    curator, _ = spied()
    model = curator.fit(network(classes=["A", "Z"]), f"{WARD} WHERE age > 1000", target="ward")
    assert list(model.classes_) == ["A", "Z"]


def test_it_travels_as_a_document() -> None:
    curator, _ = spied()
    document = write_learner(network())
    assert document["learner"] == "deep.Classifier"
    estimator = read_learner(document)
    model = curator.fit(estimator, WARD, target="ward")
    again = MODEL.read(MODEL.write(model))
    assert again.event_ == model.event_
    with pytest.raises(InvalidParameter):
        read_learner({"learner": "deep.Trainer"})


@pytest.mark.ci
def test_seeded_noise_never_comes_back_as_private(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    with clinic(BUDGET, ledger=ledger) as tests:
        assert tests.fit(network(), WARD, target="ward").private_ is False
    with Curator(ledger, engine=Spy()) as real:
        real.protect(visits(3, patients=200), name="visits", **OPTIONS)
        model = real.fit(network(), WARD, target="ward")
        assert (model.private_, model.replayed_, model.random_state) == (True, False, None)
