"""Watching a curator at work: an audit looks at what is read, and stands where numbers meet noise.

What is seen that way is exact, so nobody may be watched whose answers protect somebody: only curators made by
`Curator.for_tests` with seeded noise, all of whose answers say that they are not private.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from discreet.curator.curator import Curator
from discreet.engines.base import Engine
from discreet.errors import InvalidParameter
from discreet.measurement.probes.probes import read_by
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import Bits
from discreet.plan.model.schema import TableSchema

if TYPE_CHECKING:
    from discreet.curator.training.training_plan import Training


def check_watchable(curator: object) -> Curator:
    """The curator, if it may be watched.

    Raises:
        InvalidParameter: if its answers may protect somebody.
    """
    if not isinstance(curator, Curator) or curator._releaser.bits.private:
        hint = "Make it with Curator.for_tests(..., bits=SeededBits(1)): its answers say that they are not private."
        raise InvalidParameter("curator", type(curator).__name__, "to be one for tests, with seeded noise", hint)
    return curator


def engine_of(curator: Curator) -> Engine:
    """Where a curator for tests reads."""
    return check_watchable(curator)._engine


def schema_of(curator: Curator, name: str) -> TableSchema:
    """What is declared about a table of a curator for tests, and nothing that is supposed in its place."""
    return check_watchable(curator)._schema(name)


def known_to(curator: Curator) -> dict[str, TableSchema]:
    """What is declared about all tables of a curator for tests, public ones included."""
    return check_watchable(curator)._known


def tables_read(curator: Curator, question: str) -> set[str]:
    """The names of the tables that a curator for tests reads for a question.

    Raises:
        UnsupportedQuery: if the question is refused.
    """
    plan, _ = check_watchable(curator)._plan(question)
    return {schema.name for schema in read_by(plan, curator._known)}


def training_of(curator: Curator, estimator: Any, question: str, target: str | None, rows_per_unit: int) -> Training:
    """A fit of a curator for tests before its charge: what would be read, and how it becomes a learner's rows.

    Raises:
        UnsupportedQuery: if the rows cannot be learned from privately.
        InvalidParameter: if the learner is refused.
    """
    return check_watchable(curator)._training(estimator, question, target, rows_per_unit)


def is_play(curator: Curator) -> bool:
    """Whether the ledger of a curator for tests is in memory, so that nobody is charged who exists."""
    return check_watchable(curator)._book.in_memory


def bits_of(curator: Curator) -> Bits:
    """What a curator for tests draws noise with."""
    return check_watchable(curator)._releaser.bits


@contextmanager
def watching(curator: Curator, *, engine: Engine, releaser: Releaser, salt: str) -> Iterator[None]:
    """Has a curator for tests read from an engine, release by a releaser, and choose rows by a salt.

    However it ends, everything is put back.

    Args:
        curator: for tests, with seeded noise.
        engine: which stands before the curator's own.
        releaser: which stands in the place of the curator's own; seeded as well.
        salt: the same for neighbours, which must keep the same rows.

    Raises:
        InvalidParameter: if its answers may protect somebody.
    """
    before = check_watchable(curator)._engine, curator._releaser, curator._salt
    if releaser.bits.private:
        raise InvalidParameter(
            "releaser", "secure noise", "to be seeded", "Answers of watched curators are not private."
        )
    curator._engine, curator._releaser, curator._salt = engine, releaser, salt
    try:
        yield
    finally:
        curator._engine, curator._releaser, curator._salt = before
