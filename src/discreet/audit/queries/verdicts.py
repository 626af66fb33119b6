"""Checks that only noise separates two neighbours, and that the noise is what was paid for.

Noise is also looked at by its size, coarsely and cheaply: that finds noise that is missing, or several times too small
or too large; `audit.distinguish` and `audit.exact` look closer at one mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.zcdp import zcdp_epsilon
from discreet.audit.queries.neighbour_distance import Move, paid_moves
from discreet.audit.queries.recorder import REST, AuditedQuery, QueryRecord, RecordedRelease, RecordingEngine, ask
from discreet.audit.queries.releases import (
    CandidateRelease,
    PointRelease,
    QuantileLevelRelease,
    Release,
    SelectionRound,
    allowance,
    law_of,
)
from discreet.curator import Answer, Curator
from discreet.curator.paid_release import costs_no_more
from discreet.dataclass import dataclass
from discreet.exact import float_above, float_below
from discreet.ledger import Account
from discreet.measurement.program.program import Program
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.selection import Threshold
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.value_counts import Key
from discreet.noise import Bits
from discreet.plan.analysis.stability import QueryContribution
from discreet.privacy import Neighbours, PureDP, events

SMALLEST = 2
"""The smallest scale that is looked at: below, most noise is zero and shows little."""

FALSE_ALARM = 1e-12
"""The chance that honest noise is called wrong."""


@dataclass
class NoiseSize:
    """Sums |noise| in units of its mean, over so many draws."""

    total: float = 0.0
    count: int = 0

    def add(self, noise: RecordedRelease) -> None:
        """Includes the noise of a release of statistics; others are left out."""
        if not isinstance(noise.release, AdditiveNoise):
            return
        for place, scale in enumerate(noise.release.scales):
            self.include(noise.release.law, scale, [abs(row[place]) for row in noise.drawn])

    def include(self, law: Law, scale: Fraction, sizes: Sequence[float]) -> None:
        """Includes noise of a law and a scale: how large each draw was, in the steps of the scale."""
        if scale >= SMALLEST:
            self.total += sum(sizes) / mean_size(law, scale)
            self.count += len(sizes)

    @property
    def ratio(self) -> float:
        """Returns how large it was, 1 being what is to be expected."""
        return self.total / self.count if self.count else 1.0

    @property
    def chance(self) -> float:
        """Returns a bound on the chance that honest noise is at least as far from what is to be expected, on its side.

        Chernoff: the mean of n exponential numbers of mean 1 is beyond r, on either side of 1, with a chance of at most
        e^(-n (r - 1 - log r)). Sizes of Gaussian noise are smaller than exponential ones in the convex order, as their
        hazard grows; those of Laplace noise on integers are larger by an eighth of the variance at scale 2 and less
        beyond, which leaves the exponent nine tenths of its size.
        """
        r = self.ratio
        if r <= 0:
            return 0.0 if self.count else 1.0
        return math.exp(-0.8 * self.count * (r - 1 - math.log(r)))

    @property
    def is_plausible(self) -> bool:
        """Returns whether it may be noise of the right size."""
        return self.count == 0 or self.chance >= FALSE_ALARM


def mean_size(law: Law, scale: Fraction) -> float:
    """Returns the mean of |X| for discrete Laplace noise; for Gaussian noise on integers, that of the continuous law.

    With q = e^(-1/b), P(X = k) = (1 - q) / (1 + q) q^|k| has the mean size 2 q / (1 - q^2), which is 1 / sinh(1/b).
    """
    if law == "laplace":
        return 1 / math.sinh(1 / float(scale))
    return float(scale) * math.sqrt(2 / math.pi)


LAWS = ("laplace", "gaussian")
ROUNDING = 1 + 1e-9  # the conversion of rho is rounded up, and the way back rounded down


@dataclass(frozen=True, slots=True)
class Violation:
    """Describes a difference of neighbours that no noise covers, or noise that covers less than was paid.

    Attributes:
        kind: of what, in a word or two.
        neighbour: how the two tables differ, in words without values.
        expected: what a private curator does.
        found: what this one did.
        question: in which it happened.

    >>> from discreet import Budget, Curator
    >>> from discreet.audit import query
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> def careless(rows):
    ...     oldest = max(row["age"] or 0 for row in rows)  # read from the data, for nothing
    ...     curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    ...     curator.protect(rows, name="a", types={"age": "int"}, bounds={"age": (0, oldest)}, budget=Budget(epsilon=9))
    ...     return curator
    >>> found = query(careless, "SELECT SUM(age) AS s FROM a", [{"age": 40}, {"age": 50}], neighbours=4)
    >>> [violation.kind for violation in found.violations]
    ['declarations', 'answer', 'price', 'releases']
    >>> found.violations[0].expected
    'the same for every table: they must not be read from the data'
    """

    kind: str
    neighbour: str
    expected: str
    found: str
    question: str = ""

    def __str__(self) -> str:
        where = f"{self.neighbour}; {self.question}" if self.question else self.neighbour
        return f"{self.kind}: expected {self.expected}, found {self.found} ({where})"


Fault = tuple[str, str, str]
"""A kind, what was expected, what was found."""


@dataclass(frozen=True)
class QueryComparison:
    """Compares a question on two neighbours: what it did on the first, and how far apart each release's inputs are."""

    seen: QueryRecord
    other: QueryRecord
    moves: tuple[tuple[Move, ...], ...]
    violations: tuple[Violation, ...]


