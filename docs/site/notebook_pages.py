"""Notebooks as pages of the site: cells become Markdown, and what they print and show stands below them.

Notebooks are stored without outputs. Cells are run here, in order and in this process, as Jupyter runs them: what is
printed is kept, and the value of a last line that is an expression is shown. A cell that fails stops the build.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import groupby
from pathlib import Path
from pprint import pformat
from typing import Any

from discreet.report import page
from docs.site.navigation import DOCS

EXAMPLES = DOCS.parent / "examples"
FOLDER = "lessons"

Cell = dict[str, Any]
_FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_EMPTY_CAPTION = "<figcaption></figcaption>"


def notebooks() -> list[Path]:
    """Returns the notebooks of the repository, in order."""
    return sorted(EXAMPLES.glob("*.ipynb"))


def cells(notebook: Path) -> list[Cell]:
    """Returns the cells of a notebook, each with its source as one text."""
    read = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in read]


@dataclass(frozen=True, slots=True)
class Output:
    """What a cell leaves behind: the text that it printed, and the value of its last line if that is one."""

    printed: str
    shown: object


@dataclass(slots=True)
class Session:
    r"""Names that the cells of one notebook share.

    >>> session = Session("lesson")
    >>> session.run("a = 2")
    Output(printed='', shown=None)
    >>> session.run("print(a); a + 1")
    Output(printed='2\n', shown=3)
    """

    name: str
    space: dict[str, Any] = field(default_factory=dict)

    def run(self, source: str) -> Output:
        """Runs a cell.

        Args:
            source: its code.

        Raises:
            Exception: what the code raises.
        """
        self.space.setdefault("__name__", self.name)
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        shown = None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, self.name, "exec"), self.space)  # noqa: S102 - cells are ours, and are there to be run
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), self.name, "eval"), self.space)  # noqa: S307
        return Output(printed.getvalue(), shown)


def notebook_page(notebook: Path) -> str:
    """Returns a notebook as Markdown, run from its first cell to its last.

    Args:
        notebook: the file.

    Raises:
        RuntimeError: if a cell fails; it names the cell.
    """
    session, parts = Session(notebook.name), []
    for is_solution, some in groupby(cells(notebook), key=_is_solution):
        written = "\n\n".join(_written(cell, session) for cell in some)
        parts.append(_folded(written) if is_solution else written)
    title, *rest = parts[0].split("\n\n", 1)
    return "\n\n".join([title, _how_to_get(notebook), *rest, *parts[1:]]) + "\n"


def _is_solution(cell: Cell) -> bool:
    return "solution" in cell["metadata"].get("tags", [])


def _written(cell: Cell, session: Session) -> str:
    if cell["cell_type"] == "markdown":
        return _FORMULA.sub(lambda found: _raw(_mathml(found[1])), str(cell["source"]))
    try:
        output = session.run(cell["source"])
    except Exception as error:
        raise RuntimeError(f"{session.name}: cell {cell['id']} fails: {error!r}") from error
    return "\n\n".join([_fenced("python", cell["source"]), *_outputs(output)])


def _mathml(formula: str) -> str:
    """A formula as browsers draw it by themselves; a program that does so would come from another machine."""
    drawn: str = import_module("docutils.utils.math.latex2mathml").tex2mathml(formula, as_block=True)  # of the extra
    return "".join(drawn.split("\n"))


def _outputs(output: Output) -> Iterator[str]:
    if output.printed:
        yield _fenced("{code-block} text\n:class: printed", output.printed.rstrip())
    if output.shown is None:
        return
    if hasattr(output.shown, "to_dict"):
        yield _raw(_chart(output.shown.to_dict()))
    else:
        yield _fenced("{code-block} text\n:class: printed", pformat(output.shown, width=88, sort_dicts=False))


def _chart(spec: Any) -> str:
    """A chart for wide and narrow pages, light and dark, as on pages of the library's own; the style shows one."""
    headline = spec["title"]["text"]
    told = "Chart: " + (headline if isinstance(headline, str) else " ".join(headline))
    drawn = page.figure(spec, caption="", description=told)
    return f'<div class="lesson-chart">{drawn.replace(_EMPTY_CAPTION, "")}</div>'


def _how_to_get(notebook: Path) -> str:
    return (
        f"*A lesson of [the course](../course.md). This page was run when the site was built. To run it yourself, "
        f"download* {{download}}`the notebook <{notebook.name}>`."
    )


def _folded(text: str) -> str:
    summary = '<details class="solution"><summary>Show the solution</summary>'
    return "\n\n".join([_raw(summary), text, _raw("</details>")])


def _raw(html: str) -> str:
    return _fenced("{raw} html", html)


def _fenced(kind: str, text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{kind}\n{text}\n{fence}"
