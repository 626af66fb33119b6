"""Audits of a curator's answers: the user's own questions on the user's own table, and on its neighbours.

A curator is made of each of two neighbouring tables. The first answers with fresh noise, and all noise is recorded; the
second answers with the same noise. What differs then is not covered by noise, and how far apart the inputs of noise are
is what noise must cover: both are seen exactly, and one run is enough.

A lower bound on the epsilon of a question needs no statistics: it follows from two exact inputs of noise. Let
independent discrete Laplace noise X_i of scale b_i meet numbers that neighbours move by d_i > 0. With
q_i = e^(-1/b_i), P(X_i >= 0) = 1 / (1 + q_i) and P(X_i >= d_i) = e^(-d_i/b_i) / (1 + q_i). So the event that all noisy
numbers lie at or beyond the exact ones of the first table, away from the second, has a probability of
P = prod 1 / (1 + q_i) on the first and of P e^-s on the second, with s = sum d_i / b_i. A mechanism that is
(epsilon, delta)-DP has P <= e^epsilon P e^-s + delta, that is

    epsilon >= s + log(1 - delta / P),

for all coordinates together or for any part of them. With delta = 0 that is s itself, and it is exact.

For discrete Gaussian noise one number alone is looked at, the one that moved farthest in units of its sigma: the
event that it is at least t has a probability of P on one table and P' on the other, both sums of the law's own terms,
and epsilon >= log((P - delta) / P') for every t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.audit.queries.neighbour_distance import Move
from discreet.audit.queries.neighbours import NeighbouringTables
from discreet.audit.queries.query_verdict import QueryAudit, QueryVerdict
from discreet.audit.queries.recorder import AuditedQuery, RecordedRelease, RecordingEngine
from discreet.audit.queries.subject import Subject
from discreet.audit.queries.verdicts import CuratorPair, NoiseSize, QueryComparison, Violation
from discreet.curator import Curator
from discreet.curator.asking.planner import RequestedLimits
from discreet.curator.measurement_plan import QueryBudget
from discreet.curator.observation import engine_of, tables_read
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import float_below
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.mechanisms.mechanism import Law
from discreet.noise import Bits, SeededBits
from discreet.plan.model.nodes import Value
from discreet.progress import stage, told_to, unheard

LARGEST_SIGMA, REACH = 20_000, 20


def epsilon_below(one: Sequence[RecordedRelease], other: Sequence[RecordedRelease], delta: Fraction) -> float:
    """Returns the largest such bound on the epsilon of these releases; 0 if there is none, as for drawn points alone.

    Groups must be public: what is released of private ones depends on what is selected.

    Args:
        one: what entered every noise of a question on a table.
        other: the same on its neighbour.
        delta: that the question claims.
    """
    pairs = list(zip(one, other, strict=True))
    return max(_laplace(pairs, delta), _gaussian(pairs, delta))


def _laplace(pairs: Sequence[tuple[RecordedRelease, RecordedRelease]], delta: Fraction) -> float:
    """Returns the bound from all numbers together, or from those that moved farthest."""
    moves = sorted((move for pair in pairs for move in _moves(*pair, "laplace")), key=lambda move: -move[0])
    if not delta:
        return max(0.0, float_below(sum((ratio for ratio, _ in moves), Fraction(0))))
    best, total, chance = 0.0, 0.0, 1.0
    for ratio, scale in moves:
        total += float_below(ratio)
        chance /= 1 + math.exp(-1 / scale)  # P(Z >= 0) of discrete Laplace noise
        if chance * (1 - 1e-9) <= delta:  # rounded to the safe side
            break
        best = max(best, (total + math.log1p(-float(delta) / (chance * (1 - 1e-9)))) * (1 - 1e-9))
    return best


def _gaussian(pairs: Sequence[tuple[RecordedRelease, RecordedRelease]], delta: Fraction) -> float:
    """Returns the bound from the number that moved farthest; 0 where sigma is too large to sum its law term by term."""
    moves = [move for pair in pairs for move in _moves(*pair, "gaussian")]
    ratio, sigma = max(moves, default=(Fraction(0), math.inf))
    if not delta or sigma > LARGEST_SIGMA:
        return 0.0
    moved, reach = round(float(ratio) * sigma), math.ceil(REACH * sigma)
    places = np.arange(-reach, reach + moved + 1)
    tails = [np.cumsum(np.exp(-0.5 * (places - d) ** 2 / sigma**2)[::-1])[::-1] for d in (moved, 0)]
    likely, rare = tails[0] / tails[0][0], tails[1] / tails[1][0]
    above = likely * (1 - 1e-9) - float(delta)  # the sums are exact to a few units in the last of 16 digits
    best = np.log(above[above > 0] / (rare[above > 0] * (1 + 1e-9))).max(initial=0.0)
    return max(0.0, float(best) * (1 - 1e-9))


def _moves(one: RecordedRelease, other: RecordedRelease, law: Law) -> list[tuple[Fraction, float]]:
    """Returns how far each number moved in units of its noise, and its scale.

    Only numbers that moved, and whose noise has this law, are listed.
    """
    release = one.release
    if not isinstance(release, AdditiveNoise) or release.law != law:
        return []
    a, b = one.inputs(), other.inputs()
    nothing = (0,) * len(release.scales)
    return [
        (abs(Fraction(x - y)) / scale, float(scale))
        for key in {**a, **b}
        for x, y, scale in zip(a.get(key, nothing), b.get(key, nothing), release.scales, strict=True)
        if x != y
    ]


NEIGHBOURS, ROWS = 50, 2000
_SEED = 1

Progress = Callable[[int, int], None]
"""Called with the number of pairs that are done, and the number of all."""


def query(
    curator_factory: Callable[[Any], Curator],
    sql: str | Sequence[str],
    table: Any,
    *,
    epsilon: check.Number = 1,
    delta: check.Number | None = None,
    limits: RequestedLimits = None,
    other: Value = None,
    name: str | None = None,
    neighbours: int = NEIGHBOURS,
    rows: int = ROWS,
    bits: Bits | None = None,
    progress: Progress | None = None,
) -> QueryAudit:
    """Asks questions on a table and on its neighbours, and checks whether anything but noise separates them.

    What is found is a proof of a fault; that nothing is found proves nothing about tables that were not tried.

    Args:
        curator_factory: makes a curator of a table in the form in which it was given here (a list of rows stays one,
            everything else arrives as a stream of Arrow), or of a mapping of such tables:
            ``Curator.for_tests(bits=SeededBits(1))`` with a ledger in memory, and the tables protected. It must declare
            the same whatever the rows are.
        sql: one question or several, asked one after the other.
        table: the rows from which neighbours are made: a path, a frame, a list of rows; or a mapping from names to
            such tables, of all protected tables that the questions read. One person's rows are then changed in all of
            them at once. Public tables may be among them, and stay as they are.
        epsilon: of each question.
        delta: of each question; a hundredth of the account's unless it is given.
        limits: as for `Curator.ask`.
        other: as for `Curator.ask`.
        name: of the table, if it is one and the curator protects several. Of several tables with several accounts, one
            whose people neighbours differ in; people of each account by turns unless it is given.
        neighbours: how many pairs are tried: units taken away, invented ones added, units replaced, by the
            relation of the account.
        rows: of larger tables so many rows of each account, of whole units, are taken at random.
        bits: of these choices; seeded unless they are given.
        progress: called after every pair.

    Raises:
        InvalidParameter: if a curator protects real data (its noise is not seeded), or keeps its ledger in a file; or
            if a question reads protected tables that are not given.
        UnsupportedQuery: if a question is refused.
    """
    wanted = check.integer(neighbours=neighbours, at_least=1, at_most=10**6)
    most = check.integer(rows=rows, at_least=1, at_most=10**7)
    source = SeededBits(_SEED) if bits is None else bits
    listed = [sql] if isinstance(sql, str) else list(sql)
    if not listed:
        raise InvalidParameter("sql", sql, "to be one question or more", "Pass a SELECT.")
    given = Subject.of(curator_factory, table, name)
    with given.curator() as curator:
        asked = QueryBudget.of(epsilon, delta, curator.budget(given.first).total)
        for text in listed:
            curator.explain(text, epsilon=asked.epsilon, delta=asked.delta, limits=limits, other=other)
            given.check_read(tables_read(curator, text))
    questions = [
        AuditedQuery(
            sql=text, epsilon=asked.epsilon, delta=asked.delta, limits=limits, other=other, account=given.first
        )
        for text in listed
    ]
    noise = SeededBits(source.integer(64))  # independent from pair to pair, as the curators' own need not be
    stage("Asking about neighbouring tables")
    tried = _Trial(given.sample(most, source), questions, noise)
    for done, pair in enumerate(tried.given.pairs(wanted, source), 1):
        with told_to(unheard):
            tried.take(*pair)
        if progress is not None:
            progress(done, wanted)
    return tried.verdict()


@dataclass
class _Tally:
    """Collects what is known of one question so far."""

    answered: int = 0
    replayed: int = 0
    status: str = "answered"
    releases: int = 0
    epsilon_lower: float = 0.0
    share: Fraction = field(default_factory=Fraction)
    noise_size: NoiseSize = field(default_factory=NoiseSize)

    def add(self, compared: QueryComparison, delta: Fraction) -> None:
        answer = compared.seen.answer
        if answer is None:
            self.status = compared.seen.status
            return
        self.answered += 1
        self.replayed += answer.replayed
        self.releases = max(self.releases, len(compared.seen.noises))
        self.share = max(self.share, used_share(compared.moves))
        for noise in (*compared.seen.noises, *compared.other.noises):
            self.noise_size.add(noise)
        if compared.moves and not compared.seen.selects:
            lower = epsilon_below(compared.seen.noises, compared.other.noises, delta)
            self.epsilon_lower = max(self.epsilon_lower, lower)


def used_share(moves: Sequence[Sequence[Move]]) -> Fraction:
    """Returns the part of what was paid that a pair used up: of epsilon or of rho, whichever is more.

    The first distance of every release is in the currency that it was paid in, and those of one currency add up.
    """
    paid = [release[0] for release in moves]
    shares = [Fraction(0)]
    for currency in ("epsilon", "rho"):
        own = [move for move in paid if move.currency == currency]
        allowed = sum((move.allowed for move in own), Fraction(0))
        if allowed:
            shares.append(sum((move.found for move in own), Fraction(0)) / allowed)
    return max(shares)


@dataclass
class _Trial:
    """Tries pairs of neighbours, one after the other."""

    given: Subject
    questions: Sequence[AuditedQuery]
    bits: Bits
    violations: list[Violation] = field(default_factory=list)
    pairs: int = 0
    tallies: dict[str, _Tally] = field(default_factory=dict)

    def take(self, account: str, pair: NeighbouringTables) -> None:
        """Makes both curators, and asks them everything."""
        self.pairs += 1
        with self.given.curator(pair.one) as one, self.given.curator(pair.other) as other:
            self.violations += self.given.declared_alike(pair.name, one, other)
            curators = [(curator, RecordingEngine(engine_of(curator))) for curator in (one, other)]
            watched = CuratorPair(*curators, name=pair.name, account=account, bits=self.bits)
            for question in self.questions:
                compared = watched.compare(question)
                self.violations += compared.violations
                self.tallies.setdefault(question.sql, _Tally()).add(compared, question.delta)

    def verdict(self) -> QueryAudit:
        """Returns what was found."""
        first = self.questions[0]
        audited = [
            QueryVerdict(
                sql=question.sql,
                answered=tally.answered,
                replayed=tally.replayed,
                status=tally.status,
                releases=tally.releases,
                epsilon_lower=tally.epsilon_lower,
                share=tally.share,
            )
            for question in self.questions
            for tally in [self.tallies.get(question.sql, _Tally())]
        ]
        return QueryAudit(
            questions=tuple(audited),
            epsilon_claimed=first.epsilon,
            delta_claimed=first.delta,
            neighbours=self.pairs,
            relation=self.given.relation,
            unit=self.given.unit,
            table=", ".join(self.given.schemas),
            violations=(*self.violations, *self._wrong_sizes()),
        )

    def _wrong_sizes(self) -> Iterator[Violation]:
        """Yields questions whose noise is not of the size that was paid for."""
        for sql, tally in self.tallies.items():
            if not tally.noise_size.is_plausible:
                found = f"noise {tally.noise_size.ratio:.3g} times as large"
                yield Violation("noise", "all pairs together", "noise of the size that was paid for", found, sql)
