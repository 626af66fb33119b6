"""Questions built step by step and asked on the spot: a frame that knows its curator."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Protocol

from discreet.check import Number
from discreet.curator.asking.answer import Answer
from discreet.curator.asking.explanation import Explanation
from discreet.curator.asking.planner import RequestedLimits
from discreet.dataclass import dataclass
from discreet.ledger import OWNER
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.plan.model.nodes import Value
from discreet.plan.model.sample import NOISE
from discreet.progress import Progress
from discreet.sql.frame import TableFrame


class QueryHandler(Protocol):
    """The methods that a frame calls, as a curator has them: each takes a question and its options."""

    def ask(self, *question: Any, **options: Any) -> Answer:
        """Answers a question; see `Curator.ask`."""

    def explain(self, *question: Any, **options: Any) -> Explanation:
        """Explains a question; see `Curator.explain`."""

    def rehearse(self, *question: Any, **options: Any) -> Answer:
        """Rehearses a question; see `Curator.rehearse`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratedFrame(TableFrame):
    """A question in the making that can be asked: what `Curator.table` gives.

    >>> from discreet.curator import Curator
    >>> from discreet.engines import Memory
    >>> from discreet.sql.frame import count
    >>> from discreet.privacy import Budget
    >>> curator = Curator(engine=Memory())
    >>> curator.protect([{"age": 40}], name="visits", types={"age": "int"}, budget=Budget(epsilon=1))
    >>> answer = curator.table("visits").where("age >= 40").agg(n=count()).ask(epsilon=0.25)
    >>> answer.columns, str(answer.cost)
    (('n', 'n_low', 'n_high'), 'epsilon=0.25, 25 % of the budget')
    """

    curator: QueryHandler = field(repr=False, compare=False)

    def ask(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: Number = CONFIDENCE,
        interval: str = NOISE,
        key: str | None = None,
        within: Number | None = None,
        max_epsilon: Number | None = None,
        project: str = "",
        profile: Number | None = None,
        coverage: Number | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Asks the question; see `Curator.ask`."""
        return self.curator.ask(
            self.question,
            epsilon=epsilon,
            delta=delta,
            limits=limits,
            other=other,
            analyst=analyst,
            confidence=confidence,
            interval=interval,
            key=key,
            within=within,
            max_epsilon=max_epsilon,
            project=project,
            profile=profile,
            coverage=coverage,
            progress=progress,
        )

    def explain(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: Number = CONFIDENCE,
        interval: str = NOISE,
        within: Number | None = None,
        max_epsilon: Number | None = None,
        project: str = "",
    ) -> Explanation:
        """Explains what the question would cost and read; see `Curator.explain`."""
        return self.curator.explain(
            self.question,
            epsilon=epsilon,
            delta=delta,
            limits=limits,
            other=other,
            analyst=analyst,
            confidence=confidence,
            interval=interval,
            within=within,
            max_epsilon=max_epsilon,
            project=project,
        )

    def rehearse(
        self,
        *,
        epsilon: Number = 1,
        delta: Number | None = None,
        limits: RequestedLimits = None,
        other: Value = None,
        analyst: str = OWNER,
        confidence: Number = CONFIDENCE,
    ) -> Answer:
        """Returns the shape of the answer, on synthetic rows; see `Curator.rehearse`."""
        return self.curator.rehearse(
            self.question,
            epsilon=epsilon,
            delta=delta,
            limits=limits,
            other=other,
            analyst=analyst,
            confidence=confidence,
        )