class CuratorPair:
    """Holds two curators of neighbouring tables, each with the engine that it is watched through.

    Args:
        one: the first.
        other: its neighbour.
        name: how they differ, in words without values.
        account: of the person in whom they differ, who is protected by what is charged to it; None if it is not known.
        bits: of the noise; the curators' own unless they are given.
    """

    def __init__(
        self,
        one: tuple[Curator, RecordingEngine],
        other: tuple[Curator, RecordingEngine],
        *,
        name: str = "a neighbour",
        account: str | None = None,
        bits: Bits | None = None,
    ) -> None:
        self.one, self.other, self.name, self.account, self.bits = one, other, name, account, bits

    def compare(self, question: AuditedQuery) -> QueryComparison:
        """Asks both, the second with the noise of the first, and compares everything."""
        (_, engine), (_, beside) = self.one, self.other
        first = ask(*self.one, question, beside=beside, bits=self.bits)
        alike: dict[str, Any] = {"frozen": first.noises, "searches": first.searches}
        second = ask(*self.other, question, **alike, beside=engine, bits=self.bits)
        apart: tuple[tuple[Move, ...], ...] = ()
        if _same_releases(first, second):
            paid = [] if first.answer is None else list(parts(first.answer.event))
            apart = paid_moves(first.noises, second.noises, paid)
        faults = list(_faults(question, first, second, apart))
        if self.account is not None and any(move.found for release in apart for move in release):
            faults += paid_by(self.one[0].account(self.account), first)
        violations = tuple(Violation(kind, self.name, due, found, question.sql) for kind, due, found in faults)
        return QueryComparison(first, second, apart, violations)


def _faults(
    question: AuditedQuery, first: QueryRecord, second: QueryRecord, apart: Sequence[Sequence[Move]]
) -> Iterator[Fault]:
    replayed = first.answer is not None and first.answer.replayed
    yield from same_course(first, second, due=0 if replayed else expected_reads(first))
    yield from _same_searches(first, second)
    if first.answer is None or second.answer is None:
        return
    yield from same_answers(first.answer, second.answer)
    if not first.answer.replayed:
        yield from _same_inputs(first, second, apart)
        yield from within_what_was_asked(question, first.noises, first.answer)
        yield from _alone(first, second)


