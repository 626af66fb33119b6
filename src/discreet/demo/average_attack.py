"""The differencing attack: an average before and after a patient leaves, and the bill that follows from it.

With n visits before, the bill is n times the average before less n - 1 times the average after. Exact averages give it
away exactly. Against private ones the same attack is tried many times over. Since no account would pay for that, the
trials run side by side on copies of the ward, each with people of its own: one public key for each copy, before and
after. A patient belongs to a single copy, so that every copy meets the noise that it would meet alone.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from discreet.attacks import difference
from discreet.curator import Answer, Curator
from discreet.dataclass import dataclass
from discreet.demo.clinic import HIGHEST_CHARGE, RICH_PATIENT, RICH_WARD, Visit, without
from discreet.privacy import Budget
from discreet.sql.frame import count, mean

EPSILONS = ("0.2", "1", "5")
TRIALS = 100
_TYPES = {"person": "text", "copy": "text", "charge": "float"}
_ROWS = 2  # of a patient in one ward


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAverages:
    """Exact averages, and the bill that follows from them."""

    visits: int
    before: Fraction
    after: Fraction

    @property
    def inferred_bill(self) -> Fraction:
        """Returns what the attacker computes."""
        return Fraction(difference((self.visits, self.before), (self.visits - 1, self.after)).recovered)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateAverages:
    """The bills that the attacker computes from private averages of one epsilon each, one number for each trial."""

    epsilon: str
    inferred: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """Returns the trial below which this share of them lies."""
        ordered = sorted(self.inferred)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def raw(rows: Sequence[Visit]) -> RawAverages:
    """Returns the attack on exact averages."""
    before, after = _ward(rows)
    return RawAverages(visits=len(before), before=_average(before), after=_average(after))


def private(
    curator: Curator,
    rows: Sequence[Visit],
    folder: Path,
    *,
    trials: int = TRIALS,
    step: Callable[[], None] = lambda: None,
) -> tuple[PrivateAverages, ...]:
    """Returns the attack on private averages, at several epsilons.

    Args:
        curator: who answers.
        rows: the clinic.
        folder: for a file.
        trials: for each epsilon.
        step: called after each epsilon.
    """
    path = folder / "copies.csv"
    _write(path, rows, trials)
    found = []
    for epsilon in EPSILONS:
        answer = _ask_copies(curator, path, epsilon, trials)
        total = {row["copy"]: row["visits"] * row["cost"] for row in answer}
        before, after = ([total[_key(when, trial)] for trial in range(trials)] for when in (0, 1))
        found.append(PrivateAverages(epsilon=epsilon, inferred=tuple(map(float, difference(before, after).recovered))))
        step()
    return tuple(found)


def _ward(rows: Sequence[Visit]) -> tuple[list[Visit], list[Visit]]:
    """Returns the rich patient's ward, before and after."""
    ward = [row for row in rows if row.ward == RICH_WARD]
    return ward, without(ward, RICH_PATIENT)


def _average(rows: Sequence[Visit]) -> Fraction:
    return Fraction(sum(row.charge for row in rows), len(rows))


def _write(path: Path, rows: Sequence[Visit], trials: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_TYPES)
        writer.writerows(_copies(rows, trials))


def _copies(rows: Sequence[Visit], trials: int) -> Iterator[tuple[str, str, int]]:
    for when, ward in enumerate(_ward(rows)):
        for trial in range(trials):
            key = _key(when, trial)
            yield from ((f"{key}, {row.patient}", key, row.charge) for row in ward)


def _key(when: int, trial: int) -> str:
    return f"{('before', 'after')[when]} {trial}"


def _ask_copies(curator: Curator, path: Path, epsilon: str, trials: int) -> Answer:
    """Returns the visits and the average charge of every copy, each at this epsilon."""
    name = f"copies at {epsilon}"
    curator.protect(
        str(path),
        name=name,
        unit="person",
        budget=Budget(epsilon=epsilon),
        types=_TYPES,
        bounds={"charge": (0, HIGHEST_CHARGE)},
        keys={"copy": [_key(when, trial) for when in (0, 1) for trial in range(trials)]},
        max_rows=_ROWS,
        version="demo",
        identity=name,  # the file has no real people: every trial is a world of its own
    )
    frame = curator.table(name).group_by("copy").agg(visits=count(), cost=mean("charge"))
    return curator.ask(frame.question, epsilon=epsilon)
