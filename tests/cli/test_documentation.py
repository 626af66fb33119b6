"""Every command and option is documented, or the build is red."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from discreet import __version__
from discreet.cli.app import COMMANDS as LATE
from discreet.cli.app import load_command, summary_of
from tests.cases import every
from tests.cli.clinic import run

TOP = {name: load_command(name) for name in LATE}
BELOW = {f"{name} {below}": found for name in TOP for below, found in getattr(TOP[name], "commands", {}).items()}
COMMANDS = TOP | BELOW
ATTACKS = (
    "uniqueness",
    "linkage",
    "k_anonymity",
    "intersection",
    "scoreboard",
    "reconstruct",
    "difference",
    "trace",
    "genome",
    "membership",
)
DOCUMENT = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")


@every("name", sorted(COMMANDS))
def test_commands_and_their_options_are_documented(name: str) -> None:
    _, _, section = DOCUMENT.partition(f"\n{'###' if ' ' in name else '##'} discreet {name}\n")
    section = re.split(r"\n##+ ", section)[0]
    assert section
    options = [option for parameter in COMMANDS[name].params for option in parameter.opts if option.startswith("--")]
    assert [option for option in options if option not in section and option not in ("--config", "--help")] == []


def test_the_overview_leads_to_every_command() -> None:
    overview = DOCUMENT.partition("| exit code |")[0]
    assert [name for name in TOP if f"](#discreet-{name}" not in overview] == []


@pytest.mark.ci
@every("name", sorted(COMMANDS))
def test_help_tells_what_a_command_does(name: str) -> None:
    told = run(*name.split(), "--help")
    assert told.code == 0
    assert COMMANDS[name].help.split(";")[0].split()[0] in told.out


def test_the_version_is_told() -> None:
    told = run("--version")
    assert (told.code, told.out, told.err) == (0, f"discreet {__version__}\n", "")
    assert "--version" in run("--help").out
    assert "`discreet --version`" in DOCUMENT


def test_all_commands_are_there() -> None:
    assert {"init", "protect", "ask", "explain", "budget", "history", "verify", "attack", "audit"} <= set(COMMANDS)
    attacks = {f"attack {name.replace('_', '-')}" for name in ATTACKS}
    streams = {"stream start", "stream release", "stream show"}
    ledgers = {"ledger roles", "ledger sql", "ledger move", "ledger copy"}
    assert set(BELOW) == attacks | streams | ledgers | {"survey make", "survey answer", "survey estimate"}


def test_summaries_are_there_without_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("discreet.cli.app"), "_docstrings", lambda _: {})
    assert summary_of("init") == TOP["init"].help


@every("name", sorted(LATE))
def test_the_list_of_commands_says_what_their_own_help_says(name: str) -> None:
    assert summary_of(name) == TOP[name].help
    assert TOP[name].name == name