def _same_searches(first: QueryRecord, second: QueryRecord) -> Iterator[Fault]:
    """Yields violations unless limits are searched for alike, and one person moves each number beyond them by one."""
    if [one.search for one in first.searches] != [one.search for one in second.searches]:
        yield "releases", "the same searches for limits", "others"
        return
    for one, other in zip(first.searches, second.searches, strict=True):
        moved = np.cumsum(np.subtract(one.people, other.people)[::-1])[:-1]
        if moved.size and max(abs(moved)) > 1:
            yield "movement", "at most 1 person beyond a limit", f"{max(abs(moved))}"
        if one.search.monotone and moved.size and min(moved) < 0 < max(moved):
            yield "movement", "all numbers of people in one direction", "both"


def same_course(first: QueryRecord, second: QueryRecord, *, due: int) -> Iterator[Fault]:
    """Yields violations unless both have the same end, the same charge, and so many reads."""
    if "crashed" in (first.status, second.status):
        yield "crash", "an answer or a refusal", "an unforeseen error"
    if (first.status, first.error) != (second.status, second.error):
        yield "outcome", first.status, second.status if second.status != first.status else "another message"
    if first.spent != second.spent:
        yield "charge", first.spent, second.spent
    if not first.reads == second.reads == due:
        yield "reads", f"{due} on both", f"{first.reads} and {second.reads}"


def expected_reads(seen: QueryRecord) -> int:
    """Returns how many reads a question takes.

    It takes one for what is added up, one for each list of a mode, and one or two, by its grid, for each of a quantile.
    And one for each column whose bounds are chosen: whatever was read met noise before the next read.
    """
    if seen.status != "answered":
        return int(seen.status == "failed")
    drawn = [noise.release for noise in seen.noises if isinstance(noise.release, PointRelease | QuantileLevelRelease)]
    looks = {release.read: max(bool(other.shift) for other in drawn if other.read == release.read) for release in drawn}
    polls = {noise.release.read for noise in seen.noises if isinstance(noise.release, CandidateRelease)}
    added = {
        noise.reads
        for noise in seen.noises
        if not isinstance(noise.release, PointRelease | QuantileLevelRelease | CandidateRelease)
    }
    return len(added) + len(looks) + sum(looks.values()) + len(polls)


def same_answers(one: Answer, other: Answer) -> Iterator[Fault]:
    """Yields violations unless answers are equal in all that an analyst sees, given that the same noise came out."""
    if one.columns != other.columns:
        yield "columns", "the same", "others"
    if len(one) != len(other):
        yield "groups", "the same", "others"
    elif repr(one.records) != repr(other.records):  # repr: NaN is never equal
        yield "answer", "the same numbers, as the same noise came out", "others"
    if one.notes != other.notes:
        yield "notes", "the same", "others"
    if [(each.table, each.version) for each in one.versions] != [(each.table, each.version) for each in other.versions]:
        yield "versions", "the same", "others"
    if (one.cost, one.remaining, one.event) != (other.cost, other.remaining, other.event):
        yield "price", f"{one.cost}", f"{other.cost}, or another event"
    if (one.confidence, one.private, one.replayed) != (other.confidence, other.private, other.replayed):
        yield "marks", "the same", "others"


def _same_releases(first: QueryRecord, second: QueryRecord) -> bool:
    return [noise.release for noise in first.noises] == [noise.release for noise in second.noises]


def _same_inputs(first: QueryRecord, second: QueryRecord, apart: Sequence[Sequence[Move]]) -> Iterator[Fault]:
    """Yields violations unless releases are the same, and inputs no farther apart than was paid for."""
    if not _same_releases(first, second):
        yield "releases", f"the same {len(first.noises)}", f"{len(second.noises)}, or others"
        return
    for one, other in zip(first.noises, second.noises, strict=True):
        if isinstance(one.release, AdditiveNoise) and min(one.release.scales) <= 0:
            yield "noise", "some", "none"
        if not first.selects and one.keys != other.keys:
            yield "keys", "those that are public", "others"
    for move in (move for release in apart for move in release):
        if not move.is_covered:
            yield "movement", f"at most {short(move.allowed)} {move.currency}", short(move.found)


