"""A learner before its charge: which rows it is given, how they become numbers, and what its fit costs.

Everything here follows from the text, the declarations and the learner's parameters; nothing is read, nothing spent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.accounting.composition import compose, terms
from discreet.curator.catalog.declarations import declaration
from discreet.curator.paid_release import ChargeRequest
from discreet.curator.training.column_features import ClassLabels, Feature, FileNumbers, Number, Target
from discreet.curator.training.pipeline_columns import Text, order_codes, table
from discreet.dataclass import dataclass
from discreet.errors import InternalError, UnsupportedEvent
from discreet.learn.learner import price_event
from discreet.learn.persistence.store import from_json, read_parameters, to_json
from discreet.learn.privacy_warnings import in_an_account
from discreet.ledger.tallies import share_of
from discreet.measurement.probes.probes import read_by
from discreet.measurement.program.execution import cut_notes, note_rows_without_id
from discreet.plan.canonical import canonical
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, Key, Output, Question, Value
from discreet.plan.model.readings import ContributionBounding, Groups, Reading, Statistic
from discreet.plan.model.schema import TableSchema
from discreet.privacy import ApproxDP, Loss, Neighbours
from discreet.privacy.events import Approx, Calibrated, Event, PoissonSampled
from discreet.sql.training_rows import TrainingRows

VERSION = 1
REHEARSED = 8  # synthetic rows on which a fit is tried before it is paid


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A fit with everything it is chosen from.

    Args:
        rows: what is selected.
        features: how columns become features.
        target: how the target becomes labels or numbers; None if there is none.
        content: the learner and its parameters, as plain data.
        filled: parameters that were taken from declarations, in sentences.
        event: what the fit will release.
        rows_per_unit: how many rows one unit has at most.
        account: which pays.
        schemas: the declared tables by name.
        salt: of the rule by which rows are kept.
        raw: whether the learner is a pipeline that takes columns as they are, in a table with their names.
        promise: what the account is charged with in place of the bare event; see `charge`.
    """

    rows: TrainingRows
    features: tuple[Feature, ...]
    target: Target | None
    content: Mapping[str, Any]
    filled: tuple[str, ...]
    event: Event
    rows_per_unit: int
    account: str
    schemas: Mapping[str, TableSchema] = field(repr=False)
    salt: str = field(repr=False)
    raw: bool = False
    promise: Approx | Calibrated | None = None
    sql: str = field(default="", repr=False)

    @property
    def table(self) -> str:
        """Returns the first protected table that is read."""
        return self.rows.schema.name

    @property
    def neighbours(self) -> Neighbours:
        """Returns the relation of the account, and of the learner."""
        return self.rows.schema.neighbours

    @property
    def learner(self) -> Any:
        """Returns a new learner, with all parameters."""
        return read_parameters(dict(self.content))

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the features, in order."""
        return tuple(name for feature in self.features for name in feature.names)

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """Returns the limits of the features, in order."""
        return tuple(pair for feature in self.features for pair in feature.limits)

    @property
    def shown_features(self) -> tuple[tuple[str, tuple[float, float]], ...]:
        """Returns the features for people, with their limits: the many numbers of a file count as one feature."""
        found: list[tuple[str, tuple[float, float]]] = []
        for feature in self.features:
            names = (feature.name,) if isinstance(feature, FileNumbers) else feature.names
            found += zip(names, feature.limits[: len(names)], strict=True)
        return tuple(found)

    @property
    def classes(self) -> tuple[Value, ...] | None:
        """Returns the public classes of the target."""
        return self.target.classes if isinstance(self.target, ClassLabels) else None

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def _keys(self) -> tuple[Expression, ...]:
        parts = [*(feature.key for feature in self.features), *([] if self.target is None else [self.target.key])]
        return tuple(parts)

    @property
    def where(self) -> Expression | None:
        """Returns the condition that leaves rows without a target out, unless their number is public."""
        if self.target is None or self.neighbours is Neighbours.REPLACE:
            return None
        return self.target.known_condition

    @property
    def reading(self) -> Reading:
        """Returns how many people have each row of whole numbers and labels.

        A person with several different rows keeps as many as they may have, by the keyed rule of groups; equal rows of
        one person count once. So one person touches `rows_per_unit` rows of the learner's input, whatever they hold.
        """
        unit = self.rows.schema.unit
        limit = (
            None if unit is None else ContributionBounding(unit=unit, groups=self.rows_per_unit, rows=1, salt=self.salt)
        )
        return Reading(
            table=self.table,
            source=self.rows.relation,
            where=self.where,
            keys=self._keys,
            bounding=limit,
            statistics=(Statistic(kind="rows"),),
        )

    def decode(self, groups: Groups) -> tuple[Any, NDArray[Any] | None]:
        """Decodes features and target of all rows, in an order of their own values.

        Where the number of rows is private there is one more, fixed and public: a learner is never given nothing, so
        that no error shows whether there were rows.
        """
        counted = {key: count for key, (count,) in groups.items()}
        if self.neighbours is Neighbours.ADD_REMOVE:
            counted[self._made_up] = counted.get(self._made_up, 0) + 1
        X, y = self._decode_rows(list(counted))
        parts = order_codes(X) if self.raw else self._order(list(counted), X)
        columns = [*parts, *([] if y is None else [np.unique(y, return_inverse=True)[1]])]
        order = np.lexsort(columns)
        places = np.repeat(order, np.fromiter(counted.values(), dtype=np.int64, count=len(counted))[order])
        rows = X.iloc[places].reset_index(drop=True) if self.raw else X[places]
        return rows, None if y is None else y[places]

    def _order(self, keys: Sequence[tuple[Value, ...]], X: NDArray[np.float64]) -> list[NDArray[Any]]:
        """Returns what rows are sorted by: their numbers, and the names of files for what is in them."""
        parts: list[NDArray[Any]] = []
        start = 0
        for place, feature in enumerate(self.features):
            end = start + len(feature.names)
            if isinstance(feature, FileNumbers):
                names = [str(key[place] or "") for key in keys]
                parts.append(np.unique(np.array(names, dtype=object), return_inverse=True)[1])
            else:
                parts += list(X[:, start:end].T)
            start = end
        return parts

    @property
    def _made_up(self) -> tuple[Value, ...]:
        nothing: list[Value] = [None] * len(self.features)
        return (*nothing, *([] if self.target is None else [self.target.none]))

    def _decode_rows(self, keys: Sequence[tuple[Value, ...]]) -> tuple[Any, NDArray[Any] | None]:
        columns = list(zip(*keys, strict=True)) if keys else [()] * len(self._keys)
        values = columns[: len(self.features)]
        if self.raw:
            X = table(self.features, values)
        else:
            X = np.hstack([feature.decode(each) for feature, each in zip(self.features, values, strict=True)])
        return X, None if self.target is None else self.target.decode(columns[-1])

    # ------------------------------------------------------------------------------------------------------ identity

    @property
    def question(self) -> str:
        """Returns what is asked, as the ledger keeps it."""
        form = {**json.loads(canonical(self._reading_query)), "fit": {**self.content, "version": VERSION}}
        return json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def replay_key(self) -> str:
        """Returns the key of its stored model: of text, learner, declarations, versions of all tables, relation."""
        tables = [[declaration(table), table.version] for table in read_by(self._reading_query, self.schemas)]
        parts = [self.question, tables, self.neighbours.value, self.rows_per_unit]
        return f"fit:{sha256(json.dumps(parts).encode()).hexdigest()}"

    @property
    def charge(self) -> Event:
        """Returns what the account is charged with: the event of the fit with the epsilon and delta that it satisfies.

        Filters of accounts have no use for the sampling of rows, so that hundreds of Gaussians on small samples would
        cost as if they were of all rows. As a whole they cost what the learner was given, by their distribution of
        privacy losses: where that is cheaper, the epsilon and the delta alone describe all that is released.
        """
        return self.event if self.promise is None else self.promise

    def with_promise(self, budget: Loss, neighbours: Neighbours) -> TrainingPlan:
        """Returns the plan with the charge that takes the smaller share of an unused budget."""
        learner = self.learner
        known = {"epsilon", "delta"} <= learner.get_params(deep=False).keys()  # of a pipeline each learner has its own
        if not known or not getattr(budget, "delta", 0):  # such a budget cannot pay a promise with one
            return self
        cost = price_event(self.event, learner.epsilon, learner.delta, neighbours)
        if not isinstance(cost, ApproxDP):
            return self
        promise, calibrated = Approx(cost.epsilon, cost.delta), Calibrated(self.event, cost.epsilon, cost.delta)
        if any(isinstance(one, PoissonSampled) for one in terms(self.event, neighbours)):
            cheaper = share_of(promise, budget, neighbours) < share_of(self.event, budget, neighbours)
            return replace(self, promise=promise) if cheaper else self
        return replace(self, promise=calibrated)

    @property
    def request(self) -> ChargeRequest:
        """Returns the charge of the fit; its budget is among the learner's parameters, which the question holds."""
        return ChargeRequest(
            accounts=(self.account,),
            event=self.charge,
            question=self.question,
            replay_key=self.replay_key,
            terms="",
            sql=self.sql,
            asked=self.asked,
            periods=self.rows.periods,
        )

    @property
    def asked(self) -> Fraction | None:
        """Returns the learner's epsilon; of a pipeline, whose parts have one each, their sum; None if there is none."""
        if "epsilon" in self.learner.get_params(deep=False):
            return check.rational(epsilon=self.learner.epsilon)
        try:
            return compose(terms(self.charge, calibrated=True)).epsilon
        except UnsupportedEvent:
            return None

    @property
    def _reading_query(self) -> Question:
        """Returns the reading as a question, which is never answered as one."""
        return Question(
            table=self.table,
            source=self.rows.relation,
            where=self.where,
            keys=tuple(Key(f"#{place}", key) for place, key in enumerate(self._keys)),
            aggregates=(Aggregate(name="#n", kind="count"),),
            outputs=tuple(
                Output(column.name, ColumnRef(column.name, column.column.type)) for column in self.rows.columns
            ),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns what limits, bounds and defaults mean for the model; functions of public facts."""
        said = list(self.filled)
        if self.rows.schema.unit is not None:
            people = self.rows.schema.people or "unit"
            said.append(f"The model learns from at most {self.rows_per_unit} row(s) per {people}.")
            said += cut_notes(self.rows.relation, people)
            said.append(note_rows_without_id(people, "learned from"))
        if any(isinstance(feature, FileNumbers) for feature in self.features):
            said.append("Files are read as numbers of their declared shape and clipped. Others are blanks.")
        if any(isinstance(feature, Number) for feature in self.features):
            missing = (
                "stay missing until a step or the learner says what they mean" if self.raw else "count as the middle"
            )
            said.append(f"Numbers are clipped to public limits; missing ones {missing}.")
        if any(not isinstance(feature, Number | FileNumbers) for feature in self.features):
            said.append(
                "Texts are encoded by the categories of public steps. Any other text belongs to none of them."
                if self.raw
                else "Each public key of a text column is a feature. Any other text is none of them."
            )
        if isinstance(self.promise, Approx):
            said.append(
                "The account is charged the epsilon and delta of the whole fit, which is less than its steps cost."
            )
        if self.where is not None:
            said.append("Rows without a target are left out.")
        if self.neighbours is Neighbours.ADD_REMOVE:
            said.append("One synthetic row without values is added, so that a fit on no rows works like any other.")
        return tuple(said)

    # ----------------------------------------------------------------------------------------------------- rehearsal

    def rehearse(self) -> None:
        """Fits synthetic rows, with a seed: what would fail for what it is fails here, before anything is paid.

        Classes that would have to be found are made up as well, and then the price of finding them is checked apart.

        Raises:
            ValueError: as the learner says it; its cause is public.
            InternalError: if the learner would release something else than it planned.
        """
        learner = self.learner
        learner.set_params(random_state=0)
        X = self._make_example_rows()
        finds = isinstance(self.target, ClassLabels) and self.target.classes is None
        if finds:
            price_event(self.event, learner.epsilon, learner.delta, self.neighbours)
        y: NDArray[Any] | None = None
        if isinstance(self.target, ClassLabels):
            known = self.target.classes or self._set_placeholder_classes(learner)
            y = self.target.decode([known[place % len(known)] for place in range(REHEARSED)])
        elif self.target is not None:
            number = self.target.number
            y = self.target.decode([number.low if place % 2 else number.high for place in range(REHEARSED)])
        with in_an_account():
            model = learner.fit(X) if y is None else getattr(learner, "rehearse", learner.fit)(X, y)
        if not finds and model.event_ != self.event:
            raise InternalError(f"{type(learner).__name__} released something else than it planned.")
        from_json(to_json(model))

    def _make_example_rows(self) -> Any:
        """Returns synthetic rows at the ends of all limits; of a table, texts are keys, others, or missing."""
        if not self.raw:
            rows = [[low if place % 2 else high for low, high in self.limits] for place in range(REHEARSED)]
            return np.array(rows, dtype=np.float64).reshape(REHEARSED, len(self.names))
        columns = [
            [None, feature.low, feature.high] if isinstance(feature, Number) else [None, *(feature.keys or ()), "?"]
            for feature in self.features
            if isinstance(feature, Number | Text)
        ]
        return table(self.features, [[one[place % len(one)] for place in range(REHEARSED)] for one in columns])

    def _set_placeholder_classes(self, learner: Any) -> tuple[Value, ...]:
        """Sets classes for a rehearsal of a learner that would have to find them, or of those inside it."""
        known: tuple[Value, ...] = (0, 1) if self._made_up[-1] == 0 else ("a", "b")
        names = [name for name in learner.get_params() if name.split("__")[-1] == "classes"]
        learner.set_params(**{name: list(known) for name in names})
        return known
