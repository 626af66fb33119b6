"""Errors over HTTP and through `discreet.connect` name the field of JSON, or the Python argument, of their caller.

What commands print has neither: their own tests are in tests/cli, and here no message of theirs spells an argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

import discreet
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.requests.request import Argument, ArgumentKind, arguments, check_kinds
from discreet.requests.verb_table import VERBS, Queue, Verb
from tests.cli.clinic import COUNT, TOML, run
from tests.cli.clinic import write as write_clinic
from tests.faces.python_spellings import python_spellings
from tests.faces.test_one_document import GIVEN
from tests.remote.served import Served, served

BAD: Mapping[ArgumentKind, tuple[Any, ...]] = check_kinds(
    {
        ArgumentKind.SQL: (5, ""),
        ArgumentKind.NAME: (5, ["a"]),
        ArgumentKind.NAMES: (5, [5]),
        ArgumentKind.TEXT: (5, "two\nlines"),
        ArgumentKind.AMOUNT: ("-1", 0, "a", True, [1]),
        ArgumentKind.SHARE: (1, "2", "x", True),
        ArgumentKind.DELTA: (1, "-1", "x"),
        ArgumentKind.PRICE: ("-1", "x"),
        ArgumentKind.COUNT: (0, "5", 1.5),
        ArgumentKind.LIMITS: ("none", {"groups": 0}, 5),
        ArgumentKind.VALUE: ([1], {"a": 1}),
        ArgumentKind.VALUES: ("text", 5, [{"date": "x"}]),
        ArgumentKind.LEARNER: (5, "os.system"),
        ArgumentKind.GENERATOR: (5, "nothing"),
        ArgumentKind.DOMAIN: (5, {"ward": {"most": 3}}),
        ArgumentKind.DOMAINS: (5, {"stays": 5}),
        ArgumentKind.RULES: ("text", 5),
        ArgumentKind.BUDGET: (5, {}, {"epsilon": "-1"}, {"epsilon": 1, "rho": 1}, {"sigma": 1}),
    },
    "tests",
)
"""Values that no argument of a kind may have, as JSON has them."""

EACH = [verb for verb in VERBS.values() if "http" in verb.faces and verb.route[0] == "POST"]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SeededBits(11)) as made:
        yield made


def field(argument: Argument) -> str:
    """What JSON calls an argument."""
    return "learner" if argument.arg.kind is ArgumentKind.LEARNER else argument.name


def bad_bodies(verb: Verb) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields a path and a body for each bad value of each field, with the word that an error should name."""
    good = verb.request.of(**GIVEN[verb.name]).document()
    for argument in arguments(verb.request):
        for bad in BAD[argument.arg.kind]:
            body = {**good, field(argument): [bad] if argument.arg.many else bad}
            path = verb.route[1]
            if "{account}" in path:
                if argument.name == "account":
                    continue  # an account of the address is a text, whatever it is
                path = path.format(account=body.pop("account"))
            yield field(argument), path, body
    yield (
        "surprise",
        path.format(**good),
        {k: v for k, v in good.items() if f"{{{k}}}" not in verb.route[1]} | {"surprise": 1},
    )


@pytest.mark.parametrize("verb", EACH, ids=lambda verb: verb.name)
def test_a_problem_names_the_field_of_json(service: Served, verb: Verb) -> None:
    if not arguments(verb.request):
        return
    who = "stella" if verb.queue is Queue.LEDGER else "ana"
    before, desk = len(service.desk.curator.entries()), service.desk
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.keys[who]}"}) as client:
        for word, path, body in bad_bodies(verb):
            got = client.post(path, json=body)
            told = got.json()
            assert (got.status_code, told["error"]) == (422, "InvalidParameter"), (word, body, told)
            assert told["name"].partition(".")[0] == word, (body, told)
            assert word in told["message"]
    assert len(desk.curator.entries()) == before


@pytest.mark.parametrize("word", ["after", "limit"])
def test_a_problem_names_the_part_of_an_address(service: Served, word: str) -> None:
    headers = {"Authorization": f"Bearer {service.keys['ana']}"}
    for bad in ("-1", "x", "1e3"):
        got = httpx.get(f"{service.url}/v1/history", params={word: bad}, headers=headers)
        assert (got.status_code, got.json()["name"].rpartition(".")[2]) == (422, word)


