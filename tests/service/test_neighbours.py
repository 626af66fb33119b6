"""Neighbouring tables give equal bytes, log lines and metrics on every face of the service; strangers get nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from discreet.curator.served import source_of, table_facts
from discreet.errors import InvalidParameter
from discreet.service.caller import PERMISSIONS, ServiceRole
from discreet.service.request_executor import OPERATIONS, Operation
from discreet.service.worker import operations
from tests.faces.tape import heard
from tests.service import whole_service
from tests.service.requests_matrix import (
    ALLOWED,
    UNPAID,
    Cell,
    allowed,
    api_cells,
    outcomes,
    page_cells,
    status,
    targets,
)
from tests.service.whole_service import REMOVED, visits, whole

Found = dict[str, tuple[Cell, list[bytes]]]
ROLES = (ServiceRole.ANALYST, ServiceRole.STEWARD, ServiceRole.AUDITOR, ServiceRole.OWNER)


def both(folder: Path, role: ServiceRole, only: str = "") -> tuple[Found, Found]:
    """What a role gets on a table, and then on its neighbour with what was released on the first."""
    kept: list[Any] = []
    found = []
    for again in (False, True):
        with whole(folder / "service", kept, again=again) as made, heard() as lines:
            shown = asyncio.run(outcomes(made, role, only))
            beside = {"service log": [line.encode() for line in lines], "service metrics": counts(made)}
            found.append({**shown, **{name: (Cell(**_BESIDE, name=name), got) for name, got in beside.items()}})
    return found[0], found[1]


_BESIDE: dict[str, Any] = {"front": "service", "permission": None, "requests": ()}


def counts(made: whole_service.Whole) -> list[bytes]:
    """Metrics without durations, which no table of this size decides."""
    return [line for line in made.metrics.text().splitlines() if b"_seconds" not in line and b"_created" not in line]


def differing(one: Found, other: Found) -> set[str]:
    assert one.keys() == other.keys()
    return {label for label in one if one[label][1] != other[label][1]}


def test_neighbours_differ_by_one_person() -> None:
    assert len(visits()) - len(visits(without=REMOVED)) == 2
    assert REMOVED not in set(visits(without=REMOVED).patient)


FEW = "api ask, api list_tables, api list_budgets, api get_history, api amend, page GET /ask, page POST /ask, "
FEW += "page POST /explain, page POST /attack, page GET /budget, wire SET, wire SHOW, wire COPY, wire extended"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("role", "only"),
    [(ServiceRole.ANALYST, FEW), *(pytest.param(role, "", marks=pytest.mark.slow) for role in ROLES)],
)
def test_neighbouring_tables_give_equal_bytes(tmp_path: Path, role: ServiceRole, only: str) -> None:
    """The quick suite tries some cells of one role, the slow one all of all."""
    one, other = both(tmp_path, role, only)
    assert differing(one, other) - set(UNPAID) == set()
    for label, (cell, got) in one.items():
        assert got, label
        if cell.front == "service":
            continue
        if cell.front == "wire":
            assert not any(b"C55000\0" in each for each in got), label  # or no question was asked, and none compared
            refused = any(b"C42501\0" in each for each in got)
            assert refused is not allowed(cell, role) or cell.name in ("GRANT", "REVOKE", "REASSIGN"), label
        else:
            assert all((status(each) in (401, 403)) is not allowed(cell, role) for each in got), (label, got)
            signed_out = any(b"location: /sign-in" in each for each in got)
            assert not signed_out or cell.name == "POST /sign-out", label  # or it would be compared for strangers


def test_what_roles_may_is_what_is_written_here() -> None:
    assert {role: set(given) for role, given in PERMISSIONS.items()} == ALLOWED


@pytest.mark.parametrize("role", [ServiceRole.ANALYST, ServiceRole.AUDITOR])
def test_data_is_read_unpaid_for_stewards_only(role: ServiceRole) -> None:
    assert not ALLOWED[role] & set(UNPAID.values())
    unpaid = {each for each in OPERATIONS.values() if not each.charges and each.permission in UNPAID.values()}
    assert unpaid == {OPERATIONS["inspect"], OPERATIONS["attack"], OPERATIONS["protect"]}


@pytest.mark.ci
def test_strangers_get_nothing(tmp_path: Path) -> None:
    async def test(made: whole_service.Whole) -> None:
        about = targets(made, ServiceRole.ANALYST)
        before, done = made.entries(), len(made.desk.done)
        for cell in (*api_cells(made, about), *page_cells(about)):
            for method, path, sent in cell.requests:
                if cell.front == "api":
                    assert (await made.call(None, method, path, json=sent)).status_code == 401
                else:
                    got = await made.visit(None, method, path, data=sent)
                    assert (got.status_code, got.headers["location"][:8]) == (303, "/sign-in")
        assert (made.entries(), len(made.desk.done)) == (before, done)

    with whole(tmp_path / "service", [], again=False) as made:
        asyncio.run(test(made))


# ----------------------------------------------------------------------------------------------------------- mutants


def _rows(curator: Any) -> int:
    return len(source_of(curator, "visits"))


honest_verb = operations._perform_verb


def _noted(curator: Any, *asked: Any) -> Any:
    made = honest_verb(curator, *asked)
    return {**made, "notes": [*made["notes"], f"{_rows(curator)} rows were read."]}


def _failing(curator: Any, *asked: Any) -> Any:
    if _rows(curator) > len(visits(without=REMOVED)):
        raise InvalidParameter("visits", "this table", "to have fewer rows", "Take some out.")
    return honest_verb(curator, *asked)


def _counted(curator: Any, *asked: Any) -> Any:
    return {**honest_verb(curator, *asked), "text": f"Reads {_rows(curator)} rows."}


ASKED = "api ask, page POST /ask, wire SET, wire SELECT"
EXPLAINED = "api explain, wire SET, wire EXPLAIN"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("operation", "mutant", "cells"),
    [
        (OPERATIONS["ask"], _noted, ASKED),
        pytest.param(OPERATIONS["ask"], _failing, ASKED, marks=pytest.mark.slow),
        pytest.param(OPERATIONS["explain"], _counted, EXPLAINED, marks=pytest.mark.slow),
    ],
)
def test_what_is_told_of_exact_rows_is_seen(
    tmp_path: Path, operation: Operation, mutant: Callable[..., Any], cells: str
) -> None:
    def leaking(curator: Any, verb: Any, *asked: Any) -> Any:
        return (mutant if verb.name == operation.value else honest_verb)(curator, verb, *asked)

    with patch.object(operations, "_perform_verb", leaking):
        one, other = both(tmp_path, ServiceRole.ANALYST, cells)
    told = {"service log", "service metrics"} if mutant is _failing else set()
    assert differing(one, other) == set(cells.split(", ")) - {"wire SET"} | told


@pytest.mark.ci
def test_facts_that_hold_a_count_are_seen(tmp_path: Path) -> None:
    def facts(curator: Any) -> Any:
        return [{**each, "rows": _rows(curator)} for each in honest(curator)]

    honest = table_facts
    with patch.object(whole_service, "table_facts", facts):
        one, other = both(tmp_path, ServiceRole.ANALYST, "api list_tables, api get_table")
    assert differing(one, other) == {"api list_tables", "api get_table"}
