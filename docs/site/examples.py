"""Runs the blocks of code on the site, and stops the build if one does not do what it shows.

`python -m docs.site.examples -n 2`, with options of pytest.

Sessions of Python (`>>>`) on pages and in docstrings are run by pytest, which compares what is printed. Programs in
Python without prompts and commands of a shell have tests that do what their pages say (`FOLLOWED`) and enter each block
that ran in a list. At the end the list is compared with the pages: what did not run is told, and stops the build unless
a program is missing that its tests need, such as a PostgreSQL server. TOML is parsed. What is left is no code of ours,
and `SHOWN` says what it is. A block that is none of these stops the build.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.app import COMMANDS, load_command
from docs.site.code_blocks import LIST, RUN, Block, blocks
from docs.site.navigation import DOCS, PROJECT, pages

ROOT = DOCS.parent

FOLLOWED = {
    "docs/scaling.md": ("tests/cli/test_how_to.py", "tests/curator/test_servers.py::test_the_page_shows_the_role"),
    "docs/shared_ledger.md": (
        "tests/cli/test_how_to.py",
        "tests/ledger/test_postgres.py::test_the_document_is_true_line_by_line",
    ),
    "docs/serving.md": ("tests/test_shell_blocks.py",),
    "docs/tutorials/": ("tests/test_shell_blocks.py", "tests/test_walkthroughs.py"),
    "docs/howto/": ("tests/test_walkthroughs.py",),
    "docs/survey.md": ("tests/test_walkthroughs.py",),
    "README.md": ("tests/test_shell_blocks.py", "tests/test_walkthroughs.py"),
    "CONTRIBUTING.md": ("tests/test_shell_blocks.py",),
    "docs/command_line.md": ("tests/cli/test_declaring_anew.py::test_the_page_shows_what_is_printed",),
    "docs/http_api.md": ("tests/remote/test_how_to_connect.py::test_programs_run",),
    "docs/postgresql_wire.md": ("tests/service/wire/test_wire_page.py",),
}
"""Pages, and folders of them, whose blocks are run by tests, against a service or a server where they need one.

