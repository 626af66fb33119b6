"""Describes what every aggregate says of itself: its names, its arguments, what it needs, and how it is finished.

An aggregate owns no noise. Aggregates of one question share releases, so that one noisy count feeds COUNT, SUM and AVG:
each names its *needs*, equal needs are served once, and each is finished alone from what was released.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.hint_text import Hint
from discreet.measurement.intervals.estimators import Estimator
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import Need
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation(ABC):
    """One kind of aggregate that questions may ask for.

    Args:
        kind: what plans and their canonical texts call it; it never changes.
        label: what messages and unnamed columns call it; the kind in capitals unless it is given.
        functions: the SQL functions that are read as NAME(x), or NAME(x, y) if it takes two arguments; empty if its
            syntax is its own.
        arguments: how many it takes.
        bounded: whether its arguments must be numbers with public bounds.
        timed: whether they may be days and moments as well.
        listed: whether its argument must have public values, such as declared keys.
        power: the highest power of a value that it adds up, a product of two values being one of 2.
        drawn: whether it is drawn by the exponential mechanism, not added up.
        targetable: whether `within=` can solve for its error.
        quotient: the kinds of two aggregates of the same argument whose quotient it is.
    """

    kind: str
    label: str = ""
    functions: tuple[str, ...] = ()
    arguments: int = 1
    bounded: bool = False
    timed: bool = False
    listed: bool = False
    power: int = 0
    drawn: bool = False
    targetable: bool = False
    quotient: tuple[str, str] | None = None

    @property
    def word(self) -> str:
        """Returns what messages and columns call it."""
        return self.label or self.kind.upper()

    def write_call(self, argument: str) -> str:
        """Returns how SQL writes it."""
        return f"{self.word}({argument})"

    @property
    def no_target(self) -> tuple[str, str]:
        """Returns why `within=` refuses it, and what to do instead."""
        return Hint("{within} works for COUNT, SUM and AVG."), "Ask with an epsilon instead."

    @property
    def not_of_rows(self) -> tuple[str, str]:
        """Returns why it cannot stand where values of single rows do, and what to do instead."""
        return (
            "An aggregate is not allowed inside WHERE, GROUP BY or another aggregate.",
            "Filter groups with HAVING: {kept}.",
        )

    def result_type(self, argument: Expression | None) -> Type:
        """Returns the type of its values, given its first argument."""
        del argument
        return Type.FLOAT

    def check(self, argument: Expression, schema: TableSchema) -> None:
        """Refuses an argument that it does not take, beyond what `bounded` and `power` say.

        Raises:
            Mismatch: with a reason and a hint.
        """
        del argument, schema

    def adds_up(self, groups: int) -> bool:
        """Returns whether what it needs of several groups together is the sum of what it needs of each.

        Args:
            groups: how many groups a unit may be in.
        """
        del groups
        return True

    @abstractmethod
    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns what must be released for it."""

    @abstractmethod
    def estimator(self, aggregate: Aggregate, sources: Sources) -> Estimator:
        """Returns how it follows from what was released."""


def argument_of(aggregate: Aggregate) -> Expression:
    """Returns the argument of an aggregate that has one.

    Raises:
        InternalError: if a plan left it out.
    """
    if aggregate.argument is None:
        raise InternalError(f"An aggregate of the kind {aggregate.kind} has no argument.")
    return aggregate.argument
