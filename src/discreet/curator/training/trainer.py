"""Trains learners under the ledger: the fit is planned from public facts, paid, and only then are rows read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet.curator.asking.explanation import caps
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.paid_release import (
    ChargedRelease,
    ChargeRequest,
    ChargeRun,
    PricedResult,
    ReleaseOutcome,
    release_once,
)
from discreet.dataclass import dataclass
from discreet.errors import InsufficientBudget, InternalError
from discreet.hint_text import Hint
from discreet.lazy import load
from discreet.ledger import Caller, Ledger
from discreet.ledger.cost import Cost, cost_now
from discreet.ledger.serialization import at_most
from discreet.ledger.tallies import RemainingBudget
from discreet.measurement.program.execution import Reader, check_readable
from discreet.measurement.releases.releaser import Releaser
from discreet.privacy.events import Event
from discreet.progress import stage
from discreet.requests.refused_budgets import NO_DELTA, change_hint, refusal_text

if TYPE_CHECKING:
    from discreet.curator.training.training_plan import TrainingPlan

CONSTANT = (
    "Fewer than two classes were found privately, so the model is constant: it predicts the same for every row. "
    "Give the learner classes=..., or a larger epsilon."
)
"""What is said of such a model: a function of what was released."""

_EPSILON = re.compile(r"\{epsilon:([0-9.e+-]+)\}")
_SHARES = [Fraction(part, 64) for part in (64, 56, 48, 40, 32, 24, 16, 8, 4, 2, 1)]
"""Of the epsilon that a pure query may have, the part that is tried for a learner; each try is a plan."""
_LARGE_DELTA = (
    "No epsilon is small enough for this learner with its delta. Give the learner a smaller delta, or fit an earlier "
    "one again for free."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """The price of a fit: what it would release and cost, before anything is read.

    Attributes:
        learner: the name of its class.
        params: all of its parameters, those that declarations completed included.
        features: the names of its features, in order.
        limits: to which each feature is clipped.
        classes: public classes; None if there are none, or they would be found privately.
        event: what would be released.
        cost: what that costs the account.
        remaining: what the account has left before it.
        notes: what limits, bounds and defaults mean for the model.
        free: whether the same fit is stored, and would be given again for nothing.
        caps: what the caps of the analyst and of the project leave, if they have any.
        refusal: why `fit` would refuse it now; None if it would not.
    """

    learner: str
    params: Mapping[str, Any]
    features: tuple[str, ...]
    limits: tuple[tuple[float, float], ...]
    classes: tuple[Any, ...] | None
    event: Event
    cost: Cost
    remaining: RemainingBudget
    notes: tuple[str, ...]
    free: bool
    caps: Mapping[str, RemainingBudget] = field(default_factory=dict)
    refusal: str | None = None

    def __str__(self) -> str:
        bounds = [
            f"  {name}: {f'{low:g} to {high:g}' if low <= high else 'texts'}"
            for name, (low, high) in zip(self.features, self.limits, strict=True)
        ]
        cost = "nothing, it is stored" if self.free else str(self.cost)
        head = [f"{self.learner} on {len(self.features)} features", *bounds]
        lines = [
            f"cost: {cost}; remaining: {self.remaining}",
            *(f"{who}: {left} left" for who, left in self.caps.items()),
        ]
        if self.refusal is not None:
            lines.append(f"It would be refused now. {self.refusal}")
        return "\n".join([*head, *lines, *(f"- {note}" for note in self.notes)])


class FitExecutor:
    """Fits learners; what a fit does is known before it is paid, and what failed stays paid.

    Args:
        catalog: the tables.
        ledger: where fits are charged and models are kept.
        engine: which reads.
        releaser: which has learners add their noise.
        salt: returns the secret by which rows of an account's people are kept.
    """

    def __init__(
        self, catalog: Catalog, ledger: Ledger, engine: Reader, releaser: Releaser, *, salt: Callable[[str], str]
    ) -> None:
        self._catalog, self._ledger, self._engine, self._releaser, self._salt = catalog, ledger, engine, releaser, salt

    def plan(
        self, estimator: Any, question: str, target: str | None, rows_per_unit: int, epsilon: Fraction | None = None
    ) -> TrainingPlan:
        """Returns a fit with everything it is chosen from.

        Raises:
            UnsupportedQuery: if the rows cannot be learned from privately.
            InvalidParameter: if the learner is refused.
        """
        stage("Planning")
        learners = load("discreet.curator.training.learners", "Fitting a learner")
        rows = self._catalog.parse_rows(question)
        account = self._catalog.account_of(rows.schema.name)
        found: TrainingPlan = learners.training(
            estimator,
            rows,
            target,
            epsilon=epsilon,
            rows_per_unit=rows_per_unit,
            account=account,
            schemas=self._catalog.schemas,
            salt=self._salt(account),
            private=self._releaser.bits.private,
            folders=self._catalog.folders,
        )
        check_readable(found.reading, self._catalog.schemas)  # what an engine would refuse must not be paid for
        state = self._ledger.account(account)
        return replace(found, sql=question).with_promise(state.budget, state.neighbours)

    def fit(self, plan: Callable[[Fraction | None], TrainingPlan], epsilon: Fraction | None, caller: Caller) -> Any:
        """Returns the fitted learner; see `Curator.fit`. If its epsilon is refused, one that fits is looked for."""
        training = plan(epsilon)
        try:
            return release_once(
                self._ledger, self._make_paid_fit(training), caller, lambda bought: _annotate_model(bought, training)
            )
        except InsufficientBudget as refused:
            self._propose_epsilon(refused, plan, caller)
            raise

    def _propose_epsilon(
        self, refused: InsufficientBudget, plan: Callable[[Fraction | None], TrainingPlan], caller: Caller
    ) -> None:
        """Changes the epsilon that a refusal proposes to one with which this learner fits: its delta stays the same.

        The ledger proposes the largest epsilon of a pure query, which a learner with normal noise may not have.
        """
        template = refused.hint.template.replace(NO_DELTA, "") if isinstance(refused.hint, Hint) else ""
        proposed = _EPSILON.search(template)
        if proposed is None:
            return
        for share in _SHARES:
            epsilon = at_most(share * Fraction(proposed[1]))
            tried = plan(Fraction(epsilon))
            who = {"analyst": caller.analyst, "project": caller.project}
            if self._ledger.refusal(tried.account, tried.charge, **who) is None:
                change_hint(refused, template.replace(proposed[0], f"{{epsilon:{epsilon}}}"))
                return
        change_hint(refused, _LARGE_DELTA)

    def _make_paid_fit(self, training: TrainingPlan) -> PaidFit:
        return PaidFit(training, self._ledger, self._engine, self._releaser)

    def explain(
        self, plan: Callable[[Fraction | None], TrainingPlan], epsilon: Fraction | None, caller: Caller
    ) -> FitPlan:
        """Returns what a fit would release and cost; see `Curator.plan_fit`."""
        training, analyst, project = plan(epsilon), caller.analyst, caller.project
        account = self._ledger.account(training.account)
        state = self._ledger.admit(account.name, analyst, periods=training.rows.periods)
        training.rehearse()
        learner = training.learner
        free, refusal = self._make_paid_fit(training).find() is not None, None
        if not free:
            whose = {"analyst": analyst, "project": project}
            refusal = self._ledger.refusal(account.name, training.charge, periods=training.rows.periods, **whose)
        if isinstance(refusal, InsufficientBudget):
            self._propose_epsilon(refusal, plan, caller)
        return FitPlan(
            learner=type(learner).__name__,
            params=learner.get_params(deep=False),
            features=tuple(name for name, _ in training.shown_features),
            limits=tuple(limits for _, limits in training.shown_features),
            classes=training.classes,
            event=training.event,
            cost=cost_now(account, state, training.charge, training.asked),
            remaining=state.remaining,
            notes=training.notes,
            free=free,
            caps=caps(self._ledger, account.name, analyst, project),
            refusal=refusal_text(refusal, pure=False),
        )


@dataclass(frozen=True)
class PaidFit:
    """A fit that is made once: see `PaidRelease`.

    Args:
        training: the fit.
        ledger: where models are kept.
        engine: which reads.
        releaser: which has learners add their noise.
    """

    training: TrainingPlan
    ledger: Ledger
    engine: Reader
    releaser: Releaser

    @cached_property
    def request(self) -> ChargeRequest:
        """Returns the charge of the fit."""
        return self.training.request

    @property
    def stage(self) -> str:
        """Returns what is planned, in public words."""
        return f"Reading {self.training.reading.table} and fitting {type(self.training.learner).__name__}"

    def find(self) -> Any | None:
        """Returns the newest stored model of the same fit."""
        kept = reversed(self.ledger.read_answers(self.training.replay_key))
        models = (self._model(stored.payload) for stored in kept)
        return next((model for model in models if model is not None), None)

    def prepare(self) -> None:
        """Refuses what would fail for what it is."""
        self.training.rehearse()

    def execute(self, charge: ChargeRun) -> ReleaseOutcome:
        """Reads and fits; the charge may be one of another version, if it pays for what this one releases."""
        training = self.training
        charge.require_paid(training.charge)
        groups = self.engine.read(training.reading)
        with load("discreet.learn.privacy_warnings", "A learner").in_an_account():
            model = self.releaser.fit(training.learner, training, groups)
        if model.event_ != training.event or model.private_ is not self.releaser.bits.private:
            raise InternalError("A learner released something else than it planned.")
        text: str = load("discreet.learn.persistence.store", "A learner").to_json(model)
        return ReleaseOutcome(event=training.charge, replay_key=training.replay_key, payload=text)

    def read(self, kept: ChargedRelease) -> Any | None:
        """Returns the stored model."""
        return self._model(kept.payload)

    def _model(self, payload: bytes) -> Any | None:
        """Returns a stored model of the same fit, also if another version of the library would release otherwise.

        It was paid for when it was stored. None if one of the two has seeded noise: what a test released must never
        come back as private.
        """
        model = load("discreet.learn.persistence.store", "A learner").from_json(payload)
        return model if model.private_ is self.releaser.bits.private else None


def _annotate_model(bought: PricedResult[Any], training: TrainingPlan) -> Any:
    """Returns the model with what this call is about."""
    model = bought.result
    model.columns_ = [name for name, _ in training.shown_features]
    model.cost_ = bought.paid
    model.remaining_ = bought.remaining
    model.replayed_ = bought.cost is None
    model.notes_ = (*training.notes, *([CONSTANT] if getattr(model, "constant_", False) else []))
    return model
