"""Every remedy that a refusal prints is applied as it stands, and accepted.

A remedy is a command, options, a name that was meant, or lines of discreet.toml. Each alternative is tried in a folder
of its own. The commands of other messages are run in `test_proposed_commands`.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from discreet.errors import AccountLocked
from discreet.ledger import AnchoredLedger
from discreet.privacy import events
from discreet.requests import refused_budgets
from tests.cli.clinic import COUNT, TOML, Outcome, run, write

OPEN = TOML.replace('keys = { ward = ["A", "B", "C"] }\n', "")  # groups by ward need a delta
RHO = 'epsilon = 2\ndelta = "1e-6"', "rho = 0.5"
PURE = TOML.replace('delta = "1e-6"\n', "")
FOUND = TOML.replace("max_groups = 2\nmax_rows = 1", 'limits = "private"')
TWO = f'{TOML}\n[tables.more]\nsource = "more.csv"\nunit = ""\ntypes = {{ x = "int" }}\n'
TWO = f'{TWO}[budgets.more]\nepsilon = 1\ndelta = "1e-8"\n'
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
ANA = ("--analyst", "ana")
CAP = ("--epsilon", "0.5", "--delta", "1e-7")
MUCH = ("--epsilon", "5")
LITTLE = ("--epsilon", "0.1")

_OPTION = re.compile(r"--([a-z-]+)(?: ([^\s,-][^\s,]*))?")
_COMMAND = re.compile(r"(?:run: |`)discreet ([^`\n]*)")
_OPTIONS = re.compile(r"(?:Ask with|Pass|Add)\b[^-]*(--.*?)(?:, or repeat|\. |\.?$)", re.MULTILINE)
_PRICES = {"epsilon", "delta", "rho", "within", "max-epsilon"}


@dataclass(frozen=True)
class Refusal:
    """A command that is refused.

    Args:
        command: as it is typed.
        before: commands that come before it.
        toml: the declarations.
        repeats: an earlier question that the refusal says is still free; "" if it proposes something else.
    """

    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    toml: str = TOML
    repeats: str = ""


GRANT = ("grant", "ana", *CAP)
REFUSALS = {
    "a query": Refusal(("ask", COUNT, *MUCH)),
    "a query with a delta": Refusal(("ask", COUNT, *MUCH, "--delta", "1e-7")),
    "private groups": Refusal(("ask", BY_WARD, *MUCH), toml=OPEN),
    "in rho": Refusal(("ask", COUNT, *MUCH), toml=TOML.replace(*RHO)),
    "pure": Refusal(("ask", COUNT, *MUCH), toml=PURE),
    "half is spent": Refusal(("ask", COUNT, *MUCH), before=(("ask", f"{COUNT} WHERE age > 1", "--epsilon", "1"),)),
    "limits found first": Refusal(("ask", COUNT, "--epsilon", "2"), toml=FOUND),
    "limits chosen": Refusal(("ask", COUNT, *MUCH, "--choose-limits")),
    "several": Refusal(("ask", COUNT, f"{COUNT} WHERE age > 3", *MUCH)),
    "an error": Refusal(("ask", COUNT, "--within", "0.1", "--max-epsilon", "5")),
    "an error that costs more": Refusal(("ask", COUNT, "--within", "2", "--max-epsilon", "0.1")),
    "a profile": Refusal(("profile", "visits", *MUCH)),
    "a query and a profile": Refusal(("ask", COUNT, "--epsilon", "1.9", "--profile", "0.5")),
    "synthetic rows": Refusal(("synthesize", "visits", *MUCH, "--out", "made.csv")),
    "more synthetic rows": Refusal(
        ("synthesize", "visits", *MUCH, "--out", "made.csv"), before=(("ask", COUNT, "--epsilon", "1"),)
    ),
    "the cap of an analyst": Refusal(("ask", COUNT, "--epsilon", "1", *ANA), before=(GRANT,)),
    "the cap of a profile": Refusal(("profile", "visits", "--epsilon", "1", *ANA), before=(GRANT,)),
    "the cap of private groups": Refusal(("ask", BY_WARD, "--epsilon", "1", *ANA), before=(GRANT,), toml=OPEN),
    "the cap of a project": Refusal(
        ("ask", COUNT, "--epsilon", "1", "--project", "flu"), before=(("set-cap", "flu", "--epsilon", "0.2"),)
    ),
    "all is spent": Refusal(
        ("ask", f"{COUNT} WHERE age > 3", *LITTLE),
        before=(("ask", COUNT, "--epsilon", "2", "--delta", "0"),),
        repeats=COUNT,
    ),
    "an account that is not named": Refusal(("amend", *CAP), toml=TWO),
    "an account that is not there": Refusal(("unlock", "patient")),
    "a table for an account": Refusal(("renew", "--account", "visits")),
    "the account of a person": Refusal(("grant", "ana", "patient")),
    "the account of a project": Refusal(("set-cap", "flu", *LITTLE), toml=TWO),
    "a table": Refusal(("ask", COUNT.replace("visits", "vists"), *LITTLE)),
    "a table that is explained": Refusal(("explain", COUNT.replace("visits", "vists"), *LITTLE)),
    "a table that is profiled": Refusal(("profile", "vists", *LITTLE)),
    "a query without a price": Refusal(("ask", COUNT)),
}


def remedies(command: tuple[str, ...], hint: str) -> Iterator[list[list[str]]]:
    """Yields the commands that apply each alternative of a hint."""
    for typed in _COMMAND.findall(hint):
        yield [shlex.split(typed), list(command)]
    for told in _OPTIONS.findall(hint):
        for alternative in re.split(",? or ", told):
            yield [_with_options(command, alternative.replace("a larger --within", "--within 50"))]
    for name in re.findall(r"Did you mean '(.*?)'", hint):
        yield [[word.replace("vists", name) for word in command]]


def _with_options(command: tuple[str, ...], told: str) -> list[str]:
    """Returns a command with other options: a price takes the place of every other one."""
    kept, _, left_out = told.partition("without ")
    given, absent = dict(_OPTION.findall(kept)), {name for name, _ in _OPTION.findall(left_out)}
    replaced = given.keys() | absent | (_PRICES if "epsilon" in given else set())
    found, words = list[str](), list(command)
    while words:
        word = words.pop(0)
        if word.startswith("--") and word[2:] in replaced:
            words = words[1:] if words and not words[0].startswith("--") else words
        else:
            found.append(word)
    if "account" in given and command[0] in ("unlock", "grant"):  # a positional account is named by the option instead
        found.remove("patient")
    return [*found, *(part for name, value in given.items() for part in (f"--{name}", value) if part)]


def refused(case: Refusal) -> Outcome:
    """Returns the refusal of a case, in a new clinic in the current folder."""
    write(Path(), case.toml)
    Path("more.csv").write_text("x\n1\n")
    for command in (("protect",), *case.before):
        assert run(*command).code == 0, command
    told = run(*case.command)
    assert told.code in (2, 3, 4), told
    return told


def apply(case: Refusal) -> int:
    """Applies each alternative of a refusal, and returns how many there are."""
    with _folder():
        hint = refused(case).err.partition("Hint: ")[2]
    found = list(remedies(case.command, hint))
    for commands in found:
        with _folder():
            refused(case)
            for command in commands:
                done = run(*command)
                assert done.code == 0, (hint, command, done)
    return len(found)


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    with TemporaryDirectory() as made, contextlib.chdir(made):
        yield


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_refusal_proposes_is_accepted(name: str) -> None:
    case = REFUSALS[name]
    if case.repeats:
        with _folder():
            assert "You can repeat earlier questions for free" in refused(case).err
            assert "free" in run("ask", case.repeats, *LITTLE).out
    else:
        assert apply(case) > 0


@pytest.mark.ci
def test_mutant_hints_of_arguments_that_a_command_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_budgets, "_fit_arguments", lambda template, _: template)
    with pytest.raises(AssertionError):
        apply(REFUSALS["a query and a profile"])


@pytest.mark.usefixtures("clinic")
def test_an_account_that_is_locked_is_unlocked_as_its_refusal_says() -> None:
    with AnchoredLedger("clinic.ledger") as ledger:
        for _ in range(3):
            ledger.fail(ledger.charge("patients", events.Pure("0.01"), analyst="ana"))
    told = run("ask", COUNT, *LITTLE, *ANA)
    assert AccountLocked.__name__ in told.error
    (commands,) = remedies(("ask", COUNT, *LITTLE, *ANA), told.err)
    assert [run(*command).code for command in commands] == [0, 0]


@pytest.mark.usefixtures("clinic")
def test_who_may_not_ask_is_given_a_role_and_a_project_a_cap() -> None:
    assert run("grant", "ana", "patients").code == 0
    eve = ("ask", COUNT, *LITTLE, "--analyst", "eve")
    assert run(*eve).error["Hint"] == "A steward can give them a role."
    assert (run("grant", "eve", "patients").code, run(*eve).code) == (0, 0)
    for_flu = ("ask", f"{COUNT} WHERE age > 3", *LITTLE, "--project", "flu", *ANA)
    assert run(*for_flu).error["Hint"] == "Ask a steward to set a cap for it first."
    assert (run("set-cap", "flu", "--epsilon", "0.2").code, run(*for_flu).code) == (0, 0)


def test_what_explain_says_would_be_refused_is_spelled_as_it_is_typed(clinic: Path) -> None:
    told = run("explain", COUNT, *MUCH)
    assert (told.code, "Ask with --epsilon 2 and --delta 0, or repeat" in told.out) == (0, True)
    assert clinic.exists()


# ------------------------------------------------------------------------------------------------------ discreet.toml


def _without(*keys: str) -> str:
    return "\n".join(line for line in TOML.splitlines() if not line.startswith(keys)) + "\n"


def _declare(toml: str, lines: str) -> str:
    return toml.replace('source = "visits.csv"\n', f'source = "visits.csv"\n{lines}\n')


def protect(toml: str) -> Outcome:
    write(Path(), toml)
    return run("protect")


@pytest.mark.usefixtures("folder")
def test_missing_limits_are_declared_as_the_refusal_says() -> None:
    bare = _without("max_")
    hint = protect(bare).error["Hint"]
    limits, _, private = hint.partition("Or write ")
    numbers = re.findall(r"max_[a-z]+=\d+", limits)
    assert len(numbers) == 2
    assert protect(_declare(bare, "\n".join(numbers))).code == 0
    Path("clinic.ledger").unlink()
    (found,) = re.findall(r'limits="[a-z]+"', private)
    renamed = _declare(bare, found).replace("clinic.ledger", "other.ledger")
    assert protect(renamed).code == 0
    assert run("ask", COUNT, *LITTLE).code == 0


@pytest.mark.usefixtures("folder")
def test_a_unit_that_does_not_fit_is_one_of_those_that_the_refusal_names() -> None:
    absent = protect(_without("unit"))
    (line,) = re.findall(r'unit = ""', absent.error["Hint"])
    hint = protect(TOML.replace('"patient_id"\naccount', '"patient"\naccount')).error["Hint"]
    columns = hint.removeprefix("Its columns are ").rstrip(".").split(", ")
    assert "patient_id" in columns
    hint = protect(TOML.replace('unit = "patient_id"', 'unit = "charge"')).error["Hint"]
    assert hint == "Use whole numbers or texts as ids."
    assert protect(TOML.replace('unit = "patient_id"', line)).code == 0


@pytest.mark.usefixtures("clinic")
def test_other_people_of_the_same_file_get_a_table_of_their_own() -> None:
    refused = protect(TOML.replace('unit = "patient_id"', 'unit = "ward"'))
    assert "Protect the data as a table with another name." in refused.error["Hint"]
    types = 'types = { ward = "text" }\nmax_rows = 1\n'
    budget = "[budgets.wards]\nepsilon = 1\n"
    section = '\n[tables.wards]\nsource = "visits.csv"\nunit = "ward"\n'
    hint = protect(f"{TOML}{section}{types}{budget}").error["Hint"]
    (shared,) = re.findall(r"account='patients'", hint)
    assert "identity=..." in hint
    assert protect(f'{TOML}{section}identity = "the wards"\n{types}{budget}').code == 0
    other = section.replace("tables.wards", "tables.again")
    beside = (TOML + other).replace("clinic.ledger", "other.ledger")
    assert protect(f"{beside}{shared}\n{types}").code == 0


@pytest.mark.usefixtures("clinic")
def test_an_account_without_a_budget_gets_the_one_that_the_refusal_writes() -> None:
    more = '\n[tables.more]\nsource = "more.csv"\nunit = ""\ntypes = { x = "int" }\naccount = "others"\n'
    Path("more.csv").write_text("x\n1\n")
    hint = protect(TOML + more).error["Hint"]
    section, amount, other = re.findall(r'\[[a-z.]+\]|[a-z]+ = "[0-9.]+"', hint)
    assert protect(f"{TOML}{more}{section}\n{amount}\n").code == 0
    assert other == 'rho = "0.1"'
    assert protect(f"{TOML}{more}{section}\n{other}\n".replace("clinic.ledger", "other.ledger")).code == 0


@pytest.mark.usefixtures("clinic")
def test_a_changed_declaration_is_entered_as_the_refusal_says() -> None:
    changed = TOML.replace("[0, 120]", "[0, 110]")
    write(Path(), changed)
    asked = run("ask", COUNT, *LITTLE)
    (first,) = [shlex.split(typed) for typed in _COMMAND.findall(asked.err)]
    refused = run(*first)  # no terminal can ask
    (second,) = [shlex.split(typed) for typed in _COMMAND.findall(refused.err)]
    assert (run(*second).code, run("ask", COUNT, *LITTLE).code) == (0, 0)
