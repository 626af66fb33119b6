"""A terminal in which the shell blocks of a page are typed, as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Self

from typer.testing import CliRunner

from discreet.cli import app
from docs.site.navigation import DOCS

_ASSIGNMENT = re.compile(r"(export )?\w+=\S*")
_SECRET = re.compile(r"\b((?:dk_|token=)[0-9a-f]{4})\w+")
_SETTING = re.compile(r'(?m)^(\w+) = ("[^"]*").*$')
_TOLD = re.compile(
    r"Serving at: http://127\.0\.0\.1:(?P<port>\d+)\n(?s:.*)A key of the analyst: (?P<key>\w+)\n"
    r"(?s:.*?)(?:With psql: \S+:(?P<wire>\d+)/\w+\n)?Ctrl-C"
)
_READY = "Ctrl-C stops it."


class Terminal:
    """Types commands in the current folder, and returns what is printed.

    A few things differ from a reader's terminal. `pip` does nothing: what pages install is here, and a test asks pip
    for all of it at once. `make` prints what it would do. `discreet` runs in this process, but for `discreet serve`,
    which takes free ports and runs until the terminal is closed: ports and KEY of the page are then those it has told.

    Args:
        names: what a page calls something, and what it is called here.
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        self._assigned: list[str] = []
        self._services: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Presses Ctrl-C wherever something is left running."""
        for service in self._services:
            service.send_signal(signal.SIGINT)
        for service in self._services:
            service.communicate(timeout=60)

    def type(self, block: str) -> str:
        """Types a block, command after command.

        Raises:
            RuntimeError: if one of them fails.
        """
        return "".join(map(self._typed, commands(self.here(block))))

    def declare(self, block: str) -> None:
        """Writes a whole discreet.toml, or puts single lines of it right: those at the top before all sections."""
        block, file = self.here(block), Path("discreet.toml")
        if "[budgets" in block:
            file.write_text(block, "utf-8")
            return
        text = file.read_text("utf-8")
        for name, value in _SETTING.findall(block):
            changed, found = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
            text = changed if found else f"{name} = {value}\n{text}"
        file.write_text(text, "utf-8")

    def here(self, text: str) -> str:
        """Returns a text of the page with the names that things have here."""
        for name, here in self._names.items():
            text = re.sub(_word(name), here.replace("\\", r"\\"), text)
        return text

    def _typed(self, command: str) -> str:
        program, *words = shlex.split(command, comments=True) or [""]
        if _ASSIGNMENT.fullmatch(command):
            self._assigned.append(command)
        elif program == "make":
            return _run(shlex.join(["make", "--dry-run", "-C", str(DOCS.parent), *words]))
        elif [program, *words[:1]] == ["discreet", "serve"]:
            return self._serve(words)
        elif program == "discreet" and not {"|", "<", ">"} & set(words):
            return self._told(discreet(words, fails=False))
        elif program and program != "pip":
            return self._told(_run("\n".join([*self._assigned, command])))
        return ""

    def _serve(self, words: list[str]) -> str:
        """Starts a service, and takes its names for those of the page."""
        command, environment = _service(words), _environment()
        service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)  # noqa: S603 - a page's
        self._services.append(service)
        printed = "".join(_until_ready(service))
        found = _TOLD.search(printed)
        if found is None:
            raise RuntimeError(f"discreet {shlex.join(words)} ended: {printed}")
        self._names |= {"8642": found["port"], "KEY": found["key"], "5433": found["wire"] or "5433"}
        return self._told(printed.lstrip())

    def _told(self, printed: str) -> str:
        """As the page has it."""
        for name, here in self._names.items():
            printed = printed.replace(here, name) if name.isdigit() else printed
        return _SECRET.sub(r"\1...", printed)


def _service(words: list[str]) -> list[str]:
    """The command of a service, on free ports."""
    free = ["0" if before == "--pg" else word for before, word in pairwise(["", *words])]
    return [sys.executable, "-c", "from discreet.cli import main; main()", *free, "--port", "0"]


def _until_ready(service: subprocess.Popen[str]) -> Iterator[str]:
    """The lines that it prints until it can be used, or has ended."""
    for line in service.stdout or ():
        yield line
        if line.startswith(_READY):
            return


def _word(name: str) -> str:
    """A pattern for a name that is no part of a longer one."""
    before, after = (r"\b" if end.isalnum() else "" for end in (name[0], name[-1]))
    return f"{before}{re.escape(name)}{after}"


def commands(block: str) -> list[str]:
    r"""Returns the commands of a block, each with all its lines.

    >>> commands("discreet budget  # what is left\npython -c '\nprint(1)\n'\ncurl -sS \\\\\n  --help\n")
    ['discreet budget  # what is left', "python -c '\nprint(1)\n'", 'curl -sS \\\\\n  --help']
    """
    found: list[str] = []
    begun = ""
    for line in block.splitlines():
        begun += line
        if begun.endswith("\\") or not _is_whole(begun):
            begun += "\n"
        else:
            found.append(begun)
            begun = ""
    if begun:
        raise ValueError(f"the block ends within a command: {begun}")
    return found


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


def discreet(words: list[str], *, fails: bool = True) -> str:
    """Returns what a command prints, as in a terminal of 110 columns in /srv/clinic.

    Args:
        words: what stands after `discreet`.
        fails: whether it may end with an error.

    Raises:
        RuntimeError: if it may not, and does.
    """
    result = CliRunner(env={"COLUMNS": "110", "NO_COLOR": "1"}).invoke(app, words)
    if result.exit_code and not fails:
        raise RuntimeError(f"discreet {shlex.join(words)} ended with {result.exit_code}: {result.output}")
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return result.output.replace(str(Path.cwd()), "/srv/clinic").replace(state, "/home/stella/.local/state")


def _run(script: str) -> str:
    ended = subprocess.run(  # noqa: S603 - the page's own command
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607 - wherever it is
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"{script} ended with {ended.returncode}: {ended.stdout}")
    return ended.stdout


def _environment() -> dict[str, str]:
    """Programs of this environment come first, and nobody has chosen anything by variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "MAKE"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    rules = str(Path(__file__).with_name("psqlrc"))
    return {**kept, "PSQLRC": rules, "PATH": path, "NO_COLOR": "1", "COLUMNS": "110"}