def within_what_was_asked(question: AuditedQuery, noises: list[RecordedRelease], answer: Answer) -> Iterator[Fault]:
    """Yields violations unless all noise of a question costs no more than was asked, and no less than was charged."""
    charged = paid_for(answer, [price for noise in noises for price in _prices(noise.release)])
    if charged is None:
        yield "uncharged", "every release in what was charged, and nothing else", "something else"
        return
    approximate = [event for event in charged if isinstance(event, events.Approx)]
    measures = [event for event in charged if not isinstance(event, events.Approx)]
    epsilon = question.epsilon - sum((event.epsilon for event in approximate), Fraction(0))
    delta = question.delta - sum((event.delta for event in approximate), Fraction(0))
    totals = {law: sum((allowance(e) for e in measures if law_of(e) == law), Fraction(0)) for law in LAWS}
    left = epsilon - totals["laplace"]
    if not measures and any(program.estimators for program in _programs(answer)):
        yield "noise", "some", "none"  # keys alone meet none
    if delta < 0 or left < 0:
        yield "budget", f"at most epsilon {short(question.epsilon)}, delta {short(question.delta)}", "more"
    elif totals["gaussian"]:
        spent = zcdp_epsilon(float_above(totals["gaussian"]), float_below(delta))
        if not spent <= float(left) * ROUNDING:
            yield "budget", f"at most epsilon {short(left)} for Gaussian noise", f"{spent:.6g}"
    cost = answer.cost.details
    if isinstance(cost, PureDP) and (cost.epsilon < totals["laplace"] or totals["gaussian"]):
        yield "uncharged", f"a price of at least {short(totals['laplace'])}", str(answer.cost)


def _prices(release: Release) -> Sequence[events.Event]:
    """Returns what is charged for a release; all rounds by weights are charged as one, with the first."""
    if not isinstance(release, SelectionRound):
        return [release.event]
    return [] if release.turn else [events.Approx(release.selection.epsilon, release.selection.delta)]


def parts(event: events.Event) -> Iterator[events.Event]:
    """Yields the events that an event is composed of, of one question or of several stages."""
    if isinstance(event, events.Calibrated):
        yield from parts(event.event)
        return
    if not isinstance(event, events.Composed):
        yield event
        return
    for part in event.events:
        yield from parts(part)


def paid_for(answer: Answer, released: Sequence[events.Event]) -> list[events.Event] | None:
    """Returns what was charged, if it is what was released; None if a release is not in it, or anything else is.

    Where one payment is for several releases, in all groupings and once more for what is not shown, there may be as
    many of each; what they move together is judged by `paid_moves`. Deltas of thresholds are no releases.
    """
    charged, often = list(parts(answer.event)), _releases_of_a_payment(answer)
    for event in released:
        if not charged.count(event) <= list(released).count(event) <= often * charged.count(event):
            return None
    for event in charged:
        if event not in released and not (isinstance(event, events.Approx) and event.epsilon == 0):
            return None
    return charged


def _releases_of_a_payment(answer: Answer) -> int:
    """Returns how often one noise may be drawn for one payment."""
    often = (max(1, len(one.groupings)) * (2 if one.contribution.gathers else 1) for one in _programs(answer))
    return max(often, default=1)


def _programs(answer: Answer) -> tuple[Program, ...]:
    """Returns the programs of all questions that an answer was released for."""
    return () if answer.released is None else (answer.released.program, *answer.released.program.beside)


