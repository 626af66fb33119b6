"""Starts streams under the ledger, and finds them again: planned from public facts, charged once, then opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from discreet import check
from discreet.curator.asking.planner import Planner
from discreet.curator.catalog.catalog import BoundQuestion, Catalog
from discreet.curator.measurement_plan import QueryBudget
from discreet.curator.paid_release import ChargeRequest, charge_request
from discreet.curator.streams.curated_stream import CuratedStream, InMemoryState, LedgerWitness
from discreet.curator.streams.stream_plan import (
    Every,
    PeriodCalendar,
    Start,
    StreamPlan,
    check_plain,
    default_start,
    period_key,
    plain_program,
    tells_period,
    without_period,
)
from discreet.errors import InvalidParameter, StreamError, UnsupportedQuery
from discreet.hint_text import Hint
from discreet.ledger import OWNER, Caller, Ledger, Receipt
from discreet.ledger.account import AccountState
from discreet.ledger.serialization import name as named
from discreet.measurement.probes.probes import describe_counted_rows
from discreet.measurement.program.execution import Reader, check_readable
from discreet.measurement.program.program import Program
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms.mechanism import CONFIDENCE, Law
from discreet.plan.canonical import canonical
from discreet.plan.model.nodes import Key
from discreet.plan.model.schema import Limits
from discreet.postgres_url import is_postgres
from discreet.privacy import ZCDP, ApproxDP, Loss, PureDP, events
from discreet.stream import RunningSum, SlidingWindow
from discreet.stream.gaussian_factor import ChargedBudget
from discreet.stream.state_file import Keeper, RunCount, StateFile, parameters_in, require_unused
from discreet.stream.stream import Stream


class Streams:
    """Starts and reopens streams.

    Args:
        catalog: the tables.
        ledger: where streams are charged and their releases kept.
        engine: which reads.
        releaser: which has the source of noise.
        planner: which plans what is read in a period.
        salt: returns the secret by which rows of an account's people are kept.
    """

    def __init__(
        self,
        catalog: Catalog,
        ledger: Ledger,
        engine: Reader,
        releaser: Releaser,
        *,
        planner: Planner,
        salt: Callable[[str], str],
    ) -> None:
        self._catalog, self._ledger, self._engine, self._releaser = catalog, ledger, engine, releaser
        self._planner, self._salt = planner, salt
        self._open: dict[str, CuratedStream] = {}

    def open(
        self,
        question: str,
        *,
        every: Every = "day",
        horizon: int | None = None,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        rho: check.Number | None = None,
        start: Start | None = None,
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

        Args:
            question: one SELECT of a COUNT or SUM, grouped by a day, a time or a number that is the period, and by
                other columns with declared keys.
            every: how long a period is: "day", "week", "month", "quarter", "year", or how many whole numbers.
            horizon: how many periods there are; None if that is unknown, for a larger error.
            epsilon: what the whole stream may cost.
            delta: its chance of more; a hundredth of the account's delta unless it is given.
            rho: instead of both, for accounts with a budget in rho.
            start: the first day, or number; else the least declared key or bound of the column, else today.
            window: over how many periods sums go; all so far, unless given.
            periods: in how many periods of the whole stream one unit may count; the table's number of groups unless
                given. With the horizon, all units always count, and none needs to be remembered.
            limits: how many groups and rows one unit may have in a period, instead of the table's.
            name: of the stream; the question and its terms make one, so that the same call opens the same stream.
            analyst: who asks, and pays from their cap.
            project: whose cap it counts against, too.
            confidence: of each interval.
            state: the file of the private state; in a folder next to the ledger unless given, and needed if the ledger
                is on a server.
            reserve: the purpose for which an amount was set aside that pays; needed where the account renews.

        Raises:
            UnsupportedQuery: if the question cannot be released as a stream; nothing was spent.
            InvalidParameter: if a parameter is outside its domain.
            InsufficientBudget: if the account or a cap is used up.
            StreamError: if another process has the stream, or its state is lost or an old copy.
        """
        chance = check.probability(confidence=confidence)
        bound = _refuse_periods(self._catalog.read(question))
        account = self._ledger.admit(bound.account, analyst, project)
        budget = _budget(epsilon, delta, rho, account.budget)
        if limits is None and describe_counted_rows(bound.plan, bound.schemas).private_limits is not None:
            hint = "Pass {limits}: how many rows of one person count in a period, and {periods}: in how many periods."
            raise InvalidParameter("limits", None, "to be given for a stream, whose rows are still to come", Hint(hint))
        told: dict[str, Any] = {
            "question": question,
            "every": every,
            "horizon": horizon,
            "window": window,
            "periods": periods,
            "limits": None if limits is None else limits.numbers,
            "budget": _amounts(budget),
            "analyst": analyst,
        }
        called = sha256(f"{told} {start}".encode()).hexdigest()[:32] if name is None else named(name=name)
        path = self._path(called, analyst) if state is None else Path(state)
        if not self._ledger.is_charged(analyst, _key(called)):
            _require_usable(path, account, reserve)
        plan = self._plan(
            bound,
            every,
            self._find_start(called, analyst, path) if start is None else start,
            law="laplace" if isinstance(budget, PureDP) else "gaussian",
            horizon=horizon,
            window=window,
            periods=periods,
            limits=limits,
        )
        make = _maker(plan, budget, chance, self._releaser)
        restart = json.dumps(told | {"name": called, "start": str(plan.calendar.start)})
        told |= {"name": called, **_calibration(plan, make(None))}
        request = ChargeRequest(
            accounts=(bound.account,),
            event=_charged_event(make(None).event, budget),
            question=canonical(bound.plan),
            replay_key=_key(called),
            terms=json.dumps(told),
            sql=bound.sql,
            restart=restart,
            asked=None if isinstance(budget, ZCDP) else budget.epsilon,
        )
        self._forget_closed()
        caller = Caller(analyst=analyst, project=project, key=request.replay_key, reserve=reserve or "")
        with charge_request(
            self._ledger, request, caller, again=lambda receipt: self._again(request, receipt)
        ) as receipt:
            if receipt.hash not in self._open:
                charged = events.strip_calibration(receipt.event)
                make = _maker(plan, _as_charged(budget, charged), chance, self._releaser)
                if make(None).event != charged:
                    raise StreamError(_OTHER_NOISE, _SAME_VERSION)
                witness = LedgerWitness(self._ledger, receipt, request.question)
                opened = self._resume_stream(plan, witness, path, make=make, told=told, confidence=chance)
                self._open[receipt.hash] = opened
            return self._open[receipt.hash]

    def open_or_resume(self, question: str | None, **how: Any) -> CuratedStream:
        """Returns the stream of a question, see `open`, or without one that of a name, as it was started."""
        if question is not None:
            return self.open(question, **how)
        if not {"name"} <= set(how) <= {"name", "analyst", "confidence", "state"}:
            raise InvalidParameter("question", None, "to be given", "Pass a SELECT, or the name of a stream alone.")
        return self.resume_by_name(**how)

    def resume_by_name(
        self, name: str, *, analyst: str = OWNER, confidence: check.Number = CONFIDENCE, state: str | None = None
    ) -> CuratedStream:
        """Returns a stream that was started under a name, opened again as it was started.

        Raises:
            StreamError: if there is none.
        """
        path = self._path(named(name=name), analyst) if state is None else Path(state)
        if path is None:
            raise StreamError(f"No stream {name!r} is stored", "This ledger is in memory and keeps no streams.")
        told = self._read_start_settings(name, analyst) or parameters_in(path)
        if (told["name"], told["analyst"]) != (name, analyst):
            raise StreamError(f"The file is not the state of {name!r} of {analyst!r}", "Pass the file of that stream.")
        limits = None if told["limits"] is None else Limits(*told["limits"])
        budget = {key: told["budget"].get(key) for key in ("epsilon", "delta", "rho")}
        same = {key: told[key] for key in ("every", "horizon", "start", "window", "periods", "analyst")}
        if isinstance(told["every"], int):
            same["start"] = int(told["start"])
        how = {**same, **budget, "limits": limits, "confidence": confidence, "state": state}
        return self.open(told["question"], name=name, **how)

    def names(self) -> tuple[str, ...]:
        """Returns the names of all streams whose state is kept next to the ledger."""
        folder = self._folder
        found: list[str] = []
        for path in [] if folder is None or not folder.is_dir() else sorted(folder.glob("*.state")):
            with suppress(StreamError):  # its process was killed before the first line was whole
                found.append(str(parameters_in(path)["name"]))
        return tuple(found)

    # --------------------------------------------------------------------------------------------------------- parts

    @property
    def _folder(self) -> Path | None:
        if self._ledger.in_memory or is_postgres(self._ledger.path):
            return None
        return Path(f"{self._ledger.path}.streams")

    def _path(self, called: str, analyst: str) -> Path | None:
        """Returns the file of the private state of an analyst's stream; None if the ledger dies with the process."""
        if is_postgres(self._ledger.path):
            hint = Hint("Pass a file of yours that no other machine uses: {state:...}.")
            reason = "The private state of a stream is a file next to the ledger, and this ledger is on a server"
            raise StreamError(reason, hint)
        digest = sha256(json.dumps([analyst, called]).encode()).hexdigest()[:32]
        return None if self._folder is None else self._folder / f"{digest}.state"

    def _find_start(self, called: str, analyst: str, path: Path | None) -> Start | None:
        """Returns where a started stream begins, as its charge says; earlier versions wrote only its state."""
        told = self._read_start_settings(called, analyst)
        if not told and path is not None:
            with suppress(StreamError):
                told = parameters_in(path)
        if not told:
            return None
        return int(told["start"]) if isinstance(told["every"], int) else str(told["start"])

    def _read_start_settings(self, called: str, analyst: str) -> dict[str, Any]:
        """Returns what a stream was started with, as its charge says; nothing if there is none, or it does not say."""
        return dict(json.loads(self._ledger.restart(analyst, _key(called)) or "{}"))

    def _plan(
        self,
        bound: BoundQuestion,
        every: Every,
        start: Start | None,
        *,
        law: Law,
        horizon: int | None,
        window: int | None,
        periods: int | None,
        limits: Limits | None,
    ) -> StreamPlan:
        """Returns the stream with all that it follows from; what an engine would refuse must not be paid for."""
        check_plain(bound.plan)
        key = period_key(bound.plan, every)
        one = self._catalog.bind(without_period(bound.plan, key))
        program = plain_program(self._planner.plan(one, limits=limits), law)
        first = default_start(bound, key, self._catalog.today) if start is None else start
        plan = StreamPlan(
            bound=bound,
            key=key,
            calendar=PeriodCalendar.of(every, first, key.expression.type),
            program=program,
            periods=_periods(bound, key, program, periods, horizon),
            horizon=horizon,
            window=window,
        )
        plan.calendar.first(horizon or 1)
        check_readable(plan.reading(0), bound.schemas)
        return plan

    def _again(self, request: ChargeRequest, receipt: Receipt) -> Receipt | None:
        """Returns a receipt to go on with a stream that was charged before, at once; its charge never ends.

        Raises:
            StreamError: if it has ended all the same, or was charged for another event than would be released now.
        """
        if receipt.hash in self._open:
            return None
        reopened = self._ledger.reopen(receipt)
        if reopened is None:
            raise StreamError("The charge of the stream has ended", "Start a new stream under another name.")
        if not _is_same_noise(*map(events.strip_calibration, (reopened.event, request.event))):
            raise StreamError(_OTHER_NOISE, _SAME_VERSION)
        return reopened

    def _resume_stream(
        self,
        plan: StreamPlan,
        witness: LedgerWitness,
        path: Path | None,
        *,
        make: Callable[[Keeper | None], Stream],
        told: dict[str, Any],
        confidence: Fraction,
    ) -> CuratedStream:
        """Returns a stream at its start, or after the periods that its state and the ledger agree on."""
        kept: InMemoryState | StateFile
        runs = None
        if path is None:
            kept = InMemoryState(witness)
        else:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            known = told | {"charge": witness.receipt.hash, "private": self._releaser.bits.private}
            kept, runs = StateFile(path, known, witness), RunCount(f"{path}.runs")
        secret = self._salt(witness.receipt.account)
        return CuratedStream(
            plan, witness, self._engine, make=make, kept=kept, runs=runs, secret=secret, confidence=confidence
        )

    def _forget_closed(self) -> None:
        """Closes streams that were closed or interrupted, so that they are opened again from their states."""
        for stream in self._open.values():
            if not stream.usable:
                stream.close()
        self._open = {sign: stream for sign, stream in self._open.items() if stream.usable}

    def close(self) -> None:
        """Closes all streams that are open."""
        for stream in self._open.values():
            stream.close()
        self._open = {}


