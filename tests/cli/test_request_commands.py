"""Commands are derived from requests: a new verb is a command, JSON is the service's document, errors name options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest

from discreet.cli.app import COMMANDS, RENAMED, load_command, unlisted_commands
from discreet.cli.verbs import verb_commands
from discreet.cli.verbs.request_options import _FORMS, offered_arguments, option_names
from discreet.curator import curator as curators
from discreet.curator.curator import Curator
from discreet.errors import InternalError
from discreet.requests.request import Arg, ArgumentKind, Request, arguments, check_kinds
from discreet.requests.verb_table import VERBS, Permission, Queue, Verb
from tests.cli.clinic import BY_WARD, COUNT, TOML, run, write

# -------------------------------------------------------------------------------------------------------- a new verb


@dataclass(frozen=True, kw_only=True)
class CountTables(Request[str]):
    """Count the tables of an account; reads no data, spends nothing."""

    verb: ClassVar[str] = "count_tables"
    account: Annotated[str, Arg(ArgumentKind.NAME, "The account.", example="patients")]
    words: Annotated[tuple[str, ...] | None, Arg(ArgumentKind.TEXT, "Words to say.", many=True, option="word")] = None
    times: Annotated[int, Arg(ArgumentKind.COUNT, "How often they are said.", most=9)] = 1


def count_tables(curator: Curator, request: CountTables, caller: Any) -> str:
    found = [table for table, account in curator.tables().items() if account == request.account]
    return f"{caller.analyst}: {len(found)} {' '.join((request.words or ()) * request.times)}"


class Told:
    """How the result of the new verb is written."""

    def write(self, made: str) -> dict[str, str]:
        return {"kind": "count", "text": made}


@pytest.fixture
def new_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb that nothing of the command line knows."""
    verb = Verb("count_tables", f"{__name__}:CountTables", "count", Permission.PLAN, Queue.PLANNING, "count_tables")
    for module in (import_module("discreet.cli.app"), curators, verb_commands):
        monkeypatch.setattr(module, "VERBS", {**VERBS, verb.name: verb})
    monkeypatch.setattr(verb_commands, "result_of", lambda _: Told())


@pytest.mark.usefixtures("clinic", "new_verb")
def test_a_new_verb_is_a_command_without_a_line_about_it() -> None:
    told = run("count-tables", "patients", "--word", "a", "--word", "b", "--times", "2", "--analyst", "ana")
    assert (told.code, told.out) == (0, "ana: 1 a b a b\n"), told.err
    printed = run("count-tables", "patients", "--json")
    assert json.loads(printed.out) == {"kind": "count", "text": "owner: 1 "}
    refused = run("count-tables", "patients", "--times", "10")
    assert (refused.code, refused.error["InvalidParameter"]) == (2, "Expected --times=10 <= 9.")
    help_ = run("count-tables", "--help")
    assert "Count the tables of an account" in help_.out
    assert "How often they are said." in help_.out
    assert "count-tables" in run("--help").out
    assert "Count the tables of an account" in " ".join(run("--help").out.split())


def test_no_verb_of_ours_is_left_out_of_the_list() -> None:
    """Whose summaries help has without loading what a request needs."""
    assert unlisted_commands() == []


def test_a_verb_that_nobody_has_is_no_command() -> None:
    assert run("count-tables").code == 2
    assert load_command("count-tables") is None


# ----------------------------------------------------------------------------------------------------- all the verbs

ELSEWHERE = {"ask_many": "ask", "synthesize_tables": "synthesize", "stream": "stream start", **RENAMED}
"""The commands of verbs that are not called like them."""

ON_THE_COMMAND_LINE = [verb for verb in VERBS.values() if "cli" in verb.faces]


def command_of(verb: Verb) -> tuple[str, Any]:
    name = ELSEWHERE.get(verb.name, verb.name.replace("_", "-"))
    first, *below = name.split()
    found = load_command(first)
    return name, found.commands[below[0]] if below else found


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_works_warns_and_is_not_in_the_help(old: str, new: str) -> None:
    called, there = run(old, "--help"), run(new, "--help")
    assert (called.code, called.out.replace(f"discreet {old}", f"discreet {new}").split()) == (0, there.out.split())
    assert f"`discreet {old}` is now `discreet {new}`" in called.err
    assert (there.code, there.err) == (0, "")
    words = run("--help").out.split()
    assert (old in words, new in words) == (False, True)


