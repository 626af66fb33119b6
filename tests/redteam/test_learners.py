"""Learners under attack: what a model tells beside what was paid for, and files that are more than data."""

from __future__ import annotations

import logging
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet import learn
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import InvalidParameter, QueryFailed
from discreet.learn.persistence import store
from tests.redteam.clinics import APPROXIMATE, clinic
from tests.redteam.salts import same_salt
from tests.redteam.test_canaries import ROWS, SECRETS, WHOLE, Loud, confessed, files, planted

WARD = "SELECT age, charge, ward FROM visits"
FITS: tuple[tuple[Any, str, str | None], ...] = (
    (learn.LogisticRegression(epsilon=0.1, delta=1e-7, steps=5), WARD, "ward"),
    (learn.DecisionTreeClassifier(epsilon=0.1, delta=1e-7), "SELECT age, kind FROM visits", "kind"),
    (learn.LinearRegression(epsilon=0.1, delta=1e-7), "SELECT age, ward, charge FROM visits", "charge"),
    (learn.StandardScaler(epsilon=0.1, delta=1e-7), "SELECT age, charge FROM visits", None),
    (learn.KMeans(epsilon=0.1, delta=1e-7, n_clusters=2), "SELECT age, charge FROM visits WHERE note <> 'x'", None),
)


def attempted(curator: Any, fit: tuple[Any, str, str | None]) -> str:
    """All that a fit says: the model as text and as it prints, or its error."""
    estimator, question, target = fit
    try:
        model = curator.fit(estimator, question, target=target)
    except QueryFailed as error:
        return confessed(error)
    plain = re.sub(r'"data": "[^"]*"', "", store.to_json(model))  # bytes of noisy numbers
    return "\n".join([plain, repr(model), *model.notes_, str(model.cost_), str(model.remaining_), repr(vars(model))])


@pytest.mark.ci
@pytest.mark.parametrize("make", [Memory, Loud, lambda: DuckDB(threads=1)], ids=["memory", "failing", "duckdb"])
def test_canaries_are_never_seen_in_fits(
    make: Callable[[], Engine], tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """RT-089, RT-090, RT-096: neither a value nor the number of rows in models, errors, logs, output or the ledger."""
    caplog.set_level(logging.DEBUG)
    with same_salt():
        curator = clinic(planted(), engine=make(), budget=APPROXIMATE, ledger=str(tmp_path / "book"))
    said = [attempted(curator, fit) for fit in (FITS if make is not Loud else FITS[:3])]
    curator.close()
    captured = capfd.readouterr()
    seen = [*said, caplog.text, captured.out, captured.err]
    assert not [text for text in seen if WHOLE.search(text)]
    for secret in SECRETS:
        assert not [text for text in seen if secret in text]
        assert secret.encode() not in files(tmp_path)


def test_the_search_for_canaries_would_find_them() -> None:
    assert WHOLE.search(f"n_samples_ = {ROWS}")


@pytest.mark.ci
def test_whatever_is_learned_from_rows_is_charged() -> None:
    """RT-100: scaling, components, tuning: each learner has a price before it is fitted, and the ledger takes it."""
    with same_salt():
        curator = clinic(planted(), budget=APPROXIMATE)
    for estimator, question, target in FITS:
        before = curator.budget("visits").spent
        plan = curator.plan_fit(estimator, question, target=target)
        assert curator.budget("visits").spent == before
        try:
            curator.fit(estimator, question, target=target)
        except QueryFailed:  # classes that were not found
            assert target == "kind"
        assert curator.budget("visits").spent != before
        assert plan.cost is not None
    assert all(callable(kind.plan_event) for kind in store.kinds().values())


def test_a_model_that_is_a_pickle_is_refused(tmp_path: Path) -> None:
    """RT-095: nothing in a file is run."""

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "touched",))

    (tmp_path / "model").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InvalidParameter):
        learn.load(tmp_path / "model")
    assert not (tmp_path / "touched").exists()
