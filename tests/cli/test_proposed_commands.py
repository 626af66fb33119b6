"""What a message of the command line proposes is run as it stands, and succeeds.

Messages are found in the sources (`proposed_commands`): one that no scenario shows fails `test_every_message_is_shown`.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from discreet.ledger import FAILURE_CREDITS, AnchoredLedger
from discreet.privacy import events
from tests.cli.clinic import COUNT, CSV, TOML, Outcome, run, write
from tests.cli.proposed_commands import messages

_COMMAND = re.compile(r"(?:run: |Ask with: |Make one with: |`|e\.g\. )discreet ([^`\n]*)")
_SURVEY = ("survey", "make", "s.toml", "--question", "Smoker?", "--value", "A", "--value", "B", "--epsilon", "1")

ELSEWHERE = {
    "templates and formats of files": (
        "cli/declaration_commands.py:# What is protected",
        "presentation/inspection/proposed_config.py:# Proposed by",
        "service/demo_clinic.py:",
        "deep/step_count.py:",
        "learn/persistence/store.py:",
        "ledger/store/",
        "synthetic/",
        "curator/synthesis/",
        "stream/state_file.py:",
        "report/page.py:",
    ),
    "help": ("cli/app.py:", "cli/surveys.py:A CSV file with one answer"),
    "a note beside an answer": ("curator/asking/answer.py:", "measurement/probes/probes.py:", "sql/scope.py:"),
    "a server, a service or another machine": (
        "service/",
        "engines/postgres/",
        "curator/streams/streams.py:",
        "audit/queries/protected_tables.py:",
    ),
    "in Python; the command is tried with its own message": ("ledger/redeclaration.py:",),
    "an interrupt from the keyboard": ("cli/verbs/verb_commands.py:The key is",),
}
"""Messages that no scenario shows, by their file and how they begin, under the reason why not."""

SCENARIOS: dict[str, Callable[[Path], Iterator[Outcome]]] = {}


def scenario(function: Callable[[Path], Iterator[Outcome]]) -> Callable[[Path], Iterator[Outcome]]:
    SCENARIOS[function.__name__.strip("_")] = function
    return function


def proposed(told: Outcome) -> list[list[str]]:
    """The commands that a message proposes, as a shell reads them."""
    return [shlex.split(text.rstrip(" .")) for text in _COMMAND.findall(told.out + told.err)]


def succeed(*arguments: str) -> Outcome:
    done = run(*arguments)
    assert done.code == 0, (arguments, done)
    return done


def fail(*arguments: str) -> Outcome:
    done = run(*arguments)
    assert done.code != 0, arguments
    return done


@scenario
def _no_config(folder: Path) -> Iterator[Outcome]:
    (folder / "FILE.csv").write_text(CSV)
    yield fail("protect")
    yield succeed("check", "FILE.csv", "--write")
    yield succeed("protect")
    yield succeed("init", "--config", "empty.toml")


@scenario
def _a_config_that_is_there(folder: Path) -> Iterator[Outcome]:
    write(folder)
    yield fail("init")
    made = succeed("init", "--config", "other.toml")
    yield made
    (folder / "other.toml").write_text(TOML)  # what is declared in it
    succeed("protect", "--config", "other.toml")


@scenario
def _first_question(folder: Path) -> Iterator[Outcome]:
    write(folder)
    for early in (("ask", COUNT, "--epsilon", "0.1"), ("report",), ("budget",)):
        yield fail(*early)
    told = succeed("protect")
    yield told
    for command in proposed(told):
        succeed(*command)
    succeed("report")
    former = succeed("report", "--out", "former.html")
    yield former
    for command in proposed(former):
        succeed(*command)
    succeed("budget")


@scenario
def _a_table_that_is_new(folder: Path) -> Iterator[Outcome]:
    write(folder)
    succeed("protect")
    more = TOML.replace(
        "[budgets", TOML.partition("\n\n")[2].partition("\n\n")[0].replace("visits]", "more]") + "\n\n[budgets"
    )
    (folder / "discreet.toml").write_text(more)
    yield fail("ask", COUNT, "--epsilon", "0.1")
    succeed("protect")
    succeed("ask", COUNT, "--epsilon", "0.1")


@scenario
def _a_declaration_that_changed(folder: Path) -> Iterator[Outcome]:
    write(folder)
    succeed("protect")
    write(folder, TOML.replace("[0, 120]", "[0, 110]"))
    yield fail("ask", COUNT, "--epsilon", "0.1")
    told = fail("protect")
    yield told
    for command in proposed(told):
        succeed(*command)
    succeed("ask", COUNT, "--epsilon", "0.1")


@scenario
def _a_budget_that_changed(folder: Path) -> Iterator[Outcome]:
    write(folder)
    succeed("protect")
    write(folder, TOML.replace("epsilon = 2", "epsilon = 3"))
    told = fail("protect")
    yield told
    for command in proposed(told):
        succeed(*command)
    succeed("protect")
    succeed("ask", COUNT, "--epsilon", "2.5")


@scenario
def _types(folder: Path) -> Iterator[Outcome]:
    write(folder, "\n".join(line for line in TOML.splitlines() if not line.startswith("types")))
    told = fail("protect")
    yield told
    for command in proposed(told):
        yield succeed(*command)
    succeed("protect")


def _from_file(folder: Path, *unit: str) -> Iterator[Outcome]:
    """What is proposed for a file, up to its protection."""
    (folder / "visits.csv").write_text(CSV)
    told = succeed("check", "visits.csv", *unit)
    yield told
    for command in proposed(told):
        written = succeed(*command)
        yield written
        for last in proposed(written):
            succeed(*last)
    yield fail("check", "visits.csv", "--write", *unit)


@scenario
def _a_file_without_unit(folder: Path) -> Iterator[Outcome]:
    yield from _from_file(folder)


@scenario
def _a_file_with_unit(folder: Path) -> Iterator[Outcome]:
    yield from _from_file(folder, "--unit", "patient_id")


@scenario
def _a_second_file(folder: Path) -> Iterator[Outcome]:
    write(folder)
    yield fail("check", "visits.csv", "--write")
    succeed("check", "visits.csv", "--write", "--name", "further")
    succeed("check", "visits.csv", "--write", "--config", "other.toml")
    (folder / "lab.csv").write_text(CSV)
    yield succeed("check", "lab.csv", "--write")
    (folder / "discreet.toml").write_text('tables = { a = { source = "a.csv" } }\n')
    yield fail("check", "lab.csv", "--write")
    succeed("check", "lab.csv", "--write", "--config", "third.toml")


@scenario
def _a_file_to_mend(folder: Path) -> Iterator[Outcome]:
    (folder / "visits.csv").write_text(CSV.replace(",charge", ",ward", 1))
    told = succeed("check", "visits.csv")
    yield told
    yield fail("check", "visits.csv", "--write")
    for command in proposed(told):
        yield succeed(*command)
    succeed("check", "visits.csv", "--mend", "COPY.csv")
    yield fail("check", "COPY.csv", "--mend", "again.csv")
    succeed("check", "COPY.csv")
    write(folder)
    (folder / "visits.csv").write_text(CSV.replace(",charge", ",ward", 1))
    (folder / "visits-mended.csv").unlink()
    refused = fail("protect")
    yield refused
    for command in proposed(refused):
        succeed(*command)
    (folder / "visits.csv").write_bytes("patient_id,ward\n1,A\n".encode("utf-16"))
    (folder / "visits-mended.csv").unlink()
    refused = fail("protect")
    yield refused
    for command in proposed(refused):
        shown = succeed(*command)
        for mending in proposed(shown):
            succeed(*mending)


@scenario
def _whose_rows(folder: Path) -> Iterator[Outcome]:
    (folder / "t.csv").write_text("age,sex\n40,F\n50,M\n")
    yield fail("check", "t.csv", "--write")
    told = succeed("check", "t.csv")
    yield told
    (text,) = _COMMAND.findall(told.out)
    for unit in ("age", "''"):
        succeed(*shlex.split(re.sub(r"COLUMN \(or .*\)", unit, text)), "--config", f"{unit.strip(chr(39))}.toml")


@scenario
def _prices(folder: Path) -> Iterator[Outcome]:
    write(folder)
    succeed("protect")
    yield fail("ask", COUNT)
    succeed("ask", COUNT, "--epsilon", "0.1")
    succeed("ask", COUNT, "--within", "20", "--max-epsilon", "0.5")
    told = fail("ask")
    yield told
    for command in proposed(told):
        succeed(*command[: command.index("--epsilon") + 1], "0.1")
    yield fail("ask", COUNT, COUNT, "--epsilon", "0.1", "--limits-groups", "1")
    succeed("ask", COUNT, COUNT, "--epsilon", "0.1", "--limits-groups", "1", "--limits-rows", "1")
    yield fail("ask", COUNT, "--epsilon", "0.1", "--choose-limits", "--limits-groups", "1", "--limits-rows", "1")
    succeed("ask", COUNT, "--epsilon", "0.1", "--limits-groups", "1", "--limits-rows", "1")
    named = f"{COUNT} WHERE ward = :ward AND age >= :least"
    yield fail("ask", named, "--epsilon", "0.1", "--parameter", "ward")
    succeed("ask", named, "--epsilon", "0.1", "--parameter", "ward=A", "--parameter", "least=18")
    yield fail("ask", COUNT, "--epsilon", "0.1", "--json", "--csv")
    succeed("ask", COUNT, "--epsilon", "0.1", "--json")


@scenario
def _history(folder: Path) -> Iterator[Outcome]:
    write(folder)
    succeed("protect")
    yield fail("history", "--since", "lately")
    for since in ("2026-11-01", "7d", "12h", "4w"):
        succeed("history", "--since", since)
    yield fail("verify", "--anchor", "1")
    succeed("verify", "--anchor", succeed("verify").out.splitlines()[-1].strip())


@scenario
def _backups(folder: Path) -> Iterator[Outcome]:
    write(folder, 'anchor = ""\n' + TOML)
    succeed("protect")
    printed = succeed("backup", "monday.ledger").out.splitlines()[-1].strip()
    for part in folder.glob("clinic.ledger*"):
        part.unlink()
    yield fail("restore", "monday.ledger")
    succeed("restore", "monday.ledger", "--anchor", printed)


@scenario
def _anchors(folder: Path) -> Iterator[Outcome]:
    (folder / "kept").mkdir()
    write(folder, 'anchor = "kept/anchor"\n' + TOML)
    succeed("protect")
    succeed("backup", "BACKUP")
    lost = [part.rename(f"{part}.away") for part in folder.glob("clinic.ledger*")]
    yield fail("ask", COUNT, "--epsilon", "0.1")
    assert lost
    succeed("restore", "BACKUP")
    succeed("ask", COUNT, "--epsilon", "0.1")
    for part in folder.glob("clinic.ledger"):
        part.unlink()
    (folder / "clinic.ledger").write_bytes((folder / "BACKUP").read_bytes())
    older = fail("ask", COUNT, "--epsilon", "0.1")
    yield older
    for command in proposed(older):
        succeed(*command)
    succeed("ask", COUNT, "--epsilon", "0.1")
    head = succeed("verify").out.splitlines()[-1].strip()
    succeed("backup", "LATER")
    for part in [*folder.glob("clinic.ledger*"), *folder.glob("kept/*")]:
        part.unlink()
    yield fail("restore", "LATER")
    succeed("restore", "LATER", "--anchor", head)


@scenario
def _a_lost_anchor(folder: Path) -> Iterator[Outcome]:
    offered = succeed("--help")
    yield offered
    if " anchor " not in offered.out:  # a version that has no command for anchors has no messages about it either
        return
    (folder / "kept").mkdir()
    write(folder, 'anchor = "kept/anchor"\n' + TOML)
    succeed("protect")
    yield fail("anchor", "--accept-missing")
    yield fail("anchor", "--accept-missing", "--join", "1:00")
    head = succeed("anchor").out.splitlines()[-1].strip()
    (folder / "kept" / "anchor").unlink()
    told = fail("ask", COUNT, "--epsilon", "0.1")
    yield told
    *_, joining, accepting = proposed(told)
    yield fail(*joining[:-1], "9" + head)
    succeed(*(head if word == "SEQ:HASH" else word for word in joining))
    succeed("ask", COUNT, "--epsilon", "0.1")
    (folder / "kept" / "anchor").unlink()
    fail("ask", COUNT, "--epsilon", "0.1")
    succeed(*({"NAME": "owner", "TEXT": "the disk of the anchor broke"}.get(word, word) for word in accepting))
    (folder / "discreet.toml").write_text('anchor = ""\n' + TOML)
    yield fail("anchor")
    succeed("anchor", "--file", "kept/anchor")


@scenario
def _an_older_ledger(folder: Path) -> Iterator[Outcome]:
    write(folder)
    succeed("protect")
    succeed("backup", "BACKUP")
    succeed("ask", COUNT, "--epsilon", "0.1")
    for part in folder.glob("clinic.ledger-*"):
        part.unlink()
    (folder / "clinic.ledger").write_bytes((folder / "BACKUP").read_bytes())
    told = fail("ask", COUNT, "--epsilon", "0.1")
    yield told
    for command in proposed(told):
        succeed(*command)
    succeed("ask", COUNT, "--epsilon", "0.1")


@scenario
def _analysts(folder: Path) -> Iterator[Outcome]:
    declared = TOML + '\n[analysts.ana.patients]\nepsilon = "1"\ndelta = "1e-7"\n'
    write(folder, declared)
    succeed("protect")
    told = fail("grant", "ana", "--account", "patients", "--epsilon", "0.5", "--delta", "1e-7")
    yield told
    write(
        folder,
        TOML + "\n" + "\n".join(line for line in told.err.splitlines() if re.match(r"\[|(epsilon|delta) = ", line)),
    )
    succeed("protect")
    succeed("ask", COUNT, "--epsilon", "0.5", "--analyst", "ana")


@scenario
def _a_locked_account(folder: Path) -> Iterator[Outcome]:
    write(folder)
    succeed("protect")
    with AnchoredLedger("clinic.ledger") as ledger:
        for _ in range(FAILURE_CREDITS):
            ledger.fail(ledger.charge("patients", events.Pure("0.01")))
    told = fail("ask", COUNT, "--epsilon", "0.1")
    yield told
    for command in proposed(told):
        succeed(*command)
    succeed("ask", COUNT, "--epsilon", "0.1")


@scenario
def _surveys(folder: Path) -> Iterator[Outcome]:
    (folder / "column.csv").write_text("x\nA\nB\n")
    (folder / "broken.toml").write_text("{}")
    told = fail("survey", "answer", "broken.toml", "--value", "A")
    yield told
    for command in proposed(told):
        succeed(*command)
    succeed(*_SURVEY)
    yield fail("survey", "answer", "s.toml")
    succeed("survey", "answer", "s.toml", "--value", "A")
    succeed("survey", "answer", "s.toml", "--table", "column.csv", "--column", "x")
    yield fail("survey", "answer", "s.toml", "--table", "column.csv", "--column", "x", "--remember", "kept")
    succeed("survey", "answer", "s.toml", "--value", "A", "--remember", "kept")


@scenario
def _two_tables(folder: Path) -> Iterator[Outcome]:
    """What is proposed is run by `tests/cli/test_synthesize.py`, which makes two tables."""
    write(folder)
    succeed("protect")
    yield fail("synthesize", "visits", "--epsilon", "1", "--out", "a.csv", "--events", "visits")


@scenario
def _attacks(folder: Path) -> Iterator[Outcome]:
    bits = [(i * 7 + i // 3) % 2 for i in range(12)]
    rows = [[(i * j + i // 2) % 2 for j in range(12)] for i in range(40)]
    (folder / "q.csv").write_text(
        "\n".join([",".join(f"c{i}" for i in range(12)), *(",".join(map(str, row)) for row in rows)])
    )
    (folder / "a.csv").write_text(
        "\n".join(["a", *(str(sum(x * y for x, y in zip(row, bits, strict=True))) for row in rows)])
    )
    (folder / "t.csv").write_text("\n".join(["b", *map(str, bits)]))
    (folder / "visits.csv").write_text(CSV)
    yield fail("attack", "reconstruct", "q.csv")
    succeed("attack", "reconstruct", "q.csv", "a.csv")
    yield fail("attack", "reconstruct", "q.csv", "--compare")
    succeed("attack", "reconstruct", "q.csv", "--compare", "--truth", "t.csv")
    yield fail("attack", "intersection", "visits.csv", "--on", "age", "--sensitive", "ward")
    succeed("attack", "intersection", "visits.csv", "--on", "age", "--sensitive", "ward", "--compare")


@scenario
def _a_folder_that_grows(folder: Path) -> Iterator[Outcome]:
    write(folder, TOML.replace('"visits.csv"', '"days/"'))
    (folder / "days").mkdir()
    (folder / "days" / "1.csv").write_text(CSV)
    succeed("protect")
    succeed("ask", COUNT, "--epsilon", "0.1")
    (folder / "days" / "2.csv").write_text(CSV)
    told = succeed("ask", COUNT, "--epsilon", "0.1")
    yield told
    ((*command, _),) = proposed(told)
    succeed(*command, "2")
    assert "is stored" not in succeed("ask", COUNT, "--epsilon", "0.1").out
    yield succeed("erase-check", "visits", "--id", "p1")


@scenario
def _audits(folder: Path) -> Iterator[Outcome]:
    staff = (
        '\n[tables.staff]\nsource = "staff.csv"\nunit = "patient_id"\nmax_rows = 1\ntypes = { patient_id = "text" }\n'
    )
    staff += "[budgets.staff]\nepsilon = 1\n"
    write(folder, TOML + staff)
    (folder / "staff.csv").write_text("patient_id\np1\n")
    succeed("protect")
    yield fail("audit", "--sql", COUNT)
    succeed("audit", "visits", "--sql", COUNT, "--neighbours", "1")


@cache
def shown(name: str) -> str:
    """All that a scenario printed, in a folder of its own; it asserts that what was proposed succeeds."""
    with TemporaryDirectory() as made, contextlib.chdir(made):
        return "\n".join(told.out + told.err for told in SCENARIOS[name](Path(made)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SCENARIOS)
def test_proposed_commands_succeed(name: str) -> None:
    assert shown(name)


@pytest.mark.ci
def test_every_message_is_shown() -> None:
    listed = tuple(start for starts in ELSEWHERE.values() for start in starts)
    printed = [shown(name) for name in SCENARIOS]
    without = [
        f"{message.file}:{message.line} {message.text!r}"
        for message in messages()
        if not f"{message.file}:{message.text}".startswith(listed) and not any(message.is_in(text) for text in printed)
    ]
    assert without == []