@pytest.mark.parametrize("verb", ON_THE_COMMAND_LINE, ids=lambda verb: verb.name)
def test_every_argument_of_every_verb_is_an_option(verb: Verb) -> None:
    name, command = command_of(verb)
    assert name.split()[0] in COMMANDS
    known = {parameter.name for parameter in command.params}
    placed = {"ask": {"sql"}, "ask_many": {"questions"}, "synthesize_tables": {"people"}}.get(verb.name, set())
    left_out = {"choose_limits", "confidence"} if verb.name == "stream" else set()
    assert set(option_names(verb.request)) - placed - left_out <= known


def test_a_kind_that_is_missing_fails_when_the_table_is_made() -> None:
    assert set(_FORMS) == set(ArgumentKind)
    with pytest.raises(InternalError, match="'cli' has no type for LIMITS"):
        check_kinds({kind: form for kind, form in _FORMS.items() if kind is not ArgumentKind.LIMITS}, "cli")


def test_what_no_option_can_hold_is_refused_when_a_command_is_made() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Taught(Request[str]):
        verb: ClassVar[str] = "taught"
        learner: Any = None

    Taught.__annotations__["learner"] = Annotated[Any, Arg(ArgumentKind.LEARNER, "A learner.")]
    with pytest.raises(InternalError, match="cannot be written on the command line"):
        list(offered_arguments(Taught))


def test_no_verb_with_a_learner_is_on_the_command_line() -> None:
    taught = [v.name for v in VERBS.values() if any(a.arg.kind is ArgumentKind.LEARNER for a in arguments(v.request))]
    assert taught == ["fit", "plan_fit"]
    assert not {verb.name for verb in ON_THE_COMMAND_LINE} & set(taught)


# ------------------------------------------------------------------------------------------------------------ errors

DAILY = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
RIGHT: dict[str, list[str]] = {
    "ask": [COUNT, "--epsilon", "0.1"],
    "ask_many": [COUNT, BY_WARD, "--epsilon", "0.1"],
    "explain": [COUNT, "--epsilon", "0.1"],
    "rehearse": [COUNT],
    "choose_epsilon": [COUNT],
    "profile": ["visits", "--epsilon", "0.1"],
    "synthesize": ["visits", "--epsilon", "0.1", "--out", "a.csv"],
    "synthesize_tables": [
        "visits",
        "--events",
        "visits",
        "--epsilon",
        "0.1",
        "--out",
        "a.csv",
        "--events-out",
        "b.csv",
    ],
    "plan_synthesize": ["visits", "--epsilon", "0.1"],
    "plan_synthesize_tables": ["visits", "visits", "--epsilon", "0.1"],
    "stream": ["daily", DAILY, "--epsilon", "0.1"],
    "budget": [],
    "history": [],
    "verify": [],
    "amend": ["patients", "--epsilon", "1", "--delta", "1e-6"],
    "renew": ["patients"],
    "unlock": ["patients"],
    "advance": ["visits", "--version", "2"],
    "erase_check": ["visits", "--id", "7"],
    "appoint": ["ana", "--account", "patients"],
    "allot": ["flu", "patients", "--epsilon", "1", "--delta", "1e-6"],
    "request_approval": [COUNT, "--epsilon", "0.1", "--reason", "a paper"],
    "approve": ["--number", "1"],
    "approvals": [],
    "require_approvals": ["--count", "1"],
    "set_team": ["heart", "--epsilon", "1", "--delta", "1e-6"],
    "set_aside": ["weekly", "--epsilon", "1"],
    "give_back": ["weekly"],
}
"""What the verbs are called with, before one of the arguments is made wrong."""

WRONG: dict[ArgumentKind, tuple[str, ...]] = {
    ArgumentKind.AMOUNT: ("0", "-1", "much", "nan"),
    ArgumentKind.SHARE: ("2", "0", "x"),
    ArgumentKind.DELTA: ("1", "-1", "x"),
    ArgumentKind.PRICE: ("0", "x"),
    ArgumentKind.COUNT: ("0", "x", "1.5"),
    ArgumentKind.VALUES: ("ward", "=3"),
    ArgumentKind.DOMAIN: ("nowhere.toml",),
    ArgumentKind.DOMAINS: ("nowhere.toml",),
}
"""Values that no argument of a kind has."""

WITH_CHOICES = "nonsense"