def _refuse_periods(bound: BoundQuestion) -> BoundQuestion:
    if bound.periods:
        reason = "A stream goes on, and here the rows of each period have a budget of their own."
        raise UnsupportedQuery(reason, "Ask about one period at a time, with a condition on its dates.")
    return bound


def _require_usable(path: Path | None, account: AccountState, reserve: str | None) -> None:
    """Refuses a new stream whose file is in use, or that a renewal of its account would end.

    Raises:
        InvalidParameter: if no reserve is named and the account renews.
        StreamError: if there is a file.
    """
    if account.renews is not None and not reserve:
        hint = Hint("Ask a steward to set an amount aside for the stream. Then pass {reserve:its name}.")
        raise InvalidParameter("reserve", "", "to be named: the account renews, which would end the stream", hint)
    if path is not None:
        require_unused(path)


_OTHER_NOISE = "The stream was charged for other noise than this version draws"
_SAME_VERSION = "Continue with the version of Discreet that started it, or start a new stream."
_ROUNDING = Fraction(1, 1 << 40)  # of a noise multiplier that is found by doubles: 4 units in the last place were seen


def _key(called: str) -> str:
    """Returns the idempotency key under which a stream is charged."""
    return f"stream:{called}"


def _budget(
    epsilon: check.Number | None, delta: check.Number | None, rho: check.Number | None, account: Loss
) -> PureDP | ApproxDP | ZCDP:
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InvalidParameter("rho", rho, "without epsilon and delta", "A stream has one budget.")
        return ZCDP(check.positive(rho=rho))
    terms = QueryBudget.of(epsilon, delta, account)
    return ApproxDP(terms.epsilon, terms.delta) if terms.delta else PureDP(terms.epsilon)


