"""The way of a user: init, declare, protect, explain, ask, look at the ledger, verify it."""

from __future__ import annotations

import csv
import io
import json
import stat
import tomllib
from pathlib import Path

import pytest

from discreet.cli.declaration_commands import TEMPLATE
from discreet.curator import Curator
from discreet.curator.config.toml_file import load
from discreet.errors import InvalidParameter
from discreet.ledger import Ledger
from discreet.presentation.documents.answer_documents import ANSWER
from tests.cli.clinic import BY_WARD, COUNT, TOML, records, run, told_budget, told_history, write


def test_from_an_empty_folder_to_a_verified_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init").code == 0
    assert (tmp_path / "discreet.toml").read_text() == TEMPLATE.read_text()
    write(tmp_path)
    protected = run("protect")
    assert protected.code == 0
    assert "patients" in protected.out
    assert stat.S_IMODE((tmp_path / "clinic.ledger").stat().st_mode) == 0o600

    explained = run("explain", BY_WARD, "--epsilon", "0.25")
    assert explained.code == 0
    assert "epsilon=0.25, 12.5 % of the budget; remaining on account 'patients': 100 %" in explained.out
    assert told_budget()["balance"]["spent"]["epsilon"] == "0/1"

    answered = run("ask", BY_WARD, "--epsilon", "0.25")
    assert answered.code == 0
    assert "95 % interval" in answered.out
    assert "Cost: epsilon=0.25" in answered.out
    again = run("ask", BY_WARD, "--epsilon", "0.25")
    assert "Replayed" in again.out
    assert again.out.splitlines()[:5] == answered.out.splitlines()[:5]

    spent = run("budget").out
    assert all(
        word in spent
        for word in ("total", "spent", "remaining", "lifetime", "epsilon=2, delta=1e-06", "12.5 %", "87.5 %")
    )
    told = run("history").out
    assert all(
        word in told
        for word in ("open with", "attach visits", "charge SELECT ward, COUNT(*) AS n, AVG(charge) AS cost", "owner")
    )
    head = run("verify")
    assert head.code == 0
    anchored = run("verify", "--anchor", head.out.splitlines()[-1])
    assert (anchored.code, anchored.out.splitlines()[-1]) == (0, head.out.splitlines()[-1])


@pytest.mark.ci
@pytest.mark.usefixtures("clinic")
def test_several_questions_are_one_charge() -> None:
    both = run("ask", COUNT, BY_WARD, "--epsilon", "0.5", "--key", "k")
    assert both.code == 0
    assert both.out.count("Cost: epsilon=0.5") == 2
    assert told_budget()["balance"]["spent"]["epsilon"] == "1/2"
    Path("questions.sql").write_text(f"{COUNT};\n-- and by ward\n{BY_WARD};\n")
    again = run("ask", "--file", "questions.sql", "--epsilon", "0.5", "--key", "k", "--json")
    found = json.loads(again.out)["answers"]
    assert [one["replayed"] for one in found] == [True, True]
    assert [len(one["rows"]) for one in found] == [1, 3]
    assert run("ask", COUNT, BY_WARD, "--epsilon", "0.5", "--csv").out.count("n_low") == 2
    assert "charge SELECT COUNT(*) AS n FROM visits; SELECT ward, COUNT(*) AS n" in run("history").out
    wrong = run("ask", COUNT, "SELECT age FROM visits", "--epsilon", "0.5")
    assert (wrong.code, "Question 2: " in wrong.err) == (4, True)
    for more in (["--within", "3"], ["--coverage", "0.1"], ["--limits-rows", "2"], ["--file", "questions.sql"]):
        assert run("ask", COUNT, BY_WARD, "--epsilon", "0.5", *more).code == 2
    for few in (["ask", "--epsilon", "1"], ["ask", COUNT, BY_WARD], ["ask", "--file", "nowhere.sql"]):
        assert run(*few).code == 2
    limited = ("--limits-rows", "1", "--limits-groups", "1")
    assert run("ask", COUNT, BY_WARD, "--epsilon", "0.25", *limited).code == 0


@pytest.mark.usefixtures("clinic")
def test_protecting_again_changes_nothing() -> None:
    before = run("verify").out
    assert run("protect").code == 0
    assert run("verify").out == before


