"""Runs the blocks of code on the site, and stops the build if one does not do what it shows.

`python -m docs.site.examples -n 2`, with options of pytest.

Sessions of Python (`>>>`) on pages and in docstrings are run by pytest, which compares what is printed. A block of
another kind is taken by its language: TOML is parsed, commands are read as the program reads them. A program in Python
without prompts, or anything that needs a server, has a test that does what the page says (`FOLLOWED`), which is skipped
where there is no such server. What is left is shown and not run, and `SHOWN` says why. A block that is none of these
stops the build.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.app import COMMANDS, loaded
from docs.site.navigation import DOCS, pages

ROOT = DOCS.parent

FOLLOWED = {
    "docs/http_api.md": ("tests/remote/test_how_to_connect.py::test_programs_run",),
    "docs/scaling.md": ("tests/cli/test_how_to.py", "tests/curator/test_servers.py"),
    "docs/shared_ledger.md": ("tests/cli/test_how_to.py",),
    "README.md": ("tests/test_walkthroughs.py",),
    "docs/survey.md": ("tests/test_walkthroughs.py",),
    "docs/howto/": ("tests/test_walkthroughs.py",),
    "docs/tutorials/": ("tests/test_walkthroughs.py",),
}
"""Pages, and folders of them, whose programs are run by tests, against a service or a server where they need one."""

SHOWN = {
    "ini": "a file for systemd",
    "nginx": "a file for nginx",
    "sql": "for a PostgreSQL server: what a command printed, compared or run by the tests of that page",
    "text": "what was printed, or programs for a service that is running",
}
"""Languages of blocks that are no code of ours."""

NEEDS = {"docs/deep.md": "torch"}
"""Pages whose examples need an extra that is large: they are run where it is installed."""

_FENCE = re.compile(r"(?ms)^(?P<fence>`{3,}|~{3,})(?P<language>[^\s`]*)[^\n]*\n(?P<body>.*?)^(?P=fence)[ \t]*$")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code on a page: where it stands, what it says it is, and its text."""

    page: str
    line: int
    language: str
    body: str

    @property
    def is_session(self) -> bool:
        """Tells whether pytest runs it."""
        return ">>>" in self.body


def blocks(page: Path) -> list[Block]:
    """Returns all blocks of a page."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    return [
        Block(name, text.count("\n", 0, found.start()) + 1, found["language"], found["body"])
        for found in _FENCE.finditer(text)
    ]


def fault(block: Block) -> str | None:
    """Tells what is wrong with a block that pytest does not run; None if nothing is.

    >>> fault(Block("docs/x.md", 1, "toml", "a = 1"))
    >>> fault(Block("docs/x.md", 1, "sh", "discreet budget --colour"))
    'discreet budget has no option --colour'
    >>> fault(Block("docs/x.md", 1, "python", "print(1)"))
    'is a program that nothing runs: write it as a session (>>>), or name its test in docs/site/examples.py'
    """
    if block.is_session or block.language in SHOWN:
        return None
    if block.language == "toml":
        return _toml_fault(block.body)
    if block.language in ("", "sh", "bash", "console"):
        return next(filter(None, map(_command_fault, _commands(block.body))), None)
    if block.language in ("python", "pycon"):
        advice = "write it as a session (>>>), or name its test in docs/site/examples.py"
        return None if _tests(block.page) else f"is a program that nothing runs: {advice}"
    return f"is in {block.language or 'no language'}, which docs/site/examples.py does not know"


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
    command: Any = loaded(words[0])
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
    """Checks all blocks, then runs sessions and followed pages.

    Args:
        arguments: what is handed on to pytest.

    Returns:
        0 if everything did what it shows.
    """
    every = [ROOT / "README.md", *pages()]
    found = [block for page in every for block in blocks(page)]
    faults = [f"{block.page}:{block.line}: {told}" for block in found if (told := fault(block))]
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    lacking = {page: module for page, module in NEEDS.items() if find_spec(module) is None}
    for page, module in lacking.items():
        print(f"{page}: not run, {module} is not installed")
    sessions = {block.page for block in found if block.is_session} - set(lacking)
    tests = {test for page in FOLLOWED for test in _tests(page)}
    options = ["-q", "-rs", "--dist", "worksteal", "-m", "not slow or page", *arguments]
    return int(pytest.main([*options, *sorted(sessions), "src", *sorted(tests)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
