"""The tests of the ledger again, on PostgreSQL: every path and every ledger in memory becomes a schema there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import psycopg
import pytest

from discreet.ledger.store import place as places
from discreet.ledger.store.ledger_store import Store
from discreet.ledger.store.sqlite import MEMORY
from discreet.postgres_url import is_postgres, without
from tests.ledger import test_accounts, test_answers, test_chain, test_failures, test_money, test_projects
from tests.ledger.caps import test_approvals, test_period_budgets, test_reserves, test_teams
from tests.ledger.renewal import test_renewals
from tests.ledger.renewal.test_renewals import machine
from tests.ledger.test_chain import path

__all__ = ["machine", "path"]

QUICK = {test_projects}
"""These run in the quick suite, all others in the slow one."""

MODULES = (
    *(test_accounts, test_answers, test_chain, test_failures, test_money, test_projects),
    *(test_approvals, test_period_budgets, test_renewals, test_reserves, test_teams),
)

MOST_OPEN = 20  # ledgers at once: a server takes only so many connections, and a property opens one for each example

FILES = {
    "test_a_crash_leaves_the_charge_and_uses_no_credit_or_one",  # fails in the way of SQLite
    "test_no_error_repeats_a_question_an_answer_or_a_key",
    "test_backup_and_restore",
    "test_a_changed_balance_is_never_spent",  # looks into the file
    "test_a_flipped_bit_is_found_or_changes_nothing",
    "test_plain_sql_cannot_rewrite_the_ledger",
    "test_altered_triggers_are_noticed_on_opening",
    "test_yesterdays_file_verifies_and_only_the_anchor_tells",
    "test_a_process_notices_that_its_ledger_grew_younger",
    "test_a_ledger_of_version_1_verifies_for_ever",
    "test_the_charges_of_version_1_have_the_same_prices",
    "test_failures_of_earlier_versions_verify_and_count_for_whoever_had_them",
    "test_old_and_new_failures_add_up_until_a_steward_unlocks",
    "test_charges_leave_nothing_to_the_garbage_collector",  # about the rows of SQLite
    "test_a_team_that_forgets_is_found_out",  # looks into the file
    "test_copies_have_the_version_that_their_entries_need",
    "test_charges_beyond_a_cap_without_an_approval_are_found_out",
    "test_nothing_renews_by_a_clock_that_was_set_forward",  # a server has one clock
    "test_what_was_charged_by_a_clock_in_doubt_stops_renewals_until_a_steward_decides",
    "test_three_years_of_wrong_clocks_and_kills",
    "test_fewer_charges_in_three_years",
    "test_a_renewal_that_believes_any_clock_is_seen",
    "test_an_entry_that_hides_a_period_is_found",  # looks into the file
    "test_sums_of_periods_are_sealed",
    "test_what_a_lost_ledger_had_spent_counts_in_every_period",
    "test_each_month_of_rows_spends_one_amount_in_ten_thousand_charges",
}
"""Tests of ledger files alone; what they show of PostgreSQL is in test_postgres.py."""


def _found() -> dict[str, Any]:
    """Every other test of the ledger, by its name; one that needs no ledger runs once, where it is written."""
    found: dict[str, Any] = {}
    for module in MODULES:
        tests = {name: test for name, test in vars(module).items() if name.startswith("test_") and name not in FILES}
        assert not tests.keys() & found.keys()
        found |= tests if module in QUICK else {name: pytest.mark.slow(_copy(test)) for name, test in tests.items()}
    return found


def _copy(test: Any) -> Any:
    """The same test apart, since a mark stays on a function."""
    copied = FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    copied.__dict__.update(test.__dict__, pytestmark=list(getattr(test, "pytestmark", [])))
    copied.__kwdefaults__, copied.__annotations__ = test.__kwdefaults__, test.__annotations__
    return copied


globals().update(_found())


@pytest.fixture(autouse=True)
def on_postgres(monkeypatch: pytest.MonkeyPatch, new_place: Callable[[], str]) -> Iterator[None]:
    """Whoever opens a ledger gets one on the server."""
    known: dict[str, str] = {}
    opened: list[Store] = []
    honest = places.store_at

    def store_at(name: str, **how: Any) -> Store:
        address = name if is_postgres(name) else new_place() if name == MEMORY else known.get(name)
        if address is None:
            address = known[name] = new_place()
        opened.append(honest(address, **how))
        if len(opened) > MOST_OPEN:  # of an earlier example
            opened.pop(0).close()
        return opened[-1]

    def spoil(name: Path, *statements: str) -> None:
        with psycopg.connect(without(known[str(name)], "schema")[0], autocommit=True) as connection:
            connection.execute(f"SET search_path = {known[str(name)].partition('schema=')[2]}")
            connection.execute("SET session_replication_role = replica")  # no triggers
            for statement in statements:
                connection.execute(re.sub(r"x'(\w*)'", r"'\\x\1'", statement))

    monkeypatch.setattr(places, "store_at", store_at)
    for module in (test_chain, test_failures, test_projects):
        monkeypatch.setattr(module, "tamper", spoil)
    yield
    for store in opened:
        store.close()