def _charged_event(event: events.Event, budget: PureDP | ApproxDP | ZCDP) -> events.Event:
    """Returns what is charged for a stream: its noise, and the epsilon and the delta that it was calibrated to."""
    return events.Calibrated(event, budget.epsilon, budget.delta) if isinstance(budget, ApproxDP) else event


def _is_same_noise(charged: events.Event, planned: events.Event) -> bool:
    """Returns whether a stream was charged for the noise that is planned now, to within the rounding of its search."""
    if not isinstance(charged, events.Gaussian) or not isinstance(planned, events.Gaussian):
        return charged == planned
    return abs(charged.noise_multiplier - planned.noise_multiplier) <= planned.noise_multiplier * _ROUNDING


def _as_charged(budget: PureDP | ApproxDP | ZCDP, charged: events.Event) -> PureDP | ApproxDP | ZCDP:
    """Returns the budget, with the noise that was charged for it."""
    if isinstance(budget, ApproxDP) and isinstance(charged, events.Gaussian):
        return ChargedBudget(budget, charged.noise_multiplier)
    return budget


def _amounts(budget: PureDP | ApproxDP | ZCDP) -> dict[str, str]:
    """Returns the budget in words that open it again."""
    if isinstance(budget, ZCDP):
        return {"rho": str(budget.rho)}
    delta = {"delta": str(budget.delta)} if isinstance(budget, ApproxDP) else {}
    return {"epsilon": str(budget.epsilon)} | delta


