"""Trains learners under the ledger: the fit is planned from public facts, paid, and only then are rows read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from discreet.curator.asking.explanation import caps
from discreet.curator.asking.performer import charged, run_charge
from discreet.curator.catalog.catalog import Catalog
from discreet.errors import InternalError, QueryFailed
from discreet.lazy import load
from discreet.ledger import Book, Receipt, Remaining
from discreet.ledger.tallies import prices
from discreet.measurement.program.execution import Reader, check_readable
from discreet.measurement.releases.releaser import Releaser
from discreet.privacy import Loss
from discreet.privacy.events import Event
from discreet.progress import stage

if TYPE_CHECKING:
    from discreet.curator.training.training_plan import TrainingPlan

CONSTANT = (
    "Fewer than two classes were found privately, so that the model is constant: it predicts the same for every row. "
    "Give the learner classes=..., or a larger epsilon."
)
"""What is said of such a model: a function of what was released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """What a fit would release and cost, before anything is read.

    Attributes:
        learner: the name of its class.
        params: all of its parameters, those that declarations completed included.
        features: the names of its features, in order.
        limits: to which each feature is clipped.
        classes: public classes; None if there are none, or they would be found privately.
        event: what would be released.
        cost: what that costs the account; None if its budget is of a kind that cannot pay for it.
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
    cost: Loss | None
    remaining: Loss
    notes: tuple[str, ...]
    free: bool
    caps: Mapping[str, Loss] = field(default_factory=dict)
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
            lines.append(f"Asked now, it would be refused. {self.refusal}")
        return "\n".join([*head, *lines, *(f"- {note}" for note in self.notes)])


class Trainer:
    """Fits learners; what a fit does is known before it is paid, and what failed stays paid.

    Args:
        catalog: the tables.
        book: where fits are charged and models are kept.
        engine: which reads.
        releaser: which has learners add their noise.
        salt: tells the secret by which rows of an account's people are kept.
    """

    def __init__(
        self, catalog: Catalog, book: Book, engine: Reader, releaser: Releaser, *, salt: Callable[[str], str]
    ) -> None:
        self._catalog, self._book, self._engine, self._releaser, self._salt = catalog, book, engine, releaser, salt

    def plan(self, estimator: Any, question: str, target: str | None, rows_per_unit: int) -> TrainingPlan:
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
            rows_per_unit=rows_per_unit,
            account=account,
            schemas=self._catalog.schemas,
            salt=self._salt(account),
            private=self._releaser.bits.private,
            folders=self._catalog.folders,
        )
        check_readable(found.reading, self._catalog.schemas)  # what an engine would refuse must not be paid for
        state = self._book.account(account)
        return replace(found, sql=question).promised(state.budget, state.neighbours)

    def fit(self, training: TrainingPlan, *, analyst: str, key: str | None, project: str) -> Any:
        """Returns the fitted learner; see `Curator.fit`."""
        state = self._book.admit(training.account, analyst, project)
        if not self._book.is_charged(analyst, key):
            known = self._kept(training)
            if known is not None:
                return _told(known, training, Remaining.of(state.spent, state.budget), None)
            training.rehearse()
        with charged(self._book, training.request, analyst=analyst, key=key, project=project) as receipt:
            if receipt.repeated:
                return _told(self._of_charge(receipt), training, receipt.left, None)
            model = self._store(training, receipt, self._read_and_fit(training, receipt))
            return _told(model, training, receipt.left, receipt.cost)

    def explain(self, training: TrainingPlan, *, analyst: str, project: str) -> FitPlan:
        """Returns what a fit would release and cost; see `Curator.plan_fit`."""
        account = self._book.account(training.account)
        self._book.admit(account.name, analyst)
        training.rehearse()
        balance, learner = self._book.balance(account.name), training.learner
        free, refusal = self._kept(training) is not None, None
        if not free:
            refusal = self._book.refusal(account.name, training.charge, analyst=analyst, project=project)
        return FitPlan(
            learner=type(learner).__name__,
            params=learner.get_params(deep=False),
            features=tuple(name for name, _ in training.shown),
            limits=tuple(limits for _, limits in training.shown),
            classes=training.classes,
            event=training.event,
            cost=prices(training.charge, balance.total, account.neighbours).spent(balance.total),
            remaining=balance.remaining.loss,
            notes=training.notes,
            free=free,
            caps=caps(self._book, account.name, analyst, project),
            refusal=None if refusal is None else str(refusal),
        )

    def _kept(self, training: TrainingPlan) -> Any | None:
        """Returns the newest stored model of the same fit."""
        kept = reversed(self._book.stored(training.replay_key))
        models = (self._model(stored.payload) for stored in kept)
        return next((model for model in models if model is not None), None)

    def _model(self, payload: bytes) -> Any | None:
        """Returns a stored model of the same fit, also if another version of the library would release otherwise.

        It was paid for when it was stored. None if one of the two has seeded noise: what a test released must never
        come back as private.
        """
        model = load("discreet.learn.persistence.store", "A learner").from_json(payload)
        return model if model.private_ is self._releaser.bits.private else None

    def _read_and_fit(self, training: TrainingPlan, receipt: Receipt) -> str | None:
        """Returns a model as it is kept, made of what was read for a charge; None if anything went wrong."""
        name = f"Reading {training.reading.table} and fitting {type(training.learner).__name__}"
        return run_charge(self._book, receipt, name, lambda: self._learned(training, receipt))

    def _learned(self, training: TrainingPlan, receipt: Receipt) -> str:
        """Returns a model as text; the charge may be one of another version, if it pays for what this one releases."""
        account = self._book.account(training.account)
        asked, paid = (prices(each, account.budget, account.neighbours) for each in (training.charge, receipt.event))
        if training.charge != receipt.event and not asked.covered(paid):
            raise InternalError("A fit costs more than its charge.")
        X, y = training.decode(self._engine.read(training.reading))
        with load("discreet.learn.privacy_warnings", "A learner").in_an_account():
            model = self._releaser.fit(training.learner, X, y)
        if model.event_ != training.event or model.private_ is not self._releaser.bits.private:
            raise InternalError("A learner released something else than it planned.")
        text: str = load("discreet.learn.persistence.store", "A learner").to_json(model)
        return text

    def _store(self, training: TrainingPlan, receipt: Receipt, payload: str | None) -> Any:
        """Keeps a model, durably, and returns what was kept, and nothing beside it.

        Raises:
            QueryFailed: if the charge ended without one.
        """
        if payload is not None and self._book.store_answer(receipt, training.replay_key, payload):
            return load("discreet.learn.persistence.store", "A learner").from_json(payload)
        return self._of_charge(receipt)

    def _of_charge(self, receipt: Receipt) -> Any:
        """Returns the model of a charge that has ended.

        Raises:
            QueryFailed: if it ended without one.
        """
        payload = self._book.answer(receipt)
        model = None if payload is None else self._model(payload)
        if model is None:
            raise QueryFailed
        return model


def _told(model: Any, training: TrainingPlan, remaining: Remaining, cost: Loss | None) -> Any:
    """The model with what this call is about."""
    model.columns_ = [name for name, _ in training.shown]
    model.cost_ = remaining.loss * 0 if cost is None else cost
    model.remaining_ = remaining
    model.replayed_ = cost is None
    model.notes_ = (*training.notes, *([CONSTANT] if getattr(model, "constant_", False) else []))
    return model
