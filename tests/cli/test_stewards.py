"""A steward's commands: what everybody may spend, acts that are entries, the history as it was asked, backups."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet import count
from discreet.cli import app
from discreet.curator import Curator
from discreet.ledger import Ledger, is_anchored
from discreet.ledger.tallies import RULE_NAMES
from tests.cli.clinic import COUNT, TOML, run, told_budget, told_history, write

CHEAP = ("--epsilon", "0.1")
OLDER = f"{COUNT} WHERE age > 30"
CAPPED = f'{TOML}\n[analysts.ana.patients]\nepsilon = "0.5"\ndelta = "1e-7"\n'


def test_budget_tells_everybodys_cap_and_spending(clinic: Path) -> None:
    assert run("grant", "ana", "--account", "patients", "--epsilon", "0.5", "--delta", "1e-7").code == 0
    assert run("grant", "sue", "--account", "patients", "--role", "steward").code == 0
    assert run("set-cap", "asthma", "patients", "--epsilon", "0.3", "--delta", "1e-8").code == 0
    assert run("ask", COUNT, "--epsilon", "0.2", "--analyst", "ana", "--project", "asthma").code == 0
    told = told_budget()
    ana, sue = told["people"]["ana"], told["people"]["sue"]
    assert told["balance"]["spent"] == {"text": "epsilon=0.2", "epsilon": "1/5"}
    assert ana["cap"] == {"text": "epsilon=0.5, delta=1e-07", "epsilon": "1/2", "delta": "1/10000000"}
    assert (ana["spent"]["epsilon"], ana["remaining"]["epsilon"]) == ("1/5", "3/10")
    assert (sue["role"], sue["cap"]) == ("steward", None)
    assert (told["projects"]["asthma"]["remaining"]["epsilon"], told["listed"]) == ("1/10", True)
    shown = run("budget", "--account", "patients").out
    for words in ("ana", "epsilon=0.5, delta=1e-07", "epsilon=0.3", "asthma", "as the account", "lifetime"):
        assert words in shown
    with Curator.from_config(clinic / "discreet.toml", opening=False) as curator:
        standing = curator.budget("visits")
    assert {one.name: str(one.balance.spent) for one in standing.people} == {"ana": "epsilon=0.2", "sue": "epsilon=0"}
    assert "ana (analyst): cap epsilon=0.5, delta=1e-07; spent 40 %; remaining 60 %" in str(standing)


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("command", [["explain", COUNT, *CHEAP], ["ask", COUNT, *CHEAP], ["budget"]])
def test_details_show_every_rule_with_the_accounts_own_numbers(command: list[str]) -> None:
    told = run(*command, "--details").out.partition("How this is computed:\n")[2].splitlines()
    assert [line.partition(":")[0] for line in told[:3]] == [f"- {name}" for name in RULE_NAMES.values()]
    assert all(line.endswith("%") for line in told[:3])
    assert "so the smallest of these shares counts" in told[3]
    assert "How this is computed" not in run(*command).out


@pytest.mark.usefixtures("clinic")
def test_details_of_a_stored_answer_and_of_a_renewed_account_claim_no_more_than_is_so() -> None:
    run("ask", COUNT, *CHEAP)
    assert run("ask", COUNT, *CHEAP, "--details").out.endswith("How this is computed:\n- Nothing was charged.\n")
    assert "may release in this period" not in run("explain", COUNT, *CHEAP).out
    run("renew", "patients", "--note", "a new year")
    assert "may release in this period" in run("explain", COUNT, *CHEAP).out


@pytest.mark.usefixtures("clinic")
def test_caps_go_to_the_only_account() -> None:
    assert "has a cap of epsilon=0.5, delta=2.5e-07" in run("set-cap", "flu", "--epsilon", "0.5").out
    assert "analyst with a cap of epsilon=1, delta=5e-07" in run("grant", "ana", "--epsilon", "1").out
    assert set(told_budget()["projects"]) == {"flu"}
    assert "on the whole ledger" in run("grant", "ada", "--role", "auditor").out


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize(
    "account", [[], ["patients"], ["--account", "patients"], ["patients", "--account", "patients"]]
)
def test_every_act_takes_the_account_alike(account: list[str]) -> None:
    cap = ["--epsilon", "0.5", "--delta", "1e-7"]
    for act in (["amend", *account, *cap], ["renew", *account], ["unlock", *account]):
        told = run(*act)
        assert (told.code, "'patients'" in told.out) == (0, True), told
    assert "on account 'patients'" in run("grant", "ana", *account, *cap).out
    assert "on account 'patients'" in run("set-cap", "flu", *account, *cap).out


@pytest.mark.usefixtures("clinic")
def test_two_accounts_in_one_action_are_refused() -> None:
    told = run("unlock", "patients", "--account", "others")
    assert (told.code, "Expected --account='others' to be 'patients'" in told.err) == (2, True)


def test_of_two_accounts_one_is_named(folder: Path) -> None:
    second = (
        '\n[tables.more]\nsource = "more.csv"\nunit = "patient_id"\ntypes = { patient_id = "text" }\nmax_rows = 1\n'
    )
    (folder / "more.csv").write_text("patient_id\nq1\n")
    write(folder, f"{TOML}{second}[budgets.more]\nepsilon = 1\n")
    assert run("protect").code == 0
    acts = [["amend", "--epsilon", "1"], ["renew"], ["unlock"], ["set-cap", "flu", "--epsilon", "1"]]
    for act in [*acts, ["set-team", "heart", "--epsilon", "1"], ["grant", "ana", "--epsilon", "1"]]:
        told = run(*act)
        assert told.code == 2
        assert "Pass --account more or --account patients." in told.err
        assert run(*act, "--account", "more").code == 0, act


@pytest.mark.usefixtures("clinic")
def test_every_act_tells_what_was_and_is_and_is_an_entry() -> None:
    amended = run("amend", "patients", "--epsilon", "3", "--delta", "1e-6", "--note", "agreed")
    assert "was epsilon=2, delta=1e-06 and is epsilon=3, delta=1e-06" in amended.out
    assert run("explain", COUNT, "--epsilon", "2.5").code == 0  # the file has the first amount, and stays as it is
    run("amend", "patients", "--epsilon", "2", "--delta", "1e-6")
    run("ask", COUNT, "--epsilon", "0.5")
    renewed = run("renew", "patients", "--note", "a new year")
    assert "spent epsilon=0.5 in period 1. Period 2 begins with nothing spent" in renewed.out
    assert "spent in its lifetime        25 %" in renewed.out
    assert "Now all may ask again" in run("unlock", "patients", "--note", "a full disk").out
    first = run("grant", "ana", "--account", "patients")
    assert "'ana' was without a role and is analyst with no cap on account 'patients'" in first.out
    assert (
        "a cap of epsilon=0.1"
        in run("grant", "ana", "--account", "patients", "--epsilon", "0.1", "--delta", "1e-9").out
    )
    appointed = run("grant", "sue", "--role", "steward").out
    assert "'sue' was without a role and is steward on the whole ledger" in appointed
    assert run("set-cap", "flu", "patients", "--epsilon", "0.1", "--delta", "1e-9", "--by", "sue").code == 0
    kinds = ["amend", "amend", "charge", "answer", "renew", "unlock", "appoint", "appoint", "appoint", "allot"]
    assert [entry["entry"] for entry in told_history()][3:] == kinds
    assert told_history()[-1]["who"] == "sue"
    assert "allot to project flu, cap epsilon=0.1, delta=1e-09" in run("history").out
    assert run("verify").code == 0


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["amend", "nobody", "--epsilon", "1"], 2),
        (["amend", "patients", "--rho", "1"], 2),
        (["amend", "patients", "--epsilon", "1", "--delta", "1e-6", "--by", "eve"], 2),
        (["renew", "nobody"], 2),
        (["renew", "patients", "--by", "eve"], 2),
        (["unlock", "nobody"], 2),
        (["unlock", "patients", "--by", "eve"], 2),
        (["grant", "ana", "--account", "nobody"], 2),
        (["grant", "ana", "--role", "king"], 2),
        (["grant", "ana", "--rho", "1"], 2),
        (["grant", "owner"], 2),
        (["set-cap", "flu", "patients"], 2),
        (["set-cap", "flu", "patients", "--rho", "1"], 2),
        (["set-team", "heart", "--members", "ana"], 2),
        (["set-team", "heart", "--rho", "1"], 2),
        (["set-team", "heart", "--epsilon", "1", "--by", "eve"], 2),
        (["history", "--since", "yesterday"], 2),
        (["history", "--csv", "--json"], 2),
        (["history", "--account", "nobody"], 2),
        (["backup", "discreet.toml"], 2),
        (["restore", "nowhere"], 2),
    ],
)
def test_wrong_acts_change_nothing(command: list[str], code: int) -> None:
    before = run("verify").out
    refused = run(*command)
    assert (refused.code, bool(refused.err)) == (code, True)
    assert run("verify").out == before


def test_what_the_file_says_is_changed_in_the_file(folder: Path) -> None:
    write(folder, f'{CAPPED}[projects.flu.patients]\nepsilon = "0.1"\ndelta = "1e-9"\n')
    assert run("protect").code == 0
    before = run("verify").out
    refused = run("grant", "ana", "--account", "patients", "--epsilon", "0.9", "--delta", "1e-7")
    assert refused.code == 2
    assert '[analysts.ana.patients]\nepsilon = "0.9"\ndelta = "1e-07"' in refused.err
    assert run("grant", "ana", "--account", "patients", "--role", "steward").code == 2
    assert "[projects.flu.patients]" in run("set-cap", "flu", "patients", "--epsilon", "0.2", "--delta", "1e-9").err
    assert run("verify").out == before
    write(folder, CAPPED.replace('"0.5"', '"0.9"'))
    assert run("protect").code == 0
    assert told_budget()["people"]["ana"]["cap"]["epsilon"] == "9/10"
    assert run("grant", "ben", "--account", "patients").code == 0  # nobody whom the file names
    assert run("ask", COUNT, "--epsilon", "0.1", "--analyst", "ben").code == 0


@pytest.mark.usefixtures("clinic")
def test_a_team_is_told_as_it_was_and_as_it_is() -> None:
    cap = ("--epsilon", "0.5", "--delta", "1e-7")
    first = run("set-team", "heart", *cap, "--members", "ben,ana", "--groups", "dp-heart").out
    now = "a cap of epsilon=0.5, delta=1e-07 for ana, ben, group dp-heart"
    assert f"Team 'heart' had no cap on account 'patients' and has {now}. What it spent stays spent." in first
    second = run("set-team", "heart", "patients", "--epsilon", "0.2")  # delta in the same share
    assert f"had {now} on account 'patients' and has a cap of epsilon=0.2, delta=1e-07 for no members." in second.out
    told = json.loads(run("set-team", "heart", *cap, "--json").out)
    assert (told["name"], told["cap"]["epsilon"]) == ("heart", "1/2")
    assert [entry["entry"] for entry in told_history()][3:] == ["team"] * 3


def test_a_team_of_the_file_is_changed_in_the_file(folder: Path) -> None:
    """Once the command printed the new team, and the next query gave it its old cap back."""
    team = '\n[teams."heart ward".patients]\nepsilon = "0.5"\ndelta = "1e-7"\nmembers = ["ana", "ben"]\n'
    write(folder, f"{TOML}{team}")
    assert run("protect").code == 0
    before = run("verify").out
    cap, people = ("--epsilon", "0.5", "--delta", "1e-7"), ("--members", "ben,ana")
    for others in (cap, (*cap, *people, "--groups", "g"), ("--epsilon", "1", *people)):
        refused = run("set-team", "heart ward", *others)
        assert refused.code == 2
        assert "to be a cap of epsilon=0.5, delta=1e-07 for ana, ben, as under" in refused.err
    refused = run("set-team", "heart ward", *cap, "--per", "month", *people, "--groups", "dp-heart")
    lines = refused.err.rpartition("`discreet protect`:\n")[2]
    assert lines.startswith('[teams."heart ward".patients]\n')
    assert run("verify").out == before
    write(folder, f"{TOML}\n{lines}")
    assert run("protect").code == 0
    wanted = run("set-team", "heart ward", *cap, "--per", "month", *people, "--groups", "dp-heart")
    assert "per month" in wanted.out
    assert wanted.out.count("for ana, ben, group dp-heart") == 2  # as the file says by now
    assert run("set-team", "lungs", *cap, "--members", "eve").code == 0  # a team that the file does not name
    assert run("ask", COUNT, "--epsilon", "0.1").code == 0
    assert [one["name"] for one in told_budget()["teams"]] == ["heart ward", "lungs"]


@pytest.mark.usefixtures("clinic")
def test_history_has_the_question_as_it_was_asked() -> None:
    sql = "SELECT COUNT(*)   AS n\nFROM visits WHERE ward = :ward -- mine"
    assert run("ask", sql, "--parameter", "ward=A", "--epsilon", "0.25").code == 0
    (charge,) = [entry for entry in told_history() if entry["entry"] == "charge"]
    assert charge["sql"] == f"{sql} -- ward = 'A'"
    assert charge["what"] == "charge SELECT COUNT(*) AS n FROM visits WHERE ward = :ward -- mine -- ward = 'A'"
    rows = list(csv.DictReader(io.StringIO(run("history", "--csv").out)))
    assert [row["kind"] for row in rows] == ["anchor", "open", "attach", "charge", "answer"]
    assert (rows[3]["epsilon"], rows[3]["who"]) == ("1/4", "owner")
    assert run("history", "--since", "1d").out == run("history").out
    assert told_history("--since", "2999-01-01") == []


def test_a_question_built_in_python_is_told_in_a_few_words(clinic: Path) -> None:
    with Curator.from_config(clinic / "discreet.toml", opening=False) as curator:
        curator.table("visits").where("age >= 40").group_by("ward").agg(n=count()).ask(epsilon="0.1")
    assert "charge n = COUNT() of visits where age >= 40 by ward" in run("history").out


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_narrow_terminals_are_readable(columns: int) -> None:
    run("grant", "ana", "--account", "patients", "--epsilon", "0.5", "--delta", "1e-7")
    run("ask", OLDER, "--epsilon", "0.25", "--analyst", "ana")
    for command in (["history"], ["budget"]):
        shown = CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"}).invoke(app, command)
        lines = shown.stdout.splitlines()
        assert max(map(len, lines)) <= columns
        assert "12.5 %" in shown.stdout
    told = " ".join(CliRunner(env={"COLUMNS": "60", "NO_COLOR": "1"}).invoke(app, ["history"]).stdout.split())
    assert f"charge {OLDER}" in told


def test_a_copy_is_known_and_comes_back(clinic: Path) -> None:
    (clinic / "kept").mkdir()
    copied = run("backup", "kept")
    assert (copied.code, copied.out.splitlines()[-1]) == (0, run("verify").out.splitlines()[-1])
    assert [path.name for path in (clinic / "kept").iterdir()] == ["clinic.ledger.3"]
    assert run("restore", "kept/clinic.ledger.3").code == 5  # the ledger is there
    (clinic / "clinic.ledger").unlink()
    assert run("budget").code == run("protect").code == run("ask", COUNT, "--epsilon", "0.1").code == 5
    assert not (clinic / "clinic.ledger").exists()
    assert run("restore", "kept/clinic.ledger.3").code == 0
    assert run("ask", COUNT, "--epsilon", "0.1").code == 0


def test_a_plain_copy_of_an_old_ledger_is_noticed_by_every_command(clinic: Path) -> None:
    """Once it gave 3.9 of a budget back where 3.7 was true."""
    run("ask", COUNT, "--epsilon", "0.1")
    shutil.copy(clinic / "clinic.ledger", clinic / "old")
    run("ask", OLDER, "--epsilon", "0.2")
    true = told_budget()["balance"]["remaining"]
    shutil.copy(clinic / "old", clinic / "clinic.ledger")
    for command in (
        ["budget"],
        ["history"],
        ["verify"],
        ["protect"],
        ["ask", COUNT, "--epsilon", "0.1"],
        ["explain", COUNT, "--epsilon", "0.1"],
        ["amend", "patients", "--epsilon", "3"],
        ["unlock", "patients"],
        ["backup", "copy"],
        ["restore", "old"],
    ):
        refused = run(*command)
        assert refused.code == 5, command
    assert "2 entries are missing" in run("budget").err
    assert run("restore", "clinic.ledger", "--accept-loss").code == 0
    assert told_budget()["balance"]["remaining"] == true
    assert true["epsilon"] == "17/10"
    assert run("verify").code == 0


def test_an_anchor_elsewhere_or_none(folder: Path) -> None:
    write(folder, TOML.replace('"clinic.ledger"', '"clinic.ledger"\nanchor = "elsewhere/anchor"', 1))
    refused = run("protect")
    assert (refused.code, "Mount its disk" in refused.err) == (2, True)
    (folder / "elsewhere").mkdir()
    assert run("protect").code == 0
    assert (folder / "elsewhere" / "anchor").exists()
    assert not (folder / "clinic.ledger.anchor").exists()
    write(folder, TOML.replace('"clinic.ledger"', '"clinic.ledger"\nanchor = ""', 1))
    refused = run("ask", COUNT, "--epsilon", "0.1")  # a ledger that has one cannot be opened without
    assert (refused.code, "cannot be switched off" in refused.err) == (5, True)
    for place in (folder / "clinic.ledger", folder / "elsewhere" / "anchor"):
        place.unlink()
    assert run("protect").code == run("ask", COUNT, "--epsilon", "0.1").code == 0
    assert run("restore", "clinic.ledger").code == run("anchor").code == 2
    assert not is_anchored(str(folder / "clinic.ledger"))


def test_without_its_anchor_a_printed_head_is_enough(clinic: Path) -> None:
    known, head = run("anchor"), run("backup", "copy").out.splitlines()[-1]
    (clinic / "clinic.ledger").rename(clinic / "newer")
    Path(known.out.split("its anchor ")[1].split(" knows")[0].replace("\n", "")).unlink()
    assert run("restore", "copy").code == 5
    assert run("restore", "copy", "--anchor", f"7:{'0' * 64}").code == 2
    assert run("restore", "copy", "--anchor", head).code == 0
    joined = run("verify").out.splitlines()[-1]
    assert int(joined.split(":")[0]) == int(head.split(":")[0]) + 1  # by which head it was, is an entry
    with Ledger(str(clinic / "clinic.ledger"), read_only=True) as ledger:
        assert not ledger.is_frozen