def test_the_template_without_its_marks_is_accepted(tmp_path: Path) -> None:
    template = TEMPLATE.read_text().splitlines()[3:]
    lines = [line[2:] if line.startswith("# ") and "---" not in line else line for line in template]
    text = "\n".join(line for line in lines if line != "#")
    path = tmp_path / "discreet.toml"
    path.write_text(text)
    config = load(path)
    assert set(tomllib.loads(text)["tables"]["visits"]) == {*config.tables[0].declared, "source", "unit", "account"}
    assert (config.tables[0].account, config.analysts[0].name) == ("patients", "ana")


@pytest.mark.parametrize("written", ["0.1", '"0.1"', '"1/10"', "1e-1"])
def test_amounts_mean_what_was_written(folder: Path, written: str) -> None:
    write(folder, TOML.replace("epsilon = 2", f"epsilon = {written}"))
    assert run("protect").code == 0
    assert told_budget()["balance"]["total"]["epsilon"] == "1/10"


def test_json_is_the_answer(clinic: Path) -> None:
    """The document is what a service sends."""
    told = run("ask", BY_WARD, "--epsilon", "0.5", "--json", "--confidence", "0.9").out
    printed = json.loads(told)
    answer = Curator.from_config(clinic / "discreet.toml", opening=False).ask(BY_WARD, epsilon="0.5", confidence="0.9")
    assert answer.replayed
    assert records(told) == list(answer.records)
    assert printed == {**ANSWER.write(answer), "cost": printed["cost"], "replayed": False}
    assert printed["cost"]["text"] == "epsilon=0.5, 25 % of the budget"


@pytest.mark.usefixtures("clinic")
def test_csv_has_intervals() -> None:
    rows = list(csv.DictReader(io.StringIO(run("ask", BY_WARD, "--epsilon", "0.5", "--csv").out)))
    assert [row["ward"] for row in rows] == ["A", "B", "C"]
    assert all(int(row["n_low"]) <= int(row["n"]) <= int(row["n_high"]) for row in rows)
    assert all(float(row["cost_low"]) <= float(row["cost"]) <= float(row["cost_high"]) for row in rows)


@pytest.mark.usefixtures("clinic")
def test_limits_belong_to_the_question() -> None:
    usual = run("explain", BY_WARD, "--epsilon", "0.5").out
    assert "groups per unit: 2; rows per unit and group: 1" in usual
    other = run("explain", BY_WARD, "--epsilon", "0.5", "--limits-rows", "3").out
    assert "groups per unit: 2; rows per unit and group: 3" in other
    assert run("ask", COUNT, "--epsilon", "0.5", "--limits-groups", "1", "--limits-rows", "3").code == 0


@pytest.mark.usefixtures("clinic")
def test_one_more_group_for_all_other_rows() -> None:
    rows = records(run("ask", BY_WARD, "--epsilon", "0.5", "--other", "elsewhere", "--json").out)
    assert rows[-1]["ward"] == "elsewhere"
    assert len(rows) == 1 + len(json.loads(run("ask", BY_WARD, "--epsilon", "0.5", "--json").out)["rows"])
    assert "'elsewhere'" in run("explain", BY_WARD, "--epsilon", "0.5", "--other", "elsewhere").out


@pytest.mark.usefixtures("clinic")
def test_explaining_shows_the_error_that_the_answer_has() -> None:
    explained = run("explain", COUNT, "--epsilon", "0.5").out
    row = records(run("ask", COUNT, "--epsilon", "0.5", "--json").out)[0]
    assert f"± {row['n_high'] - row['n']}\n" in explained


@pytest.mark.usefixtures("clinic")
def test_a_ratio_whose_denominator_may_be_zero_is_an_answer() -> None:
    ratio = "SELECT SUM(charge) / COUNT(*) AS r FROM visits"
    assert "unbounded" in run("explain", ratio, "--epsilon", "0.001", "--rows", "1").out
    row = records(run("ask", ratio, "--epsilon", "0.001", "--json").out)[0]
    assert set(row) == {"r", "r_low", "r_high"}