def _calibration(plan: StreamPlan, sums: Stream) -> dict[str, Any]:
    """Returns what noise was made for: a stream goes on only if all of it is still the same."""
    return {
        "start": str(plan.calendar.start),
        "lines": [list(map(str, line)) for line in plan.lines],
        "counted": plan.periods,
        "moves": [str(plan.sensitivity("laplace")), str(plan.sensitivity("gaussian"))],
        "method": sums.method,
    }


def _periods(bound: BoundQuestion, key: Key, program: Program, periods: int | None, horizon: int | None) -> int:
    """Returns in how many periods one unit counts: one, where its id determines the period; else as declared."""
    if program.reading.bounding is None or tells_period(bound, key):
        return 1
    wanted = program.contribution.limits.groups if periods is None else check.integer(periods=periods, at_least=1)
    return wanted if horizon is None else min(wanted, horizon)


def _maker(
    plan: StreamPlan, budget: PureDP | ApproxDP | ZCDP, confidence: Fraction, releaser: Releaser
) -> Callable[[Keeper | None], Stream]:
    """Builds the sums of a plan; without a keeper, only to be looked at."""
    law: Law = "laplace" if isinstance(budget, PureDP) else "gaussian"
    common: dict[str, Any] = {
        "horizon": plan.horizon,
        "budget": budget,
        "sensitivity": plan.sensitivity(law),
        "participation": plan.participation,
        "size": len(plan.lines),  # lines have Gaussian noise wherever there is a delta: it composes best with the rest
        "confidence": confidence,
        "bits": releaser.bits,
        "clip": True,  # to what sums of integers hold: an error would reveal something about the data
    }

    def make(keeper: Keeper | None) -> Stream:
        if plan.window is None:
            return RunningSum(**common, state=keeper)
        return SlidingWindow(window=plan.window, **common, state=keeper)

    return make
