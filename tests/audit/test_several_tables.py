"""Audits over several tables: ways, joins of one account, public tables beside them, and people of two accounts."""

from __future__ import annotations

import pytest

from discreet import audit
from discreet.privacy import Neighbours
from tests.audit.several import (
    OF_PATIENTS,
    OF_STAFF,
    ON_WAYS,
    PURE,
    THE_HOSPITAL,
    THE_SHOP,
    of_family,
    shopping,
    wards,
)


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_tables_on_a_way_pass(relation: Neighbours) -> None:
    found = audit.query(of_family(THE_SHOP, neighbours=relation), ON_WAYS, shopping(), neighbours=14)
    assert found.passed, found.summary()
    assert found.unit == "id"
    assert found.table == "customers, orders, items, notes"


def test_a_stranger_uses_up_what_was_paid_for_items() -> None:
    found = audit.query(of_family(THE_SHOP, budget=PURE), ON_WAYS[:1], shopping(), neighbours=6)
    assert (found.share, found.epsilon_lower) == (1, 1.0)


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_joins_of_one_account_and_people_of_two_pass(relation: Neighbours) -> None:
    asked = [*OF_PATIENTS, *OF_STAFF]
    found = audit.query(of_family(THE_HOSPITAL, neighbours=relation), asked, wards(), neighbours=12)
    assert found.passed, found.summary()
    assert found.unit == "patient or id or row"
    assert min(each.share for each in found.questions) > 0  # people of each account were changed
