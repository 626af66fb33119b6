"""Attacks on files: what they print, as words, JSON and pages; and mistakes, which end with 2."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from discreet.demo.lab import QUASI, hospital, register, town
from discreet.noise import SeededBits
from discreet.noise.experiment import coins, shuffle_indices, uniforms
from tests.cli.clinic import run

ON = [part for name in QUASI for part in ("--on", name)]
PEOPLE = town(600)


def write(path: Path, rows: Sequence[Any]) -> None:
    names = list(rows[0]) if isinstance(rows[0], dict) else [f"c{place}" for place in range(len(rows[0]))]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(row.values() if isinstance(row, dict) else row for row in rows)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hospital.csv", hospital(PEOPLE, 300))
    write(tmp_path / "register.csv", register(PEOPLE))
    return tmp_path


def test_a_release_is_joined_with_a_list(files: Path) -> None:
    told = run("attack", "linkage", "hospital.csv", "register.csv", *ON, "--truth", "number")
    assert told.code == 0
    assert "of 300 released rows named rightly" in told.out
    found = json.loads(run("attack", "linkage", "hospital.csv", "register.csv", *ON, "--truth", "number", "--json").out)
    assert found["success"] > 0.95
    assert found["confirmed"] == len(found["recovered"])
    assert not list(files.glob("*.html"))


@pytest.mark.ci
def test_defences_are_compared_on_a_page(files: Path) -> None:
    given = "hospital.csv", "register.csv", *ON, "--truth", "number", "--sensitive", "diagnosis"
    told = run("attack", "linkage", *given, "--compare", "--epsilon", "0.1", "--epsilon", "5", "--html", "page.html")
    assert told.code == 0
    assert [word in told.out for word in ("epsilon 0.1", "epsilon 5", "no limit known")] == [True] * 3
    page = (files / "page.html").read_text(encoding="utf-8")
    assert "e^epsilon" in page
    assert page.count("<figure>") == 1


@pytest.mark.parametrize("name", ["k_anonymity", "k-anonymity"])
@pytest.mark.usefixtures("files")
def test_names_are_those_of_python_or_have_dashes(name: str) -> None:
    told = run("attack", name, "hospital.csv", "--on", "sex", "--sensitive", "diagnosis")
    assert told.code == 0
    assert "entropy l" in told.out


@pytest.mark.usefixtures("files")
def test_people_are_counted_and_looked_up() -> None:
    assert "unique" in run("attack", "uniqueness", "register.csv", *ON, "--cells", "584000").out
    given = "attack", "uniqueness", "hospital.csv", *ON, "--compare", "--sensitive", "diagnosis"
    assert json.loads(run(*given, "--json").out)["trials"][0]["finding"]["success"] > 0.9
    told = run("attack", "intersection", "hospital.csv", *ON, "--sensitive", "diagnosis", "--compare")
    assert told.code == 0


def test_ratings_with_dates_in_seconds_find_people(files: Path) -> None:
    bits, day = SeededBits(4), 86_400
    rows = [
        {"user": user, "item": item, "rating": 1 + item % 5, "day": int(day * 900 * when)}
        for user in range(30)
        for item, when in zip(
            shuffle_indices(200, bits=bits)[:12].tolist(), uniforms(12, bits=bits).tolist(), strict=True
        )
    ]
    write(files / "ratings.csv", rows)
    write(files / "known.csv", rows[:6])
    told = run("attack", "scoreboard", "ratings.csv", "known.csv", "--seconds", "--json")
    assert json.loads(told.out)["recovered"] == {"0": "0"}
    assert run("attack", "scoreboard", "ratings.csv", "--seconds", "--items", "5").code == 0
    assert "epsilon 2" in run("attack", "scoreboard", "ratings.csv", "--seconds", "--compare", "--epsilon", "2").out


def test_bits_are_rebuilt(files: Path) -> None:
    bits = SeededBits(9)
    asked, secret = coins((120, 24), bits=bits), coins(24, bits=bits)
    write(files / "queries.csv", asked.tolist())
    write(files / "answers.csv", [[total] for total in (asked @ secret).tolist()])
    write(files / "truth.csv", [[bit] for bit in secret.tolist()])
    told = run("attack", "reconstruct", "queries.csv", "answers.csv", "--truth", "truth.csv", "--json")
    assert json.loads(told.out)["success"] == 1
    assert "epsilon 10" in run("attack", "reconstruct", "queries.csv", "--truth", "truth.csv", "--compare").out


def test_averages_are_subtracted_and_members_recognised(files: Path) -> None:
    bits = SeededBits(2)
    shares = 0.1 + 0.8 * uniforms(300, bits=bits)
    genomes = (uniforms((2, 330, 300), bits=bits) < shares).sum(axis=0)
    for name, part in {"group": genomes[:30], "reference": genomes[30:230], "strangers": genomes[230:]}.items():
        write(files / f"{name}.csv", part.tolist())
    write(files / "means.csv", [genomes[:30].mean(axis=0).tolist()])
    told = run("attack", "genome", "group.csv", "reference.csv", "strangers.csv", "--epsilon", "1")
    assert "epsilon 1" in told.out
    traced = run("attack", "trace", "means.csv", "reference.csv", "group.csv", "--people", "30", "--json")
    assert json.loads(traced.out)["success"] > 0.5
    write(files / "pay.csv", [{"salary": 1000 + place} for place in range(50)])
    assert "epsilon 0.1" in run("attack", "difference", "pay.csv", "--column", "salary", "--bounds", "0", "5000").out


@pytest.mark.ci
def test_models_tell_their_members(files: Path) -> None:
    pytest.importorskip("sklearn")
    table = uniforms((120, 4), bits=SeededBits(3))
    write(files / "people.csv", [[*row, int(row[0] > 0.5)] for row in table.tolist()])
    told = run("attack", "membership", "people.csv", "--target", "c4", "--epsilon", "1")
    assert told.code == 0
    assert "separated" in told.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("uniqueness", "hospital.csv", "--on", "zip"), "The table has: number, postcode"),
        (("uniqueness", "hospital.csv", *ON, "--compare"), "Add --sensitive COLUMN."),
        (("uniqueness", "nowhere.csv", *ON), "Name a CSV or a Parquet file."),
        (("intersection", "hospital.csv", *ON, "--sensitive", "diagnosis"), "Name two releases"),
        (("difference", "hospital.csv", "--column", "sex", "--bounds", "0", "1"), "Repair or drop the column."),
        (("reconstruct", "hospital.csv"), "Repair or drop the column."),
        (("membership", "hospital.csv", "--target", "diagnosis"), "Repair or drop the column."),
    ],
)
@pytest.mark.usefixtures("files")
def test_mistakes_are_explained(arguments: tuple[str, ...], told: str) -> None:
    found = run("attack", *arguments)
    assert found.code == 2
    assert told in found.error["Hint"]
