"""`discreet synthesize`: a synthetic table like a protected one, written to a file that may be handed on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from discreet.cli.output import OutputFormat, file_option, say, stages, write_page
from discreet.cli.verbs.verb_commands import CommandCall, command, perform, print_result
from discreet.errors import InvalidParameter
from discreet.lazy import load, pq
from discreet.requests.table_requests import Synthesize, SynthesizeTables

Out = Annotated[Path, file_option(help="The file to write: .parquet or .csv.")]
EventsOut = Annotated[Path | None, file_option(help="The file to write synthetic events to.")]
Report = Annotated[
    Path | None, file_option(help="Also write a page: columns, worst pairs, what the table is good for.")
]

_FORMS = (".parquet", ".csv")


@command(SynthesizeTables, Synthesize, optional=("events",), without=("people",))
def synthesize(call: CommandCall, *, out: Out, events_out: EventsOut = None, report: Report = None) -> None:
    """Make a synthetic table like a protected one, to share. The same request again comes from the ledger for free."""
    table, events = call.values["table"], call.values["events"]
    _check_out("--out", out)
    _check_events(events, events_out)
    if report is not None:
        _check_report(report)
    made: Any
    if events is not None and events_out is not None:
        made = perform(call, SynthesizeTables, "Synthesizing", people=table)
        files = [(made.people, out, "--out"), (made.events, events_out, "--events-out")]
    else:
        made = perform(call, Synthesize, "Synthesizing")
        files = [(made.table, out, "--out")]
    told = [_write(rows, path, option) for rows, path, option in files]
    if report is not None:
        with stages("Drawing charts"):
            page = made.to_html()
        write_page(page, report, "--report")
        told.append(f"What the tables are good for, and what not: {report}.")
    if call.form is OutputFormat.TABLE:
        for line in told:
            say(line)
    print_result(Synthesize if events is None else SynthesizeTables, made, call.form)


def _check_out(option: str, out: Path) -> None:
    if out.suffix not in _FORMS or not out.parent.is_dir():
        raise InvalidParameter(option, str(out), f"to end with {' or '.join(_FORMS)}, in an existing folder")


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
        raise InvalidParameter("--report", str(path), "to end with .html, in an existing folder")
    load("vl_convert", "Drawing a chart")


def _write(table: Any, out: Path, option: str) -> str:
    """Writes synthetic rows, and says so; they are kept, so that nothing is lost if that cannot be done."""
    try:
        if out.suffix == ".parquet":
            pq.write_table(table, out)
        else:
            load("pyarrow.csv", "A CSV file").write_csv(table, out)
    except OSError:
        hint = f"The table is stored: the same command with another {option} writes it for free."
        raise InvalidParameter(option, str(out), "to be a file that can be written", hint) from None
    return f"{table.num_rows:,} rows written to {out}."
