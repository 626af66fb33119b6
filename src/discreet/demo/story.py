"""The main job, end to end: protect a clinic, ask, be refused, ask again for free, attack, verify, report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from discreet.curator import Curator
from discreet.dataclass import dataclass
from discreet.demo import average_attack, background, terminal
from discreet.demo.clinic import HIGHEST_CHARGE, PATIENTS, RICH_CHARGE, RICH_WARD, Visit, visits, write
from discreet.demo.conversation import BUDGET, DIAGNOSIS_LINE, WARD_LINE, DemoReply, conversation, protect
from discreet.ledger import Balance, Head
from discreet.noise import Bits
from discreet.presentation.ledger_view.entry_view import EntryView, view_entry

FOLDER = "discreet-demo"
PROVENANCE = (
    "The noise of every release comes from AES-256-CTR, keyed by the operating system. If you run this again, the "
    "released numbers change, but their prices do not."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The results of the demo's story.

    Attributes:
        patients: how many people the clinic has.
        visits: how many rows.
        exact: for some questions, by released column and label, what an exact answer would have been.
        said: questions with answers and refusals.
        raw: the attack on exact averages.
        private: the attack on private ones.
        entries: of the ledger, in order.
        balance: of the account, at the end.
        head: what the verified ledger ends with.
    """

    patients: int
    visits: int
    exact: Mapping[str, Mapping[str, float]]
    said: tuple[DemoReply, ...]
    raw: average_attack.RawAverages
    private: tuple[average_attack.PrivateAverages, ...]
    entries: tuple[EntryView, ...]
    balance: Balance
    head: Head


def tell(
    console: Console, *, bits: Bits | None = None, patients: int = PATIENTS, trials: int = average_attack.TRIALS
) -> Story:
    """Prints the story while it happens.

    Args:
        console: where it is printed.
        bits: the source of all noise; a seeded one is for tests, and every answer then says that it is not private.
        patients: how many people the clinic has.
        trials: trials of the attack at each epsilon.
    """
    with TemporaryDirectory() as name:
        folder, rows = Path(name), visits(patients)
        write(folder / "visits.csv", rows)
        with _curator(str(folder / "clinic.ledger"), bits) as curator:
            said = _questions(console, curator, folder, rows)
            raw, found = _attacks(console, rows, folder, bits, trials)
            entries, balance, head = _ledger(console, curator)
    _background(console, bits)
    return Story(
        patients=patients + 1,
        visits=len(rows),
        exact=_exact(rows),
        said=said,
        raw=raw,
        private=found,
        entries=entries,
        balance=balance,
        head=head,
    )


def _curator(ledger: str, bits: Bits | None) -> Curator:
    if bits is not None:
        return Curator.for_tests(ledger, bits=bits)
    anchor = None if ledger == ":memory:" else f"{ledger}.anchor"  # in the same folder, which is gone with the demo
    return Curator(ledger, anchor=anchor)


def _questions(console: Console, curator: Curator, folder: Path, rows: Sequence[Visit]) -> tuple[DemoReply, ...]:
    terminal.heading(console, "1. A clinic, protected and queried")
    protect(curator, folder / "visits.csv")
    people = len({row.patient for row in rows})
    terminal.say(console, f"{people:,} synthetic patients, {len(rows):,} visits, an account of {BUDGET}.\n")
    found = []
    for said in conversation(curator):
        terminal.exchange(console, said)
        found.append(said)
    return tuple(found)


def _attacks(
    console: Console, rows: Sequence[Visit], folder: Path, bits: Bits | None, trials: int
) -> tuple[average_attack.RawAverages, tuple[average_attack.PrivateAverages, ...]]:
    terminal.heading(console, "2. An attack on one rich patient")
    raw = average_attack.raw(rows)
    terminal.say(
        console,
        f"A patient leaves, and the average charge of {raw.visits:,} visits to {RICH_WARD} falls from "
        f"{float(raw.before):,.2f} to {float(raw.after):,.2f}. Multiply and subtract: the bill was {RICH_CHARGE:,}.",
    )
    with progress(console) as bar, _curator(":memory:", bits) as curator:
        task = bar.add_task("Attacking private averages", total=len(average_attack.EPSILONS))
        found = average_attack.private(curator, rows, folder, trials=trials, step=lambda: bar.advance(task))
    console.print(terminal.attack(raw, found))
    return raw, found


def progress(console: Console) -> Progress:
    """Returns a bar for steps that are counted."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True)


def _ledger(console: Console, curator: Curator) -> tuple[tuple[EntryView, ...], Balance, Head]:
    terminal.heading(console, "3. The ledger")
    head, balance = curator.verify(), curator.budget("visits")
    entries = tuple(map(view_entry, curator.history("visits")))
    console.print(terminal.ledger(entries))
    terminal.say(
        console,
        f"Verified: {head.sequence} chained entries, each charge written before the data were read. "
        f"Spent {balance.spent} of {balance.total}; refusals and replays cost nothing.",
    )
    return entries, balance, head


def _background(console: Console, bits: Bits | None) -> None:
    terminal.heading(console, "4. Noise, accountants, epsilons")
    console.print(terminal.counts(background.counts(bits)))
    console.print(terminal.accounts(background.accounts()))
    console.print(terminal.meanings(background.meanings()))
    terminal.say(console, PROVENANCE)


def _exact(rows: Sequence[Visit]) -> dict[str, dict[str, float]]:
    """Returns what exact answers within the bounds would have been.

    With real patients they could not be published.
    """
    by_ward: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_ward[row.ward].append(min(row.charge, HIGHEST_CHARGE))
    patients = Counter(diagnosis for _, diagnosis in {(row.patient, row.diagnosis) for row in rows})
    return {
        f"{WARD_LINE.name} visits": {ward: float(len(found)) for ward, found in by_ward.items()},
        f"{WARD_LINE.name} cost": {ward: sum(found) / len(found) for ward, found in by_ward.items()},
        f"{DIAGNOSIS_LINE.name} patients": {name: float(number) for name, number in patients.items()},
    }
