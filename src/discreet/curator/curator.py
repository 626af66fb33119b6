"""The curator: a steward protects tables, an analyst asks, the ledger is paid first.

`Curator._ask` is the river, and each of its lines a step of one part: catalog, planner, ledger, replay, performer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, cast

from discreet import check
from discreet.check import Number
from discreet.curator.asking.answer import Answer
from discreet.curator.asking.performer import PaidQuestion, ProfileRequest, ReleaseExecutor
from discreet.curator.asking.planner import Planner, refuse_profile
from discreet.curator.asking.profiler import Profiler
from discreet.curator.catalog.catalog import Catalog, Day
from discreet.curator.catalog.data_versions import UNDESCRIBED
from discreet.curator.catalog.declarations import End
from discreet.curator.catalog.declared_limits import DeclaredLimits
from discreet.curator.catalog.public_tables import Keys, Unique
from discreet.curator.catalog.unit_of_privacy import UnitLike
from discreet.curator.config.enrolment import NOTHING, Kept, Replacing, declared_in, declared_ledger, enrol, ledger_at
from discreet.curator.config.toml_file import FILE, File
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget
from discreet.curator.paid_release import PricedResult, release_once
from discreet.curator.replay.replay import Replay
from discreet.curator.replay.stored_releases import MeasurementResult
from discreet.engines.abstract_engine import Engine
from discreet.engines.by_source import by_source, engine_at
from discreet.errors import InsufficientBudget
from discreet.lazy import Module
from discreet.ledger import Account, Balance, Caller, Entry, Ledger, RemainingBudget, Role
from discreet.ledger.caps.approvals import ApprovalRequest
from discreet.measurement.probes.magnitudes import supposing
from discreet.measurement.profile.profile import Profile
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import Bits, source_of
from discreet.plan.model.sample import Sample
from discreet.privacy import AnyBudget, Neighbours
from discreet.progress import told_to
from discreet.requests.cap_requests import RequestApproval
from discreet.requests.question_requests import Ask, AskMany, ChooseEpsilon, Explain, Rehearse
from discreet.requests.refused_budgets import propose_arguments
from discreet.requests.request import R, Request
from discreet.requests.verb_table import VERBS, Queue
from discreet.requests.verbs import Verbs

if TYPE_CHECKING:
    from discreet.curator.asking import batch, choices, curated_frame, explanation, limits_finder, rehearsal
    from discreet.curator.asking.choices import Choices
    from discreet.curator.asking.curated_frame import CuratedFrame
    from discreet.curator.asking.explanation import Explanation
    from discreet.curator.streams import streams
    from discreet.curator.streams.curated_stream import CuratedStream
    from discreet.curator.synthesis import synthesizer
    from discreet.curator.synthesis.synthesizer import SynthesisPrice, SyntheticTable, SyntheticTables
    from discreet.curator.training import trainer
    from discreet.curator.training.trainer import FitPlan
    from discreet.curator.training.training_plan import TrainingPlan
    from discreet.requests.table_requests import (
        BuyProfile,
        Fit,
        OpenStream,
        PlanFit,
        PlanSynthesize,
        PlanSynthesizeTables,
        Synthesize,
        SynthesizeTables,
    )
else:  # most questions need none of them
    batch, choices = Module("discreet.curator.asking.batch"), Module("discreet.curator.asking.choices")
    curated_frame = Module("discreet.curator.asking.curated_frame")
    explanation, rehearsal = Module("discreet.curator.asking.explanation"), Module("discreet.curator.asking.rehearsal")
    limits_finder = Module("discreet.curator.asking.limits_finder")
    streams = Module("discreet.curator.streams.streams")
    synthesizer = Module("discreet.curator.synthesis.synthesizer")
    trainer = Module("discreet.curator.training.trainer")


_Planned = Ask | Explain | Rehearse | ChooseEpsilon | RequestApproval


class Curator(Verbs):
    """Holds tables and their budgets, and answers questions about them with differential privacy.

    Formal guarantee: all answers about the people of one account, to whomever and however chosen, satisfy the account's
    budget together. A charge is durable before a row is read, and is never given back.

    Args:
        ledger: a file; "postgresql://..." if machines share it; ":memory:" for experiments; or an open ledger.
        engine: where tables are read; else files and frames by DuckDB, embedded, and tables of a server by it.
        today: the value of CURRENT_DATE, as if it were written: a question of another day is another one.
        anchor: the file by which an older copy of the ledger is refused; in the state folder unless given; "" for none.

    >>> from discreet.engines import Memory
    >>> from discreet.privacy import Budget
    >>> curator = Curator(engine=Memory())
    >>> rows = [{"ward": "A", "age": 40}, {"ward": "B", "age": 60}]
    >>> curator.protect(rows, name="visits", types={"ward": "text", "age": "int"}, budget=Budget(epsilon=1))
    >>> answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    >>> answer.columns, str(answer.remaining)
    (('n', 'n_low', 'n_high'), '90 %')
    """

    def __init__(
        self,
        ledger: File | Ledger = ":memory:",
        *,
        engine: Engine | None = None,
        today: Day = None,
        anchor: Kept = None,
    ) -> None:
        day = check.day(today=today)
        self._ledger = ledger if isinstance(ledger, Ledger) else ledger_at(ledger, anchor)
        self._engine = engine if engine is not None else by_source()
        self._catalog = Catalog(self._ledger, self._engine, day)
        self._measure_with(self._engine, Releaser(source_of(None)), salt=None)

    def _measure_with(self, engine: Engine, releaser: Releaser, *, salt: str | None) -> None:
        """Puts together all that measures, around the catalog and the ledger."""
        self._releaser, self._replay = releaser, Replay(self._ledger, private=releaser.bits.private)
        self._salt = partial(_salt_of, self._ledger) if salt is None else lambda _: salt
        self._planner = Planner(self._replay, read=self._catalog.read, salt=self._salt)
        self._performer = ReleaseExecutor(engine, releaser)
        self._parts = self._catalog, self._ledger, engine, releaser
        self._profiler = Profiler(*self._parts, replay=self._replay, salt=self._salt)
        for name in ("_batches", "_limits", "_trainer", "_synthesizer", "_streams"):  # they are made of other parts now
            vars(self).pop(name, None)

    @cached_property
    def _limits(self) -> limits_finder.LimitsFinder:
        return limits_finder.LimitsFinder(*self._parts)

    @cached_property
    def _batches(self) -> batch.BatchExecutor:
        known = self._catalog, self._ledger, self._replay, self._planner
        return batch.BatchExecutor(*known, self._performer, limits=self._limits)

    @cached_property
    def _trainer(self) -> trainer.FitExecutor:
        return trainer.FitExecutor(*self._parts, salt=self._salt)

    @cached_property
    def _synthesizer(self) -> synthesizer.Synthesizer:
        return synthesizer.Synthesizer(*self._parts, salt=self._salt)

    @cached_property
    def _streams(self) -> streams.Streams:
        return streams.Streams(*self._parts, planner=self._planner, salt=self._salt)

    @classmethod
    def for_tests(
        cls, ledger: File = ":memory:", *, engine: Engine | None = None, bits: Bits, today: Day = None
    ) -> Curator:
        """Returns a curator with a given source of randomness; if it is seeded, every answer says it is not private."""
        curator = cls(ledger_at(ledger, for_tests=True), engine=engine, today=today)
        curator._measure_with(curator._engine, Releaser(source_of(bits)), salt=None)
        return curator

    @classmethod
    def from_config(
        cls, path: File = FILE, *, engine: Engine | None = None, opening: bool = True, replacing: Replacing = NOTHING
    ) -> Curator:
        """Returns a curator of a discreet.toml; if not `opening`, tables are in the ledger, or as `replacing` says."""
        declared = declared_in(path, opening=opening)
        chosen = engine or engine_at(declared.engine)
        curator = cls(declared_ledger(declared, new=opening), engine=chosen, today=declared.today)
        try:
            if declared.objects is not None:
                curator._engine.allow_objects(declared.objects)
            enrol(declared, curator._catalog, curator._ledger, replacing=replacing)
        except BaseException:
            curator.close()
            raise
        return curator

    def close(self) -> None:
        """Closes the ledger file and the engine."""
        if "_streams" in vars(self):
            self._streams.close()
        self._ledger.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _perform(self, request: Request[R], caller: Caller) -> R:
        verb = VERBS[request.verb]
        with told_to(caller.progress):
            try:
                if verb.handler:
                    held = self._ledger if verb.queue is Queue.LEDGER else self
                    return cast("R", verb.implementation(held, request, caller))
                return cast("R", getattr(self, f"_{verb.name}")(request, caller))
            except InsufficientBudget as refused:
                propose_arguments(refused, request)
                raise

    def _plan(
        self, request: Ask | Explain | Rehearse | ChooseEpsilon | RequestApproval, salt: str | None = None
    ) -> MeasurementPlan:
        """Returns the measurement of a question, by all that was found before."""
        bound = self._catalog.read(request.sql, request.parameters)
        measurement = self._planner.plan(bound, limits=request.limits, other=request.other, salt=salt)
        known = measurement.waits_for_limits and self._limits.known(measurement)
        return self._plan(request, salt) if known else measurement

    def _ask(self, request: Ask, caller: Caller) -> Answer:
        """Does what `ask` promises: plans, finds what is stored, charges, reads, adds noise, stores, answers."""
        if request.reserve:
            caller = replace(caller, reserve=request.reserve)
        measurement = self._plan(request)
        account = self._ledger.admit(measurement.account, caller.analyst, caller.project)
        terms = self._planner.terms(measurement, request, account.budget)
        self._planner.check_interval(measurement, terms, request.interval)
        limits: tuple[str, ...] = ()
        while measurement.waits_for_limits:  # once more if the table moves on to another version meanwhile
            found = self._limits.find([(self._planner.payable(measurement, terms), terms)], caller)
            if not found:
                break
            limits, measurement = (*limits, *found), self._plan(request)
        wanted: ProfileRequest | None = None
        if request.profile is not None or request.coverage is not None:
            refuse_profile(measurement.periods)
            terms, wanted = self._profiler.reserve_profile(measurement, terms, request.profile, request.coverage)

        def show(bought: PricedResult[MeasurementResult]) -> Answer:
            if bought.found:  # a profile that is wanted with an answer that is kept is bought alone
                self._profiler.buy_missing(wanted, caller)
            profile = self._replay.profile_for(measurement, terms)
            read, versions = measurement.tables(bought.result.facts), self._catalog.versions
            answer = Answer.of(
                bought.result,
                request.confidence,
                bought.remaining,
                cost=bought.cost,
                profile=profile,
                schemas=measurement.bounded_schemas(bought.result.facts),
                interval=request.interval,
                data=versions.describe(read, replayed=bought.cost is None) if versions.is_told else UNDESCRIBED,
            )
            return replace(answer, notes=(*answer.notes, *limits)) if limits else answer

        return release_once(self._ledger, self._paid(measurement, terms, wanted), caller, show)

    def _paid(
        self, measurement: MeasurementPlan, terms: QueryBudget, profile: ProfileRequest | None = None
    ) -> PaidQuestion:
        return PaidQuestion(
            measurement=measurement,
            terms=terms,
            profile=profile,
            payable=lambda: self._planner.payable(measurement, terms),
            performer=self._performer,
            replay=self._replay,
        )

    def _ask_many(self, request: AskMany, caller: Caller) -> list[Answer]:
        asked = batch.RequestedBatch(
            request.questions, request.epsilon, request.delta, request.limits, request.confidence, request.interval
        )
        return self._batches.ask(asked, caller)

    def _request_approval(self, request: RequestApproval, caller: Caller) -> ApprovalRequest:
        measurement = self._plan(request)
        account = self._ledger.admit(measurement.account, caller.analyst, caller.project)
        paid = self._paid(measurement, QueryBudget.of(request.epsilon, request.delta, account.budget))
        paid.payable()  # refuses what could not be asked
        told = {"replay_key": paid.request.replay_key, "sql": paid.request.sql, "reason": request.reason}
        asked = paid.request.asked
        told |= {"analyst": caller.analyst, "asked": "" if asked is None else str(asked)}
        first, *others = paid.request.accounts
        found = self._ledger.caps.request_approval(first, paid.request.event, **told)
        for other in others:
            self._ledger.caps.request_approval(other, paid.request.event, **told)
        return found

    def _explain(self, request: Explain, caller: Caller) -> Explanation:
        measurement = self._plan(request)
        state = self._ledger.admit(measurement.account, caller.analyst, periods=measurement.periods)
        terms = self._planner.terms(measurement, request, state.budget)
        self._planner.check_interval(measurement, terms, request.interval)
        measurement = self._planner.payable(measurement, terms)
        found = explanation.explanation(
            measurement,
            terms,
            self._ledger,
            state,
            confidence=request.confidence,
            rows=request.rows,
            interval=request.interval,
        )
        for table in self._limits.missing(measurement) if measurement.waits_for_limits else ():
            price = self._limits.price(table)
            found = explanation.with_supposed_limits(found, measurement, terms, table=table, epsilon=price)
        who = (caller.analyst, caller.project)
        return explanation.with_offers(found, measurement, terms, self._ledger, self._replay, who=who)

    def _rehearse(self, request: Rehearse, caller: Caller) -> Answer:
        measurement = self._plan(request, rehearsal.SALT)
        state = self._ledger.admit(measurement.account, caller.analyst, periods=measurement.periods)
        result = rehearsal.rehearse_query(
            measurement, QueryBudget.of(request.epsilon, request.delta, state.budget), request.rows
        )
        made_up = Answer.of(result, request.confidence, RemainingBudget.of(state.spent, state.budget))
        return replace(made_up, replayed=False, notes=(rehearsal.NOTE, *made_up.notes))

    def _choose_epsilon(self, request: ChooseEpsilon, caller: Caller) -> Choices:
        measurement = self._plan(request)
        total = self._ledger.admit(measurement.account, caller.analyst).budget
        delta = QueryBudget.of(1, request.delta, total).delta
        budgets = [choices.terms_of(each, delta) for each in choices.check_candidates(request.candidates)]
        payable = self._planner.payable(measurement, budgets[0])
        return choices.compare(payable, budgets, confidence=request.confidence, rows=request.rows)

    def _profile(self, request: BuyProfile, caller: Caller) -> Profile:
        self._ledger.admit(self._catalog.account_of(request.table), caller.analyst, caller.project)
        self._catalog.require_current([request.table])
        schema = self._catalog.schema(request.table)
        refuse_profile(() if schema.period is None else (schema.period.per,))
        self._limits.settle([schema.name], caller)
        plan = self._profiler.plan(request.table, request.columns, request.by)
        wanted = self._profiler.of_table(plan, request.epsilon)
        return self._profiler.buy(wanted, caller)

    def _fit(self, request: Fit, caller: Caller) -> Any:
        return self._trainer.fit(partial(self._training, request), request.epsilon, caller)

    def _plan_fit(self, request: PlanFit, caller: Caller) -> FitPlan:
        return self._trainer.explain(partial(self._training, request), request.epsilon, caller)

    def _training(self, request: Fit | PlanFit, epsilon: Fraction | None) -> TrainingPlan:
        return self._trainer.plan(request.estimator, request.sql, request.target, request.rows_per_unit, epsilon)

    def _synthesize(self, request: Synthesize, caller: Caller) -> SyntheticTable:
        who: dict[str, Any] = {"analyst": caller.analyst, "key": caller.key, "project": caller.project}
        return self._synthesizer.synthesize(request.table, rows=request.rows, **who, **_synthesis(request))

    def _synthesize_tables(self, request: SynthesizeTables, caller: Caller) -> SyntheticTables:
        who: dict[str, Any] = {"analyst": caller.analyst, "key": caller.key, "project": caller.project}
        people, events, how = request.people, request.events, _synthesis(request)
        return self._synthesizer.synthesize_tables(people, events, rows=request.rows, **who, **how)

    def _plan_synthesize(self, request: PlanSynthesize, caller: Caller) -> SynthesisPrice:
        who = {"analyst": caller.analyst, "project": caller.project}
        return self._synthesizer.price(request.table, **who, **_synthesis(request))

    def _plan_synthesize_tables(self, request: PlanSynthesizeTables, caller: Caller) -> SynthesisPrice:
        who = {"analyst": caller.analyst, "project": caller.project}
        return self._synthesizer.price(request.people, request.events, **who, **_synthesis(request))

    def _stream(self, request: OpenStream, caller: Caller) -> CuratedStream:
        how = {each.name: getattr(request, each.name) for each in fields(request)}
        question = how.pop("sql")
        if question is None:
            named = {name: how[name] for name in ("name", "confidence", "state")}
            return self._streams.resume_by_name(analyst=caller.analyst, **named)
        return self._streams.open(question, analyst=caller.analyst, project=caller.project, **how)

    def table(self, name: str) -> CuratedFrame:
        """Builds the same questions step by step: ``curator.table("visits").agg(n=count()).ask(epsilon=0.1)``."""
        return curated_frame.CuratedFrame(schema=supposing(self._catalog.schema(name)), curator=self)

    def public(
        self,
        source: Any,
        *,
        name: str,
        types: Mapping[str, str] | None = None,
        unique: Unique = (),
        table: str | None = None,
    ) -> None:
        """Registers a public table: it has no account, and gives group keys to protected tables.

        Types are those that the format does not carry; no two rows agree in `unique` columns; `table` is one of a
        database in a file. Data that are protected are refused.
        """
        self._catalog.public(source, name=name, types=types, unique=unique, table=table)

    def protect(
        self,
        source: Any,
        *,
        name: str,
        unit: UnitLike = None,
        account: str | None = None,
        budget: AnyBudget | None = None,
        types: Mapping[str, str] | None = None,
        bounds: Mapping[str, tuple[End, End]] | None = None,
        keys: Keys | None = None,
        limits: DeclaredLimits = None,
        limits_epsilon: Number | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        neighbours: Neighbours | str | None = None,
        version: str = "",
        identity: str | None = None,
        most_rows: int | None = None,
        domain: Mapping[str, tuple[End, End]] | None = None,
        sample_of: Sample | Mapping[str, Any] | None = None,
        table: str | None = None,
        change: bool = False,
    ) -> None:
        """Puts a table under an account; doing it again with the same declarations changes nothing.

        The same file, or object, in another account is refused: its people would get a second budget. Columns, types,
        bounds, keys and limits may be declared anew with `change`; who is protected never (`ledger.redeclaration`).

        Args:
            source: what the engine can read: a file, a folder, a pattern or a list of files, a Delta or Iceberg table,
                a frame, columns or rows in Python, a lazy table that only chooses columns, a `Folder` of pictures or
                texts, the address of a table of a server. What lies in memory is copied now.
            name: how questions call it.
            unit: the column of ids of those who are protected; several, such as ``("person", "day")``; a way to a table
                that says whose rows they are, such as ``"order_id -> orders.id"``; None if each row is one person.
            account: whose budget it shares; a lone table opens one, one on a way shares that of the table it leads to.
            budget: of the account, given once; `Budget(epsilon=1, per="month")` renews.
            types: of columns whose type the format does not carry.
            bounds: public limits of numbers and dates.
            keys: public group keys: a list, or "table.column" of a public table for the values that are there now.
                There may be a million: the ledger keeps a long list once (`redeclaration.LONGEST_LIST`).
            limits: of one unit's rows: "private" to have them found before the first question, or numbers. With a unit
                they must be given, here or as `max_groups` and `max_rows`; a table in the ledger keeps what it has.
            limits_epsilon: what private limits cost; a fiftieth of the budget unless given.
            max_groups: how many groups one unit may enter.
            max_rows: with how many rows each.
            neighbours: the relation of the account; add/remove unless it is given, or that of the table on the way.
            version: what the steward says about the state of the data; a new one of a Delta or Iceberg table is its
                newest snapshot.
            identity: a name for the data themselves: tables of one identity share an account, copies too.
            most_rows: a public fact: no person has more rows. If it is false, labels are wrong, but privacy holds.
            domain: a fact of the same kind: all values of a column lie in it; bounds around it clip nothing.
            sample_of: the design by which the people were drawn, `discreet.Sample(population=100_000, size=5_000)`;
                intervals can then cover sampling as well.
            table: of a database in a file (DuckDB or SQLite) its name, perhaps after a schema and a point.
            change: whether other declarations than those in the ledger take their place, as an entry of their own.

        Raises:
            DeclarationChanged: without `change`, if the table is declared otherwise in the ledger; it has the
            difference. InvalidParameter: if a declaration does not fit, or the data have a budget in another account.
        """
        facts: dict[str, Any] = {"unit": unit, "account": account, "budget": budget, "types": types, "bounds": bounds}
        facts |= {"keys": keys, "domain": domain, "max_groups": max_groups, "max_rows": max_rows, "version": version}
        facts |= {"limits": limits, "limits_epsilon": limits_epsilon, "table": table}
        facts |= {"sample_of": sample_of, "most_rows": most_rows, "neighbours": neighbours, "identity": identity}
        self._catalog.protect(source, name=name, replacing=self._ledger.declaration(name) if change else None, **facts)

    def project_cap(self, project: str, *, account: str) -> AnyBudget | None:
        """Returns the cap of a project on an account; None if it has none."""
        return self._ledger.project_cap(project, account=account)

    def analyst_cap(self, analyst: str, *, account: str) -> AnyBudget | None:
        """Returns the cap of an analyst on an account; None if they have none of their own."""
        return self._ledger.analyst_cap(analyst, account=account)

    def balance(self, account: str, *, analyst: str | None = None, project: str | None = None) -> Balance:
        """Returns the figures of an account, or of one analyst or project on it."""
        return self._ledger.balance(account, analyst=analyst, project=project)

    def entries(self, account: str | None = None) -> tuple[Entry, ...]:
        """Returns the entries of one account, or of the whole ledger, in order."""
        return self._ledger.history(account)

    def account(self, name: str) -> Account:
        """Returns what an account was opened as; its salt, by which rows are chosen, stays secret."""
        return replace(self._ledger.account(name), salt=b"")

    def accounts(self) -> tuple[str, ...]:
        """Returns the names of all accounts in the ledger."""
        return self._ledger.accounts()

    def tables(self) -> dict[str, str]:
        """Returns the account of every table in the ledger, whether this curator holds the table or not."""
        return self._ledger.tables()

    def role(self, account: str, who: str) -> Role | None:
        """Returns the role of a person on an account, or (account "") on the whole ledger."""
        return self._ledger.role(account, who)


def _salt_of(ledger: Ledger, account: str) -> str:
    """Returns the secret by which rows of the people of an account are kept."""
    return ledger.account(account).salt.hex()


def _synthesis(request: Synthesize | SynthesizeTables | PlanSynthesize | PlanSynthesizeTables) -> dict[str, Any]:
    """Returns what the plan of a synthetic table takes."""
    others = ("table", "people", "events", "rows")
    return {each.name: getattr(request, each.name) for each in fields(request) if each.name not in others}