@pytest.mark.parametrize("verb", EACH, ids=lambda verb: verb.name)
def test_an_error_names_the_argument_of_python(service: Served, verb: Verb) -> None:
    remote = discreet.connect(service.url, key=service.keys["stella" if verb.queue is Queue.LEDGER else "ana"])
    before = len(service.desk.curator.entries())
    for argument in arguments(verb.request):
        for bad in BAD[argument.arg.kind]:
            value = [bad] if argument.arg.many else bad
            with pytest.raises(InvalidParameter) as refused:
                getattr(remote, verb.name)(**{**GIVEN[verb.name], argument.name: value})
            words = {argument.name, "learner"} if argument.arg.kind is ArgumentKind.LEARNER else {argument.name}
            assert refused.value.name.partition(".")[0] in words, (bad, str(refused.value))
    assert len(service.desk.curator.entries()) == before


# ------------------------------------------------------------------------------------------------------- command line

ROOMS = (
    "sql",
    "plan",
    "measurement",
    "curator",
    "requests",
    "ledger",
    "stream",
    "synthetic",
    "local",
    "attacks",
    "cli",
)
DECLARED = {"bounds", "identity", "keys", "max_groups", "max_rows", "most_rows", "neighbours", "today", "types", "unit"}
"""What a steward declares: a query proposes it in words, for its caller may not be the steward."""

IN_PYTHON: Mapping[str, tuple[str, ...]] = {
    "declarations, as a steward writes them": (
        "curator/catalog/",
        "ledger/stewardship.py",
        "sql/clauses/from_clause.py",
    ),
    "learners and generators are objects, or are configured by nobody else": (
        "curator/training/",
        "curator/synthesis/synthesis_plan.py",
        "synthetic/",
    ),
    "what is no budget at all is an object": (
        "requests/request.py",
        "ledger/tallies.py",
        "stream/gaussian_factor.py",
        "stream/running_sum.py",
    ),
    "examples, which each face spells": ("requests/ledger_requests.py", "requests/cap_requests.py"),
    "how an object prints itself": (
        "ledger/account.py",
        "ledger/caps/approvals.py",
        "ledger/cost.py",
        "ledger/entry.py",
        "ledger/policy.py",
        "curator/streams/curated_stream.py",
        "measurement/profile/profile.py",
    ),
    "of the library alone": ("local/oracles/domain.py",),
}
"""Files with texts that spell arguments as Python does, under the reason why no command prints them so."""


@pytest.mark.ci
def test_no_message_of_a_command_spells_an_argument_as_python_does() -> None:
    names = {argument.name for verb in VERBS.values() for argument in arguments(verb.request)} | DECLARED | {"drop"}
    found = list(python_spellings(ROOMS, names))
    listed = {file for files in IN_PYTHON.values() for file in files}
    assert [each for each in found if not each[0].startswith(tuple(listed))] == []
    assert {file for file in listed if not any(each[0].startswith(file) for each in found)} == set()


PRIVATE = TOML.replace('keys = { ward = ["A", "B", "C"] }\n', "")
GROUPS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
CAPPED = ("--max-epsilon", "1")
REFUSED: Mapping[str, list[str]] = {
    "--within works for COUNT": ["ask", "SELECT VARIANCE(age) AS v FROM visits", "--within", "1", *CAPPED],
    "Ask for plain COUNT, SUM and AVG columns with --within": [
        "ask",
        "SELECT 2 * COUNT(*) AS n FROM visits",
        "--within",
        "1",
        *CAPPED,
    ],
    "to be given with --within": ["ask", COUNT, "--within", "1"],
    "--other gathers what the groups": ["ask", COUNT, "--epsilon", "1", "--other", "rest"],
    "What --other gathers is a sum over groups": [
        "ask",
        "SELECT ward, COUNT(DISTINCT age) AS n FROM visits GROUP BY ward",
        *("--epsilon", "1", "--delta", "1e-7", "--other", "rest"),
    ],
    "Declare the keys, or ask with a delta, e.g. --delta 1e-8": ["ask", GROUPS, "--epsilon", "1", "--delta", "0"],
    "Expected --rho 1 to be": ["amend", "patients", "--rho", "1"],
    "Expected --epsilon 1 to be": ["amend", "patients", "--epsilon", "1"],
    "Expected --rho 1 --delta 1e-06 to be": ["set-cap", "flu", "patients", "--rho", "1", "--delta", "1e-6"],
}
"""What commands print that propose or refuse arguments."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A protected clinic, of which all that is asked here is refused."""
    folder = tmp_path_factory.mktemp("clinic")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))  # anchors of an earlier folder of this name are elsewhere
        write_clinic(folder, PRIVATE)
        assert run("protect").code == 0
        yield


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", REFUSED)
def test_commands_name_options_in_reasons_hints_and_values(words: str) -> None:
    refused = run(*REFUSED[words])
    assert refused.code in (2, 4)
    assert words in " ".join(refused.err.split())
