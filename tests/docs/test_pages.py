"""Pages lead where they say, describe their pictures, begin in plain words, and spell them right."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from functools import cache
from pathlib import Path

from codespell_lib import main as codespell

from docs.site.code_blocks import Block, blocks
from docs.site.examples import fault, mention_fault
from docs.site.navigation import DOCS, PROJECT, pages, sections
from tests.cases import every

ROOT = DOCS.parent
PAGES = [ROOT / "README.md", *(ROOT / f"{name}.md" for name in PROJECT), *pages()]

GRADE = 11
"""Years of school that a first paragraph may ask for, by the formula of Flesch and Kincaid.

Advice for public writing is 8 or 9. Words that no page here can do without (differential privacy: nine syllables in two
words) add one or two to a paragraph of fifty words; a grade above 11 comes of sentences that are too long.
"""

OURS = "discreet,noes"
"""Words that the list of common misspellings takes for others: our name, and the plural of no."""

_FENCED = re.compile(r"(?ms)^(`{3,}|~{3,}).*?^\1[ \t]*$")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_IMAGE = re.compile(r"<img\b[^>]*>")


def _prose(page: Path) -> str:
    """The text of a page without blocks; code in a line keeps its place."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and MyST write them."""
    found: list[str] = []
    for heading in re.findall(r"(?m)^#{1,6}\s+(.+?)\s*#*$", _prose(page)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        earlier = sum(1 for other in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", other))
        found.append(f"{slug}-{earlier}" if earlier else slug)
    explicit = re.findall(r'<a (?:id|name)="([^"]+)"', _prose(page))
    return frozenset([*found, *explicit])


def dead(page: Path, target: str) -> str | None:
    """What is wrong with a link of a page; nothing is asked of other machines."""
    if re.match(r"[a-z][a-z+.-]*:", target):
        return None
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.exists():
        return "no such file"
    return "no such heading" if anchor and anchor not in _anchors(there) else None


@every("page", PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "`", _prose(page))
    found = {target: dead(page, target) for _, _, target in _LINK.findall(prose)}
    assert {target: why for target, why in found.items() if why} == {}


def test_dead_links_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`, three\n\n## Again\n\n## Again\n\n```sh\n# no heading\n```\n")
    assert dead(page, "#one-two-three") is None
    assert dead(page, "#again-1") is None
    assert dead(page, "page.md#again") is None
    assert dead(page, "https://example.org/x#y") is None
    assert dead(page, "#no-heading") == dead(page, "page.md#again-2") == "no such heading"
    assert dead(page, "other.md") == "no such file"


REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]
_FROM_AN_INDEX = re.compile(r"pip3? install\b[^`\n#]*[ '\"]discreet\b")


def test_pages_install_what_a_checkout_has_and_name_no_repository() -> None:
    """A name that is on no index yet cannot be installed: pages, notebooks and messages install the checkout."""
    texts = [*PAGES, *(ROOT / "examples").glob("*.ipynb"), *(ROOT / "src").rglob("*.py"), *(DOCS / "site").glob("*.py")]
    read = {path: path.read_text(encoding="utf-8") for path in texts if path.name != "CHANGELOG.md"}
    assert [path for path, text in read.items() if _FROM_AN_INDEX.search(text)] == []
    assert [path for path, text in read.items() if "/".join(REPOSITORY.split("/")[-2:]) in text] == []
    assert _FROM_AN_INDEX.search("`pip install 'discreet[deep]'`")
    assert _FROM_AN_INDEX.search("pip install -q discreet")


@every("page", PAGES)
def test_pictures_are_described(page: Path) -> None:
    prose = _prose(page)
    assert [target for mark, words, target in _LINK.findall(prose) if mark and not words.strip()] == []
    assert [image for image in _IMAGE.findall(prose) if not re.search(r'alt="[^"]+"', image)] == []


def _syllables(word: str) -> int:
    silent = re.sub(r"(?<=[^laeiouy])es$|(?<=[^laeiouydt])ed$|(?<=[^laeiouy])e$", "", word.lower())
    return max(1, len(re.findall(r"[aeiouy]+", silent)))


def grade(paragraph: str) -> float:
    """The grade of Flesch and Kincaid; what stands between backticks counts as a word of one syllable."""
    plain = re.sub(r"`[^`]*`", "it", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph))
    words = re.findall(r"[A-Za-z']+", plain)
    sentences = max(1, len(re.findall(r"[.!?:;](?=\s|$)", plain)))
    return 0.39 * len(words) / sentences + 11.8 * sum(map(_syllables, words)) / len(words) - 15.59


def _first_paragraph(page: Path) -> str:
    parts = (part.strip() for part in re.split(r"\n\s*\n", _prose(page)))
    return next(part for part in parts if part and not part.startswith(("#", "|", "-", "<", ">", "!", "[!")))


@every("page", PAGES)
def test_pages_begin_in_plain_words(page: Path) -> None:
    assert grade(_first_paragraph(page)) <= GRADE


def test_the_grade_tells_plain_words_from_others() -> None:
    plain = "You protect a table once. Each answer has noise and an error bar."
    other = (
        "Notwithstanding considerable methodological heterogeneity, contemporary implementations of differentially "
        "private aggregation necessitate comprehensive consideration of composability."
    )
    assert grade(plain) < GRADE - 5
    assert grade(other) > GRADE + 5


def misspelled(*paths: str) -> list[str]:
    """Lines with a word that is a common misspelling."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        codespell("--ignore-words-list", OURS, "--uri-ignore-words-list", "*", *paths)
    return told.getvalue().splitlines()


def test_words_are_spelled_right() -> None:
    assert misspelled(*map(str, PAGES)) == []


def test_misspelled_words_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("We recieve data, and are discreet about it.\n")
    assert len(misspelled(str(page))) == 1


@every("page", PAGES)
def test_blocks_of_code_can_be_run(page: Path) -> None:
    assert {block.line: told for block in blocks(page) if (told := fault(block))} == {}


@every(
    ("language", "body"),
    [
        ("python", "print(1)"),
        ("toml", "a = "),
        ("console", "$ cat file"),
        ("sh", "discreet dance"),
        ("sh", "discreet survey dance"),
        ("", "$ discreet ask 'SELECT 1' --epsilonn 1"),
        ("sh", "discreet ledger \\\n  sql --nothing"),
        ("haskell", "main = pure ()"),
    ],
)
def test_blocks_that_nothing_runs_are_seen(language: str, body: str) -> None:
    assert fault(Block("docs/tutorials/new.md" if language == "sh" else "docs/new.md", 1, language, body))


@every("page", [page for page in PAGES if page.stem != "CHANGELOG"])  # which also tells of what there was
def test_commands_that_sentences_name_are_there(page: Path) -> None:
    named = re.findall(r"`(discreet [^`]+)`", _prose(page))
    assert {code: told for code in named if (told := mention_fault(code))} == {}


def test_every_page_is_in_one_section() -> None:
    listed = [name for names in sections().values() for name in names]
    assert len(listed) == len(set(listed))
    assert {DOCS / f"{name}.md" for name in [*listed, "index"]} == set(pages())
