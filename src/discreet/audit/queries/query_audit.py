"""Audits of a curator's answers: the user's own questions on the user's own table, and on its neighbours.

A curator is made of each of two neighbouring tables. The first answers with fresh noise, all of which is recorded; the
second answers with the same noise. What differs then is not covered by noise, and how far apart the inputs of noise are
is what noise must cover: both are seen exactly, and one run is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.audit.queries.certified import epsilon_below
from discreet.audit.queries.finding import Audited, QueryAudit
from discreet.audit.queries.neighbours import Neighbouring
from discreet.audit.queries.noise_size import Loudness
from discreet.audit.queries.recorder import Asking, Watched
from discreet.audit.queries.sensitivity import Move
from discreet.audit.queries.subject import Given
from discreet.audit.queries.verdicts import Compared, Pair, Violation
from discreet.curator import Curator
from discreet.curator.asking.preparation import LimitsWish
from discreet.curator.catalog.terms import terms
from discreet.curator.watch import engine_of, tables_read
from discreet.errors import InvalidParameter
from discreet.noise import Bits, SeededBits
from discreet.plan.model.nodes import Value

NEIGHBOURS, ROWS = 50, 2000
_SEED = 1

Progress = Callable[[int, int], None]
"""Told how many pairs are done, and of how many."""


def query(
    curator_factory: Callable[[Any], Curator],
    sql: str | Sequence[str],
    table: Any,
    *,
    epsilon: check.Number = 1,
    delta: check.Number | None = None,
    limits: LimitsWish = None,
    other: Value = None,
    name: str | None = None,
    neighbours: int = NEIGHBOURS,
    rows: int = ROWS,
    bits: Bits | None = None,
    progress: Progress | None = None,
) -> QueryAudit:
    """Asks questions on a table and on its neighbours, and tells whether anything but noise tells them apart.

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
        neighbours: how many pairs are tried: units taken away, strangers added, units replaced, by the relation of the
            account.
        rows: of larger tables so many rows of each account, of whole units, are taken at random.
        bits: of these choices; seeded unless they are given.
        progress: told after every pair.

    Raises:
        InvalidParameter: if a curator protects somebody (its noise is not seeded), or keeps its ledger in a file; or if
            a question reads protected tables that are not given.
        UnsupportedQuery: if a question is refused.
    """
    wanted = check.integer(neighbours=neighbours, at_least=1, at_most=10**6)
    most = check.integer(rows=rows, at_least=1, at_most=10**7)
    source = SeededBits(_SEED) if bits is None else bits
    listed = [sql] if isinstance(sql, str) else list(sql)
    if not listed:
        raise InvalidParameter("sql", sql, "to be one question or more", "Pass a SELECT.")
    given = Given.of(curator_factory, table, name)
    with given.curator() as curator:
        asked = terms(epsilon, delta, curator.budget(given.first).total)
        for text in listed:
            curator.explain(text, epsilon=asked.epsilon, delta=asked.delta, limits=limits, other=other)
            given.check_read(tables_read(curator, text))
    questions = [
        Asking(sql=text, epsilon=asked.epsilon, delta=asked.delta, limits=limits, other=other, account=given.first)
        for text in listed
    ]
    noise = SeededBits(source.integer(64))  # independent from pair to pair, as the curators' own need not be
    tried = _Trial(given.sample(most, source), questions, noise)
    for done, pair in enumerate(tried.given.pairs(wanted, source), 1):
        tried.take(*pair)
        if progress is not None:
            progress(done, wanted)
    return tried.verdict()


@dataclass
class _Tally:
    """What is known of one question so far."""

    answered: int = 0
    replayed: int = 0
    status: str = "answered"
    releases: int = 0
    epsilon_lower: float = 0.0
    share: Fraction = field(default_factory=Fraction)
    loudness: Loudness = field(default_factory=Loudness)

    def add(self, compared: Compared, delta: Fraction) -> None:
        answer = compared.seen.answer
        if answer is None:
            self.status = compared.seen.status
            return
        self.answered += 1
        self.replayed += answer.replayed
        self.releases = max(self.releases, len(compared.seen.noises))
        self.share = max(self.share, used_share(compared.moves))
        for noise in (*compared.seen.noises, *compared.other.noises):
            self.loudness.add(noise)
        if compared.moves and not compared.seen.selects:
            lower = epsilon_below(compared.seen.noises, compared.other.noises, delta)
            self.epsilon_lower = max(self.epsilon_lower, lower)


def used_share(moves: Sequence[Sequence[Move]]) -> Fraction:
    """Of what was paid, the part that a pair used up: of epsilon or of rho, whichever is more.

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
    """Pairs of neighbours, one after the other."""

    given: Given
    questions: Sequence[Asking]
    bits: Bits
    violations: list[Violation] = field(default_factory=list)
    pairs: int = 0
    tallies: dict[str, _Tally] = field(default_factory=dict)

    def take(self, account: str, pair: Neighbouring) -> None:
        """Makes both curators, and asks them everything."""
        self.pairs += 1
        with self.given.curator(pair.one) as one, self.given.curator(pair.other) as other:
            self.violations += self.given.declared_alike(pair.name, one, other)
            curators = [(curator, Watched(engine_of(curator))) for curator in (one, other)]
            watched = Pair(*curators, name=pair.name, account=account, bits=self.bits)
            for question in self.questions:
                compared = watched.compare(question)
                self.violations += compared.violations
                self.tallies.setdefault(question.sql, _Tally()).add(compared, question.delta)

    def verdict(self) -> QueryAudit:
        """What was found."""
        first = self.questions[0]
        audited = [
            Audited(
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
            violations=(*self.violations, *self._unheard()),
        )

    def _unheard(self) -> Iterator[Violation]:
        """Questions whose noise is not of the size that was paid for."""
        for sql, tally in self.tallies.items():
            if not tally.loudness.is_honest:
                found = f"noise {tally.loudness.ratio:.3g} times as large"
                yield Violation("noise", "all pairs together", "noise of the size that was paid for", found, sql)