@pytest.mark.usefixtures("clinic")
def test_private_groups_have_a_threshold() -> None:
    by_age = "SELECT CAST(charge AS INT) + age AS key, COUNT(*) AS n FROM visits GROUP BY 1"
    assert "only if their noisy count reaches" in run("explain", by_age, "--epsilon", "0.5").out
    answered = run("ask", by_age, "--epsilon", "0.1", "--delta", "1e-9")
    assert answered.code == 0
    assert "No group was large enough" in answered.out  # the threshold is far above 2, the people of one key


def test_analysts_are_appointed_once_and_held_to_their_caps(folder: Path) -> None:
    write(folder, f'{TOML}\n[analysts.ana.patients]\nepsilon = "0.5"\ndelta = "1e-7"\n[analysts.ben.patients]\n')
    assert run("protect").code == 0
    entries = run("verify").out
    assert run("protect").code == 0
    assert run("verify").out == entries
    assert run("ask", COUNT, "--epsilon", "0.4", "--analyst", "ana").code == 0
    refused = run("ask", f"{COUNT} WHERE age > 30", "--epsilon", "0.4", "--analyst", "ana")
    assert refused.code == 3
    assert "the cap of" in refused.error["Hint"]
    assert run("ask", f"{COUNT} WHERE age > 30", "--epsilon", "0.4", "--analyst", "ben").code == 0


