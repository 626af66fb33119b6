"""The curator: a steward protects tables, an analyst asks, the book is paid first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from discreet import check
from discreet.curator.answer import Answer, records
from discreet.curator.declare import declaration, declare
from discreet.curator.notes import notes
from discreet.curator.program import Program, choose
from discreet.curator.run import Released, run
from discreet.curator.stored import Asked, pack, replay_key, serves, unpack
from discreet.engines.base import Engine
from discreet.engines.duckdb import DuckDB
from discreet.errors import InvalidParameter, QueryFailed, UnknownTable
from discreet.ledger import OWNER, Balance, Book, Entry, Head, Receipt
from discreet.noise import Bits, source_of
from discreet.plan.canonical import canonical, replay_order
from discreet.plan.frame import TableFrame
from discreet.plan.nodes import Question, Value
from discreet.plan.schema import Limits, TableSchema
from discreet.plan.sql import parse
from discreet.plan.types import Type
from discreet.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP, Unit

CONFIDENCE = Fraction(19, 20)
_ID = "id"
DELTA_SHARE = Fraction(1, 100)  # of the account's delta, for a question that names none


class Curator:
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

    def __init__(self, ledger: str = ":memory:", *, engine: Engine | None = None) -> None:
        self._book = Book(ledger)
        self._engine = engine if engine is not None else DuckDB()
        self._bits = source_of(None)
        self._schemas: dict[str, TableSchema] = {}

    @classmethod
    def for_tests(cls, ledger: str = ":memory:", *, engine: Engine | None = None, bits: Bits) -> Curator:
        """A curator with a given source of randomness; if it is seeded, every answer says that it is not private."""
        curator = cls(ledger, engine=engine)
        curator._bits = source_of(bits)
        return curator

    def close(self) -> None:
        """Lets go of the ledger file and of the engine."""
        self._book.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def protect(
        self,
        source: Any,
        *,
        name: str,
        unit: str | None = None,
        account: str | None = None,
        budget: Loss | None = None,
        types: Mapping[str, str] | None = None,
        bounds: Mapping[str, tuple[check.Number, check.Number]] | None = None,
        keys: Mapping[str, Sequence[Value]] | None = None,
        max_groups: int = 1,
        max_rows: int = 1,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        version: str = "",
    ) -> None:
        """Puts a table under an account; doing it again with the same declarations changes nothing.

        Args:
            source: what the engine can read: a path, a frame.
            name: how questions call it.
            unit: the column of ids of those who are protected; None if each row is one person.
            account: whose budget it shares; a lone table opens one of its own name.
            budget: of the account, given once.
            types: of columns whose type the format does not carry.
            bounds: public limits of numbers, never read from the data.
            keys: public group keys.
            max_groups: how many groups one unit may enter.
            max_rows: with how many rows each.
            neighbours: the relation of the account.
            version: what the steward says about the state of the data.

        Raises:
            InvalidParameter: if a declaration does not fit; nothing was opened.
        """
        columns = dict(self._engine.schema_of(source))
        columns |= {column: Type(kind) for column, kind in (types or {}).items()}
        schema = declare(
            name,
            columns,
            unit=unit,
            bounds=bounds or {},
            keys=keys or {},
            limits=Limits(max_groups, max_rows),
            neighbours=Neighbours(neighbours),
            version=version,
        )
        self._engine.register(name, source, columns)
        who = Unit.row() if unit is None else Unit(account or name, _ID)  # tables may call the same people differently
        self._book.open_account(account or name, unit=who, neighbours=schema.neighbours, budget=budget)
        self._book.attach(name, account=account or name, declaration=declaration(schema), version=version)
        self._schemas[name] = schema

    def ask(
        self,
        question: str | Question,
        *,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        limits: Limits | None = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        within: check.Number | None = None,
    ) -> Answer:
        """A private answer, charged before anything is read; a stored one that is as good is given again for free.

        Raises:
            UnsupportedQuery: if the question cannot be answered privately; nothing was spent.
            NotPermitted: if the analyst may not ask, not even for what is stored.
            InsufficientBudget: if the account or the analyst's cap is used up; nothing was read.
            QueryFailed: if the engine failed; the charge stays.
        """
        if within is not None or epsilon is None:
            hint = "Ask with an epsilon, e.g. epsilon=0.1; explain shows the error it gives."
            raise InvalidParameter("epsilon", epsilon, "to be given; no budget is solved from an error", hint)
        program, asked = self._program(question, epsilon=epsilon, delta=delta, limits=limits)
        chance = check.probability(confidence=confidence)
        account = self._book.tables()[program.question.table]
        self._book.admit(account, analyst)
        place = replay_key(program, self._schema(program.question.table))
        known = self._stored(place, program, limits)
        if known is not None:
            return self._answer(known, chance, receipt=None)
        text = canonical(program.question)
        receipt = self._book.charge(account, program.event, analyst=analyst, question=text)
        try:
            released = run(program, self._engine, self._bits)
        except QueryFailed:
            self._book.fail(receipt)
            raise
        self._book.store_answer(receipt, place, pack(released, asked, private=self._bits.private))
        return self._answer(released, chance, receipt)

    def explain(
        self,
        question: str | Question,
        *,
        epsilon: check.Number,
        delta: check.Number | None = None,
        limits: Limits | None = None,
    ) -> Program:
        """What would be read, which noise it would meet and what that would cost; reads nothing, costs nothing."""
        return self._program(question, epsilon=epsilon, delta=delta, limits=limits)[0]

    def table(self, name: str) -> TableFrame:
        """The same questions, built step by step."""
        return TableFrame(schema=self._schema(name))

    def budget(self, name: str) -> Balance:
        """What the account of a table may spend, has spent and has left."""
        return self._book.balance(self._book.tables()[self._schema(name).name])

    def history(self, name: str) -> tuple[Entry, ...]:
        """Every entry of the account of a table."""
        return self._book.history(self._book.tables()[self._schema(name).name])

    def verify(self) -> Head:
        """Walks the whole book; raises if anything was changed."""
        return self._book.verify()

    def _schema(self, name: str) -> TableSchema:
        if name not in self._schemas:
            raise UnknownTable(name, tuple(self._schemas))
        return self._schemas[name]

    def _program(
        self,
        question: str | Question,
        *,
        epsilon: check.Number,
        delta: check.Number | None,
        limits: Limits | None,
    ) -> tuple[Program, Asked]:
        parsed = parse(question, self._schemas) if isinstance(question, str) else question
        budget = self._book.account(self._book.tables()[self._schema(parsed.table).name]).budget
        slack = _delta(budget) if delta is None else check.not_negative(delta=delta)
        if slack and isinstance(budget, PureDP):
            raise InvalidParameter("delta", delta, "to be 0: the account's budget is pure", "Leave it out.")
        asked = Asked(check.positive(epsilon=epsilon), slack)
        return self._chosen(parsed, asked, limits), asked

    def _chosen(self, question: Question, asked: Asked, limits: Limits | None) -> Program:
        """The program of a question, its aggregates in the order in which releases are stored."""
        schema = self._schema(question.table)
        ordered = replace(question, aggregates=tuple(replay_order(question)))
        salt = self._book.account(self._book.tables()[schema.name]).salt.hex()
        return choose(ordered, schema, epsilon=asked.epsilon, delta=asked.delta, limits=limits, salt=salt)

    def _stored(self, place: str, program: Program, limits: Limits | None) -> Released | None:
        """A stored release of the same data that is as good as the one asked for."""

        def rebuild(epsilon: Fraction, delta: Fraction) -> Program:
            return self._chosen(program.question, Asked(epsilon, delta), limits)

        for stored in reversed(self._book.stored(place)):
            released = unpack(stored.payload, rebuild, private=self._bits.private)
            if released is not None and serves(released, program):
                return released
        return None

    def _answer(self, released: Released, confidence: Fraction, receipt: Receipt | None) -> Answer:
        program = released.program
        remaining = self._book.balance(self._book.tables()[program.question.table]).remaining
        return Answer(
            records=records(released.rows(confidence)),
            cost=receipt.cost if receipt is not None else remaining * 0,
            remaining=remaining,
            event=program.event,
            replayed=receipt is None,
            notes=notes(program),
            confidence=confidence,
            private=self._bits.private,
        )


def _delta(budget: Loss) -> Fraction:
    """A declared share of the account's delta."""
    return budget.delta * DELTA_SHARE if isinstance(budget, ApproxDP | ZCDP) else Fraction(0)
