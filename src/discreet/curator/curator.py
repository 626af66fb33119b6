"""The curator: a steward protects tables, an analyst asks, the book is paid first.

`Curator.ask` is the river, and each of its lines a step of one part: catalog, planner, book, replay, and the performer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from discreet import check
from discreet.curator.asking.answer import Answer
from discreet.curator.asking.batch import BatchAsker, RequestedBatch
from discreet.curator.asking.choices import CANDIDATES, Candidate, Choices, compare, listed, terms_of
from discreet.curator.asking.curated_frame import CuratedFrame
from discreet.curator.asking.explanation import ROWS, Explanation, explanation, with_offers
from discreet.curator.asking.performer import Performer, WantedProfile
from discreet.curator.asking.planner import Planner, RequestedBudget, RequestedLimits
from discreet.curator.asking.profiler import KeySet, Profiler
from discreet.curator.asking.question_asker import QuestionAsker
from discreet.curator.asking.rehearsal import NOTE, SALT, rehearsed
from discreet.curator.catalog.catalog import Catalog, Day
from discreet.curator.catalog.declarations import End, Terms
from discreet.curator.catalog.public_tables import Keys, Unique
from discreet.curator.catalog.unit_of_privacy import UnitLike
from discreet.curator.config.enrolment import NOTHING, Kept, Replacing, book_at, declared_book, declared_in, enrol
from discreet.curator.config.toml_file import FILE, File
from discreet.curator.replay.replay import Replay
from discreet.curator.streams.curated_stream import CuratedStream
from discreet.curator.streams.streams import Streams
from discreet.curator.synthesis.synthesizer import SynthesisPrice, Synthesizer, SyntheticTable, SyntheticTables
from discreet.curator.training.trainer import FitPlan, Trainer
from discreet.engines.base import Engine
from discreet.engines.by_source import by_source, engine_at
from discreet.ledger import OWNER, Account, Balance, Book, Caller, Entry, Head, Remaining, Role, Standing
from discreet.measurement.probes.magnitudes import supposing
from discreet.measurement.profile.profile import Profile
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms.base import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.plan.model.nodes import Question, Value
from discreet.privacy import Loss, Neighbours
from discreet.progress import Progress, telling
from discreet.sql.parameters import Parameters


class Curator:
    """Holds tables and their budgets, and answers questions about them with differential privacy.

    Formal guarantee: all answers about the people of one account, to whomever and however chosen, satisfy the account's
    budget together. A charge is durable before a row is read, and is never given back.

    Args:
        ledger: a file of the book; "postgresql://..." if machines share it; ":memory:" for play; or an open book.
        engine: where tables are read; else files and frames by DuckDB, embedded, and tables of a server by it.
        today: the day that CURRENT_DATE stands for, as if it were written: a question of another day is another one.
        anchor: the file by which an older copy of the ledger is refused; in the state folder unless given; "" for none.

    >>> from discreet.engines import Memory
    >>> from discreet.privacy import Budget
    >>> curator = Curator(engine=Memory())
    >>> rows = [{"ward": "A", "age": 40}, {"ward": "B", "age": 60}]
    >>> curator.protect(rows, name="visits", types={"ward": "text", "age": "int"}, budget=Budget(epsilon=1))
    >>> answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    >>> answer.columns, str(answer.remaining)
    (('n', 'n_low', 'n_high'), 'epsilon=0.9')
    """

    def __init__(
        self, ledger: File | Book = ":memory:", *, engine: Engine | None = None, today: Day = None, anchor: Kept = None
    ) -> None:
        day = check.day(today=today)
        self._book = ledger if isinstance(ledger, Book) else book_at(ledger, anchor)
        self._engine = engine if engine is not None else by_source()
        self._catalog = Catalog(self._book, self._engine, day)
        self._measure_with(self._engine, Releaser(source_of(None)), salt=None)

    def _measure_with(self, engine: Engine, releaser: Releaser, *, salt: str | None) -> None:
        """Puts together all that measures, around the catalog and the book."""
        self._releaser, self._replay = releaser, Replay(self._book, private=releaser.bits.private)
        self._planner = Planner(self._book, self._replay, read=self._catalog.read, salt=salt)
        self._performer = Performer(engine, releaser)
        self._batches = BatchAsker(self._catalog, self._book, self._replay, self._planner, self._performer)
        parts, salt_of = (self._catalog, self._book, engine, releaser), self._planner.salt
        self._trainer, self._synthesizer = Trainer(*parts, salt=salt_of), Synthesizer(*parts, salt=salt_of)
        self._profiler = Profiler(*parts, replay=self._replay, salt=salt_of)
        asking = (self._book, self._planner, self._performer, self._replay)
        self._asker = QuestionAsker(*asking, profiler=self._profiler)
        self._streams = Streams(*parts, planner=self._planner)

    @classmethod
    def for_tests(
        cls, ledger: File = ":memory:", *, engine: Engine | None = None, bits: Bits, today: Day = None
    ) -> Curator:
        """Returns a curator with a given source of randomness; if it is seeded, every answer says it is not private."""
        curator = cls(book_at(ledger, for_tests=True), engine=engine, today=today)
        curator._measure_with(curator._engine, Releaser(source_of(bits)), salt=None)
        return curator

    @classmethod
    def from_config(
        cls, path: File = FILE, *, engine: Engine | None = None, opening: bool = True, replacing: Replacing = NOTHING
    ) -> Curator:
        """Returns a curator of a discreet.toml; if not `opening`, tables are in the book, or as `replacing` says."""
        declared = declared_in(path, opening=opening)
        chosen = engine or engine_at(declared.engine)
        curator = cls(declared_book(declared, new=opening), engine=chosen, today=declared.today)
        try:
            enrol(declared, curator._catalog, curator._book, replacing=replacing)
        except BaseException:
            curator.close()
            raise
        return curator

    def close(self) -> None:
        """Lets go of the ledger file and of the engine."""
        self._streams.close()
        self._book.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @telling
    def ask(
        self,
        question: str | Question,
        *,
        parameters: Parameters = None,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        key: str | None = None,
        within: check.Number | None = None,
        max_epsilon: check.Number | None = None,
        project: str = "",
        profile: check.Number | None = None,
        coverage: check.Number | None = None,
        progress: Progress | None = None,  # noqa: ARG002 - it is told all along
    ) -> Answer:
        """Returns a private answer, charged before anything is read; a stored one that is as good is free.

        Args:
            question: one SELECT, or a plan.
            parameters: the values of `?` and `$1` as a list, of `:name` and `$name` as a dictionary, as if written out.
            epsilon: what the answer may cost.
            delta: its chance of more; a hundredth of the account's delta unless it is given.
            limits: how much one unit may count, instead of the table's own; "choose" finds out for a fifth of epsilon.
            other: the label of one more group, of all rows whose keys are not declared, or whose groups are not shown.
            analyst: who asks, and pays from their cap.
            confidence: of each interval.
            key: an idempotency key: the same key with the same question is charged once and answered alike, always.
            within: instead of an epsilon, how far each COUNT, SUM and AVG may be from the truth, with this confidence.
            max_epsilon: what that may cost at most.
            project: whose cap it counts against, beside the analyst's and the account's.
            profile: what a profile of the table may cost, bought in the same charge unless one as precise is kept.
            coverage: which part of the epsilon is for what limits and bounds leave out of this very question.
            progress: is called with the name of every stage that begins.

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
        requested = RequestedBudget(epsilon, delta, within, max_epsilon, chance)
        bound = self._catalog.read(question, parameters)
        measurement = self._planner.plan(bound, limits=limits, other=other)
        account = self._book.admit(measurement.account, analyst, project)
        terms = self._planner.terms(measurement, requested, account.budget)
        wanted: WantedProfile | None = None
        if profile is not None or coverage is not None:
            terms, wanted = self._profiler.wanted(measurement, terms, profile, coverage)
        caller = Caller(analyst=analyst, project=project, key=key)
        return self._asker.ask(measurement, terms, caller, profile=wanted, confidence=chance)

    @telling
    def ask_many(
        self,
        questions: Sequence[str | Question],
        *,
        epsilon: check.Number,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,  # noqa: ARG002 - it is told all along
    ) -> list[Answer]:
        """Returns an answer to each question, for one charge of this epsilon: all of them, or an error.

        Equal questions are measured once. What is kept, or follows from others with no more noise, takes no share of
        the budget. All are about one account's people. Arguments and errors are those of `ask`; errors name a place.
        """
        asked = RequestedBatch(questions, epsilon, delta, limits, check.probability(confidence=confidence))
        return self._batches.ask(asked, Caller(analyst=analyst, project=project, key=key))

    def explain(
        self,
        question: str | Question,
        *,
        parameters: Parameters = None,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        rows: int = ROWS,
        within: check.Number | None = None,
        max_epsilon: check.Number | None = None,
        project: str = "",
    ) -> Explanation:
        """Explains what would be read and spent, and how wrong the answer would be; reads nothing, costs nothing.

        What a budget refuses is said to be. It takes what `ask` takes, and the `rows` of a group, for errors of means.
        """
        chance = check.probability(confidence=confidence)
        imagined = check.integer(rows=rows, at_least=1, at_most=10**18)
        measurement = self._planner.plan(self._catalog.read(question, parameters), limits=limits, other=other)
        state = self._book.admit(measurement.account, analyst)
        requested = RequestedBudget(epsilon, delta, within, max_epsilon, chance)
        terms = self._planner.terms(measurement, requested, state.budget)
        measurement = self._planner.payable(measurement, terms)
        found = explanation(measurement, terms, self._book, state, confidence=chance, rows=imagined)
        return with_offers(found, measurement, terms, self._book, self._replay, who=(analyst, project))

    def rehearse(
        self,
        question: str | Question,
        *,
        parameters: Parameters = None,
        epsilon: check.Number = 1,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        rows: int = 1000,
    ) -> Answer:
        """Returns the shape of an answer, on rows made up from declarations: nobody's numbers, seeded noise, free."""
        chance = check.probability(confidence=confidence)
        count = check.integer(rows=rows, at_least=1, at_most=10**6)
        bound = self._catalog.read(question, parameters)
        measurement = self._planner.plan(bound, limits=limits, other=other, salt=SALT)
        state = self._book.admit(measurement.account, analyst)
        result = rehearsed(measurement, Terms.of(epsilon, delta, state.budget), count)
        made_up = Answer.of(result, chance, Remaining.of(state.spent, state.budget))
        return replace(made_up, replayed=False, notes=(NOTE, *made_up.notes))

    def choose_epsilon(
        self,
        question: str | Question,
        candidates: Sequence[Candidate] = CANDIDATES,
        *,
        parameters: Parameters = None,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        rows: int = ROWS,
    ) -> Choices:
        """Compares epsilons, with this delta, or budgets: errors, and what an attacker learns; costs nothing."""
        chance = check.probability(confidence=confidence)
        imagined = check.integer(rows=rows, at_least=1, at_most=10**18)
        measurement = self._planner.plan(self._catalog.read(question, parameters), limits=limits, other=other)
        total = self._book.admit(measurement.account, analyst).budget
        budgets = [terms_of(each, Terms.of(1, delta, total).delta) for each in listed(candidates)]
        return compare(self._planner.payable(measurement, budgets[0]), budgets, confidence=chance, rows=imagined)

    @telling
    def profile(
        self,
        table: str,
        *,
        epsilon: check.Number,
        columns: Sequence[str] | None = None,
        by: Sequence[KeySet] | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,  # noqa: ARG002 - it is told all along
    ) -> Profile:
        """Returns a paid portrait of a table; from then on every answer about it says what it leaves out, for nothing.

        It tells of people, their rows and groups, and what limits, bounds and missing ids leave out: values of
        `columns`, all with declared bounds unless given, groups by `by`, all with declared keys. A kept one is free.
        """
        wanted = self._profiler.of_table(self._profiler.plan(table, columns, by), check.positive(epsilon=epsilon))
        return self._profiler.buy(wanted, Caller(analyst=analyst, project=project, key=key))

    def stream(self, question: str | None = None, **how: Any) -> CuratedStream:
        """Returns a stream that is charged once and released period by period; see `Streams.open` for what it takes."""
        return self._streams.opened(question, **how)

    def table(self, name: str) -> CuratedFrame:
        """Builds the same questions step by step: ``curator.table("visits").agg(n=count()).ask(epsilon=0.1)``."""
        return CuratedFrame(schema=supposing(self._catalog.schema(name)), curator=self)

    @telling
    def fit(
        self,
        estimator: Any,
        question: str,
        *,
        target: str | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        rows_per_unit: int = 1,
        progress: Progress | None = None,  # noqa: ARG002 - it is told all along
    ) -> Any:
        """Returns a private learner, trained on rows of one SELECT; charged before any is read. Fails as `ask` does.

        Features are the columns as written, but for the `target`, which is learned; numbers are clipped to declared
        bounds, texts with declared keys become one feature for each key. A copy of the estimator, a learner of
        `discreet.learn`, is fitted for its own epsilon and delta, with bounds, classes and neighbours as declared. The
        same again is given for free. It has `columns_`, and of the call `cost_`, `remaining_`, `replayed_`, `notes_`.

        Formal guarantee: the event that was charged describes all that is returned, for units as the account has them:
        each has `rows_per_unit` rows of the input, of its own alone; more than 1 only if the learner accounts for them.
        """
        training = self._trainer.plan(estimator, question, target, rows_per_unit)
        return self._trainer.fit(training, Caller(analyst=analyst, project=project, key=key))

    def plan_fit(
        self,
        estimator: Any,
        question: str,
        *,
        target: str | None = None,
        analyst: str = OWNER,
        project: str = "",
        rows_per_unit: int = 1,
    ) -> FitPlan:
        """Returns what `fit` would release and cost; reads nothing, costs nothing. Refuses whom `fit` refuses."""
        training = self._trainer.plan(estimator, question, target, rows_per_unit)
        return self._trainer.explain(training, analyst=analyst, project=project)

    def synthesize(self, question: str, **how: Any) -> SyntheticTable:
        """Returns made-up rows like a table's, charged before any is read; takes what `Synthesizer.synthesize` does."""
        return self._synthesizer.synthesize(question, **how)

    def synthesize_tables(self, people: str, events: str, **how: Any) -> SyntheticTables:
        """Returns made-up people and events, linked by a made-up key; as `Synthesizer.synthesize_tables` describes."""
        return self._synthesizer.synthesize_tables(people, events, **how)

    def plan_synthesize(self, question: str, events: str | None = None, **how: Any) -> SynthesisPrice:
        """Returns what `synthesize`, or with `events` `synthesize_tables`, would release and cost, for nothing."""
        return self._synthesizer.price(question, events, **how)

    def public(self, source: Any, *, name: str, types: Mapping[str, str] | None = None, unique: Unique = ()) -> None:
        """Registers a table that anybody may know: it has no account, and gives group keys to protected tables.

        Types are those that the format does not carry; no two rows agree in `unique` columns. The protected is refused.
        """
        self._catalog.public(source, name=name, types=types, unique=unique)

    def protect(
        self,
        source: Any,
        *,
        name: str,
        unit: UnitLike = None,
        account: str | None = None,
        budget: Loss | None = None,
        types: Mapping[str, str] | None = None,
        bounds: Mapping[str, tuple[End, End]] | None = None,
        keys: Keys | None = None,
        max_groups: int = 1,
        max_rows: int = 1,
        neighbours: Neighbours | str | None = None,
        version: str = "",
        identity: str | None = None,
        most_rows: int | None = None,
        domain: Mapping[str, tuple[End, End]] | None = None,
        change: bool = False,
    ) -> None:
        """Puts a table under an account; doing it again with the same declarations changes nothing.

        The same file, or object, in another account is refused: its people would get a second budget. Columns, types,
        bounds, keys and limits may be declared anew with `change`; who is protected never (`ledger.redeclaration`).

        Args:
            source: what the engine can read: a path, a frame, a `Folder` of files, the address of a table of a server.
            name: how questions call it.
            unit: the column of ids of those who are protected; several, such as ``("person", "day")``; a way to a table
                that tells whose rows they are, such as ``"order_id -> orders.id"``; None if each row is one person.
            account: whose budget it shares; a lone table opens one, one on a way shares that of the table it leads to.
            budget: of the account, given once.
            types: of columns whose type the format does not carry.
            bounds: public limits of numbers and dates.
            keys: public group keys: a list, or "table.column" of a public table for the values that are there now.
            max_groups: how many groups one unit may enter.
            max_rows: with how many rows each.
            neighbours: the relation of the account; add/remove unless it is given, or that of the table on the way.
            version: what the steward says about the state of the data.
            identity: a name for the data themselves: tables of one identity share an account, copies too.
            most_rows: a public fact: nobody has more rows. If it is false, labels are wrong, nobody's privacy is.
            domain: a fact of the same kind: all values of a column lie in it; bounds around it clip nothing.
            change: whether other declarations than those in the book take their place, as an entry of their own.

        Raises:
            DeclarationChanged: without `change`, if the table is declared otherwise in the book; it has the difference.
            InvalidParameter: if a declaration does not fit, or the data have a budget in another account.
        """
        facts: dict[str, Any] = {"unit": unit, "account": account, "budget": budget, "types": types, "bounds": bounds}
        facts |= {"keys": keys, "domain": domain, "max_groups": max_groups, "max_rows": max_rows, "version": version}
        facts |= {"most_rows": most_rows, "neighbours": neighbours, "identity": identity}
        self._catalog.protect(source, name=name, replacing=self._book.declaration(name) if change else None, **facts)

    def amend(self, account: str, *, budget: Loss, by: str = OWNER, note: str = "") -> Balance:
        """Gives an account another budget of its currency; what was spent stays spent. A steward's act, an entry."""
        return self._book.stewardship.amend(account, budget=budget, by=by, note=note)

    def renew(self, account: str, *, budget: Loss | None = None, by: str = OWNER, note: str = "") -> Balance:
        """Starts a new period of an account with nothing spent; its lifetime spending goes on and is shown."""
        return self._book.stewardship.renew(account, budget=budget, by=by, note=note)

    def appoint(
        self, who: str, role: Role | str, *, account: str = "", cap: Loss | None = None, by: str = OWNER
    ) -> None:
        """Gives somebody a role on an account, or on the whole book, and perhaps a cap under the account's own."""
        self._book.stewardship.appoint(who, role, account=account, cap=cap, by=by)

    def allot(self, project: str, *, account: str, cap: Loss, by: str = OWNER, note: str = "") -> None:
        """Gives a project a cap on an account: questions that name the project count against both."""
        self._book.stewardship.allot(project, account=account, cap=cap, by=by, note=note)

    def allotted(self, project: str, *, account: str) -> Loss | None:
        """Returns the cap of a project on an account; None if it has none."""
        return self._book.allotted(project, account=account)

    def capped(self, analyst: str, *, account: str) -> Loss | None:
        """Returns the cap of an analyst on an account; None if they have none of their own."""
        return self._book.capped(analyst, account=account)

    def unlock(self, account: str, *, by: str = OWNER, note: str = "") -> None:
        """Gives an account its failure credits back, after somebody has looked why questions failed."""
        self._book.stewardship.unlock(account, by=by, note=note)

    def budget(self, name: str) -> Standing:
        """Returns what a table's account, or the account of that name, may spend, spent and has left; and everybody."""
        return self._book.standing(self._catalog.account_of(name))

    def history(self, name: str, *, analyst: str | None = None, project: str | None = None) -> tuple[Entry, ...]:
        """Returns every entry of the account of a table, or of that name; perhaps of one analyst or project only."""
        return self._book.history(self._catalog.account_of(name), analyst=analyst, project=project)

    def balance(self, account: str, *, analyst: str | None = None, project: str | None = None) -> Balance:
        """Returns the figures of an account, or of one analyst or project on it."""
        return self._book.balance(account, analyst=analyst, project=project)

    def entries(self, account: str | None = None) -> tuple[Entry, ...]:
        """Returns the entries of one account, or of the whole book, in order."""
        return self._book.history(account)

    def account(self, name: str) -> Account:
        """Returns what an account was opened as; its salt, by which rows are chosen, is not told."""
        return replace(self._book.account(name), salt=b"")

    def accounts(self) -> tuple[str, ...]:
        """Returns the names of all accounts in the book."""
        return self._book.accounts()

    def tables(self) -> dict[str, str]:
        """Returns the account of every table in the book, whether this curator holds the table or not."""
        return self._book.tables()

    def role(self, account: str, who: str) -> Role | None:
        """Returns the role of somebody on an account, or (account "") on the whole book."""
        return self._book.role(account, who)

    def verify(self) -> Head:
        """Walks the whole book; raises if anything was changed."""
        return self._book.verify()
