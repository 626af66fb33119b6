"""`discreet synthesize`: a made-up table like a protected one, written to a file that may be handed on."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import say, stages, write_page
from discreet.cli.questions import Analyst, Delta, Project
from discreet.curator.curator import Curator
from discreet.errors import InvalidParameter
from discreet.lazy import load, pq
from discreet.ledger import OWNER

_FORMS = (".parquet", ".csv")
_DOMAIN = (
    "For each column a list of keys, or {bins = [0, 10, 20]}, or {bins = [0, 10, 20], within = 'histogram'}, or "
    "{calendar = 'year_month', years = [2020, 2024]}, or {unknown_keys = 100}."
)
_KINDS = {
    "keys": ("Keys", {"missing"}),
    "bins": ("Bins", {"missing", "whole", "within"}),
    "calendar": ("Calendar", {"years", "missing"}),
    "unknown_keys": ("UnknownKeys", {"other", "missing"}),
}


def synthesize(
    table: Annotated[str, typer.Argument(help="A protected table, or one SELECT of its columns.")],
    *,
    out: Annotated[Path, typer.Option(help="The file to write: .parquet or .csv.", dir_okay=False)],
    epsilon: Annotated[str, typer.Option(help="What the table may cost; kept exactly, e.g. 1 or 1/3.")],
    delta: Delta = None,
    rows: Annotated[
        int | None, typer.Option(help="How many to make up; unless given, about as many as there are.")
    ] = None,
    generator: Annotated[str, typer.Option(help="aim, mst, allpairs or independent.")] = "aim",
    domain: Annotated[
        Path | None, typer.Option(help="A TOML file of public values of columns.", dir_okay=False)
    ] = None,
    bins: Annotated[int | None, typer.Option(help="Into how many declared bounds are cut; 16 unless given.")] = None,
    rows_per_unit: Annotated[int, typer.Option(help="How many rows of one unit count at most.")] = 1,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page: columns, worst pairs, what it is good for.", dir_okay=False)
    ] = None,
    analyst: Analyst = OWNER,
    project: Project = "",
    key: Annotated[str | None, typer.Option(help="A word of yours: asked again with it, it is charged once.")] = None,
    config: ConfigFile = HERE,
) -> None:
    """Make up a table like a protected one, to hand on; the same again is written from the book for free."""
    if out.suffix not in _FORMS or not out.parent.is_dir():
        raise InvalidParameter("--out", str(out), f"to end with {' or '.join(_FORMS)}, in a folder that is there")
    if report is not None:
        _check_report(report)
    known = None if domain is None else _domains(domain)
    with stages("Synthesizing"), Curator.from_config(config, opening=False) as curator:
        made = curator.synthesize(
            table,
            epsilon=epsilon,
            delta=delta,
            rows=rows,
            generator=generator,
            domain=known,
            bins=bins,
            rows_per_unit=rows_per_unit,
            analyst=analyst,
            project=project,
            key=key,
        )
    try:
        _write(made.table, out)
    except OSError:
        hint = "The table is kept: the same command with another --out writes it for free."
        raise InvalidParameter("--out", str(out), "to be a file that can be written", hint) from None
    say(f"{len(made):,} rows written to {out}.")
    if report is not None:
        with stages("Drawing charts"):
            page = made.to_html()
        write_page(page, report, "--report")
        say(f"What they are good for, and what not: {report}.")
    typer.echo(str(made))


def _check_report(path: Path) -> None:
    """Refuses a page that could not be written, or not be drawn, before anything is charged."""
    if path.suffix != ".html" or not path.parent.is_dir():
        raise InvalidParameter("--report", str(path), "to end with .html, in a folder that is there")
    load("vl_convert", "Drawing a chart")


def _write(table: Any, out: Path) -> None:
    if out.suffix == ".parquet":
        pq.write_table(table, out)
    else:
        load("pyarrow.csv", "A CSV file").write_csv(table, out)


def _domains(path: Path) -> dict[str, Any]:
    """Returns the domains that a file declares.

    Raises:
        InvalidParameter: if it cannot be read, or declares something else.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InvalidParameter("--domain", str(path), "to be a TOML file", _DOMAIN) from None
    return {name: _domain(name, declared) for name, declared in found.items()}


def _domain(name: str, declared: Any) -> Any:
    """Returns the domain of a column: a list of keys, or one kind of values with its options."""
    given = {"keys": declared} if isinstance(declared, list) else declared
    kinds = [kind for kind in _KINDS if kind in given] if isinstance(given, Mapping) else []
    if len(kinds) != 1 or set(given) - {kinds[0]} - _KINDS[kinds[0]][1]:
        raise InvalidParameter("--domain", name, "to have public values", _DOMAIN)
    made = getattr(load("discreet.synthetic", "A domain"), _KINDS[kinds[0]][0])
    return made(given[kinds[0]], **{option: value for option, value in given.items() if option != kinds[0]})
