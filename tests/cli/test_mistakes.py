"""Scripted mistakes: each has its exit code, names what was wrong and says what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from discreet.engines.duckdb.engine import DuckDB
from tests.cli.clinic import BY_WARD, COUNT, CSV, TOML, run, told_budget, write

DECLARATIONS = [
    # what is replaced in the file, by what, the key that the error names, and a part of its hint
    ("[tables.visits]", "[tables.visits", "discreet.toml", "at line"),
    ("[tables.visits]", '[tables.visits]\nsource = "a.csv"\nunit = ""\n[tables.visits]', "discreet.toml", "twice"),
    ("max_rows", "max_row", "tables.visits.max_row", "Did you mean max_rows?"),
    ("[budgets.patients]", "[budget.patients]", "budget", "Did you mean budgets?"),
    ("[budgets.patients]\nepsilon = 2", "[budgets.patients]\nepsilon = -2", "budgets.patients.epsilon", "positive"),
    ("epsilon = 2", "epsilon = nan", "budgets.patients.epsilon", "NaN"),
    ("epsilon = 2", "epsilon = true", "budgets.patients.epsilon", "not amounts"),
    ("epsilon = 2", "epsilon = 2\nrho = 1", "budgets.patients.rho", "Pass epsilon=1"),
    ('"1e-6"', '"2"', "budgets.patients.delta", "guarantee"),
    ("[budgets.patients]", "[budgets.visits]", "budgets.patients", "Add [budgets.patients]"),
    ('unit = "patient_id"\n', "", "tables.visits.unit", "Name the column"),
    ('unit = "patient_id"', 'unit = "person"', "tables.visits.unit", "patient_id"),
    ('unit = "patient_id"', "unit = 3", "tables.visits.unit", "quotes"),
    ('unit = "patient_id"', 'unit = "charge"', "tables.visits.unit", "whole numbers or texts as ids"),
    ('source = "visits.csv"\n', "", "tables.visits.source", "Name the file"),
    ('"visits.csv"', '"missing.csv"', "tables.visits.source", "Name one file"),
    ('"visits.csv"', '"discreet.toml"', "tables.visits.source", "Convert the file"),
    ("[0, 120]", "[120, 0]", "tables.visits.bounds", "public limits"),
    ("[0, 120]", "120", "tables.visits.bounds.age", "brackets"),
    ("[0, 120]", "[0, 60, 120]", "tables.visits.bounds['age']", "(0, 120)"),
    ("bounds = { age", "bounds = { years", "tables.visits.bounds", "Its columns are"),
    ('["A", "B", "C"]', '["A", "A"]', "tables.visits.keys['ward']", "List each key once"),
    ('["A", "B", "C"]', "[1, 2]", "tables.visits.keys['ward']", "List every public key"),
    ('age = "int"', 'age = "integer"', "tables.visits.types", ""),
    ("max_groups = 2", "max_groups = 0", "tables.visits.max_groups", ""),
    ("max_rows = 1", 'neighbours = "both"', "tables.visits.neighbours", "ADD_REMOVE"),
    ("[budgets", '[tables.VISITS]\nsource = "visits.csv"\nunit = ""\n[budgets', "tables.visits", "another name"),
    ("[budgets", "[analysts.ana.nobody]\nepsilon = 1\n[budgets", "analysts.ana.nobody", "Add [budgets.nobody]"),
    ("[budgets", "[analysts.ana.patients]\nepsilon = 0\n[budgets", "analysts.ana.patients.epsilon", "positive"),
    ('["A", "B", "C"]', '"wards.ward"', "tables.visits.keys['ward']", "public table"),
    ("[budgets", '[public.wards]\nsource = "no.csv"\n[budgets', "public.wards.source", "Name one file"),
    ("[budgets", "[public.wards]\n[budgets", "public.wards.source", "Name the file"),
    ("[budgets", '[public.wards]\nsource = "visits.csv"\n[budgets', "public.wards.types", "no column types"),
    ("[budgets", '[public.wards]\nsource = "visits.csv"\nunit = ""\n[budgets', "public.wards.unit", "Known here"),
    ("[budgets", '[public.Visits]\nsource = "visits.csv"\n[budgets', "tables.visits", "another name"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("old", "new", "name", "hint"), DECLARATIONS)
def test_mistakes_in_the_file(folder: Path, old: str, new: str, name: str, hint: str) -> None:
    assert old in TOML
    write(folder, TOML.replace(old, new, 1))
    refused = run("protect")
    assert refused.code == 2
    assert refused.error["InvalidParameter"].startswith(f"Expected {name}=")
    assert hint in refused.error.get("Hint", "")
    assert refused.out == ""


class Mistake(NamedTuple):
    sql: str
    options: list[str]
    code: int
    kind: str
    part: str  # of the reason or the hint
    position: str | None = None


CHEAP = ["--epsilon", "0.1"]
QUESTIONS = [
    Mistake("SELECT COUNT(*) FROM vists", CHEAP, 4, "UnknownTable", "Did you mean 'visits'?"),
    Mistake("SELECT AVG(agee) AS a FROM visits", CHEAP, 4, "UnsupportedQuery", "age", "line 1, column 12"),
    Mistake("SELEC COUNT(*) FROM visits", CHEAP, 4, "UnsupportedQuery", "", "line 1, column 1"),
    Mistake("SELECT age FROM visits", CHEAP, 4, "UnsupportedQuery", "", "line 1, column 8"),
    Mistake("SELECT KURTOSIS(age) AS m FROM visits", CHEAP, 4, "UnsupportedQuery", "AVG", "line 1, column 8"),
    Mistake(f'{COUNT} WHERE ward = "A"', CHEAP, 4, "UnsupportedQuery", "quotes: 'A'.", "line 1, column 47"),
    Mistake("SELECT charge FROM visits", CHEAP, 4, "UnsupportedQuery", "SELECT AVG(charge) AS", "line 1, column 8"),
    Mistake("SELECT AVG(ward) AS a FROM visits", CHEAP, 4, "UnsupportedQuery", "discreet check", "line 1, column 8"),
    Mistake(COUNT, [], 2, "InvalidParameter", "--epsilon 0.1"),
    Mistake("SELECT", ["COUNT(*)", "FROM", "visits", *CHEAP], 2, "InvalidParameter", "between quotes"),
    Mistake(COUNT, ["--epsilon", "0"], 2, "InvalidParameter", "epsilon='0' > 0"),
    Mistake(COUNT, ["--epsilon", "0,2"], 2, "InvalidParameter", "a number"),
    Mistake(COUNT, ["--epsilon", "-1"], 2, "InvalidParameter", "epsilon='-1' > 0"),
    Mistake(COUNT, ["--epsilon", "nan"], 2, "InvalidParameter", "NaN"),
    Mistake(COUNT, ["--epsilon", "much"], 2, "InvalidParameter", "a number"),
    Mistake(COUNT, ["--epsilon", "0.1", "--confidence", "2"], 2, "InvalidParameter", "confidence"),
    Mistake(COUNT, ["--epsilon", "0.1", "--limits-rows", "0"], 2, "InvalidParameter", "rows=0"),
    Mistake(COUNT, ["--epsilon", "5"], 3, "InsufficientBudget", "epsilon=5"),
    Mistake(COUNT, ["--epsilon", "5"], 3, "InsufficientBudget", "Ask with --epsilon 2 and --delta 0, or repeat"),
    Mistake(COUNT, ["--epsilon", "0.1", "--json", "--csv"], 2, "InvalidParameter", "Choose one"),
]


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("mistake", QUESTIONS)
def test_mistakes_in_a_question(mistake: Mistake) -> None:
    before = run("verify").out
    refused = run("ask", mistake.sql, *mistake.options)
    assert refused.code == mistake.code
    assert mistake.part in f"{refused.error[mistake.kind]} {refused.error.get('Hint', '')}"
    assert refused.error.get("Position") == mistake.position
    assert refused.out == ""
    assert run("verify").out == before  # nothing was spent
    for proposed in re.findall(r"`(SELECT[^`]*)`", refused.err):
        assert run("explain", proposed, "--epsilon", "0.1").code == 0


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize(
    "arguments", [["ask", COUNT], ["ask", "--epsilon", "1"], ["answer"], ["ask", COUNT, "--epsilon", "1", "--loud"]]
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert run(*arguments).code == 2


def test_csv_without_types_gets_a_line_to_paste_from_the_header_alone(folder: Path) -> None:
    line = 'types = { patient_id = "text", ward = "text", age = "text", charge = "text" }'
    bare = "\n".join(row for row in TOML.splitlines() if not row.startswith(("types", "bounds")))
    write(folder, bare)
    refused = run("protect")
    assert refused.code == 2
    assert refused.error["InvalidParameter"].startswith("Expected tables.visits.types=")
    assert line in refused.err.splitlines()
    (folder / "visits.csv").write_text(CSV.splitlines()[0] + "\nx,y,z,1999-01-01\n")
    assert run("protect").err == refused.err  # other rows, the same words
    write(folder, bare.replace("unit =", f"{line}\nunit ="))
    assert run("protect").code == 0


def test_a_file_that_is_there_is_not_overwritten(folder: Path) -> None:
    refused = run("init")
    assert refused.code == 2
    assert "The existing file is unchanged." in refused.error["Hint"]
    assert (folder / "discreet.toml").read_text() == TOML


@pytest.mark.parametrize("command", [["protect"], ["budget"], ["ask", COUNT, "--epsilon", "1"], ["verify"]])
def test_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run(*command)
    assert refused.code == 2
    assert "discreet check FILE.csv --write" in refused.error["Hint"]
    assert "discreet init" in refused.error["Hint"]


@pytest.mark.parametrize("command", [["budget"], ["history"], ["ask", COUNT, "--epsilon", "1"], ["verify"]])
def test_before_protecting(folder: Path, command: list[str]) -> None:
    refused = run(*command)
    assert refused.code == 2
    assert "discreet protect" in refused.error["Hint"]
    assert not (folder / "clinic.ledger").exists()


def test_other_declarations_than_before(clinic: Path) -> None:
    write(clinic, TOML.replace("max_rows = 1", "max_rows = 5"))
    refused = run("protect")
    assert refused.code == 2
    assert refused.error["InvalidParameter"].startswith("Expected --yes=")
    asked = run("ask", COUNT, "--epsilon", "1")
    assert asked.code == 2
    assert asked.error["DeclarationChanged"].startswith("Expected declaration=")
    assert "max_rows: 1 -> 5" in asked.error["Hint"]


CURRENCY = "The currency is fixed"
AMENDMENTS = [
    # what the file has instead, what the hint says
    ('epsilon = 3\ndelta = "1e-6"', "discreet amend patients --epsilon 3 --delta 1/1000000"),
    ('epsilon = 1\ndelta = "1e-6"', "discreet amend patients --epsilon 1 --delta 1/1000000"),
    ('epsilon = 2\ndelta = "1e-5"', "discreet amend patients --epsilon 2 --delta 1/100000"),
    ("epsilon = 2", CURRENCY),
    ("rho = 2", CURRENCY),
]


@pytest.mark.parametrize(("amounts", "hint"), AMENDMENTS)
def test_a_budget_that_an_account_never_had_is_refused_to_stewards_with_the_line_that_amends_it(
    clinic: Path, amounts: str, hint: str
) -> None:
    """Analysts go on: the ledger has the amount that counts."""
    present = 'epsilon = 2\ndelta = "1e-6"'
    head = run("verify").out
    write(clinic, TOML.replace(present, amounts))
    refused = run("protect")
    assert refused.code == 2
    assert refused.error["InvalidParameter"].startswith("Expected budgets.patients=")
    assert hint in refused.error["Hint"]
    assert run("verify").out == head
    assert [run("explain", COUNT, *CHEAP).code, run("ask", COUNT, *CHEAP).code] == [0, 0]
    assert told_budget()["balance"]["total"]["text"] == "epsilon=2, delta=1e-06"
    if hint is not CURRENCY:
        line = refused.error["Hint"].partition("run: discreet ")[2]
        assert run(*line.split()).code == 0
        assert run("protect").code == 0


def test_the_file_has_the_first_budget_and_the_ledger_the_others(clinic: Path) -> None:
    """No amount that was in force is refused: its refusal would propose to undo what was agreed since."""
    for epsilon in ("3", "4"):
        amended = run("amend", "patients", "--epsilon", epsilon, "--delta", "1e-6", "--note", "agreed by the board")
        assert f"is epsilon={epsilon}" in amended.out
    for written in ("2", "3", "4"):
        write(clinic, TOML.replace("epsilon = 2", f"epsilon = {written}"))
        protected = run("protect")
        assert protected.code == 0
        assert "epsilon=4, delta=1e-06" in protected.out
    assert run("ask", COUNT, "--epsilon", "3.5").code == 0
    for wrong in (
        ["nobody", "--epsilon", "3"],
        ["patients"],
        ["patients", "--rho", "1"],
        ["patients", "--epsilon", "3"],
    ):
        assert run("amend", *wrong).code == 2


def test_caps_of_the_file_are_those_of_the_ledger(folder: Path) -> None:
    """Also a cap that equals the account's budget, and none where there was such a cap: they differ when it grows."""
    same = '\nepsilon = 2\ndelta = "1e-6"'
    for cap in ("", '\nepsilon = 1\ndelta = "1e-7"', same, "", same):
        write(folder, f"{TOML}\n[analysts.ana.patients]{cap}\n")
        assert run("protect").code == 0
        told = run("explain", COUNT, *CHEAP, "--analyst", "ana")
        assert (told.code, "analyst ana" in told.out) == (0, bool(cap))


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("command", ["budget", "history"])
def test_unknown_account(command: str) -> None:
    refused = run(command, "--account", "nobody")
    assert (refused.code, "account='nobody'" in refused.err) == (2, True)


