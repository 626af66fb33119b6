"""Folders of files under a curator: charged before a file is read; what one person changes; what is never told."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.curator import Curator
from discreet.curator.observation import engine_of, observe_curator
from discreet.engines import Folder, Memory
from discreet.errors import DeclarationChanged, InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.learn import LogisticRegression, StandardScaler
from discreet.learn.pipelines.pipeline import Pipeline
from discreet.noise import SeededBits, uniform_below
from discreet.privacy import Budget
from tests.curator.handing import Listening
from tests.engines.pictures import png

ROWS = "SELECT image, label FROM scans"
BUDGET = Budget(epsilon=10, delta=1e-4)
SHAPE = (1, 2, 3)
PEOPLE = ("ana", "bob", "cem")


def learner(**changed: Any) -> Any:
    return LogisticRegression(**{"epsilon": 1, "delta": 1e-6, **changed})


def filled(root: Path, seed: int = 1, people: tuple[str, ...] = PEOPLE) -> Path:
    """A few pictures of everybody, one of them spoiled."""
    for who in people:
        for place in range(3):
            drawn = uniform_below(256, (2, 3, 1), bits=SeededBits(seed + 10 * place + 100 * len(who) + ord(who[0])))
            label = ("cat", "dog")[place % 2]
            (root / label).mkdir(parents=True, exist_ok=True)
            (root / label / f"{who}_{place}.png").write_bytes(png(drawn) if place < 2 else b"spoiled")
    return root


def source(root: Path, **changed: Any) -> Folder:
    return Folder(**{"path": root, "suffix": ".png", "shape": SHAPE, "person": r"([a-z]+)_", **changed})


def curated(root: Path, **declared: Any) -> Curator:
    curator = Curator.for_tests(bits=SeededBits(1))
    facts: dict[str, Any] = {"unit": "person", "keys": {"label": ["cat", "dog"]}, "budget": BUDGET, **declared}
    curator.protect(source(root), name="scans", **{"max_rows": 1, **facts})
    return curator


def charges(curator: Curator) -> int:
    return sum(entry.kind == "charge" for entry in curator.history("scans"))


def handed(root: Path, rows_per_unit: int = 1) -> Counter[Any]:
    """The rows that a fit hands to its learner."""
    curator, releaser = curated(root), Listening()
    watched = observe_curator(curator, engine=engine_of(curator), releaser=releaser, salt="s")
    watched.fit(learner(), ROWS, target="label", rows_per_unit=rows_per_unit)
    ((X, y),) = releaser.given
    assert y is not None
    return Counter((*map(str, row), label) for row, label in zip(X.tolist(), y.tolist(), strict=True))


def test_a_fit_is_charged_before_anything_is_listed_or_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curator, seen = curated(filled(tmp_path)), []
    numbers, rows = Folder.numbers, Folder._rows

    def opened(self: Folder, files: Any) -> Any:
        seen.append(("read", charges(curator)))
        return numbers(self, files)

    def listed(self: Folder) -> Any:
        seen.append(("listed", charges(curator)))
        return rows(self)

    monkeypatch.setattr(Folder, "numbers", opened)
    monkeypatch.setattr(Folder, "_rows", listed)
    plan = curator.plan_fit(learner(), ROWS, target="label")
    assert seen == []
    assert (plan.features, plan.limits) == (("image",), ((0.0, 255.0),))
    model = curator.fit(learner(), ROWS, target="label")
    assert {paid for _, paid in seen} == {1}
    assert {act for act, _ in seen} == {"listed", "read"}
    assert (model.columns_, model.bounds, list(model.classes_)) == (["image"], (0.0, 255.0), ["cat", "dog"])
    before = len(seen)
    assert curator.fit(learner(), ROWS, target="label").replayed_
    assert len(seen) == before
    assert any("blank" in note for note in model.notes_)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("who", range(3))
def test_one_person_changes_one_row(tmp_path: Path, who: int) -> None:
    rest = tuple(person for place, person in enumerate(PEOPLE) if place != who)
    whole, fewer = handed(filled(tmp_path / "whole")), handed(filled(tmp_path / "fewer", people=rest))
    assert sum(((whole - fewer) + (fewer - whole)).values()) == 1
    assert sum(whole.values()) == len(PEOPLE) + 1  # and the made-up one


def test_a_mutant_without_the_limit_of_a_person_is_seen(tmp_path: Path) -> None:
    """Were each file a person of its own, one person would change three rows."""
    found = []
    for people in (PEOPLE, PEOPLE[1:]):
        root = filled(tmp_path / str(len(people)), people=people)
        curator, releaser = Curator.for_tests(bits=SeededBits(1)), Listening()
        curator.protect(source(root), name="scans", keys={"label": ["cat", "dog"]}, budget=BUDGET)
        watched = observe_curator(curator, engine=engine_of(curator), releaser=releaser, salt="s")
        watched.fit(learner(), ROWS, target="label")
        found.append(len(releaser.given[0][0]))
    assert found[0] - found[1] == 3


@pytest.mark.ci
def test_a_file_that_cannot_be_read_is_a_row_like_any_other(tmp_path: Path) -> None:
    """Same shape, same event, same charge: with a whole file, a spoiled one, one that vanished, and one of a GiB."""
    models = []
    for kind in range(4):
        root = tmp_path / str(kind)
        (root / "cat").mkdir(parents=True)
        file = root / "cat" / "ana_1.png"
        file.write_bytes(png(np.zeros((2, 3, 1), np.uint8)) if kind == 0 else b"")
        if kind == 3:
            os.truncate(file, 1 << 30)
        curator = curated(root)
        if kind == 2:
            file.chmod(0)
        model = curator.fit(learner(), ROWS, target="label")
        models.append((model.event_, model.coef_.shape, str(model.cost_), curator.budget("scans").failures))
    assert len(set(map(str, models))) == 1


def test_a_file_that_vanishes_between_listing_and_reading_is_a_blank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator, numbers = curated(filled(tmp_path)), Folder.numbers

    def late(self: Folder, files: Any) -> Any:
        for file in tmp_path.rglob("*.png"):
            file.unlink()
        return numbers(self, files)

    monkeypatch.setattr(Folder, "numbers", late)
    assert curator.fit(learner(), ROWS, target="label").coef_.shape == (1, 6)


def test_a_failure_stays_charged_and_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(_: Folder, files: Any) -> Any:
        raise ValueError(f"ZZ-CANARY {files}")

    curator = curated(filled(tmp_path))
    monkeypatch.setattr(Folder, "numbers", leaking)
    with pytest.raises(QueryFailed) as failed:
        curator.fit(learner(), ROWS, target="label")
    assert (failed.value.__cause__, failed.value.__context__, charges(curator)) == (None, None, 1)


def test_an_empty_folder_is_no_error(tmp_path: Path) -> None:
    assert curated(tmp_path).fit(learner(), ROWS, target="label").coef_.shape == (1, 6)


# ----------------------------------------------------------------------------------------------------- other questions


def test_files_beside_other_columns_renamed_filtered_and_folded(tmp_path: Path) -> None:
    curator = curated(filled(tmp_path))
    beside = "SELECT i, LENGTH(label) > 2 AS b, label FROM (SELECT image AS i, label FROM scans WHERE label = 'cat')"
    model = curator.fit(learner(), beside, target="label")
    assert model.columns_ == ["i", "b"]
    assert model.coef_.shape == (1, 7)
    latest = "SELECT last, n FROM (SELECT person, MAX(image) AS last, COUNT(*) AS n FROM scans GROUP BY person)"
    assert curator.fit(StandardScaler(epsilon=1, delta=1e-6), latest).columns_ == ["last", "n"]


@pytest.mark.parametrize(
    "question",
    [
        "SELECT UPPER(image) AS image, label FROM scans",
        "SELECT CASE WHEN label = 'cat' THEN '../x.png' ELSE image END AS image, label FROM scans",
        "SELECT image, label FROM scans UNION ALL SELECT label AS image, label FROM scans",
        "SELECT label AS image, label AS l, person FROM scans",
    ],
)
def test_a_text_that_is_no_file_of_the_folder_is_not_read_as_one(tmp_path: Path, question: str) -> None:
    curator = curated(filled(tmp_path))
    with pytest.raises(UnsupportedQuery):
        curator.fit(learner(), question, target="label")
    assert charges(curator) == 0


def test_files_of_two_folders_are_not_mixed_up(tmp_path: Path) -> None:
    curator = curated(filled(tmp_path / "a"))
    more: dict[str, Any] = {"unit": "person", "max_rows": 1, "keys": {"label": ["cat", "dog"]}, "account": "scans"}
    curator.protect(source(filled(tmp_path / "b")), name="others", **more)
    parts = [f"SELECT person, image, label FROM {table}" for table in ("scans", "others")]
    with pytest.raises(UnsupportedQuery, match="public keys"):
        curator.fit(learner(), f"SELECT image, label FROM ({' UNION ALL '.join(parts)}) AS both", target="label")
    twice = f"SELECT image, label FROM ({' UNION ALL '.join(parts[:1] * 2)}) AS both"
    assert curator.fit(learner(), twice, target="label").columns_ == ["image"]
    assert curator.fit(learner(), "SELECT image, label FROM others", target="label").columns_ == ["image"]


def test_counts_of_files_are_questions_like_others(tmp_path: Path) -> None:
    curator = curated(filled(tmp_path))
    answer = curator.ask("SELECT label, COUNT(*) AS n FROM scans GROUP BY label", epsilon=1)
    assert len(answer) == 2


# ---------------------------------------------------------------------------------------------------------- a file


DECLARED = """
[budgets.scans]
epsilon = 10
delta = 1e-4
[tables.scans]
source = "scans"
unit = "person"
max_rows = 1
keys = { label = ["cat", "dog"] }
files = { suffix = ".png", shape = [1, 2, 3], bounds = [0, 255], person = "([a-z]+)_" }
"""


def test_a_folder_is_declared_in_a_file(tmp_path: Path) -> None:
    filled(tmp_path / "scans")
    (tmp_path / "discreet.toml").write_text(DECLARED)
    with Curator.from_config(tmp_path / "discreet.toml") as curator:
        model = curator.fit(learner(), ROWS, target="label")
        assert (model.columns_, model.private_) == (["image"], True)
    with Curator.from_config(tmp_path / "discreet.toml", opening=False) as curator:
        assert curator.fit(learner(), ROWS, target="label").replayed_


@pytest.mark.parametrize(
    ("written", "instead", "name"),
    [
        ('"scans"\nunit', '"nowhere"\nunit', "tables.scans.source"),
        ('suffix = ".png", ', "", "tables.scans.files.suffix"),
        ('".png"', '".jpg"', "tables.scans.files.suffix"),
        ("[1, 2, 3]", "[1, 2]", "tables.scans.files.shape"),
        ("[1, 2, 3]", '"1"', "tables.scans.files.shape"),
        ("[0, 255]", "[255, 0]", "tables.scans.files.bounds"),
        ("person = ", "persons = ", "tables.scans.files.persons"),
        ("([a-z]+)_", "[a-z]+_", "tables.scans.files.person"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, written: str, instead: str, name: str) -> None:
    (tmp_path / "scans").mkdir()
    (tmp_path / "discreet.toml").write_text(DECLARED.replace(written, instead))
    with pytest.raises(InvalidParameter) as caught:
        Curator.from_config(tmp_path / "discreet.toml")
    assert caught.value.name == name
    assert not (tmp_path / "discreet.ledger").exists()


# ------------------------------------------------------------------------------------------------------------ refusals


def test_files_have_one_budget(tmp_path: Path) -> None:
    root = filled(tmp_path / "scans")
    curator = curated(root)
    os.symlink(root, tmp_path / "link")
    for again in (root, tmp_path / "link", tmp_path, root / "cat"):
        with pytest.raises(InvalidParameter) as caught:
            curator.protect(source(again), name="copy", unit="person", max_rows=1, budget=BUDGET)
        assert caught.value.name == "source"
    with pytest.raises(InvalidParameter):
        curator.public(source(root), name="open")
    curator.protect(source(root / "cat"), name="cats", unit="person", max_rows=1, account="scans")


def test_another_shape_is_another_declaration(tmp_path: Path) -> None:
    curator = curated(filled(tmp_path))
    same: dict[str, Any] = {"unit": "person", "keys": {"label": ["cat", "dog"]}}
    curator.protect(source(tmp_path), name="scans", **same)
    with pytest.raises(DeclarationChanged, match="1x2x4"):
        curator.protect(source(tmp_path, shape=(1, 2, 4)), name="scans", **same)
    model = curator.fit(learner(), ROWS, target="label")
    curator.protect(source(tmp_path, shape=(1, 2, 4)), name="scans", change=True, **same)
    again = curator.fit(learner(), ROWS, target="label")
    assert (again.replayed_, again.coef_.shape, model.coef_.shape) == (False, (1, 8), (1, 6))


def test_too_many_numbers_for_a_learner_are_refused(tmp_path: Path) -> None:
    curator = Curator.for_tests(bits=SeededBits(1))
    keys = {"label": ["cat", "dog"]}
    curator.protect(
        source(tmp_path, shape=(1, 40, 40)), name="scans", unit="person", max_rows=1, keys=keys, budget=BUDGET
    )
    with pytest.raises(UnsupportedQuery, match="1024 features"):
        curator.fit(learner(), ROWS, target="label")
    assert charges(curator) == 0


def test_a_pipeline_takes_no_files(tmp_path: Path) -> None:
    curator = curated(filled(tmp_path))
    pipeline = Pipeline([("scaler", StandardScaler(epsilon=1, delta=1e-6)), ("lines", learner())])
    found = None
    try:
        found = curator.fit(pipeline, ROWS, target="label")
    except (UnsupportedQuery, InvalidParameter):
        assert charges(curator) == 0
    assert found is None or found.columns_ == ["image"]


def test_an_engine_that_holds_rows_takes_no_folder(tmp_path: Path) -> None:
    with Curator(engine=Memory()) as curator, pytest.raises(InvalidParameter):
        curator.protect(source(tmp_path), name="scans", unit="person", max_rows=1, budget=BUDGET)