def test_projects_are_allotted_once_and_held_to_their_caps(folder: Path) -> None:
    write(folder, f'{TOML}\n[projects.asthma.patients]\nepsilon = "0.5"\ndelta = "1e-7"\n')
    assert run("protect").code == 0
    entries = run("verify").out
    assert run("protect").code == 0
    assert run("verify").out == entries
    assert run("ask", COUNT, "--epsilon", "0.4", "--project", "asthma").code == 0
    refused = run("ask", f"{COUNT} WHERE age > 30", "--epsilon", "0.4", "--project", "asthma")
    assert refused.code == 3
    assert "the cap of 'project asthma'" in refused.error["Hint"]
    assert run("ask", COUNT, "--epsilon", "0.9", "--project", "malaria").code != 0
    assert run("ask", f"{COUNT} WHERE age > 30", "--epsilon", "0.4").code == 0
    listed = told_history("--project", "asthma")
    assert [entry["entry"] for entry in listed] == ["allot", "charge"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("amounts", ["epsilon = 1", "rho = 0.1", 'rho = "1/10"\ndelta = 1e-6'])
def test_each_currency_and_tables_of_one_account(folder: Path, amounts: str) -> None:
    table, _ = TOML.split("[budgets.patients]")
    write(folder, f"{table}{table[table.index('[') :].replace('visits]', 'again]')}[budgets.patients]\n{amounts}\n")
    assert run("protect").code == 0
    for sql in (BY_WARD, BY_WARD.replace("visits", "again")):
        assert run("explain", sql, "--epsilon", "0.1").code == 0
        assert run("ask", sql, "--epsilon", "0.1").code == 0
    assert [one["account"] for one in json.loads(run("budget", "--json").out)["budgets"]] == ["patients"]
    kinds = [entry["entry"] for entry in told_history("--account", "patients")]
    assert kinds == ["open", "attach", "attach", "charge", "answer", "charge", "answer"]


def test_each_row_may_be_a_person(folder: Path) -> None:
    write(folder, TOML.replace('"patient_id"\n', '""\n').replace("max_groups = 2\n", ""))
    assert "each row" in run("protect").out
    assert run("ask", BY_WARD, "--epsilon", "0.1").code == 0


def test_a_group_cannot_steer_the_terminal(folder: Path) -> None:
    write(folder, TOML.replace('"C"]', r'"\u001b[31m", "[bold]x[/bold]"]'))
    assert run("protect").code == 0
    out = run("ask", BY_WARD, "--epsilon", "0.5").out
    assert "\x1b" not in out
    assert r"\x1b[31m" in out
    assert "[bold]x[/bold]" in out


def test_a_public_table_gives_keys(folder: Path) -> None:
    public = '[public.wards]\nsource = "wards.csv"\ntypes = { ward = "text" }\n'
    write(folder, TOML.replace('["A", "B", "C"]', '"wards.ward"') + public)
    (folder / "wards.csv").write_text("ward\nC\nA\nB\nA\n")
    assert "public" in run("protect").out
    answered = records(run("ask", BY_WARD, "--epsilon", "0.5", "--json").out)
    assert [row["ward"] for row in answered] == [*"ABC"]
    refused = run("ask", "SELECT COUNT(*) FROM wards", "--epsilon", "0.5")
    assert (refused.code, refused.error["Hint"]) == (4, "It is public: query it directly.")
    head = run("verify").out
    write(folder)  # the same keys as a list are the same declaration
    assert run("protect").code == 0
    assert run("verify").out == head


@pytest.mark.usefixtures("clinic")
def test_a_key_is_charged_once() -> None:
    first = json.loads(run("ask", COUNT, "--epsilon", "0.25", "--key", "monday", "--json").out)
    run("ask", COUNT, "--epsilon", "0.5")
    again = json.loads(run("ask", COUNT, "--epsilon", "0.25", "--key", "monday", "--json").out)
    assert again["rows"] == first["rows"]
    assert told_budget()["balance"]["spent"]["epsilon"] == "3/4"
    other = run("ask", BY_WARD, "--epsilon", "0.25", "--key", "monday")
    assert other.code == 2
    assert "KeyConflict" in other.error


def test_a_curator_from_the_file_holds_what_it_declares(folder: Path) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Curator.from_config(folder / "discreet.toml", opening=False)
    assert refused.value.name == "ledger"
    with Curator.from_config(folder / "discreet.toml") as curator:
        assert curator.tables() == {"visits": "patients"}
        assert [row["ward"] for row in curator.ask(BY_WARD, epsilon=0.5)] == [*"ABC"]
    with Curator.from_config(str(folder / "discreet.toml"), opening=False) as curator:
        assert curator.ask(BY_WARD, epsilon=0.5).replayed


def test_another_file_may_be_named(folder: Path) -> None:
    (folder / "discreet.toml").rename(folder / "other.toml")
    assert run("protect", "--config", "other.toml").code == 0
    assert run("ask", COUNT, "--epsilon", "0.1", "--config", "other.toml").code == 0


def test_a_ledger_that_was_changed_or_lacks_its_anchor_fails(clinic: Path) -> None:
    wrong = run("verify", "--anchor", f"7:{'0' * 64}")
    assert wrong.code == 5
    assert "older than its anchor" in wrong.error["LedgerTampered"]
    with Ledger(str(clinic / "clinic.ledger"), read_only=True) as ledger:
        assert ledger.is_frozen
    assert run("ask", COUNT, "--epsilon", "0.1").code == 5


@pytest.mark.usefixtures("clinic")
def test_values_of_parameters_are_those_of_the_file() -> None:
    asked = "SELECT COUNT(*) AS n FROM visits WHERE ward = :ward AND age >= :age"
    given = ["--parameter", "ward=A", "--parameter", "age=18"]
    told = run("explain", asked, *given, "--epsilon", "0.25")
    assert told.code == 0
    answered = run("ask", asked, *given, "--epsilon", "0.25", "--json")
    assert answered.code == 0
    written = "SELECT COUNT(*) AS n FROM visits WHERE ward = 'A' AND age >= 18"
    again = json.loads(run("ask", written, "--epsilon", "0.25", "--json").out)
    assert again["replayed"]
    assert again["rows"] == json.loads(answered.out)["rows"]
    numbered = "SELECT COUNT(*) AS n FROM visits WHERE ward = ? AND age >= ?"
    limited = ["--parameter", "2=18", "--parameter", "1='A'", "--limits-rows", "1", "--epsilon", "0.25", "--json"]
    assert json.loads(run("ask", numbered, *limited).out)["replayed"]
    assert run("choose-epsilon", numbered, "--parameter", "1=A", "--parameter", "2=18").code == 0


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["ward"], "NAME=VALUE"),
        (["=A"], "NAME=VALUE"),
        (["ward=A", "ward=B"], "once"),
        (["wrad=A"], "ward"),
        ([], "ward"),
    ],
)
def test_wrong_parameters_are_wrong_usage(given: list[str], said: str) -> None:
    options = [part for text in given for part in ("--parameter", text)]
    refused = run("ask", "SELECT COUNT(*) AS n FROM visits WHERE ward = :ward", *options, "--epsilon", "0.25")
    assert refused.code == 2
    assert said in refused.err