def mistakes(verb: Verb) -> Iterator[tuple[str, str]]:
    """The options of a verb, each with values that it cannot have."""
    for argument, _ in offered_arguments(verb.request):
        arg, word = argument.arg, (argument.arg.option or argument.name).replace("_", "-")
        for value in WRONG.get(arg.kind, (WITH_CHOICES,) if arg.choices else ()):
            yield f"--{word}", value
        if arg.kind is ArgumentKind.LIMITS:
            yield from (("--limits-groups", "0"), ("--limits-rows", "0"), ("--limits-rows", "x"))
        if arg.kind is ArgumentKind.BUDGET:
            yield from (("--epsilon", "-1"), ("--delta", "2"), ("--rho", "much"))


PYTHON = re.compile(
    r"(?<![-\w])(?:{})=|\b(?:{})\b".format(
        *(
            "|".join(names)
            for names in (
                sorted({a.name for v in ON_THE_COMMAND_LINE for a in arguments(v.request)}),
                sorted({a.name for v in ON_THE_COMMAND_LINE for a in arguments(v.request) if "_" in a.name}),
            )
        )
    )
)
"""Arguments as Python spells them."""


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The clinic; nothing of what is tried here changes it."""
    folder = tmp_path_factory.mktemp("clinic")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write(folder, TOML)
        assert run("protect").code == 0
        yield folder


@pytest.mark.usefixtures("protected")
@pytest.mark.parametrize("verb", ON_THE_COMMAND_LINE, ids=lambda verb: verb.name)
def test_errors_name_options_as_they_are_typed(verb: Verb) -> None:
    name, command = command_of(verb)
    options = {option for parameter in command.params for option in parameter.opts}
    for option, value in mistakes(verb):
        if option not in options:
            continue
        refused = run(*name.split(), *RIGHT[verb.name], option, value)
        told = " ".join(refused.err.split())
        assert (refused.code, option in told) == (2, True), (option, value, told)
        assert not PYTHON.findall(told), (option, value, told)


@pytest.mark.usefixtures("protected")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["ask", COUNT], ["Expected --epsilon=None", "--epsilon 0.1", "--within 20"]),
        (["ask", COUNT, BY_WARD], ["Expected --epsilon=None", "--epsilon 1"]),
        (["ask", COUNT, "--max-epsilon", "1"], ["Expected --max-epsilon=1", "--within"]),
        (["ask", COUNT, "--within", "1", "--max-epsilon", "0.01"], ["Expected --max-epsilon=0.01", "--within"]),
        (["ask", COUNT, "--within", "1", "--epsilon", "0.01"], ["Expected --within=1"]),
        (["ask", COUNT, "--epsilon", "1", "--profile", "0.1", "--coverage", "0.1"], ["--coverage", "--profile"]),
        (["ask", COUNT, BY_WARD, "--epsilon", "1", "--other", "x"], ["Expected --other='x'", "question alone"]),
        (["explain", COUNT], ["Expected --epsilon=None", "--epsilon 0.1"]),
        (["amend", "patients"], ["Expected --epsilon=None", "--epsilon 2"]),
        (["amend", "patients", "--epsilon", "1", "--rho", "1"], ["--rho 0.1 with --delta"]),
        (["set-cap", "flu", "patients"], ["Expected --epsilon=None", "--epsilon 1"]),
        (["grant", "ana", "--role", "king"], ["Expected --role='king' to be one of"]),
        (["synthesize", "visits", "--out", "a.csv"], ["Expected --epsilon=None"]),
        (["stream", "start", "n", DAILY, "--epsilon", "1", "--every", "7", "--start", "soon"], ["--start='soon'"]),
        (["budget", "--account", "nobody"], ["Expected --account='nobody'"]),
        (["verify", "--anchor", "x"], ["Expected --anchor='x'"]),
    ],
)
def test_refused_combinations_name_options_too(command: list[str], words: list[str]) -> None:
    refused = run(*command)
    told = " ".join(refused.err.split())
    assert (refused.code, [word for word in words if word not in told]) == (2, []), told
    assert not PYTHON.findall(told), told


@pytest.mark.usefixtures("protected")
def test_what_a_budget_refuses_is_told_in_options() -> None:
    refused = run("ask", COUNT, "--epsilon", "5")
    assert refused.code == 3
    assert "Ask with --epsilon 2 and --delta 0, or repeat" in refused.error["Hint"]


def test_a_mistake_in_the_file_is_told_as_the_file_is_written(folder: Path) -> None:
    write(folder, TOML.replace("epsilon = 2", "epsilon = 2\nrho = 1"))
    refused = run("ask", COUNT, "--epsilon", "0.1")
    assert "--" not in refused.err
    assert "epsilon=1" in refused.error["Hint"]
