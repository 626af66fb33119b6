"""The curator: a steward protects tables, an analyst asks, the book is paid first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

from discreet import check
from discreet.curator.asking.answer import Answer, columns, records
from discreet.curator.asking.choices import CANDIDATES, Candidate, Choices, asked_for, compare, listed
from discreet.curator.asking.curated_frame import CuratedFrame
from discreet.curator.asking.explanation import ROWS, Explanation, explanation
from discreet.curator.asking.found import remarks
from discreet.curator.asking.interruption import Stopping
from discreet.curator.asking.performer import Performance, Told, perform
from discreet.curator.asking.planner import LimitsWish, Wish
from discreet.curator.asking.rehearsal import INVENTED, NOTE, SALT, rehearsal
from discreet.curator.catalog.terms import terms
from discreet.curator.config.enrolment import check_known, check_sources, enrol
from discreet.curator.config.toml_file import FILE, load
from discreet.curator.measurement_plan import Prepared
from discreet.curator.replay.stored_releases import Asked
from discreet.curator.training.trainer import Fitting
from discreet.engines.base import Engine
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import KeyConflict, QueryFailed
from discreet.ledger import OWNER, Book, Receipt, Remaining
from discreet.measurement.probes.magnitudes import supposing
from discreet.measurement.program.notes import notes
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms.base import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.plan.canonical import canonical
from discreet.plan.model.nodes import Question, Value
from discreet.plan.model.schema import Bounds
from discreet.privacy import Loss
from discreet.privacy.events import Event

WAIT = 10.0
"""Seconds to wait for an answer that somebody else computes under the same idempotency key, before it is run again."""


class Curator(Fitting):
    """Holds tables and their budgets, and answers questions about them with differential privacy.

    Formal guarantee: all answers about the people of one account, to whomever and however chosen, satisfy the account's
    budget together. A charge is durable before a row is read, and is never given back.

    Args:
        ledger: a file of the book of accounts; ":memory:" for play.
        engine: where tables are read; DuckDB, embedded, unless another is given.

    >>> from discreet.engines import Memory
    >>> from discreet.privacy import Budget
    >>> curator = Curator(engine=Memory())
    >>> rows = [{"ward": "A", "age": 40}, {"ward": "B", "age": 60}]
    >>> curator.protect(rows, name="visits", types={"ward": "text", "age": "int"}, budget=Budget(epsilon=1))
    >>> answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    >>> answer.columns, str(answer.remaining)
    (('n', 'n_low', 'n_high'), 'epsilon=0.9')
    """

    def __init__(self, ledger: str | os.PathLike[str] = ":memory:", *, engine: Engine | None = None) -> None:
        super().__init__(Book(os.fspath(ledger)), engine if engine is not None else DuckDB())

    @classmethod
    def for_tests(
        cls, ledger: str | os.PathLike[str] = ":memory:", *, engine: Engine | None = None, bits: Bits
    ) -> Curator:
        """A curator with a given source of randomness; if it is seeded, every answer says that it is not private."""
        curator = cls(ledger, engine=engine)
        curator._releaser = Releaser(source_of(bits))
        return curator

    @classmethod
    def from_config(
        cls, path: str | os.PathLike[str] = FILE, *, engine: Engine | None = None, opening: bool = True
    ) -> Curator:
        """A curator that holds everything a discreet.toml declares; doing it again changes nothing in the book.

        Args:
            path: the file.
            engine: where tables are read.
            opening: whether tables may be new; if not, each must be in the book already.

        Raises:
            InvalidParameter: naming the key of the file that does not fit.
        """
        declared = load(path)
        check_sources(declared)
        if not opening:
            check_known(declared)
        curator = cls(declared.ledger, engine=engine)
        try:
            enrol(declared, curator)
        except BaseException:
            curator.close()
            raise
        return curator

    def ask(
        self,
        question: str | Question,
        *,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        limits: LimitsWish = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        key: str | None = None,
        within: check.Number | None = None,
        max_epsilon: check.Number | None = None,
        project: str = "",
    ) -> Answer:
        """A private answer, charged before anything is read; a stored one that is as good is given again for free.

        Args:
            question: one SELECT, or a plan.
            epsilon: what the answer may cost.
            delta: its chance of more; a hundredth of the account's delta unless it is given.
            limits: how much one unit may count, instead of the table's own limits; "choose" finds out privately, with
                a fifth of the epsilon, what keeps most people's rows, and remembers it.
            other: the label of one more group, of all rows whose keys are not declared, or whose groups are not shown.
            analyst: who asks, and pays from their cap.
            confidence: of each interval.
            key: an idempotency key of the analyst's own. The same key with the same question is charged once and
                answered with the same numbers, however often and from however many threads or processes it is asked,
                also after one that asked was stopped or has died.
            within: instead of an epsilon, how far each COUNT, SUM and AVG may be from the truth, with this confidence:
                the smallest epsilon for that is solved from public facts and what was released before.
            max_epsilon: what that may cost at most.
            project: whose cap it counts against, beside the analyst's and the account's.

        Raises:
            UnsupportedQuery: if the question cannot be answered privately; nothing was spent.
            InvalidParameter: if a parameter is outside its domain, or within= needs more than max_epsilon=.
            NotPermitted: if the analyst may not ask, not even for what is stored.
            InsufficientBudget: if the account or the analyst's cap is used up; nothing was read.
            KeyConflict: if the key came with another question before; nothing was spent.
            QueryFailed: if the engine failed, or did so before under this key; the charge stays.
            KeyboardInterrupt: on Ctrl-C in the main thread; its notes say whether a charge stays.
        """
        chance = check.probability(confidence=confidence)
        wish = Wish(epsilon=epsilon, delta=delta, within=within, max_epsilon=max_epsilon, confidence=chance)
        prepared = self._prepare(question, limits, other=other)
        account = self._accounts[prepared.table]
        standing = self._book.admit(account, analyst, project)
        asked = self._asked(prepared, wish, standing.budget)
        prices = [prepared.event(asked, len(prepared.missing))]
        if key is not None and self._book.is_charged(analyst, key):
            prices += prepared.other_events(asked)
        elif (known := self._free(prepared, asked)) is not None:
            return self._answer(known, chance, Remaining.of(standing.spent, standing.budget))
        with Stopping(self._book, analyst, key) as stopping:
            receipt = stopping.holding(
                self._charge(account, prices, prepared, asked, analyst=analyst, key=key, project=project)
            )
            if receipt.repeated:
                claimed = self._book.claim(receipt, wait=WAIT)
                if claimed is None:
                    return self._answer(self._found(prepared, receipt), chance, receipt.left)
                receipt = stopping.holding(claimed)
            told = self._run(prepared, asked, receipt)
            return self._answer(told, chance, receipt.left, cost=receipt.cost)

    def explain(
        self,
        question: str | Question,
        *,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        limits: LimitsWish = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        rows: int = ROWS,
        within: check.Number | None = None,
        max_epsilon: check.Number | None = None,
        project: str = "",
    ) -> Explanation:
        """What would be read and spent, and how wrong the answer would be; reads nothing, costs nothing.

        Who may not ask is told nothing; what `ask` would refuse because of a budget is explained, and the explanation
        says that it would be refused.

        Args:
            question: as for `ask`.
            epsilon: as for `ask`.
            delta: as for `ask`.
            limits: as for `ask`.
            other: as for `ask`.
            analyst: who would ask.
            confidence: of each error.
            rows: of an imagined group, on which the error of a mean depends.
            within: as for `ask`.
            max_epsilon: as for `ask`.
            project: whose cap it would count against, too.

        Raises:
            NotPermitted: if the analyst may not ask, or the project may not spend.
        """
        chance = check.probability(confidence=confidence)
        wish = Wish(epsilon=epsilon, delta=delta, within=within, max_epsilon=max_epsilon, confidence=chance)
        imagined = check.integer(rows=rows, at_least=1, at_most=10**18)
        prepared = self._prepare(question, limits, other=other)
        account = self._book.account(self._accounts[prepared.table])
        standing = self._book.admit(account.name, analyst)
        asked = self._asked(prepared, wish, standing.budget)
        remaining = Remaining.of(standing.spent, standing.budget)
        found = explanation(prepared, asked, account, remaining.loss, confidence=chance, rows=imagined)
        refusal = None
        if self._free(prepared, asked) is None:
            refusal = self._book.refusal(account.name, found.event, analyst=analyst, project=project)
        return replace(
            found,
            free=self._offer(prepared, asked),
            caps=self._caps(account.name, analyst, project),
            refusal=None if refusal is None else str(refusal),
        )

    def rehearse(
        self,
        question: str | Question,
        *,
        epsilon: check.Number = 1,
        delta: check.Number | None = None,
        limits: LimitsWish = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        rows: int = 1000,
    ) -> Answer:
        """The shape of an answer, on made-up rows: the same columns and types, nobody's numbers, free.

        The rows follow from the declarations and the question alone, and the noise is seeded, so `private` is False.

        Args:
            question: as for `ask`.
            epsilon: as for `ask`.
            delta: as for `ask`.
            limits: as for `ask`.
            other: as for `ask`.
            analyst: who would ask; refused as by `ask` if they may not.
            confidence: as for `ask`.
            rows: how many are made up.
        """
        chance = check.probability(confidence=confidence)
        count = check.integer(rows=rows, at_least=1, at_most=10**6)
        prepared = self._prepare(question, limits, salt=SALT, other=other)
        self._book.admit(self._accounts[prepared.table], analyst)
        balance = self.budget(prepared.table)
        facts = prepared.facts
        for probe in prepared.missing:
            facts = facts.having(probe, INVENTED if isinstance(probe.supposed, Bounds) else probe.supposed)
        program = prepared.program(terms(epsilon, delta, balance.total), facts)
        released = rehearsal(program, prepared.tables(facts), count)
        told = Told(released=released, facts=facts, event=program.event)
        made_up = self._answer(told, chance, balance.remaining)
        return replace(made_up, replayed=False, private=False, notes=(NOTE, *made_up.notes))

    def choose_epsilon(
        self,
        question: str | Question,
        candidates: Sequence[Candidate] = CANDIDATES,
        *,
        delta: check.Number | None = None,
        limits: LimitsWish = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        rows: int = ROWS,
    ) -> Choices:
        """Budgets for a question side by side: its error, and what an attacker learns; reads nothing, costs nothing.

        Args:
            question: as for `ask`.
            candidates: epsilons, or budgets.
            delta: as for `ask`, for candidates that are epsilons.
            limits: as for `ask`.
            other: as for `ask`.
            analyst: who would ask; refused as by `ask` if they may not.
            confidence: of each error.
            rows: of an imagined group, on which the error of a mean depends.
        """
        chance = check.probability(confidence=confidence)
        imagined = check.integer(rows=rows, at_least=1, at_most=10**18)
        prepared = self._prepare(question, limits, other=other)
        total = self._book.admit(self._accounts[prepared.table], analyst).budget
        budgets = [asked_for(each, terms(1, delta, total).delta) for each in listed(candidates)]
        return compare(prepared, budgets, confidence=chance, rows=imagined)

    def table(self, name: str) -> CuratedFrame:
        """The same questions, built step by step: ``curator.table("visits").agg(n=count()).ask(epsilon=0.1)``."""
        return CuratedFrame(schema=supposing(self._schema(name)), curator=self)

    def _charge(
        self,
        account: str,
        prices: Sequence[Event],
        prepared: Prepared,
        asked: Asked,
        *,
        analyst: str,
        key: str | None,
        project: str,
    ) -> Receipt:
        """Charges the first price; of a key that was charged before, finds the price it was charged with.

        Raises:
            KeyConflict: if the key came with another request.
        """
        charge = partial(
            self._book.charge,
            account,
            analyst=analyst,
            question=canonical(prepared.plan),
            key=key,
            replay_key=prepared.request(asked),
            project=project,
        )
        *others, last = prices
        for event in others:
            with suppress(KeyConflict):
                return charge(event)
        return charge(last)

    def _found(self, prepared: Prepared, receipt: Receipt) -> Told:
        """What was released for a charge that has ended.

        Raises:
            QueryFailed: if it ended without an answer.
        """
        payload = self._book.answer(receipt)
        told = None if payload is None else self._unpacked(prepared, payload)
        if told is None:
            raise QueryFailed
        return told

    def _run(self, prepared: Prepared, asked: Asked, receipt: Receipt) -> Told:
        """Reads and adds noise for a charge, and keeps what is released; nothing else is given, and nothing before.

        Raises:
            QueryFailed: whatever went wrong: causes can depend on data. It uses up one failure credit.
        """
        done: Performance | None = None
        with suppress(Exception):  # causes can carry data: dropped here, all of them
            done = perform(prepared, asked, receipt, engine=self._engine, releaser=self._releaser, book=self._book)
        if done is None:
            self._book.fail(receipt)
        elif self._book.store_answer(receipt, done.place, done.payload):
            return done.told
        return self._found(prepared, receipt)  # failed, or ended before by somebody else who claimed it

    def _answer(self, told: Told, confidence: Fraction, remaining: Remaining, *, cost: Loss | None = None) -> Answer:
        program = told.released.program
        return Answer(
            columns=columns(program.question),
            records=records(told.released.rows(confidence)),
            cost=remaining.loss * 0 if cost is None else cost,
            remaining=remaining,
            event=told.event,
            replayed=cost is None,
            notes=(*notes(program), *remarks(told.facts), *told.released.notes),
            confidence=confidence,
            private=self._releaser.bits.private,
            released=told.released.unsalted,
        )
