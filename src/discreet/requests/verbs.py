"""The signatures of all verbs, once and with real types; curators here and elsewhere do what the requests ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.lazy import Module
from discreet.ledger import OWNER, Appointment, Balance, Caller, Head, LedgerEntries, Role, Share, Standing
from discreet.ledger.caps.approvals import ApprovalRequest
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.plan.model.nodes import Question, Value
from discreet.plan.model.sample import NOISE
from discreet.plan.model.schema import Limits
from discreet.privacy import AnyBudget, ApproxDP, PureDP
from discreet.progress import Progress
from discreet.requests.cap_requests import (
    Approve,
    GetApprovals,
    GiveBack,
    RequestApproval,
    RequireApprovals,
    SetAside,
    SetTeam,
)
from discreet.requests.erasure_requests import EraseCheck, ErasureReport
from discreet.requests.ledger_requests import Allot, Amend, Appoint, GetBudget, GetHistory, Renew, Unlock, Verify
from discreet.requests.question_requests import (
    IMAGINED,
    Ask,
    AskMany,
    ChooseEpsilon,
    Explain,
    Rehearse,
)
from discreet.requests.request import CANDIDATES, R, Request
from discreet.requests.verb_table import VERBS
from discreet.requests.version_requests import Advance, TableAdvance
from discreet.sql.parameters import Parameters

if TYPE_CHECKING:
    import datetime as dt
    from typing import Literal, TypeAlias

    from discreet.curator.asking.answer import Answer
    from discreet.curator.asking.choices import Choices
    from discreet.curator.asking.explanation import Explanation
    from discreet.curator.streams.curated_stream import CuratedStream
    from discreet.curator.synthesis.synthesizer import SynthesisPrice, SyntheticTable, SyntheticTables
    from discreet.curator.training.trainer import FitPlan
    from discreet.measurement.profile.profile import Profile
    from discreet.requests import table_requests

    RequestedLimits: TypeAlias = Limits | Literal["choose"] | None
    Rules: TypeAlias = Iterable[Mapping[str, Any]]
else:  # profiles, learners, synthetic tables and streams, which most questions do without
    table_requests = Module("discreet.requests.table_requests")


class Verbs(ABC):
    """What can be asked of a curator. Each method builds a request and has it done."""

    @abstractmethod
    def _perform(self, request: Request[R], caller: Caller) -> R:
        """Performs a request for a caller, and returns its result."""

    def perform(self, request: Request[R], caller: Caller | None = None) -> R:
        """Returns the result of a request; the other methods of this class build one and return its result.

        Args:
            request: what is asked, built with `of`, e.g. ``Ask.of(sql="SELECT COUNT(*) FROM visits", epsilon=0.1)``.
            caller: who asks; the owner unless given.
        """
        return self._perform(request, Caller() if caller is None else caller)

    if not TYPE_CHECKING:  # a checker knows the methods that are written out below, and no others

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """Returns the method of a verb that is not written out: it takes the fields of its request by name."""
            if name not in VERBS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return partial(self._perform_named, VERBS[name].request)

    def _perform_named(
        self,
        request: type[Request[R]],
        *,
        analyst: str = OWNER,
        project: str = "",
        key: str | None = None,
        progress: Progress | None = None,
        **given: Any,
    ) -> R:
        return self._perform(request.of(**given), Caller(analyst=analyst, project=project, key=key, progress=progress))

    # ------------------------------------------------------------------------------------------------------ queries

    def ask(
        self,
        sql: str | Question,
        *,
        parameters: Parameters = None,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        interval: str = NOISE,
        key: str | None = None,
        within: check.Number | None = None,
        max_epsilon: check.Number | None = None,
        project: str = "",
        profile: check.Number | None = None,
        coverage: check.Number | None = None,
        progress: Progress | None = None,
        reserve: str | None = None,
    ) -> Answer:
        """Returns a private answer, charged before anything is read; a stored one that is as good is free.

        Args:
            sql: one SELECT, or a plan.
            parameters: the values of `?` and `$1` as a list, of `:name` and `$name` as a dictionary, as if written out.
            epsilon: what the answer may cost.
            delta: its chance of more; a hundredth of the account's delta unless it is given.
            limits: how much one unit may count, instead of the table's own; "choose" finds out for a fifth of epsilon.
            other: the label of one more group, of all rows whose keys are not declared, or whose groups are not shown.
            analyst: who asks, and pays from their cap.
            confidence: of each interval.
            interval: what it covers: "noise"; or "population", also the drawing of a declared random sample (`Sample`).
            key: an idempotency key: the same key with the same question is charged once and answered alike, always.
            within: instead of an epsilon, how far each COUNT, SUM and AVG may be from the truth, with this confidence.
            max_epsilon: what that may cost at most.
            project: whose cap it counts against, besides the analyst's and the account's.
            profile: what a profile of the table may cost, bought in the same charge unless one as precise is kept.
            coverage: which part of the epsilon is for what limits and bounds leave out of this very question.
            reserve: the purpose for which an amount was set aside that pays, instead of the account.
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
        request = Ask.of(
            sql=sql,
            parameters=parameters,
            epsilon=epsilon,
            delta=delta,
            limits=limits,
            other=other,
            confidence=confidence,
            interval=interval,
            within=within,
            max_epsilon=max_epsilon,
            profile=profile,
            coverage=coverage,
            reserve=reserve,
        )
        return self._perform(request, Caller(analyst=analyst, project=project, key=key, progress=progress))

    def ask_many(
        self,
        questions: Sequence[str | Question],
        *,
        epsilon: check.Number,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        interval: str = NOISE,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,
    ) -> list[Answer]:
        """Returns an answer to each question, for one charge of this epsilon: all of them, or an error.

        Equal questions are measured once. What is kept, or follows from others with no more noise, takes no share of
        the budget. All are about one account's people. Arguments and errors are those of `ask`; errors name a place.
        """
        request = AskMany.of(
            questions=questions,
            epsilon=epsilon,
            delta=delta,
            limits=limits,
            confidence=confidence,
            interval=interval,
        )
        return self._perform(request, Caller(analyst=analyst, project=project, key=key, progress=progress))

    def explain(
        self,
        sql: str | Question,
        *,
        parameters: Parameters = None,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        interval: str = NOISE,
        rows: int = IMAGINED,
        within: check.Number | None = None,
        max_epsilon: check.Number | None = None,
        project: str = "",
    ) -> Explanation:
        """Explains what would be read and spent, and how wrong the answer would be; reads nothing, costs nothing.

        What a budget refuses is said to be. It takes what `ask` takes, and the `rows` of a group, for errors of means.
        """
        request = Explain.of(
            sql=sql,
            parameters=parameters,
            epsilon=epsilon,
            delta=delta,
            limits=limits,
            other=other,
            confidence=confidence,
            interval=interval,
            rows=rows,
            within=within,
            max_epsilon=max_epsilon,
        )
        return self._perform(request, Caller(analyst=analyst, project=project))

    def rehearse(
        self,
        sql: str | Question,
        *,
        parameters: Parameters = None,
        epsilon: check.Number = Fraction(1),
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        rows: int = IMAGINED,
    ) -> Answer:
        """Returns the shape of an answer, on synthetic rows of the declarations: seeded noise, free."""
        request = Rehearse.of(
            sql=sql,
            parameters=parameters,
            epsilon=epsilon,
            delta=delta,
            limits=limits,
            other=other,
            confidence=confidence,
            rows=rows,
        )
        return self._perform(request, Caller(analyst=analyst))

    def choose_epsilon(
        self,
        sql: str | Question,
        candidates: Sequence[check.Number | PureDP | ApproxDP] = CANDIDATES,
        *,
        parameters: Parameters = None,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: check.Number = CONFIDENCE,
        rows: int = IMAGINED,
    ) -> Choices:
        """Compares epsilons, with this delta, or budgets: errors, and what an attacker learns; costs nothing."""
        request = ChooseEpsilon.of(
            sql=sql,
            candidates=candidates,
            parameters=parameters,
            delta=delta,
            limits=limits,
            other=other,
            confidence=confidence,
            rows=rows,
        )
        return self._perform(request, Caller(analyst=analyst))

    # ------------------------------------------------------------------------------------------------------- tables

    def profile(
        self,
        table: str,
        *,
        epsilon: check.Number,
        columns: Sequence[str] | None = None,
        by: Sequence[str | Sequence[str]] | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,
    ) -> Profile:
        """Returns a paid profile of a table; from then on every answer about it says what it leaves out, for nothing.

        It describes people, their rows and groups, and what limits, bounds and missing ids leave out: values of
        `columns`, all with declared bounds unless given, groups by `by`, all with declared keys. A kept one is free.
        """
        request = table_requests.BuyProfile.of(table=table, epsilon=epsilon, columns=columns, by=by)
        return self._perform(request, Caller(analyst=analyst, project=project, key=key, progress=progress))

    def fit(
        self,
        estimator: Any,
        sql: str,
        *,
        target: str | None = None,
        epsilon: check.Number | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        rows_per_unit: int = 1,
        progress: Progress | None = None,
    ) -> Any:
        """Returns a private learner, trained on rows of one SELECT; charged before any is read. Fails as `ask` does.

        Features are the columns as written, but for the `target`, which is learned; numbers are clipped to declared
        bounds, texts with declared keys become one feature for each key. A copy of the estimator, a learner of
        `discreet.learn`, is fitted for `epsilon`, by default its own, and for its delta, with bounds, classes and
        neighbours as declared. The same again is given for free. It has `columns_`, and of the call `cost_`,
        `remaining_`, `replayed_`, `notes_`.

        Formal guarantee: the event that was charged describes all that is returned, for units as the account has them:
        each has `rows_per_unit` rows of the input, of its own alone; more than 1 only if the learner accounts for them.
        """
        request = table_requests.Fit.of(
            estimator=estimator, sql=sql, target=target, epsilon=epsilon, rows_per_unit=rows_per_unit
        )
        return self._perform(request, Caller(analyst=analyst, project=project, key=key, progress=progress))

    def plan_fit(
        self,
        estimator: Any,
        sql: str,
        *,
        target: str | None = None,
        epsilon: check.Number | None = None,
        analyst: str = OWNER,
        project: str = "",
        rows_per_unit: int = 1,
    ) -> FitPlan:
        """Returns what `fit` would release and cost; reads nothing, costs nothing. Refuses whom `fit` refuses."""
        request = table_requests.PlanFit.of(
            estimator=estimator, sql=sql, target=target, epsilon=epsilon, rows_per_unit=rows_per_unit
        )
        return self._perform(request, Caller(analyst=analyst, project=project))

    def synthesize(
        self,
        table: str,
        *,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        rows: int | None = None,
        generator: Any = "aim",
        domain: Any = None,
        forbidden: Rules = (),
        bins: int | None = None,
        within: str = "uniform",
        rows_per_unit: int = 1,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,
    ) -> SyntheticTable:
        """Returns synthetic rows like those of a table; charged before anything is read.

        The same again gives the stored table for nothing; another number of rows is drawn from the stored model, for
        nothing as well, and is not kept.

        Args:
            table: the name of a protected table, for all columns but ids; or one SELECT of columns.
            epsilon: what the table may cost; left out if the generator has one.
            delta: its chance of more; a hundredth of the account's delta unless it is given.
            rows: how many to make up; None is the private estimate of how many there are.
            generator: "aim", "mst", "allpairs", "independent", or one of `discreet.synthetic`.
            domain: public values of columns without declared ones, or others instead, as `Domain` takes them.
            forbidden: combinations of values that cannot occur, as `Domain` takes them.
            bins: into how many bins of equal width declared bounds of numbers are cut; 16 unless it is given.
            within: how numbers get their place within such bins back: "uniform", evenly, or "histogram", by a private
                histogram for which a tenth of the budget is paid.
            rows_per_unit: how many rows of a unit are kept at most; the noise grows with it.
            analyst: who asks, and pays from their cap.
            key: an idempotency key, as for `ask`.
            project: whose cap it counts against, besides the analyst's and the account's.
            progress: is called with the name of every stage that begins.

        Raises:
            UnsupportedQuery: if a column has no public values, or rows are of several protected tables.
            InvalidParameter: if an argument is outside its domain. All else as for `ask`.
        """
        request = table_requests.Synthesize.of(
            table=table,
            epsilon=epsilon,
            delta=delta,
            rows=rows,
            generator=generator,
            domain=domain,
            forbidden=forbidden,
            bins=bins,
            within=within,
            rows_per_unit=rows_per_unit,
        )
        return self._perform(request, Caller(analyst=analyst, project=project, key=key, progress=progress))

    def synthesize_tables(
        self,
        people: str,
        events: str,
        *,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        rows: int | None = None,
        generator: Any = "aim",
        domain: Mapping[str, Any] | None = None,
        forbidden: Mapping[str, Rules] | None = None,
        bins: int | None = None,
        within: str = "uniform",
        rows_per_unit: int | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,
    ) -> SyntheticTables:
        """Returns synthetic people and their events, linked by a synthetic key; charged before anything is read.

        The same again gives the stored tables for nothing; another number of people is drawn from the stored models,
        for nothing as well, and is not kept.

        Args:
            people: the table with a row of attributes for each, by its name or as one SELECT of columns.
            events: the table of their events, of the same account.
            epsilon: as for `synthesize`.
            delta: as for `synthesize`.
            rows: how many people to make up; None is the private estimate of how many there are.
            generator: as for `synthesize`.
            domain: for each of the two tables, by its name, what `synthesize` takes.
            forbidden: likewise: rules about columns of one table.
            bins: as for `synthesize`.
            within: as for `synthesize`.
            rows_per_unit: how many events of a unit are kept at most, and drawn; the noise grows with it. As many as
                the table of events was declared with, unless it is given.
            analyst: who asks, and pays from their cap.
            key: an idempotency key, as for `ask`.
            project: whose cap it counts against, besides the analyst's and the account's.
            progress: is called with the name of every stage that begins.

        Raises:
            UnsupportedQuery: if a column has no public values, or a SELECT is of several protected tables.
            InvalidParameter: if the tables are of different accounts or people, or an argument is outside its domain.
                All else as for `ask`.
        """
        request = table_requests.SynthesizeTables.of(
            people=people,
            events=events,
            epsilon=epsilon,
            delta=delta,
            rows=rows,
            generator=generator,
            domain=domain,
            forbidden=forbidden,
            bins=bins,
            within=within,
            rows_per_unit=rows_per_unit,
        )
        return self._perform(request, Caller(analyst=analyst, project=project, key=key, progress=progress))

    def plan_synthesize(
        self,
        table: str,
        events: str | None = None,
        *,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        generator: Any = "aim",
        domain: Any = None,
        forbidden: Any = None,
        bins: int | None = None,
        within: str = "uniform",
        rows_per_unit: int | None = None,
        analyst: str = OWNER,
        project: str = "",
    ) -> SynthesisPrice:
        """Returns what `synthesize`, or with `events` `synthesize_tables`, would release and cost, for nothing."""
        shared: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "generator": generator, "domain": domain}
        shared |= {"forbidden": forbidden, "bins": bins, "within": within, "rows_per_unit": rows_per_unit}
        caller = Caller(analyst=analyst, project=project)
        if events is None:
            return self._perform(table_requests.PlanSynthesize.of(table=table, **shared), caller)
        return self._perform(table_requests.PlanSynthesizeTables.of(people=table, events=events, **shared), caller)

    def stream(
        self,
        sql: str | None = None,
        *,
        every: str | int = "day",
        horizon: int | None = None,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        rho: check.Number | None = None,
        start: dt.date | int | str | None = None,
        window: int | None = None,
        periods: int | None = None,
        limits: Limits | None = None,
        name: str | None = None,
        analyst: str = OWNER,
        project: str = "",
        confidence: check.Number = CONFIDENCE,
        state: str | None = None,
        reserve: str | None = None,
    ) -> CuratedStream:
        """Returns a stream of running totals, one period at a time: charged once, now, and opened again for nothing.

        Without a query, it returns the stream that was started under the name.

        Args:
            sql: one SELECT of a COUNT or SUM, grouped by a day, a time or a number that gives the period, and by other
                columns with declared keys.
            every: how long a period is: "day", "week", "month", "quarter", "year", or how many whole numbers.
            horizon: how many periods there are; None if that is unknown, for a larger error.
            epsilon: what the whole stream may cost.
            delta: its chance of more; a hundredth of the account's delta unless it is given.
            rho: instead of both, for accounts with a budget in rho.
            start: the first day, or number; else the least declared key or bound of the column, else today.
            window: over how many periods sums go; all so far, unless given.
            periods: in how many periods of the whole stream one unit may count; the table's number of groups unless
                given. With the horizon, all people count always, and no ids need to be remembered.
            limits: how many groups and rows one unit may have in a period, instead of the table's.
            name: of the stream; the query and its terms make one, so that the same call opens the same stream.
            analyst: who asks, and pays from their cap.
            project: whose cap it counts against, too.
            confidence: of each interval.
            state: the file of the private state; by default in a folder next to the ledger; required if the ledger
                is on a server.
            reserve: the purpose for which an amount was set aside that pays; needed where the account renews.

        Raises:
            UnsupportedQuery: if the query cannot be released as a stream; nothing was spent.
            InvalidParameter: if a parameter is outside its domain.
            InsufficientBudget: if the account or a cap is used up.
            StreamError: if another process has the stream, or its state is lost or an old copy.
        """
        request = table_requests.OpenStream.of(
            sql=sql,
            every=every,
            horizon=horizon,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            start=start,
            window=window,
            periods=periods,
            limits=limits,
            name=name,
            confidence=confidence,
            state=state,
            reserve=reserve,
        )
        return self._perform(request, Caller(analyst=analyst, project=project))

    # ------------------------------------------------------------------------------------------------------- ledger

    def budget(self, name: str) -> Standing:
        """Returns the budget, spent and remaining amounts of a table's account, or of the account of that name."""
        return self._perform(GetBudget.of(name=name), Caller())

    def history(
        self, name: str | None = None, *, analyst: str | None = None, project: str | None = None
    ) -> LedgerEntries:
        """Returns every entry of the account of a table, or of that name; perhaps of one analyst or project only.

        It is a tuple of entries that prints, and shows itself in a notebook, as a table with query and cost.
        """
        return self._perform(GetHistory.of(name=name, analyst=analyst, project=project), Caller())

    def verify(self) -> Head:
        """Walks the whole ledger; raises if anything was changed."""
        return self._perform(Verify.of(), Caller())

    def amend(self, account: str = "", *, budget: AnyBudget, by: str = OWNER, note: str = "") -> Balance:
        """Gives an account another budget of its currency; what was spent stays spent. A steward's act, an entry."""
        return self._perform(Amend.of(account=account, budget=budget, note=note), Caller(analyst=by))

    def renew(self, account: str = "", *, budget: AnyBudget | None = None, by: str = OWNER, note: str = "") -> Balance:
        """Starts a new period of an account with nothing spent; its lifetime spending goes on and is shown."""
        return self._perform(Renew.of(account=account, budget=budget, note=note), Caller(analyst=by))

    def advance(self, table: str, *, version: str, by: str = OWNER, note: str = "") -> TableAdvance:
        """Says that a table has new data: queries about it are asked anew, stored answers of other tables stay free.

        All curators of the ledger ask at the new version, with their next question. The label is the steward's own.
        """
        return self._perform(Advance.of(table=table, version=version, note=note), Caller(analyst=by))

    def erase_check(self, table: str, person: Value, *, by: str = OWNER) -> ErasureReport:
        """Says where a person may still be, and what may stay when they are erased; no row is read, no id is kept."""
        return self._perform(EraseCheck.of(table=table, person=person), Caller(analyst=by))

    def unlock(self, account: str = "", *, by: str = OWNER, note: str = "") -> Balance:
        """Gives an account its failure credits back; find out first why questions failed."""
        return self._perform(Unlock.of(account=account, note=note), Caller(analyst=by))

    def appoint(
        self,
        who: str,
        role: Role | str = Role.ANALYST.value,
        *,
        account: str = "",
        cap: AnyBudget | None = None,
        by: str = OWNER,
    ) -> Appointment:
        """Gives a person a role on an account, or on the whole ledger, and perhaps a cap under the account's own.

        Returns:
            The role and the cap; on an account a `Share`, with what they have spent and may still spend.
        """
        return self._perform(Appoint.of(who=who, role=role, account=account, cap=cap), Caller(analyst=by))

    def allot(self, project: str, *, cap: AnyBudget, account: str = "", by: str = OWNER, note: str = "") -> Share:
        """Gives a project a cap on an account: questions that name the project count against both."""
        return self._perform(Allot.of(project=project, account=account, cap=cap, note=note), Caller(analyst=by))

    def set_team(
        self,
        team: str,
        *,
        cap: AnyBudget,
        members: Sequence[str] = (),
        groups: Sequence[str] = (),
        account: str = "",
        by: str = OWNER,
        note: str = "",
    ) -> Share:
        """Gives a team a cap on an account: all queries of its members count against it, besides their own caps."""
        request = SetTeam.of(team=team, cap=cap, members=members, groups=groups, account=account, note=note)
        return self._perform(request, Caller(analyst=by))

    def set_aside(
        self, purpose: str, *, budget: AnyBudget, account: str = "", person: str = "", by: str = OWNER, note: str = ""
    ) -> Balance:
        """Sets an amount of an account aside, which counts as spent; ``ask(..., reserve=purpose)`` is paid from it.

        Args:
            purpose: its name.
            budget: how much: an epsilon, for questions without a delta, or an amount of the account's currency.
            account: the account; the only one unless given.
            person: the only one who may spend it; all who may ask, unless given.
            by: the steward.
            note: why.
        """
        request = SetAside.of(purpose=purpose, budget=budget, account=account, person=person, note=note)
        return self._perform(request, Caller(analyst=by))

    def give_back(self, purpose: str, *, account: str = "", by: str = OWNER, note: str = "") -> Balance:
        """Gives back the rest of an amount that was set aside; what was spent of it stays spent."""
        return self._perform(GiveBack.of(purpose=purpose, account=account, note=note), Caller(analyst=by))

    def approve(self, number: int, *, account: str = "", by: str = OWNER, note: str = "") -> ApprovalRequest:
        """Allows the query of a request beyond a cap, once and for seven days; nobody approves their own.

        An analyst makes the request: ``request_approval(sql, epsilon=1, reason="for the board", analyst="ana")``.
        """
        return self._perform(Approve.of(number=number, account=account, note=note), Caller(analyst=by))

    def require_approvals(
        self, count: int, *, account: str = "", by: str = OWNER, note: str = ""
    ) -> list[ApprovalRequest]:
        """Says how many stewards must approve each query beyond a cap; returns the requests that wait for them."""
        return self._perform(RequireApprovals.of(count=count, account=account, note=note), Caller(analyst=by))

    def approvals(self, name: str | None = None, *, analyst: str = OWNER) -> list[ApprovalRequest]:
        """Returns the requests for queries beyond a cap: an analyst's own, or all for a steward."""
        return self._perform(GetApprovals.of(name=name), Caller(analyst=analyst))

    def request_approval(
        self,
        sql: str | Question,
        *,
        reason: str,
        epsilon: check.Number,
        parameters: Parameters = None,
        delta: check.Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
    ) -> ApprovalRequest:
        """Asks the stewards to allow one query beyond a cap; then ask it with the same arguments."""
        told = {"parameters": parameters, "delta": delta, "limits": limits, "other": other}
        request = RequestApproval.of(sql=sql, reason=reason, epsilon=epsilon, **told)
        return self._perform(request, Caller(analyst=analyst))