def _alone(first: QueryRecord, second: QueryRecord) -> Iterator[Fault]:
    """Yields a violation unless private groups that one table has alone are few, and too small to be shown."""
    released = first.answer.released if first.answer is not None else None
    if released is None:
        return
    programs = [replace(released.program, beside=()), *released.program.beside]
    stages = [_stages(seen) for seen in (first, second)]
    each = [[one for one in program.groupings or (program,) if one.measures] for program in programs]
    place = -sum(map(len, each))  # probes come before
    if min(map(len, stages)) < -place:
        return  # noise was left out, which is found elsewhere
    for program, own in zip(programs, each, strict=True):
        pairs = [(one, stages[0][place + i], stages[1][place + i]) for i, one in enumerate(own)]
        place += len(own)
        yield from _alone_in(program, pairs)
        yield from _alone_in(program, [(one, there, here) for one, here, there in pairs])


def paid_by(account: Account, seen: QueryRecord) -> Iterator[Fault]:
    """Yields violations unless the ledger charged all of a noise to the account whose people move its input."""
    answer = seen.answer
    if answer is None or answer.replayed:
        return
    charged = seen.charged.get(account.name, events.Composed([]))
    if not costs_no_more(answer.event, charged, account):
        yield "uncharged", f"the whole price on the account {account.name!r}, whose people move the numbers", "less"


def _stages(seen: QueryRecord) -> list[list[RecordedRelease]]:
    """Returns the noises on statistics, by the read that they follow."""
    found: dict[int, list[RecordedRelease]] = {}
    for noise in seen.noises:
        if isinstance(noise.release, AdditiveNoise) and noise.keys != [REST]:
            found.setdefault(noise.reads, []).append(noise)
    return list(found.values())


def _alone_in(
    program: Program, pairs: Sequence[tuple[Program, list[RecordedRelease], list[RecordedRelease]]]
) -> Iterator[Fault]:
    """Yields the groups that one table has alone, in all groupings together."""
    alone = 0
    for one, here, there in pairs:
        if not isinstance(one.selection, Threshold):
            continue
        size = one.selection.size
        keys = set(here[0].keys) - set(there[0].keys)
        rows = [[number for noise in here for number in noise.inputs()[key]] for key in keys]
        alone += len(rows)
        if any(not size.linear.value(row) <= size.most < one.selection.smallest for row in rows):
            yield "threshold", "more than one can reach alone", "less"
        yield from _of_cut_noise(one.selection, one.contribution, here, there)
    if alone > program.contribution.groups:
        yield "groups of one", f"at most {program.contribution.groups}", str(alone)


def _of_cut_noise(
    threshold: Threshold, contribution: QueryContribution, here: list[RecordedRelease], there: list[RecordedRelease]
) -> Iterator[Fault]:
    """Yields violations unless noise stays within its cut, and few sizes move, none by more than a unit's own rows."""
    if threshold.cut is None:
        return
    ((place, _),) = threshold.size.linear.weights
    one, other = (_column([noise.inputs() for noise in side], place) for side in (here, there))
    moves = [abs(one.get(key, 0) - other.get(key, 0)) for key in {**one, **other}]
    sides = 1 if contribution.neighbours is Neighbours.ADD_REMOVE else 2
    if sum(map(bool, moves)) > sides * contribution.groups or max(moves, default=0) > threshold.size.most:
        yield "sizes", "those of a unit's groups to move, by its rows", "more"
    noise = _column([dict(zip(each.keys, each.drawn, strict=True)) for each in here], place)
    if any(abs(drawn) > threshold.cut for drawn in noise.values()):
        yield "noise", f"at most {threshold.cut} on the size of a group", "more"


def _column(parts: Sequence[Mapping[Key, Sequence[int]]], place: int) -> dict[Key, int]:
    """Returns one of all statistics of each group."""
    return {key: [number for part in parts for number in part[key]][place] for key in parts[0]}


def short(number: Fraction) -> str:
    """Returns a number in a few digits."""
    return f"{float(number):.6g}"