@pytest.mark.parametrize("ledger", ["no/such/folder/clinic.ledger", "."])
def test_a_ledger_that_cannot_be_written(folder: Path, ledger: str) -> None:
    write(folder, TOML.replace("clinic.ledger", ledger))
    failed = run("protect")
    assert failed.code == 5
    assert "LedgerError" in failed.error


def test_an_analyst_nobody_appointed(folder: Path) -> None:
    write(folder, f"{TOML}\n[analysts.ana.patients]\n")
    assert run("protect").code == 0
    for command in ("ask", "explain", "choose-epsilon"):
        refused = run(command, COUNT, "--epsilon", "0.1", "--analyst", "bob")
        assert refused.code == 2
        assert "'bob' may not ask" in refused.error["NotPermitted"]
        assert run(command, COUNT, "--epsilon", "0.1", "--analyst", "ana").code == 0


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("command", ["ask", "explain"])
def test_a_project_that_was_allotted_nothing(command: str) -> None:
    refused = run(command, COUNT, "--epsilon", "0.1", "--project", "asthma")
    assert (refused.code, "NotPermitted" in refused.error) == (2, True)


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("anchor", ["7", "7:beef", "x:y"])
def test_an_anchor_that_is_none(anchor: str) -> None:
    refused = run("verify", "--anchor", anchor)
    assert refused.code == 2
    assert "discreet verify" in refused.error["Hint"]


@pytest.mark.usefixtures("clinic")
def test_a_failed_read_says_nothing_and_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("p7 is 41 years old")

    monkeypatch.setattr(DuckDB, "_groups", fail)
    failed = run("ask", COUNT, "--epsilon", "0.1")
    assert failed.code == 5
    assert failed.error == {"QueryFailed": "The question could not be answered. Its charge stays; ask the steward."}
    assert "spent                        5 %" in run("budget").out


@pytest.mark.usefixtures("clinic")
def test_what_nobody_foresaw_shows_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("p7 is 41 years old")

    monkeypatch.setattr("discreet.curator.curator.enrol", fail)
    failed = run("ask", BY_WARD, "--epsilon", "0.1")
    assert failed.code == 5
    assert "p7" not in failed.err
    assert "RuntimeError" in failed.error["InternalError"]
