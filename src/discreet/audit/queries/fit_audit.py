"""Audits of fits: a learner on the user's own rows, and on those of neighbours, with the same noise coming out.

While a learner is fitted, what every mechanism is given is recorded, with what it releases; on a neighbour the same is
released again. The rows that both have come first, in one order, so that coins which a learner tosses for each row fall
alike for them, as they do for one and the same person in the proofs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.audit.queries.fit_verdicts import AuditedFit, FitComparison, FitRecord, include_all, verdict
from discreet.audit.queries.mechanism_recorder import MechanismCall, MechanismRecorder, watch_mechanisms
from discreet.audit.queries.neighbours import NeighbouringTables
from discreet.audit.queries.query_audit import NEIGHBOURS, ROWS, Progress
from discreet.audit.queries.query_verdict import QueryAudit, QueryVerdict
from discreet.audit.queries.recorder import SALT, RecordingEngine, account, attempt_call
from discreet.audit.queries.subject import Subject
from discreet.audit.queries.verdicts import NoiseSize, Violation
from discreet.curator import Curator
from discreet.curator.observation import engine_of, observe_curator, training_of
from discreet.dataclass import dataclass
from discreet.engines import Engine
from discreet.errors import InvalidParameter
from discreet.measurement.releases.open_exact import open_exact
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import Bits, SeededBits
from discreet.plan.model.relations import tables
from discreet.progress import stage, told_to, unheard

Rows = tuple[NDArray[np.float64], NDArray[Any] | None]
"""Features and target, as a learner is given them."""

_SEED = 1


def fit(
    curator_factory: Callable[[Any], Curator],
    estimator: Any,
    sql: str,
    table: Any,
    *,
    target: str | None = None,
    rows_per_unit: int = 1,
    name: str | None = None,
    neighbours: int = NEIGHBOURS,
    rows: int = ROWS,
    bits: Bits | None = None,
    progress: Progress | None = None,
) -> QueryAudit:
    """Fits a learner on a table and on its neighbours, and checks whether anything but noise separates the models.

    One person must change no more rows of the learner's input than it accounts for; every number that a mechanism is
    given must move no farther than the mechanism says that it hides; all of them together must cost no more than was
    charged; and with the same noise the models must be the same, in every number and shape.

    Args:
        curator_factory: as for `query`.
        estimator: a learner of `discreet.learn`, as for `Curator.fit`.
        sql: the rows, as for `Curator.fit`.
        table: as for `query`: one table, or a mapping of all protected tables that the rows are made of.
        target: as for `Curator.fit`.
        rows_per_unit: as for `Curator.fit`.
        name: as for `query`.
        neighbours: as for `query`.
        rows: as for `query`.
        bits: as for `query`.
        progress: as for `query`.

    Raises:
        InvalidParameter: if the curator or the learner is refused, or noise enters where no input of it can be seen: in
            the objective of `method="objective"`.
        UnsupportedQuery: if the rows cannot be learned from privately.
    """
    wanted = check.integer(neighbours=neighbours, at_least=1, at_most=10**6)
    most = check.integer(rows=rows, at_least=1, at_most=10**7)
    source = SeededBits(_SEED) if bits is None else bits
    given = Subject.of(curator_factory, table, name)
    asked = AuditedFit(estimator=estimator, sql=sql, target=target, rows_per_unit=rows_per_unit)
    with given.curator() as curator:
        training = training_of(curator, *asked.arguments)
        training.rehearse()
        source_rows = training.reading.source
        given.check_read({training.table, *(tables(source_rows) if source_rows is not None else ())})
    noise = SeededBits(source.integer(64))
    stage("Fitting to neighbouring tables")
    tried = _Trial(given.sample(most, source), asked, noise)
    for done, pair in enumerate(tried.given.pairs(wanted, source), 1):
        with told_to(unheard):
            tried.take(*pair)
        if progress is not None:
            progress(done, wanted)
    return tried.verdict()


class _Recorder(Releaser):
    """Fits learners whose mechanisms are watched.

    Args:
        bits: of the noise.
        common: rows that both neighbours have, and how often.
        frozen: what came out of a neighbour's mechanisms.
        alone: how many rows one person may have.
        seed: of what a learner draws besides noise: the same on both tables, as it is public.
    """

    def __init__(
        self, bits: Bits, common: Counter[Any], *, frozen: list[MechanismCall] | None, alone: int, seed: int
    ) -> None:
        super().__init__(bits)
        self.common, self.seed = common, seed
        self.recorder = MechanismRecorder(bits, frozen=frozen, alone=alone, seed=seed)
        self.model: Any = None

    def fit_rows(self, learner: Any, X: NDArray[np.float64], y: NDArray[Any] | None) -> Any:
        order = _common_first(rows_of(X, y), self.common)
        if learner.random_state is None:
            learner.set_params(random_state=self.seed)
        with watch_mechanisms(self.recorder):
            self.model = super().fit_rows(learner, X[order], None if y is None else y[order])
        return self.model


def rows_of(X: NDArray[np.float64], y: NDArray[Any] | None) -> list[Any]:
    """Returns rows that can be compared: equal bytes, equal label."""
    labels = [None] * len(X) if y is None else y.tolist()
    return [(row.tobytes(), label) for row, label in zip(X, labels, strict=True)]


def _common_first(rows: Sequence[Any], common: Counter[Any]) -> list[int]:
    """Returns the places of rows: those that both neighbours have, then the others, in the order in which they are."""
    left, first, last = Counter(common), list[int](), list[int]()
    for place, row in enumerate(rows):
        (first if left[row] > 0 else last).append(place)
        left[row] -= 1
    return [*first, *last]


@dataclass
class _Trial:
    """Tries pairs of neighbours, one after the other."""

    given: Subject
    asked: AuditedFit
    bits: Bits
    violations: list[Violation] = field(default_factory=list)
    pairs: int = 0
    answered: int = 0
    status: str = "answered"
    releases: int = 0
    share: Fraction = field(default_factory=Fraction)
    noise_size: NoiseSize = field(default_factory=NoiseSize)

    def take(self, account_name: str, pair: NeighbouringTables) -> None:
        """Makes both curators, and has them fit."""
        self.pairs += 1
        with self.given.curator(pair.one) as one, self.given.curator(pair.other) as other:
            self.violations += self.given.declared_alike(pair.name, one, other)
            first, second = self._fit_pair(one, other)
            compared = verdict(self.asked, first, second, one.account(account_name))
        named = self.asked.name
        self.violations += [Violation(kind, pair.name, due, found, named) for kind, due, found in compared.faults]
        self._note(compared)

    def _fit_pair(self, *curators: Curator) -> tuple[FitRecord, FitRecord]:
        engines = [RecordingEngine(engine_of(curator)) for curator in curators]
        handed = [_read_training_rows(*each, self.asked) for each in zip(curators, engines, strict=True)]
        bags = [Counter(rows_of(*rows)) for rows in handed]
        common, apart = bags[0] & bags[1], sum(((bags[0] - bags[1]) + (bags[1] - bags[0])).values())
        alike: dict[str, Any] = {"alone": self.asked.rows_per_unit, "seed": self.bits.integer(31)}
        recorder = _Recorder(self.bits, common, frozen=None, **alike)
        first = _fit_and_record(curators[0], engines[0], self.asked, recorder)
        recorder = _Recorder(self.bits, common, frozen=first.handed, **alike)
        second = _fit_and_record(curators[1], engines[1], self.asked, recorder)
        first.apart = second.apart = apart
        return first, second

    def _note(self, compared: FitComparison) -> None:
        seen = compared.seen
        if seen.unjudged:
            hint = "Use another method, e.g. method='gradient'; `audit.distinguish` looks at a learner from outside."
            raise InvalidParameter("estimator", seen.unjudged, "to add noise to numbers that it releases", hint)
        if seen.status != "answered":
            self.status = seen.status
            return
        self.answered += 1
        self.releases = max(self.releases, len(seen.handed))
        self.share = max(self.share, compared.share)
        include_all(self.noise_size, seen.handed)

    def verdict(self) -> QueryAudit:
        """Returns what was found."""
        audited = QueryVerdict(
            sql=self.asked.name,
            answered=self.answered,
            replayed=0,
            status=self.status,
            releases=self.releases,
            epsilon_lower=0.0,
            share=self.share,
        )
        return QueryAudit(
            questions=(audited,),
            epsilon_claimed=check.positive(epsilon=self.asked.estimator.epsilon),
            delta_claimed=check.not_negative(delta=self.asked.estimator.delta or 0),
            neighbours=self.pairs,
            relation=self.given.relation,
            unit=self.given.unit,
            table=", ".join(self.given.schemas),
            violations=(*self.violations, *self._wrong_sizes()),
            subject="fit",
        )

    def _wrong_sizes(self) -> Iterator[Violation]:
        if not self.noise_size.is_plausible:
            found = f"noise {self.noise_size.ratio:.3g} times as large"
            due = "noise of the size that was paid for"
            yield Violation("noise", "all pairs together", due, found, self.asked.name)


def _read_training_rows(curator: Curator, engine: RecordingEngine, asked: AuditedFit) -> Rows:
    """Returns the rows that a learner will be given; read for the audit, and not counted among its reads."""
    twin = observe_curator(curator, engine=engine, releaser=Releaser(SeededBits(_SEED)), salt=SALT)
    training = training_of(twin, *asked.arguments)
    inner: Engine = engine.inner
    return training.decode(open_exact(inner.read(training.reading)).groups)


def _fit_and_record(curator: Curator, engine: RecordingEngine, asked: AuditedFit, recorder: _Recorder) -> FitRecord:
    """Fits a learner and returns what happened."""
    before = len(curator.entries())
    twin = observe_curator(curator, engine=engine, releaser=recorder, salt=SALT)
    estimator, sql, target, rows_per_unit = asked.arguments
    status, error, model = attempt_call(lambda: twin.fit(estimator, sql, target=target, rows_per_unit=rows_per_unit))
    inside = recorder.recorder
    seen = FitRecord(status, error, model=model, handed=inside.made, fitted=recorder.model)
    seen.reads, seen.strayed, seen.unjudged = len(engine.seen), inside.strayed, inside.unjudged
    account(seen, curator, before)
    return seen