Tests run in this order, the longest first, and those that start Spark one after the other: one process does it once.
"""

SHOWN = {
    "ini": "a file for systemd",
    "nginx": "a file for nginx",
    "text": "what was printed, or lines of a file that is no program",
}
"""Languages of blocks that are no code of ours."""

NEEDS = {"docs/deep.md": "torch"}
"""Pages whose examples need an extra that is large: they are run where it is installed."""


def fault(block: Block) -> str | None:
    """Tells what is wrong with a block that pytest does not run; None if nothing is.

    >>> fault(Block("docs/x.md", 1, "toml", "a = 1"))
    >>> fault(Block("README.md", 1, "sh", "discreet budget --colour"))
    'discreet budget has no option --colour'
    >>> fault(Block("docs/x.md", 1, "python", "print(1)"))
    'is a program that nothing runs: write it as a session (>>>), or name its test in docs/site/examples.py'
    """
    if block.is_session or block.language in SHOWN:
        return None
    if block.language == "toml":
        return _toml_fault(block.body)
    if block.language not in RUN:
        return f"is in {block.language or 'no language'}, which docs/site/examples.py does not know"
    if not _tests(block.page):
        advice = "write it as a session (>>>), or name its test in docs/site/examples.py"
        return f"is a program that nothing runs: {advice}"
    return next(filter(None, map(_command_fault, _commands(block.body))), None)


def _tests(page: str) -> list[str]:
    """Returns the tests that follow a page."""
    named = [test for start, tests in FOLLOWED.items() if page.startswith(start) for test in tests]
    return [test for test in named if (ROOT / test.partition("::")[0]).is_file()]


def _toml_fault(body: str) -> str | None:
    """Parses a file; where a key stands there several times, these are alternatives."""
    lines: dict[str, str] = {}
    table = ""
    for number, line in enumerate(body.splitlines()):
        table = line if line.startswith("[") else table
        key = line.partition("=")[0].strip() if "=" in line else str(number)
        lines.setdefault(f"{table} {key}", line)
    try:
        tomllib.loads("\n".join(lines.values()))
    except tomllib.TOMLDecodeError as error:
        return str(error)
    return None


def mention_fault(code: str) -> str | None:
    """Tells what is wrong with a command that a sentence names; lists of commands and patterns are not looked at.

    >>> mention_fault("discreet key make")
    'discreet has no command key'
    >>> mention_fault("discreet stream start|release|show")
    >>> mention_fault("discreet attack NAME FILE...")
    """
    words = code.split()[1:]
    plain = [word for word in words if re.fullmatch(r"[a-z-]+(=.*)?", word)]
    return _command_fault(plain) if words[:1] == plain[:1] else None


def _commands(body: str) -> list[list[str]]:
    """Returns what stands after `discreet` wherever it is called, without comments and what follows a pipe."""
    joined = body.replace("\\\n", " ")
    lines = [line.removeprefix("$ ") for line in joined.splitlines() if re.match(r"(\$ )?discreet\b", line)]
    return [shlex.split(re.split(r" [|>] ", line)[0], comments=True)[1:] for line in lines]


def _command_fault(words: list[str]) -> str | None:
    """Looks for the command and for each of its options."""
    if not words or words[0].startswith("-"):
        return None
    if words[0] not in COMMANDS:
        return f"discreet has no command {words[0]}"
    command: Any = load_command(words[0])
    name, rest = f"discreet {words[0]}", words[1:]
    below = getattr(command, "commands", {})
    if below and rest and not rest[0].startswith("-"):
        if rest[0] not in below:
            return f"{name} has no command {rest[0]}"
        command, name, rest = below[rest[0]], f"{name} {rest[0]}", rest[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    used = [word.partition("=")[0] for word in rest if re.match(r"--[a-z]", word)]
    unknown = [option for option in used if option not in known | {"--help"}]
    return f"{name} has no option {unknown[0]}" if unknown else None


def main(arguments: list[str]) -> int:
    """Checks all blocks, then runs sessions and followed pages, and compares what ran with what is there.

    Args:
        arguments: what is handed on to pytest.

    Returns:
        0 if everything did what it shows.
    """
    every = [*(ROOT / f"{name}.md" for name in ("README", *PROJECT)), *pages()]
    found = [block for page in every for block in blocks(page)]
    faults = [f"{block.page}:{block.line}: {told}" for block in found if (told := fault(block))]
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    lacking = {page: module for page, module in NEEDS.items() if find_spec(module) is None}
    for page, module in lacking.items():
        print(f"{page}: not run, {module} is not installed")
    sessions = {block.page for block in found if block.is_session} - set(lacking)
    tests = list(dict.fromkeys(test for page in FOLLOWED for test in _tests(page)))  # as they stand there
    options = ["-q", "-rs", "--dist", "worksteal", "-m", "not slow or page", *arguments]
    with tempfile.TemporaryDirectory() as folder:
        kept, skips = Path(folder, "ran"), _Skips()
        kept.touch()
        os.environ[LIST] = str(kept)
        ended = int(pytest.main([*options, *tests, *sorted(sessions), "src"], plugins=[skips]))
        ran = set(kept.read_text("utf-8").splitlines())
    left = not_run(found, ran)
    wanted = sum(block.is_run for block in found)
    print(f"{wanted - len(left)} of {wanted} programs and blocks of commands ran", *left, sep="\n  not run: ")
    return ended or int(bool(left) and not skips.any)


class _Skips:
    """Notices whether a test was skipped, for the lack of a server, say."""

    def __init__(self) -> None:
        self.any = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest, also for tests of other processes."""
        self.any |= report.skipped


def not_run(found: list[Block], ran: set[str]) -> list[str]:
    """Returns the places of blocks that should have run and did not.

    >>> not_run([Block("docs/x.md", 3, "sh", "ls"), Block("docs/x.md", 9, "toml", "a = 1")], {"docs/x.md:2"})
    ['docs/x.md:3']
    """
    return [block.place for block in found if block.is_run and block.place not in ran]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
