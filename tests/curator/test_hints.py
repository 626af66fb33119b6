"""What a refusal proposes is accepted as it stands, by accounts with a delta and by accounts without one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import DiscreetError, UnsupportedQuery
from discreet.privacy import Budget, Loss
from discreet.sql.examples import Examples
from tests.corpus.questions import REALISTIC
from tests.corpus.worlds.every import WORLDS
from tests.effort import rounds, some
from tests.plan.tables import BARE, ROWS, VISITS
from tests.sql.test_refused import MARK, REFUSED

BUDGETS = {"pure": Budget(epsilon=10**6), "with delta": Budget(epsilon=10**6, delta="1e-3")}
REFUSED_TEXTS = [marked.replace(MARK, "") for marked, _ in REFUSED]
WITH_SEVERAL_TABLES = (
    "SELECT v.ward, COUNT(*) AS n FROM visits AS v JOIN more AS m ON v.patient_id = m.patient_id",
    "SELECT v.charge, COUNT(*) AS n FROM visits AS v JOIN more AS m ON v.patient_id = m.patient_id GROUP BY 1",
    "SELECT x, COUNT(*) AS n FROM (SELECT patient_id, UPPER(ward) AS x FROM visits) AS t",
    "SELECT x, COUNT(*) AS n FROM (SELECT patient_id, charge / 3 AS x FROM visits) AS t GROUP BY x",
    "SELECT patient_id IN (SELECT patient_id FROM more) AS x, COUNT(*) AS n FROM visits",
    "SELECT AVG(weight) AS m FROM (SELECT patient_id, SUM(weight) AS weight FROM visits GROUP BY patient_id) AS t",
)


@pytest.fixture(scope="module")
def curators() -> Iterator[dict[str, Curator]]:
    made = {name: _curator(budget) for name, budget in BUDGETS.items()}
    yield made
    for curator in made.values():
        curator.close()


def _curator(budget: Loss) -> Curator:
    curator = Curator(engine=Memory())
    for schema in (VISITS, ROWS, BARE):
        names: Any = {VISITS.name: ("visits", "more")}.get(schema.name, (schema.name,))
        for name in names:
            types = {column.name: column.type.value for column in schema.columns.values()}
            bounds = {c.name: (c.bounds.low, c.bounds.high) for c in schema.columns.values() if c.bounds}
            account = "patients" if len(names) > 1 else None
            declared: Any = {"types": types, "bounds": bounds, "account": account, "budget": budget}
            curator.protect([], name=name, unit=schema.unit, **{"max_rows": 1, **declared})
    return curator


def check_proposals(curator: Curator, sql: str) -> int:
    """How many questions a refusal proposes, if it is one; each of them is accepted."""
    try:
        curator.explain(sql, epsilon=1)
    except UnsupportedQuery as refused:
        proposed = re.findall("`([^`]*)`", refused.hint)
        for proposal in proposed:
            accept(curator, proposal)
        return len(proposed)
    except DiscreetError:
        pass
    return 0


@cache  # explaining changes nothing, and many refusals propose the same
def accept(curator: Curator, proposal: str) -> None:
    curator.explain(proposal, epsilon=1)


@pytest.mark.ci
@pytest.mark.parametrize("kind", BUDGETS)
def test_proposals_are_accepted(kind: str, curators: dict[str, Curator]) -> None:
    tried = some((*REFUSED_TEXTS, *WITH_SEVERAL_TABLES), 4)
    assert sum(check_proposals(curators[kind], sql) for sql in tried) > rounds(200, 45)


@pytest.mark.parametrize("table", ["rows_only", "bare"])
def test_proposals_are_accepted_whatever_the_table_declares(table: str, curators: dict[str, Curator]) -> None:
    found = [check_proposals(curators["pure"], sql.replace("visits", table)) for sql in some(REFUSED_TEXTS, 4)]
    assert sum(found) > rounds(100, 20)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("world", WORLDS)
def test_proposals_to_analysts_of_pure_accounts(world: str) -> None:
    with WORLDS[world].curator(Memory(), budget=BUDGETS["pure"]) as curator:
        for asked in some([asked for asked in REALISTIC if asked.world == world], 4):
            check_proposals(curator, asked.sql)


def test_mutant_examples_that_take_any_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Examples, "shows", lambda *_: True)
    sql = "SELECT MAX(ward) AS w FROM visits"
    with _curator(BUDGETS["pure"]) as curator, pytest.raises(UnsupportedQuery, match="are private"):
        check_proposals(curator, sql)


def test_private_groups_of_a_pure_account(curators: dict[str, Curator]) -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    with pytest.raises(UnsupportedQuery, match="Its account has none"):
        curators["pure"].explain(sql, epsilon=1)
    with pytest.raises(UnsupportedQuery, match="ask with a delta"):
        curators["with delta"].explain(sql, epsilon=1, delta=0)
    curators["with delta"].explain(sql, epsilon=1)
