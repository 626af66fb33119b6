"""Training learners under the ledger: the fit is planned from public facts, paid, and only then are rows read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.curator.asking.interruption import Stopping
from discreet.curator.replay.replay import Recalling
from discreet.errors import InternalError, QueryFailed, UnknownTable
from discreet.lazy import load
from discreet.ledger import OWNER, Receipt, Remaining
from discreet.ledger.tallies import prices
from discreet.measurement.program.execution import check_readable
from discreet.privacy import Loss
from discreet.privacy.events import Event
from discreet.sql.training_rows import training_rows

if TYPE_CHECKING:
    from discreet.curator.training.training_plan import Training

CONSTANT = (
    "Fewer than two classes were found privately, so that the model is constant: it predicts the same for every row. "
    "Give the learner classes=..., or a larger epsilon."
)
"""What is said of such a model: a function of what was released."""

WAIT = 10.0
"""Seconds to wait for what somebody else computes under the same idempotency key, before it is run again."""


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
            f"  {name}: {low:g} to {high:g}" for name, (low, high) in zip(self.features, self.limits, strict=True)
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


class Fitting(Recalling):
    """Fits learners; what a fit does is known before it is paid, and what failed stays paid."""

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
    ) -> Any:
        """A private learner, trained on rows that one SELECT names; charged before anything is read.

        Features are the columns in the order written; numbers are clipped to declared bounds, and texts with declared
        keys become one feature for each key. The estimator is not changed: a copy with its parameters is fitted, in
        which ``bounds``, ``classes``, ``label_bounds`` and ``neighbours`` are completed by what is declared. The same
        fit again gives the stored model for nothing.

        Args:
            estimator: a learner of `discreet.learn`, whose epsilon and delta are what the fit may cost.
            question: one SELECT of columns and expressions, without aggregates.
            target: the column that is learned; None for learners without one.
            analyst: who asks, and pays from their cap.
            key: an idempotency key of the analyst's own, as for `ask`.
            project: whose cap it counts against, too.
            rows_per_unit: how many rows one unit may have; more than 1 only for learners that account for it.

        Returns:
            The fitted learner, with `event_`, `privacy_spent_` and `private_` as always, the names of its features in
            `columns_`, and of this call `cost_`, `remaining_`, `replayed_` and `notes_`.

        Raises:
            UnsupportedQuery: if the rows cannot be learned from privately; nothing was spent.
            InvalidParameter: if the learner or a parameter is refused; nothing was spent.
            NotPermitted: if the analyst may not ask, not even for what is stored.
            InsufficientBudget: if the account or the analyst's cap is used up; nothing was read.
            KeyConflict: if the key came with another question before; nothing was spent.
            QueryFailed: if reading or fitting failed, or did so before under this key; the charge stays.
            KeyboardInterrupt: on Ctrl-C in the main thread; its notes say whether a charge stays.

        Formal guarantee: all that is returned is described by the event that was charged, for units as the account has
        them: each has `rows_per_unit` rows of the learner's input, chosen from its own rows alone.
        """
        training = self._training(estimator, question, target, rows_per_unit)
        account, place = self._accounts[training.table], training.place(self._known)
        standing = self._book.admit(account, analyst, project)
        if key is None or not self._book.is_charged(analyst, key):
            known = self._kept(training, place)
            if known is not None:
                return _told(known, training, Remaining.of(standing.spent, standing.budget), None)
            training.rehearse()
        with Stopping(self._book, analyst, key) as stopping:
            receipt = stopping.holding(
                self._book.charge(
                    account,
                    training.event,
                    analyst=analyst,
                    question=training.question,
                    key=key,
                    replay_key=place,
                    project=project,
                )
            )
            if receipt.repeated:
                claimed = self._book.claim(receipt, wait=WAIT)
                if claimed is None:
                    return _told(self._ended(training, receipt), training, receipt.left, None)
                receipt = stopping.holding(claimed)
            return _told(self._fitted(training, receipt, place), training, receipt.left, receipt.cost)

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
        """What `fit` would release and cost; reads nothing, costs nothing.

        Args:
            estimator: as for `fit`.
            question: as for `fit`.
            target: as for `fit`.
            analyst: who would ask.
            project: whose cap it would count against, too.
            rows_per_unit: as for `fit`.

        Raises:
            NotPermitted: if the analyst may not ask, or the project may not spend.
        """
        training = self._training(estimator, question, target, rows_per_unit)
        account = self._book.account(self._accounts[training.table])
        self._book.admit(account.name, analyst)
        training.rehearse()
        balance, learner = self.budget(training.table), training.learner
        free, refusal = self._kept(training, training.place(self._known)) is not None, None
        if not free:
            refusal = self._book.refusal(account.name, training.event, analyst=analyst, project=project)
        return FitPlan(
            learner=type(learner).__name__,
            params=learner.get_params(deep=False),
            features=training.names,
            limits=training.limits,
            classes=training.classes,
            event=training.event,
            cost=prices(training.event, balance.total, account.neighbours).spent(balance.total),
            remaining=balance.remaining.loss,
            notes=training.notes,
            free=free,
            caps=self._caps(account.name, analyst, project),
            refusal=None if refusal is None else str(refusal),
        )

    def _training(self, estimator: Any, question: str, target: str | None, rows_per_unit: int) -> Training:
        """A fit with everything it is chosen from."""
        learners = load("discreet.curator.training.learners", "Fitting a learner")
        try:
            rows = training_rows(question, self._known)
        except UnknownTable as unknown:
            self._schema(unknown.name)  # a public one is refused in other words
            raise
        salt = self._salt
        found: Training = learners.training(
            estimator,
            rows,
            target,
            rows_per_unit=rows_per_unit,
            salt=self._book.account(self._accounts[rows.schema.name]).salt.hex() if salt is None else salt,
            private=self._releaser.bits.private,
        )
        check_readable(found.reading, self._known)  # what an engine would refuse must not be paid for
        return found

    def _kept(self, training: Training, place: str) -> Any | None:
        """The newest stored model of the same fit."""
        models = (self._model(training, stored.payload) for stored in reversed(self._book.stored(place)))
        return next((model for model in models if model is not None), None)

    def _model(self, training: Training, payload: bytes) -> Any | None:
        """A stored model; None if this version of the library would have released something else.

        None also if one of the two has seeded noise: what a test released must never come back as private.
        """
        model = load("discreet.learn.persistence.store", "A learner").from_json(payload)
        same = model.event_ == training.event and model.private_ is self._releaser.bits.private
        return model if same else None

    def _fitted(self, training: Training, receipt: Receipt, place: str) -> Any:
        """Reads and fits for a charge, and keeps the model; what is given is what was kept, and nothing beside it.

        Raises:
            QueryFailed: whatever went wrong: causes can depend on data. It uses up one failure credit.
        """
        payload: str | None = None
        with suppress(Exception):  # causes can carry data: dropped here, all of them
            payload = self._learned(training, receipt)
        if payload is None:
            self._book.fail(receipt)
        elif self._book.store_answer(receipt, place, payload):
            return load("discreet.learn.persistence.store", "A learner").from_json(payload)
        return self._ended(training, receipt)  # failed, or ended before by somebody else who claimed it

    def _ended(self, training: Training, receipt: Receipt) -> Any:
        """The model of a charge that has ended.

        Raises:
            QueryFailed: if it ended without one.
        """
        payload = self._book.answer(receipt)
        model = None if payload is None else self._model(training, payload)
        if model is None:
            raise QueryFailed
        return model

    def _learned(self, training: Training, receipt: Receipt) -> str:
        X, y = training.decode(self._engine.read(training.reading))
        model = self._releaser.fit(training.learner, X, y)
        if model.event_ != receipt.event or model.private_ is not self._releaser.bits.private:
            raise InternalError("A learner released something else than it planned.")
        text: str = load("discreet.learn.persistence.store", "A learner").to_json(model)
        return text


def _told(model: Any, training: Training, remaining: Remaining, cost: Loss | None) -> Any:
    """The model with what this call is about."""
    model.columns_ = list(training.names)
    model.cost_ = remaining.loss * 0 if cost is None else cost
    model.remaining_ = remaining
    model.replayed_ = cost is None
    model.notes_ = (*training.notes, *([CONSTANT] if getattr(model, "constant_", False) else []))
    return model
