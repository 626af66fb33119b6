"""Pages that are read with a shell beside them: their commands work, and print what the pages show."""

from __future__ import annotations

import code
import re
from pathlib import Path
from types import CodeType

import pytest

from discreet.lazy import EXTRAS
from docs.generators.reconstruction_picture import PICTURE, picture
from docs.generators.terminal import Terminal
from docs.generators.walkthroughs import DOCS, filled, pages
from docs.site.code_blocks import blocks
from tests.test_start import python

README = DOCS.parent / "README.md"
GUIDES = sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("howto/*.md")])
"""The pages that somebody follows, from their first line to their last."""

_RUN = """
import doctest
from pathlib import Path
from docs.generators.walkthroughs import filled
filled(Path({page!r}))
ended = doctest.testfile({page!r}, module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
print(json.dumps(ended.failed))
"""

_SECRET = re.compile(r"\b(dk_|token=)\w+")
_NUMBER = re.compile(r"[-+±]?\b[0-9][0-9a-f]*([.,:][0-9a-f]+)*(e-?[0-9]+)?\b|\b[0-9a-f]{16,}\b")


def shape(text: str) -> list[str]:
    """The words of a page, without numbers, which are noisy, and without the spaces and rules that give them room."""
    text = _SECRET.sub("#", text)
    return [re.sub(r"[\s─━═-]+", " ", _NUMBER.sub("#", line)).strip() for line in text.splitlines()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    assert shape(filled(page)) == shape(page.read_text("utf-8"))


class _Reader(code.InteractiveConsole):
    """Reads lines as the interactive interpreter does, and runs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def runcode(self, code: CodeType) -> None:
        del code

    def write(self, data: str) -> None:
        self.refused.append(data)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_blocks_can_be_pasted_into_the_interpreter(page: Path) -> None:
    """A line that is not indented ends no block there: an empty one must. Programs with classes are saved as files."""
    reader = _Reader()
    for block in re.findall(r"^```python\n(?!>>>)(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        for line in [*block.splitlines(), ""] if "class " not in block else ():
            reader.push(line)
    assert not reader.refused


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_page_says_how_long_it_takes_and_what_it_needs(page: Path) -> None:
    """For a page that is read and not followed, neither."""
    text = page.read_text("utf-8")
    first = text.split("\n## ")[0].split("\n```")[0]
    assert first.startswith("# ")
    assert re.search(r"\b(This page (shows|helps) you|After this page you can)\b", first)
    assert page.stem == "add_an_engine" or re.search(r"\b(minutes|hour)\b", first)
    assert "pip install" in text


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_page_needs_no_more_than_it_tells_to_install(page: Path) -> None:
    """Run without the modules of every extra that the page does not name."""
    named = {name for names in re.findall(r"'\.\[([\w,]+)\]'", page.read_text("utf-8")) for name in names.split(",")}
    without = [module for module, extra in EXTRAS.items() if extra not in named]
    assert "torch" in without
    assert python(_RUN.format(page=str(page)), without=without, folder=DOCS.parent) == 0


@pytest.mark.ci
@pytest.mark.parametrize(("page", "first"), [(README, "discreet check"), (DOCS / "survey.md", "discreet survey make")])
def test_commands_of_a_page_succeed(page: Path, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that need no server, after the program of the page that writes their file, if any."""
    monkeypatch.chdir(tmp_path)
    found = [block for block in blocks(page) if block.is_run]
    (commands,) = [block for block in found if block.body.startswith(first)]
    for program in found[: found.index(commands)]:
        if program.language == "python":
            exec(compile(program.body, "page", "exec"), {"__name__": "page"})
    with Terminal() as terminal:
        assert terminal.type(commands.body)
    commands.ran()


def test_the_picture_is_what_is_drawn() -> None:
    assert PICTURE.read_text("utf-8") == picture()


def test_the_readme_leads_to_files_by_relative_links() -> None:
    links = re.findall(r"\]\((?!https?:)([^)\s#]+)", README.read_text("utf-8"))
    assert len(links) > 20
    assert not [link for link in links if not (DOCS.parent / link).exists()]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_links_between_pages_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]
