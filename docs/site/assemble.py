"""Puts the pages of the site into one folder: written ones, those of the repository, notebooks, and the reference.

`python -m docs.site.assemble build/site-pages`
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path

from docs.site import notebook_pages
from docs.site.navigation import DOCS, PROJECT, pages, sections
from docs.site.reference_pages import FOLDER, reference

ROOT = DOCS.parent
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_SPACE = re.compile(r"\n\s*\n(```|~~~)(?=\n|$)")  # which ends an example for doctest, and would be shown
_FENCE = re.compile(r"(?ms)^(```+|~~~+).*?^\1[ \t]*$|`[^`\n]+`")


def assemble(target: Path) -> None:
    """Writes all pages below a folder, which is emptied first.

    Args:
        target: the folder that Sphinx reads.
    """
    shutil.rmtree(target, ignore_errors=True)
    for path in pages():
        text = _SPACE.sub(r"\n\1", path.read_text(encoding="utf-8"))
        _write(target / path.relative_to(DOCS), with_links(text, path.relative_to(ROOT)))
    for name in PROJECT:
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        _write(target / f"{name}.md", with_links(text, Path(f"{name}.md")))
    for path in DOCS.rglob("*"):
        if path.suffix in {".png", ".svg", ".jpg", ".gif", ".webp"}:
            _copy(path, target / path.relative_to(DOCS))
    _notebooks(target)
    made = reference()
    for name, text in made.pages.items():
        _write(target / FOLDER / f"{name}.md", text)
    _write(target / FOLDER / "index.md", _reference_index(list(made.pages)))
    with (target / "index.md").open("a", encoding="utf-8") as index:
        index.write(_tables_of_contents())


def _notebooks(target: Path) -> None:
    """Writes a page for each notebook beside the notebook itself, which pages offer; the course leads to them."""
    found = notebook_pages.notebooks()
    for notebook in found:
        name = Path(notebook_pages.FOLDER, notebook.name)
        _write(target / name.with_suffix(".md"), notebook_pages.notebook_page(notebook))
        _copy(notebook, target / name)
    with (target / "course.md").open("a", encoding="utf-8") as course:
        names = [f"{notebook_pages.FOLDER}/{notebook.stem}" for notebook in found]
        course.write("\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n")


def with_links(text: str, page: Path) -> str:
    """Returns the text of a page with links that hold on the site.

    Links to pages stay, as relative paths there, and notebooks have pages, too. A README leads to the first page.

    Raises:
        ValueError: for a link to a file that has no page on the site.

    >>> with_links("[a](docs/deep.md#layers) [c](#top) `[d](x.md)`", Path("CONTRIBUTING.md"))
    '[a](deep.md#layers) [c](#top) `[d](x.md)`'
    >>> with_links("[a](../serving.md) [b](../../SECURITY.md)", Path("docs/howto/x.md"))
    '[a](../serving.md) [b](../SECURITY.md)'
    >>> with_links("[a](../examples/3_reconstruction.ipynb)", Path("docs/course.md"))
    '[a](lessons/3_reconstruction.md)'
    >>> with_links("[b](Makefile)", Path("CONTRIBUTING.md"))
    Traceback (most recent call last):
    ValueError: CONTRIBUTING.md links to Makefile, which is not on the site. Name it as code instead: `Makefile`.
    """
    last, parts = 0, []
    for code in _FENCE.finditer(text):
        parts += [_relinked(text[last : code.start()], page), code.group()]
        last = code.end()
    return "".join([*parts, _relinked(text[last:], page)])


def _relinked(text: str, page: Path) -> str:
    return _LINK.sub(lambda match: match[1] + _link(match[2], page) + match[3], text)


def _link(target: str, page: Path) -> str:
    path, hash_, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return target
    there = posixpath.normpath((page.parent / path).as_posix())
    if there == "README.md":
        there, hash_, anchor = "docs/index.md", "", ""
    if there.startswith("docs/") and (ROOT / there).is_file():
        there = there.removeprefix("docs/")
    elif ROOT / there in notebook_pages.notebooks():
        there = f"{notebook_pages.FOLDER}/{Path(there).stem}.md"
    elif there not in {f"{name}.md" for name in PROJECT}:
        raise ValueError(f"{page} links to {target}, which is not on the site. Name it as code instead: `{there}`.")
    here = page.parent.relative_to("docs").as_posix() if page.parts[0] == "docs" else "."
    return posixpath.relpath(there, here) + hash_ + anchor


def _tables_of_contents() -> str:
    text = []
    for section, names in sections().items():
        listed = [*([f"{FOLDER}/index"] if section == "Reference" else []), *names]
        if listed:
            text.append(f"\n## {section}\n\n" + _toctree(section, listed))
    return "\n".join([*text, "\n## Project\n\n" + _toctree("Project", PROJECT)])


def _toctree(caption: str, names: list[str] | tuple[str, ...]) -> str:
    return "\n".join(["```{toctree}", f":caption: {caption}", ":maxdepth: 1", "", *names, "```", ""])


def _reference_index(modules: list[str]) -> str:
    intro = (
        "# The Python API\n\nEvery public name, module by module, as its docstring tells. Examples on these pages "
        "are run when the site is built, if their extra is installed. `discreet.deep`, `discreet.learn` "
        "and the engines for servers need extras, which their pages name.\n\n"
    )
    return intro + "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(modules) + "\n```\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
