"""Observing a curator at work: an audit sees what is read, and the numbers before noise is added.

What is seen that way is exact, so a curator with private answers may not be observed: only those made by
`Curator.for_tests` with seeded noise, whose answers all say that they are not private.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from discreet.curator.curator import Curator
from discreet.engines.abstract_engine import Engine
from discreet.errors import InvalidParameter
from discreet.measurement.probes.probes import read_by
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import Bits
from discreet.plan.model.schema import TableSchema

if TYPE_CHECKING:
    from discreet.curator.training.training_plan import TrainingPlan


def check_observable(curator: object) -> Curator:
    """Returns the curator, if it may be observed.

    Raises:
        InvalidParameter: if its answers may be private.
    """
    if not isinstance(curator, Curator) or curator._releaser.bits.private:
        hint = "Make it with Curator.for_tests(..., bits=SeededBits(1)). Its answers are marked as not private."
        raise InvalidParameter("curator", type(curator).__name__, "to be a test curator with seeded noise", hint)
    return curator


def observe_curator(curator: Curator, *, engine: Engine, releaser: Releaser, salt: str) -> Curator:
    """Returns a curator of the same tables and the same ledger that an observer looks at; the given one stays as it is.

    Args:
        curator: for tests, with seeded noise.
        engine: which it reads from, in place of the curator's own.
        releaser: which adds its noise; seeded as well.
        salt: by which it chooses whose rows are kept: the same for neighbours, which must keep the same rows.

    Raises:
        InvalidParameter: if its answers may be private.
    """
    twin = copy(check_observable(curator))
    if releaser.bits.private:
        hint = "Answers of observed curators are not private."
        raise InvalidParameter("releaser", "secure noise", "to be seeded", hint)
    twin._measure_with(engine, releaser, salt=salt)
    return twin


def engine_of(curator: Curator) -> Engine:
    """Returns the engine in which a curator for tests has its tables."""
    return check_observable(curator)._engine


def bits_of(curator: Curator) -> Bits:
    """Returns what a curator for tests draws noise with."""
    return check_observable(curator)._releaser.bits


def schemas_of(curator: Curator) -> dict[str, TableSchema]:
    """Returns what is declared about all tables of a curator for tests, public ones included."""
    return check_observable(curator)._catalog.schemas


def tables_read(curator: Curator, question: str) -> set[str]:
    """Returns the names of the tables that a curator for tests reads for a question.

    Raises:
        UnsupportedQuery: if the question is refused.
    """
    catalog = check_observable(curator)._catalog
    return {schema.name for schema in read_by(catalog.parse(question), catalog.schemas)}


def training_of(
    curator: Curator, estimator: Any, question: str, target: str | None, rows_per_unit: int
) -> TrainingPlan:
    """Returns a fit of a curator for tests before its charge: what would be read, and how it becomes a learner's rows.

    Raises:
        UnsupportedQuery: if the rows cannot be learned from privately.
        InvalidParameter: if the learner is refused.
    """
    return check_observable(curator)._trainer.plan(estimator, question, target, rows_per_unit)


def is_in_memory(curator: Curator) -> bool:
    """Returns whether the ledger of a curator for tests is in memory, so that no real account is charged."""
    return check_observable(curator)._ledger.in_memory
