"""Questions in the words of DuckDB and PostgreSQL: answered as plain SQL would, or refused with one that is answered.

They were written before anything was built for them, to measure what people write. Noise, limits and bounds are those
of `test_realistic`: nothing is left but the grid.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from discreet.curator import Answer, Curator
from discreet.errors import DiscreetError, UnsupportedQuery
from tests.cases import try_all
from tests.corpus.questions import EVERYDAY, PENDING_EVERYDAY, Everyday
from tests.corpus.truth import check, check_order, truth
from tests.corpus.worlds import bikes
from tests.corpus.worlds.every import WORLDS
from tests.effort import some

EPSILON, DELTA = 10**12, Fraction(1, 10**4)
ANSWERED = 107
"""How many are answered; it only grows."""
TODAY = dt.date(2025, 12, 31)
"""What CURRENT_DATE stands for in the truths."""
PLACES = WORLDS | {"bikes": bikes.world()}
NOT_YET = (DiscreetError, AssertionError, pytest.fail.Exception)
_PROPOSED = re.compile(r"`((?:SELECT|FROM|WITH)\b[^`]+)`", re.IGNORECASE)


@pytest.fixture(scope="module")
def curators() -> Iterator[dict[str, Curator]]:
    made = {name: world.curator(today=TODAY) for name, world in PLACES.items()}
    yield made
    for curator in made.values():
        curator.close()


@pytest.fixture(scope="module")
def plain() -> dict[str, duckdb.DuckDBPyConnection]:
    return {name: world.plain() for name, world in PLACES.items()}


def _ask(curator: Curator, asked: Everyday) -> Answer:
    return curator.ask(asked.sql, parameters=asked.parameters, epsilon=EPSILON, delta=DELTA)


def _is_as_in_plain_sql(asked: Everyday, curator: Curator, plain: duckdb.DuckDBPyConnection) -> None:
    answer = _ask(curator, asked)
    assert asked.truth is not None
    assert len(answer) > 0
    tree = sqlglot.parse_one(asked.truth, dialect="duckdb")
    check(answer, truth(asked.truth, PLACES[asked.world], plain), _limit(tree))
    if tree.args.get("order") is not None:
        check_order(answer, plain.execute(asked.truth).fetchall())


def _limit(tree: exp.Expr) -> int | None:
    """How many rows are asked for, by LIMIT or by FETCH FIRST."""
    limit = tree.args.get("limit")
    return None if limit is None else int((limit.args.get("count") or limit.expression).name)


def _is_refused_with_a_remedy(asked: Everyday, curator: Curator) -> None:
    """What a refusal proposes is asked word for word."""
    with pytest.raises(UnsupportedQuery) as refused:
        _ask(curator, asked)
    proposed = _PROPOSED.findall(refused.value.hint)
    assert proposed, refused.value.hint
    for sql in proposed:
        assert len(curator.ask(sql, epsilon=EPSILON, delta=DELTA)) > 0, sql


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("world", PLACES)
def test_gets_its_verdict(
    world: str, curators: dict[str, Curator], plain: dict[str, duckdb.DuckDBPyConnection]
) -> None:
    """A pending question is refused, with a remedy that works; one that is answered leaves pending_everyday.txt."""

    def judge(asked: Everyday) -> None:
        if asked.truth is None:
            _is_refused_with_a_remedy(asked, curators[world])
        else:
            _is_as_in_plain_sql(asked, curators[world], plain[world])

    def verdict(asked: Everyday) -> None:
        try:
            judge(asked)
        except NOT_YET:
            if asked.name not in PENDING_EVERYDAY:
                raise
            _is_refused_with_a_remedy(asked, curators[world])
        else:
            assert asked.name not in PENDING_EVERYDAY, "gets its verdict: take it out of pending_everyday.txt"

    try_all(some([asked for asked in EVERYDAY if asked.world == world], 4), verdict)


@pytest.mark.ci
def test_questions_and_their_truths_are_sql(plain: dict[str, duckdb.DuckDBPyConnection]) -> None:
    """A text that no engine takes would prove nothing by being refused."""

    def runs(asked: Everyday) -> None:
        connection = plain[asked.world]
        if asked.dialect == "duckdb":
            connection.execute(asked.sql, asked.parameters).fetchall()
        if asked.truth is not None:
            assert connection.execute(asked.truth).fetchall()

    try_all(some(EVERYDAY, 2), runs)


def test_the_corpus_is_what_it_says() -> None:
    assert Counter(asked.dialect for asked in EVERYDAY) == {"duckdb": 60, "postgres": 60}
    assert len({asked.name for asked in EVERYDAY}) == len(EVERYDAY)
    assert sum(asked.truth is None for asked in EVERYDAY) <= 10
    assert {asked.name for asked in EVERYDAY} >= PENDING_EVERYDAY


def test_so_many_are_answered() -> None:
    answered = [asked for asked in EVERYDAY if asked.truth is not None and asked.name not in PENDING_EVERYDAY]
    assert len(answered) == ANSWERED
