"""`discreet synthesize`: a made-up table like a protected one, written to a file that may be handed on."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import say, stages, write_page
from discreet.cli.verbs.questions import Analyst, Delta, Project
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
    rows_per_unit: Annotated[
        int | None, typer.Option(help="How many rows of one unit count at most; 1, or of events as many as declared.")
    ] = None,
    events: Annotated[
        str | None, typer.Option(help="A table of events of the same people, made up with them for one charge.")
    ] = None,
    events_out: Annotated[Path | None, typer.Option(help="Where made-up events go.", dir_okay=False)] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page: columns, worst pairs, what it is good for.", dir_okay=False)
    ] = None,
    analyst: Analyst = OWNER,
    project: Project = "",
    key: Annotated[str | None, typer.Option(help="A word of yours: asked again with it, it is charged once.")] = None,
    config: ConfigFile = HERE,
) -> None:
    """Make up a table like a protected one, to hand on; the same again is written from the book for free."""
    _check_out("--out", out)
    _check_events(events, events_out)
    if report is not None:
        _check_report(report)
    known = None if domain is None else _domains(domain, linked=events is not None)
    how: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "generator": generator, "domain": known, "bins": bins}
    how |= {"rows": rows, "analyst": analyst, "project": project, "key": key}
    if rows_per_unit is not None:
        how["rows_per_unit"] = rows_per_unit
    made: Any
    with stages("Synthesizing"), Curator.from_config(config, opening=False) as curator:
        if events is not None and events_out is not None:
            made = curator.synthesize_tables(table, events, **how)
            written = [(made.people, out, "--out"), (made.events, events_out, "--events-out")]
        else:
            made = curator.synthesize(table, **how)
            written = [(made.table, out, "--out")]
    for rows_made, path, option in written:
        _write(rows_made, path, option)
    if report is not None:
        with stages("Drawing charts"):
            page = made.to_html()
        write_page(page, report, "--report")
        say(f"What they are good for, and what not: {report}.")
    typer.echo(str(made))


def _check_out(option: str, out: Path) -> None:
    if out.suffix not in _FORMS or not out.parent.is_dir():
        raise InvalidParameter(option, str(out), f"to end with {' or '.join(_FORMS)}, in a folder that is there")


def _check_events(events: str | None, events_out: Path | None) -> None:
    """Refuses half of what two tables need, before anything is charged."""
    if (events is None) is not (events_out is None):
        told = "--events" if events is None else "--events-out"
        raise InvalidParameter(told, None, "to be given", "Two tables need --events TABLE and --events-out FILE.")
    if events_out is not None:
        _check_out("--events-out", events_out)


def _check_report(path: Path) -> None:
    """Refuses a page that could not be written, or not be drawn, before anything is charged."""
    if path.suffix != ".html" or not path.parent.is_dir():
        raise InvalidParameter("--report", str(path), "to end with .html, in a folder that is there")
    load("vl_convert", "Drawing a chart")


def _write(table: Any, out: Path, option: str) -> None:
    """Writes made-up rows; they are kept, so that nothing is lost if that cannot be done."""
    try:
        if out.suffix == ".parquet":
            pq.write_table(table, out)
        else:
            load("pyarrow.csv", "A CSV file").write_csv(table, out)
    except OSError:
        hint = f"The table is kept: the same command with another {option} writes it for free."
        raise InvalidParameter(option, str(out), "to be a file that can be written", hint) from None
    say(f"{table.num_rows:,} rows written to {out}.")


def _domains(path: Path, *, linked: bool) -> dict[str, Any]:
    """Returns the domains that a file declares; of two tables, by the name of each.

    Raises:
        InvalidParameter: if it cannot be read, or declares something else.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InvalidParameter("--domain", str(path), "to be a TOML file", _DOMAIN) from None
    if not linked:
        return {name: _domain(name, declared) for name, declared in found.items()}
    if not all(isinstance(columns, Mapping) for columns in found.values()):
        raise InvalidParameter("--domain", str(path), "to have a section for each of the two tables", "[visits]")
    return {
        table: {name: _domain(name, declared) for name, declared in columns.items()} for table, columns in found.items()
    }


def _domain(name: str, declared: Any) -> Any:
    """Returns the domain of a column: a list of keys, or one kind of values with its options."""
    given = {"keys": declared} if isinstance(declared, list) else declared
    kinds = [kind for kind in _KINDS if kind in given] if isinstance(given, Mapping) else []
    if len(kinds) != 1 or set(given) - {kinds[0]} - _KINDS[kinds[0]][1]:
        raise InvalidParameter("--domain", name, "to have public values", _DOMAIN)
    made = getattr(load("discreet.synthetic", "A domain"), _KINDS[kinds[0]][0])
    return made(given[kinds[0]], **{option: value for option, value in given.items() if option != kinds[0]})
