"""Audits of ROLLUP, CUBE and GROUPING SETS, and of a group for what is not shown: one charge, several releases."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet import audit
from discreet.privacy import Neighbours
from tests.audit.held import PURE, clinic
from tests.curator.clinic import visits

ROWS = visits(3, patients=40)
PUBLIC = (
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)",
    "SELECT ward, age > 40 AS old, COUNT(*) AS n, SUM(charge) AS s FROM visits GROUP BY CUBE (ward, old)",
    "SELECT ward, MEDIAN(age) AS m, MODE(ward) AS w FROM visits GROUP BY ROLLUP (ward)",
)
PRIVATE = (
    "SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward, kind), (kind), ())",
    "SELECT kind, AVG(age) AS a, MEDIAN(age) AS m FROM visits GROUP BY ROLLUP (kind)",
    "SELECT kind, COUNT(*) AS n, (SELECT COUNT(*) FROM visits) AS whole FROM visits GROUP BY kind",
)
GATHERED = (
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind",
    "SELECT kind, SUM(charge) AS s, AVG(age) AS a FROM visits GROUP BY kind",
)


def test_all_groupings_are_one_charge() -> None:
    """Those with private keys, too; nobody uses more than was paid in all of them together."""
    found = audit.query(clinic(), [PUBLIC[0], PRIVATE[0]], ROWS, neighbours=4)
    assert found.passed, found.summary()
    assert all(Fraction(1, 3) < each.share <= 1 for each in found.questions)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "outputs",
    ["MAX(age) AS m, COUNT(*) AS n", "MAX(age) AS m, AVG(age) AS a, COUNT(*) AS n", "MODE(ward) AS o, COUNT(*) AS n"],
)
@pytest.mark.parametrize("sets", ["ROLLUP (ward)", "GROUPING SETS ((ward), (old))", "CUBE (ward, old)"])
def test_noise_and_draws_may_have_one_price(outputs: str, sets: str) -> None:
    """With a delta, a count and a drawn point are paid with the same rho, and are told in other numbers of ways."""
    asked = f"SELECT ward, age > 40 AS old, {outputs} FROM visits GROUP BY {sets}"
    if sets.startswith("ROLLUP"):
        asked = f"SELECT ward, {outputs} FROM visits GROUP BY {sets}"
    found = audit.query(clinic(), asked, ROWS, neighbours=2)
    assert found.passed, found.summary()


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
@pytest.mark.parametrize("delta", ["0", None], ids=["pure", "with delta"])
def test_whatever_is_asked_of_groupings(relation: Neighbours, delta: str | None) -> None:
    asked = [*PUBLIC, *(PRIVATE if delta is None else ())]
    found = audit.query(clinic(neighbours=relation), asked, ROWS, delta=delta, neighbours=16)
    assert found.passed, found.summary()
    assert all(Fraction(1, 5) < each.share <= 1 for each in found.questions)


def test_one_person_uses_up_the_charge_of_a_rollup() -> None:
    """Somebody in two wards, and in the total: what was paid, to the last bit, and certified."""
    found = audit.query(clinic(budget=PURE), PUBLIC[0], ROWS, neighbours=4)
    assert found.share == 1
    assert found.epsilon_lower == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "200"], ids=["some are hidden", "all are shown"])
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_what_is_not_shown_is_one_more_group(relation: Neighbours, epsilon: str) -> None:
    found = audit.query(
        clinic(neighbours=relation), GATHERED, ROWS, other="elsewhere", epsilon=epsilon, delta="1e-6", neighbours=16
    )
    assert found.passed, found.summary()
    assert found.share <= 1


def test_declared_keys_have_one_more_group_too() -> None:
    by_ward = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    assert audit.query(clinic(), by_ward, ROWS, other="elsewhere", neighbours=4).passed
